//! The two ways through a proxy: a tunnel to where TLS is spoken, and requests that it passes on.
//!
//! A proxy that passes a request on wants the whole URL in the request line (RFC 9112, section
//! 3.2.2), and the credentials with each request, which the HTTP library can't write. The first
//! output of a request starts with that line, and is rewritten on its way. Every request has a
//! response, so what goes out after something came in starts the next request of a connection.

use std::io::{self, ErrorKind, Read, Write as _};

use ureq::unversioned::transport::{Buffers, NextTimeout, Transport};

use super::dial::Attempt;
use super::endpoint;
use super::limits::CONNECT_TIMEOUT;
use crate::provider::ProviderError;
use crate::proxy::Proxy;
use crate::secret::Secret;
use crate::text::Lossy;

/// The most bytes that the answer to CONNECT may have.
const HEAD_MAX: usize = 64 << 10;

/// The proxy on the way.
#[derive(Debug)]
pub(super) struct ProxyHop {
    pub(super) https: bool,
    pub(super) host: String,
    /// For messages.
    pub(super) name: String,
    /// User and password in the form of the Basic scheme.
    pub(super) basic: Option<Secret>,
}

impl ProxyHop {
    /// # Errors
    ///
    /// User and password can't be sent.
    pub(super) fn new(proxy: &Proxy) -> Result<ProxyHop, String> {
        let basic = proxy.user_info.as_ref().map(endpoint::basic).transpose()?.flatten();
        let name = format!("the proxy {}", proxy.authority());
        Ok(ProxyHop { https: proxy.https, host: proxy.host.clone(), name, basic })
    }

    /// Asks for a tunnel to `target`, a host and port, on a connection to the proxy.
    pub(super) fn tunnel(
        &self,
        stream: Box<dyn Transport>,
        target: &str,
        attempt: &Attempt<'_>,
    ) -> Result<Box<dyn Transport>, ureq::Error> {
        let mut stream = attempt.adapter(stream, CONNECT_TIMEOUT)?;
        let (user_agent, authorization) = (super::USER_AGENT, self.authorization());
        let head = format!(
            "CONNECT {target} HTTP/1.1\r\nHost: {target}\r\nUser-Agent: {user_agent}\r\n\
             {authorization}\r\n"
        );
        stream.write_all(head.as_bytes())?;
        let line = read_status_line(&mut stream).map_err(|error| {
            let words = format!("connected, but {} did not answer CONNECT {target}", self.name);
            attempt.unanswered(error, words)
        })?;
        match status(&line) {
            Some((200..=299, _)) => Ok(stream.into_inner()),
            Some((status, reason)) => {
                // It is cut when it is shown, which is after it was masked.
                let reason = Lossy::new(reason).text;
                let name = &self.name;
                let detail = format!("{name} answered {status} ({reason}) to CONNECT {target}");
                let error = ProviderError::Proxy { status, detail };
                Err(ureq::Error::Other(Box::new(error)))
            }
            None => Err(broken("what the proxy answered is not HTTP")),
        }
    }

    /// Lets the requests of a connection to the proxy be passed on to `target`, a host and port.
    pub(super) fn forward(&self, stream: Box<dyn Transport>, target: &str) -> Box<dyn Transport> {
        let origin = format!("http://{target}");
        let authorization = self.authorization();
        let rewrite = Rewrite { origin, authorization };
        Box::new(Forward { inner: stream, rewrite, starts_request: true })
    }

    /// The header that says who asks, with its line end; empty where there is no user.
    fn authorization(&self) -> String {
        let line = |basic: &Secret| format!("Proxy-Authorization: Basic {}\r\n", basic.expose());
        self.basic.as_ref().map(line).unwrap_or_default()
    }
}

/// Reads the head of an answer, and not a byte of what comes through the tunnel.
fn read_status_line(stream: &mut impl Read) -> Result<Vec<u8>, ureq::Error> {
    let mut head = Vec::new();
    // The bytes come out of a buffer.
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        if stream.read(&mut byte)? == 0 {
            return Err(broken("the proxy closed the connection in the middle of its answer"));
        }
        head.push(byte[0]);
        if head.len() > HEAD_MAX {
            return Err(broken("the answer of the proxy has no end"));
        }
    }
    let end = head.iter().position(|byte| *byte == b'\r').unwrap_or(head.len());
    head.truncate(end);
    Ok(head)
}

/// The status, and the words behind it.
fn status(line: &[u8]) -> Option<(u16, &[u8])> {
    let rest = line.strip_prefix(b"HTTP/1.")?.get(1..)?.strip_prefix(b" ")?;
    let (digits, reason) = rest.split_at_checked(3)?;
    let status = std::str::from_utf8(digits).ok()?.parse().ok()?;
    (status >= 100).then(|| (status, reason.trim_ascii()))
}

fn broken(text: &'static str) -> ureq::Error {
    ureq::Error::Io(io::Error::new(ErrorKind::ConnectionAborted, text))
}

/// A connection to a proxy on which the head of every request is rewritten.
#[derive(Debug)]
struct Forward {
    inner: Box<dyn Transport>,
    rewrite: Rewrite,
    /// Whether the next output is the start of a request.
    starts_request: bool,
}

struct Rewrite {
    origin: String,
    authorization: String,
}

impl std::fmt::Debug for Rewrite {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Rewrite({})", self.origin)
    }
}

impl Rewrite {
    /// The head with the origin in front of its path, and the header behind its first line.
    fn apply(&self, head: &[u8]) -> Vec<u8> {
        let path = head.iter().position(|byte| *byte == b' ').map_or(0, |space| space + 1);
        let line = head.iter().position(|byte| *byte == b'\n').map_or(head.len(), |end| end + 1);
        let parts = [
            &head[..path],
            self.origin.as_bytes(),
            &head[path..line],
            self.authorization.as_bytes(),
            &head[line..],
        ];
        parts.concat()
    }
}

impl Transport for Forward {
    fn buffers(&mut self) -> &mut dyn Buffers {
        self.inner.buffers()
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), ureq::Error> {
        if !std::mem::take(&mut self.starts_request) {
            return self.inner.transmit_output(amount, timeout);
        }
        let head = self.rewrite.apply(&self.inner.buffers().output()[..amount]);
        let mut rest = head.as_slice();
        while !rest.is_empty() {
            let output = self.inner.buffers().output();
            let (piece, after) = rest.split_at(rest.len().min(output.len()));
            output[..piece.len()].copy_from_slice(piece);
            self.inner.transmit_output(piece.len(), timeout)?;
            rest = after;
        }
        Ok(())
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, ureq::Error> {
        self.starts_request = true;
        self.inner.await_input(timeout)
    }

    fn is_open(&mut self) -> bool {
        self.inner.is_open()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_line_is_read_strictly() {
        assert_eq!(status(b"HTTP/1.1 200 OK"), Some((200, &b"OK"[..])));
        assert_eq!(status(b"HTTP/1.0 407"), Some((407, &b""[..])));
        for line in ["", "HTTP/1.1", "HTTP/1.1 2", "HTTP/2 200", "SSH-2.0", "HTTP/1.1 +20"] {
            assert_eq!(status(line.as_bytes()), None, "{line}");
        }
    }

    #[test]
    fn what_comes_behind_the_head_is_left_for_the_tunnel() {
        let mut stream: &[u8] = b"HTTP/1.1 200 OK\r\nVia: x\r\n\r\nrest";
        assert_eq!(read_status_line(&mut stream).unwrap(), b"HTTP/1.1 200 OK");
        assert_eq!(stream, b"rest");
        assert!(read_status_line(&mut stream).is_err());
        assert!(read_status_line(&mut io::repeat(b'a')).is_err());
    }

    #[test]
    fn a_request_line_gets_its_origin_and_the_rest_stays() {
        let origin = "http://h:80".to_owned();
        let rewrite = Rewrite { origin, authorization: "P: x\r\n".to_owned() };
        let head = rewrite.apply(b"POST /v1?a=b c HTTP/1.1\r\nhost: h\r\n\r\n");
        let expected = b"POST http://h:80/v1?a=b c HTTP/1.1\r\nP: x\r\nhost: h\r\n\r\n";
        assert_eq!(head, expected);
    }
}

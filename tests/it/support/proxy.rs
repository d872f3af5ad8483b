//! A proxy that opens tunnels and passes requests on, to one place whatever it is asked for: names
//! that only it can resolve. It is strict: every request must have the whole URL and the
//! credentials.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use super::server::{Server, read_body, read_head};
use super::tls::{self, Identity};

/// The header that goes with [`Proxy::url`].
const CREDENTIALS: &str = "\r\nProxy-Authorization: Basic dXNlcjpodW50QGVyMg==\r\n";

pub(crate) struct Proxy {
    server: Server,
    heads: Heads,
    scheme: &'static str,
}

#[derive(Clone, Default)]
struct Heads(Arc<Mutex<Vec<String>>>);

impl Heads {
    fn read(&self, client: &mut impl Read) -> io::Result<String> {
        let head = read_head(client)?;
        self.0.lock().unwrap().push(head.clone());
        Ok(head)
    }
}

impl Proxy {
    /// Leads to `upstream`.
    pub(crate) fn to(upstream: SocketAddr) -> Proxy {
        Proxy::start(move |mut client, heads| {
            let head = heads.read(&mut client)?;
            if !head.starts_with("CONNECT ") {
                return pass_requests_on(&mut client, head, upstream, heads);
            }
            if !head.contains(CREDENTIALS) {
                return client.write_all(UNKNOWN.as_bytes());
            }
            let upstream = TcpStream::connect(upstream)?;
            client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")?;
            pass_on(&client, &upstream)
        })
    }

    /// Leads to `upstream`, and is spoken to by TLS. It opens no tunnels.
    pub(crate) fn over_tls(identity: Identity, upstream: SocketAddr) -> Proxy {
        let heads = Heads::default();
        let kept = heads.clone();
        let server = tls::serve(identity, move |client| {
            let head = kept.read(client)?;
            pass_requests_on(client, head, upstream, &kept)
        });
        Proxy { server, heads, scheme: "https" }
    }

    /// Answers everything with this.
    pub(crate) fn answering(answer: &'static str) -> Proxy {
        Proxy::start(move |mut client, heads| {
            let head = heads.read(&mut client)?;
            read_body(&mut client, &head)?;
            client.write_all(answer.as_bytes())
        })
    }

    fn start(serve: impl Fn(TcpStream, &Heads) -> io::Result<()> + Send + 'static) -> Proxy {
        let heads = Heads::default();
        let kept = heads.clone();
        let server = Server::start(move |client| serve(client, &kept));
        Proxy { server, heads, scheme: "http" }
    }

    /// Its URL, with a user and a password that has to be encoded.
    pub(crate) fn url(&self) -> String {
        format!("{}://user:hunt%40er2@{}", self.scheme, self.server.address())
    }

    /// Its host and port.
    pub(crate) fn authority(&self) -> String {
        self.server.address().to_string()
    }

    /// The heads of what it was asked.
    pub(crate) fn heads(&self) -> Vec<String> {
        self.heads.0.lock().unwrap().clone()
    }
}

const UNKNOWN: &str = "HTTP/1.1 407 Who are you\r\ncontent-length: 0\r\n\r\n";
const NO_URL: &str = "HTTP/1.1 400 No URL\r\ncontent-length: 0\r\n\r\n";

/// Passes on one request after the other, until the client or the upstream has enough.
fn pass_requests_on(
    client: &mut (impl Read + Write),
    mut head: String,
    upstream: SocketAddr,
    heads: &Heads,
) -> io::Result<()> {
    let mut upstream = TcpStream::connect(upstream)?;
    loop {
        let body = read_body(client, &head)?;
        let (method, rest) = head.split_once(' ').unwrap();
        let path = rest.strip_prefix("http://").and_then(|url| url.split_once('/'));
        let refusal = match path {
            None => Some(NO_URL),
            Some(_) if head.matches(CREDENTIALS).count() != 1 => Some(UNKNOWN),
            Some(_) => None,
        };
        if let Some(refusal) = refusal {
            client.write_all(refusal.as_bytes())?;
        } else if let Some((_, path)) = path {
            let request = format!("{method} /{path}").replace(CREDENTIALS, "\r\n");
            upstream.write_all(request.as_bytes())?;
            upstream.write_all(&body)?;
            pass_response_on(&mut upstream, client)?;
        }
        client.flush()?;
        head = heads.read(client)?;
    }
}

/// Copies one response with a length or in chunks.
fn pass_response_on(upstream: &mut TcpStream, client: &mut impl Write) -> io::Result<()> {
    let head = read_head(upstream)?;
    client.write_all(head.as_bytes())?;
    let mut body = read_body(upstream, &head)?;
    if head.contains("chunked") {
        let mut byte = [0];
        while !body.ends_with(b"\r\n0\r\n\r\n") {
            upstream.read_exact(&mut byte)?;
            body.push(byte[0]);
        }
    }
    client.write_all(&body)
}

/// Copies in both directions, until both have ended.
fn pass_on(client: &TcpStream, upstream: &TcpStream) -> io::Result<()> {
    thread::scope(|scope| {
        scope.spawn(|| {
            let _ = io::copy(&mut &*client, &mut &*upstream);
            let _ = upstream.shutdown(Shutdown::Write);
        });
        let copied = io::copy(&mut &*upstream, &mut &*client);
        let _ = client.shutdown(Shutdown::Write);
        copied.map(drop)
    })
}

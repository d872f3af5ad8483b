//! The first byte that comes back on a connection, and what it says where one side speaks TLS and
//! the other one does not.

use std::io::{self, ErrorKind};

use ureq::unversioned::transport::{Buffers, NextTimeout, Transport};

use super::errors::{is_closed, refused};

/// First bytes of an alert and of a handshake message of TLS. HTTP begins with an H.
const TLS_RECORDS: [u8; 2] = [0x15, 0x16];

/// First bytes of a response without TLS; some servers answer what they can't read by a page alone.
const HTTP: [u8; 2] = [b'H', b'<'];

/// Passes everything on, and looks at the first byte that comes back.
#[derive(Debug)]
pub(super) struct Plain {
    inner: Box<dyn Transport>,
    /// The other side, for errors.
    peer: String,
    /// Whether TLS is spoken on it.
    tls: bool,
    heard: bool,
}

impl Plain {
    /// A connection on which HTTP is spoken.
    pub(super) fn new(inner: Box<dyn Transport>, peer: String) -> Plain {
        Plain { inner, peer, tls: false, heard: false }
    }

    /// A connection on which TLS is spoken.
    pub(super) fn below_tls(inner: Box<dyn Transport>, peer: String) -> Plain {
        Plain { inner, peer, tls: true, heard: false }
    }

    fn explained(&self, error: ureq::Error) -> ureq::Error {
        match error {
            ureq::Error::Io(error) if !self.heard && !self.tls && is_closed(&error) => closed(),
            other => other,
        }
    }
}

impl Transport for Plain {
    fn buffers(&mut self) -> &mut dyn Buffers {
        self.inner.buffers()
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), ureq::Error> {
        self.inner.transmit_output(amount, timeout).map_err(|error| self.explained(error))
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, ureq::Error> {
        if self.heard {
            return self.inner.await_input(timeout);
        }
        match self.inner.await_input(timeout) {
            Ok(true) => {}
            Ok(false) if self.tls => return Ok(false),
            Ok(false) => return Err(closed()),
            Err(error) => return Err(self.explained(error)),
        }
        self.heard = true;
        let first = self.inner.buffers().input().first();
        let is_one_of = |known: [u8; 2]| first.is_some_and(|byte| known.contains(byte));
        if !self.tls && is_one_of(TLS_RECORDS) {
            let detail = format!("{} speaks TLS, and was spoken to without", self.peer);
            return Err(refused(detail, "give https:// in place of http://"));
        }
        if self.tls && is_one_of(HTTP) {
            let detail = format!("{} speaks http, not TLS", self.peer);
            return Err(refused(detail, "give http:// in place of https://"));
        }
        Ok(true)
    }

    fn is_open(&mut self) -> bool {
        self.inner.is_open()
    }
}

/// Servers that fail in the middle do this, and so do those that wait for TLS.
fn closed() -> ureq::Error {
    let text = "the connection was closed without an answer (where TLS is wanted, give https://)";
    ureq::Error::Io(io::Error::new(ErrorKind::ConnectionAborted, text))
}

//! How far the last request came, for whoever wants to know what of an endpoint works.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

/// How far a request came. Where there is a proxy, the addresses are those of the proxy. A
/// connection of an earlier request leaves all but the last of it as if nothing had been needed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// What the host was found to be.
    pub addresses: Vec<SocketAddr>,
    /// Those that did not answer, where another one did.
    pub silent: Vec<SocketAddr>,
    /// Whether a new connection was asked for; otherwise one of an earlier request served.
    pub opened: bool,
    /// The one that a connection was made to, through the proxy where there is one.
    pub connected: Option<SocketAddr>,
    /// Whether TLS with the endpoint was agreed on.
    pub tls: bool,
    /// Whether the completion came as a stream.
    pub streamed: bool,
}

/// Shared between a request and its connection.
#[derive(Clone, Debug, Default)]
pub(super) struct SharedProgress(Arc<Mutex<Progress>>);

impl SharedProgress {
    pub(super) fn renew(&self) {
        self.note(|progress| *progress = Progress::default());
    }

    pub(super) fn note(&self, note: impl FnOnce(&mut Progress)) {
        note(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }

    pub(super) fn get(&self) -> Progress {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

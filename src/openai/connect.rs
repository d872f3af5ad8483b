//! Connections to the endpoint, directly or through a proxy.
//!
//! The HTTP library's own way gives up at some errors of the first address, tells only the last
//! one, and asks a proxy for a tunnel to `http://` too, which many allow to port 443 only. So the
//! way is ours.

use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};

use ureq::http::Uri;
use ureq::unversioned::transport::{ConnectionDetails, Connector, Transport};

use super::deadline::{DeadlineTransport, ReadDeadline};
use super::dial::Attempt;
use super::endpoint::Endpoint;
use super::lookup::look_up;
use super::plain::Plain;
use super::progress::SharedProgress;
use super::tls::Tls;
use super::tunnel::ProxyHop;

/// Connects to one endpoint, whatever it is asked for.
#[derive(Debug)]
pub(super) struct Connect {
    pub(super) endpoint: Endpoint,
    pub(super) proxy: Option<ProxyHop>,
    /// Where the connections go: the proxy, or else the endpoint.
    pub(super) uri: Uri,
    pub(super) tls: Tls,
    pub(super) read_deadline: ReadDeadline,
    pub(super) progress: SharedProgress,
    /// The address that the last connection was made to. It is tried first, since an address that
    /// does not answer would cost its time on each connection again.
    pub(super) worked: Mutex<Option<SocketAddr>>,
}

impl Connect {
    fn open(&self, attempt: &Attempt<'_>) -> Result<Box<dyn Transport>, ureq::Error> {
        let endpoint = self.endpoint.to_string();
        let (https, host, peer) = match &self.proxy {
            Some(proxy) => (proxy.https, proxy.host.as_str(), proxy.name.clone()),
            None => (self.endpoint.is_https(), self.endpoint.host(), endpoint.clone()),
        };
        self.progress.note(|progress| progress.opened = true);
        let addresses = look_up(&self.uri, attempt.left()?)?;
        self.progress.note(|progress| progress.addresses.clone_from(&addresses));
        let (stream, address) = self.dial(addresses, attempt)?;
        let connected = || self.progress.note(|progress| progress.connected = Some(address));
        if self.proxy.is_none() || !self.endpoint.is_https() {
            connected();
        }
        let stream = match https {
            true => self.tls.wrap(stream, host, &peer, attempt)?,
            false => Box::new(Plain::new(stream, peer)),
        };
        let Some(proxy) = &self.proxy else { return Ok(stream) };
        if !self.endpoint.is_https() {
            return Ok(proxy.forward(stream, &endpoint));
        }
        let stream = proxy.tunnel(stream, &endpoint, attempt)?;
        connected();
        self.tls.wrap(stream, self.endpoint.host(), &endpoint, attempt)
    }

    fn dial(
        &self,
        mut addresses: Vec<SocketAddr>,
        attempt: &Attempt<'_>,
    ) -> Result<(Box<dyn Transport>, SocketAddr), ureq::Error> {
        let mut worked = self.worked.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(index) = addresses.iter().position(|address| Some(*address) == *worked) {
            addresses[..=index].rotate_right(1);
        }
        let mut silent = Vec::new();
        let (stream, address) = attempt.dial(&addresses, &mut silent)?;
        *worked = Some(address);
        self.progress.note(|progress| progress.silent = silent);
        Ok((stream, address))
    }
}

impl Connector for Connect {
    type Out = Box<dyn Transport>;

    fn connect(
        &self,
        details: &ConnectionDetails<'_>,
        _: Option<()>,
    ) -> Result<Option<Self::Out>, ureq::Error> {
        let stream = self.open(&Attempt::new(details))?;
        self.progress.note(|progress| progress.tls = self.endpoint.is_https());
        Ok(Some(Box::new(DeadlineTransport::new(stream, self.read_deadline.clone()))))
    }
}

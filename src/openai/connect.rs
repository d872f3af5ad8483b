//! Connections to the endpoint, directly or through a proxy.
//!
//! The HTTP library's own way gives up at some errors of the first address, tells only the last
//! one, and asks a proxy for a tunnel to `http://` too, which many allow to port 443 only. So the
//! way is ours, and its TCP connector is asked for one address at a time.

use std::fmt::Display;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration as StdDuration, Instant};

use ureq::http::Uri;
use ureq::unversioned::transport::time::Duration;
use ureq::unversioned::transport::{
    ConnectionDetails, Connector, LazyBuffers, NextTimeout, TcpConnector, Transport,
    TransportAdapter,
};

use super::endpoint::Endpoint;
use super::limits::CONNECT_TIMEOUT;
use super::lookup::look_up;
use super::patience::{Patience, Patient};
use super::plain::Plain;
use super::progress::Track;
use super::proxied::Via;
use super::tls::Tls;

/// Connects to one endpoint, whatever it is asked for.
#[derive(Debug)]
pub(super) struct Connect {
    pub(super) endpoint: Endpoint,
    pub(super) proxy: Option<Via>,
    /// Where the connections go: the proxy, or else the endpoint.
    pub(super) uri: Uri,
    pub(super) tls: Tls,
    pub(super) patience: Patience,
    pub(super) track: Track,
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
        self.track.note(|progress| progress.opened = true);
        let addresses = look_up(&self.uri, attempt.left()?)?;
        self.track.note(|progress| progress.addresses.clone_from(&addresses));
        let (stream, address) = self.dial(addresses, attempt)?;
        let connected = || self.track.note(|progress| progress.connected = Some(address));
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
        self.track.note(|progress| progress.silent = silent);
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
        let stream = self.open(&Attempt { details, started: Instant::now() })?;
        self.track.note(|progress| progress.tls = self.endpoint.is_https());
        Ok(Some(Box::new(Patient::new(stream, self.patience.clone()))))
    }
}

/// One attempt to connect, and the time that it has for all its steps.
pub(super) struct Attempt<'a> {
    details: &'a ConnectionDetails<'a>,
    started: Instant,
}

impl Attempt<'_> {
    /// What may still be used of the time.
    fn left(&self) -> Result<NextTimeout, ureq::Error> {
        let mut limit = self.details.timeout;
        if let Duration::Exact(whole) = limit.after {
            let left = whole.saturating_sub(self.started.elapsed());
            if left.is_zero() {
                return Err(ureq::Error::Timeout(limit.reason));
            }
            limit.after = Duration::Exact(left);
        }
        Ok(limit)
    }

    /// Lets a step read and write within that time, and within a limit of its own.
    pub(super) fn adapter(
        &self,
        stream: Box<dyn Transport>,
        limit: StdDuration,
    ) -> Result<TransportAdapter, ureq::Error> {
        let mut timeout = self.left()?;
        timeout.after = timeout.after.min(Duration::Exact(limit));
        let mut adapter = TransportAdapter::new(stream, self.details.current_time.clone());
        adapter.set_timeout(timeout);
        Ok(adapter)
    }

    /// The error of a step, in words where a limit of this program ended it and not one of the
    /// user's.
    pub(super) fn unanswered(&self, error: ureq::Error, words: String) -> ureq::Error {
        let is_ours = self.details.timeout.reason == ureq::Timeout::Connect
            && self.details.config.timeouts().connect == Some(CONNECT_TIMEOUT);
        match error {
            ureq::Error::Timeout(_) if is_ours || self.left().is_ok() => {
                ureq::Error::Io(io::Error::new(ErrorKind::TimedOut, words))
            }
            other => other,
        }
    }

    pub(super) fn buffers(&self) -> LazyBuffers {
        let config = self.details.config;
        LazyBuffers::new(config.input_buffer_size(), config.output_buffer_size())
    }

    /// Tries one address after the other. Each may use half of the time that is left, and the last
    /// one all of it, so that one that does not answer leaves something for the others; it is
    /// added to `silent`.
    fn dial(
        &self,
        addresses: &[SocketAddr],
        silent: &mut Vec<SocketAddr>,
    ) -> Result<(Box<dyn Transport>, SocketAddr), ureq::Error> {
        let mut failures = Vec::new();
        for (index, address) in addresses.iter().enumerate() {
            let mut limit = self.left()?;
            if let Duration::Exact(left) = limit.after
                && index + 1 < addresses.len()
            {
                limit.after = Duration::Exact(left / 2);
            }
            match self.dial_one(*address, limit) {
                Ok(Some(transport)) => return Ok((transport, *address)),
                Ok(None) => {}
                Err(ureq::Error::Timeout(_)) => {
                    silent.push(*address);
                    failures.push(failure(address, "no answer"));
                }
                Err(ureq::Error::Io(error)) => failures.push(failure(address, error)),
                Err(other) => return Err(other),
            }
        }
        if silent.len() == failures.len() || self.details.timeout.reason == ureq::Timeout::Global {
            self.left()?;
        }
        Err(ureq::Error::Io(io::Error::other(failures.join("; "))))
    }

    fn dial_one(
        &self,
        address: SocketAddr,
        timeout: NextTimeout,
    ) -> Result<Option<Box<dyn Transport>>, ureq::Error> {
        let given = self.details;
        let mut addrs = given.resolver.empty();
        addrs.push(address);
        let details = ConnectionDetails {
            uri: given.uri,
            addrs,
            config: given.config,
            request_level: given.request_level,
            resolver: given.resolver,
            now: ureq::unversioned::transport::time::Instant::now(),
            timeout,
            current_time: given.current_time.clone(),
            run_connector: given.run_connector.clone(),
            register_shutdown: given.register_shutdown.clone(),
        };
        let transport = TcpConnector::default().connect(&details, None::<()>)?;
        Ok(transport.map(|transport| -> Box<dyn Transport> { Box::new(transport) }))
    }
}

fn failure(address: &SocketAddr, problem: impl Display) -> String {
    format!("{address}: {problem}")
}

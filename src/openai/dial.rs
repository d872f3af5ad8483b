//! One attempt to connect: its time limit, and the addresses that it tries.
//!
//! The TCP connector of the HTTP library is asked for one address at a time.

use std::fmt::Display;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::time::Instant;

use ureq::unversioned::transport::time::Duration;
use ureq::unversioned::transport::{
    ConnectionDetails, Connector, LazyBuffers, NextTimeout, TcpConnector, Transport,
    TransportAdapter,
};

use super::limits::CONNECT_TIMEOUT;

/// One attempt to connect, and the time that it has for all its steps.
pub(super) struct Attempt<'a> {
    details: &'a ConnectionDetails<'a>,
    started: Instant,
}

impl<'a> Attempt<'a> {
    /// Starts now.
    pub(super) fn new(details: &'a ConnectionDetails<'a>) -> Attempt<'a> {
        Attempt { details, started: Instant::now() }
    }

    /// What may still be used of the time.
    pub(super) fn left(&self) -> Result<NextTimeout, ureq::Error> {
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
        limit: std::time::Duration,
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
    pub(super) fn dial(
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

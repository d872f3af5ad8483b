//! The addresses of a host.
//!
//! The system's resolver takes no limit, so it is asked in a thread that is left behind when the
//! time is over. The HTTP library does the same, and panics when there is no thread to be had.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs as _};

use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::NextTimeout;
use ureq::unversioned::transport::time::Duration as Limit;

use crate::time::within;

/// As many addresses as are tried.
const ADDRESSES_MAX: usize = 16;

/// Finds nothing: the HTTP library asks before it knows whether a connection is there already, and
/// where none is, [`Connect`](super::connect::Connect) looks the host up.
#[derive(Debug)]
pub(super) struct NoLookup;

impl Resolver for NoLookup {
    fn resolve(
        &self,
        _: &Uri,
        _: &Config,
        _: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, ureq::Error> {
        Ok(self.empty())
    }
}

/// Looks a host up as the system does, but knows `localhost` by itself: an empty container has no
/// file that lists it, and some servers listen on one of its two addresses only.
pub(super) fn look_up(uri: &Uri, timeout: NextTimeout) -> Result<Vec<SocketAddr>, ureq::Error> {
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
    let default = if uri.scheme_str() == Some("https") { 443 } else { 80 };
    let port = uri.port_u16().unwrap_or(default);
    if let Ok(address) = host.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::from((address, port))]);
    }
    if host == "localhost" {
        // The old one first: without IPv6 in the kernel the other is an error and not a refusal.
        let local = [IpAddr::from(Ipv4Addr::LOCALHOST), IpAddr::from(Ipv6Addr::LOCALHOST)];
        return Ok(local.map(|address| SocketAddr::from((address, port))).to_vec());
    }
    let mut found = ask_system(host, port, timeout)?;
    found.truncate(ADDRESSES_MAX);
    Ok(found)
}

fn ask_system(host: &str, port: u16, timeout: NextTimeout) -> Result<Vec<SocketAddr>, ureq::Error> {
    let failed = |error: io::Error| {
        let text = format!("can't look up {host}: {error}");
        ureq::Error::Io(io::Error::new(error.kind(), text))
    };
    let asked = host.to_owned();
    let ask = move || (asked.as_str(), port).to_socket_addrs().map(Iterator::collect::<Vec<_>>);
    let limit = match timeout.after {
        Limit::Exact(after) => Some(after),
        Limit::NotHappening => None,
    };
    match within(limit, ask).map_err(failed)? {
        None => Err(ureq::Error::Timeout(timeout.reason)),
        Some(Ok(found)) if found.is_empty() => Err(ureq::Error::HostNotFound),
        Some(found) => found.map_err(failed),
    }
}

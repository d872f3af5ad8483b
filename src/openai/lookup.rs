//! The addresses of a host.
//!
//! The system's resolver takes no limit, so it is asked in a thread that is left behind when the time
//! is over. The HTTP library does the same, and panics when there is no thread to be had.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs as _};

use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::NextTimeout;
use ureq::unversioned::transport::time::Duration as Limit;

use super::progress::Track;
use crate::time::within;

/// Looks hosts up as the system does, but knows `localhost` by itself: an empty container has no
/// file that lists it, and some servers listen on one of its two addresses only. Where there is a
/// proxy, that is looked up, and the endpoint is left to it.
#[derive(Debug)]
pub(super) struct Lookup {
    pub(super) proxy: Option<Uri>,
    pub(super) track: Track,
}

/// As many addresses as are tried.
const ADDRESSES_MAX: usize = 16;

impl Resolver for Lookup {
    fn resolve(
        &self,
        uri: &Uri,
        _: &Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let uri = self.proxy.as_ref().unwrap_or(uri);
        let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
        let default = if uri.scheme_str() == Some("https") { 443 } else { 80 };
        let port = uri.port_u16().unwrap_or(default);
        let mut addresses = self.empty();
        if let Ok(address) = host.parse::<IpAddr>() {
            addresses.push(SocketAddr::from((address, port)));
        } else if host == "localhost" {
            // The old one first: without IPv6 in the kernel the other is an error and not a refusal.
            addresses.push(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
            addresses.push(SocketAddr::from((Ipv6Addr::LOCALHOST, port)));
        } else {
            let found = ask_system(host, port, timeout)?;
            found.into_iter().take(ADDRESSES_MAX).for_each(|address| addresses.push(address));
        }
        self.track.note(|progress| progress.addresses = addresses.to_vec());
        Ok(addresses)
    }
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

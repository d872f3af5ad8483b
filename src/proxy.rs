//! Which proxy a connection goes through, by the variables that curl reads.
//!
//! The HTTP library has its own reading of the environment, which knows neither networks nor ports
//! in `NO_PROXY` and would make tests depend on where they run; it is turned off.

use std::ffi::OsString;
use std::net::IpAddr;

use crate::url::{Url, UserInfo, bracketed};

/// An HTTP proxy. `Debug` does not show its user and password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proxy {
    pub(crate) https: bool,
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) user_info: Option<UserInfo>,
}

impl Proxy {
    /// Finds the proxy for a host in the environment; none where the connection is direct.
    ///
    /// The variables are `https_proxy` or `http_proxy` by the scheme of the endpoint, then
    /// `all_proxy`; each in lower case first and then in capitals, and an empty one counts as
    /// absent. `no_proxy` lists, by commas or white space, what is reached directly: `*`, host
    /// names with everything below them, addresses and networks (`10.0.0.0/8`), each with a port
    /// or without. The machine itself is never reached through a proxy.
    ///
    /// # Errors
    ///
    /// The variable that can't be used and why, without any part of its value.
    pub fn from_env(
        env: &dyn Fn(&str) -> Option<OsString>,
        https: bool,
        host: &str,
        port: u16,
    ) -> Result<Option<Proxy>, String> {
        let set = |name: &str| env(name).filter(|value| !value.is_empty());
        let exceptions = set("no_proxy").or_else(|| set("NO_PROXY")).unwrap_or_default();
        if is_loopback(host) || is_exempt(&exceptions.to_string_lossy(), host, port) {
            return Ok(None);
        }
        let names = match https {
            true => ["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"],
            false => ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"],
        };
        let Some((name, value)) = names.into_iter().find_map(|name| Some(name).zip(set(name)))
        else {
            return Ok(None);
        };
        let value = value.to_str().ok_or_else(|| format!("{name}: not UTF-8"))?;
        Proxy::parse(value).map(Some).map_err(|problem| format!("{name}: {problem}"))
    }

    /// The host and port, for messages.
    pub(crate) fn authority(&self) -> String {
        format!("{}:{}", bracketed(&self.host), self.port)
    }

    /// Its address as a URL, without user and password.
    pub(crate) fn uri(&self) -> String {
        format!("{}://{}", if self.https { "https" } else { "http" }, self.authority())
    }

    fn parse(text: &str) -> Result<Proxy, String> {
        let Url { scheme, user_info, host, port, .. } = Url::parse(text)?;
        let (https, default_port) = match scheme.as_deref() {
            // As curl has it.
            None | Some("http") => (false, 1080),
            Some("https") => (true, 443),
            Some(_) => return Err("only http:// and https:// proxies are supported".to_owned()),
        };
        Ok(Proxy { https, host, port: port.unwrap_or(default_port), user_info })
    }
}

fn is_loopback(host: &str) -> bool {
    let host = host.trim_end_matches('.');
    match host.parse::<IpAddr>() {
        Ok(address) => address.to_canonical().is_loopback(),
        Err(_) => host == "localhost" || host.ends_with(".localhost"),
    }
}

/// Whether the list of exceptions names the host.
fn is_exempt(exceptions: &str, host: &str, port: u16) -> bool {
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    let separator = |c: char| c == ',' || c.is_whitespace();
    exceptions.split(separator).filter(|entry| !entry.is_empty()).any(|entry| {
        let entry = entry.to_ascii_lowercase();
        let (entry, only_port) = split_port(&entry);
        if only_port.is_some_and(|only_port| only_port != port) {
            return false;
        }
        match host.parse::<IpAddr>() {
            _ if entry == "*" => true,
            Ok(address) => is_in_network(address, entry),
            Err(_) => is_below(&host, entry),
        }
    })
}

/// Splits a port off an entry; an IPv6 address has one only behind its brackets.
fn split_port(entry: &str) -> (&str, Option<u16>) {
    match entry.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') || host.ends_with(']') => match port.parse() {
            Ok(port) => (host, Some(port)),
            Err(_) => (entry, None),
        },
        _ => (entry, None),
    }
}

/// Whether the host is the domain or below it. A dot or `*.` in front means the same as none.
fn is_below(host: &str, domain: &str) -> bool {
    let domain = domain.trim_start_matches('*').trim_matches('.');
    let rest = host.strip_suffix(domain);
    !domain.is_empty() && rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

/// Whether the address is the one given, or in the network given as address and length.
fn is_in_network(address: IpAddr, network: &str) -> bool {
    let (network, length) = network.split_once('/').unwrap_or((network, ""));
    let network = network.trim_start_matches('[').trim_end_matches(']');
    let Ok(network) = network.parse::<IpAddr>() else { return false };
    let (address, network, bits) = match (address.to_canonical(), network.to_canonical()) {
        (IpAddr::V4(a), IpAddr::V4(b)) => (u128::from(a.to_bits()), u128::from(b.to_bits()), 32),
        (IpAddr::V6(a), IpAddr::V6(b)) => (a.to_bits(), b.to_bits(), 128),
        _ => return false,
    };
    let length = if length.is_empty() { Ok(bits) } else { length.parse::<u32>() };
    match length {
        // Shifting by all bits is nothing that the machine can do.
        Ok(length) if length <= bits => {
            (address ^ network).checked_shr(bits - length).unwrap_or(0) == 0
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(variables: &[(&str, &str)], https: bool, host: &str) -> Result<Option<String>, String> {
        let env = |name: &str| {
            let mut found = variables.iter().filter(|(known, _)| *known == name);
            found.next().map(|(_, value)| OsString::from(value))
        };
        let port = if https { 443 } else { 80 };
        Proxy::from_env(&env, https, host, port).map(|proxy| proxy.map(|p| p.authority()))
    }

    #[test]
    fn the_scheme_of_the_endpoint_picks_the_variable() {
        let all = [
            ("http_proxy", "http://a:1"),
            ("HTTP_PROXY", "http://b:1"),
            ("HTTPS_PROXY", "https://c"),
            ("ALL_PROXY", "d"),
        ];
        assert_eq!(find(&all, false, "example.com"), Ok(Some("a:1".to_owned())));
        assert_eq!(find(&all[1..], false, "example.com"), Ok(Some("b:1".to_owned())));
        assert_eq!(find(&all, true, "example.com"), Ok(Some("c:443".to_owned())));
        assert_eq!(find(&all[3..], true, "example.com"), Ok(Some("d:1080".to_owned())));
        assert_eq!(find(&[("https_proxy", ""), all[2]], true, "h"), Ok(Some("c:443".to_owned())));
        assert_eq!(find(&[], true, "example.com"), Ok(None));
    }

    #[test]
    fn the_machine_itself_is_reached_directly() {
        let all = [("ALL_PROXY", "http://a:1")];
        for host in ["localhost", "a.localhost", "localhost.", "127.9.9.9", "::1"] {
            assert_eq!(find(&all, false, host), Ok(None), "{host}");
        }
        assert_eq!(find(&all, false, "notlocalhost"), Ok(Some("a:1".to_owned())));
    }

    #[test]
    fn an_unusable_variable_is_named_and_its_value_is_not_shown() {
        for value in ["socks5://user:hunter2@h", "http://user:hunter2@h:0", "hunter2 x"] {
            let message = find(&[("ALL_PROXY", value)], true, "example.com").unwrap_err();
            assert!(message.starts_with("ALL_PROXY: "), "{message}");
            assert!(!message.contains("hunter2"), "{message}");
        }
        assert_eq!(find(&[("ALL_PROXY", "socks5://h")], true, "localhost"), Ok(None));
        let proxy = Proxy::parse("http://user:hunter2@h").unwrap();
        assert!(!format!("{proxy:?}").contains("hunter2"), "{proxy:?}");
    }

    #[track_caller]
    fn check_exempt(exceptions: &str, host: &str, expected: bool) {
        assert_eq!(is_exempt(exceptions, host, 8080), expected, "{exceptions}: {host}");
    }

    #[test]
    fn exceptions_are_read_as_curl_reads_them() {
        check_exempt("localhost,192.168.1.5", "192.168.1.5", true);
        check_exempt("a.example,  b.example", "b.example", true);
        check_exempt("a.example b.example", "b.example", true);
        check_exempt("*", "anything.example", true);
        for entry in ["corp", ".corp", "*.corp", "CORP", "corp."] {
            check_exempt(entry, "host.corp", true);
            check_exempt(entry, "Corp.", true);
            check_exempt(entry, "notcorp", false);
        }
        check_exempt("host.corp:8080", "host.corp", true);
        check_exempt("host.corp:81", "host.corp", false);
        check_exempt("", "host.corp", false);
        check_exempt(",,.,", "host.corp", false);
    }

    #[test]
    fn exceptions_may_be_networks() {
        check_exempt("10.0.0.0/8", "10.255.0.1", true);
        check_exempt("10.0.0.0/8", "11.0.0.1", false);
        check_exempt("10.1.2.3/32", "10.1.2.3", true);
        check_exempt("0.0.0.0/0", "8.8.8.8", true);
        check_exempt("10.0.0.0/33", "10.0.0.0", false);
        check_exempt("10.0.0.0/x", "10.0.0.0", false);
        check_exempt("fd00::/8", "fd12::1", true);
        check_exempt("fd00::/8", "fe80::1", false);
        check_exempt("[fd12::1]:8080", "fd12::1", true);
        check_exempt("[fd12::1]:81", "fd12::1", false);
        check_exempt("fd12::1", "fd12::1", true);
        check_exempt("10.0.0.0/8", "10.example", false);
        check_exempt("0.0.1", "10.0.0.1", false);
    }
}

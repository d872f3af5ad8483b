//! URLs as people write them: taken apart, and checked before anything is sent.
//!
//! No message here shows any part of a URL, because a part of it may be a password.

use std::borrow::Cow;
use std::fmt;
use std::net::Ipv6Addr;

/// The parts of a URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Url {
    /// In lower case; none where there was no `://`.
    pub(crate) scheme: Option<String>,
    /// What stood before an `@`.
    pub(crate) user_info: Option<UserInfo>,
    /// In lower case; an IPv6 address without its brackets.
    pub(crate) host: String,
    pub(crate) port: Option<u16>,
    /// From the first slash on; empty where there is none.
    pub(crate) path: String,
    /// What follows a question mark.
    pub(crate) query: Option<String>,
}

/// User and password, which are not shown.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct UserInfo {
    pub(crate) user: String,
    pub(crate) password: String,
}

impl fmt::Debug for UserInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("UserInfo(..)")
    }
}

impl Url {
    /// Takes a URL apart; surrounding white space is dropped.
    ///
    /// # Errors
    ///
    /// What is wrong with it, without any part of it.
    pub(crate) fn parse(text: &str) -> Result<Url, String> {
        let text = text.trim();
        let unsafe_in_url = |c: char| !c.is_ascii_graphic() || "\"<>\\^`{|}#".contains(c);
        if let Some((index, bad)) = text.chars().enumerate().find(|(_, c)| unsafe_in_url(*c)) {
            let code = u32::from(bad);
            return Err(format!("character {} can't stand in it (U+{code:04X})", index + 1));
        }
        let (scheme, rest) = match text.split_once("://") {
            Some((scheme, rest)) => (Some(scheme.to_ascii_lowercase()), rest),
            None => (None, text),
        };
        let (rest, query) = match rest.split_once('?') {
            Some((rest, query)) => (rest, Some(query.to_owned())),
            None => (rest, None),
        };
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let (user_info, host_port) = match authority.rsplit_once('@') {
            Some((user_info, host_port)) => (Some(UserInfo::parse(user_info)?), host_port),
            None => (None, authority),
        };
        let (host, port) = host_and_port(host_port)?;
        Ok(Url { scheme, user_info, host, port, path: path.to_owned(), query })
    }
}

/// The parts of a URL that may hold secrets, whatever else of it can't be used.
pub(crate) struct Parts<'a> {
    pub(crate) user_info: Option<&'a str>,
    pub(crate) query: &'a str,
}

impl Parts<'_> {
    pub(crate) fn of(text: &str) -> Parts<'_> {
        let text = text.trim();
        let rest = text.split_once("://").map_or(text, |(_, rest)| rest);
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let authority = rest.split('/').next().unwrap_or(rest);
        // A password may have a slash in it that should have been escaped.
        let user_info = authority.rsplit_once('@').or_else(|| rest.rsplit_once('@'));
        let user_info = user_info.map(|(user_info, _)| user_info);
        Parts { user_info, query: query.split('#').next().unwrap_or(query) }
    }
}

/// The host as it stands in a URL.
pub(crate) fn bracketed(host: &str) -> Cow<'_, str> {
    if host.contains(':') { format!("[{host}]").into() } else { host.into() }
}

impl UserInfo {
    fn parse(text: &str) -> Result<UserInfo, String> {
        let (user, password) = text.split_once(':').unwrap_or((text, ""));
        match (percent_decoded(user), percent_decoded(password)) {
            (Some(user), Some(password)) => Ok(UserInfo { user, password }),
            _ => Err("the user or password has a % that is not followed by two digits".to_owned()),
        }
    }
}

fn host_and_port(text: &str) -> Result<(String, Option<u16>), String> {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, rest) = rest.split_once(']').ok_or("the [ of its host has no ]")?;
            let address: Ipv6Addr =
                host.parse().map_err(|_| "what stands in [] is not an IPv6 address")?;
            let port = match rest.strip_prefix(':') {
                None if !rest.is_empty() => return Err("its host ends in odd characters".into()),
                port => port.unwrap_or_default(),
            };
            (address.to_string(), port)
        }
        None => {
            let (host, port) = text.split_once(':').unwrap_or((text, ""));
            let odd = |c: char| !c.is_ascii_alphanumeric() && !"-_.".contains(c);
            if host.contains(odd) {
                return Err("its host has characters that no host has".to_owned());
            }
            (host.to_ascii_lowercase(), port)
        }
    };
    if host.trim_matches('.').is_empty() {
        return Err("it has no host".to_owned());
    }
    let port = match port {
        "" => None,
        digits => match digits.parse() {
            Ok(port) if port > 0 && !digits.starts_with('+') => Some(port),
            _ => return Err("its port is not a number from 1 to 65535".to_owned()),
        },
    };
    Ok((host, port))
}

pub(crate) fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let (digits, after) = after.split_first_chunk::<2>()?;
        let digit = |digit: u8| char::from(digit).to_digit(16);
        bytes.push(u8::try_from(digit(digits[0])? * 16 + digit(digits[1])?).ok()?);
        rest = after;
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_taken_apart() {
        let url = Url::parse(" HTTP://us%40er:p%3Aw:d@Host.example:81/v1/?a=b?c ").unwrap();
        let user_info = UserInfo { user: "us@er".to_owned(), password: "p:w:d".to_owned() };
        assert_eq!(
            url,
            Url {
                scheme: Some("http".to_owned()),
                user_info: Some(user_info),
                host: "host.example".to_owned(),
                port: Some(81),
                path: "/v1/".to_owned(),
                query: Some("a=b?c".to_owned()),
            }
        );
        assert!(!format!("{url:?}").contains("p:w"), "{url:?}");
    }

    #[test]
    fn an_ipv6_address_stands_in_brackets() {
        let url = Url::parse("http://[::1]:8080/v1").unwrap();
        assert_eq!((url.host.as_str(), url.port), ("::1", Some(8080)));
        assert_eq!(bracketed(&url.host), "[::1]");
        assert_eq!(bracketed("host.example"), "host.example");
    }

    #[test]
    fn what_is_no_url_is_refused_without_showing_it() {
        for (text, expected) in [
            ("http://", "it has no host"),
            ("", "it has no host"),
            ("http://secret@:80", "it has no host"),
            ("http://secret:0/", "its port is not a number"),
            ("http://secret:99999/", "its port is not a number"),
            ("http://secret:+80/", "its port is not a number"),
            ("http://se,cret/", "its host has characters that no host has"),
            ("http://[secret]/", "what stands in [] is not"),
            ("http://[::1/", "the [ of its host has no ]"),
            ("http://secret@%/", "its host has characters"),
            ("http://secret%4@host/", "the user or password has a %"),
            ("http://secret host/", "character 14 can't stand in it (U+0020)"),
            ("http://h\u{f6}st/", "character 9 can't stand in it (U+00F6)"),
            ("http://host/#secret", "character 13 can't stand in it (U+0023)"),
        ] {
            let message = Url::parse(text).unwrap_err();
            assert!(message.starts_with(expected), "{text}: {message}");
            assert!(!message.contains("secret"), "{message}");
        }
    }
}

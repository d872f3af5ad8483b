//! Where the requests go.

use std::fmt;

use crate::secret::{Hidden, Secret, is_secret_name};
use crate::url::{Parts, Url, UserInfo, bracketed, percent_decoded};

/// A chat-completions endpoint. Neither `Debug` nor `Display` shows user, password, path or query.
#[derive(Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// What is requested, without user and password.
    url: String,
    https: bool,
    host: String,
    port: u16,
    /// User and password in the form of the Basic scheme.
    basic: Option<Secret>,
}

impl Endpoint {
    /// Reads a base URL.
    ///
    /// `/chat/completions` is added to its path, before any query; slashes at the end and an
    /// already complete path are understood. User and password are sent by the Basic scheme when
    /// there is no key.
    ///
    /// # Errors
    ///
    /// What is wrong with it, without any part of it. No request was sent.
    pub fn parse(text: &str) -> Result<Endpoint, String> {
        let Url { scheme, user_info, host, port, path, query } = Url::parse(text)?;
        let scheme = scheme.ok_or("it does not start with http:// or https://")?;
        let (https, default_port) = match scheme.as_str() {
            "http" => (false, 80),
            "https" => (true, 443),
            _ => return Err("its scheme is neither http nor https".to_owned()),
        };
        const PATH: &str = "/chat/completions";
        let base = path.trim_end_matches('/');
        let base = base.strip_suffix(PATH).unwrap_or(base);
        let port_part = port.map(|port| format!(":{port}")).unwrap_or_default();
        let query_part = query.map(|query| format!("?{query}")).unwrap_or_default();
        Ok(Endpoint {
            url: format!("{scheme}://{}{port_part}{base}{PATH}{query_part}", bracketed(&host)),
            https,
            host,
            port: port.unwrap_or(default_port),
            basic: user_info.map(|user_info| basic(&user_info)).transpose()?.flatten(),
        })
    }

    /// Whether the connection is encrypted.
    pub fn is_https(&self) -> bool {
        self.https
    }

    /// The host in lower case; an IPv6 address without brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port, given or implied by the scheme.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The URL to post to. Its query may hold what is not for everybody to see.
    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// Whether a user is named, and will be sent where there is no key.
    pub fn has_user(&self) -> bool {
        self.basic.is_some()
    }

    pub(super) fn basic(&self) -> Option<&Secret> {
        self.basic.as_ref()
    }
}

/// Host and port.
impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", bracketed(&self.host), self.port)
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Endpoint({self})")
    }
}

/// What is secret of a URL, whether it can be used or not: the password, or the user where there is
/// none; both together in the form of the Basic scheme; and those values of the query that are
/// secret by their names. Each as it is spelled there, and decoded.
pub fn secrets_of_url(text: &str) -> Vec<Hidden> {
    parts_of_url(text).iter().filter_map(|part| Hidden::key(part)).collect()
}

pub(crate) fn parts_of_url(text: &str) -> Vec<String> {
    let Parts { user_info, query } = Parts::of(text);
    let mut all = Vec::new();
    if let Some(user_info) = user_info {
        let (user, password) = user_info.split_once(':').unwrap_or((user_info, ""));
        // A user without a password is a token.
        add(&mut all, if password.is_empty() { user } else { password });
        if let (Some(user), Some(password)) = (percent_decoded(user), percent_decoded(password)) {
            all.push(base64(format!("{user}:{password}").as_bytes()));
        }
    }
    for (name, value) in query.split(['&', ';']).filter_map(|pair| pair.split_once('=')) {
        if is_secret_name(&percent_decoded(name).unwrap_or_else(|| name.to_owned())) {
            add(&mut all, value);
        }
    }
    all
}

fn add(all: &mut Vec<String>, spelled: &str) {
    all.push(spelled.to_owned());
    all.extend(percent_decoded(spelled).filter(|decoded| decoded != spelled));
    all.retain(|part| !part.is_empty());
}

/// User and password in the form of the Basic scheme.
pub(super) fn basic(user_info: &UserInfo) -> Result<Option<Secret>, String> {
    let UserInfo { user, password } = user_info;
    Secret::parse(&base64(format!("{user}:{password}").as_bytes()))
}

/// Base64 as RFC 4648 section 4 has it, padded.
fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |index: usize| usize::from(chunk.get(index).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for index in 0..4 {
            let digit = ALPHABET[bits >> (18 - 6 * index) & 63];
            out.push(if index <= chunk.len() { char::from(digit) } else { '=' });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(Endpoint::parse(text).expect(text).url(), expected);
    }

    #[test]
    fn the_path_is_completed_once() {
        for base in ["http://h/v1", "http://h/v1/", "http://h/v1//", "http://h/v1/chat/completions"]
        {
            check(base, "http://h/v1/chat/completions");
        }
        check("http://h/v1/chat/completions/", "http://h/v1/chat/completions");
        check("https://H", "https://h/chat/completions");
        check("http://h/", "http://h/chat/completions");
        check("http://h/v1?a=b/c", "http://h/v1/chat/completions?a=b/c");
        check("http://h/v1/?a", "http://h/v1/chat/completions?a");
        check("http://[::1]:8080/v1", "http://[::1]:8080/v1/chat/completions");
    }

    #[test]
    fn a_url_that_can_not_be_posted_to_is_refused_without_showing_it() {
        for (text, expected) in [
            ("localhost:8080/hunter2", "it does not start with http:// or https://"),
            ("http://", "it has no host"),
            ("ftp://hunter2/v1", "its scheme is neither http nor https"),
            ("file:///hunter2", "it has no host"),
        ] {
            let message = Endpoint::parse(text).unwrap_err();
            assert_eq!(message, expected, "{text}");
        }
    }

    #[test]
    fn user_and_password_are_sent_and_not_shown() {
        let endpoint = Endpoint::parse("https://user:hunter%402@h.example/v1?key=abc").unwrap();
        assert_eq!(endpoint.url(), "https://h.example/v1/chat/completions?key=abc");
        assert_eq!(endpoint.basic().unwrap().expose(), "dXNlcjpodW50ZXJAMg==");
        assert_eq!(format!("{endpoint} {endpoint:?}"), "h.example:443 Endpoint(h.example:443)");
    }

    #[test]
    fn base64_is_padded() {
        for (plain, expected) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("\u{3fff}?", "47+/Pw==")]
        {
            let encoded = base64(plain.as_bytes());
            assert!(encoded == expected, "{plain:?}: {encoded}");
        }
    }
}

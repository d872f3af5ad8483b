//! Headers that the user adds to every request.

use ureq::http::{HeaderName, HeaderValue};

use crate::secret::Secret;

/// A header. `Debug` does not show its value, which may be a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    pub(super) name: HeaderName,
    pub(super) value: HeaderValue,
}

/// These say where the body ends and what it is, and who may read it on the way.
const OURS: [&str; 6] =
    ["connection", "content-length", "content-type", "expect", "host", "transfer-encoding"];

impl Header {
    /// Reads `NAME: VALUE`.
    ///
    /// # Errors
    ///
    /// What is wrong with it, without its value.
    pub fn parse(text: &str) -> Result<Header, String> {
        let (name, value) = text.split_once(':').ok_or("there is no colon; give NAME: VALUE")?;
        let name: HeaderName =
            name.trim().parse().map_err(|_| "the name is not that of a header".to_owned())?;
        if OURS.contains(&name.as_str()) {
            return Err(format!("{name} can't be set"));
        }
        let value = value.trim();
        if value.is_empty() {
            return Err(format!("{name} has no value"));
        }
        let mut value = HeaderValue::from_str(value)
            .map_err(|_| format!("the value of {name} has a character that no header can carry"))?;
        value.set_sensitive(true);
        Ok(Header { name, value })
    }

    /// The value, where the name says that it is one to keep.
    pub(crate) fn secret(&self) -> Option<Secret> {
        let is_secret = ["auth", "key", "token", "secret", "cookie"]
            .iter()
            .any(|word| self.name.as_str().contains(word));
        let text = self.value.to_str().ok().filter(|_| is_secret)?;
        // What an endpoint quotes is the key and not the scheme before it.
        let key = text.rsplit_once(' ').map_or(text, |(_, key)| key);
        Secret::parse(key).ok().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_a_name_and_a_value() {
        let header = Header::parse(" X-Title :  my run ").unwrap();
        assert_eq!((header.name.as_str(), header.value.to_str().unwrap()), ("x-title", "my run"));
        assert_eq!(header.secret(), None);
        let header = Header::parse("Authorization: Token abc-12345").unwrap();
        assert_eq!(header.secret(), Secret::parse("abc-12345").unwrap());
        assert!(!format!("{header:?}").contains("abc"), "{header:?}");
    }

    #[test]
    fn what_is_no_header_of_the_users_is_refused_without_its_value() {
        for (text, says) in [
            ("secret", "there is no colon"),
            ("a b: secret", "the name is not"),
            (": secret", "the name is not"),
            ("Host: secret", "host can't be set"),
            ("Content-Length: 1", "content-length can't be set"),
            ("X-A:", "x-a has no value"),
            ("X-A: sec\u{1}ret", "the value of x-a has a character"),
        ] {
            let error = Header::parse(text).unwrap_err();
            assert!(error.starts_with(says) && !error.contains("secret"), "{text}: {error}");
        }
    }
}

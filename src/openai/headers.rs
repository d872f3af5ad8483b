//! Headers that the user adds to every request.

use ureq::http::{HeaderName, HeaderValue};

use crate::secret::{Hidden, is_secret_name};

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

    /// What is secret of it, where the name says that it is: the value, each word of it, and what
    /// stands behind the `=` of a word. The scheme before credentials is none of it.
    pub fn secrets(&self) -> Vec<Hidden> {
        let Some(value) = self.value.to_str().ok().filter(|_| is_secret_name(self.name.as_str()))
        else {
            return Vec::new();
        };
        let is_scheme = |word: &str| word.bytes().all(|byte| byte.is_ascii_alphabetic());
        let words = match value.split_once(' ') {
            Some((scheme, rest)) if is_scheme(scheme) => rest,
            _ => value,
        };
        let mut all = vec![value];
        for word in words.split([' ', '\t', ';', ',']) {
            all.push(word);
            all.extend(word.split_once('=').map(|(_, value)| value.trim_matches('"')));
        }
        all.into_iter().filter_map(Hidden::key).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::Mask;

    #[test]
    fn a_header_is_a_name_and_a_value() {
        let header = Header::parse(" X-Title :  my run ").unwrap();
        assert_eq!((header.name.as_str(), header.value.to_str().unwrap()), ("x-title", "my run"));
        assert_eq!(header.secrets(), []);
        let header = Header::parse("Authorization: Token abc-12345").unwrap();
        let mask = Mask::new(header.secrets().into_iter().map(Some));
        assert_eq!(mask.text("got abc-12345"), "got [api key]");
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

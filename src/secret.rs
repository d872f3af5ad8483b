//! What must not get out: keys and passwords. They can be sent, but not printed, and they are
//! masked wherever else they would appear.

use std::borrow::Cow;
use std::fmt;

/// What stands in place of a secret wherever it would have appeared.
pub const MASK: &str = "[api key]";

/// Shorter keys are placeholders ("none", "EMPTY", "ollama") for servers that check no key. Masking
/// such a word would garble every text that it happens to stand in.
const MASKED_MIN: usize = 8;

/// Longer words that the documentation of servers gives as keys where none is checked.
const PLACEHOLDERS: [&str; 6] = [
    "lm-studio",
    "no-key-required",
    "not-needed",
    "placeholder",
    "sk-no-key-required",
    "your-api-key",
];

/// A key or password that neither `Debug` nor `Display` shows.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Takes a key as it came from a flag, a variable or a file; surrounding white space is
    /// dropped. A key of nothing but white space is no key.
    ///
    /// # Errors
    ///
    /// A control or non-ASCII character inside, which no HTTP header can carry. The message tells
    /// its place and kind, not the key.
    pub fn parse(text: &str) -> Result<Option<Secret>, String> {
        let key = text.trim();
        if let Some((index, bad)) =
            key.chars().enumerate().find(|(_, c)| !c.is_ascii() || c.is_ascii_control())
        {
            let kind = if bad.is_ascii() { "a control character" } else { "not ASCII" };
            return Err(format!(
                "character {} of the key is {kind} (U+{:04X}); a key is one line of printable \
                 ASCII characters",
                index + 1,
                u32::from(bad)
            ));
        }
        Ok((!key.is_empty()).then(|| Secret(key.to_owned())))
    }

    /// The secret itself, for the one place that sends it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// Secrets to be masked, in plain and as they are spelled inside a JSON string.
///
/// Placeholders are left alone: keys of fewer than 8 characters, and the few words that servers
/// give as keys in their documentation.
#[derive(Clone, Default)]
pub struct Mask(Vec<String>);

impl Mask {
    /// Masks these.
    pub fn new(secrets: impl IntoIterator<Item = Secret>) -> Mask {
        let mut mask = Mask::default();
        mask.extend(secrets);
        mask
    }

    /// Masks these too.
    pub fn extend(&mut self, secrets: impl IntoIterator<Item = Secret>) {
        for Secret(secret) in secrets {
            if secret.len() < MASKED_MIN || PLACEHOLDERS.contains(&secret.as_str()) {
                continue;
            }
            let quoted = serde_json::to_string(&secret).unwrap_or_default();
            let spelled = quoted.get(1..quoted.len().saturating_sub(1)).unwrap_or_default();
            if !spelled.is_empty() && spelled != secret {
                self.0.push(spelled.to_owned());
            }
            self.0.push(secret);
        }
        // One that contains another goes first, so that nothing of it is left standing.
        self.0.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        self.0.dedup();
    }

    /// `text` with [`MASK`] in place of every secret.
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut text = Cow::Borrowed(text);
        for secret in &self.0 {
            if text.contains(secret) {
                text = Cow::Owned(text.replace(secret, MASK));
            }
        }
        text
    }

    /// `bytes` with [`MASK`] in place of every secret; they need not be UTF-8.
    pub fn bytes(&self, bytes: Vec<u8>) -> Vec<u8> {
        let Ok(text) = std::str::from_utf8(&bytes) else {
            // A secret is ASCII, so bytes that are not UTF-8 never stand in the middle of one.
            let mut masked = Vec::with_capacity(bytes.len());
            for chunk in bytes.utf8_chunks() {
                masked.extend_from_slice(self.text(chunk.valid()).as_bytes());
                masked.extend_from_slice(chunk.invalid());
            }
            return masked;
        };
        match self.text(text) {
            Cow::Owned(text) => text.into_bytes(),
            Cow::Borrowed(_) => bytes,
        }
    }

    /// How many bytes at the end of a text may be the start of a secret that goes on behind them.
    /// Who cuts there drops them, so that no piece of a secret passes for something else.
    pub fn open_end(&self, text: &[u8]) -> usize {
        self.longest(|secret, length| text.ends_with(&secret[..length]))
    }

    /// How many bytes at the start of a text may be the end of a secret that began before them.
    pub fn open_start(&self, text: &[u8]) -> usize {
        self.longest(|secret, length| text.starts_with(&secret[secret.len() - length..]))
    }

    /// The longest piece of any secret that `is_piece`, which is given the secret and a length.
    fn longest(&self, is_piece: impl Fn(&[u8], usize) -> bool) -> usize {
        let of_one = |secret: &String| {
            (1..secret.len()).rev().find(|&length| is_piece(secret.as_bytes(), length))
        };
        self.0.iter().filter_map(of_one).max().unwrap_or_default()
    }
}

impl fmt::Debug for Mask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Mask({} secrets)", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mask(keys: &[&str]) -> Mask {
        Mask::new(keys.iter().filter_map(|key| Secret::parse(key).unwrap()))
    }

    #[track_caller]
    fn check(keys: &[&str], body: &[u8], expected: &[u8]) {
        let masked = mask(keys).bytes(body.to_vec());
        assert_eq!(masked.escape_ascii().to_string(), expected.escape_ascii().to_string());
    }

    #[test]
    fn a_key_is_masked_however_it_is_spelled() {
        check(&["sk-TESTKEY-1"], b"a sk-TESTKEY-1 b sk-TESTKEY-1", b"a [api key] b [api key]");
        check(&["sk-TEST\"KEY\\1"], br#"{"a":"sk-TEST\"KEY\\1"}"#, br#"{"a":"[api key]"}"#);
        check(&["sk-TEST\"KEY\\1"], br#"sk-TEST"KEY\1"#, b"[api key]");
        check(&["sk-TESTKEY-1"], b"\xff sk-TESTKEY-1\xff", b"\xff [api key]\xff");
        check(&["sk-TESTKEY", "sk-TESTKEY-1"], b"sk-TESTKEY-1", b"[api key]");
        check(&[], b"a sk-TESTKEY-1 b", b"a sk-TESTKEY-1 b");
    }

    #[test]
    fn a_piece_of_a_key_is_known_at_a_cut() {
        let mask = mask(&["sk-TESTKEY-1", "key-of-another"]);
        assert_eq!(mask.open_end(b"a sk-TEST"), 7);
        assert_eq!(mask.open_end(b"sk-TESTKEY"), 10);
        assert_eq!(mask.open_end(b"a sk-TESTKEY-1"), 0);
        assert_eq!(mask.open_start(b"TKEY-1 b"), 6);
        assert_eq!(mask.open_start(b"her sk-TESTKEY-1"), 3);
        assert_eq!(mask.open_start(b""), 0);
        assert_eq!(Mask::default().open_end(b"a sk-TEST"), 0);
    }

    #[test]
    fn a_placeholder_is_not_masked() {
        let placeholders = ["ollama", "lm-studio", "EMPTY"];
        assert_eq!(
            mask(&placeholders).text("install ollama or lm-studio"),
            "install ollama or lm-studio"
        );
    }

    #[test]
    fn a_key_is_not_shown() {
        let secret = Secret::parse(" sk-TESTKEY-1\n").unwrap().unwrap();
        assert_eq!(secret.expose(), "sk-TESTKEY-1");
        assert_eq!(
            format!("{secret:?} {:?}", mask(&["sk-TESTKEY-1"])),
            "Secret(..) Mask(1 secrets)"
        );
    }

    #[test]
    fn a_key_that_no_header_can_carry_is_refused_without_showing_it() {
        for (text, place) in [
            ("sk-ab\ncd", "character 6 of the key is a control character (U+000A)"),
            ("sk-\u{200b}cd", "character 4 of the key is not ASCII (U+200B)"),
        ] {
            let message = Secret::parse(text).unwrap_err();
            assert!(message.starts_with(place), "{message}");
            assert!(!message.contains("sk-"), "{message}");
        }
        assert_eq!(Secret::parse(" \n"), Ok(None));
    }
}

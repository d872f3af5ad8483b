//! What must not get out: keys and passwords. They can be sent, but not printed, and they are
//! masked wherever else they would appear.

mod scan;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use crate::text::Lossy;
use scan::{Findings, Found, Tree};

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

/// A text that must not get out, and what stands in its place.
#[derive(Clone, PartialEq, Eq)]
pub struct Hidden {
    text: String,
    label: String,
}

impl Hidden {
    /// A key or password, which [`MASK`] stands for; none where it is a placeholder: a key of
    /// fewer than 8 characters, or one of the words that servers give as keys in their
    /// documentation.
    pub fn key(text: &str) -> Option<Hidden> {
        let is_key = text.chars().count() >= MASKED_MIN && !is_placeholder(text);
        is_key.then(|| Hidden { text: text.to_owned(), label: MASK.to_owned() })
    }

    /// The value of a variable, which its name in brackets stands for. Of several lines, each that
    /// is long enough is hidden too, for they may be shown one by one.
    pub fn variable(name: &str, value: &str) -> Vec<Hidden> {
        let is_plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        let label = if is_plain { format!("[{name}]") } else { "[secret]".to_owned() };
        let lines = value.lines().map(str::trim).filter(|line| {
            // The first and the last line of a PEM block are the same for everybody.
            line.chars().count() >= MASKED_MIN && !line.starts_with("-----")
        });
        let lines = lines.filter(|line| line.len() < value.len());
        let all = std::iter::once(value).chain(lines);
        all.map(|text| Hidden { text: text.to_owned(), label: label.clone() }).collect()
    }
}

impl fmt::Debug for Hidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Hidden({})", self.label)
    }
}

/// Whether a name, of a header or in the query of a URL, says that the value is secret.
pub(crate) fn is_secret_name(name: &str) -> bool {
    const WORDS: [&str; 10] = [
        "password",
        "credential",
        "signature",
        "auth",
        "token",
        "secret",
        "key",
        "session",
        "cookie",
        "sig",
    ];
    let name = name.to_ascii_lowercase();
    WORDS.iter().any(|word| name.contains(word))
}

/// Whether a key is one of those that stand where no key is checked.
pub(crate) fn is_placeholder(text: &str) -> bool {
    let mut bytes = text.bytes();
    let first = bytes.next();
    PLACEHOLDERS.iter().any(|word| word.eq_ignore_ascii_case(text))
        || bytes.all(|byte| Some(byte) == first && !byte.is_ascii_digit())
}

/// Secrets to be masked, however they are spelled: as they are, or with the escapes of JSON or of
/// a URL.
///
/// It is made once and never changes; a clone is the same one.
#[derive(Clone, Default)]
pub struct Mask(Option<Arc<Secrets>>);

struct Secrets {
    tree: Tree,
    all: Vec<String>,
    labels: Vec<String>,
    names: &'static [&'static str],
}

/// Words of the protocol that an endpoint may say, beside the names of tools.
const WORDS: [&str; 6] =
    ["stop", "length", "max_tokens", "tool_calls", "function_call", "content_filter"];

/// The end of a text that comes piece by piece, as far as it may be the start of a secret.
#[derive(Debug, Default)]
pub struct Held {
    text: String,
    /// How much of it is masked already.
    covered: usize,
}

impl Mask {
    /// Masks these. Of two that are the same, the first gives the label.
    pub fn new<S: Into<Option<Hidden>>>(secrets: impl IntoIterator<Item = S>) -> Mask {
        let (mut all, mut labels, mut label_of) = (Vec::new(), Vec::<String>::new(), Vec::new());
        for Hidden { text, label } in secrets.into_iter().filter_map(Into::into) {
            if text.is_empty() {
                continue;
            }
            let known = labels.iter().position(|known| *known == label);
            label_of.push(known.unwrap_or(labels.len()));
            if known.is_none() {
                labels.push(label);
            }
            all.push(text);
        }
        if all.is_empty() {
            return Mask::default();
        }
        let tree = Tree::new(all.iter().map(String::as_str).zip(label_of.iter().copied()));
        Mask(Some(Arc::new(Secrets { tree, all, labels, names: &[] })))
    }

    /// Leaves these names of tools whole wherever [`Mask::name`] is asked.
    #[must_use]
    pub fn with_names(self, names: &'static [&'static str]) -> Mask {
        let named = |secrets| Arc::new(Secrets { names, ..secrets });
        Mask(self.0.and_then(Arc::into_inner).map(named))
    }

    /// Whether nothing is masked.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// `text` with its label in place of every secret.
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match self.replaced(text.as_bytes()) {
            Some(masked) => Cow::Owned(into_text(masked)),
            None => Cow::Borrowed(text),
        }
    }

    /// A name of a tool or a word of the protocol, which stays what it is, or else masked text.
    pub fn name<'a>(&self, name: &'a str) -> Cow<'a, str> {
        match &self.0 {
            Some(secrets) if !secrets.names.contains(&name) && !WORDS.contains(&name) => {
                self.text(name)
            }
            _ => Cow::Borrowed(name),
        }
    }

    /// `bytes` with its label in place of every secret; they need not be UTF-8.
    pub fn bytes(&self, bytes: Vec<u8>) -> Vec<u8> {
        self.replaced(&bytes).unwrap_or(bytes)
    }

    fn replaced(&self, text: &[u8]) -> Option<Vec<u8>> {
        let secrets = self.0.as_ref()?;
        let Findings { found, .. } = secrets.tree.find(text);
        (!found.is_empty()).then(|| secrets.put(&found, text, 0, text.len()))
    }

    /// The start of a text that goes on behind `bytes`: masked, and without what may be the start
    /// of a secret, so that no piece of one passes for something else.
    pub fn start(&self, bytes: Vec<u8>) -> Vec<u8> {
        let Some(secrets) = &self.0 else { return bytes };
        let Findings { found, open } = secrets.tree.find(&bytes);
        secrets.put(&found, &bytes, 0, open)
    }

    /// How many bytes at the start of a text may be the end of a secret that began before them.
    pub fn open_start(&self, text: &[u8]) -> usize {
        let all = self.0.iter().flat_map(|secrets| &secrets.all);
        all.map(|secret| end_at_start(secret.as_bytes(), text)).max().unwrap_or_default()
    }

    /// Masks the next piece of a text, and holds back what may be the start of a secret until more
    /// is known.
    pub fn piece(&self, held: &mut Held, piece: &str) -> String {
        let Held { mut text, covered } = std::mem::take(held);
        text.push_str(piece);
        let Some(secrets) = &self.0 else { return text };
        let Findings { found, open } = secrets.tree.find(text.as_bytes());
        let masked = secrets.put(&found, text.as_bytes(), covered, open);
        let end = found.iter().take_while(|found| found.start < open.max(covered));
        let end = end.map(|found| found.end).max().unwrap_or_default().max(covered);
        *held = Held { covered: end.saturating_sub(open), text: text.split_off(open) };
        into_text(masked)
    }

    /// What was held back, now that nothing follows.
    pub fn last(&self, held: Held) -> String {
        let Some(secrets) = &self.0 else { return held.text };
        let Findings { found, .. } = secrets.tree.find(held.text.as_bytes());
        into_text(secrets.put(&found, held.text.as_bytes(), held.covered, held.text.len()))
    }

    /// Whether a label stands in `text`.
    pub fn has_label(&self, text: &str) -> bool {
        let mut labels = self.0.iter().flat_map(|secrets| &secrets.labels);
        labels.any(|label| text.contains(label.as_str()))
    }

    /// A label that stands in `text` for a secret that `bytes` holds.
    pub fn standing_in(&self, text: &str, bytes: &[u8]) -> Option<&str> {
        let secrets = self.0.as_ref()?;
        if !self.has_label(text) {
            return None;
        }
        let is_in = |label: &&String| text.contains(label.as_str());
        let Findings { found, .. } = secrets.tree.find(bytes);
        let mut labels = found.iter().map(|found| &secrets.labels[found.label]);
        labels.find(is_in).map(String::as_str)
    }
}

impl Secrets {
    /// `text` up to `end`, masked. The first bytes, `covered` of them, are masked already, and so
    /// is what overlaps them.
    fn put(&self, found: &[Found], text: &[u8], covered: usize, end: usize) -> Vec<u8> {
        let mut masked = Vec::with_capacity(end);
        let mut done = covered;
        for found in found.iter().take_while(|found| found.start < end.max(covered)) {
            if found.start >= done {
                masked.extend_from_slice(&text[done..found.start]);
                masked.extend_from_slice(self.labels[found.label].as_bytes());
            }
            done = done.max(found.end);
        }
        if done < end {
            masked.extend_from_slice(&text[done..end]);
        }
        masked
    }
}

/// The longest start of `text` that a secret ends in, without being all of it.
fn end_at_start(secret: &[u8], text: &[u8]) -> usize {
    let start = &text[..text.len().min(secret.len().saturating_sub(1))];
    let mut borders = vec![0; start.len() + 1];
    let mut length = 0;
    for index in 1..start.len() {
        while length > 0 && start[index] != start[length] {
            length = borders[length];
        }
        length += usize::from(start[index] == start[length]);
        borders[index + 1] = length;
    }
    length = 0;
    for byte in secret.iter().skip(1) {
        while length > 0 && start.get(length) != Some(byte) {
            length = borders[length];
        }
        length += usize::from(start.get(length) == Some(byte));
    }
    length
}

/// A secret begins and ends between characters, so this is always UTF-8.
fn into_text(masked: Vec<u8>) -> String {
    String::from_utf8(masked).unwrap_or_else(|error| Lossy::new(error.as_bytes()).text.into_owned())
}

impl From<Secret> for Option<Hidden> {
    fn from(secret: Secret) -> Option<Hidden> {
        Hidden::key(secret.expose())
    }
}

impl fmt::Debug for Mask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Mask({} secrets)", self.0.as_ref().map_or(0, |secrets| secrets.all.len()))
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
        let start = |text: &str| String::from_utf8(mask.start(text.into())).unwrap();
        assert_eq!(start("a sk-TEST"), "a ");
        assert_eq!(start("sk-TESTKEY"), "");
        assert_eq!(start("a sk-TESTKEY-1"), "a [api key]");
        assert_eq!(start("sk-TESTKEY-1, sk-TESTKEY"), "[api key], ");
        assert_eq!(mask.open_start(b"TKEY-1 b"), 6);
        assert_eq!(mask.open_start(b"her sk-TESTKEY-1"), 3);
        assert_eq!(mask.open_start(b"sk-TESTKEY-1"), 0);
        assert_eq!(mask.open_start(b""), 0);
        assert_eq!(Mask::default().start(b"a sk-TEST".to_vec()), b"a sk-TEST");
    }

    /// Two keys of which one begins the other, one that overlaps, and one whose end is its start.
    #[test]
    fn pieces_are_masked_as_the_whole_is_wherever_they_are_cut() {
        let keys = ["sk-TESTKEY", "sk-TESTKEY-1\\\"x", "KEY-1\\zzz", "abababab"];
        let mask = mask(&keys);
        for text in [
            "a sk-TESTKEY b sk-TESTKEY-1\\\"x sk-TESTKEY-1\\zzz.",
            "sk-TESTKEYsk-TESTKEY-1\\",
            "abababababababab abababa %73k-TESTKEY \\u0073k-TESTKE\\u0059",
            "sk-TESTK",
        ] {
            let whole = mask.text(text);
            for first in 0..=text.len() {
                for second in first..=text.len() {
                    let mut held = Held::default();
                    let mut masked = String::new();
                    for piece in [&text[..first], &text[first..second], &text[second..]] {
                        masked += &mask.piece(&mut held, piece);
                    }
                    assert_eq!(masked + &mask.last(held), whole, "{first} {second}");
                }
            }
        }
    }

    #[test]
    fn a_variable_is_masked_by_its_name_and_so_is_each_line_of_it() {
        let pem = "-----BEGIN KEY-----\nMIIEvQIBADANBg\nshort\n-----END KEY-----";
        let mut secrets = Hidden::variable("DEPLOY_KEY", pem);
        secrets.extend(Hidden::variable("\u{e9}_TOKEN", "ghp_abcdefgh"));
        let mask = Mask::new(secrets.into_iter().map(Some));
        assert_eq!(mask.text(&format!("a {pem}.")), "a [DEPLOY_KEY].");
        assert_eq!(
            mask.text("-----BEGIN KEY-----\r\nMIIEvQIBADANBg\r\n"),
            "-----BEGIN KEY-----\r\n[DEPLOY_KEY]\r\n"
        );
        assert_eq!(mask.text("ghp_abcdefgh"), "[secret]");
        assert_eq!(mask.standing_in("a [secret]", b"ghp_abcdefgh"), Some("[secret]"));
        assert_eq!(mask.standing_in("a [DEPLOY_KEY]", b"ghp_abcdefgh"), None);
        assert_eq!(mask.standing_in("a", b"ghp_abcdefgh"), None);
    }

    #[test]
    fn a_name_of_ours_is_left_alone_where_it_is_all_there_is() {
        let mask = mask(&["read_file", "tool_calls"]).with_names(&["read_file"]);
        for name in ["read_file", "tool_calls"] {
            assert_eq!(mask.name(name), name);
            assert_eq!(mask.name(&format!("{name}s")), "[api key]s");
            assert_eq!(mask.text(name), "[api key]");
        }
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

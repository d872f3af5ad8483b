//! Arguments in tags.

use std::borrow::Cow;

use super::shape::{self, Call};

/// Members of an object, read from tags.
#[derive(Default)]
pub(super) struct Members {
    object: serde_json::Map<String, serde_json::Value>,
    /// A name stands twice, or a value is not what it says it is.
    is_odd: bool,
}

impl Members {
    /// Adds a value, without the line breaks that set it apart from its tags.
    pub(super) fn add(&mut self, key: &str, value: &str, is_json: bool) {
        let value = value.strip_prefix('\n').unwrap_or(value);
        let value = value.strip_suffix('\n').unwrap_or(value);
        let read = if is_json { serde_json::from_str(value).ok() } else { Some(value.into()) };
        let Some(read) = read else {
            self.is_odd = true;
            return;
        };
        self.is_odd |= self.object.insert(key.trim().to_owned(), read).is_some();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.object.is_empty()
    }

    pub(super) fn object(self) -> Option<String> {
        (!self.is_odd).then(|| serde_json::Value::Object(self.object).to_string())
    }
}

/// The arguments in tags such as `<parameter=KEY>` or `<parameter name="KEY">`, where the text is
/// whole and nothing else.
pub(super) fn parameters(text: &str, tag: &str) -> Option<String> {
    let mut members = Members::default();
    let mut rest = text.trim();
    let closing = format!("</{tag}>");
    while !rest.is_empty() {
        let (attributes, behind) = rest.strip_prefix('<')?.strip_prefix(tag)?.split_once('>')?;
        let (value, behind) = behind.split_once(&closing)?;
        let key = match attributes.strip_prefix('=') {
            Some(key) => key.trim_matches(['"', '\'']),
            None => attributes.trim_start().strip_prefix("name=\"")?.split('"').next()?,
        };
        members.add(key, value, attributes.contains("string=\"false\""));
        rest = behind.trim_start();
    }
    members.object()
}

/// The arguments in pairs of `<arg_key>` and `<arg_value>`, where there are any: none inside where
/// the text is not whole.
pub(super) fn keyed(text: &str) -> Option<Option<String>> {
    let prefix = if text.starts_with("<longcat_arg_key>") { "longcat_" } else { "" };
    let tags = |name: &str| (format!("<{prefix}{name}>"), format!("</{prefix}{name}>"));
    let (key, value) = (tags("arg_key"), tags("arg_value"));
    if !text.starts_with(&key.0) {
        return None;
    }
    let mut members = Members::default();
    let mut rest = text.trim_end();
    while !rest.is_empty() {
        let pair = || {
            let (name, behind) = rest.strip_prefix(&key.0)?.split_once(&key.1)?;
            let (text, behind) =
                behind.trim_start().strip_prefix(&value.0)?.split_once(&value.1)?;
            Some((name, text, behind))
        };
        let Some((name, text, behind)) = pair() else { return Some(None) };
        members.add(name, text, false);
        rest = behind.trim_start();
    }
    Some(members.object())
}

/// The tags in which a name stands.
pub(super) const NAMES: &[&str] = &["<name>", "<tool_name>"];

/// Reads `NAME</name><arguments>{...}</arguments>`.
pub(super) fn children(text: &str) -> Option<Call<'_>> {
    let (tool, rest) = text.split_once('<')?;
    let object = rest.find('{').map(|index| &rest[index..]);
    let length = object.and_then(shape::object);
    let arguments = object.zip(length).map(|(text, length)| Cow::Borrowed(&text[..length]));
    Some((Cow::Borrowed(tool), arguments))
}

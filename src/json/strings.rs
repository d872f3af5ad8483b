//! The strings of a JSON text, changed one by one: everything else stays byte for byte.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::{Fields, Json};

/// A string that is a value, and not the name of a member.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JsonString<'a> {
    /// Where its first quote stands.
    pub(crate) place: usize,
    /// The name of the member that it is the value of, with its escapes; empty in a list.
    pub(crate) member: &'a str,
    /// What it says, decoded.
    pub(crate) text: &'a str,
}

/// `json` with what `change` makes of its strings, in one pass and without a tree. `json` is
/// valid. A string that stays the same keeps its spelling.
pub(crate) fn map_strings<'a>(
    json: &'a str,
    change: &mut dyn FnMut(JsonString<'_>) -> Option<String>,
) -> Cow<'a, str> {
    let mut changed = String::new();
    let mut copied = 0;
    let (mut place, mut member) = (0, "");
    while let Some(found) = json[place..].find(['"', '[', ',']) {
        let start = place + found;
        place = start + 1;
        if !json[start..].starts_with('"') {
            // What follows is the next of a list, or a member that has a name of its own.
            member = "";
            continue;
        }
        let end = end_of_string(json, place);
        let inner = &json[place..end];
        place = (end + 1).min(json.len());
        if json[place..].trim_start().starts_with(':') {
            member = inner;
            continue;
        }
        let text = decoded(inner);
        if let Some(new) = change(JsonString { place: start, member, text: &text }) {
            changed.push_str(&json[copied..start]);
            changed.push_str(&serde_json::Value::String(new).to_string());
            copied = place;
        }
    }
    if copied == 0 {
        return Cow::Borrowed(json);
    }
    changed.push_str(&json[copied..]);
    Cow::Owned(changed)
}

/// Where the closing quote of the string that begins at `start` stands.
fn end_of_string(json: &str, start: usize) -> usize {
    let mut place = start;
    while let Some(found) = json[place..].find(['"', '\\']) {
        place += found;
        if json[place..].starts_with('"') {
            return place;
        }
        // What is escaped may be a quote; it is ASCII in valid JSON.
        place = json.ceil_char_boundary((place + 2).min(json.len()));
    }
    json.len()
}

/// What a string says. Half a surrogate pair is valid to the grammar and says nothing.
fn decoded(inner: &str) -> Cow<'_, str> {
    if !inner.contains('\\') {
        return Cow::Borrowed(inner);
    }
    let parse = |inner: &str| serde_json::from_str::<String>(&format!("\"{inner}\""));
    Cow::Owned(parse(inner).unwrap_or_else(|_| {
        let mut whole = String::with_capacity(inner.len());
        let mut rest = inner;
        while let Some(start) = rest.find('\\') {
            let end = rest.ceil_char_boundary((start + 2).min(rest.len()));
            let digits = rest.get(start + 2..start + 6).unwrap_or_default();
            let is_surrogate = rest[start..end].ends_with('u')
                && u16::from_str_radix(digits, 16).is_ok_and(|unit| unit >> 11 == 0x1b);
            whole.push_str(&rest[..start]);
            if is_surrogate {
                whole.push(char::REPLACEMENT_CHARACTER);
                rest = &rest[start + 6..];
            } else {
                whole.push_str(&rest[start..end]);
                rest = &rest[end..];
            }
        }
        whole.push_str(rest);
        parse(&whole).unwrap_or(whole)
    }))
}

impl Json {
    /// The same value with other strings.
    pub(crate) fn map_strings(&mut self, change: &mut dyn FnMut(JsonString<'_>) -> Option<String>) {
        if let Cow::Owned(changed) = map_strings(self.as_str(), change)
            && let Ok(raw) = RawValue::from_string(changed)
        {
            *self = Json(raw);
        }
    }
}

impl Fields {
    /// The same members with other strings in their values.
    pub(crate) fn map_strings(&mut self, change: &mut dyn FnMut(JsonString<'_>) -> Option<String>) {
        for (name, value) in &mut self.0 {
            let name = &*name;
            value.map_strings(&mut |string| {
                // A value that is a string itself belongs to the member.
                let member = if string.place == 0 { name.as_str() } else { string.member };
                change(JsonString { member, ..string })
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_strings_change_and_the_rest_stays_byte_for_byte() {
        let json =
            concat!(r#"{ "a" : ["a", "\u0061",1.50e1,"b\n\/"],"#, r#""a\"" :{"b":"a"},"a":""}"#);
        let mut seen = Vec::new();
        let changed = map_strings(json, &mut |string| {
            seen.push((string.member.to_owned(), string.text.to_owned()));
            (string.text == "a").then(|| "\"x\"".to_owned())
        });
        let expected = "{ \"a\" : [\"\\\"x\\\"\", \"\\\"x\\\"\",1.50e1,\"b\\n\\/\"],\"a\\\"\" \
                        :{\"b\":\"\\\"x\\\"\"},\"a\":\"\"}";
        assert_eq!(changed, expected);
        let seen: Vec<_> = seen.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
        assert_eq!(seen, [("", "a"), ("", "a"), ("", "b\n/"), ("b", "a"), ("a", "")]);
        assert!(matches!(map_strings(json, &mut |_| None), Cow::Borrowed(_)));
    }

    #[test]
    fn half_a_surrogate_pair_hides_nothing() {
        let json = r#"["\ud800 \\ud800 \ud83d\u0061 key \"", "\\"]"#;
        let mut seen = Vec::new();
        let _ = map_strings(json, &mut |string| {
            seen.push(string.text.to_owned());
            None
        });
        assert_eq!(seen, ["\u{fffd} \\ud800 \u{fffd}a key \"", "\\"]);
    }
}

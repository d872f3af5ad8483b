//! JSON objects for machines: one on a line, nothing but ASCII.
//!
//! Line readers disagree about U+2028 and the like, and not every pipeline is UTF-8: so whatever is
//! not ASCII goes out as `\u` escapes. No secret gets out: it is masked when the object becomes a
//! line.

use std::borrow::Cow;
use std::fmt::Write as _;

use serde::Serialize;

use crate::secret::Mask;

/// An object, member by member, in this order.
pub(super) struct Object(String);

impl Object {
    /// Without members so far.
    pub(super) fn new() -> Object {
        Object("{".to_owned())
    }

    /// Adds a member.
    pub(super) fn with(mut self, name: &str, value: impl Serialize) -> Object {
        self.name(name);
        // Strings, numbers and lists of them always serialize.
        let value = serde_json::to_string(&value).unwrap_or_else(|_| "null".to_owned());
        self.0.push_str(&value);
        self
    }

    /// Adds a member that is an object itself, or null.
    pub(super) fn with_object(mut self, name: &str, object: Option<Object>) -> Object {
        self.name(name);
        self.0.push_str(&object.map_or_else(|| "null".to_owned(), Object::finish));
        self
    }

    /// Adds a member that is a list of objects.
    pub(super) fn with_objects(mut self, name: &str, objects: Vec<Object>) -> Object {
        self.name(name);
        let objects: Vec<String> = objects.into_iter().map(Object::finish).collect();
        self.0.push('[');
        self.0.push_str(&objects.join(","));
        self.0.push(']');
        self
    }

    /// Adds the members of another one.
    pub(super) fn followed_by(mut self, other: Object) -> Object {
        let members = &other.0[1..];
        if self.0.len() > 1 && !members.is_empty() {
            self.0.push(',');
        }
        self.0.push_str(members);
        self
    }

    fn name(&mut self, name: &str) {
        if self.0.len() > 1 {
            self.0.push(',');
        }
        self.0.push('"');
        self.0.push_str(name);
        self.0.push_str("\":");
    }

    fn finish(mut self) -> String {
        self.0.push('}');
        self.0
    }

    /// The whole object as a line, with the secrets masked in all of its strings.
    pub(super) fn into_line(self, mask: &Mask) -> String {
        let mut line = ascii(&masked(&self.finish(), mask));
        line.push('\n');
        line
    }
}

/// The same JSON, masked. Each string is for itself, so that a number stays one that is spelled
/// like a secret, and a secret is known however it is escaped.
fn masked(json: &str, mask: &Mask) -> String {
    let mut masked = String::with_capacity(json.len());
    let mut rest = json;
    while let Some(start) = rest.find('"') {
        let mut strings = serde_json::Deserializer::from_str(&rest[start..]).into_iter::<String>();
        // There always is one: a quote outside of a string begins the next.
        let Some(Ok(text)) = strings.next() else { break };
        let end = start + strings.byte_offset();
        match mask.text(&text) {
            Cow::Borrowed(_) => masked.push_str(&rest[..end]),
            Cow::Owned(text) => {
                masked.push_str(&rest[..start]);
                masked.push_str(&serde_json::to_string(&text).unwrap_or_default());
            }
        }
        rest = &rest[end..];
    }
    masked.push_str(rest);
    masked
}

/// The same JSON in ASCII. What is not ASCII stands in strings, where an escape means the same.
fn ascii(json: &str) -> String {
    let mut ascii = String::with_capacity(json.len());
    for character in json.chars() {
        if character.is_ascii() && character != '\u{7f}' {
            ascii.push(character);
            continue;
        }
        for unit in character.encode_utf16(&mut [0; 2]) {
            // Writing to a String can't fail.
            let _ = write!(ascii, "\\u{unit:04x}");
        }
    }
    ascii
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::Secret;

    #[test]
    fn an_object_is_one_line_of_ascii_and_means_the_same() {
        let odd = "a\u{2028}b\n\u{e9}\u{1f600}\u{7f}\"\\\0";
        let object = Object::new()
            .with("text", odd)
            .with("none", None::<u32>)
            .with("list", [1, 2])
            .with_object("inner", Some(Object::new().with("\u{e9}", 1)))
            .with_object("empty", Some(Object::new()))
            .with_object("absent", None)
            .with_objects("all", vec![Object::new(), Object::new().with("x", true)])
            .followed_by(Object::new())
            .followed_by(Object::new().with("last", "1"));
        let line = object.into_line(&Mask::default());
        assert!(line.is_ascii() && line.ends_with("}\n"), "{line}");
        assert_eq!(line.matches(|c: char| c.is_ascii_control()).count(), 1, "{line}");
        let value: serde_json::Value = serde_json::from_str(&line).unwrap();
        let expected = serde_json::json!({
            "text": odd,
            "none": null,
            "list": [1, 2],
            "inner": {"\u{e9}": 1},
            "empty": {},
            "absent": null,
            "all": [{}, {"x": true}],
            "last": "1",
        });
        assert_eq!(value, expected);
    }

    #[test]
    fn a_secret_is_masked_in_every_string_and_nowhere_else() {
        let secrets = ["a\"secret\\", "12345678"].map(|key| Secret::parse(key).unwrap().unwrap());
        let inner = serde_json::json!({"command": "a\"secret\\"}).to_string();
        let object = Object::new()
            .with("text", "\u{e9}\n a\"secret\\, 12345678")
            .with("quoted", &inner)
            .with("number", 12_345_678)
            .with("list", ["a\"secret\\", "\\", ""])
            .with_objects("all", vec![Object::new().with("x", "a\"secret\\")]);
        let line = object.into_line(&Mask::new(secrets));
        let value: serde_json::Value = serde_json::from_str(&line).unwrap();
        let expected = serde_json::json!({
            "text": "\u{e9}\n [api key], [api key]",
            "quoted": "{\"command\":\"[api key]\"}",
            "number": 12_345_678,
            "list": ["[api key]", "\\", ""],
            "all": [{"x": "[api key]"}],
        });
        assert_eq!(value, expected);
    }
}

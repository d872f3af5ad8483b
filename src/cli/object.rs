//! JSON objects for machines: one on a line, nothing but ASCII.
//!
//! Line readers disagree about U+2028 and the like, and not every pipeline is UTF-8: so whatever is
//! not ASCII goes out as `\u` escapes. No secret gets out: it is masked when the object becomes a
//! line.

use std::borrow::Cow;
use std::fmt::Write as _;

use serde::Serialize;

use crate::json::map_strings;
use crate::secret::Mask;

/// An object, member by member, in this order.
pub(super) struct Object {
    text: String,
    /// Where the words of ours stand, which are never masked.
    words: Vec<usize>,
}

impl Object {
    /// Without members so far.
    pub(super) fn new() -> Object {
        Object { text: "{".to_owned(), words: Vec::new() }
    }

    /// Adds a member.
    pub(super) fn with(mut self, name: &str, value: impl Serialize) -> Object {
        self.name(name);
        // Strings, numbers and lists of them always serialize.
        let value = serde_json::to_string(&value).unwrap_or_else(|_| "null".to_owned());
        self.text.push_str(&value);
        self
    }

    /// Adds a member that is a word of ours: an outcome, a type, a time.
    pub(super) fn with_word(mut self, name: &str, word: Option<&str>) -> Object {
        let separator = usize::from(self.text.len() > 1);
        self.words.push(self.text.len() + separator + name.len() + "\"\":".len());
        self.with(name, word)
    }

    /// Adds a member that is an object itself, or null.
    pub(super) fn with_object(mut self, name: &str, object: Option<Object>) -> Object {
        self.name(name);
        match object {
            Some(object) => self.push(&object.finish(), 0),
            None => self.text.push_str("null"),
        }
        self
    }

    /// Adds a member that is a list of objects.
    pub(super) fn with_objects(mut self, name: &str, objects: Vec<Object>) -> Object {
        self.name(name);
        self.text.push('[');
        for (index, object) in objects.into_iter().enumerate() {
            if index > 0 {
                self.text.push(',');
            }
            self.push(&object.finish(), 0);
        }
        self.text.push(']');
        self
    }

    /// Adds the members of another one.
    pub(super) fn followed_by(mut self, other: Object) -> Object {
        if self.text.len() > 1 && other.text.len() > 1 {
            self.text.push(',');
        }
        self.push(&other, 1);
        self
    }

    /// Adds what stands in another one from this place on.
    fn push(&mut self, other: &Object, from: usize) {
        let here = self.text.len();
        self.words.extend(other.words.iter().map(|place| place + here - from));
        self.text.push_str(&other.text[from..]);
    }

    fn name(&mut self, name: &str) {
        if self.text.len() > 1 {
            self.text.push(',');
        }
        self.text.push('"');
        self.text.push_str(name);
        self.text.push_str("\":");
    }

    fn finish(mut self) -> Object {
        self.text.push('}');
        self
    }

    /// The whole object as a line, with the secrets masked in all of its strings but for words.
    pub(super) fn into_line(self, mask: &Mask) -> String {
        let Object { text, words } = self.finish();
        let masked = map_strings(&text, &mut |string| {
            let is_word = words.binary_search(&string.place).is_ok();
            let masked = if is_word { Cow::Borrowed(string.text) } else { mask.text(string.text) };
            matches!(masked, Cow::Owned(_)).then(|| masked.into_owned())
        });
        let mut line = ascii(&masked);
        line.push('\n');
        line
    }
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

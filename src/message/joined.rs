//! Several contents as one.

use serde_json::Value;
use serde_json::value::RawValue;

use super::Content;
use crate::json::Json;

impl Content {
    /// The contents one behind the other: texts with a blank line between them, and a list of parts
    /// as soon as one of them is a list. What is empty leaves no trace.
    pub(crate) fn joined(contents: &[&Content]) -> Content {
        let texts = contents.iter().map(|content| content.text.as_str());
        let texts: Vec<&str> = texts.filter(|text| !text.is_empty()).collect();
        let has_parts = contents.iter().any(|content| content.parts.is_some());
        Content {
            text: texts.join("\n\n"),
            refusal: None,
            parts: has_parts.then(|| joined_parts(contents)),
        }
    }

    /// The elements of the list that it is, or would be.
    fn as_parts(&self) -> String {
        match &self.parts {
            Some(list) => {
                let list = list.as_str();
                let inner = list.strip_prefix('[').and_then(|list| list.strip_suffix(']'));
                inner.unwrap_or(list).to_owned()
            }
            None if self.text.is_empty() => String::new(),
            None => format!(r#"{{"type":"text","text":{}}}"#, Value::from(self.text.as_str())),
        }
    }
}

fn joined_parts(contents: &[&Content]) -> Json {
    let parts = contents.iter().map(|content| content.as_parts());
    let parts: Vec<String> = parts.filter(|parts| !parts.is_empty()).collect();
    let list = format!("[{}]", parts.join(","));
    #[expect(clippy::expect_used, reason = "elements of lists of JSON make a list of JSON")]
    let list = RawValue::from_string(list).expect("a list is JSON");
    Json::from_raw(&list)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Message;

    #[track_caller]
    fn check(contents: &[&str], expected: &str) {
        let read = |content: &&str| {
            let message = format!("{{\"role\":\"user\",\"content\":{content}}}");
            match Message::from_json(&message).unwrap() {
                Message::User(content) => content,
                other => panic!("{other:?}"),
            }
        };
        let contents: Vec<Content> = contents.iter().map(read).collect();
        let joined = Content::joined(&contents.iter().collect::<Vec<_>>());
        assert_eq!(serde_json::to_string(&joined).unwrap(), expected);
    }

    #[test]
    fn texts_have_a_blank_line_between_them() {
        check(&[r#""a""#, r#""b\n""#, r#""c""#], r#""a\n\nb\n\n\nc""#);
        check(&[r#""""#, r#""b""#, "null"], r#""b""#);
        check(&[r#""""#, "null"], r#""""#);
    }

    #[test]
    fn parts_stay_as_they_are_and_texts_become_parts_beside_them() {
        let image =
            r#"[{"type":"image_url","image_url":{"url":"data:,]"}} , {"type":"x","n":1.50}]"#;
        check(
            &[r#""say \"what\"""#, image, "[ ]", r#""""#, r#""and why""#],
            concat!(
                r#"[{"type":"text","text":"say \"what\""},"#,
                r#"{"type":"image_url","image_url":{"url":"data:,]"}},{"type":"x","n":1.50},"#,
                r#"{"type":"text","text":"and why"}]"#
            ),
        );
        check(&["[]", "[]"], "[]");
    }
}

//! Messages without secrets.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::{AssistantMessage, Content, Message, ToolCall, ToolResult};
use crate::json::{Fields, JsonString, map_strings};
use crate::secret::Mask;

impl Message {
    /// Masks the secrets in each of its strings: texts, ids, arguments, and the values of members
    /// that we don't know. Names of members, roles, numbers and the names of our own tools stay.
    pub fn mask(&mut self, mask: &Mask) {
        match self {
            Message::System(content) | Message::User(content) => content.mask(mask),
            Message::Assistant(AssistantMessage { content, tool_calls, extra, .. }) => {
                content.iter_mut().for_each(|content| content.mask(mask));
                tool_calls.iter_mut().for_each(|call| call.mask(mask));
                mask_fields(extra, mask);
            }
            Message::Tool(ToolResult { tool_call_id, content }) => {
                mask_text(tool_call_id, mask);
                content.mask(mask);
            }
        }
    }
}

impl ToolCall {
    fn mask(&mut self, mask: &Mask) {
        let ToolCall { id, name, arguments, extra, function_extra } = self;
        mask_text(id, mask);
        if let Cow::Owned(masked) = mask.name(name) {
            *name = masked;
        }
        // Decoded first: a secret may be spelled in many ways there. What is no JSON is text.
        if serde_json::from_str::<&RawValue>(arguments).is_ok() {
            let masked = map_strings(arguments, &mut |string| masked(string.text, mask));
            if let Cow::Owned(masked) = masked {
                *arguments = masked;
            }
        } else {
            mask_text(arguments, mask);
        }
        mask_fields(extra, mask);
        mask_fields(function_extra, mask);
    }
}

impl Content {
    fn mask(&mut self, mask: &Mask) {
        let Content { text, refusal, parts } = self;
        mask_text(text, mask);
        refusal.iter_mut().for_each(|refusal| mask_text(refusal, mask));
        parts.iter_mut().for_each(|parts| parts.map_strings(&mut |string| member(string, mask)));
    }
}

fn mask_fields(fields: &mut Fields, mask: &Mask) {
    fields.map_strings(&mut |string| member(string, mask));
}

/// The type of a part is a word of the protocol.
fn member(string: JsonString<'_>, mask: &Mask) -> Option<String> {
    let is_word = |byte: u8| byte.is_ascii_lowercase() || matches!(byte, b'_' | b'.');
    if string.member == "type" && string.text.bytes().all(is_word) {
        return None;
    }
    masked(string.text, mask)
}

fn masked(text: &str, mask: &Mask) -> Option<String> {
    match mask.text(text) {
        Cow::Owned(masked) => Some(masked),
        Cow::Borrowed(_) => None,
    }
}

fn mask_text(text: &mut String, mask: &Mask) {
    if let Some(masked) = masked(text, mask) {
        *text = masked;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::secret::Hidden;

    /// The same value with its strings masked, but for words of the protocol.
    fn expected(value: &Value, mask: &Mask) -> Value {
        match value {
            Value::String(text) => Value::String(mask.text(text).into_owned()),
            Value::Array(list) => list.iter().map(|value| expected(value, mask)).collect(),
            Value::Object(members) => {
                let masked = members.iter().map(|(name, value)| {
                    let is_word = ["role", "type"].contains(&name.as_str());
                    let value = match value {
                        Value::String(text) if name == "name" => mask.name(text).into(),
                        value if is_word => value.clone(),
                        value => expected(value, mask),
                    };
                    (name.clone(), value)
                });
                Value::Object(masked.collect())
            }
            other => other.clone(),
        }
    }

    /// Keys of what JSON and the protocol are made of, in random messages.
    #[test]
    fn a_mask_changes_strings_and_nothing_else_whatever_the_key_is() {
        const KEYS: [&str; 8] = [
            "12345678",
            "function",
            "assistant",
            "tool_calls",
            "\":\"role\"",
            "\\\\\\\\nnnn",
            "arguments",
            "tool_call_id",
        ];
        let mut seed: u64 = 3;
        let mut random = |below: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            usize::try_from(seed >> 33).unwrap() % below
        };
        for round in 0..2_000 {
            let key = KEYS[round % KEYS.len()];
            let mask = Mask::new([Hidden::key(key)]);
            let mut text = || -> String {
                let pieces = [key, "\"", "\\", "{", "}:,[", "\n", "\u{e9}", "1234567", " "];
                (0..random(6)).map(|_| pieces[random(pieces.len())]).collect()
            };
            let mine = serde_json::json!({"a": [text(), 12_345_678, true], "function": text()});
            let call = serde_json::json!({"id": text(), "type": "function", "assistant": mine,
                "function": {"name": text(), "arguments": text(), "arguments2": [text()]}});
            let message = serde_json::json!({"role": "assistant", "tool_calls": [call],
                "content": [{"type": "text", "text": text()}], "tool_call_id": {"x": text()}});
            let mut read = Message::from_json(&message.to_string()).unwrap();
            read.mask(&mask);
            let masked = serde_json::to_string(&read).unwrap();
            let masked: Value = serde_json::from_str(&masked).expect(&masked);
            let mut wanted = expected(&message, &mask);
            // Arguments that are JSON are masked string by string.
            let place = "/tool_calls/0/function/arguments";
            let arguments = message.pointer(place).unwrap().as_str().unwrap();
            if let Ok(value) = serde_json::from_str::<Value>(arguments) {
                let inner = masked.pointer(place).unwrap().clone();
                let read: Value = serde_json::from_str(inner.as_str().unwrap()).unwrap();
                assert_eq!(read, expected(&value, &mask), "{key}: {arguments}");
                *wanted.pointer_mut(place).unwrap() = inner;
            }
            assert_eq!(masked, wanted, "{key}: {message}");
        }
    }
}

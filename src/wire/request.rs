//! The body of a request.

use std::borrow::Cow;

use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::message::{Message, ToolCall};
use crate::provider::{CompletionRequest, ToolDefinition};
use crate::secret::Mask;

/// The body of the request, masked.
///
/// What grows from step to step comes last and only ever grows at its end, so that each body of a
/// run starts with the bytes of the one before, and the endpoint's prompt cache hits.
pub fn request_body(request: &CompletionRequest<'_>, mask: &Mask) -> Vec<u8> {
    #[expect(
        clippy::expect_used,
        reason = "memory takes everything, and no Serialize of ours refuses a value"
    )]
    let body = serde_json::to_vec(&Body(request)).expect("a request is JSON");
    mask.bytes(body)
}

/// The name under which text that should have been arguments goes out.
const INVALID: &str = "invalid_arguments";

struct Body<'a>(&'a CompletionRequest<'a>);

impl Serialize for Body<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let request = self.0;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("model", request.model)?;
        map.serialize_entry("stream", &false)?;
        if let Some(max_tokens) = request.max_tokens {
            map.serialize_entry("max_tokens", &max_tokens)?;
        }
        map.serialize_entry("tools", &Tools(request.tools))?;
        map.serialize_entry("messages", &Messages(request))?;
        map.end()
    }
}

struct Tools<'a>(&'a [ToolDefinition]);

impl Serialize for Tools<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(Tool))
    }
}

struct Tool<'a>(&'a ToolDefinition);

impl Serialize for Tool<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("type", "function")?;
        map.serialize_entry("function", &Function(self.0))?;
        map.end()
    }
}

struct Function<'a>(&'a ToolDefinition);

impl Serialize for Function<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(3))?;
        map.serialize_entry("name", self.0.name)?;
        map.serialize_entry("description", self.0.description)?;
        map.serialize_entry("parameters", &self.0.parameters)?;
        map.end()
    }
}

struct Messages<'a>(&'a CompletionRequest<'a>);

impl Serialize for Messages<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut seq = serializer.serialize_seq(None)?;
        if !self.0.system_prompt.is_empty() {
            seq.serialize_element(&Message::system(self.0.system_prompt))?;
        }
        for message in self.0.messages {
            seq.serialize_element(sendable(message).as_ref())?;
        }
        seq.end()
    }
}

/// The message as an endpoint will take it back.
///
/// Some servers parse the arguments of earlier calls, and answer 500 from then on when one is not
/// a JSON object. The conversation keeps what the model wrote; what goes out is
/// `{"invalid_arguments":"..."}` with that text inside, or `{}` where there was none.
fn sendable(message: &Message) -> Cow<'_, Message> {
    let Message::Assistant(assistant) = message else { return Cow::Borrowed(message) };
    if assistant.tool_calls.iter().all(has_valid_arguments) {
        return Cow::Borrowed(message);
    }
    let mut assistant = assistant.clone();
    for call in assistant.tool_calls.iter_mut().filter(|call| !has_valid_arguments(call)) {
        call.arguments = match call.arguments.trim() {
            "" => "{}".to_owned(),
            text => serde_json::json!({ INVALID: text }).to_string(),
        };
    }
    Cow::Owned(Message::Assistant(assistant))
}

/// Reads the arguments whole, because servers do: half a surrogate pair is valid to a parser that
/// only skips strings, and an error to theirs.
fn has_valid_arguments(call: &ToolCall) -> bool {
    serde_json::from_str::<Value>(&call.arguments).is_ok_and(|value| value.is_object())
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU64;

    use serde_json::value::RawValue;

    use crate::json::Json;
    use crate::message::AssistantMessage;
    use crate::time::Deadline;

    use super::*;
    use crate::provider::Notify;

    fn body(messages: &[Message], mask: &Mask) -> String {
        let raw = RawValue::from_string("{\"type\":\"object\"}".to_owned()).unwrap();
        let tools = [ToolDefinition {
            name: "shell",
            description: "Runs a command.",
            parameters: Json::from_raw(&raw),
        }];
        let request = CompletionRequest {
            model: "m",
            system_prompt: "Be brief.",
            messages,
            tools: &tools,
            max_tokens: NonZeroU64::new(64),
            deadline: Deadline::NONE,
            notify: Notify::NOBODY,
        };
        String::from_utf8(request_body(&request, mask)).unwrap()
    }

    #[test]
    fn the_body_has_everything_that_is_constant_first() {
        assert_eq!(
            body(&[Message::user("hi")], &Mask::default()),
            concat!(
                r#"{"model":"m","stream":false,"max_tokens":64,"#,
                r#""tools":[{"type":"function","function":{"name":"shell","#,
                r#""description":"Runs a command.","parameters":{"type":"object"}}}],"#,
                r#""messages":[{"role":"system","content":"Be brief."},"#,
                r#"{"role":"user","content":"hi"}]}"#
            )
        );
    }

    #[test]
    fn each_body_of_a_run_starts_with_the_one_before() {
        let call = ToolCall::new("c1", "shell", "not json");
        let mut messages = vec![Message::user("hi")];
        let mut before = body(&messages, &Mask::default());
        for next in [
            Message::Assistant(AssistantMessage::calls(vec![call.clone()])),
            Message::tool_result(&call, "an error"),
            Message::user("go on"),
        ] {
            messages.push(next);
            let after = body(&messages, &Mask::default());
            let prefix = before.strip_suffix("]}").unwrap();
            assert!(after.starts_with(prefix), "{after} after {before}");
            before = after;
        }
    }

    #[track_caller]
    fn check_arguments(arguments: &str, expected: &str) {
        let call = ToolCall::new("c1", "shell", arguments);
        let message = Message::Assistant(AssistantMessage::calls(vec![call]));
        let expected = format!("\"arguments\":{}", Value::from(expected));
        let body = body(&[message], &Mask::default());
        assert!(body.contains(&expected), "{body} without {expected}");
    }

    #[test]
    fn arguments_that_are_no_object_go_out_inside_one() {
        check_arguments(r#"{ "a" : 1 }"#, r#"{ "a" : 1 }"#);
        check_arguments("", "{}");
        check_arguments(" \n", "{}");
        check_arguments("{\"path", r#"{"invalid_arguments":"{\"path"}"#);
        check_arguments("[1]", r#"{"invalid_arguments":"[1]"}"#);
        check_arguments("null", r#"{"invalid_arguments":"null"}"#);
        check_arguments(r#"{"a":"\ud83d"}"#, r#"{"invalid_arguments":"{\"a\":\"\\ud83d\"}"}"#);
    }

    #[test]
    fn a_key_in_the_conversation_does_not_go_out() {
        let mask = Mask::new(crate::secret::Secret::parse("sk-TESTKEY-1").unwrap());
        let body = body(&[Message::user("it is sk-TESTKEY-1")], &mask);
        assert!(body.contains("it is [api key]") && !body.contains("sk-TESTKEY-1"), "{body}");
    }
}

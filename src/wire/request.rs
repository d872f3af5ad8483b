//! The body of a request.

use std::borrow::Cow;

use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use super::outgoing::{Outgoing, joined_users};
use crate::json::{Fields, Members};
use crate::message::Message;
use crate::provider::{CompletionRequest, ToolDefinition};
use crate::secret::Mask;

/// The body of the request, each of its strings masked before it is written: what is no string,
/// and every name and word of the protocol, is as without secrets. The members of
/// [`RequestForm::extra_body`] go out as they were given.
///
/// What grows from step to step comes last and only ever grows at its end, so that each body of a
/// run starts with the bytes of the one before, and the endpoint's prompt cache hits. Of a user
/// message at the end that holds but for its last bytes: one that comes behind it joins it.
pub fn request_body(request: &CompletionRequest<'_>, form: &RequestForm, mask: &Mask) -> Vec<u8> {
    #[expect(
        clippy::expect_used,
        reason = "memory takes everything, and no Serialize of ours refuses a value"
    )]
    let body = serde_json::to_vec(&Body { request, form, mask }).expect("a request is JSON");
    body
}

/// What an endpoint wants of every request, or the user of every answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestForm {
    /// How the completion is to come.
    pub stream: Stream,
    /// Sends the limit of a completion as `max_completion_tokens` and not as `max_tokens`.
    pub max_completion_tokens: bool,
    /// Further members of the body.
    pub extra_body: ExtraBody,
    /// Keeps earlier reasoning from going back. Some models refuse it; others, with tools, refuse
    /// to go on without.
    pub omit_reasoning: bool,
}

/// How a completion is to come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stream {
    /// As events, and the usage as one of them.
    #[default]
    WithUsage,
    /// As events, for endpoints that know no `stream_options`.
    Bare,
    /// As one body.
    Off,
}

/// Members that the user adds to every request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExtraBody(Fields);

impl ExtraBody {
    /// Whether a member of this name is added.
    pub fn contains(&self, name: &str) -> bool {
        self.0.contains(name)
    }

    /// Reads a JSON object.
    ///
    /// # Errors
    ///
    /// The text is no JSON object, or names a member that only the run itself can set. The error
    /// shows no value: there may be a key among them.
    pub fn parse(text: &str) -> Result<ExtraBody, String> {
        let raw: &RawValue =
            serde_json::from_str(text).map_err(|error| format!("it is not JSON: {error}"))?;
        if !raw.get().starts_with('{') {
            return Err("it is not a JSON object".to_owned());
        }
        let members: Members<'_> =
            serde_json::from_str(raw.get()).map_err(|error| error.to_string())?;
        let fields = members.into_fields();
        match RESERVED.iter().find(|name| fields.contains(name)) {
            Some(name) => Err(format!("\"{name}\" can't be set in it")),
            None => Ok(ExtraBody(fields)),
        }
    }
}

/// What the conversation and the reading of the response depend on, and what has a flag of its own,
/// because the limits of a run are checked by it.
const RESERVED: &[&str] =
    &["messages", "tools", "stream", "model", "n", "max_tokens", "max_completion_tokens"];

/// Says whether the model may call a tool.
const TOOL_CHOICE: &str = "tool_choice";

struct Body<'a> {
    request: &'a CompletionRequest<'a>,
    form: &'a RequestForm,
    mask: &'a Mask,
}

impl Serialize for Body<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Body { request, form, mask } = self;
        let extra = &form.extra_body.0;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("model", &*mask.text(request.model))?;
        map.serialize_entry("stream", &(form.stream != Stream::Off))?;
        if form.stream == Stream::WithUsage && !extra.contains("stream_options") {
            map.serialize_entry("stream_options", &serde_json::json!({ "include_usage": true }))?;
        }
        let limit = if form.max_completion_tokens { "max_completion_tokens" } else { "max_tokens" };
        if let Some(max_tokens) = request.max_tokens {
            map.serialize_entry(limit, &max_tokens)?;
        }
        let closing = request.closing.is_some();
        let mut extra = extra.iter().filter(|(name, _)| !(closing && *name == TOOL_CHOICE));
        extra.try_for_each(|(name, value)| map.serialize_entry(name, value))?;
        map.serialize_entry("tools", &Tools(request.tools))?;
        map.serialize_entry("messages", &Messages(self))?;
        if closing {
            map.serialize_entry(TOOL_CHOICE, "none")?;
        }
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

struct Messages<'a>(&'a Body<'a>);

impl Serialize for Messages<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Body { request, form, mask } = self.0;
        let mut seq = serializer.serialize_seq(None)?;
        if !request.system_prompt.is_empty() {
            seq.serialize_element(&Message::system(mask.text(request.system_prompt)))?;
        }
        let mut outgoing = Outgoing::new(request.model, form.omit_reasoning);
        let mut users = Vec::new();
        for message in request.messages.iter().chain(request.closing) {
            let mut masked = Cow::Borrowed(message);
            if !mask.is_empty() {
                masked.to_mut().mask(mask);
            }
            if matches!(*masked, Message::User(_)) {
                users.push(masked);
                continue;
            }
            serialize_users(&mut seq, &mut users)?;
            seq.serialize_element(outgoing.message(&masked).as_ref())?;
        }
        serialize_users(&mut seq, &mut users)?;
        seq.end()
    }
}

/// Writes the user messages that came one behind the other as one. Many chat templates want user
/// and assistant in turn, and refuse a new prompt behind one that got no answer.
fn serialize_users<S: SerializeSeq>(
    seq: &mut S,
    users: &mut Vec<Cow<'_, Message>>,
) -> Result<(), S::Error> {
    match users.as_slice() {
        [] => return Ok(()),
        [one] => seq.serialize_element(one)?,
        several => seq.serialize_element(&joined_users(several))?,
    }
    users.clear();
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU64;

    use serde_json::Value;

    use crate::json::Json;
    use crate::message::{AssistantMessage, ToolCall};
    use crate::time::Deadline;

    use super::*;
    use crate::provider::Notify;

    fn body(messages: &[Message], mask: &Mask) -> String {
        body_in(&RequestForm::default(), messages, mask)
    }

    fn body_in(form: &RequestForm, messages: &[Message], mask: &Mask) -> String {
        body_of(form, messages, None, mask)
    }

    fn body_of(
        form: &RequestForm,
        messages: &[Message],
        closing: Option<&Message>,
        mask: &Mask,
    ) -> String {
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
            closing,
            tools: &tools,
            max_tokens: NonZeroU64::new(64),
            deadline: Deadline::NONE,
            notify: Notify::NOBODY,
        };
        String::from_utf8(request_body(&request, form, mask)).unwrap()
    }

    #[test]
    fn the_body_has_everything_that_is_constant_first() {
        assert_eq!(
            body(&[Message::user("hi")], &Mask::default()),
            concat!(
                r#"{"model":"m","stream":true,"stream_options":{"include_usage":true},"#,
                r#""max_tokens":64,"#,
                r#""tools":[{"type":"function","function":{"name":"shell","#,
                r#""description":"Runs a command.","parameters":{"type":"object"}}}],"#,
                r#""messages":[{"role":"system","content":"Be brief."},"#,
                r#"{"role":"user","content":"hi"}]}"#
            )
        );
    }

    #[test]
    fn a_closing_message_comes_last_and_allows_no_tool() {
        let form = RequestForm {
            extra_body: extra_body(r#"{"tool_choice":"required","seed":1}"#),
            ..RequestForm::default()
        };
        let (hi, mask) = (Message::user("hi"), Mask::default());
        let before = body_of(&form, std::slice::from_ref(&hi), None, &mask);
        assert!(before.contains(r#""tool_choice":"required""#), "{before}");
        let said = [hi, Message::Assistant(AssistantMessage::text("hello"))];
        let last = body_of(&form, &said, Some(&Message::user("Sum up.")), &mask);
        let end = concat!(
            r#",{"role":"assistant","content":"hello"},"#,
            r#"{"role":"user","content":"Sum up."}],"tool_choice":"none"}"#
        );
        let start = last.strip_suffix(end).unwrap();
        let before = before.replace(r#""tool_choice":"required","#, "");
        assert_eq!(before.strip_suffix("]}").unwrap(), start);
    }

    /// What stands before the tools.
    #[track_caller]
    fn check_start(form: &RequestForm, expected: &str) {
        let body = body_in(form, &[], &Mask::default());
        let (start, _) = body.split_once(r#","tools":["#).unwrap();
        assert_eq!(start, expected);
    }

    fn extra_body(text: &str) -> ExtraBody {
        ExtraBody::parse(text).unwrap()
    }

    #[test]
    fn a_stream_is_asked_for_with_usage_without_it_or_not_at_all() {
        for (stream, expected) in [
            (Stream::WithUsage, r#""stream":true,"stream_options":{"include_usage":true}"#),
            (Stream::Bare, r#""stream":true"#),
            (Stream::Off, r#""stream":false"#),
        ] {
            let form = RequestForm { stream, ..RequestForm::default() };
            check_start(&form, &format!(r#"{{"model":"m",{expected},"max_tokens":64"#));
        }
    }

    #[test]
    fn the_limit_goes_out_under_the_name_that_the_endpoint_takes() {
        let form = RequestForm {
            stream: Stream::Off,
            max_completion_tokens: true,
            ..RequestForm::default()
        };
        check_start(&form, r#"{"model":"m","stream":false,"max_completion_tokens":64"#);
    }

    #[test]
    fn an_extra_member_stands_once_and_as_it_was_given() {
        let extra_body =
            extra_body("{ \"seed\": 7, \"temperature\": 0.10, \"stream_options\": null }");
        let form = RequestForm { extra_body, ..RequestForm::default() };
        let expected = concat!(
            r#"{"model":"m","stream":true,"max_tokens":64,"#,
            r#""seed":7,"temperature":0.10,"stream_options":null"#
        );
        check_start(&form, expected);
    }

    #[test]
    fn an_extra_body_that_can_not_be_merged_is_refused_without_showing_it() {
        for (text, expected) in [
            ("", "it is not JSON: EOF"),
            ("sk-TESTKEY-1", "it is not JSON: expected value at line 1 column 1"),
            (r#"{"seed":1} x"#, "it is not JSON: trailing characters"),
            (r#"["sk-TESTKEY-1"]"#, "it is not a JSON object"),
            ("null", "it is not a JSON object"),
            (r#"{"seed":1,"seed":2}"#, "\"seed\" is given twice"),
            (r#"{"stream":false}"#, "\"stream\" can't be set in it"),
            (r#"{"seed":1,"messages":["sk-TESTKEY-1"]}"#, "\"messages\" can't be set in it"),
            (r#"{"tools":null}"#, "\"tools\" can't be set in it"),
            (r#"{"max_tokens":5}"#, "\"max_tokens\" can't be set in it"),
        ] {
            let error = ExtraBody::parse(text).expect_err(text);
            assert!(error.starts_with(expected), "{error:?} and not {expected:?}");
            assert!(!error.contains("TESTKEY"), "{error}");
        }
        assert_eq!(ExtraBody::parse("{}"), Ok(ExtraBody::default()));
    }

    #[test]
    fn reasoning_stays_behind_when_that_is_asked_for_and_nothing_else_does() {
        let message = Message::from_json(
            r#"{"role":"assistant","content":"hi","reasoning":"a","refusal":null,
                "reasoning_details":[{"text":"b"}],"reasoning_content":"c","mine":1}"#,
        )
        .unwrap();
        let sent = |omit_reasoning| {
            let form = RequestForm { omit_reasoning, ..RequestForm::default() };
            body_in(&form, std::slice::from_ref(&message), &Mask::default())
        };
        let (all, fewer) = (sent(false), sent(true));
        assert!(
            all.contains(r#""reasoning_details":[{"text":"b"}],"reasoning_content":"c""#),
            "{all}"
        );
        assert!(fewer.ends_with(r#""content":"hi","refusal":null,"mine":1}]}"#), "{fewer}");
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
    fn user_messages_in_a_row_go_out_as_one_masked_each() {
        let parts = r#"{"role":"user","content":[{"type":"text","text":"sk-TESTKEY-1"}]}"#;
        let parts = Message::from_json(parts).unwrap();
        let said = Message::Assistant(AssistantMessage::text("hello"));
        let user = |text| Message::user(text);
        let messages = [user("a"), said, user("sk-TESTKEY-1"), user("b"), parts, user("c")];
        let sent = |messages: &[Message], closing: Option<&Message>, key: &str| {
            let mask = Mask::new(crate::secret::Secret::parse(key).unwrap());
            let body = body_of(&RequestForm::default(), messages, closing, &mask);
            body.split_once(r#"{"role":"assistant","content":"hello"},"#).unwrap().1.to_owned()
        };
        for (key, shown) in [("sk-TESTKEY-1", "[api key]"), ("sk-TESTKEY-2", "sk-TESTKEY-1")] {
            assert_eq!(
                sent(&messages[..4], None, key),
                format!(r#"{{"role":"user","content":"{shown}\n\nb"}}]}}"#)
            );
            let texts = [shown, "b", shown, "c", "d"];
            let parts = texts.map(|text| format!(r#"{{"type":"text","text":"{text}"}}"#)).join(",");
            let end = r#""tool_choice":"none"}"#;
            assert_eq!(
                sent(&messages, Some(&user("d")), key),
                format!(r#"{{"role":"user","content":[{parts}]}}],{end}"#)
            );
        }
    }

    #[test]
    fn a_key_in_the_conversation_does_not_go_out() {
        let mask = Mask::new(crate::secret::Secret::parse("sk-TESTKEY-1").unwrap());
        let body = body(&[Message::user("it is sk-TESTKEY-1")], &mask);
        assert!(body.contains("it is [api key]") && !body.contains("sk-TESTKEY-1"), "{body}");
    }
}

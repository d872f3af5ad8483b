//! A message as an endpoint will take it back.
//!
//! The conversation keeps what the model wrote. Many endpoints check the names, the ids and the
//! arguments of earlier calls, and refuse every later request of a conversation in which one does
//! not fit. So where one does not, another goes out in its place.
//!
//! What goes out depends on the message alone, and for a tool result on the message of its call. So
//! a message goes out in the same way in every request, after a resume too. Only the user messages
//! at the end grow when another one joins them.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use crate::json::is_object;
use crate::message::{AssistantMessage, Content, Message, ToolCall, ToolResult, short_id};

/// Where endpoints put the reasoning of a message.
const REASONING: &[&str] = &["reasoning", "reasoning_content", "reasoning_details"];

/// The name under which text that should have been arguments goes out.
const INVALID: &str = "invalid_arguments";

/// The longest name or id that all endpoints take.
const LONGEST: usize = 64;

/// Takes the messages of a conversation in their order, each as it is to go out.
pub(super) struct Outgoing {
    omit_reasoning: bool,
    /// Kimi's ids go into its prompt, and it calls tools by them: they stay.
    keeps_kimi: bool,
    /// The ids of the latest message with calls that do not go out as they are, and what does.
    ids: HashMap<String, String>,
}

impl Outgoing {
    pub(super) fn new(model: &str, omit_reasoning: bool) -> Outgoing {
        let keeps_kimi = model.to_ascii_lowercase().contains("kimi");
        Outgoing { omit_reasoning, keeps_kimi, ids: HashMap::new() }
    }

    /// The next message of the conversation.
    pub(super) fn message<'a>(&mut self, message: &'a Message) -> Cow<'a, Message> {
        match message {
            Message::Assistant(assistant) => {
                self.ids = self.ids_of(&assistant.tool_calls);
                self.assistant(assistant).map_or(Cow::Borrowed(message), |assistant| {
                    Cow::Owned(Message::Assistant(assistant))
                })
            }
            Message::Tool(result) => match self.ids.get(&result.tool_call_id) {
                Some(id) => Cow::Owned(Message::Tool(ToolResult {
                    tool_call_id: id.clone(),
                    content: result.content.clone(),
                })),
                None => Cow::Borrowed(message),
            },
            Message::System(_) | Message::User(_) => Cow::Borrowed(message),
        }
    }

    /// The message as it goes out, where that is not as it is.
    fn assistant(&self, message: &AssistantMessage) -> Option<AssistantMessage> {
        let omit = self.omit_reasoning && REASONING.iter().any(|name| message.extra.contains(name));
        let fits = |call: &ToolCall| fits(&call.name) && is_object(&call.arguments);
        if !omit && self.ids.is_empty() && message.tool_calls.iter().all(fits) {
            return None;
        }
        let call = |call: &ToolCall| ToolCall {
            id: self.ids.get(&call.id).unwrap_or(&call.id).clone(),
            name: sendable_name(&call.name).into_owned(),
            arguments: sendable_arguments(&call.arguments).into_owned(),
            extra: call.extra.clone(),
            function_extra: call.function_extra.clone(),
        };
        let mut extra = message.extra.clone();
        if omit {
            extra.remove(REASONING);
        }
        Some(AssistantMessage {
            content: message.content.clone(),
            content_is_null: message.content_is_null,
            tool_calls: message.tool_calls.iter().map(call).collect(),
            extra,
        })
    }

    /// The ids that do not fit, each with the one that goes out in its place. Ids that differ do so
    /// afterwards too.
    fn ids_of(&self, calls: &[ToolCall]) -> HashMap<String, String> {
        let (kept, replaced): (Vec<_>, Vec<_>) =
            calls.iter().map(|call| call.id.as_str()).partition(|id| self.keeps(id));
        let mut taken: HashSet<String> = HashSet::new();
        if !replaced.is_empty() {
            taken.extend(kept.into_iter().map(str::to_owned));
        }
        let mut ids = HashMap::new();
        for id in replaced {
            let attempt = |n: usize| short_id(&format!("{n}/{id}"));
            let fresh = (0..).map(attempt).find(|fresh| !taken.contains(fresh));
            let fresh = fresh.unwrap_or_default();
            taken.insert(fresh.clone());
            ids.insert(id.to_owned(), fresh);
        }
        ids
    }

    /// Whether an id goes out as it is. LiteLLM keeps Gemini's signature in the id, and Gemini
    /// refuses a call without it.
    fn keeps(&self, id: &str) -> bool {
        fits(id) || id.contains("__thought__") || self.keeps_kimi && is_kimis(id)
    }
}

/// User messages as one, in their order.
pub(super) fn joined_users(messages: &[Cow<'_, Message>]) -> Message {
    let contents = messages.iter().filter_map(|message| match message.as_ref() {
        Message::User(content) => Some(content),
        _ => None,
    });
    Message::User(Content::joined(&contents.collect::<Vec<_>>()))
}

/// Whether a name or an id is one that all endpoints take.
fn fits(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    (1..=LONGEST).contains(&text.len()) && text.bytes().all(is_plain)
}

/// `functions.NAME:NUMBER`
fn is_kimis(id: &str) -> bool {
    let parts = id.strip_prefix("functions.").and_then(|rest| rest.rsplit_once(':'));
    parts.is_some_and(|(name, number)| {
        fits(name) && !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// The name, or one that fits: as much of it as does, so that the model knows what it called, and
/// an id that tells it from all other names.
fn sendable_name(name: &str) -> Cow<'_, str> {
    if fits(name) {
        return Cow::Borrowed(name);
    }
    let id = short_id(name);
    let mut fitting = String::new();
    // Gemini wants a letter first.
    if !name.starts_with(|first: char| first.is_ascii_alphabetic()) {
        fitting.push_str("tool");
    }
    for character in name.chars() {
        if fitting.len() + 1 + id.len() == LONGEST {
            break;
        }
        if character.is_ascii_alphanumeric() || character == '-' {
            fitting.push(character);
        } else if !fitting.ends_with('_') {
            fitting.push('_');
        }
    }
    let start = fitting.trim_end_matches('_');
    Cow::Owned(format!("{start}_{id}"))
}

/// The arguments, or an object with them inside.
///
/// Some servers parse the arguments of earlier calls, and answer 500 from then on when one is not
/// a JSON object. What goes out is `{"invalid_arguments":"..."}`, or `{}` where there was nothing.
fn sendable_arguments(arguments: &str) -> Cow<'_, str> {
    if is_object(arguments) {
        return Cow::Borrowed(arguments);
    }
    match arguments.trim() {
        "" => Cow::Borrowed("{}"),
        text => {
            let quoted = serde_json::to_string(text).unwrap_or_default();
            Cow::Owned(format!("{{\"{INVALID}\":{quoted}}}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(id: &str, name: &str) -> ToolCall {
        ToolCall::new(id, name, "{}")
    }

    /// The calls of one message with their results, as they go out: ids and names of the calls, and
    /// ids of the results.
    fn sent(model: &str, calls: &[ToolCall]) -> (Vec<(String, String)>, Vec<String>) {
        let mut outgoing = Outgoing::new(model, false);
        let message = Message::Assistant(AssistantMessage::calls(calls.to_vec()));
        let Message::Assistant(message) = outgoing.message(&message).into_owned() else { panic!() };
        let results = calls.iter().map(|call| {
            match outgoing.message(&Message::tool_result(call, "ok")).into_owned() {
                Message::Tool(result) => result.tool_call_id,
                other => panic!("{other:?}"),
            }
        });
        let results = results.collect();
        (message.tool_calls.into_iter().map(|call| (call.id, call.name)).collect(), results)
    }

    #[test]
    fn a_name_that_fits_goes_out_and_others_in_a_form_that_does() {
        for name in ["shell", "read_file", "a-B_9", "_x", &"x".repeat(64)] {
            assert_eq!(sendable_name(name), name);
        }
        for (name, start) in [
            ("browser.tabs.open", "browser_tabs_open_"),
            ("functions.shell", "functions_shell_"),
            ("read file", "read_file_"),
            ("a..b//c", "a_b_c_"),
            ("9.lives", "tool9_lives_"),
            ("\u{68c0}\u{7d22}", "tool_"),
            ("", "tool_"),
            (" \n", "tool_"),
            ("shell<|channel|>json", "shell_channel_json_"),
            (&"x".repeat(65), &"x".repeat(54)),
            (&"\u{1f642}.".repeat(100), "tool_"),
        ] {
            let sent = sendable_name(name);
            assert!(fits(&sent) && sent.starts_with(start), "{name:?} as {sent:?}");
            assert_eq!(sent, sendable_name(name), "the same each time");
        }
    }

    #[test]
    fn names_that_differ_go_out_as_names_that_differ() {
        let long = |end: &str| "x".repeat(200) + end;
        let names = ["a.b", "a_b", "a b", "a:b", "a.b ", "\u{e9}", "\u{e8}", "", " "];
        let mut all: Vec<String> = names.map(|name| sendable_name(name).into_owned()).into();
        all.extend([long("1"), long("2")].map(|name| sendable_name(&name).into_owned()));
        assert_eq!(all.iter().collect::<HashSet<_>>().len(), all.len(), "{all:?}");
    }

    #[test]
    fn an_id_that_does_not_fit_is_replaced_in_the_call_and_in_its_result() {
        let long = "x".repeat(65);
        let ids = ["call|1", "call_1", ":", "call|2", &long, " ", "functions.shell:0", "\u{e9}"];
        let calls = ids.map(|id| call(id, "shell"));
        let (sent_calls, results) = sent("m", &calls);
        let sent_ids: Vec<_> = sent_calls.iter().map(|(id, _)| id.clone()).collect();
        assert_eq!(sent_ids, results);
        assert_eq!(sent_ids[1], "call_1");
        assert!(sent_ids.iter().all(|id| fits(id)), "{sent_ids:?}");
        assert_eq!(sent_ids.iter().collect::<HashSet<_>>().len(), ids.len());
        for (id, is_ours) in sent_ids.iter().zip(ids.map(|id| id != "call_1")) {
            assert!(!is_ours || id.len() == 9, "{id}");
        }
        // One that the endpoint gave itself is not given twice.
        let clash = [call(":", "shell"), call(&sent_ids[2], "shell")];
        let (clashing, results) = sent("m", &clash);
        assert_eq!(clashing[1].0, sent_ids[2]);
        assert!(clashing[0].0 != sent_ids[2] && fits(&clashing[0].0), "{clashing:?}");
        assert_eq!(results, [clashing[0].0.clone(), clashing[1].0.clone()]);
    }

    #[test]
    fn an_id_that_the_other_side_reads_goes_out_as_it_came() {
        let signed = format!("call_1__thought__{}", "aB+/".repeat(50));
        assert_eq!(sent("m", &[call(&signed, "shell")]).1, [signed]);
        let kimis = call("functions.shell:12", "shell");
        assert_eq!(
            sent("moonshotai/Kimi-K2", std::slice::from_ref(&kimis)).1,
            ["functions.shell:12"]
        );
        assert_ne!(sent("m", &[kimis]).1, ["functions.shell:12"]);
        for other in ["functions.a b:1", "functions.shell:", "functions.shell:x", "shell:1"] {
            assert_ne!(sent("kimi-k2", &[call(other, "shell")]).1, [other]);
        }
    }

    #[test]
    fn an_id_of_an_earlier_message_means_nothing_to_a_later_one() {
        let mut outgoing = Outgoing::new("m", false);
        let calls = Message::Assistant(AssistantMessage::calls(vec![call(":", "shell")]));
        outgoing.message(&calls);
        let plain = Message::Assistant(AssistantMessage::calls(vec![call("c1", "shell")]));
        assert!(matches!(outgoing.message(&plain), Cow::Borrowed(_)));
        assert!(outgoing.ids.is_empty());
    }
}

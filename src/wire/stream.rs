//! A completion that comes as a stream of events.
//!
//! The result is the completion that one body would have held. What makes it one is a finish
//! reason: whatever a stream without it has said, the model was not done saying it.

use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use crate::json::{Members, list, object, read_object, string};
use crate::provider::{Completion, FinishReason, ProviderError, Usage};
use crate::text::head;

use super::delta::PartialMessage;
use super::error::ErrorObject;
use super::response::{
    Fault, open, open_choice, parse, read_message, read_usage, take_finish_reason,
};
use super::sse::{Event, EventReader};

/// The most bytes that all deltas of a completion may have.
const DELTAS_MAX: usize = 64 << 20;

/// How much of a stream, or of one event, an error holds.
const KEPT: usize = 64 << 10;

/// Whether a response is one body although a stream was asked for, by how it starts; none where
/// there is nothing yet to tell by. Such a body is read by [`completion`](super::completion).
pub fn is_one_body(start: &[u8]) -> Option<bool> {
    let start = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start);
    // No line of a stream that means anything starts so: JSON, or a page of HTML.
    start.trim_ascii_start().first().map(|byte| b"{[\"<".contains(byte))
}

/// Puts a completion together from the bytes of a stream, however they were cut.
///
/// Give it bytes until it is done or there are no more, then finish:
///
/// ```
/// let mut assembler = uncut::wire::Assembler::new();
/// for bytes in [&b"data: {\"choices\":[{\"delta\":{\"content\":\"hi\"},\"fini"[..],
///               &b"sh_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"[..]] {
///     assembler.push(bytes)?;
///     if assembler.is_done() {
///         break;
///     }
/// }
/// assert_eq!(assembler.finish()?.message.as_text(), "hi");
/// # Ok::<(), uncut::provider::ProviderError>(())
/// ```
#[derive(Debug)]
pub struct Assembler {
    reader: EventReader,
    completion: PartialCompletion,
    is_done: bool,
    /// The first bytes, for errors.
    start: Vec<u8>,
}

impl Assembler {
    /// Nothing has come yet.
    #[expect(clippy::new_without_default, reason = "a stream has to come before there is a value")]
    pub fn new() -> Assembler {
        Assembler {
            reader: EventReader::new(),
            completion: PartialCompletion::default(),
            is_done: false,
            start: Vec::new(),
        }
    }

    /// Takes the next bytes. What comes after the end of the stream is not looked at.
    ///
    /// # Errors
    ///
    /// [`ProviderError::Status`] where an event reports an error; [`ProviderError::Response`] for
    /// every other event that is no piece of a completion. The
    /// body is the event, or the start of the stream where there is no one event to blame, in both
    /// cases 64 KB at most. Nothing more can be pushed then.
    pub fn push(&mut self, mut bytes: &[u8]) -> Result<(), ProviderError> {
        let room = KEPT.saturating_sub(self.start.len());
        self.start.extend_from_slice(&bytes[..bytes.len().min(room)]);
        while !self.is_done {
            let event = self.reader.next(&mut bytes).map_err(|e| unreadable(e, &self.start))?;
            let Some(event) = event else { break };
            self.is_done = self.completion.take(event)?;
        }
        Ok(())
    }

    /// Whether the endpoint has said that the stream is at its end, be the connection open or not.
    ///
    /// A finish reason is not yet that end: the usage comes after it.
    pub fn is_done(&self) -> bool {
        self.is_done
    }

    /// Whether the model has said that it is done, so that at most the usage is still to come.
    pub fn has_reason(&self) -> bool {
        self.completion.finish_reason != FinishReason::Missing
    }

    /// The completion, when the stream is done or its bytes have ended.
    ///
    /// A last event without the blank line behind it counts when it is whole.
    ///
    /// # Errors
    ///
    /// [`ProviderError::Transport`] where no finish reason came, because what did come is no
    /// answer, and nothing of it was used; otherwise as for [`push`](Assembler::push).
    pub fn finish(mut self) -> Result<Completion, ProviderError> {
        let last = self.reader.finish().map_err(|error| unreadable(error, &self.start))?;
        let last = last.filter(|_| !self.is_done);
        let is_cut = last.as_ref().is_some_and(|event| !is_whole(event.data));
        if let Some(event) = last.filter(|_| !is_cut) {
            self.is_done = self.completion.take(event)?;
        }
        if is_cut || !(self.has_reason() && (self.is_done || !self.completion.went_on)) {
            let detail = "the stream ended before the model said that it was done".to_owned();
            return Err(ProviderError::Transport { detail });
        }
        self.completion.finish().map_err(|fault| fault.with(self.start))
    }
}

fn unreadable(detail: String, body: &[u8]) -> ProviderError {
    ProviderError::Response { detail, body: body.to_owned() }
}

/// Whether the end of the stream can't have cut this off.
fn is_whole(data: &str) -> bool {
    is_end(data) || serde_json::from_str::<IgnoredAny>(data).is_ok()
}

/// Whether an event says that it is the last one.
fn is_end(data: &str) -> bool {
    data.trim_ascii() == "[DONE]"
}

/// Whether a delta has text or calls in it, and not only a role or nulls.
fn says_something(delta: &RawValue) -> bool {
    let Some(mut delta) = object(delta) else { return false };
    let mut has = |name| delta.take(name).is_some_and(|raw| !["\"\"", "[]"].contains(&raw.get()));
    has("content") || has("tool_calls")
}

fn refuses(reason: &FinishReason) -> bool {
    use FinishReason::{Failed, Filtered, Other, Overflow, Truncated};
    matches!(reason, Truncated(_) | Filtered(_) | Overflow(_) | Failed(_) | Other(_))
}

/// A completion as far as it has come.
#[derive(Debug)]
struct PartialCompletion {
    message: PartialMessage,
    /// The bytes of all deltas.
    size: usize,
    finish_reason: FinishReason,
    /// More came after a finish reason. Some servers give one with every piece, and then only
    /// `[DONE]` tells the last.
    went_on: bool,
    usage: Usage,
    model: Option<String>,
}

impl Default for PartialCompletion {
    fn default() -> PartialCompletion {
        PartialCompletion {
            message: PartialMessage::default(),
            size: 0,
            finish_reason: FinishReason::Missing,
            went_on: false,
            usage: Usage::default(),
            model: None,
        }
    }
}

impl PartialCompletion {
    /// Takes an event, and says whether it was the last one.
    fn take(&mut self, event: Event<'_>) -> Result<bool, ProviderError> {
        if is_end(event.data) {
            return Ok(true);
        }
        match self.add(event) {
            Ok(()) => Ok(false),
            Err(fault) => Err(fault.with(head(event.data, KEPT).into())),
        }
    }

    fn add(&mut self, event: Event<'_>) -> Result<(), Fault> {
        if event.name == "error" {
            // What is said to be an error and is no object is a fault of the server's.
            let error = ErrorObject::find(event.data.as_bytes());
            return Err(error.unwrap_or_else(|| ErrorObject::fault(event.data)).into());
        }
        let is_foreign = !["", "message"].contains(&event.name) && !is_whole(event.data);
        if is_foreign || event.data.trim_ascii().is_empty() {
            return Ok(());
        }
        let mut chunk = open(parse(event.data, "an event")?, "an event")?;
        if let Some(model) = chunk.take("model").and_then(string).filter(|m| !m.is_empty()) {
            self.model = Some(model);
        }
        self.take_usage(&mut chunk);
        let Some(choices) = chunk.take("choices") else {
            return ErrorObject::without_choices(chunk).map_or(Ok(()), |error| Err(error.into()));
        };
        for raw in list(choices, "choices")? {
            let mut choice = open_choice(raw)?;
            // One was asked for. Others are no concern of ours.
            if choice.take("index").is_none_or(|index| index.get() == "0") {
                self.add_choice(choice)?;
                break;
            }
        }
        Ok(())
    }

    fn add_choice(&mut self, mut choice: Members<'_>) -> Result<(), String> {
        self.take_usage(&mut choice);
        let reason = take_finish_reason(&mut choice)?;
        // Some gateways send a whole completion as one event.
        let delta = choice.take("delta").or_else(|| choice.take("message"));
        if self.finish_reason != FinishReason::Missing && delta.is_some_and(says_something) {
            self.went_on = true;
            if !refuses(&self.finish_reason) {
                self.finish_reason = FinishReason::Missing;
            }
        }
        // A reason that refuses is not taken back by one that does not.
        if reason != FinishReason::Missing && !refuses(&self.finish_reason) {
            self.finish_reason = reason;
        }
        let Some(delta) = delta else { return Ok(()) };
        self.size += delta.get().len();
        if self.size > DELTAS_MAX {
            return Err(format!("the completion is larger than {} MB", DELTAS_MAX >> 20));
        }
        let place = "choices[0].delta";
        let members = read_object(delta, place)?;
        self.message.add(members).map_err(|error| format!("{place}.{error}"))
    }

    /// Takes the usage, which some endpoints put into the choice, or send again with each event.
    fn take_usage(&mut self, members: &mut Members<'_>) {
        let usage = members.take("usage").and_then(object).map(read_usage).unwrap_or_default();
        if usage != Usage::default() {
            self.usage = usage;
        }
    }

    fn finish(self) -> Result<Completion, Fault> {
        let message = self.message.to_json();
        drop(self.message);
        Ok(Completion {
            message: read_message(parse(&message, "the message")?)?,
            finish_reason: self.finish_reason,
            usage: self.usage,
            model: self.model,
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::message::{AssistantMessage, ToolCall};
    use crate::outcome::Outcome;
    use crate::wire::completion;

    use super::*;
    use crate::provider::StatusError;

    const DONE: &str = "data: [DONE]\n\n";
    const STOP: &str = "{\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}";

    /// What a stream that comes in pieces of this size is read as.
    fn read(stream: impl AsRef<[u8]>, piece: usize) -> Result<Completion, ProviderError> {
        let mut assembler = Assembler::new();
        for bytes in stream.as_ref().chunks(piece) {
            assembler.push(bytes)?;
        }
        assembler.finish()
    }

    fn events<'a>(chunks: impl IntoIterator<Item = &'a str>) -> String {
        let event = |chunk: &str| format!("data: {}\n\n", chunk.replace('\n', "\ndata: "));
        chunks.into_iter().map(event).collect()
    }

    fn chunk(delta: &str) -> String {
        format!("{{\"choices\":[{{\"index\":0,\"delta\":{delta},\"finish_reason\":null}}]}}")
    }

    /// A stream of these deltas whose end says that the model was done.
    fn stream(deltas: &[&str]) -> String {
        let chunks: Vec<String> = deltas.iter().map(|delta| chunk(delta)).collect();
        events(chunks.iter().map(String::as_str).chain([STOP])) + DONE
    }

    #[track_caller]
    fn accepted(stream: &str) -> Completion {
        read(stream, 1_000).unwrap_or_else(|error| panic!("{stream}: {error}"))
    }

    #[track_caller]
    fn check_text(stream: &str, expected: &str) {
        assert_eq!(accepted(stream).message.as_text(), expected, "{stream}");
    }

    /// The deltas come to what one body with this message comes to.
    #[track_caller]
    fn check_message(deltas: &[&str], message: &str) {
        let body = format!(
            "{{\"choices\":[{{\"index\":0,\"message\":{message},\"finish_reason\":\"stop\"}}]}}"
        );
        assert_eq!(accepted(&stream(deltas)), completion(body.into()).unwrap(), "{deltas:?}");
    }

    /// The calls of the message, each as id, name and arguments.
    #[track_caller]
    fn check_calls(fragments: &[&str], expected: &[(&str, &str, &str)]) {
        let deltas: Vec<_> =
            fragments.iter().map(|list| format!("{{\"tool_calls\":[{list}]}}")).collect();
        let deltas: Vec<_> = deltas.iter().map(String::as_str).collect();
        let expected: Vec<_> =
            expected.iter().map(|(id, name, rest)| ToolCall::new(*id, *name, *rest)).collect();
        assert_eq!(accepted(&stream(&deltas)).message, AssistantMessage::calls(expected));
    }

    #[track_caller]
    fn check_early_end(stream: impl AsRef<[u8]>) {
        let error = read(stream, 1_000).expect_err("it was accepted");
        assert!(matches!(error, ProviderError::Transport { .. }), "{error:?}");
        assert_eq!(error.outcome(), Outcome::Transient);
        let expected = "the stream ended before the model said that it was done";
        assert_eq!(error.to_string(), expected);
    }

    #[track_caller]
    fn check_unreadable(stream: impl AsRef<[u8]>, expected: &str, body: impl AsRef<[u8]>) {
        let error = read(stream, 1_000).expect_err("it was accepted");
        let ProviderError::Response { detail, body: kept } = &error else { panic!("{error:?}") };
        assert!(detail.starts_with(expected), "{detail:?} and not {expected:?}");
        assert_eq!(kept.escape_ascii().to_string(), body.as_ref().escape_ascii().to_string());
    }

    #[track_caller]
    fn check_status(event: &str, expected: u16, words: &str) {
        let stream = events([chunk("{\"content\":\"Par\"}").as_str()]) + event;
        let error = read(stream, 1_000).expect_err("it was accepted");
        let ProviderError::Status(StatusError { status, message, .. }) = &error else {
            panic!("{error:?}")
        };
        assert_eq!((*status, message.as_deref()), (expected, Some(words)));
    }

    #[test]
    fn the_fragments_of_a_text_are_joined() {
        check_message(
            &[
                r#"{"role":"assistant","content":""}"#,
                r#"{"content":"a\n\"b"}"#,
                "{}",
                r#"{"role":"assistant","content":" c\u00e9"}"#,
            ],
            r#"{"role":"assistant","content":"a\n\"b c\u00e9"}"#,
        );
    }

    #[test]
    fn a_character_whose_escapes_come_apart_is_whole_again() {
        check_message(
            &[r#"{"content":"\ud83d"}"#, r#"{"content":"\ude42"}"#],
            r#"{"content":"\ud83d\ude42"}"#,
        );
    }

    #[test]
    fn null_and_empty_members_add_nothing() {
        check_message(
            &[
                r#"{"role":null,"content":null,"tool_calls":null,"refusal":null}"#,
                r#"{"content":"hi"}"#,
                r#"{"content":null,"tool_calls":[]}"#,
            ],
            r#"{"content":"hi","refusal":null}"#,
        );
        check_text(&(events([r#"{"choices":[{"delta":null}]}"#, STOP]) + DONE), "");
    }

    #[test]
    fn members_that_we_do_not_know_grow_by_the_form_of_their_values() {
        check_message(
            &[
                r#"{"reasoning_content":"I ","mine":[1],"odd":{"a":1},"n":1}"#,
                r#"{"reasoning_content":"think","reasoning":"so","mine":[{"b": 2}]}"#,
                r#"{"content":"hi","odd":{"a":2},"n":2.50,"refusal":"I "}"#,
                r#"{"refusal":"won't","mine":null}"#,
            ],
            r#"{"content":"hi","reasoning_content":"I think","mine":[1,{"b":2}],"odd":{"a":2},
                "n":2.50,"reasoning":"so","refusal":"I won't"}"#,
        );
    }

    #[test]
    fn content_in_parts_is_put_together_again() {
        check_message(
            &[
                r#"{"content":[{"type":"thinking","thinking":[{"type":"text","text":"se"}]}]}"#,
                r#"{"content":[{"type":"thinking","thinking":[{"type":"text","text":"cret"}]}]}"#,
                r#"{"content":[{"type":"thinking","thinking":[],"closed":true}]}"#,
                r#"{"content":[{"type":"text","text":"An"}]}"#,
                r#"{"content":"swer"}"#,
                r#"{"content":[{"type":"image","url":"x"},{"type":"text","text":" B"}]}"#,
            ],
            r#"{"content":[
                {"type":"thinking","thinking":[{"type":"text","text":"secret"}],"closed":true},
                {"type":"text","text":"Answer"},
                {"type":"image","url":"x"},
                {"type":"text","text":" B"}]}"#,
        );
        let at_once = r#"{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}"#;
        check_message(&[at_once], at_once);
        check_message(
            &[r#"{"content":"a"}"#, r#"{"content":[{"type":"image"}]}"#, r#"{"content":"b"}"#],
            r#"{"content":[{"type":"text","text":"a"},{"type":"image"},
                           {"type":"text","text":"b"}]}"#,
        );
    }

    #[test]
    fn reasoning_has_as_many_pieces_as_it_would_have_in_one_body() {
        let details = |list: &str| format!("{{\"reasoning_details\":[{list}]}}");
        let fragments = [
            r#"{"type":"reasoning.summary","summary":"**Ex","format":"f","index":0}"#,
            r#"{"type":"reasoning.summary","summary":"ec**","format":"f","index":0}"#,
            r#"{"type":"reasoning.encrypted","data":"AA","id":"rs_1","index":0}"#,
            r#"{"type":"reasoning.encrypted","data":"BB","id":"rs_2","index":0}"#,
            r#"{"type":"reasoning.summary","summary":"One","id":"rs_3","index":0}"#,
            r#"{"type":"reasoning.summary","summary":"Two","id":"rs_4","index":0}"#,
            r#"{"type":"reasoning.text","text":"one","signature":null,"index":0}"#,
            r#"{"type":"reasoning.text","text":", two","index":0}"#,
            r#"{"type":"reasoning.text","signature":"S1","index":0}"#,
            r#"{"type":"reasoning.text","text":"three","index":0}"#,
            r#"{"type":"reasoning.text","text":"four","index":1}"#,
        ];
        let deltas: Vec<String> = fragments.iter().map(|list| details(list)).collect();
        check_message(
            &deltas.iter().map(String::as_str).collect::<Vec<_>>(),
            &details(
                r#"{"type":"reasoning.summary","summary":"**Exec**","format":"f","index":0},
                   {"type":"reasoning.encrypted","data":"AA","id":"rs_1","index":0},
                   {"type":"reasoning.encrypted","data":"BB","id":"rs_2","index":0},
                   {"type":"reasoning.summary","summary":"One","id":"rs_3","index":0},
                   {"type":"reasoning.summary","summary":"Two","id":"rs_4","index":0},
                   {"type":"reasoning.text","text":"one, two","signature":"S1","index":0},
                   {"type":"reasoning.text","text":"three","index":0},
                   {"type":"reasoning.text","text":"four","index":1}"#,
            ),
        );
    }

    #[test]
    fn the_fragments_of_a_call_are_found_by_its_index() {
        check_calls(
            &[
                r#"{"index":0,"id":"a","type":"function",
                    "function":{"name":"shell","arguments":""}}"#,
                r#"{"index":1,"id":"b","type":"function","function":{"name":"read_file"}}"#,
                r#"{"index":0,"function":{"arguments":"{\"command\""}}"#,
                r#"{"index":1,"type":"function","function":{"name":null,"arguments":"{"}}"#,
                r#"{"index":0,"id":"","function":{"name":"","arguments":":1}"}}"#,
                r#"{"index":1,"id":null,"function":{"arguments":null}},
                   {"index":1,"function":{"arguments":"}"}}"#,
            ],
            &[("a", "shell", r#"{"command":1}"#), ("b", "read_file", "{}")],
        );
    }

    #[test]
    fn calls_that_all_have_the_index_0_are_told_apart_by_their_ids() {
        check_calls(
            &[
                r#"{"index":0,"id":"a","function":{"name":"shell","arguments":"{\"x\":"}}"#,
                r#"{"index":0,"function":{"arguments":"1}"}}"#,
                r#"{"index":0,"id":"b","function":{"name":"shell","arguments":"{\"x\":"}}"#,
                r#"{"index":0,"function":{"arguments":"2}"}}"#,
                r#"{"index":0,"id":"a","function":{"arguments":" "}}"#,
            ],
            &[("a", "shell", r#"{"x":1} "#), ("b", "shell", r#"{"x":2}"#)],
        );
    }

    #[test]
    fn ids_and_names_that_come_again_and_again_are_the_same_call() {
        let fragment = |arguments: &str| {
            format!(
                r#"{{"index":0,"id":"a","type":"function",
                    "function":{{"name":"shell","arguments":"{arguments}"}}}}"#
            )
        };
        check_calls(&[&fragment("{"), &fragment("}")], &[("a", "shell", "{}")]);
    }

    #[test]
    fn the_same_id_at_another_index_is_another_call() {
        check_calls(
            &[
                r#"{"index":0,"id":"x","function":{"name":"shell","arguments":"{}"}}"#,
                r#"{"index":1,"id":"x","function":{"name":"shell","arguments":"[]"}}"#,
            ],
            &[("x", "shell", "{}"), ("x", "shell", "[]")],
        );
    }

    #[test]
    fn calls_without_an_index_are_found_by_id_or_else_are_the_last_one() {
        check_calls(
            &[
                r#"{"id":"a","function":{"name":"shell","arguments":"{"}}"#,
                r#"{"id":"b","function":{"name":"shell","arguments":"["}}"#,
                r#"{"function":{"arguments":"]"}}"#,
                r#"{"id":"a","function":{"arguments":"}"}}"#,
            ],
            &[("a", "shell", "{}"), ("b", "shell", "[]")],
        );
    }

    #[test]
    fn another_name_is_another_call_although_nothing_else_says_so() {
        check_calls(
            &[
                r#"{"index":0,"function":{"name":"shell","arguments":"{}"}}"#,
                r#"{"index":0,"function":{"name":"read_file","arguments":"{}"}}"#,
            ],
            &[("", "shell", "{}"), ("", "read_file", "{}")],
        );
    }

    #[test]
    fn arguments_that_come_as_a_value_are_its_text() {
        for (fragments, expected) in [
            (&[r#"{ "a": [1, " "] }"#][..], r#"{"a":[1," "]}"#),
            (&["\"\"", r#"{"a":"\n"}"#, "null", "\"\""], r#"{"a":"\n"}"#),
            // The empty object only held the place of the other.
            (&["{}", r#""{\"a\":1}""#], r#"{"a":1}"#),
            (&[r#""{}""#, r#""{\"a\"""#, r#"":1}""#], r#"{"a":1}"#),
            (&[r#""{ }\n""#, "{}", r#"" {\"a\":1}""#], r#"{"a":1}"#),
            (&["{}", "\"\"", "null"], "{}"),
            (&["{}", "{}"], "{}"),
            (&["{}", r#""{\"a\"""#], r#"{"a""#),
            // What these mean is anybody's guess, and no JSON.
            (&[r#"{"a":1}"#, "{}"], r#"{"a":1}{}"#),
            (&[r#"{"a":1}"#, r#"{"a":2}"#], r#"{"a":1}{"a":2}"#),
            (&["[]", r#"{"a":1}"#], r#"[]{"a":1}"#),
            (&["{}", "[1]"], "{}[1]"),
            (&["{}", r#""x{}""#], "{}x{}"),
            (&[], ""),
        ] {
            let fragments: Vec<String> = ["null"]
                .iter()
                .chain(fragments)
                .map(|text| format!(r#"{{"index":0,"id":"a","function":{{"arguments":{text}}}}}"#))
                .collect();
            let fragments: Vec<_> = fragments.iter().map(String::as_str).collect();
            check_calls(&fragments, &[("a", "", expected)]);
        }
    }

    #[test]
    fn members_that_we_do_not_know_stay_on_their_call() {
        check_message(
            &[
                r#"{"content":null,"tool_calls":[
                    {"index":0,"id":"a","function":{"name":"f"},"extra_content":{"s":"A=="}},
                    {"index":1,"id":"b","function":{"name":"g","strict":true}}]}"#,
                r#"{"tool_calls":[
                    {"index":0,"function":{"arguments":"{}"},"extra_content":null}]}"#,
                r#"{"tool_calls":[{"index":1,"extra_content":{"s":"B=="}}]}"#,
            ],
            r#"{"content":null,"tool_calls":[
                {"id":"a","type":"function","function":{"name":"f","arguments":"{}"},
                 "extra_content":{"s":"A=="}},
                {"id":"b","type":"function","function":{"name":"g","strict":true},
                 "extra_content":{"s":"B=="}}]}"#,
        );
    }

    #[test]
    fn a_finish_reason_that_says_nothing_ends_nothing() {
        let says_nothing = |reason: &str| {
            let delta = "{\"content\":\"hi\"}";
            format!("{{\"choices\":[{{\"delta\":{delta},\"finish_reason\":{reason}}}]}}")
        };
        for reason in ["\"\"", "\"null\"", "null"] {
            let chunk = says_nothing(reason);
            check_text(&(events([chunk.as_str(), STOP]) + DONE), "hi");
            check_early_end(events([chunk.as_str()]) + DONE);
        }
    }

    #[test]
    fn a_finish_reason_that_refuses_is_not_taken_back() {
        let length = r#"{"choices":[{"delta":{},"finish_reason":"length"}]}"#;
        for chunks in [[length, STOP], [STOP, length]] {
            let completion = accepted(&(events(chunks) + DONE));
            assert_eq!(completion.finish_reason, FinishReason::Truncated("length".to_owned()));
        }
    }

    #[test]
    fn chunks_without_choices_are_fine_and_usage_counts_wherever_it_stands() {
        let usage = |name: &str, prompt: u32| {
            format!("\"{name}\":{{\"prompt_tokens\":{prompt},\"completion_tokens\":3}}")
        };
        let last = format!("{{\"choices\":[],{}}}", usage("usage", 9));
        let null = format!("{{\"choices\":null,{}}}", usage("usage", 9));
        let none = format!("{{{}}}", usage("usage", 9));
        let inside = format!("{{\"choices\":[{{\"delta\":{{}},{}}}]}}", usage("usage", 9));
        let first = format!(
            "{{\"choices\":[],\"model\":\"\",\"prompt_filter_results\":[{{}}],{}}}",
            usage("usage", 8)
        );
        for chunk in [&last, &null, &none, &inside] {
            for chunks in [[&first, STOP, chunk], [&first, chunk, STOP]] {
                let after = r#"{"model":"m","choices":[],"usage":{}}"#;
                let completion =
                    accepted(&(events(chunks) + &events([after, r#"{"model":""}"#]) + DONE));
                assert_eq!(completion.usage.prompt_tokens, Some(9), "{chunks:?}");
                assert_eq!(completion.usage.completion_tokens, Some(3));
                assert_eq!(completion.model.as_deref(), Some("m"));
            }
        }
    }

    #[test]
    fn choices_other_than_the_first_are_not_looked_at() {
        let other = r#"{"index":1,"delta":{"content":"no"},"finish_reason":"length"}"#;
        let ours = r#"{"index":0,"delta":{"content":"yes"}}"#;
        let chunks =
            [format!("{{\"choices\":[{other}]}}"), format!("{{\"choices\":[{other},{ours}]}}")];
        check_text(&(events(chunks.iter().map(String::as_str).chain([STOP])) + DONE), "yes");
        check_early_end(events(chunks.iter().map(String::as_str)) + DONE);
    }

    #[test]
    fn the_stream_is_done_when_it_says_so_and_not_before() {
        let mut assembler = Assembler::new();
        let usage = r#"{"choices":[],"usage":{"prompt_tokens":9}}"#;
        for chunk in [chunk(r#"{"content":"hi"}"#).as_str(), STOP, usage] {
            assembler.push(events([chunk]).as_bytes()).unwrap();
            assert!(!assembler.is_done(), "after {chunk}");
        }
        // What stands behind it, be it in the same piece, is not looked at.
        assembler.push(b"data:[DONE]\n\ndata: <garbage>\n\n").unwrap();
        assert!(assembler.is_done());
        assembler.push(b"\xff\xff\n\n").unwrap();
        let completion = assembler.finish().unwrap();
        assert_eq!(completion.message.as_text(), "hi");
        assert_eq!(completion.usage.prompt_tokens, Some(9));
    }

    #[test]
    fn the_end_of_the_bytes_is_an_end_where_a_finish_reason_came() {
        let start = events([chunk(r#"{"content":"hi"}"#).as_str()]);
        check_text(&format!("{start}{}", events([STOP])), "hi");
        check_text(&format!("{start}data: {STOP}\n"), "hi");
        check_text(&format!("{start}data: {STOP}"), "hi");
        check_text(&format!("{start}data: {STOP}\n\ndata: [DONE]"), "hi");
    }

    #[test]
    fn what_comes_after_a_finish_reason_is_no_less_a_part_of_the_answer() {
        let start = events([chunk(r#"{"content":"he"}"#).as_str(), STOP]);
        check_early_end(format!(
            "{start}data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"LOST"
        ));
        check_early_end(format!("{start}data: {{\"choices\":[],\"usa"));
        let more = events([chunk(r#"{"content":"llo"}"#).as_str()]);
        check_early_end(format!("{start}{more}"));
        check_text(&format!("{start}{more}{}{DONE}", events([STOP])), "hello");
        check_early_end(format!("{start}{more}{}", events([STOP])));
        // A server that gives the reason with every piece.
        let piece = |text| {
            let delta = format!("{{\"content\":\"{text}\"}}");
            events([chunk(&delta).replace("null", "\"stop\"").as_str()])
        };
        let pieces = piece("one ") + &piece("two");
        check_early_end(&pieces);
        check_text(&(pieces + DONE), "one two");
    }

    #[test]
    fn a_stream_that_ends_before_the_model_was_done_is_never_an_answer() {
        let text = events([chunk(r#"{"content":"The answer is"}"#).as_str()]);
        let call = chunk(r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"f"}}]}"#);
        let call = events([call.as_str()]);
        for start in ["", ": ping\n\n", &text, &call] {
            check_early_end(start);
            check_early_end(format!("{start}{DONE}"));
            let last = format!("{start}data: {STOP}");
            check_early_end(&last[..last.len() - 1]);
        }
        check_early_end(format!("{text}data: \u{1f642}").as_bytes().strip_suffix(b"\x82").unwrap());
    }

    #[test]
    fn an_error_event_is_an_error_by_its_code() {
        let overloaded = r#"{"error":{"type":"overloaded_error","message":"Busy","code":529}}"#;
        check_status(&format!("event: error\ndata: {overloaded}\n\n"), 529, "Busy");
        check_status(&events([overloaded]), 529, "Busy");
        check_status(
            "event: error\ndata: {\"message\":\"Slow\",\"code\":\"429\"}\n\n",
            429,
            "Slow",
        );
        check_status(&events([r#"{"object":"error","message":"Long","code":400}"#]), 400, "Long");
        let inside = r#"{"choices":[{"delta":{},"error":{"code":502,"message":"Up"}}]}"#;
        let error = read(events([inside, STOP]), 1_000).unwrap_err();
        assert!(
            matches!(error, ProviderError::Status(StatusError { status: 502, .. })),
            "{error:?}"
        );
    }

    #[test]
    fn an_error_event_without_a_code_is_an_error_all_the_same() {
        let expected = "the endpoint reports an error: no idea";
        for data in ["upstream timed out", "{\"a\":1}"] {
            let error = read(format!("event: error\ndata: {data}\n\n"), 1_000).unwrap_err();
            assert_eq!(error.to_string(), format!("the endpoint answered 500: {data}"));
            assert_eq!(error.outcome(), Outcome::Transient);
        }
        let field =
            "error: {\"code\":400,\"message\":\"the request exceeds the available context size\"}";
        let error = read(format!("{field}\n\n"), 1_000).unwrap_err();
        assert_eq!(error.outcome(), Outcome::Context, "{error:?}");
        let event = "{\"error\":\"no idea\"}";
        for stream in [events([event]), events([STOP, event]) + DONE] {
            let error = read(stream, 1_000).unwrap_err();
            assert_eq!(
                (error.to_string().as_str(), error.outcome()),
                (expected, Outcome::Protocol)
            );
        }
        let bare = events(["{\"code\":\"DataInspectionFailed\",\"message\":\"no\"}"]);
        assert_eq!(read(bare, 1_000).unwrap_err().outcome(), Outcome::Filtered);
    }

    #[test]
    fn events_of_other_kinds_say_nothing() {
        let text = stream(&[r#"{"content":"hi"}"#]);
        check_text(&format!("event: ping\ndata: ping\n\n{text}"), "hi");
        check_text(&format!("event: ping\ndata: {{}}\n\n{text}"), "hi");
    }

    #[test]
    fn a_whole_message_in_place_of_a_delta_is_taken() {
        let chunk = r#"{"choices":[{"message":{"content":"hello"},"finish_reason":"stop"}]}"#;
        check_text(&events([chunk]), "hello");
    }

    #[test]
    fn calls_of_one_list_are_told_apart_without_index_and_id() {
        let call = |path: &str| {
            format!("{{\"function\":{{\"name\":\"read_file\",\"arguments\":\"{path}\"}}}}")
        };
        let both = format!("{},{}", call("a"), call("b"));
        check_calls(&[&both], &[("", "read_file", "a"), ("", "read_file", "b")]);
    }

    #[test]
    fn an_event_that_is_no_piece_of_a_completion_is_shown() {
        for (event, expected) in [
            ("{\"choices\":[", "an event ends in the middle of its JSON"),
            ("hello", "an event is not one JSON value"),
            ("{} {}", "an event is not one JSON value"),
            ("<html>", "an event is an HTML page"),
            ("7", "no choices: an event is a number"),
            ("{\"choices\":{}}", "choices is an object and not a list"),
            ("{\"choices\":[7]}", "choices[0] is a number and not an object"),
            ("{\"choices\":[{\"delta\":7}]}", "choices[0].delta is a number and not an object"),
            (
                "{\"choices\":[{\"finish_reason\":7}]}",
                "choices[0].finish_reason is a number and not a string",
            ),
            (
                "{\"choices\":[{\"delta\":{\"tool_calls\":{}}}]}",
                "choices[0].delta.tool_calls is an object and not a list",
            ),
            (
                "{\"choices\":[{\"delta\":{\"tool_calls\":[{},7]}}]}",
                "choices[0].delta.tool_calls[1] is a number and not an object",
            ),
            ("{\"a\":1,\"a\":2}", "an event: \"a\" is given twice"),
        ] {
            check_unreadable(events([event, STOP]) + DONE, expected, event);
        }
    }

    #[test]
    fn a_message_of_the_wrong_form_is_named_and_the_stream_shown() {
        for (delta, expected) in [
            (r#"{"content":7}"#, "choices[0].message.content: neither"),
            (r#"{"content":["x"]}"#, "choices[0].message.content[0]"),
            (r#"{"tool_calls":[{"id":7}]}"#, "choices[0].message.tool_calls[0].id"),
            (r#"{"content":"\ud83d"}"#, "choices[0].message.content"),
        ] {
            let stream = stream(&[delta]);
            check_unreadable(&stream, expected, &stream);
        }
        let latin = b"data: caf\xe9\n\n";
        check_unreadable(latin, "the stream is not UTF-8 at byte 9", latin);
    }

    #[test]
    fn more_than_a_message_can_have_is_an_error() {
        let calls: Vec<String> = (0..=128).map(|n| format!("{{\"index\":{n}}}")).collect();
        let members: Vec<String> = (0..=1_000).map(|n| format!("{{\"m{n}\":{n}}}")).collect();
        let calls = chunk(&format!("{{\"tool_calls\":[{}]}}", calls.join(",")));
        check_unreadable(
            events([&*calls]),
            "choices[0].delta.tool_calls: more than 128 calls",
            &calls,
        );
        let members: Vec<&str> = members.iter().map(String::as_str).collect();
        check_unreadable(stream(&members), "choices[0].delta.more than", chunk(members[100]));
    }

    #[test]
    fn lists_in_lists_do_not_go_deeper_than_they_have_to() {
        let depth = 50_000;
        let part = "{\"type\":\"thinking\",\"thinking\":[".repeat(depth) + &"]}".repeat(depth);
        let delta = format!("{{\"content\":[{part}]}}");
        check_message(&[&delta], &delta);
    }

    #[test]
    fn a_body_in_the_place_of_a_stream_is_recognised_by_its_start() {
        for start in ["{", " \n{\"a\"", "\u{feff}[", "<!DOCTYPE", "\"ok\""] {
            assert_eq!(is_one_body(start.as_bytes()), Some(true), "{start}");
        }
        for start in ["data: {", ": ping", "\u{feff}data", "\n\nevent: x", "Internal Server Error"]
        {
            assert_eq!(is_one_body(start.as_bytes()), Some(false), "{start}");
        }
        for start in ["", " \r\n", "\u{feff}"] {
            assert_eq!(is_one_body(start.as_bytes()), None, "{start:?}");
        }
    }

    /// The time for twice as much would be four times as long, and not bearable here, if anything
    /// were gone through again.
    #[test]
    fn two_hundred_thousand_deltas_are_read_in_linear_time_and_space() {
        let event = events([&*chunk(r#"{"content":"x","reasoning":"y"}"#)]);
        let mut assembler = Assembler::new();
        for _ in 0..200_000 {
            assembler.push(event.as_bytes()).unwrap();
        }
        assembler.push(events([STOP]).as_bytes()).unwrap();
        assert_eq!(assembler.start.len(), KEPT);
        assert_eq!(assembler.finish().unwrap().message.as_text().len(), 200_000);
    }
}

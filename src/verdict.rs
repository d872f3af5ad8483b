//! Whether a completion can be trusted: is it an answer, are there calls to run, or is it neither?
//!
//! Every rule by which a completion is refused stands here, and nothing here does anything: the
//! loop asks for a verdict first, logs the message together with it, and acts only then.

mod ids;
mod textcall;
mod thinking;

use std::fmt;
use std::num::NonZeroU64;

use serde::de::IgnoredAny;

use crate::message::{AssistantMessage, ToolCall};
use crate::outcome::Outcome;
use crate::provider::{Completion, FinishReason, ToolDefinition};

pub use ids::make_ids_unique;
pub use textcall::{TextCall, read as text_calls};
pub use thinking::answer_text;

/// Oddities of an endpoint that the user has decided to live with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Accept {
    /// Tool calls may come without ids; fresh ones are made.
    pub missing_ids: bool,
    /// Further finish reasons that mean the same as `stop`.
    pub finish_reasons: Vec<String>,
}

/// What an accepted completion is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verdict {
    /// Its text is the answer.
    Answer,
    /// Its tool calls are to be run.
    Calls,
}

/// Why a completion is not accepted. Nothing of it is ever executed or presented as an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// The model was cut off.
    Truncated(Truncation),
    /// A filter or the model itself refused.
    Filtered {
        /// The finish reason, where it was that which told.
        finish_reason: Option<String>,
        /// The model's own words, where there are any.
        words: Option<String>,
    },
    /// There is no answer text.
    Empty {
        /// The endpoint announced tool calls and sent none.
        calls_announced: bool,
    },
    /// The conversation fills the model's context, as this finish reason says.
    Context(String),
    /// The endpoint broke the protocol.
    Protocol(Violation),
}

/// How it is known that the model was cut off.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Truncation {
    /// The endpoint says so, in this word.
    FinishReason(String),
    /// The completion used up the tokens that it was allowed, whatever the finish reason says.
    TokenLimit {
        /// Tokens of the completion.
        completion_tokens: u64,
        /// Tokens that the request allowed.
        max_tokens: u64,
    },
    /// The arguments of a tool call end in the middle of the JSON.
    CutArguments {
        /// The tool that was to be called.
        tool: String,
    },
}

/// How an endpoint broke the protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Violation {
    /// A finish reason that we don't know.
    UnknownFinishReason(String),
    /// A finish reason that says that the endpoint failed or gave up in the middle.
    Failed(String),
    /// A tool call without a name.
    CallWithoutName,
    /// A tool call without an id.
    CallWithoutId {
        /// The tool that was to be called.
        tool: String,
    },
    /// A tool call that stands in the text, where nothing runs it.
    CallAsText {
        /// The tool that was to be called.
        tool: String,
    },
}

/// Judges a completion that was requested with `max_tokens` and `tools`.
///
/// In this order: a refusal; a cut, be it said, counted or seen; a finish reason that nobody knows;
/// then calls, which are taken whatever the finish reason says of them, because servers say `stop`
/// there too; then the text.
///
/// # Errors
///
/// The first rule that the completion breaks.
pub fn judge(
    completion: &Completion,
    max_tokens: Option<NonZeroU64>,
    tools: &[ToolDefinition],
    accept: &Accept,
) -> Result<Verdict, Refusal> {
    let message = &completion.message;
    let words = message.refusal();
    match &completion.finish_reason {
        FinishReason::Filtered(word) => {
            return Err(Refusal::Filtered { finish_reason: Some(word.clone()), words });
        }
        _ if words.is_some() => return Err(Refusal::Filtered { finish_reason: None, words }),
        FinishReason::Truncated(word) => {
            return Err(Refusal::Truncated(Truncation::FinishReason(word.clone())));
        }
        FinishReason::Overflow(word) => return Err(Refusal::Context(word.clone())),
        FinishReason::Failed(word) => {
            return Err(Refusal::Protocol(Violation::Failed(word.clone())));
        }
        _ => {}
    }
    if let Some(truncation) = hidden_truncation(completion, max_tokens) {
        return Err(Refusal::Truncated(truncation));
    }
    match &completion.finish_reason {
        FinishReason::Other(word) if !accept.finish_reasons.contains(word) => {
            return Err(Refusal::Protocol(Violation::UnknownFinishReason(word.clone())));
        }
        FinishReason::ToolCalls if message.tool_calls.is_empty() => {
            return Err(Refusal::Empty { calls_announced: true });
        }
        _ => {}
    }
    if message.tool_calls.is_empty() {
        judge_text(message, tools)
    } else {
        judge_calls(message, accept)
    }
}

/// A cut that the finish reason does not tell: servers and proxies relabel `length`.
fn hidden_truncation(
    completion: &Completion,
    max_tokens: Option<NonZeroU64>,
) -> Option<Truncation> {
    if let (Some(used), Some(max)) = (completion.usage.completion_tokens, max_tokens)
        && used >= max.get()
    {
        return Some(Truncation::TokenLimit { completion_tokens: used, max_tokens: max.get() });
    }
    let cut = completion.message.tool_calls.iter().find(|call| is_cut(&call.arguments))?;
    Some(Truncation::CutArguments { tool: cut.name.clone() })
}

/// Whether JSON text ends before the value does. Empty text is no arguments, not cut ones.
///
/// A parser stops at the first fault, and local models write line breaks into strings; so where it
/// does not simply run out of text, the text is looked through for a string or a bracket that
/// stays open. A bracket that closes another kind is a fault of its own, and no cut.
fn is_cut(arguments: &str) -> bool {
    if arguments.trim().is_empty() {
        return false;
    }
    match serde_json::from_str::<IgnoredAny>(arguments) {
        Ok(_) => false,
        Err(error) => error.is_eof() || stays_open(arguments),
    }
}

fn stays_open(text: &str) -> bool {
    let mut open = Vec::new();
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => loop {
                match bytes.next() {
                    None => return true,
                    Some(b'"') => break,
                    Some(b'\\') => drop(bytes.next()),
                    Some(_) => {}
                }
            },
            b'{' => open.push(b'}'),
            b'[' => open.push(b']'),
            b'}' | b']' if open.pop() != Some(byte) => return false,
            _ => {}
        }
    }
    !open.is_empty()
}

fn judge_calls(message: &AssistantMessage, accept: &Accept) -> Result<Verdict, Refusal> {
    for ToolCall { id, name, .. } in &message.tool_calls {
        if name.trim().is_empty() {
            return Err(Refusal::Protocol(Violation::CallWithoutName));
        }
        if id.trim().is_empty() && !accept.missing_ids {
            return Err(Refusal::Protocol(Violation::CallWithoutId { tool: name.clone() }));
        }
    }
    Ok(Verdict::Calls)
}

fn judge_text(message: &AssistantMessage, tools: &[ToolDefinition]) -> Result<Verdict, Refusal> {
    // The old form of a call. Nothing runs it, and what is said around it is no answer.
    if message.has_function_call() {
        return Err(Refusal::Empty { calls_announced: true });
    }
    let text = answer_text(message);
    if text.trim().is_empty() {
        return Err(Refusal::Empty { calls_announced: false });
    }
    let names: Vec<&str> = tools.iter().map(|tool| tool.name).collect();
    let calls = text_calls(text, &names);
    match calls.iter().find(|call| names.contains(&&*call.name)) {
        Some(call) => {
            Err(Refusal::Protocol(Violation::CallAsText { tool: call.name.clone().into_owned() }))
        }
        None => Ok(Verdict::Answer),
    }
}

impl Refusal {
    /// The outcome of a run that ends for this reason.
    pub fn outcome(&self) -> Outcome {
        match self {
            Refusal::Truncated(_) => Outcome::Truncated,
            Refusal::Filtered { .. } => Outcome::Filtered,
            Refusal::Empty { .. } => Outcome::Empty,
            Refusal::Context(_) => Outcome::Context,
            Refusal::Protocol(_) => Outcome::Protocol,
        }
    }

    /// What the user can do about it.
    pub fn advice(&self) -> String {
        match self {
            Refusal::Truncated(Truncation::CutArguments { .. } | Truncation::FinishReason(_)) => {
                "raise --max-tokens or the server's own limit, or ask for less at once".to_owned()
            }
            Refusal::Truncated(Truncation::TokenLimit { .. }) => "raise --max-tokens".to_owned(),
            Refusal::Filtered { .. } => "change the prompt or the model".to_owned(),
            Refusal::Empty { .. } => "run it again, or use another model".to_owned(),
            Refusal::Context(_) => {
                "raise the server's context size, start a new session, or ask for \
                                    less at once"
                    .to_owned()
            }
            Refusal::Protocol(Violation::Failed(_)) => {
                "run it again; if it happens again, see the server's own log".to_owned()
            }
            Refusal::Protocol(Violation::UnknownFinishReason(word)) if is_plain(word) => format!(
                "if this endpoint means a finished answer by it, add --accept finish-reason:{word}"
            ),
            Refusal::Protocol(Violation::UnknownFinishReason(_)) => {
                "check the endpoint, or use another".to_owned()
            }
            Refusal::Protocol(Violation::CallWithoutId { .. }) => {
                "if this endpoint never sends ids, add --accept missing-ids".to_owned()
            }
            Refusal::Protocol(Violation::CallWithoutName) => {
                "check the endpoint's tool-call parser".to_owned()
            }
            Refusal::Protocol(Violation::CallAsText { .. }) => {
                "turn the server's tool-call parser on: llama.cpp --jinja with a template that \
                 knows tools, vLLM --enable-auto-tool-choice --tool-call-parser NAME, SGLang \
                 --tool-call-parser NAME, Ollama a model tagged \"tools\""
                    .to_owned()
            }
        }
    }
}

/// Whether a word can be pasted into a command line as it is.
fn is_plain(word: &str) -> bool {
    word.len() <= 80 && word.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Truncated(Truncation::FinishReason(word)) => {
                write!(f, "the model was cut off (finish reason {word})")
            }
            Refusal::Truncated(Truncation::TokenLimit { completion_tokens, max_tokens }) => write!(
                f,
                "the completion used up its {max_tokens} tokens ({completion_tokens} reported), \
                 so the model was cut off"
            ),
            Refusal::Truncated(Truncation::CutArguments { tool }) => {
                write!(f, "the arguments of a call of {tool} end in the middle")
            }
            Refusal::Filtered { finish_reason, words } => {
                f.write_str("the request was refused")?;
                if let Some(word) = finish_reason {
                    write!(f, " (finish reason {word})")?;
                }
                words.as_ref().map_or(Ok(()), |words| write!(f, ": {words}"))
            }
            Refusal::Empty { calls_announced: true } => {
                f.write_str("the endpoint announced tool calls and sent none")
            }
            Refusal::Empty { calls_announced: false } => {
                f.write_str("the model finished without an answer text")
            }
            Refusal::Context(word) => {
                write!(f, "the conversation fills the model's context (finish reason {word})")
            }
            Refusal::Protocol(Violation::Failed(word)) => {
                write!(f, "the endpoint failed in the middle of the completion ({word})")
            }
            Refusal::Protocol(Violation::UnknownFinishReason(word)) => {
                write!(f, "unknown finish reason \"{word}\"")
            }
            Refusal::Protocol(Violation::CallWithoutName) => {
                f.write_str("a tool call without a name; nothing of the message was executed")
            }
            Refusal::Protocol(Violation::CallWithoutId { tool }) => {
                write!(f, "a call of {tool} without an id; nothing of the message was executed")
            }
            Refusal::Protocol(Violation::CallAsText { tool }) => write!(
                f,
                "the text of the answer is a call of {tool}: the endpoint's tool-call parser seems \
                 to be off"
            ),
        }
    }
}

impl std::error::Error for Refusal {}

#[cfg(test)]
mod fuzz;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Json;
    use crate::provider::Usage;

    fn tools() -> Vec<ToolDefinition> {
        let raw = serde_json::from_str("{}").unwrap();
        ["shell", "read_file"]
            .map(|name| ToolDefinition { name, description: "", parameters: Json::from_raw(raw) })
            .to_vec()
    }

    /// A completion from the `choice` of a response.
    fn completion(finish_reason: &str, message: &str) -> Completion {
        let members = serde_json::from_str(message).unwrap();
        Completion {
            message: AssistantMessage::from_members(members).unwrap(),
            finish_reason: FinishReason::parse(Some(finish_reason)),
            usage: Usage { completion_tokens: Some(64), ..Usage::default() },
            model: None,
        }
    }

    #[track_caller]
    fn check(
        finish_reason: &str,
        message: &str,
        max_tokens: u64,
        expected: Result<Verdict, Refusal>,
    ) {
        let completion = completion(finish_reason, message);
        let max_tokens = NonZeroU64::new(max_tokens);
        let judged = judge(&completion, max_tokens, &tools(), &Accept::default());
        assert_eq!(judged, expected, "{finish_reason} {message}");
    }

    const CALL: &str = r#"{"content":null,"tool_calls":[{"id":"c1","type":"function",
        "function":{"name":"shell","arguments":"{\"command\":\"touch pwned\"}"}}]}"#;
    const CUT: &str = r##"{"tool_calls":[{"id":"c1",
        "function":{"name":"shell","arguments":"{\"command\":\"# Title\\nfirst li"}}]}"##;

    fn truncated(truncation: Truncation) -> Result<Verdict, Refusal> {
        Err(Refusal::Truncated(truncation))
    }

    fn protocol(violation: Violation) -> Result<Verdict, Refusal> {
        Err(Refusal::Protocol(violation))
    }

    fn unknown(word: &str) -> Result<Verdict, Refusal> {
        protocol(Violation::UnknownFinishReason(word.to_owned()))
    }

    #[test]
    fn whole_calls_run_whatever_the_finish_reason_says_of_them() {
        for word in ["tool_calls", "stop", "", "function_call"] {
            check(word, CALL, 0, Ok(Verdict::Calls));
        }
    }

    #[test]
    fn a_text_that_the_model_finished_is_an_answer() {
        for word in ["stop", "", "STOP"] {
            check(word, r#"{"content":"done"}"#, 0, Ok(Verdict::Answer));
        }
        let parts = r#"{"content":[{"type":"thinking","thinking":[{"type":"text","text":"x"}]},
            {"type":"text","text":"Answer"}]}"#;
        check("stop", parts, 0, Ok(Verdict::Answer));
    }

    #[test]
    fn a_cut_off_message_is_refused_even_when_its_arguments_parse() {
        for word in ["length", "max_tokens", "model_length"] {
            let cut = || truncated(Truncation::FinishReason(word.to_owned()));
            check(word, CALL, 0, cut());
            check(word, r#"{"content":"Let me check the catalogue:"}"#, 0, cut());
            check(
                word,
                r#"{"content":"<function=shell><parameter=command>rm -rf build/"}"#,
                0,
                cut(),
            );
        }
    }

    #[test]
    fn a_spent_token_limit_is_a_cut_whatever_the_finish_reason_says() {
        let limit = || truncated(Truncation::TokenLimit { completion_tokens: 64, max_tokens: 64 });
        check("tool_calls", CALL, 64, limit());
        check("stop", r#"{"content":"the gradient desc"}"#, 64, limit());
        check("tool_calls", CALL, 65, Ok(Verdict::Calls));
        check("stop", r#"{"content":"the gradient desc"}"#, 0, Ok(Verdict::Answer));
    }

    #[test]
    fn arguments_that_end_in_the_middle_are_a_cut_and_other_faults_are_the_tools_business() {
        let cut = || truncated(Truncation::CutArguments { tool: "shell".to_owned() });
        check("tool_calls", CUT, 0, cut());
        check("stop", CUT, 0, cut());
        let call = |arguments: &str| {
            let function = format!(r#"{{"name":"shell","arguments":{arguments}}}"#);
            format!(r#"{{"tool_calls":[{{"id":"1","function":{function}}}]}}"#)
        };
        for whole in [
            r#""""#,
            "null",
            "{}",
            r#""{]""#,
            r#""{\"a\":\"l1\nl2\"}""#,
            r#""{}}{""#,
            r#""not json""#,
            r#""[1]""#,
        ] {
            check("tool_calls", &call(whole), 0, Ok(Verdict::Calls));
        }
        for part in [
            r#""{\"path\":\"x\",\"content\":\"l1\nl2""#,
            r#""{\"a\":-""#,
            r#""{\"a\":[1.""#,
            r#""{""#,
            r#""{\"path""#,
            r#""[1,""#,
            r#""tru""#,
        ] {
            check("tool_calls", &call(part), 0, cut());
        }
    }

    #[test]
    fn a_refusal_is_never_an_answer_and_its_calls_never_run() {
        let filtered = |finish_reason: Option<&str>, words: Option<&str>| {
            Err(Refusal::Filtered {
                finish_reason: finish_reason.map(str::to_owned),
                words: words.map(str::to_owned),
            })
        };
        check("content_filter", CALL, 0, filtered(Some("content_filter"), None));
        for message in [
            r#"{"content":null,"refusal":"No."}"#,
            r#"{"content":"","refusal":"No."}"#,
            r#"{"content":[{"type":"refusal","refusal":"No."}]}"#,
            &CALL.replace("null", r#""","refusal":"No.""#),
        ] {
            check("stop", message, 0, filtered(None, Some("No.")));
        }
        check("stop", r#"{"content":"fine","refusal":null}"#, 0, Ok(Verdict::Answer));
        check("stop", r#"{"content":"fine","refusal":""}"#, 0, Ok(Verdict::Answer));
    }

    #[test]
    fn an_unknown_finish_reason_is_refused_unless_the_user_accepts_it() {
        for message in [r#"{"content":null}"#, r#"{"content":"done"}"#, CALL] {
            check("end_turn", message, 0, unknown("end_turn"));
            let failed = Violation::Failed("network_error".to_owned());
            check("network_error", message, 0, protocol(failed));
            let full = "model_context_window_exceeded".to_owned();
            check("model_context_window_exceeded", message, 0, Err(Refusal::Context(full)));
        }
        let accept = Accept { finish_reasons: vec!["eos".to_owned()], ..Accept::default() };
        let accepted = completion("eos", r#"{"content":"done"}"#);
        assert_eq!(judge(&accepted, None, &tools(), &accept), Ok(Verdict::Answer));
    }

    #[test]
    fn nothing_said_is_no_answer() {
        let silent = || Err(Refusal::Empty { calls_announced: false });
        for message in [
            r#"{}"#,
            r#"{"content":null,"reasoning_content":"long"}"#,
            r#"{"content":" \n"}"#,
            r#"{"content":[{"type":"thinking","thinking":[]}]}"#,
            r#"{"content":"<think>secret</think>\n"}"#,
            r#"{"content":"\n<think>and so on"}"#,
        ] {
            check("stop", message, 0, silent());
        }
        let thought = r#"{"content":"<think>hm</think>42"}"#;
        check("stop", thought, 0, Ok(Verdict::Answer));
        let legacy = r#"{"content":"Running ls now.","function_call":{"name":"shell"}}"#;
        check("stop", legacy, 0, Err(Refusal::Empty { calls_announced: true }));
        for nothing in ["null", "{}", "\"\"", r#"{"name":"","arguments":""}"#, r#"{"name":null}"#] {
            let answer = format!(r#"{{"content":"42","function_call":{nothing}}}"#);
            check("stop", &answer, 0, Ok(Verdict::Answer));
        }
        let preamble = r#"{"content":"I will read the brief first.","tool_calls":[]}"#;
        check("tool_calls", preamble, 0, Err(Refusal::Empty { calls_announced: true }));
    }

    #[test]
    fn a_call_without_a_name_or_an_id_aborts_before_anything_runs() {
        let nameless = r#"{"tool_calls":[{"id":"1","function":{"name":"shell","arguments":"{}"}},
            {"id":"2","function":{"name":"","arguments":""}}]}"#;
        check("tool_calls", nameless, 0, protocol(Violation::CallWithoutName));
        let anonymous = r#"{"tool_calls":[{"function":{"name":"shell","arguments":"{}"}}]}"#;
        let without_id = Violation::CallWithoutId { tool: "shell".to_owned() };
        check("tool_calls", anonymous, 0, protocol(without_id));
        let accept = Accept { missing_ids: true, ..Accept::default() };
        let accepted = completion("tool_calls", anonymous);
        assert_eq!(judge(&accepted, None, &tools(), &accept), Ok(Verdict::Calls));
    }

    #[test]
    fn what_a_refusal_says_names_the_word_and_the_way_out() {
        let refusal = Refusal::Protocol(Violation::UnknownFinishReason("eos".to_owned()));
        assert_eq!(refusal.to_string(), "unknown finish reason \"eos\"");
        assert!(refusal.advice().ends_with("add --accept finish-reason:eos"));
        let refusal = Refusal::Protocol(Violation::UnknownFinishReason("x; rm -rf y".to_owned()));
        assert!(!refusal.advice().contains("rm"));
    }
}

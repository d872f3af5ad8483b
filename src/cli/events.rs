//! What happens in a run, as JSON objects for machines.
//!
//! They tell how a run goes on, and are no second log: long texts are cut, as the session has them
//! whole.

use std::net::SocketAddr;
use std::time::Duration;

use super::ledger::{Tokens, instructions, milliseconds};
use super::object::Object;
use crate::agent::Event;
use crate::message::ToolCall;
use crate::provider::Notice;
use crate::secret::Mask;
use crate::text::both_ends;
use crate::tools::Output;

/// Bytes of a text at each of its ends.
const END_MAX: usize = 2_000;

/// The type of an event, and its members; `took` is how long a tool call or verification did.
pub(super) fn object(event: &Event<'_>, took: Duration, mask: &Mask) -> (&'static str, Object) {
    let object = Object::new();
    match event {
        Event::StepStarted { step } => ("step", object.with("step", step)),
        Event::Completed { step, finish_reason, usage } => {
            let reason = finish_reason.word().map(|word| mask.name(word));
            let tokens = Tokens::from(*usage).object();
            let object = object.with("step", step).with_word("finish_reason", reason.as_deref());
            ("completion", object.with_object("tokens", Some(tokens)))
        }
        Event::ToolStarted { step, call } => {
            let object = named(object.with("step", step), call, mask);
            ("tool_call", long(object, "arguments", &call.arguments, mask))
        }
        Event::ToolEnded { step, call, output } => {
            let object = named(object.with("step", step), call, mask);
            ("tool_result", printed(object, output, took, mask))
        }
        Event::SummingUp => ("summing_up", object),
        Event::SummedUp { summary, usage } => {
            let tokens = Tokens::from(*usage).object();
            ("summary", object.with("summary", summary).with_object("tokens", Some(tokens)))
        }
        Event::VerifyStarted { attempt, attempts } => {
            ("verify", object.with("attempt", attempt).with("attempts", attempts))
        }
        Event::VerifyEnded { attempt, attempts, verified } => {
            let object = object.with("attempt", attempt).with("attempts", attempts);
            let object = object.with("passed", verified.passed);
            ("verified", printed(object, &verified.output, took, mask))
        }
        Event::Instructions(file) => ("instructions", instructions(file)),
        Event::Notice(notice) => self::notice(notice, object),
        Event::Warning(text) => ("warning", object.with("warning", text)),
    }
}

fn notice(notice: &Notice<'_>, object: Object) -> (&'static str, Object) {
    match notice {
        Notice::Retry { retry, max_retries, pause, error } => {
            let object = object.with("retry", retry).with("max_retries", max_retries);
            let object = object.with("pause_ms", milliseconds(*pause));
            ("retry", object.with("error", error.to_string()))
        }
        Notice::AskAgain { time, times, error } => {
            let object = object.with("attempt", time).with("attempts", times);
            ("ask_again", object.with("error", error.to_string()))
        }
        Notice::Loading { pause } => ("loading", object.with("pause_ms", milliseconds(*pause))),
        Notice::Without { what } => ("fallback", object.with("from_now_on", what)),
        Notice::Silent { silent, used } => {
            ("warning", object.with("warning", silence(silent, *used)))
        }
    }
}

/// The warning that addresses of a host do not answer.
pub(super) fn silence(silent: &[SocketAddr], used: SocketAddr) -> String {
    let silent: Vec<String> = silent.iter().map(ToString::to_string).collect();
    format!("no answer from {}; from now on {used} is tried first", silent.join(", "))
}

fn named(object: Object, call: &ToolCall, mask: &Mask) -> Object {
    object.with("id", &call.id).with_word("name", Some(&mask.name(&call.name)))
}

fn printed(object: Object, output: &Output, took: Duration, mask: &Mask) -> Object {
    let object = object.with("summary", &output.summary);
    let object = object.with("duration_ms", milliseconds(took));
    long(object, "output", &output.text, mask)
}

/// Adds a text that may be cut, and so is masked before, and its true length.
fn long(object: Object, name: &str, text: &str, mask: &Mask) -> Object {
    let masked = mask.text(text);
    let object = match both_ends(&masked, END_MAX) {
        Some((start, left_out, end)) => {
            object.with(name, format!("{start}\n[... {left_out} bytes left out ...]\n{end}"))
        }
        None => object.with(name, &masked),
    };
    object.with("bytes", masked.len())
}

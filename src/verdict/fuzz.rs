//! Arguments of random JSON, cut anywhere.

use serde_json::{Map, Value};

use super::{Accept, Refusal, Verdict, judge};
use crate::fuzz::{Random, inputs};
use crate::message::{AssistantMessage, ToolCall};
use crate::provider::{Completion, FinishReason, Usage};

/// A value that is not nested deeply.
fn value(random: &mut Random, depth: usize) -> Value {
    match random.below(if depth == 0 { 4 } else { 6 }) {
        0 => Value::Null,
        1 => Value::from(random.chance(50)),
        2 => Value::from(random.next() as f64 / 1e6),
        3 => Value::from(random.text()),
        4 => (0..random.below(4)).map(|_| value(random, depth - 1)).collect(),
        _ => Value::from(object(random, depth - 1)),
    }
}

fn object(random: &mut Random, depth: usize) -> Map<String, Value> {
    (0..1 + random.below(4)).map(|_| (random.text(), value(random, depth))).collect()
}

/// Whole arguments are run, and cut ones never are, whatever the finish reason says.
#[test]
fn fuzz_arguments_that_are_cut_are_truncated() {
    for (seed, mut random) in inputs("cut arguments", 5_000) {
        let whole = Value::from(object(&mut random, 3)).to_string();
        let mut end = random.below(whole.len());
        while !whole.is_char_boundary(end) {
            end -= 1;
        }
        let word = *random.pick(&["stop", "tool_calls", ""]);
        for (arguments, is_whole) in [(whole.as_str(), true), (&whole[..end.max(1)], false)] {
            let calls = vec![ToolCall::new("c1", "shell", arguments)];
            let completion = Completion {
                message: AssistantMessage::calls(calls),
                finish_reason: FinishReason::parse(Some(word)),
                usage: Usage::default(),
                model: None,
            };
            let judged = judge(&completion, None, &[], &Accept::default());
            match is_whole {
                true => assert_eq!(judged, Ok(Verdict::Calls), "seed {seed}: {arguments}"),
                false => assert!(
                    matches!(judged, Err(Refusal::Truncated(_))),
                    "seed {seed}: {judged:?} of {arguments}"
                ),
            }
        }
    }
}

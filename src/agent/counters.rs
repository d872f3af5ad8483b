//! What is counted over the steps of a run: tokens, and how often the same thing happened.

use crate::message::ToolCall;
use crate::provider::Usage;

/// What the run has used so far.
#[derive(Default)]
pub(super) struct Spent {
    /// Prompt and completion tokens, as far as the endpoint tells.
    pub(super) total: u64,
    last_prompt: Option<u64>,
    /// Some completion came without its numbers.
    unknown: bool,
}

impl Spent {
    /// Adds a completion, and gives what its numbers give away; `budget` is whether the total is
    /// limited.
    pub(super) fn add(&mut self, usage: Usage, budget: bool) -> Vec<String> {
        let mut warnings = Vec::new();
        if let (Some(before), Some(now)) = (self.last_prompt, usage.prompt_tokens)
            && now < before
        {
            warnings.push(format!(
                "the endpoint counted {before} prompt tokens and now {now}, although the \
                 conversation grew: it seems to cut the prompt silently; raise its context size \
                 (Ollama: num_ctx)"
            ));
        }
        let unknown = usage.prompt_tokens.is_none() || usage.completion_tokens.is_none();
        if unknown && budget && !self.unknown {
            warnings.push(
                "the endpoint does not report all of its tokens; --max-total-tokens counts only \
                 those that it reports"
                    .to_owned(),
            );
        }
        self.unknown |= unknown;
        self.last_prompt = usage.prompt_tokens.or(self.last_prompt);
        for tokens in [usage.prompt_tokens, usage.completion_tokens].into_iter().flatten() {
            self.total = self.total.saturating_add(tokens);
        }
        warnings
    }
}

/// The last call with its result, and how many times running it has been made.
#[derive(Default)]
pub(super) struct Repeats {
    last: Option<(String, String, String)>,
    times: u32,
}

impl Repeats {
    pub(super) fn count(&mut self, call: &ToolCall, result: &str) -> u32 {
        let same = self.last.as_ref().is_some_and(|(name, arguments, earlier)| {
            *name == call.name && *arguments == call.arguments && earlier == result
        });
        if same {
            self.times += 1;
        } else {
            self.last = Some((call.name.clone(), call.arguments.clone(), result.to_owned()));
            self.times = 1;
        }
        self.times
    }
}

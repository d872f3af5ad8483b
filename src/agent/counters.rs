//! What is counted over the steps of a run: tokens, and how often the same thing happened.

use std::hash::{BuildHasher as _, RandomState};

use crate::message::ToolCall;
use crate::provider::Usage;

/// What the run has used so far.
#[derive(Default)]
pub(super) struct Spent {
    /// Prompt and completion tokens, as far as the endpoint tells.
    pub(super) total: u64,
    /// Tokens of the last prompt, those that were cached included.
    last_prompt: Option<u64>,
    /// Some completion came without its numbers.
    unknown: bool,
}

impl Spent {
    /// Adds a completion, and gives what its numbers give away; `budget` is whether the total is
    /// limited.
    pub(super) fn add(&mut self, usage: Usage, budget: bool) -> Vec<String> {
        let mut warnings = Vec::new();
        // Zeros are what some endpoints send for want of numbers.
        let prompt = prompt(usage).filter(|tokens| *tokens > 0);
        if let (Some(before), Some(now)) = (self.last_prompt, prompt)
            && now < before - before / 10
        {
            warnings.push(format!(
                "the endpoint counted {before} prompt tokens and now {now}, although the \
                 conversation grew: it seems to cut the prompt silently; raise its context size \
                 (Ollama: num_ctx)"
            ));
        }
        let unknown = prompt.is_none() || usage.completion_tokens.is_none();
        if unknown && budget && !self.unknown {
            warnings.push(
                "the endpoint does not report all of its tokens; --max-total-tokens counts only \
                 those that it reports"
                    .to_owned(),
            );
        }
        self.unknown |= unknown;
        self.last_prompt = prompt.or(self.last_prompt);
        for tokens in [prompt, usage.completion_tokens].into_iter().flatten() {
            self.total = self.total.saturating_add(tokens);
        }
        warnings
    }
}

/// Tokens of the whole prompt: where more was cached than there was, the cached part is left out.
fn prompt(usage: Usage) -> Option<u64> {
    match (usage.prompt_tokens, usage.cached_tokens) {
        (Some(prompt), Some(cached)) if cached > prompt => Some(prompt.saturating_add(cached)),
        (prompt, _) => prompt,
    }
}

/// How many times in a row the same call has had the same result.
#[derive(Default)]
pub(super) struct Repeats {
    /// Keyed anew in each run, so that nobody can make two calls that pass for one.
    hasher: RandomState,
    /// The last call and its result: their hash, because both may have many megabytes.
    last: Option<u64>,
    times: u32,
}

impl Repeats {
    pub(super) fn count(&mut self, call: &ToolCall, result: &str) -> u32 {
        let this = Some(self.hasher.hash_one((&call.name, &call.arguments, result)));
        self.times = if this == self.last { self.times + 1 } else { 1 };
        self.last = this;
        self.times
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The warnings after completions with these tokens: prompt, cached, completion.
    fn warnings(budget: bool, usages: &[(u64, u64, u64)]) -> Vec<String> {
        let mut spent = Spent::default();
        let usage = |&(prompt, cached, completion)| Usage {
            prompt_tokens: Some(prompt),
            cached_tokens: Some(cached),
            completion_tokens: Some(completion),
        };
        usages.iter().flat_map(|tokens| spent.add(usage(tokens), budget)).collect()
    }

    #[test]
    fn a_prompt_that_shrinks_is_cut_unless_its_cached_part_is_left_out() {
        assert_eq!(warnings(true, &[(10_000, 0, 5), (300, 9_800, 5)]), Vec::<String>::new());
        // A tenth less may be another way of counting.
        assert_eq!(warnings(true, &[(10_000, 0, 5), (9_000, 0, 5)]), Vec::<String>::new());
        let cut = warnings(true, &[(10_000, 0, 5), (8_999, 0, 5)]);
        assert!(cut.len() == 1 && cut[0].contains("10000 prompt tokens and now 8999"), "{cut:?}");
        let cut = warnings(true, &[(300, 9_800, 5), (300, 200, 5)]);
        assert!(cut.len() == 1 && cut[0].contains("10100 prompt tokens and now 300"), "{cut:?}");
    }

    #[test]
    fn zeros_are_no_numbers() {
        let zeros = warnings(true, &[(10_000, 0, 5), (0, 0, 0), (0, 0, 0), (10_001, 0, 5)]);
        assert!(zeros.len() == 1 && zeros[0].contains("does not report all"), "{zeros:?}");
        assert_eq!(warnings(false, &[(10_000, 0, 5), (0, 0, 0)]), Vec::<String>::new());
    }

    #[test]
    fn what_was_cached_is_counted_where_it_is_left_out() {
        let mut spent = Spent::default();
        let usage = Usage {
            prompt_tokens: Some(300),
            cached_tokens: Some(9_800),
            completion_tokens: Some(5),
        };
        spent.add(usage, true);
        assert_eq!(spent.total, 10_105);
    }
}

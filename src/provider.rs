//! What the loop asks of whatever produces completions.

mod error;
mod pattern;
pub(crate) mod words;

use std::fmt;
use std::net::SocketAddr;
use std::num::NonZeroU64;
use std::time::Duration;

use crate::json::Json;
use crate::message::{AssistantMessage, Message};
use crate::time::Deadline;

use words::Finish;

pub(crate) use error::is_transient;
pub use error::{Meaning, ProviderError, StatusError};
pub use pattern::Overflow;

/// Produces completions: an endpoint, a recording, a script in a test.
///
/// The request borrows the conversation, so that no provider can keep or change it.
pub trait Provider {
    /// Produces the completion that follows the conversation.
    ///
    /// # Errors
    ///
    /// Any failure to get one whole. What the model says in it, and whether it finished saying it,
    /// is for the caller to judge.
    fn complete(&mut self, request: &CompletionRequest<'_>) -> Result<Completion, ProviderError>;
}

/// Everything that a completion depends on.
#[derive(Clone, Copy, Debug)]
pub struct CompletionRequest<'a> {
    /// The model's id.
    pub model: &'a str,
    /// Stands before the conversation, and is the same in every request of a run.
    pub system_prompt: &'a str,
    /// The conversation so far.
    pub messages: &'a [Message],
    /// A last message behind the conversation, to which the model is to answer in words and call no
    /// tool. Such a request is not worth sending again when it fails.
    pub closing: Option<&'a Message>,
    /// The tools that are offered, the same in every request of a run.
    pub tools: &'a [ToolDefinition],
    /// The most tokens that the completion may have; none leaves it to the endpoint.
    pub max_tokens: Option<NonZeroU64>,
    /// When the run must have ended.
    pub deadline: Deadline,
    /// Is told what is worth knowing before there is a completion.
    pub notify: Notify<'a>,
}

/// Takes the notices of a provider.
#[derive(Clone, Copy)]
pub struct Notify<'a>(pub &'a dyn Fn(&Notice<'_>));

impl Notify<'_> {
    /// Nobody listens.
    pub const NOBODY: Notify<'static> = Notify(&|_| {});
}

impl fmt::Debug for Notify<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Notify(..)")
    }
}

/// What a provider has to tell while it works on a completion.
#[derive(Debug)]
#[non_exhaustive]
pub enum Notice<'a> {
    /// A request failed, and is sent again after a pause.
    Retry {
        /// Which retry it will be, counted from 1.
        retry: u32,
        /// How many there may be.
        max_retries: u32,
        /// How long the pause is.
        pause: Duration,
        /// Why the request failed.
        error: &'a ProviderError,
    },
    /// The endpoint could not read the call that the model wrote, and is asked again at once.
    AskAgain {
        /// Which time it will be, counted from 1.
        time: u32,
        /// How many times there may be.
        times: u32,
        /// What the endpoint said.
        error: &'a ProviderError,
    },
    /// The server is still loading its model, and is asked again after a pause.
    Loading {
        /// How long the pause is.
        pause: Duration,
    },
    /// The endpoint refused a part of the request, and is sent the same without it, from now on.
    Without {
        /// What it refused, and what it gets in place of it.
        what: &'static str,
    },
    /// Addresses of the host did not answer, and another one did. It is tried first from now on.
    Silent {
        /// Those that did not answer.
        silent: &'a [SocketAddr],
        /// The one that did.
        used: SocketAddr,
    },
}

/// What the model is told of a tool.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolDefinition {
    /// The name to call it by.
    pub name: &'static str,
    /// What it does, in at most 200 characters.
    pub description: &'static str,
    /// JSON Schema of the arguments, an object, as compact JSON.
    pub parameters: Json,
}

/// One answer of a provider.
#[derive(Clone, Debug, PartialEq)]
pub struct Completion {
    /// The message of the model.
    pub message: AssistantMessage,
    /// Why the model stopped.
    pub finish_reason: FinishReason,
    /// What it cost, as far as the endpoint says.
    pub usage: Usage,
    /// The model that the endpoint names.
    pub model: Option<String>,
}

/// Tokens of one completion; none where the endpoint does not say, which is not zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Tokens of the request.
    pub prompt_tokens: Option<u64>,
    /// Those of them that the endpoint had cached.
    pub cached_tokens: Option<u64>,
    /// Tokens of the completion, reasoning included.
    pub completion_tokens: Option<u64>,
}

/// Why the model stopped, as the endpoint puts it; read once, where the completion comes in.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FinishReason {
    /// The model was done.
    Stop,
    /// The model waits for tool results.
    ToolCalls,
    /// A limit cut the model off, in the endpoint's word.
    Truncated(String),
    /// A filter or the model itself refused, in the endpoint's word.
    Filtered(String),
    /// The conversation fills the model's context, in the endpoint's word.
    Overflow(String),
    /// The endpoint failed or gave up in the middle, in its own word. That is no finished text.
    Failed(String),
    /// The endpoint gave none, null or an empty one.
    Missing,
    /// A word that we don't know.
    Other(String),
}

impl FinishReason {
    /// Sorts the word of an endpoint, whatever its case.
    pub fn parse(word: Option<&str>) -> FinishReason {
        let word = word.unwrap_or_default().trim();
        let own = || word.to_owned();
        match words::finish(word) {
            Some(Finish::Missing) => FinishReason::Missing,
            Some(Finish::Stop) => FinishReason::Stop,
            Some(Finish::ToolCalls) => FinishReason::ToolCalls,
            Some(Finish::Truncated) => FinishReason::Truncated(own()),
            Some(Finish::Filtered) => FinishReason::Filtered(own()),
            Some(Finish::Overflow) => FinishReason::Overflow(own()),
            Some(Finish::Failed) => FinishReason::Failed(own()),
            None => FinishReason::Other(own()),
        }
    }

    /// The word itself, for records and messages; none where there was none.
    pub fn word(&self) -> Option<&str> {
        match self {
            FinishReason::Stop => Some("stop"),
            FinishReason::ToolCalls => Some("tool_calls"),
            FinishReason::Missing => None,
            FinishReason::Truncated(word)
            | FinishReason::Filtered(word)
            | FinishReason::Overflow(word)
            | FinishReason::Failed(word)
            | FinishReason::Other(word) => Some(word),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_finish_reasons_of_endpoints_are_sorted_whatever_their_case() {
        let own = str::to_owned;
        for (word, expected) in [
            ("", FinishReason::Missing),
            ("null", FinishReason::Missing),
            ("STOP", FinishReason::Stop),
            ("function_call", FinishReason::ToolCalls),
            ("MAX_TOKENS", FinishReason::Truncated(own("MAX_TOKENS"))),
            ("SAFETY", FinishReason::Filtered(own("SAFETY"))),
            ("sensitive", FinishReason::Filtered(own("sensitive"))),
            (
                "model_context_window_exceeded",
                FinishReason::Overflow(own("model_context_window_exceeded")),
            ),
            ("network_error", FinishReason::Failed(own("network_error"))),
            ("end_turn", FinishReason::Other(own("end_turn"))),
        ] {
            assert_eq!(FinishReason::parse(Some(word)), expected, "{word}");
        }
        assert_eq!(FinishReason::parse(None), FinishReason::Missing);
    }

    #[test]
    fn every_finish_reason_of_the_table_stands_there_once_and_keeps_its_word() {
        let mut seen = Vec::new();
        for word in words::FINISH_REASONS.iter().flat_map(|(_, words)| words.split(' ')) {
            assert!(!seen.contains(&word), "{word}");
            seen.push(word);
            match FinishReason::parse(Some(word)) {
                FinishReason::Missing => {}
                FinishReason::Other(_) => panic!("{word}"),
                FinishReason::ToolCalls => assert!(["tool_calls", "function_call"].contains(&word)),
                known => assert_eq!(known.word(), Some(word)),
            }
        }
    }
}

//! What the loop asks of whatever produces completions.

use std::fmt;
use std::num::NonZeroU64;
use std::time::Duration;

use crate::json::Json;
use crate::message::{AssistantMessage, Message};
use crate::outcome::Outcome;
use crate::secret::Mask;
use crate::text::{Lossy, one_line};
use crate::time::Deadline;

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
    /// The tools that are offered, the same in every request of a run.
    pub tools: &'a [ToolDefinition],
    /// The most tokens that the completion may have; none leaves it to the endpoint.
    pub max_tokens: Option<NonZeroU64>,
    /// When the run must have ended.
    pub deadline: Deadline,
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
    /// The endpoint gave none, null or an empty one.
    Missing,
    /// A word that we don't know.
    Other(String),
}

impl FinishReason {
    /// Sorts the word of an endpoint, whatever its case.
    ///
    /// The words: OpenAI (`stop`, `length`, `tool_calls`, `content_filter`, and the old
    /// `function_call`), Mistral (`model_length`), and those that proxies let through from
    /// Anthropic (`max_tokens`, `refusal`) and Gemini (`safety`, `recitation`, ...).
    pub fn parse(word: Option<&str>) -> FinishReason {
        let word = word.unwrap_or_default().trim();
        match word.to_ascii_lowercase().as_str() {
            // Some servers write the word null where they mean the value.
            "" | "null" => FinishReason::Missing,
            "stop" => FinishReason::Stop,
            "tool_calls" | "function_call" => FinishReason::ToolCalls,
            "length"
            | "max_tokens"
            | "model_length"
            | "max_output_tokens"
            | "model_context_window_exceeded" => FinishReason::Truncated(word.to_owned()),
            "content_filter" | "refusal" | "safety" | "recitation" | "blocklist"
            | "prohibited_content" | "spii" => FinishReason::Filtered(word.to_owned()),
            _ => FinishReason::Other(word.to_owned()),
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
            | FinishReason::Other(word) => Some(word),
        }
    }
}

/// Why there is no completion.
#[derive(Debug)]
#[non_exhaustive]
pub enum ProviderError {
    /// The endpoint answered with a status that is not 200. `Display` shows its message or else the
    /// start of the body.
    Status {
        /// The HTTP status.
        status: u16,
        /// The endpoint's own words, where the body is of a form that has some.
        message: Option<String>,
        /// Where a redirect, which is not followed, pointed to.
        location: Option<String>,
        /// The whole body.
        body: Vec<u8>,
    },
    /// No connection, or one that broke before the body was whole; worth another try.
    Transport {
        /// What was being done, and what went wrong.
        detail: String,
    },
    /// A time limit ended the request; worth another try.
    Timeout {
        /// Which limit, by the flag that moves it.
        limit: &'static str,
        /// How long it was.
        after: Duration,
    },
    /// The run's own deadline ended the request.
    Deadline,
    /// The response is not a completion. `Display` shows the start of the body.
    Response {
        /// What is wrong with it.
        detail: String,
        /// The whole body, or as much of it as came before the fault.
        body: Vec<u8>,
    },
    /// A recording can't serve this completion.
    Replay {
        /// The file, the line and what is wrong with it.
        detail: String,
    },
}

/// Bytes of a body that a message shows.
const EXCERPT: usize = 300;

/// Bytes of a detail of our own, which may hold a path.
const DETAIL: usize = 1_000;

impl ProviderError {
    /// The same, masked: endpoints quote a wrong key in their errors.
    pub fn masked(mut self, mask: &Mask) -> ProviderError {
        let text = |text: &mut String| *text = mask.text(text).into_owned();
        match &mut self {
            ProviderError::Status { message, location, body, .. } => {
                message.iter_mut().chain(location).for_each(text);
                *body = mask.bytes(std::mem::take(body));
            }
            ProviderError::Response { detail, body } => {
                text(detail);
                *body = mask.bytes(std::mem::take(body));
            }
            ProviderError::Transport { detail } | ProviderError::Replay { detail } => text(detail),
            ProviderError::Timeout { .. } | ProviderError::Deadline => {}
        }
        self
    }

    /// The outcome of a run that ends for this reason.
    pub fn outcome(&self) -> Outcome {
        match self {
            ProviderError::Status { status, .. } if is_transient(*status) => Outcome::Transient,
            ProviderError::Status { .. } => Outcome::Rejected,
            ProviderError::Transport { .. } | ProviderError::Timeout { .. } => Outcome::Transient,
            ProviderError::Deadline => Outcome::Deadline,
            ProviderError::Response { .. } | ProviderError::Replay { .. } => Outcome::Protocol,
        }
    }

    /// What the user can do about it.
    pub fn advice(&self) -> &'static str {
        match self {
            ProviderError::Status { status: 401 | 403, .. } => {
                "check the API key (--api-key, UNCUT_API_KEY, OPENAI_API_KEY)"
            }
            ProviderError::Status { status: 404, .. } => "check --base-url and --model",
            ProviderError::Status { location: Some(_), .. } => {
                "redirects are not followed; give the final address as --base-url"
            }
            ProviderError::Status { status, .. } if is_transient(*status) => "try again later",
            ProviderError::Status { .. } => {
                "change what the endpoint refuses; its own log may say more"
            }
            ProviderError::Transport { .. } => "check --base-url, the network and the proxy",
            ProviderError::Timeout { .. } => "try again later, or raise the limit",
            ProviderError::Deadline => "raise --timeout",
            ProviderError::Response { .. } => {
                "check that --base-url is a chat-completions endpoint, and the server's own log"
            }
            ProviderError::Replay { .. } => "check the file given to --replay",
        }
    }
}

/// Whether the same request may well succeed later.
fn is_transient(status: u16) -> bool {
    matches!(status, 408 | 409 | 425 | 429 | 500 | 502 | 503 | 504 | 520..=524 | 529)
}

impl fmt::Display for ProviderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProviderError::Status { status, message, location, body } => {
                write!(f, "the endpoint answered {status}")?;
                if let Some(location) = location {
                    write!(f, ", a redirect to {}", one_line(location, EXCERPT))?;
                }
                match message {
                    Some(message) => write!(f, ": {}", one_line(message, EXCERPT)),
                    None => write_excerpt(f, body),
                }
            }
            ProviderError::Transport { detail } | ProviderError::Replay { detail } => {
                f.write_str(&one_line(detail, DETAIL))
            }
            ProviderError::Timeout { limit, after } => {
                write!(f, "the endpoint did not answer within {after:?} ({limit})")
            }
            ProviderError::Deadline => f.write_str("the run's time was over during a request"),
            ProviderError::Response { detail, body } => {
                f.write_str(&one_line(detail, EXCERPT))?;
                write_excerpt(f, body)
            }
        }
    }
}

impl std::error::Error for ProviderError {}

fn write_excerpt(f: &mut fmt::Formatter<'_>, body: &[u8]) -> fmt::Result {
    let start = &body[..body.len().min(4 * EXCERPT)];
    let excerpt = one_line(&Lossy::new(start).text, EXCERPT);
    if excerpt.is_empty() { f.write_str(" (no body)") } else { write!(f, ": {excerpt}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_endpoints_are_sorted_whatever_their_case() {
        for word in ["length", "max_tokens", "MAX_TOKENS", "model_length"] {
            assert_eq!(FinishReason::parse(Some(word)), FinishReason::Truncated(word.to_owned()));
        }
        for word in ["content_filter", "refusal", "SAFETY"] {
            assert_eq!(FinishReason::parse(Some(word)), FinishReason::Filtered(word.to_owned()));
        }
        for word in [None, Some(""), Some("null")] {
            assert_eq!(FinishReason::parse(word), FinishReason::Missing);
        }
        assert_eq!(FinishReason::parse(Some("STOP")), FinishReason::Stop);
        let odd = FinishReason::parse(Some("malformed_function_call"));
        assert_eq!(odd, FinishReason::Other("malformed_function_call".to_owned()));
        assert_eq!(odd.word(), Some("malformed_function_call"));
    }

    #[test]
    fn a_status_shows_the_start_of_its_body_on_one_line() {
        let body = format!("{{\n  \"error\": \"{}\"}}", "x".repeat(5_000)).into_bytes();
        let mut error = ProviderError::Status { status: 400, message: None, location: None, body };
        let text = error.to_string();
        assert!(text.starts_with("the endpoint answered 400: { \"error\": \"xxx"), "{text}");
        assert!(text.ends_with("...") && text.len() < 400, "{text}");
        assert_eq!(error.outcome(), Outcome::Rejected);
        if let ProviderError::Status { message, .. } = &mut error {
            *message = Some("no\nsuch model".to_owned());
        }
        assert_eq!(error.to_string(), "the endpoint answered 400: no such model");
    }
}

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
    /// The endpoint answered with a status that is not 200, or with an error that stands for one.
    Status(StatusError),
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
    /// The request was sent again until the retries were spent, or until a pause would have been too
    /// long.
    Spent {
        /// How often it was sent.
        attempts: u32,
        /// How long a pause the endpoint asked for, where that was what ended it.
        asked: Option<Duration>,
        /// Why it failed the last time.
        last: Box<ProviderError>,
    },
}

/// What an endpoint says in place of a completion. `Display` shows its words, or else the start of
/// the body.
#[derive(Debug)]
pub struct StatusError {
    /// The HTTP status, or the one that the error stands for.
    pub status: u16,
    /// What it means for the next request.
    pub meaning: Meaning,
    /// The endpoint's own words, where the body is of a form that has some.
    pub message: Option<String>,
    /// Where a redirect, which is not followed, pointed to.
    pub location: Option<String>,
    /// How long the endpoint asks to wait.
    pub retry_after: Option<Duration>,
    /// The whole body.
    pub body: Vec<u8>,
}

/// What a status means for the next request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Meaning {
    /// It would be refused again.
    Refused,
    /// The conversation does not fit the model's context.
    Context,
    /// What the account may use is used up, and no pause of a reasonable length changes that.
    Quota,
    /// It may well succeed later.
    Busy,
    /// It will succeed once the server has loaded its model.
    Loading,
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
            ProviderError::Status(error) => {
                error.message.iter_mut().chain(&mut error.location).for_each(text);
                error.body = mask.bytes(std::mem::take(&mut error.body));
            }
            ProviderError::Response { detail, body } => {
                text(detail);
                *body = mask.bytes(std::mem::take(body));
            }
            ProviderError::Transport { detail } | ProviderError::Replay { detail } => text(detail),
            ProviderError::Spent { last, .. } => {
                let error = std::mem::replace(&mut **last, ProviderError::Deadline);
                **last = error.masked(mask);
            }
            ProviderError::Timeout { .. } | ProviderError::Deadline => {}
        }
        self
    }

    /// The outcome of a run that ends for this reason.
    pub fn outcome(&self) -> Outcome {
        match self {
            ProviderError::Status(error) => match error.meaning {
                Meaning::Refused | Meaning::Quota => Outcome::Rejected,
                Meaning::Context => Outcome::Context,
                Meaning::Busy | Meaning::Loading => Outcome::Transient,
            },
            ProviderError::Spent { .. } => Outcome::Transient,
            ProviderError::Transport { .. } | ProviderError::Timeout { .. } => Outcome::Transient,
            ProviderError::Deadline => Outcome::Deadline,
            ProviderError::Response { .. } | ProviderError::Replay { .. } => Outcome::Protocol,
        }
    }

    /// What the user can do about it.
    pub fn advice(&self) -> &'static str {
        match self {
            ProviderError::Status(error) => error.advice(),
            ProviderError::Spent { last, .. } => last.advice(),
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

impl StatusError {
    fn advice(&self) -> &'static str {
        let says =
            |words: &str| self.message.as_ref().is_some_and(|message| message.contains(words));
        match (self.meaning, self.status) {
            // Ollama, when it has cut the prompt down to where there is no user message left.
            _ if says("no user query found") => {
                "the server's context seems to be too small; raise it (Ollama: num_ctx)"
            }
            (Meaning::Context, _) if says("output tokens") || says("max_tokens") => {
                "lower --max-tokens, raise the server's context size, or start a new session"
            }
            (Meaning::Context, _) => {
                "raise the server's context size (llama.cpp -c, Ollama num_ctx, vLLM \
                 --max-model-len), start a new session, or ask for less at once"
            }
            (Meaning::Quota, _) => "see to the account's quota or billing; a retry won't help",
            (Meaning::Busy | Meaning::Loading, _) => "try again later",
            (Meaning::Refused, 401 | 403) => {
                "check the API key (--api-key, UNCUT_API_KEY, OPENAI_API_KEY)"
            }
            (Meaning::Refused, 404) => "check --base-url and --model",
            (Meaning::Refused, _) if self.location.is_some() => {
                "redirects are not followed; give the final address as --base-url"
            }
            (Meaning::Refused, _) => "change what the endpoint refuses; its own log may say more",
        }
    }
}

impl fmt::Display for StatusError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the endpoint answered {}", self.status)?;
        if let Some(location) = &self.location {
            write!(f, ", a redirect to {}", one_line(location, EXCERPT))?;
        }
        match &self.message {
            Some(message) => write!(f, ": {}", one_line(message, EXCERPT)),
            None => write_excerpt(f, &self.body),
        }
    }
}

impl fmt::Display for ProviderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProviderError::Status(error) => error.fmt(f),
            ProviderError::Spent { attempts, asked, last } => {
                write!(f, "{last} ({attempts} attempts")?;
                if let Some(asked) = asked {
                    write!(f, "; it asks to wait {}s", asked.as_secs())?;
                }
                f.write_str(")")
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

    fn status_error(body: Vec<u8>) -> StatusError {
        StatusError {
            status: 400,
            meaning: Meaning::Refused,
            message: None,
            location: None,
            retry_after: None,
            body,
        }
    }

    #[test]
    fn a_status_shows_its_words_or_the_start_of_its_body_on_one_line() {
        let body = format!("{{\n  \"error\": \"{}\"}}", "x".repeat(5_000)).into_bytes();
        let error = status_error(body);
        let text = error.to_string();
        assert!(text.starts_with("the endpoint answered 400: { \"error\": \"xxx"), "{text}");
        assert!(text.ends_with("...") && text.len() < 400, "{text}");
        let error = StatusError { message: Some("no\nsuch model".to_owned()), ..error };
        assert_eq!(error.to_string(), "the endpoint answered 400: no such model");
        assert_eq!(ProviderError::Status(error).outcome(), Outcome::Rejected);
    }

    #[test]
    fn spent_retries_tell_how_many_and_the_last_words() {
        let last = StatusError {
            status: 429,
            meaning: Meaning::Busy,
            message: Some("slow down, tier 1".to_owned()),
            ..status_error(Vec::new())
        };
        let last = Box::new(ProviderError::Status(last));
        let asked = Some(Duration::from_secs(900));
        let error = ProviderError::Spent { attempts: 5, asked, last };
        assert_eq!(
            error.to_string(),
            "the endpoint answered 429: slow down, tier 1 (5 attempts; it asks to wait 900s)"
        );
        assert_eq!(error.outcome(), Outcome::Transient);
    }
}

//! Why there is no completion, and what that means for the run and for the next request.

use std::fmt;
use std::time::Duration;

use super::pattern::Overflow;
use crate::outcome::Outcome;
use crate::secret::Mask;
use crate::text::{Lossy, counted, one_line};

/// Why there is no completion.
///
/// `Display` cuts what others said, so a provider with a key masks an error before it hands it out.
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
    /// TLS can't be spoken with the other side, or was wanted where it was not spoken. It will fail
    /// again in the same way.
    Tls {
        /// With whom, and what is wrong.
        detail: String,
        /// What to do about it.
        advice: &'static str,
    },
    /// The proxy opens no tunnel to the endpoint.
    Proxy {
        /// The HTTP status of its answer.
        status: u16,
        /// The proxy, what it was asked and what it answered.
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
    /// The request was sent again until the retries were spent, or until a pause would have been
    /// too long.
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
    /// The HTTP status, or the one that the error stands for; 200 where an error with status 200
    /// stands for none.
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
    /// The server or its chat template can't process it, be the status that of a passing failure.
    Unfit,
    /// The chat template does not take the roles of the messages in this order.
    RoleOrder,
    /// The conversation does not fit the model's context.
    Context(Overflow),
    /// A content filter refused.
    Filtered,
    /// The endpoint could not read the call that the model wrote. The next one may be better.
    BadCall,
    /// What the account may use is used up, and no pause of a reasonable length changes that.
    Quota,
    /// It may well succeed later.
    Busy,
    /// It will succeed once the server has loaded its model.
    Loading,
    /// An error that came with status 200, and says nothing that is known.
    Unclear,
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
            ProviderError::Transport { detail }
            | ProviderError::Tls { detail, .. }
            | ProviderError::Proxy { detail, .. }
            | ProviderError::Replay { detail } => text(detail),
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
                Meaning::Refused | Meaning::Unfit | Meaning::RoleOrder | Meaning::Quota => {
                    Outcome::Rejected
                }
                Meaning::Context(_) => Outcome::Context,
                Meaning::Filtered => Outcome::Filtered,
                Meaning::BadCall | Meaning::Unclear => Outcome::Protocol,
                Meaning::Busy | Meaning::Loading => Outcome::Transient,
            },
            ProviderError::Proxy { status, .. } if is_transient(*status) => Outcome::Transient,
            ProviderError::Tls { .. } | ProviderError::Proxy { .. } => Outcome::Rejected,
            ProviderError::Spent { last, .. } => last.outcome(),
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
            ProviderError::Tls { advice, .. } => advice,
            ProviderError::Proxy { status: 407, .. } => {
                "check user and password in the URL of the proxy"
            }
            ProviderError::Proxy { .. } => {
                "see whether the proxy may and can reach the endpoint, or list its host in NO_PROXY"
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

impl StatusError {
    fn advice(&self) -> &'static str {
        let says =
            |words: &str| self.message.as_ref().is_some_and(|message| message.contains(words));
        match (self.meaning, self.status) {
            // Ollama, when it has cut the prompt down to where there is no user message left.
            _ if says("no user query found") => {
                "the server's context seems to be too small; raise it (Ollama: num_ctx)"
            }
            (Meaning::Context(_), _) if says("output tokens") || says("max_tokens") => {
                "lower --max-tokens, raise the server's context size, or start a new session"
            }
            (Meaning::Context(_), _) => {
                "raise the server's context size (llama.cpp -c, Ollama num_ctx, vLLM \
                 --max-model-len), start a new session, or ask for less at once"
            }
            (Meaning::Filtered, _) => "change the prompt or the model",
            (Meaning::BadCall, _) => {
                "the model writes calls that the server can't read: update the server, check its \
                 chat template and tool-call parser, or use another model"
            }
            (Meaning::RoleOrder, _) => {
                "the model's chat template wants user and assistant in turn; start a new session, \
                 or give the server a template that takes tool calls"
            }
            (Meaning::Unfit, _) if says("--jinja") => "start the server with --jinja",
            (Meaning::Unfit, _) => {
                "check the server's chat template (llama.cpp: --jinja, --chat-template-file), or \
                 use another model"
            }
            (Meaning::Unclear, _) => "see the server's own log",
            (Meaning::Quota, _) => "see to the account's quota or billing; a retry won't help",
            (Meaning::Busy | Meaning::Loading, _) => "try again later",
            (Meaning::Refused, 401 | 403) => {
                "check the API key (--api-key, UNCUT_API_KEY, OPENAI_API_KEY)"
            }
            (Meaning::Refused, 407) => "check user and password in the URL of the proxy",
            (Meaning::Refused, 400) if wants_https(&self.body) => "give --base-url with https://",
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
        match (self.meaning, self.status) {
            (Meaning::BadCall, _) => f.write_str("the endpoint could not read the model's call")?,
            (_, 200) => f.write_str("the endpoint reports an error")?,
            (_, status) => write!(f, "the endpoint answered {status}")?,
        }
        if let Some(location) = &self.location {
            write!(f, ", a redirect to {}", one_line(location, EXCERPT))?;
        }
        match &self.message {
            Some(message) => write!(f, ": {}", one_line(message, EXCERPT)),
            None => write_excerpt(f, &self.body),
        }
    }
}

/// Whether the body says, in the words of nginx, Go or Apache, that TLS was expected.
fn wants_https(body: &[u8]) -> bool {
    let has = |words: &str| body.windows(words.len()).any(|part| part == words.as_bytes());
    ["HTTPS port", "HTTPS server", "SSL-enabled server port"].into_iter().any(has)
}

/// Whether the same request may well succeed later: the one list of such statuses.
pub(crate) fn is_transient(status: u16) -> bool {
    matches!(status, 408 | 409 | 425 | 429 | 500 | 502 | 503 | 504 | 520..=524 | 529)
}

impl fmt::Display for ProviderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProviderError::Status(error) => error.fmt(f),
            ProviderError::Spent { attempts, asked, last } => {
                write!(f, "{last} ({}", counted((*attempts).into(), "attempt"))?;
                if let Some(asked) = asked {
                    write!(f, "; it asks to wait {:.1} s", asked.as_secs_f64())?;
                }
                f.write_str(")")
            }
            ProviderError::Transport { detail }
            | ProviderError::Tls { detail, .. }
            | ProviderError::Proxy { detail, .. }
            | ProviderError::Replay { detail } => f.write_str(&one_line(detail, DETAIL)),
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
            "the endpoint answered 429: slow down, tier 1 (5 attempts; it asks to wait 900.0 s)"
        );
        assert_eq!(error.outcome(), Outcome::Transient);
    }
}

//! What an endpoint says in place of a completion, and what that means for the next request.
//!
//! The status alone does not tell: an overflow comes as 400, 413, 429 or 500, an exhausted quota as
//! the same 429 as a busy minute, and a proxy turns everything into 500. So the words decide where
//! they are clear, and the status where they are not.

use std::time::Duration;

use serde_json::value::RawValue;

use super::response::{first_element, object, string};
use crate::json::Members;
use crate::provider::{Meaning, ProviderError, StatusError, is_transient};
use crate::text::Lossy;

/// The error of a status that is not 200, with the endpoint's own words where the body has some.
pub fn status_error(
    status: u16,
    location: Option<String>,
    retry_after: Option<Duration>,
    body: Vec<u8>,
) -> ProviderError {
    let error = ErrorObject::find(&body).unwrap_or_default();
    let meaning = meaning(status, retry_after, &error, &body);
    let message = Some(error.message).filter(|message| !message.trim().is_empty());
    ProviderError::Status(StatusError { status, meaning, message, location, retry_after, body })
}

/// The one table of what is sent again.
fn meaning(
    status: u16,
    retry_after: Option<Duration>,
    error: &ErrorObject,
    body: &[u8],
) -> Meaning {
    let body = &body[..body.len().min(WORDS_MAX)];
    let words = if error.message.is_empty() { &*Lossy::new(body).text } else { &error.message };
    let words = words.to_ascii_lowercase();
    let labels = || [error.code.as_deref(), error.kind.as_deref()].into_iter().flatten();
    let says = |list: &[&str]| list.iter().any(|phrase| words.contains(phrase));
    let labelled = |list: &[&str]| labels().any(|label| list.contains(&label));
    if labelled(CONTEXT_LABELS) || says(CONTEXT_WORDS) {
        return Meaning::Context;
    }
    // Who says when to come back means a rate, whatever else the message advertises.
    let is_rate = retry_after.is_some() || labelled(RATE_LABELS) || says(RATE_WORDS);
    if status == 402 || labelled(QUOTA_LABELS) || status == 429 && says(QUOTA_WORDS) && !is_rate {
        return Meaning::Quota;
    }
    match status {
        503 if says(LOADING_WORDS) && !says(LOADING_FAILED) => Meaning::Loading,
        status if is_transient(status) => Meaning::Busy,
        _ => Meaning::Refused,
    }
}

/// Bytes of a body without a message in which words are looked for.
const WORDS_MAX: usize = 4 << 10;

/// OpenAI and those that follow it; llama.cpp; LiteLLM.
const CONTEXT_LABELS: &[&str] =
    &["context_length_exceeded", "exceed_context_size_error", "ContextWindowExceededError"];

/// In lower case, by server.
const CONTEXT_WORDS: &[&str] = &[
    // OpenAI, vLLM, OpenRouter, DeepSeek, Mistral
    "maximum context length",
    "reduce the length of the messages",
    // vLLM
    "longer than the maximum model length",
    "max_tokens must be at least 1, got -",
    // llama.cpp
    "exceeds the available context size",
    "context size has been exceeded",
    // Ollama
    "exceeds the context length",
    "exceeded max context length",
    // LM Studio
    "when context the overflows",
    "loaded with context length of only",
    "tokens to keep from the initial prompt is greater than the context length",
    // LiteLLM
    "contextwindowexceedederror",
    // Gemini
    "exceeds the maximum number of tokens allowed",
    // Anthropic and xAI, through proxies
    "prompt is too long",
    "maximum prompt length is",
];

const QUOTA_LABELS: &[&str] = &[
    "insufficient_quota",
    "insufficient_balance",
    "billing_hard_limit_reached",
    "billing_not_active",
    "quota_exceeded",
];

/// Said with a 429. A limit that is over in a minute is not meant.
const QUOTA_WORDS: &[&str] = &[
    "exceeded your current quota",
    "usage limit",
    "billing cycle",
    "insufficient balance",
    "insufficient credit",
    "out of credit",
    "monthly limit",
    "daily limit",
];

const RATE_LABELS: &[&str] = &["rate_limit_exceeded", "rate_limit_error"];

/// OpenAI, Groq and Gemini, which tell in the same breath how to buy more.
const RATE_WORDS: &[&str] = &["try again in", "retry in", "per minute"];

/// A model that can't be loaded is loaded again, and fails again, each time it is asked for.
const LOADING_FAILED: &[&str] = &["error loading", "failed to load", "failed loading"];

/// llama.cpp, Text Generation Inference, and servers that load on demand.
const LOADING_WORDS: &[&str] =
    &["loading model", "model is loading", "model is still loading", "currently loading"];

/// What an endpoint says in place of a completion.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ErrorObject {
    /// The message for people.
    pub(super) message: String,
    /// The type of error, in the endpoint's word.
    pub(super) kind: Option<String>,
    /// The code, in the endpoint's word or number.
    pub(super) code: Option<String>,
}

impl ErrorObject {
    /// Finds the error in a body that came with a status other than 200.
    ///
    /// Read are the forms of OpenAI (an `error` object), of Gemini (a list of one), of older vLLM
    /// servers (the members without the `error` around them), and a mere string as `error`,
    /// `message` or `detail`.
    pub(super) fn find(body: &[u8]) -> Option<ErrorObject> {
        let text = std::str::from_utf8(body).ok()?;
        let raw: &RawValue = serde_json::from_str(text).ok()?;
        let raw = first_element(raw).unwrap_or(raw);
        let mut members = object(raw)?;
        match members.take("error") {
            Some(error) => ErrorObject::from_raw(error),
            None => ErrorObject::from_members(members),
        }
    }

    /// The status that the code or the type stands for.
    pub(super) fn status(&self) -> Option<u16> {
        let number = self.code.as_ref().and_then(|code| code.parse().ok());
        number.filter(|code| (400..600).contains(code)).or_else(|| {
            let words = [self.code.as_deref(), self.kind.as_deref()];
            let mut known = words.into_iter().flatten().filter_map(|word| {
                STATUSES.iter().find(|(_, known)| known.contains(&word)).map(|(status, _)| *status)
            });
            known.next()
        })
    }

    pub(super) fn from_raw(error: &RawValue) -> Option<ErrorObject> {
        match string(error) {
            Some(message) => Some(ErrorObject { message, ..ErrorObject::default() }),
            None => ErrorObject::from_members(object(error)?),
        }
        // Some servers always send the member, and leave it empty where there is no error.
        .filter(|error| *error != ErrorObject::default())
    }

    pub(super) fn from_members(mut members: Members<'_>) -> Option<ErrorObject> {
        let mut word = |name| {
            let raw = members.take(name)?;
            string(raw).or_else(|| Some(raw.get().to_owned()))
        };
        let (message, kind, code) = (word("message"), word("type"), word("code"));
        let message = message.or_else(|| word("detail"));
        (message.is_some() || kind.is_some() || code.is_some()).then(|| ErrorObject {
            message: message.unwrap_or_default(),
            kind,
            code,
        })
    }
}

/// The words of OpenAI, Anthropic, llama.cpp and proxies before them for what HTTP has numbers for.
const STATUSES: &[(u16, &[&str])] = &[
    (
        400,
        &[
            "BadRequestError",
            "context_length_exceeded",
            "exceed_context_size_error",
            "invalid_request_error",
        ],
    ),
    (401, &["auth_error", "authentication_error", "invalid_api_key"]),
    (403, &["permission_error"]),
    (404, &["model_not_found", "not_found_error"]),
    (413, &["request_too_large"]),
    (429, &["insufficient_quota", "rate_limit_error", "rate_limit_exceeded"]),
    (500, &["api_error", "internal_server_error", "server_error"]),
    (503, &["service_unavailable", "unavailable_error"]),
    (504, &["timeout_error"]),
    (529, &["overloaded_error"]),
];

#[cfg(test)]
mod tests {
    use super::*;
    use Meaning::{Busy, Context, Loading, Quota, Refused};

    #[track_caller]
    fn check(status: u16, body: &str, expected: Meaning) {
        match status_error(status, None, None, body.as_bytes().to_vec()) {
            ProviderError::Status(error) => assert_eq!(error.meaning, expected, "{status} {body}"),
            other => panic!("{other:?}"),
        }
    }

    fn says(message: &str) -> String {
        serde_json::json!({"error": {"message": message}}).to_string()
    }

    #[test]
    fn an_overflow_is_known_by_its_words_whatever_the_status() {
        for words in [
            "This model's maximum context length is 128000 tokens. However, you requested 65535 \
             output tokens and your prompt contains at least 62466 input tokens",
            "Context size has been exceeded.",
            "request (12030 tokens) exceeds the available context size (8192 tokens)",
            "litellm.ContextWindowExceededError: litellm.BadRequestError: request too long",
            "The input token count (1200000) exceeds the maximum number of tokens allowed \
             (1048576).",
            "Trying to keep the first 5000 tokens when context the overflows. However, the model \
             is loaded with context length of only 4096 tokens",
            "input length exceeds the context length",
            "prompt is too long: 210000 tokens > 200000 maximum",
        ] {
            for status in [400, 413, 429, 500] {
                check(status, &says(words), Context);
            }
        }
        check(
            400,
            r#"{"object":"error","message":"max_tokens must be at least 1, got -186.","code":400}"#,
            Context,
        );
        check(400, r#"{"error":{"message":"no","code":"context_length_exceeded"}}"#, Context);
        check(400, r#"{"error":{"message":"no","type":"exceed_context_size_error"}}"#, Context);
        check(500, "Context size has been exceeded.", Context);
    }

    #[test]
    fn an_exhausted_quota_is_no_rate_limit() {
        check(429, r#"{"error":{"message":"no","type":"insufficient_quota"}}"#, Quota);
        check(429, r#"{"error":{"message":"no","code":"insufficient_quota"}}"#, Quota);
        check(429, &says("You exceeded your current quota"), Quota);
        let monthly = "You have reached the monthly usage limit for this billing cycle. It will be \
                       refreshed in the next cycle.";
        check(429, &says(monthly), Quota);
        check(402, &says("pay first"), Quota);
        check(429, &says("Rate limit reached, please retry shortly"), Busy);
        check(400, &says("see our billing page"), Refused);
        let groq = "Rate limit reached for model. Please try again in 1s. Need more tokens? \
                    Upgrade at https://console.groq.com/settings/billing";
        check(429, &says(groq), Busy);
        let gemini = "You exceeded your current quota, please check your plan and billing \
                      details. Please retry in 32s.";
        check(429, &says(gemini), Busy);
    }

    #[test]
    fn a_model_that_is_loading_is_no_failure() {
        let body = r#"{"error":{"message":"Loading model","type":"unavailable_error","code":503}}"#;
        check(503, body, Loading);
        check(503, r#"{"error":"Model m is currently loading","estimated_time":20}"#, Loading);
        check(503, &says("overloaded"), Busy);
        let failed = says("llama runner process has terminated: error loading model: no memory");
        check(500, &failed, Busy);
        check(503, &failed, Busy);
    }

    #[test]
    fn the_status_decides_where_the_words_do_not() {
        for status in [408, 409, 425, 429, 500, 502, 503, 504, 520, 524, 529] {
            check(status, "busy", Busy);
        }
        for status in [301, 307, 400, 401, 403, 404, 405, 413, 422, 501, 505] {
            check(status, "no", Refused);
        }
    }

    #[test]
    fn an_error_object_is_found_in_every_form() {
        for (body, message, status) in [
            (r#"{"error":{"message":"bad","type":"invalid_request_error"}}"#, "bad", Some(400)),
            (r#"[{"error":{"code":400,"message":"bad"}}]"#, "bad", Some(400)),
            (r#"{"object":"error","message":"bad","type":"BadRequestError"}"#, "bad", Some(400)),
            (r#"{"error":"bad"}"#, "bad", None),
            (r#"{"detail":"bad"}"#, "bad", None),
        ] {
            let error = ErrorObject::find(body.as_bytes()).expect(body);
            assert_eq!((error.message.as_str(), error.status()), (message, status), "{body}");
        }
        assert_eq!(ErrorObject::find(b"<html>"), None);
        assert_eq!(ErrorObject::find(b"{\"a\":1}"), None);
    }
}

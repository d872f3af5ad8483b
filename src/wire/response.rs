//! The body of a response.

use serde_json::value::RawValue;

use super::error::ErrorObject;
use crate::json::{Members, elements, first_element, kind, object, read_object, string};
use crate::message::AssistantMessage;
use crate::provider::{Completion, FinishReason, ProviderError, Usage};

/// Reads a body that came with status 200.
///
/// # Errors
///
/// [`ProviderError::Status`] where the body reports an error, with the status that its code or type
/// stands for, or else 200; [`ProviderError::Response`] for everything else that is not a
/// completion. Both have the whole body.
pub fn completion(body: Vec<u8>) -> Result<Completion, ProviderError> {
    read(&body).map_err(|fault| fault.with(body))
}

/// Why a body is no completion.
pub(super) enum Fault {
    /// It reports an error.
    Reported(Box<ErrorObject>),
    Unreadable(String),
}

impl Fault {
    /// The error for a body that has this fault.
    pub(super) fn with(self, body: Vec<u8>) -> ProviderError {
        match self {
            Fault::Reported(error) => error.reported(body),
            Fault::Unreadable(detail) => ProviderError::Response { detail, body },
        }
    }
}

impl From<String> for Fault {
    fn from(detail: String) -> Fault {
        Fault::Unreadable(detail)
    }
}

impl From<ErrorObject> for Fault {
    fn from(error: ErrorObject) -> Fault {
        Fault::Reported(Box::new(error))
    }
}

fn read(body: &[u8]) -> Result<Completion, Fault> {
    let mut response = open(parse(text(body)?, "the body")?, "the body")?;
    let Some(choices) = response.take("choices") else {
        let error = ErrorObject::without_choices(response).map(Fault::from);
        return Err(error.unwrap_or_else(|| "no choices".to_owned().into()));
    };
    let first = first_element(choices).ok_or_else(|| match choices.get().starts_with('[') {
        true => "no choices: the list is empty".to_owned(),
        false => format!("no choices: choices is {}", kind(choices)),
    })?;
    let mut choice = open_choice(first)?;
    let finish_reason = take_finish_reason(&mut choice)?;
    let message = choice.take("message").ok_or_else(|| "no choices[0].message".to_owned())?;
    Ok(Completion {
        message: read_message(message)?,
        finish_reason,
        usage: response.take("usage").and_then(object).map(read_usage).unwrap_or_default(),
        model: response.take("model").and_then(string),
    })
}

fn text(body: &[u8]) -> Result<&str, String> {
    std::str::from_utf8(body)
        .map_err(|error| format!("the body is not UTF-8 at byte {}", error.valid_up_to()))
}

/// One JSON value with nothing but white space around it, perhaps behind a byte order mark.
pub(super) fn parse<'a>(text: &'a str, what: &str) -> Result<&'a RawValue, String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text).trim_ascii();
    if text.is_empty() {
        return Err(format!("{what} is empty"));
    }
    if text.starts_with('<') {
        return Err(format!("{what} is an HTML page and not JSON: is the base URL right?"));
    }
    serde_json::from_str(text).map_err(|error| match error.is_eof() {
        true => format!("{what} ends in the middle of its JSON: {error}"),
        false => format!("{what} is not one JSON value: {error}"),
    })
}

/// The members of a completion, or of a piece of one, that reports no error.
pub(super) fn open<'a>(raw: &'a RawValue, what: &str) -> Result<Members<'a>, Fault> {
    // Gemini has its errors in a list, but no completion ever comes in one.
    let element = first_element(raw).and_then(object);
    if let Some(error) = element.and_then(|mut element| element.take("error")) {
        return Err(ErrorObject::from_raw(error).unwrap_or_default().into());
    }
    if !raw.get().starts_with('{') {
        return Err(format!("no choices: {what} is {}", kind(raw)).into());
    }
    let mut response = read_object(raw, what)?;
    if let Some(error) = ErrorObject::take_from(&mut response) {
        return Err(error.into());
    }
    if response.take("object").and_then(string).as_deref() == Some("error") {
        return Err(ErrorObject::from_own(response).unwrap_or_default().into());
    }
    Ok(response)
}

/// The members of the first choice, when it reports no error.
pub(super) fn open_choice(raw: &RawValue) -> Result<Members<'_>, Fault> {
    let mut choice = read_object(raw, "choices[0]")?;
    match choice.take("error").and_then(ErrorObject::from_raw) {
        Some(error) => Err(error.into()),
        None => Ok(choice),
    }
}

pub(super) fn take_finish_reason(choice: &mut Members<'_>) -> Result<FinishReason, String> {
    let Some(raw) = choice.take("finish_reason") else { return Ok(FinishReason::Missing) };
    let word = string(raw)
        .ok_or_else(|| format!("choices[0].finish_reason is {} and not a string", kind(raw)))?;
    Ok(FinishReason::parse(Some(&word)))
}

/// The most tool calls of one message. Nobody asks for so many at once; without a limit, telling
/// them apart is a way to keep us busy for hours.
pub(super) const CALLS_MAX: usize = 128;

pub(super) fn read_message(raw: &RawValue) -> Result<AssistantMessage, String> {
    let place = "choices[0].message";
    let members = read_object(raw, place)?;
    let calls = members.get("tool_calls").and_then(elements);
    if calls.is_some_and(|mut calls| calls.nth(CALLS_MAX).is_some()) {
        return Err(format!("{place}.tool_calls: more than {CALLS_MAX} calls"));
    }
    let mut message =
        AssistantMessage::from_members(members).map_err(|error| format!("{place}.{error}"))?;
    for call in &mut message.tool_calls {
        drop_placeholders(&mut call.arguments);
    }
    Ok(message)
}

/// Drops an empty object before a further object: some gateways send it first in the place of
/// arguments that are still to come. Anything else that is not one object stays what it is.
fn drop_placeholders(arguments: &mut String) {
    let mut rest = arguments.as_str();
    while let Some(further) = behind_empty_object(rest).filter(|rest| rest.starts_with('{')) {
        rest = further;
    }
    arguments.drain(..arguments.len() - rest.len());
}

fn behind_empty_object(text: &str) -> Option<&str> {
    let inside = text.trim_ascii_start().strip_prefix('{')?;
    Some(inside.trim_ascii_start().strip_prefix('}')?.trim_ascii_start())
}

pub(super) fn read_usage(mut usage: Members<'_>) -> Usage {
    let mut details = usage.take("prompt_tokens_details").and_then(object);
    Usage {
        prompt_tokens: usage.take("prompt_tokens").and_then(count),
        cached_tokens: details.as_mut().and_then(|d| d.take("cached_tokens")).and_then(count),
        completion_tokens: usage.take("completion_tokens").and_then(count),
    }
}

/// A number of tokens, which some endpoints send as a float or as a string.
fn count(raw: &RawValue) -> Option<u64> {
    /// Above this a float does not tell one whole number from the next.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let text = raw.get().trim_matches('"');
    let whole = |float: &f64| float.fract() == 0.0 && (0.0..=EXACT).contains(float);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a whole number between 0 and 2^53"
    )]
    let float = || text.parse().ok().filter(whole).map(|float| float as u64);
    text.parse().ok().or_else(float)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::StatusError;

    fn body(choice: &str, rest: &str) -> Vec<u8> {
        format!(r#"{{"id":"x","model":"m","choices":[{choice}]{rest}}}"#).into_bytes()
    }

    fn answer(rest: &str) -> Vec<u8> {
        body(r#"{"finish_reason":"stop","message":{"content":"hi"}}"#, rest)
    }

    /// The detail of the error, and that it has the whole body.
    #[track_caller]
    fn check_unreadable(body: impl Into<Vec<u8>>, expected: &str) {
        let body = body.into();
        let error = completion(body.clone()).expect_err("it was accepted");
        let ProviderError::Response { detail, body: kept } = &error else { panic!("{error:?}") };
        assert!(detail.starts_with(expected), "{detail:?} and not {expected:?}");
        assert_eq!(*kept, body);
    }

    #[track_caller]
    fn check_status(body: &str, expected: u16) {
        let error = completion(body.into()).expect_err("it was accepted");
        let ProviderError::Status(StatusError { status, body: kept, .. }) = &error else {
            panic!("{error:?}")
        };
        assert_eq!((*status, kept.as_slice()), (expected, body.as_bytes()));
    }

    #[track_caller]
    fn check_usage(rest: &str, expected: (Option<u64>, Option<u64>, Option<u64>)) {
        let usage = completion(answer(rest)).expect(rest).usage;
        let found = (usage.prompt_tokens, usage.cached_tokens, usage.completion_tokens);
        assert_eq!(found, expected, "{rest}");
    }

    #[test]
    fn a_completion_is_read_whatever_else_is_in_the_body() {
        let completion = completion(body(
            r#"{"index":0,"logprobs":null,"error":null,"finish_reason":"stop",
                "message":{"role":"model","content":"hi","tool_calls":null}}"#,
            r#","error":null,"service_tier":{"a":[1]},"usage":{"prompt_tokens":1}"#,
        ))
        .unwrap();
        assert_eq!(completion.message.as_text(), "hi");
        assert_eq!(completion.finish_reason, FinishReason::Stop);
        assert_eq!(completion.model.as_deref(), Some("m"));
    }

    #[test]
    fn no_choices_is_said_whatever_stands_in_their_place() {
        for body in [
            "{\"choices\":[]}",
            "{\"id\":\"x\"}",
            "{\"choices\":null}",
            "{\"choices\":{}}",
            "[]",
            "[[1]]",
            "\"ok\"",
            "null",
            "1.5",
        ] {
            check_unreadable(body, "no choices");
        }
    }

    #[test]
    fn a_choice_of_the_wrong_form_is_named() {
        for (choice, expected) in [
            ("1", "choices[0] is a number and not an object"),
            ("{}", "no choices[0].message"),
            (r#"{"message":null}"#, "no choices[0].message"),
            (r#"{"message":"hi"}"#, "choices[0].message is a string and not an object"),
            (r#"{"message":{"content":7}}"#, "choices[0].message.content: neither"),
            (
                r#"{"finish_reason":7,"message":{}}"#,
                "choices[0].finish_reason is a number and not a string",
            ),
            (r#"{"message":{},"message":{}}"#, "choices[0]: \"message\" is given twice"),
        ] {
            check_unreadable(body(choice, ""), expected);
        }
    }

    #[test]
    fn what_is_no_json_is_said_to_be_what_it_is() {
        check_unreadable("", "the body is empty");
        check_unreadable(" \n", "the body is empty");
        check_unreadable("\n<!DOCTYPE html><p>hi", "the body is an HTML page");
        check_unreadable("data: {}\n\n", "the body is not one JSON value");
        check_unreadable(b"{\"a\":\"caf\xe9\"}".as_slice(), "the body is not UTF-8 at byte 9");
        check_unreadable(&answer("")[..20], "the body ends in the middle of its JSON");
        check_unreadable([answer(""), b"}garbage".to_vec()].concat(), "the body is not one JSON");
        check_unreadable([answer(""), answer("")].concat(), "the body is not one JSON value");
    }

    #[test]
    fn a_byte_order_mark_and_white_space_around_the_body_are_accepted() {
        let padded = [b"\xef\xbb\xbf\r\n".to_vec(), answer(""), b"\r\n\n \t".to_vec()].concat();
        assert_eq!(completion(padded).unwrap().message.as_text(), "hi");
    }

    #[test]
    fn an_error_that_came_with_status_200_has_the_status_that_it_names() {
        check_status(r#"{"error":{"code":429,"message":"slow down"}}"#, 429);
        check_status(r#"{"error":{"code":"503","message":"x"},"choices":[]}"#, 503);
        check_status(r#"{"error":{"type":"overloaded_error","message":"Overloaded"}}"#, 529);
        check_status(r#"{"error":{"code":"rate_limit_exceeded","type":"tokens"}}"#, 429);
        check_status(r#"[{"error":{"code":400,"status":"INVALID_ARGUMENT"}}]"#, 400);
        check_status(r#"{"object":"error","message":"too long","code":400}"#, 400);
        check_status(r#"{"choices":[{"error":{"code":502,"message":"upstream"}}]}"#, 502);
    }

    #[test]
    fn an_error_that_names_no_status_has_that_of_the_response() {
        check_status(r#"{"error":"no idea"}"#, 200);
        check_status(r#"{"error":{"code":17,"message":"odd"}}"#, 200);
        check_unreadable(r#"{"code":404,"message":"no such page"}"#, "no choices");
    }

    #[test]
    fn an_error_member_that_is_empty_is_none() {
        for rest in [r#","error":"""#, r#","error":{}"#, r#","error":false"#] {
            assert_eq!(completion(answer(rest)).unwrap().message.as_text(), "hi");
        }
    }

    #[test]
    fn tokens_are_unknown_and_not_zero_where_they_are_not_told() {
        check_usage("", (None, None, None));
        check_usage(r#","usage":null"#, (None, None, None));
        check_usage(r#","usage":{}"#, (None, None, None));
        check_usage(r#","usage":[1]"#, (None, None, None));
        check_usage(
            r#","usage":{"prompt_tokens":12.0,"completion_tokens":"7","cost":0.1}"#,
            (Some(12), None, Some(7)),
        );
        check_usage(
            r#","usage":{"prompt_tokens":-1,"completion_tokens":1e400,"prompt_tokens_details":3}"#,
            (None, None, None),
        );
        check_usage(
            r#","usage":{"prompt_tokens":9,"prompt_tokens_details":{"cached_tokens":4}}"#,
            (Some(9), Some(4), None),
        );
    }
}

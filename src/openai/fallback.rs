//! What an endpoint does not know of a request, and says so, is left out of it.
//!
//! Three members of a request are refused by servers that are fine otherwise. Which it is stands
//! only in the words of the refusal.

use crate::provider::{Meaning, ProviderError, StatusError};
use crate::text::Lossy;
use crate::wire::{RequestForm, Stream};

/// The form in which a refused request is worth sending again, and what that changes, in words.
///
/// `max_tokens` is whether the request had a limit.
pub(super) fn after(
    form: &RequestForm,
    max_tokens: bool,
    error: &ProviderError,
) -> Option<(RequestForm, &'static str)> {
    let ProviderError::Status(StatusError {
        meaning: Meaning::Refused, status, message, body, ..
    }) = error
    else {
        return None;
    };
    if !matches!(status, 400 | 404 | 405 | 415 | 422 | 501) {
        return None;
    }
    let words = message.clone().unwrap_or_else(|| Lossy::new(body).text.into_owned());
    let words = words.to_ascii_lowercase();
    let says = |wanted: &[&str]| {
        let mut all = words.split(|c: char| !c.is_alphanumeric() && c != '_');
        all.any(|word| wanted.contains(&word))
    };
    if says(&["max_completion_tokens"]) && max_tokens && !form.max_completion_tokens {
        let form = RequestForm { max_completion_tokens: true, ..form.clone() };
        return Some((form, "max_tokens goes out as max_completion_tokens"));
    }
    let are_ours = form.stream == Stream::WithUsage && !form.extra_body.contains("stream_options");
    if says(&["stream_options"]) && are_ours {
        let form = RequestForm { stream: Stream::Bare, ..form.clone() };
        return Some((form, "requests have no stream_options, and tokens may stay unknown"));
    }
    if says(&["stream", "streaming"]) && form.stream != Stream::Off {
        let form = RequestForm { stream: Stream::Off, ..form.clone() };
        return Some((form, "completions come as one body and not as a stream"));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(status: u16, message: &str) -> ProviderError {
        crate::wire::status_error(status, None, None, message.as_bytes().to_vec())
    }

    fn check(words: &str, expected: Option<RequestForm>) {
        let after = after(&RequestForm::default(), true, &refused(400, words));
        let after = after.map(|(form, _)| form);
        assert_eq!(after, expected, "{words}");
    }

    #[test]
    fn a_refused_member_is_replaced_and_others_are_not_guessed_at() {
        let max = RequestForm { max_completion_tokens: true, ..RequestForm::default() };
        let unsupported = "Unsupported parameter: 'max_tokens' is not supported with this model. \
                           Use 'max_completion_tokens' instead.";
        check(unsupported, Some(max.clone()));
        let bare = RequestForm { stream: Stream::Bare, ..RequestForm::default() };
        check("unknown field `stream_options`", Some(bare));
        let off = RequestForm { stream: Stream::Off, ..RequestForm::default() };
        check("Streaming is not supported for this model", Some(off.clone()));
        check("no such model", None);
        check("Upstream error: bad model", None);
        check("The model gpt-streamline does not exist", None);
        assert_eq!(after(&max, true, &refused(400, unsupported)), None);
        assert_eq!(after(&RequestForm::default(), false, &refused(400, unsupported)), None);
        assert_eq!(after(&off, true, &refused(400, "stream must be false")), None);
        assert_eq!(after(&max, true, &refused(401, "stream")), None);
        assert_eq!(after(&max, true, &refused(500, "stream")), None);
        let extra_body = crate::wire::ExtraBody::parse(r#"{"stream_options":{}}"#).unwrap();
        let own = RequestForm { extra_body, ..RequestForm::default() };
        assert_eq!(after(&own, true, &refused(400, "unknown stream_options")), None);
    }
}

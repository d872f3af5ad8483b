//! What a value of a flag may look like.
//!
//! A function here reads one value and says what is wrong with it, without naming the flag: the
//! same value may have come from a variable. The value stands in it whole, because what is secret
//! of it is only known to whoever shows it.

use std::num::{NonZeroU32, NonZeroU64};
use std::time::Duration;

use super::draft::Draft;
use super::duration;
use super::flags::Given;
use super::options::{Format, Named};
use crate::provider::FinishReason;

pub(super) fn store<T, V: Into<T>>(slot: &mut T, value: Result<V, String>) -> Result<(), String> {
    *slot = value?.into();
    Ok(())
}

pub(super) fn text(given: Given<'_>) -> Result<String, String> {
    let bytes = given.text.as_encoded_bytes();
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(text.to_owned()),
        Err(error) => Err(format!("byte {} is not UTF-8", error.valid_up_to() + 1)),
    }
}

/// Text that is not blank, without the white space around it.
pub(super) fn word(given: Given<'_>) -> Result<String, String> {
    let text = text(given)?;
    match text.trim() {
        "" => Err("is empty".to_owned()),
        word => Ok(word.to_owned()),
    }
}

pub(super) fn path(given: Given<'_>) -> Result<Named, String> {
    match given.text.as_encoded_bytes() {
        b"" => Err("the name is empty".to_owned()),
        b"-" => Err("\"-\" is not a name; a file of that name is ./-".to_owned()),
        _ => Ok(Named { origin: given.origin.clone(), path: given.text.into() }),
    }
}

fn number(given: Given<'_>) -> Result<u64, String> {
    let text = word(given)?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if text.strip_prefix('-').is_some_and(is_number) {
        return Err(format!("\"{text}\" is negative; give a whole number"));
    }
    if !is_number(&text) {
        return Err(format!("\"{text}\" is not a whole number"));
    }
    text.parse().map_err(|_| format!("\"{text}\" is too large"))
}

pub(super) fn limit(given: Given<'_>) -> Result<Option<NonZeroU64>, String> {
    number(given).map(NonZeroU64::new)
}

pub(super) fn count(given: Given<'_>) -> Result<NonZeroU32, String> {
    let number = number(given)?;
    let number = u32::try_from(number).map_err(|_| format!("{number} is too large"))?;
    NonZeroU32::new(number).ok_or_else(|| "must be at least 1".to_owned())
}

pub(super) fn retries(given: Given<'_>) -> Result<u32, String> {
    let number = number(given)?;
    u32::try_from(number).map_err(|_| format!("{number} is too large"))
}

pub(super) fn time(given: Given<'_>) -> Result<Option<Duration>, String> {
    let text = word(given)?;
    duration::parse(&text).map_err(|problem| format!("\"{text}\" {problem}"))
}

pub(super) fn format(given: Given<'_>) -> Result<Format, String> {
    match word(given)?.as_str() {
        "text" => Ok(Format::Text),
        "json" => Ok(Format::Json),
        "jsonl" => Ok(Format::Jsonl),
        other => Err(format!("\"{other}\" is unknown; give text, json or jsonl")),
    }
}

pub(super) fn accept(draft: &mut Draft, given: Given<'_>) -> Result<(), String> {
    for quirk in word(given)?.split(',').map(str::trim) {
        if quirk == "missing-ids" {
            draft.settings.accept.missing_ids = true;
        } else if quirk == "no-reasoning-echo" {
            draft.settings.form.omit_reasoning = true;
        } else if let Some(word) = quirk.strip_prefix("finish-reason:") {
            draft.settings.accept.finish_reasons.push(unknown_finish_reason(word)?);
        } else {
            return Err(format!(
                "\"{quirk}\" is unknown; give missing-ids, finish-reason:WORD or no-reasoning-echo"
            ));
        }
    }
    Ok(())
}

/// Only a word without a meaning can be given one.
fn unknown_finish_reason(word: &str) -> Result<String, String> {
    match FinishReason::parse(Some(word)) {
        FinishReason::Other(word) => Ok(word),
        FinishReason::Truncated(_) => Err(format!(
            "finish-reason:{word} can't be accepted: \"{word}\" says that the model was cut off"
        )),
        FinishReason::Filtered(_) => Err(format!(
            "finish-reason:{word} can't be accepted: \"{word}\" says that the answer was refused"
        )),
        FinishReason::Overflow(_) => Err(format!(
            "finish-reason:{word} can't be accepted: \"{word}\" says that the context is full"
        )),
        FinishReason::Failed(_) => Err(format!(
            "finish-reason:{word} can't be accepted: \"{word}\" says that the endpoint failed"
        )),
        FinishReason::Stop | FinishReason::ToolCalls => {
            Err(format!("finish-reason:{word} needs no acceptance; leave it out"))
        }
        FinishReason::Missing => Err("finish-reason: needs a word".to_owned()),
    }
}

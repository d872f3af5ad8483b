//! What a value of a flag may look like.
//!
//! A function here reads one value and says what is wrong with it, without naming the flag: the
//! same value may have come from a variable. The value stands in it whole, because what is secret
//! of it is only known to whoever shows it.

use std::num::{NonZeroU32, NonZeroU64};
use std::time::Duration;

use super::flag::ArgValue;
use super::resolve::RawArgs;
use super::{Format, PathArg};
use crate::provider::FinishReason;

pub(super) fn store<T, V: Into<T>>(slot: &mut T, value: Result<V, String>) -> Result<(), String> {
    *slot = value?.into();
    Ok(())
}

pub(super) fn text(value: ArgValue<'_>) -> Result<String, String> {
    let bytes = value.text.as_encoded_bytes();
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(text.to_owned()),
        Err(error) => Err(format!("byte {} is not UTF-8", error.valid_up_to() + 1)),
    }
}

/// Text that is not blank, without the white space around it.
pub(super) fn word(value: ArgValue<'_>) -> Result<String, String> {
    let text = text(value)?;
    match text.trim() {
        "" => Err("is empty".to_owned()),
        word => Ok(word.to_owned()),
    }
}

pub(super) fn path(value: ArgValue<'_>) -> Result<PathArg, String> {
    match value.text.as_encoded_bytes() {
        b"" => Err("the name is empty".to_owned()),
        b"-" => Err("\"-\" is not a name; a file of that name is ./-".to_owned()),
        _ => Ok(PathArg { origin: value.origin.clone(), path: value.text.into() }),
    }
}

fn number(value: ArgValue<'_>) -> Result<u64, String> {
    let text = word(value)?;
    if text.strip_prefix('-').is_some_and(is_digits) {
        return Err(format!("\"{text}\" is negative; give a whole number"));
    }
    if !is_digits(&text) {
        return Err(format!("\"{text}\" is not a whole number"));
    }
    text.parse().map_err(|_| format!("\"{text}\" is too large"))
}

pub(super) fn limit(value: ArgValue<'_>) -> Result<Option<NonZeroU64>, String> {
    number(value).map(NonZeroU64::new)
}

pub(super) fn count(value: ArgValue<'_>) -> Result<NonZeroU32, String> {
    let number = number(value)?;
    let number = u32::try_from(number).map_err(|_| format!("{number} is too large"))?;
    NonZeroU32::new(number).ok_or_else(|| "must be at least 1".to_owned())
}

pub(super) fn retries(value: ArgValue<'_>) -> Result<u32, String> {
    let number = number(value)?;
    u32::try_from(number).map_err(|_| format!("{number} is too large"))
}

pub(super) fn time(value: ArgValue<'_>) -> Result<Option<Duration>, String> {
    let text = word(value)?;
    parse_duration(&text).map_err(|problem| format!("\"{text}\" {problem}"))
}

pub(super) fn format(value: ArgValue<'_>) -> Result<Format, String> {
    match word(value)?.as_str() {
        "text" => Ok(Format::Text),
        "json" => Ok(Format::Json),
        "jsonl" => Ok(Format::Jsonl),
        other => Err(format!("\"{other}\" is unknown; give text, json or jsonl")),
    }
}

pub(super) fn accept(raw: &mut RawArgs, value: ArgValue<'_>) -> Result<(), String> {
    for quirk in word(value)?.split(',').map(str::trim) {
        if quirk == "missing-ids" {
            raw.settings.accept.missing_ids = true;
        } else if quirk == "no-reasoning-echo" {
            raw.settings.form.omit_reasoning = true;
        } else if let Some(word) = quirk.strip_prefix("finish-reason:") {
            raw.settings.accept.finish_reasons.push(unknown_finish_reason(word)?);
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

/// The units, from large to small, with their seconds.
const UNITS: [(char, u64); 3] = [('h', 3_600), ('m', 60), ('s', 1)];

/// Ten years. Far below what the clocks of all systems can add to now.
const HOURS_MAX: u64 = 87_600;

const DURATION_FORM: &str = "give a duration such as 90, 90s, 5m or 1h30m (0 turns the limit off)";

/// Reads `90`, `90s`, `5m` or `1h30m`; plain numbers are seconds, and 0 is no limit.
///
/// # Errors
///
/// What is wrong with the text and how it should look, without naming the flag.
fn parse_duration(text: &str) -> Result<Option<Duration>, String> {
    if text.strip_prefix('-').is_some_and(|rest| seconds(rest).is_some()) {
        return Err(format!("is negative; {DURATION_FORM}"));
    }
    let seconds = seconds(text).ok_or_else(|| format!("is not a duration; {DURATION_FORM}"))?;
    if seconds > HOURS_MAX * 3_600 {
        return Err(format!("is more than {HOURS_MAX}h; 0 turns the limit off"));
    }
    Ok((seconds > 0).then(|| Duration::from_secs(seconds)))
}

/// The seconds of a duration; none when it is not of the form, the most that there is on overflow.
fn seconds(text: &str) -> Option<u64> {
    if is_digits(text) {
        // Digits only, so that the one way to fail is to be too large.
        return Some(text.parse().unwrap_or(u64::MAX));
    }
    let mut rest = text;
    let mut units = UNITS.iter();
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let end = rest.find(|character: char| !character.is_ascii_digit())?;
        let (number, tail) = rest.split_at(end);
        if !is_digits(number) {
            return None;
        }
        let mut characters = tail.chars();
        let letter = characters.next()?;
        // The iterator goes on where it stopped: each unit at most once, from large to small.
        let (_, size) = units.find(|(unit, _)| *unit == letter)?;
        let number: u64 = number.parse().unwrap_or(u64::MAX);
        total = total.saturating_add(number.saturating_mul(*size));
        rest = characters.as_str();
    }
    (!text.is_empty()).then_some(total)
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_people_write_them() {
        for (text, seconds) in [
            ("90", 90),
            ("90s", 90),
            ("5m", 300),
            ("1h30m", 5_400),
            ("1h30m5s", 5_405),
            ("2h1s", 7_201),
            ("100m", 6_000),
            ("007", 7),
            ("87600h", 315_360_000),
        ] {
            assert_eq!(parse_duration(text), Ok(Some(Duration::from_secs(seconds))), "{text}");
        }
        for text in ["0", "0s", "0h0m", "00"] {
            assert_eq!(parse_duration(text), Ok(None), "{text}");
        }
    }

    #[test]
    fn anything_else_is_refused() {
        for text in [
            "", "-", "-x", "--1", " ", "abc", "5x", "1.5h", "1h30", "30m1h", "1m1m", "h", "m5",
            "1 h", "500ms", "+5", "5M", "1e3", "\u{661}", "5\u{b5}",
        ] {
            let problem = parse_duration(text).unwrap_err();
            assert!(problem.starts_with("is not a duration; give"), "{text}: {problem}");
        }
        for text in ["-1", "-1h", "-0"] {
            assert!(parse_duration(text).unwrap_err().starts_with("is negative"), "{text}");
        }
        for text in
            ["87601h", "99999999999999999999", "99999999999999999999h1s", "18446744073709551615h"]
        {
            assert!(parse_duration(text).unwrap_err().starts_with("is more than 87600h"), "{text}");
        }
    }
}

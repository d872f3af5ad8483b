//! Durations as people write them: `90`, `90s`, `5m`, `1h30m`.

use std::time::Duration;

/// The units, from large to small, with their seconds.
const UNITS: [(char, u64); 3] = [('h', 3_600), ('m', 60), ('s', 1)];

/// Ten years. Far below what the clocks of all systems can add to now.
const HOURS_MAX: u64 = 87_600;

const FORM: &str = "give a duration such as 90, 90s, 5m or 1h30m (0 turns the limit off)";

/// Reads a duration; plain numbers are seconds, and 0 is no limit.
///
/// # Errors
///
/// What is wrong with the text and how it should look, without naming the flag.
pub(super) fn parse(text: &str) -> Result<Option<Duration>, String> {
    if text.strip_prefix('-').is_some_and(|rest| seconds(rest).is_some()) {
        return Err(format!("is negative; {FORM}"));
    }
    let seconds = seconds(text).ok_or_else(|| format!("is not a duration; {FORM}"))?;
    if seconds > HOURS_MAX * 3_600 {
        return Err(format!("is more than {HOURS_MAX}h; 0 turns the limit off"));
    }
    Ok((seconds > 0).then(|| Duration::from_secs(seconds)))
}

/// The seconds of a duration; none when it is not of the form, the most that there is on overflow.
fn seconds(text: &str) -> Option<u64> {
    if is_number(text) {
        // Digits only, so that the one way to fail is to be too large.
        return Some(text.parse().unwrap_or(u64::MAX));
    }
    let mut rest = text;
    let mut units = UNITS.iter();
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let end = rest.find(|character: char| !character.is_ascii_digit())?;
        let (number, tail) = rest.split_at(end);
        if !is_number(number) {
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

fn is_number(text: &str) -> bool {
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
            assert_eq!(parse(text), Ok(Some(Duration::from_secs(seconds))), "{text}");
        }
        for text in ["0", "0s", "0h0m", "00"] {
            assert_eq!(parse(text), Ok(None), "{text}");
        }
    }

    #[test]
    fn anything_else_is_refused() {
        for text in [
            "", "-", "-x", "--1", " ", "abc", "5x", "1.5h", "1h30", "30m1h", "1m1m", "h", "m5",
            "1 h", "500ms", "+5", "5M", "1e3", "\u{661}", "5\u{b5}",
        ] {
            let problem = parse(text).unwrap_err();
            assert!(problem.starts_with("is not a duration; give"), "{text}: {problem}");
        }
        for text in ["-1", "-1h", "-0"] {
            assert!(parse(text).unwrap_err().starts_with("is negative"), "{text}");
        }
        for text in
            ["87601h", "99999999999999999999", "99999999999999999999h1s", "18446744073709551615h"]
        {
            assert!(parse(text).unwrap_err().starts_with("is more than 87600h"), "{text}");
        }
    }
}

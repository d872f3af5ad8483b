//! How long to wait, as endpoints put it in words.

use std::time::Duration;

/// What stands before the length, in lower case.
const LEADS: &[&str] =
    &["try again in ", "retry in ", "retry after ", "try again after ", "available in ", "wait "];

/// The units, in seconds. Longer names stand before those that they begin with.
const UNITS: &[(&str, f64)] = &[
    ("milliseconds", 0.001),
    ("millisecond", 0.001),
    ("ms", 0.001),
    ("minutes", 60.0),
    ("minute", 60.0),
    ("min", 60.0),
    ("m", 60.0),
    ("seconds", 1.0),
    ("second", 1.0),
    ("secs", 1.0),
    ("sec", 1.0),
    ("s", 1.0),
    ("hours", 3_600.0),
    ("hour", 3_600.0),
    ("h", 3_600.0),
    ("days", 86_400.0),
    ("day", 86_400.0),
    ("d", 86_400.0),
];

/// How long the words ask to wait, if they do. They are in lower case.
pub(super) fn asked(words: &str) -> Option<Duration> {
    LEADS.iter().find_map(|lead| {
        let mut places = words.match_indices(lead);
        places.find_map(|(at, _)| {
            let rest = &words[at + lead.len()..];
            length(rest.strip_prefix("about ").unwrap_or(rest))
        })
    })
}

/// The length of time that the text begins with: `3.2s`, `1m30s`, `20ms`, `7 minutes`.
pub(super) fn length(text: &str) -> Option<Duration> {
    let mut rest = text;
    let mut seconds = None;
    loop {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let Ok(number) = rest[..digits].parse::<f64>() else { break };
        let behind = rest[digits..].trim_start_matches(' ');
        let unit = UNITS.iter().find_map(|(name, unit)| {
            let behind = behind.strip_prefix(name)?;
            // A unit is a word of its own, or has the next number behind it.
            let is_whole = !behind.starts_with(|c: char| c.is_alphabetic());
            is_whole.then_some((*unit, behind))
        });
        let Some((unit, behind)) = unit else { break };
        seconds = Some(seconds.unwrap_or(0.0) + number * unit);
        rest = behind.trim_start_matches(' ');
    }
    Duration::try_from_secs_f64(seconds?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_is_read_in_every_way_that_it_is_put() {
        for (words, expected) in [
            ("please try again in 2.5s. visit", Some(2_500)),
            ("please try again in 1m30s.", Some(90_000)),
            ("please try again in 1m30.5s.", Some(90_500)),
            ("try again in 20ms", Some(20)),
            ("please try again in 7 minutes", Some(420_000)),
            ("please retry in 32.25s.", Some(32_250)),
            ("please retry after 26 seconds.", Some(26_000)),
            ("try again in 1h2m3s", Some(3_723_000)),
            ("try again in about 1 hour 30 minutes", Some(5_400_000)),
            ("wait for it, then wait 5 seconds", Some(5_000)),
            ("try again in a few seconds", None),
            ("try again in 5", None),
            ("try again in 5 marvellous ways", None),
            ("try again in 1.2.3s", None),
            ("try again in 99999999999999999999999 days", None),
            ("wait", None),
            ("", None),
        ] {
            assert_eq!(asked(words), expected.map(Duration::from_millis), "{words}");
        }
    }

    #[test]
    fn the_wait_of_a_member_is_a_length_and_nothing_else() {
        assert_eq!(length("3.2s"), Some(Duration::from_millis(3_200)));
        assert_eq!(length("0s"), Some(Duration::ZERO));
        assert_eq!(length("soon"), None);
        assert_eq!(length("-3s"), None);
    }
}

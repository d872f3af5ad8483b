//! A pattern of words with numbers in it, such as `request ({requested} tokens) exceeds*{window}`.
//!
//! Lower case throughout. `{requested}` and `{window}` stand for a number, which may be grouped by
//! commas, and `*` for anything or nothing.

use std::num::NonZeroU64;

/// How large a conversation is and how large it may be, as far as an endpoint tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Overflow {
    /// Tokens of the request that was refused. Some endpoints count in the completion's.
    pub requested: Option<NonZeroU64>,
    /// Tokens that there may be.
    pub window: Option<NonZeroU64>,
}

impl Overflow {
    /// The same, with the numbers of `other` where there is none yet.
    #[must_use]
    pub fn or(self, other: Overflow) -> Overflow {
        Overflow {
            requested: self.requested.or(other.requested),
            window: self.window.or(other.window),
        }
    }

    /// Whether more was asked for than there may ever be.
    pub fn is_over(self) -> bool {
        matches!((self.requested, self.window), (Some(asked), Some(most)) if asked > most)
    }
}

const REQUESTED: &str = "{requested}";
const WINDOW: &str = "{window}";

/// The numbers of the first place where the pattern fits the text; none where it does not.
///
/// Each part between stars is taken where it first fits, which finds a fit of the whole where there
/// is one, in time linear in the text.
pub(super) fn find(pattern: &str, mut text: &str) -> Option<Overflow> {
    let mut found = Overflow::default();
    for part in pattern.split('*') {
        let (numbers, rest) = first_fit(part, text)?;
        found = found.or(numbers);
        text = rest;
    }
    Some(found)
}

/// Where a part without stars fits first, and what is behind it.
fn first_fit<'a>(part: &str, text: &'a str) -> Option<(Overflow, &'a str)> {
    let start = part.find('{').map_or(part, |end| &part[..end]);
    let mut rest = text;
    loop {
        rest = &rest[rest.find(start)?..];
        if let Some(fit) = fit_here(part, rest) {
            return Some(fit);
        }
        let mut characters = rest.chars();
        characters.next()?;
        rest = characters.as_str();
    }
}

fn fit_here<'a>(part: &str, text: &'a str) -> Option<(Overflow, &'a str)> {
    let (mut part, mut text) = (part, text);
    let mut found = Overflow::default();
    while !part.is_empty() {
        if let Some(behind) = part.strip_prefix(REQUESTED) {
            let (number, rest) = number(text)?;
            found.requested = Some(number);
            (part, text) = (behind, rest);
        } else if let Some(behind) = part.strip_prefix(WINDOW) {
            let (number, rest) = number(text)?;
            found.window = Some(number);
            (part, text) = (behind, rest);
        } else {
            let end = part.find('{').unwrap_or(part.len());
            text = text.strip_prefix(&part[..end])?;
            part = &part[end..];
        }
    }
    Some((found, text))
}

/// A whole number above 0 at the start, and what is behind it.
fn number(text: &str) -> Option<(NonZeroU64, &str)> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != ',').unwrap_or(text.len());
    // A comma behind the number is the sentence's.
    let digits = text[..digits].trim_end_matches(',');
    let number = digits.replace(',', "").parse().ok()?;
    Some((number, &text[digits.len()..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pattern: &str, text: &str, expected: Option<(Option<u64>, Option<u64>)>) {
        let get = |number: Option<NonZeroU64>| number.map(NonZeroU64::get);
        let found = find(pattern, text).map(|found| (get(found.requested), get(found.window)));
        assert_eq!(found, expected, "{pattern} in {text}");
    }

    #[test]
    fn a_pattern_finds_its_words_and_its_numbers() {
        check("too long", "it is too long", Some((None, None)));
        check("too long", "too  long", None);
        check("limit {window}, ", "limit x, limit 7, ", Some((None, Some(7))));
        check("{requested} > {window}", "is 1,200 > 1,000.", Some((Some(1200), Some(1000))));
        check("max {window}*got {requested}", "max 5, and got 9", Some((Some(9), Some(5))));
        check("max {window}*got {requested}", "got 9, max 5", None);
        check("limit {window}, used", "limit 7, used", Some((None, Some(7))));
        check("of {window}", "of many, of 99999999999999999999", None);
        check("\u{e9}{window}", "\u{e9}\u{e9}\u{e9}3", Some((None, Some(3))));
    }

    #[test]
    fn a_long_text_is_searched_in_linear_time() {
        let text = "limit 7".repeat(10_000);
        let started = std::time::Instant::now();
        check("limit {window}*limit {window}*limit {window} !*x", &text, None);
        assert!(started.elapsed() < std::time::Duration::from_secs(2));
    }
}

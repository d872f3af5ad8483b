//! Text for people: cut to a length, on one line, safe on a terminal.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Bytes as text: what is not UTF-8 is replaced, and counted so that it can be told.
#[derive(Debug, PartialEq, Eq)]
pub struct Lossy<'a> {
    /// The text, with U+FFFD in place of each run of bytes that is not UTF-8.
    pub text: Cow<'a, str>,
    /// How many bytes were replaced.
    pub replaced: usize,
}

impl<'a> Lossy<'a> {
    /// Reads bytes as UTF-8, replacing what is not.
    pub fn new(bytes: &'a [u8]) -> Lossy<'a> {
        if let Ok(text) = std::str::from_utf8(bytes) {
            return Lossy { text: Cow::Borrowed(text), replaced: 0 };
        }
        let mut text = String::with_capacity(bytes.len());
        let mut replaced = 0;
        for chunk in bytes.utf8_chunks() {
            text.push_str(chunk.valid());
            if !chunk.invalid().is_empty() {
                text.push(char::REPLACEMENT_CHARACTER);
                replaced += chunk.invalid().len();
            }
        }
        Lossy { text: Cow::Owned(text), replaced }
    }
}

/// The longest start of `text` that has at most `max` bytes and ends between characters.
pub fn head(text: &str, max: usize) -> &str {
    &text[..text.floor_char_boundary(max)]
}

/// The longest end of `text` that has at most `max` bytes and starts between characters.
pub fn tail(text: &str, max: usize) -> &str {
    &text[text.ceil_char_boundary(text.len().saturating_sub(max))..]
}

/// A number with its noun: `1 step`, `2 steps`.
pub fn counted(number: u64, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

/// At most `max` bytes of each end of `text`, and how many lie between them; none where the text is
/// not much longer than that, and so not worth cutting.
pub fn both_ends(text: &str, max: usize) -> Option<(&str, usize, &str)> {
    if text.len() <= 2 * max + 100 {
        return None;
    }
    let (start, end) = (head(text, max), tail(text, max));
    Some((start, text.len() - start.len() - end.len(), end))
}

/// `text` on one line of at most about `max` bytes, safe to print.
///
/// Runs of white space become one space, control characters are shown as `\u{1b}`, and what was
/// cut off is marked by `...`.
pub fn one_line(text: &str, max: usize) -> String {
    let mut line = String::new();
    let mut gap = false;
    for character in text.trim().chars() {
        if line.len() >= max {
            line.push_str("...");
            break;
        }
        if character.is_whitespace() {
            gap = true;
            continue;
        }
        if std::mem::take(&mut gap) {
            line.push(' ');
        }
        push_safe(&mut line, character);
    }
    line
}

/// `text` on one line of at most `max` bytes, as [`one_line`] has it, but what is too much is left
/// out of the middle: a message begins with what it is about, and ends with what to do.
pub fn message_line(text: &str, max: usize) -> String {
    let line = one_line(text, usize::MAX);
    match both_ends(&line, max.saturating_sub(100) / 2) {
        Some((start, left_out, end)) => {
            format!("{start} [... {left_out} bytes left out ...] {end}")
        }
        None => line,
    }
}

/// `text` with its line ends and tabs, safe to print otherwise: what [`one_line`] would show as
/// `\u{1b}` is shown so, and a carriage return before a line end is dropped.
pub fn many_lines(text: &str) -> String {
    let mut lines = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\r' if characters.peek() == Some(&'\n') => {}
            '\n' | '\t' => lines.push(character),
            _ => push_safe(&mut lines, character),
        }
    }
    lines
}

fn push_safe(text: &mut String, character: char) {
    if is_unsafe(character) {
        // Writing to a String can't fail.
        let _ = write!(text, "\\u{{{:x}}}", u32::from(character));
    } else {
        text.push(character);
    }
}

/// Characters that move the cursor, change colours, reorder what stands around them or can't be
/// seen: the controls, and what Unicode calls format characters (Cf) or ignorable by default.
fn is_unsafe(character: char) -> bool {
    let code = u32::from(character);
    character.is_control() || UNSAFE.iter().any(|(first, last)| (*first..=*last).contains(&code))
}

/// The first and the last of each range. The joiners are among them: a script that needs them stays
/// readable without, and text can be hidden in them.
const UNSAFE: [(u32, u32); 24] = [
    (0xad, 0xad),
    (0x34f, 0x34f),
    (0x600, 0x605),
    (0x61c, 0x61c),
    (0x6dd, 0x6dd),
    (0x70f, 0x70f),
    (0x890, 0x891),
    (0x8e2, 0x8e2),
    (0x115f, 0x1160),
    (0x17b4, 0x17b5),
    (0x180b, 0x180f),
    (0x200b, 0x200f),
    (0x2028, 0x202e),
    (0x2060, 0x206f),
    (0x3164, 0x3164),
    (0xfeff, 0xfeff),
    (0xffa0, 0xffa0),
    (0xfff0, 0xfffb),
    (0x110bd, 0x110bd),
    (0x110cd, 0x110cd),
    (0x13430, 0x1343f),
    (0x1bca0, 0x1bca3),
    (0x1d173, 0x1d17a),
    (0xe0000, 0xe0fff),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_not_utf8_are_replaced_and_counted() {
        assert_eq!(Lossy::new(b"plain"), Lossy { text: "plain".into(), replaced: 0 });
        let lossy = Lossy::new(b"head\xff\xf0tail");
        assert_eq!(lossy, Lossy { text: "head\u{fffd}\u{fffd}tail".into(), replaced: 2 });
    }

    #[test]
    fn cuts_fall_between_characters() {
        assert_eq!(head("ab\u{1f642}", 4), "ab");
        assert_eq!(tail("\u{1f642}ab", 4), "ab");
        assert_eq!(head("ab", 9), "ab");
        assert_eq!(tail("ab", 9), "ab");
    }

    #[test]
    fn one_line_is_one_line_whatever_comes() {
        assert_eq!(one_line(" a\r\n\tb  c ", 80), "a b c");
        assert_eq!(one_line("\x1b[31mred\u{202e}", 80), "\\u{1b}[31mred\\u{202e}");
        assert_eq!(one_line("0123456789", 4), "0123...");
        assert_eq!(one_line("0123", 4), "0123");
    }

    #[test]
    fn a_message_that_is_too_long_keeps_its_start_and_its_end() {
        assert_eq!(message_line(" a\n b", 300), "a b");
        let fits = "x".repeat(300);
        assert_eq!(message_line(&fits, 300), fits);
        let line = message_line(&format!("what:\n{}\nto do", "\u{1f642}".repeat(99)), 300);
        assert!(line.starts_with("what: \u{1f642}") && line.ends_with("\u{1f642} to do"), "{line}");
        assert!(line.contains("\u{1f642} [... ") && line.len() <= 300, "{line}");
    }

    #[test]
    fn many_lines_keep_their_ends_and_nothing_else_that_moves_the_cursor() {
        let text = " a\r\n\tb\rc\n\x1b[2J\u{9b}1m\u{2028}d\u{202e}\x08\n";
        let shown = " a\n\tb\\u{d}c\n\\u{1b}[2J\\u{9b}1m\\u{2028}d\\u{202e}\\u{8}\n";
        assert_eq!(many_lines(text), shown);
    }
}

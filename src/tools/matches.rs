//! Finds text in the bytes of a file, with the line endings that the file has.
//!
//! A text without carriage returns says nothing of line endings: an LF in it stands for LF and for
//! CRLF alike, line by line. A text that holds one spells its endings out and is taken literally.
//! The search is that of Knuth, Morris and Pratt, over a file in which CRLF counts as one
//! character: linear, whatever the text and the file are.

use std::ops::Range;

/// A text to look for.
#[derive(Debug)]
pub(super) struct Needle<'a> {
    bytes: &'a [u8],
    /// For each start of the text, the length of its longest proper end that is a start too.
    borders: Vec<usize>,
    is_literal: bool,
}

impl<'a> Needle<'a> {
    /// Prepares the search for `text`; an empty one is found nowhere.
    pub(super) fn new(text: &'a str) -> Needle<'a> {
        let bytes = text.as_bytes();
        let mut borders = vec![0; bytes.len()];
        let mut length = 0;
        for index in 1..bytes.len() {
            while length > 0 && bytes[length] != bytes[index] {
                length = borders[length - 1];
            }
            length += usize::from(bytes[length] == bytes[index]);
            borders[index] = length;
        }
        Needle { bytes, borders, is_literal: text.contains('\r') }
    }

    /// Whether line endings are taken as the text spells them.
    pub(super) fn is_literal(&self) -> bool {
        self.is_literal
    }

    /// Where the text stands in `file`, from left to right, without overlaps.
    pub(super) fn matches<'b>(&'b self, file: &'b [u8]) -> impl Iterator<Item = Range<usize>> + 'b {
        let mut from = 0;
        std::iter::from_fn(move || {
            let found = self.find(file, from)?;
            from = found.end;
            Some(found)
        })
    }

    fn find(&self, file: &[u8], from: usize) -> Option<Range<usize>> {
        let mut at = from;
        let mut length = 0;
        while length < self.bytes.len() {
            let (byte, width) = match *file.get(at..)? {
                [b'\r', b'\n', ..] if !self.is_literal => (b'\n', 2),
                [byte, ..] => (byte, 1),
                [] => return None,
            };
            while length > 0 && self.bytes[length] != byte {
                length = self.borders[length - 1];
            }
            length += usize::from(self.bytes[length] == byte);
            at += width;
        }
        let start = match self.is_literal {
            true => at - self.bytes.len(),
            false => before(file, at, self.bytes),
        };
        (start < at).then_some(start..at)
    }
}

/// Where `text`, which stands in `file` from `start` on, ends; it holds no carriage return.
pub(super) fn after(file: &[u8], start: usize, text: &[u8]) -> usize {
    text.iter().fold(start, |at, &byte| {
        let is_crlf = byte == b'\n' && file.get(at) == Some(&b'\r');
        at + 1 + usize::from(is_crlf)
    })
}

/// Where `text`, which stands in `file` up to `end`, starts; it holds no carriage return.
pub(super) fn before(file: &[u8], end: usize, text: &[u8]) -> usize {
    text.iter().rev().fold(end, |at, &byte| {
        let is_crlf = byte == b'\n' && file[..at].ends_with(b"\r\n");
        at - 1 - usize::from(is_crlf)
    })
}

/// Tells which line ending new text gets.
#[derive(Debug)]
pub(super) struct Endings<'a> {
    file: &'a [u8],
    last: Option<usize>,
    /// The first newline at or behind the place that was last asked for.
    next: usize,
}

impl<'a> Endings<'a> {
    pub(super) fn of(file: &'a [u8]) -> Endings<'a> {
        Endings { file, last: file.iter().rposition(|&byte| byte == b'\n'), next: 0 }
    }

    /// Whether text that goes in at `at`, into a match that starts at `start`, gets CRLF: as the
    /// nearest line before it in the match has it, or else the one that it goes into, or the last
    /// of the file. The places must be asked for from left to right.
    pub(super) fn are_crlf(&mut self, start: usize, at: usize) -> bool {
        let is_newline = |&byte: &u8| byte == b'\n';
        let Some(last) = self.last else { return false };
        let newline = match self.file[start..at].iter().rposition(is_newline) {
            Some(index) => start + index,
            None if last < at => last,
            None => {
                if self.next < at || self.file[self.next] != b'\n' {
                    let index = self.file[at..].iter().position(is_newline).unwrap_or_default();
                    self.next = at + index;
                }
                self.next
            }
        };
        self.file[..newline].ends_with(b"\r")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(text: &str, file: &[u8]) -> Vec<(usize, usize)> {
        Needle::new(text).matches(file).map(|found| (found.start, found.end)).collect()
    }

    #[test]
    fn matches_do_not_overlap() {
        assert_eq!(find("aa", b"aaaaa"), [(0, 2), (2, 4)]);
        assert_eq!(find("abab", b"ababab"), [(0, 4)]);
        assert_eq!(find("aab", b"aaab"), [(1, 4)]);
        assert_eq!(find("x", b""), []);
        assert_eq!(find("", b"x"), []);
    }

    #[test]
    fn a_newline_matches_each_line_ending() {
        assert_eq!(find("a\nb\n", b"a\r\nb\na\nb\r\na\rb\n"), [(0, 5), (5, 10)]);
        assert_eq!(find("\nb", b"a\r\nb\nb"), [(1, 4), (4, 6)]);
        assert_eq!(find("\n\n", b"\r\n\r\n\n\r\n"), [(0, 4), (4, 7)]);
    }

    #[test]
    fn a_carriage_return_makes_a_text_literal() {
        assert_eq!(find("a\r\nb\n", b"a\nb\na\r\nb\n"), [(4, 9)]);
        assert_eq!(find("a\r", b"a\r\na\n"), [(0, 2)]);
        assert_eq!(find("a\r\nb", b"a\r\r\nb"), []);
    }

    #[test]
    fn a_search_that_nearly_matches_everywhere_is_linear() {
        let file = vec![b'a'; 4_000_000];
        let text = format!("{}b", "a".repeat(200_000));
        assert_eq!(find(&text, &file), []);
    }

    #[test]
    fn new_text_gets_the_ending_of_its_place() {
        let file = b"a\r\nb\nc\r\nd";
        let are_crlf = |start, at| Endings::of(file).are_crlf(start, at);
        assert!(are_crlf(0, 0));
        assert!(!are_crlf(3, 4));
        assert!(are_crlf(0, 3));
        assert!(are_crlf(8, 9));
        assert!(!Endings::of(b"abc").are_crlf(0, 1));
        let mut endings = Endings::of(file);
        assert_eq!(
            [0, 1, 3, 5, 8].map(|at| endings.are_crlf(at, at)),
            [true, true, false, true, true]
        );
    }
}

//! Finds text in the bytes of a file, with the line endings that the file has.
//!
//! A text without carriage returns says nothing of line endings: an LF in it stands for LF and for
//! CRLF alike, line by line. A text that holds one spells its endings out and is taken literally.
//! The search is that of Knuth, Morris and Pratt, over a file in which CRLF counts as one
//! character: linear, whatever the text and the file are, and without ever looking back, so that
//! the file may come in pieces.

use std::collections::VecDeque;
use std::io::{self, BufRead};

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

    /// Where the text stands in what `reader` gives, from left to right, without overlaps.
    pub(super) fn matches<R: BufRead>(&self, reader: R) -> Matches<'_, R> {
        Matches { reader, search: Search::new(self), at: 0, newlines: 0, last: None }
    }

    /// Whether the text stands in `text`.
    pub(super) fn is_in(&self, text: &[u8]) -> bool {
        Search::new(self).go_on(text).is_some()
    }
}

/// A place where the text stands.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Match {
    /// Where it starts, in bytes from the start of the file.
    pub(super) start: u64,
    pub(super) end: u64,
    /// The line on which it starts.
    pub(super) line: u64,
    /// For each newline of the text, whether the file has CRLF for it; nothing for a text that is
    /// taken literally.
    pub(super) crlf: Vec<bool>,
    /// Whether the last newline of the file up to its end is CRLF, where there is one.
    pub(super) last: Option<bool>,
}

/// The matches in a file that is being read.
#[derive(Debug)]
pub(super) struct Matches<'a, R> {
    reader: R,
    search: Search<'a>,
    /// How many bytes are searched, how many newlines are in them, and whether the last is CRLF.
    at: u64,
    newlines: usize,
    last: Option<bool>,
}

impl<R: BufRead> Matches<'_, R> {
    fn find(&mut self) -> io::Result<Option<Match>> {
        loop {
            let piece = self.reader.fill_buf()?;
            if piece.is_empty() {
                return Ok(None);
            }
            let previous = self.search.previous;
            let found = self.search.go_on(piece);
            let searched = found.as_ref().map_or(piece, |(used, _)| &piece[..*used]);
            self.newlines += newlines(searched);
            if let Some(index) = searched.iter().rposition(|&byte| byte == b'\n') {
                let before = index.checked_sub(1).map_or(previous, |before| searched[before]);
                self.last = Some(before == b'\r');
            }
            let used = searched.len();
            self.reader.consume(used);
            self.at += used as u64;
            if let Some((_, crlf)) = found {
                let needle = self.search.needle;
                let length = needle.bytes.len() + crlfs(&crlf);
                return Ok(Some(Match {
                    start: self.at - length as u64,
                    end: self.at,
                    line: (1 + self.newlines - newlines(needle.bytes)) as u64,
                    crlf,
                    last: self.last,
                }));
            }
        }
    }
}

impl<R: BufRead> Iterator for Matches<'_, R> {
    type Item = io::Result<Match>;

    fn next(&mut self) -> Option<io::Result<Match>> {
        self.find().transpose()
    }
}

/// How many bytes two texts have in common at their starts and, behind that, at their ends.
pub(super) fn common(a: &[u8], b: &[u8]) -> (usize, usize) {
    let start = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let rest = a[start..].iter().rev().zip(b[start..].iter().rev());
    (start, rest.take_while(|(a, b)| a == b).count())
}

/// How many newlines are in a text.
pub(super) fn newlines(text: &[u8]) -> usize {
    text.iter().filter(|&&byte| byte == b'\n').count()
}

/// How many of them are CRLF.
pub(super) fn crlfs(crlf: &[bool]) -> usize {
    crlf.iter().filter(|&&is_crlf| is_crlf).count()
}

/// A search in the middle of a file.
#[derive(Debug)]
struct Search<'a> {
    needle: &'a Needle<'a>,
    /// How much of the text the file has up to here.
    length: usize,
    /// The line endings in that.
    crlf: VecDeque<bool>,
    /// The last byte that was seen.
    previous: u8,
}

impl<'a> Search<'a> {
    fn new(needle: &'a Needle<'a>) -> Search<'a> {
        Search { needle, length: 0, crlf: VecDeque::new(), previous: 0 }
    }

    /// Searches on in the next piece of the file, up to the end of a match: gives how far that is
    /// into the piece, and the line endings in it.
    fn go_on(&mut self, piece: &[u8]) -> Option<(usize, Vec<bool>)> {
        let first = *self.needle.bytes.first()?;
        let mut at = 0;
        while at < piece.len() {
            if self.length == 0 {
                let rest = &piece[at..];
                let skipped = rest.iter().position(|&byte| byte == first).unwrap_or(rest.len());
                if let Some(last) = rest[..skipped].last() {
                    self.previous = *last;
                    at += skipped;
                    continue;
                }
            }
            self.take(piece[at]);
            at += 1;
            if self.length == self.needle.bytes.len() {
                self.length = 0;
                return Some((at, std::mem::take(&mut self.crlf).into()));
            }
        }
        None
    }

    fn take(&mut self, byte: u8) {
        let is_behind_cr = std::mem::replace(&mut self.previous, byte) == b'\r';
        if !self.needle.is_literal {
            // It belongs to the newline behind it; without one it stands in no such text.
            if is_behind_cr && byte != b'\n' {
                self.length = 0;
                self.crlf.clear();
            }
            if byte == b'\r' {
                return;
            }
        }
        let text = self.needle.bytes;
        while self.length > 0 && text[self.length] != byte {
            let border = self.needle.borders[self.length - 1];
            if !self.needle.is_literal {
                self.crlf.drain(..newlines(&text[..self.length - border]));
            }
            self.length = border;
        }
        if text[self.length] == byte {
            self.length += 1;
            if byte == b'\n' && !self.needle.is_literal {
                self.crlf.push_back(is_behind_cr);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use super::*;

    /// Where the text stands, however small the pieces are in which the file comes.
    #[track_caller]
    fn find(text: &str, file: &[u8]) -> Vec<(u64, u64)> {
        let needle = Needle::new(text);
        let found = |window| -> Vec<Match> {
            let reader = BufReader::with_capacity(window, file);
            needle.matches(reader).map(Result::unwrap).collect()
        };
        let whole = found(file.len().max(1));
        for window in 1..6 {
            assert_eq!(found(window), whole, "{window}");
        }
        assert_eq!(needle.is_in(file), !whole.is_empty());
        whole.iter().map(|found| (found.start, found.end)).collect()
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
        assert_eq!(find("a\nb", b"a\r\r\nb"), []);
        // What is given up of a start has line endings of its own.
        assert_eq!(find("\n\nb", b"\r\n\n\r\nb"), [(2, 6)]);
    }

    #[test]
    fn a_carriage_return_makes_a_text_literal() {
        assert_eq!(find("a\r\nb\n", b"a\nb\na\r\nb\n"), [(4, 9)]);
        assert_eq!(find("a\r", b"a\r\na\n"), [(0, 2)]);
        assert_eq!(find("a\r\nb", b"a\r\r\nb"), []);
    }

    #[test]
    fn a_match_tells_its_line_and_its_line_endings() {
        let needle = Needle::new("a\nb\nc");
        let file = &b"x\r\na\nb\r\nc\na\r\nb\nc"[..];
        let found: Vec<Match> = needle.matches(file).map(Result::unwrap).collect();
        let at = |start, end, line, crlf: [bool; 2]| Match {
            start,
            end,
            line,
            crlf: crlf.into(),
            last: Some(crlf[1]),
        };
        assert_eq!(found, [at(3, 9, 2, [false, true]), at(10, 16, 5, [true, false])]);
    }

    #[test]
    fn a_search_that_nearly_matches_everywhere_is_linear() {
        let file = vec![b'a'; 4_000_000];
        let text = format!("{}b", "a".repeat(200_000));
        assert!(!Needle::new(&text).is_in(&file));
    }
}

//! The replacement of one text by another in the bytes of a file.
//!
//! A text without carriage returns says nothing of line endings: an LF in it stands for LF and for
//! CRLF alike, line by line. A text that holds one is taken literally. What both texts start and
//! end with is left as the file has it, and new lines get the line ending of their place.

use std::borrow::Cow;

use super::text_search::{Finder, common, newlines, with_crlf, with_lf};

/// The most places whose lines are kept.
const LINES_MAX: usize = 20;

/// The replacement of one text by another.
pub(super) struct Replacement<'a> {
    old: &'a [u8],
    finder: Finder<'a>,
    /// Whether line endings are searched as the old text has them.
    is_literal: bool,
    /// How many bytes both texts start and end with.
    prefix: usize,
    suffix: usize,
    /// The new text between the two, for a place with LF and for one with CRLF.
    lf: &'a [u8],
    crlf: Vec<u8>,
}

/// The replacement at one place of a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edit<'a> {
    /// The bytes that are replaced, without those that both texts have in common.
    pub(super) start: usize,
    end: usize,
    /// The line on which they start.
    pub(super) line: usize,
    /// The line on which the old text starts.
    place: usize,
    /// What replaces them.
    pub(super) text: &'a [u8],
}

/// The places in a file.
#[derive(Debug)]
pub(super) struct Found<'a> {
    pub(super) count: usize,
    /// The lines of the first places.
    lines: Vec<usize>,
    pub(super) first: Option<Edit<'a>>,
    /// Whether the replacement makes a difference anywhere.
    pub(super) differs: bool,
    /// Bytes of the file after it.
    pub(super) length: usize,
}

impl<'a> Replacement<'a> {
    /// The replacement of `old`, which is not empty, by `new`, which is another text.
    pub(super) fn new(old: &'a str, new: &'a str) -> Replacement<'a> {
        let is_literal = old.contains('\r');
        let (old, new) = (old.as_bytes(), new.as_bytes());
        // Texts that spell out their line endings are replaced whole and as they are.
        let is_whole = is_literal || new.contains(&b'\r');
        let (prefix, suffix) = if is_whole { (0, 0) } else { common(old, new) };
        let lf = &new[prefix..new.len() - suffix];
        let crlf = if is_whole { lf.to_vec() } else { with_crlf(lf) };
        Replacement { old, finder: Finder::new(old), is_literal, prefix, suffix, lf, crlf }
    }

    /// The bytes in which the old text is searched: the file, with one kind of line ending.
    pub(super) fn searched<'b>(&self, file: &'b [u8]) -> Cow<'b, [u8]> {
        if self.is_literal { Cow::Borrowed(file) } else { with_lf(file) }
    }

    /// Finds the places in a file, of which `searched` is the copy to search.
    pub(super) fn find<'b>(&'b self, file: &'b [u8], searched: &'b [u8]) -> Found<'b> {
        let mut found =
            Found { count: 0, lines: Vec::new(), first: None, differs: false, length: file.len() };
        for edit in self.edits(file, searched) {
            found.count += 1;
            found.differs |= file[edit.start..edit.end] != *edit.text;
            found.length = found.length + edit.text.len() - (edit.end - edit.start);
            if found.lines.len() < LINES_MAX {
                found.lines.push(edit.place);
            }
            found.first.get_or_insert(edit);
        }
        found
    }

    /// The file with the replacement made at all places, which takes up `length` bytes.
    pub(super) fn apply(&self, file: &[u8], searched: &[u8], length: usize) -> Vec<u8> {
        let mut out = Vec::with_capacity(length);
        let mut at = 0;
        for edit in self.edits(file, searched) {
            out.extend_from_slice(&file[at..edit.start]);
            out.extend_from_slice(edit.text);
            at = edit.end;
        }
        out.extend_from_slice(&file[at..]);
        out
    }

    fn edits<'b>(&'b self, file: &'b [u8], searched: &'b [u8]) -> impl Iterator<Item = Edit<'b>> {
        let is_copy = searched.len() < file.len();
        let mut cursor = Cursor { file, is_copy, searched: 0, at: 0, newlines: 0 };
        let mut endings = Endings::new(file);
        let has_newline = self.crlf.len() > self.lf.len();
        self.finder.all(searched).map(move |found| {
            let end = found + self.old.len();
            let old_start = cursor.advance(found);
            let place = cursor.newlines + 1;
            let start = cursor.advance(found + self.prefix);
            let line = cursor.newlines + 1;
            let new_end = cursor.advance(end - self.suffix);
            let old_end = cursor.advance(end);
            let is_crlf = has_newline && endings.is_crlf_for(old_start, start, old_end);
            let text = if is_crlf { &self.crlf } else { self.lf };
            Edit { start, end: new_end, line, place, text }
        })
    }
}

impl Found<'_> {
    /// The lines of the places, in words.
    pub(super) fn places(&self) -> String {
        let lines: Vec<String> = self.lines.iter().map(usize::to_string).collect();
        let more = if self.count > lines.len() { ", ..." } else { "" };
        let noun = if self.count == 1 { "line" } else { "lines" };
        format!("{noun} {}{more}", lines.join(", "))
    }
}

/// Finds the offset in a file that belongs to one in the searched copy of it.
struct Cursor<'a> {
    file: &'a [u8],
    /// Whether CRLF is LF in the copy.
    is_copy: bool,
    searched: usize,
    at: usize,
    /// How many newlines are before it.
    newlines: usize,
}

impl Cursor<'_> {
    /// Goes on to an offset of the copy, which does not lie behind.
    fn advance(&mut self, searched: usize) -> usize {
        while self.searched < searched {
            let is_crlf = self.file[self.at] == b'\r' && self.file.get(self.at + 1) == Some(&b'\n');
            self.at += usize::from(self.is_copy && is_crlf);
            self.newlines += usize::from(self.file[self.at] == b'\n');
            self.at += 1;
            self.searched += 1;
        }
        self.at
    }
}

/// Tells which line ending new text gets.
struct Endings<'a> {
    file: &'a [u8],
    /// The first newline from the last place on; beyond every place where there is none.
    next: Option<usize>,
    last: Option<usize>,
}

impl<'a> Endings<'a> {
    fn new(file: &'a [u8]) -> Endings<'a> {
        let last = file.iter().rposition(|&byte| byte == b'\n');
        Endings { file, next: None, last }
    }

    /// Whether text at `start`, in an old text from `old_start` to `old_end`, gets CRLF: by the
    /// newline of the old text before it, or its first one, or the one at the end of the line that
    /// the text goes into, or the last one of the file. The places come from left to right.
    fn is_crlf_for(&mut self, old_start: usize, start: usize, old_end: usize) -> bool {
        let is_newline = |&byte: &u8| byte == b'\n';
        let before = self.file[old_start..start].iter().rposition(is_newline);
        let newline = before
            .map(|index| old_start + index)
            .or_else(|| Some(start + self.file[start..old_end].iter().position(is_newline)?))
            .or_else(|| self.next_from(old_end))
            .or(self.last);
        newline.is_some_and(|index| index > 0 && self.file[index - 1] == b'\r')
    }

    fn next_from(&mut self, at: usize) -> Option<usize> {
        if self.next.is_none_or(|next| next < at) {
            let next = self.file[at..].iter().position(|&byte| byte == b'\n');
            self.next = Some(next.map_or(usize::MAX, |index| at + index));
        }
        self.next.filter(|&next| next < usize::MAX)
    }
}

impl Edit<'_> {
    /// The last line of the new text.
    pub(super) fn last_line(&self) -> usize {
        self.line + newlines(self.text)
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use super::*;
    use crate::fuzz::{Random, inputs};

    #[test]
    fn new_text_gets_the_ending_of_its_place() {
        let file = b"a\r\nb\nc\r\nd";
        for (old, after) in [
            ("a", &b"a\r\nx\r\nb\nc\r\nd"[..]),
            ("b", b"a\r\nb\nx\nc\r\nd"),
            ("c", b"a\r\nb\nc\r\nx\r\nd"),
            ("d", b"a\r\nb\nc\r\nd\r\nx"),
            ("a\nb", b"a\r\nb\r\nx\nc\r\nd"),
            ("b\nc", b"a\r\nb\nc\nx\r\nd"),
        ] {
            let out = replaced(file, old, &format!("{old}\nx"), 1);
            assert_eq!(out.escape_ascii().to_string(), after.escape_ascii().to_string());
        }
        assert_eq!(replaced(b"abc", "b", "\n", 1), b"a\nc");
    }

    /// Random files over a small alphabet, so that texts repeat, and a random piece of each as the
    /// old text. What comes out is compared with a simple replacement at the places that a byte by
    /// byte comparison finds.
    #[test]
    fn fuzz_random_edits_leave_everything_else_as_it_was() {
        let mut edited = 0;
        let inputs = inputs("edit", 3_000);
        let total = inputs.total();
        for (seed, mut random) in inputs {
            let bytes = |random: &mut Random, length, alphabet: &[&[u8]]| -> Vec<u8> {
                (0..length).flat_map(|_| alphabet[random.below(alphabet.len())].to_vec()).collect()
            };
            let length = random.below(60);
            let file = bytes(
                &mut random,
                length,
                &[b"a", b"b", b"\n", b"\r\n", b"\xE9", b"\0", b"\r", b"\xEF\xBB\xBF"],
            );
            let length = 1 + random.below(4);
            let old = String::from_utf8(bytes(&mut random, length, &[b"a", b"b", b"\n"])).unwrap();
            let length = random.below(4);
            let new = String::from_utf8(bytes(&mut random, length, &[b"a", b"c", b"\n"])).unwrap();
            if old == new {
                continue;
            }
            let places = places(&file, old.as_bytes());
            let out = replaced(&file, &old, &new, places.len());
            // Between the places not a byte differs; in them it is the new text, whatever its line
            // endings.
            let mut rest = &out[..];
            let mut at = 0;
            for place in &places {
                rest = rest.strip_prefix(&file[at..place.start]).unwrap();
                for &byte in new.as_bytes() {
                    rest = match (byte, rest) {
                        (b'\n', [b'\r', b'\n', rest @ ..]) => rest,
                        (byte, [first, rest @ ..]) if byte == *first => rest,
                        _ => panic!("seed {seed}: {file:?} {old:?} {new:?} {out:?}"),
                    };
                }
                at = place.end;
            }
            assert_eq!(rest, &file[at..], "seed {seed}: {file:?} {old:?} {new:?}");
            edited += places.len();
        }
        assert!(total < 1_000 || edited > total / 3, "{edited}");
    }

    /// Where `old` stands, found the slow way.
    fn places(file: &[u8], old: &[u8]) -> Vec<Range<usize>> {
        let mut places = Vec::new();
        let mut at = 0;
        'places: while at < file.len() {
            let mut end = at;
            for &byte in old {
                match file[end..] {
                    [b'\r', b'\n', ..] if byte == b'\n' => end += 2,
                    [first, ..] if first == byte => end += 1,
                    _ => {
                        at += 1;
                        continue 'places;
                    }
                }
            }
            places.push(at..end);
            at = end;
        }
        places
    }

    /// The file after the replacement.
    #[track_caller]
    fn replaced(file: &[u8], old: &str, new: &str, count: usize) -> Vec<u8> {
        let replacement = Replacement::new(old, new);
        let searched = replacement.searched(file);
        let found = replacement.find(file, &searched);
        assert_eq!(found.count, count);
        let out = replacement.apply(file, &searched, found.length);
        assert_eq!(out.len(), found.length);
        out
    }
}

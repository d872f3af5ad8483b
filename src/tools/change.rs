//! The exchange of one text for another in a file that is never held as a whole.
//!
//! A first reading finds the places, a second one gives the new file. What both texts start and
//! end with is left as the file has it, and new lines get the line ending of their place.

use std::io::{self, BufRead, BufReader, Read};
use std::iter;

use crate::fs::replace::changed;

use super::matches::{Match, Needle, common, crlfs, newlines};
use super::source::{At, Source};

/// The most places whose lines are kept.
const LINES_MAX: usize = 20;

/// The exchange of one text for another.
pub(super) struct Change<'a> {
    old: Needle<'a>,
    /// What both texts start and end with.
    prefix: &'a [u8],
    suffix: &'a [u8],
    /// What comes in between, for a place with LF and for one with CRLF.
    lf: &'a [u8],
    crlf: Vec<u8>,
    /// Both texts, where the old one may read like the new one in the file.
    spelled: Option<(&'a [u8], &'a [u8])>,
}

/// The exchange at one place of a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Splice<'a> {
    /// What goes, without what both texts have in common, in bytes from the start of the file.
    pub(super) start: u64,
    pub(super) end: u64,
    /// The line on which it starts.
    pub(super) line: u64,
    /// The line on which the old text starts.
    place: u64,
    /// What comes.
    pub(super) text: &'a [u8],
    differs: bool,
}

/// What there is to exchange in a file.
#[derive(Debug)]
pub(super) struct Found<'a> {
    pub(super) count: usize,
    /// The lines of the first places.
    lines: Vec<u64>,
    pub(super) first: Option<Splice<'a>>,
    /// Whether the exchange makes a difference anywhere.
    pub(super) differs: bool,
}

impl<'a> Change<'a> {
    /// The exchange of `old`, which is not empty, for `new`, which is another text.
    pub(super) fn new(old: &'a str, new: &'a str) -> Change<'a> {
        let needle = Needle::new(old);
        let (old, new) = (old.as_bytes(), new.as_bytes());
        // Texts that spell out their line endings are exchanged whole and as they are.
        let is_literal = needle.is_literal() || new.contains(&b'\r');
        let (prefix, suffix) = if is_literal { (0, 0) } else { common(old, new) };
        let lf = &new[prefix..new.len() - suffix];
        let crlf = if is_literal { lf.to_vec() } else { with_crlf(lf) };
        let spelled = (is_literal && !needle.is_literal()).then_some((old, new));
        let (prefix, suffix) = (&old[..prefix], &old[old.len() - suffix..]);
        Change { old: needle, prefix, suffix, lf, crlf, spelled }
    }

    /// Finds the places.
    pub(super) fn find<'b>(&'b self, source: &Source<'_>) -> io::Result<Found<'b>> {
        let mut found = Found { count: 0, lines: Vec::new(), first: None, differs: false };
        for splice in self.splices(source) {
            let splice = splice?;
            found.count += 1;
            found.differs |= splice.differs;
            if found.lines.len() < LINES_MAX {
                found.lines.push(splice.place);
            }
            found.first.get_or_insert(splice);
        }
        Ok(found)
    }

    /// The file with the exchange made at the places that were found, from `from` on, which is not
    /// behind the first of them.
    ///
    /// Reading fails where they are not there any more.
    pub(super) fn made<'b>(
        &'b self,
        source: &'b Source<'_>,
        found: &Found<'b>,
        from: u64,
    ) -> impl Read {
        let missing = iter::repeat_with(|| Err(changed()));
        // A single place needs no second search.
        let further =
            self.splices(source).skip(1).chain(missing).take(found.count.saturating_sub(1));
        Made { old: source.from(from), at: from, next: found.first, further, text: &[] }
    }

    fn splices<'b>(&'b self, source: &Source<'_>) -> impl Iterator<Item = io::Result<Splice<'b>>> {
        let mut endings = Endings { source, next: None };
        self.old.matches(source.from(0)).map(move |found| self.splice(&found?, &mut endings))
    }

    fn splice<'b>(&'b self, found: &Match, endings: &mut Endings<'_>) -> io::Result<Splice<'b>> {
        let above = newlines(self.prefix);
        // Where the texts have nothing in common, there may be no endings to tell.
        let in_prefix = &found.crlf[..above];
        let in_suffix = &found.crlf[found.crlf.len() - newlines(self.suffix)..];
        let has_newline = self.crlf.len() > self.lf.len();
        let is_crlf = has_newline
            && match found.crlf.get(above.saturating_sub(1)) {
                Some(is_crlf) => *is_crlf,
                None => endings.next_from(found.end)?.or(found.last).unwrap_or_default(),
            };
        let reads_like_new = |(old, new)| spelled(old, &found.crlf).eq(new);
        Ok(Splice {
            start: found.start + (self.prefix.len() + crlfs(in_prefix)) as u64,
            end: found.end - (self.suffix.len() + crlfs(in_suffix)) as u64,
            line: found.line + above as u64,
            place: found.line,
            text: if is_crlf { &self.crlf } else { self.lf },
            differs: !self.spelled.is_some_and(reads_like_new),
        })
    }
}

impl Found<'_> {
    /// The lines of the places, in words.
    pub(super) fn places(&self) -> String {
        let lines: Vec<String> = self.lines.iter().map(u64::to_string).collect();
        let more = if self.count > lines.len() { ", ..." } else { "" };
        let noun = if self.count == 1 { "line" } else { "lines" };
        format!("{noun} {}{more}", lines.join(", "))
    }
}

/// Tells which line ending new text gets that has none in its match to go by: that of the line
/// which it goes into.
struct Endings<'a> {
    source: &'a Source<'a>,
    /// The first newline from a place on, and whether it is CRLF; it is beyond every place where
    /// there is none.
    next: Option<(u64, Option<bool>)>,
}

impl Endings<'_> {
    /// Whether the first newline from `at` on is CRLF; none where there is no newline. The places
    /// must be asked for from left to right.
    fn next_from(&mut self, at: u64) -> io::Result<Option<bool>> {
        if let Some((next, is_crlf)) = self.next
            && at <= next
        {
            return Ok(is_crlf);
        }
        let next = self.look(at)?;
        self.next = Some(next);
        Ok(next.1)
    }

    fn look(&self, mut at: u64) -> io::Result<(u64, Option<bool>)> {
        let mut reader = self.source.from(at);
        let mut previous = 0;
        loop {
            let piece = reader.fill_buf()?;
            let Some(last) = piece.last() else { return Ok((u64::MAX, None)) };
            if let Some(index) = piece.iter().position(|&byte| byte == b'\n') {
                let before = index.checked_sub(1).map_or(previous, |before| piece[before]);
                return Ok((at + index as u64, Some(before == b'\r')));
            }
            previous = *last;
            let used = piece.len();
            reader.consume(used);
            at += used as u64;
        }
    }
}

/// Reads the file as it is to be.
struct Made<'a, I> {
    old: BufReader<At<'a>>,
    /// Where that is.
    at: u64,
    /// The next place, and those behind it.
    next: Option<Splice<'a>>,
    further: I,
    /// What is left of the text of the last place.
    text: &'a [u8],
}

impl<'a, I: Iterator<Item = io::Result<Splice<'a>>>> Read for Made<'a, I> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.text.is_empty() {
            let Some(next) = self.next else { return self.old.read(buffer) };
            let before = next.start.checked_sub(self.at).ok_or_else(changed)?;
            if before > 0 {
                let read = self.old.by_ref().take(before).read(buffer)?;
                self.at += read as u64;
                return if read > 0 { Ok(read) } else { Err(changed()) };
            }
            let gone = next.end - next.start;
            if io::copy(&mut self.old.by_ref().take(gone), &mut io::sink())? < gone {
                return Err(changed());
            }
            (self.at, self.text) = (next.end, next.text);
            self.next = self.further.next().transpose()?;
        }
        self.text.read(buffer)
    }
}

fn with_crlf(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() + newlines(text));
    for &byte in text {
        if byte == b'\n' {
            out.push(b'\r');
        }
        out.push(byte);
    }
    out
}

/// A text without carriage returns as a file has it with these line endings.
fn spelled<'a>(text: &'a [u8], crlf: &'a [bool]) -> impl Iterator<Item = &'a u8> {
    let mut crlf = crlf.iter();
    text.iter().flat_map(move |byte| {
        let is_crlf = *byte == b'\n' && crlf.next().is_some_and(|&is_crlf| is_crlf);
        is_crlf.then_some(&b'\r').into_iter().chain([byte])
    })
}

#[cfg(test)]
pub(super) mod tests {
    use std::fs::{self, File};
    use std::ops::Range;

    use super::*;
    use crate::fs::tests::Folder;
    use crate::fuzz::{Random, inputs};
    use crate::time::Deadline;

    #[test]
    fn new_text_gets_the_ending_of_its_place() {
        let folder = Folder::new();
        let file = b"a\r\nb\nc\r\nd";
        for (old, after) in [
            ("a", &b"a\r\nx\r\nb\nc\r\nd"[..]),
            ("b", b"a\r\nb\nx\nc\r\nd"),
            ("c", b"a\r\nb\nc\r\nx\r\nd"),
            ("d", b"a\r\nb\nc\r\nd\r\nx"),
            ("a\nb", b"a\r\nb\r\nx\nc\r\nd"),
            ("b\nc", b"a\r\nb\nc\nx\r\nd"),
        ] {
            for window in 1..6 {
                let new = format!("{old}\nx");
                let out = exchanged(&folder, file, old, &new, window, 1);
                assert_eq!(out.escape_ascii().to_string(), after.escape_ascii().to_string());
            }
        }
        assert_eq!(exchanged(&folder, b"abc", "b", "\n", 1, 1), b"a\nc");
    }

    #[test]
    fn places_that_are_not_there_any_more_are_an_error() {
        let folder = Folder::new();
        let path = folder.write("f", "a b a b");
        let file = File::open(&path).unwrap();
        let end = u64::MAX;
        let source = Source { file: &file, end, window: 4, deadline: Deadline::NONE };
        for old in ["a", "a b a"] {
            fs::write(&path, "a b a b").unwrap();
            let change = Change::new(old, "c");
            let found = change.find(&source).unwrap();
            fs::write(&path, "a b").unwrap();
            let error = io::copy(&mut change.made(&source, &found, 0), &mut io::sink())
                .unwrap_err()
                .to_string();
            assert!(error.starts_with("it was changed in the meantime"), "{error}");
        }
    }

    /// Random files over a small alphabet, so that texts repeat, and a random piece of each as the
    /// text to exchange. What comes out is compared with a simple exchange at the places that a
    /// byte by byte comparison finds. The file is seen through windows of a few bytes, so that
    /// whatever there is lies across the border of two.
    #[test]
    fn fuzz_random_edits_leave_everything_else_as_it_was() {
        let mut edited = 0;
        let folder = Folder::new();
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
            let out = exchanged(&folder, &file, &old, &new, random.below(9) + 1, places.len());
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

    /// The file after the exchange, seen through a window of so many bytes.
    #[track_caller]
    fn exchanged(
        folder: &Folder,
        content: &[u8],
        old: &str,
        new: &str,
        window: usize,
        count: usize,
    ) -> Vec<u8> {
        let file = File::open(folder.write("f", content)).unwrap();
        let source = Source { file: &file, end: u64::MAX, window, deadline: Deadline::NONE };
        let change = Change::new(old, new);
        let found = change.find(&source).unwrap();
        assert_eq!(found.count, count);
        let mut out = Vec::new();
        change.made(&source, &found, 0).read_to_end(&mut out).unwrap();
        out
    }
}

//! The lines of a file: read as a stream, masked, and shown with their numbers.

use std::fmt::Write as _;
use std::io::{self, BufRead};

use crate::secret::Mask;

use super::time_limit::TimeLimit;

/// The most characters of one line that a page shows.
pub(super) const LINE_MAX: usize = 2_000;

/// One line of a file, without its ending.
pub(super) struct Line {
    /// The first bytes, as many as can be shown at all.
    pub(super) head: Vec<u8>,
    /// Bytes in all.
    pub(super) bytes: u64,
    pub(super) ending: Ending,
}

impl Line {
    /// The line with its secrets masked, and without what may be the start of one that goes on
    /// behind the head.
    pub(super) fn masked(self, mask: &Mask) -> Line {
        let behind = self.bytes - self.head.len() as u64;
        let whole = mask.bytes(self.head.clone());
        let bytes = whole.len() as u64 + behind;
        let head = if behind > 0 { mask.start(self.head) } else { whole };
        Line { head, bytes, ..self }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    Lf,
    Crlf,
    /// The file ends without one.
    None,
}

/// Bytes that the most characters can take up.
pub(super) const HEAD_MAX: usize = 4 * LINE_MAX;

/// Reads the next line, and keeps so many bytes of it.
pub(super) fn next_line(
    reader: &mut impl BufRead,
    kept: usize,
    limit: TimeLimit,
) -> io::Result<Option<Line>> {
    let mut line = Line { head: Vec::new(), bytes: 0, ending: Ending::None };
    let mut last = None;
    loop {
        let buffer = reader.fill_buf()?;
        if buffer.is_empty() {
            return Ok((line.bytes > 0).then_some(line));
        }
        let end = buffer.iter().position(|&byte| byte == b'\n');
        let part = &buffer[..end.unwrap_or(buffer.len())];
        let room = kept.saturating_sub(line.head.len());
        line.head.extend_from_slice(&part[..part.len().min(room)]);
        line.bytes += part.len() as u64;
        last = part.last().copied().or(last);
        let used = part.len() + usize::from(end.is_some());
        reader.consume(used);
        if end.is_some() {
            line.ending = if last == Some(b'\r') { Ending::Crlf } else { Ending::Lf };
            if line.ending == Ending::Crlf {
                line.bytes -= 1;
                line.head.truncate(usize::try_from(line.bytes).unwrap_or(usize::MAX));
            }
            return Ok(Some(line));
        }
        limit.check()?;
    }
}

/// The most characters of a line that a result of an edit shows.
pub(super) const EDIT_LINE_MAX: usize = 500;

/// Writes a numbered line for the result of an edit.
pub(super) fn number_text(out: &mut String, number: u64, text: &[u8], mask: &Mask) {
    let mut line = Line { head: Vec::new(), bytes: text.len() as u64, ending: Ending::None };
    line.head.extend_from_slice(&text[..text.len().min(HEAD_MAX)]);
    number_line(out, number, &line.masked(mask), EDIT_LINE_MAX);
}

/// What became of a line when it was shown.
pub(super) struct Shown {
    /// Bytes that are not UTF-8 and were replaced.
    pub(super) replaced: usize,
    /// Bytes behind the most characters that may be shown.
    pub(super) left_out: u64,
}

/// Writes a numbered line, cut to `max` characters and marked where it is cut.
///
/// The head of the line is all of it, or at least four bytes for each of the characters.
pub(super) fn number_line(out: &mut String, number: u64, line: &Line, max: usize) -> Shown {
    // Writing to a String can't fail.
    let _ = write!(out, "{number:>6}\t");
    let mut shown = Shown { replaced: 0, left_out: line.bytes };
    let mut room = max;
    for chunk in line.head.utf8_chunks() {
        for character in chunk.valid().chars().take(room) {
            out.push(character);
            room -= 1;
            shown.left_out -= character.len_utf8() as u64;
        }
        if !chunk.invalid().is_empty() && room > 0 {
            out.push(char::REPLACEMENT_CHARACTER);
            room -= 1;
            shown.left_out -= chunk.invalid().len() as u64;
            shown.replaced += chunk.invalid().len();
        }
    }
    if shown.left_out > 0 {
        let _ = write!(out, " [{} bytes of this line left out]", shown.left_out);
    }
    out.push('\n');
    shown
}

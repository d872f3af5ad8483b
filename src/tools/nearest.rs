//! What to say of a text that does not stand in a file: where something like it stands, and what
//! is different there.
//!
//! It is for the model to find its mistake, so every sentence has to be true of the file as it is.

use std::io::{self, BufRead as _, BufReader};

use crate::secret::Mask;
use crate::text::{Lossy, head};

use super::lines::{Ending, HEAD_MAX, Line, next_line};
use super::matches::{Needle, common};
use super::source::{At, Source};

/// Why `old`, which does not stand in the file, does not.
pub(super) fn why_not(source: &Source<'_>, old: &str, mask: &Mask) -> io::Result<String> {
    if source.from(0).fill_buf()?.is_empty() {
        return Ok("the file is empty".to_owned());
    }
    let place = Place { source, old, mask };
    if has_line_numbers(old.as_bytes()) && !place.has_line_numbers()? {
        return Ok("leave out the line numbers and tabs that read_file adds".to_owned());
    }
    let hint = if old.contains('\r') {
        "old_string holds carriage returns, and then every line ending must match; without them LF \
         matches CRLF too"
    } else {
        "it must match exactly, white space included; call read_file, then edit_file with what \
         stands there"
    };
    let told = match place.first_difference()? {
        None => place.nearest_line()?,
        told => told,
    };
    Ok(told.unwrap_or_else(|| hint.to_owned()))
}

/// The lines of a text, each with its ending.
fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> + Clone {
    text.split_inclusive(|&byte| byte == b'\n')
}

fn has_line_numbers(old: &[u8]) -> bool {
    !old.trim_ascii().is_empty()
        && lines(old).all(|line| line.trim_ascii().is_empty() || is_numbered(line))
}

/// Whether a line starts like those of `read_file`.
fn is_numbered(line: &[u8]) -> bool {
    let number = line.trim_ascii_start();
    let digits = number.iter().take_while(|byte| byte.is_ascii_digit()).count();
    digits > 0 && number.get(digits) == Some(&b'\t')
}

/// Where a text is looked for that does not stand there.
struct Place<'a> {
    source: &'a Source<'a>,
    old: &'a str,
    mask: &'a Mask,
}

/// The most lines that are compared to find the place that is most like old_string.
const COMPARED_MAX: usize = 20;

/// Fewer characters than this are in too many lines.
const TELLING_MIN: usize = 3;

impl Place<'_> {
    /// The next line, or as much of it as is needed to compare it.
    fn next_line(&self, reader: &mut BufReader<At<'_>>) -> io::Result<Option<Line>> {
        next_line(reader, HEAD_MAX + 2 * self.old.len(), self.source.deadline)
    }

    fn has_line_numbers(&self) -> io::Result<bool> {
        let mut reader = self.source.from(0);
        while let Some(line) = self.next_line(&mut reader)? {
            if is_numbered(&line.head) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The first difference between old_string and the place that is most like it.
    fn first_difference(&self) -> io::Result<Option<String>> {
        let is_blank = |line: &&[u8]| line.trim_ascii().is_empty();
        // Blank lines are found anywhere, so the first one that is none leads to the place.
        let blank = lines(self.old.as_bytes()).take_while(is_blank).count();
        let compared: Vec<&[u8]> =
            lines(self.old.as_bytes()).skip(blank).take(COMPARED_MAX).collect();
        let Some(best) = self.longest_run(&compared)? else { return Ok(None) };
        let Some(start) = best.checked_sub(blank) else {
            return Ok(Some(format!(
                "old_string starts with {blank} blank lines, but line {} has only {best} above it",
                best + 1
            )));
        };
        let mut reader = self.source.from(0);
        for _ in 0..start {
            next_line(&mut reader, 0, self.source.deadline)?;
        }
        self.difference_from(&mut reader, start)
    }

    /// The line from which on the most lines in a row are the same as these but for the white space
    /// around them; none where not even one is.
    fn longest_run(&self, compared: &[&[u8]]) -> io::Result<Option<usize>> {
        let (mut best, mut longest) = (None, 0);
        // Where runs start that reach up to the line before.
        let mut open: Vec<usize> = Vec::new();
        let mut reader = self.source.from(0);
        for number in 0.. {
            let Some(line) = self.next_line(&mut reader)? else { break };
            open.push(number);
            open.retain(|&start| {
                let run = number - start;
                let goes_on = line.is_whole()
                    && compared
                        .get(run)
                        .is_some_and(|wanted| wanted.trim_ascii() == line.head.trim_ascii());
                if goes_on && run >= longest {
                    (best, longest) = (Some(start), run + 1);
                }
                goes_on
            });
        }
        Ok(best)
    }

    /// The first difference between old_string and the lines that come, of which the first is that
    /// of index `start`.
    fn difference_from(
        &self,
        reader: &mut BufReader<At<'_>>,
        start: usize,
    ) -> io::Result<Option<String>> {
        let count = lines(self.old.as_bytes()).count();
        for (index, wanted) in lines(self.old.as_bytes()).enumerate() {
            let number = start + index + 1;
            let Some(line) = self.next_line(reader)? else {
                return Ok(Some(behind(number - 1)));
            };
            let line = self.as_old_sees(line);
            let text = match line.ending {
                Ending::None => line.head.clone(),
                _ => [&line.head[..], b"\n"].concat(),
            };
            // Of the first line the end counts.
            if index == 0 && !line.is_whole() {
                return Ok(None);
            }
            let fits = match (index == 0, index + 1 == count) {
                (true, true) => Needle::new(self.old).is_in(&text),
                (true, false) => text.ends_with(wanted),
                (false, true) => text.starts_with(wanted),
                (false, false) => text == wanted,
            };
            if fits {
                continue;
            }
            if line.is_whole() && wanted.strip_suffix(b"\n") == Some(&text) {
                return Ok(Some(behind(number)));
            }
            let (line, wanted) = self.quoted(line, wanted);
            return Ok(Some(format!("line {number} is {line}, and old_string has {wanted} there")));
        }
        Ok(None)
    }

    /// The line with the carriage return before its newline, if it has one and old_string holds
    /// some: without any it takes CRLF for LF.
    fn as_old_sees(&self, mut line: Line) -> Line {
        if line.ending == Ending::Crlf && line.is_whole() && self.old.contains('\r') {
            line.head.push(b'\r');
            line.bytes += 1;
        }
        line
    }

    /// The line that is most like the first line of old_string that is not blank, when white space
    /// is left out of both: one that holds it, or has at least half in common with it.
    fn nearest_line(&self) -> io::Result<Option<String>> {
        let is_blank = |line: &&str| line.trim_ascii().is_empty();
        let Some(wanted) = self.old.lines().find(|line| !is_blank(line)) else { return Ok(None) };
        let dense: String =
            wanted.chars().filter(|character| !character.is_ascii_whitespace()).collect();
        if dense.len() < TELLING_MIN {
            return Ok(None);
        }
        let needle = Needle::new(&dense);
        let (mut best, mut most) = (None, 0);
        let mut reader = self.source.from(0);
        for number in 1_u64.. {
            let Some(line) = self.next_line(&mut reader)? else { break };
            let text: Vec<u8> =
                line.head.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect();
            let alike = if needle.is_in(&text) {
                usize::MAX
            } else if line.is_whole() {
                let (start, end) = common(&text, dense.as_bytes());
                if 2 * (start + end) < text.len().max(dense.len()) { 0 } else { start + end }
            } else {
                0
            };
            if alike > most {
                (best, most) = (Some((number, line)), alike);
            }
        }
        let Some((number, line)) = best else { return Ok(None) };
        let (line, wanted) = self.quoted(line, wanted.as_bytes());
        Ok(Some(format!("the line most like it is {number}: {line}, and old_string has {wanted}")))
    }

    /// Two lines to be compared: without their newlines, masked, and cut around the first
    /// difference.
    fn quoted(&self, line: Line, wanted: &[u8]) -> (String, String) {
        let wanted = wanted.strip_suffix(b"\n").unwrap_or(wanted);
        let line = Lossy::new(&line.masked(self.mask).head).text.into_owned();
        let wanted = self.mask.text(&Lossy::new(wanted).text).into_owned();
        let (same, _) = common(line.as_bytes(), wanted.as_bytes());
        (around(&line, same), around(&wanted, same))
    }
}

/// What is said of text that goes on where the file does not.
fn behind(last: usize) -> String {
    format!("it goes on where the file ends, behind line {last}")
}

/// The most bytes of a line that are quoted.
const QUOTED_MAX: usize = 200;

/// The most bytes of it that are quoted before the first difference.
const BEFORE_MAX: usize = 100;

/// What stands around a place in a line.
fn around(text: &str, place: usize) -> String {
    let from = text.floor_char_boundary(place.saturating_sub(BEFORE_MAX));
    let mark = if from > 0 { "..." } else { "" };
    let shown = head(&text[from..], QUOTED_MAX);
    let more = if from + shown.len() < text.len() { "..." } else { "" };
    format!("{mark}{shown:?}{more}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    use crate::fs::tests::Folder;
    use crate::time::Deadline;
    use crate::tools::source::WINDOW;

    fn told(content: &[u8], old: &str, window: usize) -> String {
        let folder = Folder::new();
        let file = File::open(folder.write("f", content)).unwrap();
        let source = Source { file: &file, end: u64::MAX, window, deadline: Deadline::NONE };
        why_not(&source, old, &Mask::default()).unwrap()
    }

    #[track_caller]
    fn check(file: &[u8], old: &str, expected: &str) {
        assert!(!Needle::new(old).is_in(file), "it stands there");
        for window in [1, 3, WINDOW] {
            assert_eq!(told(file, old, window), expected);
        }
    }

    #[test]
    fn the_first_line_that_differs_is_told() {
        check(
            b"fn a() {\n\treturn;\n}\n",
            "fn a() {\n    return;\n}",
            "line 2 is \"\\treturn;\", and old_string has \"    return;\" there",
        );
        check(b"a\nb", "a\nb\nc", "it goes on where the file ends, behind line 2");
        check(b"a\nb\n", "a\nb\nc", "it goes on where the file ends, behind line 2");
        check(b"a\nb", "a\nb\n", "it goes on where the file ends, behind line 2");
        check(b"x\n a\nb\n", "\ta\nb", "line 2 is \" a\", and old_string has \"\\ta\" there");
        let long = "a\n".repeat(3 * COMPARED_MAX);
        check(
            format!("{long}b\n").as_bytes(),
            &format!("{long}c\n"),
            "line 61 is \"b\", and old_string has \"c\" there",
        );
    }

    #[test]
    fn line_endings_that_differ_are_told() {
        check(b"a\r\nb\r\n", "a\r\nB\r\n", "line 2 is \"b\\r\", and old_string has \"B\\r\" there");
        check(b"a\nb\n", "a\r\nb", "line 1 is \"a\", and old_string has \"a\\r\" there");
        // A carriage return without a newline is no line ending.
        check(b"a\nb\r", "a\nb\n", "line 2 is \"b\\r\", and old_string has \"b\" there");
        check(
            b"x\ny\n",
            "a\r\nb",
            "old_string holds carriage returns, and then every line ending must match; without \
             them LF matches CRLF too",
        );
    }

    #[test]
    fn blank_lines_at_the_start_count() {
        check(
            b"a\nb\n",
            "\n\n\nb\n",
            "old_string starts with 3 blank lines, but line 2 has only 1 above it",
        );
        check(b"a\n  \nb\n", "\n\nb\n", "line 2 is \"  \", and old_string has \"\" there");
        check(b"a\n\nb\n", "\n \nb\n", "line 2 is \"\", and old_string has \" \" there");
    }

    #[test]
    fn pasted_line_numbers_are_told() {
        let told = "leave out the line numbers and tabs that read_file adds";
        check(b"a\nb\n", "     1\ta\n     2\tb\n", told);
        check(b"a\nb\n", "     1\ta\n\n     3\tb", told);
        check(b"a\n", "7\ta", told);
        // The file has such lines itself.
        check(
            b"1\tone\n2\ttwo\n",
            "1\tone\n2\tTwo\n",
            "line 2 is \"2\\ttwo\", and old_string has \"2\\tTwo\" there",
        );
    }

    #[test]
    fn the_nearest_line_is_told_where_none_is_the_same() {
        check(
            b"x\n    let x = foo( a, b );\n",
            "let x = foo(a, b);",
            "the line most like it is 2: \"    let x = foo( a, b );\", and old_string has \"let x \
             = foo(a, b);\"",
        );
        check(
            b"let total = 0;\nreturn total + 1;\n",
            "return total + 2;\n}",
            "the line most like it is 2: \"return total + 1;\", and old_string has \"return total \
             + 2;\"",
        );
        let told = "it must match exactly, white space included; call read_file, then edit_file \
                    with what stands there";
        check("say \u{201c}hi\u{201d}\n".as_bytes(), "say \"hi\"\n", told);
        check(b"abc\n", "\n\n", told);
        check(b"", "a", "the file is empty");
    }

    #[test]
    fn a_difference_far_into_a_line_is_shown() {
        let same = "\u{e9}".repeat(1_000);
        let file = format!("a\n {same}x{same}\n");
        let told = told(file.as_bytes(), &format!("a\n {same}y"), 1);
        assert!(told.starts_with("line 2 is ...\"\u{e9}") && told.contains("\u{e9}x\u{e9}"));
        assert!(told.ends_with("\u{e9}y\" there") && told.len() < 500, "{told}");
    }

    #[test]
    fn a_large_file_takes_no_time() {
        let file = "a = b;\n".repeat(1_000_000);
        told(file.as_bytes(), &"a = b;\n".repeat(50).replace("; ", ";"), WINDOW);
        told(file.as_bytes(), "x = y;\n", WINDOW);
    }
}

//! What to say of a text that does not stand in a file: where something like it stands, and what
//! is different there.
//!
//! It is for the model to find its mistake, so every sentence has to be true of the file as it is.

use std::borrow::Cow;

use crate::secret::Mask;
use crate::text::{Lossy, head};

use super::lines::number_text;
use super::text_search::{Finder, common, with_lf};

/// Why a text was not found in a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Mismatch {
    /// What is different, in a sentence.
    pub(super) why: String,
    /// The index of the line that is most like the text.
    line: Option<usize>,
}

/// A file of at most so many lines and bytes is shown whole.
const WHOLE_LINES: usize = 60;
const WHOLE_BYTES: usize = 4_000;

/// Lines shown above and below the one that is most like the text.
const AROUND: usize = 5;

impl Mismatch {
    /// Finds out why `old`, which does not stand in the file, does not.
    pub(super) fn find(file: &[u8], old: &str, mask: &Mask) -> Mismatch {
        let told = |why: &str| Mismatch { why: why.to_owned(), line: None };
        if file.is_empty() {
            return told("the file is empty");
        }
        let place = Place { file, old, mask };
        if has_line_numbers(old.as_bytes()) && !lines(file).any(is_numbered) {
            return told("leave out the line numbers and tabs that read_file adds");
        }
        let hint = if old.contains('\r') {
            "old_string holds carriage returns, and then every line ending must match; without \
             them LF matches CRLF too"
        } else {
            "it must match exactly, white space included; call read_file, then edit_file with \
             what stands there"
        };
        place.first_difference().or_else(|| place.nearest_line()).unwrap_or_else(|| told(hint))
    }

    /// The numbered lines around the one that is most like the text, or all of a small file;
    /// nothing where there is neither.
    pub(super) fn excerpt(&self, file: &[u8], mask: &Mask) -> String {
        let is_small =
            file.len() <= WHOLE_BYTES && lines(file).take(WHOLE_LINES + 1).count() <= WHOLE_LINES;
        let (title, from, to) = match self.line {
            _ if file.is_empty() => return String::new(),
            _ if is_small => ("the file", 0, WHOLE_LINES),
            Some(line) => ("the lines there", line.saturating_sub(AROUND), line + AROUND + 1),
            None => return String::new(),
        };
        let mut out = format!("\n{title}:\n");
        for (index, line) in lines(file).enumerate().take(to).skip(from) {
            number_text(&mut out, index as u64 + 1, without_ending(line), mask);
        }
        out
    }
}

/// The lines of a text, each with its ending.
fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> + Clone {
    text.split_inclusive(|&byte| byte == b'\n')
}

fn without_ending(line: &[u8]) -> &[u8] {
    let text = line.strip_suffix(b"\n").map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    text.unwrap_or(line)
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

/// A file, and a text that does not stand in it.
struct Place<'a> {
    file: &'a [u8],
    old: &'a str,
    mask: &'a Mask,
}

/// The most lines that are compared to find the place that is most like old_string.
const COMPARED_MAX: usize = 20;

/// Fewer characters than this are in too many lines.
const TELLING_MIN: usize = 3;

impl Place<'_> {
    /// The first difference between old_string and the place that is most like it.
    fn first_difference(&self) -> Option<Mismatch> {
        let is_blank = |line: &&[u8]| line.trim_ascii().is_empty();
        // Blank lines are found anywhere, so the first one that is none leads to the place.
        let blank = lines(self.old.as_bytes()).take_while(is_blank).count();
        let compared: Vec<&[u8]> =
            lines(self.old.as_bytes()).skip(blank).take(COMPARED_MAX).collect();
        let best = self.longest_run(&compared)?;
        let Some(start) = best.checked_sub(blank) else {
            let why = format!(
                "old_string starts with {blank} blank lines, but line {} has only {best} above it",
                best + 1
            );
            return Some(Mismatch { why, line: Some(best) });
        };
        self.difference_from(start)
    }

    /// The line from which on the most lines in a row are the same as these but for the white space
    /// around them; none where not even one is.
    fn longest_run(&self, compared: &[&[u8]]) -> Option<usize> {
        let (mut best, mut longest) = (None, 0);
        // Where runs start that reach up to the line before.
        let mut open: Vec<usize> = Vec::new();
        for (number, line) in lines(self.file).enumerate() {
            let line = line.trim_ascii();
            open.push(number);
            open.retain(|&start| {
                let run = number - start;
                let goes_on = compared.get(run).is_some_and(|wanted| wanted.trim_ascii() == line);
                if goes_on && run >= longest {
                    (best, longest) = (Some(start), run + 1);
                }
                goes_on
            });
        }
        best
    }

    /// The first difference between old_string and the lines from that of index `start` on.
    fn difference_from(&self, start: usize) -> Option<Mismatch> {
        let count = lines(self.old.as_bytes()).count();
        let mut file = lines(self.file).skip(start);
        for (index, wanted) in lines(self.old.as_bytes()).enumerate() {
            let number = start + index + 1;
            let told = |why| Some(Mismatch { why, line: Some(number - 1) });
            let Some(line) = file.next() else { return told(behind(number - 1)) };
            let line = self.as_old_sees(line);
            let fits = match (index == 0, index + 1 == count) {
                (true, true) => Finder::new(wanted).is_in(&line),
                (true, false) => line.ends_with(wanted),
                (false, true) => line.starts_with(wanted),
                (false, false) => *line == *wanted,
            };
            if fits {
                continue;
            }
            if wanted.strip_suffix(b"\n") == Some(&line) {
                return told(behind(number));
            }
            let (line, wanted) = self.quoted(&line, wanted);
            return told(format!("line {number} is {line}, and old_string has {wanted} there"));
        }
        None
    }

    /// The line with LF for CRLF, as old_string takes it unless it holds carriage returns itself.
    fn as_old_sees<'b>(&self, line: &'b [u8]) -> Cow<'b, [u8]> {
        if self.old.contains('\r') { Cow::Borrowed(line) } else { with_lf(line) }
    }

    /// The line that is most like the first line of old_string that is not blank, when white space
    /// is left out of both: one that holds it, or has at least half in common with it.
    fn nearest_line(&self) -> Option<Mismatch> {
        let is_blank = |line: &&str| line.trim_ascii().is_empty();
        let wanted = self.old.lines().find(|line| !is_blank(line))?;
        let dense = |text: &[u8]| -> Vec<u8> {
            text.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect()
        };
        let old = dense(wanted.as_bytes());
        if old.len() < TELLING_MIN {
            return None;
        }
        let finder = Finder::new(&old);
        let (mut best, mut most) = (None, 0);
        for (index, line) in lines(self.file).enumerate() {
            let text = dense(line);
            let alike = if finder.is_in(&text) {
                usize::MAX
            } else {
                let (start, end) = common(&text, &old);
                if 2 * (start + end) < text.len().max(old.len()) { 0 } else { start + end }
            };
            if alike > most {
                (best, most) = (Some((index, line)), alike);
            }
        }
        let (index, line) = best?;
        let (line, wanted) = self.quoted(without_ending(line), wanted.as_bytes());
        let number = index + 1;
        let why = format!("the line most like it is {number}: {line}, and old_string has {wanted}");
        Some(Mismatch { why, line: Some(index) })
    }

    /// Two lines to be compared: without their newlines, masked, and cut around the first
    /// difference.
    fn quoted(&self, line: &[u8], wanted: &[u8]) -> (String, String) {
        let masked = |line: &[u8]| {
            let line = line.strip_suffix(b"\n").unwrap_or(line);
            self.mask.text(&Lossy::new(line).text).into_owned()
        };
        let (line, wanted) = (masked(line), masked(wanted));
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

    fn told(file: &[u8], old: &str) -> String {
        Mismatch::find(file, old, &Mask::default()).why
    }

    #[track_caller]
    fn check(file: &[u8], old: &str, expected: &str) {
        let searched = if old.contains('\r') { Cow::Borrowed(file) } else { with_lf(file) };
        assert!(!Finder::new(old.as_bytes()).is_in(&searched), "it stands there");
        assert_eq!(told(file, old), expected);
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
        let told = told(file.as_bytes(), &format!("a\n {same}y"));
        assert!(told.starts_with("line 2 is ...\"\u{e9}") && told.contains("\u{e9}x\u{e9}"));
        assert!(told.ends_with("\u{e9}y\" there") && told.len() < 500, "{told}");
    }

    #[test]
    fn a_large_file_takes_no_time() {
        let file = "a = b;\n".repeat(1_000_000);
        told(file.as_bytes(), &"a = b;\n".repeat(50).replace("; ", ";"));
        told(file.as_bytes(), "x = y;\n");
    }

    #[test]
    fn the_lines_that_are_most_like_it_are_shown_or_all_of_a_small_file() {
        let excerpt = |file: &str, old: &str| {
            let mask = Mask::default();
            Mismatch::find(file.as_bytes(), old, &mask).excerpt(file.as_bytes(), &mask)
        };
        assert_eq!(excerpt("a\r\nb", "c"), "\nthe file:\n     1\ta\n     2\tb\n");
        assert_eq!(excerpt("", "c"), "");
        let long: String = (1..=WHOLE_LINES + 1).map(|number| format!("line {number}\n")).collect();
        let expected: String =
            (45..=55).map(|number| format!("{number:>6}\tline {number}\n")).collect();
        assert_eq!(excerpt(&long, "line 50 \nx"), format!("\nthe lines there:\n{expected}"));
        assert_eq!(excerpt(&long, "other"), "");
        let wide = format!("line one\n{}\n", "x".repeat(WHOLE_BYTES));
        let told = excerpt(&wide, "line  one");
        assert!(told.starts_with("\nthe lines there:\n     1\tline one\n     2\txxx"), "{told}");
        assert!(told.ends_with(" bytes of this line left out]\n") && told.len() < 1_000, "{told}");
    }
}

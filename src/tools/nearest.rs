//! What to say of a text that does not stand in a file: where something like it stands, and what
//! is different there.
//!
//! It is for the model to find its mistake, so every sentence has to be true of the file as it is.

use crate::secret::Mask;
use crate::text::{Lossy, head};

use super::matches::Needle;

/// Why `old`, which does not stand in `file`, does not.
pub(super) fn why_not(file: &[u8], old: &str, mask: &Mask) -> String {
    if file.is_empty() {
        return "the file is empty".to_owned();
    }
    if has_line_numbers(old.as_bytes()) && !lines(file).any(is_numbered) {
        return "leave out the line numbers and tabs that read_file adds".to_owned();
    }
    let difference = first_difference(file, old, mask).or_else(|| nearest_line(file, old, mask));
    difference.unwrap_or_else(|| {
        let hint = if old.contains('\r') {
            "old_string holds carriage returns, and then every line ending must match; without \
             them LF matches CRLF too"
        } else {
            "it must match exactly, white space included; call read_file, then edit_file with \
             what stands there"
        };
        hint.to_owned()
    })
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

/// The most lines that are compared to find the place that is most like old_string.
const COMPARED_MAX: usize = 20;

/// The first difference between old_string and the place that is most like it: where the most
/// lines in a row are the same but for the white space around them.
fn first_difference(file: &[u8], old: &str, mask: &Mask) -> Option<String> {
    let is_alike = |(a, b): &(&[u8], &[u8])| a.trim_ascii() == b.trim_ascii();
    let is_blank = |line: &&[u8]| line.trim_ascii().is_empty();
    // Blank lines are found anywhere, so the first one that is none leads to the place.
    let blank = lines(old.as_bytes()).take_while(is_blank).count();
    let compared: Vec<&[u8]> = lines(old.as_bytes()).skip(blank).take(COMPARED_MAX).collect();
    let (mut best, mut longest) = (0_usize, 0);
    let mut rest = lines(file);
    for index in 0.. {
        let run = rest.clone().zip(compared.iter().copied()).take_while(is_alike).count();
        if run > longest {
            (best, longest) = (index, run);
        }
        if rest.next().is_none() {
            break;
        }
    }
    if longest == 0 {
        return None;
    }
    let Some(start) = best.checked_sub(blank) else {
        return Some(format!(
            "old_string starts with {blank} blank lines, but line {} has only {best} above it",
            best + 1
        ));
    };
    let mut place = lines(file).skip(start);
    let count = lines(old.as_bytes()).count();
    for (index, wanted) in lines(old.as_bytes()).enumerate() {
        let number = start + index + 1;
        let line = place.next().unwrap_or_default();
        let line = if old.contains('\r') { line.to_vec() } else { with_lf(line) };
        let fits = match (index == 0, index + 1 == count) {
            (true, true) => {
                Needle::new(std::str::from_utf8(wanted).ok()?).matches(&line).next().is_some()
            }
            (true, false) => line.ends_with(wanted),
            (false, true) => line.starts_with(wanted),
            (false, false) => line == wanted,
        };
        if fits {
            continue;
        }
        if wanted.strip_suffix(b"\n") == Some(&line) || line.is_empty() {
            let last = if line.is_empty() { number - 1 } else { number };
            return Some(format!("it goes on where the file ends, behind line {last}"));
        }
        let (line, wanted) = quoted(&line, wanted, mask);
        return Some(format!("line {number} is {line}, and old_string has {wanted} there"));
    }
    None
}

/// The line with LF for its ending, which is how old_string sees it.
fn with_lf(line: &[u8]) -> Vec<u8> {
    match line.strip_suffix(b"\r\n") {
        Some(line) => [line, b"\n"].concat(),
        None => line.to_vec(),
    }
}

/// Fewer characters than this are in too many lines.
const TELLING_MIN: usize = 3;

/// The line that is most like the first line of old_string that is not blank, when white space is
/// left out of both: one that holds it, or has at least half in common with it.
fn nearest_line(file: &[u8], old: &str, mask: &Mask) -> Option<String> {
    let wanted = old.lines().find(|line| !line.trim_ascii().is_empty())?;
    let dense: String =
        wanted.chars().filter(|character| !character.is_ascii_whitespace()).collect();
    if dense.len() < TELLING_MIN {
        return None;
    }
    let needle = Needle::new(&dense);
    let mut best = None;
    let mut most = 0;
    for (line, number) in lines(file).zip(1..) {
        let text: Vec<u8> =
            line.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect();
        let alike = if needle.matches(&text).next().is_some() {
            usize::MAX
        } else {
            let (start, end) = common(&text, dense.as_bytes());
            if 2 * (start + end) < text.len().max(dense.len()) { 0 } else { start + end }
        };
        if alike > most {
            (best, most) = (Some((number, line)), alike);
        }
    }
    let (number, line): (usize, &[u8]) = best?;
    let (line, wanted) = quoted(line, wanted.as_bytes(), mask);
    Some(format!("the line most like it is {number}: {line}, and old_string has {wanted}"))
}

/// How many bytes two texts have in common at their starts and, behind that, at their ends.
pub(super) fn common(a: &[u8], b: &[u8]) -> (usize, usize) {
    let start = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let rest = a[start..].iter().rev().zip(b[start..].iter().rev());
    (start, rest.take_while(|(a, b)| a == b).count())
}

/// The most bytes of a line that are quoted.
const QUOTED_MAX: usize = 200;

/// The most bytes of it that are quoted before the first difference.
const BEFORE_MAX: usize = 100;

/// Two lines to be compared: without their newlines, masked, and cut around the first difference.
fn quoted(line: &[u8], wanted: &[u8], mask: &Mask) -> (String, String) {
    let text = |line: &[u8]| {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        mask.text(&Lossy::new(line).text).into_owned()
    };
    let (line, wanted) = (text(line), text(wanted));
    let (same, _) = common(line.as_bytes(), wanted.as_bytes());
    let cut = |text: &str| {
        let from = text.floor_char_boundary(same.saturating_sub(BEFORE_MAX));
        let mark = if from > 0 { "..." } else { "" };
        let shown = head(&text[from..], QUOTED_MAX);
        let more = if from + shown.len() < text.len() { "..." } else { "" };
        format!("{mark}{shown:?}{more}")
    };
    (cut(&line), cut(&wanted))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(file: &[u8], old: &str, expected: &str) {
        assert!(Needle::new(old).matches(file).next().is_none(), "it stands there");
        assert_eq!(why_not(file, old, &Mask::default()), expected);
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
        let told = why_not(file.as_bytes(), &format!("a\n {same}y"), &Mask::default());
        assert!(told.starts_with("line 2 is ...\"\u{e9}") && told.contains("\u{e9}x\u{e9}"));
        assert!(told.ends_with("\u{e9}y\" there") && told.len() < 500, "{told}");
    }

    #[test]
    fn a_large_file_takes_no_time() {
        let file = "a = b;\n".repeat(1_000_000);
        why_not(file.as_bytes(), &"a = b;\n".repeat(50).replace("; ", ";"), &Mask::default());
        why_not(file.as_bytes(), "x = y;\n", &Mask::default());
    }
}

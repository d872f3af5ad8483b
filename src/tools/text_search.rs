//! Finds a text in the bytes of a file, in linear time whatever both are.

use std::borrow::Cow;

/// A text to look for, by the search of Knuth, Morris and Pratt.
#[derive(Debug)]
pub(super) struct Finder<'a> {
    wanted: &'a [u8],
    /// For each start of the text, the length of its longest proper end that is a start too.
    borders: Vec<usize>,
}

impl<'a> Finder<'a> {
    /// Prepares the search for a text; an empty one is found nowhere.
    pub(super) fn new(wanted: &'a [u8]) -> Finder<'a> {
        let mut borders = vec![0; wanted.len()];
        let mut length = 0;
        for index in 1..wanted.len() {
            while length > 0 && wanted[length] != wanted[index] {
                length = borders[length - 1];
            }
            length += usize::from(wanted[length] == wanted[index]);
            borders[index] = length;
        }
        Finder { wanted, borders }
    }

    /// Where the text starts, from left to right, without overlaps.
    pub(super) fn all(&self, text: &[u8]) -> impl Iterator<Item = usize> {
        let mut length = 0;
        text.iter().enumerate().filter_map(move |(index, byte)| {
            while length > 0 && self.wanted[length] != *byte {
                length = self.borders[length - 1];
            }
            if self.wanted.get(length) == Some(byte) {
                length += 1;
                if length == self.wanted.len() {
                    length = 0;
                    return Some(index + 1 - self.wanted.len());
                }
            }
            None
        })
    }

    /// Whether the text stands there.
    pub(super) fn is_in(&self, text: &[u8]) -> bool {
        self.all(text).next().is_some()
    }
}

/// A text with LF in place of CRLF.
pub(super) fn with_lf(text: &[u8]) -> Cow<'_, [u8]> {
    let is_crlf = |index: usize| text[index] == b'\r' && text.get(index + 1) == Some(&b'\n');
    let count = (0..text.len()).filter(|&index| is_crlf(index)).count();
    if count == 0 {
        return Cow::Borrowed(text);
    }
    let mut out = Vec::with_capacity(text.len() - count);
    out.extend((0..text.len()).filter(|&index| !is_crlf(index)).map(|index| text[index]));
    Cow::Owned(out)
}

/// A text with CRLF in place of LF.
pub(super) fn with_crlf(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() + newlines(text));
    for &byte in text {
        if byte == b'\n' {
            out.push(b'\r');
        }
        out.push(byte);
    }
    out
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

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(wanted: &str, text: &str, expected: &[usize]) {
        let finder = Finder::new(wanted.as_bytes());
        assert_eq!(finder.all(text.as_bytes()).collect::<Vec<_>>(), expected);
        assert_eq!(finder.is_in(text.as_bytes()), !expected.is_empty());
    }

    #[test]
    fn matches_do_not_overlap() {
        check("aa", "aaaaa", &[0, 2]);
        check("abab", "ababab", &[0]);
        check("aab", "aaab", &[1]);
        check("x", "", &[]);
        check("", "x", &[]);
    }

    #[test]
    fn only_the_carriage_return_of_a_line_ending_goes() {
        assert_eq!(*with_lf(b"a\r\r\nb\r\r\nc\r"), *b"a\r\nb\r\nc\r");
        assert!(matches!(with_lf(b"a\rb\n"), Cow::Borrowed(_)));
        assert_eq!(with_crlf(b"\na\n"), b"\r\na\r\n");
    }

    #[test]
    fn a_search_that_nearly_matches_everywhere_is_linear() {
        let text = vec![b'a'; 4_000_000];
        let wanted = format!("{}b", "a".repeat(200_000));
        assert!(!Finder::new(wanted.as_bytes()).is_in(&text));
    }
}

//! The output of a command as text of bounded size.
//!
//! The start and the end are kept, and the end gets more: that is where compilers and tests say
//! what came of it. Bytes become text as they come in, so that the bound holds for what is shown
//! (a byte that is not UTF-8 grows to three) and every cut falls between characters. The cost of
//! a chunk depends on the chunk, not on what came before.
//!
//! Not here yet: the whole output in a temporary file. [`Capture::push`] sees every byte once and
//! in order, which is all that takes.

use crate::text;

/// Most bytes of the start.
const HEAD: usize = 8 * 1024;
/// Most bytes of the end. With the start this leaves room within 32 KB for what is said of it.
const TAIL: usize = 23 * 1024;

/// What was written, as text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Captured {
    /// The start; all of it when it is short.
    pub head: String,
    /// What follows the start, or the end of it.
    pub tail: String,
    /// Bytes left out between the two, counted as they would have been shown.
    pub omitted: u64,
    /// Bytes that were not UTF-8 and became U+FFFD, those left out included.
    pub replaced: u64,
    /// NUL bytes, which became U+2400, those left out included.
    pub nuls: u64,
}

/// Takes output in as it comes.
#[derive(Debug, Default)]
pub(super) struct Capture {
    head: String,
    /// Twice [`TAIL`] at most, so that the front has to be moved out only now and then.
    tail: String,
    /// Whether the start ended because something did not fit.
    head_is_full: bool,
    /// Bytes dropped between the start and the end.
    omitted: u64,
    replaced: u64,
    nuls: u64,
    /// The first bytes of a character that was cut off by the end of a chunk.
    cut: Vec<u8>,
}

impl Capture {
    pub(super) fn new() -> Capture {
        Capture::default()
    }

    pub(super) fn push(&mut self, chunk: &[u8]) {
        if self.cut.is_empty() {
            return self.push_bytes(chunk);
        }
        let mut bytes = std::mem::take(&mut self.cut);
        bytes.extend_from_slice(chunk);
        self.push_bytes(&bytes);
    }

    pub(super) fn finish(mut self) -> Captured {
        if !self.cut.is_empty() {
            // The rest of the character never came.
            self.replace(self.cut.len());
        }
        self.trim_tail();
        let Capture { head, tail, omitted, replaced, nuls, .. } = self;
        Captured { head, tail, omitted, replaced, nuls }
    }

    fn push_bytes(&mut self, bytes: &[u8]) {
        let mut seen = 0;
        for chunk in bytes.utf8_chunks() {
            let (valid, invalid) = (chunk.valid(), chunk.invalid());
            seen += valid.len() + invalid.len();
            self.push_valid(valid);
            if seen == bytes.len() && is_start_of_character(invalid) {
                self.cut = invalid.to_owned();
            } else if !invalid.is_empty() {
                self.replace(invalid.len());
            }
        }
    }

    fn replace(&mut self, bytes: usize) {
        self.replaced += bytes as u64;
        self.push_text("\u{fffd}");
    }

    /// A NUL is text too, but some endpoints cut a message at it or refuse it.
    fn push_valid(&mut self, text: &str) {
        if !text.contains('\0') {
            return self.push_text(text);
        }
        self.nuls += text.bytes().filter(|byte| *byte == 0).count() as u64;
        self.push_text(&text.replace('\0', "\u{2400}"));
    }

    fn push_text(&mut self, mut text: &str) {
        if !self.head_is_full {
            let head = text::head(text, HEAD - self.head.len());
            self.head.push_str(head);
            text = &text[head.len()..];
            self.head_is_full = !text.is_empty();
        }
        let tail = text::tail(text, TAIL);
        if tail.len() < text.len() {
            self.omitted += (self.tail.len() + text.len() - tail.len()) as u64;
            self.tail.clear();
        }
        self.tail.push_str(tail);
        if self.tail.len() > 2 * TAIL {
            self.trim_tail();
        }
    }

    fn trim_tail(&mut self) {
        let dropped = self.tail.len() - text::tail(&self.tail, TAIL).len();
        self.tail.drain(..dropped);
        self.omitted += dropped as u64;
    }
}

/// Whether more bytes could make a character of these.
fn is_start_of_character(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn captured(chunks: &[&[u8]]) -> Captured {
        let mut capture = Capture::new();
        for chunk in chunks {
            capture.push(chunk);
        }
        capture.finish()
    }

    #[test]
    fn short_output_is_kept_whole() {
        let output = captured(&[b"one ", b"two"]);
        assert_eq!(output, Captured { head: "one two".to_owned(), ..Captured::default() });
        let most = "x".repeat(HEAD + TAIL);
        let output = captured(&[most.as_bytes()]);
        assert_eq!((output.omitted, output.head.len() + output.tail.len()), (0, HEAD + TAIL));
    }

    #[test]
    fn the_start_and_the_end_of_long_output_are_kept_and_the_rest_is_counted() {
        let lines: String = (0..200_000).map(|line| format!("{line}\n")).collect();
        for size in [1, 7, 4_096, 65_536, lines.len()] {
            let chunks: Vec<&[u8]> = lines.as_bytes().chunks(size).collect();
            let output = captured(&chunks);
            assert_eq!(output.head, lines[..HEAD], "chunks of {size}");
            assert_eq!(output.tail, lines[lines.len() - TAIL..], "chunks of {size}");
            assert_eq!(output.omitted, (lines.len() - HEAD - TAIL) as u64, "chunks of {size}");
        }
    }

    #[test]
    fn the_bound_holds_for_text_that_grows_and_cuts_fall_between_characters() {
        for byte in [0xff, 0] {
            let noise = vec![byte; 500_000];
            let output = captured(&[&noise, &noise]);
            assert!(output.head.len() <= HEAD && output.tail.len() <= TAIL, "{byte}");
            let shown = (output.head.len() + output.tail.len()) as u64;
            assert_eq!(shown + output.omitted, 3_000_000, "{byte}");
            assert_eq!(output.replaced + output.nuls, 1_000_000, "{byte}");
        }
        let smileys = "\u{1f642}".repeat(20_000);
        let output = captured(&[b"x", smileys.as_bytes()]);
        assert!(output.tail.starts_with('\u{1f642}') && output.replaced == 0);
    }

    #[test]
    fn a_character_that_comes_in_pieces_is_whole() {
        let output = captured(&[b"a\xf0\x9f", b"\x99", b"\x82b"]);
        assert_eq!((output.head.as_str(), output.replaced), ("a\u{1f642}b", 0));
        let output = captured(&[b"a\xf0\x9f", b"b\xff", b"\xe2\x82"]);
        assert_eq!((output.head.as_str(), output.replaced), ("a\u{fffd}b\u{fffd}\u{fffd}", 5));
    }

    #[test]
    fn a_nul_is_shown_and_counted() {
        let output = captured(&[b"a\0b"]);
        assert_eq!((output.head.as_str(), output.nuls), ("a\u{2400}b", 1));
    }
}

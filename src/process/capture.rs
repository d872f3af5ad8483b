//! The output of a command as text of bounded size.
//!
//! The start and the end are kept, and the end gets more: that is where compilers and tests say
//! what came of it. Bytes become text as they come in, so that the bound holds for what is shown
//! (a byte that is not UTF-8 grows to three) and every cut falls between characters, or between
//! lines where one ends nearby. Secrets are masked before anything is cut: a piece of one would
//! not be known for what it is. The cost of a chunk depends on the chunk, not on what came before.
//!
//! Once something has to be left out, all of it goes to a [`SpillFile`].

use std::borrow::Cow;

use super::spill::{FullOutput, SpillFile};
use crate::secret::{Held, Mask};
use crate::text;

/// Most bytes of the start.
const HEAD: usize = 8 * 1024;
/// Most bytes of the end. With the start this leaves room within 32 KB for what is said of it.
const TAIL: usize = 23 * 1024;

/// How far from a cut the end of a line is looked for, to cut there.
const LINE: usize = 1024;
/// Stands for bytes that are not UTF-8.
const REPLACEMENT: &str = "\u{fffd}";
/// Stands where a line is cut.
const ELLIPSIS: &str = "...";

/// What was written, as text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Captured {
    /// The start; all of it when it is short. It ends in `...` where it is cut within a line.
    pub head: String,
    /// What follows the start, or the end of it. It starts with `...` where it is cut within a
    /// line.
    pub tail: String,
    /// Bytes left out between the two, counted as they would have been shown.
    pub omitted: u64,
    /// Bytes that were not UTF-8 and became U+FFFD, those left out included.
    pub replaced: u64,
    /// NUL bytes, which became U+2400, those left out included.
    pub nuls: u64,
    /// Where all of it lies, when something is left out.
    pub full: Option<FullOutput>,
}

/// Takes output in as it comes.
#[derive(Debug, Default)]
pub(super) struct Capture {
    mask: Mask,
    /// Text that may be the start of a secret.
    held: Held,
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
    /// Where the whole goes; none where it goes nowhere.
    spill: Option<SpillFile>,
    /// Whether there is more than is kept, and so a whole.
    spills: bool,
}

impl Capture {
    /// Takes in what is written, with the secrets of `mask` masked.
    pub(super) fn new(mask: Mask, spill: Option<SpillFile>) -> Capture {
        Capture { mask, spill, ..Capture::default() }
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
            self.replaced += self.cut.len() as u64;
            self.push_text(REPLACEMENT);
        }
        let last = self.mask.last(std::mem::take(&mut self.held));
        self.keep(&last);
        self.trim_tail();
        if self.omitted > 0 {
            self.cut_at_lines();
        }
        let Capture { head, tail, omitted, replaced, nuls, spill, .. } = self;
        let full = spill.and_then(SpillFile::finish);
        Captured { head, tail, omitted, replaced, nuls, full }
    }

    /// Cuts what is kept back to whole lines, or marks the cuts.
    fn cut_at_lines(&mut self) {
        let near = self.head.len() - text::tail(&self.head, LINE).len();
        match self.head[near..].rfind('\n') {
            Some(newline) => {
                let end = near + newline + 1;
                self.omitted += (self.head.len() - end) as u64;
                self.head.truncate(end);
            }
            None => self.head.push_str(ELLIPSIS),
        }
        match text::head(&self.tail, LINE).find('\n') {
            Some(newline) => {
                self.omitted += newline as u64 + 1;
                self.tail.drain(..=newline);
            }
            None => self.tail.insert_str(0, ELLIPSIS),
        }
    }

    /// A chunk is passed on in one go, since noise comes in pieces of a few bytes.
    fn push_bytes(&mut self, bytes: &[u8]) {
        let mut text = Cow::Borrowed("");
        let mut seen = 0;
        for chunk in bytes.utf8_chunks() {
            let (valid, invalid) = (chunk.valid(), chunk.invalid());
            seen += valid.len() + invalid.len();
            text += valid;
            if seen == bytes.len() && is_start_of_character(invalid) {
                self.cut = invalid.to_owned();
            } else if !invalid.is_empty() {
                self.replaced += invalid.len() as u64;
                text += REPLACEMENT;
            }
        }
        // A NUL is text too, but some endpoints cut a message at it or refuse it.
        let nuls = text.bytes().filter(|byte| *byte == 0).count();
        if nuls > 0 {
            self.nuls += nuls as u64;
            text = Cow::Owned(text.replace('\0', "\u{2400}"));
        }
        self.push_text(&text);
    }

    /// Masks secrets. What may be the start of one is held back until more is known.
    fn push_text(&mut self, text: &str) {
        let masked = self.mask.piece(&mut self.held, text);
        self.keep(&masked);
    }

    fn keep(&mut self, mut text: &str) {
        if !self.head_is_full {
            let head = text::head(text, HEAD - self.head.len());
            self.head.push_str(head);
            text = &text[head.len()..];
            self.head_is_full = !text.is_empty();
        }
        self.spill(text);
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

    /// Passes on what comes behind the start. Until more came than is kept, that is all kept.
    fn spill(&mut self, text: &str) {
        let Some(spill) = self.spill.as_mut() else { return };
        if !self.spills && self.tail.len() + text.len() > TAIL {
            self.spills = true;
            spill.begin();
            spill.push(&self.head);
            spill.push(&self.tail);
        }
        if self.spills {
            spill.push(text);
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
        let mut capture = Capture::new(Mask::default(), None);
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
            assert!(lines.starts_with(&output.head) && output.head.ends_with('\n'));
            assert!(lines.ends_with(&format!("\n{}", output.tail)), "chunks of {size}");
            let (head, tail) = (output.head.len(), output.tail.len());
            assert!(head <= HEAD && head > HEAD - 10, "chunks of {size}: {head}");
            assert!(tail <= TAIL && tail > TAIL - 10, "chunks of {size}: {tail}");
            assert_eq!(output.omitted, (lines.len() - head - tail) as u64, "chunks of {size}");
        }
    }

    #[test]
    fn a_cut_within_a_long_line_is_marked() {
        let line = format!("{}\n", "x".repeat(100_000));
        let output = captured(&[b"first\n", line.as_bytes(), b"last\n"]);
        assert!(output.head.starts_with("first\nxxx") && output.head.ends_with("xxx..."));
        assert!(output.tail.starts_with("...xxx") && output.tail.ends_with("xxx\nlast\n"));
        let shown = output.head.len() + output.tail.len() - 2 * ELLIPSIS.len();
        assert_eq!(output.omitted, (6 + line.len() + 5 - shown) as u64);
    }

    #[test]
    fn a_secret_is_masked_wherever_chunks_and_cuts_fall() {
        let key = "sk-TESTKEY-1";
        let mask = Mask::new(crate::secret::Secret::parse(key).unwrap());
        for fill in [0, HEAD - 20, HEAD - 5, HEAD - 1, HEAD] {
            let text = format!("{}{key} {}{key}", "x".repeat(fill), "y".repeat(2 * (HEAD + TAIL)));
            for size in [1, 5, 4_096, text.len()] {
                for text in [&text[..], &text[..text.len() - 1], &text[..fill + key.len()]] {
                    let mut capture = Capture::new(mask.clone(), None);
                    text.as_bytes().chunks(size).for_each(|chunk| capture.push(chunk));
                    let Captured { head, tail, .. } = capture.finish();
                    assert!(!head.contains("sk") && !tail.contains(key), "{fill} {size}");
                }
            }
        }
        // Where the end of what is kept begins within a secret.
        for end in TAIL - 20..TAIL + 20 {
            let mut capture = Capture::new(mask.clone(), None);
            capture.push("x".repeat(HEAD + TAIL).as_bytes());
            capture.push(format!("{key}{}", "y".repeat(end)).as_bytes());
            let tail = capture.finish().tail;
            assert!(!tail.contains("KEY") && !tail.contains("-1"), "{end}");
        }
        let mut capture = Capture::new(mask, None);
        capture.push(b"sk-TEST");
        assert_eq!(capture.finish().head, "sk-TEST");
    }

    #[test]
    fn the_bound_holds_for_text_that_grows_and_cuts_fall_between_characters() {
        for byte in [0xff, 0] {
            let noise = vec![byte; 500_000];
            let output = captured(&[&noise, &noise]);
            let (head, tail) = (output.head.len() - 3, output.tail.len() - 3);
            assert!(head <= HEAD && tail <= TAIL, "{byte}");
            let shown = (head + tail) as u64;
            assert_eq!(shown + output.omitted, 3_000_000, "{byte}");
            assert_eq!(output.replaced + output.nuls, 1_000_000, "{byte}");
        }
        let smileys = "\u{1f642}".repeat(20_000);
        let output = captured(&[b"x", smileys.as_bytes()]);
        assert!(output.tail.starts_with("...\u{1f642}") && output.replaced == 0);
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

//! Which parts of a text are code, in which examples stand, by the rules of CommonMark.
//!
//! Code is a fenced block, an indented block, a code span, and a hunk of a diff. Fences and spans
//! that never close hide nothing: a stray backtick must not turn a call into an example.
//!
//! The time is linear: before a closing fence or a closing run of backticks is looked for, it is
//! known that there is one.

use std::collections::HashMap;
use std::ops::{ControlFlow, Range};

/// Hands each stretch of `text` outside of code to `each`, in order, until that breaks off.
pub(in crate::verdict) fn prose<B>(
    text: &str,
    mut each: impl FnMut(Range<usize>) -> ControlFlow<B>,
) -> Option<B> {
    let mut blocks = Blocks::new(text);
    let mut start = 0;
    for raw in text.split_inclusive('\n') {
        let line = Line::new(raw);
        let paragraph = blocks.next(start, raw, &line);
        start += raw.len();
        if let Some(range) = paragraph
            && let ControlFlow::Break(found) = spans(text, range, &mut each)
        {
            return Some(found);
        }
    }
    match spans(text, blocks.paragraph, &mut each) {
        ControlFlow::Break(found) => Some(found),
        ControlFlow::Continue(()) => None,
    }
}

/// A line, taken apart.
struct Line<'a> {
    /// How many block quotes it stands in.
    quotes: usize,
    /// Columns of white space before the content.
    indent: usize,
    /// The column at which the content of a list item starts, where the line starts one.
    item: Option<usize>,
    /// Without quotes and indentation.
    content: &'a str,
    /// Without the marker of a list item.
    inner: &'a str,
}

impl<'a> Line<'a> {
    fn new(line: &'a str) -> Line<'a> {
        if line == "\n" {
            return Line { quotes: 0, indent: 0, item: None, content: "", inner: "" };
        }
        let mut quotes = 0;
        let mut rest = line;
        let (mut indent, mut content) = indentation(rest);
        while indent < 4
            && let Some(quoted) = content.strip_prefix('>')
        {
            quotes += 1;
            rest = quoted.strip_prefix(' ').unwrap_or(quoted);
            (indent, content) = indentation(rest);
        }
        let content = content.trim_end();
        let marker = list_marker(content);
        let inner = marker.map_or(content, |width| content[width..].trim_start());
        let item = marker.map(|width| indent + width + 1);
        Line { quotes, indent, item, content, inner }
    }

    /// The length of the fence that this line could close.
    fn closes(&self) -> Option<Fence> {
        let (marker, length, info) = fence(self.content)?;
        let is_deep = self.indent > 3;
        info.is_empty().then_some(Fence { marker, length, is_quoted: self.quotes > 0, is_deep })
    }

    fn opens(&self) -> Option<Fence> {
        let (marker, length, _) = fence(self.inner)?;
        let is_deep = self.indent > 3 || self.item.is_some();
        Some(Fence { marker, length, is_quoted: self.quotes > 0, is_deep })
    }
}

fn indentation(line: &str) -> (usize, &str) {
    let content = line.trim_start_matches([' ', '\t']);
    let white = line[..line.len() - content.len()].bytes();
    (
        white.fold(0, |column, byte| if byte == b'\t' { column / 4 * 4 + 4 } else { column + 1 }),
        content,
    )
}

/// The width of the marker of a list item, without the space behind it.
fn list_marker(content: &str) -> Option<usize> {
    let digits = content.bytes().take(10).take_while(u8::is_ascii_digit).count();
    let width = match content.as_bytes().get(digits)? {
        b'-' | b'+' | b'*' if digits == 0 => 1,
        b'.' | b')' if (1..10).contains(&digits) => digits + 1,
        _ => return None,
    };
    content[width..].starts_with([' ', '\t']).then_some(width)
}

/// A fence that opens a block or can close one.
#[derive(Clone, Copy)]
struct Fence {
    marker: u8,
    length: usize,
    is_quoted: bool,
    /// It is further in than a fence can be at the margin: it belongs to a list.
    is_deep: bool,
}

impl Fence {
    /// Whether `other`, which closes a block, closes the one that this opens.
    fn is_closed_by(&self, other: &Fence) -> bool {
        other.length >= self.length
            && other.marker == self.marker
            && other.is_quoted == self.is_quoted
            && (self.is_deep || !other.is_deep)
    }
}

/// The character, the length and what follows it, of a line that opens or closes a block.
fn fence(content: &str) -> Option<(u8, usize, &str)> {
    let marker = *content.as_bytes().first().filter(|marker| b"`~".contains(marker))?;
    let info = content.trim_start_matches(char::from(marker));
    let length = content.len() - info.len();
    // With a backtick behind it, it is a span that happens to stand at the start of a line.
    (length >= 3 && !(marker == b'`' && info.contains('`'))).then_some((marker, length, info))
}

/// For each kind of opening fence the closing ones ahead that are longer than all behind them:
/// the last one is the next of these, and the longest ahead.
struct Closings([Vec<(usize, usize)>; 8]);

impl Closings {
    fn new(text: &str) -> Closings {
        let mut closings = Closings(Default::default());
        let mut end = text.len();
        for raw in text.split_inclusive('\n').rev() {
            end -= raw.len();
            if raw.len() < 3 {
                continue;
            }
            let Some(closing) = Line::new(raw).closes() else { continue };
            for is_deep in [false, true] {
                let opening = Fence { is_deep, ..closing };
                let records = &mut closings.0[kind(&opening)];
                let longest = records.last().map_or(0, |(_, length)| *length);
                if opening.is_closed_by(&closing) && closing.length > longest {
                    records.push((end, closing.length));
                }
            }
        }
        closings
    }

    /// Whether a line behind `start` closes the block.
    fn are_behind(&mut self, start: usize, opening: &Fence) -> bool {
        let records = &mut self.0[kind(opening)];
        while records.last().is_some_and(|(line, _)| *line <= start) {
            records.pop();
        }
        records.last().is_some_and(|(_, length)| *length >= opening.length)
    }
}

fn kind(fence: &Fence) -> usize {
    usize::from(fence.marker == b'~')
        | usize::from(fence.is_quoted) << 1
        | usize::from(fence.is_deep) << 2
}

/// Where the reading of blocks has come to.
struct Blocks {
    closings: Closings,
    fence: Option<Fence>,
    /// Lines of the old and of the new text that a hunk still has.
    hunk: (usize, usize),
    /// The column of the content of each list item that is open.
    items: Vec<usize>,
    /// The lines of prose that belong together, up to here.
    paragraph: Range<usize>,
    quotes: usize,
}

impl Blocks {
    fn new(text: &str) -> Blocks {
        let closings = Closings::new(text);
        let (fence, hunk, items, quotes) = (None, (0, 0), Vec::new(), 0);
        Blocks { closings, fence, hunk, items, paragraph: 0..0, quotes }
    }

    /// Takes the next line, and gives the paragraph that it ends.
    fn next(&mut self, start: usize, raw: &str, line: &Line<'_>) -> Option<Range<usize>> {
        if self.is_code(start, raw, line) || line.content.is_empty() {
            return self.end_paragraph(start + raw.len());
        }
        self.hunk = hunk(raw).unwrap_or_default();
        let is_new = line.item.is_some() || line.content.starts_with('#');
        let ended = if is_new || line.quotes != self.quotes || self.hunk != (0, 0) {
            self.end_paragraph(start)
        } else {
            None
        };
        if line.item.is_some() {
            self.leave_items(line.indent);
        }
        self.items.extend(line.item);
        self.quotes = line.quotes;
        self.paragraph.end = start + raw.len();
        ended
    }

    fn end_paragraph(&mut self, next: usize) -> Option<Range<usize>> {
        let ended = std::mem::replace(&mut self.paragraph, next..next);
        (!ended.is_empty()).then_some(ended)
    }

    fn is_code(&mut self, start: usize, raw: &str, line: &Line<'_>) -> bool {
        if let Some(fence) = self.fence {
            // The end of a block quote is the end of what stands in it.
            if !(fence.is_quoted && line.quotes == 0) {
                if line.closes().is_some_and(|closing| fence.is_closed_by(&closing)) {
                    self.fence = None;
                }
                return true;
            }
            self.fence = None;
        }
        if self.hunk != (0, 0) {
            let (old, new) = self.hunk;
            self.hunk = match raw.bytes().next() {
                Some(b'+') => (old, new.saturating_sub(1)),
                Some(b'-') => (old.saturating_sub(1), new),
                Some(b' ' | b'\n' | b'\r') => (old.saturating_sub(1), new.saturating_sub(1)),
                Some(b'\\') => self.hunk,
                _ => (0, 0),
            };
            if raw.starts_with(['+', '-', ' ', '\n', '\r', '\\']) {
                return true;
            }
        }
        if let Some(fence) = line.opens()
            && self.closings.are_behind(start, &fence)
        {
            self.fence = Some(fence);
            return true;
        }
        // A paragraph goes on whatever the indentation.
        if !self.paragraph.is_empty() || line.content.is_empty() {
            return false;
        }
        self.leave_items(line.indent);
        line.indent >= self.items.last().copied().unwrap_or_default() + 4
    }

    /// Ends the list items whose content is further in.
    fn leave_items(&mut self, indent: usize) {
        while self.items.last().is_some_and(|column| *column > indent) {
            self.items.pop();
        }
    }
}

/// The lines of the old and of the new text in the hunk of a diff that starts with this line.
fn hunk(line: &str) -> Option<(usize, usize)> {
    let (ranges, _) = line.strip_prefix("@@ -")?.split_once(" @@")?;
    let (old, new) = ranges.split_once(" +")?;
    let count = |range: &str| match range.split_once(',') {
        Some((_, count)) => count.parse().ok(),
        None => Some(1),
    };
    Some((count(old)?, count(new)?))
}

/// Hands over what of a paragraph stands outside of code spans.
fn spans<B>(
    text: &str,
    paragraph: Range<usize>,
    each: &mut impl FnMut(Range<usize>) -> ControlFlow<B>,
) -> ControlFlow<B> {
    let end = paragraph.end;
    let run = |from: usize| {
        let found = text[from..end].find('`').map(|index| from + index)?;
        let ticks = text[found..end].bytes().take_while(|byte| *byte == b'`').count();
        Some((found, ticks))
    };
    let mut last = HashMap::new();
    let mut at = paragraph.start;
    while let Some((start, ticks)) = run(at) {
        last.insert(ticks, start);
        at = start + ticks;
    }
    let mut start = paragraph.start;
    let mut at = start;
    while !last.is_empty()
        && let Some(index) = text[at..end].find(['`', '\\'])
    {
        let opening = at + index;
        if text.as_bytes()[opening] == b'\\' {
            let is_escape = text[opening + 1..end].starts_with(|c: char| c.is_ascii_punctuation());
            at = opening + 1 + usize::from(is_escape);
            continue;
        }
        let ticks = text[opening..end].bytes().take_while(|byte| *byte == b'`').count();
        at = opening + ticks;
        if last.get(&ticks).is_none_or(|closing| *closing <= opening) {
            continue;
        }
        let mut inside = at;
        while let Some((closing, others)) = run(inside) {
            inside = closing + others;
            if others == ticks {
                each(start..opening)?;
                (start, at) = (inside, inside);
                break;
            }
        }
    }
    if start < end { each(start..end) } else { ControlFlow::Continue(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outside(text: &str) -> String {
        let mut all = String::new();
        let end: Option<()> = prose(text, |range| {
            all.push_str(&text[range]);
            all.push('|');
            ControlFlow::Continue(())
        });
        assert_eq!(end, None);
        all
    }

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(outside(text), expected, "{text}");
    }

    #[test]
    fn a_fence_is_closed_by_one_of_its_kind_that_is_at_least_as_long() {
        check("a\n```\nx\n```\nb", "a\n|b|");
        check("````\nx\n```\ny\n````\nb", "b|");
        check("```\nx\n~~~\n```\nb", "b|");
        check("```\nx\n```json\ny\n```\nb", "b|");
        check("```\nx\n    ```\ny\n```\nb", "b|");
        check("- a\n\n      ```\n      x\n      ```\nb", "- a\n|b|");
        check("- ```\n  x\n  ```\nb", "b|");
        check("1. ```sh\n   x\n   ```\nb", "b|");
        check("```\n> ```\nx\n```\nb", "b|");
    }

    #[test]
    fn a_fence_in_a_quote_ends_with_it() {
        check("> ```\n> x\n> ```\nb", "b|");
        check("> ```\n> x\n\nb\n\n> ```\n", "b\n|> ```\n|");
    }

    #[test]
    fn what_never_closes_hides_nothing() {
        check("```\nx", "```\nx|");
        check("````\nx\n```\ny", "````\nx\n```\ny|");
        check("don`t `` and", "don`t `` and|");
        check("don`t\n\nlet`s", "don`t\n|let`s|");
        check("- don`t\n- let`s", "- don`t\n|- let`s|");
    }

    #[test]
    fn spans_close_with_as_many_backticks() {
        check("a `x` b ``y ` z`` c", "a | b | c|");
        check("a `x\ny` b", "a | b|");
        check("a \\`x` b", "a \\`x` b|");
        check("a `x\\` b` c", "a | b` c|");
        check("```x``` b", "| b|");
    }

    #[test]
    fn an_indented_block_is_code_and_an_indented_line_of_a_paragraph_is_not() {
        check("    x\nb", "b|");
        check("a\n\n    x\n\tx\nb", "a\n|b|");
        check("a\n    b", "a\n    b|");
        check("- a\n\n    b\n", "- a\n|    b\n|");
        check("- a\n\n      x\n\nb", "- a\n|b|");
        check("- a\n\nb\n\n    x", "- a\n|b\n|");
    }

    #[test]
    fn a_hunk_of_a_diff_is_code_as_far_as_it_goes() {
        check(
            "--- a\n+++ b\n@@ -1,2 +1,2 @@ f\n x\n-y\n+z\n- b",
            "--- a\n+++ b\n|@@ -1,2 +1,2 @@ f\n|- b|",
        );
        check("@@ -1 +1 @@\n-x\nb", "@@ -1 +1 @@\n|b|");
    }
}

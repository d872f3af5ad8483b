//! Reasoning that servers without a parser for it leave in the text of a message.

use std::ops::ControlFlow;

use super::textcall::prose;
use crate::message::AssistantMessage;

/// The tags around reasoning.
const TAGS: &[(&str, &str)] = &[("<think>", "</think>"), ("<thinking>", "</thinking>")];

/// The text of a message that counts: without the reasoning at its start.
///
/// That is what stands between tags there, also where the last of them is never closed, and what
/// stands before a closing tag alone. Tags that are named in prose, and those in code, are text.
pub fn answer_text(message: &AssistantMessage) -> &str {
    without_reasoning(message.as_text())
}

fn without_reasoning(text: &str) -> &str {
    let rest = without_blocks(text);
    match closing_alone(rest) {
        Some(end) => without_blocks(behind_tag(&rest[end..])),
        None => rest,
    }
}

/// `text` without the blocks in tags at its start.
fn without_blocks(text: &str) -> &str {
    let mut rest = text;
    while let Some((inside, closing)) = opened(rest.trim_start()) {
        rest = match closing_tag(inside, closing) {
            Some(end) => behind_tag(&inside[end..]),
            None => "",
        };
    }
    rest
}

fn opened(text: &str) -> Option<(&str, &'static str)> {
    TAGS.iter().find_map(|(opening, closing)| Some((&text[tag(text, opening)?..], *closing)))
}

/// The length of the tag at the start of `text`, in whatever case.
fn tag(text: &str, tag: &str) -> Option<usize> {
    let start = text.as_bytes().get(..tag.len())?;
    start.eq_ignore_ascii_case(tag.as_bytes()).then_some(tag.len())
}

/// The end of the first such tag that is not named in backticks; those are looked at only when
/// there is no other.
fn closing_tag(text: &str, closing: &str) -> Option<usize> {
    let mut named = None;
    for (start, _) in text.match_indices("</") {
        let Some(length) = tag(&text[start..], closing) else { continue };
        let end = start + length;
        if !(text[..start].ends_with('`') && text[end..].starts_with('`')) {
            return Some(end);
        }
        named = named.or(Some(end));
    }
    named
}

/// The end of a closing tag that closes nothing and is not merely named.
fn closing_alone(text: &str) -> Option<usize> {
    let found = prose(text, |range| {
        for (index, _) in text[range.clone()].match_indices('<') {
            let start = range.start + index;
            if opened(&text[start..]).is_some() {
                return ControlFlow::Break(None);
            }
            let closed = TAGS.iter().find_map(|(_, closing)| tag(&text[start..], closing));
            if let Some(length) = closed
                && is_alone(&text[..start], &text[start + length..])
            {
                return ControlFlow::Break(Some(start + length));
            }
        }
        ControlFlow::Continue(())
    });
    found.flatten()
}

/// Whether a tag between these two is one, and no word of a sentence: it starts a line, or stands
/// directly behind the last word, or at the end of a line behind the end of a sentence.
fn is_alone(before: &str, behind: &str) -> bool {
    // Never back to the start of the line: it may be long, and have a tag in every word.
    let said = before.trim_end_matches([' ', '\t']);
    let Some(last) = said.chars().next_back().filter(|last| *last != '\n') else { return true };
    if said.len() == before.len() {
        return !"\"'`(<>/".contains(last);
    }
    ".!?:".contains(last) && behind.trim_start_matches([' ', '\t', '\r']).starts_with('\n')
}

/// What follows a tag, with the indentation of its first line.
fn behind_tag(text: &str) -> &str {
    let answer = text.trim_start();
    let space = &text[..text.len() - answer.len()];
    match space.rfind('\n') {
        Some(line) => &text[line + 1..],
        None => answer,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasoning_at_the_start_is_no_part_of_the_answer() {
        for (text, answer) in [
            ("<think>hm</think>42", "42"),
            ("\n<think>\nhm\n</think>\n\n42\n", "42\n"),
            ("<thinking>hm</thinking> 42", "42"),
            ("<THINK>hm</Think>42", "42"),
            ("<think>a</think>\n<think>b</think>\n<thinking>c</thinking>42", "42"),
            ("<think></think>\n    code", "    code"),
            ("<think>end it with `</think>` then</think>42", "42"),
            ("<think>end it with `</think>`42", "`42"),
            ("<think>it`s ```\n<tool_call>shell</tool_call></think>42", "42"),
            ("hm\n</think>\n\n42", "42"),
            ("hm</think>42", "42"),
            ("hm. </think>\n42", "42"),
            ("hm\n</THINKING>\n42", "42"),
            ("hm\n</think>\n<think>ha</think>42", "42"),
            ("</think>\n42", "42"),
            ("```\nx\n```\n</think>\n42", "42"),
            ("<think>a <think> b</think> c\n</think>\n42", "42"),
            ("<think>never closed", ""),
            ("<think>a</think><think>b", ""),
            ("hm\n</think>\n", ""),
            (" \n<think>\n</think>\n ", " "),
        ] {
            assert_eq!(without_reasoning(text), answer, "{text}");
        }
    }

    #[test]
    fn tags_in_prose_and_in_code_are_text() {
        for text in [
            "42",
            "",
            "The tag <think> opens it.",
            "The tag </think> closes it.",
            "It ends with </think>.",
            "Put it between <think> and\n</think> or not.",
            "Models write <think>...</think> first.",
            "The tag \"</think>\" closes it.",
            "The tag (</think>) closes it.",
            "`</think>` closes it.",
            "```\nhm\n</think>\n42\n```\nLike that.",
            "Like that:\n\n    hm\n    </think>\n    42\n",
            "`<think>` opens it.",
            "<thinker>x</thinker>",
            "a </thinks>\nb",
        ] {
            assert_eq!(without_reasoning(text), text);
        }
    }

    #[test]
    fn tags_without_end_are_read_in_linear_time() {
        let pieces = ["<think>a</think>", "<think>", "</think", "`</think>`", "<", "a </think> "];
        for piece in pieces {
            for start in ["", "<think>"] {
                let text = format!("{start}{}", piece.repeat(6_000_000 / piece.len()));
                let start = std::time::Instant::now();
                without_reasoning(&text);
                let seconds = start.elapsed().as_secs();
                assert!(seconds < 20, "{seconds} s for 6 MB of {piece}");
            }
        }
    }
}

//! Texts that are nothing but calls, without any markup but a code fence.

use std::borrow::Cow;

use super::shape::{self, Call};
use super::{TextCall, name, placed, python};

/// The calls of such a text.
pub(super) fn calls<'a>(text: &'a str, tools: &[&str]) -> Option<Vec<TextCall<'a>>> {
    let mut calls = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let block = text.len() - rest.len();
        let fenced = fenced(rest);
        let (mut inside, behind) = fenced.unwrap_or((rest, ""));
        inside = inside.trim_start();
        while !inside.is_empty() {
            let (found, length) = bare(inside, tools)?;
            let range = match text.len() - inside.len() {
                start if fenced.is_none() => start..start + length,
                _ => block..text.len() - behind.len(),
            };
            calls.extend(found.into_iter().map(|call| placed(call, range.clone())));
            inside = inside[length..].trim_start_matches([' ', '\t', '\r', '\n', ',', ';']);
        }
        rest = behind.trim_start();
    }
    Some(calls)
}

/// The inside of the code block at the start of `text`, and what is behind it.
fn fenced(text: &str) -> Option<(&str, &str)> {
    let fence = text.len() - text.trim_start_matches('`').len();
    let (info, block) = text.split_once('\n').filter(|_| fence >= 3)?;
    if info[fence..].contains('`') {
        return None;
    }
    let mut end = 0;
    for line in block.split_inclusive('\n') {
        let ticks = line.trim();
        if ticks.len() >= fence && ticks.bytes().all(|byte| byte == b'`') {
            return Some((&block[..end], &block[end + line.len()..]));
        }
        end += line.len();
    }
    Some((block.trim_end().trim_end_matches('`'), ""))
}

/// The calls at the start of `text`, which must leave no doubt, as no markup says what they are.
fn bare<'a>(text: &'a str, tools: &[&str]) -> Option<(Vec<Call<'a>>, usize)> {
    if text.starts_with(['{', '[']) {
        if let Some((calls, length)) = shape::value(text) {
            let are_whole = calls.iter().all(|(_, arguments)| arguments.is_some());
            return (are_whole && !calls.is_empty()).then_some((calls, length));
        }
    } else if let (name, rest) = name(text)
        && tools.contains(&name)
        && let Some(behind) = rest.trim_start_matches([' ', '\t', '\r']).strip_prefix('\n')
    {
        let object = behind.trim_start();
        let length = shape::object(object)?;
        let arguments = Some(Cow::Borrowed(&object[..length]));
        let call = (Cow::Borrowed(name), arguments);
        return Some((vec![call], text.len() - object.len() + length));
    }
    let (calls, length) = python::calls(text)?;
    // What has no arguments may as well be the name of a function.
    let is_call = |(_, arguments): &Call<'_>| arguments.as_deref().is_some_and(|text| text != "{}");
    calls.iter().all(is_call).then_some((calls, length))
}

//! Tool calls that stand in the text of an answer, where nothing runs them.
//!
//! A server whose tool-call parser is off, or does not know the model, hands over the model's own
//! notation as text. Such a text is no answer. An example of the notation, in a code block or a
//! code span, is one; so is prose that merely mentions it.

use crate::json::Members;

/// The offered tool that `text` calls, where it holds the call itself and not an example of one.
///
/// The signs are the tags in which models write their calls, outside of code, and a text that is
/// nothing but a call as JSON, in a code fence or bare.
pub(super) fn find<'a>(
    text: &str,
    tools: impl Iterator<Item = &'a str> + Clone,
) -> Option<&'a str> {
    let offered = |name: &str| tools.clone().find(|tool| *tool == name);
    let prose = without_code(text);
    let tagged = || prose.split("<function=").skip(1).find_map(|rest| offered(first_word(rest)));
    let wrapped = || {
        prose.split("<tool_call>").skip(1).find_map(|rest| {
            let call = rest.split("</tool_call>").next().unwrap_or_default();
            offered(first_word(call)).or_else(|| names(call).find_map(offered))
        })
    };
    tagged().or_else(wrapped).or_else(|| offered(&name_of_bare_call(text)?))
}

/// The first word of `text`, without the quotes that it may stand in.
fn first_word(text: &str) -> &str {
    let text = text.trim_start().trim_start_matches(['"', '\'']);
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    &text[..end]
}

/// Whatever is called a name in `text`, which need not be valid JSON or whole.
fn names(text: &str) -> impl Iterator<Item = &str> {
    let quoted = ["\"name\"", "'name'"].into_iter().flat_map(|key| text.split(key).skip(1));
    quoted.filter_map(|rest| rest.trim_start().strip_prefix(':')).map(first_word)
}

/// The name in a text that is nothing but `{"name": ..., "arguments": {...}}`.
fn name_of_bare_call(text: &str) -> Option<String> {
    let mut json = text.trim();
    if let Some(fenced) = json.strip_prefix("```").and_then(|rest| rest.strip_suffix("```")) {
        json = fenced.split_once('\n')?.1.trim();
    }
    let mut members: Members<'_> = serde_json::from_str(json).ok()?;
    let arguments = members.take("arguments").or_else(|| members.take("parameters"))?;
    let name = serde_json::from_str(members.take("name")?.get()).ok()?;
    arguments.get().starts_with('{').then_some(name)
}

/// `text` without fenced blocks and code spans, in which examples stand.
///
/// What opens without ever closing hides nothing. Fences and spans as CommonMark has them: a fence
/// is closed by a line of at least as many of the same characters and nothing else, a span by as
/// many backticks as opened it.
fn without_code(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let mut prose = String::with_capacity(text.len());
    let mut index = 0;
    while let Some(line) = lines.get(index) {
        index += 1;
        let closing = fence(line).and_then(|(marker, length, _)| {
            let closes = |line: &&str| {
                fence(line).is_some_and(|(other, others, info)| {
                    other == marker && others >= length && info.is_empty()
                })
            };
            lines[index..].iter().position(closes)
        });
        match closing {
            Some(distance) => index += distance + 1,
            None => {
                prose.push_str(line);
                prose.push('\n');
            }
        }
    }
    without_spans(&prose)
}

/// The character, the length and what follows it, of a line that opens or closes a block.
fn fence(line: &str) -> Option<(char, usize, &str)> {
    let line = line.trim();
    let marker = line.chars().next().filter(|marker| ['`', '~'].contains(marker))?;
    let info = line.trim_start_matches(marker);
    let length = line.len() - info.len();
    // With a backtick behind it, it is a span that happens to stand at the start of a line.
    (length >= 3 && !(marker == '`' && info.contains('`'))).then_some((marker, length, info))
}

fn without_spans(text: &str) -> String {
    let mut prose = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find('`') {
        let (before, ticks) = rest.split_at(start);
        prose.push_str(before);
        let length = ticks.len() - ticks.trim_start_matches('`').len();
        let inside = &ticks[length..];
        rest = match end_of_span(inside, length) {
            Some(end) => &inside[end..],
            None => inside,
        };
    }
    prose.push_str(rest);
    prose
}

/// Where the span ends, in the same paragraph, that so many backticks have opened before `text`.
fn end_of_span(text: &str, length: usize) -> Option<usize> {
    let paragraph = &text[..text.find("\n\n").unwrap_or(text.len())];
    let mut from = 0;
    while let Some(start) = paragraph[from..].find('`').map(|index| from + index) {
        let ticks = &paragraph[start..];
        let found = ticks.len() - ticks.trim_start_matches('`').len();
        if found == length {
            return Some(start + found);
        }
        from = start + found;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, tool: Option<&str>) {
        assert_eq!(find(text, ["shell", "read_file"].into_iter()), tool, "{text}");
    }

    #[test]
    fn a_call_in_the_text_is_found_in_every_notation() {
        let shell = Some("shell");
        check("<tool_call>\n{\"name\":\"shell\",\"arguments\":{\"command\":\"ls", shell);
        check("<tool_call>{\"arguments\":{}, \"name\" : \"shell\"}</tool_call>", shell);
        check("<tool_call>{\"arguments\":{\"name\":\"x\"},\"name\":\"shell\"}</tool_call>", shell);
        check("<tool_call>{'name': 'shell', 'arguments': {}}</tool_call>", shell);
        check("<tool_call>shell\n<arg_key>command</arg_key></tool_call>", shell);
        check("<function='shell'></function>", shell);
        let tagged = "Reading.\n<tool_call>\n<function=read_file><parameter=path>README.md\
                      </parameter></function>\n</tool_call>";
        check(tagged, Some("read_file"));
        check("{\"name\": \"shell\", \"arguments\": {\"command\": \"ls\"}}", shell);
        check("```json\n{\"name\":\"shell\",\"parameters\":{\"command\":\"ls\"}}\n```\n", shell);
    }

    #[test]
    fn what_looks_like_code_and_never_ends_hides_nothing() {
        let call = "<tool_call>{\"name\":\"shell\"}</tool_call>";
        check(&format!("a ` {call}"), Some("shell"));
        check(&format!("I don`t know.\n\n{call}\n\nLet`s go"), Some("shell"));
        check(&format!("```\nls\n{call}"), Some("shell"));
        check(&format!("```\nls\n```\n{call}"), Some("shell"));
    }

    #[test]
    fn a_text_about_calls_is_an_answer() {
        let call = "<tool_call>{\"name\":\"shell\"}</tool_call>";
        check(&format!("Like this:\n```xml\n{call}\n```\nDone."), None);
        check(&format!("````md\n```xml\n{call}\n```\n{call}\n````\n"), None);
        check(&format!("~~~\n```\n{call}\n~~~\n"), None);
        check(&format!("The tag `{call}` is a call, and ``{call} `x` `` too."), None);
        check("Prose with <invoke name=\"shell\"> and <tool_call> in it.", None);
        check("<function=unknown></function>", None);
        check("{\"name\": \"shell\", \"version\": 1}", None);
        check("Here:\n```json\n{\"name\":\"shell\",\"arguments\":{}}\n```", None);
    }
}

//! Tool calls that stand in the text of an answer, where nothing runs them.
//!
//! A server whose tool-call parser is off, or does not know the model, hands over the model's own
//! notation as text. Such a text is no answer. An example of the notation, in a code block or a
//! code span, is one; so is prose that merely mentions it.
//!
//! The time is linear in the text. Where the end of a markup is looked for, the place is kept until
//! it is passed; and JSON behind a sign is not read far past the next sign that has JSON behind it,
//! because the quotes there end its strings.

mod alone;
mod code;
#[cfg(test)]
mod fuzz;
mod markup;
mod python;
mod shape;
mod tags;

use std::borrow::Cow;
use std::ops::{ControlFlow, Range};

use markup::{BETWEEN, Body, TABLE};
use shape::Call;
use tags::Members;

pub(super) use code::prose;

/// A call in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextCall<'a> {
    /// The tool's name. It need not be one that is offered.
    pub name: Cow<'a, str>,
    /// The arguments, as a JSON object. None where they are cut off, or can't be read without
    /// repair.
    pub arguments: Option<Cow<'a, str>>,
    /// The markup in which it stands, which it may share with its neighbours.
    pub range: Range<usize>,
}

/// The calls in `text`, of which at least one is of a tool that is offered; else none.
///
/// They are those outside of code, in one of the markups that models have. A text is also read as
/// calls when it is nothing but calls, as JSON or Python, in a code fence or bare.
pub fn read<'a>(text: &'a str, tools: &[&str]) -> Vec<TextCall<'a>> {
    let is_offered = |call: &TextCall<'_>| tools.contains(&&*call.name);
    if let Some(calls) = alone::calls(text, tools)
        && calls.iter().any(is_offered)
    {
        return calls;
    }
    let mut calls = Reader::new(text, tools).read();
    if !calls.iter().any(is_offered) {
        calls.clear();
    }
    calls
}

fn placed(call: Call<'_>, range: Range<usize>) -> TextCall<'_> {
    let (name, arguments) = call;
    let name = match name {
        Cow::Borrowed(name) => Cow::Borrowed(plain(name)),
        Cow::Owned(name) => Cow::Owned(plain(&name).to_owned()),
    };
    TextCall { name, arguments, range }
}

/// The name of a tool without what models put around it: `functions.shell:0`.
fn plain(name: &str) -> &str {
    let name = name.trim();
    let short = |prefix: &&str| name.strip_prefix(prefix);
    let name = ["functions.", "default_api.", "tools."].iter().find_map(short).unwrap_or(name);
    match name.rsplit_once(':') {
        Some((short, number)) if number.bytes().all(|byte| byte.is_ascii_digit()) => short,
        _ => name,
    }
}

/// Bytes of a name; no tool has a longer one.
const NAME_MAX: usize = 100;

/// The name at the start of `text`, and what is behind it.
fn name(text: &str) -> (&str, &str) {
    let digit = |c: char| c.is_ascii_digit();
    let quoted = text.trim_start_matches(['"', '\'']);
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    let length = quoted.bytes().take(NAME_MAX + 1).take_while(is_part).count();
    // What is longer is no name, and may be made of signs that have no end: `functools`.
    let end = if length > NAME_MAX { 0 } else { length };
    let rest = quoted[end..].trim_start_matches(['"', '\'']);
    // The number of the call, as Kimi has it.
    let number = rest.strip_prefix(':').filter(|rest| rest.starts_with(digit));
    let rest = number.map_or(rest, |rest| rest.trim_start_matches(digit));
    (plain(&quoted[..end]), rest)
}

/// Reads the markups of a text.
struct Reader<'a, 't> {
    text: &'a str,
    tools: &'t [&'t str],
    /// What closes an element that has the name of a tool.
    closers: Vec<String>,
    /// For each sign: from where on it was last looked for, and where it is.
    ahead: Vec<(usize, usize)>,
    /// The rows of the table by the second byte of the sign; the first says too little.
    by_second: Vec<Vec<usize>>,
    calls: Vec<TextCall<'a>>,
}

impl<'a, 't> Reader<'a, 't> {
    fn new(text: &'a str, tools: &'t [&'t str]) -> Reader<'a, 't> {
        let closers: Vec<String> = tools.iter().map(|tool| format!("</{tool}>")).collect();
        let ahead = vec![(1, 0); 2 * TABLE.len() + tools.len()];
        let by_second = vec![Vec::new(); 256];
        Reader { text, tools, closers, ahead, by_second, calls: Vec::new() }
    }

    fn read(mut self) -> Vec<TextCall<'a>> {
        let mut first = [false; 256];
        TABLE.iter().for_each(|row| first[usize::from(row.open.as_bytes()[0])] = true);
        TABLE.iter().enumerate().for_each(|(index, row)| {
            self.by_second[usize::from(row.open.as_bytes()[1])].push(index);
        });
        let bytes = self.text.as_bytes();
        let mut at = 0;
        let _: Option<()> = prose(self.text, |range| {
            at = at.max(range.start);
            while at < range.end {
                let may_be_sign = first[usize::from(bytes[at])];
                let end = if may_be_sign { self.sign(at, range.end) } else { None };
                at = end.unwrap_or(at + 1);
            }
            ControlFlow::Continue(())
        });
        self.calls
    }

    /// Reads what a sign at `at` opens, and gives how far that was read.
    fn sign(&mut self, at: usize, end: usize) -> Option<usize> {
        let bytes = &self.text.as_bytes()[at..end];
        let rows = &self.by_second[usize::from(*bytes.get(1)?)];
        let found = rows.iter().find(|index| bytes.starts_with(TABLE[**index].open.as_bytes()));
        let Some(&index) = found else { return self.named_element(at) };
        let from = at + TABLE[index].open.len();
        let earlier = self.calls.len();
        let rest = &self.text[from..];
        let end = match TABLE[index].body {
            Body::Calls => self.body(index, from),
            Body::Json => {
                let rest = behind_fence(rest);
                self.json(rest, false)
                    .or_else(|| self.after_name(rest, self.text.len(), Needs::All))
            }
            Body::Named => self.after_name(rest, self.text.len(), Needs::Start),
            Body::Element(parameter) => self.element(index, from, parameter),
        };
        let end = end.unwrap_or(from);
        self.calls[earlier..].iter_mut().for_each(|call| call.range = at..end);
        Some(end)
    }

    fn add(&mut self, name: impl Into<Cow<'a, str>>, arguments: Option<Cow<'a, str>>) {
        self.calls.push(placed((name.into(), arguments), 0..0));
    }

    fn is_offered(&self, name: &str) -> bool {
        self.tools.contains(&name)
    }

    /// Where `sign` is next, from `from` on, or the text ends. Nothing is looked through twice, as
    /// long as `from` does not go back.
    fn next(&mut self, slot: usize, sign: &str, from: usize) -> usize {
        let (since, found) = self.ahead[slot];
        if since <= from && from <= found {
            return found;
        }
        let found = self.text[from..].find(sign).map_or(self.text.len(), |index| from + index);
        self.ahead[slot] = (from, found);
        found
    }

    /// Where the markup that was opened before `from` ends, and whether it is closed there.
    fn end_of(&mut self, index: usize, from: usize) -> (usize, bool) {
        let row = &TABLE[index];
        let open = self.next(2 * index, row.open, from);
        if row.close.is_empty() {
            return (open, false);
        }
        let close = self.next(2 * index + 1, row.close, from);
        (open.min(close), close < open)
    }

    /// Reads calls as JSON, one behind the other, and gives where they end.
    fn json(&mut self, text: &'a str, is_sure: bool) -> Option<usize> {
        let (mut rest, mut behind) = (text, None);
        while let Some((calls, length)) = shape::value(rest) {
            for (name, arguments) in calls {
                if is_sure || arguments.is_some() {
                    self.add(name, arguments);
                }
            }
            behind = Some(self.text.len() - (rest.len() - length));
            rest = rest[length..].trim_start_matches([' ', '\t', '\r', '\n', ',', ';']);
        }
        behind
    }

    /// Reads a body of calls as JSON, as Python, or as a name and arguments.
    fn body(&mut self, index: usize, from: usize) -> Option<usize> {
        // JSON may have the closing sign in a string.
        if let Some(end) = self.json(behind_fence(&self.text[from..]), true) {
            return Some(end);
        }
        let (end, is_closed) = self.end_of(index, from);
        let body = self.text[from..end].trim_start();
        if let Some((calls, _)) = python::calls(body) {
            calls.into_iter().for_each(|(name, arguments)| self.add(name, arguments));
            return Some(end);
        }
        let inner = behind_fence(body);
        if inner.starts_with(['{', '[']) {
            let name = names(inner).find(|name| self.is_offered(name))?;
            self.add(name, None);
            return Some(end);
        }
        if let Some(name) = tags::NAMES.iter().find_map(|tag| body.strip_prefix(tag)) {
            let (name, arguments) = tags::children(name)?;
            self.add(name, arguments);
            return Some(end);
        }
        let read = self.after_name(body, end, Needs::Name)?;
        Some(if is_closed { read.max(end) } else { read })
    }

    /// Reads a name and the arguments behind it from `rest`, which goes on to `end`.
    fn after_name(&mut self, rest: &'a str, end: usize, needs: Needs) -> Option<usize> {
        let (mut tool, mut rest) = name(rest.trim_start());
        let separated = BETWEEN.iter().find_map(|sign| rest.strip_prefix(sign));
        match (tool, rest.strip_prefix(':'), separated) {
            // Gemma.
            ("call", Some(further), _) => (tool, rest) = name(further),
            // DeepSeek.
            ("function", _, Some(further)) => (tool, rest) = name(further.trim_start()),
            _ => {}
        }
        if tool.is_empty() {
            return None;
        }
        let line = rest.trim_start_matches([' ', '\t']);
        let rest = between(rest);
        let start = end - rest.len();
        if let Some(length) = shape::object(&self.text[start..]) {
            self.add(tool, Some(Cow::Borrowed(&self.text[start..start + length])));
            return Some(start + length);
        }
        if needs == Needs::Name
            && let Some(arguments) = tags::keyed(rest)
        {
            self.add(tool, arguments.map(Cow::Owned));
            return Some(end);
        }
        let is_enough = match needs {
            Needs::All => false,
            Needs::Start => rest.starts_with('{'),
            Needs::Name => line.is_empty() || line.starts_with(['\n', '\r', '<', '(', '{', '[']),
        };
        if !is_enough || !self.is_offered(tool) {
            return None;
        }
        self.add(tool, None);
        Some(start)
    }

    /// Reads the rest of `<function=NAME>...</function>`.
    fn element(&mut self, index: usize, from: usize, parameter: &str) -> Option<usize> {
        let (end, is_closed) = self.end_of(index, from);
        let (tool, rest) = name(&self.text[from..end]);
        let Some((_, inner)) = rest.split_once('>') else {
            if rest.trim().is_empty() && end == self.text.len() && self.is_offered(tool) {
                self.add(tool, None);
            }
            return None;
        };
        let inner = inner.trim();
        let arguments = if inner.starts_with('{') {
            // It may have the closing sign in a string.
            let start = inner.len();
            let start = from + self.text[from..end].trim_end().len() - start;
            let object = &self.text[start..];
            let Some(length) = shape::object(object) else {
                self.add(tool, None);
                return Some(end);
            };
            self.add(tool, Some(Cow::Borrowed(&object[..length])));
            return Some(start + length);
        } else if is_closed && inner.is_empty() {
            Some(Cow::Borrowed("{}"))
        } else if inner.starts_with(&format!("<{parameter}")) {
            tags::parameters(inner, parameter).filter(|_| is_closed).map(Cow::Owned)
        } else if inner.is_empty() || is_closed && TABLE[index].open == "<function=" {
            None
        } else {
            return None;
        };
        self.add(tool, arguments);
        Some(end)
    }

    /// Reads `<shell><command>ls</command></shell>`.
    fn named_element(&mut self, at: usize) -> Option<usize> {
        let text = self.text[at..].strip_prefix('<')?;
        if !text.starts_with(|c: char| c.is_ascii_alphabetic()) {
            return None;
        }
        let (tool, rest) = name(text);
        let index = self.tools.iter().position(|other| *other == tool)?;
        let from = self.text.len() - rest.strip_prefix('>')?.len();
        let closer = self.closers[index].clone();
        let end = self.next(2 * TABLE.len() + index, &closer, from);
        if end == self.text.len() {
            return None;
        }
        let mut body = self.text[from..end].trim();
        let mut members = Members::default();
        while let Some((key, rest)) = body.strip_prefix('<').and_then(|rest| rest.split_once('>')) {
            let (value, rest) = rest.split_once(&format!("</{key}>"))?;
            members.add(key, value, false);
            body = rest.trim_start();
        }
        if members.is_empty() || !body.is_empty() {
            return None;
        }
        let end = end + closer.len();
        self.add(tool, members.object().map(Cow::Owned));
        self.calls.last_mut()?.range = at..end;
        Some(end)
    }
}

/// How much of a name and its arguments there must be for a call.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Needs {
    All,
    /// The name is offered, and the arguments begin.
    Start,
    /// The name is offered, and stands alone or before some kind of arguments.
    Name,
}

/// `text` without the signs that stand between a name and its arguments.
fn between(text: &str) -> &str {
    let mut rest = text.trim_start();
    loop {
        rest = match BETWEEN.iter().find_map(|sign| rest.strip_prefix(sign)) {
            Some(behind) => behind.trim_start(),
            None => match rest.strip_prefix("[CALL_ID]") {
                Some(behind) => name(behind).1.trim_start(),
                None => return rest,
            },
        };
    }
}

/// `text` without the opening fence that it may start with.
fn behind_fence(text: &str) -> &str {
    let text = text.trim_start();
    let Some(rest) = text.strip_prefix("```") else { return text };
    rest.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '_').trim_start()
}

/// Whatever is called a name in `text`, which need not be valid JSON or whole.
fn names(text: &str) -> impl Iterator<Item = &str> {
    let quoted = ["\"name\"", "'name'"].into_iter().flat_map(|key| text.split(key).skip(1));
    let values = quoted.filter_map(|rest| rest.trim_start().strip_prefix(':'));
    values.map(|rest| name(rest.trim_start()).0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOOLS: &[&str] = &["shell", "read_file"];

    #[track_caller]
    fn check(text: &str, tool: Option<&str>) {
        let calls = read(text, TOOLS);
        assert_eq!(calls.first().map(|call| &*call.name), tool, "{text}");
    }

    /// One for each markup of the table, in its order. `CALL`, `CALLP` and `ARGS` stand for JSON,
    /// `|:`, `_:` and `NS:` for what can't be written here.
    #[rustfmt::skip]
    const EXAMPLES: &[&str] = &[
        "<tool_call>\nCALL\n</tool_call>",
        "<tool_calls>[CALL]</tool_calls>",
        "<tools>\nCALL\n</tools>",
        "<TOOLCALL>[CALL]</TOOLCALL>",
        "<toolcall>CALL</toolcall>",
        "<tool_use>\n<name>shell</name>\n<arguments>ARGS</arguments>\n</tool_use>",
        "<tool>CALL</tool>",
        "<function_call> CALL",
        "<function_calls>\nshell(command='ls')\n</function_calls>",
        "<|function_call|>CALL<|/function_call|>",
        "<|function_calls|>[CALL]",
        "<longcat_tool_call>shell\n<longcat_arg_key>command</longcat_arg_key>\n\
            <longcat_arg_value>ls</longcat_arg_value>\n</longcat_tool_call>",
        "<|tool_call|>[CALL]<|/tool_call|>",
        "<|tool_calls|>[{\"type\":\"function\",\"function\":CALL}]",
        "<|tool_call>call:shellARGS<tool_call|>",
        "<start_function_call>call:shellARGS<end_function_call>",
        "<|tool_call_start|>[shell(command=\"ls\")]<|tool_call_end|>",
        "<|tools_prefix|>[{\"shell\": ARGS}]<|tools_suffix|>",
        "<|python_tag|>CALLP<|eom_id|>",
        "<|python_start|>[shell(command=\"ls\")]<|python_end|>",
        "<|START_ACTION|>[{\"tool_call_id\":\"0\",\"tool_name\":\"shell\",\"parameters\":ARGS}]\
            <|END_ACTION|>",
        "Action: ```json\n[{\"tool_name\":\"shell\",\"parameters\":ARGS}]\n```",
        "<|action_start|><|plugin|>\nCALLP<|action_end|>",
        "[TOOL_CALLS]shell[ARGS]ARGS</s>",
        "[TOOL_REQUEST]CALL[END_TOOL_REQUEST]",
        "[unused11][CALL][unused12]",
        "function call<|role_sep|>\nCALL",
        "functools[CALL]",
        ">>>shell\nARGS",
        "\u{273f}FUNCTION\u{273f}: shell\n\u{273f}ARGS\u{273f}: ARGS",
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.shell:0\
            <|tool_call_argument_begin|>ARGS<|tool_call_end|>",
        "<|:tool_:calls_:begin|:><|:tool_:call_:begin|:>function<|:tool_:sep|:>shell\n\
            ```json\nARGS\n```<|:tool_:call_:end|:>",
        "<|:tool_call_begin|:>shell<|:tool_sep|:>ARGS",
        "<|channel|>commentary to=functions.shell <|constrain|>json<|message|>ARGS<|call|>",
        "<function=shell>\n<parameter=command>\nls\n</parameter>\n</function>",
        "<function name=\"shell\"><param name=\"command\">ls</param></function>",
        "<invoke name=\"shell\"><parameter name=\"command\">ls</parameter></invoke>",
        "<NS:invoke name=\"shell\"><NS:parameter name=\"command\">ls</NS:parameter></NS:invoke>",
        "<steptml:invoke name=\"shell\"><steptml:parameter name=\"command\">ls\
            </steptml:parameter></steptml:invoke>",
        "<|:DSML|:invoke name=\"shell\"><|:DSML|:parameter name=\"command\" string=\"true\">ls\
            </|:DSML|:parameter></|:DSML|:invoke>",
    ];

    /// More forms of the same call: within the markups, and without one.
    #[rustfmt::skip]
    const FORMS: &[&str] = &[
        "<tool_call>shell\n<arg_key>command</arg_key>\n<arg_value>ls</arg_value>\n</tool_call>",
        "<tool_call>shell<arg_key>command</arg_key><arg_value>ls</arg_value></tool_call>",
        "<tool_call>shell(command=\"ls\")</tool_call>",
        "<tool_call>\n<function=shell>\n<parameter=command>ls</parameter></function></tool_call>",
        "<tool_call>```json\nCALL\n```",
        "<tool_call>{\"arguments\":ARGS, \"name\" : \"functions.shell\"}",
        "<tool_call><name>shell</name><arguments>ARGS</arguments></tool_call>",
        "[TOOL_CALLS][CALL]",
        "[TOOL_CALLS] [{\"name\":\"shell\",\"arguments\":ARGS,\"id\":\"a\"}]",
        "[TOOL_CALLS]shell[CALL_ID]abc123def[ARGS]ARGS",
        "[TOOL_CALLS]shellARGS",
        "<|python_tag|>shell.call(command=\"ls\")",
        "<|start|>assistant to=functions.shell<|channel|>commentary json<|message|>ARGS",
        "assistantcommentary to=functions.shell jsonARGS",
        "<function=shell>ARGS</function>",
        "<seed:tool_call><function=shell><parameter=command>ls</parameter></function>",
        "<function_calls>\n<invoke name=\"shell\">\n<parameter name=\"command\">ls</parameter>\n\
            </invoke>\n</function_calls>",
        "<minimax:tool_call>\n<invoke name=\"shell\">\n<parameter name=\"command\">ls\
            </parameter>\n</invoke>\n</minimax:tool_call>",
        "<shell>\n<command>ls</command>\n</shell>",
        "Thought: I look.\nAction: shell\nAction Input: ARGS",
        "Action:\n```json\n{\"action\":\"shell\",\"action_input\":ARGS}\n```",
        "CALL",
        "CALLP",
        "{\"tool\":\"shell\",\"args\":ARGS}",
        "{\"tool\":\"shell\",\"input\":ARGS}",
        "{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"shell\",\"input\":ARGS}",
        "{\"name\":\"shell\",\"arguments\":\"{\\\"command\\\":\\\"ls\\\"}\"}",
        "{\"id\":\"a\",\"type\":\"function\",\"function\":{\"name\":\"shell\",\"arguments\":\
            \"{\\\"command\\\": \\\"ls\\\"}\"}}",
        "{\"tool_calls\":[{\"id\":\"a\",\"function\":CALL}]}",
        "{\"function_call\":CALL}",
        "[CALL]",
        "```json\nCALL\n```\n",
        "```\nCALL```",
        "```tool_call\nCALL\n```",
        "```tool_code\nprint(shell(command=\"ls\"))\n```",
        "```tool_code\nprint(default_api.shell(command='ls'))\n```",
        "[shell(command=\"ls\")]",
        "shell(command='''ls''')",
        "shell\nARGS",
    ];

    fn written(text: &str) -> String {
        let call = |arguments: &str| format!("{{\"name\": \"shell\", \"{arguments}\": ARGS}}");
        text.replace("CALLP", &call("parameters"))
            .replace("CALL", &call("arguments"))
            .replace(&format!("[TOOL_{}S]", call("arguments")), "[TOOL_CALLS]")
            .replace(&format!("[{}_ID]", call("arguments")), "[CALL_ID]")
            .replace(&format!("<TOOL{}>", call("arguments")), "<TOOLCALL>")
            .replace(&format!("</TOOL{}>", call("arguments")), "</TOOLCALL>")
            .replace("[ARGS]", "[A]")
            .replace("\u{273f}ARGS\u{273f}", "\u{273f}A\u{273f}")
            .replace("ARGS", "{\"command\":\"ls\"}")
            .replace("[A]", "[ARGS]")
            .replace("\u{273f}A\u{273f}", "\u{273f}ARGS\u{273f}")
            .replace("|:", "\u{ff5c}")
            .replace("_:", "\u{2581}")
            .replace("NS:", concat!("ant", "ml:"))
    }

    fn examples() -> impl Iterator<Item = String> {
        EXAMPLES.iter().map(|text| written(text))
    }

    fn forms() -> impl Iterator<Item = String> {
        FORMS.iter().map(|text| written(text))
    }

    #[test]
    fn each_markup_is_read_with_name_and_arguments() {
        assert_eq!(EXAMPLES.len(), TABLE.len());
        for (text, row) in examples().zip(TABLE) {
            assert!(text.contains(row.open), "{text} is no example of {}", row.open);
        }
        for text in examples().chain(forms()) {
            let calls = read(&text, TOOLS);
            let [call] = &calls[..] else { panic!("{text}: {calls:?}") };
            assert_eq!(call.name, "shell", "{text}");
            let arguments = call.arguments.as_deref().unwrap_or_else(|| panic!("{text}"));
            assert_eq!(arguments.replace(": ", ":"), "{\"command\":\"ls\"}", "{text}");
            assert!(text[call.range.clone()].contains("shell"), "{text}: {:?}", call.range);
        }
    }

    #[test]
    fn a_markup_is_read_behind_a_sentence_and_with_others() {
        for text in examples() {
            check(&format!("I will look. {text}"), Some("shell"));
            check(&format!("I'll look.\n\n{text}\n\nThen I go on."), Some("shell"));
            check(&format!("It`s `a`.\n\n~~~\nx\n~~~\n{text}"), Some("shell"));
            // A fence that closes none opens one.
            let all = if text.ends_with("```") { 1 } else { 2 };
            assert_eq!(read(&format!("{text}\n{text}"), TOOLS).len(), all, "{text}");
        }
        let calls = read("[shell(command=\"ls\"), read_file(path='a', offset=2)]", TOOLS);
        assert_eq!(calls[1].arguments.as_deref(), Some("{\"offset\":2,\"path\":\"a\"}"));
        let two = "{\"name\":\"x\",\"arguments\":{}}\n{\"name\":\"read_file\",\"arguments\":{}}";
        let calls = read(two, TOOLS);
        assert_eq!((&*calls[0].name, &*calls[1].name), ("x", "read_file"));
        check(&format!("```json\n{two}\n```\n\n```json\n{two}\n```"), Some("x"));
    }

    #[test]
    fn a_closing_tag_in_an_argument_closes_nothing() {
        let arguments = "{\"command\":\"echo '</tool_call>' '</function>' `date`\"}";
        for text in [
            format!("<tool_call>{{\"name\":\"shell\",\"arguments\":{arguments}}}</tool_call>"),
            format!("<function=shell>{arguments}</function>"),
            format!("[TOOL_CALLS]shell[ARGS]{arguments}"),
        ] {
            let calls = read(&text, TOOLS);
            assert_eq!(calls.len(), 1, "{calls:?}");
            assert_eq!(calls[0].arguments.as_deref(), Some(arguments), "{text}");
        }
    }

    #[test]
    fn a_tool_that_is_not_offered_is_not_called() {
        for text in examples().chain(forms()) {
            assert_eq!(read(&text, &["write_file"]), [], "{text}");
        }
    }

    #[test]
    fn an_example_in_code_is_no_call() {
        for text in examples() {
            let indented = text.replace('\n', "\n    ");
            let quoted = text.replace('\n', "\n> ");
            let added = text.replace('\n', "\n+");
            for shown in [
                format!("Like this:\n~~~~xml\n{text}\n~~~~\nDone."),
                format!("Like this:\n\n    {indented}\n\nDone."),
                format!("> ~~~\n> {quoted}\n> ~~~\n\nDone."),
                format!("So ```` {text} ```` is a call."),
                format!("@@ -0,0 +1,{} @@\n+{added}", text.lines().count()),
            ] {
                check(&shown, None);
            }
        }
    }

    #[test]
    fn a_cut_or_broken_call_is_one_whose_arguments_are_unknown() {
        for text in [
            "<tool_call>\n{\"name\":\"shell\",\"arguments\":{\"command\":\"ls",
            "<tool_call>{'name': 'shell', 'arguments': {}}</tool_call>",
            "<tool_call>{\"name\":\"shell\"}</tool_call>",
            "<tool_call>{\"name\":\"shell\",\"arguments\":[]}</tool_call>",
            "<tool_call>shell\n<arg_key>command</arg_key></tool_call>",
            "<tool_call>shell</tool_call>",
            "<tool_call>shell(\"ls\")</tool_call>",
            "<function=shell><parameter=command>ls",
            "<function=shell>ls</function>",
            "<function=shell",
            "<invoke name=\"shell\"><parameter name=\"command\">ls",
            "[TOOL_CALLS]shell[ARGS]{\"command\":\"l",
            "[TOOL_CALLS][{\"name\": \"shell\", \"arguments\": {\"com",
            "<|channel|>commentary to=functions.shell <|message|>{\"command\":\"l",
            "<start_function_call>call:shell{command:<escape>ls<escape>}<end_function_call>",
        ] {
            let calls = read(text, TOOLS);
            assert_eq!(calls.len(), 1, "{text}: {calls:?}");
            assert_eq!((&*calls[0].name, &calls[0].arguments), ("shell", &None), "{text}");
        }
        check("<function='shell'></function>", Some("shell"));
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
    fn a_text_that_shows_a_call_in_code_is_an_answer() {
        let call = "<tool_call>{\"name\":\"shell\"}</tool_call>";
        for text in [
            format!("Like this:\n```xml\n{call}\n```\nDone."),
            format!("````md\n```xml\n{call}\n```\n{call}\n````\n"),
            format!("~~~\n```\n{call}\n~~~\n"),
            format!("The tag `{call}` is a call, and ``{call} `x` `` too."),
            format!("1. So:\n\n   ```\n   {call}\n   ```\n2. Done."),
            format!("- ```\n  {call}\n  ```\n"),
            format!("> ```\n> {call}\n> ```\n"),
            format!("```diff\n-{call}\n+x\n```"),
            format!("--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n-x\n+{call}\n y\n"),
            format!("```html\n<!-- {call} -->\n```"),
            format!("```xml\n{call}\n```"),
        ] {
            check(&text, None);
        }
    }

    #[rustfmt::skip]
    #[test]
    fn a_text_about_calls_is_an_answer() {
        for text in [
            "",
            "42",
            "Prose with <invoke name=\"shell\"> and <tool_call> in it.",
            "Use <tool_call> and </tool_call> around the JSON.",
            "Use <tool_call> with {\"name\":\"shell\"} in it.",
            "Models write <tool_call>...</tool_call> for it.",
            "The tag <function=shell> opens a call of shell.",
            "The tags <function=NAME> and <parameter=KEY> belong to Qwen.",
            "Mistral starts with [TOOL_CALLS] and the name, such as shell.",
            "With [TOOL_CALLS] shell is called.",
            "The recipient is to=functions.shell in Harmony.",
            "The recipient is to=functions.shell.",
            "gpt-oss writes <|channel|>commentary to=functions.NAME <|message|> before it.",
            "LM Studio has [TOOL_REQUEST] and [END_TOOL_REQUEST].",
            "Llama has <|python_tag|> for that, vLLM reads it.",
            "DeepSeek has <\u{ff5c}tool\u{2581}call\u{2581}begin\u{ff5c}> for that.",
            "Kimi has <|tool_call_begin|> and <|tool_call_argument_begin|>.",
            "<function=unknown></function>",
            "<tool_call>{\"name\":\"unknown\",\"arguments\":{}}</tool_call>",
            "{\"name\": \"shell\", \"version\": 1}",
            "{\"name\": \"shell\", \"arguments\": [\"-c\"]}",
            "{\"name\": \"shell\", \"description\": \"Runs it.\", \"parameters\": {}}",
            "{\"name\": \"unknown\", \"arguments\": {}}",
            "[{\"name\": \"unknown\", \"arguments\": {}}]",
            "[{\"name\": \"shell\", \"arguments\": {}}, 1]",
            "[1, 2, 3]",
            "{\"scripts\": {\"shell\": \"bash\"}}",
            "<tools>[{\"name\":\"shell\",\"description\":\"Runs.\",\"parameters\":{}}]</tools>",
            "<tools>the tools</tools>",
            "Here:\n```json\n{\"name\":\"shell\",\"arguments\":{}}\n```",
            "Put the tool in <tool>shell</tool> tags.",
            ">>> shell\nthen press enter",
            ">>> shell(command=\"ls\")\n'x'",
            "Action: shell is the next thing to look at.",
            "Action: read the file.",
            "functools is a module; functools.partial is in it.",
            "The <shell> element is unknown to HTML.",
            "<shell>bash</shell> sets it.",
            "shell()",
            "read_file\nis what reads files.",
            "shell",
            "def shell(command):\n    pass",
            "[shell](shell.md)",
            "`shell(command=\"ls\")`",
            "I called shell(command=\"ls\") and it printed nothing.",
        ] {
            check(text, None);
        }
    }

    /// Signs and nothing else, of each kind: in quadratic time this takes minutes for one of them.
    #[test]
    fn signs_without_end_are_read_in_linear_time() {
        for row in TABLE {
            let text = row.open.repeat(400_000 / row.open.len());
            let start = std::time::Instant::now();
            assert_eq!(read(&text, TOOLS), [], "{}", row.open);
            let seconds = start.elapsed().as_secs();
            assert!(seconds < 20, "{seconds} s for 400 KB of {}", row.open);
        }
    }

    /// Each of them is read in a moment, and would take minutes in quadratic time.
    #[rustfmt::skip]
    #[test]
    fn the_time_is_linear() {
        let long = |piece: &str| piece.repeat(20_000 / piece.len());
        for piece in examples().chain(TABLE.iter().map(|row| row.open.to_owned())) {
            let cut: String = piece.chars().take(piece.chars().count() / 2).collect();
            for piece in [piece.as_str(), cut.as_str()] {
                read(&long(piece), &["read_file"]);
            }
        }
        for piece in [
            "[", "{", "{\"a\":", "`", "` ", "<", "\\`", "```\n", "```x\n", "~~~\n", "> ```\n> x\n",
            "- ", "@@ -1,9 +1,9 @@\n", "<tool_call>{\"name\":", "<tool_call>{\"", "\n", ">", " ",
            "<tool_call>['name':", "<function=shell><parameter=a>", "<tool_call>shell<arg_key>",
            "<shell><a>", "shell(", "<shell>", "[shell(a=\"", "<|python_start|>[shell(a=[", "</",
            "<|tool_call_start|>[shell(a='", "\t", "<invoke name=\"read_file\">", "Action: x\n",
            "{\"name\":\"x\",\"arguments\":{}}\n", "```json\n{}\n```\n", "0,", "json", "[CALL_ID]",
            "to=functions.x json ", "[TOOL_CALLS]x[CALL_ID]", "<tool_use><name>", "'name'",
            "\"name\":\"x\"", "- x\n\n      y\n",
        ] {
            read(&long(piece), TOOLS);
            read(&format!("[TOOL_CALLS]{}", long(piece)), TOOLS);
            read(&format!("{{\"a\":{}", long(piece)), TOOLS);
        }
        for (piece, between) in
            [("`", " "), ("`", "\n"), ("`", "x\n"), ("~", "\n"), (" ", "- a\n\n")]
        {
            let ever_less = |n| piece.repeat(n) + between;
            let falling: String = (3..300).rev().map(ever_less).collect();
            read(&(falling.clone() + &"\n".repeat(100_000)), TOOLS);
            read(&(falling.clone() + &"      a\n\n".repeat(20_000)), TOOLS);
            read(&(falling + &"x `` ".repeat(20_000)), TOOLS);
        }
        let deep = "[".repeat(100_000) + &"]".repeat(100_000);
        let inside = format!("<tool_call>{{\"a\":{deep}}}");
        for text in [format!("<tool_call>{deep}"), inside, deep.clone()] {
            assert_eq!(read(&text, TOOLS), []);
        }
        let arguments = format!("<tool_call>{{\"name\":\"shell\",\"arguments\":{{\"a\":{deep}}}}}");
        check(&arguments, Some("shell"));
    }
}

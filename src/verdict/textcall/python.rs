//! Calls in the notation of Python: `[shell(command="ls"), read_file(path='a')]`.

use std::borrow::Cow;

use super::shape::Call;

/// The calls at the start of `text`, one or a list of them, and how long they are.
pub(super) fn calls(text: &str) -> Option<(Vec<Call<'_>>, usize)> {
    let mut rest = Rest(text);
    let is_list = rest.takes("[");
    let mut calls = Vec::new();
    loop {
        let is_printed = rest.takes("print(");
        let name = rest.name()?;
        // The built-in tools of Llama.
        let name = name.strip_suffix(".call").unwrap_or(name);
        if !rest.takes("(") {
            return None;
        }
        let arguments = rest.arguments()?;
        calls.push((Cow::Borrowed(name), arguments.map(Cow::Owned)));
        if is_printed && !rest.takes(")") {
            return None;
        }
        let goes_on = if is_list { rest.takes(",") } else { rest.takes(";") };
        if !goes_on || rest.0.trim_start().is_empty() {
            break;
        }
    }
    if is_list && !rest.takes("]") {
        return None;
    }
    Some((calls, text.len() - rest.0.len()))
}

/// What is still to be read.
struct Rest<'a>(&'a str);

impl<'a> Rest<'a> {
    fn takes(&mut self, token: &str) -> bool {
        let rest = self.0.trim_start().strip_prefix(token);
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }

    fn name(&mut self) -> Option<&'a str> {
        let text = self.0.trim_start();
        let end = text.find(|c: char| !c.is_ascii_alphanumeric() && !"_.".contains(c));
        let (name, rest) = text.split_at(end.unwrap_or(text.len()));
        self.0 = rest;
        (!name.is_empty()).then_some(name)
    }

    /// Reads as far as the bracket that closes the call. The arguments are an object, where all of
    /// them have names and are values that JSON has.
    fn arguments(&mut self) -> Option<Option<String>> {
        let mut object = serde_json::Map::new();
        let mut is_whole = true;
        while !self.takes(")") {
            let before = self.0;
            match self.argument() {
                Some((name, value)) => {
                    is_whole &= object.insert(name.to_owned(), value).is_none();
                }
                None => {
                    is_whole = false;
                    self.0 = before;
                    self.skip()?;
                }
            }
            if !self.takes(",") && !self.0.trim_start().starts_with(')') {
                return None;
            }
        }
        Some(is_whole.then(|| serde_json::Value::Object(object).to_string()))
    }

    fn argument(&mut self) -> Option<(&'a str, serde_json::Value)> {
        let name = self.name()?;
        let value = if self.takes("=") { self.value() } else { None }?;
        self.0.trim_start().starts_with([',', ')']).then_some((name, value))
    }

    fn value(&mut self) -> Option<serde_json::Value> {
        let text = self.0.trim_start();
        if text.starts_with(['"', '\'']) {
            self.0 = text;
            return self.string().map(serde_json::Value::String);
        }
        let end = text.find([',', ')', '\n', '(', '[', '{', '"', '\''])?;
        let (word, rest) = text.split_at(end);
        self.0 = rest;
        match word.trim_end() {
            "True" | "true" => Some(true.into()),
            "False" | "false" => Some(false.into()),
            "None" | "null" => Some(serde_json::Value::Null),
            word => word.parse::<i64>().ok().map(Into::into),
        }
    }

    /// Reads a string. None for one with an escape that means something else elsewhere.
    fn string(&mut self) -> Option<String> {
        let quote = ["\"\"\"", "'''", "\"", "'"].into_iter().find(|q| self.0.starts_with(q))?;
        let mut rest = self.0.strip_prefix(quote)?;
        let mut string = String::new();
        loop {
            if let Some(behind) = rest.strip_prefix(quote) {
                self.0 = behind;
                return Some(string);
            }
            let mut characters = rest.chars();
            string.push(match characters.next()? {
                '\\' => match characters.next()? {
                    'n' => '\n',
                    't' => '\t',
                    'r' => '\r',
                    same @ ('\\' | '"' | '\'') => same,
                    _ => return None,
                },
                '\n' if quote.len() == 1 => return None,
                other => other,
            });
            rest = characters.as_str();
        }
    }

    /// Skips what is no argument, up to the comma or the bracket behind it.
    fn skip(&mut self) -> Option<()> {
        let mut depth = 0_usize;
        let mut quote = None;
        let mut characters = self.0.char_indices();
        while let Some((index, character)) = characters.next() {
            match (quote, character) {
                (Some(_), '\\') => drop(characters.next()),
                (Some(open), _) if open == character => quote = None,
                (Some(_), _) => {}
                (None, '"' | '\'') => quote = Some(character),
                (None, '(' | '[' | '{') => depth += 1,
                (None, ',' | ')') if depth == 0 => {
                    self.0 = &self.0[index..];
                    return Some(());
                }
                (None, ')' | ']' | '}') => depth = depth.checked_sub(1)?,
                _ => {}
            }
        }
        None
    }
}

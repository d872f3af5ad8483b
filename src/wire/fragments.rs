//! Values that come in fragments: objects, strings and lists that grow.
//!
//! The fragments of a string are joined as they stand, escapes included; nothing is decoded here.

use serde_json::value::RawValue;

use crate::json::{Elements, Json, Members, elements, object, string};

/// The most members of an object that comes in fragments, because they are looked for one by one.
const MEMBERS_MAX: usize = 100;

/// Parts that come in fragments: their type, and the member that grows. They are those of
/// contents, of Mistral's thinking and of OpenRouter's reasoning, which is refused when it comes
/// back in more pieces than it had.
const PARTS: &[(&str, &str)] = &[
    ("reasoning.summary", "summary"),
    ("reasoning.text", "text"),
    ("text", "text"),
    ("thinking", "thinking"),
];

/// The text of a member that says something.
pub(super) fn word<'a>(members: &Members<'a>, name: &str) -> Option<&'a str> {
    members.get(name).map(RawValue::get).filter(|text| *text != "\"\"")
}

/// Whether two things may be the same, as far as both are known.
pub(super) fn agree(one: Option<&str>, other: Option<&str>) -> bool {
    one.is_none() || other.is_none() || one == other
}

/// Puts a comma behind what has come, unless nothing has.
pub(super) fn separate(out: &mut String) {
    if !out.is_empty() && !out.ends_with(['{', '[']) {
        out.push(',');
    }
}

/// The members of an object as far as they have come, in the order in which they first came.
#[derive(Debug, Default)]
pub(super) struct Object(Vec<(String, Value)>);

impl Object {
    pub(super) fn slot(&mut self, name: &str) -> Result<&mut Value, String> {
        let position = self.0.iter().position(|(member, _)| member == name);
        let position = position.unwrap_or(self.0.len());
        if position == MEMBERS_MAX {
            return Err(format!("more than {MEMBERS_MAX} members"));
        }
        if position == self.0.len() {
            self.0.push((name.to_owned(), Value::Null));
        }
        Ok(&mut self.0[position].1)
    }

    /// The text of a member that does not grow and says something.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        let (_, value) = self.0.iter().find(|(member, _)| member == name)?;
        let Value::Fixed(json) = value else { return None };
        Some(json.as_str()).filter(|text| *text != "\"\"")
    }

    pub(super) fn write_to(&self, out: &mut String) {
        for (name, value) in &self.0 {
            separate(out);
            out.push_str(&quote(name));
            out.push(':');
            value.write_to(out);
        }
    }
}

#[derive(Debug, Default)]
pub(super) enum Value {
    #[default]
    Null,
    /// What stands between the quotes of a string.
    Text(String),
    List(List),
    Fixed(Json),
}

/// The same, of one fragment.
enum Fragment<'a> {
    Null,
    Text(&'a str),
    List(Elements<'a>),
    Fixed,
}

impl<'a> Fragment<'a> {
    fn new(raw: &'a RawValue) -> Fragment<'a> {
        let text = raw.get();
        match text.as_bytes().first() {
            Some(b'n') => Fragment::Null,
            Some(b'"') => Fragment::Text(inside(text)),
            Some(b'[') => elements(raw).map_or(Fragment::Fixed, Fragment::List),
            _ => Fragment::Fixed,
        }
    }
}

/// Text as a JSON string.
fn quote(text: &str) -> String {
    serde_json::to_string(text).unwrap_or_default()
}

/// What stands between the quotes.
fn inside(string: &str) -> &str {
    string.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(string)
}

impl Value {
    /// Joins a fragment to what is there. Text that comes before or after a list becomes one of
    /// its parts.
    pub(super) fn grow(&mut self, raw: &RawValue, is_inner: bool) -> Result<(), String> {
        match Fragment::new(raw) {
            Fragment::Null => {}
            Fragment::Text(more) => match self {
                Value::Text(text) => text.push_str(more),
                Value::List(list) => list.push_text(more)?,
                Value::Null | Value::Fixed(_) => *self = Value::Text(more.to_owned()),
            },
            Fragment::List(more) => {
                let mut list = match std::mem::take(self) {
                    Value::List(list) => list,
                    Value::Text(text) => List::of_text(&text, is_inner)?,
                    Value::Null | Value::Fixed(_) => List::of_text("", is_inner)?,
                };
                list.extend(more)?;
                *self = Value::List(list);
            }
            Fragment::Fixed => *self = Value::Fixed(Json::from_raw(raw)),
        }
        Ok(())
    }

    /// The same for a string in whose place some servers send the value that stands in it.
    pub(super) fn grow_text(&mut self, raw: &RawValue) {
        let quoted;
        let more = match Fragment::new(raw) {
            Fragment::Null => return,
            Fragment::Text(more) => more,
            Fragment::List(_) | Fragment::Fixed => {
                quoted = quote(Json::from_raw(raw).as_str());
                inside(&quoted)
            }
        };
        match self {
            Value::Text(text) => text.push_str(more),
            _ => *self = Value::Text(more.to_owned()),
        }
    }

    /// Takes a value that comes whole, unless it says less than what is there.
    pub(super) fn set(&mut self, raw: &RawValue) {
        let says_less = match raw.get() {
            "null" => true,
            "\"\"" => !matches!(self, Value::Null),
            _ => false,
        };
        if !says_less {
            *self = Value::Fixed(Json::from_raw(raw));
        }
    }

    fn write_to(&self, out: &mut String) {
        match self {
            Value::Null => out.push_str("null"),
            Value::Text(text) => {
                out.push('"');
                out.push_str(text);
                out.push('"');
            }
            Value::List(list) => {
                out.push('[');
                list.write_to(out);
                out.push(']');
            }
            Value::Fixed(json) => out.push_str(json.as_str()),
        }
    }
}

/// A list whose last element may be a part of which more comes.
#[derive(Debug)]
pub(super) struct List {
    /// The JSON of the elements before it, separated by commas.
    closed: String,
    open: Option<Box<Part>>,
    /// Whether it stands in a part itself. Only text grows in it then, so that there is an end to
    /// how deep this goes.
    is_inner: bool,
}

#[derive(Debug)]
struct Part {
    members: Object,
    /// The name of the member that grows.
    growing: &'static str,
}

impl List {
    fn of_text(text: &str, is_inner: bool) -> Result<List, String> {
        let mut list = List { closed: String::new(), open: None, is_inner };
        list.push_text(text)?;
        Ok(list)
    }

    /// Adds text that came without a part around it, given as it stands between quotes.
    fn push_text(&mut self, text: &str) -> Result<(), String> {
        if text.is_empty() {
            return Ok(());
        }
        let part = format!("{{\"type\":\"text\",\"text\":\"{text}\"}}");
        let part = serde_json::from_str(&part).map_err(|error| error.to_string())?;
        self.extend(std::iter::once(part))
    }

    /// Adds the elements of one fragment. Only the first of them can be more of the part before.
    fn extend<'a>(&mut self, elements: impl Iterator<Item = &'a RawValue>) -> Result<(), String> {
        for (position, raw) in elements.enumerate() {
            let part = object(raw).and_then(|part| Some((self.growing(&part)?, part)));
            let Some((growing, fragment)) = part else {
                self.close();
                separate(&mut self.closed);
                self.closed.push_str(Json::from_raw(raw).as_str());
                continue;
            };
            let is_more = position == 0
                && self.open.as_ref().is_some_and(|part| part.is_continued_by(&fragment));
            if !is_more {
                self.close();
            }
            let fresh = || Box::new(Part { members: Object::default(), growing });
            self.open.get_or_insert_with(fresh).add(&fragment)?;
            // It comes last.
            if word(&fragment, "signature").is_some() {
                self.close();
            }
        }
        Ok(())
    }

    /// The name of the member that grows in this element; none where the element comes whole.
    fn growing(&self, element: &Members<'_>) -> Option<&'static str> {
        let kind = element.get("type").and_then(string)?;
        let (_, name) = PARTS.iter().find(|(known, _)| *known == kind)?;
        let is_text = element.get(name).is_none_or(|raw| raw.get().starts_with('"'));
        (is_text || !self.is_inner).then_some(*name)
    }

    fn close(&mut self) {
        if let Some(part) = self.open.take() {
            separate(&mut self.closed);
            part.write_to(&mut self.closed);
        }
    }

    fn write_to(&self, out: &mut String) {
        out.push_str(&self.closed);
        if let Some(part) = &self.open {
            separate(out);
            part.write_to(out);
        }
    }
}

impl Part {
    /// Whether an element of a later fragment is more of this part: nothing that both of them say
    /// tells them apart. The index alone does not tell, because some servers always say 0.
    fn is_continued_by(&self, element: &Members<'_>) -> bool {
        let may_be = |name| agree(self.members.get(name), word(element, name));
        ["type", "index", "id"].into_iter().all(may_be)
    }

    fn add(&mut self, fragment: &Members<'_>) -> Result<(), String> {
        for (name, raw) in fragment.iter() {
            let slot = self.members.slot(name)?;
            if name == self.growing { slot.grow(raw, true)? } else { slot.set(raw) }
        }
        Ok(())
    }

    fn write_to(&self, out: &mut String) {
        out.push('{');
        self.members.write_to(out);
        out.push('}');
    }
}

//! The shapes in which models write one call as JSON.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// The names that members have, the first that is there counts.
const NAMES: &[&str] =
    &["name", "tool_name", "function_name", "tool", "function", "action", "recipient_name"];
const ARGUMENTS: &[&str] =
    &["arguments", "parameters", "args", "input", "params", "tool_input", "action_input"];
/// What else can be around calls.
const AROUND: &[&str] = &["tool_calls", "tool_uses", "tool_call", "function_call"];

/// More members no call has.
const MEMBERS_MAX: usize = 16;

/// A call as it was read: the name, and the arguments where they are whole.
pub(super) type Call<'a> = (Cow<'a, str>, Option<Cow<'a, str>>);

/// The calls in the JSON value at the start of `text`: an object, or a list of them and of nothing
/// else. Gives its length, too.
pub(super) fn value(text: &str) -> Option<(Vec<Call<'_>>, usize)> {
    if !text.starts_with(['{', '[']) {
        return None;
    }
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<&RawValue>();
    let value = values.next()?.ok()?;
    let length = values.byte_offset();
    Some((calls(value, true)?, length))
}

/// The length of the JSON object at the start of `text`.
pub(super) fn object(text: &str) -> Option<usize> {
    if !text.starts_with('{') {
        return None;
    }
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<IgnoredAny>();
    values.next()?.ok()?;
    Some(values.byte_offset())
}

fn calls<'a>(value: &'a RawValue, is_outermost: bool) -> Option<Vec<Call<'a>>> {
    if value.get().starts_with('[') {
        let List(calls) = serde_json::from_str(value.get()).ok()?;
        return Some(calls);
    }
    let Object(members) = serde_json::from_str(value.get()).ok()?;
    if let Some(call) = call(&members) {
        return Some(vec![call]);
    }
    let around = first(&members, AROUND).filter(|_| is_outermost)?;
    calls(around, false)
}

fn first<'a>(members: &[(Cow<'a, str>, &'a RawValue)], names: &[&str]) -> Option<&'a RawValue> {
    let is_there = |name: &&str| {
        let (_, value) = members.iter().find(|(member, _)| member == name)?;
        (value.get() != "null").then_some(*value)
    };
    names.iter().find_map(is_there)
}

fn call<'a>(members: &[(Cow<'a, str>, &'a RawValue)]) -> Option<Call<'a>> {
    // That is how a tool is defined.
    if members.iter().any(|(name, _)| name == "description") {
        return None;
    }
    let name = first(members, NAMES)?;
    if name.get().starts_with('{') {
        let Object(inner) = serde_json::from_str(name.get()).ok()?;
        return if inner.iter().any(|(name, _)| name == "function") { None } else { call(&inner) };
    }
    let arguments = first(members, ARGUMENTS).and_then(|value| match value.get().as_bytes() {
        [b'{', ..] => Some(Cow::Borrowed(value.get())),
        [b'"', ..] => {
            let text = string(value)?;
            let length = object(text.trim())?;
            (length == text.trim().len()).then_some(text)
        }
        _ => None,
    });
    Some((string(name)?, arguments))
}

fn string(value: &RawValue) -> Option<Cow<'_, str>> {
    let inner = value.get().strip_prefix('"')?.strip_suffix('"')?;
    match inner.contains('\\') {
        false => Some(Cow::Borrowed(inner)),
        true => serde_json::from_str(value.get()).ok().map(Cow::Owned),
    }
}

/// A list of objects, each of which is a call.
struct List<'a>(Vec<Call<'a>>);

impl<'de> Deserialize<'de> for List<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<List<'de>, D::Error> {
        deserializer.deserialize_seq(ListVisitor)
    }
}

struct ListVisitor;

impl<'de> Visitor<'de> for ListVisitor {
    type Value = List<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of calls")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<List<'de>, A::Error> {
        let mut all = Vec::new();
        while let Some(Object(members)) = list.next_element()? {
            // Apertus writes `[{"NAME": {...}}]`.
            let one = call(&members).or_else(|| match &members[..] {
                [(name, value)] if value.get().starts_with('{') => {
                    Some((name.clone(), Some(Cow::Borrowed(value.get()))))
                }
                _ => None,
            });
            all.push(one.ok_or_else(|| A::Error::custom("no call"))?);
        }
        Ok(List(all))
    }
}

/// The members of an object that may be a call.
struct Object<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de> Deserialize<'de> for Object<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Object<'de>, D::Error> {
        deserializer.deserialize_map(ObjectVisitor)
    }
}

struct ObjectVisitor;

impl<'de> Visitor<'de> for ObjectVisitor {
    type Value = Object<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a call")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object<'de>, A::Error> {
        let mut members = Vec::new();
        while let Some((name, value)) = map.next_entry::<&RawValue, &RawValue>()? {
            if members.len() == MEMBERS_MAX {
                return Err(A::Error::custom("too many members"));
            }
            let name = string(name).ok_or_else(|| A::Error::custom("no name"))?;
            members.push((name, value));
        }
        Ok(Object(members))
    }
}

//! JSON that is passed on as it came.
//!
//! Endpoints put members of their own into messages and expect them back unchanged. A value that
//! went through a number type or a sorted map is not unchanged, so such members are kept as text:
//! [`Json`] is one value, [`Fields`] a list of members in their order, and [`Members`] the borrowed
//! view of an object that is being taken apart.

mod elements;
mod shape;
mod strings;
mod whole;

use std::borrow::Cow;
use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

pub(crate) use elements::{Elements, elements};
pub(crate) use shape::{first_element, kind, list, object, read_object, string};
pub(crate) use strings::{JsonString, map_strings};
pub(crate) use whole::is_object;

/// One JSON value, kept as its text without white space between tokens.
///
/// Two values are equal when their texts are.
#[derive(Clone)]
pub struct Json(Box<RawValue>);

impl Json {
    /// Keeps a value that the parser has already seen whole.
    pub fn from_raw(raw: &RawValue) -> Json {
        let text = raw.get();
        if !text.starts_with(['{', '[']) {
            return Json(raw.to_owned());
        }
        let compact = compact(text);
        if compact.len() == text.len() {
            return Json(raw.to_owned());
        }
        // Dropping white space between tokens leaves valid JSON; should that ever be wrong, the
        // text as it came is still right.
        Json(RawValue::from_string(compact).unwrap_or_else(|_| raw.to_owned()))
    }

    /// Reads a value that is written into the program.
    ///
    /// # Panics
    ///
    /// `text` is not JSON, which the first test that comes by finds out.
    #[expect(clippy::expect_used, reason = "for constants of the program only")]
    pub fn from_static(text: &'static str) -> Json {
        Json::from_raw(serde_json::from_str(text).expect("a constant that is JSON"))
    }

    /// The text of the value.
    pub fn as_str(&self) -> &str {
        self.0.get()
    }
}

impl PartialEq for Json {
    fn eq(&self, other: &Json) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Json {}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

/// `text` without the white space between tokens; `text` is valid JSON.
fn compact(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut in_string = false;
    let mut escaped = false;
    for character in text.chars() {
        if in_string {
            in_string = escaped || character != '"';
            escaped = !escaped && character == '\\';
        } else if matches!(character, ' ' | '\t' | '\n' | '\r') {
            continue;
        } else {
            in_string = character == '"';
        }
        out.push(character);
    }
    out
}

/// Members of an object that are not ours, in the order in which they came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fields(Vec<(String, Json)>);

impl Fields {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Each member with its name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Json)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// Whether there is a member of that name.
    pub fn contains(&self, name: &str) -> bool {
        self.iter().any(|(member, _)| member == name)
    }

    /// Looks at a member; `null` counts as absent.
    pub fn get(&self, name: &str) -> Option<&Json> {
        let (_, value) = self.iter().find(|(member, _)| *member == name)?;
        (value.as_str() != "null").then_some(value)
    }

    /// Drops the members of these names.
    pub fn remove(&mut self, names: &[&str]) {
        self.0.retain(|(name, _)| !names.contains(&name.as_str()));
    }
}

/// The members of a JSON object, borrowed from its text, each name at most once.
///
/// Reading it fails on a name that stands twice: which of the two counts is anybody's guess.
#[derive(Debug)]
pub struct Members<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'a> Members<'a> {
    /// Looks at a member; `null` counts as absent.
    pub fn get(&self, name: &str) -> Option<&'a RawValue> {
        let (_, value) = self.0.iter().find(|(member, _)| member == name)?;
        (value.get() != "null").then_some(*value)
    }

    /// Takes a member out; `null` counts as absent.
    pub fn take(&mut self, name: &str) -> Option<&'a RawValue> {
        let index = self.0.iter().position(|(member, _)| member == name)?;
        let (_, value) = self.0.remove(index);
        (value.get() != "null").then_some(value)
    }

    /// Whether a member is there and says `null`.
    pub fn is_null(&self, name: &str) -> bool {
        self.0.iter().any(|(member, value)| member == name && value.get() == "null")
    }

    /// Each member that was not taken out, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &'a RawValue)> {
        self.0.iter().map(|(name, value)| (&**name, *value))
    }

    /// Whether there may be one more member, of this name.
    fn admit<E: serde::de::Error>(&self, name: &str) -> Result<(), E> {
        if self.0.len() == MEMBERS_MAX {
            return Err(E::custom(format_args!("more than {MEMBERS_MAX} members")));
        }
        match self.0.iter().any(|(earlier, _)| earlier == name) {
            true => Err(given_twice(name)),
            false => Ok(()),
        }
    }

    /// Keeps what was not taken out.
    pub fn into_fields(self) -> Fields {
        let own = |(name, value): (Cow<'_, str>, _)| (name.into_owned(), Json::from_raw(value));
        let mut fields: Vec<_> = self.0.into_iter().map(own).collect();
        // They are collected in place, with room for those that were taken out.
        fields.shrink_to_fit();
        Fields(fields)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Members<'a>, D::Error> {
        deserializer.deserialize_map(MembersVisitor)
    }
}

/// No object of the protocol comes near; without a limit, comparing names pair by pair is a way to
/// keep us busy for hours.
pub(crate) const MEMBERS_MAX: usize = 1_000;

/// Room that most objects find enough.
const MEMBERS_USUAL: usize = 6;

struct MembersVisitor;

impl<'de> Visitor<'de> for MembersVisitor {
    type Value = Members<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
        let mut members = Members(Vec::with_capacity(MEMBERS_USUAL));
        while let Some(Name(name)) = map.next_key()? {
            members.admit(&name)?;
            members.0.push((name, map.next_value()?));
        }
        Ok(members)
    }
}

/// The members of a JSON object, one of which is an object whose members these are, in a single
/// pass: a large object is not read once to find its end and then again to take it apart.
#[derive(Debug)]
pub(crate) struct Nested<'a> {
    pub(crate) outer: Members<'a>,
    /// None where it is absent or null.
    pub(crate) inner: Option<Members<'a>>,
}

impl<'a> Nested<'a> {
    /// Reads `text`, in which the inner object is called `name`.
    ///
    /// # Errors
    ///
    /// It is not JSON, a name stands twice, or one of the two is no object.
    pub(crate) fn read(text: &'a str, name: &'static str) -> serde_json::Result<Nested<'a>> {
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let nested = deserializer.deserialize_map(NestedVisitor(name))?;
        deserializer.end()?;
        Ok(nested)
    }
}

/// With the name of the inner object.
struct NestedVisitor(&'static str);

impl<'de> Visitor<'de> for NestedVisitor {
    type Value = Nested<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Nested<'de>, A::Error> {
        let mut outer = Members(Vec::with_capacity(MEMBERS_USUAL));
        let mut inner: Option<Option<Members<'de>>> = None;
        while let Some(Name(name)) = map.next_key()? {
            if name != self.0 {
                outer.admit(&name)?;
                outer.0.push((name, map.next_value()?));
            } else if inner.is_some() {
                return Err(given_twice(&name));
            } else {
                inner = Some(map.next_value()?);
            }
        }
        Ok(Nested { outer, inner: inner.flatten() })
    }
}

fn given_twice<E: serde::de::Error>(name: &str) -> E {
    E::custom(format_args!("\"{name}\" is given twice"))
}

/// A name, borrowed unless it is written with escapes.
struct Name<'a>(Cow<'a, str>);

impl<'de> Deserialize<'de> for Name<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Name<'de>, D::Error> {
        deserializer.deserialize_str(NameVisitor)
    }
}

struct NameVisitor;

impl<'de> Visitor<'de> for NameVisitor {
    type Value = Name<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_borrowed_str<E>(self, name: &'de str) -> Result<Name<'de>, E> {
        Ok(Name(Cow::Borrowed(name)))
    }

    fn visit_str<E>(self, name: &str) -> Result<Name<'de>, E> {
        Ok(Name(Cow::Owned(name.to_owned())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(text: &str) -> Result<Members<'_>, serde_json::Error> {
        serde_json::from_str(text)
    }

    #[test]
    fn a_kept_member_has_its_own_spelling_and_no_line_breaks() {
        let mut all =
            members("{\"mine\": 1, \"b\": [ 1.50,\n \"x \\\" y\" ], \"a\":1e400}").unwrap();
        assert_eq!(all.take("mine").unwrap().get(), "1");
        let fields = all.into_fields();
        let kept: Vec<_> = fields.iter().map(|(name, value)| (name, value.as_str())).collect();
        assert_eq!(kept, [("b", "[1.50,\"x \\\" y\"]"), ("a", "1e400")]);
    }

    #[test]
    fn a_name_is_the_same_however_it_is_written() {
        let mut all = members(r#"{"p\u0061th":1,"b":2}"#).unwrap();
        assert_eq!(all.take("path").unwrap().get(), "1");
        assert!(members(r#"{"p\u0061th":1,"path":2}"#).is_err());
    }

    #[test]
    fn a_name_given_twice_is_refused() {
        let error = members("{\"path\":1,\"path\":2}").unwrap_err().to_string();
        assert!(error.starts_with("\"path\" is given twice"), "{error}");
    }

    #[test]
    fn an_object_with_thousands_of_members_is_refused() {
        let many: Vec<String> = (0..=MEMBERS_MAX).map(|n| format!("\"{n}\":0")).collect();
        let error = members(&format!("{{{}}}", many.join(","))).unwrap_err().to_string();
        assert!(error.starts_with("more than 1000 members"), "{error}");
    }

    #[test]
    fn null_is_absent() {
        assert!(members("{\"a\":null}").unwrap().take("a").is_none());
        assert!(Nested::read("{\"in\":null}", "in").unwrap().inner.is_none());
    }

    /// A conversation holds hundreds of thousands of them, most of them empty.
    #[test]
    fn kept_members_take_no_more_room_than_they_need() {
        let mut all = members("{\"a\":1,\"b\":2,\"c\":3}").unwrap();
        all.take("b");
        let fields = all.into_fields();
        assert_eq!((fields.0.len(), fields.0.capacity()), (2, 2));
    }

    #[test]
    fn an_object_in_another_is_taken_apart_with_it() {
        let mut both = Nested::read(r#"{"a":1,"\u0069n":{"a":2,"in":{}},"b":3}"#, "in").unwrap();
        let outer: Vec<_> = both.outer.iter().map(|(name, value)| (name, value.get())).collect();
        assert_eq!(outer, [("a", "1"), ("b", "3")]);
        assert_eq!(both.inner.as_mut().unwrap().take("a").unwrap().get(), "2");
        for (text, reason) in [
            (r#"{"in":{},"in":null}"#, "\"in\" is given twice"),
            (r#"{"in":null,"in":{}}"#, "\"in\" is given twice"),
            (r#"{"in":{"a":1,"a":1}}"#, "\"a\" is given twice"),
            (r#"{"a":1,"in":{},"a":1}"#, "\"a\" is given twice"),
            (r#"{"in":1}"#, "invalid type: integer `1`, expected an object"),
            (r#"{"in":{}}}"#, "trailing characters"),
        ] {
            let error = Nested::read(text, "in").unwrap_err().to_string();
            assert!(error.starts_with(reason), "{error}");
        }
    }

    #[test]
    fn a_backslash_before_the_closing_quote_does_not_hide_it() {
        assert_eq!(compact(r#"{ "a\\" : "b\\\" c" }"#), r#"{"a\\":"b\\\" c"}"#);
    }
}

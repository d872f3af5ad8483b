//! JSON that is passed on as it came.
//!
//! Endpoints put members of their own into messages and expect them back unchanged. A value that
//! went through a number type or a sorted map is not unchanged, so such members are kept as text:
//! [`Json`] is one value, [`Fields`] a list of members in their order, and [`Members`] the borrowed
//! view of an object that is being taken apart.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// One JSON value, kept as its text without white space between tokens.
///
/// Two values are equal when their texts are.
#[derive(Clone)]
pub struct Json(Box<RawValue>);

impl Json {
    /// Keeps a value that the parser has already seen whole.
    pub fn from_raw(raw: &RawValue) -> Json {
        let text = raw.get();
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

    /// Each member that was not taken out, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &'a RawValue)> {
        self.0.iter().map(|(name, value)| (&**name, *value))
    }

    /// Keeps what was not taken out.
    pub fn into_fields(self) -> Fields {
        let own = |(name, value): (Cow<'_, str>, _)| (name.into_owned(), Json::from_raw(value));
        Fields(self.0.into_iter().map(own).collect())
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

struct MembersVisitor;

impl<'de> Visitor<'de> for MembersVisitor {
    type Value = Members<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
        let mut members: Vec<(Cow<'de, str>, &'de RawValue)> = Vec::new();
        while let Some((Name(name), value)) = map.next_entry::<Name<'de>, &'de RawValue>()? {
            if members.len() == MEMBERS_MAX {
                return Err(A::Error::custom(format_args!("more than {MEMBERS_MAX} members")));
            }
            if members.iter().any(|(earlier, _)| *earlier == name) {
                return Err(A::Error::custom(format_args!("\"{name}\" is given twice")));
            }
            members.push((name, value));
        }
        Ok(Members(members))
    }
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
    }

    #[test]
    fn a_backslash_before_the_closing_quote_does_not_hide_it() {
        assert_eq!(compact(r#"{ "a\\" : "b\\\" c" }"#), r#"{"a\\":"b\\\" c"}"#);
    }
}

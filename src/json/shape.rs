//! What shape a value has, and what it is called in messages.

use serde_json::value::RawValue;

use super::{Elements, Members, elements};

/// The members of an object; `place` is what the error calls it.
pub(crate) fn read_object<'a>(raw: &'a RawValue, place: &str) -> Result<Members<'a>, String> {
    if !raw.get().starts_with('{') {
        return Err(format!("{place} is {} and not an object", kind(raw)));
    }
    serde_json::from_str(raw.get()).map_err(|error| format!("{place}: {error}"))
}

/// The members of an object; none where it is no object or a name stands twice.
pub(crate) fn object(raw: &RawValue) -> Option<Members<'_>> {
    read_object(raw, "").ok()
}

/// The text of a string.
pub(crate) fn string(raw: &RawValue) -> Option<String> {
    serde_json::from_str(raw.get()).ok()
}

/// The elements of a list; `what` is what the error calls it.
pub(crate) fn list<'a>(raw: &'a RawValue, what: &str) -> Result<Elements<'a>, String> {
    elements(raw).ok_or_else(|| format!("{what} is {} and not a list", kind(raw)))
}

/// The first element of a list that has one.
pub(crate) fn first_element(raw: &RawValue) -> Option<&RawValue> {
    elements(raw)?.next()
}

/// What kind of value it is, for messages.
pub(crate) fn kind(raw: &RawValue) -> &'static str {
    match raw.get().as_bytes().first() {
        Some(b'{') => "an object",
        Some(b'[') => "a list",
        Some(b'"') => "a string",
        Some(b't' | b'f') => "true or false",
        Some(b'n') => "null",
        _ => "a number",
    }
}

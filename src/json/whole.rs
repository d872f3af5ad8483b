//! Whether text is a JSON value by the rules of those who build a tree of it, without a tree.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

/// Whether the text is one JSON object that any server can read.
///
/// Strings are decoded and numbers are converted, because servers do that: half a surrogate pair is
/// valid to a parser that only skips strings, and an error to theirs. Nothing is kept: a tree takes
/// up to twenty times as much memory as its text.
pub(crate) fn is_object(text: &str) -> bool {
    text.trim_ascii_start().starts_with('{') && serde_json::from_str::<Whole>(text).is_ok()
}

/// Any value, read whole and not kept.
struct Whole;

impl<'de> Deserialize<'de> for Whole {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Whole, D::Error> {
        deserializer.deserialize_any(WholeVisitor)
    }
}

struct WholeVisitor;

impl<'de> Visitor<'de> for WholeVisitor {
    type Value = Whole;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_unit<E>(self) -> Result<Whole, E> {
        Ok(Whole)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Whole, E> {
        Ok(Whole)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Whole, E> {
        Ok(Whole)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Whole, E> {
        Ok(Whole)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Whole, E> {
        Ok(Whole)
    }

    fn visit_str<E>(self, _: &str) -> Result<Whole, E> {
        Ok(Whole)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Whole, A::Error> {
        while list.next_element::<Whole>()?.is_some() {}
        Ok(Whole)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Whole, A::Error> {
        while map.next_entry::<Whole, Whole>()?.is_some() {}
        Ok(Whole)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn text_is_an_object_when_a_tree_of_it_would_be_one() {
        let deep = |depth: usize| format!("{{\"a\":{}{}}}", "[".repeat(depth), "]".repeat(depth));
        for text in [
            "{}",
            " \n{ \"a\" : 1 }\t",
            r#"{"a":[null,true,-1,1e300,18446744073709551616,"\u00e9\ud83d\ude42"],"b":{"c":{}}}"#,
            r#"{"a":1,"a":2}"#,
            r#"{"a":"\ud83d"}"#,
            r#"{"\ud83d":1}"#,
            r#"{"a":"\ude42\ud83d"}"#,
            r#"{"a":1e400}"#,
            "{\"a\":\"\n\"}",
            "{\"a\":",
            "{\"a\":1}}",
            "{}{}",
            "{1:2}",
            "{a:2}",
            "{null:2}",
            "{\"a\":01}",
            "{\"a\":NaN}",
            "",
            "[1]",
            "null",
            "\"{}\"",
            "\u{feff}{}",
            &deep(120),
            &deep(126),
            &deep(127),
            &deep(128),
            &deep(50_000),
        ] {
            let tree = serde_json::from_str::<Value>(text).is_ok_and(|value| value.is_object());
            assert_eq!(is_object(text), tree, "{text}");
        }
    }
}

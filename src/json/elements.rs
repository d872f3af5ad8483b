//! The elements of a list, one after the other.

use serde_json::Deserializer;
use serde_json::value::RawValue;

/// The elements of a list in their order. None of them is held: a list of a few megabytes has
/// millions of elements, and holding them takes many times its size.
#[derive(Clone, Debug, Default)]
pub(crate) struct Elements<'a> {
    /// What comes behind the last element; it starts with a comma, or with the closing bracket.
    rest: &'a str,
}

/// The elements of a value; none where it is no list.
pub(crate) fn elements(raw: &RawValue) -> Option<Elements<'_>> {
    raw.get().strip_prefix('[').map(|rest| Elements { rest })
}

impl<'a> Iterator for Elements<'a> {
    type Item = &'a RawValue;

    fn next(&mut self) -> Option<&'a RawValue> {
        // The parser has seen the list whole, so nothing else can stand there.
        let rest = self.rest.trim_ascii_start();
        let rest = rest.strip_prefix(',').unwrap_or(rest).trim_ascii_start();
        let mut values = Deserializer::from_str(rest).into_iter();
        let element = match rest.starts_with(']') {
            true => None,
            false => values.next()?.ok(),
        };
        self.rest = rest.get(values.byte_offset()..).unwrap_or_default();
        element
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let raw: &RawValue = serde_json::from_str(text).unwrap();
        let mut elements = elements(raw).unwrap();
        let found: Vec<&str> = elements.by_ref().map(RawValue::get).collect();
        assert_eq!(found, expected);
        assert!(elements.next().is_none());
    }

    #[test]
    fn each_element_comes_once_and_in_order() {
        check("[]", &[]);
        check("[ \n]", &[]);
        check("[1]", &["1"]);
        check("[1,2.5e3 ,\t-0,null]", &["1", "2.5e3", "-0", "null"]);
        check(
            r#" [ {"a" : [1,2]} , [ ] ,"x,]\"", true ] "#,
            &[r#"{"a" : [1,2]}"#, "[ ]", r#""x,]\"""#, "true"],
        );
    }

    #[test]
    fn what_is_no_list_has_no_elements() {
        for text in ["{}", "\"[1]\"", "7", "null"] {
            assert!(elements(serde_json::from_str(text).unwrap()).is_none(), "{text}");
        }
    }

    #[test]
    fn a_million_elements_are_read_in_linear_time() {
        let text = format!("[{}0]", "0,".repeat(1_000_000));
        let raw: &RawValue = serde_json::from_str(&text).unwrap();
        assert_eq!(elements(raw).unwrap().count(), 1_000_001);
    }
}

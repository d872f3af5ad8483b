//! The arguments of a tool call, taken out one by one.
//!
//! Lenient where the meaning is beyond doubt: nothing at all is an object without members, a number
//! or a boolean may come as a string, unknown names are ignored. Strict everywhere else, and every
//! error names the argument and what was expected.

use serde_json::value::RawValue;

use crate::json::Members;
use crate::secret::Mask;
use crate::text::one_line;

use super::ToolError;

/// The arguments of one call.
#[derive(Debug)]
pub(super) struct Arguments<'a> {
    members: Members<'a>,
    /// What is masked in what is quoted of them.
    mask: Mask,
}

impl<'a> Arguments<'a> {
    /// Reads the text that the endpoint sent; an empty one, white space and `null` are `{}`.
    ///
    /// # Errors
    ///
    /// Anything that is not a JSON object, or a name that is given twice.
    pub(super) fn parse(text: &'a str, mask: &Mask) -> Result<Arguments<'a>, ToolError> {
        let text = match text.trim() {
            "" | "null" => "{}",
            text => text,
        };
        let members = serde_json::from_str(text).map_err(|error| {
            let what = format!("the arguments are no valid JSON object ({error})");
            ToolError::new(format!("{}; nothing was done", one_line(&mask.text(&what), 300)))
        })?;
        Ok(Arguments { members, mask: mask.clone() })
    }

    /// Takes out a string.
    ///
    /// # Errors
    ///
    /// It is missing, or not a string.
    pub(super) fn string(&mut self, name: &str) -> Result<String, ToolError> {
        let Some(value) = self.members.take(name) else {
            return Err(ToolError::new(format!("the argument \"{name}\" (a string) is missing")));
        };
        if !value.get().starts_with('"') {
            return Err(self.wrong_type(name, "a string", value));
        }
        serde_json::from_str(value.get()).map_err(|error| {
            ToolError::new(format!("the argument \"{name}\" is no valid string: {error}"))
        })
    }

    /// Takes out a number that is whole and not negative, in any spelling: `20`, `20.0`, `"20"`.
    ///
    /// # Errors
    ///
    /// It is there, and it is something else.
    pub(super) fn optional_u64(&mut self, name: &str) -> Result<Option<u64>, ToolError> {
        let value = self.members.take(name);
        let parse = |value| {
            whole_number(&scalar(value))
                .ok_or_else(|| self.wrong_type(name, "a whole number of 0 or more", value))
        };
        value.map(parse).transpose()
    }

    /// Takes out a boolean, as such or as a string.
    ///
    /// # Errors
    ///
    /// It is there, and it is something else.
    pub(super) fn optional_bool(&mut self, name: &str) -> Result<Option<bool>, ToolError> {
        let value = self.members.take(name);
        let parse = |value| match scalar(value).to_ascii_lowercase().as_str() {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err(self.wrong_type(name, "true or false", value)),
        };
        value.map(parse).transpose()
    }

    fn wrong_type(&self, name: &str, expected: &str, value: &RawValue) -> ToolError {
        let shown = one_line(&self.mask.text(value.get()), 60);
        ToolError::new(format!("the argument \"{name}\" must be {expected}, not {shown}"))
    }
}

/// The text of a number or boolean, whether it came as itself or as a string.
fn scalar(value: &RawValue) -> String {
    let text = serde_json::from_str(value.get()).unwrap_or_else(|_| value.get().to_owned());
    text.trim().to_owned()
}

/// Above this, neighbouring whole numbers can't be told apart once they are written as `1e16`.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

fn whole_number(text: &str) -> Option<u64> {
    if let Ok(number) = text.parse() {
        return Some(number);
    }
    let number: f64 = text.parse().ok()?;
    let exact = (0.0..=EXACT_MAX).contains(&number) && number.fract() == 0.0;
    exact.then_some(number as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn arguments(text: &str) -> Arguments<'_> {
        Arguments::parse(text, &Mask::default()).unwrap()
    }

    #[test]
    fn nothing_is_an_object_without_members() {
        for text in ["", " \n", "null", "{}", " { } "] {
            let error = arguments(text).string("path").unwrap_err();
            assert_eq!(error.to_string(), "the argument \"path\" (a string) is missing");
        }
    }

    #[test]
    fn what_is_no_object_is_refused() {
        for text in ["[]", "7", "\"{}\"", "{\"a\":1", "{'a':1}", "{} {}", "ls -l"] {
            let error = Arguments::parse(text, &Mask::default()).unwrap_err().to_string();
            assert!(error.starts_with("the arguments are no valid JSON object ("), "{error}");
        }
    }

    #[test]
    fn a_name_given_twice_is_named() {
        let text = "{\"path\":\"a\",\"path\":\"b\"}";
        let error = Arguments::parse(text, &Mask::default()).unwrap_err().to_string();
        assert!(error.contains("\"path\" is given twice"), "{error}");
    }

    #[test]
    fn a_string_is_a_string() {
        let mut all = arguments(r#"{"a":"x\ny","b":{"k":1},"c":null,"d":"\ud800","more":[]}"#);
        assert_eq!(all.string("a").unwrap(), "x\ny");
        let error = all.string("b").unwrap_err().to_string();
        assert_eq!(error, r#"the argument "b" must be a string, not {"k":1}"#);
        let error = all.string("c").unwrap_err().to_string();
        assert_eq!(error, "the argument \"c\" (a string) is missing");
        let error = all.string("d").unwrap_err().to_string();
        assert!(error.starts_with("the argument \"d\" is no valid string: "), "{error}");
    }

    #[test]
    fn a_whole_number_may_come_in_any_spelling() {
        for (text, number) in [
            ("20", 20),
            ("\"20\"", 20),
            ("\" 20.0 \"", 20),
            ("30.0", 30),
            ("1e3", 1_000),
            ("0", 0),
            ("18446744073709551615", u64::MAX),
        ] {
            let text = format!("{{\"n\":{text}}}");
            assert_eq!(arguments(&text).optional_u64("n").unwrap(), Some(number), "{text}");
        }
        assert_eq!(arguments("{\"n\":null}").optional_u64("n").unwrap(), None);
        assert_eq!(arguments("{}").optional_u64("n").unwrap(), None);
    }

    #[test]
    fn any_other_number_is_refused() {
        for text in ["2.5", "1e400", "-1", "\"-1\"", "\"\"", "\"inf\"", "\"NaN\"", "true", "[1]"] {
            let all = format!("{{\"n\":{text}}}");
            let error = arguments(&all).optional_u64("n").unwrap_err().to_string();
            assert_eq!(
                error,
                format!("the argument \"n\" must be a whole number of 0 or more, not {text}")
            );
        }
    }

    #[test]
    fn a_boolean_may_come_as_a_string() {
        let mut all = arguments("{\"a\":true,\"b\":\"False\",\"c\":1}");
        assert_eq!(all.optional_bool("a").unwrap(), Some(true));
        assert_eq!(all.optional_bool("b").unwrap(), Some(false));
        let error = all.optional_bool("c").unwrap_err().to_string();
        assert_eq!(error, "the argument \"c\" must be true or false, not 1");
        assert_eq!(all.optional_bool("d").unwrap(), None);
    }
}

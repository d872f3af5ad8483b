//! One line of the log, in both directions.
//!
//! A line is an object of ours around a message in chat-completions form. Reading is strict about
//! what the conversation depends on (`v`, `message`, whether it was refused) and does not look at
//! anything else, so that other writers may add what they like.

use std::io::{self, BufRead, Read as _};
use std::time::SystemTime;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use crate::json::{Members, Nested};
use crate::message::Message;
use crate::outcome::Outcome;
use crate::provider::Usage;
use crate::secret::Mask;
use crate::time::rfc3339;

/// What is logged of one message: the message, and what is worth knowing about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// The message.
    pub message: Message,
    /// The finish reason of a completion.
    pub finish_reason: Option<String>,
    /// The tokens of a completion.
    pub usage: Usage,
    /// The model that the endpoint named.
    pub model: Option<String>,
    /// Why the message is no part of the conversation, where it was refused.
    pub refused: Option<Outcome>,
}

impl From<Message> for Record {
    fn from(message: Message) -> Record {
        Record { message, finish_reason: None, usage: Usage::default(), model: None, refused: None }
    }
}

impl Record {
    /// Masks the secrets in its strings, before it becomes JSON.
    pub(super) fn mask(&mut self, mask: &Mask) {
        let Record { message, finish_reason, model, .. } = self;
        message.mask(mask);
        for word in finish_reason.iter_mut() {
            *word = mask.name(word).into_owned();
        }
        for model in model.iter_mut() {
            *model = mask.text(model).into_owned();
        }
    }

    /// The line of this record, without its newline.
    pub(super) fn to_line(&self, time: SystemTime) -> serde_json::Result<String> {
        serde_json::to_string(&Line { record: self, time })
    }
}

/// The version of the form; a reader refuses every other one.
const VERSION: u32 = 1;

/// The longest line, newline included. A response is limited to a quarter of it, and escaping at
/// most doubles that.
const LINE_MAX: usize = 256 << 20;

/// What a line says that the conversation depends on.
#[derive(Debug, PartialEq)]
pub(super) struct Entry {
    pub(super) message: Message,
    /// Whether the message is no part of the conversation.
    pub(super) refused: bool,
    /// Whether it has the time of writing, as all of ours do and those of other writers need not.
    pub(super) has_time: bool,
}

/// Why lines could not be read.
#[derive(Debug)]
pub(super) enum ReadError {
    /// A line is not a record, or its record is not a continuation of the conversation.
    Damaged {
        line: u64,
        offset: u64,
        detail: String,
    },
    Io(io::Error),
}

/// Hands each entry to `take`, in order, and returns how many bytes they take up.
pub(super) fn read_all(
    log: impl BufRead,
    mut take: impl FnMut(Entry) -> Result<(), String>,
) -> Result<u64, ReadError> {
    read_lines(log, |line| take(read_line(line)?))
}

/// Hands each line to `take`, newline included, and returns how many bytes they take up. A line
/// that `take` has something against is damage.
///
/// One line is held at a time, and of one that is too long no more than shows that it is.
pub(super) fn read_lines(
    mut log: impl BufRead,
    mut take: impl FnMut(&[u8]) -> Result<(), String>,
) -> Result<u64, ReadError> {
    let mut bytes = Vec::new();
    let (mut line, mut offset) = (1, 0);
    loop {
        bytes.clear();
        // One byte more than allowed, so that a line that is too long shows.
        (&mut log)
            .take(LINE_MAX as u64 + 1)
            .read_until(b'\n', &mut bytes)
            .map_err(ReadError::Io)?;
        if bytes.is_empty() {
            return Ok(offset);
        }
        take(&bytes).map_err(|detail| ReadError::Damaged { line, offset, detail })?;
        line += 1;
        offset += bytes.len() as u64;
    }
}

/// Whether more of a line was left unread than fits.
pub(super) fn is_too_long(line: &[u8]) -> bool {
    line.len() > LINE_MAX
}

/// Whether a line is the start of a record that may still be being written: the file ends in it.
pub(super) fn is_unfinished(line: &[u8]) -> bool {
    !is_too_long(line) && !line.ends_with(b"\n")
}

/// Reads one line, which ends in a newline.
///
/// The error says what is wrong with it.
pub(super) fn read_line(line: &[u8]) -> Result<Entry, String> {
    read_members(line).map(|(entry, _)| entry)
}

/// Reads one line, and returns what stands beside the message too.
pub(super) fn read_members(line: &[u8]) -> Result<(Entry, Members<'_>), String> {
    if is_too_long(line) {
        return Err(format!("a record of more than {LINE_MAX} bytes"));
    }
    // A line that lost nothing but its newline would parse, and the next record would then be
    // written behind it on the same line.
    let Some(line) = line.strip_suffix(b"\n") else {
        return Err("no newline at the end: the record was not written whole".to_owned());
    };
    let text = std::str::from_utf8(line)
        .map_err(|error| format!("invalid UTF-8 at byte {} of the line", error.valid_up_to()))?;
    if text.trim_ascii().is_empty() {
        return Err("a blank line".to_owned());
    }
    read_text(text)
}

fn read_text(text: &str) -> Result<(Entry, Members<'_>), String> {
    let Nested { outer: mut members, inner: message } =
        Nested::read(text, "message").map_err(|error| invalid(&error))?;
    match members.take("v").map(|version| version.get()) {
        Some("1") => {}
        Some(other) => {
            return Err(format!(
                "unknown version {other}; only {VERSION} can be read. If another release of uncut \
                 wrote it, it is not damaged: use that release"
            ));
        }
        None => return Err("no version: \"v\" is missing".to_owned()),
    }
    let message = message.ok_or("no \"message\"")?;
    let message = Message::from_members(message).map_err(|error| error.to_string())?;
    let refused = members.get("refused").is_some_and(|refused| refused.get() != "false");
    let has_time = members.get("time").is_some();
    Ok((Entry { message, refused, has_time }, members))
}

/// What the parser has to say, without its line number, which counts from the start of the record.
fn invalid(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    let what = text.strip_suffix(&place).unwrap_or(&text);
    let kind = if error.is_data() { "not a record" } else { "invalid JSON" };
    format!("{kind}, at byte {} of the line: {what}", error.column())
}

/// A record as it is written, with the time of writing.
struct Line<'a> {
    record: &'a Record,
    time: SystemTime,
}

impl Serialize for Line<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Record { message, finish_reason, usage, model, refused } = self.record;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("v", &VERSION)?;
        map.serialize_entry("time", &rfc3339(self.time))?;
        map.serialize_entry("message", message)?;
        serialize_some(&mut map, "finish_reason", finish_reason.as_ref())?;
        let tokens = Tokens(*usage);
        serialize_some(&mut map, "usage", (*usage != Usage::default()).then_some(&tokens))?;
        serialize_some(&mut map, "model", model.as_ref())?;
        serialize_some(&mut map, "refused", refused.map(Outcome::word).as_ref())?;
        map.end()
    }
}

/// What is not known is left out: it is not zero.
struct Tokens(Usage);

impl Serialize for Tokens {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Usage { prompt_tokens, cached_tokens, completion_tokens } = &self.0;
        let mut map = serializer.serialize_map(None)?;
        serialize_some(&mut map, "prompt_tokens", prompt_tokens.as_ref())?;
        serialize_some(&mut map, "cached_tokens", cached_tokens.as_ref())?;
        serialize_some(&mut map, "completion_tokens", completion_tokens.as_ref())?;
        map.end()
    }
}

fn serialize_some<M: SerializeMap, T: Serialize>(
    map: &mut M,
    name: &str,
    value: Option<&T>,
) -> Result<(), M::Error> {
    value.map_or(Ok(()), |value| map.serialize_entry(name, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refusal(line: &[u8]) -> String {
        match read_line(line) {
            Ok(entry) => panic!("read as {entry:?}"),
            Err(detail) => detail,
        }
    }

    #[test]
    fn a_line_says_what_is_known_and_leaves_out_the_rest() {
        let time = SystemTime::UNIX_EPOCH;
        let bare = Record::from(Message::user("hi\n"));
        assert_eq!(
            bare.to_line(time).unwrap(),
            "{\"v\":1,\"time\":\"1970-01-01T00:00:00.000Z\",\
             \"message\":{\"role\":\"user\",\"content\":\"hi\\n\"}}"
        );
        let full = Record {
            finish_reason: Some("length".to_owned()),
            usage: Usage {
                prompt_tokens: Some(9),
                cached_tokens: None,
                completion_tokens: Some(0),
            },
            model: Some("m".to_owned()),
            refused: Some(Outcome::Truncated),
            ..bare
        };
        assert_eq!(
            full.to_line(time).unwrap(),
            "{\"v\":1,\"time\":\"1970-01-01T00:00:00.000Z\",\
             \"message\":{\"role\":\"user\",\"content\":\"hi\\n\"},\"finish_reason\":\"length\",\
             \"usage\":{\"prompt_tokens\":9,\"completion_tokens\":0},\"model\":\"m\",\
             \"refused\":\"truncated\"}"
        );
    }

    #[test]
    fn only_the_version_and_the_message_are_needed() {
        let hi = Entry { message: Message::user("hi"), refused: false, has_time: false };
        for line in [
            r#"{"v":1,"message":{"role":"user","content":"hi"}}"#,
            r#" { "message" : {"content":"hi","role":"user"} , "v" : 1 } "#,
            r#"{"v":1,"time":7,"model":{},"usage":[],"message":{"role":"user","content":"hi"}}"#,
            r#"{"v":1,"refused":null,"message":{"role":"user","content":"hi"},"mine":[1e999]}"#,
            "{\"v\":1,\"refused\":false,\"message\":{\"role\":\"user\",\"content\":\"hi\"}}\r",
        ] {
            let read = read_line(format!("{line}\n").as_bytes()).unwrap();
            assert_eq!(Entry { has_time: false, ..read }, hi, "{line}");
        }
    }

    #[test]
    fn whatever_word_a_record_is_refused_with_it_is_refused() {
        for refused in ["\"truncated\"", "\"a word of tomorrow\"", "true", "\"\"", "{}", "0"] {
            let line =
                format!("{{\"v\":1,\"message\":{{\"role\":\"user\"}},\"refused\":{refused}}}\n");
            assert!(read_line(line.as_bytes()).unwrap().refused, "{refused}");
        }
    }

    #[test]
    fn a_line_that_is_no_record_is_refused_with_the_reason() {
        let no_newline = "no newline at the end: the record was not written whole";
        for (line, reason) in [
            (b"\n".as_slice(), "a blank line"),
            (b" \t\r\n", "a blank line"),
            (b"{\"v\":1,\"message\":{\"role\":\"user\",\"content\":\"hi\"}}", no_newline),
            (b"{\"v\":1,\"mess", no_newline),
            (b"{\"v\":1,\"x\":\"\xff\"}\n", "invalid UTF-8 at byte 12 of the line"),
            (
                b"{\"v\":1,\"mess\n",
                "invalid JSON, at byte 12 of the line: EOF while parsing a string",
            ),
            (b"{} {}\n", "invalid JSON, at byte 4 of the line: trailing characters"),
            (b"{\"v\":1,\"v\":1}\n", "not a record, at byte 10 of the line: \"v\" is given twice"),
            (b"{\"message\":{}}\n", "no version: \"v\" is missing"),
            (b"{\"v\":1,\"message\":null}\n", "no \"message\""),
            (b"{\"v\":1}\n", "no \"message\""),
            (b"{\"v\":1,\"message\":{}}\n", "no role"),
            (b"{\"v\":1,\"message\":{\"role\":\"robot\"}}\n", "unknown role \"robot\""),
        ] {
            assert_eq!(refusal(line), reason);
        }
        assert!(refusal(b"{\"v\":2}\n").starts_with("unknown version 2; only 1 can be read. "));
        assert!(refusal(b"{\"v\":\"1\"}\n").starts_with("unknown version \"1\"; "));
        assert!(refusal(b"[1]\n").contains("expected an object"));
        assert!(refusal(b"{\"v\":1,\"message\":\"hi\"}\n").contains("expected an object"));
    }

    #[test]
    fn a_record_glued_to_the_start_of_another_is_refused() {
        let glued = "{\"v\":1,\"message\":{\"role\":\"assistant\",\"content\":\"ab\
                     {\"v\":1,\"message\":{\"role\":\"user\",\"content\":\"hi\"}}\n";
        assert!(refusal(glued.as_bytes()).starts_with("invalid JSON, at byte "));
    }

    #[test]
    fn a_refused_record_must_be_whole_too() {
        assert_eq!(refusal(b"{\"v\":1,\"refused\":true}\n"), "no \"message\"");
    }

    /// The reader is one that never ends, so this ends only if the limit does not wait for a
    /// newline.
    #[test]
    fn a_line_without_end_is_refused_at_the_limit() {
        let endless = io::BufReader::with_capacity(1 << 20, io::repeat(b' '));
        let error = read_all(endless, |_| Ok(())).unwrap_err();
        let ReadError::Damaged { line: 1, offset: 0, detail } = error else {
            panic!("{error:?}");
        };
        assert_eq!(detail, "a record of more than 268435456 bytes");
    }

    #[test]
    fn a_record_comes_back_as_it_was_written() {
        let assistant = r#"{"role":"assistant","content":[{"type":"text","text":"a"}],
            "tool_calls":[{"id":"c1","type":"function","function":{"name":"shell",
            "arguments":"{\"command\":"},"extra_content":{"google":{"thought_signature":"c2ln"}}}],
            "reasoning_details":[{"index":0,"data":1.50}],"reasoning_content":""}"#;
        for message in [
            Message::user("\u{0}\u{7f}\u{2028}\u{1f642}\\\"\r\n"),
            Message::from_json(assistant).unwrap(),
            Message::from_json(r#"{"role":"assistant","content":null}"#).unwrap(),
            Message::from_json(r#"{"role":"assistant","content":""}"#).unwrap(),
            Message::from_json(r#"{"role":"tool","tool_call_id":"c1","content":"x"}"#).unwrap(),
        ] {
            let record = Record { refused: Some(Outcome::Empty), ..Record::from(message.clone()) };
            let line = record.to_line(SystemTime::now()).unwrap() + "\n";
            let entry = Entry { message, refused: true, has_time: true };
            assert_eq!(read_line(line.as_bytes()), Ok(entry));
        }
    }
}

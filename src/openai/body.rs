//! A response while it comes in: what its headers say, and its body, which is one JSON value or a
//! stream of events.

use std::io::{self, Read};
use std::time::{Duration, SystemTime};

use ureq::http::{HeaderMap, HeaderValue, Version, header};

use super::deadline::ReadDeadline;
use crate::provider::{Completion, ProviderError};
use crate::time::parse_http_date;
use crate::wire::{Assembler, is_one_body};

/// A body that is being read.
pub(super) struct BodyReader<R> {
    reader: R,
    read_deadline: ReadDeadline,
    /// What has come, as long as it is not handed on.
    bytes: Vec<u8>,
    received: usize,
}

/// Why a body did not become a completion.
pub(super) enum BodyError {
    /// It did not come whole.
    Connection(io::Error),
    /// It came, and it is none.
    Content(ProviderError),
}

/// How long the usage and the end of a stream may take once the model is done.
const AFTER_REASON: Duration = Duration::from_secs(3);

/// How long the end of the body may take once the last event is there.
const AFTER_DONE: Duration = Duration::from_millis(50);

/// Bytes that are read at a time.
const CHUNK: usize = 64 << 10;

impl<R: Read> BodyReader<R> {
    pub(super) fn new(reader: R, read_deadline: ReadDeadline) -> BodyReader<R> {
        BodyReader { reader, read_deadline, bytes: Vec::new(), received: 0 }
    }

    /// How many bytes have come so far.
    pub(super) fn received(&self) -> usize {
        self.received
    }

    /// Whether it is a stream of events, whatever was asked for: some servers answer a request for
    /// a stream in one body, and some give it no type or a wrong one. Reads no more than it takes
    /// to tell.
    pub(super) fn is_stream(&mut self, headers: &HeaderMap) -> io::Result<bool> {
        let kind =
            headers.get(header::CONTENT_TYPE).map(|kind| kind.as_bytes().to_ascii_lowercase());
        let is_event_stream = kind.is_some_and(|kind| kind.starts_with(b"text/event-stream"));
        loop {
            match is_one_body(&self.bytes) {
                Some(one_body) if is_event_stream => return Ok(!one_body),
                Some(true) => return Ok(false),
                Some(false) if self.bytes.len() >= LONGEST_FIELD => break,
                None if self.bytes.len() >= CHUNK => break,
                _ => {}
            }
            if self.read_some()? == 0 {
                break;
            }
        }
        Ok(is_event_stream || FIELDS.iter().any(|field| self.starts_with(field)))
    }

    fn starts_with(&self, field: &[u8]) -> bool {
        let start = self.bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&self.bytes);
        start.trim_ascii_start().starts_with(field)
    }

    /// Reads to the end, or to just beyond the limit.
    pub(super) fn read_all(&mut self, limit: usize) -> io::Result<()> {
        while self.bytes.len() <= limit && self.read_some()? > 0 {}
        Ok(())
    }

    /// Reads events until they say that the completion is whole. A connection that then stays open
    /// is not waited for; one that stays open once the model has said that it is done, but without
    /// the end of the stream, only for a moment.
    pub(super) fn read_stream(&mut self) -> Result<Completion, BodyError> {
        let mut assembler = Assembler::new();
        loop {
            assembler.push(&self.bytes).map_err(BodyError::Content)?;
            self.bytes.clear();
            match assembler.has_reason() {
                true => self.read_deadline.limit(AFTER_REASON),
                // The reason was taken back: there is more to come.
                false => self.read_deadline.renew(),
            }
            let is_over = assembler.is_done()
                || match self.read_some() {
                    Ok(count) => count == 0,
                    Err(_) if assembler.has_reason() => true,
                    Err(error) => return Err(BodyError::Connection(error)),
                };
            if is_over {
                if assembler.is_done() {
                    self.read_end();
                }
                return assembler.finish().map_err(BodyError::Content);
            }
        }
    }

    /// Reads once more behind the last event, where in most cases nothing but the end of the body
    /// is to come: only then can the connection serve another request.
    fn read_end(&mut self) {
        self.read_deadline.cut_to(AFTER_DONE);
        let _ = self.read_some();
    }

    /// Hands on what has come.
    pub(super) fn take_bytes(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes)
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    fn read_some(&mut self) -> io::Result<usize> {
        self.read_deadline.next_read();
        let start = self.bytes.len();
        self.bytes.resize(start + CHUNK, 0);
        let read = loop {
            match self.reader.read(&mut self.bytes[start..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => break read,
            }
        };
        let length = *read.as_ref().unwrap_or(&0);
        self.bytes.truncate(start + length);
        self.received += length;
        read
    }
}

/// What the first line of a stream can start with (WHATWG HTML, section 9.2.6).
const FIELDS: [&[u8]; 5] = [b"data", b"event", b":", b"id", b"retry"];
const LONGEST_FIELD: usize = 5;

/// How long the endpoint asks to wait: `retry-after-ms` as OpenAI and Azure have it, or
/// `retry-after` in seconds, whole or not, or as a date (RFC 9110 section 10.2.3).
pub(super) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    let number = |text: &str, unit: f64| {
        let seconds: f64 = text.parse::<f64>().ok()? * unit;
        Duration::try_from_secs_f64(seconds).ok()
    };
    if let Some(wait) = text("retry-after-ms").and_then(|text| number(text, 0.001)) {
        return Some(wait);
    }
    let text = text("retry-after")?;
    number(text, 1.0).or_else(|| {
        let date = parse_http_date(text)?;
        // A date that has passed asks for no pause.
        Some(date.duration_since(SystemTime::now()).unwrap_or_default())
    })
}

/// A header for people.
pub(super) fn shown(value: &HeaderValue) -> String {
    value.as_bytes().escape_ascii().to_string()
}

/// The encoding of the body, where it is one that can't be read.
pub(super) fn encoding(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(header::CONTENT_ENCODING)?;
    // gzip is taken off by the library, and some proxies put it on whatever was asked for.
    let readable: [&[u8]; 3] = [b"", b"identity", b"gzip"];
    let is_readable = readable.iter().any(|known| value.as_bytes().eq_ignore_ascii_case(known));
    (!is_readable).then(|| value.as_bytes().escape_ascii().to_string())
}

/// Whether the body comes in chunks. Where it does not, only the end of the connection may end it.
pub(super) fn is_chunked(version: Version, headers: &HeaderMap) -> bool {
    let values = headers.get_all(header::TRANSFER_ENCODING).iter();
    let mut codings = values.flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
    let is_chunked = |coding: &[u8]| coding.trim_ascii().eq_ignore_ascii_case(b"chunked");
    version != Version::HTTP_10 && codings.any(is_chunked)
}

/// Whether a body that only the end of the connection delimits was cut off by it.
pub(super) fn is_cut(headers: &HeaderMap, body: &[u8]) -> bool {
    let delimited = headers.contains_key(header::CONTENT_LENGTH)
        || headers.contains_key(header::TRANSFER_ENCODING);
    let is_eof = |error: serde_json::Error| error.is_eof();
    !delimited && serde_json::from_slice::<serde::de::IgnoredAny>(body).is_err_and(is_eof)
}

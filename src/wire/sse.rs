//! Server-sent events, as the HTML standard has them.
//!
//! Bytes come in as the network cut them, and events go out; nothing is kept but the event that is
//! not yet whole. Two things differ from the standard. Text that is not UTF-8 is an error, where a
//! browser would replace it. And the event that the end of the stream leaves without its blank
//! line is handed out, because many servers never send that line: whether it is whole can only be
//! told from what stands in it.

/// The most bytes that one event may have.
const EVENT_MAX: usize = 64 << 20;

/// One event that has data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Event<'a> {
    /// What `event:` says; empty where nothing does.
    pub name: &'a str,
    /// The data lines, joined by line feeds.
    pub data: &'a str,
}

/// Takes a stream apart into its events.
#[derive(Debug)]
pub(super) struct EventReader {
    /// The line that is not yet whole.
    line: Vec<u8>,
    name: String,
    /// What came as data so far; none where no data line did.
    data: Option<String>,
    /// Whether `name` and `data` belong to an event that was handed out.
    dispatched: bool,
    after_cr: bool,
    /// Where in the stream the next byte stands.
    offset: u64,
    is_first_line: bool,
    event_max: usize,
}

impl EventReader {
    pub(super) fn new() -> EventReader {
        EventReader::with_event_max(EVENT_MAX)
    }

    fn with_event_max(event_max: usize) -> EventReader {
        EventReader {
            line: Vec::new(),
            name: String::new(),
            data: None,
            dispatched: false,
            after_cr: false,
            offset: 0,
            is_first_line: true,
            event_max,
        }
    }

    /// The next event; none when `bytes` has been used up. What was used is cut off from its start.
    ///
    /// # Errors
    ///
    /// The event is too large or not UTF-8. The stream can't be read on.
    pub(super) fn next(&mut self, bytes: &mut &[u8]) -> Result<Option<Event<'_>>, String> {
        if std::mem::take(&mut self.dispatched) {
            self.name.clear();
            self.data = None;
        }
        loop {
            // The carriage return has ended the line already, so that nothing waits for the next
            // byte, which may be long in coming.
            if self.after_cr && !bytes.is_empty() {
                self.after_cr = false;
                self.skip(bytes, usize::from(bytes[0] == b'\n'));
            }
            let end = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
            self.keep(&bytes[..end.unwrap_or(bytes.len())])?;
            let Some(end) = end else {
                self.skip(bytes, bytes.len());
                return Ok(None);
            };
            self.after_cr = bytes[end] == b'\r';
            self.skip(bytes, end);
            let is_blank = self.line.is_empty();
            self.end_line()?;
            self.skip(bytes, 1);
            if is_blank && self.dispatch() {
                return Ok(self.event());
            }
        }
    }

    /// The event that the end of the stream leaves without its blank line, perhaps cut off.
    ///
    /// # Errors
    ///
    /// Its last line is not UTF-8, and not because the end cut a character.
    pub(super) fn finish(&mut self) -> Result<Option<Event<'_>>, String> {
        let is_cut = std::str::from_utf8(&self.line).is_err_and(|e| e.error_len().is_none());
        if is_cut || std::mem::take(&mut self.dispatched) {
            return Ok(None);
        }
        self.end_line()?;
        Ok(self.event())
    }

    fn skip(&mut self, bytes: &mut &[u8], count: usize) {
        *bytes = &bytes[count..];
        self.offset += count as u64;
    }

    fn keep(&mut self, part: &[u8]) -> Result<(), String> {
        let kept = self.line.len() + self.name.len() + self.data.as_ref().map_or(0, String::len);
        if part.len() > self.event_max.saturating_sub(kept) {
            return Err(format!("an event is larger than {} MB", self.event_max >> 20));
        }
        self.line.extend_from_slice(part);
        Ok(())
    }

    /// Takes the field that stands in the line, which starts at `offset` less its length.
    fn end_line(&mut self) -> Result<(), String> {
        let mut line = self.line.as_slice();
        if std::mem::take(&mut self.is_first_line) {
            line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        }
        let text = std::str::from_utf8(line).map_err(|error| {
            let rest = (line.len() - error.valid_up_to()) as u64;
            format!("the stream is not UTF-8 at byte {}", self.offset - rest)
        })?;
        // A comment has an empty name; like `id` and `retry`, it is nothing that we need.
        let (field, value) = text.split_once(':').unwrap_or((text, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => match &mut self.data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
                None => self.data = Some(value.to_owned()),
            },
            "event" => value.clone_into(&mut self.name),
            // Older llama.cpp servers have a field of this name for what fails in the middle.
            "error" => {
                "error".clone_into(&mut self.name);
                self.data = Some(value.to_owned());
            }
            _ => {}
        }
        self.line.clear();
        Ok(())
    }

    /// Ends the event, and says whether it is one: without data it is dropped.
    fn dispatch(&mut self) -> bool {
        self.dispatched = self.data.is_some();
        if !self.dispatched {
            self.name.clear();
        }
        self.dispatched
    }

    fn event(&self) -> Option<Event<'_>> {
        self.data.as_ref().map(|data| Event { name: &self.name, data })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The events of a stream that comes in pieces of this size, and the one that its end leaves.
    #[track_caller]
    fn events(stream: &[u8], piece: usize) -> Result<Vec<(String, String)>, String> {
        let mut reader = EventReader::with_event_max(1_000);
        let mut found = Vec::new();
        let owned = |event: Event<'_>| (event.name.to_owned(), event.data.to_owned());
        for mut bytes in stream.chunks(piece) {
            while let Some(event) = reader.next(&mut bytes)? {
                found.push(owned(event));
            }
            assert!(bytes.is_empty());
        }
        found.extend(reader.finish()?.map(owned));
        Ok(found)
    }

    /// However the stream is cut, these are its events.
    #[track_caller]
    fn check(stream: impl AsRef<[u8]>, expected: &[(&str, &str)]) {
        let stream = stream.as_ref();
        for piece in 1..=stream.len().max(1) {
            let found = events(stream, piece).unwrap();
            let found: Vec<_> = found.iter().map(|(n, d)| (n.as_str(), d.as_str())).collect();
            let stream = stream.escape_ascii();
            assert_eq!(found, expected, "\"{stream}\" in pieces of {piece}");
        }
    }

    #[track_caller]
    fn check_error(stream: &[u8], expected: &str) {
        for piece in 1..=stream.len() {
            assert_eq!(events(stream, piece).unwrap_err(), expected, "in pieces of {piece}");
        }
    }

    #[test]
    fn every_line_end_ends_a_line() {
        for end in ["\n", "\r", "\r\n"] {
            check(
                "data: one\n\nevent: odd\ndata: two\n\n".replace('\n', end),
                &[("", "one"), ("odd", "two")],
            );
        }
        check("data: a\r\ndata: b\n\rdata: c\r\n\r\n", &[("", "a\nb"), ("", "c")]);
    }

    #[test]
    fn an_event_comes_out_as_soon_as_its_blank_line_ends() {
        for stream in ["data: x\n\n", "data: x\r\r", "data: x\r\n\r"] {
            let mut reader = EventReader::new();
            let mut bytes = stream.as_bytes();
            let event = reader.next(&mut bytes).unwrap();
            assert_eq!(event, Some(Event { name: "", data: "x" }), "{stream:?}");
        }
    }

    #[test]
    fn data_lines_are_joined_by_line_feeds() {
        check("data: {\ndata:  \"a\": 1\ndata\ndata:}\n\n", &[("", "{\n \"a\": 1\n\n}")]);
    }

    #[test]
    fn one_space_after_the_colon_is_not_data() {
        check("data:x\n\ndata: x\n\ndata:  x\n\n", &[("", "x"), ("", "x"), ("", " x")]);
        check("data:x:y\n\n", &[("", "x:y")]);
    }

    #[test]
    fn comments_and_fields_that_are_not_ours_change_nothing() {
        check(
            ": ping\n\n:\nid: 7\nretry: 10\ndata: x\n: in between\nData: y\n data: z\ndata2: z\n\n",
            &[("", "x")],
        );
    }

    #[test]
    fn an_event_without_data_is_dropped_and_so_is_its_name() {
        check("event: ping\n\ndata: x\n\n\n\nevent: end\n\n", &[("", "x")]);
        check("event: a\nevent: b\ndata:\n\ndata: x\n\n", &[("b", ""), ("", "x")]);
    }

    #[test]
    fn a_byte_order_mark_counts_at_the_start_only() {
        check("\u{feff}data: x\n\n\u{feff}data: y\n\n", &[("", "x")]);
        check("\u{feff}\n\ndata: x\n\n", &[("", "x")]);
    }

    #[test]
    fn the_end_of_the_stream_hands_out_what_has_no_blank_line() {
        check("data: x\n\ndata: y\n", &[("", "x"), ("", "y")]);
        check("data: x\n\nevent: e\ndata: y", &[("", "x"), ("e", "y")]);
        check("data: x\n\nevent: e", &[("", "x")]);
        check(b"data: x\n\ndata: \xf0\x9f\x99", &[("", "x")]);
        check("", &[]);
    }

    #[test]
    fn characters_may_be_cut_anywhere() {
        let text = "data: \u{65e5}\u{672c}\u{8a9e} \u{1f642} caf\u{e9}\n\n";
        check(text, &[("", "\u{65e5}\u{672c}\u{8a9e} \u{1f642} caf\u{e9}")]);
    }

    #[test]
    fn what_is_not_utf_8_is_an_error_with_its_place() {
        check_error(b"data: x\n\ndata: caf\xe9\n\n", "the stream is not UTF-8 at byte 18");
        check_error(b"\xef\xbb\xbfdata: \xff\n\n", "the stream is not UTF-8 at byte 9");
        check_error(b"data: caf\xe9 au lait", "the stream is not UTF-8 at byte 9");
    }

    #[test]
    fn an_event_that_never_ends_is_an_error() {
        let line = "x".repeat(600);
        let expected = "an event is larger than 0 MB";
        check_error(format!("data: {line}\ndata: {line}\n").as_bytes(), expected);
        check_error(line.repeat(2).as_bytes(), expected);
        let twice = format!("data: {line}\n\n").repeat(2);
        assert_eq!(events(twice.as_bytes(), 7).unwrap().len(), 2);
    }

    #[test]
    fn empty_data_lines_count_towards_the_limit() {
        check_error("data\n".repeat(1_010).as_bytes(), "an event is larger than 0 MB");
    }
}

//! Streams that servers really sent, streams cut at random, and streams and bodies that are
//! garbage.

use std::fmt::Write as _;

use serde_json::{Value, json};
use uncut::provider::{Completion, FinishReason, ProviderError, StatusError, Usage};
use uncut::wire::{Assembler, completion};

/// Reads a stream that comes in pieces, each as long as `next_length` says.
fn read(
    stream: &[u8],
    mut next_length: impl FnMut() -> usize,
) -> Result<Completion, ProviderError> {
    let mut assembler = Assembler::new();
    let mut rest = stream;
    while !rest.is_empty() && !assembler.is_done() {
        let (piece, after) = rest.split_at(next_length().clamp(1, rest.len()));
        assembler.push(piece)?;
        rest = after;
    }
    assembler.finish()
}

// Recorded ones.

/// The body of a recorded response, without the framing of its chunks.
#[track_caller]
fn body(recorded: &[u8]) -> Vec<u8> {
    let find = |text: &[u8], what: &[u8]| text.windows(what.len()).position(|part| part == what);
    let mut rest = &recorded[find(recorded, b"\r\n\r\n").unwrap() + 4..];
    let mut body = Vec::new();
    // A connection that broke off has no last chunk.
    while let Some(end) = find(rest, b"\r\n") {
        let length = std::str::from_utf8(&rest[..end]).unwrap();
        let length = usize::from_str_radix(length, 16).unwrap();
        body.extend_from_slice(&rest[end + 2..][..length]);
        rest = &rest[end + 2 + length + 2..];
    }
    body
}

/// However a recorded stream is cut, it is read as the same.
#[track_caller]
fn recorded(response: &[u8]) -> Result<Completion, ProviderError> {
    let body = body(response);
    let whole = read(&body, || body.len());
    for piece in [1, 7, 100] {
        let cut = read(&body, || piece);
        assert_eq!(format!("{cut:?}"), format!("{whole:?}"), "in pieces of {piece}");
    }
    whole
}

fn tokens(prompt: u64, cached: Option<u64>, completion: u64) -> Usage {
    Usage {
        prompt_tokens: Some(prompt),
        cached_tokens: cached,
        completion_tokens: Some(completion),
    }
}

#[test]
fn recorded_streams_are_read() {
    let write_file = r#"{"path": "hello.txt", "content": "Hello, world"}"#;
    let completion = recorded(include_bytes!("exchanges/llamacpp-stream-tool-call.http")).unwrap();
    assert_eq!(completion.finish_reason, FinishReason::ToolCalls);
    let [call] = completion.message.tool_calls.as_slice() else { panic!("{completion:?}") };
    assert_eq!((call.name.as_str(), call.arguments.as_str()), ("write_file", write_file));
    assert_eq!(completion.usage, tokens(320, Some(319), 26));
    assert_eq!(completion.model.as_deref(), Some("qwen2.5-coder-1.5b"));

    let completion = recorded(include_bytes!("exchanges/litellm-stream-tool-call.http")).unwrap();
    assert_eq!(completion.finish_reason, FinishReason::ToolCalls);
    let [call] = completion.message.tool_calls.as_slice() else { panic!("{completion:?}") };
    assert_eq!(call.id, "XfN1PQR0341cuWOb91J8QdnelLpWHzEm");
    assert_eq!((call.name.as_str(), call.arguments.as_str()), ("write_file", write_file));
    assert_eq!(completion.usage, tokens(347, Some(346), 30));

    let response = include_bytes!("exchanges/llamacpp-stream-cut-arguments.http");
    let completion = recorded(response).unwrap();
    assert_eq!(completion.finish_reason, FinishReason::Truncated("length".to_owned()));
    assert_eq!(completion.message.tool_calls[0].arguments, r#"{"path"#);

    let completion = recorded(include_bytes!("exchanges/llamacpp-stream-usage-last.http")).unwrap();
    assert_eq!(completion.message.as_text(), "Hello!");
    assert_eq!(completion.usage, tokens(35, Some(25), 3));

    let completion = recorded(include_bytes!("exchanges/litellm-stream-answer.http")).unwrap();
    assert_eq!(completion.message.as_text(), "Hello from the mock.");
    assert_eq!(completion.usage, tokens(8, None, 5));
}

#[test]
fn a_recorded_error_in_the_middle_is_the_status_that_it_names() {
    let error = recorded(include_bytes!("exchanges/llamacpp-stream-error-500.http")).unwrap_err();
    let ProviderError::Status(StatusError { status, message, .. }) = error else {
        panic!("{error:?}")
    };
    let expected = "The model produced output that does not match the expected peg-native format";
    assert_eq!((status, message.as_deref()), (500, Some(expected)));
}

#[test]
fn a_recorded_stream_that_broke_off_is_no_answer() {
    let error = recorded(include_bytes!("exchanges/llamacpp-stream-broken-off.http")).unwrap_err();
    assert!(matches!(error, ProviderError::Transport { .. }), "{error:?}");
}

// Random ones.

/// Random numbers that are the same in every run (xorshift64*).
struct Random(u64);

impl Random {
    /// Numbers of their own for each seed, also for seeds that are close together.
    fn new(seed: u64) -> Random {
        Random((seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end as u64).unwrap()
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    fn text(&mut self) -> String {
        let pool = ["a", "b ", " ", "\n", "\r", "\"", "\\", "{", "]", ":", "\u{1}", "data: "];
        let wide = ["\u{e9}", "\u{65e5}", "\u{1f642}", "\u{2028}", "\u{feff}"];
        (0..self.below(20))
            .map(|_| if self.chance(70) { self.pick(&pool) } else { self.pick(&wide) })
            .copied()
            .collect()
    }

    /// Cuts text into at least one fragment.
    fn cut(&mut self, text: &str) -> Vec<String> {
        let mut fragments = vec![String::new()];
        for character in text.chars() {
            if self.chance(30) {
                fragments.push(String::new());
            }
            fragments.last_mut().unwrap().push(character);
        }
        fragments
    }
}

/// A message, and the deltas that it comes in.
#[derive(Default)]
struct Case {
    /// The members of the message.
    message: Vec<(String, Value)>,
    /// Members of deltas, in lines that run side by side: one may overtake the other, but not
    /// start before it.
    lines: Vec<Vec<(&'static str, Value)>>,
}

impl Case {
    fn new(random: &mut Random) -> Case {
        let mut case = Case::default();
        case.add_content(random);
        for name in ["reasoning_content", "refusal"] {
            if random.chance(30) {
                let text = random.text();
                let fragments = random.cut(&text);
                case.add(name, Value::from(text), fragments.into_iter().map(Value::from).collect());
            }
        }
        if random.chance(30) {
            case.add_reasoning(random);
        }
        if random.chance(20) {
            let value = json!({ "b": [1, 2.5], "a": null });
            case.add("odd", value.clone(), vec![Value::Null, json!(1), value, Value::Null]);
        }
        if random.chance(60) {
            case.add_calls(random);
        }
        case
    }

    fn add(&mut self, name: &'static str, whole: Value, fragments: Vec<Value>) {
        self.message.push((name.to_owned(), whole));
        self.lines.push(fragments.into_iter().map(|fragment| (name, fragment)).collect());
    }

    fn add_content(&mut self, random: &mut Random) {
        let text = random.text();
        let fragments = random.cut(&text);
        match random.below(4) {
            0 => self.add("content", Value::Null, vec![Value::Null]),
            1 => {
                let part = |text: &str| json!({ "type": "text", "text": text });
                let thinking = |text: &str| json!({ "type": "thinking", "thinking": [part(text)] });
                let thoughts = random.text();
                let mut pieces: Vec<Value> =
                    random.cut(&thoughts).iter().map(|text| json!([thinking(text)])).collect();
                pieces.push(json!([{ "type": "image", "n": 1 }]));
                pieces.extend(fragments.iter().map(|text| json!([part(text)])));
                let whole = json!([thinking(&thoughts), { "type": "image", "n": 1 }, part(&text)]);
                self.add("content", whole, pieces);
            }
            _ => {
                let fragments = fragments.into_iter().map(Value::from).collect();
                self.add("content", Value::from(text), fragments);
            }
        }
    }

    fn add_reasoning(&mut self, random: &mut Random) {
        let (mut whole, mut fragments) = (Vec::new(), Vec::new());
        for index in 0..=random.below(3) {
            if random.chance(30) {
                let piece = json!({ "type": "reasoning.encrypted", "data": "x", "index": index });
                whole.push(piece.clone());
                fragments.push(json!([piece]));
                continue;
            }
            let piece =
                |text: &str| json!({ "type": "reasoning.text", "text": text, "index": index });
            let text = random.text();
            whole.push(piece(&text));
            fragments.extend(random.cut(&text).iter().map(|text| json!([piece(text)])));
        }
        self.add("reasoning_details", Value::from(whole), fragments);
    }

    fn add_calls(&mut self, random: &mut Random) {
        // Whether there is an index, whether it is always 0, and whether ids come once only.
        let (has_index, is_zero, ids_once) = *random.pick(&[
            (true, false, true),
            (true, false, false),
            (true, true, false),
            (true, true, true),
            (false, false, false),
            (false, false, true),
        ]);
        let repeats_name = random.chance(30);
        let (mut whole, mut lines) = (Vec::new(), Vec::new());
        for number in 0..=random.below(3) {
            let (id, text) = (format!("call_{number}"), random.text());
            let extra = random.chance(30).then(|| random.text());
            let name = *random.pick(&["shell", "read_file"]);
            let mut call = json!({ "id": id, "type": "function" });
            call["function"] = json!({ "name": name, "arguments": text });
            if let Some(extra) = &extra {
                call["extra_content"] = json!({ "signature": extra });
            }
            whole.push(call);
            let mut line = Vec::new();
            for (position, text) in random.cut(&text).into_iter().enumerate() {
                let is_first = position == 0;
                let mut fragment = json!({ "function": { "arguments": text } });
                if has_index {
                    fragment["index"] = json!(if is_zero { 0 } else { number });
                }
                if is_first || !ids_once {
                    fragment["id"] = json!(id);
                }
                if is_first || repeats_name {
                    fragment["function"]["name"] = json!(name);
                }
                if let (true, Some(extra)) = (is_first, &extra) {
                    fragment["extra_content"] = json!({ "signature": extra });
                }
                line.push(("tool_calls", json!([fragment])));
            }
            lines.push(line);
        }
        self.message.push(("tool_calls".to_owned(), Value::from(whole)));
        // Where nothing tells the calls apart, one ends before the next one starts.
        let is_serial = ids_once && (is_zero || !has_index);
        self.lines.extend(if is_serial { vec![lines.concat()] } else { lines });
    }

    /// The deltas, each as its text.
    fn deltas(&self, random: &mut Random) -> Vec<String> {
        let mut next = vec![0; self.lines.len()];
        let mut deltas: Vec<Vec<(&str, &Value)>> = vec![Vec::new()];
        loop {
            let started = next.iter().take_while(|next| **next > 0).count();
            let open: Vec<usize> = (0..self.lines.len().min(started + 1))
                .filter(|line| next[*line] < self.lines[*line].len())
                .collect();
            if open.is_empty() {
                break;
            }
            let line = *random.pick(&open);
            let (name, value) = &self.lines[line][next[line]];
            next[line] += 1;
            let last = deltas.last_mut().unwrap();
            if random.chance(30) && !last.iter().any(|(other, _)| other == name) {
                last.push((name, value));
            } else {
                deltas.push(vec![(name, value)]);
            }
        }
        deltas
            .iter()
            .map(|members| object(members.iter().map(|(name, value)| (*name, *value))))
            .collect()
    }
}

fn object<'a>(members: impl Iterator<Item = (&'a str, &'a Value)>) -> String {
    let members: Vec<String> =
        members.map(|(name, value)| format!("{}:{value}", Value::from(name))).collect();
    format!("{{{}}}", members.join(","))
}

/// The events of the deltas, with the noise that servers make between them.
fn stream(random: &mut Random, deltas: &[String], last: &str) -> String {
    let end = *random.pick(&["\n", "\r\n", "\r"]);
    let space = *random.pick(&["", " "]);
    let noise = [
        ": ping",
        "event: ping",
        "id: 1",
        "retry: 10",
        "data: {\"choices\":[],\"prompt_filter_results\":[]}",
        "data: {\"choices\":null}",
        "data: {\"choices\":[{\"index\":1,\"delta\":{\"content\":\"no\"}}]}",
        "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"tool_calls\":null}}]}",
        "data:",
    ];
    let mut stream = String::new();
    if random.chance(20) {
        stream.push('\u{feff}');
    }
    for delta in deltas {
        while random.chance(20) {
            write!(stream, "{}{end}{end}", random.pick(&noise)).unwrap();
        }
        let reason = random.pick(&["", ",\"finish_reason\":null", ",\"finish_reason\":\"\""]);
        let chunk = format!("{{\"model\":\"m\",\"choices\":[{{\"delta\":{delta}{reason}}}]}}");
        // Between the tokens of the chunk a line may end.
        let chunk = chunk.replacen(':', &format!(":{end}data:{space}"), random.below(2));
        write!(stream, "data:{space}{chunk}{end}{end}").unwrap();
    }
    for chunk in last.lines() {
        write!(stream, "data:{space}{chunk}{end}{end}").unwrap();
    }
    stream
}

/// 2,000 messages, each in one body and in one stream that is cut at random.
#[test]
fn a_stream_comes_to_what_one_body_comes_to_however_it_is_cut() {
    let usage = r#""usage":{"prompt_tokens":9,"completion_tokens":7}"#;
    for seed in 1..=2_000 {
        let mut random = Random::new(seed);
        let case = Case::new(&mut random);
        let message = object(case.message.iter().map(|(name, value)| (name.as_str(), value)));
        let word = *random.pick(&["stop", "tool_calls", "length", "odd"]);
        let reason = format!("\"finish_reason\":\"{word}\"");
        let whole =
            format!("{{\"model\":\"m\",\"choices\":[{{\"message\":{message},{reason}}}],{usage}}}");
        let last = match random.below(3) {
            0 => {
                format!("{{\"choices\":[{{\"delta\":{{}},{reason}}}]}}\n{{\"choices\":[],{usage}}}")
            }
            1 => format!("{{\"choices\":[{{\"delta\":{{}},{reason}}}],{usage}}}"),
            _ => format!("{{\"choices\":[],{usage}}}\n{{\"choices\":[{{{reason}}}]}}\n[DONE]"),
        };
        let deltas = case.deltas(&mut random);
        let stream = stream(&mut random, &deltas, &last);
        let whole = completion(whole.into()).expect("a body");
        let longest = 1 + random.below(40);
        let streamed = read(stream.as_bytes(), || 1 + random.below(longest));
        let streamed = streamed.unwrap_or_else(|error| panic!("seed {seed}: {error}\n{stream}"));
        assert_eq!(streamed, whole, "seed {seed}\n{stream}");
    }
}

/// What garbage is made of.
const ALPHABET: &[u8] =
    b"data: {}[]\",:\n\r\\event: error\xef\xbb\xbf\x80\xf0choices0message1delta2contentnull";

/// Changes, cuts out and doubles up to five pieces of the input.
fn damage(input: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..random.below(6) {
        if input.is_empty() {
            break;
        }
        let start = random.below(input.len());
        let end = start + random.below((input.len() - start).min(30));
        match random.below(3) {
            0 => input[start] = *random.pick(ALPHABET),
            1 => drop(input.drain(start..end)),
            _ => {
                let part = input[start..end].to_vec();
                input.splice(end..end, part);
            }
        }
    }
}

fn garbage(random: &mut Random) -> Vec<u8> {
    (0..random.below(400)).map(|_| *random.pick(ALPHABET)).collect()
}

/// 3,000 inputs: a third of them random bytes, the others real streams with bytes changed, cut out
/// and doubled. In none of them did a finish reason come.
#[test]
fn no_garbage_is_ever_a_completion() {
    for seed in 1..=3_000 {
        let mut random = Random::new(seed);
        let mut input = if seed % 3 == 0 {
            garbage(&mut random)
        } else {
            let deltas = Case::new(&mut random).deltas(&mut random);
            stream(&mut random, &deltas, "{\"choices\":[]}\n[DONE]").into_bytes()
        };
        damage(&mut input, &mut random);
        let longest = 1 + random.below(60);
        let result = read(&input, || 1 + random.below(longest));
        let input = input.escape_ascii();
        assert!(result.is_err(), "seed {seed}: {result:?} from \"{input}\"");
    }
}

/// Every string that stands in JSON text, whole or not, without its escapes.
fn strings(text: &str) -> Vec<String> {
    let from = |(start, _)| {
        let mut values = serde_json::Deserializer::from_str(&text[start..]).into_iter();
        values.next()?.ok()
    };
    text.match_indices('"').filter_map(from).collect()
}

/// Whether the text is nothing but some of the strings, one behind the other.
fn is_made_of(text: &str, strings: &[String]) -> bool {
    let goes_on = |string: &String| {
        let rest = text.strip_prefix(string.as_str()).filter(|_| !string.is_empty());
        rest.is_some_and(|rest| is_made_of(rest, strings))
    };
    text.is_empty() || strings.iter().any(goes_on)
}

/// 10,000 bodies: a fifth of them random bytes, the others completions with bytes changed, cut out
/// and doubled. Those that are read have no text, name or argument that did not come.
#[test]
fn no_garbage_in_a_body_becomes_a_text() {
    let mut read = 0;
    for seed in 1..=10_000 {
        let mut random = Random::new(seed);
        let mut body = if seed % 5 == 0 {
            garbage(&mut random)
        } else {
            let case = Case::new(&mut random);
            let message = object(case.message.iter().map(|(name, value)| (name.as_str(), value)));
            let choice = format!("{{\"finish_reason\":\"stop\",\"message\":{message}}}");
            format!("{{\"model\":\"m\",\"choices\":[{choice}]}}").into_bytes()
        };
        damage(&mut body, &mut random);
        let Ok(completion) = completion(body.clone()) else { continue };
        read += 1;
        let body = std::str::from_utf8(&body).expect("it was read");
        let strings = strings(body);
        let text = completion.message.as_text();
        assert!(is_made_of(text, &strings), "seed {seed}: {text:?} from {body}");
        for call in &completion.message.tool_calls {
            for part in [&call.id, &call.name, &call.arguments] {
                let came = part.is_empty() || strings.contains(part) || body.contains(part);
                assert!(came, "seed {seed}: {part:?} from {body}");
            }
        }
    }
    assert!((1_000..9_000).contains(&read), "{read} bodies were read");
}

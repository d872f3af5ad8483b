//! Streams cut at random, and streams and bodies that are garbage.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::{Assembler, completion};
use crate::fuzz::{Random, inputs};
use crate::provider::{Completion, ProviderError};

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
        for name in ["function_call", "audio", "nothing"] {
            if random.chance(20) {
                case.add(name, Value::Null, vec![Value::Null, Value::Null]);
            }
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
        match random.below(5) {
            0 => self.add("content", Value::Null, vec![Value::Null]),
            2 => {}
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
            let id = format!("call_{number}");
            let mut text = random.text();
            if random.chance(30) {
                text = json!({ "a": text }).to_string();
            }
            let extra = random.chance(30).then(|| random.text());
            let name = *random.pick(&["shell", "read_file"]);
            let mut call = json!({ "id": id, "type": "function" });
            call["function"] = json!({ "name": name, "arguments": text });
            if let Some(extra) = &extra {
                call["extra_content"] = json!({ "signature": extra });
            }
            whole.push(call);
            let mut line = Vec::new();
            let mut fragments = random.cut(&text);
            // Gateways send it in the place of arguments that are still to come.
            if text.starts_with('{') && random.chance(50) {
                fragments.insert(0, "{}".to_owned());
            }
            for (position, text) in fragments.into_iter().enumerate() {
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
fn fuzz_a_stream_comes_to_what_one_body_comes_to_however_it_is_cut() {
    let usage = r#""usage":{"prompt_tokens":9,"completion_tokens":7}"#;
    for (seed, mut random) in inputs("stream", 2_000) {
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

fn garbage(random: &mut Random) -> Vec<u8> {
    (0..random.below(400)).map(|_| *random.pick(ALPHABET)).collect()
}

/// 3,000 inputs: a third of them random bytes, the others real streams with bytes changed, cut out
/// and doubled. In none of them did a finish reason come.
#[test]
fn fuzz_no_garbage_is_ever_a_completion() {
    for (seed, mut random) in inputs("garbage as a stream", 3_000) {
        let mut input = if seed % 3 == 0 {
            garbage(&mut random)
        } else {
            let deltas = Case::new(&mut random).deltas(&mut random);
            stream(&mut random, &deltas, "{\"choices\":[]}\n[DONE]").into_bytes()
        };
        random.damage(&mut input, ALPHABET);
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
fn fuzz_no_garbage_in_a_body_becomes_a_text() {
    let mut read = 0;
    let inputs = inputs("body", 10_000);
    let total = inputs.total();
    for (seed, mut random) in inputs {
        let mut body = if seed % 5 == 0 {
            garbage(&mut random)
        } else {
            let case = Case::new(&mut random);
            let message = object(case.message.iter().map(|(name, value)| (name.as_str(), value)));
            let choice = format!("{{\"finish_reason\":\"stop\",\"message\":{message}}}");
            format!("{{\"model\":\"m\",\"choices\":[{choice}]}}").into_bytes()
        };
        random.damage(&mut body, ALPHABET);
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
    assert!(
        total < 1_000 || (total / 10..total / 10 * 9).contains(&read),
        "{read} bodies were read"
    );
}

//! An endpoint that asks for a tool call a number of times and then answers.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::time::{Duration, Instant};

pub(crate) struct Endpoint {
    listener: TcpListener,
    url: String,
    steps: u32,
    /// The call that is asked for: a tool, and its arguments for each step.
    call: Call,
    wire: Wire,
}

/// In which form a completion is sent.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wire {
    /// One JSON body, on a connection that stays open.
    Json,
    /// The same, for a program that has no answer but a command that it waits for.
    JsonWithCommand(&'static str),
    /// Server-sent events of chat completions.
    Events,
    /// Server-sent events of the responses interface.
    Responses,
}

/// A tool, and what its arguments are in a step.
pub(crate) type Call = (&'static str, fn(u32) -> String);

/// The arguments differ, because the same call again and again is a loop.
pub(crate) const TRUE: Call = ("shell", |step| format!("{{\"command\":\"true {step}\"}}"));

/// What the endpoint saw of a run.
pub(crate) struct Seen {
    /// When the first byte of the first request came in.
    pub(crate) first_byte: Instant,
    /// Bytes of all requests.
    pub(crate) bytes: u64,
    /// What the client had used when it asked for the answer.
    pub(crate) used: Used,
}

impl Endpoint {
    pub(crate) fn start(steps: u32, call: Call) -> Endpoint {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        Endpoint { listener, url, steps, call, wire: Wire::Json }
    }

    pub(crate) fn speaking(self, wire: Wire) -> Endpoint {
        Endpoint { wire, ..self }
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Serves one run of the process with this id.
    pub(crate) fn serve(&self, id: u32) -> Seen {
        let mut seen = Seen { first_byte: Instant::now(), bytes: 0, used: Used::default() };
        let mut served = 0;
        while served <= self.steps {
            let (stream, _) = self.listener.accept().unwrap();
            let mut stream = BufReader::new(stream);
            while served <= self.steps && !stream.fill_buf().unwrap().is_empty() {
                if served == 0 {
                    seen.first_byte = Instant::now();
                }
                seen.bytes += request(&mut stream);
                if served == self.steps {
                    seen.used = used(id);
                }
                let (kind, body) = self.response(served);
                // Others may open a second connection while the first is idle.
                let close = if self.wire == Wire::Json { "" } else { "connection: close\r\n" };
                let head = format!(
                    "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\n{close}content-length: {}\r\n\r\n",
                    body.len()
                );
                stream.get_mut().write_all((head + &body).as_bytes()).unwrap();
                served += 1;
                if !close.is_empty() {
                    break;
                }
            }
        }
        seen
    }

    /// Content type and body.
    fn response(&self, served: u32) -> (&'static str, String) {
        let (name, arguments) = self.call;
        let call = match self.wire {
            Wire::JsonWithCommand(last) if served == self.steps => {
                Some(format!("{{\"command\":\"{last}\"}}"))
            }
            _ => (served < self.steps).then(|| arguments(served)),
        };
        let call = call.map(|arguments| arguments.replace('\\', "\\\\").replace('"', "\\\""));
        if self.wire == Wire::Responses {
            return ("text/event-stream", responses(name, call.as_deref(), served));
        }
        let (reason, message) = match call {
            None => ("stop", r#""role":"assistant","content":"done""#.to_owned()),
            Some(arguments) => (
                "tool_calls",
                format!(
                    r#""role":"assistant","content":null,"tool_calls":[{{"index":0,"id":"call_{served}","type":"function","function":{{"name":"{name}","arguments":"{arguments}"}}}}]"#
                ),
            ),
        };
        let choice = |part| {
            format!(
                r#"{{"choices":[{{"index":0,"finish_reason":"{reason}","{part}":{{{message}}}}}]}}"#
            )
        };
        match self.wire {
            Wire::Events => {
                ("text/event-stream", format!("data: {}\n\ndata: [DONE]\n\n", choice("delta")))
            }
            _ => ("application/json", choice("message")),
        }
    }
}

fn responses(name: &str, call: Option<&str>, served: u32) -> String {
    let item = match call {
        None => r#"{"type":"message","role":"assistant","content":[{"type":"output_text","text":"done"}]}"#.to_owned(),
        Some(arguments) => format!(
            r#"{{"type":"function_call","call_id":"call_{served}","name":"{name}","arguments":"{arguments}"}}"#
        ),
    };
    let usage = r#""usage":{"input_tokens":1,"output_tokens":1,"total_tokens":2}"#;
    [
        ("created", format!(r#""response":{{"id":"r{served}"}}"#)),
        ("output_item.done", format!(r#""item":{item}"#)),
        ("completed", format!(r#""response":{{"id":"r{served}",{usage}}}"#)),
    ]
    .map(|(kind, rest)| {
        format!("event: response.{kind}\ndata: {{\"type\":\"response.{kind}\",{rest}}}\n\n")
    })
    .concat()
}

/// Reads one request and returns its size.
fn request(stream: &mut impl BufRead) -> u64 {
    let (mut size, mut length) = (0, 0);
    loop {
        let mut line = String::new();
        size += stream.read_line(&mut line).unwrap() as u64;
        let line = line.trim_end().to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line.is_empty() {
            break;
        }
    }
    size + std::io::copy(&mut stream.take(length), &mut std::io::sink()).unwrap()
}

/// Memory and time that a process and what it started have used, where /proc tells.
#[derive(Clone, Copy, Default)]
pub(crate) struct Used {
    /// Peak memory in KiB.
    pub(crate) peak: Option<u64>,
    /// Without the processes that have ended.
    pub(crate) cpu: Option<Duration>,
}

/// Some programs are a script that starts another; so all that lives is added up.
fn used(id: u32) -> Used {
    let mut used = Used { peak: peak(id), cpu: cpu(id) };
    let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap_or_default();
    for child in children.split_whitespace().filter_map(|child| child.parse().ok()) {
        let of_child = self::used(child);
        used.peak = used.peak.zip(of_child.peak).map(|(own, child)| own + child);
        used.cpu = used.cpu.zip(of_child.cpu).map(|(own, child)| own + child);
    }
    used
}

/// Peak memory of a process in KiB, where /proc tells.
pub(crate) fn peak(id: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

/// Time that a process has had a processor, in hundredths of a second: as fine as Linux tells it.
fn cpu(id: u32) -> Option<Duration> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(") ")?;
    let ticks = rest.split(' ').skip(11).take(2).map(str::parse::<u64>);
    Some(Duration::from_millis(10 * ticks.sum::<Result<u64, _>>().ok()?))
}

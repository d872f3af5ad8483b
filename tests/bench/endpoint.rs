//! An endpoint that asks for a tool call a number of times and then answers.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::time::Instant;

pub(crate) struct Endpoint {
    listener: TcpListener,
    url: String,
    steps: u32,
    /// The call that is asked for: a tool, and its arguments for each step.
    call: Call,
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
    /// Peak memory of the client in KiB when it asked for the answer.
    pub(crate) peak: Option<u64>,
}

impl Endpoint {
    pub(crate) fn start(steps: u32, call: Call) -> Endpoint {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        Endpoint { listener, url, steps, call }
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Serves one run of the process with this id.
    pub(crate) fn serve(&self, id: u32) -> Seen {
        let mut seen = Seen { first_byte: Instant::now(), bytes: 0, peak: None };
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
                    seen.peak = peak(id);
                }
                let body = self.response(served);
                let head = format!(
                    "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
                    body.len()
                );
                stream.get_mut().write_all((head + &body).as_bytes()).unwrap();
                served += 1;
            }
        }
        seen
    }

    fn response(&self, served: u32) -> String {
        let message = if served == self.steps {
            r#""finish_reason":"stop","message":{"role":"assistant","content":"done"}"#.to_owned()
        } else {
            let (name, arguments) = self.call;
            let arguments = arguments(served).replace('\\', "\\\\").replace('"', "\\\"");
            format!(
                r#""finish_reason":"tool_calls","message":{{"role":"assistant","content":null,"tool_calls":[{{"id":"call_{served}","type":"function","function":{{"name":"{name}","arguments":"{arguments}"}}}}]}}"#
            )
        };
        format!(r#"{{"choices":[{{"index":0,{message}}}]}}"#)
    }
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

/// Peak memory of a process in KiB, where /proc tells.
pub(crate) fn peak(id: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

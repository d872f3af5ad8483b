//! What reading costs, beside `serde_json` that reads the same bytes as a `Value`: the whole body
//! of a response, the data of each event.
//!
//! Each reader has a process of its own, so that its peak memory is its own.

use std::fs::{self, File};
use std::hint::black_box;
use std::io::{BufRead, BufReader, BufWriter, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use uncut::session::Session;
use uncut::wire::{Assembler, completion};

use crate::endpoint::peak;
use crate::sessions;

/// Bytes of the text in the body.
const TEXT: usize = 60_000_000;

const DELTAS: usize = 200_000;

/// Prints speed and peak memory of the readers of responses.
pub(crate) fn compare(folder: &Path) {
    let [body, stream] = ["body", "stream"].map(|name| folder.join(name));
    write_body(&body);
    write_stream(&stream);
    compare_readers("a body of 60 MB", &body, "body", "body-value");
    compare_readers("a stream of 200,000 deltas", &stream, "stream", "stream-value");
}

/// Prints speed and peak memory of two readers of one file.
pub(crate) fn compare_readers(what: &str, input: &Path, ours: &str, theirs: &str) {
    let megabytes = fs::metadata(input).unwrap().len() as f64 / 1e6;
    // The best of some runs, in turn: what disturbs only adds.
    let mut best = [(f64::MAX, 0); 2];
    for _ in 0..5 {
        for (best, reader) in best.iter_mut().zip([ours, theirs]) {
            let (seconds, peak) = in_child(reader, input);
            *best = (best.0.min(seconds), peak);
        }
    }
    let [(ours, our_peak), (theirs, their_peak)] = best;
    let (ours, theirs) = (megabytes / ours, megabytes / theirs);
    println!("{what} (MB/s, beside Value)\t{ours:.0}\t{theirs:.0}\t{:.2}", ours / theirs);
    let ratio = our_peak as f64 / their_peak as f64;
    println!("peak memory of it (KiB)\t{our_peak}\t{their_peak}\t{ratio:.2}");
}

/// Reads the file as the reader of this name does, and prints seconds and peak memory in KiB.
pub(crate) fn read(reader: &str, input: &str) {
    let time = match reader {
        "body" => timed(fs::read(input).unwrap(), |body| completion(body).unwrap()),
        "body-value" => {
            timed(fs::read(input).unwrap(), |body| serde_json::from_slice::<Value>(&body).unwrap())
        }
        "stream" => timed(File::open(input).unwrap(), assemble),
        "stream-value" => timed(File::open(input).unwrap(), values),
        "session" => timed(Path::new(input), |log| Session::open(log).unwrap()),
        "session-values" => timed(File::open(input).unwrap(), sessions::values),
        other => unreachable!("no reader {other}"),
    };
    let peak = peak(std::process::id()).unwrap_or_default();
    println!("{} {peak}", time.as_secs_f64());
}

fn in_child(reader: &str, input: &Path) -> (f64, u64) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["read", reader]).arg(input).stdin(Stdio::null());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{reader}: {output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let (seconds, peak) = text.trim().split_once(' ').unwrap();
    (seconds.parse().unwrap(), peak.parse().unwrap())
}

fn timed<I, O>(input: I, read: impl Fn(I) -> O) -> Duration {
    let started = Instant::now();
    let output = black_box(read(input));
    let time = started.elapsed();
    drop(output);
    time
}

fn assemble(mut stream: File) -> uncut::provider::Completion {
    let mut assembler = Assembler::new();
    let mut chunk = vec![0; 64 << 10];
    while !assembler.is_done() {
        let length = stream.read(&mut chunk).unwrap();
        assembler.push(&chunk[..length]).unwrap();
    }
    assembler.finish().unwrap()
}

fn values(stream: File) {
    let mut stream = BufReader::with_capacity(64 << 10, stream);
    let mut line = Vec::new();
    while stream.read_until(b'\n', &mut line).unwrap() > 0 {
        if let Some(data) = line.strip_prefix(b"data: ")
            && !data.starts_with(b"[DONE]")
        {
            black_box(serde_json::from_slice::<Value>(data).unwrap());
        }
        line.clear();
    }
}

fn write_body(path: &Path) {
    let line = "    let text = \"caf\u{e9}\";\n";
    let text = line.repeat(TEXT / (Value::from(line).to_string().len() - 2));
    let message = json!({"role": "assistant", "content": text});
    let choice = json!({"index": 0, "finish_reason": "stop", "message": message});
    fs::write(path, json!({"model": "m", "choices": [choice]}).to_string()).unwrap();
}

fn write_stream(path: &Path) {
    let mut stream = BufWriter::new(File::create(path).unwrap());
    let chunk = |delta: Value, finish_reason: Value| {
        json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m",
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}]})
    };
    let delta = chunk(json!({"content": " token"}), Value::Null).to_string();
    for _ in 0..DELTAS {
        write!(stream, "data: {delta}\n\n").unwrap();
    }
    write!(stream, "data: {}\n\ndata: [DONE]\n\n", chunk(json!({}), json!("stop"))).unwrap();
    stream.flush().unwrap();
}

//! What resuming costs: a log opened as a session, beside `serde_json` that reads each of its lines
//! as a `Value` and keeps them all.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, BufWriter, Write as _};
use std::path::Path;

use serde_json::{Value, json};

use crate::wire;

/// Bytes of the log of realistic records.
const REALISTIC: u64 = 200_000_000;

/// Bytes of the line of the large record.
const LARGE: usize = 64 << 20;

/// Records of the log of small ones.
const SMALL: usize = 200_000;

/// Lines as tools print them: code with quotes and tabs, test results, listings, none.
const LINES: [&str; 6] = [
    "    let value = map.get(\"key\").unwrap_or(&default);\n",
    "test tools::files::a_line_is_read_and_its_end_is_kept ... ok\n",
    "warning: unused variable: `length` at src/session/record.rs:118:13\n",
    "\tif (left < right && name[index] == 'x') return \"caf\u{e9}\";\n",
    "drwxr-xr-x  2 user user    4096 Nov 30 12:00 target\n",
    "\n",
];

/// Prints speed and peak memory for logs of three kinds.
pub(crate) fn compare(folder: &Path) {
    let log = folder.join("log");
    let compare = |what| wire::compare_readers(what, &log, "session", "session-values");
    write_realistic(&log);
    compare("a session of 200 MB");
    write_large(&log);
    compare("a session of one record of 64 MB");
    write_small(&log);
    compare("a session of 200,000 small records");
    fs::remove_file(&log).unwrap();
}

/// The records of a log, as values, all of them at once, as a conversation is held.
pub(crate) fn values(log: File) -> Vec<Value> {
    let lines = BufReader::new(log).split(b'\n');
    lines.map(|line| serde_json::from_slice(&line.unwrap()).unwrap()).collect()
}

/// Runs of a prompt, twelve steps of up to two calls, and an answer. Results have from 200 bytes to
/// 30 KB, each size between as likely as its double; arguments up to 2 KB.
fn write_realistic(path: &Path) {
    let mut log = BufWriter::new(File::create(path).unwrap());
    let mut random = Random(0x5EED);
    let (mut bytes, mut ids) = (0, 0);
    while bytes < REALISTIC {
        let mut records = vec![said("user", &random.text(400))];
        for _ in 0..12 {
            let calls: Vec<Value> = (0..=random.below(2))
                .map(|_| {
                    ids += 1;
                    let size = random.size(40, 2_000);
                    call(&format!("call_{ids}"), &random.text(size))
                })
                .collect();
            let results: Vec<Value> = calls
                .iter()
                .map(|call| {
                    let size = random.size(200, 30_000);
                    json!({"role": "tool", "tool_call_id": call["id"], "content": random.text(size)})
                })
                .collect();
            records.push(json!({"role": "assistant", "content": random.text(100),
                "reasoning_content": random.text(300), "tool_calls": calls}));
            records.extend(results);
        }
        records.push(said("assistant", &random.text(1_000)));
        for message in records {
            let line = record(message);
            bytes += line.len() as u64;
            log.write_all(line.as_bytes()).unwrap();
        }
    }
    log.flush().unwrap();
}

fn write_large(path: &Path) {
    let mut random = Random(0x5EED);
    let text = random.text(LARGE * 19 / 20);
    fs::write(path, record(said("user", &text))).unwrap();
}

fn write_small(path: &Path) {
    let result = json!({"role": "tool", "tool_call_id": "c1", "content": "[exit 0]"});
    let messages = [
        said("user", "go"),
        json!({"role": "assistant", "content": null,
            "tool_calls": [call("c1", "ls")]}),
        result,
        said("assistant", "done"),
    ];
    let records: String = messages.map(record).concat();
    fs::write(path, records.repeat(SMALL / 4)).unwrap();
}

fn said(role: &str, content: &str) -> Value {
    json!({"role": role, "content": content})
}

fn call(id: &str, command: &str) -> Value {
    let arguments = json!({"command": command}).to_string();
    json!({"id": id, "type": "function", "function": {"name": "shell", "arguments": arguments}})
}

/// The line of a record, with what a run writes beside a completion.
fn record(message: Value) -> String {
    let mut record = json!({"v": 1, "time": "2026-11-30T12:00:00.000Z", "message": message});
    if record["message"]["role"] == "assistant" {
        record["finish_reason"] = "stop".into();
        record["model"] = "some-model".into();
        record["usage"] = json!({"prompt_tokens": 12_345, "completion_tokens": 67});
    }
    format!("{record}\n")
}

/// xorshift64, so that the logs are the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }

    /// From `least` to `most`, as a power with an even exponent.
    fn size(&mut self, least: u32, most: u32) -> usize {
        let part = self.below(1_000) as f64 / 1_000.0;
        (f64::from(least) * f64::from(most / least).powf(part)) as usize
    }

    fn text(&mut self, size: usize) -> String {
        let mut text = String::with_capacity(size + 80);
        while text.len() < size {
            let index = usize::try_from(self.below(LINES.len() as u64)).unwrap();
            text.push_str(LINES[index]);
        }
        text
    }
}

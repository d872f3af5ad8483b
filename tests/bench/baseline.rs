//! The least that a loop of this kind can do: the same requests, commands and synced lines, with
//! no care for anything.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;

/// Talks to the endpoint at `url` until it answers, and logs to `log`.
pub(crate) fn run(url: &str, log: &Path) {
    let address = url.strip_prefix("http://").unwrap().strip_suffix("/v1").unwrap();
    let mut log = OpenOptions::new().create(true).append(true).open(log).unwrap();
    let mut conversation = String::from(r#"{"role":"user","content":"go"}"#);
    append(&mut log, &conversation);
    loop {
        let body = format!(r#"{{"model":"m","messages":[{conversation}]}}"#);
        let response = post(address, &body);
        let (_, message) = response.split_once(r#""message":"#).unwrap();
        let (message, _) = message.rsplit_once("}]}").unwrap();
        append(&mut log, message);
        if !message.contains("tool_calls") {
            return;
        }
        let command = between(message, r#"\"command\":\""#, "\\\"");
        let output = Command::new("/bin/sh").args(["-c", command]).output().unwrap();
        let result = format!(
            r#"{{"role":"tool","tool_call_id":"{}","content":"{}[exit 0]"}}"#,
            between(message, r#""id":""#, "\""),
            String::from_utf8(output.stdout).unwrap()
        );
        append(&mut log, &result);
        conversation = format!("{conversation},{message},{result}");
    }
}

fn append(log: &mut File, line: &str) {
    log.write_all(format!("{line}\n").as_bytes()).unwrap();
    log.sync_all().unwrap();
}

fn between<'a>(text: &'a str, start: &str, end: &str) -> &'a str {
    let (_, rest) = text.split_once(start).unwrap();
    rest.split_once(end).unwrap().0
}

fn post(address: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: {address}\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all((head + body).as_bytes()).unwrap();
    let mut stream = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).unwrap();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line == "\r\n" {
            break;
        }
    }
    let mut response = vec![0; length];
    stream.read_exact(&mut response).unwrap();
    String::from_utf8(response).unwrap()
}

//! Responses without an end, fast and slow: what is whole stays an answer, and what is not costs no
//! more time than the limits say.

use std::io::Write as _;
use std::thread;
use std::time::{Duration, Instant};

use crate::support::sandbox::{Dir, Ran, Uncut};
use crate::support::server::{Server, drain, read_body, read_head};

const JSON: &str =
    r#"{"choices":[{"finish_reason":"stop","message":{"role":"assistant","content":"whole"}}]}"#;
const EVENT: &str =
    "data: {\"choices\":[{\"delta\":{\"content\":\"whole\"},\"finish_reason\":\"stop\"}]}\n\n";
const HEAD: &str = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n";
const EVENTS: &str = "content-type: text/event-stream\r\n\r\n";
const ONE_BODY: &str = "content-type: application/json\r\n\r\n";

/// No pause: as fast as the other side reads.
const FAST: Duration = Duration::ZERO;

/// Far below every limit.
const SLOW: Duration = Duration::from_millis(20);

fn chunk(data: &str) -> String {
    format!("{:x}\r\n{data}\r\n", data.len())
}

/// Answers by the start, and then by the piece again and again, until the caller hangs up. What is
/// fast comes in larger pieces.
fn endless(start: impl Into<Vec<u8>>, piece: impl Into<Vec<u8>>, pause: Duration) -> Server {
    let (start, piece) = (start.into(), piece.into());
    let piece = if pause == FAST { piece.repeat((16 << 10) / piece.len() + 1) } else { piece };
    Server::start(move |mut stream| {
        let head = read_head(&mut stream)?;
        read_body(&mut stream, &head)?;
        stream.write_all(&start)?;
        loop {
            stream.write_all(&piece)?;
            thread::sleep(pause);
        }
    })
}

/// A run against it, and how long it took.
fn run(server: &Server, flags: &[&str]) -> (Ran, Duration) {
    let dir = Dir::new("endless");
    let base_url = format!("http://{}/v1", server.address());
    let begun = Instant::now();
    let uncut = Uncut::new(&dir).args(["--base-url", &base_url, "--model=m", "--max-retries=0"]);
    (uncut.args(flags).arg("go").run(), begun.elapsed())
}

#[track_caller]
fn assert_whole(server: &Server, flags: &[&str]) {
    let (ran, took) = run(server, flags);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "whole\n"), "{ran:?}");
    assert!(took < Duration::from_secs(20), "{took:?}");
}

/// That the limit of a request ends it where there is one, and the limit of the run otherwise.
#[track_caller]
fn assert_limited(server: &Server) {
    let (ran, took) = run(server, &["--request-timeout=1s"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(75), ""), "{ran:?}");
    assert!(ran.stderr.contains("within 1s (--request-timeout)"), "{ran:?}");
    assert!(took < Duration::from_secs(15), "{took:?}");
    let (ran, took) = run(server, &["--timeout=1s"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(124), ""), "{ran:?}");
    assert!(took < Duration::from_secs(15), "{took:?}");
}

/// That it ends without any limit of the user's, and why.
#[track_caller]
fn assert_refused(server: &Server, code: i32, says: &str) {
    let (ran, took) = run(server, &[]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(code), ""), "{ran:?}");
    assert!(ran.stderr.contains(says), "{ran:?}");
    assert!(took < Duration::from_secs(30), "{took:?}");
}

/// Whole answers, with the last chunk behind each.
fn whole() -> Vec<String> {
    [
        format!("{HEAD}{ONE_BODY}{}0\r\n", chunk(JSON)),
        format!("{HEAD}{EVENTS}{}0\r\n", chunk(&format!("{EVENT}data: [DONE]\n\n"))),
        format!("{HEAD}{EVENTS}{}0\r\n", chunk(EVENT)),
    ]
    .into()
}

#[test]
fn trailers_without_end_do_not_cost_a_whole_answer() {
    for start in whole() {
        assert_whole(&endless(start.as_str(), "x-a: b\r\n", FAST), &[]);
        // One line that does not end.
        assert_whole(&endless(start.as_str(), "x", FAST), &[]);
        assert_whole(&endless(start.as_str(), "x-trailer: of some length\r\n", SLOW), &[]);
    }
}

#[test]
fn a_limit_that_ends_trailers_does_not_cost_a_whole_answer() {
    for start in whole() {
        assert_whole(&endless(start, "x", SLOW), &["--request-timeout=3s"]);
    }
}

#[test]
fn silence_behind_the_last_chunk_does_not_cost_a_whole_answer() {
    for start in whole() {
        let server = Server::start(move |mut stream| {
            let head = read_head(&mut stream)?;
            read_body(&mut stream, &head)?;
            stream.write_all(start.as_bytes())?;
            drain(stream)
        });
        assert_whole(&server, &["--idle-timeout=1s"]);
    }
}

#[test]
fn what_is_not_whole_is_no_answer_however_it_ends() {
    let half = &JSON[..JSON.len() - 3];
    let cut = format!("{HEAD}{ONE_BODY}{}0\r\n", chunk(half));
    let (ran, _) = run(&endless(cut, "x-a: b\r\n", FAST), &[]);
    assert!(ran.code != Some(0) && ran.stdout.is_empty(), "{ran:?}");
    for start in [
        // All of the JSON, but not the last chunk.
        format!("{HEAD}{ONE_BODY}{}", chunk(JSON)),
        format!("{HEAD}{EVENTS}{}", chunk(": ping\n\n")),
    ] {
        let says = "headers or trailers have no end";
        assert_refused(&endless(start.as_str(), "0", FAST), 75, says);
        assert_refused(&endless(start.as_str(), "0".repeat(30), SLOW), 75, says);
        assert_limited(&endless(start.as_str(), "0", SLOW));
    }
}

#[test]
fn headers_without_end_are_refused_and_limited() {
    let refused = "no response from 127.0.0.1:";
    assert_refused(&endless("HTTP/1.1 200 OK\r\n", "x-a: b\r\n", FAST), 11, "too many headers");
    assert_refused(&endless("HTTP/1.1 200 OK\r\nx: ", "x", FAST), 75, refused);
    assert_limited(&endless("HTTP/1.1 200 OK\r\nx: ", "x", SLOW));
    let processing = "HTTP/1.1 102 Processing\r\n\r\n";
    let server = endless(processing, processing, FAST);
    assert_refused(&server, 75, refused);
    assert_limited(&endless(processing, processing, SLOW));
}

#[test]
fn responses_in_between_are_passed_over() {
    let early = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n";
    let length = JSON.len();
    let answer = format!("{early}HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{JSON}");
    assert_whole(&endless(answer, "x", Duration::from_secs(4)), &["--no-stream"]);
}

#[test]
fn comments_without_end_are_ended_by_the_limits_however_fast_they_come() {
    for head in [format!("{HEAD}{EVENTS}"), format!("HTTP/1.1 200 OK\r\n{EVENTS}")] {
        let is_chunked = head.contains("chunked");
        let comments = ": keep-alive\n\n".repeat(500);
        let comments = if is_chunked { chunk(&comments) } else { comments };
        assert_limited(&endless(head.as_str(), comments, FAST));
        let comment = if is_chunked { chunk(": keep-alive\n\n") } else { ": ping\n\n".into() };
        assert_limited(&endless(head, comment, SLOW));
    }
}

#[test]
fn a_redirect_and_a_refusal_without_end_are_ended() {
    for (status, code) in [("302 Found\r\nlocation: http://127.0.0.1:9/", 10), ("503 Busy", 75)] {
        let head = format!("HTTP/1.1 {status}\r\ntransfer-encoding: chunked\r\n\r\n");
        let says = format!("the endpoint answered {}", &status[..3]);
        assert_refused(&endless(head.as_str(), chunk(&"x".repeat(5_000)), FAST), code, &says);
        assert_refused(&endless(format!("{head}0\r\n"), "x-a: b\r\n", FAST), code, &says);
    }
}

/// A gzip stream of blanks without end: its start, and what is repeated.
fn bomb() -> (Vec<u8>, Vec<u8>) {
    // A block of fixed codes (RFC 1951, section 3.2.6): its header, a blank, and then again and
    // again 258 bytes from one byte before.
    let (header, blank) = ("010", "01010000");
    let again = "1100010100000";
    let packed = |bits: &str| -> Vec<u8> {
        let byte = |bits: &[u8]| bits.iter().rev().fold(0, |byte, bit| byte << 1 | (bit - b'0'));
        bits.as_bytes().chunks(8).map(byte).collect()
    };
    let mut start = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
    start.extend(packed(&format!("{header}{blank}{again}")));
    (start, packed(&again.repeat(8)))
}

#[test]
fn a_body_that_unpacks_without_end_is_refused() {
    let (start, piece) = bomb();
    let head = format!("HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\n{ONE_BODY}");
    let server = endless([head.as_bytes(), &start].concat(), piece, FAST);
    let (ran, took) = run(&server, &["--no-stream"]);
    assert_ne!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.is_empty() && ran.stderr.contains("larger than 64 MB"), "{ran:?}");
    assert!(took < Duration::from_secs(30), "{took:?}");
}

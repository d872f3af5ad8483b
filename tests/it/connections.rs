//! Connections that serve several requests, and such as are closed in between.

use std::io::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::endpoint::{Endpoint, Reply, Request};
use crate::support::sandbox::{Dir, Ran, Uncut};
use crate::support::server::{Server, read_body, read_head};
use crate::support::tls::{self, Issuer, response};

/// Runs with these replies; gives the connection of each request.
#[track_caller]
fn run(replies: Vec<Reply>, flags: &[&str]) -> (Ran, Vec<SocketAddr>) {
    let dir = Dir::new("connections");
    let endpoint = Endpoint::start(replies);
    let base_url = endpoint.base_url();
    let flags = [&["--base-url", &base_url, "--model", "m", "go"], flags].concat();
    let ran = Uncut::new(&dir).args(flags).run();
    let peer = |request: Request| request.peer;
    (ran, endpoint.finish().into_iter().map(peer).collect())
}

fn call() -> Reply {
    Reply::tool_call("a", "shell", r#"{"command":"true"}"#)
}

/// A call as events, in chunks; the last chunk is only there when the stream is `whole`.
fn stream(whole: bool) -> Reply {
    let function = json!({"name": "shell", "arguments": "{\"command\":\"true\"}"});
    let delta = json!({"tool_calls": [{"index": 0, "id": "a", "function": function}]});
    let choice = json!({"index": 0, "delta": delta, "finish_reason": "tool_calls"});
    let events = format!("data: {}\n\ndata: [DONE]\n\n", json!({"choices": [choice]}));
    let end = if whole { "0\r\n\r\n" } else { "" };
    let reply = Reply::raw(format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n\
         {:x}\r\n{events}\r\n{end}",
        events.len()
    ));
    if whole { reply.kept() } else { reply.left_open() }
}

#[track_caller]
fn assert_answered(ran: &Ran) {
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "done\n"), "{ran:?}");
    assert!(!ran.stderr.contains("retry"), "{ran:?}");
}

#[test]
fn one_connection_serves_all_requests() {
    let busy = Reply::status(503, "busy").with_header("retry-after-ms", "500");
    let (ran, peers) = run(vec![call(), stream(true), busy, call(), Reply::answer("done")], &[]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "done\n"), "{ran:?}");
    assert_eq!(peers, [peers[0]; 5]);
    let (ran, peers) = run(vec![call(), Reply::answer("done")], &["--no-stream"]);
    assert_answered(&ran);
    assert_eq!(peers, [peers[0]; 2]);
}

#[test]
fn a_connection_that_is_closed_while_a_command_runs_costs_nothing() {
    let (ran, peers) = run(vec![call().hung_up(), call().hung_up(), Reply::answer("done")], &[]);
    assert_answered(&ran);
    assert!(peers[0] != peers[1] && peers[1] != peers[2], "{peers:?}");
}

#[test]
fn a_connection_that_is_closed_instead_of_a_response_costs_nothing_once() {
    for lost in [|| Reply::raw(""), Reply::reset] {
        let (ran, peers) = run(vec![call(), lost(), Reply::answer("done")], &["--max-retries=0"]);
        assert_answered(&ran);
        assert!(peers[0] == peers[1] && peers[1] != peers[2], "{peers:?}");
        // On a connection of its own it is a failure.
        let (ran, peers) = run(vec![call(), lost(), lost()], &["--max-retries=0"]);
        assert_eq!((ran.code, peers.len()), (Some(75), 3), "{ran:?}");
    }
}

#[test]
fn a_stream_that_does_not_end_leaves_its_connection_behind() {
    let (ran, peers) = run(vec![stream(false), Reply::answer("done")], &[]);
    assert_answered(&ran);
    assert_ne!(peers[0], peers[1]);
}

/// Runs against a server behind TLS whose first response of each connection, a call, has this
/// behind it in the same piece; what else is asked on that connection is answered by "same". Gives
/// what was answered, and how many connections there were.
fn run_over_tls(behind: &str) -> (Ran, u32) {
    let issuer = Issuer::new("issuer");
    let dir = Dir::new("tls").with("ca.pem", issuer.pem());
    let connections = Arc::new(AtomicU32::new(0));
    let (count, behind) = (Arc::clone(&connections), behind.to_owned());
    let server: Server = tls::serve(issuer.issue("127.0.0.1"), move |stream| {
        let is_first = count.fetch_add(1, Ordering::SeqCst) == 0;
        let head = read_head(stream)?;
        read_body(stream, &head)?;
        let function = json!({"name": "shell", "arguments": "{\"command\":\"true\"}"});
        let call = json!({"id": "a", "type": "function", "function": function});
        let first =
            if is_first { json!({"tool_calls": [call]}) } else { json!({"content": "new"}) };
        // Two records in one piece: where the first one ends, nothing of the second is decrypted.
        stream.conn.writer().write_all(response(&first).as_bytes())?;
        stream.conn.writer().write_all(behind.as_bytes())?;
        stream.flush()?;
        if is_first {
            let head = read_head(stream)?;
            read_body(stream, &head)?;
            stream.write_all(response(&json!({"content": "same"})).as_bytes())?;
        }
        stream.conn.send_close_notify();
        stream.flush()
    });
    let url = format!("https://{}/v1", server.address());
    let ran = Uncut::new(&dir)
        .args(["--base-url", &url, "--ca-file", "ca.pem", "--model", "m", "--no-stream", "go"])
        .run();
    (ran, connections.load(Ordering::SeqCst))
}

#[test]
fn a_connection_over_tls_serves_the_next_request_too() {
    let (ran, connections) = run_over_tls("");
    assert_eq!((ran.code, ran.stdout.as_str(), connections), (Some(0), "same\n", 1), "{ran:?}");
}

#[test]
fn what_comes_behind_a_response_is_never_taken_for_the_next() {
    let forged = response(&json!({"content": "x".repeat(8_000)}));
    for behind in [forged.as_str(), &forged[..4_000], "x"] {
        let (ran, connections) = run_over_tls(behind);
        assert_eq!((ran.code, ran.stdout.as_str(), connections), (Some(0), "new\n", 2), "{ran:?}");
    }
}

#[test]
fn a_request_on_a_kept_connection_has_its_time_once() {
    // Long behind the moment in which a closed connection shows itself: the server had the request.
    let late = Reply::raw("").late(Duration::from_millis(1_500));
    let flags = ["--request-timeout", "3s", "--max-retries", "0"];
    let (ran, peers) = run(vec![call(), late], &flags);
    assert_eq!((ran.code, peers.len()), (Some(75), 2), "{ran:?}");
    assert!(ran.stderr.contains("closed"), "{ran:?}");
}

#[test]
fn a_stream_that_is_left_open_is_not_waited_for() {
    let begun = Instant::now();
    let (ran, _) = run((0..4).map(|_| stream(false)).chain([Reply::answer("done")]).collect(), &[]);
    assert_answered(&ran);
    // Four times the time that the usage may take behind the finish reason would be 12 s.
    assert!(begun.elapsed() < Duration::from_secs(9), "{:?}", begun.elapsed());
}

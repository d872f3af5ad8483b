//! Connections that serve several requests, and such as are closed in between.

use std::net::SocketAddr;

use serde_json::json;

use crate::support::endpoint::{Endpoint, Reply, Request};
use crate::support::sandbox::{Dir, Ran, Uncut};

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

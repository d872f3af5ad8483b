//! Connections that serve several requests, and such as are closed in between.

use std::io::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::endpoint::{Endpoint, Reply, Request};
use crate::support::proxy::Proxy;
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

// Through a proxy.

/// What a strict proxy was asked, when a run went through it; the environment names it.
#[track_caller]
fn run_through(proxy: &Proxy, dir: &Dir, flags: &[&str]) -> (Ran, Vec<String>) {
    let flags = [&["--base-url", "http://api.example/v1", "--model", "m"], flags].concat();
    let ran = Uncut::new(dir).args(flags).env("http_proxy", proxy.url()).run();
    (ran, proxy.heads())
}

/// That each request names the whole URL and the host of the endpoint, and says who asks.
#[track_caller]
fn check_heads(heads: &[String], count: usize) {
    assert_eq!(heads.len(), count, "{heads:#?}");
    for head in heads {
        let line = "POST http://api.example:80/v1/chat/completions HTTP/1.1\r\n";
        assert!(head.starts_with(line), "{head}");
        assert!(head.contains("\r\nhost: api.example\r\n"), "{head}");
        let user = "\r\nProxy-Authorization: Basic dXNlcjpodW50QGVyMg==\r\n";
        assert_eq!(head.matches(user).count(), 1, "{head}");
    }
}

#[test]
fn a_proxy_is_given_the_whole_url_in_every_request_of_a_run() {
    let issuer = Issuer::new("issuer");
    let dir = Dir::new("proxied").with("ca.pem", issuer.pem());
    for over_tls in [false, true] {
        // A stream, a failure that is tried again, and a refusal of the stream.
        let busy = Reply::status(503, "busy").with_header("retry-after-ms", "500");
        let refused = Reply::status(400, "stream is not supported");
        let replies = vec![call(), stream(true), busy, refused, call(), Reply::answer("done")];
        let endpoint = Endpoint::start(replies);
        let proxy = match over_tls {
            false => Proxy::to(endpoint.address()),
            true => Proxy::over_tls(issuer.issue("127.0.0.1"), endpoint.address()),
        };
        let (ran, heads) = run_through(&proxy, &dir, &["--ca-file", "ca.pem", "go"]);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "done\n"), "{ran:?}");
        check_heads(&heads, 6);
        let peers: Vec<_> = endpoint.finish().into_iter().map(|request| request.peer).collect();
        assert_eq!(peers, [peers[0]; 6]);
    }
}

#[test]
fn a_proxy_that_closed_the_connection_in_between_costs_nothing() {
    let dir = Dir::new("stale-proxy");
    let lost = Reply::raw("");
    for replies in [
        vec![call().hung_up(), call().hung_up(), Reply::answer("done")],
        vec![call(), lost, Reply::answer("done")],
    ] {
        let endpoint = Endpoint::start(replies);
        let proxy = Proxy::to(endpoint.address());
        let (ran, heads) = run_through(&proxy, &dir, &["--max-retries=0", "go"]);
        assert_answered(&ran);
        // The proxy sees those too that the endpoint does not.
        assert!(heads.len() >= 3, "{heads:#?}");
        check_heads(&heads, heads.len());
        endpoint.finish();
    }
}

#[test]
fn a_check_goes_through_a_strict_proxy() {
    let call = Reply::tool_call("a", "read_file", r#"{"path":"uncut-check.txt"}"#);
    let endpoint = Endpoint::start(vec![Reply::answer("ready"), call]);
    let proxy = Proxy::to(endpoint.address());
    let (ran, heads) = run_through(&proxy, &Dir::new("proxied-check"), &["--check"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    check_heads(&heads, 2);
    endpoint.finish();
}

#[test]
fn one_tunnel_serves_all_requests() {
    let issuer = Issuer::new("issuer");
    let dir = Dir::new("tunnel").with("ca.pem", issuer.pem());
    let server = tls::serve(issuer.issue("api.example"), |stream| {
        for answers in [false, false, true] {
            let head = read_head(stream)?;
            assert!(head.starts_with("POST /v1/chat/completions HTTP/1.1\r\n"), "{head}");
            assert!(!head.to_lowercase().contains("proxy-"), "{head}");
            read_body(stream, &head)?;
            let function = json!({"name": "shell", "arguments": "{\"command\":\"true\"}"});
            let call = json!({"id": "a", "type": "function", "function": function});
            let message =
                if answers { json!({"content": "done"}) } else { json!({"tool_calls": [call]}) };
            stream.write_all(response(&message).as_bytes())?;
            stream.flush()?;
        }
        Ok(())
    });
    let proxy = Proxy::to(server.address());
    let ran = Uncut::new(&dir)
        .args(["--base-url", "https://api.example/v1", "--ca-file", "ca.pem", "--model", "m"])
        .args(["--max-retries=0", "go"])
        .env("https_proxy", proxy.url())
        .run();
    assert_answered(&ran);
    assert_eq!(proxy.heads().len(), 1, "{:?}", proxy.heads());
}

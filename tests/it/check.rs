//! `--check` on endpoints that are fit for a run, and on such as are not.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::thread;

use serde_json::{Value, json};

use crate::support::endpoint::{Endpoint, Reply};
use crate::support::sandbox::{Dir, Ran, Uncut};
use crate::support::server::Refusing;
use crate::support::tls::{self, Issuer};

fn check(dir: &Dir, base_url: &str) -> Uncut {
    Uncut::new(dir).args(["--base-url", base_url, "--model", "m", "--check"])
}

fn on(replies: Vec<Reply>, flags: &[&str]) -> (Ran, Endpoint) {
    let dir = Dir::new("check");
    let endpoint = Endpoint::start(replies);
    let ran = check(&dir, &endpoint.base_url()).args(flags).run();
    assert_eq!(dir.names(), [""; 0], "{ran:?}");
    (ran, endpoint)
}

/// The names of the lines on stdout, and what follows them.
#[track_caller]
fn lines(ran: &Ran) -> Vec<(&str, &str)> {
    ran.stdout.lines().map(|line| line.split_once(": ").expect(line)).collect()
}

/// Checks the exit code, and the first line that is not in order.
#[track_caller]
fn fails(ran: &Ran, code: i32, name: &str, outcome: &str, says: &str) {
    assert_eq!(ran.code, Some(code), "{ran:?}");
    let lines = lines(ran);
    let names: Vec<&str> = lines.iter().map(|line| line.0).collect();
    let mut sorted = names.clone();
    sorted.sort_unstable();
    let all =
        ["answer", "authenticate", "connect", "resolve", "stream", "tls", "tool call", "usage"];
    assert_eq!(sorted, all, "{ran:?}");
    let first = lines.iter().find(|line| !line.1.starts_with("ok: ")).unwrap();
    assert_eq!(first.0, name, "{ran:?}");
    assert!(first.1.starts_with(&format!("{outcome}: ")) && first.1.contains(says), "{ran:?}");
    let rest = lines.iter().skip_while(|line| line.0 != name).skip(1);
    assert!(rest.clone().all(|line| line.1 == "not checked"), "{ran:?}");
    let last = ran.stderr.lines().last().unwrap();
    assert!(last.starts_with(&format!("uncut: {outcome}: ")), "{ran:?}");
}

fn ready() -> Reply {
    Reply::answer("ready").with_tokens(800)
}

fn calls() -> Reply {
    Reply::tool_call("a", "read_file", r#"{"path":"uncut-check.txt"}"#).with_tokens(800)
}

#[test]
fn an_endpoint_that_is_fit_has_a_line_for_everything() {
    let (ran, endpoint) = on(vec![ready(), calls()], &["--no-stream"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let address = endpoint.address().to_string();
    assert_eq!(
        lines(&ran),
        [
            ("resolve", format!("ok: {address}").as_str()),
            ("connect", &format!("ok: {address}")),
            ("tls", "ok: none, as the base URL says http://"),
            ("authenticate", "ok: the endpoint takes the credentials, or asks for none"),
            ("answer", "ok: m says \"ready\""),
            ("tool call", "ok: read_file {\"path\":\"uncut-check.txt\"}"),
            ("stream", "ok: not asked for"),
            ("usage", "ok: 800 prompt tokens and 5 of the completion"),
        ]
    );
    assert_eq!(ran.stderr, "");
    let requests = endpoint.finish();
    let tools = requests[0].body["tools"].as_array().unwrap();
    assert_eq!((requests.len(), tools.len()), (2, 4));
    assert_eq!(requests[0].messages()[0]["role"], "system");
}

/// A key that is longer than what is shown of an answer.
#[test]
fn no_piece_of_a_key_is_shown() {
    let key = &*format!("sk-TESTKEY-{}", "x".repeat(2_500));
    let call = |name: &str| Reply::tool_call("a", name, &json!({"path": key}).to_string());
    for format in ["text", "jsonl"] {
        for replies in [
            vec![Reply::answer(key), Reply::answer(key)],
            vec![call(key), call(key)],
            vec![ready(), call("read_file")],
            vec![Reply::status(400, key)],
            vec![Reply::choice(json!({"message": {"refusal": format!("No.\n{key}\nanswer: ok")}}))],
        ] {
            let (dir, endpoint) = (Dir::new("piece"), Endpoint::start(replies).expect_key(key));
            let flags = ["--api-key", key, "--output", format];
            let ran = check(&dir, &endpoint.base_url()).args(flags).run();
            let shown = format!("{}{}", ran.stdout, ran.stderr);
            assert!(shown.contains("[api key]") && !shown.contains("TESTKEY"), "{shown}");
            assert!(format != "text" || lines(&ran).len() == 8, "{shown}");
        }
    }
}

#[test]
fn a_stream_is_told_from_one_body() {
    let (ran, _) = on(vec![ready(), calls()], &[]);
    assert!(ran.stdout.contains("\nstream: ok: completions come as one body; "), "{ran:?}");
    let event = json!({
        "model": "m",
        "choices": [{"index": 0, "delta": {"content": "ready"}, "finish_reason": "stop"}],
    });
    let stream = Reply::stream(&[format!("data: {event}"), "data: [DONE]".to_owned()]);
    let (ran, _) = on(vec![stream, calls()], &[]);
    assert!(ran.stdout.contains("\nstream: ok: completions come as a stream\n"), "{ran:?}");
}

#[test]
fn a_host_that_is_not_there_and_a_port_that_nobody_listens_at_are_told_apart() {
    let dir = Dir::new("nowhere");
    let ran = check(&dir, "http://nowhere.invalid/v1").run();
    fails(&ran, 75, "resolve", "transient", "nowhere.invalid");
    let refusing = Refusing::start();
    let address = refusing.address().to_string();
    let ran = check(&dir, &format!("http://{address}/v1")).run();
    fails(&ran, 75, "connect", "transient", &address);
    let plain = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = plain.local_addr().unwrap().to_string();
    let server = thread::spawn(move || {
        let (mut stream, _) = plain.accept().unwrap();
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").unwrap();
        // Until the other side hangs up: a reset might overtake the answer.
        stream.read_to_end(&mut Vec::new())
    });
    let ran = check(&dir, &format!("https://{address}/v1")).run();
    server.join().unwrap().unwrap();
    fails(&ran, 10, "tls", "rejected", "speaks http, not TLS");
}

#[test]
fn a_proxy_that_refuses_is_no_fault_of_the_certificate() {
    let dir = Dir::new("proxy");
    let proxy = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = proxy.local_addr().unwrap().to_string();
    let server = thread::spawn(move || {
        let (mut stream, _) = proxy.accept().unwrap();
        let mut head = [0; 8];
        stream.read_exact(&mut head).unwrap();
        stream.write_all(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n").unwrap();
        assert_eq!(&head, b"CONNECT ");
    });
    let proxied = check(&dir, "https://api.example/v1");
    let ran = proxied.env("HTTPS_PROXY", format!("http://{address}")).run();
    server.join().unwrap();
    fails(&ran, 10, "connect", "rejected", "407");
}

#[test]
fn what_the_endpoint_says_is_told_with_what_to_do() {
    let error = |message: &str| json!({"error": {"message": message}}).to_string();
    let refused = |status, message| vec![Reply::status(status, error(message))];
    let (ran, _) = on(refused(401, "no such key"), &[]);
    fails(&ran, 10, "authenticate", "rejected", "set UNCUT_API_KEY");
    let (ran, _) = on(refused(404, "model m does not exist"), &[]);
    fails(&ran, 10, "answer", "rejected", "model m does not exist");
    let (ran, _) = on(vec![Reply::status(404, "404 page not found")], &[]);
    fails(&ran, 10, "answer", "rejected", "404 page not found");
    let (ran, _) = on(vec![Reply::status(200, "<html>Welcome</html>")], &[]);
    fails(&ran, 11, "answer", "protocol", "HTML");
    let (ran, _) = on(refused(503, "busy"), &[]);
    fails(&ran, 75, "answer", "transient", "busy");
    let small = "This model's maximum context length is 512 tokens. However, you requested 700";
    let (ran, _) = on(refused(400, small), &[]);
    fails(&ran, 15, "answer", "context", "512 tokens");
    let unfinished = json!({"finish_reason": "length", "message": {"content": "rea"}});
    let (ran, _) = on(vec![Reply::choice(unfinished)], &[]);
    fails(&ran, 12, "answer", "truncated", "length");
}

#[test]
fn a_model_that_calls_no_tool_fails_and_says_how_servers_turn_it_on() {
    let (ran, _) = on(vec![ready(), Reply::answer("I can't read files.")], &[]);
    fails(&ran, 11, "tool call", "protocol", "I can't read files.");
    assert!(ran.stdout.contains("--jinja"), "{ran:?}");
    let text = "<tool_call>{\"name\":\"read_file\",\"arguments\":{\"path\":\"x\"}}</tool_call>";
    let (ran, _) = on(vec![ready(), Reply::answer(text)], &[]);
    fails(&ran, 11, "tool call", "protocol", "parser");
    let (ran, _) = on(vec![ready(), Reply::tool_call("", "read_file", "{}")], &[]);
    fails(&ran, 11, "tool call", "protocol", "--accept missing-ids");
}

#[test]
fn usage_that_is_missing_or_too_low_is_told() {
    let bare = |choice: Value| Reply::json(&json!({"choices": [choice]}));
    let said = json!({"index": 0, "finish_reason": "stop", "message": {"content": "ready"}});
    let function = json!({"name": "read_file", "arguments": "{\"path\":\"uncut-check.txt\"}"});
    let call = json!({"id": "a", "type": "function", "function": function});
    let called = json!({"index": 0, "finish_reason": "stop", "message": {"tool_calls": [call]}});
    let (ran, _) = on(vec![bare(said), bare(called)], &[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.contains("\nusage: ok: not reported; "), "{ran:?}");
    let (ran, _) = on(vec![ready(), calls().with_tokens(40)], &[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stderr.contains("warning: 40 prompt tokens"), "{ran:?}");
}

#[test]
fn a_certificate_that_is_trusted_is_told() {
    let issuer = Issuer::new("issuer");
    let server = tls::endpoint(issuer.issue("127.0.0.1"));
    let dir = Dir::new("tls").with("ca.pem", issuer.pem());
    let url = format!("https://{}/v1", server.address());
    let ran = check(&dir, &url).args(["--ca-file", "ca.pem"]).run();
    // It calls no tool, whatever it is asked.
    fails(&ran, 11, "tool call", "protocol", "over TLS");
    assert!(ran.stdout.contains("\ntls: ok: the certificate is trusted\n"), "{ran:?}");
}

#[test]
fn machines_get_what_was_found_in_the_result() {
    let (ran, _) = on(vec![ready(), calls()], &["--output", "json"]);
    let result: Value = serde_json::from_str(&ran.stdout).expect(&ran.stdout);
    assert_eq!((&result["outcome"], &result["answer"]), (&json!("ok"), &Value::Null));
    let checks = result["checks"].as_array().unwrap();
    assert_eq!(checks.len(), 8, "{result}");
    let answer = json!({"check": "answer", "outcome": "ok", "found": "m says \"ready\""});
    assert_eq!(checks[4], answer);
    let (ran, _) = on(vec![Reply::status(401, "{}")], &["--output", "jsonl"]);
    let events: Vec<Value> =
        ran.stdout.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
    assert_eq!(events.len(), 5, "{ran:?}");
    assert_eq!(
        (&events[3]["check"], &events[3]["outcome"]),
        (&json!("authenticate"), &json!("rejected"))
    );
    assert_eq!((&events[4]["type"], &events[4]["exit_code"]), (&json!("result"), &json!(10)));
}

#[test]
fn a_check_has_no_prompt_and_no_recording() {
    let dir = Dir::new("usage");
    for (flags, says) in [
        (&["go"][..], "uncut: usage: --check: takes no prompt; leave out one of them\n"),
        (&["--replay", "x"], "uncut: usage: --check: contradicts --replay; give one of them\n"),
        (
            &["--session", "s", "--show-session"],
            "uncut: usage: --check: contradicts --show-session; give one of them\n",
        ),
    ] {
        let ran = Uncut::new(&dir).args(["-m", "m", "--check"]).args(flags).run();
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{ran:?}");
        assert!(ran.stderr.starts_with(says), "{ran:?}");
    }
}

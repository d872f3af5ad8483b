//! Every outcome through the spawned binary: exit code, stdout and the last line of stderr.

use std::fs::File;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::endpoint::{Endpoint, Reply};
use crate::support::sandbox::{Dir, Ran, Uncut, finish};
use crate::support::server::Refusing;

/// The binary, pointed at an endpoint.
fn uncut(dir: &Dir, endpoint: &Endpoint) -> Uncut {
    Uncut::new(dir).args(["--base-url", &endpoint.base_url(), "--model", "m"])
}

fn last_line(ran: &Ran) -> &str {
    ran.stderr.lines().last().unwrap_or_default()
}

/// A run that fails: nothing on stdout, and a last line that names the outcome and says something.
#[track_caller]
fn assert_fails(ran: &Ran, code: i32, word: &str, says: &str) {
    assert_eq!(ran.code, Some(code), "{ran:?}");
    assert_eq!(ran.stdout, "", "{ran:?}");
    let line = last_line(ran);
    assert!(line.starts_with(&format!("uncut: {word}: ")), "{ran:?}");
    assert!(line.contains(says), "{line} should contain {says}");
}

/// Runs with these replies and flags, and expects the failure.
#[track_caller]
fn check(replies: Vec<Reply>, flags: &[&str], code: i32, word: &str, says: &str) {
    let dir = Dir::new("outcome");
    let endpoint = Endpoint::start(replies);
    let ran = uncut(&dir, &endpoint).args(flags).args(["--session", "s.jsonl", "go"]).run();
    assert_fails(&ran, code, word, says);
    endpoint.finish();
    let session = dir.read("s.jsonl");
    assert!(session.ends_with('\n'), "{session}");
    for line in session.lines() {
        let record: Value = serde_json::from_str(line).unwrap();
        assert_eq!(record["v"], 1, "{line}");
    }
}

fn says(finish_reason: &str, text: &str) -> Reply {
    let message = json!({"role": "assistant", "content": text});
    Reply::choice(json!({"finish_reason": finish_reason, "message": message}))
}

#[test]
fn an_answer_is_on_stdout_and_nothing_else_is() {
    let dir = Dir::new("answer");
    let endpoint = Endpoint::start(vec![
        Reply::tool_call("c1", "write_file", r#"{"path":"a.txt","content":"hello\n"}"#),
        Reply::tool_call("c2", "shell", r#"{"command":"cat a.txt; exit 3"}"#),
        Reply::answer("All\ndone.\n"),
    ]);
    let ran = uncut(&dir, &endpoint).args(["say", "hello"]).run();
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "All\ndone.\n"), "{ran:?}");
    assert!(!ran.stderr.contains('\u{1b}'), "{ran:?}");
    let requests = endpoint.finish();
    let messages = requests[2].messages();
    assert_eq!(messages[1], json!({"role": "user", "content": "say hello"}));
    let result = messages[5]["content"].as_str().unwrap();
    assert!(result.starts_with("hello\n") && result.contains("exit 3"), "{result}");
    assert_eq!(dir.read("a.txt"), "hello\n");
}

#[test]
fn the_prefix_of_a_request_is_the_same_in_every_step() {
    let dir = Dir::new("prefix");
    let endpoint = Endpoint::start(vec![
        Reply::tool_call("c1", "shell", r#"{"command":"date"}"#),
        Reply::tool_call("c2", "shell", r#"{"command":"true"}"#),
        Reply::answer("ok"),
    ]);
    assert_eq!(uncut(&dir, &endpoint).arg("go").run().code, Some(0));
    let requests = endpoint.finish();
    for pair in requests.windows(2) {
        // The earlier body ends in "]}" behind its last message.
        let shared = pair[0].raw.strip_suffix(b"]}").unwrap();
        assert!(pair[1].raw.starts_with(shared));
    }
}

#[test]
fn a_reply_that_the_model_did_not_finish_is_never_an_answer() {
    check(vec![says("length", "Half an ans")], &[], 12, "truncated", "length");
    let spent = Reply::choice(json!({
        "finish_reason": "stop",
        "message": {"role": "assistant", "content": "the gradient desc"},
    }));
    check(vec![spent], &["--max-tokens", "5"], 12, "truncated", "--max-tokens");
    let cut = r##"{"path":"out.md","content":"# Title\nfirst li"##;
    check(vec![Reply::tool_call("c", "write_file", cut)], &[], 12, "truncated", "write_file");
}

#[test]
fn nothing_of_a_refused_message_is_executed() {
    for finish_reason in ["length", "content_filter", "malformed_function_call"] {
        let dir = Dir::new("refused");
        let function = json!({"name": "shell", "arguments": "{\"command\":\"touch pwned\"}"});
        let call = json!({"id": "c1", "type": "function", "function": function});
        let message = json!({"role": "assistant", "content": null, "tool_calls": [call]});
        let reply = Reply::choice(json!({"finish_reason": finish_reason, "message": message}));
        let endpoint = Endpoint::start(vec![reply]);
        let ran = uncut(&dir, &endpoint).arg("go").run();
        assert_ne!(ran.code, Some(0), "{ran:?}");
        assert!(last_line(&ran).contains(finish_reason), "{ran:?}");
        assert!(!dir.path("pwned").exists());
    }
}

#[test]
fn a_refusal_is_filtered() {
    check(vec![says("content_filter", "")], &[], 13, "filtered", "content_filter");
    let message = json!({"role": "assistant", "content": "", "refusal": "I can't."});
    let reply = Reply::choice(json!({"finish_reason": "stop", "message": message}));
    check(vec![reply], &[], 13, "filtered", "I can't.");
}

#[test]
fn silence_is_empty() {
    check(vec![says("stop", " \n")], &[], 14, "empty", "without an answer");
    check(vec![says("tool_calls", "I will read it.")], &[], 14, "empty", "announced");
}

#[test]
fn what_is_no_completion_is_a_protocol_error() {
    let unknown = || says("eos", "done");
    check(vec![unknown()], &[], 11, "protocol", "--accept finish-reason:eos");
    check(vec![Reply::status(200, "{\"choices\":[]}")], &[], 11, "protocol", "choices");
    check(vec![Reply::status(200, "<html>Log in</html>")], &[], 11, "protocol", "HTML");
    let nameless = Reply::tool_call("c1", "", "");
    check(vec![nameless], &[], 11, "protocol", "without a name");
    let text = says("stop", "<tool_call>{\"name\":\"shell\",\"arguments\":{}}</tool_call>");
    check(vec![text], &[], 11, "protocol", "parser");
    let dir = Dir::new("accepted");
    let endpoint = Endpoint::start(vec![unknown()]);
    let ran = uncut(&dir, &endpoint).args(["--accept", "finish-reason:eos", "go"]).run();
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "done\n"), "{ran:?}");
}

#[test]
fn missing_ids_are_refused_and_made_up_only_on_request() {
    let call = || Reply::tool_call("", "shell", r#"{"command":"echo hi"}"#);
    check(vec![call()], &[], 11, "protocol", "--accept missing-ids");
    let dir = Dir::new("ids");
    let endpoint = Endpoint::start(vec![call(), call(), Reply::answer("ok")]);
    let ran = uncut(&dir, &endpoint).args(["--accept", "missing-ids", "go"]).run();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let requests = endpoint.finish();
    let messages = requests[2].messages();
    let ids: Vec<_> = [2, 4].map(|index| &messages[index]["tool_calls"][0]["id"]).to_vec();
    assert_ne!(ids[0], ids[1]);
    assert_eq!(ids, [&messages[3]["tool_call_id"], &messages[5]["tool_call_id"]]);
}

#[test]
fn an_endpoint_that_refuses_is_rejected_with_its_own_words() {
    for status in [400, 401, 403, 404, 422] {
        let body = r#"{"error":{"message":"no such thing here"}}"#;
        let reply = Reply::status(status, body);
        check(vec![reply], &[], 10, "rejected", "no such thing here");
    }
    let redirect = Reply::status(307, "").with_header("location", "http://elsewhere.example/v1");
    check(vec![redirect], &[], 10, "rejected", "http://elsewhere.example/v1");
}

#[test]
fn an_endpoint_that_is_not_to_be_had_now_is_transient() {
    let once = "--max-retries=0";
    for status in [408, 409, 425, 429, 500, 502, 503, 504, 520, 524, 529] {
        check(vec![Reply::status(status, "busy")], &[once], 75, "transient", "busy");
    }
    check(vec![Reply::answer("never whole").close_after(20)], &[once], 75, "transient", "");
    for flag in ["--idle-timeout", "--request-timeout"] {
        check(vec![Reply::stall()], &[once, flag, "1s"], 75, "transient", flag);
    }
}

#[test]
fn nothing_listening_is_transient_and_names_the_address() {
    let dir = Dir::new("nobody");
    let refusing = Refusing::start();
    let url = format!("http://{}/v1", refusing.address());
    let ran = Uncut::new(&dir).args(["--base-url", &url, "-m", "m", "go"]);
    let ran = ran.arg("--max-retries=0").run();
    assert_fails(&ran, 75, "transient", &refusing.address().to_string());
}

#[test]
fn a_request_that_failed_for_now_is_sent_again_byte_for_byte() {
    let dir = Dir::new("retry");
    let limit = Reply::status(429, r#"{"error":{"message":"slow down"}}"#);
    let endpoint = Endpoint::start(vec![
        limit.with_header("retry-after", "1"),
        Reply::answer("cut").close_after(20),
        Reply::reset(),
        Reply::answer("ok"),
    ]);
    let started = Instant::now();
    let ran = uncut(&dir, &endpoint).args(["--session", "s.jsonl", "go"]).run();
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "ok\n"), "{ran:?}");
    assert!(started.elapsed() >= Duration::from_secs(1));
    let said = "uncut: retry 1/4 in 1.0 s: the endpoint answered 429: slow down";
    assert_eq!(ran.stderr.lines().next(), Some(said));
    assert_eq!(ran.stderr.matches("uncut: retry ").count(), 3, "{ran:?}");
    let requests = endpoint.finish();
    assert!(requests.iter().all(|request| request.raw == requests[0].raw));
    assert_eq!(dir.read("s.jsonl").lines().count(), 2);
}

#[test]
fn spent_retries_are_told_with_the_last_words() {
    let busy = || {
        let reply = Reply::status(429, r#"{"error":{"message":"slow down, tier 1"}}"#);
        reply.with_header("retry-after-ms", "1")
    };
    let says = "429: slow down, tier 1 (3 attempts); try again later";
    check(vec![busy(), busy(), busy()], &["--max-retries=2"], 75, "transient", says);
    let later = || Reply::status(503, "").with_header("retry-after", "3600");
    check(vec![later()], &[], 75, "transient", "asks to wait 3600.0 s");
    let soon = Reply::status(503, "").with_header("retry-after", "100");
    check(vec![soon], &["--timeout", "50s"], 75, "transient", "asks to wait 100.0 s");
}

#[test]
fn a_model_that_is_loading_is_waited_for() {
    let dir = Dir::new("loading");
    let loading = || Reply::raw(include_bytes!("exchanges/llamacpp-loading-503.http").as_slice());
    let endpoint = Endpoint::start(vec![loading(), loading(), Reply::answer("ok")]);
    let ran = uncut(&dir, &endpoint).args(["--max-retries=0", "go"]).run();
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "ok\n"), "{ran:?}");
    assert!(ran.stderr.contains("the server is loading its model"), "{ran:?}");
}

#[test]
fn what_an_endpoint_does_not_know_is_left_out_once_and_for_the_rest_of_the_run() {
    let dir = Dir::new("fallback");
    let error =
        |message: &str| Reply::status(400, json!({"error": {"message": message}}).to_string());
    let endpoint = Endpoint::start(vec![
        error("Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."),
        error("Unknown parameter: 'stream_options'."),
        error("This model does not support streaming."),
        Reply::tool_call("a", "shell", r#"{"command":"true"}"#),
        Reply::answer("ok"),
    ]);
    let ran = uncut(&dir, &endpoint).args(["--max-tokens", "99", "--max-retries=0", "go"]).run();
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "ok\n"), "{ran:?}");
    assert_eq!(ran.stderr.matches("uncut: from now on ").count(), 3, "{ran:?}");
    let requests = endpoint.finish();
    assert_eq!(requests[0].body["max_tokens"], 99);
    assert_eq!(requests[0].body["stream"], true);
    assert_eq!(requests[1].body["stream_options"]["include_usage"], true);
    assert_eq!(requests[2].body["stream_options"], Value::Null);
    for request in &requests[3..] {
        assert_eq!(request.body["max_completion_tokens"], 99);
        assert_eq!(request.body["max_tokens"], Value::Null);
        assert_eq!(request.body["stream"], false);
    }
}

#[test]
fn what_the_user_adds_to_a_request_is_in_each_of_them() {
    let dir = Dir::new("extra");
    let thought = Reply::choice(json!({"finish_reason": "tool_calls", "message": {
        "content": null, "reasoning_content": "hm", "tool_calls": [{"id": "a",
            "function": {"name": "shell", "arguments": "{\"command\":\"true\"}"}}]}}));
    let endpoint = Endpoint::start(vec![thought, Reply::answer("ok")]).unpoliced();
    let ran = uncut(&dir, &endpoint)
        .args(["--extra-body", r#"{"temperature":0.10}"#, "--no-stream", "-v"])
        .args(["--header", "X-Title: run", "--header", "Authorization: Token tok-12345678"])
        .args(["--accept", "no-reasoning-echo", "--api-key", "sk-TESTKEY-1", "go"])
        .run();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let requests = endpoint.finish();
    assert_eq!(requests.len(), 2);
    for request in &requests {
        let raw = String::from_utf8(request.raw.clone()).unwrap();
        assert!(raw.contains(r#""stream":false,"temperature":0.10,"#), "{raw}");
        assert!(!raw.contains("reasoning_content"), "{raw}");
        assert_eq!(request.header("x-title"), Some("run"));
        assert_eq!(request.header("authorization"), Some("Token tok-12345678"));
    }
    let problem = |flag: &str, value: &str, says: &str| {
        let ran = Uncut::new(&dir).args(["-m", "m", flag, value, "go"]).run();
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{ran:?}");
        assert!(ran.stderr.starts_with(&format!("uncut: usage: {flag}: {says}")), "{ran:?}");
        assert!(!ran.stderr.contains("secret"), "{ran:?}");
    };
    problem("--extra-body", r#"{"messages":["secret"]}"#, "\"messages\" can't be set in it");
    problem("--extra-body", "secret", "it is not JSON");
    problem("--header", "Host: secret", "host can't be set");
}

#[test]
fn what_a_retry_can_not_change_is_sent_once() {
    let error = |message: &str| json!({"error": {"message": message}}).to_string();
    let quota =
        r#"{"error":{"message":"You exceeded your current quota","code":"insufficient_quota"}}"#;
    check(vec![Reply::status(429, quota)], &[], 10, "rejected", "exceeded your current quota");
    let crash = error("Context size has been exceeded.");
    check(vec![Reply::status(500, crash)], &[], 15, "context", "context size");
    let both = "This model's maximum context length is 128000 tokens. However, you requested 65535 \
                output tokens and your prompt contains at least 62466 input tokens";
    let overflow = || Reply::status(400, error(both));
    check(vec![overflow()], &[], 15, "context", "62466 input tokens");
    check(vec![overflow()], &[], 15, "context", "lower --max-tokens");
    let bare =
        r#"{"object":"error","message":"max_tokens must be at least 1, got -186.","code":400}"#;
    check(vec![Reply::status(400, bare)], &[], 15, "context", "lower --max-tokens");
}

#[test]
fn the_steps_the_tokens_and_the_time_of_a_run_are_limited() {
    let call = |id: &str| {
        Reply::tool_call(id, "shell", &json!({"command": format!("echo {id}")}).to_string())
    };
    let two = vec![call("a"), call("b"), Reply::answer("A summary is no answer.")];
    check(two, &["--max-steps", "2"], 20, "max_steps", "--max-steps");
    let flags = ["--max-total-tokens", "15"];
    check(vec![call("a")], &flags, 21, "max_tokens_total", "--max-total-tokens");
    check(vec![Reply::stall()], &["--timeout", "1"], 124, "deadline", "--timeout");
    let sleep = Reply::tool_call("a", "shell", r#"{"command":"sleep 600"}"#);
    let late = vec![sleep, Reply::stall()];
    check(late, &["--timeout", "1"], 124, "deadline", "--timeout");
    let same = (0..8).map(|n| Reply::tool_call(&n.to_string(), "shell", r#"{"command":"true"}"#));
    check(same.collect(), &[], 22, "stuck", "8 times");
}

#[test]
fn the_last_request_of_a_run_without_an_answer_asks_for_a_summary() {
    let dir = Dir::new("summary");
    let call = Reply::tool_call("a", "shell", r#"{"command":"echo half"}"#);
    let endpoint = Endpoint::start(vec![call, Reply::answer("Half is done.")]);
    let ran = uncut(&dir, &endpoint).args(["--max-steps", "1", "--session", "s.jsonl", "go"]).run();
    assert_fails(&ran, 20, "max_steps", "--max-steps");
    assert!(ran.stderr.contains("uncut: summary: Half is done.\n"), "{ran:?}");
    let requests = endpoint.finish();
    let shared = requests[0].raw.strip_suffix(b"]}").unwrap();
    assert!(requests[1].raw.starts_with(shared));
    assert_eq!(requests[1].body["tool_choice"], "none");
    assert_eq!(requests[1].body["tools"], requests[0].body["tools"]);
    let session = dir.read("s.jsonl");
    assert!(session.lines().last().unwrap().contains("Half is done."), "{session}");
    assert_eq!(session.lines().count(), 5, "{session}");
}

#[test]
fn tool_failures_are_results_and_end_nothing() {
    let dir = Dir::new("tools");
    let endpoint = Endpoint::start(vec![
        Reply::tool_calls(&[
            ("a", "launch_rocket", "{}"),
            ("b", "shell", "not json"),
            ("c", "shell", r#"{"cmd":"ls"}"#),
            ("d", "shell", r#"{"command":7}"#),
            ("e", "read_file", r#"{"path":"missing"}"#),
            ("f", "write_file", r#"{"path":"a","path":"b","content":""}"#),
            ("g", "shell", r#"{"command":"echo ok","timeout":"20.0","invented":true}"#),
            ("h", "shell", r#"{"command":"echo ok","timeout":-1}"#),
        ]),
        Reply::answer("ok"),
    ]);
    let ran = uncut(&dir, &endpoint).arg("go").run();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let requests = endpoint.finish();
    let results: Vec<&str> =
        requests[1].messages()[3..].iter().map(|m| m["content"].as_str().unwrap()).collect();
    let told =
        ["shell, read_file", "object", "command", "command", "missing", "path", "ok", "timeout"];
    for (result, told) in results.iter().zip(told) {
        assert!(result.contains(told), "{result} should contain {told}");
    }
    assert_eq!(results.len(), told.len());
    let sent = &requests[1].messages()[2]["tool_calls"][1]["function"]["arguments"];
    let sent: Value = serde_json::from_str(sent.as_str().unwrap()).unwrap();
    assert!(sent.is_object() && sent.to_string().contains("not json"), "{sent}");
}

#[test]
fn nothing_that_a_command_started_outlives_the_run() {
    let dir = Dir::new("background");
    let command = r#"{"command":"sleep 600 >/dev/null & echo $! > pid"}"#;
    let endpoint =
        Endpoint::start(vec![Reply::tool_call("c", "shell", command), Reply::answer("ok")]);
    assert_eq!(uncut(&dir, &endpoint).arg("go").run().code, Some(0));
    let process = format!("/proc/{}/cmdline", dir.read("pid").trim());
    // The signal was sent before the binary ended. Until it is delivered the process is still
    // there, and until it is reaped it has no command line.
    let alive = || std::fs::read_to_string(&process).is_ok_and(|line| !line.is_empty());
    let sent = Instant::now();
    while alive() {
        assert!(sent.elapsed() < Duration::from_secs(10), "it lives on");
        std::thread::yield_now();
    }
}

#[test]
fn a_stdout_that_takes_nothing_is_internal() {
    let dir = Dir::new("full");
    let endpoint = Endpoint::start(vec![Reply::answer("lost")]);
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let ran = uncut(&dir, &endpoint).arg("go").run_with_stdout(Stdio::from(writer));
    assert_fails(&ran, 1, "internal", "stdout");
    endpoint.finish();
}

#[test]
fn what_an_endpoint_quotes_of_the_url_is_masked() {
    let dir = Dir::new("url");
    let quoted = Reply::status(401, r#"{"error":"no user hunter2pass with tok-12345678"}"#);
    let endpoint = Endpoint::start(vec![quoted]).unpoliced();
    let url = endpoint.base_url().replace("http://", "http://user:hunter2pass@");
    let url = format!("{url}?api-key=tok-12345678");
    let ran = Uncut::new(&dir).args(["--base-url", &url, "-m", "m", "go"]).run();
    assert_fails(&ran, 10, "rejected", "no user [api key] with [api key]");
}

#[test]
fn credentials_that_are_refused_are_named_by_where_they_came_from() {
    let dir = Dir::new("refused-key");
    dir.write("r.jsonl", "{\"error\":{\"message\":\"no\",\"code\":401}}\n");
    let refuse = || Reply::status(401, r#"{"error":{"message":"no"}}"#);
    let endpoint = Endpoint::start(vec![refuse(), refuse(), refuse()]).unpoliced();
    let with_user = endpoint.base_url().replace("http://", "http://user:secret-1@");
    let key = || uncut(&dir, &endpoint).env("OPENAI_API_KEY", "sk-TESTKEY-1");
    let user = Uncut::new(&dir).args(["--base-url", &with_user, "-m", "m"]);
    let replay = Uncut::new(&dir).args(["--replay", "r.jsonl"]);
    for (uncut, says) in [
        (key(), "check the key, which came from OPENAI_API_KEY"),
        (user, "check the user and password in the base URL"),
        (uncut(&dir, &endpoint), "no key was sent; set UNCUT_API_KEY"),
        (replay, "the recorded response says so"),
    ] {
        assert_fails(&uncut.arg("go").run(), 10, "rejected", says);
    }
}

#[test]
fn instructions_and_limits_of_the_command_line_are_obeyed() {
    let dir = Dir::new("obeyed");
    dir.write("AGENTS.md", "x".repeat(40_000) + "\n");
    dir.write("other.md", "Say please.\n");
    let sleep = Reply::tool_call("a", "shell", r#"{"command":"sleep 600"}"#);
    let endpoint = Endpoint::start(vec![sleep, Reply::answer("one"), Reply::answer("two")]);
    let ran = uncut(&dir, &endpoint).args(["--command-timeout", "1s", "go"]).run();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stderr.contains("warning: ") && ran.stderr.contains("AGENTS.md"), "{ran:?}");
    let ran = uncut(&dir, &endpoint).args(["--agents-md", "other.md", "go"]).run();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let requests = endpoint.finish();
    let system = |index: usize| requests[index].messages()[0]["content"].as_str().unwrap();
    assert!(system(0).contains(&"x".repeat(30_000)));
    assert!(system(2).contains("Say please.") && !system(2).contains("xxx"));
    let here = dir.path("").display().to_string();
    let here = format!("{}\n", here.trim_end_matches('/'));
    assert!(system(0).contains(&here), "{}", &system(0)[..600]);
    let result = requests[1].messages()[3]["content"].as_str().unwrap();
    assert!(result.contains("timed out after 1s"), "{result}");
}

#[test]
fn a_placeholder_for_a_key_is_not_masked() {
    let dir = Dir::new("placeholder");
    let write = r#"{"path":"a","content":"api_key = lm-studio"}"#;
    let replies = vec![Reply::tool_call("c", "write_file", write), Reply::answer("lm-studio")];
    let endpoint = Endpoint::start(replies).expect_key("lm-studio");
    let ran = uncut(&dir, &endpoint).args(["--api-key", "lm-studio", "go"]).run();
    assert_eq!(ran.stdout, "lm-studio\n", "{ran:?}");
    assert_eq!(dir.read("a"), "api_key = lm-studio");
}

#[test]
fn the_key_is_sent_and_appears_nowhere_else() {
    let key = "sk-TESTKEY-1";
    let dir = Dir::new("key");
    let endpoint = Endpoint::start(vec![
        Reply::tool_call("a", "shell", r#"{"command":"env; cat key.txt"}"#),
        Reply::status(401, format!("{{\"error\":\"Incorrect API key provided: {key}\"}}")),
    ])
    .expect_key(key);
    dir.write("key.txt", key);
    dir.write("AGENTS.md", format!("The key is {key}.\n"));
    let ran = uncut(&dir, &endpoint)
        .env("UNCUT_API_KEY", key)
        .args(["-v", "--session", "s.jsonl", "use", key])
        .run();
    assert_fails(&ran, 10, "rejected", "[api key]");
    assert!(!ran.stderr.contains(key), "{ran:?}");
    for request in endpoint.finish() {
        assert!(!request.raw.windows(key.len()).any(|bytes| bytes == key.as_bytes()));
    }
    let session = dir.read("s.jsonl");
    assert!(!session.contains(key) && session.contains("[api key]"), "{session}");
}

#[test]
fn a_prompt_in_the_arguments_leaves_stdin_alone() {
    let dir = Dir::new("stdin");
    let endpoint = Endpoint::start(vec![Reply::answer("a")]);
    // Nobody ever writes to this pipe or closes it: whoever reads it waits for ever.
    let (reader, _writer) = std::io::pipe().unwrap();
    let mut uncut = uncut(&dir, &endpoint).arg("go").into_command();
    let child = uncut.stdin(reader).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let ran = finish(child);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "a\n"), "{ran:?}");
}

#[test]
fn a_prompt_comes_from_stdin_when_there_is_no_other() {
    let dir = Dir::new("piped");
    let endpoint = Endpoint::start(vec![Reply::answer("a"), Reply::answer("b")]);
    assert_eq!(uncut(&dir, &endpoint).stdin("from stdin\n").run().code, Some(0));
    assert_eq!(uncut(&dir, &endpoint).args(["words", "-"]).stdin("piped").run().code, Some(0));
    let requests = endpoint.finish();
    let prompt = |index: usize| requests[index].messages()[1]["content"].as_str().unwrap().trim();
    assert_eq!(prompt(0), "from stdin");
    assert_eq!(prompt(1), "words\n\npiped");
}

#[test]
fn a_recording_needs_neither_model_nor_network() {
    let dir = Dir::new("replay");
    let call = json!({"choices": [{"finish_reason": "tool_calls", "message": {"content": null,
        "tool_calls": [{"id": "c", "function": {"name": "shell",
            "arguments": "{\"command\":\"echo real > made\"}"}}]}}]});
    let answer = json!({"choices": [{"finish_reason": "stop", "message": {"content": "done"}}]});
    dir.write("script.jsonl", format!("{call}\n{answer}\n"));
    let ran = Uncut::new(&dir).args(["--replay", "script.jsonl", "go"]).run();
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "done\n"), "{ran:?}");
    assert_eq!(dir.read("made"), "real\n");
    dir.write("short.jsonl", format!("{call}\n"));
    let ran = Uncut::new(&dir).args(["--replay", "short.jsonl", "go"]).run();
    assert_fails(&ran, 11, "protocol", "short.jsonl");
}

#[test]
fn a_closed_stderr_changes_nothing() {
    let dir = Dir::new("stderr");
    let endpoint = Endpoint::start(vec![Reply::answer("a")]);
    let full = File::options().write(true).open("/dev/full").unwrap();
    let mut uncut = uncut(&dir, &endpoint).arg("go").into_command();
    let child = uncut.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(full).spawn().unwrap();
    let ran = finish(child);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "a\n"), "{ran:?}");
}

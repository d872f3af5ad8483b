//! Secrets of every kind and spelling, and what a mask must leave as it is.

use std::fs;

use serde_json::{Value, json};

use crate::results::{events, on};
use crate::support::endpoint::{Endpoint, Reply, Request};
use crate::support::sandbox::{Dir, Ran, Uncut};

const FORMS: [bool; 2] = [false, true];

/// A reply in one body, or the same as a stream.
fn reply(is_stream: bool, message: &Value, finish_reason: &str, tokens: u64) -> Reply {
    let usage = json!({"prompt_tokens": tokens, "completion_tokens": 5});
    if !is_stream {
        let choice = json!({"index": 0, "message": message, "finish_reason": finish_reason});
        return Reply::json(&json!({"model": "m", "choices": [choice], "usage": usage}));
    }
    let mut delta = message.clone();
    for (index, call) in delta["tool_calls"].as_array_mut().into_iter().flatten().enumerate() {
        call["index"] = json!(index);
    }
    let first = json!({"model": "m", "choices": [{"index": 0, "delta": delta}]});
    let last = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": finish_reason}]});
    let usage = json!({"choices": [], "usage": usage});
    let events = [first, last, usage].map(|event| format!("data: {event}"));
    Reply::stream(&[&events[..], &["data: [DONE]".to_owned()]].concat())
}

fn call(is_stream: bool, name: &str, arguments: &str) -> Reply {
    let function = json!({"name": name, "arguments": arguments});
    let call = json!({"id": "c1", "type": "function", "function": function});
    let message = json!({"role": "assistant", "content": null, "tool_calls": [call]});
    reply(is_stream, &message, "tool_calls", 12_345_678)
}

fn answer(is_stream: bool, text: &str) -> Reply {
    let thought = json!([{"type": "reasoning_text", "text": text, "n": 12_345_678}]);
    let message = json!({"role": "assistant", "content": text, "reasoning_details": thought});
    reply(is_stream, &message, "stop", 12_345_679)
}

/// A request of which every string but the words of the protocol had this key masked.
fn strings_masked(value: &Value, key: &str) -> Value {
    match value {
        Value::String(text) => json!(text.replace(key, "[api key]")),
        Value::Array(list) => list.iter().map(|value| strings_masked(value, key)).collect(),
        Value::Object(members) => {
            let masked = members.iter().map(|(name, value)| {
                let is_word = ["role", "type", "name"].contains(&name.as_str());
                let value = if is_word { value.clone() } else { strings_masked(value, key) };
                (name.clone(), value)
            });
            Value::Object(masked.collect())
        }
        other => other.clone(),
    }
}

/// The requests of a run and of one that resumes it.
fn run_twice(is_stream: bool, key: &str) -> (Vec<Request>, Ran, String) {
    let arguments = r#"{"path":"f","offset":1,"12345678":12345678,"x":"function assistant"}"#;
    let dir = Dir::new("strings").with("f", "12345678 function assistant read_file\n");
    let replies = vec![
        call(is_stream, "read_file", arguments),
        answer(is_stream, "the function of 12345678, assistant"),
        answer(is_stream, "still 12345678"),
    ];
    let endpoint = Endpoint::start(replies).expect_key(key);
    let mut last = None;
    for prompt in ["call the function", "again, assistant"] {
        let flags = ["--session", "s.jsonl", "--max-tokens", "123456780", "--output", "jsonl"];
        let extra = ["--extra-body", r#"{"seed":12345678,"tool_choice":"required"}"#];
        let form: &[&str] = if is_stream { &[] } else { &["--no-stream"] };
        let uncut = on(&dir, &endpoint).args(flags).args(extra).args(form);
        let ran = uncut.args(["--no-agents-md", "--api-key", key, prompt]).run();
        assert_eq!(ran.code, Some(0), "{key}: {ran:?}");
        last = Some(ran);
    }
    let session = dir.read("s.jsonl");
    let folder = dir.path("").display().to_string();
    let requests = endpoint.finish();
    let session = session.replace(&folder, "");
    (requests, last.unwrap(), session)
}

/// The folder of a test is never called the same.
fn without_folder(request: &Request) -> Value {
    let mut body = request.body.clone();
    body["messages"][0]["content"] = json!("");
    body
}

#[test]
fn a_mask_changes_strings_and_nothing_else() {
    for is_stream in FORMS {
        let (plain, ..) = run_twice(is_stream, "sk-of-no-text");
        for key in [
            "function",
            "assistant",
            "12345678",
            "read_file",
            "required",
            "completion",
            "tool_calls",
            "duration_ms",
            "messages",
        ] {
            let (masked, ran, session) = run_twice(is_stream, key);
            for (plain, masked) in plain.iter().zip(&masked) {
                let mut expected = strings_masked(&without_folder(plain), key);
                for member in ["tools", "tool_choice"] {
                    expected[member] = plain.body[member].clone();
                }
                // The names in arguments stay too.
                for message in expected["messages"].as_array_mut().unwrap() {
                    if let Some(call) = message.pointer_mut("/tool_calls/0/function/arguments") {
                        let text =
                            call.as_str().unwrap().replace("\"[api key]\":", "\"12345678\":");
                        let text = text.replace(":[api key]", ":12345678");
                        *call = json!(text);
                    }
                }
                assert_eq!(without_folder(masked), expected, "{key}");
            }
            for line in session.lines() {
                let record: Value = serde_json::from_str(line).expect(line);
                let message = &record["message"];
                assert!(record["v"] == 1 && message["role"].is_string(), "{line}");
                if message["role"] == "assistant" {
                    let tokens = record["usage"]["prompt_tokens"].as_u64().unwrap();
                    assert!((12_345_678..=12_345_679).contains(&tokens), "{line}");
                    let reason = record["finish_reason"].as_str().unwrap();
                    assert!(["stop", "tool_calls"].contains(&reason), "{line}");
                }
                for call in message["tool_calls"].as_array().into_iter().flatten() {
                    assert_eq!(call["function"]["name"], "read_file", "{line}");
                }
            }
            let events = events(&ran);
            let types: Vec<&str> =
                events.iter().map(|event| event["type"].as_str().unwrap()).collect();
            assert_eq!(types, ["start", "step", "completion", "result"], "{key}");
            let result = events.last().unwrap();
            assert_eq!(result["tokens"]["prompt"], 12_345_679, "{key}");
            assert!(result["duration_ms"].is_u64() && result["outcome"] == "ok", "{key}");
        }
    }
}

#[test]
fn other_secrets_of_the_environment_are_masked_by_their_names() {
    for is_stream in FORMS {
        let dir = Dir::new("variables");
        let folder = dir.path("").file_name().unwrap_or_default().to_str().unwrap().to_owned();
        let shell = json!({"command": "env; printf %s \"$GITHUB_TOKEN\" | wc -c"}).to_string();
        let endpoint =
            Endpoint::start(vec![call(is_stream, "shell", &shell), answer(is_stream, "done")]);
        let pem = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0B\nAQEFAASCBKcw\n\
                   -----END PRIVATE KEY-----\n";
        let variables = [
            ("GITHUB_TOKEN", "ghp_TESTSECRET", "GITHUB_TOKEN=[GITHUB_TOKEN]"),
            ("deploy_key", pem, "deploy_key=[deploy_key]"),
            ("PGPASSWORDS", "hunter2-TESTSECRET", "PGPASSWORDS=[PGPASSWORDS]"),
            ("A_KEY", "short-value", "A_KEY=short-value"),
            ("B_KEY", "/etc/ssl/private/x", "B_KEY=/etc/ssl/private/x"),
            ("C_SECRET", "https://vault.example/x", "C_SECRET=https://vault.example/x"),
            ("D_TOKEN", folder.as_str(), &*format!("D_TOKEN={folder}")),
            ("E_TOKENS", "not-in-the-list", "E_TOKENS=not-in-the-list"),
        ];
        let mut uncut = on(&dir, &endpoint).args(["--session", "s", "-v", "go"]);
        for (name, value, _) in variables {
            uncut = uncut.env(name, value);
        }
        let ran = uncut.run();
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let requests = endpoint.finish();
        let told = requests[1].messages()[3]["content"].as_str().unwrap();
        for (_, _, expected) in variables {
            assert!(told.contains(&format!("{expected}\n")), "{expected} in {told}");
        }
        // The command had it.
        assert!(told.contains("\n14\n") || told.contains(" 14\n"), "{told}");
        for text in [told, &dir.read("s"), &ran.stderr, &ran.stdout] {
            for secret in ["TESTSECRET", "MIIEvQ", "AQEFAA"] {
                assert!(!text.contains(secret), "{text}");
            }
        }
    }
}

/// As a page of an endpoint, a header of it and its error quote them.
#[test]
fn a_secret_is_masked_however_others_spell_it() {
    let key = "sk-TEST/KEY+9";
    for spelled in [r"sk-TEST\/KEY+9", r"\u0073k-TEST\u002fKEY+9", "sk-TEST%2FKEY%2b9", key] {
        for format in ["text", "json", "jsonl"] {
            let dir = Dir::new("spelled");
            let body = format!(r#"{{"error":{{"message":"no {spelled}"}},"other":"{spelled}"}}"#);
            let refused = Reply::status(400, body);
            let moved = Reply::status(302, "").with_header("location", spelled);
            let html = Reply::status(200, format!("<p>{spelled}</p>"));
            for reply in [refused, moved, html] {
                let endpoint = Endpoint::start(vec![reply]).expect_key(key);
                let flags = ["--output", format, "-o", "out", "--session", "s.jsonl", "go"];
                let ran = on(&dir, &endpoint).env("UNCUT_API_KEY", key).args(flags).run();
                assert_ne!(ran.code, Some(0), "{ran:?}");
                assert!(ran.stderr.contains("[api key]"), "{ran:?}");
                let out = fs::read_to_string(dir.path("out")).unwrap_or_default();
                for text in [&ran.stdout, &ran.stderr, &out, &dir.read("s.jsonl")] {
                    assert!(!text.contains("KEY+9") && !text.contains("KEY%2b9"), "{text}");
                }
            }
        }
    }
}

#[test]
fn arguments_and_unknown_members_are_masked_where_they_are_decoded() {
    let key = "sk-TEST/KEY+9";
    for is_stream in FORMS {
        let dir = Dir::new("decoded");
        let arguments = r#"{"path": "sk-TEST\/KEY+9", "n": 1.50, "x":["\u0073k-TEST/KEY+9","\/"]}"#;
        let message = json!({"role": "assistant", "content": null, "mine": {"a": key, "n": 1},
            "tool_calls": [{"id": "c1", "type": "function",
                "function": {"name": "read_file", "arguments": arguments}}]});
        let endpoint = Endpoint::start(vec![
            reply(is_stream, &message, "tool_calls", 10),
            answer(is_stream, "done"),
        ])
        .expect_key(key);
        let uncut = on(&dir, &endpoint).env("UNCUT_API_KEY", key);
        let ran = uncut.args(["--session", "s", "--output", "jsonl", "go"]).run();
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let requests = endpoint.finish();
        let sent = &requests[1].messages()[2];
        assert_eq!(
            sent["tool_calls"][0]["function"]["arguments"],
            r#"{"path": "[api key]", "n": 1.50, "x":["[api key]","\/"]}"#
        );
        assert_eq!(sent["mine"], json!({"a": "[api key]", "n": 1}));
        for text in [&dir.read("s"), &ran.stdout, &ran.stderr] {
            assert!(!text.contains("KEY+9"), "{text}");
        }
    }
}

#[test]
fn what_is_secret_of_urls_and_headers_is_masked_in_every_form() {
    let secrets = "p%40ss-word-1 p@ss-word-1 proxy%2Fpass proxy/pass si%2Bgn-12345 si+gn-12345 \
                   cred-1234567 SESSION-1234 digest-1234567 darkmode";
    for is_stream in FORMS {
        let dir = Dir::new("urls").with("f", secrets);
        let arguments = r#"{"command":"cat f; env"}"#;
        let endpoint = Endpoint::start(vec![
            call(is_stream, "shell", arguments),
            Reply::status(400, format!("{{\"error\":\"{secrets}\"}}")),
        ])
        .unpoliced();
        let url = endpoint.base_url().replace("http://", "http://user:p%40ss-word-1@");
        let url = format!("{url}?X-Signature=si%2Bgn-12345&my-credential=cred-1234567");
        let uncut = Uncut::new(&dir).args(["--base-url", &url, "-m", "m"]);
        let uncut = uncut.env("ALL_PROXY", "socks5://user:proxy%2Fpass@host.invalid:1");
        let uncut = uncut.args(["--header", "Cookie: sid=SESSION-1234; theme=dark"]);
        let uncut = uncut.args(["--header", "X-Auth: Digest a=\"digest-1234567\", b=c"]);
        let ran = uncut.args(["--session", "s", "--no-agents-md", "go"]).run();
        assert_eq!(ran.code, Some(10), "{ran:?}");
        let requests = endpoint.finish();
        let told = requests[1].messages()[3]["content"].as_str().unwrap();
        let masks = format!("{}darkmode", "[api key] ".repeat(9));
        assert!(told.contains(&masks), "{told}");
        assert!(ran.stderr.contains(&masks), "{ran:?}");
        for text in [told, &dir.read("s"), &ran.stderr] {
            for word in secrets.split_whitespace().filter(|word| *word != "darkmode") {
                assert!(!text.contains(word), "{word} in {text}");
            }
        }
    }
}

#[test]
fn of_two_keys_the_longer_is_held_back_as_long_as_it_may_go_on() {
    for is_stream in FORMS {
        let dir = Dir::new("two-keys");
        // In two writes with time between, so that the first is read alone.
        let shell = "printf 'x sk-TESTKEY'; sleep 0.3; printf -- '-LONGER y sk-TESTKEY z'";
        let shell = json!({ "command": shell }).to_string();
        let endpoint =
            Endpoint::start(vec![call(is_stream, "shell", &shell), answer(is_stream, "done")])
                .expect_key("sk-TESTKEY");
        let uncut = on(&dir, &endpoint).env("OPENAI_API_KEY", "sk-TESTKEY-LONGER");
        let ran = uncut.args(["--api-key", "sk-TESTKEY", "go"]).run();
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let requests = endpoint.finish();
        let told = requests[1].messages()[3]["content"].as_str().unwrap();
        assert!(told.contains("x [api key] y [api key] z"), "{told}");
    }
}

#[test]
fn no_format_character_reaches_stderr() {
    let odd =
        "\u{61c}\u{200e}\u{200f}\u{202a}\u{202e}\u{2066}\u{2069}\u{feff}\u{e0041}\u{ad}\u{2060}";
    let dir = Dir::new("format");
    let endpoint = Endpoint::start(vec![Reply::status(400, format!("{{\"error\":\"a{odd}b\"}}"))]);
    let ran = on(&dir, &endpoint).arg("go").run();
    assert!(ran.stderr.contains("a\\u{61c}\\u{200e}"), "{ran:?}");
    assert!(!ran.stderr.contains(|c: char| odd.contains(c)), "{ran:?}");
}

/// The model saw the mask and writes it back.
#[test]
fn a_mask_is_never_written_over_its_secret() {
    let (key, token) = ("sk-TESTKEY-9", "ghp_TESTSECRET");
    let content = format!("a = {key}\nb = {token}\nc = [api key]\n");
    let write = json!({"path": "f", "content": "a = [api key]\n"});
    let other = json!({"path": "g", "content": "a = [api key]\n"});
    let edit = |old: &str, new: &str| json!({"path": "f", "old_string": old, "new_string": new});
    for (name, arguments, is_done) in [
        ("write_file", write, false),
        ("write_file", other, true),
        ("edit_file", edit("b = [GITHUB_TOKEN]", "b = 1"), false),
        ("edit_file", edit(&format!("a = {key}"), "A = [api key]"), false),
        ("edit_file", edit("c = [api key]", "c = 1"), true),
        ("edit_file", edit("b = ", "B = "), true),
    ] {
        let dir = Dir::new("written").with("f", &content).with("g", "a = 1\n");
        let arguments = arguments.to_string();
        let endpoint = Endpoint::start(vec![call(false, name, &arguments), answer(false, "done")])
            .expect_key(key);
        let uncut = on(&dir, &endpoint).args(["--no-stream", "--api-key", key, "go"]);
        let ran = uncut.env("GITHUB_TOKEN", token).run();
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let requests = endpoint.finish();
        let told = requests[1].messages()[3]["content"].as_str().unwrap();
        let is_refused = told.contains("shown in place of a secret");
        assert_eq!(is_refused, !is_done, "{name} {arguments}: {told}");
        let now = dir.read("f");
        assert!(now.contains(key) && now.contains(token), "{now}");
        if !is_done {
            assert_eq!(now, content, "{told}");
        }
    }
}

//! The key, wherever it could appear: nowhere.

use std::process::Command;

use serde_json::{Value, json};

use crate::results::{events, on, says};
use crate::support::endpoint::{Endpoint, Reply};
use crate::support::sandbox::{Dir, Uncut, finish};

#[test]
fn nothing_that_machines_are_told_shows_the_key() {
    let key = "sk-TESTKEY-9";
    for format in ["json", "jsonl"] {
        let dir = Dir::new("key");
        let arguments = json!({"command": format!("echo {key}")}).to_string();
        let endpoint = Endpoint::start(vec![
            Reply::status(503, key),
            Reply::tool_call(key, "shell", &arguments),
            Reply::answer(&format!("It is {key}.")),
            Reply::answer(&format!("It is still {key}.")),
        ])
        .expect_key(key);
        let verify = format!("echo {key}; exit 1");
        let ran = on(&dir, &endpoint)
            .env("UNCUT_API_KEY", key)
            .args(["--output", format, "-o", "out", "--verify", &verify])
            .args(["--verify-attempts", "2", "--session", "s.jsonl", "go"])
            .run();
        assert_eq!(ran.code, Some(40), "{ran:?}");
        let said = [&ran.stdout, &ran.stderr, &dir.read("out"), &dir.read("s.jsonl")];
        for text in said {
            assert!(!text.contains("TESTKEY") && text.contains("[api key]"), "{text}");
        }
    }
}

/// The key is the name of whatever has one: model, working directory, session, instructions, and a
/// process that is left running. One run ends by itself, the other by a signal.
#[test]
fn no_member_of_any_line_shows_the_key() {
    let key = "sk-TESTKEY-9";
    let leave_running = format!(
        "printf '#!/bin/sh\n: > up; sleep 300\n' > {key}; chmod +x {key}; ./{key} >&- 2>&- & \
         while [ ! -e up ]; do sleep 0.01; done"
    );
    let arguments = json!({"command": leave_running}).to_string();
    for by_signal in [false, true] {
        let dir = Dir::new("names").with("sk-TESTKEY-9/AGENTS.md", key);
        let call = Reply::tool_call(key, "shell", &arguments);
        let last = if by_signal { Reply::stall() } else { Reply::answer(&format!("Ran {key}.")) };
        let endpoint = Endpoint::start(vec![call, last]).expect_key(key);
        let uncut = Uncut::new(&dir).args(["--base-url", &endpoint.base_url(), "-m", key]);
        let session = format!("{key}.jsonl");
        let steps = if by_signal { "2" } else { "1" };
        let uncut = uncut.env("UNCUT_API_KEY", key).args(["-v", "-C", key, "--session", &session]);
        let child =
            uncut.args(["--output", "jsonl", "-o", "out", "--max-steps", steps, "go"]).spawn();
        if by_signal {
            endpoint.wait_for_requests(2);
            let id = child.id().to_string();
            assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
        }
        let ran = finish(child);
        assert_eq!(ran.code, Some(if by_signal { 143 } else { 20 }), "{ran:?}");
        for text in [&ran.stdout, &ran.stderr, &dir.read("out")] {
            assert!(!text.contains("TESTKEY"), "{text}");
        }
        assert!(ran.stderr.contains("uncut: killed at the end: [api key]"), "{ran:?}");
        let events = events(&ran);
        let start = events.iter().find(|event| event["type"] == "start").unwrap();
        let result = events.last().unwrap();
        let directory = dir.path("[api key]").display().to_string();
        for (found, expected) in [
            (&start["model"], "[api key]"),
            (&start["directory"], &*directory),
            (&start["session"], &format!("{directory}.jsonl")),
            (&events[0]["path"], &format!("{directory}/AGENTS.md")),
            (&result["model"], "[api key]"),
            (&result["session"], &format!("{directory}.jsonl")),
            (&result["agents_md"][0]["path"], &format!("{directory}/AGENTS.md")),
            (&result["killed"][0], "[api key]"),
        ] {
            assert_eq!(found, expected, "{ran:?}");
        }
        if !by_signal {
            assert_eq!(result["summary"], "Ran [api key].", "{ran:?}");
        }
    }
}

#[test]
fn what_is_said_of_a_damaged_session_is_short_whatever_stands_in_it() {
    let dir = Dir::new("short");
    let role = "x".repeat(100_000);
    dir.write("s", format!("{{\"v\":1,\"message\":{{\"role\":\"{role}\"}}}}\n"));
    let run = |flag: &str| {
        let flags = ["--session", "s", "--output", "json", flag];
        let ran = Uncut::new(&dir).args(flags).run();
        serde_json::from_str::<Value>(&ran.stdout).expect(&ran.stdout)
    };
    for said in [&run("--show-session")["message"], &run("--repair-session")["repaired"]["detail"]]
    {
        let said = said.as_str().unwrap();
        assert!(said.contains("unknown role \"xxx") && said.len() <= 2_000, "{said}");
    }
}

/// Without a scheme it is no URL, and only known as a secret once the proxy is.
#[test]
fn the_password_of_a_proxy_is_masked_as_the_key_is() {
    let dir = Dir::new("proxy-password");
    let uncut = Uncut::new(&dir).env("http_proxy", "user:by-the-proxy@127.0.0.1:1");
    let flags = ["--base-url", "http://nowhere.invalid/v1", "--max-retries", "0"];
    let ran = uncut.args(flags).args(["-m", "by-the-proxy", "--output", "json", "go"]).run();
    assert_eq!(ran.code, Some(75), "{ran:?}");
    assert!(ran.stdout.contains("\"model\":\"[api key]\""), "{ran:?}");
}

/// The key is longer than whatever is cut, so that a piece of it would be left where text is cut
/// before it is masked.
#[test]
fn nothing_shows_a_piece_of_a_key_that_does_not_fit_in() {
    let key = &*format!("sk-TESTKEY-{}", "x".repeat(9_000));
    let call = |name: &str, arguments: &Value| {
        let function = json!({"name": name, "arguments": arguments.to_string()});
        let message = json!({"tool_calls": [{"id": key, "function": function}]});
        Reply::choice(json!({"finish_reason": "tool_calls", "message": message}))
    };
    let record = |message: Value| format!("{}\n", json!({"v": 1, "message": message}));
    let result = json!({"role": "tool", "tool_call_id": key, "content": ""});
    for (flags, replies, log) in [
        (
            &["--verify-attempts", "1", "--verify", &format!("true {key}; false")][..],
            vec![
                call(key, &json!({})),
                call("shell", &json!({"command": format!("true {key}"), "timeout": key})),
                call("read_file", &json!({"path": key, "limit": key})),
                Reply::answer(key),
            ],
            String::new(),
        ),
        (&[], vec![says(key, "hi")], String::new()),
        (&[], vec![Reply::choice(json!({"message": {"refusal": key}}))], String::new()),
        (&[], vec![Reply::status(503, key), Reply::status(400, key)], String::new()),
        (&[], vec![], format!("{{\"v\":\"{key}\",\"message\":{{}}}}\n")),
        (&[], vec![], record(json!({"role": key}))),
        (&[], vec![], record(result)),
        (&["--repair-session"], vec![Reply::answer(key)], record(json!({"role": key}))),
        (&["--replay", "replay"], vec![], String::new()),
    ] {
        let dir = Dir::new("piece");
        dir.write("replay", json!({"error": {"code": 400, "message": key}}).to_string());
        let replays = flags.contains(&"--replay");
        let endpoint = Endpoint::start(replies).expect_key(key);
        let uncut = if replays { Uncut::new(&dir) } else { on(&dir, &endpoint) };
        if !log.is_empty() {
            dir.write("s.jsonl", &log);
        }
        let uncut = uncut.env("UNCUT_API_KEY", key).args(flags);
        let flags = ["--output", "jsonl", "-v", "--session", "s.jsonl", "go"];
        let ran = uncut.args(flags).run();
        let session = dir.read("s.jsonl");
        let session = session.strip_prefix(&log).unwrap_or(&session);
        for text in [&ran.stdout, &ran.stderr, session] {
            assert!(!text.contains("TESTKEY"), "{text}");
        }
        assert!(ran.stderr.contains("[api key]"), "{ran:?}");
    }
}

/// What a command prints is cut in the middle, and the whole is in a file.
#[test]
fn no_piece_of_a_key_is_left_of_what_a_verification_printed() {
    let (key, dir) = ("sk-TESTKEY-9", Dir::new("verify-piece"));
    let endpoint = Endpoint::start(vec![Reply::answer("a"), Reply::answer("b")]).expect_key(key);
    // The keys stand so close that the cut falls into one.
    let verify = "i=0; while [ $i -lt 4000 ]; do printf 'xsk-TESTKEY-9'; i=$((i+1)); done; false";
    let uncut = on(&dir, &endpoint).env("UNCUT_API_KEY", key);
    let flags = ["--output", "jsonl", "--session", "s.jsonl", "--verify-attempts", "2"];
    let ran = uncut.args(flags).args(["--verify", verify, "go"]).run();
    assert_eq!(ran.code, Some(40), "{ran:?}");
    for text in [&ran.stdout, &ran.stderr, &dir.read("s.jsonl")] {
        for piece in ["sk-T", "KEY-9"] {
            assert!(!text.contains(piece), "{text}");
        }
    }
}

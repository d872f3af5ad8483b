//! Every outcome in every format: stdout, stderr, exit code, the output file and the session together.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use uncut::outcome::Outcome;

use crate::support::endpoint::{Endpoint, Reply};
use crate::support::sandbox::{Dir, Ran, Uncut, finish};

/// A run that comes to one outcome.
struct Scenario {
    outcome: Outcome,
    replies: fn() -> Vec<Reply>,
    flags: &'static [&'static str],
    /// Makes what the run needs; what it gives is kept until the run is over.
    prepare: fn(&Dir) -> Option<File>,
    /// Is sent once the endpoint has been asked.
    signal: Option<&'static str>,
    /// The reader of stdout is gone.
    unread: bool,
    /// The shell's limit of the size of files, in its units.
    file_size: &'static str,
}

const PLAIN: Scenario = Scenario {
    outcome: Outcome::Ok,
    replies: Vec::new,
    flags: &["go"],
    prepare: |_| None,
    signal: None,
    unread: false,
    file_size: "unlimited",
};

const ANSWER: &str = "Caf\u{e9}\u{2028}done \u{1f600}.";

fn says(finish_reason: &str, text: &str) -> Reply {
    let message = json!({"role": "assistant", "content": text});
    Reply::choice(json!({"finish_reason": finish_reason, "message": message}))
}

fn call(id: &str) -> Reply {
    Reply::tool_call(id, "shell", r#"{"command":"echo out"}"#)
}

const SCENARIOS: &[Scenario] = &[
    Scenario { replies: || vec![call("a"), Reply::answer(ANSWER)], ..PLAIN },
    Scenario {
        outcome: Outcome::Internal,
        replies: || vec![Reply::answer(ANSWER)],
        unread: true,
        ..PLAIN
    },
    Scenario { outcome: Outcome::Usage, flags: &["go", "--api-key-file", "missing"], ..PLAIN },
    Scenario {
        outcome: Outcome::Rejected,
        replies: || vec![Reply::status(401, r#"{"error":{"message":"no"}}"#)],
        ..PLAIN
    },
    Scenario {
        outcome: Outcome::Protocol,
        replies: || vec![Reply::status(200, "<html>Log in</html>")],
        ..PLAIN
    },
    Scenario { outcome: Outcome::Truncated, replies: || vec![says("length", "Half an")], ..PLAIN },
    Scenario { outcome: Outcome::Filtered, replies: || vec![says("content_filter", "")], ..PLAIN },
    Scenario { outcome: Outcome::Empty, replies: || vec![says("stop", " ")], ..PLAIN },
    Scenario {
        outcome: Outcome::Context,
        replies: || {
            let error = json!({"code": "context_length_exceeded", "message": "too long"});
            vec![Reply::status(400, json!({ "error": error }).to_string())]
        },
        ..PLAIN
    },
    Scenario {
        outcome: Outcome::MaxSteps,
        replies: || vec![call("a"), Reply::answer("Half is done.")],
        flags: &["go", "--max-steps", "1"],
        ..PLAIN
    },
    Scenario {
        outcome: Outcome::MaxTokensTotal,
        replies: || vec![call("a")],
        flags: &["go", "--max-total-tokens", "15"],
        ..PLAIN
    },
    Scenario {
        outcome: Outcome::Stuck,
        replies: || (0..8).map(|n| call(&n.to_string())).collect(),
        ..PLAIN
    },
    Scenario {
        outcome: Outcome::SessionDamaged,
        prepare: |dir| {
            dir.write("s.jsonl", "no record\n");
            None
        },
        ..PLAIN
    },
    Scenario {
        outcome: Outcome::SessionLocked,
        prepare: |dir| {
            let log = File::open(dir.write("s.jsonl", "")).unwrap();
            log.lock().unwrap();
            Some(log)
        },
        ..PLAIN
    },
    Scenario {
        outcome: Outcome::SessionWrite,
        prepare: |dir| {
            dir.write("prompt", "x".repeat(40_000));
            None
        },
        flags: &["--prompt-file", "prompt"],
        file_size: "64",
        ..PLAIN
    },
    Scenario {
        outcome: Outcome::VerifyFailed,
        replies: || vec![Reply::answer("Done."), Reply::answer("Really.")],
        flags: &["go", "--verify", "echo red; exit 1", "--verify-attempts", "2"],
        ..PLAIN
    },
    Scenario {
        outcome: Outcome::Transient,
        replies: || vec![Reply::status(503, "busy"), Reply::status(503, "busy")],
        flags: &["go", "--max-retries", "1"],
        ..PLAIN
    },
    Scenario {
        outcome: Outcome::Deadline,
        replies: || vec![Reply::stall()],
        flags: &["go", "--timeout", "1"],
        ..PLAIN
    },
    Scenario {
        outcome: Outcome::Hangup,
        replies: || vec![Reply::stall()],
        signal: Some("-HUP"),
        ..PLAIN
    },
    Scenario {
        outcome: Outcome::Interrupt,
        replies: || vec![Reply::stall()],
        signal: Some("-INT"),
        ..PLAIN
    },
    Scenario {
        outcome: Outcome::Terminated,
        replies: || vec![Reply::stall()],
        signal: Some("-TERM"),
        ..PLAIN
    },
];

/// The members of a result, in alphabetical order.
const MEMBERS: &[&str] = &[
    "advice",
    "agents_md",
    "answer",
    "duration_ms",
    "exit_code",
    "killed",
    "message",
    "model",
    "outcome",
    "retries",
    "seq",
    "session",
    "steps",
    "summary",
    "time",
    "tokens",
    "tool_calls",
    "type",
    "uncut",
    "verify",
    "version",
    "warnings",
];

impl Scenario {
    /// Runs it; what goes to stdout is also in the file `out`, where an earlier answer stood.
    fn run(&self, format: &str) -> (Dir, Ran) {
        let dir = Dir::new(self.outcome.word());
        let endpoint = Endpoint::start((self.replies)());
        let kept = (self.prepare)(&dir);
        dir.write("out", "an answer of yesterday\n");
        let limit = format!("ulimit -f {}; exec \"$0\" \"$@\"", self.file_size);
        let uncut = Uncut::below(&dir, "/bin/sh", &["-c", &limit])
            .args(["--base-url", &endpoint.base_url(), "-m", "m", "--session", "s.jsonl"])
            .args(["--output", format, "-o", "out"])
            .args(self.flags);
        let mut command = uncut.into_command();
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        if self.unread {
            command.stdout(std::io::pipe().unwrap().1);
        }
        let child = command.spawn().unwrap();
        if let Some(signal) = self.signal {
            endpoint.wait_for_requests(1);
            let id = child.id().to_string();
            assert!(Command::new("/bin/kill").args([signal, &id]).status().unwrap().success());
        }
        let ran = finish(child);
        endpoint.finish();
        drop(kept);
        (dir, ran)
    }

    #[track_caller]
    fn check(&self, format: &str) {
        let (dir, ran) = self.run(format);
        let (word, code) = (self.outcome.word(), self.outcome.code());
        let context = format!("{word} as {format}: {ran:?}");
        assert_eq!(ran.code, Some(code.into()), "{context}");
        let last = ran.stderr.lines().rfind(|line| line.starts_with("uncut: ")).unwrap();
        assert!(last.starts_with(&format!("uncut: {word}: ")), "{context}");
        let out = dir.read("out");
        if self.unread {
            assert_eq!(ran.stdout, "", "{context}");
        } else {
            assert_eq!(ran.stdout, out, "{context}");
        }
        match format {
            "text" if self.outcome == Outcome::Ok => {
                assert_eq!(out, format!("{ANSWER}\n"), "{context}");
            }
            "text" => assert_eq!(out, "", "{context}"),
            "json" => self.check_result(&out, 1, &context),
            _ => self.check_events(&out, &context),
        }
        if let Ok(log) = fs::read_to_string(dir.path("s.jsonl"))
            && self.outcome != Outcome::SessionDamaged
        {
            assert!(log.is_empty() || log.ends_with('\n'), "{context}");
            for line in log.lines() {
                serde_json::from_str::<Value>(line).expect(line);
            }
        }
        let mut left = dir.names();
        left.retain(|name| name.contains(".uncut-"));
        assert!(left.is_empty(), "{left:?}");
    }

    #[track_caller]
    fn check_events(&self, out: &str, context: &str) {
        let events: Vec<&str> = out.lines().collect();
        for (number, event) in (1..).zip(&events) {
            let event: Value = serde_json::from_str(event).expect(event);
            assert_eq!(
                (&event["version"], &event["seq"]),
                (&json!(1), &json!(number)),
                "{context}"
            );
            let (kind, time) = (event["type"].as_str().unwrap(), event["time"].as_str().unwrap());
            assert_eq!(kind == "result", number == events.len(), "{context}");
            assert!(time.len() == 24 && time.ends_with('Z'), "{context}");
        }
        let (last, number) = (events.last().unwrap(), events.len());
        self.check_result(&format!("{last}\n"), number, context);
    }

    #[track_caller]
    fn check_result(&self, line: &str, number: usize, context: &str) {
        assert!(line.is_ascii() && line.ends_with("}\n"), "{context}");
        assert_eq!(line.lines().count(), 1, "{context}");
        let result: Value = serde_json::from_str(line).expect(context);
        let mut members: Vec<&str> =
            result.as_object().unwrap().keys().map(String::as_str).collect();
        members.sort_unstable();
        assert_eq!(members, MEMBERS, "{context}");
        assert_eq!(result["type"], "result", "{context}");
        assert_eq!(result["seq"], number, "{context}");
        assert_eq!(result["outcome"], self.outcome.word(), "{context}");
        assert_eq!(result["exit_code"], self.outcome.code(), "{context}");
        assert!(
            result["session"].is_null() || result["session"].as_str().unwrap().starts_with('/')
        );
        if self.outcome == Outcome::Ok {
            assert_eq!(result["answer"], ANSWER, "{context}");
            assert_eq!(result["message"], Value::Null, "{context}");
            let tokens = json!({"prompt": 20, "cached": null, "completion": 10});
            assert_eq!(result["tokens"], tokens, "{context}");
            assert_eq!((&result["steps"], &result["tool_calls"]), (&json!(2), &json!(1)));
        } else {
            assert_eq!(result["answer"], Value::Null, "{context}");
            assert!(!result["message"].as_str().unwrap().is_empty(), "{context}");
        }
        let summary =
            if self.outcome == Outcome::MaxSteps { json!("Half is done.") } else { Value::Null };
        assert_eq!(result["summary"], summary, "{context}");
        let retries = u8::from(self.outcome == Outcome::Transient);
        assert_eq!(result["retries"], retries, "{context}");
        let verify = if self.outcome == Outcome::VerifyFailed {
            json!({"attempt": 2, "attempts": 2, "passed": false})
        } else {
            Value::Null
        };
        assert_eq!(result["verify"], verify, "{context}");
    }
}

#[test]
fn every_outcome_is_the_same_as_text() {
    SCENARIOS.iter().for_each(|scenario| scenario.check("text"));
}

#[test]
fn every_outcome_is_the_same_as_json() {
    SCENARIOS.iter().for_each(|scenario| scenario.check("json"));
}

#[test]
fn every_outcome_is_the_same_as_events() {
    SCENARIOS.iter().for_each(|scenario| scenario.check("jsonl"));
}

#[test]
fn the_table_of_outcomes_leaves_none_out() {
    let shown: Vec<Outcome> = SCENARIOS.iter().map(|scenario| scenario.outcome).collect();
    let all: Vec<Outcome> = Outcome::ALL.iter().map(|(outcome, ..)| *outcome).collect();
    assert_eq!(shown, all);
}

fn on(dir: &Dir, endpoint: &Endpoint) -> Uncut {
    Uncut::new(dir).args(["--base-url", &endpoint.base_url(), "-m", "m"])
}

/// The lines of a run with `--output jsonl`.
fn events(ran: &Ran) -> Vec<Value> {
    ran.stdout.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
}

/// The one line of a run with `--output json`.
fn result(ran: &Ran) -> Value {
    serde_json::from_str(&ran.stdout).expect(&ran.stdout)
}

#[test]
fn a_stdout_that_can_take_nothing_is_found_before_anything_is_sent() {
    let dir = Dir::new("unusable");
    let endpoint = Endpoint::start(vec![]);
    for redirection in [">&-", ">/dev/full", "1</dev/null"] {
        let script = format!("exec \"$0\" \"$@\" {redirection}");
        let ran = Uncut::below(&dir, "/bin/sh", &["-c", &script])
            .args(["--base-url", &endpoint.base_url(), "--model", "m", "go"])
            .run();
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "{ran:?}");
        let line = "uncut: internal: stdout can't be written: ";
        assert!(ran.stderr.starts_with(line), "{redirection}: {ran:?}");
    }
    endpoint.finish();
}

#[test]
fn a_stdout_that_is_slow_and_does_not_block_gets_everything() {
    let dir = Dir::new("nonblocking");
    let long = "0123456789\n".repeat(100_000);
    let endpoint = Endpoint::start(vec![Reply::answer(&long)]);
    let (mut reader, writer) = UnixStream::pair().unwrap();
    writer.set_nonblocking(true).unwrap();
    let mut command = on(&dir, &endpoint).arg("go").into_command();
    command.stdin(Stdio::null()).stdout(OwnedFd::from(writer)).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    drop(command);
    endpoint.wait_for_requests(1);
    let mut text = String::new();
    reader.read_to_string(&mut text).unwrap();
    assert_eq!(finish(child).code, Some(0));
    assert!(text == format!("{}\n", long.trim_end()), "{} bytes", text.len());
}

#[test]
fn events_tell_everything_that_happens_in_order() {
    let dir = Dir::new("events").with("AGENTS.md", "Be kind.\n");
    let long = json!({"command": "seq 1 2000; sleep 600 & echo $!"}).to_string();
    let busy = Reply::status(503, "busy").with_header("retry-after-ms", "500");
    let replies = vec![busy, Reply::tool_call("a", "shell", &long), Reply::answer("Done.")];
    let endpoint = Endpoint::start(replies);
    let ran = on(&dir, &endpoint).args(["--output=jsonl", "--verify", "true", "go"]).run();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let events = events(&ran);
    let kinds: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    let expected = [
        "instructions",
        "start",
        "step",
        "retry",
        "completion",
        "tool_call",
        "tool_result",
        "step",
        "completion",
        "verify",
        "verified",
        "killed",
        "result",
    ];
    assert_eq!(kinds, expected, "{ran:?}");
    let sha256 = "f32bf5e09516390e83144b4a66afea2f104e1b229bc809baed4f8efb0f3a1d39";
    assert_eq!(events[0]["sha256"], sha256);
    assert_eq!(events[0]["bytes"], 9);
    assert_eq!((&events[1]["model"], &events[1]["max_steps"]), (&json!("m"), &json!(32)));
    assert_eq!((&events[3]["retry"], &events[3]["pause_ms"]), (&json!(1), &json!(500)));
    assert_eq!(events[4]["tokens"], json!({"prompt": 10, "cached": null, "completion": 5}));
    assert_eq!((&events[5]["name"], &events[5]["arguments"]), (&json!("shell"), &json!(long)));
    let output = events[6]["output"].as_str().unwrap();
    assert!(output.starts_with("1\n2\n") && output.contains(" bytes left out ...]\n"), "{output}");
    assert!(output.len() < 5_000 && events[6]["bytes"].as_u64().unwrap() > 8_000, "{output}");
    assert_eq!((&events[6]["id"], &events[6]["summary"]), (&json!("a"), &json!("exit 0")));
    assert_eq!(events[10]["passed"], true);
    assert_eq!(events[11]["killed"], json!(["sleep"]));
    let result = &events[12];
    assert_eq!((&result["retries"], &result["killed"]), (&json!(1), &json!(["sleep"])));
    assert_eq!(result["agents_md"].as_array().unwrap().len(), 1);
    assert_eq!(result["verify"], json!({"attempt": 1, "attempts": 3, "passed": true}));
}

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

#[test]
fn a_reader_that_leaves_early_is_told_of_at_the_end_and_the_work_is_done() {
    let dir = Dir::new("left");
    let arguments = json!({"command": "while [ ! -e gone ]; do sleep 0.01; done; echo > made"});
    let replies =
        vec![Reply::tool_call("a", "shell", &arguments.to_string()), Reply::answer("Done.")];
    let endpoint = Endpoint::start(replies);
    let (mut reader, writer) = std::io::pipe().unwrap();
    let uncut = on(&dir, &endpoint).args(["--output", "jsonl", "-o", "out", "go"]);
    let mut command = uncut.into_command();
    command.stdin(Stdio::null()).stdout(writer).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    drop(command);
    reader.read_exact(&mut [0]).unwrap();
    drop(reader);
    dir.write("gone", "");
    let ran = finish(child);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(dir.path("made").exists());
    let out = dir.read("out");
    let last: Value = serde_json::from_str(out.lines().last().unwrap()).unwrap();
    assert_eq!((&last["type"], &last["outcome"]), (&json!("result"), &json!("internal")));
    assert_eq!(out.matches("\"type\":\"result\"").count(), 1, "{out}");
}

#[test]
fn an_output_file_of_no_use_is_found_before_anything_is_sent() {
    let dir = Dir::new("unusable");
    fs::create_dir(dir.path("folder")).unwrap();
    assert!(Command::new("mkfifo").arg(dir.path("fifo")).status().unwrap().success());
    let endpoint = Endpoint::start(vec![]);
    for (name, says) in [
        ("folder", "folder: "),
        ("fifo", "fifo: "),
        ("/dev/null", "/dev/null: "),
        ("missing/out", "missing/out: its directory does not exist"),
        ("/proc/out", "/proc/out: "),
        ("", "-o: the name is empty"),
    ] {
        for format in ["text", "json"] {
            let ran = on(&dir, &endpoint).args(["--output", format, "-o", name, "go"]).run();
            assert_eq!(ran.code, Some(2), "{name}: {ran:?}");
            assert!(ran.stderr.contains(says), "{name}: {ran:?}");
            if format == "json" && !name.is_empty() {
                assert_eq!(result(&ran)["outcome"], "usage", "{ran:?}");
            }
        }
    }
    endpoint.finish();
}

#[test]
fn an_output_file_that_can_not_be_written_at_last_leaves_no_answer() {
    for format in ["text", "json"] {
        let dir = Dir::new("small").with("out", "yesterday\n");
        let endpoint = Endpoint::start(vec![Reply::answer(&"x".repeat(100_000))]);
        let limit = "ulimit -f 64; exec \"$0\" \"$@\"";
        let ran = Uncut::below(&dir, "/bin/sh", &["-c", limit])
            .args(["--base-url", &endpoint.base_url(), "-m", "m", "-o", "out", "go"])
            .args(["--output", format])
            .run();
        assert_eq!(ran.code, Some(1), "{ran:?}");
        assert!(ran.stderr.contains("internal: the output file can't be written: "), "{ran:?}");
        match format {
            "text" => assert_eq!(ran.stdout, ""),
            _ => assert_eq!(result(&ran)["outcome"], "internal"),
        }
        // What stood there must not pass for the answer of this run.
        assert_eq!(dir.read("out"), "");
        endpoint.finish();
    }
}

/// Runs with a gate and these answers.
fn verified(dir: &Dir, flags: &[&str], answers: usize) -> (Ran, Vec<Value>) {
    let answer = |number| Reply::answer(&format!("Answer {number}."));
    let endpoint = Endpoint::start((1..=answers).map(answer).collect());
    let ran = on(dir, &endpoint).args(flags).arg("go").run();
    let requests = endpoint.finish();
    let last = |request: &crate::support::endpoint::Request| {
        request.messages().last().cloned().unwrap_or_default()
    };
    (ran, requests.iter().map(last).collect())
}

#[test]
fn a_gate_that_passes_at_the_last_attempt_lets_that_answer_through() {
    let dir = Dir::new("gate");
    let gate = "echo again >> tries; [ $(wc -l < tries) = 3 ]";
    let (ran, last) = verified(&dir, &["--verify", gate], 3);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "Answer 3.\n"), "{ran:?}");
    assert!(ran.stderr.contains("uncut: verify 2/3: did not pass: exit 1 ("), "{ran:?}");
    assert!(ran.stderr.contains("uncut: verify 3/3: passed: exit 0 ("), "{ran:?}");
    assert_eq!(last[1]["role"], "user");
    let told = last[2]["content"].as_str().unwrap();
    assert!(told.contains("attempt 2 of 3") && told.contains("[no output; exit 1]"), "{told}");
}

#[test]
fn a_gate_that_is_not_found_hangs_or_floods_is_red_and_told() {
    let cases = [
        (&["--verify", "no-such-command"][..], "no-such-command", "exit 127"),
        (&["--verify", "sleep 600", "--command-timeout", "1s"], "timed out after 1s", "timed out"),
        (&["--verify", "yes | head -c 10000000; false"], "left out here", "exit 1"),
    ];
    for (flags, told, says) in cases {
        let dir = Dir::new("red");
        let (ran, last) = verified(&dir, &[flags, &["--verify-attempts=2"]].concat(), 2);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(40), ""), "{ran:?}");
        let line = ran.stderr.lines().last().unwrap();
        assert!(line.starts_with("uncut: verify_failed: ") && line.contains(says), "{line}");
        let text = last[1]["content"].as_str().unwrap();
        assert!(text.contains(told) && text.len() < 40_000, "{text}");
    }
}

#[test]
fn a_gate_that_the_deadline_cuts_ends_in_the_deadline() {
    let dir = Dir::new("cut");
    let endpoint = Endpoint::start(vec![Reply::answer("Done."), Reply::stall()]);
    let ran = on(&dir, &endpoint).args(["--verify", "sleep 600", "--timeout", "1s", "go"]).run();
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(124), ""), "{ran:?}");
}

#[test]
fn a_run_that_is_silent_says_now_and_then_what_it_waits_for() {
    let dir = Dir::new("silent");
    let sleep = Reply::tool_call("a", "shell", r#"{"command":"sleep 600"}"#);
    let endpoint = Endpoint::start(vec![sleep]);
    let mut child = on(&dir, &endpoint).arg("go").spawn();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    stderr.read_line(&mut line).unwrap();
    assert_eq!(line, "uncut: step 1/32: shell sleep 600, 30 s so far\n");
    let id = child.id().to_string();
    assert!(Command::new("/bin/kill").args(["-TERM", &id]).status().unwrap().success());
    assert_eq!(finish(child).code, Some(143));
}

#[test]
fn a_session_that_is_shown_for_machines_is_summed_up() {
    let dir = Dir::new("shown");
    let endpoint = Endpoint::start(vec![call("a"), Reply::answer("Done.")]);
    let ran = on(&dir, &endpoint).args(["--session", "s.jsonl", "go"]).run();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let show = || Uncut::new(&dir).args(["--session", "s.jsonl", "--show-session"]);
    let shown = result(&show().args(["--output", "json"]).run());
    let tokens = json!({"prompt": 20, "cached": 0, "completion": 10});
    assert_eq!((&shown["records"], &shown["refused"]), (&json!(4), &json!(0)), "{shown}");
    assert_eq!((&shown["outcome"], &shown["tokens"]), (&json!("ok"), &tokens), "{shown}");
    let text = show().args(["-o", "out"]).run().stdout;
    assert_eq!(dir.read("out"), text);
    let log = dir.read("s.jsonl") + "{\n";
    dir.write("s.jsonl", log);
    let ran = show().args(["--output", "json"]).run();
    let shown = result(&ran);
    assert_eq!((ran.code, &shown["records"]), (Some(30), &json!(4)), "{ran:?}");
    assert_eq!(shown["outcome"], "session_damaged", "{shown}");
}

#[test]
fn the_output_file_may_be_no_other_file_of_the_run() {
    let dir = Dir::new("same").with("s.jsonl", "").with("prompt", "go\n").with("key", "sk-1\n");
    std::os::unix::fs::symlink("s.jsonl", dir.path("link")).unwrap();
    fs::hard_link(dir.path("s.jsonl"), dir.path("hard")).unwrap();
    let endpoint = Endpoint::start(vec![]);
    let session = &["--session", "s.jsonl"][..];
    for (flags, out) in [
        (&["--session", "s.jsonl", "go"][..], "s.jsonl"),
        (&["--session", "s.jsonl", "go"], "link"),
        (&["--session", "s.jsonl", "go"], "hard"),
        (&["--session", "new.jsonl", "go"], "./new.jsonl"),
        (&["-f", "prompt"], "prompt"),
        (&["--api-key-file", "key", "go"], "key"),
        (&[session, &["--show-session"]].concat(), "s.jsonl"),
        (&[session, &["--repair-session"]].concat(), "s.jsonl"),
    ] {
        let ran = on(&dir, &endpoint).args(flags).args(["-o", out]).run();
        assert_eq!(ran.code, Some(2), "{flags:?}: {ran:?}");
        assert!(ran.stderr.contains("another flag names this file too"), "{ran:?}");
    }
    assert_eq!((dir.read("s.jsonl"), dir.read("prompt")), (String::new(), "go\n".to_owned()));
    assert!(!dir.path("new.jsonl").exists());
    endpoint.finish();
}

#[test]
fn what_was_said_stands_however_the_process_ends_then() {
    for format in ["text", "json", "jsonl"] {
        let dir = Dir::new("said");
        let endpoint = Endpoint::start(vec![call("a"), Reply::answer("Done.")]);
        let mut command =
            on(&dir, &endpoint).args(["--output", format, "-o", "out", "go"]).into_command();
        // Nobody reads stderr, and it is full before the run begins.
        let (_stderr, errors) = std::io::pipe().unwrap();
        let mut full = errors.try_clone().unwrap();
        let filler = std::thread::spawn(move || full.write_all(&vec![b'x'; 1 << 20]));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(errors);
        let mut child = command.spawn().unwrap();
        drop(command);
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut last = String::new();
        while !last.contains("Done.") {
            last.clear();
            stdout.read_line(&mut last).unwrap();
        }
        let id = child.id().to_string();
        assert!(Command::new("/bin/kill").args(["-TERM", &id]).status().unwrap().success());
        let mut rest = String::new();
        stdout.read_to_string(&mut rest).unwrap();
        assert_eq!((rest.as_str(), finish(child).code), ("", Some(0)), "{format}");
        assert!(dir.read("out").ends_with(&last), "{format}");
        drop(_stderr);
        assert!(filler.join().unwrap().is_err());
    }
}

#[test]
fn a_stderr_that_nobody_reads_does_not_stop_a_run() {
    let dir = Dir::new("unread");
    let endpoint = Endpoint::start(vec![call("a"), call("b"), Reply::answer("Done.")]);
    let (mut stderr, errors) = std::io::pipe().unwrap();
    let mut full = errors.try_clone().unwrap();
    let filler = std::thread::spawn(move || full.write_all(&vec![b'x'; 1 << 20]));
    let mut command = on(&dir, &endpoint).args(["-v", "go"]).into_command();
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(errors);
    let child = command.spawn().unwrap();
    drop(command);
    let ran = finish(child);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "Done.\n"));
    stderr.read_exact(&mut vec![0; 1 << 20]).unwrap();
    assert!(filler.join().unwrap().is_ok());
}

#[test]
fn an_answer_that_comes_in_the_last_moment_can_still_be_verified() {
    let dir = Dir::new("late");
    let (late, hold) = Reply::answer("Done.").held();
    let endpoint = Endpoint::start(vec![late]);
    let child = on(&dir, &endpoint).args(["--verify", "true", "--timeout", "4s", "go"]).spawn();
    endpoint.wait_for_requests(1);
    // Beyond nine tenths of the time; nothing is waited for but the clock.
    std::thread::sleep(std::time::Duration::from_millis(3_650));
    drop(hold);
    let ran = finish(child);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "Done.\n"), "{ran:?}");
}

#[test]
fn a_tenth_of_the_time_is_left_for_a_summary_that_is_asked_for_once() {
    let dir = Dir::new("reserve");
    let sleep = Reply::tool_call("a", "shell", r#"{"command":"sleep 600"}"#);
    let endpoint = Endpoint::start(vec![sleep, Reply::status(503, "busy")]);
    let ran = on(&dir, &endpoint).args(["--output", "json", "--timeout", "5s", "go"]).run();
    assert_eq!(ran.code, Some(124), "{ran:?}");
    assert!(!ran.stderr.contains("retry"), "{ran:?}");
    let requests = endpoint.finish();
    assert_eq!(requests[1].body["tool_choice"], "none");
}

#[test]
fn what_is_killed_at_a_signal_stands_in_the_result() {
    let dir = Dir::new("killed");
    let arguments = json!({"command": "echo > started; sleep 600"}).to_string();
    let endpoint = Endpoint::start(vec![Reply::tool_call("a", "shell", &arguments)]);
    let child = on(&dir, &endpoint).args(["--output", "json", "go"]).spawn();
    while !dir.path("started").exists() {
        std::thread::yield_now();
    }
    let id = child.id().to_string();
    assert!(Command::new("/bin/kill").args(["-TERM", &id]).status().unwrap().success());
    let ran = finish(child);
    let killed = result(&ran)["killed"].to_string();
    assert!(killed.contains("\"sh\"") || killed.contains("\"sleep\""), "{ran:?}");
}

#[test]
fn a_repair_is_told_to_machines_too() {
    let dir = Dir::new("repaired").with("s.jsonl", "no record\n");
    let repair = ["--session", "s.jsonl", "--repair-session", "--output", "json"];
    let ran = Uncut::new(&dir).args(repair).run();
    let repaired = &result(&ran)["repaired"];
    assert_eq!((ran.code, &repaired["line"], &repaired["bytes"]), (Some(0), &json!(1), &json!(10)));
    assert!(repaired["copy"].as_str().unwrap().ends_with("/s.jsonl.damaged-1"), "{ran:?}");
}

#[test]
fn a_reader_that_has_seen_enough_does_not_keep_the_rest_from_the_file() {
    let dir = Dir::new("enough");
    let message = json!({"role": "user", "content": "x".repeat(1_000)});
    let record = json!({"v": 1, "message": message}).to_string() + "\n";
    dir.write("s.jsonl", record.repeat(500));
    let (mut reader, writer) = std::io::pipe().unwrap();
    let uncut = Uncut::new(&dir).args(["--session", "s.jsonl", "--show-session", "-o", "out"]);
    let mut command = uncut.into_command();
    command.stdin(Stdio::null()).stdout(writer).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    drop(command);
    reader.read_exact(&mut [0; 10]).unwrap();
    drop(reader);
    let ran = finish(child);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(dir.read("out").contains("[total] records 500 "), "{ran:?}");
}

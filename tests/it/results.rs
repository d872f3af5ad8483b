//! Every outcome in every format: stdout, stderr, exit code, the output file and the session
//! together.

use std::fs::{self, File};
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

pub(crate) fn says(finish_reason: &str, text: &str) -> Reply {
    let message = json!({"role": "assistant", "content": text});
    Reply::choice(json!({"finish_reason": finish_reason, "message": message}))
}

pub(crate) fn call(id: &str) -> Reply {
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
        outcome: Outcome::Terminated(15),
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

pub(crate) fn on(dir: &Dir, endpoint: &Endpoint) -> Uncut {
    Uncut::new(dir).args(["--base-url", &endpoint.base_url(), "-m", "m"])
}

/// The lines of a run with `--output jsonl`.
pub(crate) fn events(ran: &Ran) -> Vec<Value> {
    ran.stdout.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
}

/// The one line of a run with `--output json`.
pub(crate) fn result(ran: &Ran) -> Value {
    serde_json::from_str(&ran.stdout).expect(&ran.stdout)
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
fn what_is_killed_at_a_signal_stands_in_the_result() {
    let dir = Dir::new("killed");
    let arguments = json!({"command": "echo > started; sleep 600"}).to_string();
    let endpoint = Endpoint::start(vec![Reply::tool_call("a", "shell", &arguments)]);
    let child = on(&dir, &endpoint).args(["-q", "--output", "json", "go"]).spawn();
    while !dir.path("started").exists() {
        std::thread::yield_now();
    }
    let id = child.id().to_string();
    assert!(Command::new("/bin/kill").args(["-TERM", &id]).status().unwrap().success());
    let ran = finish(child);
    let killed = result(&ran)["killed"].to_string();
    assert!(killed.contains("\"sh\"") || killed.contains("\"sleep\""), "{ran:?}");
    // Of errors only, there is one.
    assert!(ran.stderr.starts_with("uncut: terminated: ") && ran.stderr.lines().count() == 1);
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

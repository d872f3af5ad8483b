//! Answers that are verified, and what is left of the time for that and for a summary.

use std::time::Duration;

use serde_json::Value;

use crate::results::on;
use crate::support::endpoint::{Endpoint, Reply};
use crate::support::sandbox::{Dir, Ran};

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
fn an_answer_that_comes_in_the_last_moment_can_still_be_verified() {
    let dir = Dir::new("late");
    // Beyond nine tenths of the time.
    let late = Reply::answer("Done.").late(Duration::from_millis(3_650));
    let endpoint = Endpoint::start(vec![late]);
    let ran = on(&dir, &endpoint).args(["--verify", "true", "--timeout", "4s", "go"]).run();
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

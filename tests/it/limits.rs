//! The time limits of a request and of a run, through the spawned binary: which of them ends what,
//! and that the message names it.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use crate::support::endpoint::{Endpoint, Reply};
use crate::support::sandbox::{Dir, Ran, Uncut};

/// Between two bytes of a slow reply; far below every limit.
const NOW_AND_THEN: Duration = Duration::from_millis(20);

const STEP: &str = r#"data: {"choices":[{"delta":{"content":"The answer is"}}]}"#;
const STOP: &str = r#"data: {"choices":[{"delta":{"content":" 42"},"finish_reason":"stop"}]}"#;

fn uncut(dir: &Dir, base_url: &str, flags: &[&str]) -> Uncut {
    let uncut = Uncut::new(dir).args(["--base-url", base_url, "--model", "m", "--max-retries=0"]);
    uncut.args(flags).arg("go")
}

/// What a run with these flags leaves behind when its one request gets this reply.
fn run(reply: Reply, flags: &[&str]) -> Ran {
    let dir = Dir::new("limits");
    let endpoint = Endpoint::start(vec![reply]);
    uncut(&dir, &endpoint.base_url(), flags).run()
}

/// A run that this limit of a request has ended.
#[track_caller]
fn assert_ended(ran: &Ran, limit: &str, after: &str) {
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(75), ""), "{ran:?}");
    let line = ran.stderr.lines().last().unwrap_or_default();
    let says = format!(
        "uncut: transient: the endpoint did not answer within {after} ({limit}); try again later, \
         or raise the limit"
    );
    assert_eq!(line, says);
}

/// Replies that go on for longer than any test, a byte at a time: in the head, in one body and in a
/// stream.
fn without_end() -> Vec<Reply> {
    let head = format!("HTTP/1.1 200 OK\r\nx: {}", "x".repeat(30_000));
    let pings = vec![": ping"; 10_000];
    [Reply::raw(head), Reply::endless(), Reply::stream(&pings)]
        .map(|reply| reply.in_pieces(1, NOW_AND_THEN))
        .into()
}

#[test]
fn a_connection_that_is_not_made_is_given_up() {
    // The kernel accepts, and nobody ever speaks TLS.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let base_url = format!("https://{}/v1", silent.local_addr().unwrap());
    let ran = uncut(&Dir::new("limits"), &base_url, &["--idle-timeout=1s"]).run();
    assert_ended(&ran, "--idle-timeout", "1s");
}

#[test]
fn silence_is_given_up_before_the_first_byte_and_between_two() {
    for reply in [
        Reply::stall(),
        Reply::raw("HTTP/1.1 200 OK\r\ncontent-ty").left_open(),
        Reply::answer("never whole").stall_after(20),
        Reply::stream(&[""; 0]).left_open(),
        Reply::stream(&[STEP]).left_open(),
    ] {
        assert_ended(&run(reply, &["--idle-timeout=1s"]), "--idle-timeout", "1s");
    }
}

#[test]
fn what_comes_slowly_and_without_end_is_ended_by_the_limit_of_a_request() {
    for reply in without_end() {
        let ran = run(reply, &["--idle-timeout=1s", "--request-timeout=2s"]);
        assert_ended(&ran, "--request-timeout", "2s");
    }
}

#[test]
fn what_comes_slowly_and_without_end_is_ended_by_the_limit_of_the_run() {
    for reply in without_end() {
        let ran = run(reply, &["--idle-timeout=1s", "--request-timeout=20s", "--timeout=2s"]);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(124), ""), "{ran:?}");
        let line = ran.stderr.lines().last().unwrap_or_default();
        assert!(line.starts_with("uncut: deadline: ") && line.contains("--timeout"), "{line}");
    }
}

#[test]
fn a_stream_that_is_alive_may_take_longer_than_silence_may() {
    let steps = [&[STEP; 10][..], &[STOP]].concat();
    let text = "The answer is".repeat(10) + " 42\n";
    let pings = [&[": keep-alive"; 40][..], &steps].concat();
    for events in [steps, pings] {
        let size = events.iter().map(|event| event.len() + 2).sum::<usize>() / 30;
        let started = Instant::now();
        let reply = Reply::stream(&events).in_pieces(size, Duration::from_millis(100));
        let ran = run(reply, &["--idle-timeout=2s"]);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), text.as_str()), "{ran:?}");
        assert!(started.elapsed() > Duration::from_secs(2), "the stream was too fast");
    }
}

#[test]
fn a_connection_that_stays_open_behind_the_last_event_is_not_waited_for() {
    let started = Instant::now();
    let reply = Reply::stream(&[STEP, STOP, "data: [DONE]"]).left_open();
    let ran = run(reply, &["--idle-timeout=50s"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "The answer is 42\n"), "{ran:?}");
    assert!(started.elapsed() < Duration::from_secs(25), "it waited");
}

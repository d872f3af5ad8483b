//! Sessions through the real binary: resume, torn logs, full disks, failing syncs, `kill -9`.
//!
//! Faults of sessions that were reported of such tools, and the test that shows each:
//!
//! | | what | reported as | test |
//! |---|---|---|---|
//! | 67 | record and newline in two writes | PrismorSec/prismor#197 | sessions::a_record_is_one_write_and_then_a_sync |
//! | 68 | a part of a record glued to the next | openai/codex#24425 | sessions::a_damaged_log_is_refused_with_line_and_byte_and_not_touched |
//! | 69 | results of some calls only | langchain-ai/deepagentsjs#150 | sessions::calls_without_a_result_are_answered_and_not_run_again |
//! | 70 | two runs on one session | earendil-works/pi#9596 | sessions::of_two_runs_at_once_one_writes_and_no_record_is_lost |
//! | 70 | the second of them | kolega-ai/kolega-code#544 | sessions::whoever_comes_second_is_told_who_holds_the_session |
//! | 70 | and one of them by a link, or killed | can1357/oh-my-pi#6565 | sessions::a_session_has_one_writer_and_a_killed_one_holds_nothing |
//! | 71 | going on without a log | MoonshotAI/kimi-code#2902 | session::storage::wherever_the_space_ends_the_log_ends_in_a_whole_record |
//! | 72 | killed while a tool ran | MoonshotAI/kimi-code#269 | sessions::calls_without_a_result_are_answered_and_not_run_again |
//! | 73 | a record glued to a torn tail | anthropics/claude-code#52387 | sessions::a_damaged_log_is_refused_with_line_and_byte_and_not_touched |
//! | 73 | and after a repair | github/copilot-cli#4098 | repair::the_run_goes_on_behind_the_repair_on_a_line_of_its_own |
//! | 74 | a disk that is full in the middle of a record | can1357/oh-my-pi#8596 | sessions::a_full_disk_leaves_whole_records |
//! | 74 | a limit of the file size | can1357/oh-my-pi#8598 | sessions::a_file_size_limit_leaves_whole_records |

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::endpoint::{Endpoint, Reply};
use crate::support::sandbox::{Dir, Ran, Uncut, finish};

pub(crate) const SESSION: [&str; 2] = ["--session", "s.jsonl"];

pub(crate) fn uncut(dir: &Dir, endpoint: &Endpoint) -> Uncut {
    on(Uncut::new(dir), endpoint)
}

fn on(uncut: Uncut, endpoint: &Endpoint) -> Uncut {
    uncut.args(["--base-url", &endpoint.base_url(), "--model", "m"]).args(SESSION)
}

/// The records of a log that has to be whole.
#[track_caller]
pub(crate) fn records(log: &str) -> Vec<Value> {
    assert!(log.is_empty() || log.ends_with('\n'), "{log}");
    log.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

pub(crate) fn user(text: &str) -> String {
    json!({"v": 1, "message": {"role": "user", "content": text}}).to_string() + "\n"
}

pub(crate) fn calls(ids: &[&str]) -> String {
    let call = |id: &&str| {
        json!({"id": id, "type": "function",
            "function": {"name": "shell", "arguments": "{\"command\":\"touch again\"}"}})
    };
    let calls: Vec<Value> = ids.iter().map(call).collect();
    let message = json!({"role": "assistant", "content": null, "tool_calls": calls});
    json!({"v": 1, "message": message}).to_string() + "\n"
}

pub(crate) fn result(id: &str) -> String {
    let message = json!({"role": "tool", "tool_call_id": id, "content": "did it"});
    json!({"v": 1, "message": message}).to_string() + "\n"
}

#[test]
fn a_session_goes_on_where_it_ended() {
    let dir = Dir::new("resume");
    let odd = r#""reasoning_content":"why  not","odd":{"b":1.50,"a":[12345678901234567890123]}"#;
    let first = format!(
        r#"{{"choices":[{{"finish_reason":"stop","message":{{"content":"one", {odd}}}}}]}}"#
    );
    let endpoint = Endpoint::start(vec![Reply::status(200, first), Reply::answer("two")]);
    assert_eq!(uncut(&dir, &endpoint).arg("first").run().code, Some(0));
    let mode = fs::metadata(dir.path("s.jsonl")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(uncut(&dir, &endpoint).arg("second").run().code, Some(0));
    let requests = endpoint.finish();
    let roles: Vec<_> = requests[1].messages().iter().map(|m| m["role"].clone()).collect();
    assert_eq!(roles, ["system", "user", "assistant", "user"]);
    let sent = String::from_utf8(requests[1].raw.clone()).unwrap();
    assert!(sent.contains(odd), "{sent}");
    let log = records(&dir.read("s.jsonl"));
    assert_eq!(log.len(), 4);
    assert_eq!(log[3]["model"], "m");
    assert_eq!(log[3]["finish_reason"], "stop");
    assert_eq!(log[3]["usage"], json!({"prompt_tokens": 10, "completion_tokens": 5}));
}

#[test]
fn a_refused_message_is_logged_and_not_sent_again() {
    let dir = Dir::new("refused");
    let cut = json!({"finish_reason": "length",
        "message": {"role": "assistant", "content": "Half an ans"}});
    let endpoint = Endpoint::start(vec![Reply::choice(cut), Reply::answer("whole")]);
    assert_eq!(uncut(&dir, &endpoint).arg("first").run().code, Some(12));
    let log = records(&dir.read("s.jsonl"));
    assert_eq!(log[1]["refused"], "truncated");
    assert_eq!(log[1]["finish_reason"], "length");
    assert_eq!(uncut(&dir, &endpoint).arg("second").run().code, Some(0));
    let requests = endpoint.finish();
    assert!(!String::from_utf8(requests[1].raw.clone()).unwrap().contains("Half an ans"));
}

#[test]
fn calls_without_a_result_are_answered_and_not_run_again() {
    let dir = Dir::new("interrupted");
    dir.write("s.jsonl", user("go") + &calls(&["c1", "c2", "c3"]) + &result("c1"));
    let endpoint = Endpoint::start(vec![Reply::answer("ok")]);
    let ran = uncut(&dir, &endpoint).arg("go on").run();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stderr.contains("warning: 2 tool calls of an earlier run"), "{ran:?}");
    let requests = endpoint.finish();
    let messages = requests[0].messages();
    for (index, id) in [(3, "c1"), (4, "c2"), (5, "c3")] {
        assert_eq!(messages[index]["tool_call_id"], *id);
    }
    for index in [4, 5] {
        let content = messages[index]["content"].as_str().unwrap();
        assert_eq!(content, "interrupted: may or may not have taken effect");
    }
    assert_eq!(messages[6], json!({"role": "user", "content": "go on"}));
    assert!(!dir.path("again").exists());
    assert_eq!(records(&dir.read("s.jsonl")).len(), 7);
}

/// Nothing but what the form asks for, in the spellings that other programs have for it.
#[test]
fn a_log_of_another_writer_is_resumed() {
    let function = json!({"name": "shell", "arguments": "{}"});
    let call = json!({"id": "c1", "type": "function", "function": function});
    let parts = json!([{"type": "text", "text": "go"}, {"type": "text", "text": " on"}]);
    let messages = [
        json!({"role": "system", "content": "be brief"}),
        json!({"role": "user", "content": parts}),
        json!({"role": "assistant", "content": null, "tool_calls": [call]}),
        json!({"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "x"}]}),
        json!({"role": "assistant", "content": "done"}),
    ];
    let log: String =
        messages.iter().map(|m| json!({"v": 1, "message": m}).to_string() + "\n").collect();
    let dir = Dir::new("foreign").with("s.jsonl", &log);
    let endpoint = Endpoint::start(vec![Reply::answer("ok")]);
    let ran = uncut(&dir, &endpoint).arg("more").run();
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "ok\n"), "{ran:?}");
    let requests = endpoint.finish();
    let sent = requests[0].messages();
    assert_eq!(sent.len(), 6);
    assert_ne!(sent[0]["content"], "be brief");
    assert_eq!(sent[1..5], messages[1..]);
    assert!(dir.read("s.jsonl").starts_with(&log));
}

/// Resumes a log that is not whole: refused by name and place, and not touched.
#[track_caller]
fn assert_damaged(log: &[u8], line: u32, offset: usize) {
    let dir = Dir::new("damaged");
    dir.write("s.jsonl", log);
    let endpoint = Endpoint::start(Vec::new());
    let ran = uncut(&dir, &endpoint).arg("go").run();
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(30), ""), "{ran:?}");
    let last = ran.stderr.lines().last().unwrap();
    assert!(last.starts_with("uncut: session_damaged: "), "{last}");
    assert!(last.contains(&format!("line {line}")), "{last} should name line {line}");
    assert!(last.contains(&format!("byte {offset}")), "{last} should name byte {offset}");
    assert_eq!(fs::read(dir.path("s.jsonl")).unwrap(), log);
}

#[test]
fn a_damaged_log_is_refused_with_line_and_byte_and_not_touched() {
    let whole = user("one") + &user("two") + &user("three");
    let with = |tail: &str| [whole.as_bytes(), tail.as_bytes()].concat();
    let offset = whole.len();
    assert_damaged(&with(r#"{"v":1,"message":{"role":"assi"#), 4, offset);
    assert_damaged(&with(user("no newline").trim_end()), 4, offset);
    assert_damaged(&with("\n"), 4, offset);
    assert_damaged(&with(&user("x").replace("\"v\":1", "\"v\":2")), 4, offset);
    assert_damaged(&with(&user("x").replace("user", "oracle")), 4, offset);
    let glued = r#"{"v":1,"message":{"role":"assistant","content":"ab{"v":1,"message":{}}"#;
    assert_damaged(&with(&format!("{glued}\n")), 4, offset);
    let mut not_utf8 = with(&user("caf#"));
    *not_utf8.iter_mut().rfind(|byte| **byte == b'#').unwrap() = 0xE9;
    assert_damaged(&not_utf8, 4, offset);
}

#[test]
fn every_prefix_of_a_log_is_replayed_whole_or_refused() {
    let log = user("one") + &calls(&["c1"]) + &result("c1") + &user("two");
    let ends: Vec<usize> = log.match_indices('\n').map(|(index, _)| index + 1).collect();
    let answer = json!({"choices": [{"finish_reason": "stop", "message": {"content": "ok"}}]});
    let dir = Dir::new("prefix");
    dir.write("script.jsonl", format!("{answer}\n"));
    for length in 0..=log.len() {
        dir.write("s.jsonl", &log[..length]);
        let ran = Uncut::new(&dir).args(["--replay", "script.jsonl"]).args(SESSION).arg("go").run();
        if length == 0 || ends.contains(&length) {
            assert_eq!(ran.code, Some(0), "{length}: {ran:?}");
        } else {
            assert_eq!(ran.code, Some(30), "{length}: {ran:?}");
            assert_eq!(dir.read("s.jsonl"), &log[..length]);
        }
    }
}

#[test]
fn a_session_has_one_writer_and_a_killed_one_holds_nothing() {
    let dir = Dir::new("locked");
    let endpoint = Endpoint::start(vec![Reply::stall(), Reply::answer("ok")]);
    let mut first = uncut(&dir, &endpoint).arg("first").spawn();
    endpoint.wait_for_requests(1);
    symlink("s.jsonl", dir.path("alias.jsonl")).unwrap();
    for name in ["s.jsonl", "alias.jsonl"] {
        let ran = Uncut::new(&dir).args(["-m", "m", "--session", name, "go"]).run();
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(31), ""), "{ran:?}");
        let says = format!("{} is held by another process", dir.path(name).display());
        assert!(ran.stderr.contains(&format!("uncut: session_locked: {says}")), "{ran:?}");
    }
    first.kill().unwrap();
    first.wait().unwrap();
    let ran = uncut(&dir, &endpoint).arg("second").run();
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

/// Two runs at once, 100 times. Whoever gets the log has it alone: the other one is told who holds
/// it, or goes on behind the first one's answer.
#[test]
fn of_two_runs_at_once_one_writes_and_no_record_is_lost() {
    let answer = json!({"choices": [{"finish_reason": "stop", "message": {"content": "ok"}}]});
    let dir = Dir::new("two").with("script.jsonl", format!("{answer}\n"));
    symlink("s.jsonl", dir.path("alias.jsonl")).unwrap();
    let start = |name: &str, prompt: &str| {
        let arguments = ["--replay", "script.jsonl", "--session", name, prompt];
        Uncut::new(&dir).args(arguments).spawn()
    };
    let mut expected = 0;
    for round in 0..100 {
        let children = [start("s.jsonl", "first"), start("alias.jsonl", "second")];
        let pids = children.each_ref().map(std::process::Child::id);
        let ran = children.map(finish);
        let codes = ran.each_ref().map(|ran| ran.code);
        assert!(codes.contains(&Some(0)), "round {round}: {ran:?}");
        for (index, ran) in ran.iter().enumerate() {
            if ran.code == Some(0) {
                expected += 2;
                continue;
            }
            assert_eq!((ran.code, ran.stdout.as_str()), (Some(31), ""), "round {round}: {ran:?}");
            // Nobody, where the holder is gone between the last look and the question.
            let says = format!(" is held by another process (pid {})", pids[1 - index]);
            let is_gone = ran.stderr.contains(" is held by another process; ");
            assert!(ran.stderr.contains(&says) || is_gone, "round {round}: {ran:?}");
        }
        let log = records(&dir.read("s.jsonl"));
        assert_eq!(log.len(), expected, "round {round}");
        for pair in log.chunks(2) {
            let roles = [&pair[0]["message"]["role"], &pair[1]["message"]["role"]];
            assert_eq!(roles, ["user", "assistant"], "round {round}");
        }
    }
}

/// A command that waits for a file, and no longer than some 20 seconds.
const HELD: &str = "n=0; until [ -e go ] || [ $n = 1000 ]; do sleep 0.02; n=$((n + 1)); done";

/// A recording of a run that calls a command and then answers.
fn script(command: &str) -> String {
    let arguments = json!({"command": command}).to_string();
    let function = json!({"name": "shell", "arguments": arguments});
    let calls = json!([{"id": "c1", "type": "function", "function": function}]);
    let call = json!({"finish_reason": "tool_calls", "message": {"tool_calls": calls}});
    let answer = json!({"finish_reason": "stop", "message": {"content": "ok"}});
    [call, answer].map(|choice| json!({"choices": [choice]}).to_string() + "\n").concat()
}

/// Two runs at once, 100 times, of which the one that comes first does not end before the other
/// has.
#[test]
fn whoever_comes_second_is_told_who_holds_the_session() {
    // A held log is looked at for a quarter of a second; so some at a time.
    thread::scope(|scope| {
        for _ in 0..5 {
            scope.spawn(|| (0..20).for_each(second_is_told));
        }
    });
}

fn second_is_told(round: u32) {
    let dir = Dir::new("second").with("script.jsonl", script(HELD));
    symlink("s.jsonl", dir.path("alias.jsonl")).unwrap();
    let children = ["s.jsonl", "alias.jsonl"].map(|name| {
        Uncut::new(&dir).args(["--replay", "script.jsonl", "--session", name, "hi"]).spawn()
    });
    let pids = children.each_ref().map(std::process::Child::id);
    let (ended, ends) = mpsc::channel();
    for (index, child) in children.into_iter().enumerate() {
        let ended = ended.clone();
        thread::spawn(move || ended.send((index, finish(child))));
    }
    let (second, ran) = ends.recv().unwrap();
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(31), ""), "round {round}: {ran:?}");
    let says = format!(" is held by another process (pid {}); ", pids[1 - second]);
    assert!(ran.stderr.contains(&says), "round {round}: {ran:?}");
    dir.write("go", "");
    let (_, ran) = ends.recv().unwrap();
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "ok\n"), "round {round}: {ran:?}");
    let log = records(&dir.read("s.jsonl"));
    let roles: Vec<_> = log.iter().map(|record| record["message"]["role"].clone()).collect();
    assert_eq!(roles, ["user", "assistant", "tool", "assistant"], "round {round}");
}

#[test]
fn a_command_that_outlives_its_killed_run_does_not_hold_the_session() {
    let dir = Dir::new("outlives").with("script.jsonl", script(&format!("echo $$ > pid; {HELD}")));
    let arguments = ["--replay", "script.jsonl", "--session", "s.jsonl", "hi"];
    assert!(Command::new("mkfifo").arg(dir.path("pid")).status().unwrap().success());
    let mut run = Uncut::new(&dir).args(arguments).spawn();
    // Ends when the command writes to it.
    let pid: u32 = dir.read("pid").trim().parse().unwrap();
    run.kill().unwrap();
    run.wait().unwrap();
    assert!(Path::new("/proc").join(pid.to_string()).exists(), "the command is gone too");
    dir.write("script.jsonl", script("true"));
    let ran = Uncut::new(&dir).args(arguments).run();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    dir.write("go", "");
}

/// Writes more than fits, by way of a tool result, and then resumes where there is room.
#[track_caller]
fn assert_survives(dir: &Dir, ran: &Ran, endpoint: &Endpoint, says: &str) {
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(32), ""), "{ran:?}");
    let last = ran.stderr.lines().last().unwrap();
    assert!(last.starts_with("uncut: session_write: ") && last.contains(says), "{last}");
    let before = records(&dir.read("s.jsonl"));
    assert_eq!(before.last().unwrap()["message"]["role"], "assistant");
    let ran = uncut(dir, endpoint).arg("go on").run();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let after = records(&dir.read("s.jsonl"));
    assert_eq!(after[..before.len()], before[..]);
    let answered = after[before.len()]["message"]["content"].as_str().unwrap();
    assert!(answered.starts_with("interrupted"), "{answered}");
}

fn flood() -> Endpoint {
    let command = r#"{"command":"head -c 30000 /dev/zero | tr '\\0' a"}"#;
    Endpoint::start(vec![Reply::tool_call("c1", "shell", command), Reply::answer("ok")])
}

#[test]
fn a_file_size_limit_leaves_whole_records() {
    let dir = Dir::new("limit");
    let endpoint = flood();
    let limited = Uncut::below(&dir, "/bin/sh", &["-c", "ulimit -f 16; exec \"$0\" \"$@\""]);
    let ran = on(limited, &endpoint).arg("go").run();
    assert_survives(&dir, &ran, &endpoint, "File too large");
}

#[test]
fn a_full_disk_leaves_whole_records() {
    let dir = Dir::new("disk");
    fs::create_dir(dir.path("disk")).unwrap();
    // A file system of 16 KB, in a mount namespace that ends with the run; what is on it is saved.
    let script = "mount -t tmpfs -o size=16k none disk || exit 99; ln -s disk/s.jsonl s.jsonl; \
                  \"$0\" \"$@\"; code=$?; rm s.jsonl; cp disk/s.jsonl s.jsonl; exit $code";
    let arguments = ["--mount", "--map-root-user", "/bin/sh", "-c", script];
    let endpoint = flood();
    let ran = on(Uncut::below(&dir, "unshare", &arguments), &endpoint).arg("go").run();
    if ran.stderr.starts_with("unshare:") || ran.code == Some(99) {
        endpoint.allow_unused();
        eprintln!("skipped: this machine does not let us mount: {}", ran.stderr);
        return;
    }
    assert_survives(&dir, &ran, &endpoint, "No space left");
}

pub(crate) fn has_strace() -> bool {
    Command::new("strace")
        .arg("-V")
        .stdout(Stdio::null())
        .spawn()
        .is_ok_and(|mut child| child.wait().is_ok_and(|status| status.success()))
}

#[test]
fn a_sync_that_fails_leaves_whole_records() {
    if !has_strace() {
        eprintln!("skipped: no strace");
        return;
    }
    let dir = Dir::new("sync");
    let endpoint = flood();
    // The new file and its folder, the prompt, the call, and then the result that fails.
    let inject = "inject=fsync:error=EIO:when=4+";
    let arguments = ["-f", "-o", "trace", "-e", "trace=fsync", "-e", inject];
    let ran = on(Uncut::below(&dir, "strace", &arguments), &endpoint).arg("go").run();
    assert_survives(&dir, &ran, &endpoint, "(os error 5)");
}

#[test]
fn a_record_is_one_write_and_then_a_sync() {
    if !has_strace() {
        eprintln!("skipped: no strace");
        return;
    }
    let dir = Dir::new("strace");
    let endpoint = Endpoint::start(vec![Reply::answer("ok")]);
    let arguments = ["-o", "trace", "-s", "9999", "-e", "trace=write,fsync"];
    let ran = on(Uncut::below(&dir, "strace", &arguments), &endpoint).arg("go").run();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let trace = dir.read("trace");
    let lines: Vec<&str> = trace.lines().collect();
    let written: Vec<usize> =
        (0..lines.len()).filter(|index| lines[*index].contains(r#"{\"v\":1"#)).collect();
    assert_eq!(written.len(), 2, "{trace}");
    for index in written {
        assert!(lines[index].contains(r#"}\n""#), "{}", lines[index]);
        assert!(lines[index + 1].starts_with("fsync("), "{}", lines[index + 1]);
    }
}

/// What the log is read for must not change any more, so the lock comes first, and it is one that
/// is not waited for and that the death of the process ends.
#[test]
fn a_log_is_locked_before_it_is_read() {
    if !has_strace() {
        eprintln!("skipped: no strace");
        return;
    }
    let dir = Dir::new("lock-first").with("s.jsonl", user("one"));
    let endpoint = Endpoint::start(vec![Reply::answer("ok")]);
    let arguments = ["-o", "trace", "-P", "s.jsonl", "-e", "trace=flock,read,write"];
    let ran = on(Uncut::below(&dir, "strace", &arguments), &endpoint).arg("go").run();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let trace = dir.read("trace");
    let calls: Vec<&str> = trace.lines().filter_map(|line| line.split('(').next()).collect();
    assert_eq!(calls[..4], ["flock", "read", "read", "write"], "{trace}");
    assert!(trace.lines().next().unwrap().contains(", LOCK_EX|LOCK_NB)"), "{trace}");
    endpoint.finish();
}

/// Runs on a file system whose locks fail with `error`.
fn run_without_locks(dir: &Dir, endpoint: &Endpoint, error: &str) -> Ran {
    let inject = format!("inject=flock:error={error}");
    let arguments = ["-o", "trace", "-e", "trace=flock", "-e", &inject];
    let ran = on(Uncut::below(dir, "strace", &arguments), endpoint).arg("go").run();
    assert!(dir.read("trace").contains("(INJECTED)"), "{ran:?}");
    ran
}

#[test]
fn a_file_system_without_locks_is_a_warning_and_a_lock_that_fails_is_an_error() {
    if !has_strace() {
        eprintln!("skipped: no strace");
        return;
    }
    for (error, says) in
        [("ENOLCK", "(os error 37)"), ("EOPNOTSUPP", "(os error 95)"), ("ENOSYS", "(os error 38)")]
    {
        let dir = Dir::new("no-locks").with("s.jsonl", user("one"));
        let endpoint = Endpoint::start(vec![Reply::answer("ok")]);
        let ran = run_without_locks(&dir, &endpoint, error);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "ok\n"), "{ran:?}");
        let path = dir.path("s.jsonl");
        let warning = format!("warning: {} can't be locked here (", path.display());
        assert!(ran.stderr.contains(&warning) && ran.stderr.contains(says), "{error}: {ran:?}");
        assert_eq!(records(&dir.read("s.jsonl")).len(), 3);
        endpoint.finish();
    }
    let dir = Dir::new("bad-lock").with("s.jsonl", user("one"));
    let endpoint = Endpoint::start(Vec::new());
    let ran = run_without_locks(&dir, &endpoint, "EIO");
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(32), ""), "{ran:?}");
    assert!(ran.stderr.contains("(os error 5)"), "{ran:?}");
    assert_eq!(dir.read("s.jsonl"), user("one"));
}

/// A lock that is held is looked at again for a moment: a run that was killed while it started a
/// command leaves a copy of itself for as long.
#[test]
fn a_lock_that_is_let_go_in_a_moment_is_waited_for() {
    if !has_strace() {
        eprintln!("skipped: no strace");
        return;
    }
    let dir = Dir::new("moment").with("script.jsonl", script("true"));
    let run = |when: &str| {
        let inject = format!("inject=flock:error=EAGAIN{when}");
        let arguments = ["-o", "trace", "-e", "trace=flock", "-e", &inject];
        let uncut = Uncut::below(&dir, "strace", &arguments).args(SESSION);
        uncut.args(["--replay", "script.jsonl", "hi"]).run()
    };
    assert_eq!(run(":when=1..3").code, Some(0));
    let ran = run("");
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(31), ""), "{ran:?}");
    assert!(ran.stderr.contains(" is held by another process; "), "{ran:?}");
}

/// Two runs on such a file system: the one whose log has grown meanwhile stops before it writes.
#[test]
fn without_locks_no_record_of_another_run_is_cut_off() {
    if !has_strace() {
        eprintln!("skipped: no strace");
        return;
    }
    let dir = Dir::new("unlocked").with("s.jsonl", user("one"));
    let append = json!({"command": "cat theirs >> s.jsonl"}).to_string();
    dir.write("theirs", user("theirs"));
    let endpoint = Endpoint::start(vec![Reply::tool_call("c1", "shell", &append)]);
    let ran = run_without_locks(&dir, &endpoint, "ENOLCK");
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(32), ""), "{ran:?}");
    assert!(ran.stderr.contains("another process writes to it; it was not touched"), "{ran:?}");
    assert!(ran.stderr.contains("let one run at a time use it"), "{ran:?}");
    let log = records(&dir.read("s.jsonl"));
    assert_eq!(log.len(), 4);
    assert_eq!(log[3]["message"]["content"], "theirs");
}

/// The name of a new log is durable in the directory that holds it, before anything else is; where
/// a directory can't be synced at all that is all there is to do.
#[test]
fn a_new_log_is_made_for_its_owner_and_its_directory_is_synced() {
    if !has_strace() {
        eprintln!("skipped: no strace");
        return;
    }
    let run = |inject: &[&str], code| {
        let dir = Dir::new("new").with("real/other", "");
        symlink("real/log", dir.path("s.jsonl")).unwrap();
        let endpoint = Endpoint::start(vec![Reply::answer("ok")]).allow_unused();
        let arguments =
            [&["-y", "-o", "trace", "-e", "trace=?open,openat,fsync,write"], inject].concat();
        let ran = on(Uncut::below(&dir, "strace", &arguments), &endpoint).arg("go").run();
        assert_eq!(ran.code, Some(code), "{ran:?}");
        (dir.read("trace"), dir.path("real").display().to_string(), ran)
    };
    let (trace, real, _) = run(&[], 0);
    let made = trace.lines().find(|line| line.contains("O_CREAT")).unwrap();
    assert!(made.contains("s.jsonl\"") && made.contains(", 0600) = "), "{made}");
    let synced = trace.lines().position(|line| line.starts_with("fsync(")).unwrap();
    let first = trace.lines().nth(synced).unwrap();
    assert!(first.contains(&format!("<{real}>)")), "{first}");
    let written = trace.lines().position(|line| line.contains(r#"{\"v\":1"#)).unwrap();
    assert!(synced < written, "{trace}");
    run(&["-e", "inject=fsync:error=EINVAL:when=1"], 0);
    for error in ["EIO", "ENOSPC"] {
        let (_, _, ran) = run(&["-e", &format!("inject=fsync:error={error}:when=1")], 32);
        assert!(ran.stderr.contains("make room or mend the disk"), "{ran:?}");
    }
}

/// Each takes the log away in another way, or changes it in place: the command of a tool call, and
/// that of the gate, after which no record follows.
#[test]
fn a_log_that_a_command_takes_away_or_changes_ends_the_run() {
    let swap = "size=$(wc -c <s.jsonl); printf '%*s' $((size - 1)) x | tr ' ' x >other; \
                echo >>other; cat other >s.jsonl";
    for (command, says) in [
        ("rm s.jsonl", "it was removed while"),
        ("rm s.jsonl; mkdir s.jsonl", "it was removed, and a directory lies there now"),
        ("mv s.jsonl old", "it was moved away while"),
        ("mv s.jsonl old; mkdir s.jsonl", "it was moved away for a directory"),
        ("ln s.jsonl old; rm s.jsonl", "it was moved away while"),
        ("mv s.jsonl old; : >s.jsonl", "it was moved away, and another file lies there now"),
        ("mv s.jsonl old; cp old s.jsonl", "it was moved away, and another file lies there now"),
        ("cp s.jsonl new; mv new s.jsonl", "it was replaced by another file"),
        ("mv s.jsonl old; ln -s missing s.jsonl", "it was moved away while"),
        ("cp s.jsonl old; : >s.jsonl", "it has 0 bytes"),
        ("echo >>s.jsonl", "another process writes to it"),
        ("dd if=/dev/zero of=s.jsonl bs=1 count=9 conv=notrunc", "its records were overwritten"),
        (swap, "its records were overwritten"),
    ] {
        for gate in [false, true] {
            let dir = Dir::new("taken");
            let arguments = json!({"command": command}).to_string();
            let reply = match gate {
                true => Reply::answer("done"),
                false => Reply::tool_call("c1", "shell", &arguments),
            };
            let endpoint = Endpoint::start(vec![reply]);
            let verify = gate.then_some(["--verify", command]);
            let ran = uncut(&dir, &endpoint).args(verify.iter().flatten()).arg("go").run();
            assert_eq!((ran.code, ran.stdout.as_str()), (Some(32), ""), "{command}: {ran:?}");
            let line = ran.stderr.lines().last().unwrap();
            assert!(line.contains(says) && line.contains("out of the way"), "{command}: {line}");
            // What was there is whole, and what is there now got nothing.
            if dir.path("old").exists() {
                assert_eq!(records(&dir.read("old")).len(), 2, "{command}");
            }
            if command.ends_with(": >s.jsonl") {
                assert_eq!(dir.read("s.jsonl"), "", "{command}");
            }
        }
    }
}

/// A log that is renamed and still found by its path, through a link, is where it is looked for.
#[test]
fn a_log_is_looked_for_through_links() {
    for (command, code) in [
        ("mv s.jsonl old; ln -s old s.jsonl", 0),
        ("mv real/log real/old; ln -s old real/log", 0),
        ("mv real/log real/old; : >real/log", 32),
        ("rm s.jsonl; ln -s real/other s.jsonl; : >real/other", 32),
        ("mv real unreal", 32),
    ] {
        let dir = Dir::new("linked").with("real/none", "");
        symlink("real/log", dir.path("s.jsonl")).unwrap();
        let arguments = json!({"command": command}).to_string();
        let replies = [Reply::tool_call("c1", "shell", &arguments), Reply::answer("ok")];
        let endpoint = Endpoint::start(replies.into()).allow_unused();
        let ran = uncut(&dir, &endpoint).arg("go").run();
        assert_eq!(ran.code, Some(code), "{command}: {ran:?}");
    }
}

/// Three calls in one message, and the results that the conversation has after a resume.
#[track_caller]
fn results_after(command: &str, code: impl Fn(&Ran), says: &str) -> Vec<String> {
    let dir = Dir::new("behind");
    let first = json!({"command": command}).to_string();
    let second = json!({"command": "touch second"}).to_string();
    let calls = Reply::tool_calls(&[
        ("c1", "shell", &json!({"command": "echo one"}).to_string()),
        ("c2", "shell", &first),
        ("c3", "shell", &second),
        ("c4", "shell", &second),
    ]);
    let endpoint = Endpoint::start(vec![calls, Reply::answer("ok")]);
    code(&uncut(&dir, &endpoint).arg("go").run());
    let ran = uncut(&dir, &endpoint).arg("go on").run();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stderr.contains(says), "{ran:?}");
    assert!(!dir.path("second").exists());
    let requests = endpoint.finish();
    let messages = requests[1].messages().iter().filter(|message| message["role"] == "tool");
    messages.map(|message| message["content"].as_str().unwrap().to_owned()).collect()
}

/// A run may be killed, or end itself by a signal: the call that it was at may have had an effect,
/// and those behind it were never started.
#[test]
fn calls_behind_the_one_that_a_run_died_in_are_not_run() {
    for (command, code) in [("kill -9 $PPID; sleep 20", None), ("kill $PPID; sleep 20", Some(143))]
    {
        let says = "warning: 3 tool calls of an earlier run without a result; the model is told \
                    that only the first may or may not have taken effect";
        let results = results_after(command, |ran| assert_eq!(ran.code, code, "{ran:?}"), says);
        assert!(results[0].contains("one"), "{results:?}");
        assert_eq!(results[1], "interrupted: may or may not have taken effect");
        assert_eq!(results[2], "not run: the run ended before this call was started");
        assert_eq!(results[3], results[2]);
    }
}

/// What was cut off may have had their results, so that nothing is known of any call.
#[test]
fn after_a_repair_every_call_without_a_result_may_have_been_run() {
    for prompt in [false, true] {
        let dir = Dir::new("repaired");
        let timed = |line: String| line.replacen("{", "{\"time\":\"x\",", 1);
        let log = user("go") + &calls(&["c1", "c2"]) + "garbage\n" + &result("c2");
        let log: String = log.split_inclusive('\n').map(|line| timed(line.to_owned())).collect();
        dir.write("s.jsonl", log);
        let endpoint = Endpoint::start(vec![Reply::answer("ok")]);
        let repair = uncut(&dir, &endpoint).arg("--repair-session");
        let ran = if prompt { repair.arg("go on").run() } else { repair.run() };
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(ran.stderr.contains("warning: 2 tool calls of an earlier run"), "{ran:?}");
        if !prompt {
            assert_eq!(uncut(&dir, &endpoint).arg("go on").run().code, Some(0));
        }
        let requests = endpoint.finish();
        let messages = requests[0].messages();
        for message in &messages[3..5] {
            assert_eq!(message["content"], "interrupted: may or may not have taken effect");
        }
    }
}

/// A generator of its own, so that a failure can be repeated.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        // xorshift64; good enough to spread moments.
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

/// A run is killed at some moment of its first 50 steps, 200 times. What the endpoint was sent had
/// been logged before, so it has to be in the log, and the log has to open or to be refused.
#[test]
fn a_killed_run_leaves_whole_records_or_one_refused_tail() {
    let answer = json!({"choices": [{"finish_reason": "stop", "message": {"content": "ok"}}]});
    let mut random = Random(0x5EED);
    let mut torn = 0;
    for round in 0..200 {
        let dir = Dir::new("killed");
        let call = |n: u32| {
            let command = json!({"command": format!("echo {n}")}).to_string();
            Reply::tool_call(&format!("c{n}"), "shell", &command)
        };
        let endpoint = Endpoint::start((0..70).map(call).collect()).allow_unused();
        let mut child = uncut(&dir, &endpoint).args(["--max-steps", "70", "go"]).spawn();
        let requests = 1 + usize::try_from(random.below(50)).unwrap();
        endpoint.wait_for_requests(requests);
        let moment = Instant::now() + Duration::from_micros(random.below(6_000));
        while Instant::now() < moment {
            std::hint::spin_loop();
        }
        child.kill().unwrap();
        let ran = finish(child);
        let requests = endpoint.finish();

        let log = fs::read(dir.path("s.jsonl")).unwrap();
        let whole = log.iter().rposition(|byte| *byte == b'\n').map_or(0, |index| index + 1);
        let logged = records(std::str::from_utf8(&log[..whole]).unwrap());
        let sent = &requests.last().unwrap().messages()[1..];
        assert!(logged.len() >= sent.len(), "round {round}: {ran:?}");
        for (record, message) in logged.iter().zip(sent) {
            assert_eq!(record["message"], *message, "round {round}");
        }

        dir.write("script.jsonl", format!("{answer}\n"));
        let ran = Uncut::new(&dir).args(["--replay", "script.jsonl"]).args(SESSION).arg("go").run();
        let is_torn = whole < log.len();
        torn += u32::from(is_torn);
        assert_eq!(ran.code, Some(if is_torn { 30 } else { 0 }), "round {round}: {ran:?}");
    }
    eprintln!("{torn} of 200 logs ended in a torn record");
}

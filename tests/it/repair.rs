//! `--repair-session` and `--show-session` through the real binary.

use std::fs;
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Stdio;

use serde_json::json;

use super::sessions::{SESSION, calls, has_strace, records, result, uncut, user};
use crate::support::endpoint::{Endpoint, Reply};
use crate::support::sandbox::{Dir, Ran, Uncut};

/// Repairs without a prompt.
fn repair(dir: &Dir) -> Ran {
    Uncut::new(dir).args(SESSION).arg("--repair-session").stdin("not read").run()
}

fn show(dir: &Dir) -> Ran {
    Uncut::new(dir).args(SESSION).arg("--show-session").run()
}

/// Repairs a log, of which `whole` bytes stay and the rest is moved.
#[track_caller]
fn assert_repaired(log: &[u8], whole: usize, says: &str) {
    let dir = Dir::new("repair");
    dir.write("s.jsonl", log);
    let ran = repair(&dir);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), ""), "{ran:?}");
    assert!(ran.stderr.contains("uncut: repaired: ") && ran.stderr.contains(says), "{ran:?}");
    assert_eq!(fs::read(dir.path("s.jsonl")).unwrap(), &log[..whole]);
    assert_eq!(fs::read(dir.path("s.jsonl.damaged-1")).unwrap(), &log[whole..]);
    let mode = fs::metadata(dir.path("s.jsonl.damaged-1")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(show(&dir).code, Some(0));
}

#[test]
fn the_damage_is_moved_to_a_file_beside_the_log_and_told() {
    let whole = user("one") + &user("two");
    let torn = r#"{"v":1,"message":{"role":"assi"#;
    assert_repaired(
        (whole.clone() + torn).as_bytes(),
        whole.len(),
        &format!(
            "line 3 (byte {}): no newline at the end: the record was not written whole; from \
             there on 1 line, {} bytes, were moved to /",
            whole.len(),
            torn.len()
        ),
    );
    let middle = whole.clone() + "\n" + &user("three") + "{}\n" + &user("four") + torn;
    let says = "; 2 lines behind the damage could be read and are lost with it\n";
    assert_repaired(middle.as_bytes(), whole.len(), says);
    assert_repaired(middle.as_bytes(), whole.len(), "from there on 5 lines, ");
    assert_repaired(torn.as_bytes(), 0, "line 1 (byte 0): ");
    assert_repaired(&[whole.as_bytes(), b"\xff\xfe\0\n"].concat(), whole.len(), "invalid UTF-8");
    // A result for a call that nobody made is a record, and no continuation.
    let orphan = whole.clone() + &result("c1") + &user("three");
    assert_repaired(orphan.as_bytes(), whole.len(), "; 1 line behind the damage could be read");
}

/// A line of more than 256 MB is no record, whatever it holds. The log is mostly a hole.
#[test]
fn a_line_of_any_length_is_moved_whole() {
    let dir = Dir::new("endless").with("s.jsonl", user("one"));
    let whole = user("one").len() as u64;
    let hole = whole + (256 << 20) + 10;
    let log = fs::File::options().append(true).open(dir.path("s.jsonl")).unwrap();
    log.set_len(hole).unwrap();
    (&log).write_all(format!("\n{}", user("two")).as_bytes()).unwrap();
    let says = format!("line 2 (byte {whole}): a record of more than 268435456 bytes");
    let ran = show(&dir);
    assert!(ran.code == Some(30) && ran.stderr.contains(&says), "{ran:?}");
    let ran = repair(&dir);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let bytes = hole - whole + 1 + whole;
    let moved = format!("{says}; from there on 2 lines, {bytes} bytes, were moved to ");
    assert!(ran.stderr.contains(&moved), "{ran:?}");
    assert!(ran.stderr.contains("; 1 line behind the damage could be read"), "{ran:?}");
    assert_eq!(dir.read("s.jsonl"), user("one"));
    let mut copy = fs::File::open(dir.path("s.jsonl.damaged-1")).unwrap();
    assert_eq!(copy.metadata().unwrap().len(), bytes);
    copy.seek(SeekFrom::Start(hole - whole)).unwrap();
    let mut end = String::new();
    copy.read_to_string(&mut end).unwrap();
    assert_eq!(end, format!("\n{}", user("two")));
}

#[test]
fn the_run_goes_on_behind_the_repair_on_a_line_of_its_own() {
    let dir = Dir::new("repair-run");
    let whole = user("one") + &calls(&["c1"]);
    dir.write("s.jsonl", whole.clone() + "{\"v\":1,\"mess");
    let endpoint = Endpoint::start(vec![Reply::answer("ok")]);
    let ran = uncut(&dir, &endpoint).args(["--repair-session", "-q", "go on"]).run();
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "ok\n"), "{ran:?}");
    assert!(ran.stderr.contains("repaired: "), "loud also where the run is quiet: {ran:?}");
    let log = dir.read("s.jsonl");
    assert!(log.starts_with(&whole));
    let roles: Vec<_> = records(&log).iter().map(|r| r["message"]["role"].clone()).collect();
    assert_eq!(roles, ["user", "assistant", "tool", "user", "assistant"]);
    endpoint.finish();
}

#[test]
fn an_earlier_copy_is_never_overwritten_and_a_link_is_followed() {
    let dir = Dir::new("copies");
    fs::create_dir(dir.path("real")).unwrap();
    symlink("real/log", dir.path("s.jsonl")).unwrap();
    symlink("nowhere", dir.path("real/log.damaged-1")).unwrap();
    dir.write("real/log.damaged-2", "precious");
    dir.write("real/log", user("one") + "torn");
    assert_eq!(repair(&dir).code, Some(0));
    assert_eq!(dir.read("real/log.damaged-2"), "precious");
    assert_eq!(dir.read("real/log.damaged-3"), "torn");
    assert_eq!(dir.read("real/log"), user("one"));
    assert!(!dir.path("real/nowhere").exists() && dir.path("s.jsonl").is_symlink());
}

#[test]
fn a_log_that_is_whole_is_said_to_be_and_left_alone() {
    let dir = Dir::new("whole");
    dir.write("s.jsonl", user("one"));
    let ran = repair(&dir);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), ""), "{ran:?}");
    assert!(ran.stderr.contains("s.jsonl is whole; nothing was repaired"), "{ran:?}");
    assert_eq!((dir.read("s.jsonl"), dir.names()), (user("one"), vec!["s.jsonl".to_owned()]));
    let endpoint = Endpoint::start(vec![Reply::answer("ok")]);
    let ran = uncut(&dir, &endpoint).args(["--repair-session", "go"]).run();
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "ok\n"), "{ran:?}");
    endpoint.finish();
}

#[test]
fn what_can_not_be_meant_is_a_usage_error_and_makes_no_file() {
    let dir = Dir::new("repair-usage");
    for (arguments, says) in [
        (vec!["--repair-session"], "--repair-session: needs a session; give --session FILE"),
        (vec!["--show-session"], "--show-session: needs a session; give --session FILE"),
        (
            vec!["--session", "s", "--repair-session", "--show-session"],
            "--show-session: contradicts --repair-session",
        ),
        (vec!["--session", "s", "--show-session", "hi"], "--show-session: takes no prompt"),
        (vec!["--session", "s", "--repair-session"], "--session: "),
        (vec!["--session", "s", "--show-session"], "--session: "),
        (vec!["--session", "s", "--repair-session", "-mm", " "], "PROMPT: the prompt is empty"),
    ] {
        let ran = Uncut::new(&dir).args(&arguments).run();
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{arguments:?}: {ran:?}");
        assert!(ran.stderr.starts_with(&format!("uncut: usage: {says}")), "{ran:?}");
        assert!(dir.names().is_empty(), "{arguments:?}");
    }
}

#[test]
fn a_log_that_is_held_is_shown_and_not_repaired() {
    let dir = Dir::new("held");
    let endpoint = Endpoint::start(vec![Reply::stall()]);
    let mut holder = uncut(&dir, &endpoint).arg("first").spawn();
    endpoint.wait_for_requests(1);
    // The holder in the middle of a record.
    let whole = dir.read("s.jsonl");
    dir.write("s.jsonl", whole.clone() + "{\"v\":1,");
    let ran = repair(&dir);
    assert_eq!(ran.code, Some(31), "{ran:?}");
    assert!(ran.stderr.contains(&format!("(pid {})", holder.id())), "{ran:?}");
    assert_eq!(dir.names(), ["s.jsonl"]);
    let ran = show(&dir);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.contains("] user\n    first\n"), "{ran:?}");
    let says = "s.jsonl ends in the middle of line 2, whose 7 bytes were left out";
    assert!(ran.stderr.contains(says), "{ran:?}");
    holder.kill().unwrap();
    holder.wait().unwrap();
}

/// The copy and its name are durable before the log is cut, and the cut is durable at the end.
#[test]
fn nothing_is_cut_before_its_copy_is_durable() {
    if !has_strace() {
        eprintln!("skipped: no strace");
        return;
    }
    let trace = "trace=fsync,ftruncate,write";
    let run = |dir: &Dir, inject: &[&str]| {
        let arguments = [&["-o", "trace", "-e", trace], inject].concat();
        Uncut::below(dir, "strace", &arguments).args(SESSION).arg("--repair-session").run()
    };
    let log = user("one") + "torn";
    let dir = Dir::new("durable").with("s.jsonl", &log);
    let ran = run(&dir, &[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let trace = dir.read("trace");
    let calls: Vec<&str> = trace.lines().filter_map(|line| line.split('(').next()).collect();
    let cut = calls.iter().position(|call| *call == "ftruncate").unwrap();
    assert_eq!(calls[cut - 2..=cut + 1], ["fsync", "fsync", "ftruncate", "fsync"], "{trace}");

    for when in 1..=2 {
        let dir = Dir::new("durable").with("s.jsonl", &log);
        let ran = run(&dir, &["-e", &format!("inject=fsync:error=EIO:when={when}")]);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(32), ""), "{ran:?}");
        assert!(ran.stderr.contains("could not be saved beside it: "), "{ran:?}");
        assert!(ran.stderr.contains("(os error 5)"), "{ran:?}");
        assert_eq!(dir.read("s.jsonl"), log);
        assert!(!dir.path("s.jsonl.damaged-1").exists());
    }
    let dir = Dir::new("durable").with("s.jsonl", &log);
    let ran = run(&dir, &["-e", "inject=ftruncate:error=EIO"]);
    assert_eq!(ran.code, Some(32), "{ran:?}");
    assert!(ran.stderr.contains("(os error 5)"), "{ran:?}");
    assert!(ran.stderr.contains("s.jsonl.damaged-1 too"), "{ran:?}");
    assert_eq!((dir.read("s.jsonl"), dir.read("s.jsonl.damaged-1")), (log, "torn".to_owned()));
}

#[test]
fn a_session_is_shown_with_everything_that_was_said_and_nothing_that_moves_a_terminal() {
    let dir = Dir::new("show");
    let record = |beside: serde_json::Value, message: serde_json::Value| {
        let mut record = json!({"v": 1, "time": "2026-11-30T12:00:00.000Z", "message": message});
        record.as_object_mut().unwrap().extend(beside.as_object().unwrap().clone());
        record.to_string() + "\n"
    };
    let long = format!("{}{}{}", "a".repeat(2_000), "b".repeat(5_000), "c".repeat(2_000));
    let call = json!({"role": "assistant", "content": "Look:", "tool_calls": [
        {"id": "c1", "type": "function",
            "function": {"name": "shell", "arguments": "{\"command\":\"ls\"}"}}]});
    let usage = json!({"usage": {"prompt_tokens": 9, "cached_tokens": 4, "completion_tokens": 2},
        "model": "m\u{1b}[1m", "finish_reason": "tool_calls"});
    let log = user(
        "one\n[x] user\n\u{1b}[2J\u{202e}\r\nsk-TESTKEY-1 hunter2@home by-the-proxy in-a-header",
    ) + &record(
        json!({"refused": "truncated"}),
        json!({"role": "assistant", "content": "Half"}),
    ) + &record(usage, call)
        + &record(
            json!({"mine": [1]}),
            json!({"role": "tool", "tool_call_id": "c1", "content": long}),
        );
    dir.write("s.jsonl", &log);
    let ran = Uncut::new(&dir)
        .args(SESSION)
        .args(["--show-session", "--api-key=sk-TESTKEY-1"])
        .args(["--header", "X-Api-Key: in-a-header"])
        .env("UNCUT_BASE_URL", "https://user:hunter2%40home@host/v1")
        .env("https_proxy", "http://user:by-the-proxy@proxy:3128")
        .run();
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{ran:?}");
    let (head, tail) = (&long[..2_000], &long[7_000..]);
    let expected = format!(
        "[no time] user
    one
    [x] user
    \\u{{1b}}[2J\\u{{202e}}
    [api key] [api key] [api key] [api key]

[2026-11-30T12:00:00.000Z] assistant, REFUSED: truncated
    Half

[2026-11-30T12:00:00.000Z] assistant, model m\\u{{1b}}[1m, finish reason tool_calls
    Look:
    call c1: shell
    {{\"command\":\"ls\"}}

[2026-11-30T12:00:00.000Z] result of c1
    {head}
  [... 5000 bytes left out ...]
    {tail}

[total] records 4 (1 refused), tokens 9 (4 cached) + 2, and those of 1 completion not known
"
    );
    assert_eq!(ran.stdout, expected);
    assert_eq!(dir.read("s.jsonl"), log);
}

#[test]
fn a_damaged_session_is_shown_up_to_the_damage() {
    let dir = Dir::new("show-damaged");
    let log = user("one") + "\n" + &user("two");
    dir.write("s.jsonl", &log);
    let ran = show(&dir);
    assert_eq!(ran.code, Some(30), "{ran:?}");
    assert!(ran.stdout.starts_with("[no time] user\n    one\n\n[total] records 1 "), "{ran:?}");
    let last = ran.stderr.lines().last().unwrap();
    assert!(last.starts_with("uncut: session_damaged: ") && last.contains("line 2"), "{last}");
    let path = dir.path("s.jsonl");
    let advice = format!("uncut --session '{}' --repair-session", path.display());
    assert!(last.ends_with(&advice), "{last}");
    assert_eq!(dir.read("s.jsonl"), log);
}

#[test]
fn output_that_is_not_wanted_is_no_failure_and_output_that_does_not_fit_is() {
    let dir = Dir::new("show-full").with("s.jsonl", user("one"));
    let arguments = ["-c", "\"$0\" \"$@\" | true; exit ${PIPESTATUS[0]}"];
    let ran = Uncut::below(&dir, "/bin/bash", &arguments).args(SESSION).arg("--show-session").run();
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{ran:?}");
    let full = Stdio::from(fs::File::options().write(true).open("/dev/full").unwrap());
    let ran = Uncut::new(&dir).args(SESSION).arg("--show-session").run_with_stdout(full);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("stdout can't be written"), "{ran:?}");
}

#[test]
fn a_log_that_others_can_read_is_a_warning() {
    let dir = Dir::new("open").with("s.jsonl", user("one"));
    let mode = |mode| {
        fs::set_permissions(dir.path("s.jsonl"), fs::Permissions::from_mode(mode)).unwrap();
        repair(&dir).stderr
    };
    assert!(mode(0o640).contains("warning: ") && mode(0o640).contains("(mode 0640); chmod 600"));
    assert!(!mode(0o600).contains("warning"));
}

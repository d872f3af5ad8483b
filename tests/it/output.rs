//! Standard output, standard error and the output file: slow, closed, full, gone.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::results::{call, on, result};
use crate::support::endpoint::{Endpoint, Reply};
use crate::support::sandbox::{Dir, Uncut, finish};

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

//! Output that is more than a result keeps: the file that holds all of it, and its end.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::endpoint::{Endpoint, Reply};
use crate::support::sandbox::{Dir, Uncut, finish};
use crate::support::tools::{mounting, results, shell};

/// The file that a result names.
#[track_caller]
fn file(result: &str) -> PathBuf {
    let (_, rest) = result.split_once("; all of it is in ").unwrap_or_else(|| panic!("{result}"));
    rest.split_once("]\n").unwrap().0.into()
}

fn call(tool: &'static str, arguments: Value) -> Reply {
    Reply::tool_call(tool, tool, &arguments.to_string())
}

#[test]
fn the_whole_of_a_long_output_can_be_read_until_the_run_ends() {
    let dir = Dir::new("spill").with("tmp/.keep", "");
    let (reply, hold) = Reply::answer("done").held();
    let first = call("shell", json!({"command": "echo \"$SPILLED\"; seq 1 300000; exit 3"}));
    let endpoint = Endpoint::start(vec![first, reply]).unpoliced();
    let uncut = Uncut::new(&dir).env("TMPDIR", dir.path("tmp"));
    let uncut = uncut.env("SPILLED", "sk-TESTKEY-1").env("UNCUT_API_KEY", "sk-TESTKEY-1");
    let child = uncut.args(["--base-url", &endpoint.base_url(), "-m", "m", "go"]).spawn();
    endpoint.wait_for_requests(2);
    let mut entries = fs::read_dir(dir.path("tmp")).unwrap().map(|entry| entry.unwrap().path());
    let folder = entries.find(|path| path.is_dir()).unwrap();
    let path = folder.join("1.txt");
    let mode = |path: &PathBuf| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&folder), mode(&path)), (0o700, 0o600));
    let lines: String = (1..=300_000).map(|line| format!("{line}\n")).collect();
    assert!(fs::read_to_string(&path).unwrap() == format!("[api key]\n{lines}"));
    drop(hold);
    finish(child);
    let requests = endpoint.finish();
    let result = requests[1].messages()[3]["content"].as_str().unwrap();
    assert_eq!(file(result), path);
    assert!(result.ends_with("\n300000\n[exit 3]"), "{result}");
    assert_eq!(fs::read_dir(dir.path("tmp")).unwrap().count(), 1);
}

#[test]
fn read_file_reads_the_whole_of_an_output() {
    let dir = Dir::new("page").with("tmp/.keep", "");
    // The model has to name the file, so the name is found by the shell and linked.
    let calls = [
        ("shell", json!({"command": "seq 1 300000"})),
        ("shell", json!({"command": "ln -s \"$TMPDIR\"/uncut-output-*/1.txt whole"})),
        ("read_file", json!({"path": "whole", "offset": 150_000, "limit": 1})),
    ];
    let told = results(Uncut::new(&dir).env("TMPDIR", dir.path("tmp")), &calls);
    assert!(told[2].starts_with("150000\t150000\n"), "{told:?}");
}

#[test]
fn what_a_command_left_in_the_place_of_a_folder_hangs_no_later_run() {
    let dir = Dir::new("left").with("tmp/.keep", "");
    let leave = "cd tmp && mkdir uncut-output-left && mkfifo uncut-output-left/lock \
                 uncut-output-fifo && touch -d '3 days ago' uncut-output-*";
    let left = Command::new("sh").args(["-c", leave]).current_dir(dir.path(".")).status();
    assert!(left.unwrap().success());
    let told = shell(Uncut::new(&dir).env("TMPDIR", dir.path("tmp")), "seq 1 300000");
    assert!(file(&told).starts_with(dir.path("tmp")), "{told}");
    // It is no folder.
    let names: Vec<_> = fs::read_dir(dir.path("tmp")).unwrap().map(|e| e.unwrap()).collect();
    let mut names: Vec<_> = names.iter().map(|e| e.file_name().into_string().unwrap()).collect();
    names.sort();
    assert_eq!(names, [".keep", "uncut-output-fifo"]);
}

#[test]
fn a_signal_removes_the_files_too() {
    let dir = Dir::new("ended").with("tmp/.keep", "");
    let command = json!({"command": "seq 1 300000; echo >full; sleep 600"});
    let endpoint = Endpoint::start(vec![call("shell", command)]);
    let uncut = Uncut::new(&dir).env("TMPDIR", dir.path("tmp"));
    let child = uncut.args(["--base-url", &endpoint.base_url(), "-m", "m", "go"]).spawn();
    let count = || fs::read_dir(dir.path("tmp")).unwrap().count();
    let started = Instant::now();
    while count() < 2 || !dir.path("full").exists() {
        assert!(started.elapsed() < Duration::from_secs(30), "no file");
        std::thread::yield_now();
    }
    let id = child.id().to_string();
    let kill = Command::new("/bin/kill").args(["-TERM", &id]).status();
    assert!(kill.unwrap().success());
    assert_eq!(finish(child).code, Some(143));
    assert_eq!(count(), 1);
}

#[test]
fn a_file_that_can_not_be_finished_is_told_and_removed() {
    let dir = Dir::new("full").with("tmp/.keep", "");
    let below = Uncut::below(&dir, "/bin/sh", &["-c", "ulimit -f 200; exec \"$0\" \"$@\""]);
    let command = "seq 1 300000; ls \"$TMPDIR\"/uncut-output-*";
    let calls = [("shell", json!({"command": command})), ("shell", json!({"command": "true"}))];
    let told = results(below.env("TMPDIR", dir.path("tmp")), &calls);
    let lost = " bytes of output left out here; no file could take all of it: File too large";
    assert!(told[0].contains(lost), "{told:?}");
    assert!(told[0].ends_with("\n300000\n[exit 0]"), "{told:?}");
    assert_eq!(told[1], "[no output; exit 0]");
}

#[test]
fn output_without_a_place_for_files_is_cut_all_the_same() {
    let dir = Dir::new("nowhere");
    let script = "mount --bind /tmp /tmp && mount -o remount,ro,bind /tmp";
    if let Some(uncut) = mounting(&dir, script) {
        let told = shell(uncut.env("TMPDIR", "/gone"), "seq 1 300000");
        assert!(told.contains(" bytes of output left out here]\n"), "{told}");
        assert!(told.ends_with("\n300000\n[exit 0]"), "{told}");
    }
}

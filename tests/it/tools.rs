//! The tools through the real binary: what only a process of its own can show.

use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::support::endpoint::{Endpoint, Reply};
use crate::support::sandbox::{Dir, Uncut};
use crate::support::tools::{mounting, results, shell};

#[test]
fn commands_run_where_there_is_no_dev_null() {
    let dir = Dir::new("no-dev");
    if let Some(uncut) = mounting(&dir, "mount -t tmpfs none /dev") {
        assert_eq!(shell(uncut, "cat; echo ran"), "ran\n[exit 0]");
    }
}

/// The arguments of a command that is to take too long.
fn too_long(command: &str) -> (&'static str, Value) {
    ("shell", json!({"command": command, "timeout": 1}))
}

fn command(command: &str) -> (&'static str, Value) {
    ("shell", json!({"command": command}))
}

/// Tells whether the process whose number is in the file `pid` is there.
fn look() -> (&'static str, Value) {
    command("kill -0 $(cat pid) 2>/dev/null && echo alive || echo dead")
}

#[cfg(target_os = "linux")]
#[track_caller]
fn assert_dead(dir: &Dir) {
    let process = format!("/proc/{}", dir.read("pid").trim());
    assert!(!std::path::Path::new(&process).exists(), "{process}");
}

#[cfg(target_os = "linux")]
#[test]
fn what_left_the_group_of_a_command_is_killed_with_it_when_its_time_is_over() {
    for stray in [
        "timeout 600 sh -c 'echo $$ >pid; exec sleep 599' | cat",
        "setsid sh -c 'echo $$ >pid; exec sleep 599'",
        "(setsid env -i sh -c 'echo $$ >pid; exec sleep 599' >/dev/null 2>&1 &); sleep 599",
    ] {
        let dir = Dir::new("stray");
        let told = results(Uncut::new(&dir), &[too_long(stray), look()]);
        assert!(told[0].contains("timed out after 1s; killed"), "{told:?}");
        assert_eq!(told[1], "dead\n[exit 0]", "{stray}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn what_left_the_group_lives_through_the_time_out_of_others_and_not_beyond_the_run() {
    for stray in [
        "timeout 600 sh -c 'echo $$ >pid; exec sleep 599' >/dev/null 2>&1 &",
        "(setsid env -i sh -c 'echo $$ >pid; exec sleep 599' >/dev/null 2>&1 &)",
    ] {
        let dir = Dir::new("daemon");
        let stray = format!("{stray}\nuntil test -s pid; do sleep 0.01; done");
        let calls = [command(&stray), too_long("sleep 600"), look()];
        let told = results(Uncut::new(&dir), &calls);
        assert_eq!(told[2], "alive\n[exit 0]", "{stray}");
        assert_dead(&dir);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn orphans_that_have_ended_are_reaped() {
    let dir = Dir::new("zombies");
    // The children of the binary but for the shell: state and number.
    let children = "for stat in /proc/[0-9]*/stat; do read -r id name state parent rest <$stat; \
                    test $parent = $PPID && test $id != $$ && echo $state; done 2>/dev/null";
    let calls = [
        command("for n in 1 2 3 4 5 6 7 8 9; do (true &); done"),
        command(&format!("while ({children}) | grep -v Z; do sleep 0.01; done")),
        command(&format!("({children}) | grep -c Z")),
    ];
    assert_eq!(results(Uncut::new(&dir), &calls)[2], "0\n[exit 1]");
}

#[cfg(target_os = "linux")]
#[test]
fn the_files_behind_the_streams_of_the_binary_are_not_replaced() {
    let dir = Dir::new("streams");
    let paths = ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"];
    let mut script: Vec<Reply> = Vec::new();
    for path in paths {
        let arguments = json!({"path": path, "content": "x"}).to_string();
        script.push(Reply::tool_call(path, "write_file", &arguments));
        let arguments = json!({"path": path}).to_string();
        script.push(Reply::tool_call(&format!("read {path}"), "read_file", &arguments));
    }
    script.push(Reply::answer("the answer"));
    let endpoint = Endpoint::start(script);
    let stdout = std::fs::File::create(dir.path("out")).unwrap();
    let uncut = Uncut::new(&dir).args(["--base-url", &endpoint.base_url(), "-m", "m", "go"]);
    assert_eq!(uncut.run_with_stdout(Stdio::from(stdout)).code, Some(0));
    assert_eq!(dir.read("out"), "the answer\n");
    let requests = endpoint.finish();
    let messages = requests.last().unwrap().messages();
    let told: Vec<&Value> = messages.iter().filter(|message| message["role"] == "tool").collect();
    assert_eq!(told.len(), 2 * paths.len());
    for message in told {
        let text = message["content"].as_str().unwrap();
        assert!(text.contains(": it is an open stream of a process"), "{text}");
    }
}

#[test]
fn an_exit_status_is_known_where_a_parent_ignored_its_children() {
    let mut probe = Command::new("env");
    probe.args(["--ignore-signal=CHLD", "true"]).stderr(Stdio::null());
    if !probe.status().is_ok_and(|status| status.success()) {
        eprintln!("skipped: env can't ignore signals");
        return;
    }
    let dir = Dir::new("sigchld");
    let uncut = Uncut::below(&dir, "env", &["--ignore-signal=CHLD"]);
    assert_eq!(shell(uncut, "exit 3"), "[no output; exit 3]");
}

#[test]
fn without_a_shell_on_the_machine_none_is_offered() {
    let dir = Dir::new("no-shell").with("f", "text\n");
    let Some(uncut) = mounting(&dir, "mount -t tmpfs none /bin") else { return };
    let endpoint = Endpoint::start(vec![
        Reply::tool_call("a", "shell", r#"{"command":"true"}"#),
        Reply::tool_call("b", "read_file", r#"{"path":"f"}"#),
        Reply::answer("done"),
    ]);
    let ran = uncut.args(["--base-url", &endpoint.base_url(), "--model", "m", "go"]).run();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let requests = endpoint.finish();
    let tools = requests[0].body["tools"].as_array().unwrap();
    let names: Vec<_> = tools.iter().map(|tool| tool["function"]["name"].clone()).collect();
    assert_eq!(names, ["read_file", "write_file", "edit_file"]);
    let messages = requests[2].messages();
    let prompt = messages[0]["content"].as_str().unwrap();
    assert!(prompt.contains("Shell: none on this machine"), "{prompt}");
    let told = messages[3]["content"].as_str().unwrap();
    assert!(told.starts_with("error: there is no tool \"shell\""), "{told}");
    assert_eq!(messages[5]["content"], "     1\ttext\n");
}

/// The arguments of a call that gives a file other content.
fn write(path: &str) -> (&'static str, Value) {
    ("write_file", json!({"path": path, "content": "new"}))
}

#[test]
fn the_owner_of_a_file_stays() {
    use std::os::unix::fs::{MetadataExt as _, chown};
    let dir = Dir::new("owner").with("f", "old");
    if chown(dir.path("f"), Some(12_345), Some(12_346)).is_err() {
        eprintln!("skipped: only root gives files away");
        return;
    }
    assert_eq!(results(Uncut::new(&dir), &[write("f")]), ["replaced f: 3 bytes, 3 before"]);
    let metadata = dir.path("f").metadata().unwrap();
    assert_eq!((metadata.uid(), metadata.gid()), (12_345, 12_346));
    assert_eq!(dir.read("f"), "new");
}

#[test]
fn a_file_that_no_other_can_take_the_place_of_is_written_in_place() {
    let dir = Dir::new("busy").with("f", "a long old content");
    // A mount point is busy.
    let Some(uncut) = mounting(&dir, "mount --bind f f") else { return };
    let told = results(uncut, &[write("f")]);
    assert_eq!(told, ["replaced f: 3 bytes, 18 before (written in place)"]);
    assert_eq!((dir.read("f").as_str(), dir.names()), ("new", vec!["f".to_owned()]));
}

#[cfg(target_os = "linux")]
#[test]
fn new_content_is_synced_before_it_takes_the_place_of_the_old() {
    let probe = Command::new("strace").arg("-V").stdout(Stdio::null()).status();
    if !probe.is_ok_and(|status| status.success()) {
        eprintln!("skipped: no strace");
        return;
    }
    let dir = Dir::new("synced").with("f", "old");
    let arguments =
        ["-f", "-o", "trace", "-y", "-e", "trace=write,fsync,rename,renameat,renameat2"];
    results(Uncut::below(&dir, "strace", &arguments), &[write("f")]);
    let trace = dir.read("trace");
    let mut calls = trace.lines().filter(|line| line.contains(".tmp") || line.contains("fsync("));
    let folder = dir.path(".").canonicalize().unwrap().display().to_string();
    for expected in ["write(", "fsync(", "rename", &format!("<{folder}>")] {
        let call = calls.next().unwrap_or_default();
        assert!(call.contains(expected), "{expected} in {trace}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn what_was_there_before_the_run_lives_beyond_it() {
    let dir = Dir::new("before");
    let script = "sleep 599 >/dev/null 2>&1 & echo $! >pid; exec \"$0\" \"$@\"";
    let uncut = Uncut::below(&dir, "sh", &["-c", script]);
    let told = results(uncut, &[too_long("sleep 600"), look()]);
    assert_eq!(told[1], "alive\n[exit 0]");
    let kill = Command::new("kill").arg(dir.read("pid").trim()).status();
    assert!(kill.unwrap().success());
}

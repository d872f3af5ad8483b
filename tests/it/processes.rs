//! Whose processes are killed and whose are not, and what comes of a machine that is short of them.

use std::fs;
use std::io::Write as _;
use std::os::fd::AsRawFd as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::signals::{as_init, wait_for, wait_until_gone};
use crate::support::endpoint::{Endpoint, Reply};
use crate::support::sandbox::{Dir, Ran, Uncut, finish};
use crate::support::tools::results;

fn command(command: &str) -> (&'static str, Value) {
    ("shell", json!({"command": command}))
}

/// A command that is killed when its time is over.
fn too_long(command: &str) -> (&'static str, Value) {
    ("shell", json!({"command": command, "timeout": 1}))
}

/// Tells whether the process whose number is in the file `pid` is there.
fn look() -> (&'static str, Value) {
    command("kill -0 $(cat pid) && echo alive")
}

/// The binary in the place of a shell that had started something before.
fn after(dir: &Dir, script: &str) -> Uncut {
    Uncut::below(dir, "sh", &["-c", &format!("{script} exec \"$0\" \"$@\"")])
}

/// Asserts that a process lives, and ends it.
#[track_caller]
fn assert_alive(dir: &Dir, name: &str) {
    let id = wait_for(dir, name);
    let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    let killed = Command::new("kill").args(["-KILL", &id]).status().unwrap();
    assert!(killed.success() && !status.contains("\nState:\tZ"), "{name}: {status}");
}

const DETACHED: &str = ">/dev/null 2>&1 </dev/null &";

#[test]
fn children_of_before_the_start_outlive_the_run_and_daemons_of_commands_do_not() {
    let dir = Dir::new("before");
    let before = format!("setsid sleep 77 {DETACHED} echo $! >before;");
    let daemon = format!("(setsid sh -c 'echo $$ >pid; exec sleep 599' {DETACHED})");
    let daemon = format!("{daemon}; until test -s pid; do sleep 0.01; done");
    let calls = [command(&daemon), too_long("sleep 599"), look()];
    let told = results(after(&dir, &before), &calls);
    assert!(told[1].contains("timed out after 1s; killed"), "{told:?}");
    assert_eq!(told[2], "alive\n[exit 0]");
    assert_alive(&dir, "before");
    wait_until_gone(&wait_for(&dir, "pid"));
}

#[test]
fn what_children_of_before_the_start_leave_behind_in_their_session_outlives_the_run() {
    let dir = Dir::new("grandchild");
    let inner = "sleep 77 & echo $! >before; until test -e go; do sleep 0.01; done";
    let before = format!("setsid sh -c '{inner}' {DETACHED}");
    // Until it is a child of the binary.
    let wait = "touch go; until grep -q \"^PPid:.$PPID$\" /proc/$(cat before)/status; do \
                sleep 0.01; done";
    let uncut = after(&dir, &format!("{before} until test -s before; do sleep 0.01; done;"));
    assert_eq!(results(uncut, &[command(wait)]), ["[no output; exit 0]"]);
    assert_alive(&dir, "before");
}

#[test]
fn a_daemon_lives_through_the_time_out_of_its_own_command_and_not_beyond_the_run() {
    let dir = Dir::new("own");
    let daemon = format!("(setsid sh -c 'echo $$ >pid; exec sleep 599' {DETACHED}); sleep 599");
    let told = results(Uncut::new(&dir), &[too_long(&daemon), look()]);
    assert!(told[0].contains("timed out after 1s; killed"), "{told:?}");
    assert_eq!(told[1], "alive\n[exit 0]");
    wait_until_gone(&wait_for(&dir, "pid"));
}

#[test]
fn the_first_process_of_a_container_kills_no_daemon_of_others_when_a_command_times_out() {
    let dir = Dir::new("beside");
    if as_init(&dir).is_none() {
        return;
    }
    let container = "exec unshare --pid --fork --kill-child --mount-proc --map-root-user sh -c";
    // Somebody beside the binary starts a daemon while the command runs.
    let daemon = format!("setsid sh -c \"echo \\$\\$ >pid; exec sleep 599\" {DETACHED}");
    let script =
        format!("(until test -e go; do sleep 0.01; done; sh -c '{daemon}') {DETACHED} exec \"$@\"");
    let outer = dir.write("outer.sh", format!("{container} '. ./inner.sh' sh \"$@\"\n"));
    dir.write("inner.sh", script);
    let uncut = Uncut::below(&dir, "sh", &[outer.to_str().unwrap()]);
    let slow = "touch go; until test -s pid; do sleep 0.01; done; touch seen; sleep 599";
    let slow = ("shell", json!({"command": slow, "timeout": 2}));
    let told = results(uncut, &[slow, look(), command("test -e seen && echo seen")]);
    assert!(told[0].contains("timed out after 2s; killed"), "{told:?}");
    assert_eq!((told[1].as_str(), told[2].as_str()), ("alive\n[exit 0]", "seen\n[exit 0]"));
}

/// Makes a pipe non-blocking for everybody who has this end.
#[expect(unsafe_code, reason = "std has no fcntl")]
fn set_nonblocking(pipe: &impl std::os::fd::AsRawFd) {
    // SAFETY: fcntl with these arguments reads and writes no memory of ours.
    let set = unsafe { libc::fcntl(pipe.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) };
    assert_eq!(set, 0);
}

/// Bytes that wait in a pipe.
#[expect(unsafe_code, reason = "std has no ioctl")]
fn waiting(pipe: &std::io::PipeReader) -> libc::c_int {
    let mut bytes = 0;
    // SAFETY: this request writes one number to where it is told.
    assert_eq!(unsafe { libc::ioctl(pipe.as_raw_fd(), libc::FIONREAD, &raw mut bytes) }, 0);
    bytes
}

#[test]
fn a_prompt_is_waited_for_though_its_pipe_does_not_block() {
    let dir = Dir::new("nonblocking");
    let endpoint = Endpoint::start(vec![Reply::answer("done")]);
    let (reader, mut writer) = std::io::pipe().unwrap();
    set_nonblocking(&reader);
    let uncut = Uncut::new(&dir).args(["--base-url", &endpoint.base_url(), "-m", "m", "-"]);
    let mut command = uncut.into_command();
    command.stdin(reader.try_clone().unwrap()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    drop(command);
    let started = Instant::now();
    for _ in 0..20 {
        writer.write_all(b"piece ").unwrap();
        // Once it is taken, the next read finds nothing.
        while waiting(&reader) > 0 && started.elapsed() < Duration::from_secs(30) {
            std::thread::yield_now();
        }
    }
    drop(writer);
    let ran = finish(child);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "done\n"), "{ran:?}");
    let requests = endpoint.finish();
    assert_eq!(requests[0].messages()[1]["content"], "piece ".repeat(20));
}

#[test]
fn an_answer_goes_out_whole_though_stdout_and_stderr_do_not_block() {
    let dir = Dir::new("full");
    let text = "x".repeat(400_000);
    let endpoint = Endpoint::start(vec![Reply::answer(&text)]);
    let uncut = Uncut::new(&dir).args(["--base-url", &endpoint.base_url(), "-m", "m", "go"]);
    let (mut reader, writer) = std::io::pipe().unwrap();
    set_nonblocking(&writer);
    let mut command = uncut.into_command();
    command.stdin(Stdio::null()).stdout(writer.try_clone().unwrap()).stderr(writer);
    let mut child = command.spawn().unwrap();
    drop(command);
    let mut told = String::new();
    std::io::Read::read_to_string(&mut reader, &mut told).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(told.contains(&text), "{} bytes", told.len());
}

#[track_caller]
fn assert_named(ran: &Ran, limit: &str) {
    let last = ran.stderr.lines().last().unwrap_or_default();
    if ran.code != Some(0) {
        assert_eq!(ran.code, Some(75), "{limit}: {ran:?}");
        assert!(last.starts_with("uncut: transient: "), "{limit}: {ran:?}");
        assert_eq!(ran.stdout, "", "{limit}");
    }
}

#[test]
fn a_process_without_descriptors_says_so_and_may_be_tried_again() {
    let dir = Dir::new("few").with("prompt", "go").with("AGENTS.md", "be kind");
    let mut codes = Vec::new();
    // A binary that is linked dynamically needs one to be loaded.
    for limit in 4..16 {
        let endpoint = Endpoint::start(vec![Reply::answer("done")]).allow_unused();
        let script = format!("ulimit -n {limit}; exec \"$0\" \"$@\"");
        let uncut = Uncut::below(&dir, "sh", &["-c", &script]);
        let arguments = ["--base-url", &endpoint.base_url(), "-m", "m", "--max-retries", "0"];
        let files = ["-f", "prompt", "--session", "s.jsonl", "-o", "out"];
        let ran = uncut.args(arguments).args(files).run();
        assert_named(&ran, &format!("ulimit -n {limit}"));
        codes.push(ran.code);
        let _ = fs::remove_file(dir.path("s.jsonl"));
    }
    assert_eq!((codes[0], codes[11]), (Some(75), Some(0)), "{codes:?}");
}

#[test]
fn a_process_without_threads_says_so_and_may_be_tried_again() {
    let dir = Dir::new("threads");
    // As a user who has no other process, in a place where that user can run it.
    let few = "setpriv --reuid 54321 --regid 54321 --clear-groups prlimit --nproc=1";
    let binary = std::env::temp_dir().join(format!("uncut-threads-{}", std::process::id()));
    fs::copy(crate::support::sandbox::binary(), &binary).unwrap();
    let run = |arguments: &str| {
        let script = format!("cd / && exec {few} {} {arguments}", binary.display());
        Uncut::below(&dir, "sh", &["-c", &script]).run()
    };
    if run("--version").code == Some(0) {
        let ran = run("-m m --base-url http://127.0.0.1:9 go");
        assert_named(&ran, "no threads");
        assert!(ran.stderr.contains(" lacks resources for a run: "), "{ran:?}");
        assert_eq!(ran.stderr.lines().count(), 1, "{ran:?}");
    } else {
        eprintln!("skipped: this machine lets us be no other user");
    }
    fs::remove_file(binary).unwrap();
}

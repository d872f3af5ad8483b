//! Whose processes are killed and whose are not.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use crate::signals::{as_init, wait_for, wait_until_gone};
use crate::support::sandbox::{Dir, Uncut};
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

//! Signals and the deadline through the real binary, whatever it is blocked in.

use std::fs;
use std::io::Write as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::endpoint::{Endpoint, Reply};
use crate::support::sandbox::{Dir, Ran, Uncut, finish};
#[cfg(target_os = "linux")]
use crate::support::tools::{mounting, results, shell};

fn on(uncut: Uncut, endpoint: &Endpoint) -> Uncut {
    uncut.args(["--base-url", &endpoint.base_url(), "-m", "m", "--session", "s.jsonl"])
}

fn send(signal: &str, child: &Child) {
    let id = child.id().to_string();
    let mut kill = Command::new("/bin/kill").args([signal, &id]).spawn().unwrap();
    assert!(kill.wait().unwrap().success());
}

/// Waits until a file is there that a command writes, and gives what is in it.
#[track_caller]
pub(crate) fn wait_for(dir: &Dir, name: &str) -> String {
    let started = Instant::now();
    loop {
        match fs::read_to_string(dir.path(name)) {
            Ok(text) if text.ends_with('\n') => return text.trim().to_owned(),
            _ => assert!(started.elapsed() < Duration::from_secs(30), "{name} does not come"),
        }
        std::thread::yield_now();
    }
}

#[track_caller]
pub(crate) fn wait_until_gone(process: &str) {
    let started = Instant::now();
    let status = format!("/proc/{process}/status");
    while fs::read_to_string(&status).is_ok_and(|status| !status.contains("\nState:\tZ")) {
        assert!(started.elapsed() < Duration::from_secs(10), "{process} lives on");
        std::thread::yield_now();
    }
}

#[track_caller]
fn assert_ended(ran: &Ran, code: i32, word: &str) {
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(code), ""), "{ran:?}");
    let last = ran.stderr.lines().last().unwrap_or_default();
    assert!(last.starts_with(&format!("uncut: {word}: ")), "{ran:?}");
}

const SIGNALS: [(&str, i32, &str); 4] = [
    ("-HUP", 129, "hangup"),
    ("-INT", 130, "interrupt"),
    ("-QUIT", 130, "interrupt"),
    ("-TERM", 143, "terminated"),
];

#[test]
fn a_signal_ends_a_command_and_all_that_came_of_it() {
    for (signal, code, word) in SIGNALS {
        let dir = Dir::new("signal");
        let script =
            "(setsid sleep 600 & echo $! > inner); trap '' TERM; echo $$ > outer; sleep 600; true";
        let command = json!({ "command": script }).to_string();
        let endpoint = Endpoint::start(vec![Reply::tool_call("a", "shell", &command)]);
        let child = on(Uncut::new(&dir), &endpoint).arg("go").spawn();
        let processes = [wait_for(&dir, "inner"), wait_for(&dir, "outer")];
        send(signal, &child);
        let ran = finish(child);
        assert_ended(&ran, code, word);
        assert!(ran.stderr.contains("uncut: killed at the end: "), "{ran:?}");
        for process in processes {
            wait_until_gone(&process);
        }
        let log = dir.read("s.jsonl");
        assert!(log.ends_with('\n') && log.lines().count() == 2, "{log}");
    }
}

#[test]
fn a_signal_is_seen_while_the_endpoint_is_silent() {
    for (signal, code, word) in SIGNALS {
        let dir = Dir::new("silent");
        let endpoint = Endpoint::start(vec![Reply::stall()]);
        let child = on(Uncut::new(&dir), &endpoint).arg("go").spawn();
        endpoint.wait_for_requests(1);
        send(signal, &child);
        assert_ended(&finish(child), code, word);
        assert_eq!(dir.read("s.jsonl").lines().count(), 1);
    }
}

/// Signals that warn of a limit or have no meaning of their own, and would end any program.
#[cfg(target_os = "linux")]
const OTHERS: [(i32, &str); 9] = [
    (libc::SIGUSR1, "SIGUSR1"),
    (libc::SIGUSR2, "SIGUSR2"),
    (libc::SIGALRM, "SIGALRM"),
    (libc::SIGVTALRM, "SIGVTALRM"),
    (libc::SIGPROF, "SIGPROF"),
    (libc::SIGXCPU, "SIGXCPU"),
    (libc::SIGIO, "SIGIO"),
    (libc::SIGPWR, "SIGPWR"),
    (40, "signal 40"),
];

#[cfg(target_os = "linux")]
#[test]
fn every_signal_that_would_end_the_process_ends_the_run_with_a_last_line() {
    for (signal, name) in OTHERS {
        let dir = Dir::new("others");
        let script = json!({"command": "setsid sleep 600 & echo $! >inner; wait"});
        let call = Reply::tool_call("a", "shell", &script.to_string());
        let endpoint = Endpoint::start(vec![call]);
        let child = on(Uncut::new(&dir), &endpoint).args(["-o", "out", "--output", "json"]);
        let child = child.arg("go").spawn();
        let inner = wait_for(&dir, "inner");
        send(&format!("-{signal}"), &child);
        let ran = finish(child);
        assert_eq!(ran.code, Some(128 + signal), "{ran:?}");
        let last = ran.stderr.lines().last().unwrap_or_default();
        assert!(last.starts_with(&format!("uncut: terminated: stopped by {name}; ")), "{ran:?}");
        let result: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
        let told = (&result["outcome"], &result["exit_code"]);
        assert_eq!(told, (&json!("terminated"), &json!(128 + signal)));
        assert_eq!(dir.read("out"), ran.stdout);
        wait_until_gone(&inner);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn commands_start_with_no_signal_caught_or_blocked() {
    let dir = Dir::new("dispositions");
    let told =
        shell(Uncut::new(&dir), "cat /proc/self/status | grep -E 'Sig(Blk|Cgt)'; kill -USR1 $$");
    let zeros = "0".repeat(16);
    assert!(told.starts_with(&format!("SigBlk:\t{zeros}\nSigCgt:\t{zeros}\n")), "{told}");
    assert!(told.contains("SIGUSR1"), "{told}");
}

#[test]
fn the_deadline_is_seen_while_nobody_writes_to_stdin() {
    let dir = Dir::new("stdin");
    let mut command = Uncut::new(&dir).args(["-m", "m", "--timeout", "1s", "-"]).into_command();
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"half a prompt").unwrap();
    assert_ended(&finish(child), 124, "deadline");
}

/// A file that can't be opened or run by anybody else, who waits for as long as this is there: a
/// lease stands for a file system that does not answer. None where the system has no leases.
#[cfg(target_os = "linux")]
struct Hung(fs::File);

#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "std has no leases")]
impl Hung {
    fn new(path: &std::path::Path) -> Option<Hung> {
        use std::os::fd::AsRawFd as _;
        const F_SETSIG: libc::c_int = 10;
        let file = fs::File::open(path).unwrap();
        // SAFETY: fcntl with these arguments reads and writes no memory of ours. The signal that
        // tells of somebody who waits is one that does nothing.
        let leased = unsafe {
            libc::fcntl(file.as_raw_fd(), F_SETSIG, libc::SIGURG);
            libc::fcntl(file.as_raw_fd(), libc::F_SETLEASE, libc::F_WRLCK)
        };
        if leased != 0 {
            eprintln!("skipped: there are no leases on this file system");
            return None;
        }
        Some(Hung(file))
    }

    #[track_caller]
    fn wait_for_somebody(&self) {
        use std::os::fd::AsRawFd as _;
        let started = Instant::now();
        // SAFETY: as above. While somebody waits, the lease is on its way out.
        while unsafe { libc::fcntl(self.0.as_raw_fd(), libc::F_GETLEASE) } == libc::F_WRLCK {
            assert!(started.elapsed() < Duration::from_secs(30), "nobody comes");
            std::thread::yield_now();
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_signal_is_seen_while_the_start_of_a_shell_hangs() {
    let dir = Dir::new("hung");
    fs::copy("/bin/sh", dir.path("sh")).unwrap();
    let Some(hung) = Hung::new(&dir.path("sh")) else { return };
    let Some(uncut) = mounting(&dir, "mount --bind sh /bin/sh") else { return };
    let call = Reply::tool_call("a", "shell", r#"{"command":"true"}"#);
    let endpoint = Endpoint::start(vec![call]);
    let child = on(uncut, &endpoint).arg("go").spawn();
    hung.wait_for_somebody();
    let started = Instant::now();
    send("-TERM", &child);
    assert_ended(&finish(child), 143, "terminated");
    // After 45 seconds the system takes the lease away.
    assert!(started.elapsed() < Duration::from_secs(30), "{:?}", started.elapsed());
}

#[test]
fn a_signal_is_seen_while_nobody_reads_stdout_and_stderr() {
    let dir = Dir::new("unread");
    let endpoint = Endpoint::start(vec![Reply::answer(&"x".repeat(1 << 20))]);
    let mut command = on(Uncut::new(&dir), &endpoint).arg("go").into_command();
    let (_stdout, writer) = std::io::pipe().unwrap();
    let (_stderr, errors) = std::io::pipe().unwrap();
    // The reader of stderr never comes either: it is full before the run begins.
    let mut full = errors.try_clone().unwrap();
    let filler = std::thread::spawn(move || full.write_all(&vec![b'x'; 1 << 20]));
    command.stdin(Stdio::null()).stdout(writer).stderr(errors);
    let mut child = command.spawn().unwrap();
    drop(command);
    endpoint.wait_for_requests(1);
    send("-TERM", &child);
    let started = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        assert!(started.elapsed() < Duration::from_secs(20), "it hangs");
        std::thread::yield_now();
    };
    assert_eq!(status.code(), Some(143));
    drop(_stderr);
    let _ = filler.join().unwrap();
}

#[test]
fn an_answer_that_has_begun_to_be_printed_is_printed_whole() {
    let dir = Dir::new("slow");
    let text = "x".repeat(300_000);
    let endpoint = Endpoint::start(vec![Reply::answer(&text)]);
    let mut command =
        on(Uncut::new(&dir), &endpoint).args(["--timeout", "1s", "go"]).into_command();
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    endpoint.wait_for_requests(1);
    // The pipe is full long before its reader comes, which is after the deadline.
    let late = Instant::now() + Duration::from_secs(2);
    while Instant::now() < late {
        std::thread::yield_now();
    }
    let ran = finish(child);
    assert_eq!((ran.code, ran.stdout.len()), (Some(0), text.len() + 1), "{}", ran.stderr);
}

#[test]
fn a_signal_that_was_ignored_from_the_start_stays_so() {
    let dir = Dir::new("nohup");
    let (reply, hold) = Reply::answer("ok").held();
    let endpoint = Endpoint::start(vec![reply]);
    let below = Uncut::below(&dir, "/bin/sh", &["-c", "trap '' HUP USR1; exec \"$0\" \"$@\""]);
    let child = on(below, &endpoint).arg("go").spawn();
    endpoint.wait_for_requests(1);
    send("-HUP", &child);
    send("-USR1", &child);
    drop(hold);
    let ran = finish(child);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "ok\n"), "{ran:?}");
}

#[test]
fn a_signal_that_was_blocked_from_the_start_is_let_through() {
    let blocked = ["--block-signal=TERM"];
    let probe = Command::new("env").args(blocked).arg("true").stderr(Stdio::null()).spawn();
    if !probe.is_ok_and(|mut probe| probe.wait().is_ok_and(|status| status.success())) {
        eprintln!("skipped: this env blocks no signals");
        return;
    }
    let dir = Dir::new("blocked");
    let endpoint = Endpoint::start(vec![Reply::stall()]);
    let child = on(Uncut::below(&dir, "env", &blocked), &endpoint).arg("go").spawn();
    endpoint.wait_for_requests(1);
    send("-TERM", &child);
    assert_ended(&finish(child), 143, "terminated");
}

#[test]
#[cfg(target_os = "linux")]
fn a_killed_binary_takes_its_command_along() {
    let dir = Dir::new("orphan");
    let command = r#"{"command":"echo $$ > shell; exec sleep 600"}"#;
    let endpoint = Endpoint::start(vec![Reply::tool_call("a", "shell", command)]);
    let mut child = on(Uncut::new(&dir), &endpoint).arg("go").spawn();
    let shell = wait_for(&dir, "shell");
    child.kill().unwrap();
    child.wait().unwrap();
    wait_until_gone(&shell);
}

/// What makes the program behind it the first process of a container.
const CONTAINER: [&str; 5] = ["--pid", "--fork", "--kill-child", "--mount-proc", "--map-root-user"];

/// The binary as the first process of a container; none where the machine does not let us.
pub(crate) fn as_init(dir: &Dir) -> Option<Uncut> {
    let arguments = CONTAINER;
    let probe = Command::new("unshare").args(arguments).arg("true").stderr(Stdio::null()).spawn();
    if !probe.is_ok_and(|mut probe| probe.wait().is_ok_and(|status| status.success())) {
        eprintln!("skipped: this machine has no namespaces for us");
        return None;
    }
    Some(Uncut::below(dir, "unshare", &arguments))
}

#[test]
fn the_first_process_of_a_container_leaves_no_zombies() {
    let dir = Dir::new("zombies");
    let Some(uncut) = as_init(&dir) else { return };
    let script = "for n in 1 2 3 4 5; do (sleep 0.05 & echo $! >> ids); done; \
                  for id in $(cat ids); do while [ -d /proc/$id ]; do sleep 0.01; done; done; \
                  echo all reaped";
    let command = json!({ "command": script, "timeout": 20 }).to_string();
    let endpoint =
        Endpoint::start(vec![Reply::tool_call("a", "shell", &command), Reply::answer("ok")]);
    let ran = on(uncut, &endpoint).arg("go").run();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let requests = endpoint.finish();
    let result = requests[1].messages()[3]["content"].as_str().unwrap();
    assert!(result.starts_with("all reaped"), "{result}");
}

#[cfg(target_os = "linux")]
#[test]
fn the_processes_of_another_namespace_are_not_taken_for_those_that_have_their_numbers() {
    let dir = Dir::new("namespace");
    if as_init(&dir).is_none() {
        return;
    }
    // The /proc that is seen is that of the outer one, where every number of the inner one is a
    // child of the first process.
    let outer = "n=0; while test $n -lt 90; do setsid sleep 600 & n=$((n + 1)); done
                 exec unshare --pid --fork --kill-child \"$0\" \"$@\"";
    let uncut = Uncut::below(&dir, "unshare", &[&CONTAINER[..], &["sh", "-c", outer]].concat());
    let daemon = "mkfifo go; (read line <go; setsid sh -c 'echo $$ >pid; exec sleep 599' & wait) \
                  >/dev/null 2>&1 &";
    let second = "echo >go; until test -s pid; do :; done; sleep 599";
    let look = "kill -0 $(cat pid) && echo alive";
    let calls = [
        json!({"command": daemon}),
        json!({"command": second, "timeout": 2}),
        json!({"command": look}),
    ];
    let told = results(uncut, &calls.map(|arguments| ("shell", arguments)));
    assert!(told[1].contains("timed out after 2s; killed"), "{told:?}");
    assert_eq!(told[2], "alive\n[exit 0]");
}

#[test]
fn the_first_process_of_a_container_can_be_asked_to_end() {
    for (signal, code, word) in [SIGNALS[1], SIGNALS[3]] {
        let dir = Dir::new("init");
        let Some(uncut) = as_init(&dir) else { return };
        let endpoint = Endpoint::start(vec![Reply::stall()]);
        let child = on(uncut, &endpoint).arg("go").spawn();
        endpoint.wait_for_requests(1);
        let children = format!("/proc/{0}/task/{0}/children", child.id());
        let init = fs::read_to_string(children).unwrap();
        let mut kill = Command::new("/bin/kill").args([signal, init.trim()]).spawn().unwrap();
        assert!(kill.wait().unwrap().success());
        assert_ended(&finish(child), code, word);
    }
}

//! The tools through the real binary: what only a process of its own can show.
//!
//! Faults that users of such tools reported of commands; the number stands for the report.
//!
//! | | what | reported as | test |
//! |---|---|---|---|
//! | 41 | output that is not UTF-8 | PrimeIntellect-ai/nano-rlm#61 | tools::output_that_is_not_text_is_sent_as_text_and_told |
//! | 42 | decoding that is not told | FerroxLabs/wayland#1076 | tools::output_that_is_not_text_is_sent_as_text_and_told |
//! | 43 | the working directory is gone | lessweb/deepcode-cli#349 | tools::a_directory_that_a_command_removed_is_told_and_can_be_made_again |
//! | 44 | a question on the terminal | HKUDS/nanobot#2323 | tools::a_question_on_the_terminal_fails_at_once |
//! | 45 | one line of 160 MB | can1357/oh-my-pi#11351 | tools::one_giant_line_costs_no_memory |
//! | 46 | the key in the environment | earendil-works/pi#7522 | tools::the_key_is_in_no_environment_of_a_command_and_masked_where_it_is_found |
//! | 47 | zombies of a first process | radian-software/sleeping-beauty#1 | signals::the_first_process_of_a_container_leaves_no_zombies |
//! | 47 | a first process that can't be ended | containerd/containerd#9979 | signals::the_first_process_of_a_container_can_be_asked_to_end |
//! | 48 | the end is lost in the cut | Hmbown/Codewhale#242 | tools::shell::what_was_changed_or_left_out_is_told |
//! | 49 | a flood starves the timer | MoonshotAI/kimi-code#1285 | tools::a_flood_ends_with_its_time |
//! | 50 | no shell from the start | opensandbox-group/OpenSandbox#405 | tools::without_a_shell_on_the_machine_none_is_offered |
//! | 50 | the shell goes away | lopukhov/unbox#9 | tools::a_shell_that_goes_away_is_told_and_the_files_stay |
//! | 51 | a pager | zed-industries/zed#43277 | tools::git_pages_nothing |
//! | 52 | a daemon | gptme/gptme#3805 | tools::a_daemon_delays_nothing_and_ends_with_the_run |
//! | 53 | a holder outside of the group | anomalyco/opencode#47350 | tools::a_daemon_delays_nothing_and_ends_with_the_run |

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::sessions::has_strace;
use crate::support::endpoint::{Endpoint, Reply};
use crate::support::sandbox::{Dir, Uncut, binary};
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
        "(setsid sh -c 'echo $$ >pid; exec sleep 599' >/dev/null 2>&1 & wait); sleep 599",
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
fn a_time_out_ends_no_daemon_that_an_earlier_command_starts_meanwhile() {
    let dir = Dir::new("later");
    // Once the second command runs, the first one's daemon starts another and loses it.
    let daemon = "setsid sh -c 'until test -e go; do sleep 0.01; done
                  (setsid sh -c \"echo \\$\\$ >pid; exec sleep 599\" &)' >/dev/null 2>&1 &";
    let second = "setsid sh -c 'echo $$ >own; exec sleep 599' &
                  touch go; until test -s pid && test -s own; do sleep 0.01; done; sleep 599";
    let second = ("shell", json!({"command": second, "timeout": 3}));
    let own = command("kill -0 $(cat own) 2>/dev/null && echo alive || echo dead");
    let told = results(Uncut::new(&dir), &[command(daemon), second, look(), own]);
    assert!(told[1].contains("timed out after 3s; killed"), "{told:?}");
    assert_eq!((told[2].as_str(), told[3].as_str()), ("alive\n[exit 0]", "dead\n[exit 0]"));
    assert_dead(&dir);
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

#[cfg(target_os = "linux")]
#[test]
fn a_command_has_three_descriptors_and_no_other() {
    let dir = Dir::new("descriptors").with("f", "text\n");
    // The binary has one from its parent, a session, a connection, and a file that holds an output.
    let below = Uncut::below(&dir, "sh", &["-c", "exec 7<f 9<f; exec \"$0\" \"$@\""]);
    let calls = [command("seq 1 100000"), command("ls /proc/$$/fd; true")];
    let told = results(below.args(["--session", "s.jsonl"]), &calls);
    assert_eq!(told[1], "0\n1\n2\n[exit 0]");
}

/// What the threads of the binary wait for in vain in a run with these commands: waits that end
/// with their time and not with what is waited for.
#[cfg(target_os = "linux")]
#[track_caller]
fn waits_in_vain(commands: &[&str]) -> Vec<String> {
    let dir = Dir::new("waits");
    let call = |command: &&str| {
        Reply::tool_call(command, "shell", &json!({"command": command}).to_string())
    };
    let replies = commands.iter().map(call).chain([Reply::answer("done")]);
    let endpoint = Endpoint::start(replies.collect()).unpoliced();
    let waits = "trace=execve,poll,ppoll,select,pselect6,epoll_wait,epoll_pwait,futex,nanosleep,\
                 clock_nanosleep";
    let strace = Uncut::below(&dir, "strace", &["-f", "-o", "trace", "-e", waits]);
    let flags = ["--base-url", &endpoint.base_url(), "-m", "m", "--session", "s.jsonl", "go"];
    let ran = strace.args(["--timeout", "50s"]).args(flags).run();
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "done\n"), "{ran:?}");
    let trace = dir.read("trace");
    let thread = |line: &str| line.split(' ').next().unwrap().to_owned();
    // Those that became another program are not ours.
    let became = trace.lines().filter(|line| line.contains("execve(")).map(thread);
    let others: Vec<String> = became.skip(1).collect();
    let is_in_vain =
        |line: &&str| ["sleep(", "(Timeout)", "ETIMEDOUT"].iter().any(|word| line.contains(word));
    let ours = trace.lines().filter(|line| !others.contains(&thread(line)));
    ours.filter(is_in_vain).map(str::to_owned).collect()
}

#[cfg(target_os = "linux")]
#[test]
fn every_wait_of_a_run_ends_with_its_cause() {
    if !has_strace() {
        eprintln!("skipped: no strace");
        return;
    }
    let commands = ["true", "sleep 0.3", "head -c 3000000 /dev/urandom", "kill -TERM $$"];
    assert_eq!(waits_in_vain(&commands), [""; 0]);
    // Who holds the output gets a moment to end. At the end of the run it is killed, and looked
    // after every millisecond until it is gone.
    let waits = waits_in_vain(&["sleep 9 &"]);
    let (looks, moments): (Vec<&String>, Vec<_>) =
        waits.iter().partition(|wait| wait.contains("sleep("));
    assert!(moments.len() == 1 && moments[0].contains("poll"), "{moments:?}");
    let nanoseconds = |wait: &String| {
        let (_, time) = wait.split_once("{tv_sec=0, tv_nsec=")?;
        time.split('}').next()?.parse::<u32>().ok()
    };
    // What is left of a look that was interrupted has the slack of the timer on top.
    let is_short = |wait: &&String| nanoseconds(wait).is_some_and(|time| time <= 1_100_000);
    assert!(looks.iter().all(is_short), "{looks:?}");
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
    let edit = ("edit_file", json!({"path": "f", "old_string": "new", "new_string": "newer"}));
    let told = results(uncut, &[write("f"), edit]);
    assert_eq!(told[0], "replaced f: 3 bytes, 18 before (written in place)");
    assert!(told[1].starts_with("edited f: 1 place, at line 1 (written in place)\n"), "{told:?}");
    assert_eq!((dir.read("f").as_str(), dir.names()), ("newer", vec!["f".to_owned()]));
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

#[test]
fn output_that_is_not_text_is_sent_as_text_and_told() {
    let calls = [
        command(r#"printf 'head\377\360tail'"#),
        command(r#"head -c 2000 /dev/urandom; printf 'a\0b'"#),
        command(r#"printf 'caf\351\n'"#),
    ];
    let told = results(Uncut::new(&Dir::new("bytes")), &calls);
    let note = "\n[exit 0]\n[2 bytes were not UTF-8 and are shown as U+FFFD]";
    assert_eq!(told[0], format!("head\u{fffd}\u{fffd}tail{note}"));
    assert!(told[1].contains("a\u{2400}b\n[exit 0]\n["), "{told:?}");
    let note = "\n[exit 0]\n[1 bytes were not UTF-8 and are shown as U+FFFD]";
    assert_eq!(told[2], format!("caf\u{fffd}{note}"));
}

#[test]
fn a_directory_that_a_command_removed_is_told_and_can_be_made_again() {
    let dir = Dir::new("removed");
    let calls = [
        command("rm -rf \"$PWD\""),
        command("echo hi"),
        ("write_file", json!({"path": "f", "content": "x"})),
        command("cat f"),
    ];
    let told = results(Uncut::new(&dir), &calls);
    let gone = " does not exist any more; write_file can make it again";
    assert!(told[1].starts_with("error: the working directory ") && told[1].ends_with(gone));
    assert_eq!(told[3], "x\n[exit 0]");
}

#[test]
fn a_question_on_the_terminal_fails_at_once() {
    let dir = Dir::new("terminal");
    let endpoint = Endpoint::start(vec![
        Reply::tool_call("a", "shell", r#"{"command":"head -1 </dev/tty || echo nobody"}"#),
        Reply::answer("done"),
    ]);
    let line = "exec \"$UNCUT\" --base-url \"$URL\" -m m go";
    let arguments = ["-q", "-e", "-c", line, "typescript"];
    let mut terminal = Command::new("script");
    terminal.args(arguments).current_dir(dir.path(".")).stdin(Stdio::null());
    terminal.env("UNCUT", binary()).env("URL", endpoint.base_url());
    let Ok(output) = terminal.stdout(Stdio::piped()).output() else {
        eprintln!("skipped: no script");
        return;
    };
    assert!(output.status.success(), "{output:?}");
    let requests = endpoint.finish();
    let told = requests[1].messages()[3]["content"].as_str().unwrap();
    assert!(told.contains("/dev/tty") && told.ends_with("nobody\n[exit 0]"), "{told}");
}

#[cfg(target_os = "linux")]
#[test]
fn one_giant_line_costs_no_memory() {
    let calls = [
        command("head -c 160000000 /dev/zero | tr '\\0' a"),
        command("grep VmHWM /proc/$PPID/status"),
    ];
    let told = results(Uncut::new(&Dir::new("giant")), &calls);
    assert!(told[0].len() <= 32 * 1024 && told[0].contains(" bytes of output left out here; "));
    let peak = told[1].split_whitespace().nth(1).unwrap();
    assert!(peak.parse::<u64>().unwrap() < 64 * 1024, "{peak} KiB");
}

#[test]
fn the_key_is_in_no_environment_of_a_command_and_masked_where_it_is_found() {
    let dir = Dir::new("key");
    let look = "env; tr '\\0' '\\n' </proc/self/environ; cat /proc/$PPID/environ; echo ran";
    let arguments = json!({ "command": look }).to_string();
    for name in ["UNCUT_API_KEY", "OPENAI_API_KEY"] {
        let replies = vec![Reply::tool_call("a", "shell", &arguments), Reply::answer("done")];
        let endpoint = Endpoint::start(replies).expect_key("sk-TESTKEY-1");
        let session = format!("{name}.jsonl");
        let uncut = Uncut::new(&dir).env(name, "sk-TESTKEY-1").args(["--session", &session]);
        let ran = uncut.args(["--base-url", &endpoint.base_url(), "-m", "m", "go"]).run();
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let requests = endpoint.finish();
        let told = requests[1].messages()[3]["content"].as_str().unwrap();
        assert!(told.contains("ran\n"), "{told}");
        for text in [told, &ran.stdout, &ran.stderr, &dir.read(&session)] {
            assert!(!text.contains("TESTKEY"), "{text}");
        }
        let seen: Vec<&str> = told.lines().take_while(|line| !line.contains("[api key]")).collect();
        assert!(!seen.iter().any(|line| line.starts_with(name)), "{told}");
    }
}

#[test]
fn a_flood_ends_with_its_time() {
    let calls = [("shell", json!({"command": "yes", "timeout": 2}))];
    let started = Instant::now();
    let told = results(Uncut::new(&Dir::new("flood")), &calls);
    assert!(told[0].contains("\n[timed out after 2s; killed; "), "{told:?}");
    assert!(started.elapsed() < Duration::from_secs(30));
}

#[test]
fn a_shell_that_goes_away_is_told_and_the_files_stay() {
    let dir = Dir::new("gone-shell").with("f", "text\n");
    let Some(uncut) = mounting(&dir, "true") else { return };
    let read = ("read_file", json!({"path": "f"}));
    let told = results(uncut, &[command("mount -t tmpfs none /bin"), command("true"), read]);
    assert_eq!(told[1..], ["error: no shell found at /bin/sh", "     1\ttext\n"]);
}

#[test]
fn a_shell_that_can_not_be_run_is_told() {
    let dir = Dir::new("odd-shell").with("sh", "no program");
    let Some(uncut) = mounting(&dir, "true") else { return };
    let told =
        results(uncut, &[command("mount --bind sh \"$(readlink -f /bin/sh)\""), command("true")]);
    assert!(told[1].starts_with("error: the shell /bin/sh can't be run: "), "{told:?}");
}

#[test]
fn git_pages_nothing() {
    let dir = Dir::new("pager");
    let commits: String = (0..200)
        .map(|number| {
            format!("commit refs/heads/main\ncommitter a <a> {number} +0000\ndata 1\nx\n")
        })
        .collect();
    dir.write("commits", commits);
    let git = "export HOME=$PWD; git init -q -b main && git fast-import --quiet <commits && \
               git config core.pager 'less -+F' && git log '--format=%s %at'";
    let uncut = Uncut::new(&dir).env("PAGER", "less").env("GIT_PAGER", "less");
    let Ok(_) = Command::new("git").arg("--version").stdout(Stdio::null()).status() else {
        eprintln!("skipped: no git");
        return;
    };
    let told = shell(uncut, git);
    let log: String = (0..200).rev().map(|number| format!("x {number}\n")).collect();
    assert_eq!(told, log + "[exit 0]");
}

#[cfg(target_os = "linux")]
#[test]
fn a_daemon_delays_nothing_and_ends_with_the_run() {
    for daemon in [
        "(setsid sh -c 'echo $$ >pid; sleep 500 & wait' &); echo ok",
        "setsid sh -c 'echo $$ >pid; exec sleep 300' & echo ok",
    ] {
        let dir = Dir::new("holder");
        let started = Instant::now();
        let calls = [command(daemon), command("until test -s pid; do sleep 0.01; done")];
        let told = results(Uncut::new(&dir), &calls);
        assert!(told[0].starts_with("ok\n[exit 0]\n[a background process is still running"));
        assert!(started.elapsed() < Duration::from_secs(60));
        assert_dead(&dir);
    }
}

#[test]
fn descriptors_that_are_exhausted_are_told() {
    let dir = Dir::new("descriptors").with("f", "text\n");
    let (mut refused, mut ran) = (0, 0);
    // From too few for a pipe to enough for a command.
    for limit in 9..24 {
        let script = format!("ulimit -n {limit}; exec \"$0\" \"$@\"");
        let endpoint = Endpoint::start(vec![
            Reply::tool_call("a", "shell", r#"{"command":"echo hi"}"#),
            Reply::answer("done"),
        ])
        .allow_unused();
        let uncut = Uncut::below(&dir, "sh", &["-c", &script]);
        let ended = uncut.args(["--base-url", &endpoint.base_url(), "-m", "m", "go"]).run();
        // With fewer there is no way to the endpoint either, which the run tells by its outcome.
        assert!(matches!(ended.code, Some(0..=5)), "{limit}: {ended:?}");
        let requests = endpoint.finish();
        let Some(request) = requests.get(1) else { continue };
        let told = request.messages()[3]["content"].as_str().unwrap();
        match told {
            "hi\n[exit 0]" => ran += 1,
            _ => {
                assert!(told.starts_with("error: the command could not be run: "), "{told}");
                assert!(told.contains("(os error 24)"), "{told}");
                refused += 1;
            }
        }
    }
    assert!(refused > 0 && ran > 0, "{refused} {ran}");
}

/// The binary as a user that has nothing and no other process; none where we can't become one.
pub(crate) fn as_nobody(dir: &Dir, arguments: &[&str]) -> Option<Uncut> {
    let user = ["--reuid=54321", "--regid=54321", "--clear-groups"];
    let mut probe = Command::new("setpriv");
    probe.args(user).args(["test", "-x"]).arg(binary()).stderr(Stdio::null());
    if !probe.status().is_ok_and(|status| status.success()) {
        eprintln!("skipped: we can't become another user");
        return None;
    }
    Some(Uncut::below(dir, "setpriv", &[&user[..], arguments].concat()))
}

#[cfg(target_os = "linux")]
#[test]
fn processes_that_are_exhausted_are_told() {
    let dir = Dir::new("processes").with("f", "text\n");
    // A recording, because the way to an endpoint takes a process of its own.
    let call = |name: &str, arguments: &Value| {
        let function = json!({"name": name, "arguments": arguments.to_string()});
        let calls = json!([{"id": name, "type": "function", "function": function}]);
        let message = json!({"role": "assistant", "content": null, "tool_calls": calls});
        json!({"choices": [{"finish_reason": "tool_calls", "message": message}]})
    };
    let answer = json!({"role": "assistant", "content": "done"});
    let lines = [
        call("shell", &json!({"command": "echo hi"})),
        call("read_file", &json!({"path": "f"})),
        json!({"choices": [{"finish_reason": "stop", "message": answer}]}),
    ];
    dir.write("replay", lines.map(|line| format!("{line}\n")).concat());
    // One is the binary and one its watch: there is none for the command.
    let Some(uncut) = as_nobody(&dir, &["prlimit", "--nproc=2"]) else { return };
    let ran = uncut.args(["--replay", "replay", "go"]).run();
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "done\n"), "{ran:?}");
    let told = "error: the system is out of processes or memory (";
    assert!(ran.stderr.contains(told) && ran.stderr.contains("read_file f: 1 line"), "{ran:?}");
}

#[test]
fn a_lookup_that_there_is_no_thread_for_is_told() {
    let dir = Dir::new("lookup");
    let Some(uncut) = as_nobody(&dir, &["prlimit", "--nproc=2"]) else { return };
    let flags = ["--base-url", "http://nowhere.invalid/v1", "-m", "m", "--max-retries=0", "go"];
    let ran = uncut.args(flags).run();
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(75), ""), "{ran:?}");
    assert!(ran.stderr.contains("can't look up nowhere.invalid: "), "{ran:?}");
    assert!(ran.stderr.contains("Resource temporarily unavailable"), "{ran:?}");
}

#[test]
fn a_directory_that_can_not_be_entered_is_told() {
    let dir = Dir::new("closed").with("f", "text\n");
    let Some(uncut) = as_nobody(&dir, &[]) else { return };
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(dir.path("."), open).unwrap();
    std::os::unix::fs::chown(dir.path("."), Some(54_321), None).unwrap();
    let told = results(uncut, &[command("chmod 0 \"$PWD\""), command("echo hi")]);
    assert!(told[1].starts_with("error: the working directory "), "{told:?}");
    assert!(told[1].ends_with(" can't be used: Permission denied (os error 13)"), "{told:?}");
}

#[test]
fn every_report_of_the_table_has_its_test() {
    let read = |path: &str| {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
        std::fs::read_to_string(root.join(path)).unwrap()
    };
    let mut numbers = std::collections::BTreeSet::new();
    for row in include_str!("tools.rs").lines().filter_map(|line| line.strip_prefix("//! | ")) {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let Ok(number) = cells[0].parse::<u32>() else { continue };
        numbers.insert(number);
        let (module, test) = cells[3].rsplit_once("::").unwrap();
        let places =
            [format!("tests/it/{module}.rs"), format!("src/{}.rs", module.replace("::", "/"))];
        let is_there = |path: &&String| std::path::Path::new(path).exists();
        let text = read(places.iter().find(is_there).unwrap_or(&places[1]));
        assert!(
            text.contains(&format!("\n    fn {test}("))
                || text.contains(&format!("#[test]\nfn {test}(")),
            "{row}"
        );
    }
    assert_eq!(numbers, (41..=53).collect());
}

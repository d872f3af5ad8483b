//! The shell tool: a command goes in, what it wrote and how it ended comes out as text.
//!
//! A command that fails is a result like any other, its exit code or signal told in brackets
//! behind the output. Only a command that could not be started is an error, and the message says
//! which of the things that it takes is missing.
//!
//! Where output is left out, the result names the file that holds all of it. The file is there
//! until the run ends: in a session that another run goes on with, the name leads nowhere.

use std::ffi::{OsStr, OsString};
use std::fmt::{self, Write as _};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::json::Json;
use crate::process::{self, Captured, Ended, FullOutput, How, Limits, Processes, Spec};
use crate::provider::ToolDefinition;
use crate::secret::Mask;
use crate::time::Deadline;

use super::arguments::Arguments;
use super::{Output, Tool, ToolError};

/// Runs commands in the directory and with the environment of a run.
#[derive(Clone)]
pub struct Shell {
    directory: PathBuf,
    environment: Vec<(OsString, OsString)>,
    timeout: Option<Duration>,
    processes: Arc<Processes>,
    mask: Mask,
}

/// A command that was run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished {
    /// Whether it exited with 0.
    pub success: bool,
    /// What it wrote and how it ended.
    pub output: Output,
}

/// What a time limit comes from, and so what the model can do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bound {
    /// The usual, or what was asked for: there may be more.
    Command,
    /// The most that can be asked for.
    Most,
    /// The end of the run.
    Run,
}

impl Bound {
    fn advice(self) -> &'static str {
        match self {
            Bound::Command => {
                "set timeout to allow more, or run it in the background with output to a file"
            }
            Bound::Most => "timeout can't be more; run it in the background with output to a file",
            Bound::Run => "the run's time is nearly over",
        }
    }
}

/// The model may ask for so many times the usual time limit.
const TIMEOUT_FACTOR: u32 = 10;

/// What a command gets to tidy up when its time is over.
const GRACE: Duration = Duration::from_secs(2);

impl Shell {
    /// A shell for commands that run in `directory`, an absolute path; none where the machine has
    /// none. `timeout` is the usual limit of a command, and `inherited` our own environment, of
    /// which commands get this:
    ///
    /// - The variables that hold our API key, or say where it is, are taken out.
    /// - What makes programs wait for a person is set whatever was inherited, since a login
    ///   shell exports pagers, editors and a terminal type that nobody chose for unattended runs.
    /// - What tells programs that nobody is there is set only where it is not set already.
    /// - `UNCUT=1` is set, and on Unix `PWD`.
    pub fn new(
        directory: &Path,
        inherited: impl IntoIterator<Item = (OsString, OsString)>,
        timeout: Option<Duration>,
        processes: Arc<Processes>,
    ) -> Option<Shell> {
        process::shell_is_present().then(|| Shell {
            directory: directory.to_owned(),
            environment: environment(inherited.into_iter().collect(), directory),
            timeout,
            processes,
            mask: Mask::default(),
        })
    }

    /// Masks these secrets in what commands print, before any of it is cut.
    pub fn with_mask(self, mask: Mask) -> Shell {
        Shell { mask, ..self }
    }

    /// Runs a command for at most `timeout`, or else the usual limit; never for more than 10 times
    /// that, and not on past `deadline`.
    ///
    /// # Errors
    ///
    /// The command could not be started; the message says why, and what to do.
    pub fn run(
        &self,
        command: &str,
        timeout: Option<Duration>,
        deadline: Deadline,
    ) -> Result<Finished, String> {
        if deadline.has_passed() {
            return Err("the command was not started: the run's time is over".to_owned());
        }
        let (limits, bound) = self.limits(timeout, deadline);
        let spec = Spec {
            command,
            directory: &self.directory,
            environment: &self.environment,
            mask: &self.mask,
        };
        let ended = self.processes.run(&spec, limits).map_err(|error| self.explain(&error))?;
        let summary = status(&ended, limits);
        let text = render(&ended, &summary, bound);
        let success = ended.how == How::Exited(0);
        let is_cut = ended.how == How::TimedOut && bound == Bound::Run;
        Ok(Finished { success, output: Output { text, summary, is_cut } })
    }

    /// The grace lies within the deadline, and takes no more than a tenth of what is left.
    fn limits(&self, timeout: Option<Duration>, deadline: Deadline) -> (Limits, Bound) {
        let most = self.timeout.map(|usual| usual.saturating_mul(TIMEOUT_FACTOR));
        let (timeout, bound) = match (timeout, most) {
            (Some(timeout), Some(most)) if timeout >= most => (Some(most), Bound::Most),
            _ => (timeout.or(self.timeout), Bound::Command),
        };
        let remaining = deadline.remaining();
        let grace = remaining.map_or(GRACE, |remaining| GRACE.min(remaining / 10));
        match remaining.map(|remaining| remaining - grace) {
            Some(left) if timeout.is_none_or(|timeout| left < timeout) => {
                (Limits { time: Some(left), grace }, Bound::Run)
            }
            _ => (Limits { time: timeout, grace }, bound),
        }
    }

    /// Why a command could not be started: the system gives one error for several causes.
    fn explain(&self, error: &io::Error) -> String {
        // The dot asks for the permission to go there, too.
        if let Err(error) = fs::metadata(self.directory.join(".")) {
            let directory = self.directory.display();
            return match error.kind() {
                io::ErrorKind::NotFound => format!(
                    "the working directory {directory} does not exist any more; write_file can \
                     make it again"
                ),
                _ => format!("the working directory {directory} can't be used: {error}"),
            };
        }
        match error.kind() {
            io::ErrorKind::NotFound if !process::shell_is_present() => {
                format!("no shell found at {}", process::SHELL)
            }
            io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied => {
                format!("the shell {} can't be run: {error}", process::SHELL)
            }
            io::ErrorKind::ArgumentListTooLong => {
                "the command is too long for the system; write it to a file with write_file and \
                 run that"
                    .to_owned()
            }
            io::ErrorKind::WouldBlock | io::ErrorKind::OutOfMemory => format!(
                "the system is out of processes or memory ({error}); end what runs in the \
                 background, or try again later"
            ),
            _ => format!("the command could not be run: {error}"),
        }
    }
}

impl fmt::Debug for Shell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the environment: people keep passwords in it.
        f.debug_struct("Shell").field("directory", &self.directory).finish_non_exhaustive()
    }
}

impl Tool for Shell {
    fn definition(&self) -> ToolDefinition {
        ToolDefinition {
            name: "shell",
            description: DESCRIPTION,
            parameters: parameters(self.timeout),
        }
    }

    fn run(
        &mut self,
        mut arguments: Arguments<'_>,
        deadline: Deadline,
    ) -> Result<Output, ToolError> {
        let command = arguments.string("command")?;
        if command.trim().is_empty() {
            return Err(ToolError::new("the command is empty; nothing was run"));
        }
        let timeout = arguments.optional_u64("timeout")?;
        // Models that fill in every argument mean "the usual one" by 0.
        let timeout = timeout.filter(|seconds| *seconds > 0).map(Duration::from_secs);
        let finished = Shell::run(self, &command, timeout, deadline).map_err(ToolError::new)?;
        Ok(finished.output)
    }
}

const PARAMETERS: &str = r#"{
    "type": "object",
    "properties": {
        "command": {"type": "string"},
        "timeout": {"type": "integer", "description": "Seconds"}
    },
    "required": ["command"],
    "additionalProperties": false
}"#;

/// The parameters, with the usual time limit where there is one.
fn parameters(timeout: Option<Duration>) -> Json {
    let Some(timeout) = timeout else { return Json::from_static(PARAMETERS) };
    let seconds = format!("Seconds; default {}", timeout.as_secs());
    let told = PARAMETERS.replace("Seconds", &seconds);
    // A number more in a string leaves it JSON.
    serde_json::from_str(&told).map_or_else(|_| Json::from_static(PARAMETERS), Json::from_raw)
}

#[cfg(not(windows))]
const DESCRIPTION: &str = "Run a command with /bin/sh -c in the working directory. No stdin, no \
    terminal. Returns stdout and stderr, and how it ended. Long output is cut in the middle.";
#[cfg(windows)]
const DESCRIPTION: &str = "Run one line with cmd.exe /C in the working directory. No stdin, no \
    terminal. Returns stdout and stderr, and how it ended. Long output is cut in the middle.";

/// How a command ended, in a few words.
fn status(ended: &Ended, limits: Limits) -> String {
    match ended.how {
        How::Exited(code) => format!("exit {code}"),
        How::Signalled(signal) => match process::signal_name(signal) {
            Some(name) => format!("killed by {name}"),
            None => format!("killed by signal {signal}"),
        },
        How::TimedOut => {
            format!("timed out after {}s", limits.time.unwrap_or_default().as_secs_f64().round())
        }
    }
}

/// The output, and behind it in brackets how the command ended and what else is to be known.
fn render(ended: &Ended, status: &str, bound: Bound) -> String {
    let Captured { head, tail, omitted, replaced, nuls, full } = &ended.output;
    let mut text = head.clone();
    if *omitted > 0 {
        end_line(&mut text);
        let full = match full {
            Some(FullOutput::Complete(path)) => format!("; all of it is in {}", path.display()),
            Some(FullOutput::Truncated(path, bytes)) => {
                format!("; the first {bytes} bytes of it are in {}", path.display())
            }
            Some(FullOutput::Failed(error)) => format!("; no file could take all of it: {error}"),
            None => String::new(),
        };
        note(&mut text, format_args!("{omitted} bytes of output left out here{full}"));
    }
    text.push_str(tail);
    end_line(&mut text);
    let nothing = if text.is_empty() { "no output; " } else { "" };
    match ended.how {
        How::TimedOut => {
            note(&mut text, format_args!("{nothing}{status}; killed; {}", bound.advice()));
        }
        _ => note(&mut text, format_args!("{nothing}{status}")),
    }
    if *replaced > 0 {
        note(&mut text, format_args!("{replaced} bytes were not UTF-8 and are shown as U+FFFD"));
    }
    if *nuls > 0 {
        note(&mut text, format_args!("{nuls} NUL bytes are shown as U+2400"));
    }
    if ended.still_running || ended.still_held {
        let lost = "; what it prints from now on is lost (start it with >FILE 2>&1 to keep it)";
        let lost = if ended.still_held { lost } else { "" };
        note(&mut text, format_args!("a background process is still running{lost}"));
    }
    // The last note ends the text, not a line.
    text.pop();
    text
}

fn end_line(text: &mut String) {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
}

fn note(text: &mut String, note: fmt::Arguments<'_>) {
    // Writing to a String can't fail.
    let _ = writeln!(text, "[{note}]");
}

/// Hold our API key, or say where it is.
const TAKEN_OUT: [&str; 3] = ["UNCUT_API_KEY", "UNCUT_API_KEY_FILE", "OPENAI_API_KEY"];

/// Keep programs from waiting for a person.
const ALWAYS_SET: [(&str, &str); 11] = [
    ("EDITOR", "true"),
    ("GIT_EDITOR", "true"),
    ("GIT_PAGER", "cat"),
    ("GIT_SEQUENCE_EDITOR", "true"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("MANPAGER", "cat"),
    ("PAGER", "cat"),
    ("SYSTEMD_PAGER", "cat"),
    ("TERM", "dumb"),
    ("UNCUT", "1"),
    ("VISUAL", "true"),
];

/// Tell programs that nobody is there.
const SET_WHERE_UNSET: [(&str, &str); 4] = [
    ("CI", "1"),
    ("DEBIAN_FRONTEND", "noninteractive"),
    ("GCM_INTERACTIVE", "never"),
    ("NO_COLOR", "1"),
];

/// The environment of commands; [`Shell::new`] has the rule.
fn environment(mut all: Vec<(OsString, OsString)>, directory: &Path) -> Vec<(OsString, OsString)> {
    let set_always = ALWAYS_SET.map(|(name, value)| (name, OsStr::new(value)));
    let set_always =
        set_always.into_iter().chain(cfg!(unix).then_some(("PWD", directory.as_os_str())));
    for (name, value) in SET_WHERE_UNSET {
        if !all.iter().any(|(set, _)| same_name(set, name)) {
            all.push((name.into(), value.into()));
        }
    }
    all.retain(|(set, _)| !TAKEN_OUT.iter().any(|name| same_name(set, name)));
    for (name, value) in set_always {
        all.retain(|(set, _)| !same_name(set, name));
        all.push((name.into(), value.into()));
    }
    all
}

/// Windows doesn't tell the case of names apart.
fn same_name(set: &OsStr, name: &str) -> bool {
    if cfg!(windows) { set.eq_ignore_ascii_case(name) } else { set == name }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    /// A directory that is there for one test.
    struct Directory(PathBuf);

    impl Directory {
        #[track_caller]
        fn new() -> Directory {
            static COUNT: AtomicU32 = AtomicU32::new(0);
            let count = COUNT.fetch_add(1, Ordering::Relaxed);
            let name = format!("uncut-shell-{}-{count}", std::process::id());
            let path = std::env::temp_dir().join(name);
            fs::create_dir(&path).unwrap();
            Directory(path)
        }
    }

    impl Drop for Directory {
        fn drop(&mut self) {
            // A test may have removed it.
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn variables(all: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
        all.iter().map(|(name, value)| (name.into(), value.into())).collect()
    }

    #[track_caller]
    fn shell(directory: &Directory, timeout: Option<Duration>) -> Shell {
        let path = ("PATH", "/usr/local/bin:/usr/bin:/bin");
        let inherited = [
            path,
            // scripts/check.sh looks for what is left behind.
            ("TESTED_IN", env!("CARGO_MANIFEST_DIR")),
            ("UNCUT_API_KEY", "sk-TESTKEY-1"),
            ("UNCUT_API_KEY_FILE", "/TESTKEY-2"),
            ("OPENAI_API_KEY", "sk-TESTKEY-3"),
            ("PAGER", "less"),
        ];
        let inherited = variables(&inherited);
        Shell::new(&directory.0, inherited, timeout, Arc::default()).unwrap()
    }

    /// The result of a command that takes no longer than a minute.
    #[track_caller]
    fn run(command: &str) -> Output {
        let directory = Directory::new();
        let limit = Some(Duration::from_secs(60));
        shell(&directory, limit).run(command, None, Deadline::NONE).unwrap().output
    }

    #[track_caller]
    fn check(command: &str, text: &str, summary: &str) {
        assert_eq!(run(command), Output::new(text, summary), "{command}");
    }

    #[test]
    fn the_status_stands_behind_the_output() {
        check("echo hi", "hi\n[exit 0]", "exit 0");
        check("printf hi", "hi\n[exit 0]", "exit 0");
        check("true", "[no output; exit 0]", "exit 0");
        check("echo out; echo err >&2; exit 101", "out\nerr\n[exit 101]", "exit 101");
        check("kill -SEGV $$", "[no output; killed by SIGSEGV]", "killed by SIGSEGV");
    }

    #[test]
    fn what_was_changed_or_left_out_is_told() {
        check(
            r#"printf 'head\377\360tail\n'"#,
            "head\u{fffd}\u{fffd}tail\n[exit 0]\n[2 bytes were not UTF-8 and are shown as U+FFFD]",
            "exit 0",
        );
        check(
            r#"printf 'a\0b'"#,
            "a\u{2400}b\n[exit 0]\n[1 NUL bytes are shown as U+2400]",
            "exit 0",
        );
        let output = run("seq 1 300000; echo 'test result: FAILED. 3 failed' >&2; exit 101");
        assert!(output.text.len() <= 32 * 1024, "{}", output.text.len());
        assert!(output.text.starts_with("1\n2\n3\n"));
        assert!(output.text.contains(" bytes of output left out here]\n"));
        assert!(output.text.ends_with("\n300000\ntest result: FAILED. 3 failed\n[exit 101]"));
    }

    #[test]
    fn a_background_process_is_told() {
        check(
            "sleep 300 & echo ok",
            "ok\n[exit 0]\n[a background process is still running; what it prints from now on is \
             lost (start it with >FILE 2>&1 to keep it)]",
            "exit 0",
        );
        check(
            "sleep 300 >/dev/null 2>&1 & echo ok",
            "ok\n[exit 0]\n[a background process is still running]",
            "exit 0",
        );
    }

    #[test]
    fn a_command_that_takes_too_long_is_killed_and_its_output_kept() {
        let directory = Directory::new();
        let shell = shell(&directory, Some(Duration::from_secs(60)));
        let second = Some(Duration::from_secs(1));
        let finished = shell.run("echo begun; sleep 300", second, Deadline::NONE).unwrap();
        let text = "begun\n[timed out after 1s; killed; set timeout to allow more, or run it in \
                    the background with output to a file]";
        let output = Output::new(text, "timed out after 1s");
        assert_eq!(finished, Finished { success: false, output });
    }

    #[test]
    fn a_limit_that_can_not_be_raised_is_told() {
        let directory = Directory::new();
        let shell = shell(&directory, Some(Duration::from_millis(100)));
        let hour = Some(Duration::from_secs(3_600));
        let text = shell.run("sleep 300", hour, Deadline::NONE).unwrap().output.text;
        let told = "[no output; timed out after 1s; killed; timeout can't be more; run it in the \
                    background with output to a file]";
        assert_eq!(text, told);
        let soon = Deadline::after(Some(Duration::from_millis(50)));
        let text = shell.run("sleep 300", None, soon).unwrap().output.text;
        assert!(text.ends_with("; killed; the run's time is nearly over]"), "{text}");
    }

    #[test]
    fn the_usual_limit_is_told_with_the_parameters() {
        let directory = Directory::new();
        let parameters = |timeout| {
            let parameters = Tool::definition(&shell(&directory, timeout)).parameters;
            parameters.as_str().to_owned()
        };
        let usual = parameters(Some(Duration::from_secs(120)));
        assert!(usual.contains("\"description\":\"Seconds; default 120\""), "{usual}");
        assert!(parameters(None).contains("\"description\":\"Seconds\""));
    }

    #[test]
    fn a_time_limit_has_its_bounds() {
        let directory = Directory::new();
        let seconds = Duration::from_secs;
        let limits = |usual: u64, wanted: Option<u64>, remaining: Option<u64>| {
            let usual = (usual > 0).then(|| seconds(usual));
            let deadline = Deadline::after(remaining.map(seconds));
            shell(&directory, usual).limits(wanted.map(seconds), deadline)
        };
        let limit = |time: Option<u64>| Limits { time: time.map(seconds), grace: GRACE };
        assert_eq!(limits(120, None, None), (limit(Some(120)), Bound::Command));
        assert_eq!(limits(120, Some(600), None), (limit(Some(600)), Bound::Command));
        assert_eq!(limits(120, Some(1_200), None), (limit(Some(1_200)), Bound::Most));
        assert_eq!(limits(120, Some(100_000), None), (limit(Some(1_200)), Bound::Most));
        assert_eq!(limits(0, None, None), (limit(None), Bound::Command));
        assert_eq!(limits(0, Some(100_000), None), (limit(Some(100_000)), Bound::Command));
        assert_eq!(limits(120, Some(5), Some(3_600)), (limit(Some(5)), Bound::Command));
        // The end comes before the deadline, so that nothing runs on past it.
        let (Limits { time: Some(time), grace }, Bound::Run) = limits(0, None, Some(10)) else {
            panic!("no limit");
        };
        assert!(time + grace <= seconds(10) && time >= seconds(8) && grace <= seconds(1));
    }

    #[test]
    fn nothing_is_started_when_the_time_is_over() {
        let directory = Directory::new();
        let now = Deadline::after(Some(Duration::ZERO));
        let error = shell(&directory, None).run("touch it", None, now).unwrap_err();
        assert_eq!(error, "the command was not started: the run's time is over");
        assert!(!directory.0.join("it").exists());
    }

    #[test]
    fn a_directory_that_is_gone_is_told() {
        let directory = Directory::new();
        let shell = shell(&directory, None);
        assert!(shell.run("rm -rf \"$PWD\"", None, Deadline::NONE).unwrap().success);
        let error = shell.run("echo hi", None, Deadline::NONE).unwrap_err();
        let path = directory.0.display();
        let start = format!("the working directory {path} does not exist any more");
        assert!(error.starts_with(&start), "{error}");
    }

    #[test]
    fn a_command_that_the_system_can_not_take_is_told() {
        let directory = Directory::new();
        let shell = shell(&directory, None);
        let long = format!("echo {}", "x".repeat(16 * 1024 * 1024));
        let error = shell.run(&long, None, Deadline::NONE).unwrap_err();
        assert!(error.starts_with("the command is too long for the system"), "{error}");
        let error = shell.explain(&io::ErrorKind::WouldBlock.into());
        assert!(error.starts_with("the system is out of processes or memory ("), "{error}");
        let error = shell.explain(&io::ErrorKind::PermissionDenied.into());
        assert!(error.starts_with("the shell /bin/sh can't be run: "), "{error}");
        let error = shell.run("echo \0", None, Deadline::NONE).unwrap_err();
        assert!(error.starts_with("the command could not be run: nul byte"), "{error}");
    }

    #[test]
    fn a_command_sees_no_key_and_nobody_to_ask() {
        let text = run("env; tr '\\0' '\\n' </proc/self/environ; pwd").text;
        assert!(!text.contains("TESTKEY"), "{text}");
        for line in ["UNCUT=1", "PAGER=cat", "GIT_PAGER=cat", "TERM=dumb", "CI=1", "NO_COLOR=1"] {
            assert!(text.lines().any(|other| other == line), "{line} in {text}");
        }
    }

    #[test]
    fn what_the_user_set_on_purpose_stays() {
        let set = [("CI", "woodpecker"), ("NO_COLOR", ""), ("TERM", "xterm"), ("HOME", "/h")];
        let all = environment(variables(&set), Path::new("/here"));
        for (name, value) in [
            ("CI", "woodpecker"),
            ("NO_COLOR", ""),
            ("TERM", "dumb"),
            ("HOME", "/h"),
            ("PWD", "/here"),
        ] {
            let values: Vec<_> = all.iter().filter(|(set, _)| set == name).collect();
            assert_eq!(values, [&(name.into(), value.into())]);
        }
    }

    #[test]
    fn a_call_runs_the_command_that_it_names() {
        let directory = Directory::new();
        let mut shell = shell(&directory, None);
        let mut call = |text| {
            let arguments = Arguments::parse(text, &Mask::default())?;
            Tool::run(&mut shell, arguments, Deadline::NONE)
        };
        let output = call(r#"{"command":"echo hi","timeout":"0"}"#).unwrap();
        assert_eq!(output, Output::new("hi\n[exit 0]", "exit 0"));
        let output = call(r#"{"command":"sleep 300","timeout":1.0}"#).unwrap();
        assert_eq!(output.summary, "timed out after 1s");
        let error = call(r#"{"cmd":"echo hi"}"#).unwrap_err();
        assert_eq!(error.to_string(), "the argument \"command\" (a string) is missing");
        for blank in [r#"{"command":""}"#, r#"{"command":" \n"}"#] {
            let error = call(blank).unwrap_err().to_string();
            assert_eq!(error, "the command is empty; nothing was run");
        }
    }
}

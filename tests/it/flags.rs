//! The command line from outside: what is refused, what is read, what is printed where.

use std::ffi::OsString;
use std::io::{self, Write};

use uncut::cli::{self, Invocation};
use uncut::outcome::Outcome;

use crate::support::sandbox::{Dir, Uncut};

const KEY: &str = "sk-TESTKEY-1";

/// A completion that is an answer, as a line of a recording.
fn answer(text: &str) -> String {
    format!(
        "{{\"choices\":[{{\"index\":0,\"message\":{{\"role\":\"assistant\",\"content\":\"{text}\"}},\
         \"finish_reason\":\"stop\"}}]}}\n"
    )
}

fn dir() -> Dir {
    Dir::new("flags")
}

/// What a run left behind.
#[derive(Debug)]
struct Ended {
    outcome: Outcome,
    stdout: String,
    stderr: String,
    /// What nobody read.
    stdin: Vec<u8>,
}

/// A run inside this process.
struct Run<'a> {
    dir: &'a Dir,
    args: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    stdin: &'a [u8],
    stdin_is_terminal: bool,
}

impl<'a> Run<'a> {
    fn new(dir: &'a Dir, args: &[&str]) -> Run<'a> {
        let args = args.iter().map(OsString::from).collect();
        Run { dir, args, env: Vec::new(), stdin: b"", stdin_is_terminal: false }
    }

    fn env(mut self, name: &str, value: &str) -> Run<'a> {
        self.env.push((name.into(), value.into()));
        self
    }

    fn stdin(self, stdin: &'a [u8]) -> Run<'a> {
        Run { stdin, ..self }
    }

    fn terminal(self) -> Run<'a> {
        Run { stdin_is_terminal: true, ..self }
    }

    fn end(self) -> Ended {
        let mut stdout = Vec::new();
        let (outcome, stderr, stdin) = self.end_into(&mut stdout);
        Ended { outcome, stdout: String::from_utf8(stdout).unwrap(), stderr, stdin }
    }

    fn end_into(mut self, stdout: &mut dyn Write) -> (Outcome, String, Vec<u8>) {
        let mut stderr = Vec::new();
        let outcome = cli::run(Invocation {
            args: self.args,
            env: self.env,
            directory: Some(self.dir.path(".")),
            stdin: &mut self.stdin,
            owns_process: false,
            stdin_is_terminal: self.stdin_is_terminal,
            stdout,
            stderr: &mut stderr,
        });
        (outcome, String::from_utf8(stderr).unwrap(), self.stdin.to_vec())
    }
}

#[track_caller]
fn check_usage(run: Run<'_>, message: &str) {
    let before = run.dir.names();
    let dir = run.dir;
    let ended = run.end();
    let mut lines = ended.stderr.lines();
    let line = lines.next().unwrap_or_default();
    assert!(line.starts_with(&format!("uncut: usage: {message}")), "{message}: {ended:?}");
    assert!(lines.next().is_some_and(|line| line.starts_with("usage: uncut ")), "{ended:?}");
    assert_eq!((lines.next(), ended.outcome), (None, Outcome::Usage), "{ended:?}");
    assert_eq!(ended.stdout, "");
    assert!(!ended.stderr.contains("sk-"), "{ended:?}");
    assert_eq!(dir.names(), before, "nothing is written");
}

#[test]
fn what_is_wrong_with_the_line_is_told_before_anything_is_done() {
    let dir = dir();
    for (args, message) in [
        (&["--no-such-flag"][..], "--no-such-flag: unknown flag; "),
        (&["--max-step=3"], "--max-step: unknown flag; the nearest is --max-steps"),
        (&["-x"], "-x: unknown flag; "),
        (&["--quiet=yes"], "--quiet: takes no value"),
        (&["--timeout"], "--timeout: needs a value; give --timeout D"),
        (&["--max-tokens", "many"], "--max-tokens: \"many\" is not a whole number"),
        (&["--max-tokens", "-1"], "--max-tokens: \"-1\" is negative"),
        (&["--max-steps", "0"], "--max-steps: must be at least 1"),
        (&["--timeout", "1.5h"], "--timeout: \"1.5h\" is not a duration; give"),
        (&["--idle-timeout=-5s"], "--idle-timeout: \"-5s\" is negative"),
        (
            &["--command-timeout", "99999999999h"],
            "--command-timeout: \"99999999999h\" is more than",
        ),
        (&["--base-url", "localhost:8080/v1"], "--base-url: "),
        (&["--accept", "finish-reason:length"], "--accept: finish-reason:length can't be accepted"),
        (&["--api-key", "sk-TEST\nKEY-1"], "--api-key: character 8 of the key is a control"),
        (&["--replay", "r", "--base-url", "http://h/v1"], "--replay: contradicts --base-url"),
        (&["--agents-md", "a", "--no-agents-md"], "--agents-md: contradicts --no-agents-md"),
        (&["-qv"], "-q: contradicts -v"),
        (&["-f", "missing.md"], "-f: there is a prompt in the arguments too (\"hi\")"),
        (&["-C", "missing"], "-C: "),
        (&["--replay", "missing.jsonl"], "--replay: "),
        (&["--session", ""], "--session: the name is empty"),
    ] {
        let line = [&["hi", "-mx", "--session=s.jsonl"], args].concat();
        check_usage(Run::new(&dir, &line), message);
    }
    check_usage(Run::new(&dir, &["hi"]), "--model: is missing; set UNCUT_MODEL or give --model ID");
}

#[test]
fn a_file_that_is_unusable_is_told_before_anything_is_done() {
    let dir = dir()
        .with("latin1.md", b"caf\xe9")
        .with("blank.md", " \n\n")
        .with("key", format!("{KEY}\n{KEY}\n"))
        .with("key.bin", b"sk-\xff")
        .with("nothing", " \n");
    for (args, message) in [
        (&["-f", "missing.md"][..], "-f: "),
        (&["-f", "latin1.md"], "-f: "),
        (&["--prompt-file", "."], "--prompt-file: "),
        (&["-f", "blank.md"], "-f: the prompt is empty"),
        (&["hi", "-C", "blank.md"], "-C: "),
        (&["hi", "--api-key-file", "missing"], "--api-key-file: the file: "),
        (&["hi", "--api-key-file", "nothing"], "--api-key-file: the file: is empty"),
        (&["hi", "--api-key-file", "key"], "--api-key-file: the file: character 13 of the key is"),
        (&["hi", "--api-key-file", "key.bin"], "--api-key-file: the file: byte 4 is not UTF-8"),
        (&["hi", "--system-prompt-file", "missing"], "--system-prompt-file: "),
    ] {
        let line = [&["-mx", "--session=s.jsonl"], args].concat();
        check_usage(Run::new(&dir, &line), message);
    }
    check_usage(
        Run::new(&dir, &["hi", "-mx"]).env("UNCUT_API_KEY_FILE", "nothing"),
        "UNCUT_API_KEY_FILE: the file: is empty",
    );
}

#[test]
fn an_empty_prompt_is_told_wherever_it_comes_from() {
    let dir = dir();
    let empty = "the prompt is empty";
    let run = |args: &[&str]| Run::new(&dir, &[&["-mx"], args].concat());
    check_usage(run(&[""]), &format!("PROMPT: {empty}"));
    check_usage(run(&["--", " ", "\t"]), &format!("PROMPT: {empty}"));
    check_usage(run(&[]).stdin(b" \n"), &format!("standard input: {empty}"));
    check_usage(run(&["-"]), &format!("standard input: {empty}"));
    check_usage(run(&["-"]).stdin(b"caf\xe9"), "standard input: byte 4 is not UTF-8");
    check_usage(run(&[]).terminal(), "PROMPT: is missing; give it in words");
}

#[test]
fn a_variable_is_named_when_it_is_what_is_wrong() {
    let dir = dir();
    for (name, value, message) in [
        ("UNCUT_MAX_STEPS", "0", "UNCUT_MAX_STEPS: must be at least 1"),
        ("UNCUT_IDLE_TIMEOUT", "soon", "UNCUT_IDLE_TIMEOUT: \"soon\" is not a duration"),
        ("OPENAI_BASE_URL", "h/v1", "OPENAI_BASE_URL: "),
        ("UNCUT_API_KEY", "sk-\u{200b}KEY", "UNCUT_API_KEY: character 4 of the key is not ASCII"),
        ("UNCUT_NO_AGENTS_MD", "2", "UNCUT_NO_AGENTS_MD: \"2\" is neither 1 nor 0"),
        ("UNCUT_ACCEPT", "missing-ids,all", "UNCUT_ACCEPT: \"all\" is unknown"),
    ] {
        check_usage(Run::new(&dir, &["-mx", "hi"]).env(name, value), message);
    }
}

#[test]
fn no_message_shows_a_key_wherever_it_was_put() {
    let dir = dir();
    for args in [
        &["--max-steps", KEY, "--api-key", KEY][..],
        &["--max-steps", "--api-key=sk-TESTKEY-1"],
        &["-C", "--api-key=sk-TESTKEY-1", "-mx", "hi"],
        &["--api-kye=sk-TESTKEY-1"],
        &["-ksk-TESTKEY-1"],
        &["--api-key-file=sk-TESTKEY-1", "-mx", "hi"],
        &["--api-key=sk-TESTKEY-1", "-f", KEY, "-mx"],
        &["--api-key=sk-TESTKEY-1", "-f", "p", KEY, "-mx"],
    ] {
        check_usage(Run::new(&dir, args), "");
    }
    for name in ["UNCUT_API_KEY", "OPENAI_API_KEY"] {
        check_usage(Run::new(&dir, &["--accept", KEY]).env(name, KEY), "--accept: ");
    }
}

/// A key that is longer than what was ever shown of a value.
#[test]
fn no_message_shows_a_piece_of_a_key_that_does_not_fit_in() {
    let dir = dir();
    let key = format!("sk-TESTKEY-{}", "x".repeat(2_500));
    let given = |flag: &str| vec![flag.to_owned(), key.clone(), "-mx".to_owned(), "hi".to_owned()];
    let mut lines: Vec<Vec<String>> = [
        "--output",
        "--verify-attempts",
        "--max-steps",
        "--max-retries",
        "--max-tokens",
        "--timeout",
        "--accept",
        "--extra-body",
        "--base-url",
        "-C",
        "-f",
        "--system-prompt-file",
        "--agents-md",
        "--ca-file",
        "--replay",
        "--session",
        "-o",
    ]
    .map(given)
    .into();
    lines.push(vec!["--accept".to_owned(), format!("finish-reason:{key}length")]);
    lines.push(vec!["-f".to_owned(), "p".to_owned(), format!("say {key}"), "-mx".to_owned()]);
    lines.push(vec![format!("--{key}")]);
    for line in &lines {
        let line: Vec<&str> = line.iter().map(String::as_str).collect();
        for format in ["text", "json"] {
            let run = Run::new(&dir, &line).env("UNCUT_API_KEY", &key);
            let ended = run.env("UNCUT_OUTPUT", format).end();
            for text in [&ended.stdout, &ended.stderr] {
                assert!(!text.contains("TESTKEY"), "{line:.20?}: {text}");
            }
        }
    }
    let run = Run::new(&dir, &["-mx", "hi"]).env("UNCUT_API_KEY", &key);
    check_usage(run.env("UNCUT_NO_AGENTS_MD", &key), "UNCUT_NO_AGENTS_MD: \"[api key]\" is ");
}

#[test]
fn what_is_wrong_and_what_to_do_stand_around_a_value_that_is_too_long_to_show() {
    let dir = dir();
    let long = "x".repeat(100_000);
    let ended = Run::new(&dir, &["hi", "-mx", "--output", &long]).end();
    let line = ended.stderr.lines().next().unwrap();
    assert!(line.starts_with("uncut: usage: --output: \"xxx"), "{line}");
    assert!(line.ends_with("xxx\" is unknown; give text, json or jsonl"), "{line}");
    assert!(line.contains(" bytes left out") && line.len() < 2_100, "{line}");
}

#[test]
fn the_answer_and_a_newline_go_to_stdout_in_each_run_of_a_process() {
    let dir = dir().with("r.jsonl", answer("done"));
    for _ in 0..2 {
        let ended = Run::new(&dir, &["--replay=r.jsonl", "hi"]).stdin(b"1\n2\n").end();
        assert_eq!((ended.outcome, ended.stdout.as_str()), (Outcome::Ok, "done\n"), "{ended:?}");
        assert_eq!(ended.stdin, b"1\n2\n", "with a prompt, standard input is left alone");
        let last = ended.stderr.lines().last().unwrap();
        assert!(last.starts_with("uncut: ok: steps 1, "), "{ended:?}");
    }
    let quiet = Run::new(&dir, &["--replay=r.jsonl", "-q", "-"]).stdin(b"hi").end();
    assert_eq!((quiet.stdout.as_str(), quiet.stderr.as_str()), ("done\n", ""));
}

#[test]
fn help_and_version_need_nothing() {
    let dir = dir();
    let version = Run::new(&dir, &["-V"]).terminal().end();
    assert_eq!((version.outcome, version.stdout.as_str()), (Outcome::Ok, "uncut 0.1.0\n"));
    let help = Run::new(&dir, &["-q", "--help", "--nonsense"]).terminal().end();
    assert!(help.stdout.starts_with("uncut 0.1.0: "), "{help:?}");
    assert_eq!((help.outcome, help.stderr.as_str()), (Outcome::Ok, ""));
}

#[test]
fn a_key_that_the_model_repeats_is_masked_in_the_answer() {
    let dir = dir().with("r.jsonl", answer("key sk-TESTKEY-1")).with("key", KEY);
    for args in [
        ["--replay=r.jsonl", "--api-key", KEY, "hi"],
        ["--replay=r.jsonl", "--api-key-file", "key", "hi"],
    ] {
        assert_eq!(Run::new(&dir, &args).end().stdout, "key [api key]\n");
    }
}

#[test]
fn files_are_looked_up_where_the_program_was_started() {
    let dir = dir().with("r.jsonl", answer("done")).with("p.md", "hi");
    std::fs::create_dir(dir.path("below")).unwrap();
    let ended = Run::new(&dir, &["-C", "below", "-f", "p.md", "--replay", "r.jsonl"]).end();
    assert_eq!(ended.stdout, "done\n", "{ended:?}");
}

#[test]
fn an_answer_that_nobody_reads_is_a_failure() {
    struct Closed;
    impl Write for Closed {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let dir = dir().with("r.jsonl", answer("done"));
    let run = Run::new(&dir, &["--replay=r.jsonl", "-q", "hi"]);
    let (outcome, stderr, _) = run.end_into(&mut Closed);
    assert_eq!(outcome, Outcome::Internal);
    assert!(stderr.starts_with("uncut: internal: stdout can't be written: "), "{stderr}");
    assert_eq!(stderr.lines().count(), 1);
}

#[test]
fn the_environment_of_the_process_is_read() {
    let dir = dir().with("r.jsonl", answer("done"));
    let ran = Uncut::new(&dir).args(["--replay", "r.jsonl", "hi"]).env("UNCUT_MAX_STEPS", "none");
    let ran = ran.run();
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""));
    assert!(ran.stderr.starts_with("uncut: usage: UNCUT_MAX_STEPS: "), "{ran:?}");
}

#[cfg(unix)]
#[test]
fn an_argument_or_variable_that_is_not_utf8_is_a_usage_error() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;
    let dir = dir().with("r.jsonl", answer("done"));
    let bad = OsStr::from_bytes(b"caf\xe9");
    let ran = Uncut::new(&dir).args(["--replay", "r.jsonl"]).arg(bad).run();
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""));
    let says = "uncut: usage: PROMPT word 1: \"caf\u{fffd}\" is not UTF-8";
    assert!(ran.stderr.starts_with(says), "{ran:?}");
    let ran = Uncut::new(&dir).arg("hi").env("UNCUT_MODEL", bad).run();
    assert_eq!(ran.code, Some(2));
    let says = "uncut: usage: UNCUT_MODEL: byte 4 is not UTF-8";
    assert!(ran.stderr.starts_with(says), "{ran:?}");
}

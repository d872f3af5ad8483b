//! What stderr says: a line for each tool call, warnings, and how it ended. Everything that is said
//! passes here, also what machines are told.
//!
//! Every line starts with `uncut: `, is one line, shows no control character and no key. The last
//! line of a failed run is `uncut: OUTCOME: what happened; what to do`. That stderr is closed or
//! full is nobody's concern.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::args::{Completions, Format, Options, Verbosity};
use super::failure::Failure;
use super::object::Object;
use super::publish::{Publisher, unwritten};
use super::{events, help, ledger};
use crate::agent::Event;
use crate::agents_md::{self, Loaded};
use crate::json::Members;
use crate::message::ToolCall;
use crate::outcome::Outcome;
use crate::provider::{FinishReason, Notice, Usage};
use crate::secret::Mask;
use crate::session::Repair;
use crate::text::{message_line, one_line};

/// Bytes of a line; a message with a piece of an endpoint's body in it fits.
const LINE_MAX: usize = 2_000;

/// Bytes of a tool call's arguments, and of what it came to.
const EXCERPT_MAX: usize = 100;

/// Reports a run: on stderr for people, and to the [`Publisher`] for machines.
pub(super) struct Reporter<'a> {
    /// How much is said.
    pub(super) verbosity: Verbosity,
    /// How many steps there may be.
    pub(super) max_steps: u32,
    /// What has come of the run, and where that goes.
    pub(super) publisher: Arc<Publisher>,
    stdout: &'a mut dyn Write,
    stderr: &'a mut dyn Write,
    call_started: Instant,
}

impl<'a> Reporter<'a> {
    pub(super) fn new(
        stdout: &'a mut dyn Write,
        stderr: &'a mut dyn Write,
        mask: Mask,
    ) -> Reporter<'a> {
        Reporter {
            verbosity: Verbosity::Normal,
            max_steps: 0,
            publisher: Arc::new(Publisher::new(Format::Text, None, mask)),
            stdout,
            stderr,
            call_started: Instant::now(),
        }
    }

    /// What is never shown.
    pub(super) fn mask(&self) -> &Mask {
        self.publisher.mask()
    }

    /// Reports what happens in the loop. Once the run is being ended this does not return: whatever
    /// is said or not, nothing more may be asked or run.
    pub(super) fn observe(&mut self, event: &Event<'_>) {
        self.publisher.gate.check();
        match event {
            Event::ToolStarted { .. } | Event::VerifyStarted { .. } => {
                self.call_started = Instant::now();
            }
            // These have ways of their own.
            Event::Instructions(file) => return self.instructions(file),
            Event::Warning(text) => return self.warning(text),
            _ => {}
        }
        self.publisher.ledger().observe(event);
        let took = self.call_started.elapsed();
        let (kind, object) = events::object(event, took, self.mask());
        self.publisher.event(self.stdout, kind, object);
        self.tell(event, took);
    }

    fn tell(&mut self, event: &Event<'_>, took: Duration) {
        let seconds = took.as_secs_f64();
        match event {
            Event::StepStarted { step } => {
                let step = self.step(*step);
                self.doing(format!("{step}: waiting for the model"));
                self.say(Verbosity::Verbose, &format!("{step}: asking the model"));
            }
            Event::Completed { step, usage, finish_reason } => {
                self.completed(*step, *usage, finish_reason);
            }
            Event::ToolStarted { step, call } => {
                let call = self.call(*step, call);
                self.doing(call.clone());
                self.say(Verbosity::Verbose, &format!("{call}, started"));
            }
            Event::ToolEnded { step, call, output } => {
                let summary = self.excerpt(&output.summary);
                let line = format!("{}: {summary} ({seconds:.1} s)", self.call(*step, call));
                self.say(Verbosity::Normal, &line);
            }
            Event::SummingUp => {
                self.doing("waiting for the model to sum up");
                self.say(Verbosity::Verbose, "asking the model to sum up");
            }
            Event::SummedUp { summary, .. } => {
                let summary = summary.unwrap_or("none that can be trusted");
                self.say(Verbosity::Normal, &format!("summary: {summary}"));
            }
            Event::VerifyStarted { attempt, attempts } => {
                self.doing(format!("verifying answer {attempt}/{attempts}"));
            }
            Event::VerifyEnded { attempt, attempts, verified } => {
                let passed = if verified.passed { "passed" } else { "did not pass" };
                let summary = self.excerpt(&verified.output.summary);
                let line = format!("verify {attempt}/{attempts}: {passed}: {summary}");
                self.say(Verbosity::Normal, &format!("{line} ({seconds:.1} s)"));
            }
            Event::Notice(notice) => self.notice(notice),
            Event::Instructions(_) | Event::Warning(_) => {}
        }
    }

    fn notice(&mut self, notice: &Notice<'_>) {
        let line = match notice {
            Notice::Retry { retry, max_retries, pause, error } => {
                self.doing(format!("retry {retry}/{max_retries}: waiting for the endpoint"));
                format!("retry {retry}/{max_retries} in {:.1} s: {error}", pause.as_secs_f64())
            }
            Notice::AskAgain { time, times, error } => {
                format!("asking again {time}/{times}: {error}")
            }
            Notice::Loading { pause } => {
                self.doing("waiting for the server to load its model");
                let seconds = pause.as_secs_f64();
                format!("the server is loading its model; next look in {seconds:.1} s")
            }
            Notice::Without { what } => format!("from now on {what}"),
            Notice::Silent { silent, used } => {
                let warning = events::silence(silent, *used);
                self.publisher.ledger().warning(&warning);
                format!("warning: {warning}")
            }
        };
        self.say(Verbosity::Normal, &line);
    }

    /// Reports something odd that does not end the run.
    pub(super) fn warning(&mut self, text: &str) {
        self.publisher.ledger().warning(text);
        self.event("warning", Object::new().with("warning", text));
        self.say(Verbosity::Normal, &format!("warning: {text}"));
    }

    /// Reports what the model is told by an AGENTS.md file.
    pub(super) fn instructions(&mut self, file: &Loaded) {
        self.publisher.ledger().instructions(file);
        self.event("instructions", ledger::instructions(file));
        let Loaded { path, bytes, left_out, sha256 } = file;
        let path = path.display();
        self.say(Verbosity::Verbose, &format!("{path}: {bytes} bytes, sha256 {sha256}"));
        if *left_out > 0 {
            self.warning(&format!(
                "{path}: {left_out} bytes left out, because a run takes in at most {} bytes of \
                 AGENTS.md files; make them shorter",
                agents_md::MAX
            ));
        }
    }

    /// Reports each of several such things.
    pub(super) fn warnings(&mut self, texts: &[String]) {
        for text in texts {
            self.warning(text);
        }
    }

    /// Reports what was cut off a session, however quiet the run is to be; or that nothing was.
    pub(super) fn repaired(&mut self, path: &Path, repair: Option<&Repair>) {
        match repair {
            Some(repair) => {
                let detail = self.line(&repair.detail);
                self.publisher.ledger().repaired = Some(Repair { detail, ..repair.clone() });
                self.say(Verbosity::Quiet, &format!("repaired: {repair}"));
            }
            None => {
                let line = format!("{} is whole; nothing was repaired", path.display());
                self.say(Verbosity::Normal, &line);
            }
        }
    }

    /// Reports what still ran at the end of the run.
    pub(super) fn killed(&mut self, names: &BTreeSet<String>) {
        if let Some(line) = killed(names) {
            self.publisher.ledger().killed(names);
            self.event("killed", Object::new().with("killed", names));
            self.say(Verbosity::Normal, &line);
        }
    }

    /// Finds out whether stdout can be written, without writing to it.
    pub(super) fn find_stdout(&mut self) -> Result<(), Failure> {
        self.stdout.flush().map_err(|error| unwritten("stdout", &error))
    }

    /// Reports that a run is about to start.
    pub(super) fn started(&mut self, options: &Options, directory: &Path) {
        let session = self.publisher.ledger().session.clone();
        let endpoint = match &options.completions {
            Completions::Endpoint(endpoint) => Some(endpoint.to_string()),
            Completions::Replay(_) => None,
        };
        let object = Object::new()
            .with_word("uncut", Some(env!("CARGO_PKG_VERSION")))
            .with("model", &options.model)
            .with("endpoint", endpoint)
            .with("directory", ledger::shown(directory))
            .with("session", session)
            .with("max_steps", self.max_steps);
        self.event("start", object);
    }

    /// Adds an event for machines.
    pub(super) fn event(&mut self, kind: &str, members: Object) {
        self.publisher.event(self.stdout, kind, members);
    }

    /// Puts text on stdout that is no answer.
    pub(super) fn print_text(&mut self, text: &str) -> io::Result<()> {
        self.publisher.text(self.stdout, text)
    }

    /// Says the last there is to say, here and on stdout, and returns the outcome. A run that is
    /// being ended has no answer any more; one that has begun to print it may finish.
    pub(super) fn conclude(&mut self, ended: Result<Option<String>, Failure>) -> Outcome {
        let ended = ended.map_err(|failure| self.short(failure));
        self.doing("waiting for the reader of stdout");
        match self.publisher.conclude(self.stdout, ended) {
            Ok(()) => {
                self.succeeded();
                Outcome::Ok
            }
            Err(failure) => {
                self.failed(&failure);
                failure.outcome
            }
        }
    }

    /// A failure in lines of which the secrets are masked and the length is limited.
    fn short(&self, failure: Failure) -> Failure {
        let Failure { outcome, what, advice } = failure;
        Failure { outcome, what: self.line(&what), advice: advice.map(|text| self.line(&text)) }
    }

    /// Reports that the answer is out; silent when nothing was run.
    fn succeeded(&mut self) {
        let ledger = self.publisher.ledger();
        if ledger.steps == 0 {
            return;
        }
        let line = format!(
            "{}: steps {}, tool calls {}, {}, {:.1} s",
            Outcome::Ok,
            ledger.steps,
            ledger.tool_calls,
            tokens(ledger.tokens.prompt, None, ledger.tokens.completion),
            ledger.elapsed().as_secs_f64()
        );
        drop(ledger);
        self.say(Verbosity::Normal, &line);
    }

    /// Reports why there is no answer, however quiet the run is to be.
    pub(super) fn failed(&mut self, failure: &Failure) {
        let Failure { outcome, what, advice } = failure;
        let advice = advice.as_ref().map(|advice| format!("; {advice}")).unwrap_or_default();
        // The outcome is a word that stays what it is.
        self.print(&format!("uncut: {outcome}: {}", self.line(&format!("{what}{advice}"))));
        if *outcome == Outcome::Usage {
            self.print(help::USAGE);
        }
    }

    fn completed(&mut self, step: u32, usage: Usage, finish_reason: &FinishReason) {
        let Usage { prompt_tokens, cached_tokens, completion_tokens } = usage;
        let line = format!(
            "{}: finish reason {}, {}",
            self.step(step),
            finish_reason.word().unwrap_or("none"),
            tokens(prompt_tokens, cached_tokens, completion_tokens)
        );
        self.say(Verbosity::Verbose, &line);
    }

    fn call(&self, step: u32, call: &ToolCall) -> String {
        let (name, argument) = (self.excerpt(&call.name), self.excerpt(&argument(call)));
        format!("{}: {name} {argument}", self.step(step))
    }

    fn step(&self, step: u32) -> String {
        format!("step {step}/{}", self.max_steps)
    }

    /// Notes what is waited for from now on.
    pub(super) fn doing(&self, what: impl Into<String>) {
        self.publisher.pulse().doing(what.into());
    }

    /// The start of what others say. Secrets go first: a piece of one would pass the mask.
    fn excerpt(&self, text: &str) -> String {
        one_line(&self.mask().text(text), EXCERPT_MAX)
    }

    /// A message on a line of its own. Secrets go first here too.
    pub(super) fn line(&self, text: &str) -> String {
        message_line(&self.mask().text(text), LINE_MAX)
    }

    /// Prints a line where as much as `least` is to be said.
    fn say(&mut self, least: Verbosity, text: &str) {
        if self.verbosity >= least {
            self.print(&format!("uncut: {}", self.line(text)));
        }
    }

    /// Prints a line in one write, so that those of other processes stand before or after it.
    fn print(&mut self, line: &str) {
        self.publisher.gate.check();
        self.publisher.pulse().said();
        let _ = self.stderr.write_all(format!("{line}\n").as_bytes());
        let _ = self.stderr.flush();
    }
}

/// Those of the prompt, of them those that were cached, and those of the completion.
fn tokens(prompt: Option<u64>, cached: Option<u64>, completion: Option<u64>) -> String {
    if (prompt, completion) == (None, None) {
        return "tokens not reported".to_owned();
    }
    let count = |tokens: Option<u64>| tokens.map_or("?".to_owned(), |tokens| tokens.to_string());
    let cached = cached.map(|cached| format!(" ({cached} cached)")).unwrap_or_default();
    format!("tokens {}{cached} + {}", count(prompt), count(completion))
}

/// What is said of processes that were killed; nothing where there are none.
pub(super) fn killed(names: &BTreeSet<String>) -> Option<String> {
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    (!names.is_empty()).then(|| format!("killed at the end: {}", names.join(", ")))
}

/// The argument that says most: the command or the path, otherwise all of them.
fn argument(call: &ToolCall) -> Cow<'_, str> {
    let members: Option<Members<'_>> = serde_json::from_str(&call.arguments).ok();
    let main = members.and_then(|mut members| {
        let raw = members.take("command").or_else(|| members.take("path"))?;
        serde_json::from_str::<String>(raw.get()).ok()
    });
    main.map_or(Cow::Borrowed(call.arguments.as_str()), Cow::Owned)
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;
    use crate::cli::args::UsageError;
    use crate::error::Error;
    use crate::provider::{Meaning, ProviderError, StatusError};
    use crate::tools::Output;

    const KEY: &str = "sk-TESTKEY-1";

    /// What is reported, without the durations.
    fn reported(verbosity: Verbosity, act: impl Fn(&mut Reporter<'_>)) -> Vec<String> {
        let mut stderr = Vec::new();
        let mut stdout = Vec::new();
        let mask = Mask::new(crate::secret::Secret::parse(KEY).unwrap());
        let mut reporter = Reporter::new(&mut stdout, &mut stderr, mask);
        reporter.verbosity = verbosity;
        reporter.max_steps = 32;
        act(&mut reporter);
        let text = String::from_utf8(stderr).unwrap_or_default();
        assert!(text.is_empty() || text.ends_with('\n'), "{text}");
        text.lines()
            .map(|line| line.split(' ').map(timeless).collect::<Vec<_>>().join(" "))
            .collect()
    }

    /// A word with `T` in place of a time.
    fn timeless(word: &str) -> String {
        let number = word.trim_start_matches('(');
        let is_time = number.contains('.') && number.parse::<f64>().is_ok();
        if is_time { word.replace(number, "T") } else { word.to_owned() }
    }

    /// A run of one call that then has an answer.
    fn one_call(reporter: &mut Reporter<'_>) {
        let usage =
            Usage { prompt_tokens: Some(100), cached_tokens: Some(80), completion_tokens: Some(7) };
        let call = ToolCall::new("1", "shell", r#"{"timeout":5,"command":"ls\n  -l"}"#);
        let output = Output::new("total 0", "exit 0");
        reporter.observe(&Event::StepStarted { step: 1 });
        let finish_reason = &FinishReason::ToolCalls;
        reporter.observe(&Event::Completed { step: 1, finish_reason, usage });
        reporter.observe(&Event::ToolStarted { step: 1, call: &call });
        reporter.observe(&Event::ToolEnded { step: 1, call: &call, output: &output });
        reporter.observe(&Event::Warning("odd"));
        reporter.observe(&Event::StepStarted { step: 2 });
        let (finish_reason, usage) = (&FinishReason::Missing, Usage::default());
        reporter.observe(&Event::Completed { step: 2, finish_reason, usage });
        reporter.succeeded();
    }

    #[test]
    fn a_tool_call_is_a_line() {
        assert_eq!(
            reported(Verbosity::Normal, one_call),
            [
                "uncut: step 1/32: shell ls -l: exit 0 (T s)",
                "uncut: warning: odd",
                "uncut: ok: steps 2, tool calls 1, tokens not reported, T s",
            ]
        );
    }

    #[test]
    fn tokens_are_told_as_far_as_they_are_reported() {
        assert_eq!(tokens(Some(100), Some(80), Some(7)), "tokens 100 (80 cached) + 7");
        assert_eq!(tokens(None, None, Some(7)), "tokens ? + 7");
        assert_eq!(tokens(None, Some(80), None), "tokens not reported");
    }

    #[test]
    fn verbose_tells_every_step_and_its_tokens() {
        assert_eq!(
            reported(Verbosity::Verbose, one_call),
            [
                "uncut: step 1/32: asking the model",
                "uncut: step 1/32: finish reason tool_calls, tokens 100 (80 cached) + 7",
                "uncut: step 1/32: shell ls -l, started",
                "uncut: step 1/32: shell ls -l: exit 0 (T s)",
                "uncut: warning: odd",
                "uncut: step 2/32: asking the model",
                "uncut: step 2/32: finish reason none, tokens not reported",
                "uncut: ok: steps 2, tool calls 1, tokens not reported, T s",
            ]
        );
    }

    #[test]
    fn instructions_are_listed_and_what_is_cut_of_them_is_warned_of() {
        let act = |reporter: &mut Reporter<'_>| {
            let sha256 = "ab".repeat(32);
            let file = Loaded { path: "/w/AGENTS.md".into(), bytes: 12, left_out: 0, sha256 };
            reporter.instructions(&file);
            reporter.instructions(&Loaded { left_out: 34, ..file });
        };
        let lines = reported(Verbosity::Verbose, act);
        assert_eq!(lines[0], format!("uncut: /w/AGENTS.md: 12 bytes, sha256 {}", "ab".repeat(32)));
        let lines = reported(Verbosity::Normal, act);
        assert_eq!(lines.len(), 1, "{lines:?}");
        let start = "uncut: warning: /w/AGENTS.md: 34 bytes left out, because ";
        assert!(lines[0].starts_with(start), "{}", lines[0]);
    }

    #[test]
    fn quiet_tells_errors_only() {
        let lines = reported(Verbosity::Quiet, |reporter| {
            one_call(reporter);
            reporter.failed(&Failure::from(Error::Deadline));
        });
        assert_eq!(lines.len(), 1);
        assert!(lines[0].starts_with("uncut: deadline: the run's time is over; "), "{}", lines[0]);
    }

    #[test]
    fn nothing_that_others_say_breaks_the_line_or_shows_the_key() {
        let body = format!("{{\n\"error\": \"wrong key {KEY} \x1b[2J\"}}").into_bytes();
        let status = ProviderError::Status(StatusError {
            status: 400,
            meaning: Meaning::Refused,
            message: None,
            location: None,
            retry_after: None,
            body,
        });
        let lines = reported(Verbosity::Verbose, |reporter| {
            let call = ToolCall::new("1", "shell\n", format!("echo {KEY} {KEY}\n\x07"));
            let output = Output::new("", format!("\r{KEY}"));
            reporter.observe(&Event::ToolStarted { step: 1, call: &call });
            reporter.observe(&Event::ToolEnded { step: 1, call: &call, output: &output });
            let finish_reason = FinishReason::Other(format!("{KEY}\n"));
            let usage = Usage::default();
            reporter.observe(&Event::Completed { step: 1, finish_reason: &finish_reason, usage });
            reporter.warning(&format!("\n{KEY}"));
        });
        assert_eq!(lines.len(), 4, "{lines:?}");
        let failed = reported(Verbosity::Normal, |reporter| {
            let what = format!("{status} {KEY}");
            reporter.failed(&Failure { outcome: Outcome::Rejected, what, advice: None });
        });
        assert_eq!(failed.len(), 1, "{failed:?}");
        for line in lines.iter().chain(&failed) {
            assert!(line.contains(crate::secret::MASK) && !line.contains("sk-"), "{line}");
            assert!(!line.contains(|c: char| c.is_control()), "{line}");
        }
    }

    #[test]
    fn a_key_is_masked_before_the_line_is_cut() {
        let lines = reported(Verbosity::Normal, |reporter| {
            let call = ToolCall::new("1", "shell", format!("{}{KEY}", "x".repeat(EXCERPT_MAX - 5)));
            let output = Output::new("", "exit 0");
            reporter.observe(&Event::ToolEnded { step: 1, call: &call, output: &output });
        });
        assert!(!lines[0].contains("sk-"), "{}", lines[0]);
    }

    #[test]
    fn a_usage_error_is_followed_by_the_usage_line() {
        let lines = reported(Verbosity::Quiet, |reporter| {
            reporter.failed(&Failure::from(UsageError::new("--model", "is empty")));
        });
        assert_eq!(lines, ["uncut: usage: --model: is empty", help::USAGE]);
    }

    #[test]
    fn a_closed_stderr_is_nobodys_concern() {
        struct Closed;
        impl Write for Closed {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Err(io::ErrorKind::BrokenPipe.into())
            }
        }
        let (mut stdout, mut stderr) = (Vec::new(), Closed);
        let mut reporter = Reporter::new(&mut stdout, &mut stderr, Mask::default());
        one_call(&mut reporter);
        reporter.failed(&Failure::from(Error::Deadline));
    }
}

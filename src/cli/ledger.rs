//! What a run has come to so far, and the result that is made of it.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use super::failure::Failure;
use super::object::Object;
use crate::agent::Event;
use crate::agents_md::Loaded;
use crate::outcome::Outcome;
use crate::provider::{Notice, Usage};
use crate::session::Repair;

/// The facts of a run, as they are: what of them is secret is masked when they become a line.
pub(super) struct Ledger {
    pub(super) model: Option<String>,
    pub(super) session: Option<String>,
    pub(super) steps: u32,
    pub(super) tool_calls: u32,
    started: Instant,
    retries: u32,
    pub(super) tokens: Tokens,
    agents_md: Vec<Loaded>,
    warnings: Vec<String>,
    /// Warnings that there was no room for.
    warnings_left_out: u32,
    summary: Option<String>,
    verify: Option<Attempts>,
    killed: Vec<String>,
    checks: Vec<Probed>,
    /// What was cut off a session that was repaired.
    pub(super) repaired: Option<Repair>,
    /// Of a session that was shown: its records, and those of them that were refused.
    pub(super) records: Option<(u64, u64)>,
}

/// As many warnings stand in a result: something may go wrong in every step.
const WARNINGS_MAX: usize = 100;

/// How often answers were verified.
#[derive(Clone, Copy)]
struct Attempts {
    attempt: u32,
    attempts: u32,
    passed: bool,
}

/// One thing that was looked at by `--check`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Probed {
    pub(super) name: &'static str,
    pub(super) outcome: Outcome,
    /// What was found, and what to do about it.
    pub(super) found: String,
}

impl Probed {
    /// Its members in a result and in an event.
    pub(super) fn add_to(&self, object: Object) -> Object {
        object
            .with_word("check", Some(self.name))
            .with_word("outcome", Some(self.outcome.word()))
            .with("found", &self.found)
    }
}

/// Sums over the run; none as soon as the endpoint has left a number out.
pub(super) struct Tokens {
    pub(super) prompt: Option<u64>,
    pub(super) cached: Option<u64>,
    pub(super) completion: Option<u64>,
}

impl Tokens {
    /// Nothing spent yet.
    pub(super) const ZERO: Tokens =
        Tokens { prompt: Some(0), cached: Some(0), completion: Some(0) };

    fn add(&mut self, usage: Usage) {
        self.prompt = sum(self.prompt, usage.prompt_tokens);
        self.cached = sum(self.cached, usage.cached_tokens);
        self.completion = sum(self.completion, usage.completion_tokens);
    }

    pub(super) fn object(&self) -> Object {
        Object::new()
            .with("prompt", self.prompt)
            .with("cached", self.cached)
            .with("completion", self.completion)
    }
}

impl From<Usage> for Tokens {
    fn from(usage: Usage) -> Tokens {
        let Usage { prompt_tokens, cached_tokens, completion_tokens } = usage;
        Tokens { prompt: prompt_tokens, cached: cached_tokens, completion: completion_tokens }
    }
}

/// What is not known makes the sum unknown, and not smaller.
fn sum(sum: Option<u64>, tokens: Option<u64>) -> Option<u64> {
    sum.zip(tokens).map(|(sum, tokens)| sum.saturating_add(tokens))
}

impl Ledger {
    pub(super) fn new() -> Ledger {
        Ledger {
            model: None,
            session: None,
            steps: 0,
            tool_calls: 0,
            started: Instant::now(),
            retries: 0,
            tokens: Tokens::ZERO,
            agents_md: Vec::new(),
            warnings: Vec::new(),
            warnings_left_out: 0,
            summary: None,
            verify: None,
            killed: Vec::new(),
            checks: Vec::new(),
            repaired: None,
            records: None,
        }
    }

    /// Takes in what happens.
    pub(super) fn observe(&mut self, event: &Event<'_>) {
        match event {
            Event::StepStarted { step } => self.steps = *step,
            Event::Completed { usage, .. } => self.tokens.add(*usage),
            Event::SummedUp { summary, usage } => {
                self.tokens.add(*usage);
                self.summary = summary.map(str::to_owned);
            }
            Event::ToolEnded { .. } => self.tool_calls = self.tool_calls.saturating_add(1),
            Event::VerifyEnded { attempt, attempts, verified } => {
                let passed = verified.passed;
                self.verify = Some(Attempts { attempt: *attempt, attempts: *attempts, passed });
            }
            Event::Notice(Notice::Retry { .. }) => self.retries = self.retries.saturating_add(1),
            _ => {}
        }
    }

    /// Takes in what the model is told by an AGENTS.md file.
    pub(super) fn instructions(&mut self, file: &Loaded) {
        self.agents_md.push(file.clone());
    }

    pub(super) fn warning(&mut self, text: &str) {
        if self.warnings.len() < WARNINGS_MAX {
            self.warnings.push(text.to_owned());
        } else {
            self.warnings_left_out += 1;
        }
    }

    pub(super) fn killed(&mut self, names: &BTreeSet<String>) {
        self.killed.extend(names.iter().cloned());
    }

    pub(super) fn probed(&mut self, probed: Probed) {
        self.checks.push(probed);
    }

    pub(super) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Adds the members of the result.
    pub(super) fn result(&self, object: Object, ended: Result<Option<&str>, &Failure>) -> Object {
        let outcome = ended.map_or_else(|failure| failure.outcome, |_| Outcome::Ok);
        let mut warnings = self.warnings.clone();
        if self.warnings_left_out > 0 {
            warnings.push(format!("{} further warnings are on stderr", self.warnings_left_out));
        }
        let object = object
            .with_word("uncut", Some(env!("CARGO_PKG_VERSION")))
            .with_word("outcome", Some(outcome.word()))
            .with("exit_code", outcome.code())
            .with("message", ended.err().map(|failure| failure.what.as_str()))
            .with("advice", ended.err().and_then(|failure| failure.advice.as_deref()))
            .with("answer", ended.ok().flatten())
            .with("summary", self.summary.as_deref())
            .with("model", self.model.as_deref())
            .with("steps", self.steps)
            .with("tool_calls", self.tool_calls)
            .with_object("tokens", Some(self.tokens.object()))
            .with("duration_ms", milliseconds(self.elapsed()))
            .with("retries", self.retries)
            .with("session", self.session.as_deref())
            .with_objects("agents_md", self.agents_md.iter().map(instructions).collect())
            .with_object("verify", self.verify.map(Attempts::object))
            .with("killed", &self.killed)
            .with("warnings", warnings);
        let object = match self.records {
            Some((records, refused)) => object.with("records", records).with("refused", refused),
            None => object,
        };
        let object = match &self.repaired {
            Some(repair) => object.with_object("repaired", Some(repaired(repair))),
            None => object,
        };
        if self.checks.is_empty() {
            return object;
        }
        let checks = self.checks.iter().map(|probed| probed.add_to(Object::new()));
        object.with_objects("checks", checks.collect())
    }
}

impl Attempts {
    fn object(self) -> Object {
        Object::new()
            .with("attempt", self.attempt)
            .with("attempts", self.attempts)
            .with("passed", self.passed)
    }
}

/// What was cut off, from which place on, and where it is now.
fn repaired(repair: &Repair) -> Object {
    Object::new()
        .with("copy", shown(&repair.copy))
        .with("line", repair.line)
        .with("offset", repair.offset)
        .with("detail", &repair.detail)
        .with("lines", repair.lines)
        .with("bytes", repair.bytes)
        .with("readable", repair.readable)
}

/// What is said of an AGENTS.md file.
pub(super) fn instructions(file: &Loaded) -> Object {
    let Loaded { path, bytes, left_out, sha256 } = file;
    Object::new()
        .with("path", shown(path))
        .with("bytes", bytes)
        .with("left_out", left_out)
        .with_word("sha256", Some(sha256))
}

/// A path as JSON can have it.
pub(super) fn shown(path: &Path) -> String {
    path.display().to_string()
}

pub(super) fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

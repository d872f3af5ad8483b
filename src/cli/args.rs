//! What a command line asks for: from words and variables to options that fit together.
//!
//! [`flag`] says what a flag is, [`flags`] is the table of them, [`values`] reads one value,
//! [`parse`](mod@parse) the whole line, and [`resolve`] puts the values together. No file is opened
//! here, and nothing is printed.

pub(super) mod flag;
pub(super) mod flags;
pub(super) mod parse;
mod resolve;
mod values;

use std::fmt;
use std::num::{NonZeroU32, NonZeroU64};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::openai::{Endpoint, Header};
use crate::prompt::AgentsMd;
use crate::secret::Secret;
use crate::verdict::Accept;
use crate::wire::RequestForm;

/// What the command line asks for.
#[derive(Debug, PartialEq)]
pub(super) enum Request {
    Help {
        /// Everything, and not only the flags of daily use.
        full: bool,
    },
    Version,
    Session(SessionTask),
    Check(Box<Options>),
    Run(Box<Options>),
}

impl Request {
    pub(super) fn common(&self) -> Option<&Common> {
        match self {
            Request::Help { .. } | Request::Version => None,
            Request::Session(task) => Some(&task.common),
            Request::Check(options) | Request::Run(options) => Some(&options.common),
        }
    }

    /// The working directory, as it was named.
    pub(super) fn directory(&self) -> Option<&Path> {
        match self {
            Request::Help { .. } | Request::Version | Request::Session(_) => None,
            Request::Check(options) | Request::Run(options) => Some(&options.directory.path),
        }
    }
}

/// Everything that a run depends on, valid in itself: what is left to find out is what is on disk.
#[derive(Debug, PartialEq)]
pub(super) struct Options {
    pub(super) prompt: PromptSource,
    pub(super) model: String,
    pub(super) completions: Completions,
    pub(super) max_steps: NonZeroU32,
    pub(super) directory: PathArg,
    pub(super) repair_session: bool,
    pub(super) agents_md: AgentsMd,
    pub(super) verify_attempts: NonZeroU32,
    pub(super) settings: Settings,
    pub(super) common: Common,
}

impl Options {
    /// The files that are named, but for the key's and the output's.
    pub(super) fn files(&self) -> Vec<&Path> {
        let prompt = match &self.prompt.text {
            PromptText::File(file) => Some(file),
            PromptText::Words(_) | PromptText::None => None,
        };
        let replay = match &self.completions {
            Completions::Replay(file) => Some(file),
            Completions::Endpoint(_) => None,
        };
        let Settings { ca_file, session, system_prompt_file, .. } = &self.settings;
        let named = [ca_file, session, system_prompt_file].into_iter().flatten();
        let agents_md = match &self.agents_md {
            AgentsMd::Files(files) => files.as_slice(),
            AgentsMd::Discover | AgentsMd::None => &[],
        };
        let named = named.chain(prompt).chain(replay).map(|file| file.path.as_path());
        named.chain(agents_md.iter().map(PathBuf::as_path)).collect()
    }
}

/// What of a run is meant as it is given, whatever else is.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Settings {
    pub(super) max_tokens: Option<NonZeroU64>,
    pub(super) max_total_tokens: Option<NonZeroU64>,
    pub(super) request_timeout: Option<Duration>,
    pub(super) idle_timeout: Option<Duration>,
    pub(super) command_timeout: Option<Duration>,
    pub(super) max_retries: u32,
    pub(super) form: RequestForm,
    pub(super) headers: Vec<Header>,
    pub(super) accept: Accept,
    pub(super) ca_file: Option<PathArg>,
    pub(super) session: Option<PathArg>,
    pub(super) system_prompt_file: Option<PathArg>,
    pub(super) verify: Option<String>,
}

/// What everything that can be asked for depends on.
#[derive(Debug, PartialEq)]
pub(super) struct Common {
    pub(super) key: KeySource,
    pub(super) timeout: Option<Duration>,
    pub(super) format: Format,
    pub(super) output_file: Option<PathArg>,
    pub(super) verbosity: Verbosity,
}

/// What stands on stdout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Format {
    /// The answer.
    #[default]
    Text,
    /// The result, as one line of JSON.
    Json,
    /// What happens, each event a line of JSON, and last the result.
    Jsonl,
}

/// What is done with a session in place of a run.
#[derive(Debug, PartialEq)]
pub(super) struct SessionTask {
    pub(super) kind: TaskKind,
    pub(super) session: PathArg,
    pub(super) common: Common,
}

/// See [`SessionTask`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TaskKind {
    Repair,
    Show,
}

/// Where the prompt comes from.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PromptSource {
    /// What is said on the command line.
    pub(super) text: PromptText,
    /// Whether `-` asks for standard input.
    pub(super) stdin: bool,
}

/// The prompt as the command line has it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum PromptText {
    Words(String),
    File(PathArg),
    None,
}

/// Where completions come from.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Completions {
    Endpoint(Endpoint),
    Replay(PathArg),
}

/// Where the key comes from.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum KeySource {
    None,
    Given { origin: Origin, secret: Secret },
    File(PathArg),
}

/// How much is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Verbosity {
    Quiet,
    Normal,
    Verbose,
}

/// A path, and where its name came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PathArg {
    pub(super) origin: Origin,
    pub(super) path: PathBuf,
}

/// Where a value came from, shown as the user wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// A flag, as typed: `-m` or `--model`.
    Flag(String),
    /// A variable.
    Variable(&'static str),
    /// Neither: the long name of the flag.
    Default(&'static str),
}

impl Origin {
    pub(super) fn is_flag(&self) -> bool {
        matches!(self, Origin::Flag(_))
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Flag(typed) => f.write_str(typed),
            Origin::Variable(name) => f.write_str(name),
            Origin::Default(long) => write!(f, "--{long}"),
        }
    }
}

/// Why the program can't do what it was called for, on one line: what, and what about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct UsageError(String);

impl UsageError {
    pub(super) fn new(subject: impl fmt::Display, problem: impl fmt::Display) -> UsageError {
        UsageError(format!("{subject}: {problem}"))
    }
}

impl fmt::Display for UsageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

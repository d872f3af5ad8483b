//! What a command line asks for: first as a draft, then as options that fit together.

use std::ffi::OsString;
use std::fmt;
use std::num::{NonZeroU32, NonZeroU64};
use std::path::PathBuf;
use std::time::Duration;

use crate::openai::{Endpoint, Header};
use crate::prompt::AgentsMd;
use crate::secret::Secret;
use crate::verdict::Accept;
use crate::wire::RequestForm;

/// Everything that a run depends on, valid in itself: what is left to find out is what is on disk.
#[derive(Debug, PartialEq)]
pub(super) struct Options {
    pub(super) prompt: PromptSource,
    pub(super) model: String,
    pub(super) completions: Completions,
    pub(super) key: KeySource,
    pub(super) max_tokens: Option<NonZeroU64>,
    pub(super) max_steps: NonZeroU32,
    pub(super) max_total_tokens: Option<NonZeroU64>,
    pub(super) timeout: Option<Duration>,
    pub(super) request_timeout: Option<Duration>,
    pub(super) idle_timeout: Option<Duration>,
    pub(super) command_timeout: Option<Duration>,
    pub(super) max_retries: u32,
    pub(super) form: RequestForm,
    pub(super) headers: Vec<Header>,
    pub(super) accept: Accept,
    pub(super) ca_file: Option<Named>,
    pub(super) directory: Named,
    pub(super) session: Option<Named>,
    pub(super) repair_session: bool,
    pub(super) agents_md: AgentsMd,
    pub(super) system_prompt_file: Option<Named>,
    pub(super) verbosity: Verbosity,
}

/// What is done with a session in place of a run.
#[derive(Debug, PartialEq)]
pub(super) struct SessionTask {
    pub(super) kind: TaskKind,
    pub(super) session: Named,
    pub(super) key: KeySource,
    pub(super) verbosity: Verbosity,
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
    File(Named),
    None,
}

/// Where completions come from.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Completions {
    Endpoint(Endpoint),
    Replay(Named),
}

/// Where the key comes from.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum KeySource {
    None,
    Given { origin: Origin, secret: Secret },
    File(Named),
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
pub(super) struct Named {
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
    fn is_flag(&self) -> bool {
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

/// Something that is asked for in place of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Special {
    Help,
    Version,
}

/// Why the program can't do what it was called for, on one line: what, and what about it.
#[derive(Debug, PartialEq, Eq)]
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

/// What the values are, each for itself; the origin is kept where it decides between two flags or
/// where the value can only be judged once others are known.
#[derive(Debug, Default)]
pub(super) struct Draft {
    pub(super) special: Option<Special>,
    pub(super) words: Vec<String>,
    pub(super) stdin: bool,
    pub(super) prompt_file: Option<Named>,
    pub(super) model: Option<String>,
    pub(super) base_url: Option<(Origin, String)>,
    pub(super) api_key: Option<(Origin, OsString)>,
    pub(super) api_key_file: Option<Named>,
    pub(super) max_tokens: Option<NonZeroU64>,
    pub(super) max_steps: Option<NonZeroU32>,
    pub(super) max_total_tokens: Option<NonZeroU64>,
    pub(super) timeout: Option<Duration>,
    pub(super) request_timeout: Option<Duration>,
    pub(super) idle_timeout: Option<Duration>,
    pub(super) command_timeout: Option<Duration>,
    pub(super) max_retries: u32,
    pub(super) form: RequestForm,
    pub(super) headers: Vec<Header>,
    pub(super) accept: Accept,
    pub(super) ca_file: Option<Named>,
    pub(super) directory: Option<Named>,
    pub(super) session: Option<Named>,
    pub(super) repair_session: Option<Origin>,
    pub(super) show_session: Option<Origin>,
    pub(super) agents_md: Vec<Named>,
    pub(super) no_agents_md: Option<Origin>,
    pub(super) system_prompt_file: Option<Named>,
    pub(super) replay: Option<Named>,
    pub(super) quiet: Option<Origin>,
    pub(super) verbose: Option<Origin>,
}

impl Draft {
    /// What there is to do with a session, if that is all.
    ///
    /// # Errors
    ///
    /// A flag for sessions without a session, or beside one that it contradicts.
    pub(super) fn session_task(&mut self) -> Result<Option<SessionTask>, UsageError> {
        let (kind, flag) = match (&self.repair_session, &self.show_session) {
            (None, None) => return Ok(None),
            (Some(repair), Some(show)) => return Err(contradiction(show, repair)),
            (Some(repair), None) => (TaskKind::Repair, repair),
            (None, Some(show)) => (TaskKind::Show, show),
        };
        let Some(session) = &self.session else {
            return Err(UsageError::new(flag, "needs a session; give --session FILE"));
        };
        let has_prompt = !self.words.is_empty() || self.stdin || self.prompt_file.is_some();
        match kind {
            TaskKind::Repair if has_prompt => return Ok(None),
            TaskKind::Show if has_prompt => {
                let problem = "takes no prompt; leave out one of them";
                return Err(UsageError::new(flag, problem));
            }
            TaskKind::Repair | TaskKind::Show => {}
        }
        Ok(Some(SessionTask {
            kind,
            session: session.clone(),
            key: key(self.api_key.take(), self.api_key_file.take())?,
            verbosity: verbosity(self.quiet.take(), self.verbose.take())?,
        }))
    }

    /// Puts the values together.
    ///
    /// # Errors
    ///
    /// Two flags that contradict each other, a value that is missing, a key or URL of no use.
    pub(super) fn finish(self) -> Result<Options, UsageError> {
        let model = match (self.model, &self.replay) {
            (Some(model), _) => model,
            // A recording answers whatever model is asked.
            (None, Some(_)) => "replay".to_owned(),
            (None, None) => return Err(missing("model", "set UNCUT_MODEL or give --model ID")),
        };
        Ok(Options {
            prompt: prompt(self.words, self.stdin, self.prompt_file)?,
            model,
            completions: completions(self.base_url, self.replay)?,
            key: key(self.api_key, self.api_key_file)?,
            max_tokens: self.max_tokens,
            max_steps: self.max_steps.ok_or_else(|| missing("max-steps", "give a number"))?,
            max_total_tokens: self.max_total_tokens,
            timeout: self.timeout,
            request_timeout: self.request_timeout,
            idle_timeout: self.idle_timeout,
            command_timeout: self.command_timeout,
            max_retries: self.max_retries,
            form: self.form,
            headers: self.headers,
            accept: self.accept,
            ca_file: self.ca_file,
            directory: self.directory.ok_or_else(|| missing("directory", "give a directory"))?,
            session: self.session,
            repair_session: self.repair_session.is_some(),
            agents_md: agents_md(self.agents_md, self.no_agents_md)?,
            system_prompt_file: self.system_prompt_file,
            verbosity: verbosity(self.quiet, self.verbose)?,
        })
    }
}

fn missing(long: &str, advice: &str) -> UsageError {
    UsageError::new(format_args!("--{long}"), format_args!("is missing; {advice}"))
}

fn contradiction(one: &Origin, other: &Origin) -> UsageError {
    UsageError::new(one, format_args!("contradicts {other}; give one of them"))
}

fn prompt(
    words: Vec<String>,
    stdin: bool,
    file: Option<Named>,
) -> Result<PromptSource, UsageError> {
    if let (Some(word), Some(file)) = (words.first(), &file) {
        let word = crate::text::one_line(word, 40);
        return Err(UsageError::new(
            &file.origin,
            format_args!("there is a prompt in the arguments too (\"{word}\"); give one of them"),
        ));
    }
    let text = match file {
        Some(file) => PromptText::File(file),
        None if words.is_empty() => PromptText::None,
        None => PromptText::Words(words.join(" ")),
    };
    Ok(PromptSource { text, stdin })
}

fn completions(
    base_url: Option<(Origin, String)>,
    replay: Option<Named>,
) -> Result<Completions, UsageError> {
    match (base_url, replay) {
        (Some((url, _)), Some(file)) if url.is_flag() => Err(contradiction(&file.origin, &url)),
        (_, Some(file)) => Ok(Completions::Replay(file)),
        (Some((origin, url)), None) => match Endpoint::parse(&url) {
            Ok(endpoint) => Ok(Completions::Endpoint(endpoint)),
            Err(problem) => Err(UsageError::new(origin, problem)),
        },
        (None, None) => Err(missing("base-url", "give a URL")),
    }
}

/// The flags come first, then our variables, then those that we share with other programs.
fn key(given: Option<(Origin, OsString)>, file: Option<Named>) -> Result<KeySource, UsageError> {
    let rank = |origin: &Origin| match origin {
        Origin::Flag(_) => 0,
        Origin::Variable(name) if name.starts_with("UNCUT_") => 1,
        Origin::Variable(_) | Origin::Default(_) => 2,
    };
    if let (Some((given, _)), Some(file)) = (&given, &file)
        && given.is_flag()
        && file.origin.is_flag()
    {
        return Err(contradiction(given, &file.origin));
    }
    match (given, file) {
        (given, Some(file))
            if given.as_ref().is_none_or(|(other, _)| rank(&file.origin) < rank(other)) =>
        {
            Ok(KeySource::File(file))
        }
        (Some((origin, text)), _) => {
            let parsed = match text.to_str() {
                Some(text) => Secret::parse(text),
                None => Err("the key is not UTF-8".to_owned()),
            };
            match parsed {
                Ok(None) => Ok(KeySource::None),
                Ok(Some(secret)) => Ok(KeySource::Given { origin, secret }),
                Err(problem) => Err(UsageError::new(origin, problem)),
            }
        }
        (None, _) => Ok(KeySource::None),
    }
}

fn agents_md(files: Vec<Named>, no: Option<Origin>) -> Result<AgentsMd, UsageError> {
    match (files.first(), no) {
        (Some(file), Some(no)) if no.is_flag() => Err(contradiction(&file.origin, &no)),
        (Some(_), _) => Ok(AgentsMd::Files(files.into_iter().map(|file| file.path).collect())),
        (None, Some(_)) => Ok(AgentsMd::None),
        (None, None) => Ok(AgentsMd::Discover),
    }
}

fn verbosity(quiet: Option<Origin>, verbose: Option<Origin>) -> Result<Verbosity, UsageError> {
    match (quiet, verbose) {
        (Some(quiet), Some(verbose)) => Err(contradiction(&quiet, &verbose)),
        (Some(_), None) => Ok(Verbosity::Quiet),
        (None, Some(_)) => Ok(Verbosity::Verbose),
        (None, None) => Ok(Verbosity::Normal),
    }
}

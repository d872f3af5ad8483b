//! From the values of a command line, one by one, to options that fit together.

use std::ffi::OsString;
use std::num::NonZeroU32;
use std::time::Duration;

use super::{
    Common, Completions, Format, KeySource, Options, Origin, PathArg, PromptSource, PromptText,
    Request, SessionTask, Settings, TaskKind, UsageError, Verbosity,
};
use crate::openai::Endpoint;
use crate::prompt::AgentsMd;
use crate::secret::Secret;

/// What the values are, each for itself; the origin is kept where it decides between two flags or
/// where the value can only be judged once others are known.
#[derive(Debug, Default)]
pub(super) struct RawArgs {
    /// What is asked for in place of a run, such as the help.
    pub(super) request: Option<Request>,
    pub(super) words: Vec<String>,
    pub(super) stdin: bool,
    pub(super) prompt_file: Option<PathArg>,
    pub(super) model: Option<String>,
    pub(super) base_url: Option<(Origin, String)>,
    pub(super) max_steps: Option<NonZeroU32>,
    pub(super) directory: Option<PathArg>,
    pub(super) repair_session: Option<Origin>,
    pub(super) show_session: Option<Origin>,
    pub(super) agents_md: Vec<PathArg>,
    pub(super) no_agents_md: Option<Origin>,
    pub(super) verify_attempts: Option<NonZeroU32>,
    pub(super) check: Option<Origin>,
    pub(super) replay: Option<PathArg>,
    pub(super) settings: Settings,
    pub(super) common: RawCommon,
}

impl RawArgs {
    /// Puts the values together.
    ///
    /// # Errors
    ///
    /// Two flags that contradict each other, a value that is missing, a key or URL of no use.
    pub(super) fn resolve(self) -> Result<Request, UsageError> {
        if let Some((kind, flag)) = self.session_task()? {
            let Some(session) = self.settings.session else {
                return Err(UsageError::new(flag, "needs a session; give --session FILE"));
            };
            let common = self.common.resolve()?;
            return Ok(Request::Session(SessionTask { kind, session, common }));
        }
        match self.check.clone() {
            None => Ok(Request::Run(Box::new(self.options()?))),
            Some(check) if self.has_prompt() => Err(no_prompt(&check)),
            Some(check) => match &self.replay {
                Some(replay) => Err(contradiction(&check, &replay.origin)),
                None => Ok(Request::Check(Box::new(self.options()?))),
            },
        }
    }

    fn has_prompt(&self) -> bool {
        !self.words.is_empty() || self.stdin || self.prompt_file.is_some()
    }

    /// What there is to do with a session, if that is all, and the flag that says so.
    fn session_task(&self) -> Result<Option<(TaskKind, Origin)>, UsageError> {
        let (kind, flag) = match (&self.repair_session, &self.show_session) {
            (None, None) => return Ok(None),
            (Some(repair), Some(show)) => return Err(contradiction(show, repair)),
            (Some(repair), None) => (TaskKind::Repair, repair),
            (None, Some(show)) => (TaskKind::Show, show),
        };
        if let Some(check) = &self.check {
            return Err(contradiction(check, flag));
        }
        match kind {
            TaskKind::Repair if self.settings.session.is_some() && self.has_prompt() => Ok(None),
            TaskKind::Show if self.settings.session.is_some() && self.has_prompt() => {
                Err(no_prompt(flag))
            }
            TaskKind::Repair | TaskKind::Show => Ok(Some((kind, flag.clone()))),
        }
    }

    fn options(self) -> Result<Options, UsageError> {
        let model = match (self.model, &self.replay) {
            (Some(model), _) => model,
            // A recording answers whatever model is asked.
            (None, Some(_)) => "replay".to_owned(),
            (None, None) => return Err(missing("model", "set UNCUT_MODEL or give --model ID")),
        };
        let number = |number: Option<_>, long| number.ok_or_else(|| missing(long, "give a number"));
        Ok(Options {
            prompt: prompt(self.words, self.stdin, self.prompt_file)?,
            model,
            completions: completions(self.base_url, self.replay)?,
            max_steps: number(self.max_steps, "max-steps")?,
            directory: self.directory.ok_or_else(|| missing("directory", "give a directory"))?,
            repair_session: self.repair_session.is_some(),
            agents_md: agents_md(self.agents_md, self.no_agents_md)?,
            verify_attempts: number(self.verify_attempts, "verify-attempts")?,
            settings: self.settings,
            common: self.common.resolve()?,
        })
    }
}

/// See [`Common`].
#[derive(Debug, Default)]
pub(super) struct RawCommon {
    pub(super) api_key: Option<(Origin, OsString)>,
    pub(super) api_key_file: Option<PathArg>,
    pub(super) timeout: Option<Duration>,
    pub(super) format: Format,
    pub(super) output_file: Option<PathArg>,
    pub(super) quiet: Option<Origin>,
    pub(super) verbose: Option<Origin>,
}

impl RawCommon {
    fn resolve(self) -> Result<Common, UsageError> {
        Ok(Common {
            key: key(self.api_key, self.api_key_file)?,
            timeout: self.timeout,
            format: self.format,
            output_file: self.output_file,
            verbosity: verbosity(self.quiet, self.verbose)?,
        })
    }
}

fn missing(long: &str, advice: &str) -> UsageError {
    UsageError::new(format_args!("--{long}"), format_args!("is missing; {advice}"))
}

fn no_prompt(flag: &Origin) -> UsageError {
    UsageError::new(flag, "takes no prompt; leave out one of them")
}

fn contradiction(one: &Origin, other: &Origin) -> UsageError {
    UsageError::new(one, format_args!("contradicts {other}; give one of them"))
}

fn prompt(
    words: Vec<String>,
    stdin: bool,
    file: Option<PathArg>,
) -> Result<PromptSource, UsageError> {
    if let (Some(word), Some(file)) = (words.first(), &file) {
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
    replay: Option<PathArg>,
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
fn key(given: Option<(Origin, OsString)>, file: Option<PathArg>) -> Result<KeySource, UsageError> {
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

fn agents_md(files: Vec<PathArg>, no: Option<Origin>) -> Result<AgentsMd, UsageError> {
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

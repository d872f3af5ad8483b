//! Puts a run together from its options, and runs it.

use std::fmt::Display;
use std::path::Path;
use std::sync::Arc;

use super::args::{Common, KeySource, Options, Origin, PathArg, SessionTask, TaskKind, UsageError};
use super::failure::Failure;
use super::inputs::{self, BaseDir, Inputs};
use super::providers::{credentials, failure, provider};
use super::publish::Publisher;
use super::report::Reporter;
use super::{ledger, show, watch};
use crate::agent::{Agent, RunOptions, Verified, Verify};
use crate::error::Error;
use crate::fs::replace::Target;
use crate::fs::{are_same, directory_of};
use crate::process::{self, Processes};
use crate::prompt::{self, AgentsMd, SystemPrompt};
use crate::secret::{Mask, Secret};
use crate::session::{Session, SessionError};
use crate::time::Deadline;
use crate::tools::{Finished, Output, Shell, Toolbox};

/// What everything needs.
pub(super) struct Prepared {
    pub(super) processes: Arc<Processes>,
    pub(super) key: Option<Secret>,
    /// Where the key came from.
    pub(super) origin: Option<Origin>,
}

/// Sets up the output, the key and the signal watcher.
/// `files` are those that are named beside the key's.
///
/// # Errors
///
/// What of it can't be used.
pub(super) fn prepare(
    common: &Common,
    files: &[&Path],
    inputs: &Inputs<'_>,
    reporter: &mut Reporter<'_>,
) -> Result<Prepared, Failure> {
    reporter.verbosity = common.verbosity;
    let start = inputs.base_dir();
    let file = common.output_file.as_ref();
    let file = file.map(|file| output_file(file, &common.key, files, start));
    let (file, problem) = match file.transpose() {
        Ok(file) => (file, None),
        Err(problem) => (None, Some(problem)),
    };
    reporter.publisher = Arc::new(Publisher::new(common.format, file, reporter.mask().clone()));
    problem.map_or(Ok(()), Err)?;
    // Before anything is paid for.
    reporter.find_stdout()?;
    let processes = Arc::new(Processes::new().with_files(inputs.env));
    if inputs.owns_process {
        let publisher = Arc::clone(&reporter.publisher);
        watch::start(Arc::clone(&processes), publisher, common)?;
    }
    let (key, origin) = inputs.key.clone()?.unzip();
    Ok(Prepared { processes, key, origin })
}

/// The output file, which may be no other file that was named: it takes the place of what is there.
fn output_file(
    file: &PathArg,
    key: &KeySource,
    others: &[&Path],
    start: BaseDir<'_>,
) -> Result<Target, UsageError> {
    let key = match key {
        KeySource::File(file) => Some(file.path.as_path()),
        KeySource::Given { .. } | KeySource::None => None,
    };
    let path = start.resolve(&file.path);
    let unusable = |problem: &dyn Display| inputs::unusable(&file.origin, &path, problem);
    if !directory_of(&path).is_dir() {
        return Err(unusable(&"its directory does not exist; make it first"));
    }
    if others.iter().copied().chain(key).any(|other| are_same(&start.resolve(other), &path)) {
        return Err(unusable(&"another flag names this file too; give the output one of its own"));
    }
    let target = Target::find(&path).map_err(|error| unusable(&error))?;
    target.try_out().map_err(|error| unusable(&error))?;
    Ok(target)
}

/// Runs, and returns the answer.
///
/// The session comes last: as long as anything can be wrong with the command line, no file is made.
///
/// # Errors
///
/// Why there is no answer.
pub(super) fn run(
    options: &Options,
    inputs: &mut Inputs<'_>,
    reporter: &mut Reporter<'_>,
) -> Result<String, Failure> {
    let timeout = options.common.timeout;
    let deadline = Deadline::after(timeout);
    let work_until = Deadline::after(timeout.map(|timeout| timeout - timeout / 10));
    let Prepared { processes, key, origin } =
        prepare(&options.common, &options.files(), inputs, reporter)?;
    reporter.publisher.ledger().model = Some(options.model.clone());
    reporter.max_steps = options.max_steps.get();
    let start = BaseDir(inputs.directory.as_deref());
    let directory = inputs::directory(start, &options.directory)?;
    reporter.doing("reading the prompt");
    let prompt = inputs::prompt(&options.prompt, start, inputs.stdin, inputs.stdin_is_terminal)?;
    let shell = Shell::new(
        &directory,
        inputs.env.iter().cloned(),
        options.settings.command_timeout,
        Arc::clone(&processes),
    );
    let system_prompt =
        system_prompt(options, start, &directory, shell.is_some(), reporter.mask())?;
    for file in &system_prompt.files {
        reporter.instructions(file);
    }
    let mut provider = provider(options, inputs, key, reporter)?;
    let verifier = verifier(options, shell.as_ref(), reporter.mask())?;
    let mut verify = verifier
        .as_ref()
        .map(|(command, shell)| (*command, move |deadline| verified(command, shell, deadline)));
    let toolbox = Toolbox::new(&directory, shell, reporter.mask());
    let mut session = session(options, start, reporter)?
        .with_mask(reporter.mask().clone())
        .with_gate(Arc::clone(&reporter.publisher.gate));
    let mut toolbox = match options.agents_md {
        AgentsMd::Discover => {
            toolbox.with_instructions(&directory, system_prompt.left(), session.messages())
        }
        AgentsMd::Files(_) | AgentsMd::None => toolbox,
    };
    reporter.started(options, &directory);
    let mut agent = Agent {
        provider: provider.as_mut(),
        executor: &mut toolbox,
        session: &mut session,
        verify: verify.as_mut().map(|(command, run)| Verify {
            command,
            attempts: options.verify_attempts,
            run,
        }),
        options: RunOptions {
            model: &options.model,
            system_prompt: &system_prompt.text,
            max_steps: options.max_steps,
            max_tokens: options.settings.max_tokens,
            max_total_tokens: options.settings.max_total_tokens,
            deadline,
            work_until,
            accept: options.settings.accept.clone(),
        },
        observe: &mut |event| reporter.observe(&event),
    };
    let result = agent.run(&prompt);
    reporter.killed(&processes.finish());
    // What a command left running had the time until now to take the log away.
    let result = result.and_then(|answer| {
        session.confirm()?;
        Ok(answer)
    });
    match result {
        Ok(answer) => Ok(answer.text),
        Err(error) => Err(failure(error, &credentials(options, origin.as_ref()))),
    }
}

/// What an answer has to pass, where it has to: the command, and what runs it.
fn verifier<'a>(
    options: &'a Options,
    shell: Option<&Shell>,
    mask: &Mask,
) -> Result<Option<(&'a str, Shell)>, UsageError> {
    match (options.settings.verify.as_deref(), shell) {
        (None, _) => Ok(None),
        (Some(command), Some(shell)) => Ok(Some((command, shell.clone().with_mask(mask.clone())))),
        (Some(_), None) => {
            let problem = format_args!("there is no shell ({}) to run it with", process::SHELL);
            Err(UsageError::new("--verify", problem))
        }
    }
}

fn verified(command: &str, shell: &Shell, deadline: Deadline) -> Verified {
    match shell.run(command, None, deadline) {
        Ok(Finished { success, output }) => Verified { passed: success, output },
        Err(problem) => {
            let summary = format!("error: {problem}");
            let is_cut = deadline.has_passed();
            Verified { passed: false, output: Output { text: problem, summary, is_cut } }
        }
    }
}

/// Does what is to be done with a session in place of a run.
///
/// # Errors
///
/// Why it could not be done, or not to the end.
pub(super) fn session_task(
    task: &SessionTask,
    inputs: &Inputs<'_>,
    reporter: &mut Reporter<'_>,
) -> Result<(), Failure> {
    prepare(&task.common, &[&task.session.path], inputs, reporter)?;
    let PathArg { origin, path } = &task.session;
    let path = inputs.base_dir().resolve(path);
    reporter.publisher.ledger().session = Some(ledger::shown(&path));
    match task.kind {
        TaskKind::Repair => repair(origin, &path, reporter).map(drop),
        TaskKind::Show => show::print(&path, reporter).map_err(|error| unusable(origin, error))?,
    }
}

fn session(
    options: &Options,
    start: BaseDir<'_>,
    reporter: &mut Reporter<'_>,
) -> Result<Session, Failure> {
    let Some(PathArg { origin, path }) = &options.settings.session else {
        return Ok(Session::ephemeral());
    };
    let path = start.resolve(path);
    reporter.publisher.ledger().session = Some(ledger::shown(&path));
    if options.repair_session {
        return repair(origin, &path, reporter);
    }
    let session = Session::open(&path).map_err(|error| unusable(origin, error))?;
    reporter.warnings(session.warnings());
    Ok(session)
}

fn repair(origin: &Origin, path: &Path, reporter: &mut Reporter<'_>) -> Result<Session, Failure> {
    let (session, repair) = Session::repair(path).map_err(|error| unusable(origin, error))?;
    reporter.warnings(session.warnings());
    reporter.repaired(path, repair.as_ref());
    if repair.is_none() {
        return Ok(session);
    }
    // Now, because who resumes the log later can't see that results are missing.
    let mut session =
        session.with_mask(reporter.mask().clone()).with_gate(Arc::clone(&reporter.publisher.gate));
    let unanswered = session.answer_interrupted_calls().map_err(|error| unusable(origin, error))?;
    if let Some(unanswered) = unanswered {
        reporter.warnings(&[unanswered.to_string()]);
    }
    Ok(session)
}

fn unusable(origin: &Origin, error: SessionError) -> Failure {
    match error {
        // A name that can't be used is the command line's.
        SessionError::Open { .. } => {
            let what = format!("{origin}: {error}");
            Failure { what, ..Failure::from(Error::from(error)) }
        }
        error => Failure::from(Error::from(error)),
    }
}

pub(super) fn system_prompt(
    options: &Options,
    start: BaseDir<'_>,
    directory: &Path,
    shell: bool,
    mask: &Mask,
) -> Result<SystemPrompt, UsageError> {
    let agents_md = match &options.agents_md {
        AgentsMd::Files(paths) => {
            AgentsMd::Files(paths.iter().map(|path| start.resolve(path)).collect())
        }
        AgentsMd::Discover | AgentsMd::None => options.agents_md.clone(),
    };
    let base = options.settings.system_prompt_file.as_ref();
    let base_path = base.map(|file| start.resolve(&file.path));
    prompt::build(directory, &agents_md, base_path.as_deref(), shell, mask).map_err(|error| match (
        base, &agents_md,
    ) {
        (Some(base), _) if base_path.as_deref() == Some(error.path()) => {
            UsageError::new(&base.origin, error)
        }
        (_, AgentsMd::Files(_)) => UsageError::new("--agents-md", error),
        _ => UsageError::new("AGENTS.md", format_args!("{error} with --no-agents-md")),
    })
}

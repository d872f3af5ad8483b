//! Puts a run together from its options, and runs it.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::certificates::{self, Certificates};
use super::inputs::{self, Start};
use super::options::{Completions, Named, Options, Origin, SessionTask, TaskKind, UsageError};
use super::parse;
use super::report::{Failure, Reporter};
use super::{show, watch};
use crate::agent::{Agent, RunOptions};
use crate::error::Error;
use crate::openai::{Endpoint, OpenAi, Settings};
use crate::process::Processes;
use crate::prompt::{self, AgentsMd, SystemPrompt};
use crate::provider::{Meaning, Provider, ProviderError, StatusError};
use crate::proxy::Proxy;
use crate::replay::Replay;
use crate::secret::Secret;
use crate::session::{Session, SessionError};
use crate::time::Deadline;
use crate::tools::{Shell, Toolbox};

/// What a run may need beside its options.
pub(super) struct Inputs<'a> {
    pub(super) env: &'a [(OsString, OsString)],
    pub(super) directory: Option<PathBuf>,
    pub(super) stdin: &'a mut dyn Read,
    pub(super) stdin_is_terminal: bool,
    pub(super) owns_process: bool,
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
    inputs: Inputs<'_>,
    reporter: &mut Reporter<'_>,
) -> Result<String, Failure> {
    let deadline = Deadline::after(options.timeout);
    let processes = Arc::new(Processes::new().with_files(inputs.env));
    if inputs.owns_process {
        watch::start(Arc::clone(&processes), Arc::clone(&reporter.gate), options.timeout)?;
    }
    reporter.verbosity = options.verbosity;
    reporter.max_steps = options.max_steps.get();
    let start = Start(inputs.directory.as_deref());
    let key = inputs::key(&options.key, start)?;
    let (secret, origin) = key.unzip();
    reporter.mask.extend(secret.clone());
    let directory = inputs::directory(start, &options.directory)?;
    let prompt = inputs::prompt(&options.prompt, start, inputs.stdin, inputs.stdin_is_terminal)?;
    let shell = Shell::new(
        &directory,
        inputs.env.iter().cloned(),
        options.command_timeout,
        Arc::clone(&processes),
    );
    let system_prompt = system_prompt(options, start, &directory, shell.is_some())?;
    for file in &system_prompt.files {
        reporter.instructions(file);
    }
    let mut provider = provider(options, start, inputs.env, secret, reporter)?;
    let toolbox = Toolbox::new(&directory, shell, &reporter.mask);
    let mut session = session(options, start, reporter)?
        .with_mask(reporter.mask.clone())
        .with_gate(Arc::clone(&reporter.gate));
    let mut toolbox = match options.agents_md {
        AgentsMd::Discover => {
            toolbox.with_instructions(&directory, system_prompt.left(), session.messages())
        }
        AgentsMd::Files(_) | AgentsMd::None => toolbox,
    };
    let mut agent = Agent {
        provider: provider.as_mut(),
        executor: &mut toolbox,
        session: &mut session,
        verify: None,
        options: RunOptions {
            model: &options.model,
            system_prompt: &system_prompt.text,
            max_steps: options.max_steps,
            max_tokens: options.max_tokens,
            max_total_tokens: options.max_total_tokens,
            deadline,
            work_until: Deadline::after(options.timeout.map(|timeout| timeout - timeout / 10)),
            accept: options.accept.clone(),
        },
        observe: &mut |event| reporter.observe(&event),
    };
    let result = agent.run(&prompt);
    reporter.killed(&processes.finish());
    match result {
        Ok(answer) => Ok(answer.text),
        Err(error) => Err(failure(error, &credentials(options, origin))),
    }
}

/// Does what is to be done with a session in place of a run.
///
/// # Errors
///
/// Why it could not be done, or not to the end.
pub(super) fn session_task(
    task: &SessionTask,
    start: Start<'_>,
    stdout: &mut dyn Write,
    reporter: &mut Reporter<'_>,
) -> Result<(), Failure> {
    reporter.verbosity = task.verbosity;
    let key = inputs::key(&task.key, start)?;
    reporter.mask.extend(key.map(|(secret, _)| secret));
    let path = start.resolve(&task.session.path);
    match task.kind {
        TaskKind::Repair => repair(&task.session.origin, &path, reporter).map(|_| ()),
        TaskKind::Show => show::print(&path, stdout, reporter)
            .map_err(|error| unusable(&task.session.origin, error))?,
    }
}

fn session(
    options: &Options,
    start: Start<'_>,
    reporter: &mut Reporter<'_>,
) -> Result<Session, Failure> {
    let Some(Named { origin, path }) = &options.session else { return Ok(Session::ephemeral()) };
    let path = start.resolve(path);
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

fn system_prompt(
    options: &Options,
    start: Start<'_>,
    directory: &Path,
    shell: bool,
) -> Result<SystemPrompt, UsageError> {
    let agents_md = match &options.agents_md {
        AgentsMd::Files(paths) => {
            AgentsMd::Files(paths.iter().map(|path| start.resolve(path)).collect())
        }
        AgentsMd::Discover | AgentsMd::None => options.agents_md.clone(),
    };
    let base = options.system_prompt_file.as_ref();
    let base_path = base.map(|file| start.resolve(&file.path));
    prompt::build(directory, &agents_md, base_path.as_deref(), shell).map_err(|error| {
        match (base, &agents_md) {
            (Some(base), _) if base_path.as_deref() == Some(error.path()) => {
                UsageError::new(&base.origin, error)
            }
            (_, AgentsMd::Files(_)) => UsageError::new("--agents-md", error),
            _ => UsageError::new("AGENTS.md", format_args!("{error} with --no-agents-md")),
        }
    })
}

fn provider(
    options: &Options,
    start: Start<'_>,
    env: &[(OsString, OsString)],
    key: Option<Secret>,
    reporter: &mut Reporter<'_>,
) -> Result<Box<dyn Provider>, UsageError> {
    match &options.completions {
        Completions::Replay(Named { origin, path }) => {
            let path = start.resolve(path);
            let replay = Replay::open(&path);
            Ok(Box::new(replay.map_err(|error| inputs::unusable(origin, &path, error))?))
        }
        Completions::Endpoint(endpoint) => {
            let proxy = proxy(env, endpoint)?;
            let tls = endpoint.is_https() || proxy.as_ref().is_some_and(|proxy| proxy.https);
            let Certificates { roots, warnings } = certificates(options, start, env, tls)?;
            reporter.warnings(&warnings);
            let settings = Settings {
                endpoint: endpoint.clone(),
                key,
                idle_timeout: options.idle_timeout,
                request_timeout: options.request_timeout,
                max_retries: options.max_retries,
                form: options.form.clone(),
                headers: options.headers.clone(),
                proxy,
                roots,
                mask: reporter.mask.clone(),
            };
            let openai =
                OpenAi::new(settings).map_err(|problem| UsageError::new("endpoint", problem))?;
            reporter.mask.clone_from(openai.mask());
            Ok(Box::new(openai))
        }
    }
}

fn certificates(
    options: &Options,
    start: Start<'_>,
    env: &[(OsString, OsString)],
    tls: bool,
) -> Result<Certificates, UsageError> {
    let mut certificates = Certificates::default();
    if let Some(file) = &options.ca_file {
        certificates.add_file(file, start, tls)?;
    }
    if let Some(list) = parse::lookup(env, certificates::DIRECTORIES)
        && tls
    {
        certificates.add_directories(list, start);
    }
    Ok(certificates)
}

fn proxy(env: &[(OsString, OsString)], endpoint: &Endpoint) -> Result<Option<Proxy>, UsageError> {
    let lookup = |name: &str| {
        let (_, value) = env.iter().find(|(other, _)| other == name)?;
        Some(value.clone())
    };
    Proxy::from_env(&lookup, endpoint.is_https(), endpoint.host(), endpoint.port())
        .map_err(|problem| UsageError::new("proxy", problem))
}

/// What to do about credentials that were refused: it depends on which were sent.
fn credentials(options: &Options, key: Option<&Origin>) -> String {
    match (key, &options.completions) {
        (_, Completions::Replay(_)) => "the recording has it so".to_owned(),
        (Some(origin), _) => format!("check the key, which came from {origin}"),
        (None, Completions::Endpoint(endpoint)) if endpoint.has_user() => {
            "check the user and password in the base URL".to_owned()
        }
        (None, _) => "no key was sent; set UNCUT_API_KEY".to_owned(),
    }
}

fn failure(error: Error, credentials: &str) -> Failure {
    let refused = matches!(
        &error,
        Error::Provider(ProviderError::Status(StatusError {
            status: 401 | 403,
            meaning: Meaning::Refused,
            ..
        }))
    );
    let failure = Failure::from(error);
    if refused { Failure { advice: Some(credentials.to_owned()), ..failure } } else { failure }
}

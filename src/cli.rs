//! The command line: arguments and environment in, an answer on stdout, an outcome out.
//!
//! The only module that prints. Stdout carries the answer (or the help) and nothing else, and a run
//! that failed leaves it empty; or it carries JSON, whose last line is the result, whatever the
//! outcome. Stderr carries the report and is never needed: that it is closed or full changes
//! nothing. Nothing here is global, so that a process can run any number of times.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::sync::Arc;

use crate::outcome::Outcome;
use args::{Request, parse};
use failure::Failure;
use inputs::{BaseDir, Inputs};
use report::Reporter;
use secrets::Secrets;

mod args;
mod certificates;
mod check;
mod events;
mod failure;
pub mod help;
mod inputs;
mod ledger;
mod object;
mod providers;
mod publish;
mod pulse;
mod report;
mod run;
mod secrets;
mod show;
mod watch;

/// What the process was given, so that nothing below reads it from the process.
pub struct Invocation<'a> {
    /// The arguments, without the name of the program.
    pub args: Vec<OsString>,
    /// The environment.
    pub env: Vec<(OsString, OsString)>,
    /// Where the program was started; none where the system can't tell.
    pub directory: Option<PathBuf>,
    /// Standard input. It is only read where the prompt is to come from it.
    pub stdin: &'a mut dyn Read,
    /// Whether somebody sits at standard input.
    pub stdin_is_terminal: bool,
    /// Standard output.
    pub stdout: &'a mut dyn Write,
    /// Standard error.
    pub stderr: &'a mut dyn Write,
    /// Whether the process is ours, so that signals and the deadline may end it whatever it is
    /// blocked in. Otherwise signals are not looked at, and the deadline is seen between steps and
    /// in whatever has a limit of its own.
    pub owns_process: bool,
}

/// Does what the arguments ask for, from reading them to reporting how it ended.
pub fn run(invocation: Invocation<'_>) -> Outcome {
    let Invocation { args, env, directory, stdin, stdin_is_terminal, owns_process, .. } =
        invocation;
    let request = parse::parse(&args, &env);
    let start = BaseDir(directory.as_deref());
    let Secrets { mask, key } = secrets::collect(&args, &env, request.as_ref().ok(), start);
    let mut reporter = Reporter::new(invocation.stdout, invocation.stderr, mask);
    let mut inputs = Inputs { env: &env, directory, key, stdin, stdin_is_terminal, owns_process };
    let ended = match request {
        Ok(Request::Help { full: true }) => Ok(Some(help::full())),
        Ok(Request::Help { full: false }) => Ok(Some(help::short())),
        Ok(Request::Version) => Ok(Some(concat!("uncut ", env!("CARGO_PKG_VERSION")).to_owned())),
        Ok(Request::Session(task)) => {
            run::session_task(&task, &inputs, &mut reporter).map(|()| None)
        }
        Ok(Request::Check(options)) => check::run(*options, &inputs, &mut reporter).map(|()| None),
        Ok(Request::Run(options)) => run::run(&options, &mut inputs, &mut reporter).map(Some),
        Err(error) => Err(Failure::from(error)),
    };
    let gate = Arc::clone(&reporter.publisher.gate);
    let pass = gate.enter();
    let outcome = reporter.conclude(ended);
    if owns_process {
        // The outcome is settled, and whoever would end the process now need not any more.
        std::mem::forget(pass);
    }
    outcome
}

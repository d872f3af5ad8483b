//! The command line: arguments and environment in, an answer on stdout, an outcome out.
//!
//! The only module that prints. Stdout carries the answer (or the help) and nothing else; a run
//! that failed leaves it empty. Stderr carries the report and is never needed: that it is closed or
//! full changes nothing. Nothing here is global, so that a process can run any number of times.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::sync::Arc;

use crate::outcome::Outcome;
use crate::secret::Mask;
use parse::Request;
use report::{Failure, Reporter};

mod assemble;
mod certificates;
mod duration;
mod flags;
pub mod help;
mod inputs;
mod options;
mod parse;
mod report;
mod show;
mod values;
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
    let Invocation { args, env, directory, stdin, stdin_is_terminal, stdout, stderr, owns_process } =
        invocation;
    let mut reporter = Reporter::new(stderr);
    reporter.mask = Mask::new(parse::keys(&args, &env));
    let result = match parse::parse(&args, &env) {
        Ok(Request::Help) => Ok(Some(help::text())),
        Ok(Request::Version) => Ok(Some(concat!("uncut ", env!("CARGO_PKG_VERSION")).to_owned())),
        Ok(Request::Session(task)) => {
            let start = inputs::Start(directory.as_deref());
            assemble::session_task(&task, start, stdout, &mut reporter).map(|()| None)
        }
        Ok(Request::Run(options)) => {
            let inputs =
                assemble::Inputs { env: &env, directory, stdin, stdin_is_terminal, owns_process };
            let answer = assemble::run(&options, inputs, &mut reporter);
            answer.map(|answer| Some(reporter.mask.text(&answer).into_owned()))
        }
        Err(error) => Err(Failure::from(error)),
    };
    // A run that is being ended has no answer any more; one that has begun to print it may finish.
    let gate = Arc::clone(&reporter.gate);
    let pass = gate.enter();
    let outcome = match result.and_then(|text| text.map_or(Ok(()), |text| print(stdout, &text))) {
        Ok(()) => {
            reporter.succeeded();
            Outcome::Ok
        }
        Err(failure) => {
            reporter.failed(&failure);
            failure.outcome
        }
    };
    if owns_process {
        // The outcome is settled, and whoever would end the process now need not any more.
        std::mem::forget(pass);
    }
    outcome
}

/// Prints the one thing that goes to stdout, whole: an answer of which a part is missing is none.
fn print(stdout: &mut dyn Write, text: &str) -> Result<(), Failure> {
    let line = format!("{text}\n");
    stdout.write_all(line.as_bytes()).and_then(|()| stdout.flush()).map_err(unprinted)
}

fn unprinted(error: io::Error) -> Failure {
    Failure {
        outcome: Outcome::Internal,
        what: format!("stdout can't be written: {error}"),
        advice: Some("keep its reader alive and leave it room".to_owned()),
    }
}

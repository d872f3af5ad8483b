//! Ends the process when it is asked to, or when its time is over, whatever it is blocked in.

use std::sync::Arc;
use std::time::Duration;

use super::args::{Common, Verbosity};
use super::failure::Failure;
use super::publish::Publisher;
use super::report;
use crate::outcome::Outcome;
use crate::process::{self, Ending, Processes, Standard};
use crate::text::one_line;
use crate::time::Deadline;

/// How long the loop is left alone after the deadline. It has limits of its own that end with it,
/// and can say more about what it was doing.
const SLACK: Duration = Duration::from_millis(250);

/// How long a record or an answer in flight may take. A disk or a reader that takes longer may
/// never come back.
const WRITE_MAX: Duration = Duration::from_secs(5);

/// Bytes of the line that names what was killed. Both lines together go into a pipe in one piece.
const LINE_MAX: usize = 1_000;

/// How long standard error may take no line.
const TELL_MAX: Duration = Duration::from_millis(500);

/// Watches from now on.
///
/// # Errors
///
/// The system has no thread or pipe left; a run that can't be ended is not begun.
pub(super) fn start(
    processes: Arc<Processes>,
    publisher: Arc<Publisher>,
    common: &Common,
) -> Result<(), Failure> {
    let timeout = common.timeout.map(|timeout| timeout.saturating_add(SLACK));
    let deadline = Deadline::after(timeout);
    let is_quiet = common.verbosity == Verbosity::Quiet;
    let (killer, heart) = (Arc::clone(&processes), Arc::clone(&publisher));
    let beat = move || beat(&heart, is_quiet);
    let end = move |ending| end(ending, &publisher, &killer, is_quiet);
    process::watch(processes, deadline, beat, end).map_err(|error| {
        let what = format!("the system lacks resources for a run: {error}");
        let advice = "try again later, or raise the limits (ulimit -n, ulimit -u)";
        Failure { outcome: Outcome::Transient, what, advice: Some(advice.to_owned()) }
    })
}

/// Says what is waited for, if nothing was said for long; gives when to look again.
fn beat(publisher: &Publisher, is_quiet: bool) -> Duration {
    let (line, next) = publisher.pulse().beat();
    if let Some(line) = line
        && !is_quiet
    {
        process::tell(Standard::Error, &format!("uncut: {line}\n"), TELL_MAX);
    }
    next
}

fn end(ending: Ending, publisher: &Arc<Publisher>, processes: &Processes, is_quiet: bool) {
    let said = || publisher.said().map(|outcome| process::end_process(outcome.code()));
    // Then it is only a report that nobody reads.
    said();
    let is_written = publisher.gate.close(WRITE_MAX);
    said();
    let names = processes.finish();
    publisher.ledger().killed(&names);
    let (outcome, what) = match ending {
        Ending::Hangup => (Outcome::Hangup, "stopped by SIGHUP".to_owned()),
        Ending::Interrupt => (Outcome::Interrupt, "interrupted (SIGINT or SIGQUIT)".to_owned()),
        Ending::Terminated(signal) => {
            let name = process::signal_name(signal.into()).map(str::to_owned);
            let name = name.unwrap_or_else(|| format!("signal {signal}"));
            (Outcome::Terminated(signal), format!("stopped by {name}"))
        }
        Ending::Deadline => (Outcome::Deadline, "the run's time is over".to_owned()),
    };
    let advice = match ending {
        Ending::Deadline => "raise --timeout; a run with --session can be resumed",
        _ => "a run with --session can be resumed",
    };
    let unwritten = if is_written { "" } else { ", and what was being written may not be whole" };
    let what = format!("{what}{unwritten}");
    let line = format!("uncut: {outcome}: {what}; {advice}\n");
    let failure = Failure { outcome, what, advice: Some(advice.to_owned()) };
    if let Err(outcome) = publisher.conclude_late(&failure) {
        process::end_process(outcome.code());
    }
    let killed = report::killed(&names).filter(|_| !is_quiet);
    let mask = publisher.mask();
    let killed = killed.map(|line| format!("uncut: {}\n", one_line(&mask.text(&line), LINE_MAX)));
    process::tell(Standard::Error, &(killed.unwrap_or_default() + &line), TELL_MAX);
    process::end_process(outcome.code());
}

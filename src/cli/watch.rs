//! Ends the process when it is asked to, or when its time is over, whatever it is blocked in.

use std::sync::Arc;
use std::time::Duration;

use super::report::{self, Failure};
use crate::gate::Gate;
use crate::outcome::Outcome;
use crate::process::{self, Ending, Processes};
use crate::text::one_line;
use crate::time::Deadline;

/// How long the loop is left alone after the deadline. It has limits of its own that end with it, and
/// can say more about what it was doing.
const SLACK: Duration = Duration::from_millis(250);

/// How long a record or an answer in flight may take. A disk or a reader that takes longer may never
/// come back.
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
    gate: Arc<Gate>,
    timeout: Option<Duration>,
) -> Result<(), Failure> {
    let deadline = Deadline::after(timeout.map(|timeout| timeout.saturating_add(SLACK)));
    let killer = Arc::clone(&processes);
    process::watch(processes, deadline, move |ending| end(ending, &gate, &killer)).map_err(
        |error| Failure {
            outcome: Outcome::Internal,
            what: format!("signals can't be watched: {error}"),
            advice: Some("see what the machine has run out of".to_owned()),
        },
    )
}

fn end(ending: Ending, gate: &Gate, processes: &Processes) {
    let is_written = gate.close(WRITE_MAX);
    let killed = report::killed(&processes.finish());
    let (outcome, what) = match ending {
        Ending::Hangup => (Outcome::Hangup, "SIGHUP came"),
        Ending::Interrupt => (Outcome::Interrupt, "SIGINT came"),
        Ending::Terminated => (Outcome::Terminated, "SIGTERM came"),
        Ending::Deadline => (Outcome::Deadline, "the run's time is over"),
    };
    let killed = killed.map(|line| format!("uncut: {}\n", one_line(&line, LINE_MAX)));
    let advice = match ending {
        Ending::Deadline => "raise --timeout; a run with --session can be resumed",
        _ => "a run with --session can be resumed",
    };
    let unwritten = if is_written { "" } else { ", and what was being written may not be whole" };
    let line = format!("uncut: {outcome}: {what}{unwritten}; {advice}\n");
    let line = killed.unwrap_or_default() + &line;
    process::tell(&line, TELL_MAX);
    process::end_process(outcome.code());
}

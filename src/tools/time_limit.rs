//! How long a file tool may take.

use std::io;
use std::time::Duration;

use crate::time::Deadline;

/// The longest that one call of a file tool takes.
pub(super) const CALL_MAX: Duration = Duration::from_secs(120);

/// When a file tool gives up: a file may be without end, and a disk slow.
#[derive(Clone, Copy, Debug)]
pub(super) struct TimeLimit {
    run: Deadline,
    call: Deadline,
    length: Duration,
}

impl TimeLimit {
    /// Ends with the run, and not later than `length` from now.
    pub(super) fn new(run: Deadline, length: Duration) -> TimeLimit {
        TimeLimit { run, call: Deadline::after(Some(length)), length }
    }

    /// Fails when the time is over.
    ///
    /// # Errors
    ///
    /// Which time was over.
    pub(super) fn check(self) -> io::Result<()> {
        let message = if self.run.has_passed() {
            "the run's time was over".to_owned()
        } else if self.call.has_passed() {
            format!(
                "given up after {} seconds, the most that a call may take",
                self.length.as_secs()
            )
        } else {
            return Ok(());
        };
        Err(io::Error::new(io::ErrorKind::TimedOut, message))
    }
}

//! When a run is to end before it is done: a thread of its own sees it, whatever the loop is blocked
//! in.

use std::io;
use std::sync::Arc;
use std::thread;

use super::Processes;
#[cfg(unix)]
use super::signals;
use crate::time::Deadline;

/// Why a run is to end before it is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ending {
    /// SIGHUP.
    Hangup,
    /// SIGINT.
    Interrupt,
    /// SIGTERM.
    Terminated,
    /// The deadline has passed.
    Deadline,
}

/// Starts a thread that calls `end` when the process is asked to end or the deadline has passed,
/// whatever the other threads are blocked in. Once in the life of a process. On systems without
/// signals only the deadline is watched.
///
/// # Errors
///
/// The thread or the handlers can't be had.
pub fn watch(
    processes: Arc<Processes>,
    deadline: Deadline,
    end: impl FnOnce(Ending) + Send + 'static,
) -> io::Result<()> {
    #[cfg(unix)]
    let signals = signals::Signals::catch()?;
    thread::Builder::new().name("signals".to_owned()).spawn(move || {
        #[cfg(unix)]
        let ending = await_ending(&signals, &processes, deadline);
        #[cfg(not(unix))]
        let ending = {
            drop(processes);
            await_deadline(deadline)
        };
        end(ending);
    })?;
    Ok(())
}

#[cfg(unix)]
fn await_ending(signals: &signals::Signals, processes: &Processes, deadline: Deadline) -> Ending {
    loop {
        match signals.next(deadline) {
            Ok(signals::Seen::Ending(ending)) => return ending,
            Ok(signals::Seen::Child) => processes.reap_orphans(),
            // The pipe is ours at both ends. Should it break all the same, the deadline still holds.
            Err(_) => return await_deadline(deadline),
        }
    }
}

/// Without a deadline this never returns.
fn await_deadline(deadline: Deadline) -> Ending {
    while !deadline.has_passed() {
        match deadline.remaining() {
            Some(remaining) => thread::park_timeout(remaining),
            None => thread::park(),
        }
    }
    Ending::Deadline
}

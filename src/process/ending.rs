//! When a run is to end before it is done: a thread of its own sees it, whatever the loop is
//! blocked in.

use std::io;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use super::Processes;
use super::signals;
use crate::time::Deadline;

/// Why a run is to end before it is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ending {
    /// SIGHUP; on Windows, the console is closed.
    Hangup,
    /// SIGINT or SIGQUIT; on Windows, Ctrl-C or Ctrl-Break.
    Interrupt,
    /// SIGTERM or another signal that would end the process, by its number; on Windows, the user
    /// logs off or the system is shut down, which counts as SIGTERM.
    Terminated(u8),
    /// The deadline has passed.
    Deadline,
}

/// Starts a thread that calls `end` when the process is asked to end or the deadline has passed,
/// whatever the other threads are blocked in. Once in the life of a process. Until then it calls
/// `beat` now and then, which says after how long to call it again.
///
/// # Errors
///
/// The thread or the handlers can't be had.
pub fn watch(
    processes: Arc<Processes>,
    deadline: Deadline,
    mut beat: impl FnMut() -> Duration + Send + 'static,
    end: impl FnOnce(Ending) + Send + 'static,
) -> io::Result<()> {
    let signals = signals::Signals::catch()?;
    thread::Builder::new().name("signals".to_owned()).spawn(move || {
        end(await_ending(&signals, &processes, deadline, &mut beat));
    })?;
    Ok(())
}

#[cfg(unix)]
fn await_ending(
    signals: &signals::Signals,
    processes: &Processes,
    deadline: Deadline,
    beat: &mut impl FnMut() -> Duration,
) -> Ending {
    loop {
        let pause = deadline.cap(Some(beat()));
        match signals.next(Deadline::after(pause)) {
            Ok(Some(signals::Seen::Ending(ending))) => return ending,
            Ok(Some(signals::Seen::Child)) => processes.reap_orphans(),
            Ok(None) if deadline.has_passed() => return Ending::Deadline,
            Ok(None) => {}
            // The pipe is ours at both ends. Should it break all the same, the deadline still
            // holds.
            Err(_) => return await_deadline(deadline, beat),
        }
    }
}

/// Without a deadline this never returns.
#[cfg(unix)]
fn await_deadline(deadline: Deadline, beat: &mut impl FnMut() -> Duration) -> Ending {
    while !deadline.has_passed() {
        let pause = beat();
        thread::park_timeout(deadline.cap(Some(pause)).unwrap_or(pause));
    }
    Ending::Deadline
}

#[cfg(windows)]
fn await_ending(
    signals: &signals::Signals,
    _: &Processes,
    deadline: Deadline,
    beat: &mut impl FnMut() -> Duration,
) -> Ending {
    while !deadline.has_passed() {
        let pause = deadline.cap(Some(beat()));
        if let Some(ending) = signals.next(Deadline::after(pause)) {
            return ending;
        }
    }
    Ending::Deadline
}

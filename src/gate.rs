//! What the loop of a run and the thread that may end it share, which is as little as can be:
//! whether a record is being written, and whether the run is over.
//!
//! A process that is ended in the middle of a write leaves half a record. So whoever ends it closes
//! the gate first: a write that has begun is waited for, and none begins afterwards.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Between the writer of a log and whoever ends the process.
#[derive(Debug, Default)]
pub struct Gate {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    writing: bool,
    closed: bool,
}

/// Allows one write, until it is dropped.
#[derive(Debug)]
pub struct Pass<'a>(&'a Gate);

impl Gate {
    /// Asks for a write. Once the gate is closed this never returns: the process is about to end,
    /// and what the writer would do with an error is no longer wanted.
    pub fn enter(&self) -> Pass<'_> {
        let state = self.lock();
        let busy = |state: &mut State| state.writing || state.closed;
        let mut state =
            self.changed.wait_while(state, busy).unwrap_or_else(PoisonError::into_inner);
        state.writing = true;
        Pass(self)
    }

    /// Returns as long as the gate is open or somebody writes, and never once it is closed:
    /// whatever was to be said, the last word is with whoever closed it.
    pub fn check(&self) {
        let is_over = |state: &mut State| state.closed && !state.writing;
        let waited = self.changed.wait_while(self.lock(), is_over);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    /// Lets no further write begin, and waits for at most `limit` for the one that has. Gives
    /// whether there is none any more.
    pub fn close(&self, limit: Duration) -> bool {
        let mut state = self.lock();
        state.closed = true;
        let waited = self.changed.wait_timeout_while(state, limit, |state| state.writing);
        !waited.unwrap_or_else(PoisonError::into_inner).0.writing
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        self.0.lock().writing = false;
        self.0.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, mpsc};
    use std::thread;

    use super::*;

    const LONG: Duration = Duration::from_secs(30);
    const SHORT: Duration = Duration::from_millis(20);

    #[test]
    fn a_write_that_has_begun_is_waited_for() {
        let gate = Arc::new(Gate::default());
        let pass = gate.enter();
        assert!(!gate.close(SHORT));
        let other = Arc::clone(&gate);
        let closer = thread::spawn(move || other.close(LONG));
        drop(pass);
        assert!(closer.join().unwrap());
    }

    #[test]
    fn no_write_begins_once_the_gate_is_closed() {
        let gate = Arc::new(Gate::default());
        drop(gate.enter());
        assert!(gate.close(LONG));
        let (sender, entered) = mpsc::channel();
        // Never joined: it waits for ever, which is what is tested.
        thread::spawn(move || {
            let _pass = gate.enter();
            sender.send(())
        });
        assert!(entered.recv_timeout(SHORT).is_err());
    }
}

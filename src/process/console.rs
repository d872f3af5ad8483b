//! What the console tells of Ctrl-C, and of its own end.
//!
//! The system calls the handler on a thread of its own; it passes on what it was told. A process
//! that was started with Ctrl-C turned off is not told.
#![expect(unsafe_code, reason = "std has no console control handlers")]

use std::io;
use std::sync::Mutex;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;

use windows_sys::Win32::Foundation::{BOOL, TRUE};
use windows_sys::Win32::System::Console::{
    CTRL_BREAK_EVENT, CTRL_C_EVENT, CTRL_CLOSE_EVENT, SetConsoleCtrlHandler,
};

use super::{Ending, lock};
use crate::time::Deadline;

/// Its number where there are signals.
const SIGTERM: u8 = 15;

/// Where the handler passes it on to.
static SENDER: Mutex<Option<Sender<Ending>>> = Mutex::new(None);

/// What the console tells from now on.
pub(super) struct Signals(Receiver<Ending>);

impl Signals {
    /// Installs the handler. Once in the life of a process.
    pub(super) fn catch() -> io::Result<Signals> {
        let (sender, receiver) = mpsc::channel();
        *lock(&SENDER) = Some(sender);
        // SAFETY: the handler may run at any point, as it runs on a thread of its own.
        if unsafe { SetConsoleCtrlHandler(Some(note), TRUE) } == 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Signals(receiver))
    }

    /// Waits for a reason to end, and gives none once the deadline has passed.
    pub(super) fn next(&self, deadline: Deadline) -> Option<Ending> {
        match deadline.remaining() {
            Some(left) => self.0.recv_timeout(left).ok(),
            None => self.0.recv().ok(),
        }
    }
}

/// The handler.
unsafe extern "system" fn note(event: u32) -> BOOL {
    let ending = match event {
        CTRL_C_EVENT | CTRL_BREAK_EVENT => Ending::Interrupt,
        CTRL_CLOSE_EVENT => Ending::Hangup,
        // The user logs off, or the system is shut down.
        _ => Ending::Terminated(SIGTERM),
    };
    if let Some(sender) = lock(&SENDER).as_ref() {
        // Whoever listens may be ending the process by now.
        let _ = sender.send(ending);
    }
    if ending != Ending::Interrupt {
        // The system ends the process when this returns, or after some seconds.
        loop {
            thread::park();
        }
    }
    TRUE
}

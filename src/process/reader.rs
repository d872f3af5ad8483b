//! The output of a command, taken in by a thread of its own.
//!
//! There is no way to wait for a pipe and a process at once here. The thread reads until nobody
//! holds the other end; what comes when the command has ended is discarded.

use std::io::{self, PipeReader, Read as _};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use super::capture::{Capture, Captured};
use super::lock;
use super::os::Group;

/// Bytes moved out of a pipe at a time.
const CHUNK: usize = 64 * 1024;

/// What came out of the pipe that a command writes to.
pub(super) struct Output {
    /// None once the command has ended.
    capture: Arc<Mutex<Option<Capture>>>,
    /// Hears of the end of the output, once.
    end: Receiver<()>,
    has_ended: bool,
}

impl Output {
    /// Nothing yet.
    pub(super) fn new(mut pipe: PipeReader, capture: Capture) -> io::Result<Output> {
        let capture = Arc::new(Mutex::new(Some(capture)));
        let shared = Arc::clone(&capture);
        let (sender, end) = mpsc::channel();
        thread::Builder::new().name("output".to_owned()).spawn(move || {
            let mut buffer = vec![0; CHUNK];
            // Not under the lock: the read waits.
            while let Ok(bytes @ 1..) = pipe.read(&mut buffer) {
                if let Some(capture) = lock(&shared).as_mut() {
                    capture.push(&buffer[..bytes]);
                }
            }
            // The command may have ended long ago, and nobody listens.
            let _ = sender.send(());
        })?;
        Ok(Output { capture, end, has_ended: false })
    }

    /// Waits until the shell has ended, for at most `time`; gives whether it has.
    pub(super) fn until_shell_ends(&mut self, shell: &Group, time: Option<Duration>) -> bool {
        shell.wait(time)
    }

    /// Waits until nobody holds the other end, for at most `time`; gives whether somebody still
    /// does.
    pub(super) fn is_held_after(&mut self, time: Option<Duration>) -> bool {
        let wait = || match time {
            Some(time) => self.end.recv_timeout(time).is_ok(),
            None => self.end.recv().is_ok(),
        };
        self.has_ended = self.has_ended || wait();
        !self.has_ended
    }

    /// What was taken in.
    pub(super) fn finish(self) -> Captured {
        lock(&self.capture).take().map(Capture::finish).unwrap_or_default()
    }
}

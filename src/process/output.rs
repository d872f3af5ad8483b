//! The output of a command, taken in while the end of its shell is awaited.
//!
//! One thread does both: one call waits for either, and after each chunk a look is taken at the
//! clock, so that a flood starves nothing. Another thread is needed only where a background process
//! holds the pipe beyond the end of its command.

use std::io::{self, PipeReader, Read as _};
use std::thread;
use std::time::Duration;

use super::capture::{Capture, Captured};
use super::wait::{self, Child};
use crate::time::Deadline;

/// Bytes moved out of a pipe at a time, and what one holds by default.
const CHUNK: usize = 64 * 1024;

/// Bytes that a pipe may hold at most, unless an administrator has raised that.
const PIPE_MAX: usize = 1024 * 1024;

/// The pipe that a command writes to, and what came out of it.
pub(super) struct Output {
    pipe: PipeReader,
    /// Whether nobody holds the other end any more.
    has_ended: bool,
    buffer: Vec<u8>,
    capture: Capture,
}

impl Output {
    /// Nothing yet.
    pub(super) fn new(pipe: PipeReader, capture: Capture) -> io::Result<Output> {
        // A property of our end alone, not of the writers'.
        wait::set_blocking(&pipe, false)?;
        Ok(Output { pipe, has_ended: false, buffer: vec![0; CHUNK], capture })
    }

    /// Takes output in until the shell has ended, for at most `time`; gives whether it has.
    pub(super) fn until_shell_ends(&mut self, shell: &Child, time: Option<Duration>) -> bool {
        let deadline = Deadline::after(time);
        loop {
            if wait::wait(Some(shell), (!self.has_ended).then_some(&self.pipe), deadline) {
                return true;
            }
            if deadline.has_passed() {
                return false;
            }
            self.take_in();
        }
    }

    /// Takes output in until nobody holds the other end, for at most `time`; gives whether somebody
    /// still does. What lies in the pipe now is taken in at any rate.
    pub(super) fn is_held_after(&mut self, time: Option<Duration>) -> bool {
        let deadline = Deadline::after(time);
        loop {
            let mut taken = 0;
            // A background process may fill it faster than it can be emptied.
            while taken < PIPE_MAX {
                match self.take_in() {
                    0 => break,
                    bytes => taken += bytes,
                }
            }
            if self.has_ended || deadline.has_passed() {
                return !self.has_ended;
            }
            wait::wait(None, Some(&self.pipe), deadline);
        }
    }

    /// What was taken in. What comes from now on is discarded, so that a background process neither
    /// blocks on a full pipe nor dies of a closed one.
    pub(super) fn finish(self) -> Captured {
        if !self.has_ended {
            discard(self.pipe);
        }
        self.capture.finish()
    }

    /// Takes in what is there, as far as it fits into the buffer; gives how much that is.
    fn take_in(&mut self) -> usize {
        if self.has_ended {
            return 0;
        }
        match self.pipe.read(&mut self.buffer) {
            Ok(bytes @ 1..) => {
                self.capture.push(&self.buffer[..bytes]);
                bytes
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
            Ok(0) | Err(_) => {
                self.has_ended = true;
                0
            }
        }
    }
}

/// Reads until nobody writes any more. Where no thread is to be had the pipe is closed.
fn discard(mut pipe: PipeReader) {
    let discard = move || {
        if wait::set_blocking(&pipe, true).is_ok() {
            // Nobody is there to be told.
            let _ = io::copy(&mut pipe, &mut io::sink());
        }
    };
    let _ = thread::Builder::new().name("output".to_owned()).spawn(discard);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::Mask;
    use std::io::Write as _;

    #[test]
    fn what_lies_in_the_pipe_is_read_though_there_is_no_time() {
        let (pipe, mut writer) = io::pipe().unwrap();
        let mut output = Output::new(pipe, Capture::new(Mask::default(), None)).unwrap();
        writer.write_all("begin ".repeat(5_000).as_bytes()).unwrap();
        assert!(output.is_held_after(Some(Duration::ZERO)));
        writer.write_all(b"end").unwrap();
        drop(writer);
        // A child that another test starts holds the writer until it becomes its program.
        assert!(!output.is_held_after(Some(Duration::from_secs(60))));
        let Captured { head, tail, omitted, .. } = output.finish();
        assert_eq!((head + &tail, omitted), ("begin ".repeat(5_000) + "end", 0));
    }
}

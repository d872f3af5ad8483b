//! The standard streams as they are, and not as the standard library shows them: it takes a
//! descriptor that was closed, or can't be written, for one that swallows everything, and an empty
//! or full pipe that somebody else has made non-blocking for an error.
#![cfg_attr(unix, expect(unsafe_code, reason = "std has no poll, and runs no code before main"))]

use std::io::{self, Read, Write};
use std::time::Duration;

#[cfg(unix)]
use std::fs::File;
#[cfg(unix)]
use std::mem::ManuallyDrop;
#[cfg(unix)]
use std::os::fd::{AsFd, AsRawFd as _, FromRawFd as _};
#[cfg(target_os = "linux")]
use std::sync::atomic::{AtomicBool, Ordering};

#[cfg(unix)]
use super::os::retry;
#[cfg(unix)]
use crate::text::counted;
#[cfg(unix)]
use crate::time::{Deadline, within};

/// One of the streams that a program is started with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Standard {
    /// Where the answer goes.
    Output,
    /// Where the report goes.
    Error,
}

/// Standard input of the process. It is waited for where somebody else has made it non-blocking.
#[derive(Debug)]
pub struct Stdin(io::Stdin);

impl Stdin {
    /// The one that the process was started with.
    pub fn new() -> Stdin {
        Stdin(io::stdin())
    }
}

impl Read for Stdin {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        #[cfg(unix)]
        loop {
            match self.0.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    until_ready(&self.0, libc::POLLIN, Deadline::NONE)?;
                }
                result => return result,
            }
        }
        #[cfg(windows)]
        self.0.read(buffer)
    }
}

impl Default for Stdin {
    fn default() -> Stdin {
        Stdin::new()
    }
}

/// One of the streams, which stays open. Not a copy: a process may have no descriptor left for one,
/// and then there is all the more to say.
#[cfg(unix)]
fn open_stream(number: libc::c_int) -> ManuallyDrop<File> {
    // SAFETY: the standard library makes sure that the three streams are open, nobody closes them,
    // and neither does this.
    ManuallyDrop::new(unsafe { File::from_raw_fd(number) })
}

/// Standard output of the process. It is unbuffered; flushing it finds out whether it can be
/// written at all.
#[derive(Debug)]
#[cfg(unix)]
pub struct Stdout(io::Result<ManuallyDrop<File>>);

#[cfg(unix)]
impl Stdout {
    /// The one that the process was started with.
    pub fn new() -> Stdout {
        #[cfg(target_os = "linux")]
        if WAS_CLOSED.load(Ordering::Relaxed) {
            // The standard library has put /dev/null in its place.
            return Stdout(Err(io::Error::other("it is closed")));
        }
        Stdout(Ok(open_stream(libc::STDOUT_FILENO)))
    }

    fn file(&mut self) -> io::Result<&mut File> {
        match &mut self.0 {
            Ok(file) => Ok(&mut *file),
            Err(error) => Err(io::Error::new(error.kind(), error.to_string())),
        }
    }
}

#[cfg(unix)]
impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let file = self.file()?;
        loop {
            match file.write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    until_ready(&*file, libc::POLLOUT, Deadline::NONE)?;
                }
                result => return result,
            }
        }
    }

    /// Writes nothing, which fails where something would.
    fn flush(&mut self) -> io::Result<()> {
        self.file()?.write(&[]).map(drop)
    }
}

/// Waits until something can be read or written, or the other end is closed; gives whether that
/// came in time.
#[cfg(unix)]
fn until_ready(stream: impl AsFd, events: libc::c_short, deadline: Deadline) -> io::Result<bool> {
    let fd = stream.as_fd().as_raw_fd();
    let mut poll = libc::pollfd { fd, events, revents: 0 };
    let limit = deadline
        .remaining()
        .map_or(-1, |left| libc::c_int::try_from(left.as_millis()).unwrap_or(libc::c_int::MAX));
    // SAFETY: poll reads and writes the one pollfd that it is told of.
    Ok(retry(|| unsafe { libc::poll(&raw mut poll, 1, limit) })? > 0)
}

/// What a pipe that has room takes without blocking (POSIX: `PIPE_BUF` on Linux), and in one piece.
#[cfg(unix)]
const PIECE: usize = 4096;

/// Standard error of the process. A line that nobody takes for long is lost, and so are those
/// behind it until there is room again, which is then said: no report is worth a run that stands
/// still.
#[derive(Debug)]
#[cfg(unix)]
pub struct Stderr {
    file: ManuallyDrop<File>,
    /// Lines that were lost since the last one that was not.
    lost: u64,
}

/// How long a line may wait for its reader.
#[cfg(unix)]
const PATIENCE: Duration = Duration::from_secs(5);

#[cfg(unix)]
impl Stderr {
    /// The one that the process was started with.
    pub fn new() -> Stderr {
        Stderr { file: open_stream(libc::STDERR_FILENO), lost: 0 }
    }
}

#[cfg(unix)]
impl Write for Stderr {
    /// Takes a line, of which no part is left for another call.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let patience = if self.lost == 0 { PATIENCE } else { Duration::ZERO };
        let lost = counted(self.lost, "line");
        let note = format!("uncut: lost because nobody read: {lost}\n");
        let note = if self.lost == 0 { &[] } else { note.as_bytes() };
        if tell_file(&self.file, &[note, bytes].concat(), Deadline::after(Some(patience))) {
            self.lost = 0;
        } else {
            self.lost += 1;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes a text to one of the streams, unless somebody who reads it takes too long; gives whether
/// all of it went out. A reader that has gone to sleep must not keep a process from ending.
#[cfg(unix)]
pub fn tell(stream: Standard, text: &str, limit: Duration) -> bool {
    // Not by way of the standard library's streams: somebody may be blocked while holding their
    // lock.
    let file = match stream {
        Standard::Output => Stdout::new().0,
        Standard::Error => Ok(Stderr::new().file),
    };
    let Ok(file) = file else { return false };
    let (copy, deadline) = (text.as_bytes().to_vec(), Deadline::after(Some(limit)));
    let number = file.as_raw_fd();
    // A terminal may say that it has room, and then have less than that.
    match within(Some(limit), move || tell_file(&file, &copy, deadline)) {
        Ok(told) => told == Some(true),
        // There is no thread to be had, which is what there may be to say.
        Err(_) => tell_file(&open_stream(number), text.as_bytes(), deadline),
    }
}

#[cfg(unix)]
fn tell_file(mut file: &File, mut rest: &[u8], deadline: Deadline) -> bool {
    while !rest.is_empty() {
        if !matches!(until_ready(file, libc::POLLOUT, deadline), Ok(true)) {
            return false;
        }
        match file.write(&rest[..rest.len().min(PIECE)]) {
            Ok(written) => rest = &rest[written..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => return false,
        }
    }
    true
}

/// Whether standard output was closed when the process was started.
#[cfg(target_os = "linux")]
static WAS_CLOSED: AtomicBool = AtomicBool::new(false);

/// Looks before the standard library opens `/dev/null` in its place.
#[cfg(target_os = "linux")]
extern "C" fn look() {
    // SAFETY: fcntl with these arguments reads and writes no memory of ours.
    let flags = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) };
    WAS_CLOSED.store(flags == -1, Ordering::Relaxed);
}

/// The loader calls what it finds in this section before `main`.
// SAFETY: it is the section for such functions, and `look` needs nothing of the standard library.
#[cfg(target_os = "linux")]
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

/// Standard output of the process.
#[derive(Debug)]
#[cfg(windows)]
pub struct Stdout(io::Stdout);

#[cfg(windows)]
impl Stdout {
    /// The one that the process was started with.
    pub fn new() -> Stdout {
        Stdout(io::stdout())
    }
}

#[cfg(windows)]
impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Standard error of the process.
#[derive(Debug)]
#[cfg(windows)]
pub struct Stderr(io::Stderr);

#[cfg(windows)]
impl Stderr {
    /// The one that the process was started with.
    pub fn new() -> Stderr {
        Stderr(io::stderr())
    }
}

#[cfg(windows)]
impl Write for Stderr {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Writes a text to one of the streams; gives whether all of it went out.
#[cfg(windows)]
pub fn tell(stream: Standard, text: &str, _: Duration) -> bool {
    let written = match stream {
        Standard::Output => io::stdout().write_all(text.as_bytes()),
        Standard::Error => io::stderr().write_all(text.as_bytes()),
    };
    written.is_ok()
}

impl Default for Stdout {
    fn default() -> Stdout {
        Stdout::new()
    }
}

impl Default for Stderr {
    fn default() -> Stderr {
        Stderr::new()
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::io::Read as _;
    use std::os::fd::OwnedFd;

    use super::*;

    #[test]
    fn lines_that_nobody_reads_are_lost_and_counted() {
        let (mut reader, writer) = io::pipe().unwrap();
        let full = vec![b'x'; 64 * 1024];
        let filled = tell_file(
            &File::from(OwnedFd::from(writer.try_clone().unwrap())),
            &full,
            Deadline::NONE,
        );
        assert!(filled);
        // One was lost before, so that the next ones don't wait.
        let file = ManuallyDrop::new(File::from(OwnedFd::from(writer)));
        let mut stderr = Stderr { file, lost: 1 };
        stderr.write_all(b"two\n").unwrap();
        reader.read_exact(&mut vec![0; full.len()]).unwrap();
        stderr.write_all(b"three\n").unwrap();
        stderr.write_all(b"four\n").unwrap();
        drop(ManuallyDrop::into_inner(stderr.file));
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "uncut: lost because nobody read: 2 lines\nthree\nfour\n");
    }
}

//! Signals that ask the process to end, seen by a thread of its own.
//!
//! The loop may be blocked in a read, a write or a wait for a long time. A handler may do next to
//! nothing; ours writes the number of the signal into a pipe, and the thread that reads it does the
//! rest. A signal that was ignored when the program started, as `nohup` has it, stays ignored.
//! Handlers are not handed down to commands. With a handler in place a signal also reaches the
//! first process of a container, which is spared the default actions.
#![expect(unsafe_code, reason = "std has no sigaction")]

use std::io::{self, PipeReader, Read as _};
use std::os::fd::{AsRawFd as _, IntoRawFd as _};
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use super::Ending;
use super::os::{checked, retry};
use crate::time::Deadline;

/// Whether a signal would end the process and is no fault of it: somebody asks it to end, or warns
/// it of a limit, as batch systems do. A write beyond a limit and to nobody are errors elsewhere.
fn ends(signal: libc::c_int) -> bool {
    #[cfg(target_os = "linux")]
    let others = [libc::SIGIO, libc::SIGPWR, libc::SIGSTKFLT].contains(&signal)
        || (libc::SIGRTMIN()..=libc::SIGRTMAX()).contains(&signal);
    #[cfg(not(target_os = "linux"))]
    let others = false;
    others
        || matches!(
            signal,
            libc::SIGHUP
                | libc::SIGINT
                | libc::SIGQUIT
                | libc::SIGTERM
                | libc::SIGUSR1
                | libc::SIGUSR2
                | libc::SIGALRM
                | libc::SIGVTALRM
                | libc::SIGPROF
                | libc::SIGXCPU
        )
}

/// All that are caught. No system has numbers that go beyond.
fn caught() -> impl Iterator<Item = libc::c_int> {
    (1..=64).filter(|signal| ends(*signal)).chain([libc::SIGCHLD])
}

/// The end of the pipe that the handler writes to.
static WRITER: AtomicI32 = AtomicI32::new(-1);

/// What has been seen.
pub(super) enum Seen {
    /// The process is to end.
    Ending(Ending),
    /// A child has ended.
    Child,
}

/// The signals of this process, from now on.
#[derive(Debug)]
pub(super) struct Signals(PipeReader);

impl Signals {
    /// Installs the handlers. Once in the life of a process.
    pub(super) fn catch() -> io::Result<Signals> {
        // A run that can open nothing would fail all over, under many names.
        let _spare = (io::pipe()?, io::pipe()?);
        let (reader, writer) = io::pipe()?;
        let writer = writer.into_raw_fd();
        // SAFETY: fcntl with these arguments reads and writes no memory of ours.
        checked(unsafe { libc::fcntl(writer, libc::F_SETFL, libc::O_NONBLOCK) })?;
        WRITER.store(writer, Ordering::Relaxed);
        for signal in caught() {
            catch(signal)?;
        }
        unblock()?;
        Ok(Signals(reader))
    }

    /// Waits for a signal, and gives none once the deadline has passed.
    pub(super) fn next(&self, deadline: Deadline) -> io::Result<Option<Seen>> {
        let mut poll = libc::pollfd { fd: self.0.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        loop {
            let left = deadline.remaining();
            if left == Some(Duration::ZERO) {
                return Ok(None);
            }
            // Rounded up: half a millisecond before the deadline there is still something to wait.
            let left = left.map_or(-1, |left| {
                libc::c_int::try_from(left.as_millis() + 1).unwrap_or(libc::c_int::MAX)
            });
            // SAFETY: poll reads and writes the one pollfd that it is told of.
            if retry(|| unsafe { libc::poll(&raw mut poll, 1, left) })? > 0 {
                let mut number = [0];
                (&self.0).read_exact(&mut number)?;
                return Ok(Some(match number[0].into() {
                    libc::SIGHUP => Seen::Ending(Ending::Hangup),
                    libc::SIGINT | libc::SIGQUIT => Seen::Ending(Ending::Interrupt),
                    libc::SIGCHLD => Seen::Child,
                    _ => Seen::Ending(Ending::Terminated(number[0])),
                }));
            }
        }
    }
}

/// Lets the signals through, which a parent may have blocked. A thread inherits that from the one
/// that starts it, and so a signal always finds one that takes it.
fn unblock() -> io::Result<()> {
    let mut set = std::mem::MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: sigemptyset makes a valid set of it, and the others read or write only that.
    let failure = unsafe {
        checked(libc::sigemptyset(set.as_mut_ptr()))?;
        for signal in caught() {
            checked(libc::sigaddset(set.as_mut_ptr(), signal))?;
        }
        libc::pthread_sigmask(libc::SIG_UNBLOCK, set.as_ptr(), std::ptr::null_mut())
    };
    if failure == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(failure)) }
}

fn catch(signal: libc::c_int) -> io::Result<()> {
    let mut old = std::mem::MaybeUninit::<libc::sigaction>::zeroed();
    let handler: extern "C" fn(libc::c_int) = note;
    // SAFETY: all zeros are a valid sigaction with an empty mask, and `note` may run at any point.
    unsafe {
        checked(libc::sigaction(signal, std::ptr::null(), old.as_mut_ptr()))?;
        if ends(signal) && old.assume_init().sa_sigaction == libc::SIG_IGN {
            return Ok(());
        }
        let mut new = std::mem::MaybeUninit::<libc::sigaction>::zeroed().assume_init();
        new.sa_sigaction = handler as libc::sighandler_t;
        new.sa_flags = libc::SA_RESTART;
        checked(libc::sigaction(signal, &raw const new, std::ptr::null_mut())).map(drop)
    }
}

/// The handler.
extern "C" fn note(signal: libc::c_int) {
    // Every signal that is caught has a number of one byte.
    let number = signal as u8;
    // SAFETY: write is async-signal-safe and reads one byte. The pipe is never full of what
    // matters: whoever reads it is awake as long as there is something in it. What write does to
    // errno is undone, because the code that was interrupted may be about to look at it.
    unsafe {
        let errno = errno();
        let before = *errno;
        libc::write(WRITER.load(Ordering::Relaxed), (&raw const number).cast(), 1);
        *errno = before;
    }
}

/// Where this thread's errno is.
unsafe fn errno() -> *mut libc::c_int {
    #[cfg(any(target_os = "linux", target_os = "emscripten"))]
    // SAFETY: it only returns an address.
    unsafe {
        libc::__errno_location()
    }
    #[cfg(not(any(target_os = "linux", target_os = "emscripten")))]
    // SAFETY: it only returns an address.
    unsafe {
        libc::__error()
    }
}

//! A wait for the end of a shell, or for its output, that has a limit and leaves the shell to be
//! reaped.
//!
//! Linux has a descriptor for the end of a process. Where it is not to be had, a look is taken
//! every few milliseconds.
#![expect(unsafe_code, reason = "std has no pidfd_open, poll, waitid and fcntl")]

use std::io::{self, PipeReader};
use std::os::fd::AsRawFd as _;
#[cfg(target_os = "linux")]
use std::os::fd::{FromRawFd as _, OwnedFd};
use std::thread;
use std::time::Duration;

use super::os::{checked, retry};
use crate::time::Deadline;

/// The time between two looks at most.
const LOOK: Duration = Duration::from_millis(10);

/// A child that is to end.
pub(super) struct Child {
    id: libc::pid_t,
    /// Can be read from when the child has ended.
    #[cfg(target_os = "linux")]
    handle: Option<OwnedFd>,
}

impl Child {
    /// The child with this number, which nobody else reaps.
    pub(super) fn new(id: libc::pid_t) -> Child {
        Child {
            id,
            #[cfg(target_os = "linux")]
            handle: handle(id),
        }
    }

    /// Can be polled, where there is something to poll.
    fn descriptor(&self) -> Option<libc::c_int> {
        #[cfg(target_os = "linux")]
        return self.handle.as_ref().map(|handle| handle.as_raw_fd());
        #[cfg(not(target_os = "linux"))]
        None
    }

    fn has_ended(&self) -> bool {
        let flags = libc::WEXITED | libc::WNOWAIT | libc::WNOHANG;
        let mut info = std::mem::MaybeUninit::<libc::siginfo_t>::zeroed();
        let id = self.id.unsigned_abs();
        // SAFETY: waitid writes at most one siginfo_t to where it is told.
        let asked = retry(|| unsafe { libc::waitid(libc::P_PID, id, info.as_mut_ptr(), flags) });
        // There is no such child: then it has ended, and reaping it tells the same.
        // SAFETY: all zeros are a valid siginfo_t, and the process id of one is 0.
        asked.is_err() || unsafe { info.assume_init().si_pid() } != 0
    }
}

#[cfg(target_os = "linux")]
fn handle(id: libc::pid_t) -> Option<OwnedFd> {
    // SAFETY: pidfd_open reads and writes no memory of ours.
    let number = unsafe { libc::syscall(libc::SYS_pidfd_open, id, 0) };
    let number = checked(libc::c_int::try_from(number).ok()?).ok()?;
    // SAFETY: it was opened just now, for us alone; commands do not inherit it.
    Some(unsafe { OwnedFd::from_raw_fd(number) })
}

/// Waits for the end of the child, for something in the pipe or for the end of the pipe, until the
/// deadline at the latest; now and then it returns earlier. Gives whether the child has ended.
pub(super) fn wait(child: Option<&Child>, pipe: Option<&PipeReader>, deadline: Deadline) -> bool {
    let blind = child.filter(|child| child.descriptor().is_none());
    let most = deadline.remaining();
    let most = if blind.is_some() { Some(most.unwrap_or(LOOK).min(LOOK)) } else { most };
    // Rounded up: half a millisecond before the end there is still something to wait for.
    let most = most.map_or(-1, |most| {
        libc::c_int::try_from(most.as_micros().div_ceil(1_000)).unwrap_or(libc::c_int::MAX)
    });
    // A negative one is passed over.
    let mut polled =
        [child.and_then(Child::descriptor), pipe.map(|pipe| pipe.as_raw_fd())].map(|descriptor| {
            libc::pollfd { fd: descriptor.unwrap_or(-1), events: libc::POLLIN, revents: 0 }
        });
    // SAFETY: poll reads and writes the two pollfds that it is told of.
    match checked(unsafe { libc::poll(polled.as_mut_ptr(), 2, most) }) {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::Interrupted => return false,
        // Short of memory for a moment.
        Err(_) => thread::sleep(LOOK),
    }
    polled[0].revents != 0 || blind.is_some_and(Child::has_ended)
}

/// Whether a read from an empty pipe waits.
pub(super) fn set_blocking(pipe: &PipeReader, blocking: bool) -> io::Result<()> {
    let flags = if blocking { 0 } else { libc::O_NONBLOCK };
    // SAFETY: fcntl with these arguments reads and writes no memory of ours.
    checked(unsafe { libc::fcntl(pipe.as_raw_fd(), libc::F_SETFL, flags) }).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn the_end_of_a_child_is_seen_with_and_without_a_handle() {
        for with_handle in [true, false] {
            let mut command = std::process::Command::new("/bin/cat");
            command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::null());
            let mut cat = command.spawn().unwrap();
            let mut child = Child::new(cat.id().try_into().unwrap());
            #[cfg(target_os = "linux")]
            if !with_handle {
                child.handle = None;
            }
            let begin = Instant::now();
            assert!(!wait(Some(&child), None, Deadline::after(Some(LOOK))), "{with_handle}");
            cat.kill().unwrap();
            while !wait(Some(&child), None, Deadline::NONE) {
                assert!(begin.elapsed() < Duration::from_secs(60), "{with_handle}");
            }
            assert!(wait(Some(&child), None, Deadline::NONE), "{with_handle}");
            // It was left to be reaped.
            assert!(!cat.wait().unwrap().success());
        }
    }
}

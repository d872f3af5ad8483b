//! A wait for the end of a shell that has a limit and leaves the shell to be reaped.
//!
//! Linux has a descriptor for that, which costs less than a thread that waits. Where it is not to be
//! had, a look is taken every few milliseconds.
#![expect(unsafe_code, reason = "std has no pidfd_open, poll and waitid")]

#[cfg(target_os = "linux")]
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
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

    /// Waits for its end, for at most `time`; gives whether it has ended.
    pub(super) fn wait(&self, time: Option<Duration>) -> bool {
        let deadline = Deadline::after(time);
        #[cfg(target_os = "linux")]
        if let Some(handle) = &self.handle {
            return wait_for(handle, deadline);
        }
        let mut pause = Duration::from_millis(1);
        while !self.has_ended() {
            if deadline.has_passed() {
                return false;
            }
            thread::sleep(deadline.remaining().map_or(pause, |left| left.min(pause)));
            pause = LOOK.min(pause * 2);
        }
        true
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

#[cfg(target_os = "linux")]
fn wait_for(handle: &OwnedFd, deadline: Deadline) -> bool {
    let mut poll = libc::pollfd { fd: handle.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    loop {
        // Rounded up: half a millisecond before the end there is still something to wait for.
        let left = deadline.remaining().map_or(-1, |left| {
            let left = left.as_micros().div_ceil(1_000);
            libc::c_int::try_from(left).unwrap_or(libc::c_int::MAX)
        });
        // SAFETY: poll reads and writes the one pollfd that it is told of.
        match retry(|| unsafe { libc::poll(&raw mut poll, 1, left) }) {
            Ok(0) if deadline.has_passed() => return false,
            Ok(0) => {}
            // Short of memory for a moment.
            Err(_) if !deadline.has_passed() => thread::sleep(LOOK),
            Err(_) => return false,
            Ok(_) => return true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_child_is_seen_with_and_without_a_handle() {
        let soon = Some(Duration::from_secs(60));
        for with_handle in [true, false] {
            let mut command = std::process::Command::new("/bin/cat");
            command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::null());
            let mut cat = command.spawn().unwrap();
            let mut child = Child::new(cat.id().try_into().unwrap());
            #[cfg(target_os = "linux")]
            if !with_handle {
                child.handle = None;
            }
            assert!(!child.wait(Some(Duration::from_millis(20))), "{with_handle}");
            cat.kill().unwrap();
            assert!(child.wait(soon) && child.wait(None), "{with_handle}");
            // It was left to be reaped.
            assert!(!cat.wait().unwrap().success());
        }
    }
}

//! Job objects: what a command starts stays in the job of its shell, whoever its parent is, and can
//! be killed and counted as one.
//!
//! The system kills what is in a job when the last handle of it is closed, so that a killed program
//! takes its commands along.
#![expect(unsafe_code, reason = "std has no job objects and no wait that has a limit")]

use std::io;
use std::os::windows::io::{AsRawHandle as _, FromRawHandle as _, OwnedHandle};
use std::process::Child;
use std::ptr;
use std::time::Duration;

use windows_sys::Win32::Foundation::{HANDLE, NTSTATUS, WAIT_OBJECT_0};
use windows_sys::Win32::System::JobObjects::{
    AssignProcessToJobObject, CreateJobObjectW, JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE,
    JOBOBJECT_BASIC_ACCOUNTING_INFORMATION, JOBOBJECT_EXTENDED_LIMIT_INFORMATION,
    JobObjectBasicAccountingInformation, JobObjectExtendedLimitInformation,
    QueryInformationJobObject, SetInformationJobObject, TerminateJobObject,
};
use windows_sys::Win32::System::Threading::WaitForSingleObject;

use crate::time::Deadline;

/// The exit code of what is killed, which nobody looks at.
const KILLED: u32 = 1;

/// Longest wait of one call.
const WAIT_MAX: Duration = Duration::from_secs(60 * 60);

#[link(name = "ntdll")]
unsafe extern "system" {
    /// What `ResumeThread` is to a thread. std keeps the thread of a child to itself.
    fn NtResumeProcess(process: HANDLE) -> NTSTATUS;
}

/// A job.
pub(super) struct Job(OwnedHandle);

impl Job {
    /// An empty one.
    pub(super) fn new() -> io::Result<Job> {
        // SAFETY: without attributes and a name there is nothing to read.
        let handle = unsafe { CreateJobObjectW(ptr::null(), ptr::null()) };
        if handle == 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: it was opened just now, for us alone; commands do not inherit it.
        let job = Job(unsafe { OwnedHandle::from_raw_handle(handle as _) });
        // SAFETY: all zeros are a valid value of it, and set no limit.
        let mut limits: JOBOBJECT_EXTENDED_LIMIT_INFORMATION = unsafe { std::mem::zeroed() };
        limits.BasicLimitInformation.LimitFlags = JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE;
        // SAFETY: it reads the structure of which it is told the kind and the size.
        succeeded(unsafe {
            SetInformationJobObject(
                job.handle(),
                JobObjectExtendedLimitInformation,
                (&raw const limits).cast(),
                size_of_val(&limits) as u32,
            )
        })?;
        Ok(job)
    }

    /// Takes a process in that was started suspended, and lets it run.
    pub(super) fn take_in(&self, child: &Child) -> io::Result<()> {
        // SAFETY: both handles are open.
        succeeded(unsafe { AssignProcessToJobObject(self.handle(), handle_of(child)) })?;
        // SAFETY: as above.
        match unsafe { NtResumeProcess(handle_of(child)) } {
            0.. => Ok(()),
            status => Err(io::Error::other(format!("it can't be resumed: {status:#x}"))),
        }
    }

    /// Ends every process in it.
    pub(super) fn kill(&self) {
        // SAFETY: the handle is open. It fails for what is about to end anyway.
        unsafe { TerminateJobObject(self.handle(), KILLED) };
    }

    /// Whether no process is in it.
    pub(super) fn is_empty(&self) -> bool {
        // SAFETY: all zeros are a valid value of it.
        let mut counts: JOBOBJECT_BASIC_ACCOUNTING_INFORMATION = unsafe { std::mem::zeroed() };
        // SAFETY: it writes the structure of which it is told the kind and the size.
        let told = succeeded(unsafe {
            QueryInformationJobObject(
                self.handle(),
                JobObjectBasicAccountingInformation,
                (&raw mut counts).cast(),
                size_of_val(&counts) as u32,
                ptr::null_mut(),
            )
        });
        told.is_ok() && counts.ActiveProcesses == 0
    }

    fn handle(&self) -> HANDLE {
        self.0.as_raw_handle() as HANDLE
    }
}

/// Waits for the end of a child, for at most `time`; gives whether it has ended.
pub(super) fn wait(child: &OwnedHandle, time: Option<Duration>) -> bool {
    let deadline = Deadline::after(time);
    loop {
        let most = deadline.remaining().map_or(WAIT_MAX, |left| left.min(WAIT_MAX));
        // SAFETY: the handle is open.
        let waited = unsafe {
            WaitForSingleObject(child.as_raw_handle() as HANDLE, most.as_millis() as u32 + 1)
        };
        if waited == WAIT_OBJECT_0 || deadline.has_passed() {
            return waited == WAIT_OBJECT_0;
        }
    }
}

fn handle_of(child: &Child) -> HANDLE {
    child.as_raw_handle() as HANDLE
}

/// The result of a call that gives 0 when it fails.
fn succeeded(result: i32) -> io::Result<()> {
    if result == 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

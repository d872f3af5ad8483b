//! Commands on Windows: `cmd.exe`, in a job of its own.
//!
//! The job takes in whatever the command starts, and cannot be left. There is no way to ask a
//! process without a window to end, so what takes too long is killed at once.
//!
//! What `cmd.exe` itself prints is in the code page of the console, and so may be what other
//! programs print. It is read as UTF-8 all the same, and the bytes that are not are counted.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, PipeWriter};
use std::os::windows::io::{AsHandle as _, OwnedHandle};
use std::os::windows::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use super::job::{self, Job};
use super::{How, Spec, cmd_argument, lock};
use crate::time::Deadline;

/// The shell that commands are for.
pub const SHELL: &str = "cmd.exe";

/// Whether there is a shell to run commands with.
pub fn shell_is_present() -> bool {
    true
}

/// A console of its own that nobody sees: there is nothing to ask a question on.
const CREATE_NO_WINDOW: u32 = 0x0800_0000;

/// The shell does nothing before it is in its job.
const CREATE_SUSPENDED: u32 = 0x0000_0004;

/// How long what serves the console of a shell may outlive it.
const CONSOLE: Duration = Duration::from_millis(50);

/// Nothing to remember: the job knows what came of a command.
pub(super) struct Family;

/// Nothing to look for: only jobs are ended.
pub(super) fn strangers() -> Family {
    Family
}

/// The shell of a command, and all that it started.
#[derive(Clone)]
pub(super) struct Group(Arc<Members>);

struct Members {
    id: u32,
    shell: Mutex<Child>,
    /// The same shell, to wait for without the lock.
    handle: OwnedHandle,
    job: Job,
}

impl Group {
    /// Starts the shell.
    pub(super) fn start(spec: &Spec<'_>, output: PipeWriter) -> io::Result<Group> {
        let job = Job::new()?;
        let mut command = Command::new(SHELL);
        command
            .raw_arg(cmd_argument(spec.command)?)
            .current_dir(spec.directory)
            .env_clear()
            .envs(spec.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .creation_flags(CREATE_NO_WINDOW | CREATE_SUSPENDED);
        // Dropping the command closes our copies of the pipe; with them open it would never end.
        let mut shell = command.spawn()?;
        let handle = job
            .take_in(&shell)
            .and_then(|()| shell.as_handle().try_clone_to_owned())
            .inspect_err(|_| drop(shell.kill()))?;
        Ok(Group(Arc::new(Members { id: shell.id(), shell: Mutex::new(shell), handle, job })))
    }

    /// The shell, to wait for its end.
    pub(super) fn shell(&self) -> Group {
        self.clone()
    }

    /// Waits for the end of the shell, for at most `time`; gives whether it has ended.
    pub(super) fn wait(&self, time: Option<Duration>) -> bool {
        job::wait(&self.0.handle, time)
    }

    /// How the shell, which has ended, ended.
    pub(super) fn reap(&self) -> io::Result<How> {
        let status = lock(&self.0.shell).wait()?;
        // The console of the shell is served by a process that is in the job too, and ends with it.
        let console = Deadline::after(Some(CONSOLE));
        while !self.0.job.is_empty() && !console.has_passed() {
            thread::sleep(Duration::from_millis(1));
        }
        Ok(How::Exited(status.code().unwrap_or_default()))
    }

    /// There is no way to ask.
    pub(super) fn terminate(&self) -> Family {
        self.0.job.kill();
        Family
    }

    /// Ends all of it.
    pub(super) fn kill(&self, _: &Family, _: &[u32]) {
        self.0.job.kill();
    }

    /// The process id of the shell.
    pub(super) fn id(&self) -> u32 {
        self.0.id
    }

    /// Whether all of it has ended.
    pub(super) fn is_empty(&self, _: &[u32]) -> bool {
        self.0.job.is_empty()
    }
}

/// Ends the groups. The names of what is in them are not known.
pub(super) fn kill_all(groups: &[Group], _: &[u32], _: &Family) -> BTreeSet<String> {
    groups.iter().for_each(|group| group.0.job.kill());
    BTreeSet::new()
}

/// Ends the process at once, whatever its other threads do.
#[expect(clippy::exit, reason = "this is what it is for")]
pub fn end_process(code: u8) -> ! {
    std::process::exit(code.into())
}

/// Nothing to do here.
pub(super) fn reap_orphans(_: &[u32]) {}

/// Nothing to do here: nothing leaves its job.
pub fn adopt_orphans() {}

/// Nothing to do here.
pub(super) fn notice_children() {}

/// Nothing to do here: there is no such limit.
pub fn survive_file_size_limit() {}

/// There is no such folder: none can be locked here, and only locks tell which are left over.
pub(super) fn open_own_folder(_: &Path) -> io::Result<File> {
    Err(io::ErrorKind::Unsupported.into())
}

/// There are no signals here, but what counts as one has its name.
pub fn signal_name(signal: i32) -> Option<&'static str> {
    (signal == 15).then_some("SIGTERM")
}

//! Commands on Windows: `cmd.exe`, and the kill of it alone.
//!
//! std can't wait for a child for a limited time. So the wait is a look every few milliseconds, and
//! what `cmd.exe` started survives its kill. A job
//! object will mend both.

use std::collections::BTreeSet;
use std::io::{self, PipeReader, PipeWriter, Read as _, Write as _};
use std::os::windows::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use super::mark::Mark;
use super::{How, Output, Spec, cmd_argument, lock};
use crate::time::Deadline;

/// The shell that commands are for.
pub const SHELL: &str = "cmd.exe";

/// Whether there is a shell to run commands with.
pub fn shell_is_present() -> bool {
    true
}

/// A console of its own that nobody sees: there is nothing to ask a question on.
const CREATE_NO_WINDOW: u32 = 0x0800_0000;

/// How often a look is taken at whether the shell has ended.
const LOOK: Duration = Duration::from_millis(10);

/// The shell of a command.
#[derive(Clone)]
pub(super) struct Group(Arc<Mutex<Child>>);

impl Group {
    /// Starts the shell.
    pub(super) fn start(spec: &Spec<'_>, mark: Mark, output: PipeWriter) -> io::Result<Group> {
        let mut command = Command::new(SHELL);
        command
            .raw_arg(cmd_argument(spec.command)?)
            .current_dir(spec.directory)
            .env_clear()
            .envs(spec.environment.iter().map(|(name, value)| (name, value)))
            .envs([mark.variable()])
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .creation_flags(CREATE_NO_WINDOW);
        // Dropping the command closes our copies of the pipe; with them open it would never end.
        Ok(Group(Arc::new(Mutex::new(command.spawn()?))))
    }

    /// The shell, to wait for its end.
    pub(super) fn shell(&self) -> Group {
        self.clone()
    }

    /// Waits for the end of the shell, for at most `time`; gives whether it has ended.
    pub(super) fn wait(&self, time: Option<Duration>) -> bool {
        let deadline = Deadline::after(time);
        while !self.is_empty() {
            if deadline.has_passed() {
                return false;
            }
            thread::sleep(LOOK);
        }
        true
    }

    /// How the shell, which has ended, ended.
    pub(super) fn reap(&self) -> io::Result<How> {
        let status = lock(&self.0).wait()?;
        Ok(How::Exited(status.code().unwrap_or_default()))
    }

    /// There is no way to ask.
    pub(super) fn terminate(&self) {
        self.kill();
    }

    /// Ends the shell.
    pub(super) fn kill_with_descendants(&self, _: &[u32]) {
        self.kill();
    }

    /// The process id of the shell.
    pub(super) fn id(&self) -> u32 {
        lock(&self.0).id()
    }

    fn kill(&self) {
        // It may have ended by itself, which is as good.
        let _ = lock(&self.0).kill();
    }

    /// Whether the shell has ended.
    pub(super) fn is_empty(&self) -> bool {
        !matches!(lock(&self.0).try_wait(), Ok(None))
    }
}

/// Ends the shells. Their names are not known.
pub(super) fn kill_all(groups: &[Group], _: &[u32]) -> BTreeSet<String> {
    groups.iter().for_each(Group::kill);
    BTreeSet::new()
}

/// Ends the process at once, whatever its other threads do.
#[expect(clippy::exit, reason = "this is what it is for")]
pub fn end_process(code: u8) -> ! {
    std::process::exit(code.into())
}

/// Nothing to do here.
pub(super) fn reap_orphans(_: &[u32]) {}

/// Nothing to do here: there are no orphans.
pub fn adopt_orphans() {}

/// Nothing to do here.
pub(super) fn notice_children() {}

/// Nothing to do here: there is no such limit.
pub fn survive_file_size_limit() {}

/// Nothing to do here.
pub(super) fn prepare(_: &PipeReader) -> io::Result<()> {
    Ok(())
}

/// Moves output out of the pipe until nobody holds the other end.
pub(super) fn pump(output: &Output) {
    let mut buffer = vec![0; 64 * 1024];
    // Not under the lock: the read waits.
    while let Ok(bytes @ 1..) = (&output.pipe).read(&mut buffer) {
        if let Some(capture) = lock(&output.capture).as_mut() {
            capture.push(&buffer[..bytes]);
        }
    }
}

/// There is no look into the pipe without a wait; gives that the other end is held.
pub(super) fn drain(_: &Output) -> bool {
    true
}

/// There are no signals here.
pub fn signal_name(_: i32) -> Option<&'static str> {
    None
}

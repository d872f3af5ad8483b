//! What std can't say on Unix: sessions, groups, orphans, and what a command inherits.
//!
//! Each use of `unsafe`, here and in the neighbours that have it, is one call into the system.
#![expect(unsafe_code, reason = "std has no setsid, killpg and waitid")]

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, PipeReader, PipeWriter};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::time::Deadline;

use super::descendants::{self, Family, Process};
use super::wait::Child;
use super::{DEATH, How, Spec};

/// The shell that commands are for.
pub const SHELL: &str = "/bin/sh";

/// Whether there is a shell to run commands with.
pub fn shell_is_present() -> bool {
    fs::metadata(SHELL).is_ok()
}

/// The process group of a command, named by the process id of its shell, which leads it.
#[derive(Clone)]
pub(super) struct Group {
    shell: libc::pid_t,
}

impl Group {
    /// Starts the shell in a session of its own: it has no terminal to ask anything on, and its
    /// group can be killed as one.
    pub(super) fn start(spec: &Spec<'_>, output: PipeWriter) -> io::Result<Group> {
        let mut command = Command::new(SHELL);
        command
            // A command that starts with a dash is no option.
            .args(["-c", "--", spec.command])
            .current_dir(spec.directory)
            .env_clear()
            .envs(spec.environment.iter().map(|(name, value)| (name, value)))
            .stdin(no_input()?)
            .stdout(output.try_clone()?)
            .stderr(output);
        let parent = std::process::id();
        // SAFETY: what it calls is async-signal-safe, and making an io::Error of errno allocates
        // nothing.
        unsafe { command.pre_exec(move || lead_a_session(parent)) };
        // Dropping the child neither kills nor reaps it. Dropping the command closes our copies of
        // the pipe; with them open it would never end.
        let child = command.spawn()?;
        let shell = libc::pid_t::try_from(child.id()).map_err(io::Error::other)?;
        Ok(Group { shell })
    }

    /// The group with this number.
    #[cfg(test)]
    pub(super) fn with_number(shell: u32) -> Group {
        Group { shell: shell.try_into().unwrap() }
    }

    /// The shell, to wait for its end.
    pub(super) fn shell(&self) -> Child {
        Child::new(self.shell)
    }

    /// Reaps the shell, which has ended.
    pub(super) fn reap(&self) -> io::Result<How> {
        let mut status = 0;
        // SAFETY: waitpid writes one c_int to where it is told.
        retry(|| unsafe { libc::waitpid(self.shell, &raw mut status, 0) })?;
        let status = ExitStatus::from_raw(status);
        // Without a signal there is a code, and the other way round.
        Ok(match status.signal() {
            Some(signal) => How::Signalled(signal),
            None => How::Exited(status.code().unwrap_or_default()),
        })
    }

    /// Asks every process of the group to end. Gives what came of the command by then: once a
    /// parent has ended, nothing leads to a child in another session.
    pub(super) fn terminate(&self) -> Family {
        let is_root = |one: &Process| one.id == self.shell || one.session == self.shell;
        let family = Family::new(&descendants::below(descendants::all(), is_root), self.shell);
        self.signal(libc::SIGTERM);
        family
    }

    /// Ends every process of the group, and the family that came of the command. `shells` are those
    /// that are not reaped, among which this one has to be.
    pub(super) fn kill(&self, family: &Family, shells: &[u32]) {
        end(shells, |one| family.holds(one));
        self.signal(libc::SIGKILL);
    }

    /// The process id of the shell.
    pub(super) fn id(&self) -> u32 {
        self.shell.unsigned_abs()
    }

    /// Whether no process of the group is left; a shell that is not reaped, which is among
    /// `shells`, still counts.
    pub(super) fn is_empty(&self, shells: &[u32]) -> bool {
        let is_missing = |error: io::Error| error.raw_os_error() == Some(libc::ESRCH);
        // No process gets the number of a group that is there: whoever has that of a shell that was
        // reaped came when the group was over.
        // SAFETY: kill reads and writes no memory of ours, and signal 0 only asks.
        let is_taken = || !checked(unsafe { libc::kill(self.shell, 0) }).is_err_and(is_missing);
        (!shells.contains(&self.id()) && is_taken()) || self.signal(0).is_some_and(is_missing)
    }

    fn signal(&self, signal: libc::c_int) -> Option<io::Error> {
        // SAFETY: killpg reads and writes no memory of ours.
        checked(unsafe { libc::killpg(self.shell, signal) }).err()
    }
}

/// What a command's process does before it becomes the shell.
fn lead_a_session(parent: u32) -> io::Result<()> {
    // SAFETY: setsid reads and writes no memory of ours.
    checked(unsafe { libc::setsid() })?;
    #[cfg(target_os = "linux")]
    {
        // The shell ends when whoever started it is killed, with no chance to end it.
        // SAFETY: prctl and getppid with these arguments read and write no memory of ours.
        checked(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) })?;
        // SAFETY: as above.
        if unsafe { libc::getppid() }.unsigned_abs() != parent {
            // It was killed in between.
            return Err(io::ErrorKind::NotFound.into());
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = parent;
    keep_streams_only();
    Ok(())
}

/// Closes, once the shell takes over, all but the three streams: whoever started us may have left
/// something open, such as a lock, or a pipe whose end is waited for.
fn keep_streams_only() {
    #[cfg(target_os = "linux")]
    {
        const CLOSE_RANGE_CLOEXEC: libc::c_uint = 4;
        let (first, last): (libc::c_uint, _) = (3, libc::c_uint::MAX);
        // SAFETY: close_range with these arguments reads and writes no memory of ours.
        if unsafe { libc::syscall(libc::SYS_close_range, first, last, CLOSE_RANGE_CLOEXEC) } == 0 {
            return;
        }
    }
    // Before Linux 5.11, and elsewhere. It fails for most, which are not open.
    for descriptor in 3..DESCRIPTORS {
        // SAFETY: fcntl with these arguments reads and writes no memory of ours.
        unsafe { libc::fcntl(descriptor, libc::F_SETFD, libc::FD_CLOEXEC) };
    }
}

/// As many as a process usually may have.
const DESCRIPTORS: libc::c_int = 1_024;

/// Ends the process at once, whatever its other threads do; nothing is dropped or flushed.
pub fn end_process(code: u8) -> ! {
    // SAFETY: _exit does not return.
    unsafe { libc::_exit(code.into()) }
}

/// What no command has started: our children of before the first one, what is below them, and
/// whatever is in their sessions or in ours.
pub(super) fn strangers() -> Family {
    // SAFETY: getsid reads and writes no memory of ours.
    let session = unsafe { libc::getsid(0) };
    let children = if ended_child().is_ok() {
        descendants::below(descendants::all(), is_child)
    } else {
        Vec::new()
    };
    Family::new(&children, session)
}

/// Ends every process of the groups and what came of their commands; in a program that adopts
/// orphans, every other child but the strangers. Gives the names of those that were alive.
///
/// The first process of a container adopts the orphans of everybody in there, and nothing shows
/// who a daemon belongs to. It leaves them alone: the system ends them with the first process.
pub(super) fn kill_all(groups: &[Group], shells: &[u32], strangers: &Family) -> BTreeSet<String> {
    let adopts = ADOPTS.load(Ordering::Relaxed) && std::process::id() != 1;
    if groups.is_empty() && (!adopts || ended_child().is_err()) {
        // There is nothing to look for, or there are no children at all.
        return BTreeSet::new();
    }
    // The number of one that is over may be somebody else's by now.
    let groups: Vec<&Group> = groups.iter().filter(|group| !group.is_empty(shells)).collect();
    let names = end(shells, |one| {
        groups.iter().any(|group| group.shell == one.session)
            || (adopts && is_child(one) && !strangers.holds(one))
    });
    for group in groups {
        group.signal(libc::SIGKILL);
    }
    names
}

/// Ends the roots and all that is below them, and again what they started in the meantime. Gives
/// their names.
fn end(shells: &[u32], is_root: impl Fn(&Process) -> bool) -> BTreeSet<String> {
    let deadline = Deadline::after(Some(DEATH));
    let mut names = BTreeSet::new();
    loop {
        let mut left = false;
        for one in descendants::below(descendants::all(), &is_root) {
            // SAFETY: kill reads and writes no memory of ours.
            let killed = checked(unsafe { libc::kill(one.id, libc::SIGKILL) });
            if !one.ended {
                // What runs as another user can't be killed, and is not waited for.
                if killed.is_ok() {
                    left = true;
                    names.insert(one.name);
                }
            } else if ADOPTS.load(Ordering::Relaxed)
                && is_child(&one)
                && !shells.contains(&one.id.unsigned_abs())
            {
                reap_one(one.id);
                left = true;
            }
        }
        if !left || deadline.has_passed() {
            return names;
        }
        thread::sleep(Duration::from_millis(1));
    }
}

/// Whether orphans come to this process, which reaps whatever child it has.
static ADOPTS: AtomicBool = AtomicBool::new(false);

/// Lets what commands leave behind come to this process when its parent ends, as far as the system
/// can do that (Linux), so that the end of a run finds it.
///
/// Only for a program that starts no process but commands, and one run at a time: it reaps every
/// child, and at the end of a run kills every child but those that were there before its first
/// command, and what is in their sessions. It holds until the process ends.
pub fn adopt_orphans() {
    #[cfg(target_os = "linux")]
    {
        // SAFETY: prctl with these arguments reads and writes no memory of ours.
        let adopts = checked(unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) });
        ADOPTS.store(adopts.is_ok(), Ordering::Relaxed);
    }
}

fn is_child(one: &Process) -> bool {
    one.parent.unsigned_abs() == std::process::id()
}

/// Reaps the orphans that have ended, so that none stays a zombie.
pub(super) fn reap_orphans(shells: &[u32]) {
    if !ADOPTS.load(Ordering::Relaxed) {
        return;
    }
    while let Ok(Some(id)) = ended_child() {
        // A shell is left to whoever runs it; the next time finds what comes behind it.
        if shells.contains(&id.unsigned_abs()) || !reap_one(id) {
            return;
        }
    }
}

/// A child that has ended and is not reaped; an error where there is no child.
fn ended_child() -> io::Result<Option<libc::pid_t>> {
    let flags = libc::WEXITED | libc::WNOWAIT | libc::WNOHANG;
    let mut info = std::mem::MaybeUninit::<libc::siginfo_t>::zeroed();
    // SAFETY: waitid writes at most one siginfo_t to where it is told.
    retry(|| unsafe { libc::waitid(libc::P_ALL, 0, info.as_mut_ptr(), flags) })?;
    // SAFETY: all zeros are a valid siginfo_t, and the process id of one is 0.
    let id = unsafe { info.assume_init().si_pid() };
    Ok((id != 0).then_some(id))
}

/// Reaps a child if it has ended; gives whether it is gone.
fn reap_one(id: libc::pid_t) -> bool {
    let mut status = 0;
    // SAFETY: waitpid writes one c_int to where it is told.
    retry(|| unsafe { libc::waitpid(id, &raw mut status, libc::WNOHANG) })
        .is_ok_and(|reaped| reaped == id)
}

/// A pipe that nobody writes to: at its end from the start. Not /dev/null, which a container may
/// lack.
fn no_input() -> io::Result<PipeReader> {
    let (input, _) = io::pipe()?;
    Ok(input)
}

/// Undoes an ignored SIGCHLD, which a parent may hand down: the exit status of every command would
/// be lost.
pub(super) fn notice_children() {
    let mut old = std::mem::MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: sigaction writes the old action to where it is told, and all zeros are a valid one;
    // the default action is set only where none but "ignore" is in its place.
    unsafe {
        let read = libc::sigaction(libc::SIGCHLD, std::ptr::null(), old.as_mut_ptr());
        if read == 0 && old.assume_init().sa_sigaction == libc::SIG_IGN {
            libc::signal(libc::SIGCHLD, libc::SIG_DFL);
        }
    }
}

/// Makes a write beyond the file size limit (`ulimit -f`) an error like any other; without this it
/// ends the process.
///
/// A handler that does nothing, and not "ignore": handlers are not handed down to commands.
pub fn survive_file_size_limit() {
    extern "C" fn nothing(_: libc::c_int) {}
    let handler: extern "C" fn(libc::c_int) = nothing;
    // SAFETY: the handler touches nothing, so it may run at any point.
    unsafe { libc::signal(libc::SIGXFSZ, handler as libc::sighandler_t) };
}

/// Opens a folder, in a place where others may put what they like, if it belongs to the user that
/// this process acts as. Nothing else is opened, no link followed and nothing waited for.
pub(super) fn open_own_folder(path: &Path) -> io::Result<File> {
    let flags = libc::O_DIRECTORY | libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let folder = File::options().read(true).custom_flags(flags).open(path)?;
    // SAFETY: geteuid reads and writes no memory of ours.
    if folder.metadata()?.uid() != unsafe { libc::geteuid() } {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    Ok(folder)
}

/// The name of a signal; none for one that has no name.
pub fn signal_name(signal: i32) -> Option<&'static str> {
    let (_, name) = SIGNALS.iter().find(|(number, _)| *number == signal)?;
    Some(name)
}

/// Those that end a process.
const SIGNALS: &[(libc::c_int, &str)] = &[
    (libc::SIGABRT, "SIGABRT"),
    (libc::SIGALRM, "SIGALRM"),
    (libc::SIGBUS, "SIGBUS"),
    (libc::SIGFPE, "SIGFPE"),
    (libc::SIGHUP, "SIGHUP"),
    (libc::SIGILL, "SIGILL"),
    (libc::SIGINT, "SIGINT"),
    (libc::SIGKILL, "SIGKILL"),
    #[cfg(target_os = "linux")]
    (libc::SIGIO, "SIGIO"),
    (libc::SIGPIPE, "SIGPIPE"),
    (libc::SIGPROF, "SIGPROF"),
    #[cfg(target_os = "linux")]
    (libc::SIGPWR, "SIGPWR"),
    (libc::SIGQUIT, "SIGQUIT"),
    (libc::SIGSEGV, "SIGSEGV"),
    #[cfg(target_os = "linux")]
    (libc::SIGSTKFLT, "SIGSTKFLT"),
    (libc::SIGSYS, "SIGSYS"),
    (libc::SIGTERM, "SIGTERM"),
    (libc::SIGTRAP, "SIGTRAP"),
    (libc::SIGUSR1, "SIGUSR1"),
    (libc::SIGUSR2, "SIGUSR2"),
    (libc::SIGVTALRM, "SIGVTALRM"),
    (libc::SIGXCPU, "SIGXCPU"),
    (libc::SIGXFSZ, "SIGXFSZ"),
];

/// The result of a libc call that gives -1 and sets errno when it fails.
pub(super) fn checked(result: libc::c_int) -> io::Result<libc::c_int> {
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Makes a call again for as long as signals interrupt it.
pub(super) fn retry(mut call: impl FnMut() -> libc::c_int) -> io::Result<libc::c_int> {
    loop {
        match checked(call()) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

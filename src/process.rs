//! Commands: started, bounded in time and memory, and ended.
//!
//! The only module that starts processes.
//!
//! Stdout and stderr are one pipe, which keeps their true order. The pipe says nothing about the
//! shell: a background process holds it open for as long as it likes, and one that closed it may
//! still run. So a command has ended when its *shell* has; what is in the pipe by then is read,
//! and from then on a thread discards what comes, so that a background process neither blocks on a
//! full pipe nor dies of a closed one.
//!
//! What is too long to be kept in memory lies in a file, for as long as the run lasts and no
//! longer.
//!
//! Every command gets a session and process group of its own. A signal goes to the group while the
//! shell is not reaped, since until then no other process can get its number. Groups in which
//! something lives on are remembered and killed by [`Processes::finish`].
//!
//! Some processes leave the group: a daemon, `setsid`, but also what `timeout` runs. On Linux they
//! are found through `/proc` by their parents and sessions, as long as these lead to a command, and
//! end with its time limit. The way from a daemon is cut, since its parent has ended. A program
//! that starts nothing but commands keeps hold of it by [`adopt_orphans`], and kills it when the
//! run ends, as anything that was left in the background; but not the children that it had before
//! its first command. The first process of a container leaves daemons to the system, which ends
//! them with it.
//! On Windows a job object holds all that came of a command. Elsewhere, and without a `/proc`, what
//! leaves the group outlives the run.

mod capture;
#[cfg(unix)]
mod descendants;
mod ending;
#[cfg(windows)]
mod job;
#[cfg(unix)]
#[path = "process/unix.rs"]
mod os;
#[cfg(windows)]
#[path = "process/windows.rs"]
mod os;
#[cfg(unix)]
mod output;
#[cfg(windows)]
#[path = "process/reader.rs"]
mod output;
#[cfg(unix)]
mod signals;
#[cfg(windows)]
#[path = "process/console.rs"]
mod signals;
mod spill;
mod standard;
#[cfg(unix)]
mod wait;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};
use std::thread;
use std::time::Duration;

use crate::secret::Mask;
use crate::time::Deadline;

use self::capture::Capture;
#[cfg(unix)]
use self::descendants::Family;
#[cfg(windows)]
use self::os::Family;
use self::os::Group;
use self::output::Output;
use self::spill::{SpillDir, SpillFile};

pub use self::capture::Captured;
pub use self::ending::{Ending, watch};
pub use self::os::{
    SHELL, adopt_orphans, end_process, shell_is_present, signal_name, survive_file_size_limit,
};
pub use self::spill::FullOutput;
pub use self::standard::{Standard, Stderr, Stdin, Stdout, tell};

/// A command, and what surrounds it.
#[derive(Clone, Copy)]
pub struct Spec<'a> {
    /// What the shell is to run.
    pub command: &'a str,
    /// Where it runs.
    pub directory: &'a Path,
    /// The whole environment; nothing is inherited.
    pub environment: &'a [(OsString, OsString)],
    /// What is masked in its output.
    pub mask: &'a Mask,
}

/// How long a command may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// After this it is told to end; none lets it run.
    pub time: Option<Duration>,
    /// After this, counted from then, what is left of it is killed.
    pub grace: Duration,
}

/// A command that has ended.
#[derive(Debug, PartialEq, Eq)]
pub struct Ended {
    /// In what way.
    pub how: How,
    /// What it wrote until then.
    pub output: Captured,
    /// Whether a process of its group lives on in the background.
    pub still_running: bool,
    /// Whether a background process still holds the output open. What that writes is lost.
    pub still_held: bool,
}

/// In what way a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum How {
    /// The shell exited with this code.
    Exited(i32),
    /// This signal ended the shell; see [`signal_name`].
    Signalled(i32),
    /// The time limit passed, and all that came of the command was killed.
    TimedOut,
}

/// The processes of a run.
///
/// Can be shared with a thread that watches for signals: [`Processes::finish`] may be called while
/// a command runs.
pub struct Processes {
    groups: Mutex<Groups>,
    /// What was there before the first command; none before that.
    strangers: OnceLock<Family>,
    /// Whether somebody has ended who is not reaped yet.
    is_due: AtomicBool,
    /// None where output that is too long is kept nowhere.
    spills: Option<Arc<SpillDir>>,
}

struct Groups {
    /// Those in which something may be alive.
    alive: Vec<Group>,
    /// The shells that are not reaped.
    shells: Vec<u32>,
    finished: bool,
}

/// How long after the end of the shell the end of the output is waited for. It is there at once
/// unless something in the background holds the pipe; this is for the kind that is about to end
/// too, such as the `tee` of a process substitution.
const DRAIN: Duration = Duration::from_millis(100);

/// How long a killed shell may take to be gone. Only one that hangs in the kernel takes long.
const DEATH: Duration = Duration::from_secs(2);

impl Processes {
    /// None yet.
    pub fn new() -> Processes {
        os::notice_children();
        let groups = Groups { alive: Vec::new(), shells: Vec::new(), finished: false };
        Processes {
            groups: Mutex::new(groups),
            strangers: OnceLock::new(),
            is_due: AtomicBool::new(false),
            spills: None,
        }
    }

    /// Keeps output that is too long for a result in files of up to 64 MiB, 1 GiB in all, which
    /// [`Processes::finish`] removes. They are where this environment has temporary files; without
    /// such a place there are none.
    pub fn with_files(mut self, environment: &[(OsString, OsString)]) -> Processes {
        self.spills = Some(Arc::new(SpillDir::new(environment)));
        self
    }

    /// Runs a command to its end.
    ///
    /// # Errors
    ///
    /// It could not be started, or the run is finished. Whatever a command that was started does
    /// is no error.
    pub fn run(&self, spec: &Spec<'_>, limits: Limits) -> io::Result<Ended> {
        self.run_draining(spec, limits, DRAIN)
    }

    fn run_draining(&self, spec: &Spec<'_>, limits: Limits, drain: Duration) -> io::Result<Ended> {
        let (pipe, writer) = io::pipe()?;
        let spill = self.spills.clone().map(SpillFile::new);
        let mut output = Output::new(pipe, Capture::new(spec.mask.clone(), spill))?;
        let group = self.start(spec, writer);
        self.catch_up();
        let group = group?;
        let shell = group.shell();

        let in_time = output.until_shell_ends(&shell, limits.time);
        let mut shell_ended = in_time;
        if !in_time {
            let family = group.terminate();
            let grace = Deadline::after(Some(limits.grace));
            if output.until_shell_ends(&shell, grace.remaining()) {
                output.is_held_after(grace.remaining());
            }
            self.kill(&group, &family);
            self.catch_up();
            shell_ended = output.until_shell_ends(&shell, Some(DEATH));
        }
        let still_held = output.is_held_after(Some(drain));
        let exit = shell_ended.then(|| self.reap(&group)).transpose();
        self.catch_up();
        let exit = exit?;
        let (how, still_running) = exit.filter(|_| in_time).unwrap_or((How::TimedOut, false));
        Ok(Ended { how, output: output.finish(), still_running, still_held })
    }

    /// Kills whatever the commands left running, and the one that runs; none is started afterwards.
    /// Gives the names of what was killed, as far as the system tells (Linux). Removes the files
    /// that hold whole outputs.
    ///
    /// To be called explicitly: a program that aborts on panic, or that a signal ends, drops
    /// nothing.
    pub fn finish(&self) -> BTreeSet<String> {
        let groups = lock_within(&self.groups, DEATH).map(|mut groups| {
            groups.finished = true;
            (std::mem::take(&mut groups.alive), groups)
        });
        let killed = match (self.strangers.get(), &groups) {
            (Some(strangers), Some((alive, groups))) => {
                os::kill_all(alive, &groups.shells, strangers)
            }
            // Starting a shell may hang in a directory that does not answer.
            (Some(strangers), None) => os::kill_all(&[], &[], strangers),
            // No command was ever started.
            (None, _) => BTreeSet::new(),
        };
        drop(groups);
        if let Some(spills) = &self.spills {
            spills.finish();
        }
        killed
    }

    /// Reaps what commands left behind and has ended, so that none stays a zombie. Not while a
    /// shell is started, which may hang, and whoever watches for signals must not wait for that:
    /// whoever holds the groups catches up.
    #[cfg(unix)]
    fn reap_orphans(&self) {
        self.is_due.store(true, Ordering::SeqCst);
        self.catch_up();
    }

    /// Reaps what could not be reaped when it ended. To be called once the groups are let go.
    fn catch_up(&self) {
        if self.is_due.load(Ordering::SeqCst)
            && let Some(groups) = lock_within(&self.groups, Duration::ZERO)
        {
            self.is_due.store(false, Ordering::SeqCst);
            os::reap_orphans(&groups.shells);
        }
    }

    /// Starts and remembers in one go, so that [`Processes::finish`] misses nothing.
    fn start(&self, spec: &Spec<'_>, output: io::PipeWriter) -> io::Result<Group> {
        let mut groups = lock(&self.groups);
        if groups.finished {
            return Err(io::Error::other("the run is ending"));
        }
        self.strangers.get_or_init(os::strangers);
        let group = Group::start(spec, output)?;
        groups.alive.push(group.clone());
        groups.shells.push(group.id());
        Ok(group)
    }

    /// Kills a command and its family, and not what others left in the background.
    fn kill(&self, group: &Group, family: &Family) {
        group.kill(family, &lock(&self.groups).shells);
    }

    /// Gives the number of an ended shell free, and forgets the groups that nothing lives in. In
    /// one go, since the number of a forgotten group may soon belong to somebody else. Gives how
    /// the shell ended, and whether something lives on in its group.
    fn reap(&self, group: &Group) -> io::Result<(How, bool)> {
        let mut groups = lock(&self.groups);
        let how = group.reap();
        let Groups { alive, shells, .. } = &mut *groups;
        shells.retain(|shell| *shell != group.id());
        os::reap_orphans(shells);
        alive.retain(|group| !group.is_empty(shells));
        how.map(|how| (how, alive.iter().any(|other| other.id() == group.id())))
    }
}

impl Default for Processes {
    fn default() -> Processes {
        Processes::new()
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        self.finish();
    }
}

/// What a thread that panicked left behind is still whole: nothing here is changed in two steps.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The same, unless somebody holds it for longer than `limit`.
fn lock_within<T>(mutex: &Mutex<T>, limit: Duration) -> Option<MutexGuard<'_, T>> {
    let deadline = Deadline::after(Some(limit));
    loop {
        match mutex.try_lock() {
            Ok(guard) => return Some(guard),
            Err(TryLockError::Poisoned(error)) => return Some(error.into_inner()),
            Err(TryLockError::WouldBlock) if deadline.has_passed() => return None,
            Err(TryLockError::WouldBlock) => thread::sleep(Duration::from_millis(1)),
        }
    }
}

/// The one argument of `cmd.exe`: no autorun commands, and the command between quotes of which
/// `/S` takes off the outer two and no others.
#[cfg(any(windows, test))]
fn cmd_argument(command: &str) -> io::Result<String> {
    let command = command.trim_end();
    if command.contains(['\n', '\r']) {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "cmd.exe runs the first line only; join the lines with && or write them to a .cmd file",
        ));
    }
    Ok(format!("/D /S /C \"{command}\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_for_cmd_is_one_argument_with_its_quotes_as_they_are() {
        let argument = cmd_argument("dir \"C:\\a b\" & echo 100%\r\n").unwrap();
        assert_eq!(argument, "/D /S /C \"dir \"C:\\a b\" & echo 100%\"");
        let error = cmd_argument("echo one\necho two").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    }
}

#[cfg(all(test, unix))]
mod unix_tests {
    #![expect(clippy::unwrap_used, reason = "helpers of tests fail the test")]

    use super::*;
    use std::io::Read as _;
    use std::sync::mpsc;
    use std::time::Instant;

    /// Long enough for a slow machine, short against the 300 seconds that commands here would take.
    const SOON: Duration = Duration::from_secs(60);

    const UNLIMITED: Limits = Limits { time: None, grace: SOON };

    /// Time enough for a shell to get going, and no more grace than is needed.
    const SECOND: Limits = Limits { time: Some(Duration::from_secs(1)), grace: SOON };

    /// Runs a command that is to end soon, by itself or by its limits.
    #[track_caller]
    fn run(processes: &Processes, command: &str, limits: Limits) -> Ended {
        run_draining(processes, command, limits, DRAIN)
    }

    #[track_caller]
    fn run_draining(
        processes: &Processes,
        command: &str,
        limits: Limits,
        drain: Duration,
    ) -> Ended {
        let path = ("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into());
        // scripts/check.sh looks for what is left behind.
        let marker = ("TESTED_IN".into(), env!("CARGO_MANIFEST_DIR").into());
        let (directory, mask) = (Path::new("/"), &Mask::default());
        let spec = Spec { command, directory, environment: &[path, marker], mask };
        let begin = Instant::now();
        let ended = processes.run_draining(&spec, limits, drain).unwrap();
        assert!(begin.elapsed() < SOON, "{command}: {:?}", begin.elapsed());
        ended
    }

    #[track_caller]
    fn check(command: &str, how: How, output: &str, still_held: bool) {
        // A child that another test starts holds our pipes until it becomes its program. An output
        // that is to end is waited for until it does.
        let drain = if still_held { DRAIN } else { SOON };
        let ended = run_draining(&Processes::new(), command, UNLIMITED, drain);
        assert_eq!((ended.how, ended.output.head.as_str()), (how, output), "{command}");
        assert_eq!(ended.still_held, still_held, "{command}");
    }

    /// A pipe with a name, which tells whether the processes that were given it are alive: it ends
    /// with the last of them.
    struct Lifeline {
        path: std::path::PathBuf,
        pipe: std::fs::File,
    }

    impl Lifeline {
        #[track_caller]
        fn new(name: &str) -> Lifeline {
            let file = format!("uncut-process-{}-{name}", std::process::id());
            let path = std::env::temp_dir().join(file);
            let command = format!("mkfifo {}", path.display());
            assert_eq!(run(&Processes::new(), &command, UNLIMITED).how, How::Exited(0));
            // Opened for writing too, or it would wait for a writer.
            let both = std::fs::File::options().read(true).write(true).open(&path).unwrap();
            let pipe = std::fs::File::open(&path).unwrap();
            drop(both);
            Lifeline { path, pipe }
        }

        /// Gives the other end to a command, as its file 3.
        fn held_by(&self, command: &str) -> String {
            format!("exec 3>{}; {command}", self.path.display())
        }

        /// Returns what was written when the last process that holds the other end is dead.
        #[track_caller]
        fn wait(mut self) -> String {
            let (sender, text) = mpsc::channel();
            let path = self.path.clone();
            thread::spawn(move || {
                let mut text = String::new();
                self.pipe.read_to_string(&mut text).unwrap();
                sender.send(text).unwrap();
            });
            let text = text.recv_timeout(SOON);
            std::fs::remove_file(path).unwrap();
            text.unwrap()
        }
    }

    #[test]
    fn a_command_ends_with_its_shell() {
        check("echo out; echo err >&2; echo out", How::Exited(0), "out\nerr\nout\n", false);
        check("exit 7", How::Exited(7), "", false);
        check("kill -KILL $$", How::Signalled(9), "", false);
        check("sleep 300 & echo ok", How::Exited(0), "ok\n", true);
        check("sleep 300 >/dev/null 2>&1 & echo ok", How::Exited(0), "ok\n", false);
        check("-x 2>/dev/null; echo $?", How::Exited(0), "127\n", false);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_command_ends_with_its_shell_when_a_daemon_holds_the_output() {
        // These outlive the run, so not for long.
        check("setsid sleep 20 & echo ok", How::Exited(0), "ok\n", true);
        check("(setsid sh -c 'sleep 20 &' &); echo ok", How::Exited(0), "ok\n", true);
    }

    #[test]
    fn input_is_empty_and_there_is_no_terminal() {
        check("cat; read line; echo $?", How::Exited(0), "1\n", false);
        check("(head -1 </dev/tty) 2>/dev/null || echo none", How::Exited(0), "none\n", false);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_shell_leads_a_session_and_a_group_of_its_own() {
        let command = "read id name state parent group session rest </proc/$$/stat
            test $id = $group && test $id = $session && echo leads";
        check(command, How::Exited(0), "leads\n", false);
    }

    #[test]
    fn signals_are_as_a_program_expects_them() {
        survive_file_size_limit();
        check("kill -XFSZ $$", How::Signalled(25), "", false);
        check("kill -PIPE $$", How::Signalled(13), "", false);
    }

    #[test]
    fn what_the_shell_wrote_is_there_at_its_end_though_the_output_is_held() {
        let command = "sleep 300 & head -c 20000 /dev/zero | tr '\\0' a";
        let check = || {
            let processes = Processes::new();
            for _ in 0..10 {
                // Without a wait it is a matter of luck how far the reader is by then, and more so
                // where many want to run.
                let ended = run_draining(&processes, command, UNLIMITED, Duration::ZERO);
                assert_eq!((ended.output.head + &ended.output.tail).len(), 20_000);
            }
        };
        thread::scope(|scope| (0..16).for_each(|_| drop(scope.spawn(check))));
    }

    #[test]
    fn a_flood_is_counted_and_not_kept() {
        let command = "head -c 50000000 /dev/zero | tr '\\0' a";
        let Captured { head, tail, omitted, .. } =
            run(&Processes::new(), command, UNLIMITED).output;
        let (head, tail) = (head.trim_matches('.'), tail.trim_matches('.'));
        assert_eq!((head.len() + tail.len()) as u64 + omitted, 50_000_000);
        assert!(head.len() + tail.len() <= 32 * 1024);
    }

    #[test]
    fn a_flood_does_not_starve_the_timer() {
        let ended = run(&Processes::new(), "yes", SECOND);
        assert_eq!((ended.how, ended.still_held), (How::TimedOut, false));
        assert!(ended.output.omitted > 0);
    }

    #[test]
    fn a_command_that_takes_too_long_may_tidy_up() {
        let command = "trap 'echo tidied; exit 0' TERM; echo begun; while :; do sleep 0.1; done";
        let Ended { how, output, .. } = run(&Processes::new(), command, SECOND);
        assert!(output.head.starts_with("begun\n") && output.head.ends_with("tidied\n"));
        assert_eq!(how, How::TimedOut);
    }

    #[test]
    fn what_ignores_the_request_to_end_is_killed() {
        let lifeline = Lifeline::new("stubborn");
        let command = lifeline.held_by(
            "(trap '' TERM; echo child >&3; sleep 300) & trap '' TERM; echo begun; sleep 300",
        );
        let limits = Limits { grace: Duration::from_secs(1), ..SECOND };
        let ended = run(&Processes::new(), &command, limits);
        assert_eq!((ended.how, ended.output.head.as_str()), (How::TimedOut, "begun\n"));
        assert!(!ended.still_held);
        assert_eq!(lifeline.wait(), "child\n");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn what_left_the_group_and_not_the_session_is_killed_too() {
        let lifeline = Lifeline::new("session");
        // What timeout runs is in a group of its own with it.
        let command = lifeline.held_by("timeout 300 sh -c 'echo child >&3; sleep 300'");
        let limits = Limits { grace: Duration::from_secs(1), ..SECOND };
        assert_eq!(run(&Processes::new(), &command, limits).how, How::TimedOut);
        assert_eq!(lifeline.wait(), "child\n");
    }

    #[test]
    fn what_runs_in_the_background_is_noted_whether_it_holds_the_output_or_not() {
        for (command, still_running, still_held) in [
            ("sleep 300 & echo ok", true, true),
            ("sleep 300 >/dev/null 2>&1 & echo ok", true, false),
            ("sleep 0.01 & wait", false, false),
        ] {
            let drain = if still_held { DRAIN } else { SOON };
            let ended = run_draining(&Processes::new(), command, UNLIMITED, drain);
            let noted = (ended.still_running, ended.still_held);
            assert_eq!(noted, (still_running, still_held), "{command}");
        }
        let ended = run(&Processes::new(), "sleep 300 >/dev/null 2>&1 & sleep 300", SECOND);
        assert_eq!((ended.how, ended.still_running), (How::TimedOut, false));
    }

    #[test]
    fn a_background_process_lives_until_the_run_is_finished() {
        let processes = Processes::new();
        let lifeline = Lifeline::new("background");
        let command = lifeline.held_by("sleep 300 >/dev/null 2>&1 &");
        assert_eq!(run(&processes, &command, UNLIMITED).how, How::Exited(0));
        // Alive after the next command, which forgets the groups that are empty.
        assert_eq!(run(&processes, "true", UNLIMITED).how, How::Exited(0));
        assert_eq!(lock(&processes.groups).alive.len(), 1);
        processes.finish();
        assert_eq!(lifeline.wait(), "");
    }

    #[test]
    fn a_background_process_is_neither_blocked_nor_killed_by_the_end_of_its_command() {
        let processes = Processes::new();
        let lifeline = Lifeline::new("writer");
        // More than a pipe holds, written when the command has long ended.
        let command =
            lifeline.held_by("(sleep 0.5; head -c 1000000 /dev/zero && echo written >&3) &");
        assert!(run(&processes, &command, UNLIMITED).still_held);
        assert_eq!(lifeline.wait(), "written\n");
    }

    #[test]
    fn finishing_ends_the_command_that_runs_and_lets_no_other_start() {
        let processes = Processes::new();
        let lifeline = Lifeline::new("finish");
        thread::scope(|scope| {
            let running = scope.spawn(|| {
                let command = lifeline.held_by("echo begun >&3; sleep 300");
                run(&processes, &command, UNLIMITED)
            });
            let mut begun = [0; 6];
            // Comes when the command is running.
            while (&lifeline.pipe).read(&mut begun).unwrap() == 0 {
                thread::yield_now();
            }
            processes.finish();
            assert_eq!(running.join().unwrap().how, How::Signalled(9));
        });
        let (directory, mask) = (Path::new("/"), &Mask::default());
        let spec = Spec { command: "true", directory, environment: &[], mask };
        let error = processes.run(&spec, UNLIMITED).unwrap_err();
        assert_eq!(error.to_string(), "the run is ending");
        lifeline.wait();
    }

    #[test]
    fn a_group_whose_number_somebody_else_got_is_left_alone() {
        use std::os::unix::process::CommandExt as _;
        // It leads a group, and nobody who came of a command does.
        let mut stranger = std::process::Command::new("/bin/cat");
        stranger.process_group(0).stdin(std::process::Stdio::piped());
        let mut stranger = stranger.stdout(std::process::Stdio::null()).spawn().unwrap();
        let processes = Processes::new();
        let group = Group::with_number(stranger.id());
        lock(&processes.groups).alive.push(group.clone());
        run(&processes, "true", UNLIMITED);
        assert!(lock(&processes.groups).alive.is_empty());
        lock(&processes.groups).alive.push(group);
        assert!(processes.finish().is_empty());
        assert_eq!(stranger.try_wait().unwrap(), None);
        drop(stranger.stdin.take());
        assert!(stranger.wait().unwrap().success());
    }

    #[test]
    fn a_run_can_be_finished_while_the_start_of_a_shell_hangs() {
        let processes = Processes::new();
        let starting = lock(&processes.groups);
        thread::scope(|scope| {
            let finish = scope.spawn(|| processes.finish());
            let begin = Instant::now();
            while !finish.is_finished() {
                assert!(begin.elapsed() < SOON);
                thread::yield_now();
            }
        });
        drop(starting);
    }

    #[test]
    fn what_tidies_up_behind_its_shell_has_the_grace_too() {
        let tidy = "(trap 'sleep .2; echo tidied; exit' TERM; while :; do sleep .05; done) & wait";
        let limits = Limits { time: Some(Duration::from_millis(500)), grace: SOON };
        let ended = run(&Processes::new(), tidy, limits);
        // Some shells tell of their own end first.
        assert!(ended.output.head.ends_with("tidied\n"), "{ended:?}");
        assert_eq!(ended.how, How::TimedOut);
    }

    #[test]
    fn a_flood_in_the_background_does_not_hold_its_command_up() {
        let begin = Instant::now();
        let ended = run(&Processes::new(), "cat /dev/zero & echo hi", UNLIMITED);
        assert!(ended.still_held && begin.elapsed() < SOON);
    }

    #[test]
    fn groups_in_which_nothing_lives_are_forgotten() {
        let processes = Processes::new();
        for _ in 0..3 {
            run(&processes, "true", UNLIMITED);
        }
        assert!(lock(&processes.groups).alive.is_empty());
    }
}

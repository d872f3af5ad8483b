//! A folder of its own for each test, and the binary to run in it.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// A folder that is removed when the test ends.
pub(crate) struct Dir(PathBuf);

impl Dir {
    /// An empty folder; `name` is for the reader of a failure.
    pub(crate) fn new(name: &str) -> Dir {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let unique =
            format!("{name}-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(unique);
        fs::create_dir_all(&path).unwrap();
        Dir(path.canonicalize().unwrap())
    }

    /// The folder, or a file in it.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Writes a file and returns its path.
    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    /// The folder with one more file in it.
    pub(crate) fn with(self, name: &str, content: impl AsRef<[u8]>) -> Dir {
        self.write(name, content);
        self
    }

    /// What is in it, in order.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// Reads a file that has to be there.
    #[track_caller]
    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        // A test may have taken the permissions away, or the folder itself.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The binary that is tested: that of this build, or the one that `UNCUT_TEST_BINARY` names.
pub(crate) fn binary() -> OsString {
    named_binary().unwrap_or_else(|| env!("CARGO_BIN_EXE_uncut").into())
}

/// The binary of a release, where that is what is tested.
pub(crate) fn named_binary() -> Option<OsString> {
    std::env::var_os("UNCUT_TEST_BINARY")
}

/// The binary, started with nothing but what the test says.
#[must_use]
pub(crate) struct Uncut {
    command: Command,
    stdin: Vec<u8>,
}

/// What the binary left behind.
#[derive(Debug)]
pub(crate) struct Ran {
    /// The exit code; none when a signal ended it.
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// No run of a test takes nearly as long; one that does hangs.
const HANGS: Duration = Duration::from_secs(60);

impl Uncut {
    /// The binary in a folder, with an empty environment but for a PATH.
    pub(crate) fn new(dir: &Dir) -> Uncut {
        Uncut::of(Command::new(binary()), dir)
    }

    /// The binary below another program, whose last argument it is.
    pub(crate) fn below(dir: &Dir, program: &str, arguments: &[&str]) -> Uncut {
        let mut command = Command::new(program);
        command.args(arguments).arg(binary());
        Uncut::of(command, dir)
    }

    fn of(mut command: Command, dir: &Dir) -> Uncut {
        command.env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin").current_dir(dir.path("."));
        #[cfg(unix)]
        reset_signals(&mut command);
        // Commands inherit it: scripts/check.sh looks for those that are left behind.
        command.env("TESTED_IN", env!("CARGO_MANIFEST_DIR"));
        Uncut { command, stdin: Vec::new() }
    }

    pub(crate) fn arg(mut self, argument: impl AsRef<OsStr>) -> Uncut {
        self.command.arg(argument);
        self
    }

    pub(crate) fn args<A: AsRef<OsStr>>(mut self, arguments: impl IntoIterator<Item = A>) -> Uncut {
        self.command.args(arguments);
        self
    }

    pub(crate) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Uncut {
        self.command.env(name, value);
        self
    }

    pub(crate) fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Uncut {
        self.stdin = bytes.into();
        self
    }

    /// The command, for streams of the test's own.
    pub(crate) fn into_command(self) -> Command {
        self.command
    }

    /// Starts it and leaves it running.
    pub(crate) fn spawn(mut self) -> Child {
        self.command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        start(&mut self.command)
    }

    /// Starts it with another stdout, which is not read.
    pub(crate) fn run_with_stdout(mut self, stdout: Stdio) -> Ran {
        self.command.stdin(Stdio::null()).stdout(stdout).stderr(Stdio::piped());
        finish(start(&mut self.command))
    }

    /// Runs it to its end.
    pub(crate) fn run(mut self) -> Ran {
        self.command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = start(&mut self.command);
        let mut stdin = child.stdin.take().unwrap();
        // The binary may rightly not read it.
        let _ = stdin.write_all(&self.stdin);
        drop(stdin);
        finish(child)
    }
}

/// Starts a program, or says what kept the machine from it.
#[track_caller]
fn start(command: &mut Command) -> Child {
    command.spawn().unwrap_or_else(|error| panic!("this machine can't start {command:?}: {error}"))
}

/// Lets the program see signals as if it was started at a terminal: `nohup`, a background job or a
/// CI system may have us, and so what we start, ignore some.
#[cfg(unix)]
#[expect(unsafe_code, reason = "std sets no signal actions")]
fn reset_signals(command: &mut Command) {
    use std::os::unix::process::CommandExt as _;
    // SAFETY: signal is async-signal-safe, and touches no memory of ours.
    unsafe {
        command.pre_exec(|| {
            for signal in 1..32 {
                // It fails for those that nobody can ignore.
                libc::signal(signal, libc::SIG_DFL);
            }
            Ok(())
        });
    }
}

/// Waits for the end of a run.
///
/// # Panics
///
/// When it hangs.
#[track_caller]
pub(crate) fn finish(mut child: Child) -> Ran {
    let stdout = drain(child.stdout.take());
    let stderr = drain(child.stderr.take());
    let (ended, end) = mpsc::channel();
    let id = child.id();
    thread::spawn(move || ended.send(child.wait().unwrap()));
    let Ok(status) = end.recv_timeout(HANGS) else {
        let _ = Command::new("kill").args(["-KILL", &id.to_string()]).spawn();
        panic!("the binary hangs");
    };
    let text = |bytes: mpsc::Receiver<Vec<u8>>| {
        let bytes = bytes.recv_timeout(HANGS).expect("somebody still holds the binary's output");
        String::from_utf8(bytes).unwrap()
    };
    Ran { code: status.code(), stdout: text(stdout), stderr: text(stderr) }
}

fn drain(stream: Option<impl Read + Send + 'static>) -> mpsc::Receiver<Vec<u8>> {
    let (done, bytes) = mpsc::channel();
    thread::spawn(move || {
        let mut all = Vec::new();
        if let Some(mut stream) = stream {
            stream.read_to_end(&mut all).unwrap();
        }
        done.send(all)
    });
    bytes
}

//! What a command costs: its time beside std's own start and wait of the same shell, and the peak
//! memory of the binary whatever a command prints.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use uncut::process::{Limits, Processes, SHELL, Spec};
use uncut::secret::Mask;

/// Calls of each kind.
const CALLS: usize = 1_000;

/// The median time of a call of `true`: ours, and std's own, in turn.
pub(crate) fn call() -> (Duration, Duration) {
    let environment: [(OsString, OsString); 1] = [("PATH".into(), "/usr/bin:/bin".into())];
    let processes = Processes::new().with_files(&[]);
    let mask = Mask::default();
    let directory = Path::new("/");
    let spec = Spec { command: "true", directory, environment: &environment, mask: &mask };
    let limits = Limits { time: Some(Duration::from_secs(60)), grace: Duration::from_secs(2) };
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..CALLS {
        let started = Instant::now();
        processes.run(&spec, limits).unwrap();
        ours.push(started.elapsed());
        let started = Instant::now();
        let mut command = Command::new(SHELL);
        command.args(["-c", "true"]).current_dir(directory).env_clear().envs(environment.clone());
        command.stdin(Stdio::null()).output().unwrap();
        theirs.push(started.elapsed());
    }
    (median(ours), median(theirs))
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

/// Peak memory in KiB and time of a run with one command, and the time of the command in a shell.
pub(crate) struct Flood {
    pub(crate) peak: Option<u64>,
    pub(crate) ours: Duration,
    pub(crate) theirs: Duration,
}

/// Lets the binary run one command, from a recording.
pub(crate) fn flood(binary: &Path, folder: &Path, command: &str) -> Flood {
    let recording = folder.join("replay.jsonl");
    let lines = [("printed", command), ("peak", "grep VmHWM /proc/$PPID/status >peak")];
    let mut text: String = lines.iter().map(|(id, command)| call_of(id, command)).collect();
    text.push_str(
        r#"{"choices":[{"finish_reason":"stop","message":{"role":"assistant","content":"done"}}]}"#,
    );
    fs::write(&recording, text).unwrap();
    let peak = folder.join("peak");
    let _ = fs::remove_file(&peak);
    let mut run = Command::new(binary);
    run.args(["-q", "--no-agents-md", "--replay"]).arg(&recording).arg("go").current_dir(folder);
    let ours = time(&mut run);
    let theirs = time(Command::new(SHELL).args(["-c", command]).current_dir(folder));
    let told = fs::read_to_string(peak).unwrap_or_default();
    let peak = told.split_whitespace().nth(1).and_then(|number| number.parse().ok());
    Flood { peak, ours, theirs }
}

/// A completion that calls the shell. The commands here hold nothing that JSON would spell
/// otherwise but backslashes.
fn call_of(id: &str, command: &str) -> String {
    let command = command.replace('\\', r"\\\\");
    format!(
        r#"{{"choices":[{{"finish_reason":"tool_calls","message":{{"role":"assistant","content":null,"tool_calls":[{{"id":"{id}","type":"function","function":{{"name":"shell","arguments":"{{\"command\":\"{command}\"}}"}}}}]}}}}]}}"#
    ) + "\n"
}

/// How long a command takes whose output goes into a pipe that is read.
fn time(command: &mut Command) -> Duration {
    let started = Instant::now();
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    std::io::copy(child.stdout.as_mut().unwrap(), &mut std::io::sink()).unwrap();
    assert!(child.wait().unwrap().success());
    started.elapsed()
}

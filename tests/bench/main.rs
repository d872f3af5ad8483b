//! What a run costs, as ratios to a loop of a few lines that does the same I/O with std alone:
//! one request a step on one endpoint, `true` in a shell, two synced lines in a log.
//!
//! Both are processes of their own, run in turn against the same scripted endpoint. Behind that,
//! what commands, reading a large response or log and the tools for files cost, each beside what
//! does the same work without us. Nothing is asserted; the numbers are for reading.
//!
//! Words on the command line choose among the parts, which are all run without any.

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]
#![expect(clippy::unwrap_used, reason = "a benchmark may stop at the first fault")]
#![expect(clippy::disallowed_methods, reason = "a benchmark reads its own arguments")]

mod baseline;
#[cfg(unix)]
mod commands;
mod endpoint;
mod files;
mod sessions;
mod wire;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use endpoint::{Call, Endpoint, TRUE};

/// One run of either program.
struct Sample {
    /// From the start of the process to the first byte of its first request.
    first_byte: Duration,
    /// From the start of the process to its end.
    whole: Duration,
    /// Peak memory in KiB, where /proc tells.
    peak: Option<u64>,
    /// Bytes of all requests.
    sent: u64,
}

/// The name of a part of the benchmark, and what prints its figures, with a folder to work in.
type Part = (&'static str, fn(&Path));

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, word, url, log] = arguments.as_slice()
        && word == "baseline"
    {
        return baseline::run(url, Path::new(log));
    }
    if let [_, word, reader, input] = arguments.as_slice()
        && word == "read"
    {
        return wire::read(reader, input);
    }
    let folder =
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("bench-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    println!("figure\tuncut\tbaseline\tratio");
    let parts: &[Part] = &[
        ("start", start),
        ("steps", steps),
        ("wire", wire::compare),
        ("sessions", sessions::compare),
        #[cfg(unix)]
        ("shell", shell),
        ("files", files::run),
        ("sizes", sizes),
    ];
    let words: Vec<&String> = arguments[1..].iter().filter(|word| !word.starts_with('-')).collect();
    for (name, run) in parts {
        if words.is_empty() || words.iter().any(|word| word == name) {
            run(&folder);
        }
    }
    fs::remove_dir_all(&folder).unwrap();
}

/// Start to first byte: the medians of 40 runs of each, in turn.
fn start(folder: &Path) {
    let mut pairs: Vec<(Sample, Sample)> = (0..40).map(|_| pair(folder, 0)).collect();
    let (ours, theirs) = medians(&mut pairs, |sample| sample.first_byte);
    row("start to first byte", ours, theirs);
}

/// What a step adds, and what a long run needs.
fn steps(folder: &Path) {
    for steps in [10, 100, 400] {
        let mut pairs: Vec<(Sample, Sample)> = (0..5).map(|_| pair(folder, steps)).collect();
        let (ours, theirs) = medians(&mut pairs, |sample| sample.whole / (steps + 1));
        row(&format!("a step, of {steps}"), ours, theirs);
        let (ours, theirs) = &pairs[0];
        println!("bytes sent in {steps} steps\t{}\t{}", ours.sent, theirs.sent);
        if let (Some(ours), Some(theirs)) = (ours.peak, theirs.peak) {
            println!("peak memory in {steps} steps (KiB)\t{ours}\t{theirs}");
        }
    }
}

/// What a command costs in time beside the same shell alone, and what it costs in memory that a
/// command prints much, beside one that prints nothing.
#[cfg(unix)]
fn shell(folder: &Path) {
    let (ours, theirs) = commands::call();
    row("a call of true", ours, theirs);
    let idle = commands::flood(&binary(), folder, "true").peak;
    for (name, command) in [
        ("true", "true"),
        ("yes, 1 GB", "yes | head -c 1000000000"),
        ("noise, 200 MB", "head -c 200000000 /dev/urandom"),
        ("a line of 1 GB", r"head -c 1000000000 /dev/zero | tr '\0' a"),
        ("200,000 short lines", "seq 1 200000"),
    ] {
        let flood = commands::flood(&binary(), folder, command);
        row(&format!("a run with {name}"), flood.ours, flood.theirs);
        if let (Some(peak), Some(idle)) = (flood.peak, idle) {
            let ratio = peak as f64 / idle as f64;
            println!("peak memory with {name} (KiB), beside true\t{peak}\t{idle}\t{ratio:.2}");
        }
    }
}

fn sizes(_folder: &Path) {
    let size = fs::metadata(binary()).unwrap().len();
    println!("size of the release binary (bytes)\t{size}");
}

fn binary() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_uncut"))
}

/// One run of each, in turn, so that both meet the same machine.
fn pair(folder: &Path, steps: u32) -> (Sample, Sample) {
    let log = |name: &str| {
        let path = folder.join(name);
        let _ = fs::remove_file(&path);
        path
    };
    let session = log("uncut.jsonl");
    let ours = sample(steps, TRUE, |url| {
        let mut command = Command::new(binary());
        command.args(["--base-url", url, "--model", "m", "--max-steps", "1000", "--session"]);
        command.arg(&session).args(["-q", "--no-agents-md", "go"]);
        command
    });
    let session = log("baseline.jsonl");
    let theirs = sample(steps, TRUE, |url| {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["baseline", url]).arg(&session);
        command
    });
    (ours, theirs)
}

fn sample(steps: u32, call: Call, command: impl Fn(&str) -> Command) -> Sample {
    let endpoint = Endpoint::start(steps, call);
    let mut command = command(endpoint.url());
    command.stdin(Stdio::null()).stdout(Stdio::null()).current_dir(env!("CARGO_TARGET_TMPDIR"));
    let started = Instant::now();
    let mut child = command.spawn().unwrap();
    let seen = endpoint.serve(child.id());
    let status = child.wait().unwrap();
    assert!(status.success(), "{status}");
    Sample {
        first_byte: seen.first_byte.duration_since(started),
        whole: started.elapsed(),
        peak: seen.peak,
        sent: seen.bytes,
    }
}

fn medians(
    pairs: &mut [(Sample, Sample)],
    figure: impl Fn(&Sample) -> Duration,
) -> (Duration, Duration) {
    let median = |mut figures: Vec<Duration>| {
        figures.sort();
        figures[figures.len() / 2]
    };
    (
        median(pairs.iter().map(|(ours, _)| figure(ours)).collect()),
        median(pairs.iter().map(|(_, theirs)| figure(theirs)).collect()),
    )
}

fn row(figure: &str, ours: Duration, theirs: Duration) {
    let ratio = ours.as_secs_f64() / theirs.as_secs_f64();
    println!("{figure}\t{ours:.2?}\t{theirs:.2?}\t{ratio:.2}");
}

//! What a run costs, as ratios to a loop of a few lines that does the same I/O with std alone:
//! one request a step on one endpoint, `true` in a shell, two synced lines in a log.
//!
//! Both are processes of their own, run in turn against the same scripted endpoint. Behind that,
//! what commands, reading a large response or log and the tools for files cost, each beside what
//! does the same work without us, and last the same runs by other programs of the kind that are on
//! the PATH. Nothing is asserted; the numbers are for reading.
//!
//! Figures of 2026-12-01: AMD EPYC, two cores, Linux; the static binary of a release, which has
//! 2,462,616 bytes. The loop checks nothing. Where a step is nothing but `true` in a shell, most of
//! its time is that shell and the two syncs. The bytes that uncut sends beyond the loop's are the
//! system prompt and the schemas of the tools.
//!
//! | figure | uncut | std-only loop | ratio |
//! |---|---|---|---|
//! | start to first byte | 2.20 ms | 1.76 ms | 1.25 |
//! | a step, of 10 | 3.09 ms | 2.11 ms | 1.46 |
//! | a step, of 100 | 3.19 ms | 1.81 ms | 1.77 |
//! | a step, of 400 | 5.15 ms | 2.32 ms | 2.22 |
//! | CPU in 100 steps, without the commands | 148 ms | 30 ms | 4.9 |
//! | CPU in 400 steps, without the commands | 972 ms | 206 ms | 4.7 |
//! | peak memory in 10 steps | 2,468 KiB | 2,688 KiB | 0.92 |
//! | peak memory in 400 steps | 3,084 KiB | 3,228 KiB | 0.96 |
//! | bytes sent in 10 steps | 44,209 | 13,799 | 3.2 |
//! | bytes sent in 400 steps | 19,491,852 | 18,305,275 | 1.06 |
//!
//! Other work beside what does the same without uncut, on 2026-11-30, with a binary of 2,392,984
//! bytes and little else to do:
//!
//! | figure | uncut | the other | ratio |
//! |---|---|---|---|
//! | a call of `true`, beside std's spawn and wait | 0.81 ms | 0.65 ms | 1.25 |
//! | a session of 200 MB, beside `serde_json::Value` | 388 MB/s | 415 MB/s | 0.93 |
//! | peak memory of that | 197 MiB | 309 MiB | 0.64 |
//! | a command that prints 1 GB, beside `sh -c` alone | 1.74 s | 0.88 s | 2.0 |
//! | peak memory of that, beside one that prints nothing | 2,052 KiB | 1,856 KiB | 1.1 |
//! | lines 900,000 to 900,100 of a million, beside `sed` | 53 ms | 55 ms | 0.97 |
//!
//! A start that answers from a recording makes about 130 system calls.

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]
#![expect(clippy::unwrap_used, reason = "a benchmark may stop at the first fault")]
#![expect(clippy::disallowed_methods, reason = "a benchmark reads its own arguments")]

mod baseline;
#[cfg(unix)]
mod commands;
mod endpoint;
mod files;
mod peers;
mod sessions;
mod wire;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use endpoint::{Call, Endpoint, TRUE, Used};

/// One run of either program.
struct Sample {
    /// From the start of the process to the first byte of its first request.
    first_byte: Duration,
    /// From the start of the process to its end.
    whole: Duration,
    /// Before the answer.
    used: Used,
    /// Bytes of all requests.
    sent: u64,
}

/// The name of a part of the benchmark, and what prints its figures, with a folder to work in.
type Part = (&'static str, fn(&Path));

/// Those that are named as arguments are run, or else all.
const PARTS: &[Part] = &[
    ("start", start),
    ("steps", steps),
    ("wire", wire::compare),
    ("sessions", sessions::compare),
    #[cfg(unix)]
    ("shell", shell),
    ("files", files::run),
    ("size", |_| size()),
    ("peers", peers::compare),
];

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
    println!("figure\tuncut\tstd-only loop\tratio");
    let words: Vec<&String> = arguments[1..].iter().filter(|word| !word.starts_with('-')).collect();
    for (name, run) in PARTS {
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
        count(&format!("bytes sent in {steps} steps"), ours.sent, theirs.sent);
        if let (Some(ours), Some(theirs)) = (ours.used.peak, theirs.used.peak) {
            count(&format!("peak memory in {steps} steps (KiB)"), ours, theirs);
        }
        let cpu = |sample: &Sample| sample.used.cpu.unwrap_or_default();
        let ours: Duration = pairs.iter().map(|(ours, _)| cpu(ours)).sum();
        let theirs: Duration = pairs.iter().map(|(_, theirs)| cpu(theirs)).sum();
        if !theirs.is_zero() {
            row(&format!("CPU in {steps} steps, without the commands"), ours / 5, theirs / 5);
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

fn size() {
    let size = fs::metadata(binary()).unwrap().len();
    println!("size of the release binary (bytes)\t{size}");
}

/// The one of this build, or another that `UNCUT_TEST_BINARY` names.
fn binary() -> PathBuf {
    std::env::var_os("UNCUT_TEST_BINARY").unwrap_or(env!("CARGO_BIN_EXE_uncut").into()).into()
}

/// One run of each, in turn, so that both meet the same machine.
fn pair(folder: &Path, steps: u32) -> (Sample, Sample) {
    let log = |name: &str| {
        let path = folder.join(name);
        let _ = fs::remove_file(&path);
        path
    };
    let session = log("uncut.jsonl");
    let ours = sample(steps, TRUE, |url| ours(url, &session));
    let session = log("baseline.jsonl");
    let theirs = sample(steps, TRUE, |url| theirs(url, &session));
    (ours, theirs)
}

fn ours(url: &str, session: &Path) -> Command {
    let mut command = Command::new(binary());
    command.args(["--base-url", url, "--model", "m", "--max-steps", "1000", "--session"]);
    command.arg(session).args(["-q", "--no-agents-md", "go"]);
    command
}

fn theirs(url: &str, session: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["baseline", url]).arg(session);
    command
}

fn sample(steps: u32, call: Call, command: impl Fn(&str) -> Command) -> Sample {
    sample_at(&Endpoint::start(steps, call), command)
}

fn sample_at(endpoint: &Endpoint, command: impl Fn(&str) -> Command) -> Sample {
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
        used: seen.used,
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

fn count(figure: &str, ours: u64, theirs: u64) {
    println!("{figure}\t{ours}\t{theirs}\t{:.2}", ours as f64 / theirs as f64);
}

//! The tools for files on large ones, beside `sed`: a line edited in 30 MB, and 101 lines read near
//! the end of a million.
//!
//! Of a run that takes one call, that which only answers is taken off: what is left is the tool's.
//! `sed -i` does not sync what it writes, so it is followed by a `sync` of the file.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::endpoint::Call;
use crate::{binary, row, sample};

const EDIT: Call = ("edit_file", |_| {
    r#"{"path":"large","old_string":"line 150000 ","new_string":"LINE 150000 "}"#.to_owned()
});

const READ: Call = ("read_file", |_| r#"{"path":"large","offset":900000,"limit":101}"#.to_owned());

pub(crate) fn run(folder: &Path) {
    let path = folder.join("large");
    let write = |lines: u32| {
        let line = |number| format!("line {number} {}\n", "x".repeat(88));
        fs::write(&path, (1..=lines).map(line).collect::<String>()).unwrap();
        fs::File::open(&path).unwrap().sync_all().unwrap();
    };
    let script = "sed -i 's/line 150000 /LINE 150000 /' large && sync large";
    compare("edit of a line in 300,000", folder, EDIT, script, &|| write(300_000));
    write(1_000_000);
    let script = "sed -n '900000,900100p;900100q' large >/dev/null";
    compare("read of lines 900000 to 900100", folder, READ, script, &|| {});
}

/// The medians of five runs of each, in turn.
fn compare(figure: &str, folder: &Path, call: Call, script: &str, prepare: &dyn Fn()) {
    let (mut ours, mut theirs, mut peak) = (Vec::new(), Vec::new(), None);
    for _ in 0..5 {
        prepare();
        let with = run_of(folder, 1, call);
        let without = run_of(folder, 0, call);
        ours.push(with.whole.saturating_sub(without.whole));
        peak = peak.max(with.used.peak);
        prepare();
        let started = Instant::now();
        let status = Command::new("sh").args(["-c", script]).current_dir(folder).status();
        assert!(status.unwrap().success(), "{script}");
        theirs.push(started.elapsed());
    }
    row(figure, median(ours), median(theirs));
    if let Some(peak) = peak {
        println!("peak memory of it (KiB)\t{peak}");
    }
}

fn run_of(folder: &Path, steps: u32, call: Call) -> crate::Sample {
    sample(steps, call, |url| {
        let mut command = Command::new(binary());
        command.args(["--base-url", url, "--model", "m", "-q", "--no-agents-md", "-C"]);
        command.arg(folder).arg("go");
        command
    })
}

fn median(mut durations: Vec<Duration>) -> Duration {
    durations.sort();
    durations[durations.len() / 2]
}

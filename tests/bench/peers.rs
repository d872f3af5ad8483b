//! The same runs by other programs of the kind, as far as they are on the PATH: beside ours and the
//! loop of a few lines, against the same endpoint in the form that each of them wants.
//!
//! They get a home of their own, so that no settings of the user count.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::endpoint::{Call, Endpoint, TRUE, Wire};
use crate::{Sample, ours, sample_at, theirs};

struct Peer {
    name: &'static str,
    call: Call,
    wire: Wire,
    /// How it is started, with the URL of the endpoint and its home.
    command: fn(&str, &Path) -> Command,
}

const BASH: Call = ("bash", TRUE.1);
const EXEC: Call = ("exec_command", |step| format!("{{\"cmd\":\"true {step}\"}}"));
const SUBMIT: &str = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT";

const UNCUT: Peer = Peer {
    name: "uncut",
    call: TRUE,
    wire: Wire::Json,
    command: |url, home| ours(url, &fresh(home, "uncut.jsonl")),
};

const LOOP: Peer = Peer {
    name: "std-only loop",
    call: TRUE,
    wire: Wire::Json,
    command: |url, home| theirs(url, &fresh(home, "loop.jsonl")),
};

const PEERS: &[Peer] = &[
    Peer { name: "codex", call: EXEC, wire: Wire::Responses, command: codex },
    Peer { name: "pi", call: BASH, wire: Wire::Events, command: pi },
    Peer { name: "mini", call: BASH, wire: Wire::JsonWithCommand(SUBMIT), command: mini },
];

/// Prints a table of its own, where there is anything to compare with.
pub(crate) fn compare(folder: &Path) {
    let home = folder.join("home");
    fs::create_dir_all(&home).unwrap();
    let others = PEERS.iter().filter(|peer| on_path(peer.name));
    let found: Vec<&Peer> = [&UNCUT, &LOOP].into_iter().chain(others).collect();
    if found.len() == 2 {
        println!("no other program of the kind is on the PATH");
        return;
    }
    let names: Vec<&str> = found.iter().map(|peer| peer.name).collect();
    println!("\nfigure\t{}", names.join("\t"));
    let first = runs(&found, &home, 0);
    line("start to first byte", &first, |sample| time(sample.first_byte));
    for steps in [10, 100] {
        let samples = runs(&found, &home, steps);
        line(&format!("a step, of {steps}"), &samples, |sample| time(sample.whole / (steps + 1)));
        line(&format!("bytes sent in {steps} steps"), &samples, |sample| sample.sent.to_string());
        line(&format!("peak memory in {steps} steps (KiB)"), &samples, |sample| {
            sample.used.peak.map_or_else(String::new, |peak| peak.to_string())
        });
        line(&format!("CPU in {steps} steps, without the commands"), &samples, |sample| {
            sample.used.cpu.map_or_else(String::new, time)
        });
    }
}

/// The middle one of three runs of each, in turn.
fn runs(peers: &[&Peer], home: &Path, steps: u32) -> Vec<Sample> {
    let mut samples: Vec<Vec<Sample>> = peers.iter().map(|_| Vec::new()).collect();
    for _ in 0..3 {
        for (peer, samples) in peers.iter().zip(&mut samples) {
            let endpoint = Endpoint::start(steps, peer.call).speaking(peer.wire);
            samples.push(sample_at(&endpoint, |url| (peer.command)(url, home)));
        }
    }
    let middle = |mut samples: Vec<Sample>| {
        samples.sort_by_key(|sample| if steps == 0 { sample.first_byte } else { sample.whole });
        samples.swap_remove(1)
    };
    samples.into_iter().map(middle).collect()
}

fn line(figure: &str, samples: &[Sample], value: impl Fn(&Sample) -> String) {
    let values: Vec<String> = samples.iter().map(value).collect();
    println!("{figure}\t{}", values.join("\t"));
}

fn time(time: Duration) -> String {
    format!("{time:.2?}")
}

fn on_path(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(name).is_file())
}

fn fresh(home: &Path, name: &str) -> PathBuf {
    let path = home.join(name);
    let _ = fs::remove_file(&path);
    path
}

fn codex(url: &str, home: &Path) -> Command {
    let provider = format!(
        r#"model_providers.local={{name="local",base_url="{url}",wire_api="responses",env_key="KEY"}}"#
    );
    let mut command = at_home("codex", home);
    command.args(["exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"]);
    command.args(["-c", &provider, "-c", "model_provider=local", "-m", "m", "go"]);
    command.env("KEY", "none");
    command
}

fn pi(url: &str, home: &Path) -> Command {
    let folder = home.join(".pi/agent");
    fs::create_dir_all(&folder).unwrap();
    let models = format!(
        r#"{{"providers":{{"local":{{"baseUrl":"{url}","api":"openai-completions","apiKey":"none","models":[{{"id":"m"}}]}}}}}}"#
    );
    fs::write(folder.join("models.json"), models).unwrap();
    let mut command = at_home("pi", home);
    command.args(["--provider", "local", "--model", "m", "--no-session", "-p", "go"]);
    command.env("PI_OFFLINE", "1");
    command
}

fn mini(url: &str, home: &Path) -> Command {
    let mut command = at_home("mini", home);
    command.args(["-m", "openai/m", "-t", "go", "-y", "--exit-immediately", "-o"]);
    command.arg(home.join("mini.json"));
    command.envs([("OPENAI_API_KEY", "none"), ("OPENAI_BASE_URL", url), ("OPENAI_API_BASE", url)]);
    command.envs([("MSWEA_CONFIGURED", "true"), ("MSWEA_COST_TRACKING", "ignore_errors")]);
    command.env("LITELLM_LOCAL_MODEL_COST_MAP", "True");
    command
}

fn at_home(program: &str, home: &Path) -> Command {
    let mut command = Command::new(program);
    command.env("HOME", home).stderr(Stdio::null());
    command
}

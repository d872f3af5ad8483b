//! Tool calls through the real binary, and what the model is told of them.

use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::endpoint::{Endpoint, Reply};
use super::sandbox::{Dir, Uncut};

/// Lets the model call tools one after another and gives the results that it was told.
#[track_caller]
pub(crate) fn results(uncut: Uncut, calls: &[(&str, Value)]) -> Vec<String> {
    let call = |(index, (name, arguments)): (usize, &(&str, Value))| {
        Reply::tool_call(&index.to_string(), name, &arguments.to_string())
    };
    let mut script: Vec<Reply> = calls.iter().enumerate().map(call).collect();
    script.push(Reply::answer("done"));
    let endpoint = Endpoint::start(script).unpoliced();
    let ran = uncut.args(["--base-url", &endpoint.base_url(), "--model", "m", "go"]).run();
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "done\n"), "{ran:?}");
    let requests = endpoint.finish();
    let messages = requests.last().unwrap().messages();
    let told = messages.iter().filter(|message| message["role"] == "tool");
    told.map(|message| message["content"].as_str().unwrap().to_owned()).collect()
}

/// The result of one command.
#[track_caller]
pub(crate) fn shell(uncut: Uncut, command: &str) -> String {
    results(uncut, &[("shell", json!({"command": command}))]).remove(0)
}

/// The binary where `script`, which may mount, has been run before; none where we may not mount.
pub(crate) fn mounting(dir: &Dir, script: &str) -> Option<Uncut> {
    let mut probe = Command::new("unshare");
    probe.args(["--mount", "sh", "-c", "mount -t tmpfs none /mnt"]);
    probe.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if !probe.status().is_ok_and(|status| status.success()) {
        eprintln!("skipped: this machine does not let us mount");
        return None;
    }
    let script = format!("{script} && exec \"$0\" \"$@\"");
    Some(Uncut::below(dir, "unshare", &["--mount", "sh", "-c", &script]))
}

//! The static binary as the only file of a machine: no shell, no C library, no passwd, no hosts, no
//! certificates, no /dev, no /proc, no variable set, and a user that nobody has heard of.
//!
//! It takes a binary that can be there, which is the one that `UNCUT_TEST_BINARY` names, and the
//! right to mount.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use serde_json::{Value, json};

use crate::support::sandbox::{Dir, Uncut, named_binary};
use crate::support::tls::{self, Issuer};
use crate::support::tools::{mounting, results};

/// A root that holds the binary, and `work`, in which everybody may write.
fn root(name: &str) -> Option<Dir> {
    let Some(binary) = named_binary() else {
        eprintln!("skipped: UNCUT_TEST_BINARY names no static binary");
        return None;
    };
    let root = Dir::new(name);
    fs::copy(binary, root.path("uncut")).unwrap();
    fs::create_dir(root.path("work")).unwrap();
    fs::set_permissions(root.path("work"), fs::Permissions::from_mode(0o777)).unwrap();
    Some(root)
}

/// How the root is left as it is, and made one that can't be written to.
const AS_IT_IS: &str = "true";
const READ_ONLY: &str = "mount -o remount,bind,ro .";

/// The binary in the root, after `prepare` was run there.
fn inside(root: &Dir, prepare: &str) -> Option<Uncut> {
    let enter = format!(
        "mount --bind . . && cd \"$PWD\" && {prepare} && \
         chroot=$(command -v chroot || echo /usr/sbin/chroot) && \
         exec env -i \"$chroot\" --userspec=54321:54321 . /uncut \"$@\""
    );
    Some(mounting(root, &enter)?.args(["--directory", "/work"]))
}

fn write(path: &str) -> (&'static str, Value) {
    ("write_file", json!({"path": path, "content": "one\ntwo\n"}))
}

#[test]
fn an_empty_root_has_all_that_the_tools_for_files_need() {
    let Some(root) = root("empty") else { return };
    let Some(uncut) = inside(&root, AS_IT_IS) else { return };
    let calls = [
        write("a/f"),
        ("edit_file", json!({"path": "a/f", "old_string": "two", "new_string": "three"})),
        ("read_file", json!({"path": "a/f"})),
        ("shell", json!({"command": "true"})),
    ];
    let told = results(uncut.args(["--session", "/work/log"]), &calls);
    assert_eq!(told[2], "     1\tone\n     2\tthree\n");
    let tools = "the tools are read_file, write_file, edit_file";
    assert_eq!(told[3], format!("error: there is no tool \"shell\"; {tools}"));
    assert_eq!(root.read("work/a/f"), "one\nthree\n");
    assert_eq!(root.read("work/log").lines().count(), 10);
    assert_eq!(root.names(), ["uncut", "work"]);
}

#[test]
fn in_a_root_that_is_read_only_a_file_is_refused_and_the_run_goes_on() {
    let Some(root) = root("read-only") else { return };
    root.write("work/f", "text\n");
    let Some(uncut) = inside(&root, READ_ONLY) else { return };
    let told = results(uncut, &[write("g"), ("read_file", json!({"path": "f"}))]);
    assert!(
        told[0].starts_with("error: ") && told[0].contains("Read-only file system"),
        "{told:?}"
    );
    assert_eq!(told[1], "     1\ttext\n");
}

#[test]
fn a_recording_needs_nothing_of_the_root() {
    let message = json!({"role": "assistant", "content": "done"});
    let completion = json!({"choices": [{"finish_reason": "stop", "message": message}]});
    let Some(root) = root("recording") else { return };
    root.write("replay", completion.to_string());
    let Some(uncut) = inside(&root, READ_ONLY) else { return };
    let ran = uncut.args(["--replay", "/replay", "go"]).run();
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "done\n"), "{ran:?}");
}

#[test]
fn https_needs_nothing_of_the_root() {
    let issuer = Issuer::new("issuer");
    let server = tls::endpoint(issuer.issue("127.0.0.1"));
    let url = format!("https://{}/v1", server.address());
    let Some(root) = root("https") else { return };
    root.write("issuer.pem", issuer.pem());
    for (trust, code) in [(&["--ca-file", "/issuer.pem"][..], 0), (&[], 10)] {
        let Some(uncut) = inside(&root, READ_ONLY) else { return };
        let ran = uncut.args(trust).args(["--base-url", &url, "--model", "m", "go"]).run();
        assert_eq!(ran.code, Some(code), "{ran:?}");
    }
}

#[test]
fn busybox_is_shell_enough() {
    let Ok(busybox) = fs::read("/bin/busybox") else {
        eprintln!("skipped: no busybox");
        return;
    };
    let Some(root) = root("busybox") else { return };
    let path = root.write("bin/busybox", busybox);
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    // A shell opens it for each command in the background.
    root.write("dev/null", "");
    for name in ["sh", "echo", "head", "id", "sleep", "yes"] {
        symlink("busybox", root.path("bin").join(name)).unwrap();
    }
    let Some(uncut) = inside(&root, "mount --bind /dev/null dev/null") else { return };
    let command = |line: &str| ("shell", json!({"command": line}));
    let calls = [
        command("echo hi; exit 3"),
        command("id -u; pwd"),
        command("yes | head -c 100000"),
        command("sleep 100 & echo on"),
        ("shell", json!({"command": "sleep 100", "timeout": 1})),
    ];
    let told = results(uncut, &calls);
    assert_eq!(told[0], "hi\n[exit 3]");
    assert_eq!(told[1], "54321\n/work\n[exit 0]");
    assert!(told[2].contains(" bytes of output left out here"), "{}", told[2]);
    assert!(told[3].starts_with("on\n[exit 0"), "{}", told[3]);
    assert!(told[4].contains("timed out"), "{}", told[4]);
}

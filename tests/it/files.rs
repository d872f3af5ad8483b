//! Files as the model and the user meet them: the tools for files and AGENTS.md, through the
//! binary.
//!
//! What goes wrong with files elsewhere has been reported in public. Each of these kinds has a
//! test:
//!
//! | number | what | report | tests |
//! |---|---|---|---|
//! | 54 | modes leak from the temporary file | ankit373/hydra 299 | `modes_are_those_that_the_user_gave`, `the_mode_stays_and_the_file_is_another`, `a_file_that_nobody_may_write_is_left_as_it_is` |
//! | 55 | an edit turns CRLF into LF | MoonshotAI/kimi-cli 2191 | `an_edit_in_a_file_with_crlf_changes_one_line` |
//! | 56 | mixed line endings | esengine/DeepSeek-Reasonix 2918 | `line_endings_are_those_of_the_place` |
//! | 57 | near matches rewrite the file | earendil-works/pi 3554 | `what_only_looks_like_the_old_text_is_left_alone` |
//! | 58 | hard links | Gitlawb/zero 941 | `hard_links_see_the_new_content` |
//! | 59 | places that differ in line endings only | earendil-works/pi 360 | `a_text_that_stands_there_more_than_once_is_refused_with_its_lines` |
//! | 60 | huge files and lines | The-AI-Alliance/cube-harness 362 | `a_long_file_is_read_page_by_page`, `a_large_file_costs_no_memory`, `an_endless_line_is_cut_and_says_by_how_much` |
//! | 61 | LF text against a file with CRLF | Gitlawb/zero 376 | `line_endings_are_those_of_the_place` |
//! | 62 | linked directories | openclaw/openclaw 84911 | `symbolic_links_are_followed_and_stay` |
//! | 63 | the last newline; deleted lines | Astro-Han/pawwork 235 | `only_the_text_is_exchanged` |
//! | 64 | closed directories, mounted files | QwenLM/qwen-code 4096 | `a_file_in_a_closed_directory_is_written_in_place`, `a_file_in_a_directory_of_somebody_else_is_written_in_place`, `a_file_that_no_other_can_take_the_place_of_is_written_in_place` |
//! | 65 | devices, directories, empty files | openclaw/openclaw 121828 | `a_device_and_a_fifo_are_refused`, `a_directory_is_listed_in_order`, `an_empty_or_binary_file_says_so` |
//! | 66 | several matches | anomalyco/opencode 24959 | `a_text_that_stands_there_more_than_once_is_refused_with_its_lines` |
//! | 85 | AGENTS.md is cut silently | openai/codex 13386 | `a_long_file_is_cut_at_a_line_with_a_marker`, `instructions_are_listed_and_what_is_cut_of_them_is_warned_of` |
//! | 86 | AGENTS.md is not UTF-8 | openai/codex 23223 | `a_file_that_is_not_utf8_is_an_error_that_says_where`, `instructions_that_can_not_be_used_end_the_run_before_anything_is_sent`, `a_file_that_can_not_be_used_is_told_and_ends_nothing` |
//! | 87 | imports | openai/codex 11838 | `agents_md_follows_under_its_path` |
//! | 88 | a byte order mark | anthropics/claude-code 73158 | `agents_md_follows_under_its_path` |

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::support::endpoint::{Endpoint, Reply};
use crate::support::sandbox::{Dir, Uncut, binary};
use crate::support::tools::{mounting, results};
use crate::tidy;
use crate::tools::as_nobody;

#[test]
fn every_test_of_the_table_is_there() {
    let row = |line: &'static str| {
        let mut cells = line.strip_prefix("//! | ")?.split(" | ");
        let number: u32 = cells.next()?.parse().ok()?;
        Some((number, cells.last()?))
    };
    let rows: Vec<(u32, &str)> = include_str!("files.rs").lines().filter_map(row).collect();
    assert_eq!(rows.len(), 17);
    let sources = tidy::everything();
    for (number, tests) in rows {
        let tests: Vec<&str> = tests.split('`').skip(1).step_by(2).collect();
        assert!(!tests.is_empty(), "{number}");
        for test in tests {
            assert!(sources.contains(&format!("fn {test}() {{")), "{number}: {test}");
        }
    }
}

/// A call of `read_file`.
fn read(id: &str, path: &str) -> Reply {
    Reply::tool_call(id, "read_file", &json!({"path": path}).to_string())
}

#[test]
fn deeper_instructions_leave_the_prompt_as_it_is_and_are_told_once_in_a_session() {
    let dir = Dir::new("nested").with("work/.git/HEAD", "").with("work/AGENTS.md", "Rule 0.\n");
    dir.write("work/here/a/AGENTS.md", "Rule a.\n");
    dir.write("work/here/a/f", "text\n");
    let script =
        vec![read("1", "a/f"), Reply::answer("one"), read("2", "a/f"), Reply::answer("two")];
    let endpoint = Endpoint::start(script);
    let run = || {
        let uncut = Uncut::new(&dir).args(["-m", "m", "-v", "--session", "log", "-C", "work/here"]);
        uncut.args(["--base-url", &endpoint.base_url(), "go"]).run()
    };
    let (first, second) = (run(), run());
    assert_eq!((first.code, second.code), (Some(0), Some(0)), "{first:?} {second:?}");
    let line = |name: &str, sha256: &str| {
        format!("uncut: {}: 8 bytes, sha256 {sha256}", dir.path(name).display())
    };
    let outer = line("work/AGENTS.md", RULE_0);
    let inner = line("work/here/a/AGENTS.md", RULE_A);
    assert!(first.stderr.contains(&outer) && first.stderr.contains(&inner), "{}", first.stderr);
    assert!(second.stderr.contains(&outer) && !second.stderr.contains(&inner), "{second:?}");
    let requests = endpoint.finish();
    let prompt = &requests[0].messages()[0];
    assert!(prompt["content"].as_str().unwrap().ends_with("Rule 0."), "{prompt}");
    assert!(requests.iter().all(|request| request.messages()[0] == *prompt));
    let messages = requests[3].messages();
    let told: Vec<&str> = messages
        .iter()
        .filter(|message| message["role"] == "tool")
        .map(|message| message["content"].as_str().unwrap())
        .collect();
    assert!(told[0].ends_with("/a/AGENTS.md:\n\nRule a."), "{told:?}");
    assert_eq!(told[1], "     1\ttext\n");
}

/// The SHA-256 of `Rule 0.` and a newline, and of `Rule a.` and one.
const RULE_0: &str = "d67121010f8bc92b4402c558c1024fb6492ec975ad675a1308b5e45ee20788bf";
const RULE_A: &str = "92cd4dad28df2f0b6758a4c11a6a3e4d6783c0cbe30a6c128a9119b665e992e6";

#[test]
fn instructions_that_were_named_or_refused_take_the_place_of_all_others() {
    let dir = Dir::new("named").with("AGENTS.md", "Rule 0.\n").with("a/AGENTS.md", "Rule a.\n");
    dir.write("other.md", "Rule x.\n");
    dir.write("a/f", "text\n");
    for (flags, says) in [(&["--agents-md", "other.md"][..], true), (&["--no-agents-md"], false)] {
        let endpoint = Endpoint::start(vec![read("1", "a/f"), Reply::answer("done")]);
        let uncut = Uncut::new(&dir).args(["-m", "m", "--base-url", &endpoint.base_url()]);
        assert_eq!(uncut.args(flags).arg("go").run().code, Some(0));
        let requests = endpoint.finish();
        let messages = serde_json::to_string(requests[1].messages()).unwrap();
        assert_eq!(messages.contains("Rule x."), says);
        assert!(!messages.contains("Rule 0.") && !messages.contains("Rule a."), "{messages}");
    }
}

#[test]
fn instructions_that_can_not_be_used_end_the_run_before_anything_is_sent() {
    for (make, says) in [
        ("printf 'Use tabs.\\n\\223quoted\\224' >AGENTS.md", "is not UTF-8 at byte 10; convert it"),
        ("mkfifo AGENTS.md", "can't be read: it is a FIFO, not a regular file; "),
        ("mkdir AGENTS.md", "can't be read: it is a directory; "),
        ("ln -s nowhere AGENTS.md", "can't be read: No such file or directory"),
        ("mkdir .git && ln -s /etc/passwd AGENTS.md", "can't be read: it leads out of "),
    ] {
        let dir = Dir::new("unusable");
        let made = Command::new("sh").args(["-c", make]).current_dir(dir.path(".")).status();
        assert!(made.unwrap().success(), "{make}");
        let endpoint = Endpoint::start(vec![Reply::answer("no")]).allow_unused();
        let uncut = Uncut::new(&dir).args(["-m", "m", "--base-url", &endpoint.base_url(), "go"]);
        let ran = uncut.run();
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{ran:?}");
        let told = format!("uncut: usage: AGENTS.md: {} {says}", dir.path("AGENTS.md").display());
        assert!(ran.stderr.starts_with(&told), "{told}: {}", ran.stderr);
        assert!(endpoint.finish().is_empty(), "{make}");
    }
}

#[test]
fn modes_are_those_that_the_user_gave() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = Dir::new("modes").with("f", "old").with("g", "old");
    for (name, mode) in [("f", 0o640), ("g", 0o444)] {
        fs::set_permissions(dir.path(name), fs::Permissions::from_mode(mode)).unwrap();
    }
    let uncut = Uncut::below(&dir, "sh", &["-c", "umask 027; exec \"$0\" \"$@\""]);
    let write = |path| ("write_file", json!({"path": path, "content": "new"}));
    results(uncut, &[write("f"), write("g"), write("new")]);
    let left = |name: &str| {
        let mode = dir.path(name).metadata().unwrap().permissions().mode() & 0o7777;
        (mode, dir.read(name))
    };
    assert_eq!(left("f"), (0o640, "new".to_owned()));
    assert_eq!(left("g"), (0o444, "old".to_owned()));
    assert_eq!(left("new"), (0o640, "new".to_owned()));
}

#[cfg(target_os = "linux")]
#[test]
fn a_file_whose_protection_we_may_not_give_to_another_is_written_in_place() {
    let dir = Dir::new("protected").with("f", "old");
    let Some(uncut) = as_nobody(&dir, &[]) else { return };
    for name in [".", "f"] {
        std::os::unix::fs::chown(dir.path(name), Some(54_321), Some(54_321)).unwrap();
    }
    // Only root may set it, and everybody may see it.
    let python = |script: &str| {
        let mut python = Command::new("python3");
        python.args(["-c", script]).current_dir(dir.path(".")).stderr(Stdio::null());
        python.status().is_ok_and(|status| status.success())
    };
    if !python("import os; os.setxattr('f', 'security.test', b'x')") {
        eprintln!("skipped: no python3, or no attributes here");
        return;
    }
    let inode = dir.path("f").metadata().unwrap().ino();
    let told = results(uncut, &[("write_file", json!({"path": "f", "content": "new"}))]);
    assert_eq!(told, ["replaced f: 3 bytes, 3 before (written in place)"]);
    assert_eq!((dir.read("f").as_str(), dir.names()), ("new", vec!["f".to_owned()]));
    assert_eq!(dir.path("f").metadata().unwrap().ino(), inode);
    assert!(python("import os; os.getxattr('f', 'security.test') == b'x' or exit(1)"));
}

#[cfg(target_os = "linux")]
#[test]
fn what_was_written_is_synced_before_it_is_told() {
    if !crate::sessions::has_strace() {
        eprintln!("skipped: no strace");
        return;
    }
    let dir = Dir::new("synced").with("f", "old");
    fs::hard_link(dir.path("f"), dir.path("g")).unwrap();
    let arguments = ["-f", "-y", "-o", "trace", "-e", "trace=fsync"];
    let write = ("write_file", json!({"path": "a/b/c", "content": "new"}));
    let told = results(Uncut::below(&dir, "strace", &arguments), &[write, edit("old", "new")]);
    assert!(told[1].contains("(written in place)"), "{told:?}");
    let trace = dir.read("trace");
    let root = dir.path(".").canonicalize().unwrap();
    let synced = trace.lines().filter_map(|line| {
        let path = line.split_once("fsync(")?.1.split_once('<')?.1.split_once('>')?.0;
        Some(std::path::Path::new(path).strip_prefix(&root).ok()?.display().to_string())
    });
    // The file, its name, and those of the directories that were made for it.
    let written = ["a", "", "a/b/.c.uncut-0.tmp", "a/b"];
    // The copy that stays should this be the end, and the file itself.
    let overwritten = [".f.uncut-0.tmp", "f"];
    assert_eq!(synced.collect::<Vec<_>>(), [&written[..], &overwritten].concat(), "{trace}");
}

/// The arguments of an edit of `f`.
fn edit(old: &str, new: &str) -> (&'static str, Value) {
    ("edit_file", json!({"path": "f", "old_string": old, "new_string": new}))
}

#[test]
fn a_file_in_a_directory_of_somebody_else_is_written_in_place() {
    let dir = Dir::new("foreign").with("f", "a long old content\n");
    let Some(uncut) = as_nobody(&dir, &[]) else { return };
    std::os::unix::fs::chown(dir.path("f"), Some(54_321), Some(54_321)).unwrap();
    let write = ("write_file", json!({"path": "g", "content": "new"}));
    let told = results(uncut, &[edit("long old", "new"), edit("new", "longer than ever"), write]);
    let start = "edited f: 1 place, at line 1 (written in place)\n";
    assert!(told[..2].iter().all(|told| told.starts_with(start)), "{told:?}");
    assert!(told[2].starts_with("error: g: Permission denied"), "{told:?}");
    assert_eq!(dir.read("f"), "a longer than ever content\n");
    assert_eq!(dir.names(), ["f"]);
}

#[test]
fn a_full_disk_leaves_the_old_content_and_nothing_else() {
    let dir = Dir::new("full").with("d/f", "");
    let line = "old\n".repeat(15 * 1024);
    dir.write("f", &line);
    fs::create_dir(dir.path("e")).unwrap();
    // The other one has no room for another name.
    let script = "mount -t tmpfs -o size=100k none d && cp f d/f && \
                  mount -t tmpfs -o nr_inodes=2 none e && cp f e/f";
    let Some(uncut) = mounting(&dir, script) else { return };
    let calls = [
        (
            "edit_file",
            json!({"path": "d/f", "old_string": "old", "new_string": "new",
            "replace_all": true}),
        ),
        ("write_file", json!({"path": "d/f", "content": "x".repeat(60_000)})),
        ("write_file", json!({"path": "e/f", "content": "x"})),
        ("shell", json!({"command": "cmp f d/f && cmp f e/f && ls -A d e"})),
        // It can be overwritten, but not beside its copy: the copy has it all.
        ("shell", json!({"command": "rm d/f && touch d/f && ln d/f d/g"})),
        ("write_file", json!({"path": "d/f", "content": "x".repeat(60_000)})),
        ("shell", json!({"command": "wc -c <d/.f.uncut-0.new; ls -A d"})),
    ];
    let told = results(uncut, &calls);
    assert!(told[0].starts_with("error: d/f: No space left on device"), "{told:?}");
    assert!(told[1].starts_with("error: d/f: No space left on device"), "{told:?}");
    assert!(told[2].starts_with("error: e/f: No space left on device"), "{told:?}");
    assert_eq!(told[3], "d:\nf\n\ne:\nf\n[exit 0]");
    assert!(told[5].contains("the file may hold only a part of the new content; "), "{told:?}");
    assert!(told[5].ends_with("d/.f.uncut-0.new has it all"), "{told:?}");
    assert_eq!(told[6], "60000\n.f.uncut-0.new\nf\ng\n[exit 0]");
}

#[cfg(target_os = "linux")]
#[test]
fn a_large_file_costs_no_memory() {
    let dir = Dir::new("large");
    let line = "a line that is not meant\n";
    dir.write("f", line.repeat(1_500_000) + "old\n");
    let peak = ("shell", json!({"command": "grep VmHWM /proc/$PPID/status"}));
    let page = ("read_file", json!({"path": "f", "offset": 1_500_000}));
    let told = results(Uncut::new(&dir), &[edit("old", "new"), page, peak]);
    assert!(
        told[0].starts_with("error: f: it has 37500004 bytes, and edit_file takes"),
        "{told:?}"
    );
    assert!(told[0].contains("sed -i"), "{told:?}");
    assert_eq!(told[1], "1500000\ta line that is not meant\n1500001\told\n");
    assert!(peak_of(&told[2]) < 10 * 1024, "{told:?}");
}

#[cfg(target_os = "linux")]
#[test]
fn an_edit_takes_up_to_three_times_its_file_in_memory() {
    let dir = Dir::new("three-times");
    let content = "a line that is not meant\r\n".repeat(250_000) + "old\r\n";
    dir.write("f", &content);
    let peak = ("shell", json!({"command": "grep VmHWM /proc/$PPID/status"}));
    let missed = edit("a line that is not there", "x");
    let told = results(Uncut::new(&dir), &[edit("old", "new"), missed, peak]);
    assert!(told[0].starts_with("edited f: 1 place, at line 250001\n"), "{}", told[0]);
    assert!(told[1].contains("the line most like it is 1: "), "{}", told[1]);
    let peak = peak_of(&told[2]);
    assert!(peak < 10 * 1024 + 3 * content.len() as u64 / 1024, "{peak} KiB");
    assert!(dir.read("f") == content.replace("old\r\n", "new\r\n"));
}

/// The KiB in a line of `/proc/PID/status`.
#[cfg(target_os = "linux")]
fn peak_of(line: &str) -> u64 {
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[cfg(target_os = "linux")]
#[test]
fn a_file_that_tells_no_length_is_read_and_edited_all_the_same() {
    let dir = Dir::new("no-length");
    let path = "/proc/self/comm";
    // What the kernel keeps of the program's name: a binary of a release has a longer one.
    let program = std::path::PathBuf::from(binary());
    let name = program.file_name().unwrap().to_str().unwrap();
    let edit =
        json!({"path": path, "old_string": &name[..name.len().min(15)], "new_string": "other"});
    let read = json!({"path": path});
    let told = results(Uncut::new(&dir), &[("edit_file", edit), ("read_file", read)]);
    let edited = "edited /proc/self/comm: 1 place, at line 1 (written in place)\n     1\tother\n";
    assert_eq!(told[0], edited);
    assert!(told[1].starts_with("     1\tother\n"), "{told:?}");
}

#[test]
fn a_path_that_means_another_makes_no_file() {
    let dir = Dir::new("meant").with("a.txt", "old");
    let given = ["~/x", "$HOME/x", "${HOME}/x", "file:///x", "\"a.txt\"", "`a.txt`", "a.txt\n"];
    let calls = given.iter().flat_map(|path| {
        let write = ("write_file", json!({"path": path, "content": "new"}));
        let edit = ("edit_file", json!({"path": path, "old_string": "old", "new_string": "new"}));
        [write, edit, ("read_file", json!({"path": path}))]
    });
    let told = results(Uncut::new(&dir), &calls.collect::<Vec<_>>());
    for (told, path) in told.chunks(3).zip(given) {
        assert!(told.iter().all(|one| *one == told[0]), "{told:?}");
        assert!(told[0].starts_with(&format!("error: {path}: ")), "{told:?}");
        assert!(told[0].contains(": give ") || told[0].contains(": give it "), "{told:?}");
    }
    assert_eq!((dir.read("a.txt"), dir.names()), ("old".to_owned(), vec!["a.txt".to_owned()]));
}

#[test]
fn an_edit_in_a_file_with_crlf_changes_one_line() {
    let line = |number: usize| format!("line {number}\r\n");
    let lines: String = (1..=200).map(line).collect();
    let dir = Dir::new("crlf").with("f", &lines);
    results(Uncut::new(&dir), &[edit("line 100", "LINE 100")]);
    assert_eq!(dir.read("f"), lines.replace("line 100\r", "LINE 100\r"));
}

#[test]
fn what_only_looks_like_the_old_text_is_left_alone() {
    let text = "a  \nb\u{a0}c\nsay \u{201c}x\u{201d} \u{2014} now  \n";
    let dir = Dir::new("near").with("f", text);
    let told = results(Uncut::new(&dir), &[edit("say \"x\" \u{2014} now", "y")]);
    assert!(told[0].starts_with("error: old_string was not found in f; nothing was changed: "));
    assert!(told[0].contains("the line most like it is 3: "), "{told:?}");
    assert_eq!(dir.read("f"), text);
}

/// The content of a file that takes a while to write: a mark at its start and at its end.
fn marked(mark: &str) -> Vec<u8> {
    let filling = "x".repeat(99) + "\n";
    format!("mark {mark}\n{}mark {mark}\n", filling.repeat(20_000)).into_bytes()
}

/// A recording that exchanges the marks of `f`.
fn exchange(from: &str, to: &str) -> String {
    let strings = json!({"path": "f", "old_string": format!("mark {from}"), "replace_all": true,
        "new_string": format!("mark {to}")});
    let function = json!({"name": "edit_file", "arguments": strings.to_string()});
    let call = json!({"id": "1", "type": "function", "function": function});
    let message = json!({"role": "assistant", "content": null, "tool_calls": [call]});
    let call = json!({"choices": [{"finish_reason": "tool_calls", "message": message}]});
    let answer = json!({"choices": [{"finish_reason": "stop", "message": {"content": "done"}}]});
    format!("{call}\n{answer}\n")
}

#[test]
fn a_file_is_whole_whenever_its_writer_is_killed_and_the_next_write_cleans_up() {
    let contents = [marked("a"), marked("b")];
    let dir = Dir::new("killed").with("d/f", &contents[0]);
    let recordings = [dir.write("ab", exchange("a", "b")), dir.write("ba", exchange("b", "a"))];
    let uncut = |from: usize| {
        let uncut = Uncut::new(&dir).arg("-q").arg("--replay").arg(&recordings[from]);
        uncut.args(["-C", "d", "go"])
    };
    // Another file, or the same one in the middle of being written.
    let state = || {
        let metadata = dir.path("d/f").metadata().unwrap();
        (metadata.ino(), metadata.mtime_nsec())
    };
    let temporary = dir.path("d/.f.uncut-0.tmp");
    let (mut now, mut changes) = (0, 0);
    for kill in 0..100 {
        let before = state();
        let mut child = uncut(now).spawn();
        // It is killed when so much is written, and the last times when the file is another one.
        let wanted = contents[0].len() as u64 * kill / 90;
        let written = || temporary.metadata().map_or(0, |metadata| metadata.len());
        while written() < wanted && state() == before && child.try_wait().unwrap().is_none() {
            std::thread::yield_now();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let content = fs::read(dir.path("d/f")).unwrap();
        let found = contents.iter().position(|whole| *whole == content);
        let found = found.unwrap_or_else(|| panic!("{} bytes after kill {kill}", content.len()));
        changes += usize::from(found != now);
        now = found;
        // What is left must not pass for what the next one writes.
        if let Ok(left) = fs::OpenOptions::new().write(true).open(&temporary) {
            left.set_len(0).unwrap();
        }
    }
    assert!(changes > 0, "nothing was ever written");
    assert_eq!(uncut(now).run().code, Some(0));
    assert_eq!(fs::read_dir(dir.path("d")).unwrap().count(), 1);
}

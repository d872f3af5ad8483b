//! Files as the model and the user meet them: the tools for files and AGENTS.md, through the binary.

use std::fs;
use std::time::Instant;

use serde_json::json;

use crate::support::endpoint::{Endpoint, Reply};
use crate::support::sandbox::{Dir, Uncut};

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
    let started = Instant::now();
    assert_eq!(uncut(0).run().code, Some(0));
    let whole = started.elapsed();
    let (mut now, mut changes) = (1, 0);
    for kill in 0..100 {
        let mut child = uncut(now).spawn();
        // Where it is by then is up to chance, which is what the test is after.
        std::thread::sleep(whole * kill / 100);
        child.kill().unwrap();
        child.wait().unwrap();
        let content = fs::read(dir.path("d/f")).unwrap();
        let found = contents.iter().position(|whole| *whole == content);
        let found = found.unwrap_or_else(|| panic!("{} bytes after kill {kill}", content.len()));
        changes += usize::from(found != now);
        now = found;
    }
    assert!(changes > 0, "nothing was ever written");
    assert_eq!(uncut(now).run().code, Some(0));
    assert_eq!(fs::read_dir(dir.path("d")).unwrap().count(), 1);
}

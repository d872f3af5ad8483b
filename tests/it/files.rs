//! Files as the model and the user meet them: the tools for files and AGENTS.md, through the binary.

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

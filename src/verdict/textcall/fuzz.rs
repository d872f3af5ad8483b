//! Random mixes of markups, code and prose.

use super::read;
use crate::fuzz::inputs;

#[rustfmt::skip]
const PIECES: &[&str] = &[
    "<tool_call>", "</tool_call>", "<function=shell>", "<parameter=command>", "</parameter>",
    "</function>", "{\"name\":\"shell\",\"arguments\":{}}", "[TOOL_CALLS]", "shell", "[ARGS]",
    "<invoke name=\"shell\">", "</invoke>", "to=functions.shell", "<|message|>", "{}", "{", "[",
    "\"", "'", "(", ")", "command=\"ls\"", "Action: ", ">>>", "`", "``", "\\", "\n", "\n\n",
    "    ", "> ", "- ", "1. ", "~~~", "@@ -1,2 +1,2 @@", "<shell>", "</shell>", "prose ", "\u{e9}",
    "<name>", "\"name\": ", "<arg_key>", "</arg_key>", "<arg_value>", ":", ",", "<\u{ff5c}",
];

/// No text panics, each is read alike twice, calls stand where they are said to, and in a closed
/// fence there is none.
#[test]
fn fuzz_text_calls() {
    for (seed, mut random) in inputs("text calls", 1_000) {
        let length = random.below(60);
        let text: String = (0..length).map(|_| *random.pick(PIECES)).collect();
        let calls = read(&text, &["shell"]);
        assert_eq!(read(&text, &["shell"]), calls, "seed {seed}: {text}");
        for call in &calls {
            let place = text.get(call.range.clone()).unwrap_or_default();
            assert!(!place.is_empty(), "seed {seed}: {call:?} in {text}");
        }
        let inside = text.replace("~~~", "");
        let fenced = format!("Look:\n\n~~~~\n{inside}\n~~~~\n\nThat is it.");
        assert_eq!(read(&fenced, &["shell"]), [], "seed {seed}: {fenced}");
    }
}

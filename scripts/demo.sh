#!/bin/sh
# Shows uncut at work without an endpoint, a key or a network: it builds the binary, makes a small
# broken project in a temporary folder, and lets the binary repair it with recorded completions.
# Only the completions are recorded. The binary, the files, the edit and the test run are real.
set -eu
cd "$(dirname "$0")/.."

cargo build --locked --quiet
target=${CARGO_TARGET_DIR:-target}
uncut=$(cd "$target/debug" && pwd)/uncut
demo=$(mktemp -d)
trap 'rm -rf "$demo"' EXIT

mkdir -p "$demo/project/src"
cat > "$demo/project/Cargo.toml" <<'FILE'
[package]
name = "average"
version = "0.1.0"
edition = "2021"

[workspace]
FILE
cat > "$demo/project/src/lib.rs" <<'FILE'
/// The arithmetic mean of the values; none of an empty slice.
pub fn average(values: &[f64]) -> Option<f64> {
    if values.is_empty() {
        return None;
    }
    Some(values.iter().sum::<f64>() / (values.len() - 1) as f64)
}

#[test]
fn the_average_of_three_values() {
    assert_eq!(average(&[1.0, 2.0, 6.0]), Some(3.0));
    assert_eq!(average(&[]), None);
}
FILE

# One response of a chat-completions endpoint on each line.
cat > "$demo/completions.jsonl" <<'FILE'
{"choices":[{"index":0,"finish_reason":"tool_calls","message":{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"read_file","arguments":"{\"path\":\"src/lib.rs\"}"}}]}}]}
{"choices":[{"index":0,"finish_reason":"tool_calls","message":{"role":"assistant","content":"The sum is divided by one less than the number of values.","tool_calls":[{"id":"call_2","type":"function","function":{"name":"edit_file","arguments":"{\"path\":\"src/lib.rs\",\"old_string\":\"(values.len() - 1) as f64\",\"new_string\":\"values.len() as f64\"}"}}]}}]}
{"choices":[{"index":0,"finish_reason":"tool_calls","message":{"role":"assistant","content":null,"tool_calls":[{"id":"call_3","type":"function","function":{"name":"shell","arguments":"{\"command\":\"cargo test --quiet\"}"}}]}}]}
{"choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"average() divided by one less than the number of values. I corrected the divisor in src/lib.rs, and the test passes now."}}]}
FILE

run() {
    printf '\n$ %s\n' "$1"
    sh -c "$1"
}

cd "$demo/project"
export CARGO_TARGET_DIR="$demo/target" UNCUT="$uncut"
echo 'The completions are recorded; everything else is real.'
run 'cargo test --quiet 2>&1 | grep "^test result" || true'
run '"$UNCUT" --replay ../completions.jsonl --session ../session.jsonl "The test fails. Find out why and mend it."'
run 'cargo test --quiet 2>&1 | grep "^test result"'
run 'wc -l < ../session.jsonl'
echo 'Every message is a line of the session file, synced before the next step.'

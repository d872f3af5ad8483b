#!/bin/sh
# The one gate: everything that has to hold before a change is done, the fast checks first.
# It needs a Rust toolchain with rustfmt and clippy, and nothing else. The tests come last, so that
# the output ends with their own closing lines.
set -eu
cd "$(dirname "$0")/.."

step() {
    printf '\n== %s\n' "$*"
    "$@"
}

step cargo fmt --check
step cargo clippy --locked --all-targets -- -D warnings
step env RUSTDOCFLAGS='-D warnings' cargo doc --locked --no-deps --document-private-items
step cargo test --locked

#!/bin/sh
# The one gate: everything that has to hold before a change is done, the fast checks first.
#
#   scripts/check.sh           needs a Rust toolchain with rustfmt and clippy, and nothing else
#   scripts/check.sh --full    before a release: the recipes, the tests with the Linux
#                              binaries of a release, and what is known to be wrong with the
#                              dependencies, where there is cargo-audit (scripts/recipes.sh and
#                              scripts/smoke.sh say what else that needs)
#
# The tests come last, and behind them only a look for processes that they left behind, where there
# is a /proc to look into.
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
if [ "${1:-}" = --full ]; then
    if command -v cargo-audit >/dev/null 2>&1; then
        step cargo audit
    else
        printf '\nskipped: no cargo-audit, so no look at the advisories\n'
    fi
    step scripts/recipes.sh
    step scripts/smoke.sh
fi

# Commands of the tests carry a marker, and those that shed it still have a directory.
left() {
    for process in /proc/[0-9]*; do
        if tr '\0' '\n' 2>/dev/null <"$process/environ" | grep -qxF "TESTED_IN=$PWD"; then
            echo "$process"
        else
            case $(readlink "$process/cwd" 2>/dev/null) in
            "${CARGO_TARGET_DIR:-$PWD/target}"/tmp/*) echo "$process" ;;
            esac
        fi
    done 2>/dev/null
}

# What a test leaves to end by itself takes 20 seconds at most.
for _ in $(seq 30); do
    [ -n "$(left)" ] || exit 0
    sleep 1
done
for process in $(left); do
    printf 'left behind: %s\n' "$(tr '\0' ' ' <"$process/cmdline")"
done
exit 1

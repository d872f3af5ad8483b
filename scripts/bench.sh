#!/bin/sh
# Prints what a run costs, beside a minimal loop that does the same I/O with std alone, in one go on
# one machine. Asserts nothing: times on shared machines are noisy, so read the ratios.
# Words choose parts: `scripts/bench.sh sessions`.
set -eu
cd "$(dirname "$0")/.."
cargo bench --locked --bench run -- "$@"
printf 'packages\t%s\n' "$(cargo tree --locked --edges normal --prefix none | sort -u | wc -l)"

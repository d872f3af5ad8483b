#!/bin/sh
# Feeds random inputs to everything that reads what comes from outside, far more of them than
# `cargo test` does: streams, bodies, logs of sessions, arguments of tools.
#
#   scripts/fuzz.sh N [SEED]     N inputs for each generator, from SEED on (1 if it is not given)
#   FUZZ_TESTS=NAME              only the tests whose name has this part
#
# A failure names its seed and its input: `scripts/fuzz.sh 1 THAT_SEED` makes the input again. The
# generators are the tests of the library whose names start with fuzz_, and src/fuzz.rs hands out
# the numbers.
set -eu
cd "$(dirname "$0")/.."

usage() {
    echo 'usage: scripts/fuzz.sh N [SEED]' >&2
    exit 2
}

[ $# -ge 1 ] && [ $# -le 2 ] || usage
for number; do
    case $number in
    '' | *[!0-9]*) usage ;;
    esac
done

log=$(mktemp)
trap 'rm -f "$log"' EXIT
start=$(date +%s)
failed=0
# Built with optimisation, checks for overflow and assertions, and without what only the size of a
# release needs.
FUZZ_INPUTS=$1 FUZZ_SEED=${2:-1} cargo test --locked --profile fuzz --lib -- \
    --nocapture "${FUZZ_TESTS:-fuzz_}" >"$log" 2>&1 || failed=1

grep -v -e '^test .* ok$' -e '^ *\(Compiling\|Finished\|Running\) ' "$log" || true
# A line of a test may share its line with the name that the test harness had begun.
sed -n 's/.*fuzz \([^:]*\): \([0-9]*\) inputs, seed [0-9]*$/\2/p' "$log" | awk -v seconds="$(($(date +%s) - start))" -v seed="${2:-1}" '
    { inputs += $1; generators++ }
    END {
        printf "%d inputs from %d generators, seeds from %s on, %d s\n", inputs, generators, seed, seconds
        exit generators == 0
    }
' || failed=1
exit "$failed"

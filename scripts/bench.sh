#!/bin/sh
# Prints what a run costs, as tables in Markdown: beside a minimal loop that does the same I/O with
# std alone, and beside other programs of the kind that are on the PATH, all in one go on one
# machine. Asserts nothing: times on shared machines are noisy, so read the ratios.
#
#   scripts/bench.sh [PART...]  start, steps, wire, sessions, shell, files, size, peers; or all
#   UNCUT_TEST_BINARY=...       measures this binary, such as one of scripts/release.sh, in place of
#                               the one for this machine
set -eu
cd "$(dirname "$0")/.."

model=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo 2>/dev/null | head -n 1)
printf '%s, %s, %s cores, %s\n' "$(date -u +%Y-%m-%d)" "${model:-$(uname -m)}" \
    "$(getconf _NPROCESSORS_ONLN)" "$(uname -s)"
printf '%s packages, uncut itself among them\n\n' \
    "$(cargo tree --locked --edges normal --prefix none | sed 's/ (\*)$//' | sort -u | wc -l)"

# The columns are separated by tabs, and a line that starts with `figure` has their names.
cargo bench --locked --bench run -- "$@" | awk -F '\t' '
    NF < 2 { print; fflush(); next }
    $1 == "figure" { columns = NF }
    {
        row = "|"
        for (column = 1; column <= columns; column++) row = row " " $column " |"
        print row
        fflush()
    }
    $1 == "figure" {
        row = "|"
        for (column = 1; column <= columns; column++) row = row "---|"
        print row
    }
'

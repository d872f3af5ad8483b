#!/bin/sh
# Runs the tests against the Linux binaries of a release, which are static and hold another C
# library than the one that is tested while work goes on. The slow part of scripts/check.sh.
#
#   scripts/smoke.sh [FOLDER]    FOLDER has the files of scripts/release.sh; or else they are built
#   TARGETS='...'                with these only
#
# Beside what scripts/release.sh needs: file, and qemu-aarch64 (Debian's qemu-user). With busybox
# (busybox-static), strace and the right to mount, more of the tests find what they need.
set -eu
cd "$(dirname "$0")/.."

fail() {
    echo "scripts/smoke.sh: $*" >&2
    exit 1
}

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
folder=${1:-}
if [ -z "$folder" ]; then
    folder=$scratch
    : "${TARGETS:=x86_64-unknown-linux-musl aarch64-unknown-linux-musl}"
    TARGETS=$TARGETS scripts/release.sh "$folder"
fi
folder=$(cd "$folder" && pwd)
x86_64=$(echo "$folder"/uncut-*-x86_64-unknown-linux-musl)
aarch64=$(echo "$folder"/uncut-*-aarch64-unknown-linux-musl)

# What it is, and how large.
check() {
    file "$1" | grep -q 'static-pie linked.*, stripped' || fail "$(file "$1")"
    [ "$(wc -c <"$1")" -le 2500000 ] || fail "$1 is larger than 2.5 MB"
}

run() {
    printf '\n== the tests, with %s\n' "$(basename "$1")"
    binary=$2
    shift 2
    UNCUT_TEST_BINARY=$binary cargo test --locked --test it -- "$@"
}

if [ -x "$aarch64" ]; then
    check "$aarch64"
    emulator=$(command -v qemu-aarch64 || command -v qemu-aarch64-static) ||
        fail 'qemu-aarch64 is missing; Debian has it in qemu-user'
    printf '#!/bin/sh\nexec "%s" "%s" "$@"\n' "$emulator" "$aarch64" >"$scratch/uncut"
    chmod +x "$scratch/uncut"
    # Tests that look at processes and system calls would find the emulator's.
    run "$aarch64" "$scratch/uncut" \
        contract:: files:: flags:: limits:: network:: spill:: streams:: wire::
fi
if [ -x "$x86_64" ]; then
    check "$x86_64"
    run "$x86_64" "$x86_64"
fi

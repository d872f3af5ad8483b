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
: "${TARGETS:=x86_64-unknown-linux-musl aarch64-unknown-linux-musl}"
if [ -z "$folder" ]; then
    folder=$scratch
    TARGETS=$TARGETS scripts/release.sh "$folder"
fi
folder=$(cd "$folder" && pwd)

# The binary for a target: one, and as large and of the kind as it should be.
binary() {
    set -- "$folder"/uncut-*-"$1"
    [ $# -eq 1 ] && [ -f "$1" ] || fail "there is not one binary for ${1##*-unknown-} in $folder: $*"
    chmod +x "$1"
    file "$1" | grep -q 'static-pie linked.*, stripped' || fail "$(file "$1")"
    [ "$(wc -c <"$1")" -le 2500000 ] || fail "$1 is larger than 2.5 MB"
    found=$1
}

run() {
    printf '\n== the tests, with %s\n' "$(basename "$1")"
    binary=$2
    shift 2
    UNCUT_TEST_BINARY=$binary cargo test --locked --test it -- "$@"
}

case " $TARGETS " in
*" aarch64-unknown-linux-musl "*)
    binary aarch64-unknown-linux-musl
    emulator=$(command -v qemu-aarch64 || command -v qemu-aarch64-static) ||
        fail 'qemu-aarch64 is missing; Debian has it in qemu-user'
    printf '#!/bin/sh\nexec "%s" "%s" "$@"\n' "$emulator" "$found" >"$scratch/uncut"
    chmod +x "$scratch/uncut"
    # Tests that look at processes, their names, their memory and system calls would find the
    # emulator's.
    run "$found" "$scratch/uncut" \
        contract:: files:: flags:: limits:: network:: spill:: streams:: verify:: wire:: \
        --skip files::a_file_that_tells_no_length --skip files::a_large_file_costs_no_memory
    ;;
esac
case " $TARGETS " in
*" x86_64-unknown-linux-musl "*)
    binary x86_64-unknown-linux-musl
    run "$found" "$found"
    ;;
esac

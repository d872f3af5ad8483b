#!/bin/sh
# Follows the recipes of scripts/recipes: runs each one, or has it validated, against an endpoint of
# its own on this machine. Prints a line for each recipe, and fails if one does.
#
#     scripts/recipes.sh [BINARY]
#
# BINARY is a static uncut for Linux; without it one is built, or one that is not static if that can't
# be. It needs python3; each recipe is skipped where something is missing that it needs. All of it, on
# Debian: jq, make, git, util-linux, systemd, parallel, busybox-static, musl-tools; from PyPI:
# check-jsonschema and kubernetes-validate, on the PATH together with their python3; and root, because
# containers are imitated by mounts and chroot. There is no cluster, no forge and no systemd that runs.
# With TRACE in the environment, a failure says where it is.
set -eu
cd "$(dirname "$0")/.."
if [ $# -gt 0 ]; then
    uncut=$1
else
    static=$(uname -m)-unknown-linux-musl
    target=${CARGO_TARGET_DIR:-target}
    if cargo build --locked --quiet --release --target "$static" 2>/dev/null; then
        uncut=$target/$static/release/uncut
    else
        cargo build --locked --quiet
        uncut=$target/debug/uncut
    fi
fi

exec python3 -B scripts/follow_recipes "$uncut"

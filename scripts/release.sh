#!/bin/sh
# Builds the files of a release: a static binary for Linux on x86-64 and aarch64, one for Windows on
# x86-64, and for each the texts of the licences in it and its software bill of materials; then
# SHA256SUMS over all. The same commit and the same compilers give the same bytes, in any folder, on
# any machine; the one for Windows only where the homes of cargo and rustup are the same too, because
# GNU ld puts what is imported in the order of the libraries' paths.
#
#   scripts/release.sh [FOLDER]    into FOLDER, or else target/release-files
#   scripts/release.sh --verify    twice, from copies of the sources in two folders with caches of
#                                  their own, and compares
#   TARGETS='...'                  only these
#
# It needs rustup with Rust 1.93 or later, python3, and a C compiler for each target, because parts of
# ring are in C: Debian has them in musl-tools, gcc-aarch64-linux-gnu and gcc-mingw-w64-x86-64. It names
# what is missing. The Linux binaries are position independent. No path and no time gets into a binary.
#
# Before a release, scripts/check.sh --full tests what is released: with the static binary, also as the
# only file of a root and beside busybox there, and with the one for aarch64, emulated by qemu-aarch64,
# where a test does not look at processes. With cargo-audit installed it looks for known
# vulnerabilities as well.
set -eu
cd "$(dirname "$0")/.."
: "${TARGETS:=x86_64-unknown-linux-musl aarch64-unknown-linux-musl x86_64-pc-windows-gnu}"

fail() {
    echo "scripts/release.sh: $*" >&2
    exit 1
}

need() {
    command -v "$1" >/dev/null 2>&1 || fail "$1 is missing; $2"
}

target_folder() {
    cargo metadata --locked --no-deps --format-version 1 |
        sed 's/.*"target_directory":"\([^"]*\)".*/\1/'
}

# Two copies of the sources. The second is built with another cargo home, because registry paths
# would show up in a binary just as well.
verify() {
    folder=$(target_folder)/release-verify
    rm -rf "$folder"
    for copy in first the/second; do
        mkdir -p "$folder/$copy"
        git ls-files -z | xargs -0 tar cf - | tar xf - -C "$folder/$copy"
    done
    cargo fetch --locked
    mkdir -p "$folder/home"
    cp -R "${CARGO_HOME:-$HOME/.cargo}/registry" "$folder/home/"
    rm -rf "$folder/home/registry/src"
    cp "${CARGO_HOME:-$HOME/.cargo}"/config* "$folder/home/" 2>/dev/null || true

    export SOURCE_DATE_EPOCH
    for target in $TARGETS; do
        home=$folder/home
        case $target in *windows*) home=${CARGO_HOME:-$HOME/.cargo} ;; esac
        TARGETS=$target CARGO_TARGET_DIR=$folder/first/target \
            "$folder/first/scripts/release.sh" "$folder/a/$target"
        TARGETS=$target CARGO_HOME=$home CARGO_TARGET_DIR=$folder/elsewhere \
            "$folder/the/second/scripts/release.sh" "$folder/b/$target"
        cmp "$folder/a/$target/SHA256SUMS" "$folder/b/$target/SHA256SUMS" ||
            fail "the two builds for $target differ: see $folder"
    done
    rm -rf "$folder"
    echo 'two builds in two folders gave the same bytes'
}

# The compiler of ring's C parts: the name that is looked for, and Debian's package of it.
compiler() {
    case $1 in
    x86_64-unknown-linux-musl) echo musl-gcc musl-tools ;;
    aarch64-unknown-linux-musl) echo aarch64-linux-gnu-gcc gcc-aarch64-linux-gnu ;;
    x86_64-pc-windows-gnu) echo x86_64-w64-mingw32-gcc gcc-mingw-w64-x86-64 ;;
    *) fail "no release is made for $1" ;;
    esac
}

# What a target's linker is told for a release. Relative relocations, packed, take a few hundred
# bytes in place of 85 KB; the C library must know them, and that of Rust 1.93 is the first.
# The linker of Windows programs would write the time into them.
link_flags() {
    case $1 in
    x86_64-unknown-linux-musl) echo -Wl,-z,pack-relative-relocs ;;
    aarch64-unknown-linux-musl) echo --pack-dyn-relocs=relr ;;
    x86_64-pc-windows-gnu) echo -Wl,--no-insert-timestamp ;;
    esac
}

# The compiler's flags as a list of TOML. A file's path gets into a binary with every place that can
# panic; the last of the prefixes that match counts.
flags() {
    printf '["-Clink-arg=%s"' "$(link_flags "$1")"
    printf ', "--remap-path-prefix=%s=%s"' \
        "$(rustc --print sysroot)" /rust "${CARGO_HOME:-$HOME/.cargo}" /cargo "$PWD" /uncut
    for index in "${CARGO_HOME:-$HOME/.cargo}"/registry/src/*; do
        printf ', "--remap-path-prefix=%s=/packages"' "$index"
    done
    printf ']\n'
}

# A path of this machine in a binary tells who built it, and breaks the promise of same bytes.
no_path_in() {
    for path in "${HOME:-/nowhere}" "${CARGO_HOME:-$HOME/.cargo}" "$PWD" "$built"; do
        ! grep -aqF "$path/" "$1" || fail "$1 holds the path $path/"
    done
}

build() {
    target=$1
    compiler=$(compiler "$target")
    need "${compiler% *}" "Debian has it in ${compiler#* }"
    case " $(rustup target list --installed | tr '\n' ' ') " in
    *" $target "*) ;;
    *) rustup target add "$target" || fail "rustup can't add $target" ;;
    esac
    cargo build --locked --release --quiet --bin uncut --target "$target" \
        --config "target.$target.rustflags=$(flags "$target")"
    suffix=
    case $target in *windows*) suffix=.exe ;; esac
    name=uncut-$version-$target
    cp "$built/$target/release/uncut$suffix" "$folder/$name$suffix"
    no_path_in "$folder/$name$suffix"
    scripts/supply.py sbom "$target" >"$folder/$name.cdx.json"
    scripts/supply.py licences "$target" >"$folder/$name.licences.txt"
    echo "$(wc -c <"$folder/$name$suffix") bytes  $name$suffix"
}

need cargo 'install a Rust toolchain'
need rustup 'it brings the standard libraries of the targets'
need python3 'it writes the bill of materials'
: "${SOURCE_DATE_EPOCH:=$(git log -1 --format=%ct)}"
export SOURCE_DATE_EPOCH
minor=$(rustc --version | sed 's/^rustc 1\.\([0-9]*\).*/\1/')
[ "$minor" -ge 93 ] || fail "a release needs Rust 1.93 or later; this is $(rustc --version)"
# Flags of the caller would make other bytes.
for name in $(env | sed -n 's/^\([A-Za-z0-9_]*\)=.*/\1/p'); do
    case $name in
    CARGO_TARGET_DIR) ;;
    RUSTFLAGS | CARGO_ENCODED_RUSTFLAGS | CARGO_BUILD_* | CARGO_TARGET_* | CARGO_PROFILE_* | \
        RUSTC | RUSTC_* | CC | CC_* | CFLAGS | CFLAGS_* | TARGET_* | HOST_*) unset "$name" ;;
    esac
done

if [ "${1:-}" = --verify ]; then
    verify
    exit
fi
# The registry's folder must be there before its path can be taken out of the binaries.
cargo fetch --locked --quiet
built=$(target_folder)
folder=${1:-$built/release-files}
mkdir -p "$folder"
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
rm -f "$folder/uncut-$version"-* "$folder/SHA256SUMS"
for target in $TARGETS; do
    build "$target"
done
cd "$folder"
if command -v sha256sum >/dev/null 2>&1; then
    sha256sum "uncut-$version"-* >SHA256SUMS
else
    shasum -a 256 "uncut-$version"-* >SHA256SUMS
fi
cat SHA256SUMS

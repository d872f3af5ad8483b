#!/bin/sh
# The linker of aarch64-unknown-linux-musl: rust-lld, which comes with Rust, told to make a program
# that is static and can still be loaded at any address. For this target rustc itself offers only
# one or the other, though it brings the start files that both together need, under other names.
# rustc calls this with its own rust-lld on the PATH.
set -eu
for argument; do
    shift
    case $argument in
    */crt1.o) argument=${argument%crt1.o}rcrt1.o ;;
    */crtbegin.o | */crtend.o) argument=${argument%.o}S.o ;;
    esac
    set -- "$@" "$argument"
done
exec rust-lld "$@" -pie --no-dynamic-linker -z text

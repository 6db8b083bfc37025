#!/bin/sh
# Builds the fastest packers elsewhere from checkouts of their sources, and times them beside this library in one process,
# alternating (bench_peers). Figures in the docs are of seqpacker 9a9ead5 (github.com/AlphaKhaw/seqpacker, needs cargo)
# and LightBinPack 0e19c12 (github.com/TechxGenus/LightBinPack, needs a C++ compiler).
# usage: benchmarks/peers.sh [--seqpacker DIR] [--lightbinpack DIR] BENCH_PEERS [SAMPLES]
#   BENCH_PEERS: the program, build/benchmarks/benchmarks/bench_peers after benchmarks/run.sh; SAMPLES [10000000]
set -eu
seqpacker='' lightbinpack=''
while [ $# -gt 1 ]; do
    case $1 in
    --seqpacker) seqpacker=$(cd "$2" && pwd); shift 2 ;;
    --lightbinpack) lightbinpack=$(cd "$2" && pwd); shift 2 ;;
    *) break ;;
    esac
done
[ $# -ge 1 ] && [ $# -le 2 ] || { sed -n '5,6s/^# //p' "$0" >&2; exit 2; }
program=$1
source=$(cd "$(dirname "$0")" && pwd)
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT
set -- "${2:-10000000}"
about() { echo "$1 $(git -C "$2" rev-parse --short HEAD 2>/dev/null || echo of unknown commit)"; }
if [ -n "$lightbinpack" ]; then
    about LightBinPack "$lightbinpack"
    # As its setup.py compiles it.
    c++ -O3 -march=native -std=c++17 -shared -fPIC -I"$source/peers" -I"$lightbinpack" "$source/peers/lightbinpack.cpp" -o "$build/lightbinpack.so"
    set -- "$@" "$build/lightbinpack.so"
fi
if [ -n "$seqpacker" ]; then
    about seqpacker "$seqpacker"
    mkdir -p "$build/rust/src"
    cp "$source/peers/seqpacker.rs" "$build/rust/src/lib.rs"
    cat >"$build/rust/Cargo.toml" <<EOF
[package]
name = "peer"
version = "0.0.0"
edition = "2024"
[lib]
crate-type = ["cdylib"]
[dependencies]
seqpacker = { path = "$seqpacker/crates/seqpacker" }
[profile.release]
lto = true
codegen-units = 1
[workspace]
EOF
    (cd "$build/rust" && RUSTFLAGS='-C target-cpu=native' cargo build --quiet --release)
    set -- "$@" "$build/rust/target/release/libpeer.so"
fi
"$program" "$@"

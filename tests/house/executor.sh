#!/bin/sh
# The executor as a project of its own: built outside the tree against an installed libhbp, it runs a plan.
# usage: executor.sh SOURCE BUILD CC
set -eu
source=$1 build=$2 cc=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
show() { "$@" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }; }
show cmake --install "$build" --prefix "$work/installed"
mv "$work/installed" "$work/moved"
prefix=$work/moved
rm -f "$prefix/bin/hbp_executor"* # not the one that was built with the library
cp -R "$source/examples/executor" "$work/executor" # nothing beside it is within reach

# Unoptimised: what is tested is that it builds and runs.
show cmake -S "$work/executor" -B "$work/build" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_C_COMPILER="$cc" -DCMAKE_BUILD_TYPE=Debug \
    -DHBP_CUDA=OFF
show cmake --build "$work/build" -j 2
show cmake --install "$work/build" --prefix "$work/own"

lib=$(dirname "$(find "$prefix" -name 'libhbp.*' | head -n 1)")
hbp() { show env LD_LIBRARY_PATH="$lib" "$prefix/bin/hbp" "$@"; }
model=llama-3.1-8b,layers=2,hidden=32,ffn=64,heads=4,kv_heads=2,head_dim=8,vocab=97
awk 'BEGIN { print "length"; for (i = 0; i < 20; i++) print 20 + 7 * i % 60 }' >"$work/lengths.csv"
hbp step "$work/lengths.csv" --samples-per-step 20 --model "$model" --machine h100:1,gpus_per_node=1,domain_gpus=1,hbm_bytes=4.4e9 --zero none \
    --fused-ce -o "$work/plan.msgpack"
for executor in "$work/build/hbp_executor" "$work/own/bin/hbp_executor"; do
    show env OPENBLAS_NUM_THREADS=1 "$executor" run "$work/plan.msgpack" --model "$model" --json
    grep -q '"samples": 20, "tokens": [1-9]' "$work/log" || { cat "$work/log"; echo "not a step of 20 samples"; exit 1; }
done
# A model that has never seen a token knows nothing of the next one: its loss is near ln 97 = 4.57.
awk -F '"loss": ' '/"loss"/ { split($2, loss, ","); exit !(loss[1] > 4 && loss[1] < 5.2) }' "$work/log" || { cat "$work/log"; exit 1; }
show "$work/build/hbp_executor" probe --seconds 1 -o "$work/here.json"
hbp probe --machine "$work/here.json"

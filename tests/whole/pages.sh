#!/bin/sh
# The command lines, Python and C of README.md and docs/ run as printed (pages.py), in a copy of the repository's root as
# examples/quickstart.sh leaves it: a million lengths, a plan, what the small run wrote. The pages' own lines for that run make its files.
# usage: pages.sh PROGRAMS LIBHBP SOURCE [PAGE ...]            skipped, 77, without Python 3
set -u
programs=$1 libraries=$(dirname "$2") source=$3
shift 3
. "$source/cmake/packages.sh"
command -v python3 >/dev/null || { echo "no python3"; exit 77; }
python=$(python_with_numpy || true)
[ -n "$python" ] || echo "no numpy: Python is compiled and not run"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root
mkdir -p "$root/build/quickstart" && cd "$root" || exit 1
for entry in "$source"/*; do # what a line reads of the sources; what it writes goes to build/
    case ${entry##*/} in build* | venv | dist) ;; *) ln -s "$entry" . ;; esac
done
ln -s "$programs" build/quickstart/examples
ln -s "$libraries" build/quickstart/lib
build=build/quickstart
eval "$(sed -n '/^short_names() {/,/^}/p' "$source/examples/quickstart.sh")"
short_names
{
    build/draw_lengths examples/data/wikipedia.csv build/lengths.npy 1000000 0 131072
    build/draw_lengths examples/data/vlm.csv build/samples.csv 70706
    build/hbp plan build/lengths.npy --model llama-3.1-8b --machine h100:4 --max-length 128K --over-long truncate -o build/plan.msgpack
    model=llama-3.1-8b,layers=2,hidden=128,ffn=384,heads=8,kv_heads=4,head_dim=16,vocab=512
    build/hbp_executor probe --virtual 2 --seconds 1 -o build/here.json
    build/hbp_executor measure --virtual 2 --model $model --max-tokens 256 --clock cpu -o build/packs.csv
    build/hbp fit build/packs.csv --model $model --machine build/here.json --zero none --fused-ce -o build/cost.json
    build/draw_lengths examples/data/wikipedia.csv build/few.npy 200 1 1024
    build/hbp plan build/few.npy --cost build/cost.json --max-length 1024 --tokens-per-step 16K -o build/few.msgpack
    build/hbp_executor run build/few.msgpack --model $model --virtual 2 --cost build/cost.json --timeline build/run.csv
} >"$work/log" 2>&1
for name in $(grep -oE '\$out/[a-z]+\.[a-z]+' "$source/examples/quickstart.sh" | sed 's|.*/||' | sort -u); do
    [ -s "build/$name" ] || [ "$name" = trace.json ] || { cat "$work/log"; echo "FAIL: the quickstart leaves $name, this does not"; exit 1; }
done
"${python:-python3}" "$source/tests/whole/pages.py" "$root" "$source" "$python" "$@"

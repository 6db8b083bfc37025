#!/bin/sh
# Draws docs/images/ranks.svg: 4,000 lengths of Wikipedia's articles, packed by the best of seven known fills of packs of one
# length and degree that `hbp compare` finds for them (isf, 98,640 tokens, SP 8), and planned by this library.
# usage: docs/images/ranks.sh [PROGRAMS [OUT.svg]], PROGRAMS being build/quickstart/examples or the like
set -eu
source=$(cd "$(dirname "$0")/../.." && pwd)
programs=$(cd "${1:-$source/build/quickstart/examples}" && pwd) out=${2:-$source/docs/images/ranks.svg}
case $out in /*) ;; *) out=$PWD/$out ;; esac
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
on="--model llama-3.1-8b --machine h100:4"
"$programs/draw_lengths" "$source/examples/data/wikipedia.csv" lengths.npy 4000 1 131072
# shellcheck disable=SC2086
{
    "$programs/hbp" plan lengths.npy $on --method isf --max-sp 8 --max-pack-length 98640 -o before.msgpack >before.txt
    "$programs/hbp" plan lengths.npy $on -o after.msgpack >after.txt
}
"$programs/draw_plan" "$out" "4,000 Wikipedia articles through llama-3.1-8b on 32 H100" \
    before.msgpack "ISF at its best, packs of one length and degree" after.msgpack "libhbp"

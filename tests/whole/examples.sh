#!/bin/sh
# The examples do what their words say: each is run, and what it prints is held against what its source says of the input.
# usage: examples.sh quick|first|pack|partition|stepper|tasks PROGRAM
#        examples.sh train HBP DRAW_LENGTHS LIBHBP SOURCE        skipped, 77, without a Python that has numpy
#        examples.sh quickstart BUILD SOURCE                     the same
set -u
name=$1
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { cat "$work/out"; echo "FAIL: $*"; exit 1; }
# says WORDS AWK: a rule over what was printed, with `bad` and the count `n` of lines that it looked at.
says() { awk "$2 END { exit bad || !n }" "$work/out" || fail "$1"; }

need_numpy() {
    # shellcheck source=/dev/null
    . "$1/cmake/packages.sh"
    python=$(python_with_numpy) || { echo "no numpy"; exit 77; }
}

case $name in
quick) # the same samples as first.c, on 32 ranks
    "$1" >"$work/out" || fail "status"
    says "not a plan of some steps" '/ steps; in step 0 rank 5 runs/ { n++; if ($1 < 2) bad = 1 }'
    says "packs without samples, or of no degree" '/ samples of / { n++; if ($1 < 1 || $4 < 200 || $8 < 1 || $8 > 32) bad = 1 }'
    ;;
pack) # 14,000 samples of 100 to 1,299 tokens, each hundredth of 6,000 to 7,999; packs of 8,192 on 8 ranks
    "$1" >"$work/out" || fail "status"
    says "fewer packs than the bound" '/ packs, at least / { n++; gsub(",", ""); if ($1 < $5 || $1 > 1.02 * $5) bad = 1 }'
    says "packs past their length, or of very unlike squares" '/^  rank / { n++; gsub(",", "")
        if ($2 + 0 != n - 1 || $5 > 8192 || $3 < 1) bad = 1
        if (!least || $7 < least) least = $7; if ($7 > most) most = $7 } END { if (n != 8 || most > 1.05 * least) exit 1 }'
    says "no packs of its own" '/^packed by next fit/ { n++; if ($NF + 0 < 1) bad = 1 }'
    says "no SP degree" '/^a pack of / { n++; if ($11 != "SP" || $12 + 0 < 1) bad = 1 }'
    says "no groups" '/^the groups / { n++; if ($0 !~ / x SP /) bad = 1 }'
    ;;
partition) # sample i has 4000 + 4 i tokens if i % 50 == 0, else 100 + 37 i % 1500
    "$1" >"$work/out" || fail "status"
    says "not packs for 4 ranks, near the bound" '/ packs \(no fewer/ { n++; if ($1 % 4 || $6 > $1 || $14 > 8192) bad = 1 }'
    says "the samples of a pack" '/^  sample / { n++; i = $2 + 0; sum += $3; if ($3 != (i % 50 ? 100 + i * 37 % 1500 : 4000 + 4 * i)) bad = 1 } END { if (sum > 8192) exit 1 }'
    ;;
first) # sample i has 60000 + i tokens if i % 100 == 0, else 200 + 37 i % 3000; five samples of a pack are printed
    "$1" >"$work/out" || fail "status"
    says "the samples printed are longer than their packs, or no samples" '/micro-batch/ {
        n++; for (i = 1; i <= NF; i++) { if ($i == "SP") sp = $(i + 1) + 0; if ($i == "samples") { samples = $(i - 1); tokens = $(i + 2) + 0; at = i + 4 } }
        sum = 0; for (i = at; i < NF; i++) { if ($i < 0 || $i >= 14000) bad = 1; sum += $i % 100 ? 200 + $i * 37 % 3000 : 60000 + $i }
        if (sum > tokens || (samples <= 5 && sum != tokens) || samples < 1 || sp < 1 || sp > 32) bad = 1 }'
    says "not a plan of some steps" '/ steps; step 0 takes / { n++; if ($1 < 2 || $6 < 1) bad = 1 }'
    ;;
stepper) # rank 5 of 16; batches of 512; communicators are listed before the run
    "$1" >"$work/out" || fail "status"
    says "rank 5 is not in its communicators" '/^communicator/ { n++; if ($4 > 5 || $6 < 5) bad = 1 }'
    says "a micro-batch has a group that was not listed, or another place in it" '
        /^communicator/ { sub(":", "", $2); first[$2] = $4; size[$2] = $6 - $4 + 1 }
        /micro-batch.*communicator/ { n++; sub(",", "", $4); sub(",", "", $8)
            if (!($4 in size) || $6 != 5 - first[$4] || $8 != size[$4] || $NF < 0 || $NF >= 512) bad = 1 }'
    says "not six steps" '/^step/ { n++; if ($2 + 0 != n - 1 || $3 < 1 || seen[$6]++) bad = 1 } /^6 steps/ { done = 1 } END { if (n != 6 || !done) exit 1 }'
    mv "$work/out" "$work/once"
    "$1" >"$work/out" || fail "status of a second run"
    cmp "$work/out" "$work/once" || fail "a second run plans otherwise"
    ;;
tasks) # on 16 GPUs the captions alone take 24 (.48 + 1.4) = 45.1 ms, and all chains one after another 78.2
    "$1" >"$work/out" || fail "status"
    says "the makespan or its gap" '/a step on 16 GPUs/ { n++; if ($1 < 45.1 || $1 > 78.3 || $10 !~ /^[0-9.]+$/ || $10 > 10) bad = 1 }'
    says "rank 3 runs layers of no chain, or one twice" '/^rank 3/ {
        n++; layers = $3 ~ /text\/text|audio/ ? 12 : 24
        if ($5 > $7 || $7 >= layers || $9 < 1 || $9 > 16) bad = 1
        for (i = $5; i <= $7; i++) if (ran[$3 " " i]++) bad = 1 }'
    ;;
train)
    need_numpy "$4"
    export HBP_LIBRARY="$3" PYTHONPATH="$4/bindings/python/src" PYTHONDONTWRITEBYTECODE=1
    # With token losses of 1 the loss of a step is 1, of which every rank has its share.
    "$2" "$4/examples/data/wikipedia.csv" "$work/lengths.npy" 3000 1 60000 || fail "no lengths"
    "$1" plan "$work/lengths.npy" --model llama-3.1-8b --machine h100:1 -o "$work/plan.msgpack" >"$work/out" || fail "no plan"
    for rank in 0 1 2 3 4 5 6 7; do
        "$python" "$4/examples/train.py" "$work/plan.msgpack" --rank $rank --steps 2 >>"$work/out" 2>&1 || fail "rank $rank"
    done
    says "the ranks' shares do not add up to the loss" '/share of the loss/ { n++; sum += $8 } END { if (n != 16 || sum < 1.99 || sum > 2.01) exit 1 }'
    says "a checkpoint is of another step" '/^step/ { at = $2 + 1 } /resume at/ { n++; if ($NF != at) bad = 1 }'
    "$python" "$4/examples/train.py" --steps 1 >"$work/out" 2>&1 || fail "its own lengths"
    says "its own lengths" '/^60,000 samples/ { n++ }'
    ;;
quickstart)
    need_numpy "$2"
    "$1/examples/draw_lengths" "$2/examples/data/wikipedia.csv" "$work/lengths.npy" "$([ "${HBP_ALL_ROUNDS:-}" ] && echo 20000 || echo 4000)" 1 131072 || fail "no lengths"
    sh "$2/examples/quickstart.sh" --build "$1" --out "$work/here" --lengths "$work/lengths.npy" >"$work/out" 2>&1 || fail "status"
    for title in "The lengths" "the packing groups" "beside the classic ways" "Step 0, as rank 0 runs it" "examples/train.py" "A plan that is run" "Next"; do
        grep -q "^== .*$title" "$work/out" || fail "nothing under '$title'"
    done
    says "a classic way is faster than this plan, or none was tried" '/x this/ { table = 1 } /^$/ { table = 0 }
        table { for (i = 2; i < NF; i++) if ($i ~ /^(ms|s|min|h)$/) { n++; if ($(i + 1) < 1) bad = 1 } } END { if (n < 10) exit 1 }'
    says "the small transformer learnt nothing" '/ steps on 2 ranks/ { n++; for (i = 1; i <= NF; i++) if ($i == "loss" && $(i + 3) + 0 >= $(i + 1)) bad = 1 }'
    ;;
*)
    echo "no example '$name'"
    exit 1
    ;;
esac
echo "$name does what it says"

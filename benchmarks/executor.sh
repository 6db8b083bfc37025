#!/bin/sh
# The loop on real lengths: probe, measure, fit, plan in four ways, run each plan for the same samples.
# usage: benchmarks/executor.sh [OPTION VALUE]...
#   --device cpu|cuda     (default cpu)
#   --ranks "1 2"         numbers of ranks, each a run of its own (default: "1 2" on CPUs, over MPI; 1 on a GPU)
#   --model NAME          as hbp takes it (default: a small Llama; on a GPU llama-3.1-8b with 4 layers)
#   --max-length TOKENS   longest sample and pack (default 2048; on a GPU 131072)
#   --step-packs N        longest packs that a step has room for, a rank (default 4)
#   --samples N           of each data set (default 24; on a GPU 64)
#   --data "NAME..."      of examples/data/ (default "reasoning conversation_long")
#   --ways "NAME..."      beside search, as hbp plan --method has them (default "sorted next-fit no-packing")
#   --clock wall|cpu      cpu: what ranks' threads compute, on machines that others use as well (default wall)
#   --repeat N            run every pack N times, record the least (default 1)
#   --rounds N            of all ways in turn (default 2)
#   --seconds X           about how long to measure packs for the fit (default 10)
#   --build DIR           where examples/hbp and the executor are built (default build/benchmarks)
#   --executor PATH       another executor
set -eu
device=cpu ranks='' model='' longest='' step_packs=4 samples='' data='reasoning conversation_long'
ways='sorted next-fit no-packing' clock=wall repeat=1 rounds=2 seconds=10 build=build/benchmarks executor=''
while [ $# -gt 0 ]; do
    [ $# -gt 1 ] || { sed -n '3,18s/^# //p' "$0" >&2; exit 2; }
    case $1 in
    --device) device=$2 ;;
    --ranks) ranks=$2 ;;
    --model) model=$2 ;;
    --max-length) longest=$2 ;;
    --step-packs) step_packs=$2 ;;
    --samples) samples=$2 ;;
    --data) data=$2 ;;
    --ways) ways=$2 ;;
    --clock) clock=$2 ;;
    --repeat) repeat=$2 ;;
    --rounds) rounds=$2 ;;
    --seconds) seconds=$2 ;;
    --build) build=$2 ;;
    --executor) executor=$2 ;;
    *) sed -n '3,18s/^# //p' "$0" >&2; exit 2 ;;
    esac
    shift 2
done
case $build in /*) ;; *) build=$(cd "$(dirname "$0")/.." && pwd)/$build ;; esac
case $executor in '' | /*) ;; *) executor=$PWD/$executor ;; esac
cd "$(dirname "$0")/.."
suffix=''
if [ "$device" = cuda ]; then
    suffix=_cuda
    : "${ranks:=1}" "${model:=llama-3.1-8b,layers=4}" "${longest:=131072}" "${samples:=64}"
else
    : "${ranks:=1 2}" "${longest:=2048}" "${samples:=24}"
    : "${model:=llama-3.1-8b,layers=2,hidden=256,ffn=768,heads=8,kv_heads=4,head_dim=32,vocab=1024}"
fi
: "${executor:=$build/examples/executor/hbp_executor$suffix}"
hbp=$build/examples/hbp draw=$build/examples/draw_lengths
for program in "$hbp" "$draw" "$executor" "$build/benchmarks/timeline_errors"; do
    [ -x "$program" ] || { echo "no $program; build it, or name its place by --build" >&2; exit 1; }
done
export OPENBLAS_NUM_THREADS=1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
launcher=${MPIRUN:-mpirun} patience=3600
: "$launcher" "$patience" # of launch.sh
if command -v "$launcher" >/dev/null; then
    # shellcheck source=/dev/null
    . tests/executor/mpi/launch.sh
fi

failed() {
    echo "failed: $*" >&2
    cat "$work/err" >&2
    exit 1
}
quietly() { "$@" >"$work/out" 2>"$work/err" || failed "$@"; }
# on COMMAND...: the executor on $count ranks.
on() {
    command=$1
    shift
    set -- "$command" --device "$device" "$@"
    if [ "$count" = 1 ]; then
        quietly "$executor" "$@"
    else
        launch "$count" "$executor" "$@" || failed "$count ranks of $executor $*"
    fi
}
# number FILE KEY: of JSON as hbp prints it, a key a line.
number() { sed -n "s/^ *\"$2\": \([^,]*\),*$/\1/p" "$1" | head -n 1; }

# errors TIMELINE COST or TIMELINE MODEL MACHINE: sets packs, measured, predicted (ns) and errors.
errors() {
    quietly "$build/benchmarks/timeline_errors" "$@"
    # shellcheck disable=SC2046
    set -- $(cat "$work/out")
    packs=$1 measured=$6 predicted=$7
    errors=$(awk -v a="$2" -v b="$3" -v c="$4" -v d="$5" \
        'BEGIN { printf "%.1f %% (%.1f %%), %.1f %% (%.1f %%)", 100 * a, 100 * b, 100 * c, 100 * d }')
}

learn() {
    on probe --seconds 4 -o "$work/machine.json"
    on measure --model "$model" --max-tokens "$longest" --seconds "$seconds" --clock "$clock" -o "$work/packs.csv"
    quietly "$hbp" fit "$work/packs.csv" --model "$model" --machine "$work/machine.json" --zero none --fused-ce \
        -o "$work/cost.json"
    errors "$work/packs.csv" "$model" "$work/machine.json"
    printf '%-44s %s\n' "packs measured for the fit" "$packs" "  the prior (analysis and probe) is off by" "$errors"
    errors "$work/packs.csv" "$work/cost.json"
    printf '%-44s %s\n' "  the fit" "$errors"
}

# plan_way WAY: the lengths with the fitted cost.
plan_way() {
    way=$1
    quietly "$hbp" plan "$work/lengths.npy" --cost "$work/cost.json" --max-length "$longest" \
        --tokens-per-step $((step_packs * longest * count)) --method "$way" --json -o "$work/$way.msgpack"
    [ "$(number "$work/out" samples)" = "$samples" ] ||
        { echo "$way: $(number "$work/out" samples) of $samples samples are in the plan" >&2; exit 1; }
    mv "$work/out" "$work/$way.json"
}

# run_way WAY ROUND: a row of figures, and what the prior and the fitted cost make of this run.
run_way() {
    way=$1 plan=$work/$1.json
    on run "$work/$way.msgpack" --model "$model" --clock "$clock" --repeat "$repeat" --json --timeline "$work/run.csv"
    whole=$(sed -n 's/.*"seconds": \([0-9.]*\), "packs.*/\1/p' "$work/out" | awk '{ s += $1 } END { print s }')
    errors "$work/run.csv" "$model" "$work/machine.json"
    by_prior=$errors
    errors "$work/run.csv" "$work/cost.json"
    printf '%-14s %-44s %s\n' "$way" "$by_prior" "$errors" >>"$work/errors-$2"
    echo "$way $2 $(number "$plan" steps) $packs $(number "$plan" padding) $(number "$plan" tokens) $measured $predicted" \
        "$whole" >>"$work/rows"
}

# Rates are those of all rounds; the ratio is that of each round, the lowest and the highest.
print_rows() {
    awk -v row='%-14s %6s %6s %9s %10s %10s %16s %12s\n' '
        BEGIN {
            printf row, "way", "steps", "packs", "capacity", "tokens/s", "predicted", "over search", "whole steps"
            printf row, "", "", "", "unused", "of packs", "", "in a round", "tokens/s"
        }
        $1 == "search" { own[$2] = $7 }
        {
            if (!($1 in tokens)) name[++ways] = $1
            over = own[$2] / $7
            if (!($1 in tokens) || over < low[$1]) low[$1] = over
            if (!($1 in tokens) || over > high[$1]) high[$1] = over
            tokens[$1] += $6; measured[$1] += $7; predicted[$1] += $8; whole[$1] += $9
            steps[$1] = $3; packs[$1] = $4; padding[$1] = $5
        }
        END {
            for (i = 1; i <= ways; i++) {
                w = name[i]
                printf row, w, steps[w], packs[w], sprintf("%.1f %%", 100 * padding[w]),
                    sprintf("%.0f", tokens[w] / measured[w] * 1e9), sprintf("%.0f", tokens[w] / predicted[w] * 1e9),
                    sprintf("%.3f .. %.3f", low[w], high[w]), sprintf("%.0f", tokens[w] / whole[w])
            }
        }' "$work/rows"
}

for count in $ranks; do
    if [ "$count" != 1 ] && { ! command -v "$launcher" >/dev/null || ! launch 1 true; }; then
        printf '\n== The loop on %s ranks: skipped, %s starts nothing here\n' "$count" "$launcher"
        continue
    fi
    printf '\n== The loop on %s of %s, %s clock: errors are medians (95th percentiles) of packs, then of steps\n' \
        "$count" "$device" "$clock"
    printf '%-44s %s\n' "model" "$model"
    learn
    for name in $data; do
        quietly "$draw" "examples/data/$name.csv" "$work/lengths.npy" "$samples" 1 "$longest"
        printf '\n-- %s, %s samples of at most %s tokens\n' "$name" "$samples" "$longest"
        rm -f "$work/rows" "$work"/errors-*
        for way in search $ways; do
            plan_way "$way"
        done
        for round in $(seq "$rounds"); do
            for way in search $ways; do
                run_way "$way" "$round"
            done
        done
        print_rows
        printf '%-14s %-44s %s\n' 'errors of' 'the prior' "the fitted cost (the last round's)"
        cat "$work/errors-$rounds"
    done
done
cat <<'END'

Over search: tokens/s over those of this library's plan. Packs count by the slowest of a micro-batch; whole steps, on the wall
clock, have gradients and the optimiser as well. Nobody computes unused capacity here: no-packing and sorted run each sample
alone, without padding, where a trainer that pads its batches would compute it all. Steps have room for the same tokens; ways
that leave room unused take more of them.
END

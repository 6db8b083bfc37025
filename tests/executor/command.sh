#!/bin/sh
# hbp_executor as a user runs it: over MPI the loss and the gradients of samples run one by one; a resumed run; the loop
# from measured packs to a cost; and everything a user gets wrong. Skipped by 77 without a launcher or numpy.
# usage: command.sh LAUNCHER EXECUTOR HBP DRAW_LENGTHS SOURCE
set -u
launcher=$1 executor=$2 hbp=$3 draw=$4 source=$5
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bad=0
fail() { echo "FAIL: $*"; bad=1; }
export OPENBLAS_NUM_THREADS=1

# shellcheck source=/dev/null
. "$source/cmake/packages.sh"
python=$(python_with_numpy) || { echo "no numpy"; exit 77; }
# shellcheck source=/dev/null
. "$source/tests/executor/mpi/launch.sh"
launch 1 true || { cat "$work/err"; echo "the launcher starts nothing here"; exit 77; }

model=llama-3.1-8b,layers=3,hidden=48,ffn=64,heads=8,kv_heads=2,head_dim=8,vocab=97
# A rank holds some hundred tokens, so that long samples are spread over 2, 4 and 8 ranks.
machine() { # RANKS
    [ "$1" = 1 ] && memory=4400000000 || memory=4296600000
    "$hbp" probe --machine h100:1 --set "gpus_per_node=$1,domain_gpus=$1,hbm_bytes=$memory" -o "$work/machine-$1.json" \
        >"$work/out" || fail "no machine of $1 ranks"
}
plan() { # RANKS MORE...: a step of 60 samples, $work/plan-RANKS.msgpack
    ranks=$1
    shift
    machine "$ranks"
    "$hbp" step "$work/lengths.npy" --samples-per-step 60 --model "$model" --machine "$work/machine-$ranks.json" --zero none --fused-ce \
        -o "$work/plan-$ranks.msgpack" "$@" >"$work/out" 2>&1 || fail "no plan for $ranks ranks: $(cat "$work/out")"
}
loss_of() { sed -n 's/.*"loss": \([^,]*\),.*/\1/p' "$1" | tail -n 1; }

"$draw" "$source/examples/data/wikipedia.csv" "$work/lengths.npy" 60 1 600 || fail "no lengths"

echo "== the same loss and gradients"
plan 1
"$executor" run "$work/plan-1.msgpack" --model "$model" --unpacked --no-update --json --gradients "$work/alone" \
    >"$work/alone.json" || fail "unpacked"
for ranks in 1 2 4 8; do
    [ $ranks = 1 ] || plan $ranks
    launch $ranks "$executor" run "$work/plan-$ranks.msgpack" --model "$model" --no-update --json --comm mpi \
        --gradients "$work/packed-$ranks" || fail "$ranks ranks: $(cat "$work/err")"
    cp "$work/out" "$work/packed.json"
    "$python" "$source/tests/executor/compare_gradients.py" "$work/alone" "$work/packed-$ranks" 1e-5 || fail "$ranks ranks"
    "$python" -c "import sys; sys.exit(abs($(loss_of "$work/packed.json") / $(loss_of "$work/alone.json") - 1) > 1e-5)" ||
        fail "$ranks ranks: loss $(loss_of "$work/packed.json"), not $(loss_of "$work/alone.json")"
done
"$hbp" show "$work/plan-8.msgpack" --step 0 --json | grep '"sp"' | sort -u | wc -l | grep -q '^ *[3-4]' ||
    fail "the plan for 8 ranks has fewer than three SP degrees"

echo "== resume"
"$hbp" plan "$work/lengths.npy" --model "$model" --machine "$work/machine-2.json" --set hbm_bytes=4300000000 --zero none --fused-ce --tokens-per-step 2000 \
    -o "$work/epoch.msgpack" >"$work/out" 2>&1 || fail "no epoch: $(cat "$work/out")"
train() { launch 2 "$executor" run "$work/epoch.msgpack" --model "$model" --json "$@" || fail "$*: $(cat "$work/err")"; }
train --save "$work/whole.state"
whole=$(loss_of "$work/out")
train --steps 2 --save "$work/two.state"
train --resume "$work/two.state" --save "$work/rest.state"
[ "$(loss_of "$work/out")" = "$whole" ] || fail "resumed: loss $(loss_of "$work/out"), not $whole"
launch 2 "$executor" run "$work/epoch.msgpack" --model "$model" --resume "$work/whole.state" && fail "there is nothing to resume"
grep -q "whole.state stands at the plan's end, after its" "$work/err" || fail "at the end: $(cat "$work/err")"
cmp "$work/whole.state" "$work/rest.state" || fail "the resumed run ends elsewhere"

echo "== the loop"
launch 2 "$executor" probe --seconds 2 -o "$work/here.json" || fail "probe: $(cat "$work/err")"
small=llama-3.1-8b,layers=3,hidden=128,ffn=256,heads=8,kv_heads=2,head_dim=16,vocab=257
"$hbp" plan "$work/lengths.npy" --model $small --machine "$work/here.json" --zero none --fused-ce --tokens-per-step 3000 \
    --max-length 1200 -o "$work/first.msgpack" >"$work/out" 2>&1 || fail "no plan from the profile: $(cat "$work/out")"
launch 2 "$executor" run "$work/first.msgpack" --model $small --repeat 3 --no-update --timeline "$work/run.csv" \
    --profile "$work/here.json" || fail "measured run: $(cat "$work/err")"
grep -q warning "$work/err" && fail "its own profile is of another machine: $(cat "$work/err")"
launch 2 "$executor" measure --model $small --max-tokens 256 --repeat 2 -o "$work/packs.csv" || fail "measure: $(cat "$work/err")"
"$hbp" fit "$work/packs.csv" --model $small --machine "$work/here.json" --zero none -o "$work/cost.json" >"$work/out" \
    2>"$work/err" || fail "fit: $(cat "$work/err")"
cat "$work/out"
"$hbp" plan "$work/lengths.npy" --cost "$work/cost.json" --tokens-per-step 3000 --max-length 1200 -o "$work/second.msgpack" \
    >"$work/out" 2>&1 || fail "no plan from the fitted cost: $(cat "$work/out")"
launch 2 "$executor" run "$work/second.msgpack" --model $small --repeat 3 --no-update --cost "$work/cost.json" ||
    fail "second run: $(cat "$work/err")"
grep 'cost.json:' "$work/out" || fail "no errors of the fitted cost: $(cat "$work/out")"
"$hbp" trace "$work/first.msgpack" --measured "$work/run.csv" -o "$work/trace.json" >"$work/out" 2>&1 ||
    fail "trace: $(cat "$work/out")"
"$python" -c "import json, sys; json.load(open(sys.argv[1]))" "$work/trace.json" || fail "the trace is no JSON"

echo "== what a user gets wrong"
says() { # TEXT COMMAND...: fails with status 1 or 2, and a line that holds TEXT
    text=$1
    shift
    "$@" >"$work/out" 2>"$work/err"
    status=$?
    [ $status = 1 ] || [ $status = 2 ] || fail "$*: status $status"
    grep -qF -- "$text" "$work/err" || fail "$*: '$text' is not in $(head -c 600 "$work/err")"
}
run="$executor run $work/plan-8.msgpack"
says "the plan is for 8 ranks and there are 4" $run --model "$model" --virtual 4
launch 3 $run --model "$model" && fail "3 ranks run a plan for 8"
[ "$(grep -c "the plan is for 8 ranks and there are 3" "$work/err")" = 1 ] || fail "said other than once: $(cat "$work/err")"
says "which 6 heads and 6 key-value heads do not divide by" $run --virtual 8 \
    --model layers=3,hidden=48,ffn=64,heads=6,kv_heads=6,head_dim=8,vocab=97
says "memory: weights and optimiser need" $run --virtual 8 --model llama-3.1-405b
says "5 layers to recompute; the model has 3" $run --virtual 8 --model "$model" --recompute 5
says "mixtral-8x7b" $run --virtual 8 --model mixtral-8x7b
says "needs --model" $run
says "no option '--modle'" $run --modle x
says "are not a plan file" "$executor" run "$work/lengths.npy" --model "$model"
says "cannot open" $run --model "$model" --virtual 8 --tokens "$work/absent"
says "cannot open" $run --model "$model" --virtual 8 --resume "$work/absent"
says "the cursor is of a plan for 2 ranks; this one is for 8" $run --model "$model" --virtual 8 --resume "$work/two.state"
says "cannot write $work/none/state" $run --model "$model" --virtual 8 --save "$work/none/state"
says "cannot write $work/none/run.csv" $run --model "$model" --virtual 8 --timeline "$work/none/run.csv"
says "cannot make $work/none/gradients" $run --model "$model" --virtual 8 --gradients "$work/none/gradients"
[ -s "$work/out" ] && fail "a step was run before a bad path was said: $(cat "$work/out")"
says "--unpacked runs none of them" $run --model "$model" --unpacked --timeline "$work/run.csv"
says "--save-every needs --save FILE" $run --model "$model" --save-every 2
says "which --comm does not join" $run --model "$model" --virtual 8 --comm self
launch 2 $run --model "$model" --virtual 8 && fail "virtual ranks in each of two processes"
grep -q "in each of 2 processes that a launcher started" "$work/err" || fail "virtual ranks twice: $(cat "$work/err")"
# One rank with another option, with too little memory, and one that never begins: said, not waited for.
odd() { # TEXT OPTIONS BEFORE: rank 1 of 2 runs with OPTIONS, after the command BEFORE
    launch 2 sh -c 'run=$1; [ "${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-0}}" = 1 ] && run="$run $2" && eval "$3"; exec $run' odd \
        "$executor run $work/epoch.msgpack --model $model --timeout 2" "$2" "${3:-true}" && fail "$2$3: no failure"
    grep -qF -- "$1" "$work/err" || fail "$2$3: '$1' is not in $(cat "$work/err")"
}
odd "ranks 0 and 1 differ in --no-update;" --no-update
odd "ranks 0 and 1 differ in --learning-rate or --weight-decay;" "--learning-rate 0.5"
odd "no answer from a rank within the limit at the beginning" "" "exec sleep 30"
if [ -c /dev/full ]; then
    "$executor" run "$work/plan-1.msgpack" --model "$model" >/dev/full 2>"$work/err" && fail "a full device is no failure"
    grep -q "cannot write to standard output" "$work/err" || fail "a full device: $(cat "$work/err")"
fi
says "step 1 is not in the plan, which has 1" $run --model "$model" --virtual 8 --step 1 --steps 1
"$executor" run "$work/plan-1.msgpack" --model "$model" --profile "$work/machine-8.json" >"$work/out" 2>"$work/err" ||
    fail "a profile of another machine ends the run"
grep -q "warning: .*machine-8.json is of 'h100', and this is" "$work/err" || fail "no warning by name: $(cat "$work/err")"
exit $bad

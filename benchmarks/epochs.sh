#!/bin/sh
# Plans epochs of five data sets on machines of 8 to 1,024 GPUs: seconds of planning (the least of three, one thread) and
# how far the plan is over the bound. Lengths are drawn from the quantiles in examples/data/, up to 131,072.
# usage: benchmarks/epochs.sh BUILD [SAMPLES [all]]
#   BUILD: a folder that was built, as build/benchmarks by benchmarks/run.sh; SAMPLES [100000]; all: 21 models on ten
#   machines, planned once each (-: the model does not fit)
set -eu
[ $# -ge 1 ] && [ $# -le 3 ] && [ "${3:-all}" = all ] || { sed -n '4,6s/^# //p' "$0" >&2; exit 2; }
hbp=$1/examples/hbp draw=$1/examples/draw_lengths samples=${2:-100000} all=${3:-} runs='1 2 3'
[ -z "$all" ] || runs=1
data=$(cd "$(dirname "$0")/../examples/data" && pwd)
drawn=$(mktemp -d)
trap 'rm -rf "$drawn"' EXIT
files='wikipedia reasoning conversation_long conversation_short code_files'
printf '%d lengths, seconds and %% over the bound\n%-28s' "$samples" ''
for file in $files; do
    "$draw" "$data/$file.csv" "$drawn/$file.npy" "$samples" 3 131072
    printf '%20s' "$file"
done
echo
# A field of a JSON plan.
field() { sed -n "s/^  \"$1\": \([0-9.e+-]*\).*/\1/p" "$drawn/plan"; }
pairs() {
    if [ -z "$all" ]; then
        cat <<EOF
llama-3.1-8b h100:1
llama-3.1-8b h100:8
llama-3.1-70b h100:8
qwen3-30b-a3b h100:8
deepseek-v2 h100:32
llama-3.1-8b h100:64
llama-3.1-70b h100:64
qwen3-235b-a22b h200:64
deepseek-v3 h200:64
llama-3.1-405b h100:128
EOF
        return
    fi
    for model in llama-3-8b llama-3.1-8b llama-3.1-70b llama-3.1-405b internlm2-20b yi-34b qwen2-7b qwen2.5-14b qwen2.5-32b \
        qwen2.5-72b qwen3-8b qwen3-32b qwen3-30b-a3b qwen3-235b-a22b mixtral-8x7b mixtral-8x22b deepseek-v2 deepseek-v3 \
        gpt-7b gpt-13b gpt-30b; do
        for machine in a100-80:1 h100:2 h100:4 h100:8 h200:16 h100:32 h100:64 h100:128 b200:16 gb200-nvl72:4; do
            echo "$model $machine"
        done
    done
}
pairs | while read -r model machine; do
    printf '%-28s' "$model $machine"
    for file in $files; do
        least=
        for run in $runs; do
            "$hbp" plan "$drawn/$file.npy" --model "$model" --machine "$machine" --json >"$drawn/plan" 2>"$drawn/error" ||
                { [ "$all" ] && break; cat "$drawn/error" >&2; exit 1; }
            least=$(printf '%s %s\n' "$(field planning_seconds)" "$least" | awk '{ print NF < 2 || $1 < $2 ? $1 : $2 }')
        done
        if [ "$least" ]; then
            field gap | awk -v s="$least" '{ printf "%12.2f %5.2f %%", s, 100 * $1 }'
        else
            printf '%20s' -
        fi
    done
    echo
done

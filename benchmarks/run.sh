#!/bin/sh
# Builds and runs every benchmark; writes benchmarks/results/DATE.txt, what they print, and DATE-CPU.json, their figures for
# compare.py. Missed figures do not fail it, errors do.
# usage: benchmarks/run.sh [--quick | --long] [--json FILE]
#   --quick: few models and machines, no speed, no files; writes no results but to FILE
#   --long: speed at 100M samples (8 GB), all settings and GLPK for an hour and more, too
#   --json FILE: figures for compare.py, instead of those in results/
# Lengths are read from $HBP_DATA, or from ../shared/data beside the repository; what is absent is drawn from the
# quantiles in examples/data/.
set -eu
mode='' json=''
while [ $# -gt 0 ]; do
    case $1 in
    --quick | --long) mode=$1 ;;
    --json) json=${2:?--json needs a file}; shift ;;
    *) sed -n '4,7s/^# //p' "$0" >&2; exit 2 ;;
    esac
    shift
done
case $json in '' | /*) ;; *) json=$PWD/$json ;; esac
cd "$(dirname "$0")/.."
. cmake/packages.sh
need_build_packages
install_missing

# The executor is compiled for GPUs where there is one.
cuda=OFF
[ ! -e /dev/nvidiactl ] || cuda=AUTO

build=build/benchmarks
log=$(mktemp)
figures=$(mktemp -d)
trap 'rm -rf "$log" "$figures" "$build/plan.msgpack"' EXIT
quietly() { "$@" >"$log" 2>&1 || { tail -n 40 "$log" >&2; exit 1; }; }
quietly configure $build -DCMAKE_BUILD_TYPE=Release -DHBP_BUILD_TESTS=OFF -DHBP_BUILD_EXAMPLES=ON \
    -DHBP_CUDA=$cuda
quietly cmake --build $build -j "$(processors)"
programs=$build/benchmarks

field() { sed -n "s/^$2[[:space:]]*:[[:space:]]*//p" "$1" 2>/dev/null | head -n 1; }
about() {
    echo "date       $(date -u +%Y-%m-%d)"
    changed=$(git status --porcelain -- lib include examples/executor 2>/dev/null) || changed=
    echo "commit     $(git rev-parse --short HEAD 2>/dev/null || echo unknown)${changed:+, with changes}"
    echo "cpu        $(field /proc/cpuinfo 'model name'), $(processors) processors"
    echo "memory     $(field /proc/meminfo MemTotal)"
    echo "load       $(cut -d ' ' -f 1-3 /proc/loadavg 2>/dev/null || echo unknown)"
    echo "system     $(uname -sm)"
    compiler=$(sed -n 's/^CMAKE_C_COMPILER:[A-Z]*=//p' $build/CMakeCache.txt)
    echo "compiler   $("$compiler" --version | head -n 1), -O3"
    data=${HBP_DATA:-../shared/data}
    found=
    for file in "$data"/*.npy; do
        [ -f "$file" ] && found="$found $(basename "$file")"
    done
    echo "data      ${found:- none; drawn from quantiles}"
}

# bench NAME ARGUMENT...: runs it; its figures go to a file of their own.
runs=0
bench() {
    program=$1
    shift
    runs=$((runs + 1))
    BENCH_JSON=$figures/$(printf '%03d' $runs).json $programs/"$program" "$@"
}

# All figures as one list.
collect() {
    separator='['
    for file in "$figures"/*.json; do
        printf '%s\n' "$separator"
        cat "$file"
        separator=,
    done
    echo ']'
}

run_python() {
    if ! python=$(python_with_numpy); then
        printf '\n== Python: skipped, there is no numpy\n'
        return
    fi
    HBP_LIBRARY=$PWD/$build/lib/libhbp.so PYTHONPATH=bindings/python/src \
        "$python" benchmarks/bench_python.py $programs/bench_speed
}

run_executor() {
    suffix='' device=cpu
    if [ -x $programs/bench_executor_cuda ]; then
        suffix=_cuda device=cuda
    fi
    bench bench_executor$suffix --device $device
    if python=$(python_with_torch); then
        "$python" benchmarks/bench_attention.py $programs/bench_executor$suffix --device $device
    else
        printf '\n== Attention beside PyTorch: skipped, there is no torch\n'
    fi
    benchmarks/executor.sh --device $device --build $build
}

run_all() {
    about
    if [ "$mode" = --quick ]; then
        bench bench_quality --quick
        bench bench_step --quick
        bench bench_drawn --quick
        bench bench_lockstep --quick
        return
    fi
    bench bench_quality
    bench bench_packs
    bench bench_partition
    # shellcheck disable=SC2086
    bench bench_speed $mode
    bench bench_speed --warm
    bench bench_file $build/plan.msgpack
    bench bench_step
    bench bench_drawn
    bench bench_patterns
    bench bench_lockstep
    if [ "$mode" = --long ]; then
        bench bench_settings
    else
        bench bench_settings --shapes --machines
    fi
    bench bench_flexsp
    bench bench_isf
    bench bench_alike
    bench bench_vision
    bench bench_recompute
    bench bench_order
    bench bench_stages
    bench bench_vlm
    bench bench_tasks
    if [ "$mode" = --long ] && [ -x $programs/bench_milp ]; then
        bench bench_milp
    fi
    run_python
    run_executor
}

if [ "$mode" = --quick ]; then
    run_all
    [ -z "$json" ] || collect >"$json"
    exit
fi
mkdir -p benchmarks/results
cpu=$(field /proc/cpuinfo 'model name' | tr -cs 'A-Za-z0-9' '-' | sed 's/-*$//')
out=benchmarks/results/$(date -u +%Y-%m-%d).txt
json=${json:-benchmarks/results/$(date -u +%Y-%m-%d)-${cpu:-unknown}.json}
# A pipe's status is its last command's; the marker carries the first one's.
{ run_all && echo "done"; } 2>&1 | tee "$log.out"
status=0
[ "$(tail -n 1 "$log.out")" = "done" ] || status=1
[ $status = 0 ] && sed '$d' "$log.out" >"$out" && collect >"$json" && echo "wrote $out and $json"
rm -f "$log.out"
exit $status

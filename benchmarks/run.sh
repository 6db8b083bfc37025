#!/bin/sh
# Builds and runs every benchmark; writes benchmarks/results/DATE.txt. Missed figures do not fail it, errors do.
# usage: benchmarks/run.sh [--quick | --long]
#   --quick: few models and machines, no speed, no files; writes no results
#   --long: speed at 100M samples (8 GB), all settings and GLPK for an hour and more, too
# Lengths are read from $HBP_DATA, or from ../shared/data beside the repository; what is absent is drawn from the
# quantiles in examples/data/.
set -eu
case ${1:-} in
'' | --quick | --long) ;;
*) sed -n '3,5s/^# //p' "$0" >&2; exit 2 ;;
esac
mode=${1:-}
cd "$(dirname "$0")/.."
. cmake/packages.sh
need_build_packages
install_missing

# The executor is compiled for GPUs where there is one.
cuda=OFF
[ ! -e /dev/nvidiactl ] || cuda=AUTO

build=build/benchmarks
log=$(mktemp)
trap 'rm -f "$log" "$build/plan.msgpack"' EXIT
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
    $programs/bench_executor$suffix --device $device
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
        $programs/bench_quality --quick
        $programs/bench_step --quick
        $programs/bench_drawn --quick
        $programs/bench_lockstep --quick
        return
    fi
    $programs/bench_quality
    $programs/bench_packs
    # shellcheck disable=SC2086
    $programs/bench_speed $mode
    $programs/bench_speed --warm
    $programs/bench_file $build/plan.msgpack
    $programs/bench_step
    $programs/bench_drawn
    $programs/bench_lockstep
    if [ "$mode" = --long ]; then
        $programs/bench_settings
    else
        $programs/bench_settings --shapes --machines
    fi
    $programs/bench_flexsp
    $programs/bench_isf
    $programs/bench_alike
    $programs/bench_vision
    $programs/bench_recompute
    $programs/bench_order
    $programs/bench_stages
    $programs/bench_vlm
    $programs/bench_tasks
    if [ "$mode" = --long ] && [ -x $programs/bench_milp ]; then
        $programs/bench_milp
    fi
    run_python
    run_executor
}

if [ "$mode" = --quick ]; then
    run_all
    exit
fi
mkdir -p benchmarks/results
out=benchmarks/results/$(date -u +%Y-%m-%d).txt
# A pipe's status is its last command's; the marker carries the first one's.
{ run_all && echo "done"; } 2>&1 | tee "$log.out"
status=0
[ "$(tail -n 1 "$log.out")" = "done" ] || status=1
[ $status = 0 ] && sed '$d' "$log.out" >"$out" && echo "wrote $out"
rm -f "$log.out"
exit $status

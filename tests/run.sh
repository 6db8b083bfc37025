#!/bin/bash
# Builds the library in several ways and runs every test. Ends with "N passed, N failed"; exit status 0 when none failed.
# usage: sh tests/run.sh [--long]      --long runs all rounds of random tests and a quarter with sanitizers (else an eighth, of few a quarter, and a sixteenth), sweeps of failing
#                                      allocations place by place, the whole record, the comparisons on whole files, the loop on
#                                      4 ranks, and the longest tests with sanitizers, too, fuzzes for two minutes a target, and
#                                      builds the wheel that is published, and tries it in an old Debian
[ -n "${BASH_VERSION:-}" ] || exec bash "$0" "$@"
set -u
cd "$(dirname "$0")/.." || exit 1
. cmake/packages.sh

long=0 published=
case ${1:-} in
'') ;;
--long) long=1 published=--published && export HBP_ALL_ROUNDS=1 ;;
*) echo "usage: tests/run.sh [--long]" >&2; exit 2 ;;
esac

need_build_packages
need g++ have_tool c++
need check have_library check
need libmsgpack-dev have_library msgpack
need ninja-build have_tool ninja
need clang have_tool clang
need libclang-rt-14-dev sh -c 'echo "int main(void){return 0;}" | clang -fsanitize=address -x c - -o /dev/null'
need clang-format have_tool clang-format
need abigail-tools have_tool abidiff
need python3 have_tool python3
need python3-numpy python_with_numpy
need python3-torch python_with_torch
need python3-venv python_with_venv
need chromium have_tool chromium
[ $long = 0 ] || need debootstrap have_tool debootstrap
[ $long = 0 ] || need dpkg-dev have_tool dpkg-source
install_missing

passed=0 failed=0
summary=
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT

note() { # WHAT PASSED FAILED SECONDS [REMARK]
    passed=$((passed + $2)) failed=$((failed + $3))
    summary+=$(printf '%-44s %4d passed %4d failed %5d s  %s' "$1" "$2" "$3" "$4" "${5:-}")$'\n'
}

# judge WHAT STATUS SECONDS LOG: what a check ended with; 77 skips it. The last line of what it printed stands in the summary.
judge() {
    case $2 in
    0) note "$1" 1 0 "$3" "$(tail -n 1 "$4")" ;;
    77) note "$1" 0 0 "$3" "skipped: $(tail -n 1 "$4")" ;;
    *)
        cat "$4"
        note "$1" 0 1 "$3"
        ;;
    esac
}

# check WHAT COMMAND...: one check.
check() {
    local what=$1 start=$SECONDS status=0
    shift
    echo "== $what"
    "$@" >"$logs/check" 2>&1 || status=$?
    judge "$what" $status $((SECONDS - start)) "$logs/check"
}

# begin WHAT COMMAND...: one check beside what follows; most of these wait for the network or have one processor. finish: all that were begun.
begun=()
begin() {
    local log=$logs/begun${#begun[@]}
    echo "== $1, beside the others"
    begun+=("$1")
    shift
    (
        start=$SECONDS status=0
        "$@" >"$log" 2>&1 || status=$?
        echo "$status $((SECONDS - start))" >"$log.ended"
    ) &
}
finish() {
    local i status seconds
    wait
    for i in "${!begun[@]}"; do
        status=1 seconds=0
        read -r status seconds <"$logs/begun$i.ended"
        judge "${begun[i]}" "$status" "$seconds" "$logs/begun$i"
    done
    begun=()
}

# build PRESET TARGETS CMAKE-ARGUMENT...: 0 when build/PRESET is built; TARGETS are one word or several.
build() {
    local preset=$1 targets=$2 start=$SECONDS
    shift 2
    echo "== build $preset"
    # shellcheck disable=SC2086
    if cmake --preset "$preset" -G Ninja "$@" >"$logs/build" 2>&1 &&
        cmake --build "build/$preset" --target $targets -- -k 0 >>"$logs/build" 2>&1; then
        note "build $preset" 1 0 $((SECONDS - start))
    else
        grep -E 'error|warning|CMake Error|FAILED' -A 3 "$logs/build" | head -60
        note "build $preset" 0 1 $((SECONDS - start))
        return 1
    fi
}

# run_tests WHAT BUILD CTEST-ARGUMENT...
run_tests() {
    local what=$1 folder=$2 start=$SECONDS
    shift 2
    echo "== test $what"
    ctest --test-dir "$folder" --output-on-failure -j $(($(processors) + 1)) "$@" >"$logs/tests" 2>&1 # some wait, for ranks or files
    local all bad skipped
    all=$(sed -n 's/.* tests failed out of \([0-9]*\)$/\1/p' "$logs/tests")
    bad=$(sed -n 's/.*, \([0-9]*\) tests failed out of .*/\1/p' "$logs/tests")
    skipped=$(grep -c '\*\*\*Skipped' "$logs/tests")
    if [ -z "$all" ]; then
        cat "$logs/tests"
        note "test $what" 0 1 $((SECONDS - start)) "no test ran"
        return
    fi
    [ "$bad" = 0 ] || cat "$logs/tests"
    note "test $what" $((all - bad - skipped)) "$bad" $((SECONDS - start)) "$([ "$skipped" = 0 ] || echo "$skipped skipped")"
}

digest_of() { "build/$1/examples/hbp" plan "$2" --model llama-3.1-8b --machine h100:4 --max-length 128K --json | grep '"digest"'; }

same_digest() {
    build/release/examples/draw_lengths examples/data/wikipedia.csv "$logs/lengths.npy" 20000 1 131072 || return 1
    local first second
    first=$(digest_of release "$logs/lengths.npy") && second=$(digest_of asan "$logs/lengths.npy") || return 1
    echo "gcc -O3 $first; clang -O1 with sanitizers $second"
    [ -n "$first" ] && [ "$first" = "$second" ]
}

step_of() { "build/$1/examples/hbp" step "$2" --samples-per-step 512 --model llama-3.1-8b --machine h100:8 --json | grep -E '"(digest|bound_ns)"'; }

same_step() {
    build/release/examples/draw_lengths examples/data/wikipedia.csv "$logs/batch.npy" 512 2 65536 || return 1
    local first second
    first=$(step_of release "$logs/batch.npy") && second=$(step_of asan "$logs/batch.npy") || return 1
    echo "gcc -O3" $first "clang -O1 with sanitizers" $second
    [ -n "$first" ] && [ "$first" = "$second" ]
}

# What takes seconds of the record, as clang makes it with sanitizers.
same_record() {
    for section in costs tasks files; do
        build/asan/tests/record $section "tests/record/expected/$section.txt" | cmp - "tests/record/expected/$section.txt" || return 1
    done
}

fuzz() {
    build fuzz all -DHBP_BUILD_TESTS=OFF || return
    local source name
    for source in tests/fuzz/fuzz_*.c; do
        name=$(basename "$source" .c)
        mkdir -p "build/fuzz/corpus/$name"
        check "$name for two minutes" "build/fuzz/tests/$name" -max_total_time=120 -timeout=25 -rss_limit_mb=3000 \
            -artifact_prefix=build/fuzz/ "build/fuzz/corpus/$name" "tests/fuzz/corpus/${name#fuzz_}"
    done
}

# -g adds what the ABI check reads, and changes no code. Where no GPU runs the kernels they are compiled for one architecture.
kernels=
nvidia-smi -L 2>/dev/null | grep -q '^GPU' || kernels=-DCMAKE_CUDA_ARCHITECTURES=80-real
# The Python tests need numpy, which the first python3 of the path may lack.
build release all -DCMAKE_C_FLAGS=-g -DPython3_EXECUTABLE="$(command -v "$(python_with_numpy)")" $kernels
run_tests "release, gcc" build/release
check "measured, fitted, planned, run" sh tests/executor/loop.sh "$(command -v mpirun)" build/release/examples/executor/hbp_executor \
    build/release/examples/hbp build/release/examples/draw_lengths "$PWD"
begin "Parquet and Arrow through pyarrow" sh tests/whole/columnar.sh "$PWD/build/release/examples/hbp" "$PWD/build/release/lib/libhbp.so" "$PWD" --pyarrow
begin "source distribution and wheel" sh tests/whole/wheel.sh "$PWD" $published
# What is installed and linked is asked here; without optimisation it is built in a third of the time.
quick='-DCMAKE_C_FLAGS_RELEASE=-O0 -DNDEBUG'
build static all "$quick" -DHBP_IO=OFF -DHBP_GLPK=OFF && check "libhbp alone, static, installed" sh tests/house/consumer.sh . build/static cc
build static all "$quick" -DHBP_IO=ON -DHBP_GLPK=AUTO && check "all libraries, static, installed" sh tests/house/consumer.sh . build/static cc
# Without the loops for AVX2, so that plans and record below are compared with and without them.
build asan all -DHBP_BUILD_BENCHMARKS=OFF -DHBP_HAS_AVX2_CHOICE=OFF
finish
# Searches beside their oracles take minutes with sanitizers, and so do hundreds of calls of the command; what they call is called by
# the tests around them, too. Threads have a build of their own below.
slow='^house/'
[ $long = 1 ] ||
    slow+='|^(step/test_(search|levels|equal|scarce|sets|spread|slices|bound_class|bound_one|stepper_threads)|epoch/test_(choose|epoch|mixed|stratify|parted|share|vision|join|baseline)|vlm/test_(stages|data)|pipeline/test_layer_partition|pack/test_budgets_plane|whole/(command|face|json_keys|pages|picture|record|report|terminal|troubleshooting|test_(bounds|cancel|threads|determinism.*|(epoch|step)_settings))|executor/test_cuda_transformer)$'
# hwloc's plugins, where they are installed, leak on their own. The release tests ran in a process each, which takes longer here.
CK_FORK=no HWLOC_PLUGINS_PATH=/nowhere ASAN_OPTIONS=detect_stack_use_after_return=1 run_tests "address and undefined behaviour, clang" build/asan -E "$slow"
check "the same plan from gcc and clang" same_digest
check "the same step plan from gcc and clang" same_step
check "the same record from gcc and clang" same_record
threads='^(whole/test_threads|base/test_(worker|parallel)|data/test_(length_index|order)|epoch/test_batches_plan|step/test_stepper(_threads)?|executor/test_local)$'
build tsan "whole_tests base_tests data_tests epoch_tests step_tests executor_tests" -DHBP_TESTS="$threads" -DHBP_BUILD_BENCHMARKS=OFF -DHBP_MPI=OFF &&
    CK_FORK=no run_tests "threads, clang" build/tsan -R "$threads"
[ $long = 0 ] ||
    HBP_LONG=1 CK_FORK=no check "no option contradicts a bound, thousands of pairs" build/release/tests/whole_tests test_bounds
[ $long = 0 ] || fuzz

printf '\n%s\n%d passed, %d failed\n' "$summary" $passed $failed
[ $failed = 0 ]

#!/bin/sh
# From a fresh clone to a plan: installs what is missing (Debian), builds, and plans an epoch of a million samples.
# usage: examples/quickstart.sh [--lengths FILE] [--model NAME] [--machine NAME:NODES] [--max-length TOKENS]
#                               [--build BUILD, made already] [--out FOLDER for what is written]
set -eu
build='' out='' lengths='' model=llama-3.1-8b machine=h100:4 max_length=128K
while [ $# -gt 0 ]; do
    case $1 in
    --lengths) lengths=${2:?--lengths needs a file}; shift 2 ;;
    --model) model=${2:?--model needs a name}; shift 2 ;;
    --machine) machine=${2:?--machine needs a name}; shift 2 ;;
    --max-length) max_length=${2:?--max-length needs a number}; shift 2 ;;
    --build) build=$(cd "${2:?--build needs a folder}" && pwd); shift 2 ;;
    --out) out=${2:?--out needs a folder}; mkdir -p "$out"; out=$(cd "$out" && pwd); shift 2 ;;
    *) sed -n '2,4s/^#  *//p' "$0"; [ "$1" = --help ] || exit 2; exit 0 ;;
    esac
done
case $lengths in '' | /* | -) ;; *) lengths=$PWD/$lengths ;; esac
cd "$(dirname "$0")/.."
. cmake/packages.sh

say() { printf '\n\033[1m== %s\033[0m\n' "$*"; }
[ -t 1 ] || say() { printf '\n== %s\n' "$*"; }

build_tree() { # into $build
    say "Tools and libraries"
    need_build_packages
    need python3 have_tool python3
    need python3-numpy python_with_numpy
    install_missing
    echo "all there"

    say "Building libhbp and the hbp command into $build"
    start=$(date +%s)
    log=$(mktemp)
    trap 'rm -f "$log"' EXIT
    quietly() { "$@" >"$log" 2>&1 || { tail -n 40 "$log"; exit 1; }; }
    quietly configure "$build" -DCMAKE_BUILD_TYPE=Release -DHBP_BUILD_TESTS=OFF -DHBP_BUILD_BENCHMARKS=OFF -DHBP_CUDA=OFF
    quietly cmake --build "$build" -j "$(processors)"
    echo "done in $(($(date +%s) - start)) s"
}
# Short names for what the pages of docs/ type: build/hbp, build/draw_lengths, build/hbp_executor, and build/python with hbp to import.
short_names() {
    for program in hbp draw_lengths executor/hbp_executor; do ln -sf "${build#build/}/examples/$program" build/; done
    cat >build/python <<EOT
#!/bin/sh
# The Python that has numpy, with this repository's hbp to import.
HBP_LIBRARY="\${HBP_LIBRARY:-$PWD/$build/lib/libhbp.so}" PYTHONPATH='$PWD/bindings/python/src'\${PYTHONPATH:+:\$PYTHONPATH} exec '$(command -v "$(python_with_numpy)")' "\$@"
EOT
    chmod +x build/python
}

if [ -z "$build" ]; then
    build=build/quickstart
    build_tree
    short_names
    : "${out:=build}"
    hbp=build/hbp draw_lengths=build/draw_lengths executor=build/hbp_executor python=build/python
else
    : "${out:=$build}"
    hbp=$build/examples/hbp draw_lengths=$build/examples/draw_lengths executor=$build/examples/executor/hbp_executor
    python=$(python_with_numpy)
    HBP_LIBRARY=$build/lib/libhbp.so PYTHONPATH=$PWD/bindings/python/src
    export HBP_LIBRARY PYTHONPATH
fi

if [ -z "$lengths" ]; then
    lengths=$out/lengths.npy
    say "A million lengths, drawn from those of Wikipedia's articles up to 128K tokens"
    "$draw_lengths" examples/data/wikipedia.csv "$lengths" 1000000 0 131072
    echo "wrote $lengths; --lengths FILE takes yours"
    "$draw_lengths" examples/data/vlm.csv "$out/samples.csv" 70706 # with images, for hbp vlm
fi
set -- "$lengths" --model "$model" --machine "$machine" --max-length "$max_length" --over-long truncate

say "The lengths"
"$hbp" lengths "$lengths" --max-length "$max_length" --over-long truncate

say "$model on $machine: the packing groups, and what was rejected"
"$hbp" groups "$@"

say "This plan beside the classic ways of batching (predicted; nothing was trained here)"
"$hbp" compare "$@"

say "Planning, and writing the plan"
"$hbp" plan "$@" -o "$out/plan.msgpack"

say "Step 0, as rank 0 runs it"
"$hbp" show "$out/plan.msgpack" --step 0 --rank 0

say "The same from Python: examples/train.py"
"$python" examples/train.py "$out/plan.msgpack"

say "A plan that is run: a small transformer on 2 virtual ranks of this processor, measured, fitted, planned, trained"
small=llama-3.1-8b,layers=2,hidden=128,ffn=384,heads=8,kv_heads=4,head_dim=16,vocab=512
"$executor" probe --virtual 2 --seconds 3 -o "$out/here.json"
"$executor" measure --virtual 2 --model $small --max-tokens 512 --clock cpu -o "$out/packs.csv" | tail -n 1
"$hbp" fit "$out/packs.csv" --model $small --machine "$out/here.json" --zero none --fused-ce -o "$out/cost.json" | sed -n '1,/peak bytes, fitted/p'
"$draw_lengths" examples/data/wikipedia.csv "$out/few.npy" 200 1 1024
"$hbp" plan "$out/few.npy" --cost "$out/cost.json" --max-length 1024 --tokens-per-step 16K -o "$out/few.msgpack" | tail -n 1
"$executor" run "$out/few.msgpack" --model $small --virtual 2 --clock cpu --cost "$out/cost.json" --timeline "$out/run.csv"

say "Next"
cat <<EOT
  $hbp show $out/plan.msgpack --step 17     any step, any rank
  $hbp trace $out/plan.msgpack --steps 20 -o $out/trace.json
                                            a timeline, opens at ui.perfetto.dev
  examples/first.c                          an epoch in a page of C
  $hbp step $lengths --model llama-3.1-8b --machine h100:8 --samples-per-step 512
                                            one step; docs/how-to/plan-each-step.md for every step of a run
EOT
[ "$hbp" != build/hbp ] || echo "  export PATH=\$PWD/build:\$PATH              so that build/hbp is hbp in this shell, in any folder"

#!/bin/sh
# Trainers' own unit tests, first with their own code, then with hbp's adapter behind them (table.txt): every test that passes with
# their own must pass with hbp's. Checkouts of their public repositories lie under HBP_TRAINERS, in the folders that the table
# names; what is not there is skipped with a message. Exit status 77: nothing was there.
# usage: HBP_TRAINERS=FOLDER [HBP_TRAINERS_PYTHON=PYTHON] run.sh LIBHBP [MODULE ...]
#   get a checkout: git clone https://github.com/OWNER/NAME && git -C NAME checkout COMMIT
#   PYTHON has numpy, pytest and the packages that the trainers' tests import (torch, tensordict, ...)
set -u
library=$(realpath "$1")
shift
here=$(dirname "$(realpath "$0")")
source=$(realpath "$here/../..")
trainers=${HBP_TRAINERS:-}
python=${HBP_TRAINERS_PYTHON:-python3}
[ -d "$trainers" ] || { echo "HBP_TRAINERS names no folder with checkouts of trainers: skipped"; exit 77; }
trainers=$(realpath "$trainers")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bad=0 ran=0

# outcomes FILE ADAPTER OPTIONS TESTS: runs the tests of the folder we are in.
outcomes() {
    ranks=$(echo "$3" | sed -n 's/.*ranks=\([0-9]*\).*/\1/p')
    path=$(echo "$3" | sed -n 's/.*path=\([^ ]*\).*/\1/p')
    bare=$(echo "$3" | sed -n 's/.*bare=\([^ ]*\).*/\1/p')
    absent=$(echo "$3" | sed -n 's/.*absent=\([^ ]*\).*/\1/p')
    start="-m pytest"
    [ -z "$ranks" ] || start="-m torch.distributed.run --nproc-per-node $ranks --log-dir $work/log --redirects 3 --master-port 29611 -m pytest"
    : >"$1"
    eval "set -- \"\$1\" \"\$2\" $4"
    out=$1 behind=$2
    shift 2
    HBP_OUTCOMES=$out HBP_ADAPTER=$behind HBP_ON_CPU=$ranks HBP_BARE=$bare HBP_ABSENT=$absent HBP_LIBRARY=$library OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1 \
        PYTHONPATH=$PWD${path:+:$path}:$here:$source/bindings/python/src \
        "$python" $start -q -p hbp_behind -p no:cacheprovider "$@" >"$out.log" 2>&1 </dev/null
    sort -u "$out" -o "$out"
}

while IFS='|' read -r folder repository commit adapter options tests; do
    case $folder in '#'* | '') continue ;; esac
    case " $* " in '  ' | *" $adapter "*) ;; *) continue ;; esac
    if [ ! -d "$trainers/$folder" ]; then
        echo "$adapter: no $trainers/$folder ($repository at $commit): skipped"
        continue
    fi
    cd "$trainers/$folder" || exit 1
    name=$work/$folder
    outcomes "$name.own" "" "$options" "$tests"
    outcomes "$name.hbp" "$adapter" "$options" "$tests"
    grep '^passed' "$name.own" >"$name.passed"
    failed=$(grep -vxF -f "$name.hbp" "$name.passed")
    calls=$(cat "$name.hbp.calls" 2>/dev/null || echo 0)
    echo "$folder: $(grep -c '^passed' "$name.hbp") pass with hbp, $(wc -l <"$name.passed") with their own, of $(wc -l <"$name.own"); $calls calls of the library"
    ran=$((ran + 1))
    if [ -n "$failed" ] || [ ! -s "$name.passed" ] || [ "$calls" = 0 ]; then
        echo "FAIL: $folder"
        echo "$failed"
        tail -n 40 "$name.hbp.log"
        [ -s "$name.passed" ] || tail -n 40 "$name.own.log"
        bad=1
    fi
    [ -z "${HBP_TRAINERS_LOGS:-}" ] || cp "$name".*.log "$HBP_TRAINERS_LOGS"
done <"$here/table.txt"
[ $ran -gt 0 ] || exit 77
exit $bad

#!/bin/sh
# The executor's communicator over MPI: every call on 1 to 8 ranks, and ranks that are killed, stop, fail, leave
# or call something else. Skipped by 77 where the launcher starts nothing here.
# usage: run.sh LAUNCHER CALLS LOST
set -u
launcher=$1 calls=$2 lost=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bad=0
fail() { echo "FAIL: $*"; bad=1; }

# shellcheck source=/dev/null
. "$(dirname "$0")/launch.sh"
launch 1 true || { cat "$work/err"; echo "the launcher starts nothing here"; exit 77; }

# Blocks beyond a piece; and pieces of 1,000 bytes, so that all but the smallest blocks are cut.
for run in '1 0 300000' '2 0 9000000' '3 1000 100000' '4 0 300000' '8 1000 30000'; do
    # shellcheck disable=SC2086
    set -- $run
    launch "$1" "$calls" "$@" || fail "calls on $1 ranks, pieces of $2: status $?: $(head -c 1000 "$work/err")"
done

# goes_wrong WAY LIMIT PATTERN: the run ends with an error, and a rank says what grep -E finds. Whoever says it
# first ends the others.
goes_wrong() {
    launch 4 "$lost" "$1" "$2"
    status=$?
    [ $status != 0 ] && [ $status != 124 ] || fail "$1: status $status"
    grep -qE -- "$3" "$work/err" || fail "$1: '$3' is not in $(head -c 1000 "$work/err")"
}
launch 4 "$lost" none 40 || fail "none: status $?: $(head -c 1000 "$work/err")"
call='all-to-all of ranks 0..3 in step 3, micro-batch 1'
goes_wrong killed 1000 ''
goes_wrong stopped 2 "rank [0-2] of 4: $call: no answer for 2 s from rank 3; a rank is gone or hangs"
goes_wrong device 1000 "rank 3 of 4: $call: GPU 1: an illegal address"
goes_wrong leaves 1000 "$call: rank 3 calls gathering of 4 ranks|rank 3 .*: rank [0-2] calls all-to-all of 4 ranks"
goes_wrong differs 1000 "$call: rank 3 calls all-reduce of 4 ranks"
goes_wrong longer 1000 "$call: rank 3 sends more than the 500 bytes expected"
goes_wrong shorter 1000 "$call: rank 3 sends 250 bytes; this rank expects 500"
exit $bad

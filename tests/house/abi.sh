#!/bin/sh
# The library's ABI still has everything of the recorded one (tests/abi/hbp.abi). Skipped (77) without libabigail, a
# record, or debug information in the library.
# usage: abi.sh SOURCE libhbp.so            checks
#        abi.sh --write SOURCE libhbp.so    records
set -eu
write=0
[ "$1" != --write ] || { write=1; shift; }
source=$1 library=$2 record=$1/tests/abi/hbp.abi
command -v abidiff >/dev/null || { echo "no libabigail"; exit 77; }
readelf -S "$library" | grep -q '\.debug_info' || { echo "$library has no debug information"; exit 77; }
if [ $write = 1 ]; then
    mkdir -p "$source/tests/abi"
    abidw --headers-dir "$source/include" --drop-private-types --no-corpus-path --no-comp-dir-path --no-show-locs \
        --out-file "$record" "$library"
    exit
fi
[ -f "$record" ] || { echo "no record; abi.sh --write makes one"; exit 77; }
# Additions are allowed: bits 4 and 8 of the answer are a change and an incompatible one.
status=0
abidiff --headers-dir2 "$source/include" --drop-private-types --no-added-syms "$record" "$library" || status=$?
exit $status

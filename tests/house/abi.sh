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
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# What the headers only declare may change at will.
opaque=$(sed -n 's/^typedef struct \(hbp_[a-z_]*\) \1;$/\1/p' "$source"/include/hbp/*.h | paste -sd '|' -)
printf '[suppress_type]\nname_regexp = ^(%s|hbp__.*)$\ndrop = yes\n' "$opaque" >"$work/opaque"
abidw --suppressions "$work/opaque" --no-corpus-path --no-comp-dir-path --no-show-locs --out-file "$work/now" "$library"
if [ $write = 1 ]; then
    mkdir -p "$source/tests/abi"
    sed -E "s|path='[^']*/(lib/[^']*)'|path='\1'|" "$work/now" >"$record"
    exit
fi
[ -f "$record" ] || { echo "no record; abi.sh --write makes one"; exit 77; }
# Functions may be added; after a field was appended to a struct, record again.
abidiff --no-added-syms "$record" "$work/now"

#!/bin/sh
# The libraries' ABI still has everything of the recorded ones (tests/abi/hbp.abi, hbp-io.abi). Skipped (77) without libabigail,
# a record, or debug information in the libraries.
# usage: abi.sh SOURCE LIB            checks; LIB: the folder lib of a build of shared libraries
#        abi.sh --write SOURCE LIB    records
set -eu
write=0
[ "$1" != --write ] || { write=1; shift; }
source=$1 lib=$2
command -v abidiff >/dev/null || { echo "no libabigail"; exit 77; }
readelf -S "$lib/libhbp.so" | grep -q '\.debug_info' || { echo "$lib/libhbp.so has no debug information"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# What the headers only declare may change at will, and so may what libhbp shows the libhbp-io of its own release (abidw
# has no word for leaving functions out of a record).
opaque=$(sed -n 's/^typedef struct \(hbp_[a-z_]*\) \1;$/\1/p' "$source"/include/hbp/*.h | paste -sd '|' -)
printf '[suppress_type]\nname_regexp = ^(%s|hbp__.*)$\ndrop = yes\n' "$opaque" >"$work/opaque"
public() { awk "/<elf-symbol .* version='HBP_PRIVATE_/ || /<var-decl .*elf-symbol-id='hbp__/ { next }
    /<function-decl .*elf-symbol-id='hbp__/ { private = 1 } !private { print } /<\\/function-decl>/ { private = 0 }" "$@"; }
for name in hbp hbp-io; do
    record=$source/tests/abi/$name.abi
    abidw --suppressions "$work/opaque" --no-corpus-path --no-comp-dir-path --no-show-locs --out-file "$work/all" "$lib/lib$name.so"
    public "$work/all" >"$work/now"
    if [ $write = 1 ]; then
        sed -E "s|path='[^']*/(lib/[^']*)'|path='\1'|" "$work/now" >"$record"
        continue
    fi
    [ -f "$record" ] || { echo "no record of $name; abi.sh --write makes one"; exit 77; }
    # Functions may be added; after a field was appended to a struct, record again.
    abidiff --no-added-syms "$record" "$work/now"
done

#!/bin/sh
# Every public function is called by tests/fuzz/fuzz_calls.c: the functions after HBP_API in the headers are those of its
# table. glpk.h belongs to a library of its own.
# usage: calls.sh SOURCE
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
find "$1/include/hbp" -name '*.h' ! -name glpk.h -exec cat {} + | tr '\n' ' ' |
    sed 's|/\*[^*]*\*\+\([^/*][^*]*\*\+\)*/||g' |
    grep -oE 'HBP_API[^(;{]*[ *]hbp_[a-z0-9_]+ *\(' | grep -oE 'hbp_[a-z0-9_]+ *\($' | tr -d ' (' | LC_ALL=C sort >"$work/declared"
sed -nE 's/^[A-Z]+\((hbp_[a-z0-9_]+)[,)].*/\1/p' "$1/tests/fuzz/calls_table.h" | LC_ALL=C sort >"$work/called"
[ -s "$work/declared" ] || { echo "no HBP_API function found"; exit 1; }
diff -u "$work/declared" "$work/called" || { echo "tests/fuzz/calls_table.h does not call what the headers declare"; exit 1; }

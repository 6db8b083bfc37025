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

# Every field of the structs in calls_structs.h is drawn, but for those that a draw of numbers cannot fill.
find "$1/include/hbp" -name '*.h' -exec cat {} + | tr '\n' ' ' | sed 's|/\*[^*]*\*\+\([^/*][^*]*\*\+\)*/||g' |
    grep -oE 'typedef struct hbp_[a-z0-9_]+ \{[^}]*\}' |
    awk '{ name = $3; sub(/.*\{/, ""); n = split($0, field, ";"); for (i = 1; i < n; i++) { k = split(field[i], word, /[ *]+/); print name, word[k] } }' |
    LC_ALL=C sort >"$work/fields"
sed -nE 's/^ *[A-Z]+\((hbp_[a-z0-9_]+), ([a-z0-9_]+).*/\1 \2/p' "$1/tests/fuzz/calls_structs.h" | LC_ALL=C sort >"$work/drawn"
cut -d ' ' -f 1 "$work/drawn" | LC_ALL=C sort -u >"$work/structs"
LC_ALL=C join "$work/structs" "$work/fields" |
    grep -vE ' struct_size$|^hbp_layer_columns names$|^hbp_lengths_options borrow$|^hbp_stepper_options wait$' >"$work/wanted"
[ -s "$work/wanted" ] || { echo "no field of a struct found"; exit 1; }
diff -u "$work/wanted" "$work/drawn" || { echo "tests/fuzz/calls_structs.h does not draw every field"; exit 1; }

#!/bin/sh
# The functions after HBP_API in the headers are those in lib/hbp.map and those the library exports; it keeps no mutable
# global. glpk.h belongs to a library of its own.
# usage: symbols.sh SOURCE [libhbp.so]     checks
#        symbols.sh --write SOURCE         writes lib/hbp.map
set -eu
declared() {
    find "$1/include/hbp" -name '*.h' ! -name glpk.h -exec cat {} + | tr '\n' ' ' |
        sed 's|/\*[^*]*\*\+\([^/*][^*]*\*\+\)*/||g' |
        grep -oE 'HBP_API[^(;{]*[ *]hbp_[a-z0-9_]+ *\(' | grep -oE 'hbp_[a-z0-9_]+ *\($' | tr -d ' (' | LC_ALL=C sort
}
map() {
    printf 'HBP_0 {\nglobal:\n'
    declared "$1" | sed 's/.*/    &;/'
    printf 'local:\n    *;\n};\n'
}
if [ "$1" = --write ]; then
    map "$2" >"$2/lib/hbp.map"
    exit
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
declared "$1" >"$work/declared"
[ -s "$work/declared" ] || { echo "no HBP_API function found"; exit 1; }
bad=0
duplicates=$(uniq -d "$work/declared")
[ -z "$duplicates" ] || { echo "declared twice: $duplicates"; bad=1; }
map "$1" | diff -u "$1/lib/hbp.map" - || { echo "lib/hbp.map is not what the headers declare; run symbols.sh --write"; bad=1; }
if [ -n "${2:-}" ] && command -v nm >/dev/null; then
    nm -D --defined-only "$2" | awk '$2 ~ /^[TDBRVWi]$/ { sub(/@.*/, "", $3); print $3 }' | LC_ALL=C sort >"$work/exported"
    diff -u "$work/declared" "$work/exported" || { echo "the library exports something else than the headers declare"; bad=1; }
    if readelf -d "$2" 2>/dev/null | grep -E 'SONAME' | grep -qv 'libhbp\.so\.0'; then
        echo "SONAME is not libhbp.so.0"
        bad=1
    fi
    # Nothing of the library's own lies in writable memory once loaded; a sanitizer's things do.
    if ! nm "$2" | grep -qE '__(asan|tsan|ubsan|gcov|llvm)'; then
        globals=$(objdump -t "$2" | awk '$0 ~ / O \.(data|bss|tdata|tbss)[ \t]/ { print $NF }' |
            grep -vxE 'completed\.[0-9]+|__dso_handle|__TMC_END__' || true)
        [ -z "$globals" ] || { echo "mutable globals: $globals"; bad=1; }
    fi
fi
exit $bad

#!/bin/sh
# The maps of the libraries. lib/hbp.map: the functions after HBP_API in the headers but io.h, and, under a version that only
# libhbp-io of the same release asks for, what that one calls inside; lib/hbp-io.map: those in io.h. The libraries export just
# that, keep no mutable global, and libhbp needs nothing but the C library. glpk.h belongs to a library of its own.
# usage: symbols.sh SOURCE [LIB]          checks; LIB: the folder lib of a build of shared libraries
#        symbols.sh --write SOURCE LIB    writes the maps
set -eu
declared() { # HEADER...
    cat "$@" | tr '\n' ' ' | sed 's|/\*[^*]*\*\+\([^/*][^*]*\*\+\)*/||g' |
        grep -oE 'HBP_API[^(;{]*[ *]hbp_[a-z0-9_]+ *\(' | grep -oE 'hbp_[a-z0-9_]+ *\($' | tr -d ' (' | LC_ALL=C sort
}
of_hbp() { find "$source/include/hbp" -name '*.h' ! -name glpk.h ! -name io.h | LC_ALL=C sort; }
node() { printf '%s {\nglobal:\n' "$1"; sed 's/.*/    &;/'; }
symbols() { xargs nm -P | awk "$1" | LC_ALL=C sort -u; }
private() { # what the objects of libhbp-io use inside libhbp
    find "$lib/CMakeFiles/hbp_objects.dir" -name '*.o' ! -path "$lib/CMakeFiles/hbp_objects.dir/io/*" | symbols '$1 ~ /^hbp__/ && $2 ~ /^[TDRB]$/ { print $1 }' >"$work/inside"
    find "$lib/CMakeFiles/hbp_io_objects.dir" -name '*.o' | symbols '$1 ~ /^hbp__/ && $2 == "U" { print $1 }' | LC_ALL=C comm -12 - "$work/inside"
}
recorded() { sed -n '/^HBP_PRIVATE/,/^}/s/^    \(hbp__.*\);$/\1/p' "$source/lib/hbp.map"; }
map() { # the private functions are read from standard input
    # shellcheck disable=SC2046
    declared $(of_hbp) | node HBP_0
    printf 'local:\n    *;\n};\n\n'
    node "HBP_PRIVATE_$version"
    printf '};\n'
}
io_map() {
    declared "$source/include/hbp/io.h" | node HBP_IO_0
    printf 'local:\n    *;\n};\n'
}
write=0
[ "$1" != --write ] || { write=1; shift; }
source=$1 lib=${2:-}
version=$(sed -n 's/^project(hbp VERSION \([0-9.]*\).*/\1/p' "$source/CMakeLists.txt")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [ $write = 1 ]; then
    private >"$work/private"
    map <"$work/private" >"$work/map"
    cp "$work/map" "$source/lib/hbp.map"
    io_map >"$source/lib/hbp-io.map"
    exit
fi

bad=0
fail() { echo "$*"; bad=1; }
# shellcheck disable=SC2046
declared $(of_hbp) >"$work/hbp"
declared "$source/include/hbp/io.h" >"$work/hbp-io"
[ -s "$work/hbp" ] && [ -s "$work/hbp-io" ] || { echo "no HBP_API function found"; exit 1; }
duplicates=$(LC_ALL=C sort "$work/hbp" "$work/hbp-io" | uniq -d)
[ -z "$duplicates" ] || fail "declared twice: $duplicates"
recorded >"$work/private"
map <"$work/private" | diff -u "$source/lib/hbp.map" - || fail "lib/hbp.map is not what the headers declare; run symbols.sh --write"
io_map | diff -u "$source/lib/hbp-io.map" - || fail "lib/hbp-io.map is not what io.h declares; run symbols.sh --write"

# check_library NAME: what is exported, the SONAME, no mutable global. $work/NAME: what is to be exported.
check_library() {
    file=$lib/lib$1.so
    nm -D --defined-only "$file" | awk '$2 ~ /^[TDBRVWi]$/ { sub(/@.*/, "", $3); print $3 }' | LC_ALL=C sort >"$work/exported"
    diff -u "$work/$1" "$work/exported" || fail "lib$1 exports something else than the headers declare"
    readelf -d "$file" | grep SONAME | grep -qF "[lib$1.so.0]" || fail "SONAME is not lib$1.so.0"
    # Nothing of the library's own lies in writable memory once loaded; a sanitizer's things do, and what the compiler's runtime library
    # knows of the processor, which it writes before main.
    if ! nm "$file" | grep -qE '__(asan|tsan|ubsan|gcov|llvm)'; then
        globals=$(objdump -t "$file" | awk '$0 ~ / O \.(data|bss|tdata|tbss)[ \t]/ { print $NF }' |
            grep -vxE 'completed\.[0-9]+|__dso_handle|__TMC_END__|__cpu_(model|features2)' || true)
        [ -z "$globals" ] || fail "mutable globals of lib$1: $globals"
        sanitized=0
    else
        sanitized=1
    fi
}
if [ -n "$lib" ] && command -v nm >/dev/null && command -v readelf >/dev/null; then
    private | diff -u "$work/private" - || fail "lib/hbp.map shows libhbp-io something else than it uses; run symbols.sh --write"
    LC_ALL=C sort -o "$work/hbp" "$work/hbp" "$work/private"
    check_library hbp
    needed=$(readelf -d "$lib/libhbp.so" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' |
        grep -vxE 'lib(c|m|pthread)\.so(\.[0-9]+)?|libc\.musl-.*|ld-linux.*|libgcc_s\.so\.1' || true)
    [ $sanitized = 1 ] || [ -z "$needed" ] || fail "libhbp needs more than the C library: $needed"
    check_library hbp-io
    readelf -d "$lib/libhbp-io.so" | grep NEEDED | grep -qF '[libhbp.so.0]' || fail "libhbp-io does not name libhbp.so.0"
    readelf -V "$lib/libhbp-io.so" | grep -qF "HBP_PRIVATE_$version" ||
        fail "libhbp-io would load with a libhbp of another release than $version"
fi
exit $bad

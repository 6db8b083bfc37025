#!/bin/sh
# What a wheel to be published must be: one file below 2 MB for all of Python 3, that loads the C library alone, of a version
# that its name says, with the licences of all it holds.
# usage: check.sh WHEEL
set -eu
wheel=${1:?a wheel}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "$(basename "$wheel"): $*" >&2; exit 1; }

case $(basename "$wheel") in hbp-*-py3-none-*.whl) ;; *) fail "not named hbp-VERSION-py3-none-PLATFORM.whl" ;; esac
bytes=$(wc -c <"$wheel")
[ "$bytes" -lt 2000000 ] || fail "$bytes bytes; it must be below 2,000,000"
python3 -m zipfile -e "$wheel" "$work"
info=$(echo "$work"/hbp-*.dist-info)
for file in LICENSE LICENSE.zlib LICENSE.expat LICENSE.jansson; do
    [ -s "$info/licenses/$file" ] || fail "no licenses/$file"
done
for file in libhbp libhbp-io bin/hbp; do
    set -- "$work/hbp/$file"*
    [ -e "$1" ] || fail "no hbp/$file"
done
[ -z "$(find "$work" -name '*.libs')" ] || fail "foreign libraries were put in: $(ls "$work"/*.libs)"

command -v readelf >/dev/null || fail "readelf (binutils) is needed"
newest=0
for file in "$work"/hbp/libhbp* "$work/hbp/bin/hbp"; do
    foreign=$(readelf -dW "$file" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' |
        grep -vE '^(libhbp(-io)?\.so\.0|lib(c|m|pthread|dl)\.so\.[0-9]+|libc\.musl-.*|libc\.so|ld-linux-.*)$' || :)
    [ -z "$foreign" ] || fail "$(basename "$file") loads" $foreign
    paths=$(readelf -dW "$file" | sed -n 's/.*(R.*PATH).*\[\(.*\)\]/\1/p')
    case $paths in '' | '$ORIGIN' | '$ORIGIN/..') ;; *) fail "$(basename "$file") searches $paths" ;; esac
    minor=$(readelf -VW "$file" | grep -oE 'GLIBC_2\.[0-9]+' | sed 's/.*\.//' | sort -n | tail -n 1)
    [ "${minor:-0}" -le "$newest" ] || newest=$minor
done
allowed=$(basename "$wheel" | sed -n 's/.*manylinux_2_\([0-9]*\)_.*/\1/p')
[ -z "$allowed" ] || [ "$newest" -le "$allowed" ] || fail "needs glibc 2.$newest; its name says 2.$allowed"
what="$bytes bytes, loads the C library alone"
[ "$newest" = 0 ] || what="$what, needs glibc 2.$newest"
echo "$(basename "$wheel"): $what"

#!/bin/sh
# Every public header compiles alone as C11 and as C++17, every internal one as C11, without a warning.
# usage: headers.sh SOURCE CC
set -eu
source=$1 cc=$2
cd "$source"
warnings='-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Wundef -Werror'
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cxx=$(command -v c++ || command -v g++ || command -v clang++ || true)
bad=0
for header in include/hbp/*.h lib/*/*.h lib/*/*/*.h; do
    path=${header#include/} path=${path#lib/}
    printf '#include "%s"\n#include "%s"\ntypedef int not_empty;\n' "$path" "$path" >"$work/alone.c"
    # shellcheck disable=SC2086
    "$cc" -std=c11 -D_POSIX_C_SOURCE=200809L $warnings -Wstrict-prototypes -Wmissing-prototypes -Iinclude -Ilib \
        -fsyntax-only "$work/alone.c" || { echo "$header does not compile alone as C11"; bad=1; }
    case $header in lib/*) continue ;; esac
    [ -n "$cxx" ] || continue
    cp "$work/alone.c" "$work/alone.cc"
    # shellcheck disable=SC2086
    "$cxx" -std=c++17 $warnings -Iinclude -fsyntax-only "$work/alone.cc" ||
        { echo "$header does not compile alone as C++17"; bad=1; }
    case $path in hbp/glpk.h | hbp/io.h) continue ;; esac # of libraries of their own
    grep -q "\"$path\"" include/hbp/hbp.h || [ "$path" = hbp/hbp.h ] || { echo "hbp.h lacks $path"; bad=1; }
done
[ -n "$cxx" ] || echo "no C++ compiler: C++17 not checked"
exit $bad

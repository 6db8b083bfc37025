#!/bin/sh
# Every C file is as clang-format leaves it. Skipped (77) without clang-format.
# usage: format.sh SOURCE
set -eu
cd "$1"
command -v clang-format >/dev/null || { echo "no clang-format"; exit 77; }
find include lib tests examples benchmarks \( -name '*.c' -o -name '*.h' -o -name '*.cu' -o -name '*.cuh' -o -name '*.cpp' -o -name '*.hpp' \) -print0 |
    xargs -0 clang-format --dry-run -Werror

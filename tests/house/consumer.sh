#!/bin/sh
# Installs the build into an empty folder, moves it, and builds a project against it, by CMake and by pkg-config.
# usage: consumer.sh SOURCE BUILD CC
set -eu
source=$1 build=$2 cc=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
show() { "$@" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }; }
show cmake --install "$build" --prefix "$work/first"
mv "$work/first" "$work/moved"
prefix=$work/moved
pc=$(find "$prefix" -name hbp.pc)
lib=$(dirname "$(dirname "$pc")")
static=
[ -e "$lib/libhbp.so" ] || static=--static

echo "by CMake"
show cmake -S "$source/tests/consumer" -B "$work/build" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_C_COMPILER="$cc"
show cmake --build "$work/build"
"$work/build/consumer"

echo "by pkg-config"
PKG_CONFIG_PATH=$(dirname "$pc")
export PKG_CONFIG_PATH
# shellcheck disable=SC2046,SC2086
"$cc" -std=c11 "$source/tests/consumer/consumer.c" -o "$work/consumer" $(pkg-config --cflags --libs $static hbp)
LD_LIBRARY_PATH=$lib "$work/consumer"
if pkg-config --exists hbp-glpk; then
    # shellcheck disable=SC2046,SC2086
    "$cc" -std=c11 -DWITH_GLPK "$source/tests/consumer/consumer.c" -o "$work/consumer" \
        $(pkg-config --cflags --libs $static hbp-glpk)
    LD_LIBRARY_PATH=$lib "$work/consumer"
fi

version=$(LD_LIBRARY_PATH=$lib pkg-config --modversion hbp)
if [ -x "$prefix/bin/hbp" ]; then
    [ "$(LD_LIBRARY_PATH=$lib "$prefix/bin/hbp" --version)" = "hbp $version" ]
fi

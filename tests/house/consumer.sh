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
shared=1 static=
[ -e "$lib/libhbp.so" ] || shared=0 static=--static

echo "by CMake"
show cmake -S "$source/tests/consumer" -B "$work/build" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_C_COMPILER="$cc"
show cmake --build "$work/build"
"$work/build/consumer"
for name in io glpk; do
    [ ! -e "$lib/pkgconfig/hbp-$name.pc" ] || "$work/build/consumer_$name"
done

echo "by pkg-config"
PKG_CONFIG_PATH=$(dirname "$pc")
export PKG_CONFIG_PATH
by_pkg_config() { # PACKAGE FLAG...
    package=$1
    shift
    # shellcheck disable=SC2046,SC2086
    "$cc" -std=c11 "$@" "$source/tests/consumer/consumer.c" -o "$work/consumer" $(pkg-config --cflags --libs $static "$package")
    LD_LIBRARY_PATH=$lib "$work/consumer"
}
by_pkg_config hbp
! LD_LIBRARY_PATH=$lib ldd "$work/consumer" | grep -vE 'linux-vdso|ld-(linux|musl)|lib(hbp|c|m|pthread)\.' || { echo "libhbp alone links a library"; exit 1; }
# A static libhbp-io is linked with all that hwloc's .pc file names, which Debian's hwloc does not depend on.
# shellcheck disable=SC2046
if ! pkg-config --exists hbp-io; then
    echo "no hbp-io"
elif [ $shared = 0 ] && ! echo 'int main(void) { return 0; }' | "$cc" -x c - -o "$work/empty" $(pkg-config --static --libs hwloc) 2>/dev/null; then
    echo "hbp-io not linked by pkg-config: something of $(pkg-config --static --libs hwloc) is missing"
else
    by_pkg_config hbp-io -DWITH_IO
fi
! pkg-config --exists hbp-glpk || by_pkg_config hbp-glpk -DWITH_GLPK

version=$(LD_LIBRARY_PATH=$lib pkg-config --modversion hbp)
if [ -x "$prefix/bin/hbp" ]; then
    [ "$(LD_LIBRARY_PATH=$lib "$prefix/bin/hbp" --version)" = "hbp $version" ]
fi

# Beside the libhbp of another release libhbp-io does not load, and the loader says why.
if [ $shared = 1 ] && [ -e "$lib/libhbp-io.so" ]; then
    mkdir "$work/other"
    LC_ALL=C sed 's/HBP_PRIVATE_[0-9]/HBP_PRIVATE_x/' "$lib/libhbp.so.0" >"$work/other/libhbp.so.0"
    if LD_LIBRARY_PATH=$work/other:$lib "$work/build/consumer_io" 2>"$work/log"; then
        echo "libhbp-io loads with a libhbp of another release"
        exit 1
    fi
    grep -q "HBP_PRIVATE_$version" "$work/log" || { cat "$work/log"; exit 1; }
fi

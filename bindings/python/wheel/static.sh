#!/bin/sh
# zlib, expat and Jansson as static libraries for the wheel, with their licences.
# usage: static.sh PREFIX [SOURCES]     CC and AR compile; SOURCES has the unpacked zlib-*/, expat-*/ and jansson-*/.
# Without SOURCES they are the source packages of Debian's stable release, from where apt-get is configured to.
set -eu
[ $# = 1 ] || [ $# = 2 ] || { sed -n '2,4s/^# *//p' "$0" >&2; exit 2; }
mkdir -p "$1"
prefix=$(cd "$1" && pwd) sources=${2:-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
show() { "$@" >"$work/log" 2>&1 || { grep -iE "error" "$work/log" | cut -c -400 | tail -n 20 >&2; tail -n 20 "$work/log" | cut -c -400 >&2; echo "failed: $*" >&2; exit 1; }; }

if [ -z "$sources" ]; then
    command -v apt-get >/dev/null || { echo "no apt-get: give a folder that has the unpacked zlib-*/, expat-*/ and jansson-*/" >&2; exit 1; }
    command -v dpkg-source >/dev/null || { echo "apt-get source needs dpkg-dev" >&2; exit 1; }
    # Of the stable release, from where the configured packages come, in folders of our own.
    site=$(apt-get indextargets --format '$(ORIGIN)|$(COMPONENT)|$(SITE)' 'Created-By: Packages' | sed -n 's/^Debian|main|//p' |
        grep -v security | head -n 1)
    key=/usr/share/keyrings/debian-archive-keyring.gpg
    [ -e $key ] || key=
    [ -n "$site" ] || { echo "apt-get knows no packages of Debian: run apt-get update, or give a folder of sources" >&2; exit 1; }
    mkdir -p "$work/apt/lists/partial" "$work/sources"
    echo "deb-src ${key:+[signed-by=$key]} $site stable main" >"$work/apt/list"
    apt() {
        apt-get -q -o Dir::Etc::SourceList="$work/apt/list" -o Dir::Etc::SourceParts=/dev/null \
            -o Dir::State::Lists="$work/apt/lists" -o APT::Sandbox::User=root "$@"
    }
    show apt update
    sources=$work/sources
    (cd "$sources" && show apt source zlib expat jansson)
fi
folder_of() { # NAME FILE: the unpacked source that has FILE
    for folder in "$sources/$1"-*/ "$sources/$1"/; do
        [ ! -e "$folder$2" ] || { (cd "$folder" && pwd); return; }
    done
    echo "$sources has no $1-*/$2" >&2
    return 1
}
zlib=$(folder_of zlib LICENSE)
expat=$(folder_of expat expat/CMakeLists.txt 2>/dev/null || folder_of expat CMakeLists.txt)
[ ! -e "$expat/expat/CMakeLists.txt" ] || expat=$expat/expat
jansson=$(folder_of jansson CMakeLists.txt)

# zlib's configure writes into its folder.
cp -R "$zlib" "$work/zlib"
(cd "$work/zlib" && CFLAGS='-O3 -fPIC' show ./configure --static --prefix="$prefix" --libdir="$prefix/lib" && show make install)
build() { # NAME SOURCE OPTIONS: by its CMake
    name=$1 folder=$2
    shift 2
    show cmake -S "$folder" -B "$work/$name" -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX="$prefix" -DCMAKE_INSTALL_LIBDIR=lib \
        -DCMAKE_POSITION_INDEPENDENT_CODE=ON ${AR:+-DCMAKE_AR="$(command -v "$AR")"} "$@"
    show cmake --build "$work/$name" --target install
}
build expat "$expat" -DEXPAT_SHARED_LIBS=OFF -DEXPAT_BUILD_TOOLS=OFF -DEXPAT_BUILD_EXAMPLES=OFF -DEXPAT_BUILD_TESTS=OFF -DEXPAT_BUILD_DOCS=OFF
build jansson "$jansson" -DJANSSON_BUILD_SHARED_LIBS=OFF -DJANSSON_BUILD_DOCS=OFF -DJANSSON_WITHOUT_TESTS=ON -DJANSSON_EXAMPLES=OFF

mkdir -p "$prefix/licenses"
cp "$expat/COPYING" "$prefix/licenses/LICENSE.expat"
cp "$zlib/LICENSE" "$prefix/licenses/LICENSE.zlib"
cp "$jansson/LICENSE" "$prefix/licenses/LICENSE.jansson"
grep -q "without any express or implied" "$prefix/licenses/LICENSE.zlib" || { echo "zlib's licence is not found" >&2; exit 1; }
for name in expat jansson; do
    grep -qi "permission is hereby granted" "$prefix/licenses/LICENSE.$name" || { echo "the licence of $name is not found" >&2; exit 1; }
done
echo "$(basename "$zlib"), $(basename "${expat%/expat}") and $(basename "$jansson") in $prefix"

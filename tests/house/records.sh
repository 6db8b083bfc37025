#!/bin/sh
# lib/base/records.inc is what lib/base/records.awk makes of the public headers.
# usage: records.sh [--write] SOURCE
set -eu
write=
if [ "$1" = --write ]; then write=1; shift; fi
cd "$1"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
headers=$(sed -n 's|^#include "\(hbp/[a-z_]*\.h\)"$|include/\1|p' include/hbp/hbp.h)
# shellcheck disable=SC2086
LC_ALL=C awk -f lib/base/records.awk $headers include/hbp/io.h >"$work/records" || exit 1
grep -q '^FIELD(' "$work/records" || { echo "no struct found"; exit 1; }
if [ -n "$write" ]; then
    cp "$work/records" lib/base/records.inc
    exit
fi
diff -u lib/base/records.inc "$work/records" >"$work/differ" || { head -n 40 "$work/differ"; echo "the headers have changed; run records.sh --write"; exit 1; }

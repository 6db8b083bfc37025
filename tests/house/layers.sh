#!/bin/sh
# What the objects of the library call, whatever header declares it: own layer and lower ones only; no public function that
# begins a call (it clears the message of the call that is under way, and checks again what its caller knows); no circle of files.
# Skipped (77) where there is no nm that reads the objects.
# usage: layers.sh SOURCE OBJECTS     OBJECTS: lib/CMakeFiles of a build
set -eu
source=$(cd "$1" && pwd) objects=$(cd "$2" && pwd)
command -v nm >/dev/null || { echo "no nm"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Each symbol with its file: "file D symbol" where it is defined, "file U symbol" where it is used.
cd "$source/lib"
for file in */*.c */*/*.c; do
    folder=hbp_objects.dir
    case $file in io/*) folder=hbp_io_objects.dir ;; esac
    [ ! -f "$objects/$folder/$file.o" ] || echo "$folder/$file.o" # those of glpk/ belong to a library of its own
done >"$work/objects"
(cd "$objects" && xargs nm -P -A <"$work/objects") | sed 's|^[a-z_]*\.dir/||; s/\.c\.o: / /' |
    awk '$3 == "U" { print $1, "U", $2 } $3 ~ /^[TDBRVW]$/ { print $1, "D", $2 }' >"$work/symbols"
grep -q ' D hbp__' "$work/symbols" || { echo "nm finds no symbols in $objects"; exit 77; }

# Public functions that begin a call: those that return a status.
find "$source/include/hbp" -name '*.h' ! -name glpk.h -exec cat {} + | tr '\n' ' ' | sed 's|/\*[^*]*\*\+\([^/*][^*]*\*\+\)*/||g' |
    grep -oE 'HBP_API hbp_status hbp_[a-z0-9_]+ *\(' | grep -oE 'hbp_[a-z0-9_]+ *\($' | tr -d ' (' >"$work/calls"
[ -s "$work/calls" ] || { echo "no HBP_API function found"; exit 1; }

layers=$(cat "$source/tests/house/layers.awk")
awk "$layers"'
# Whether `to` is reached from `from`; the files on the way are marked in `seen`.
function reach(from, seen,    i) {
    if (!(from in uses)) return
    for (i = 1; i <= uses[from]; i++)
        if (!(use[from, i] in seen)) { seen[use[from, i]] = 1; reach(use[from, i], seen) }
}
function fault(text) { print text; bad = 1 }
FILENAME == ARGV[1] { begins[$1] = 1; next }
pass == 1 && $2 == "D" { home[$3] = $1 }
pass == 2 && $2 == "U" && ($3 in home) && home[$3] != $1 {
    from = $1; to = home[$3]; symbol = $3
    split(from, f, "/"); split(to, t, "/")
    if (!may_see(f[1], t[1])) fault("lib/" from ".c may not call " symbol " of lib/" to ".c")
    if (symbol in begins)
        fault("lib/" from ".c calls " symbol ", which begins a call; an hbp__ function of lib/" to ".c does not")
    if (!((from, to) in edge)) { edge[from, to] = 1; use[from, ++uses[from]] = to }
}
END {
    for (file in uses) { split("", seen); reach(file, seen); if (file in seen) { in_circle[file] = 1; for (other in seen) reached[file, other] = 1 } }
    for (file in in_circle) {
        circle = ""; first = 1
        for (other in in_circle) if (other != file && reached[file, other] && reached[other, file]) {
            if (other < file) first = 0
            circle = circle " " other
        }
        if (first && circle != "") fault("calls in a circle: " file circle)
    }
    exit bad
}' "$work/calls" pass=1 "$work/symbols" pass=2 "$work/symbols" >"$work/faults" || bad=1
LC_ALL=C sort "$work/faults"
exit "${bad:-0}"

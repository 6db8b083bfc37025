#!/bin/sh
# Holds what the library answers against tests/record/expected, byte for byte (README.md here).
# usage: record.sh [--write] RECORD HBP DRAW_LENGTHS SOURCE
set -u
export LC_ALL=C
write=
if [ "$1" = --write ]; then write=1; shift; fi
whole() { echo "$(cd "$(dirname "$1")" && pwd)/$(basename "$1")"; }
record=$(whole "$1") hbp=$(whole "$2") draw=$(whole "$3") source=$(cd "$4" && pwd)
expected=$source/tests/record/expected data=$source/examples/data corpus=$source/tests/fuzz/corpus
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/said" "$work/in" && cd "$work/in" || exit 1

# Times that a clock told are not compared.
clocks() {
    sed -E 's/(planned in|made in|in at most) [0-9.]+ [a-z]+/\1 .../g; s/"planning_(ms|seconds)": [0-9.e+-]+/"planning_\1": .../g' |
        awk '/planned in$/ { cut = length($0) - 12; print; next } /^$/ { cut = 0 } cut && length($0) > cut { print substr($0, 1, cut) " ..."; next } { print }'
}
run() {
    echo "\$ hbp $*" | sed "s|$data|DATA|g"
    "$hbp" "$@" >out 2>err
    status=$?
    if [ "$(wc -c <out)" -gt 2000 ]; then
        echo "(output: $(clocks <out | cksum))"
    else
        clocks <out
    fi
    sed "s|$data|DATA|g; s/^/! /" err
    [ $status = 0 ] || echo "(exit status $status)"
}
sum() { if [ -e "$1" ]; then echo "($1: $(cksum <"$1"))"; else echo "(no $1)"; fi; }

for section in plans vision tasks costs files; do
    "$record" $section "$expected/$section.txt" >"$work/said/$section.txt" || { echo "$record $section failed"; exit 1; }
done
. "$source/tests/record/commands.sh" >"$work/said/command.txt" 2>&1
if [ -n "$write" ]; then
    mkdir -p "$expected"
    cp "$work/said"/*.txt "$expected/"
    exit
fi
diff -r "$expected" "$work/said" >"$work/differ" && echo "$(cat "$expected"/*.txt | wc -l) lines as recorded" && exit
head -n 60 "$work/differ"
echo "$(grep -c '^>' "$work/differ") of $(cat "$expected"/*.txt | wc -l) lines differ from tests/record/expected"
exit 1

#!/bin/sh
# Holds what the library answers against tests/record/expected, byte for byte (README.md here): with HBP_ALL_ROUNDS all of it, else
# every fourth question of the plans, none of slow.txt, and not the commands that take longest.
# usage: record.sh [--write] RECORD HBP DRAW_LENGTHS SOURCE
set -u
export LC_ALL=C
write=
if [ "$1" = --write ]; then write=1; shift; fi
all=$write${HBP_ALL_ROUNDS:-}
whole() { echo "$(cd "$(dirname "$1")" && pwd)/$(basename "$1")"; }
record=$(whole "$1") hbp=$(whole "$2") draw=$(whole "$3") source=$(cd "$4" && pwd)
expected=$source/tests/record/expected data=$source/examples/data corpus=$source/tests/fuzz/corpus
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/said" "$work/asked" "$work/in" && cd "$work/in" || exit 1

# Times that a clock told are not compared.
clocks() {
    sed -E 's/(planned in|made in|in at most) [0-9.]+ [a-z]+/\1 .../g; s/"planning_(ms|seconds)": [0-9.e+-]+/"planning_\1": .../g' |
        awk '/planned in$/ { cut = length($0) - 12; print; next } /^$/ { cut = 0 } cut && length($0) > cut { print substr($0, 1, cut) " ..."; next } { print }'
}
# What makes a command slow. What is shown of a plan goes with the command that makes it; two that are refused show a slow one's.
slow='--shard-ranks 8|--lockstep-ranks 8 --uneven|step r.npy .*--compare|--lockstep-ranks 5|--samples-per-step 100 --tokens-per-step'
of_the_last='^(show|validate) w.plan$'
left_out=
run() {
    if [ -z "$all" ] && ! echo "$*" | grep -qE -- "$of_the_last"; then
        left_out=$(echo "$*" | grep -E -- "$slow")
    fi
    [ -z "$left_out" ] || return
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
sum() { [ -z "$left_out" ] || return; if [ -e "$1" ]; then echo "($1: $(cksum <"$1"))"; else echo "(no $1)"; fi; }

for section in plans vision tasks costs files; do
    if [ -n "$all" ]; then
        cp "$expected/$section.txt" "$work/asked/"
    else
        parts=1
        case $section in plans | vision) parts=4 ;; esac
        awk -v parts=$parts -F ' -> ' 'NR == FNR { slow[$0]; next } FNR % parts == 0 && !($1 in slow)' \
            "$source/tests/record/slow.txt" "$expected/$section.txt" >"$work/asked/$section.txt"
    fi
    "$record" $section "$work/asked/$section.txt" >"$work/said/$section.txt" || { echo "$record $section failed"; exit 1; }
done
. "$source/tests/record/commands.sh" >"$work/said/command.txt" 2>&1
if [ -n "$write" ]; then
    mkdir -p "$expected"
    cp "$work/said"/*.txt "$expected/"
    exit
fi
if [ -n "$all" ]; then
    cp "$expected/command.txt" "$work/asked/"
else
    awk -v slow="$slow" -v of_the_last="$of_the_last" '
        /^\$ hbp/ { asked = substr($0, 7); if (asked !~ of_the_last) left_out = asked ~ slow }
        !left_out' "$expected/command.txt" >"$work/asked/command.txt"
fi
lines=$(cat "$work/asked"/*.txt | wc -l)
diff -r "$work/asked" "$work/said" >"$work/differ" && echo "$lines of $(cat "$expected"/*.txt | wc -l) lines as recorded" && exit
head -n 60 "$work/differ"
echo "$(grep -c '^>' "$work/differ") of $lines lines differ from tests/record/expected"
exit 1

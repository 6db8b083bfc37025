#!/bin/sh
# A file in lib/ includes its own floor and lower ones only, a sub-folder belonging to its floor; io and simulate are held to
# a list of their own. The rooms of the executor go one way, too.
# usage: floors.sh SOURCE
set -eu
source=$(cd "$1" && pwd)
cd "$source/lib"
floors=$(cat "$source/tests/house/floors.awk")
awk "$floors"'
/^[ \t]*#[ \t]*include[ \t]*"/ {
    split(FILENAME, at, "/"); from = at[2]
    path = $0; sub(/^[^"]*"/, "", path); sub(/".*/, "", path)
    files++
    if (path ~ /^hbp\//) next
    if (path !~ /\//) { print FILENAME ":" FNR ": \"" path "\" names no floor"; bad = 1; next }
    split(path, to, "/")
    if (!may_see(from, to[1])) { print FILENAME ":" FNR ": " from " may not include " path; bad = 1 }
}
END { if (!files) { print "no #include found"; bad = 1 }; exit bad }
' ./*/*.[ch] ./*/*/*.[ch]
cd "$source/examples/executor"
awk '
BEGIN { rooms = split("base device comm model walk probe", room, " "); for (i = 1; i <= rooms; i++) floor[room[i]] = i; floor["probe"] = floor["walk"] }
/^[ \t]*#[ \t]*include[ \t]*"/ {
    split(FILENAME, at, "/"); from = at[2]
    path = $0; sub(/^[^"]*"/, "", path); sub(/".*/, "", path)
    files++
    if (path ~ /^hbp\//) next
    if (path !~ /\//) { print FILENAME ":" FNR ": \"" path "\" names no room"; bad = 1; next }
    split(path, to, "/")
    if (!(to[1] in floor) || (to[1] != from && floor[to[1]] >= floor[from])) { print FILENAME ":" FNR ": " from " may not include " path; bad = 1 }
}
END { if (!files) { print "no #include found in the executor"; bad = 1 }; exit bad }
' ./base/* ./device/*.[ch] ./device/cuda/* ./comm/*.[ch] ./comm/nccl/* ./model/* ./walk/* ./probe/*

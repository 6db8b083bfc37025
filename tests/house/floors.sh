#!/bin/sh
# A file in lib/ includes its own floor and lower ones only, a sub-folder belonging to its floor; io and simulate are held to
# a list of their own. The rooms of the executor go one way, too.
# usage: floors.sh SOURCE
set -eu
source=$(cd "$1" && pwd)
cd "$source/lib"
awk '
function floor_of(folder) { return folder in floor ? floor[folder] : -1 }
BEGIN {
    floor["base"] = 0; floor["solve"] = 1; floor["data"] = 1; floor["cost"] = 2; floor["io"] = 2
    floor["parallel"] = 3; floor["simulate"] = 3; floor["store"] = 3; floor["pack"] = 4; floor["schedule"] = 4; floor["step"] = 4; floor["pipeline"] = 4; floor["tasks"] = 4; floor["epoch"] = 5; floor["vlm"] = 5
    only["io"] = " io data base "; only["simulate"] = " simulate data cost solve base "
    floor["glpk"] = 1; only["glpk"] = " glpk "
    only["solve"] = " solve base "; only["data"] = " data base "
}
/^[ \t]*#[ \t]*include[ \t]*"/ {
    split(FILENAME, at, "/"); from = at[2]
    path = $0; sub(/^[^"]*"/, "", path); sub(/".*/, "", path)
    files++
    if (path ~ /^hbp\//) next
    if (path !~ /\//) { print FILENAME ":" FNR ": \"" path "\" names no floor"; bad = 1; next }
    split(path, to, "/")
    wrong = floor_of(to[1]) < 0 || floor_of(from) < 0
    if (to[1] != from && floor_of(to[1]) >= floor_of(from)) wrong = 1
    if (from in only && index(only[from], " " to[1] " ") == 0) wrong = 1
    if (wrong) { print FILENAME ":" FNR ": " from " may not include " path; bad = 1 }
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
    if (path !~ /\//) { print FILENAME ":" FNR ": \"" path "\" names no room"; bad = 1; next }
    split(path, to, "/")
    if (!(to[1] in floor) || (to[1] != from && floor[to[1]] >= floor[from])) { print FILENAME ":" FNR ": " from " may not include " path; bad = 1 }
}
END { if (!files) { print "no #include found in the executor"; bad = 1 }; exit bad }
' ./base/* ./device/*.[ch] ./device/cuda/* ./comm/*.[ch] ./comm/nccl/* ./model/* ./walk/* ./probe/*

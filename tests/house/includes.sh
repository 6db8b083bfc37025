#!/bin/sh
# A file in lib/ includes its own layer and lower ones only, a sub-folder belonging to its layer; io and simulate are held to
# a list of their own. The folders of the executor go one way, too.
# usage: includes.sh SOURCE
set -eu
source=$(cd "$1" && pwd)
cd "$source/lib"
layers=$(cat "$source/tests/house/layers.awk")
awk "$layers"'
/^[ \t]*#[ \t]*include[ \t]*"/ {
    split(FILENAME, at, "/"); from = at[2]
    path = $0; sub(/^[^"]*"/, "", path); sub(/".*/, "", path)
    files++
    if (path ~ /^hbp\//) next
    if (path !~ /\//) { print FILENAME ":" FNR ": \"" path "\" names no layer"; bad = 1; next }
    split(path, to, "/")
    if (!may_see(from, to[1])) { print FILENAME ":" FNR ": " from " may not include " path; bad = 1 }
}
END { if (!files) { print "no #include found"; bad = 1 }; exit bad }
' ./*/*.[ch] ./*/*/*.[ch]
cd "$source/examples/executor"
awk '
BEGIN { folders = split("base device comm model walk probe", folder, " "); for (i = 1; i <= folders; i++) layer[folder[i]] = i; layer["probe"] = layer["walk"] }
/^[ \t]*#[ \t]*include[ \t]*"/ {
    split(FILENAME, at, "/"); from = at[2]
    path = $0; sub(/^[^"]*"/, "", path); sub(/".*/, "", path)
    files++
    if (path ~ /^hbp\//) next
    if (path !~ /\//) { print FILENAME ":" FNR ": \"" path "\" names no folder"; bad = 1; next }
    split(path, to, "/")
    if (!(to[1] in layer) || (to[1] != from && layer[to[1]] >= layer[from])) { print FILENAME ":" FNR ": " from " may not include " path; bad = 1 }
}
END { if (!files) { print "no #include found in the executor"; bad = 1 }; exit bad }
' ./base/* ./device/*.[ch] ./device/cuda/* ./comm/*.[ch] ./comm/nccl/* ./model/* ./walk/* ./probe/*

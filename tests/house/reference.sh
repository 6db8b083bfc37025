#!/bin/sh
# docs/reference/ is what the public headers say: a page a header, and every function and struct of options has its words.
# usage: reference.sh [--write] SOURCE
set -eu
write=
if [ "$1" = --write ]; then write=1; shift; fi
cd "$1"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
headers="base lengths partition cost plan pack epoch pattern step pipeline vlm tasks io glpk" # in the order in which one meets them
for header in include/hbp/*.h; do
    case " $headers hbp " in *" $(basename "$header" .h) "*) ;; *) echo "reference.sh does not know $header"; exit 1 ;; esac
done

# The pages that "(docs: name)" may mean, by file and title.
for explanation in docs/explanation/*.md; do
    echo "$(basename "$explanation" .md) $(head -n 1 "$explanation")"
done >"$work/pages"

# What of the package hbp calls a function: the class or function at a line's left, and the method in it.
grep -oE '^    "[A-Za-z_]+",' bindings/python/src/hbp/__init__.py | tr -d ' ",' >"$work/public"
# shellcheck disable=SC2046
LC_ALL=C awk '
    NR == FNR { public[$1] = 1; next }
    FNR == 1 { owner = method = "" }
    /^(class|def) / { owner = $2; sub(/[^A-Za-z0-9_].*/, "", owner); is_class = /^class/; method = "" }
    /^[A-Za-z]/ && !/^(class|def) / { owner = "" }
    /^    def / { method = $2; sub(/[^A-Za-z0-9_].*/, "", method) }
    /lib\.hbp_/ && owner in public {
        called = "hbp." owner
        if (is_class && method ~ /^_/ && method != "__init__") next
        if (is_class && method != "" && method != "__init__") called = called "." method
        line = $0
        while (match(line, /lib\.hbp_[a-z0-9_]+/)) {
            name = substr(line, RSTART + 4, RLENGTH - 4); line = substr(line, RSTART + RLENGTH)
            if (!((name, called) in seen)) { seen[name, called] = 1; text[name] = text[name] (text[name] == "" ? "" : ", ") "`" called "`" }
        }
    }
    END { for (name in text) print name, text[name] }' "$work/public" $(ls bindings/python/src/hbp/[a-z]*.py) >"$work/python"

mkdir "$work/reference"
# shellcheck disable=SC2046
LC_ALL=C awk -v out="$work/reference" -f tests/house/reference.awk what=pages "$work/pages" what=python "$work/python" \
    what=records lib/base/records.inc what=header $(for header in $headers; do echo "include/hbp/$header.h"; done)

# Nothing that the headers declare is left out.
cat "$work"/reference/*.md >"$work/all"
for name in $(sed -nE 's/^ *(hbp_[a-z0-9_]+);/\1/p' lib/hbp.map lib/hbp-io.map lib/hbp-glpk.map) \
    $(sed -nE 's/^STRUCT\((hbp_[a-z0-9_]+),.*/\1/p' lib/base/records.inc); do
    case $name in hbp__*) continue ;; esac
    grep -qE "(^### |\[\`)$name\b" "$work/all" || { echo "no page has $name"; exit 1; }
done
if [ -n "$write" ]; then
    mkdir -p docs/reference
    rm -f docs/reference/*.md
    cp "$work"/reference/*.md docs/reference/
    exit
fi
diff -ru docs/reference "$work/reference" >"$work/differ" || { head -n 40 "$work/differ"; echo "the headers have changed; run reference.sh --write"; exit 1; }

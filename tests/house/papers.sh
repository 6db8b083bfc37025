#!/bin/sh
# Every function, option and test that docs/papers.md names is there, and the papers' terms lead to them.
# usage: papers.sh SOURCE
set -eu
cd "$1"
page=docs/papers.md bad=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "$page: $*"; bad=1; }
for name in $(grep -oE '`hbp_[a-z0-9_]+`|\bHBP_[A-Z0-9_]+' "$page" | tr -d '\140' | sort -u); do
    grep -rqE "\b$name\b" include lib --include=*.h || fail "nothing is called $name"
done
for test in $(grep -oE 'tests/[a-z]+/test_[a-z0-9_]+\.c' "$page" | sort -u); do
    [ -f "$test" ] || fail "$test is not there"
done
for link in $(grep -oE '\(explanation/[a-z-]+\.md\)' "$page" | tr -d '()' | sort -u); do
    [ -f "docs/$link" ] || fail "docs/$link is not there"
done
# A term of the papers stands in the first column of a row that names a function, which a file of lib/ defines, and a test.
grep -E '^\|' "$page" >"$work/rows"
grep -rhE '^[a-z].*\bhbp_[a-z0-9_]+\(' lib --include=*.c >"$work/defined"
while read -r term; do
    row=$(awk -F '|' -v term="$term" 'index(tolower($2), tolower(term))' "$work/rows")
    [ -n "$row" ] || { fail "no row for the papers' '$term'"; continue; }
    found=
    for name in $(echo "$row" | grep -oE '`hbp_[a-z0-9_]+`' | tr -d '\140'); do
        grep -qE "\b$name\(" "$work/defined" && found=1
    done
    [ -n "$found" ] || fail "'$term' leads to no function"
    echo "$row" | grep -qE 'tests/[a-z]+/test_[a-z0-9_]+\.c' || fail "'$term' leads to no test"
done <<'TERMS'
Algorithm 7
Ave-Token
bi-point discretisation
wavefront
blaster
DistRatio
DBR
ABR
iterative sampling and filtering
MetaOp
contraction
scalability estimator
bucketing
homogeneous SP
greedy fill
hierarchical groups
adaptive re-computation
partition balanced
PadRatio
curriculum
dual budgets
TERMS
[ $bad = 0 ]

#!/bin/sh
# Every function, option and test that docs/papers.md names is there.
# usage: papers.sh SOURCE
set -eu
cd "$1"
page=docs/papers.md bad=0
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
[ $bad = 0 ]

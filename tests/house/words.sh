#!/bin/sh
# One word, one meaning: pages, public headers, docstrings and messages do without the words of words.txt.
# usage: words.sh SOURCE
set -eu
cd "$1"
find README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md docs include lib examples bindings -type f \
    \( -name '*.md' -o -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' -o -name '*.py' \) ! -path '*/tests/*' |
    LC_ALL=C sort | LC_ALL=C xargs awk -f tests/house/words.awk tests/house/words.txt

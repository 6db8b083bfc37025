#!/bin/sh
# Every relative link of a page goes to a file that is there, and to a heading of it where it names one; every page of docs/ is
# linked from another.
# usage: links.sh SOURCE
set -eu
cd "$1"
bad=0
fail() { echo "$*"; bad=1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
pages=$(find . -name '*.md' -not -path './build*' -not -path './.git/*' -not -path '*/.pytest_cache/*' | sed 's|^\./||' | sort)

# Links of a page, a line each, without code blocks.
links() { awk '/^ *```/ { code = !code; next } !code' "$1" | grep -oE '\]\([^) ]+\)' | sed 's/^](//; s/)$//' || true; }
# The anchors of a page's headings, as GitHub makes them.
anchors() { awk '/^ *```/ { code = !code; next } !code && /^#+ / { sub(/^#+ /, ""); print tolower($0) }' "$1" | sed 's/[^a-z0-9_ -]//g; s/ /-/g'; }

: >"$work/linked"
for page in $pages; do
    for link in $(links "$page"); do
        case $link in http://* | https://* | mailto:*) continue ;; esac
        path=${link%%#*} anchor=
        case $link in *'#'*) anchor=${link#*#} ;; esac
        target=$page
        [ -z "$path" ] || target=$(dirname "$page")/$path
        if [ ! -e "$target" ]; then
            fail "$page links to $link, which is not there"
            continue
        fi
        [ "$target" = "$page" ] || realpath --relative-to=. "$target" >>"$work/linked"
        case $target in
        *.md) [ -z "$anchor" ] || anchors "$target" | grep -qxF -- "$anchor" || fail "$page links to $link, and no heading is that" ;;
        esac
    done
done
for page in $pages; do
    case $page in docs/*) grep -qxF "$page" "$work/linked" || fail "no page links to $page" ;; esac
done
[ "$(wc -l <"$work/linked")" -ge 100 ] || fail "hardly a link was found"
exit $bad

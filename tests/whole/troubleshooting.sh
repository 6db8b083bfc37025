#!/bin/sh
# docs/troubleshooting.md quotes what the command and the library say. Its ```console blocks are run, "$ " lines in one shell one after
# another, and must print what stands below them; lines of its ```text blocks, cut at "...", must be in the sources' strings.
# usage: troubleshooting.sh PROGRAMS LIBHBP SOURCE
set -u
programs=$1 library=$2 source=$3
page=$source/docs/troubleshooting.md
. "$source/cmake/packages.sh"
python=$(python_with_numpy || true)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/bin" "$work/here/examples" && cd "$work/here" || exit 1
bad=0
fail() { echo "FAIL: $*"; bad=1; }
for program in hbp draw_lengths; do ln -s "$programs/$program" "$work/bin/$program"; done
[ -z "$python" ] || ln -s "$(command -v "$python")" "$work/bin/python3"
ln -s "$source/examples/data" examples/data
PATH=$work/bin:$PATH PYTHONPATH=$source/bindings/python/src HBP_LIBRARY=$library PYTHONDONTWRITEBYTECODE=1
export PATH PYTHONPATH HBP_LIBRARY PYTHONDONTWRITEBYTECODE

# A line each: "$ COMMAND" and what it must say.
awk '/^```/ { in_it = $0 == "```console"; if (!in_it) print "$ true"; next } in_it' "$page" >"$work/blocks"
commands=0 messages=0 command='' : >"$work/want"
check() {
    [ -n "$command" ] || return 0
    case $command in true) return 0 ;; *python3*) [ -n "$python" ] || return 0 ;; esac
    commands=$((commands + 1))
    sh -c "$command" >"$work/got" 2>&1 </dev/null
    [ -s "$work/want" ] || ! grep -q '^hbp:' "$work/got" || fail "$command said: $(cat "$work/got")"
    [ ! -s "$work/want" ] || cmp -s "$work/want" "$work/got" || fail "$command
says   $(head -n 3 "$work/got")
quoted $(cat "$work/want")"
    messages=$((messages + $(wc -l <"$work/want")))
}
while IFS= read -r line; do
    case $line in
    '$ '*)
        check
        command=${line#'$ '}
        : >"$work/want"
        ;;
    *) printf '%s\n' "$line" >>"$work/want" ;;
    esac
done <"$work/blocks"
check

# Strings that stand on several lines are joined, and so are Python's.
find "$source/lib" "$source/examples" "$source/bindings/python/src" \( -name '*.c' -o -name '*.py' \) -exec cat {} + | tr '\n' ' ' |
    sed 's/" *f\{0,1\}"//g' >"$work/strings"
awk '/^```/ { in_it = $0 == "```text"; next } in_it' "$page" >"$work/quoted"
quoted=0
while IFS= read -r line; do
    quoted=$((quoted + 1))
    printf '%s\n' "$line" | awk '{ n = split($0, part, /\.\.\./); for (i = 1; i <= n; i++) if (length(part[i]) > 3) print part[i] }' >"$work/parts"
    [ -s "$work/parts" ] || fail "'$line' says nothing"
    while IFS= read -r part; do
        grep -qF -- "$part" "$work/strings" || fail "no source says '$part' of '$line'"
    done <"$work/parts"
done <"$work/quoted"
echo "$commands commands, $messages messages of theirs, $quoted others"
[ "$messages" -ge 20 ] && [ "$quoted" -ge 10 ] || fail "hardly a message was found"
exit $bad

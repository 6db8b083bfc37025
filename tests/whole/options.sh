#!/bin/sh
# The table of the command's options from outside: --help, the page for man, the completions and the methods all
# say the same, groff takes the page, bash and zsh what is printed for them, and every method that is listed is taken.
# usage: options.sh HBP
set -u
hbp=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
bad=0
fail() { echo "FAIL: $*"; bad=1; }

commands=$("$hbp" --help | sed -n 's/^  \([a-z]*\)  .*/\1/p; s/^  \(completion\) .*/\1/p')
[ "$(echo "$commands" | wc -l)" -ge 17 ] || fail "--help lists too few commands: $commands"
"$hbp" help --man >hbp.1 || fail "help --man"
for shell in bash zsh fish; do "$hbp" completion $shell >hbp.$shell || fail "completion $shell"; done

# Every option of every command is in all of them; lines of help stay in 110 columns.
options=0
for command in $commands; do
    "$hbp" "$command" --help >help || fail "$command --help"
    "$hbp" help "$command" | cmp -s - help || fail "help $command is not $command --help"
    [ "$(awk 'length > 110' help | wc -l)" = 0 ] || fail "$command --help: $(awk 'length > 110' help)"
    awk -v of="$command" '/^\.SS/ { on = $3 == of || $3 == of "\"" } on' hbp.1 | tr -d '\\' >section
    sed -n "/^    $command)/,/words=/p" hbp.bash >words
    sed -n "/^    $command)/,/;;\$/p" hbp.zsh >zsh
    for option in $(sed -n 's/^  --\([a-z-]*\) .*/\1/p; s/^  --\([a-z-]*\)$/\1/p' help); do
        options=$((options + 1))
        grep -q "^fB--$option""fR" section || fail "the page lacks hbp $command --$option"
        grep -q -- "--$option " words || fail "bash lacks hbp $command --$option"
        grep -qF -- "--$option[" zsh || fail "zsh lacks hbp $command --$option"
        grep -q -- "from $command' -l $option " hbp.fish || fail "fish lacks hbp $command --$option"
    done
done
[ $options -ge 200 ] || fail "only $options options were found"

if command -v groff >/dev/null; then
    groff -man -ww -Tutf8 -z hbp.1 2>said || fail "groff fails"
    [ ! -s said ] || fail "groff says: $(head -n 3 said)"
fi
if command -v man >/dev/null && LC_ALL=C man --warnings --version >/dev/null 2>&1; then
    LC_ALL=C MANWIDTH=80 man --warnings -l hbp.1 >/dev/null 2>said
    [ ! -s said ] || fail "man says: $(head -n 3 said)"
fi

# completes WANTED WORD...: what bash completes of the last word holds the wanted one.
completes() {
    wanted=$1
    shift
    bash -c '. ./hbp.bash; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _hbp; printf "%s\n" "${COMPREPLY[@]}"' - "$@" >out 2>said
    grep -qxF -- "$wanted" out || fail "$* is not completed to $wanted: $(cat out)"
    [ ! -s said ] || fail "bash says: $(cat said)"
}
if command -v bash >/dev/null; then
    bash -n hbp.bash || fail "bash cannot read its completion"
    : >lengths.npy
    completes plan hbp pl
    completes --samples-per-step hbp plan lengths.npy --sam
    completes hybrid-cp hbp plan lengths.npy --method hy
    completes drop hbp plan lengths.npy --over-long d
    completes h100 hbp plan lengths.npy --machine h1
    completes lengths.npy hbp plan len
    completes lengths.npy hbp plan lengths.npy --batches le
    completes fish hbp completion f
    completes vlm hbp help vl
    [ "$(grep -c . out)" = 1 ] || fail "help vl is completed to more than vlm: $(cat out)"
fi
command -v zsh >/dev/null && { zsh -n hbp.zsh || fail "zsh cannot read its completion"; }
command -v fish >/dev/null && { fish --no-execute hbp.fish || fail "fish cannot read its completion"; }

# A method that is listed under an option of a command is taken by it: what is missing is the file alone.
"$hbp" methods >methods || fail "methods"
"$hbp" methods --json >methods.json || fail "methods --json"
awk '/^[a-z].*: hbp [a-z]+ --/ { command = $(NF - 1); option = $NF; next } /^[a-z].*: in C/ { option = "" } /^  method / { next }
    NF && option { print command, option, $1 }' methods >listed
[ "$(wc -l <listed)" -ge 40 ] || fail "few methods are listed: $(cat listed)"
while read -r command option name; do
    with=
    [ "$command" != stages ] || with='--stages 2'
    [ "$command" != tasks ] || with='--machine h100'
    [ "$command" != vlm ] || with='--vlm qwen2-vl-7b --machine h100'
    case $command in plan | groups | step) with='--model llama-3.1-8b --machine h100' ;; esac
    # shellcheck disable=SC2086
    "$hbp" "$command" absent.json $with "$option" "$name" >out 2>said
    [ $? = 1 ] && grep -q absent said || fail "hbp $command $option $name: $(cat said)"
    grep -qF "\"$name\"" methods.json || fail "methods --json lacks $name"
done <listed
[ $bad = 0 ] && echo "$options options of $(echo "$commands" | wc -l) commands, $(wc -l <listed) methods"
exit $bad

#!/bin/sh
# Lengths in Parquet and Arrow files: what the hbp command makes of what its reader writes, with a python3 of the test's own, and,
# where the package index can be reached, of real files through pyarrow; the how-to's lines from a data set to lengths.npy.
# usage: columnar.sh HBP LIBHBP SOURCE [--pyarrow]
#     --pyarrow installs pyarrow, datasets and tokenizers into an environment of its own; skipped (77) where it cannot
set -u
hbp=$1 library=$2 source=$3 real=${4:-}
. "$source/cmake/packages.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
bad=0
fail() { echo "FAIL: $*"; bad=1; }

# reader SCRIPT: the python3 that the command finds.
mkdir bin
reader() { printf '#!/bin/sh\n%s\n' "$1" >bin/python3 && chmod +x bin/python3; }
int64() { # NUMBER...: as this machine keeps them, lowest byte first on all that this runs on
    for number; do
        i=0
        while [ $i -lt 8 ]; do
            # shellcheck disable=SC2059
            printf "\\$(printf '%03o' $((number >> 8 * i & 255)))"
            i=$((i + 1))
        done
    done
}
# good TEXT ARGUMENT...: succeeds and prints the text.
good() {
    text=$1
    shift
    PATH=$work/bin:$PATH "$hbp" lengths "$@" >out 2>err || { fail "hbp lengths $*: exit status $?: $(cat err)"; return; }
    grep -qF -- "$text" out || fail "hbp lengths $*: no '$text' in $(cat out)"
    [ ! -s err ] || fail "hbp lengths $*: wrote to stderr: $(cat err)"
}
# wrong TEXT ARGUMENT...: exit status 1, and one line that holds the text.
wrong() {
    text=$1
    shift
    PATH=$work/bin:$PATH "$hbp" lengths "$@" >out 2>err
    got=$?
    [ $got = 1 ] || fail "hbp lengths $*: exit status $got"
    [ ! -s out ] || fail "hbp lengths $*: printed on stdout"
    [ "$(wc -l <err)" = 1 ] && grep -qF -- "$text" err || fail "hbp lengths $*: '$(cat err)' lacks '$text'"
}

printf 'PAR1....' >x.parquet
printf 'ARROW1..' >x.arrow
printf '\377\377\377\377....' >s.arrow
mkdir data && cp x.parquet data/train-00000-of-00001.parquet

int64 2 300 4 1 5 -1 >rows
reader "cat '$work/rows'"
for path in x.parquet x.arrow s.arrow data 'data/train-*.parquet'; do
    good '3 samples, 309 tokens' "$path"
done
int64 2 300 4 100 -1 -1 >rows # two lengths, then their loss tokens
wrong 'x.parquet: sample 1 has -1 loss tokens' x.parquet --loss-column loss
int64 2 300 4 100 2 0 3 0 1 1 5 5 0 0 -1 >rows # a batch of two, and one of one
good '3 samples, 309 tokens' x.parquet --loss-column a --vision-column b --modality-column c
int64 1 5 -9999999999 -1 >rows
wrong 'modalities are numbered 0 to' x.parquet --modality-column c
int64 -1 >rows
wrong 'x.parquet: the data set has 0 samples' x.parquet
for count in 0 65537 -3 9223372036854775807; do # what is no count of rows
    int64 $count 1 2 3 -1 >rows
    wrong 'x.parquet: python3 ended before the lengths did' x.parquet
done
int64 2 300 >rows
wrong 'python3 ended before the lengths did' x.parquet
: >rows
wrong 'python3 ended before the lengths did' x.parquet
{ int64 -2 9; printf 'no such x'; } >rows
wrong 'hbp: no such x' x.parquet
int64 -2 9 >rows
wrong 'python3 ended before the lengths did' x.parquet
int64 -2 -9 >rows
wrong 'python3 ended before the lengths did' x.parquet
reader 'kill -INT $$'
wrong 'reading x.parquet was cancelled' x.parquet
# A reader that would go on for ever is ended with the first failure.
int64 1 0 >rows
reader "while :; do cat '$work/rows'; done"
wrong 'x.parquet: sample 0 has 0 tokens' x.parquet
reader 'printf "%s\n" "$3" "$4" "$5" "$6" "$7" "$8" >'"'$work/arguments'; cat '$work/rows'"
int64 1 5 0 -1 >rows
good '1 sample' x.parquet --column 'a b' --vision-column c
[ "$(tr '\n' '|' <arguments)" = 'x.parquet|a b|||c||' ] || fail "the reader was given $(cat arguments)"
wrong '--vision is for other formats' x.parquet --vision x.arrow
wrong 'x.parquet holds no histogram' x.parquet --count-column n
rm bin/python3
PATH=$work/bin "$hbp" lengths x.parquet >out 2>err
grep -q "x.parquet is read through Python's pyarrow, and python3 cannot be started" err || fail "without python3: $(cat err)"

plain=$(python_with_numpy) || { echo "no Python with numpy"; exit 77; }
plain=$("$plain" -c 'import sys; print(sys.executable)')
reader "exec '$plain' \"\$@\""
if ! "$plain" -c 'import pyarrow' 2>/dev/null; then
    wrong "x.parquet is read through pyarrow, which" x.parquet
    wrong "-m pip install pyarrow" x.parquet
fi
[ -n "$real" ] || { [ $bad = 0 ] && echo "the command's half"; exit $bad; }

"$plain" -m venv venv >log 2>&1 || { echo "no venv: $(tail -n 1 log)"; exit 77; }
venv/bin/pip install -q numpy pyarrow datasets tokenizers >log 2>&1 || { echo "no package index: $(tail -n 1 log)"; exit 77; }
reader "exec '$work/venv/bin/python' \"\$@\""
HBP_LIBRARY=$library PYTHONPATH=$source/bindings/python/src PYTHONDONTWRITEBYTECODE=1 HF_HUB_OFFLINE=1 \
    sh -c "cd '$source/bindings/python/tests' && '$work/venv/bin/python' -m unittest test_columnar test_pages" >log 2>&1 || fail "$(tail -n 30 log)"
! grep 'skipped=' log
venv/bin/python -c '
import pyarrow, pyarrow.parquet
table = pyarrow.table({"input_ids": [[1, 2, 3], [4], [5, 6]], "images": [0, 2, 0]})
pyarrow.parquet.write_table(table, "x.parquet")
with pyarrow.ipc.new_file("x.arrow", table.schema) as out: out.write_table(table)
with pyarrow.ipc.new_stream("s.arrow", table.schema) as out: out.write_table(table)
' || fail "no files"
for path in x.parquet x.arrow s.arrow; do
    good '3 samples, 6 tokens' $path
    good '2 vision units' $path --column input_ids --vision-column images
    wrong "no column 'nope'; there are input_ids (list<" $path --column nope
done
[ $bad = 0 ] && echo "through pyarrow $(venv/bin/python -c 'import pyarrow; print(pyarrow.__version__)')"
exit $bad

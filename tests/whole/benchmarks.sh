#!/bin/sh
# benchmarks/compare.py on results made up here: what is slower is said and fails, what is missing is named, another CPU is
# said; and what a benchmark writes is such a result. Skipped, 77, without python3.
# usage: benchmarks.sh SOURCE [BENCHMARK]
set -u
source=$1 benchmark=${2:-}
compare=$source/benchmarks/compare.py
command -v python3 >/dev/null || { echo "no python3"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
export PYTHONDONTWRITEBYTECODE=1
bad=0
fail() { echo "FAIL: $*"; bad=1; }

# result CPU METRIC...: a result of one benchmark.
result() {
    printf '{"benchmark": "bench_a", "commit": "c0ffee", "cpu": "%s", "date": "2026-01-01", "processors": 2, "compiler": "gcc 12", "metrics": [' "$1"
    shift
    separator=
    for metric; do
        printf '%s%s' "$separator" "$metric"
        separator=', '
    done
    printf ']}\n'
}
# figure NAME VALUE UNIT BETTER [RATIO]: a metric, with a yardstick where there is a ratio.
figure() {
    printf '{"name": "%s", "value": %s, "unit": "%s", "better": "%s"' "$1" "$2" "$3" "$4"
    [ -z "${5:-}" ] || printf ', "yardstick": "sort", "ratio": %s' "$5"
    printf '}'
}
# said STATUS TEXT...: the last comparison ended so and said all of this.
run() { python3 "$compare" "$@" >out 2>err; got=$?; }
said() {
    [ $got = "$1" ] || fail "exit status $got instead of $1: $(cat out err)"
    shift
    for text; do grep -qF -- "$text" out || fail "no '$text' in: $(cat out err)"; done
}
never() { ! grep -qF -- "$1" out || fail "'$1' in: $(cat out)"; }

result one "$(figure time 2 s lower)" "$(figure sorts 3 s lower 5)" "$(figure rate 100 MB/s higher)" "$(figure gap 1 % lower)" >old.json
cp old.json same.json
run old.json same.json
said 0 "bench_a: c0ffee of 2026-01-01" "0 worse and 0 better by more than 0.5 % (20 % of the clock's), 4 the same, 0 missing"
never WORSE

result one "$(figure time 2.2 s lower)" "$(figure sorts 3 s lower 5.1)" "$(figure rate 90 MB/s higher)" "$(figure gap 0.5 % lower)" >new.json
run old.json new.json # the clock is allowed more
said 0 "better    gap: 1 % -> 0.5 %" "0 worse and 1 better"
run old.json new.json --clock 5
said 1 "WORSE     time: 2 s -> 2.2 s (1.100 x)" "WORSE     rate: 100 MB/s -> 90 MB/s (0.900 x)" "better    gap: 1 % -> 0.5 %" "2 worse and 1 better"
never "WORSE     sorts"
run old.json new.json --threshold 120
said 0 "0 worse and 0 better by more than 120 %"
run new.json old.json --clock 5 # the other way round nothing but the gap is worse
said 1 "WORSE     gap" "better    time" "better    rate" "1 worse and 2 better"

# A yardstick goes before the figure: 9 s is no more where the yardstick took as much longer.
result one "$(figure sorts 9 s lower 5)" >new.json
run old.json new.json
said 1 "MISSING   time: was 2 s" "MISSING   rate" "MISSING   gap" "1 the same, 3 missing or changed"
never WORSE
result one "$(figure sorts 1 s lower 8)" >new.json
run old.json new.json
said 1 "WORSE     sorts: 5 x sort -> 8 x sort (1.600 x)"

# On another CPU the clock is compared beside yardsticks alone, and what is no time as ever.
result two "$(figure time 9 s lower)" "$(figure sorts 9 s lower 9)" "$(figure rate 1 MB/s higher)" "$(figure gap 2 % lower)" >new.json
run old.json new.json
said 1 "another cpu: one -> two" "WORSE     sorts" "WORSE     gap: 1 % -> 2 %" "2 not comparable"
never "WORSE     time"
never "WORSE     rate"

# From nothing, to nothing, and what was not measured.
result one "$(figure zero 0 cases lower)" "$(figure some 2 cases lower)" "$(figure null 1 s lower)" >old.json
result one "$(figure zero 1 cases lower)" "$(figure some 0 cases lower)" "$(figure null null s lower)" "$(figure fresh 4 ms lower)" >new.json
run old.json new.json
said 1 "WORSE     zero: 0 cases -> 1 cases (from 0)" "better    some: 2 cases -> 0 cases" "MISSING   null: 1 s -> not measured" "new       fresh: 4 ms"

# A list of results; a benchmark that is gone; units that changed.
{ echo '['; cat old.json; echo ','; sed 's/bench_a/bench_b/' old.json; echo ']'; } >list.json
run list.json old.json
said 1 "bench_b: MISSING from old.json" "3 missing"
result one "$(figure zero 0 s lower)" >new.json
run old.json new.json
said 1 "CHANGED   zero"

for file in '{' '{"benchmark": "a"}' '[1]' '{"benchmark": "a", "metrics": [{"name": "x", "value": 1, "unit": "s", "better": "faster"}]}'; do
    printf '%s\n' "$file" >broken.json
    run old.json broken.json
    [ $got = 2 ] && grep -q "broken.json is no result" err && [ "$(wc -l <err)" = 1 ] || fail "$file: $got, $(cat out err)"
done
run old.json none.json
[ $got = 2 ] && grep -q "cannot open none.json" err || fail "an absent file: $(cat err)"
run old.json
[ $got = 2 ] && grep -q "usage" err || fail "one file alone: $(cat err)"

if [ -n "$benchmark" ]; then
    BENCH_JSON=own.json "$benchmark" >out.txt || fail "$benchmark"
    python3 - <<'END' || fail "what a benchmark writes: $(head -c 600 own.json)"
import json
r = json.load(open("own.json"))
assert r["benchmark"].startswith("bench_") and "/" not in r["benchmark"], r["benchmark"]
assert all(r[k] and isinstance(r[k], str) for k in ("commit", "cpu", "date", "compiler")) and r["processors"] > 0
names = [m["name"] for m in r["metrics"]]
assert len(names) > 5 and len(set(names)) == len(names), names
for m in r["metrics"]:
    assert m["better"] in ("lower", "higher") and m["unit"] and isinstance(m["value"], (int, float)), m
    assert ("yardstick" in m) == ("ratio" in m), m
assert any("yardstick" in m for m in r["metrics"]) and any("yardstick" not in m for m in r["metrics"])
END
    run own.json own.json
    said 0 "0 worse and 0 better"
    BENCH_JSON=no/such.json "$benchmark" >out.txt 2>err && fail "a folder that is not there was no failure"
    grep -q "no/such.json" err || fail "$(cat err)"
fi
exit $bad

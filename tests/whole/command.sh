#!/bin/sh
# The hbp command from outside: what it prints, its JSON, its exit statuses and its one-line errors.
# usage: command.sh HBP DRAW_LENGTHS STATE_CONTRACT SOURCE
set -u
hbp=$1 draw=$2 state=$3 source=$4
. "$source/cmake/packages.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
bad=0
fail() { echo "FAIL: $*"; bad=1; }

# good ARGUMENT...: succeeds, prints something, says nothing on stderr.
good() {
    "$hbp" "$@" >out 2>err || { fail "hbp $*: exit status $?: $(cat err)"; return; }
    [ -s out ] || fail "hbp $* printed nothing"
    [ ! -s err ] || fail "hbp $* wrote to stderr: $(cat err)"
}
# json PYTHON-CONDITION ARGUMENT...: as good, with --json; `r` is the result.
json() {
    condition=$1
    shift
    good "$@" --json
    [ -n "$python" ] || return
    "$python" -SE -c "
import json, sys
def no(x): raise ValueError(x)
r = json.load(open('out'), parse_constant=no)
sys.exit(0 if ($condition) else 1)" 2>/dev/null || fail "hbp $* --json: not so: $condition: $(head -c 600 out)"
}
# wrong STATUS TEXT ARGUMENT...: that exit status, nothing on stdout, one line on stderr that holds the text.
wrong() {
    status=$1 text=$2
    shift 2
    "$hbp" "$@" >out 2>err
    got=$?
    [ $got = "$status" ] || fail "hbp $*: exit status $got instead of $status: $(cat err)"
    [ ! -s out ] || fail "hbp $* printed on stdout"
    [ "$(wc -l <err)" = 1 ] || fail "hbp $*: not one line on stderr: $(cat err)"
    grep -qF -- "$text" err || fail "hbp $*: '$(cat err)' lacks '$text'"
}
has() { grep -qF -- "$1" out || fail "no '$1' in: $(cat out)"; }

python=$(python_itself)
[ -n "$python" ] || echo "no python3: JSON is not parsed"

good --help && has "usage: hbp COMMAND" && has "llama-3.1-8b" && has "h100"
good --version && has "hbp 0."
for command in lengths probe groups plan expand step vlm stages tasks fit show compare trace validate dump methods model machine; do
    good $command --help && has "usage: hbp $command" && has "--json"
done
odd=$(printf 'odd\033[2J\nname')
printf '10\n20\n' >"$odd"
good lengths "$odd" && has 'odd?[2J?name: 2 samples' && [ "$(grep -c "$(printf '\033')" out)" = 0 ] || fail "a name with escapes: $(cat out)"
printf '10\n20\n' >in.txt
ln in.txt link.txt
wrong 2 "link.txt is read and would be written over by -o" plan in.txt --model llama-3.1-8b --machine h100:4 -o link.txt
ln -s absent.bin one.link && ln -s ./absent.bin two.link
wrong 2 "two.link is given for two files to write, by -o and by --trace" tasks clip-4 --machine a800-80 -o one.link --trace two.link
wrong 2 "./x is given for two files to write, by -o and by --trace" tasks clip-4 --machine a800-80 -o x --trace ./x
rm one.link two.link
[ "$(cat in.txt)" = "$(printf '10\n20')" ] || fail "in.txt was written over"
wrong 1 'cannot open no\x1b[2J\nfile: ' lengths "$(printf 'no\033[2J\nfile')"
wrong 2 "go together" validate x --model llama-3.1-8b

# The same file again, byte by byte; a thousandth of a million.
"$draw" "$source/examples/data/wikipedia.csv" l.npy 5000 7 131072 || fail "draw_lengths"
"$draw" "$source/examples/data/wikipedia.csv" again.npy 5000 7 131072
cmp l.npy again.npy || fail "draw_lengths is not reproducible"
tenth=${HBP_ALL_ROUNDS:+500} # of what all methods are compared on where a quarter of the file will do
tenth=${tenth:-125}
"$draw" "$source/examples/data/wikipedia.csv" part.npy $((10 * tenth)) 7 131072 || fail "draw_lengths"

json "r['samples'] == 5000 and sum(h['samples'] for h in r['histogram']) == 5000 and
      sum(h['tokens'] for h in r['histogram']) == r['tokens'] and r['min_length'] >= 1 and
      all(a['length'] <= b['length'] for a, b in zip(r['quantiles'], r['quantiles'][1:]))" lengths l.npy
good lengths l.npy && has "5,000 samples"
printf '5\n70\n900\n' | "$hbp" lengths - >out 2>err || fail "lengths from standard input: $(cat err)"
has "standard input: 3 samples, 975 tokens"
json "r['overlong_samples'] > 0 and r['max_length'] == 1024" lengths l.npy --max-length 1K --over-long truncate
wrong 1 "1024" lengths l.npy --max-length 1K
wrong 1 "absent.npy" lengths absent.npy
printf 'abc' >three
wrong 1 "three" lengths three

# The second size: from a column, from a file of its own, refused where it does not match.
printf 'length,images,kind\n100,2,1\n50,,0\n70,5,4\n' >pictures.csv
printf '{"images":["a","b"]}\n{}\n{"images":5}\n' >pictures.jsonl
printf '100\n50\n70\n' >tokens.txt
units="r['vision'] == {'units': 7, 'min': 0, 'max': 5, 'mean': 7 / 3}"
json "$units and [k['modality'] for k in r['modalities']] == [0, 1] and [k['vision'] for k in r['modalities']] == [0, 7] and
      [k['tokens'] for k in r['modalities']] == [50, 170]" lengths pictures.csv --vision-column images
json "$units and [(k['modality'], k['samples']) for k in r['modalities']] == [(0, 1), (1, 1), (4, 1)]" \
    lengths pictures.csv --vision-column images --modality-column kind
json "$units" lengths tokens.txt --vision pictures.jsonl
json "$units" lengths tokens.txt --vision pictures.csv --vision-column images
json "r['vision'] is None and [(k['modality'], k['tokens']) for k in r['modalities']] == [(0, 220)]" lengths tokens.txt
json "r['vision']['units'] == 7 and r['samples'] == 4 and r['modalities'][1]['samples'] == 3" \
    lengths tokens.txt --vision pictures.jsonl --max-length 80 --over-long split
good lengths tokens.txt --vision pictures.jsonl && has "7 vision units: 0 to 5 a sample, mean 2.33" && has "modality"
printf '1\n2\n' >two.txt
wrong 1 "tokens.txt holds 3 lengths, but two.txt 2 numbers" lengths tokens.txt --vision two.txt
wrong 1 "no column 'pics'; the header has length" lengths pictures.csv --vision-column pics
wrong 2 "--vision needs a value" lengths tokens.txt --vision

on="--model llama-3.1-8b --machine h100:4 --max-length 128K"
# shellcheck disable=SC2086
{
    json "r['groups'][-1]['pack_length'] >= r['groups'][-1]['threshold'] > r['groups'][0]['threshold'] and len(r['candidates']) >= 1 and
          all(c['epoch_ns'] > .994 * r['candidates'][0]['epoch_ns'] for c in r['candidates']) and
          any(d['verdict'] == 'feasible' for d in r['degrees_of_longest_pack'])" groups l.npy $on
    json "len(r['groups']) >= 1" groups l.npy $on --method hbp
    good groups l.npy $on && has "Hierarchies considered" && has "SP degrees" && has "steps: "
    json "r['step_samples_p5'] <= r['step_samples_median'] <= r['step_samples_p95'] and 0 < r['step_tokens_p95'] <= r['tokens_per_step'] and
          0 <= r['mixture_distance'] <= 1" groups l.npy $on
    json "r['samples'] == 5000 and r['ranks'] == 32 and r['epoch_ns'] >= r['bound_ns'] > 0 and len(r['digest']) == 16" \
        plan l.npy $on -o plan.msgpack
    cp out first.json
    json "r['digest'] == json.load(open('first.json'))['digest']" plan l.npy $on
    json "r['digest'] != json.load(open('first.json'))['digest']" plan l.npy $on --seed 1
    json "r['methods'][0]['method'] == 'this plan' and len(r['methods']) == 16 and r['bound_ns'] > 0 and
          all('failed' in w or w['epoch_ns'] >= r['bound_ns'] for w in r['methods']) and
          all('failed' in w or (w['step_samples_p5'] <= w['step_samples_median'] <= w['step_samples_p95'] and
          w['step_tokens_p5'] <= w['step_tokens_median'] <= w['step_tokens_p95'] and 0 <= w['mixture_distance'] <= 1)
          for w in r['methods']) and
          {w['method']: w for w in r['methods']}['first-fit-decreasing']['mixture_distance'] > .6" compare l.npy $on
    json "all(w['steps'] == 10 and w['step_samples_p5'] == w['step_samples_p95'] == 500 for w in r['methods'][:1] + r['methods'][13:]) and
          all(490 <= w['step_samples_median'] <= 500 for w in r['methods'][3:5]) and
          all((w['setting']['pack_length'] >= 128 and w['setting']['sp'] > 0) == (3 <= i <= 12)
              and (w['setting']['tokens_per_rank'] > 0) == (i >= 14) for i, w in enumerate(r['methods']))" \
        compare l.npy $on --samples-per-step 500
    json "r['bound_ns'] is None and r['methods'][0]['steps'] == 7" compare part.npy $on --samples-per-step $((7 * tenth / 5)) --drop-last
    json "r['bound_ns'] > 0 and r['methods'][0]['step_tokens_p95'] <= 65536" compare part.npy $on --tokens-per-step 64K
    good compare part.npy $on && has "this plan" && has "no-packing" && has "A step holds"
    # What a plan says of its steps, counted from its packs.
    "$hbp" dump plan.msgpack >plan.json
    good plan l.npy $on && cp out said.txt
    [ -z "$python" ] || "$python" -c "
import json
r, said = json.load(open('first.json')), open('said.txt').read().splitlines()
steps = [[p for b in s['micro_batches'] for p in b['packs']] for s in json.load(open('plan.json'))['steps']]
def spread(values):
    values = sorted(values)
    return [values[(len(values) - 1) * percent // 100] for percent in (5, 50, 95)]
samples = spread(sum(len(p['sample_ids']) for p in s) for s in steps)
tokens = spread(sum(p['tokens'] for p in s) for s in steps)
assert samples == [r['step_samples_' + q] for q in ('p5', 'median', 'p95')], samples
assert tokens == [r['step_tokens_' + q] for q in ('p5', 'median', 'p95')], tokens
contract = ''
if r['samples_per_step']:
    contract = ' of {:,} samples'.format(r['samples_per_step'])
if r['tokens_per_step']:
    contract += (' and' if contract else ' of') + ' at most {:,} tokens (chosen)'.format(r['tokens_per_step'])
if r['composition']:
    contract += ', ' + r['composition']
contract += ';' if contract else ','
wanted = 's: {:,} steps{} {:,} micro-batches, {:,} packs on 32 GPUs'
assert said[0].endswith(wanted.format(r['steps'], contract, r['micro_batches'], r['packs'])), said[0]
wanted = 'steps: {:,} .. {:,} .. {:,} samples, {:,} .. {:,} .. {:,} tokens (5 %, median, 95 %); a step\'s mixture is {:.3f} '
assert said[1].startswith(wanted.format(*samples, *tokens, r['mixture_distance'])), said[1]" ||
        fail "plan says something else of its steps than their packs: $(cat said.txt)"
    good validate plan.msgpack && has "keeps every promise"
    json "r['valid'] and r['against_lengths'] and r['against_cost']" validate plan.msgpack --lengths l.npy $on
    awk 'BEGIN { for (i = 0; i < 5000; i++) print i % 7 % 4 }' >units.txt
    json "r['samples'] == 5000 and r['digest'] != json.load(open('first.json'))['digest']" \
        plan l.npy --vision units.txt $on -o pictures.msgpack
    json "r['valid'] and r['against_lengths']" validate pictures.msgpack --lengths l.npy --vision units.txt $on
    wrong 1 "" validate pictures.msgpack --lengths l.npy $on
    "$draw" "$source/examples/data/reasoning.csv" other.npy 5000 7
    wrong 1 "" validate plan.msgpack --lengths other.npy $on
}
json "r['steps'] >= 1 and sum(k['samples'] for k in r['pack_types']) == 5000 and r['ranks'] == 32" show plan.msgpack
json "all(1 <= k['micro_batches'] <= r['micro_batches'] and k['gpu_ns'] > 0 for k in r['pack_types'])" show plan.msgpack
good show plan.msgpack && has "seed 0"
"$state" plan.msgpack contract.msgpack || fail "state_contract"
json "(r['composition'], r['tokens_per_step'], r['samples_per_step'], r['hierarchy_ns'], r['mixture_ns']) ==
      ('stratified', 524288, 0, 4140 * 10**9, 4248 * 10**9)" show contract.msgpack
good show contract.msgpack && has "steps of at most 524,288 tokens, stratified" &&
    has "the hierarchy takes 1.150 h, the fastest found without one 1.180 h"
json "r['step'] == 0 and sum(len(p['samples']) for p in r['packs']) == r['samples'] and
      sum(p['tokens'] for p in r['packs']) == r['tokens']" show plan.msgpack --step 0
json "len(r['packs']) == r['micro_batches'] and
      all(p['first_rank'] <= 3 < p['first_rank'] + p['sp'] for p in r['packs'])" show plan.msgpack --step 0 --rank 3
good show plan.msgpack --step 0 --rank 3 && has "id:tokens"
wrong 1 "there is no step 999999" show plan.msgpack --step 999999
wrong 1 "there is no rank 99" show plan.msgpack --rank 99
# A plan by patterns is the listed plan of its method, step by step.
[ -z "$python" ] || {
    json "r['samples'] == 5000 and r['packs'] - r['padding_packs'] == sum(g['packs'] for g in r['groups']) and
          r['tokens'] == sum(g['tokens'] for g in r['groups'])" plan l.npy $on --patterns -o plan.patterns
    json "r['samples'] == 5000 and not r['by_length']" expand plan.patterns --lengths l.npy -o listed.msgpack
    cp out expanded.json
    good plan l.npy $on --method patterns -o method.msgpack
    json "r['digest'] == json.load(open('expanded.json'))['digest']" show method.msgpack
    json "r['valid'] and r['against_lengths'] and r['against_cost']" validate plan.patterns --lengths l.npy $on
    json "r['valid'] and r['against_lengths'] and r['against_cost']" validate listed.msgpack --lengths l.npy $on
    "$hbp" show listed.msgpack --step 3 --rank 2 --json >of_listed.json
    json "r == json.load(open('of_listed.json'))" show plan.patterns --step 3 --rank 2 --lengths l.npy
    json "r != json.load(open('of_listed.json')) and r['tokens'] == json.load(open('of_listed.json'))['tokens']" show plan.patterns --step 3 --rank 2
    json "(r['first_step'], r['steps'], r['by_length']) == (2, 3, True)" expand plan.patterns --steps 2:5 -o part.msgpack
    good show part.msgpack --step 3 && has "step 3, of steps 2 to 4"
    good show part.msgpack --rank 0 && has "step 2, of steps 2 to 4"
}
good plan l.npy $on --patterns -o plan.patterns && has "patterns of " && has "wrote plan.patterns"
good expand plan.patterns --lengths l.npy --steps 2:5 -o part.msgpack
good validate part.msgpack --lengths l.npy && has "holds a part of the data set"
good expand plan.patterns --lengths l.npy --steps 2 -o part.msgpack
good validate part.msgpack --lengths l.npy && has "holds a part of the data set"
good show part.msgpack --step 1 && has "step 1, of steps 0 to 1: "
good show plan.patterns && has "a plan by patterns, " && has "hbp expand"
good show plan.patterns --rank 3 && has "numbered in order of length, the shortest first" && has "id:tokens"
good expand plan.patterns -o listed.msgpack && has "numbered in order of length" && has "wrote listed.msgpack"
printf 'length,count\n100,600000000\n900,400000000\n' >histogram.csv
good plan histogram.csv --count-column count $on --max-pack-length 1M --patterns -o many.patterns && has "2 lengths"
good show many.patterns --step 5 && has "step 5 of "
good validate many.patterns --lengths histogram.csv --count-column count $on
good show many.patterns --step 5 --rank 3 --lengths histogram.csv && has "numbered in order of length, the shortest first" && cp out of_histogram
good show many.patterns --step 5 --rank 3 --lengths histogram.csv --count-column count && cmp -s out of_histogram || fail "--count-column: $(cat out)"
json "r['by_length'] and r['first_step'] == 5" expand many.patterns --steps 5:6 --lengths histogram.csv -o part.msgpack
printf 'length,count\n100,6\n900,4\n' >other.csv
wrong 1 "the plan is of 1000000000 samples, the lengths are 10" expand many.patterns --steps 1 --lengths other.csv -o part.msgpack
printf 'length,count\n100,6000000000\n900,3000000007\n' >wide.csv
good plan wide.csv $on --max-pack-length 1M --patterns -o wide.patterns
wrong 1 "at most 4294967294 can be listed; --steps A:B lists a part" expand wide.patterns -o part.msgpack
wrong 1 "the data set has 9000000007 samples; at most 4294967294 can be listed; hbp plan --patterns lists none" plan wide.csv $on
good plan l.npy $on --patterns --max-length 4K --over-long truncate -o cut.patterns
wrong 1 "so give its --max-length and --over-long again" show cut.patterns --step 1 --lengths l.npy
wrong 1 "so give its --max-length and --over-long again" validate cut.patterns --lengths l.npy
good show cut.patterns --step 1 --lengths l.npy --max-length 4K --over-long truncate
good plan l.npy $on --patterns --shifted-loss --max-length 8K --over-long split -o shifted.patterns
wrong 1 "give --lengths FILE, the data set" show shifted.patterns --step 1
good show shifted.patterns --step 1 --lengths l.npy --shifted-loss --max-length 8K --over-long split
wrong 1 "--lengths is of other lengths" show plan.patterns --step 1 --lengths in.txt
wrong 1 "there is no step 999999" show plan.patterns --step 999999
wrong 1 "there is no rank 99" show plan.patterns --rank 99
wrong 2 "plan.msgpack is a plan whose samples are listed already; hbp expand takes" expand plan.msgpack -o listed.msgpack
wrong 1 "l.npy: byte 0: its " expand l.npy -o listed.msgpack
wrong 1 "plan.patterns is a file of a plan by patterns, not a cost file or a plan file; hbp expand reads it" plan l.npy --cost plan.patterns
wrong 1 "plan.msgpack is a plan file, whose samples are listed, not a file of a task schedule; hbp show reads it" tasks clip-4 --machine a800-80:2 --previous plan.msgpack
# Part of a plan has the numbers of the whole plan's steps, for trace as for show and report.
good expand plan.patterns --steps 3:8 -o part.msgpack
good show part.msgpack && has " tokens that they may" && { ! grep -q "fit into fewer" out || fail "a part knows of how many steps: $(cat out)"; }
json "(r['first_step'], r['steps'], r['plan_steps']) == (5, 2, 5)" trace part.msgpack --steps 5:7 -o part.json
json "(r['first_step'], r['steps']) == (3, 2)" trace part.msgpack --steps 2 -o part.json
json "(r['first_step'], r['steps']) == (3, 2)" trace part.msgpack --steps :5 -o part.json
json "(r['first_step'], r['steps']) == (7, 1)" trace part.msgpack --step 7 -o part.json
json "(r['first_step'], r['steps']) == (3, 5)" trace part.msgpack --steps all -o part.json
wrong 1 "there is no step 2; part.msgpack holds steps 3 to 7" trace part.msgpack --steps 2:4 -o part.json
wrong 1 "there is no step 0; part.msgpack holds steps 3 to 7" trace part.msgpack --steps :3 -o part.json
wrong 1 "there is no step 8; part.msgpack holds steps 3 to 7" trace part.msgpack --step 8 -o part.json
good show part.msgpack && has "a part: steps 3 to 7 of "
good show part.msgpack --step 7 --rank 3
good report part.msgpack --step 7 -o part.html
wrong 2 "hbp expand plan.patterns --lengths LENGTHS -o FILE writes a plan that hbp trace takes" trace plan.patterns -o x.json
wrong 2 "writes a plan that hbp dump takes" dump plan.patterns
wrong 2 "writes a plan that hbp report takes" report plan.patterns -o x.html
wrong 2 "--lengths names the samples of a step; add --step K or --rank R" show plan.patterns --lengths l.npy
wrong 2 "--lengths is for plans by patterns" show plan.msgpack --lengths l.npy
wrong 2 "--max-length needs --lengths" show plan.patterns --step 1 --max-length 8K
wrong 2 "--shifted-loss needs --lengths" show plan.patterns --step 1 --shifted-loss
wrong 2 "--patterns and --method exclude one another" plan l.npy $on --patterns --method flexsp
good plan l.npy $on --patterns --method patterns -o same.patterns && cmp -s plan.patterns same.patterns || fail "--patterns --method patterns"
wrong 2 "--patterns and --mixture-slack exclude one another: steps by patterns are stratified" plan l.npy $on --patterns --mixture-slack 5
wrong 2 "--patterns and --samples-per-step exclude one another" plan l.npy $on --patterns --samples-per-step 512
wrong 2 "--window is for methods search and hbp" plan l.npy $on --patterns --window 512
wrong 2 "hbp expand needs -o FILE" expand plan.patterns
wrong 2 "--graph is for other files; plan.patterns is a plan by patterns" validate plan.patterns --graph clip-4 --machine h100
json "r['steps'] == 1" trace plan.msgpack -o trace.json --steps 1
# Ids count from 1, each thread's slices nest, and the parts of each pack, by the cost in the plan file, are its time.
cat >read_trace.py <<'END'
import gzip, json, sys
data = (gzip.open if sys.argv[1].endswith(".gz") else open)(sys.argv[1], "rt").read()
stacks, packs = {}, []
trace = json.loads(data)
for e in trace["traceEvents"]:
    assert e["pid"] >= 1 and e["tid"] >= 1
    if e["ph"] != "X":
        continue
    start, dur = round(e["ts"] * 1000), round(e["dur"] * 1000)
    stack = stacks.setdefault(e["tid"], [])
    while stack and stack[-1] <= start:
        stack.pop()
    assert not stack or start + dur <= stack[-1], e
    stack.append(start + dur)
    if e["cat"] == "pack":
        packs.append([dur, 0])
    elif e["cat"] == "part":
        packs[-1][1] += dur
assert stacks and all(dur == parts for dur, parts in packs)
END
trace_ok() { [ -z "$python" ] || "$python" read_trace.py "$1" || fail "$1 is no sound trace"; }
trace_ok trace.json
good plan part.npy $on --samples-per-step $((tenth / 4)) -o many.msgpack
steps=$("$hbp" show many.msgpack --json | sed -n 's/^  "steps": \([0-9]*\),$/\1/p')
[ "$steps" -gt 20 ] || fail "the plan has $steps steps"
good trace many.msgpack -o trace.json && has "20 of $steps steps from step 0 on (--steps N, A:B or all shows others)"
json "r['steps'] == 20 and r['plan_steps'] == $steps and r['parts']" trace many.msgpack -o trace.json
json "r['first_step'] == 3 and r['steps'] == 2" trace many.msgpack --steps 3:5 -o trace.json
json "r['first_step'] == 0 and r['steps'] == 2" trace many.msgpack --steps :2 -o trace.json
json "r['first_step'] == $steps - 1 and r['steps'] == 1" trace many.msgpack --steps $((steps - 1)): -o trace.json
json "r['first_step'] == 0 and r['steps'] == $steps" trace many.msgpack --steps all -o trace.json.gz
trace_ok trace.json.gz
wrong 1 "there is no step $steps; many.msgpack holds steps 0 to $((steps - 1))" trace many.msgpack --steps $steps: -o x.json
wrong 2 "--steps is '5:3'; it must be a number of steps, A:B for steps A to B - 1, or all" trace many.msgpack --steps 5:3 -o x.json
wrong 2 "--steps is '-1'" trace many.msgpack --steps -1 -o x.json
wrong 2 "--step has no place beside it" trace many.msgpack --step 1 --steps 3:5 -o x.json
wrong 1 "the plan was made under another" trace plan.msgpack --model llama-3.1-8b,layers=4 --machine h100:4 -o x.json
wrong 2 "needs --model" trace plan.msgpack --machine h100:4 -o x.json
[ ! -e x.json ] || fail "a trace that failed was written"
if [ -n "$python" ]; then # the first step of a run that took a quarter longer than predicted
    "$hbp" dump plan.msgpack >plan.json
    "$python" -c "
import json
plan = json.load(open('plan.json'))
print('# ranks: 32')
print('step,micro_batch,first_rank,sp,recompute,samples,tokens,sum_squares,time_ns')
for m, b in enumerate(plan['steps'][0]['micro_batches']):
    for p in b['packs']:
        print(0, m, p['rank'], p['sp'], p['recompute'], len(p['sample_ids']), p['padded_tokens'], p['squares'], p['ns'] * 5 // 4, sep=',')
" >timeline.csv
    json "r['measured_steps'] == 1 and r['steps'] > 1 and abs(r['median_pack_error'] - .2) < 1e-6 and
          abs(r['median_step_error'] - .2) < 1e-6" trace plan.msgpack --measured timeline.csv -o both.json
    good trace plan.msgpack --measured timeline.csv -o both.json && has "off by 20"
    sed 's/^# ranks: 32/# ranks: 64/' timeline.csv >other.csv
    wrong 1 "of 64 ranks; the plan is for 32" trace plan.msgpack --measured other.csv -o both.json
    echo "tokens,time_ns" >other.csv
    wrong 1 "other.csv has no column step" trace plan.msgpack --measured other.csv -o both.json

    # A cost fitted to that run plans the next one.
    on="--model llama-3.1-8b --machine h100:4"
    json "abs(r['prior']['median_pack_error'] - .2) < 1e-6 and r['fitted']['median_pack_error'] < 1e-3 and
          r['times'] == 'scaled' and r['terms']['ns_per_token']['source'].startswith('prior scaled by a fit of')" fit timeline.csv $on -o cost.json
    good fit timeline.csv --cost cost.json && has "packs, fitted" && has "fit of"
    json "r['prior']['median_pack_error'] < 1e-3" fit timeline.csv --cost cost.json
    for command in "plan -o fitted.msgpack l.npy" "groups l.npy" "compare part.npy" "step --samples-per-step 512 l.npy"; do
        good $command --cost cost.json
    done
    good validate fitted.msgpack --cost cost.json && has "fits the machine"
    wrong 2 "--cost and --max-sp exclude one another: a cost file has all terms already" plan l.npy --cost cost.json --max-sp 4
    wrong 2 "--cost and --model exclude one another" plan l.npy --cost cost.json $on
    wrong 1 "timeline.csv, line 1" plan l.npy --cost timeline.csv
    (echo "# device: NVIDIA A100-SXM4-80GB" && cat timeline.csv) >other.csv
    "$hbp" fit other.csv $on >out 2>err || fail "fit on another device: $(cat err)"
    grep -qF "warning: other.csv was measured on 'NVIDIA A100-SXM4-80GB'; the prior is of 'h100'" err ||
        fail "fit on another device said '$(cat err)'"
    good fit other.csv --model llama-3.1-8b --machine a100-80:4
    head -n 4 timeline.csv >other.csv
    wrong 1 "cannot separate" fit other.csv $on
fi
wrong 2 "needs TIMELINE" fit
json "len(r['groups']) >= 1" groups l.npy --model llama-3.1-8b,layers=4,hidden=512,ffn=1792,head_dim=16 --machine h100:1
wrong 2 "there is no field 'layer'" groups l.npy --model llama-3.1-8b,layer=4 --machine h100:1
good dump plan.msgpack
[ -z "$python" ] || "$python" -m json.tool <out >/dev/null || fail "dump is no JSON"
json "True" dump plan.msgpack
good dump plan.msgpack -o plan.json
# Ctrl-C while whoever reads waits.
mkfifo stalled
exec 9<>stalled
"$hbp" dump plan.msgpack >stalled 2>err &
pid=$!
sleep 1
kill -INT $pid
wait $pid
got=$?
[ $got = 130 ] || fail "a dump that is interrupted while it waits for its reader ends with $got: $(cat err)"
exec 9<&-
wrong 1 "three" show three
head -c 200 plan.msgpack >cut.msgpack
wrong 1 "cut.msgpack" show cut.msgpack

# Of few large steps estimates say little: where a number of them takes longer than another seemed to, that is planned as well.
"$draw" "$source/examples/data/wikipedia.csv" large.npy 30000 4 131072
json "r['gap'] < .06" plan large.npy --model internlm2-20b --machine h100:32 --composition stratified

# What a step holds: one contract, kept by every step, whoever chose the samples.
on="--model llama-3.1-8b --machine h100:1"
"$draw" "$source/examples/data/wikipedia.csv" some.npy 700 7 32768
awk 'BEGIN { for (i = 0; i < 700; i++) printf "%d%s", i * 13 % 700, i % 200 == 199 ? "\n" : i % 3 ? " " : ", " }' >batches.txt
# shellcheck disable=SC2086
{
    json "r['samples_per_step'] == 200 and r['composition'] == 'random' and r['steps'] == 4 and r['step_samples_median'] == 200" \
        plan some.npy $on --samples-per-step 200 -o exact.msgpack
    digest=$("$hbp" plan some.npy $on --samples-per-step 200 --json | sed -n 's/.*"digest": //p')
    for threads in 1 2; do
        again=$("$hbp" plan some.npy $on --samples-per-step 200 --threads $threads --json | sed -n 's/.*"digest": //p')
        [ -n "$digest" ] && [ "$again" = "$digest" ] || fail "--threads $threads makes plan $again, not $digest"
    done
    "$hbp" dump exact.msgpack >exact.json
    [ -z "$python" ] || "$python" -c "
import json
steps = [[i for b in s['micro_batches'] for p in b['packs'] for i in p['sample_ids']] for s in json.load(open('exact.json'))['steps']]
assert sorted(map(len, steps)) == [100, 200, 200, 200] and sorted(sum(steps, [])) == list(range(700))" ||
        fail "--samples-per-step 200 makes other steps"
    json "all(w['steps'] == 4 for w in r['methods'][:1] + r['methods'][13:])" compare some.npy $on --batches batches.txt
    json "r['composition'] == 'given' and r['steps'] == 4 and r['samples'] == 700" \
        plan some.npy $on --batches batches.txt -o given.msgpack
    "$hbp" dump given.msgpack >given.json
    [ -z "$python" ] || "$python" -c "
import json
rows = [sorted(map(int, line.replace(',', ' ').split())) for line in open('batches.txt')]
steps = [sorted(i for b in s['micro_batches'] for p in b['packs'] for i in p['sample_ids'])
         for s in json.load(open('given.json'))['steps']]
assert steps == rows" || fail "--batches: the steps hold other samples"
    good validate given.msgpack --lengths some.npy $on && has "keeps every promise"
    good show given.msgpack && has "no schedule of these very steps takes less than"
    good plan some.npy $on --tokens-per-step 256K -o asked.msgpack && has "what no plan in steps of at most 262,144 tokens can beat"
    good show asked.msgpack && has "no plan in steps of at most 262,144 tokens takes less than"
    good plan some.npy $on --samples-per-step 4 -o small.msgpack && has "these very steps cost up to "
    good show small.msgpack && has "with steps left free, no plan takes less than "
    json "0 < r['free_bound_ns'] < r['bound_ns'] <= r['predicted_ns']" show small.msgpack
    json "r['free_bound_ns'] <= r['bound_ns']" plan some.npy $on --tokens-per-step 256K
    good plan some.npy $on --tokens-per-step 100M && ! grep "these very steps cost" out || fail "a price of one step for all"
    (cat batches.txt && echo && echo 5) >bad.txt
    wrong 1 "names sample 5, which is in batch" plan some.npy $on --batches bad.txt
    sed 1d batches.txt >bad.txt
    wrong 1 "the batches do not name 200 of 700 samples" plan some.npy $on --batches bad.txt
    (echo 700 && cat batches.txt) >bad.txt
    wrong 1 "batch 0 names sample 700; samples are 0..699" plan some.npy $on --batches bad.txt
    (echo 1 2 && echo 3 4x) >bad.txt
    wrong 1 "bad.txt: line 2 has '4x', which is no sample's number" plan some.npy $on --batches bad.txt
    (echo 0 1 && echo && echo 2) >bad.txt
    wrong 1 "bad.txt: line 2 is blank" plan some.npy $on --batches bad.txt
    (cat batches.txt && echo && echo && echo) >bad.txt
    good plan some.npy $on --batches bad.txt
    : >bad.txt
    wrong 1 "bad.txt holds no batch" plan some.npy $on --batches bad.txt
    wrong 1 "cannot open absent.txt" plan some.npy $on --batches absent.txt
    wrong 2 "--samples-per-step and --tokens-per-step exclude one another: what a step holds is asked for in one form" \
        plan some.npy $on --samples-per-step 200 --tokens-per-step 64K
    wrong 2 "--batches and --tokens-per-step exclude one another" plan some.npy $on --batches batches.txt --tokens-per-step 64K
    wrong 2 "composition hierarchy and --samples-per-step exclude each other" \
        plan some.npy $on --samples-per-step 200 --composition hierarchy
    # Words: one of a thing, what is over-long by the option's name, a composition that cannot be kept.
    printf '9000\n' >one.txt
    good plan one.txt $on -o one.msgpack && has "1 step of" && has "1 micro-batch, " && has "padding 0.00 %"
    good show one.msgpack && has "one.msgpack: 1 step on" && has "1 sample, 9,000 tokens"
    wrong 1 "1 of 1 samples is longer than 8192 tokens; the first is sample 0 with 9000; --over-long drop, truncate or split" \
        plan one.txt $on --max-length 8K
    good plan one.txt $on --max-length 8K --over-long truncate && has "1 sample over-long, 808 tokens left out"
    wrong 1 "with --max-pack-length 8192 (9000 would do)" plan one.txt $on --max-pack-length 8K --samples-per-step 1
    wrong 1 "--max-pack-length is 8192 (9000 would do)" plan one.txt $on --max-pack-length 8K --composition hierarchy
    wrong 1 "--tokens-per-step is 1125899906842624; in packs of" plan some.npy $on --tokens-per-step 1048576G
    wrong 2 "--composition is 'stratifed'" plan some.npy $on --composition stratifed
    for composition in random stratified hierarchy; do
        json "r['composition'] == '$composition' and r['step_tokens_p95'] <= r['tokens_per_step'] == 262144" \
            plan some.npy $on --tokens-per-step 256K --composition $composition
    done
    json "r['composition'] in ('stratified', 'hierarchy')" plan some.npy $on --composition auto
    json "r['micro_batches'] == 3 * r['steps']" plan some.npy $on --samples-per-step 200 --micro-batches-per-step 3
    good plan some.npy $on --samples-per-step 200 --tokens-per-rank 16K -o rank.msgpack && "$hbp" dump rank.msgpack >rank.json
    [ -z "$python" ] || "$python" -c "
import json
packs = [p for s in json.load(open('rank.json'))['steps'] for b in s['micro_batches'] for p in b['packs']]
assert 0 < max(p['padded_tokens'] / p['sp'] for p in packs) <= 16384" || fail "--tokens-per-rank is passed"
    good plan some.npy $on --samples-per-step 200 --drop-last --equal-samples -o equal.msgpack && "$hbp" dump equal.msgpack >equal.json
    [ -z "$python" ] || "$python" -c "
import json
for s in json.load(open('equal.json'))['steps']:
    for b in s['micro_batches']:
        assert len({len(p['sample_ids']) for p in b['packs']}) == 1, b" || fail "--equal-samples: SP groups differ"
}

# The second size goes with the plan, and is held against the data set's.
on="--model llama-3.1-8b --machine h100:1"
units="--vision-column images"
# shellcheck disable=SC2086
{
    json "r['vision'] == 7 and 0 <= r['dist_vision'] <= 1 and 0 < r['dist_tokens'] < 1 and r['vision_padding'] == 0" \
        plan pictures.csv $units $on -o units.msgpack
    good plan pictures.csv $units $on && has "7 vision units; ranks differ by"
    good show units.msgpack && has "7 vision units" && has "of their limit"
    json "r['vision'] == 7 and r['modalities'] == [] and sum(k['vision'] for k in r['pack_types']) == 7" show units.msgpack
    json "sum(p['vision'] for p in r['packs']) == 7 and all(p['vision_capacity'] is None for p in r['packs']) and
          all(p['vision'] == sum(s['vision'] for s in p['samples']) for p in r['packs'])" show units.msgpack --step 0
    good show units.msgpack --step 0 --rank 0 && has "id:tokens+vision units"
    good validate units.msgpack --lengths pictures.csv $units $on && has "keeps every promise"
    wrong 1 "the plan was made for lengths with digest" validate units.msgpack --lengths pictures.csv
    json "r['summary']['vision'] == 7" dump units.msgpack
    json "r['vision'] is None and r['pack_types'][0]['vision'] is None" show plan.msgpack
    ordered="--modality-column kind --max-vision 7 --modality-order"
    json "r['vision'] == 7 and r['vision_padding'] >= 0" plan pictures.csv $units $on $ordered -o ordered.msgpack
    good show ordered.msgpack && has "the same modalities on all ranks, of 0,1,4"
    json "all(p['vision'] <= p['vision_capacity'] == 7 for p in r['packs'])" show ordered.msgpack --step 0
    good validate ordered.msgpack --lengths pictures.csv $units --modality-column kind $on
    wrong 1 "--max-vision is 7, but the lengths have no vision units" plan tokens.txt $on --max-vision 7
    wrong 2 "--max-vision is for method search; hbp does not keep it" plan pictures.csv $units $on --max-vision 7 --method hbp
    wrong 1 "has 5 vision units; --max-vision is 4 (5 would do)" plan pictures.csv $units $on --max-vision 4
}

# One step: micro-batches of groups, the bound, the modes side by side.
on="--model llama-3.1-8b --machine h100:8"
step="l.npy --samples-per-step 300 --skip 7 --sequence-multiple 128"
# shellcheck disable=SC2016
micro_batches='r["bound_ns"] <= r["predicted_ns"] and r["gap"] >= 0 and r["complete"] and r["proven"] == (r["gap"] == 0) and
    sum(m["sequences"] for m in r["groups"]) == r["samples"] and
    sum(m["tokens"] for m in r["groups"]) == r["tokens"] and len(r["groups"]) == r["micro_batches"] and
    sum(m["predicted_ns"] for m in r["groups"]) <= r["predicted_ns"] and
    all(0 <= m["idle"] <= 1 and m["longest"] <= m["tokens"] and m["groups"][0] + m["groups"][-1] == "<>" and
        (m["groups"] == "<>" if m["sequences"] == 0 else 0 < sum(int(g.split("x")[0]) * int((g + "x1").split("x")[1])
            for g in m["groups"][1:-1].split(",")) <= r["ranks"])
        for m in r["groups"])'
# shellcheck disable=SC2086
{
    json "$micro_batches and r['samples'] == 300 and r['ranks'] == 64 and r['method'] == 'search'" \
        step $step $on -o step.msgpack
    cp out step.json
    json "r['digest'] == json.load(open('step.json'))['digest']" step $step $on
    json "r['digest'] != json.load(open('step.json'))['digest']" step l.npy --samples-per-step 300 --skip 8 $on
    json "$micro_batches and r['samples'] == 5000" step l.npy $on
    for mode in static-sp homogeneous-sp hybrid-cp dynamic-cp; do
        json "$micro_batches and r['method'] == '$mode'" step $step $on --method $mode
    done
    json "$micro_batches and all(int(g.split('x')[0]) <= 4 for m in r['groups'] for g in m['groups'][1:-1].split(','))" \
        step $step $on --max-sp 4
    json "$micro_batches and r['micro_batches'] == 3" step $step $on --micro-batches 3
    json "$micro_batches and r['micro_batches'] in (2, 4)" step $step $on --micro-batches 2:5 --micro-batch-multiple 2
    json "all(m['recompute'] == 32 for m in r['groups'])" step $step $on --recompute all
    json "all(m['recompute'] == 0 for m in r['groups'])" step $step $on --recompute none --any-degree
    json "r['predicted_ns'] <= json.load(open('step.json'))['predicted_ns']" step $step $on --effort 3
    compared="$step $on"
    [ "${HBP_ALL_ROUNDS:-}" ] ||
        compared="l.npy --samples-per-step 16 --skip 7 --sequence-multiple 128 --model llama-3.1-8b --machine h100:2"
    json "len(r['methods']) == 6 and r['methods'][0]['method'] == 'search' and r['methods'][0]['ratio'] == 1 and
          all('failed' in w or w['predicted_ns'] >= r['bound_ns'] for w in r['methods']) and
          all(w['tokens_per_rank'] > 0 for w in r['methods'][2:]) and r['methods'][2]['sp'] > 0 and
          r['methods'][1]['buckets'] in (16, 64, -1) and not any(w['buckets'] for w in r['methods'][2:]) and
          all((w['min_sp'] > 0) == (w['method'] in ('hybrid-cp', 'dynamic-cp')) for w in r['methods'])" \
        step $compared --compare
    good step $compared --compare && has "x search" && has "hybrid-cp" && has "16 as published, 64 and none"
    good step $step $on && has "300 samples" && has "<" && has "predicted"
    good validate step.msgpack && has "keeps every promise"
    wrong 1 "; the plan is of 300 samples, these are 5000" validate step.msgpack --lengths l.npy
    good validate step.msgpack --lengths l.npy --skip 7 --samples-per-step 300 && has "holds these samples of the data set"
    wrong 1 "the plan was made for lengths with digest" validate step.msgpack --lengths l.npy --skip 8 --samples-per-step 300
    wrong 1 "l.npy has 5000 samples, too few for --skip 4701 --samples-per-step 300" validate step.msgpack --lengths l.npy --skip 4701 --samples-per-step 300
    wrong 1 "; the plan is of 300 samples, these are 10" validate step.msgpack --lengths l.npy --skip 4990
    wrong 2 "--skip needs --lengths" validate step.msgpack --skip 7
    good plan l.npy $on --samples-per-step 300 -o steps.msgpack
    wrong 2 "say which samples hbp step planned; steps.msgpack is no such plan" validate steps.msgpack --lengths l.npy --samples-per-step 300
    good plan l.npy $on --patterns -o step.patterns
    wrong 2 "say which samples hbp step planned; step.patterns is no such plan" validate step.patterns --lengths l.npy --skip 7
    wrong 2 "--samples-per-step needs --lengths" validate step.msgpack --samples-per-step 300
    wrong 1 "l.npy has 5000 samples, too few for --samples-per-step 6000" step l.npy $on --samples-per-step 6000
    json "r['bound_ns'] == json.load(open('step.json'))['bound_ns'] and
          r['gap'] == json.load(open('step.json'))['gap'] and r['steps'] == 1" show step.msgpack
    awk 'BEGIN { for (i = 0; i < 65537; i++) print 7 }' >many.txt
    "$hbp" step many.txt $on --method hybrid-cp 2>err >out || fail "a large step: $(cat err)"
    grep -qF "warning: 65,537 samples of many.txt are planned as one step; --samples-per-step N" err || fail "a large step: '$(cat err)'"
    good step many.txt $on --method hybrid-cp --samples-per-step 65536
    wrong 2 "--method is 'best'" step $step $on --method best
    wrong 2 "--micro-batches is '2-3'" step $step $on --micro-batches 2-3
    wrong 2 "--micro-batches is ':'" step $step $on --micro-batches :
    wrong 2 "--micro-batches is '3:2'; it must not begin above its end" step $step $on --micro-batches 3:2
    wrong 2 "--effort is 10; it must be in 0..9" step $step $on --effort 10
    wrong 2 "--compare" step $step $on --compare --method flexsp
    wrong 2 "--link-column" step $step $on --link-column x
    wrong 1 "l.npy has 5000 samples" step l.npy $on --skip 5000
    wrong 1 "--samples-per-step 5001" step l.npy $on --samples-per-step 5001
    printf '5\n70\n90000000\n900\n' >long
    wrong 1 "sample 2 has 90000000 tokens" step long $on
    wrong 1 "counted from sample 1 of long" step long $on --skip 1
    good step long $on --samples-per-step 2 && has "2 samples, 75 tokens"
}
: >nothing
wrong 1 "nothing is empty" step nothing --model llama-3.1-8b --machine h100
wrong 2 "machine 'h100:0': \`nodes\` is 0; it must be in 1..268435455" step l.npy --model llama-3.1-8b --machine h100:0
wrong 2 "cores is given twice" step l.npy --model llama-3.1-8b --machine h100:1,cores=1,cores=2
wrong 2 "gpus_per_node" step l.npy --model llama-3.1-8b --machine h100 --set gpus_per_node=0
# Who waits for whom: a plan of lockstep sets says so and keeps its promises.
for who in "--shard-ranks 8" "--zero 1 --lockstep-ranks 1" \
    "--zero none --lockstep-ranks 1 --uneven-micro-batches --set hbm_bytes=2e11"; do
    # shellcheck disable=SC2086
    good step l.npy --model llama-3.1-8b --machine h100:2 --samples-per-step 6 $who -o sets.msgpack
    grep -q "on 16 GPUs in lockstep sets of [18]\$" out || fail "step $who: $(cat out)"
    good validate sets.msgpack
    good show sets.msgpack && has "lockstep sets of"
    # shellcheck disable=SC2086
    json 'r["lockstep_ranks"] in (1, 8)' plan part.npy --model llama-3.1-8b --machine h100:2 $who
done
wrong 2 "--lockstep-ranks is 1; ZeRO-3 gathers weights over 16 ranks in every micro-batch, so it must be a multiple of them" step l.npy --model llama-3.1-8b --machine h100:2 \
    --lockstep-ranks 1
wrong 2 "--cost and --lockstep-ranks exclude one another" step l.npy --cost cost.json --lockstep-ranks 1
# The exact solver, where this command was built with it.
if "$hbp" step long --model llama-3.1-8b --machine h100 --samples-per-step 2 --exact >out 2>err; then
    json "$micro_batches" step l.npy --model llama-3.1-8b --machine h100 --samples-per-step 6 --exact
    json "not any('failed' in w for w in r['methods'])" step l.npy --model llama-3.1-8b --machine h100 --samples-per-step 5 --compare --exact
else
    grep -qF "built without it" err || fail "step --exact: $(cat err)"
fi

# Vision-language runs, and stages of given layers.
cat >layers.csv <<'END'
name,type,forward_ms,backward_ms,state_mib,activation_mib,recomputed_mib,cut_mib
a,vision,3,6,10,40,4,4
b,vision,1,2,10,40,4,4
c,language,4,8,10,60,6,6
d,language,1,2,10,60,6,6
e,language,5,10,10,60,6,6
END
"$draw" "$source/examples/data/vlm.csv" vlm.csv 3000 || fail "draw_lengths does not draw samples of two sizes"
run="vlm.csv --vision-column vision --vlm internvl-1.5-26b --machine a100-80:4 --tensor-parallel 4 --stages 4"
json "r['samples'] == 3000 and r['dropped'] == 0 and r['gpus'] == 32 and r['replicas'] == 2 and len(r['cuts']) == 5 and
      r['cuts'][0] == 0 and r['cuts'][-1] == len(r['recompute']) and r['epoch_ns'] >= r['packs_bound_ns'] >= r['bound_ns'] > 0 and
      max(r['stage_bytes']) == r['peak_bytes'] <= r['limit_bytes']" vlm $run -o vlm.msgpack
good vlm $run && has "2 replicas of 4 stages" && has "patch embedding" && has "GPU-days"
good validate vlm.msgpack && has "keeps every promise"
json "r['vlm']['cuts'][0] == 0 and len(r['vlm']['stage_ns']) == 4 and r['summary']['steps'] > 0" dump vlm.msgpack
good validate vlm.msgpack --lengths vlm.csv --vision-column vision && has "stages and steps take what"
good show vlm.msgpack && has "with even stages" && has "2 replicas of 4 stages" && has "patch embedding" && has "GPU-days"
json "len(r['vlm']['cuts']) == 5 and r['vlm']['epoch_ns'] >= r['vlm']['packs_bound_ns'] and r['digest']" show vlm.msgpack
wrong 2 "vlm.msgpack has its layers' times" trace vlm.msgpack --cost plan.msgpack -o vlm.json
good trace vlm.msgpack --steps 1 -o vlm.json && grep -q '"name":"replica 1"' vlm.json && grep -q '"name":"stage 3"' vlm.json || fail "no rows of stages"
json "[w['method'] for w in r['methods']][0] == 'as usual' and len(r['methods']) == 7 and
      r['methods'][5]['gpu_days'] < r['methods'][4]['gpu_days'] < r['methods'][1]['gpu_days'] < r['methods'][0]['gpu_days']" vlm $run --compare
json "len(r['cuts']) == 9 and r['micro_batches'] % 4 == 0" vlm $run --virtual-stages 2
json "r['data_method'] == 'random' and r['padding'] > .1 and r['max_tokens'] == 0" vlm $run --data-method random --partition-method parameters --recompute-method all
json "r['max_vision'] == 10 and r['max_tokens'] == 4096" vlm $run --max-vision 10 --max-tokens 4K --modality-order
wrong 2 "--vlm" vlm vlm.csv --vision-column vision --machine a100-80
wrong 2 "internvl-1.5-26b" vlm vlm.csv --vision-column vision --vlm internvl-1.5 --machine a100-80
wrong 1 "no vision units" vlm l.npy --vlm qwen2-vl-7b --machine a100-80
json "r['max_tokens'] > 0 and set(r['recompute']) <= {'none', 'attention', 'mlp', 'layer'}" vlm vlm.csv --vision-column vision \
    --layers layers.csv --layers-vision 9 --layers-tokens 4096 --machine a100-80 --stages 2
printf 'length,vision\n300,1\n200,1\n900,3\n' >few.csv
wrong 1 "sample 1: 200 tokens, 1 units of 256" vlm few.csv --vision-column vision --vlm internvl-1.5-26b --machine a100-80
wrong 2 "give both or neither" vlm $run --max-vision 10
wrong 2 "not a multiple of --tensor-parallel 3 x --stages 4; give --tensor-parallel 1, 2, 4 or 8, or --replicas to leave some idle" vlm $run --tensor-parallel 3
wrong 2 "--data-method is 'best'" vlm $run --data-method best
wrong 2 "--compare" vlm $run --compare --data-method isf
json "r['cuts'] == [0, 2, 4, 5] and r['proven'] and r['predicted_ns'] == r['bound_ns'] == 147000000 and len(r['candidates']) >= 3 and
      r['candidates'][0]['cuts'] == r['cuts']" stages layers.csv --stages 3 --micro-batches 8
good stages layers.csv --stages 3 --all && has "best by" && has "which no cuts go below"
wrong 1 "stage" stages layers.csv --stages 3 --memory-limit 60
wrong 1 "6" stages layers.csv --stages 6
wrong 2 "--stages" stages layers.csv
wrong 2 "--link is 'fast'" stages layers.csv --stages 3 --link fast
printf 'name,forward_ms\na,-3\n' >bad.csv
wrong 1 "line 2" stages bad.csv --stages 1

# Many tasks on one machine.
tasks="clip-4 --machine a800-80:2"
json "r['method'] == 'overlap' and r['tasks'] == 4 and r['gpus'] == 16 and r['makespan_ns'] >= r['bound_ns'] >= r['area_ns'] > 0 and
      r['total_ns'] > r['makespan_ns'] and r['peak_bytes'] <= r['limit_bytes'] and len(r['slices']) == r['slice_count'] and
      max(s['end_ns'] for s in r['slices']) == r['makespan_ns'] and
      sum(s['operators'] for s in r['slices']) == r['operators']" tasks $tasks -o tasks.msgpack --trace tasks.json --graph-out graph.json
good tasks $tasks && has "4 tasks" && has "vision-text" && has "above the best there can be" && has "communicators"
[ -z "$python" ] || "$python" -c "import json; assert len(json.load(open('tasks.json'))['traceEvents']) > 50" || fail "tasks --trace is no JSON"
json "r['makespan_ns'] > 0 and r['method'] == 'overlap'" tasks graph.json --machine a800-80:2 --schedule tasks.msgpack
json "r['kept_bytes'] > 0 and r['fetched_bytes'] == 0" tasks $tasks --previous tasks.msgpack
json "[w['name'] for w in r] == ['this plan', 'Spindle', 'DistMM', 'Optimus', 'uniform', 'sequential'] and
      r[0]['makespan_ns'] <= r[1]['makespan_ns'] < r[5]['makespan_ns']" tasks $tasks --compare
good tasks "$source/examples/data/tasks.json" --machine a800-80:2 --compare && has "no schedule takes less than"
json "r['method'] == 'optimus'" tasks $tasks --method optimus --placement-method sequential --memory-limit 200000
good tasks graph.json --machine a800-80:2 --graph-out graph.msgpack && good tasks graph.msgpack --machine a800-80:2 --all
wrong 2 "--machine" tasks clip-4
wrong 2 "nearest is 'clip-4'" tasks clip-5 --machine a800-80
wrong 1 "such GPUs are needed" tasks $tasks --memory-limit 100
wrong 2 "--compare" tasks $tasks --compare -o x.msgpack
wrong 2 "--method is 'best'" tasks $tasks --method best
wrong 2 "--schedule and --previous exclude one another" tasks $tasks --schedule tasks.msgpack --previous tasks.msgpack
wrong 1 "fullest GPU" tasks graph.json --machine a800-80:2 --schedule tasks.msgpack --memory-limit 1000
wrong 1 "graph" tasks clip-7 --machine a800-80:2 --schedule tasks.msgpack
wrong 1 "GPUs" tasks graph.json --machine a800-80:4 --schedule tasks.msgpack
good tasks $tasks -o tasks.msgpack --run-out run.msgpack && has "wrote run.msgpack"
good show tasks.msgpack && has "MetaOp" && has "communicators" && good show run.msgpack && has "of schedule"
json "r['method'] == 'overlap' and len(r['slices']) == r['slice_count']" show tasks.msgpack
json "r['total_ns'] >= r['slices_ns'] > 0 and len(r['schedule_digest']) == 16" show run.msgpack
good validate tasks.msgpack && has "not checked: --graph" && good validate tasks.msgpack --graph graph.json --machine a800-80:2 && has "keeps every promise"
json "r['valid'] and not r['against_graph']" validate run.msgpack
json "r['valid'] and r['against_graph']" validate run.msgpack --graph clip-4 --machine a800-80:2 --schedule tasks.msgpack
wrong 1 "the schedule makes it" validate run.msgpack --graph clip-4 --machine a800-80:2 --schedule tasks.msgpack --barriers
wrong 1 "graph" validate tasks.msgpack --graph clip-7 --machine a800-80:2
wrong 2 "go together" validate tasks.msgpack --graph clip-4
wrong 2 "or to none" validate run.msgpack --graph clip-4 --machine a800-80:2
wrong 2 "is a task schedule" show tasks.msgpack --step 1
wrong 2 "is a schedule itself" trace tasks.msgpack -o x.json --schedule run.msgpack
wrong 2 "needs --schedule" trace run.msgpack -o x.json
good trace run.msgpack --schedule tasks.msgpack -o x.json && good trace tasks.msgpack -o y.json
[ -z "$python" ] || "$python" -c "
import json
a, b = (json.load(open(f))['traceEvents'] for f in ('x.json', 'y.json'))
assert len(a) == len(b) and a != b" || fail "the traces of a schedule and its run"
good tasks $tasks --method sequential -o other.msgpack
wrong 1 "is a run of schedule" trace run.msgpack --schedule other.msgpack -o x.json
json "r['columns']['slice_gpus'] and r['task_names']" dump tasks.msgpack
json "len(r['columns']['slice_ends']) == r['slices']" dump run.msgpack
good stages layers.csv --stages 3 -o pipeline.msgpack && has "wrote pipeline.msgpack"
good show pipeline.msgpack && has "no order of these micro-batches takes less than"
json "r['stages'] == 3 and r['operations'] == 6 * r['micro_batches'] and len(r['stage_bytes']) == 3" show pipeline.msgpack
good validate pipeline.msgpack && has "runs every operation once"
good trace pipeline.msgpack -o x.json
json "len(r['columns']['operation_ends']) == r['operations']" dump pipeline.msgpack
wrong 2 "is a run of a pipeline" validate pipeline.msgpack --graph clip-4 --machine a800-80:2
wrong 2 "are for task schedules" validate plan.msgpack --barriers
wrong 1 "are not a plan file" show layers.csv
printf '{"format": "hbp-graph", "version": 1, "operators": [{"name": "a", "type": "t", "task": "x", "wdith": 3}]}' >bad.json
wrong 1 "wdith" tasks bad.json --machine h100

json "'fields' in r and r['fields']['cores']['value'] >= 1" probe
json "r['fields']['hbm_bytes']['value'] > 0" probe --machine h100:2 -o machine.json
json "r['fields']['nodes']['value'] == 2" probe --machine machine.json
json "r['fields']['gemm_efficiency']['value'] == 0.5" probe --machine machine.json --set gemm_efficiency=0.5
json "r['fields']['nodes']['value'] == 2 and r['fields']['gemm_efficiency']['value'] == 0.5" probe --machine h100:2,gemm_efficiency=0.5
wrong 2 "colour" probe --machine h100 --set colour=1
cat >executor <<'END'
#!/bin/sh
# Stands in for the executor: executor HOW probe -o FILE.
[ "$2 $3" = "probe -o" ] || exit 9
echo measuring
case $1 in
good) cat >"$4" <<'PROFILE'
{"format": "hbp-machine", "version": 1, "name": "Xeon x 4", "fields": {"nodes": {"value": 1, "source": "Xeon"},
 "flops_per_s": {"value": 137.5e9, "source": "Xeon"}},
 "collectives": [{"collective": "all_to_all", "ranks": 4, "latency_ns": 9100.5, "bytes_per_s": 1e9, "spread": 0.125, "source": "Xeon"},
  {"collective": "all_reduce", "ranks": 4, "latency_ns": 9100.5, "bytes_per_s": 1e9, "source": "Xeon"}],
 "rates": [{"rate": "gemm", "size": 2048, "per_s": 137.5e9, "spread": 0.02, "source": "Xeon, 2026-11-22"},
  {"rate": "copy", "size": 65536, "per_s": 96e9, "spread": 0.5, "source": "Xeon, 2026-11-22"}]}
PROFILE
;;
silent) ;;
garbage) echo "{}" >"$4" ;;
fails) exit 7 ;;
dies) kill -KILL $$ ;;
esac
END
chmod +x executor
"$hbp" probe --executor "./executor good" -o measured.json >out 2>err || fail "probe --executor: $(cat err)"
has "Xeon x 4" && has "137.5 GFLOP/s" && has "2,048" && has "64.0 KiB" && has "12.50 %" && has "96.0 GB/s"
[ "$(cat err)" = measuring ] || fail "probe --executor: stderr is '$(cat err)'"
json "[(x['rate'], x['size'], x['per_s'], x['spread'], x['source']) for x in r['rates']] == [
    ('gemm', 2048, 137.5e9, .02, 'Xeon, 2026-11-22'), ('copy', 65536, 96e9, .5, 'Xeon, 2026-11-22')] and
    [x['spread'] for x in r['collectives']] == [.125, None] and r['name'] == 'Xeon x 4'" probe --machine measured.json
TMPDIR=$work "$hbp" probe --executor "./executor good" --set nodes=3 --json >out 2>err || fail "probe --executor --json"
has '"name": "Xeon x 4"'
refused() { # refused TEXT COMMAND: the last line on stderr holds the text, and nothing is written
    rm -f refused.json*
    "$hbp" probe --executor "$2" -o refused.json >out 2>err && fail "probe --executor '$2' succeeded"
    tail -n 1 err | grep -qF -- "$1" || fail "probe --executor '$2': '$(cat err)' lacks '$1'"
    ls refused.json* >/dev/null 2>&1 && fail "probe --executor '$2' left $(ls refused.json*)"
    [ ! -s out ] || fail "probe --executor '$2' printed on stdout"
}
refused "hbp: './executor fails' failed with exit status 7" "./executor fails"
refused "hbp: signal 9 ended 'exec ./executor dies'" "exec ./executor dies"
refused "hbp: './executor silent' succeeded and wrote no profile to refused.json.probe-" "./executor silent"
refused "'format' is not \"hbp-machine\"" "./executor garbage"
refused "hbp: the shell cannot find what 'no-such-program' runs" "no-such-program"
wrong 1 "cannot write -o nowhere/x.json: there is no folder nowhere" probe --executor "./executor good" -o nowhere/x.json
wrong 2 "has a ' in it" probe --executor "./executor good" -o "it's.json"
wrong 2 "--machine and --executor exclude one another" probe --executor x --machine h100
ls "$work"/hbp-probe-* 2>/dev/null && fail "probe --executor left a file in TMPDIR"
wrong 2 "h1000" probe --machine h1000
wrong 2 "--model" groups l.npy --machine h100
wrong 2 "llama-3.1-9b" groups l.npy --model llama-3.1-9b --machine h100
good groups l.npy --machine h100:4 --max-length 128K \
    --model layers=16,hidden=2048,ffn=8192,heads=32,kv_heads=8,vocab=128256
wrong 2 "colour" groups l.npy --machine h100 --model layers=16,colour=1

# Ctrl-C: stops with a message and leaves nothing behind.
"$draw" "$source/examples/data/wikipedia.csv" big.npy 3000000 1 131072
"$hbp" plan big.npy --model llama-3.1-8b --machine h100:4 --max-length 128K -o big.msgpack >out 2>err &
pid=$!
sleep 0.2
kill -INT $pid 2>/dev/null
wait $pid
status=$?
if [ $status = 0 ]; then
    echo "planned before the interrupt came"
else
    [ $status = 130 ] || fail "interrupted: exit status $status"
    grep -qE '^hbp: cancelled( while .*)?$' err || fail "interrupted: '$(cat err)'"
    [ ! -e big.msgpack ] || fail "interrupted: left a file"
fi

# It ends a wait for standard input, and for someone who writes into a pipe.
mkfifo pipe quiet
for file in - pipe; do
    sleep 60 >quiet &
    writer=$!
    "$hbp" lengths $file <quiet >out 2>err &
    pid=$!
    sleep 0.3
    kill -INT $pid
    wait $pid
    status=$?
    kill $writer
    [ $status = 130 ] || fail "interrupted while it reads $file: exit status $status"
    grep -q cancelled err || fail "interrupted while it reads $file: '$(cat err)'"
done
seq 1 100000 | sed 's/$/ /' >pipe &
"$hbp" lengths pipe --json >out 2>err || fail "lengths from a pipe: '$(cat err)'"
grep -q 100000 out || fail "lengths from a pipe: '$(cat out)'"

# Standard output as the file to write gets that file alone, be it a pipe or a file, and a link to it stays one.
seq 100 997 90000 >few.txt
on="--model llama-3.1-8b --machine h100:1"
ln -s /dev/stdout stdout # which the test may break
"$hbp" plan few.txt $on -o few.plan >said 2>err || fail "plan: $(cat err)"
for command in "dump few.plan" "trace few.plan" "report few.plan" "plan few.txt $on"; do
    "$hbp" $command -o kept >said 2>err || fail "hbp $command -o kept: $(cat err)"
    "$hbp" $command -o stdout >out 2>err || fail "hbp $command -o stdout: $(cat err)"
    grep -q '^wrote stdout' err || fail "hbp $command -o stdout does not say so: $(cat err)"
    "$hbp" $command -o stdout 2>err | cat >piped
    for file in out piped; do # a plan holds the command line
        if [ "${command%% *}" = plan ]; then
            "$hbp" validate $file >said 2>err || fail "hbp $command -o stdout: $(cat err)"
        else
            cmp -s kept $file || fail "hbp $command -o stdout writes other than the file"
        fi
    done
    wrong 2 "-o stdout and --json both write to standard output" $command -o stdout --json
done
"$hbp" dump few.plan -o stdout >&- 2>err
[ $? = 1 ] && grep -qF "cannot write -o stdout: it is a link to a file that is not there" err || fail "-o stdout where that is closed: $(cat err)"
[ -L stdout ] || fail "-o stdout took the link's place"
{ echo before; "$hbp" dump few.plan -o stdout 2>err; echo after; } >around
{ echo before; "$hbp" dump few.plan; echo after; } >dumped
"$hbp" dump few.plan -o kept >said && { echo before; cat kept; echo after; } >want
for file in around dumped; do cmp -s $file want || fail "standard output in the middle of a file: $file is not as it was made"; done

# Links stay, and what they lead to is written, there or not, whichever command writes it.
mkdir linked
for command in "dump few.plan" "trace few.plan" "report few.plan" "plan few.txt $on" "probe --machine h100:1"; do
    ln -sf linked/file link && rm -f linked/file
    for turn in 1 2; do
        good $command -o link
        [ -L link ] && [ -f linked/file ] && [ ! -L linked/file ] || fail "hbp $command -o link, turn $turn"
        [ "$(ls -A linked)" = file ] || fail "hbp $command -o link leaves files: $(ls -A linked)"
        chmod 600 linked/file
    done
    [ "$(find linked/file -perm 600)" ] || fail "hbp $command -o link forgets the mode"
    ln -sf absent/file astray && ln -sf circle circle
    wrong 1 "cannot write -o astray: there is no folder absent; make it first" $command -o astray
    wrong 1 "cannot write -o circle: Too many levels of symbolic links" $command -o circle
    [ -L astray ] && [ -L circle ] || fail "hbp $command takes the place of a link that leads nowhere"
    mkfifo fifo
    cat fifo >piped &
    good $command -o fifo
    wait $!
    [ -p fifo ] && [ -s piped ] || fail "hbp $command -o fifo"
    rm fifo
done

# Names that are not UTF-8.
odd=$(printf 'q\377\303\251.x')
json "r['path'] == 'q?\u00e9.x'" plan few.txt $on -o "$odd"
for command in dump trace; do json "r['path'] == 'q?\u00e9.x'" $command few.plan -o "$odd"; done
good dump few.plan -o "$odd" && has "$(printf 'wrote q?\303\251.x')"
wrong 1 "$(printf 'q?\303\251.x: line 1 has')" plan few.txt $on --batches "$odd"

# A full disk.
if [ -w /dev/full ]; then
    "$hbp" lengths l.npy >/dev/full 2>err
    [ $? = 1 ] || fail "a full disk goes unnoticed"
fi
[ $bad = 0 ] && echo "the command keeps its word"
exit $bad

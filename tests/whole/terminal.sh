#!/bin/sh
# The hbp command on screens of all widths: no line is wider, --wide and no terminal leave nothing out, colours are for terminals
# alone, the timeline of a step says what its packs do, and progress never runs backwards.
# usage: terminal.sh HBP DRAW_LENGTHS SOURCE
set -u
hbp=$(cd "$(dirname "$1")" && pwd)/$(basename "$1") draw=$(cd "$(dirname "$2")" && pwd)/$(basename "$2") source=$(cd "$3" && pwd)
. "$source/cmake/packages.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
unset COLUMNS NO_COLOR
LC_ALL=C.UTF-8 TERM=xterm
export LC_ALL TERM
bad=0
fail() { echo "FAIL: $*"; bad=1; }
python=$(python_itself)

"$draw" "$source/examples/data/wikipedia.csv" l.npy 800 7 65536 || fail "draw_lengths"
"$draw" "$source/examples/data/wikipedia.csv" few.npy 60 7 65536 || fail "draw_lengths"
"$draw" "$source/examples/data/vlm.csv" v.csv 200 || fail "draw_lengths"
printf 'name,type,forward_ms,backward_ms,state_mib,activation_mib,recomputed_mib,cut_mib\na,vision,3,6,10,40,4,4\nb,vision,1,2,10,40,4,4\nc,language,4,8,10,60,6,6\nd,language,1,2,10,60,6,6\n' >layers.csv
on="--model llama-3.1-8b --machine h100:2"
"$hbp" plan l.npy $on --samples-per-step 200 -o p.plan >/dev/null || fail "plan"
"$hbp" step l.npy $on --samples-per-step 150 --zero 1 --lockstep-ranks 1 -o u.plan >/dev/null || fail "step"
"$hbp" step l.npy --model llama-3.1-8b --machine h100:64 --samples-per-step 800 --recompute none -o many.plan >/dev/null || fail "step of 512 ranks"
"$hbp" tasks clip-4 --machine a800-80:2 -o t.plan >/dev/null || fail "tasks"
"$hbp" vlm v.csv --vision-column vision --vlm internvl-1.5-26b --machine a100-80:4 --tensor-parallel 4 --stages 4 -o v.plan >/dev/null || fail "vlm"

# What is printed: a line a command, and in it what stands in the output at 60 columns whatever is left out.
cat >commands <<END
help
--help
methods|method what it does
probe --machine h100:2|field value
lengths l.npy|samples tokens
groups l.npy $on|pack SP step epoch groups verdict
plan l.npy $on|predicted epoch
plan l.npy $on --samples-per-step 200|random
compare few.npy $on --tokens-per-step 256K|method epoch x this gap
step l.npy $on --samples-per-step 150|groups tokens time
step few.npy --model llama-3.1-8b --machine h100:1 --compare|method step x search gap
vlm v.csv --vision-column vision --vlm internvl-1.5-26b --machine a100-80:4 --tensor-parallel 4 --stages 4|stage layers
stages layers.csv --stages 2|stage layers cuts
tasks clip-4 --machine a800-80:2|task start end
tasks clip-4 --machine a800-80:2 --compare|method step x this gap transfers
show p.plan|pack SP time
show p.plan --step 0|ranks waiting SP tokens time
show p.plan --step 1 --rank 3|ranks samples as id:tokens
show u.plan --step 0|ranks waiting
show many.plan --step 0|lines for
show t.plan|task
show v.plan|stage
show v.plan --step 0|replica stage waiting
validate p.plan|keeps every promise
END
for command in lengths probe groups plan step vlm stages tasks fit show compare trace validate dump methods completion help; do
    echo "$command --help" >>commands
done

# Characters of the longest line: bytes that continue none.
widest() { LC_ALL=C tr -d '\200-\277' <"$1" | awk '{ if (length($0) > most) most = length($0) } END { print most + 0 }'; }
# Clocks differ from run to run.
clocks() { sed -E 's/[0-9.]+ (s|ms|us|min)\b/T/g; s/ +/ /g' "$1"; }
while IFS='|' read -r command words; do
    "$hbp" $command >plain 2>err || fail "hbp $command: $(cat err)"
    [ ! -s err ] || fail "hbp $command wrote to stderr: $(cat err)"
    ! grep -q "$(printf '\033')" plain || fail "hbp $command has escapes where no terminal is"
    ! grep -nE ' +$' plain || fail "hbp $command: a line ends with blanks"
    for width in 40 80 120 60; do
        COLUMNS=$width "$hbp" $command >out 2>err || fail "COLUMNS=$width hbp $command: $(cat err)"
        [ "$(widest out)" -le $width ] || fail "hbp $command at $width columns has a line of $(widest out): $(cat out)"
    done
    tr -s ' \n' '  ' <out >flat
    for word in $words; do grep -qF -- "$word" flat || fail "hbp $command at 60 columns lacks '$word'"; done
    case $command in
    *help*) ;;
    *)
        COLUMNS=60 "$hbp" $command --wide >out 2>err || fail "hbp $command --wide: $(cat err)"
        clocks plain >plain.clocks
        clocks out | cmp -s - plain.clocks || fail "hbp $command --wide is not what is printed where no terminal is: $(clocks out | diff - plain.clocks | head -n 4)"
        ;;
    esac
done <commands
COLUMNS=60 "$hbp" lengths l.npy >out && [ "$(widest out)" -gt 40 ] && [ "$("$hbp" groups l.npy $on >out && widest out)" -gt 90 ] || fail "widest does not see wide lines"

# A width that is no number is none; a small one is taken for 40 columns.
COLUMNS=wide "$hbp" groups l.npy $on | cmp -s - plain || [ "$(COLUMNS=wide "$hbp" groups l.npy $on | wc -l)" = "$("$hbp" groups l.npy $on | wc -l)" ] || fail "COLUMNS=wide"
[ "$(COLUMNS=3 "$hbp" validate p.plan >out; widest out)" -le 40 ] || fail "COLUMNS=3"
COLUMNS=60 "$hbp" groups l.npy $on >out && grep -q 'columns\{0,1\} more with --wide: ' out || fail "columns left out are not named: $(cat out)"
COLUMNS=60 "$hbp" groups l.npy $on --json >out && "$hbp" groups l.npy $on --json | cmp -s - out || fail "--json depends on the width"

# A help of any option keeps to the width, and no cell parts a number from what it counts.
for option in $("$hbp" completion bash | grep -oE -- '--[a-z][a-z-]+' | sort -u); do
    COLUMNS=40 "$hbp" help $option >out 2>err || continue
    [ $option = --man ] || [ "$(widest out)" -le 40 ] || fail "hbp help $option at 40 columns has a line of $(widest out): $(cat out)"
done
for width in 50 55 60 65 70; do
    COLUMNS=$width "$hbp" groups l.npy $on >out
    ! grep -nE '[0-9] x$| x SP$|^ +x SP|^ +SP [0-9]' out || fail "hbp groups at $width columns breaks a group: $(cat out)"
done

# Foreign text is plain on every screen, also where it is UTF-8.
name=$(printf 'odd\033[2J\302\2332J.txt')
printf '10\n20\n' >"$name"
COLUMNS=40 "$hbp" lengths "$name" >out
! grep -q "$(printf '\033')" out && grep -qF 'odd?[2J??2J.txt' out || fail "a name with escapes: $(head -n 2 out)"

# Bars and timelines in ASCII where the locale is.
for command in "lengths l.npy" "compare few.npy $on --tokens-per-step 256K" "show p.plan --step 0"; do
    [ "$(LC_ALL=C "$hbp" $command | LC_ALL=C tr -d '\0-\177' | wc -c)" = 0 ] || fail "hbp $command is not ASCII in the C locale"
    [ "$("$hbp" $command | LC_ALL=C tr -d '\0-\177' | wc -c)" -gt 0 ] || fail "hbp $command has no blocks in a UTF-8 locale"
done

# Colours under a terminal, none with NO_COLOR, a dumb terminal or --json; its width is kept to.
if command -v script >/dev/null; then
    has_colour() { script -qec "stty cols 72; $*" /dev/null </dev/null 2>&1 | grep -q "$(printf '\033\[[0-9]')"; }
    show="$hbp show p.plan --step 0"
    has_colour "$show" || fail "no colours on a terminal"
    has_colour "NO_COLOR= $show" || fail "an empty NO_COLOR switches colours off"
    ! has_colour "NO_COLOR=1 $show" || fail "colours under NO_COLOR"
    ! has_colour "TERM=dumb $show" || fail "colours on a dumb terminal"
    ! has_colour "$show --json" || fail "colours in JSON"
    ! has_colour "$show | cat" || fail "colours in a pipe"
    script -qec "stty cols 72; NO_COLOR=1 $show" /dev/null </dev/null | tr -d '\r' >out
    COLUMNS=72 "$hbp" show p.plan --step 0 | cmp -s - out || fail "a terminal of 72 columns does not get them: $(head -n 3 out)"
    # Every drawing of the bar that a planning of some seconds makes.
    "$draw" "$source/examples/data/wikipedia.csv" big.npy 60000 0 131072
    script -qec "stty cols 100; $hbp plan big.npy $on --samples-per-step 1024 --threads 1 -o big.plan >/dev/null" /dev/null </dev/null 2>&1 | tr '\r' '\n' >bars
    grep -q 'planning 2 of 4: ' bars || fail "the bar names no stage: $(head -n 5 bars)"
    [ "$(widest bars)" -lt 100 ] || fail "a bar is as wide as the terminal"
    sed -nE 's/.*\] +([0-9]+) %.*/\1/p' bars >shares
    sort -n shares | cmp -s - shares || fail "progress runs backwards: $(tr '\n' ' ' <shares)"
    [ "$(tail -n 1 shares)" = 100 ] || fail "progress ends at $(tail -n 1 shares) %"
    [ "$("$hbp" plan big.npy $on --samples-per-step 1024 2>&1 >/dev/null | wc -c)" = 0 ] || fail "progress where stderr is no terminal"
else
    echo "no script: terminals are not tried"
fi

# Types of packs: sorted, folded past 20, each with the GPU time of its packs; a step of pipelines with their time; four digits of times
# that are compared.
"$draw" "$source/examples/data/wikipedia.csv" types.npy 3000 0 131072
"$hbp" plan types.npy $on --samples-per-step 300 --method hybrid-cp -o types.plan >/dev/null || fail "plan of many types of packs"
rows() { sed '1,/ GPU time$/d' | awk 'NF > 8 { print $2, $1 }' | tr -d ,; }
types=$("$hbp" show types.plan --json | grep -c '"capacity"')
"$hbp" show types.plan --all >all && rows <all >all.rows && "$hbp" show types.plan >out && rows <out >out.rows
[ "$types" -gt 20 ] && [ "$(wc -l <all.rows)" = "$types" ] && [ "$(wc -l <out.rows)" = 20 ] || fail "$types types of packs: $(cat out)"
grep -qx "  and $((types - 20)) more; --all shows them" out || fail "types that are folded are not counted: $(cat out)"
sort -n -k 1,1 -k 2,2 all.rows | cmp -s - all.rows || fail "types of packs are not sorted: $(cat all)"
! grep -q ' 0 ns$' all || fail "packs without a time: $(cat all)"
"$hbp" show v.plan --step 0 >out
grep -q ' in the pipelines; with even stages, which do not wait: ' out && ! grep -q peak out || fail "a step of pipelines: $(cat out)"
sum=$(for step in $(seq 0 $(($("$hbp" show v.plan --json | sed -n 's/^  "steps": \([0-9]*\),$/\1/p') - 1))); do
    "$hbp" show v.plan --step "$step" | sed -nE 's/.*predicted ([0-9.]+) s in the pipelines.*/\1/p'
done | awk '{ sum += $1 } END { print sum }')
"$hbp" show v.plan | awk -v sum="$sum" '/^predicted/ { near = sum - $2 < 0.02 && $2 - sum < 0.02 } END { exit !near }' || fail "steps of pipelines take $sum s: $("$hbp" show v.plan)"
"$hbp" compare few.npy $on --tokens-per-step 256K | grep -E '^  (this plan|hbp|isf) |^No plan' | grep -oE '[0-9.]+ (us|ms|s|min)\b' >out
[ "$(wc -l <out)" -ge 3 ] && ! grep -vE '^[0-9.]{5,} ' out || fail "compared times without four digits: $(cat out)"

# The timeline: every rank's waiting against the trace of the step, and the characters of its packs.
if [ -n "$python" ]; then
    cat >check.py <<'END'
import json, re, subprocess, sys
hbp, plan, step = sys.argv[1:]
run = lambda *a: subprocess.run([hbp, *a], check=True, capture_output=True, text=True).stdout
said = json.loads(run("show", plan, "--step", step, "--json"))
run("trace", plan, "--step", step, "--steps", "1", "-o", "trace.json")
events = [e for e in json.load(open("trace.json"))["traceEvents"] if e["ph"] == "X" and "sp" in e.get("args", {})]
end = max(e["ts"] + e["dur"] for e in events)
total = max(said["predicted_ns"] / 1e3, end)
seen = {}
lines = [m.groups() for m in re.finditer(r"^  (\d+)(?:-(\d+))? +(\S.*\S) +([\d.]+) %$", run("show", plan, "--step", step).split("micro-batch  ranks")[0], re.M)]
assert lines
for first, last, drawn, share in lines:
    for rank in range(int(first), int(last or first) + 1):
        own = [e for e in events if e["tid"] == rank + 1]
        busy = sum(e["dur"] for e in own if e["cat"] == "pack")
        assert abs(100 * (end - busy) / total - float(share)) < 0.0051, (rank, share)
        seen[rank] = drawn
        width = len(drawn)
        at = lambda us: int(us / total * width + 0.5)
        expected = ["\u2591"] * at(end) + ["\u00b7"] * (width - at(end))
        for e in own:
            a, b = at(e["ts"]), at(e["ts"] + e["dur"])
            label = "" if e["cat"] != "pack" else f"SP {e['args']['sp']}"
            expected[a:b] = ["\u2592"] * (b - a) if not label else ["\u2588"] * (b - a - 1) + ["\u258c"] * (b > a)
            label = label if len(label) + 2 <= b - a else label[3:] if len(label) - 1 <= b - a else ""
            expected[a + 1:a + 1 + len(label)] = label
        assert "".join(expected) == drawn, (rank, "".join(expected), drawn)
assert sorted(seen) == list(range(max(seen) + 1)) and len(seen) == max(e["tid"] for e in events)
END
    cat >types.py <<'END'
import json, re, subprocess, sys
run = lambda *a: subprocess.run([sys.argv[1], *a], check=True, capture_output=True, text=True).stdout
time = {}
for step in json.loads(run("dump", "p.plan"))["steps"]:
    for b in step["micro_batches"]:
        for p in b["packs"]:
            key = f"{p['sp']} {p['recompute']} {p['capacity']:,}"
            time[key] = time.get(key, 0) + p["ns"] * p["sp"]
said = re.findall(r"^ +([\d,]+) +(\d+) +(\d+) .* ([\d.]+) (min|s|ms)$", run("show", "p.plan"), re.M)
assert len(said) == len(time)
for capacity, sp, recompute, value, unit in said:
    ns = float(value) * {"min": 60e9, "s": 1e9, "ms": 1e6}[unit]
    assert abs(ns / time[f"{sp} {recompute} {capacity}"] - 1) < 0.01, (capacity, sp)
END
    "$python" types.py "$hbp" || fail "the GPU time of types of packs is not that of their packs"
    for step in "p.plan 0" "p.plan 3" "u.plan 0" "many.plan 0"; do
        "$python" check.py "$hbp" $step || fail "the timeline of $step is not what its packs do"
    done
fi
"$hbp" show many.plan --step 0 --wide >out
lines=$(grep -cE '^  [0-9]+(-[0-9]+)? .* %$' out)
[ "$lines" -gt 32 ] || fail "the plan of 512 ranks has but $lines lines"
COLUMNS=100 "$hbp" show many.plan --step 0 >out
[ "$(grep -cE '^  [0-9]+(-[0-9]+)? .* %$' out)" -le 32 ] && grep -qE "lines for $lines: .*--wide shows all" out || fail "many ranks are not folded: $(head -n 50 out)"

[ $bad = 0 ] && echo "ok"
exit $bad

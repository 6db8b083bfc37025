#!/bin/sh
# docs/json.md against what the command prints: every command is run with --json, and fails where a key is printed that its section
# of the page lacks, where the page has one that is never printed, and where a value is not of the type that the page says.
# usage: json_keys.sh HBP DRAW_LENGTHS SOURCE
#        json_keys.sh --list HBP DRAW_LENGTHS SOURCE    prints the keys that there are, with their types
set -u
list=
[ "$1" != --list ] || { list=1; shift; }
hbp=$1 draw=$2 source=$3
. "$source/cmake/packages.sh"
python=$(python_itself)
[ -n "$python" ] || { echo "no python3"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/out"
cd "$work" || exit 1
bad=0 runs=0
fail() { echo "FAIL: $*"; bad=1; }

# run SECTION STATUS ARGUMENT...: with --json; what it prints is held against that section of the page.
run() {
    section=$1 status=$2
    shift 2
    runs=$((runs + 1))
    "$hbp" "$@" --json >"out/$runs.json" 2>err
    got=$?
    [ $got = "$status" ] || fail "hbp $*: exit status $got: $(cat err)"
    printf '%s\t%s\t%s\n' "$section" "out/$runs.json" "$*" >>runs
}

on="--model llama-3.1-8b --machine h100:1"
"$draw" "$source/examples/data/wikipedia.csv" l.npy 900 7 32768 || exit 1
"$draw" "$source/examples/data/vlm.csv" vlm.csv 600 || exit 1
printf 'length,images,kind\n100,2,1\n50,,0\n70,5,4\n' >pictures.csv
cat >layers.csv <<'END'
name,type,forward_ms,backward_ms,state_mib,activation_mib,recomputed_mib,cut_mib
a,vision,5,10,10,60,6,6
b,vision,5,10,10,60,6,6
c,language,4,8,10,60,6,6
d,language,1,2,10,60,6,6
END
cat >measured.json <<'END'
{"format": "hbp-machine", "version": 1, "name": "two nodes", "fields": {"nodes": {"value": 1, "source": "given"}},
 "collectives": [{"collective": "all_to_all", "ranks": 4, "latency_ns": 9100.5, "bytes_per_s": 1e9, "spread": 0.125, "source": "given"},
  {"collective": "all_reduce", "ranks": 4, "latency_ns": 9100.5, "bytes_per_s": 1e9, "source": "given"}],
 "rates": [{"rate": "gemm", "size": 2048, "per_s": 137.5e9, "spread": 0.02, "source": "given"}]}
END
# shellcheck disable=SC2086
{
    run lengths 0 lengths l.npy --max-length 8K --over-long truncate
    run lengths 0 lengths pictures.csv --vision-column images --modality-column kind
    run plan 0 plan l.npy $on -o plan.msgpack
    run plan 0 plan pictures.csv --vision-column images --modality-column kind $on --max-vision 7 --modality-order -o pictures.msgpack
    run plan 0 plan l.npy $on --samples-per-step 200 --drop-last
    run 'plan --patterns' 0 plan l.npy $on --patterns -o plan.patterns
    run expand 0 expand plan.patterns --lengths l.npy -o listed.msgpack
    run groups 0 groups l.npy $on
    run compare 0 compare l.npy $on --samples-per-step 1
    run step 0 step l.npy $on --samples-per-step 60
    run 'step --compare' 0 step l.npy $on --samples-per-step 60 --compare
    run 'step --compare' 0 step l.npy $on --samples-per-step 60 --equal-samples --compare
    vlm="vlm.csv --vision-column vision --vlm qwen2-vl-7b --machine a100-80:1 --tensor-parallel 2 --stages 2"
    run vlm 0 vlm $vlm -o vlm.msgpack
    run 'vlm --compare' 0 vlm $vlm --compare
    run 'vlm --compare' 0 vlm vlm.csv --vision-column vision --vlm internvl-1.5-26b --machine a100-80:1 --tensor-parallel 1 --stages 8 --compare
    run stages 0 stages layers.csv --stages 2 -o pipeline.msgpack
    run tasks 0 tasks clip-4 --machine a800-80:2 -o tasks.msgpack --run-out run.msgpack
    run 'tasks --compare' 0 tasks clip-4 --machine a800-80:2 --compare --memory-limit 22000
    run 'show PLAN' 0 show plan.msgpack
    run 'show PLAN' 0 show pictures.msgpack
    run 'show PLAN' 0 show vlm.msgpack
    run 'show PLAN --step or --rank' 0 show plan.msgpack --step 0
    run 'show PLAN --step or --rank' 0 show pictures.msgpack --rank 0
    run 'show of a plan by patterns' 0 show plan.patterns
    run 'show PLAN --step or --rank' 0 show plan.patterns --step 0 --lengths l.npy
    run 'show of a task schedule' 0 show tasks.msgpack
    run 'show of a run of tasks' 0 show run.msgpack
    run 'show of a run of a pipeline' 0 show pipeline.msgpack
    run trace 0 trace plan.msgpack --steps 1 -o trace.json
    run trace 0 trace tasks.msgpack -o trace.json
    run report 0 report plan.msgpack -o report.html
    run validate 0 validate plan.msgpack --lengths l.npy $on
    run validate 1 validate plan.msgpack --lengths pictures.csv
    run validate 0 validate plan.patterns --lengths l.npy $on
    run validate 0 validate tasks.msgpack
    run dump 0 dump plan.msgpack -o plan.json
    "$python" -c "
import json
plan = json.load(open('plan.json'))
print('# ranks: 8\n# device: h100\n# date: 2026-01-01')
print('step,micro_batch,first_rank,sp,recompute,samples,tokens,sum_squares,time_ns')
for k, step in enumerate(plan['steps']):
    for m, b in enumerate(step['micro_batches']):
        for p in b['packs']:
            print(k, m, p['rank'], p['sp'], p['recompute'], len(p['sample_ids']), p['padded_tokens'], p['squares'], p['ns'] * 5 // 4, sep=',')
" >timeline.csv
    run trace 0 trace plan.msgpack --measured timeline.csv -o trace.json
    run fit 0 fit timeline.csv $on -o cost.json
    run model 0 model
    run 'model NAME' 0 model llama-3.1-8b
    run 'model NAME' 0 model deepseek-v3 --machine h100:4
    run 'fit --anchor' 0 fit --anchor tokens_per_s_per_gpu=900,sequence_tokens=8K $on -o cost.json
    run stack 0 stack
    run 'stack NAME' 0 stack fsdp --machine a100-80
    run machine 0 machine
    run 'machine NAME and probe' 0 machine h100:2
    run 'machine NAME and probe' 0 probe --machine measured.json
    run methods 0 methods
}
"$python" - "$source/docs/json.md" "$list" <<'END' || bad=1
import collections, json, re, sys

def kind_of(value):
    if value is None:
        return "null"
    return {bool: "boolean", int: "integer", float: "number", str: "text", list: "list", dict: "object"}[type(value)]

def walk(value, path, found):
    """The types of every key below: "groups[].sp"; keys of "fields" and "terms" that are names are one, "fields.*"."""
    if isinstance(value, dict):
        for key, part in value.items():
            name = "*" if path in ("fields", "terms") and isinstance(part, dict) else key
            place = f"{path}.{name}" if path else name
            found[place].add(kind_of(part))
            walk(part, place, found)
    elif isinstance(value, list):
        for part in value:
            if isinstance(part, (dict, list)):
                walk(part, path + "[]", found)

sections = collections.defaultdict(lambda: collections.defaultdict(set))
for line in open("runs"):
    section, path, said = line.rstrip("\n").split("\t")
    walk(json.load(open(path)), "", sections[section])
if sys.argv[2]:
    for section, found in sections.items():
        print(f"## hbp {section}")
        for place, types in found.items():
            print(place, "|", " or ".join(sorted(types)))
    sys.exit()

page, also, title = collections.defaultdict(dict), collections.defaultdict(list), None
for line in open(sys.argv[1]):
    line = line.rstrip("\n")
    if line.startswith("#"):
        title = line.lstrip("# ").replace("`", "")
        title = title[4:] if title.startswith("hbp ") else title
    also[title] += re.findall(r"(?:in `([^`]+)` )?\[[^]]+\]\(#([a-z-]+)\)", line) if line.startswith("Also: ") else []
    row = re.fullmatch(r"\| `([^`]+)` \| ([^|]+) \| ([^|]*) \| ([^|]+) \|", line)
    if row:
        page[title][row[1]] = row[2].strip()
        if not row[4].strip():
            sys.exit(f"{title}: {row[1]} has no meaning")
shared = {title.lower().replace(" ", "-"): rows for title, rows in page.items()}
bad, missing, used = 0, [], collections.defaultdict(set)
def fail(text):
    global bad
    bad = 1
    print("FAIL:", text)
for section, found in sections.items():
    known = dict(page.get(section, {}))
    for prefix, name in also.get(section, []): # "methods[]" + "steps"
        known.update({(prefix + "." if prefix else "") + key: type for key, type in shared[name].items()})
    for place, types in found.items():
        if place not in known:
            fail(f"hbp {section} --json prints {place} ({' or '.join(sorted(types))}); docs/json.md lacks it")
            continue
        allowed = set(re.split(", | or ", known[place]))
        allowed |= {"integer"} if "number" in allowed else set()
        if not types <= allowed:
            fail(f"hbp {section} --json prints {place} as {sorted(types)}; docs/json.md says {known[place]}")
    missing += [(section, place) for place in page.get(section, {}) if place not in found]
    for prefix, name in also.get(section, []):
        used[name] |= {key for key in shared[name] if (prefix + "." if prefix else "") + key in found}
for section, place in missing + [(name, key) for name in used for key in shared[name] if key not in used[name]]:
    fail(f"docs/json.md has {place} of {section}, which is never printed")
for title in page:
    if title not in sections and title.lower().replace(" ", "-") not in used:
        fail(f"docs/json.md has a section {title}, which no command prints")
print(f"{sum(map(len, sections.values()))} keys in {len(sections)} sections")
if len(sections) < 20:
    fail("hardly a command was run")
sys.exit(bad)
END
exit $bad

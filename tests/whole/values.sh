#!/bin/sh
# What users give the command as model, machine and values, and what they are answered: a table of each.
# usage: values.sh HBP DRAW_LENGTHS SOURCE
set -u
hbp=$1 draw=$2 source=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
bad=0 rows=0
fail() { echo "FAIL: $*"; bad=1; }

# same ARGUMENT... -- ARGUMENT...: both print the same, and succeed.
same() {
    rows=$((rows + 1)) first=''
    while [ "$1" != -- ]; do first="$first $1"; shift; done
    shift
    # shellcheck disable=SC2086
    "$hbp" $first >one 2>err || { fail "hbp$first: $(cat err)"; return; }
    "$hbp" "$@" >two 2>err || { fail "hbp $*: $(cat err)"; return; }
    sed 's/planned in [^;:]*//' one >one.cut && sed 's/planned in [^;:]*//' two | cmp -s - one.cut || fail "hbp$first and hbp $* differ"
}
# wrong STATUS TEXT ARGUMENT...: that exit status, one line on stderr that holds the text and no name of C.
wrong() {
    rows=$((rows + 1)) status=$1 text=$2
    shift 2
    "$hbp" "$@" >out 2>err
    got=$?
    [ $got = "$status" ] || fail "hbp $*: exit status $got instead of $status: $(cat err)"
    [ ! -s out ] && [ "$(wc -l <err)" = 1 ] || fail "hbp $*: not one line on stderr alone: $(cat err)"
    grep -qF -- "$text" err || fail "hbp $*: '$(cat err)' lacks '$text'"
    grep -q 'hbp_\|struct' err && fail "hbp $*: '$(cat err)' names what is C's"
}

"$draw" "$source/examples/data/wikipedia.csv" l.npy 500 7 131072 || fail "draw_lengths"
printf "length,vision\n100,2\n" >v.csv
mkdir checkout empty
printf '{"model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32,
"num_key_value_heads": 8, "vocab_size": 128256}' >checkout/config.json
cp checkout/config.json mine.json
printf '{"model_type": "llama", "hidden_size": 512}' >short.json
mkdir odd odd/dir
: >odd/dir/config.json
printf '{"a":' >odd/bad.json
printf 'x' >odd/x.msgpack
printf 'length\nfive\n' >odd/a.csv
printf '{"version": 2, "shards": [{"format": "mds", "version": 2, "samples": 1, "column_names": ["tokens"], "column_encodings": ["int"],
"column_sizes": [8], "raw_data": {"basename": "s.mds", "bytes": 8}}]}' >odd/index.json
"$hbp" probe --machine h100:2 -o m.json >/dev/null || fail "probe"
"$hbp" probe --machine h100:2 --set flops_per_s=989 -o slow.json >/dev/null || fail "probe"
"$hbp" probe --machine h100:2 --set nodes=0,hbm_bytes=0 -o lacking.json >/dev/null || fail "probe"
printf '{"format": "hbp-machine", "version": 1, "name": "mine", "fields": {"nodes": 2, "gpus_per_node": 8, "domain_gpus": 8,
"hbm_bytes": "80GiB", "hbm_bytes_per_s": "3.35TB/s", "flops_per_s": "989TFLOPS", "gemm_efficiency": "45%%", "attention_efficiency": 0.45,
"nvlink_bytes_per_s": {"value": "371GB/s", "source": "NCCL"}, "network_bytes_per_s": "400Gb/s", "nvlink_latency_ns": "20us",
"network_latency_ns": "35us"}}' >units.json
printf 'name,forward_us,type,activation_bytes\na,3,language,1000\nb,5,language,1000\n' >layers.csv
printf '\001\002\003' >raw.bin
printf 'id,n_tok\n1,2\n' >named.csv
printf '\223\204\241' >p.msgpack
printf 'length,vision\n1000,2\n3000,4\n2000,3\n' >images.csv
llama="--model llama-3.1-8b" on="--model llama-3.1-8b --machine h100:2"
vlm="--vision-column vision --vlm internvl-1.5-26b --machine a100-80"

# shellcheck disable=SC2086
{
    # Models and machines by other names.
    for model in checkout checkout/ ./checkout checkout/config.json mine.json; do
        same groups l.npy $on -- groups l.npy --model $model --machine h100:2
        same groups l.npy --model llama-3.1-8b,layers=4 --machine h100:2 -- groups l.npy --model $model,layers=4 --machine h100:2
    done
    for machine in m.json m.json:2 ./m.json,nodes=2 units.json lacking.json,nodes=2,hbm_bytes=80GiB h100,nodes=2 h100:2,network_bytes_per_s=400Gb/s; do
        same groups l.npy $on -- groups l.npy $llama --machine $machine
    done
    same groups l.npy $llama --machine h100:8 -- groups l.npy $llama --machine m.json:8

    # Numbers and units.
    same groups l.npy $on --reserve 8192 -- groups l.npy $on --reserve 8GiB
    same groups l.npy $on --reserve 8192 -- groups l.npy $on --reserve 8192MiB
    same groups l.npy $on --reserve 4402341478B -- groups l.npy $on --reserve 4.1GiB
    same groups l.npy $on --set hbm_bytes=85469849190 -- groups l.npy $on --set hbm_bytes=79.6GiB
    same groups l.npy --model llama-3.1-405b --max-length 4K --over-long truncate --machine gb200-nvl72:11 -- groups l.npy --model llama-3.1-405b --max-length 4K --over-long truncate --machine gb200-nvl72 --nodes 11
    same groups l.npy $on --pack-overhead 20000000 -- groups l.npy $on --pack-overhead 20ms
    same groups l.npy $on --dp-overlap 0.5 -- groups l.npy $on --dp-overlap 50%
    same groups l.npy $on --max-length 131072 -- groups l.npy $on --max-length 128k
    same groups l.npy $on --max-length 524288 -- groups l.npy $on --max-length 0.5M
    same groups l.npy $on --max-length 100000 -- groups l.npy $on --max-length 1e5
    same groups l.npy $on --set hbm_bytes=64e9 -- groups l.npy $on --set hbm_bytes=64GB
    same probe --machine h100 --set network_bytes_per_s=25e9,nvlink_latency_ns=5000 -- probe --machine h100 --set network_bytes_per_s=200Gb/s,nvlink_latency_ns=5us
    same stages layers.csv --stages 2 --link 100 -- stages layers.csv --stages 2 --link 100GB/s
    same stages layers.csv --stages 2 --link 100 -- stages layers.csv --stages 2 --link 800Gb/s
    same stages layers.csv --stages 2 --memory-limit 20480 -- stages layers.csv --stages 2 --memory-limit 20GiB
    same tasks clip-4 --machine a800-80:2 --memory-limit 61440 -- tasks clip-4 --machine a800-80:2 --memory-limit 60GiB

    # STATUS|TEXT|ARGUMENTS.
    while IFS='|' read -r status text arguments; do
        wrong "$status" "$text" $arguments
    done <<TABLE
2|no model preset 'gpt-4'; there are llama-3-8b, llama-3.1-8b|groups l.npy --model gpt-4 --machine h100
2|no model preset 'Llama3.1-8B'; the nearest is 'llama-3.1-8b'|groups l.npy --model Llama3.1-8B --machine h100
1|no such file or folder; the nearest is 'llama-3.1-8b'|groups l.npy --model meta-llama/Llama-3.1-8B --machine h100
1|cannot open no/where: No such file or directory|groups l.npy --model no/where --machine h100
1|cannot open empty/config.json: No such file or directory|groups l.npy --model empty --machine h100
1|cannot open no.json: No such file or directory|groups l.npy --model no.json,layers=4 --machine h100
1|short.json: keys 'num_hidden_layers', 'intermediate_size', 'num_attention_heads', 'vocab_size' are missing|groups l.npy --model short.json --machine h100
1|m.json: it has a 'format', as files of hbp have, and no 'model_type': it is no model|groups l.npy --model m.json --machine h100
2|4 fields are 0 or not given; set them, for example hidden=4096,ffn=14336,heads=32,vocab=128256|groups l.npy --model layers=2 --machine h100
2|there is no field 'hidden_size'; the nearest is 'hidden'|groups l.npy --model llama-3.1-8b,hidden_size=64 --machine h100
2|'layers' is not FIELD=VALUE|groups l.npy --model checkout,layers --machine h100
2|vocab is '128K'; it must be a finite decimal number, without a unit|groups l.npy --model llama-3.1-8b,vocab=128K --machine h100
2|needs --model, such as --model llama-3.1-8b|groups l.npy --machine h100
2|no machine preset 'H100-80GB'; the nearest is 'h100'; there are a100-40, a100-80|groups l.npy $llama --machine H100-80GB
2|no machine preset 'rtx'; there are a100-40|groups l.npy $llama --machine rtx
2|nodes is '4x8'; it must be a number in 1..|groups l.npy $llama --machine h100:4x8
2|machine 'm.json:0': \`nodes\` is 0; it must be in 1..|groups l.npy $llama --machine m.json:0
2|machine 'm.json:2,nodes=3': nodes is given twice|groups l.npy $llama --machine m.json:2,nodes=3
1|cannot open no.json: No such file or directory|groups l.npy $llama --machine no.json:8
1|config.json: it has a 'model_type': it is a model's config.json, no machine's profile|groups l.npy $llama --machine checkout/config.json
1|2 fields of machine h100 are 0 or unknown; set them, for example nodes=4,hbm_bytes=80GiB|groups l.npy $llama --machine lacking.json
2|there is no field 'memory_bytes'; the nearest is 'hbm_bytes'|probe --machine h100 --set memory_bytes=80GiB
2|there is no field 'xyz'; there are nodes, gpus_per_node|probe --machine h100 --set xyz=1
2|hbm_bytes is '80Gb'; it must be a number of bytes or one with a unit, such as 80GB or 80GiB|probe --machine h100 --set hbm_bytes=80Gb
2|such as 50GB/s or, in bits, 400Gb/s|probe --machine h100 --set network_bytes_per_s=400G
2|such as 989TFLOPS: GFLOPS, TFLOPS, PFLOPS|probe --machine h100 --set flops_per_s=989T
2|gemm_efficiency is 45; it is a share, at most 1|groups l.npy $on --set gemm_efficiency=45
2|--reserve is '4Gb'; it must be a number of bytes or one with a unit|groups l.npy $on --reserve 4Gb
2|--reserve is '4.5'; it must be a whole number of MiB, or have a unit, such as 4GiB|groups l.npy $on --reserve 4.5
2|powers of 1024; a plain number is MiB|groups l.npy $on --reserve 4G
2|--pack-overhead is '20u'; it must be a number of nanoseconds or one with a unit, such as 20us: ns, us, ms, s|groups l.npy $on --pack-overhead 20u
2|--dp-overlap is 150%; it must be in 0..1|groups l.npy $on --dp-overlap 150%
2|--max-length is '128KiB'; it must be a number of tokens such as 131072 or 128K|groups l.npy $on --max-length 128KiB
2|--max-length is '1,000'; it must be a number of tokens|groups l.npy $on --max-length 1,000
2|--max-length is 0.3K, which is 307.2; it must be a whole number|groups l.npy $on --max-length 0.3K
2|--max-length is 1.5; it must be a whole number|groups l.npy $on --max-length 1.5
2|--max-length is '1e-400', which rounds to 0|groups l.npy $on --max-length 1e-400
2|--reserve is '1e-400GiB', which rounds to 0|groups l.npy $on --reserve 1e-400GiB
2|hbm_bytes is '1e-400GiB', which rounds to 0|probe --machine h100 --set hbm_bytes=1e-400GiB
2|--reserve is -1GiB; it must be at least 0|groups l.npy $on --reserve -1GiB
2|hbm_bytes is -1GiB; it must be finite and at least 0|probe --machine h100 --set hbm_bytes=-1GiB
2|gpus_per_node is 1e+30; it must be at most 2147483647|probe --machine h100 --set gpus_per_node=1e30
2|hbm_bytes is 1e+300; it must be at most|probe --machine h100 --set hbm_bytes=1e300
2|hbm_bytes is 1e+300; it must be at most|groups l.npy $llama --machine h100:2,hbm_bytes=1e300
2|nodes is 'x'; it must be a number in 1..|groups l.npy $llama --machine m.json:x
2|nodes is ''; it must be a number in 1..|groups l.npy $llama --machine m.json:
1|cannot open no.json|groups l.npy $llama --machine no.json:x
2|no machine preset '.'|groups l.npy $llama --machine .
2|gemm_efficiency is 3; it is a share, at most 1|machine h100 --set gemm_efficiency=3
2|gemm_efficiency is 3; it is a share, at most 1|probe -o saved.json --machine h100 --set gemm_efficiency=3
2|has 799999992 GPUs, nodes=99999999 of gpus_per_node=8; it must have at most 262144|groups l.npy $llama --machine h100 --nodes 99999999
2|nodes=32769 of gpus_per_node=8|groups l.npy $llama --machine h100:32769
2|--nodes is 0; it must be in 1..|groups l.npy $llama --machine h100 --nodes 0
1|llama-3.1-8b,layers=1e3 needs 460.1 GiB|groups l.npy --model llama-3.1-8b,layers=1e3 --machine h100
1|checkout,layers=1e3 needs 460.1 GiB|groups l.npy --model checkout,layers=1e3 --machine h100
2|is flops_per_s of the machine in operations per second, 989e12 or 989TFLOPS?|groups l.npy $llama --machine h100 --set flops_per_s=989
2|is flops_per_s of the machine in operations per second|plan absent.npy $llama --machine h100:1,flops_per_s=989
2|is flops_per_s of the machine in operations per second|step absent.npy $llama --machine m.json,flops_per_s=989
2|is flops_per_s of the machine in operations per second|compare absent.npy --model checkout --machine h100:1,flops_per_s=989
2|is flops_per_s of the machine in operations per second|plan absent.npy --model mine.json --machine m.json --set flops_per_s=989
1|is flops_per_s of the machine in operations per second|plan absent.npy $llama --machine slow.json
1|is flops_per_s of the machine in operations per second|plan absent.npy $llama --machine slow.json --set nodes=2
2|is 0; it must be in 1..|plan absent.npy --model llama-3.1-8b,heads=0 --machine h100
2|is 0; it must be in 1..|plan absent.npy --model checkout,heads=0 --machine m.json
2|ns of point 0|tasks clip-4 --machine h100:1,flops_per_s=989
1|give .npy, text, CSV, JSON lines, .idx, MDS, Parquet or Arrow|lengths raw.bin
1|no column 'length'; the header has id, n_tok; --column names the one of lengths|lengths named.csv
1|p.msgpack is no model's config.json; a model is a preset|groups l.npy --model p.msgpack --machine h100
2|64 GPUs are not a multiple of --tensor-parallel 3 x --stages 4; give --tensor-parallel 1, 2, 4, 8 or 16, or --replicas|vlm absent.csv $vlm:8 --tensor-parallel 3 --stages 4
2|64 GPUs are not a multiple of --tensor-parallel 4 x --stages 5; give --replicas|vlm absent.csv $vlm:8 --tensor-parallel 4 --stages 5
2|--tensor-parallel is 3, which does not share out the 48 heads and 8 key-value heads of internlm2-20b evenly; 1, 2, 4, 8 or 24 would do|vlm absent.csv $vlm:3 --tensor-parallel 3 --stages 4 --replicas 1
2|--micro-batches is 6; interleaved stages need a multiple of --stages 4|vlm absent.csv $vlm:8 --stages 4 --virtual-stages 2 --micro-batches 6
2|--max-vision is 3 and --max-tokens 0; give both or neither|vlm absent.csv $vlm:8 --stages 4 --max-vision 3
2|the machine has 64|vlm absent.csv $vlm:8 --stages 4 --replicas 100 --compare
2|--micro-batches-per-step is 3, which --micro-batch-multiple, 2, does not divide|plan absent.npy $on --samples-per-step 8 --micro-batches-per-step 3 --micro-batch-multiple 2
2|--micro-batches-per-step is 3, which --micro-batch-multiple, 2, does not divide|compare absent.npy $on --batches absent --micro-batches-per-step 3 --micro-batch-multiple 2
2|--equal-samples is for method search; first-fit-decreasing does not keep it|plan absent.npy $on --method first-fit-decreasing --equal-samples
2|--equal-samples is set; method flexsp does not plan for it|step absent.npy $on --method flexsp --equal-samples
2|--micro-batches is 2; with 2 virtual stages it must be a multiple of the 3 stages|stages absent.csv --stages 3 --micro-batches 2 --virtual-stages 2
1|cannot open absent.npy|plan absent.npy $on --method first-fit-decreasing
1|cannot open absent.csv|vlm absent.csv $vlm:8 --stages 4
1|more --stages, a larger --tensor-parallel or GPUs with more memory may do|vlm images.csv --vision-column vision --vlm internvl-1.5-26b --machine a100-40:1 --stages 1
1|what would do: --shard-ranks 40 on 5 nodes of 8 GPUs|groups l.npy --model llama-3.1-70b --machine a100-40 --shard-ranks 8
1|what would do: at least 10 nodes of 4 GPUs|groups l.npy --model llama-3.1-405b --machine gb200-nvl72:9
1|what would do: 11 nodes of 4 GPUs|groups l.npy --model llama-3.1-405b --machine gb200-nvl72:10 --max-length 4K --over-long truncate
2|--max-length is -5; it must be at least 0|groups l.npy $on --max-length -5
2|--effort is '2x'; it must be a whole number|plan l.npy $on --effort 2x
2|--link is '50GB'; it must be a number of bytes per second or one with a unit|stages layers.csv --stages 2 --link 50GB
2|a plain number is GB/s|stages layers.csv --stages 2 --link fast
2|--memory-limit is '80gb'; it must be|stages layers.csv --stages 2 --memory-limit 80gb
1|it is 75.0 GiB short; what would do: at least 3 nodes of 8 GPUs|groups l.npy --model llama-3.1-70b --machine h100:1
1|what would do: --zero 3|groups l.npy $llama --machine h100:1 --zero none
1|no number of nodes would do|groups l.npy --model llama-3.1-405b --machine h100:4,hbm_bytes=10GiB
1|--reserve keeps 90.0 GiB free on each GPU, which has 80.0 GiB: nothing is left for llama-3.1-8b|groups l.npy $on --reserve 90GiB
1|hbp: /dev/null is empty|lengths /dev/null
1|hbp: odd/dir/config.json, line 1: |groups l.npy --model odd/dir --machine h100
1|hbp: odd/dir/config.json, line 1: |groups l.npy --model odd/dir/,layers=2 --machine h100
1|hbp: odd/bad.json, line 1: |model odd/bad.json
1|hbp: odd/x.msgpack is no model's config.json|model odd/x.msgpack
1|hbp: ./odd/bad.json, line 1: |machine ./odd/bad.json:2
1|hbp: odd/x.msgpack: byte 0: |show odd/x.msgpack
1|hbp: $work/odd/x.msgpack has no column step|report $work/odd/x.msgpack -o odd/page.html
1|hbp: odd/x.msgpack: byte 0: |tasks clip-4 --machine h100:1 --schedule odd/x.msgpack
1|hbp: odd/bad.json, line 1: |plan l.npy --cost odd/bad.json
1|hbp: odd/bad.json, line 1: |tasks odd/bad.json --machine h100
1|hbp: odd/a.csv, line 2: |lengths odd/a.csv
1|hbp: odd/a.csv, line 1: no column 'vision'|vlm images.csv --vision odd/a.csv $vlm
1|hbp: odd/a.csv has no column |stages odd/a.csv --stages 2
1|hbp: odd/a.csv has no column |fit odd/a.csv $on
1|hbp: odd/a.csv: line 1 has|plan l.npy $on --batches odd/a.csv
1|hbp: odd/index.json: the shard s.mds is not beside the index|lengths odd
1|hbp: odd/index.json: the shard s.mds is not beside the index|lengths odd/
1|hbp: odd/bad.json: hwloc XML, line 1: |probe --xml odd/bad.json
1|hbp: odd/bad.json: NCCL topology, line 1: |probe --machine h100 --nccl-topo odd/bad.json
1|hbp: odd/a.csv: nccl-tests: no line with|probe --machine h100 --nccl-tests odd/a.csv --ranks 2
1|with --over-long truncate, split or drop|groups l.npy $llama --machine h100:1,hbm_bytes=32GiB --max-sp 1
1|such GPUs are needed|tasks clip-4 --machine a800-80:2 --memory-limit 1MiB
1|--reserve keeps 97.7 GiB free on each GPU, which has 80.0 GiB: nothing is left|tasks clip-4 --machine a800-80:2 --reserve 100000
1|--reserve keeps 90.0 GiB free on each GPU, which has 80.0 GiB: nothing is left|vlm v.csv --vision-column vision --vlm qwen2-vl-7b --machine h100:1 --reserve 90GiB
1|are not a plan file; hbp plan LENGTHS -o FILE makes one|show l.npy
2|--step is -1; it must be at least 0|show l.npy --step -1
2|no workload preset 'clip'; the nearest is 'clip-4'; there are clip-4, clip-7|tasks clip --machine h100
TABLE
}
rows=$((rows + 1))
"$hbp" plan l.npy $on --samples-per-step 999999 >out 2>err && grep -qF '1 step of 500 samples' out || fail "--samples-per-step 999999: $(cat out err)"
[ ! -e saved.json ] || fail "a share above 1 was saved"
[ $rows -ge 100 ] || fail "only $rows rows were tried"
exit $bad

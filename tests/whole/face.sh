#!/bin/sh
# What someone meets who types hbp for the first time: help in groups, whose examples run as printed from the root of the repository
# after its quickstart; wrong command lines, each answered by one line that names the thing, the value and the way out, and with the
# exit status that docs/command.md gives; files to write that are checked before anything is planned; hbp model and hbp machine.
# usage: face.sh PROGRAMS SOURCE
set -u
programs=$1 source=$2
. "$source/cmake/packages.sh"
hbp=$programs/hbp
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/line" "$work/tree/build" "$work/tree/examples" && cd "$work/line" || exit 1
bad=0 lines=0
fail() { echo "FAIL: $*"; bad=1; }
python=$(python_itself)

# wrong STATUS TEXT ARGUMENT...: that exit status, nothing on stdout, no new file, one line on stderr that holds the text.
wrong() {
    status=$1 text=$2
    shift 2
    lines=$((lines + 1))
    "$hbp" "$@" >../out 2>../err
    got=$?
    [ $got = "$status" ] || fail "hbp $*: exit status $got instead of $status: $(cat ../err)"
    [ ! -s ../out ] || fail "hbp $* printed on stdout"
    [ "$(wc -l <../err)" = 1 ] || fail "hbp $*: not one line on stderr: $(cat ../err)"
    grep -qF -- "$text" ../err || fail "hbp $*: '$(cat ../err)' lacks '$text'"
    [ "$(ls -A)" = "$here" ] || fail "hbp $* changed the folder: $(ls -A)"
}
has() { grep -qF -- "$1" ../out || fail "no '$1' in: $(cat ../out)"; }

# --- help ---
"$hbp" --help >../help 2>../err || fail "--help"
"$hbp" >../out 2>../err
[ $? = 2 ] && [ ! -s ../out ] && cmp -s ../help ../err || fail "hbp alone is not --help on standard error with exit status 2"
"$hbp" help | cmp -s - ../help && "$hbp" -h | cmp -s - ../help || fail "help, -h and --help differ"
groups=$(awk '/^`hbp help COMMAND`/ { exit } /^[a-z]/ && !/^usage|^start here/' ../help)
[ "$groups" = "look at lengths
plan
look at a plan
models, machines and what they cost
other" ] || fail "the groups of commands are '$groups'"
commands=$(sed -n 's/^  \([a-z]*\)  .*/\1/p; s/^  \(completion\) .*/\1/p' ../help)
[ "$(echo "$commands" | wc -l)" -ge 19 ] || fail "few commands: $commands"
[ "$(awk 'length > 110' ../help | wc -l)" = 0 ] || fail "--help is wide: $(awk 'length > 110' ../help)"
for command in $commands; do
    "$hbp" help "$command" >../out || fail "help $command"
    for asked in --help -h help; do
        [ "$command $asked" = "help help" ] || "$hbp" "$command" $asked | cmp -s - ../out || fail "hbp $command $asked is not hbp help $command"
    done
    has "usage: hbp $command"
    awk '/^examples/ { on = 1; next } on && /^  / { n++ } on && !NF { exit } END { exit n >= 2 && n <= 6 ? 0 : 1 }' ../out ||
        fail "help $command has no two or three examples"
    # What a number or a choice is where it is not given.
    awk '/^  --/ { if (option != "" && !said) print option; option = ""; said = /default|needed/ }
        /^  --[a-z-]+ (N|K|R|F|M|NS|MS|MIB|SIZE|SHARE|STEPS|TOKENS|POLICY|METHOD|STAGE|LAYERS|A:B|[A-Z]*B\/S)( |$)/ { option = $1 }
        /default|needed/ { said = 1 } END { if (option != "" && !said) print option }' ../out >../undefined
    [ ! -s ../undefined ] || fail "help $command gives no default of $(cat ../undefined)"
done
"$hbp" help --max-length >../out && has "hbp lengths, plan" && has "--max-length TOKENS" && has "131072"
"$hbp" help max-sp >../out && has "no SP degree above N"
"$hbp" help -o >../out && has "--output FILE"
{ "$hbp" help --man; "$hbp" methods; for command in $commands; do "$hbp" help "$command"; done; } >../all
grep -nE '(^|[^./a-z])hbp_[a-z]|HBP_[A-Z]' ../all | grep -v 'hbp_executor' && fail "help has names of C"
grep -nwE 'ways?|kinds?|room|told' ../all && fail "help has words of the sources"

# Every example, and those of --help, in a copy of what they need of the tree.
cd "$work/tree" || exit 1
cp -r "$source/examples/data" examples/
for program in hbp draw_lengths; do ln -s "$programs/$program" build/$program; done
build/draw_lengths "$source/examples/data/wikipedia.csv" build/lengths.npy 9000 0 131072
cp build/lengths.npy all.npy
build/draw_lengths "$source/examples/data/wikipedia.csv" few.npy "$([ "${HBP_ALL_ROUNDS:-}" ] && echo 9000 || echo 600)" 0 131072 # for what takes longest
PATH=$work/tree/build:$PATH
small=llama-3.1-8b,layers=2,hidden=128,ffn=384,heads=8,kv_heads=4,head_dim=16,vocab=512
if [ -n "$python" ]; then # what the quickstart measures
    hbp machine h100:1 --set gpus_per_node=2,domain_gpus=2 --json >/dev/null || fail "hbp machine --set"
    hbp probe --machine h100:1 --set gpus_per_node=2,domain_gpus=2 -o build/here.json >/dev/null || fail "hbp probe -o"
    hbp plan build/lengths.npy --model $small --machine build/here.json --zero none --fused-ce -o small.msgpack >/dev/null &&
        hbp dump small.msgpack >small.json || fail "a small plan"
    "$python" -c "
import json
print('# ranks: 2')
print('step,micro_batch,first_rank,sp,recompute,samples,tokens,sum_squares,time_ns')
for k, step in enumerate(json.load(open('small.json'))['steps']):
    for m, b in enumerate(step['micro_batches']):
        for p in b['packs']:
            print(k, m, p['rank'], p['sp'], p['recompute'], len(p['sample_ids']), p['padded_tokens'], p['squares'], p['ns'] * 5 // 4, sep=',')
" >build/packs.csv
fi
examples=0
# run_examples TITLE: the command lines in examples_of.
run_examples() {
    sed 's/^  //' examples_of >script
    [ -s script ] || fail "$1 has no example"
    examples=$((examples + $(grep -c '^[a-z]' script)))
    sh -e script >out 2>err || fail "the examples of $1: $(cat err)"
    [ ! -s err ] || fail "the examples of $1 say: $(cat err)"
}
awk '/^start here/ { on = 1; next } !NF { on = 0 } on' "$work/help" >examples_of
run_examples "hbp --help"
[ "$(grep -c '^hbp ' script)" = 3 ] || fail "--help has not three commands to start with"
for command in $commands; do
    case $command in fit) [ -n "$python" ] || continue ;; esac
    case $command in compare | step) cp few.npy build/lengths.npy ;; *) cp all.npy build/lengths.npy ;; esac
    hbp help "$command" | awk '/^examples/ { on = 1; next } !NF { on = 0 } on' >examples_of
    run_examples "hbp help $command"
done
cd "$work/line" || exit 1

# --- wrong command lines ---
printf '5\n70\n900\n' >l.txt
printf 'id,tokens,num_tokens\n1,7,8\n' >c.csv
mkdir folder
echo 'x' >batches.txt
here=$(ls -A)
on="--model llama-3.1-8b --machine h100:1"

# Commands: the nearest, or what stands where it should not.
for typo in pln:plan plans:plan lenghts:lengths lengts:lengths grops:groups compre:compare comapre:compare stpe:step stage:stages vml:vlm \
    task:tasks sho:show trce:trace validte:validate dmp:dump probee:probe ft:fit mthods:methods completon:completion hlp:help \
    modl:model mashine:machine PLAN:plan --plan:plan --lengths:lengths; do
    wrong 2 "there is no command '${typo%%:*}'; did you mean ${typo#*:}?" "${typo%%:*}"
done
wrong 2 "there is no command 'pln'; did you mean hbp help plan?" help pln
wrong 2 "there is no option '--max-lenth'; did you mean hbp help --max-length?" help --max-lenth
wrong 2 "there is no command or option 'qwertz'; hbp help lists the commands" help qwertz
wrong 2 "there is no command 'absent.npy'; the command goes first, hbp plan absent.npy" absent.npy plan
wrong 2 "the command goes first, hbp plan l.txt" l.txt plan
wrong 2 "there is no command 'l.txt'; the command goes before the file, as in hbp lengths l.txt" l.txt
wrong 2 "'--json' stands before the command" --json plan l.txt
wrong 2 "'-o' stands before the command" -o plan.msgpack plan l.txt
wrong 2 "did you mean hbp --version?" version
wrong 2 "'plan' is one command too many; did you mean hbp plan l.txt?" plan plan l.txt
wrong 2 "there is no command 'xylophone'; see hbp --help" xylophone
wrong 2 "there is no completion for 'bsh'; the shells are bash, zsh and fish; did you mean bash?" completion bsh

# Options: the nearest, the commands that have it, values that are missing or too many.
for typo in modle:model machin:machine max-lenght:max-length maxlength:max-length max_length:max-length max-len:max-length \
    sampels-per-step:samples-per-step tokens-per-stp:tokens-per-step batch:batches thread:threads jsn:json outptu:output metod:method \
    compositon:composition MODEL:model Seed:seed zero3:zero over-lang:over-long colum:column curiculum:curriculum; do
    wrong 2 "unknown option '--${typo%%:*}'; did you mean --${typo#*:}?" plan l.txt "--${typo%%:*}" 3
done
wrong 2 "unknown option '-output'; did you mean --output?" plan l.txt -output x
wrong 2 "unknown option '-json'; did you mean --json?" plan l.txt -json
wrong 2 "unknown option '-ox'; did you mean -o x?" plan l.txt -ox
wrong 2 "unknown option '-m'; options of one letter are -o FILE and -h" plan l.txt -m llama-3.1-8b
wrong 2 "--model is no option of hbp show, but of hbp plan, " show l.txt --model llama-3.1-8b
wrong 2 "unknown option '--compar'; the nearest, --compare, is one of hbp step, vlm, tasks" plan l.txt --compar
wrong 2 "unknown option '--qwertz'; see hbp plan --help" plan l.txt --qwertz
wrong 2 "hbp groups writes no file, so it has no -o" groups l.txt -o x
wrong 2 "--seed needs a value, N" plan l.txt --seed
wrong 2 "--model needs a value, NAME, and --machine is an option" plan l.txt --model --machine h100
wrong 2 "--column needs a value, NAME, and '' is empty" plan l.txt --column ''
wrong 2 "--output needs a value, FILE, and '' is empty" plan l.txt -o ''
wrong 2 "--json takes no value, and 'yes' is one" plan l.txt --json=yes
wrong 2 "'extra' is one argument too many; hbp plan takes one FILE" plan l.txt extra
wrong 2 "'x' is one argument too many; hbp probe takes options alone" probe x
wrong 2 "FILE of hbp plan is empty" plan ''
wrong 2 "hbp plan needs FILE; hbp plan --help has examples" plan
wrong 2 "'--model' is one argument too many" plan -- l.txt --model x

# Values: ranges, choices, names.
wrong 2 "--effort is 12; it must be in 0..9" plan l.txt --effort 12
wrong 2 "--dp-overlap is 2; it must be in 0..1" plan l.txt --dp-overlap 2
wrong 2 "--seed is 'x'; it must be a whole number" plan l.txt --seed x
wrong 2 "--max-length is -5; it must be at least 0" plan l.txt --max-length -5
wrong 2 "--max-length is '12Q'" plan l.txt --max-length 12Q
wrong 2 "--zero is '5'; it must be one of 1, 2, 3, none" plan l.txt --zero 5
wrong 2 "it must be one of error, drop, truncate, split; did you mean drop?" plan l.txt --over-long dorp
wrong 2 "did you mean stratified?" plan l.txt --composition straified
wrong 2 "did you mean flexsp?" plan l.txt --method flexps
wrong 2 "--format is 'cvs'; it must be one of npy, text, csv, jsonl, idx" lengths l.txt --format cvs
wrong 2 "the nearest is 'llama-3.1-8b'" plan l.txt --model llama-3.1-9b --machine h100
wrong 2 "the nearest is 'h100'" plan l.txt --model llama-3.1-8b --machine h1000
wrong 2 "layer" plan l.txt --model llama-3.1-8b,layer=4 --machine h100
wrong 2 "nodes" plan l.txt --model llama-3.1-8b --machine h100:0
wrong 2 "'colour'" plan l.txt $on --set colour=1
wrong 2 "colour" probe --set colour=1
wrong 2 "internvl-1.5-26b" vlm l.txt --vlm internvl-1.5 --machine a100-80
wrong 2 "the nearest is 'clip-4'" tasks clip-5 --machine a800-80
wrong 2 "the nearest is 'llama-3.1-8b'" model llama-3.1-9b
wrong 2 "the nearest is 'h100'" machine h1000
wrong 2 "--micro-batches is '3:2'; it must not begin above its end" step l.txt $on --micro-batches 3:2

# Options that need or exclude one another, whatever the files hold: there are none here.
wrong 2 "hbp plan needs --model, such as --model llama-3.1-8b" plan absent.npy --machine h100
wrong 2 "hbp step needs --machine, such as --machine h100:4" step absent.npy --model llama-3.1-8b
wrong 2 "hbp vlm needs --vlm" vlm absent.csv --machine h100
wrong 2 "hbp stages needs --stages, the number of pipeline stages" stages absent.csv
wrong 2 "hbp trace needs -o FILE" trace absent.msgpack
wrong 2 "--nccl-tests needs --ranks: the text does not name the number of GPUs" probe --nccl-tests absent.txt
wrong 2 "--ranks needs --nccl-tests" probe --ranks 4
wrong 2 "--layers needs --layers-vision" vlm absent.csv --layers absent.csv --machine h100
wrong 2 "--steps is 'x'; it must be a number of steps" trace absent.msgpack -o x.json --steps x
wrong 2 "--steps is '3:1'; it must be a number of steps" trace absent.msgpack -o x.json --steps 3:1
wrong 2 "--steps 3:5 says where to begin" trace absent.msgpack -o x.json --step 3 --steps 3:5
wrong 1 "cannot open absent.msgpack" trace absent.msgpack -o x.json --steps 3:5
wrong 2 "--model needs --machine: a cost is made of both; they go together" validate absent.msgpack --model llama-3.1-8b
wrong 2 "--graph needs --machine" validate absent.msgpack --graph clip-4
wrong 2 "--machine and --xml exclude one another: each describes a machine; leave one of them out" probe --machine h100 --xml absent.xml
wrong 2 "--cost and --max-sp exclude one another: a cost file has all terms already" plan absent.npy --cost absent.json --max-sp 4
wrong 2 "--samples-per-step and --tokens-per-step exclude one another" plan absent.npy $on --samples-per-step 4 --tokens-per-step 4K
wrong 2 "--batches and --drop-last exclude one another: batches say what each step holds" plan absent.npy $on --batches absent.txt --drop-last
wrong 2 "--compare and --method exclude one another" step absent.npy $on --compare --method flexsp
wrong 2 "--compare and -o exclude one another" tasks clip-4 --machine h100 --compare -o x.msgpack
wrong 2 "--schedule and --previous exclude one another" tasks clip-4 --machine h100 --schedule absent --previous absent
wrong 2 "--skip and --link-column exclude one another" step absent.csv $on --skip 4 --link-column x
wrong 2 "composition hierarchy and --samples-per-step exclude each other" plan l.txt $on --composition hierarchy --samples-per-step 2
wrong 2 "--equal-samples is for method search; no-packing does not keep it" plan l.txt $on --method no-packing --equal-samples
wrong 2 "--lockstep-ranks is 3; ZeRO-3 gathers weights over 8 ranks" plan l.txt $on --lockstep-ranks 3
wrong 2 "--machine is for one model; name it" model --machine h100
wrong 2 "--set is for one machine; name it" machine --set nodes=2

# Files: what is read, what would be written.
wrong 1 "cannot open absent.npy" plan absent.npy $on
wrong 1 "cannot open absent.json" plan l.txt --model absent.json --machine h100
wrong 1 "cannot open absent.json" plan l.txt --model llama-3.1-8b --machine absent.json
wrong 1 "cannot open absent.json" plan l.txt --cost absent.json
wrong 1 "cannot open absent.txt" plan l.txt $on --batches absent.txt
wrong 1 "batches.txt: line 1 has 'x', which is no sample's number" plan l.txt $on --batches batches.txt
wrong 1 "--max-vision is 3, but the lengths have no vision units" plan l.txt $on --max-vision 3
wrong 1 "cannot open absent.json" tasks absent.json --machine h100
for command in "plan l.txt $on" "step l.txt $on" "probe --machine h100" "tasks clip-4 --machine a800-80" "stages c.csv --stages 2" \
    "fit c.csv $on" "vlm c.csv --vlm qwen2-vl-7b --machine h100" "trace l.txt" "dump l.txt"; do
    wrong 1 "cannot write -o nowhere/x: there is no folder nowhere; make it first" $command -o nowhere/x
    wrong 1 "cannot write -o folder: it is a folder; give the name of a file in it" $command -o folder
    wrong 1 "cannot write -o folder/: it is a folder" $command -o folder/
    wrong 1 "cannot write -o l.txt/x: l.txt is no folder" $command -o l.txt/x
    wrong 2 "-o is '-', which is no file's name" $command -o -
done
for option in --trace --run-out --graph-out; do
    wrong 1 "cannot write $option nowhere/x: there is no folder nowhere; make it first" tasks clip-4 --machine a800-80 $option nowhere/x
    wrong 2 "x is given for two files to write, by -o and by $option; give two names" tasks clip-4 --machine a800-80 -o x $option x
done
wrong 2 "l.txt is read and would be written over by -o; give another file to write" plan l.txt $on -o l.txt
wrong 2 "./l.txt is read and would be written over by -o" plan l.txt $on -o ./l.txt
if [ "$(id -u)" != 0 ]; then
    chmod 555 folder
    wrong 1 "cannot write -o folder/x: folder folder: Permission denied" plan l.txt $on -o folder/x
    chmod 755 folder
fi
"$hbp" plan l.txt $on -o /dev/null >../out 2>../err || fail "-o /dev/null: $(cat ../err)"
[ -c /dev/null ] || fail "-o /dev/null took its place"

# The same rule for every command: an unknown option is wrong usage, an absent file a failure.
for command in $commands; do
    [ "$command" = help ] || wrong 2 "unknown option '--qwertz'; see hbp $command --help" "$command" --qwertz
    case $command in
    lengths | show | validate | dump) with= ;;
    plan | groups | compare | step | fit) with=$on ;;
    vlm) with='--vlm qwen2-vl-7b --machine h100' ;;
    stages) with='--stages 2' ;;
    tasks) with='--machine h100' ;;
    trace | expand) with='-o x.json' ;;
    *) continue ;;
    esac
    wrong 1 "absent.json" "$command" absent.json $with
    wrong 2 "hbp $command needs " "$command" $with
done

# --- a column that was found ---
"$hbp" lengths c.csv >../out && has "lengths are of column 'tokens', the first there of length, len, tokens and num_tokens; --column names another"
"$hbp" plan c.csv $on >../out && has "lengths are of column 'tokens'" && has "tokens (5 %, median, 95 %)"
"$hbp" lengths c.csv --column num_tokens >../out && has "lengths are of column 'num_tokens', as --column says"
"$hbp" lengths l.txt >../out && ! grep -q column ../out || fail "a file without names has a column"

# --- presets ---
"$hbp" model >../out && for name in $("$hbp" completion bash | sed -n "s/.*--model) values='\([^']*\)'.*/\1/p" | head -n 1); do has "$name"; done
has "heads / KV" && has "parameters"
[ "$(grep -c '^  [a-z]' ../out)" -ge 20 ] || fail "hbp model lists few models"
"$hbp" machine >../out && has "h100" && has "989 TFLOP/s" && has "NVLink domain"
"$hbp" model llama-3.1-8b >../out && has "8,030,261,248 parameters" && has "ZeRO stage" && has "512 GPUs" && has "14,336"
"$hbp" model llama-3.1-8b --machine h100:4 >../out && has "32 GPUs" && has ", fits" && has ", too much"
"$hbp" machine h100:4,network_bytes_per_s=25e9 >../out && has "25.0 GB/s  given" && has "32 GPUs: 2.5 TiB of memory, 31.6 PFLOP/s"
[ $lines -ge 60 ] && [ $examples -ge 40 ] || fail "only $lines wrong lines and $examples examples"
[ $bad = 0 ] && echo "$lines wrong command lines, $examples examples"
exit $bad

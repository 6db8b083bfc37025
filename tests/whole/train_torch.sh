#!/bin/sh
# The PyTorch trainer on four processes of this machine: SP groups of several degrees in one micro-batch, packs that
# recompute, dummies; loss and gradients are those of one rank. Skipped, 77, where no Python has PyTorch and numpy.
# usage: train_torch.sh LIBHBP SOURCE
set -u
library=$1 source=$2
for python in python3 /usr/bin/python3 none; do
    "$python" -c "import torch, numpy, torch.distributed as d; assert d.is_gloo_available()" 2>/dev/null && break
done
[ "$python" != none ] || { echo "no PyTorch"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bad=0
fail() { echo "FAIL: $*"; bad=1; }
export HBP_LIBRARY="$library" PYTHONPATH="$source/bindings/python/src" PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=1
export GLOO_SOCKET_IFNAME=lo MASTER_ADDR=127.0.0.1
small="--cpu --layers 4 --hidden 32 --ffn 96 --vocab 128 --batch 12 --longest 400"

# train NAME ARGUMENT...: four ranks as torchrun starts them, each of which is ended before the test is.
train() {
    name=$1
    shift
    MASTER_PORT=$("$python" -c "import socket; s = socket.socket(); s.bind(('127.0.0.1', 0)); print(s.getsockname()[1])")
    export MASTER_PORT WORLD_SIZE=4
    pids=
    for rank in 0 1 2 3; do
        RANK=$rank LOCAL_RANK=$rank timeout 200 "$python" "$source/examples/train_torch.py" $small --tokens-per-rank 96 \
            --steps 2 --check --timeline "$work/$name.csv" --save-cost "$work/cost.json" "$@" \
            >"$work/$name$rank" 2>"$work/err$rank" &
        pids="$pids $!"
    done
    for pid in $pids; do
        wait "$pid" || fail "a rank ended with status $?: $(tail -n 3 "$work"/err*)"
    done
    cat "$work/${name}0"
    [ "$(grep -c "against one rank" "$work/${name}0")" = 2 ] || fail "not both steps were checked"
}
train few --batch 3 --seed 0 # packs that do not fill the ranks
grep -q "SP .*<1x3>" "$work/few0" || fail "no pack was a dummy"
train many --seed 37
grep -q "SP .*<2,1x2>" "$work/many0" || fail "no micro-batch had groups of several degrees"
grep -qE "[1-9][0-9]* layers recomputed" "$work/many0" || fail "no layer was recomputed"

# What it measured is a timeline of every pack.
"$python" - "$work/many.csv" "$work/cost.json" "$work/few.csv" <<'EOF' || fail "the timeline is not that of the run"
import sys
import hbp
t = hbp.Timeline.load(sys.argv[1])
assert t.ranks == 4 and set(t.step) == {0, 1} and set(t.sp) == {1, 2, 4}, t
for step in (0, 1):
    for micro_batch in range(t.micro_batch[t.step == step].max() + 1):
        ran = (t.step == step) & (t.micro_batch == micro_batch)
        ranks = sorted(r for first, sp in zip(t.first_rank[ran], t.sp[ran]) for r in range(first, first + sp))
        assert ranks == [0, 1, 2, 3], ranks
assert t.compare(hbp.Cost.load(sys.argv[2])).packs == (t.samples > 0).sum()
assert 0 < t.recompute.max() <= 4 and (t.time_ns > 0).all()
few = hbp.Timeline.load(sys.argv[3])
assert (few.samples == 0).any() and (few.time_ns > 0).all()
EOF

# Heads that cannot be shared out: the library says so, in one line.
unset WORLD_SIZE MASTER_PORT
"$python" "$source/examples/train_torch.py" $small --heads 5 >"$work/out" 2>"$work/err" && fail "5 heads shared 2 KV heads"
grep -q "kv_heads is 2, which does not divide heads, 5" "$work/err" || fail "heads: $(tail -n 3 "$work/err")"
[ $bad = 0 ] && echo "four ranks train as one"
exit $bad

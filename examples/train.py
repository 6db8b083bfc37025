#!/usr/bin/env python3
"""Walk a plan as a trainer would, with numpy alone: train.py [plan.msgpack | lengths.npy] [--rank R] [--steps N]"""

import argparse
from pathlib import Path

import numpy as np

import hbp


def draw_lengths(count: int) -> np.ndarray:
    """A mixture of the data sets whose quantiles lie in examples/data; vlm.csv, with two sizes, is left out."""
    random, parts = np.random.default_rng(0), []
    files = sorted(file for file in (Path(__file__).parent / "data").glob("*.csv") if file.stem != "vlm")
    for file in files:
        rows = [line.split(",") for line in file.read_text().splitlines() if line[:1].isdigit()]
        quantile, length = np.array(rows, float).T
        parts.append(np.interp(random.random(count // len(files)), quantile, length))
    lengths = np.concatenate(parts).astype(np.uint32)
    random.shuffle(lengths)
    return lengths


def make_plan(path: str) -> hbp.Plan:
    """Every rank may make the plan itself: the same arguments give the same bytes."""
    if path.endswith(".msgpack"):
        return hbp.Plan.load(path)
    lengths = hbp.Lengths.read(path) if path else hbp.Lengths.from_array(draw_lengths(60000))
    cost = hbp.Cost(hbp.Model.preset("llama-3.1-8b"), hbp.Machine.preset("h100", nodes=2))
    return hbp.plan_epoch(lengths, cost, max_length=131072, over_long="truncate", seed=0)


def train_pack(pack: hbp.Pack) -> np.ndarray:
    """Stands for forward and backward: the sum of token losses of each sample. A padding pack has no sample, yet its
    rank runs it, or the others would wait for its gradients for ever."""
    tokens = np.ones(pack.tokens)  # would be the samples pack.ids, end to end; attention stops at pack.cu_seqlens
    return np.add.reduceat(tokens, pack.cu_seqlens[:-1]) if len(pack) else np.zeros(0)


parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("file", nargs="?", default="", help="a plan, or lengths as hbp.Lengths.read takes them")
parser.add_argument("--rank", type=int, default=0)
parser.add_argument("--steps", type=int, default=3)
options = parser.parse_args()

plan = make_plan(options.file)
print(plan.summary())
for step in (plan.step(index) for index in range(min(options.steps, len(plan)))):
    loss = 0.0  # the losses of all ranks add up to that of the step
    print(f"step {step.index}: {step.samples} samples, {step.loss_tokens} loss tokens")
    for pack in step.for_rank(options.rank):
        loss += float(step.pack_weights(pack) @ train_pack(pack)) / pack.sp  # each rank of the group has its share
        print(f"  ranks {pack.ranks.start}-{pack.ranks.stop - 1}: {len(pack)} samples, {pack.tokens} tokens, "
              f"longest {pack.max_seqlen}, {pack.recompute} layers recomputed, ids {pack.ids[:4]} ...")
    checkpoint = plan.save_cursor(step.index + 1)
    print(f"  this rank's share of the loss is {loss:.4f}; resume at step {plan.load_cursor(checkpoint)}")

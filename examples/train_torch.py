#!/usr/bin/env python3
"""Train a small Llama-shaped model in PyTorch, planned step by step, with SP groups that change from pack to pack:
torchrun --nproc-per-node 4 examples/train_torch.py [--check] [--timeline FILE], or alone on one device."""

import argparse
import dataclasses
import datetime
import os
import platform
import sys
import time

import numpy as np
import torch
import torch.distributed as dist

import hbp
from llama_torch import Layer, Llama, Part

PATIENCE = datetime.timedelta(seconds=120)  # for a rank that is gone or hangs, in every group


def draw_lengths(o, step):
    """A batch: mostly short samples, a few long ones. Every rank draws the same."""
    drawn = np.exp(np.random.default_rng([o.seed, step]).normal(4.6, 1.1, o.batch))
    return np.clip(drawn, 8, o.longest).astype(np.int64)


def columns_of(o, step, ids, lengths, weights, total):
    """Tokens, targets and weights of samples laid end to end, padded to `total`: counting by a stride of their own."""
    tokens, targets, weight = np.zeros(total, np.int64), np.zeros(total, np.int64), np.zeros(total, np.float32)
    end = 0
    for sample, length, factor in zip(ids, lengths, weights):
        first, stride = np.random.default_rng([o.seed, step, sample]).integers(0, [o.vocab, 8])
        text, begin, end = (first + stride * np.arange(length + 1)) % o.vocab, end, end + length
        tokens[begin:end], targets[begin:end], weight[begin:end] = text[:-1], text[1:], factor
    return tokens, targets, weight


def part_of(o, step, plan, pack, groups, rank, device):
    """This rank's part of a pack. A padding pack holds padding alone, or the others would wait for its gradients for ever."""
    total = max(pack.padded_tokens, o.pack_multiple)
    borders = pack.cu_seqlens_padded if len(pack) else np.array([0, total])
    columns = columns_of(o, step, pack.ids, pack.lengths, plan.step(0).pack_weights(pack), total)
    group = groups[pack.first_rank, pack.sp]
    return Part(columns, borders, device, pack.sp, rank - pack.first_rank, group, pack.recompute)


def check_step(o, step, plan, model, loss, device):
    """Whether loss and gradients are those of the samples run one by one on one rank."""
    weights = list(model.parameters())
    packed, whole = [weight.grad.clone() for weight in weights], 0.0
    model.zero_grad()
    for sample, length, factor in zip(plan.sample_ids, plan.sample_tokens, plan.loss_weights(0)):
        share = model(Part(columns_of(o, step, [sample], [length], [factor], length), np.array([0, length]), device))
        share.backward()
        whole += share.item()
    worst = max(((mine - w.grad).norm() / w.grad.norm()).item() for mine, w in zip(packed, weights))
    print(f"  against one rank: loss off by {abs(loss - whole) / whole:.1e}, gradients by at most {worst:.1e}")
    for mine, weight in zip(packed, weights):
        weight.grad = mine
    return abs(loss - whole) <= 1e-5 * whole and worst <= 1e-5


def make_cost(o, ranks, device):
    """Planning needs to know what a pack costs: a fitted cost, a GPU's preset, or rough numbers for a CPU."""
    if o.cost:
        cost = hbp.Cost.load(o.cost)
        planned = cost.terms()
        if (planned.ranks, planned.layers) != (ranks, o.layers):
            raise ValueError(f"{o.cost} is of {planned.ranks} ranks and {planned.layers} layers; this run has {ranks} and "
                             f"{o.layers}")
        return cost
    model = hbp.Model(layers=o.layers, hidden=o.hidden, ffn=o.ffn, heads=o.heads, kv_heads=o.kv_heads, vocab=o.vocab)
    if device.type == "cuda":
        gpus = torch.cuda.device_count()
        machine = hbp.Machine.preset(o.machine, nodes=max(1, ranks // gpus))
        machine.set_field("gpus_per_node", min(ranks, gpus), "this machine")
        machine.set_field("domain_gpus", min(ranks, gpus), "this machine")
        machine.set_field("hbm_bytes", torch.cuda.get_device_properties(device).total_memory, "this machine")
    else:
        machine = hbp.Machine(nodes=1, gpus_per_node=ranks, domain_gpus=ranks, hbm_bytes=8 << 30, hbm_bytes_per_s=1e10,
                              flops_per_s=3e10, gemm_efficiency=0.8, attention_efficiency=0.3, nvlink_bytes_per_s=1e9,
                              network_bytes_per_s=1e9, nvlink_latency_ns=1e5, network_latency_ns=1e5)
    cost = hbp.Cost(model, machine, zero_stage=0, reserve_bytes=None if device.type == "cuda" else 0)
    if o.tokens_per_rank:  # memory as if a rank held no more without recomputing: long samples then need SP
        cost = hbp.Cost.from_terms(dataclasses.replace(cost.terms(), limit_bytes=cost.predict_bytes(o.tokens_per_rank)))
    return cost


def agree(value, device):
    """Whether a number below 2^63 is the same on all ranks: they plan for themselves, and a plan that differs on one
    of them would be a hang."""
    mine = torch.tensor([value, -value], device=device)
    dist.all_reduce(mine, dist.ReduceOp.MAX)
    return mine[0].item() == -mine[1].item()


def save_timeline(path, rows, ranks, device):
    """A line for each pack, from when the last of its ranks could begin until the last of them ended."""
    everyone = [None] * ranks
    dist.all_gather_object(everyone, rows)
    if dist.get_rank():
        return
    columns = {name: [] for name in rows[0]}
    for same in zip(*everyone):  # what each rank ran in one micro-batch
        for row in (row for rank, row in enumerate(same) if row["first_rank"] == rank):
            group = same[row["first_rank"] : row["first_rank"] + row["sp"]]
            start = max(mine["start_ns"] for mine in group)
            end = max(mine["start_ns"] + mine["time_ns"] for mine in group)
            row.update(start_ns=start, time_ns=end - start, peak_bytes=max(mine["peak_bytes"] for mine in group))
            for name, value in row.items():
                columns[name].append(value)
    if device.type == "cpu":
        del columns["peak_bytes"]  # not known
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.processor() or platform.machine()
    hbp.Timeline(ranks=ranks, device=name, date=str(datetime.date.today()), **columns).save(path)


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, value in dict(steps=4, batch=24, longest=1500, layers=4, hidden=192, ffn=512, heads=8, kv_heads=2,
                            vocab=512, seed=0).items():
        parser.add_argument("--" + name.replace("_", "-"), type=int, default=value, help=f"default {value}")
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--tokens-per-rank", type=int, help="plan as if memory held no more; default 384 on CPUs")
    parser.add_argument("--machine", default="h100", help="preset of GPUs to plan for")
    parser.add_argument("--cost", help="a cost to plan with, as hbp fit writes it")
    parser.add_argument("--save-cost", help="write the cost that it plans with")
    parser.add_argument("--timeline", help="write what was measured, for hbp fit")
    parser.add_argument("--check", action="store_true", help="compare with one rank; exit status 1 where it differs")
    parser.add_argument("--cpu", action="store_true", help="even where there is a GPU")
    o = parser.parse_args()
    if o.steps < 1:
        parser.error(f"--steps is {o.steps}; at least 1")
    return o


def train(o, device):
    rank, ranks, rows = dist.get_rank(), dist.get_world_size(), []
    cost = make_cost(o, ranks, device)
    if o.save_cost and rank == 0:
        cost.save(o.save_cost)
    o.pack_multiple = ranks  # every SP degree divides it
    groups = {}
    for group in hbp.list_communicators(cost, pack_multiple=o.pack_multiple):  # in the same order on every rank
        members = dist.new_group(list(group.ranks), timeout=PATIENCE) if group.sp > 1 else None
        groups[group.first_rank, group.sp] = members
    torch.manual_seed(o.seed)  # the same weights on every rank
    model = Llama(o).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=o.lr)
    half = torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda" and not o.check)

    def now():  # ns; where packs are measured, the device has done what it was given
        if device.type == "cuda" and o.timeline:
            torch.cuda.synchronize()
        return time.monotonic_ns()

    dist.barrier()
    begun = now()
    stepper = hbp.Stepper(cost, pack_multiple=o.pack_multiple)
    for step, plan in stepper.plans(range(o.steps), lambda step: draw_lengths(o, step)):
        if not agree(plan.digest >> 1, device):
            sys.exit("the ranks' plans differ")
        loss, Layer.runs, packs = torch.zeros((), device=device), 0, plan.step(0).for_rank(rank)
        for micro_batch, pack in enumerate(packs):
            part = part_of(o, step, plan, pack, groups, rank, device)
            if device.type == "cuda":
                torch.cuda.reset_peak_memory_stats()
            start = now()
            with half:
                share = model(part)
            share.backward()
            time_ns = now() - start
            loss += share.detach()
            peak = torch.cuda.max_memory_allocated() if device.type == "cuda" else 0
            lengths = np.diff(part.borders)
            rows.append(dict(step=step, micro_batch=micro_batch, first_rank=pack.first_rank, sp=pack.sp,
                             recompute=pack.recompute, samples=len(pack), tokens=int(lengths.sum()),
                             sum_squares=int((lengths.astype(np.int64) ** 2).sum()), start_ns=start - begun,
                             time_ns=time_ns, peak_bytes=peak))
        for tensor in (loss, *(weight.grad for weight in model.parameters())):
            dist.all_reduce(tensor)  # sums: the weights of the loss divide already
        if rank == 0:
            print(f"step {step}: {plan.step(0).samples} samples, {plan.step(0).tokens} tokens, SP "
                  f"{' '.join(plan.step(0).groups())}, {plan.pack_recompute.max()} layers recomputed, "
                  f"loss {loss.item():.4f}", flush=True)
        if o.check:
            good = Layer.runs == sum(o.layers + pack.recompute for pack in packs)  # no layer recomputed but the plan's
            if rank == 0:
                good = check_step(o, step, plan, model, loss.item(), device) and good
            if not agree(int(good), device) or not good:
                sys.exit(f"rank {rank}: step {step} is {'as it should be, another rank says no' if good else 'wrong'}")
        optimizer.step()
        optimizer.zero_grad()
    if o.timeline:
        save_timeline(o.timeline, rows, ranks, device)


if __name__ == "__main__":
    settings = options()
    cuda = torch.cuda.is_available() and not settings.cpu
    here = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0))) if cuda else torch.device("cpu")
    if cuda:
        torch.cuda.set_device(here)
    alone = {} if "RANK" in os.environ else dict(store=dist.HashStore(), rank=0, world_size=1)
    dist.init_process_group("nccl" if cuda else "gloo", timeout=PATIENCE, **alone)
    if settings.tokens_per_rank is None:
        settings.tokens_per_rank = 0 if cuda or dist.get_world_size() == 1 else 384
    try:
        train(settings, here)
    except (hbp.HbpError, ValueError) as error:  # the same on every rank: each plans for itself
        sys.exit(f"rank {dist.get_rank()}: {error}")
    dist.destroy_process_group()

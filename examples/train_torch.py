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
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

import hbp

try:
    from flash_attn import flash_attn_varlen_func
except ImportError:
    flash_attn_varlen_func = None


class AllToAll(torch.autograd.Function):
    """Ulysses: [tokens / sp, sp, heads / sp, dim], some tokens of all heads, <-> [sp, tokens / sp, heads / sp, dim],
    all tokens of some heads. Backward is the way back."""

    @staticmethod
    def forward(ctx, mine, group, to_heads):
        ctx.group, ctx.to_heads = group, to_heads
        send = (mine.transpose(0, 1) if to_heads else mine).contiguous()
        got = torch.empty_like(send)
        dist.all_to_all_single(got, send, group=group)
        return got if to_heads else got.transpose(0, 1)

    @staticmethod
    def backward(ctx, gradient):
        return AllToAll.apply(gradient, ctx.group, not ctx.to_heads), None, None


class Part:
    """What a rank runs of a pack: its chunk of the tokens, the borders of all documents, the group that shares them."""

    def __init__(self, columns, borders, device, sp=1, sp_rank=0, group=None, recompute=0):
        self.borders, self.sp, self.group, self.recompute = borders, sp, group, recompute
        count = int(borders[-1])
        positions = np.arange(count) - np.repeat(borders[:-1], np.diff(borders))  # restart in every document
        mine = slice(sp_rank * count // sp, (sp_rank + 1) * count // sp)
        chunks = [torch.from_numpy(column[mine]).to(device) for column in (*columns, positions)]
        self.tokens, self.targets, self.weights, self.positions = chunks


def turn(x, positions):
    """Rotary positions, [tokens, heads, dim]."""
    turns = 1e4 ** -torch.arange(0, 1, 2 / x.shape[-1], dtype=torch.float64, device=x.device)
    angles = positions[:, None, None] * turns
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    a, b = x.chunk(2, -1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


def attend(q, k, v, borders):
    """Causal attention within every document, [tokens, heads, dim]."""
    if flash_attn_varlen_func and q.is_cuda and q.dtype in (torch.float16, torch.bfloat16):
        cu_seqlens, longest = torch.tensor(borders, dtype=torch.int32, device=q.device), int(np.diff(borders).max())
        return flash_attn_varlen_func(q, k, v, cu_seqlens, cu_seqlens, longest, longest, causal=True)
    outputs = []
    for begin, end in zip(borders[:-1], borders[1:]):
        heads = [x[begin:end].repeat_interleave(q.shape[1] // x.shape[1], 1).transpose(0, 1)[None] for x in (q, k, v)]
        if hasattr(F, "scaled_dot_product_attention"):  # PyTorch 2
            output = F.scaled_dot_product_attention(*heads, is_causal=True)
        else:
            future = torch.ones(end - begin, end - begin, dtype=torch.bool, device=q.device).triu(1)
            scores = heads[0] @ heads[1].transpose(-1, -2) / q.shape[-1] ** 0.5
            output = scores.masked_fill(future, -torch.inf).softmax(-1) @ heads[2]
        outputs.append(output[0].transpose(0, 1))
    return torch.cat(outputs)


def norm(x, weight):
    return x * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + 1e-5).to(x.dtype) * weight


class Layer(torch.nn.Module):
    runs = 0  # forward passes of all layers, those of recomputation included

    def __init__(self, o):
        super().__init__()
        self.heads, self.dim = [o.heads, o.kv_heads, o.kv_heads], o.hidden // o.heads
        self.norms = torch.nn.Parameter(torch.ones(2, o.hidden))
        self.qkv = torch.nn.Linear(o.hidden, sum(self.heads) * self.dim, bias=False)
        self.out = torch.nn.Linear(o.hidden, o.hidden, bias=False)
        self.up = torch.nn.Linear(o.hidden, 2 * o.ffn, bias=False)
        self.down = torch.nn.Linear(o.ffn, o.hidden, bias=False)

    def attention(self, x, part):
        q, k, v = self.qkv(x).view(len(x), -1, self.dim).split(self.heads, 1)
        q, k, sp = turn(q, part.positions), turn(k, part.positions), part.sp
        if sp == 1:
            return attend(q, k, v, part.borders).flatten(1)
        copies = max(1, sp // self.heads[1])  # where ranks are more than KV heads, several hold the same one
        k, v = k.repeat_interleave(copies, 1), v.repeat_interleave(copies, 1)
        shares = [y.reshape(len(x), sp, -1, self.dim) for y in (q, k, v)]
        whole = AllToAll.apply(torch.cat(shares, 2), part.group, True).flatten(0, 1)
        output = attend(*whole.split([y.shape[2] for y in shares], 1), part.borders)
        return AllToAll.apply(output.view(sp, len(x), -1, self.dim), part.group, False).flatten(1)

    def forward(self, x, part):
        Layer.runs += 1
        x = x + self.out(self.attention(norm(x, self.norms[0]), part))
        gate, up = self.up(norm(x, self.norms[1])).chunk(2, -1)
        return x + self.down(F.silu(gate) * up)


class Llama(torch.nn.Module):
    def __init__(self, o):
        super().__init__()
        self.embedding = torch.nn.Embedding(o.vocab, o.hidden)
        self.layers = torch.nn.ModuleList(Layer(o) for _ in range(o.layers))
        self.norm, self.head = torch.nn.Parameter(torch.ones(o.hidden)), torch.nn.Linear(o.hidden, o.vocab, bias=False)

    def forward(self, part):
        """The part's share of the step's loss: token losses by the plan's weights, 0 for padding."""
        x = self.embedding(part.tokens)
        for index, layer in enumerate(self.layers):  # exactly so many layers recompute
            x = checkpoint(layer, x, part, use_reentrant=False) if index < part.recompute else layer(x, part)
        losses = F.cross_entropy(self.head(norm(x, self.norm)).float(), part.targets, reduction="none")
        return (losses * part.weights).sum()


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
    """This rank's part of a pack. A dummy holds padding alone, or the others would wait for its gradients for ever."""
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
        return hbp.Cost.load(o.cost)
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
    parser.add_argument("--cost", help="a fitted cost to plan with")
    parser.add_argument("--timeline", help="write what was measured, for hbp fit")
    parser.add_argument("--check", action="store_true", help="compare with one rank; exit status 1 where it differs")
    parser.add_argument("--cpu", action="store_true", help="even where there is a GPU")
    return parser.parse_args()


def train(o, device):
    rank, ranks, rows = dist.get_rank(), dist.get_world_size(), []
    cost = make_cost(o, ranks, device)
    o.pack_multiple = ranks  # every SP degree divides it
    groups = {}
    for group in hbp.list_communicators(cost, pack_multiple=o.pack_multiple):  # in the same order on every rank
        members = dist.new_group(list(group.ranks)) if group.sp > 1 else None
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
    dist.init_process_group("nccl" if cuda else "gloo", timeout=datetime.timedelta(seconds=120), **alone)
    if settings.tokens_per_rank is None:
        settings.tokens_per_rank = 0 if cuda or dist.get_world_size() == 1 else 384
    try:
        train(settings, here)
    except hbp.HbpError as error:  # the same on every rank: each plans for itself
        sys.exit(f"rank {dist.get_rank()}: {error}")

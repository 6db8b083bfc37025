"""A small Llama-shaped model in PyTorch that runs a pack of documents on a group of ranks (Ulysses sequence
parallelism); train_torch.py trains it."""

import numpy as np
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

try:
    from flash_attn import flash_attn_varlen_func
except ImportError:
    flash_attn_varlen_func = None


class AllToAll(torch.autograd.Function):
    """Ulysses: [tokens / sp, sp, heads / sp, dim], some tokens of all heads, <-> [sp, tokens / sp, heads / sp, dim],
    all tokens of some heads. Backward returns them."""

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
    cos, sin = angles.cos().float(), angles.sin().float()
    a, b = x.chunk(2, -1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1).to(x.dtype)


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

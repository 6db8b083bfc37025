"""Predicted beside published: tokens per second and GPU of real training runs.

    truth.py RUNS.csv [--rows | --markdown] [--stack TEXT]
    truth.py RUNS.csv --leave-out
    truth.py CURVES.csv --attention [--rows]
    truth.py --tables

RUNS.csv has a header with model, layers, hidden, heads, gpu, gpus, sequence_tokens, sequences_per_micro_batch,
micro_batches_per_step, zero_stage (0..3), recompute (all, half, none, or a number of layers), tokens_per_s_per_gpu and
source; a row is a run. The cost is the one that `hbp plan --model --machine --stack` takes, from shapes and presets alone,
nothing fitted; STACKS says which stack a source means. --rows prints every row. --leave-out takes the runs of llm-foundry,
and for each model fits the constants of their stack to the other models. CURVES.csv has kernel, gpu, head_dim, pass
(fwd, fwd+bwd), sequence_tokens and tflops_causal; the shortest length of a curve is not counted. --tables has what HBP and
FlexSP publish of memory, times and speed-ups. Last comes one line of JSON: rows, and the median, 95 % and worst share by which the
predicted rate (of --tables: time) differs from the published.
"""

from __future__ import annotations

import argparse
import collections
import csv
import json
import math
import re
import sys
from collections.abc import Iterator

import numpy as np

import hbp

COLUMNS = ("model", "layers", "hidden", "heads", "gpu", "gpus", "sequence_tokens", "sequences_per_micro_batch",
           "micro_batches_per_step", "zero_stage", "recompute", "tokens_per_s_per_gpu", "source")
# What a row's layers, hidden and heads leave open, by the begin of the model's name; the last: GPT-2's.
SHAPES = (
    ("mpt", {"mlp": "plain", "vocab": 50368, "tied_embeddings": True}),
    ("llama-2-7b", {"ffn": 11008, "vocab": 32000}),
    ("llama-2-13b", {"ffn": 13824, "vocab": 32000}),
    ("llama-2-70b", {"ffn": 28672, "vocab": 32000, "kv_heads": 8}),
    ("llama-3", {"ffn_of": {4096: 14336, 8192: 28672, 16384: 53248}, "vocab": 128256, "kv_heads": 8}),
    ("", {"mlp": "plain", "vocab": 50257, "tied_embeddings": True}),
)
# The preset of a GPU, and what is different of it: the H100 of 96 GB has HBM2e.
GPUS = (("A100-40", "a100-40", ""), ("A100", "a100-80", ""), ("H100-96", "h100", "hbm_bytes=96GB,hbm_bytes_per_s=2.4TB/s"),
        ("H100", "h100", ""), ("H200", "h200", ""), ("B200", "b200", ""))
# The stack that a source's runs were made with, by words that are in it, and their year; the first row that has all words.
STACKS = (
    ("llm-foundry", "fsdp-2023", 2023),
    ("torchtitan compile", "fsdp-compiled", 2024),
    ("torchtitan", "fsdp", 2024),
    ("fms-fsdp compile", "fsdp-compiled", 2024),
    ("fms-fsdp", "fsdp", 2024),
    ("flexsp", "deepspeed", 2024),
    ("deepspeed", "deepspeed", 2024),
    ("hbp", "hbp", 2025),
    ("nemo", "megatron", 2025),
    ("megatron", "megatron", 2025),
)


def stack_of(source: str) -> str:
    """Of sources that the table lacks, that of the nearest year; without a year the newest."""
    words = source.lower()
    known = next((stack for name, stack, _ in STACKS if all(word in words for word in name.split())), None)
    years = [int(word) for word in re.findall(r"(?<!\d)20\d\d(?!\d)", source)]
    return known or min(STACKS, key=lambda row: abs(row[2] - (years[0] if years else 9999)))[1]


def model_of(row: dict[str, str]) -> hbp.Model:
    layers, hidden, heads = (int(positive(row, name)) for name in ("layers", "hidden", "heads"))
    shape = dict(next(shape for name, shape in SHAPES if row["model"].startswith(name)))
    by_hidden = shape.pop("ffn_of", {})
    shape.setdefault("ffn", by_hidden.get(hidden, 4 * hidden))
    shape.setdefault("kv_heads", heads)
    return hbp.Model(layers=layers, hidden=hidden, heads=heads, head_dim=hidden // heads, **shape)


def machine_of(row: dict[str, str]) -> hbp.Machine:
    gpus = int(positive(row, "gpus"))
    for name, preset, other in GPUS:
        if row["gpu"].startswith(name):
            nodes, rest = divmod(gpus, 8)
            if rest and gpus > 8:
                raise ValueError(f"gpus is {gpus}; it must be at most 8 or a multiple of 8")
            changes = ([f"gpus_per_node={gpus}"] if gpus < 8 else []) + ([other] if other else [])
            return hbp.Machine.preset(",".join([f"{preset}:{max(nodes, 1)}", *changes]))
    raise ValueError(f"gpu is '{row['gpu']}'; known are {', '.join(name for name, _, _ in GPUS)}")


def predicted(row: dict[str, str], stack: str | None) -> tuple[float, float]:
    """Tokens per second and GPU, and the share of a GPU's memory that is needed, nothing being kept free."""
    model = model_of(row)
    machine = machine_of(row)
    cost = hbp.Cost(model, machine, zero_stage=int(row["zero_stage"]), stack=stack, reserve_bytes=0)
    layers = int(row["layers"])
    recompute = {"all": layers, "half": layers // 2, "none": 0}.get(row["recompute"])
    recompute = int(row["recompute"]) if recompute is None else recompute
    length, count, batches = (int(positive(row, name)) for name in COLUMNS[6:9])
    pack_ns = cost.predict_ns(length * count, float(count) * length * length, recompute=recompute)
    memory = cost.predict_bytes(length * count, recompute=recompute) / machine.fields.hbm_bytes
    return length * count * batches / ((pack_ns * batches + cost.terms().step_ns) * 1e-9), memory


def spread(errors: list[float]) -> dict[str, float]:
    """The error is taken without its sign; of n rows the 95 % is the least that 95 % of them do not pass."""
    ordered = sorted(abs(error) for error in errors)
    middle = (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2
    return {"rows": len(ordered), "median": middle, "p95": ordered[-(-95 * len(ordered) // 100) - 1], "worst": ordered[-1]}


def read_rows(path: str, columns: tuple[str, ...]) -> Iterator[tuple[int, dict[str, str]]]:
    """Each row of a file that has these columns, with its line."""
    with open(path, newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        missing = [name for name in columns if name not in (reader.fieldnames or ())]
        if missing:
            raise ValueError(f"there is no column {missing[0]}")
        for row in reader:
            short = next((name for name in columns if row[name] is None), None)
            if short:
                raise ValueError(f"line {reader.line_num}: there is no {short}")
            yield reader.line_num, row


def positive(row: dict[str, str], name: str) -> float:
    value = float(row[name])
    if not 0 < value < 2**62:
        raise ValueError(f"{name} is {row[name]}; it must be above 0 and below 2^62")
    return value


def compare_runs(path: str, show: str, given: str | None) -> dict[str, list[float]]:
    """Errors by GPU; with `show` every row is printed."""
    errors: dict[str, list[float]] = collections.defaultdict(list)
    fullest: list[float] = []
    if show == "markdown":
        print("| model | GPUs | GPU | tokens of a micro-batch | ZeRO | recomputed | stack | published, tokens/s/GPU | predicted | error |\n|---|---|---|---|---|---|---|---|---|---|")
    for line, row in read_rows(path, COLUMNS):
        try:
            published = positive(row, "tokens_per_s_per_gpu")
            stack = given or stack_of(row["source"])
            rate, memory = predicted(row, None if stack == "none" else stack)
        except (ValueError, TypeError, hbp.HbpError) as error:
            raise ValueError(f"line {line}: {error}") from None
        error = rate / published - 1
        errors[row["gpu"]].append(error)
        fullest.append(memory)
        if show == "markdown":
            print(f"| {row['model']} | {row['gpus']} | {row['gpu']} | {row['sequences_per_micro_batch']} x {int(row['sequence_tokens']):,} | {row['zero_stage']}"
                  f" | {row['recompute']} | {stack} | {published:,.0f} | {rate:,.0f} | {100 * error:+.1f} % |")
        elif show:
            print(f"{row['model']:<14} {row['gpus']:>4} x {row['gpu']:<13} {row['sequence_tokens']:>6} x {row['sequences_per_micro_batch']:<3}"
                  f" ZeRO-{row['zero_stage']} recompute {row['recompute']:<5} {stack:<13} {published:>9,.0f} published {rate:>9,.0f} predicted {100 * error:+7.1f} %")
    if fullest:
        print(f"memory: {sum(memory > 1 for memory in fullest)} of {len(fullest)} runs would not fit, the fullest takes {100 * max(fullest):.0f} % of a GPU's")
    return errors


# The constants of fsdp-2023 that are fitted, those of products and attention by GPU: what times are linear in. The others
# are counted or those of kernels: without the smallest model no run says what logits cost.
CONSTANTS = (("gemm_efficiency", "A100"), ("gemm_efficiency", "H100"), ("attention_efficiency", "A100"), ("attention_efficiency", "H100"),
             ("elementwise_bytes", ""), ("dp_overlap", ""))
START = (1 / 0.8, 1 / 0.7, 1 / 0.3, 1 / 0.16, 300.0, 0.9)


def seconds(row: dict[str, str], constants: list[float]) -> float:
    """Of a token, with efficiencies as their inverses and the share of traffic that is not hidden."""
    fields = []
    for (name, gpu), value in zip(CONSTANTS, constants):
        if row["gpu"].startswith(gpu):
            fields.append(f"{name}={1 / value if 'efficiency' in name else 1 - value if name == 'dp_overlap' else value!r}")
    return 1 / predicted(row, ",".join(["fsdp-2023", *fields]))[0]


def fit(columns: np.ndarray) -> np.ndarray:
    """Constants of the least sum of relative errors to the power of 1.5, which outliers pull at less than at squares: rows have what each constant adds, relative to what was measured,
    and last what there is without."""
    weights = np.ones(len(columns))
    for _ in range(60):
        constants = np.linalg.lstsq(columns[:, :-1] * weights[:, None], (1 - columns[:, -1]) * weights, rcond=None)[0]
        errors = abs(columns[:, :-1] @ constants + columns[:, -1] - 1)
        weights = np.maximum(errors, 0.02) ** -0.25
    return constants


def leave_out(path: str) -> dict[str, list[float]]:
    """Errors by model, of constants that were fitted to the others."""
    rows = [row for _, row in read_rows(path, COLUMNS) if stack_of(row["source"]) == "fsdp-2023"]
    columns = []
    for row in rows:
        base, own = seconds(row, list(START)), []
        for at, value in enumerate(START):
            changed = list(START)
            changed[at] = value * 1.1 if at < len(START) - 1 else 0.5
            own.append((seconds(row, changed) - base) / (changed[at] - value))
        rest = base - sum(slope * value for slope, value in zip(own, START))
        columns.append([positive(row, "tokens_per_s_per_gpu") * term for term in (*own, rest)])
    if len({row["model"] for row in rows}) < 2:
        raise ValueError("there are no runs of two models under fsdp-2023")
    table, names = np.array(columns), np.array([row["model"] for row in rows])
    print("fitted to all:", ", ".join(f"{name} {gpu} {1 / value if 'efficiency' in name else 1 - value if name == 'dp_overlap' else value:.3g}"
                                      for (name, gpu), value in zip(CONSTANTS, fit(table))))
    errors: dict[str, list[float]] = {}
    for name in dict.fromkeys(names):
        ours = table[names == name]
        errors[name] = list(1 / (ours[:, :-1] @ fit(table[names != name]) + ours[:, -1]) - 1)
    return errors


def curve(row: dict[str, str]) -> float:
    """TFLOP/s of a kernel at a length."""
    head, length = int(row["head_dim"]), int(row["sequence_tokens"])
    machine = hbp.Machine.preset({"A100": "a100-80", "H100": "h100"}[row["gpu"]])
    model = hbp.Model(layers=1, hidden=2048, heads=2048 // head, head_dim=head, ffn=2048, vocab=1024)
    f = hbp.read_stack(f"fsdp:{row['kernel'].lower()}", model, machine)
    share, tokens = (f.forward_attention_efficiency, f.forward_attention_tokens) if row["pass"] == "fwd" else (f.attention_efficiency, f.attention_tokens)
    return share * machine.fields.flops_per_s / 1e12 / (1 + tokens / length)


def compare_curves(path: str, show: str) -> dict[str, list[float]]:
    """Errors by curve, of its points but the shortest, which are the first."""
    errors: dict[str, list[float]] = {}
    for line, row in read_rows(path, ("kernel", "gpu", "head_dim", "pass", "sequence_tokens", "tflops_causal")):
        try:
            published, rate = positive(row, "tflops_causal"), curve(row)
        except (ValueError, TypeError, KeyError, hbp.HbpError) as error:
            raise ValueError(f"line {line}: {error}") from None
        name = f"{row['kernel']} {row['gpu']} {row['head_dim']} {row['pass']}"
        error = rate / published - 1
        if name in errors:
            errors[name].append(error)
        errors.setdefault(name, [])
        if show:
            print(f"{name:<22} {row['sequence_tokens']:>6} {published:>6,.0f} published {rate:>6,.0f} predicted {100 * error:+6.1f} %")
    return {name: own for name, own in errors.items() if own}


# HBP (arXiv 2503.07680), Tables 4, 18 and 19, Llama 3.1 8B on 32 H100: tokens of a pack, SP degree, recomputed layers; None:
# out of memory.
CELLS = ((16, 1, 28), (32, 1, None), (32, 2, 28), (32, 4, 23), (32, 8, 8), (32, 16, 0), (64, 2, None), (64, 4, 28), (64, 8, 24), (128, 4, None),
         (128, 8, 29), (128, 16, 23))
# Seconds of an iteration of 512K tokens. Table 18: K tokens of a pack and of a sample, SP degree; short samples, the squares
# of lengths of 900. And another table of packs by length, whose times are those of packs of one sample (the paper does
# not say so).
TIMES = ((32, 0.9, 2, 3.01), (32, 0.9, 4, 2.95), (32, 0.9, 8, 2.82), (32, 0.9, 16, 3.60), (32, 32.0, 2, 4.45), (32, 32.0, 4, 4.35), (32, 32.0, 8, 4.12),
         (64, 64.0, 4, 6.3), (64, 64.0, 8, 6.2), (128, 128.0, 8, 10.2), (128, 128.0, 16, 10.5))
# ISF's GPU-days over HBP's.
SPEEDUPS = (("llama-3.1-8b", 1.40), ("qwen2.5-32b", 1.33), ("llama-3.1-70b", 1.42), ("qwen2.5-72b", 1.40))
# FlexSP (arXiv 2412.01523), Table 1, GPT 7B on 64 A100-40, 400 Gb/s a node: tokens of a sequence, the least SP degree that is in memory.
FITS = ((4096, 1), (8192, 2), (32768, 8), (131072, 32))


def compare_speedups(machine: hbp.Machine) -> None:
    """ISF's epoch over HBP's, and over that of the default method, as the paper ran them: 512K tokens a step, packs of 128K at
    SP 8 at most, nothing kept free of 80 GiB; cross-entropy is fused, without which the larger models do not fit. Its
    data are not public: a sixteenth of a stand-in."""
    draw = np.random.default_rng(3)
    short = np.minimum(np.exp(draw.normal(math.log(350), 1, 58709)), 32768)
    long = np.minimum(np.exp(draw.normal(math.log(38000), 0.75, 125)), 131072)
    lengths = hbp.Lengths.from_array(np.maximum(np.concatenate([short, long]).astype(np.uint32), 1))
    for name, published in SPEEDUPS:
        cost = hbp.Cost(hbp.Model.preset(name), machine, stack="hbp,fused_cross_entropy=1", max_sp=8, reserve_bytes=0)
        isf, own, search = (hbp.plan_epoch(lengths, cost, method=method, max_pack_length=131072, tokens_per_step=524288).summary().predicted_ns
                            for method in ("isf", "hbp", "search"))
        print(f"HBP: {name:<13} {published:.2f} x ISF published {isf / own:.2f} x predicted ({100 * (isf / own / published - 1):+.1f} %),"
              f" default method {isf / search:.2f} x ({100 * (isf / search / published - 1):+.1f} %)")
        if abs(isf / search / published - 1) > 0.1:
            raise ValueError(f"{name}: {isf / search:.3f} times as fast as ISF")


def compare_tables() -> list[float]:
    """Errors of HBP's times; prints what else is published. What must hold and does not is a ValueError."""
    model, machine = hbp.Model.preset("llama-3.1-8b"), hbp.Machine.preset("h100:4")
    cost = hbp.Cost(model, machine, stack="hbp")
    most = 0
    for tokens, sp, published in CELLS:
        layers = cost.predict_recompute(tokens * 1024, sp=sp)
        print(f"HBP: {tokens:>3}K, SP {sp:<2} recomputed layers {published if published is not None else 'OOM':>4} published {layers if layers is not None else 'OOM':>4} predicted")
        if (layers is None) != (published is None):
            raise ValueError(f"{tokens}K at SP {sp} is {'not ' if published is None else ''}out of memory")
        most = max(most, abs((layers or 0) - (published or 0)))
    if most > 2:
        raise ValueError(f"recomputed layers are off by {most}")
    errors = []
    for tokens, sample, sp, seconds_published in TIMES:
        layers = next(layers for length, degree, layers in CELLS if (length, degree) == (tokens, sp))
        squares = tokens * 1024.0 * (900 if sample < 1 else sample * 1024)
        ns = cost.predict_ns(tokens * 1024, squares, sp=sp, recompute=layers) * (512 / tokens * sp / 32) + cost.terms().step_ns
        errors.append(ns / 1e9 / seconds_published - 1)
        print(f"HBP: 512K tokens in packs of {tokens:>3}K{' of short samples' if sample < 1 else ' of one sample   '}, SP {sp:<2} {seconds_published:5.2f} s published"
              f" {ns / 1e9:5.2f} s predicted {100 * errors[-1]:+.1f} %")
    compare_speedups(machine)
    model = hbp.Model(layers=32, hidden=4096, heads=32, ffn=16384, vocab=50257, mlp="plain", tied_embeddings=True)
    cost = hbp.Cost(model, hbp.Machine.preset("a100-40:8,network_bytes_per_s=50Gb/s"), stack="deepspeed")
    for tokens, published in FITS:
        sp = next(sp for sp in cost.terms().degree if cost.predict_bytes(tokens, sp=sp) <= 28 * 2**30)
        pack = max(tokens, 32768)
        p = cost.predict_parts(pack, float(pack) * tokens, sp=8)
        print(f"FlexSP: {tokens:>6} tokens in 28 GiB from SP {published:<2} published SP {sp:<2} predicted; all-to-all at SP 8"
              f" {100 * p.all_to_all_ns / (p.all_to_all_ns + p.compute_ns):.1f} %")
        if sp != published:
            raise ValueError(f"{tokens} tokens fit from SP {sp} on, not {published}")
    return errors


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", metavar="FILE.csv", nargs="?")
    parser.add_argument("--tables", action="store_true", help="HBP's and FlexSP's tables, which need no file")
    parser.add_argument("--attention", action="store_true", help="the file has curves of attention kernels")
    parser.add_argument("--stack", metavar="TEXT", help="of all rows, instead of what their sources mean; none: no stack")
    parser.add_argument("--leave-out", action="store_true", help="each model by constants fitted to the others")
    parser.add_argument("--rows", action="store_const", const="rows", dest="show", default="", help="print every row")
    parser.add_argument("--markdown", action="store_const", const="markdown", dest="show", help="print every run as a row of a table")
    arguments = parser.parse_args()
    if arguments.tables == (arguments.file is not None):
        parser.error("give FILE.csv or --tables")
    try:
        if arguments.tables:
            print(json.dumps(spread(compare_tables())))
            return 0
        if arguments.leave_out:
            errors = leave_out(arguments.file)
        else:
            errors = (compare_curves(arguments.file, arguments.show) if arguments.attention
                      else compare_runs(arguments.file, arguments.show, arguments.stack))
        if not errors:
            raise ValueError("no rows")
    except (OSError, UnicodeDecodeError, ValueError, TypeError, OverflowError, csv.Error) as error:
        print(f"truth.py: {arguments.file or '--tables'}: {getattr(error, 'strerror', None) or error}", file=sys.stderr)
        return 1
    for name, own in sorted(errors.items()):
        s = spread(own)
        print(f"{name:<22} {s['rows']:>4} {'points' if arguments.attention else 'runs'}: median {100 * s['median']:.1f} %, 95 % {100 * s['p95']:.1f} %, worst {100 * s['worst']:.1f} %")
    print(json.dumps(spread([error for own in errors.values() for error in own])))
    return 0


if __name__ == "__main__":
    sys.exit(main())

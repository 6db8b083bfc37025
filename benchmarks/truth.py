"""Predicted beside published: tokens per second and GPU of real training runs.

    truth.py RUNS.csv [--rows]

RUNS.csv has a header with model, layers, hidden, heads, gpu, gpus, sequence_tokens, sequences_per_micro_batch,
micro_batches_per_step, zero_stage (0..3), recompute (all, half, none, or a number of layers), tokens_per_s_per_gpu and
source; a row is a run. The cost is the one that `hbp plan --model --machine` takes, from shapes and presets alone, nothing
fitted. --rows prints every row. Last comes one line of JSON: rows, and the median, 95 % and worst share by which the
predicted rate differs from the published.
"""

from __future__ import annotations

import argparse
import collections
import csv
import json
import sys

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
# The preset of a GPU, and the memory where it is another.
GPUS = (("A100-40", "a100-40", 0), ("A100", "a100-80", 0), ("H100-96", "h100", 96 * 10**9), ("H100", "h100", 0), ("H200", "h200", 0),
        ("B200", "b200", 0))


def model_of(row: dict[str, str]) -> hbp.Model:
    layers, hidden, heads = (int(row[name]) for name in ("layers", "hidden", "heads"))
    shape = dict(next(shape for name, shape in SHAPES if row["model"].startswith(name)))
    by_hidden = shape.pop("ffn_of", {})
    shape.setdefault("ffn", by_hidden.get(hidden, 4 * hidden))
    shape.setdefault("kv_heads", heads)
    return hbp.Model(layers=layers, hidden=hidden, heads=heads, head_dim=hidden // heads, **shape)


def machine_of(row: dict[str, str]) -> hbp.Machine:
    gpus = int(row["gpus"])
    for name, preset, memory in GPUS:
        if row["gpu"].startswith(name):
            nodes, rest = divmod(gpus, 8)
            if rest and gpus > 8:
                raise ValueError(f"gpus is {gpus}; it must be at most 8 or a multiple of 8")
            changes = ([f"gpus_per_node={gpus}"] if gpus < 8 else []) + ([f"hbm_bytes={memory}"] if memory else [])
            return hbp.Machine.preset(",".join([f"{preset}:{max(nodes, 1)}", *changes]))
    raise ValueError(f"gpu is '{row['gpu']}'; known are {', '.join(name for name, _, _ in GPUS)}")


def predicted(row: dict[str, str]) -> float:
    """Tokens per second and GPU."""
    model = model_of(row)
    cost = hbp.Cost(model, machine_of(row), zero_stage=int(row["zero_stage"]))
    layers = int(row["layers"])
    recompute = {"all": layers, "half": layers // 2, "none": 0}.get(row["recompute"])
    recompute = int(row["recompute"]) if recompute is None else recompute
    length, count, batches = (int(row[name]) for name in COLUMNS[6:9])
    pack_ns = cost.predict_ns(length * count, float(count) * length * length, recompute=recompute)
    return length * count * batches / ((pack_ns * batches + cost.terms().step_ns) * 1e-9)


def spread(errors: list[float]) -> dict[str, float]:
    """The error is taken without its sign; of n rows the 95 % is the least that 95 % of them do not pass."""
    ordered = sorted(abs(error) for error in errors)
    middle = (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2
    return {"rows": len(ordered), "median": middle, "p95": ordered[-(-95 * len(ordered) // 100) - 1], "worst": ordered[-1]}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", metavar="RUNS.csv")
    parser.add_argument("--rows", action="store_true", help="print every row")
    arguments = parser.parse_args()
    errors: dict[str, list[float]] = collections.defaultdict(list)
    try:
        with open(arguments.runs, newline="", encoding="utf-8") as file:
            reader = csv.DictReader(file)
            missing = [name for name in COLUMNS if name not in (reader.fieldnames or ())]
            if missing:
                raise ValueError(f"there is no column {missing[0]}")
            for row in reader:
                try:
                    published, rate = float(row["tokens_per_s_per_gpu"]), predicted(row)
                    if not published > 0:
                        raise ValueError(f"tokens_per_s_per_gpu is {published:g}; it must be above 0")
                except (ValueError, TypeError, hbp.HbpError) as error:
                    raise ValueError(f"line {reader.line_num}: {error}") from None
                error = rate / published - 1
                errors[row["gpu"]].append(error)
                if arguments.rows:
                    print(f"{row['model']:<14} {row['gpus']:>4} x {row['gpu']:<13} {row['sequence_tokens']:>6} x {row['sequences_per_micro_batch']:<3}"
                          f" ZeRO-{row['zero_stage']} recompute {row['recompute']:<5} {published:>9,.0f} published {rate:>9,.0f} predicted {100 * error:+7.1f} %")
    except (OSError, UnicodeDecodeError, ValueError, csv.Error) as error:
        print(f"truth.py: {arguments.runs}: {getattr(error, 'strerror', None) or error}", file=sys.stderr)
        return 1
    if not errors:
        print(f"truth.py: {arguments.runs}: no rows", file=sys.stderr)
        return 1
    for gpu, own in sorted(errors.items()):
        s = spread(own)
        print(f"{gpu:<14} {s['rows']:>4} runs: median {100 * s['median']:.1f} %, 95 % {100 * s['p95']:.1f} %, worst {100 * s['worst']:.1f} %")
    print(json.dumps(spread([error for own in errors.values() for error in own])))
    return 0


if __name__ == "__main__":
    sys.exit(main())

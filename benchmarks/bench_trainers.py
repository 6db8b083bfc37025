"""Trainers' own packing and balance beside hbp's adapter in its place, on the same lengths in one run: idle,
time of the call, tokens over the cap, empty ranks.

    bench_trainers.py CHECKOUTS LENGTHS.npy [NAME ...]

CHECKOUTS has the trainers' public repositories in the folders that tests/trainers/table.txt names; what
is not there is skipped with a message. The package hbp must be importable; HBP_LIBRARY names libhbp.so.
NAME: megatron, verl, slime, nemo_rl, torchtitan, deepspeed, axolotl, llama_factory, ms_swift, trl; all
without one.

Idle is 1 - mean / largest of the ranks' work, for micro-batches in step: of all micro-batches' largest
together (slime: of a step, where Megatron's ranks meet). Work is 24576 L + L^2 a sample (verl's measure,
hidden size 4096), over the context-parallel degree, and for Megatron the ring's share as in
hbp.integrations.megatron.ring_cost."""

from __future__ import annotations

import contextlib
import os
import statistics
import sys
import time
import types
from pathlib import Path
from typing import Any, Callable, Iterator

import numpy as np

import hbp
from hbp.integrations.megatron import ring_cost

REPEATS = 5
Lists = list[list[int]]


def work(length: Any) -> Any:
    return 24576.0 * length + np.square(np.asarray(length, float))


def draw(lengths: Any, seed: int, count: int, most: int, multiple: int = 1) -> list[int]:
    drawn = np.minimum(np.random.default_rng(seed).choice(lengths, count).astype(np.int64), most)
    return (np.maximum(-(-drawn // multiple), 1) * multiple).tolist()


def timed(call: Callable[[], Any], repeats: int = REPEATS) -> tuple[Any, float]:
    """The answer and the median of milliseconds; once where a call takes over a second."""
    took = []
    while len(took) < repeats and sum(took) < 2000:
        start = time.perf_counter()
        answer = call()
        took.append(1e3 * (time.perf_counter() - start))
    return answer, statistics.median(took)


def loads_of(lists: Lists, lengths: list[int]) -> Any:
    values = np.array(lengths)
    return np.array([work(values[ids]).sum() for ids in lists])


def idle_of(grid: Any) -> float:
    """Of loads [micro-batch][rank]."""
    grid = np.atleast_2d(grid)
    return 1 - grid.mean() / grid.max(axis=1).mean()


def row(
    name: str, who: str, micro_batches: int, idle: float, took: float, model: float, over: int, empty: int
) -> None:
    print(
        f"{name:46} {who:4} {micro_batches:6} {100 * idle:8.2f} % {model:9.3f} {over:6} {empty:6} "
        f"{took:10.2f} ms"
    )


def both(
    name: str, install: Callable[[], Callable[[], None]], one: Callable[[], Any], judge: Callable[[Any], Any]
) -> None:
    """One row for their own and one for hbp's; judge gives micro-batches, idle, model time, over, empty."""
    base = None
    for who in ("own", "hbp"):
        undo = install() if who == "hbp" else (lambda: None)
        try:
            answer, took = timed(one)
        except Exception as error:  # their own may refuse
            print(f"{name:46} {who:4} {type(error).__name__}: {str(error)[:90]}")
            continue
        finally:
            undo()
        micro_batches, idle, model, over, empty = judge(answer)
        base = base or model
        row(name, who, micro_batches, idle, took, model / base, over, empty)


def megatron(lengths: Any) -> None:
    import hbp.integrations.megatron as adapter
    from megatron.core.datasets import data_schedule as seam

    for count, dp, cp, cap in ((512, 8, 4, 16384), (2048, 16, 4, 16384), (128, 4, 2, 32768)):
        ranks = dp * cp
        for key in seam.scheduler_map:
            name = str(getattr(key, "value", key))
            dynamic = name == "default_dynamic_cp"
            # dynamic: any sample that all ranks hold; balanced: what Megatron's limit of one pack takes
            most = min(131072, ranks * cap // 2) if dynamic else cp * cap
            drawn = draw(lengths, count, count, most, 2 * ranks if dynamic else 2 * cp)
            batch, terms = list(enumerate(drawn)), ring_cost(ranks).terms()
            ring = dict(zip(terms.degree, zip(terms.sp_latency_ns, terms.sp_ns_per_token)))

            def judge(groups: Any) -> Any:
                loads, over, empty = [], 0, 0
                for micro_batch in groups:
                    of_rank = []
                    for ids in micro_batch:
                        empty += not ids
                        degree = sum(ids[0] in other for other in micro_batch) if ids else 1
                        tokens = sum(drawn[k] for k in ids)
                        over += tokens > cap * degree
                        latency, per_token = ring.get(degree, (0.0, 0.0))
                        compute = sum(float(work(drawn[k])) for k in ids) / degree
                        of_rank.append(compute + (latency + per_token * tokens if degree > 1 else 0.0))
                    loads.append(of_rank)
                return len(groups), idle_of(loads), float(np.max(loads, axis=1).sum()), over, empty

            scheduler = lambda: seam.scheduler_map[key](cap, cp, dp, None)
            both(
                f"megatron {name}, {count}, {dp} x {cp}, {cap}",
                adapter.install,
                lambda: scheduler().get_groups_and_subsamples(list(batch)),
                judge,
            )


def verl(lengths: Any) -> None:
    import hbp.integrations.verl as adapter
    import torch
    from tensordict import TensorDict
    from verl.utils import seqlen_balancing as seam

    for count, parts, equal in ((4096, 64, False), (4096, 64, True), (512, 8, True), (64, 8, True)):
        drawn = draw(lengths, count, count, 60000)
        weights = [int(work(length)) for length in drawn]

        def judge(lists: Lists) -> Any:
            loads = loads_of(lists, drawn)
            return 1, idle_of(loads), float(loads.max()), 0, sum(not ids for ids in lists)

        name = f"verl {count} into {parts}{', equal counts' if equal else ''}"
        both(name, adapter.install, lambda: seam.get_seqlen_balanced_partitions(weights, parts, equal), judge)
    drawn = draw(lengths, 7, 512, 16384)
    mask = (torch.arange(16384)[None, :] < torch.tensor(drawn)[:, None]).to(torch.uint8)
    batch = TensorDict({"input_ids": mask, "attention_mask": mask}, batch_size=[512])
    own_select = seam.tu.index_select_tensor_dict
    seam.tu.index_select_tensor_dict = lambda batch, ids: None  # lists alone are timed, not copies of tensors

    def judge_micro(answer: Any) -> Any:
        lists = answer[1]
        loads = loads_of(lists, drawn)
        over = sum(sum(drawn[k] for k in ids) > 16384 for ids in lists)
        return len(lists), idle_of(loads), float(loads.sum()), over, sum(not ids for ids in lists)

    both(
        "verl rearrange_micro_batches, 512, 16384",
        adapter.install,
        lambda: seam.rearrange_micro_batches(batch, 16384),
        judge_micro,
    )
    seam.tu.index_select_tensor_dict = own_select


def slime(lengths: Any) -> None:
    import hbp.integrations.slime as adapter
    from slime.utils import dp_schedule as seam

    args = types.SimpleNamespace(
        use_dynamic_batch_size=True,
        max_tokens_per_gpu=16384,
        balance_data=True,
        balance_by_flops=False,
        hidden_size=4096,
        num_attention_heads=32,
        num_query_groups=8,
        vocab_size=128256,
        ffn_hidden_size=14336,
        num_experts=None,
        num_layers=32,
        kv_channels=128,
    )
    parallel = {"dp_size": 8, "cp_size": 1, "vpp_size": 1, "microbatch_group_size_per_vp_stage": 1}
    for by_flops in (False, True):
        drawn = draw(lengths, 3, 512, 16384)
        args.balance_by_flops = by_flops

        def judge(answer: Any) -> Any:
            partitions, of_rank, _, _ = answer
            lists = [[[partitions[r][k] for k in ids] for ids in of_rank[r]] for r in range(8)]
            loads = np.array([loads_of(rank, drawn) for rank in lists]).T
            empty, micro = int((loads == 0).sum()), len(loads)
            loads = loads.sum(axis=0, keepdims=True)  # Megatron's ranks wait for one another once a step
            over = sum(sum(drawn[k] for k in ids) > 16384 for rank in lists for ids in rank)
            return micro, idle_of(loads), float(loads.max(axis=1).sum()), over, empty

        name = f"slime 512, 8 ranks, 16384{', balance_by_flops' if by_flops else ''}"
        both(
            name,
            adapter.install,
            lambda: seam.build_dp_schedule(
                args, parallel, drawn, global_batch_size=512, rollout_indices=list(range(512))
            ),
            judge,
        )


def nemo_rl(lengths: Any) -> None:
    import hbp.integrations.nemo_rl as adapter
    from nemo_rl.data.packing import algorithms as seam

    for algorithm in ("first_fit_decreasing", "modified_first_fit_decreasing"):
        for count in (512, 4096):
            drawn = draw(lengths, count, count, 16384)

            def judge(bins: Lists) -> Any:
                loads = loads_of(bins, drawn).reshape(-1, 8)  # bins are dealt to 8 ranks in turn
                over = sum(sum(drawn[k] for k in ids) > 16384 for ids in bins)
                return (
                    len(loads),
                    idle_of(loads),
                    float(loads.max(axis=1).sum()),
                    over,
                    sum(not ids for ids in bins),
                )

            both(
                f"nemo_rl {algorithm}, {count}",
                adapter.install,
                lambda: seam.get_packer(algorithm, 16384, min_bin_count=8, bin_count_multiple=8).pack(drawn),
                judge,
            )


def torchtitan(lengths: Any) -> None:
    import hbp.integrations.torchtitan as adapter
    from torchtitan.experiments.rl.components import batcher as seam

    for count, batch, ranks, length in ((512, 1, 8, 16384), (512, 8, 8, 16384)):
        drawn = draw(lengths, 11, count, length)
        samples = [types.SimpleNamespace(token_ids=range(n + 1), place=k) for k, n in enumerate(drawn)]
        config = seam.Batcher.Config(batch=seam.BatchConfig(local_batch_size=batch, seq_len=length))

        def judge(rows: Any) -> Any:
            cells = max(1, -(-len(rows) // (batch * ranks))) * ranks
            squares = [sum(drawn[s.place] ** 2 for s in taken) for taken in rows]
            loads = np.array(
                [24576.0 * length * batch + sum(squares[c::cells]) for c in range(cells)]
            ).reshape(-1, ranks)
            over = sum(sum(drawn[s.place] for s in taken) > length for taken in rows)
            empty = sum(not rows[c::cells] for c in range(cells))
            return len(loads), idle_of(loads), float(loads.max(axis=1).sum()), over, empty

        def one() -> Any:
            made = config.build(num_prompts_per_train_step=1, dp_degree=ranks, pad_id=0)
            return made._assign_training_samples_to_rows(samples)

        both(f"torchtitan {count}, {ranks} ranks x {batch} rows, {length}", adapter.install, one, judge)


def deepspeed(lengths: Any) -> None:
    import hbp.integrations.deepspeed as adapter
    from deepspeed.runtime.data_pipeline.data_sampling import variable_batch_size_and_lr as seam

    for order in ("dataloader", "random", "seqlen"):
        drawn = draw(lengths, 5, 2000, 16384)

        def judge(answer: Any) -> Any:
            pairs, sizes, _ = answer
            lists = [ids for _, ids in pairs]
            loads = loads_of(lists, drawn).reshape(len(sizes), 8)
            over = sum(sum(drawn[k] for k in ids) > 16384 for ids in lists)
            samples = sum(sizes)  # both leave some out at the end: model time a sample
            return (
                len(sizes),
                idle_of(loads),
                float(loads.max(axis=1).sum()) / samples,
                over,
                int((loads == 0).sum()),
            )

        both(
            f"deepspeed 2000, 8 micro-batches a batch, {order}",
            adapter.install,
            lambda: seam.batch_by_seqlens(
                drawn, 16384, sequence_picking_order=order, effective_batch_size=8, seed=1
            ),
            judge,
        )


def in_order(lists: Lists, lengths: Any, capacity: int, ranks: int = 8) -> Any:
    """Packs that ranks take in turn, what judge gives: the last ones that do not fill a step are left out."""
    values = np.asarray(lengths)
    loads = loads_of(lists, lengths)
    grid = loads[: len(loads) // ranks * ranks].reshape(-1, ranks)
    over = sum(int(values[ids].sum()) > capacity for ids in lists)
    return len(lists), idle_of(grid), float(grid.max(axis=1).sum()), over, sum(not len(ids) for ids in lists)


def axolotl(lengths: Any) -> None:
    import hbp.integrations.axolotl as adapter
    from axolotl.utils.samplers import multipack as seam

    os.environ["WORLD_SIZE"] = "8"
    seam.pack_parallel(np.arange(1, 9), 64, 100_000, 200, 1)  # compiled once
    for count, capacity in ((50_000, 8192), (50_000, 16384), (50_000, 32768), (1_000_000, 16384)):
        drawn = np.array(draw(lengths, count, count, capacity))
        both(f"axolotl {count} into {capacity}, 8 ranks", adapter.install,
             lambda: seam.pack_parallel(drawn, capacity, 100_000, 200, 1),  # noqa: B023
             lambda lists: in_order(lists, drawn, capacity))  # noqa: B023 # fmt: skip
    del os.environ["WORLD_SIZE"]


def llama_factory(lengths: Any) -> None:
    import hbp.integrations.llama_factory as adapter
    from llamafactory.data.processor import processor_utils as seam

    os.environ["WORLD_SIZE"] = "8"
    for count, capacity, shuffled in ((20_000, 8192, False), (20_000, 8192, True), (20_000, 16384, False)):
        drawn = draw(lengths, count, count, capacity)

        def judge(packs: Lists) -> Any:
            flat = [length for pack in packs for length in pack]
            borders = np.cumsum([0, *map(len, packs)])
            lists = [list(range(first, end)) for first, end in zip(borders, borders[1:])]
            if shuffled:  # noqa: B023
                lists = [lists[k] for k in np.random.default_rng(0).permutation(len(lists))]
            return in_order(lists, flat, capacity)  # noqa: B023

        both(f"LLaMA-Factory {count} into {capacity}{', shuffled' if shuffled else ''}, 8 ranks", adapter.install,
             lambda: seam.greedy_knapsack(list(drawn), capacity), judge)  # noqa: B023 # fmt: skip
    del os.environ["WORLD_SIZE"]


def ms_swift(lengths: Any) -> None:
    import hbp.integrations.ms_swift as adapter
    from swift.dataset import packing as seam

    os.environ["WORLD_SIZE"] = "8"
    for count, capacity, interval in ((20_000, 8192, 1000), (20_000, 16384, 1000), (5_000, 8192, 128)):
        drawn = draw(lengths, count, count, capacity)

        def stream() -> Lists:
            packs: Lists = []
            waiting: Any = []
            for first in range(0, count, interval):  # noqa: B023
                end = first + interval  # noqa: B023
                waiting += list(enumerate(drawn))[first:end]  # noqa: B023
                given, waiting = seam.calculate_matched_group(waiting, capacity, end >= count)  # noqa: B023
                packs += [[pair[0] for pair in pack] for pack in given]
            return packs

        both(f"ms-swift {count} by {interval} into {capacity}, 8 ranks", adapter.install, stream,
             lambda lists: in_order(lists, drawn, capacity))  # noqa: B023 # fmt: skip
    del os.environ["WORLD_SIZE"]


def trl(lengths: Any) -> None:
    import hbp.integrations.trl as adapter
    import pyarrow as pa
    from trl import data_utils as seam
    from trl.experimental.async_grpo.async_grpo_trainer import TokenBudgetBatcher

    drawn = draw(lengths, 1, 20_000, 8192)
    table = pa.table({"input_ids": pa.array([list(range(length)) for length in drawn], pa.list_(pa.int32()))})

    def judge(packed: Any) -> Any:
        flat = [length for row in packed["seq_lengths"].to_pylist() for length in row]
        borders = np.cumsum([0, *(len(row) for row in packed["seq_lengths"].to_pylist())])
        return in_order([list(range(a, b)) for a, b in zip(borders, borders[1:])], flat, 8192)

    both("TRL _pack_bfd 20000 into 8192, 8 ranks", adapter.install, lambda: seam._pack_bfd(table, 8192), judge)
    for count, ranks, budget in ((512, 8, 16384), (5_000, 8, 16384), (5_000, 8, 32768), (5_000, 4, 8192)):
        samples = [{"input_ids": range(length)} for length in draw(lengths, count, count, budget)]

        def judge_batches(batches: Any) -> Any:
            grid = [[sum(float(work(len(s["input_ids"]))) for s in row) for row in rows] for rows in batches]
            sizes = [sum(len(s["input_ids"]) for s in row) for rows in batches for row in rows]
            over = sum(size > budget for size in sizes)  # noqa: B023
            done = sum(len(row) for rows in batches for row in rows)  # their own keeps the last back: a sample's time
            return len(batches), idle_of(grid), float(np.max(grid, axis=1).sum()) / done, over, sizes.count(0)

        both(f"TRL TokenBudgetBatcher {count}, {ranks} ranks x {budget}", adapter.install,
             lambda: list(TokenBudgetBatcher(samples, ranks, budget)), judge_batches)  # noqa: B023 # fmt: skip


# By name: folders of the checkouts, a package to import without its __init__, the benchmark.
TRAINERS: dict[str, tuple[str, str, Callable[[Any], None]]] = {
    "megatron": ("Megatron-LM-dev", "", megatron),
    "verl": ("verl", "", verl),
    "slime": ("slime", "", slime),
    "nemo_rl": ("RL", "", nemo_rl),
    "torchtitan": ("torchtitan", "torchtitan.experiments.rl", torchtitan),
    "deepspeed": ("DeepSpeed", "", deepspeed),
    "axolotl": ("axolotl/src", "", axolotl),
    "llama_factory": ("LLaMA-Factory/src", "llamafactory.data", llama_factory),
    "ms_swift": ("ms-swift", "", ms_swift),
    "trl": ("trl", "", trl),
}


@contextlib.contextmanager
def importable(folder: Path, bare: str) -> Iterator[None]:
    sys.path.insert(0, str(folder))
    if bare:
        module = types.ModuleType(bare)
        module.__path__ = [str(folder / bare.replace(".", "/"))]
        sys.modules[bare] = module
    yield


def main() -> int:
    if len(sys.argv) < 3:
        print("usage: bench_trainers.py CHECKOUTS LENGTHS.npy [NAME ...]", file=sys.stderr)
        return 2
    lengths = np.load(sys.argv[2])
    print(
        f"\n== Their own beside hbp {hbp.__version__}, {Path(sys.argv[2]).name}, medians of {REPEATS} calls"
    )
    print(f"{'':46} {'':4} micro- {'':10} model time")
    print(f"{'':46} {'':4} batches     idle     x own   over   empty     call")
    for name in sys.argv[3:] or TRAINERS:
        folder, bare, bench = TRAINERS[name]
        checkout = Path(sys.argv[1]) / folder
        if not checkout.is_dir():
            print(f"{name}: no {checkout}: skipped")
            continue
        with importable(checkout, bare):
            bench(lengths)
    return 0


if __name__ == "__main__":
    sys.exit(main())

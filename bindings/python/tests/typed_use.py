"""The public interface as type checkers see it: checked by mypy --strict and pyright, and run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Optional  # noqa: F401

import numpy as np
import numpy.typing as npt

import hbp

if TYPE_CHECKING:
    from typing_extensions import assert_type
else:

    def assert_type(value: Any, kind: Any) -> Any:
        return value


def rows() -> Iterator[int]:
    yield from (300, 20, 4000)


def inputs() -> None:
    """What is taken for lengths."""
    cost = hbp.Cost.plain(4)
    hbp.plan_step([300, 20, 4000], cost)
    hbp.plan_step((300, 20, 4000), cost)
    hbp.plan_step(np.array([300, 20, 4000], np.uint16), cost)
    hbp.plan_step(rows(), cost)
    hbp.plan_step(range(1, 100), cost, method="hybrid-cp", tokens_per_rank=4096)
    hbp.plan_step(
        hbp.Lengths.from_array({0: 30, 1: 2}.values(), loss_tokens=range(1, 3)), cost, progress=False
    )
    assert_type(hbp.partition(rows(), 2).tolist(), List[List[int]])


def columns() -> None:
    """Columns have the type of their values."""
    lengths = hbp.Lengths.from_array(np.arange(1, 500), copy=True)
    assert_type(lengths, hbp.Lengths)
    assert_type(lengths.histogram_lengths, "npt.NDArray[np.int64]")
    assert_type(lengths.histogram_counts, "npt.NDArray[np.int64]")
    plan = hbp.plan(
        lengths,
        model="llama-3.1-8b",
        machine="h100:1",
        method="search",
        over_long="drop",
        composition="random",
    )
    assert_type(plan, hbp.Plan)
    assert_type(plan.step_offsets, "npt.NDArray[np.int64]")
    assert_type(plan.pack_sp, "npt.NDArray[np.int32]")
    assert_type(plan.sample_ids, "npt.NDArray[np.int64]")
    assert_type(plan.sample_first_tokens, "Optional[npt.NDArray[np.int64]]")
    assert_type(plan.sample_vision, "Optional[npt.NDArray[np.int32]]")
    assert_type(plan.columns("packs"), "Dict[str, npt.NDArray[Any]]")
    assert_type(plan.ids(), List[List[List[int]]])
    assert_type(plan.summary().predicted_ns, int)
    patterns = hbp.plan_patterns(lengths, hbp.Cost.plain(4), max_length=4096, over_long="drop", progress=None)
    assert_type(patterns, hbp.PatternPlan)
    assert_type(patterns.run_numbers, "npt.NDArray[np.int32]")
    assert_type(patterns.expand(0, 1), hbp.Plan)
    assert_type(patterns.with_index(hbp.LengthIndex(lengths)).index, Optional[hbp.LengthIndex])
    hbp.torch.PlanSampler(lambda epoch: patterns.redraw(epoch=epoch), rank=0)
    step = plan.step(0)
    assert_type(step, hbp.Step)
    assert_type(step.ids(), List[List[List[int]]])
    assert_type(step.micro_batch(0), hbp.MicroBatch)
    assert_type(step.micro_batch(0)[0], hbp.Pack)
    assert_type(step.micro_batch(0).for_rank(0).ids, "npt.NDArray[np.int64]")
    assert_type(
        [pack.cu_seqlens for micro_batch in step for pack in micro_batch], "List[npt.NDArray[np.int32]]"
    )
    groups = hbp.plan_groups(lengths, hbp.Cost.plain(8), method="hbp")
    assert_type(groups.pack_lengths, "npt.NDArray[np.int64]")
    assert_type(groups.sp, "npt.NDArray[np.int32]")
    packs = hbp.greedy_fill(lengths, groups, method="tight")
    assert_type(packs.sample_indices, "npt.NDArray[np.uint32]")
    assert_type(packs.pack_vision, "Optional[npt.NDArray[np.int64]]")
    assert_type(packs.columns(), "Dict[str, npt.NDArray[Any]]")
    assert_type(hbp.methods(of="step"), Dict[str, hbp.Method])
    layers = hbp.Layers([5, 6, 7], type=["vision", "fixed", "language"])
    assert_type(layers.forward_ns, "npt.NDArray[np.int64]")
    stages = hbp.partition_layers(layers, stages=2, method="balanced", micro_batches=4, recompute="layer")
    assert_type(stages, hbp.LayerPartition)
    assert_type(stages.cuts, "npt.NDArray[np.int32]")


if not TYPE_CHECKING:
    UNCHECKED = (inputs, columns)

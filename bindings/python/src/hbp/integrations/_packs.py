"""Packs that step together have like cost: what the adapters of packing trainers share."""

from __future__ import annotations

import contextlib
import os
from typing import Any, Callable, Optional

import numpy as np
import numpy.typing as npt

from .. import InfeasibleError, InvalidError, Partition, partition

WEIGHTS = (24576, 1)
"""What a sample of L tokens costs: 24,576 L + L^2, of a 7B model, whose attention takes as long as the rest
at 24,576 tokens."""
_UNLIKE = 0.001


def world_size() -> int:
    """Ranks, as torchrun and accelerate launch say."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def costs_of(lengths: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The cost of each sample."""
    return WEIGHTS[0] * lengths + WEIGHTS[1] * lengths * lengths


def in_step_order(
    parts: Partition, lengths: npt.NDArray[np.int64], ranks: int, *, seed: int = 0, **limits: Any
) -> list[list[int]]:
    """The packs, each run of `ranks` of them of like cost; the runs in a random order, what is left over at the
    end. Runs of unlike packs exchange samples, under the same limits."""
    packs = parts.tolist()
    cost = np.add.reduceat(costs_of(lengths[parts.sample_ids]), parts.part_offsets[:-1])
    order = np.argsort(-cost, kind="stable")
    whole = len(order) - len(order) % ranks
    runs = order[:whole].reshape(-1, ranks)
    for run in runs[cost[runs].mean(axis=1) < (1 - _UNLIKE) * cost[runs].max(axis=1)].tolist():
        ids = np.concatenate([packs[k] for k in run])
        try:
            again = partition(lengths[ids], ranks, weights=WEIGHTS, **limits)
        except (InfeasibleError, InvalidError):  # nothing found under the limits, or a longer sample
            continue
        if again.heaviest < cost[run].max():
            for k, part in zip(run, again):
                packs[k] = ids[part].tolist()
    runs = runs[np.random.Generator(np.random.PCG64(seed)).permutation(len(runs))]
    return [packs[k] for k in [*runs.ravel().tolist(), *order[whole:].tolist()]]


def above_zero(lengths: npt.NDArray[np.int64], capacity: int) -> tuple[npt.NDArray[np.int64], int, int]:
    """Lengths, capacity and how many units a token is, so that samples of 0 tokens have a length, of one
    unit, and the same samples fit (all but those of 0 beyond 2^31 units)."""
    unit = min(int((lengths == 0).sum()) + 1, max(1, (2**31 - 1) // (capacity + 1)))
    return np.where(lengths == 0, 1, lengths * unit), capacity * unit + unit - 1, unit


def with_empty(
    lengths: npt.NDArray[np.int64],
    pack: Callable[[npt.NDArray[np.int64]], list[list[int]]],
    max_samples: Optional[int] = None,
) -> list[list[int]]:
    """`pack` of the lengths that are not 0. Samples without tokens join the packs of fewest samples; those
    beyond max_samples have packs of their own."""
    empty = np.flatnonzero(lengths == 0).tolist()
    if not empty:
        return pack(lengths) if len(lengths) else []
    filled, most = np.flatnonzero(lengths), max_samples or len(lengths)
    packs = [filled[ids].tolist() for ids in pack(lengths[filled])] if len(filled) else []
    for ids in sorted(packs, key=len):
        room = max(0, most - len(ids))
        ids += empty[:room]
        del empty[:room]
    return packs + [empty[first : first + most] for first in range(0, len(empty), most)]


def packs_of(
    lengths: npt.NDArray[np.int64],
    capacity: int,
    *,
    multiple_of: int = 1,
    max_samples: Optional[int] = None,
    over_long: str = "alone",
) -> Partition:
    """As few packs as are found, a multiple where there are samples enough. Sizes alone count: `in_step_order`
    balances."""
    limits: dict[str, Any] = {
        "capacity": capacity,
        "max_samples": max_samples,
        "over_long": over_long,
        "weights": np.zeros(len(lengths), np.int64),
    }
    if multiple_of > 1:
        with contextlib.suppress(InfeasibleError, InvalidError):  # more packs than samples
            return partition(lengths, multiple_of=multiple_of, **limits)
    return partition(lengths, **limits)

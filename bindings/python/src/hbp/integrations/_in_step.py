"""Packs of ranks that wait for one another in every micro-batch."""

from __future__ import annotations

from typing import Any, Optional, Sequence

import numpy as np

from .. import InfeasibleError, partition
from .._arrays import integers
from ..cost import Cost, CostTerms
from ..step import plan_step
from . import heaviest_first
from ._packs import WEIGHTS, above_zero, costs_of


def waited_for(lists: Sequence[Sequence[int]], lengths: Any, ranks: int) -> float:
    """Work of each micro-batch's heaviest pack, of all micro-batches, `ranks` lists each."""
    costs = costs_of(np.asarray(lengths, np.int64))
    work = [float(costs[ids].sum()) for ids in map(list, lists)]
    return sum(max(work[first : first + ranks]) for first in range(0, len(work), ranks))


def pack_in_step(lengths: Sequence[int], capacity: int, ranks: int, least: int) -> list[list[int]]:
    """As few lists as fit, at least `least` and a multiple of `ranks`, none empty; each `ranks` of them run
    side by side."""
    tokens = integers("lengths", lengths, np.int64)
    some, room, unit = above_zero(tokens, capacity)
    parts = partition(some, capacity=room, min_parts=least, multiple_of=ranks, weights=costs_of(tokens))
    lists = heaviest_first(parts)
    planned = _planned(some, room, unit, ranks, len(lists) // ranks) if ranks > 1 else None
    if planned is None or waited_for(lists, lengths, ranks) <= waited_for(planned, lengths, ranks):
        return lists
    return planned


def _planned(lengths: Any, capacity: int, unit: int, ranks: int, count: int) -> Optional[list[list[int]]]:
    """The same by hbp.plan_step, in `count` micro-batches; None where none or a rank is empty."""
    cost = Cost.from_terms(
        CostTerms(
            ranks=ranks,
            layers=1,
            limit_bytes=1,
            degree=(1,),
            sp_latency_ns=(0.0,),
            sp_ns_per_token=(0.0,),
            ns_per_token=WEIGHTS[0] * unit,
            ns_per_token_squared=WEIGHTS[1],
        )
    )
    try:
        plan = plan_step(
            lengths, cost, tokens_per_rank=capacity, min_micro_batches=count, max_micro_batches=count
        )
    except InfeasibleError:
        return None
    lists: list[list[int]] = [pack.tolist() for pack in np.split(plan.sample_ids, plan.pack_offsets[1:-1])]
    for first in range(0, len(lists), ranks):
        for k in range(first, first + ranks):
            if not lists[k]:  # a rank without samples: half of the most filled pack
                most = max(range(first, first + ranks), key=lambda other: len(lists[other]))
                half = len(lists[most]) // 2
                lists[k], lists[most] = lists[most][:half], lists[most][half:]
    return lists if all(lists) else None

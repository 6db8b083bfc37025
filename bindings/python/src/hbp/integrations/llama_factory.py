"""LLaMA-Factory: its knapsack (llamafactory.data.processor.processor_utils.greedy_knapsack).

As few packs as are found, and in an order in which those that step together are of like cost
(disable_shuffling keeps it)."""

# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
# The trainer may not be there, or be taken for this module.
from __future__ import annotations

from typing import Callable

import numpy as np

from .. import partition
from . import errors_as, everywhere, replace, require_seam
from ._packs import WEIGHTS, in_step_order, world_size

KNOWN = ("0.9.6.dev0 (ff6d4d12eeb0)",)


def greedy_knapsack(numbers: list[int], capacity: int) -> list[list[int]]:
    """Lists of lengths, not of indices, the longest first; `numbers` is empty afterwards, as it is there."""
    lengths = np.asarray(numbers, np.int64)
    if not len(lengths):
        return []
    with errors_as(ValueError):
        parts = partition(lengths, capacity=capacity, weights=WEIGHTS)
    packs = in_step_order(parts, lengths, world_size(), capacity=capacity)
    numbers.clear()
    return [sorted((int(lengths[k]) for k in pack), reverse=True) for pack in packs]


def install() -> Callable[[], None]:
    """Puts hbp in the place of the knapsack; what is returned takes it back."""
    from llamafactory.data.processor import processor_utils as seam

    require_seam("llamafactory", KNOWN, (seam, "greedy_knapsack", "numbers capacity"))
    return replace(*everywhere("llamafactory", "greedy_knapsack", seam.greedy_knapsack, greedy_knapsack))

"""LLaMA-Factory: its knapsack (llamafactory.data.processor.processor_utils.greedy_knapsack).

As few packs as are found, and in an order in which those that step together are of like cost
(disable_shuffling keeps it)."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np

from .._arrays import integers
from . import errors_as, import_seam, replace_imported, require_seam
from ._packs import in_step_order, packs_of, with_empty, world_size

KNOWN = ("0.9.3", "0.9.4", "0.9.5", "0.9.6.dev0 (ff6d4d12eeb0)")


def greedy_knapsack(numbers: list[int], capacity: int) -> list[list[int]]:
    """Lists of lengths, not of indices, the longest first; `numbers` is empty afterwards, as it is there."""
    lengths = integers("numbers", numbers, np.int64)

    def pack(filled: np.ndarray[Any, np.dtype[np.int64]]) -> list[list[int]]:
        parts = packs_of(filled, capacity, over_long="error")
        return in_step_order(parts, filled, world_size(), capacity=capacity)

    with errors_as(ValueError):
        packs = with_empty(lengths, pack)
    numbers.clear()
    return [sorted((int(lengths[k]) for k in pack), reverse=True) for pack in packs]


def install() -> Callable[[], None]:
    """Puts hbp in the place of the knapsack; what is returned takes it back."""
    seam = import_seam("llamafactory", KNOWN, "llamafactory.data.processor.processor_utils")

    require_seam("llamafactory", KNOWN, (seam, "greedy_knapsack", "numbers capacity"))
    return replace_imported(seam, greedy_knapsack=greedy_knapsack)

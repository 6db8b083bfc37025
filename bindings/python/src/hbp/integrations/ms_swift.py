"""ms-swift: the packs of its packing data sets (swift.dataset.packing.calculate_matched_group).

As few packs as are found; while a stream goes on the emptiest waits for more samples, with
those that do not fill a step of the ranks (WORLD_SIZE). Packs that step together
have like cost. The strategy "sequential" stays ms-swift's."""

# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
# The trainer may not be there, or be taken for this module.
from __future__ import annotations

import functools
from typing import Any, Callable, Sequence

import numpy as np

from . import errors_as, replace, require_seam
from ._packs import WEIGHTS, in_step_order, packs_of, world_size

KNOWN = ("4.6.0.dev0 (3602360a5623)",)


def matched_group(
    sequences: Sequence[Any], packing_length: int, is_finished: bool = True
) -> tuple[list[list[Any]], list[Any]]:
    """Packs of (what, length) pairs, and the pairs that wait. A sample over packing_length is a pack of its own."""
    lengths = np.array([pair[1] for pair in sequences], np.int64)
    if not len(lengths):
        return [], []
    ranks, waits = world_size(), np.zeros(len(lengths), bool)
    with errors_as(ValueError):
        parts = packs_of(lengths, packing_length, weights=np.zeros(len(lengths), np.int64))
    if not is_finished:  # the emptiest wait, and as many more as do not fill a step of the ranks
        fullest = np.argsort(-parts.part_tokens, kind="stable")
        for k in fullest[(len(parts) - 1) // ranks * ranks :].tolist():
            waits[parts[k]] = True
    given = np.flatnonzero(~waits)
    rest = [sequences[k] for k in np.flatnonzero(waits).tolist()]
    if not len(given):
        return [], rest
    parts = packs_of(lengths[given], packing_length, multiple_of=ranks, weights=WEIGHTS)
    packs = in_step_order(parts, lengths[given], ranks, capacity=packing_length)
    return [[sequences[int(given[k])] for k in pack] for pack in packs], rest


def install() -> Callable[[], None]:
    """Puts hbp in the place of ms-swift's own packing; what is returned takes it back."""
    from swift.dataset import packing as seam

    own = seam.calculate_matched_group
    require_seam(
        "ms-swift", KNOWN, (seam, own.__name__, "sequences packing_length is_finished [strategy]")
    )

    @functools.wraps(own)
    def calculate_matched_group(
        sequences: Any, packing_length: int, is_finished: bool = True, strategy: str = "binpack"
    ) -> Any:
        if strategy != "binpack":
            return own(sequences, packing_length, is_finished, strategy)
        return matched_group(sequences, packing_length, is_finished)

    return replace((seam, own.__name__, calculate_matched_group))

"""ms-swift: the packs of its packing data sets (swift.dataset.packing.calculate_matched_group).

As few packs as are found; while a stream goes on the emptiest waits for more samples, with
those that do not fill a step of the ranks (WORLD_SIZE). Packs that step together
have like cost. The strategy "sequential" stays ms-swift's."""

from __future__ import annotations

import functools
from typing import Any, Callable, Sequence

import numpy as np

from .._arrays import integers
from . import errors_as, import_seam, replace, require_seam
from ._packs import in_step_order, packs_of, with_empty, world_size

KNOWN = ("4.0.4", "4.4.2", "4.5.3", "4.6.0", "4.6.0.dev0 (3602360a5623)")


def matched_group(
    sequences: Sequence[Any], packing_length: int, is_finished: bool = True
) -> tuple[list[list[Any]], list[Any]]:
    """Packs of (what, length) pairs, and the pairs that wait. A sample over packing_length is a pack of its own."""
    lengths = integers("lengths", [pair[1] for pair in sequences], np.int64)
    ranks, waits, filled = world_size(), np.zeros(len(lengths), bool), np.flatnonzero(lengths)

    def pack(some: np.ndarray[Any, np.dtype[np.int64]]) -> list[list[int]]:
        parts = packs_of(some, packing_length, multiple_of=ranks)
        return in_step_order(parts, some, ranks, capacity=packing_length)

    with errors_as(ValueError):
        if filled.size and not is_finished:
            # the emptiest wait, and as many more as do not fill a step of the ranks
            parts = packs_of(lengths[filled], packing_length)
            fullest = np.argsort(-parts.part_tokens, kind="stable")
            for k in fullest[(len(parts) - 1) // ranks * ranks :].tolist():
                waits[filled[parts[k]]] = True
        if not is_finished and waits[filled].all():  # only samples without tokens are left
            return [], list(sequences)
        given = np.flatnonzero(~waits)
        packs = with_empty(lengths[given], pack)
    rest = [sequences[k] for k in np.flatnonzero(waits).tolist()]
    return [[sequences[int(given[k])] for k in pack] for pack in packs], rest


def install() -> Callable[[], None]:
    """Puts hbp in the place of ms-swift's own packing; what is returned takes it back."""
    seam = import_seam("ms-swift", KNOWN, "swift.dataset.packing")

    name = "calculate_matched_group"
    require_seam("ms-swift", KNOWN, (seam, name, "sequences packing_length is_finished [strategy]"))
    own = getattr(seam, name)

    @functools.wraps(own)
    def calculate_matched_group(
        sequences: Any, packing_length: int, is_finished: bool = True, strategy: str = "binpack"
    ) -> Any:
        if strategy != "binpack":
            return own(sequences, packing_length, is_finished, strategy)
        return matched_group(sequences, packing_length, is_finished)

    return replace((seam, name, calculate_matched_group))

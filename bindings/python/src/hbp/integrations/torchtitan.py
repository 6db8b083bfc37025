"""torchtitan: rows of its RL batcher (torchtitan.experiments.rl.components.batcher).

As few rows as fit, rounded up to whole micro-batches where there are samples enough, of about equal attention
(a row costs its full length whatever is in it), in an order in which the batcher deals each rank an equal
share. No row holds more than seq_len tokens, no rank is without samples but where there
are fewer samples than ranks."""

from __future__ import annotations

from typing import Any, Callable, List

import numpy as np

from .. import partition
from . import errors_as, heaviest_first, import_seam, replace, require_seam
from ._packs import above_zero

KNOWN = ("0.3.0", "b5bcd76c66d0")


def assign_rows(self: Any, training_samples: List[Any]) -> List[List[Any]]:
    """Rows of samples: row j of cell c, a rank's share of a micro-batch, is the (c + j cells)-th, which
    is how the batcher deals them."""
    if not training_samples:
        return []
    lengths = np.array([self.num_tokens_to_pack(sample) for sample in training_samples], np.int64)
    some, room, _ = above_zero(lengths, self.seq_len)
    ranks, count = self._dp_degree, self.local_batch_size * self._dp_degree
    with errors_as(ValueError):
        full = -(-len(partition(some, capacity=room)) // count) * count
        rows = partition(some, capacity=room, min_parts=min(full, len(some)), weights=lengths * lengths)
        lists, weights = rows.tolist(), rows.part_weights
        if len(rows) == full:
            cells = partition([1] * full, full // self.local_batch_size, equal_count=True, weights=weights)
            lists = [lists[row] for turn in zip(*heaviest_first(cells)) for row in turn]
    return [[training_samples[k] for k in row] for row in lists]


def install() -> Callable[[], None]:
    """Puts hbp in the place of the batcher's next fit; what is returned takes it back."""
    seam = import_seam("torchtitan", KNOWN, "torchtitan.experiments.rl.components.batcher")

    require_seam("torchtitan", KNOWN, (seam, "Batcher", "config num_prompts_per_train_step dp_degree pad_id"))
    require_seam(
        "torchtitan",
        KNOWN,
        (seam.Batcher, "_assign_training_samples_to_rows", "self training_samples"),
        (seam.Batcher, "num_tokens_to_pack", "self training_sample"),
    )
    return replace((seam.Batcher, "_assign_training_samples_to_rows", assign_rows))

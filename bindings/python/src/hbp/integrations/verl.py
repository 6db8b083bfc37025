"""verl: its balance of batches over ranks and its micro-batches (verl.utils.seqlen_balancing).

Karmarkar-Karp's lists become hbp.partition's, with counts equal where verl asks for it, and micro-batches
never hold more than max_token_len tokens: rearrange_micro_batches makes as many more as that takes. Its
other rules stay verl's."""

# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
# The trainer may not be there, or be taken for this module.
from __future__ import annotations

import contextvars
import functools
from typing import Any, Callable, Optional, Sequence

import numpy as np

from .. import InvalidError, partition
from ..errors import refusal
from . import errors_as, heaviest_first, replace_imported, require_seam, whole_weights

KNOWN = ("0.6.1", "0.7.0", "0.10.0.dev (1dda039b9c63)")
_limit: contextvars.ContextVar[Optional[tuple[Any, int]]] = contextvars.ContextVar("_limit", default=None)


def karmarkar_karp(seqlen_list: Sequence[int], k_partitions: int, equal_size: bool) -> list[list[int]]:
    """Lists of about equal sums. Inside rearrange_micro_batches none holds more tokens than its limit."""
    lengths, capacity = _limit.get() or (np.ones(len(seqlen_list), np.int64), None)
    how: dict[str, Any] = {"min_parts": k_partitions} if capacity else {"parts": k_partitions}
    with errors_as(AssertionError):
        if equal_size and len(lengths) % k_partitions:
            samples = f"`equal_size`: {len(lengths)} samples"
            raise refusal(InvalidError, f"{samples} do not divide into `k_partitions`, which is {k_partitions}")
        weights = whole_weights(seqlen_list)
        parts = partition(lengths, capacity=capacity, equal_count=equal_size, weights=weights, **how)
    return heaviest_first(parts)


def install() -> Callable[[], None]:
    """Puts hbp in the place of verl's own balance; what is returned takes it back."""
    from verl.utils import seqlen_balancing as seam

    own: Any = seam.rearrange_micro_batches
    parameters = (
        "batch max_token_len dp_group num_batches_divided_by same_micro_num_in_dp min_num_micro_batch "
        "use_dynamic_bsz_balance [force_group_size]"
    )
    require_seam(
        "verl",
        KNOWN,
        (seam, "karmarkar_karp", "seqlen_list k_partitions equal_size"),
        (seam, "rearrange_micro_batches", parameters),
    )

    @functools.wraps(own)
    def rearrange_micro_batches(
        batch: Any, max_token_len: int, *args: Any, min_num_micro_batch: Any = None, **kwargs: Any
    ) -> Any:
        ids = batch["input_ids"]
        tokens = ids.offsets().diff() if ids.is_nested else batch["attention_mask"].sum(dim=1)
        size = kwargs.get("force_group_size", 1)
        if len(tokens) % size or max(tokens) > max_token_len:
            return own(batch, max_token_len, *args, **kwargs)  # which refuses it
        lengths = np.maximum(np.asarray(tokens.tolist(), np.int64).reshape(-1, size).sum(axis=1), 1)
        with errors_as(AssertionError):
            least = len(partition(lengths, capacity=int(max_token_len)))
        token = _limit.set((lengths, int(max_token_len)))
        try:
            least = max(least, min_num_micro_batch or 1)
            return own(batch, max_token_len, *args, min_num_micro_batch=least, **kwargs)
        finally:
            _limit.reset(token)

    return replace_imported(
        seam, own.__name__, rearrange_micro_batches, (seam, "karmarkar_karp", karmarkar_karp)
    )

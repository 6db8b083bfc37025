"""verl: its balance of batches over ranks and its micro-batches (verl.utils.seqlen_balancing).

Karmarkar-Karp's lists become hbp.partition's, with counts equal where verl asks for it, and micro-batches
never hold more than max_token_len tokens: rearrange_micro_batches makes as many more as that takes. Its
other rules stay verl's."""

from __future__ import annotations

import contextvars
import functools
import inspect
from typing import Any, Callable, Optional, Sequence

import numpy as np

from .. import InvalidError, partition
from ..errors import refusal
from . import errors_as, heaviest_first, import_seam, replace_imported, require_seam, whole_weights

KNOWN = ("0.6.1", "0.7.0", "0.7.1", "0.8.0", "0.9.0", "0.9.1", "0.10.0.dev (1dda039b9c63)")
_limit: contextvars.ContextVar[Optional[tuple[Any, int]]] = contextvars.ContextVar("_limit", default=None)


def karmarkar_karp(seqlen_list: Sequence[int], k_partitions: int, equal_size: bool) -> list[list[int]]:
    """Lists of about equal sums. Inside rearrange_micro_batches none holds more tokens than its limit, but a group that
    must stay together and is longer, which is alone."""
    lengths, capacity = _limit.get() or (np.ones(len(seqlen_list), np.int64), None)
    how: dict[str, Any] = {"min_parts": k_partitions, "over_long": "alone"} if capacity else {"parts": k_partitions}
    with errors_as(AssertionError):
        if equal_size and len(lengths) % k_partitions:
            samples = f"`equal_size`: {len(lengths)} samples"
            raise refusal(InvalidError, f"{samples} do not divide into `k_partitions`, which is {k_partitions}")
        weights = whole_weights(seqlen_list)
        parts = partition(lengths, capacity=capacity, equal_count=equal_size, weights=weights, **how)
    return heaviest_first(parts)


def install() -> Callable[[], None]:
    """Puts hbp in the place of verl's own balance; what is returned takes it back."""
    seam = import_seam("verl", KNOWN, "verl.utils.seqlen_balancing")

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
    own = seam.rearrange_micro_batches

    signature = inspect.signature(own)

    @functools.wraps(own)
    def rearrange_micro_batches(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs)
        given = bound.arguments
        batch, limit, size = given["batch"], given["max_token_len"], given.get("force_group_size", 1)
        ids = batch["input_ids"]
        tokens = ids.offsets().diff() if ids.is_nested else batch["attention_mask"].sum(dim=1)
        if len(tokens) % size or max(tokens) > limit:
            return own(*args, **kwargs)  # which refuses it
        lengths = np.maximum(np.asarray(tokens.tolist(), np.int64).reshape(-1, size).sum(axis=1), 1)
        with errors_as(AssertionError):
            least = len(partition(lengths, capacity=int(limit), over_long="alone"))
        given["min_num_micro_batch"] = max(least, given.get("min_num_micro_batch") or 1)
        token = _limit.set((lengths, int(limit)))
        try:
            return own(*bound.args, **bound.kwargs)
        finally:
            _limit.reset(token)

    return replace_imported(seam, rearrange_micro_batches=rearrange_micro_batches, karmarkar_karp=karmarkar_karp)

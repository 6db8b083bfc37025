"""DeepSpeed: variable batch size and learning rate (deepspeed.runtime.data_pipeline.data_sampling.
variable_batch_size_and_lr.batch_by_seqlens).

Batches are runs of the samples in the order that DeepSpeed's setting names, each as long as
effective_batch_size micro-batches hold; inside one, hbp.partition balances the micro-batches. None holds
more than max_tokens tokens or less than one sample."""

# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
# The trainer may not be there, or be taken for this module.
from __future__ import annotations

import random
from typing import Any, Callable, List, Optional, Tuple

import numpy as np

from .. import InfeasibleError, partition
from . import replace, require_seam
from ._packs import WEIGHTS

KNOWN = ("0.19.6 (edaa7221267c)",)


def batch_by_seqlens(
    seqlens: Any,
    max_tokens: int,
    sequence_ids_per_mb: Any = None,
    min_batch_size: int = 1,
    max_batch_size: Optional[int] = None,
    sequence_picking_order: str = "dataloader",
    effective_batch_size: int = 1,
    required_microbatches_of_same_size: bool = False,
    verbose: bool = False,
    seed: Optional[int] = None,
) -> Tuple[List[Tuple[int, List[int]]], List[int], List[int]]:
    """Micro-batches as (batch, ids), samples of each batch, its longest sample; arguments are DeepSpeed's."""
    assert sequence_picking_order in ("random", "seqlen", "dataloader"), sequence_picking_order
    lengths, count = np.asarray(seqlens, np.int64), effective_batch_size
    order = (
        np.arange(len(lengths)) if sequence_ids_per_mb is None else np.asarray(sequence_ids_per_mb, np.int64)
    )
    order = order[lengths[order] <= max_tokens].tolist()  # DeepSpeed leaves the longer ones out, too
    if sequence_picking_order == "random":
        random.Random(seed).shuffle(order)
    elif sequence_picking_order == "seqlen":
        order.sort(key=lambda k: (lengths[k], k))
    sums, first = np.concatenate([[0], np.cumsum(lengths[order])]), 0
    equal = required_microbatches_of_same_size or min_batch_size > 1  # so that none has fewer
    micro_batches: List[Tuple[int, List[int]]] = []
    sizes: List[int] = []
    longest: List[int] = []
    while len(order) - first >= count * max(1, min_batch_size):
        end = int(np.searchsorted(sums, sums[first] + count * max_tokens, side="right")) - 1
        end = min(end, first + count * max_batch_size) if max_batch_size else end
        while True:
            end -= (end - first) % count if equal else 0
            if end - first < count * max(1, min_batch_size):
                raise ValueError(
                    f"{count} micro-batches of {min_batch_size} samples pass {max_tokens} tokens"
                )
            ids = order[first:end]
            try:
                parts = partition(
                    lengths[ids],
                    count,
                    capacity=max_tokens,
                    max_samples=max_batch_size,
                    equal_count=equal,
                    weights=WEIGHTS,
                ).tolist()
                break
            except InfeasibleError:  # as many tokens as hold in all, but not in whole samples
                end -= 1
        micro_batches += [(len(sizes), [ids[k] for k in part]) for part in parts]
        sizes.append(len(ids))
        longest.append(int(lengths[ids].max()))
        first = end
    assert sizes, "not enough samples for one batch"
    return micro_batches, sizes, longest


def install() -> Callable[[], None]:
    """Puts hbp in the place of DeepSpeed's batching; what is returned takes it back."""
    from deepspeed.runtime.data_pipeline.data_sampling import variable_batch_size_and_lr as seam

    parameters = (
        "seqlens max_tokens sequence_ids_per_mb min_batch_size max_batch_size sequence_picking_order "
        "effective_batch_size required_microbatches_of_same_size verbose seed"
    )
    require_seam("deepspeed", KNOWN, (seam, "batch_by_seqlens", parameters))
    return replace((seam, "batch_by_seqlens", batch_by_seqlens))

"""DeepSpeed: variable batch size and learning rate (deepspeed.runtime.data_pipeline.data_sampling.
variable_batch_size_and_lr.batch_by_seqlens).

Batches are runs of the samples in the order that DeepSpeed's setting names, each as long as
effective_batch_size micro-batches hold; inside one, hbp.partition balances the micro-batches. None holds
more than max_tokens tokens or less than min_batch_size samples. What is longer, or leaves its neighbours
no space for so many, is left out with a warning; DeepSpeed itself ends at such a place."""

from __future__ import annotations

import logging
import math
import random
from typing import Any, Callable, List, Optional, Tuple

import numpy as np
import numpy.typing as npt

from .. import InfeasibleError, partition
from . import errors_as, import_seam, replace, require_seam, whole_weights
from ._packs import costs_of

KNOWN = ("0.18.9", "0.19.6 (edaa7221267c)", "0.19.8")
Numbers = npt.NDArray[Any]


def _whole(values: Numbers, limit: float) -> Tuple[Numbers, int, Numbers]:
    """Lengths of at most `limit` and the limit as integers above 0 under which the same samples fit, and what
    each costs. Fractions are kept to 2^-32 of the limit, lengths of 0 are the least that counts."""
    integral = bool((values == np.floor(values)).all())
    limit = math.floor(limit) if integral else limit
    cost = costs_of(values.astype(np.int64)) if integral else whole_weights(costs_of(values))
    if integral and (values > 0).all():
        return values.astype(np.int64), int(limit), cost
    scale = 2.0 ** max(0, 32 - math.frexp(limit)[1])
    spare = int(scale) - 1 if integral else 0  # for lengths of 0, which take 1 each
    return np.maximum(np.ceil(values * scale), 1).astype(np.int64), math.floor(limit * scale) + spare, cost


def batch_by_seqlens(
    seqlens: Any,
    max_tokens: float,
    sequence_ids_per_mb: Any = None,
    min_batch_size: Optional[int] = 1,
    max_batch_size: Optional[int] = None,
    sequence_picking_order: str = "dataloader",
    effective_batch_size: int = 1,
    required_microbatches_of_same_size: bool = False,
    verbose: bool = False,
    seed: Optional[int] = None,
) -> Tuple[List[Tuple[int, List[int]]], List[int], List[float]]:
    """Micro-batches as (batch, ids), samples of each batch, its longest sample; arguments are DeepSpeed's."""
    count, least, most = effective_batch_size, min_batch_size or 1, max_batch_size or None
    assert sequence_picking_order in ("random", "seqlen", "dataloader"), sequence_picking_order
    assert count >= 1, f"effective_batch_size is {count}; it is at least 1"
    assert 0 < max_tokens < math.inf, f"max_tokens is {max_tokens}; it is above 0 and finite"
    assert not most or least <= most, f"max_batch_size {most} is less than min_batch_size {least}"
    lengths = np.asarray(seqlens)
    is_number = lengths.dtype.kind in "iuf" or not len(lengths)
    assert is_number, f"seqlens are of {lengths.dtype}; they are numbers"
    for k in np.flatnonzero(~(lengths >= 0) | (lengths == np.inf))[:1].tolist():
        raise AssertionError(f"seqlens[{k}] is {lengths[k]}; it is at least 0 and finite")
    order = list(range(len(lengths)) if sequence_ids_per_mb is None else map(int, sequence_ids_per_mb))
    if sequence_picking_order == "random":
        random.Random(seed).shuffle(order)
    elif sequence_picking_order == "seqlen":
        order.sort(key=lambda k: (lengths[k], k))
    wanted = np.array(order, np.int64)
    fits = lengths[wanted] <= max_tokens
    ids, longer = wanted[fits], wanted[~fits].tolist()  # as DeepSpeed does
    if longer:
        message = "%s samples are left out, the first %s: longer than max_tokens %s"
        logging.getLogger(__name__).warning(message, len(longer), longer[:8], max_tokens)
    with errors_as(AssertionError):
        batches = _batches(
            *_whole(lengths[ids], max_tokens), count, least, most, required_microbatches_of_same_size
        )
    assert batches, (
        f"not enough samples for one batch of {count} micro-batches of at least {least} samples and at most "
        f"{max_tokens} tokens: {len(ids)} samples"
    )
    longest = [lengths[ids[np.concatenate(parts)]].max().item() for parts in batches]
    pairs = [(batch, ids[part].tolist()) for batch, parts in enumerate(batches) for part in parts]
    return pairs, [sum(map(len, parts)) for parts in batches], longest


def _batches(
    tokens: Numbers, capacity: int, cost: Numbers, count: int, least: int, most: Optional[int], same: bool
) -> List[List[Numbers]]:
    """Batches of `count` lists of places each, of at least `least` samples: runs of samples in their order,
    without those that keep their neighbours from it."""
    equal = same or least > 1  # so that none has fewer
    order, first, alone = np.arange(len(tokens)), 0, []
    sums = np.concatenate([[0], np.cumsum(tokens)])
    batches: List[List[Numbers]] = []
    while len(order) - first >= count * least:
        end = int(np.searchsorted(sums, sums[first] + count * capacity, side="right")) - 1
        end = min(end, first + count * most) if most else end
        while (end := end - ((end - first) % count if equal else 0)) - first >= count * least:
            some = order[first:end]
            try:
                made = partition(
                    tokens[some],
                    count,
                    capacity=capacity,
                    max_samples=most,
                    equal_count=equal,
                    weights=cost[some],
                )
            except InfeasibleError:  # as many tokens as hold in all, but not in whole samples
                end -= 1
                continue
            batches.append([some[part] for part in made])
            break
        else:
            last = first + int(np.argmax(tokens[order[first : first + count * least]])) + 1
            order[first:last] = np.roll(order[first:last], 1)  # the longest is left out
            sums[first + 1 : last + 1] = sums[first] + np.cumsum(tokens[order[first:last]])
            alone.append(int(order[first]))
            end = first + 1
        first = end
    if alone and batches:
        message = (
            "%d samples are left out: with neighbours they pass max_tokens in micro-batches of %d samples"
        )
        logging.getLogger(__name__).warning(message, len(alone), least)
    return batches


def install() -> Callable[[], None]:
    """Puts hbp in the place of DeepSpeed's batching; what is returned takes it back."""
    path = "deepspeed.runtime.data_pipeline.data_sampling.variable_batch_size_and_lr"
    seam = import_seam("deepspeed", KNOWN, path)

    parameters = (
        "seqlens max_tokens sequence_ids_per_mb min_batch_size max_batch_size sequence_picking_order "
        "effective_batch_size required_microbatches_of_same_size verbose seed"
    )
    require_seam("deepspeed", KNOWN, (seam, "batch_by_seqlens", parameters))
    return replace((seam, "batch_by_seqlens", batch_by_seqlens))

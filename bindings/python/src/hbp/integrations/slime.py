"""slime: micro-batches and ranks of a rollout (slime.utils.dp_schedule.build_dp_schedule).

With dynamic batch sizes, as few micro-batches as fit, of about equal work, none over max_tokens_per_gpu x
context-parallel size but one of a single longer sample, balance_by_flops included; ranks with
balance_data get equal counts of about equal work."""

from __future__ import annotations

import contextvars
from typing import Any, Callable, Optional, Sequence

import numpy as np

from .. import HbpError, partition
from . import errors_as, heaviest_first, import_seam, replace, require_seam, whole_weights

KNOWN = ("0.3.1 (624b824a898a)",)


class _MicroBatches(list):  # type: ignore[type-arg]
    """Lists of samples that know how they were made, so that they can be made anew."""

    def __init__(self, lengths: Sequence[int], capacity: int, weights: Any) -> None:
        self.lengths, self.capacity, self.weights = np.asarray(lengths), capacity, weights
        super().__init__(self.make(1))

    def make(self, count: int, of: Any = slice(None)) -> list[list[int]]:
        lengths = self.lengths[of]
        weights = None if self.weights is None else self.weights[of]
        how: dict[str, Any] = {"capacity": self.capacity, "min_parts": count, "over_long": "alone"}
        return heaviest_first(partition(lengths, weights=weights, **how))

    def deal(self, ranks: int, heaviest: int) -> bool:
        """Makes as many lists of samples that are dealt to ranks first, each rank's beside one another,
        where that makes the heaviest rank lighter than `heaviest`."""
        each, made = len(self) // ranks, []
        try:
            room = {"capacity": each * self.capacity, "weights": self.weights}
            of_ranks = partition(np.minimum(self.lengths, self.capacity), ranks, **room)
            for ids in of_ranks:
                made += [ids[part].tolist() for part in self.make(each, ids)]
        except HbpError:  # too full for it
            return False
        if len(made) != len(self) or of_ranks.heaviest >= heaviest:
            return False
        self[:] = made
        return True


_made: contextvars.ContextVar[Optional[_MicroBatches]] = contextvars.ContextVar("_made", default=None)


def get_seqlen_balanced_partitions(
    seqlen_list: Sequence[Any], k_partitions: int, equal_size: bool
) -> list[list[int]]:
    """Lists of about equal sums, with equal_size of equal counts. Micro-batches just made may be made
    anew."""
    made = _made.get()
    with errors_as(AssertionError):
        weights = whole_weights(seqlen_list)
        parts = partition([1] * len(weights), k_partitions, equal_count=equal_size, weights=weights)
    if made is not None and equal_size and len(made) == len(weights) and made.weights is not None:
        heaviest = max(int(made.weights[sum((made[k] for k in part), [])].sum()) for part in parts.tolist())
        if made.deal(k_partitions, heaviest):
            each = len(made) // k_partitions
            return [list(range(first, first + each)) for first in range(0, len(made), each)]
    return heaviest_first(parts)


def expand_bins_by_splitting(bins: list[list[int]], target_count: int, lengths: Sequence[int]) -> None:
    """Makes the lists anew, as many as are wanted."""
    with errors_as(AssertionError):
        bins[:] = bins.make(target_count)  # type: ignore[attr-defined]


def install() -> Callable[[], None]:
    """Puts hbp in the place of slime's packing and balance; what is returned takes it back."""
    seam = import_seam("slime", KNOWN, "slime.utils.dp_schedule")

    parameters = "step_lengths args use_dynamic_batch_size max_per_bin micro_batch_size balance_by_flops"
    require_seam(
        "slime",
        KNOWN,
        (seam, "_pack_step_into_mbs", parameters),
        (seam, "_calculate_workloads", "step_lengths args"),
        (seam, "expand_bins_by_splitting", "bins target_count lengths"),
        (seam, "get_seqlen_balanced_partitions", "seqlen_list k_partitions equal_size"),
    )
    own, workloads = seam._pack_step_into_mbs, seam._calculate_workloads

    def _pack_step_into_mbs(
        step_lengths: list[int],
        *,
        args: Any,
        use_dynamic_batch_size: bool,
        max_per_bin: Optional[int],
        micro_batch_size: Optional[int],
        balance_by_flops: bool = False,
    ) -> list[list[int]]:
        _made.set(None)
        if not use_dynamic_batch_size:
            fixed: list[list[int]] = own(
                step_lengths,
                args=args,
                use_dynamic_batch_size=False,
                max_per_bin=max_per_bin,
                micro_batch_size=micro_batch_size,
                balance_by_flops=balance_by_flops,
            )
            return fixed
        assert max_per_bin is not None
        by_work = balance_by_flops or args.balance_data
        with errors_as(AssertionError):
            weights = whole_weights(workloads(step_lengths, args)) if by_work else None
            made = _MicroBatches(step_lengths, max_per_bin, weights)
        _made.set(made)
        return made

    mine = (_pack_step_into_mbs, expand_bins_by_splitting, get_seqlen_balanced_partitions)
    return replace(*((seam, function.__name__, function) for function in mine))

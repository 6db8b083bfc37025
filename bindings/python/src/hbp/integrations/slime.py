"""slime: micro-batches and ranks of a rollout (slime.utils.dp_schedule.build_dp_schedule).

With dynamic batch sizes, as few micro-batches as fit, of about equal work, none over max_tokens_per_gpu x
context-parallel size but one of a single longer sample, balance_by_flops included; ranks with balance_data get
equal counts of about equal work."""

from __future__ import annotations

from typing import Any, Callable, Optional, Sequence

from .. import partition
from . import errors_as, heaviest_first, replace, require_seam, whole_weights

KNOWN = ("0.3.1 (624b824a898a)",)


class _MicroBatches(list):  # type: ignore[type-arg]
    """Lists of samples that know how they were made, so that more of them can be."""

    def __init__(self, lengths: Sequence[int], capacity: int, weights: Any) -> None:
        self.make: Callable[[int], list[list[int]]] = lambda count: heaviest_first(
            partition(lengths, capacity=capacity, min_parts=count, weights=weights, over_long="alone")
        )
        super().__init__(self.make(1))


def get_seqlen_balanced_partitions(
    seqlen_list: Sequence[Any], k_partitions: int, equal_size: bool
) -> list[list[int]]:
    """Lists of about equal sums, with equal_size of equal counts."""
    weights = whole_weights(seqlen_list)
    with errors_as(AssertionError):
        parts = partition([1] * len(weights), k_partitions, equal_count=equal_size, weights=weights)
    return heaviest_first(parts)


def expand_bins_by_splitting(bins: list[list[int]], target_count: int, lengths: Sequence[int]) -> None:
    """Makes the lists anew, as many as are wanted."""
    with errors_as(AssertionError):
        bins[:] = bins.make(target_count)  # type: ignore[attr-defined]


def install() -> Callable[[], None]:
    """Puts hbp in the place of slime's packing and balance; what is returned takes it back."""
    from slime.utils import dp_schedule as seam

    own, workloads = seam._pack_step_into_mbs, seam._calculate_workloads
    parameters = "step_lengths args use_dynamic_batch_size max_per_bin micro_batch_size balance_by_flops"
    require_seam(
        "slime",
        KNOWN,
        (seam, "_pack_step_into_mbs", parameters),
        (seam, "_calculate_workloads", "step_lengths args"),
        (seam, "expand_bins_by_splitting", "bins target_count lengths"),
        (seam, "get_seqlen_balanced_partitions", "seqlen_list k_partitions equal_size"),
    )

    def _pack_step_into_mbs(
        step_lengths: list[int],
        *,
        args: Any,
        use_dynamic_batch_size: bool,
        max_per_bin: Optional[int],
        micro_batch_size: Optional[int],
        balance_by_flops: bool = False,
    ) -> list[list[int]]:
        if not use_dynamic_batch_size:
            return own(
                step_lengths, args=args, use_dynamic_batch_size=False, max_per_bin=max_per_bin,
                micro_batch_size=micro_batch_size, balance_by_flops=balance_by_flops,
            )  # fmt: skip
        assert max_per_bin is not None
        by_work = balance_by_flops or args.balance_data
        with errors_as(AssertionError):
            return _MicroBatches(
                step_lengths, max_per_bin, whole_weights(workloads(step_lengths, args)) if by_work else None
            )

    mine = (_pack_step_into_mbs, expand_bins_by_splitting, get_seqlen_balanced_partitions)
    return replace(*((seam, function.__name__, function) for function in mine))

"""From packs to a plan, and an epoch in one call, by this library's method or those of others."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, Callable, Mapping, Optional, Sequence, TypedDict, Union

from ._arrays import address, joined
from ._choices import BalanceMethod, EpochComposition, EpochMethod, EpochOverLong
from ._context import ProgressOption
from ._inputs import Integers
from ._native import lib
from ._numbers import refuse_unknown, suggesting
from ._records import BalanceOptions, EpochOptions
from .cost import Cost
from .groups import Groups
from .lengths import Lengths
from .packs import Packs
from .plans import Plan

if TYPE_CHECKING:
    from typing_extensions import Unpack


@suggesting
def balance_attention(
    packs: Packs,
    groups: Groups,
    cost: Cost,
    *,
    method: BalanceMethod = "time",
    micro_batch_multiple: int = 0,
    drop_last: bool = False,
    curriculum_steps: int = 0,
    tokens_per_step: int = 0,
    seed: int = 0,
    epoch: int = 0,
    modality_order: bool = False,
    progress: ProgressOption = None,
) -> Plan:
    """Puts packs of like cost into micro-batches, those into steps, and the steps in order (HBP, Algorithm
    7); `method` is "time", "sorted", "given", "random" or "vision" (balanced in vision units and in tokens). With
    `modality_order` all packs of a micro-batch hold samples of the same modalities."""
    options = BalanceOptions.pick(locals())
    return Plan._make(
        lib.hbp_balance_attention, packs, groups, cost, ctypes.byref(options), progress=progress
    )


INPUTS: Mapping[str, Callable[..., Any]] = {"hbp.Cost": Cost, "hbp.Lengths.from_array": Lengths.from_array}
"""What a plan is made of, which has options of its own."""


class EpochKeywords(TypedDict, total=False):
    """The options of plan_epoch."""

    method: EpochMethod
    over_long: EpochOverLong
    max_groups: int
    micro_batch_multiple: int
    drop_last: bool
    max_samples: int
    effort: int
    max_length: int
    tokens_per_step: int
    curriculum_steps: int
    sequence_multiple: int
    pack_multiple: int
    samples_per_step: int
    window_samples: int
    seed: int
    epoch: int
    groups: Optional[Groups]
    mixture_slack: int
    modality_order: bool
    max_vision: int
    composition: EpochComposition
    threads: int
    micro_batches_per_step: int
    equal_samples: bool
    step_slack: int
    min_sp: int
    max_pack_length: int
    tokens_per_rank: int
    sequence_multiple_per_sp: int
    pack_multiple_per_sp: int
    batches: Optional[Sequence[Integers]]
    sequence_tokens_per_rank: int


def _options(options: EpochKeywords) -> tuple[EpochOptions, object]:
    """The struct, and what must be kept while it is in use; the groups are the caller's to keep alive."""
    refuse_unknown(options, EpochKeywords, INPUTS)
    batches = options.get("batches")
    if batches is not None and len(batches) == 0:
        raise ValueError("batches has no batch; give None where no batches are given")
    offsets, samples = joined("batches", batches or [])
    struct = EpochOptions.pick(
        options,
        batches=0 if batches is None else len(batches),
        batch_offsets=None if batches is None else address(offsets),
        batch_samples=None if batches is None else address(samples),
    )
    return struct, (offsets, samples)


def plan_epoch(
    lengths: Union[Lengths, Integers],
    cost: Cost,
    *,
    progress: ProgressOption = None,
    **options: Unpack[EpochKeywords],
) -> Plan:
    """Plans an epoch of `lengths` (an array or list of tokens per sample, or hbp.Lengths).

    Options are the fields of hbp_epoch_options, 0 being the default of each. What a step holds is asked for in
    one form: samples_per_step (drawn as a shuffled sampler draws them), tokens_per_step (at most), or batches (a
    list of arrays of sample indices, the trainer's own sampler's); with none of them a number of tokens is
    chosen, which summary().tokens_per_step says. window_samples (a sample moves only inside its window) goes
    with tokens_per_step alone; composition, curriculum_steps and drop_last not with batches. composition is
    "auto", "random", "stratified" (each step a small copy of the epoch) or "hierarchy" (HBP: a step holds packs of one group); mixture_slack: thousandths
    that steps which are no hierarchy may take longer (0: 10; -1: none). Steps that a trainer can run:
    micro_batches_per_step (exactly), micro_batch_multiple, equal_samples (a rank), tokens_per_rank,
    max_pack_length, max_samples (per pack), sequence_multiple and pack_multiple (padding), and the same
    per_sp, times the pack's degree. threads plan steps side by side, the same plan for any number.
    Further: max_length (longest sample, for which tokens_per_step is chosen; 0: the longest there is), over_long
    "error", "drop", "truncate" or "split" for what is longer, groups (hbp.Groups to use), window_samples,
    max_groups, step_slack, effort, curriculum_steps, drop_last, seed, epoch, max_vision (vision units that a pack
    may hold; micro-batches are then of packs similar in units, too), modality_order (all packs of a micro-batch
    hold samples of the same modalities). The plan is a pure function of all of them, so that every rank may plan for itself.

    method is "search", HBP as published, "hbp", or one of others to compare with, "next-fit", say;
    hbp.methods(of="epoch") lists them. An option that a method does not keep is refused. groups, of one group,
    says how long packs of one length are and on which degree they run; "flexsp", "hybrid-cp" and "dynamic-cp" plan each
    step for itself and heed tokens_per_rank, "hybrid-cp" sequence_tokens_per_rank, both of Megatron's min_sp."""
    (struct, _kept), data = _options(options), Lengths.of(lengths)
    return Plan._make(lib.hbp_plan_epoch, data, cost, ctypes.byref(struct), progress=progress)

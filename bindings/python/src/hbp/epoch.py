"""From packs to a plan, the four moves in one call, and the classic ways of batching."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Optional, TypedDict, Union

import numpy.typing as npt

from ._context import ProgressFn
from ._native import lib
from ._numbers import choice
from ._structs import BalanceOptions, EpochOptions
from .cost import Cost
from .groups import Groups
from .lengths import OVER_LONG, Lengths
from .packs import Packs
from .plan import Plan

if TYPE_CHECKING:
    from typing_extensions import Unpack

BALANCE_MODES = {"time": 0, "sorted": 1, "given": 2, "random": 3, "vision": 4}
EPOCH_MODES = {"default": 0, "paper": 1, "mixed": 2}


def balance_attention(
    packs: Packs,
    groups: Groups,
    cost: Cost,
    *,
    mode: str = "time",
    micro_batch_multiple: int = 0,
    drop_last: bool = False,
    curriculum_steps: int = 0,
    tokens_per_step: int = 0,
    seed: int = 0,
    epoch: int = 0,
    modality_order: bool = False,
    progress: Optional[ProgressFn] = None,
) -> Plan:
    """Puts packs of like cost into micro-batches, those into steps, and the steps in order (HBP, Algorithm
    7); `mode` is "time", "sorted", "given", "random" or "vision" (alike in vision units and in tokens). With
    `modality_order` all packs of a micro-batch hold the same kinds of samples."""
    options = BalanceOptions(
        mode=choice("mode", mode, BALANCE_MODES),
        micro_batch_multiple=micro_batch_multiple,
        drop_last=bool(drop_last),
        curriculum_steps=curriculum_steps,
        tokens_per_step=tokens_per_step,
        seed=seed,
        epoch=epoch,
        modality_order=bool(modality_order),
    )
    return Plan._make(
        lib.hbp_balance_attention, packs, groups, cost, ctypes.byref(options), progress=progress
    )


class EpochKeywords(TypedDict, total=False):
    """The options of plan_epoch and plan_baseline."""

    mode: str
    over_long: str
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
    mixed_slack: int
    modality_order: bool
    max_vision: int


def _options(
    *,
    mode: str = "default",
    over_long: str = "error",
    max_groups: int = 0,
    micro_batch_multiple: int = 0,
    drop_last: bool = False,
    max_samples: int = 0,
    effort: int = 0,
    max_length: int = 0,
    tokens_per_step: int = 0,
    curriculum_steps: int = 0,
    sequence_multiple: int = 0,
    pack_multiple: int = 0,
    samples_per_step: int = 0,
    window_samples: int = 0,
    seed: int = 0,
    epoch: int = 0,
    groups: Optional[Groups] = None,
    mixed_slack: int = 0,
    modality_order: bool = False,
    max_vision: int = 0,
) -> EpochOptions:
    """The struct; what it points to is the caller's to keep alive."""
    if groups is not None and not isinstance(groups, Groups):
        raise TypeError(f"groups is {groups!r}; it must be hbp.Groups")
    return EpochOptions(
        mode=choice("mode", mode, EPOCH_MODES),
        over_long=choice("over_long", over_long, OVER_LONG),
        max_groups=max_groups,
        micro_batch_multiple=micro_batch_multiple,
        drop_last=bool(drop_last),
        max_samples=max_samples,
        effort=effort,
        max_length=max_length,
        tokens_per_step=tokens_per_step,
        curriculum_steps=curriculum_steps,
        sequence_multiple=sequence_multiple,
        pack_multiple=pack_multiple,
        samples_per_step=samples_per_step,
        window_samples=window_samples,
        seed=seed,
        epoch=epoch,
        groups=None if groups is None else groups._handle.pointer,
        mixed_slack=mixed_slack,
        modality_order=bool(modality_order),
        max_vision=max_vision,
    )


def plan_epoch(
    lengths: Union[Lengths, npt.ArrayLike],
    cost: Cost,
    *,
    progress: Optional[ProgressFn] = None,
    **options: Unpack[EpochKeywords],
) -> Plan:
    """Plans an epoch of `lengths` (an array or list of tokens per sample, or hbp.Lengths): limit, groups,
    fill, balance.

    Options are the fields of hbp_epoch_options, 0 being the default of each: max_length (longest sample and
    pack; 0: the longest sample), over_long "error", "drop", "truncate" or "split" for what is longer, mode
    "default", "paper" or "mixed", mixed_slack (thousandths that mode mixed may be longer for steps closer to
    the mixture), groups (hbp.Groups to use), tokens_per_step, samples_per_step, window_samples,
    max_samples (per pack), sequence_multiple and pack_multiple (padding), micro_batch_multiple, max_groups,
    effort, curriculum_steps, drop_last, seed, epoch, max_vision (vision units that a pack may hold; packs and
    micro-batches are then even in both sizes), modality_order (all packs of a micro-batch hold the same kinds
    of samples). The plan is a pure function of all of them, so that
    every rank may plan for itself."""
    struct, data = _options(**options), Lengths.of(lengths)
    return Plan._make(lib.hbp_plan_epoch, data, cost, ctypes.byref(struct), progress=progress)


def baselines() -> list[str]:
    """The names of the classic ways of batching: "no-packing", "sorted", ..."""
    names: list[str] = []
    while True:
        name = lib.hbp_baseline_name(len(names))
        if name is None:
            return names
        names.append(name.decode())


def plan_baseline(
    lengths: Union[Lengths, npt.ArrayLike],
    cost: Cost,
    baseline: str,
    *,
    progress: Optional[ProgressFn] = None,
    **options: Unpack[EpochKeywords],
) -> Plan:
    """Plans an epoch a classic way, which baselines() names, to compare with. Options as for plan_epoch;
    those that such a way has no use for are ignored."""
    number = choice("baseline", baseline, {name: index for index, name in enumerate(baselines())})
    struct, data = _options(**options), Lengths.of(lengths)
    return Plan._make(lib.hbp_plan_baseline, data, cost, number, ctypes.byref(struct), progress=progress)

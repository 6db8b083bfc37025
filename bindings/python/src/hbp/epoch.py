"""From packs to a plan, the four moves in one call, and the classic ways of batching."""

from __future__ import annotations

from ctypes import byref
from typing import Any, Optional, Union

from . import _structs as s
from ._context import Progress, make
from ._native import lib, text
from .cost import Cost
from .lengths import ArrayLike, Lengths, as_lengths
from .packing import Groups, Packs
from .plan import Plan


def balance_attention(packs: Packs, groups: Groups, cost: Cost, *, mode: str = "time", micro_batch_multiple: int = 0,
                      drop_last: bool = False, curriculum_steps: int = 0, tokens_per_step: int = 0, seed: int = 0,
                      epoch: int = 0, progress: Progress = None) -> Plan:
    """Puts packs of like cost into micro-batches, those into steps, and the steps in order; mode "time", "sorted",
    "given" or "random"."""
    options = s.BalanceOptions(mode=s.code(s.BALANCE_MODES, mode, "mode"), micro_batch_multiple=micro_batch_multiple,
                               drop_last=bool(drop_last), curriculum_steps=curriculum_steps,
                               tokens_per_step=tokens_per_step, seed=seed, epoch=epoch)
    return Plan(make(lib.hbp_balance_attention, packs, groups, cost, byref(options), free=lib.hbp_plan_free, long=True,
                     progress=progress))


def _options(*, mode: str, over_long: str, groups: Optional[Groups], drop_last: bool, **values: Any) -> s.EpochOptions:
    return s.EpochOptions(mode=s.code(s.EPOCH_MODES, mode, "mode"), drop_last=bool(drop_last),
                          over_long=s.code(s.OVER_LONG, over_long, "over_long"),
                          groups=None if groups is None else groups._as_parameter_.value, **values)


def plan_epoch(lengths: Union[Lengths, ArrayLike], cost: Cost, *, mode: str = "default", over_long: str = "error",
               max_groups: int = 0, micro_batch_multiple: int = 0, drop_last: bool = False, max_samples: int = 0,
               effort: int = 0, max_length: int = 0, tokens_per_step: int = 0, curriculum_steps: int = 0,
               sequence_multiple: int = 0, pack_multiple: int = 0, samples_per_step: int = 0, window_samples: int = 0,
               seed: int = 0, epoch: int = 0, groups: Optional[Groups] = None, progress: Progress = None) -> Plan:
    """Plans an epoch. `lengths`: a numpy array or list of tokens per sample, or hbp.Lengths.

    max_length: longest sample and pack, 0 is the longest sample; over_long: "error", "drop", "truncate" or "split";
    mode "default" or "paper"; the rest as in hbp_epoch_options, where 0 is the default. The plan is a pure function of
    its arguments: every rank may plan for itself.
    """
    options = _options(mode=mode, over_long=over_long, max_groups=max_groups,
                       micro_batch_multiple=micro_batch_multiple, drop_last=drop_last, max_samples=max_samples,
                       effort=effort, max_length=max_length, tokens_per_step=tokens_per_step,
                       curriculum_steps=curriculum_steps, sequence_multiple=sequence_multiple,
                       pack_multiple=pack_multiple, samples_per_step=samples_per_step, window_samples=window_samples,
                       seed=seed, epoch=epoch, groups=groups)
    return Plan(make(lib.hbp_plan_epoch, as_lengths(lengths), cost, byref(options), free=lib.hbp_plan_free, long=True,
                     progress=progress))


def baselines() -> list[str]:
    """The names of the classic ways: "no-packing", "sorted", ..."""
    names: list[str] = []
    while (name := text(lib.hbp_baseline_name(len(names)))) is not None:
        names.append(name)
    return names


def plan_baseline(lengths: Union[Lengths, ArrayLike], cost: Cost, baseline: str, *, mode: str = "default",
                  over_long: str = "error", max_groups: int = 0, micro_batch_multiple: int = 0,
                  drop_last: bool = False, max_samples: int = 0, effort: int = 0, max_length: int = 0,
                  tokens_per_step: int = 0, curriculum_steps: int = 0, sequence_multiple: int = 0,
                  pack_multiple: int = 0, samples_per_step: int = 0, window_samples: int = 0, seed: int = 0,
                  epoch: int = 0, groups: Optional[Groups] = None, progress: Progress = None) -> Plan:
    """Plans an epoch a classic way (baselines() names them); options that such a way has no use for are ignored."""
    options = _options(mode=mode, over_long=over_long, max_groups=max_groups,
                       micro_batch_multiple=micro_batch_multiple, drop_last=drop_last, max_samples=max_samples,
                       effort=effort, max_length=max_length, tokens_per_step=tokens_per_step,
                       curriculum_steps=curriculum_steps, sequence_multiple=sequence_multiple,
                       pack_multiple=pack_multiple, samples_per_step=samples_per_step, window_samples=window_samples,
                       seed=seed, epoch=epoch, groups=groups)
    number = s.code(tuple(baselines()), baseline, "baseline")
    return Plan(make(lib.hbp_plan_baseline, as_lengths(lengths), cost, number, byref(options), free=lib.hbp_plan_free,
                     long=True, progress=progress))

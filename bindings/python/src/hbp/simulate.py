"""Replays a plan and measures it, and the bound that no plan can beat."""

from __future__ import annotations

from ctypes import byref, c_int64
from dataclasses import dataclass
from typing import Union

from . import _structs as s
from ._context import Progress, call_long, fields
from ._native import lib
from .cost import Cost
from .lengths import ArrayLike, Lengths, as_lengths
from .plan import Plan, duration


@dataclass(frozen=True)
class Report:
    """hbp_report: what a plan is predicted to cost. Shares are in 0..1. str() of it is for people."""

    ranks: int
    steps: int
    epoch_ns: int
    bound_ns: int
    tokens: int
    peak_bytes: int
    gap: float
    idle: float
    dbr: float
    padding: float
    abr: float
    abr_paper: float
    cr: float
    ave_tokens: float
    tokens_per_s_per_gpu: float
    communication: float
    samples_cv: float
    mixture_distance: float

    def __str__(self) -> str:
        bound = f", {self.gap:.2%} above the bound" if self.bound_ns else ""
        return "\n".join([
            f"{self.steps:,} steps on {self.ranks} ranks, {duration(self.epoch_ns)}{bound}",
            f"idle {self.idle:.2%}, padding {self.padding:.2%}, communication {self.communication:.2%}",
            f"{self.tokens_per_s_per_gpu:,.0f} tokens/s per GPU, peak {self.peak_bytes / 2**30:.1f} GiB",
        ])


def simulate(plan: Plan, cost: Cost, *, bound: bool = True, tokens_per_step: int = 0,
             progress: Progress = None) -> Report:
    """Recomputes times and memory from samples and cost; nothing the plan predicts is used. bound=False leaves the
    bound out; tokens_per_step limits the bound's steps, 0: the plan's own number."""
    options = s.SimulateOptions(bound=0 if bound else 1, tokens_per_step=tokens_per_step)
    report = s.Report()
    call_long(lib.hbp_simulate, plan, cost, byref(options), byref(report), progress=progress)
    return Report(**fields(report))


def bound_epoch(lengths: Union[Lengths, ArrayLike], cost: Cost, steps: int, *, progress: Progress = None) -> int:
    """No plan that runs these samples whole in at least `steps` steps is predicted to take fewer ns."""
    bound = c_int64()
    call_long(lib.hbp_bound_epoch, as_lengths(lengths), cost, steps, byref(bound), progress=progress)
    return bound.value

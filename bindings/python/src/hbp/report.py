"""What a plan comes to, and what no plan can beat."""

from __future__ import annotations

import ctypes
from typing import Union

from ._context import ProgressOption, call_long
from ._inputs import Integers
from ._native import lib
from ._numbers import int64, suggesting
from ._records import SimulateOptions
from ._results import Report
from .cost import Cost
from .lengths import Lengths
from .patterns import PatternPlan
from .plans import Plan


@suggesting
def simulate(
    plan: Union[Plan, PatternPlan],
    cost: Cost,
    *,
    no_bound: bool = False,
    tokens_per_step: int = 0,
    progress: ProgressOption = None,
) -> Report:
    """Replays a plan under a cost; with `no_bound`, bound_ns is 0 and gap NaN. Of a plan by patterns the whole listed
    one, a few steps of which are listed at a time."""
    options, report = SimulateOptions.pick(locals()), Report()
    replay = lib.hbp_pattern_plan_simulate if isinstance(plan, PatternPlan) else lib.hbp_simulate
    call_long(replay, plan, cost, ctypes.byref(options), ctypes.byref(report), progress=progress)
    return report


def bound_epoch(lengths: Union[Lengths, Integers], cost: Cost, steps: int) -> int:
    """Nanoseconds that no plan of these samples in at least `steps` steps is predicted to beat."""
    bound = ctypes.c_int64()
    call_long(lib.hbp_bound_epoch, Lengths.of(lengths), cost, int64("steps", steps), ctypes.byref(bound))
    return bound.value

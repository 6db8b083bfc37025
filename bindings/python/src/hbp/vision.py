"""Packs under two budgets, vision units and tokens."""

from __future__ import annotations

import ctypes
from typing import Union

from ._choices import BudgetsMethod, IterativeFillMethod, IterativeFillOverLong
from ._context import ProgressOption, call_long
from ._inputs import Integers
from ._native import lib
from ._numbers import suggesting
from ._records import BudgetsOptions, IterativeFillOptions
from ._results import Budgets
from .lengths import Lengths
from .packs import Packs


@suggesting
def iterative_fill(
    lengths: Union[Lengths, Integers],
    *,
    max_tokens: int,
    max_vision: int = 0,
    method: IterativeFillMethod = "vector",
    rounds: int = 0,
    effort: int = 0,
    max_samples: int = 0,
    over_long: IterativeFillOverLong = "error",
    full_tokens: int = 0,
    full_vision: int = 0,
    sequence_multiple: int = 0,
    pack_multiple: int = 0,
    seed: int = 0,
    epoch: int = 0,
    progress: ProgressOption = None,
) -> Packs:
    """Fills packs of at most `max_vision` vision units and `max_tokens` tokens (OmniBal, section 3.2).

    Method "vector" packs both sizes at once and loses no sample; `effort` 1..9 searches for fewer packs. "isf" is
    OmniBal's program, sample by sample: `rounds`, `full_tokens`, `full_vision` and `seed` are its
    parameters. `over_long`, "error" or "drop", is for samples over a budget."""
    options = IterativeFillOptions.pick(locals())
    source = Lengths.of(lengths)
    return Packs._make(
        lib.hbp_iterative_fill, source, ctypes.byref(options), keep=source._handle._keep, progress=progress
    )


@suggesting
def choose_budgets(
    lengths: Union[Lengths, Integers],
    *,
    method: BudgetsMethod = "plane",
    samples: int = 0,
    ranks: int = 0,
    rounds: int = 0,
    effort: int = 0,
    max_tokens: int = 0,
    max_vision: int = 0,
    token_multiple: int = 0,
    most_samples: float = 0,
    seed: int = 0,
    progress: ProgressOption = None,
) -> Budgets:
    """The budgets under which a pack holds `samples` samples on average (0: 4) and micro-batches of `ranks`
    packs (0: 8) are fullest and most even: method "plane" searches over both budgets, "line" is
    OmniBal's own."""
    options = BudgetsOptions.pick(locals())
    budgets = Budgets()
    call_long(
        lib.hbp_choose_budgets,
        Lengths.of(lengths),
        ctypes.byref(options),
        ctypes.byref(budgets),
        progress=progress,
    )
    return budgets

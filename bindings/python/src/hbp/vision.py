"""Packs under two budgets, vision units and tokens."""

from __future__ import annotations

import ctypes
from typing import Optional, Union

import numpy.typing as npt

from ._context import ProgressFn, call_long
from ._native import lib
from ._numbers import choice
from ._structs_vlm import Budgets, BudgetsOptions, IterativeFillOptions
from .lengths import OVER_LONG, Lengths
from .packs import Packs

FILL_MODES = {"default": 0, "reference": 1}
BUDGETS_MODES = {"plane": 0, "line": 1}


def iterative_fill(
    lengths: Union[Lengths, npt.ArrayLike],
    *,
    max_tokens: int,
    max_vision: int = 0,
    mode: str = "default",
    rounds: int = 0,
    effort: int = 0,
    max_samples: int = 0,
    over_long: str = "error",
    full_tokens: int = 0,
    full_vision: int = 0,
    sequence_multiple: int = 0,
    pack_multiple: int = 0,
    seed: int = 0,
    epoch: int = 0,
    progress: Optional[ProgressFn] = None,
) -> Packs:
    """Fills packs of at most `max_vision` vision units and `max_tokens` tokens (OmniBal, section 3.2).

    "default" packs both sizes at once and loses no sample; `effort` 1..9 searches for fewer packs. "reference"
    is OmniBal's program, sample by sample: `rounds`, `full_tokens`, `full_vision` and `seed` are its
    parameters. `over_long`, "error" or "drop", is for samples over a budget."""
    options = IterativeFillOptions(
        mode=choice("mode", mode, FILL_MODES),
        rounds=rounds,
        effort=effort,
        max_samples=max_samples,
        over_long=choice("over_long", over_long, OVER_LONG),
        max_tokens=max_tokens,
        max_vision=max_vision,
        full_tokens=full_tokens,
        full_vision=full_vision,
        sequence_multiple=sequence_multiple,
        pack_multiple=pack_multiple,
        seed=seed,
        epoch=epoch,
    )
    source = Lengths.of(lengths)
    return Packs._make(
        lib.hbp_iterative_fill, source, ctypes.byref(options), keep=source._handle._keep, progress=progress
    )


def choose_budgets(
    lengths: Union[Lengths, npt.ArrayLike],
    *,
    mode: str = "plane",
    samples: int = 0,
    ranks: int = 0,
    rounds: int = 0,
    effort: int = 0,
    max_tokens: int = 0,
    max_vision: int = 0,
    token_multiple: int = 0,
    most_samples: float = 0,
    seed: int = 0,
    progress: Optional[ProgressFn] = None,
) -> Budgets:
    """The budgets under which a pack holds `samples` samples on average (0: 4) and micro-batches of `ranks`
    packs (0: 8) are fullest and most even: a search over both budgets, or OmniBal's own "line"."""
    options = BudgetsOptions(
        mode=choice("mode", mode, BUDGETS_MODES),
        samples=samples,
        ranks=ranks,
        rounds=rounds,
        effort=effort,
        max_tokens=max_tokens,
        max_vision=max_vision,
        token_multiple=token_multiple,
        most_samples=most_samples,
        seed=seed,
    )
    budgets = Budgets()
    call_long(
        lib.hbp_choose_budgets,
        Lengths.of(lengths),
        ctypes.byref(options),
        ctypes.byref(budgets),
        progress=progress,
    )
    return budgets

"""Which samples share a pack."""

from __future__ import annotations

import ctypes
from typing import Optional, Union

import numpy as np
import numpy.typing as npt

from . import _native
from ._arrays import Column
from ._context import Owned, ProgressFn
from ._native import lib
from ._numbers import choice, int64
from ._structs import FillOptions
from .groups import Groups
from .lengths import Lengths

MODES = {"balanced": 0, "tight": 1, "paper": 2}


class Packs(Owned):
    """Samples in packs, a row a pack. Immutable."""

    _opaque = _native.Packs
    _free = "hbp_packs_free"

    offsets = Column("hbp_packs_get_offsets", np.int64, "First sample of each pack, [packs + 1].")
    groups = Column("hbp_packs_get_groups", np.int32, "Row of the groups that each pack belongs to.")
    tokens = Column("hbp_packs_get_tokens", np.int64, "Tokens of each pack.")
    padded_tokens = Column("hbp_packs_get_padded_tokens", np.int64, "Tokens of each pack after padding.")
    squares = Column("hbp_packs_get_squares", np.int64, "Sum of squared lengths of each pack.")
    vision = Column(
        "hbp_packs_get_vision",
        np.int64,
        "Vision units of each pack; None without a second size.",
        optional=True,
    )
    samples = Column(
        "hbp_packs_get_samples", np.uint32, "Samples (pieces) of the lengths, packs laid end to end."
    )
    dropped = Column("hbp_packs_get_dropped", np.uint32, "Samples (pieces) that the fill left out.")
    dropped_reasons = Column("hbp_packs_get_dropped_reasons", np.int32, "Why, as hbp.plan.REASONS names it.")

    def bound(self, group: int) -> int:
        """No filling of this group's samples needs fewer packs."""
        packs = lib.hbp_packs_get_bound(self, int64("group", group))
        if packs < 0:
            raise IndexError(f"there is no group {group}")
        return packs

    def __len__(self) -> int:
        return len(self.tokens)

    def __getitem__(self, pack: int) -> npt.NDArray[np.uint32]:
        """The samples (pieces) of a pack."""
        at = range(len(self))[pack]
        return self.samples[self.offsets[at] : self.offsets[at + 1]]

    def __repr__(self) -> str:
        return f"<hbp.Packs: {len(self.samples):,} samples in {len(self):,} packs>"


def greedy_fill(
    lengths: Union[Lengths, npt.ArrayLike],
    groups: Groups,
    *,
    mode: str = "balanced",
    effort: int = 0,
    max_samples: int = 0,
    sequence_multiple: int = 0,
    pack_multiple: int = 0,
    seed: int = 0,
    epoch: int = 0,
    progress: Optional[ProgressFn] = None,
) -> Packs:
    """Fills packs of every group (HBP, Algorithms 2, 5 and 6): "balanced", "tight" for the fewest packs, or
    "paper"."""
    options = FillOptions(
        mode=choice("mode", mode, MODES),
        effort=effort,
        max_samples=max_samples,
        sequence_multiple=sequence_multiple,
        pack_multiple=pack_multiple,
        seed=seed,
        epoch=epoch,
    )
    source = Lengths.of(lengths)
    return Packs._make(
        lib.hbp_greedy_fill,
        source,
        groups,
        ctypes.byref(options),
        keep=source._handle._keep,
        progress=progress,
    )

"""Which samples share a pack."""

from __future__ import annotations

import ctypes
from typing import Optional, Sequence, Union

import numpy as np
import numpy.typing as npt

from . import _native
from ._arrays import ViewColumn, address, integers, joined, same_count
from ._context import Owned, ProgressFn
from ._native import lib
from ._records import FillOptions, PacksView
from .groups import Groups
from .lengths import Lengths


class Packs(Owned):
    """Samples in packs, a row a pack. Immutable."""

    _opaque = _native.Packs
    _free = "hbp_packs_free"
    _view = PacksView
    _get_view = "hbp_packs_get_view"

    pack_offsets = ViewColumn("packs", "First sample of each pack, [packs + 1].", extra=1)
    pack_groups = ViewColumn("packs", "Row of the groups that each pack belongs to.")
    pack_tokens = ViewColumn("packs", "Tokens of each pack.")
    pack_padded_tokens = ViewColumn("packs", "Tokens of each pack after padding.")
    pack_squares = ViewColumn("packs", "Sum of squared lengths of each pack.")
    pack_vision = ViewColumn("packs", "Vision units of each pack; None without a second size.", optional=True)
    sample_indices = ViewColumn("samples", "Samples (pieces) of the lengths, packs laid end to end.")
    dropped_indices = ViewColumn("dropped", "Samples (pieces) that the fill left out.")
    dropped_reasons = ViewColumn("dropped", "Why, as hbp.plan.REASONS names it.")
    group_bounds = ViewColumn("groups", "No filling of each group's samples needs fewer packs.")

    @classmethod
    def create(
        cls,
        lengths: Union[Lengths, npt.ArrayLike],
        groups: Groups,
        packs: Sequence[npt.ArrayLike],
        pack_groups: Optional[npt.ArrayLike] = None,
        *,
        sequence_multiple: int = 0,
        pack_multiple: int = 0,
    ) -> Packs:
        """Packs made elsewhere, for balance_attention: an array of samples (pieces) each, and the row of the
        groups that each belongs to, without which it is the first that holds the pack."""
        options, source = FillOptions.pick(locals()), Lengths.of(lengths)
        offsets, samples = joined("packs", packs)
        rows = None if pack_groups is None else integers("pack_groups", pack_groups, np.int32)
        return cls._make(
            lib.hbp_packs_create,
            source,
            groups,
            len(offsets) - 1,
            address(offsets),
            address(samples),
            None if rows is None else address(same_count("pack_groups", rows, len(offsets) - 1)),
            ctypes.byref(options),
            keep=source._handle._keep,
        )

    def bound(self, group: int) -> int:
        """No filling of this group's samples needs fewer packs."""
        if not 0 <= group < len(self.group_bounds):
            raise IndexError(f"there is no group {group}")
        return int(self.group_bounds[group])

    def __len__(self) -> int:
        return len(self.pack_tokens)

    def __getitem__(self, pack: int) -> npt.NDArray[np.uint32]:
        """The samples (pieces) of a pack."""
        at = range(len(self))[pack]
        return self.sample_indices[self.pack_offsets[at] : self.pack_offsets[at + 1]]

    def __repr__(self) -> str:
        return f"<hbp.Packs: {len(self.sample_indices):,} samples in {len(self):,} packs>"


def greedy_fill(
    lengths: Union[Lengths, npt.ArrayLike],
    groups: Groups,
    *,
    method: str = "balanced",
    effort: int = 0,
    max_samples: int = 0,
    sequence_multiple: int = 0,
    pack_multiple: int = 0,
    seed: int = 0,
    epoch: int = 0,
    progress: Optional[ProgressFn] = None,
) -> Packs:
    """Fills packs of every group (HBP, Algorithms 2, 5 and 6) by method "balanced", "tight" for the fewest
    packs, or "hbp" as published."""
    options = FillOptions.pick(locals())
    source = Lengths.of(lengths)
    return Packs._make(
        lib.hbp_greedy_fill,
        source,
        groups,
        ctypes.byref(options),
        keep=source._handle._keep,
        progress=progress,
    )

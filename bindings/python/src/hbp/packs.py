"""Which samples share a pack."""

from __future__ import annotations

import ctypes
from typing import Any, Literal, Optional, Sequence, Union

import numpy as np
import numpy.typing as npt

from . import _native
from ._arrays import OptionalViewColumn, ViewColumn, address, integers, joined, same_count
from ._choices import FillMethod
from ._context import Owned, ProgressOption
from ._inputs import Integers
from ._native import lib
from ._numbers import suggesting
from ._records import FillOptions, PacksView
from ._text import many
from .groups import Groups
from .lengths import Lengths


PacksRows = Literal["samples", "packs"]


class Packs(Owned):
    """Samples in packs, a row a pack. Immutable."""

    _opaque = _native.Packs
    _free = "hbp_packs_free"
    _view = PacksView
    _get_view = "hbp_packs_get_view"

    pack_offsets = ViewColumn[np.int64]("packs", "First sample of each pack, [packs + 1].", extra=1)
    pack_groups = ViewColumn[np.int32]("packs", "Row of the groups that each pack belongs to.")
    pack_tokens = ViewColumn[np.int64]("packs", "Tokens of each pack.")
    pack_padded_tokens = ViewColumn[np.int64]("packs", "Tokens of each pack after padding.")
    pack_squares = ViewColumn[np.int64]("packs", "Sum of squared lengths of each pack.")
    pack_vision = OptionalViewColumn[np.int64]("packs", "Vision units of each pack; None without a second size.")
    sample_indices = ViewColumn[np.uint32]("samples", "Samples (pieces) of the lengths, packs laid end to end.")
    dropped_indices = ViewColumn[np.uint32]("dropped", "Samples (pieces) that the fill left out.")
    dropped_reasons = ViewColumn[np.int32]("dropped", "Why, as hbp.plans.REASONS names it.")
    group_bounds = ViewColumn[np.int64]("groups", "No filling of each group's samples needs fewer packs.")

    @classmethod
    @suggesting
    def create(
        cls,
        lengths: Union[Lengths, Integers],
        groups: Groups,
        packs: Sequence[Integers],
        pack_groups: Optional[Integers] = None,
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

    def columns(self, rows: PacksRows = "samples") -> dict[str, npt.NDArray[Any]]:
        """The packs as a table, {name: values}, with a row for each of its "samples", packs laid end to end, or
        "packs"."""
        from ._tables import packs_columns

        return packs_columns(self, rows)

    def to_arrow(self, rows: PacksRows = "samples") -> Any:
        """The table of `columns` as a pyarrow.Table."""
        from ._tables import arrow_table

        return arrow_table(self.columns(rows), "Packs.to_arrow")

    def to_pandas(self, rows: PacksRows = "samples") -> Any:
        """The table of `columns` as a pandas.DataFrame."""
        from ._tables import pandas_frame

        return pandas_frame(self.columns(rows), "Packs.to_pandas")

    def __repr__(self) -> str:
        return f"<hbp.Packs: {many(len(self.sample_indices), 'sample')} in {many(len(self), 'pack')}>"


@suggesting
def greedy_fill(
    lengths: Union[Lengths, Integers],
    groups: Groups,
    *,
    method: FillMethod = "balanced",
    effort: int = 0,
    max_samples: int = 0,
    sequence_multiple: int = 0,
    pack_multiple: int = 0,
    seed: int = 0,
    epoch: int = 0,
    progress: ProgressOption = None,
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

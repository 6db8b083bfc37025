"""The levels of the hierarchy: pack lengths, each with its SP degree and recomputed layers."""

from __future__ import annotations

import ctypes
from typing import Any, Optional, Union

import numpy as np
import numpy.typing as npt

from . import _native
from ._arrays import ViewColumn, address, integers, read_view, same_count, texts
from ._choices import GroupsMethod
from ._context import Owned, ProgressOption
from ._inputs import Integers
from ._native import lib
from ._numbers import int64, suggesting
from ._records import GroupsOptions, GroupsView
from ._text import many
from .cost import Cost
from .lengths import Lengths


class Groups(Owned):
    """The groups of an epoch, one row each, ascending in threshold. Immutable."""

    _opaque = _native.Groups
    _free = "hbp_groups_free"
    _view = GroupsView
    _get_view = "hbp_groups_get_view"

    thresholds = ViewColumn[np.int64]("groups", "Longest sample of each group, in tokens.")
    pack_lengths = ViewColumn[np.int64]("groups", "Capacity of each group's packs, in tokens.")
    sp = ViewColumn[np.int32]("groups", "SP degrees.")
    recompute = ViewColumn[np.int32]("groups", "Recomputed layers.")
    packs = ViewColumn[np.int64]("groups", "Packs in a micro-batch.")
    micro_batches = ViewColumn[np.int64]("groups", "Micro-batches in a step.")
    tokens = ViewColumn[np.int64]("groups", "Tokens of the samples that belong to each group.")
    step_ns = ViewColumn[np.int64]("groups", "Predicted time of a full step.")
    candidate_ns = ViewColumn[np.int64]("candidates", "Predicted epoch of each hierarchy considered.")

    @classmethod
    def create(
        cls,
        cost: Cost,
        pack_lengths: Integers,
        sp: Integers,
        recompute: Optional[Integers] = None,
        *,
        tokens_per_step: int = 0,
    ) -> Groups:
        """Groups by hand, pack lengths ascending; `recompute` None or -1 recomputes the fewest layers that
        fit."""
        lengths = integers("pack_lengths", pack_lengths, np.int64)
        degrees = same_count("sp", integers("sp", sp, np.int32), len(lengths))
        layers = (
            np.full(len(lengths), -1, np.int32)
            if recompute is None
            else integers("recompute", recompute, np.int32)
        )
        columns = address(lengths), address(degrees), address(same_count("recompute", layers, len(lengths)))
        return cls._make(
            lib.hbp_groups_create, cost, len(lengths), *columns, int64("tokens_per_step", tokens_per_step)
        )

    @property
    def tokens_per_step(self) -> int:
        """The tokens a step carries."""
        return int(read_view(self).tokens_per_step)

    def candidates(self) -> list[tuple[str, int]]:
        """The hierarchies considered, best first: a text such as "16384 x SP 1, 131072 x SP 8", predicted
        ns."""
        names = texts(read_view(self).candidate_texts, len(self.candidate_ns))
        return list(zip(names, self.candidate_ns.tolist()))

    def __len__(self) -> int:
        return len(self.thresholds)

    def __str__(self) -> str:
        columns: list[npt.NDArray[Any]] = [self.pack_lengths, self.sp, self.recompute, self.micro_batches]
        rows = zip(*(column.tolist() for column in columns))
        return "\n".join(
            f"{length:>9,} tokens x SP {sp}, {many(layers, 'layer')} recomputed, {many(count, 'micro-batch')} a step"
            for length, sp, layers, count in rows
        )

    def __repr__(self) -> str:
        rows = zip(self.pack_lengths.tolist(), self.sp.tolist())
        return f"<hbp.Groups: {', '.join(f'{length} x SP {sp}' for length, sp in rows)}>"


@suggesting
def plan_groups(
    lengths: Union[Lengths, Integers],
    cost: Cost,
    *,
    method: GroupsMethod = "optimal",
    max_groups: int = 0,
    step_slack: int = 0,
    tokens_per_step: int = 0,
    max_length: int = 0,
    min_length: int = 0,
    pack_multiple: int = 0,
    sequence_multiple: int = 0,
    max_pack_length: int = 0,
    tokens_per_rank: int = 0,
    progress: ProgressOption = None,
) -> Groups:
    """Chooses the groups for these lengths (HBP, Algorithm 1), by method "optimal" or, "hbp", by the published
    rule; 0 means the default."""
    options = GroupsOptions.pick(locals())
    return Groups._make(
        lib.hbp_plan_groups, Lengths.of(lengths), cost, ctypes.byref(options), progress=progress
    )

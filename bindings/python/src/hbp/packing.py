"""The levels of the hierarchy, and which samples share a pack."""

from __future__ import annotations

from ctypes import byref
from typing import Optional, Sequence, Union

import numpy as np

from . import _structs as s
from ._context import I32, I64, U32, Handle, Object, Progress, column, make
from ._native import lib, text
from .cost import Cost, _int32_array
from .lengths import ArrayLike, Lengths, as_lengths, int64_array


class Column:
    """A column of an object: a read-only view, made once. `optional` columns are None where C returns NULL."""

    def __init__(self, prefix: str, dtype: np.dtype, optional: bool = False) -> None:
        self.prefix, self.dtype, self.optional = prefix, dtype, optional

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name
        self.getter = getattr(lib, f"{self.prefix}_{name}")

    def __get__(self, instance, owner=None):
        if instance is None:
            return self
        values = column(self.getter, instance._handle, self.dtype)
        if self.optional and not values.size:
            values = None
        instance.__dict__[self.name] = values  # found there from now on
        return values


class Groups(Object):
    """Pack lengths, each with its SP degree and recomputed layers; columns have a row a group."""

    thresholds: np.ndarray = Column("hbp_groups_get", I64)
    pack_lengths: np.ndarray = Column("hbp_groups_get", I64)
    sp: np.ndarray = Column("hbp_groups_get", I32)
    recompute: np.ndarray = Column("hbp_groups_get", I32)
    packs: np.ndarray = Column("hbp_groups_get", I64)
    micro_batches: np.ndarray = Column("hbp_groups_get", I64)
    tokens: np.ndarray = Column("hbp_groups_get", I64)
    step_ns: np.ndarray = Column("hbp_groups_get", I64)
    candidate_ns: np.ndarray = Column("hbp_groups_get", I64)

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    @classmethod
    def create(cls, cost: Cost, pack_length: ArrayLike, sp: ArrayLike,
               recompute: Optional[Union[Sequence[int], np.ndarray]] = None, *, tokens_per_step: int = 0) -> "Groups":
        """Groups by hand, pack_length ascending; recompute -1 or None: the fewest layers that fit."""
        lengths, degrees = int64_array(pack_length, "pack_length"), _int32_array(sp, "sp")
        layers = np.full(lengths.size, -1, np.int32) if recompute is None else _int32_array(recompute, "recompute")
        if not lengths.size == degrees.size == layers.size:
            raise ValueError(f"the columns have {lengths.size}, {degrees.size} and {layers.size} rows")
        return cls(make(lib.hbp_groups_create, cost, lengths.size, lengths.ctypes.data, degrees.ctypes.data,
                        layers.ctypes.data, tokens_per_step, free=lib.hbp_groups_free))

    @property
    def tokens_per_step(self) -> int:
        return lib.hbp_groups_get_tokens_per_step(self)

    @property
    def candidates(self) -> list[tuple[int, str]]:
        """The hierarchies considered, best first: predicted epoch time in ns, and a text."""
        return [(int(ns), text(lib.hbp_groups_get_candidate_text(self, i))) for i, ns in enumerate(self.candidate_ns)]

    def __len__(self) -> int:
        return self.pack_lengths.size

    def __repr__(self) -> str:
        rows = (f"{length} x SP {sp}" for length, sp in zip(self.pack_lengths, self.sp))
        return f"<hbp.Groups: {', '.join(rows)}>"


def plan_groups(lengths: Union[Lengths, ArrayLike], cost: Cost, *, mode: str = "optimal", max_groups: int = 0,
                step_slack: int = 0, tokens_per_step: int = 0, max_length: int = 0, min_length: int = 0,
                pack_multiple: int = 0, progress: Progress = None) -> Groups:
    """Chooses the groups for these lengths; mode "optimal" or "paper". 0 is the default (hbp_groups_options)."""
    options = s.GroupsOptions(mode=s.code(s.GROUPS_MODES, mode, "mode"), max_groups=max_groups, step_slack=step_slack,
                              tokens_per_step=tokens_per_step, max_length=max_length, min_length=min_length,
                              pack_multiple=pack_multiple)
    return Groups(make(lib.hbp_plan_groups, as_lengths(lengths), cost, byref(options), free=lib.hbp_groups_free,
                       long=True, progress=progress))


class Packs(Object):
    """Which samples share a pack; columns have a row a pack, offsets one more, samples a row a sample (piece)."""

    offsets: np.ndarray = Column("hbp_packs_get", I64)
    groups: np.ndarray = Column("hbp_packs_get", I32)
    tokens: np.ndarray = Column("hbp_packs_get", I64)
    padded_tokens: np.ndarray = Column("hbp_packs_get", I64)
    squares: np.ndarray = Column("hbp_packs_get", I64)
    samples: np.ndarray = Column("hbp_packs_get", U32)

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    def bound(self, group: int) -> int:
        """No fewer packs hold this group's samples; -1 for no such group."""
        return lib.hbp_packs_get_bound(self, group)

    def __len__(self) -> int:
        return self.groups.size

    def __repr__(self) -> str:
        return f"<hbp.Packs: {len(self):,} packs, {self.samples.size:,} samples>"


def greedy_fill(lengths: Union[Lengths, ArrayLike], groups: Groups, *, mode: str = "balanced", effort: int = 0,
                max_samples: int = 0, sequence_multiple: int = 0, pack_multiple: int = 0, seed: int = 0, epoch: int = 0,
                progress: Progress = None) -> Packs:
    """Fills packs of every group; mode "balanced", "tight" or "paper". 0 is the default (hbp_fill_options)."""
    options = s.FillOptions(mode=s.code(s.FILL_MODES, mode, "mode"), effort=effort, max_samples=max_samples,
                            sequence_multiple=sequence_multiple, pack_multiple=pack_multiple, seed=seed, epoch=epoch)
    data = as_lengths(lengths)
    return Packs(make(lib.hbp_greedy_fill, data, groups, byref(options), free=lib.hbp_packs_free,
                      borrowed=data._handle, long=True, progress=progress))

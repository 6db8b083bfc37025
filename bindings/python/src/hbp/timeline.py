"""What a run measured, a row for each pack: what costs are fitted to."""

from __future__ import annotations

import ctypes
from typing import Any, Optional, overload

import numpy as np
import numpy.typing as npt

from . import _native
from ._arrays import AnyColumn, Scalar, addresses, column_arrays, columns_of, view
from ._context import call
from ._files import Path, Saved, path_bytes
from ._inputs import Integers
from ._native import lib
from ._records import Measurements, TimelineColumns, TimelineReport
from ._text import many
from .cost import Cost


class _OfTimeline(AnyColumn[Scalar]):
    """A column of the timeline's."""

    def _find(self, instance: Any) -> "tuple[Optional[int], int, npt.DTypeLike]":
        columns = instance._columns()
        return getattr(columns, self._name), columns.count, TimelineColumns._record[self._name].column


class _Column(_OfTimeline[Scalar]):
    """A column that is always there."""

    @overload
    def __get__(self, instance: None, owner: Any = None) -> _Column[Scalar]: ...

    @overload
    def __get__(self, instance: Timeline, owner: Any = None) -> npt.NDArray[Scalar]: ...

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else self._read(instance)


class _OptionalColumn(_OfTimeline[Scalar]):
    """A column that is None where it is not known."""

    @overload
    def __get__(self, instance: None, owner: Any = None) -> _OptionalColumn[Scalar]: ...

    @overload
    def __get__(self, instance: Timeline, owner: Any = None) -> Optional[npt.NDArray[Scalar]]: ...

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else self._read(instance, optional=True)


class Timeline(Saved):
    """What a run measured. Immutable. Columns have a value a pack; times are in nanoseconds, and a pack's is
    that of its SP group's slowest rank, from when all its ranks could begin to its end."""

    _opaque = _native.Timeline
    _free = "hbp_timeline_free"

    step = _Column[np.int64]("Step of the epoch.")
    micro_batch = _Column[np.int32]("Micro-batch of the step, from 0.")
    first_rank = _Column[np.int32]("First rank of the SP group.")
    sp = _Column[np.int32]("Ranks of the SP group.")
    recompute = _Column[np.int32]("Layers recomputed.")
    samples = _OptionalColumn[np.int64]("Samples; 0 for a padding pack. May be None.")
    tokens = _Column[np.int64]("Tokens computed, padding included.")
    sum_squares = _Column[np.int64]("Sum of squared document lengths.")
    start_ns = _OptionalColumn[np.int64]("Since the run began. May be None.")
    time_ns = _Column[np.int64]("What the pack took.")
    communication_ns = _OptionalColumn[np.int64]("Of it in all-to-alls. May be None.")
    peak_bytes = _OptionalColumn[np.int64]("Of the fullest rank. May be None.")

    def __init__(
        self,
        *,
        ranks: int,
        step: Integers,
        micro_batch: Integers,
        first_rank: Integers,
        sp: Integers,
        recompute: Integers,
        tokens: Integers,
        sum_squares: Integers,
        time_ns: Integers,
        samples: Optional[Integers] = None,
        start_ns: Optional[Integers] = None,
        communication_ns: Optional[Integers] = None,
        peak_bytes: Optional[Integers] = None,
        device: Optional[str] = None,
        date: Optional[str] = None,
    ) -> None:
        """A row for each pack of a run on `ranks` ranks, in any order. `device` is what it ran on, `date` when,
        as "2026-11-22"."""
        arrays = column_arrays(TimelineColumns, columns_of(TimelineColumns, locals()))
        count = len(next(iter(arrays.values()), ()))
        columns = TimelineColumns(
            ranks=ranks,
            count=count,
            device=device,
            date=date,
            **addresses(arrays),
        )
        self._handle = Timeline._make(lib.hbp_timeline_create, ctypes.byref(columns))._handle

    @classmethod
    def load(cls, path: Path) -> Timeline:
        """From CSV with columns named as here; `time_us`, `peak_mib` and the like say other units, and lines
        "# device: ...", "# date: ..." and "# ranks: N" the rest. "-" is standard input."""
        return cls._make(lib.hbp_timeline_load, path_bytes(path))

    def save(self, path: Path) -> None:
        """Writes that CSV: a whole new file or, after a failure, none."""
        call(lib.hbp_timeline_save, self, path_bytes(path))

    def _columns(self) -> TimelineColumns:
        columns = TimelineColumns()
        call(lib.hbp_timeline_get_columns, self, ctypes.byref(columns))
        return columns

    def _measured(self) -> Measurements:
        """The rows without padding packs, as hbp_cost_fit takes them; the timeline owns them."""
        measured = Measurements()
        call(lib.hbp_timeline_get_measurements, self, ctypes.byref(measured))
        return measured

    def measurements(self) -> dict[str, npt.NDArray[Any]]:
        """The columns that costs are fitted to, by name, as read-only views: of the packs that are no padding, and
        `step_ns`, what stands between the packs of each two neighbouring steps."""
        measured = self._measured()
        rows = {"step_ns": measured.steps}
        return {
            name: view(getattr(measured, name), rows.get(name, measured.count), field.column, self._handle)
            for name, field in Measurements._record.items()
            if field.column and getattr(measured, name)
        }

    def compare(self, cost: Cost) -> TimelineReport:
        """How far the cost's predictions are from these measurements."""
        report = TimelineReport()
        call(lib.hbp_timeline_compare, self, cost, ctypes.byref(report))
        return report

    @property
    def ranks(self) -> int:
        """Ranks of the run."""
        return self._columns().ranks

    @property
    def device(self) -> Optional[str]:
        """What it ran on; None when it is not known."""
        device = self._columns().device
        return None if device is None else device.decode(errors="replace")

    @property
    def date(self) -> Optional[str]:
        """When it ran; None when it is not known."""
        date = self._columns().date
        return None if date is None else date.decode(errors="replace")

    def __len__(self) -> int:
        return self._columns().count

    def __repr__(self) -> str:
        on = "" if self.device is None else f" on {self.device}"
        return f"<hbp.Timeline: {many(len(self), 'pack')} on {many(self.ranks, 'rank')}{on}>"

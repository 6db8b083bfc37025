"""What a run measured, a row for each pack: what costs are fitted to."""

from __future__ import annotations

import ctypes
from typing import Any, Optional

import numpy as np
import numpy.typing as npt

from . import _native
from ._arrays import addresses, column_arrays, columns_of, view
from ._context import call
from ._files import Path, Saved, path_bytes
from ._native import lib
from ._records import Measurements, TimelineColumns, TimelineReport
from .cost import Cost


class _Column:
    """A column: a read-only numpy view, made on first use; None where it is not known."""

    def __init__(self, doc: str) -> None:
        self.__doc__ = doc

    def __set_name__(self, owner: Any, name: str) -> None:
        self._name = name

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        columns = instance._columns()
        pointer = getattr(columns, self._name)
        found = None if not pointer else view(pointer, columns.count, TimelineColumns._record[self._name].column, instance._handle)
        instance.__dict__[self._name] = found
        return found


class Timeline(Saved):
    """What a run measured. Immutable. Columns have a value a pack; times are in nanoseconds, and a pack's is
    that of its SP group's slowest rank, from when all its ranks could begin to its end."""

    _opaque = _native.Timeline
    _free = "hbp_timeline_free"

    step = _Column("Step of the epoch.")
    micro_batch = _Column("Micro-batch of the step, from 0.")
    first_rank = _Column("First rank of the SP group.")
    sp = _Column("Ranks of the SP group.")
    recompute = _Column("Layers recomputed.")
    samples = _Column("Samples; 0 for a padding pack. May be None.")
    tokens = _Column("Tokens computed, padding included.")
    sum_squares = _Column("Sum of squared document lengths.")
    start_ns = _Column("Since the run began. May be None.")
    time_ns = _Column("What the pack took.")
    communication_ns = _Column("Of it in all-to-alls. May be None.")
    peak_bytes = _Column("Of the fullest rank. May be None.")

    def __init__(
        self,
        *,
        ranks: int,
        step: npt.ArrayLike,
        micro_batch: npt.ArrayLike,
        first_rank: npt.ArrayLike,
        sp: npt.ArrayLike,
        recompute: npt.ArrayLike,
        tokens: npt.ArrayLike,
        sum_squares: npt.ArrayLike,
        time_ns: npt.ArrayLike,
        samples: Optional[npt.ArrayLike] = None,
        start_ns: Optional[npt.ArrayLike] = None,
        communication_ns: Optional[npt.ArrayLike] = None,
        peak_bytes: Optional[npt.ArrayLike] = None,
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
        """The columns that costs are fitted to, by name and without padding packs, as read-only views."""
        measured = self._measured()
        return {
            name: view(getattr(measured, name), measured.count, field.column, self._handle)
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
        return f"<hbp.Timeline: {len(self)} packs on {self.ranks} ranks{on}>"

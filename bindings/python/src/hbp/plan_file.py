"""A plan file opened for reading single steps."""

from __future__ import annotations

import ctypes
from typing import Iterator, Optional

from . import _native
from ._context import Owned, call
from ._files import Path, path_bytes
from ._native import lib
from ._numbers import int64
from ._results import PlanSummary
from ._text import many
from .cost import Cost
from .errors import InvalidError
from .plans import Plan, Step, Steps

STEPS = 256  # that are read at a time


class PlanFile(Steps, Owned):
    """A plan file opened for reading single steps: header and index only are in memory. One thread at a
    time."""

    _opaque = _native.PlanFile
    _free = "hbp_plan_file_free"

    def __init__(self, path: Path) -> None:
        self._handle = PlanFile._make(lib.hbp_plan_file_open, path_bytes(path))._handle

    def summary(self) -> PlanSummary:
        """The whole plan in numbers."""
        summary = PlanSummary()
        call(lib.hbp_plan_file_get_summary, self, ctypes.byref(summary))
        return summary

    @property
    def has_vlm(self) -> bool:
        """Whether the plan is the data of a vision-language plan, which VlmPlan.load reads whole."""
        return bool(lib.hbp_plan_file_has_vlm(self))

    @property
    def note(self) -> str:
        """What the plan was saved with as a note, such as a command line; "" where there is none."""
        return str(lib.hbp_plan_file_get_note(self).decode(errors="replace"))

    def cost(self) -> Optional[Cost]:
        """The cost that the plan was saved with; None where it was saved without."""
        try:
            return Cost._make(lib.hbp_plan_file_get_cost, self)
        except InvalidError:  # there is none
            return None

    def __len__(self) -> int:
        return self.summary().steps

    def read(self, first: int, count: int = 1) -> Plan:
        """Steps [first, first + count) as a plan of their own, whose step 0 is `first`. It has a digest of its
        own: cursors of the whole plan are not of it."""
        return Plan._make(lib.hbp_plan_file_read, self, int64("first", first), int64("count", count))

    def _steps(self, rows: range) -> list[Step]:
        """Reads the chunks that hold them. Their `index` is the file's, their `plan` what was read at once."""
        if rows.step != 1 or not rows:
            return [self.step(row) for row in rows]
        part = self.read(rows.start, len(rows))
        return [Step(part, row, rows.start) for row in range(len(part))]

    def __iter__(self) -> Iterator[Step]:
        """The steps in order, `STEPS` of them read at a time."""
        for first in range(0, len(self), STEPS):
            yield from self[first : first + STEPS]

    def __repr__(self) -> str:
        return f"<hbp.PlanFile: {many(len(self), 'step')}, digest {self.summary().digest:016x}>"

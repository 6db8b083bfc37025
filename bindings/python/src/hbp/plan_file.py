"""A plan file opened for reading single steps."""

from __future__ import annotations

import ctypes

from . import _native
from ._context import Owned, call
from ._files import Path, path_bytes
from ._native import lib
from ._numbers import int64
from ._results import PlanSummary
from .plans import Plan, Step


class PlanFile(Owned):
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

    def __len__(self) -> int:
        return self.summary().steps

    def read(self, first: int, count: int = 1) -> Plan:
        """Steps [first, first + count) as a plan of their own, whose step 0 is `first`."""
        return Plan._make(lib.hbp_plan_file_read, self, int64("first", first), int64("count", count))

    def step(self, index: int) -> Step:
        """One step; reads the chunk that holds it."""
        return self.read(range(len(self))[index]).step(0)

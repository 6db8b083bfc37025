"""A planner for a whole run, and the SP groups that a run may use."""

from __future__ import annotations

import ctypes
import os
from collections import deque
from typing import TYPE_CHECKING, Any, Callable, Iterable, Iterator, Optional, TypeVar, Union

import numpy as np

from . import _native
from ._arrays import address, addresses, column_arrays, columns_of, integers
from ._context import Handle, Owned, ProgressOption, call, call_long
from ._inputs import Integers
from ._native import lib
from ._numbers import int32
from ._records import LengthsOptions, StepperOptions, StepperSummary
from ._results import Communicator
from ._text import many
from .cost import Cost
from .lengths import Lengths
from .plans import Plan
from .step import step_options

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .step import StepKeywords

Batch = TypeVar("Batch")


class _ThreadHandle(Handle):
    """The handle of an object with a thread, which a forked child does not have: there the object cannot be
    freed."""

    __slots__ = ("_process", "_getpid")

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._getpid = os.getpid
        self._process = os.getpid()

    def is_mine(self) -> bool:
        return self._getpid() == self._process

    def __del__(self) -> None:
        if not self.is_mine():
            self.pointer = None
        super().__del__()


class Stepper(Owned):
    """Plans the next step on a thread of its own while this one trains.

    Submit the lengths of each batch and take its plan, in order; at most `depth` steps are submitted and not
    taken. With `wait`, for a program in which one thread submits and another takes, they wait for each other;
    else what cannot be submitted or taken at once is an InvalidError. Keywords are those of plan_step. A plan
    is the one that plan_step makes, so that every rank may have a stepper of its own."""

    _opaque = _native.Stepper
    _free = "hbp_stepper_free"
    _thread: _ThreadHandle

    def __init__(
        self, cost: Cost, *, depth: int = 2, wait: bool = False, **options: Unpack[StepKeywords]
    ) -> None:
        own, struct = StepperOptions(depth=depth, wait=wait), step_options(**options)
        made = Stepper._make(
            lib.hbp_stepper_create, cost, ctypes.byref(struct), ctypes.byref(own), keep=(cost,)
        )
        self._handle = self._thread = made._thread
        self.depth: int = self.summary().depth
        self._shared: deque[tuple[int, Lengths]] = deque()

    def _adopt(self, pointer: int, *keep: Any) -> None:
        self._handle = self._thread = _ThreadHandle(pointer, self._free, self._opaque, keep)

    def _check(self) -> None:
        if self._handle.pointer is None:
            raise ValueError("the stepper is closed")
        if not self._thread.is_mine():
            raise RuntimeError("the stepper's thread is in the process that forked; make one in each")

    def submit(
        self,
        lengths: Union[Lengths, Integers],
        *,
        loss_tokens: Optional[Integers] = None,
        links: Optional[Integers] = None,
        vision: Optional[Integers] = None,
        modalities: Optional[Integers] = None,
        shifted_loss: bool = False,
    ) -> None:
        """Submits the next step and returns at once. Arrays are copied; see Lengths.from_array."""
        self._check()
        if isinstance(lengths, Lengths):
            if shifted_loss or any(own is not None for own in (loss_tokens, links, vision, modalities)):
                raise TypeError(
                    "hbp.Lengths have their own loss_tokens, links, vision, modalities and shifted_loss"
                )
            self._shared.append((self.summary().submitted, lengths))  # until taken: it may borrow an array
            call_long(lib.hbp_stepper_submit_lengths, self, lengths)
            return
        array = integers("lengths", lengths, np.int64)
        columns = column_arrays(LengthsOptions, columns_of(LengthsOptions, locals()), len(array))
        options = LengthsOptions(shifted_loss=shifted_loss, **addresses(columns))
        call_long(lib.hbp_stepper_submit, self, address(array), len(array), ctypes.byref(options))

    def take(self, *, progress: ProgressOption = None) -> Plan:
        """The plan of the oldest submitted step, waiting until it is made. Raises what plan_step raises for
        its batch; the steps that follow are not affected."""
        self._check()
        try:
            return Plan._make(lib.hbp_stepper_take, self, progress=progress)
        finally:
            taken = self.summary().taken
            while self._shared and self._shared[0][0] < taken:
                self._shared.popleft()

    def plans(
        self, batches: Iterable[Batch], lengths: Optional[Callable[[Batch], Any]] = None
    ) -> Iterator[tuple[Batch, Plan]]:
        """Each batch with its plan, while the next ones are planned. `lengths` gives the lengths of a batch;
        without it a batch is lengths."""
        self._check()
        if self.summary().submitted != self.summary().taken:
            raise ValueError("steps are submitted and not taken; take them first")
        ahead: deque[Batch] = deque()
        try:
            for batch in batches:
                self.submit(batch if lengths is None else lengths(batch))  # type: ignore[arg-type]
                ahead.append(batch)
                if len(ahead) == self.depth:
                    yield ahead.popleft(), self.take()
            while ahead:
                yield ahead.popleft(), self.take()
        finally:  # a loop that was left early leaves steps behind
            self._drop()

    def _drop(self) -> None:
        while self._handle.pointer is not None and self.summary().submitted != self.summary().taken:
            try:
                self.take()
            except Exception:
                continue

    def summary(self) -> StepperSummary:
        """How far it is, and a digest over all plans taken, for ranks to compare."""
        self._check()
        summary = StepperSummary()
        call(lib.hbp_stepper_get_summary, self, ctypes.byref(summary))
        return summary

    def close(self) -> None:
        """Ends the thread and drops what was not taken."""
        self._handle.__del__()

    def __enter__(self) -> Stepper:
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        if self._handle.pointer is None or not self._thread.is_mine():
            return "<hbp.Stepper: closed>"
        now = self.summary()
        return f"<hbp.Stepper: {now.taken:,} of {many(now.submitted, 'step')} taken>"


def list_communicators(
    cost: Cost, rank: Optional[int] = None, **options: Unpack[StepKeywords]
) -> list[Communicator]:
    """Every SP group that plan_step may use with these options, ascending in degree, then in rank: those of
    all ranks or of one. Degree 1, a rank alone, is always there. The plans of an epoch may use any degree of
    the cost: list them with any_degree=True."""
    struct, count = step_options(**options), ctypes.c_int64()
    size, of = ctypes.sizeof(Communicator), -1 if rank is None else int32("rank", rank)
    arguments = cost, ctypes.byref(struct), of
    call(lib.hbp_list_communicators, *arguments, None, size, 0, ctypes.byref(count))
    rows = (Communicator * count.value)()
    for row in rows:
        row.struct_size = size
    call(lib.hbp_list_communicators, *arguments, rows, size, len(rows), ctypes.byref(count))
    return [Communicator.from_buffer_copy(row) for row in rows[: count.value]]

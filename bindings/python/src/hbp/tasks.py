"""Which operators of many tasks run on which GPUs, when; and such schedules simulated."""

from __future__ import annotations

import ctypes
from typing import Iterator, Optional

import numpy as np
import numpy.typing as npt

from . import _native
from ._arrays import ViewColumn, read_view, texts
from ._choices import TasksMethod, TasksPlacementMethod
from ._context import ProgressOption, call, call_long
from ._files import Path, Saved, path_bytes
from ._native import lib
from ._numbers import suggesting
from ._records import TaskRunOptions, TaskRunView, TaskScheduleView, TasksOptions
from ._results import TaskRunSummary, TaskSummary
from ._text import many
from .graph import Graph
from .machine import Machine


class TaskSlice:
    """Some operators of one MetaOp in a row, run by a group of ranks."""

    __slots__ = ("schedule", "index")

    def __init__(self, schedule: TaskSchedule, index: int) -> None:
        self.schedule = schedule
        self.index = index

    @property
    def wave(self) -> int:
        return int(np.searchsorted(self.schedule.wave_offsets, self.index, "right")) - 1

    @property
    def meta_op(self) -> int:
        return int(self.schedule.slice_meta_ops[self.index])

    @property
    def name(self) -> str:
        """Of the MetaOp."""
        return self.schedule.meta_op_name(self.meta_op)

    @property
    def task(self) -> str:
        return self.schedule.task_name(int(self.schedule.meta_op_tasks[self.meta_op]))

    @property
    def operators(self) -> npt.NDArray[np.int32]:
        """Numbers of the graph's operators, in the order in which they run."""
        first = int(self.schedule.meta_op_offsets[self.meta_op] + self.schedule.slice_firsts[self.index])
        return self.schedule.operators[first : first + len(self)]

    @property
    def gpus(self) -> int:
        return int(self.schedule.slice_gpus[self.index])

    @property
    def ranks(self) -> npt.NDArray[np.int32]:
        """The ranks that run it, ascending."""
        return self.schedule.group(int(self.schedule.slice_groups[self.index]))

    @property
    def start_ns(self) -> int:
        return int(self.schedule.slice_starts[self.index])

    @property
    def end_ns(self) -> int:
        return int(self.schedule.slice_ends[self.index])

    def __len__(self) -> int:
        """Operators."""
        return int(self.schedule.slice_operators[self.index])

    def __repr__(self) -> str:
        return f"<hbp.TaskSlice {self.index}: {self.name} x {len(self)} on {many(self.gpus, 'GPU')}>"


class TaskSchedule(Saved):
    """One step of many tasks: waves of slices, each some operators on a set of ranks. Immutable; any thread
    may read it.

    Columns are read-only numpy views of the library's memory and keep the schedule alive. Times leave
    transfers out, which simulate_tasks adds; a trainer runs the slices in order for the forward pass, in
    reverse for the backward pass."""

    _opaque = _native.TaskSchedule
    _free = "hbp_task_schedule_free"
    _view = TaskScheduleView
    _get_view = "hbp_task_schedule_get_view"

    meta_op_offsets = ViewColumn[np.int64]("meta_ops", "First place of each MetaOp in `operators`.", extra=1)
    operators = ViewColumn[np.int32]("operators_total", "Operators of the graph, by MetaOp, in the chain's order.")
    meta_op_levels = ViewColumn[np.int32]("meta_ops", "Edges of the longest path to each MetaOp.")
    meta_op_tasks = ViewColumn[np.int32]("meta_ops", "Task of each MetaOp.")
    level_ns = ViewColumn[np.int64]("levels", "Continuous optimum of each level, had it all GPUs.")
    wave_offsets = ViewColumn[np.int64]("waves", "First slice of each wave.", extra=1)
    slice_meta_ops = ViewColumn[np.int32]("slices", "MetaOp of each slice.")
    slice_firsts = ViewColumn[np.int32]("slices", "First operator of each slice within its MetaOp.")
    slice_operators = ViewColumn[np.int32]("slices", "How many operators.")
    slice_gpus = ViewColumn[np.int32]("slices", "On how many GPUs.")
    slice_groups = ViewColumn[np.int32]("slices", "On which group of ranks.")
    slice_starts = ViewColumn[np.int64]("slices", "When each slice starts, in ns.")
    slice_ends = ViewColumn[np.int64]("slices", "When each slice ends, in ns.")
    group_offsets = ViewColumn[np.int64]("groups", "First place of each group in `group_ranks`.", extra=1)
    group_ranks = ViewColumn[np.int32]("group_ranks_total", "Ranks of every group, each group's ascending.")
    parameter_groups = ViewColumn[np.int32](
        "parameters", "Group that sums the gradient of each set of weights; -1: none."
    )
    rank_busy_ns = ViewColumn[np.int64]("ranks", "Time that each rank works.")
    rank_bytes = ViewColumn[np.int64]("ranks", "Peak of each rank.")

    @classmethod
    def load(cls, path: Path, *, progress: ProgressOption = None) -> TaskSchedule:
        """From a file that `save` wrote."""
        return cls._make(lib.hbp_task_schedule_load, path_bytes(path), progress=progress)

    def save(self, path: Path) -> None:
        """Into a file, whole or not at all."""
        call_long(lib.hbp_task_schedule_save, self, path_bytes(path))

    def trace(self, path: Path, run: Optional[TaskRun] = None) -> None:
        """Writes a Chrome trace, which Perfetto opens, with the schedule's times or those of a run."""
        call_long(lib.hbp_task_schedule_trace, self, run, path_bytes(path))

    def write_json(self, path: Path) -> None:
        """Writes all of it as JSON, under the keys of its file; whole or not at all."""
        call_long(lib.hbp_task_schedule_write_json, self, path_bytes(path))

    def validate(self, graph: Graph, machine: Machine) -> None:
        """Checks every promise against the graph and the machine; InvalidError names the first broken one."""
        call_long(lib.hbp_task_schedule_validate, self, graph, machine)

    def summary(self) -> TaskSummary:
        """The schedule in numbers; print it."""
        summary = TaskSummary()
        call(lib.hbp_task_schedule_get_summary, self, ctypes.byref(summary))
        return summary

    def _repr_html_(self) -> str:
        return self.summary()._repr_html_()

    @property
    def digest(self) -> int:
        """64 bits that ranks compare: equal schedules, and only those, agree."""
        return self.summary().digest

    def _name(self, names: str, rows: str, what: str, index: int) -> str:
        found = read_view(self)
        if not 0 <= index < getattr(found, rows):
            raise IndexError(f"there is no {what} {index}")
        return texts(getattr(found, names), index + 1)[index]

    def meta_op_name(self, meta_op: int) -> str:
        """Of its first operator."""
        return self._name("meta_op_names", "meta_ops", "MetaOp", meta_op)

    def task_name(self, task: int) -> str:
        return self._name("task_names", "tasks", "task", task)

    def parameters_name(self, parameters: int) -> str:
        """Of a set of weights, a row of parameter_groups."""
        return self._name("parameter_names", "parameters", "set of weights", parameters)

    def group(self, group: int) -> npt.NDArray[np.int32]:
        """Ranks of a group, ascending."""
        row = range(len(self.group_offsets) - 1)[group]
        return self.group_ranks[int(self.group_offsets[row]) : int(self.group_offsets[row + 1])]

    def groups(self) -> list[npt.NDArray[np.int32]]:
        """Every communicator that a run needs, each once: make them in this order on all ranks."""
        return [self.group(index) for index in range(len(self.group_offsets) - 1)]

    def wave(self, index: int) -> list[TaskSlice]:
        """The slices of a wave."""
        row = range(len(self.wave_offsets) - 1)[index]
        return [self[i] for i in range(int(self.wave_offsets[row]), int(self.wave_offsets[row + 1]))]

    def for_rank(self, rank: int) -> list[TaskSlice]:
        """What one rank runs, in order."""
        if not 0 <= rank < len(self.rank_bytes):
            raise IndexError(f"there is no rank {rank}; there are {len(self.rank_bytes)}")
        lengths = np.diff(self.group_offsets)
        groups = np.repeat(np.arange(len(lengths)), lengths)[self.group_ranks == rank]
        return [TaskSlice(self, int(index)) for index in np.flatnonzero(np.isin(self.slice_groups, groups))]

    def __len__(self) -> int:
        """Slices."""
        return len(self.slice_meta_ops)

    def __getitem__(self, index: int) -> TaskSlice:
        return TaskSlice(self, range(len(self))[index])

    def __iter__(self) -> Iterator[TaskSlice]:
        return (TaskSlice(self, index) for index in range(len(self)))

    def __repr__(self) -> str:
        return (
            f"<hbp.TaskSchedule: {many(len(self), 'slice')} on {many(len(self.rank_bytes), 'GPU')}, "
            f"digest {self.digest:016x}>"
        )


@suggesting
def plan_tasks(
    graph: Graph,
    machine: Machine,
    *,
    method: TasksMethod = "overlap",
    placement_method: TasksPlacementMethod = "flows",
    effort: int = 0,
    reserve_bytes: Optional[int] = None,
    limit_bytes: int = 0,
    previous: Optional[TaskSchedule] = None,
    seed: int = 0,
    progress: ProgressOption = None,
) -> TaskSchedule:
    """Plans one step of all tasks of the graph on all GPUs of the machine (Spindle): which operators run on
    how many GPUs, on which, when.

    `method` is "overlap" (levels may overlap, gaps are filled; `effort` 1..9), "spindle" (its waves), or one to
    compare with: "sequential", "uniform", "optimus", "distmm". `placement_method` is "flows" (few bytes between
    GPUs and domains), "spindle" or "sequential". reserve_bytes None keeps 4 GiB free on each GPU, 0 nothing; limit_bytes
    takes the place of the GPU's memory less the reserve, -1: no limit. `previous` is the schedule from before
    some task joined or left: states are reused on their ranks where possible. The schedule is a pure function of
    all of them."""
    options = TasksOptions.pick(
        locals(), reserve_bytes=0 if reserve_bytes is None else reserve_bytes or -1
    )
    return TaskSchedule._make(
        lib.hbp_plan_tasks, graph, machine, ctypes.byref(options), progress=progress
    )


class TaskRun(Saved):
    """A step of many tasks that was simulated, with transfers. Immutable."""

    _opaque = _native.TaskRun
    _free = "hbp_task_run_free"
    _view = TaskRunView
    _get_view = "hbp_task_run_get_view"

    slice_starts = ViewColumn[np.int64]("slices", "When each slice of the schedule starts, in ns.")
    slice_ends = ViewColumn[np.int64]("slices", "When each slice ends, in ns.")

    def summary(self) -> TaskRunSummary:
        """The step in numbers; print it."""
        summary = TaskRunSummary()
        call(lib.hbp_task_run_get_summary, self, ctypes.byref(summary))
        return summary

    @classmethod
    def load(cls, path: Path, *, progress: ProgressOption = None) -> TaskRun:
        """From a file that `save` wrote."""
        return cls._make(lib.hbp_task_run_load, path_bytes(path), progress=progress)

    def save(self, path: Path) -> None:
        """Into a file, whole or not at all."""
        call_long(lib.hbp_task_run_save, self, path_bytes(path))

    def write_json(self, path: Path) -> None:
        """Writes all of it as JSON, under the keys of its file; whole or not at all."""
        call_long(lib.hbp_task_run_write_json, self, path_bytes(path))

    def validate(
        self,
        graph: Optional[Graph] = None,
        machine: Optional[Machine] = None,
        schedule: Optional[TaskSchedule] = None,
        *,
        barriers: bool = False,
        free_transfers: bool = False,
        free_gradients: bool = False,
    ) -> None:
        """Checks that the numbers are those of the slices; with `schedule`, its graph and machine also that
        these, run with the options of simulate_tasks, make this run. InvalidError names the first breach."""
        options = TaskRunOptions.pick(locals())
        call_long(lib.hbp_task_run_validate, self, graph, machine, schedule, ctypes.byref(options))

    def __len__(self) -> int:
        """Slices."""
        return len(self.slice_starts)

    def __repr__(self) -> str:
        return f"<hbp.TaskRun: {many(len(self), 'slice')} in {self.summary().total_ns / 1e6:,.3f} ms>"


@suggesting
def simulate_tasks(
    graph: Graph,
    machine: Machine,
    schedule: TaskSchedule,
    *,
    barriers: bool = False,
    free_transfers: bool = False,
    free_gradients: bool = False,
    progress: ProgressOption = None,
) -> TaskRun:
    """Simulates one step of a schedule: every rank works through its slices in order, each as soon as its
    ranks are free and its inputs are there; then gradients are summed. The schedule is validated first.
    `barriers`: a wave starts when the one before has ended; with `free_transfers` outputs take no time, with `free_gradients` sums of gradients."""
    options = TaskRunOptions.pick(locals())
    return TaskRun._make(
        lib.hbp_simulate_tasks, graph, machine, schedule, ctypes.byref(options), progress=progress
    )

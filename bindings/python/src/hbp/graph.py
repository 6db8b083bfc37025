"""A model of many tasks as a graph of operators with their profiled times."""

from __future__ import annotations

import ctypes
import os
from dataclasses import dataclass
from typing import Any, Literal, Mapping, NamedTuple, Optional, Union, overload

import numpy as np
import numpy.typing as npt

from . import _native, _records
from ._arrays import AnyColumn, Scalar, address, integers, plain, same_count, texts, view
from ._choices import DegreesName
from ._context import call
from ._files import Path, Saved, path_bytes
from ._inputs import Integers
from ._native import lib, presets
from ._numbers import choice, int32, int64, suggesting, text_bytes
from ._records import GraphView
from ._text import many
from .errors import InvalidError, refusal
from .machine import Machine

Format = Literal["json", "msgpack"]
FORMATS: dict[Format, int] = {"json": 0, "msgpack": 1}


class Profile(NamedTuple):
    """An operator's measured time on numbers of GPUs, forward and backward together."""

    gpus: npt.NDArray[np.int32]
    ns: npt.NDArray[np.int64]


class Edge(NamedTuple):
    """Operator `to` needs the output of `source`, `bytes` of it."""

    source: int
    to: int
    bytes: int


@dataclass(frozen=True)
class Operator:
    """One operator as the graph has it, defaults filled in; see Graph.add_operators. `profile` None: none."""

    name: str
    type: str
    task: str
    parameters: str
    profile: Optional[int]
    batch: int
    sequence: int
    width: int
    degrees: str
    least_gpus: int
    split: int
    state_bytes: int
    sharded_bytes: int
    activation_bytes: int
    output_bytes: int
    gradient_bytes: int


class CopiedColumn(AnyColumn[Scalar]):
    """A column of the graph's view as a copy, of `rows` rows and `extra` more."""

    def __init__(self, rows: str, doc: str, extra: int = 0) -> None:
        super().__init__(doc)
        self._rows = rows
        self._extra = extra

    @overload
    def __get__(self, instance: None, owner: Any = None) -> CopiedColumn[Scalar]: ...

    @overload
    def __get__(self, instance: Graph, owner: Any = None) -> npt.NDArray[Scalar]: ...

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        found = instance._read()
        rows = getattr(found, self._rows) + self._extra
        dtype = found._record[self._name].column
        return view(getattr(found, self._name), rows, dtype, instance._handle).copy()


class Graph(Saved):
    """Operators, the edges between them, and their profiles. Add all, then plan: a graph that is planned by
    several threads must not change any more.

    The arrays that a graph gives are copies, since it may grow."""

    _opaque = _native.Graph
    _load = "read"
    _free = "hbp_graph_free"

    def __init__(self) -> None:
        self._handle = Graph._make(lib.hbp_graph_create)._handle

    @classmethod
    def read(cls, path: Path) -> Graph:
        """From JSON or msgpack, distinguished by content."""
        return cls._make(lib.hbp_graph_load, path_bytes(path))

    @classmethod
    def workload(cls, name: str, machine: Machine) -> Graph:
        """A graph in the shape of a published model, "clip-10", with each operator's time on 1, 2, 4, ... GPUs
        of `machine` by the cost model's curves."""
        return cls._make(lib.hbp_graph_create_workload, text_bytes(name), machine)

    @staticmethod
    def workloads() -> dict[str, int]:
        """Names of the workloads, each with its model's parameters, shared ones once."""
        return {
            name: lib.hbp_workload_get_preset_parameters(index)
            for index, name in enumerate(presets("workload"))
        }

    def save(self, path: Path, *, format: Optional[Format] = None) -> None:
        """Into a file, whole or not at all: "json" or "msgpack", by default JSON for paths that end in
        .json."""
        if format is None:
            format = "json" if os.fsdecode(path).lower().endswith(".json") else "msgpack"
        call(lib.hbp_graph_save, self, path_bytes(path), choice("format", format, FORMATS))

    def add_profile(
        self, gpus: Union[Mapping[int, int], Integers], ns: Optional[Integers] = None
    ) -> int:
        """Adds measured times, {gpus: ns} or two lists of as many values; returns the profile's number. Floats are rounded to ns."""
        if isinstance(gpus, Mapping):
            if ns is not None:
                raise TypeError("ns is given beside a mapping that has the times")
            rising = sorted(gpus.items())
            gpus, ns = [point[0] for point in rising], [point[1] for point in rising]
        if ns is None:
            raise TypeError("ns is missing; give two lists, or one mapping {gpus: ns}")
        points = integers("gpus", gpus, np.int32)
        taken = plain("ns", ns)
        if taken.dtype.kind == "f":
            taken = np.rint(taken).astype(np.int64)
        times = same_count("ns", integers("ns", taken, np.int64), len(points))
        number = ctypes.c_int32()
        call(
            lib.hbp_graph_add_profile,
            self,
            address(points),
            address(times),
            len(points),
            ctypes.byref(number),
        )
        return number.value

    @suggesting
    def add_operators(
        self,
        type: str,
        task: str,
        *,
        profile: Optional[int],
        count: int = 1,
        name: Optional[str] = None,
        parameters: Optional[str] = None,
        batch: int = 0,
        sequence: int = 1,
        width: int = 1,
        degrees: DegreesName = "divisors",
        least_gpus: int = 1,
        split: int = 0,
        state_bytes: int = 0,
        sharded_bytes: int = 0,
        activation_bytes: int = 0,
        output_bytes: int = 0,
        gradient_bytes: int = 0,
    ) -> range:
        """Adds `count` operators, each with an edge from the one before; returns their numbers. Those of a
        count above 1 are named name[0], name[1], ... and so are their weights.

        Operators of one type, task and shape (batch, sequence, width) in a row are planned as one. Those that
        name the same `parameters` share weights; None: its own. It may run on n GPUs where n = p q is a
        multiple of least_gpus, p divides batch and q divides `split` (heads, say); degrees "profiled": on
        the profiled numbers alone, as where batch and split are both left out. Sizes are of the whole batch: state_bytes lie in full on every GPU that
        runs it, sharded_bytes and activation_bytes are shared out, output_bytes go along each edge,
        gradient_bytes are summed over all GPUs that hold the weights."""
        fields = _records.Operator.pick(locals(), profile=-1 if profile is None else profile)
        first = ctypes.c_int32()
        call(
            lib.hbp_graph_add_operators,
            self,
            ctypes.byref(fields),
            int64("count", count),
            ctypes.byref(first),
        )
        return range(first.value, first.value + count)

    def add_edge(self, source: int, to: int, bytes: Optional[int] = None) -> None:
        """Operator `to` needs the output of operator `source`; `bytes` None: its output_bytes."""
        size = -1 if bytes is None else int64("bytes", bytes)
        if bytes is not None and size < 0:
            raise ValueError(f"bytes is {bytes}; it must not be negative")
        call(lib.hbp_graph_add_edge, self, int32("source", source), int32("to", to), size)

    def check(self) -> None:
        """Raises for what planning refuses: cycles, an operator without a profile, or one that no number of
        GPUs suits."""
        call(lib.hbp_graph_validate, self)

    def operator(self, index: int) -> Operator:
        """Operator `index`; negative from the end."""
        struct = _records.Operator()
        call(lib.hbp_graph_get_operator, self, range(len(self))[index], ctypes.byref(struct))
        fields = struct.as_dict()
        fields = {name: value.decode() if isinstance(value, bytes) else value for name, value in fields.items()}
        fields["profile"] = None if fields["profile"] < 0 else fields["profile"]
        fields["degrees"] = _records.name_of("HBP_DEGREES", fields["degrees"])
        return Operator(**fields)

    def profile(self, index: int) -> Profile:
        """Profile `index`."""
        at = self._read().profiles
        if not 0 <= index < at:
            raise refusal(InvalidError, f"there is no profile {index}; there are {at}")
        offsets = self.profile_offsets
        rows = slice(int(offsets[index]), int(offsets[index + 1]))
        return Profile(self.point_gpus[rows], self.point_ns[rows])

    @property
    def edges(self) -> list[Edge]:
        """Every edge, as they came."""
        columns = self.edge_from.tolist(), self.edge_to.tolist(), self.edge_bytes.tolist()
        return [Edge(*row) for row in zip(*columns)]

    def _read(self) -> GraphView:
        """The view, read anew: a graph may have grown."""
        found = GraphView()
        lib.hbp_graph_get_view(self, ctypes.byref(found))
        return found

    operator_tasks = CopiedColumn[np.int32]("operators", "Each operator's task, as a place in `tasks`.")
    operator_parameters = CopiedColumn[np.int32]("operators", "Each operator's weights, as a place in `parameters`.")
    edge_from = CopiedColumn[np.int32]("edges", "The operator whose output each edge carries.")
    edge_to = CopiedColumn[np.int32]("edges", "The operator that needs it.")
    edge_bytes = CopiedColumn[np.int64]("edges", "Bytes of it.")
    profile_offsets = CopiedColumn[np.int64]("profiles", "First point of each profile.", extra=1)

    @property
    def point_gpus(self) -> npt.NDArray[np.int32]:
        """GPUs of every profile's points."""
        return view(self._read().point_gpus, int(self.profile_offsets[-1]), np.int32, self._handle).copy()

    @property
    def point_ns(self) -> npt.NDArray[np.int64]:
        """And the time on them."""
        return view(self._read().point_ns, int(self.profile_offsets[-1]), np.int64, self._handle).copy()

    @property
    def tasks(self) -> list[str]:
        """Names of the tasks."""
        return texts(self._read().task_names, self._read().tasks)

    @property
    def parameters(self) -> list[str]:
        """Names of the sets of weights."""
        return texts(self._read().parameter_names, self._read().parameters)

    @property
    def profiles(self) -> list[Profile]:
        return [self.profile(index) for index in range(self._read().profiles)]

    def __len__(self) -> int:
        """Operators."""
        return self._read().operators

    def __repr__(self) -> str:
        return (
            f"<hbp.Graph: {many(len(self), 'operator')} of {many(len(self.tasks), 'task')}, "
            f"{many(self._read().edges, 'edge')}>"
        )

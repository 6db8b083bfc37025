"""A model of many tasks as a graph of operators with their profiled times."""

from __future__ import annotations

import ctypes
import os
from dataclasses import dataclass
from typing import Any, Mapping, NamedTuple, Optional, Union

import numpy as np
import numpy.typing as npt

from . import _native, _records
from ._arrays import address, integers, plain, same_count, view
from ._context import call
from ._files import Path, Saved, path_bytes
from ._native import lib
from ._numbers import choice, int32, int64, text_bytes
from ._records import GraphView
from .machine import Machine

FORMATS = {"json": 0, "msgpack": 1}


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


def _texts(function: Any, graph: Graph, count: int) -> list[str]:
    return [function(graph, index).decode() for index in range(count)]


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
            lib.hbp_workload_get_preset_name(index).decode(): lib.hbp_workload_get_preset_parameters(index)
            for index in range(lib.hbp_workload_count_presets())
        }

    def save(self, path: Path, *, format: Optional[str] = None) -> None:
        """Into a file, whole or not at all: "json" or "msgpack", by default JSON for paths that end in
        .json."""
        if format is None:
            format = "json" if os.fsdecode(path).lower().endswith(".json") else "msgpack"
        call(lib.hbp_graph_save, self, path_bytes(path), choice("format", format, FORMATS))

    def add_profile(
        self, gpus: Union[Mapping[int, int], npt.ArrayLike], ns: Optional[npt.ArrayLike] = None
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
        if plain("ns", ns).dtype.kind == "f":
            ns = np.rint(ns).astype(np.int64)
        times = same_count("ns", integers("ns", ns, np.int64), len(points))
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
        degrees: str = "divisors",
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
        gpus, ns, count = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_int64()
        results = ctypes.byref(gpus), ctypes.byref(ns), ctypes.byref(count)
        call(lib.hbp_graph_get_profile, self, int64("index", index), *results)
        return Profile(
            view(gpus.value, count.value, np.int32, self._handle).copy(),
            view(ns.value, count.value, np.int64, self._handle).copy(),
        )

    @property
    def edges(self) -> list[Edge]:
        """Every edge, as they came."""
        source, to, size = ctypes.c_int32(), ctypes.c_int32(), ctypes.c_int64()
        results = ctypes.byref(source), ctypes.byref(to), ctypes.byref(size)
        edges = []
        for index in range(self._read().edges):
            call(lib.hbp_graph_get_edge, self, index, *results)
            edges.append(Edge(source.value, to.value, size.value))
        return edges

    def _read(self) -> GraphView:
        """The view, read anew: a graph may have grown."""
        found = GraphView()
        lib.hbp_graph_get_view(self, ctypes.byref(found))
        return found

    @property
    def operator_tasks(self) -> npt.NDArray[np.int32]:
        """Each operator's task, as a place in `tasks`."""
        found = self._read()
        return view(found.operator_tasks, found.operators, np.int32, self._handle).copy()

    @property
    def operator_parameters(self) -> npt.NDArray[np.int32]:
        """Each operator's weights, as a place in `parameters`."""
        found = self._read()
        return view(found.operator_parameters, found.operators, np.int32, self._handle).copy()

    @property
    def tasks(self) -> list[str]:
        """Names of the tasks."""
        return _texts(lib.hbp_graph_get_task_name, self, self._read().tasks)

    @property
    def parameters(self) -> list[str]:
        """Names of the sets of weights."""
        return _texts(lib.hbp_graph_get_parameters_name, self, self._read().parameters)

    @property
    def profiles(self) -> list[Profile]:
        return [self.profile(index) for index in range(self._read().profiles)]

    def __len__(self) -> int:
        """Operators."""
        return self._read().operators

    def __repr__(self) -> str:
        return (
            f"<hbp.Graph: {len(self):,} operators of {len(self.tasks)} tasks, "
            f"{self._read().edges:,} edges>"
        )

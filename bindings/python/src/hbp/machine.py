"""The machine: nodes, GPUs, links. A preset, a probe, a profile file, or fields."""

from __future__ import annotations

import os
import tempfile
from ctypes import byref, c_char_p, c_double
from typing import Any, Optional, Union

from . import _structs as s
from ._context import Handle, Object, call, fields, make, name_bytes, path_bytes
from ._native import lib, text
from .model import struct_of

Path = Union[str, "os.PathLike[str]"]


class Machine(Object):
    """A cluster. `apply_*` and `set_*` change it, so one thread at a time does; a Cost takes a copy."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    @classmethod
    def preset(cls, name: str, nodes: int = 1) -> "Machine":
        """`nodes` nodes of a preset such as "h100"; Machine.presets() lists them."""
        return cls(make(lib.hbp_machine_create_preset, name_bytes(name), nodes, free=lib.hbp_machine_free))

    @staticmethod
    def presets() -> list[str]:
        return [text(lib.hbp_machine_get_preset_name(i)) for i in range(lib.hbp_machine_count_presets())]

    @classmethod
    def from_fields(cls, **values: float) -> "Machine":
        """A machine from the fields of hbp_machine_fields: nodes, gpus_per_node, hbm_bytes, flops_per_s, ..."""
        return cls(make(lib.hbp_machine_create, byref(struct_of(s.MachineFields, "Machine.from_fields", values)),
                        free=lib.hbp_machine_free))

    @classmethod
    def probe(cls, kind: str = "this-machine", source: Optional[str] = None) -> "Machine":
        """Probes by hwloc: "this-machine", "xml-file" (`source` is its path) or "synthetic" (a description)."""
        given = None if source is None else path_bytes(source)
        return cls(make(lib.hbp_machine_probe, s.code(s.PROBES, kind, "kind"), given, free=lib.hbp_machine_free))

    @classmethod
    def load(cls, path: Path) -> "Machine":
        """Reads a profile, as `save` and `hbp probe` write it."""
        return cls(make(lib.hbp_machine_load, path_bytes(path), free=lib.hbp_machine_free))

    def save(self, path: Path) -> None:
        call(lib.hbp_machine_save, self, path_bytes(path))

    def apply_nccl_tests(self, collective: str, ranks: int, output: Union[str, bytes]) -> None:
        """Takes what nccl-tests printed, as text or JSON, for "all-to-all", "all-gather", "reduce-scatter" or
        "all-reduce" over `ranks` GPUs: latency and bandwidth."""
        data = output.encode() if isinstance(output, str) else output
        call(lib.hbp_machine_apply_nccl_tests, self, s.code(s.COLLECTIVES, collective, "collective"), ranks, data,
             len(data))

    def apply_nccl_topology(self, xml: Union[str, bytes]) -> None:
        """Takes GPUs per node and bandwidths from NCCL's topology XML (NCCL_TOPO_DUMP_FILE)."""
        data = xml.encode() if isinstance(xml, str) else xml
        call(lib.hbp_machine_apply_nccl_topology, self, data, len(data))

    def set_collective(self, collective: str, ranks: int, *, latency_ns: float, bytes_per_s: float,
                       source: str = "given") -> None:
        call(lib.hbp_machine_set_collective, self, s.code(s.COLLECTIVES, collective, "collective"), ranks, latency_ns,
             bytes_per_s, name_bytes(source))

    def collective(self, collective: str, ranks: int) -> Optional[tuple[float, float, str]]:
        """(latency in ns, bytes/s, source) as measured; None when it was not."""
        latency, bandwidth, source = c_double(), c_double(), c_char_p()
        known = lib.hbp_machine_get_collective(self, s.code(s.COLLECTIVES, collective, "collective"), ranks,
                                               byref(latency), byref(bandwidth), byref(source))
        return (latency.value, bandwidth.value, text(source.value)) if known else None

    def set_field(self, field: str, value: float, source: str = "given") -> None:
        """Sets one field of hbp_machine_fields."""
        call(lib.hbp_machine_set_field, self, name_bytes(field), value, name_bytes(source))

    def source(self, field: str) -> Optional[str]:
        """Where a field came from: "preset h100", "hwloc", "given", ...; None for no such field."""
        return text(lib.hbp_machine_get_source(self, name_bytes(field)))

    @property
    def name(self) -> str:
        return text(lib.hbp_machine_get_name(self))

    @property
    def fields(self) -> dict[str, Any]:
        """hbp_machine_fields; 0 is unknown."""
        found = s.MachineFields()
        call(lib.hbp_machine_get_fields, self, byref(found))
        return fields(found)

    def __repr__(self) -> str:
        found = self.fields
        return f"<hbp.Machine {self.name}: {found['nodes']} x {found['gpus_per_node']} GPUs>"

    def __reduce__(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "machine.json")
            self.save(path)
            with open(path, "rb") as file:
                return _restore, (file.read(),)


def _restore(profile: bytes) -> Machine:
    """Unpickles a machine from its profile."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "machine.json")
        with open(path, "wb") as file:
            file.write(profile)
        return Machine.load(path)

"""The machine: nodes, GPUs and links, each field with where it came from."""

from __future__ import annotations

import ctypes
from typing import Any, Literal, NamedTuple, Optional, Sequence, Union

from . import _native
from ._choices import CollectiveName, RateName
from ._context import call
from ._files import Path, Saved, path_bytes
from ._native import lib, presets
from ._numbers import choice, fields_text, int32, text_bytes
from ._records import MachineCollective, MachineFields, MachineRate, name_of
from ._text import many
from .errors import InvalidError, refusal

CollectiveText = Union[CollectiveName, Literal["all_to_all", "all_gather", "reduce_scatter", "all_reduce"]]
COLLECTIVES = {"all_to_all": 0, "all_gather": 1, "reduce_scatter": 2, "all_reduce": 3}


class Collective(NamedTuple):
    """A measured collective: latency of a call, NCCL's bus bandwidth, and who says so."""

    latency_ns: float
    bytes_per_s: float
    source: str


class Rate(NamedTuple):
    """A measured rate of one device: flop/s of a matrix product of `size` x `size` matrices ("gemm") or of
    causal attention over `size` tokens ("attention"), bytes/s of a copy of `size` bytes ("copy"). `per_s` is the
    median of repeats, `spread` their interquartile range over it."""

    rate: str
    size: int
    per_s: float
    spread: float
    source: str


class Machine(Saved):
    """Nodes, GPUs and links. Mutable through `set_*` and `apply_*`; a Cost takes a copy.

    Machine(nodes=2, gpus_per_node=8, ...); the fields are those of hbp.MachineFields."""

    _opaque = _native.Machine
    _free = "hbp_machine_free"

    def __init__(self, **fields: Any) -> None:
        self._handle = Machine._make(lib.hbp_machine_create, ctypes.byref(MachineFields(**fields)))._handle

    @classmethod
    def preset(cls, text: str, nodes: Optional[int] = None) -> Machine:
        """Nodes of a known type: "h100", one of them; "h100:4", or "h100" and nodes=4; with fields replaced,
        "h100:4,nvlink_bytes_per_s=4e11"."""
        if nodes is not None:
            text = f"{text},nodes={int32('nodes', nodes)}"
        return cls._make(lib.hbp_machine_create_preset, text_bytes(text))

    @classmethod
    def _of_text(cls, text: bytes) -> Machine:
        return cls._make(lib.hbp_machine_create_text, text)

    @staticmethod
    def presets() -> list[str]:
        """The presets' names."""
        return presets("machine")

    @classmethod
    def probe(cls, *, xml: Optional[Path] = None, synthetic: Optional[str] = None) -> Machine:
        """This machine as hwloc sees it, or a topology from an hwloc XML file or a synthetic description."""
        if xml is not None and synthetic is not None:
            raise ValueError("give xml or synthetic, not both")
        if xml is not None:
            return cls._make(lib.hbp_machine_probe, 1, path_bytes(xml))
        if synthetic is not None:
            return cls._make(lib.hbp_machine_probe, 2, text_bytes(synthetic))
        return cls._make(lib.hbp_machine_probe, 0, None)

    @classmethod
    def load(cls, path: Path) -> Machine:
        """From a profile file; "profile.json:8": eight nodes of it; fields may follow, ",cores=96"."""
        return cls._make(lib.hbp_machine_load, path_bytes(path))

    def save(self, path: Path) -> None:
        """Into a profile file, whole or not at all."""
        call(lib.hbp_machine_save, self, path_bytes(path))

    def apply_nccl_tests(self, collective: CollectiveText, ranks: int, output: Union[str, bytes]) -> None:
        """Takes a collective's speed over `ranks` GPUs from what nccl-tests printed, text or JSON."""
        data = output.encode() if isinstance(output, str) else bytes(output)
        kind = choice("collective", collective, COLLECTIVES)
        call(lib.hbp_machine_apply_nccl_tests, self, kind, int32("ranks", ranks), data, len(data))

    def apply_nccl_topology(self, xml: Union[str, bytes]) -> None:
        """Takes GPUs, NVLink and network bandwidth from the text of NCCL's topology XML."""
        data = xml.encode() if isinstance(xml, str) else bytes(xml)
        call(lib.hbp_machine_apply_nccl_topology, self, data, len(data))

    def set_collective(
        self,
        collective: CollectiveText,
        ranks: int,
        latency_ns: float,
        bytes_per_s: float,
        source: str = "given",
        spread: float = 0,
    ) -> None:
        """Sets a collective's latency and bus bandwidth over `ranks` GPUs, and how much repeats differed:
        interquartile range over median; 0: not known."""
        row = MachineCollective.pick(locals())
        call(lib.hbp_machine_set_collective, self, ctypes.byref(row))

    def fit_collective(
        self, collective: CollectiveText, ranks: int, sizes: Sequence[float], ns: Sequence[float], source: str = "given"
    ) -> None:
        """Fits latency and bus bandwidth to timings: `sizes` in bytes as nccl-tests counts them."""
        if len(sizes) != len(ns):
            raise ValueError(f"{len(sizes)} sizes and {len(ns)} times")
        kind = choice("collective", collective, COLLECTIVES)
        rows = (ctypes.c_double * len(sizes))(*sizes), (ctypes.c_double * len(ns))(*ns)
        number = int32("ranks", ranks)
        call(lib.hbp_machine_fit_collective, self, kind, number, *rows, len(ns), text_bytes(source))

    def set_rate(self, rate: RateName, size: int, per_s: float, spread: float, source: str = "given") -> None:
        """Adds a measured rate or replaces the one of the same type and size."""
        row = MachineRate.pick(locals())
        call(lib.hbp_machine_set_rate, self, ctypes.byref(row))

    @property
    def rates(self) -> list[Rate]:
        """What was measured of one device, by type, then size."""
        rates, row = list[Rate](), MachineRate()
        while lib.hbp_machine_get_rate(self, len(rates), ctypes.byref(row)):
            source = (row.source or b"").decode(errors="replace")
            rates.append(Rate(name_of("HBP_RATE", row.rate) or str(row.rate), row.size, row.per_s, row.spread, source))
        return rates

    def set_fields(self, **fields: Union[float, str]) -> None:
        """Sets fields by name, all of them or none: set_fields(cores=96, network_bytes_per_s=25e9); a text may have
        a unit, "200Gb/s"."""
        call(lib.hbp_machine_set_fields, self, text_bytes(fields_text(fields)))

    def set_field(self, field: str, value: float, source: str = "given") -> None:
        """Sets one field of hbp.MachineFields by its name."""
        call(lib.hbp_machine_set_field, self, text_bytes(field), value, text_bytes(source))

    @property
    def name(self) -> str:
        return str(lib.hbp_machine_get_name(self).decode())

    @name.setter
    def name(self, name: str) -> None:
        call(lib.hbp_machine_set_name, self, text_bytes(name))

    @property
    def fields(self) -> MachineFields:
        """A copy of the fields."""
        fields = MachineFields()
        call(lib.hbp_machine_get_fields, self, ctypes.byref(fields))
        return fields

    def source(self, field: str) -> str:
        """Where a field came from: "preset h100", "hwloc", "given", "unknown"."""
        text = lib.hbp_machine_get_source(self, text_bytes(field))
        if text is None:
            raise KeyError(field)
        return str(text.decode())

    def collective(self, collective: CollectiveText, ranks: int) -> Optional[Collective]:
        """A measured collective; None when `ranks` was not measured."""
        row = self._measured(collective, ranks)
        if row is None:
            return None
        return Collective(row.latency_ns, row.bytes_per_s, (row.source or b"").decode(errors="replace"))

    def _measured(self, collective: CollectiveText, ranks: int) -> Optional[MachineCollective]:
        kind, row = choice("collective", collective, COLLECTIVES), MachineCollective()
        found = lib.hbp_machine_get_collective(self, kind, int32("ranks", ranks), ctypes.byref(row))
        return row if found else None

    def set_collective_spread(self, collective: CollectiveText, ranks: int, spread: float) -> None:
        """How much repeats of a measured collective differed: interquartile range over median."""
        row = self._measured(collective, ranks)
        if row is None:
            raise refusal(InvalidError, f"{collective} over {ranks} ranks was not measured: set it first")
        row.spread = spread
        call(lib.hbp_machine_set_collective, self, ctypes.byref(row))

    def collective_spread(self, collective: CollectiveText, ranks: int) -> Optional[float]:
        """The spread of a measured collective; None when it is not known."""
        row = self._measured(collective, ranks)
        return row.spread or None if row else None

    def __repr__(self) -> str:
        fields = self.fields
        return f"<hbp.Machine {self.name}: {many(fields.nodes, 'node')} of {many(fields.gpus_per_node, 'GPU')}>"

"""The plan: steps of micro-batches of packs of samples, as columns and as a walk; and plan files."""

from __future__ import annotations

import os
import tempfile
import threading
from ctypes import POINTER, byref, c_double, c_int32, c_int64, c_uint8
from dataclasses import dataclass
from typing import Any, Iterator, Optional, Union

import numpy as np

from . import _structs as s
from ._context import I32, I64, Handle, Object, Progress, call, call_long, fields, make, path_bytes
from ._native import lib
from .cost import Cost
from .lengths import Lengths
from .packing import Column

Path = Union[str, "os.PathLike[str]"]
CURSOR_BYTES = 64


def duration(ns: float) -> str:
    """A time as people say it."""
    for unit, size in (("h", 3600e9), ("min", 60e9), ("s", 1e9), ("ms", 1e6)):
        if ns >= size:
            return f"{ns / size:.3g} {unit}" if ns < 1000 * size else f"{ns / size:,.0f} {unit}"
    return f"{ns:.0f} ns"


@dataclass(frozen=True)
class PlanSummary:
    """hbp_plan_summary: what the whole plan holds. str() of it is for people."""

    ranks: int
    domain_ranks: int
    proven: int
    steps: int
    micro_batches: int
    packs: int
    dummy_packs: int
    samples: int
    dropped: int
    tokens: int
    padded_tokens: int
    loss_tokens: int
    sequence_multiple: int
    pack_multiple: int
    micro_batch_multiple: int
    predicted_ns: int
    first_step: int
    overlong_samples: int
    overlong_tokens: int
    seed: int
    epoch: int
    digest: int
    lengths_digest: int

    def __str__(self) -> str:
        lines = [
            f"{self.steps:,} steps on {self.ranks} ranks, predicted to take {duration(self.predicted_ns)}",
            f"{self.micro_batches:,} micro-batches, {self.packs:,} packs, {self.dummy_packs:,} of them dummies",
            f"{self.samples:,} samples, {self.tokens:,} tokens, {self.loss_tokens:,} with loss",
            f"seed {self.seed}, epoch {self.epoch}, digest {self.digest:016x}",
        ]
        if self.dropped or self.overlong_samples:
            lines.insert(3, f"{self.overlong_samples:,} samples past the limit ({self.overlong_tokens:,} tokens lost), "
                            f"{self.dropped:,} samples dropped")
        return "\n".join(lines)


class Pack:
    """Samples laid end to end, run by the ranks first_rank .. first_rank + sp - 1. Columns are views of the plan."""

    __slots__ = ("step", "micro_batch", "index")

    def __init__(self, step: "Step", micro_batch: int, index: int) -> None:
        self.step, self.micro_batch, self.index = step, micro_batch, index

    @property
    def _slice(self) -> slice:
        offsets = self.step.plan.pack_offsets
        return slice(int(offsets[self.index]), int(offsets[self.index + 1]))

    @property
    def ids(self) -> np.ndarray:
        """int64: the samples, in the order in which they lie in the pack."""
        return self.step.plan.sample_ids[self._slice]

    @property
    def lengths(self) -> np.ndarray:
        """int32: tokens of each sample (of its piece, where it was split or truncated)."""
        return self.step.plan.sample_tokens[self._slice]

    @property
    def first_tokens(self) -> Optional[np.ndarray]:
        """int64: where each piece begins in its sample; None when no sample of the plan was split."""
        column = self.step.plan.sample_first_tokens
        return None if column is None else column[self._slice]

    @property
    def cu_seqlens(self) -> np.ndarray:
        """int32 [samples + 1]: the borders of the samples, for flash attention."""
        return self._borders(0)

    @property
    def cu_seqlens_padded(self) -> np.ndarray:
        """int32: the borders with every sample padded to the sequence multiple, and the pack's own padding."""
        return self._borders(1)

    def _borders(self, padded: int) -> np.ndarray:
        span = self._slice
        borders = np.empty(span.stop - span.start + 2, np.int32)
        count = c_int64()
        call(lib.hbp_plan_copy_cu_seqlens, self.step.plan, self.index, padded,
             borders.ctypes.data_as(POINTER(c_int32)), borders.size, byref(count))
        return borders[: count.value]

    @property
    def max_seqlen(self) -> int:
        """Tokens of the longest sample; 0 for a dummy."""
        return int(self.lengths.max(initial=0))

    @property
    def position_ids(self) -> np.ndarray:
        """int64 [padded_tokens]: from 0 in each sample; padding goes on counting, so that it shows no border."""
        starts = np.zeros(self.padded_tokens, np.int64)
        borders = self.cu_seqlens_padded[: self.ids.size]  # of the samples alone
        if borders.size:
            starts[borders[1:]] = np.diff(borders)
        return np.arange(starts.size) - np.cumsum(starts)

    def loss_weights(self, normaliser: str = "token") -> np.ndarray:
        """float64: this pack's part of step.loss_weights."""
        base = self.step._samples.start
        span = self._slice
        return self.step.loss_weights(normaliser)[span.start - base : span.stop - base]

    sp = property(lambda self: int(self.step.plan.pack_sp[self.index]), doc="Ranks that share the pack.")
    recompute = property(lambda self: int(self.step.plan.pack_recompute[self.index]), doc="Layers to recompute.")
    first_rank = property(lambda self: int(self.step.plan.pack_ranks[self.index]))
    ranks = property(lambda self: range(self.first_rank, self.first_rank + self.sp), doc="The SP group.")
    capacity = property(lambda self: int(self.step.plan.pack_capacity[self.index]))
    tokens = property(lambda self: int(self.step.plan.pack_tokens[self.index]))
    padded_tokens = property(lambda self: int(self.step.plan.pack_padded_tokens[self.index]))
    loss_tokens = property(lambda self: int(self.step.plan.pack_loss_tokens[self.index]))
    squares = property(lambda self: int(self.step.plan.pack_squares[self.index]), doc="Sum of squared lengths.")
    ns = property(lambda self: int(self.step.plan.pack_ns[self.index]), doc="Predicted time.")
    bytes = property(lambda self: int(self.step.plan.pack_bytes[self.index]), doc="Predicted peak per rank.")
    is_dummy = property(lambda self: self._slice.start == self._slice.stop,
                        doc="No samples: the ranks take part in the step with zero loss tokens.")

    def __len__(self) -> int:
        return self.ids.size

    def __repr__(self) -> str:
        return (f"<hbp.Pack {self.index}: {len(self)} samples, {self.tokens} tokens, SP {self.sp} from rank "
                f"{self.first_rank}, {self.recompute} layers recomputed>")


class Step:
    """The micro-batches between two optimiser updates."""

    __slots__ = ("plan", "index", "_weights")

    def __init__(self, plan: "Plan", index: int) -> None:
        self.plan, self.index = plan, index
        self._weights: dict[int, np.ndarray] = {}

    @property
    def _micro_batches(self) -> range:
        offsets = self.plan.step_offsets
        return range(int(offsets[self.index]), int(offsets[self.index + 1]))

    @property
    def _packs(self) -> range:
        offsets, rows = self.plan.micro_batch_offsets, self._micro_batches
        return range(int(offsets[rows.start]), int(offsets[rows.stop]))

    @property
    def _samples(self) -> slice:
        offsets, rows = self.plan.pack_offsets, self._packs
        return slice(int(offsets[rows.start]), int(offsets[rows.stop]))

    def for_rank(self, rank: int) -> list[Pack]:
        """What `rank` runs: its pack of every micro-batch, in order; every rank gets as many."""
        if not 0 <= rank < self.plan.ranks:
            raise IndexError(f"rank {rank} of a plan for {self.plan.ranks} ranks")
        find = lib.hbp_plan_get_rank_pack
        return [Pack(self, m, find(self.plan, self.index, m, rank)) for m in range(self.micro_batches)]

    @property
    def packs(self) -> list[Pack]:
        """All packs of all ranks, micro-batch by micro-batch."""
        offsets, first = self.plan.micro_batch_offsets, self._micro_batches.start
        return [Pack(self, m - first, pack) for m in self._micro_batches
                for pack in range(int(offsets[m]), int(offsets[m + 1]))]

    @property
    def ids(self) -> np.ndarray:
        """int64: every sample of the step, in plan order."""
        return self.plan.sample_ids[self._samples]

    def loss_weights(self, normaliser: str = "token") -> np.ndarray:
        """float64, a factor per sample of the step for the sum of its token losses: "token", "local-token", "sample"
        or "sum". Multiply by the data-parallel size where gradients are averaged instead of summed."""
        number = s.code(s.LOSS, normaliser, "normaliser")
        if number not in self._weights:
            weights, count = np.empty(self.samples, np.float64), c_int64()
            call(lib.hbp_plan_copy_loss_weights, self.plan, self.index, number,
                 weights.ctypes.data_as(POINTER(c_double)), weights.size, byref(count))
            self._weights[number] = weights
        return self._weights[number]

    micro_batches = property(lambda self: len(self._micro_batches), doc="How many every rank runs.")
    ns = property(lambda self: int(self.plan.step_ns[self.index]), doc="Predicted time.")
    loss_tokens = property(lambda self: int(self.plan.step_loss_tokens[self.index]), doc="The loss's denominator.")
    samples = property(lambda self: int(self.plan.step_samples[self.index]))
    tokens = property(lambda self: int(self.plan.step_tokens[self.index]))

    def __repr__(self) -> str:
        return f"<hbp.Step {self.index}: {self.micro_batches} micro-batches, {self.samples} samples, {self.tokens} tokens>"


class Plan(Object):
    """Four tables of columns joined by offsets, and the dropped samples. Immutable; any number of threads may read
    one. Columns are read-only views that keep the plan's memory alive; they are named as in C."""

    step_offsets: np.ndarray = Column("hbp_plan_get", I64)
    step_ns: np.ndarray = Column("hbp_plan_get", I64)
    step_loss_tokens: np.ndarray = Column("hbp_plan_get", I64)
    step_samples: np.ndarray = Column("hbp_plan_get", I64)
    step_tokens: np.ndarray = Column("hbp_plan_get", I64)
    micro_batch_offsets: np.ndarray = Column("hbp_plan_get", I64)
    micro_batch_ns: np.ndarray = Column("hbp_plan_get", I64)
    pack_offsets: np.ndarray = Column("hbp_plan_get", I64)
    pack_ranks: np.ndarray = Column("hbp_plan_get", I32)
    pack_sp: np.ndarray = Column("hbp_plan_get", I32)
    pack_recompute: np.ndarray = Column("hbp_plan_get", I32)
    pack_capacity: np.ndarray = Column("hbp_plan_get", I64)
    pack_tokens: np.ndarray = Column("hbp_plan_get", I64)
    pack_padded_tokens: np.ndarray = Column("hbp_plan_get", I64)
    pack_squares: np.ndarray = Column("hbp_plan_get", I64)
    pack_loss_tokens: np.ndarray = Column("hbp_plan_get", I64)
    pack_ns: np.ndarray = Column("hbp_plan_get", I64)
    pack_bytes: np.ndarray = Column("hbp_plan_get", I64)
    sample_ids: np.ndarray = Column("hbp_plan_get", I64)
    sample_tokens: np.ndarray = Column("hbp_plan_get", I32)
    sample_first_tokens: Optional[np.ndarray] = Column("hbp_plan_get", I64, optional=True)
    sample_loss_tokens: Optional[np.ndarray] = Column("hbp_plan_get", I32, optional=True)
    dropped_ids: np.ndarray = Column("hbp_plan_get", I64)
    dropped_reasons: np.ndarray = Column("hbp_plan_get", I32)

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        found = s.PlanSummary()
        call(lib.hbp_plan_get_summary, self, byref(found))
        self._summary = PlanSummary(**fields(found))

    @classmethod
    def load(cls, path: Path, *, progress: Progress = None) -> "Plan":
        """Reads a plan file, trusting nothing; the digest is verified."""
        return cls(make(lib.hbp_plan_load, path_bytes(path), free=lib.hbp_plan_free, long=True, progress=progress))

    def save(self, path: Path, *, level: int = 0, chunk_steps: int = 0, cost: Optional[Cost] = None,
             note: Optional[str] = None, progress: Progress = None) -> None:
        """Writes the plan file whole or not at all; level: zlib's 1..9, 0 is 1, -1 stores."""
        options = s.PlanSaveOptions(level=level, chunk_steps=chunk_steps,
                                    cost=None if cost is None else cost._as_parameter_.value,
                                    note=None if note is None else note.encode())
        call_long(lib.hbp_plan_save, self, path_bytes(path), byref(options), progress=progress)

    def write_trace(self, path: Path, first: int = 0, count: int = 0, *, progress: Progress = None) -> None:
        """Writes a Chrome trace of steps first .. first + count - 1 (count 0: to the end) for ui.perfetto.dev."""
        call_long(lib.hbp_plan_write_trace, self, first, count, path_bytes(path), progress=progress)

    def write_json(self, path: Path, *, progress: Progress = None) -> None:
        call_long(lib.hbp_plan_write_json, self, path_bytes(path), progress=progress)

    def summary(self) -> PlanSummary:
        return self._summary

    @property
    def ranks(self) -> int:
        return self._summary.ranks

    @property
    def digest(self) -> int:
        """64 bits that ranks can compare: equal plans, and only those, agree."""
        return lib.hbp_plan_get_digest(self)

    def step(self, index: int) -> Step:
        if not 0 <= index < len(self):
            raise IndexError(f"step {index} of a plan of {len(self)} steps")
        return Step(self, index)

    def __len__(self) -> int:
        return self._summary.steps

    def __iter__(self) -> Iterator[Step]:
        return map(self.step, range(len(self)))

    @property
    def dropped(self) -> list[tuple[int, str]]:
        """(id, "over-long" or "left-over") of every sample left out."""
        return [(int(i), s.DROPPED[reason]) for i, reason in zip(self.dropped_ids, self.dropped_reasons)]

    @property
    def has_pieces(self) -> bool:
        """Whether samples were cut (split or truncated), so that ids alone do not say which tokens to take."""
        dropped = int(np.count_nonzero(self.dropped_reasons == s.DROPPED.index("over-long")))
        return self.sample_first_tokens is not None or self._summary.overlong_samples > dropped

    def validate(self, lengths: Optional[Lengths] = None, cost: Optional[Cost] = None, *,
                 progress: Progress = None) -> None:
        """Checks every promise of the plan; InvalidError names the first breach."""
        call_long(lib.hbp_plan_validate, self, lengths, cost, progress=progress)

    def save_cursor(self, step: int) -> bytes:
        """Where to resume, before step `step`, in 64 bytes."""
        cursor = (c_uint8 * CURSOR_BYTES)()
        call(lib.hbp_plan_save_cursor, self, step, cursor)
        return bytes(cursor)

    def load_cursor(self, cursor: bytes) -> int:
        """The step to resume at; InvalidError when plan or world size are others than the cursor's."""
        if len(cursor) != CURSOR_BYTES:
            raise ValueError(f"a cursor has {CURSOR_BYTES} bytes, not {len(cursor)}")
        step = c_int64()
        call(lib.hbp_plan_load_cursor, self, (c_uint8 * CURSOR_BYTES).from_buffer_copy(cursor), byref(step))
        return step.value

    def __repr__(self) -> str:
        found = self._summary
        return f"<hbp.Plan: {found.steps:,} steps, {found.samples:,} samples on {found.ranks} ranks>"

    def __reduce__(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "plan.msgpack")
            self.save(path)
            with open(path, "rb") as file:
                return _restore, (file.read(),)


def _restore(data: bytes) -> Plan:
    """Unpickles a plan from its file."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "plan.msgpack")
        with open(path, "wb") as file:
            file.write(data)
        return Plan.load(path)


class PlanFile:
    """A plan file opened for reading single steps: only header, index and the chunks asked for are read.

    One thread reads at a time (a lock sees to it); a forked or unpickled copy opens the file again.
    """

    def __init__(self, path: Path) -> None:
        self.path = os.fspath(path)
        self._lock = threading.Lock()
        self._open()

    def _open(self) -> None:
        self._handle: Optional[Handle] = make(lib.hbp_plan_file_open, path_bytes(self.path),
                                              free=lib.hbp_plan_file_free)
        self._process = os.getpid()

    def _file(self) -> Handle:
        if self._handle is None:
            raise ValueError(f"{self.path} is closed")
        if self._process != os.getpid():  # parent and child share the position in the file
            self._open()
        return self._handle

    def summary(self) -> PlanSummary:
        """Of the whole plan."""
        found = s.PlanSummary()
        with self._lock:
            call(lib.hbp_plan_file_get_summary, self._file(), byref(found))
        return PlanSummary(**fields(found))

    def read(self, first: int, count: int = 1) -> Plan:
        """Steps first .. first + count - 1 as a plan of their own: its step 0 is the whole plan's step `first`."""
        with self._lock:
            return Plan(make(lib.hbp_plan_file_read, self._file(), first, count, free=lib.hbp_plan_free, long=True))

    def step(self, index: int) -> Step:
        """Step `index` of the whole plan."""
        return self.read(index).step(0)

    def __len__(self) -> int:
        return self.summary().steps

    def close(self) -> None:
        with self._lock:
            self._handle = None

    def __enter__(self) -> "PlanFile":
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<hbp.PlanFile {self.path!r}>"

    def __reduce__(self):
        return PlanFile, (self.path,)

"""The cost model: (model, machine, measurements) -> nanoseconds and bytes, and how one pack is best run."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal, Optional

import numpy as np
import numpy.typing as npt

from . import _native, _records
from ._arrays import address, addresses, column_arrays, columns_of, floats, integers, same_count, view
from ._context import call, call_long
from ._files import Path, Saved, path_bytes
from ._inputs import Integers
from ._native import lib
from ._numbers import choice, int32, int64, suggesting, text_bytes
from ._records import Anchor, CostFileOptions, CostOptions, FitReport, Measurements, PackParts, SpOptions, StackFields
from ._results import SpChoice
from ._text import many
from .machine import Machine
from .model import Model

if TYPE_CHECKING:
    from .timeline import Timeline

ZeroStage = Literal[0, 1, 2, 3]
ZERO_STAGES: dict[ZeroStage, int] = {3: 3, 2: 2, 1: 1, 0: 4}
_TABLES = {name: field.column for name, field in _records.CostTerms._record.items() if field.column}


def _pack(
    tokens: int, sum_squares: Optional[float], sp: int, recompute: int, vision: int
) -> tuple[int, int, int, float, int]:
    """A pack as the library takes it; without `sum_squares` it is one document."""
    squares = float(tokens) * float(tokens) if sum_squares is None else float(sum_squares)
    return int32("sp", sp), int32("recompute", recompute), int64("tokens", tokens), squares, int64("vision", vision)


def read_stack(text: Optional[str], model: Model, machine: Machine) -> StackFields:
    """What a software stack comes to for a model on a machine: a preset, "fsdp-2023"; one with another
    attention kernel, "fsdp-2023:fa2"; with fields replaced, "fsdp-2023,elementwise_bytes=200"; fields alone;
    None: the machine's own efficiencies."""
    found = StackFields()
    call(lib.hbp_stack_read, text_bytes(text), model, machine, ctypes.byref(found))
    return found


@dataclass(frozen=True)
class CostTerms:
    """The terms of the cost of a pack, as hbp_cost_terms has them; degree, sp_latency_ns and sp_ns_per_token
    are tables with a row a degree."""

    ranks: int
    layers: int
    degree: tuple[int, ...]
    sp_latency_ns: tuple[float, ...]
    sp_ns_per_token: tuple[float, ...]
    limit_bytes: int
    domain_ranks: int = 0
    ns_per_token: float = 0.0
    ns_per_token_squared: float = 0.0
    recompute_linear: float = 0.0
    recompute_attention: float = 0.0
    recompute_communication: float = 0.0
    pack_ns: float = 0.0
    step_ns: float = 0.0
    static_bytes: float = 0.0
    activation_bytes: float = 0.0
    recomputed_bytes: float = 0.0
    working_bytes: float = 0.0
    logits_bytes: float = 0.0
    sp_buffer_bytes: float = 0.0
    ns_per_vision: float = 0.0
    recompute_vision: float = 0.0
    vision_bytes: float = 0.0
    lockstep_ranks: int = 0
    uneven_micro_batches: int = 0
    traffic_ns: float = 0.0
    compute_overlap: float = 0.0
    least_compute_ns: float = 0.0


class Cost(Saved):
    """What a pack costs in time and memory on this machine. Immutable.

    `zero_stage` 0 shards nothing, 3 (ZeRO-3) everything; `max_sp` 0 is the model's and machine's own limit;
    overlaps are shares in 0..1; `reserve_bytes` None keeps 4 GiB free on each GPU, 0 nothing.
    `shard_ranks` is what ZeRO shards over (HSDP; 0: all ranks), `lockstep_ranks` how many ranks wait for one
    another in every micro-batch (1: DDP, ZeRO-1; 0: `shard_ranks` with ZeRO-3, else all), and
    `uneven_micro_batches` lets ranks without samples skip one. `stack` is the trainer's software, as
    `read_stack` takes it; None: the machine's efficiencies, nothing but products and attention
    takes time, traffic is not hidden."""

    _opaque = _native.Cost
    _free = "hbp_cost_free"

    @suggesting
    def __init__(
        self,
        model: Model,
        machine: Machine,
        *,
        zero_stage: ZeroStage = 3,
        fused_cross_entropy: bool = False,
        max_sp: int = 0,
        dp_overlap: float = 0.0,
        sp_overlap: float = 0.0,
        reserve_bytes: Optional[int] = None,
        pack_overhead_ns: int = 0,
        shard_ranks: int = 0,
        lockstep_ranks: int = 0,
        uneven_micro_batches: bool = False,
        stack: Optional[str] = None,
    ) -> None:
        options = CostOptions.pick(
            locals(),
            zero_stage=choice("zero_stage", zero_stage, ZERO_STAGES),
            reserve_bytes=0 if reserve_bytes is None else reserve_bytes or -1,
            stack=text_bytes(stack),
        )
        self._handle = Cost._make(lib.hbp_cost_create, model, machine, ctypes.byref(options))._handle

    @classmethod
    def from_terms(cls, terms: CostTerms) -> Cost:
        """From terms that the caller knows."""
        degree = integers("degree", terms.degree, np.int32)
        latency = same_count("sp_latency_ns", floats("sp_latency_ns", terms.sp_latency_ns), len(degree))
        per_token = same_count(
            "sp_ns_per_token", floats("sp_ns_per_token", terms.sp_ns_per_token), len(degree)
        )
        scalars = {
            field.name: getattr(terms, field.name) for field in fields(terms) if field.name not in _TABLES
        }
        struct = _records.CostTerms(
            degrees=len(degree),
            degree=address(degree),
            sp_latency_ns=address(latency),
            sp_ns_per_token=address(per_token),
            **scalars,
        )
        return cls._make(lib.hbp_cost_create_terms, ctypes.byref(struct))

    @classmethod
    def plain(cls, ranks: int) -> Cost:
        """For plain packing, without model and machine: a pack takes 1 ns for each squared token over its SP
        degree, any divisor of `ranks`, and memory has no limit."""
        return cls._make(lib.hbp_cost_create_plain, int32("ranks", ranks))

    @classmethod
    def load(cls, path: Path) -> Cost:
        """From a cost file; plans with it are those with the cost that was saved."""
        return cls._make(lib.hbp_cost_load, path_bytes(path))

    def save(
        self,
        path: Path,
        *,
        model: Optional[str] = None,
        machine: Optional[str] = None,
        note: Optional[str] = None,
    ) -> None:
        """Into a cost file, whole or not at all; names that are not given are the cost's own."""
        options = CostFileOptions.pick(locals())
        call(lib.hbp_cost_save, self, path_bytes(path), ctypes.byref(options))

    @property
    def model_name(self) -> str:
        """Of the model that this is the cost of; "" where it is not known."""
        return str(lib.hbp_cost_get_model_name(self).decode())

    @property
    def machine_name(self) -> str:
        """Of the machine whose times these are; "" where it is not known."""
        return str(lib.hbp_cost_get_machine_name(self).decode())

    def terms(self) -> CostTerms:
        """The terms themselves."""
        struct = _records.CostTerms()
        call(lib.hbp_cost_get_terms, self, ctypes.byref(struct))
        tables: dict[str, Any] = {
            name: tuple(view(getattr(struct, name), struct.degrees, dtype, self).tolist())
            for name, dtype in _TABLES.items()
        }
        scalars: dict[str, Any] = {
            field.name: getattr(struct, field.name)
            for field in fields(CostTerms)
            if field.name not in _TABLES
        }
        return CostTerms(**scalars, **tables)

    def source(self, term: str) -> str:
        """Where a term came from: "analysis", "given", "fit of 120 packs"."""
        text = lib.hbp_cost_get_source(self, text_bytes(term))
        if text is None:
            raise KeyError(term)
        return str(text.decode())

    def fit(
        self,
        timeline: Optional[Timeline] = None,
        *,
        sp: Optional[Integers] = None,
        recompute: Optional[Integers] = None,
        tokens: Optional[Integers] = None,
        sum_squares: Optional[Integers] = None,
        time_ns: Optional[Integers] = None,
        peak_bytes: Optional[Integers] = None,
        step_ns: Optional[Integers] = None,
    ) -> tuple[Cost, FitReport]:
        """A cost fitted to measured packs, a timeline or columns with a row each, with this one as what stands
        where they say nothing; `step_ns` has a row for each step: what it took beside its packs. `source` of the
        result says which terms were fitted."""
        columns = columns_of(Measurements, locals())
        steps = {"step_ns": columns.pop("step_ns")}
        arrays: dict[str, npt.NDArray[Any]] = {}
        given = [name for name, column in (*columns.items(), *steps.items()) if column is not None]
        if timeline is not None:
            if given:
                raise TypeError(f"{given[0]} is given beside a timeline")
            if not hasattr(timeline, "_measured"):
                raise TypeError(f"timeline is {timeline!r}; it must be hbp.Timeline")
            measured = timeline._measured()
        else:
            missing = [name for name in columns if name not in given and name != "peak_bytes"]
            if missing:
                raise TypeError(f"neither a timeline nor {missing[0]} is given")
            arrays = {**column_arrays(Measurements, columns), **column_arrays(Measurements, steps)}
            measured = Measurements(
                count=len(arrays["sp"]), steps=len(arrays.get("step_ns", ())), **addresses(arrays)
            )
        report, out, fitted = FitReport(), ctypes.c_void_p(), Cost.__new__(Cost)
        try:
            call_long(lib.hbp_cost_fit, self, ctypes.byref(measured), ctypes.byref(out), ctypes.byref(report))
        finally:
            if out.value:
                fitted._adopt(out.value)
        del arrays  # lived as long as the call
        return fitted, report

    @suggesting
    def anchor(
        self,
        *,
        tokens_per_s_per_gpu: float,
        sequence_tokens: int,
        sequences_per_micro_batch: int = 1,
        micro_batches_per_step: int = 1,
        sp: int = 1,
        recompute: int = 0,
    ) -> Cost:
        """All times scaled so that a run has the speed that was measured; memory stays."""
        anchor = Anchor.pick(locals())
        return Cost._make(lib.hbp_cost_anchor, self, ctypes.byref(anchor))

    def predict_ns(
        self,
        tokens: int,
        sum_squares: Optional[float] = None,
        *,
        sp: int = 1,
        recompute: int = 0,
        vision: int = 0,
    ) -> int:
        """Time of a pack of `tokens` tokens and `vision` vision units; without `sum_squares` (of document
        lengths) it is one document."""
        pack = _pack(tokens, sum_squares, sp, recompute, vision)
        return self._allowed(lib.hbp_cost_predict_pack_ns(self, *pack), *pack[:2])

    def predict_parts(
        self,
        tokens: int,
        sum_squares: Optional[float] = None,
        *,
        sp: int = 1,
        recompute: int = 0,
        vision: int = 0,
    ) -> PackParts:
        """What that time is made of: computation, vision units, all-to-alls, what is paid once a pack; in ns."""
        parts = PackParts()
        pack = _pack(tokens, sum_squares, sp, recompute, vision)
        call(lib.hbp_cost_predict_pack_parts, self, *pack, ctypes.byref(parts))
        return parts

    def predict_bytes(self, tokens: int, *, sp: int = 1, recompute: int = 0, vision: int = 0) -> int:
        """Peak bytes per rank of a pack of `tokens` tokens and `vision` vision units."""
        degree, layers = int32("sp", sp), int32("recompute", recompute)
        size = lib.hbp_cost_predict_pack_bytes(
            self, degree, layers, int64("tokens", tokens), int64("vision", vision)
        )
        return self._allowed(size, degree, layers)

    def _allowed(self, value: int, sp: int, recompute: int) -> int:
        if value < 0:
            terms = self.terms()
            raise ValueError(
                f"SP degree {sp} with {recompute} layers recomputed is not allowed; "
                f"degrees are {terms.degree}, layers 0..{terms.layers}"
            )
        return value

    def predict_capacity(self, *, sp: int = 1, recompute: int = 0) -> int:
        """The most tokens that a pack may hold; 0 when none fits."""
        return int(lib.hbp_cost_predict_capacity(self, int32("sp", sp), int32("recompute", recompute)))

    def predict_recompute(self, tokens: int, *, sp: int = 1) -> Optional[int]:
        """The fewest layers to recompute so that a pack of `tokens` fits; None when all do not suffice."""
        layers = lib.hbp_cost_predict_recompute(self, int32("sp", sp), int64("tokens", tokens))
        return None if layers < 0 else layers

    def __repr__(self) -> str:
        terms = self.terms()
        return f"<hbp.Cost: {many(terms.ranks, 'rank')}, SP degrees {', '.join(map(str, terms.degree))}>"


def choose_sp(
    cost: Cost, pack_length: int, *, tokens_per_step: int = 0, squares_per_token: float = 0.0
) -> SpChoice:
    """The SP degree and recomputed layers that run packs of `pack_length` tokens fastest (HBP, Algorithms 3
    and 4)."""
    options = SpOptions.pick(locals())
    chosen = SpChoice()
    call(
        lib.hbp_choose_sp,
        cost,
        int64("pack_length", pack_length),
        ctypes.byref(options),
        ctypes.byref(chosen),
    )
    return chosen


def list_sp_choices(
    cost: Cost, pack_length: int, *, tokens_per_step: int = 0, squares_per_token: float = 0.0
) -> list[SpChoice]:
    """Every degree, ascending, with its times and why it is out."""
    options = SpOptions.pick(locals())
    length, count = int64("pack_length", pack_length), ctypes.c_int64()
    size = ctypes.sizeof(SpChoice)
    call(lib.hbp_list_sp_choices, cost, length, ctypes.byref(options), None, size, 0, ctypes.byref(count))
    rows = (SpChoice * count.value)()
    for row in rows:
        row.struct_size = size
    call(
        lib.hbp_list_sp_choices,
        cost,
        length,
        ctypes.byref(options),
        rows,
        size,
        len(rows),
        ctypes.byref(count),
    )
    return [SpChoice.from_buffer_copy(row) for row in rows[: count.value]]

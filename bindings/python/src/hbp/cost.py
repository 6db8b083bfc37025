"""The cost model: model x machine (+ measurements) -> nanoseconds and bytes, and how one pack is run."""

from __future__ import annotations

from ctypes import byref, c_int64, c_void_p
from dataclasses import dataclass
from typing import Any, Mapping, Optional, Sequence, Union

import numpy as np

from . import _structs as s
from ._context import F64, I32, Handle, Object, Progress, call, call_long, fields, make, name_bytes, view
from ._native import lib, text
from .lengths import ArrayLike, int64_array
from .machine import Machine
from .model import Model, struct_of


def _int32_array(values: ArrayLike, what: str) -> np.ndarray:
    array = int64_array(values, what)
    if array.size and (array.min() < -(2**31) or array.max() >= 2**31):
        raise ValueError(f"{what} do not fit 32 bits")
    return array.astype(np.int32)


class Cost(Object):
    """Predicts time and memory of a pack. Immutable; any number of threads may use one."""

    def __init__(self, model: Model, machine: Machine, *, zero_stage: Union[int, str] = "default",
                 fused_cross_entropy: bool = False, max_sp: int = 0, dp_overlap: float = 0.0, sp_overlap: float = 0.0,
                 reserve_bytes: int = 0, pack_overhead_ns: int = 0) -> None:
        """Derives every term from the model's shape and the machine's fields. zero_stage: 1, 2, 3 (the default) or
        "none"; reserve_bytes: kept free on each GPU, 0 is 4 GiB, -1 is none."""
        options = s.CostOptions(zero_stage=s.code(s.ZERO, zero_stage, "zero_stage"),
                                fused_cross_entropy=bool(fused_cross_entropy), max_sp=max_sp, dp_overlap=dp_overlap,
                                sp_overlap=sp_overlap, reserve_bytes=reserve_bytes, pack_overhead_ns=pack_overhead_ns)
        self._handle = make(lib.hbp_cost_create, model, machine, byref(options), free=lib.hbp_cost_free)

    @classmethod
    def _of(cls, handle: Handle) -> "Cost":
        self = cls.__new__(cls)
        self._handle = handle
        return self

    @classmethod
    def from_terms(cls, *, degree: ArrayLike = (1,), sp_latency_ns: Sequence[float] = (0.0,),
                   sp_ns_per_token: Sequence[float] = (0.0,), **terms: float) -> "Cost":
        """A cost from the terms of hbp_cost_terms; the three tables have a row per SP degree."""
        degrees = _int32_array(degree, "degree")
        latency, per_token = np.array(sp_latency_ns, F64), np.array(sp_ns_per_token, F64)
        if not latency.shape == per_token.shape == degrees.shape:
            raise ValueError(f"the tables have {degrees.size}, {latency.size} and {per_token.size} rows")
        struct = struct_of(s.CostTerms, "Cost.from_terms", {k: v for k, v in terms.items() if k != "degrees"},
                           degrees=degrees.size, degree=degrees.ctypes.data, sp_latency_ns=latency.ctypes.data,
                           sp_ns_per_token=per_token.ctypes.data)
        return cls._of(make(lib.hbp_cost_create_terms, byref(struct), free=lib.hbp_cost_free))

    @property
    def terms(self) -> dict[str, Any]:
        """hbp_cost_terms; the tables are views."""
        found = s.CostTerms()
        call(lib.hbp_cost_get_terms, self, byref(found))
        tables = {"degree": I32, "sp_latency_ns": F64, "sp_ns_per_token": F64}
        return {**fields(found), **{name: view(getattr(found, name), found.degrees, dtype, self._handle)
                                    for name, dtype in tables.items()}}

    def source(self, term: str) -> Optional[str]:
        """Where a term came from: "analysis", "given", "fit of 120 packs"; None for no such term."""
        return text(lib.hbp_cost_get_source(self, name_bytes(term)))

    def fit(self, *, sp: ArrayLike, recompute: ArrayLike, tokens: ArrayLike, sum_squares: ArrayLike,
            time_ns: ArrayLike, peak_bytes: Optional[ArrayLike] = None,
            progress: Progress = None) -> tuple["Cost", dict[str, Any]]:
        """Fits the terms to measured packs, a row each, with this cost as the prior; also returns hbp_fit_report."""
        columns = {"sp": _int32_array(sp, "sp"), "recompute": _int32_array(recompute, "recompute"),
                   "tokens": int64_array(tokens, "tokens"), "sum_squares": int64_array(sum_squares, "sum_squares"),
                   "time_ns": int64_array(time_ns, "time_ns")}
        if peak_bytes is not None:
            columns["peak_bytes"] = int64_array(peak_bytes, "peak_bytes")
        count = columns["sp"].size
        for name, values in columns.items():
            if values.size != count:
                raise ValueError(f"{name} has {values.size} rows, sp has {count}")
        measured = s.Measurements(count=count, **{name: values.ctypes.data for name, values in columns.items()})
        out, report = c_void_p(), s.FitReport()
        call_long(lib.hbp_cost_fit, self, byref(measured), byref(out), byref(report), progress=progress)
        return Cost._of(Handle(out, lib.hbp_cost_free)), fields(report)

    def pack_ns(self, sp: int, recompute: int, tokens: int, sum_squares: float) -> int:
        """Predicted time of a pack; -1 for a degree or a number of layers that the cost does not know."""
        return lib.hbp_cost_predict_pack_ns(self, sp, recompute, tokens, sum_squares)

    def pack_bytes(self, sp: int, recompute: int, tokens: int) -> int:
        """Predicted peak per rank; -1 as for pack_ns."""
        return lib.hbp_cost_predict_pack_bytes(self, sp, recompute, tokens)

    def capacity(self, sp: int, recompute: int) -> int:
        """The most tokens a pack on `sp` ranks may hold; 0 when none fits."""
        return lib.hbp_cost_predict_capacity(self, sp, recompute)

    def recompute(self, sp: int, tokens: int) -> int:
        """The fewest layers to recompute so that `tokens` fit on `sp` ranks; -1 when all do not suffice."""
        return lib.hbp_cost_predict_recompute(self, sp, tokens)

    def __repr__(self) -> str:
        found = self.terms
        return f"<hbp.Cost: {found['ranks']} ranks, SP {', '.join(map(str, found['degree']))}>"

    def __reduce__(self):
        tables = ("degree", "sp_latency_ns", "sp_ns_per_token")
        return _restore, ({name: value.tolist() if name in tables else value for name, value in self.terms.items()},)


def _restore(terms: Mapping[str, Any]) -> Cost:
    """Unpickles: the same numbers, whose sources are then "given"."""
    return Cost.from_terms(**terms)


@dataclass(frozen=True)
class SpChoice:
    """One SP degree with its recomputed layers and what they cost; reason "feasible", or why it is out."""

    sp: int
    recompute: int
    reason: str
    micro_batches: int
    pack_ns: int
    step_ns: int
    peak_bytes: int
    limit_bytes: int

    @classmethod
    def _of(cls, found: s.SpChoice) -> "SpChoice":
        return cls(**{**fields(found), "reason": s.SP_REASONS[found.reason]})


def choose_sp(cost: Cost, pack_length: int, *, tokens_per_step: int = 0, squares_per_token: float = 0.0) -> SpChoice:
    """The degree and recomputed layers with the least predicted step time for packs of pack_length tokens."""
    options = s.SpOptions(tokens_per_step=tokens_per_step, squares_per_token=squares_per_token)
    choice = s.SpChoice()
    call(lib.hbp_choose_sp, cost, pack_length, byref(options), byref(choice))
    return SpChoice._of(choice)


def list_sp_choices(cost: Cost, pack_length: int, *, tokens_per_step: int = 0,
                    squares_per_token: float = 0.0) -> list[SpChoice]:
    """Every power of two up to the ranks, and every allowed degree, with the reason when it is out."""
    options = s.SpOptions(tokens_per_step=tokens_per_step, squares_per_token=squares_per_token)
    count = c_int64()
    size = s.sizeof(s.SpChoice)
    call(lib.hbp_list_sp_choices, cost, pack_length, byref(options), None, size, 0, byref(count))
    choices = (s.SpChoice * count.value)()
    call(lib.hbp_list_sp_choices, cost, pack_length, byref(options), choices, size, count.value, byref(count))
    return [SpChoice._of(choice) for choice in choices]

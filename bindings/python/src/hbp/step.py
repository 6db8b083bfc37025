"""One step at a time: micro-batches of SP groups of different degrees."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, TypedDict, Union

from ._choices import StepMethod, StepRecompute
from ._context import ProgressOption
from ._inputs import Integers
from ._native import lib
from ._numbers import refuse_unknown
from ._records import StepOptions
from .cost import Cost
from .epoch import INPUTS
from .lengths import Lengths
from .plans import Plan

if TYPE_CHECKING:
    from typing_extensions import Unpack



class StepKeywords(TypedDict, total=False):
    """The options of plan_step."""

    method: StepMethod
    effort: int
    exact: bool
    any_degree: bool
    min_sp: int
    max_sp: int
    recompute: StepRecompute
    min_micro_batches: int
    max_micro_batches: int
    micro_batch_multiple: int
    buckets: int
    sequence_multiple: int
    pack_multiple: int
    longest_tokens: int
    tokens_per_rank: int
    time_limit_ms: int
    max_pack_length: int
    sequence_multiple_per_sp: int
    pack_multiple_per_sp: int
    max_samples: int
    equal_samples: bool
    sequence_tokens_per_rank: int
    max_vision: int


def step_options(**options: Unpack[StepKeywords]) -> StepOptions:
    """The struct."""
    refuse_unknown(options, StepKeywords, INPUTS)
    return StepOptions.pick(options)


def plan_step(
    lengths: Union[Lengths, Integers],
    cost: Cost,
    *,
    progress: ProgressOption = None,
    **options: Unpack[StepKeywords],
) -> Plan:
    """Plans one step for a batch of `lengths` (an array or list of tokens per sample, or hbp.Lengths): a plan
    of one step, ids being indices of the batch. Each micro-batch is cut into SP groups of different degrees
    that end together; plan.step(0).groups() lists them, and plan.summary().gap how far from optimal the plan
    is at most.

    Options are the fields of hbp_step_options, 0 being the default of each: method "search" or one of others to
    compare with, "flexsp", "static-sp", "homogeneous-sp", "hybrid-cp" or "dynamic-cp" (hbp.methods(of="step")
    says what they are), effort (1..9, each about three times the work; more never makes a plan slower), any_degree
    (degrees that are no powers of two, too), min_sp, max_sp,
    recompute "auto", "none" or "all", min_micro_batches, max_micro_batches, micro_batch_multiple, buckets,
    sequence_multiple and pack_multiple (padding), longest_tokens (static-sp: the longest sample of the run),
    tokens_per_rank, max_pack_length and max_samples (the most of a rank or pack), sequence_tokens_per_rank
    (hybrid-cp: the most of one sample on a rank), max_vision (the most vision units of a pack; 0: what memory
    holds), sequence_multiple_per_sp and pack_multiple_per_sp (padding that grows with a pack's degree),
    time_limit_ms (plans may then differ between ranks). exact=True, for methods "search" and "flexsp", needs a
    solver, which this package does not bring: it is a SolverError. The plan is a pure function of all of them but
    the time limit, so that every rank may plan for itself."""
    struct, data = step_options(**options), Lengths.of(lengths)
    return Plan._make(lib.hbp_plan_step, data, cost, ctypes.byref(struct), progress=progress)

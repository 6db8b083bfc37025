"""The open structs of what was measured: timelines, rates of a machine, packs for a fit; see _structs."""

from ._structs import F64, I32, I64, Address, Struct, Text, struct


@struct
class MachineRate(Struct):
    rate: I32
    size: I64
    per_s: F64
    spread: F64
    source: Text


@struct
class Measurements(Struct):
    count: I64
    sp: Address
    recompute: Address
    tokens: Address
    sum_squares: Address
    time_ns: Address
    peak_bytes: Address


@struct
class FitReport(Struct):
    """How well a fit explains its measurements; errors are relative, |predicted - measured| / measured."""

    terms_fitted: I32
    median_time_error: F64
    p95_time_error: F64
    max_time_error: F64
    median_bytes_error: F64
    max_bytes_error: F64
    prior_median_time_error: F64


@struct
class TimelineColumns(Struct):
    ranks: I32
    count: I64
    step: Address
    micro_batch: Address
    first_rank: Address
    sp: Address
    recompute: Address
    samples: Address
    tokens: Address
    sum_squares: Address
    start_ns: Address
    time_ns: Address
    communication_ns: Address
    peak_bytes: Address
    device: Text
    date: Text


@struct
class TimelineReport(Struct):
    """How far a cost's predictions are from what was measured; errors are |predicted - measured| / measured,
    of packs and of steps' sums over micro-batches of the slowest pack."""

    ranks: I32
    packs: I64
    steps: I64
    median_pack_error: F64
    p95_pack_error: F64
    max_pack_error: F64
    median_step_error: F64
    p95_step_error: F64
    max_step_error: F64
    median_bytes_error: F64
    max_bytes_error: F64
    measured_ns: I64
    predicted_ns: I64
    measured_idle: F64
    predicted_idle: F64

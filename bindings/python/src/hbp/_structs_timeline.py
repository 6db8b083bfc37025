"""The open structs of timeline.h."""

from ._structs import F64, I32, I64, Address, Struct, Text, struct


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

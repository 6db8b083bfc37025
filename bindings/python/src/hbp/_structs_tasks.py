"""The open structs of planning many tasks; see _structs."""

from ._structs import F64, I32, I64, U64, Address, I32s, I64s, Struct, Text, struct


@struct
class OperatorStruct(Struct):
    profile: I32
    name: Text
    type: Text
    task: Text
    parameters: Text
    batch: I64
    sequence: I64
    width: I64
    degrees: I32
    least_gpus: I32
    split: I64
    state_bytes: I64
    sharded_bytes: I64
    activation_bytes: I64
    output_bytes: I64
    gradient_bytes: I64


@struct
class TasksOptions(Struct):
    mode: I32
    placement: I32
    effort: I32
    reserve_bytes: I64
    limit_bytes: I64
    previous: Address
    seed: U64


@struct
class TaskSummary(Struct):
    """A schedule of tasks in numbers; print it."""

    mode: I32
    placement: I32
    gpus: I32
    domain_gpus: I32
    operators: I32
    meta_ops: I32
    levels: I32
    waves: I32
    slices: I32
    groups: I32
    tasks: I32
    parameters: I32
    proven: I32
    makespan_ns: I64
    bound_ns: I64
    critical_path_ns: I64
    area_ns: I64
    relaxed_ns: I64
    flow_bytes: I64
    moved_bytes: I64
    crossing_bytes: I64
    limit_bytes: I64
    peak_bytes: I64
    kept_bytes: I64
    fetched_bytes: I64
    gap: F64
    idle: F64

    def __str__(self) -> str:
        bound = "the least there is" if self.proven else f"{self.gap:.1%} over the bound"
        limit = f" of {self.limit_bytes / 2**30:,.1f}" if self.limit_bytes else ""
        lines = [
            f"{self.tasks:,} tasks, {self.operators:,} operators in {self.meta_ops:,} MetaOps on "
            f"{self.gpus:,} GPUs: {self.slices:,} slices in {self.waves:,} waves",
            f"{self.makespan_ns / 1e6:,.3f} ms without transfers, {bound}; GPUs idle {self.idle:.1%}",
            f"{self.moved_bytes / 2**30:,.1f} of {self.flow_bytes / 2**30:,.1f} GiB of outputs leave their GPU, "
            f"{self.crossing_bytes / 2**30:,.1f} GiB their domain; peak {self.peak_bytes / 2**30:,.1f}{limit} GiB",
        ]
        if self.kept_bytes or self.fetched_bytes:
            lines.append(
                f"{self.kept_bytes / 2**30:,.1f} GiB of states stay where they were, "
                f"{self.fetched_bytes / 2**30:,.1f} GiB are fetched"
            )
        return "\n".join(lines)


@struct
class TaskRunOptions(Struct):
    barriers: I32
    free_transfers: I32
    free_gradients: I32


@struct
class TaskRunSummary(Struct):
    """A step of many tasks that was run on paper, in numbers; print it."""

    gpus: I32
    total_ns: I64
    slices_ns: I64
    transfer_ns: I64
    gradient_ns: I64
    flow_bytes: I64
    moved_bytes: I64
    crossing_bytes: I64
    peak_bytes: I64
    idle: F64
    schedule_digest: U64
    digest: U64

    def __str__(self) -> str:
        return (
            f"{self.total_ns / 1e6:,.3f} ms on {self.gpus:,} GPUs: {self.slices_ns / 1e6:,.3f} ms of slices, "
            f"{self.gradient_ns / 1e6:,.3f} ms of gradients; waiting for transfers takes "
            f"{self.transfer_ns / 1e6:,.3f} ms, idle {self.idle:.1%}; peak {self.peak_bytes / 2**30:,.1f} GiB"
        )


@struct
class TaskRunView(Struct):
    slices: I64
    slice_starts: I64s
    slice_ends: I64s


@struct
class GraphView(Struct):
    operators: I64
    edges: I64
    profiles: I64
    tasks: I64
    parameters: I64
    operator_tasks: I32s
    operator_parameters: I32s


@struct
class TaskScheduleView(Struct):
    meta_ops: I64
    operators_total: I64
    levels: I64
    waves: I64
    slices: I64
    groups: I64
    group_ranks_total: I64
    parameters: I64
    ranks: I64
    meta_op_offsets: I64s
    operators: I32s
    meta_op_levels: I32s
    meta_op_tasks: I32s
    level_ns: I64s
    wave_offsets: I64s
    slice_meta_ops: I32s
    slice_firsts: I32s
    slice_operators: I32s
    slice_gpus: I32s
    slice_groups: I32s
    slice_starts: I64s
    slice_ends: I64s
    group_offsets: I64s
    group_ranks: I32s
    parameter_groups: I32s
    rank_busy_ns: I64s
    rank_bytes: I64s

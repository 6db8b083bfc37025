"""The open structs of the C headers. A class body is the struct: names, order and types; `struct_size` comes
first and fills itself in. tests/test_abi.py compares sizes and offsets with what the C compiler says."""

import ctypes
from typing import Annotated, Any, Optional, Type, TypeVar, get_type_hints

from ._numbers import INTEGER_BITS, checked

U32 = Annotated[int, ctypes.c_uint32]
U64 = Annotated[int, ctypes.c_uint64]
I32 = Annotated[int, ctypes.c_int32]
I64 = Annotated[int, ctypes.c_int64]
F64 = Annotated[float, ctypes.c_double]
Text = Annotated[Optional[bytes], ctypes.c_char_p]
Address = Annotated[Optional[int], ctypes.c_void_p]
# Columns of views, with the type of their values.
I32s = Annotated[Optional[int], ctypes.c_void_p, "int32"]
U32s = Annotated[Optional[int], ctypes.c_void_p, "uint32"]
I64s = Annotated[Optional[int], ctypes.c_void_p, "int64"]


class Struct(ctypes.Structure):
    """A struct whose first field is its size. Keywords set fields; what does not fit a field is refused."""

    column_types = dict[str, str]()  # of the values of a view's columns, by name

    def __init__(self, **values: Any) -> None:
        super().__init__()
        self.struct_size = ctypes.sizeof(self)
        types = {field[0]: field[1] for field in self._fields_}
        for name, value in values.items():
            if name not in types or name == "struct_size":
                raise TypeError(
                    f"{type(self).__name__} has no field {name!r}; it has {', '.join(self._names())}"
                )
            if types[name] in INTEGER_BITS:
                value = checked(name, value, types[name])
            elif types[name] is ctypes.c_double:
                value = float(value)
            setattr(self, name, value)

    @classmethod
    def _names(cls) -> "list[str]":
        return [field[0] for field in cls._fields_[1:]]

    @classmethod
    def names(cls) -> "list[str]":
        """The fields' names, `struct_size` left out. A field may be called `names`, too."""
        return cls._names()

    def as_dict(self) -> "dict[str, Any]":
        """The fields by name."""
        return {name: getattr(self, name) for name in self._names()}

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={value!r}" for name, value in self.as_dict().items())
        return f"{type(self).__name__}({values})"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.as_dict() == other.as_dict()  # type: ignore[attr-defined]

    __hash__ = None  # type: ignore[assignment]


S = TypeVar("S", bound=Type[Struct])


def struct(cls: S) -> S:
    """Lays the annotated fields out in the order of the class body."""
    hints = get_type_hints(cls, include_extras=True)
    types = {name: hints[name].__metadata__ for name in cls.__dict__.get("__annotations__", None) or hints}
    cls._fields_ = [("struct_size", ctypes.c_uint32), *((name, of[0]) for name, of in types.items())]
    cls.column_types = {name: of[1] for name, of in types.items() if len(of) > 1}
    return cls


@struct
class Allocator(Struct):
    alloc: Address
    resize: Address
    release: Address
    user: Address


@struct
class Progress(Struct):
    stage: Text
    done: I64
    total: I64


PROGRESS_FN = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.POINTER(Progress))


@struct
class ContextOptions(Struct):
    allocator: Address
    progress: Annotated[Any, PROGRESS_FN]
    progress_user: Address


@struct
class Program(Struct):
    columns: I32
    rows: I32
    objective: Address
    column_lower: Address
    column_upper: Address
    column_kind: Address
    column_priority: Address
    row_lower: Address
    row_upper: Address
    row_first: Address
    entry_column: Address
    entry_value: Address
    start: Address


@struct
class SolverLimits(Struct):
    poll: Address
    poll_user: Address
    nodes: I64
    iterations: I64
    time_ms: I64
    memory_bytes: I64
    gap: F64


@struct
class SolverAnswer(Struct):
    status: I32
    objective: F64
    bound: F64
    values: Address
    message: Address
    message_bytes: I64
    iterations: I64


@struct
class Solver(Struct):
    solve: Address
    user: Address


@struct
class LengthsOptions(Struct):
    borrow: I32
    loss_tokens: Address
    ties: Address
    vision: Address
    modalities: Address


@struct
class LengthsColumns(Struct):
    loss_tokens: Address
    ties: Address
    vision: Address
    modalities: Address


@struct
class LengthsLoadOptions(Struct):
    format: Text
    column: Text
    count_column: Text
    loss_column: Text
    tie_column: Text
    vision_column: Text
    modality_column: Text
    vision_path: Text


@struct
class LengthsView(Struct):
    distinct_lengths: I64
    histogram_lengths: I64s
    histogram_counts: I64s


@struct
class LengthsSummary(Struct):
    """What a data set holds; `overlong_*` say what became of samples past a limit. `vision` is -1 where there
    is no second size; bit k of `modalities` is set where kind k occurs."""

    has_ties: I32
    samples: I64
    tokens: I64
    loss_tokens: I64
    min_length: I64
    max_length: I64
    distinct_lengths: I64
    overlong_samples: I64
    overlong_tokens: I64
    digest: U64
    sum_squares: F64
    vision: I64
    min_vision: I64
    max_vision: I64
    modalities: I64

    def __str__(self) -> str:
        text = (
            f"{self.samples:,} samples of {self.min_length:,} to {self.max_length:,} tokens "
            f"({self.distinct_lengths:,} distinct lengths), {self.tokens:,} tokens in all"
        )
        if self.vision >= 0:
            text += f", {self.vision:,} vision units"
        return text


@struct
class ModelFields(Struct):
    """A decoder-only transformer; counts are plain, sizes are elements, zero means absent or the default."""

    mlp: I32
    tied_embeddings: I32
    learned_positions: I32
    layers: I32
    dense_layers: I32
    hidden: I32
    ffn: I32
    heads: I32
    kv_heads: I32
    head_dim: I32
    vocab: I32
    experts: I32
    experts_active: I32
    experts_shared: I32
    moe_ffn: I32
    mla_q_lora: I32
    mla_kv_lora: I32
    mla_nope_dim: I32
    mla_rope_dim: I32
    mla_v_dim: I32
    qkv_bias: I32


@struct
class ModelSummary(Struct):
    """What follows from a model's fields."""

    max_sp: I32
    parameters: I64
    active_parameters: I64
    matmul_parameters: I64
    activation_bytes: I64
    recomputed_bytes: I64
    logits_bytes: I64
    forward_flops_per_token: F64
    forward_flops_per_token_squared: F64


@struct
class MachineFields(Struct):
    """Nodes, GPUs and links; zero means unknown. Bandwidths are bytes/s one way per GPU."""

    nodes: I32
    gpus_per_node: I32
    domain_gpus: I32
    cpu_packages: I32
    numa_nodes: I32
    cores: I32
    processing_units: I32
    cpu_memory_bytes: I64
    hbm_bytes: I64
    hbm_bytes_per_s: F64
    flops_per_s: F64
    gemm_efficiency: F64
    attention_efficiency: F64
    nvlink_bytes_per_s: F64
    network_bytes_per_s: F64
    nvlink_latency_ns: F64
    network_latency_ns: F64


@struct
class CostOptions(Struct):
    zero_stage: I32
    fused_cross_entropy: I32
    max_sp: I32
    dp_overlap: F64
    sp_overlap: F64
    reserve_bytes: I64
    pack_overhead_ns: I64
    shard_ranks: I32
    lockstep_ranks: I32
    uneven_micro_batches: I32


@struct
class CostTermsStruct(Struct):
    ranks: I32
    domain_ranks: I32
    layers: I32
    ns_per_token: F64
    ns_per_token_squared: F64
    recompute_linear: F64
    recompute_attention: F64
    recompute_communication: F64
    pack_ns: F64
    step_ns: F64
    static_bytes: F64
    activation_bytes: F64
    recomputed_bytes: F64
    working_bytes: F64
    logits_bytes: F64
    sp_buffer_bytes: F64
    limit_bytes: I64
    degrees: I32
    degree: Address
    sp_latency_ns: Address
    sp_ns_per_token: Address
    ns_per_vision: F64
    recompute_vision: F64
    vision_bytes: F64
    lockstep_ranks: I32
    uneven_micro_batches: I32


@struct
class CostFileOptions(Struct):
    model: Text
    machine: Text
    note: Text


@struct
class SpOptions(Struct):
    tokens_per_step: I64
    squares_per_token: F64


@struct
class SpChoice(Struct):
    """One (SP degree, recomputed layers) and what it costs; `why` says why it is out."""

    sp: I32
    recompute: I32
    reason: I32
    micro_batches: I64
    pack_ns: I64
    step_ns: I64
    peak_bytes: I64
    limit_bytes: I64

    @property
    def feasible(self) -> bool:
        return self.reason == 0

    @property
    def why(self) -> str:
        """ "feasible", "out of memory", "illegal heads" or "too few ranks"."""
        reasons = ("feasible", "out of memory", "illegal heads", "too few ranks")
        return reasons[self.reason] if 0 <= self.reason < len(reasons) else f"reason {self.reason}"


@struct
class GroupsOptions(Struct):
    mode: I32
    max_groups: I32
    step_slack: I32
    tokens_per_step: I64
    max_length: I64
    min_length: I64
    pack_multiple: I64
    sequence_multiple: I64
    max_pack_length: I64
    tokens_per_rank: I64


@struct
class FillOptions(Struct):
    mode: I32
    effort: I32
    max_samples: I32
    sequence_multiple: I64
    pack_multiple: I64
    seed: U64
    epoch: U64


@struct
class BalanceOptions(Struct):
    mode: I32
    micro_batch_multiple: I32
    drop_last: I32
    curriculum_steps: I64
    tokens_per_step: I64
    seed: U64
    epoch: U64
    modality_order: I32


@struct
class EpochOptions(Struct):
    mode: I32
    over_long: I32
    max_groups: I32
    micro_batch_multiple: I32
    drop_last: I32
    max_samples: I32
    effort: I32
    max_length: I64
    tokens_per_step: I64
    curriculum_steps: I64
    sequence_multiple: I64
    pack_multiple: I64
    samples_per_step: I64
    window_samples: I64
    seed: U64
    epoch: U64
    groups: Address
    mixture_slack: I32
    modality_order: I32
    max_vision: I64
    composition: I32
    threads: I32
    micro_batches_per_step: I32
    equal_samples: I32
    step_slack: I32
    min_sp: I32
    max_pack_length: I64
    tokens_per_rank: I64
    sequence_multiple_per_sp: I64
    pack_multiple_per_sp: I64
    batches: I64
    batch_offsets: Address
    batch_samples: Address
    sequence_tokens_per_rank: I64


@struct
class StepOptions(Struct):
    mode: I32
    solver: I32
    effort: I32
    degrees: I32
    min_sp: I32
    max_sp: I32
    recompute: I32
    min_micro_batches: I32
    max_micro_batches: I32
    micro_batch_multiple: I32
    buckets: I32
    sequence_multiple: I64
    pack_multiple: I64
    longest_tokens: I64
    tokens_per_rank: I64
    time_limit_ms: I64
    max_pack_length: I64
    sequence_multiple_per_sp: I64
    pack_multiple_per_sp: I64
    max_samples: I32
    equal_samples: I32
    sequence_tokens_per_rank: I64
    max_vision: I64


@struct
class GroupsView(Struct):
    groups: I64
    candidates: I64
    tokens_per_step: I64
    thresholds: I64s
    pack_lengths: I64s
    sp: I32s
    recompute: I32s
    packs: I64s
    micro_batches: I64s
    tokens: I64s
    step_ns: I64s
    candidate_ns: I64s


@struct
class PacksView(Struct):
    packs: I64
    samples: I64
    dropped: I64
    pack_offsets: I64s
    pack_groups: I32s
    pack_tokens: I64s
    pack_padded_tokens: I64s
    pack_squares: I64s
    pack_vision: I64s
    sample_indices: U32s
    dropped_indices: U32s
    dropped_reasons: I32s

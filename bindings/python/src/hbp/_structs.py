"""The open structs of include/hbp/*.h, field for field, and the names of their enumerations.

A test compares sizes and offsets with what the C compiler makes of the headers. Pointers are c_void_p: an array's
address goes in as an integer, and whoever makes the call keeps the array alive.
"""

from __future__ import annotations

from ctypes import CFUNCTYPE, POINTER, Structure, c_char_p, c_double, c_int32, c_int64, c_uint32, c_uint64, c_void_p, sizeof


class Open(Structure):
    """A struct whose first field is its size."""

    def __init__(self, **fields):
        super().__init__(**fields)
        self.struct_size = sizeof(type(self))

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """The fields after struct_size."""
        return tuple(name for name, _ in cls._fields_[1:])


class Allocator(Open):
    _fields_ = [
        ("struct_size", c_uint32),
        ("alloc", c_void_p),
        ("resize", c_void_p),
        ("release", c_void_p),
        ("user", c_void_p),
    ]


class Progress(Open):
    _fields_ = [
        ("struct_size", c_uint32),
        ("stage", c_char_p),
        ("done", c_int64),
        ("total", c_int64),
    ]


class ContextOptions(Open):
    _fields_ = [
        ("struct_size", c_uint32),
        ("allocator", c_void_p),
        ("progress", c_void_p),
        ("progress_user", c_void_p),
    ]


class LengthsOptions(Open):
    _fields_ = [
        ("struct_size", c_uint32),
        ("borrow", c_int32),
        ("loss_tokens", c_void_p),
        ("ties", c_void_p),
    ]


class LengthsReadOptions(Open):
    _fields_ = [
        ("struct_size", c_uint32),
        ("format", c_char_p),
        ("column", c_char_p),
        ("count_column", c_char_p),
        ("loss_column", c_char_p),
        ("tie_column", c_char_p),
    ]


class LengthsSummary(Open):
    _fields_ = [
        ("struct_size", c_uint32),
        ("has_ties", c_int32),
        ("samples", c_int64),
        ("tokens", c_int64),
        ("loss_tokens", c_int64),
        ("min_length", c_int64),
        ("max_length", c_int64),
        ("distinct_lengths", c_int64),
        ("overlong_samples", c_int64),
        ("overlong_tokens", c_int64),
        ("digest", c_uint64),
        ("sum_squares", c_double),
    ]


class ModelFields(Open):
    _fields_ = [
        ("struct_size", c_uint32),
        ("mlp", c_int32),
        ("tied_embeddings", c_int32),
        ("learned_positions", c_int32),
        ("layers", c_int32),
        ("dense_layers", c_int32),
        ("hidden", c_int32),
        ("ffn", c_int32),
        ("heads", c_int32),
        ("kv_heads", c_int32),
        ("head_dim", c_int32),
        ("vocab", c_int32),
        ("experts", c_int32),
        ("experts_active", c_int32),
        ("experts_shared", c_int32),
        ("moe_ffn", c_int32),
        ("mla_q_lora", c_int32),
        ("mla_kv_lora", c_int32),
        ("mla_nope_dim", c_int32),
        ("mla_rope_dim", c_int32),
        ("mla_v_dim", c_int32),
        ("qkv_bias", c_int32),
    ]


class ModelSummary(Open):
    _fields_ = [
        ("struct_size", c_uint32),
        ("max_sp", c_int32),
        ("parameters", c_int64),
        ("active_parameters", c_int64),
        ("matmul_parameters", c_int64),
        ("activation_bytes", c_int64),
        ("recomputed_bytes", c_int64),
        ("logits_bytes", c_int64),
        ("forward_flops_per_token", c_double),
        ("forward_flops_per_token_squared", c_double),
    ]


class MachineFields(Open):
    _fields_ = [
        ("struct_size", c_uint32),
        ("nodes", c_int32),
        ("gpus_per_node", c_int32),
        ("domain_gpus", c_int32),
        ("cpu_packages", c_int32),
        ("numa_nodes", c_int32),
        ("cores", c_int32),
        ("processing_units", c_int32),
        ("cpu_memory_bytes", c_int64),
        ("hbm_bytes", c_int64),
        ("hbm_bytes_per_s", c_double),
        ("flops_per_s", c_double),
        ("gemm_efficiency", c_double),
        ("attention_efficiency", c_double),
        ("nvlink_bytes_per_s", c_double),
        ("network_bytes_per_s", c_double),
        ("nvlink_latency_ns", c_double),
        ("network_latency_ns", c_double),
    ]


class CostOptions(Open):
    _fields_ = [
        ("struct_size", c_uint32),
        ("zero_stage", c_int32),
        ("fused_cross_entropy", c_int32),
        ("max_sp", c_int32),
        ("dp_overlap", c_double),
        ("sp_overlap", c_double),
        ("reserve_bytes", c_int64),
        ("pack_overhead_ns", c_int64),
    ]


class CostTerms(Open):
    _fields_ = [
        ("struct_size", c_uint32),
        ("ranks", c_int32),
        ("domain_ranks", c_int32),
        ("layers", c_int32),
        ("ns_per_token", c_double),
        ("ns_per_token_squared", c_double),
        ("recompute_linear", c_double),
        ("recompute_attention", c_double),
        ("recompute_communication", c_double),
        ("pack_ns", c_double),
        ("step_ns", c_double),
        ("static_bytes", c_double),
        ("activation_bytes", c_double),
        ("recomputed_bytes", c_double),
        ("working_bytes", c_double),
        ("logits_bytes", c_double),
        ("sp_buffer_bytes", c_double),
        ("limit_bytes", c_int64),
        ("degrees", c_int32),
        ("degree", c_void_p),
        ("sp_latency_ns", c_void_p),
        ("sp_ns_per_token", c_void_p),
    ]


class Measurements(Open):
    _fields_ = [
        ("struct_size", c_uint32),
        ("count", c_int64),
        ("sp", c_void_p),
        ("recompute", c_void_p),
        ("tokens", c_void_p),
        ("sum_squares", c_void_p),
        ("time_ns", c_void_p),
        ("peak_bytes", c_void_p),
    ]


class FitReport(Open):
    _fields_ = [
        ("struct_size", c_uint32),
        ("terms_fitted", c_int32),
        ("median_time_error", c_double),
        ("p95_time_error", c_double),
        ("max_time_error", c_double),
        ("median_bytes_error", c_double),
        ("max_bytes_error", c_double),
        ("prior_median_time_error", c_double),
    ]


class SpOptions(Open):
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_int32),
        ("tokens_per_step", c_int64),
        ("squares_per_token", c_double),
    ]


class SpChoice(Open):
    _fields_ = [
        ("struct_size", c_uint32),
        ("sp", c_int32),
        ("recompute", c_int32),
        ("reason", c_int32),
        ("micro_batches", c_int64),
        ("pack_ns", c_int64),
        ("step_ns", c_int64),
        ("peak_bytes", c_int64),
        ("limit_bytes", c_int64),
    ]


class GroupsOptions(Open):
    _fields_ = [
        ("struct_size", c_uint32),
        ("mode", c_int32),
        ("max_groups", c_int32),
        ("step_slack", c_int32),
        ("tokens_per_step", c_int64),
        ("max_length", c_int64),
        ("min_length", c_int64),
        ("pack_multiple", c_int64),
    ]


class FillOptions(Open):
    _fields_ = [
        ("struct_size", c_uint32),
        ("mode", c_int32),
        ("effort", c_int32),
        ("max_samples", c_int32),
        ("sequence_multiple", c_int64),
        ("pack_multiple", c_int64),
        ("seed", c_uint64),
        ("epoch", c_uint64),
    ]


class BalanceOptions(Open):
    _fields_ = [
        ("struct_size", c_uint32),
        ("mode", c_int32),
        ("micro_batch_multiple", c_int32),
        ("drop_last", c_int32),
        ("curriculum_steps", c_int64),
        ("tokens_per_step", c_int64),
        ("seed", c_uint64),
        ("epoch", c_uint64),
    ]


class EpochOptions(Open):
    _fields_ = [
        ("struct_size", c_uint32),
        ("mode", c_int32),
        ("over_long", c_int32),
        ("max_groups", c_int32),
        ("micro_batch_multiple", c_int32),
        ("drop_last", c_int32),
        ("max_samples", c_int32),
        ("effort", c_int32),
        ("max_length", c_int64),
        ("tokens_per_step", c_int64),
        ("curriculum_steps", c_int64),
        ("sequence_multiple", c_int64),
        ("pack_multiple", c_int64),
        ("samples_per_step", c_int64),
        ("window_samples", c_int64),
        ("seed", c_uint64),
        ("epoch", c_uint64),
        ("groups", c_void_p),
    ]


class PlanSummary(Open):
    _fields_ = [
        ("struct_size", c_uint32),
        ("ranks", c_int32),
        ("domain_ranks", c_int32),
        ("proven", c_int32),
        ("steps", c_int64),
        ("micro_batches", c_int64),
        ("packs", c_int64),
        ("dummy_packs", c_int64),
        ("samples", c_int64),
        ("dropped", c_int64),
        ("tokens", c_int64),
        ("padded_tokens", c_int64),
        ("loss_tokens", c_int64),
        ("sequence_multiple", c_int64),
        ("pack_multiple", c_int64),
        ("micro_batch_multiple", c_int64),
        ("predicted_ns", c_int64),
        ("first_step", c_int64),
        ("overlong_samples", c_int64),
        ("overlong_tokens", c_int64),
        ("seed", c_uint64),
        ("epoch", c_uint64),
        ("digest", c_uint64),
        ("lengths_digest", c_uint64),
    ]


class PlanSaveOptions(Open):
    _fields_ = [
        ("struct_size", c_uint32),
        ("level", c_int32),
        ("chunk_steps", c_int64),
        ("cost", c_void_p),
        ("note", c_char_p),
    ]


class Report(Open):
    _fields_ = [
        ("struct_size", c_uint32),
        ("ranks", c_int32),
        ("steps", c_int64),
        ("epoch_ns", c_int64),
        ("bound_ns", c_int64),
        ("tokens", c_int64),
        ("peak_bytes", c_int64),
        ("gap", c_double),
        ("idle", c_double),
        ("dbr", c_double),
        ("padding", c_double),
        ("abr", c_double),
        ("abr_paper", c_double),
        ("cr", c_double),
        ("ave_tokens", c_double),
        ("tokens_per_s_per_gpu", c_double),
        ("communication", c_double),
        ("samples_cv", c_double),
        ("mixture_distance", c_double),
    ]


class SimulateOptions(Open):
    _fields_ = [
        ("struct_size", c_uint32),
        ("bound", c_int32),
        ("tokens_per_step", c_int64),
    ]


ProgressFunction = CFUNCTYPE(c_int32, c_void_p, POINTER(Progress))

# What the enumerations are called in Python; the place in the tuple is the value in C.
OVER_LONG = ("error", "drop", "truncate", "split")
GROUPS_MODES = ("optimal", "paper")
FILL_MODES = ("balanced", "tight", "paper")
BALANCE_MODES = ("time", "sorted", "given", "random")
EPOCH_MODES = ("default", "paper")
LOSS = ("token", "local-token", "sample", "sum")
COLLECTIVES = ("all-to-all", "all-gather", "reduce-scatter", "all-reduce")
PROBES = ("this-machine", "xml-file", "synthetic")
MLP = ("gated", "plain")
SP_REASONS = ("feasible", "out-of-memory", "illegal-heads", "too-few-ranks")
ZERO = ("default", "1", "2", "3", "none")
DROPPED = (None, "over-long", "left-over")


def code(names: tuple, value: object, what: str) -> int:
    """The number of a name; a ValueError lists the names."""
    text = str(value).lower().replace("_", "-")
    if text not in names:
        raise ValueError(f"{what} {value!r} is none of {', '.join(repr(name) for name in names)}")
    return names.index(text)

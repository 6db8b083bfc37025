"""The open structs of vision-language balance; see _structs."""

from ._structs import F64, I32, I64, U64, Address, I32s, I64s, Struct, struct

UNLIMITED = 2**63 - 1


@struct
class IterativeFillOptions(Struct):
    mode: I32
    rounds: I32
    effort: I32
    max_samples: I32
    over_long: I32
    max_tokens: I64
    max_vision: I64
    full_tokens: I64
    full_vision: I64
    sequence_multiple: I64
    pack_multiple: I64
    seed: U64
    epoch: U64


@struct
class BudgetsOptions(Struct):
    mode: I32
    samples: I32
    ranks: I32
    rounds: I32
    effort: I32
    max_tokens: I64
    max_vision: I64
    token_multiple: I64
    seed: U64
    most_samples: F64


@struct
class Budgets(Struct):
    """Two budgets and what packs under them come to; shares are in 0..1."""

    considered: I32
    max_vision: I64
    max_tokens: I64
    full_tokens: I64
    packs: I64
    samples_per_pack: F64
    padding: F64
    dist_vision: F64
    dist_tokens: F64
    unused_vision: F64
    unused_tokens: F64
    score: F64

    def __str__(self) -> str:
        return (
            f"{self.max_vision:,} vision units and {self.max_tokens:,} tokens: {self.packs:,} packs of "
            f"{self.samples_per_pack:.2f} samples, DistRatio of vision units {self.dist_vision:.1%}, of "
            f"tokens {self.dist_tokens:.1%}"
        )


@struct
class LayerColumns(Struct):
    count: I32
    forward_ns: Address
    backward_ns: Address
    kind: Address
    parameters: Address
    state_bytes: Address
    activation_bytes: Address
    recomputed_bytes: Address
    working_bytes: Address
    attention_bytes: Address
    attention_ns: Address
    mlp_bytes: Address
    mlp_ns: Address
    recompute_ns: Address
    cut_bytes: Address
    cut_kind: Address
    names: Address  # type: ignore[assignment]


@struct
class VlmFields(Struct):
    """The encoder and the projector of a vision-language model; zero means the default where there is one."""

    vision_mlp: I32
    vision_layers: I32
    vision_hidden: I32
    vision_ffn: I32
    vision_heads: I32
    vision_head_dim: I32
    patch_values: I32
    tokens_per_unit: I32
    attention_tokens: I32
    projected_per_unit: I32
    projector_input: I32
    projector_hidden: I32


@struct
class VlmSummary(Struct):
    """What follows from the fields of a vision-language model."""

    layers: I32
    vision_parameters: I64
    projector_parameters: I64
    language_parameters: I64
    vision_flops_per_unit: F64
    language_flops_per_token: F64
    language_flops_per_token_squared: F64

    def __str__(self) -> str:
        return (
            f"{self.vision_parameters / 1e9:.2f} B vision, {self.projector_parameters / 1e6:.0f} M projector "
            f"and {self.language_parameters / 1e9:.2f} B language parameters in {self.layers} rows of layers"
        )


@struct
class VlmLayersOptions(Struct):
    tensor_parallel: I32
    data_parallel: I32
    zero_stage: I32
    fused_cross_entropy: I32
    vision: F64
    tokens: F64
    squares: F64


@struct
class PipelineOptions(Struct):
    stages: I32
    virtual_stages: I32
    micro_batches: I32
    vision_scale: Address
    token_scale: Address
    token_time_scale: Address
    speed: Address
    limit_bytes: Address
    recompute: Address
    link_bytes_per_s: F64
    link_overlap: F64
    link_latency_ns: I64
    vision_time_scale: Address


@struct
class PartitionOptions(Struct):
    mode: I32
    candidates: I32
    radius: I32
    order: I32
    run: I32


@struct
class PartitionSummary(Struct):
    """What a partition comes to; print it."""

    proven: I32
    micro_batches: I32
    bottleneck: I32
    predicted_ns: I64
    bound_ns: I64
    simulated_ns: I64
    bottleneck_ns: I64
    cut_bytes: I64
    stage_variance: F64
    bubble: F64
    peak_bytes: I64

    def __str__(self) -> str:
        proven = ", the least there is" if self.proven else ""
        return (
            f"predicted {self.predicted_ns / 1e6:,.3f} ms{proven}; {self.simulated_ns / 1e6:,.3f} ms when run "
            f"with {self.micro_batches:,} micro-batches, bubble {self.bubble:.1%}\n"
            f"stage {self.bottleneck} is the slowest, {self.bottleneck_ns / 1e6:,.3f} ms a micro-batch; "
            f"{self.cut_bytes / 2**20:,.1f} MiB over all cuts, peak {self.peak_bytes / 2**30:,.1f} GiB"
        )


@struct
class PartitionCandidateStruct(Struct):
    ranked: I32
    predicted_ns: I64
    simulated_ns: I64
    cut_bytes: I64
    stage_variance: F64


@struct
class PipelineSummary(Struct):
    """A step of a pipeline in numbers; print it."""

    stages: I32
    total_ns: I64
    bound_ns: I64
    peak_bytes: I64
    operations: I64
    bubble: F64
    virtual_stages: I32
    micro_batches: I32
    digest: U64

    def __str__(self) -> str:
        return (
            f"{self.operations:,} operations on {self.stages} stages in {self.total_ns / 1e6:,.3f} ms, no order "
            f"in less than {self.bound_ns / 1e6:,.3f} ms; bubble {self.bubble:.1%}, peak "
            f"{self.peak_bytes / 2**30:,.1f} GiB"
        )


@struct
class RecomputeOptions(Struct):
    mode: I32
    selective: I32
    measured_free_bytes: Address
    measured_vision_bytes: I64
    measured_language_bytes: I64


@struct
class RecomputeReport(Struct):
    """What a choice of recomputed layers comes to; print it. `slack_bytes` is 2**63 - 1 without limits."""

    proven: I32
    recomputed: I32
    selective: I32
    recompute_ns: I64
    saved_ns: I64
    slack_bytes: I64

    def __str__(self) -> str:
        slack = "no limit" if self.slack_bytes == UNLIMITED else f"{self.slack_bytes / 2**30:,.1f} GiB left"
        return (
            f"{self.recomputed} layers recomputed in whole and {self.selective} in part: "
            f"{self.recompute_ns / 1e6:,.3f} ms a micro-batch, {self.saved_ns / 1e6:,.3f} ms less than all; "
            f"{slack} on the fullest stage"
        )


@struct
class VlmOptions(Struct):
    data: I32
    model: I32
    memory: I32
    selective: I32
    tensor_parallel: I32
    pipeline_stages: I32
    virtual_stages: I32
    data_parallel: I32
    micro_batches: I32
    batch_samples: I32
    samples: I32
    zero_stage: I32
    over_long: I32
    modality_order: I32
    keep_order: I32
    rounds: I32
    effort: I32
    fused_cross_entropy: I32
    max_vision: I64
    max_tokens: I64
    reserve_bytes: I64
    layers: Address
    layers_vision: F64
    layers_tokens: F64
    seed: U64
    epoch: U64


@struct
class VlmPlanSummary(Struct):
    """A planned vision-language run in numbers; print it."""

    gpus: I32
    replicas: I32
    stages: I32
    virtual_stages: I32
    micro_batches: I32
    rounds: I32
    recomputed: I32
    selective: I32
    max_vision: I64
    max_tokens: I64
    steps: I64
    samples: I64
    dropped: I64
    epoch_ns: I64
    bound_ns: I64
    peak_bytes: I64
    limit_bytes: I64
    gpu_days: F64
    bubble: F64
    padding: F64
    dist_vision: F64
    dist_tokens: F64
    digest: U64
    packs_bound_ns: I64
    pack_samples: I32

    def __str__(self) -> str:
        lines = [
            f"{self.gpus:,} GPUs: {self.replicas:,} replicas of {self.stages} stages, {self.micro_batches:,} "
            f"micro-batches a step",
            f"{self.samples:,} samples in {self.steps:,} steps, padding {self.padding:.1%}, DistRatio of vision "
            f"units {self.dist_vision:.1%}, of tokens {self.dist_tokens:.1%}",
            f"{self.recomputed} layers recomputed in whole and {self.selective} in part; peak "
            f"{self.peak_bytes / 2**30:,.1f} of {self.limit_bytes / 2**30:,.1f} GiB",
            f"predicted {self.epoch_ns / 1e9:,.3f} s, {self.gpu_days:,.3f} GPU-days, bubble {self.bubble:.1%}; "
            f"no plan takes less than {self.bound_ns / 1e9:,.3f} s, none of these packs less than "
            f"{self.packs_bound_ns / 1e9:,.3f} s; digest {self.digest:016x}",
        ]
        if self.max_tokens:
            lines.insert(
                1, f"packs of at most {self.max_vision:,} vision units and {self.max_tokens:,} tokens"
            )
        if self.dropped:
            lines.append(f"{self.dropped:,} samples dropped")
        return "\n".join(lines)


@struct
class LayersView(Struct):
    layers: I64
    kind: I32s
    cut_kind: I32s
    names: Address
    forward_ns: I64s
    backward_ns: I64s
    parameters: I64s
    state_bytes: I64s
    activation_bytes: I64s
    recomputed_bytes: I64s
    working_bytes: I64s
    attention_bytes: I64s
    attention_ns: I64s
    mlp_bytes: I64s
    mlp_ns: I64s
    recompute_ns: I64s
    cut_bytes: I64s


@struct
class PartitionView(Struct):
    stages: I64
    chunks: I64
    micro_batches: I64
    cuts: I32s
    stage_ns: I64s
    stage_busy_ns: I64s
    stage_bytes: I64s
    order: I32s


@struct
class PipelineRunView(Struct):
    stages: I64
    operations: I64
    stage_busy_ns: I64s
    stage_bytes: I64s
    operation_stages: I32s
    operation_chunks: I32s
    operation_micro_batches: I32s
    operation_directions: I32s
    operation_starts: I64s
    operation_ends: I64s


@struct
class VlmPlanView(Struct):
    stages: I64
    chunks: I64
    layers: I64
    steps: I64
    cuts: I32s
    recompute: I32s
    stage_ns: I64s
    stage_bytes: I64s
    step_ns: I64s

# Made by tests/stubs.py from the library's records; do not edit.
import ctypes
from typing import Any, ClassVar, Mapping, NamedTuple, Optional, TypeVar

from ._choices import MethodFamily

Text = Optional[bytes]
Address = Optional[int]
S = TypeVar("S", bound="Struct")

TYPES: tuple[Any, ...]
COLUMNS: dict[str, str]

class FieldRecord(ctypes.Structure): ...
class ChoiceRecord(ctypes.Structure): ...

class Method(NamedTuple):
    text: str
    paper: str

class Member:
    name: str
    ctype: Any
    column: Any  # Optional[str]
    object: Optional[str]
    choices: Optional[str]
    within: Optional[range]
    is_flag: bool
    text: str
    def names(self) -> dict[str, int]: ...
    def of(self, value: Any) -> Any: ...

class Struct(ctypes.Structure):
    struct_size: int
    _record: ClassVar[dict[str, Member]]
    def __init__(self, **values: Any) -> None: ...
    @classmethod
    def pick(cls: type[S], values: Mapping[str, Any], **others: Any) -> S: ...
    @classmethod
    def names(cls) -> list[str]: ...
    def as_dict(self) -> dict[str, Any]: ...
    def _repr_html_(self) -> str: ...

def bind(library: ctypes.CDLL) -> None: ...
def python_name(c_name: str) -> str: ...
def structs() -> dict[str, str]: ...
def choices(enumeration: str) -> dict[str, int]: ...
def families() -> dict[str, str]: ...
def methods(of: MethodFamily) -> dict[str, Method]: ...
def name_of(enumeration: str, value: int) -> Optional[str]: ...

class Field(Struct):
    type: int
    offset: int
    bytes: int
    name: Text
    declared: Text
    shape: Text
    choices: Text
    text: Text
    is_flag: int
    is_ranged: int
    least: int
    most: int
    least_real: float
    most_real: float

class Choice(Struct):
    value: int
    name: Text
    constant: Text
    text: Text
    paper: Text

class Allocator(Struct):
    alloc: Address
    resize: Address
    release: Address
    user: Address

class Progress(Struct):
    stage: Text
    done: int
    total: int

class Pool(Struct):
    run: Address
    user: Address

class ContextOptions(Struct):
    allocator: Address
    progress: Address
    progress_user: Address
    threads: int
    pool: Address

class Program(Struct):
    columns: int
    rows: int
    objective: Address
    column_lower: Address
    column_upper: Address
    column_type: Address
    column_priority: Address
    row_lower: Address
    row_upper: Address
    row_first: Address
    entry_column: Address
    entry_value: Address
    start: Address

class SolverLimits(Struct):
    poll: Address
    poll_user: Address
    nodes: int
    iterations: int
    time_ms: int
    memory_bytes: int
    gap: float

class SolverAnswer(Struct):
    status: int
    objective: float
    bound: float
    values: Address
    message: Address
    message_bytes: int
    iterations: int

class Solver(Struct):
    solve: Address
    user: Address

class ModelFields(Struct):
    mlp: int
    tied_embeddings: int
    learned_positions: int
    layers: int
    dense_layers: int
    hidden: int
    ffn: int
    heads: int
    kv_heads: int
    head_dim: int
    vocab: int
    experts: int
    experts_active: int
    experts_shared: int
    moe_ffn: int
    mla_q_lora: int
    mla_kv_lora: int
    mla_nope_dim: int
    mla_rope_dim: int
    mla_v_dim: int
    qkv_bias: int

class ModelSummary(Struct):
    max_sp: int
    parameters: int
    active_parameters: int
    matmul_parameters: int
    activation_bytes: int
    recomputed_bytes: int
    logits_bytes: int
    forward_flops_per_token: float
    forward_flops_per_token_squared: float

class MachineFields(Struct):
    nodes: int
    gpus_per_node: int
    domain_gpus: int
    cpu_packages: int
    numa_nodes: int
    cores: int
    processing_units: int
    cpu_memory_bytes: int
    hbm_bytes: int
    hbm_bytes_per_s: float
    flops_per_s: float
    gemm_efficiency: float
    attention_efficiency: float
    nvlink_bytes_per_s: float
    network_bytes_per_s: float
    nvlink_latency_ns: float
    network_latency_ns: float

class MachineCollective(Struct):
    collective: int
    ranks: int
    latency_ns: float
    bytes_per_s: float
    spread: float
    source: Text

class MachineRate(Struct):
    rate: int
    size: int
    per_s: float
    spread: float
    source: Text

class StackFields(Struct):
    fused_cross_entropy: int
    gemm_efficiency: float
    gemm_tokens: float
    attention_efficiency: float
    attention_tokens: float
    forward_attention_efficiency: float
    forward_attention_tokens: float
    elementwise_bytes: float
    logits_traffic_bytes: float
    exchange_passes: float
    recompute_products: float
    recompute_attention: float
    activations: float
    logits_kept_bytes: float
    dp_overlap: float
    sp_overlap: float
    compute_overlap: float
    layer_ns: float

class CostOptions(Struct):
    zero_stage: int
    fused_cross_entropy: int
    max_sp: int
    dp_overlap: float
    sp_overlap: float
    reserve_bytes: int
    pack_overhead_ns: int
    shard_ranks: int
    lockstep_ranks: int
    uneven_micro_batches: int
    stack: Text

class CostTerms(Struct):
    ranks: int
    domain_ranks: int
    layers: int
    ns_per_token: float
    ns_per_token_squared: float
    recompute_linear: float
    recompute_attention: float
    recompute_communication: float
    pack_ns: float
    step_ns: float
    static_bytes: float
    activation_bytes: float
    recomputed_bytes: float
    working_bytes: float
    logits_bytes: float
    sp_buffer_bytes: float
    limit_bytes: int
    degrees: int
    degree: Address
    sp_latency_ns: Address
    sp_ns_per_token: Address
    ns_per_vision: float
    recompute_vision: float
    vision_bytes: float
    lockstep_ranks: int
    uneven_micro_batches: int
    traffic_ns: float
    compute_overlap: float
    least_compute_ns: float

class Measurements(Struct):
    count: int
    sp: Address
    recompute: Address
    tokens: Address
    sum_squares: Address
    time_ns: Address
    peak_bytes: Address
    steps: int
    step_ns: Address

class FitReport(Struct):
    terms_fitted: int
    median_time_error: float
    p95_time_error: float
    max_time_error: float
    median_bytes_error: float
    max_bytes_error: float
    prior_median_time_error: float
    times: int
    held_out_time_error: float
    scaled_time_error: float

class Anchor(Struct):
    sp: int
    recompute: int
    sequence_tokens: int
    sequences_per_micro_batch: int
    micro_batches_per_step: int
    tokens_per_s_per_gpu: float

class PackParts(Struct):
    compute_ns: int
    vision_ns: int
    all_to_all_ns: int
    fixed_ns: int

class TimelineColumns(Struct):
    ranks: int
    count: int
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

class TimelineReport(Struct):
    ranks: int
    packs: int
    steps: int
    median_pack_error: float
    p95_pack_error: float
    max_pack_error: float
    median_step_error: float
    p95_step_error: float
    max_step_error: float
    median_bytes_error: float
    max_bytes_error: float
    measured_ns: int
    predicted_ns: int
    measured_idle: float
    predicted_idle: float

class EpochOptions(Struct):
    method: Text
    tokens_per_step: int
    samples_per_step: int
    batches: int
    batch_offsets: Address
    batch_samples: Address
    window_samples: int
    curriculum_steps: int
    composition: int
    mixture_slack: int
    modality_order: int
    drop_last: int
    micro_batches_per_step: int
    micro_batch_multiple: int
    equal_samples: int
    over_long: int
    max_length: int
    max_pack_length: int
    tokens_per_rank: int
    max_vision: int
    sequence_multiple: int
    pack_multiple: int
    sequence_multiple_per_sp: int
    pack_multiple_per_sp: int
    groups: Address
    max_groups: int
    step_slack: int
    max_samples: int
    min_sp: int
    sequence_tokens_per_rank: int
    effort: int
    threads: int
    seed: int
    epoch: int

class LengthsOptions(Struct):
    borrow: int
    loss_tokens: Address
    links: Address
    vision: Address
    modalities: Address
    shifted_loss: int

class LengthsColumns(Struct):
    loss_tokens: Address
    links: Address
    vision: Address
    modalities: Address
    shifted_loss: int

class LengthsSummary(Struct):
    has_links: int
    samples: int
    tokens: int
    loss_tokens: int
    min_length: int
    max_length: int
    distinct_lengths: int
    overlong_samples: int
    overlong_tokens: int
    digest: int
    sum_squares: float
    vision: int
    min_vision: int
    max_vision: int
    modalities: int
    shifted_loss: int
    is_histogram: int
    column: Text

class LengthsView(Struct):
    distinct_lengths: int
    histogram_lengths: Address
    histogram_counts: Address

class SpOptions(Struct):
    tokens_per_step: int
    squares_per_token: float

class SpChoice(Struct):
    sp: int
    recompute: int
    reason: int
    micro_batches: int
    pack_ns: int
    step_ns: int
    peak_bytes: int
    limit_bytes: int

class GroupsOptions(Struct):
    method: Text
    max_groups: int
    step_slack: int
    tokens_per_step: int
    max_length: int
    min_length: int
    pack_multiple: int
    sequence_multiple: int
    max_pack_length: int
    tokens_per_rank: int

class GroupsView(Struct):
    groups: int
    candidates: int
    tokens_per_step: int
    thresholds: Address
    pack_lengths: Address
    sp: Address
    recompute: Address
    packs: Address
    micro_batches: Address
    tokens: Address
    step_ns: Address
    candidate_ns: Address
    candidate_texts: Address

class FillOptions(Struct):
    method: Text
    effort: int
    max_samples: int
    sequence_multiple: int
    pack_multiple: int
    seed: int
    epoch: int

class PacksView(Struct):
    packs: int
    samples: int
    dropped: int
    pack_offsets: Address
    pack_groups: Address
    pack_tokens: Address
    pack_padded_tokens: Address
    pack_squares: Address
    pack_vision: Address
    sample_indices: Address
    dropped_indices: Address
    dropped_reasons: Address
    groups: int
    group_bounds: Address

class BalanceOptions(Struct):
    drop_last: int
    method: Text
    tokens_per_step: int
    curriculum_steps: int
    micro_batch_multiple: int
    modality_order: int
    seed: int
    epoch: int

class IterativeFillOptions(Struct):
    method: Text
    max_tokens: int
    max_vision: int
    full_tokens: int
    full_vision: int
    over_long: int
    max_samples: int
    sequence_multiple: int
    pack_multiple: int
    rounds: int
    effort: int
    seed: int
    epoch: int

class BudgetsOptions(Struct):
    method: Text
    samples: int
    ranks: int
    rounds: int
    effort: int
    max_tokens: int
    max_vision: int
    token_multiple: int
    seed: int
    most_samples: float

class Budgets(Struct):
    considered: int
    max_vision: int
    max_tokens: int
    full_tokens: int
    packs: int
    samples_per_pack: float
    padding: float
    dist_vision: float
    dist_tokens: float
    unused_vision: float
    unused_tokens: float
    score: float

class PartitionOptions(Struct):
    over_long: int
    parts: int
    min_parts: int
    multiple_of: int
    capacity: int
    max_samples: int
    equal_count: int
    allow_empty: int
    effort: int
    weights: Address
    linear: int
    square: int
    links: Address
    classes: Address

class PartitionView(Struct):
    parts: int
    samples: int
    dropped: int
    least_parts: int
    heaviest: int
    bound: int
    part_offsets: Address
    part_tokens: Address
    part_weights: Address
    sample_ids: Address
    sample_first_tokens: Address
    sample_tokens: Address
    dropped_ids: Address

class PatternPlanView(Struct):
    groups: int
    patterns: int
    runs: int
    distinct_lengths: int
    group_pack_lengths: Address
    group_sp: Address
    group_recompute: Address
    group_first_patterns: Address
    pattern_offsets: Address
    pattern_first_packs: Address
    pattern_ns: Address
    pattern_tokens: Address
    pattern_padded_tokens: Address
    pattern_squares: Address
    pattern_bytes: Address
    run_lengths: Address
    run_numbers: Address
    run_firsts: Address
    length_tokens: Address
    length_samples: Address

class LayerColumns(Struct):
    count: int
    forward_ns: Address
    backward_ns: Address
    type: Address
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
    cut_type: Address
    names: Address  # type: ignore[assignment]

class LayersView(Struct):
    layers: int
    type: Address
    cut_type: Address
    names: Address  # type: ignore[assignment]
    forward_ns: Address
    backward_ns: Address
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

class PipelineOptions(Struct):
    stages: int
    virtual_stages: int
    micro_batches: int
    vision_scale: Address
    token_scale: Address
    token_time_scale: Address
    speed: Address
    limit_bytes: Address
    recompute: Address
    link_bytes_per_s: float
    link_overlap: float
    link_latency_ns: int
    vision_time_scale: Address

class LayerPartitionOptions(Struct):
    method: Text
    candidates: int
    radius: int
    order: int
    run: int

class LayerPartitionSummary(Struct):
    proven: int
    micro_batches: int
    bottleneck: int
    predicted_ns: int
    bound_ns: int
    simulated_ns: int
    bottleneck_ns: int
    cut_bytes: int
    stage_variance: float
    bubble: float
    peak_bytes: int

class LayerPartitionView(Struct):
    stages: int
    chunks: int
    micro_batches: int
    cuts: Address
    stage_ns: Address
    stage_busy_ns: Address
    stage_bytes: Address
    order: Address
    candidates: int
    candidate_cuts: Address
    candidate_ranked: Address
    candidate_predicted_ns: Address
    candidate_simulated_ns: Address
    candidate_cut_bytes: Address
    candidate_variance: Address

class PipelineSummary(Struct):
    stages: int
    total_ns: int
    bound_ns: int
    peak_bytes: int
    operations: int
    bubble: float
    virtual_stages: int
    micro_batches: int
    digest: int

class PipelineRunView(Struct):
    stages: int
    operations: int
    stage_busy_ns: Address
    stage_bytes: Address
    operation_stages: Address
    operation_chunks: Address
    operation_micro_batches: Address
    operation_directions: Address
    operation_starts: Address
    operation_ends: Address

class RecomputeOptions(Struct):
    selective: int
    method: Text
    measured_free_bytes: Address
    measured_vision_bytes: int
    measured_language_bytes: int

class RecomputeReport(Struct):
    proven: int
    recomputed: int
    selective: int
    recompute_ns: int
    saved_ns: int
    slack_bytes: int

class PlanSummary(Struct):
    ranks: int
    domain_ranks: int
    complete: int
    steps: int
    micro_batches: int
    packs: int
    padding_packs: int
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
    bound_ns: int
    gap: float
    vision: int
    modalities: int
    composition: int
    proven: int
    samples_per_step: int
    tokens_per_step: int
    sequence_multiple_per_sp: int
    pack_multiple_per_sp: int
    hierarchy_ns: int
    mixture_ns: int
    lockstep_ranks: int
    free_bound_ns: int
    shifted_loss: int
    epoch_steps: int

class PlanView(Struct):
    steps: int
    micro_batches: int
    packs: int
    samples: int
    dropped: int
    step_offsets: Address
    step_ns: Address
    step_loss_tokens: Address
    step_samples: Address
    step_tokens: Address
    micro_batch_offsets: Address
    micro_batch_ns: Address
    micro_batch_modalities: Address
    pack_offsets: Address
    pack_ranks: Address
    pack_sp: Address
    pack_recompute: Address
    pack_capacity: Address
    pack_tokens: Address
    pack_padded_tokens: Address
    pack_squares: Address
    pack_loss_tokens: Address
    pack_ns: Address
    pack_bytes: Address
    pack_vision: Address
    pack_vision_capacity: Address
    sample_ids: Address
    sample_tokens: Address
    sample_first_tokens: Address
    sample_loss_tokens: Address
    sample_vision: Address
    sample_modalities: Address
    dropped_ids: Address
    dropped_reasons: Address
    dropped_first_tokens: Address
    dropped_tokens: Address

class RankPack(Struct):
    sp: int
    first_rank: int
    sp_rank: int
    recompute: int
    is_padding: int
    pack: int
    first_sample: int
    samples: int
    tokens: int
    padded_tokens: int
    loss_tokens: int
    vision: int
    modalities: int

class Report(Struct):
    ranks: int
    steps: int
    epoch_ns: int
    bound_ns: int
    tokens: int
    peak_bytes: int
    gap: float
    idle: float
    dbr: float
    padding: float
    abr: float
    abr_paper: float
    cr: float
    ave_tokens: float
    tokens_per_s_per_gpu: float
    communication: float
    samples_cv: float
    mixture_distance: float
    vision: int
    dist_vision: float
    dist_tokens: float
    vision_padding: float
    step_samples_p5: int
    step_samples_median: int
    step_samples_p95: int
    step_tokens_p5: int
    step_tokens_median: int
    step_tokens_p95: int

class SimulateOptions(Struct):
    no_bound: int
    tokens_per_step: int

class StepOptions(Struct):
    method: Text
    effort: int
    exact: int
    any_degree: int
    min_sp: int
    max_sp: int
    recompute: int
    min_micro_batches: int
    max_micro_batches: int
    micro_batch_multiple: int
    equal_samples: int
    max_samples: int
    buckets: int
    max_pack_length: int
    tokens_per_rank: int
    max_vision: int
    sequence_multiple: int
    pack_multiple: int
    sequence_multiple_per_sp: int
    pack_multiple_per_sp: int
    longest_tokens: int
    sequence_tokens_per_rank: int
    time_limit_ms: int

class StepperOptions(Struct):
    depth: int
    wait: int

class StepperSummary(Struct):
    depth: int
    submitted: int
    planned: int
    taken: int
    waited: int
    kept_bytes: int
    digest: int

class Communicator(Struct):
    sp: int
    first_rank: int
    color: int
    index: int

class Operator(Struct):
    profile: int
    name: Text
    type: Text
    task: Text
    parameters: Text
    batch: int
    sequence: int
    width: int
    degrees: int
    least_gpus: int
    split: int
    state_bytes: int
    sharded_bytes: int
    activation_bytes: int
    output_bytes: int
    gradient_bytes: int

class GraphView(Struct):
    operators: int
    edges: int
    profiles: int
    tasks: int
    parameters: int
    operator_tasks: Address
    operator_parameters: Address
    task_names: Address
    parameter_names: Address
    edge_from: Address
    edge_to: Address
    edge_bytes: Address
    profile_offsets: Address
    point_gpus: Address
    point_ns: Address

class TaskSummary(Struct):
    gpus: int
    method: Text
    placement_method: Text
    domain_gpus: int
    operators: int
    meta_ops: int
    levels: int
    waves: int
    slices: int
    groups: int
    tasks: int
    parameters: int
    proven: int
    makespan_ns: int
    bound_ns: int
    critical_path_ns: int
    area_ns: int
    relaxed_ns: int
    flow_bytes: int
    moved_bytes: int
    crossing_bytes: int
    limit_bytes: int
    peak_bytes: int
    kept_bytes: int
    fetched_bytes: int
    gap: float
    idle: float
    digest: int

class TaskScheduleView(Struct):
    meta_ops: int
    operators_total: int
    levels: int
    waves: int
    slices: int
    groups: int
    group_ranks_total: int
    parameters: int
    ranks: int
    meta_op_offsets: Address
    operators: Address
    meta_op_levels: Address
    meta_op_tasks: Address
    level_ns: Address
    wave_offsets: Address
    slice_meta_ops: Address
    slice_firsts: Address
    slice_operators: Address
    slice_gpus: Address
    slice_groups: Address
    slice_starts: Address
    slice_ends: Address
    group_offsets: Address
    group_ranks: Address
    parameter_groups: Address
    rank_busy_ns: Address
    rank_bytes: Address
    tasks: int
    meta_op_names: Address
    task_names: Address
    parameter_names: Address

class TasksOptions(Struct):
    effort: int
    method: Text
    placement_method: Text
    reserve_bytes: int
    limit_bytes: int
    previous: Address
    seed: int

class TaskRunOptions(Struct):
    barriers: int
    free_transfers: int
    free_gradients: int

class TaskRunSummary(Struct):
    gpus: int
    total_ns: int
    slices_ns: int
    transfer_ns: int
    gradient_ns: int
    flow_bytes: int
    moved_bytes: int
    crossing_bytes: int
    peak_bytes: int
    idle: float
    schedule_digest: int
    digest: int

class TaskRunView(Struct):
    slices: int
    slice_starts: Address
    slice_ends: Address

class VlmFields(Struct):
    vision_mlp: int
    vision_layers: int
    vision_hidden: int
    vision_ffn: int
    vision_heads: int
    vision_head_dim: int
    patch_values: int
    tokens_per_unit: int
    attention_tokens: int
    projected_per_unit: int
    projector_input: int
    projector_hidden: int

class VlmSummary(Struct):
    layers: int
    vision_parameters: int
    projector_parameters: int
    language_parameters: int
    vision_flops_per_unit: float
    language_flops_per_token: float
    language_flops_per_token_squared: float

class VlmLayersOptions(Struct):
    tensor_parallel: int
    data_parallel: int
    zero_stage: int
    fused_cross_entropy: int
    vision: float
    tokens: float
    squares: float
    stack: Text

class VlmOptions(Struct):
    rounds: int
    data_method: Text
    partition_method: Text
    recompute_method: Text
    tensor_parallel: int
    pipeline_stages: int
    virtual_stages: int
    data_parallel: int
    micro_batches: int
    batch_samples: int
    samples: int
    over_long: int
    max_vision: int
    max_tokens: int
    modality_order: int
    keep_order: int
    selective: int
    zero_stage: int
    fused_cross_entropy: int
    effort: int
    reserve_bytes: int
    layers: Address
    layers_vision: float
    layers_tokens: float
    seed: int
    epoch: int
    stack: Text

class VlmPlanSummary(Struct):
    gpus: int
    replicas: int
    stages: int
    virtual_stages: int
    micro_batches: int
    rounds: int
    recomputed: int
    selective: int
    max_vision: int
    max_tokens: int
    steps: int
    samples: int
    dropped: int
    epoch_ns: int
    bound_ns: int
    peak_bytes: int
    limit_bytes: int
    gpu_days: float
    bubble: float
    padding: float
    dist_vision: float
    dist_tokens: float
    digest: int
    packs_bound_ns: int
    pack_samples: int

class VlmPlanView(Struct):
    stages: int
    chunks: int
    layers: int
    steps: int
    cuts: Address
    recompute: Address
    stage_ns: Address
    stage_bytes: Address
    step_ns: Address

class LengthsLoadOptions(Struct):
    format: Text
    column: Text
    count_column: Text
    loss_column: Text
    link_column: Text
    vision_column: Text
    modality_column: Text
    vision_path: Text
    shifted_loss: int

class CostFileOptions(Struct):
    model: Text
    machine: Text
    note: Text

class PlanSaveOptions(Struct):
    level: int
    chunk_steps: int
    cost: Address
    note: Text

class TraceOptions(Struct):
    first_step: int
    steps: int
    timeline: Address
    cost: Address

"""hbp: which samples share a pack, which packs share a step, on which GPUs, with how much sequence
parallelism and recomputation.

    plan = hbp.plan(lengths, model="llama-3.1-8b", machine="h100:4", max_length=131072)
    for pack in plan.step(17).for_rank(rank):
        pack.ids, pack.cu_seqlens, pack.sp, pack.recompute, pack.loss_tokens
"""

from ._context import Progress, set_threads
from ._native import lib as _lib
from ._records import (
    FitReport,
    MachineFields,
    Method,
    ModelFields,
    ModelSummary,
    PackParts,
    StackFields,
    StepperSummary,
    TimelineReport,
    VlmFields,
    methods,
)
from ._results import (
    Budgets,
    Communicator,
    LengthsSummary,
    LayerPartitionSummary,
    PipelineSummary,
    PlanSummary,
    RecomputeReport,
    Report,
    SpChoice,
    TaskRunSummary,
    TaskSummary,
    VlmPlanSummary,
    VlmSummary,
)
from .cost import Cost, CostTerms, choose_sp, list_sp_choices, read_stack
from .epoch import balance_attention, plan_epoch
from .errors import (
    CancelledError,
    FormatError,
    HbpError,
    InfeasibleError,
    InternalError,
    InvalidError,
    MissingFileError,
    OutOfMemory,
    SolverError,
    SystemFailure,
    TooLargeError,
    VersionError,
)
from .graph import Edge, Graph, Operator, Profile
from .groups import Groups, plan_groups
from .layers import Layers
from .lengths import Lengths, LengthsBuilder
from .machine import Collective, Machine, Rate
from .model import Model
from .packs import Packs, greedy_fill
from .partitions import Partition, partition
from .patterns import LengthIndex, PatternPlan, plan_patterns
from .pipeline import (
    MicroBatchOrder,
    LayerPartition,
    LayerPartitionCandidate,
    PipelineRun,
    order_micro_batches,
    partition_layers,
    simulate_pipeline,
)
from .plan_file import PlanFile
from .plans import MicroBatch, Pack, Plan, Step
from .quick import plan
from .recompute import LayerBytes, RecomputeChoice, choose_recompute, fit_layer_bytes
from .report import bound_epoch, simulate
from .rest import Rest
from .step import plan_step
from .stepper import Stepper, list_communicators
from .tasks import TaskRun, TaskSchedule, TaskSlice, plan_tasks, simulate_tasks
from .timeline import Timeline
from .vision import choose_budgets, iterative_fill
from .vlm import Vlm
from .vlm_plan import VlmPlan, plan_vlm
from . import torch

__version__: str = _lib.hbp_version_string().decode()

__all__ = [
    "Budgets",
    "CancelledError",
    "Collective",
    "Communicator",
    "Cost",
    "CostTerms",
    "Edge",
    "FitReport",
    "FormatError",
    "Graph",
    "Groups",
    "HbpError",
    "InfeasibleError",
    "InternalError",
    "InvalidError",
    "LayerBytes",
    "Layers",
    "LengthIndex",
    "Lengths",
    "LengthsBuilder",
    "LengthsSummary",
    "Machine",
    "MachineFields",
    "Method",
    "MicroBatch",
    "MicroBatchOrder",
    "MissingFileError",
    "Model",
    "ModelFields",
    "ModelSummary",
    "Operator",
    "OutOfMemory",
    "Pack",
    "PackParts",
    "Packs",
    "Partition",
    "LayerPartition",
    "LayerPartitionCandidate",
    "LayerPartitionSummary",
    "PatternPlan",
    "PipelineRun",
    "PipelineSummary",
    "Plan",
    "PlanFile",
    "PlanSummary",
    "Profile",
    "Progress",
    "Rate",
    "RecomputeChoice",
    "RecomputeReport",
    "Report",
    "Rest",
    "SolverError",
    "SpChoice",
    "StackFields",
    "Step",
    "Stepper",
    "StepperSummary",
    "SystemFailure",
    "TaskRun",
    "TaskRunSummary",
    "TaskSchedule",
    "TaskSlice",
    "TaskSummary",
    "Timeline",
    "TimelineReport",
    "TooLargeError",
    "VersionError",
    "Vlm",
    "VlmFields",
    "VlmPlan",
    "VlmPlanSummary",
    "VlmSummary",
    "balance_attention",
    "bound_epoch",
    "choose_budgets",
    "choose_recompute",
    "choose_sp",
    "fit_layer_bytes",
    "greedy_fill",
    "iterative_fill",
    "list_communicators",
    "list_sp_choices",
    "methods",
    "order_micro_batches",
    "partition",
    "partition_layers",
    "plan",
    "plan_epoch",
    "plan_groups",
    "plan_patterns",
    "plan_step",
    "plan_tasks",
    "plan_vlm",
    "read_stack",
    "set_threads",
    "simulate",
    "simulate_pipeline",
    "simulate_tasks",
    "torch",
]

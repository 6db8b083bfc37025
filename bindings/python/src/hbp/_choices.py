"""What options that are choices may be, for type checkers: EpochMethod is what `method` of EpochOptions may.
Made by tests/stubs.py from the library's records; do not edit."""

from typing import Literal

BalanceMethod = Literal["time", "sorted", "given", "random", "vision"]
BudgetsMethod = Literal["plane", "line"]
CollectiveName = Literal["all-to-all", "all-gather", "reduce-scatter", "all-reduce"]
DegreesName = Literal["divisors", "profiled"]
EpochComposition = Literal["auto", "random", "stratified", "hierarchy"]
EpochMethod = Literal[
    "search",
    "hbp",
    "patterns",
    "no-packing",
    "sorted",
    "next-fit",
    "first-fit-decreasing",
    "best-fit-decreasing",
    "isf",
    "spfhp",
    "homogeneous-sp",
    "random",
    "first-fit-shuffled",
    "flexsp",
    "hybrid-cp",
    "dynamic-cp",
]
EpochOverLong = Literal["error", "drop", "truncate", "split"]
FillMethod = Literal["balanced", "tight", "hbp"]
GroupsMethod = Literal["optimal", "hbp"]
IterativeFillMethod = Literal["vector", "isf"]
IterativeFillOverLong = Literal["error", "drop"]
LayerPartitionMethod = Literal["optimal", "balanced", "parameters", "uniform", "omnibal"]
MethodFamily = Literal[
    "balance",
    "budgets",
    "epoch",
    "fill",
    "groups",
    "iterative-fill",
    "layer-partition",
    "placement",
    "recompute",
    "step",
    "tasks",
    "vlm-data",
]
PartitionOverLong = Literal["error", "drop", "truncate", "split", "alone"]
RateName = Literal["gemm", "attention", "copy"]
RecomputeMethod = Literal["optimal", "omnibal", "all", "none"]
StepMethod = Literal["search", "flexsp", "static-sp", "homogeneous-sp", "hybrid-cp", "dynamic-cp"]
StepRecompute = Literal["auto", "none", "all"]
TasksMethod = Literal["overlap", "spindle", "sequential", "uniform", "optimus", "distmm"]
TasksPlacementMethod = Literal["flows", "spindle", "sequential"]
VlmDataMethod = Literal["packed", "isf", "random", "grouped", "sorted"]
VlmOverLong = Literal["error", "drop"]
VlmPartitionMethod = Literal["optimal", "balanced", "parameters", "uniform", "omnibal"]
VlmRecomputeMethod = Literal["optimal", "omnibal", "all", "none"]

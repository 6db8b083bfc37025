"""The shared libraries: where they are, and the types of every function of their headers. libhbp must be
there; without libhbp-io its functions, those of files and probes, raise an ImportError that says so.

ctypes.CDLL releases the interpreter lock around each call. tests/test_abi.py compares DECLARATIONS and
IO_DECLARATIONS with the headers."""

from __future__ import annotations

import ctypes
import functools
import itertools
import os
import sys
from ctypes import POINTER, c_char_p, c_double, c_int32, c_int64, c_uint32, c_uint64, c_void_p
from pathlib import Path
from typing import Any, Union

from . import _records as s

ABI_VERSION = 0
NAMES = {"darwin": "libhbp.0.dylib", "win32": "hbp.dll"}


def candidates() -> list[str]:
    """Where the library is: in $HBP_LIBRARY when that is set, else in the package, else on the system."""
    named = os.environ.get("HBP_LIBRARY")
    if named:
        return [named]
    packaged = Path(__file__).with_name(NAMES.get(sys.platform, "libhbp.so.0"))
    if packaged.exists():
        return [str(packaged)]
    import ctypes.util  # runs other programs, and loads what does

    system = ctypes.util.find_library("hbp")
    return [system] if system else []


def load() -> ctypes.CDLL:
    """Loads the first candidate; ImportError says what was tried or which version was met."""
    paths = candidates()
    if not paths:
        raise ImportError("libhbp is neither in the package nor on the system; name it in HBP_LIBRARY")
    try:
        library = ctypes.CDLL(paths[0])
    except OSError as error:
        raise ImportError(f"cannot load libhbp from {paths[0]}: {error}") from error
    try:
        library.hbp_version_abi.restype = c_uint32
        library.hbp_version_abi.argtypes = []
        abi = library.hbp_version_abi()
    except AttributeError:
        raise ImportError(f"{paths[0]} is not libhbp: it has no hbp_version_abi") from None
    if abi != ABI_VERSION:
        raise ImportError(f"libhbp at {paths[0]} has ABI version {abi}; this package needs {ABI_VERSION}")
    return library


def load_io(library: ctypes.CDLL) -> Union[ctypes.CDLL, str]:
    """libhbp-io from $HBP_IO_LIBRARY, or from beside libhbp; or why it is not there. It loads only with the
    libhbp of its own release."""
    named = os.environ.get("HBP_IO_LIBRARY")
    path = Path(library._name)
    beside = path.with_name(path.name.replace("hbp", "hbp-io", 1))
    if not named and path.parent != Path(".") and not beside.exists():
        if path.parent == Path(__file__).parent:  # pyproject.toml lets a package be built without
            return (
                f"there is no {beside}: this package was built from source where zlib or expat had no headers;"
                " install those, then `pip install --force-reinstall --no-cache-dir hbp`"
            )
        return f"there is no {beside}; name it in HBP_IO_LIBRARY"
    try:
        return ctypes.CDLL(named or str(beside))
    except OSError as error:
        if named:
            raise ImportError(f"cannot load libhbp-io from {named}: {error}") from error
        return f"cannot load it: {error}"


lib = load()
s.bind(lib)  # the declarations below name structs


class Opaque(c_void_p):
    """A pointer to an object of the library. Only Python objects that hold one of the same type convert to
    it, so that swapped arguments are a TypeError and not a crash."""

    @classmethod
    def from_param(cls, value: Any) -> Any:
        if value is None:
            return None
        if getattr(value, "_opaque", None) is not cls:
            raise TypeError(f"expected hbp.{cls.__name__}, got {type(value).__name__}")
        return c_void_p(value._handle.pointer)


class Context(Opaque):
    pass


class Lengths(Opaque):
    pass


class LengthsBuilder(Opaque):
    pass


class Model(Opaque):
    pass


class Machine(Opaque):
    pass


class Cost(Opaque):
    pass


class Groups(Opaque):
    pass


class Packs(Opaque):
    pass


class Plan(Opaque):
    pass


class PlanFile(Opaque):
    pass


class Stepper(Opaque):
    pass


class Layers(Opaque):
    pass


class Vlm(Opaque):
    pass


class LayerPartition(Opaque):
    pass


class Partition(Opaque):
    pass


class PipelineRun(Opaque):
    pass


class VlmPlan(Opaque):
    pass


class Graph(Opaque):
    pass


class TaskSchedule(Opaque):
    pass


class TaskRun(Opaque):
    pass


class Timeline(Opaque):
    pass


class LengthIndex(Opaque):
    pass


class LengthIndexBuilder(Opaque):
    pass


class PatternPlan(Opaque):
    pass


# Numbers in C arrays are passed and returned as addresses; results of one value through POINTERs.
Status = Int32 = c_int32
Int64, UInt32, UInt64 = c_int64, c_uint32, c_uint64
Double, Text = c_double, c_char_p
Array = c_void_p
Out = POINTER(c_void_p)
Count = POINTER(c_int64)


def _to(struct: Any) -> Any:
    return POINTER(struct)


# name: (result, arguments) of libhbp; comments name subjects.
DECLARATIONS: dict[str, tuple[Any, list[Any]]] = {
    # version.h, status.h
    "hbp_version_string": (Text, []),
    "hbp_version_abi": (UInt32, []),
    "hbp_status_name": (Text, [Status]),
    "hbp_status_text": (Text, [Status]),
    # records
    "hbp_record_get_struct_name": (Text, [Int64]),
    "hbp_record_get_field": (Status, [Text, Int64, _to(s.Field)]),
    "hbp_record_get_choice": (Status, [Text, Int64, _to(s.Choice)]),
    # context.h
    "hbp_context_create": (Status, [_to(s.ContextOptions), Out]),
    "hbp_context_free": (None, [Context]),
    "hbp_context_message": (Text, [Context]),
    "hbp_context_cancel": (None, [Context]),
    "hbp_read_quantity": (Status, [Context, Text, Text, _to(Double)]),
    # solver.h
    "hbp_context_set_solver": (Status, [Context, _to(s.Solver)]),
    # lengths.h
    "hbp_lengths_create_u32": (Status, [Context, Array, Int64, _to(s.LengthsOptions), Out]),
    "hbp_lengths_create_i32": (Status, [Context, Array, Int64, _to(s.LengthsOptions), Out]),
    "hbp_lengths_create_i64": (Status, [Context, Array, Int64, _to(s.LengthsOptions), Out]),
    "hbp_lengths_create_histogram": (Status, [Context, Array, Array, Int64, Out]),
    "hbp_lengths_builder_create": (Status, [Context, Out]),
    "hbp_lengths_builder_append": (
        Status,
        [Context, LengthsBuilder, Array, _to(s.LengthsColumns), Int64],
    ),
    "hbp_lengths_builder_finish": (Status, [Context, LengthsBuilder, Out]),
    "hbp_lengths_builder_free": (None, [LengthsBuilder]),
    "hbp_lengths_limit": (Status, [Context, Lengths, Int64, Int32, Out]),
    "hbp_lengths_free": (None, [Lengths]),
    "hbp_lengths_get_summary": (Status, [Context, Lengths, _to(s.LengthsSummary)]),
    "hbp_lengths_get_view": (Status, [Lengths, _to(s.LengthsView)]),
    "hbp_lengths_get_length": (Int64, [Lengths, Int64]),
    "hbp_lengths_get_vision": (Int64, [Lengths, Int64]),
    "hbp_lengths_get_modality": (Int32, [Lengths, Int64]),
    # model.h
    "hbp_model_create": (Status, [Context, _to(s.ModelFields), Out]),
    "hbp_model_create_preset": (Status, [Context, Text, Out]),
    "hbp_model_create_variant": (Status, [Context, Model, Text, Out]),
    "hbp_preset_get_name": (Text, [Text, Int64]),
    "hbp_model_free": (None, [Model]),
    "hbp_model_get_name": (Text, [Model]),
    "hbp_model_get_fields": (Status, [Context, Model, _to(s.ModelFields)]),
    "hbp_model_get_summary": (Status, [Context, Model, _to(s.ModelSummary)]),
    "hbp_anchor_read": (Status, [Context, Text, _to(s.Anchor)]),
    "hbp_cost_anchor": (Status, [Context, Cost, _to(s.Anchor), Out]),
    "hbp_stack_read": (Status, [Context, Text, Model, Machine, _to(s.StackFields)]),
    "hbp_model_is_sp_legal": (Int32, [Model, Int32]),
    # machine.h
    "hbp_machine_create": (Status, [Context, _to(s.MachineFields), Out]),
    "hbp_machine_create_preset": (Status, [Context, Text, Out]),
    "hbp_machine_set_collective": (Status, [Context, Machine, _to(s.MachineCollective)]),
    "hbp_machine_fit_collective": (Status, [Context, Machine, Int32, Int32, Array, Array, Int64, Text]),
    "hbp_machine_set_fields": (Status, [Context, Machine, Text]),
    "hbp_machine_set_field": (Status, [Context, Machine, Text, Double, Text]),
    "hbp_machine_set_rate": (Status, [Context, Machine, _to(s.MachineRate)]),
    "hbp_machine_get_rate": (Int32, [Machine, Int64, _to(s.MachineRate)]),
    "hbp_machine_set_name": (Status, [Context, Machine, Text]),
    "hbp_machine_free": (None, [Machine]),
    "hbp_machine_get_name": (Text, [Machine]),
    "hbp_machine_get_fields": (Status, [Context, Machine, _to(s.MachineFields)]),
    "hbp_machine_get_source": (Text, [Machine, Text]),
    "hbp_machine_get_collective": (Int32, [Machine, Int32, Int32, _to(s.MachineCollective)]),
    # cost.h
    "hbp_cost_create": (Status, [Context, Model, Machine, _to(s.CostOptions), Out]),
    "hbp_cost_create_terms": (Status, [Context, _to(s.CostTerms), Out]),
    "hbp_cost_create_plain": (Status, [Context, Int32, Out]),
    "hbp_cost_get_terms": (Status, [Context, Cost, _to(s.CostTerms)]),
    "hbp_cost_get_source": (Text, [Cost, Text]),
    "hbp_cost_fit": (Status, [Context, Cost, _to(s.Measurements), Out, _to(s.FitReport)]),
    "hbp_cost_get_model_name": (Text, [Cost]),
    "hbp_cost_get_machine_name": (Text, [Cost]),
    "hbp_cost_free": (None, [Cost]),
    "hbp_cost_predict_pack_ns": (Int64, [Cost, Int32, Int32, Int64, Double, Int64]),
    "hbp_cost_predict_pack_parts": (Status, [Context, Cost, Int32, Int32, Int64, Double, Int64, _to(s.PackParts)]),
    "hbp_cost_predict_pack_bytes": (Int64, [Cost, Int32, Int32, Int64, Int64]),
    "hbp_cost_predict_capacity": (Int64, [Cost, Int32, Int32]),
    "hbp_cost_predict_recompute": (Int32, [Cost, Int32, Int64]),
    # sp.h
    "hbp_choose_sp": (Status, [Context, Cost, Int64, _to(s.SpOptions), _to(s.SpChoice)]),
    "hbp_list_sp_choices": (
        Status,
        [Context, Cost, Int64, _to(s.SpOptions), _to(s.SpChoice), UInt32, Int64, Count],
    ),
    # groups.h
    "hbp_plan_groups": (Status, [Context, Lengths, Cost, _to(s.GroupsOptions), Out]),
    "hbp_groups_create": (Status, [Context, Cost, Int64, Array, Array, Array, Int64, Out]),
    "hbp_groups_free": (None, [Groups]),
    "hbp_groups_get_view": (Status, [Groups, _to(s.GroupsView)]),
    # packs.h
    "hbp_greedy_fill": (Status, [Context, Lengths, Groups, _to(s.FillOptions), Out]),
    "hbp_packs_create": (
        Status,
        [Context, Lengths, Groups, Int64, Array, Array, Array, _to(s.FillOptions), Out],
    ),
    "hbp_packs_free": (None, [Packs]),
    "hbp_packs_get_view": (Status, [Packs, _to(s.PacksView)]),
    # epoch.h
    "hbp_balance_attention": (Status, [Context, Packs, Groups, Cost, _to(s.BalanceOptions), Out]),
    "hbp_plan_epoch": (Status, [Context, Lengths, Cost, _to(s.EpochOptions), Out]),
    "hbp_plan_quick": (Status, [Array, Int64, Text, Text, _to(s.EpochOptions), Out, Text, Int64]),
    # partition.h
    "hbp_partition_samples": (Status, [Array, Int64, _to(s.PartitionOptions), Out, Text, Int64]),
    "hbp_partition_free": (None, [Partition]),
    "hbp_partition_get_view": (Status, [Partition, _to(s.PartitionView)]),
    # plan.h
    "hbp_plan_free": (None, [Plan]),
    "hbp_composition_name": (Text, [Int32]),
    "hbp_plan_get_summary": (Status, [Context, Plan, _to(s.PlanSummary)]),
    "hbp_plan_get_view": (Status, [Plan, _to(s.PlanView)]),
    "hbp_plan_get_rank_pack": (Int64, [Plan, Int64, Int64, Int32]),
    "hbp_plan_copy_rank_packs": (
        Status,
        [Context, Plan, Int64, Int32, _to(s.RankPack), UInt32, Int64, Count],
    ),
    "hbp_plan_copy_cu_seqlens": (Status, [Context, Plan, Int64, Int32, Array, Int64, Count]),
    "hbp_plan_copy_loss_weights": (Status, [Context, Plan, Int64, Int32, Array, Int64, Count]),
    "hbp_plan_validate": (Status, [Context, Plan, Lengths, Cost]),
    "hbp_plan_save_cursor": (Status, [Context, Plan, Int64, Array]),
    "hbp_plan_load_cursor": (Status, [Context, Plan, Array, Count]),
    # pattern.h
    "hbp_length_index_create": (Status, [Context, Lengths, Out]),
    "hbp_length_index_builder_create": (Status, [Context, Lengths, Out]),
    "hbp_length_index_builder_append": (Status, [Context, LengthIndexBuilder, Array, Int64]),
    "hbp_length_index_builder_finish": (Status, [Context, LengthIndexBuilder, Out]),
    "hbp_length_index_builder_free": (None, [LengthIndexBuilder]),
    "hbp_length_index_free": (None, [LengthIndex]),
    "hbp_plan_patterns": (Status, [Context, Lengths, Cost, _to(s.EpochOptions), Out]),
    "hbp_pattern_plan_free": (None, [PatternPlan]),
    "hbp_pattern_plan_redraw": (Status, [Context, PatternPlan, UInt64, UInt64, Out]),
    "hbp_pattern_plan_get_summary": (Status, [Context, PatternPlan, _to(s.PlanSummary)]),
    "hbp_pattern_plan_get_view": (Status, [PatternPlan, _to(s.PatternPlanView)]),
    "hbp_pattern_plan_expand": (Status, [Context, PatternPlan, LengthIndex, Int64, Int64, Out]),
    "hbp_pattern_plan_validate": (Status, [Context, PatternPlan, Lengths, Cost]),
    "hbp_pattern_plan_simulate": (
        Status,
        [Context, PatternPlan, Cost, _to(s.SimulateOptions), _to(s.Report)],
    ),
    "hbp_pattern_plan_save_cursor": (Status, [Context, PatternPlan, LengthIndex, Int64, Array]),
    "hbp_pattern_plan_load_cursor": (Status, [Context, PatternPlan, LengthIndex, Array, Count]),
    # simulate.h
    "hbp_simulate": (Status, [Context, Plan, Cost, _to(s.SimulateOptions), _to(s.Report)]),
    "hbp_bound_epoch": (Status, [Context, Lengths, Cost, Int64, Count]),
    # step.h
    "hbp_plan_step": (Status, [Context, Lengths, Cost, _to(s.StepOptions), Out]),
    # communicators.h
    "hbp_list_communicators": (
        Status,
        [Context, Cost, _to(s.StepOptions), Int32, _to(s.Communicator), UInt32, Int64, Count],
    ),
    "hbp_find_communicator": (Int64, [_to(s.Communicator), UInt32, Int64, Int32, Int32]),
    # stepper.h
    "hbp_stepper_create": (
        Status,
        [Context, Cost, _to(s.StepOptions), _to(s.StepperOptions), Out],
    ),
    "hbp_stepper_free": (None, [Stepper]),
    "hbp_stepper_submit": (Status, [Context, Stepper, Array, Int64, _to(s.LengthsOptions)]),
    "hbp_stepper_submit_lengths": (Status, [Context, Stepper, Lengths]),
    "hbp_stepper_take": (Status, [Context, Stepper, Out]),
    "hbp_stepper_get_summary": (Status, [Context, Stepper, _to(s.StepperSummary)]),
    # iterative_fill.h
    "hbp_iterative_fill": (Status, [Context, Lengths, _to(s.IterativeFillOptions), Out]),
    "hbp_choose_budgets": (Status, [Context, Lengths, _to(s.BudgetsOptions), _to(s.Budgets)]),
    # layers.h
    "hbp_layers_create": (Status, [Context, _to(s.LayerColumns), Out]),
    "hbp_layers_free": (None, [Layers]),
    "hbp_layers_get_view": (Status, [Layers, _to(s.LayersView)]),
    # vlm.h
    "hbp_vlm_create": (Status, [Context, _to(s.VlmFields), Model, Out]),
    "hbp_vlm_create_preset": (Status, [Context, Text, Out]),
    "hbp_vlm_free": (None, [Vlm]),
    "hbp_vlm_get_name": (Text, [Vlm]),
    "hbp_vlm_get_fields": (Status, [Context, Vlm, _to(s.VlmFields)]),
    "hbp_vlm_get_language": (Model, [Vlm]),
    "hbp_vlm_get_summary": (Status, [Context, Vlm, _to(s.VlmSummary)]),
    "hbp_vlm_create_layers": (Status, [Context, Vlm, Machine, _to(s.VlmLayersOptions), Out]),
    # pipeline.h
    "hbp_partition_layers": (
        Status,
        [Context, Layers, _to(s.PipelineOptions), _to(s.LayerPartitionOptions), Out],
    ),
    "hbp_layer_partition_free": (None, [LayerPartition]),
    "hbp_layer_partition_get_summary": (Status, [Context, LayerPartition, _to(s.LayerPartitionSummary)]),
    "hbp_layer_partition_get_view": (Status, [LayerPartition, _to(s.LayerPartitionView)]),
    "hbp_simulate_pipeline": (Status, [Context, Layers, Array, _to(s.PipelineOptions), Array, Out]),
    "hbp_pipeline_run_free": (None, [PipelineRun]),
    "hbp_pipeline_run_get_summary": (Status, [Context, PipelineRun, _to(s.PipelineSummary)]),
    "hbp_pipeline_run_get_view": (Status, [PipelineRun, _to(s.PipelineRunView)]),
    "hbp_pipeline_run_validate": (Status, [Context, PipelineRun, Layers, Array, _to(s.PipelineOptions)]),
    "hbp_order_micro_batches": (
        Status,
        [Context, Layers, Array, _to(s.PipelineOptions), Array, Count, Count],
    ),
    # recompute.h
    "hbp_choose_recompute": (
        Status,
        [
            Context,
            Layers,
            Array,
            _to(s.PipelineOptions),
            _to(s.RecomputeOptions),
            Array,
            _to(s.RecomputeReport),
        ],
    ),
    "hbp_fit_layer_bytes": (Status, [Context, Array, Array, Array, Count, Count]),
    # plan_vlm.h
    "hbp_plan_vlm": (Status, [Context, Lengths, Vlm, Machine, _to(s.VlmOptions), Out]),
    "hbp_vlm_plan_free": (None, [VlmPlan]),
    "hbp_vlm_plan_get_summary": (Status, [Context, VlmPlan, _to(s.VlmPlanSummary)]),
    "hbp_vlm_plan_get_data": (Plan, [VlmPlan]),
    "hbp_vlm_plan_get_layers": (Layers, [VlmPlan]),
    "hbp_vlm_plan_get_view": (Status, [VlmPlan, _to(s.VlmPlanView)]),
    "hbp_vlm_plan_run_step": (Status, [Context, VlmPlan, Int64, Int32, Out]),
    "hbp_vlm_plan_validate": (Status, [Context, VlmPlan, Lengths]),
    # graph.h
    "hbp_graph_create": (Status, [Context, Out]),
    "hbp_graph_free": (None, [Graph]),
    "hbp_graph_add_profile": (Status, [Context, Graph, Array, Array, Int64, POINTER(Int32)]),
    "hbp_graph_add_operators": (
        Status,
        [Context, Graph, _to(s.Operator), Int64, POINTER(Int32)],
    ),
    "hbp_graph_add_edge": (Status, [Context, Graph, Int32, Int32, Int64]),
    "hbp_graph_validate": (Status, [Context, Graph]),
    "hbp_graph_get_view": (Status, [Graph, _to(s.GraphView)]),
    "hbp_graph_get_operator": (Status, [Context, Graph, Int64, _to(s.Operator)]),
    # workloads.h
    "hbp_workload_get_preset_parameters": (Int64, [Int64]),
    "hbp_graph_create_workload": (Status, [Context, Text, Machine, Out]),
    # task_schedule.h
    "hbp_task_schedule_free": (None, [TaskSchedule]),
    "hbp_task_schedule_get_summary": (Status, [Context, TaskSchedule, _to(s.TaskSummary)]),
    "hbp_task_schedule_get_view": (Status, [TaskSchedule, _to(s.TaskScheduleView)]),
    "hbp_task_schedule_validate": (Status, [Context, TaskSchedule, Graph, Machine]),
    # tasks.h
    "hbp_plan_tasks": (Status, [Context, Graph, Machine, _to(s.TasksOptions), Out]),
    "hbp_simulate_tasks": (
        Status,
        [Context, Graph, Machine, TaskSchedule, _to(s.TaskRunOptions), Out],
    ),
    "hbp_task_run_free": (None, [TaskRun]),
    "hbp_task_run_get_summary": (Status, [Context, TaskRun, _to(s.TaskRunSummary)]),
    "hbp_task_run_get_view": (Status, [TaskRun, _to(s.TaskRunView)]),
    "hbp_task_run_validate": (
        Status,
        [Context, TaskRun, Graph, Machine, TaskSchedule, _to(s.TaskRunOptions)],
    ),
    # timeline.h
    "hbp_timeline_create": (Status, [Context, _to(s.TimelineColumns), Out]),
    "hbp_timeline_get_columns": (Status, [Context, Timeline, _to(s.TimelineColumns)]),
    "hbp_timeline_get_measurements": (Status, [Context, Timeline, _to(s.Measurements)]),
    "hbp_timeline_free": (None, [Timeline]),
    "hbp_timeline_compare": (Status, [Context, Timeline, Cost, _to(s.TimelineReport)]),
}

# Of libhbp-io.
IO_DECLARATIONS: dict[str, tuple[Any, list[Any]]] = {
    "hbp_lengths_load": (Status, [Context, Text, _to(s.LengthsLoadOptions), Out]),
    "hbp_model_create_config": (Status, [Context, Text, Int64, Out]),
    "hbp_model_load": (Status, [Context, Text, Out]),
    "hbp_model_create_text": (Status, [Context, Text, Out]),
    "hbp_machine_probe": (Status, [Context, Int32, Text, Out]),
    "hbp_machine_load": (Status, [Context, Text, Out]),
    "hbp_machine_create_text": (Status, [Context, Text, Out]),
    "hbp_machine_save": (Status, [Context, Machine, Text]),
    "hbp_machine_apply_nccl_tests": (Status, [Context, Machine, Int32, Int32, Text, Int64]),
    "hbp_machine_apply_nccl_topology": (Status, [Context, Machine, Text, Int64]),
    "hbp_cost_save": (Status, [Context, Cost, Text, _to(s.CostFileOptions)]),
    "hbp_cost_load": (Status, [Context, Text, Out]),
    "hbp_plan_save": (Status, [Context, Plan, Text, _to(s.PlanSaveOptions)]),
    "hbp_plan_load": (Status, [Context, Text, Out]),
    "hbp_plan_file_open": (Status, [Context, Text, Out]),
    "hbp_plan_file_free": (None, [PlanFile]),
    "hbp_plan_file_get_summary": (Status, [Context, PlanFile, _to(s.PlanSummary)]),
    "hbp_plan_file_has_vlm": (Int32, [PlanFile]),
    "hbp_plan_file_get_cost": (Status, [Context, PlanFile, Out]),
    "hbp_plan_file_get_note": (Text, [PlanFile]),
    "hbp_plan_file_read": (Status, [Context, PlanFile, Int64, Int64, Out]),
    "hbp_pattern_plan_save": (Status, [Context, PatternPlan, Text]),
    "hbp_pattern_plan_load": (Status, [Context, Text, Out]),
    "hbp_plan_trace": (Status, [Context, Plan, Text, _to(s.TraceOptions)]),
    "hbp_plan_write_json": (Status, [Context, Plan, Text]),
    "hbp_layers_load": (Status, [Context, Text, Out]),
    "hbp_pipeline_run_save": (Status, [Context, PipelineRun, Text]),
    "hbp_pipeline_run_load": (Status, [Context, Text, Out]),
    "hbp_pipeline_run_trace": (Status, [Context, PipelineRun, Text]),
    "hbp_pipeline_run_write_json": (Status, [Context, PipelineRun, Text]),
    "hbp_vlm_plan_save": (Status, [Context, VlmPlan, Text, _to(s.PlanSaveOptions)]),
    "hbp_vlm_plan_load": (Status, [Context, Text, Out]),
    "hbp_vlm_plan_trace": (Status, [Context, VlmPlan, Text, _to(s.TraceOptions)]),
    "hbp_vlm_plan_write_json": (Status, [Context, VlmPlan, Text]),
    "hbp_graph_load": (Status, [Context, Text, Out]),
    "hbp_graph_save": (Status, [Context, Graph, Text, Int32]),
    "hbp_task_schedule_save": (Status, [Context, TaskSchedule, Text]),
    "hbp_task_schedule_load": (Status, [Context, Text, Out]),
    "hbp_task_schedule_write_json": (Status, [Context, TaskSchedule, Text]),
    "hbp_task_schedule_trace": (Status, [Context, TaskSchedule, TaskRun, Text]),
    "hbp_task_run_save": (Status, [Context, TaskRun, Text]),
    "hbp_task_run_load": (Status, [Context, Text, Out]),
    "hbp_task_run_write_json": (Status, [Context, TaskRun, Text]),
    "hbp_timeline_load": (Status, [Context, Text, Out]),
    "hbp_timeline_save": (Status, [Context, Timeline, Text]),
}


def declare(library: ctypes.CDLL, declarations: dict[str, tuple[Any, list[Any]]]) -> None:
    """Gives every function its types; ImportError names one that is missing."""
    for name, (result, arguments) in declarations.items():
        try:
            function = getattr(library, name)
        except AttributeError:
            raise ImportError(f"{library._name} has no {name}; it is older than this package") from None
        function.restype, function.argtypes = result, arguments


def absent(name: str, why: str) -> Any:
    """Stands for a function of libhbp-io where that is not there."""

    def function(*arguments: Any) -> Any:
        raise ImportError(f"{name} is a function of libhbp-io (files and probes), which is not there: {why}")

    return function


declare(lib, DECLARATIONS)
_io: Any = load_io(lib)
if isinstance(_io, ctypes.CDLL):
    declare(_io, IO_DECLARATIONS)
for _name in IO_DECLARATIONS:  # all functions are found in `lib`
    setattr(lib, _name, absent(_name, _io) if isinstance(_io, str) else getattr(_io, _name))


@functools.lru_cache(maxsize=None)
def release(name: str) -> Any:
    """The function that frees an object, on a bare address: safe to call while the interpreter shuts down."""
    return ctypes.CFUNCTYPE(None, c_void_p)((name, _io if name in IO_DECLARATIONS else lib))


def presets(family: str) -> list[str]:
    """The names of all presets of "model", "machine", "vlm", "workload", "stack" or "attention"."""
    names = (lib.hbp_preset_get_name(family.encode(), index) for index in itertools.count())
    return [name.decode() for name in itertools.takewhile(bool, names)]

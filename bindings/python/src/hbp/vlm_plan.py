"""Data, pipeline stages and recomputation of a vision-language run in one call."""

from __future__ import annotations

import ctypes
from functools import cached_property
from typing import Optional, Union

import numpy as np

from . import _native
from ._arrays import ViewColumn
from ._choices import VlmDataMethod, VlmOverLong, VlmPartitionMethod, VlmRecomputeMethod
from ._context import ProgressOption, call, call_long
from ._files import Path, Saved, path_bytes
from ._inputs import Integers
from ._native import lib
from ._numbers import choice, int32, int64, suggesting, text_bytes
from ._records import PlanSaveOptions, TraceOptions, VlmOptions, VlmPlanView
from ._results import VlmPlanSummary
from ._text import many
from .cost import ZERO_STAGES, ZeroStage
from .layers import Layers
from .lengths import Lengths
from .machine import Machine
from .pipeline import PipelineRun
from .plans import Plan
from .recompute import SELECT, Selective
from .vlm import Vlm


class VlmPlan(Saved):
    """A planned vision-language run: which samples every replica runs, which layers every stage has, what they
    recompute. Immutable.

    Columns are read-only numpy views of the library's memory; they, `data` and `layers` keep the plan
    alive."""

    _opaque = _native.VlmPlan
    _free = "hbp_vlm_plan_free"
    _view = VlmPlanView
    _get_view = "hbp_vlm_plan_get_view"

    cuts = ViewColumn[np.int32]("chunks", "First layer of each chunk, and the number of layers at the end.", extra=1)
    recompute = ViewColumn[np.int32]("layers", "What each layer recomputes, as hbp.layers.RECOMPUTE names it.")
    stage_ns = ViewColumn[np.int64]("stages", "Mean time of each stage for a micro-batch.")
    stage_bytes = ViewColumn[np.int64]("stages", "Peak of each stage.")
    step_ns = ViewColumn[np.int64]("steps", "Pipeline time of each step.")

    @cached_property
    def data(self) -> Plan:
        """The samples: a plan whose ranks are the replicas, one pack a replica and micro-batch. Its predicted
        times are those of perfectly even stages."""
        return Plan._part(lib.hbp_vlm_plan_get_data, self)

    @cached_property
    def layers(self) -> Layers:
        """The layers, for the mean micro-batch."""
        return Layers._part(lib.hbp_vlm_plan_get_layers, self)

    def summary(self) -> VlmPlanSummary:
        """The run in numbers; print it."""
        summary = VlmPlanSummary()
        call(lib.hbp_vlm_plan_get_summary, self, ctypes.byref(summary))
        return summary

    def _repr_html_(self) -> str:
        return self.summary()._repr_html_()

    @property
    def digest(self) -> int:
        """Of everything decided; equal where all ranks plan the same."""
        return self.summary().digest

    @classmethod
    def load(cls, path: Path, *, progress: ProgressOption = None) -> VlmPlan:
        """Reads a plan's file whole; Plan.load and PlanFile read its data alone."""
        return cls._make(lib.hbp_vlm_plan_load, path_bytes(path), progress=progress)

    def save(
        self,
        path: Path,
        *,
        level: int = 0,
        note: Optional[str] = None,
        progress: ProgressOption = None,
    ) -> None:
        """Writes the plan file of the data with stages, recomputation and layers in its header, whole or not at
        all; zlib `level` 1..9, 0 for the default, -1 for none."""
        options = PlanSaveOptions.pick(locals())
        call_long(lib.hbp_vlm_plan_save, self, path_bytes(path), ctypes.byref(options), progress=progress)

    def validate(self, lengths: Union[Lengths, Integers, None] = None) -> None:
        """Checks the data, with `lengths` also against those, and that stages and steps take what layers, cuts,
        recomputation and packs make them; raises for the first breach."""
        call_long(lib.hbp_vlm_plan_validate, self, None if lengths is None else Lengths.of(lengths))

    def run_step(self, step: int, replica: int = 0) -> PipelineRun:
        """The pipeline of one replica in one step: both count from 0, and so do `operation_micro_batches` in
        the step. The step ends when its slowest replica does."""
        return PipelineRun._make(lib.hbp_vlm_plan_run_step, self, int64("step", step), int32("replica", replica))

    def trace(self, path: Path, first_step: int = 0, steps: int = 0) -> None:
        """Writes a Chrome trace of `steps` steps from `first_step` on, all when `steps` is 0: every forward and
        backward on each stage of each replica. It opens in Perfetto."""
        options = TraceOptions.pick(locals())
        call_long(lib.hbp_vlm_plan_trace, self, path_bytes(path), ctypes.byref(options))

    def write_json(self, path: Path) -> None:
        """Writes the data as Plan.write_json does, and all else under "vlm"; whole or not at all."""
        call_long(lib.hbp_vlm_plan_write_json, self, path_bytes(path))

    def __len__(self) -> int:
        """Steps."""
        return len(self.step_ns)

    def __repr__(self) -> str:
        held = f"{many(len(self), 'step')} on {many(len(self.stage_ns), 'stage')}"
        return f"<hbp.VlmPlan: {held}, digest {self.digest:016x}>"


@suggesting
def plan_vlm(
    lengths: Union[Lengths, Integers],
    vlm: Optional[Vlm],
    machine: Machine,
    *,
    data_method: VlmDataMethod = "packed",
    partition_method: VlmPartitionMethod = "optimal",
    recompute_method: VlmRecomputeMethod = "optimal",
    selective: Selective = "both",
    tensor_parallel: int = 0,
    pipeline_stages: int = 0,
    virtual_stages: int = 0,
    data_parallel: int = 0,
    micro_batches: int = 0,
    batch_samples: int = 0,
    samples: int = 0,
    zero_stage: ZeroStage = 1,
    over_long: VlmOverLong = "error",
    modality_order: bool = False,
    keep_order: bool = False,
    rounds: int = 0,
    effort: int = 0,
    fused_cross_entropy: bool = False,
    max_vision: int = 0,
    max_tokens: int = 0,
    reserve_bytes: Optional[int] = None,
    layers: Optional[Layers] = None,
    layers_vision: float = 0.0,
    layers_tokens: float = 0.0,
    seed: int = 0,
    epoch: int = 0,
    stack: Optional[str] = None,
    progress: ProgressOption = None,
) -> VlmPlan:
    """Plans a vision-language run (OmniBal): budgets and packs, stages for them, recomputation under every
    stage's memory, again until nothing changes. Numbers that are 0 have a default.

    `lengths` has vision units. `data_method` is "packed", OmniBal's "isf", or padded batches, "random", "grouped"
    or "sorted"; `partition_method` a method of partition_layers, `recompute_method` and `selective` those of
    choose_recompute. A replica is tensor_parallel x pipeline_stages GPUs; data_parallel is the number of replicas (0: all GPUs').
    batch_samples are those of a step (0: 128), `samples` those of a micro-batch (0: 4); max_vision and
    max_tokens are the budgets of a pack (0: chosen). The micro-batches of each step are put in the best order unless `keep_order`;
    `modality_order` lets all replicas meet the same modalities. reserve_bytes None keeps 4 GiB free on each GPU,
    0 nothing. `layers` are measured ones for layers_vision vision units and layers_tokens tokens, instead of
    those that follow from the shapes; `vlm` may then be None. `stack` is the trainer's software, as `read_stack`
    takes it. The plan is a pure function of all of them."""
    options = VlmOptions.pick(
        locals(),
        selective=choice("selective", selective, SELECT),
        zero_stage=choice("zero_stage", zero_stage, ZERO_STAGES),
        reserve_bytes=0 if reserve_bytes is None else reserve_bytes or -1,
        stack=text_bytes(stack),
    )
    return VlmPlan._make(
        lib.hbp_plan_vlm, Lengths.of(lengths), vlm, machine, ctypes.byref(options), progress=progress
    )

"""Which layers share a pipeline stage, and what a pipeline takes."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Optional, Sequence, TypedDict, Union

import numpy as np
import numpy.typing as npt

from . import _native
from ._arrays import ViewColumn, address, addresses, floats, integers, plain, read_view, same_count, view
from ._choices import LayerPartitionMethod
from ._context import Owned, ProgressOption, call, call_long
from ._files import Path, Saved, path_bytes
from ._inputs import Integers
from ._native import lib
from ._numbers import int32, suggesting
from ._records import LayerPartitionOptions, LayerPartitionView, PipelineOptions, PipelineRunView
from ._results import LayerPartitionSummary, PipelineSummary
from ._text import many
from .layers import RECOMPUTE, Layers, RecomputeName, named

if TYPE_CHECKING:
    from typing_extensions import Unpack

RANKED = {"time": 1, "variance": 2, "communication": 4}
DIRECTIONS = {"forward": 0, "backward": 1}


class PipelineKeywords(TypedDict, total=False):
    """What a pipeline is, for every function that plans or runs one.

    micro_batches: of a step; 0: as many as the scales have. virtual_stages: chunks of layers a stage,
    interleaved 1F1B when above 1. vision_scale, token_scale: each micro-batch's vision units and tokens, the
    reference micro-batch having 1; vision_time_scale, token_time_scale: times where they grow otherwise.
    speed: of each stage's GPUs, 1 as measured. limit_bytes: memory of a GPU, one number or one a stage.
    recompute: "none", "attention", "mlp" or "layer", for all layers or one a layer. link_bytes_per_s between
    stages (0: transfers take no time), link_latency_ns, link_overlap the share of a transfer that both ends
    go on during."""

    micro_batches: int
    virtual_stages: int
    vision_scale: Optional[npt.ArrayLike]
    token_scale: Optional[npt.ArrayLike]
    token_time_scale: Optional[npt.ArrayLike]
    vision_time_scale: Optional[npt.ArrayLike]
    speed: Optional[npt.ArrayLike]
    limit_bytes: Optional[Integers]
    recompute: Union[None, RecomputeName, Sequence[RecomputeName], Integers]
    link_bytes_per_s: float
    link_overlap: float
    link_latency_ns: int


class Pipeline:
    """The struct, and the arrays that it points to. Counts are checked here: C cannot."""

    @suggesting
    def __init__(
        self,
        layers: Layers,
        stages: int,
        *,
        micro_batches: int = 0,
        virtual_stages: int = 0,
        vision_scale: Optional[npt.ArrayLike] = None,
        token_scale: Optional[npt.ArrayLike] = None,
        token_time_scale: Optional[npt.ArrayLike] = None,
        vision_time_scale: Optional[npt.ArrayLike] = None,
        speed: Optional[npt.ArrayLike] = None,
        limit_bytes: Optional[Integers] = None,
        recompute: Union[None, RecomputeName, Sequence[RecomputeName], Integers] = None,
        link_bytes_per_s: float = 0.0,
        link_overlap: float = 0.0,
        link_latency_ns: int = 0,
    ) -> None:
        if not isinstance(layers, Layers):
            raise TypeError(f"layers is {layers!r}; it must be hbp.Layers")
        given = {
            "vision_scale": vision_scale,
            "token_scale": token_scale,
            "token_time_scale": token_time_scale,
            "vision_time_scale": vision_time_scale,
        }
        arrays: dict[str, npt.NDArray[Any]] = {
            name: floats(name, values) for name, values in given.items() if values is not None
        }
        self.stages = int32("stages", stages)
        if not 1 <= self.stages <= len(layers):
            raise ValueError(f"stages is {stages}; it must be in 1..{len(layers)}, the number of layers")
        self.micro_batches = int32("micro_batches", micro_batches)
        if not self.micro_batches and arrays:
            self.micro_batches = max(len(array) for array in arrays.values())
        for name, array in arrays.items():
            same_count(name, array, self.micro_batches)
        if speed is not None:
            arrays["speed"] = same_count("speed", floats("speed", speed), self.stages)
        if limit_bytes is not None:
            limits = plain("limit_bytes", limit_bytes)
            limits = np.repeat(limits, self.stages) if limits.ndim == 0 else limits
            arrays["limit_bytes"] = same_count(
                "limit_bytes", integers("limit_bytes", limits, np.int64), self.stages
            )
        if recompute is not None:
            arrays["recompute"] = named("recompute", recompute, RECOMPUTE, len(layers))
        self._arrays = arrays
        self.struct = PipelineOptions(
            stages=self.stages,
            virtual_stages=virtual_stages,
            micro_batches=self.micro_batches,
            link_bytes_per_s=link_bytes_per_s,
            link_overlap=link_overlap,
            link_latency_ns=link_latency_ns,
            **addresses(arrays),
        )

    @classmethod
    def of(
        cls, layers: Layers, cuts: Integers, keywords: PipelineKeywords
    ) -> tuple[Pipeline, npt.NDArray[np.int32]]:
        """The pipeline that `cuts` make, and the cuts as C wants them."""
        borders = integers("cuts", cuts, np.int32)
        chunks, virtual = len(borders) - 1, int32("virtual_stages", keywords.get("virtual_stages", 0)) or 1
        if chunks < 1 or virtual < 1 or chunks % virtual:
            raise ValueError(
                f"cuts has {len(borders)} values; it must have stages x virtual_stages + 1, and "
                f"virtual_stages is {virtual}"
            )
        return cls(layers, chunks // virtual, **keywords), borders


@dataclass(frozen=True, eq=False)
class LayerPartitionCandidate:
    """One of the best partitions; `ranked` says by what it is among them: "time", "variance",
    "communication"."""

    cuts: npt.NDArray[np.int32]
    ranked: tuple[str, ...]
    predicted_ns: int
    simulated_ns: int
    cut_bytes: int
    stage_variance: float


class LayerPartition(Owned):
    """Layers cut into the stages of a pipeline. Immutable."""

    _opaque = _native.LayerPartition
    _free = "hbp_layer_partition_free"
    _view = LayerPartitionView
    _get_view = "hbp_layer_partition_get_view"

    cuts = ViewColumn[np.int32]("chunks", "First layer of each chunk, and the number of layers at the end.", extra=1)
    stage_ns = ViewColumn[np.int64]("stages", "Time of each stage for the mean micro-batch, exposed transfers in.")
    stage_busy_ns = ViewColumn[np.int64]("stages", "Time that each stage works in a step, simulated.")
    stage_bytes = ViewColumn[np.int64]("stages", "Peak of each stage, simulated.")
    order = ViewColumn[np.int32]("micro_batches", "Micro-batches as they are best run; as given without `order`.")
    candidate_ranked = ViewColumn[np.int32]("candidates", "By what each of the best partitions is among them, a mask.")
    candidate_predicted_ns = ViewColumn[np.int64]("candidates", "Time of a step by the formula.")
    candidate_simulated_ns = ViewColumn[np.int64]("candidates", "The same, simulated.")
    candidate_cut_bytes = ViewColumn[np.int64]("candidates", "Bytes over all cuts, of the reference micro-batch.")
    candidate_variance = ViewColumn[np.float64]("candidates", "Variance of the stages' times, in ns^2.")

    @property
    def candidate_cuts(self) -> npt.NDArray[np.int32]:
        """A row of cuts for each of the best partitions."""
        found, row = read_view(self), len(self.cuts)
        cuts = view(found.candidate_cuts, found.candidates * row, np.int32, self._handle)
        return cuts.reshape(-1, row)

    def summary(self) -> LayerPartitionSummary:
        """The partition in numbers; print it."""
        summary = LayerPartitionSummary()
        call(lib.hbp_layer_partition_get_summary, self, ctypes.byref(summary))
        return summary

    def candidates(self) -> list[LayerPartitionCandidate]:
        """The best partitions: the one chosen, then the others by simulated time."""
        columns = (
            self.candidate_predicted_ns,
            self.candidate_simulated_ns,
            self.candidate_cut_bytes,
            self.candidate_variance,
        )
        numbers = zip(*(column.tolist() for column in columns))
        return [
            LayerPartitionCandidate(cuts, tuple(name for name, bit in RANKED.items() if mask & bit), *row)
            for cuts, mask, row in zip(self.candidate_cuts, self.candidate_ranked.tolist(), numbers)
        ]

    def __len__(self) -> int:
        """Stages."""
        return len(self.stage_ns)

    def __repr__(self) -> str:
        return f"<hbp.LayerPartition: {many(len(self), 'stage')}, cuts {', '.join(map(str, self.cuts.tolist()))}>"


def partition_layers(
    layers: Layers,
    *,
    stages: int,
    method: LayerPartitionMethod = "optimal",
    candidates: int = 0,
    radius: int = 0,
    order: bool = False,
    run: bool = False,
    progress: ProgressOption = None,
    **pipeline: Unpack[PipelineKeywords],
) -> LayerPartition:
    """Cuts the layers into `stages` stages (OmniBal, section 3.3) by method "optimal" for the least pipeline
    time, "balanced", "parameters" and "uniform" as DeepSpeed does, "omnibal" as OmniBal does with cuts moved by
    up to `radius`. `candidates` is how many to list by each ranking; `order` puts each one's micro-batches in their
    best order before it is run; `run` takes the one that runs fastest where the formula would decide. The other
    options are those of hbp.pipeline.PipelineKeywords; micro_batches is needed."""
    options = LayerPartitionOptions.pick(locals())
    settings = Pipeline(layers, stages, **pipeline)
    return LayerPartition._make(
        lib.hbp_partition_layers,
        layers,
        ctypes.byref(settings.struct),
        ctypes.byref(options),
        progress=progress,
    )


class PipelineRun(Saved):
    """A step of a pipeline that was simulated. Immutable. Operations stand by stage, and in the order of
    their start."""

    _opaque = _native.PipelineRun
    _free = "hbp_pipeline_run_free"
    _view = PipelineRunView
    _get_view = "hbp_pipeline_run_get_view"

    stage_busy_ns = ViewColumn[np.int64]("stages", "Time that each stage works.")
    stage_bytes = ViewColumn[np.int64]("stages", "Peak of each stage.")
    operation_stages = ViewColumn[np.int32]("operations", "Stage of each operation.")
    operation_chunks = ViewColumn[np.int32]("operations", "Chunk of layers of each operation.")
    operation_micro_batches = ViewColumn[np.int32](
        "operations", "Micro-batch of each operation: row of the scales, not place in the order."
    )
    operation_directions = ViewColumn[np.int32]("operations", "0: forward; 1: backward.")
    operation_starts = ViewColumn[np.int64]("operations", "When each operation starts, in ns.")
    operation_ends = ViewColumn[np.int64]("operations", "When each operation ends, in ns.")

    def summary(self) -> PipelineSummary:
        """The step in numbers; print it."""
        summary = PipelineSummary()
        call(lib.hbp_pipeline_run_get_summary, self, ctypes.byref(summary))
        return summary

    @classmethod
    def load(cls, path: Path, *, progress: ProgressOption = None) -> PipelineRun:
        """From a file that `save` wrote."""
        return cls._make(lib.hbp_pipeline_run_load, path_bytes(path), progress=progress)

    def save(self, path: Path) -> None:
        """Into a file, whole or not at all."""
        call_long(lib.hbp_pipeline_run_save, self, path_bytes(path))

    def validate(
        self,
        layers: Optional[Layers] = None,
        cuts: Integers = (),
        **pipeline: Unpack[PipelineKeywords],
    ) -> None:
        """Checks that every operation runs once, where and when it can; with `layers`, `cuts` and the options of
        simulate_pipeline also that they make this run. InvalidError names the first breach."""
        if layers is None:
            call_long(lib.hbp_pipeline_run_validate, self, None, None, None)
            return
        settings, borders = Pipeline.of(layers, cuts, pipeline)
        call_long(
            lib.hbp_pipeline_run_validate, self, layers, address(borders), ctypes.byref(settings.struct)
        )

    def trace(self, path: Path) -> None:
        """Writes a Chrome trace, which Perfetto opens: a row for each stage."""
        call_long(lib.hbp_pipeline_run_trace, self, path_bytes(path))

    def write_json(self, path: Path) -> None:
        """Writes all of it as JSON, under the keys of its file; whole or not at all."""
        call_long(lib.hbp_pipeline_run_write_json, self, path_bytes(path))

    def __len__(self) -> int:
        """Operations."""
        return len(self.operation_stages)

    def __repr__(self) -> str:
        return f"<hbp.PipelineRun: {many(len(self), 'operation')} on {many(len(self.stage_busy_ns), 'stage')}>"


def simulate_pipeline(
    layers: Layers,
    cuts: Integers,
    *,
    order: Optional[Integers] = None,
    progress: ProgressOption = None,
    **pipeline: Unpack[PipelineKeywords],
) -> PipelineRun:
    """Simulates one step of 1F1B, interleaved with virtual_stages above 1: `cuts` as LayerPartition has them,
    `order` the order in which micro-batches enter. The other options are those of
    hbp.pipeline.PipelineKeywords."""
    settings, borders = Pipeline.of(layers, cuts, pipeline)
    given = None
    if order is not None:
        given = same_count("order", integers("order", order, np.int32), settings.micro_batches)
    return PipelineRun._make(
        lib.hbp_simulate_pipeline,
        layers,
        address(borders),
        ctypes.byref(settings.struct),
        address(given),
        progress=progress,
    )


class MicroBatchOrder(NamedTuple):
    """An order of micro-batches, and simulated times of a step as given and in it."""

    order: npt.NDArray[np.int32]
    before_ns: int
    after_ns: int


def order_micro_batches(
    layers: Layers,
    cuts: Integers,
    *,
    progress: ProgressOption = None,
    **pipeline: Unpack[PipelineKeywords],
) -> MicroBatchOrder:
    """The order of a step's micro-batches in which the pipeline takes least: the best of all for up to 7,
    never slower than as given. Options are those of hbp.pipeline.PipelineKeywords."""
    settings, borders = Pipeline.of(layers, cuts, pipeline)
    order = np.empty(max(settings.micro_batches, 0), np.int32)
    before, after = ctypes.c_int64(), ctypes.c_int64()
    call_long(
        lib.hbp_order_micro_batches,
        layers,
        address(borders),
        ctypes.byref(settings.struct),
        address(order),
        ctypes.byref(before),
        ctypes.byref(after),
        progress=progress,
    )
    return MicroBatchOrder(order, before.value, after.value)

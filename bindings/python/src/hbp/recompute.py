"""Which layers recompute their activations, so that every pipeline stage fits."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Literal, NamedTuple, Optional

import numpy as np
import numpy.typing as npt

from ._arrays import address, integers, same_count
from ._choices import RecomputeMethod
from ._context import ProgressOption, call, call_long
from ._inputs import Integers
from ._native import lib
from ._numbers import choice
from ._records import RecomputeOptions
from ._results import RecomputeReport
from .layers import Layers
from .pipeline import Pipeline, PipelineKeywords

if TYPE_CHECKING:
    from typing_extensions import Unpack

Selective = Literal["both", "attention", "mlp", "neither"]
SELECT: dict[Selective, int] = {"both": 0, "attention": 1, "mlp": 2, "neither": -1}


class RecomputeChoice(NamedTuple):
    """What each layer recomputes, as hbp.layers.RECOMPUTE names it, and what that comes to."""

    choices: npt.NDArray[np.int32]
    report: RecomputeReport


def choose_recompute(
    layers: Layers,
    cuts: Integers,
    *,
    method: RecomputeMethod = "optimal",
    selective: Selective = "both",
    measured_free_bytes: Optional[Integers] = None,
    measured_vision_bytes: int = 0,
    measured_language_bytes: int = 0,
    progress: ProgressOption = None,
    **pipeline: Unpack[PipelineKeywords],
) -> RecomputeChoice:
    """Chooses what every layer recomputes so that each stage fits into limit_bytes (OmniBal, section 3.4), by
    method "optimal" for the least time, "omnibal" for the published rule, "all" or "none". `selective` is what
    "optimal" may recompute besides whole layers: "both" attention and the feed-forward part, one of
    "attention" and "mlp", or "neither".

    measured_free_bytes, one a stage, is what was free at the peak with every layer recomputed;
    measured_vision_bytes and measured_language_bytes are what one layer frees (fit_layer_bytes). The other
    options are those of hbp.pipeline.PipelineKeywords, `recompute` left out."""
    if pipeline.get("recompute") is not None:
        raise TypeError("recompute is what choose_recompute chooses; it cannot be given")
    settings, borders = Pipeline.of(layers, cuts, pipeline)
    free = None
    if measured_free_bytes is not None:
        free = integers("measured_free_bytes", measured_free_bytes, np.int64)
        same_count("measured_free_bytes", free, settings.stages)
    options = RecomputeOptions(
        method=method,
        selective=choice("selective", selective, SELECT),
        measured_free_bytes=address(free),
        measured_vision_bytes=measured_vision_bytes,
        measured_language_bytes=measured_language_bytes,
    )
    choices, report = np.empty(len(layers), np.int32), RecomputeReport()
    call_long(
        lib.hbp_choose_recompute,
        layers,
        address(borders),
        ctypes.byref(settings.struct),
        ctypes.byref(options),
        address(choices),
        ctypes.byref(report),
        progress=progress,
    )
    return RecomputeChoice(choices, report)


class LayerBytes(NamedTuple):
    """What recomputing one vision layer and one language layer frees."""

    vision_bytes: int
    language_bytes: int


def fit_layer_bytes(
    vision_layers: Integers, language_layers: Integers, freed_bytes: Integers
) -> LayerBytes:
    """The bytes that one layer of each type frees, from two measurements: measurement i recomputed
    vision_layers[i] and language_layers[i] layers less and took freed_bytes[i] more."""
    vision = same_count("vision_layers", integers("vision_layers", vision_layers, np.int32), 2)
    language = same_count("language_layers", integers("language_layers", language_layers, np.int32), 2)
    freed = same_count("freed_bytes", integers("freed_bytes", freed_bytes, np.int64), 2)
    of_vision, of_language = ctypes.c_int64(), ctypes.c_int64()
    call(
        lib.hbp_fit_layer_bytes,
        address(vision),
        address(language),
        address(freed),
        ctypes.byref(of_vision),
        ctypes.byref(of_language),
    )
    return LayerBytes(of_vision.value, of_language.value)

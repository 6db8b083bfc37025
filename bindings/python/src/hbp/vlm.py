"""The vision-language model: an encoder, a projector and a language model."""

from __future__ import annotations

import ctypes
from typing import Any, Mapping, Optional

from . import _native
from ._context import Owned, call
from ._native import lib, presets
from ._numbers import choice, suggesting, text_bytes
from ._records import VlmFields, VlmLayersOptions
from ._results import VlmSummary
from .cost import ZERO_STAGES, ZeroStage
from .layers import Layers
from .machine import Machine
from .model import Model


class Vlm(Owned):
    """A vision-language model. Immutable.

    Vlm(language=hbp.Model.preset("internlm2-20b"), vision_layers=45, vision_hidden=3200, ...); the fields are
    those of hbp.VlmFields, `vision_mlp` is "gated" or "plain"."""

    _opaque = _native.Vlm
    _free = "hbp_vlm_free"

    def __init__(self, *, language: Model, **fields: Any) -> None:
        if not isinstance(language, Model):
            raise TypeError(f"language is {language!r}; it must be hbp.Model")
        self._handle = Vlm._make(lib.hbp_vlm_create, ctypes.byref(VlmFields(**fields)), language)._handle

    @classmethod
    def preset(cls, name: str) -> Vlm:
        """A known model, "internvl-1.5-26b"."""
        return cls._make(lib.hbp_vlm_create_preset, text_bytes(name))

    @staticmethod
    def presets() -> list[str]:
        """The presets' names."""
        return presets("vlm")

    @property
    def name(self) -> str:
        """The preset's name, or "custom"."""
        return str(lib.hbp_vlm_get_name(self).decode())

    @property
    def fields(self) -> VlmFields:
        """A copy of the fields, defaults filled in."""
        fields = VlmFields()
        call(lib.hbp_vlm_get_fields, self, ctypes.byref(fields))
        return fields

    @property
    def language(self) -> Model:
        """The language model."""
        return Model._part(lib.hbp_vlm_get_language, self)

    def summary(self) -> VlmSummary:
        """Parameters and operations that follow from the fields."""
        summary = VlmSummary()
        call(lib.hbp_vlm_get_summary, self, ctypes.byref(summary))
        return summary

    @suggesting
    def layers(
        self,
        machine: Machine,
        *,
        vision: float,
        tokens: float,
        squares: float = 0.0,
        tensor_parallel: int = 0,
        data_parallel: int = 0,
        zero_stage: ZeroStage = 1,
        fused_cross_entropy: bool = False,
        stack: Optional[str] = None,
    ) -> Layers:
        """The layers as they run on `machine`, for a micro-batch of `vision` vision units and `tokens` tokens
        whose squared lengths sum to `squares` (0: four equal samples). `stack` is the trainer's software, as
        `read_stack` takes it."""
        options = VlmLayersOptions.pick(
            locals(), zero_stage=choice("zero_stage", zero_stage, ZERO_STAGES), stack=text_bytes(stack)
        )
        return Layers._make(lib.hbp_vlm_create_layers, self, machine, ctypes.byref(options))

    def __reduce__(self) -> Any:
        return _unpickle, (self.name, self.fields.as_dict(), self.language)

    def __repr__(self) -> str:
        return f"<hbp.Vlm {self.name}>"


def _unpickle(name: str, fields: Mapping[str, int], language: Model) -> Vlm:
    """A model of these fields; of a name no preset has only "custom" is left."""
    if name in Vlm.presets():
        preset = Vlm.preset(name)
        if preset.fields.as_dict() == fields and preset.language.fields == language.fields:
            return preset
    return Vlm(language=language, **fields)

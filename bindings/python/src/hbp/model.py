"""The transformer: a preset, its fields, or a Hugging Face config.json."""

from __future__ import annotations

import ctypes
import json
from typing import Any, Mapping, Union

from . import _native
from ._context import Owned, call
from ._files import Path, path_bytes
from ._native import lib, presets
from ._numbers import fields_text, int32, text_bytes
from ._records import ModelFields, ModelSummary


class Model(Owned):
    """A decoder-only transformer. Immutable.

    Model(layers=32, hidden=4096, ffn=14336, heads=32, kv_heads=8, vocab=128256); the fields are those of
    hbp.ModelFields, `mlp` is "gated" or "plain"."""

    _opaque = _native.Model
    _free = "hbp_model_free"

    def __init__(self, **fields: Any) -> None:
        self._handle = Model._make(lib.hbp_model_create, ctypes.byref(ModelFields(**fields)))._handle

    @classmethod
    def preset(cls, text: str) -> Model:
        """A known model, "llama-3.1-8b", also with fields replaced, "llama-3.1-8b,layers=4"; or fields alone,
        "layers=4,hidden=512,..."."""
        return cls._make(lib.hbp_model_create_preset, text_bytes(text))

    @classmethod
    def _of_text(cls, text: bytes) -> Model:
        return cls._make(lib.hbp_model_create_text, text)

    def variant(self, **fields: int) -> Model:
        """This model with fields replaced: variant(layers=4)."""
        return Model._make(lib.hbp_model_create_variant, self, text_bytes(fields_text(fields)))

    @staticmethod
    def presets() -> list[str]:
        """The presets' names."""
        return presets("model")

    @classmethod
    def config(cls, config: Union[Path, Mapping[str, Any]]) -> Model:
        """From a Hugging Face config.json: its path or that of its folder, its text as bytes, or the mapping in it."""
        if isinstance(config, Mapping):
            config = json.dumps(dict(config)).encode()
        if isinstance(config, (bytes, bytearray)):
            return cls._make(lib.hbp_model_create_config, bytes(config), len(config))
        return cls._make(lib.hbp_model_load, path_bytes(config))

    @property
    def name(self) -> str:
        """The preset's name, the config's model_type, or "custom"."""
        return str(lib.hbp_model_get_name(self).decode())

    @property
    def fields(self) -> ModelFields:
        """A copy of the fields, defaults filled in."""
        fields = ModelFields()
        call(lib.hbp_model_get_fields, self, ctypes.byref(fields))
        return fields

    def summary(self) -> ModelSummary:
        """Parameters, bytes and operations that follow from the fields."""
        summary = ModelSummary()
        call(lib.hbp_model_get_summary, self, ctypes.byref(summary))
        return summary

    def is_sp_legal(self, sp: int) -> bool:
        """Whether Ulysses sequence parallelism of degree `sp` suits the heads."""
        return bool(lib.hbp_model_is_sp_legal(self, int32("sp", sp)))

    def __reduce__(self) -> Any:
        return _unpickle, (self.name, self.fields.as_dict())

    def __repr__(self) -> str:
        return f"<hbp.Model {self.name}>"


def _unpickle(name: str, fields: Mapping[str, int]) -> Model:
    """A model of these fields; of a name no preset has only "custom" is left."""
    if name in Model.presets():
        preset = Model.preset(name)
        if preset.fields.as_dict() == fields:
            return preset
    return Model(**fields)

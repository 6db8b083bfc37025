"""The transformer: a preset, fields, or a Hugging Face config.json."""

from __future__ import annotations

import json
import os
from ctypes import byref
from typing import Any, Mapping, Union

from . import _structs as s
from ._context import Handle, Object, call, fields, make, name_bytes, path_bytes
from ._native import lib, text


class Model(Object):
    """A decoder-only transformer. Immutable; any number of threads may use one."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    @classmethod
    def preset(cls, name: str) -> "Model":
        """A preset by its name, such as "llama-3.1-8b"; Model.presets() lists them."""
        return cls(make(lib.hbp_model_create_preset, name_bytes(name), free=lib.hbp_model_free))

    @staticmethod
    def presets() -> list[str]:
        return [text(lib.hbp_model_get_preset_name(i)) for i in range(lib.hbp_model_count_presets())]

    @classmethod
    def from_fields(cls, *, mlp: str = "gated", **values: int) -> "Model":
        """A model from the fields of hbp_model_fields: layers, hidden, ffn, heads, kv_heads, vocab, ..."""
        return cls(make(lib.hbp_model_create, byref(struct_of(s.ModelFields, "Model.from_fields", values,
                                                              mlp=s.code(s.MLP, mlp, "mlp"))), free=lib.hbp_model_free))

    @classmethod
    def config(cls, config: Union[str, "os.PathLike[str]", Mapping[str, Any], bytes]) -> "Model":
        """A Hugging Face config: the path of a config.json, a mapping (config.to_dict()), or JSON text as bytes."""
        if isinstance(config, (str, os.PathLike)):
            return cls(make(lib.hbp_model_load_config, path_bytes(config), free=lib.hbp_model_free))
        data = config if isinstance(config, bytes) else json.dumps(config).encode()
        return cls(make(lib.hbp_model_create_config, data, len(data), free=lib.hbp_model_free))

    @property
    def name(self) -> str:
        return text(lib.hbp_model_get_name(self))

    @property
    def fields(self) -> dict[str, Any]:
        """hbp_model_fields, defaults filled in; mlp by name."""
        found = s.ModelFields()
        call(lib.hbp_model_get_fields, self, byref(found))
        return {**fields(found), "mlp": s.MLP[found.mlp]}

    @property
    def summary(self) -> dict[str, Any]:
        """hbp_model_summary: parameters, activation_bytes, max_sp, ..."""
        found = s.ModelSummary()
        call(lib.hbp_model_get_summary, self, byref(found))
        return fields(found)

    def is_sp_legal(self, sp: int) -> bool:
        """Whether Ulysses sequence parallelism of degree `sp` divides the heads."""
        return bool(lib.hbp_model_is_sp_legal(self, sp))

    def __repr__(self) -> str:
        return f"<hbp.Model {self.name}: {self.summary['parameters'] / 1e9:.2f}e9 parameters>"

    def __reduce__(self):
        return _restore, (self.name, self.fields)


def _restore(name: str, values: dict[str, Any]) -> Model:
    """Unpickles: a preset keeps its name, any other model is made from its fields."""
    if name in Model.presets():
        model = Model.preset(name)
        if model.fields == values:
            return model
    return Model.from_fields(**values)


def struct_of(kind, caller: str, values: Mapping[str, Any], **known: Any):
    """An open struct from keyword arguments; TypeError for one that is no field."""
    for name in values:
        if name not in kind.names():
            raise TypeError(f"{caller}() has no field {name!r}; it has {', '.join(kind.names())}")
    return kind(**values, **known)

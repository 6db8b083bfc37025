"""The layers of a model, with what each takes and holds: what stages are cut from."""

from __future__ import annotations

import ctypes
from typing import Any, Literal, Mapping, Optional, Sequence, Union

import numpy as np
import numpy.typing as npt

from . import _native
from ._arrays import ViewColumn, addresses, column_arrays, columns_of, integers, plain, read_view, same_count
from ._context import Owned
from ._files import Path, path_bytes
from ._inputs import Integers
from ._native import lib
from ._numbers import choice, suggesting, text_bytes
from ._records import LayerColumns, LayersView

LayerType = Literal["language", "vision", "fixed"]
RecomputeName = Literal["none", "attention", "mlp", "layer"]
LAYER_TYPES: dict[LayerType, int] = {"language": 0, "vision": 1, "fixed": 2}
RECOMPUTE: dict[RecomputeName, int] = {"none": 0, "attention": 1, "mlp": 2, "layer": 3}

Types = Union[LayerType, Sequence[LayerType], Integers]


def named(name: str, values: Any, choices: Mapping[Any, int], count: int) -> npt.NDArray[np.int32]:
    """A constant for each of `count` layers: names, the numbers themselves, or one name for all."""
    if isinstance(values, str):
        return np.full(count, choice(name, values, choices), np.int32)
    array = plain(name, values)
    if array.ndim == 1 and array.dtype.kind in "UO":
        array = np.array([choice(name, value, choices) for value in array.tolist()], np.int32)
    return same_count(name, integers(name, array, np.int32), count)


class Layers(Owned):
    """The layers of a model in the order in which a micro-batch meets them. Immutable.

    Columns have a value a layer, of one GPU's share and for the reference micro-batch: times in nanoseconds,
    sizes in bytes. They are read-only numpy views of the library's memory and keep the layers alive."""

    _opaque = _native.Layers
    _free = "hbp_layers_free"
    _view = LayersView
    _get_view = "hbp_layers_get_view"

    forward_ns = ViewColumn[np.int64]("layers", "Forward time.")
    backward_ns = ViewColumn[np.int64]("layers", "Backward time, without recomputation.")
    parameters = ViewColumn[np.int64]("layers", "Parameters.")
    state_bytes = ViewColumn[np.int64]("layers", "Weights, gradients and optimiser states.")
    activation_bytes = ViewColumn[np.int64]("layers", "Kept for backward with nothing recomputed.")
    recomputed_bytes = ViewColumn[np.int64]("layers", "Kept for backward with the layer recomputed.")
    working_bytes = ViewColumn[np.int64]("layers", "More while the layer is recomputed.")
    attention_bytes = ViewColumn[np.int64]("layers", "Freed by recomputing attention alone; 0: cannot be chosen.")
    attention_ns = ViewColumn[np.int64]("layers", "What that takes.")
    mlp_bytes = ViewColumn[np.int64]("layers", "Freed by recomputing the feed-forward part alone; 0: cannot be chosen.")
    mlp_ns = ViewColumn[np.int64]("layers", "What that takes.")
    recompute_ns = ViewColumn[np.int64]("layers", "What recomputing the whole layer takes.")
    cut_bytes = ViewColumn[np.int64]("layers", "Sent on when a stage ends behind the layer.")
    type = ViewColumn[np.int32]("layers", "What each layer grows with, as LAYER_TYPES names it.")
    cut_type = ViewColumn[np.int32]("layers", "What the bytes sent on behind it grow with.")

    @suggesting
    def __init__(
        self,
        forward_ns: Integers,
        backward_ns: Optional[Integers] = None,
        *,
        type: Optional[Types] = None,
        parameters: Optional[Integers] = None,
        state_bytes: Optional[Integers] = None,
        activation_bytes: Optional[Integers] = None,
        recomputed_bytes: Optional[Integers] = None,
        working_bytes: Optional[Integers] = None,
        attention_bytes: Optional[Integers] = None,
        attention_ns: Optional[Integers] = None,
        mlp_bytes: Optional[Integers] = None,
        mlp_ns: Optional[Integers] = None,
        recompute_ns: Optional[Integers] = None,
        cut_bytes: Optional[Integers] = None,
        cut_type: Optional[Types] = None,
        names: Optional[Sequence[str]] = None,
    ) -> None:
        """Measured layers. `type` says what a layer grows with, "language" (tokens), "vision" (vision units) or
        "fixed", one for all or one a layer; `cut_type` the same of `cut_bytes`, by default `type`. A column
        left out is zeros, but backward_ns is twice forward_ns, recompute_ns is forward_ns, working_bytes is
        what recomputation frees."""
        given = columns_of(LayerColumns, locals())
        del given["type"], given["cut_type"]
        arrays = column_arrays(LayerColumns, given)
        count = len(arrays["forward_ns"])
        for name, types in (("type", type), ("cut_type", cut_type)):
            if types is not None:
                arrays[name] = named(name, types, LAYER_TYPES, count)
        texts = None if names is None else _texts(names, count)
        columns = LayerColumns(
            count=count,
            names=None if texts is None else ctypes.addressof(texts),
            **addresses(arrays),
        )
        self._handle = Layers._make(lib.hbp_layers_create, ctypes.byref(columns))._handle

    @classmethod
    def read(cls, path: Path) -> Layers:
        """From CSV or JSON lines with columns named as the arguments of Layers, and `name`; `forward_us`,
        `activation_mib` and the like say other units than nanoseconds and bytes. "-" is standard input."""
        return cls._make(lib.hbp_layers_load, path_bytes(path))

    @property
    def names(self) -> list[str]:
        """The layers' names; "layer 0", ... where none was given."""
        names = ctypes.cast(read_view(self).names, ctypes.POINTER(ctypes.c_char_p))
        return [names[layer].decode() for layer in range(len(self))]

    @property
    def counts(self) -> dict[str, int]:
        """Layers of each type."""
        found = np.bincount(self.type, minlength=len(LAYER_TYPES)).tolist()
        return {name: found[type] for name, type in LAYER_TYPES.items()}

    def __len__(self) -> int:
        return int(read_view(self).layers)

    def __repr__(self) -> str:
        counts = ", ".join(f"{count} {name}" for name, count in self.counts.items() if count)
        return f"<hbp.Layers: {counts}>"


def _texts(names: Sequence[str], count: int) -> Any:
    """Names as an array of C strings, which the caller keeps alive."""
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        raise TypeError(f"names is {names!r}; it must be a list of texts")
    if len(names) != count:
        raise ValueError(f"names has {len(names)} values; it must have {count}")
    return (ctypes.c_char_p * count)(*(text_bytes(name) for name in names))

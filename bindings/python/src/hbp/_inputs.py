"""What callers give for integers: numpy, lists, Arrow, pandas, tensors, buffers or any iterable."""

from __future__ import annotations

import operator
from typing import Any, Iterable, Mapping, Protocol, Union

import numpy as np
import numpy.typing as npt


class ArrowArrayLike(Protocol):
    """An Arrow array of any library."""

    def __arrow_c_array__(self, requested_schema: Any = None) -> Any: ...


class ArrowStreamLike(Protocol):
    """A chunked Arrow array, or a Series, of any library."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ...


class DLPackLike(Protocol):
    """A tensor of any library."""

    def __dlpack__(self) -> Any: ...


# One integer a sample, in any form.
Integers = Union[npt.ArrayLike, Iterable[int], ArrowArrayLike, ArrowStreamLike, DLPackLike]


def _is_buffer(values: Any) -> bool:
    try:
        memoryview(values)
    except TypeError:
        return False
    return True


def _listed(values: Any) -> Any:
    """What an iterable holds. A lazy column (of datasets, say) is read at once, not row by row."""
    if hasattr(values, "__getitem__") and hasattr(values, "__len__"):
        try:
            whole = values[:]
        except Exception:
            whole = None
        if type(whole) is not type(values) and (
            isinstance(whole, (list, tuple)) or hasattr(whole, "__array__")
        ):
            return whole
    return list(values)


def plain(name: str, values: Any) -> npt.NDArray[Any]:
    """`values` as an array, where possible without a copy. A mask would be lost when passed to C, so masked
    values are refused; so are nulls of Arrow. What they hold is for the caller to check."""
    masked = int(np.sum(values.mask)) if isinstance(values, np.ma.MaskedArray) else 0
    if masked:
        raise TypeError(
            f"{name} has {masked} masked values of {values.size}; give it compressed() or filled()"
        )
    if isinstance(values, (np.ndarray, np.generic)):
        return np.asarray(values)
    arrow = hasattr(values, "__arrow_c_array__") or hasattr(values, "__arrow_c_stream__")
    if arrow and not hasattr(values, "iloc"):  # pandas would import pyarrow for it
        from ._arrow import from_arrow

        return from_arrow(name, values)
    try:
        if hasattr(values, "detach"):  # a tensor of PyTorch, on any device
            values = values.detach().cpu().numpy()
        elif (
            not hasattr(values, "__array__") and hasattr(values, "__dlpack__") and hasattr(np, "from_dlpack")
        ):
            values = np.from_dlpack(values)
        if hasattr(values, "__array__"):
            return np.asarray(values)
    except (TypeError, BufferError, RuntimeError) as error:
        raise TypeError(f"{name} cannot be read as an array: {error}") from error
    if isinstance(values, (str, bytes)) or not hasattr(values, "__iter__") or _is_buffer(values):
        return np.asarray(values)
    if not isinstance(values, (list, tuple, range)):
        values = _listed(values)
        if hasattr(values, "__array__"):
            return plain(name, values)
    try:
        return np.asarray(values)
    except (ValueError, OverflowError):  # lists of different lengths
        held = np.empty(len(values), object)
        held[:] = values
        return held


def _is_integer(value: Any) -> bool:
    try:
        operator.index(value)
    except TypeError:
        return False
    return True


def _short(value: Any) -> str:
    import reprlib

    return reprlib.repr(value.item() if isinstance(value, np.generic) else value)


def listed_integers(name: str, given: Any, array: npt.NDArray[Any]) -> list[int]:
    """The ints in `array`, 1-D and of no integer type, which was made of `given`; TypeError for the first
    value that is none."""
    kind = array.dtype.kind
    if kind == "f" and not isinstance(given, (list, tuple)):
        wrong = ~np.isfinite(array)
        wrong = wrong if wrong.any() else array != np.trunc(array)
        row = int(wrong.argmax())
    elif kind in "Of":  # numpy makes floats of ints beyond 64 bits beside others
        items = given if isinstance(given, (list, tuple)) else array.tolist()
        row = next((row for row, value in enumerate(items) if not _is_integer(value)), -1)
        if row < 0:
            return [operator.index(value) for value in items]
        array = array if kind == "f" else np.asarray(items, object)
        if kind == "O":
            raise TypeError(f"{name}[{row}] is {_short(items[row])}; it must be an integer")
    else:  # numpy makes text of numbers beside text
        mixed = kind == "U" and isinstance(given, (list, tuple))
        row = next((row for row, value in enumerate(given) if not _is_integer(value)), 0) if mixed else 0
    raise TypeError(
        f"{name} holds {array.dtype}: {name}[{row}] is {_short(array[row])}; it must hold integers"
    )


def refuse_unordered(name: str, values: Any) -> None:
    """TypeError for what has no place for each sample."""
    is_hbp = type(values).__module__.partition(".")[0] == __package__
    if values is None or is_hbp or isinstance(values, (str, bytes, Mapping, set, frozenset, int, float)):
        meant = ", such as the array it was made of" if is_hbp else ""
        raise TypeError(f"{name} is {_short(values)}; it must be a sequence of integers{meant}")

"""Arrays: into C without a copy where type and layout fit, out of C as views that keep their owner alive."""

from __future__ import annotations

import ctypes
from typing import Any, Generic, Mapping, Optional, Sequence, Type, TypeVar, overload

import numpy as np
import numpy.typing as npt

from ._inputs import Integers, listed_integers, refuse_unordered
from ._inputs import plain as plain
from ._native import lib
from ._records import Struct

Scalar = TypeVar("Scalar", bound=np.generic)


class _Memory:
    """Memory of the library under numpy's array protocol; numpy keeps it as the array's base, and it the
    owner."""

    __slots__ = ("__array_interface__", "_owner")

    def __init__(self, pointer: int, count: int, dtype: np.dtype[Any], owner: Any) -> None:
        self.__array_interface__ = {
            "version": 3,
            "shape": (count,),
            "typestr": dtype.str,
            "data": (pointer, True),
        }
        self._owner = owner


def view(pointer: Optional[int], count: int, dtype: npt.DTypeLike, owner: Any) -> npt.NDArray[Any]:
    """A read-only array over memory that `owner` keeps alive."""
    dtype = np.dtype(dtype)
    if not pointer or count <= 0:
        empty = np.empty(0, dtype)
        empty.flags.writeable = False
        return empty
    return np.asarray(_Memory(pointer, count, dtype, owner))


def texts(pointer: Optional[int], count: int) -> list[str]:
    """A column of texts."""
    rows = ctypes.cast(ctypes.c_void_p(pointer), ctypes.POINTER(ctypes.c_char_p))
    return [(rows[row] or b"").decode() for row in range(count)]


class AnyColumn(Generic[Scalar]):
    """A column of a table: a read-only numpy view, made on first use."""

    def __init__(self, doc: str) -> None:
        self._name = ""
        self.__doc__ = doc

    def __set_name__(self, owner: Any, name: str) -> None:
        self._name = name

    def _find(self, instance: Any) -> "tuple[Optional[int], int, npt.DTypeLike]":
        """Where the column lies, its rows and their type."""
        raise NotImplementedError

    def _read(self, instance: Any, optional: bool = False) -> Any:
        pointer, count, dtype = self._find(instance)
        column = None if optional and not pointer else view(pointer, count, dtype, instance._handle)
        instance.__dict__[self._name] = column
        return column


def read_view(instance: Any) -> Any:
    """The view of an object, read once: its columns stay where they are for as long as it lives."""
    found = instance.__dict__.get("_view_read")
    if found is None:
        found = instance._view()
        if getattr(lib, instance._get_view)(instance, ctypes.byref(found)) < 0:
            raise SystemError(f"{instance._get_view} refuses its own struct")
        instance.__dict__["_view_read"] = found
    return found


class _OfView(AnyColumn[Scalar]):
    """The column of the same name of the object's view, of `rows` rows and `extra` more."""

    def __init__(self, rows: str, doc: str, extra: int = 0) -> None:
        super().__init__(doc)
        self._rows = rows
        self._extra = extra

    def _find(self, instance: Any) -> "tuple[Optional[int], int, npt.DTypeLike]":
        found = read_view(instance)
        rows = getattr(found, self._rows) + self._extra
        return getattr(found, self._name), rows, found._record[self._name].column


class ViewColumn(_OfView[Scalar]):
    """A column that is always there."""

    @overload
    def __get__(self, instance: None, owner: Any = None) -> ViewColumn[Scalar]: ...

    @overload
    def __get__(self, instance: object, owner: Any = None) -> npt.NDArray[Scalar]: ...

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else self._read(instance)


class OptionalViewColumn(_OfView[Scalar]):
    """A column that may be absent: None."""

    @overload
    def __get__(self, instance: None, owner: Any = None) -> OptionalViewColumn[Scalar]: ...

    @overload
    def __get__(self, instance: object, owner: Any = None) -> Optional[npt.NDArray[Scalar]]: ...

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else self._read(instance, optional=True)


def integers(name: str, values: Any, dtype: Optional[npt.DTypeLike] = None) -> npt.NDArray[Any]:
    """`values` as a contiguous 1-D array of integers of `dtype`, of their own type without one; the array
    itself when it is one already."""
    refuse_unordered(name, values)
    array = plain(name, values)
    if array.ndim != 1:
        raise ValueError(f"{name} has {array.ndim} dimensions; it must have one")
    whole = array.dtype.kind in "iu"
    native = array.dtype if whole else np.dtype(np.int64)
    target = native if dtype is None else np.dtype(dtype)
    if array.size == 0:
        return np.empty(0, target)
    listed = None if whole else listed_integers(name, values, array)
    if listed is not None or not np.can_cast(array.dtype, target):
        low, high = (min(listed), max(listed)) if listed is not None else (int(array.min()), int(array.max()))
        limits = np.iinfo(target.str if target.kind in "iu" else "i8")
        if low < limits.min or high > limits.max:
            worst = low if low < limits.min else high
            raise OverflowError(f"{name} holds {worst}; it must be in {limits.min}..{limits.max}")
    made = array.astype(target, copy=False) if listed is None else np.array(listed, target)
    return np.require(made, requirements=["C", "A"])


def floats(name: str, values: Any) -> npt.NDArray[np.float64]:
    """`values` as a contiguous 1-D array of doubles."""
    array = np.require(plain(name, values).astype(np.float64, copy=False), requirements=["C", "A"])
    if array.ndim != 1:
        raise ValueError(f"{name} has {array.ndim} dimensions; it must have one")
    return array


def joined(
    name: str, rows: Sequence[Integers]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Offsets and values of arrays laid end to end."""
    arrays = [integers(f"{name}[{index}]", row, np.int64) for index, row in enumerate(rows)]
    offsets = np.zeros(len(arrays) + 1, np.int64)
    np.cumsum([len(array) for array in arrays], out=offsets[1:])
    return offsets, np.concatenate([np.zeros(0, np.int64), *arrays])


def same_count(name: str, array: npt.NDArray[Any], count: int) -> npt.NDArray[Any]:
    """`array`, refused unless it has `count` values."""
    if len(array) != count:
        raise ValueError(f"{name} has {len(array)} values; it must have {count}")
    return array


def columns_of(kind: Type[Struct], values: Mapping[str, Any]) -> dict[str, Any]:
    """Those `values` that are columns of a struct, such as the keywords of a call among its locals()."""
    return {name: values.get(name) for name, field in kind._record.items() if field.column}


def column_arrays(
    kind: Type[Struct], columns: Mapping[str, Any], count: Optional[int] = None
) -> dict[str, npt.NDArray[Any]]:
    """The columns that are not None as arrays of integers of a struct's types, each of `count` values or of as
    many as the first."""
    arrays: dict[str, npt.NDArray[Any]] = {}
    for name, values in columns.items():
        if values is not None:
            array = integers(name, values, kind._record[name].column)
            count = len(array) if count is None else count
            arrays[name] = same_count(name, array, count)
    return arrays


def addresses(arrays: Mapping[str, npt.NDArray[Any]]) -> dict[str, Any]:
    """Where each array's values are; the caller keeps the arrays alive."""
    return {name: address(array) for name, array in arrays.items()}


def address(array: Optional[npt.NDArray[Any]]) -> Optional[int]:
    """Where an array's values are; the caller keeps the array alive."""
    return None if array is None else array.__array_interface__["data"][0]

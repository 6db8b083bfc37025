"""Arrow's arrays as numpy arrays, by its C data interface: nothing of Arrow has to be installed."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import numpy.typing as npt

from ._arrays import view

# The interface's letters for numbers.
FORMATS = {
    "c": "i1",
    "C": "u1",
    "s": "i2",
    "S": "u2",
    "i": "i4",
    "I": "u4",
    "l": "i8",
    "L": "u8",
    "e": "f2",
    "f": "f4",
    "g": "f8",
}


class ArrowSchema(ctypes.Structure):
    _fields_ = [
        ("format", ctypes.c_char_p),
        ("name", ctypes.c_char_p),
        ("metadata", ctypes.c_void_p),
        ("flags", ctypes.c_int64),
        ("n_children", ctypes.c_int64),
        ("children", ctypes.c_void_p),
        ("dictionary", ctypes.c_void_p),
        ("release", ctypes.c_void_p),
        ("private_data", ctypes.c_void_p),
    ]


class ArrowArray(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_int64) for name in ("length", "null_count", "offset", "n_buffers", "n_children")),
        ("buffers", ctypes.POINTER(ctypes.c_void_p)),
        ("children", ctypes.c_void_p),
        ("dictionary", ctypes.c_void_p),
        ("release", ctypes.c_void_p),
        ("private_data", ctypes.c_void_p),
    ]


class ArrowStream(ctypes.Structure):
    _fields_ = [
        ("get_schema", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)),
        ("get_next", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)),
        ("get_last_error", ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.c_void_p)),
        ("release", ctypes.c_void_p),
        ("private_data", ctypes.c_void_p),
    ]


_RELEASE = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class _Received:
    """A struct that a stream filled in, released when nothing needs it any more."""

    def __init__(self, struct: Any) -> None:
        self.struct = struct

    def __del__(self) -> None:
        if self.struct.release:
            _RELEASE(self.struct.release)(ctypes.addressof(self.struct))


def _struct(capsule: Any, name: bytes, kind: Any) -> Any:
    """The struct in a capsule, which goes on owning it."""
    pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", ctypes.pythonapi)
    )(capsule, name)
    return kind.from_address(pointer)


def _dtype(name: str, schema: Any) -> str:
    form = (schema.format or b"").decode()
    if form == "+s":
        raise TypeError(f"{name} is an Arrow table or struct; give one of its columns")
    if schema.dictionary:
        raise TypeError(f"{name} is an Arrow array of dictionary indices; decode it first")
    if form not in FORMATS:
        raise TypeError(f"{name} is an Arrow array of format {form!r}; it must hold integers")
    return FORMATS[form]


def _values(name: str, array: Any, dtype: str, owner: Any, before: int) -> npt.NDArray[Any]:
    """The values of an array that `owner` keeps alive; a null is refused, `before` values further on."""
    bits = array.buffers[0] if array.n_buffers else None
    if bits and array.null_count:
        end = array.offset + array.length
        known = np.unpackbits(view(bits, -(-end // 8), np.uint8, owner), bitorder="little")[
            array.offset : end
        ]
        if not known.all():
            raise TypeError(f"{name}[{before + int(known.argmin())}] is null; it must be an integer")
    values = array.buffers[1] or 0
    return view(values and values + array.offset * np.dtype(dtype).itemsize, array.length, dtype, owner)


def from_arrow(name: str, values: Any) -> npt.NDArray[Any]:
    """`values`, which has __arrow_c_array__ or __arrow_c_stream__; several chunks are copied into one."""
    if hasattr(values, "__arrow_c_array__"):
        of_schema, of_array = values.__arrow_c_array__()
        dtype = _dtype(name, _struct(of_schema, b"arrow_schema", ArrowSchema))
        return _values(name, _struct(of_array, b"arrow_array", ArrowArray), dtype, of_array, 0)
    capsule = values.__arrow_c_stream__()
    stream = _struct(capsule, b"arrow_array_stream", ArrowStream)

    def get(function: Any, kind: Any) -> _Received:
        made = _Received(kind())
        if function(ctypes.addressof(stream), ctypes.addressof(made.struct)):
            why = stream.get_last_error(ctypes.addressof(stream)) or b"no reason given"
            raise TypeError(f"{name} cannot be read: {why.decode(errors='replace')}")
        return made

    schema = get(stream.get_schema, ArrowSchema)
    dtype = _dtype(name, schema.struct)
    chunks, rows = [np.empty(0, dtype)], 0
    while True:
        chunk = get(stream.get_next, ArrowArray)
        if not chunk.struct.release:
            break
        if chunk.struct.length:
            chunks.append(_values(name, chunk.struct, dtype, chunk, rows))
        rows += chunk.struct.length
    return chunks[-1] if len(chunks) <= 2 else np.concatenate(chunks)

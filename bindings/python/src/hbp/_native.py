"""The shared library: where it is, whether it fits, and its functions with their types.

CDLL releases the interpreter's lock while a function runs.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import os
import pathlib
import sys

from ._functions import FUNCTIONS

ABI_VERSION = 0  # HBP_ABI_VERSION of the headers that _functions.py and _structs.py mirror


def _candidates() -> list[str]:
    """HBP_LIBRARY alone when it is set; else the library in this package, then the system's."""
    given = os.environ.get("HBP_LIBRARY")
    if given:
        return [given]
    here = pathlib.Path(__file__).resolve().parent
    names = {"darwin": ["libhbp.dylib"], "win32": ["hbp.dll"]}.get(sys.platform, ["libhbp.so.0", "libhbp.so"])
    packaged = [str(here / name) for name in names if (here / name).exists()]
    found = ctypes.util.find_library("hbp")
    return packaged + ([found] if found else []) + names


def _load() -> ctypes.CDLL:
    reasons = []
    for path in _candidates():
        try:
            library = ctypes.CDLL(path)
        except OSError as error:
            reasons.append(str(error))
            continue
        _declare(library, path)
        return library
    raise ImportError("hbp finds no libhbp; set HBP_LIBRARY to its path. Tried: " + "; ".join(reasons))


def _declare(library: ctypes.CDLL, path: str) -> None:
    try:
        library.hbp_version_abi.restype, library.hbp_version_abi.argtypes = FUNCTIONS["hbp_version_abi"]
        abi = library.hbp_version_abi()
        if abi != ABI_VERSION:
            raise ImportError(f"{path} has ABI version {abi}; this package needs {ABI_VERSION}")
        for name, (result, arguments) in FUNCTIONS.items():
            function = getattr(library, name)
            function.restype, function.argtypes = result, arguments
    except AttributeError as error:
        raise ImportError(f"{path} is not the libhbp of this package: {error}") from None


lib = _load()


def text(value: bytes | None) -> str | None:
    """A C string; the library's texts are UTF-8, except a path that it repeats."""
    return None if value is None else value.decode("utf-8", "replace")

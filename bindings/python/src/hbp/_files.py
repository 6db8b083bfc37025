"""Paths passed to C, and files as bytes."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Callable, Optional, TypeVar, Union

from ._context import Owned

if TYPE_CHECKING:
    import tempfile

Path = Union[str, bytes, "os.PathLike[Any]"]
T = TypeVar("T")


def path_bytes(path: Path) -> bytes:
    """A path as C wants it."""
    name = os.fsencode(path)
    if b"\0" in name:
        raise ValueError(f"path {path!r} holds a NUL byte")
    return name


def _folder() -> tempfile.TemporaryDirectory[str]:
    import tempfile  # when it is wanted: it loads much

    return tempfile.TemporaryDirectory(prefix="hbp-")


def file_bytes(save: Callable[[str], Any]) -> bytes:
    """What `save` writes to the path that it is given."""
    with _folder() as folder:
        path = os.path.join(folder, "file")
        save(path)
        with open(path, "rb") as file:
            return file.read()


def from_file_bytes(load: Callable[[str], T], data: bytes) -> T:
    """What `load` makes of a file that holds `data`."""
    with _folder() as folder:
        path = os.path.join(folder, "file")
        with open(path, "wb") as file:
            file.write(data)
        return load(path)


class Saved(Owned):
    """An object that has a file: `save` writes it, the method that `_load` names reads it. Pickled as that
    file."""

    _load = "load"
    save: Callable[..., Any]

    def __reduce__(self) -> Any:
        return from_file_bytes, (getattr(type(self), self._load), file_bytes(self.save))

"""What a failed call raises: one class a status, each also the built-in exception that it is a case of."""

from __future__ import annotations

import errno
import os
import re
from typing import Any, TypeVar

from . import _native


class HbpError(Exception):
    """A failed call. `status` is the C status, `name` its name, "HBP_E_INVALID"; the message is the library's
    own."""

    status: int
    name: str

    def __init__(self, status: int, message: str = "") -> None:
        self.status = status
        self.name = _native.lib.hbp_status_name(status).decode()
        self.message = message or _native.lib.hbp_status_text(status).decode()
        super().__init__(self.message)

    @property
    def samples(self) -> tuple[int, ...]:
        """The samples that the message names."""
        return tuple(int(number) for number in re.findall(r"\bsamples? (\d+)", self.message))

    def __str__(self) -> str:
        return self.message

    def __reduce__(self) -> Any:
        return type(self), (self.status, self.message)


class OutOfMemory(HbpError, MemoryError):
    """HBP_E_NO_MEMORY."""


class InvalidError(HbpError, ValueError):
    """HBP_E_INVALID: an argument makes no sense; the message names it, its value and the limit."""


class InfeasibleError(HbpError):
    """HBP_E_INFEASIBLE: no plan exists; the message says what is missing."""


class CancelledError(HbpError):
    """HBP_E_CANCELLED: a progress callback asked to stop."""


class TooLargeError(HbpError, OverflowError):
    """HBP_E_OVERFLOW."""


class FormatError(HbpError, ValueError):
    """HBP_E_FORMAT: a damaged file; the message has the line or byte offset."""


class VersionError(HbpError):
    """HBP_E_VERSION: a file of a version that this library does not read."""


class SolverError(HbpError):
    """HBP_E_SOLVER."""


class SystemFailure(HbpError, OSError):
    """HBP_E_SYSTEM: the system refused; the message has its reason."""

    def __init__(self, status: int, message: str = "") -> None:
        HbpError.__init__(self, status, message)


class MissingFileError(SystemFailure, FileNotFoundError):
    """HBP_E_SYSTEM: there is no such file."""

    def __init__(self, status: int, message: str = "") -> None:
        SystemFailure.__init__(self, status, message)
        self.errno = errno.ENOENT


class InternalError(HbpError):
    """HBP_E_INTERNAL: a fault in the library; please report it."""


_CLASSES: dict[int, type[HbpError]] = {
    -1: OutOfMemory,
    -2: InvalidError,
    -3: InfeasibleError,
    -4: CancelledError,
    -5: TooLargeError,
    -6: FormatError,
    -7: VersionError,
    -8: SolverError,
    -9: SystemFailure,
    -10: InternalError,
}


E = TypeVar("E", bound=HbpError)


def refusal(kind: type[E], message: str) -> E:
    """What this package itself raises, with the status of its class."""
    return kind(next(status for status, of in _CLASSES.items() if issubclass(kind, of)), message)


def error_of(status: int, message: str) -> HbpError:
    """The exception for a status below zero."""
    kind = _CLASSES.get(status, HbpError)
    # What the library advises its callers to do, as it is done here.
    message = message.replace("hbp_lengths_limit", "lengths.limit(max_length, over_long)")
    if kind is SystemFailure and message.endswith(f": {os.strerror(errno.ENOENT)}"):
        kind = MissingFileError
    return kind(status, message)

"""What a failed call raises: one class a status, each also the built-in error that callers expect."""

from __future__ import annotations


class HbpError(Exception):
    """A call of libhbp failed. `status` is the number, `name` the constant, the text names thing, value and limit."""

    status: int = 0
    name: str = "HBP_E_UNKNOWN"

    def __init__(self, message: str = "", status: int | None = None, name: str | None = None) -> None:
        super().__init__(message)
        if status is not None:
            self.status = status
        if name is not None:
            self.name = name

    def __reduce__(self):
        return type(self), (self.args[0] if self.args else "", self.status, self.name)


class OutOfMemory(HbpError, MemoryError):
    status, name = -1, "HBP_E_NO_MEMORY"


class InvalidError(HbpError, ValueError):
    status, name = -2, "HBP_E_INVALID"


class InfeasibleError(HbpError):
    status, name = -3, "HBP_E_INFEASIBLE"


class CancelledError(HbpError):
    status, name = -4, "HBP_E_CANCELLED"


class TooLargeError(HbpError, OverflowError):
    status, name = -5, "HBP_E_OVERFLOW"


class FormatError(HbpError, ValueError):
    status, name = -6, "HBP_E_FORMAT"


class VersionError(HbpError):
    status, name = -7, "HBP_E_VERSION"


class SolverError(HbpError):
    status, name = -8, "HBP_E_SOLVER"


class SystemFailure(HbpError, OSError):
    status, name = -9, "HBP_E_SYSTEM"


class InternalError(HbpError, RuntimeError):
    status, name = -10, "HBP_E_INTERNAL"


CLASSES = {
    error.status: error
    for error in (OutOfMemory, InvalidError, InfeasibleError, CancelledError, TooLargeError, FormatError, VersionError,
                  SolverError, SystemFailure, InternalError)
}


def make(status: int, name: str, message: str) -> HbpError:
    """The exception for a status; a status newer than this package is a plain HbpError."""
    return CLASSES.get(status, HbpError)(message or name, status, name)

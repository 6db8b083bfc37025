"""Contexts, calls and handles: what stands between a Python method and a C function.

A hbp_context serves one call at a time, so each thread keeps its own and makes it when first needed; a progress
function that calls the library again gets another one.
"""

from __future__ import annotations

import os
import threading
import weakref
from ctypes import byref, c_void_p, cast
from typing import Any, Callable, Optional

import numpy as np

from . import _structs as s
from . import errors
from ._native import lib, text

Progress = Optional[Callable[[str, int, int], Any]]


class _Context:
    """One hbp_context and the progress function of its running call."""

    def __init__(self) -> None:
        self.progress: Progress = None
        self.raised: BaseException | None = None
        self.busy = False
        self.cancelled = False
        # The callback reaches this object through a weak reference: a cycle would leave freeing to the collector.
        this = weakref.ref(self)
        self._callback = s.ProgressFunction(lambda user, progress: this()._report(progress.contents))
        options = s.ContextOptions(progress=cast(self._callback, c_void_p).value)
        handle = c_void_p()
        status = lib.hbp_context_create(byref(options), byref(handle))
        if status < 0:
            raise errors.make(status, text(lib.hbp_status_name(status)), "hbp_context_create failed")
        self._as_parameter_ = handle
        weakref.finalize(self, lib.hbp_context_free, handle.value).atexit = False

    def _report(self, progress: s.Progress) -> int:
        """Called by the library now and then; an exception cannot pass through C, so it waits in `raised`."""
        if self.progress is None:
            return 0
        try:
            return 1 if self.progress(text(progress.stage), progress.done, progress.total) is True else 0
        except BaseException as error:
            self.raised = error
            return 1

    def run(self, function, arguments) -> int:
        """Calls and turns a failure into its exception."""
        self.busy = True
        try:
            status = function(self, *arguments)
        finally:
            self.busy = False
        raised, self.raised = self.raised, None
        if raised is not None:
            raise raised
        if status < 0:
            message = text(lib.hbp_context_message(self))
            raise errors.make(status, text(lib.hbp_status_name(status)), message)
        return status


class _Idle(threading.local):
    """The contexts of this thread that no call uses."""

    def __init__(self) -> None:
        self.contexts: list[_Context] = []

    def take(self) -> _Context:
        return self.contexts.pop() if self.contexts else _Context()

    def put(self, context: _Context) -> None:
        # A request to cancel that came too late would stop the next call.
        if not context.busy and not context.cancelled:
            self.contexts.append(context)


_idle = _Idle()


def call(function, *arguments) -> int:
    """Runs a short function on this thread's context."""
    context = _idle.take()
    try:
        return context.run(function, arguments)
    finally:
        _idle.put(context)


def call_long(function, *arguments, progress: Progress = None) -> int:
    """Runs a function that may take long: `progress(stage, done, total)` is called now and then, True cancels.

    Python runs signal handlers on the main thread only, and only between its own instructions. There the call
    therefore runs on a thread of its own while the main thread waits: an exception of a handler (Ctrl-C, a time
    limit) cancels the call and is raised once the call has ended.
    """
    context = _idle.take()
    context.progress = progress
    try:
        if threading.current_thread() is threading.main_thread():
            return _call_beside(context, function, arguments)
        return context.run(function, arguments)
    finally:
        context.progress = None
        _idle.put(context)


def _call_beside(context: _Context, function, arguments) -> int:
    outcome: list = []
    ended = threading.Event()

    def work() -> None:
        try:
            outcome.append((context.run(function, arguments), None))
        except BaseException as error:
            outcome.append((None, error))
        finally:
            ended.set()

    try:
        threading.Thread(target=work, name="hbp", daemon=True).start()
    except RuntimeError:  # no thread to be had: the interpreter is ending
        return context.run(function, arguments)
    interrupted = None
    while not ended.is_set():
        try:
            ended.wait()
        except BaseException as error:
            interrupted = error
            if not ended.is_set():
                context.cancelled = True
                lib.hbp_context_cancel(context)
    status, error = outcome[0]
    if interrupted is not None:
        raise interrupted
    if error is not None:
        raise error
    return status


class Handle:
    """Owns one object of the library. Views of its columns keep it alive; it keeps alive what it borrows."""

    __slots__ = ("_as_parameter_", "borrowed", "__weakref__")

    def __init__(self, address: c_void_p, free, borrowed: Any = None) -> None:
        self._as_parameter_ = address
        self.borrowed = borrowed
        weakref.finalize(self, free, address.value).atexit = False


def make(function, *arguments, free, borrowed: Any = None, long: bool = False, progress: Progress = None) -> Handle:
    """Calls a function whose last argument is the new object."""
    out = c_void_p()
    try:
        if long:
            call_long(function, *arguments, byref(out), progress=progress)
        else:
            call(function, *arguments, byref(out))
    except BaseException:
        if out.value:  # interrupted, but the call had succeeded
            free(out)
        raise
    return Handle(out, free, borrowed)


class Object:
    """A Python object around a handle; it goes into a C call as it is."""

    _handle: Handle

    @property
    def _as_parameter_(self):
        return self._handle._as_parameter_


class _Memory:
    """Memory of the library as numpy takes it."""

    __slots__ = ("__array_interface__", "owner")

    def __init__(self, address: int, count: int, dtype: np.dtype, owner: Any) -> None:
        self.__array_interface__ = {"data": (address, True), "shape": (count,), "typestr": dtype.str, "version": 3}
        self.owner = owner


I32, I64, U32, F64 = (np.dtype(name) for name in ("int32", "int64", "uint32", "float64"))


def view(address: int | None, count: int, dtype: np.dtype, owner: Any) -> np.ndarray:
    """A read-only array over memory of the library that keeps `owner` alive."""
    if not address or count <= 0:
        return np.empty(0, dtype)
    return np.asarray(_Memory(address, count, dtype, owner))


def column(function, handle: Handle, dtype: np.dtype) -> np.ndarray:
    """The column that a getter returns, without a copy."""
    count = s.c_int64()
    address = function(handle, byref(count))
    return view(address, count.value, dtype, handle)


def fields(struct: s.Open) -> dict[str, Any]:
    """An open struct as a dictionary."""
    return {name: getattr(struct, name) for name in struct.names()}


def path_bytes(path: Any) -> bytes:
    return os.fsencode(path)


def name_bytes(name: str) -> bytes:
    if not isinstance(name, str):
        raise TypeError(f"a name is a string, not {type(name).__name__}")
    return name.encode()

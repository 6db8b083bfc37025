"""How a call is made: a context of its own, progress, Ctrl-C, and an exception for a failure.

Contexts wait in a pool. One serves one call at a time, so that any thread, and a progress callback itself,
may call."""

from __future__ import annotations

import ctypes
import signal
import threading
from contextlib import contextmanager
from typing import Any, Callable, Iterator, NamedTuple, Optional, Type, TypeVar, Union

from . import _native, _records
from ._native import lib
from ._numbers import int32
from .errors import InvalidError, error_of, refusal


PROGRESS_FN = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.POINTER(_records.Progress))


class Progress(NamedTuple):
    """How far a call has come: `done` of `total` in the stage's unit; `total` is 0 while it is unknown."""

    stage: str
    done: int
    total: int


Self = TypeVar("Self", bound="Owned")
ProgressFn = Callable[[Progress], Any]
# A function, or True for a bar: tqdm's where it is installed, otherwise lines on stderr.
ProgressOption = Union[None, bool, ProgressFn]


class Handle:
    """Owns one object of the library, and keeps alive what the object borrows. Without a function that frees
    it, the object is part of another, which `keep` has."""

    __slots__ = ("pointer", "_free", "_opaque", "_keep")

    def __init__(self, pointer: int, free: Optional[str], opaque: Any, keep: tuple[Any, ...] = ()) -> None:
        self.pointer: Optional[int] = pointer
        self._free = None if free is None else _native.release(free)
        self._opaque = opaque
        self._keep = keep

    @property
    def _handle(self) -> Handle:
        return self

    def __del__(self) -> None:
        # Everything used here hangs on the instance: at interpreter exit modules may be gone.
        pointer = getattr(self, "pointer", None)
        if pointer:
            self.pointer = None
            if self._free is not None:
                self._free(pointer)


class Context:
    """A C context and what its callback has to know."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self.progress: Optional[ProgressFn] = None
        self.error: Optional[BaseException] = None
        self._callback = PROGRESS_FN(self._on_progress)  # a cycle; contexts live as long as the pool
        options = _records.ContextOptions(
            progress=ctypes.cast(self._callback, ctypes.c_void_p), threads=threads
        )
        pointer = ctypes.c_void_p()
        status = lib.hbp_context_create(ctypes.byref(options), ctypes.byref(pointer))
        if status < 0 or not pointer.value:
            raise error_of(status, "")
        self.handle = Handle(pointer.value, "hbp_context_free", _native.Context)

    def _on_progress(self, user: Any, progress: Any) -> int:
        # Entering Python is what lets a pending Ctrl-C reach its handler.
        if self.error is not None:
            return 1
        if self.progress is None:
            return 0
        try:
            now = progress.contents
            return 1 if self.progress(Progress(now.stage.decode(), now.done, now.total)) else 0
        except BaseException as error:
            self.error = error
            return 1

    def run(self, function: Any, arguments: tuple[Any, ...]) -> int:
        """Calls `function` on this context; an argument of a wrong type is a TypeError."""
        try:
            return int(function(self.handle, *arguments))
        except ctypes.ArgumentError as error:
            raise TypeError(str(error).split("TypeError: ")[-1]) from None

    def check(self, status: int) -> int:
        """Raises for a failure: what a callback or a signal handler raised comes before the library's own
        message."""
        if self.error is not None:
            raise self.error
        if status < 0:
            raise error_of(status, lib.hbp_context_message(self.handle).decode(errors="replace"))
        return status


_pool: list[Context] = []
_threads = 0


def set_threads(threads: int) -> None:
    """How many threads a call works on from now on, the calling one among them; 0 and 1: that one alone. The results
    are the same for any number. Large arrays of lengths, their order, plans by patterns and steps that are planned one
    by one are worth more than one. An option `threads` of a call goes first."""
    global _threads
    value = int32("threads", threads)
    within = _records.ContextOptions._record["threads"].within
    if value not in within:
        raise refusal(InvalidError, f"`threads` is {value}; it must be in {within[0]}..{within[-1]}")
    _threads = value


@contextmanager
def _borrowed() -> Iterator[Context]:
    context = None
    while context is None or context.threads != _threads:
        try:
            context = _pool.pop()
        except IndexError:
            context = Context(_threads)
    yield context
    _pool.append(context)  # after a failure the context is dropped: a cancel may still be pending on it


def call(function: Any, *arguments: Any) -> int:
    """Calls `function(context, *arguments)`; returns its status, raises for a failure."""
    with _borrowed() as context:
        return context.check(context.run(function, arguments))


@contextmanager
def _interruptible(context: Context) -> Iterator[None]:
    """While it lasts, what the handler of SIGINT raises cancels the call and is raised after it.

    An exception raised by a signal handler inside a C callback would be lost. Only the main thread runs
    handlers."""
    previous = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(previous):
        yield
        return

    def relay(number: int, frame: Any) -> None:
        try:
            previous(number, frame)
        except BaseException as error:
            context.error = error
            lib.hbp_context_cancel(context.handle)

    try:
        signal.signal(signal.SIGINT, relay)
    except ValueError:  # the main thread of another interpreter
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)


def call_long(function: Any, *arguments: Any, progress: ProgressOption = None) -> int:
    """`call` for what may take a while: reports progress and stops on Ctrl-C."""
    if progress is True:
        from ._progress import bar

        with bar() as shown:
            return call_long(function, *arguments, progress=shown)
    if progress is None or progress is False:
        progress = None
    elif not callable(progress):
        raise TypeError(f"progress is {progress!r}; it must be a function, True or None")
    with _borrowed() as context:
        context.progress = progress
        try:
            with _interruptible(context):
                status = context.run(function, arguments)
            return context.check(status)
        finally:
            context.progress = None
            context.error = None


class Owned:
    """A Python object that owns one of the library's. Subclasses name its type and the function that frees
    it."""

    _opaque: Any
    _free: str
    _view: Any  # of types with a view: its struct, and the function that fills it in
    _get_view: str
    _handle: Handle

    def _adopt(self, pointer: int, *keep: Any) -> None:
        self._handle = Handle(pointer, self._free, self._opaque, keep)

    @classmethod
    def _make(
        cls: Type[Self], function: Any, *arguments: Any, keep: tuple[Any, ...] = (), **options: Any
    ) -> Self:
        """An object from a function whose last argument is where to put it."""
        self = cls.__new__(cls)
        out = ctypes.c_void_p()
        try:
            call_long(function, *arguments, ctypes.byref(out), **options)
        finally:  # a Ctrl-C that came last finds an object made, to be freed with `self`
            if out.value:
                self._adopt(out.value, *keep)
        return self

    @classmethod
    def _part(cls: Type[Self], function: Any, owner: Owned) -> Self:
        """What `function` finds inside `owner`; it keeps the owner alive and frees nothing."""
        self = cls.__new__(cls)
        self._handle = Handle(function(owner).value, None, cls._opaque, (owner._handle,))
        return self

    def __reduce__(self) -> Any:
        raise TypeError(f"hbp.{type(self).__name__} cannot be pickled")

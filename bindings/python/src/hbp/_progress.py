"""progress=True: a bar a stage, tqdm's where it is installed, otherwise plain text, on stderr."""

from __future__ import annotations

import importlib
import sys
from contextlib import contextmanager
from typing import Any, Callable, Iterator, Optional, Set, Tuple

from ._context import Progress


class _Bars:
    """tqdm's bars, one after another."""

    def __init__(self, make: Any) -> None:
        self._make = make
        self._bar: Any = None
        self._stage: Optional[str] = None

    def __call__(self, now: Progress) -> None:
        if now.stage != self._stage or self._bar.n > now.done:
            self.close()
            self._stage = now.stage
            self._bar = self._make(desc=now.stage, total=now.total or None, leave=False, file=sys.stderr)
        if now.total and self._bar.total != now.total:
            self._bar.total = now.total
        self._bar.update(now.done - self._bar.n)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()


class _Lines:
    """A line written over on a terminal, "fill packs 62 %", and elsewhere a line for each stage that is new."""

    def __init__(self) -> None:
        self._stages: Set[str] = set()
        self._shown: Optional[Tuple[str, int]] = None
        self._live = sys.stderr.isatty()

    def __call__(self, now: Progress) -> None:
        share = 100 * now.done // now.total if now.total else 0
        if self._shown is not None and (now.stage, share) == self._shown:
            return
        self._shown = now.stage, share
        if self._live:
            of_all = f" {share} %" if now.total else f" {now.done:,}"
            sys.stderr.write(f"\r\x1b[Khbp: {now.stage}{of_all}")
        elif now.stage not in self._stages:
            self._stages.add(now.stage)
            sys.stderr.write(f"hbp: {now.stage}\n")
        sys.stderr.flush()

    def close(self) -> None:
        if self._live and self._shown is not None:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


@contextmanager
def bar() -> Iterator[Callable[[Progress], None]]:
    """What shows progress, cleared in the end, after a failure too."""
    shown: Any
    try:
        shown = _Bars(importlib.import_module("tqdm.auto").tqdm)
    except ImportError:
        shown = _Lines()
    try:
        yield shown
    finally:
        shown.close()

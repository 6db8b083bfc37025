"""hbp inside trainers: a module for each, named after it, that puts hbp in the place of the trainer's own
packing or balancing. Import the one you need; this package imports none of them, and each imports its
trainer in `install()` alone:

    import hbp.integrations.verl
    hbp.integrations.verl.install()

`install()` returns a function that takes it back. It looks at the functions that it replaces: where their
parameters are not those of the versions it was written for, it replaces nothing and raises
UnknownTrainerError."""

from __future__ import annotations

import contextlib
import importlib.metadata
import inspect
import sys
from typing import Any, Callable, Iterator, Mapping, Sequence

import numpy as np

from ..errors import HbpError
from ..partitions import Partition

__all__ = ["UnknownTrainerError"]

_MOST_WEIGHT = 1 << 60  # of all samples together: the library's limit is 2^62


class UnknownTrainerError(ImportError):
    """The trainer that is installed has not the functions which the adapter replaces."""


def require_seam(package: str, known: Sequence[str], *seams: tuple[Any, str, str]) -> None:
    """Raises UnknownTrainerError unless each seam (owner, name, its parameters, those in brackets if it has
    them) is there as it was in the versions that are known of a package."""
    for owner, name, wanted in seams:
        function = getattr(owner, name, None)
        found = [] if function is None else list(inspect.signature(function).parameters)
        least, most = wanted.split("[")[0].split(), wanted.replace("[", "").replace("]", "").split()
        if function is None or not len(least) <= len(found) or found != most[: len(found)]:
            what = "is missing" if function is None else f"takes ({', '.join(found)})"
            raise UnknownTrainerError(
                f"{package} {_version(package)}: {owner.__name__}.{name} {what}, "
                f"expected ({', '.join(most)}); known versions: {', '.join(known)}"
            )


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        name = package.replace("-", "_")
        modules = [sys.modules.get(known) for known in (name, name.replace("_", "."), name.split("_")[0])]
        found = (getattr(module, "__version__", None) for module in modules)
        return next((str(version) for version in found if version), "of an unknown version")


def replace(*places: tuple[Any, str, Any]) -> Callable[[], None]:
    """Sets each (owner, name, value); the function that is returned sets what was there before."""
    kept = [(owner, name, getattr(owner, name)) for owner, name, _ in places]
    for owner, name, value in places:
        setattr(owner, name, value)

    def undo() -> None:
        for owner, name, value in kept:
            setattr(owner, name, value)

    return undo


def everywhere(package: str, name: str, own: Any, value: Any) -> list[tuple[Any, str, Any]]:
    """The places of a trainer's function in all modules of a package that have imported it."""
    modules = [module for path, module in sys.modules.items() if path.startswith(package + ".")]
    return [(module, name, value) for module in modules if vars(module).get(name) is own]


def replace_item(table: Any, entries: Mapping[Any, Any]) -> Callable[[], None]:
    """The same in a table of the trainer's."""
    kept = {key: table[key] for key in entries}
    table.update(entries)
    return lambda: table.update(kept)


@contextlib.contextmanager
def errors_as(wanted: type[Exception]) -> Iterator[None]:
    """Errors of the library as the trainer's own."""
    try:
        yield
    except HbpError as error:
        if isinstance(error, wanted):
            raise
        raise wanted(str(error)) from error


def heaviest_first(parts: Partition) -> list[list[int]]:
    """The lists by falling weight."""
    heavy, lists = parts.part_weights, parts.tolist()
    return [lists[k] for k in sorted(range(len(lists)), key=lambda k: -int(heavy[k]))]


def whole_weights(values: Any) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Weights of any size, int or float, as integers whose sum the library takes: scaled down where they are
    larger."""
    numbers = [value if isinstance(value, int) else float(value) for value in values]
    total = sum(numbers)
    if total > _MOST_WEIGHT:
        numbers = [value * _MOST_WEIGHT // total for value in map(int, numbers)]
    return np.array([round(value) for value in numbers], np.int64)

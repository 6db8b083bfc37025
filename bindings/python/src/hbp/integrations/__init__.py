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
import importlib
import importlib.metadata
import inspect
import operator
import sys
import types
import warnings
from typing import Any, Callable, Iterator, Sequence

import numpy as np

from ..errors import HbpError, InvalidError, refusal
from ..partitions import Partition

__all__ = ["UnknownTrainerError"]

_MOST_WEIGHT = 1 << 60  # of all samples together: the library's limit is 2^62


class UnknownTrainerError(ImportError):
    """The trainer that is installed has not the functions which the adapter replaces."""


def import_seam(package: str, known: Sequence[str], path: str) -> Any:
    """A module of the trainer. UnknownTrainerError where the trainer is there and the module is not."""
    try:
        return importlib.import_module(path)
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if "." not in missing or not f"{path}.".startswith(f"{missing}."):
            raise
        text = f"{package} {_version(package)}: there is no {missing}; known versions: {', '.join(known)}"
        raise UnknownTrainerError(text) from error


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


class _Layer:
    """One value put at a place, and what was there before."""

    def __init__(self, owner: Any, name: Any, value: Any) -> None:
        self.owner, self.name, self.value, self.before = owner, name, value, _at(owner, name)

    def put(self, value: Any) -> None:
        if isinstance(self.owner, dict):
            self.owner[self.name] = value
        elif value is _INHERITED:
            delattr(self.owner, self.name)
        else:
            setattr(self.owner, self.name, value)

    def take_back(self) -> None:
        """Puts back what was there; under a later layer, that one does it. What somebody else has put there
        since stays."""
        later = [other for other in _LAYERS[_LAYERS.index(self) + 1 :] if other.owner is self.owner]
        later = [other for other in later if other.name == self.name]
        _LAYERS.remove(self)
        above = next((other for other in later if other.before is self.value), None)
        if above is not None:
            above.before = self.before
        elif _at(self.owner, self.name) is self.value and all(
            other.value is not self.value for other in later
        ):
            self.put(self.before)
        else:
            place = f"{getattr(self.owner, '__name__', 'table')}.{self.name}"
            warnings.warn(
                f"{place} was replaced after hbp's was installed; it stays", RuntimeWarning, stacklevel=3
            )


_INHERITED = object()  # a class has the attribute of its base
_LAYERS: list[_Layer] = []  # in the order of their installation


def _at(owner: Any, name: Any) -> Any:
    return owner[name] if isinstance(owner, dict) else vars(owner).get(name, _INHERITED)


def replace(*places: tuple[Any, Any, Any]) -> Callable[[], None]:
    """Sets each (owner, name, value), owner a module, class or dict. The function that is returned takes
    them back, once, in whatever order such functions are called."""
    layers = [_Layer(*place) for place in places]
    for layer in layers:
        layer.put(layer.value)
    _LAYERS.extend(layers)

    def undo() -> None:
        while layers:
            layers.pop().take_back()

    return undo


_TAKEN_BACK: list[tuple[str, Any]] = []  # functions by name, which modules imported meanwhile may still have


def replace_imported(seam: Any, **functions: Any) -> Callable[[], None]:
    """As `replace`, for functions of the module `seam` that other modules of its package import: in all that
    have them; what is returned takes them back from those imported since, too."""
    package = seam.__name__.partition(".")[0]

    def holders(name: str, function: Any) -> list[Any]:
        modules = [
            module
            for path, module in sys.modules.items()
            if isinstance(module, types.ModuleType) and path.partition(".")[0] == package
        ]
        return [module for module in modules if vars(module).get(name) is function]

    undo = replace(
        *((module, name, value) for name, value in functions.items() for module in holders(name, vars(seam)[name]))
    )

    def undo_all() -> None:
        undo()
        _TAKEN_BACK.extend(entry for entry in functions.items() if entry not in _TAKEN_BACK)
        for name, value in _TAKEN_BACK:
            live = [layer.value for layer in _LAYERS if layer.owner is seam and layer.name == name]
            if name in functions and value not in live:
                for module in holders(name, value):
                    setattr(module, name, vars(seam)[name])

    return undo_all


@contextlib.contextmanager
def errors_as(wanted: type[Exception]) -> Iterator[None]:
    """Errors of the library as the trainer's own, too."""
    try:
        yield
    except HbpError as error:
        if isinstance(error, wanted):
            raise
        raise _of_both(type(error), wanted, error.status, error.message) from error


_BOTH: dict[tuple[type[HbpError], type[Exception]], type[HbpError]] = {}


def _of_both(kind: type[HbpError], wanted: type[Exception], status: int, message: str) -> HbpError:
    def reduce(error: HbpError) -> Any:
        return _of_both, (kind, wanted, error.status, error.message)

    if (kind, wanted) not in _BOTH:
        _BOTH[kind, wanted] = type(kind.__name__, (kind, wanted), {"__reduce__": reduce})
    return _BOTH[kind, wanted](status, message)


def heaviest_first(parts: Partition) -> list[list[int]]:
    """The lists by falling weight."""
    heavy, lists = parts.part_weights, parts.tolist()
    return [lists[k] for k in sorted(range(len(lists)), key=lambda k: -int(heavy[k]))]


def whole_weights(values: Any) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Weights of any size, int or float, as integers whose sum the library takes. Floats keep 53 bits of the
    largest, scaled by a power of two; integers are scaled down where they are larger."""
    numbers = values.tolist() if hasattr(values, "tolist") else list(values)
    try:
        whole = [operator.index(value) for value in numbers]
    except TypeError:
        return _scaled(np.array([float(value) for value in numbers]))
    total = sum(whole)
    if total > _MOST_WEIGHT:
        whole = [value * _MOST_WEIGHT // total for value in whole]
    return np.array(whole, np.int64)


def _scaled(values: np.ndarray[Any, np.dtype[np.float64]]) -> np.ndarray[Any, np.dtype[np.int64]]:
    for k in np.flatnonzero(~(np.isfinite(values) & (values >= 0)))[:1].tolist():
        raise refusal(InvalidError, f"weight {k} is {values[k]}; it is at least 0 and finite")
    largest = int(np.frexp(values.max())[1])  # below 2^largest
    free = _MOST_WEIGHT.bit_length() - 1 - largest - len(values).bit_length()
    whole: np.ndarray[Any, np.dtype[np.int64]] = np.rint(np.ldexp(values, free)).astype(np.int64)
    return whole

"""Lengths, the name of a model and the name of a machine to a plan in one call."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING, Any, Callable, Mapping, Optional, TypeVar, Union

from ._context import ProgressOption
from ._files import Path, path_bytes
from ._inputs import Integers
from .cost import Cost
from .epoch import plan_epoch
from .errors import InvalidError, MissingFileError, refusal
from .lengths import Lengths
from .machine import Machine
from .model import Model
from .plans import Plan

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .epoch import EpochKeywords

T = TypeVar("T")


def _named(of: Any, what: str, make: Callable[[bytes], Any], load: Callable[[Any], Any], given: Any) -> Any:
    """What a text names, as the command reads it; without libhbp-io a preset. An unknown one is answered with all
    that there are."""
    if isinstance(given, (bytes, os.PathLike)):
        return _of_file(load, given)
    if not isinstance(given, str):
        raise TypeError(f"{what} is {given!r}; it must be a preset's name, a file or hbp.{of.__name__}")
    try:
        return make(path_bytes(given))
    except ImportError:
        return _of_file(load, given) if ".json" in given else of.preset(given)
    except InvalidError as error:
        if "preset" not in error.message or "there are" in error.message:
            raise
        raise InvalidError(error.status, f"{error}; there are {', '.join(of.presets())}") from None


def _of_file(load: Callable[[Any], T], given: Any) -> T:
    """What `load` makes of a file; where it cannot read any, the file's absence is said first."""
    try:
        return load(given)
    except ImportError as error:
        path = os.fsdecode(given).partition(",")[0]  # fields may follow
        _require_file(path)
        raise ImportError(f"cannot read {path}: {error}") from None


def _require_file(path: Any) -> None:
    if not os.path.exists(path):
        raise refusal(MissingFileError, f"cannot open {os.fsdecode(path)}: {os.strerror(errno.ENOENT)}")


def _model(given: Union[Model, Path, Mapping[str, Any]]) -> Model:
    if isinstance(given, Model):
        return given
    if isinstance(given, (Mapping, bytes)):
        return Model.config(given)
    made: Model = _named(Model, "model", Model._of_text, Model.config, given)
    return made


def _machine(given: Union[Machine, Path]) -> Machine:
    if isinstance(given, Machine):
        return given
    made: Machine = _named(Machine, "machine", Machine._of_text, Machine.load, given)
    return made


def plan(
    lengths: Union[Lengths, Integers],
    model: Union[Model, Path, Mapping[str, Any]],
    machine: Union[Machine, Path],
    *,
    stack: Optional[str] = None,
    progress: ProgressOption = None,
    **options: Unpack[EpochKeywords],
) -> Plan:
    """Plans an epoch of `lengths` in one call: hbp.plan(lengths, model="llama-3.1-8b", machine="h100:4").

    `model` is a preset's name, a Hugging Face config.json or the folder that holds it, each also with fields
    replaced ("llama-3.1-8b,layers=4"), the mapping in such a file, or hbp.Model; `machine` is "h100:4", four nodes of
    a preset, a profile file, four nodes of it ("profile.json:4"), or hbp.Machine. Options are those of plan_epoch. `stack` is the trainer's
    software, "fsdp", as read_stack takes it. The plan is the one of plan_epoch with hbp.Cost(model, machine,
    stack=stack), whose other options (ZeRO stage, overlaps, reserve) are at their defaults."""
    if isinstance(lengths, (str, os.PathLike)):
        _require_file(lengths)
        raise TypeError(f"lengths is the path {os.fspath(lengths)!r}; read it first: hbp.Lengths.read(path)")
    cost = Cost(_model(model), _machine(machine), stack=stack)
    return plan_epoch(lengths, cost, progress=progress, **options)

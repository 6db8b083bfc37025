"""What a sampler's state holds, and what is said of one that is wrong: always an hbp error with the field, its
value and the limit."""

from __future__ import annotations

import operator
import re
import reprlib
from typing import Any, Mapping

from .errors import InvalidError, VersionError, refusal

VERSION = 1
FIELDS = ("version", "epoch", "cursor", "batches", "ranks")
MAX_EPOCH = 2**63 - 1


def invalid(message: str) -> InvalidError:
    return refusal(InvalidError, message)


def integer(name: str, value: Any, least: int, most: int) -> int:
    """`value` as an integer in least..most."""
    try:
        number = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = None
    if number is None:
        raise invalid(f"{name} is {reprlib.repr(value)}; it must be an integer")
    if not least <= number <= most:
        raise invalid(f"{name} is {number}; it must be in {least}..{most}")
    return number


class SamplerState:
    """A state whose fields are there and of their types: a cursor of the plan, and batches past the beginning of
    its step, of a sampler that has the batches of `ranks` ranks."""

    epoch: int
    cursor: bytes
    batches: int
    ranks: int

    def __init__(self, state: Mapping[str, Any]) -> None:
        if not isinstance(state, Mapping):
            raise invalid(f"a sampler's state is {reprlib.repr(state)}; it must be a mapping with {', '.join(FIELDS)}")
        if "version" in state:
            version = integer("the state's version", state["version"], 1, MAX_EPOCH)
            if version != VERSION:
                raise refusal(VersionError, f"the state's version is {version}; this hbp reads version {VERSION}")
        for name in FIELDS:
            if name not in state:
                raise invalid(f"the state lacks {name!r}; it must have {', '.join(FIELDS)}")
        for name in state:
            if name not in FIELDS:
                raise invalid(f"the state has {reprlib.repr(name)}; it must have {', '.join(FIELDS)} alone")
        self.epoch = integer("the state's epoch", state["epoch"], 0, MAX_EPOCH)
        self.batches = integer("the state's batches", state["batches"], 0, MAX_EPOCH)
        self.ranks = integer("the state's ranks", state["ranks"], 1, MAX_EPOCH)
        cursor = state["cursor"]
        if not isinstance(cursor, str) or not re.fullmatch("[0-9a-fA-F]{128}", cursor):
            raise invalid(f"the state's cursor is {reprlib.repr(cursor)}; it must be a text of 128 hexadecimal digits")
        self.cursor = bytes.fromhex(cursor)

"""The plain call: samples into parts by their lengths alone, with no model, no machine and no cost."""

from __future__ import annotations

import ctypes
from typing import Any, Iterator, Optional, Sequence, Tuple, Union, overload

import numpy as np
import numpy.typing as npt

from . import _native
from ._arrays import ViewColumn, address, integers, read_view, same_count
from ._choices import PartitionOverLong
from ._context import Owned
from ._inputs import Integers
from ._native import lib
from ._numbers import flag, int64, suggesting
from ._records import PartitionOptions, PartitionView
from ._text import many
from .errors import InvalidError, error_of, refusal

_MESSAGE_BYTES = 512


class Partition(Owned, Sequence["npt.NDArray[np.int64]"]):
    """Parts, each a read-only array of sample ids in ascending order, in the order of their first sample.
    Immutable."""

    _opaque = _native.Partition
    _free = "hbp_partition_free"
    _view = PartitionView
    _get_view = "hbp_partition_get_view"

    part_offsets = ViewColumn[np.int64]("parts", "First row of each part, [parts + 1].", extra=1)
    part_tokens = ViewColumn[np.int64]("parts", "Tokens of each part.")
    part_weights = ViewColumn[np.int64]("parts", "Weight of each part.")
    sample_ids = ViewColumn[np.int64]("samples", "Samples, parts laid end to end.")
    sample_first_tokens = ViewColumn[np.int64]("samples", "First token that is used: not 0 for pieces of split samples.")
    sample_tokens = ViewColumn[np.int64]("samples", "Tokens of each that are used.")
    dropped_ids = ViewColumn[np.int64]("dropped", "Samples that over_long=\"drop\" left out.")

    @property
    def least_parts(self) -> int:
        """No partition under the same limits has fewer parts."""
        return int(read_view(self).least_parts)

    @property
    def heaviest(self) -> int:
        """The weight of the heaviest part."""
        return int(read_view(self).heaviest)

    @property
    def bound(self) -> int:
        """No partition into as many parts has a lighter heaviest one."""
        return int(read_view(self).bound)

    def __len__(self) -> int:
        return int(read_view(self).parts)

    @overload
    def __getitem__(self, part: int) -> npt.NDArray[np.int64]: ...

    @overload
    def __getitem__(self, part: slice) -> list[npt.NDArray[np.int64]]: ...

    def __getitem__(self, part: Any) -> Any:
        if isinstance(part, slice):
            return [self[k] for k in range(len(self))[part]]
        k = range(len(self))[part]
        return self.sample_ids[self.part_offsets[k] : self.part_offsets[k + 1]]

    def __iter__(self) -> Iterator[npt.NDArray[np.int64]]:
        return iter(np.split(self.sample_ids, self.part_offsets[1:-1]))

    def tolist(self) -> list[list[int]]:
        """The ids as lists of int."""
        ids, offsets = self.sample_ids.tolist(), self.part_offsets.tolist()
        return [ids[first:end] for first, end in zip(offsets, offsets[1:])]

    def __repr__(self) -> str:
        return (
            f"<hbp.Partition: {many(len(self.sample_ids), 'sample')} in {many(len(self), 'part')}, "
            f"the heaviest {self.heaviest:,} (at least {self.bound:,})>"
        )


@suggesting
def partition(
    lengths: Integers,
    parts: Optional[int] = None,
    *,
    capacity: Optional[int] = None,
    multiple_of: int = 1,
    min_parts: int = 1,
    equal_count: bool = False,
    max_samples: Optional[int] = None,
    links: Optional[Integers] = None,
    classes: Optional[Integers] = None,
    weights: Union[Integers, Tuple[int, int], None] = None,
    nonempty: bool = True,
    over_long: PartitionOverLong = "error",
    effort: int = 0,
) -> Partition:
    """Puts samples of `lengths` tokens into parts: packs, micro-batches or ranks.

    `parts`: how many; None: as few as are found that hold at most `capacity` tokens and `max_samples` samples
    each, then as many more as make at least `min_parts`, a `multiple_of` and, with `equal_count`, the same
    number of samples in each. Parts are balanced in `weights`: an integer a sample, or a pair (linear, square), by
    which a sample of L tokens weighs linear L + square L^2 (a tuple of two is always that; weights of two
    samples are a list); None: tokens. Samples whose `links` are one value >= 0 share a part (-1: free), samples
    of two `classes` never do. With `nonempty` more parts than samples are an error, without it the last are empty. `over_long` says what becomes of samples longer than
    `capacity`: "error", "drop", "truncate", "split" into pieces, or "alone" in a part over the capacity.
    `effort`, 1 to 9, searches for fewer parts at growing cost; 0 packs greedily.

    The answer is a function of the arguments alone. InvalidError (a ValueError) for what makes no sense,
    InfeasibleError where no such parts exist or were found."""
    tokens = integers("lengths", lengths, np.int64)
    count = len(tokens)
    pair = weights if isinstance(weights, tuple) and len(weights) == 2 else None
    columns = {
        name: same_count(name, integers(name, values, np.int64), count)
        for name, values in (("links", links), ("classes", classes), ("weights", weights if pair is None else None))
        if values is not None
    }
    linear, square = pair or (0, 0)
    options = PartitionOptions(
        over_long=over_long,
        parts=_positive("parts", parts),
        min_parts=_positive("min_parts", min_parts) if parts is None or min_parts != 1 else 0,
        multiple_of=_positive("multiple_of", multiple_of) if parts is None or multiple_of != 1 else 0,
        capacity=_positive("capacity", capacity),
        max_samples=_positive("max_samples", max_samples),
        equal_count=equal_count,
        allow_empty=not flag("nonempty", nonempty),
        effort=effort,
        linear=linear,
        square=square,
        **{name: address(column) for name, column in columns.items()},
    )
    made, out = Partition.__new__(Partition), ctypes.c_void_p()
    why = ctypes.create_string_buffer(_MESSAGE_BYTES)
    status = lib.hbp_partition_samples(
        address(tokens), count, ctypes.byref(options), ctypes.byref(out), why, _MESSAGE_BYTES
    )
    if status < 0 or out.value is None:
        raise error_of(status, _in_python(why.value.decode()))
    made._adopt(out.value)
    return made


_WORDS = (
    ("`allow_empty` would", "nonempty=False would"),
    ("give `linear` and `square`", "give a pair (linear, square)"),
    ("`linear` is", "weights[0], `linear`, is"),
    ("`square` is", "weights[1], `square`, is"),
)
"""What C's messages call otherwise."""


def _in_python(message: str) -> str:
    for c_words, words in _WORDS:
        message = message.replace(c_words, words)
    return message


def _positive(name: str, value: Optional[int]) -> int:
    """0, which is C's default, for None; a number of at least 1 as it is."""
    if value is None:
        return 0
    number = int64(name, value)
    if number < 1:
        raise refusal(InvalidError, f"{name} is {number}; it is at least 1")
    return number

"""The data set: a length in tokens per sample, or a histogram of lengths."""

from __future__ import annotations

import os
from ctypes import byref, c_int64
from typing import Any, Optional, Sequence, Union

import numpy as np

from . import _structs as s
from ._context import I64, Handle, Object, Progress, call, column, fields, make, name_bytes, path_bytes
from ._native import lib

ArrayLike = Union[np.ndarray, Sequence[int]]


def _integers(values: ArrayLike, what: str) -> np.ndarray:
    """A 1-D array of integers in the machine's byte order, itself where it is one."""
    array = np.asarray(values)
    if array.size == 0 and array.dtype.kind == "f":
        array = array.astype(np.int64)
    if array.dtype.kind not in "iu":
        raise TypeError(f"{what} are integers, not {array.dtype}")
    if array.ndim != 1:
        raise ValueError(f"{what} have one dimension, not {array.ndim}")
    if array.dtype == np.uint64 and array.size and array.max() > np.iinfo(np.int64).max:
        raise OverflowError(f"{what} hold {array.max()}, more than 2**63 - 1")
    return np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("="))


def int64_array(values: ArrayLike, what: str) -> np.ndarray:
    return np.ascontiguousarray(_integers(values, what), dtype=np.int64)


def _uint32_array(values: ArrayLike, what: str) -> np.ndarray:
    array = _integers(values, what)
    if array.dtype != np.uint32 and array.size:
        low, high = int(array.min()), int(array.max())
        if low < 0 or high > 0xFFFFFFFF:
            raise ValueError(f"{what} hold {low if low < 0 else high}; they lie in 0..{0xFFFFFFFF}")
    return np.ascontiguousarray(array, dtype=np.uint32)


class Lengths(Object):
    """A data set. Immutable; any number of threads may use one."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    @classmethod
    def from_array(cls, lengths: ArrayLike, *, loss_tokens: Optional[ArrayLike] = None,
                   ties: Optional[ArrayLike] = None, copy: bool = False, progress: Progress = None) -> "Lengths":
        """Sample i has lengths[i] tokens, of which loss_tokens[i] carry loss; samples of one tie >= 0 share a pack.

        A contiguous uint32 array is used in place unless `copy`: it must not change while the data set, or packs made
        of it, live. Other integers are copied into 4 bytes a sample.
        """
        array = _integers(lengths, "lengths")
        creates = {np.dtype(np.uint32): lib.hbp_lengths_create_u32, np.dtype(np.int32): lib.hbp_lengths_create_i32}
        create = creates.get(array.dtype)
        if create is None:
            array = array.astype(np.int64, copy=False)
            create = lib.hbp_lengths_create_i64
        options = s.LengthsOptions(borrow=0 if copy else 1)
        loss = None if loss_tokens is None else _uint32_array(loss_tokens, "loss_tokens")
        tie = None if ties is None else int64_array(ties, "ties")
        for name, column_ in (("loss_tokens", loss), ("ties", tie)):
            if column_ is not None:
                if column_.size != array.size:
                    raise ValueError(f"{name} has {column_.size} values for {array.size} lengths")
                setattr(options, name, column_.ctypes.data)
        borrowed = array if array.dtype == np.uint32 and not copy else None
        return cls(make(create, array.ctypes.data, array.size, byref(options), free=lib.hbp_lengths_free,
                        borrowed=borrowed, long=True, progress=progress))

    @classmethod
    def from_histogram(cls, lengths: ArrayLike, counts: ArrayLike) -> "Lengths":
        """counts[i] samples of lengths[i] tokens. Samples are named by their place in ascending order of length."""
        length, count = int64_array(lengths, "lengths"), int64_array(counts, "counts")
        if length.size != count.size:
            raise ValueError(f"counts has {count.size} values for {length.size} lengths")
        return cls(make(lib.hbp_lengths_create_histogram, length.ctypes.data, count.ctypes.data, length.size,
                        free=lib.hbp_lengths_free, long=True))

    @classmethod
    def read(cls, path: Union[str, "os.PathLike[str]"], *, format: Optional[str] = None, column: Optional[str] = None,
             count_column: Optional[str] = None, loss_column: Optional[str] = None, tie_column: Optional[str] = None,
             progress: Progress = None) -> "Lengths":
        """Reads .npy, text, CSV, JSON lines or Megatron .idx, gzipped or not; format: "npy", "text", "csv", "jsonl",
        "idx", else told from content and name. Columns are those of CSV, or fields of JSON; count_column "": none."""
        given = dict(format=format, column=column, count_column=count_column, loss_column=loss_column,
                     tie_column=tie_column)
        options = s.LengthsReadOptions(**{key: name_bytes(value) for key, value in given.items() if value is not None})
        return cls(make(lib.hbp_lengths_read, path_bytes(path), byref(options), free=lib.hbp_lengths_free, long=True,
                        progress=progress))

    def limit(self, max_length: int, policy: str = "error", *, progress: Progress = None) -> "Lengths":
        """The data set with no sample past max_length: "error", "drop", "truncate" or "split"."""
        return Lengths(make(lib.hbp_lengths_limit, self, max_length, s.code(s.OVER_LONG, policy, "policy"),
                            free=lib.hbp_lengths_free, borrowed=self._handle, long=True, progress=progress))

    @property
    def summary(self) -> dict[str, Any]:
        """hbp_lengths_summary: samples, tokens, min_length, max_length, digest, ..."""
        summary = s.LengthsSummary()
        call(lib.hbp_lengths_get_summary, self, byref(summary))
        return fields(summary)

    @property
    def histogram(self) -> tuple[np.ndarray, np.ndarray]:
        """Distinct lengths, ascending, and their counts; views."""
        return (column(lib.hbp_lengths_get_histogram_lengths, self._handle, I64),
                column(lib.hbp_lengths_get_histogram_counts, self._handle, I64))

    def __len__(self) -> int:
        return self.summary["samples"]

    def __getitem__(self, index: int) -> int:
        """Tokens of sample (after a split: piece) `index`; negative from the end."""
        index = range(len(self))[index]
        return lib.hbp_lengths_get_length(self, c_int64(index))

    def __repr__(self) -> str:
        summary = self.summary
        return (f"<hbp.Lengths: {summary['samples']:,} samples, {summary['tokens']:,} tokens, "
                f"{summary['min_length']:,} to {summary['max_length']:,}>")

    def __reduce__(self):
        raise TypeError("hbp.Lengths does not pickle; pickle the array or the path it came from")


def as_lengths(lengths: Union[Lengths, ArrayLike]) -> Lengths:
    """Lengths as they are; arrays and lists through from_array."""
    return lengths if isinstance(lengths, Lengths) else Lengths.from_array(lengths)

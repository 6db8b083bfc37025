"""The data set: a length in tokens per sample, or a histogram of lengths."""

from __future__ import annotations

import ctypes
import os
from typing import Iterable, Literal, Optional, Union

import numpy as np

from . import _columnar, _native
from ._arrays import ViewColumn, address, addresses, column_arrays, columns_of, integers, same_count
from ._choices import EpochOverLong
from ._context import Owned, ProgressOption, call, call_long
from ._files import Path, path_bytes
from ._inputs import Integers
from ._native import lib
from ._numbers import choice, int64, suggesting
from ._optional import need
from ._records import EpochOptions, LengthsColumns, LengthsLoadOptions, LengthsOptions, LengthsView
from ._results import LengthsSummary
from .errors import FormatError, HbpError, InvalidError, refusal

_CREATE = {
    np.dtype(np.uint32): lib.hbp_lengths_create_u32,
    np.dtype(np.int32): lib.hbp_lengths_create_i32,
    np.dtype(np.int64): lib.hbp_lengths_create_i64,
}
COUNTED = 1 << 22  # lengths up to here are counted in an array


def chunks_of(chunks: Iterable[Integers]) -> Iterable[Integers]:
    """Chunks of lengths; one array is a chunk."""
    return [chunks] if isinstance(chunks, np.ndarray) and chunks.ndim == 1 else chunks


class Lengths(Owned):
    """A data set of sample lengths in tokens. Immutable."""

    _opaque = _native.Lengths
    _free = "hbp_lengths_free"

    _view = LengthsView
    _get_view = "hbp_lengths_get_view"

    histogram_lengths = ViewColumn[np.int64]("distinct_lengths", "Distinct lengths, ascending.")
    histogram_counts = ViewColumn[np.int64]("distinct_lengths", "Samples of each distinct length.")

    @classmethod
    @suggesting
    def from_array(
        cls,
        lengths: Integers,
        *,
        loss_tokens: Optional[Integers] = None,
        links: Optional[Integers] = None,
        vision: Optional[Integers] = None,
        modalities: Optional[Integers] = None,
        shifted_loss: bool = False,
        copy: bool = True,
    ) -> Lengths:
        """Sample i has lengths[i] tokens, of which loss_tokens[i] carry loss (all by default); samples of one
        link >= 0 share a pack, -1 is free. `vision` is the second size: images, tiles or vision tokens, whatever
        the encoder's time is proportional to, 0 for text alone. `modalities` are numbers, 0 to 61: 1
        with vision units and 0 without unless given. `shifted_loss`: the model shifts labels, so that the
        first token of a sample (piece) has no loss, and of L tokens at most L - 1 carry loss; plans record it.

        The values are copied. With `copy` False a contiguous uint32 array is borrowed instead: used in place
        and kept alive, and it must stay as it is for as long as the data set or what is made of it lives; where
        a change is noticed it is an InvalidError, otherwise plans are wrong. int32 and int64 arrays are copied
        once, other integers are converted first."""
        array = integers("lengths", lengths)
        native = array.dtype
        if native not in _CREATE:
            small = np.uint32 if native.kind == "u" else np.int32
            native = np.dtype(small if native.itemsize < 4 else np.int64)
        array = integers("lengths", array, native)
        borrow = array.dtype == np.uint32 and not copy
        columns = column_arrays(LengthsOptions, columns_of(LengthsOptions, locals()), len(array))
        options = LengthsOptions(borrow=borrow, shifted_loss=shifted_loss, **addresses(columns))
        create = _CREATE[array.dtype]
        keep = (array,) if borrow else ()
        return cls._make(create, address(array), len(array), ctypes.byref(options), keep=keep)

    @classmethod
    def from_histogram(cls, lengths: Integers, counts: Integers) -> Lengths:
        """counts[i] samples of lengths[i] tokens; samples are named by their place in ascending order of
        length."""
        bins = integers("lengths", lengths, np.int64)
        number = same_count("counts", integers("counts", counts, np.int64), len(bins))
        return cls._make(lib.hbp_lengths_create_histogram, address(bins), address(number), len(bins))

    @classmethod
    def count(cls, chunks: Iterable[Integers]) -> Lengths:
        """The histogram of lengths that come in pieces and are held nowhere; samples are named by their place in
        ascending order of length. O(longest length)."""
        counts, rare = np.zeros(0, np.int64), dict[int, int]()
        for chunk in chunks_of(chunks):
            array = integers("a chunk", chunk, np.uint32)
            few = np.bincount(array[array < COUNTED], minlength=len(counts))
            few[: len(counts)] += counts
            counts = few
            for length, number in zip(*np.unique(array[array >= COUNTED], return_counts=True)):
                rare[int(length)] = rare.get(int(length), 0) + int(number)
        bins = np.flatnonzero(counts)
        return cls.from_histogram(
            np.concatenate([bins, np.array(list(rare), np.int64)]),
            np.concatenate([counts[bins], np.array(list(rare.values()), np.int64)]),
        )

    @classmethod
    @suggesting
    def read(
        cls,
        path: Path,
        *,
        format: Optional[Literal["npy", "text", "csv", "jsonl", "idx", "mds"]] = None,
        column: Optional[str] = None,
        count_column: Optional[str] = None,
        loss_column: Optional[str] = None,
        link_column: Optional[str] = None,
        vision_column: Optional[str] = None,
        modality_column: Optional[str] = None,
        vision_path: Optional[Path] = None,
        shifted_loss: bool = False,
        progress: ProgressOption = None,
    ) -> Lengths:
        """Reads .npy, text, CSV, JSON lines or Megatron .idx, plain, gzipped or compressed with zstd; "-" is standard
        input. `format` is "npy", "text", "csv", "jsonl", "idx" or "mds" where the content does not say. MDS is the
        index.json of a MosaicML StreamingDataset, or its folder. With pyarrow a Parquet or Arrow file, a folder of
        those, or a pattern such as "data/train-*.parquet". Columns are those of a table or fields of JSON; where
        a column holds lists, of input_ids say, their elements are counted. Vision units come from
        `vision_column`, or from a file of their own, one number a sample: `vision_column` is then that file's, and
        `column` the lengths'. `shifted_loss` as in from_array."""
        name = os.fsdecode(path)
        if format is None and _columnar.is_columnar(name):
            if vision_path is not None:
                raise refusal(InvalidError, f"vision_path is for other formats; {name} has them in a column")
            if count_column:
                raise refusal(InvalidError, f"{name} holds no histogram; count_column is for CSV")
            columns = (column, loss_column, link_column, vision_column, modality_column)
            return cls._read_columns(name, columns, shifted_loss)
        options = LengthsLoadOptions.pick(
            locals(), vision_path=None if vision_path is None else path_bytes(vision_path)
        )
        return cls._make(lib.hbp_lengths_load, path_bytes(path), ctypes.byref(options), progress=progress)

    @classmethod
    def _read_columns(cls, path: str, names: tuple[Optional[str], ...], shifted_loss: bool) -> Lengths:
        """Of Parquet or Arrow, batch by batch."""
        need("pyarrow", f"reading {path}")
        roles = ("length", "loss_tokens", "links", "vision", "modalities")
        asked = [role for role, name in zip(roles, names) if role == "length" or name is not None]
        builder = LengthsBuilder()
        try:
            for batch in _columnar.read(path, names):
                arrays = {
                    role: np.frombuffer(_columnar.int64_bytes(column), np.int64) for role, column in zip(asked, batch)
                }
                if len(arrays["length"]):
                    builder.append(arrays.pop("length"), shifted_loss=shifted_loss, **arrays)
            return builder.finish()
        except _columnar.Refused as error:
            raise refusal(FormatError, str(error)) from error
        except HbpError as error:
            raise type(error)(error.status, f"{path}: {error}") from error

    @classmethod
    def of(cls, lengths: Union[Lengths, Integers]) -> Lengths:
        """`lengths` itself, or a data set from an array."""
        return lengths if isinstance(lengths, cls) else cls.from_array(lengths)  # type: ignore[arg-type]

    def limit(self, max_length: int, policy: EpochOverLong = "error") -> Lengths:
        """The data set with samples past `max_length` refused ("error"), left out ("drop"), cut ("truncate")
        or cut into pieces ("split"). Ids still name the original samples."""
        arguments = int64("max_length", max_length), choice("policy", policy, EpochOptions._record["over_long"].names())
        return Lengths._make(lib.hbp_lengths_limit, self, *arguments, keep=self._handle._keep)

    def summary(self) -> LengthsSummary:
        """Counts, extremes and a digest."""
        summary = LengthsSummary()
        call(lib.hbp_lengths_get_summary, self, ctypes.byref(summary))
        return summary

    def __len__(self) -> int:
        return self.summary().samples

    def _at(self, index: int) -> int:
        count = len(self)
        at = int64("index", index)
        at += count if at < 0 else 0
        if not 0 <= at < count:
            raise IndexError(f"sample {index} is not among {count}")
        return at

    def __getitem__(self, index: int) -> int:
        """The length of a sample (piece) in tokens."""
        return int(lib.hbp_lengths_get_length(self, self._at(index)))

    def vision_of(self, index: int) -> int:
        """The vision units of a sample (piece), 0 without a second size."""
        return int(lib.hbp_lengths_get_vision(self, self._at(index)))

    def modality_of(self, index: int) -> int:
        """The modality of a sample (piece)."""
        return int(lib.hbp_lengths_get_modality(self, self._at(index)))

    def __repr__(self) -> str:
        return f"<hbp.Lengths: {self.summary()}>"


class LengthsBuilder(Owned):
    """A data set that arrives in pieces: append them in order, then finish."""

    _opaque = _native.LengthsBuilder
    _free = "hbp_lengths_builder_free"

    def __init__(self) -> None:
        made = LengthsBuilder._make(lib.hbp_lengths_builder_create)
        self._handle = made._handle

    def append(
        self,
        lengths: Integers,
        *,
        loss_tokens: Optional[Integers] = None,
        links: Optional[Integers] = None,
        vision: Optional[Integers] = None,
        modalities: Optional[Integers] = None,
        shifted_loss: bool = False,
    ) -> None:
        """Adds samples; a column, once given, comes with every piece, and `shifted_loss` is the same with each."""
        array = integers("lengths", lengths, np.int64)
        columns = column_arrays(LengthsColumns, columns_of(LengthsColumns, locals()), len(array))
        struct = LengthsColumns(shifted_loss=shifted_loss, **addresses(columns))
        call_long(
            lib.hbp_lengths_builder_append, self, address(array), ctypes.byref(struct), len(array)
        )

    def finish(self) -> Lengths:
        """The data set; the builder is empty afterwards."""
        return Lengths._make(lib.hbp_lengths_builder_finish, self)

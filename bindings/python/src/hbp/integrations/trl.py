"""TRL: packing of data sets (trl.data_utils._pack_bfd, an Arrow table in and out) and the batchers of the
asynchronous GRPO trainer (TokenBudgetBatcher, _balance_by_squared_length).

Data sets get as few rows as are found. The batcher keeps a pool of samples and gives the rows of most like cost
now; the oldest sample is always among them, or, once it has waited `MOST_WAIT` micro-batches, the oldest
go first. No row holds more tokens than token_budget, none is empty."""

# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
# The trainer may not be there, or be taken for this module.
from __future__ import annotations

import logging
import warnings
from typing import Any, Callable, Iterable, Iterator, Optional

import numpy as np
import numpy.typing as npt

from .. import InfeasibleError, InvalidError, partition
from . import UnknownTrainerError, errors_as, import_seam, replace, require_seam
from ._packs import WEIGHTS, packs_of

KNOWN = ("1.0.0", "1.9 to 1.16", "1.10.0.dev0 (f2cd57710ae3)")
POOL = 3  # the pool's tokens, in micro-batches
MOST_WAIT = 8

Numbers = npt.NDArray[np.int64]
Rows = list[list[Any]]


def pack_bfd(examples: Any, seq_length: int, on_seq_length_overflow: str = "truncate") -> Any:
    """A table whose rows are packs, with a column seq_lengths more; rows by their longest sample, the longest
    sample of a row first. Longer samples are truncated or split; empty ones left out."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if on_seq_length_overflow not in ("truncate", "split"):
        raise ValueError(f"on_seq_length_overflow is {on_seq_length_overflow!r}; it is 'truncate' or 'split'")
    assert examples.num_columns, "a table without columns cannot be packed"
    if seq_length < 1:
        raise ValueError(f"seq_length is {seq_length}; it is at least 1")
    columns = [column.combine_chunks() for column in examples.columns]
    lengths = np.zeros(0, np.int64)
    for name, column in zip(examples.column_names, columns):
        if not (pa.types.is_list(column.type) or pa.types.is_large_list(column.type)):
            raise TypeError(f"Packing requires columns of lists; {name} is of {column.type}")
        found = pc.list_value_length(column).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
        lengths = found if column is columns[0] else lengths
        for k in np.flatnonzero(found != lengths)[:1].tolist():
            raise ValueError(
                f"All columns must have values of the same length; row {k} has {lengths[k]} in "
                f"{examples.column_names[0]}, {found[k]} in {name}"
            )
    filled = np.flatnonzero(lengths)
    sizes, order, starts, ends = _arrange(lengths[filled], seq_length, on_seq_length_overflow)
    borders = np.concatenate([[0], np.cumsum(sizes)])
    inside = np.arange(borders[-1]) - np.repeat(borders[:-1] - starts, sizes)

    def tokens(column: Any) -> Any:
        firsts = column.offsets.to_numpy().astype(np.int64)[filled][order]
        return column.values.take(pa.array(np.repeat(firsts, sizes) + inside))

    def rows(kind: Any, at: Numbers, values: Any) -> Any:
        return kind.from_arrays(at.astype(kind_offsets[kind]), values)

    kind_offsets = {pa.ListArray: np.int32, pa.LargeListArray: np.int64}
    packed = [rows(type(column), borders[ends], tokens(column)) for column in columns]
    lengths = pa.array(sizes.astype(kind_offsets[type(columns[0])]))
    names = [*examples.column_names, "seq_lengths"]
    return pa.Table.from_arrays([*packed, rows(pa.ListArray, ends, lengths)], names=names)


def _arrange(lengths: Numbers, seq_length: int, over_long: str) -> tuple[Numbers, Numbers, Numbers, Numbers]:
    """The pieces in the order of the packs: tokens, sample and first token of each, and each pack's borders."""
    if not len(lengths):
        return lengths, lengths, lengths, np.zeros(1, np.int64)
    counts = -(-lengths // seq_length) if over_long == "split" else np.ones_like(lengths)
    sample = np.repeat(np.arange(len(lengths)), counts)
    first = (np.arange(len(sample)) - np.repeat(np.cumsum(counts) - counts, counts)) * seq_length
    tokens = np.minimum(lengths[sample] - first, seq_length)
    with errors_as(ValueError):
        parts = packs_of(tokens, seq_length, over_long="error")
    pack = np.repeat(np.arange(len(parts)), np.diff(parts.part_offsets))
    ids = parts.sample_ids[np.lexsort((parts.sample_ids, -tokens[parts.sample_ids], pack))]
    heads = ids[parts.part_offsets[:-1]]
    by_head = np.lexsort((heads, -tokens[heads]))
    rows = np.split(ids, parts.part_offsets[1:-1])
    ids = np.concatenate([rows[k] for k in by_head])
    ends = np.concatenate([[0], np.cumsum(np.diff(parts.part_offsets)[by_head])])
    return tokens[ids], sample[ids], first[ids], ends


def balance_by_squared_length(examples: list[Any], num_groups: int) -> Rows:
    """Groups of about equal sums of squared lengths."""
    if not examples:
        return [[] for _ in range(num_groups)]
    squares = [len(example["input_ids"]) ** 2 for example in examples]
    with errors_as(ValueError):
        parts = partition([1] * len(examples), num_groups, weights=squares, nonempty=False)
    return [[examples[k] for k in part] for part in parts.tolist()]


def _fitting(lengths: Numbers, rows: int, budget: int) -> Optional[list[list[int]]]:
    try:
        return partition(lengths, rows, capacity=budget, weights=WEIGHTS).tolist()
    except (InfeasibleError, InvalidError):
        return None


def _oldest(lengths: Numbers, rows: int, budget: int) -> list[list[int]]:
    """Rows of as many of the oldest samples as fit."""
    count = max(int(np.searchsorted(np.cumsum(lengths), rows * budget, side="right")), rows)
    while (found := _fitting(lengths[:count], rows, budget)) is None:
        count -= 1
    return found


def _alike(lengths: Numbers, rows: int, budget: int) -> list[list[int]]:
    """The rows of most like cost, among them that of the oldest sample, if the pool fills so many."""
    parts = partition(lengths, capacity=budget, weights=WEIGHTS)
    if len(parts) < rows:
        return _oldest(lengths, rows, budget)
    order = np.argsort(parts.part_weights, kind="stable")
    at = int(np.flatnonzero(order == 0)[0])  # part 0 holds the oldest sample
    starts = range(max(0, at - rows + 1), min(at, len(order) - rows) + 1)
    weights, packs = parts.part_weights[order], parts.tolist()
    begin = min(
        starts, key=lambda k: 1 - int(weights[k : k + rows].sum()) / (rows * int(weights[k + rows - 1]))
    )
    return [packs[k] for k in sorted(order[begin : begin + rows].tolist())]


def micro_batches(samples: Iterable[Any], rows: int, budget: int) -> Iterator[Rows]:
    """Micro-batches of `rows` rows of at most `budget` tokens from a stream; when it ends, what is left as long
    as it fills every row. Longer samples are dropped with a warning; those without tokens join the row of
    fewest samples."""
    empty: list[Any] = []
    pool: list[tuple[Any, int]] = []  # with the micro-batch before which it came
    given, tokens = 0, 0

    def emit() -> Rows:
        nonlocal given, tokens
        lengths = np.array([len(sample["input_ids"]) for sample, _ in pool], np.int64)
        late = given - pool[0][1] >= MOST_WAIT
        chosen = (_oldest if late else _alike)(lengths, rows, budget)
        out = [[pool[k][0] for k in row] for row in chosen]
        min(out, key=len).extend(empty)
        empty.clear()
        gone = {k for row in chosen for k in row}
        tokens -= int(lengths[list(gone)].sum())
        pool[:] = [held for k, held in enumerate(pool) if k not in gone]
        given += 1
        return out

    for sample in samples:
        count = len(sample["input_ids"])
        if count > budget:
            message = "Dropping a sample of %d tokens; token_budget is %d"
            logging.getLogger(__name__).warning(message, count, budget)
            continue
        if not count:
            empty.append(sample)
            continue
        pool.append((sample, given))
        tokens += count
        while tokens > POOL * rows * budget:
            yield emit()
    while len(pool) >= rows:
        yield emit()


def install() -> Callable[[], None]:
    """Puts hbp in the place of TRL's own packing, and of its batchers where async GRPO can be imported; what is
    returned takes it back. Batchers of another signature stay TRL's, with a RuntimeWarning."""
    seam = import_seam("trl", KNOWN, "trl.data_utils")

    require_seam("trl", KNOWN, (seam, "_pack_bfd", "examples seq_length [on_seq_length_overflow]"))
    places = [(seam, "_pack_bfd", pack_bfd)]
    try:
        from trl.experimental.async_grpo import async_grpo_trainer as grpo
    except ImportError:
        return replace(*places)
    batcher = getattr(grpo, "TokenBudgetBatcher", None)
    try:
        require_seam(
            "trl",
            KNOWN,
            (grpo, "_balance_by_squared_length", "examples num_groups"),
            (grpo, "TokenBudgetBatcher", "dataset num_processes token_budget"),
        )
    except UnknownTrainerError as error:
        warnings.warn(f"async GRPO's batchers stay TRL's: {error}", RuntimeWarning, stacklevel=2)
        return replace(*places)

    def rows_of(self: Any) -> Iterator[Rows]:
        return micro_batches(self.dataset, self.num_processes, self.token_budget)

    balance = (grpo, "_balance_by_squared_length", balance_by_squared_length)
    return replace(*places, balance, (batcher, "__iter__", rows_of))

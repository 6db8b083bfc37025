"""A plan: which samples share a pack, which packs share a step, on which ranks."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, Iterator, Literal, Optional, Sequence, Union, overload

import numpy as np
import numpy.typing as npt

from . import _native
from ._arrays import OptionalViewColumn, ViewColumn, address
from ._context import ProgressOption, call, call_long
from ._files import Path, Saved, file_bytes, from_file_bytes, path_bytes
from ._inputs import Integers
from ._native import lib
from ._numbers import choice, flag, int32, int64
from ._records import PlanSaveOptions, PlanView, TraceOptions
from ._results import PlanSummary, modalities_of
from ._text import many
from .cost import Cost
from .lengths import Lengths

if TYPE_CHECKING:
    from .timeline import Timeline

Rows = Literal["samples", "packs", "micro_batches", "steps"]
Normaliser = Literal["token", "local_token", "sample", "sum"]
LOSS: dict[Normaliser, int] = {"token": 0, "local_token": 1, "sample": 2, "sum": 3}
OVER_LONG = 1
REASONS = {OVER_LONG: "over-long", 2: "left-over", 3: "over-vision", 4: "lost"}
NO_LIMIT = 2**63 - 1
CURSOR_BYTES = 64


class Pack:
    """What one SP group runs in one micro-batch: samples laid end to end. A pack without samples is a
    padding pack."""

    __slots__ = ("plan", "index")

    def __init__(self, plan: Plan, index: int) -> None:
        self.plan = plan
        self.index = index

    @property
    def _samples(self) -> slice:
        offsets = self.plan.pack_offsets
        return slice(int(offsets[self.index]), int(offsets[self.index + 1]))

    @property
    def ids(self) -> npt.NDArray[np.int64]:
        """The samples, in order."""
        return self.plan.sample_ids[self._samples]

    @property
    def lengths(self) -> npt.NDArray[np.int32]:
        """Tokens of each sample (piece)."""
        return self.plan.sample_tokens[self._samples]

    @property
    def first_tokens(self) -> npt.NDArray[np.int64]:
        """Where each piece begins in its sample; all 0 unless the plan splits samples."""
        column = self.plan.sample_first_tokens
        return np.zeros(len(self.ids), np.int64) if column is None else column[self._samples]

    @property
    def sample_loss_tokens(self) -> npt.NDArray[np.int32]:
        """Tokens of each sample that carry loss."""
        column = self.plan.sample_loss_tokens
        return self.lengths if column is None else column[self._samples]

    @property
    def sample_vision(self) -> npt.NDArray[np.int32]:
        """Vision units of each sample; all 0 without a second size."""
        column = self.plan.sample_vision
        return np.zeros(len(self.ids), np.int32) if column is None else column[self._samples]

    @property
    def sample_modalities(self) -> Optional[npt.NDArray[np.int32]]:
        """Modality of each sample, ascending; None unless an order of modalities was asked for."""
        column = self.plan.sample_modalities
        return None if column is None else column[self._samples]

    @property
    def cu_seqlens(self) -> npt.NDArray[np.int32]:
        """Borders of the samples: int32 [samples + 1], from 0."""
        return self.plan.cu_seqlens(self.index)

    @property
    def cu_seqlens_padded(self) -> npt.NDArray[np.int32]:
        """Borders with every sample padded to the sequence multiple, and the pack's own padding as one border
        more."""
        return self.plan.cu_seqlens(self.index, padded=True)

    @property
    def max_seqlen(self) -> int:
        """The longest sample, in tokens; 0 for a padding pack."""
        lengths = self.lengths
        return int(lengths.max()) if len(lengths) else 0

    @property
    def max_seqlen_padded(self) -> int:
        """The longest stretch between two padded borders."""
        return int(np.diff(self.cu_seqlens_padded).max(initial=0))

    @property
    def first_rank(self) -> int:
        return int(self.plan.pack_ranks[self.index])

    @property
    def ranks(self) -> range:
        """The ranks that share the pack's sequence."""
        return range(self.first_rank, self.first_rank + self.sp)

    @property
    def sp(self) -> int:
        """Sequence-parallel degree."""
        return int(self.plan.pack_sp[self.index])

    @property
    def recompute(self) -> int:
        """Layers to recompute in backward."""
        return int(self.plan.pack_recompute[self.index])

    @property
    def capacity(self) -> int:
        return int(self.plan.pack_capacity[self.index])

    @property
    def tokens(self) -> int:
        return int(self.plan.pack_tokens[self.index])

    @property
    def padded_tokens(self) -> int:
        return int(self.plan.pack_padded_tokens[self.index])

    @property
    def sum_squares(self) -> int:
        """Sum of squared sample lengths, what attention costs."""
        return int(self.plan.pack_squares[self.index])

    @property
    def loss_tokens(self) -> int:
        return int(self.plan.pack_loss_tokens[self.index])

    @property
    def vision(self) -> int:
        """Vision units; 0 without a second size."""
        column = self.plan.pack_vision
        return 0 if column is None else int(column[self.index])

    @property
    def vision_capacity(self) -> Optional[int]:
        """Most vision units; None: no limit."""
        column = self.plan.pack_vision_capacity
        limit = NO_LIMIT if column is None else int(column[self.index])
        return None if limit == NO_LIMIT else limit

    @property
    def modality_list(self) -> list[int]:
        """Modalities that the pack's ranks run, of a padding pack too; empty unless an order of modalities was
        asked for."""
        column, offsets = self.plan.micro_batch_modalities, self.plan.micro_batch_offsets
        if column is None:
            return []
        return modalities_of(int(column[int(np.searchsorted(offsets, self.index, "right")) - 1]))

    @property
    def predicted_ns(self) -> int:
        return int(self.plan.pack_ns[self.index])

    @property
    def predicted_bytes(self) -> int:
        """Predicted peak per rank."""
        return int(self.plan.pack_bytes[self.index])

    @property
    def is_padding(self) -> bool:
        """No samples: the ranks take part in backward with zero loss tokens."""
        return not len(self)

    def __len__(self) -> int:
        offsets = self.plan.pack_offsets
        return int(offsets[self.index + 1] - offsets[self.index])

    def __repr__(self) -> str:
        held = f"{many(len(self), 'sample')}, {many(self.tokens, 'token')}"
        return f"<hbp.Pack {self.index}: {held} on {many(self.sp, 'rank')}>"


class MicroBatch(Sequence[Pack]):
    """The packs that run side by side, ascending in rank, padding packs too: every rank runs one of them."""

    __slots__ = ("plan", "row")

    def __init__(self, plan: Plan, row: int) -> None:
        self.plan = plan
        self.row = row  # among all micro-batches of the plan

    @property
    def _packs(self) -> range:
        offsets = self.plan.micro_batch_offsets
        return range(int(offsets[self.row]), int(offsets[self.row + 1]))

    def __len__(self) -> int:
        return len(self._packs)

    @overload
    def __getitem__(self, pack: int) -> Pack: ...

    @overload
    def __getitem__(self, pack: slice) -> list[Pack]: ...

    def __getitem__(self, pack: Union[int, slice]) -> Union[Pack, list[Pack]]:
        if isinstance(pack, slice):
            return [Pack(self.plan, index) for index in self._packs[pack]]
        return Pack(self.plan, self._packs[pack])

    def for_rank(self, rank: int) -> Pack:
        """The pack that `rank` runs."""
        packs, at = self._packs, int32("rank", rank)
        ranks = self[-1].ranks.stop
        if not 0 <= at < ranks:
            raise IndexError(f"there is no rank {at}; the plan has {ranks}")
        firsts = self.plan.pack_ranks[packs.start : packs.stop]
        return Pack(self.plan, packs[int(np.searchsorted(firsts, at, "right")) - 1])

    def ids(self) -> list[list[int]]:
        """The samples of each rank's pack; ranks that share a pack have the same."""
        return _rank_ids(self.plan, range(self.row, self.row + 1))[0]

    @property
    def predicted_ns(self) -> int:
        return int(self.plan.micro_batch_ns[self.row])

    @property
    def tokens(self) -> int:
        return sum(pack.tokens for pack in self)

    def __repr__(self) -> str:
        return f"<hbp.MicroBatch {self.row}: {many(len(self), 'pack')}, {many(self.tokens, 'token')}>"


def _rank_ids(plan: Plan, rows: range) -> list[list[list[int]]]:
    """[micro-batch][rank] -> ids, of these rows of the plan's micro-batches."""
    borders: list[int] = plan.micro_batch_offsets[rows.start : rows.stop + 1].tolist()
    first, end = borders[0], borders[-1]
    offsets: list[int] = plan.pack_offsets[first : end + 1].tolist()
    ids: list[int] = plan.sample_ids[offsets[0] : offsets[-1]].tolist()
    packs = [ids[a - offsets[0] : b - offsets[0]] for a, b in zip(offsets, offsets[1:])]
    sp: list[int] = plan.pack_sp[first:end].tolist()
    return [
        [list(packs[pack - first]) for pack in range(a, b) for _ in range(sp[pack - first])]
        for a, b in zip(borders, borders[1:])
    ]


class Step:
    """The micro-batches between two optimiser updates."""

    __slots__ = ("plan", "index", "_row")

    def __init__(self, plan: Plan, row: int, first: int = 0) -> None:
        self.plan = plan
        self._row = row
        self.index = first + row  # in the plan, or the file that the plan is a part of

    @property
    def micro_batches(self) -> range:
        """Rows of the plan's micro-batches; every rank runs all of them."""
        offsets = self.plan.step_offsets
        return range(int(offsets[self._row]), int(offsets[self._row + 1]))

    def micro_batch(self, index: int) -> MicroBatch:
        """Micro-batch `index` of the step, from 0; negative from the end."""
        rows = self.micro_batches
        try:
            return MicroBatch(self.plan, rows[int64("micro_batch", index)])
        except IndexError:
            raise IndexError(f"there is no micro-batch {index}; step {self.index} has {len(rows)}") from None

    def __iter__(self) -> Iterator[MicroBatch]:
        """The micro-batches, in order."""
        return (MicroBatch(self.plan, row) for row in self.micro_batches)

    def ids(self) -> list[list[list[int]]]:
        """[micro-batch][rank] -> samples of the pack that the rank runs, [] for a padding pack; ranks that share
        a pack have the same."""
        return _rank_ids(self.plan, self.micro_batches)

    def plot(self, ax: Any = None) -> Any:
        """Ranks over time as predicted, one bar a pack, into `ax` or axes of its own; returns the axes. Needs
        matplotlib."""
        from ._show import plot

        return plot(self, ax)

    def _repr_html_(self) -> str:
        from ._show import step_html

        return step_html(self)

    @property
    def _packs(self) -> range:
        rows, offsets = self.micro_batches, self.plan.micro_batch_offsets
        return range(int(offsets[rows.start]), int(offsets[rows.stop]))

    def packs(self) -> list[Pack]:
        """Every pack of the step, micro-batch by micro-batch."""
        return [Pack(self.plan, index) for index in self._packs]

    def for_rank(self, rank: int) -> list[Pack]:
        """The pack that `rank` runs in each micro-batch, in order."""
        return [micro_batch.for_rank(rank) for micro_batch in self]

    def groups(self) -> list[str]:
        """The SP groups that have samples, micro-batch by micro-batch, as FlexSP writes them: "<32,16,8x2>"
        is one group of 32 ranks, one of 16 and two of 8."""
        offsets, used = self.plan.micro_batch_offsets, np.diff(self.plan.pack_offsets) > 0
        texts = []
        for row in self.micro_batches:
            packs = slice(int(offsets[row]), int(offsets[row + 1]))
            degrees, counts = np.unique(self.plan.pack_sp[packs][used[packs]], return_counts=True)
            pairs = reversed(list(zip(degrees.tolist(), counts.tolist())))
            texts.append(
                f"<{','.join(f'{sp}x{count}' if count > 1 else str(sp) for sp, count in pairs)}>"
            )
        return texts

    @property
    def predicted_ns(self) -> int:
        return int(self.plan.step_ns[self._row])

    @property
    def loss_tokens(self) -> int:
        """The denominator of the step's loss."""
        return int(self.plan.step_loss_tokens[self._row])

    @property
    def samples(self) -> int:
        return int(self.plan.step_samples[self._row])

    @property
    def tokens(self) -> int:
        return int(self.plan.step_tokens[self._row])

    def loss_weights(self, normaliser: Normaliser = "token") -> npt.NDArray[np.float64]:
        """A factor per sample of the step, in plan order, for the sum of its token losses; see
        Plan.loss_weights."""
        return self.plan.loss_weights(self._row, normaliser)

    def pack_weights(self, pack: Pack, normaliser: Normaliser = "token") -> npt.NDArray[np.float64]:
        """The factors of the samples of one of the step's packs."""
        if pack.plan is not self.plan:
            raise ValueError(f"{pack!r} is of another plan, or another read of it, than {self!r}")
        if pack.index not in self._packs:
            raise ValueError(f"{pack!r} is not of step {self.index}")
        first = int(self.plan.pack_offsets[self._packs.start])
        span = pack._samples
        return self.loss_weights(normaliser)[span.start - first : span.stop - first]

    def __repr__(self) -> str:
        held = f"{many(len(self.micro_batches), 'micro-batch')}, {many(self.samples, 'sample')}"
        return f"<hbp.Step {self.index}: {held}>"


class Steps:
    """What has steps: one by its index, several by a slice."""

    def __len__(self) -> int:
        raise NotImplementedError

    def _steps(self, rows: range) -> list[Step]:
        """The steps of these rows."""
        raise NotImplementedError

    def summary(self) -> PlanSummary:
        """All of them in numbers."""
        raise NotImplementedError

    def step(self, index: int) -> Step:
        """Step `index`, from 0, in a part of a plan too (`summary().first_step` of the epoch); negative from the
        end."""
        at, steps = int64("step", index), len(self)
        if not -steps <= at < steps:
            first = self.summary().first_step
            numbered = f", numbered from 0: step {first} of the epoch on" if first else ""
            raise IndexError(f"there is no step {at}; the plan has {steps}{numbered}")
        row = at % steps
        return self._steps(range(row, row + 1))[0]

    @overload
    def __getitem__(self, index: int) -> Step: ...

    @overload
    def __getitem__(self, index: slice) -> list[Step]: ...

    def __getitem__(self, index: Union[int, slice]) -> Union[Step, list[Step]]:
        return self._steps(range(len(self))[index]) if isinstance(index, slice) else self.step(index)


class Plan(Steps, Saved):
    """Steps, micro-batches, packs and samples as columns joined by offsets. Immutable; any thread may read
    it.

    Columns are read-only numpy views of the library's memory and keep the plan alive."""

    _opaque = _native.Plan
    _free = "hbp_plan_free"
    _view = PlanView
    _get_view = "hbp_plan_get_view"

    step_offsets = ViewColumn[np.int64]("steps", "First micro-batch of each step, [steps + 1].", extra=1)
    step_ns = ViewColumn[np.int64]("steps", "Predicted time of each step.")
    step_loss_tokens = ViewColumn[np.int64]("steps", "Denominator of each step's loss.")
    step_samples = ViewColumn[np.int64]("steps", "Samples of each step.")
    step_tokens = ViewColumn[np.int64]("steps", "Tokens of each step.")
    micro_batch_offsets = ViewColumn[np.int64]("micro_batches", "First pack, [micro-batches + 1].", extra=1)
    micro_batch_ns = ViewColumn[np.int64]("micro_batches", "Predicted time of each micro-batch.")
    micro_batch_modalities = OptionalViewColumn[np.int64](
        "micro_batches", "Modalities that every rank meets, bit k for modality k; None without an order of modalities."
    )
    pack_offsets = ViewColumn[np.int64]("packs", "First sample of each pack, [packs + 1].", extra=1)
    pack_ranks = ViewColumn[np.int32]("packs", "First rank of each pack.")
    pack_sp = ViewColumn[np.int32]("packs", "SP degree of each pack.")
    pack_recompute = ViewColumn[np.int32]("packs", "Layers that each pack recomputes.")
    pack_capacity = ViewColumn[np.int64]("packs", "Most padded tokens of each pack.")
    pack_tokens = ViewColumn[np.int64]("packs", "Tokens of each pack.")
    pack_padded_tokens = ViewColumn[np.int64]("packs", "Tokens after padding.")
    pack_squares = ViewColumn[np.int64]("packs", "Sum of squared sample lengths.")
    pack_loss_tokens = ViewColumn[np.int64]("packs", "Loss tokens of each pack.")
    pack_ns = ViewColumn[np.int64]("packs", "Predicted time of each pack.")
    pack_bytes = ViewColumn[np.int64]("packs", "Predicted peak bytes per rank.")
    pack_vision = OptionalViewColumn[np.int64]("packs", "Vision units of each pack; None without a second size.")
    pack_vision_capacity = OptionalViewColumn[np.int64](
        "packs", "Most vision units of each pack, 2**63 - 1: no limit; None without a second size."
    )
    sample_ids = ViewColumn[np.int64]("samples", "Samples, packs laid end to end.")
    sample_tokens = ViewColumn[np.int32]("samples", "Tokens of each sample (piece).")
    sample_first_tokens = OptionalViewColumn[np.int64]("samples", "Where each piece begins; None unless split.")
    sample_loss_tokens = OptionalViewColumn[np.int32]("samples", "Loss tokens; None when all tokens carry loss.")
    sample_vision = OptionalViewColumn[np.int32](
        "samples", "Vision units of each sample; None without a second size."
    )
    sample_modalities = OptionalViewColumn[np.int32](
        "samples", "Modality of each sample; None without an order of modalities."
    )
    dropped_ids = ViewColumn[np.int64]("dropped", "Samples that are in no pack.")
    dropped_reasons = ViewColumn[np.int32]("dropped", "Why, as REASONS names it.")
    dropped_first_tokens = OptionalViewColumn[np.int64](
        "dropped", "First token of each piece that is in no pack, in its sample; None unless pieces were dropped."
    )
    dropped_tokens = OptionalViewColumn[np.int32](
        "dropped", "Tokens of each; 0 for a sample that the limit on lengths left out whole."
    )

    @classmethod
    def load(cls, path: Path, *, progress: ProgressOption = None) -> Plan:
        """Reads a whole plan file; see PlanFile for single steps."""
        return cls._make(lib.hbp_plan_load, path_bytes(path), progress=progress)

    def save(
        self,
        path: Path,
        *,
        level: int = 0,
        chunk_steps: int = 0,
        cost: Optional[Cost] = None,
        note: Optional[str] = None,
        progress: ProgressOption = None,
    ) -> None:
        """Writes a plan file, whole or not at all; zlib `level` 1..9, 0 for the default, -1 for none."""
        options = PlanSaveOptions.pick(locals())
        call_long(lib.hbp_plan_save, self, path_bytes(path), ctypes.byref(options), progress=progress)

    def to_bytes(self) -> bytes:
        """A plan file as bytes."""
        return file_bytes(self.save)

    @classmethod
    def from_bytes(cls, data: bytes) -> Plan:
        """A plan from what to_bytes gave."""
        return from_file_bytes(cls.load, data)

    def __copy__(self) -> Plan:
        return self

    def __deepcopy__(self, memo: Any) -> Plan:
        return self

    @property
    def dropped(self) -> list[tuple[int, str]]:
        """The samples that are in no pack, each with the reason: "over-long", "left-over", "over-vision" or
        "lost"."""
        reasons = (REASONS.get(reason, str(reason)) for reason in self.dropped_reasons.tolist())
        return list(zip(self.dropped_ids.tolist(), reasons))

    def summary(self) -> PlanSummary:
        """The plan in numbers; print it."""
        summary = PlanSummary()
        call(lib.hbp_plan_get_summary, self, ctypes.byref(summary))
        return summary

    @property
    def digest(self) -> int:
        """64 bits that ranks compare: equal plans, and only those, agree."""
        return self.summary().digest

    @property
    def shifted_loss(self) -> bool:
        """Whether its lengths had `shifted_loss`: the first token of a sample (piece) has no loss."""
        return bool(self.summary().shifted_loss)

    @property
    def has_pieces(self) -> bool:
        """Whether rows may be parts of samples, which over_long "split" or "truncate" cut. A part of a plan does
        not say which over-long samples were dropped, and has them for cut."""
        if self.sample_first_tokens is not None:
            return True
        left_out = np.count_nonzero(self.dropped_reasons == OVER_LONG)
        return bool(self.summary().overlong_samples > left_out)

    def __len__(self) -> int:
        return len(self.step_ns)

    def _steps(self, rows: range) -> list[Step]:
        return [Step(self, row) for row in rows]

    def __iter__(self) -> Iterator[Step]:
        return (Step(self, index) for index in range(len(self)))

    def ids(self) -> list[list[list[int]]]:
        """[micro-batch][rank] -> samples of the pack that the rank runs, of all steps' micro-batches one after
        another; step.ids() has those of one step."""
        return _rank_ids(self, range(len(self.micro_batch_ns)))

    def columns(self, rows: Rows = "samples") -> dict[str, npt.NDArray[Any]]:
        """The plan as a table, {name: values}, with a row for each of its "samples" (in plan order), "packs"
        (padding packs too), "micro_batches" or "steps". `micro_batch` counts from 0 in each step."""
        from ._tables import plan_columns

        return plan_columns(self, rows)

    def to_arrow(self, rows: Rows = "samples") -> Any:
        """The table of `columns` as a pyarrow.Table."""
        from ._tables import arrow_table

        return arrow_table(self.columns(rows), "Plan.to_arrow")

    def to_pandas(self, rows: Rows = "samples") -> Any:
        """The table of `columns` as a pandas.DataFrame."""
        from ._tables import pandas_frame

        return pandas_frame(self.columns(rows), "Plan.to_pandas")

    def plot(self, step: int = 0, ax: Any = None) -> Any:
        """Ranks over time in a step, as predicted; see Step.plot."""
        return self.step(step).plot(ax)

    def _repr_html_(self) -> str:
        from ._show import plan_html

        return plan_html(self)

    def rank_pack(self, step: int, micro_batch: int, rank: int) -> Pack:
        """The pack that `rank` runs in micro-batch `micro_batch`, counted from 0 inside step `step`."""
        index = lib.hbp_plan_get_rank_pack(
            self, int64("step", step), int64("micro_batch", micro_batch), int32("rank", rank)
        )
        if index < 0:
            raise IndexError(f"there is no pack for step {step}, micro-batch {micro_batch}, rank {rank}")
        return Pack(self, index)

    def cu_seqlens(self, pack: int, *, padded: bool = False) -> npt.NDArray[np.int32]:
        """Borders of a pack's samples, real or padded: int32, from 0."""
        at = int64("pack", pack)
        room = (
            int(self.pack_offsets[at + 1] - self.pack_offsets[at]) + 2 if 0 <= at < len(self.pack_ns) else 0
        )
        borders, count = np.empty(room, np.int32), ctypes.c_int64()
        call(
            lib.hbp_plan_copy_cu_seqlens, self, at, flag("padded", padded), address(borders), room, ctypes.byref(count)
        )
        return borders[: count.value]

    def loss_weights(self, step: int, normaliser: Normaliser = "token") -> npt.NDArray[np.float64]:
        """A factor per sample of a step, in plan order: the step's loss is the sum over its samples of the
        factor times the sum of their token losses. "token": every loss token weighs the same; "local_token":
        mean of packs' means; "sample": mean of samples' means; "sum": plain sum. Multiply by the
        data-parallel size where gradients are averaged instead of summed."""
        at = int64("step", step)
        room = int(self.step_samples[at]) if 0 <= at < len(self) else 0
        weights, count = np.empty(room, np.float64), ctypes.c_int64()
        kind = choice("normaliser", normaliser, LOSS)
        call(lib.hbp_plan_copy_loss_weights, self, at, kind, address(weights), room, ctypes.byref(count))
        return weights[: count.value]

    def validate(
        self, lengths: Union[Lengths, Integers, None] = None, cost: Optional[Cost] = None
    ) -> None:
        """Checks every promise of a plan, with `lengths` and `cost` also against those; raises for the first
        breach."""
        source = None if lengths is None else Lengths.of(lengths)
        call_long(lib.hbp_plan_validate, self, source, cost)

    def save_cursor(self, step: int) -> bytes:
        """Where to resume, before step `step`, as 64 bytes."""
        cursor = np.zeros(CURSOR_BYTES, np.uint8)
        call(lib.hbp_plan_save_cursor, self, int64("step", step), address(cursor))
        return cursor.tobytes()

    def load_cursor(self, cursor: bytes) -> int:
        """The step of a cursor; refused when plan or world size are not the ones it was written for."""
        if len(cursor) != CURSOR_BYTES:
            raise ValueError(f"the cursor has {len(cursor)} bytes; a cursor has {CURSOR_BYTES}")
        data, step = np.frombuffer(cursor, np.uint8), ctypes.c_int64()
        call(lib.hbp_plan_load_cursor, self, address(data), ctypes.byref(step))
        return step.value

    def trace(
        self,
        path: Path,
        first_step: int = 0,
        steps: int = 0,
        timeline: Optional[Timeline] = None,
        cost: Optional[Cost] = None,
    ) -> None:
        """Writes a Chrome trace of `steps` steps from `first_step` on, all when `steps` is 0, gzipped where
        `path` ends in ".gz"; it opens in Perfetto. With a `timeline` it shows every rank twice, as predicted
        and as measured; with the `cost` that the plan was made under, what each pack's time is made of."""
        options = TraceOptions.pick(locals())
        call_long(lib.hbp_plan_trace, self, path_bytes(path), ctypes.byref(options))

    def write_json(self, path: Path) -> None:
        """Writes the plan as JSON."""
        call_long(lib.hbp_plan_write_json, self, path_bytes(path))

    def __repr__(self) -> str:
        held = f"{many(len(self), 'step')}, {many(len(self.sample_ids), 'sample')}"
        return f"<hbp.Plan: {held}, digest {self.digest:016x}>"

"""Plans that do not list their samples, for data sets of any size: packs by patterns of lengths, steps by rule, and
which samples those are by a draw, computed where it is asked for."""

from __future__ import annotations

import ctypes
from functools import cached_property
from typing import TYPE_CHECKING, Any, Iterable, Iterator, Optional, TypedDict, Union

import numpy as np

from . import _native
from ._arrays import ViewColumn, address, integers
from ._choices import EpochOverLong
from ._context import Owned, ProgressOption, call, call_long
from ._files import Path, Saved, path_bytes
from ._inputs import Integers
from ._native import lib
from ._numbers import checked, int64, refuse_unknown, suggesting
from ._records import EpochOptions, PatternPlanView
from ._results import PlanSummary
from ._step_rows import StepRows
from ._text import many
from .cost import Cost
from .epoch import INPUTS
from .errors import InvalidError
from .groups import Groups
from .lengths import Lengths, chunks_of
from .plans import CURSOR_BYTES, Plan, Step, Steps

if TYPE_CHECKING:
    from typing_extensions import Unpack


class _LengthIndexBuilder(Owned):
    _opaque = _native.LengthIndexBuilder
    _free = "hbp_length_index_builder_free"


class LengthIndex(Owned):
    """The samples of a data set by their length: which sample is the n-th of so many tokens. 4 bytes a sample.
    Immutable; any thread may use it.

    `lengths` are those that the plan is made of: where it cut or dropped over-long samples, lengths.limit(...) of the
    same limit. A histogram's samples are in order of length as they are, and need no index."""

    _opaque = _native.LengthIndex
    _free = "hbp_length_index_free"

    def __init__(self, lengths: Union[Lengths, Integers], *, progress: ProgressOption = None) -> None:
        source = Lengths.of(lengths)
        made = LengthIndex._make(lib.hbp_length_index_create, source, keep=(source._handle,), progress=progress)
        self._handle, self._samples = made._handle, len(source)

    @classmethod
    def from_chunks(cls, histogram: Lengths, chunks: Iterable[Integers]) -> LengthIndex:
        """Of lengths that come in pieces, in the order of the samples, and are held nowhere; `histogram` says how
        often each occurs, as Lengths.count of the same pieces does. Refused where the pieces have other lengths."""
        builder = _LengthIndexBuilder._make(lib.hbp_length_index_builder_create, histogram)
        for chunk in chunks_of(chunks):
            array = integers("a chunk", chunk, np.uint32)
            if len(array):
                call_long(lib.hbp_length_index_builder_append, builder, address(array), len(array))
        made = cls._make(lib.hbp_length_index_builder_finish, builder)
        made._samples = len(histogram)
        return made

    def __repr__(self) -> str:
        return f"<hbp.LengthIndex: {many(self._samples, 'sample')}>"


class PatternPlan(Steps, Saved):
    """A plan by patterns: packs that hold as many samples of each length, made together, are one pattern, runs of
    samples of one length. No larger than a plan of half a million samples and a few numbers for each distinct length,
    in memory and as a file, however many samples there are. Immutable; any thread may read it.

    Steps are listed when they are asked for: `expand` gives some of them as a Plan, `step`, `[]` and iteration one at
    a time, and hbp.torch.PlanSampler walks all of them so. `index` says which samples those are.

    Columns are read-only numpy views of the library's memory and keep the plan alive. Patterns stand group by group,
    the longest packs first, in each group those that take longest first."""

    _opaque = _native.PatternPlan
    _free = "hbp_pattern_plan_free"
    _view = PatternPlanView
    _get_view = "hbp_pattern_plan_get_view"

    group_pack_lengths = ViewColumn[np.int64]("groups", "Most padded tokens of a pack of each group.")
    group_sp = ViewColumn[np.int32]("groups", "SP degree of each group.")
    group_recompute = ViewColumn[np.int32]("groups", "Layers that packs of each group recompute.")
    group_first_patterns = ViewColumn[np.int64]("groups", "First pattern of each group, [groups + 1].", extra=1)
    pattern_offsets = ViewColumn[np.int64]("patterns", "First run of each pattern, [patterns + 1].", extra=1)
    pattern_first_packs = ViewColumn[np.int64]("patterns", "Packs of the patterns before, [patterns + 1].", extra=1)
    pattern_ns = ViewColumn[np.int64]("patterns", "Predicted time of a pack of each pattern.")
    pattern_tokens = ViewColumn[np.int64]("patterns", "Tokens of a pack.")
    pattern_padded_tokens = ViewColumn[np.int64]("patterns", "Tokens of a pack after padding.")
    pattern_squares = ViewColumn[np.int64]("patterns", "Sum of squared sample lengths of a pack.")
    pattern_bytes = ViewColumn[np.int64]("patterns", "Predicted peak bytes per rank.")
    run_lengths = ViewColumn[np.int32]("runs", "Row of length_tokens of each run.")
    run_numbers = ViewColumn[np.int32]("runs", "Samples that a pack has of it.")
    run_firsts = ViewColumn[np.int64]("runs", "Samples of that length in the patterns before.")
    length_tokens = ViewColumn[np.int64]("distinct_lengths", "Distinct lengths, ascending.")
    length_samples = ViewColumn[np.int64]("distinct_lengths", "Samples of each.")

    _index: Optional[LengthIndex] = None
    _source: Optional[tuple[Lengths, int, EpochOverLong]] = None  # what the index is made of when it is asked for

    @classmethod
    def load(cls, path: Path, *, progress: ProgressOption = None) -> PatternPlan:
        """Reads a file of a plan by patterns. It has no index: give it that of the data set by `with_index`."""
        return cls._make(lib.hbp_pattern_plan_load, path_bytes(path), progress=progress)

    def save(self, path: Path, *, progress: ProgressOption = None) -> None:
        """Writes the plan without its index, whole or not at all."""
        call_long(lib.hbp_pattern_plan_save, self, path_bytes(path), progress=progress)

    def __reduce__(self) -> Any:
        if self._index is not None or self._source is not None:
            raise TypeError(
                "an hbp.PatternPlan with an index of samples cannot be pickled; pickle plan.with_index(None), and give "
                "what comes out its index again"
            )
        return super().__reduce__()

    def __copy__(self) -> PatternPlan:
        return self

    def __deepcopy__(self, memo: Any) -> PatternPlan:
        return self

    @property
    def index(self) -> Optional[LengthIndex]:
        """Which samples have which length: that of the array that the plan was made of, made when it is first asked
        for, or what `with_index` gave. None: sample ids are places in ascending order of length, those of the plan's
        length_samples[0] shortest samples first, as a histogram names its samples."""
        source = self._source
        if self._index is None and source is not None:
            lengths, limit, policy = source
            try:
                self._index = LengthIndex(lengths.limit(limit, policy) if limit else lengths)
            except InvalidError as error:
                if "of a histogram" not in error.message:
                    raise
            self._source = None
        return self._index

    def with_index(self, index: Union[LengthIndex, Lengths, Integers, None]) -> PatternPlan:
        """The same plan with the index of its lengths, or one made of those; refused for other lengths."""
        plan = PatternPlan.__new__(PatternPlan)
        plan._handle = self._handle
        plan._index = index if index is None or isinstance(index, LengthIndex) else LengthIndex(index)
        if index is not None:
            plan.expand(0)
        return plan

    def summary(self) -> PlanSummary:
        """The whole plan in numbers, those that the listed plan has but for the digest; print it."""
        summary = PlanSummary()
        call(lib.hbp_pattern_plan_get_summary, self, ctypes.byref(summary))
        return summary

    def _repr_html_(self) -> str:
        return self.summary()._repr_html_()

    @property
    def digest(self) -> int:
        """64 bits that ranks compare: equal plans, and only those, agree. The listed plan has another."""
        return self.summary().digest

    @property
    def shifted_loss(self) -> bool:
        """Whether its lengths had `shifted_loss`: the first token of a sample (piece) has no loss."""
        return bool(self.summary().shifted_loss)

    @property
    def has_pieces(self) -> bool:
        """Whether rows may be parts of samples, which over_long "split" or "truncate" cut."""
        summary = self.summary()
        return bool(summary.overlong_samples > summary.dropped)

    def expand(self, first: int, count: int = 1, *, progress: ProgressOption = None) -> Plan:
        """Steps [first, first + count) as a plan that lists their samples, whose step 0 is `first`; all of them are
        the whole listed plan. It has a digest of its own: cursors of this plan are not of it."""
        steps = int64("first", first), int64("count", count)
        return Plan._make(lib.hbp_pattern_plan_expand, self, self.index, *steps, progress=progress)

    @cached_property
    def _step_count(self) -> int:
        return int(self.summary().steps)

    def __len__(self) -> int:
        return self._step_count

    def _steps(self, rows: range) -> list[Step]:
        """Their `index` is the plan's, their `plan` what was listed at once."""
        if rows.step != 1 or not rows:
            return [self.step(row) for row in rows]
        part = self.expand(rows.start, len(rows))
        return [Step(part, row, rows.start) for row in range(len(part))]

    def __iter__(self) -> Iterator[Step]:
        """The steps in order, one listed at a time."""
        return (self.step(step) for step in range(len(self)))

    @cached_property
    def _step_rows(self) -> StepRows:
        summary = self.summary()
        multiple = summary.micro_batch_multiple
        return StepRows(summary.steps, summary.micro_batches // multiple, multiple)

    def redraw(self, *, seed: Optional[int] = None, epoch: Optional[int] = None) -> PatternPlan:
        """The same packs and steps with other samples: another epoch of a run. None keeps the plan's own."""
        summary = self.summary()
        draw = [
            checked(name, own if given is None else given, ctypes.c_uint64)
            for name, given, own in (("seed", seed, summary.seed), ("epoch", epoch, summary.epoch))
        ]
        plan = PatternPlan._make(lib.hbp_pattern_plan_redraw, self, *draw)
        plan._index = self.index
        return plan

    def validate(self, lengths: Union[Lengths, Integers, None] = None, cost: Optional[Cost] = None) -> None:
        """Checks every promise of a plan, with `lengths` and `cost` also against those; raises for the first breach.
        `lengths` are those planned: of over-long samples what lengths.limit(...) left."""
        call_long(lib.hbp_pattern_plan_validate, self, None if lengths is None else Lengths.of(lengths), cost)

    @suggesting
    def save_cursor(self, step: int) -> bytes:
        """Where to resume, before step `step`, as 64 bytes, which hold the index to its lengths in their order."""
        cursor = np.zeros(CURSOR_BYTES, np.uint8)
        call(lib.hbp_pattern_plan_save_cursor, self, self.index, int64("step", step), address(cursor))
        return cursor.tobytes()

    def load_cursor(self, cursor: bytes) -> int:
        """The step of a cursor; refused when plan, index or world size are not the ones it was written for."""
        if len(cursor) != CURSOR_BYTES:
            raise ValueError(f"the cursor has {len(cursor)} bytes; a cursor has {CURSOR_BYTES}")
        data, step = np.frombuffer(cursor, np.uint8), ctypes.c_int64()
        call(lib.hbp_pattern_plan_load_cursor, self, self.index, address(data), ctypes.byref(step))
        return step.value

    def __repr__(self) -> str:
        summary = self.summary()
        return (
            f"<hbp.PatternPlan: {many(summary.steps, 'step')}, {many(summary.samples, 'sample')} in "
            f"{many(len(self.pattern_ns), 'pattern')}, digest {summary.digest:016x}>"
        )


class PatternKeywords(TypedDict, total=False):
    """The options of plan_patterns: those of plan_epoch that a plan by patterns keeps."""

    over_long: EpochOverLong
    max_groups: int
    micro_batch_multiple: int
    max_samples: int
    effort: int
    max_length: int
    tokens_per_step: int
    sequence_multiple: int
    pack_multiple: int
    seed: int
    epoch: int
    groups: Optional[Groups]
    step_slack: int
    max_pack_length: int
    tokens_per_rank: int
    sequence_multiple_per_sp: int
    pack_multiple_per_sp: int


def plan_patterns(
    lengths: Union[Lengths, Integers],
    cost: Cost,
    *,
    progress: ProgressOption = None,
    **options: Unpack[PatternKeywords],
) -> PatternPlan:
    """Plans an epoch by patterns, from the histogram of `lengths` alone: time and memory grow with the variety of the
    lengths, not with the samples. Steps are stratified: each has its share of all packs, and at most tokens_per_step
    tokens (0: chosen). What plan_epoch with method "patterns" plans, before its samples are listed.

    For more samples than an array holds, `lengths` is Lengths.from_histogram or Lengths.count. Options are as in
    plan_epoch; those that a plan by patterns does not keep are not there. links and vision units are refused."""
    refuse_unknown(options, PatternKeywords, INPUTS)
    data, struct = Lengths.of(lengths), EpochOptions.pick(options)
    plan = PatternPlan._make(lib.hbp_plan_patterns, data, cost, ctypes.byref(struct), progress=progress)
    plan._source = data, options.get("max_length", 0), options.get("over_long", "error")
    return plan

"""A batch sampler that walks a plan, its states, and a loader that counts what was handed out."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Any, Callable, Iterator, Mapping, Optional, Union

import numpy as np
import numpy.typing as npt

from ._numbers import int32, int64
from ._sampler_state import MAX_EPOCH, VERSION, SamplerState, integer, invalid
from .errors import InvalidError
from .patterns import PatternPlan
from .plans import Pack, Plan, Step
from .rest import Rest

AnyPlan = Union[Plan, PatternPlan]
_LISTED = 3  # steps of a plan by patterns that are held: what is drawn, what is trained on, and one that begins

_CUT_MESSAGE = (
    "the plan cut over-long samples, or is a part of one that may have; wrap the dataset in hbp.torch.PieceDataset and "
    "pass pieces=True, or, where the dataset itself truncates them so or the plan dropped them, pieces=False"
)
_SPLIT_MESSAGE = (
    "the plan split samples; wrap the dataset in hbp.torch.PieceDataset and pass pieces=True: without, each piece "
    "would be the whole sample"
)


@dataclass(frozen=True)
class Piece:
    """A sample's id and which of its tokens the plan uses. No integer: a data set that knows of none refuses
    it."""

    sample: int
    first: int
    tokens: int

    @property
    def span(self) -> slice:
        """The tokens of the sample that belong to the piece."""
        return slice(self.first, self.first + self.tokens)


class PlanIterator:
    """One pass over a sampler's batches. Its state is that of the next batch."""

    def __init__(self, sampler: PlanSampler, position: int) -> None:
        self._sampler = sampler
        self._first = position
        self._position = position
        self._asked = False

    def __iter__(self) -> PlanIterator:
        return self

    def __next__(self) -> list[Any]:
        self._asked = True
        self._sampler._begun_by = None
        if self._position >= len(self._sampler):
            raise StopIteration
        batch = self._sampler.batch(self._position)
        self._position += 1
        return batch

    def state_dict(self) -> dict[str, Any]:
        return self._sampler.state_at(self._position)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        latest = self._sampler._latest
        self._first = self._position = self._sampler._enter(state)
        self._sampler._latest = latest


class PlanSampler:
    """A batch_sampler: a batch is the ids of one pack, a rank has one in each micro-batch of the plan.

    `plan` is a Plan, the same in every epoch, or a function of the epoch that makes one, which the sampler
    asks when set_epoch begins another. A PatternPlan, with the index of the data set, gives the batches of the
    plan that lists all of its steps, of which a few are in memory: `lambda epoch: plan.redraw(epoch=epoch)`.

    With `rank` the batches are that rank's, one a micro-batch, for a plain DataLoader. Without, they are all
    ranks', rank by rank inside each micro-batch: what accelerate shards by itself into each process's own
    (with even_batches=False). A batch of a padding pack is empty.

    Loaders draw batches before training wants them: those with workers, and accelerate's always. What has been
    trained on is counted where batches are consumed: by PlanLoader, by `consume`, or by torchdata's
    StatefulDataLoader, for which `stateful_loader` lets state_dict say what is drawn.

    `pieces`: batches hold Piece ids for a PieceDataset. None refuses plans that cut samples; False says that the
    data set truncates them itself.

    After load_state_dict or use_rest, set_epoch to another epoch is refused until a batch is drawn (the next epoch
    may follow a state of the end of one): accelerate's loaders count epochs of their own, from 0.

    len() is exact, and that of a whole epoch even after load_state_dict. Samplers can be pickled, and forked
    with the workers of a DataLoader."""

    def __init__(
        self,
        plan: Union[AnyPlan, Callable[[int], AnyPlan]],
        rank: Optional[int] = None,
        *,
        epoch: int = 0,
        pieces: Optional[bool] = None,
        stateful_loader: bool = False,
    ) -> None:
        self._source = plan
        self._plan: Optional[AnyPlan] = plan if isinstance(plan, (Plan, PatternPlan)) else None
        if self._plan is None and not callable(plan):
            raise TypeError(f"plan must be an hbp.Plan or a function of the epoch, not {type(plan).__name__}")
        self._listed: OrderedDict[int, Plan] = OrderedDict()  # of a plan by patterns, those last asked for
        self.epoch = integer("epoch", epoch, 0, MAX_EPOCH)
        self.rank = None if rank is None else int32("rank", rank)
        self.pieces = pieces
        self.stateful_loader = stateful_loader
        self._position = 0
        self._consumed: Optional[int] = None
        self._latest: Optional[PlanIterator] = None
        self._begun_by: Optional[str] = None
        self._ranks: Optional[int] = None
        self._rest: Optional[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]] = None
        if self._plan is not None:
            self._use(self._plan)

    def _check(self, plan: AnyPlan, has_pieces: bool = False) -> int:
        """The plan's ranks, if this sampler may walk it; `has_pieces`: its samples were parts of others."""
        if not isinstance(plan, (Plan, PatternPlan)):
            raise TypeError(f"the plan of an epoch is {plan!r}; it must be an hbp.Plan")
        summary = plan.summary()
        if self.rank is not None and not 0 <= self.rank < summary.ranks:
            raise ValueError(f"rank {self.rank} is not among the plan's {summary.ranks} ranks")
        part = plan.expand(0) if isinstance(plan, PatternPlan) else plan
        if not self.pieces and part.sample_first_tokens is not None:
            raise ValueError(_SPLIT_MESSAGE)
        if self.pieces is None and (has_pieces or plan.has_pieces):
            raise ValueError(_CUT_MESSAGE)
        return summary.ranks

    def _use(self, plan: AnyPlan) -> None:
        self._ranks, self._plan, self._rest = self._check(plan), plan, None
        self._listed.clear()

    def _own_plan(self, epoch: int) -> AnyPlan:
        """The sampler's own plan of an epoch, no rest of one."""
        return self._source if isinstance(self._source, (Plan, PatternPlan)) else self._source(epoch)

    @property
    def plan(self) -> AnyPlan:
        """The plan of the current epoch."""
        if self._plan is None:
            self._use(self._own_plan(self.epoch))
        return self._plan  # type: ignore[return-value]

    @property
    def ranks(self) -> int:
        """World size of the plan."""
        self.plan
        return self._ranks  # type: ignore[return-value]

    @property
    def batch_size(self) -> None:
        """None: batches differ in size. accelerate reads it when it is about to shard, which a rank's sampler
        must not suffer a second time."""
        if self.rank is not None and self.ranks > 1:
            raise RuntimeError(
                f"this PlanSampler yields the batches of rank {self.rank} alone and must not be sharded "
                "again; pass PlanSampler(plan) without a rank to accelerate, with even_batches=False"
            )
        return None

    @property
    def sampler(self) -> PlanSampler:
        """Itself: what accelerate's and Lightning's loaders call set_epoch of, behind their cut by process."""
        return self

    drop_last = True  # nothing is left over: every micro-batch has a pack for every rank

    def set_epoch(self, epoch: int) -> None:
        """Begins an epoch: asks for its plan where the sampler has a function of the epoch."""
        epoch = integer("epoch", epoch, 0, MAX_EPOCH)
        if epoch == self.epoch:
            return
        ended = epoch > self.epoch and self._plan is not None and self._resume_at() == len(self)
        if self._begun_by is not None and not ended:
            raise RuntimeError(
                f"epoch {epoch} begins, but {self._begun_by} is of epoch {self.epoch} and nothing of it was drawn; an "
                f"accelerate loader counts epochs itself, from 0: call its set_epoch({self.epoch}) first, or load into "
                "hbp.torch.PlanLoader(loader)"
            )
        self._move_to(epoch)

    def _move_to(self, epoch: int, plan: Optional[AnyPlan] = None) -> None:
        """Begins an epoch with its plan, the sampler's own."""
        self.epoch = epoch
        self._begin(0)
        if plan is None and isinstance(self._source, (Plan, PatternPlan)):
            plan = self._source
        self._plan = self._rest = None
        if plan is not None:
            self._use(plan)

    def use_rest(self, rest: Rest, plan: Plan) -> None:
        """`plan`, of rest.lengths, is what remains of the current epoch; the next has the sampler's own plan
        again. Batches keep naming the samples of the whole data set."""
        try:
            plan.validate(rest.lengths)
        except InvalidError as error:
            raise invalid(f"{plan!r} is no plan of {rest!r}, plan rest.lengths: {error}") from None
        is_whole = np.array_equal(rest.ids, np.arange(len(rest))) and not rest.has_pieces
        if isinstance(self._source, Plan) and self._source.digest == plan.digest and not is_whole:
            raise invalid(
                "the sampler's own plan is that of the rest, which later epochs would walk; give PlanSampler a plan of "
                "the whole data set, or a function of the epoch"
            )
        own = self._plan if self._rest is None else None
        if isinstance(own, Plan) and not own.has_pieces and not rest.has_pieces:
            _check_data_set(rest, own)
        if not self.pieces and rest._is_split:
            raise ValueError(_SPLIT_MESSAGE)
        self._ranks = self._check(plan, rest.has_pieces)
        self._plan, self._rest = plan, (rest.ids, rest.first_tokens)
        self._listed.clear()
        self._begin(0)
        self._begun_by = "the rest in use"

    def _begin(self, position: int) -> None:
        """The next iteration begins at `position`."""
        self._position = position
        self._consumed = self._latest = self._begun_by = None

    def micro_batches_per_step(self) -> int:
        """How many batches of a rank make a step, for trainers that accumulate gradients over a constant number
        (HF Trainer's gradient_accumulation_steps); refused where the plan's steps differ."""
        plan = self.plan
        counts = np.array(plan._step_rows.counts()) if isinstance(plan, PatternPlan) else np.diff(plan.step_offsets)
        if len(counts) and counts.min() != counts.max():
            how = "plan_epoch plans with" if isinstance(plan, PatternPlan) else "plan with"
            raise ValueError(
                f"steps have {counts.min()} to {counts.max()} micro-batches; {how} "
                f"micro_batches_per_step={counts.max()} for a constant number"
            )
        return int(counts[0]) if len(counts) else 1

    @property
    def _stride(self) -> int:
        return 1 if self.rank is not None else self.ranks

    def __len__(self) -> int:
        plan = self.plan
        rows = plan._step_rows.rows if isinstance(plan, PatternPlan) else len(plan.micro_batch_ns)
        return rows * self._stride

    def __iter__(self) -> PlanIterator:
        # PyTorch's loader with workers asks twice for an iterator before it draws.
        again = self._latest is not None and not self._latest._asked
        position = self._latest._first if again and self._latest is not None else self._position
        begun_by = self._begun_by
        self._begin(0)
        self._begun_by = begun_by
        self._latest = PlanIterator(self, position)
        return self._latest

    def consume(self, batches: int = 1) -> None:
        """Counts that training has used `batches` further batches of the latest iteration (of all ranks, where
        the sampler has no rank)."""
        if self._latest is None:
            raise RuntimeError("no batch has been drawn since the sampler was made or loaded")
        if int64("batches", batches) < 0:
            raise ValueError(f"batches is {batches}; it is at least 0")
        consumed = (self._latest._first if self._consumed is None else self._consumed) + int64(
            "batches", batches
        )
        if not self._latest._first <= consumed <= self._latest._position:
            raise ValueError(f"batch {consumed} is consumed; drawn are those up to {self._latest._position}")
        self._consumed = consumed

    def _pack_at(self, position: int) -> Pack:
        """The pack behind batch `position`; of a plan by patterns in its step alone."""
        if not 0 <= position < len(self):
            raise IndexError(f"batch {position} is not among {len(self)}")
        plan = self.plan
        row, rank = divmod(position, self._stride)
        if isinstance(plan, PatternPlan):
            step = self._step_of(row)
            row, plan = row - self._first_row(step), self._list(plan, step)
        first, end = plan.micro_batch_offsets[row : row + 2]
        wanted = rank if self.rank is None else self.rank
        return Pack(plan, int(first + np.searchsorted(plan.pack_ranks[first:end], wanted, side="right") - 1))

    def pack_of(self, position: int) -> int:
        """The plan's pack behind batch `position`; of a PatternPlan, whose packs have no numbers, that of its step."""
        return self._pack_at(position).index

    def batch(self, position: int) -> list[Any]:
        """The ids of batch `position`, Pieces where there are any."""
        pack = self._pack_at(position)
        plan, span = pack.plan, pack._samples
        ids, rest = plan.sample_ids[span], self._rest
        if not self.pieces:
            named: list[int] = (ids if rest is None else rest[0][ids]).tolist()
            return named
        tokens = plan.sample_tokens[span].tolist()
        first = np.zeros(len(ids), np.int64) if (cut := plan.sample_first_tokens) is None else cut[span]
        if rest is not None:
            ids, first = rest[0][ids], first + rest[1][ids]
        return [Piece(*piece) for piece in zip(ids.tolist(), first.tolist(), tokens)]

    def _list(self, plan: PatternPlan, step: int) -> Plan:
        """The step as a plan."""
        part = self._listed.pop(step, None)
        if part is None:
            part = plan.expand(step)
            rows = self._first_row(step + 1) - self._first_row(step)
            if len(part.micro_batch_ns) != rows:
                raise SystemError(f"step {step} of {plan!r} has {len(part.micro_batch_ns)} micro-batches, not {rows}")
        self._listed[step] = part
        while len(self._listed) > _LISTED:
            self._listed.popitem(last=False)
        return part

    def _step(self, step: int) -> Step:
        plan = self.plan
        return Step(self._list(plan, step), 0, step) if isinstance(plan, PatternPlan) else plan.step(step)

    def _first_row(self, step: int) -> int:
        """The first micro-batch of a step; how many there are, past the last."""
        plan = self.plan
        return plan._step_rows.first(step) if isinstance(plan, PatternPlan) else int(plan.step_offsets[step])

    def _step_of(self, micro_batch: int) -> int:
        """The step of a micro-batch of the plan; how many steps there are, past the last."""
        plan = self.plan
        if isinstance(plan, PatternPlan):
            return plan._step_rows.step_of(micro_batch)
        return int(np.searchsorted(plan.step_offsets, micro_batch, side="right")) - 1

    def state_at(self, position: int) -> dict[str, Any]:
        """The state before batch `position`: a cursor of the plan, and batches past the beginning of its
        step."""
        plan = self.plan
        if not 0 <= int64("position", position) <= len(self):
            raise IndexError(f"position is {position}; it must be in 0..{len(self)}")
        micro_batch, part = divmod(position, self._stride)
        step = self._step_of(micro_batch)
        return {
            "version": VERSION,
            "epoch": self.epoch,
            "cursor": plan.save_cursor(step).hex(),
            "batches": (micro_batch - self._first_row(step)) * self._stride + part,
            "ranks": self._stride,
        }

    def _locate(self, given: Mapping[str, Any]) -> tuple[SamplerState, AnyPlan, int]:
        """A state, the plan of its epoch and the batch before which it was taken. Changes nothing."""
        state = SamplerState(given)
        plan = self.plan if state.epoch == self.epoch else self._own_plan(state.epoch)
        ranks = self._check(plan) if plan is not self._plan else self.ranks
        step = plan.load_cursor(state.cursor)
        stride = 1 if self.rank is not None else ranks
        if state.ranks != stride:
            raise invalid(
                f"the state's ranks is {state.ranks}; it must be {stride}: this sampler has the batches of "
                + (f"all {ranks} ranks" if self.rank is None else f"rank {self.rank} alone")
            )
        if isinstance(plan, PatternPlan):
            rows = [plan._step_rows.first(at) for at in range(step, min(step + 2, len(plan) + 1))]
        else:
            rows = plan.step_offsets[step : step + 2].tolist()
        most = max((rows[-1] - rows[0]) * stride - 1, 0)
        if state.batches > most:
            raise invalid(f"the state's batches is {state.batches}; it must be in 0..{most} at step {step}")
        return state, plan, rows[0] * stride + state.batches

    def position_of(self, state: Mapping[str, Any]) -> int:
        """The batch of its epoch before which a state was taken; refused when plan, world size or the ranks that
        the sampler has have changed."""
        return self._locate(state)[2]

    def _enter(self, given: Mapping[str, Any]) -> int:
        """Goes to the epoch of a state; the batch before which it was taken. One that is refused moves nothing."""
        state, plan, position = self._locate(given)
        if state.epoch != self.epoch:
            self._move_to(state.epoch, plan)
        return position

    def state_dict(self, step: Optional[int] = None) -> dict[str, Any]:
        """The state before step `step`; without it, before the first batch that is not consumed. Refused where
        batches were drawn and none was counted as consumed: a loader may have drawn them ahead of training.
        With `stateful_loader` it is the state before the next batch to be drawn."""
        if step is not None:
            at, steps = int64("step", step), len(self.plan)
            if not -steps - 1 <= at <= steps:
                raise IndexError(f"step is {at}; it must be in 0..{steps}")
            return self.state_at(self._first_row(at if at >= 0 else at + steps + 1) * self._stride)
        if self._latest is not None and self.stateful_loader and self._consumed is None:
            return self._latest.state_dict()
        if self._latest is not None and self._consumed is None and self._latest._position > self._latest._first:
            raise RuntimeError(
                f"{self._latest._position - self._latest._first} batches are drawn and none is counted as "
                "consumed; wrap the loader in hbp.torch.PlanLoader, call consume() after each batch, name the step, "
                "state_dict(step=k), or, for a StatefulDataLoader, pass stateful_loader=True"
            )
        return self.state_at(self._resume_at())

    def _resume_at(self) -> int:
        if self._consumed is not None:
            return self._consumed
        return self._position if self._latest is None else self._latest._first

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """The next iteration begins where the state was taken."""
        self._begin(self._enter(state))
        self._begun_by = "the state loaded"

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        state["_latest"] = state["_consumed"] = None
        state["_listed"] = OrderedDict()
        if self._latest is not None:
            position = self._latest._position if self._consumed is None else self._consumed
            state["_position"] = position if position < len(self) else 0
        if self._rest is None and not isinstance(self._source, (Plan, PatternPlan)):
            state["_plan"] = None
        return state


def _check_data_set(rest: Rest, own: Plan) -> None:
    """Whether the samples of a rest are as long as a plan of the data set has them, where it has them."""
    tokens = np.full(1 + max(rest.ids.max(initial=-1), own.sample_ids.max(initial=-1)), -1, np.int64)
    tokens[own.sample_ids] = own.sample_tokens
    known = tokens[rest.ids]
    for row in np.flatnonzero((known >= 0) & (known != rest.tokens))[:1].tolist():
        raise invalid(
            f"sample {rest.ids[row]} of {rest!r} has {rest.tokens[row]} tokens, and {known[row]} in the sampler's "
            f"{own!r}; was `of` left out?"
        )


def _check_lengths(sampler: PlanSampler, position: int, pack: Pack, batch: Any) -> None:
    """Whether a batch of VarlenCollate, where it lies in the host's memory, has the samples of the pack at
    `position`."""
    is_ours = isinstance(batch, Mapping) and {"cu_seqlens", "cu_seqlens_padded", "loss_tokens"} <= set(batch)
    if not is_ours or pack.is_padding:
        return
    device = getattr(batch["cu_seqlens"], "device", "cpu")
    if batch["cu_seqlens"] is None or getattr(device, "type", device) != "cpu":
        return
    found, wanted = np.diff(np.asarray(batch["cu_seqlens"])), pack.lengths
    if len(found) != len(wanted):
        raise ValueError(f"a batch has {len(found)} samples; {pack!r}")
    for row in np.flatnonzero(found != wanted)[:1].tolist():
        sample = sampler.batch(position)[row]
        raise ValueError(
            f"sample {getattr(sample, 'sample', sample)} has {found[row]} tokens in its batch and {wanted[row]} in "
            "the plan; is the data set that of the plan's lengths?"
        )


class PlanLoader:
    """A loader of a PlanSampler's batches, of PyTorch or prepared by accelerate, that counts each batch as
    consumed when it is handed out, however far ahead the loader works: its state is that of the next batch.

    A state taken in the loop's body has the body's batch behind it. Whatever else is asked is the loader's."""

    def __init__(self, loader: Any) -> None:
        around, sampler = [loader], getattr(loader, "batch_sampler", None)
        while sampler is not None and not isinstance(sampler, PlanSampler):
            around.append(sampler)
            sampler = getattr(sampler, "batch_sampler", None)
        if sampler is None:
            raise TypeError(f"the batch_sampler of the {type(loader).__name__} is no hbp.torch.PlanSampler")
        dataset = getattr(loader, "dataset", None)
        if sampler.pieces and dataset is not None and not getattr(dataset, "takes_pieces", False):
            raise TypeError(
                f"the sampler has pieces=True, and the loader's dataset is a {type(dataset).__name__}; it must be an "
                "hbp.torch.PieceDataset, or have takes_pieces = True and cut samples by hbp.torch.Piece itself"
            )
        self.loader = loader
        self.sampler: PlanSampler = sampler
        # accelerate's: a batch of each process, of which one is handed out, and batches that are never.
        self._batches, self._own, self._skipped = 1, 0, 0
        for outer in reversed(around):
            self._own += getattr(outer, "process_index", 0) * self._batches
            self._batches *= getattr(outer, "num_processes", 1)
            self._skipped += getattr(outer, "skip_batches", 0) * self._batches

    def __iter__(self) -> Iterator[Any]:
        return (batch for _, _, batch in self.with_packs())

    def with_packs(self) -> Iterator[tuple[Step, Pack, Any]]:
        """(step, pack, batch): each batch with the pack that it is and the pack's step, from the batch on at which
        the loader begins. A batch of VarlenCollate (keys "hbp", in the host's memory) whose samples are not as long
        as the pack's is refused: the data set is not the one that the plan's lengths are of."""
        inner = getattr(self.loader, "base_dataloader", self.loader)
        if getattr(inner, "next_iter_state", None) is not None:  # torchdata's: it goes past batches by itself
            raise RuntimeError(
                f"the {type(inner).__name__} was given a state of its own, after which it passes over batches that are "
                "not counted; give the PlanLoader's state to the PlanLoader, or iterate without one"
            )
        skipped = self._skipped
        for batch in self.loader:
            self.sampler.consume(skipped + self._batches)
            skipped = 0
            position = self.sampler._resume_at() - self._batches + self._own
            pack = self.sampler._pack_at(position)
            _check_lengths(self.sampler, position, pack, batch)
            yield self.sampler._step(self.sampler._step_of(position // self.sampler._stride)), pack, batch
        if skipped and self.sampler._latest is not None:  # all that was drawn
            self.sampler.consume(self.sampler._latest._position - self.sampler._resume_at())

    def __len__(self) -> int:
        return len(self.loader)

    def __getattr__(self, name: str) -> Any:
        if name in ("loader", "sampler"):
            raise AttributeError(name)
        return getattr(self.loader, name)

    def set_epoch(self, epoch: int) -> None:
        """Begins an epoch, in loader and sampler."""
        if hasattr(self.loader, "set_epoch"):
            self.loader.set_epoch(epoch)
        self.sampler.set_epoch(epoch)

    def state_dict(self) -> dict[str, Any]:
        return self.sampler.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """The next iteration begins where the state was taken, in the state's epoch: accelerate's loader counts
        epochs of its own, and would begin with its first."""
        self.sampler.load_state_dict(state)
        if hasattr(self.loader, "set_epoch"):
            self.loader.set_epoch(self.sampler.epoch)

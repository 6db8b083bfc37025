"""What remains of an epoch after some of its steps, to be planned anew for another machine."""

from __future__ import annotations

from typing import Any, Mapping, Optional, Union

import numpy as np
import numpy.typing as npt

from ._numbers import int64
from ._sampler_state import SamplerState, invalid
from ._text import many
from .lengths import Lengths
from .patterns import PatternPlan
from .plans import Plan


class Rest:
    """The samples (pieces) of a plan from step `step` on: its number, a cursor of the plan, or the state of a
    sampler or loader, whose step begins again where it was not finished. What the earlier steps held is done;
    samples that the plan dropped stay out. Of a plan by patterns what remains is listed.

        rest = hbp.Rest(old_plan, cursor)
        plan = hbp.plan_epoch(rest.lengths, new_cost, batches=rest.batches)

    `lengths` is a data set of the remaining samples alone, with their loss tokens, vision units and modalities:
    sample i of it is ids[i] of the whole data set, from token first_tokens[i] on. `batches` are the samples of
    the old plan's steps: with them every step keeps its samples, however many ranks the new plan has; without,
    steps are made anew. Both are the same on every rank. `links` [samples of the whole data set] are those
    that the old lengths had. `of`: the rest that the plan itself was made of, where a run resumes again.

    `has_pieces`: whether samples here may be parts of those of the data set, so that batches need pieces."""

    lengths: Lengths
    ids: npt.NDArray[np.int64]
    first_tokens: npt.NDArray[np.int64]
    tokens: npt.NDArray[np.int32]
    batches: list[npt.NDArray[np.int64]]
    has_pieces: bool
    _is_split: bool

    def __init__(
        self,
        plan: Union[Plan, PatternPlan],
        step: Union[int, bytes, Mapping[str, Any]],
        *,
        links: Optional[npt.ArrayLike] = None,
        of: Optional[Rest] = None,
    ) -> None:
        cursor = SamplerState(step).cursor if isinstance(step, Mapping) else step
        at = plan.load_cursor(cursor) if isinstance(cursor, bytes) else int64("step", cursor)
        if not 0 <= at < len(plan):
            raise ValueError(f"step is {at}; the plan has {len(plan)} steps, nothing is left from there on")
        has_pieces = plan.has_pieces
        if isinstance(plan, PatternPlan):
            plan, at = plan.expand(at, len(plan) - at), 0
        packs = plan.micro_batch_offsets[plan.step_offsets[at:]]
        borders = plan.pack_offsets[packs]
        span = slice(int(borders[0]), int(borders[-1]))
        ids, first = plan.sample_ids[span], plan.sample_first_tokens
        firsts = np.zeros(len(ids), np.int64) if first is None else first[span]
        if of is not None:
            ends = firsts + plan.sample_tokens[span]
            known = of.tokens[np.minimum(ids, len(of) - 1)]
            wrong = (ids >= len(of)) | (ends > known) | (not has_pieces and ends != known)
            for row in np.flatnonzero(wrong)[:1].tolist():
                held = f"{known[row]} there" if ids[row] < len(of) else f"there are {len(of)} there"
                raise invalid(f"{plan!r} is no plan of {of!r}: its sample {ids[row]} has {ends[row]} tokens, {held}")
            ids, firsts = of.ids[ids], firsts + of.first_tokens[ids]
        order = np.lexsort((firsts, ids))
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        self.ids, self.first_tokens = ids[order], firsts[order]
        self._is_split = plan.sample_first_tokens is not None or (of is not None and of._is_split)
        self.has_pieces = has_pieces or (of is not None and of.has_pieces)
        self.tokens = plan.sample_tokens[span][order]
        cuts = np.diff(borders)[:-1].cumsum()
        self.batches = [np.sort(batch) for batch in np.split(place, cuts)]

        of_all = None if links is None else np.asarray(links)
        if of_all is not None and len(of_all) <= self.ids.max(initial=-1):
            raise ValueError(f"links has {len(of_all)} values; the plan has sample {self.ids.max()}")

        def rows(column: Optional[npt.NDArray[np.int32]]) -> Optional[npt.NDArray[np.int32]]:
            return None if column is None else column[span][order]

        self.lengths = Lengths.from_array(
            self.tokens,
            loss_tokens=rows(plan.sample_loss_tokens),
            shifted_loss=plan.shifted_loss,
            vision=rows(plan.sample_vision),
            modalities=rows(plan.sample_modalities),
            links=None if of_all is None else of_all[self.ids],
        )

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        return f"<hbp.Rest: {many(len(self), 'sample')} in {many(len(self.batches), 'step')}>"

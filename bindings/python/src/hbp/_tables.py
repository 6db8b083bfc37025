"""Plans and packs as tables: arrays by name, and those as Arrow and pandas have them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, Mapping

import numpy as np
import numpy.typing as npt

from ._numbers import not_among
from ._optional import need

if TYPE_CHECKING:
    from .packs import Packs
    from .plans import Plan

Columns = Dict[str, "npt.NDArray[Any]"]


def _owners(offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """For each of the rows that `offsets` divide, which part has it."""
    return np.repeat(np.arange(len(offsets) - 1, dtype=np.int64), np.diff(offsets))


def _given(columns: Mapping[str, Any]) -> Columns:
    return {name: column for name, column in columns.items() if column is not None}


def plan_columns(plan: Plan, rows: str) -> Columns:
    """See Plan.columns."""
    known = ("samples", "packs", "micro_batches", "steps")
    if rows not in known:
        raise ValueError(f"rows is {not_among(rows, known, '; it must be one of ')}")
    if rows == "steps":
        return {
            "step": np.arange(len(plan), dtype=np.int64),
            "micro_batches": np.diff(plan.step_offsets),
            "samples": plan.step_samples,
            "tokens": plan.step_tokens,
            "loss_tokens": plan.step_loss_tokens,
            "predicted_ns": plan.step_ns,
        }
    steps = _owners(plan.step_offsets)
    within = np.arange(len(steps), dtype=np.int64) - plan.step_offsets[steps]
    if rows == "micro_batches":
        return _given(
            {
                "step": steps,
                "micro_batch": within,
                "packs": np.diff(plan.micro_batch_offsets),
                "modalities": plan.micro_batch_modalities,
                "predicted_ns": plan.micro_batch_ns,
            }
        )
    micro_batches = _owners(plan.micro_batch_offsets)
    if rows == "packs":
        return _given(
            {
                "step": steps[micro_batches],
                "micro_batch": within[micro_batches],
                "first_rank": plan.pack_ranks,
                "sp": plan.pack_sp,
                "recompute": plan.pack_recompute,
                "capacity": plan.pack_capacity,
                "samples": np.diff(plan.pack_offsets),
                "tokens": plan.pack_tokens,
                "padded_tokens": plan.pack_padded_tokens,
                "squares": plan.pack_squares,
                "loss_tokens": plan.pack_loss_tokens,
                "vision": plan.pack_vision,
                "vision_capacity": plan.pack_vision_capacity,
                "predicted_ns": plan.pack_ns,
                "predicted_bytes": plan.pack_bytes,
            }
        )
    packs = _owners(plan.pack_offsets)
    of_packs = micro_batches[packs]
    return _given(
        {
            "step": steps[of_packs],
            "micro_batch": within[of_packs],
            "pack": packs,
            "first_rank": plan.pack_ranks[packs],
            "sp": plan.pack_sp[packs],
            "id": plan.sample_ids,
            "first_token": plan.sample_first_tokens,
            "tokens": plan.sample_tokens,
            "loss_tokens": plan.sample_loss_tokens,
            "vision": plan.sample_vision,
            "modality": plan.sample_modalities,
        }
    )


def packs_columns(packs: Packs, rows: str) -> Columns:
    """See Packs.columns."""
    known = ("samples", "packs")
    if rows not in known:
        raise ValueError(f"rows is {not_among(rows, known, '; it must be one of ')}")
    if rows == "samples":
        owners = _owners(packs.pack_offsets)
        return {"pack": owners, "group": packs.pack_groups[owners], "sample": packs.sample_indices}
    return _given(
        {
            "group": packs.pack_groups,
            "samples": np.diff(packs.pack_offsets),
            "tokens": packs.pack_tokens,
            "padded_tokens": packs.pack_padded_tokens,
            "squares": packs.pack_squares,
            "vision": packs.pack_vision,
        }
    )


def arrow_table(columns: Columns, what: str) -> Any:
    """A pyarrow.Table."""
    return need("pyarrow", what).table(dict(columns))


def pandas_frame(columns: Columns, what: str) -> Any:
    """A pandas.DataFrame, of values of its own."""
    return need("pandas", what).DataFrame({name: column.copy() for name, column in columns.items()})

"""The hand-off to PyTorch: a batch sampler that walks a plan, and a collate that lays samples end to end.

PyTorch is imported by varlen_collate alone, when it makes tensors; the sampler needs none of it.
"""

from __future__ import annotations

import math
from typing import Any, Mapping, Optional, Sequence, Union

import numpy as np
import numpy.typing as npt

from ._arrays import plain
from ._numbers import flag
from ._sampler import Piece, PlanIterator, PlanLoader, PlanSampler
from .patterns import PatternPlan
from .plans import Plan

__all__ = [
    "Piece",
    "PieceDataset",
    "PlanIterator",
    "PlanLoader",
    "PlanSampler",
    "VarlenCollate",
    "varlen_collate",
]


class PieceDataset:
    """A dataset whose samples are cut as the plan says: the fields named in `fields`, where a sample has
    them."""

    def __init__(
        self, dataset: Any, fields: Sequence[str] = ("input_ids", "labels", "attention_mask")
    ) -> None:
        self.dataset = dataset
        self.fields = tuple(fields)

    takes_pieces = True

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, index: Union[int, Piece]) -> Any:
        if not isinstance(index, Piece):
            return self.dataset[index]
        sample = self.dataset[index.sample]
        if not isinstance(sample, Mapping):
            return sample[index.span]
        return {name: value[index.span] if name in self.fields else value for name, value in sample.items()}


def _round_up(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple


def _multiple(plain: int, per_sp: int, sp: int) -> int:
    return math.lcm(plain, per_sp * sp) if sp > 1 and per_sp else plain


def _array(values: Any) -> npt.NDArray[np.int64]:
    if hasattr(values, "detach"):
        values = values.detach().cpu().numpy()
    array = plain("a sample's tokens", values)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise TypeError(
            f"a sample's tokens must be a 1-D sequence of integers, not {array.ndim}-D of {array.dtype}"
        )
    return array.astype(np.int64, copy=False)


class VarlenCollate:
    """Lays samples end to end for attention that stops at `cu_seqlens`.

    A sample is a sequence of token ids, or a mapping with "input_ids" and optionally "labels". The result has
    `input_ids`, `labels` and `position_ids` [1, tokens], int64; `cu_seqlens` and `cu_seqlens_padded`, int32,
    from 0; `max_seqlen`, `max_seqlen_padded` and `loss_tokens`, int. The padded borders are those of the
    tensors.

    Each sample is padded to `sequence_multiple` and the whole to `pack_multiple`, as the plan was made; on
    `sp` > 1 ranks to multiples of `sp` x `sequence_multiple_per_sp` and `sp` x `pack_multiple_per_sp` as well.
    Position ids begin at 0 with each sample and go on through padding, so that a zero always marks a border.
    Labels are the tokens themselves where a sample has none. `mask_first` gives the first label of each
    sample `ignore_index`: models that shift labels would predict it from the sample before; switch it off for
    labels that are shifted already. Lengths with shifted_loss make plans that count the loss so. No samples, a
    padding pack, become one sequence of padding without loss.

    `keys` "transformers" names the borders as transformers' flash attention wants them."""

    def __init__(
        self,
        *,
        sequence_multiple: int = 1,
        pack_multiple: int = 1,
        sequence_multiple_per_sp: int = 0,
        pack_multiple_per_sp: int = 0,
        pad_id: int = 0,
        ignore_index: int = -100,
        mask_first: bool = True,
        keys: str = "hbp",
    ) -> None:
        if sequence_multiple < 1 or pack_multiple < 1:
            raise ValueError(
                f"multiples are {sequence_multiple} and {pack_multiple}; they must be at least 1"
            )
        if sequence_multiple_per_sp < 0 or pack_multiple_per_sp < 0:
            raise ValueError(
                f"multiples per rank are {sequence_multiple_per_sp} and {pack_multiple_per_sp}; they must be "
                "at least 0"
            )
        if keys not in ("hbp", "transformers"):
            raise ValueError(f"keys is {keys!r}; it must be 'hbp' or 'transformers'")
        self.sequence_multiple = sequence_multiple
        self.pack_multiple = pack_multiple
        self.sequence_multiple_per_sp = sequence_multiple_per_sp
        self.pack_multiple_per_sp = pack_multiple_per_sp
        self.pad_id = pad_id
        self.ignore_index = ignore_index
        self.mask_first = flag("mask_first", mask_first)
        self.keys = keys

    @classmethod
    def for_plan(cls, plan: Union[Plan, PatternPlan], **options: Any) -> VarlenCollate:
        """With the multiples of a plan. Where the plan has shifted_loss, first labels are masked, and mask_first
        False is refused; where it has not, mask_first is True unless given."""
        summary = plan.summary()
        if summary.shifted_loss and not flag("mask_first", options.get("mask_first", True)):
            raise ValueError(
                "mask_first is False; the plan has shifted_loss: it counts no loss of a sample's first token"
            )
        multiples = {
            "sequence_multiple": summary.sequence_multiple,
            "pack_multiple": summary.pack_multiple,
            "sequence_multiple_per_sp": summary.sequence_multiple_per_sp,
            "pack_multiple_per_sp": summary.pack_multiple_per_sp,
        }
        return cls(**{**multiples, **options})

    def _multiples(self, sp: Optional[int]) -> tuple[int, int]:
        """What the samples, and the whole, of a pack on `sp` ranks are padded to."""
        if not self.sequence_multiple_per_sp and not self.pack_multiple_per_sp:
            return self.sequence_multiple, self.pack_multiple
        if sp is None or sp < 1:
            raise ValueError(
                "padding depends on the pack's SP degree: pass it as sp" if sp is None else f"sp is {sp}"
            )
        return (
            _multiple(self.sequence_multiple, self.sequence_multiple_per_sp, sp),
            _multiple(self.pack_multiple, self.pack_multiple_per_sp, sp),
        )

    def arrays(self, samples: Sequence[Any], sp: Optional[int] = None) -> dict[str, Any]:
        """The batch as numpy arrays, 1-D. `sp`, the pack's SP degree, counts with multiples per rank only."""
        sequence_multiple, pack_multiple = self._multiples(sp)
        tokens, labels = [], []
        for sample in samples:
            named = sample if isinstance(sample, Mapping) else {"input_ids": sample}
            tokens.append(_array(named["input_ids"]))
            labels.append(_array(named["labels"]) if named.get("labels") is not None else tokens[-1])
            if len(labels[-1]) != len(tokens[-1]):
                raise ValueError(f"a sample has {len(tokens[-1])} tokens and {len(labels[-1])} labels")
        lengths = np.array([len(sample) for sample in tokens], np.int64)
        padded = -(-lengths // sequence_multiple) * sequence_multiple
        end = int(padded.sum())
        total = max(
            _round_up(end, pack_multiple),
            0 if samples else _round_up(sequence_multiple, pack_multiple),
        )
        if total > np.iinfo(np.int32).max:
            raise OverflowError(
                f"the batch has {total} tokens; cu_seqlens hold at most {np.iinfo(np.int32).max}"
            )
        starts = np.concatenate([[0], np.cumsum(padded)])
        input_ids = np.full(total, self.pad_id, np.int64)
        targets = np.full(total, self.ignore_index, np.int64)
        position_ids = np.arange(total, dtype=np.int64)
        for start, width, sample, label in zip(starts.tolist(), padded.tolist(), tokens, labels):
            input_ids[start : start + len(sample)] = sample
            targets[start : start + len(label)] = label
            if self.mask_first and len(label):
                targets[start] = self.ignore_index
            position_ids[start : start + width] -= start
        if samples and total > end:  # the pack's own padding goes on from the last sample
            position_ids[end:] -= int(starts[-2])
        borders = np.concatenate([[0], np.cumsum(lengths)]) if samples else np.array([0, total])
        borders_padded = starts if total == end else np.concatenate([starts, [total]])
        return {
            "input_ids": input_ids,
            "labels": targets,
            "position_ids": position_ids,
            "cu_seqlens": borders.astype(np.int32),
            "cu_seqlens_padded": borders_padded.astype(np.int32),
            "max_seqlen": int(lengths.max()) if samples else total,
            "max_seqlen_padded": int(np.diff(borders_padded).max()),
            "loss_tokens": int(np.count_nonzero(targets != self.ignore_index)),
        }

    def __call__(self, samples: Sequence[Any], sp: Optional[int] = None) -> dict[str, Any]:
        """The batch as tensors; what is per token has a batch dimension of 1."""
        import importlib

        torch: Any = importlib.import_module("torch")
        batch = self.arrays(samples, sp)
        for name, value in batch.items():
            if isinstance(value, np.ndarray):
                tensor = torch.from_numpy(value)
                batch[name] = tensor if name.startswith("cu_seqlens") else tensor.unsqueeze(0)
        if self.keys == "transformers":
            borders, longest = batch.pop("cu_seqlens_padded"), batch.pop("max_seqlen_padded")
            for name in ("cu_seqlens", "max_seqlen", "loss_tokens"):
                del batch[name]
            batch.update(
                cu_seq_lens_q=borders, cu_seq_lens_k=borders, max_length_q=longest, max_length_k=longest
            )
        return batch


varlen_collate = VarlenCollate()

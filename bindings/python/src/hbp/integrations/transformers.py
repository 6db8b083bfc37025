"""transformers: a Trainer that walks a plan.

    class Trainer(hbp.integrations.transformers.PlanTrainer, transformers.Trainer): ...
    trainer = Trainer(..., plan=plan, data_collator=DataCollatorWithFlattening())

Every rank has its own pack in each micro-batch, every optimizer step has the samples of a step of the plan,
and its loss is divided by the step's loss tokens over all ranks, num_items_in_batch. gradient_accumulation_steps
is the plan's micro_batches_per_step."""

# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
# The trainer may not be there, or be taken for this module.
from __future__ import annotations

from itertools import islice
from typing import Any, Callable, Iterator, Optional, Union

import numpy as np

from ..plans import Plan
from ..torch import PlanSampler
from . import require_seam

KNOWN = ("5.24.0",)


def _refuse(what: str, value: object, wanted: object) -> None:
    raise ValueError(f"{what} is {value}; the plan wants {wanted}")


class PlanTrainer:
    """To be inherited from before transformers.Trainer."""

    args: Any
    state: Any
    accelerator: Any
    train_dataset: Any
    data_collator: Any

    def __init__(
        self, *args: Any, plan: Union[Plan, Callable[[int], Plan]], pieces: Optional[bool] = None, **kwargs: Any
    ) -> None:
        import transformers

        require_seam(
            "transformers",
            KNOWN,
            (transformers.Trainer, "get_batch_samples", "self epoch_iterator num_batches device"),
            (transformers.Trainer, "get_train_dataloader", "self"),
            (transformers.Trainer, "_get_collator_with_removed_columns", "self data_collator description"),
        )
        super().__init__(*args, **kwargs)
        self.sampler = PlanSampler(plan, pieces=pieces)
        self._steps = len(self.sampler.plan)
        self._check()

    def _check(self) -> None:
        plan, count = self.sampler.plan, self.args.gradient_accumulation_steps
        summary = plan.summary()
        if summary.ranks != self.args.world_size:
            _refuse("world size", self.args.world_size, summary.ranks)
        if self.sampler.micro_batches_per_step() != count:
            _refuse("gradient_accumulation_steps", count, self.sampler.micro_batches_per_step())
        if len(plan.pack_sp) and plan.pack_sp.max() > 1:
            raise ValueError(f"the plan has packs on {plan.pack_sp.max()} ranks; Trainer runs each on one: max_sp=1")
        if summary.padding_packs:
            raise ValueError(f"the plan has {summary.padding_packs} packs without samples; a rank needs some")
        if len(plan) != self._steps:  # Trainer reads the number once
            _refuse(f"the number of steps in epoch {self.sampler.epoch}", len(plan), self._steps)
        if self.args.world_size > 1 and not self.args.average_tokens_across_devices:
            _refuse("average_tokens_across_devices", False, True)

    def get_train_dataloader(self) -> Any:
        from torch.utils.data import DataLoader

        args = self.args
        collate = self._get_collator_with_removed_columns(  # type: ignore[attr-defined]
            self.data_collator, description="training"
        )
        self.accelerator.even_batches = False
        return self.accelerator.prepare(
            DataLoader(
                self.train_dataset,
                batch_sampler=self.sampler,
                collate_fn=collate,
                num_workers=args.dataloader_num_workers,
                pin_memory=args.dataloader_pin_memory,
                persistent_workers=args.dataloader_persistent_workers,
                prefetch_factor=args.dataloader_prefetch_factor,
            )
        )

    def get_batch_samples(
        self, epoch_iterator: Iterator[Any], num_batches: int, device: Any
    ) -> tuple[list[Any], Any]:
        """The step's micro-batches of this rank, and its loss tokens over all ranks, as the plan counts them."""
        import torch

        step, plan = self.state.global_step % self._steps, self.sampler.plan
        if not step:
            self._check()
        batches = list(islice(epoch_iterator, num_batches))
        mine = sum(int((batch["labels"][..., 1:] != -100).sum()) for batch in batches)
        rows = np.flatnonzero(plan.pack_ranks == self.args.process_index)
        first, end = plan.micro_batch_offsets[plan.step_offsets[step : step + 2]]
        wanted = int(plan.pack_loss_tokens[rows[(rows >= first) & (rows < end)]].sum())
        if mine != wanted:
            _refuse(f"the number of loss tokens of step {step} on rank {self.args.process_index}", mine, wanted)
        return batches, torch.tensor(plan.step(step).loss_tokens, device=device)

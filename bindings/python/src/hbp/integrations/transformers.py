"""transformers: a Trainer that walks a plan.

    class Trainer(hbp.integrations.transformers.PlanTrainer, transformers.Trainer): ...
    trainer = Trainer(..., plan=plan, data_collator=DataCollatorWithFlattening())

Every rank has its own pack in each micro-batch, every optimizer step has the samples of a step of the plan,
and its loss is divided by the step's loss tokens over all ranks, num_items_in_batch. gradient_accumulation_steps
is the plan's micro_batches_per_step."""

# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
# The trainer may not be there, or be taken for this module.
from __future__ import annotations

from itertools import chain, islice, repeat
from typing import Any, Callable, Iterator, Optional, Union

import numpy as np

from ..plans import Plan
from ..rest import Rest
from ..torch import PlanSampler
from . import require_seam

KNOWN = ("5.22.2", "5.23.0", "5.24.0")


def _refuse(what: str, value: object, wanted: object) -> None:
    raise ValueError(f"{what} is {value}; the plan wants {wanted}")


class _Remaining:
    """A batch sampler of an epoch of which a rest is left: Trainer skips the batches of the steps before it, which
    are empty here, then come the rest's."""

    batch_size = None
    drop_last = True

    def __init__(self, sampler: PlanSampler) -> None:
        self.sampler = sampler  # by this name accelerate finds its set_epoch
        self.epoch: Optional[int] = None
        self.batches = 0

    def _before(self) -> int:
        return self.batches if self.sampler.epoch == self.epoch else 0

    def __len__(self) -> int:
        return self._before() + len(self.sampler)

    def __iter__(self) -> Iterator[list[int]]:
        return chain(repeat([], self._before()), self.sampler)


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
        self._rest: Optional[tuple[Rest, Plan]] = None
        self._remaining = _Remaining(self.sampler)
        self._entered: Optional[int] = None
        self._steps = len(self.sampler.plan)
        self._check()

    def use_rest(self, rest: Rest, plan: Plan) -> None:
        """For a checkpoint of another world size: `plan`, of rest.lengths, is what remains of the epoch in which
        train(resume_from_checkpoint=...) goes on; further epochs are of the trainer's own plan, which must have
        as many steps as the old run's."""
        self._rest = rest, plan

    def _before(self) -> int:
        """Steps of the epoch that were done before the rest in use."""
        in_rest = self._remaining.epoch is not None and self._remaining.epoch == self._entered
        return self._steps - len(self.sampler.plan) if in_rest else 0

    def _enter(self, epoch: int) -> None:
        """Goes to an epoch before anything of it is drawn. The loader's set_epoch does not reach the sampler where
        a resumed run skips batches on several processes."""
        if epoch == self._entered and self._rest is None:
            return
        self.sampler.set_epoch(epoch)
        self._entered, self._remaining.epoch = epoch, None
        if self._rest is not None:
            self.sampler.use_rest(*self._rest)
            self._rest, self._remaining.epoch = None, epoch
            batches = self.args.gradient_accumulation_steps * self.args.world_size
            self._remaining.batches = self._before() * batches
        self._check()

    def _listed(self) -> Plan:
        plan = self.sampler.plan
        if not isinstance(plan, Plan):
            raise TypeError(f"the plan of an epoch is {plan!r}; the Trainer takes an hbp.Plan, plan.expand(0, len(plan))")
        return plan

    def _check(self) -> None:
        plan, args = self._listed(), self.args
        summary, count = plan.summary(), args.gradient_accumulation_steps
        if summary.ranks != args.world_size:
            _refuse("world size", args.world_size, summary.ranks)
        if self.sampler.micro_batches_per_step() != count:
            _refuse("gradient_accumulation_steps", count, self.sampler.micro_batches_per_step())
        if len(plan.pack_sp) and plan.pack_sp.max() > 1:
            raise ValueError(f"the plan has packs on {plan.pack_sp.max()} ranks; Trainer runs each on one: max_sp=1")
        if summary.padding_packs:
            raise ValueError(f"the plan has {summary.padding_packs} packs without samples; a rank needs some")
        if not 0 <= self._before() < self._steps or len(plan) + self._before() != self._steps:
            # Trainer reads the number once
            _refuse(f"the number of steps in epoch {self.sampler.epoch}", len(plan), self._steps)
        if args.world_size > 1 and not args.average_tokens_across_devices:
            _refuse("average_tokens_across_devices", False, True)
        for name, wanted in (("n_gpu", 1), ("ignore_data_skip", False)):  # n_gpu: of one process, DataParallel
            if getattr(args, name, wanted) > wanted:
                _refuse(name, getattr(args, name), wanted)
        if getattr(getattr(self, "accelerator", None), "dispatch_batches", None):
            _refuse("accelerator_config.dispatch_batches", True, False)
        if not (getattr(self, "model_accepts_loss_kwargs", True) or getattr(self, "compute_loss_func", None)):
            raise ValueError(
                f"the forward of {type(getattr(self, 'model', None)).__name__} takes no num_items_in_batch and there is "
                "no compute_loss_func: the loss would not be divided by the step's tokens"
            )

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
                batch_sampler=self.sampler if self._rest is None else self._remaining,
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

        epoch, step = divmod(self.state.global_step, self._steps)
        self._enter(epoch)
        plan, at = self._listed(), step - self._before()
        if at < 0:
            raise ValueError(f"the checkpoint is of step {step} of its epoch; the rest begins with step {self._before()}")
        batches = list(islice(epoch_iterator, num_batches))
        mine = sum(int((batch["labels"][..., 1:] != -100).sum()) for batch in batches)
        rows = np.flatnonzero(plan.pack_ranks == self.args.process_index)
        first, end = plan.micro_batch_offsets[plan.step_offsets[at : at + 2]]
        wanted = int(plan.pack_loss_tokens[rows[(rows >= first) & (rows < end)]].sum())
        if mine != wanted:
            hint = "" if plan.shifted_loss else "; lengths with shifted_loss=True count no first token of a sample"
            _refuse(
                f"the number of loss tokens of step {step} on rank {self.args.process_index}", mine, f"{wanted}{hint}"
            )
        return batches, torch.tensor(plan.step(at).loss_tokens, device=device)

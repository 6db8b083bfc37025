"""The Trainer that walks a plan: behind a stand-in of transformers.Trainer, and in transformers' own where it is
installed."""

import functools
import importlib.util
import json
import os
import socket
import subprocess
import sys
import tempfile
import types
import unittest
from pathlib import Path
from unittest import mock

import numpy as np

import hbp
from hbp.integrations import UnknownTrainerError
from hbp.integrations.transformers import PlanTrainer
from hbp.torch import PlanSampler
from integration_seams import run_page, snippet

HAVE = all(importlib.util.find_spec(name) for name in ("torch", "transformers", "accelerate"))

LENGTHS = np.random.RandomState(3).geometric(1 / 40, size=240).clip(2, 200)


def make_cost(ranks=2, max_sp=1):
    terms = dict(
        ranks=ranks, layers=2, limit_bytes=1 << 30, ns_per_token=100.0, ns_per_token_squared=0.05, pack_ns=1e4,
        static_bytes=1 << 20, activation_bytes=1 << 12, recomputed_bytes=1 << 10, recompute_linear=0.3,
        recompute_attention=0.3,
    )  # fmt: skip
    degrees = (1, 2) if max_sp > 1 else (1,)
    waits, slopes = (0.0, 20.0)[: len(degrees)], (0.0, 0.01)[: len(degrees)]
    return hbp.Cost.from_terms(
        hbp.CostTerms(**terms, degree=degrees, sp_latency_ns=waits, sp_ns_per_token=slopes)
    )


@functools.lru_cache(maxsize=None)
def make_plan(ranks=2, count=2, max_sp=1, **options):
    data = hbp.Lengths.from_array(LENGTHS, loss_tokens=LENGTHS - 1)
    options.setdefault("tokens_per_step", 256 * ranks * count)
    cost = make_cost(ranks, max_sp)
    return hbp.plan_epoch(data, cost, micro_batches_per_step=count, max_pack_length=256, **options)


class StandIn:
    """What PlanTrainer takes from transformers.Trainer."""

    def __init__(self, args):
        self.args = args
        self.state = types.SimpleNamespace(global_step=0)

    def get_train_dataloader(self):
        raise AssertionError

    def get_batch_samples(self, epoch_iterator, num_batches, device):
        raise AssertionError

    def _get_collator_with_removed_columns(self, data_collator, description=None):
        return data_collator


def arguments(rank=0, ranks=2, count=2, average=True):
    return types.SimpleNamespace(
        world_size=ranks, process_index=rank, gradient_accumulation_steps=count, average_tokens_across_devices=average
    )


def batch_of(ids):
    labels = np.concatenate([np.r_[-100, np.ones(LENGTHS[k] - 1, np.int64)] for k in ids])
    return {"labels": labels[None]}


class BehindAStandIn(unittest.TestCase):
    def setUp(self):
        trainers = types.ModuleType("transformers")
        trainers.Trainer = StandIn
        torch = types.ModuleType("torch")
        torch.tensor = lambda value, device=None: value
        patch = mock.patch.dict(sys.modules, transformers=trainers, torch=torch)
        patch.start()
        self.addCleanup(patch.stop)
        self.trainers = trainers

    def trainer(self, plan, **options):
        class Trainer(PlanTrainer, self.trainers.Trainer):
            pass

        return Trainer(arguments(**options), plan=plan)

    def trainer_of(self, given, plan):
        class Trainer(PlanTrainer, self.trainers.Trainer):
            pass

        return Trainer(given, plan=plan)

    def test_the_pages_lines(self):
        class Named(StandIn):
            def __init__(self, model, args, train_dataset, data_collator):
                super().__init__(args)

        self.trainers.Trainer = Named
        self.trainers.DataCollatorWithFlattening = object
        names = dict(transformers=self.trainers, model=None, args=arguments(), data=[], plan=make_plan())
        printed = run_page(snippet("transformers.md"), names)
        self.assertEqual(printed, f"{2 * 2 * len(names['plan'])} packs\n")
        self.assertEqual(len(names["trainer"].sampler), 2 * 2 * len(names["plan"]))

    def test_each_step_is_divided_by_the_tokens_of_all_ranks(self):
        plan = make_plan()
        self.assertEqual(plan.summary().padding_packs, 0)
        for rank in range(2):
            trainer = self.trainer(plan, rank=rank)
            batches = iter([batch_of(ids) for ids in list(trainer.sampler)[rank::2]])
            for step in range(len(plan)):
                trainer.state.global_step = step
                given, tokens = trainer.get_batch_samples(batches, 2, "cpu")
                self.assertEqual(len(given), 2)
                self.assertEqual(tokens, sum(pack.loss_tokens for pack in plan.step(step).packs()))
            self.assertEqual(list(batches), [])

    def test_batches_of_another_step_are_refused(self):
        plan = make_plan()
        trainer = self.trainer(plan)
        own = [sum(pack.loss_tokens for pack in step.for_rank(0)) for step in plan]
        other = next(step for step, tokens in enumerate(own) if tokens != own[0])
        trainer.state.global_step = other
        batches = iter([batch_of(ids) for ids in list(trainer.sampler)[0::2]])
        with self.assertRaisesRegex(ValueError, rf"loss tokens of step {other} on rank 0 is \d+; the plan wants \d+"):
            trainer.get_batch_samples(batches, 2, "cpu")

    def test_what_the_trainer_cannot_run_is_named(self):
        for options, message in (
            (dict(ranks=4), "world size is 4; the plan wants 2"),
            (dict(count=3), "gradient_accumulation_steps is 3; the plan wants 2"),
            (dict(average=False), "average_tokens_across_devices is False"),
        ):
            with self.assertRaisesRegex(ValueError, message):
                self.trainer(make_plan(), **options)
        wide = make_plan(max_sp=2, tokens_per_rank=128)
        self.assertEqual(wide.pack_sp.max(), 2)
        with self.assertRaisesRegex(ValueError, "packs on 2 ranks; Trainer runs each on one"):
            self.trainer(wide)

    def test_an_epoch_of_another_number_of_steps_is_refused(self):
        plans = [make_plan(), make_plan(tokens_per_step=700)]
        self.assertNotEqual(len(plans[0]), len(plans[1]))
        trainer = self.trainer(lambda epoch: plans[epoch])
        trainer.sampler.set_epoch(1)
        trainer.state.global_step = len(plans[0])
        with self.assertRaisesRegex(ValueError, "number of steps in epoch 1"):
            trainer.get_batch_samples(iter([]), 2, "cpu")

    def test_what_would_change_the_loss_or_lose_batches_is_refused(self):
        for name, value, wanted in (("n_gpu", 2, 1), ("ignore_data_skip", True, False)):
            given = arguments()
            setattr(given, name, value)
            with self.assertRaisesRegex(ValueError, f"{name} is {value}; the plan wants {wanted}"):
                self.trainer_of(given, make_plan())

        class Dispatching(StandIn):
            accelerator = types.SimpleNamespace(dispatch_batches=True)

        class Plain(StandIn):
            model_accepts_loss_kwargs = False
            model = []

        class WithLoss(Plain):
            def compute_loss_func(self, outputs, labels, num_items_in_batch):
                return outputs

        for kind, message in (
            (Dispatching, "dispatch_batches is True; the plan wants False"),
            (Plain, "the forward of list takes no num_items_in_batch"),
        ):
            self.trainers.Trainer = kind
            with self.assertRaisesRegex(ValueError, message):
                self.trainer(make_plan())
        self.trainers.Trainer = WithLoss
        self.trainer(make_plan())

    def test_the_epoch_is_that_of_the_step(self):
        plans = [make_plan(seed=epoch) for epoch in range(3)]
        steps = len(plans[0])
        self.assertEqual({len(plan) for plan in plans}, {steps})
        trainer = self.trainer(lambda epoch: plans[epoch])
        trainer.state.global_step = steps + 1
        batches = (batch_of(ids) for ids in list(PlanSampler(plans[1]))[4::2])
        _, tokens = trainer.get_batch_samples(batches, 2, "cpu")
        self.assertEqual((trainer.sampler.epoch, tokens), (1, plans[1].step(1).loss_tokens))

    def test_a_rest_that_begins_after_the_checkpoint_is_refused(self):
        plan = make_plan(ranks=1, count=4)
        trainer = self.trainer(make_plan())
        rest = hbp.Rest(plan, 3)
        options = dict(batches=rest.batches, micro_batches_per_step=2, max_pack_length=256)
        if len(plan) == len(trainer.sampler.plan):
            before = 3
        else:
            before = len(trainer.sampler.plan) - len(plan) + 3
        trainer.use_rest(rest, hbp.plan_epoch(rest.lengths, make_cost(2), **options))
        trainer.state.global_step = before - 1
        with self.assertRaisesRegex(ValueError, f"step {before - 1} of its epoch; the rest begins with step {before}"):
            trainer.get_batch_samples(iter([]), 2, "cpu")

    def test_unknown_versions(self):
        class Other(StandIn):
            def get_batch_samples(self, iterator):
                return iterator

        self.trainers.Trainer = Other
        with self.assertRaisesRegex(UnknownTrainerError, "get_batch_samples takes .self, iterator."):
            self.trainer(make_plan())


@unittest.skipUnless(HAVE, "transformers, accelerate and PyTorch are not installed")
class InTransformers(unittest.TestCase):
    def trainer(self, folder, plan, seen, **options):
        import torch
        import transformers

        config = transformers.LlamaConfig(
            vocab_size=64, hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2,
            num_key_value_heads=2, max_position_embeddings=512, attn_implementation="eager",
        )  # fmt: skip
        torch.manual_seed(0)
        model = transformers.LlamaForCausalLM(config)
        ids = np.random.RandomState(0)
        data = [{"input_ids": ids.randint(1, 64, length).tolist()} for length in LENGTHS]

        class Trainer(PlanTrainer, transformers.Trainer):
            def get_batch_samples(self, iterator, number, device):
                batches, tokens = super().get_batch_samples(iterator, number, device)
                first_ids = [batch["input_ids"][0].tolist() for batch in batches]
                seen.append((self.state.global_step, first_ids, int(tokens)))
                return batches, tokens

        arguments = transformers.TrainingArguments(
            output_dir=folder, gradient_accumulation_steps=2, use_cpu=True, report_to=[], save_strategy="steps",
            save_steps=3, learning_rate=1e-2, logging_steps=1, disable_tqdm=True, remove_unused_columns=False,
            max_grad_norm=1e9, **options,
        )  # fmt: skip
        collate = transformers.DataCollatorWithFlattening()
        return data, Trainer(
            model=model, args=arguments, train_dataset=data, data_collator=collate, plan=plan
        )

    def test_steps_are_the_plans_and_a_resumed_run_goes_on(self):
        plan = make_plan(ranks=1)
        self.assertGreater(len(plan), 7)
        with tempfile.TemporaryDirectory() as folder:
            seen = []
            data, trainer = self.trainer(folder, plan, seen, num_train_epochs=2, dataloader_num_workers=2)
            trainer.train()
            self.assertEqual(trainer.state.global_step, 2 * len(plan))
            for number, batches, tokens in seen:
                step = plan.step(number % len(plan))
                want = [sum((data[k]["input_ids"] for k in pack.ids), []) for pack in step.for_rank(0)]
                self.assertEqual(batches, want)
                self.assertEqual(tokens, step.loss_tokens)
            losses = [row["loss"] for row in trainer.state.log_history if "loss" in row]
            again = []
            _, resumed = self.trainer(folder, plan, again, num_train_epochs=2)
            resumed.train(resume_from_checkpoint=f"{folder}/checkpoint-6")
            self.assertEqual(again, seen[6:])
            after = [row["loss"] for row in resumed.state.log_history if "loss" in row]
            np.testing.assert_allclose(after, losses, rtol=1e-3)

    def test_the_loss_is_the_mean_over_the_steps_tokens(self):
        import torch

        plan = make_plan(ranks=1)
        with tempfile.TemporaryDirectory() as folder:
            data, trainer = self.trainer(folder, plan, [], max_steps=1)
            model, total = trainer.model, 0.0
            with torch.no_grad():
                for pack in plan.step(0).packs():
                    batch = trainer.data_collator([data[k] for k in pack.ids.tolist()])
                    logits = model(input_ids=batch["input_ids"], position_ids=batch["position_ids"]).logits
                    total += torch.nn.functional.cross_entropy(
                        logits[0, :-1], batch["labels"][0, 1:], ignore_index=-100, reduction="sum"
                    ).item()
            trainer.train()
            logged = [row["loss"] for row in trainer.state.log_history if "loss" in row]
            self.assertAlmostEqual(logged[0], total / plan.step(0).loss_tokens, places=3)

    def test_two_processes_train_and_resume_as_one_does(self):
        """Each sample once an epoch, the gradients of one process that has all samples, nothing lost or twice in a
        resumed epoch, on as many processes or on another number."""
        import training

        with tempfile.TemporaryDirectory() as folder:
            state = f"{folder}/checkpoint-{training.STEPS + 3}"
            run = dict(folder=folder, ranks=2, count=2)
            runs = [dict(run, dataloader_num_workers=1), dict(run, resume=state, folder=f"{folder}/again")]
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                port = free.getsockname()[1]
            own = [str(Path(hbp.__file__).parents[1]), str(Path(__file__).parent)]
            common = dict(WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), OMP_NUM_THREADS="1")
            children = []
            for rank in range(2):
                command = [sys.executable, training.__file__, json.dumps(runs), f"{folder}/notes.{rank}"]
                environment = {**os.environ, **common, "PYTHONPATH": os.pathsep.join(own)}
                environment.update(RANK=str(rank), LOCAL_RANK=str(rank))
                children.append(
                    subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
                )
            try:
                one, gradients = training.train(f"{folder}/one", 1, 4)
                for child in children:
                    output, _ = child.communicate(timeout=120)
                    self.assertEqual(child.returncode, 0, output)
            finally:
                for child in children:
                    child.kill()
            notes = [json.loads(Path(f"{folder}/notes.{rank}").read_text()) for rank in range(2)]
            few, fewer_gradients = training.train(
                f"{folder}/fewer", 1, 4, state, resumed_ranks=2, resumed_count=2
            )
        self.check_trained([one], gradients, 4)
        for run, first, count in ((0, 0, 2), (1, training.STEPS + 3, 2)):
            for rank in range(2):
                _, of_rank = notes[rank][run]
                np.testing.assert_allclose(of_rank, gradients[first:], rtol=1e-4, atol=1e-7)
            self.check_trained([notes[rank][run][0] for rank in range(2)], gradients[first:], count, first)
        np.testing.assert_allclose(fewer_gradients, gradients[training.STEPS + 3 :], rtol=1e-4, atol=1e-7)
        self.check_trained([few], fewer_gradients, 4, training.STEPS + 3)
        self.check_alone(gradients[0])

    def check_trained(self, of_ranks, gradients, count, first=0):
        """What each rank was trained on is the plan's, every sample once."""
        import training

        steps = range(first, 2 * training.STEPS)
        self.assertEqual(len(gradients), len(steps))
        for notes in of_ranks:
            self.assertEqual([step for step, _, _ in notes], [step for step in steps for _ in range(count)])
        for step in steps:
            got = sorted(k for notes in of_ranks for at, batch, _ in notes if at == step for k in batch)
            plan = training.plan_of(step // training.STEPS, 1, 4)
            want = np.concatenate([pack.ids for pack in plan.step(step % training.STEPS).packs()])
            self.assertEqual(got, sorted(want.tolist()))
            tokens = {tokens for notes in of_ranks for at, _, tokens in notes if at == step}
            self.assertEqual(tokens, {int((LENGTHS[want] - 1).sum())})

    def check_alone(self, gradient):
        """The first step's gradient is that of its samples each alone, divided by their predicted tokens."""
        import torch
        import training

        model, data = training.make_model(), training.samples()
        ids = [k for pack in training.plan_of(0, 1, 4).step(0).packs() for k in pack.ids.tolist()]
        for k in ids:
            tokens = torch.tensor(data[k]["input_ids"])
            logits = model(input_ids=tokens[None]).logits[0]
            loss = torch.nn.functional.cross_entropy(logits[:-1], tokens[1:], reduction="sum")
            (loss / (LENGTHS[ids] - 1).sum()).backward()
        flat = torch.cat([parameter.grad.flatten() for parameter in model.parameters()])
        np.testing.assert_allclose(flat[::97].tolist() + [flat.norm().item()], gradient, rtol=1e-3, atol=1e-6)


if __name__ == "__main__":
    unittest.main()

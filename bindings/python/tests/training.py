"""Trains a tiny model in transformers' Trainer on a plan and notes what it was trained on: by function, or as one process
of several, with the runs as JSON in argv[1] and the notes into the file argv[2]."""

import json
import sys

import numpy as np
import torch
import transformers

import hbp
from hbp.integrations.transformers import PlanTrainer
from test_integrations_transformers import LENGTHS, make_cost, make_plan

STEPS = 16


def plan_of(epoch, ranks, count):
    """Steps hold the same samples on any number of ranks."""
    order = np.random.RandomState(epoch).permutation(len(LENGTHS))
    return make_plan(ranks, count, tokens_per_step=0, batches=np.array_split(order, STEPS), epoch=epoch)


def samples():
    draw = np.random.RandomState(0)
    return [{"input_ids": draw.randint(1, 64, length).tolist(), "sample": k} for k, length in enumerate(LENGTHS)]


def make_model():
    torch.manual_seed(0)
    return transformers.LlamaForCausalLM(
        transformers.LlamaConfig(
            vocab_size=64, hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2,
            num_key_value_heads=2, max_position_embeddings=512, attn_implementation="eager",
        )  # fmt: skip
    )


class Collate(transformers.DataCollatorWithFlattening):
    def __call__(self, features, **options):
        batch = super().__call__(features, **options)
        return {**batch, "samples": torch.tensor([feature["sample"] for feature in features])}


def train(folder, ranks, count, resume=None, resumed_ranks=None, resumed_count=0, **options):
    """Two epochs, with a checkpoint before step 3 of the second; [steps, [(step, samples, tokens of the step)],
    [gradient]]. `resumed_ranks`: of the run that wrote the checkpoint."""
    seen, gradients = [], []

    class Trainer(PlanTrainer, transformers.Trainer):
        def training_step(self, model, inputs, num_items_in_batch=None):
            seen.append((self.state.global_step, inputs.pop("samples").tolist(), int(num_items_in_batch)))
            return super().training_step(model, inputs, num_items_in_batch)

    class Gradients(transformers.TrainerCallback):
        def on_pre_optimizer_step(self, args, state, control, model=None, **others):
            flat = torch.cat([parameter.grad.flatten() for parameter in model.parameters()])
            gradients.append(flat[:: 97].tolist() + [flat.norm().item()])

    arguments = transformers.TrainingArguments(
        output_dir=folder, gradient_accumulation_steps=count, use_cpu=True, report_to=[], save_strategy="steps",
        save_steps=STEPS + 3, learning_rate=1e-2, lr_scheduler_type="constant", disable_tqdm=True, num_train_epochs=2,
        remove_unused_columns=False, max_grad_norm=1e9, logging_strategy="no", **options,
    )  # fmt: skip
    trainer = Trainer(
        model=make_model(), args=arguments, train_dataset=samples(), data_collator=Collate(), callbacks=[Gradients()],
        plan=lambda epoch: plan_of(epoch, ranks, count),
    )  # fmt: skip
    if resumed_ranks is not None:
        rest = hbp.Rest(plan_of(1, resumed_ranks, resumed_count), 3)
        options = dict(batches=rest.batches, micro_batches_per_step=count, max_pack_length=256)
        trainer.use_rest(rest, hbp.plan_epoch(rest.lengths, make_cost(ranks), **options))
    trainer.train(resume_from_checkpoint=resume)
    return seen, gradients


if __name__ == "__main__":
    transformers.logging.set_verbosity_error()
    notes = [train(**run) for run in json.loads(sys.argv[1])]
    with open(sys.argv[2], "w") as file:
        json.dump(notes, file)

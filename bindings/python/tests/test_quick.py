"""hbp.plan in one call, and who runs which samples as nested lists."""

import ctypes
import json
import tempfile
import unittest
from pathlib import Path

import numpy as np
import samples

import hbp
from hbp import _arrays, _native


class TestQuick(unittest.TestCase):
    def test_is_the_plan_of_c_s_quick_call(self):
        tokens, out = samples.lengths().astype(np.int64), ctypes.c_void_p()
        _native.lib.hbp_plan_quick(
            _arrays.address(tokens), len(tokens), b"llama-3.1-8b", b"h100:2", None, ctypes.byref(out), None, 0
        )
        quick = hbp.Plan.__new__(hbp.Plan)
        quick._adopt(out.value)
        self.assertEqual(hbp.plan(tokens, model="llama-3.1-8b", machine="h100:2").digest, quick.digest)
        self.assertEqual(hbp.plan(tokens, "llama-3.1-8b", "h100:2").digest, quick.digest)

    def test_forms_of_model_and_machine(self):
        model, machine = hbp.Model.preset("llama-3.1-8b"), hbp.Machine.preset("h100", nodes=2)
        tokens = samples.lengths(200)
        digest = hbp.plan(tokens, model, machine, seed=3).digest
        self.assertNotEqual(digest, hbp.plan(tokens, model, machine, seed=4).digest)
        fields = model.fields
        config = {
            "model_type": "llama",
            "hidden_size": fields.hidden,
            "intermediate_size": fields.ffn,
            "num_hidden_layers": fields.layers,
            "num_attention_heads": fields.heads,
            "num_key_value_heads": fields.kv_heads,
            "vocab_size": fields.vocab,
        }
        with tempfile.TemporaryDirectory() as folder:
            profile = Path(folder, "machine.json")
            machine.save(profile)
            self.assertEqual(hbp.plan(tokens, model, profile, seed=3).digest, digest)
            self.assertEqual(hbp.plan(tokens, model, str(profile), seed=3).digest, digest)
            self.assertEqual(hbp.plan(tokens, model, f"{profile}:2", seed=3).digest, digest)
            one = hbp.plan(tokens, model, f"{profile}:1,cores=96", seed=3)
            self.assertEqual(one.digest, hbp.plan(tokens, model, "h100", seed=3).digest)
            Path(folder, "config.json").write_text(json.dumps(config))
            from_mapping = hbp.plan(tokens, config, machine).digest
            for name in (folder, Path(folder), f"{folder}/config.json", Path(folder, "config.json")):
                self.assertEqual(hbp.plan(tokens, name, machine).digest, from_mapping)
            self.assertEqual(
                hbp.plan(tokens, f"{folder},layers=4", machine).digest,
                hbp.plan(tokens, hbp.Model.config(config).variant(layers=4), machine).digest,
            )
        four = hbp.plan(tokens, "llama-3.1-8b,layers=4", machine)
        self.assertEqual(four.digest, hbp.plan(tokens, model.variant(layers=4), machine).digest)
        self.assertEqual(len(hbp.plan(tokens, config, machine).sample_ids), 200)

    def test_errors_say_what_is_known(self):
        with self.assertRaisesRegex(
            hbp.InvalidError, r"no model preset 'llama'; the nearest is 'llama-3-8b'; there are llama-"
        ):
            hbp.plan([1], model="llama", machine="h100")
        with self.assertRaisesRegex(hbp.InvalidError, r"no machine preset 'h10'; .*; there are .*h100, h200"):
            hbp.plan([1], model="llama-3.1-8b", machine="h10:4")
        with self.assertRaisesRegex(hbp.InvalidError, "^no model preset 'gpt-4'; there are llama-[^;]*$"):
            hbp.plan([1], model="gpt-4", machine="h100")
        with self.assertRaisesRegex(hbp.InvalidError, "no such file or folder; the nearest is 'llama-3.1-8b'"):
            hbp.plan([1], model="meta-llama/Llama-3.1-8B", machine="h100")
        with self.assertRaisesRegex(hbp.MissingFileError, "cannot open no/folder: No such file"):
            hbp.plan([1], model="no/folder", machine="h100")
        with self.assertRaisesRegex(hbp.InvalidError, "hbm_bytes is '80Gb'; it must be a number of bytes"):
            hbp.plan([1], model="llama-3.1-8b", machine="h100:4,hbm_bytes=80Gb")
        with self.assertRaisesRegex(hbp.InfeasibleError, "what would do: at least 3 nodes of 8 GPUs"):
            hbp.plan([1], model="llama-3.1-70b", machine="h100")
        with self.assertRaisesRegex(hbp.InfeasibleError, "reserve_bytes keeps 4.0 GiB.*would do: zero_stage 3$"):
            hbp.Cost(hbp.Model.preset("llama-3.1-8b"), hbp.Machine.preset("h100"), zero_stage=0)
        with self.assertRaisesRegex(hbp.InvalidError, "fields of machine given are 0 or unknown; set them, for example"):
            hbp.Cost(hbp.Model.preset("llama-3.1-8b"), hbp.Machine(nodes=1))
        with self.assertRaisesRegex(hbp.InvalidError, "no field 'layer'; the nearest is 'layers'"):
            hbp.plan([1], model="llama-3.1-8b,layer=3", machine="h100")
        with self.assertRaisesRegex(
            TypeError, "machine is 8; it must be a preset's name, a file or hbp.Machine"
        ):
            hbp.plan([1], model="llama-3.1-8b", machine=8)
        with self.assertRaisesRegex(hbp.SystemFailure, "nothing.json"):
            hbp.plan([1], model="nothing.json", machine="h100")
        with self.assertRaisesRegex(hbp.SystemFailure, "cannot open nothing.npy: No such file"):
            hbp.plan("nothing.npy", model="llama-3.1-8b", machine="h100")
        with self.assertRaisesRegex(TypeError, r"lengths is the path '.*\.py'; read it first: hbp.Lengths.read"):
            hbp.plan(Path(__file__), model="llama-3.1-8b", machine="h100")
        with self.assertRaisesRegex(TypeError, r"'max_lenght' \(did you mean 'max_length'\?\)"):
            hbp.plan([1], "llama-3.1-8b", "h100", max_lenght=3)
        with self.assertRaisesRegex(TypeError, "machine"):
            hbp.plan([1], "llama-3.1-8b")


class TestQuantities(unittest.TestCase):
    def test_values_have_units(self):
        machine = hbp.Machine.preset("h100:4,network_bytes_per_s=400Gb/s")
        machine.set_fields(hbm_bytes="141GB", nvlink_latency_ns="5us", cores=96)
        fields = machine.fields
        self.assertEqual((fields.network_bytes_per_s, fields.hbm_bytes), (50e9, 141_000_000_000))
        self.assertEqual((fields.nvlink_latency_ns, fields.cores), (5000, 96))
        with self.assertRaisesRegex(hbp.InvalidError, "cores is '5GB'; .* without a unit"):
            machine.set_fields(cores="5GB")


class TestIds(unittest.TestCase):
    def test_every_rank_has_its_pack_s_samples(self):
        plan = samples.plan()
        ranks = plan.summary().ranks
        whole = plan.ids()
        self.assertEqual(len(whole), len(plan.micro_batch_ns))
        row = 0
        for step in plan:
            ids = step.ids()
            self.assertEqual(len(ids), len(step.micro_batches))
            for micro_batch, of_ranks in enumerate(ids):
                self.assertEqual(whole[row], of_ranks)
                self.assertEqual(len(of_ranks), ranks)
                for rank, of_rank in enumerate(of_ranks):
                    self.assertEqual(of_rank, plan.rank_pack(step.index, micro_batch, rank).ids.tolist())
                row += 1
        self.assertIs(type(whole[0][0][0]), int)

    def test_ranks_do_not_share_lists(self):
        ids = hbp.plan_step([4096] * 4, samples.cost(), min_sp=8).ids()
        self.assertEqual(ids[0][0], ids[0][7])
        ids[0][0].append(-1)
        self.assertNotEqual(ids[0][0], ids[0][7])

    def test_padding_packs_are_empty(self):
        ids = hbp.plan_step([500, 400], samples.cost(), max_sp=1).ids()
        self.assertEqual(sorted(map(len, ids[0])), [0] * 6 + [1, 1])

    def test_micro_batches(self):
        plan = hbp.plan_step(samples.lengths(600), samples.cost(2), min_micro_batches=3)
        step = plan.step(0)
        self.assertEqual(len(list(step)), len(step.micro_batches))
        for number, micro_batch in enumerate(step):
            self.assertEqual(micro_batch.row, step.micro_batch(number).row)
            packs = [pack.index for pack in micro_batch]
            self.assertEqual(len(packs), len(micro_batch))
            self.assertEqual([pack.index for pack in micro_batch[1:]], packs[1:])
            self.assertEqual(micro_batch[-1].index, packs[-1])
            self.assertEqual(micro_batch.ids(), step.ids()[number])
            self.assertEqual(micro_batch.predicted_ns, plan.micro_batch_ns[number])
            self.assertEqual(micro_batch.tokens, sum(pack.tokens for pack in micro_batch))
            for rank in range(16):
                self.assertEqual(micro_batch.for_rank(rank).index, step.for_rank(rank)[number].index)
                self.assertIn(rank, micro_batch.for_rank(rank).ranks)
        self.assertEqual(step.micro_batch(-1).row, len(step.micro_batches) - 1)
        for rank in (-1, 16):
            with self.assertRaisesRegex(IndexError, f"there is no rank {rank}; the plan has 16"):
                step.micro_batch(0).for_rank(rank)
        count = len(step.micro_batches)
        with self.assertRaisesRegex(IndexError, f"there is no micro-batch {count}; step 0 has {count}"):
            step.micro_batch(count)


if __name__ == "__main__":
    unittest.main()

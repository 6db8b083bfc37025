"""Packs under two budgets, vision-language models, and a whole vision-language run."""

import contextlib
import gc
import io
import json
import pickle
import re
import tempfile
import unittest
from pathlib import Path

import numpy as np

import hbp

FIELDS = dict(vision_layers=45, vision_hidden=3200, vision_ffn=12800, vision_heads=25, patch_values=588,
              tokens_per_unit=1025, projected_per_unit=256, projector_input=12800)


def drawn(count: int = 600, seed: int = 1) -> "tuple[np.ndarray, np.ndarray]":
    """Tokens and vision units of samples of 1..5 images with a little text."""
    rng = np.random.default_rng(seed)
    vision = rng.integers(1, 6, count)
    return vision * 256 + rng.integers(20, 400, count), vision


def data(count: int = 600, seed: int = 1) -> hbp.Lengths:
    tokens, vision = drawn(count, seed)
    return hbp.Lengths.from_array(tokens, vision=vision)


def next_fit(samples, tokens, vision, budgets, seed: int) -> "list[list[int]]":
    """OmniBal's next fit in its random order, with what it loses."""
    max_tokens, max_vision = budgets
    packs, pack, last = [], [], len(samples) - 1
    for turn, at in enumerate(np.random.RandomState(seed).permutation(len(samples)).tolist()):
        sample = samples[at]
        if tokens[sample] > max_tokens or vision[sample] > max_vision:
            continue
        if sum(tokens[i] for i in pack) + tokens[sample] > max_tokens or (
                sum(vision[i] for i in pack) + vision[sample] > max_vision):
            packs.append(pack)
            pack = []
        pack.append(sample)
        if turn == last:
            packs.append(pack)
    return packs


def isf(tokens, vision, budgets, rounds: int, seed: int) -> "list[list[int]]":
    """OmniBal's iterative sampling and filtering, plainly."""
    kept, packs = [], next_fit(list(range(len(tokens))), tokens, vision, budgets, seed)
    for turn in range(rounds - 1):
        rest = []
        for pack in packs:
            full = sum(tokens[i] for i in pack) >= budgets[0] - 128 or sum(vision[i] for i in pack) == budgets[1]
            (kept.append if full else rest.extend)(pack)
        packs = next_fit(rest, tokens, vision, budgets, seed + turn)
    return kept + packs


class TestFill(unittest.TestCase):
    def test_default(self):
        tokens, vision = drawn()
        packs = hbp.iterative_fill(data(), max_tokens=4096, max_vision=9)
        self.assertEqual(sorted(packs.sample_indices.tolist()), list(range(600)))
        self.assertEqual(packs.pack_tokens.tolist(), [int(tokens[packs[i]].sum()) for i in range(len(packs))])
        self.assertEqual(packs.pack_vision.tolist(), [int(vision[packs[i]].sum()) for i in range(len(packs))])
        self.assertLessEqual(int(packs.pack_tokens.max()), 4096)
        self.assertLessEqual(int(packs.pack_vision.max()), 9)
        self.assertLessEqual(packs.bound(0), len(packs))
        self.assertLessEqual(len(packs), len(isf(tokens, vision, (4096, 9), 2, 0)))
        few = hbp.iterative_fill(data(), max_tokens=4096, max_vision=9, max_samples=1)
        self.assertEqual(len(few), 600)

    def test_reference(self):
        """Pack by pack and sample by sample as OmniBal's own program on numpy's generator."""
        tokens, vision = drawn()
        for rounds, seed in ((1, 0), (2, 0), (5, 3), (50, 1024)):
            packs = hbp.iterative_fill(
                data(), max_tokens=4096, max_vision=9, method="isf", rounds=rounds, seed=seed
            )
            wanted = isf(tokens, vision, (4096, 9), rounds, seed)
            self.assertEqual([packs[i].tolist() for i in range(len(packs))], wanted)
        large = hbp.iterative_fill(
            data(), max_tokens=900, max_vision=3, method="isf", rounds=3, over_long="drop"
        )
        wanted = isf(tokens, vision, (900, 3), 3, 0)
        self.assertEqual([large[i].tolist() for i in range(len(large))], wanted)
        left = sorted(set(range(600)) - {sample for pack in wanted for sample in pack})
        self.assertEqual(sorted(large.dropped_indices.tolist()), left)
        self.assertGreater(len(left), 0)

    def test_tokens_alone(self):
        packs = hbp.iterative_fill([100, 200, 300, 400], max_tokens=500)
        self.assertEqual((len(packs), packs.pack_vision, packs.dropped_indices.tolist()), (2, None, []))

    def test_over_a_budget(self):
        tokens, vision = drawn()
        tokens[7], vision[9] = 5000, 10
        large = hbp.Lengths.from_array(tokens, vision=vision)
        with self.assertRaisesRegex(hbp.InvalidError, "2 .*sample 7") as caught:
            hbp.iterative_fill(large, max_tokens=4096, max_vision=9)
        self.assertIn(7, caught.exception.samples)
        packs = hbp.iterative_fill(large, max_tokens=4096, max_vision=9, over_long="drop")
        reasons = dict(zip(packs.dropped_indices.tolist(), packs.dropped_reasons.tolist()))
        from hbp.plans import REASONS
        self.assertEqual({sample: REASONS[reason] for sample, reason in reasons.items()},
                         {7: "over-long", 9: "over-vision"})
        self.assertEqual(len(packs.sample_indices), 598)

    def test_views_and_lengths_outlive(self):
        """A borrowed array lives as long as packs that may read it."""
        borrowed = hbp.Lengths.from_array(np.arange(1, 2001, dtype=np.uint32), copy=False)
        packs = hbp.iterative_fill(borrowed, max_tokens=4000)
        del borrowed
        samples, kept = packs.sample_indices, packs.sample_indices.tolist()
        del packs
        gc.collect()
        junk = [np.zeros(2000, np.uint32) for _ in range(50)]
        self.assertEqual((samples.tolist(), len(junk)), (kept, 50))

    def test_errors(self):
        for error, words, given in (
            (hbp.InvalidError, "`max_vision` is 0", dict(max_vision=0)),
            (hbp.InvalidError, "`max_tokens` is -1", dict(max_tokens=-1)),
            (hbp.InvalidError, "`rounds` is -2", dict(rounds=-2)),
            (hbp.InvalidError, "max_samples is 3", dict(method="isf", max_samples=3)),
            (ValueError, "over_long is 'truncate'; it must be one of 'error', 'drop'", dict(over_long="truncate")),
            (hbp.InvalidError, "`over_long` is 2", dict(over_long=2)),
            (ValueError, "method is 'best'", dict(method="best")),
            (ValueError, "over_long is 'lose'", dict(over_long="lose")),
            (OverflowError, "effort is 4294967296", dict(effort=2**32)),
            (OverflowError, "seed is -1", dict(seed=-1)),
            (TypeError, "colour", dict(colour=1)),
        ):
            with self.subTest(words), self.assertRaisesRegex(error, words):
                hbp.iterative_fill(data(20), **{"max_tokens": 4096, "max_vision": 9, **given})
        with self.assertRaisesRegex(TypeError, "max_tokens"):
            hbp.iterative_fill(data(20))
        with self.assertRaisesRegex(TypeError, "lengths holds"):
            hbp.iterative_fill([1.5], max_tokens=9)


class TestBudgets(unittest.TestCase):
    def test_plane(self):
        lengths = data(4000)
        budgets = hbp.choose_budgets(lengths, ranks=4)
        self.assertTrue(4 <= budgets.samples_per_pack <= 5)
        self.assertGreater(budgets.considered, 1)
        self.assertEqual(budgets.max_tokens % 64, 0)
        packs = hbp.iterative_fill(lengths, max_tokens=budgets.max_tokens, max_vision=budgets.max_vision)
        self.assertEqual(len(packs), budgets.packs)
        self.assertAlmostEqual(budgets.samples_per_pack, 4000 / len(packs))
        self.assertAlmostEqual(budgets.unused_vision,
                               1 - int(packs.pack_vision.sum()) / (len(packs) * budgets.max_vision))
        self.assertAlmostEqual(budgets.unused_tokens,
                               1 - int(packs.pack_tokens.sum()) / (len(packs) * budgets.max_tokens))
        parts = budgets.padding + budgets.dist_vision + budgets.dist_tokens
        self.assertAlmostEqual(budgets.score, parts + budgets.unused_vision + budgets.unused_tokens)
        self.assertIn("vision units and", str(budgets))
        two = hbp.choose_budgets(lengths, ranks=4, samples=2, token_multiple=128)
        self.assertTrue(2 <= two.samples_per_pack <= 3)
        self.assertEqual(two.max_tokens % 128, 0)

    def test_line(self):
        """The published search: from (4096 // u, 4096) in steps of (1, u), u tokens a vision unit."""
        tokens, vision = drawn(4000)
        unit = (int(np.mean(np.ceil(tokens / 256) * 256) / vision.mean()) + 1) // 16 * 16
        budgets = hbp.choose_budgets(data(4000), method="line", ranks=4, rounds=3)
        self.assertEqual((budgets.max_tokens - 4096) % unit, 0)
        self.assertEqual(budgets.max_vision, 4096 // unit + (budgets.max_tokens - 4096) // unit)
        self.assertEqual(budgets.full_tokens, budgets.max_tokens - 128)
        packs = isf(tokens, vision, (budgets.max_tokens, budgets.max_vision), 3, 0)
        self.assertEqual(budgets.packs, len(packs))
        self.assertAlmostEqual(budgets.score, budgets.padding + budgets.dist_vision + budgets.dist_tokens)

    def test_errors(self):
        with self.assertRaisesRegex(hbp.InvalidError, "no vision units"):
            hbp.choose_budgets([100, 200])
        with self.assertRaises(hbp.InfeasibleError):
            hbp.choose_budgets(data(), max_tokens=600)
        with self.assertRaisesRegex(ValueError, "method is 'circle'"):
            hbp.choose_budgets(data(), method="circle")
        with self.assertRaisesRegex(hbp.InvalidError, "`ranks` is -1"):
            hbp.choose_budgets(data(), ranks=-1)


class TestVlm(unittest.TestCase):
    def test_presets(self):
        self.assertIn("internvl-1.5-26b", hbp.Vlm.presets())
        for name in hbp.Vlm.presets():
            model = hbp.Vlm.preset(name)
            self.assertEqual((model.name, repr(model)), (name, f"<hbp.Vlm {name}>"))
            self.assertEqual(model.summary().language_parameters, model.language.summary().parameters)
        with self.assertRaisesRegex(hbp.InvalidError, "internvl-1.5-26b"):
            hbp.Vlm.preset("internvl-1.5-26")

    def test_fields(self):
        preset = hbp.Vlm.preset("internvl-1.5-26b")
        made = hbp.Vlm(language=hbp.Model.preset("internlm2-20b"), vision_mlp="plain", **FIELDS)
        self.assertEqual((made.summary(), made.fields, made.name), (preset.summary(), preset.fields, "custom"))
        self.assertEqual(made.fields.projector_hidden, made.language.fields.hidden)
        self.assertEqual(made.summary().layers, 45 + 48 + 5)
        self.assertIn("B language", str(made.summary()))

    def test_language_outlives_the_model(self):
        language = hbp.Vlm.preset("qwen2-vl-7b").language
        gc.collect()
        junk = [hbp.Vlm.preset("internvl-1.5-26b") for _ in range(50)]
        self.assertEqual((language.name, language.fields, len(junk)),
                         ("qwen2-7b", hbp.Model.preset("qwen2-7b").fields, 50))
        again = pickle.loads(pickle.dumps(language))
        self.assertEqual((again.name, again.fields), (language.name, language.fields))

    def test_pickle(self):
        custom = hbp.Vlm(language=hbp.Model.preset("llama-3.1-8b"), vision_mlp="gated", **FIELDS)
        for made in (hbp.Vlm.preset("qwen2-vl-7b"), custom):
            again = pickle.loads(pickle.dumps(made))
            self.assertEqual((again.name, again.fields, again.language.fields, again.summary()),
                             (made.name, made.fields, made.language.fields, made.summary()))
            self.assertEqual(again.language.name, made.language.name)

    def test_layers(self):
        model, machine = hbp.Vlm.preset("internvl-1.5-26b"), hbp.Machine.preset("a100-80")
        one = model.layers(machine, vision=9, tokens=4096)
        self.assertEqual((len(one), one.counts), (98, {"language": 51, "vision": 47, "fixed": 0}))
        self.assertEqual((one.names[0], one.names[46], one.names[-1]), ("patch embedding", "projector", "output head"))
        self.assertEqual(int(one.cut_bytes[5]), 2 * 9 * 1025 * 3200)  # inside the encoder, bf16
        self.assertEqual(int(one.cut_bytes[46]), 2 * 9 * 256 * 6144)  # behind the projector
        self.assertEqual(int(one.cut_bytes[60]), 2 * 4096 * 6144)  # inside the language model
        total = model.summary()
        parameters = total.vision_parameters + total.projector_parameters + total.language_parameters
        self.assertEqual(int(one.parameters.sum()), parameters)
        four = model.layers(machine, vision=9, tokens=4096, tensor_parallel=4)
        self.assertLess(int(four.parameters.sum()), parameters // 3)
        self.assertLess(int(four.activation_bytes.sum()), int(one.activation_bytes.sum()))
        more = model.layers(machine, vision=18, tokens=4096, zero_stage=0)
        ratio = more.forward_ns[1:46] / one.forward_ns[1:46]
        self.assertTrue(np.allclose(ratio, 2, rtol=1e-3))
        self.assertEqual(more.forward_ns[48:].tolist(), one.forward_ns[48:].tolist())
        long = model.layers(machine, vision=9, tokens=4096, squares=4096.0**2, fused_cross_entropy=True)
        self.assertGreater(int(long.forward_ns[50]), int(one.forward_ns[50]))
        self.assertLess(int(long.activation_bytes[-1]), int(one.activation_bytes[-1]))
        shared = model.layers(machine, vision=9, tokens=4096, data_parallel=8)
        self.assertLess(int(shared.state_bytes.sum()), int(one.state_bytes.sum()))

    def test_errors(self):
        model, machine = hbp.Vlm.preset("internvl-1.5-26b"), hbp.Machine.preset("a100-80")
        with self.assertRaisesRegex(TypeError, "VlmFields has no field 'colour'"):
            hbp.Vlm(language=model.language, colour=1)
        with self.assertRaisesRegex(TypeError, "language is 'llama'"):
            hbp.Vlm(language="llama", **FIELDS)
        with self.assertRaisesRegex(TypeError, "language"):
            hbp.Vlm(**FIELDS)
        with self.assertRaisesRegex(ValueError, "vision_mlp is 'round'"):
            hbp.Vlm(language=model.language, vision_mlp="round", **FIELDS)
        with self.assertRaisesRegex(hbp.InvalidError, "`patch_values` is 0"):
            hbp.Vlm(language=model.language, **{**FIELDS, "patch_values": 0})
        with self.assertRaisesRegex(hbp.InvalidError, "vision is 0"):
            model.layers(machine, vision=0, tokens=1)
        with self.assertRaisesRegex(hbp.InvalidError, "tensor_parallel is 5"):
            model.layers(machine, vision=1, tokens=1, tensor_parallel=5)
        with self.assertRaisesRegex(ValueError, "zero_stage is 9"):
            model.layers(machine, vision=1, tokens=1, zero_stage=9)
        with self.assertRaisesRegex(TypeError, "expected hbp.Machine, got Model"):
            model.layers(model.language, vision=1, tokens=1)


@contextlib.contextmanager
def frees(thing):
    """Notes when an object is freed."""
    noted, handle = [], thing._handle
    free = handle._free

    def note(pointer):
        noted.append(pointer)
        free(pointer)

    handle._free = note
    del thing, handle
    yield noted


class TestPlan(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model, cls.machine = hbp.Vlm.preset("internvl-1.5-26b"), hbp.Machine.preset("a100-80", nodes=4)

    def plan(self, lengths=None, **options) -> hbp.VlmPlan:
        given = dict(
            tensor_parallel=4, pipeline_stages=4, batch_samples=64, max_tokens=6016, max_vision=18
        )
        return hbp.plan_vlm(data() if lengths is None else lengths, self.model, self.machine, **{**given, **options})

    def test_whole(self):
        tokens, vision = drawn()
        plan = self.plan()
        summary = plan.summary()
        self.assertEqual((summary.gpus, summary.replicas, summary.stages), (32, 2, 4))
        packs = int((np.diff(plan.data.pack_offsets) > 0).sum())
        self.assertEqual(summary.micro_batches, round(64 / (2 * 600 / packs)))
        self.assertEqual((summary.max_vision, summary.max_tokens), (18, 6016))
        self.assertEqual(sorted(plan.data.sample_ids.tolist()), list(range(600)))
        self.assertEqual(plan.data.sample_vision.tolist(), vision[plan.data.sample_ids].tolist())
        self.assertLessEqual(int(plan.data.pack_vision.max()), 18)
        self.assertLessEqual(int(plan.data.pack_tokens.max()), 6016)
        self.assertEqual(plan.data.summary().ranks, 2)
        self.assertEqual((len(plan), len(plan.data), summary.steps), (len(plan.step_ns),) * 3)
        self.assertEqual(int(plan.step_ns.sum()), summary.epoch_ns)
        self.assertAlmostEqual(summary.gpu_days, summary.epoch_ns * 32 / 86400e9)
        self.assertLess(summary.bound_ns, summary.packs_bound_ns)
        self.assertLessEqual(summary.packs_bound_ns, summary.epoch_ns)
        self.assertEqual((int(plan.cuts[0]), int(plan.cuts[-1]), len(plan.cuts)), (0, len(plan.layers), 5))
        self.assertTrue((np.diff(plan.cuts) > 0).all())
        self.assertEqual(len(plan.recompute), len(plan.layers))
        self.assertEqual(summary.peak_bytes, int(plan.stage_bytes.max()))
        self.assertLessEqual(summary.peak_bytes, summary.limit_bytes)
        self.assertEqual(summary.limit_bytes, self.machine.fields.hbm_bytes - (4 << 30))
        whole = plan.layers.forward_ns + plan.layers.backward_ns
        self.assertEqual(summary.recomputed + summary.selective, int((plan.recompute != 0).sum()))
        if not plan.recompute.any():
            self.assertEqual(plan.stage_ns.tolist(), np.add.reduceat(whole, plan.cuts[:-1]).tolist())
        self.assertEqual(plan.digest, self.plan().digest)
        self.assertIn("32 GPUs: 2 replicas of 4 stages", str(summary))
        self.assertIn("packs of at most 18 vision units", str(summary))
        self.assertIn(f"{plan.digest:016x}", repr(plan))

    def test_steps_run(self):
        plan = self.plan(data_parallel=2)
        for step in (0, len(plan) - 1):
            runs = [plan.run_step(step, replica) for replica in range(2)]
            self.assertEqual(max(run.summary().total_ns for run in runs), plan.step_ns[step])
            for run in runs:
                run.validate()
                self.assertTrue((run.stage_bytes <= plan.stage_bytes).all())
        with self.assertRaisesRegex(hbp.InvalidError, "`replica` is 2; it must be in 0..1"):
            plan.run_step(0, 2)
        with self.assertRaisesRegex(hbp.InvalidError, "`step` is -1"):
            plan.run_step(-1)

    def test_data_methods(self):
        digests = set()
        for method in ("packed", "isf", "random", "grouped", "sorted"):
            plan = self.plan(data_method=method)
            self.assertEqual(len(set(plan.data.sample_ids.tolist())) + plan.summary().dropped, 600)
            self.assertEqual(plan.summary().max_tokens, 6016 if method in ("packed", "isf") else 0)
            digests.add(plan.digest)
        self.assertEqual(len(digests), 5)

    def test_options(self):
        every = self.plan(recompute_method="all")
        self.assertEqual(set(every.recompute.tolist()) - {0}, {3})
        self.assertGreater(every.summary().recomputed, 40)
        self.assertGreater(every.summary().epoch_ns, self.plan().summary().epoch_ns)
        uniform = self.plan(partition_method="uniform")
        self.assertEqual(uniform.cuts.tolist(), [0, 25, 50, 74, 98])
        given = self.plan(keep_order=True)
        self.assertGreaterEqual(given.summary().epoch_ns, self.plan().summary().epoch_ns)
        self.assertEqual(self.plan(reserve_bytes=0).summary().limit_bytes, self.machine.fields.hbm_bytes)
        self.assertEqual(self.plan(data_parallel=1).summary().gpus, 16)
        chosen = self.plan(max_tokens=0, max_vision=0).summary()
        self.assertTrue(chosen.max_tokens > 0 and chosen.max_vision > 0)

    def test_measured_layers(self):
        layers = hbp.Layers([2 * 10**6] * 20 + [3 * 10**6] * 20, type=["vision"] * 20 + ["language"] * 20)
        plan = self.plan(layers=layers, layers_vision=16.0, layers_tokens=4500.0)
        self.assertEqual(plan.layers.forward_ns.tolist(), layers.forward_ns.tolist())
        self.assertEqual((plan.layers.counts["vision"], int(plan.cuts[-1])), (20, 40))
        alone = hbp.plan_vlm(
            data(), None, self.machine, layers=layers, layers_vision=16.0, layers_tokens=4500.0,
            tensor_parallel=4, pipeline_stages=4, batch_samples=64, max_tokens=6016, max_vision=18,
        )  # fmt: skip
        self.assertEqual(alone.summary().digest, plan.summary().digest)
        with self.assertRaisesRegex(hbp.InvalidError, "no layers are given"):
            hbp.plan_vlm(data(), None, self.machine)
        del layers
        gc.collect()
        self.assertEqual(plan.layers.names[39], "layer 39")

    def test_parts_keep_the_plan(self):
        plan = self.plan()
        kept = plan.data.sample_ids.tolist(), plan.layers.forward_ns.tolist(), plan.cuts.tolist()
        self.assertIs(plan.data, plan.data)
        parts = plan.data, plan.layers.forward_ns, plan.cuts
        with frees(plan) as freed:
            ids = plan.data.sample_ids
            del plan
            gc.collect()
            self.assertEqual(freed, [])
            self.assertEqual((parts[0].sample_ids.tolist(), parts[1].tolist(), parts[2].tolist()), kept)
            again = pickle.loads(pickle.dumps(parts[0]))
            self.assertEqual(again.digest, parts[0].digest)
            del parts
            gc.collect()
            self.assertEqual((freed, ids.tolist()), ([], kept[0]))
            del ids
            gc.collect()
            self.assertEqual(len(freed), 1)
        self.assertEqual(again.sample_ids.tolist(), kept[0])

    def test_a_part_frees_nothing(self):
        plan = self.plan()
        for _ in range(3):
            plan.__dict__.pop("data", None)
            plan.__dict__.pop("layers", None)
            self.assertEqual((len(plan.data.sample_ids), len(plan.layers)), (600, 98))

    def test_the_data_is_a_plan(self):
        plan = self.plan()
        seen = []
        for step in plan.data:
            counts = {len(step.for_rank(rank)) for rank in range(2)}
            self.assertEqual(counts, {len(step.micro_batches)})
            for rank in range(2):
                for pack in step.for_rank(rank):
                    seen += pack.ids.tolist()
                    self.assertEqual(pack.vision, int(pack.sample_vision.sum()))
        self.assertEqual(sorted(seen), list(range(600)))

    def test_file(self):
        plan = self.plan()
        with tempfile.TemporaryDirectory() as folder:
            path, trace = Path(folder) / "plan.msgpack", Path(folder) / "trace.json"
            plan.save(path, note="tiles")
            back = hbp.VlmPlan.load(path)
            self.assertEqual(back.digest, plan.digest)
            self.assertEqual(str(back.summary()), str(plan.summary()))
            for name in ("cuts", "recompute", "stage_ns", "stage_bytes", "step_ns"):
                np.testing.assert_array_equal(getattr(back, name), getattr(plan, name))
            self.assertEqual(back.layers.names, plan.layers.names)
            self.assertEqual(hbp.Plan.load(path).digest, plan.data.digest)
            self.assertTrue(hbp.PlanFile(path).has_vlm)
            back.validate()
            back.validate(data())
            with self.assertRaisesRegex(hbp.InvalidError, "made for lengths with digest"):
                back.validate(hbp.Lengths.from_array([100] * 600, vision=[0] * 600))
            back.trace(trace, 0, 1)
            events = [e for e in json.loads(trace.read_text())["traceEvents"] if "micro_batch" in e.get("args", {})]
            self.assertEqual(len(events), 2 * 2 * 4 * len(back.data[0].micro_batches))
            back.write_json(trace)
            read = json.loads(trace.read_text())
            self.assertEqual(read["summary"]["digest"], f"{plan.data.digest:016x}")
            self.assertEqual(read["vlm"]["cuts"], plan.cuts.tolist())
            self.assertEqual(read["vlm"]["layer_names"], list(plan.layers.names))
            self.assertEqual(pickle.loads(pickle.dumps(back)).digest, plan.digest)
            plan.data.save(path)
            self.assertFalse(hbp.PlanFile(path).has_vlm)
            with self.assertRaisesRegex(hbp.FormatError, "no vision-language plan"):
                hbp.VlmPlan.load(path)

    def test_errors(self):
        for error, words, given in (
            (ValueError, "data_method is 'folded'", dict(data_method="folded")),
            (ValueError, "partition_method is 'small'", dict(partition_method="small")),
            (ValueError, "recompute_method is 'most'", dict(recompute_method="most")),
            (ValueError, "selective is 'x'", dict(selective="x")),
            (TypeError, "layers is \\[1\\]", dict(layers=[1])),
            (TypeError, "samples is '4'", dict(samples="4")),
            (hbp.InvalidError, "layers_vision", dict(layers=hbp.Layers([1] * 9))),
            (hbp.InvalidError, "give both or neither", dict(max_vision=0)),
            (hbp.InvalidError, "pipeline_stages 3", dict(pipeline_stages=3)),
            (hbp.InvalidError, "`rounds` is -1", dict(rounds=-1)),
            (TypeError, "colour", dict(colour=1)),
        ):
            with self.subTest(words), self.assertRaisesRegex(error, words):
                self.plan(**given)
        with self.assertRaisesRegex(hbp.InvalidError, "no vision units"):
            self.plan([100, 200, 300])
        with self.assertRaisesRegex(TypeError, "expected hbp.Vlm, got Model"):
            hbp.plan_vlm(data(), self.model.language, self.machine)

    def test_progress(self):
        seen = []
        self.plan(data(3000), progress=seen.append)
        self.assertGreater(len(seen), 0)
        with self.assertRaises(hbp.CancelledError):
            self.plan(data(3000), progress=lambda now: True)


class TestDocumentation(unittest.TestCase):
    def test_the_how_to_runs(self):
        page = (Path(__file__).resolve().parents[3] / "docs" / "how-to" / "python.md").read_text()
        section = page.split("\n## Vision-language models\n")[1].split("\n## ")[0]
        blocks, names, printed = re.findall(r"```python\n(.*?)```", section, re.S), {}, io.StringIO()
        self.assertEqual(len(blocks), 2)
        with contextlib.redirect_stdout(printed):
            for block in blocks:
                exec(block, names)
        self.assertIn("32 GPUs: 2 replicas of 4 stages", printed.getvalue())
        self.assertEqual((len(names["plan"].cuts), len(names["stages"])), (5, 4))
        self.assertEqual(names["run"].summary().stages, 4)


if __name__ == "__main__":
    unittest.main()

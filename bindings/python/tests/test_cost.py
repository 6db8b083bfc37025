"""Models, machines and costs: presets, fields, pickles, fits."""

import dataclasses
import pickle
import tempfile
import unittest
from pathlib import Path

import numpy as np
import samples

import hbp

LLAMA = dict(layers=32, hidden=4096, ffn=14336, heads=32, kv_heads=8, vocab=128256)


class TestModel(unittest.TestCase):
    def test_presets(self):
        self.assertIn("llama-3.1-8b", hbp.Model.presets())
        for name in hbp.Model.presets():
            self.assertEqual(hbp.Model.preset(name).name, name)
        with self.assertRaisesRegex(hbp.InvalidError, "llama-3.1-8b"):
            hbp.Model.preset("llama-3.1-8")

    def test_variants(self):
        whole = hbp.Model.preset("llama-3.1-8b")
        part = whole.variant(layers=4, vocab=1024)
        self.assertEqual((part.fields.layers, part.fields.vocab, part.name), (4, 1024, "custom"))
        self.assertEqual(hbp.Model.preset("llama-3.1-8b,layers=4,vocab=1024").fields, part.fields)
        self.assertEqual(part.variant(layers=32, vocab=128256).fields, whole.fields)
        with self.assertRaisesRegex(hbp.InvalidError, "no field 'layer'; the nearest is 'layers'"):
            whole.variant(layer=4)

    def test_fields(self):
        made = hbp.Model(**LLAMA, mlp="gated")
        preset = hbp.Model.preset("llama-3.1-8b")
        self.assertEqual(made.summary(), preset.summary())
        self.assertEqual(made.fields.kv_heads, 8)
        self.assertTrue(made.is_sp_legal(8))
        self.assertFalse(made.is_sp_legal(3))
        with self.assertRaises(TypeError):
            hbp.Model(**LLAMA, colour=3)
        with self.assertRaises(hbp.InvalidError):
            hbp.Model(**{**LLAMA, "heads": -1})
        with self.assertRaises(OverflowError):
            hbp.Model(**{**LLAMA, "vocab": 2**40})

    def test_config(self):
        config = {
            "model_type": "llama", "num_hidden_layers": 32, "hidden_size": 4096, "intermediate_size": 14336,
            "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256, "tie_word_embeddings": False,
        }
        made = hbp.Model.config(config)
        self.assertEqual(made.summary(), hbp.Model.preset("llama-3.1-8b").summary())
        with tempfile.TemporaryDirectory() as folder:
            import json

            path = Path(folder, "config.json")
            path.write_text(json.dumps(config))
            self.assertEqual(hbp.Model.config(path).summary(), made.summary())
        self.assertEqual(hbp.Model.config(json.dumps(config).encode()).summary(), made.summary())
        with self.assertRaisesRegex(hbp.FormatError, "hidden_size"):
            hbp.Model.config({name: value for name, value in config.items() if name != "hidden_size"})

    def test_pickle(self):
        for made in (hbp.Model.preset("llama-3.1-8b"), hbp.Model(**LLAMA, mlp="plain")):
            again = pickle.loads(pickle.dumps(made))
            self.assertEqual((again.name, again.fields, again.summary()), (made.name, made.fields, made.summary()))


class TestMachine(unittest.TestCase):
    def test_presets(self):
        self.assertIn("h100", hbp.Machine.presets())
        machine = hbp.Machine.preset("h100", nodes=4)
        self.assertEqual((machine.fields.nodes, machine.fields.gpus_per_node), (4, 8))
        self.assertIn("h100", machine.source("hbm_bytes"))
        self.assertEqual(hbp.Machine.preset("h100:4").fields, machine.fields)
        self.assertEqual(hbp.Machine.preset("h100", 4).fields, machine.fields)
        self.assertEqual(hbp.Machine.preset("h100").fields.nodes, 1)
        fast = hbp.Machine.preset("gb200-nvl72,nvlink_bytes_per_s=4e11", nodes=2)
        self.assertEqual((fast.fields.nvlink_bytes_per_s, fast.fields.domain_gpus), (4e11, 8))
        with self.assertRaisesRegex(hbp.InvalidError, "nodes is given twice"):
            hbp.Machine.preset("h100:4", nodes=4)
        with self.assertRaises(hbp.InvalidError):
            hbp.Machine.preset("h100", nodes=0)
        with self.assertRaises(OverflowError):
            hbp.Machine.preset("h100", nodes=2**31)

    def test_set(self):
        machine = hbp.Machine.preset("h100")
        machine.set_field("gemm_efficiency", 0.5, "a guess")
        self.assertEqual((machine.fields.gemm_efficiency, machine.source("gemm_efficiency")), (0.5, "a guess"))
        machine.set_fields(cores=96, hbm_bytes=2**33 + 1, network_bytes_per_s=25e9)
        fields = machine.fields
        self.assertEqual((fields.cores, fields.hbm_bytes, fields.network_bytes_per_s), (96, 2**33 + 1, 25e9))
        with self.assertRaisesRegex(hbp.InvalidError, "no field 'core'; the nearest is 'cores'"):
            machine.set_fields(network_bytes_per_s=1.0, core=1)
        with self.assertRaises(hbp.InvalidError):
            machine.set_fields(network_bytes_per_s=float("nan"))
        self.assertEqual(machine.fields, fields)
        self.assertIsNone(machine.collective("all_to_all", 8))
        machine.set_collective("all_to_all", 8, 20000.0, 3e11, "measured")
        self.assertEqual(machine.collective("all_to_all", 8), (20000.0, 3e11, "measured"))
        with self.assertRaises(hbp.InvalidError):
            machine.set_field("colour", 1)
        with self.assertRaises(ValueError):
            machine.collective("all_to_some", 8)

    def test_probe(self):
        machine = hbp.Machine.probe(synthetic="pack:2 core:4 pu:2")
        self.assertEqual((machine.fields.cpu_packages, machine.fields.processing_units), (2, 16))
        with self.assertRaises(hbp.HbpError):
            hbp.Machine.probe(synthetic="no such thing")

    def test_profile_and_pickle(self):
        machine = hbp.Machine.preset("a100-80", nodes=2)
        machine.set_collective("all_to_all", 8, 20000.0, 3e11, "measured")
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "machine.json")
            machine.save(path)
            loaded = hbp.Machine.load(path)
        for again in (loaded, pickle.loads(pickle.dumps(machine))):
            self.assertEqual(again.fields, machine.fields)
            self.assertEqual(again.collective("all_to_all", 8), machine.collective("all_to_all", 8))
            self.assertEqual(again.source("hbm_bytes"), machine.source("hbm_bytes"))

    def test_nccl_tests(self):
        rows = [(2**k, 10 + 2**k / 1e5) for k in range(10, 31)]  # 10 us and 100 GB/s
        text = "".join(f"{size} {size // 4} float none -1 {us:.3f} {size / us / 1e3:.4f} {size / us / 1e3 * 7 / 8:.4f} 0 "
                       f"{us:.3f} {size / us / 1e3:.4f} {size / us / 1e3 * 7 / 8:.4f} 0\n" for size, us in rows)
        head = "#  size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n"
        machine = hbp.Machine.preset("h100")
        machine.apply_nccl_tests("all_to_all", 8, head + text)
        latency, bandwidth, _ = machine.collective("all_to_all", 8)
        self.assertAlmostEqual(latency / 10000, 1, delta=0.3)
        self.assertAlmostEqual(bandwidth / (1e11 * 7 / 8), 1, delta=0.1)
        with self.assertRaises(hbp.FormatError):
            machine.apply_nccl_tests("all_to_all", 8, "nothing of the kind")

    def test_rates_and_names(self):
        machine = hbp.Machine.preset("h100")
        self.assertEqual(machine.rates, [])
        machine.set_rate("copy", 2**40, 2e12, 0.5)
        machine.set_rate("gemm", 4096, 6e14, 0.02, "H100, 2026-11-22")
        machine.set_rate("gemm", 512, 1e14, 0.03)
        machine.name = "two racks"
        machine.fit_collective("all_to_all", 8, [8e6, 16e6], [12e3 + 7e4, 12e3 + 14e4], "measured")
        latency, bandwidth, source = machine.collective("all_to_all", 8)
        self.assertAlmostEqual(latency, 12e3, delta=1)
        self.assertAlmostEqual(bandwidth / 1e11, 1, delta=1e-6)
        self.assertEqual(source, "measured")
        self.assertIsNone(machine.collective_spread("all_to_all", 8))
        machine.set_collective_spread("all_to_all", 8, 0.125)
        for again in (machine, pickle.loads(pickle.dumps(machine))):
            self.assertEqual(again.name, "two racks")
            self.assertEqual(again.collective_spread("all_to_all", 8), 0.125)
            self.assertEqual([(r.rate, r.size) for r in again.rates],
                             [("gemm", 512), ("gemm", 4096), ("copy", 2**40)])
            self.assertEqual(again.rates[1], hbp.Rate("gemm", 4096, 6e14, 0.02, "H100, 2026-11-22"))
        with self.assertRaises(ValueError):
            machine.set_rate("norm", 1, 1, 0)
        with self.assertRaises(ValueError):
            machine.fit_collective("all_to_all", 8, [1], [])
        with self.assertRaises(hbp.InvalidError):
            machine.set_rate("gemm", 0, 1, 0)
        with self.assertRaises(hbp.InvalidError):
            machine.name = "x" * 64
        with self.assertRaises(hbp.InvalidError):
            machine.set_collective_spread("all_gather", 8, 0.1)


class TestCost(unittest.TestCase):
    def test_vision_units(self):
        plain = samples.cost()
        terms = dataclasses.replace(plain.terms(), ns_per_vision=3e6, recompute_vision=0.5, vision_bytes=1e7)
        cost = hbp.Cost.from_terms(terms)
        self.assertEqual(cost.terms(), terms)
        self.assertEqual(cost.source("ns_per_vision"), "given")
        self.assertEqual(plain.source("vision_bytes"), "analysis")
        self.assertEqual(cost.predict_ns(5000), plain.predict_ns(5000))
        self.assertEqual(plain.predict_ns(5000, vision=8), plain.predict_ns(5000))
        parts = cost.predict_parts(5000, vision=8, sp=2)
        self.assertEqual(parts.compute_ns + parts.vision_ns + parts.all_to_all_ns + parts.fixed_ns, cost.predict_ns(5000, vision=8, sp=2))
        self.assertGreater(min(parts.compute_ns, parts.vision_ns, parts.all_to_all_ns), 0)
        with self.assertRaisesRegex(hbp.InvalidError, "`sp` is 3; the cost has the SP degrees 1, 2"):
            cost.predict_parts(5000, sp=3)
        self.assertAlmostEqual(cost.predict_ns(5000, vision=8) - cost.predict_ns(5000), 24e6, delta=1)
        more = cost.predict_ns(5000, vision=8, sp=2, recompute=32) - cost.predict_ns(5000, sp=2, recompute=32)
        self.assertAlmostEqual(more, 18e6, delta=1)
        self.assertAlmostEqual(cost.predict_bytes(5000, vision=8) - cost.predict_bytes(5000), 8e7, delta=1)
        again = pickle.loads(pickle.dumps(cost))
        self.assertEqual(again.predict_ns(5000, vision=8), cost.predict_ns(5000, vision=8))
        with self.assertRaises(ValueError):
            cost.predict_ns(5000, vision=-1)
        data = hbp.Lengths.from_array(samples.lengths()[:200], vision=np.ones(200, np.uint32))
        for plan in (hbp.plan_epoch(data, cost), hbp.plan_step(data, cost), hbp.plan_step(data, cost, max_vision=8)):
            self.assertEqual(plan.pack_vision.sum(), 200)
            plan.validate(data, cost)
        self.assertLessEqual(plan.pack_vision.max(), 8)
        with self.assertRaisesRegex(hbp.InvalidError, "vision"):
            hbp.plan_step(data, cost, method="flexsp")

    def test_predictions(self):
        cost = samples.cost()
        self.assertGreater(cost.predict_ns(8192), 0)
        self.assertGreater(cost.predict_ns(8192), cost.predict_ns(8192, 8192.0 * 64))
        self.assertGreater(cost.predict_capacity(sp=8), cost.predict_capacity(sp=1))
        self.assertLess(cost.predict_bytes(8192, recompute=32), cost.predict_bytes(8192))
        self.assertIsNone(cost.predict_recompute(2**30, sp=1))
        self.assertEqual(cost.predict_recompute(128, sp=1), 0)
        with self.assertRaises(ValueError):
            cost.predict_ns(8192, sp=3)

    def test_options(self):
        model, machine = hbp.Model.preset("llama-3.1-8b"), hbp.Machine.preset("h100", nodes=2)
        self.assertGreater(hbp.Cost(model, machine, zero_stage=1).terms().static_bytes,
                           hbp.Cost(model, machine).terms().static_bytes)
        with self.assertRaises(TypeError):
            hbp.Cost(model, machine, colour=1)
        with self.assertRaises(ValueError):
            hbp.Cost(model, machine, zero_stage=4)
        with self.assertRaises(hbp.InfeasibleError):
            hbp.Cost(hbp.Model.preset("llama-3.1-70b"), hbp.Machine.preset("h100"), zero_stage=1)
        with self.assertRaises(hbp.InvalidError):
            hbp.Cost(model, hbp.Machine.probe(synthetic="pack:1 core:1 pu:1"))

    def test_terms_and_pickle(self):
        cost = samples.cost(2)
        terms = cost.terms()
        for again in (hbp.Cost.from_terms(terms), pickle.loads(pickle.dumps(cost))):
            self.assertEqual(again.terms(), terms)
            self.assertEqual(again.predict_ns(5000, sp=2), cost.predict_ns(5000, sp=2))
        self.assertEqual(cost.source("ns_per_token"), "analysis")
        with self.assertRaises(hbp.InvalidError):
            hbp.Cost.from_terms(dataclasses.replace(terms, ns_per_token=-1.0))
        with self.assertRaises(ValueError):
            hbp.Cost.from_terms(dataclasses.replace(terms, sp_latency_ns=(0.0,)))

    def test_stacks(self):
        model, machine = hbp.Model.preset("llama-3.1-8b"), hbp.Machine.preset("h100:4")
        plain, fsdp = hbp.Cost(model, machine), hbp.Cost(model, machine, stack="fsdp")
        fields = hbp.read_stack("fsdp:fa3,elementwise_bytes=200", model, machine)
        self.assertEqual((fields.elementwise_bytes, fields.attention_efficiency, fields.compute_overlap), (200, 0.6, 1))
        self.assertEqual(hbp.read_stack(None, model, machine).gemm_efficiency, 0.45)
        terms = fsdp.terms()
        self.assertEqual((plain.terms().compute_overlap, terms.compute_overlap), (0, 1))
        # Traffic is hidden behind long packs, not behind short ones.
        self.assertEqual(fsdp.predict_parts(65536).fixed_ns, round(terms.pack_ns - terms.traffic_ns))
        self.assertGreater(fsdp.predict_parts(16).fixed_ns, 0.9 * terms.pack_ns)
        self.assertEqual(fsdp.source("ns_per_token"), "analysis, stack fsdp")
        for call in (
            lambda: hbp.Cost(model, machine, stack="fsp"),
            lambda: hbp.plan([9, 9], "llama-3.1-8b", "h100", stack="fsp"),
            lambda: hbp.Vlm.preset("qwen2-vl-7b").layers(machine, vision=9, tokens=99, stack="fsp"),
        ):
            with self.assertRaisesRegex(hbp.InvalidError, "no stack preset 'fsp'; the nearest is 'fsdp'"):
                call()
        slow, fast = (hbp.Vlm.preset("qwen2-vl-7b").layers(machine, vision=9, tokens=99, stack=stack).forward_ns.sum()
                      for stack in ("fsdp", "fsdp,elementwise_bytes=0"))
        self.assertGreater(slow, fast)
        planned = hbp.plan([90, 9] * 50, "llama-3.1-8b", "h100:4", stack="fsdp")
        self.assertEqual(planned.digest, hbp.plan_epoch([90, 9] * 50, fsdp).digest)
        with tempfile.TemporaryDirectory() as folder:
            fsdp.save(Path(folder, "cost.json"))
            again = hbp.Cost.load(Path(folder, "cost.json"))
            self.assertEqual(again.terms(), terms)
        lengths = hbp.Lengths.from_array(np.arange(1, 400) * 31)
        plan = hbp.plan_epoch(lengths, fsdp)
        plan.validate(lengths, fsdp)
        self.assertEqual(hbp.simulate(plan, fsdp).epoch_ns, plan.summary().predicted_ns)
        with tempfile.TemporaryDirectory() as folder:
            plan.save(Path(folder, "plan.msgpack"), cost=fsdp)
            again = hbp.Plan.load(Path(folder, "plan.msgpack"))
            self.assertEqual(again.summary().digest, plan.summary().digest)
            self.assertEqual(hbp.Cost.load(Path(folder, "plan.msgpack")).terms(), terms)

    def test_anchor(self):
        cost = hbp.Cost(hbp.Model.preset("llama-3.1-8b"), hbp.Machine.preset("h100"), stack="fsdp")
        known = cost.anchor(tokens_per_s_per_gpu=5762, sequence_tokens=8192, sequences_per_micro_batch=2)
        ns = known.predict_ns(16384, 2 * 8192.0**2) + known.terms().step_ns
        self.assertAlmostEqual(16384 / ns * 1e9, 5762, delta=0.1)
        self.assertEqual(known.source("pack_ns"), "run of 5762 tokens/s per GPU")
        with self.assertRaisesRegex(hbp.InvalidError, "at the peak of the GPU's products it would be"):
            cost.anchor(tokens_per_s_per_gpu=1e6, sequence_tokens=8192)
        with self.assertRaisesRegex(TypeError, "sequence_tokens"):
            cost.anchor(tokens_per_s_per_gpu=1e3, sequence_token=8192)

    def test_files(self):
        prior = samples.cost()
        self.assertEqual((prior.model_name, prior.machine_name), ("llama-3.1-8b", "h100"))
        columns = dict(sp=np.ones(40, int), recompute=np.zeros(40, int), tokens=np.arange(1, 41) * 500)
        columns["sum_squares"] = columns["tokens"] * (50 + np.arange(40) % 7 * 30)
        columns["time_ns"] = [
            2 * prior.predict_ns(int(t), 3.0 * float(q)) for t, q in zip(columns["tokens"], columns["sum_squares"])
        ]
        fitted, report = prior.fit(**columns)
        self.assertEqual(fitted.source("ns_per_token"), "fit of 40 packs")
        self.assertEqual(fitted.machine_name, "h100")
        self.assertEqual(report.terms_fitted, 3)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "cost.json")
            fitted.save(path, machine="NVIDIA H100", note="a note")
            again = hbp.Cost.load(path)
            self.assertIn("a note", path.read_text())
            path.write_text("{}")
            with self.assertRaisesRegex(hbp.FormatError, "format"):
                hbp.Cost.load(path)
        copy = pickle.loads(pickle.dumps(fitted))
        lengths = samples.lengths()
        digest = hbp.plan_epoch(lengths, fitted).digest
        for other in (again, copy):
            self.assertEqual(other.terms(), fitted.terms())
            self.assertEqual(other.source("ns_per_token"), "fit of 40 packs")
            self.assertEqual(other.source("step_ns"), "analysis")
            self.assertEqual(other.model_name, "llama-3.1-8b")
            self.assertEqual(hbp.plan_epoch(lengths, other).digest, digest)
        self.assertEqual((again.machine_name, copy.machine_name), ("NVIDIA H100", "h100"))
        self.assertEqual(hbp.Cost.from_terms(prior.terms()).model_name, "")
        with self.assertRaisesRegex(hbp.InvalidError, "at most 255"):
            fitted.save("unused", model="m" * 256)

    def test_fit(self):
        prior = samples.cost()
        true = hbp.Cost.from_terms(dataclasses.replace(
            prior.terms(), ns_per_token=prior.terms().ns_per_token * 1.7, pack_ns=5e6))
        rng = np.random.default_rng(3)
        tokens = rng.integers(500, 20000, 200)
        squares = tokens * rng.integers(50, 500, 200)
        sp = rng.choice([1, 2, 4], 200)
        times = [true.predict_ns(int(t), float(q), sp=int(d)) for t, q, d in zip(tokens, squares, sp)]
        fitted, report = prior.fit(sp=sp, recompute=np.zeros(200, int), tokens=tokens, sum_squares=squares, time_ns=times)
        self.assertLess(report.median_time_error, 0.01)
        self.assertGreater(report.prior_median_time_error, 0.1)
        self.assertAlmostEqual(fitted.terms().ns_per_token / true.terms().ns_per_token, 1, delta=0.02)
        columns = {"sp": sp, "recompute": np.zeros(200, int), "tokens": tokens, "sum_squares": squares, "time_ns": times}
        fitted, _ = prior.fit(**columns, step_ns=[9, 7, 800])
        self.assertEqual((fitted.terms().step_ns, fitted.source("step_ns")), (9, "median of 3 steps"))
        with self.assertRaisesRegex(hbp.InvalidError, r"step_ns\[1\] is -1; it must be at least 0"):
            prior.fit(**columns, step_ns=[1, -1])
        with self.assertRaises(ValueError):
            prior.fit(sp=[1], recompute=[0, 0], tokens=[1], sum_squares=[1], time_ns=[1])
        with self.assertRaises(hbp.InfeasibleError):
            prior.fit(sp=[1] * 9, recompute=[0] * 9, tokens=[500] * 9, sum_squares=[250000] * 9, time_ns=[10**7] * 9)


class TestSp(unittest.TestCase):
    def test_choose(self):
        cost = samples.cost()
        choices = {choice.sp: choice for choice in hbp.list_sp_choices(cost, 65536)}
        self.assertEqual(sorted(choices), [1, 2, 4, 8])
        best = hbp.choose_sp(cost, 65536)
        feasible = [choice for choice in choices.values() if choice.feasible]
        self.assertEqual(best.step_ns, min(choice.step_ns for choice in feasible))
        self.assertEqual(best, choices[best.sp])
        with self.assertRaises(hbp.InfeasibleError):
            hbp.choose_sp(cost, 2**30)
        with self.assertRaises(hbp.InvalidError):
            hbp.choose_sp(cost, 0)
        self.assertFalse(hbp.list_sp_choices(cost, 2**30)[0].feasible)


if __name__ == "__main__":
    unittest.main()

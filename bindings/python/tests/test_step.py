"""Steps: groups, the bound, methods and options, files, refusals."""

import ctypes
import re
import unittest

import numpy as np
import samples

import hbp
from hbp import _records, step


def batch(count: int = 200, seed: int = 3) -> np.ndarray:
    return samples.lengths(count, seed)


class TestStep(unittest.TestCase):
    def test_every_sample_once_within_the_bound(self):
        lengths, cost = batch(), samples.cost(2)
        plan = hbp.plan_step(lengths, cost)
        plan.validate(lengths, cost)
        self.assertEqual(len(plan), 1)
        self.assertEqual(sorted(plan.sample_ids.tolist()), list(range(len(lengths))))
        summary = plan.summary()
        self.assertEqual(summary.predicted_ns, plan.step(0).predicted_ns)
        self.assertLessEqual(summary.bound_ns, summary.predicted_ns)
        if summary.bound_ns:
            self.assertAlmostEqual(summary.gap, summary.predicted_ns / summary.bound_ns - 1)
            self.assertIn("no plan of these samples in so many steps takes less", str(summary))
        self.assertEqual(plan.digest, hbp.plan_step(lengths.tolist(), cost).digest)

    def test_ranks_wait_for_their_own_pack_alone(self):
        model, machine = hbp.Model.preset("llama-3.1-8b"), hbp.Machine.preset("h100", nodes=2)
        lengths = batch()
        whole = hbp.Cost(model, machine, zero_stage=1)
        alone = hbp.Cost(model, machine, zero_stage=1, lockstep_ranks=1, uneven_micro_batches=True)
        self.assertEqual((alone.terms().lockstep_ranks, alone.terms().uneven_micro_batches), (1, 1))
        plan, slower = hbp.plan_step(lengths, alone), hbp.plan_step(lengths, whole)
        plan.validate(lengths, alone)
        self.assertEqual((plan.summary().lockstep_ranks, slower.summary().lockstep_ranks), (1, 0))
        self.assertLessEqual(plan.summary().predicted_ns, slower.summary().predicted_ns)
        self.assertLessEqual(int(plan.step_ns[0]), int(plan.micro_batch_ns.sum()) + round(alone.terms().step_ns))
        self.assertIn("16 ranks in lockstep sets of 1", str(plan.summary()))
        self.assertEqual(hbp.simulate(plan, alone).epoch_ns, plan.summary().predicted_ns)
        with self.assertRaisesRegex(hbp.InvalidError, "lockstep sets of 1 ranks, the cost for sets of 16"):
            plan.validate(lengths, whole)
        sharded = hbp.Cost(model, machine, shard_ranks=8)
        self.assertEqual(sharded.terms().lockstep_ranks, 8)
        with self.assertRaisesRegex(hbp.InvalidError, "ZeRO-3 gathers weights over 16 ranks"):
            hbp.Cost(model, machine, lockstep_ranks=1)

    def test_groups_are_written_as_the_paper_does(self):
        plan = hbp.plan_step(batch(), samples.cost(2))
        groups = plan.step(0).groups()
        self.assertEqual(len(groups), len(plan.step(0).micro_batches))
        offsets = plan.micro_batch_offsets.tolist()
        for row, text in enumerate(groups):
            self.assertRegex(text, r"^<(\d+(x\d+)?(,|(?=>)))*>$")
            degrees = [
                int(sp)
                for sp, count in re.findall(r"(\d+)(?:x(\d+))?", text)
                for _ in range(int(count or 1))
            ]
            packs = [hbp.Pack(plan, p) for p in range(offsets[row], offsets[row + 1])]
            self.assertEqual(degrees, sorted((p.sp for p in packs if not p.is_padding), reverse=True))

    def test_groups_of_equal_samples(self):
        plan = hbp.plan_step([4096] * 16, samples.cost(2), min_sp=2, max_sp=2, max_micro_batches=1)
        self.assertEqual(plan.step(0).groups(), ["<2x8>"])
        self.assertEqual(hbp.plan_step([100], samples.cost(2), min_sp=16).step(0).groups(), ["<16>"])

    def test_methods(self):
        lengths, cost = batch(), samples.cost(2)
        self.assertGreaterEqual(hbp.methods(of="step").keys(), {"search", "flexsp", "static-sp", "dynamic-cp"})
        for method in hbp.methods(of="step"):
            if method == "flexsp":
                continue
            with self.subTest(method):
                plan = hbp.plan_step(lengths, cost, method=method)
                plan.validate(lengths, cost)
                self.assertLessEqual(plan.summary().bound_ns, plan.summary().predicted_ns)
        static = hbp.plan_step(lengths, cost, method="static_sp", longest_tokens=400_000).step(0)
        self.assertEqual({pack.sp for pack in static.packs() if not pack.is_padding}, {16})

    def test_options(self):
        lengths, cost = batch(), samples.cost(2)
        plan = hbp.plan_step(lengths, cost, max_sp=4, sequence_multiple=128, pack_multiple=256)
        plan.validate(lengths, cost)
        self.assertLessEqual(int(plan.pack_sp.max()), 4)
        self.assertTrue((plan.pack_padded_tokens % 256 == 0).all())
        self.assertEqual(plan.summary().sequence_multiple, 128)
        for recompute, layers in (("none", 0), ("all", 32)):
            plan = hbp.plan_step(lengths, cost, recompute=recompute)
            used = np.diff(plan.pack_offsets) > 0
            self.assertEqual(set(plan.pack_recompute[used].tolist()), {layers})
        plan = hbp.plan_step(lengths, cost, micro_batch_multiple=4)
        self.assertEqual(plan.summary().micro_batches % 4, 0)
        more = hbp.plan_step(lengths, cost, effort=3).summary().predicted_ns
        self.assertLessEqual(more, hbp.plan_step(lengths, cost).summary().predicted_ns)

    def test_ties_share_a_pack(self):
        links = np.arange(200) // 2
        linked = hbp.Lengths.from_array(batch(), links=links)
        plan = hbp.plan_step(linked, samples.cost(2))
        plan.validate(linked, samples.cost(2))
        for pack in plan.step(0).packs():
            self.assertTrue((np.unique(pack.ids // 2, return_counts=True)[1] == 2).all())

    def test_files_carry_the_bound(self):
        plan = hbp.plan_step(batch(), samples.cost(2))
        again = hbp.Plan.from_bytes(plan.to_bytes())
        self.assertEqual(again.summary(), plan.summary())
        self.assertEqual(again.step(0).groups(), plan.step(0).groups())

    def test_refusals(self):
        cost = samples.cost()
        with self.assertRaisesRegex(hbp.InfeasibleError, r"sample 1 has 90000000 tokens.* holds \d+"):
            hbp.plan_step([100, 90_000_000], cost)
        for wrong in ({"method": "best"}, {"recompute": "some"}):
            with self.assertRaisesRegex(ValueError, "must be one of"):
                hbp.plan_step([100], cost, **wrong)
        with self.assertRaisesRegex(hbp.InvalidError, "`effort` is 10; it must be in 0..9"):
            hbp.plan_step([100], cost, effort=10)
        with self.assertRaisesRegex(hbp.InvalidError, "`min_micro_batches` is 3"):
            hbp.plan_step([100], cost, min_micro_batches=3, max_micro_batches=2)
        with self.assertRaises(OverflowError):
            hbp.plan_step([100], cost, buckets=2**31)
        for name in ("tokens_per_step", "mode", "solver", "degrees"):
            with self.assertRaisesRegex(TypeError, name):
                hbp.plan_step([100], cost, **{name: 1})
        for empty in ([], [0]):
            with self.assertRaises(ValueError):
                hbp.plan_step(empty, cost)
        with self.assertRaises(hbp.SolverError):
            hbp.plan_step([100, 200], cost, exact=True)


    def test_any_degree(self):
        model = hbp.Model.preset("llama-3.1-8b").variant(heads=24, kv_heads=24, hidden=3072)
        cost = hbp.Cost(model, hbp.Machine.preset("h100", nodes=3))
        self.assertIn(24, cost.terms().degree)
        with self.assertRaisesRegex(hbp.InvalidError, "24"):
            hbp.plan_step([100], cost, min_sp=24)
        self.assertEqual(hbp.plan_step([100], cost, min_sp=24, any_degree=True).step(0).groups(), ["<24>"])


class TestNames(unittest.TestCase):
    def test_defaults_are_zero(self):
        empty = _records.StepOptions()
        self.assertEqual(step.step_options(), empty)
        self.assertEqual(sum(bytes(empty)), ctypes.sizeof(empty))


if __name__ == "__main__":
    unittest.main()

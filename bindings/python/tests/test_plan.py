"""Plans: the walk, columns, weights, files, cursors, pickles; and the four moves one by one."""

import copy
import gc
import gzip
import json
import os
import pickle
import tempfile
import threading
import unittest
from pathlib import Path
from unittest import mock

import numpy as np
import samples

import hbp
from hbp import _native, _records, _results
from hbp.epoch import EpochKeywords, _options


class TestWalk(unittest.TestCase):
    def test_every_sample_once(self):
        plan, lengths = samples.plan(), samples.lengths()
        plan.validate(lengths, samples.cost())
        seen = np.zeros(len(lengths), int)
        for step in plan:
            micro_batches = set()
            for rank in range(8):
                packs = step.for_rank(rank)
                micro_batches.add(len(packs))
                for pack in packs:
                    self.assertIn(rank, pack.ranks)
                    if pack.ranks.start == rank:
                        seen[pack.ids] += 1
                        self.assertEqual(pack.lengths.tolist(), lengths[pack.ids].tolist())
            self.assertEqual(micro_batches, {len(step.micro_batches)})
        self.assertTrue((seen == 1).all())

    def test_pack(self):
        plan = samples.plan()
        for pack in plan.step(1).packs():
            borders = pack.cu_seqlens
            self.assertEqual(borders.dtype, np.int32)
            self.assertEqual(np.diff(borders).tolist(), pack.lengths.tolist())
            self.assertEqual(pack.max_seqlen, max(pack.lengths.tolist(), default=0))
            self.assertEqual(pack.tokens, int(borders[-1]))
            self.assertEqual(pack.loss_tokens, pack.tokens)
            self.assertLessEqual(pack.padded_tokens, pack.capacity)
            self.assertEqual(pack.sum_squares, int((pack.lengths.astype(np.int64) ** 2).sum()))
            self.assertEqual((len(pack), pack.is_padding), (len(pack.ids), len(pack.ids) == 0))
            self.assertEqual(pack.ranks, range(pack.first_rank, pack.first_rank + pack.sp))

    def test_padding(self):
        plan = samples.plan(sequence_multiple=16, pack_multiple=64)
        for pack in plan.step(0).packs():
            padded = pack.cu_seqlens_padded
            self.assertTrue((padded % 16 == 0).all())
            self.assertEqual(int(padded[-1]), pack.padded_tokens)
            self.assertEqual(pack.padded_tokens % 64, 0)

    def test_dummies(self):
        plan = hbp.plan_epoch([100, 200, 300], samples.cost(), method="hbp")
        packs = [pack for step in plan for pack in step.packs()]
        dummies = [pack for pack in packs if pack.is_padding]
        self.assertEqual(len(dummies), plan.summary().padding_packs)
        self.assertGreater(len(dummies), 0)
        for pack in dummies:
            self.assertEqual((pack.loss_tokens, pack.max_seqlen, pack.cu_seqlens.tolist()), (0, 0, [0]))

    def test_bounds(self):
        plan = samples.plan()
        self.assertEqual(plan.step(-1).index, len(plan) - 1)
        for call in (lambda: plan.step(len(plan)), lambda: plan.step(0).for_rank(8), lambda: plan.step(0).for_rank(-1),
                     lambda: plan.rank_pack(0, 10**6, 0)):
            with self.assertRaises(IndexError):
                call()
        with self.assertRaises(hbp.InvalidError):
            plan.cu_seqlens(len(plan.pack_ns))
        with self.assertRaises(hbp.InvalidError):
            plan.loss_weights(len(plan))

    def test_loss_weights(self):
        plan = samples.plan()
        step = plan.step(0)
        counts = np.concatenate([pack.sample_loss_tokens for pack in step.packs()])
        for normaliser in ("token", "local-token", "sample"):
            weights = step.loss_weights(normaliser)
            self.assertEqual(len(weights), step.samples)
            self.assertAlmostEqual(float((weights * counts).sum()), 1.0, places=12)
        self.assertTrue(np.allclose(step.loss_weights(), 1 / step.loss_tokens))
        self.assertEqual(set(step.loss_weights("sum").tolist()), {1.0})
        parts = [step.pack_weights(pack, "sample") for pack in step.packs()]
        self.assertEqual(np.concatenate(parts).tolist(), step.loss_weights("sample").tolist())
        with self.assertRaises(ValueError):
            step.loss_weights("tokens")
        with self.assertRaises(ValueError):
            step.pack_weights(plan.step(1).packs()[0])

    def test_loss_tokens(self):
        lengths = samples.lengths()
        data = hbp.Lengths.from_array(lengths, loss_tokens=lengths // 2)
        plan = hbp.plan_epoch(data, samples.cost())
        self.assertEqual(int(plan.step_loss_tokens.sum()), int((lengths // 2).sum()))
        pack = plan.step(0).packs()[0]
        self.assertEqual(pack.sample_loss_tokens.tolist(), (lengths[pack.ids] // 2).tolist())


class TestVision(unittest.TestCase):
    """The second size and the order of modalities."""

    def test_columns(self):
        lengths = samples.lengths()
        vision = (np.arange(len(lengths)) % 5).astype(np.uint32)
        data = hbp.Lengths.from_array(lengths, vision=vision)
        plan = hbp.plan_epoch(data, samples.cost())
        self.assertEqual(plan.sample_vision.tolist(), vision[plan.sample_ids].tolist())
        self.assertEqual(int(plan.pack_vision.sum()), int(vision.sum()))
        self.assertEqual(plan.summary().vision, int(vision.sum()))
        self.assertIn("vision units", str(plan.summary()))
        self.assertEqual(plan.summary().modality_list, [])
        self.assertIsNone(plan.sample_modalities)
        self.assertIsNone(plan.micro_batch_modalities)
        for pack in plan.step(0).packs():
            self.assertEqual(pack.vision, int(pack.sample_vision.sum()))
            self.assertIsNone(pack.vision_capacity)
            self.assertEqual(pack.modality_list, [])
            self.assertIsNone(pack.sample_modalities)
        report = hbp.simulate(plan, samples.cost())
        self.assertEqual(report.vision, int(vision.sum()))
        self.assertTrue(0 <= report.dist_tokens <= 1 and 0 <= report.dist_vision <= 1)
        self.assertIn("DistRatio", str(report))
        again = pickle.loads(pickle.dumps(plan))
        self.assertEqual((again.digest, again.pack_vision.tolist()), (plan.digest, plan.pack_vision.tolist()))
        with self.assertRaisesRegex(hbp.InvalidError, "digest"):
            plan.validate(lengths)

    def test_plans_without(self):
        plan = samples.plan()
        pack = plan.step(0).packs()[0]
        for column in ("sample_vision", "pack_vision", "pack_vision_capacity"):
            self.assertIsNone(getattr(plan, column))
        self.assertEqual((pack.vision, pack.vision_capacity), (0, None))
        self.assertEqual(pack.sample_vision.tolist(), [0] * len(pack))
        self.assertEqual(plan.summary().vision, -1)
        self.assertNotIn("vision", str(plan.summary()))
        self.assertNotIn("DistRatio", str(hbp.simulate(plan, samples.cost())))

    def test_kinds(self):
        """A file of another program, with kinds and a limit: the library's own test wrote it."""
        golden = Path(__file__).resolve().parents[3] / "tests" / "golden" / "vision.msgpack"
        plan = hbp.Plan.load(golden)
        self.assertEqual((plan.summary().vision, plan.summary().modality_list), (59, [0, 1]))
        limited = 0
        for step in plan:
            for row, rows in enumerate(zip(*(step.for_rank(rank) for rank in range(plan.summary().ranks)))):
                kinds = {tuple(pack.modality_list) for pack in rows}
                self.assertEqual(len(kinds), 1)
                mask = int(plan.micro_batch_modalities[step.micro_batches[row]])
                self.assertEqual(sum(1 << kind for kind in kinds.pop()), mask)
            for pack in step.packs():
                self.assertEqual(pack.sample_modalities.tolist(), sorted(pack.sample_modalities.tolist()))
                self.assertTrue(pack.is_padding or sorted(set(pack.sample_modalities.tolist())) == pack.modality_list)
                if pack.vision_capacity is not None:
                    limited += 1
                    self.assertLessEqual(pack.vision, pack.vision_capacity)
        self.assertGreater(limited, 0)

    def test_packs(self):
        lengths = np.array([100, 200, 300, 400])
        data = hbp.Lengths.from_array(lengths, vision=np.array([1, 0, 2, 7], np.uint32))
        cost = samples.cost()
        groups = hbp.plan_groups(data, cost)
        packs = hbp.greedy_fill(data, groups)
        self.assertEqual(int(packs.pack_vision.sum()), 10)
        self.assertEqual((packs.dropped_indices.tolist(), packs.dropped_reasons.tolist()), ([], []))
        self.assertIsNone(hbp.greedy_fill(lengths, groups).pack_vision)


class TestColumns(unittest.TestCase):
    def test_views(self):
        plan = samples.plan()
        self.assertIs(plan.sample_ids, plan.sample_ids)
        self.assertFalse(plan.sample_ids.flags.owndata)
        with self.assertRaises(ValueError):
            plan.sample_ids[0] = 1
        summary = plan.summary()
        self.assertEqual(len(plan.step_offsets), summary.steps + 1)
        self.assertEqual(len(plan.pack_sp), summary.packs)
        self.assertEqual(len(plan.sample_ids), summary.samples)
        self.assertIsNone(plan.sample_first_tokens)
        self.assertIsNone(plan.sample_loss_tokens)

    def test_a_view_keeps_the_plan_alive(self):
        columns = []
        for seed in range(20):
            columns.append(hbp.plan_epoch(samples.lengths(), samples.cost(), seed=seed).sample_ids[10:])
        gc.collect()
        junk = [np.zeros(3000, np.int64) for _ in range(100)]  # takes the memory if it was freed
        for column in columns:
            self.assertEqual(len(np.unique(column)), 2990)
        self.assertEqual(len(junk), 100)

    def test_memory_is_given_back(self):
        def resident() -> int:
            with open("/proc/self/statm") as file:
                return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

        if not Path("/proc/self/statm").exists():
            self.skipTest("no /proc")
        lengths = np.full(400_000, 1000, np.uint32)
        for turn in range(12):
            plan = hbp.plan_epoch(lengths, samples.cost())
            self.assertEqual(len(plan.sample_ids), len(lengths))
            if turn == 2:
                before = resident()
        self.assertLess(resident() - before, 40e6)  # nine lost plans would be 43 MB of sample columns alone


class TestEpoch(unittest.TestCase):
    def test_a_pure_function(self):
        lengths = samples.lengths(800)
        digests = [hbp.plan_epoch(lengths.astype(dtype), samples.cost(), max_length=65536).digest
                   for dtype in ("u4", "i4", "i8", "u8")]
        self.assertEqual(set(digests), {samples.plan(800).digest})
        self.assertEqual(hbp.plan_epoch(lengths.tolist(), samples.cost(), max_length=65536).digest, digests[0])
        self.assertNotEqual(samples.plan(800, seed=1).digest, digests[0])
        self.assertNotEqual(samples.plan(800, epoch=1).digest, digests[0])

    def test_over_long(self):
        lengths = [100] * 50 + [5000, 9000]
        cost = samples.cost()
        with self.assertRaises(hbp.InvalidError):
            hbp.plan_epoch(lengths, cost, max_length=4096)
        dropped = hbp.plan_epoch(lengths, cost, max_length=4096, over_long="drop")
        self.assertEqual(sorted(dropped.dropped), [(50, "over-long"), (51, "over-long")])
        split = hbp.plan_epoch(lengths, cost, max_length=4096, over_long="split")
        rows = np.flatnonzero(split.sample_ids == 51)
        self.assertEqual(sorted(split.sample_first_tokens[rows].tolist()), [0, 4096, 8192])
        truncated = hbp.plan_epoch(lengths, cost, max_length=4096, over_long="truncate")
        self.assertEqual(truncated.summary().overlong_tokens, 904 + 4904)

    def test_dropped_pieces(self):
        lengths = [1000 + 37 * i for i in range(200)]
        cost = samples.cost()
        whole = hbp.plan_epoch(lengths, cost, max_length=4096, over_long="split")
        self.assertIsNone(whole.dropped_tokens)
        plan = hbp.plan_epoch(lengths, cost, max_length=4096, over_long="split", drop_last=True,
                              tokens_per_step=262144)
        self.assertGreater(len(plan.dropped_ids), 0)
        tokens = np.zeros(200, np.int64)
        np.add.at(tokens, plan.sample_ids, plan.sample_tokens)
        np.add.at(tokens, plan.dropped_ids, plan.dropped_tokens)
        self.assertEqual(tokens.tolist(), lengths)
        firsts = list(zip(plan.sample_ids.tolist(), plan.sample_first_tokens.tolist()))
        firsts += zip(plan.dropped_ids.tolist(), plan.dropped_first_tokens.tolist())
        self.assertEqual(sorted(firsts), [(i, first) for i, n in enumerate(lengths) for first in range(0, n, 4096)])
        back = hbp.Plan.from_bytes(plan.to_bytes())
        self.assertEqual(back.dropped_first_tokens.tolist(), plan.dropped_first_tokens.tolist())

    def test_unknown_options(self):
        for call in (
            lambda: hbp.plan_epoch([1], samples.cost(), max_len=5),
            lambda: hbp.plan_groups([1], samples.cost(), max_len=5),
            lambda: hbp.choose_sp(samples.cost(), 1, max_len=5),
        ):
            with self.assertRaisesRegex(TypeError, "max_len"):
                call()
        with self.assertRaisesRegex(ValueError, "method is 'hpb' \\(did you mean 'hbp'\\?\\)"):
            hbp.plan_epoch([1], samples.cost(), method="hpb")
        with self.assertRaisesRegex(OverflowError, "seed"):
            hbp.plan_epoch([1], samples.cost(), seed=-1)
        with self.assertRaises(TypeError):
            hbp.plan_epoch([1], samples.cost(), groups="none")
        with self.assertRaises(TypeError):
            hbp.plan_epoch([1], hbp.Model.preset("llama-3.1-8b"))

    def test_zero_is_the_default_of_every_option(self):
        for name in EpochKeywords.__annotations__:
            value = {"method": "search", "over_long": "error", "groups": None, "composition": "auto",
                     "batches": None}.get(name, 0)
            struct, _kept = _options({name: value})
            zero = _records.EpochOptions(method="search") if name == "method" else _records.EpochOptions()
            self.assertEqual(struct, zero, name)
            hbp.plan_epoch([64, 65], samples.cost(), **{name: value})
        for name in ("batch_offsets",):
            with self.assertRaisesRegex(TypeError, name):
                hbp.plan_epoch([64, 65], samples.cost(), **{name: 0})

    def test_packs_made_elsewhere(self):
        """Plain packing without a model; packs handed back are the packs that they were."""
        lengths, cost = hbp.Lengths.from_array(samples.lengths()), hbp.Cost.plain(8)
        self.assertEqual(cost.terms().degree, (1, 2, 4, 8))
        self.assertEqual(cost.predict_ns(300, 50000, sp=4), 12500)
        with self.assertRaisesRegex(hbp.InvalidError, "`ranks` is 0"):
            hbp.Cost.plain(0)
        groups = hbp.Groups.create(cost, [8192, 131072], [1, 8])
        packs = hbp.greedy_fill(lengths, groups, sequence_multiple=8)
        rows = [packs[index] for index in range(len(packs))]
        again = hbp.Packs.create(lengths, groups, rows, packs.pack_groups, sequence_multiple=8)
        for name in ("pack_offsets", "pack_groups", "pack_tokens", "pack_padded_tokens", "sample_indices"):
            self.assertEqual(getattr(again, name).tolist(), getattr(packs, name).tolist(), name)
        plans = [hbp.balance_attention(own, groups, cost) for own in (packs, again)]
        self.assertEqual(plans[0].digest, plans[1].digest)
        self.assertEqual(len(hbp.Packs.create(lengths, groups, rows)), len(packs))
        with self.assertRaisesRegex(ValueError, "pack_groups has 1 values"):
            hbp.Packs.create(lengths, groups, rows, [0])
        with self.assertRaisesRegex(hbp.InvalidError, "sample"):
            hbp.Packs.create(lengths, groups, rows[1:])
        with self.assertRaises(hbp.InvalidError):
            hbp.Packs.create(lengths, groups, [])

    def test_the_four_moves(self):
        lengths, cost = hbp.Lengths.from_array(samples.lengths()), samples.cost()
        groups = hbp.plan_groups(lengths, cost, max_length=65536)
        packs = hbp.greedy_fill(lengths, groups, seed=3)
        plan = hbp.balance_attention(packs, groups, cost, seed=3)
        plan.validate(lengths, cost)
        self.assertEqual(len(groups), len(groups.sp))
        chosen, ns = groups.candidates()[0]
        self.assertEqual(chosen, ", ".join(f"{n} x SP {d}" for n, d in zip(groups.pack_lengths, groups.sp)))
        self.assertEqual((len(groups.candidates()), ns), (len(groups.candidate_ns), groups.candidate_ns[0]))
        for group in range(len(groups)):
            self.assertGreaterEqual(int((packs.pack_groups == group).sum()), packs.bound(group))
        self.assertEqual(packs[0].tolist(), packs.sample_indices[: packs.pack_offsets[1]].tolist())
        by_hand = hbp.Groups.create(cost, [8192, 65536], [1, 8], tokens_per_step=groups.tokens_per_step)
        self.assertEqual(by_hand.pack_lengths.tolist(), [8192, 65536])
        hbp.plan_epoch(lengths, cost, groups=by_hand).validate(lengths, cost)
        with self.assertRaises(hbp.InvalidError):
            hbp.Groups.create(cost, [8192, 4096], [1, 8])
        with self.assertRaises(IndexError):
            packs.bound(len(groups))

    def test_compositions(self):
        lengths, cost = hbp.Lengths.from_array(samples.lengths(1500)), samples.cost()
        ns = {}
        for composition in ("hierarchy", "stratified", "random"):
            plan = hbp.plan_epoch(lengths, cost, composition=composition, tokens_per_step=400000, seed=3)
            plan.validate(lengths, cost)
            self.assertEqual(plan.summary().composition_name, composition)
            self.assertLessEqual(plan.step_tokens.max(), 400000)
            ns[composition] = plan.summary().predicted_ns
        best = hbp.plan_epoch(lengths, cost, tokens_per_step=400000, seed=3).summary()
        self.assertIn(best.composition_name, ("hierarchy", "stratified"))
        self.assertLessEqual(best.predicted_ns, ns["hierarchy"] * 1.01)
        with self.assertRaisesRegex(ValueError, "'stratified'"):
            hbp.plan_epoch(lengths, cost, composition="stratifed")
        with self.assertRaisesRegex(hbp.InvalidError, "mixture_slack"):
            hbp.plan_epoch(lengths, cost, mixture_slack=1001)

    def test_samples_per_step(self):
        lengths, cost = samples.lengths(1000), samples.cost()
        plan = hbp.plan_epoch(lengths, cost, samples_per_step=256, seed=3)
        plan.validate(lengths, cost)
        self.assertEqual(sorted(plan.step_samples), [232, 256, 256, 256])
        self.assertEqual(plan.summary().samples_per_step, 256)
        self.assertEqual(hbp.plan_epoch(lengths, cost, samples_per_step=256, seed=3, threads=2).digest, plan.digest)
        with self.assertRaisesRegex(hbp.InvalidError, "samples_per_step and tokens_per_step are both given"):
            hbp.plan_epoch(lengths, cost, samples_per_step=256, tokens_per_step=400000)
        plan = hbp.plan_epoch(lengths, cost, samples_per_step=256, micro_batches_per_step=2, drop_last=True)
        self.assertEqual(np.diff(plan.step_offsets).tolist(), [2, 2, 2])
        plan = hbp.plan_epoch(lengths, cost, samples_per_step=256, max_pack_length=65536, tokens_per_rank=16384)
        self.assertLessEqual(plan.pack_padded_tokens.max(), 65536)
        self.assertLessEqual((plan.pack_padded_tokens / plan.pack_sp).max(), 16384)

    def test_batches(self):
        lengths, cost = samples.lengths(300), samples.cost()
        order = np.random.default_rng(2).permutation(300)
        batches = [order[:100], order[100:250], order[250:]]
        plan = hbp.plan_epoch(lengths, cost, batches=batches)
        plan.validate(lengths, cost)
        self.assertEqual(plan.summary().composition_name, "given")
        for step, batch in zip(plan, batches):
            ids = [i for pack in step.packs() for i in pack.ids.tolist()]
            self.assertEqual(sorted(ids), sorted(batch.tolist()))
        as_lists = hbp.plan_epoch(lengths, cost, batches=[batch.tolist() for batch in batches])
        narrow = hbp.plan_epoch(lengths, cost, batches=[batch.astype(np.int32) for batch in batches])
        threads = hbp.plan_epoch(lengths, cost, batches=batches, threads=2)
        self.assertEqual({as_lists.digest, narrow.digest, threads.digest}, {plan.digest})
        for bad, message in (
            ([[0, 1], [1, 2]], "batch 1 names sample 1, which is in batch 0 already"),
            ([[0], [1]], "do not name 1 of 3 samples, the first is sample 2"),
            ([[0, 1, 2], []], "batch 1 has no samples"),
            ([[0, 1, 3]], "batch 0 names sample 3"),
        ):
            with self.assertRaisesRegex(hbp.InvalidError, message):
                hbp.plan_epoch([10, 20, 30], cost, batches=bad)
        with self.assertRaisesRegex(ValueError, "batches has no batch"):
            hbp.plan_epoch([10, 20, 30], cost, batches=[])
        with self.assertRaisesRegex((TypeError, ValueError), r"batches\[1\]"):
            hbp.plan_epoch([10, 20, 30], cost, batches=[[0, 1], [1.5]])
        with self.assertRaisesRegex(hbp.InvalidError, "samples_per_step and batches are both given"):
            hbp.plan_epoch([10, 20, 30], cost, batches=[[0, 1, 2]], samples_per_step=3)

    def test_vision(self):
        rng = np.random.default_rng(1)
        kinds = rng.integers(0, 3, 3000)
        vision = np.where(kinds > 0, rng.integers(1, 7, 3000) * kinds, 0)
        lengths = hbp.Lengths.from_array(rng.integers(1, 2000, 3000), vision=vision, modalities=kinds)
        cost = samples.cost()
        plan = hbp.plan_epoch(lengths, cost, max_length=4096, max_vision=24, modality_order=True)
        plan.validate(lengths, cost)
        self.assertLessEqual(plan.pack_vision.max(), 24)
        self.assertEqual(len(plan.sample_ids), 3000)
        for m, mask in enumerate(plan.micro_batch_modalities):
            for pack in range(plan.micro_batch_offsets[m], plan.micro_batch_offsets[m + 1]):
                mine = kinds[plan.sample_ids[plan.pack_offsets[pack] : plan.pack_offsets[pack + 1]]]
                self.assertEqual(mine.tolist(), sorted(mine))
                if len(mine):
                    self.assertEqual(int(mask), sum(1 << int(kind) for kind in set(mine)))
        report = hbp.simulate(plan, cost)
        self.assertLess(max(report.dist_vision, report.dist_tokens), 0.1)
        groups = hbp.Groups.create(cost, [4096], [1])
        packs = hbp.greedy_fill(lengths, groups)
        even = hbp.simulate(hbp.balance_attention(packs, groups, cost, method="vision"), cost)
        time = hbp.simulate(hbp.balance_attention(packs, groups, cost, method="time"), cost)
        self.assertLess(even.dist_vision, time.dist_vision)
        with self.assertRaisesRegex(hbp.InvalidError, "no vision units"):
            hbp.plan_epoch(samples.lengths(), cost, max_vision=24)

    def test_methods(self):
        lengths, cost, digests = samples.lengths(), samples.cost(), {}
        ours = hbp.simulate(samples.plan(), cost)
        for name in hbp.methods(of="epoch"):
            plan = hbp.plan_epoch(lengths, cost, method=name, max_length=65536)
            plan.validate(lengths, cost)
            report = hbp.simulate(plan, cost)
            self.assertGreaterEqual(report.epoch_ns, report.bound_ns)
            self.assertEqual(report.tokens, ours.tokens)
            digests[name] = plan.digest
        self.assertEqual(digests["search"], samples.plan().digest)
        self.assertGreater(len(set(digests.values())), 12)
        with self.assertRaisesRegex(ValueError, "no-packing"):
            hbp.plan_epoch(lengths, cost, method="none")

    def test_simulate(self):
        plan, cost = samples.plan(), samples.cost()
        report = hbp.simulate(plan, cost)
        self.assertEqual(report.epoch_ns, plan.summary().predicted_ns)
        self.assertGreater(report.bound_ns, 0)
        self.assertEqual(hbp.simulate(plan, cost, no_bound=True).bound_ns, 0)
        self.assertEqual(hbp.bound_epoch(samples.lengths(), cost, len(plan)), report.bound_ns)
        self.assertIn("idle", str(report))

    def test_what_a_step_holds(self):
        """The report's numbers of steps, counted from the plan."""
        plan = samples.plan()
        report = hbp.simulate(plan, samples.cost())
        for name, values in (("samples", plan.step_samples), ("tokens", plan.step_tokens)):
            values = np.sort(values)
            for end, percent in (("p5", 5), ("median", 50), ("p95", 95)):
                expected = int(values[(len(values) - 1) * percent // 100])
                self.assertEqual(getattr(report, f"step_{name}_{end}"), expected)
                self.assertIn(f"{expected:,}", str(report))
        self.assertAlmostEqual(report.samples_cv, float(np.std(plan.step_samples) / np.mean(plan.step_samples)))

        def mixture(lengths):
            tokens = np.bincount(np.floor(np.log2(lengths)).astype(int), weights=lengths, minlength=32)
            return tokens / tokens.sum()

        epoch = mixture(plan.sample_tokens)
        borders = plan.pack_offsets[plan.micro_batch_offsets[plan.step_offsets]]
        steps = np.split(plan.sample_tokens, borders[1:-1])
        distances = [np.abs(mixture(lengths) - epoch).sum() / 2 for lengths in steps]
        self.assertAlmostEqual(report.mixture_distance, float(np.mean(distances)))
        self.assertIn(f"mixture {report.mixture_distance:.3f} from the epoch's", str(report))

    def test_one_of_each(self):
        plan = hbp.plan_epoch([100], hbp.Cost.plain(1), tokens_per_step=1000)
        text = f"<hbp.Plan: 1 step, 1 sample, digest {plan.digest:016x}>"
        self.assertEqual((len(plan), repr(plan)), (1, text))
        self.assertEqual(repr(plan[0]), "<hbp.Step 0: 1 micro-batch, 1 sample>")
        self.assertEqual(repr(plan[0].micro_batch(0)), "<hbp.MicroBatch 0: 1 pack, 100 tokens>")
        self.assertEqual(repr(plan[0].packs()[0]), "<hbp.Pack 0: 1 sample, 100 tokens on 1 rank>")
        self.assertTrue(str(plan.summary()).startswith("1 step, 1 micro-batch, 1 pack on 1 rank\n"))
        self.assertTrue(str(hbp.simulate(plan, hbp.Cost.plain(1))).startswith("1 step in "))


class TestContract(unittest.TestCase):
    def summary(self, **fields):
        return _results.PlanSummary(vision=-1, steps=3, **fields)

    def test_names(self):
        names = list(_records.choices("HBP_COMPOSITION"))
        self.assertEqual([_native.lib.hbp_composition_name(i).decode() for i in range(len(names))], list(names))
        self.assertIsNone(_native.lib.hbp_composition_name(len(names)))
        self.assertIsNone(_native.lib.hbp_composition_name(-1))
        self.assertIsNone(self.summary().composition_name)
        self.assertIsNone(self.summary(composition=len(names)).composition_name)
        self.assertEqual(self.summary(composition=4).composition_name, "given")

    def test_contract(self):
        self.assertEqual(self.summary().contract, "")
        self.assertNotIn("steps of", str(self.summary()))
        self.assertNotIn("hierarchy", str(self.summary(hierarchy_ns=1)))
        stratified = self.summary(composition=2, tokens_per_step=524288, hierarchy_ns=4140 * 10**9, mixture_ns=10**9)
        self.assertEqual(stratified.contract, "steps of at most 524,288 tokens, stratified")
        self.assertIn("\nsteps of at most 524,288 tokens, stratified\n", str(stratified))
        self.assertIn("hierarchy takes 4,140.000 s, the fastest found without one 1.000 s", str(stratified))
        self.assertNotIn("estimated", str(stratified))
        guessed = self.summary(composition=3, hierarchy_ns=2 * 10**9, mixture_ns=10**9)
        self.assertIn("1.000 s (estimated from some of them; too little to plan them all for)", str(guessed))
        self.assertEqual(self.summary(composition=1, samples_per_step=512).contract, "steps of 512 samples, random")
        both = self.summary(samples_per_step=512, tokens_per_step=1000)
        self.assertEqual(both.contract, "steps of 512 samples and at most 1,000 tokens")
        self.assertEqual(self.summary(composition=4).contract, "steps, given")

    def test_what_the_bound_is_of(self):
        for rivals, fields in (
            ("plan of these samples in so many steps", {}),
            ("plan in steps of at most 1,000 tokens", {"tokens_per_step": 1000, "composition": 3}),
            ("schedule of these very steps", {"tokens_per_step": 1000, "composition": 1}),
            ("schedule of these very steps", {"samples_per_step": 8, "composition": 2}),
            ("schedule of these very steps", {"composition": 4}),
        ):
            self.assertIn(f"no {rivals} takes less than 2.000 s", str(self.summary(bound_ns=2 * 10**9, **fields)))

    def test_price_of_the_steps(self):
        said = "these very steps cost up to 50.00 %: with steps left free, no plan takes less than 2.000 s"
        for bound, is_said in ((2.9, True), (2.0, False), (0, False)):
            text = str(self.summary(predicted_ns=3 * 10**9, bound_ns=int(bound * 1e9), free_bound_ns=2 * 10**9))
            self.assertEqual(said in text, is_said)


class TestFiles(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.path = self.folder / "plan.msgpack"

    def test_save_and_load(self):
        plan = samples.plan()
        for level in (0, -1, 9):
            plan.save(self.path, level=level, cost=samples.cost(), note="a note")
            self.assertEqual(hbp.Plan.load(self.path).digest, plan.digest)
        self.assertEqual(list(self.folder.iterdir()), [self.path])

    def test_plan_file_has_cost_and_note(self):
        plan, cost = samples.plan(), samples.cost()
        plan.save(self.path, cost=cost, note="a note")
        file = hbp.PlanFile(self.path)
        back = file.cost()
        self.assertEqual(file.note, "a note")
        self.assertEqual(back.terms().ns_per_token, cost.terms().ns_per_token)
        self.assertEqual(hbp.simulate(plan, back).epoch_ns, hbp.simulate(plan, cost).epoch_ns)
        plan.save(self.path)
        self.assertIsNone(hbp.PlanFile(self.path).cost())
        self.assertEqual(hbp.PlanFile(self.path).note, "")

    def test_plan_file(self):
        plan = samples.plan()
        plan.save(self.path, chunk_steps=2)
        file = hbp.PlanFile(self.path)
        self.assertEqual((len(file), file.summary()), (len(plan), plan.summary()))
        for index in (0, 3, len(plan) - 1):
            for mine, theirs in zip(plan.step(index).for_rank(5), file.step(index).for_rank(5)):
                self.assertEqual(mine.ids.tolist(), theirs.ids.tolist())
            one = file.step(index)
            self.assertEqual((one.index, one.tokens), (index, plan.step(index).tokens))
            self.assertIn(f"hbp.Step {index}:", repr(one))
            self.assertTrue((one.loss_weights() == plan.step(index).loss_weights()).all())
        with self.assertRaisesRegex(IndexError, f"there is no step {len(plan)}; the plan has {len(plan)}$"):
            file[len(plan)]
        for rows in (slice(1, 3), slice(None, None, 2), slice(-2, None), slice(3, 3), slice(None, None, -1)):
            self.assertEqual([step.index for step in file[rows]], [step.index for step in plan[rows]])
            self.assertEqual([step.ids() for step in file[rows]], [step.ids() for step in plan[rows]])
        with self.assertRaisesRegex(IndexError, "there is no rank 99"):
            file[2].for_rank(99)
        with self.assertRaisesRegex(ValueError, "Pack 0.* is of another plan, or another read of it, than <hbp.Step 2"):
            file[2].pack_weights(file[2].packs()[0])
        self.assertEqual((file[-1].index, len(file[-1].plan)), (len(plan) - 1, 1))
        with mock.patch("hbp.plan_file.STEPS", 3):  # in several reads, the last of fewer
            self.assertEqual([step.index for step in file], list(range(len(plan))))
            self.assertEqual([step.ids() for step in file], [step.ids() for step in plan])
        self.assertEqual(repr(file), f"<hbp.PlanFile: {len(plan):,} steps, digest {plan.digest:016x}>")
        self.assertIn(f", digest={plan.digest:016x}, ", repr(plan.summary()))
        self.assertIn(f"<td>{plan.digest:016x}</td>", plan.summary()._repr_html_())
        part = file.read(2, 3)
        self.assertEqual((len(part), part.summary().first_step), (3, 2))
        self.assertEqual((part.summary().epoch_steps, plan.summary().epoch_steps), (len(plan), 0))
        with self.assertRaisesRegex(IndexError, "no step 3; the plan has 3, numbered from 0: step 2 of the epoch on"):
            part.step(3)
        lengths = samples.lengths()
        for first in (0, 2):  # a part holds no more than a part of the samples
            self.assertIn(f"from step {first} of its epoch", str(file.read(first, 3).summary()))
            file.read(first, 3).validate(lengths)
        with self.assertRaises(IndexError):
            file.step(len(plan))
        with self.assertRaises(hbp.InvalidError):
            file.read(0, len(plan) + 1)

    def test_bad_files(self):
        samples.plan().save(self.path)
        data = bytearray(self.path.read_bytes())
        data[len(data) // 2] ^= 0x55
        self.path.write_bytes(data)
        with self.assertRaises(hbp.FormatError) as caught:
            hbp.Plan.load(self.path)
        self.assertEqual((caught.exception.status, caught.exception.name), (-6, "HBP_E_FORMAT"))
        self.path.write_bytes(b"abc")
        with self.assertRaises(hbp.FormatError):
            hbp.PlanFile(self.path)
        for read in (hbp.Plan.load, hbp.PlanFile, hbp.Lengths.read):
            with self.assertRaisesRegex(FileNotFoundError, "cannot open .*absent") as absent:
                read(self.folder / "absent")
            self.assertIsInstance(absent.exception, hbp.SystemFailure)
            self.assertEqual(absent.exception.errno, 2)
            self.assertIsInstance(pickle.loads(pickle.dumps(absent.exception)), hbp.MissingFileError)
        with self.assertRaises(hbp.SystemFailure):
            samples.plan().save(self.folder / "absent" / "plan.msgpack")
        with self.assertRaises(ValueError):
            samples.plan().save("a\0b")

    def test_trace_and_json(self):
        plan = samples.plan()
        plan.trace(self.folder / "trace.json", 0, 2)
        plain = (self.folder / "trace.json").read_bytes()
        self.assertTrue(json.loads(plain)["otherData"]["parts"].startswith("none"))
        plan.trace(self.folder / "trace.json.gz", 0, 2)
        self.assertEqual(gzip.decompress((self.folder / "trace.json.gz").read_bytes()), plain)
        plan.trace(self.folder / "parts.json", steps=1, cost=samples.cost())
        events = [e for e in json.loads((self.folder / "parts.json").read_text())["traceEvents"] if e["ph"] == "X"]
        ns = {kind: sum(round(e["dur"] * 1000) for e in events if e["cat"] == kind) for kind in ("pack", "part")}
        self.assertEqual(ns["pack"], ns["part"])
        with self.assertRaisesRegex(hbp.InvalidError, "the plan was made under another"):
            model, machine = hbp.Model.preset("llama-3.1-8b"), hbp.Machine.preset("h100")
            plan.trace(self.folder / "x.json", cost=hbp.Cost(model, machine, dp_overlap=0.5))
        plan.write_json(self.folder / "plan.json")
        json.loads((self.folder / "plan.json").read_text())

    def test_cursor(self):
        plan = samples.plan()
        for step in (0, 3, len(plan)):
            cursor = plan.save_cursor(step)
            self.assertEqual((len(cursor), plan.load_cursor(cursor)), (64, step))
        with self.assertRaises(hbp.InvalidError):
            samples.plan(seed=1).load_cursor(cursor)
        with self.assertRaises(ValueError):
            plan.load_cursor(cursor[:-1])
        with self.assertRaises(hbp.InvalidError):
            plan.save_cursor(len(plan) + 1)

    def test_pickle(self):
        plan = samples.plan()
        again = pickle.loads(pickle.dumps(plan))
        self.assertEqual(again.digest, plan.digest)
        self.assertEqual(again.sample_ids.tolist(), plan.sample_ids.tolist())
        self.assertEqual(copy.deepcopy(plan).digest, plan.digest)


class TestThreads(unittest.TestCase):
    def test_each_thread_plans(self):
        digests, failures = {}, []

        def work(seed: int) -> None:
            try:
                for _ in range(3):
                    digests.setdefault(seed, set()).add(
                        hbp.plan_epoch(samples.lengths(800), samples.cost(), max_length=65536, seed=seed).digest)
                    try:
                        hbp.plan_epoch([1, 0], samples.cost())
                    except hbp.InvalidError as error:
                        failures.append(str(error))
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for seed in range(4):
            self.assertEqual(digests[seed], {samples.plan(800, seed=seed).digest})
        self.assertEqual(len(set(map(str, failures))), 1)
        self.assertEqual(len(failures), 12)

    def test_threads_read_one_plan(self):
        plan = hbp.plan_epoch(samples.lengths(), samples.cost())
        totals = []

        def work() -> None:
            totals.append(sum(pack.tokens for step in plan for pack in step.for_rank(3)))

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(set(totals)), 1)


if __name__ == "__main__":
    unittest.main()

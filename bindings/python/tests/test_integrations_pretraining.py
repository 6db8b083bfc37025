"""The adapters of Megatron-LM and DeepSpeed behind stand-ins of their seams."""

import logging
import unittest

import integration_seams as seams
import numpy as np

import hbp.integrations.deepspeed
import hbp.integrations.megatron
from hbp.integrations import UnknownTrainerError
from hbp.integrations.megatron import fill_ranks


def drawn(seed, count, most, multiple):
    lengths = np.exp(np.random.default_rng(seed).normal(6.5, 1.4, count))
    return np.maximum(np.minimum(lengths, most) // multiple, 1).astype(int) * multiple


class Megatron(unittest.TestCase):
    def check(self, groups, batch, cap, ranks, powers=True):
        """No rank empty, none over the cap, every sample once a micro-batch on aligned ranks."""
        lengths, seen = dict(batch), []
        for micro_batch in groups:
            self.assertEqual(len(micro_batch), ranks)
            first = 0
            while first < ranks:
                ids = micro_batch[first]
                degree = sum(ids[0] in other for other in micro_batch)
                self.assertTrue(ids)
                self.assertTrue(all(other == ids for other in micro_batch[first : first + degree]))
                self.assertEqual(first % degree, 0)
                self.assertTrue(not powers or degree & (degree - 1) == 0)
                self.assertLessEqual(sum(lengths[k] for k in ids), cap * degree)
                seen += ids
                first += degree
        self.assertEqual(sorted(seen), sorted(lengths))

    def test_dynamic(self):
        with seams.megatron() as seam:
            hbp.integrations.megatron.install()
            for seed in range(40):
                rng = np.random.default_rng(seed)
                dp, cp, group = int(rng.integers(1, 5)), int(2 ** rng.integers(0, 4)), int(rng.integers(1, 4))
                ranks, cap = dp * cp, 4096
                count = (
                    int(rng.integers(3 * group, 60)) if seed % 4 else group
                )  # few: all ranks are used still
                lengths = drawn(seed, count, cap * ranks, 2 * ranks)
                batch = [(7 * k + 3, int(length)) for k, length in enumerate(lengths)]
                least = min(2, ranks) if seed % 3 == 0 and ranks % 2 == 0 else 1
                most = 6 if seed % 5 == 0 and ranks & (ranks - 1) == 0 else None
                scheduler = seam.scheduler_map["default_dynamic_cp"](
                    cap, cp, dp, group if group > 1 else None, max_num_seqs=most, min_cp_size=least
                )
                with self.subTest(seed=seed, ranks=ranks, count=count):
                    groups = scheduler.get_groups_and_subsamples(batch)
                    self.check(groups, batch, cap, ranks, powers=ranks & (ranks - 1) == 0)
                    self.assertEqual(len(groups) % group, 0)
                    for micro_batch in groups:
                        for ids in micro_batch:
                            self.assertGreaterEqual(sum(ids[0] in other for other in micro_batch), least)
                            self.assertLessEqual(len(ids), most or len(ids))

    def test_dynamic_refuses(self):
        with seams.megatron() as seam:
            hbp.integrations.megatron.install()
            make = seam.scheduler_map["default_dynamic_cp"]
            with self.assertRaisesRegex(hbp.HbpError, "4160"):
                make(1024, 2, 2, None).get_groups_and_subsamples([(0, 64), (1, 4160)])
            with self.assertRaisesRegex(hbp.HbpError, "1 samples do not fill 3 micro-batches"):
                make(1024, 2, 2, 3).get_groups_and_subsamples([(0, 64)])

    def test_fill_ranks(self):
        lengths = [10, 20, 30, 40]
        groups = fill_ranks([(2, [0, 1]), (1, [2])], lengths, 8, None)
        self.assertEqual(sum(degree for degree, _ in groups), 8)
        self.assertEqual(sorted(k for _, places in groups for k in places), [0, 1, 2])
        self.assertEqual(fill_ranks([(4, [0]), (4, [1])], lengths, 12, None), [(12, [0, 1])])
        groups = fill_ranks([(4, [0]), (4, [1]), (4, [2]), (4, [3])], lengths, 20, 3)
        self.assertEqual(sorted(groups), [(4, [0]), (4, [1]), (4, [2]), (8, [3])])
        with self.assertRaisesRegex(hbp.InfeasibleError, "2 samples on all 12 ranks; a pack holds 1"):
            fill_ranks([(4, [0]), (4, [1])], lengths, 12, 1)

    def test_balanced(self):
        for make, key in ((seams.megatron, "dp_balanced"), (seams.megatron_main, None)):
            with make() as seam:
                undo = hbp.integrations.megatron.install()
                (scheduler,) = {v for k, v in seam.scheduler_map.items() if key in (None, k)}
                for seed in range(20):
                    group = 1 + seed % 3
                    lengths = drawn(seed, 64 + seed, 8192, 16)
                    batch = [(k, int(length)) for k, length in enumerate(lengths)]
                    groups = scheduler(4096, 2, 4, group if group > 1 else None).get_groups_and_subsamples(
                        batch
                    )
                    self.assertEqual(len(groups) % group, 0)
                    for micro_batch in groups:
                        self.assertTrue(all(micro_batch[2 * k] == micro_batch[2 * k + 1] for k in range(4)))
                        self.assertTrue(all(0 < sum(lengths[k] for k in ids) <= 8192 for ids in micro_batch))
                    self.assertTrue(seams.place_all(len(batch), [ids for mb in groups for ids in mb[::2]]))
                with self.assertRaisesRegex(hbp.InvalidError, "8192 tokens.*9000"):
                    scheduler(4096, 2, 1, None).get_groups_and_subsamples([(0, 9000)])
                with self.assertRaisesRegex(ValueError, "more parts than samples|8.*3 samples|3 samples"):
                    scheduler(4096, 1, 8, None).get_groups_and_subsamples([(0, 5), (1, 6), (2, 7)])
                undo()
                with self.assertRaisesRegex(AssertionError, "not replaced"):
                    next(iter(seam.scheduler_map.values()))(1, 1, 1, None).get_groups_and_subsamples([])

    def test_errors_are_of_both_kinds(self):
        with seams.megatron() as seam:
            hbp.integrations.megatron.install()
            for kind in (hbp.HbpError, AssertionError):  # Megatron asserts
                for make, batch in ((seam.scheduler_map[key], [(0, 9000)]) for key in seam.scheduler_map):
                    with self.assertRaisesRegex(kind, "9000"):
                        make(1024, 2, 2, None).get_groups_and_subsamples(batch)
                    self.assertEqual(make(1024, 2, 2, None).get_groups_and_subsamples([]), [])

    def test_max_samples(self):
        with seams.megatron() as seam:
            hbp.integrations.megatron.install()
            scheduler = seam.scheduler_map["dp_balanced"](4096, 1, 2, None, max_num_seqs=3)
            groups = scheduler.get_groups_and_subsamples([(k, 16) for k in range(40)])
            self.assertLessEqual(max(len(ids) for micro_batch in groups for ids in micro_batch), 3)

    def test_unknown(self):
        with seams.megatron() as seam:
            seam.DpBalancedScheduler.get_groups_and_subsamples = lambda self, lengths, extra: None
            with self.assertRaisesRegex(
                UnknownTrainerError, r"9\.9\.9.*\(self, lengths, extra\).*known versions: 0\.19"
            ):
                hbp.integrations.megatron.install()

    def test_page(self):
        with seams.megatron() as seam:
            own = dict(seam.scheduler_map)
            code = seams.snippet("megatron.md")
            self.assertLessEqual(len(code.strip().splitlines()), 5)
            self.assertEqual(seams.run_page(code), "schedulers:" + 2 * " hbp.integrations.megatron" + "\n")
            self.assertTrue(all(seam.scheduler_map[key] is not own[key] for key in own))


class DeepSpeed(unittest.TestCase):
    def setUp(self):
        handler = logging.NullHandler()
        logging.getLogger("hbp.integrations.deepspeed").addHandler(handler)
        self.addCleanup(logging.getLogger("hbp.integrations.deepspeed").removeHandler, handler)

    def test_batches(self):
        with seams.deepspeed() as seam:
            code = seams.snippet("deepspeed.md")
            self.assertLessEqual(len(code.strip().splitlines()), 5)
            self.assertEqual(seams.run_page(code), "batching: hbp.integrations.deepspeed\n")
            for seed in range(30):
                rng = np.random.default_rng(seed)
                lengths, cap = drawn(seed, 400, 9000, 1), 8192
                order, count = ("dataloader", "random", "seqlen")[seed % 3], int(rng.integers(1, 9))
                same, most = seed % 2 == 0, (None, 5)[seed % 5 == 0]
                least = 2 if seed % 7 == 0 and order != "dataloader" and cap > 2 * lengths.max() else 1
                taken = rng.permutation(400)[:300].tolist() if seed % 4 == 0 else None
                with self.subTest(seed=seed):
                    pairs, sizes, longest = seam.batch_by_seqlens(
                        lengths.tolist(), cap, taken, least, most, order, count, same, seed=seed
                    )
                    self.assertEqual(
                        [batch for batch, _ in pairs], [b for b in range(len(sizes)) for _ in range(count)]
                    )
                    for _, ids in pairs:
                        self.assertTrue(least <= len(ids) <= (most or 400))
                        self.assertLessEqual(lengths[ids].sum(), cap)
                    used = []
                    for batch, size in enumerate(sizes):
                        lists = [ids for k, ids in pairs if k == batch]
                        flat = [k for ids in lists for k in ids]
                        self.assertEqual(len(flat), size)
                        self.assertEqual(lengths[flat].max(), longest[batch])
                        self.assertTrue(not same or len({len(ids) for ids in lists}) == 1)
                        used += flat
                        if order == "seqlen":
                            self.assertGreaterEqual(lengths[flat].min(), longest[batch - 1] if batch else 0)
                    fit = [k for k in (taken or range(400)) if lengths[k] <= cap]
                    self.assertEqual(len(used), len(set(used)))
                    self.assertLessEqual(set(used), set(fit))
                    self.assertGreaterEqual(len(used), len(fit) - 400 // 4)

    def test_one_place_without_room_for_the_least(self):
        """DeepSpeed itself ends there, with the 98 samples after it."""
        batch = hbp.integrations.deepspeed.batch_by_seqlens
        lengths = [40, 60, 95, 90] + [10] * 96
        with self.assertLogs("hbp.integrations.deepspeed", "WARNING") as log:
            pairs, sizes, _ = batch(lengths, 100, None, 2)
        self.assertEqual([0, 1], sorted(pairs[0][1]))
        self.assertEqual(
            sorted(k for _, ids in pairs for k in ids), [k for k in range(sum(sizes) + 1) if k != 2]
        )
        self.assertEqual(sum(sizes), 99)
        self.assertIn("1 samples are left out", log.output[0])
        for seed in range(40):
            lengths = drawn(seed, 200, 1000, 1)
            count, least = 1 + seed % 3, 2 + seed % 2
            pairs, sizes, _ = batch(lengths, 1024, None, least, effective_batch_size=count)
            self.assertTrue(all(len(ids) >= least and lengths[ids].sum() <= 1024 for _, ids in pairs))
            self.assertEqual(len({k for _, ids in pairs for k in ids}), sum(sizes))

    def test_arguments_that_are_none(self):
        batch = hbp.integrations.deepspeed.batch_by_seqlens
        plain = batch([5, 6, 7, 8], 11)
        self.assertEqual(batch([5, 6, 7, 8], 11, None, None, None, "dataloader", 1, None, None, None), plain)
        self.assertEqual(batch([5, 6, 7, 8], 11, None, 0, 0), plain)

    def test_lengths_of_zero_and_fractions(self):
        batch = hbp.integrations.deepspeed.batch_by_seqlens
        self.assertEqual(batch([0, 10, 0, 0, 10], 10)[:2], ([(0, [0, 1, 2, 3]), (1, [4])], [4, 1]))
        self.assertEqual(batch([0, 10, 0, 0, 10], 10.5)[1], [4, 1])
        pairs, sizes, longest = batch([0.5, 0.75, 0.25, 1.0, 0.5], 1.25)
        self.assertEqual(pairs, [(0, [0, 1]), (1, [2, 3]), (2, [4])])
        self.assertEqual((sizes, longest), ([2, 2, 1], [0.75, 1.0, 0.5]))
        for seed in range(40):
            rng = np.random.default_rng(seed)
            values = rng.random(150) * 1.2 * (rng.random(150) > 0.2)
            pairs, sizes, longest = batch(values.tolist(), 1.0, effective_batch_size=1 + seed % 3)
            self.assertTrue(all(values[ids].sum() <= 1.0 for _, ids in pairs))
            self.assertGreater(sum(sizes), 0.9 * (values <= 1).sum())
            self.assertEqual(max(longest), max(values[ids].max() for _, ids in pairs))

    def test_refuses(self):
        with seams.deepspeed() as seam:
            hbp.integrations.deepspeed.install()
            with self.assertRaisesRegex(AssertionError, "not enough samples"):
                seam.batch_by_seqlens([5, 6], 100, effective_batch_size=4)
            with self.assertRaisesRegex(
                AssertionError, "2 micro-batches of at least 2 .* 100 tokens: 8 samples"
            ):
                seam.batch_by_seqlens([90] * 8, 100, min_batch_size=2, effective_batch_size=2)
            for how, why in (
                ({"effective_batch_size": 0}, "effective_batch_size is 0; it is at least 1"),
                ({"max_tokens": 0}, "max_tokens is 0; it is above 0"),
                (
                    {"min_batch_size": 3, "max_batch_size": 2},
                    "max_batch_size 2 is less than min_batch_size 3",
                ),
                ({"seqlens": [1, float("nan")]}, r"seqlens\[1\] is nan; it is at least 0"),
                ({"seqlens": [1, -4]}, r"seqlens\[1\] is -4; it is at least 0"),
                ({"seqlens": [1, None]}, "seqlens are of object; they are numbers"),
                ({"seqlens": []}, "not enough samples .* 0 samples"),
                ({"sequence_picking_order": "longest"}, "longest"),
            ):
                with self.assertRaisesRegex(AssertionError, why):
                    seam.batch_by_seqlens(**{"seqlens": [5, 6], "max_tokens": 100, **how})
            seam.batch_by_seqlens = lambda seqlens, max_tokens: None
            with self.assertRaisesRegex(UnknownTrainerError, r"deepspeed .*known versions: .*0\.19\.6"):
                hbp.integrations.deepspeed.install()


if __name__ == "__main__":
    unittest.main()

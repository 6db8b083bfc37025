"""The adapters of verl, slime, NeMo RL and torchtitan behind stand-ins of their seams."""

import sys
import types
import unittest
import unittest.mock

import integration_seams as seams
import numpy as np

import hbp.integrations.nemo_rl
import hbp.integrations.slime
import hbp.integrations.torchtitan
import hbp.integrations.verl
from hbp.integrations import UnknownTrainerError, heaviest_first
from hbp.integrations._in_step import waited_for
from hbp.integrations._packs import WEIGHTS


def drawn(seed, count, most):
    return np.exp(np.random.default_rng(seed).normal(6.5, 1.2, count)).clip(1, most).astype(int).tolist()


def run(test, page):
    code = seams.snippet(page)
    test.assertLessEqual(len(code.strip().splitlines()), 5)
    test.assertRegex(seams.run_page(code), rf"^\w+: hbp\.integrations\.{page[:-3].replace('-', '_')}\n$")


class Verl(unittest.TestCase):
    def test_equal_counts(self):
        with seams.verl() as seam:
            run(self, "verl.md")
            for seed in range(10):
                work = [24576 * n + n * n for n in drawn(seed, 512, 60000)]
                for equal in (False, True):
                    lists = seam.karmarkar_karp(work, 32, equal)
                    self.assertTrue(seams.place_all(512, lists))
                    self.assertEqual(len(lists), 32)
                    self.assertTrue(all(lists))
                    self.assertTrue(not equal or {len(ids) for ids in lists} == {16})
                    sums = [sum(work[k] for k in ids) for ids in lists]
                    self.assertLess(max(sums), 1.02 * max(sum(sums) / 32, max(work) + sum(sorted(work)[:15])))

    def test_refuses(self):
        with seams.verl() as seam:
            hbp.integrations.verl.install()
            for lengths, parts, equal, why in (
                ([5] * 10, 4, True, "`equal_size`: 10 samples do not divide into `k_partitions`, which is 4"),
                ([5] * 3, 4, False, "3 samples|4"),
            ):
                with self.assertRaisesRegex(AssertionError, why):
                    seam.karmarkar_karp(lengths, parts, equal)
        with (
            seams.verl("old"),
            self.assertRaisesRegex(
                UnknownTrainerError, r"verl 9\.9\.9.*takes \(batch, max_token_len\).*known versions: 0\.6\.1"
            ),
        ):
            hbp.integrations.verl.install()

    def test_modules_imported_between_installs_get_their_own_back(self):
        for order in ((0, 1), (1, 0)):
            with seams.verl() as seam:
                own = seam.rearrange_micro_batches, seam.karmarkar_karp
                undo, between = [hbp.integrations.verl.install()], types.ModuleType("verl.between")
                between.rearrange_micro_batches = seam.rearrange_micro_batches
                between.karmarkar_karp = seam.karmarkar_karp
                with unittest.mock.patch.dict(sys.modules, {"verl.between": between}):
                    undo.append(hbp.integrations.verl.install())
                    for k in order:
                        undo[k]()
                self.assertEqual((between.rearrange_micro_batches, between.karmarkar_karp), own)
                self.assertEqual((seam.rearrange_micro_batches, seam.karmarkar_karp), own)

    def test_micro_batches(self):
        with seams.verl() as seam:
            user = types.ModuleType("verl.user")
            user.rearrange_micro_batches = seam.rearrange_micro_batches  # from ... import
            with unittest.mock.patch.dict("sys.modules", {"verl.user": user}):
                undo = hbp.integrations.verl.install()
            self.assertIs(user.rearrange_micro_batches, seam.rearrange_micro_batches)
            for seed in range(30):
                size, multiple, least = 1 + seed % 2, (None, 4)[seed % 3 == 0], (None, 9)[seed % 5 == 0]
                tokens = drawn(seed, 96, 4096)
                batch = {"input_ids": seams.Column(), "attention_mask": seams.Column([n] for n in tokens)}
                _, ids = user.rearrange_micro_batches(
                    batch,
                    8192,
                    num_batches_divided_by=multiple,
                    min_num_micro_batch=least,
                    force_group_size=size,
                )
                self.assertTrue(seams.place_all(96, ids))
                self.assertTrue(all(0 < sum(tokens[k] for k in part) <= 8192 for part in ids))
                self.assertEqual(len(ids) % (multiple or 1), 0)
                self.assertGreaterEqual(len(ids), least or 1)
                again = user.rearrange_micro_batches(batch, 8192, None, multiple, True, least, True, size)[1]
                self.assertEqual(again, ids)  # by position
                self.assertTrue(all((k ^ 1) in part for part in ids for k in part) or size == 1)
            batch["attention_mask"] = seams.Column([n] for n in (6, 6, 3, 3, 2, 2))
            ids = seam.rearrange_micro_batches(batch, 10, force_group_size=2)[1]
            self.assertIn([0, 1], ids)  # a group over the limit is alone
            self.assertTrue(seams.place_all(6, ids))
            with self.assertRaisesRegex(AssertionError, "longer than max_token_len"):
                seam.rearrange_micro_batches(batch, 5)
            undo()
            with self.assertRaisesRegex(RuntimeError, "not replaced"):
                seam.karmarkar_karp([1, 2], 2, False)


class Slime(unittest.TestCase):
    def test_micro_batches(self):
        source = seams.modules("slime.rollout.data_source", RolloutDataSourceWithBuffer=object)
        with seams.slime() as seam, source:
            run(self, "slime.md")
            for seed in range(30):
                lengths = drawn(seed, 200, 9000)
                args = types.SimpleNamespace(balance_data=seed % 2 == 0)
                lists = seam._pack_step_into_mbs(
                    lengths,
                    args=args,
                    use_dynamic_batch_size=True,
                    max_per_bin=8192,
                    micro_batch_size=None,
                    balance_by_flops=seed % 3 == 0,
                )
                for more in (0, 1 + seed):
                    if more:
                        wanted = len(lists) + more
                        seam.expand_bins_by_splitting(lists, wanted, lengths)
                        self.assertEqual(len(lists), wanted)
                    self.assertTrue(seams.place_all(200, lists))
                    for ids in lists:
                        tokens = sum(lengths[k] for k in ids)
                        self.assertTrue(0 < tokens <= 8192 or len(ids) == 1)
                with self.assertRaisesRegex(AssertionError, "201|200 samples"):
                    seam.expand_bins_by_splitting(lists, 201, lengths)

    def test_ranks(self):
        with seams.slime() as seam:
            hbp.integrations.slime.install()
            work = [1e16 * n for n in drawn(3, 64, 900)]
            lists = seam.get_seqlen_balanced_partitions(work, 8, True)
            self.assertEqual([len(ids) for ids in lists], [8] * 8)
            sums = [sum(work[k] for k in ids) for ids in lists]
            self.assertLess(max(sums), 1.05 * sum(sums) / 8)
            fixed = seam._pack_step_into_mbs(
                [4, 5], args=None, use_dynamic_batch_size=False, max_per_bin=None, micro_batch_size=1
            )
            self.assertEqual(fixed, [[0], [1]])
            with self.assertRaisesRegex(AssertionError, "10"):
                seam.get_seqlen_balanced_partitions([1.0] * 10, 4, True)
            with self.assertRaisesRegex(AssertionError, "weight 1 is inf; it is at least 0"):
                seam.get_seqlen_balanced_partitions([1.0, float("inf")], 2, True)

    def test_unknown(self):
        with seams.slime() as seam:
            del seam.expand_bins_by_splitting
            with self.assertRaisesRegex(UnknownTrainerError, r"slime 9\.9\.9.*is missing.*known versions"):
                hbp.integrations.slime.install()
            del seam._pack_step_into_mbs
            with self.assertRaisesRegex(UnknownTrainerError, r"slime 9\.9\.9.*_pack_step_into_mbs is missing"):
                hbp.integrations.slime.install()
            absent = unittest.mock.patch.dict(sys.modules)
            with absent, self.assertRaisesRegex(
                UnknownTrainerError, r"slime 9\.9\.9: there is no slime\.utils\.dp_schedule; known versions: 0\.3"
            ):
                del sys.modules["slime.utils.dp_schedule"]
                hbp.integrations.slime.install()
        with self.assertRaises(ModuleNotFoundError) as caught:  # which is no question of versions
            hbp.integrations.slime.install()
        self.assertNotIsInstance(caught.exception, UnknownTrainerError)


class NemoRl(unittest.TestCase):
    def test_bins(self):
        with seams.nemo_rl() as seam:
            run(self, "nemo-rl.md")
            for seed in range(30):
                lengths = drawn(seed, 150, 8192)
                packer = seam.ModifiedFirstFitDecreasingPacker(
                    8192, min_bin_count=(None, 40)[seed % 2], bin_count_multiple=(None, 7)[seed % 3 == 0]
                )
                bins = packer._pack_implementation(lengths)
                tokens = [sum(lengths[k] for k in ids) for ids in bins]
                self.assertTrue(seams.place_all(150, bins))
                self.assertTrue(all(bins) and max(tokens) <= 8192)
                self.assertEqual(len(bins) % (packer.bin_count_multiple or 1), 0)
                self.assertGreaterEqual(len(bins), packer.min_bin_count or 1)
                if packer.bin_count_multiple:  # ranks wait less than for parts balanced as a whole
                    parts = hbp.partition(lengths, len(bins), capacity=8192, weights=WEIGHTS)
                    whole = waited_for(heaviest_first(parts), lengths, 7)
                    self.assertLessEqual(waited_for(bins, lengths, 7), 1.0001 * whole)
            self.assertEqual(packer._pack_implementation([]), [])
            with self.assertRaisesRegex(ValueError, "exceeds bin capacity"):
                packer._pack_implementation([9000])
            with self.assertRaisesRegex(ValueError, "2 samples|40|42"):
                seam.FirstFitShufflePacker(10, min_bin_count=40)._pack_implementation([3, 4])
            with self.assertRaisesRegex(RuntimeError, "not replaced"):
                seam.ConcatenativePacker(10)._pack_implementation([3, 4])

    def test_samples_without_tokens(self):
        with seams.nemo_rl() as seam:
            undo = hbp.integrations.nemo_rl.install()
            packer = seam.FirstFitDecreasingPacker(10, bin_count_multiple=2)
            self.assertEqual(sorted(map(sorted, packer._pack_implementation([10, 0, 10]))), [[0, 1], [2]])
            for seed in range(30):
                lengths = np.array(drawn(seed, 60, 512)) * (np.random.default_rng(seed).random(60) > 0.3)
                packer = seam.FirstFitDecreasingPacker(512, bin_count_multiple=1 + seed % 4)
                bins = packer._pack_implementation(lengths.tolist())
                self.assertTrue(seams.place_all(60, bins))
                self.assertTrue(all(ids and lengths[ids].sum() <= 512 for ids in bins))
                plain = packer._pack_implementation(lengths[lengths > 0].tolist())
                self.assertEqual(len(bins), len(plain))
            undo()

    def test_unknown(self):
        with (
            seams.nemo_rl(),
            self.assertRaisesRegex(UnknownTrainerError, r"BestFitPacker is missing.*0\.6\.0"),
        ):
            hbp.integrations.nemo_rl.install("BestFitPacker")


class Torchtitan(unittest.TestCase):
    def test_rows(self):
        with seams.torchtitan() as seam:
            run(self, "torchtitan.md")
            for seed in range(30):
                batch, ranks, count = 1 + seed % 3, 1 + seed % 5, 3 + 7 * (seed % 11)
                samples = [[k] * (n + 1) for k, n in enumerate(drawn(seed, count, 8192))]
                batcher = seam.Batcher((batch, 8192), num_prompts_per_train_step=1, dp_degree=ranks, pad_id=0)
                rows = batcher._assign_training_samples_to_rows(samples)
                self.assertTrue(seams.place_all(count, [[sample[0] for sample in row] for row in rows]))
                self.assertTrue(all(0 < sum(len(sample) - 1 for sample in row) <= 8192 for row in rows))
                cells = batcher.cells(rows)
                self.assertEqual(sum(not cell for cell in cells), max(0, len(cells) - count))
            self.assertEqual(batcher._assign_training_samples_to_rows([]), [])
            whole, empty = [0] * 8193, [0]  # 8192 tokens to pack, and none
            batcher = seam.Batcher((2, 8192), num_prompts_per_train_step=1, dp_degree=1, pad_id=0)
            rows = batcher._assign_training_samples_to_rows([whole, empty, whole])
            self.assertEqual(sorted(map(len, rows)), [1, 2])
            with self.assertRaisesRegex(ValueError, "8192 tokens.*9000"):
                batcher._assign_training_samples_to_rows([[0] * 9001])

    def test_unknown(self):
        with seams.torchtitan() as seam:
            seam.Batcher._assign_training_samples_to_rows = lambda self, samples, budget: None
            with self.assertRaisesRegex(UnknownTrainerError, r"torchtitan .*budget.*b5bcd76c66d0"):
                hbp.integrations.torchtitan.install()


if __name__ == "__main__":
    unittest.main()

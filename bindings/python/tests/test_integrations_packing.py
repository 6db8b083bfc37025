"""The adapters of axolotl, TRL, LLaMA-Factory and ms-swift in small stand-ins of the functions that they replace."""

import contextlib
import importlib.util
import os
import pickle
import sys
import types
import unittest
from unittest import mock

import numpy as np

from hbp.integrations import UnknownTrainerError, axolotl, llama_factory, ms_swift, trl
from hbp.integrations._packs import costs_of
from integration_seams import run_page, snippet

HAVE_ARROW = importlib.util.find_spec("pyarrow") is not None


def run(test, page, adapter):
    """Runs a page's lines, which print whose the packing is; what takes the adapter back."""
    taken = []

    def install(own=adapter.install):
        taken.append(own())

    with mock.patch.object(adapter, "install", install):
        printed = run_page(snippet(page))
    test.assertEqual(printed, f"packing: {adapter.__name__}\n")
    return taken[0]


def drawn(seed, count, longest, middle=6.0):
    lengths = np.exp(np.random.default_rng(seed).normal(middle, 1.2, count))
    return np.clip(lengths, 1, longest).astype(np.int64)


def idle(costs, ranks):
    whole = costs[: len(costs) // ranks * ranks].reshape(-1, ranks)
    return 1 - whole.mean(axis=1).sum() / whole.max(axis=1).sum()


@contextlib.contextmanager
def modules(**made):
    """Modules of these dotted names (a__b for a.b) with these members, and what holds them."""
    found = {}
    for name, members in made.items():
        parts = name.split("__")
        for end in range(1, len(parts) + 1):
            dotted = ".".join(parts[:end])
            found.setdefault(dotted, types.ModuleType(dotted))
            if end > 1:
                setattr(found[".".join(parts[: end - 1])], parts[end - 1], found[dotted])
        vars(found[".".join(parts)]).update(members)
    with mock.patch.dict(sys.modules, found):
        yield found


class Axolotl(unittest.TestCase):
    def packs(self, lengths, capacity, ranks=8, bin_size=200):
        with mock.patch.dict(os.environ, WORLD_SIZE=str(ranks)):
            return axolotl.pack_parallel(lengths, capacity, 100_000, bin_size)

    def test_every_sample_once_under_both_limits(self):
        for seed in range(20):
            lengths = drawn(seed, 50 * seed + 1, 4096)
            packs = self.packs(lengths, 4096, bin_size=7)
            self.assertEqual(sorted(k for pack in packs for k in pack), list(range(len(lengths))))
            self.assertTrue(all(pack and len(pack) <= 7 for pack in packs))
            self.assertTrue(all(lengths[pack].sum() <= 4096 for pack in packs))
            self.assertTrue(len(packs) % 8 == 0 or len(lengths) < 200)

    def test_packs_that_step_together_have_like_cost(self):
        for capacity in (8192, 16384, 32768):
            lengths = drawn(3, 20_000, capacity, 6.5)
            costs = np.array([costs_of(lengths[pack]).sum() for pack in self.packs(lengths, capacity)])
            self.assertLess(idle(costs, 8), 0.005)
            self.assertLessEqual(len(costs), 1.002 * lengths.sum() / capacity + 8)

    def test_few_and_over_long_samples(self):
        self.assertEqual(self.packs([], 100), [])
        self.assertEqual(sorted(self.packs([5, 6, 7], 100)), [[0, 1, 2]])
        self.assertIn([1], self.packs([5, 500, 7], 100))
        self.assertEqual(len(self.packs([90] * 9, 100)), 9)
        with self.assertRaisesRegex(ValueError, "-1"):
            self.packs([5, -1], 100)
        with self.assertRaisesRegex((ValueError, TypeError), r"sequence_lengths\[1\] is 5.5"):
            self.packs([5, 5.5], 100)

    def test_samples_without_tokens(self):
        self.assertEqual([sorted(pack) for pack in self.packs([0, 100, 0], 100, ranks=1)], [[0, 1, 2]])
        self.assertEqual(self.packs([0, 0], 100), [[0, 1]])
        self.assertEqual(sorted(self.packs([0, 0, 9, 0], 100, bin_size=2)), [[1, 3], [2, 0]])
        for seed in range(30):
            rng = np.random.default_rng(seed)
            lengths = drawn(seed, 200, 1024) * (rng.random(200) > 0.3)
            packs = self.packs(lengths, 1024, bin_size=5)
            self.assertEqual(sorted(k for pack in packs for k in pack), list(range(200)))
            self.assertTrue(all(len(pack) <= 5 and 0 < lengths[pack].sum() <= 1024 for pack in packs))

    def test_the_order_follows_the_lengths_alone(self):
        lengths = drawn(1, 3000, 4096)
        self.assertEqual(self.packs(lengths, 4096), self.packs(lengths.tolist(), 4096))

    def test_install_and_unknown_versions(self):
        def pack_parallel(
            sequence_lengths, bin_capacity, group_size, bin_size, num_processes=None, safe_mode=True
        ):
            return "own"

        with modules(
            axolotl__utils__samplers__multipack={"pack_parallel": pack_parallel},
            axolotl__integrations__base={"BasePlugin": object},
        ) as found:
            seam = found["axolotl.utils.samplers.multipack"]
            undo = run(self, "axolotl.md", axolotl)
            self.assertEqual(seam.pack_parallel([3, 4], 10, 100, 5, safe_mode=True), [[0, 1]])
            undo()
            self.assertIs(seam.pack_parallel, pack_parallel)
            with self.assertLogs("axolotl", "INFO") as said:
                axolotl.Plugin().register({})
            self.assertEqual(said.output, ["INFO:axolotl.hbp:sample packing is hbp's"])
            self.assertIs(seam.pack_parallel, axolotl.pack_parallel)
            self.assertIs(type(pickle.loads(pickle.dumps(axolotl.Plugin()))), axolotl.Plugin)
            del axolotl.Plugin
            with self.assertRaisesRegex(AttributeError, "has no attribute 'plugin'"):
                axolotl.plugin
            seam.pack_parallel = lambda lengths, capacity: []
            with self.assertRaisesRegex(UnknownTrainerError, r"takes \(lengths, capacity\).*067b021c8b87"):
                axolotl.install()


class LlamaFactory(unittest.TestCase):
    def test_lists_of_lengths(self):
        for seed in range(20):
            numbers = drawn(seed, 37 * seed + 1, 2048).tolist()
            kept = sorted(numbers)
            packs = llama_factory.greedy_knapsack(numbers, 2048)
            self.assertEqual(numbers, [])
            self.assertEqual(sorted(number for pack in packs for number in pack), kept)
            self.assertTrue(all(pack and sum(pack) <= 2048 for pack in packs))
            self.assertTrue(all(type(number) is int for pack in packs for number in pack))
            self.assertEqual([sorted(pack, reverse=True) for pack in packs], packs)

    def test_packs_are_alike_in_order(self):
        numbers = drawn(2, 20_000, 8192, 6.5).tolist()
        with mock.patch.dict(os.environ, WORLD_SIZE="8"):
            packs = llama_factory.greedy_knapsack(numbers, 8192)
        self.assertLess(idle(np.array([costs_of(np.array(pack)).sum() for pack in packs]), 8), 0.005)

    def test_errors(self):
        self.assertEqual(llama_factory.greedy_knapsack([], 10), [])
        numbers = [5, 11]
        with self.assertRaisesRegex(ValueError, "11"):
            llama_factory.greedy_knapsack(numbers, 10)
        self.assertEqual(numbers, [5, 11])

    def test_samples_without_tokens(self):
        for numbers in ([0, 10, 0, 4, 7], [0, 0], [3, 0]):
            kept = sorted(numbers)
            packs = llama_factory.greedy_knapsack(numbers, 10)
            self.assertEqual(sorted(number for pack in packs for number in pack), kept)
            self.assertTrue(all(sum(pack) <= 10 for pack in packs))
            self.assertTrue(all(map(sum, packs)) or len(packs) == 1)

    def test_install_reaches_who_imported_it(self):
        def greedy_knapsack(numbers, capacity):
            return "own"

        seam = {"greedy_knapsack": greedy_knapsack}
        with modules(
            llamafactory__data__processor__processor_utils=dict(seam),
            llamafactory__data__processor__supervised=dict(seam),
        ) as found:
            user = found["llamafactory.data.processor.supervised"]
            undo = run(self, "llama-factory.md", llama_factory)
            self.assertEqual(user.greedy_knapsack([3, 4], 10), [[4, 3]])
            later = types.ModuleType("llamafactory.data.processor.later")  # imported since
            later.greedy_knapsack = user.greedy_knapsack
            again = llama_factory.install()
            with mock.patch.dict(sys.modules, {later.__name__: later}):
                undo()
                self.assertIs(later.greedy_knapsack, llama_factory.greedy_knapsack)  # it is installed yet
                again()
                self.assertIs(later.greedy_knapsack, greedy_knapsack)
            with mock.patch.dict(sys.modules, {"llamafactory.absent": None}):  # an import that is blocked
                llama_factory.install()()
            self.assertIs(user.greedy_knapsack, greedy_knapsack)
            found["llamafactory.data.processor.processor_utils"].greedy_knapsack = lambda sizes: []
            with self.assertRaisesRegex(
                UnknownTrainerError, r"takes \(sizes\), expected \(numbers, capacity\)"
            ):
                llama_factory.install()


class MsSwift(unittest.TestCase):
    def test_a_stream_comes_out_whole(self):
        for seed in range(10):
            lengths = drawn(seed, 1500, 2048)
            stream = [(f"sample {k}", int(length)) for k, length in enumerate(lengths)]
            waiting, packs = [], []
            for first in range(0, len(stream), 128):
                end = first + 128 >= len(stream)
                given, waiting = ms_swift.matched_group(waiting + stream[first : first + 128], 2048, end)
                self.assertLessEqual(sum(pair[1] for pair in waiting), 2048)
                packs += given
            self.assertEqual(waiting, [])
            self.assertEqual(sorted(pair for pack in packs for pair in pack), sorted(stream))
            self.assertTrue(all(pack and sum(pair[1] for pair in pack) <= 2048 for pack in packs))

    def test_small_inputs(self):
        self.assertEqual(ms_swift.matched_group([], 10), ([], []))
        self.assertEqual(ms_swift.matched_group([("a", 3)], 10, False), ([], [("a", 3)]))
        self.assertEqual(ms_swift.matched_group([("a", 30)], 10), ([[("a", 30)]], []))

    def test_samples_without_tokens(self):
        some = [("a", 0), ("b", 10), ("c", 0), ("d", 4)]
        packs, rest = ms_swift.matched_group(some, 10)
        self.assertEqual((sorted(pair for pack in packs for pair in pack), rest), (some, []))
        self.assertEqual(len(packs), 2)
        self.assertEqual(ms_swift.matched_group(some[:1], 10), ([some[:1]], []))
        self.assertEqual(ms_swift.matched_group(some[:1], 10, False), ([], some[:1]))
        packs, rest = ms_swift.matched_group(some, 10, False)
        self.assertEqual(sorted(pair for pack in [*packs, rest] for pair in pack), some)
        self.assertTrue(rest and all(sum(pair[1] for pair in pack) for pack in packs))

    def test_install_leaves_the_sequential_strategy(self):
        def calculate_matched_group(sequences, packing_length, is_finished=True, strategy="binpack"):
            return "own"

        with modules(swift__dataset__packing={"calculate_matched_group": calculate_matched_group}) as found:
            seam = found["swift.dataset.packing"]
            undo = run(self, "ms-swift.md", ms_swift)
            self.assertEqual(seam.calculate_matched_group([(0, 4), (1, 5)], 10), ([[(0, 4), (1, 5)]], []))
            self.assertEqual(seam.calculate_matched_group([(0, 4)], 10, strategy="sequential"), "own")
            undo()
            self.assertIs(seam.calculate_matched_group, calculate_matched_group)
            del seam.calculate_matched_group
            with self.assertRaises((UnknownTrainerError, AttributeError)):
                ms_swift.install()


class TrlBatchers(unittest.TestCase):
    def samples(self, lengths):
        return [{"input_ids": range(int(length)), "at": at} for at, length in enumerate(lengths)]

    def check(self, lengths, rows, budget):
        samples = self.samples(lengths)
        given = list(trl.micro_batches(samples, rows, budget))
        out = [sample["at"] for batch in given for row in batch for sample in row]
        self.assertEqual(len(out), len(set(out)))
        left = set(range(len(samples))) - set(out)
        self.assertLess(len([at for at in left if lengths[at] <= budget]), rows)
        for batch in given:
            self.assertEqual(len(batch), rows)
            self.assertTrue(all(0 < sum(len(s["input_ids"]) for s in row) <= budget for row in batch))
        return given

    def test_limits_and_no_empty_row(self):
        for seed in range(12):
            lengths = drawn(seed, 300, 1024)
            for rows in (1, 2, 5, 8):
                self.check(lengths, rows, 1024)

    def test_longer_samples_are_dropped_with_a_warning(self):
        with self.assertLogs("hbp.integrations.trl", "WARNING") as log:
            given = self.check([12] + [3] * 60, 2, 8)
        self.assertIn("12 tokens; token_budget is 8", log.output[0])
        self.assertTrue(given)

    def test_samples_without_tokens(self):
        for seed in range(10):
            lengths = drawn(seed, 300, 1024) * (np.random.default_rng(seed).random(300) > 0.2)
            given = self.check(lengths, 4, 1024)
            out = [sample["at"] for batch in given for row in batch for sample in row]
            self.assertGreater(sum(int(lengths[at] == 0) for at in out), 0.8 * (lengths == 0).sum())
        for lengths, sizes in (([0, 0, 0], [1, 1, 1]), ([0, 3], [0, 1, 1]), ([], [0, 0, 0])):
            groups = trl.balance_by_squared_length(self.samples(lengths), 3)
            self.assertEqual(sorted(map(len, groups)), sizes)

    def test_no_sample_waits_for_long(self):
        lengths = drawn(7, 3000, 1024)
        given = list(trl.micro_batches(self.samples(lengths), 4, 1024))
        first = {}
        for number, batch in enumerate(given):
            for row in batch:
                for sample in row:
                    first[sample["at"]] = number
        newest = -1
        for number, batch in enumerate(given):
            newest = max(newest, *(sample["at"] for row in batch for sample in row))
            late = [
                at
                for at in range(newest)
                if first.get(at, len(given)) > number + trl.MOST_WAIT + trl.POOL + 1
            ]
            self.assertEqual(late, [])

    def test_rows_are_more_alike_than_in_the_order_of_arrival(self):
        lengths = drawn(4, 4000, 8192, 6.8)

        def loads(batches):
            return np.concatenate(
                [[costs_of(lengths[[s["at"] for s in row]]).sum() for row in b] for b in batches]
            )

        plain, rows, tokens = [], [[] for _ in range(8)], [0] * 8
        for sample in self.samples(lengths):
            count = len(sample["input_ids"])
            room = [k for k in range(8) if tokens[k] + count <= 8192]
            if not room:
                plain.append(rows)
                rows, tokens, room = [[] for _ in range(8)], [0] * 8, [0]
            least = min(room, key=lambda k: tokens[k])
            rows[least].append(sample)
            tokens[least] += count
        given = list(trl.micro_batches(self.samples(lengths), 8, 8192))
        self.assertLess(2 * idle(loads(given), 8), idle(loads(plain), 8))
        self.assertLess(len(given), 0.9 * len(plain))

    def test_groups_by_squared_length(self):
        examples = self.samples([8, 1, 7, 6, 2, 5])
        groups = trl.balance_by_squared_length(examples, 3)
        self.assertEqual(sorted(sample["at"] for group in groups for sample in group), list(range(6)))
        self.assertEqual(max(sum(len(s["input_ids"]) ** 2 for s in group) for group in groups), 64)
        self.assertEqual(sorted(map(len, trl.balance_by_squared_length(examples[:1], 3))), [0, 0, 1])


@unittest.skipUnless(HAVE_ARROW, "pyarrow is not installed")
class TrlTables(unittest.TestCase):
    def test_tables_against_lists(self):
        import pyarrow as pa

        rng = np.random.default_rng(0)
        for large in (False, True):
            for over_long in ("truncate", "split"):
                for count in (0, 1, 200):
                    rows = [rng.integers(0, 1000, int(n)).tolist() for n in rng.integers(0, 40, count)]
                    kind = pa.large_list(pa.int64()) if large else pa.list_(pa.int64())
                    plain = pa.array(rows, kind)
                    table = pa.table(
                        {"input_ids": plain, "labels": pa.array([[-x for x in r] for r in rows], kind)}
                    )
                    if count == 200:
                        table = table.slice(3)
                        rows = rows[3:]
                    packed = trl.pack_bfd(table, 24, over_long)
                    self.assertEqual(packed.schema.field("input_ids").type, kind)
                    out = packed.to_pydict()
                    pieces = []
                    for ids, labels, sizes in zip(out["input_ids"], out["labels"], out["seq_lengths"]):
                        self.assertEqual(labels, [-x for x in ids])
                        self.assertEqual(sum(sizes), len(ids))
                        self.assertLessEqual(len(ids), 24)
                        self.assertEqual(sizes, sorted(sizes, reverse=True))
                        borders = np.cumsum([0, *sizes])
                        pieces += [tuple(ids[a:b]) for a, b in zip(borders, borders[1:])]
                    step = 24 if over_long == "split" else 10**9
                    cut = [tuple(r[a : a + 24]) for r in rows for a in range(0, len(r), step)]
                    self.assertEqual(sorted(pieces), sorted(cut))

    def test_bad_tables_are_named(self):
        import pyarrow as pa

        with self.assertRaisesRegex(ValueError, "'wrap'"):
            trl.pack_bfd(pa.table({"a": [[1]]}), 4, "wrap")
        with self.assertRaisesRegex(TypeError, "int64"):
            trl.pack_bfd(pa.table({"a": [1]}), 4)
        with self.assertRaisesRegex(ValueError, "same length; row 1 has 1 in a, 2 in b"):
            trl.pack_bfd(pa.table({"a": [[3], [1]], "b": [[3], [1, 2]]}), 4)
        with self.assertRaisesRegex(AssertionError, "without columns"):
            trl.pack_bfd(pa.table({}), 4)

    def test_columns_that_are_parts_of_others(self):
        import pyarrow as pa

        rows = [[1, 2, 3], [], [4], None, [5, 6], [7, 8, 9, 10]]
        whole = pa.array([[0], *rows, [0, 0]])
        other = pa.array([[-0, -1], [9] * 9, *[r and [-x for x in r] for r in rows]])
        for cut in (range(6), range(1, 5), range(2, 4), range(3, 4), range(0)):
            first, count = cut.start, len(cut)
            table = pa.table({"a": whole.slice(1 + first, count), "b": other.slice(2 + first, count)})
            out = trl.pack_bfd(table, 4).to_pydict()
            kept = [x for row in rows[first : first + count] for x in row or []]
            self.assertEqual(sorted(x for row in out["a"] for x in row), sorted(kept))
            self.assertEqual(out["b"], [[-x for x in row] for row in out["a"]])
            self.assertEqual([sum(sizes) for sizes in out["seq_lengths"]], [len(row) for row in out["a"]])

    def test_a_column_without_chunks(self):
        import pyarrow as pa

        kind = pa.list_(pa.int64())
        for columns in ({"a": pa.chunked_array([], kind)}, {"a": pa.chunked_array([[[1]], [[2, 3]]], kind)}):
            packed = trl.pack_bfd(pa.table(columns), 4)
            self.assertEqual(packed.column_names, ["a", "seq_lengths"])
            self.assertEqual(packed["a"].to_pylist(), [[2, 3, 1]] if len(columns["a"]) else [])

    def test_install_and_unknown_versions(self):
        def _pack_bfd(examples, seq_length, on_seq_length_overflow="truncate"):
            return "own"

        with modules(trl__data_utils={"_pack_bfd": _pack_bfd}) as found:
            undo = run(self, "trl.md", trl)
            self.assertIs(found["trl.data_utils"]._pack_bfd, trl.pack_bfd)
            undo()
            self.assertIs(found["trl.data_utils"]._pack_bfd, _pack_bfd)
            found["trl.data_utils"]._pack_bfd = lambda table: table
            with self.assertRaisesRegex(UnknownTrainerError, r"_pack_bfd takes \(table\)"):
                trl.install()

    def test_other_batchers_stay_trls(self):
        def _pack_bfd(examples, seq_length, on_seq_length_overflow="truncate"):
            return "own"

        class TokenBudgetBatcher:
            def __init__(self, dataset, num_processes, token_budget, metrics):
                pass

            def __iter__(self):
                return iter("own")

        def _balance_by_squared_length(examples, num_groups):
            return "own"

        names = {
            "TokenBudgetBatcher": TokenBudgetBatcher,
            "_balance_by_squared_length": _balance_by_squared_length,
        }
        with modules(
            trl__data_utils={"_pack_bfd": _pack_bfd}, trl__experimental__async_grpo__async_grpo_trainer=names
        ) as found:
            with self.assertWarnsRegex(RuntimeWarning, "batchers stay TRL's: .*metrics"):
                undo = trl.install()
            self.assertIs(found["trl.data_utils"]._pack_bfd, trl.pack_bfd)
            self.assertEqual("".join(TokenBudgetBatcher(1, 2, 3, 4)), "own")
            undo()
            self.assertIs(found["trl.data_utils"]._pack_bfd, _pack_bfd)


if __name__ == "__main__":
    unittest.main()

"""Plans by patterns: against the listed plan, step by step; samplers that walk them; indexes; files."""

import copy
import pickle
import tempfile
import threading
import unittest
from pathlib import Path

import numpy as np

import hbp
import samples
from hbp import patterns
from hbp._step_rows import StepRows
from hbp.epoch import EpochKeywords
from hbp.torch import Piece, PlanLoader, PlanSampler, VarlenCollate
from test_torch import Ahead, expected, make_cost

LENGTHS = samples.lengths(4000)


def make_plan(**options):
    return hbp.plan_patterns(LENGTHS, make_cost(), max_pack_length=65536, **options)


def listed(plan):
    return plan.expand(0, len(plan))


def huge(samples_of_all):
    """Some lengths, the shorter the more."""
    lengths = np.arange(8, 260)
    shares = 1 / lengths
    counts = np.maximum(1, (samples_of_all * shares / shares.sum()).astype(np.int64))
    counts[0] += samples_of_all - counts.sum()
    return hbp.Lengths.from_histogram(lengths, counts)


class TestIndex(unittest.TestCase):
    def test_pieces_are_as_the_whole(self):
        plan = make_plan()
        whole = listed(plan.with_index(hbp.LengthIndex(LENGTHS)))
        for chunks in ([LENGTHS], np.array_split(LENGTHS, 7), [LENGTHS[:5].tolist(), [], LENGTHS[5:].astype(np.int64)]):
            histogram = hbp.Lengths.count(chunks)
            index = hbp.LengthIndex.from_chunks(histogram, iter(chunks))
            self.assertEqual(listed(plan.with_index(index)).sample_ids.tolist(), whole.sample_ids.tolist())
            self.assertEqual(repr(index), f"<hbp.LengthIndex: {len(LENGTHS):,} samples>")
        self.assertEqual(LENGTHS[whole.sample_ids].tolist(), whole.sample_tokens.tolist())

    def test_without_one_samples_are_in_order_of_length(self):
        plan = listed(make_plan().with_index(None))
        self.assertEqual(np.sort(LENGTHS)[plan.sample_ids].tolist(), plan.sample_tokens.tolist())
        self.assertEqual(sorted(plan.sample_ids.tolist()), list(range(len(LENGTHS))))

    def test_counts(self):
        long = [edge := 1 << 22, 1 << 27, edge - 1]
        for chunks in ([[5, 3, 5], [900, 3, 5]], [long, [7], long], [[9]]):
            counted = hbp.Lengths.count(chunks)
            lengths, counts = np.unique(np.concatenate(chunks), return_counts=True)
            self.assertEqual(counted.histogram_lengths.tolist(), lengths.tolist())
            self.assertEqual(counted.histogram_counts.tolist(), counts.tolist())
            self.assertEqual(counted.summary().digest, hbp.Lengths.from_histogram(lengths, counts).summary().digest)
        with self.assertRaises(hbp.InvalidError):
            hbp.Lengths.count([])
        with self.assertRaisesRegex(OverflowError, "a chunk holds -1"):
            hbp.Lengths.count([[3, -1]])
        with self.assertRaisesRegex(hbp.InvalidError, "0"):
            hbp.Lengths.count([[3, 0]])

    def test_refused(self):
        histogram = hbp.Lengths.from_histogram([5, 9], [2, 1])
        with self.assertRaisesRegex(hbp.InvalidError, "an index of a histogram"):
            hbp.LengthIndex(histogram)
        for chunks, message in (
            ([[9, 9, 5]], "have a length that the histogram has not"),
            ([[5, 5, 5]], "(have a length that the histogram has not|are not as many)"),
            ([[5], [7, 9]], "(have a length that the histogram has not|are not as many)"),
            ([[5, 9], [5, 9]], "2 samples and 2 more; the histogram has 3"),
            ([[9, 5]], "those of 5 tokens are not as many as in the histogram"),
            ([], "(have a length that the histogram has not|are not as many)"),
        ):
            with self.assertRaisesRegex(hbp.InvalidError, message):
                hbp.LengthIndex.from_chunks(histogram, chunks)
        with self.assertRaisesRegex(TypeError, "a chunk"):
            hbp.LengthIndex.from_chunks(histogram, [[5.5]])
        with self.assertRaises(TypeError):
            pickle.dumps(hbp.LengthIndex([5, 9]))
        with self.assertRaisesRegex(hbp.InvalidError, "the index is of other lengths"):
            make_plan().with_index(hbp.LengthIndex(LENGTHS[1:]))


class TestStepRows(unittest.TestCase):
    def test_rows_are_those_of_listed_steps(self):
        for seed, epoch in ((0, 0), (7, 3), (2**64 - 1, 2**63)):
            for tokens in (0, 400_000, 700_000, 3_000_000, 10**9):
                for multiple in (0, 3):
                    plan = make_plan(tokens_per_step=tokens, micro_batch_multiple=multiple)
                    plan = plan.redraw(seed=seed, epoch=epoch)
                    rows, offsets = plan._step_rows, listed(plan).step_offsets
                    self.assertEqual([rows.first(k) for k in range(len(plan) + 1)], offsets.tolist())
                    steps = np.repeat(np.arange(len(plan)), np.diff(offsets))
                    self.assertEqual([rows.step_of(k) for k in range(rows.rows + 1)], [*steps.tolist(), len(plan)])
                    self.assertEqual(sorted(set(np.diff(offsets).tolist())), rows.counts())

    def test_many_steps(self):
        for steps, units in ((5000, 5001), (5000, 9999), (123_457, 123_457 * 3 + 70_001), (9000, 9000)):
            rows = StepRows(steps, units, 2)
            firsts = np.array([rows.first(k) for k in range(steps + 1)])
            self.assertEqual((firsts[0], firsts[-1]), (0, 2 * units))
            low, more = divmod(units, steps)
            self.assertEqual(np.bincount(np.diff(firsts))[[2 * low, 2 * low + 2][: 1 + bool(more)]].tolist(),
                             [steps - more, more][: 1 + bool(more)])
            for row in np.random.default_rng(1).integers(0, 2 * units, 300).tolist():
                step = rows.step_of(row)
                self.assertTrue(firsts[step] <= row < firsts[step + 1])


class TestPlan(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.plan = make_plan(tokens_per_step=400_000)
        cls.whole = listed(cls.plan)

    def test_it_is_the_plan_of_the_method(self):
        again = hbp.plan_epoch(LENGTHS, make_cost(), max_pack_length=65536, tokens_per_step=400_000, method="patterns")
        self.assertEqual(self.whole.digest, again.digest)
        self.whole.validate(LENGTHS, make_cost())
        self.assertEqual(sorted(self.whole.sample_ids.tolist()), list(range(len(LENGTHS))))

    def test_steps_are_those_of_the_whole(self):
        plan, whole = self.plan, self.whole
        self.assertEqual((len(plan), plan[-1].index), (len(whole), len(whole) - 1))
        for step, wanted in zip(plan, whole):
            self.assertEqual((step.index, step.ids()), (wanted.index, wanted.ids()))
            self.assertEqual((step.predicted_ns, step.tokens), (wanted.predicted_ns, wanted.tokens))
        self.assertEqual([step.ids() for step in plan[2:6]], [step.ids() for step in whole[2:6]])
        self.assertEqual([step.index for step in plan[6:1:-2]], [6, 4, 2])
        self.assertEqual(plan[3:3], [])
        part = plan.expand(4, 3)
        self.assertEqual(part.ids(), [ids for step in whole[4:7] for ids in step.ids()])
        self.assertEqual(part.summary().first_step, 4)

    def test_bounds(self):
        for first, count in ((-1, 1), (0, 0), (len(self.plan), 1), (0, len(self.plan) + 1), (0, 2**63 - 1)):
            with self.assertRaisesRegex(hbp.InvalidError, f"the plan has steps 0 to {len(self.plan) - 1}"):
                self.plan.expand(first, count)
        with self.assertRaises(IndexError):
            self.plan.step(len(self.plan))
        with self.assertRaises(TypeError):
            self.plan.expand("0")

    def test_summary_is_that_of_the_whole(self):
        ours, wanted = self.plan.summary().as_dict(), self.whole.summary().as_dict()
        self.assertNotEqual(ours.pop("digest"), wanted.pop("digest"))
        self.assertEqual(ours, wanted)
        self.assertIn("4,000 samples", str(self.plan.summary()))
        self.assertIn("patterns", repr(self.plan))
        self.assertIn("4,000", self.plan._repr_html_())
        self.assertFalse(self.plan.shifted_loss)

    def test_columns(self):
        plan = self.plan
        times = np.diff(plan.pattern_first_packs)
        self.assertEqual(times.sum() + plan.summary().padding_packs, plan.summary().packs)
        of_run = np.repeat(np.arange(len(times)), np.diff(plan.pattern_offsets))
        used = np.bincount(plan.run_lengths, times[of_run] * plan.run_numbers, len(plan.length_tokens))
        self.assertEqual(used.astype(np.int64).tolist(), plan.length_samples.tolist())
        tokens = np.bincount(of_run, plan.length_tokens[plan.run_lengths] * plan.run_numbers)
        self.assertEqual(tokens.astype(np.int64).tolist(), plan.pattern_tokens.tolist())
        self.assertEqual(plan.group_first_patterns[-1], len(times))
        self.assertEqual(len(plan.group_sp), len(plan.group_pack_lengths))
        with self.assertRaises(ValueError):
            plan.run_numbers[0] = 1
        numbers = make_plan().run_numbers  # keeps its plan
        self.assertGreater(numbers.min(), 0)

    def test_redraw(self):
        drawn = self.plan.redraw(epoch=1)
        other = hbp.plan_patterns(LENGTHS, make_cost(), max_pack_length=65536, tokens_per_step=400_000, epoch=1)
        self.assertEqual(drawn.digest, other.digest)
        self.assertEqual(listed(drawn).digest, listed(other).digest)
        self.assertNotEqual(drawn[0].ids(), self.plan[0].ids())
        self.assertEqual(drawn.redraw(epoch=0).digest, self.plan.digest)
        self.assertEqual(self.plan.redraw(seed=4).summary().seed, 4)
        for name in ("seed", "epoch"):
            with self.assertRaisesRegex(OverflowError, f"{name} is -1"):
                self.plan.redraw(**{name: -1})

    def test_validate(self):
        self.plan.validate()
        self.plan.validate(LENGTHS, make_cost())
        with self.assertRaises(hbp.InvalidError):
            self.plan.validate(LENGTHS[1:])
        with self.assertRaises(hbp.InvalidError):
            self.plan.validate(cost=make_cost(4))

    def test_simulate(self):
        cost = make_cost()
        for options in ({}, {"no_bound": True}):
            ours = hbp.simulate(self.plan, cost, **options).as_dict()
            wanted = hbp.simulate(self.whole, cost, **options).as_dict()
            for name, value in wanted.items():
                np.testing.assert_allclose(ours[name], value, rtol=1e-9, err_msg=name)
        with self.assertRaisesRegex(TypeError, "did you mean 'no_bound'"):
            hbp.simulate(self.plan, cost, nobound=True)

    def test_files(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "plan.patterns")
            self.plan.save(path)
            again = hbp.PatternPlan.load(path)
            self.assertEqual(again.digest, self.plan.digest)
            self.assertIsNone(again.index)
            self.assertEqual(listed(again.with_index(LENGTHS)).digest, self.whole.digest)
            data = path.read_bytes()
            path.write_bytes(data[:-40])
            with self.assertRaisesRegex(hbp.FormatError, "byte"):
                hbp.PatternPlan.load(path)
            path.write_bytes(data)
            with self.assertRaises(hbp.FormatError):
                hbp.Plan.load(path)
            with self.assertRaises(FileNotFoundError):
                hbp.PatternPlan.load(Path(folder, "absent"))

    def test_pickle(self):
        with self.assertRaisesRegex(TypeError, "with an index"):
            pickle.dumps(make_plan())
        again = pickle.loads(pickle.dumps(self.plan.with_index(None)))
        self.assertEqual(again.digest, self.plan.digest)
        self.assertEqual(again.with_index(LENGTHS)[3].ids(), self.plan[3].ids())
        self.assertIs(copy.deepcopy(self.plan), self.plan)

    def test_cursor(self):
        for step in (0, 5, len(self.plan)):
            self.assertEqual(self.plan.load_cursor(self.plan.save_cursor(step)), step)
        cursor = self.plan.save_cursor(3)
        with self.assertRaises(hbp.InvalidError):
            self.plan.redraw(epoch=1).load_cursor(cursor)
        with self.assertRaises(hbp.InvalidError):
            self.plan.save_cursor(len(self.plan) + 1)
        with self.assertRaises(ValueError):
            self.plan.load_cursor(cursor[:-1])

    def test_cursors_hold_the_index_to_its_order(self):
        bare, (first, second) = self.plan.with_index(None), np.array_split(LENGTHS, 2)
        histogram = hbp.Lengths.count(LENGTHS)
        whole = bare.with_index(hbp.LengthIndex.from_chunks(histogram, [first, second]))
        other = bare.with_index(hbp.LengthIndex.from_chunks(histogram, [second, first]))
        cursor = whole.save_cursor(3)
        self.assertEqual(bare.with_index(LENGTHS).load_cursor(cursor), 3)
        self.assertEqual(self.plan.load_cursor(cursor), 3)
        self.assertEqual(bare.with_index(hbp.LengthIndex.from_chunks(histogram, LENGTHS)).load_cursor(cursor), 3)
        for plan in (bare, other):
            with self.assertRaisesRegex(hbp.InvalidError, "the lengths changed"):
                plan.load_cursor(cursor)
            with self.assertRaisesRegex(hbp.InvalidError, "the lengths changed"):
                PlanSampler(plan, 0).load_state_dict(PlanSampler(whole, 0).state_dict(step=3))

    def test_options(self):
        self.assertLessEqual(set(patterns.PatternKeywords.__annotations__), set(EpochKeywords.__annotations__))
        for name in set(EpochKeywords.__annotations__) - set(patterns.PatternKeywords.__annotations__):
            with self.assertRaisesRegex(TypeError, f"there is no option '{name}'"):
                make_plan(**{name: 1})
        for refused in (dict(samples_per_step=9), dict(drop_last=True), dict(window_samples=9), dict(equal_samples=True),
                        dict(micro_batches_per_step=2), dict(curriculum_steps=2), dict(max_vision=3)):
            with self.assertRaises(hbp.InvalidError):
                hbp.plan_epoch(LENGTHS, make_cost(), method="patterns", **refused)
        groups = hbp.plan_groups(LENGTHS, make_cost(), max_groups=2)
        self.assertEqual(hbp.plan_patterns(LENGTHS, make_cost(), groups=groups).group_sp.tolist(),
                         groups.sp.tolist()[::-1])
        self.assertLessEqual(np.diff(listed(make_plan(max_samples=3)).pack_offsets).max(), 3)
        with self.assertRaisesRegex(hbp.InvalidError, "links"):
            hbp.plan_patterns(hbp.Lengths.from_array([5, 9], links=[0, 0]), make_cost())
        with self.assertRaisesRegex(hbp.InvalidError, "tokens_per_step is 10"):
            make_plan(tokens_per_step=10)
        with self.assertRaises(TypeError):
            hbp.plan_patterns(LENGTHS, self.plan)

    def test_over_long_samples(self):
        cut = LENGTHS > 8000
        for policy in ("truncate", "drop", "split"):
            plan = make_plan(max_length=8000, over_long=policy)
            wanted = hbp.plan_epoch(LENGTHS, make_cost(), max_pack_length=65536, max_length=8000, over_long=policy,
                                    method="patterns")
            whole = listed(plan)
            self.assertEqual(whole.digest, wanted.digest)
            self.assertEqual(len(whole.dropped_ids), cut.sum() * (policy == "drop"))
            self.assertEqual(plan.has_pieces, policy != "drop")
            whole.validate(LENGTHS if policy == "drop" else None)
            bare = plan.with_index(None)
            if policy == "split":
                with self.assertRaisesRegex(hbp.InvalidError, "give the index"):
                    bare.expand(0)
            limited = hbp.Lengths.from_array(LENGTHS).limit(8000, policy)
            self.assertEqual(bare.with_index(limited)[1].ids(), plan[1].ids())
            bare.validate(limited)
            with self.assertRaisesRegex(hbp.InvalidError, r"take what lengths\.limit\(max_length, over_long\) makes"):
                bare.validate(LENGTHS)

    def test_loss_tokens(self):
        data = hbp.Lengths.from_array(LENGTHS, loss_tokens=LENGTHS // 2, shifted_loss=True)
        plan = hbp.plan_patterns(data, make_cost())
        step = plan[0]
        self.assertEqual(step.loss_tokens, int((LENGTHS // 2)[step.plan.sample_ids].sum()))
        self.assertTrue(plan.shifted_loss)
        self.assertTrue(VarlenCollate.for_plan(plan).mask_first)

    def test_set_threads(self):
        tokens = np.random.default_rng(5).integers(1, 9000, 300000)
        found = set()
        try:
            for threads in (0, 1, 3, 4):
                hbp.set_threads(threads)
                lengths = hbp.Lengths.from_array(tokens)
                plan = hbp.plan_patterns(lengths, samples.cost())
                found.add((plan.digest,
                           hbp.plan_epoch(lengths, samples.cost(), method="patterns").digest,
                           hbp.plan_epoch(lengths, samples.cost()).digest))
            for wrong, message in ((-1, "`threads` is -1; it must be in 0..1024"), (1025, "it must be in 0..1024")):
                with self.assertRaisesRegex(hbp.InvalidError, message):
                    hbp.set_threads(wrong)
            with self.assertRaises(TypeError):
                hbp.set_threads("2")
        finally:
            hbp.set_threads(0)
        self.assertEqual(len(found), 1)

    def test_threads(self):
        plan, found = make_plan(), {}

        def work(first):
            found[first] = [plan.step(k).ids() for k in range(first, len(plan), 4)]

        threads = [threading.Thread(target=work, args=(first,)) for first in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for first in range(4):
            self.assertEqual(found[first], [step.ids() for step in list(plan)[first::4]])

    def test_progress(self):
        seen = []
        hbp.plan_patterns(LENGTHS, make_cost(), progress=seen.append)
        self.assertTrue(seen)
        with self.assertRaises(hbp.CancelledError):
            hbp.plan_patterns(LENGTHS, make_cost(), progress=lambda progress: True)


class TestHuge(unittest.TestCase):
    def test_a_thousand_million_samples(self):
        count = 10**9
        lengths = huge(count)
        plan = hbp.plan_patterns(lengths, make_cost(), max_pack_length=65536, tokens_per_step=1 << 22)
        summary = plan.summary()
        self.assertEqual((summary.samples, summary.tokens), (count, lengths.summary().tokens))
        self.assertLess(len(plan.run_numbers), 10**6)
        ends = np.cumsum(plan.length_samples)
        for step in (plan[0], plan[len(plan) // 2], plan[-1]):
            ids = step.plan.sample_ids
            self.assertEqual(len(np.unique(ids)), step.samples)
            self.assertLess(ids.max(), count)
            tokens = plan.length_tokens[np.searchsorted(ends, ids, "right")]
            self.assertEqual(tokens.tolist(), step.plan.sample_tokens.tolist())
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "plan.patterns")
            plan.save(path)
            self.assertLess(path.stat().st_size, 1 << 23)
        sampler = PlanSampler(plan, rank=3)
        state = sampler.state_dict(step=len(plan) - 2)
        sampler.load_state_dict(state)
        self.assertEqual(list(sampler), [pack.ids.tolist() for step in plan[-2:] for pack in step.for_rank(3)])

    def test_ten_thousand_million_samples(self):
        lengths = huge(10**10)
        self.assertEqual(len(lengths), 10**10)
        with self.assertRaises(hbp.TooLargeError):
            hbp.plan_epoch(lengths, make_cost())
        with self.assertRaises(hbp.TooLargeError):
            hbp.LengthIndex.from_chunks(lengths, [])


class TestSampler(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.plan = make_plan(tokens_per_step=400_000)
        cls.whole = listed(cls.plan)

    def test_batches_are_those_of_the_listed_plan(self):
        for options in ({}, {"tokens_per_step": 140_000}, {"tokens_per_step": 400_000, "micro_batch_multiple": 2}):
            plan = make_plan(**options)
            whole = listed(plan)
            for rank in (None, *range(8)):
                ours, wanted = PlanSampler(plan, rank), PlanSampler(whole, rank)
                self.assertEqual((len(ours), ours.ranks), (len(wanted), 8))
                self.assertEqual(list(ours), list(wanted))
                self.assertLessEqual(len(ours._listed), 3)

    def test_states_resume_at_every_batch(self):
        for rank, every in ((2, 1), (None, 13)):
            sampler, want = PlanSampler(self.plan, rank), list(PlanSampler(self.whole, rank))
            for position in range(0, len(sampler) + 1, every):
                state = sampler.state_at(position)
                again = PlanSampler(self.plan, rank)
                self.assertEqual(again.position_of(state), position)
                listed_state = PlanSampler(self.whole, rank).state_at(position)
                self.assertEqual({**state, "cursor": ""}, {**listed_state, "cursor": ""})
                again.load_state_dict(state)
                self.assertEqual(list(again), want[position:])
        for step in (0, 4, -1, len(self.plan)):
            state = PlanSampler(self.plan, 2).state_dict(step=step)
            listed_state = PlanSampler(self.whole, 2).state_dict(step=step)
            self.assertEqual(state["batches"], listed_state["batches"])
            self.assertEqual(self.plan.load_cursor(bytes.fromhex(state["cursor"])),
                             self.whole.load_cursor(bytes.fromhex(listed_state["cursor"])))
        with self.assertRaises(hbp.InvalidError):
            PlanSampler(self.whole, 2).load_state_dict(PlanSampler(self.plan, 2).state_at(3))
        most = int(np.diff(self.whole.step_offsets)[0]) - 1
        with self.assertRaisesRegex(hbp.InvalidError, f"it must be in 0..{most} at step 0"):
            PlanSampler(self.plan, 2).load_state_dict({**PlanSampler(self.plan, 2).state_at(0), "batches": most + 1})

    def test_a_loader_hands_out_packs_with_their_steps(self):
        for rank in (5, None):
            loader = PlanLoader(Ahead(PlanSampler(self.plan, rank), 5))
            walked = [(step.index, pack.ids.tolist(), batch) for step, pack, batch in loader.with_packs()]
            wanted = [(step.index, pack.ids.tolist()) for step in self.whole for pack in step.for_rank(5)]
            self.assertEqual([row[:2] for row in walked], wanted)
            self.assertEqual([row[1] for row in walked], [row[2] for row in walked])
        loader = PlanLoader(Ahead(PlanSampler(self.plan, 5), 5))
        for taken, (step, pack, _) in enumerate(loader.with_packs(), 1):
            self.assertEqual(len(step.pack_weights(pack)), len(pack))
            if taken == 7:
                break
        again = PlanSampler(self.plan, 5)
        again.load_state_dict(pickle.loads(pickle.dumps(loader.state_dict())))
        self.assertEqual(list(again), expected(self.whole, 5)[7:])

    def test_epochs_are_drawn(self):
        sampler = PlanSampler(lambda epoch: self.plan.redraw(epoch=epoch), 1)
        for epoch in range(3):
            sampler.set_epoch(epoch)
            self.assertEqual(list(sampler), expected(listed(self.plan.redraw(epoch=epoch)), 1))
        state = sampler.state_at(4)
        again = PlanSampler(lambda epoch: self.plan.redraw(epoch=epoch), 1)
        again.load_state_dict(state)
        self.assertEqual((again.epoch, list(again)), (2, expected(listed(self.plan.redraw(epoch=2)), 1)[4:]))

    def test_pickled_samplers_go_on(self):
        plan = self.plan.with_index(None)
        sampler = PlanSampler(plan, 6)
        walk = iter(sampler)
        for _ in range(5):
            next(walk)
        again = pickle.loads(pickle.dumps(sampler))
        self.assertEqual(list(again), expected(listed(plan), 6)[5:])

    def test_micro_batches_per_step(self):
        for tokens in (0, 140_000, 400_000):
            plan = make_plan(tokens_per_step=tokens)
            counts = np.diff(listed(plan).step_offsets)
            if counts.min() == counts.max():
                self.assertEqual(PlanSampler(plan).micro_batches_per_step(), counts[0])
            else:
                with self.assertRaisesRegex(ValueError, f"steps have {counts.min()} to {counts.max()}"):
                    PlanSampler(plan).micro_batches_per_step()

    def test_pieces(self):
        plan = make_plan(max_length=8000, over_long="split")
        with self.assertRaisesRegex(ValueError, "the plan split samples"):
            PlanSampler(plan, 0)
        self.assertEqual(list(PlanSampler(plan, 0, pieces=True)), list(PlanSampler(listed(plan), 0, pieces=True)))
        covered = np.zeros(len(LENGTHS), np.int64)
        for batch in PlanSampler(plan, pieces=True):
            for piece in set(batch):
                self.assertIsInstance(piece, Piece)
        for step in plan:
            np.add.at(covered, step.plan.sample_ids, step.plan.sample_tokens)
        self.assertEqual(covered.tolist(), LENGTHS.tolist())
        with self.assertRaisesRegex(ValueError, "the plan cut over-long samples"):
            PlanSampler(make_plan(max_length=8000, over_long="truncate"))
        self.assertTrue(list(PlanSampler(make_plan(max_length=8000, over_long="drop"), 0)))

    def test_a_rest_of_listed_steps(self):
        part = self.plan.expand(3, len(self.plan) - 3)
        rest = hbp.Rest(part, 0)
        again = hbp.plan_epoch(rest.lengths, make_cost(4), batches=rest.batches)
        sampler = PlanSampler(lambda epoch: self.plan.redraw(epoch=epoch))
        sampler.use_rest(rest, again)
        ids = sorted({sample for batch in sampler for sample in batch})
        self.assertEqual(ids, sorted(part.sample_ids.tolist()))

    def test_a_rest_of_what_is_not_listed(self):
        state = PlanSampler(self.plan, 2).state_dict(step=3)
        rest, wanted = hbp.Rest(self.plan, state), hbp.Rest(self.whole, 3)
        self.assertEqual(rest.ids.tolist(), wanted.ids.tolist())
        self.assertEqual([batch.tolist() for batch in rest.batches], [batch.tolist() for batch in wanted.batches])
        self.assertEqual(rest.has_pieces, wanted.has_pieces)
        short = make_plan(max_length=8000, over_long="drop")
        self.assertFalse(hbp.Rest(short, 1).has_pieces)
        self.assertEqual(len(hbp.Rest(short, 1).batches), len(short) - 1)
        with self.assertRaisesRegex(ValueError, "nothing is left"):
            hbp.Rest(self.plan, len(self.plan))

    def test_others_are_refused(self):
        with self.assertRaisesRegex(TypeError, "it must be an hbp.Plan"):
            len(PlanSampler(lambda epoch: "plan", 0))
        with self.assertRaisesRegex(ValueError, "rank 8 is not among the plan's 8 ranks"):
            PlanSampler(self.plan, 8)
        with self.assertRaises(IndexError):
            PlanSampler(self.plan).batch(len(PlanSampler(self.plan)))


if __name__ == "__main__":
    unittest.main()

"""A changed world size: what is done stays done, the rest is planned anew and is the same on every rank."""

import re
import unittest
from unittest import mock

import numpy as np

import hbp
from hbp.torch import PieceDataset, PlanSampler
from integration_seams import DOCS
from test_torch import make_cost, make_plan

LENGTHS = np.random.RandomState(5).geometric(1 / 900, size=600).clip(2, 8000)


def held(plan, steps, of=None):
    """The (sample, first token, tokens) of some steps, in the whole data set's terms."""
    rows = []
    for step in steps:
        for pack in plan.step(step).packs():
            for place, first, tokens in zip(pack.ids, pack.first_tokens, pack.lengths):
                sample = place if of is None else of.ids[place]
                first = first if of is None else first + of.first_tokens[place]
                rows.append((int(sample), int(first), int(tokens)))
    return rows


class Resumed(unittest.TestCase):
    def check(self, plan, step, ranks, **options):
        rest = hbp.Rest(plan, plan.save_cursor(step))
        self.assertEqual(len(rest.batches), len(plan) - step)
        again = hbp.plan_epoch(rest.lengths, make_cost(ranks), batches=rest.batches, **options)
        self.assertEqual(again.summary().ranks, ranks)
        self.assertEqual(len(again), len(plan) - step)
        old = [sorted(held(plan, [k])) for k in range(step, len(plan))]
        new = [sorted(held(again, [k], rest)) for k in range(len(again))]
        self.assertEqual(sorted(old), sorted(new), "every step keeps its samples")
        self.assertEqual(
            sum(plan.step_loss_tokens[step:].tolist()), sum(again.step_loss_tokens.tolist())
        )
        self.assertEqual(plan.shifted_loss, again.shifted_loss)
        return rest, again

    def test_more_and_fewer_ranks(self):
        plan = make_plan(tokens_per_step=30000)
        self.assertGreater(len(plan), 6)
        for step in (0, 3, len(plan) - 1):
            for ranks in (4, 8, 16):
                self.check(plan, step, ranks)

    def test_every_rank_plans_the_same(self):
        digests = set()
        for _ in range(2):
            rest = hbp.Rest(make_plan(tokens_per_step=30000), 4)
            digests.add(hbp.plan_epoch(rest.lengths, make_cost(4), batches=rest.batches).digest)
        self.assertEqual(len(digests), 1)

    def test_pieces_of_split_samples_stay_whole(self):
        plan = make_plan(max_length=2000, over_long="split", tokens_per_step=30000)
        rest, again = self.check(plan, 5, 4)
        dataset = PieceDataset([np.arange(length) for length in LENGTHS])
        seen = {sample: [] for sample in range(600)}
        for sample, first, tokens in held(plan, range(5)):
            seen[sample].append((first, first + tokens))
        for rank in range(4):
            sampler = PlanSampler(make_plan(ranks=4, max_length=2000, over_long="split"), rank, pieces=True)
            sampler.use_rest(rest, again)
            for position, batch in enumerate(sampler):
                for piece in batch if again.pack_ranks[sampler.pack_of(position)] == rank else []:
                    part = dataset[piece]
                    seen[piece.sample].append((int(part[0]), int(part[-1]) + 1))
        for sample, length in enumerate(LENGTHS.tolist()):
            borders = sorted(seen[sample])
            self.assertEqual([0, *(end for _, end in borders)], [*(first for first, _ in borders), length])

    def test_samplers_go_on_with_the_rest(self):
        plan = make_plan(tokens_per_step=30000)
        state = PlanSampler(plan, 0).state_dict(step=4)
        with self.assertRaises(hbp.InvalidError):
            PlanSampler(make_plan(ranks=4), 0).load_state_dict(state)
        rest = hbp.Rest(plan, bytes.fromhex(state["cursor"]))
        again = hbp.plan_epoch(rest.lengths, make_cost(4), batches=rest.batches)
        for source in (lambda epoch: make_plan(epoch, ranks=4), make_plan(ranks=4)):
            sampler = PlanSampler(source)
            sampler.use_rest(rest, again)
            left = sorted(sample for batch in sampler for sample in set(batch))
            done = {sample for sample, _, _ in held(plan, range(4))}
            self.assertEqual(set(left), set(range(600)) - done)
            later = PlanSampler(source)
            later.use_rest(rest, again)
            later.load_state_dict(sampler.state_dict(step=2))
            self.assertEqual(list(later), list(sampler)[again.step_offsets[2] * 4 :])
            sampler.set_epoch(1)
            whole = make_plan(1 if callable(source) else 0, ranks=4)
            self.assertEqual(list(sampler), list(PlanSampler(whole)))

    def test_a_run_resumes_twice(self):
        plan = make_plan(tokens_per_step=30000)
        rest, again = self.check(plan, 3, 16)
        twice = hbp.Rest(again, 2, of=rest)
        last = hbp.plan_epoch(twice.lengths, make_cost(4), batches=twice.batches)
        rows = held(plan, range(3)) + held(again, range(2), rest) + held(last, range(len(last)), twice)
        self.assertEqual(sorted(rows), [(i, 0, n) for i, n in enumerate(LENGTHS.tolist())])

    def test_the_pages_lines(self):
        text = (DOCS / "resume.md").read_text().split("## Another number of ranks")[1]
        text = re.search(r"```python\n(.*?)```", text, re.S).group(1)
        plan = make_plan(tokens_per_step=30000)
        data, names = hbp.Lengths.from_array(LENGTHS), {}
        with mock.patch.object(hbp.Plan, "load", lambda path: plan), mock.patch.object(hbp.Lengths, "read", lambda path: data):
            exec(text, names)
        self.assertEqual(len(names["remaining"]), len(plan) - 2)
        self.assertEqual(len(list(names["sampler"])), len(names["remaining"].micro_batch_ns))

    def test_links_are_the_callers(self):
        links = np.full(600, -1)
        links[:40] = np.repeat(np.arange(20), 2)
        data = hbp.Lengths.from_array(LENGTHS, links=links)
        plan = hbp.plan_epoch(data, make_cost(), tokens_per_step=30000)
        rest = hbp.Rest(plan, 2, links=links)
        again = hbp.plan_epoch(rest.lengths, make_cost(4), batches=rest.batches)
        pack = np.repeat(np.arange(len(again.pack_ns)), np.diff(again.pack_offsets))
        of = dict(zip(rest.ids[again.sample_ids].tolist(), pack.tolist()))
        pairs = [(of[2 * k], of[2 * k + 1]) for k in range(20) if 2 * k in of]
        self.assertTrue(pairs)
        self.assertTrue(all(first == second for first, second in pairs))

    def test_bad_arguments_are_named(self):
        plan = make_plan(tokens_per_step=30000)
        with self.assertRaisesRegex(ValueError, f"the plan has {len(plan)} steps, nothing is left"):
            hbp.Rest(plan, len(plan))
        with self.assertRaises(hbp.InvalidError):
            hbp.Rest(plan, make_plan(ranks=4).save_cursor(1))
        rest = hbp.Rest(plan, len(plan) - 1)
        sampler = PlanSampler(plan, 0)
        with self.assertRaisesRegex(hbp.InvalidError, "is no plan of"):
            sampler.use_rest(rest, plan)
        self.assertIs(sampler.plan, plan)

    def test_the_plan_of_the_rest_is_no_plan_of_the_sampler(self):
        rest = hbp.Rest(make_plan(tokens_per_step=30000), 4)
        again = hbp.plan_epoch(rest.lengths, make_cost(4), batches=rest.batches)
        with self.assertRaisesRegex(hbp.InvalidError, "own plan is that of the rest, which later epochs would walk"):
            PlanSampler(again, 0).use_rest(rest, again)

    def test_rests_of_other_lengths_are_refused(self):
        plan = make_plan(tokens_per_step=30000)
        rest = hbp.Rest(plan, 4)
        again = hbp.plan_epoch(rest.lengths, make_cost(4), batches=rest.batches)
        forgot = hbp.Rest(again, 2)  # its ids are places in rest.ids
        last = hbp.plan_epoch(forgot.lengths, make_cost(4), batches=forgot.batches)
        sampler = PlanSampler(make_plan(ranks=4), 0)
        with self.assertRaisesRegex(hbp.InvalidError, r"sample \d+ of <hbp.Rest.* and \d+ in the sampler's .* was `of` left"):
            sampler.use_rest(forgot, last)
        with self.assertRaisesRegex(hbp.InvalidError, "is no plan of <hbp.Rest.*: its sample .* tokens, .* there"):
            hbp.Rest(plan, 2, of=rest)
        links = np.full(600, -1)
        links[:40] = np.repeat(np.arange(20), 2)
        pairs = hbp.plan_epoch(hbp.Lengths.from_array(LENGTHS, links=links), make_cost(), tokens_per_step=30000)
        linked, rest = hbp.Rest(pairs, 4, links=links), hbp.Rest(pairs, 4)
        again = hbp.plan_epoch(linked.lengths, make_cost(4), batches=linked.batches)
        self.assertEqual(hbp.Rest(again, 2, of=rest).ids.tolist(), hbp.Rest(again, 2, of=linked).ids.tolist())

    def test_the_rest_at_step_0_is_the_whole(self):
        own = make_plan(ranks=4, tokens_per_step=30000)
        rest = hbp.Rest(make_plan(tokens_per_step=30000), 0)
        again = hbp.plan_epoch(rest.lengths, make_cost(4), tokens_per_step=30000)
        self.assertEqual(again.digest, own.digest)
        sampler = PlanSampler(own, 0)
        sampler.use_rest(rest, again)
        self.assertEqual(list(sampler), list(PlanSampler(own, 0)))

    def test_links_have_a_value_for_each_sample(self):
        plan = make_plan(tokens_per_step=30000)
        with self.assertRaisesRegex(ValueError, r"links has 5 values; the plan has sample \d+"):
            hbp.Rest(plan, 2, links=[0] * 5)

    def test_a_state_says_where_the_rest_begins(self):
        plan = make_plan(tokens_per_step=30000)
        sampler = PlanSampler(plan, 0)
        for state in (sampler.state_dict(step=4), sampler.state_at(int(plan.step_offsets[5]) - 1)):
            self.assertEqual(hbp.Rest(plan, state).ids.tolist(), hbp.Rest(plan, 4).ids.tolist())
        with self.assertRaisesRegex(hbp.InvalidError, "the state lacks 'cursor'"):
            hbp.Rest(plan, {"version": 1, "epoch": 0})

    def test_plans_of_other_lengths_are_refused(self):
        rest = hbp.Rest(make_plan(tokens_per_step=30000), 4)
        sampler = PlanSampler(make_plan(ranks=4), 0)
        shorter = rest.tokens.copy()
        shorter[7] -= 1
        for other in (shorter, rest.tokens[:-1], rest.tokens[::-1].copy(), rest.tokens):  # the last lacks loss tokens
            again = hbp.plan_epoch(other, make_cost(4))
            with self.assertRaisesRegex(hbp.InvalidError, "plan rest.lengths: .* digest"):
                sampler.use_rest(rest, again)
        sampler.use_rest(rest, hbp.plan_epoch(rest.lengths, make_cost(4)))
        self.assertEqual(len(list(sampler)), len(sampler))

    def test_the_rest_of_cut_samples_demands_pieces(self):
        for policy in ("split", "truncate", "drop"):
            plan = make_plan(max_length=2000, over_long=policy, tokens_per_step=30000)
            rest = hbp.Rest(plan, 3)
            self.assertEqual(rest.has_pieces, policy != "drop")
            again = hbp.plan_epoch(rest.lengths, make_cost(4), batches=rest.batches)
            self.assertEqual(again.summary().overlong_samples, 0)
            twice = hbp.Rest(again, 2, of=rest)
            last = hbp.plan_epoch(twice.lengths, make_cost(4), batches=twice.batches)
            for left, of in ((rest, again), (twice, last)):
                sampler = PlanSampler(make_plan(ranks=4), 0)
                self.assertEqual(left.has_pieces, policy != "drop")
                if policy == "drop":
                    sampler.use_rest(left, of)
                    continue
                with self.assertRaisesRegex(ValueError, "pass pieces=True"):
                    sampler.use_rest(left, of)
                PlanSampler(make_plan(ranks=4), 0, pieces=True).use_rest(left, of)
                if policy == "truncate":  # by the data set itself, too
                    PlanSampler(make_plan(ranks=4), 0, pieces=False).use_rest(left, of)
                else:
                    with self.assertRaisesRegex(ValueError, "split samples"):
                        PlanSampler(make_plan(ranks=4), 0, pieces=False).use_rest(left, of)
        whole = hbp.Rest(make_plan(tokens_per_step=30000), 3)
        cut = hbp.plan_epoch(whole.lengths, make_cost(4), max_length=2000, over_long="truncate")
        with self.assertRaisesRegex(ValueError, "pieces=True"):
            PlanSampler(make_plan(ranks=4), 0).use_rest(whole, cut)
        PlanSampler(make_plan(ranks=4), 0, pieces=True).use_rest(whole, cut)


if __name__ == "__main__":
    unittest.main()

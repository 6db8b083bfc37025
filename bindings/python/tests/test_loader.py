"""PlanLoader's batches and the packs that they are."""

import unittest

import numpy as np
from test_torch import HAVE_ACCELERATE, HAVE_STATEFUL, HAVE_TORCH, Ahead, Tokens, expected, make_plan

from hbp._sampler import _check_lengths
from hbp.torch import PlanLoader, PlanSampler, VarlenCollate, varlen_collate


class Collating(Ahead):
    """A loader that collates samples of the lengths that it has."""

    def __init__(self, sampler, shard, lengths):
        super().__init__(sampler, shard)
        self.lengths = lengths

    def __iter__(self):
        collate = VarlenCollate()
        return (collate.arrays([np.ones(self.lengths[k], np.int64) for k in ids]) for ids in super().__iter__())


class Batches:
    """A loader that hands out ids."""

    def __init__(self, batch_sampler):
        self.batch_sampler = batch_sampler

    def __iter__(self):
        return iter(self.batch_sampler)


def lengths_of(plan):
    tokens = np.zeros(int(plan.sample_ids.max()) + 1, np.int64)
    tokens[plan.sample_ids] = plan.sample_tokens
    return tokens


class WithPacks(unittest.TestCase):
    def setUp(self):
        self.plan = make_plan()

    def check(self, found, rank, skipped=0):
        """Steps, packs and ids of a rank, from its batch `skipped` on."""
        packs = [(step.index, pack.index) for step in self.plan for pack in step.for_rank(rank)][skipped:]
        self.assertEqual([(step.index, pack.index) for step, pack, _ in found], packs)
        for step, pack, ids in found:
            self.assertEqual(pack.ids.tolist(), ids)
            self.assertEqual(len(step.pack_weights(pack)), len(ids))

    def test_each_batch_has_its_pack_after_a_resume_too(self):
        for rank, shard in ((3, 0), (None, 5)):
            at = shard if rank is None else rank
            self.check(list(PlanLoader(Ahead(PlanSampler(self.plan, rank), shard)).with_packs()), at)
            for stop in (1, 4, len(expected(self.plan, at)) - 1):
                loader, taken = PlanLoader(Ahead(PlanSampler(self.plan, rank), shard)), []
                for entry in loader.with_packs():
                    taken.append(entry)
                    if len(taken) == stop:
                        break
                again = PlanLoader(Ahead(PlanSampler(self.plan, rank), shard))
                again.load_state_dict(loader.state_dict())
                left = list(again.with_packs())
                self.check(left, at, stop)
                self.check(taken + left, at)

    def test_another_data_set_is_refused(self):
        tokens = lengths_of(self.plan)
        self.assertEqual(len(list(PlanLoader(Collating(PlanSampler(self.plan, 1), 0, tokens)))), len(expected(self.plan, 1)))
        sample = expected(self.plan, 1)[2][0]
        tokens[sample] += 5
        loader = PlanLoader(Collating(PlanSampler(self.plan, 1), 0, tokens))
        with self.assertRaisesRegex(
            ValueError, f"sample {sample} has {tokens[sample]} tokens in its batch and {tokens[sample] - 5} in the plan"
        ):
            list(loader)
        wrong, pack = VarlenCollate().arrays([[1, 2, 3]]), self.plan.step(0).packs()[0]
        with self.assertRaisesRegex(ValueError, r"a batch has 1 samples; <hbp\.Pack"):
            _check_lengths(PlanSampler(self.plan), 0, pack, wrong)
        del wrong["loss_tokens"]  # what others mean by cu_seqlens is theirs
        _check_lengths(PlanSampler(self.plan), 0, pack, wrong)

    @unittest.skipUnless(HAVE_TORCH, "PyTorch is not installed")
    def test_loaders_of_torch(self):
        from torch.utils.data import DataLoader

        def loader(workers, sampler):
            return DataLoader(Tokens(self.plan), batch_sampler=sampler, collate_fn=varlen_collate, num_workers=workers)

        for workers in (0, 2):
            found = list(PlanLoader(loader(workers, PlanSampler(self.plan, 3))).with_packs())
            self.check([(step, pack, expected(self.plan, 3)[k]) for k, (step, pack, _) in enumerate(found)], 3)
            for _, pack, batch in found:
                self.assertEqual(batch["cu_seqlens"].tolist(), pack.cu_seqlens.tolist() or [0, 1])

    def test_shards_of_shards(self):
        class Halves:
            num_processes = 2

            def __init__(self, sampler, process):
                self.batch_sampler, self.process_index = sampler, process

            def __iter__(self):
                batches = list(self.batch_sampler)
                return iter(batches[self.process_index :: 2])

        for inner, outer in ((0, 1), (1, 0), (1, 1)):
            sampler = PlanSampler(self.plan)
            loader = Batches(Halves(Halves(sampler, inner), outer))
            whole = list(PlanSampler(self.plan))[inner::2][outer::2]
            found = list(PlanLoader(loader).with_packs())
            self.assertEqual([ids for _, _, ids in found], whole)
            self.assertEqual([pack.ids.tolist() for _, pack, _ in found], whole)

    @unittest.skipUnless(HAVE_STATEFUL, "torchdata is not installed")
    def test_a_stateful_loaders_own_state_is_refused(self):
        from torchdata.stateful_dataloader import StatefulDataLoader

        def loader():
            return StatefulDataLoader(
                Tokens(self.plan),
                batch_sampler=PlanSampler(self.plan, 2, stateful_loader=True),
                collate_fn=list,
                num_workers=2,
                snapshot_every_n_steps=3,
            )

        first = PlanLoader(loader())
        for taken, _ in enumerate(first, 1):
            if taken == 4:
                break
        own, other = first.loader.state_dict(), loader()
        other.load_state_dict(own)
        with self.assertRaisesRegex(RuntimeError, "StatefulDataLoader was given a state of its own"):
            next(iter(PlanLoader(other)))
        again = PlanLoader(loader())
        again.load_state_dict(first.state_dict())
        self.assertEqual(
            [pack.ids.tolist() for _, pack, _ in again.with_packs()], expected(self.plan, 2)[4:]
        )

    @unittest.skipUnless(HAVE_ACCELERATE, "accelerate is not installed")
    def test_loaders_of_accelerate(self):
        from accelerate.data_loader import prepare_data_loader, skip_first_batches
        from torch.utils.data import DataLoader

        for rank in (0, 5):
            made = DataLoader(Tokens(self.plan), batch_sampler=PlanSampler(self.plan), collate_fn=varlen_collate)
            made = prepare_data_loader(
                made, num_processes=8, process_index=rank, even_batches=False, put_on_device=False
            )
            want = expected(self.plan, rank)
            for skipped in (0, 3):
                found = list(PlanLoader(skip_first_batches(made, skipped) if skipped else made).with_packs())
                self.check([(step, pack, want[skipped + k]) for k, (step, pack, _) in enumerate(found)], rank, skipped)


if __name__ == "__main__":
    unittest.main()

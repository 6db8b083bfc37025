"""The states of samplers and loaders: what is refused and how it is said, and loaders of accelerate that count epochs
and skip batches themselves."""

import copy
import json
import pickle
import unittest

import numpy as np

import hbp
from hbp.torch import PlanLoader, PlanSampler, varlen_collate
from test_integrations_transformers import make_plan as small_plan
from test_torch import HAVE_ACCELERATE, HAVE_STATEFUL, Ahead, OwnEpochs, Tokens, expected, make_cost, make_plan

ABSENT = object()


class Skip:
    """accelerate's SkipBatchSampler."""

    def __init__(self, batch_sampler, skip_batches):
        self.batch_sampler, self.skip_batches = batch_sampler, skip_batches

    def __iter__(self):
        for place, batch in enumerate(self.batch_sampler):
            if place >= self.skip_batches:
                yield batch


class States(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.plan = make_plan()

    def changed(self, **fields):
        state = PlanSampler(self.plan, 3).state_at(5)
        state.update(fields)
        return {name: value for name, value in state.items() if value is not ABSENT}

    def refused(self, state, message, error=hbp.InvalidError):
        sampler = PlanSampler(self.plan, 3)
        place = sampler.state_at(7)
        sampler.load_state_dict(place)
        other = iter(PlanSampler(self.plan, 3))
        for load in (sampler.load_state_dict, other.load_state_dict, PlanLoader(Ahead(sampler, 3)).load_state_dict):
            with self.assertRaisesRegex(error, message):
                load(state)
            self.assertEqual(sampler.state_dict(), place, "a state that is refused moves nothing")

    def test_every_field_is_named_with_value_and_limit(self):
        stepped = PlanSampler(self.plan, 3).state_at(5)
        step = self.plan.load_cursor(bytes.fromhex(stepped["cursor"]))
        most = int(np.diff(self.plan.step_offsets)[step]) - 1
        for fields, message in (
            (dict(batches=1.7), "batches is 1.7; it must be an integer"),
            (dict(batches="1"), "batches is '1'; it must be an integer"),
            (dict(batches=True), "batches is True; it must be an integer"),
            (dict(batches=None), "batches is None; it must be an integer"),
            (dict(batches=-1), "batches is -1; it must be in 0.."),
            (dict(batches=most + 1), f"batches is {most + 1}; it must be in 0..{most} at step {step}"),
            (dict(batches=2**70), f"batches is {2**70}; it must be in 0..{2**63 - 1}"),
            (dict(batches=ABSENT), "the state lacks 'batches'; it must have version, epoch, cursor, batches, ranks"),
            (dict(epoch=0.0), "epoch is 0.0; it must be an integer"),
            (dict(epoch=-1), f"epoch is -1; it must be in 0..{2**63 - 1}"),
            (dict(epoch=2**63), f"epoch is {2**63}; it must be in 0..{2**63 - 1}"),
            (dict(epoch=ABSENT), "the state lacks 'epoch'"),
            (dict(ranks=0), "ranks is 0; it must be in 1.."),
            (dict(ranks=[8]), r"ranks is \[8\]; it must be an integer"),
            (dict(ranks=ABSENT), "the state lacks 'ranks'"),
            (dict(cursor=7), "cursor is 7; it must be a text of 128 hexadecimal digits"),
            (dict(cursor=b"0" * 128), "cursor is b'0+.*'; it must be a text of 128"),
            (dict(cursor="zz" * 64), "cursor is 'z+.*z+'; it must be a text of 128"),
            (dict(cursor=stepped["cursor"][:-2] + " 0"), "it must be a text of 128 hexadecimal digits"),
            (dict(cursor=stepped["cursor"] + "00"), "it must be a text of 128 hexadecimal digits"),
            (dict(cursor=ABSENT), "the state lacks 'cursor'"),
            (dict(version=ABSENT), "the state lacks 'version'"),
            (dict(version="1"), "version is '1'; it must be an integer"),
            (dict(version=0), "version is 0; it must be in 1.."),
            (dict(position=3), "the state has 'position'; it must have version, epoch, cursor, batches, ranks alone"),
        ):
            with self.subTest(fields=fields):
                self.refused(self.changed(**fields), message)
        self.refused(self.changed(version=2, mystery=1), "version is 2; this hbp reads version 1", hbp.VersionError)
        self.refused(self.changed(cursor="0" * 128), "not a cursor", hbp.FormatError)
        self.refused({}, "the state lacks 'version'; it must have version, epoch")
        self.refused(None, "a sampler's state is None; it must be a mapping")
        self.refused([1, 2], r"a sampler's state is \[1, 2\]; it must be a mapping")

    def test_a_state_at_the_end_has_no_batches(self):
        sampler = PlanSampler(self.plan, 3)
        state = sampler.state_at(len(sampler))
        self.assertEqual(sampler.position_of(state), len(sampler))
        with self.assertRaisesRegex(hbp.InvalidError, f"batches is 1; it must be in 0..0 at step {len(self.plan)}"):
            sampler.position_of({**state, "batches": 1})

    def test_integers_of_numpy_and_json_are_integers(self):
        for rank, position in ((3, 9), (None, 61)):
            sampler = PlanSampler(self.plan, rank)
            state = json.loads(json.dumps(sampler.state_at(position)))
            state = {name: value if name == "cursor" else np.int64(value) for name, value in state.items()}
            self.assertEqual(sampler.position_of(state), position)

    def test_ranked_and_unranked_samplers_do_not_cross(self):
        one, every = PlanSampler(self.plan, 3), PlanSampler(self.plan)
        with self.assertRaisesRegex(hbp.InvalidError, "ranks is 8; it must be 1: .* the batches of rank 3 alone"):
            one.load_state_dict(every.state_at(8))
        with self.assertRaisesRegex(hbp.InvalidError, "ranks is 1; it must be 8: .* the batches of all 8 ranks"):
            every.load_state_dict(one.state_at(1))
        self.assertEqual(PlanSampler(self.plan, 5).position_of(one.state_at(3)), 3, "ranks are in step")
        alone = make_plan(ranks=4)
        with self.assertRaisesRegex(hbp.InvalidError, "ranks"):
            PlanSampler(alone).load_state_dict(one.state_at(1))

    def test_a_refused_state_leaves_epoch_and_place(self):
        sampler = PlanSampler(make_plan, 3, epoch=1)
        sampler.load_state_dict(sampler.state_at(4))
        later = PlanSampler(make_plan, 3, epoch=2).state_at(2)
        for bad in ({**later, "batches": 10**6}, {**later, "epoch": 3}, {**later, "ranks": 8}):
            with self.assertRaises(hbp.InvalidError):
                sampler.load_state_dict(bad)
            self.assertEqual((sampler.epoch, len(list(copy.copy(sampler)))), (1, len(sampler) - 4))
        sampler.load_state_dict(later)
        self.assertEqual(list(sampler), expected(make_plan(2), 3)[2:])

    def test_epochs_and_plans_are_checked(self):
        for epoch in (-1, 2**63, 1.5, "1"):
            with self.assertRaisesRegex(hbp.InvalidError, "epoch is"):
                PlanSampler(self.plan, 3, epoch=epoch)
            with self.assertRaisesRegex(hbp.InvalidError, "epoch is"):
                PlanSampler(self.plan, 3).set_epoch(epoch)
        with self.assertRaisesRegex(TypeError, "the plan of an epoch is None; it must be an hbp.Plan"):
            len(PlanSampler(lambda epoch: None, 3))


class Loaded(unittest.TestCase):
    """A loader with epochs of its own begins with its first, whatever the state that the sampler was given."""

    @classmethod
    def setUpClass(cls):
        cls.plan = make_plan()

    def test_another_epoch_is_refused_before_the_state_is_used(self):
        for source in (self.plan, make_plan):
            for position in (0, 4):
                sampler = PlanSampler(source, 0)
                state = PlanSampler(source, 0, epoch=3).state_at(position)
                sampler.load_state_dict(state)
                loader = OwnEpochs(sampler)
                with self.assertRaisesRegex(RuntimeError, r"the state loaded is of epoch 3 .* set_epoch\(3\)"):
                    list(loader)
                self.assertEqual(sampler.state_dict(), state)
                loader.set_epoch(3)
                want = expected(sampler.plan, 0)
                self.assertEqual(list(loader), want[position:])
                self.assertEqual((list(loader)[0], sampler.epoch), (expected(sampler.plan, 0)[0], 4))

    def test_the_next_epoch_follows_the_end_of_one(self):
        sampler = PlanSampler(make_plan, 0, epoch=2)
        sampler.load_state_dict(sampler.state_at(len(sampler)))
        with self.assertRaisesRegex(RuntimeError, "epoch 1 begins"):
            sampler.set_epoch(1)
        sampler.set_epoch(3)
        self.assertEqual(list(sampler), expected(make_plan(3), 0))

    def test_a_rest_is_not_dropped_by_the_first_epoch(self):
        old = make_plan(tokens_per_step=30000)
        rest = hbp.Rest(old, 4)
        again = hbp.plan_epoch(rest.lengths, make_cost(4), batches=rest.batches)
        sampler = PlanSampler(lambda epoch: make_plan(epoch, ranks=4), 0, epoch=3)
        sampler.use_rest(rest, again)
        with self.assertRaisesRegex(RuntimeError, "the rest in use is of epoch 3"):
            list(OwnEpochs(sampler))
        self.assertEqual(len(list(sampler)), len(again.micro_batch_ns))
        sampler.set_epoch(4)
        self.assertEqual(list(sampler), expected(make_plan(4, ranks=4), 0))


class Skipped(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.plan = make_plan()

    def test_skipped_batches_are_behind_the_state(self):
        want = expected(self.plan, 3)
        for rank, shard in ((3, 0), (None, 3)):
            for skip, stop in ((1, 1), (4, 3), (len(want) - 1, 1), (len(want), 0)):
                inner = Ahead(PlanSampler(self.plan, rank), shard)
                inner.batch_sampler = Skip(inner.batch_sampler, skip)
                loader, taken = PlanLoader(inner), []
                for batch in loader:
                    taken.append(batch)
                    if len(taken) == stop:
                        break
                self.assertEqual(taken, want[skip : skip + stop])
                again = PlanLoader(Ahead(PlanSampler(self.plan, rank), shard))
                again.load_state_dict(loader.state_dict())
                self.assertEqual(list(again), want[skip + stop :])

    def test_skipped_before_the_cut_counts_once(self):
        inner = Ahead(PlanSampler(self.plan), 3)
        inner.batch_sampler.batch_sampler = Skip(inner.sampler, 16)
        loader = PlanLoader(inner)
        next(iter(loader))
        self.assertEqual(loader.state_dict(), inner.sampler.state_at(24))


def prepared(plan, rank, processes=8, workers=0, **options):
    """What accelerate makes of a loader on one of some processes."""
    from accelerate.data_loader import prepare_data_loader
    from torch.utils.data import DataLoader

    sampler = PlanSampler(plan, **options)
    loader = DataLoader(Tokens(sampler.plan), batch_sampler=sampler, collate_fn=varlen_collate, num_workers=workers)
    return prepare_data_loader(
        loader, num_processes=processes, process_index=rank, even_batches=False, put_on_device=False
    )


def ids(batches):
    return [batch["input_ids"][0][batch["cu_seqlens"][:-1].long()].tolist() for batch in batches]


@unittest.skipUnless(HAVE_ACCELERATE, "PyTorch and accelerate are not installed")
class WithAccelerate(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.plans = {epoch: small_plan(epoch=epoch) for epoch in range(3)}

    def source(self, epoch):
        return self.plans[epoch]

    def test_epochs_reach_the_sampler_behind_the_cut(self):
        loader = prepared(self.source, 1, processes=2)
        loader.set_epoch(1)
        self.assertEqual(loader.batch_sampler.batch_sampler.epoch, 1)
        self.assertEqual(ids(loader), expected(self.plans[1], 1))
        self.assertEqual(ids(loader), expected(self.plans[2], 1), "it counts on")

    def test_a_bare_loader_resumes_after_set_epoch(self):
        for processes, source in ((2, self.source), (1, lambda epoch: small_plan(ranks=1, epoch=epoch))):
            loader = prepared(source, 0, processes=processes)
            sampler = PlanLoader(loader).sampler
            state = PlanSampler(source, epoch=1).state_at(3 * processes)
            sampler.load_state_dict(state)
            with self.assertRaisesRegex(RuntimeError, r"set_epoch\(1\)"):
                next(iter(loader))
            loader.set_epoch(1)
            self.assertEqual(ids(loader), expected(source(1), 0)[3:])

    def test_a_counted_loader_resumes_in_the_states_epoch(self):
        for workers in (0, 2):
            loader = prepared(self.source, 1, processes=2, workers=workers)
            first = PlanLoader(loader)
            first.set_epoch(1)
            for taken, _ in enumerate(first, 1):
                if taken == 5:
                    break
            state = pickle.loads(pickle.dumps(first.state_dict()))
            loader = prepared(self.source, 1, processes=2, workers=workers)
            again = PlanLoader(loader)
            again.load_state_dict(state)
            self.assertEqual(ids(again), expected(self.plans[1], 1)[5:])
            self.assertEqual(ids(again), expected(self.plans[2], 1))

    def test_skip_first_batches(self):
        from accelerate import skip_first_batches

        for processes, plan in ((2, self.plans[0]), (1, small_plan(ranks=1))):
            want = expected(plan, processes - 1)
            for workers in (0, 2):
                loader = prepared(plan, processes - 1, processes=processes, workers=workers)
                skipping = PlanLoader(skip_first_batches(loader, 4))
                taken = []
                for batch in skipping:
                    taken.append(batch)
                    if len(taken) == 3:
                        break
                self.assertEqual(ids(taken), want[4:7])
                loader = prepared(plan, processes - 1, processes=processes)
                again = PlanLoader(loader)
                again.load_state_dict(skipping.state_dict())
                self.assertEqual(ids(again), want[7:])


@unittest.skipUnless(HAVE_STATEFUL, "PyTorch and torchdata are not installed")
class WithTorchdata(unittest.TestCase):
    def test_a_later_epoch_resumes(self):
        from torchdata.stateful_dataloader import StatefulDataLoader

        plans = {epoch: make_plan(epoch) for epoch in range(3)}

        def loader(workers):
            sampler = PlanSampler(plans.__getitem__, 2, stateful_loader=True)
            return StatefulDataLoader(
                Tokens(plans[0]), batch_sampler=sampler, collate_fn=varlen_collate, num_workers=workers
            )

        for workers in (0, 2):
            before = loader(workers)
            before.batch_sampler.set_epoch(1)
            for taken, _ in enumerate(before, 1):
                if taken == 5:
                    state = before.state_dict()
                    break
            after = loader(workers)
            after.load_state_dict(pickle.loads(pickle.dumps(state)))
            self.assertEqual(ids(after), expected(plans[1], 2)[5:])
            after.batch_sampler.set_epoch(2)
            self.assertEqual(ids(after), expected(plans[2], 2))


if __name__ == "__main__":
    unittest.main()

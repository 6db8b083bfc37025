"""The batch sampler against the plan it walks; the collate by hand; both under PyTorch, torchdata and accelerate
where these are installed."""

import functools
import importlib.util
import multiprocessing
import pickle
import tempfile
import types
import unittest

import numpy as np

import hbp
from hbp.torch import Piece, PieceDataset, PlanLoader, PlanSampler, VarlenCollate, varlen_collate

HAVE_TORCH = importlib.util.find_spec("torch") is not None
HAVE_STATEFUL = HAVE_TORCH and importlib.util.find_spec("torchdata") is not None
HAVE_ACCELERATE = HAVE_TORCH and importlib.util.find_spec("accelerate") is not None


def make_cost(ranks=8):
    return hbp.Cost.from_terms(
        hbp.CostTerms(
            ranks=ranks,
            layers=4,
            degree=(1, 2, 4),
            sp_latency_ns=(0.0, 20e3, 30e3),
            sp_ns_per_token=(0.0, 2.0, 3.0),
            limit_bytes=1 << 30,
            ns_per_token=100.0,
            ns_per_token_squared=0.05,
            recompute_linear=0.3,
            recompute_attention=0.3,
            pack_ns=1e5,
            static_bytes=1 << 20,
            activation_bytes=1 << 15,
            recomputed_bytes=1 << 11,
        )
    )


def plan_anew(epoch=0, ranks=8, count=600, **options):
    lengths = np.random.RandomState(5).geometric(1 / 900, size=count).clip(2, 8000)
    data = hbp.Lengths.from_array(lengths, shifted_loss=True)
    return hbp.plan_epoch(data, make_cost(ranks), epoch=epoch, **options)


make_plan = functools.lru_cache(maxsize=None)(plan_anew)  # a plan cannot change


def expected(plan, rank):
    return [pack.ids.tolist() for step in plan for pack in step.for_rank(rank)]


class Tokens:
    """Sample i is a sequence of its length whose every token is i."""

    def __init__(self, plan):
        self.lengths = dict(zip(plan.sample_ids.tolist(), plan.sample_tokens.tolist()))

    def __len__(self):
        return len(self.lengths)

    def __getitem__(self, index):
        return {"input_ids": [index] * self.lengths[index]}


class Shard:
    """Every eighth batch, as accelerate cuts a sampler."""

    num_processes = 8

    def __init__(self, sampler, process):
        self.batch_sampler, self.process_index = sampler, process

    def __iter__(self):
        for position, batch in enumerate(self.batch_sampler):
            if position % self.num_processes == self.process_index:
                kept = batch
            if position % self.num_processes == self.num_processes - 1:
                yield kept


class Ahead:
    """A loader that draws some batches before it hands out the first, as one with workers does."""

    def __init__(self, sampler, process, ahead=3):
        self.batch_sampler = sampler if sampler.rank is not None else Shard(sampler, process)
        self.ahead = ahead
        self.sampler = sampler

    def __len__(self):
        return len(self.sampler) // (1 if self.sampler.rank is not None else 8)

    def __iter__(self):
        waiting = []
        for batch in self.batch_sampler:
            waiting.append(batch)
            if len(waiting) > self.ahead:
                yield waiting.pop(0)
        yield from waiting


class OwnEpochs:
    """A loader that counts epochs itself and tells its sampler at the beginning of each, as accelerate's does."""

    def __init__(self, sampler):
        self.batch_sampler = sampler
        self.iteration = 0

    def set_epoch(self, epoch):
        self.iteration = epoch
        self.batch_sampler.set_epoch(epoch)

    def __iter__(self):
        self.set_epoch(self.iteration)
        yield from self.batch_sampler
        self.iteration += 1


def child_reads(sampler, queue):
    queue.put(list(sampler)[:5])


class Sampler(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.plan = make_plan()

    def test_each_rank_gets_its_packs_in_order(self):
        for rank in range(8):
            sampler = PlanSampler(self.plan, rank)
            self.assertEqual(list(sampler), expected(self.plan, rank))
            self.assertEqual(len(sampler), len(expected(self.plan, rank)))

    def test_every_sample_comes_once_per_pack(self):
        seen = []
        for rank in range(8):
            for position, batch in enumerate(PlanSampler(self.plan, rank)):
                pack = PlanSampler(self.plan, rank).pack_of(position)
                seen += batch if self.plan.pack_ranks[pack] == rank else []
        self.assertEqual(sorted(seen), list(range(600)))

    def test_without_a_rank_every_eighth_batch_is_the_ranks_own(self):
        batches = list(PlanSampler(self.plan))
        self.assertEqual(len(batches), len(PlanSampler(self.plan)))
        for rank in range(8):
            self.assertEqual(batches[rank::8], expected(self.plan, rank))

    def test_a_ranks_sampler_refuses_to_be_sharded_again(self):
        with self.assertRaisesRegex(RuntimeError, "rank 3 alone"):
            PlanSampler(self.plan, 3).batch_size
        self.assertIsNone(PlanSampler(self.plan).batch_size)

    def test_state_resumes_at_every_batch(self):
        for rank in (None, 2):
            whole = list(PlanSampler(self.plan, rank))
            for position in {0, 1, 7, len(whole) // 2, len(whole) - 1, len(whole)}:
                iterator = iter(PlanSampler(self.plan, rank))
                for _ in range(position):
                    next(iterator)
                resumed = PlanSampler(self.plan, rank)
                resumed.load_state_dict(iterator.state_dict())
                self.assertEqual(list(resumed), whole[position:])
                self.assertEqual(list(resumed), whole, "the next epoch is whole again")
                self.assertEqual(len(resumed), len(whole))

    def test_state_before_a_step(self):
        sampler = PlanSampler(self.plan, 1)
        state = sampler.state_dict(step=2)
        sampler.load_state_dict(state)
        skipped = sum(len(self.plan.step(step).micro_batches) for step in range(2))
        self.assertEqual(list(sampler), expected(self.plan, 1)[skipped:])

    def test_a_state_is_never_ahead_of_what_was_consumed(self):
        whole = expected(self.plan, 2)
        sampler = PlanSampler(self.plan, 2)
        iterator = iter(sampler)
        self.assertEqual(sampler.state_dict(), PlanSampler(self.plan, 2).state_dict())
        drawn = [next(iterator) for _ in range(6)]
        with self.assertRaisesRegex(RuntimeError, "6 batches are drawn and none is counted"):
            sampler.state_dict()
        self.assertEqual(sampler.state_dict(step=1), PlanSampler(self.plan, 2).state_dict(step=1))
        with self.assertRaisesRegex(ValueError, "batch 7 is consumed; drawn are those up to 6"):
            sampler.consume(7)
        with self.assertRaisesRegex(ValueError, "batches is -1; it is at least 0"):
            sampler.consume(-1)
        with self.assertRaisesRegex(IndexError, f"position is 999999; it must be in 0..{len(sampler)}"):
            sampler.state_at(999999)
        with self.assertRaisesRegex(IndexError, f"step is 999; it must be in 0..{len(self.plan)}"):
            sampler.state_dict(step=999)
        for consumed in range(1, 6):
            sampler.consume()
            resumed = PlanSampler(self.plan, 2)
            resumed.load_state_dict(sampler.state_dict())
            self.assertEqual(drawn[:consumed] + list(resumed), whole)
        iter(resumed)
        with self.assertRaisesRegex(RuntimeError, "no batch has been drawn"):
            PlanSampler(self.plan, 2).consume()

    def test_a_loader_counts_what_it_hands_out(self):
        for rank, shard in ((3, 0), (None, 5)):
            whole = expected(self.plan, 3 if rank is not None else shard)
            for stop in (1, 4, len(whole)):
                loader = PlanLoader(Ahead(PlanSampler(self.plan, rank), shard))
                taken = []
                for batch in loader:
                    taken.append(batch)
                    if len(taken) == stop:
                        break
                again = PlanLoader(Ahead(PlanSampler(self.plan, rank), shard))
                again.load_state_dict(pickle.loads(pickle.dumps(loader.state_dict())))
                self.assertEqual(taken + list(again), whole)
                self.assertEqual(len(loader), len(whole))
        with self.assertRaisesRegex(TypeError, "batch_sampler of the list"):
            PlanLoader([1, 2])

    def test_a_loader_begins_epochs(self):
        loader = PlanLoader(Ahead(PlanSampler(plan_anew, 0), 0))
        first = list(loader)
        loader.set_epoch(1)
        self.assertEqual(list(loader), expected(make_plan(1), 0))
        self.assertNotEqual(list(loader), first)
        self.assertEqual(loader.state_dict()["epoch"], 1)

    def test_an_iterator_that_nothing_was_drawn_from_moves_nothing(self):
        whole = expected(self.plan, 1)
        for position in (3, len(whole)):
            sampler = PlanSampler(self.plan, 1)
            sampler.load_state_dict(sampler.state_at(position))
            iter(sampler)
            self.assertEqual(list(sampler), whole[position:])
            self.assertEqual(list(sampler), whole)

    def test_steps_of_constant_accumulation(self):
        for count in (1, 2, 5):
            plan = make_plan(count=2000, max_pack_length=16384, micro_batches_per_step=count)
            sampler = PlanSampler(plan, 1)
            self.assertEqual(sampler.micro_batches_per_step(), count)
            self.assertEqual(plan.summary().padding_packs, 0)
            batches = list(sampler)
            for step in range(len(plan)):
                want = [pack.ids.tolist() for pack in plan.step(step).for_rank(1)]
                self.assertEqual(batches[step * count : (step + 1) * count], want)
        uneven = make_plan(samples_per_step=64, tokens_per_rank=8192, max_length=8192, count=2000)
        self.assertGreater(len(set(np.diff(uneven.step_offsets).tolist())), 1)
        with self.assertRaisesRegex(ValueError, "steps have 1 to 2 micro-batches"):
            PlanSampler(uneven, 1).micro_batches_per_step()

    def test_state_of_another_plan_or_world_is_refused(self):
        state = PlanSampler(self.plan, 0).state_dict()
        for other in (make_plan(seed=1), make_plan(ranks=16)):
            with self.assertRaises(hbp.InvalidError):
                PlanSampler(other, 0).load_state_dict(state)

    def test_a_loader_that_counts_epochs_resumes_in_that_of_the_state(self):
        plan = make_plan()
        first = PlanLoader(OwnEpochs(PlanSampler(plan, 0)))
        whole = list(first)
        for taken, _ in enumerate(first, 1):  # the second epoch
            if taken == 4:
                break
        again = PlanLoader(OwnEpochs(PlanSampler(plan, 0)))
        again.load_state_dict(first.state_dict())
        self.assertEqual(list(again), whole[4:])
        self.assertEqual(again.sampler.epoch, 1)

    def test_a_function_plans_each_epoch(self):
        sampler = PlanSampler(plan_anew, 0)
        first = list(sampler)
        sampler.set_epoch(1)
        self.assertEqual(list(sampler), expected(make_plan(1), 0))
        self.assertNotEqual(list(sampler), first)
        state = sampler.state_dict(step=1)
        resumed = pickle.loads(pickle.dumps(PlanSampler(plan_anew, 0)))
        resumed.load_state_dict(state)
        self.assertEqual(resumed.epoch, 1)
        resumed.set_epoch(1)
        self.assertEqual(list(resumed), list(sampler)[len(make_plan(1).step(0).micro_batches) :])

    def test_pickled_samplers_go_on_where_they_were(self):
        sampler = PlanSampler(self.plan, 4)
        iterator = iter(sampler)
        next(iterator)
        copy = pickle.loads(pickle.dumps(sampler))
        self.assertEqual(list(copy), list(iterator))
        self.assertEqual(list(copy), expected(self.plan, 4))

    def test_forked_samplers_read_the_same_plan(self):
        fork = multiprocessing.get_context("fork")
        queue, sampler = fork.Queue(), PlanSampler(self.plan, 0)
        child = fork.Process(target=child_reads, args=(sampler, queue))
        child.start()
        self.assertEqual(queue.get(timeout=30), list(sampler)[:5])
        child.join()
        self.assertEqual(child.exitcode, 0)

    def test_bad_arguments_are_named(self):
        with self.assertRaisesRegex(ValueError, "rank 8"):
            PlanSampler(self.plan, 8)
        with self.assertRaisesRegex(TypeError, "str"):
            PlanSampler("plan.msgpack", 0)
        with self.assertRaises(IndexError):
            PlanSampler(self.plan, 0).batch(len(PlanSampler(self.plan, 0)))


class Pieces(unittest.TestCase):
    def test_a_plan_with_cut_samples_needs_a_decision(self):
        plan = make_plan(max_length=2000, over_long="split")
        with self.assertRaisesRegex(ValueError, "PieceDataset"):
            PlanSampler(plan, 0)

    def test_pieces_of_split_samples_make_them_whole(self):
        lengths = np.random.RandomState(5).geometric(1 / 900, size=600).clip(2, 8000)
        plan = make_plan(max_length=2000, over_long="split")
        dataset = PieceDataset([np.arange(length) for length in lengths])
        parts = {}
        for rank in range(8):
            sampler = PlanSampler(plan, rank, pieces=True)
            for position, batch in enumerate(sampler):
                if plan.pack_ranks[sampler.pack_of(position)] != rank:
                    continue
                for piece in pickle.loads(pickle.dumps(batch)):
                    parts.setdefault(piece.sample, []).append(dataset[piece])
        for sample, length in enumerate(lengths):
            whole = np.concatenate(sorted(parts[sample], key=lambda part: part[0]))
            np.testing.assert_array_equal(whole, np.arange(length))

    def test_a_data_set_that_knows_no_pieces_refuses_them(self):
        plan = make_plan(max_length=2000, over_long="split")
        with self.assertRaisesRegex(ValueError, "split samples; .* pass pieces=True"):
            PlanSampler(plan, 0, pieces=False)
        for dataset in ([5] * 600, np.arange(600), {0: 5}):
            with self.assertRaises((TypeError, IndexError, KeyError)):
                dataset[PlanSampler(plan, 0, pieces=True).batch(0)[0]]
        loader = types.SimpleNamespace(batch_sampler=PlanSampler(plan, 0, pieces=True), dataset=[5] * 600)
        with self.assertRaisesRegex(TypeError, "pieces=True, and the loader's dataset is a list; it must be an hbp"):
            PlanLoader(loader)
        for dataset in (PieceDataset([5]), types.SimpleNamespace(takes_pieces=True)):
            loader.dataset = dataset
            PlanLoader(loader)

    def test_dropped_samples_are_no_pieces(self):
        dropped = make_plan(max_length=2000, over_long="drop")
        self.assertGreater(dropped.summary().overlong_samples, 0)
        PlanSampler(dropped, 0)
        truncated = make_plan(max_length=2000, over_long="truncate")
        self.assertEqual((dropped.has_pieces, truncated.has_pieces, make_plan().has_pieces), (False, True, False))
        with self.assertRaisesRegex(ValueError, "the dataset itself truncates them so or .* pieces=False"):
            PlanSampler(truncated, 0)
        PlanSampler(truncated, 0, pieces=False)
        with tempfile.TemporaryDirectory() as folder:
            dropped.save(f"{folder}/plan.msgpack")
            part = hbp.PlanFile(f"{folder}/plan.msgpack").read(0, 2)
        with self.assertRaisesRegex(ValueError, "or is a part of one that may have; .* the plan dropped them, pieces=False"):
            PlanSampler(part, 0)
        PlanSampler(part, 0, pieces=False)

    def test_named_fields_are_cut(self):
        dataset = PieceDataset([{"input_ids": [1, 2, 3, 4], "labels": [5, 6, 7, 8], "text": "abcd"}])
        cut = dataset[Piece(0, 1, 2)]
        self.assertEqual(cut, {"input_ids": [2, 3], "labels": [6, 7], "text": "abcd"})
        self.assertEqual(dataset[0]["input_ids"], [1, 2, 3, 4])


class Collate(unittest.TestCase):
    def test_samples_end_to_end(self):
        batch = VarlenCollate(mask_first=False).arrays(
            [[1, 2, 3], {"input_ids": [4, 5], "labels": [-100, 5]}]
        )
        self.assertEqual(batch["input_ids"].tolist(), [1, 2, 3, 4, 5])
        self.assertEqual(batch["labels"].tolist(), [1, 2, 3, -100, 5])
        self.assertEqual(batch["position_ids"].tolist(), [0, 1, 2, 0, 1])
        self.assertEqual(batch["cu_seqlens"].tolist(), [0, 3, 5])
        self.assertEqual(batch["cu_seqlens"].dtype, np.int32)
        self.assertEqual((batch["max_seqlen"], batch["loss_tokens"]), (3, 4))

    def test_padding_never_has_position_zero(self):
        batch = VarlenCollate(sequence_multiple=4, pack_multiple=16, pad_id=9).arrays(
            [[1, 2, 3], [4, 5, 6, 7, 8]]
        )
        self.assertEqual(batch["input_ids"].tolist(), [1, 2, 3, 9, 4, 5, 6, 7, 8, 9, 9, 9, 9, 9, 9, 9])
        self.assertEqual(batch["position_ids"].tolist(), [0, 1, 2, 3, *range(12)])
        self.assertEqual(batch["cu_seqlens"].tolist(), [0, 3, 8])
        self.assertEqual(batch["cu_seqlens_padded"].tolist(), [0, 4, 12, 16])
        self.assertEqual((batch["max_seqlen"], batch["max_seqlen_padded"]), (5, 8))
        self.assertEqual(batch["labels"][[0, 1, 3, 4, 5]].tolist(), [-100, 2, -100, -100, 5])
        self.assertEqual(batch["loss_tokens"], 6)

    def test_a_dummy_is_one_sequence_without_loss(self):
        batch = VarlenCollate(sequence_multiple=2, pack_multiple=8).arrays([])
        self.assertEqual(batch["position_ids"].tolist(), list(range(8)))
        self.assertEqual(batch["cu_seqlens"].tolist(), [0, 8])
        self.assertEqual(batch["loss_tokens"], 0)
        self.assertEqual(len(varlen_collate.arrays([])["input_ids"]), 1)

    def test_borders_are_the_plans(self):
        plan = make_plan(sequence_multiple=8, pack_multiple=64)
        dataset, collate = Tokens(plan), VarlenCollate.for_plan(plan)
        self.assertEqual((collate.sequence_multiple, collate.pack_multiple), (8, 64))
        for pack in (pack for step in plan for pack in step.packs() if not pack.is_padding):
            batch = collate.arrays([dataset[sample] for sample in pack.ids.tolist()])
            np.testing.assert_array_equal(batch["cu_seqlens"], pack.cu_seqlens)
            np.testing.assert_array_equal(batch["cu_seqlens_padded"], pack.cu_seqlens_padded)
            self.assertEqual(batch["max_seqlen"], pack.max_seqlen)
            self.assertEqual(batch["max_seqlen_padded"], pack.max_seqlen_padded)
            self.assertEqual(len(batch["input_ids"]), pack.padded_tokens)
            self.assertEqual(batch["loss_tokens"], pack.loss_tokens)

    def test_a_plan_says_whether_first_labels_are_masked(self):
        plan = make_plan()
        self.assertTrue(plan.shifted_loss)
        self.assertTrue(VarlenCollate.for_plan(plan).mask_first)
        with self.assertRaisesRegex(ValueError, "mask_first is False; the plan has shifted_loss"):
            VarlenCollate.for_plan(plan, mask_first=False)
        plain = hbp.plan_epoch([300, 7000, 16], make_cost())
        self.assertFalse(plain.shifted_loss)
        self.assertTrue(VarlenCollate.for_plan(plain).mask_first)
        self.assertFalse(VarlenCollate.for_plan(plain, mask_first=False).mask_first)

    def test_borders_go_by_the_packs_degree(self):
        plan = hbp.plan_step(
            [300, 7000, 16000, 8000, 90, 2500, 61],
            make_cost(),
            tokens_per_rank=9000,
            sequence_multiple=3,
            sequence_multiple_per_sp=8,
            pack_multiple_per_sp=64,
        )
        collate = VarlenCollate.for_plan(plan)
        packs = [pack for step in plan for pack in step.packs() if not pack.is_padding]
        self.assertGreater(max(pack.sp for pack in packs), 1)
        for pack in packs:
            batch = collate.arrays([np.arange(tokens) for tokens in pack.lengths.tolist()], pack.sp)
            np.testing.assert_array_equal(batch["cu_seqlens_padded"], pack.cu_seqlens_padded)
            self.assertEqual(len(batch["input_ids"]), pack.padded_tokens)
            if pack.sp > 1:
                self.assertEqual((pack.cu_seqlens_padded % (24 * pack.sp))[: len(pack) + 1].max(), 0)
        with self.assertRaisesRegex(ValueError, "padding depends on the pack's SP degree: pass it as sp"):
            collate.arrays([[1, 2]])
        with self.assertRaisesRegex(ValueError, "sp is 0"):
            collate.arrays([[1, 2]], 0)
        with self.assertRaisesRegex(ValueError, "multiples per rank are -1 and 0"):
            VarlenCollate(sequence_multiple_per_sp=-1)

    def test_bad_samples_are_named(self):
        with self.assertRaisesRegex(TypeError, "float64"):
            VarlenCollate().arrays([[1.5]])
        with self.assertRaisesRegex(ValueError, "2 tokens and 1 labels"):
            VarlenCollate().arrays([{"input_ids": [1, 2], "labels": [1]}])
        with self.assertRaisesRegex(ValueError, "keys"):
            VarlenCollate(keys="megatron")

    def test_collates_can_be_pickled(self):
        collate = pickle.loads(pickle.dumps(VarlenCollate(pack_multiple=4)))
        self.assertEqual(len(collate.arrays([[1]])["input_ids"]), 4)


@unittest.skipUnless(HAVE_TORCH, "PyTorch is not installed")
class WithTorch(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.plan = make_plan()

    def check(self, batch, ids):
        lengths = (batch["cu_seqlens"][1:] - batch["cu_seqlens"][:-1]).tolist()
        if not ids:
            self.assertEqual((batch["loss_tokens"], lengths), (0, [1]))
            return
        starts = batch["cu_seqlens"][:-1].long()
        self.assertEqual(batch["input_ids"][0][starts].tolist(), ids)
        self.assertEqual(batch["input_ids"].shape, (1, sum(lengths)))

    def test_loaders_with_and_without_workers(self):
        from torch.utils.data import DataLoader

        for workers, start in ((0, None), (2, "fork"), (1, "spawn")):
            loader = DataLoader(
                Tokens(self.plan),
                batch_sampler=PlanSampler(self.plan, 3),
                collate_fn=varlen_collate,
                num_workers=workers,
                multiprocessing_context=start,
            )
            want = expected(self.plan, 3)
            self.assertEqual(len(loader), len(want))
            batches = list(loader)
            self.assertEqual(len(batches), len(want))
            for batch, ids in zip(batches, want):
                self.check(batch, ids)

    def test_states_under_workers_are_those_of_the_consumer(self):
        from torch.utils.data import DataLoader

        def loader(workers):
            sampler = PlanSampler(self.plan, 3)
            return DataLoader(
                Tokens(self.plan), batch_sampler=sampler, collate_fn=varlen_collate, num_workers=workers
            )

        want = expected(self.plan, 3)
        for workers in (0, 2):
            plain = loader(workers)
            iterator = iter(plain)
            next(iterator)
            with self.assertRaisesRegex(RuntimeError, "none is counted as consumed"):
                plain.batch_sampler.state_dict()
            del iterator
            first = PlanLoader(loader(workers))
            for taken, _ in enumerate(first, 1):
                if taken == 4:
                    break
            self.assertGreater(first.sampler._latest._position, 3 if workers == 0 else 4)
            again = PlanLoader(loader(workers))
            again.load_state_dict(first.state_dict())
            batches = list(again)
            self.assertEqual(len(batches), len(want) - 4)
            for batch, ids in zip(batches, want[4:]):
                self.check(batch, ids)

    def test_padding_by_degree_takes_the_pack(self):
        from torch.utils.data import DataLoader

        plan = hbp.plan_step(np.arange(900, 9000, 500), make_cost(), tokens_per_rank=4000, sequence_multiple_per_sp=8)
        loader = DataLoader(Tokens(plan), batch_sampler=PlanSampler(plan, 3), collate_fn=list, num_workers=1)
        collate, packs = VarlenCollate.for_plan(plan), plan.step(0).for_rank(3)
        self.assertGreater(max(pack.sp for pack in packs), 1)
        self.assertEqual(len(packs), len(loader))
        for pack, tokens in zip(packs, loader):
            batch = collate(tokens, pack.sp)
            self.assertEqual(batch["cu_seqlens_padded"].tolist(), pack.cu_seqlens_padded.tolist())

    def test_keys_of_transformers(self):
        import torch

        batch = VarlenCollate(keys="transformers", pack_multiple=4)([torch.tensor([1, 2, 3])])
        self.assertEqual(batch["cu_seq_lens_q"].tolist(), [0, 3, 4])
        self.assertEqual(batch["cu_seq_lens_k"].dtype, torch.int32)
        self.assertEqual(batch["max_length_q"], 3)
        self.assertEqual(
            sorted(batch),
            sorted(
                "input_ids labels position_ids cu_seq_lens_q cu_seq_lens_k max_length_q max_length_k".split()
            ),
        )

    @unittest.skipUnless(HAVE_STATEFUL, "torchdata is not installed")
    def test_stateful_loaders_resume(self):
        from torchdata.stateful_dataloader import StatefulDataLoader

        def loader(workers):
            return StatefulDataLoader(
                Tokens(self.plan),
                batch_sampler=PlanSampler(self.plan, 2, stateful_loader=True),
                collate_fn=varlen_collate,
                num_workers=workers,
            )

        want = expected(self.plan, 2)
        for workers in (0, 2):
            before = loader(workers)
            iterator = iter(before)
            for _ in range(5):
                next(iterator)
            state = before.state_dict()
            after = loader(workers)
            after.load_state_dict(pickle.loads(pickle.dumps(state)))
            batches = list(after)
            self.assertEqual(len(batches), len(want) - 5)
            for batch, ids in zip(batches, want[5:]):
                self.check(batch, ids)

    @unittest.skipUnless(HAVE_ACCELERATE, "accelerate is not installed")
    def test_accelerate_shards_into_each_ranks_packs(self):
        from accelerate.data_loader import prepare_data_loader
        from torch.utils.data import DataLoader

        def prepare(sampler, rank):
            loader = DataLoader(Tokens(self.plan), batch_sampler=sampler, collate_fn=varlen_collate)
            return prepare_data_loader(
                loader, num_processes=8, process_index=rank, even_batches=False, put_on_device=False
            )

        for rank in range(8):
            prepared, want = prepare(PlanSampler(self.plan), rank), expected(self.plan, rank)
            self.assertEqual(len(prepared), len(want))
            sharded = list(prepared.batch_sampler)
            self.assertEqual(sharded, want)
            counted = PlanLoader(prepared)
            for taken, batch in enumerate(counted, 1):
                self.check(batch, want[taken - 1])
                if taken == 3:
                    break
            self.assertGreater(counted.sampler._latest._position, 3 * 8, "accelerate reads ahead")
            again = PlanLoader(prepare(PlanSampler(self.plan), rank))
            again.load_state_dict(counted.state_dict())
            left = list(again)
            self.assertEqual(len(left), len(want) - 3)
            self.check(left[0], want[3])
        with self.assertRaisesRegex(RuntimeError, "sharded"):
            prepare(PlanSampler(self.plan, 3), 3)


if __name__ == "__main__":
    unittest.main()

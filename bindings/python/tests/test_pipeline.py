"""Layers, their partition into stages, pipelines on paper, recomputation: against the rules written plainly."""

import gc
import itertools
import json
import pickle
import tempfile
import unittest
from pathlib import Path

import numpy as np

import hbp
from hbp import layers as layers_module
from hbp.pipeline import DIRECTIONS

INT64 = ("forward_ns", "backward_ns", "parameters", "state_bytes", "activation_bytes", "recomputed_bytes",
         "working_bytes", "attention_bytes", "attention_ns", "mlp_bytes", "mlp_ns", "recompute_ns", "cut_bytes")


def ragged(count: int = 9, seed: int = 1) -> hbp.Layers:
    """Layers of all types that recompute in every way."""
    rng = np.random.default_rng(seed)
    activation = rng.integers(60, 100, count)
    return hbp.Layers(
        rng.integers(20, 90, count),
        rng.integers(20, 190, count),
        type=rng.permutation(np.arange(count) % 3),
        state_bytes=rng.integers(10, 50, count),
        activation_bytes=activation,
        recomputed_bytes=activation // 8,
        attention_bytes=activation // 3,
        attention_ns=rng.integers(1, 9, count),
        mlp_bytes=activation // 2,
        mlp_ns=rng.integers(1, 9, count),
        recompute_ns=rng.integers(15, 25, count),
        cut_bytes=rng.integers(1, 60, count),
    )


def all_cuts(count: int, stages: int) -> "list[list[int]]":
    return [[0, *inner, count] for inner in itertools.combinations(range(1, count), stages - 1)]


def run_1f1b(forward, backward, stages: int) -> "dict[tuple[int, int, int], tuple[int, int]]":
    """Start and end by (stage, micro-batch, direction): times [stage][micro-batch], no transfers."""
    count = len(forward[0])
    plans = []
    for stage in range(stages):
        early = min(count, stages - 1 - stage)
        plan = [(m, 0) for m in range(early)]
        for m in range(early, count):
            plan += [(m, 0), (m - early, 1)]
        plans.append(plan + [(m, 1) for m in range(count - early, count)])
    times, free = {}, [0] * stages
    while any(plans):
        for stage, plan in enumerate(plans):
            while plan:
                m, direction = plan[0]
                before = ((stage - 1, m, 0) if stage else None) if direction == 0 else (
                    (stage + 1, m, 1) if stage + 1 < stages else (stage, m, 0))
                if before is not None and before not in times:
                    break
                start = max(free[stage], 0 if before is None else times[before][1])
                free[stage] = start + (forward, backward)[direction][stage][m]
                times[stage, m, direction] = start, free[stage]
                plan.pop(0)
    return times


class TestLayers(unittest.TestCase):
    def test_columns(self):
        rng = np.random.default_rng(5)
        given = {name: rng.integers(0, 9, 4) for name in INT64}
        given["activation_bytes"] = np.full(4, 50)
        made = hbp.Layers(**given, type=["vision", "vision", "fixed", "language"], names=["a", "b", "c", "ü"])
        for name, values in given.items():
            self.assertEqual(getattr(made, name).tolist(), values.tolist(), name)
            self.assertEqual(getattr(made, name).dtype, np.int64)
            self.assertFalse(getattr(made, name).flags.writeable)
        self.assertEqual((made.type.tolist(), made.type.dtype), ([1, 1, 2, 0], np.int32))
        self.assertEqual((made.names, len(made)), (["a", "b", "c", "ü"], 4))
        self.assertEqual(made.counts, {"language": 1, "vision": 2, "fixed": 1})
        self.assertEqual(repr(made), "<hbp.Layers: 1 language, 2 vision, 1 fixed>")

    def test_defaults(self):
        made = hbp.Layers(forward_ns=[5, 6], activation_bytes=[9, 9], recomputed_bytes=[2, 3])
        self.assertEqual(made.backward_ns.tolist(), [10, 12])
        self.assertEqual(made.recompute_ns.tolist(), [5, 6])
        self.assertEqual(made.working_bytes.tolist(), [7, 6])
        self.assertEqual(made.cut_bytes.tolist(), [0, 0])
        self.assertEqual((made.type.tolist(), made.names), ([0, 0], ["layer 0", "layer 1"]))
        self.assertEqual(hbp.Layers([1, 2], [3, 4], type="vision").type.tolist(), [1, 1])
        self.assertEqual(hbp.Layers([1], type=np.array([2], np.uint8)).counts["fixed"], 1)

    def test_cut_type(self):
        """What a cut carries may grow with another size than the layer."""
        given = dict(forward_ns=[1000, 1000], backward_ns=[1000, 1000], cut_bytes=[1000, 0], type="vision")
        link = dict(link_bytes_per_s=1e9, vision_scale=[1.0], token_scale=[2.0])
        for cut_type, transfer in ((None, 1000), ("language", 2000), (["fixed", "vision"], 1000)):
            run = hbp.simulate_pipeline(hbp.Layers(**given, cut_type=cut_type), [0, 1, 2], **link)
            self.assertEqual(run.summary().total_ns, 4000 + 2 * transfer)

    def test_views_outlive_the_layers(self):
        column, types = hbp.Layers([7, 8, 9], type="fixed").forward_ns, hbp.Layers([1] * 3, type="fixed").type
        gc.collect()
        junk = [hbp.Layers(np.arange(3)) for _ in range(50)]
        self.assertEqual((column.tolist(), types.tolist(), len(junk)), ([7, 8, 9], [2, 2, 2], 50))

    def test_read(self):
        text = "name,type,forward_us,backward_ns,cut_bytes\npatches,vision,2,5000,70\nhead,0,3.5,6000,0\n"
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "layers.csv")
            path.write_text(text)
            read = hbp.Layers.read(path)
            path.write_text(text.replace("5000", "x"))
            with self.assertRaisesRegex(hbp.FormatError, "line 2"):
                hbp.Layers.read(path)
        self.assertEqual(read.forward_ns.tolist(), [2000, 3500])
        self.assertEqual((read.backward_ns.tolist(), read.cut_bytes.tolist()), ([5000, 6000], [70, 0]))
        self.assertEqual((read.type.tolist(), read.names), ([1, 0], ["patches", "head"]))
        with self.assertRaises(OSError):
            hbp.Layers.read("/no/such/file.csv")

    def test_errors(self):
        for error, words, given in (
            (ValueError, "backward_ns has 1 values; it must have 2", dict(backward_ns=[1])),
            (ValueError, "mlp_ns has 2 dimensions", dict(mlp_ns=[[1, 2]])),
            (TypeError, "cut_bytes holds float64", dict(cut_bytes=[1.0, 2.0])),
            (OverflowError, "parameters holds", dict(parameters=np.array([2**63, 1], np.uint64))),
            (ValueError, "type is 'text'", dict(type=["vision", "text"])),
            (ValueError, "cut_type has 3 values", dict(cut_type=["vision"] * 3)),
            (ValueError, "type of layer 1 is 7", dict(type=[1, 7])),
            (TypeError, "names is 'ab'", dict(names="ab")),
            (ValueError, "names has 1 values", dict(names=["a"])),
            (ValueError, "NUL", dict(names=["a", "b\0"])),
            (hbp.InvalidError, "state_bytes of layer 1 is -3", dict(state_bytes=[1, -3])),
            (TypeError, "colour", dict(colour=[1, 2])),
        ):
            with self.subTest(words), self.assertRaisesRegex(error, words):
                hbp.Layers([1, 2], **given)
        with self.assertRaises(hbp.InvalidError):
            hbp.Layers([])
        with self.assertRaisesRegex(TypeError, "hbp.Layers cannot be pickled"):
            pickle.dumps(hbp.Layers([1]))


class TestPartition(unittest.TestCase):
    def test_balanced(self):
        """DeepSpeed's own answers."""
        for times, stages, cuts in (
            ([1, 2, 3, 4, 5, 6, 7, 8], 3, [0, 4, 6, 8]),
            ([5, 1, 1, 1, 5, 1, 1, 1], 2, [0, 4, 8]),
            ([3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5], 4, [0, 5, 7, 10, 11]),
        ):
            made = hbp.partition_layers(hbp.Layers(times), stages=stages, micro_batches=4, method="balanced")
            self.assertEqual((made.cuts.tolist(), made.cuts.dtype, len(made)), (cuts, np.int32, stages))
            by = hbp.partition_layers(
                hbp.Layers([1] * len(times), parameters=times), stages=stages, micro_batches=4, method="parameters"
            )
            self.assertEqual(by.cuts.tolist(), cuts)
        uniform = hbp.partition_layers(hbp.Layers([9, 1, 1, 1]), stages=2, micro_batches=4, method="uniform")
        self.assertEqual((uniform.cuts.tolist(), uniform.stage_ns.tolist()), ([0, 2, 4], [30, 6]))

    def test_optimal(self):
        """Against every way to cut."""
        for seed in range(12):
            made = ragged(9, seed)
            whole = made.forward_ns + made.backward_ns
            for stages, count in ((2, 3), (3, 8), (4, 1)):
                found = hbp.partition_layers(made, stages=stages, micro_batches=count)
                least = min(
                    (count - 1) * max(sums) + sum(sums)
                    for sums in ([int(whole[a:b].sum()) for a, b in zip(cuts, cuts[1:])]
                                 for cuts in all_cuts(9, stages))
                )
                summary = found.summary()
                self.assertEqual((summary.predicted_ns, summary.bound_ns), (least, least))
                self.assertTrue(summary.proven)
                self.assertEqual(summary.bottleneck_ns, int(found.stage_ns.max()))
                self.assertEqual(int(found.stage_ns[summary.bottleneck]), summary.bottleneck_ns)

    def test_limits(self):
        made = hbp.Layers([4, 1, 1, 1], state_bytes=[10, 10, 10, 10])
        tight = hbp.partition_layers(made, stages=2, micro_batches=4, limit_bytes=20)
        self.assertEqual(tight.cuts.tolist(), [0, 2, 4])
        self.assertEqual(hbp.partition_layers(made, stages=2, micro_batches=4).cuts.tolist(), [0, 1, 4])
        uneven = hbp.partition_layers(made, stages=2, micro_batches=4, limit_bytes=[30, 10])
        self.assertEqual((uneven.cuts.tolist(), uneven.stage_bytes.tolist()), ([0, 3, 4], [30, 10]))
        with self.assertRaisesRegex(hbp.InfeasibleError, "stage"):
            hbp.partition_layers(made, stages=2, micro_batches=4, limit_bytes=19)

    def test_candidates(self):
        made = ragged(12, 3)
        found = hbp.partition_layers(made, stages=3, micro_batches=6, candidates=5, method="omnibal")
        listed = found.candidates()
        self.assertGreater(len(listed), 3)
        self.assertEqual(listed[0].cuts.tolist(), found.cuts.tolist())
        self.assertEqual(listed[0].simulated_ns, found.summary().simulated_ns)
        others = [one.simulated_ns for one in listed[1:]]
        self.assertEqual(others, sorted(others))
        names = {name for one in listed for name in one.ranked}
        self.assertEqual(names, {"variance", "communication"})
        whole = made.forward_ns + made.backward_ns
        for one in listed:
            self.assertEqual((int(one.cuts[0]), int(one.cuts[-1]), len(one.cuts)), (0, 12, 4))
            self.assertEqual(one.cut_bytes, int(made.cut_bytes[one.cuts[1:-1] - 1].sum()))
            sums = np.add.reduceat(whole, one.cuts[:-1])
            self.assertAlmostEqual(one.stage_variance, float(sums.var()), places=6)
            self.assertEqual(one.predicted_ns, 5 * int(sums.max()) + int(sums.sum()))
            run = hbp.simulate_pipeline(made, one.cuts, micro_batches=6)
            self.assertEqual(one.simulated_ns, run.summary().total_ns)
        cuts = listed[-1].cuts
        kept = cuts.tolist()
        del found, listed, one
        gc.collect()
        self.assertEqual(cuts.tolist(), kept)

    def test_uneven_micro_batches(self):
        made = ragged(10, 4)
        scales = dict(vision_scale=[0.2, 1.9, 0.5, 1.4], token_scale=[1.5, 0.3, 1.0, 1.2])
        plain = hbp.partition_layers(made, stages=3, **scales)
        self.assertEqual(plain.order.tolist(), [0, 1, 2, 3])
        self.assertEqual(plain.summary().micro_batches, 4)
        ordered = hbp.partition_layers(made, stages=3, order=True, **scales)
        self.assertEqual(sorted(ordered.order.tolist()), [0, 1, 2, 3])
        self.assertLessEqual(ordered.summary().simulated_ns, plain.summary().simulated_ns)
        again = hbp.simulate_pipeline(made, ordered.cuts, order=ordered.order, **scales)
        self.assertEqual(again.summary().total_ns, ordered.summary().simulated_ns)
        self.assertEqual(again.stage_busy_ns.tolist(), ordered.stage_busy_ns.tolist())
        self.assertEqual(again.stage_bytes.tolist(), ordered.stage_bytes.tolist())

    def test_virtual_stages(self):
        made = ragged(12, 6)
        found = hbp.partition_layers(made, stages=2, virtual_stages=3, micro_batches=4)
        self.assertEqual((len(found.cuts), len(found)), (7, 2))
        run = hbp.simulate_pipeline(made, found.cuts, virtual_stages=3, micro_batches=4)
        self.assertEqual(run.summary().total_ns, found.summary().simulated_ns)
        self.assertEqual(sorted(set(run.operation_chunks.tolist())), list(range(6)))
        self.assertEqual((run.operation_chunks % 2).tolist(), run.operation_stages.tolist())

    def test_print(self):
        found = hbp.partition_layers(hbp.Layers([1000] * 4), stages=2, micro_batches=2)
        self.assertEqual(repr(found), "<hbp.LayerPartition: 2 stages, cuts 0, 2, 4>")
        self.assertIn("the least there is", str(found.summary()))
        self.assertIn("bottleneck_ns=6000", repr(found.summary()))

    def test_errors(self):
        made = ragged(4)
        for error, words, given in (
            (ValueError, "token_scale has 2 values; it must have 3", dict(vision_scale=[1] * 3, token_scale=[1, 1])),
            (ValueError, "vision_time_scale has 1 values; it must have 2",
             dict(vision_time_scale=[1], micro_batches=2)),
            (ValueError, "speed has 3 values; it must have 2", dict(speed=[1, 1, 1])),
            (ValueError, "limit_bytes has 1 values; it must have 2", dict(limit_bytes=[1])),
            (TypeError, "limit_bytes holds float64", dict(limit_bytes=8e10)),
            (ValueError, "recompute has 3 values; it must have 4", dict(recompute=[0, 0, 0])),
            (ValueError, "recompute is 'some'", dict(recompute="some")),
            (ValueError, "method is 'best'", dict(method="best")),
            (TypeError, "micro_batches is 2.5", dict(micro_batches=2.5)),
            (hbp.InvalidError, "micro_batches is 0", dict(micro_batches=0)),
            (hbp.InvalidError, "token_scale of micro-batch 1 is nan", dict(token_scale=[1, float("nan")])),
            (hbp.InvalidError, "link_overlap is 2", dict(link_overlap=2)),
            (TypeError, "colour", dict(colour=1)),
        ):
            counted = {} if any(name.endswith("_scale") for name in given) else {"micro_batches": 3}
            with self.subTest(words), self.assertRaisesRegex(error, words):
                hbp.partition_layers(made, stages=2, **{**counted, **given})
        for stages in (0, -1, 5, 2**31 - 1):
            with self.assertRaisesRegex(ValueError, f"stages is {stages}"):
                hbp.partition_layers(made, stages=stages, micro_batches=2, limit_bytes=1)
        with self.assertRaisesRegex(TypeError, "layers is"):
            hbp.partition_layers([1, 2, 3], stages=2, micro_batches=2)
        with self.assertRaisesRegex(TypeError, "cannot be pickled"):
            pickle.dumps(hbp.partition_layers(made, stages=2, micro_batches=1))


class TestSimulate(unittest.TestCase):
    def test_operations(self):
        """Operation by operation against 1F1B written plainly."""
        made = ragged(9, 7)
        for stages, count in ((1, 3), (2, 5), (4, 2), (4, 9)):
            cuts = all_cuts(9, stages)[len(all_cuts(9, stages)) // 2]
            run = hbp.simulate_pipeline(made, cuts, micro_batches=count)
            rows = [[[int(column[a:b].sum())] * count for a, b in zip(cuts, cuts[1:])]
                    for column in (made.forward_ns, made.backward_ns)]
            wanted = run_1f1b(*rows, stages)
            columns = (
                run.operation_stages,
                run.operation_micro_batches,
                run.operation_directions,
                run.operation_starts,
                run.operation_ends,
            )
            found = {(s, m, d): (a, b) for s, m, d, a, b in zip(*(column.tolist() for column in columns))}
            self.assertEqual(found, wanted)
            self.assertEqual(run.operation_chunks.tolist(), run.operation_stages.tolist())
            summary = run.summary()
            total = max(end for _, end in wanted.values())
            self.assertEqual((summary.total_ns, summary.operations, len(run)), (total, 2 * count * stages, len(wanted)))
            self.assertEqual(int(run.stage_busy_ns.sum()), sum(map(sum, rows[0] + rows[1])))
            self.assertAlmostEqual(summary.bubble, 1 - int(run.stage_busy_ns.sum()) / (stages * total))
            self.assertLessEqual(summary.bound_ns, total)
            self.assertEqual(summary.peak_bytes, int(run.stage_bytes.max()))
        self.assertEqual(set(run.operation_directions.tolist()), set(DIRECTIONS.values()))

    def test_scales(self):
        """Vision layers grow with vision units, language layers with tokens, fixed ones with nothing."""
        made = hbp.Layers([1000, 100, 10], [0, 0, 0], type=["vision", "language", "fixed"])
        run = hbp.simulate_pipeline(made, [0, 3], vision_scale=[2, 0], token_scale=[3, 1])
        self.assertEqual(int(run.stage_busy_ns[0]), 2 * 1000 + 4 * 100 + 2 * 10)
        apart = hbp.simulate_pipeline(
            made, [0, 3], vision_scale=[2, 0], vision_time_scale=[5, 0], token_scale=[3, 1], token_time_scale=[0, 0]
        )
        self.assertEqual(int(apart.stage_busy_ns[0]), 5 * 1000 + 2 * 10)
        fast = hbp.simulate_pipeline(made, [0, 1, 3], speed=[2.0, 0.5], micro_batches=1)
        self.assertEqual(fast.stage_busy_ns.tolist(), [500, 220])

    def test_order(self):
        made = ragged(6, 8)
        scales = dict(vision_scale=[0.1, 2.0, 0.7, 1.2], token_scale=[1.9, 0.4, 1.0, 0.7])
        totals = {order: hbp.simulate_pipeline(made, [0, 2, 4, 6], order=order, **scales).summary().total_ns
                  for order in itertools.permutations(range(4))}
        found = hbp.order_micro_batches(made, [0, 2, 4, 6], **scales)
        self.assertEqual(found.before_ns, totals[0, 1, 2, 3])
        self.assertEqual(found.after_ns, min(totals.values()))
        self.assertEqual((totals[tuple(found.order.tolist())], found.order.dtype), (found.after_ns, np.int32))
        self.assertLess(found.after_ns, found.before_ns)
        run = hbp.simulate_pipeline(made, [0, 2, 4, 6], order=[3, 1, 0, 2], **scales)
        first = run.operation_micro_batches[(run.operation_stages == 0) & (run.operation_directions == 0)]
        self.assertEqual(first.tolist(), [3, 1, 0, 2])

    def test_files(self):
        made = ragged(6)
        scales = dict(token_scale=[4.0, 1.0, 3.0, 2.0])
        run = hbp.simulate_pipeline(made, [0, 2, 4, 6], order=[3, 1, 0, 2], **scales)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "run")
            run.save(path)
            back = hbp.PipelineRun.load(path)
            self.assertEqual(str(back.summary()), str(run.summary()))
            self.assertEqual((back.summary().virtual_stages, back.summary().micro_batches), (1, 4))
            self.assertEqual(back.operation_starts.tolist(), run.operation_starts.tolist())
            back.validate()
            back.validate(made, [0, 2, 4, 6], **scales)
            with self.assertRaisesRegex(hbp.InvalidError, "the layers make it"):
                back.validate(made, [0, 1, 4, 6], **scales)
            with self.assertRaisesRegex(hbp.InvalidError, "micro_batches is 3; the run is of 4"):
                back.validate(made, [0, 2, 4, 6], micro_batches=3)
            run.trace(path)
            events = [event for event in json.loads(path.read_text())["traceEvents"] if event["ph"] == "X"]
            self.assertEqual([event["tid"] - 1 for event in events], run.operation_stages.tolist())
            run.write_json(path)
            read = json.loads(path.read_text())
            self.assertEqual(read["columns"]["operation_ends"], run.operation_ends.tolist())
            self.assertEqual((read["digest"], read["bubble"]), (f"{run.summary().digest:016x}", run.summary().bubble))
            with self.assertRaisesRegex(hbp.FormatError, "not a file of a pipeline's run"):
                hbp.PipelineRun.load(path)
        again = pickle.loads(pickle.dumps(run))
        self.assertEqual(again.summary().digest, run.summary().digest)

    def test_views_outlive_the_run(self):
        made = ragged(6)
        ends = hbp.simulate_pipeline(made, [0, 3, 6], micro_batches=4).operation_ends
        kept = ends.tolist()
        gc.collect()
        junk = [hbp.simulate_pipeline(made, [0, 1, 6], micro_batches=4) for _ in range(30)]
        self.assertEqual((ends.tolist(), len(junk)), (kept, 30))
        self.assertFalse(ends.flags.writeable)
        self.assertIn("16 operations", str(junk[0].summary()))
        self.assertEqual(repr(junk[0]), "<hbp.PipelineRun: 16 operations on 2 stages>")

    def test_errors(self):
        made = ragged(4)
        for error, words, cuts, given in (
            (ValueError, "cuts has 1 values", [4], {}),
            (ValueError, "cuts has 4 values.*virtual_stages is 2", [0, 1, 2, 4], dict(virtual_stages=2)),
            (ValueError, "virtual_stages is -1", [0, 1, 2, 4], dict(virtual_stages=-1)),
            (TypeError, "cuts holds float64", [0.0, 4.0], {}),
            (ValueError, "cuts has 2 dimensions", [[0, 4]], {}),
            (ValueError, "stages is 5", [0, 1, 2, 3, 4, 4], {}),
            (hbp.InvalidError, "cut 1 is 3 and cut 2 is 2", [0, 3, 2, 4], {}),
            (hbp.InvalidError, "5", [0, 2, 5], {}),
            (ValueError, "order has 2 values; it must have 3", [0, 2, 4], dict(order=[0, 1])),
            (hbp.InvalidError, "order of place 1 is 0", [0, 2, 4], dict(order=[0, 0, 2])),
            (TypeError, "stages", [0, 2, 4], dict(stages=2)),
        ):
            with self.subTest(words), self.assertRaisesRegex(error, words):
                hbp.simulate_pipeline(made, cuts, **{"micro_batches": 3, **given})
        with self.assertRaisesRegex(TypeError, "cuts is 4; it must be a sequence of integers"):
            hbp.order_micro_batches(made, 4, micro_batches=2)
        with self.assertRaisesRegex(TypeError, "layers is"):
            hbp.order_micro_batches(hbp.Model.preset("llama-3.1-8b"), [0, 4], micro_batches=2)


class TestRecompute(unittest.TestCase):
    def test_optimal(self):
        """The least time that fits, of all choices of all layers, on one stage: micro-batches do not overlap."""
        for seed in range(3):
            made = ragged(5, seed)
            freed = {0: made.activation_bytes * 0, 1: made.attention_bytes, 2: made.mlp_bytes,
                     3: made.activation_bytes - made.recomputed_bytes}
            added = {0: made.attention_ns * 0, 1: made.attention_ns, 2: made.mlp_ns, 3: made.recompute_ns}
            whole = int(made.state_bytes.sum() + made.activation_bytes.sum())
            working = {0: made.attention_ns * 0, 1: made.attention_bytes, 2: made.mlp_bytes, 3: made.working_bytes}

            def need(choices):
                rows = list(enumerate(choices))
                return whole - sum(int(freed[c][i]) for i, c in rows) + max(int(working[c][i]) for i, c in rows)

            def time(choices):
                return sum(int(added[c][i]) for i, c in enumerate(choices))

            ways = [(need(choices), time(choices)) for choices in itertools.product(range(4), repeat=5)]
            for limit in (whole, whole - 40, whole - 90, whole - 120):
                least = min((ns for size, ns in ways if size <= limit), default=None)
                if least is None:
                    with self.assertRaises(hbp.InfeasibleError):
                        hbp.choose_recompute(made, [0, 5], micro_batches=2, limit_bytes=limit)
                    continue
                choices, report = hbp.choose_recompute(made, [0, 5], micro_batches=2, limit_bytes=limit)
                self.assertEqual((report.recompute_ns, time(choices.tolist())), (least, least))
                self.assertEqual((bool(report.proven), report.slack_bytes), (True, limit - need(choices.tolist())))
                self.assertEqual(report.saved_ns, int(made.recompute_ns.sum()) - least)
                self.assertEqual(report.recomputed, int((choices == layers_module.RECOMPUTE["layer"]).sum()))
                self.assertEqual(report.selective, int(((choices == 1) | (choices == 2)).sum()))
                run = hbp.simulate_pipeline(made, [0, 5], micro_batches=2, recompute=choices)
                self.assertEqual(int(run.stage_bytes[0]), need(choices.tolist()))
                self.assertEqual(int(run.stage_busy_ns[0]),
                                 2 * (int(made.forward_ns.sum() + made.backward_ns.sum()) + least))

    def test_methods(self):
        made = ragged(8, 2)
        cuts = [0, 4, 8]
        every, report = hbp.choose_recompute(made, cuts, method="all", micro_batches=4)
        self.assertEqual((every.tolist(), report.slack_bytes, report.saved_ns), ([3] * 8, 2**63 - 1, 0))
        self.assertIn("no limit", str(report))
        none = hbp.choose_recompute(made, cuts, method="none", micro_batches=4)
        self.assertEqual((none.choices.tolist(), none.report.recomputed), ([0] * 8, 0))
        run = hbp.simulate_pipeline(made, cuts, micro_batches=4, recompute="layer")
        self.assertEqual(
            int(run.stage_busy_ns.sum()), 4 * int((made.forward_ns + made.backward_ns + made.recompute_ns).sum())
        )
        limit = int(run.stage_bytes.max())
        with self.assertRaisesRegex(hbp.InfeasibleError, "stage"):
            hbp.choose_recompute(made, cuts, method="none", micro_batches=4, limit_bytes=limit)
        with self.assertRaisesRegex(hbp.InfeasibleError, "stage"):
            hbp.choose_recompute(made, cuts, micro_batches=4, limit_bytes=int(run.stage_bytes.min()) // 4)
        whole = hbp.choose_recompute(made, cuts, selective="neither", micro_batches=4, limit_bytes=limit + 60)
        self.assertEqual(whole.report.selective, 0)
        both = hbp.choose_recompute(made, cuts, micro_batches=4, limit_bytes=limit + 60)
        self.assertLessEqual(both.report.recompute_ns, whole.report.recompute_ns)

    def test_published_rule(self):
        """On each stage floor(free / y) - 1 language layers are released and, if those are all, vision layers
        from what is left; the first layers of a stage stay recomputed."""
        made = hbp.Layers([10] * 10, type=["vision"] * 4 + ["language"] * 6, activation_bytes=[100] * 10,
                          recomputed_bytes=[10] * 10)
        for free, wanted in (
            ([270, 0], [3, 3, 3, 3, 0, 0, 3, 3, 3, 3]),
            ([269, 300], [3, 3, 3, 3, 3, 0, 3, 3, 0, 0]),
            ([500, 1000], [3, 3, 0, 0, 0, 0, 0, 0, 0, 0]),
        ):
            choices, _ = hbp.choose_recompute(
                made, [0, 6, 10], method="omnibal", micro_batches=1, measured_free_bytes=free,
                measured_vision_bytes=90, measured_language_bytes=90,
            )
            self.assertEqual(choices.tolist(), wanted)

    def test_layer_bytes(self):
        fitted = hbp.fit_layer_bytes([10, 0], [2, 12], [10 * 300 + 2 * 500, 12 * 500])
        self.assertEqual((fitted.vision_bytes, fitted.language_bytes), (300, 500))
        with self.assertRaisesRegex(hbp.InfeasibleError, "cannot separate"):
            hbp.fit_layer_bytes([1, 2], [1, 2], [5, 10])
        with self.assertRaisesRegex(ValueError, "language_layers has 3 values; it must have 2"):
            hbp.fit_layer_bytes([1, 2], [1, 2, 3], [5, 10])
        with self.assertRaisesRegex(TypeError, "freed_bytes holds float64"):
            hbp.fit_layer_bytes([1, 2], [2, 1], [5.0, 10.0])

    def test_errors(self):
        made = ragged(4)
        for error, words, given in (
            (TypeError, "recompute", dict(recompute="layer")),
            (ValueError, "method is 'most'", dict(method="most")),
            (ValueError, "selective is 'all'", dict(selective="all")),
            (ValueError, "measured_free_bytes has 1 values; it must have 2", dict(measured_free_bytes=[1])),
            (hbp.InvalidError, "measured_vision_bytes is -1", dict(measured_vision_bytes=-1)),
        ):
            with self.subTest(words), self.assertRaisesRegex(error, words):
                hbp.choose_recompute(made, [0, 2, 4], micro_batches=2, **given)


if __name__ == "__main__":
    unittest.main()

"""Graphs of many tasks, schedules of them and their runs on paper: against the promises written plainly."""

import copy
import gc
import json
import pickle
import tempfile
import threading
import unittest
from pathlib import Path

import numpy as np

import hbp

METHODS, PLACEMENTS = list(hbp.methods(of="tasks")), list(hbp.methods(of="placement"))

GOLDEN = Path(__file__).resolve().parents[3] / "tests" / "golden" / "tasks.msgpack"


def machine(nodes: int = 1) -> hbp.Machine:
    return hbp.Machine.preset("a100-80", nodes=nodes)


def two_tasks(layers: int = 4) -> hbp.Graph:
    """Audio and text into one language model, vision and text into another; both models share weights."""
    graph = hbp.Graph()
    for task, front, batch in (("listen", "audio", 8), ("see", "vision", 4)):
        chains = []
        for kind, work, sequence in ((front, 4_000_000, 229), ("text", 1_500_000, 77), ("lm", 12_000_000, 512)):
            profile = graph.add_profile({n: work * batch // n + 50_000 for n in (1, 2, 4, 8)})
            chains.append(graph.add_operators(
                kind, task, count=layers, name=f"{task}/{kind}", parameters=f"{kind}s", profile=profile, batch=batch,
                sequence=sequence, width=768, split=12, state_bytes=10**8, sharded_bytes=10**9,
                activation_bytes=10**9, output_bytes=batch * sequence * 1536, gradient_bytes=10**7))
        for chain in chains[:2]:
            graph.add_edge(chain[-1], chains[2][0])
    return graph


def drawn(seed: int) -> hbp.Graph:
    """A random graph whose edges go from lower to higher numbers."""
    rng = np.random.default_rng(seed)
    graph, ends = hbp.Graph(), []
    for task in range(int(rng.integers(1, 5))):
        for chain in range(int(rng.integers(1, 5))):
            base = int(rng.integers(10**5, 10**7))
            profile = graph.add_profile([1, 2, 4, 8], [base, base // 2 + 999, base // 3 + 999, base // 4 + 999])
            added = graph.add_operators(
                f"kind {rng.integers(3)}", f"task {task}", count=int(rng.integers(1, 7)), profile=profile,
                batch=int(2 ** rng.integers(0, 5)), split=int(2 ** rng.integers(3, 5)), state_bytes=10**6,
                output_bytes=int(rng.integers(10**4, 10**8)), gradient_bytes=10**6)
            for before in rng.choice(len(ends), min(len(ends), int(rng.integers(0, 3))), replace=False):
                graph.add_edge(ends[int(before)], added[0])
            ends.append(added[-1])
    return graph


def time_range(profile: hbp.Profile, gpus: int) -> "tuple[int, int]":
    """Between which times an operator lies on so many GPUs: both the same where it was profiled."""
    least = np.minimum.accumulate(profile.ns)
    below = int(np.searchsorted(profile.gpus, gpus, "right")) - 1
    above = below if profile.gpus[below] == gpus else below + 1
    return int(least[above]), int(least[below])


class TestGraph(unittest.TestCase):
    def test_fields(self):
        graph = hbp.Graph()
        self.assertEqual((len(graph), graph.tasks, graph.edges, graph.operator_tasks.tolist()), (0, [], [], []))
        profile = graph.add_profile([1, 4], [900, 300])
        self.assertEqual(graph.add_profile({2: 40, 1: 70}), profile + 1)
        fields = dict(profile=profile, batch=8, sequence=77, width=768, degrees="profiled", least_gpus=2, split=12,
                      state_bytes=1, sharded_bytes=2, activation_bytes=3, output_bytes=4, gradient_bytes=5)
        self.assertEqual(graph.add_operators("text", "été", name="t", parameters="w", **fields), range(0, 1))
        self.assertEqual(graph.add_operators("lm", "b", count=3, profile=None, name="lm"), range(1, 4))
        self.assertEqual(graph.operator(0), hbp.Operator(name="t", type="text", task="été", parameters="w", **fields))
        last = graph.operator(-1)
        self.assertEqual((last.name, last.profile, last.batch, last.degrees), ("lm[2]", None, 1, "profiled"))
        graph.add_edge(0, 1, bytes=77)
        self.assertEqual(graph.edges, [(1, 2, 0), (2, 3, 0), (0, 1, 77)])
        graph.add_edge(np.int64(0), 3)
        self.assertEqual(graph.edges[-1], hbp.Edge(source=0, to=3, bytes=4))
        self.assertEqual((graph.tasks, graph.operator_tasks.tolist()), (["été", "b"], [0, 1, 1, 1]))
        self.assertEqual(len(set(graph.operator_parameters.tolist())), 4)
        self.assertEqual(graph.parameters[0], "w")
        self.assertEqual([(p.gpus.tolist(), p.ns.tolist()) for p in graph.profiles],
                         [([1, 4], [900, 300]), ([1, 2], [70, 40])])
        self.assertEqual(repr(graph), "<hbp.Graph: 4 operators of 2 tasks, 4 edges>")

    def test_arrays_are_copies(self):
        graph = hbp.Graph()
        graph.add_operators("a", "t", profile=graph.add_profile([1], [5]))
        tasks, profile = graph.operator_tasks, graph.profile(0)
        for _ in range(200):
            graph.add_operators("a", "u", profile=graph.add_profile([1], [6]))
        del graph
        gc.collect()
        self.assertEqual((tasks.tolist(), profile.ns.tolist()), ([0], [5]))

    def test_what_is_wrong(self):
        graph = two_tasks()
        cases = (
            (ValueError, "ns has 1 values", lambda: graph.add_profile([1, 2], [3])),
            (TypeError, "ns is missing", lambda: graph.add_profile([1, 2])),
            (TypeError, "beside a mapping", lambda: graph.add_profile({1: 2}, [3])),
            (hbp.InvalidError, "", lambda: graph.add_profile([2, 1], [3, 4])),
            (hbp.InvalidError, "", lambda: graph.add_profile([], [])),
            (hbp.InvalidError, "", lambda: graph.add_profile([1], [0])),
            (OverflowError, "gpus", lambda: graph.add_profile([2**31], [1])),
            (TypeError, "ns holds", lambda: graph.add_profile([1], ["fast"])),
            (hbp.InvalidError, "listen/text\\[0\\]",
             lambda: graph.add_operators("a", "t", name="listen/text[0]", profile=0)),
            (hbp.InvalidError, "profile", lambda: graph.add_operators("a", "t", profile=99)),
            (ValueError, "degrees is 'any'", lambda: graph.add_operators("a", "t", profile=0, degrees="any")),
            (OverflowError, "batch is", lambda: graph.add_operators("a", "t", profile=0, batch=2**63)),
            (ValueError, "NUL", lambda: graph.add_operators("a\0", "t", profile=0)),
            (hbp.InvalidError, "", lambda: graph.add_operators("a", "t", profile=0, count=0)),
            (hbp.InvalidError, "", lambda: graph.add_edge(0, 999)),
            (hbp.InvalidError, "", lambda: graph.add_edge(3, 3)),
            (ValueError, "bytes is -1", lambda: graph.add_edge(0, 5, bytes=-1)),
            (IndexError, "", lambda: graph.operator(24)),
            (hbp.InvalidError, "", lambda: graph.profile(6)),
        )
        for error, text, action in cases:
            with self.subTest(text), self.assertRaisesRegex(error, text):
                action()
        self.assertEqual((len(graph), len(graph.edges), len(graph.profiles)), (24, 22, 6))

    def test_check(self):
        two_tasks().check()
        with self.assertRaises(hbp.InvalidError):
            hbp.Graph().check()
        graph = two_tasks()
        graph.add_edge(11, 0)
        with self.assertRaisesRegex(hbp.InvalidError, "listen/audio"):
            graph.check()
        graph = two_tasks()
        graph.add_operators("a", "t", name="lost", profile=None)
        with self.assertRaisesRegex(hbp.InvalidError, "lost"):
            graph.check()
        with self.assertRaisesRegex(hbp.InvalidError, "lost"):
            hbp.plan_tasks(graph, machine())

    def test_files(self):
        graph = two_tasks()
        graph.add_operators("new", "été", profile=None)
        with tempfile.TemporaryDirectory() as folder:
            for name, keywords, is_json in (("g.json", {}, True), ("g.msgpack", {}, False),
                                            ("g.json", {"format": "msgpack"}, False), ("g", {"format": "json"}, True)):
                path = Path(folder, name)
                graph.save(path, **keywords)
                self.assertEqual(path.read_bytes()[:1] == b"{", is_json)
                again = hbp.Graph.read(path)
                for index in range(len(graph)):
                    self.assertEqual(again.operator(index), graph.operator(index))
                self.assertEqual((sorted(again.edges), again.tasks), (sorted(graph.edges), graph.tasks))
            json.loads(Path(folder, "g").read_text())
            Path(folder, "g").write_text('{"format": ')
            with self.assertRaises(hbp.FormatError):
                hbp.Graph.read(Path(folder, "g"))
            with self.assertRaises(hbp.SystemFailure):
                hbp.Graph.read(Path(folder, "none"))
            with self.assertRaisesRegex(ValueError, "format is 'xml'"):
                graph.save(path, format="xml")
        again = pickle.loads(pickle.dumps(graph))
        self.assertEqual([again.operator(i) for i in range(25)], [graph.operator(i) for i in range(25)])

    def test_workloads(self):
        found = hbp.Graph.workloads()
        self.assertEqual(set(found), {"clip-4", "clip-7", "clip-10", "ofasys-4", "ofasys-7", "qwen-val-3",
                                      "qwen-val-3-30b"})
        for name, parameters in found.items():
            graph = hbp.Graph.workload(name, machine())
            graph.check()
            self.assertEqual(len(graph.tasks), int(name.split("-val-")[-1].split("-")[0 if "val" in name else 1]))
            self.assertGreater(parameters, 5e8)
        with self.assertRaisesRegex(hbp.InvalidError, "clip-5"):
            hbp.Graph.workload("clip-5", machine())


class TestPlan(unittest.TestCase):
    def check(self, graph: hbp.Graph, schedule: hbp.TaskSchedule, gpus: int) -> None:
        """Every operator once, on ranks that are free, for the time of its profile, after what it needs."""
        end = np.full(len(graph), -1)
        start = np.full(len(graph), -1)
        busy = {rank: [] for rank in range(gpus)}
        for piece in schedule:
            operators, ranks = piece.operators.tolist(), piece.ranks.tolist()
            self.assertEqual(ranks, sorted(set(ranks)))
            self.assertEqual((len(ranks), len(operators)), (piece.gpus, len(piece)))
            self.assertTrue(set(ranks) <= set(range(gpus)))
            first = graph.operator(operators[0])
            self.assertEqual((piece.task, (first.batch * first.split) % piece.gpus), (first.task, 0))
            least, most = time_range(graph.profile(first.profile), piece.gpus)
            span = piece.end_ns - piece.start_ns
            self.assertEqual(span % len(operators), 0)
            self.assertTrue(least <= span // len(operators) <= most)
            for place, operator in enumerate(operators):
                self.assertEqual(end[operator], -1)
                start[operator] = piece.start_ns + place * span // len(operators)
                end[operator] = piece.start_ns + (place + 1) * span // len(operators)
            for rank in ranks:
                busy[rank].append((piece.start_ns, piece.end_ns))
        self.assertTrue((end > start).all())
        for edge in graph.edges:
            self.assertLessEqual(end[edge.source], start[edge.to])
        for rank, spans in busy.items():
            spans.sort()
            self.assertTrue(all(a[1] <= b[0] for a, b in zip(spans, spans[1:])), rank)
            self.assertEqual(sum(b - a for a, b in spans), schedule.rank_busy_ns[rank])
        summary = schedule.summary()
        self.assertEqual(summary.makespan_ns, end.max())
        self.assertLessEqual(summary.bound_ns, summary.makespan_ns)
        self.assertAlmostEqual(summary.gap, summary.makespan_ns / summary.bound_ns - 1)
        self.assertEqual(summary.peak_bytes, schedule.rank_bytes.max())

    def test_every_method(self):
        makespans = {}
        for seed in range(4):
            graph = two_tasks() if not seed else drawn(seed)
            for method in METHODS:
                for placement in PLACEMENTS:
                    schedule = hbp.plan_tasks(graph, machine(), method=method, placement_method=placement)
                    self.check(graph, schedule, 8)
                    schedule.validate(graph, machine())
                    summary = schedule.summary()
                    self.assertEqual((summary.method, summary.placement_method), (method, placement))
                    self.assertIn(f"placement_method={placement!r}", repr(summary))
                    makespans[method] = summary.makespan_ns
            self.assertLessEqual(makespans["overlap"], makespans["spindle"])

    def test_columns(self):
        graph = two_tasks()
        schedule = hbp.plan_tasks(graph, machine(nodes=2))
        summary, waves = schedule.summary(), schedule.wave_offsets
        self.check(graph, schedule, 16)
        self.assertEqual((summary.gpus, summary.operators, summary.tasks, summary.meta_ops), (16, 24, 2, 6))
        self.assertEqual((len(schedule), len(waves), len(schedule.rank_bytes)),
                         (summary.slices, summary.waves + 1, 16))
        self.assertEqual(sorted(schedule.operators.tolist()), list(range(24)))
        self.assertEqual(sum(len(schedule.wave(w)) for w in range(summary.waves)), len(schedule))
        self.assertEqual(schedule.wave(-1)[-1].index, len(schedule) - 1)
        for piece in schedule:
            self.assertTrue(waves[piece.wave] <= piece.index < waves[piece.wave + 1])
            self.assertEqual(piece.name, graph.operator(schedule.operators[
                schedule.meta_op_offsets[piece.meta_op]]).name)
            for rank in range(16):
                self.assertEqual(rank in piece.ranks,
                                 piece.index in [other.index for other in schedule.for_rank(rank)])
        self.assertEqual(len({tuple(group) for group in schedule.groups()}), summary.groups)
        self.assertEqual([schedule.parameters_name(p) for p in range(summary.parameters)], graph.parameters)
        self.assertEqual([schedule.task_name(t) for t in range(2)], ["listen", "see"])
        for offsets in (schedule.level_ns, schedule.parameter_groups, schedule.meta_op_levels):
            self.assertFalse(offsets.flags.writeable)
        self.assertIn("2 tasks, 24 operators", str(summary))
        self.assertIn("slices on 16 GPUs", repr(schedule))
        for action in (lambda: schedule[len(schedule)], lambda: schedule.task_name(2), lambda: schedule.group(99),
                       lambda: schedule.for_rank(16), lambda: schedule.wave(99)):
            self.assertRaises(IndexError, action)

    def test_views_outlive_the_schedule(self):
        schedule = hbp.plan_tasks(two_tasks(), machine())
        ends, ranks = schedule.slice_ends, schedule[0].ranks
        wanted = ends.tolist(), ranks.tolist()
        del schedule
        gc.collect()
        junk = [hbp.TaskSchedule.load(GOLDEN) for _ in range(50)]
        self.assertEqual(((ends.tolist(), ranks.tolist()), len(junk)), (wanted, 50))

    def test_the_same_everywhere(self):
        graph, found = drawn(9), []
        first = hbp.plan_tasks(graph, machine()).digest
        threads = [threading.Thread(target=lambda: found.append(hbp.plan_tasks(graph, machine()).digest))
                   for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(found, [first] * 4)
        self.assertNotEqual(hbp.plan_tasks(graph, machine(), method="sequential").digest, first)

    def test_files(self):
        graph = two_tasks()
        schedule = hbp.plan_tasks(graph, machine())
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "tasks.msgpack")
            schedule.save(path)
            again = hbp.TaskSchedule.load(path)
            again.validate(graph, machine())
            self.assertEqual((again.digest, again.summary()), (schedule.digest, schedule.summary()))
            data = bytearray(path.read_bytes())
            data[len(data) // 2] ^= 1
            path.write_bytes(data)
            with self.assertRaisesRegex(hbp.FormatError, "byte"):
                hbp.TaskSchedule.load(path)
        again = pickle.loads(pickle.dumps(schedule))
        self.assertEqual(again.slice_starts.tolist(), schedule.slice_starts.tolist())
        self.assertEqual(hbp.TaskSchedule.load(GOLDEN).summary().slices, 15)

    def test_wrong_graphs_and_machines(self):
        schedule = hbp.plan_tasks(two_tasks(), machine())
        with self.assertRaisesRegex(hbp.InvalidError, "digest"):
            schedule.validate(two_tasks(5), machine())
        with self.assertRaisesRegex(hbp.InvalidError, "GPUs"):
            schedule.validate(two_tasks(), machine(nodes=2))

    def test_memory(self):
        graph = two_tasks()
        free = hbp.plan_tasks(graph, machine(), limit_bytes=-1)
        peak = free.summary().peak_bytes
        self.assertEqual(free.summary().limit_bytes, 0)
        self.assertEqual(hbp.plan_tasks(graph, machine(), limit_bytes=peak).summary().limit_bytes, peak)
        hbm = machine().fields.hbm_bytes
        self.assertEqual(hbp.plan_tasks(graph, machine()).summary().limit_bytes, hbm - (4 << 30))
        self.assertEqual(hbp.plan_tasks(graph, machine(), reserve_bytes=0).summary().limit_bytes, hbm)
        with self.assertRaises(hbp.InfeasibleError):
            hbp.plan_tasks(graph, machine(), limit_bytes=10**8)

    def test_previous(self):
        before = hbp.plan_tasks(two_tasks(), machine())
        after = two_tasks()
        after.add_operators("head", "third", profile=after.add_profile({1: 10**6, 8: 10**6}), state_bytes=10**7)
        schedule = hbp.plan_tasks(after, machine(), previous=before)
        self.check(after, schedule, 8)
        summary = schedule.summary()
        self.assertGreater(summary.kept_bytes, 0)
        self.assertIn("reused in place", str(summary))
        self.assertEqual(before.summary().kept_bytes, 0)
        with self.assertRaisesRegex(TypeError, "hbp.TaskSchedule"):
            hbp.plan_tasks(after, machine(), previous=after)

    def test_arguments(self):
        graph = two_tasks()
        for error, text, keywords in ((ValueError, "method is 'fast'", {"method": "fast"}),
                                      (ValueError, "placement_method is 'any'", {"placement_method": "any"}),
                                      (hbp.InvalidError, "effort", {"effort": 10}),
                                      (OverflowError, "seed", {"seed": -1})):
            with self.assertRaisesRegex(error, text):
                hbp.plan_tasks(graph, machine(), **keywords)
        with self.assertRaisesRegex(TypeError, "expected hbp.Graph"):
            hbp.plan_tasks(machine(), graph)

    def test_progress(self):
        seen = []
        hbp.plan_tasks(drawn(5), machine(), progress=seen.append)
        self.assertGreater(len(seen), 1)
        with self.assertRaises(hbp.CancelledError):
            hbp.plan_tasks(drawn(5), machine(), progress=lambda now: True)


class TestRun(unittest.TestCase):
    def test_runs(self):
        for seed in range(6):
            graph = drawn(seed)
            schedule = hbp.plan_tasks(graph, machine(), method=METHODS[seed])
            plain = hbp.simulate_tasks(graph, machine(), schedule, free_transfers=True, free_gradients=True)
            real = hbp.simulate_tasks(graph, machine(), schedule)
            barred = hbp.simulate_tasks(graph, machine(), schedule, barriers=True)
            spans = schedule.slice_ends - schedule.slice_starts
            for run in (plain, real, barred):
                self.assertEqual((run.slice_ends - run.slice_starts).tolist(), spans.tolist())
                self.assertEqual(run.summary().slices_ns, run.slice_ends.max())
                self.assertEqual(run.summary().total_ns, run.slice_ends.max() + run.summary().gradient_ns)
            self.assertTrue((plain.slice_starts <= schedule.slice_starts).all())
            self.assertTrue((plain.slice_starts <= real.slice_starts).all())
            self.assertTrue((real.slice_starts <= barred.slice_starts).all())
            self.assertEqual((plain.summary().gradient_ns, plain.summary().transfer_ns), (0, 0))
            for wave in range(1, schedule.summary().waves):
                first, end = schedule.wave_offsets[wave : wave + 2]
                self.assertGreaterEqual(barred.slice_starts[first:end].min(), barred.slice_ends[:first].max())
            self.assertEqual(real.summary().moved_bytes, schedule.summary().moved_bytes)
            self.assertIn("on 8 GPUs", str(real.summary()))
            self.assertIn(f"{len(schedule)} slices", repr(real))

    def test_trace(self):
        graph = two_tasks()
        schedule = hbp.plan_tasks(graph, machine())
        run = hbp.simulate_tasks(graph, machine(), schedule)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "trace.json")
            for given, starts in ((None, schedule.slice_starts), (run, run.slice_starts)):
                schedule.trace(path, given)
                events = [event for event in json.loads(path.read_text())["traceEvents"] if event["ph"] == "X"]
                self.assertEqual(len(events), int(schedule.slice_gpus.sum()))
                for event in events:
                    piece = schedule[event["args"]["slice"]]
                    self.assertEqual(event["name"], f"{piece.name} x {len(piece)}")
                    self.assertEqual((event["cat"], round(event["ts"] * 1000)), (piece.task, starts[piece.index]))
                    self.assertIn(event["tid"] - 1, piece.ranks)
            other = hbp.TaskSchedule.load(GOLDEN)
            with self.assertRaisesRegex(ValueError, "the run is of schedule"):
                other.trace(path, run)
            with self.assertRaisesRegex(TypeError, "hbp.TaskRun"):
                schedule.trace(path, schedule)

    def test_files(self):
        graph = two_tasks()
        schedule = hbp.plan_tasks(graph, machine())
        run = hbp.simulate_tasks(graph, machine(), schedule, barriers=True)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "run")
            run.save(path)
            back = hbp.TaskRun.load(path)
            self.assertEqual(back.slice_ends.tolist(), run.slice_ends.tolist())
            back.validate()
            back.validate(graph, machine(), schedule, barriers=True)
            with self.assertRaisesRegex(hbp.InvalidError, "the schedule makes it"):
                back.validate(graph, machine(), schedule, barriers=True, free_gradients=True)
            with self.assertRaisesRegex(hbp.InvalidError, "the run is of a schedule with digest"):
                back.validate(graph, machine(), hbp.TaskSchedule.load(GOLDEN))
            for made, columns in ((run, ("slice_starts", "slice_ends")), (schedule, ("slice_gpus", "wave_offsets"))):
                made.write_json(path)
                read = json.loads(path.read_text())
                for name in columns:
                    self.assertEqual(read["columns"][name], getattr(made, name).tolist())
            with self.assertRaisesRegex(hbp.FormatError, "not a file of a run of tasks"):
                hbp.TaskRun.load(GOLDEN)

    def test_pickle_and_copy(self):
        graph = drawn(1)
        run = hbp.simulate_tasks(graph, machine(), hbp.plan_tasks(graph, machine()))
        again = pickle.loads(pickle.dumps(run))
        self.assertEqual(str(again.summary()), str(run.summary()))
        self.assertEqual(again.summary().digest, run.summary().digest)
        again = copy.deepcopy(graph)
        again.add_profile([1], [1])
        self.assertEqual(len(again.profiles), len(graph.profiles) + 1)


if __name__ == "__main__":
    unittest.main()

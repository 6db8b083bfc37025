"""Timelines: columns in and out, files, comparing, fitting, traces."""

import gc
import json
import pickle
import tempfile
import unittest
from pathlib import Path

import numpy as np
import samples

import hbp

ROWS = dict(
    step=[0, 0, 1, 1],
    micro_batch=[0, 0, 0, 1],
    first_rank=[0, 4, 0, 0],
    sp=[4, 1, 8, 8],
    recompute=[0, 2, 0, 0],
    tokens=[4000, 0, 16000, 9000],
    sum_squares=[5_000_000, 0, 256_000_000, 9_000_000],
    time_ns=[120_000_000, 7, 400_000_000, 300_000_000],
)
OPTIONAL = dict(
    samples=[3, 0, 1, 9],
    start_ns=[5, 5, 120_000_010, 520_000_010],
    communication_ns=[1000, 0, 4000, 3000],
    peak_bytes=[20 << 30, 0, 50 << 30, 40 << 30],
)


def measured(plan: hbp.Plan, scale: float, steps: int) -> hbp.Timeline:
    """A run of the first steps of a plan in which everything took `scale` times what was predicted."""
    micro_batch_of = np.repeat(np.arange(len(plan.micro_batch_offsets) - 1), np.diff(plan.micro_batch_offsets))
    step_of = np.searchsorted(plan.step_offsets, micro_batch_of, side="right") - 1
    rows = np.flatnonzero(step_of < steps)
    return hbp.Timeline(
        ranks=8,
        step=step_of[rows],
        micro_batch=(micro_batch_of - plan.step_offsets[step_of])[rows],
        first_rank=plan.pack_ranks[rows],
        sp=plan.pack_sp[rows],
        recompute=plan.pack_recompute[rows],
        samples=np.diff(plan.pack_offsets)[rows],
        tokens=plan.pack_padded_tokens[rows],
        sum_squares=plan.pack_squares[rows],
        time_ns=np.rint(plan.pack_ns[rows] * scale).astype(np.int64),
    )


class TestTimeline(unittest.TestCase):
    def made(self, **options):
        return hbp.Timeline(ranks=8, **{**ROWS, **OPTIONAL, **options})

    def test_columns(self):
        timeline = self.made(device="NVIDIA H100", date="2026-11-22")
        self.assertEqual((len(timeline), timeline.ranks), (4, 8))
        self.assertEqual((timeline.device, timeline.date), ("NVIDIA H100", "2026-11-22"))
        for name, values in {**ROWS, **OPTIONAL}.items():
            column = getattr(timeline, name)
            self.assertEqual(column.tolist(), values)
            self.assertFalse(column.flags.writeable)
        self.assertIn("4 packs on 8 ranks on NVIDIA H100", repr(timeline))
        plain = hbp.Timeline(ranks=8, **ROWS)
        for name in OPTIONAL:
            self.assertIsNone(getattr(plain, name))
        self.assertEqual((plain.device, plain.date), (None, None))

    def test_views_keep_their_timeline(self):
        times = self.made().time_ns
        tokens = self.made().measurements()["tokens"]
        gc.collect()
        self.assertEqual(times.tolist(), ROWS["time_ns"])
        self.assertEqual(tokens.tolist(), [4000, 16000, 9000])

    def test_measurements_leave_dummies_out(self):
        found = self.made().measurements()
        self.assertEqual(found.pop("step_ns").tolist(), [120_000_010 - 120_000_005])
        self.assertEqual(set(found), {"sp", "recompute", "tokens", "sum_squares", "time_ns", "peak_bytes"})
        for name, column in found.items():
            values = {**ROWS, **OPTIONAL}[name]
            self.assertEqual(column.tolist(), values[:1] + values[2:])
        self.assertNotIn("peak_bytes", hbp.Timeline(ranks=8, **ROWS).measurements())

    def test_files(self):
        timeline = self.made(device="NVIDIA H100, 80 GB")
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "timeline.csv")
            timeline.save(path)
            for again in (hbp.Timeline.load(path), pickle.loads(pickle.dumps(timeline))):
                self.assertEqual((again.device, again.date, again.ranks), ("NVIDIA H100, 80 GB", None, 8))
                for name in {**ROWS, **OPTIONAL}:
                    self.assertEqual(getattr(again, name).tolist(), getattr(timeline, name).tolist())
            path.write_text("step\n1\n")
            with self.assertRaisesRegex(hbp.FormatError, "no column micro_batch"):
                hbp.Timeline.load(path)
            with self.assertRaises(hbp.SystemFailure):
                timeline.save(Path(folder, "nowhere", "x"))

    def test_what_makes_no_sense_is_refused(self):
        with self.assertRaisesRegex(hbp.InvalidError, r"sp\[1\] is 9"):
            self.made(sp=[4, 9, 8, 8])
        with self.assertRaisesRegex(ValueError, "time_ns has 3 values; it must have 4"):
            self.made(time_ns=[1, 2, 3])
        with self.assertRaisesRegex(TypeError, "time_ns holds float64"):
            self.made(time_ns=[1.0, 2.0, 3.0, 4.0])
        with self.assertRaisesRegex(hbp.InvalidError, "step is NULL"):
            self.made(step=None)
        with self.assertRaises(TypeError):
            self.made(colour=[1, 2, 3, 4])
        with self.assertRaisesRegex(hbp.InvalidError, "control characters"):
            self.made(device="a\nb")

    def test_compare(self):
        plan, cost = samples.plan(), samples.cost()
        exact = measured(plan, 1.0, 5).compare(cost)
        self.assertEqual((exact.ranks, exact.steps, exact.max_pack_error), (8, 5, 0.0))
        self.assertEqual(exact.predicted_ns, exact.measured_ns)
        slower = measured(plan, 1.25, 5).compare(cost)
        self.assertAlmostEqual(slower.median_pack_error, 0.2, places=6)
        self.assertAlmostEqual(slower.max_step_error, 0.2, places=6)
        with self.assertRaisesRegex(hbp.InvalidError, "not an SP degree"):
            hbp.Timeline(ranks=8, **{**ROWS, "sp": [3, 1, 8, 8]}).compare(cost)
        with self.assertRaises(TypeError):
            measured(plan, 1.0, 1).compare(plan)

    def test_fit(self):
        cost = samples.cost()
        terms = cost.terms()
        slow = hbp.Cost.from_terms(
            type(terms)(**{**terms.__dict__, "ns_per_token": terms.ns_per_token * 1.5})
        )
        rng = np.random.default_rng(3)
        count = 200
        sp = rng.choice([1, 2, 4, 8], count)
        tokens = rng.integers(2000, 60000, count)
        documents = rng.integers(1, 9, count)
        squares = tokens * tokens // documents
        time = [slow.predict_ns(int(n), float(q), sp=int(d)) for n, q, d in zip(tokens, squares, sp)]
        rows = dict(sp=sp, recompute=np.zeros(count, np.int32), tokens=tokens, sum_squares=squares, time_ns=time)
        timeline = hbp.Timeline(
            ranks=8, step=np.arange(count), micro_batch=np.zeros(count, int), first_rank=np.zeros(count, int), **rows
        )
        by_timeline, report = cost.fit(timeline)
        by_columns, _ = cost.fit(**rows)
        self.assertEqual(by_timeline.terms(), by_columns.terms())
        self.assertLess(report.max_time_error, 0.01)
        self.assertLess(timeline.compare(by_timeline).max_pack_error, 0.01)
        self.assertGreater(timeline.compare(cost).median_pack_error, 0.1)
        with self.assertRaisesRegex(TypeError, "sp is given beside a timeline"):
            cost.fit(timeline, sp=sp)
        with self.assertRaisesRegex(TypeError, "timeline is 3; it must be hbp.Timeline"):
            cost.fit(3)
        with self.assertRaisesRegex(TypeError, "a text is 3; it must be a str"):
            cost.save("x", note=3)
        with self.assertRaisesRegex(TypeError, "neither a timeline nor time_ns is given"):
            cost.fit(**{name: rows[name] for name in rows if name != "time_ns"})

    def test_trace(self):
        plan = samples.plan()
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "trace.json")
            plan.trace(path, 0, 2, measured(plan, 1.25, 1))
            events = json.loads(path.read_text())["traceEvents"]
            names = {event["args"]["name"] for event in events if event["name"] == "process_name"}
            self.assertEqual(names, {"steps", "node 0, predicted", "node 0, measured"})
            errors = [event["args"]["error"] for event in events if "error" in event.get("args", {})]
            self.assertTrue(errors and all(abs(error - 0.2) < 1e-6 for error in errors))
            steps = {event["args"]["step"] for event in events if "measured_ns" in event.get("args", {})}
            self.assertEqual(steps, {0})
            other = measured(samples.plan(seed=1), 1.0, 5)
            with self.assertRaisesRegex(hbp.InvalidError, "row"):
                plan.trace(path, 0, 0, other)


if __name__ == "__main__":
    unittest.main()

"""Plans and packs as tables, HTML and pictures; progress shown. Stand-ins take the place of packages that are
not there, and those that are there are tried themselves."""

import contextlib
import importlib.util
import io
import sys
import types
import unittest
from html.parser import HTMLParser
from pathlib import Path
from unittest import mock

import numpy as np
import samples

import hbp
from hbp import _progress, _show


def has(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


def module(name: str, **members) -> types.ModuleType:
    made = types.ModuleType(name)
    vars(made).update(members)
    return made


def without(name: str):
    """As if a package were not installed."""
    gone = {known: None for known in sys.modules if known.split(".")[0] == name}
    return mock.patch.dict(sys.modules, {name: None, **gone})


def split_plan() -> hbp.Plan:
    lengths = hbp.Lengths.from_array([9000, 300, 40], loss_tokens=[8000, 200, 40], vision=[1, 0, 2])
    return hbp.plan_step(lengths.limit(4096, "split"), samples.cost())


class TestTables(unittest.TestCase):
    def test_rows_of_a_plan(self):
        plan = samples.plan()
        steps, micro_batches = plan.columns("steps"), plan.columns("micro_batches")
        packs, rows = plan.columns("packs"), plan.columns()
        self.assertEqual(steps["micro_batches"].sum(), len(micro_batches["step"]))
        self.assertEqual(micro_batches["packs"].sum(), len(packs["step"]))
        self.assertEqual(packs["samples"].sum(), len(rows["id"]))
        for columns in (steps, micro_batches, packs, rows):
            self.assertEqual(len({len(column) for column in columns.values()}), 1)
        row = 0
        for step in plan:
            for number, micro_batch in enumerate(step):
                for pack in micro_batch:
                    for sample, tokens in zip(pack.ids.tolist(), pack.lengths.tolist()):
                        said = {name: int(column[row]) for name, column in rows.items()}
                        expected = {
                            "step": step.index,
                            "micro_batch": number,
                            "pack": pack.index,
                            "first_rank": pack.first_rank,
                            "sp": pack.sp,
                            "id": sample,
                            "tokens": tokens,
                        }
                        self.assertEqual(said, expected)
                        row += 1

    def test_columns_that_are_not_always_there(self):
        rows = split_plan().columns("samples")
        self.assertLessEqual({"first_token", "loss_tokens", "vision"}, set(rows))
        self.assertIn("vision", split_plan().columns("packs"))
        self.assertNotIn("vision", samples.plan().columns("packs"))

    def test_rows_of_packs(self):
        lengths = hbp.Lengths.of(samples.lengths(300))
        packs = hbp.greedy_fill(lengths, hbp.plan_groups(lengths, samples.cost()))
        rows, whole = packs.columns(), packs.columns("packs")
        for pack in range(len(packs)):
            self.assertEqual(rows["sample"][rows["pack"] == pack].tolist(), packs[pack].tolist())
        self.assertEqual(whole["samples"].tolist(), [len(packs[pack]) for pack in range(len(packs))])
        self.assertEqual(whole["tokens"].sum(), lengths.summary().tokens)
        self.assertEqual(rows["group"].tolist(), packs.pack_groups[rows["pack"]].tolist())

    def test_unknown_rows(self):
        with self.assertRaisesRegex(
            ValueError, r"rows is 'pack' \(did you mean 'packs'\?\); it must be one of 'samples'"
        ):
            samples.plan().columns("pack")
        groups = hbp.Groups.create(hbp.Cost.plain(4), [100], [1])
        with self.assertRaisesRegex(ValueError, "rows is 'steps'"):
            hbp.greedy_fill([10], groups).columns("steps")

    def test_packages_that_are_not_there(self):
        plan = samples.plan()
        packs = hbp.greedy_fill([10], hbp.Groups.create(hbp.Cost.plain(4), [100], [1]))
        for name, convert in (("pyarrow", "to_arrow"), ("pandas", "to_pandas")):
            for thing in (plan, packs):
                words = rf"{type(thing).__name__}\.{convert} needs {name}: pip install {name}"
                with without(name), self.assertRaisesRegex(ImportError, words):
                    getattr(thing, convert)()
        with without("matplotlib"), self.assertRaisesRegex(
            ImportError, "plot needs matplotlib: pip install matplotlib"
        ):
            plan.plot()

    def test_stand_ins(self):
        plan = samples.plan()
        with mock.patch.dict(sys.modules, pyarrow=module("pyarrow", table=dict)):
            self.assertEqual(list(plan.to_arrow("steps")), list(plan.columns("steps")))
        with mock.patch.dict(sys.modules, pandas=module("pandas", DataFrame=dict)):
            frame = plan.to_pandas("packs")
            self.assertEqual(frame["sp"].tolist(), plan.pack_sp.tolist())
            frame["sp"][:] = 0  # its own
            self.assertGreater(plan.pack_sp.min(), 0)

    @unittest.skipUnless(has("pyarrow"), "there is no pyarrow")
    def test_pyarrow(self):
        plan = samples.plan()
        for rows in ("samples", "packs", "micro_batches", "steps"):
            table = plan.to_arrow(rows)
            for name, column in plan.columns(rows).items():
                self.assertEqual(table[name].to_pylist(), column.tolist())
        self.assertEqual(hbp.Lengths.of(plan.to_arrow()["tokens"]).summary().tokens, plan.summary().tokens)
        data = plan.to_arrow("steps")["tokens"].chunks[0].buffers()[1]
        self.assertEqual(data.address, plan.step_tokens.ctypes.data)  # not copied

    @unittest.skipUnless(has("pandas"), "there is no pandas")
    def test_pandas(self):
        plan = samples.plan()
        frame = plan.to_pandas()
        self.assertEqual(frame.groupby("step")["tokens"].sum().tolist(), plan.step_tokens.tolist())
        self.assertEqual(len(plan.to_pandas("packs")), len(plan.pack_sp))


class Tags(HTMLParser):
    """Every tag that is opened is closed, in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: "list[str]" = []
        self.rows = 0
        self.feed(text)
        assert not self.open, self.open

    def handle_starttag(self, tag, attributes):
        self.rows += tag == "tr"
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


class TestHtml(unittest.TestCase):
    def test_plans_and_steps(self):
        plan = samples.plan()
        self.assertGreater(len(plan), 10)
        shown = plan._repr_html_()
        self.assertEqual(Tags(shown).rows, 11)
        self.assertIn(f"and {len(plan) - 10:,} more steps", shown)
        self.assertIn(f"digest {plan.digest:016x}", shown)
        self.assertIn("&lt;", shown)  # of SP groups
        step = hbp.plan_step(samples.lengths(900), samples.cost(4)).step(0)
        packs = sum(len(micro_batch) for micro_batch in step)
        self.assertEqual(Tags(step._repr_html_()).rows, min(packs, 40) + 1)

    def test_summaries_and_reports(self):
        plan, cost = samples.plan(), samples.cost()
        for struct in (plan.summary(), hbp.simulate(plan, cost), hbp.Lengths.of([3, 4]).summary()):
            shown = struct._repr_html_()
            known = [name for name, value in struct.as_dict().items() if value is not None]
            self.assertEqual(Tags(shown).rows, len(known) + 1)
            for name in known:
                self.assertIn(f"<td>{name}</td>", shown)
        self.assertGreater(Tags(hbp.Machine.preset("h100").fields._repr_html_()).rows, 5)
        graph = hbp.Graph.workload("clip-10", hbp.Machine.preset("a100-80"))
        Tags(hbp.plan_tasks(graph, hbp.Machine.preset("a100-80"))._repr_html_())


class Axes:
    """Notes what is drawn, as matplotlib's axes."""

    def __init__(self) -> None:
        self.bars: "list[tuple]" = []
        self.labels: "list[str]" = []

    def barh(self, y, width, *, left, height, label, **style) -> None:
        self.labels.append(label)
        self.bars += zip(y, height, left, np.asarray(left) + width)

    def __getattr__(self, name: str):
        return lambda *arguments, **options: None


class TestPlot(unittest.TestCase):
    def draw(self, step: hbp.Step) -> Axes:
        pyplot = module(
            "matplotlib.pyplot", get_cmap=lambda name: lambda places: [(0, 0, 0, 1)] * len(places)
        )
        parts = {"matplotlib": module("matplotlib", pyplot=pyplot), "matplotlib.pyplot": pyplot}
        with mock.patch.dict(sys.modules, parts):
            return step.plot(Axes())

    def test_bars_are_packs_and_end_with_the_step(self):
        plan = hbp.plan_step(samples.lengths(900), samples.cost(2))
        step = plan.step(0)
        axes = self.draw(step)
        self.assertEqual(len(axes.bars), len(step.packs()))
        self.assertEqual(sum(height for _, height, _, _ in axes.bars), 16 * len(step.micro_batches))
        ends = max(end for _, _, _, end in axes.bars) * 1e6
        self.assertLessEqual(ends, step.predicted_ns)
        self.assertAlmostEqual(ends, float(plan.micro_batch_ns.sum()), delta=1)

    def test_sets_that_wait_for_themselves_alone(self):
        """Starts are those of the library's own clock, whose trace has them."""
        import json
        import tempfile

        model, machine = hbp.Model.preset("llama-3.1-8b"), hbp.Machine.preset("h100", nodes=2)
        alone = hbp.Cost(model, machine, zero_stage=1, lockstep_ranks=1, uneven_micro_batches=True)
        for cost in (alone, samples.cost(2)):
            step = hbp.plan_step(samples.lengths(900), cost).step(0)
            with tempfile.NamedTemporaryFile(suffix=".json") as file:
                step.plan.trace(file.name)
                events = json.loads(Path(file.name).read_text())
            events = events["traceEvents"] if isinstance(events, dict) else events
            traced = {event["args"]["pack"]: event["ts"] for event in events if "pack" in event.get("args", {})}
            starts = _show.pack_starts(step)
            self.assertEqual(len(traced), len(starts))
            for pack, start in enumerate(starts):
                self.assertAlmostEqual(traced[pack], start / 1e3, places=2)
        self.assertGreater(len(set(starts)), 1)

    @unittest.skipUnless(has("matplotlib"), "there is no matplotlib")
    def test_matplotlib(self):
        import matplotlib

        matplotlib.use("Agg")
        axes = samples.plan().plot(step=1)
        self.assertEqual(len(axes.patches), len(samples.plan().step(1).packs()))
        file = io.BytesIO()
        axes.figure.savefig(file)
        self.assertGreater(len(file.getvalue()), 1000)


class Bar:
    """As tqdm has them."""

    made: "list[Bar]" = []

    def __init__(self, *, desc, total, leave, file) -> None:
        self.desc, self.total, self.n, self.closed = desc, total, 0, False
        self.made.append(self)

    def update(self, more: int) -> None:
        assert more >= 0 and not self.closed
        self.n += more

    def close(self) -> None:
        self.closed = True


class TestProgress(unittest.TestCase):
    def run_plan(self, **options) -> str:
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            hbp.plan_epoch(samples.lengths(200_000), samples.cost(), progress=True, **options)
        return said.getvalue()

    def test_bars(self):
        Bar.made = []
        parts = {"tqdm": module("tqdm"), "tqdm.auto": module("tqdm.auto", tqdm=Bar)}
        with mock.patch.dict(sys.modules, parts):
            self.run_plan()
            self.assertGreater(len({bar.desc for bar in Bar.made}), 1)
            self.assertTrue(all(bar.closed for bar in Bar.made))
            self.assertTrue(all(bar.total is None or bar.n <= bar.total for bar in Bar.made))
            before = len(Bar.made)
            with self.assertRaises(hbp.InvalidError):
                self.run_plan(max_length=17)
            self.assertTrue(all(bar.closed for bar in Bar.made[before:]))

    def test_lines(self):
        with without("tqdm"):
            lines = self.run_plan().splitlines()
        self.assertGreater(len(lines), 1)
        self.assertTrue(all(line.startswith("hbp: ") for line in lines))
        self.assertEqual(len(lines), len(set(lines)))

    def test_a_terminal(self):
        class Terminal(io.StringIO):
            def isatty(self) -> bool:
                return True

        with without("tqdm"), contextlib.redirect_stderr(Terminal()) as said:
            hbp.plan_epoch(samples.lengths(200_000), samples.cost(), progress=True)
        self.assertRegex(said.getvalue(), r"\r\x1b\[Khbp: .* \d+ %")
        self.assertTrue(said.getvalue().endswith("\r\x1b[K"))

    def test_a_stage_that_begins_again(self):
        Bar.made = []
        bars = _progress._Bars(Bar)
        for stage, done, total in (("fill", 1, 0), ("fill", 3, 4), ("fill", 1, 4), ("steps", 2, 2)):
            bars(hbp.Progress(stage, done, total))
        self.assertEqual(
            [(bar.desc, bar.n, bar.total) for bar in Bar.made],
            [("fill", 3, 4), ("fill", 1, 4), ("steps", 2, 2)],
        )

    def test_what_progress_may_be(self):
        for none in (None, False):
            self.assertEqual(len(hbp.plan_epoch([1], samples.cost(), progress=none)), 1)
        with self.assertRaisesRegex(TypeError, "progress is 3; it must be a function, True or None"):
            hbp.plan_epoch([1], samples.cost(), progress=3)

    @unittest.skipUnless(has("tqdm"), "there is no tqdm")
    def test_tqdm(self):
        self.assertIn("%|", self.run_plan())


if __name__ == "__main__":
    unittest.main()

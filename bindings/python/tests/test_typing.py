"""What type checkers see: columns and choices are the library's, mypy --strict and pyright are clean."""

import importlib.metadata
import inspect
import os
import shutil
import subprocess
import sys
import tempfile
import typing
import unittest
from pathlib import Path

import numpy as np
import stubs
import typed_use
from test_keywords import TAKERS

import hbp
from hbp import _arrays, _choices, _records

TESTS = Path(__file__).resolve().parent
PACKAGE = Path(hbp.__file__).resolve().parent
# Columns whose record is not a view's.
RECORDS = {"Timeline": "TimelineColumns", "Graph": "GraphView"}
# Choices of Python's own: of numbers, and of fields that records call otherwise.
OWN = {"zero_stage"}


def columns() -> "typing.Iterator[tuple[type, str, typing.Any]]":
    for name in hbp.__all__:
        for attribute, column in (
            vars(getattr(hbp, name)).items() if isinstance(getattr(hbp, name), type) else ()
        ):
            if isinstance(column, _arrays.AnyColumn):
                yield getattr(hbp, name), attribute, column


def annotation(taker: typing.Any, name: str) -> typing.Any:
    """What a function or a TypedDict says of a keyword."""
    taker = taker.__init__ if isinstance(taker, type) and not hasattr(taker, "__total__") else taker
    text = inspect.unwrap(taker).__annotations__[name]
    text = text.__forward_arg__ if isinstance(text, typing.ForwardRef) else text
    return eval(text, vars(sys.modules[taker.__module__]))


class TestColumns(unittest.TestCase):
    def test_types_are_those_of_the_records(self):
        seen = 0
        for kind, name, column in columns():
            record = getattr(_records, RECORDS.get(kind.__name__) or kind._view.__name__)._record[name]
            (said,) = typing.get_args(column.__orig_class__)
            self.assertEqual(np.dtype(said), np.dtype(record.column), f"{kind.__name__}.{name}")
            seen += 1
        self.assertGreater(seen, 100)


class TestChoices(unittest.TestCase):
    def test_the_module_says_what_the_library_says(self):
        """python3 bindings/python/tests/stubs.py --write writes it anew."""
        self.assertEqual(stubs.CHOICES.read_text(), stubs.choices_text())

    def test_options_that_are_choices_have_them(self):
        seen = 0
        for name, takers in TAKERS.items():
            for field in getattr(_records, name)._record.values():
                if not field.choices or field.name in OWN:
                    continue
                kind = name[: -len("Options")] + "".join(word.capitalize() for word in field.name.split("_"))
                for taker in takers:
                    said = annotation(taker, field.name)
                    self.assertEqual(said, getattr(_choices, kind), f"{taker}: {field.name}")
                    seen += 1
        self.assertGreater(seen, 15)

    def test_python_s_own_choices_are_its_tables(self):
        from hbp import cost, graph, layers, machine, plans, recompute

        for kind, table in (
            (cost.ZeroStage, cost.ZERO_STAGES),
            (graph.Format, graph.FORMATS),
            (layers.LayerType, layers.LAYER_TYPES),
            (layers.RecomputeName, layers.RECOMPUTE),
            (plans.Normaliser, plans.LOSS),
            (recompute.Selective, recompute.SELECT),
            (typing.get_args(machine.CollectiveText)[1], machine.COLLECTIVES),
        ):
            self.assertEqual(set(typing.get_args(kind)), set(table))

    def test_what_is_no_choice_is_refused_with_what_was_meant(self):
        cost = hbp.Cost.plain(4)
        with self.assertRaisesRegex(ValueError, r"method is 'serch' \(did you mean 'search'\?\)"):
            hbp.plan_step([4], cost, method="serch")
        meant = r"no option 'max_lenght' \(did you mean 'max_length'\?\); there are 'lengths', "
        with self.assertRaisesRegex(TypeError, meant):
            hbp.plan_groups([4], cost, max_lenght=4)
        with self.assertRaisesRegex(TypeError, r"'max_lenght' \(did you mean 'max_length'\?\)"):
            hbp.plan_epoch([4], cost, max_lenght=4)
        for name, owner in (("max_sp", "hbp.Cost"), ("shifted_loss", "hbp.Lengths.from_array")):
            with self.assertRaisesRegex(TypeError, f"no option '{name}' here; it is one of {owner}"):
                hbp.plan_epoch([4], cost, **{name: 1})
        with self.assertRaisesRegex(
            TypeError, r"'zero_stag' \(did you mean 'zero_stage'\?\); there are 'model'"
        ):
            hbp.Cost(None, None, zero_stag=1)
        with self.assertRaisesRegex(TypeError, r"'microbatches' \(did you mean 'micro_batches'\?\)"):
            hbp.partition_layers(hbp.Layers([1, 2]), stages=2, microbatches=3)
        with self.assertRaisesRegex(TypeError, r"'loss_token' \(did you mean 'loss_tokens'\?\)"):
            hbp.Lengths.from_array([4], loss_token=[3])

    def test_other_errors_of_a_call_are_its_own(self):
        with self.assertRaisesRegex(TypeError, "expected hbp.Cost, got int"):
            hbp.plan_groups([4], 3, max_length=4)
        with self.assertRaisesRegex(TypeError, "missing .* 'cost'"):
            hbp.plan_groups([4])
        self.assertIn("max_length", inspect.signature(hbp.plan_groups).parameters)


def mypy_version() -> "tuple[int, ...]":
    try:
        return tuple(int(part) for part in importlib.metadata.version("mypy").split(".")[:2])
    except importlib.metadata.PackageNotFoundError:
        return (0,)


class TestCheckers(unittest.TestCase):
    def test_the_file_runs(self):
        for function in typed_use.UNCHECKED:
            function()

    def run_checker(self, command: "list[str]", path: str = "", folder: "Path | None" = None) -> None:
        environment = {**os.environ, "MYPYPATH": path}
        environment.pop("PYTHONPATH", None)
        result = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=folder)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    @unittest.skipUnless(mypy_version() >= (1, 8), f"{sys.executable} has no mypy of 1.8 or later")
    def test_mypy(self):
        with tempfile.TemporaryDirectory() as cache:
            options = ["--strict", "--ignore-missing-imports", "--cache-dir", cache]
            command = [sys.executable, "-m", "mypy", *options, "-p", "hbp", "-m", "typed_use"]
            self.run_checker(command, os.pathsep.join([str(PACKAGE.parent), str(TESTS)]), TESTS)

    @unittest.skipUnless(shutil.which("pyright"), "there is no pyright")
    def test_pyright(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, source in (("hbp", PACKAGE), ("typed_use.py", TESTS / "typed_use.py")):
                Path(folder, name).symlink_to(source)
            settings = '{"include": ["hbp", "typed_use.py"], "reportMissingImports": false}'
            Path(folder, "pyrightconfig.json").write_text(settings)
            self.run_checker(["pyright", "--pythonpath", sys.executable], folder=Path(folder))


if __name__ == "__main__":
    unittest.main()

"""The package as it is installed: what its import loads, where it finds libraries, the command's script."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import hbp
from hbp import _native

ROOT = Path(__file__).resolve().parents[3]
SCRIPT = ROOT / "bindings/python/wheel/command.py"


def run_python(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("HBP_")}
    return subprocess.run(
        [sys.executable, *arguments],
        env={**inherited, **environment},
        capture_output=True,
        text=True,
        timeout=60,
    )


class TestImport(unittest.TestCase):
    def test_little_is_loaded(self):
        """What takes long to load, or runs other programs, waits until it is wanted."""
        code = "import sys, numpy; before = set(sys.modules); import hbp; print(*set(sys.modules) - before)"
        path = str(Path(hbp.__file__).parents[1])
        result = run_python("-c", code, PYTHONPATH=path, HBP_LIBRARY=_native.lib._name)
        self.assertEqual(result.stderr, "")
        loaded = result.stdout.split()
        self.assertIn("hbp.epoch", loaded)
        stdlib = getattr(
            sys, "stdlib_module_names", {name.split(".")[0] for name in loaded}
        )  # since Python 3.10
        known = {"hbp", "numpy", "org", *stdlib}
        self.assertEqual([name for name in loaded if name.split(".")[0] not in known], [])
        late = {
            "asyncio",
            "ctypes.util",
            "http",
            "multiprocessing",
            "pydoc",
            "sqlite3",
            "subprocess",
            "tempfile",
        }
        late |= {"unittest", "torch", "pandas", "pyarrow", "datasets", "tqdm", "transformers", "matplotlib"}
        late |= {"hbp.integrations"}
        self.assertEqual(late & set(loaded), set())


@unittest.skipUnless(sys.platform == "linux", "names and links are those of Linux")
class TestInstalled(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.package = Path(folder.name, "hbp")
        shutil.copytree(
            Path(hbp.__file__).parent, self.package, ignore=shutil.ignore_patterns("__pycache__", "lib*")
        )
        library = Path(_native.lib._name).resolve()
        for name in ("libhbp", "libhbp-io"):
            shutil.copy(
                library.with_name(library.name.replace("libhbp", name, 1)), self.package / f"{name}.so.0"
            )

    def python(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return run_python("-B", *arguments, PYTHONPATH=str(self.package.parent))

    def test_the_packaged_libraries_are_loaded(self):
        code = "import sys; from hbp._native import _io, lib; "
        code += "print(lib._name, _io._name, 'ctypes.util' in sys.modules)"
        result = self.python("-c", code)
        self.assertEqual(result.stderr, "")
        self.assertEqual(
            result.stdout.split(), [f"{self.package}/libhbp.so.0", f"{self.package}/libhbp-io.so.0", "False"]
        )

    def test_built_without_files(self):
        (self.package / "libhbp-io.so.0").unlink()
        code = "import hbp; print(len(hbp.plan_epoch([5, 6], hbp.Cost.plain(1), max_length=8)))"
        code += "; hbp.Lengths.read('x.npy')"
        result = self.python("-c", code)
        self.assertEqual(result.stdout, "1\n", result.stderr)
        self.assertIn("ImportError: hbp_lengths_load is a function of libhbp-io", result.stderr)
        why = f"there is no {self.package}/libhbp-io.so.0: this package was built from source where zlib or expat"
        self.assertIn(why, result.stderr)

    def test_the_command(self):
        result = self.python(str(SCRIPT), "--version")
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        self.assertIn(
            f"hbp: there is no {self.package}/bin/hbp: this package was built from source", result.stderr
        )

        installed = self.package.parent / "site" / "hbp" / "bin" / "hbp"
        for library in self.package.glob("libhbp*"):
            library.unlink()
        result = self.python(str(SCRIPT), "--version")  # the sources on PYTHONPATH
        self.assertIn(f"there is no {self.package}/bin/hbp: that folder is of the sources", result.stderr)
        installed.parent.mkdir(parents=True)
        installed.write_text("#!/bin/sh\necho installed\n")
        installed.chmod(0o755)
        path = f"{self.package.parent}{os.pathsep}{installed.parents[2]}"
        result = run_python("-B", str(SCRIPT), PYTHONPATH=path)
        self.assertEqual((result.returncode, result.stdout), (0, "installed\n"))

        program = self.package / "bin" / "hbp"
        program.parent.mkdir()
        program.write_text('#!/bin/sh\nprintf "%s|" "$@"; exit 5\n')
        result = self.python(str(SCRIPT), "plan", "a b", "--json")
        self.assertEqual(result.returncode, 1)
        self.assertIn(f"hbp: cannot run {program}: Permission denied", result.stderr)
        program.chmod(0o755)
        result = self.python(str(SCRIPT), "plan", "a b", "--json")
        self.assertEqual((result.returncode, result.stdout, result.stderr), (5, "plan|a b|--json|", ""))

        result = run_python("-I", "-S", str(SCRIPT), "--version")
        self.assertEqual(result.returncode, 1)
        self.assertIn("the package hbp, which holds the command, is not there for", result.stderr)


@unittest.skipIf(sys.version_info < (3, 11), "tomllib came with Python 3.11")
class TestProject(unittest.TestCase):
    def setUp(self):
        import tomllib

        self.project = tomllib.loads((ROOT / "pyproject.toml").read_text())
        self.build = self.project["tool"]["scikit-build"]

    def test_what_it_names_is_there(self):
        named = [self.project["project"]["readme"], *self.project["project"]["license-files"]]
        named += [*self.build["wheel"]["packages"], self.build["metadata"]["version"]["input"]]
        for name in named:
            self.assertTrue((ROOT / name).exists(), name)

    def test_version(self):
        import re

        found = self.build["metadata"]["version"]
        version = re.search(found["regex"], (ROOT / found["input"]).read_text())
        self.assertIsNotNone(version)
        self.assertEqual(version["value"], hbp.__version__)

    def test_no_foreign_library_is_asked_for(self):
        define = self.build["cmake"]["define"]
        self.assertEqual((define["HBP_GLPK"], define["HBP_HWLOC"]), ("OFF", False))
        self.assertEqual([name.split(">")[0] for name in self.project["project"]["dependencies"]], ["numpy"])


if __name__ == "__main__":
    unittest.main()

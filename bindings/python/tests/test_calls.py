"""What surrounds a call: exceptions, progress, cancelling, Ctrl-C, forks, loading."""

import os
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
import unittest
from pathlib import Path

import numpy as np
import samples

import hbp
from hbp import _native, errors

BIG = 2_000_000


def big() -> np.ndarray:
    return samples.lengths(BIG)


class TestErrors(unittest.TestCase):
    def test_what_it_says(self):
        with self.assertRaises(hbp.HbpError) as caught:
            hbp.plan_epoch([100, 0, 3], samples.cost())
        error = caught.exception
        self.assertIsInstance(error, ValueError)
        self.assertEqual((error.status, error.name), (-2, "HBP_E_INVALID"))
        self.assertEqual(str(error), error.message)
        self.assertNotIn("\n", error.message)

    def test_pickle(self):
        for status in range(-10, 0):
            error = errors.error_of(status, "sample 7 has 9 tokens")
            again = pickle.loads(pickle.dumps(error))
            self.assertEqual((type(again), again.status, str(again)), (type(error), status, str(error)))

    def test_unknown_status(self):
        error = errors.error_of(-99, "")
        self.assertEqual((type(error), error.status, error.name), (hbp.HbpError, -99, "HBP_E_UNKNOWN"))

    def test_a_failure_leaves_nothing_behind(self):
        for _ in range(3):
            with self.assertRaises(hbp.InvalidError):
                hbp.plan_epoch([0], samples.cost())
            self.assertEqual(len(hbp.plan_epoch([1], samples.cost()).sample_ids), 1)


class TestProgress(unittest.TestCase):
    def test_reports(self):
        seen = []
        hbp.plan_epoch(big(), samples.cost(), progress=seen.append)
        self.assertGreater(len(seen), 3)
        self.assertGreater(len({now.stage for now in seen}), 1)
        self.assertTrue(all(now.done <= now.total or now.total == 0 for now in seen))

    def test_cancel(self):
        calls = []

        def stop(now) -> bool:
            calls.append(now)
            return len(calls) == 2

        with self.assertRaises(hbp.CancelledError) as caught:
            hbp.plan_epoch(big(), samples.cost(), progress=stop)
        self.assertEqual((caught.exception.status, len(calls)), (-4, 2))
        self.assertEqual(len(hbp.plan_epoch([1], samples.cost()).sample_ids), 1)

    def test_an_exception_passes_through(self):
        def fail(now) -> None:
            raise KeyError("mine")

        with self.assertRaisesRegex(KeyError, "mine"):
            hbp.plan_epoch(big(), samples.cost(), progress=fail)

    def test_a_callback_may_call(self):
        plans = []

        def nested(now) -> None:
            if not plans:
                plans.append(hbp.plan_epoch([1, 2], samples.cost()))

        hbp.plan_epoch(big(), samples.cost(), progress=nested)
        self.assertEqual(len(plans[0].sample_ids), 2)


@unittest.skipUnless(hasattr(signal, "setitimer"), "no setitimer")
class TestInterrupt(unittest.TestCase):
    def interrupted(self, after: float) -> bool:
        before = signal.getsignal(signal.SIGINT)
        timer = threading.Timer(after, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        try:
            hbp.plan_epoch(LARGE, samples.cost())
            timer.join()  # a signal that comes late is not the call's
        except KeyboardInterrupt:
            return True
        finally:
            timer.cancel()
            timer.join()
            self.assertIs(signal.getsignal(signal.SIGINT), before)
        return False

    def test_ctrl_c(self):
        global LARGE
        LARGE = np.tile(big(), 5)
        self.assertTrue(self.interrupted(0.05))
        self.assertEqual(len(hbp.plan_epoch([1], samples.cost()).sample_ids), 1)


class TestProcesses(unittest.TestCase):
    def run_python(self, code: str, **environment: str) -> "subprocess.CompletedProcess[str]":
        path = os.pathsep.join([os.path.dirname(__file__), *filter(None, sys.path)])
        given = {**os.environ, "PYTHONPATH": path, **environment}
        return subprocess.run([sys.executable, "-c", code], env=given, capture_output=True, text=True, timeout=60)

    @unittest.skipUnless(hasattr(os, "fork"), "no fork")
    def test_fork(self):
        code = """if True:
            import os, samples, hbp
            plan = hbp.plan_epoch(samples.lengths(), samples.cost())
            child = os.fork()
            if child == 0:
                again = hbp.plan_epoch(samples.lengths(), samples.cost())
                same = again.digest == plan.digest and plan.step(0).for_rank(0)[0].tokens > 0
                del plan
                os._exit(0 if same else 1)
            assert os.waitpid(child, 0)[1] == 0
            assert plan.step(0).for_rank(0)[0].tokens > 0"""
        result = self.run_python(code)
        self.assertEqual((result.returncode, result.stderr), (0, ""))

    def test_nothing_is_said_at_exit(self):
        code = """if True:
            import atexit, samples, hbp
            plan = hbp.plan_epoch(samples.lengths(), samples.cost())
            column = plan.sample_ids
            atexit.register(lambda: print(int(column.sum())))"""
        result = self.run_python(code)
        self.assertEqual((result.returncode, result.stderr, result.stdout), (0, "", f"{2999 * 3000 // 2}\n"))

    def test_wrong_library(self):
        for path, words in (("/no/such/libhbp.so", "/no/such/libhbp.so"), ("libm.so.6", "libm.so.6")):
            result = self.run_python("import hbp", HBP_LIBRARY=path)
            self.assertNotEqual(result.returncode, 0)
            self.assertIn("ImportError", result.stderr)
            self.assertIn(words, result.stderr)

    def test_without_io(self):
        code = """if True:
            import os, samples, hbp
            plan = hbp.plan_epoch(samples.lengths(), samples.cost())
            try:
                plan.save(os.devnull)
            except ImportError as error:
                print(plan.digest != 0, error)"""
        with tempfile.TemporaryDirectory() as folder:
            alone = Path(folder, "libhbp.so")
            alone.symlink_to(Path(_native.lib._name).resolve())
            result = self.run_python(code, HBP_LIBRARY=str(alone))
            self.assertEqual(result.stderr, "")
            self.assertTrue(result.stdout.startswith("True hbp_plan_save is a function of libhbp-io"), result.stdout)
            self.assertIn(str(Path(folder, "libhbp-io.so")), result.stdout)
            result = self.run_python("import hbp", HBP_LIBRARY=str(alone), HBP_IO_LIBRARY="/no/such/libhbp-io.so")
            self.assertIn("ImportError: cannot load libhbp-io from /no/such/libhbp-io.so", result.stderr)
            code = code.replace("os.devnull", repr(str(Path(folder, "plan"))))
            result = self.run_python(code, HBP_LIBRARY=str(alone), HBP_IO_LIBRARY=_native._io._name)
            self.assertEqual((result.stderr, result.stdout), ("", ""))
            self.assertGreater(Path(folder, "plan").stat().st_size, 0)

    def test_a_plan_of_files_without_io(self):
        code = """if True:
            import sys, hbp
            for names in (dict(model="no.json"), dict(model="no.json,layers=4"), dict(machine="no.json"),
                          dict(model=sys.argv[1]), dict(machine=sys.argv[1])):
                try:
                    hbp.plan([5, 6], **{"model": "llama-3.1-8b", "machine": "h100", **names})
                except (hbp.SystemFailure, ImportError) as error:
                    print(type(error).__name__, error)"""
        missing = "MissingFileError cannot open no.json: No such file or directory"
        with tempfile.TemporaryDirectory() as folder:
            alone, there = Path(folder, "libhbp.so"), Path(folder, "there.json")
            alone.symlink_to(Path(_native.lib._name).resolve())
            there.write_text("{}")
            result = self.run_python(code.replace("sys.argv[1]", repr(str(there))), HBP_LIBRARY=str(alone))
            self.assertEqual(result.stderr, "")
            lines = result.stdout.splitlines()
            self.assertEqual(lines[:3], [missing] * 3)
            for line, call in zip(lines[3:], ("hbp_model_load", "hbp_machine_load")):
                self.assertIn(f"ImportError cannot read {there}: {call} is a function of libhbp-io", line)
            self.assertEqual(len(lines), 5)

    def test_torch_is_not_imported(self):
        result = self.run_python("import sys, hbp; print('torch' in sys.modules, hbp.torch.PlanSampler.__name__)")
        self.assertEqual(result.stdout, "False PlanSampler\n")

    def test_version(self):
        self.assertEqual(hbp.__version__, _native.lib.hbp_version_string().decode())


if __name__ == "__main__":
    unittest.main()

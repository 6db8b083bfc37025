"""The stepper: order, failures, threads, forks; the communicators; and the page that tells of both."""

import contextlib
import gc
import io
import os
import re
import subprocess
import sys
import threading
import time
import unittest
from pathlib import Path

import numpy as np
import samples

import hbp

DOCS = Path(__file__).resolve().parents[3] / "docs"

# A fork of a process with threads is what is tried; Python 3.12 and later warn of it.
QUIET = {"PYTHONWARNINGS": "ignore::DeprecationWarning"}


def batch(step: int, count: int = 60) -> np.ndarray:
    return samples.lengths(count, seed=step)


def digest(step: int) -> int:
    return hbp.plan_step(batch(step), samples.cost()).digest


class TestStepper(unittest.TestCase):
    def test_plans_are_those_of_plan_step(self):
        for depth in (1, 2, 5):
            stepper = hbp.Stepper(samples.cost(), depth=depth)
            seen = [(step, plan.digest) for step, plan in stepper.plans(range(7), lengths=batch)]
            self.assertEqual(seen, [(step, digest(step)) for step in range(7)])
            summary = stepper.summary()
            self.assertEqual((summary.depth, summary.submitted, summary.planned, summary.taken), (depth, 7, 7, 7))
            self.assertLessEqual(summary.waited, 7)

    def test_ranks_agree(self):
        digests = set()
        for depth in (1, 3):
            stepper = hbp.Stepper(samples.cost(), depth=depth)
            for _ in stepper.plans(map(batch, range(5))):
                time.sleep(0.001 * depth)
            digests.add(stepper.summary().digest)
        self.assertEqual(len(digests), 1)

    def test_arrays_are_copied_and_lengths_kept(self):
        lengths, loss = batch(1).astype(np.int64), batch(1) // 2
        expected = hbp.plan_step(hbp.Lengths.from_array(lengths, loss_tokens=loss), samples.cost()).digest
        stepper = hbp.Stepper(samples.cost(), depth=3)
        stepper.submit(lengths, loss_tokens=loss)
        lengths[:] = 1
        self.assertEqual(stepper.take().digest, expected)
        linked = hbp.Lengths.from_array(batch(2), links=np.arange(60) // 2)
        expected = hbp.plan_step(linked, samples.cost()).digest
        stepper.submit(batch(2), links=np.arange(60) // 2)
        stepper.submit(linked)
        borrowed = hbp.Lengths.from_array(batch(3), copy=False)
        stepper.submit(borrowed)
        del linked, borrowed
        gc.collect()
        self.assertEqual([stepper.take().digest for _ in range(3)], [expected, expected, digest(3)])
        self.assertEqual(len(stepper._shared), 0)
        second = {"vision": np.arange(60) % 3, "modalities": np.arange(60) % 5}
        expected = hbp.plan_step(hbp.Lengths.from_array(batch(2), **second), samples.cost()).digest
        stepper.submit(batch(2), **second)
        self.assertEqual(stepper.take().digest, expected)
        self.assertNotEqual(expected, digest(2))
        shifted = hbp.plan_step(hbp.Lengths.from_array(batch(2), shifted_loss=True), samples.cost())
        stepper.submit(batch(2), shifted_loss=True)
        taken = stepper.take()
        self.assertEqual((taken.digest, taken.shifted_loss), (shifted.digest, True))
        with self.assertRaisesRegex(TypeError, "shifted_loss"):
            stepper.submit(hbp.Lengths.from_array([1]), shifted_loss=True)
        with self.assertRaises(TypeError):
            stepper.submit(hbp.Lengths.from_array([1]), loss_tokens=[1])
        with self.assertRaises(TypeError):
            stepper.submit(hbp.Lengths.from_array([1]), vision=[1])
        with self.assertRaises(ValueError):
            stepper.submit([1, 2], links=[1])

    def test_options(self):
        options = {"min_sp": 2, "sequence_multiple": 64, "micro_batch_multiple": 2}
        stepper = hbp.Stepper(samples.cost(), **options)
        stepper.submit(batch(1))
        self.assertEqual(stepper.take().digest, hbp.plan_step(batch(1), samples.cost(), **options).digest)
        with self.assertRaisesRegex(TypeError, "min_spp"):
            hbp.Stepper(samples.cost(), min_spp=2)
        with self.assertRaisesRegex(hbp.InvalidError, "depth"):
            hbp.Stepper(samples.cost(), depth=-1)
        with self.assertRaisesRegex(hbp.InvalidError, "effort"):
            hbp.Stepper(samples.cost(), effort=100)

    def test_refusals(self):
        stepper = hbp.Stepper(samples.cost(), depth=1)
        with self.assertRaisesRegex(hbp.InvalidError, "not submitted"):
            stepper.take()
        with self.assertRaisesRegex(hbp.InvalidError, "sample 1"):
            stepper.submit([5, 0])
        stepper.submit([5, 6])
        with self.assertRaisesRegex(hbp.InvalidError, "depth"):
            stepper.submit([5, 6])
        with self.assertRaises(ValueError):
            next(stepper.plans([[1]]))
        stepper.take()
        self.assertEqual(len(list(stepper.plans([[1], [2]]))), 2)

    def test_a_failure_harms_no_other(self):
        stepper = hbp.Stepper(samples.cost(), depth=3)
        for lengths in (batch(0), [100, 2**31 - 1], batch(2)):
            stepper.submit(lengths)
        self.assertEqual(stepper.take().digest, digest(0))
        with self.assertRaisesRegex(hbp.InfeasibleError, "^step 1: "):
            stepper.take()
        self.assertEqual(stepper.take().digest, digest(2))

    def test_a_loop_may_end_early(self):
        stepper = hbp.Stepper(samples.cost(), depth=3)
        for step, _ in stepper.plans(range(9), lengths=batch):
            if step == 2:
                break
        del step, _
        gc.collect()
        self.assertEqual(stepper.summary().submitted, stepper.summary().taken)
        with self.assertRaises(hbp.InfeasibleError):
            list(stepper.plans([batch(0), [2**31 - 1], batch(1), batch(2)]))
        self.assertEqual([plan.digest for _, plan in stepper.plans([batch(5)])], [digest(5)])

    def test_waiting(self):
        stepper = hbp.Stepper(samples.cost(), wait=True)
        thread = threading.Thread(target=lambda: [stepper.submit(batch(step)) for step in range(8)])
        thread.start()
        self.assertEqual([stepper.take().digest for _ in range(8)], [digest(step) for step in range(8)])
        thread.join()
        seen = []
        with self.assertRaises(hbp.CancelledError):
            stepper.take(progress=lambda now: seen.append(now.stage) or len(seen) == 3)
        self.assertEqual(seen[-1], "wait")

    def test_close(self):
        with hbp.Stepper(samples.cost()) as stepper:
            stepper.submit(samples.lengths(20000))
            plan_waits = repr(stepper)
        self.assertIn("0 of 1", plan_waits)
        stepper.close()
        self.assertIn("closed", repr(stepper))
        for use in (stepper.take, stepper.summary, lambda: stepper.submit([1]), lambda: next(stepper.plans([[1]]))):
            with self.assertRaisesRegex(ValueError, "closed"):
                use()

    def test_a_plan_outlives_its_stepper(self):
        plans = [plan for _, plan in hbp.Stepper(samples.cost()).plans(map(batch, range(4)))]
        gc.collect()
        for step, plan in enumerate(plans):
            plan.validate(batch(step), samples.cost())

    @unittest.skipUnless(hasattr(os, "fork"), "no fork")
    def test_fork(self):
        code = """if True:
            import gc, os, samples, hbp
            stepper = hbp.Stepper(samples.cost())
            stepper.submit([1, 2, 3])
            child = os.fork()
            if child == 0:
                try:
                    stepper.take()
                except RuntimeError:
                    del stepper
                    gc.collect()
                    os._exit(0 if len(list(hbp.Stepper(samples.cost()).plans([[1]]))) == 1 else 2)
                os._exit(1)
            assert os.waitpid(child, 0)[1] == 0
            assert stepper.take().summary().samples == 3"""
        path = os.pathsep.join([os.path.dirname(__file__), *filter(None, sys.path)])
        result = subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": path, **QUIET},
                                capture_output=True, text=True, timeout=60)
        self.assertEqual((result.returncode, result.stderr), (0, ""))


class TestCommunicators(unittest.TestCase):
    def test_the_table(self):
        everyone = hbp.list_communicators(samples.cost())
        self.assertEqual([group.index for group in everyone], list(range(len(everyone))))
        self.assertEqual({group.ranks for group in everyone},
                         {range(first, first + sp) for sp in (1, 2, 4, 8) for first in range(0, 8, sp)})
        for rank in range(8):
            self.assertEqual(hbp.list_communicators(samples.cost(), rank),
                             [group for group in everyone if rank in group.ranks])
        with self.assertRaisesRegex(hbp.InvalidError, "0..7"):
            hbp.list_communicators(samples.cost(), 8)

    def test_packs_are_in_it(self):
        groups = {group.ranks for group in hbp.list_communicators(samples.cost(), 3, max_sp=4)}
        self.assertNotIn(range(0, 8), groups)
        for step in range(5):
            plan = hbp.plan_step(batch(step), samples.cost(), max_sp=4)
            self.assertLessEqual({pack.ranks for pack in plan.step(0).for_rank(3)}, groups)


class TestPage(unittest.TestCase):
    def test_its_program_runs(self):
        blocks = re.findall(r"```python\n(.*?)```", (DOCS / "how-to" / "plan-each-step.md").read_text(), re.S)
        self.assertEqual(len(blocks), 1)
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(blocks[0], {})
        self.assertRegex(printed.getvalue(), r"^\d plans came late; [0-9a-f]{16}\n$")


if __name__ == "__main__":
    unittest.main()

"""What adapters share: values put in the place of a trainer's and taken back, errors, weights as integers."""

import itertools
import pickle
import random
import types
import unittest
import warnings

import integration_seams as seams
import numpy as np

import hbp.integrations.deepspeed
import hbp.integrations.megatron
import hbp.integrations.nemo_rl
import hbp.integrations.slime
import hbp.integrations.torchtitan
import hbp.integrations.verl
from hbp.integrations import _LAYERS, errors_as, replace, whole_weights

ADAPTERS = {
    hbp.integrations.deepspeed: seams.deepspeed,
    hbp.integrations.megatron: seams.megatron,
    hbp.integrations.nemo_rl: seams.nemo_rl,
    hbp.integrations.slime: seams.slime,
    hbp.integrations.torchtitan: seams.torchtitan,
    hbp.integrations.verl: seams.verl,
}


def contents(seam):
    """All that an adapter may replace."""
    found = {name: value for name, value in vars(seam).items() if not name.startswith("__")}
    for name, value in list(found.items()):
        if isinstance(value, type):
            found.update(
                {(name, key): member for key, member in vars(value).items() if not key.startswith("__")}
            )
        if isinstance(value, dict):
            found.update({(name, key): member for key, member in value.items()})
            found[name] = None
    return found


class Install(unittest.TestCase):
    def setUp(self):
        before = list(_LAYERS)  # of tests that take nothing back
        self.addCleanup(lambda: self.assertEqual(_LAYERS, before))

    def test_taken_back_in_any_order(self):
        for adapter, stand_in in ADAPTERS.items():
            for order in itertools.permutations(range(3)):
                with self.subTest(adapter=adapter.__name__, order=order), stand_in() as seam:
                    own = contents(seam)
                    undo = [adapter.install() for _ in range(3)]
                    for left, k in zip((2, 1, 0), order):
                        self.assertNotEqual(contents(seam), own)
                        undo[k]()
                        undo[k]()  # nothing more
                        self.assertEqual(contents(seam) == own, not left)

    def test_what_others_installed_stays(self):
        place = types.SimpleNamespace(f="own")
        undo = replace((place, "f", "hbp"))
        undo()
        place.f = "theirs"
        undo()
        self.assertEqual(place.f, "theirs")
        undo = replace((place, "f", "hbp"))
        place.f = "another's"
        with self.assertWarnsRegex(RuntimeWarning, r"\.f was replaced after hbp's was installed"):
            undo()
        self.assertEqual(place.f, "another's")

    def test_between_two_of_ours(self):
        place = types.SimpleNamespace(f="own")
        first = replace((place, "f", "hbp"))
        place.f = "theirs"
        second = replace((place, "f", "hbp"))
        with self.assertWarns(RuntimeWarning):
            first()
        self.assertEqual(place.f, "hbp")
        second()
        self.assertEqual(place.f, "theirs")

    def test_random_orders_against_a_stack(self):
        for seed in range(200):
            rng = random.Random(seed)
            place, live = {"f": "own", "g": 0}, []
            for step in range(12):
                if live and rng.random() < 0.5:
                    _, undo = live.pop(rng.randrange(len(live)))
                    undo()
                else:
                    value = rng.choice(["hbp", step])
                    live.append((value, replace((place, "f", value))))
                self.assertEqual(place["f"], live[-1][0] if live else "own", seed)
            for _, undo in live:
                undo()
            self.assertEqual(place, {"f": "own", "g": 0})

    def test_inherited_functions_are_inherited_again(self):
        base = type("Base", (), {"f": lambda self: 1})
        heir = type("Heir", (base,), {})
        undo = replace((heir, "f", lambda self: 2))
        self.assertEqual((heir().f(), base().f()), (2, 1))
        undo()
        self.assertEqual(heir().f(), 1)
        self.assertNotIn("f", vars(heir))


class Errors(unittest.TestCase):
    def test_of_both_kinds(self):
        for wanted in (AssertionError, ValueError, RuntimeError):
            for bad, kind, said in (
                ([9], hbp.InvalidError, "sample 0 with 9"),
                ([5, 5], hbp.InfeasibleError, ""),
            ):
                with self.assertRaisesRegex(wanted, said) as caught, errors_as(wanted):
                    hbp.partition(bad, 1, capacity=8)
                again = pickle.loads(pickle.dumps(caught.exception))
                for error in (caught.exception, again):
                    self.assertIsInstance(error, kind)
                    self.assertIsInstance(error, wanted)
                    self.assertEqual(
                        (str(error), error.status), (str(caught.exception), caught.exception.status)
                    )


class Weights(unittest.TestCase):
    def test_integers_as_they_are(self):
        for values in ([3, 0, 5], np.array([3, 0, 5]), [np.int64(3), np.int32(0), 5], []):
            self.assertEqual(whole_weights(values).tolist(), [int(v) for v in values])
        self.assertEqual(whole_weights([2**60 - 1, 1]).tolist(), [2**60 - 1, 1])

    def test_any_size_keeps_its_proportions(self):
        for scale in (1e-320, 1e-300, 1e-9, 0.1, 1.0, 1e9, 1e300):
            values = np.random.default_rng(1).random(1000) * scale
            whole = whole_weights(values)
            self.assertLessEqual(int(whole.sum()), 1 << 60)
            self.assertGreater(int(whole.sum()), 1 << 57)
            off = np.abs(whole / whole.sum(dtype=float) - values / scale / (values / scale).sum())
            self.assertLess(off.max(), 1e-12)
        self.assertEqual(whole_weights([0.0, 0.0]).tolist(), [0, 0])
        large = whole_weights([10**30, 3 * 10**30])
        self.assertAlmostEqual(large[1] / large[0], 3, places=9)
        self.assertLessEqual(int(large.sum()), 1 << 60)

    def test_small_floats_are_balanced(self):
        with seams.verl() as seam, warnings.catch_warnings():
            undo = hbp.integrations.verl.install()
            values = (np.random.default_rng(2).random(64) * 1e-3).tolist()
            lists = seam.karmarkar_karp(values, 8, False)
            sums = [sum(values[k] for k in ids) for ids in lists]
            self.assertLess(max(sums), 1.01 * sum(sums) / 8)
            undo()

    def test_what_is_no_number_is_named(self):
        with seams.verl() as seam:
            undo = hbp.integrations.verl.install()
            for bad, said in ((float("nan"), "nan"), (float("inf"), "inf"), (-0.5, "-0.5")):
                with self.assertRaisesRegex(
                    AssertionError, f"weight 2 is {said}; it is at least 0 and finite"
                ):
                    seam.karmarkar_karp([1.0, 2.0, bad, 4.0], 2, False)
            undo()


if __name__ == "__main__":
    unittest.main()

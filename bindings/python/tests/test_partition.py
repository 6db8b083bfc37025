"""The plain call: shapes, options, what it refuses."""

import unittest

import numpy as np

import hbp

LENGTHS = [900, 4100, 300, 7000, 120, 2500, 640, 80]


class TestPartition(unittest.TestCase):
    def test_capacity_alone(self):
        found = hbp.partition(LENGTHS, capacity=8192)
        self.assertEqual(len(found), 2)
        self.assertEqual(found.least_parts, 2)
        self.assertEqual(sorted(sum(found.tolist(), [])), list(range(8)))
        self.assertTrue((found.part_tokens <= 8192).all())
        self.assertEqual(found.heaviest, found.part_weights.max())
        self.assertLessEqual(found.bound, found.heaviest)

    def test_it_is_a_sequence_of_arrays(self):
        found = hbp.partition(LENGTHS, 3)
        self.assertEqual([part.tolist() for part in found], found.tolist())
        self.assertEqual([found[k].tolist() for k in range(3)], found.tolist())
        self.assertEqual(found[-1].tolist(), found.tolist()[-1])
        self.assertEqual([part.tolist() for part in found[1:]], found.tolist()[1:])
        self.assertEqual(found[0].dtype, np.int64)
        self.assertFalse(found[0].flags.writeable)
        with self.assertRaises(IndexError):
            found[3]
        firsts = [part[0] for part in found.tolist()]
        self.assertEqual(firsts, sorted(firsts))
        self.assertIn("8 samples in 3 parts", repr(found))

    def test_empty_parts_iterate_too(self):
        found = hbp.partition([5, 4], 4, nonempty=False)
        self.assertEqual([part.tolist() for part in found], [[0], [1], [], []])
        self.assertEqual(found.tolist(), [[0], [1], [], []])

    def test_options(self):
        found = hbp.partition(LENGTHS, 4, equal_count=True)
        self.assertEqual([len(part) for part in found], [2] * 4)
        found = hbp.partition(LENGTHS, capacity=8192, multiple_of=4)
        self.assertEqual(len(found), 4)
        self.assertEqual(len(hbp.partition(LENGTHS, capacity=8192, min_parts=3)), 3)
        self.assertEqual(max(len(part) for part in hbp.partition(LENGTHS, max_samples=3)), 3)
        linked = hbp.partition(LENGTHS, 3, links=[0, -1, -1, -1, -1, -1, -1, 0])
        self.assertIn(7, linked[0])
        classes = np.arange(8) % 2
        for part in hbp.partition(LENGTHS, 4, classes=classes):
            self.assertEqual(len(set(classes[part])), 1)
        weighed = hbp.partition(LENGTHS, 2, weights=(24576, 1))
        exact = [sum(24576 * LENGTHS[i] + LENGTHS[i] ** 2 for i in part) for part in weighed]
        self.assertEqual(weighed.part_weights.tolist(), exact)
        self.assertEqual(hbp.partition(LENGTHS, 2, weights=[1] * 8).part_weights.tolist(), [4, 4])

    def test_a_tuple_of_two_is_a_pair_a_list_is_weights(self):
        self.assertEqual(hbp.partition([3, 5], 1, weights=[7, 8]).part_weights.tolist(), [15])
        self.assertEqual(hbp.partition([3, 5], 1, weights=(2, 1)).part_weights.tolist(), [2 * 8 + 9 + 25])

    def test_over_long(self):
        with self.assertRaisesRegex(ValueError, "1 of 3 samples is longer than `capacity`, 10 tokens"):
            hbp.partition([4, 25, 4], capacity=10)
        self.assertEqual(hbp.partition([4, 25, 4], capacity=10, over_long="alone").tolist(), [[0, 2], [1]])
        split = hbp.partition([4, 25, 4], capacity=10, over_long="split")
        self.assertEqual(split.sample_tokens.sum(), 33)
        self.assertEqual(sorted(split.sample_first_tokens[split.sample_ids == 1].tolist()), [0, 10, 20])
        dropped = hbp.partition([4, 25, 4], capacity=10, over_long="drop")
        self.assertEqual((dropped.tolist(), dropped.dropped_ids.tolist()), ([[0, 2]], [1]))

    def test_random_inputs_keep_their_limits(self):
        rng = np.random.default_rng(3)
        for _ in range(200):
            lengths = rng.integers(1, 500, rng.integers(1, 60))
            most = int(rng.integers(1, 9))
            found = hbp.partition(lengths, capacity=600, max_samples=most, multiple_of=3, nonempty=False)
            self.assertEqual(sorted(found.sample_ids.tolist()), list(range(len(lengths))))
            self.assertLessEqual(found.part_tokens.max(), 600)
            self.assertLessEqual(max(len(part) for part in found), most)
            self.assertEqual(len(found) % 3, 0)

    def test_what_is_refused(self):
        for error, text, arguments, options in (
            (ValueError, "parts is 0; it is at least 1", (LENGTHS, 0), {}),
            (ValueError, "multiple_of is -1", (LENGTHS,), {"multiple_of": -1, "capacity": 9000}),
            (hbp.InvalidError, "`parts` is 3; `min_parts`", (LENGTHS, 3), {"multiple_of": 2}),
            (hbp.InvalidError, "`parts` is 2; `min_parts`", (LENGTHS, 2), {"min_parts": 3}),
            (ValueError, "classes has 3 values; it must have 8", (LENGTHS, 2), {"classes": [1, 2, 3]}),
            (TypeError, "lengths holds float64", ([1.5, 2.0], 2), {}),
            (ValueError, "there are 9 parts and 8 samples; nonempty=False would leave 1", (LENGTHS, 9), {}),
            (
                hbp.InvalidError,
                r"`over_long` split give a pair \(linear, square\)",
                (LENGTHS,),
                {"capacity": 4096, "over_long": "split", "weights": LENGTHS},
            ),
            (hbp.InfeasibleError, "`parts` is 1; under `capacity` 8000 the samples", (LENGTHS, 1), {"capacity": 8000}),
            (ValueError, "one of `parts`, `capacity` and `max_samples` must be given", (LENGTHS,), {}),
            (ValueError, "8 samples in 3 parts", (LENGTHS, 3), {"equal_count": True}),
            (hbp.InfeasibleError, "take at least 2", (LENGTHS, 1), {"capacity": 8192}),
            (ValueError, "over_long is 'alon' .did you mean 'alone'", (LENGTHS, 1), {"over_long": "alon"}),
            (OverflowError, "weights come to more than 2.62", (LENGTHS, 2), {"weights": (0, 1 << 62)}),
        ):
            with self.subTest(text), self.assertRaisesRegex(error, text):
                hbp.partition(*arguments, **options)


if __name__ == "__main__":
    unittest.main()

"""Data sets: from arrays with and without a copy, histograms, files, limits."""

import gc
import os
import pickle
import tempfile
import unittest
import weakref
from pathlib import Path

import numpy as np
import samples

import hbp


class TestFromArray(unittest.TestCase):
    def test_integer_types_agree(self):
        values = [5, 1, 300, 7]
        digest = hbp.Lengths.from_array(values).summary().digest
        for dtype in ("u2", "i2", "u4", "i4", "u8", "i8", ">u4", ">i8"):
            with self.subTest(dtype):
                made = hbp.Lengths.from_array(np.array(values, dtype))
                self.assertEqual(made.summary().digest, digest)
                self.assertEqual([made[i] for i in range(4)], values)

    def test_uint32_is_copied_unless_asked(self):
        array = np.array([5, 6, 7], np.uint32)
        made = hbp.Lengths.from_array(array)
        borrowed = hbp.Lengths.from_array(array, copy=False)
        array[1] = 3  # what callers must not do shows where the values are read
        self.assertEqual((made[1], borrowed[1]), (6, 3))
        array[1] = 2**32 - 1  # and stays within what the data set was made of
        self.assertEqual((made[1], borrowed[1]), (6, 7))

    def test_a_change_of_a_borrowed_array_is_noticed(self):
        array = samples.lengths()
        made, groups = hbp.Lengths.from_array(array, copy=False), None
        groups = hbp.plan_groups(made, samples.cost())
        array[:] = array.max()
        with self.assertRaisesRegex(hbp.InvalidError, "changed while it was read"):
            hbp.greedy_fill(made, groups)

    def test_masked_values_are_refused(self):
        masked = np.ma.array([4, 5, 6], mask=[0, 1, 0])
        for make in (
            lambda: hbp.Lengths.from_array(masked),
            lambda: hbp.Lengths.from_array([4, 5, 6], vision=masked),
            lambda: hbp.Lengths.from_histogram([4, 5, 6], masked),
            lambda: hbp.LengthsBuilder().append(masked),
        ):
            with self.assertRaisesRegex(TypeError, "1 masked values of 3"):
                make()
        self.assertEqual(list(hbp.Lengths.from_array(masked.compressed())), [4, 6])
        with self.assertRaisesRegex(TypeError, "lengths holds bool"):
            hbp.Lengths.from_array(np.array([True, False]))

    def test_a_borrowed_array_lives_as_long_as_its_users(self):
        array = samples.lengths()
        alive = weakref.ref(array)
        made = hbp.Lengths.from_array(array, copy=False)
        packs = hbp.greedy_fill(made, hbp.plan_groups(made, samples.cost()))
        del array, made
        gc.collect()
        self.assertIsNotNone(alive())
        self.assertEqual(np.sort(packs.sample_indices).tolist(), list(range(3000)))
        del packs
        gc.collect()
        self.assertIsNone(alive())

    def test_strided(self):
        self.assertEqual(hbp.Lengths.from_array(np.arange(10, dtype=np.uint32)[1::3])[1], 4)

    def test_index(self):
        made = hbp.Lengths.from_array([4, 5, 6])
        self.assertEqual((len(made), made[-1], list(made)), (3, 6, [4, 5, 6]))
        for index in (3, -4):
            with self.assertRaises(IndexError):
                made[index]

    def test_refused(self):
        for bad, error in (
            ([], hbp.InvalidError),
            ([3, 0], hbp.InvalidError),
            ([3, -1], hbp.InvalidError),
            ([2**31], hbp.TooLargeError),
            (np.array([2**63 + 1], np.uint64), OverflowError),
            ([1.5], TypeError),
            ([[1, 2]], ValueError),
            (["a"], TypeError),
        ):
            with self.subTest(bad), self.assertRaises(error):
                hbp.Lengths.from_array(bad)

    def test_message_names_the_sample(self):
        with self.assertRaisesRegex(hbp.InvalidError, "1"):
            hbp.Lengths.from_array([3, 0])

    def test_loss_and_links(self):
        made = hbp.Lengths.from_array([10, 20, 30], loss_tokens=[1, 2, 3], links=[-1, 7, 7])
        summary = made.summary()
        self.assertEqual((summary.tokens, summary.loss_tokens, summary.has_links), (60, 6, 1))
        with self.assertRaises(ValueError):
            hbp.Lengths.from_array([10, 20], loss_tokens=[1])
        with self.assertRaises(ValueError):
            hbp.Lengths.from_array([10, 20], links=[1, 2, 3])
        with self.assertRaises(hbp.InvalidError):
            hbp.Lengths.from_array([10, 20], loss_tokens=[11, 1])
        with self.assertRaises((ValueError, OverflowError)):
            hbp.Lengths.from_array([10, 20], loss_tokens=[-1, 1])

    def test_builder(self):
        builder = hbp.LengthsBuilder()
        builder.append([1, 2])
        builder.append(np.array([3], np.uint16))
        made = builder.finish()
        self.assertEqual(made.summary().digest, hbp.Lengths.from_array([1, 2, 3]).summary().digest)

    def test_shifted_loss(self):
        made = hbp.Lengths.from_array([10, 1, 30], loss_tokens=[10, 1, 4], shifted_loss=True)
        self.assertEqual((made.summary().loss_tokens, made.summary().shifted_loss), (9 + 0 + 4, 1))
        self.assertIsNone(made.summary().column)
        self.assertEqual(made.limit(20, "truncate").summary().loss_tokens, 9 + 0 + 4)
        whole = hbp.Lengths.from_array([10, 1, 30], shifted_loss=True)
        self.assertEqual(whole.limit(20, "split").summary().loss_tokens, 9 + 0 + 19 + 9)
        self.assertEqual(hbp.Lengths.from_array([10, 1, 30], loss_tokens=[9, 0, 29]).summary().loss_tokens, 38)
        builder = hbp.LengthsBuilder()
        builder.append([10], shifted_loss=True)
        with self.assertRaisesRegex(hbp.InvalidError, "shifted_loss is 0 for sample 1 and 1 for those before"):
            builder.append([1, 30])
        builder.append([1, 30], shifted_loss=True)
        self.assertEqual(builder.finish().summary(), whole.summary())
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "lengths.txt")
            path.write_text("10\n1\n30\n")
            self.assertEqual(hbp.Lengths.read(path, shifted_loss=True).summary(), whole.summary())

    def test_second_size(self):
        made = hbp.Lengths.from_array([10, 20, 30], vision=[2, 0, 5])
        summary = made.summary()
        self.assertEqual((summary.vision, summary.min_vision, summary.max_vision, summary.modalities), (7, 0, 5, 3))
        self.assertEqual([made.vision_of(i) for i in range(3)], [2, 0, 5])
        self.assertEqual([made.modality_of(i) for i in range(3)], [1, 0, 1])
        self.assertEqual(made.vision_of(-1), 5)
        self.assertIn("7 vision units", str(summary))
        kinds = hbp.Lengths.from_array([10, 20, 30], vision=np.array([2, 0, 5], np.int8), modalities=[1, 0, 61])
        self.assertEqual(kinds.modality_of(2), 61)
        self.assertEqual(kinds.summary().modalities, 3 | 1 << 61)
        self.assertEqual([kinds.limit(20, "split").modality_of(i) for i in range(4)], [1, 0, 61, 61])
        self.assertEqual([kinds.limit(20, "split").vision_of(i) for i in range(4)], [2, 0, 5, 0])
        text = hbp.Lengths.from_array([10, 20])
        self.assertEqual((text.summary().vision, text.vision_of(0), text.modality_of(0)), (-1, 0, 0))
        self.assertNotIn("vision", str(text.summary()))
        with self.assertRaises(IndexError):
            made.vision_of(3)
        with self.assertRaises(IndexError):
            made.modality_of(-4)
        with self.assertRaisesRegex(ValueError, "vision has 1 values; it must have 2"):
            hbp.Lengths.from_array([10, 20], vision=[1])
        with self.assertRaises(OverflowError):
            hbp.Lengths.from_array([10, 20], vision=[1, -1])
        with self.assertRaisesRegex(hbp.TooLargeError, "sample 1 has 2147483648 vision units"):
            hbp.Lengths.from_array([10, 20], vision=[1, 2**31])
        with self.assertRaisesRegex(hbp.InvalidError, "sample 0 is of modality 62"):
            hbp.Lengths.from_array([10, 20], modalities=[62, 1])

    def test_builder_with_a_second_size(self):
        builder = hbp.LengthsBuilder()
        builder.append([1, 2], vision=[3, 0], modalities=[1, 4])
        with self.assertRaisesRegex(hbp.InvalidError, "vision units come with every piece"):
            builder.append([3], modalities=[1])
        builder.append([3], vision=[9], modalities=[0])
        whole = hbp.Lengths.from_array([1, 2, 3], vision=[3, 0, 9], modalities=[1, 4, 0])
        self.assertEqual(builder.finish().summary(), whole.summary())

    def test_no_pickle(self):
        with self.assertRaises(TypeError):
            pickle.dumps(hbp.Lengths.from_array([1]))


class TestHistogram(unittest.TestCase):
    def test_columns(self):
        made = hbp.Lengths.from_histogram([8, 3, 8], [1, 2, 4])
        self.assertEqual(made.histogram_lengths.tolist(), [3, 8])
        self.assertEqual(made.histogram_counts.tolist(), [2, 5])
        self.assertEqual(len(made), 7)
        with self.assertRaises(ValueError):
            hbp.Lengths.from_histogram([8, 3], [1])

    def test_a_view_outlives_the_object(self):
        column = hbp.Lengths.from_histogram(np.arange(1, 5001), np.ones(5000, int)).histogram_lengths
        gc.collect()
        self.assertEqual(int(column.sum()), 5000 * 5001 // 2)
        self.assertFalse(column.flags.writeable)


class TestRead(unittest.TestCase):
    def test_formats(self):
        values = [12, 7, 900]
        digest = hbp.Lengths.from_array(values).summary().digest
        with tempfile.TemporaryDirectory() as folder:
            np.save(Path(folder, "a.npy"), np.array(values))
            Path(folder, "b.txt").write_text("# lengths\n12\n7\n900\n")
            Path(folder, "c.csv").write_text("id,size\n0,12\n1,7\n2,900\n")
            Path(folder, "d.jsonl").write_text('{"n": 12}\n{"n": 7}\n{"n": 900}\n')
            Path(folder, "è.csv").write_text("length,count\n12,1\n7,2\n")
            read = hbp.Lengths.read
            self.assertEqual(read(Path(folder, "a.npy")).summary().digest, digest)
            self.assertEqual(read(os.path.join(folder, "b.txt"), format="text").summary().digest, digest)
            self.assertEqual(read(Path(folder, "c.csv"), column="size").summary().digest, digest)
            self.assertIsNone(read(Path(folder, "c.csv"), column="size").summary().column)
            self.assertEqual(read(Path(folder, "è.csv")).summary().column, "length")
            self.assertEqual(read(Path(folder, "d.jsonl"), column="n").summary().digest, digest)
            self.assertEqual(len(read(Path(folder, "è.csv"))), 3)
            np.save(Path(folder, "v.npy"), np.array([3, 0, 1], np.uint8))
            Path(folder, "v.csv").write_text("images,kind,size\n3,1,12\n0,0,7\n,5,900\n")
            units = hbp.Lengths.from_array(values, vision=[3, 0, 1]).summary()
            self.assertEqual(read(Path(folder, "a.npy"), vision_path=Path(folder, "v.npy")).summary(), units)
            beside = read(Path(folder, "a.npy"), vision_path=Path(folder, "v.csv"), vision_column="size")
            self.assertEqual([beside.vision_of(i) for i in range(3)], values)
            table = read(
                Path(folder, "v.csv"), column="size", vision_column="images", modality_column="kind"
            )
            self.assertEqual([table.vision_of(i) for i in range(3)], [3, 0, 0])
            self.assertEqual([table.modality_of(i) for i in range(3)], [1, 0, 5])
            with self.assertRaisesRegex(hbp.InvalidError, "3 lengths, but .*short.txt 2 numbers"):
                Path(folder, "short.txt").write_text("1\n2\n")
                read(Path(folder, "a.npy"), vision_path=Path(folder, "short.txt"))
            with self.assertRaises(hbp.FormatError):
                read(Path(folder, "c.csv"), column="no such")
            with self.assertRaises(hbp.SystemFailure) as caught:
                read(Path(folder, "absent.npy"))
            self.assertIsInstance(caught.exception, OSError)
            self.assertIn("absent.npy", str(caught.exception))


class TestLimit(unittest.TestCase):
    def test_policies(self):
        made = hbp.Lengths.from_array([10, 25, 3])
        with self.assertRaises(hbp.InvalidError):
            made.limit(10)
        self.assertEqual(list(made.limit(10, "drop")), [10, 3])
        self.assertEqual(list(made.limit(10, "truncate")), [10, 10, 3])
        self.assertEqual(list(made.limit(10, "split")), [10, 10, 10, 5, 3])
        with self.assertRaisesRegex(ValueError, "'drop'"):
            made.limit(10, "shorten")
        self.assertEqual(made.limit(10, "drop").summary().overlong_tokens, 25)


if __name__ == "__main__":
    unittest.main()

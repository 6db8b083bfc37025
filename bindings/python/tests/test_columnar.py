"""Lengths in Parquet and Arrow files: which paths are such, in which order, and what pyarrow reads of them."""

import importlib.util
import io
import os
import struct
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import numpy as np

import hbp
from hbp import _columnar

LENGTHS = [3, 1, 2, 300, 5, 255, 256]
PYARROW = importlib.util.find_spec("pyarrow") is not None
SCRIPT = Path(_columnar.__file__).read_text(encoding="ascii")  # as the command holds it


class Folder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, *parts):
        return os.path.join(self.folder, *parts)

    def touch(self, name, data=b""):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        Path(self.path(name)).write_bytes(data)
        return self.path(name)


class TestPaths(Folder):
    def test_formats_are_told_by_content(self):
        for data in (b"PAR1....", b"ARROW1..", b"\xff\xff\xff\xff...."):
            self.assertTrue(_columnar.is_columnar(self.touch("x", data)))
        for data in (b"", b"PAR", b"3\n1\n", b"\x93NUMPY"):
            self.assertFalse(_columnar.is_columnar(self.touch("x.parquet", data)))
        for name in ("-", "absent", "absent.parquet", "*.npy"):
            self.assertFalse(_columnar.is_columnar(name))
        self.assertTrue(_columnar.is_columnar("data/train-*.parquet"))

    def test_folders_are_told_by_what_they_hold(self):
        os.mkdir(self.path("a"))
        self.assertFalse(_columnar.is_columnar(self.path("a")))
        self.touch("a/train.parquet")
        self.assertTrue(_columnar.is_columnar(self.path("a")))
        self.touch("a/index.json")  # of MDS shards
        self.assertFalse(_columnar.is_columnar(self.path("a")))

    def files(self, name="a"):
        return [os.path.basename(file) for file in _columnar.files_of(self.path(name))]

    def test_files_come_in_the_order_of_their_numbers(self):
        for i in (10, 2, 0, 1):
            self.touch(f"a/part.{i}.parquet")
        self.assertEqual(self.files(), [f"part.{i}.parquet" for i in (0, 1, 2, 10)])
        for i, ending in enumerate(("b42a", "007f", "e9")):
            self.touch(f"b/train-0000{i}-of-00003-{ending}.parquet")
        self.assertEqual(len(self.files("b")), 3)
        self.touch("b/README.md")
        self.touch("b/test-00000-of-00001.parquet")
        with self.assertRaisesRegex(_columnar.Refused, r"more than one series \(test, train\): name one, as 'test\*'"):
            self.files("b")
        self.assertEqual(len(self.files("b/train-*.parquet")), 3)
        os.remove(self.path("b/train-00001-of-00003-007f.parquet"))
        with self.assertRaisesRegex(_columnar.Refused, "2 files of 3 are there"):
            self.files("b/train-*.parquet")
        with self.assertRaisesRegex(_columnar.Refused, "no .parquet or .arrow file"):
            self.files("b/nothing-*.parquet")

    def test_splits_are_named(self):
        self.touch("a/dataset_dict.json", b'{"splits": ["train", "test"]}')
        with self.assertRaisesRegex(_columnar.Refused, "holds the splits train, test: name the folder of one"):
            self.files()


class TestWithout(Folder):
    """Where pyarrow is not."""

    def test_it_is_named(self):
        path = self.touch("x.parquet", b"PAR1....")
        with mock.patch.dict(sys.modules, {"pyarrow": None}):
            with self.assertRaisesRegex(ImportError, "x.parquet needs pyarrow: pip install pyarrow"):
                hbp.Lengths.read(path)
            out = io.BytesIO()
            _columnar.serve([path, "", "", "", "", ""], out)
        code, size = struct.unpack("=qq", out.getvalue()[:16])
        message = out.getvalue()[16:].decode()
        self.assertEqual((code, size), (_columnar.FAILED, len(message)))
        self.assertRegex(message, "x.parquet is read through pyarrow, which .* lacks: .* -m pip install pyarrow")

    def test_wishes_that_cannot_be_met_are_refused(self):
        path = self.touch("x.parquet", b"PAR1....")
        with self.assertRaisesRegex(hbp.InvalidError, "vision_path is for other formats"):
            hbp.Lengths.read(path, vision_path=path)
        with self.assertRaisesRegex(hbp.InvalidError, "x.parquet holds no histogram"):
            hbp.Lengths.read(path, count_column="count")
        with self.assertRaisesRegex(hbp.FormatError, "'PAR1....' is not a whole number"):
            hbp.Lengths.read(path, format="text")

    def test_the_script_is_ascii(self):
        self.assertEqual(SCRIPT.encode("ascii").decode("ascii"), SCRIPT)
        self.assertNotIn("\0", SCRIPT)


@unittest.skipUnless(PYARROW, "there is no pyarrow")
class TestReading(Folder):
    def setUp(self):
        super().setUp()
        import pyarrow as pa

        self.pa = pa
        self.table = pa.table(
            {
                "text": ["a" * n for n in LENGTHS],
                "input_ids": [list(range(n)) for n in LENGTHS],
                "large": pa.array([[7] * n for n in LENGTHS], pa.large_list(pa.int32())),
                "loss": [n // 2 for n in LENGTHS],
                "link": [None, 0, 0, None, 7, 7, None],
                "images": pa.array([[1] * (n % 3) if n % 3 else None for n in LENGTHS], pa.list_(pa.int8())),
                "kind": pa.array([n % 2 for n in LENGTHS], pa.uint8()),
                "real": [0.5] * len(LENGTHS),
            }
        )

    def write(self, name, table, kind="parquet", rows=3):
        path = self.path(name)
        if kind == "parquet":
            import pyarrow.parquet

            pyarrow.parquet.write_table(table, path, row_group_size=rows)
            return path
        new = self.pa.ipc.new_file if kind == "file" else self.pa.ipc.new_stream
        with new(path, table.schema) as out:
            out.write_table(table, max_chunksize=rows)
        return path

    def reads(self, path, want=LENGTHS, **options):
        read = hbp.Lengths.read(path, **options)
        self.assertEqual([read[i] for i in range(len(read))], list(want))
        return read

    def test_each_kind_of_file(self):
        for kind in ("parquet", "file", "stream"):
            with self.subTest(kind):
                path = self.write("x", self.table, kind)
                self.reads(path)
                self.reads(Path(path), column="large")
                read = self.reads(
                    path, loss_column="loss", link_column="link", vision_column="images", modality_column="kind"
                )
                whole = hbp.Lengths.from_array(
                    LENGTHS,
                    loss_tokens=[n // 2 for n in LENGTHS],
                    links=[-1, 0, 0, -1, 7, 7, -1],
                    vision=[n % 3 for n in LENGTHS],
                    modalities=[n % 2 for n in LENGTHS],
                )
                self.assertEqual(read.summary(), whole.summary())
        shifted = hbp.Lengths.read(path, shifted_loss=True).summary()
        self.assertEqual(shifted, hbp.Lengths.from_array(LENGTHS, shifted_loss=True).summary())

    def test_folders_and_patterns(self):
        os.mkdir(self.path("data"))
        for i in range(2):
            self.write(f"data/train-0000{i}-of-00002.parquet", self.table.slice(3 * i, 3 + i))
        self.reads(self.path("data"))
        self.reads(self.path("data", "train-*.parquet"))

    def test_many_rows_come_in_batches(self):
        lengths = np.arange(1, 200001, dtype=np.int32)
        for kind in ("parquet", "file", "stream"):
            path = self.write("x", self.pa.table({"length": lengths}), kind, rows=len(lengths))
            rows = [len(batch[0]) for batch in _columnar.read(path, [None] * 5)]
            self.assertLessEqual(max(rows), _columnar.MOST_ROWS)
            self.assertEqual(
                hbp.Lengths.read(path).summary().digest, hbp.Lengths.from_array(lengths).summary().digest
            )

    def refused(self, text, path, error=hbp.FormatError, **options):
        with self.assertRaisesRegex(error, text):
            hbp.Lengths.read(path, **options)

    def test_refusals(self):
        pa = self.pa
        path = self.write("x", self.table)
        self.refused(r"x: no column 'nope'; there are text \(string\), input_ids", path, column="nope")
        self.refused("'text' holds text, whose tokens nobody has counted: tokenise it first", path, column="text")
        self.refused("'real' holds double, not whole numbers or lists", path, column="real")
        self.refused("'input_ids' holds list.*, not whole numbers$", path, link_column="input_ids")
        path = self.write("y", pa.table({"length": [1, 2], "loss": [1, None]}))
        self.refused("'loss' is null", path, loss_column="loss")
        path = self.write("y", pa.table({"length": [1, 2, 3, 4, None]}), rows=2)
        self.refused("y, row 4: the column 'length' is null", path)
        self.refused("past 64 bits", self.write("y", pa.table({"length": pa.array([2**64 - 1], pa.uint64())})))
        self.refused("no column holds tokens or whole numbers, but text", self.write("y", pa.table({"text": ["a"]})))
        self.refused("no column has a name that lengths go by", self.write("y", pa.table({"n": [1]})))
        path = self.write("y", pa.table({"length": pa.array([], pa.int64())}))
        self.refused("y: the data set has 0 samples", path, hbp.InvalidError)
        self.refused("y: sample 1 has 0 tokens", self.write("y", pa.table({"length": [3, 0]})), hbp.InvalidError)
        twice = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["length", "length"])
        self.refused("more than one column 'length'", self.write("y", twice, "file"))

    def test_damage_is_told(self):
        """Every cut of a small file is an error of ours, or leaves the batches before it."""
        for kind in ("parquet", "file", "stream"):
            data = Path(self.write("x", self.pa.table({"length": [5, 6, 7]}), kind)).read_bytes()
            for cut in range(8, len(data), 7):
                path = self.touch("y", data[:cut])
                try:
                    read = hbp.Lengths.read(path)
                except (hbp.FormatError, hbp.InvalidError):
                    continue
                self.assertEqual((kind, [read[i] for i in range(len(read))]), ("stream", [5, 6, 7]))

    def serve(self, *arguments):
        command = [sys.executable, "-c", SCRIPT, *arguments]
        done = subprocess.run(command, capture_output=True, check=False, cwd=self.folder)
        self.assertEqual((done.stderr, done.returncode), (b"", 0))
        return done.stdout

    def test_what_the_command_is_served(self):
        path = self.write("x", self.table)
        self.touch("pyarrow.py", b"raise SystemExit('a file of the folder is not run')")
        numbers = np.frombuffer(self.serve(path, "", "loss", "", "", ""), np.int64).tolist()
        self.assertEqual(numbers, [7, *LENGTHS, *[n // 2 for n in LENGTHS], _columnar.END])
        self.assertIn(b"no column 'nope'", self.serve(path, "nope", "", "", "", ""))


if __name__ == "__main__":
    unittest.main()

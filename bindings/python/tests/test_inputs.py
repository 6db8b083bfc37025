"""Lengths in every form that callers have them in, and what is refused."""

import array
import collections
import ctypes
import importlib.util
import unittest

import numpy as np

import hbp
from hbp import _arrays, _arrow, _inputs

VALUES = [300, 20, 4000, 7]


def has(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


def lengths_of(values) -> "list[int]":
    return list(hbp.Lengths.of(values))


class Tensor:
    """As PyTorch has them."""

    def __init__(self, values: np.ndarray) -> None:
        self.values = values
        self.calls: "list[str]" = []

    def detach(self) -> "Tensor":
        self.calls.append("detach")
        return self

    def cpu(self) -> "Tensor":
        self.calls.append("cpu")
        return self

    def numpy(self) -> np.ndarray:
        if self.values.dtype == np.float16:
            raise TypeError("Got unsupported ScalarType BFloat16")
        return self.values


class Column(collections.abc.Sequence):
    """A lazy column, as datasets has them: rows one by one are slow."""

    def __init__(self, values: "list[int]") -> None:
        self.values = values
        self.rows = 0

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, key):
        if not isinstance(key, slice):
            self.rows += 1
        return self.values[key]


_RELEASE = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_new_capsule = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
    ("PyCapsule_New", ctypes.pythonapi)
)


class Arrow:
    """Arrow's C data interface over a numpy array of int32, as any of its libraries offers it."""

    def __init__(
        self, values, nulls=(), offset: int = 0, form: bytes = b"i", dictionary: bool = False
    ) -> None:
        self.values = np.asarray(values, np.int32)
        self.released = 0
        self.form, self.dictionary = form, dictionary
        known = np.ones(len(self.values), bool)
        known[list(nulls)] = False
        self.bits = np.packbits(known, bitorder="little")
        self.offset, self.nulls = offset, len(nulls)
        self._release = _RELEASE(self._released)
        self._kept = []

    def _released(self, struct: int) -> None:
        self.released += 1
        _arrow.ArrowArray.from_address(struct).release = None

    def schema(self):
        made = _arrow.ArrowSchema(format=self.form, release=None, dictionary=1 if self.dictionary else None)
        self._kept.append(made)
        return made

    def array(self, release: bool = False):
        buffers = (ctypes.c_void_p * 2)(
            self.bits.ctypes.data if self.nulls else None, self.values.ctypes.data
        )
        made = _arrow.ArrowArray(
            length=len(self.values) - self.offset,
            null_count=-1 if self.nulls else 0,
            offset=self.offset,
            n_buffers=2,
            buffers=buffers,
            release=ctypes.cast(self._release, ctypes.c_void_p).value if release else None,
        )
        self._kept += [made, buffers]
        return made

    def __arrow_c_array__(self, requested_schema=None):
        schema, made = self.schema(), self.array()
        return (
            _new_capsule(ctypes.addressof(schema), b"arrow_schema", None),
            _new_capsule(ctypes.addressof(made), b"arrow_array", None),
        )


WHY = ctypes.create_string_buffer(b"the disk is gone")


class Chunks:
    """A stream of such arrays."""

    def __init__(self, *chunks: Arrow, fail: bool = False) -> None:
        self.chunks = chunks
        self.fail = fail

    def __arrow_c_stream__(self, requested_schema=None):
        left = list(self.chunks)

        def get_schema(stream: int, out: int) -> int:
            self.schema = Arrow([]).schema()  # whose texts the copy points to
            ctypes.memmove(out, ctypes.addressof(self.schema), ctypes.sizeof(_arrow.ArrowSchema))
            return 0

        def get_next(stream: int, out: int) -> int:
            if self.fail:
                return 5
            made = left.pop(0).array(release=True) if left else _arrow.ArrowArray()
            ctypes.memmove(out, ctypes.addressof(made), ctypes.sizeof(made))
            return 0

        def get_last_error(stream: int) -> int:
            return ctypes.addressof(WHY)

        fields = dict(_arrow.ArrowStream._fields_)
        self.error = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(get_last_error)
        self.stream = _arrow.ArrowStream(
            get_schema=fields["get_schema"](get_schema),
            get_next=fields["get_next"](get_next),
            get_last_error=ctypes.cast(self.error, fields["get_last_error"]),
        )
        return _new_capsule(ctypes.addressof(self.stream), b"arrow_array_stream", None)


class TestForms(unittest.TestCase):
    def test_python_s_own(self):
        for values in (
            VALUES,
            tuple(VALUES),
            iter(VALUES),
            (value for value in VALUES),
            map(int, VALUES),
            dict.fromkeys(VALUES).keys(),
            collections.deque(VALUES),
            array.array("i", VALUES),
            memoryview(array.array("q", VALUES)),
            (ctypes.c_int16 * 4)(*VALUES),
            [np.int64(value) for value in VALUES],
            np.array(VALUES, object),
        ):
            with self.subTest(type(values).__name__):
                self.assertEqual(lengths_of(values), VALUES)
        self.assertEqual(lengths_of(range(5, 8)), [5, 6, 7])
        self.assertEqual(lengths_of(bytearray(b"abc")), [97, 98, 99])

    def test_everything_that_takes_integers_takes_them(self):
        cost = hbp.Cost.plain(4)
        digest = hbp.plan_step(VALUES, cost).digest
        self.assertEqual(hbp.plan_step(iter(VALUES), cost).digest, digest)
        self.assertEqual(hbp.partition(iter(VALUES), 2).tolist(), hbp.partition(VALUES, 2).tolist())
        with hbp.Stepper(cost) as stepper:
            stepper.submit(iter(VALUES))
            self.assertEqual(stepper.take().digest, digest)
        made = hbp.Lengths.from_array(VALUES, loss_tokens=(value - 1 for value in VALUES))
        self.assertEqual(made.summary().loss_tokens, sum(VALUES) - 4)
        plan = hbp.plan_epoch(VALUES, cost, batches=[iter([3, 0]), range(1, 3)])
        self.assertEqual([{*sum(step.ids()[0], [])} for step in plan], [{0, 3}, {1, 2}])

    def test_no_copy_where_none_is_needed(self):
        owned = np.array(VALUES, np.int64)
        for values in (owned, memoryview(owned), Tensor(owned)):
            self.assertTrue(np.shares_memory(_arrays.integers("lengths", values, np.int64), owned))
        arrow = Arrow(VALUES)
        self.assertTrue(np.shares_memory(_arrays.integers("lengths", arrow, np.int32), arrow.values))

    def test_a_lazy_column_is_read_at_once(self):
        column = Column(VALUES)
        self.assertEqual(lengths_of(column), VALUES)
        self.assertEqual(column.rows, 0)

    def test_tensors(self):
        tensor = Tensor(np.array(VALUES))
        self.assertEqual(lengths_of(tensor), VALUES)
        self.assertEqual(tensor.calls, ["detach", "cpu"])
        with self.assertRaisesRegex(TypeError, r"lengths holds float32: lengths\[1\] is 0.5"):
            lengths_of(Tensor(np.array([1, 0.5], np.float32)))
        with self.assertRaisesRegex(TypeError, "lengths cannot be read as an array: Got unsupported"):
            lengths_of(Tensor(np.zeros(2, np.float16)))


    @unittest.skipUnless(hasattr(np, "from_dlpack"), "this numpy takes no DLPack")
    def test_dlpack_alone(self):
        class Capsule:
            def __init__(self, values: np.ndarray) -> None:
                self.values = values

            def __dlpack__(self, **options):
                return self.values.__dlpack__(**options)

            def __dlpack_device__(self):
                return 1, 0

        class Elsewhere(Capsule):
            def __dlpack__(self, **options):
                raise BufferError("it lies on another device")

        owned = np.array(VALUES, np.int32)
        self.assertTrue(np.shares_memory(_inputs.plain("lengths", Capsule(owned)), owned))
        with self.assertRaisesRegex(TypeError, "lengths cannot be read as an array: it lies on another device"):
            lengths_of(Elsewhere(owned))


class TestArrow(unittest.TestCase):
    def test_arrays_and_slices(self):
        self.assertEqual(lengths_of(Arrow(VALUES)), VALUES)
        self.assertEqual(lengths_of(Arrow(VALUES, offset=2)), VALUES[2:])
        self.assertEqual(list(_inputs.plain("lengths", Arrow([]))), [])

    def test_nulls_are_refused_with_their_place(self):
        with self.assertRaisesRegex(TypeError, r"lengths\[2\] is null"):
            lengths_of(Arrow(VALUES, nulls=[2]))
        with self.assertRaisesRegex(TypeError, r"lengths\[1\] is null"):
            lengths_of(Arrow(VALUES, nulls=[1, 3], offset=0))
        self.assertEqual(lengths_of(Arrow(VALUES, nulls=[0], offset=1)), VALUES[1:])
        with self.assertRaisesRegex(TypeError, r"lengths\[5\] is null"):
            lengths_of(Chunks(Arrow(VALUES), Arrow(VALUES, nulls=[1])))

    def test_chunks_are_joined_and_released(self):
        chunks = Arrow(VALUES), Arrow([]), Arrow([9, 8])
        self.assertEqual(lengths_of(Chunks(*chunks)), VALUES + [9, 8])
        self.assertEqual([chunk.released for chunk in chunks], [1, 1, 1])
        one = Arrow(VALUES)
        held = _inputs.plain("lengths", Chunks(one))
        self.assertTrue(np.shares_memory(held, one.values))
        self.assertEqual(one.released, 0)
        del held
        self.assertEqual(one.released, 1)

    def test_refusals(self):
        for words, given in (
            ("Arrow array of format 'u'", Arrow(VALUES, form=b"u")),
            ("table or struct; give one of its columns", Arrow(VALUES, form=b"+s")),
            ("dictionary indices", Arrow(VALUES, dictionary=True)),
            ("lengths holds float32", Arrow(VALUES, form=b"f")),
            ("lengths cannot be read: the disk is gone", Chunks(Arrow(VALUES), fail=True)),
        ):
            with self.assertRaisesRegex(TypeError, words):
                lengths_of(given)


class TestRefusals(unittest.TestCase):
    def test_what_is_no_integer_is_named_with_its_place(self):
        for words, given in (
            (r"lengths\[1\] is None; it must be an integer", [1, None]),
            (r"lengths holds float64: lengths\[1\] is 2.5", [1, 2.5]),
            (r"lengths holds float64: lengths\[2\] is nan", np.array([1, 0.5, np.nan])),
            (r"lengths holds float64: lengths\[1\] is 2.5", np.array([1, 2.5])),
            (r"lengths holds float64: lengths\[0\] is 1.0", np.array([1.0, 2.0])),
            (r"lengths holds <U\d+: lengths\[0\] is 'a'", ["a", "b"]),
            (r"lengths holds <U\d+: lengths\[2\] is '3'", [1, 2, "3"]),
            (r"lengths\[0\] is \[1, 2\]; it must be an integer", [[1, 2], [3]]),
            (r"lengths holds bool: lengths\[0\] is True", [True, False]),
            (r"lengths is 'abc'; it must be a sequence of integers", "abc"),
            (r"lengths is \{1: 2\}; it must be a sequence of integers", {1: 2}),
            (r"lengths is \{1\}; it must be a sequence of integers", {1}),
            (r"lengths is None; it must be a sequence of integers", None),
        ):
            with self.assertRaisesRegex(TypeError, words):
                lengths_of(given)
        with self.assertRaisesRegex(TypeError, r"batches\[1\]\[0\] is None"):
            hbp.plan_epoch([1, 2], hbp.Cost.plain(2), batches=[[0], [None, 1]])
        with self.assertRaisesRegex(TypeError, "a sequence of integers, such as the array it was made of"):
            hbp.partition(hbp.Lengths.of(VALUES), 2)

    def test_texts_of_the_command(self):
        meant = {"128K": ", such as 131072", "2G": ", such as 2147483648"}
        for text in (*meant, "128Ki", "K", "1.5M", "999999999G"):
            words = f"max_length is '{text}'; it must be an integer{meant.get(text, '')}$"
            with self.assertRaisesRegex(TypeError, words):
                hbp.plan_epoch([1, 2], hbp.Cost.plain(2), max_length=text)

    def test_beyond_64_bits(self):
        for given in ([1, 2**63], [1, 2**70], [-(2**70)], np.array([2**63], np.uint64)):
            with self.assertRaisesRegex(OverflowError, r"lengths holds -?\d{19,}; it must be in "):
                lengths_of(given)


class TestReal(unittest.TestCase):
    @unittest.skipUnless(has("pyarrow"), "there is no pyarrow")
    def test_pyarrow(self):
        import pyarrow

        for kind in ("int8", "uint16", "int32", "uint32", "int64", "uint64"):
            self.assertEqual(lengths_of(pyarrow.array([5, 1, 100], kind)), [5, 1, 100])
        self.assertEqual(lengths_of(pyarrow.array(VALUES).slice(1)), VALUES[1:])
        self.assertEqual(lengths_of(pyarrow.chunked_array([VALUES, [9]])), VALUES + [9])
        self.assertEqual(lengths_of(pyarrow.table({"tokens": VALUES})["tokens"]), VALUES)
        with self.assertRaisesRegex(TypeError, r"lengths\[4\] is null"):
            lengths_of(pyarrow.chunked_array([VALUES, [None, 9]], "int64"))
        for wrong in (pyarrow.array([1.5]), pyarrow.array(["a"]), pyarrow.array(["a"]).dictionary_encode()):
            with self.assertRaisesRegex(TypeError, "lengths "):
                lengths_of(wrong)
        borrowed = pyarrow.array(VALUES, "uint32")
        made = hbp.Lengths.from_array(borrowed, copy=False)
        del borrowed
        self.assertEqual(list(made), VALUES)

    @unittest.skipUnless(has("pandas"), "there is no pandas")
    def test_pandas(self):
        import pandas

        frame = pandas.DataFrame({"tokens": VALUES})
        self.assertEqual(lengths_of(frame["tokens"]), VALUES)
        self.assertEqual(lengths_of(frame["tokens"].astype("Int64")), VALUES)
        self.assertEqual(lengths_of(frame["tokens"][::-1]), VALUES[::-1])
        self.assertEqual(lengths_of(frame.index[1:]), [1, 2, 3])
        with self.assertRaisesRegex(TypeError, r"lengths\[1\] is (<NA>|nan)"):
            lengths_of(pandas.Series([1, None], dtype="Int64"))
        with self.assertRaisesRegex(TypeError, r"lengths\[1\] is nan"):
            lengths_of(pandas.Series([1, None]))
        if has("pyarrow"):
            self.assertEqual(lengths_of(frame["tokens"].astype("int64[pyarrow]")), VALUES)

    @unittest.skipUnless(has("polars"), "there is no polars")
    def test_polars(self):
        import polars

        self.assertEqual(lengths_of(polars.Series(VALUES)), VALUES)
        with self.assertRaisesRegex(TypeError, r"lengths\[1\] is null"):
            lengths_of(polars.Series([1, None]))

    @unittest.skipUnless(has("nanoarrow"), "there is no nanoarrow")
    def test_nanoarrow(self):
        import nanoarrow

        self.assertEqual(lengths_of(nanoarrow.Array(VALUES, nanoarrow.int32())), VALUES)

    @unittest.skipUnless(has("datasets"), "there is no datasets")
    def test_datasets(self):
        import datasets

        data = datasets.Dataset.from_dict({"tokens": VALUES, "input_ids": [[1, 2], [3], [4], [5]]})
        self.assertEqual(lengths_of(data["tokens"]), VALUES)
        self.assertEqual(lengths_of(data.select([2, 0])["tokens"]), [4000, 300])
        self.assertEqual(lengths_of(data.with_format("numpy")["tokens"]), VALUES)
        with self.assertRaisesRegex(TypeError, r"lengths\[0\] is \[1, 2\]"):
            lengths_of(data["input_ids"])

    @unittest.skipUnless(has("torch"), "there is no torch")
    def test_torch(self):
        import torch

        for kind in (torch.int16, torch.int32, torch.int64):
            self.assertEqual(lengths_of(torch.tensor(VALUES, dtype=kind)), VALUES)
        self.assertEqual(lengths_of(list(torch.tensor(VALUES))), VALUES)
        with self.assertRaisesRegex(TypeError, r"lengths holds float32: lengths\[0\]"):
            lengths_of(torch.tensor([1.5]))
        with self.assertRaisesRegex(TypeError, "lengths cannot be read as an array"):
            lengths_of(torch.tensor([1.5], dtype=torch.bfloat16))


if __name__ == "__main__":
    unittest.main()

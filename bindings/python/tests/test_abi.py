"""The declarations of functions, and the records that structs are made from, against the headers and the C
compiler."""

import ctypes
import gc
import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

import numpy as np
import stubs
from hbp import _native, _records

INCLUDE = Path(__file__).resolve().parents[3] / "include"
NUMBERS = {
    "int32_t": ctypes.c_int32,
    "uint32_t": ctypes.c_uint32,
    "int64_t": ctypes.c_int64,
    "uint64_t": ctypes.c_uint64,
    "uint8_t": ctypes.c_uint8,
    "double": ctypes.c_double,
    "hbp_status": ctypes.c_int32,
}


def headers(pattern: str = "*.h") -> str:
    """Of libhbp and libhbp-io: glpk.h is that of libhbp-glpk."""
    text = "".join(path.read_text() for path in sorted(INCLUDE.glob(f"hbp/{pattern}")) if path.name != "glpk.h")
    return re.sub(r"(?m)^#(?!define HBP_\w+ +\d).*$", " ", re.sub(r"/\*.*?\*/", " ", text, flags=re.S))


def functions(text: str) -> "dict[str, tuple[str, str]]":
    """Result and arguments by name."""
    found = re.findall(r"HBP_API\s+([^;()]*?)\b(hbp_\w+)\s*\(([^()]*)\)\s*;", text)
    return {name: (result, arguments) for result, name, arguments in found}


def python_name(c_name: str) -> str:
    return "".join(word.capitalize() for word in c_name.removeprefix("hbp_").split("_"))


def open_structs(text: str) -> "dict[str, list[str]]":
    """Fields by struct, both named as in C."""
    structs = {}
    for body, name in re.findall(r"typedef struct hbp_\w+ \{(.*?)\} (hbp_\w+);", text, re.S):
        declarations = [field.strip() for field in body.split(";") if field.strip()]
        structs[name] = [re.search(r"\(\*(\w+)\)|(\w+)$", field).group(1, 2) for field in declarations]
        structs[name] = [pointer or plain for pointer, plain in structs[name]]
    return structs


def python_struct(c_name: str):
    return getattr(_records, python_name(c_name))


def records(c_name: str) -> list:
    """The records of a struct's fields."""
    found = []
    while True:
        field = _records.Field()
        if _native.lib.hbp_record_get_field(c_name.encode(), len(found), ctypes.byref(field)) < 0:
            return found
        found.append(field)


def constants(prefix: str) -> "dict[str, int]":
    """The headers' constants that begin so, but numbers of them."""
    found = re.findall(r"\b(HBP_[A-Z0-9_]+)\s*=\s*(-?\d+)", headers())
    counts = ("_COUNT", "_TYPES", "_CHOICES")
    return {name.removeprefix(prefix).lower().replace("_", "-"): int(value) for name, value in found
            if name.startswith(prefix) and not name.endswith(counts)}


class TestFunctions(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.text = headers()
        cls.structs = open_structs(cls.text)
        cls.functions = functions(cls.text)
        cls.declarations = {**_native.DECLARATIONS, **_native.IO_DECLARATIONS}

    def fits(self, declaration: str, declared, is_result: bool = False) -> bool:
        """Whether a ctypes declaration says what a C one does."""
        declaration = re.sub(r"(\w+)\[\d+\]", r"*\1", declaration)
        const = "const" in declaration.split()
        words = declaration.replace("*", " * ").replace("const", " ").split()
        base, stars = words[0], words.count("*")
        if stars == 0:
            return declared is (None if base == "void" else NUMBERS[base])
        if base == "char":
            return declared is (ctypes.c_char_p if stars == 1 else ctypes.POINTER(ctypes.c_char_p))
        if stars == 2:
            return declared is ctypes.POINTER(ctypes.c_void_p)
        if base in self.structs:
            return declared is ctypes.POINTER(python_struct(base))
        if base in NUMBERS:
            by_reference = declared is ctypes.POINTER(NUMBERS[base]) and not const
            return declared is ctypes.c_void_p or (by_reference and not is_result)
        return declared is getattr(_native, python_name(base)) and issubclass(declared, _native.Opaque)

    def test_every_function_is_declared_and_no_other(self):
        self.assertGreater(len(self.functions), 100)
        self.assertEqual(sorted(self.functions), sorted(self.declarations))
        self.assertEqual(sorted(functions(headers("io.h"))), sorted(_native.IO_DECLARATIONS))
        self.assertEqual(len(re.findall(r"^HBP_API\b", self.text, re.M)), len(self.functions))

    def test_results(self):
        for name, (result, _) in self.functions.items():
            with self.subTest(name):
                self.assertTrue(self.fits(result, self.declarations[name][0], True), result)

    def test_arguments(self):
        for name, (_, arguments) in self.functions.items():
            wanted = [] if arguments.strip() == "void" else arguments.split(",")
            declared = self.declarations[name][1]
            with self.subTest(name):
                self.assertEqual(len(wanted), len(declared))
                for c_argument, python_argument in zip(wanted, declared):
                    self.assertTrue(self.fits(c_argument, python_argument), f"{c_argument}: {python_argument}")

    def test_the_library_got_the_declarations(self):
        for name, (result, arguments) in self.declarations.items():
            function = getattr(_native.lib, name)
            self.assertIs(function.restype, result)
            self.assertEqual(function.argtypes, arguments)

    def test_a_wrong_declaration_is_noticed(self):
        self.assertFalse(self.fits("int64_t count", ctypes.c_int32))
        self.assertFalse(self.fits("const int64_t *lengths", ctypes.POINTER(ctypes.c_int64)))
        self.assertFalse(self.fits("const hbp_plan *plan", _native.Lengths))
        self.assertFalse(self.fits("const hbp_sp_options *options", ctypes.POINTER(_records.CostOptions)))
        self.assertFalse(self.fits("void", ctypes.c_int32, True))

    def test_abi_version(self):
        self.assertEqual(int(re.search(r"#define HBP_ABI_VERSION\s+(\d+)", self.text)[1]), _native.ABI_VERSION)
        self.assertEqual(_native.lib.hbp_version_abi(), _native.ABI_VERSION)

    def test_swapped_handles_are_refused(self):
        import hbp

        model = hbp.Model.preset("llama-3.1-8b")
        with self.assertRaises(ctypes.ArgumentError):
            _native.lib.hbp_machine_get_name(model)


class TestEnumerations(unittest.TestCase):
    """Names in Python and numbers in C say the same."""

    def test_enumerations_of_fields(self):
        """Every enumeration that the records have, against the header."""
        seen = {field.choices for name in _records.structs() for field in getattr(_records, name)._record.values()}
        self.assertGreater(len(seen - {None}), 15)
        for enumeration in seen - {None}:
            found = _records.choices(enumeration)
            if not enumeration.endswith("_METHODS"):
                self.assertEqual(constants(enumeration + "_"), found, enumeration)
            self.assertEqual([_records.name_of(enumeration, value) for value in found.values()], list(found))
            self.assertIsNone(_records.name_of(enumeration, 1 + max(found.values())))
        self.assertEqual(_records.choices("HBP_NO_SUCH"), {})

    def test_methods(self):
        """Every list of the headers, in its order, is a family, whose methods are told as they are there."""
        import hbp

        text = "".join(path.read_text() for path in sorted(INCLUDE.glob("hbp/*.h")))
        lists = dict(re.findall(r"#define (HBP_\w+_METHODS)\(X\)((?:.*\\\n)+.*)", text))
        self.assertEqual(sorted(lists), sorted(_records.families().values()))
        for family, constant in _records.families().items():
            words = re.sub(r"\\\n\s*", " ", lists[constant])
            rows = re.findall(r'X\((\w+),\s*"([^"]+)",\s*"([^"]*)",\s*((?:"[^"]*"\s*)+)\)', words)
            told = hbp.methods(of=family)
            self.assertGreater(len(rows), 1, family)
            self.assertEqual([(name, paper) for _, name, paper, _ in rows],
                             [(name, method.paper) for name, method in told.items()])
            self.assertEqual(["".join(re.findall('"([^"]*)"', row[3])) for row in rows],
                             [method.text for method in told.values()])
            self.assertEqual(_records.choices(constant), {name: place for place, name in enumerate(told)})
            self.assertEqual(hbp.methods(family.replace("-", "_")), told)
            self.assertIn(f'"{family}"', " ".join(hbp.methods.__doc__.split()))
        with self.assertRaisesRegex(ValueError, "of is 'epochs' \\(did you mean 'epoch'\\?\\); it must be one of 'balance'"):
            hbp.methods(of="epochs")

    def test_enumerations_of_arguments_and_columns(self):
        """The others, which Python has tables of."""
        from hbp import cost, graph, layers, machine, pipeline, plans, recompute

        tables = {
            "HBP_LOSS_": plans.LOSS,
            "HBP_COLLECTIVE_": machine.COLLECTIVES,
            "HBP_LAYER_": layers.LAYER_TYPES,
            "HBP_RECOMPUTE_": layers.RECOMPUTE,
            "HBP_RANKED_": pipeline.RANKED,
            "HBP_GRAPH_": graph.FORMATS,
        }
        for prefix, table in tables.items():
            self.assertEqual(constants(prefix), {name.replace("_", "-"): value for name, value in table.items()}, prefix)
        values = constants("HBP_")
        for name, value in pipeline.DIRECTIONS.items():
            self.assertEqual(value, values[name])
        select = {name: values[f"select-{name}"] for name in ("attention", "mlp")}
        self.assertEqual({"both": 0, "neither": -1, **select}, recompute.SELECT)
        self.assertEqual({3: 3, 2: 2, 1: 1, 0: _records.choices("HBP_ZERO")["none"]}, cost.ZERO_STAGES)
        self.assertEqual(plans.CURSOR_BYTES, int(re.search(r"#define HBP_CURSOR_BYTES\s+(\d+)", headers())[1]))

    def test_statuses(self):
        import hbp
        from hbp.errors import error_of

        found = re.findall(r"X\((HBP_E_\w+), (-\d+), \"([^\"]+)\"\)", headers())
        self.assertGreater(len(found), 9)
        classes = set()
        for name, value, text in found:
            error = error_of(int(value), "")
            self.assertEqual((error.status, error.name, str(error)), (int(value), name, text))
            self.assertIsInstance(error, hbp.HbpError)
            classes.add(type(error))
        self.assertEqual(len(classes), len(found))
        self.assertNotIn(hbp.HbpError, classes)


class TestStructs(unittest.TestCase):
    def test_layout(self):
        compiler = os.environ.get("CC", "cc").split()
        if not shutil.which(compiler[0]):
            self.skipTest("no C compiler")
        structs = open_structs(headers())
        self.assertGreater(len(structs), 20)
        lines = ["#include <hbp/hbp.h>", "#include <hbp/io.h>", "#include <stddef.h>", "#include <stdio.h>", "int main(void)", "{"]
        for name, fields in structs.items():
            lines.append(f'    printf("{name} . %zu 0\\n", sizeof({name}));')
            for field in fields:
                size = f"sizeof((({name} *)0)->{field})"
                lines.append(f'    printf("{name} {field} %zu %zu\\n", offsetof({name}, {field}), {size});')
        lines += ["    return 0;", "}"]
        with tempfile.TemporaryDirectory() as folder:
            source, program = Path(folder, "layout.c"), Path(folder, "layout")
            source.write_text("\n".join(lines) + "\n")
            subprocess.run([*compiler, "-std=c11", f"-I{INCLUDE}", "-o", program, source], check=True)
            output = subprocess.run([program], check=True, capture_output=True, text=True).stdout
        seen = {}
        for line in output.splitlines():
            name, field, offset, size = line.split()
            kind = python_struct(name)
            if field == ".":
                self.assertEqual(ctypes.sizeof(kind), int(offset), name)
                continue
            seen.setdefault(name, []).append(field)
            member = getattr(kind, field)
            self.assertEqual((member.offset, member.size), (int(offset), int(size)), f"{name}.{field}")
            record = records(name)[len(seen[name]) - 1]
            self.assertEqual((record.name.decode(), record.offset, record.bytes), (field, int(offset), int(size)))
        self.assertEqual(sorted(seen), sorted(_records.structs().values()))
        for name, fields in seen.items():
            self.assertEqual([field[0] for field in python_struct(name)._fields_], fields)
            self.assertEqual(len(records(name)), len(fields))

    def test_kinds(self):
        """Numbers of one size may still differ in kind."""
        for body, name in re.findall(r"typedef struct hbp_\w+ \{(.*?)\} (hbp_\w+);", headers(), re.S):
            types = dict(python_struct(name)._fields_)
            for kind, fields in re.findall(r"(?:^|;)\s*(\w+)\s+(\w+)(?=\s*;)", body):
                if kind in NUMBERS:
                    self.assertIs(types.get(fields), NUMBERS[kind], f"{name}.{fields}")

    def test_the_first_records_are_read_as_they_are(self):
        """What reads records is laid out as the records say."""
        for reader, told in ((_records.FieldRecord, _records.Field), (_records.ChoiceRecord, _records.Choice)):
            self.assertEqual(told._fields_[: len(reader._fields_)], reader._fields_)

    def test_columns_and_objects(self):
        """What a pointer points to, as the header declares it."""
        seen = set()
        for name in _records.structs().values():
            for record in records(name)[1:]:
                field = python_struct(name)._record[record.name.decode()]
                words = record.declared.decode().replace("*", " * ").split()
                self.assertEqual(field.ctype is ctypes.c_double, words == ["double"], field.name)
                self.assertEqual(field.ctype is ctypes.c_char_p, words == ["const", "char", "*"], field.name)
                if len(words) == 3 and words[0] == "const" and words[1].removesuffix("_t") in (
                        "int32", "uint32", "int64", "double"):
                    self.assertEqual(field.column, words[1].removesuffix("_t").replace("double", "float64"))
                elif field.object:
                    self.assertTrue(issubclass(getattr(_native, field.object), _native.Opaque))
                    self.assertEqual(words[1], "hbp_" + re.sub(r"(?<!^)(?=[A-Z])", "_", field.object).lower())
                    seen.add(field.object)
                else:
                    self.assertIsNone(field.column)
        self.assertEqual(seen, {"Cost", "Groups", "Layers", "TaskSchedule", "Timeline"})

    def test_the_stub_says_what_the_library_says(self):
        """python3 bindings/python/tests/stubs.py --write writes it anew."""
        self.assertEqual(stubs.STUB.read_text(), stubs.text())

    def test_names_and_flags(self):
        """Names become constants, flags 0 or 1, texts bytes; objects are those of their class."""
        import hbp

        made = _records.EpochOptions(over_long="drop", composition="hierarchy", drop_last=np.bool_(True))
        self.assertEqual((made.over_long, made.composition, made.drop_last), (1, 3, 1))
        self.assertEqual(_records.CostFileOptions(note="now").note, b"now")
        for value in (7, -1, "yes", "", [], 1.0):
            with self.assertRaisesRegex(TypeError, f"drop_last is {re.escape(repr(value))}; it must be True or False"):
                _records.EpochOptions(drop_last=value)
        with self.assertRaisesRegex(ValueError, "over_long is True; it must be one of 'error'"):
            _records.EpochOptions(over_long=True)
        with self.assertRaisesRegex(ValueError, "over_long is 'alone'; .* 'drop', 'truncate', 'split'$"):
            _records.EpochOptions(over_long="alone")  # which other options have
        with self.assertRaisesRegex(ValueError, "over_long is 'dorp' \\(did you mean 'drop'\\?\\); it must be one of 'error'"):
            _records.EpochOptions(over_long="dorp")
        self.assertEqual(_records.EpochOptions(method="next_fit").method, b"next-fit")
        for wrong in (None, 0, "paper", b"hbp"):
            with self.assertRaisesRegex(ValueError, "method is .*; it must be one of 'search', 'hbp'"):
                _records.EpochOptions(method=wrong)
        with self.assertRaisesRegex(ValueError, "method is 'flexps' \\(did you mean 'flexsp'\\?\\)"):
            _records.StepOptions(method="flexps")
        with self.assertRaisesRegex(TypeError, "groups is <hbp.Model llama-3.1-8b>; it must be hbp.Groups"):
            _records.EpochOptions(groups=hbp.Model.preset("llama-3.1-8b"))
        with self.assertRaisesRegex(TypeError, "groups is 4096; it must be hbp.Groups"):
            _records.EpochOptions(groups=4096)
        with self.assertRaisesRegex(TypeError, "a text is 3"):
            _records.CostFileOptions(note=3)
        with self.assertRaisesRegex(AttributeError, "NoSuch"):
            _records.NoSuch

    def test_texts_outlive_those_who_gave_them(self):
        made = [_records.EpochOptions(method="-".join(["best", "fit", "decreasing"])) for _ in range(100)]
        notes = [_records.CostFileOptions(note=f"note {i}") for i in range(100)]
        gc.collect()
        junk = [b"x" * len("best-fit-decreasing") for _ in range(10000)]
        self.assertEqual({options.method for options in made}, {b"best-fit-decreasing"})
        self.assertEqual([options.note for options in notes], [b"note %d" % i for i in range(100)])
        self.assertEqual(len(junk), 10000)

    def test_values(self):
        """Structs are compared and shown by their fields, and say what the header says of them."""
        made = _records.SpOptions(tokens_per_step=5)
        self.assertEqual(made, _records.SpOptions.pick({"tokens_per_step": 5, "other": 1}))
        self.assertNotEqual(made, _records.SpOptions())
        self.assertEqual(repr(made), "SpOptions(tokens_per_step=5, squares_per_token=0.0)")
        self.assertEqual(made.as_dict(), {"tokens_per_step": 5, "squares_per_token": 0.0})
        self.assertEqual(made.names(), ["tokens_per_step", "squares_per_token"])
        self.assertIn("A decoder-only transformer.", _records.ModelFields.__doc__)
        self.assertIn("\ntied_embeddings: ", _records.ModelFields.__doc__)

    def test_fields_are_checked(self):
        with self.assertRaisesRegex(TypeError, "SpOptions has no field 'tokens_per_stop' \\(did you mean 'tokens_per_step'"):
            _records.SpOptions(tokens_per_stop=1)
        with self.assertRaisesRegex(TypeError, "'struct_size'"):
            _records.SpOptions(struct_size=1)
        with self.assertRaises(OverflowError):
            _records.GroupsOptions(max_groups=2**31)
        with self.assertRaises(OverflowError):
            _records.FillOptions(seed=-1)
        with self.assertRaises(TypeError):
            _records.FillOptions(effort=1.5)


if __name__ == "__main__":
    unittest.main()

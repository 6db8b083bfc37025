"""The declarations of functions and structs against the headers and the C compiler."""

import ctypes
import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from hbp import _native, _structs, _structs_plan, _structs_stepper, _structs_tasks, _structs_timeline, _structs_vlm

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


MODULES = (_structs, _structs_plan, _structs_stepper, _structs_tasks, _structs_timeline, _structs_vlm)


def python_struct(c_name: str):
    """hbp_cost_terms is CostTermsStruct: CostTerms is what users see."""
    name = python_name(c_name)
    found = (getattr(module, name + end, None) for end in ("Struct", "") for module in MODULES)
    return next(filter(None, found))


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
        self.assertFalse(self.fits("const hbp_sp_options *options", ctypes.POINTER(_structs.CostOptions)))
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

    def test_values(self):
        import hbp
        from hbp import cost, epoch, graph, groups, layers, lengths, machine, model, packs, pipeline, plan, recompute, vision
        from hbp import tasks, vlm_plan

        text = headers()
        values = dict(re.findall(r"\b(HBP_[A-Z0-9_]+)\s*=\s*(-?\d+)", text))
        tables = {
            "HBP_OVERLONG_": lengths.OVER_LONG,
            "HBP_GROUPS_": groups.MODES,
            "HBP_FILL_": packs.MODES,
            "HBP_BALANCE_": epoch.BALANCE_MODES,
            "HBP_EPOCH_": epoch.EPOCH_MODES,
            "HBP_LOSS_": plan.LOSS,
            "HBP_COLLECTIVE_": machine.COLLECTIVES,
            "HBP_RATE_": machine.RATES,
            "HBP_ISF_": vision.FILL_MODES,
            "HBP_BUDGETS_": vision.BUDGETS_MODES,
            "HBP_LAYER_": layers.KINDS,
            "HBP_RECOMPUTE_": layers.RECOMPUTE,
            "HBP_PARTITION_": pipeline.MODES,
            "HBP_RANKED_": pipeline.RANKED,
            "HBP_MEMORY_": recompute.MODES,
            "HBP_VLM_DATA_": vlm_plan.DATA_MODES,
            "HBP_DEGREES_": graph.DEGREES,
            "HBP_GRAPH_": graph.FORMATS,
            "HBP_TASKS_": tasks.MODES,
            "HBP_PLACE_": tasks.PLACEMENTS,
        }
        counts = ("_COUNT", "_KINDS", "_CHOICES")
        for prefix, table in tables.items():
            wanted = {name.removeprefix(prefix).lower(): int(value) for name, value in values.items()
                      if name.startswith(prefix) and not name.endswith(counts)}
            self.assertEqual(wanted, {name.replace("-", "_"): value for name, value in table.items()}, prefix)
        for name in ("gated", "plain"):
            self.assertEqual(model.MLP[name], int(values[f"HBP_MLP_{name.upper()}"]))
        for name, value in pipeline.DIRECTIONS.items():
            self.assertEqual(value, int(values[f"HBP_{name.upper()}"]))
        select = {name: int(values[f"HBP_SELECT_{name.upper()}"]) for name in ("attention", "mlp")}
        self.assertEqual({"both": 0, "neither": -1, **select}, recompute.SELECT)
        self.assertEqual({3: 3, 2: 2, 1: 1, 0: 4}, cost.ZERO_STAGES)
        self.assertEqual(values["HBP_ZERO_NONE"], "4")
        self.assertEqual(len(hbp.baselines()), int(values["HBP_BASELINE_COUNT"]))
        compositions = {f"HBP_COMPOSITION_{name.upper()}": str(value)
                        for value, name in enumerate(_structs_plan.COMPOSITION_NAMES)}
        found = {name: value for name, value in values.items() if name.startswith("HBP_COMPOSITION_")}
        self.assertEqual(compositions, found)
        self.assertEqual(plan.CURSOR_BYTES, int(re.search(r"#define HBP_CURSOR_BYTES\s+(\d+)", text)[1]))

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
        for name, fields in seen.items():
            self.assertEqual([field[0] for field in python_struct(name)._fields_], fields)

    def test_kinds(self):
        """Numbers of one size may still differ in kind."""
        for body, name in re.findall(r"typedef struct hbp_\w+ \{(.*?)\} (hbp_\w+);", headers(), re.S):
            types = dict(python_struct(name)._fields_)
            for kind, fields in re.findall(r"(?:^|;)\s*(\w+)\s+(\w+)(?=\s*;)", body):
                if kind in NUMBERS:
                    self.assertIs(types.get(fields), NUMBERS[kind], f"{name}.{fields}")

    def test_fields_are_checked(self):
        with self.assertRaises(TypeError):
            _structs.SpOptions(tokens=1)
        with self.assertRaises(OverflowError):
            _structs.GroupsOptions(max_groups=2**31)
        with self.assertRaises(OverflowError):
            _structs.FillOptions(seed=-1)
        with self.assertRaises(TypeError):
            _structs.FillOptions(effort=1.5)


if __name__ == "__main__":
    unittest.main()

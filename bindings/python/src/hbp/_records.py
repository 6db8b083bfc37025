"""The open structs, made from what the library says of them (hbp/base.h, "Records"): StepOptions is
hbp_step_options, and so on, each made when it is first asked for. _records.pyi says the same to type checkers;
tests/stubs.py writes it."""

from __future__ import annotations

import ctypes
import functools
import sys
from typing import Any, Mapping, NamedTuple, Optional

from ._numbers import INTEGER_BITS, checked, choice, flag, list_names, not_among, text_bytes

# By HBP_FIELD_*.
TYPES: tuple[Any, ...] = (
    ctypes.c_int32,
    ctypes.c_uint32,
    ctypes.c_int64,
    ctypes.c_uint64,
    ctypes.c_double,
    ctypes.c_char_p,
    ctypes.c_void_p,
)
# Columns as C declares them, and the type of their values.
COLUMNS = {
    "const int32_t *": "int32",
    "const uint32_t *": "uint32",
    "const int64_t *": "int64",
    "const double *": "float64",
}


class FieldRecord(ctypes.Structure):
    """The beginning of hbp_field, which must be known before any record is read."""

    _fields_ = [
        ("struct_size", ctypes.c_uint32),
        *((name, ctypes.c_int32) for name in ("type", "offset", "bytes")),
        *((name, ctypes.c_char_p) for name in ("name", "declared", "shape", "choices", "text")),
        *((name, ctypes.c_int32) for name in ("is_flag", "is_ranged")),
        *((name, ctypes.c_int64) for name in ("least", "most")),
    ]


class ChoiceRecord(ctypes.Structure):
    """hbp_choice."""

    _fields_ = [
        ("struct_size", ctypes.c_uint32),
        ("value", ctypes.c_int32),
        *((name, ctypes.c_char_p) for name in ("name", "constant", "text", "paper")),
    ]


class Method(NamedTuple):
    """What a method does, and where it was published; "" for this library's own and for common knowledge."""

    text: str
    paper: str


class Member:
    """A field of a struct, and what may be put into it. `column` is the type of a column's values, `object` the
    class of an object that is pointed to, `choices` the enumeration or the methods that it is of; each None of
    other fields."""

    __slots__ = ("name", "ctype", "column", "object", "choices", "within", "is_flag", "text")

    def __init__(self, record: FieldRecord, structs: Mapping[str, str]) -> None:
        self.name: str = record.name.decode()
        self.ctype = TYPES[record.type]
        self.column = self.object = None
        if self.ctype is ctypes.c_void_p:
            declared = record.declared.decode()
            self.column = COLUMNS.get(declared)
            name = python_name(declared[6:-2]) if declared.startswith("const hbp_") else ""
            self.object = name if name and name not in structs else None
        self.choices: Optional[str] = record.choices and record.choices.decode()
        self.within = range(record.least, record.most + 1) if record.is_ranged else None
        self.is_flag = bool(record.is_flag)
        self.text: str = record.text.decode()

    def names(self) -> dict[str, int]:
        """The constants that may be chosen, by their names."""
        known = choices(self.choices or "")
        return {name: value for name, value in known.items() if not self.within or value in self.within}

    def of(self, value: Any) -> Any:
        """`value` as the field holds it: a constant for its name, bytes for a text, the address of an object.
        What does not fit is refused; what makes no sense is for the library to refuse."""
        if self.choices and self.ctype is ctypes.c_char_p:
            names = list(choices(self.choices))
            return names[choice(self.name, value, {name: row for row, name in enumerate(names)})].encode()
        if self.choices and (isinstance(value, bool) or not hasattr(value, "__index__")):
            return choice(self.name, value, self.names())
        if self.is_flag:
            return flag(self.name, value)
        if self.ctype in INTEGER_BITS:
            return checked(self.name, value, self.ctype)
        if self.ctype is ctypes.c_double:
            return float(value)
        if self.ctype is ctypes.c_char_p:  # ctypes would take an integer for an address
            return value if isinstance(value, bytes) else text_bytes(value)
        if self.object and value is not None:
            if getattr(getattr(value, "_opaque", None), "__name__", "") != self.object:
                raise TypeError(f"{self.name} is {value!r}; it must be hbp.{self.object}")
            return value._handle.pointer
        return value


def _shown(name: str, value: Any) -> str:
    """A field's value; a digest as the command and the files have it."""
    return f"{value:016x}" if name.endswith("digest") else repr(value)


class Struct(ctypes.Structure):
    """A struct whose first field is its size. Keywords set fields; what does not fit a field is refused."""

    _record: dict[str, Member] = {}  # struct_size left out

    def __init__(self, **values: Any) -> None:
        super().__init__()
        self.struct_size = ctypes.sizeof(self)
        for name, value in values.items():
            field = self._record.get(name)
            if field is None:
                raise TypeError(f"{type(self).__name__} has no field {not_among(name, self._record)}")
            setattr(self, name, field.of(value))

    def __init_subclass__(cls) -> None:
        cls.__doc__ = cls.__doc__ or cls.__base__.__doc__

    @classmethod
    def pick(cls, values: Mapping[str, Any], **others: Any) -> Any:
        """A struct of those `values` that are its fields, such as the keywords of a call among its locals();
        `others` go before."""
        fields = {name: values[name] for name in cls._record if name in values}
        return cls(**{**fields, **others})

    @classmethod
    def names(cls) -> list[str]:
        """The fields' names, `struct_size` left out."""
        return list(cls._record)

    def as_dict(self) -> dict[str, Any]:
        """The fields by name."""
        return {name: getattr(self, name) for name in self._record}

    def _repr_html_(self) -> str:
        from ._show import struct_html

        return struct_html(self)

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={_shown(name, value)}" for name, value in self.as_dict().items())
        return f"{type(self).__name__}({values})"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.as_dict() == other.as_dict()  # type: ignore[attr-defined]

    __hash__ = None  # type: ignore[assignment]


_get_name: Any
_get_field: Any
_get_choice: Any


def bind(library: ctypes.CDLL) -> None:
    """Says which library's records these are, before any struct is asked for."""
    global _get_name, _get_field, _get_choice
    row = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_char_p, ctypes.c_int64, ctypes.c_void_p)
    try:
        _get_name = ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.c_int64)(("hbp_record_get_struct_name", library))
        _get_field = row(("hbp_record_get_field", library))
        _get_choice = row(("hbp_record_get_choice", library))
    except AttributeError:
        raise ImportError(
            f"libhbp at {library._name} has no records; it is older than this package"
        ) from None


def python_name(c_name: str) -> str:
    """hbp_step_options is StepOptions."""
    return "".join(word.capitalize() for word in c_name.split("_")[1:])


@functools.lru_cache(maxsize=None)
def structs() -> dict[str, str]:
    """The structs' names in C, by those in Python."""
    return {python_name(name): name for name in list_names(_get_name)}


@functools.lru_cache(maxsize=None)
def choices(enumeration: str) -> dict[str, int]:
    """The constants of an enumeration by their names: "HBP_OVERLONG" has "error", "drop", ...; of a list of
    methods, "HBP_STEP_METHODS", their places."""
    record, values = ChoiceRecord(ctypes.sizeof(ChoiceRecord)), dict[str, int]()
    while _get_choice(enumeration.encode(), len(values), ctypes.byref(record)) >= 0:
        values[record.name.decode()] = record.value
    return values


@functools.lru_cache(maxsize=None)
def families() -> dict[str, str]:
    """The lists of methods that options have, by what Python calls them: "step" is "HBP_STEP_METHODS"."""
    known = [getattr(sys.modules[__name__], name) for name in structs()]
    found = {field.choices or "" for struct in known for field in struct._record.values()}
    return {
        name[len("HBP_") : -len("_METHODS")].lower().replace("_", "-"): name
        for name in sorted(found)
        if name.endswith("_METHODS")
    }


def methods(of: str) -> dict[str, Method]:
    """The methods by name, the default first, that `of` may be planned by: hbp.methods(of="epoch") are those of
    plan_epoch. Others are of "step", "groups", "fill", "balance", "iterative-fill", "budgets", "layer-partition",
    "recompute", "vlm-data", "tasks" and "placement"."""
    names = list(families().values())
    family = names[choice("of", of, {name: row for row, name in enumerate(families())})]
    record, found = ChoiceRecord(ctypes.sizeof(ChoiceRecord)), dict[str, Method]()
    while _get_choice(family.encode(), len(found), ctypes.byref(record)) >= 0:
        found[record.name.decode()] = Method(record.text.decode(), record.paper.decode())
    return found


def name_of(enumeration: str, value: int) -> Optional[str]:
    """The name of a constant; None where there is no such constant."""
    return next((name for name, known in choices(enumeration).items() if known == value), None)


def __getattr__(name: str) -> Any:
    known = structs() if name[0].isupper() else {}
    if name not in known:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    c_name, record = known[name].encode(), FieldRecord(ctypes.sizeof(FieldRecord))
    at, fields = ctypes.byref(record), dict[str, Member]()
    _get_field(c_name, -1, at)
    text = record.text.decode()
    while _get_field(c_name, len(fields), at) >= 0:
        field = Member(record, known)
        fields[field.name] = field
    layout = [(field.name, field.ctype) for field in fields.values()]
    del fields["struct_size"]
    lines = [f"{field.name}: {field.text}" for field in fields.values() if field.text]
    body = {
        "__doc__": "\n\n".join([text] * bool(text) + ["\n".join(lines)] * bool(lines)),
        "__module__": __name__,
        "_fields_": layout,
        "_record": fields,
    }
    made: Any = type(Struct)
    return globals().setdefault(name, made(name, (Struct,), body))

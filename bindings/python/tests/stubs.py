"""What _records.pyi and _choices.py say, made from the library's records. --write replaces the files."""

import ctypes
import json
import sys
from pathlib import Path

from hbp import _records

STUB = Path(_records.__file__).with_suffix(".pyi")
CHOICES = STUB.with_name("_choices.py")
TYPES = {ctypes.c_double: "float", ctypes.c_char_p: "Text", ctypes.c_void_p: "Address"}  # else int
HEAD = '''\
# Made by tests/stubs.py from the library's records; do not edit.
import ctypes
from typing import Any, ClassVar, Mapping, NamedTuple, Optional, TypeVar

from ._choices import MethodFamily

Text = Optional[bytes]
Address = Optional[int]
S = TypeVar("S", bound="Struct")

TYPES: tuple[Any, ...]
COLUMNS: dict[str, str]

class FieldRecord(ctypes.Structure): ...
class ChoiceRecord(ctypes.Structure): ...

class Method(NamedTuple):
    text: str
    paper: str

class Member:
    name: str
    ctype: Any
    column: Any  # Optional[str]
    object: Optional[str]
    choices: Optional[str]
    within: Optional[range]
    is_flag: bool
    text: str
    def names(self) -> dict[str, int]: ...
    def of(self, value: Any) -> Any: ...

class Struct(ctypes.Structure):
    struct_size: int
    _record: ClassVar[dict[str, Member]]
    def __init__(self, **values: Any) -> None: ...
    @classmethod
    def pick(cls: type[S], values: Mapping[str, Any], **others: Any) -> S: ...
    @classmethod
    def names(cls) -> list[str]: ...
    def as_dict(self) -> dict[str, Any]: ...
    def _repr_html_(self) -> str: ...

def bind(library: ctypes.CDLL) -> None: ...
def python_name(c_name: str) -> str: ...
def structs() -> dict[str, str]: ...
def choices(enumeration: str) -> dict[str, int]: ...
def families() -> dict[str, str]: ...
def methods(of: MethodFamily) -> dict[str, Method]: ...
def name_of(enumeration: str, value: int) -> Optional[str]: ...
'''


CHOICES_HEAD = '''\
"""What options that are choices may be, for type checkers: EpochMethod is what `method` of EpochOptions may.
Made by tests/stubs.py from the library's records; do not edit."""

from typing import Literal
'''
# Choices of what is no option, by enumeration; of those of HBP_ZERO Python takes the numbers.
NAMED = {"HBP_COLLECTIVE": "CollectiveName", "HBP_DEGREES": "DegreesName", "HBP_RATE": "RateName"}


def choice_texts() -> "dict[str, list[str]]":
    """What may be chosen, by the name of its type."""
    found: "dict[str, list[str]]" = {}
    for name in _records.structs():
        for member in getattr(_records, name)._record.values():
            if not member.choices or member.choices == "HBP_ZERO":
                continue
            within = list(member.names())
            if name.endswith("Options"):
                words = member.name.split("_")
                found[name[: -len("Options")] + "".join(word.capitalize() for word in words)] = within
            elif member.choices in NAMED:
                found[NAMED[member.choices]] = within
    found["MethodFamily"] = list(_records.families())
    return dict(sorted(found.items()))


def choices_text() -> str:
    """The module of choices."""
    parts = [CHOICES_HEAD]
    for name, texts in choice_texts().items():
        line = f"{name} = Literal[{', '.join(json.dumps(text) for text in texts)}]"
        if len(line) > 110:
            line = "\n".join([f"{name} = Literal[", *(f"    {json.dumps(text)}," for text in texts), "]"])
        parts.append(line + "\n")
    return "\n".join([parts[0], "".join(parts[1:])])


def text() -> str:
    """The stub."""
    parts = [HEAD]
    for name in _records.structs():
        members = getattr(_records, name)._record.values()
        lines = [f"    {member.name}: {TYPES.get(member.ctype, 'int')}" for member in members]
        clash = "  # type: ignore[assignment]"
        lines = [line + clash * hasattr(_records.Struct, member.name) for line, member in zip(lines, members)]
        parts.append("\n".join([f"\nclass {name}(Struct):", *lines, ""]))
    return "".join(parts)


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        STUB.write_text(text())
        CHOICES.write_text(choices_text())
    else:
        sys.stdout.write(text())

"""What _records.pyi says, made from the library's records. With --write it replaces the file."""

import ctypes
import sys
from pathlib import Path

from hbp import _records

STUB = Path(_records.__file__).with_suffix(".pyi")
TYPES = {ctypes.c_double: "float", ctypes.c_char_p: "Text", ctypes.c_void_p: "Address"}  # else int
HEAD = '''\
# Made by tests/stubs.py from the library's records; do not edit.
import ctypes
from typing import Any, ClassVar, Mapping, NamedTuple, Optional, TypeVar

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
    is_flag: bool
    text: str
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

def bind(library: ctypes.CDLL) -> None: ...
def python_name(c_name: str) -> str: ...
def structs() -> dict[str, str]: ...
def choices(enumeration: str) -> dict[str, int]: ...
def families() -> dict[str, str]: ...
def methods(of: str) -> dict[str, Method]: ...
def name_of(enumeration: str, value: int) -> Optional[str]: ...
'''


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
    else:
        sys.stdout.write(text())

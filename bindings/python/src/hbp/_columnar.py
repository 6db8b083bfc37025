"""Lengths in Parquet and Arrow files, through pyarrow, a batch at a time. The hbp command runs this file alone, as
`python3 -c`, and reads what `serve` writes; so nothing of the package is imported here."""

from __future__ import annotations

import glob
import importlib
import json
import os
import re
import signal
import struct
import sys
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO, Optional

# Names that lengths go by, as in the other formats, and then those of tokens.
NAMES = ("length", "len", "tokens", "num_tokens", "input_ids")
PARQUET, ARROW_FILE, ARROW_STREAM = b"PAR1", b"ARROW1", b"\xff\xff\xff\xff"
ROWS = 1024  # of Parquet that are decoded at once
MOST_ROWS = 65536  # of a batch that is yielded


class Refused(ValueError):
    """The message says why."""


def arrow(module: str = "pyarrow") -> Any:
    """What is there where it is wanted; type checkers know nothing of it."""
    return importlib.import_module(module)


def first_bytes(path: str) -> bytes:
    """The bytes by which a format is known; none of what is no regular file."""
    if not os.path.isfile(path):
        return b""
    with open(path, "rb") as file:
        return file.read(6)


def is_columnar(path: str) -> bool:
    """Whether a path is a Parquet or an Arrow file, a folder of them, or a pattern that such files match."""
    if os.path.isdir(path):
        return not os.path.exists(os.path.join(path, "index.json")) and any(
            name.endswith((".parquet", ".arrow", ".feather")) or name in ("dataset_dict.json", "state.json")
            for name in os.listdir(path)
        )
    head = first_bytes(path)
    if head:
        return head.startswith((PARQUET, ARROW_FILE, ARROW_STREAM))
    return "*" in path and path.endswith((".parquet", ".arrow", ".feather"))


def series_of(path: str) -> str:
    """What the files of one data set have in common: what stands before "-00000-of-00002", or all but digits."""
    name = os.path.basename(path)
    part = re.match(r"(.*)-\d+-of-\d+", name)
    return part[1] if part else re.sub(r"\d+", "", name)


def files_of(path: str) -> list[str]:
    """The files that a path stands for, in the order of their numbers."""
    if os.path.isdir(path):
        if os.path.exists(os.path.join(path, "dataset_dict.json")):
            with open(os.path.join(path, "dataset_dict.json"), encoding="utf-8") as file:
                splits = json.load(file).get("splits", [])
            raise Refused(f"{path} holds the splits {', '.join(map(str, splits))}: name the folder of one")
        names = [os.path.join(path, name) for name in os.listdir(path)]
        found = [name for name in names if name.endswith((".parquet", ".arrow", ".feather"))]
    elif "*" in path and not os.path.exists(path):
        found = glob.glob(path)
    else:
        return [path]
    if not found:
        raise Refused(f"{path}: no .parquet or .arrow file")
    series = sorted({series_of(name) for name in found})
    if len(series) > 1:
        shown = ", ".join(series[:4]) + (", ..." if len(series) > 4 else "")
        raise Refused(f"{path} holds files of more than one series ({shown}): name one, as '{series[0]}*' in quotes")
    found.sort(key=lambda name: ([int(digits) for digits in re.findall(r"\d+", os.path.basename(name))], name))
    due = re.search(r"-\d+-of-(\d+)", os.path.basename(found[0]))
    if due and int(due[1]) != len(found):
        raise Refused(f"{path}: {len(found)} files of {int(due[1])} are there")
    return found


def tables(path: str) -> tuple[Any, Any]:
    """The schema of a file, and a function that yields its batches of the columns named."""
    pa = arrow()
    head = first_bytes(path)
    if head.startswith(PARQUET):
        parquet = arrow("pyarrow.parquet").ParquetFile(path, memory_map=True)
        return parquet.schema_arrow, lambda names: parquet.iter_batches(batch_size=ROWS, columns=names)
    if head.startswith(ARROW_FILE):
        file = pa.ipc.open_file(pa.memory_map(path))
        return file.schema, lambda names: (file.get_batch(i).select(names) for i in range(file.num_record_batches))
    if head.startswith(ARROW_STREAM):
        stream = pa.ipc.open_stream(pa.memory_map(path))
        return stream.schema, lambda names: (batch.select(names) for batch in stream)
    raise Refused(f"{path} is neither a Parquet nor an Arrow file")


def is_list(dtype: Any) -> bool:
    pa = arrow()
    return bool(pa.types.is_list(dtype) or pa.types.is_large_list(dtype) or pa.types.is_fixed_size_list(dtype))


def is_text(dtype: Any) -> bool:
    pa = arrow()
    return bool(pa.types.is_string(dtype) or pa.types.is_large_string(dtype))


def choose(path: str, schema: Any, name: Optional[str], counts: bool) -> str:
    """The column called `name`, or that lengths go by; one of numbers, or with `counts` of lists."""
    pa = arrow()
    there = ", ".join(f"{field.name} ({field.type})" for field in schema)
    if len(there) > 200:
        there = there[:200] + "..."
    if name is None:
        name = next((known for known in NAMES if known in schema.names), None)
        if name is None:
            if all(is_text(field.type) for field in schema):
                raise Refused(f"{path}: no column holds tokens or whole numbers, but {there}: tokenise it first")
            raise Refused(f"{path}: no column has a name that lengths go by; name one of {there}")
    if schema.names.count(name) != 1:
        twice = "more than one" if name in schema.names else "no"
        raise Refused(f"{path}: {twice} column '{name}'; there are {there}")
    dtype = schema.field(name).type
    if pa.types.is_integer(dtype) or counts and is_list(dtype):
        return name
    if is_text(dtype):
        raise Refused(f"{path}: the column '{name}' holds text, whose tokens nobody has counted: tokenise it first")
    wanted = "whole numbers or lists" if counts else "whole numbers"
    raise Refused(f"{path}: the column '{name}' holds {dtype}, not {wanted}")


def numbers(path: str, begin: int, name: str, column: Any, empty: Optional[int]) -> Any:
    """A column's numbers, or how many elements its lists have, as int64; `empty` for null, or none is allowed."""
    pa, compute = arrow(), arrow("pyarrow.compute")
    column.validate()
    if is_list(column.type):
        column = compute.list_value_length(column)
    try:
        column = column.cast(pa.int64())
    except pa.ArrowInvalid as error:
        raise Refused(f"{path}: the column '{name}' holds a number past 64 bits ({error})") from error
    if column.null_count and empty is None:
        row = compute.index(column.is_null(), True).as_py()
        raise Refused(f"{path}, row {begin + row}: the column '{name}' is null")
    return column.fill_null(empty) if column.null_count else column


# What is asked for: whether lists are counted, and what null stands for.
ROLES = ((True, None), (False, None), (False, -1), (True, 0), (False, None))


def read(path: str, names: Sequence[Optional[str]]) -> Iterator[list[Any]]:
    """Batches of int64 arrays, one for each of length, loss, link, vision and modality that has a name; that of the
    length may be found."""
    pa = arrow()
    try:
        for file in files_of(path):
            schema, batches = tables(file)
            asked = [(role, name) for role, name in enumerate(names) if role == 0 or name is not None]
            chosen = [(role, choose(file, schema, name, ROLES[role][0])) for role, name in asked]
            begin = 0
            for whole in batches(list(dict.fromkeys(name for _, name in chosen))):
                for at in range(0, whole.num_rows, MOST_ROWS):
                    batch = whole.slice(at, MOST_ROWS)
                    yield [
                        numbers(file, begin, name, batch.column(batch.schema.get_field_index(name)), ROLES[role][1])
                        for role, name in chosen
                    ]
                    begin += batch.num_rows
    except (pa.ArrowException, OSError) as error:
        raise Refused(f"{path}: {error}") from error


def int64_bytes(column: Any) -> memoryview:
    """The bytes of an int64 array without nulls."""
    begin = 8 * column.offset
    return memoryview(column.buffers()[1])[begin : begin + 8 * len(column)] if len(column) else memoryview(b"")


END, FAILED = -1, -2


def serve(arguments: Sequence[str], out: BinaryIO) -> None:
    """Writes the batches as an int64 of rows and then the columns, in this machine's order; -1 ends them, and -2 is a
    failure, whose message follows with its bytes before it. `arguments` are a path and the five names, "" for none."""
    try:
        for columns in read(arguments[0], [name or None for name in arguments[1:6]]):
            out.write(struct.pack("=q", len(columns[0])))
            for column in columns:
                out.write(int64_bytes(column))
        out.write(struct.pack("=q", END))
    except ImportError as error:
        install = f"{sys.executable} -m pip install pyarrow"
        fail(f"{arguments[0]} is read through pyarrow, which {sys.executable} lacks: {install} ({error})", out)
    except Refused as error:
        fail(str(error), out)


def fail(message: str, out: BinaryIO) -> None:
    text = message.encode("utf-8", "replace")
    out.write(struct.pack("=qq", FAILED, len(text)) + text)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.path[:] = [folder for folder in sys.path if folder]  # not the folder where the command was called
    serve(sys.argv[1:], sys.stdout.buffer)

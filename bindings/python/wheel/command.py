#!python
"""The hbp command of an installed package: runs the program in its folder, without importing the package."""

import importlib.util
import os
import sys
from pathlib import Path


def main() -> int:
    found = importlib.util.find_spec("hbp")
    if not found or not found.origin:
        print(
            f"hbp: the package hbp, which holds the command, is not there for {sys.executable}",
            file=sys.stderr,
        )
        return 1
    folders = [Path(found.origin).parent, *(Path(entry, "hbp") for entry in sys.path)]
    program = next((p for p in (folder / "bin" / "hbp" for folder in folders) if p.exists()), folders[0] / "bin" / "hbp")
    try:
        os.execv(program, ["hbp", *sys.argv[1:]])
    except FileNotFoundError:
        why = (
            "this package was built from source where zlib, expat or Jansson had no headers; install those, then"
            " `pip install --force-reinstall --no-cache-dir hbp`"
        )
        if not any(folders[0].glob("libhbp*")):
            why = "that folder is of the sources, named by PYTHONPATH; `pip install .` there installs the command"
        print(f"hbp: there is no {program}: {why}", file=sys.stderr)
    except OSError as error:
        print(f"hbp: cannot run {program}: {error.strerror}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())

"""Runs every test beside this file, or the script that is named; exit status 77 when numpy is missing."""

import runpy
import sys
import unittest
from pathlib import Path

try:
    import numpy  # noqa: F401
except ImportError:
    print(f"{sys.executable} has no numpy")
    sys.exit(77)

if sys.argv[1:]:
    del sys.argv[0]
    runpy.run_path(sys.argv[0], run_name="__main__")
elif __name__ == "__main__":
    folder = str(Path(__file__).resolve().parent)
    sys.path.insert(0, folder)
    result = unittest.TextTestRunner().run(unittest.defaultTestLoader.discover(folder))
    sys.exit(not result.wasSuccessful())

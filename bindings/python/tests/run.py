"""Runs every test beside this file; exit status 77 when numpy is missing."""

import sys
import unittest
from pathlib import Path

try:
    import numpy  # noqa: F401
except ImportError:
    print(f"{sys.executable} has no numpy")
    sys.exit(77)

if __name__ == "__main__":
    folder = str(Path(__file__).resolve().parent)
    sys.path.insert(0, folder)
    result = unittest.TextTestRunner().run(unittest.defaultTestLoader.discover(folder))
    sys.exit(not result.wasSuccessful())

"""Runs every test beside this file; exit status 77 when numpy is missing."""

import ast
import sys
import unittest
from pathlib import Path

try:
    import numpy  # noqa: F401
except ImportError:
    print(f"{sys.executable} has no numpy")
    sys.exit(77)


def doubled(body, where):
    """Names that a module or class has twice: the second hides the first, whose tests then never run."""
    seen = set()
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield from doubled(node.body, f"{where}.{node.name}")
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and not node.decorator_list:
            if node.name in seen:
                yield f"{where}.{node.name} stands there twice"
            seen.add(node.name)


if __name__ == "__main__":
    folder = str(Path(__file__).resolve().parent)
    modules = {file.stem: ast.parse(file.read_text()) for file in sorted(Path(folder).glob("*.py"))}
    hidden = [line for name, module in modules.items() for line in doubled(module.body, name)]
    if hidden:
        sys.exit("\n".join(hidden))
    sys.path.insert(0, folder)
    result = unittest.TextTestRunner().run(unittest.defaultTestLoader.discover(folder))
    sys.exit(not result.wasSuccessful())

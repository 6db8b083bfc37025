"""Packages that some functions need and the package does not."""

from __future__ import annotations

import importlib
from typing import Any


def need(module: str, what: str) -> Any:
    """The module; an ImportError says what to install for `what`."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        name = module.partition(".")[0]
        raise ImportError(f"{what} needs {name}: pip install {name} ({error})", name=name) from error

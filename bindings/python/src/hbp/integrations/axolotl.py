"""axolotl: its multipack sampler's packing (axolotl.utils.samplers.multipack.pack_parallel).

As few packs as are found, of at most bin_size samples, and as many as the ranks (WORLD_SIZE) step together, so
that drop_last drops none; packs that step together have like cost. Packing in order, sequential=True,
stays axolotl's."""

from __future__ import annotations

import importlib
import logging
import zlib
from typing import Any, Callable, Optional

import numpy as np

from .._arrays import integers
from . import errors_as, import_seam, replace, require_seam
from ._packs import in_step_order, packs_of, with_empty, world_size

KNOWN = ("0.18.0 (067b021c8b87)", "0.19.0")


def pack_parallel(
    sequence_lengths: Any,
    bin_capacity: int,
    group_size: int,
    bin_size: int,
    num_processes: Optional[int] = None,
    safe_mode: bool = True,
    mp_start_method: Optional[str] = "fork",
) -> list[list[int]]:
    """Packs of indices; what says how to work in groups and processes is not needed."""
    lengths, ranks = integers("sequence_lengths", sequence_lengths, np.int64), world_size()
    limits: dict[str, Any] = {"capacity": int(bin_capacity), "max_samples": int(bin_size)}

    def pack(filled: np.ndarray[Any, np.dtype[np.int64]]) -> list[list[int]]:
        parts = packs_of(filled, multiple_of=ranks, **limits)
        return in_step_order(parts, filled, ranks, seed=zlib.crc32(filled.tobytes()), **limits)

    with errors_as(ValueError):
        return with_empty(lengths, pack, limits["max_samples"])


def install() -> Callable[[], None]:
    """Puts hbp in the place of axolotl's own packing; what is returned takes it back."""
    seam = import_seam("axolotl", KNOWN, "axolotl.utils.samplers.multipack")

    names = "sequence_lengths bin_capacity group_size bin_size num_processes safe_mode [mp_start_method]"
    require_seam("axolotl", KNOWN, (seam, "pack_parallel", names))
    return replace((seam, "pack_parallel", pack_parallel))


def __getattr__(name: str) -> Any:
    """`Plugin`, for axolotl's list `plugins`: made when it is asked for, as its base is axolotl's."""
    if name != "Plugin":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    base = importlib.import_module("axolotl.integrations.base").BasePlugin

    def register(self: Any, cfg: Any) -> None:
        install()
        logging.getLogger("axolotl.hbp").info("sample packing is hbp's")

    body = {"__doc__": "Installs hbp in each process.", "__module__": __name__, "register": register}
    made = globals()[name] = type(name, (base,), body)
    return made

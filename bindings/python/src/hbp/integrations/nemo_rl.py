"""NeMo RL: sequence packing (nemo_rl.data.packing).

The packers named to install() make as few bins as fit, at least min_bin_count and a multiple of
bin_count_multiple of them, none empty. That multiple is of ranks, which take bins in turn: the bins of
one turn are of about equal work."""

from __future__ import annotations

from typing import Any, Callable, List

from . import errors_as, import_seam, replace, require_seam
from ._in_step import pack_in_step

KNOWN = ("0.5.0", "0.6.0 (7ea279abfbeb)", "0.7.0")


def _pack_implementation(self: Any, sequence_lengths: List[int]) -> List[List[int]]:
    self._validate_sequence_lengths(sequence_lengths)
    if not sequence_lengths:
        return []
    with errors_as(ValueError):
        return pack_in_step(
            sequence_lengths, self.bin_capacity, self.bin_count_multiple or 1, self.min_bin_count or 1
        )


def install(*packers: str) -> Callable[[], None]:
    """Puts hbp in the place of packers: FirstFitDecreasingPacker, FirstFitShufflePacker and
    ModifiedFirstFitDecreasingPacker unless others are named. What is returned takes it back."""
    seam = import_seam("nemo-rl", KNOWN, "nemo_rl.data.packing.algorithms")

    names = packers or (
        "FirstFitDecreasingPacker",
        "FirstFitShufflePacker",
        "ModifiedFirstFitDecreasingPacker",
    )
    for name in names:
        require_seam(
            "nemo-rl", KNOWN, (seam, name, "bin_capacity collect_metrics min_bin_count bin_count_multiple")
        )
        owner = getattr(seam, name)
        require_seam(
            "nemo-rl",
            KNOWN,
            (owner, "_pack_implementation", "self sequence_lengths"),
            (owner, "_validate_sequence_lengths", "self sequence_lengths"),
        )
    return replace(*((getattr(seam, name), "_pack_implementation", _pack_implementation) for name in names))

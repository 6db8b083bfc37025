"""Which micro-batches of a plan by patterns are which step's: every step has as many, and the units of the last stratum
are spread evenly (lib/data/pattern/pattern_plan.h)."""

from __future__ import annotations


class StepRows:
    """The first micro-batch of each step."""

    def __init__(self, steps: int, units: int, multiple: int) -> None:
        self.steps, self.rows, self._units, self._multiple = steps, units * multiple, units, multiple

    def counts(self) -> list[int]:
        """The rows that steps have, each number once."""
        units, more = divmod(self._units, self.steps)
        return [count * self._multiple for count in ([units, units + 1] if more else [units])]

    def first(self, step: int) -> int:
        """The first row of a step; how many rows there are, past the last."""
        return step * self._units // self.steps * self._multiple

    def step_of(self, row: int) -> int:
        """The step of a row; how many steps there are, past the last."""
        unit = row // self._multiple
        return min(self.steps, ((unit + 1) * self.steps - 1) // self._units)

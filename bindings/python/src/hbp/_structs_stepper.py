"""The open structs of a run planned step by step; see _structs."""

from ._structs import I32, I64, U64, Struct, struct


@struct
class Communicator(Struct):
    """An SP group that a run may use; `index` names it on every rank."""

    sp: I32
    first_rank: I32
    color: I32
    index: I64

    @property
    def ranks(self) -> range:
        """The ranks of the group; equal to `ranks` of the packs that run on it."""
        return range(self.first_rank, self.first_rank + self.sp)


@struct
class StepperOptions(Struct):
    depth: I32
    wait: I32


@struct
class StepperSummary(Struct):
    """How far a stepper is; `waited` counts plans that came late, `digest` covers all taken."""

    depth: I32
    submitted: I64
    planned: I64
    taken: I64
    waited: I64
    kept_bytes: I64
    digest: U64

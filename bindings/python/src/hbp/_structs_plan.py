"""The open structs of plans and of what replaying one measured; see _structs."""

from typing import Optional

from ._structs import F64, I32, I64, U64, Address, I32s, I64s, Struct, Text, struct

# By HBP_COMPOSITION_*.
COMPOSITION_NAMES = ("auto", "random", "stratified", "hierarchy", "given")


def kinds_of(mask: int) -> "list[int]":
    """The kinds of sample in a mask, ascending."""
    return [kind for kind in range(mask.bit_length()) if mask >> kind & 1]


@struct
class PlanSummary(Struct):
    """A plan in numbers; print it."""

    ranks: I32
    domain_ranks: I32
    complete: I32
    steps: I64
    micro_batches: I64
    packs: I64
    dummy_packs: I64
    samples: I64
    dropped: I64
    tokens: I64
    padded_tokens: I64
    loss_tokens: I64
    sequence_multiple: I64
    pack_multiple: I64
    micro_batch_multiple: I64
    predicted_ns: I64
    first_step: I64
    overlong_samples: I64
    overlong_tokens: I64
    seed: U64
    epoch: U64
    digest: U64
    lengths_digest: U64
    bound_ns: I64
    gap: F64
    vision: I64
    modalities: I64
    composition: I32
    proven: I32
    samples_per_step: I64
    tokens_per_step: I64
    sequence_multiple_per_sp: I64
    pack_multiple_per_sp: I64
    hierarchy_ns: I64
    mixture_ns: I64
    lockstep_ranks: I32
    free_bound_ns: I64

    @property
    def composition_name(self) -> Optional[str]:
        """How the samples of a step were chosen: "random", "stratified", "hierarchy" or "given"; None: not
        recorded."""
        recorded = 0 < self.composition < len(COMPOSITION_NAMES)
        return COMPOSITION_NAMES[self.composition] if recorded else None

    @property
    def contract(self) -> str:
        """What every step promises: "steps of at most 524,288 tokens, stratified"; "" where nothing is
        recorded."""
        sizes = []
        if self.samples_per_step:
            sizes.append(f"{self.samples_per_step:,} samples")
        if self.tokens_per_step:
            sizes.append(f"at most {self.tokens_per_step:,} tokens")
        text = "steps" + (" of " + " and ".join(sizes) if sizes else "")
        if self.composition_name:
            text += f", {self.composition_name}"
        return text if text != "steps" else ""

    @property
    def lockstep(self) -> str:
        """Who waits for whom: " in lockstep sets of 8"; empty where all ranks meet in every micro-batch."""
        return f" in lockstep sets of {self.lockstep_ranks:,}" if self.lockstep_ranks else ""

    @property
    def rivals(self) -> str:
        """What `bound_ns` holds for: "plan in steps of at most 524,288 tokens"."""
        drawn = self.composition_name == "random" and not self.mixture_ns
        if self.samples_per_step or drawn or self.composition_name == "given":
            return "way to run these very steps"
        if self.tokens_per_step:
            return f"plan in steps of at most {self.tokens_per_step:,} tokens"
        return "plan of these samples in so many steps"

    @property
    def kinds(self) -> "list[int]":
        """Kinds of sample that occur; empty without an order of modalities."""
        return kinds_of(self.modalities)

    def __str__(self) -> str:
        lines = [
            f"{self.steps:,} steps, {self.micro_batches:,} micro-batches, {self.packs:,} packs on "
            f"{self.ranks:,} ranks{self.lockstep}",
            f"{self.samples:,} samples, {self.tokens:,} tokens, {self.loss_tokens:,} with loss",
            f"predicted {self.predicted_ns / 1e9:,.3f} s; digest {self.digest:016x}",
        ]
        if self.first_step:
            lines[0] += f", from step {self.first_step:,} of its epoch"
        if self.contract:
            lines.insert(1, self.contract)
        if self.hierarchy_ns and self.mixture_ns:
            lines.append(
                f"the hierarchy takes {self.hierarchy_ns / 1e9:,.3f} s, steps that are no hierarchy "
                f"{self.mixture_ns / 1e9:,.3f} s"
                + (
                    " (estimated from some of them)"
                    if self.composition_name == "hierarchy" and self.mixture_ns < self.hierarchy_ns
                    else ""
                )
            )
        if self.bound_ns:
            lines.append(
                f"no {self.rivals} takes less than {self.bound_ns / 1e9:,.3f} s on {self.ranks:,} "
                f"ranks{self.lockstep} under this cost and these options: {100 * self.gap:.2f} % above it"
            )
        if self.free_bound_ns and self.bound_ns > 1.01 * self.free_bound_ns:
            lines.append(
                f"price of these steps: up to {100 * (self.predicted_ns / self.free_bound_ns - 1):.2f} %; with "
                f"steps left free, no plan takes less than {self.free_bound_ns / 1e9:,.3f} s under this cost "
                "and these options"
            )
        if self.vision >= 0:
            lines.append(f"{self.vision:,} vision units")
        if self.modalities:
            lines.append(f"every micro-batch holds the same kinds on all ranks, of {self.kinds}")
        if self.dummy_packs:
            lines.append(f"{self.dummy_packs:,} dummy packs")
        if self.overlong_samples:
            lines.append(
                f"{self.overlong_samples:,} over-long samples, "
                f"{self.overlong_tokens:,} tokens dropped or cut off"
            )
        if self.dropped:
            lines.append(f"{self.dropped:,} samples dropped")
        return "\n".join(lines)


@struct
class RankPack(Struct):
    """What one rank runs in one micro-batch: a pack, the ranks that share it and its rows in the plan."""

    sp: I32
    first_rank: I32
    sp_rank: I32
    recompute: I32
    is_dummy: I32
    pack: I64
    first_sample: I64
    samples: I64
    tokens: I64
    padded_tokens: I64
    loss_tokens: I64
    vision: I64
    modalities: I64

    @property
    def kinds(self) -> "list[int]":
        """Kinds of sample that the rank runs, of a dummy too; empty without an order of modalities."""
        return kinds_of(self.modalities)


@struct
class PlanSaveOptions(Struct):
    level: I32
    chunk_steps: I64
    cost: Address
    note: Text


@struct
class TraceOptions(Struct):
    first_step: I64
    steps: I64
    timeline: Address


@struct
class Report(Struct):
    """What replaying a plan measured; shares are in 0..1. `step_*` are samples and tokens of a step: the 5th,
    50th and 95th of a hundred steps; `mixture_distance` is how far a step's mixture of lengths is from the
    epoch's, in the mean."""

    ranks: I32
    steps: I64
    epoch_ns: I64
    bound_ns: I64
    tokens: I64
    peak_bytes: I64
    gap: F64
    idle: F64
    dbr: F64
    padding: F64
    abr: F64
    abr_paper: F64
    cr: F64
    ave_tokens: F64
    tokens_per_s_per_gpu: F64
    communication: F64
    samples_cv: F64
    mixture_distance: F64
    vision: I64
    dist_vision: F64
    dist_tokens: F64
    vision_padding: F64
    step_samples_p5: I64
    step_samples_median: I64
    step_samples_p95: I64
    step_tokens_p5: I64
    step_tokens_median: I64
    step_tokens_p95: I64

    def __str__(self) -> str:
        bound = f", {self.gap:.1%} over the bound" if self.bound_ns else ""
        units = ""
        if self.vision >= 0:
            units = (
                f"; DistRatio of {self.vision:,} vision units {self.dist_vision:.1%}, "
                f"of padded tokens {self.dist_tokens:.1%}"
            )
        return (
            f"{self.steps:,} steps in {self.epoch_ns / 1e9:,.3f} s{bound}; idle {self.idle:.1%}, "
            f"padding {self.padding:.1%}, communication {self.communication:.1%}, "
            f"{self.tokens_per_s_per_gpu:,.0f} tokens/s per GPU, "
            f"peak {self.peak_bytes / 2**30:.1f} GiB{units}; "
            f"steps of {self.step_samples_p5:,} .. {self.step_samples_median:,} .. {self.step_samples_p95:,} "
            f"samples and {self.step_tokens_p5:,} .. {self.step_tokens_median:,} .. {self.step_tokens_p95:,} "
            f"tokens (5 %, median, 95 %), a step's mixture {self.mixture_distance:.3f} from the epoch's"
        )


@struct
class SimulateOptions(Struct):
    no_bound: I32
    tokens_per_step: I64


@struct
class PlanView(Struct):
    steps: I64
    micro_batches: I64
    packs: I64
    samples: I64
    dropped: I64
    step_offsets: I64s
    step_ns: I64s
    step_loss_tokens: I64s
    step_samples: I64s
    step_tokens: I64s
    micro_batch_offsets: I64s
    micro_batch_ns: I64s
    micro_batch_modalities: I64s
    pack_offsets: I64s
    pack_ranks: I32s
    pack_sp: I32s
    pack_recompute: I32s
    pack_capacity: I64s
    pack_tokens: I64s
    pack_padded_tokens: I64s
    pack_squares: I64s
    pack_loss_tokens: I64s
    pack_ns: I64s
    pack_bytes: I64s
    pack_vision: I64s
    pack_vision_capacity: I64s
    sample_ids: I64s
    sample_tokens: I32s
    sample_first_tokens: I64s
    sample_loss_tokens: I32s
    sample_vision: I32s
    sample_modalities: I32s
    dropped_ids: I64s
    dropped_reasons: I32s
    dropped_first_tokens: I64s
    dropped_tokens: I32s

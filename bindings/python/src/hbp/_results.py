"""Structs that the library fills in and that say more than their fields; see _records."""

from __future__ import annotations

from typing import Optional

from . import _records
from ._text import many

UNLIMITED = 2**63 - 1


def modalities_of(mask: int) -> list[int]:
    """The modalities in a mask, ascending."""
    return [modality for modality in range(mask.bit_length()) if mask >> modality & 1]


class LengthsSummary(_records.LengthsSummary):
    @property
    def column(self) -> Optional[str]:  # type: ignore[override]
        """The column or field that Lengths.read took for the length unasked, as "tokens"; None: the caller
        named it, or there are no names."""
        column = super().column
        return column.decode() if column else None

    def __str__(self) -> str:
        text = (
            f"{many(self.samples, 'sample')} of {self.min_length:,} to {many(self.max_length, 'token')} "
            f"({many(self.distinct_lengths, 'distinct length')}), {many(self.tokens, 'token')} in all"
        )
        if self.vision >= 0:
            text += f", {many(self.vision, 'vision unit')}"
        return text


class SpChoice(_records.SpChoice):
    @property
    def feasible(self) -> bool:
        return self.reason == 0

    @property
    def why(self) -> str:
        """ "feasible", "out of memory", "illegal heads" or "too few ranks"."""
        reasons = ("feasible", "out of memory", "illegal heads", "too few ranks")
        return reasons[self.reason] if 0 <= self.reason < len(reasons) else f"reason {self.reason}"


class PlanSummary(_records.PlanSummary):
    @property
    def composition_name(self) -> Optional[str]:
        """How the samples of a step were chosen: "random", "stratified", "hierarchy" or "given"; None: not
        recorded."""
        return _records.name_of("HBP_COMPOSITION", self.composition) if self.composition else None

    @property
    def contract(self) -> str:
        """What every step promises: "steps of at most 524,288 tokens, stratified"; "" where nothing is
        recorded."""
        sizes = []
        if self.samples_per_step:
            sizes.append(many(self.samples_per_step, "sample"))
        if self.tokens_per_step:
            sizes.append(f"at most {many(self.tokens_per_step, 'token')}")
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
            return "schedule of these very steps"
        if self.tokens_per_step:
            return f"plan in steps of at most {many(self.tokens_per_step, 'token')}"
        return "plan of these samples in so many steps"

    @property
    def modality_list(self) -> list[int]:
        """Modalities that occur; empty without an order of modalities."""
        return modalities_of(self.modalities)

    def __str__(self) -> str:
        lines = [
            f"{many(self.steps, 'step')}, {many(self.micro_batches, 'micro-batch')}, {many(self.packs, 'pack')} on "
            f"{many(self.ranks, 'rank')}{self.lockstep}",
            f"{many(self.samples, 'sample')}, {many(self.tokens, 'token')}, {self.loss_tokens:,} with loss",
            f"predicted {self.predicted_ns / 1e9:,.3f} s; digest {self.digest:016x}",
        ]
        if self.epoch_steps or self.first_step:
            lines[0] += f", from step {self.first_step:,} of its epoch"
        if self.contract:
            lines.insert(1, self.contract)
        if self.hierarchy_ns and self.mixture_ns:
            lines.append(
                f"the hierarchy takes {self.hierarchy_ns / 1e9:,.3f} s, the fastest found without one "
                f"{self.mixture_ns / 1e9:,.3f} s"
                + (
                    " (estimated from some of them; too little to plan them all for)"
                    if self.composition_name == "hierarchy" and self.mixture_ns < self.hierarchy_ns
                    else ""
                )
            )
        if self.bound_ns:
            lines.append(
                f"no {self.rivals} takes less than {self.bound_ns / 1e9:,.3f} s on "
                f"{many(self.ranks, 'rank')}{self.lockstep} under this cost and these options: "
                f"{100 * self.gap:.2f} % above it"
            )
        if self.free_bound_ns and self.bound_ns > 1.01 * self.free_bound_ns:
            lines.append(
                f"these very steps cost up to {100 * (self.predicted_ns / self.free_bound_ns - 1):.2f} %: with "
                f"steps left free, no plan takes less than {self.free_bound_ns / 1e9:,.3f} s under this cost "
                "and these options"
            )
        if self.vision >= 0:
            lines.append(many(self.vision, "vision unit"))
        if self.modalities:
            lines.append(f"every micro-batch holds the same modalities on all ranks, of {self.modality_list}")
        if self.padding_packs:
            lines.append(many(self.padding_packs, "padding pack"))
        if self.overlong_samples:
            lines.append(
                f"{many(self.overlong_samples, 'over-long sample')}, "
                f"{many(self.overlong_tokens, 'token')} dropped or cut off"
            )
        if self.dropped:
            lines.append(f"{many(self.dropped, 'sample')} dropped")
        return "\n".join(lines)


class RankPack(_records.RankPack):
    @property
    def modality_list(self) -> list[int]:
        """Modalities that the rank runs, of a padding pack too; empty without an order of modalities."""
        return modalities_of(self.modalities)


class Report(_records.Report):
    def __str__(self) -> str:
        bound = f", {self.gap:.1%} over the bound" if self.bound_ns else ""
        units = ""
        if self.vision >= 0:
            units = (
                f"; DistRatio of {many(self.vision, 'vision unit')} {self.dist_vision:.1%}, "
                f"of padded tokens {self.dist_tokens:.1%}"
            )
        return (
            f"{many(self.steps, 'step')} in {self.epoch_ns / 1e9:,.3f} s{bound}; idle {self.idle:.1%}, "
            f"padding {self.padding:.1%}, communication {self.communication:.1%}, "
            f"{self.tokens_per_s_per_gpu:,.0f} tokens/s per GPU, "
            f"peak {self.peak_bytes / 2**30:.1f} GiB{units}; "
            f"steps of {self.step_samples_p5:,} .. {self.step_samples_median:,} .. {self.step_samples_p95:,} "
            f"samples and {self.step_tokens_p5:,} .. {self.step_tokens_median:,} .. {self.step_tokens_p95:,} "
            f"tokens (5 %, median, 95 %), a step's mixture {self.mixture_distance:.3f} from the epoch's"
        )


class Communicator(_records.Communicator):
    @property
    def ranks(self) -> range:
        """The ranks of the group; equal to `ranks` of the packs that run on it."""
        return range(self.first_rank, self.first_rank + self.sp)


class TaskSummary(_records.TaskSummary):
    @property
    def method(self) -> str:  # type: ignore[override]
        """How slices were made, of hbp.methods(of="tasks")."""
        return (super().method or b"").decode()

    @property
    def placement_method(self) -> str:  # type: ignore[override]
        """How they got their ranks, of hbp.methods(of="placement")."""
        return (super().placement_method or b"").decode()

    def __str__(self) -> str:
        bound = "the least there is" if self.proven else f"{self.gap:.1%} over the bound"
        limit = f" of {self.limit_bytes / 2**30:,.1f}" if self.limit_bytes else ""
        lines = [
            f"{many(self.tasks, 'task')}, {many(self.operators, 'operator')} in {many(self.meta_ops, 'MetaOp')} on "
            f"{many(self.gpus, 'GPU')}: {many(self.slices, 'slice')} in {many(self.waves, 'wave')}",
            f"{self.makespan_ns / 1e6:,.3f} ms without transfers, {bound}; GPUs idle {self.idle:.1%}",
            f"{self.moved_bytes / 2**30:,.1f} of {self.flow_bytes / 2**30:,.1f} GiB of outputs leave their GPU, "
            f"{self.crossing_bytes / 2**30:,.1f} GiB their domain; peak {self.peak_bytes / 2**30:,.1f}{limit} GiB",
        ]
        if self.kept_bytes or self.fetched_bytes:
            lines.append(
                f"{self.kept_bytes / 2**30:,.1f} GiB of states are reused in place, "
                f"{self.fetched_bytes / 2**30:,.1f} GiB are fetched"
            )
        return "\n".join(lines)


class TaskRunSummary(_records.TaskRunSummary):
    def __str__(self) -> str:
        return (
            f"{self.total_ns / 1e6:,.3f} ms on {many(self.gpus, 'GPU')}: {self.slices_ns / 1e6:,.3f} ms of slices, "
            f"{self.gradient_ns / 1e6:,.3f} ms of gradients; waiting for transfers takes "
            f"{self.transfer_ns / 1e6:,.3f} ms, idle {self.idle:.1%}; peak {self.peak_bytes / 2**30:,.1f} GiB"
        )


class Budgets(_records.Budgets):
    def __str__(self) -> str:
        return (
            f"{many(self.max_vision, 'vision unit')} and {many(self.max_tokens, 'token')}: "
            f"{many(self.packs, 'pack')} of {self.samples_per_pack:.2f} samples, "
            f"DistRatio of vision units {self.dist_vision:.1%}, of tokens {self.dist_tokens:.1%}"
        )


class VlmSummary(_records.VlmSummary):
    def __str__(self) -> str:
        return (
            f"{self.vision_parameters / 1e9:.2f} B vision, {self.projector_parameters / 1e6:.0f} M projector "
            f"and {self.language_parameters / 1e9:.2f} B language parameters in {self.layers} rows of layers"
        )


class LayerPartitionSummary(_records.LayerPartitionSummary):
    def __str__(self) -> str:
        proven = ", the least there is" if self.proven else ""
        return (
            f"predicted {self.predicted_ns / 1e6:,.3f} ms{proven}; {self.simulated_ns / 1e6:,.3f} ms when run "
            f"with {many(self.micro_batches, 'micro-batch')}, bubble {self.bubble:.1%}\n"
            f"stage {self.bottleneck} is the slowest, {self.bottleneck_ns / 1e6:,.3f} ms a micro-batch; "
            f"{self.cut_bytes / 2**20:,.1f} MiB over all cuts, peak {self.peak_bytes / 2**30:,.1f} GiB"
        )


class PipelineSummary(_records.PipelineSummary):
    def __str__(self) -> str:
        return (
            f"{many(self.operations, 'operation')} on {many(self.stages, 'stage')} in "
            f"{self.total_ns / 1e6:,.3f} ms, no order in less than {self.bound_ns / 1e6:,.3f} ms; "
            f"bubble {self.bubble:.1%}, peak {self.peak_bytes / 2**30:,.1f} GiB"
        )


class RecomputeReport(_records.RecomputeReport):
    def __str__(self) -> str:
        slack = "no limit" if self.slack_bytes == UNLIMITED else f"{self.slack_bytes / 2**30:,.1f} GiB left"
        return (
            f"{many(self.recomputed, 'layer')} recomputed in whole and {self.selective:,} in part: "
            f"{self.recompute_ns / 1e6:,.3f} ms a micro-batch, {self.saved_ns / 1e6:,.3f} ms less than all; "
            f"{slack} on the fullest stage"
        )


class VlmPlanSummary(_records.VlmPlanSummary):
    def __str__(self) -> str:
        lines = [
            f"{many(self.gpus, 'GPU')}: {many(self.replicas, 'replica')} of {many(self.stages, 'stage')}, "
            f"{many(self.micro_batches, 'micro-batch')} a step",
            f"{many(self.samples, 'sample')} in {many(self.steps, 'step')}, padding {self.padding:.1%}, "
            f"DistRatio of vision units {self.dist_vision:.1%}, of tokens {self.dist_tokens:.1%}",
            f"{many(self.recomputed, 'layer')} recomputed in whole and {self.selective:,} in part; peak "
            f"{self.peak_bytes / 2**30:,.1f} of {self.limit_bytes / 2**30:,.1f} GiB",
            f"predicted {self.epoch_ns / 1e9:,.3f} s, {self.gpu_days:,.3f} GPU-days, bubble {self.bubble:.1%}; "
            f"no plan takes less than {self.bound_ns / 1e9:,.3f} s, none of these packs less than "
            f"{self.packs_bound_ns / 1e9:,.3f} s; digest {self.digest:016x}",
        ]
        if self.max_tokens:
            lines.insert(
                1, f"packs of at most {many(self.max_vision, 'vision unit')} and {many(self.max_tokens, 'token')}"
            )
        if self.dropped:
            lines.append(f"{many(self.dropped, 'sample')} dropped")
        return "\n".join(lines)

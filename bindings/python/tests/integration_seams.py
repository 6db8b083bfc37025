"""Stand-ins of the trainers' seams, by their documented interfaces, as importable modules, and the snippets
of how-to pages."""

import contextlib
import enum
import io
import re
import sys
import types
from pathlib import Path

DOCS = Path(__file__).resolve().parents[3] / "docs" / "how-to"


@contextlib.contextmanager
def modules(seam, **contents):
    """The module `seam`, packages above it included, with these contents; gone at the end."""
    parts, made = seam.split("."), []
    for end in range(1, len(parts) + 1):
        name = ".".join(parts[:end])
        if name not in sys.modules:
            sys.modules[name] = types.ModuleType(name)
            sys.modules[name].__path__ = []
            made.append(name)
            if end > 1:
                setattr(sys.modules[".".join(parts[: end - 1])], parts[end - 1], sys.modules[name])
    vars(sys.modules[seam]).update(contents)
    sys.modules[parts[0]].__version__ = "9.9.9"
    try:
        yield sys.modules[seam]
    finally:
        for name in made:
            del sys.modules[name]


def snippet(page):
    """The first ```python block of a how-to page."""
    return re.search(r"```python\n(.*?)```", (DOCS / page).read_text(), re.S).group(1)


def run_page(code, names=None):
    """Runs a page's lines; what they print, by which users see that it took effect."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, {} if names is None else names)
    return printed.getvalue()


def place_all(count, lists):
    """Whether every sample is in exactly one list."""
    return sorted(k for ids in lists for k in ids) == list(range(count))


class MegatronScheduler:
    def __init__(
        self,
        max_seqlen_per_dp_cp_rank,
        cp_size,
        dp_size,
        microbatch_group_size_per_vp_stage,
        max_num_seqs=None,
    ):
        self.max_seqlen_per_dp_cp_rank, self.cp_size, self.dp_size = (
            max_seqlen_per_dp_cp_rank,
            cp_size,
            dp_size,
        )
        self.microbatch_group_size_per_vp_stage, self.max_num_seqs = (
            microbatch_group_size_per_vp_stage,
            max_num_seqs,
        )


def megatron():
    class DpBalancedScheduler(MegatronScheduler):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)

        def get_groups_and_subsamples(self, sample_id_seqlens):
            raise AssertionError("not replaced")

    class DefaultDynamicCPScheduler(DpBalancedScheduler):
        def __init__(self, *args, min_cp_size=1, **kwargs):
            super().__init__(*args, **kwargs)
            self.min_cp_size, self.total_hdp_gpus = min_cp_size, self.dp_size * self.cp_size

    return modules(
        "megatron.core.datasets.data_schedule",
        BasePackingScheduler=MegatronScheduler,
        DpBalancedScheduler=DpBalancedScheduler,
        DefaultDynamicCPScheduler=DefaultDynamicCPScheduler,
        scheduler_map={"dp_balanced": DpBalancedScheduler, "default_dynamic_cp": DefaultDynamicCPScheduler},
    )


def megatron_main():
    """As in versions without dynamic context parallelism: the table's keys are an enum."""

    class Base:
        def __init__(self, max_seqlen_per_dp_cp_rank, cp_size, dp_size, microbatch_group_size_per_vp_stage):
            self.max_seqlen_per_dp_cp_rank, self.cp_size, self.dp_size = (
                max_seqlen_per_dp_cp_rank,
                cp_size,
                dp_size,
            )
            self.microbatch_group_size_per_vp_stage = microbatch_group_size_per_vp_stage

    class DpBalancedScheduler(Base):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)

        def get_groups_and_subsamples(self, sample_id_seqlens):
            raise AssertionError("not replaced")

    kinds = enum.Enum("PackingSchedulerEnum", {"DP_BALANCED": "dp_balanced"})
    return modules(
        "megatron.core.datasets.data_schedule",
        BasePackingScheduler=Base,
        DpBalancedScheduler=DpBalancedScheduler,
        PackingSchedulerEnum=kinds,
        scheduler_map={kinds.DP_BALANCED: DpBalancedScheduler},
    )


class Column(list):
    """As much of a tensor as the seam of verl needs."""

    is_nested = False

    def sum(self, dim):
        assert dim == 1
        return Column(sum(row) for row in self)

    def tolist(self):
        return list(self)


def verl(parameters="new"):
    def karmarkar_karp(seqlen_list, k_partitions, equal_size):
        raise RuntimeError("not replaced")

    def rearrange_micro_batches(
        batch,
        max_token_len,
        dp_group=None,
        num_batches_divided_by=None,
        same_micro_num_in_dp=True,
        min_num_micro_batch=None,
        use_dynamic_bsz_balance=True,
        force_group_size=1,
    ):
        tokens = batch["attention_mask"].sum(dim=1)
        assert max(tokens) <= max_token_len, "longer than max_token_len"
        groups = [tokens[k : k + force_group_size] for k in range(0, len(tokens), force_group_size)]
        assert all(len(group) == force_group_size for group in groups), "groups"
        count = max(-(-sum(tokens) // max_token_len), min_num_micro_batch or 1)
        multiple = num_batches_divided_by or 1
        count = -(-count // multiple) * multiple
        work = [sum(24576 * n + n * n for n in group) for group in groups]
        lists = seam.karmarkar_karp(work, count, False)
        ids = [[g * force_group_size + k for g in part for k in range(force_group_size)] for part in lists]
        return [[tokens[k] for k in part] for part in ids], ids

    def old(batch, max_token_len):
        raise RuntimeError("of another time")

    context = modules(
        "verl.utils.seqlen_balancing",
        karmarkar_karp=karmarkar_karp,
        rearrange_micro_batches=rearrange_micro_batches if parameters == "new" else old,
    )
    context_seam = context.__enter__()
    seam = context_seam
    old.__name__ = "rearrange_micro_batches"

    @contextlib.contextmanager
    def again():
        try:
            yield context_seam
        finally:
            context.__exit__(None, None, None)

    return again()


def slime():
    def _calculate_workloads(step_lengths, args):
        return [1e12 * (6.0 * length + length * length / 4096) for length in step_lengths]

    def _pack_step_into_mbs(
        step_lengths, *, args, use_dynamic_batch_size, max_per_bin, micro_batch_size, balance_by_flops=False
    ):
        assert not use_dynamic_batch_size, "not replaced"
        return [[k] for k in range(len(step_lengths))]

    def expand_bins_by_splitting(bins, target_count, lengths):
        raise RuntimeError("not replaced")

    def get_seqlen_balanced_partitions(seqlen_list, k_partitions, equal_size):
        raise RuntimeError("not replaced")

    return modules(
        "slime.utils.dp_schedule",
        _calculate_workloads=_calculate_workloads,
        _pack_step_into_mbs=_pack_step_into_mbs,
        expand_bins_by_splitting=expand_bins_by_splitting,
        get_seqlen_balanced_partitions=get_seqlen_balanced_partitions,
    )


def nemo_rl():
    class SequencePacker:
        def __init__(self, bin_capacity, collect_metrics=False, min_bin_count=None, bin_count_multiple=None):
            self.bin_capacity, self.min_bin_count = bin_capacity, min_bin_count
            self.bin_count_multiple = bin_count_multiple

        def _pack_implementation(self, sequence_lengths):
            raise RuntimeError("not replaced")

        def _validate_sequence_lengths(self, sequence_lengths):
            if any(length > self.bin_capacity for length in sequence_lengths):
                raise ValueError("exceeds bin capacity")

    names = (
        "ConcatenativePacker",
        "FirstFitDecreasingPacker",
        "FirstFitShufflePacker",
        "ModifiedFirstFitDecreasingPacker",
    )
    return modules(
        "nemo_rl.data.packing.algorithms", **{name: type(name, (SequencePacker,), {}) for name in names}
    )


def torchtitan():
    class Batcher:
        def __init__(self, config, *, num_prompts_per_train_step, dp_degree, pad_id):
            self.local_batch_size, self.seq_len = config
            self._dp_degree = dp_degree

        def num_tokens_to_pack(self, training_sample):
            return len(training_sample) - 1

        def _assign_training_samples_to_rows(self, training_samples):
            raise RuntimeError("not replaced")

        def cells(self, rows):
            """Rows of each rank's share of a micro-batch, dealt in turn; some short of rows."""
            count = max(1, -(-len(rows) // (self.local_batch_size * self._dp_degree))) * self._dp_degree
            return [rows[cell::count] for cell in range(count)]

    return modules("torchtitan.experiments.rl.components.batcher", Batcher=Batcher)


def deepspeed():
    def batch_by_seqlens(
        seqlens,
        max_tokens,
        sequence_ids_per_mb=None,
        min_batch_size=1,
        max_batch_size=None,
        sequence_picking_order="dataloader",
        effective_batch_size=1,
        required_microbatches_of_same_size=False,
        verbose=False,
        seed=None,
    ):
        raise RuntimeError("not replaced")

    return modules(
        "deepspeed.runtime.data_pipeline.data_sampling.variable_batch_size_and_lr",
        batch_by_seqlens=batch_by_seqlens,
    )

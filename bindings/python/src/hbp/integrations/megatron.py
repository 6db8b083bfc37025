"""Megatron-LM: the schedulers of sequence packing and of dynamic context parallelism
(megatron.core.datasets.data_schedule.scheduler_map).

dp_balanced: packs by hbp.partition, of about equal work, like beside like in a micro-batch.
default_dynamic_cp: micro-batches of context-parallel groups by hbp.plan_step, each group a power of two
of ranks and aligned to it, as Megatron's process groups are. No rank holds more than
max_seqlen_per_dp_cp_rank tokens, none is empty, micro-batches are a multiple of the virtual pipeline's
group, and a pack holds at most as many samples as Megatron asks for."""

from __future__ import annotations

from typing import Any, Callable, List, Optional, Tuple

from .. import partition
from ..cost import Cost, CostTerms
from ..errors import InfeasibleError, refusal
from ..step import plan_step
from . import errors_as, heaviest_first, import_seam, replace, require_seam

KNOWN = ("0.19.0 (dev, d48bd6be0a85)", "0.20.0 (main, d98e8a64ddf3)")
_Groups = List[Tuple[int, List[int]]]  # degree and places in the batch


def ring_cost(ranks: int, *, hidden_size: int = 4096, gpus_per_node: int = 8, min_cp_size: int = 1) -> Cost:
    """A cost without a model's or machine's figures, in units of one squared token of attention: a token
    takes 6 hidden sizes, a hop of the ring 12 tokens' time for its launches, and all a pack's keys and
    values 1 % of a token's time inside a node, 10 % across nodes, for what one rank receives."""
    token = 6.0 * hidden_size
    powers = [1 << k for k in range(ranks.bit_length()) if ranks % (1 << k) == 0 and 1 << k >= min_cp_size]
    degrees = sorted({1, *powers, ranks})
    link = [0.01 if degree <= gpus_per_node else 0.1 for degree in degrees]
    return Cost.from_terms(
        CostTerms(
            ranks=ranks,
            domain_ranks=gpus_per_node if ranks % gpus_per_node == 0 else 0,
            layers=1,
            limit_bytes=1,
            degree=tuple(degrees),
            sp_latency_ns=tuple(12 * token * (degree - 1) for degree in degrees),
            sp_ns_per_token=tuple(token * far * (degree - 1) / degree for degree, far in zip(degrees, link)),
            ns_per_token=token,
            ns_per_token_squared=1.0,
        )
    )


def fill_ranks(groups: _Groups, lengths: List[int], ranks: int, most: Optional[int]) -> _Groups:
    """Groups that leave no rank of a micro-batch empty: the one with most work a rank, of those that are
    small enough, is halved into two groups where it has samples to part, else put on twice the ranks."""
    free = ranks - sum(degree for degree, _ in groups)
    largest = 1 << (ranks.bit_length() - 2) if ranks & (ranks - 1) else ranks  # group that Megatron makes
    while free:
        fit = [
            group for group in groups if group[0] <= free and (len(group[1]) > 1 or 2 * group[0] <= largest)
        ]
        if not fit:  # ranks are no power of two
            whole = [place for _, places in groups for place in places]
            if most is not None and len(whole) > most:
                raise refusal(InfeasibleError, f"{len(whole)} samples on all {ranks} ranks; a pack holds {most}")
            return [(ranks, sorted(whole))]
        chosen = max(fit, key=lambda group: sum(lengths[place] ** 2 for place in group[1]) / group[0])
        groups.remove(chosen)
        degree, places = chosen
        if len(places) > 1:
            halves = partition([lengths[place] for place in places], 2, weights=(0, 1))
            groups += [(degree, [places[k] for k in half]) for half in halves.tolist()]
        else:
            groups.append((2 * degree, places))
        free -= degree
    return groups


def install(
    *, hidden_size: int = 4096, cost: Optional[Callable[[int, int], Cost]] = None
) -> Callable[[], None]:
    """Puts hbp in the place of every scheduler of `scheduler_map` that there is; what is returned takes it
    back. `hidden_size` weighs tokens against attention; `cost`, called with the number of ranks and the least
    degree, gives an hbp.Cost that knows more than ring_cost."""
    seam = import_seam("megatron-core", KNOWN, "megatron.core.datasets.data_schedule")

    base = "max_seqlen_per_dp_cp_rank cp_size dp_size microbatch_group_size_per_vp_stage [max_num_seqs]"
    take = "self sample_id_seqlens"
    require_seam(
        "megatron-core",
        KNOWN,
        (seam, "BasePackingScheduler", base),
        (seam, "DpBalancedScheduler", "args kwargs"),
    )
    require_seam("megatron-core", KNOWN, (seam.DpBalancedScheduler, "get_groups_and_subsamples", take))
    make_cost = cost or (lambda ranks, least: ring_cost(ranks, hidden_size=hidden_size, min_cp_size=least))

    class HbpBalanced(seam.DpBalancedScheduler):  # type: ignore[misc, name-defined]
        @errors_as(AssertionError)
        def get_groups_and_subsamples(
            self, sample_id_seqlens: List[Tuple[int, int]]
        ) -> List[List[List[int]]]:
            if not sample_id_seqlens:
                return []
            packs = partition(
                [length for _, length in sample_id_seqlens],
                capacity=self.max_seqlen_per_dp_cp_rank * self.cp_size,
                multiple_of=self.dp_size * (self.microbatch_group_size_per_vp_stage or 1),
                max_samples=getattr(self, "max_num_seqs", None),
                weights=(6 * hidden_size, 1),
            )
            ids = [[sample_id_seqlens[place][0] for place in pack] for pack in heaviest_first(packs)]
            return [
                [pack for pack in ids[first : first + self.dp_size] for _ in range(self.cp_size)]
                for first in range(0, len(ids), self.dp_size)
            ]

    entries = {
        key: HbpBalanced for key in seam.scheduler_map if str(getattr(key, "value", key)) == "dp_balanced"
    }
    if hasattr(seam, "DefaultDynamicCPScheduler"):
        require_seam("megatron-core", KNOWN, (seam, "DefaultDynamicCPScheduler", "args min_cp_size kwargs"))

        class HbpDynamic(seam.DefaultDynamicCPScheduler):  # type: ignore[misc, name-defined]
            @errors_as(AssertionError)
            def get_groups_and_subsamples(
                self, sample_id_seqlens: List[Tuple[int, int]]
            ) -> List[List[List[int]]]:
                if not sample_id_seqlens:
                    return []
                ranks, lengths = self.total_hdp_gpus, [length for _, length in sample_id_seqlens]
                plan = plan_step(
                    lengths,
                    make_cost(ranks, self.min_cp_size),
                    tokens_per_rank=self.max_seqlen_per_dp_cp_rank,
                    min_sp=self.min_cp_size,
                    any_degree=ranks & (ranks - 1) != 0,
                    max_samples=self.max_num_seqs or 0,
                    micro_batch_multiple=self.microbatch_group_size_per_vp_stage or 1,
                )
                answer = []
                for row in plan.step(0).micro_batches:
                    packs = range(*plan.micro_batch_offsets[row : row + 2].tolist())
                    used = [
                        (int(plan.pack_sp[k]), plan.sample_ids[slice(*plan.pack_offsets[k : k + 2])].tolist())
                        for k in packs
                    ]
                    if not any(places for _, places in used):
                        count, wanted = len(lengths), len(plan.step(0).micro_batches)
                        raise refusal(InfeasibleError, f"{count} samples do not fill {wanted} micro-batches")
                    groups = fill_ranks(
                        [group for group in used if group[1]], lengths, ranks, self.max_num_seqs
                    )
                    groups.sort(key=lambda group: -group[0])
                    answer.append(
                        [
                            [sample_id_seqlens[place][0] for place in places]
                            for degree, places in groups
                            for _ in range(degree)
                        ]
                    )
                return answer

        entries["default_dynamic_cp"] = HbpDynamic
    return replace(*((seam.scheduler_map, key, value) for key, value in entries.items()))

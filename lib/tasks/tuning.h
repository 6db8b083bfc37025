/* The numbers of hbp_plan_tasks that no paper, format or proof fixes: what each trades, and the benchmark
 * that shows it (benchmarks/README.md); "chosen" where none set it. Work is counted, never timed, so that a
 * plan is a function of its input. bench_tasks prints what they come to together: makespans over C* and over
 * the bound, bytes that placement moves, and the time to plan, up to 100 tasks on 1,024 GPUs. */
#ifndef HBP_TASKS_TUNING_H
#define HBP_TASKS_TUNING_H

#include <stdint.h>

/* options.effort where it is 0. Makespan for time, which doubles a step: bench_tasks. */
#define HBP__TASKS_EFFORT 5
/* So much less for the sizes that tile domains: they are fewer. Chosen. */
#define HBP__TASKS_TILED_EFFORT 2

/* Waves: makespan over C* for time. */

/* Ends that are tried of a wave: this over MetaOps^2, but at least the next. bench_tasks; the least is
 * chosen. */
#define HBP__WAVE_END_WORK  2000000
#define HBP__WAVE_END_LEAST 6
/* Items whose ends are tried: this over MetaOps, but at least the next; fewer from levels of thousands on.
 * Chosen. */
#define HBP__WAVE_ENDING_WORK  800000
#define HBP__WAVE_ENDING_LEAST 32
/* No rule is tried for levels of more MetaOps, as its time is their square: bench_tasks, 4,000 tasks on 512
 * GPUs. */
#define HBP__WAVE_RULE_MOST_META_OPS 3000
/* How near the optimum of what a wave leaves is found. Chosen. */
#define HBP__WAVE_END_TOLERANCE 1e-4
/* Rules that are tried: this over MetaOps, as one end of many matters less, but at least the next.
 * bench_tasks. */
#define HBP__WAVE_RULE_WORK  260
#define HBP__WAVE_RULE_LEAST 2
/* Of C*: no rule is tried beyond. bench_tasks. */
#define HBP__WAVE_RULE_NEAR 1.005
/* What a nanosecond of the rest is taken for, rule after rule. No one is best everywhere, none far from it:
 * bench_tasks. */
#define HBP__WAVE_RULE_RESTS 1.1, 1.2, 1.06, 1.03, 1.15

/* First schedules without barriers: what the search starts from, for time. */

/* Percent of the bound that shares of the whole graph, and list scheduling, aim at, falling. Chosen. */
#define HBP__SEED_SHARE_AIMS 160, 130, 115, 107, 100, 94
#define HBP__SEED_LIST_AIMS  108, 103, 101, 98
/* Pieces of list scheduling until its aim, from the one doubled up to the other. Chosen. */
#define HBP__SEED_LEAST_SPANS 16
#define HBP__SEED_MOST_SPANS  32
/* Rounds of justification. Chosen. */
#define HBP__SEED_JUSTIFY 4
/* Pieces placed, and MetaOps or edges looked at, in large graphs: bench_tasks, 100 tasks on 1,024 GPUs. */
#define HBP__SEED_MOST_PLACED 1000000
#define HBP__SEED_MOST_LOOKS  30000000
/* The part of a MetaOp's operators, one in so many, that gets faster at once. Chosen. */
#define HBP__SHARE_STEP 4
/* MetaOps of a part whose shares are found anew at every piece; others hold for a part, one in so many, of
 * what is left to go. Chosen. */
#define HBP__LIST_SMALL_PART 8
#define HBP__LIST_SHARE_AGE  16

/* The search for shorter schedules: makespan over the bound for time. */

/* Pieces to place at effort 0: the first, one more for so many pairs of pieces, at most the last.
 * bench_tasks: 64 GPUs in 20 ms. */
#define HBP__SEARCH_PIECES      1700
#define HBP__SEARCH_PAIRS       9
#define HBP__SEARCH_MOST_PIECES 14000
/* How often another change follows one, in percent; places that a piece moves in the order. Chosen. */
#define HBP__SEARCH_MORE_PERCENT 30
#define HBP__SEARCH_REACH        24
/* The part of the makespan, one in so many, by which the aim is earlier than the best. Chosen. */
#define HBP__SEARCH_AIM 250
/* What a worse list may cost at first, in changes of one piece; the part of one, one in so many, that
 * justification may win back. Chosen. */
#define HBP__SEARCH_HEAT  0.75
#define HBP__SEARCH_SLACK 10

/* Placement: bytes between ranks and domains for time; work as in hbp__board. */

/* Work of exchanges, and of perturbations of the best. bench_tasks. */
#define HBP__PLACE_IMPROVE_WORK (INT64_C(1) << 19)
#define HBP__PLACE_PERTURB_WORK (INT64_C(2) << 19)
/* Both in full from so many pairs of a slice and a GPU to so many; below less in proportion, in parts of
 * which there are so many, above more; at least and at most so many parts. Chosen. */
#define HBP__PLACE_FULL_PAIRS  1024
#define HBP__PLACE_MANY_PAIRS  4096
#define HBP__PLACE_PARTS       16
#define HBP__PLACE_LEAST_PARTS 2
#define HBP__PLACE_MOST_PARTS  (12 * HBP__PLACE_PARTS)
/* From so many pairs on placements are made once, with the usual weight of gradients: bench_tasks, 4,000
 * tasks on 512 GPUs. */
#define HBP__PLACE_ONCE_PAIRS (INT64_C(1) << 22)
/* Placed slices of the search that backtracks under a limit of memory. Chosen. */
#define HBP__PLACE_NODES 20000
/* The part, one in so many, of what others would like of a rank that keeps a slice off it. Chosen. */
#define HBP__PLACE_CLAIM 4
/* Single pairs tried of two slices that cannot all be brought together; random exchanges of a perturbation.
 * Chosen. */
#define HBP__PLACE_PAIRS 8
#define HBP__PLACE_KICKS 3
/* Slices looked at for the order of one set, method spindle. Chosen. */
#define HBP__PLACE_PAPER_LOOKS (INT64_C(1) << 22)

/* What placement weighs. */

/* A byte that leaves its NVLink domain weighs as much as so many that stay: about the ratio of the links'
 * speeds. Chosen. */
#define HBP__CROSSING 8
/* A byte that flows weighs as much as so many of gradients. With more gradient the steps of the preset
 * workloads get up to 1.5 % shorter, but then more than a third of what crosses domains on consecutive ranks
 * does: bench_tasks. */
#define HBP__GRADIENT_PART 24
/* The same in placements that spare gradients, of which the faster stays: bench_tasks. */
#define HBP__GRADIENT_HEAVY 3
/* Fetching a state is paid once in so many steps. Chosen. */
#define HBP__REUSE_STEPS 64
/* Rounds of exchanging two ranks' numbers, and GPUs above which ranks keep theirs, as it takes GPUs^2 memory.
 * Chosen. */
#define HBP__REUSE_ROUNDS    16
#define HBP__REUSE_MOST_GPUS 2048

#endif

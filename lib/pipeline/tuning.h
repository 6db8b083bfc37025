/* The numbers of pipeline planning that no paper, format or proof fixes: what each trades, and the benchmark
 * that shows it (benchmarks/README.md); "chosen" where none set it. Work is counted, never timed, so that a
 * plan is a function of its input. */
#ifndef HBP_PIPELINE_TUNING_H
#define HBP_PIPELINE_TUNING_H

#include <stdint.h>

/* Stages: the run's time for time to cut; bench_stages has 1,000 layers on 64 stages. */

/* Parts looked at for the optimum, some seconds at most; with several chunks a stage one in so many of them;
 * and for others near it and for bounds of other methods, tenths of a second. bench_stages. */
#define HBP__CUT_WORK         (INT64_C(1) << 30)
#define HBP__CUT_ROUNDS_SHARE 4
#define HBP__CUT_LIST_WORK    (INT64_C(1) << 25)
/* Operations simulated to improve cuts where the run decides. bench_stages. */
#define HBP__CUT_IMPROVE_WORK (INT64_C(1) << 24)
/* Candidates of each ranking where options.candidates is 0. Chosen. */
#define HBP__CUT_CANDIDATES 8
/* Partitions near another one that are tried one by one; of more, those that a recurrence finds. Chosen. */
#define HBP__NEAR_TRIED 1000000

/* The order of micro-batches: the step's time for time to search; bench_order. */

/* Operations simulated by hbp_order_micro_batches: some .12 s of bench_order's searches. */
#define HBP__ORDER_WORK (INT64_C(1) << 25)
/* Micro-batches up to which every order is weighed: 2 ms for 8 in bench_order, and nothing left to find. */
#define HBP__ORDER_EXACT 7
/* Places that a move of the local search reaches; random moves of a perturbation. Chosen. */
#define HBP__ORDER_REACH 48
#define HBP__ORDER_KICKS 3
/* The search ends early once it has spent so many times what its best took, and so much more. Chosen. */
#define HBP__ORDER_PATIENCE      16
#define HBP__ORDER_PATIENCE_WORK (INT64_C(1) << 18)

/* Recomputation: time that it adds for time to choose; bench_recompute. */

/* Steps of the search of all stages, some ten ns each. bench_recompute. */
#define HBP__RECOMPUTE_WORK (INT64_C(1) << 25)
/* The part of them, one in so many, for greedy choices before any is proven: bench_recompute, layers that all
 * differ. */
#define HBP__RECOMPUTE_GREEDY_SHARE 4

#endif

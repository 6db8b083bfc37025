/* The numbers of hbp_plan_vlm that no paper, format or proof fixes: what each trades, and the benchmark that
 * shows it (benchmarks/README.md); "chosen" where none set it. Work is counted, never timed, so that a plan
 * is a function of its input. bench_vlm prints what they come to together: GPU-days, the gap to the lower
 * bound, idle time, and seconds to plan. */
#ifndef HBP_VLM_TUNING_H
#define HBP_VLM_TUNING_H

#include <stdint.h>

/* Share of samples that a pack may hold over the number asked for: fuller packs for micro-batches a step, and
 * so for idle stages. bench_vlm. */
#define HBP__VLM_SAMPLES_OVER .0625
/* What max_tokens is rounded up to where the largest samples set it. Chosen. */
#define HBP__VLM_TOKEN_MULTIPLE 64

/* Partitions up to which all are judged: milliseconds to plan, and nothing left to find. Chosen. */
#define HBP__VLM_FEW_PARTITIONS 512
/* Partitions that the searches near their starts may judge: GPU-days for seconds to plan, bench_vlm. */
#define HBP__VLM_MOST_JUDGED 4096
/* Starts from partitions made without limits, by each ranking. The same. */
#define HBP__VLM_STARTS 32
/* Where nothing recomputes and so large a share of the memory is left, memory did not stand in the way of the
 * cuts, and no search starts from layers that recompute. Chosen. */
#define HBP__VLM_AMPLE_MEMORY .1

/* Micro-batches whose work differs by more than one part in so many are ordered; others stay as drawn. The
 * step's time for seconds to plan: bench_vlm. */
#define HBP__VLM_BALANCED 20
/* Operations of simulation for the order of one step. The same; bench_order has what more would find. */
#define HBP__VLM_ORDER_WORK (INT64_C(1) << 15)

#endif

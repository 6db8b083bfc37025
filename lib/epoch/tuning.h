/* The numbers of hbp_plan_epoch that no paper, format or proof fixes: what each trades, and the benchmark
 * that shows it (benchmarks/README.md); "chosen" where none set it. Work is counted, never timed, so that a
 * plan is a function of its input (docs/decisions/mixed.md). Whoever changes a figure runs bench_settings and
 * bench_quality before and after. */
#ifndef HBP_EPOCH_TUNING_H
#define HBP_EPOCH_TUNING_H

#include <stdint.h>

/* Groups: time of the epoch for time to plan. */

/* Up to so many samples, other hierarchies are filled as well and the best is kept: the choice of groups
 * rests on an estimate, the score on packs. Chosen. */
#define HBP__TRY_SAMPLES (INT64_C(1) << 17)
/* They are filled while their number times the samples stays below the first, but no more than the second.
 * Chosen. */
#define HBP__TRY_FILLED      (INT64_C(1) << 20)
#define HBP__TRY_HIERARCHIES 12
/* Their packs are searched for fewer while that may bring more than this share of the best one's time. Of
 * 100,000 lengths, about 4 in a pack, ten hierarchies lie within .3 %; 2 of 10 searches find the best in
 * half the time. test_choose compares with all searches. */
#define HBP__TRY_WORTH 500

/* The hierarchy against steps that are small copies of the epoch: time for mixture. */

/* Thousandths by which steps that are no hierarchy may take longer, unless the caller says otherwise.
 * Chosen; docs/decisions/mixed.md says what it buys. */
#define HBP__MIXTURE_SLACK 10
/* A mixed layout counts as no hierarchy where its steps are at most this share as far from the epoch's
 * mixture as the hierarchy's, or this near to it. Chosen. */
#define HBP__MIXTURE_SHARE 0.5
#define HBP__MIXTURE_NEAR  0.05

/* Whether steps are planned one by one: time of the epoch for time to plan. */

/* Tried where the bound leaves more than so many thousandths to be won; in the place of the hierarchy, where
 * planning takes long, more than the second. Chosen. */
#define HBP__STEPS_WORTH      4
#define HBP__STEPS_WORTH_DEAR 10
/* About what planning a step takes, in ns: so much, so much a sample, and so much shared by the samples, as
 * the step's search counts its work. bench_drawn. */
#define HBP__STEPS_PRICE_STEP   2000000.0
#define HBP__STEPS_PRICE_SAMPLE 15000.0
#define HBP__STEPS_PRICE_SHARED 250000000.0
/* So many times as much where a step is worth a round more (hbp__step_may_go_on). bench_drawn. */
#define HBP__STEPS_PRICE_GOING_ON 8
/* They are to save so many times what planning them takes: the price is that of models whose steps are soon
 * planned. bench_settings. */
#define HBP__STEPS_CLEARLY 2
/* Planning that takes less is not held against what it saves: estimating that costs as much. Chosen. */
#define HBP__STEPS_FREE_NS INT64_C(1000000000)
/* Planning that takes this part of it, one in so many, is done instead of estimating. bench_settings. */
#define HBP__STEPS_SOON 2
/* So is building that takes less, where it seems worth it. Chosen. */
#define HBP__STEPS_SOON_BUILT_NS INT64_C(100000000)
/* Steps are searched for where that takes no more at effort 1, else built, which takes one part in so many.
 * bench_settings. */
#define HBP__STEPS_SEARCHED_NS INT64_C(500000000)
#define HBP__STEPS_BUILT       10
/* For a mixture no faster than the hierarchy, planning may take one part in so many of the run. Chosen. */
#define HBP__STEPS_MIXTURE_PART 10000

/* Steps built rather than searched for: time of a step for time to plan. */

/* Steps that ask for more micro-batches are searched for, which takes hardly longer. Chosen. */
#define HBP__BUILD_LARGEST 48
/* Numbers of micro-batches tried: up to so many more than memory asks for, from so many fewer on than levels
 * came to. Chosen. */
#define HBP__BUILD_NUMBERS 6
#define HBP__BUILD_FEWER   1
/* Where levels come to more micro-batches, no other number is tried. Chosen. */
#define HBP__BUILD_LEVELS_ALONE 6
/* In steps of more samples than the second below no more are tried within one part in so many of an estimate,
 * nor beside levels. bench_settings. */
#define HBP__BUILD_NEAR 100
/* Samples of a step up to which pairs of its micro-batches are divided anew. bench_settings. */
#define HBP__BUILD_RECUT 4096
/* Work on making them shorter, so much a step and so much more a sample. bench_settings. */
#define HBP__BUILD_REPAIR_STEP INT64_C(20000)
#define HBP__BUILD_REPAIR      INT64_C(10)

/* How the samples are dealt into steps: how near an estimate is for time to plan. */

/* Numbers of steps that are tried, in thousandths of what fills the tokens of a step, or its micro-batches.
 * Chosen. */
#define HBP__DEAL_STRETCHES 1000, 1020, 1050
/* Where none of them keeps to the options, so many more are tried, as where a plan is owed. Chosen. */
#define HBP__DEAL_MORE 4
/* Where the best of them seems to take more than so many thousandths over the bound, numbers between are
 * tried by halving, to one part in so many, so that a step has 1, 2, ... up to so many micro-batches: as few
 * steps as memory lets have them. Of more steps than the third figure, where it seems to take more than the
 * second. epochs.sh. */
#define HBP__DEAL_FAR_OFF       5
#define HBP__DEAL_VERY_FAR_OFF  50
#define HBP__DEAL_MOST          512
#define HBP__DEAL_MICRO_BATCHES 3
#define HBP__DEAL_PRECISE       50
/* Where as many steps as a layout has for so many micro-batches are as far off, so many larger numbers are
 * tried, each more by one part in so many. epochs.sh. */
#define HBP__DEAL_BEYOND      3
#define HBP__DEAL_BEYOND_PART 12
/* Steps of more samples than this are planned too long to try more than the first stretch. Chosen. */
#define HBP__DEAL_LARGE_STEP 4096
/* Ways and their steps planned for a first guess, and the share of it, one in so many, that may be its error,
 * or what a search may save of steps that were built. Chosen. */
#define HBP__GUESS_FIRST_WAYS  3
#define HBP__GUESS_FIRST_STEPS 4
#define HBP__GUESS_DOUBT       40
/* Steps planned for an estimate of all; the same with mixture_slack; and the samples that the steps of all
 * estimates may hold together: so many, or one part in so many of all. bench_settings, epochs.sh. */
#define HBP__GUESS_STEPS       8
#define HBP__GUESS_SLACK_STEPS 24
#define HBP__GUESS_SAMPLES     16384
#define HBP__GUESS_PART        16
/* A step waits for its longest sample where it takes no longer than that alone, but for this part. Of more
 * steps than the second figure that is not looked at: it takes time for each. Chosen. */
#define HBP__GUESS_WAITS       0.05
#define HBP__GUESS_ALONE_STEPS 512
/* Few steps are large, mostly, and few of them estimated. Up to the first figure the best even steps and a
 * shuffled sampler's are both planned where those differ by no more than one part in so many, and are more
 * than so many thousandths over the bound. epochs.sh. */
#define HBP__GUESS_FEW_STEPS 48
#define HBP__GUESS_FEW_DOUBT 20
#define HBP__GUESS_FEW_WORTH 15
/* Ways between those listed that the same samples are for. Chosen. */
#define HBP__GUESS_BETWEEN 8
/* Steps looked at before very many are planned, which seem to take as little as they may; very many are so
 * many times as many. Chosen. */
#define HBP__GUESS_SURE_STEPS INT64_C(64)
#define HBP__GUESS_SURE_PART  8
/* Of so few steps that of the longest sample is planned as well. bench_settings. */
#define HBP__GUESS_LONGEST_STEPS 64
/* With mixture_slack, samples past the longest of all x (percent / 100)^k keep their steps in the hierarchy,
 * k = 0 up to so many. Chosen. */
#define HBP__CUT_PERCENT 70
#define HBP__CUTS        6
/* Where a plan is owed, whatever it takes: so many tries to find steps that keep to the options, each with
 * one part in so many more of them; then with one in so many. Chosen. */
#define HBP__OWED_TRIES     12
#define HBP__OWED_MORE_PART 10
#define HBP__OWED_MOST_PART 2

/* Idle ranks: time of a step for idleness. */

/* A step may take one part in so many longer for the sake of fewer idle ranks. bench_quality shows both. */
#define HBP__MEND_PART 100
/* So many samples of an epoch may be planned anew: larger plans have few such steps for their size. Chosen.
 */
#define HBP__MEND_SAMPLES (INT64_C(1) << 18)

/* Bounds: sharpness for time. */

/* The bound of a step, which takes time by the sample, is asked for up to so many. Chosen. */
#define HBP__BOUND_SAMPLES 16384
/* The longest samples looked at, and the pairs of their number and one of steps tried. Chosen. */
#define HBP__BOUND_LONGEST 16
#define HBP__BOUND_PAIRS   48
/* The same for all samples longer than some lengths, from where steps begin to wait on, each a fourth and a
 * 32nd of the longest longer than the last: so many pairs, or fewer where there are many bins, an eighth of
 * the steps past the least number at once. Chosen on data sets of 100,000 samples: half the lengths left
 * bounds up to 1.5 points lower (one was 1.4 higher), twice as many raised none by more than .3. */
#define HBP__BOUND_NEXT       4
#define HBP__BOUND_LENGTHS    32
#define HBP__BOUND_WAIT_PAIRS 400
#define HBP__BOUND_WAIT_BINS  (INT64_C(1) << 22) /* of all pairs together */
#define HBP__BOUND_AT_ONCE    8
/* Of more distinct lengths than so many, those that differ by less than one part in so many are one.
 * Chosen. */
#define HBP__BOUND_BINS   32768
#define HBP__BOUND_NEARLY 1024

/* Patterns: nearness to a plan of every sample for time and room. */

/* Samples that stand for all. More of them leave less of a pack empty and make more patterns. bench_patterns.
 */
#define HBP__PATTERN_SAMPLES (INT64_C(1) << 19)
/* Stretches are one part in so many of the group's slowest pack wide: wider ones wait more and mix better.
 * bench_patterns. */
#define HBP__PATTERN_TIME_CLASSES 8192
/* Past so many samples the search is a plan by patterns unless effort asks for more: as fast or faster but
 * for many ranks, in a tenth of the time. bench_patterns. */
#define HBP__SEARCHED_SAMPLES (INT64_C(1) << 21)
/* Up to so many samples are not worth a thread that puts them in order while patterns are planned. Chosen. */
#define HBP__DEALT_ALONE (INT64_C(1) << 18)

#endif

/* The numbers of hbp_plan_step that no paper, format or proof fixes: what each trades. They are chosen,
 * without a benchmark unless one is named (benchmarks/README.md); bench_step, bench_drawn and bench_lockstep
 * show what they come to together: the time of steps over the bound, and the time to plan. Work is counted,
 * never timed, so that a plan is a function of its input. Whoever changes a figure runs these before and
 * after. */
#ifndef HBP_STEP_TUNING_H
#define HBP_STEP_TUNING_H

#include <stdint.h>

/* The problem: memory and precision of a degree's ways to recompute. */

/* Ways kept of one degree. */
#define HBP__STEP_WAYS 256
/* Stretches of equal width that the tokens of a degree's groups are cut into, to find a way by. */
#define HBP__STEP_SLOTS 128

/* The search: time of the step for time to plan. */

/* Steps of the innermost loops in the first round: so many, or where no further one may be worth it (lockstep
 * sets, parts of a step) so many; so many more a sequence, and so many shared by the sequences, since few of
 * them are hard to arrange; and in a round over the one before. */
#define HBP__STEP_WORK          INT64_C(50000)
#define HBP__STEP_WORK_ONCE     INT64_C(550000)
#define HBP__STEP_WORK_SEQUENCE INT64_C(850)
#define HBP__STEP_WORK_SHARED   INT64_C(120000000)
#define HBP__STEP_WORK_FACTOR   3
/* One round more than effort's is done if all of them do not take more than this part of the step's own time,
 * at so many steps of the innermost loops a second (counted, not timed: about what one core does), times the
 * factor above for each further effort; and if the plan is further than this from the bound. An epoch plans
 * its steps before it begins, so the part is small: chosen, bench_step --recompute --ranks 8 --batch 1024. */
#define HBP__STEP_WORTH           (1.0 / 400)
#define HBP__STEP_WORK_PER_SECOND 1e8
#define HBP__STEP_NEAR_ENOUGH     0.02
/* At effort 1 a step that takes no more than this part longer than what none beats is not improved.
 * bench_step. */
#define HBP__STEP_DONE 0.0005
/* Fewer sequences than this can be arranged in fewer ways. */
#define HBP__STEP_ARRANGED 8
/* Levels may do so many times the work of a round; they hardly ever need as much. */
#define HBP__STEP_LEVELS_WORK 16
/* Share of a round's work for building, once there is a step: the rest improves it. bench_drawn. */
#define HBP__STEP_BUILD 0.6
/* A step in which packs are full of samples is improved, before it is compared, with one of so many parts of
 * the work left. */
#define HBP__STEP_CAPPED 2
/* With more micro-batches than this, steps are built level by level alone. */
#define HBP__STEP_FEW_BATCHES 12
/* Numbers of micro-batches compared by their bounds; the work of one, a sequence. */
#define HBP__STEP_NUMBERS     24
#define HBP__STEP_NUMBER_WORK 8
/* The slower of the simple ways are tried as well up to so many sequences, and up to so many sequences times
 * micro-batches times ranks: below a fiftieth of a second. */
#define HBP__STEP_SIMPLE      2048
#define HBP__STEP_SIMPLE_WORK (INT64_C(1) << 22)
/* Price of memory in levels, in turn over the rounds. */
#define HBP__STEP_LEVEL_PRICES 1, 2, 0, 4, 0.5, 8
/* Up to so many sequences a better step also plans larger lockstep sets at effort 1, where it is not within
 * one part in so many of the bound. */
#define HBP__STEP_FEW  12
#define HBP__STEP_NEAR 200

/* Building, micro-batch by micro-batch: makespans tried for time to plan. */

/* Places at which a pool may be cut, and micro-batches that a cut looks ahead. */
#define HBP__STEP_CUTS  32
#define HBP__STEP_AHEAD 12
/* A cut may give a micro-batch more than its memory, since cuts are coarse; the filling sees to the rest. */
#define HBP__BUILD_OVERFULL 1.15
/* Times more micro-batches than are taken, from where on those are gathered rather than looked for. */
#define HBP__BUILD_SCATTERED 8
/* The share of its memory that a micro-batch is filled to: the first where the step fills less than the
 * second of all micro-batches'; else what the step fills, and these parts of the rest, so many of them in a
 * round. */
#define HBP__BUILD_FREE    0.95
#define HBP__BUILD_LOOSE   0.8
#define HBP__BUILD_DENSITY 0.2, 0.5, 0.85, 0.35, 0.95, 0.7
#define HBP__BUILD_ORDERS  3
/* Makespans tried for the next micro-batch: of an estimate, and what the longest takes on degrees within this
 * range of it. */
#define HBP__BUILD_MULTIPLES 0.8, 0.87, 0.93, 1, 1.04
#define HBP__BUILD_LEAST     0.7
#define HBP__BUILD_MOST      1.3
/* Where none of them leaves the others enough: strides up to the last, each so many times the one before;
 * then the range is halved so often, or down to this part. */
#define HBP__BUILD_STRIDE      0.01
#define HBP__BUILD_LAST_STRIDE 10
#define HBP__BUILD_WIDER       1.5
#define HBP__BUILD_HALVINGS    2
#define HBP__BUILD_PRECISE     0.01
/* The same to fill one micro-batch with all that is left. */
#define HBP__BUILD_ALL_STRIDE  0.002
#define HBP__BUILD_ALL_STRIDES 30
#define HBP__BUILD_ALL_PRECISE 0.003
/* Sequences up to which a filling does not ask how many tokens a group has time for. epochs.sh. */
#define HBP__FILL_FEW 32

/* Steps of many micro-batches, level by level. */

/* Micro-batches for which a makespan is used before others are tried; how much less work a ns it may do. */
#define HBP__LEVELS_EVERY 4
#define HBP__LEVELS_WORSE 0.995
/* So many of the last micro-batches are built together, and the part of the rest that they are filled to. */
#define HBP__LEVELS_TAIL         3
#define HBP__LEVELS_TAIL_DENSITY 0.5
/* A micro-batch that takes less of a makespan than this is full. */
#define HBP__LEVELS_LOOSE 0.9
/* Makespans tried: what the longest takes on degrees within this range of its least; from one to the next,
 * and how often; next to the best. */
#define HBP__LEVELS_LEAST   0.7
#define HBP__LEVELS_MOST    4
#define HBP__LEVELS_STRIDE  1.2
#define HBP__LEVELS_STRIDES 24
#define HBP__LEVELS_NEAR    0.94, 0.97, 1.03, 1.06
/* Micro-batches that are made of one part of the sequences: more would take time that grows with their
 * square. */
#define HBP__LEVELS_PART 96

/* Steps of one degree, dealt evenly: numbers of micro-batches in a row that may bring nothing; the work of
 * one way to deal, a sequence. */
#define HBP__EVEN_NUMBERS 3
#define HBP__EVEN_WORK    16
/* Where longest first takes so many times as long as the best, nothing else is dealt to as many groups. */
#define HBP__EVEN_FAR 1.03
/* In a step that is to be planned soon nothing else is dealt to as many groups where they take no longer than
 * so many times what even ones would. */
#define HBP__EVEN_NEAR 1.0005
/* The part of a round's work that improves one which is the best. */
#define HBP__EVEN_IMPROVED 6

/* Improving a step. */

/* Two micro-batches cut anew: makespans of the first over the longer of both, shifted a little from round to
 * round, and those of degrees within this range of it. */
#define HBP__RECUT_MULTIPLES 0.75, 0.83, 0.9, 0.95, 0.98, 1.02, 1.06, 1.12, 1.25
#define HBP__RECUT_SHIFT     0.013
#define HBP__RECUT_LEAST     0.5
#define HBP__RECUT_MOST      2
/* One micro-batch made shorter: by this part of what it has over the estimate, less where that fails, down to
 * this part of its time in the first round; moves of a squeeze in each. A step that is to be planned soon
 * ends with so many that failed: more won .002 % at most of the 22 epochs that took longest to plan, for up
 * to a sixth of that. epochs.sh. */
#define HBP__SINGLE_PART        0.3
#define HBP__SINGLE_LESS        0.5
#define HBP__SINGLE_PRECISE     1e-4
#define HBP__SINGLE_MOVES       12
#define HBP__SINGLE_QUICK_FAILS 2
/* Weights of time against memory under which the bound is asked for groups; the ranks of the largest group to
 * which what it leaves is coarsened. */
#define HBP__SINGLE_WEIGHTS 1, 0.5, 0
#define HBP__SINGLE_COARSE  8
/* Micro-batches taken apart at once, and one more that may come of it. */
#define HBP__SHUFFLE_TAKEN 4
/* A step longer by this part of a micro-batch, less towards the end of the work, may take a better one's
 * place; after so many attempts without one the best is taken up again. */
#define HBP__SHUFFLE_SLACK 0.01
#define HBP__SHUFFLE_IDLE  100
/* Moves of a squeeze within a shuffle. */
#define HBP__SHUFFLE_MOVES 24
/* In a step that is to be planned soon nothing is moved where groups are over the goal by more than this part
 * of what all ranks do in it: in three epochs of small steps one squeeze in 1,080 that began further off came
 * out, of the others one in 290, and two thirds of all turns were of the former. epochs.sh. */
#define HBP__SQUEEZE_FAR 0.002
/* Moves for which a sequence stays where it was put. */
#define HBP__SQUEEZE_QUIET 7
/* Work of a squeeze: so much, and so much more a sequence. Steps of up to a thousand sequences hardly ever
 * need as much; where thousands share a few groups, all exchanges of one turn alone are their square. */
#define HBP__SQUEEZE_WORK        INT64_C(4000000)
#define HBP__SQUEEZE_WORK_MEMBER INT64_C(250)
/* A squeeze may do so much where less is left to the search; in a step that is to be planned soon, where
 * putting in what is left counts as well, so much. epochs.sh. */
#define HBP__SQUEEZE_LEAST_WORK INT64_C(100000)
#define HBP__SQUEEZE_QUICK_WORK INT64_C(20000)

/* Samples that are scarce: up to so many a rank of the micro-batches that the options ask for; under a cap,
 * up to so many a rank. */
#define HBP__SCARCE_FORCED 4
#define HBP__SCARCE_CAPPED 8

/* Few sequences, solved exactly: at most so many, and sums over (set, part, ranks, degree) that are worth a
 * wait. */
#define HBP__TINY_MOST      9
#define HBP__TINY_MOST_WORK INT64_C(12000000)

/* As many samples in every pack. */

/* Work on improving the best try of all, in sequences looked at: so much, and so much more a sequence. */
#define HBP__EQUAL_WORK          INT64_C(400000)
#define HBP__EQUAL_WORK_SEQUENCE INT64_C(400)
/* The part of it that each try is improved by, and the best of a degree unless it takes so much longer than
 * the best of all. */
#define HBP__EQUAL_PART         8
#define HBP__EQUAL_PART_OF_BEST 2
#define HBP__EQUAL_WORTH        1.2
/* An exchange that takes this part of the difference off the slowest pack is good enough; at best it is a
 * half. */
#define HBP__EQUAL_ENOUGH 0.4
/* Numbers of micro-batches in a row that may bring nothing. */
#define HBP__EQUAL_FAILURES 3

/* Lockstep sets and lanes. bench_lockstep shows their steps. */

/* Exchanges tried for each set in a round of effort. */
#define HBP__SETS_TRIES 6
/* Packs of a block that a sequence may join while lanes are filled: the newest. */
#define HBP__LANES_NEWEST 8
/* A step may take one part in so many longer for the sake of fewer padding packs. */
#define HBP__LANES_DEAR 200
/* Sequences of a pack, packs of a block, and blocks that are looked at in one turn. */
#define HBP__LANES_SEQUENCES 64
#define HBP__LANES_PACKS     8
#define HBP__LANES_BLOCKS    4
/* Prices asked for in improving one start, for each of effort's first rounds, and so many more a sequence. */
#define HBP__LANES_WORK          INT64_C(60000)
#define HBP__LANES_WORK_SEQUENCE INT64_C(100)

/* The exact solver: how large a program may be for how long it takes. */

/* Solutions are looked for that are better by this part. */
#define HBP__EXACT_CUTOFF 1e-6
/* Times longer than the solution of the real lengths that one of rounded lengths may take. */
#define HBP__EXACT_ROUNDED 1.5
/* A larger program is not tried: its relaxation alone would take minutes. */
#define HBP__EXACT_COLUMNS 60000
/* The order on the longest sequences of slots takes a row per kind and slot: only in programs up to this many
 * columns. */
#define HBP__EXACT_ORDERED 4000
/* Of one call, at effort 1: iterations of the simplex method, times rows and columns. */
#define HBP__EXACT_WORK INT64_C(300000000)

/* Bounds: sharpness for time. Any value proves a bound. */

/* Numbers of micro-batches looked at one by one, none beyond the last, and the share of the plan's time that
 * is worth it. */
#define HBP__BOUND_CASES       3
#define HBP__BOUND_FEW_BATCHES 16
#define HBP__BOUND_PRECISE     0.002
/* The longest sequences are counted beside time and memory where they take this part of the ranks alone; long
 * sequences in a group that are worth counting. */
#define HBP__BOUND_NEARLY_FULL 0.6
#define HBP__BOUND_MOST_FIT    4
/* What a group holds in time is looked at where the bound is further from the plan than this, and kinds of
 * sequences are no more. */
#define HBP__BOUND_WORTH_REGIONS 0.02
#define HBP__BOUND_MOST_KINDS    8192
/* Weights of time against memory: of all groups, beside a count, and of those of a degree and above and those
 * below. */
#define HBP__BOUND_WEIGHTS       1, 0, 0.5, 0.75, 0.25
#define HBP__BOUND_COUNT_WEIGHTS 1, 0, 0.5
#define HBP__BOUND_ROOM_WEIGHTS  0, 0.5, 0.75, 0.25
#define HBP__BOUND_PAIR_WEIGHTS                                                                              \
    {1, 0}, {0, 1}, {1, 0.5},                                                                                \
    {                                                                                                        \
        0.5, 0                                                                                               \
    }
/* How near the least makespan is found: roughly, closely, by regions. */
#define HBP__BOUND_LOOKS 1e-3, 1e-4, 1e-3
/* Prices of memory tried for a class, classes, and values of tau, of alpha and of the price of memory looked
 * at for one. */
#define HBP__BOUND_PRICES  3
#define HBP__BOUND_CLASSES 48
#define HBP__BOUND_TAUS    0, 0.5
#define HBP__BOUND_TRIES   14
/* Prices looked at for what one micro-batch saves. */
#define HBP__BOUND_SAVINGS 12
/* Slopes to begin with, in units of each side, and the factors that they are moved by, from coarse to fine,
 * so often each. */
#define HBP__REGION_STARTS         0.3, 1
#define HBP__REGION_MOVES          2.5, 1.6, 1.25, 1.1
#define HBP__REGION_MOST_MOVES     3
#define HBP__REGION_FIRST_DISCOUNT 0.5
/* Long sequences on a rank that are counted in lanes, where there are no more sequences than this. */
#define HBP__BOUND_LANE_FIT     8
#define HBP__BOUND_LANE_COUNTED 8192
/* How near the relaxation that guides building is solved: halvings, or this part. */
#define HBP__RELAX_HALVINGS 8
#define HBP__RELAX_PRECISE  0.001

#endif

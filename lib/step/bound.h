/* What the bounds of a step are made of (docs/explanation/step-bound.md). */
#ifndef HBP_STEP_BOUND_H
#define HBP_STEP_BOUND_H

#include <stdint.h>

#include "step/step.h"

/* Covers the rounding of doubles in sums over `count` sequences, relative to the terms. */
static inline double hbp__bound_margin(int64_t count)
{
    return (1024 + (double)count) / 1125899906842624.0; /* 2^-40 + count 2^-50 */
}

/* The way with the fewest layers in which a group of step->degree[j] holds `tokens`. Where there are more
 * layers than ways are kept, the one found may have a few too many; times are linear in layers, and the way
 * is made in `scratch`. */
const hbp__point *hbp__bound_least_way(const hbp__step *step, int32_t j, int64_t tokens, hbp__point *scratch);

/* Ranks in groups of step->degree[j] and wider ones are a multiple of this: the greatest common divisor. */
double hbp__bound_unit(const hbp__step *step, int32_t j);

/* The least multiple of `unit` that is no less, but for rounding. */
double hbp__bound_round_up(const hbp__step *step, double ranks, double unit);

/* What a sequence takes on a degree with some number of recomputed layers. */
typedef struct hbp__need {
    double work;  /* rank-time, ns */
    double share; /* of the memory of so many ranks */
} hbp__need;

/* The extreme ways to run a sequence on a degree, and what it takes there alone above the fixed part. */
typedef struct hbp__ask {
    double alone; /* INFINITY: does not fit */
    int32_t needs;
    hbp__need need[3];
} hbp__ask;

/* Sequences of which so much is worked out that so many lie between two looks at a request to cancel. */
#define HBP__BOUND_TICK 8192

/* [count x degrees] asks into `ask`. HBP_E_CANCELLED. */
hbp_status hbp__bound_ask(const hbp__step *step, hbp__ask *ask);

/* The longest sequences counted: what one of s tokens takes of the ranks of a group, from `base` at `edge`
 * tokens up by `slope` a token, none and `most` the limits; past `room` none is done in time. */
typedef struct hbp__bound_count {
    int64_t longs; /* sequences 0 .. longs - 1 */
    double share;  /* of the count in a mix with time and memory */
    double time;   /* that `room` and `shortest` are of, and for these `longs`; 0: of none yet */
    struct {
        int64_t shortest;
        double room;
        double edge;
        double base;
        double slope;
        double most;
    } degree[HBP__STEP_DEGREES];
} hbp__bound_count;

/* Sets what each of the first `longs` sequences takes where groups are done in `time` above the fixed part;
 * those up to sequence `full` < longs, at least, as much as one of a group that could hold another shorter
 * one. What was set for the same time and sequences, and another `full`, is used again. Returns the ranks
 * that all of them take at least. O(degrees longs). */
double hbp__bound_one_count(const hbp__step *step, double time, int64_t longs, int64_t full,
                            hbp__bound_count *count);

/* About how many of the longest sequences are too long for `fit` + 1 of them to be done in `time` in a group
 * of step->degree[j]. O(log count). */
int64_t hbp__bound_one_longs(const hbp__step *step, double time, int32_t j, int64_t fit);

/* Doubles of scratch for the two below. */
uint64_t hbp__bound_one_room(const hbp__step *step);

/* Whether packs are padded to more than a token on some degree. */
int hbp__bound_has_rooms(const hbp__step *step);

/* room[j] [degrees] gets the most tokens of sequences that a group of step->degree[j] is done with in `time`
 * above the fixed part: padded, a multiple. O(count degrees). */
void hbp__bound_one_rooms(const hbp__step *step, double time, double *room);

/* Zero when one micro-batch surely cannot finish in `time` above the fixed part, judged by the share `weight`
 * of time and the rest of memory, or of `room`, unless NULL, mixed with a count, or NULL. least[j] [degrees]
 * gets the ranks that groups of step->degree[j] and above have at least, as far as it came. O(count degrees).
 */
int hbp__bound_one_allows(const hbp__step *step, const hbp__ask *ask, double time, double weight,
                          const double *room, const hbp__bound_count *count, double *scratch, double *least);

/* The same into *allowed where groups of each degree and above are judged by another share of time than those
 * below; `least` as from calls for the same time. HBP_E_CANCELLED. */
hbp_status hbp__bound_one_allows_both(const hbp__step *step, const hbp__ask *ask, double time,
                                      const double *least, double *scratch, int *allowed);

/* A lower bound on `ns` of every solution in lockstep sets, of whatever size; `upper_ns` is that of one.
 * O(count degrees). */
hbp_status hbp__bound_lanes(const hbp__step *step, int64_t upper_ns, int64_t *bound_ns);

#endif

/* The inside of hbp__plan_waves: how many GPUs each MetaOp of a level gets (Spindle, section 3.3), a level's
 * waves while they are made, and the two rules that make them (section 3.4). */
#ifndef HBP_TASKS_LEVEL_WAVES_H
#define HBP_TASKS_LEVEL_WAVES_H

#include <stdint.h>

#include "tasks/problem.h"

/* `count` operators of a MetaOp on `gpus` GPUs. */
typedef struct hbp__tuple {
    int32_t meta_op;
    int32_t gpus;
    int32_t count;
} hbp__tuple;

/* Two valid sizes around the share n* and how many operators run on each, before rounding: low + high = L and
 * T(high) high_count + T(low) low_count = C*. low_gpus 0 is padding that runs nothing: n* lies below the
 * least size. */
typedef struct hbp__two_points {
    int32_t high_gpus;
    int32_t low_gpus;
    double high_count;
    double low_count;
} hbp__two_points;

hbp__two_points hbp__two_points_of(const hbp__curve *curve, int32_t operators, double optimum_ns,
                                   double share);

/* Bi-point discretisation: exactly L operators in all; at most two tuples, the one of more GPUs first;
 * returns how many. */
int32_t hbp__round_tuples(const hbp__two_points *points, int32_t operators, int32_t meta_op,
                          hbp__tuple tuple[2]);

/* Both for the MetaOps [first, end) of `problem` run side by side on N GPUs: *optimum_ns is C*; `tuples` gets
 * at most 2 (end - first), *count of them, by MetaOp. */
hbp_status hbp__allocate_level(hbp_context *context, const hbp__task_problem *problem, int32_t first,
                               int32_t end, double *optimum_ns, hbp__tuple *tuples, int32_t *count);

/* Operators of a MetaOp in a wave. */
typedef struct hbp__wave_item {
    int32_t meta_op;
    int32_t count;
    int32_t gpus;
    int32_t size;    /* index of `gpus` in the MetaOp's curve */
    int64_t each_ns; /* time of one operator there */
} hbp__wave_item;

typedef struct hbp__level_waves {
    hbp__memory memory;
    const hbp__task_problem *problem;
    int32_t base; /* MetaOps base .. end - 1 are the level */
    int32_t end;
    hbp__wave_item *item; /* [used] by wave */
    int64_t used;
    int64_t room;
    int64_t *first; /* [count + 1] wave k has item[first[k]] .. item[first[k + 1] - 1] */
    int32_t count;  /* at most 2 (end - base) */
    int64_t *last;  /* [end - base] each MetaOp's latest item, -1: none */
    int64_t length_ns;
    double optimum_ns; /* C*; by hbp__fill_waves */
} hbp__level_waves;

/* No waves yet. In scratch, but for the items, which grow: close releases them. */
hbp_status hbp__level_waves_open(hbp_context *context, const hbp__task_problem *problem, int32_t level,
                                 hbp__level_waves *waves);
void hbp__level_waves_close(hbp__level_waves *waves);

/* Takes all waves out. */
void hbp__level_waves_clear(hbp__level_waves *waves);

/* Room for a wave of `most` items; *item is where to write them. */
hbp_status hbp__level_waves_reserve(hbp_context *context, hbp__level_waves *waves, int64_t most,
                                    hbp__wave_item **item);

/* Takes the `number` items written, in any order, as the next wave; or, where the wave before runs the same
 * MetaOps on as many GPUs, adds the operators to that one: a barrier less. */
void hbp__level_waves_push(hbp__level_waves *waves, int32_t number);

/* Appends slices from when the last of `slices` has ended. */
hbp_status hbp__level_waves_append(hbp_context *context, hbp__level_waves *waves, hbp__task_slices *slices);

static inline void hbp__wave_item_resize(const hbp__task_problem *problem, hbp__wave_item *item, int32_t size)
{
    const hbp__curve *c = hbp__meta_curve(problem->scaling, item->meta_op);
    item->size = size;
    item->gpus = c->size[size];
    item->each_ns = c->time_ns[size];
}

static inline int64_t hbp__wave_item_time(const hbp__wave_item *item)
{
    return item->count * item->each_ns;
}

/* The order of section 3.4: most GPUs first, then the longest; ties by MetaOp. */
static inline int hbp__wave_item_before(const hbp__wave_item *a, const hbp__wave_item *b)
{
    if (a->gpus != b->gpus)
        return a->gpus > b->gpus;
    int64_t a_ns = hbp__wave_item_time(a), b_ns = hbp__wave_item_time(b);
    return a_ns != b_ns ? a_ns > b_ns : a->meta_op < b->meta_op;
}

/* As published: tuples of hbp__allocate_level, first fit in the order above, at most one of a MetaOp in a
 * wave, which lasts about as long as its shortest. */
hbp_status hbp__fill_waves(hbp_context *context, hbp__level_waves *waves);

/* How hbp__share_waves chooses. */
typedef struct hbp__wave_rule {
    int32_t nearest; /* nonzero: sizes start from the nearest valid to the share, not from the one below */
    double rest; /* what a nanosecond of the rest's continuous optimum is taken for: waves never reach it */
} hbp__wave_rule;

/* Allocates anew for every wave: Theorem 1's shares of what is left, left-over devices to what has most time
 * left, and the wave ends with that operator after which wave and rest come to least. */
hbp_status hbp__share_waves(hbp_context *context, const hbp__wave_rule *rule, hbp__level_waves *waves);

#endif

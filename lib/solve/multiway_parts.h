/* Parts in the making: what each holds, in order of weight, and exchanges between them. */
#ifndef HBP_SOLVE_MULTIWAY_PARTS_H
#define HBP_SOLVE_MULTIWAY_PARTS_H

#include "base/checked.h"
#include "solve/multiway.h"

/* What parts are in the order of. */
enum { HBP__BY_WEIGHT, HBP__BY_SIZE, HBP__BY_SAMPLES };

typedef struct hbp__parts {
    hbp_context *context;
    const hbp__multiway *problem;
    uint32_t *part;   /* [items] the caller's */
    int64_t *weight;  /* [parts] sums, */
    int64_t *size;    /* [parts] */
    int64_t *samples; /* [parts] */
    uint32_t *order;  /* [parts] ascending in what `key` says, then in samples; while items are put a heap of
                         the  first `open`, the others being full */
    uint32_t *rank;   /* [parts] the place of a part in the heap */
    int64_t open;
    int64_t lack; /* samples that parts lack of their least number */
    int64_t left; /* samples of items without a part */
    int key;      /* HBP__BY_WEIGHT, ... */
} hbp__parts;

static inline int64_t hbp__multiway_size(const hbp__multiway *p, uint32_t item)
{
    return p->size ? p->size[item] : p->weight[item];
}

static inline int64_t hbp__multiway_samples(const hbp__multiway *p, uint32_t item)
{
    return p->samples ? p->samples[item] : 1;
}

/* Samples that a part lacks of its least number. */
static inline int64_t hbp__parts_lack(const hbp__parts *parts, uint32_t part)
{
    return hbp__max_i64(0, parts->problem->least_samples - parts->samples[part]);
}

/* They are scratch. `part` [items] is written to. */
hbp_status hbp__parts_open(hbp_context *context, const hbp__multiway *problem, uint32_t *part,
                           hbp__parts *parts);

/* Empties all parts. */
void hbp__parts_clear(hbp__parts *parts);

/* Whether part a comes before part b. */
int hbp__parts_is_before(const hbp__parts *parts, uint32_t a, uint32_t b);

/* An item into a part, while `order` is a heap. O(log parts). */
void hbp__parts_put(hbp__parts *parts, uint32_t item, uint32_t part);

/* The parts that `part` has of all items, in order of weight. */
hbp_status hbp__parts_load(hbp__parts *parts);

hbp_status hbp__parts_order_by_weight(hbp__parts *parts);

/* Moves an item of the heaviest part to a lighter one, or exchanges two, until no exchange with one of the
 * lightest parts makes the two lighter than the heaviest was, or it weighs `bound`. The heaviest part never
 * gets heavier. */
hbp_status hbp__parts_improve(hbp__parts *parts, int64_t bound);

#endif

/* One micro-batch: prices of a token and of a square on each degree, so that no group that is done in time
 * takes more than its ranks (docs/explanation/step-bound.md, "What a group holds in time"). */
#ifndef HBP_STEP_BOUND_REGION_H
#define HBP_STEP_BOUND_REGION_H

#include "step/bound.h"

/* The groups of one degree that are done in time: those without the level's own sequences, or those with. */
typedef struct hbp__bound_side {
    int32_t degree;   /* index into step->degree */
    int32_t ways;     /* the first so many are in time */
    int64_t capacity; /* of the last of these */
    double thin;      /* least and most squares a token of what is done in time */
    double dense;     /* below `thin`: nothing is */
    double base;      /* S tokens come with base + thin S squares or more, */
    double top;       /* and with top + rise S or fewer */
    double rise;
    double unit;         /* what `slope` is counted in */
    double slope;        /* what a square costs, in tokens */
    double token_price;  /* ranks that a token loads */
    double square_price; /* and a square */
} hbp__bound_side;

/* Sequences that are alike to the bound. */
typedef struct hbp__bound_kind {
    int64_t first;
    double weight; /* how many */
    int is_own;    /* the level's */
    double below;  /* the least load in groups without the level's own */
    double above;  /* and with them, before the discount */
} hbp__bound_kind;

typedef struct hbp__bound_region {
    const hbp__step *step;
    const hbp__ask *ask;   /* [count x degrees] */
    double time;           /* of the micro-batch, above the fixed part */
    int32_t level;         /* sequences done in time on degrees from here on alone are the level's own */
    double held;           /* ranks that their groups have at least */
    double discount;       /* on loads in their groups */
    int32_t sides;         /* groups without the level's own by degree, then those with */
    hbp__bound_side *side; /* [2 x degrees] */
    int64_t kinds;
    hbp__bound_kind *kind; /* [kinds] */
} hbp__bound_region;

/* `ask` must live as long. HBP_E_NO_MEMORY. Close it whatever happens. */
hbp_status hbp__bound_region_open(const hbp__step *step, const hbp__ask *ask, hbp__bound_region *region);

/* Looks at micro-batches of `time` above the fixed part, and at the sequences that are done in time on
 * degrees from `level` on alone; 0: at none by themselves. Returns how many kinds these are. O(count
 * degrees). */
int64_t hbp__bound_region_set(hbp__bound_region *region, double time, int32_t level);

/* Prices a side by what its groups hold where a square costs `slope` tokens. O(ways). */
void hbp__bound_side_set_slope(const hbp__bound_region *region, hbp__bound_side *side, double slope);

/* Zero into *allowed when one micro-batch of all is surely not done in `time` above the fixed part.
 * HBP_E_CANCELLED. O(count degrees^2), times the levels. */
hbp_status hbp__bound_region_allows(hbp__bound_region *region, double time, int *allowed);

#endif

/* Steps whose ranks wait for nobody but the ranks of their own pack (lockstep sets of one rank; docs:
 * lockstep).
 *
 * Packs lie on aligned blocks of ranks, and every rank runs those of larger degrees first. Where degrees
 * nest, the ranks of a block have then run the same packs before, are free at the same time, and nothing
 * waits: a rank takes the sum of its packs, and the step as long as the rank with the largest sum. */
#ifndef HBP_STEP_LANES_H
#define HBP_STEP_LANES_H

#include "step/step.h"

typedef struct hbp__lanes_pack {
    int32_t degree; /* index in step->degree; -1: no pack */
    int32_t rank;   /* its first */
    hbp__load load;
    int64_t sequences;
    int64_t ns;    /* beyond what a padding pack takes */
    int64_t first; /* of its sequences; -1: none */
    int64_t next;  /* pack that begins on the same rank; or free pack; -1: none */
} hbp__lanes_pack;

typedef struct hbp__lanes {
    const hbp__step *step;
    int32_t chain[HBP__STEP_DEGREES]; /* [chains] indices of degrees, ascending, that divide each other */
    int32_t chains;
    int64_t padding_ns;
    int32_t keeps;         /* nonzero: no pack ends and none begins */
    int64_t rows;          /* most packs of a rank */
    int64_t packs;         /* rows of `pack` in use or free */
    int64_t free;          /* first of the free ones; -1: none */
    hbp__lanes_pack *pack; /* [count] */
    int64_t *pack_of;      /* [count] by sequence; -1: none */
    int64_t *next;         /* [count] sequence of the same pack, -1: none */
    int64_t *prev;
    int64_t *begins; /* [ranks] first pack that begins there */
    int64_t *load;   /* [ranks] sum of ns */
    int64_t *row;    /* [ranks] packs on it */
    int64_t work;    /* prices of packs asked for */
} hbp__lanes;

/* Empty lanes; HBP_E_NO_MEMORY. Close releases, also zeroed ones. */
hbp_status hbp__lanes_open(const hbp__step *step, hbp__lanes *lanes);
void hbp__lanes_clear(hbp__lanes *lanes);

/* Whether a pack of degree index j may hold sequence k alone. */
int hbp__lanes_may_hold(const hbp__lanes *lanes, int32_t j, int64_t k);

/* What pack p takes with sequence `more` as well and without `less`, -1: none; INT64_MAX where it does not
 * hold them, 0 where nothing is left. */
int64_t hbp__lanes_price(hbp__lanes *lanes, int64_t p, int64_t more, int64_t less);

/* The same of sequence k alone in a pack of degree index j. */
int64_t hbp__lanes_price_alone(hbp__lanes *lanes, int32_t j, int64_t k);

/* Puts sequence k, which is in no pack, into pack p, or a new one of degree index j from `rank` on. */
void hbp__lanes_add(hbp__lanes *lanes, int64_t p, int64_t k);
int64_t hbp__lanes_add_pack(hbp__lanes *lanes, int32_t j, int32_t rank, int64_t k);

/* Takes sequence k out of its pack, which ends where it was the last. */
void hbp__lanes_remove(hbp__lanes *lanes, int64_t k);

/* Puts two sequences of different packs of one degree each into the other's place. */
void hbp__lanes_swap(hbp__lanes *lanes, int64_t k, int64_t other);

/* The largest load of the ranks [rank, rank + ranks), and the most packs of one of them. */
int64_t hbp__lanes_load(const hbp__lanes *lanes, int32_t rank, int32_t ranks);
int64_t hbp__lanes_row(const hbp__lanes *lanes, int32_t rank, int32_t ranks);

/* What the step takes with padding packs in the place of the packs that ranks have fewer. */
int64_t hbp__lanes_ns(const hbp__lanes *lanes);

/* Fills empty lanes so that no pack takes more than about `goal` ns, where degrees allow it: sequences of the
 * larger degrees first, each on the block that is free the soonest. O(count (ranks + degrees)). */
void hbp__lanes_build(hbp__lanes *lanes, int64_t goal);

/* Fills empty lanes with the packs of a solution; *is_read gets zero where they do not keep to the chain of
 * degrees. HBP_E_NO_MEMORY. */
hbp_status hbp__lanes_read(hbp__lanes *lanes, const hbp__step_solution *solution, int *is_read);

/* Moves and swaps sequences off the rank with the largest load until that helps no more or `most` prices have
 * been asked for. HBP_E_CANCELLED. */
hbp_status hbp__lanes_improve(hbp__lanes *lanes, int64_t most);

/* Gives every rank without a pack the shortest sequence that others can do without, which may make the step a
 * little longer. */
void hbp__lanes_fill_idle(hbp__lanes *lanes);

/* Gives every rank `rows` packs as far as it goes: cuts packs of its own, and then takes the shortest
 * sequences of others, which may make the step a little longer. */
void hbp__lanes_fill_rows(hbp__lanes *lanes, int64_t rows);

/* The lanes as a solution, which it opens and prices. */
hbp_status hbp__lanes_write(hbp__lanes *lanes, hbp__step_solution *solution);

/* A plan of the step in the place of *solution, one of all ranks in lockstep, where it is shorter. Keeps to
 * the options; a pure function of its arguments. */
hbp_status hbp__step_lanes(const hbp__step *step, hbp__step_solution *solution);

#endif

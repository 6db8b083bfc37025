/* Which steps planned one by one seem best, from some of each. */
#ifndef HBP_EPOCH_GUESS_H
#define HBP_EPOCH_GUESS_H

#include "epoch/deal.h"
#include "epoch/stratify.h"

/* A way to plan steps one by one is how many even steps there are, or a shuffled sampler's. */
#define HBP__WAY_DRAWN 0

/* Ways for the samples of `part`, which is the epoch or some of it. Close in any case, in the place where
 * they were opened. */
typedef struct hbp__ways {
    hbp__epoch part; /* with the tokens of a step */
    hbp__deal deal;  /* of even steps, once one is asked for */
    int is_dealt;
    int64_t shortest; /* the curriculum's samples; 0: not known yet */
    int64_t mark;     /* of the scratch */
} hbp__ways;

void hbp__ways_open(const hbp__stratify *s, const hbp__epoch *part, hbp__ways *ways);
void hbp__ways_close(hbp__ways *ways);

/* The batches of a way; HBP_E_INFEASIBLE, without a message, where a step has more tokens than it may. Close
 * them in any case. */
hbp_status hbp__ways_take(hbp__ways *ways, int64_t way, hbp__batches *batches);

/* What estimates say of the ways to plan some samples. */
typedef struct hbp__guess {
    int64_t dealt;    /* the best of the even steps; HBP__WAY_DRAWN: none keeps to the options */
    int64_t dealt_ns; /* INT64_MAX then */
    int64_t listed;   /* the best of those that are always looked at, where that is another; else 0 */
    int64_t listed_ns;
    int64_t drawn_ns;  /* of a shuffled sampler's steps; INT64_MAX: they do not, or were not looked at */
    int is_near;       /* the better of both seems to take as little as it may */
    int is_drawn_near; /* a shuffled sampler's steps do */
} hbp__guess;

/* The way that seems best. */
static inline int64_t hbp__guess_best(const hbp__guess *guess)
{
    return guess->dealt_ns <= guess->drawn_ns ? guess->dealt : HBP__WAY_DRAWN;
}

/* Estimates the ways to plan `part`, whose best layout has so many micro-batches, beside other samples that
 * take `others_ns`. Where all of them seem far too slow after a first look, nothing seems best. */
hbp_status hbp__guess_way(const hbp__stratify *s, const hbp__epoch *part, int64_t micro_batches,
                          int64_t others_ns, hbp__guess *guess);

/* Whether planning all steps is soon done, so that no estimate need tell whether it pays. */
int hbp__guess_is_soon(const hbp__stratify *s, const hbp__epoch *part);

#endif

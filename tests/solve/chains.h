/* Random chains, and every partition of a small one. */
#ifndef HBP_TESTS_CHAINS_H
#define HBP_TESTS_CHAINS_H

#include "base/rng.h"
#include "failing.h"
#include "solve/chain/chain.h"

#define CHAIN_ITEMS 1024
#define CHAIN_PARTS 64

typedef struct chain_data {
    int64_t prefix[HBP__CHAIN_KINDS][CHAIN_ITEMS + 1];
    double factor[CHAIN_PARTS * HBP__CHAIN_KINDS];
    int64_t toll[CHAIN_ITEMS + 1], side[CHAIN_ITEMS + 1];
    int32_t reach[CHAIN_PARTS * (CHAIN_ITEMS + 1)];
    hbp__chain chain;
} chain_data;

static inline int64_t chain_draw(hbp__rng *rng, int64_t low, int64_t high)
{
    return low + hbp__rng_below(rng, (uint64_t)(high - low + 1));
}

/* A chain of every sort: few and many distinct costs, factors, tolls and sides, with and without reach. */
static inline void chain_make(hbp__rng *rng, int32_t items, int32_t parts, chain_data *d)
{
    d->chain = (hbp__chain){.items = items, .parts = parts, .factor = d->factor, .toll = d->toll};
    d->chain.side = d->side;
    d->chain.kinds = (int32_t)chain_draw(rng, 1, HBP__CHAIN_KINDS);
    static const int64_t sizes[] = {1, 3, 20, 1000, 5000000};
    int64_t size = sizes[chain_draw(rng, 0, 4)],
            tolls = chain_draw(rng, 0, 2) ? sizes[chain_draw(rng, 0, 4)] : 0;
    int64_t sides = chain_draw(rng, 0, 1) ? tolls : 0, even = chain_draw(rng, 0, 1);
    for (int32_t k = 0; k < d->chain.kinds; k++) {
        d->chain.prefix[k] = d->prefix[k];
        d->prefix[k][0] = 0;
        for (int32_t i = 0; i < items; i++)
            d->prefix[k][i + 1] = d->prefix[k][i] + chain_draw(rng, 0, 3) / (d->chain.kinds > 1 ? 2 : 1) *
                                                        (even ? size : chain_draw(rng, 0, size));
    }
    int64_t unequal = chain_draw(rng, 0, 1);
    for (int32_t p = 0; p < parts; p++) {
        double speed = unequal ? 0.5 + 0.25 * (double)chain_draw(rng, 0, 6) : 1;
        for (int32_t k = 0; k < d->chain.kinds; k++)
            d->factor[p * d->chain.kinds + k] = (even ? 1 : 0.37 * (k + 1)) / speed;
    }
    for (int32_t c = 0; c <= items; c++) {
        d->toll[c] = c && c < items ? chain_draw(rng, 0, tolls) : 0;
        d->side[c] = c && c < items ? chain_draw(rng, 0, sides) : 0;
    }
    d->chain.reach = chain_draw(rng, 0, 1) ? d->reach : NULL;
    for (int32_t p = 0; p < parts; p++) {
        int64_t room = chain_draw(rng, 1, 2 * items / parts + 2);
        int32_t *reach = d->reach + (int64_t)p * (items + 1);
        for (int32_t a = 0, end = 0; a <= items; a++) {
            int32_t far = (int32_t)(a + room - chain_draw(rng, 0, 1));
            end = far > end ? far : end;
            reach[a] = end < a ? a : end > items ? items : end;
        }
    }
    d->chain.weight = chain_draw(rng, 0, 3) ? chain_draw(rng, 0, 12) : 0;
}

static inline int chain_keeps(const hbp__chain *chain, const int32_t *cuts)
{
    for (int32_t p = 0; p < chain->parts; p++)
        if (cuts[p + 1] > hbp__chain_reach(chain, p, cuts[p]))
            return 0;
    return 1;
}

/* The value by the definition in the header, from scratch. */
static inline int64_t chain_value(const hbp__chain *chain, const int32_t *cuts)
{
    int64_t most = 0, sum = 0;
    for (int32_t p = 0; p < chain->parts; p++) {
        double cost = 0;
        for (int32_t k = 0; k < chain->kinds; k++)
            cost += (double)(chain->prefix[k][cuts[p + 1]] - chain->prefix[k][cuts[p]]) *
                    chain->factor[p * chain->kinds + k];
        int64_t load = (int64_t)(cost + 0.5);
        sum += load + (p + 1 < chain->parts ? chain->toll[cuts[p + 1]] : 0);
        load += (p ? chain->side[cuts[p]] : 0) + (p + 1 < chain->parts ? chain->side[cuts[p + 1]] : 0);
        most = load > most ? load : most;
    }
    return chain->weight * most + sum;
}

/* The next partition in the order of earlier cuts; 0 after the last. Begin with cuts[p] = p. */
static inline int chain_next(const hbp__chain *chain, int32_t *cuts)
{
    int32_t p = chain->parts - 1;
    while (p > 0 && cuts[p] == chain->items - (chain->parts - p))
        p--;
    if (p <= 0)
        return 0;
    cuts[p]++;
    for (int32_t q = p + 1; q < chain->parts; q++)
        cuts[q] = cuts[q - 1] + 1;
    return 1;
}

static inline void chain_first(const hbp__chain *chain, int32_t *cuts)
{
    for (int32_t p = 0; p < chain->parts; p++)
        cuts[p] = p;
    cuts[chain->parts] = chain->items;
}

#endif

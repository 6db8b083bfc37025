/* Packing by brute force, and random instances, for the tests of lib/solve. */
#ifndef HBP_TESTS_PACK_ORACLE_H
#define HBP_TESTS_PACK_ORACLE_H

#include <string.h>

#include "base/context.h"
#include "base/rng.h"
#include "solve/packing/packer.h"
#include "test.h"

#define ORACLE_CLASSES 400

/* A histogram with room of its own. */
typedef struct oracle_mix {
    int64_t size[ORACLE_CLASSES], number[ORACLE_CLASSES], weight[ORACLE_CLASSES];
    hbp__classes classes;
} oracle_mix;

/* Up to `classes` different sizes in [low, high], each 1..most times. */
static inline void oracle_draw(oracle_mix *mix, hbp__rng *rng, int64_t classes, int64_t low, int64_t high,
                               int64_t most)
{
    int64_t count = 0, size = low - 1;
    int64_t step = (high - low + 1) / classes;
    for (int64_t c = 0; c < classes; c++) {
        size += 1 + hbp__rng_below(rng, (uint64_t)(step < 1 ? 1 : 2 * step - 1));
        if (size > high)
            break;
        mix->size[count] = size;
        mix->number[count++] = 1 + hbp__rng_below(rng, (uint64_t)most);
    }
    mix->classes = (hbp__classes){count, mix->size, mix->number, NULL};
}

/* Best, first or worst fit decreasing, one item at a time: the number of packs. */
static inline int64_t oracle_fit(const hbp__classes *classes, int64_t capacity, hbp__pack_rule rule)
{
    int64_t items = 0, packs = 0;
    for (int64_t c = 0; c < classes->count; c++)
        items += classes->number[c];
    int64_t *room = malloc((size_t)(items + 1) * sizeof *room);
    for (int64_t c = classes->count - 1; c >= 0; c--) {
        for (int64_t i = 0; i < classes->number[c]; i++) {
            int64_t best = -1;
            for (int64_t p = 0; p < packs; p++) {
                if (room[p] < classes->size[c])
                    continue;
                if (best < 0 || (rule == HBP__BEST_FIT && room[p] < room[best]) ||
                    (rule == HBP__WORST_FIT && room[p] > room[best]))
                    best = p;
                if (rule == HBP__FIRST_FIT)
                    break;
            }
            if (best < 0) {
                best = packs++;
                room[best] = capacity;
            }
            room[best] -= classes->size[c];
        }
    }
    free(room);
    return packs;
}

/* Items one by one, largest first, for the exact search. */
typedef struct oracle_search {
    int64_t size[24], weight[24], room[24], weight_room[24];
    int64_t items, best;
    hbp__room pack;
} oracle_search;

static inline void oracle_branch(oracle_search *s, int64_t item, int64_t packs)
{
    if (packs >= s->best)
        return;
    if (item == s->items) {
        s->best = packs;
        return;
    }
    for (int64_t p = 0; p <= packs; p++) {
        if (p == packs) {
            s->room[p] = s->pack.capacity;
            s->weight_room[p] = s->pack.max_weight;
        }
        if (s->room[p] < s->size[item] || s->weight_room[p] < s->weight[item])
            continue;
        s->room[p] -= s->size[item];
        s->weight_room[p] -= s->weight[item];
        oracle_branch(s, item + 1, packs + (p == packs));
        s->room[p] += s->size[item];
        s->weight_room[p] += s->weight[item];
    }
}

/* The fewest packs of at most 12 items or so, by branching. */
static inline int64_t oracle_optimum(const hbp__classes *classes, hbp__room pack)
{
    oracle_search s = {.pack = pack};
    for (int64_t c = classes->count - 1; c >= 0; c--) {
        for (int64_t i = 0; i < classes->number[c]; i++) {
            s.size[s.items] = classes->size[c];
            s.weight[s.items++] = hbp__class_weight(classes, c);
        }
    }
    s.best = s.items + 1;
    oracle_branch(&s, 0, 0);
    return s.best;
}

#endif

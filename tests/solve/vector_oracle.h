/* Vector packing by brute force, and random instances. */
#ifndef HBP_TESTS_VECTOR_ORACLE_H
#define HBP_TESTS_VECTOR_ORACLE_H

#include "base/rng.h"
#include "solve/vector/vectors.h"
#include "test.h"

#define ORACLE_ITEMS 64

/* An instance with room of its own. */
typedef struct vector_mix {
    uint32_t a[ORACLE_ITEMS], b[ORACLE_ITEMS], weight[ORACLE_ITEMS];
    hbp__vectors vectors;
} vector_mix;

/* `count` items; `kind` varies how large they are and whether the sizes go together. */
static inline void vector_draw(vector_mix *mix, hbp__rng *rng, int64_t count, int kind)
{
    int64_t capacity_a = 4 + hbp__rng_below(rng, kind % 2 ? 20 : 1000);
    int64_t capacity_b = 4 + hbp__rng_below(rng, kind % 3 ? 1000 : 30);
    uint64_t share = 1 + hbp__rng_below(rng, 4);
    for (int64_t i = 0; i < count; i++) {
        mix->a[i] = hbp__rng_below(rng, (uint64_t)capacity_a / share + 1);
        mix->b[i] = 1 + hbp__rng_below(rng, (uint64_t)(capacity_b - 1) / share + 1);
        if (kind % 5 == 4)
            mix->b[i] = 1 + (uint32_t)((int64_t)mix->a[i] * (capacity_b - 1) / capacity_a);
        mix->weight[i] = 1 + hbp__rng_below(rng, 2);
    }
    mix->vectors = (hbp__vectors){count, mix->a, mix->b, NULL, capacity_a, capacity_b, INT64_MAX};
    if (kind % 7 == 6) {
        mix->vectors.max_weight = 2 + hbp__rng_below(rng, 3);
        mix->vectors.weight = kind % 2 ? mix->weight : NULL;
    }
}

static inline int vector_fits(const hbp__vectors *v, const hbp__vector_load *load, int64_t i)
{
    return load->a + v->a[i] <= v->capacity_a && load->b + v->b[i] <= v->capacity_b &&
           load->weight + hbp__vector_weight(v, i) <= v->max_weight;
}

static inline void vector_put(const hbp__vectors *v, hbp__vector_load *load, int64_t i, int64_t times)
{
    load->a += times * v->a[i];
    load->b += times * v->b[i];
    load->weight += times * hbp__vector_weight(v, i);
}

static inline void vector_branch(const hbp__vectors *v, hbp__vector_load *load, int64_t item, int64_t packs,
                                 int64_t *best)
{
    if (packs >= *best)
        return;
    if (item == v->count) {
        *best = packs;
        return;
    }
    for (int64_t p = 0; p <= packs; p++) {
        if (p == packs)
            load[p] = (hbp__vector_load){0, 0, 0};
        if (!vector_fits(v, &load[p], item))
            continue;
        vector_put(v, &load[p], item, 1);
        vector_branch(v, load, item + 1, packs + (p == packs), best);
        vector_put(v, &load[p], item, -1);
    }
}

/* The fewest packs of at most 10 items or so. */
static inline int64_t vector_optimum(const hbp__vectors *v)
{
    hbp__vector_load load[ORACLE_ITEMS + 1];
    int64_t best = v->count + 1;
    vector_branch(v, load, 0, 0, &best);
    return best;
}

/* An item's larger share of a capacity. */
static inline int64_t vector_size(const hbp__vectors *v, int64_t i)
{
    hbp__vector_scale scale = hbp__vector_scale_of(v);
    int64_t a = v->a[i] * scale.a, b = v->b[i] * scale.b;
    return (a > b ? a : b) >> scale.shift;
}

/* Packs of next fit (`is_next`) or first fit, in the order given or from the largest down. */
static inline int64_t vector_fit(const hbp__vectors *v, int is_next, int is_down)
{
    hbp__vector_load load[ORACLE_ITEMS];
    int64_t order[ORACLE_ITEMS], packs = 0;
    for (int64_t i = 0; i < v->count; i++) {
        int64_t k = i;
        for (; is_down && k > 0 && vector_size(v, order[k - 1]) < vector_size(v, i); k--)
            order[k] = order[k - 1];
        order[k] = i;
    }
    for (int64_t k = 0; k < v->count; k++) {
        int64_t p = is_next && packs ? packs - 1 : 0;
        while (p < packs && !vector_fits(v, &load[p], order[k]))
            p++;
        if (p == packs)
            load[packs++] = (hbp__vector_load){0, 0, 0};
        vector_put(v, &load[p], order[k], 1);
    }
    return packs;
}

/* Fails unless every item is in a pack, within the capacities, and no pack is empty. */
static inline void vector_check(const hbp__vectors *v, const hbp__vector_packing *packing)
{
    hbp__vector_load *load = calloc((size_t)packing->packs + 1, sizeof *load);
    for (int64_t i = 0; i < v->count; i++) {
        ck_assert_int_lt(packing->pack_of[i], packing->packs);
        vector_put(v, &load[packing->pack_of[i]], i, 1);
    }
    for (int64_t p = 0; p < packing->packs; p++) {
        ck_assert_int_gt(load[p].weight, 0);
        ck_assert_int_le(load[p].a, v->capacity_a);
        ck_assert_int_le(load[p].b, v->capacity_b);
        ck_assert_int_le(load[p].weight, v->max_weight);
    }
    free(load);
}

#endif

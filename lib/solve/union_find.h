/* Sets of the numbers 0 .. n - 1 that are joined one after another; the least of a set stands for it. Paths
 * are halved at every look (Tarjan and van Leeuwen 1984): near O(1) each. */
#ifndef HBP_SOLVE_UNION_FIND_H
#define HBP_SOLVE_UNION_FIND_H

#include <stdint.h>

/* The number that stands for i's set; parent [n] is i for each i to begin with. */
static inline int32_t hbp__set_of(int32_t *parent, int32_t i)
{
    for (; parent[i] != i; i = parent[i])
        parent[i] = parent[parent[i]];
    return i;
}

/* The same of numbers up to 2^32 - 1. */
static inline uint32_t hbp__set_of_u32(uint32_t *parent, uint32_t i)
{
    for (; parent[i] != i; i = parent[i])
        parent[i] = parent[parent[i]];
    return i;
}

static inline void hbp__join_sets(int32_t *parent, int32_t i, int32_t j)
{
    i = hbp__set_of(parent, i);
    j = hbp__set_of(parent, j);
    if (i < j)
        parent[j] = i;
    else
        parent[i] = j;
}

#endif

/* A row of numbers, and the first of them, from a place on, that is small enough. */
#ifndef HBP_SOLVE_FIT_TREE_H
#define HBP_SOLVE_FIT_TREE_H

#include <stdint.h>

#include "base/context.h"
#include "base/memory.h"

/* The value of an absent entry: never small enough. */
#define HBP__ABSENT UINT32_MAX

typedef struct hbp__fit_tree {
    hbp__memory memory;
    int64_t leaves;  /* a power of two */
    uint32_t *least; /* [2 leaves] a heap: node i covers nodes 2 i and 2 i + 1, entry k is node leaves + k */
} hbp__fit_tree;

/* Room for `count` entries, all absent; 0 when memory is short. Close in any case. O(count). */
int hbp__fit_tree_open(const hbp__memory *memory, int64_t count, hbp__fit_tree *tree);
void hbp__fit_tree_close(hbp__fit_tree *tree);

/* One whose entry i is value[order[i]], i in [0, count). Close in any case. O(count). */
hbp_status hbp__fit_tree_make(hbp_context *context, const uint32_t *value, const uint32_t *order,
                              int64_t count, hbp__fit_tree *tree);

/* Room for `count` entries, those there are kept; 0 when memory is short, the tree then as it was. */
int hbp__fit_tree_grow(hbp__fit_tree *tree, int64_t count);

/* O(log count). */
void hbp__fit_tree_set(hbp__fit_tree *tree, int64_t index, uint32_t value);

/* The first index >= `from` whose value is at most `limit` < HBP__ABSENT, or -1. O(log count). */
int64_t hbp__fit_tree_first(const hbp__fit_tree *tree, int64_t from, uint32_t limit);

static inline uint32_t hbp__fit_tree_get(const hbp__fit_tree *tree, int64_t index)
{
    return tree->least[tree->leaves + index];
}

#endif

/* A heap of minima over a row of numbers: O(log count) to set one and to find the first that is small enough.
 */
#include "solve/fit_tree.h"

#include <string.h>

static int open_unset(const hbp__memory *memory, int64_t count, hbp__fit_tree *tree)
{
    tree->memory = *memory;
    tree->leaves = 1;
    while (tree->leaves < count)
        tree->leaves *= 2;
    tree->least = hbp__new(memory, (uint64_t)tree->leaves, 2 * sizeof *tree->least);
    return tree->least != NULL;
}

int hbp__fit_tree_open(const hbp__memory *memory, int64_t count, hbp__fit_tree *tree)
{
    if (!open_unset(memory, count, tree))
        return 0;
    memset(tree->least, 0xff, (size_t)tree->leaves * 2 * sizeof *tree->least);
    return 1;
}

void hbp__fit_tree_close(hbp__fit_tree *tree)
{
    hbp__delete(&tree->memory, tree->least);
    tree->least = NULL;
}

static uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

hbp_status hbp__fit_tree_make(hbp_context *context, const uint32_t *value, const uint32_t *order,
                              int64_t count, hbp__fit_tree *tree)
{
    if (!open_unset(&context->memory, count, tree))
        return hbp__fail_memory(context, "samples to pack");
    for (int64_t i = 0; i < tree->leaves; i++) {
        HBP__TRY(hbp__tick_row(context, "fill", i, count));
        tree->least[tree->leaves + i] = i < count ? value[order[i]] : HBP__ABSENT;
    }
    for (int64_t node = tree->leaves - 1; node >= 1; node--) {
        HBP__TRY(hbp__tick_row(context, "fill", node, tree->leaves));
        tree->least[node] = smaller(tree->least[2 * node], tree->least[2 * node + 1]);
    }
    return HBP_OK;
}

int hbp__fit_tree_grow(hbp__fit_tree *tree, int64_t count)
{
    if (count <= tree->leaves)
        return 1;
    hbp__fit_tree more;
    if (!hbp__fit_tree_open(&tree->memory, count, &more))
        return 0;
    memcpy(more.least + more.leaves, tree->least + tree->leaves, (size_t)tree->leaves * sizeof *more.least);
    for (int64_t node = more.leaves - 1; node >= 1; node--)
        more.least[node] = smaller(more.least[2 * node], more.least[2 * node + 1]);
    hbp__fit_tree_close(tree);
    *tree = more;
    return 1;
}

void hbp__fit_tree_set(hbp__fit_tree *tree, int64_t index, uint32_t value)
{
    int64_t node = tree->leaves + index;
    tree->least[node] = value;
    for (node /= 2; node >= 1; node /= 2)
        tree->least[node] = smaller(tree->least[2 * node], tree->least[2 * node + 1]);
}

int64_t hbp__fit_tree_first(const hbp__fit_tree *tree, int64_t from, uint32_t limit)
{
    if (from >= tree->leaves)
        return -1;
    int64_t node = tree->leaves + from;
    /* Up, to the right, until a subtree holds one; then down to its first. */
    while (tree->least[node] > limit) {
        while (node & 1)
            node /= 2;
        if (!node)
            return -1;
        node++;
    }
    while (node < tree->leaves)
        node = tree->least[2 * node] <= limit ? 2 * node : 2 * node + 1;
    return node - tree->leaves;
}

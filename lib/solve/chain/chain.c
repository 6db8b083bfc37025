/* A chain's partitions: their values, the list of the best, and the first that keeps to its limits. */
#include "solve/chain/chain.h"

#include <string.h>

#include "base/scratch.h"

int64_t hbp__chain_value(const hbp__chain *chain, const int32_t *cuts, int64_t *most)
{
    int64_t largest = 0, sum = 0;
    for (int32_t p = 0; p < chain->parts; p++) {
        int64_t cost = hbp__chain_cost(chain, p, cuts[p], cuts[p + 1]);
        largest = hbp__max_i64(largest, cost + chain->side[cuts[p]] + chain->side[cuts[p + 1]]);
        sum += cost + chain->toll[cuts[p + 1]];
    }
    if (most)
        *most = largest;
    return chain->weight * largest + sum;
}

int64_t hbp__rounds_value(const hbp__rounds *rounds, const int32_t *cuts, int64_t *load)
{
    const hbp__chain *chain = rounds->chain;
    int64_t sum = 0, most = 0;
    for (int32_t p = 0; p < chain->parts; p++) {
        int64_t cost = hbp__chain_cost(chain, p, cuts[p], cuts[p + 1]), *mine = &load[p % rounds->workers];
        *mine = cost + chain->side[cuts[p]] + chain->side[cuts[p + 1]] + (p < rounds->workers ? 0 : *mine);
        sum += cost + chain->toll[cuts[p + 1]];
    }
    for (int32_t w = 0; w < rounds->workers; w++)
        most = hbp__max_i64(most, load[w]);
    return chain->weight * most + sum;
}

hbp_status hbp__cut_list_open(hbp_context *context, int32_t parts, int32_t room, hbp__cut_list *list)
{
    *list = (hbp__cut_list){.memory = context->memory, .parts = parts, .room = room};
    list->value = hbp__new(&list->memory, (uint64_t)room, sizeof *list->value);
    list->cuts = hbp__new(&list->memory, (uint64_t)room * ((uint64_t)parts + 1), sizeof *list->cuts);
    if (list->value && list->cuts)
        return HBP_OK;
    hbp__cut_list_close(list);
    return hbp__fail_memory(context, "the best partitions");
}

void hbp__cut_list_close(hbp__cut_list *list)
{
    hbp__delete(&list->memory, list->value);
    hbp__delete(&list->memory, list->cuts);
    list->value = NULL;
    list->cuts = NULL;
}

static int compare_cuts(const int32_t *a, const int32_t *b, int32_t parts)
{
    for (int32_t p = 1; p < parts; p++)
        if (a[p] != b[p])
            return a[p] < b[p] ? -1 : 1;
    return 0;
}

void hbp__cut_list_add(hbp__cut_list *list, const int32_t *cuts, int64_t value)
{
    uint64_t row = (uint64_t)list->parts + 1;
    if (value > hbp__cut_list_worst(list))
        return;
    int32_t at = list->count;
    for (; at > 0 && value <= list->value[at - 1]; at--) {
        int order = value < list->value[at - 1]
                        ? -1
                        : compare_cuts(cuts, list->cuts + (uint64_t)(at - 1) * row, list->parts);
        if (order == 0)
            return;
        if (order > 0)
            break;
    }
    if (at == list->room)
        return;
    int32_t kept = list->count < list->room ? list->count++ : list->room - 1;
    uint64_t behind = (uint64_t)(kept - at);
    memmove(list->value + at + 1, list->value + at, behind * sizeof *list->value);
    memmove(list->cuts + (uint64_t)(at + 1) * row, list->cuts + (uint64_t)at * row,
            behind * row * sizeof *list->cuts);
    list->value[at] = value;
    memcpy(list->cuts + (uint64_t)at * row, cuts, row * sizeof *cuts);
}

int32_t hbp__chain_first(hbp_context *context, const hbp__chain *chain, int32_t *cuts)
{
    /* onward[p][b]: the first place from b on that cut p may have for the parts from p on to fit. */
    int32_t none = chain->items + 1;
    int64_t row = (int64_t)chain->items + 2;
    int64_t mark = hbp__scratch_mark(context);
    int32_t *onward = hbp__take(context, (uint64_t)(chain->parts + 1) * (uint64_t)row, sizeof *onward);
    HBP__TRY(hbp__scratch_check(context, "where a chain is cut"));
    for (int32_t b = 0; b < row; b++)
        onward[chain->parts * row + b] = b <= chain->items ? chain->items : none;
    for (int32_t p = chain->parts - 1; p >= 0; p--) {
        int32_t *here = onward + p * row;
        const int32_t *next = here + row;
        here[none] = none;
        for (int32_t b = chain->items; b >= 0; b--)
            here[b] = next[b + 1] <= hbp__chain_reach(chain, p, b) ? b : here[b + 1];
    }
    int32_t fits = onward[0] == 0;
    cuts[0] = 0;
    for (int32_t p = 1; p <= chain->parts && fits; p++)
        cuts[p] = onward[p * row + cuts[p - 1] + 1];
    hbp__scratch_release(context, mark);
    return fits;
}

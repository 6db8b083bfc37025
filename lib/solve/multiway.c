#include "solve/multiway.h"

#include "base/checked.h"
#include "base/scratch.h"
#include "base/sort.h"
#include "solve/multiway_parts.h"

/* Parts that are looked at for one order of the items, however many there are: a part that an item fits is
 * soon found, unless most are full, and then packing finds more. */
enum { LOOKS = 1 << 21, LOOKS_PER_ITEM = 2 };

/* Items in descending order of a key, the earlier of equals first. */
static hbp_status order_down(hbp_context *context, const int64_t *key, int64_t count, uint32_t *order)
{
    int64_t mark = hbp__scratch_mark(context);
    uint64_t *rest = hbp__take(context, (uint64_t)count, sizeof *rest);
    HBP__TRY(hbp__scratch_check(context, "the order of items"));
    for (int64_t i = 0; i < count; i++) {
        rest[i] = (uint64_t)(INT64_MAX - key[i]);
        order[i] = (uint32_t)i;
    }
    HBP__TRY(hbp__order_by_u64(context, rest, order, count, "the order of items"));
    hbp__scratch_release(context, mark);
    return HBP_OK;
}

/* Whether an item fits a part and leaves samples enough for the others' least numbers. */
static int fits(const hbp__parts *parts, uint32_t item, uint32_t part)
{
    const hbp__multiway *p = parts->problem;
    int64_t samples = hbp__multiway_samples(p, item);
    int64_t lack = parts->lack - hbp__min_i64(hbp__parts_lack(parts, part), samples);
    return parts->size[part] + hbp__multiway_size(p, item) <= p->capacity &&
           parts->samples[part] + samples <= p->most_samples && lack <= parts->left - samples;
}

/* The lightest part that an item fits; -1: none, or none within what is left of *looks. What stands below a
 * place of the heap comes after it: below a part that fits, or comes after the best, nothing is looked at. */
static int64_t find_part(const hbp__parts *parts, uint32_t item, int64_t *looks)
{
    int64_t best = -1, stack[128], top = 0; /* two children a level of a path, of at most 64 levels */
    if (parts->open)
        stack[top++] = 0;
    while (top && --*looks >= 0) {
        int64_t at = stack[--top];
        uint32_t part = parts->order[at];
        if (best >= 0 && hbp__parts_is_before(parts, (uint32_t)best, part))
            continue;
        if (fits(parts, item, part)) {
            best = part;
            continue;
        }
        for (int64_t child = 2 * at + 2; child > 2 * at; child--)
            if (child < parts->open)
                stack[top++] = child;
    }
    return *looks >= 0 ? best : -1;
}

/* Each item of `order` into the lightest part that takes it; returns whether all found one. */
static hbp_status assign(hbp__parts *parts, const uint32_t *order, int *all)
{
    const hbp__multiway *p = parts->problem;
    int64_t looks = hbp__add_saturating(LOOKS, hbp__mul_saturating(LOOKS_PER_ITEM, p->items));
    *all = 0;
    hbp__parts_clear(parts);
    for (int64_t i = 0; i < p->items; i++) {
        HBP__TRY(hbp__tick_row(parts->context, "parts", i, p->items));
        int64_t part = find_part(parts, order[i], &looks);
        if (part < 0)
            return HBP_OK;
        hbp__parts_put(parts, order[i], (uint32_t)part);
    }
    *all = parts->lack == 0;
    return HBP_OK;
}

/* The same in descending order of what parts are kept alike in. */
static hbp_status assign_by(hbp__parts *parts, int key, uint32_t *order, int *all)
{
    const hbp__multiway *p = parts->problem;
    hbp_context *context = parts->context;
    int64_t mark = hbp__scratch_mark(context);
    int64_t *samples =
        key == HBP__BY_SAMPLES ? hbp__take(context, (uint64_t)p->items, sizeof *samples) : NULL;
    HBP__TRY(hbp__scratch_check(context, "the order of items"));
    for (int64_t i = 0; samples && i < p->items; i++)
        samples[i] = p->samples[i];
    HBP__TRY(order_down(context,
                        samples               ? samples
                        : key == HBP__BY_SIZE ? p->size
                                              : p->weight,
                        p->items, order));
    hbp__scratch_release(context, mark);
    parts->key = key;
    return assign(parts, order, all);
}

/* By weight; where that leaves an item without a part by size, and by samples. */
static hbp_status make_first(hbp__parts *parts)
{
    const hbp__multiway *p = parts->problem;
    hbp_context *context = parts->context;
    uint32_t *order = hbp__take(context, (uint64_t)p->items, sizeof *order);
    int all;
    HBP__TRY(hbp__scratch_check(context, "the order of items"));
    HBP__TRY(assign_by(parts, HBP__BY_WEIGHT, order, &all));
    if (!all && p->size)
        HBP__TRY(assign_by(parts, HBP__BY_SIZE, order, &all));
    if (!all && p->samples)
        HBP__TRY(assign_by(parts, HBP__BY_SAMPLES, order, &all));
    if (!all)
        return hbp__fail(context, HBP_E_INFEASIBLE,
                         "no %lld parts were found that hold the items under their capacity and numbers of "
                         "samples",
                         (long long)p->parts);
    return hbp__parts_order_by_weight(parts);
}

static hbp_status solve(hbp_context *context, const hbp__multiway *problem, int is_given, uint32_t *part,
                        int64_t *heaviest)
{
    int64_t mark = hbp__scratch_mark(context), bound;
    hbp__parts parts;
    HBP__TRY(hbp__parts_open(context, problem, part, &parts));
    HBP__TRY(is_given ? hbp__parts_load(&parts) : make_first(&parts));
    HBP__TRY(hbp__multiway_bound(context, problem, parts.weight[parts.order[problem->parts - 1]], &bound));
    HBP__TRY(hbp__parts_improve(&parts, bound));
    *heaviest = parts.weight[parts.order[problem->parts - 1]];
    hbp__scratch_release(context, mark);
    return HBP_OK;
}

hbp_status hbp__multiway_solve(hbp_context *context, const hbp__multiway *problem, uint32_t *part,
                               int64_t *heaviest)
{
    return solve(context, problem, 0, part, heaviest);
}

hbp_status hbp__multiway_improve(hbp_context *context, const hbp__multiway *problem, uint32_t *part,
                                 int64_t *heaviest)
{
    return solve(context, problem, 1, part, heaviest);
}

/* The heaviest item and the lightest others that its part has at least. */
static int64_t bound_of_equal(const hbp__multiway *p, const int64_t *down)
{
    int64_t sum = down[0];
    for (int64_t i = 1; i < p->least_samples; i++)
        sum += down[p->items - i];
    return sum;
}

hbp_status hbp__multiway_bound(hbp_context *context, const hbp__multiway *problem, int64_t heaviest,
                               int64_t *bound)
{
    int64_t n = problem->items, k = problem->parts, sum = 0, mark = hbp__scratch_mark(context);
    *bound = 0;
    for (int64_t i = 0; i < n; i++) {
        sum += problem->weight[i];
        *bound = hbp__max_i64(*bound, problem->weight[i]);
    }
    *bound = hbp__max_i64(*bound, hbp__ceil_div(sum, k));
    if (n == 0 || *bound >= heaviest)
        return HBP_OK;
    uint32_t *order = hbp__take(context, (uint64_t)n, sizeof *order);
    int64_t *down = hbp__take(context, (uint64_t)n, sizeof *down);
    HBP__TRY(hbp__scratch_check(context, "the bound of parts"));
    HBP__TRY(order_down(context, problem->weight, n, order));
    for (int64_t i = 0; i < n; i++)
        down[i] = problem->weight[order[i]];
    for (int64_t j = 1; j <= (n - 1) / k; j++) {
        int64_t share = 0;
        for (int64_t i = 0; i <= j && share <= sum; i++)
            share += down[j * k - i];
        *bound = hbp__max_i64(*bound, share);
        HBP__TRY(hbp__tick_row(context, "parts", j, n));
        if (j >= 64) /* the mean is near by then */
            break;
    }
    if (!problem->samples && problem->least_samples > 1 && problem->least_samples <= n)
        *bound = hbp__max_i64(*bound, bound_of_equal(problem, down));
    hbp__scratch_release(context, mark);
    return HBP_OK;
}

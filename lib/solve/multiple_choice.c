/* Greedy and bound; Kellerer, Pferschy and Pisinger, Knapsack Problems (2004), chapter 11. */
#include "solve/multiple_choice.h"

#include <string.h>

#include "base/checked.h"
#include "base/scratch.h"
#include "base/sort.h"

/* The first search's share of the slack, and how much wider each one is than the one before: bench_recompute,
 * layers that all differ. */
#define FIRST_SHARE 4096
#define WIDER       8

#define WHAT "the options of a choice"

/* One step of an item along its convex hull: to less size at more cost. */
typedef struct step {
    int32_t item;
    int32_t to; /* place among the item's options */
} step;

typedef struct greedy {
    hbp_context *context;
    hbp__mc_bench bench;
    int32_t *at; /* [items] place among the item's options */
    int64_t *group_size;
    step *steps;
    double *ratio; /* [steps] cost per size of a step */
    uint32_t *order;
    int64_t count;
    int64_t size; /* of the whole choice */
} greedy;

static hbp_status open_greedy(hbp_context *context, const hbp__multiple_choice *problem, greedy *g)
{
    uint64_t items = (uint64_t)problem->items, options = (uint64_t)problem->first[problem->items];
    *g = (greedy){.context = context, .bench = {.problem = problem}};
    g->bench.option = hbp__take(context, options, sizeof *g->bench.option);
    g->bench.first = hbp__take(context, items + 1, sizeof *g->bench.first);
    g->at = hbp__take(context, items, sizeof *g->at);
    g->group_size = hbp__take_zero(context, (uint64_t)problem->groups, sizeof *g->group_size);
    g->steps = hbp__take(context, options, sizeof *g->steps);
    g->ratio = hbp__take(context, options, sizeof *g->ratio);
    g->order = hbp__take(context, options, sizeof *g->order);
    return hbp__scratch_check(context, WHAT);
}

static int precedes(const hbp__mc_option *a, const hbp__mc_option *b)
{
    if (a->size != b->size)
        return a->size < b->size;
    if (a->cost != b->cost)
        return a->cost < b->cost;
    return a->number < b->number;
}

/* Sorts an item's options and drops those that another beats. */
static void take_options(greedy *g, int32_t item)
{
    const hbp__multiple_choice *p = g->bench.problem;
    hbp__mc_option *option = g->bench.option + g->bench.first[item];
    int32_t count = 0;
    for (int32_t i = p->first[item]; i < p->first[item + 1]; i++) {
        hbp__mc_option new = {p->cost[i], p->size[i], 0, i - p->first[item]};
        int32_t at = count++;
        for (; at > 0 && precedes(&new, &option[at - 1]); at--)
            option[at] = option[at - 1];
        option[at] = new;
    }
    int32_t kept = 1;
    for (int32_t i = 1; i < count; i++)
        if (option[i].cost < option[kept - 1].cost)
            option[kept++] = option[i];
    g->bench.first[item + 1] = g->bench.first[item] + kept;
}

static double slope(const hbp__mc_option *small, const hbp__mc_option *large)
{
    return (double)(small->cost - large->cost) / (double)(large->size - small->size);
}

/* The steps from an item's cheapest option, its largest, along the lower hull to its smallest: ever dearer
 * for what they free. */
static void take_steps(greedy *g, int32_t item)
{
    const hbp__multiple_choice *p = g->bench.problem;
    const hbp__mc_option *option = g->bench.option + g->bench.first[item];
    int32_t last = g->bench.first[item + 1] - g->bench.first[item] - 1;
    double weight = p->weight[p->group[item]];
    int64_t begin = g->count;
    g->at[item] = last;
    if (!(weight > 0)) /* nothing to free */
        return;
    for (int32_t i = last - 1; i >= 0; i--) {
        int32_t from = last;
        for (; g->count > begin; g->count--) {
            const step *top = &g->steps[g->count - 1];
            from = g->count - 1 > begin ? top[-1].to : last;
            if (slope(&option[i], &option[top->to]) > slope(&option[top->to], &option[from])) {
                from = top->to;
                break;
            }
        }
        g->ratio[g->count] = slope(&option[i], &option[from]) / weight;
        g->steps[g->count++] = (step){item, i};
    }
}

static int64_t weigh_group(const hbp__multiple_choice *p, int32_t group, int64_t size)
{
    return hbp__round_i64((double)size * p->weight[group]);
}

static const hbp__mc_option *option_at(const greedy *g, int32_t item, int32_t place)
{
    return &g->bench.option[g->bench.first[item] + place];
}

static int64_t sum_sizes(const greedy *g)
{
    int64_t size = 0;
    for (int32_t group = 0; group < g->bench.problem->groups; group++)
        size = hbp__add_saturating(size, weigh_group(g->bench.problem, group, g->group_size[group]));
    return size;
}

static void move_item(greedy *g, int32_t item, int32_t to)
{
    int64_t *size = &g->group_size[g->bench.problem->group[item]];
    *size += option_at(g, item, to)->size - option_at(g, item, g->at[item])->size;
    g->at[item] = to;
    g->size = sum_sizes(g);
}

static int64_t sum_costs(const greedy *g)
{
    int64_t cost = 0;
    for (int32_t item = 0; item < g->bench.problem->items; item++)
        cost = hbp__add_saturating(cost, option_at(g, item, g->at[item])->cost);
    return cost;
}

/* Steps by ascending ratio until the choice fits; returns the last ratio, the relaxation's multiplier, or a
 * negative number when no step is left. */
static double shrink_choice(greedy *g)
{
    double ratio = 0;
    for (int64_t i = 0; g->size > g->bench.problem->budget; i++) {
        if (i == g->count)
            return -1;
        const step *s = &g->steps[g->order[i]];
        move_item(g, s->item, s->to);
        ratio = g->ratio[g->order[i]];
    }
    return ratio;
}

/* Takes back what the last step freed too much: each item its cheapest option that still fits. */
static void refill_choice(greedy *g)
{
    for (int32_t item = 0; item < g->bench.problem->items; item++) {
        int32_t before = g->at[item];
        for (int32_t to = g->bench.first[item + 1] - g->bench.first[item] - 1; to > before; to--) {
            move_item(g, item, to);
            if (g->size <= g->bench.problem->budget)
                break;
            move_item(g, item, before);
        }
    }
}

/* Reduced costs under `multiplier`; returns Lagrange's bound, sum of least (cost + multiplier * weight *
 * size)
 * - multiplier * budget, lowered by what rounding of groups and of doubles may hide. */
static double price_options(greedy *g, double multiplier)
{
    const hbp__multiple_choice *p = g->bench.problem;
    double bound = 0, budget = (double)p->budget + 0.5 * p->groups;
    for (int32_t item = 0; item < p->items; item++) {
        double rate = multiplier * p->weight[p->group[item]], least = 0;
        int32_t begin = g->bench.first[item], end = g->bench.first[item + 1];
        for (int32_t i = begin; i < end; i++) {
            hbp__mc_option *o = &g->bench.option[i];
            o->reduced = (double)o->cost + rate * (double)o->size;
            if (i == begin || o->reduced < least)
                least = o->reduced;
        }
        for (int32_t i = begin; i < end; i++)
            g->bench.option[i].reduced -= least;
        bound += least;
    }
    double doubt = 1e-9 * (bound + multiplier * budget) + 0.5;
    return bound - multiplier * budget - doubt;
}

static hbp_status sort_steps(greedy *g)
{
    int64_t mark = hbp__scratch_mark(g->context);
    uint64_t *key = hbp__take(g->context, (uint64_t)g->count, sizeof *key);
    HBP__TRY(hbp__scratch_check(g->context, WHAT));
    for (int64_t i = 0; i < g->count; i++) {
        memcpy(&key[i], &g->ratio[i], sizeof *key); /* bits of doubles from 0 up ascend with them */
        g->order[i] = (uint32_t)i;
    }
    if (!hbp__sort_by_u64(&g->context->memory, key, g->order, g->count))
        return hbp__fail_memory(g->context, WHAT);
    hbp__scratch_release(g->context, mark);
    return HBP_OK;
}

/* Searches among choices whose reduced costs sum to a sliver of what a better choice may have, then to ever
 * more: good choices lie near the relaxation, and each that is found narrows what is left to look through. */
static hbp_status widen_search(greedy *g, double bound, int64_t *work, hbp__multiple_choice_answer *answer)
{
    int64_t upper = answer->found ? answer->cost : g->bench.problem->below;
    double all = (double)upper - 1 - bound;
    answer->bound = bound;
    answer->proven = all < 0;
    if (*work <= 0)
        return HBP_OK;
    for (double slack = all / FIRST_SHARE; all >= 0; slack *= WIDER) {
        int64_t cost;
        g->bench.slack = slack < all ? slack : all;
        HBP__TRY(hbp__mc_search(g->context, &g->bench, upper, work, g->at, &cost, &answer->proven));
        if (cost < upper) {
            answer->found = 1;
            answer->cost = upper = cost;
            all = (double)upper - 1 - bound;
        }
        if (!answer->proven || g->bench.slack >= all)
            break;
    }
    return HBP_OK;
}

static hbp_status solve_greedy(greedy *g, int64_t *work, int32_t *chosen, hbp__multiple_choice_answer *answer)
{
    const hbp__multiple_choice *p = g->bench.problem;
    g->bench.first[0] = 0;
    for (int32_t item = 0; item < p->items; item++) {
        take_options(g, item);
        take_steps(g, item);
        g->group_size[p->group[item]] += option_at(g, item, g->at[item])->size;
    }
    g->size = sum_sizes(g);
    *work -= p->items;
    HBP__TRY(sort_steps(g));
    double multiplier = shrink_choice(g);
    *answer = (hbp__multiple_choice_answer){.proven = 1};
    if (multiplier < 0)
        return HBP_OK;
    refill_choice(g);
    answer->cost = sum_costs(g);
    answer->bound = (double)answer->cost;
    answer->found = answer->cost < p->below || p->below == INT64_MAX;
    /* A multiplier of 0: every item has its cheapest option. */
    if (multiplier > 0)
        HBP__TRY(widen_search(g, price_options(g, multiplier), work, answer));
    for (int32_t item = 0; answer->found && item < p->items; item++)
        chosen[item] = option_at(g, item, g->at[item])->number;
    return HBP_OK;
}

hbp_status hbp__multiple_choice_solve(hbp_context *context, const hbp__multiple_choice *problem,
                                      int64_t *work, int32_t *chosen, hbp__multiple_choice_answer *answer)
{
    greedy g;
    int64_t mark = hbp__scratch_mark(context);
    HBP__TRY(open_greedy(context, problem, &g));
    HBP__TRY(solve_greedy(&g, work, chosen, answer));
    hbp__scratch_release(context, mark);
    return HBP_OK;
}

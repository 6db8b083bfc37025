/* Candidate levels of every degree and number of micro-batches, their thresholds, and what is left out. */
#include "pack/groups/level_list.h"

#include <string.h>

#include "base/checked.h"
#include "pack/tuning.h"

typedef struct listing {
    const hbp__estimator *estimator;
    const hbp__level_limits *limits;
    int64_t longest; /* item */
    hbp__level_list *list;
} listing;

static void add_level(const listing *l, const hbp__level *level)
{
    hbp__level_list *list = l->list;
    if (list->levels == HBP__MAX_LEVELS)
        return;
    for (int64_t i = 0; i < list->levels; i++)
        if (list->level[i].sp == level->sp && list->level[i].pack_length == level->pack_length)
            return;
    list->level[list->levels++] = *level;
}

/* Time of a token at a level, its share of what a pack pays once included. */
static double token_ns(const listing *l, const hbp__level *level)
{
    double length = (double)level->pack_length;
    return hbp__cost_ns(l->estimator->cost, level->row, level->recompute, length, 0, 0) / length;
}

/* The length from `shortest` to below that of `full` at which a token takes least: a slightly shorter pack
 * may need less recomputation, so those are the capacities of fewer recomputed layers. */
static hbp__level best_shorter(const listing *l, const hbp__level *full, int64_t shortest)
{
    int64_t multiple = l->limits->pack_multiple;
    hbp__level best = *full, level = *full;
    for (int32_t c = full->recompute - 1; c >= 0; c--) {
        level.recompute = c;
        level.pack_length = hbp__cost_capacity(l->estimator->cost, full->row, c, 0) / multiple * multiple;
        if (level.pack_length >= full->pack_length)
            continue;
        if (level.pack_length >= shortest && token_ns(l, &level) < token_ns(l, &best))
            best = level;
        if (level.pack_length < shortest && c > 1)
            c = 1; /* memory falls with every layer recomputed but the first */
    }
    return best;
}

/* The longest pack from `shortest` to below `length`, which memory or a limit does not allow. */
static int longest_shorter(const listing *l, int32_t sp, int64_t length, int64_t shortest, int64_t m,
                           hbp__level *longest)
{
    const hbp_cost *cost = l->estimator->cost;
    const int32_t row = hbp__cost_row(cost, sp), layers = cost->terms.layers;
    const int64_t multiple = l->limits->pack_multiple;
    int64_t most =
        hbp__max_i64(hbp__cost_capacity(cost, row, layers, 0), hbp__cost_capacity(cost, row, 0, 0));
    most = hbp__min_i64(most, hbp__min_i64(length - 1, l->limits->max_length));
    most = hbp__min_i64(most, hbp__mul_saturating(l->limits->tokens_per_rank, sp)) / multiple * multiple;
    return most >= shortest && hbp__level_allow(cost, l->limits, sp, most, m, longest);
}

/* Packs of `length` tokens, or of the most allowed where that is fewer, m to a step, and shorter ones. Where
 * the items are so alike that every pack holds the same number of them, a pack need be no longer than those
 * are. */
static void add_lengths(const listing *l, int32_t sp, int64_t length, int64_t shortest, int64_t m)
{
    hbp__level full;
    if (!hbp__level_allow(l->estimator->cost, l->limits, sp, length, m, &full) &&
        !longest_shorter(l, sp, length, shortest, m, &full))
        return;
    add_level(l, &full);
    hbp__level shorter = best_shorter(l, &full, shortest);
    add_level(l, &shorter);
    length = full.pack_length;
    int64_t most = length / l->estimator->size[0];
    if (most && l->longest <= length / most) {
        int64_t trimmed = hbp__round_up(most * l->longest, l->limits->pack_multiple);
        if (trimmed >= shortest && trimmed < length &&
            hbp__level_allow(l->estimator->cost, l->limits, sp, trimmed, m, &full))
            add_level(l, &full);
    }
}

/* Packs of the longest item on every degree; `shortest` is the least that a step may carry. */
static void add_longest(const listing *l, int64_t shortest)
{
    const hbp_cost *cost = l->estimator->cost;
    int64_t longest = hbp__round_up(l->longest, l->limits->pack_multiple);
    hbp__level level;
    for (int32_t row = 0; row < cost->terms.degrees; row++)
        if (hbp__level_allow(cost, l->limits, cost->degree[row], longest, 0, &level) &&
            level.packs * level.micro_batches >= hbp__ceil_div(shortest, longest))
            add_level(l, &level);
}

static void list_levels(const listing *l)
{
    const hbp__level_limits *limits = l->limits;
    const hbp_cost *cost = l->estimator->cost;
    add_longest(l, limits->tokens_per_step - hbp__percent(limits->tokens_per_step, limits->step_slack));
    for (int32_t row = 0; row < cost->terms.degrees; row++) {
        int32_t sp = cost->degree[row];
        for (int64_t m = 1; m > 0; m += m < HBP__GROUPS_FEW_BATCHES ? 1 : m / 4) {
            int64_t length = limits->tokens_per_step / (cost->terms.ranks / sp) / m;
            length = length / limits->pack_multiple * limits->pack_multiple;
            if (length < limits->min_length || length < 1)
                break;
            int64_t shortest =
                hbp__max_i64(limits->min_length, length - hbp__percent(length, limits->step_slack));
            add_lengths(l, sp, length, shortest, m);
        }
    }
    int is_covered = 0;
    for (int64_t i = 0; i < l->list->levels; i++)
        is_covered |= l->list->level[i].pack_length >= l->longest;
    if (!is_covered)
        add_longest(l, 0);
}

/* Thresholds are the pack lengths, none past the longest item; ascending, of distinct items. */
static void list_thresholds(const listing *l)
{
    hbp__level_list *list = l->list;
    list->thresholds = 1;
    list->threshold[0] = list->bin[0] = 0;
    for (int64_t i = 0; i < list->levels; i++) {
        int64_t t = hbp__min_i64(list->level[i].pack_length, l->longest);
        int64_t at = list->thresholds, bin = hbp__estimator_bin(l->estimator, t);
        while (list->threshold[at - 1] > t)
            at--;
        if (list->bin[at - 1] == bin)
            continue;
        if (at < list->thresholds && list->bin[at] == bin) {
            list->threshold[at] = t; /* the least that holds them: more packs are long enough */
            continue;
        }
        size_t above = (size_t)(list->thresholds - at);
        memmove(list->threshold + at + 1, list->threshold + at, above * sizeof *list->threshold);
        memmove(list->bin + at + 1, list->bin + at, above * sizeof *list->bin);
        list->threshold[at] = t;
        list->bin[at] = bin;
        list->thresholds++;
    }
}

/* Whether the items in bins [low, high) are a small share of all, by tokens and by squares. */
static int is_small(const hbp__estimator *e, int64_t low, int64_t high)
{
    return (e->padded_before[high] - e->padded_before[low]) * HBP__GROUPS_THRESHOLD_SHARE <
               e->padded_before[e->bins] &&
           (e->squares_before[high] - e->squares_before[low]) * HBP__GROUPS_THRESHOLD_SHARE <
               e->squares_before[e->bins];
}

static void thin_thresholds(const listing *l)
{
    hbp__level_list *list = l->list;
    int64_t kept = 1;
    for (int64_t i = 1; i < list->thresholds; i++) {
        if (i + 1 < list->thresholds && is_small(l->estimator, list->bin[kept - 1], list->bin[i + 1]))
            continue;
        list->threshold[kept] = list->threshold[i];
        list->bin[kept++] = list->bin[i];
    }
    list->thresholds = kept;
}

/* Time of a token at a level whose packs hold what they can: items alike may leave a part free. */
static double filled_token_ns(const listing *l, const hbp__level *level)
{
    int64_t most = level->pack_length / l->estimator->size[0];
    hbp__level filled = *level;
    if (most && l->longest <= level->pack_length / most)
        filled.pack_length = most * l->longest;
    return token_ns(l, &filled);
}

static void thin_levels(const listing *l)
{
    hbp__level_list *list = l->list;
    const hbp__estimator *e = l->estimator;
    double ns[HBP__MAX_LEVELS];
    int64_t kept = 0;
    char is_beaten[HBP__MAX_LEVELS];
    for (int64_t i = 0; i < list->levels; i++)
        ns[i] = filled_token_ns(l, &list->level[i]);
    for (int64_t i = 0; i < list->levels; i++) {
        const hbp__level *level = &list->level[i];
        is_beaten[i] = 0;
        if (e->padded_before[e->bins] / level->packs / level->pack_length < HBP__GROUPS_MANY_BATCHES)
            continue;
        for (int64_t k = 0; k < list->levels; k++)
            is_beaten[i] |= list->level[k].sp == level->sp &&
                            list->level[k].pack_length > level->pack_length && ns[k] <= ns[i];
    }
    for (int64_t i = 0; i < list->levels; i++)
        if (!is_beaten[i])
            list->level[kept++] = list->level[i];
    list->levels = kept;
}

void hbp__level_list_make(const hbp__estimator *estimator, const hbp__level_limits *limits,
                          hbp__level_list *list)
{
    listing l = {estimator, limits, estimator->size[estimator->bins - 1], list};
    list->levels = 0;
    list_levels(&l);
    list_thresholds(&l);
    thin_thresholds(&l);
    thin_levels(&l);
}

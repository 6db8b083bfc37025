/* The default choice of groups: a shortest path over thresholds of the histogram.
 *
 * Input: the histogram of items; candidate levels and thresholds (level_list.h). Output: hierarchies, best
 * first.
 *
 * A level's packs take the items between its threshold and the one below, and are filled up with shorter ones
 * (hierarchy.c). What they leave of those takes that share of the time that all of them would take, so the
 * best time G_k(t) of the items up to threshold t in k levels is
 *
 *     G_k(t) = min over thresholds s < t and levels l of  ns(l, s, t) + left(l, s, t) G_{k-1}(s)
 *
 * by dynamic programming over C thresholds and L levels in O(C^2 L k), each ns in O(1). A plan has each level
 * once: l follows the best path that has not had it. Of the last threshold the best path for every
 * level and k is kept, so that hierarchies of unlike longest levels can be tried. Oracle: every choice of
 * levels (tests/pack/test_groups_optimal.c). */
#include <string.h>

#include "base/scratch.h"
#include "pack/groups/level_list.h"
#include "pack/tuning.h"

typedef struct level_set {
    uint64_t word[HBP__MAX_LEVELS / 64];
} level_set;

typedef struct edge {
    double ns;
    level_set levels; /* of the path that it ends */
    int16_t from;     /* threshold, -1: no path */
    int16_t rank;     /* of the path there */
    int16_t level;
} edge;

/* Paths of k edges to a threshold, best first: after the best those that lack a level that all the better
 * ones have, so that for any level the best path without it is there. */
typedef struct ends {
    edge end[HBP__GROUPS_PATHS];
    int count;
    int is_full; /* no level is in all of them: a worse one adds nothing */
} ends;

typedef struct path_search {
    const hbp__estimator *estimator;
    hbp__level_list list;
    ends best[HBP_MAX_GROUPS + 1][HBP__MAX_LEVELS + 1];
    edge last[HBP_MAX_GROUPS + 1][HBP__MAX_LEVELS]; /* to the last threshold, by its level */
} path_search;

static int has_level(const level_set *set, int64_t level)
{
    return set->word[level / 64] >> (level % 64) & 1;
}

/* Puts a path among the best. O(HBP__GROUPS_PATHS). */
static void improve(ends *best, const edge *e)
{
    const ends old = *best;
    level_set common;
    int is_in = 0;
    memset(&common, 0xff, sizeof common);
    best->count = best->is_full = 0;
    for (int i = 0; i + is_in <= old.count && best->count < HBP__GROUPS_PATHS && !best->is_full;) {
        int is_next = !is_in && (i == old.count || e->ns < old.end[i].ns);
        const edge *next = is_next ? e : &old.end[i];
        uint64_t lacks = 0, left = 0;
        for (int w = 0; w < HBP__MAX_LEVELS / 64; w++) {
            lacks |= common.word[w] & ~next->levels.word[w];
            common.word[w] &= next->levels.word[w];
            left |= common.word[w];
        }
        if (lacks)
            best->end[best->count++] = *next;
        best->is_full = !left;
        is_in |= is_next;
        i += !is_next;
    }
}

/* The level from threshold `i` to `j`, after each path of k - 1 edges to `i` that has not had it. */
static void extend(path_search *search, int32_t k, int64_t i, int64_t j, int64_t level, double ns,
                   double left)
{
    const ends *before = &search->best[k - 1][i];
    ends *best = &search->best[k][j];
    edge *last = j == search->list.thresholds - 1 ? &search->last[k][level] : NULL;
    for (int rank = 0; rank < before->count; rank++) {
        const edge *rest = &before->end[rank];
        double total = ns + left * rest->ns;
        int is_good = !best->is_full || total < best->end[best->count - 1].ns;
        int is_last = last && (last->from < 0 || total < last->ns);
        if (!is_good && !is_last)
            return; /* nor are those after worse ones */
        if (has_level(&rest->levels, level))
            continue;
        edge e = {total, rest->levels, (int16_t)i, (int16_t)rank, (int16_t)level};
        e.levels.word[level / 64] |= UINT64_C(1) << (level % 64);
        if (is_good)
            improve(best, &e);
        if (is_last)
            *last = e;
    }
}

static void find_paths(path_search *search, int32_t max_groups)
{
    int64_t last = search->list.thresholds - 1;
    for (int32_t k = 0; k <= max_groups; k++) {
        for (int64_t j = 0; j <= last; j++)
            search->best[k][j].count = search->best[k][j].is_full = 0;
        for (int64_t l = 0; l < search->list.levels; l++)
            search->last[k][l].from = -1;
    }
    search->best[0][0] = (ends){.count = 1};
    for (int64_t j = 1; j <= last; j++)
        for (int64_t i = 0; i < j; i++)
            for (int64_t l = 0; l < search->list.levels; l++) {
                if (search->list.level[l].pack_length < search->list.threshold[j])
                    continue;
                double left, ns = hbp__level_ns(search->estimator, &search->list.level[l],
                                                search->list.bin[i], search->list.bin[j], &left);
                if (i > 0 && left <= 0)
                    continue; /* the shorter levels would have nothing to hold */
                for (int32_t k = 1; k <= max_groups; k++)
                    extend(search, k, i, j, l, ns, left);
            }
}

/* The path of k edges whose last one is `end`. */
static void read_path(const path_search *search, int32_t k, const edge *end, hbp__hierarchy *out)
{
    int64_t j = search->list.thresholds - 1;
    out->count = k;
    for (const edge *e = end; k > 0; k--) {
        out->level[k - 1] = search->list.level[e->level];
        out->level[k - 1].threshold = search->list.threshold[j];
        j = e->from;
        e = &search->best[k - 1][j].end[e->rank];
    }
}

/* Keeps the list best first, ties in the order they come; at most `room`. */
static void insert(hbp__hierarchy *list, int64_t *count, int64_t room, const hbp__hierarchy *one)
{
    for (int64_t i = 0; i < *count; i++)
        if (hbp__hierarchy_equals(&list[i], one))
            return;
    int64_t at = *count;
    while (at > 0 && list[at - 1].epoch_ns > one->epoch_ns)
        at--;
    if (at == room)
        return;
    *count = hbp__min_i64(*count, room - 1);
    memmove(list + at + 1, list + at, (size_t)(*count - at) * sizeof *list);
    list[at] = *one;
    ++*count;
}

hbp_status hbp__groups_optimal(hbp_context *context, const hbp__estimator *estimator,
                               const hbp__level_limits *limits, int32_t max_groups, hbp__hierarchy *out,
                               int64_t *count)
{
    int64_t room = *count;
    *count = 0;
    int64_t mark = hbp__scratch_mark(context);
    path_search *search = hbp__take(context, 1, sizeof *search);
    HBP__TRY(hbp__scratch_check(context, "the choice of groups"));
    search->estimator = estimator;
    hbp__level_list_make(estimator, limits, &search->list);
    int64_t last = search->list.thresholds - 1;
    if (search->list.bin[last] == estimator->bins) {
        find_paths(search, max_groups);
        for (int32_t k = 1; k <= max_groups; k++)
            for (int64_t l = 0; l < search->list.levels; l++) {
                hbp__hierarchy one;
                if (search->last[k][l].from < 0)
                    continue;
                read_path(search, k, &search->last[k][l], &one);
                hbp__hierarchy_estimate(estimator, &one);
                insert(out, count, room, &one);
            }
    }
    hbp__scratch_release(context, mark);
    return HBP_OK;
}

/* The default choice of groups: a shortest path over thresholds of the histogram.
 *
 * Input: the histogram; candidate levels, for each legal degree d and number m of micro-batches in a step:
 * the pack length that carries exactly tokens_per_step in m micro-batches, tokens_per_step d / (ranks m),
 * with the fewest recomputed layers that fit, and the somewhat shorter one, within the step's slack, at which
 * a token takes least. Output: for each number of groups k the hierarchy with the least estimated time. The
 * estimate of a group depends only on the samples between its two thresholds (hierarchy.c), so an epoch is a
 * path 0 = t_0 < t_1 < ... < t_k = longest, and the best path of at most k edges is found by dynamic
 * programming over C thresholds and C levels in O(k C^2 + C^3). Oracle: every subset of levels
 * (tests/pack/test_groups.c). */
#include <string.h>

#include "pack/hierarchy.h"

#define MAX_LEVELS        256
#define MAX_MICRO_BATCHES 32

typedef struct path_search {
    hbp__level levels[MAX_LEVELS];
    int64_t level_count;
    int64_t threshold[MAX_LEVELS + 1];
    int64_t bin[MAX_LEVELS + 1]; /* bins below the threshold */
    int64_t thresholds;          /* threshold[0] = 0, the last is the longest item */
    double best[HBP__MAX_GROUPS + 1][MAX_LEVELS + 1];
    int16_t from[HBP__MAX_GROUPS + 1][MAX_LEVELS + 1];
    int16_t edge[MAX_LEVELS + 1][MAX_LEVELS + 1]; /* best level from threshold i to j, -1: none */
    double edge_ns[MAX_LEVELS + 1][MAX_LEVELS + 1];
} path_search;

static void add_level(path_search *search, const hbp__level *level)
{
    if (search->level_count == MAX_LEVELS)
        return;
    for (int64_t i = 0; i < search->level_count; i++)
        if (search->levels[i].sp == level->sp && search->levels[i].pack_length == level->pack_length)
            return;
    search->levels[search->level_count++] = *level;
}

/* Time of a token at a level, its share of what a pack pays once included. */
static double token_ns(const hbp__estimator *estimator, const hbp__level *level)
{
    double length = (double)level->pack_length;
    return hbp__cost_ns(estimator->cost, level->row, level->recompute, length, 0) / length;
}

/* Packs of `length` tokens, m to a step; and, since a slightly shorter pack may need less recomputation, the
 * length down to `shortest` at which a token takes least. Those are the capacities of fewer recomputed
 * layers. */
static void add_lengths(path_search *search, const hbp__estimator *estimator, int32_t sp, int64_t length,
                        int64_t shortest, int64_t m)
{
    hbp__level full, level, best;
    if (!hbp__level_make(estimator->cost, estimator->tokens_per_step, sp, length, m, &full))
        return;
    add_level(search, &full);
    best = full;
    for (int32_t c = full.recompute - 1; c >= 0; c--) {
        int64_t capacity = hbp_cost_predict_capacity(estimator->cost, sp, c);
        level = full;
        level.recompute = c;
        level.pack_length = capacity / estimator->pack_multiple * estimator->pack_multiple;
        if (level.pack_length >= shortest && level.pack_length < length &&
            token_ns(estimator, &level) < token_ns(estimator, &best))
            best = level;
    }
    add_level(search, &best);
}

static void list_levels(path_search *search, const hbp__estimator *estimator, int64_t min_length,
                        int64_t max_length)
{
    const hbp_cost_terms *terms = &estimator->cost->terms;
    int64_t multiple = estimator->pack_multiple;
    for (int32_t row = 0; row < terms->degrees; row++) {
        int32_t sp = estimator->cost->degree[row];
        add_lengths(search, estimator, sp, max_length, max_length, 0);
        for (int64_t m = 1; m <= MAX_MICRO_BATCHES; m++) {
            int64_t length = estimator->tokens_per_step / (terms->ranks / sp) / m / multiple * multiple;
            if (length < min_length)
                break;
            int64_t shortest = hbp__max_i64(min_length, length - length / 100 * estimator->step_slack);
            if (length <= max_length)
                add_lengths(search, estimator, sp, length, shortest, m);
        }
    }
}

/* Thresholds are the pack lengths, none past the longest item; ascending, distinct. */
static void list_thresholds(path_search *search, const hbp__estimator *estimator, int64_t longest)
{
    search->thresholds = 1;
    search->threshold[0] = 0;
    for (int64_t i = 0; i < search->level_count; i++) {
        int64_t t = hbp__min_i64(search->levels[i].pack_length, longest);
        int64_t at = search->thresholds;
        while (search->threshold[at - 1] > t)
            at--;
        if (search->threshold[at - 1] == t)
            continue;
        memmove(search->threshold + at + 1, search->threshold + at,
                (size_t)(search->thresholds - at) * sizeof *search->threshold);
        search->threshold[at] = t;
        search->thresholds++;
    }
    for (int64_t i = 0; i < search->thresholds; i++)
        search->bin[i] = hbp__estimator_bin(estimator, search->threshold[i]);
}

static void weigh_edges(path_search *search, const hbp__estimator *estimator)
{
    for (int64_t i = 0; i < search->thresholds; i++)
        for (int64_t j = i + 1; j < search->thresholds; j++) {
            search->edge[i][j] = -1;
            for (int64_t l = 0; l < search->level_count; l++) {
                if (search->levels[l].pack_length < search->threshold[j])
                    continue;
                double ns = hbp__level_ns(estimator, &search->levels[l], search->bin[i], search->bin[j]);
                if (search->edge[i][j] < 0 || ns < search->edge_ns[i][j]) {
                    search->edge[i][j] = (int16_t)l;
                    search->edge_ns[i][j] = ns;
                }
            }
        }
}

static void find_paths(path_search *search, int32_t max_groups)
{
    for (int64_t j = 0; j < search->thresholds; j++)
        search->from[0][j] = -1;
    search->best[0][0] = 0;
    for (int32_t k = 1; k <= max_groups; k++)
        for (int64_t j = 0; j < search->thresholds; j++) {
            search->from[k][j] = -1;
            for (int64_t i = 0; i < j; i++) {
                if ((k == 1 ? i != 0 : search->from[k - 1][i] < 0) || search->edge[i][j] < 0)
                    continue;
                double ns = search->best[k - 1][i] + search->edge_ns[i][j];
                if (search->from[k][j] < 0 || ns < search->best[k][j]) {
                    search->from[k][j] = (int16_t)i;
                    search->best[k][j] = ns;
                }
            }
        }
}

/* The best hierarchy of exactly k groups; groups without samples (an edge of no tokens) are left out. */
static void read_path(const path_search *search, int32_t k, hbp__hierarchy *out)
{
    int64_t at[HBP__MAX_GROUPS + 1];
    int64_t j = search->thresholds - 1;
    for (int32_t n = k; n > 0; n--) {
        at[n] = j;
        j = search->from[n][j];
    }
    at[0] = 0;
    out->count = 0;
    for (int32_t n = 1; n <= k; n++) {
        if (search->bin[at[n]] == search->bin[at[n - 1]])
            continue;
        hbp__level level = search->levels[search->edge[at[n - 1]][at[n]]];
        level.threshold = search->threshold[at[n]];
        hbp__level *last = out->count ? &out->level[out->count - 1] : NULL;
        if (last && last->sp == level.sp && last->pack_length == level.pack_length)
            last->threshold = level.threshold; /* an edge cut in two */
        else
            out->level[out->count++] = level;
    }
}

hbp_status hbp__groups_optimal(hbp_context *context, const hbp__estimator *estimator, int64_t min_length,
                               int64_t max_length, int32_t max_groups, hbp__hierarchy *out, int64_t *count)
{
    path_search *search = hbp__new(&context->memory, 1, sizeof *search);
    if (!search)
        return hbp__fail_memory(context, "the choice of groups");
    search->level_count = 0;
    list_levels(search, estimator, min_length, max_length);
    list_thresholds(search, estimator, estimator->longest);
    if (search->threshold[search->thresholds - 1] < estimator->longest) {
        *count = 0; /* no level holds the longest item */
        hbp__delete(&context->memory, search);
        return HBP_OK;
    }
    weigh_edges(search, estimator);
    find_paths(search, max_groups);
    int64_t room = *count, last = search->thresholds - 1;
    *count = 0;
    for (int32_t k = 1; k <= max_groups && *count < room; k++) {
        if (last < 1 || search->from[k][last] < 0)
            continue;
        read_path(search, k, &out[*count]);
        hbp__hierarchy_estimate(estimator, &out[*count]);
        ++*count;
    }
    hbp__delete(&context->memory, search);
    return HBP_OK;
}

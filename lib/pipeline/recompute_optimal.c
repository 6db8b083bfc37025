/* The least time that fits (docs: recompute). What a layer needs while it is recomputed counts once, the most
 * of all layers: the search fixes that most, W, and solves for every W a multiple-choice knapsack problem of
 * the choices that need no more, within what W leaves. */
#include "base/checked.h"
#include "base/scratch.h"
#include "base/sort.h"
#include "pipeline/recompute.h"
#include "pipeline/tuning.h"
#include "solve/multiple_choice.h"

typedef struct search {
    const hbp__recompute_stage *stage;
    /* Options of all layers of the stage, by layer. */
    int32_t *first; /* [count + 1] */
    int32_t *choice;
    int64_t *size;
    int64_t *cost;
    int64_t *working;
    uint32_t *order; /* options by working bytes */
    /* Those of one knapsack problem. */
    int32_t *few_first;
    int32_t *few;
    int64_t *few_size;
    int64_t *few_cost;
    int64_t *least;      /* [count] smallest size of a layer's options within W; -1: none */
    int64_t *least_size; /* [groups] */
    int32_t *chosen;     /* [count] options of the last answer */
    int32_t *best;       /* [count] HBP_RECOMPUTE_* of the best one */
    /* Every W that fits: W, the greedy choice's time, and a bound. */
    int64_t *level;
    int64_t *level_ns;
    double *level_bound;
    uint32_t *level_order;
    int64_t levels;
} search;

static hbp_status take_search(hbp_context *context, const hbp__recompute_stage *stage, search *s)
{
    *s = (search){.stage = stage};
    uint64_t count = (uint64_t)stage->count, options = count * HBP_RECOMPUTE_CHOICES;
    s->first = hbp__take(context, count + 1, sizeof *s->first);
    s->choice = hbp__take(context, options, sizeof *s->choice);
    s->size = hbp__take(context, options, sizeof *s->size);
    s->cost = hbp__take(context, options, sizeof *s->cost);
    s->working = hbp__take(context, options, sizeof *s->working);
    s->order = hbp__take(context, options, sizeof *s->order);
    s->few_first = hbp__take(context, count + 1, sizeof *s->few_first);
    s->few = hbp__take(context, options, sizeof *s->few);
    s->few_size = hbp__take(context, options, sizeof *s->few_size);
    s->few_cost = hbp__take(context, options, sizeof *s->few_cost);
    s->least = hbp__take(context, count, sizeof *s->least);
    s->least_size = hbp__take_zero(context, (uint64_t)stage->groups, sizeof *s->least_size);
    s->chosen = hbp__take(context, count, sizeof *s->chosen);
    s->best = hbp__take(context, count, sizeof *s->best);
    s->level = hbp__take(context, options, sizeof *s->level);
    s->level_ns = hbp__take(context, options, sizeof *s->level_ns);
    s->level_bound = hbp__take(context, options, sizeof *s->level_bound);
    s->level_order = hbp__take(context, options, sizeof *s->level_order);
    return hbp__scratch_check(context, "a stage's choices");
}

static int may_choose(const hbp_layers *layers, int32_t layer, int32_t choice, int32_t selective)
{
    switch (choice) {
    case HBP_RECOMPUTE_ATTENTION:
        return (selective & HBP_SELECT_ATTENTION) && layers->attention_bytes[layer] > 0;
    case HBP_RECOMPUTE_MLP:
        return (selective & HBP_SELECT_MLP) && layers->mlp_bytes[layer] > 0;
    case HBP_RECOMPUTE_LAYER:
        return hbp__recompute_frees(layers, layer);
    default:
        return 1;
    }
}

static void list_options(search *s, int32_t selective)
{
    const hbp__recompute_stage *stage = s->stage;
    int32_t count = 0;
    for (int32_t i = 0; i < stage->count; i++) {
        s->first[i] = count;
        for (int32_t choice = 0; choice < HBP_RECOMPUTE_CHOICES; choice++) {
            if (!may_choose(stage->layers, stage->layer[i], choice, selective))
                continue;
            s->choice[count] = choice;
            s->size[count] = hbp__recompute_size(stage, i, choice);
            s->cost[count] = hbp__recompute_ns(stage, i, choice);
            s->working[count] = hbp__recompute_working(stage, i, choice);
            s->order[count] = (uint32_t)count;
            count++;
        }
    }
    s->first[stage->count] = count;
}

/* Takes one more option into the least that is needed. */
static void lower_least(search *s, int32_t layer, int64_t size)
{
    if (s->least[layer] >= 0 && s->least[layer] <= size)
        return;
    int64_t before = s->least[layer] >= 0 ? s->least[layer] : 0;
    s->least_size[s->stage->group[layer]] += size - before;
    s->least[layer] = size;
}

static int64_t least_need(const search *s, int64_t working)
{
    int64_t need = hbp__add_saturating(s->stage->base, working);
    for (int32_t g = 0; g < s->stage->groups; g++)
        need = hbp__add_saturating(need, hbp__round_i64((double)s->least_size[g] * s->stage->weight[g]));
    return need;
}

/* The knapsack problem of the options that need no more than `working` bytes in recomputation. */
static hbp__multiple_choice problem_within(search *s, int64_t working, int64_t below)
{
    const hbp__recompute_stage *stage = s->stage;
    int32_t count = 0;
    for (int32_t i = 0; i < stage->count; i++) {
        s->few_first[i] = count;
        for (int32_t o = s->first[i]; o < s->first[i + 1]; o++) {
            if (s->working[o] > working)
                continue;
            s->few[count] = s->choice[o];
            s->few_size[count] = s->size[o];
            s->few_cost[count++] = s->cost[o];
        }
    }
    s->few_first[stage->count] = count;
    return (hbp__multiple_choice){
        .items = stage->count,
        .groups = stage->groups,
        .group = stage->group,
        .weight = stage->weight,
        .first = s->few_first,
        .cost = s->few_cost,
        .size = s->few_size,
        .budget = stage->limit == INT64_MAX ? INT64_MAX : stage->limit - stage->base - working,
        .below = below,
    };
}

/* Takes one more option into account: the layer that has it, options lying by layer, by bisection. */
static void admit_option(search *s, int32_t option)
{
    int32_t low = 0, high = s->stage->count - 1;
    while (low < high) {
        int32_t middle = low + (high - low + 1) / 2;
        if (s->first[middle] <= option)
            low = middle;
        else
            high = middle - 1;
    }
    lower_least(s, low, s->size[option]);
}

/* Lists every W within which the least need fits; *need is the least of all. */
static void list_levels(search *s, int64_t *need)
{
    const hbp__recompute_stage *stage = s->stage;
    int32_t options = s->first[stage->count];
    *need = INT64_MAX;
    for (int32_t i = 0; i < stage->count; i++)
        s->least[i] = -1;
    for (int32_t at = 0; at < options;) {
        int64_t working = s->working[s->order[at]];
        for (; at < options && s->working[s->order[at]] == working; at++)
            admit_option(s, (int32_t)s->order[at]);
        int64_t least = least_need(s, working);
        *need = hbp__min_i64(*need, least);
        if (least <= stage->limit)
            s->level[s->levels++] = working;
    }
}

/* Greedy choices, as many as a part of the work allows, evenly spread; those left out follow as unknown. */
static hbp_status rank_levels(hbp_context *context, search *s, int64_t *work, int *proven)
{
    int64_t steps = hbp__mul_saturating(s->levels, s->stage->count);
    int64_t stride = 1 + steps / hbp__max_i64(*work / HBP__RECOMPUTE_GREEDY_SHARE, s->stage->count), kept = 0;
    *proven = stride == 1;
    for (int64_t i = 0; i < s->levels; i += stride) {
        HBP__TRY(hbp__tick(context, "recompute", i, s->levels));
        hbp__multiple_choice problem = problem_within(s, s->level[i], INT64_MAX);
        hbp__multiple_choice_answer answer;
        int64_t none = 0;
        HBP__TRY(hbp__multiple_choice_solve(context, &problem, &none, s->chosen, &answer));
        *work += none;
        s->level[kept] = s->level[i];
        s->level_ns[kept] = answer.cost;
        s->level_bound[kept] = answer.bound;
        s->level_order[kept] = (uint32_t)kept;
        kept++;
    }
    s->levels = kept;
    if (!hbp__sort_by_i64(&context->memory, s->level_ns, s->level_order, kept))
        return hbp__fail_memory(context, "a stage's choices");
    return HBP_OK;
}

/* Solves for one W; a better choice becomes the best. */
static hbp_status try_level(hbp_context *context, search *s, int64_t working, int64_t *work, int64_t *cost,
                            int *proven)
{
    hbp__multiple_choice problem = problem_within(s, working, *cost);
    hbp__multiple_choice_answer answer;
    HBP__TRY(hbp__multiple_choice_solve(context, &problem, work, s->chosen, &answer));
    *proven &= answer.proven;
    if (!answer.found)
        return HBP_OK;
    *cost = answer.cost;
    for (int32_t i = 0; i < s->stage->count; i++)
        s->best[i] = s->few[s->few_first[i] + s->chosen[i]];
    return HBP_OK;
}

/* The most promising W first; the bound skips what cannot be better. */
static hbp_status try_levels(hbp_context *context, search *s, int64_t *work, int *proven)
{
    int64_t cost = INT64_MAX;
    HBP__TRY(rank_levels(context, s, work, proven));
    for (int64_t i = 0; i < s->levels; i++) {
        uint32_t at = s->level_order[i];
        if (i && s->level_bound[at] > (double)cost - 1)
            continue;
        HBP__TRY(hbp__tick(context, "recompute", i, s->levels));
        HBP__TRY(try_level(context, s, s->level[at], work, &cost, proven));
    }
    return HBP_OK;
}

static int are_alike(const search *s, int32_t a, int32_t b)
{
    int32_t options = s->first[a + 1] - s->first[a];
    if (s->stage->group[a] != s->stage->group[b] || s->first[b + 1] - s->first[b] != options)
        return 0;
    for (int32_t o = 0; o < options; o++) {
        int32_t x = s->first[a] + o, y = s->first[b] + o;
        if (s->choice[x] != s->choice[y] || s->size[x] != s->size[y] || s->cost[x] != s->cost[y] ||
            s->working[x] != s->working[y])
            return 0;
    }
    return 1;
}

/* Of layers alike and next to each other, the first keep least: their activations would wait longest for the
 * backward pass. */
static void settle_alike(const search *s, int32_t *choices)
{
    const hbp__recompute_stage *stage = s->stage;
    for (int32_t begin = 0, end; begin < stage->count; begin = end) {
        int32_t count[HBP_RECOMPUTE_CHOICES] = {0};
        for (end = begin; end < stage->count && are_alike(s, begin, end); end++)
            count[s->best[end]]++;
        for (int32_t i = begin; i < end; i++) {
            int32_t least = -1;
            for (int32_t choice = HBP_RECOMPUTE_CHOICES - 1; choice >= 0; choice--)
                if (count[choice] && (least < 0 || hbp__recompute_size(stage, begin, choice) <
                                                       hbp__recompute_size(stage, begin, least)))
                    least = choice;
            count[least]--;
            choices[stage->layer[i]] = least;
        }
    }
}

hbp_status hbp__recompute_optimal(hbp_context *context, const hbp__recompute_stage *stage, int32_t selective,
                                  int64_t *work, int32_t *choices, int *proven)
{
    search s;
    int64_t mark = hbp__scratch_mark(context), need = 0;
    HBP__TRY(take_search(context, stage, &s));
    list_options(&s, selective);
    if (!hbp__sort_by_i64(&context->memory, s.working, s.order, s.first[stage->count]))
        return hbp__fail_memory(context, "a stage's choices");
    list_levels(&s, &need);
    if (!s.levels)
        return hbp__recompute_short(stage, need, "as much recomputed as helps");
    HBP__TRY(try_levels(context, &s, work, proven));
    settle_alike(&s, choices);
    hbp__scratch_release(context, mark);
    return HBP_OK;
}

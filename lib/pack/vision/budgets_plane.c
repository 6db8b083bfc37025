/* Input: a data set, the number of samples that a pack shall hold. Output: the pair of budgets of least
 * score, padding and unevenness and the unused shares of both budgets, as the default fill's packs measure
 * it.
 *
 * Packs of so many samples hold so many vision units and tokens: only vision budgets near their mean are
 * worth a look, and for each the token budgets a little above the mean of the tokens that the packs hold.
 *   1. every such vision budget (or some, evenly spaced) with a few token budgets, filled with some samples;
 *   2. around the best pairs, the token budget in halving steps, and where vision budgets were left out, the
 *      vision budget;
 *   3. the best few, each of another vision budget, filled with all samples.
 * O(pairs) fills of at most HBP__BUDGETS_PART samples and HBP__BUDGETS_FINALISTS of all. */
#include "pack/vision/budgets.h"

#include <string.h>

#include "base/checked.h"
#include "base/scratch.h"
#include "data/packs/items.h"
#include "data/packs/packs.h"
#include "pack/tuning.h"
#include "pack/vision/dist_ratio.h"
#include "pack/vision/vector_fill.h"
#include "solve/vector/vectors.h"

enum {
    MOST_PAIRS = 512,
    HOPELESS = 8 /* score of a pair under which packs hold too few samples or too many; others are below 4 */
};

/* Token budgets of the first round: the mean and so many 512th of it. */
static const int64_t above_mean[] = {2, 5, 10, 20, 40, 80};

typedef struct pair {
    int64_t vision, tokens;
    double score;
    double held; /* samples a pack */
} pair;

typedef struct plane {
    hbp_context *context;
    const hbp_lengths *lengths;
    const hbp_budgets_options *options;
    int64_t least_vision, most_vision; /* budgets between these */
    int64_t least_tokens, most_tokens;
    uint32_t *vision, *tokens, *pack_of; /* [part] */
    int64_t *load;                       /* [2 part] of packs */
    int64_t part, part_samples;          /* items, and the samples in them */
    pair pair[MOST_PAIRS];
    int64_t pairs;
} plane;

/* Whether packs hold the number of samples asked for on average. */
static int holds_enough(const plane *p, int64_t samples, int64_t packs)
{
    return samples >= packs * p->options->samples &&
           (double)samples <= (double)packs * p->options->most_samples;
}

/* What packs of these loads come to. */
static void judge_packs(const plane *p, const int64_t *vision, const int64_t *tokens, int64_t packs,
                        hbp_budgets *b)
{
    double sum_vision = 0, sum_tokens = 0, count = (double)packs;
    for (int64_t k = 0; k < packs; k++) {
        sum_vision += (double)vision[k];
        sum_tokens += (double)tokens[k];
    }
    b->packs = packs;
    b->padding = 0;
    b->dist_vision = hbp__dist_ratio(vision, packs, p->options->ranks);
    b->dist_tokens = hbp__dist_ratio(tokens, packs, p->options->ranks);
    b->unused_vision = 1 - sum_vision / (count * (double)b->max_vision);
    b->unused_tokens = 1 - sum_tokens / (count * (double)b->max_tokens);
    b->score = b->dist_vision + b->dist_tokens + b->unused_vision + b->unused_tokens;
}

static int64_t vision_of(const plane *p, const hbp__items *items, int64_t i)
{
    int64_t vision = 0;
    for (uint32_t s = items->sample[i]; s != HBP__NO_SAMPLE;
         s = items->next ? items->next[s] : HBP__NO_SAMPLE)
        vision += hbp__lengths_vision(p->lengths, s);
    return vision;
}

/* Budgets hold every item: linked samples are as large as all of them together. */
static hbp_status raise_least(plane *p, const hbp__items *items)
{
    for (int64_t i = 0; i < items->count; i++) {
        HBP__TRY(hbp__tick_row(p->context, "budgets", i, items->count));
        p->least_vision = hbp__max_i64(p->least_vision, vision_of(p, items, i));
        p->least_tokens = hbp__max_i64(p->least_tokens, items->size[i]);
    }
    return HBP_OK;
}

/* A sample of the items, every so many of them in the order of tokens. */
static hbp_status take_items(plane *p, const hbp__items *items)
{
    p->part = hbp__min_i64(HBP__BUDGETS_PART, items->count);
    uint64_t rows = (uint64_t)p->part;
    p->vision = hbp__take(p->context, rows, sizeof *p->vision);
    p->tokens = hbp__take(p->context, rows, sizeof *p->tokens);
    p->pack_of = hbp__take(p->context, rows, sizeof *p->pack_of);
    p->load = hbp__take(p->context, rows, 2 * sizeof *p->load);
    HBP__TRY(hbp__scratch_check(p->context, "budgets"));
    for (int64_t k = 0; k < p->part; k++) {
        int64_t i = (2 * k + 1) * items->count / (2 * p->part);
        p->tokens[k] = items->size[i];
        p->part_samples += hbp__items_members(items, i);
        p->vision[k] = (uint32_t)vision_of(p, items, i);
    }
    return HBP_OK;
}

static hbp_status take_part(plane *p)
{
    hbp__items items;
    hbp_status status = hbp__items_open(p->context, p->lengths, 1, UINT32_MAX, p->options->seed, 0, &items);
    if (status == HBP_OK && items.next)
        status = raise_least(p, &items);
    if (status == HBP_OK)
        status = take_items(p, &items);
    hbp__items_close(&items);
    return status;
}

/* Tries a pair with the part, unless it was tried; what it cannot hold and what misses the number of samples
 * is not entered. *at gets its row, or -1. */
static hbp_status try_pair(plane *p, int64_t vision, int64_t tokens, int64_t *at)
{
    *at = -1;
    tokens = hbp__round_up(tokens, p->options->token_multiple);
    if (vision < p->least_vision || vision > p->most_vision || tokens < p->least_tokens ||
        tokens > p->most_tokens || p->pairs == MOST_PAIRS)
        return HBP_OK;
    for (int64_t i = 0; i < p->pairs; i++)
        if (p->pair[i].vision == vision && p->pair[i].tokens == tokens) {
            *at = p->pair[i].score < HOPELESS ? i : -1;
            return HBP_OK;
        }
    hbp__vectors vectors = {p->part, p->vision, p->tokens, NULL, vision, tokens, INT64_MAX};
    hbp__vector_packing packing = {0, p->pack_of};
    hbp__rng rng = hbp__rng_make(p->options->seed, 0, 0);
    int64_t bound;
    HBP__TRY(hbp__tick(p->context, "budgets", p->pairs, 0));
    HBP__TRY(hbp__vector_pack(p->context, &vectors, 1, &rng, &packing, &bound));
    int64_t *held = p->load, *length = p->load + packing.packs;
    memset(held, 0, 2 * (size_t)packing.packs * sizeof *held);
    for (int64_t i = 0; i < p->part; i++) {
        held[p->pack_of[i]] += p->vision[i];
        length[p->pack_of[i]] += p->tokens[i];
    }
    hbp_budgets b = {.max_vision = vision, .max_tokens = tokens};
    judge_packs(p, held, length, packing.packs, &b);
    int fits = holds_enough(p, p->part_samples, packing.packs);
    double average = (double)p->part_samples / (double)packing.packs;
    p->pair[p->pairs] = (pair){vision, tokens, fits ? b.score : HOPELESS, average};
    *at = fits ? p->pairs : -1;
    p->pairs++;
    return HBP_OK;
}

/* A vision budget with token budgets above the mean of packs of `held` samples, none below the longest
 * item. */
static hbp_status try_column(plane *p, int64_t vision, double held)
{
    double mean = (double)p->lengths->tokens / (double)p->lengths->count * held;
    int64_t most = p->most_tokens / p->options->token_multiple * p->options->token_multiple, at;
    for (size_t k = 0; k < sizeof above_mean / sizeof *above_mean; k++) {
        double tokens = mean * (1 + (double)above_mean[k] / 512);
        int64_t budget = tokens < (double)most ? (int64_t)tokens + 1 : most;
        HBP__TRY(try_pair(p, vision, hbp__max_i64(budget, p->least_tokens), &at));
    }
    return HBP_OK;
}

/* The same for packs that the tokens make small enough, a few numbers of samples within what was asked for.
 */
static hbp_status try_columns(plane *p, int64_t vision)
{
    double least = p->options->samples, most = p->options->most_samples;
    for (int k = 0; k <= HBP__BUDGETS_HELD; k++)
        HBP__TRY(try_column(p, vision, least + (most - least) * k / HBP__BUDGETS_HELD));
    return HBP_OK;
}

/* Vision budgets of packs that hold the right number of samples. Where the sample with most units alone asks
 * for more, or the budget is a few units and one less is too little, the tokens make the packs small enough;
 * as the vision budget does where the longest sample asks for more tokens. */
static hbp_status scan(plane *p, int64_t *step)
{
    const hbp_lengths *l = p->lengths;
    double samples = p->options->samples, most_samples = p->options->most_samples;
    double mean = (double)l->vision_sum / (double)l->count;
    int64_t high = hbp__min_i64(p->most_vision, (int64_t)(mean * (most_samples + .1)) + 1);
    int64_t low = hbp__max_i64(p->least_vision, (int64_t)(mean * samples));
    *step = hbp__max_i64(1, (high - low) / HBP__BUDGETS_COLUMNS);
    if (low > high)
        return try_columns(p, hbp__max_i64(p->least_vision, high));
    for (int64_t vision = low; vision <= high; vision += *step) {
        double held = mean > 0 ? (double)vision / mean : most_samples + 1;
        HBP__TRY(held > most_samples ? try_columns(p, vision)
                                     : try_column(p, vision, held < samples ? samples : held));
    }
    return HBP_OK;
}

/* Sorts the pairs by score, stable; there are few. */
static void sort_pairs(plane *p)
{
    for (int64_t i = 1; i < p->pairs; i++) {
        pair one = p->pair[i];
        int64_t k = i;
        for (; k > 0 && p->pair[k - 1].score > one.score; k--)
            p->pair[k] = p->pair[k - 1];
        p->pair[k] = one;
    }
}

/* From a pair that holds enough to better neighbours, with steps that halve. */
static hbp_status refine(plane *p, pair here, int64_t vision_step)
{
    int64_t token_step = hbp__max_i64(p->options->token_multiple, here.tokens / 64);
    for (;;) {
        pair best = here;
        const int64_t move[4][2] = {{0, -1}, {0, 1}, {-1, 0}, {1, 0}};
        for (int k = 0; k < 4; k++) {
            int64_t at;
            if (move[k][0] && !vision_step)
                continue;
            HBP__TRY(try_pair(p, here.vision + move[k][0] * vision_step,
                              here.tokens + move[k][1] * token_step, &at));
            if (at >= 0 && p->pair[at].score < best.score)
                best = p->pair[at];
        }
        if (best.score < here.score) {
            here = best;
            continue;
        }
        if (token_step <= p->options->token_multiple && vision_step <= 1)
            return HBP_OK;
        token_step = hbp__max_i64(p->options->token_multiple, token_step / 2);
        vision_step /= 2;
    }
}

/* Fills all samples under a pair; *b gets what packs come to, or b->packs = 0 when they miss the number. */
static hbp_status fill_all(plane *p, const pair *q, hbp_budgets *b)
{
    hbp_iterative_fill_options fill = {.struct_size = sizeof fill,
                                       .effort = p->options->effort,
                                       .max_tokens = q->tokens,
                                       .max_vision = q->vision,
                                       .sequence_multiple = 1,
                                       .pack_multiple = 1,
                                       .seed = p->options->seed};
    hbp_packs *packs = NULL;
    HBP__TRY(hbp__vector_fill(p->context, p->lengths, &fill, &packs));
    *b = (hbp_budgets){.max_vision = q->vision, .max_tokens = q->tokens};
    judge_packs(p, packs->vision, packs->padded, packs->count, b);
    b->samples_per_pack = (double)p->lengths->count / (double)packs->count;
    if (!holds_enough(p, p->lengths->count, packs->count))
        b->packs = 0;
    hbp_packs_free(packs);
    return HBP_OK;
}

/* The best pairs, each of another vision budget, into best [HBP__BUDGETS_FINALISTS]; returns how many. */
static int64_t list_best(plane *p, pair *best)
{
    int64_t count = 0;
    sort_pairs(p);
    for (int64_t i = 0; i < p->pairs && count < HBP__BUDGETS_FINALISTS && p->pair[i].score < HOPELESS; i++) {
        int64_t k = 0;
        while (k < count && best[k].vision != p->pair[i].vision)
            k++;
        if (k == count)
            best[count++] = p->pair[i];
    }
    return count;
}

static hbp_status search_plane(plane *p, hbp_budgets *out)
{
    pair best[HBP__BUDGETS_FINALISTS];
    int64_t step;
    HBP__TRY(take_part(p));
    HBP__TRY(scan(p, &step));
    int64_t count = list_best(p, best);
    for (int64_t k = 0; k < count; k++)
        HBP__TRY(refine(p, best[k], step > 1 ? step / 2 : 0));
    count = list_best(p, best);
    for (int64_t k = 0; k < count; k++) {
        hbp_budgets b;
        HBP__TRY(fill_all(p, &best[k], &b));
        if (b.packs && (!out->packs || b.score < out->score))
            *out = b;
        if (out->packs && p->lengths->count > HBP__BUDGETS_COMPARED)
            break;
    }
    out->considered = (int32_t)p->pairs;
    return HBP_OK;
}

/* How far a number of samples is from what was asked for. */
static double miss(const plane *p, const pair *one)
{
    double least = p->options->samples, most = p->options->most_samples;
    return one->held < least ? least - one->held : one->held > most ? one->held - most : 0;
}

/* Says why there is no pair: the least budgets that hold every sample hold too many others, or there are none
 * in between. */
static hbp_status explain(plane *p, hbp__no_budgets *why)
{
    const hbp_budgets_options *o = p->options;
    int64_t tokens = hbp__round_up(p->least_tokens, o->token_multiple), at;
    int32_t considered = (int32_t)p->pairs;
    HBP__TRY(try_pair(p, p->least_vision, p->least_tokens, &at));
    *why = (hbp__no_budgets){HBP__NO_BUDGETS_LIMITS, considered, p->least_vision, p->least_tokens, 0};
    if (p->least_vision > p->most_vision || tokens > p->most_tokens || !p->pairs)
        return HBP_OK;
    const pair *nearest = &p->pair[0];
    why->reason = HBP__NO_BUDGETS_PLANE;
    for (int64_t i = 0; i < p->pairs && why->reason == HBP__NO_BUDGETS_PLANE; i++) {
        const pair *one = &p->pair[i];
        int is_largest = one->vision == p->least_vision && one->tokens == tokens;
        if (is_largest && one->held > o->most_samples)
            why->reason = HBP__NO_BUDGETS_LARGEST;
        if (why->reason == HBP__NO_BUDGETS_LARGEST || miss(p, one) < miss(p, nearest))
            nearest = one;
    }
    why->vision = nearest->vision;
    why->tokens = nearest->tokens;
    why->held = nearest->held;
    return HBP_OK;
}

hbp_status hbp__budgets_plane(hbp_context *context, const hbp_lengths *lengths,
                              const hbp_budgets_options *options, hbp_budgets *out, hbp__no_budgets *why)
{
    plane *p = hbp__take_zero(context, 1, sizeof *p);
    HBP__TRY(hbp__scratch_check(context, "budgets"));
    p->context = context;
    p->lengths = lengths;
    p->options = options;
    p->least_vision = hbp__max_i64(1, lengths->max_vision);
    p->most_vision = options->max_vision;
    p->least_tokens = lengths->bin_length[lengths->bins - 1];
    p->most_tokens = options->max_tokens;
    hbp_budgets best = {.packs = 0};
    HBP__TRY(search_plane(p, &best));
    if (!best.packs && why)
        HBP__TRY(explain(p, why));
    if (!best.packs)
        return HBP_E_INFEASIBLE;
    *out = best;
    return HBP_OK;
}

#include "base/methods.h"
#include "pack/vision/budgets.h"

#include <math.h>

#include "data/lengths/lengths.h"
#include "failing.h"
#include "isf_oracle.h"
#include "keep.h"
#include "pack/vision/dist_ratio.h"

static hbp_budgets_options options_of(int32_t samples, int32_t ranks, int32_t rounds, uint64_t seed)
{
    return (hbp_budgets_options){.struct_size = sizeof(hbp_budgets_options),
                                 .method = hbp__budgets_name(HBP__BUDGETS_LINE),
                                 .samples = samples,
                                 .ranks = ranks,
                                 .rounds = rounds,
                                 .effort = 1,
                                 .max_tokens = HBP_MAX_LENGTH,
                                 .max_vision = HBP_MAX_VISION,
                                 .token_multiple = 64,
                                 .seed = seed};
}

static hbp_lengths *lengths_of(hbp_context *context, const uint32_t *tokens, const uint32_t *vision,
                               int64_t count)
{
    hbp_lengths_options options = {.struct_size = sizeof options, .vision = vision};
    hbp_lengths *lengths = NULL;
    OK(context, hbp_lengths_create_u32(context, tokens, count, &options, &lengths));
    return lengths;
}

/* Where there is no pair, that is an answer, and its message another call. */
static hbp_status find_line(hbp_context *context, const hbp_lengths *lengths,
                            const hbp_budgets_options *options, hbp_budgets *found)
{
    hbp__no_budgets why;
    OK(context, hbp__enter(context));
    hbp_status status = hbp__budgets_line(context, lengths, options, found, &why);
    if (status != HBP_E_INFEASIBLE)
        return status;
    ck_assert_str_eq(hbp_context_message(context), "");
    return hbp__no_budgets_fail(context, options, &why);
}

typedef struct pair {
    int64_t vision, tokens;
    int64_t packs, samples;
    double dist_vision, dist_tokens, score;
} pair;

static pair try_pair(const int64_t *tokens, const int64_t *vision, int64_t count, int64_t max_vision,
                     int64_t max_tokens, const hbp_budgets_options *options)
{
    isf_rules rules = {.tokens = tokens,
                       .vision = vision,
                       .max_tokens = max_tokens,
                       .max_vision = max_vision,
                       .full_tokens = max_tokens - 128,
                       .full_vision = max_vision,
                       .rounds = options->rounds,
                       .seed = (uint32_t)options->seed};
    isf_list list = isf_naive(&rules, count);
    int64_t *t = calloc((size_t)count + 1, sizeof *t), *v = calloc((size_t)count + 1, sizeof *v);
    for (int64_t p = 0; p < list.packs; p++)
        for (int64_t i = list.offsets[p]; i < list.offsets[p + 1]; i++) {
            t[p] += tokens[list.sample[i]];
            v[p] += vision[list.sample[i]];
        }
    pair found = {.vision = max_vision, .tokens = max_tokens, .packs = list.packs, .samples = list.samples};
    found.dist_vision = hbp__dist_ratio(v, list.packs, options->ranks);
    found.dist_tokens = hbp__dist_ratio(t, list.packs, options->ranks);
    found.score = found.dist_vision + found.dist_tokens;
    free(v);
    free(t);
    isf_list_free(&list);
    return found;
}

/* The published loop; packs 0: it ran out of budgets. */
static pair search_plainly(const int64_t *tokens, const int64_t *vision, int64_t count, int64_t unit,
                           const hbp_budgets_options *options, int32_t *tried)
{
    int64_t max_tokens = 4096, max_vision = 4096 / unit;
    double most = 0;
    pair best = {0};
    for (*tried = 0; max_tokens > 0 && max_vision > 0;) {
        pair here = try_pair(tokens, vision, count, max_vision, max_tokens, options);
        double average = (double)here.samples / (double)here.packs;
        ++*tried;
        most = average > most ? average : most;
        if (average >= options->samples && average <= options->samples + 1 &&
            (!best.packs || here.score < best.score ||
             (here.score == best.score && here.dist_vision < best.dist_vision)))
            best = here;
        if (most > options->samples + 1 && best.packs)
            break;
        max_vision += most > options->samples + 1 ? -1 : 1;
        max_tokens += most > options->samples + 1 ? -unit : unit;
    }
    return best;
}

static void check_pair(const hbp_budgets *found, const pair *expected)
{
    ck_assert_int_eq(found->max_vision, expected->vision);
    ck_assert_int_eq(found->max_tokens, expected->tokens);
    ck_assert_int_eq(found->full_tokens, expected->tokens - 128);
    ck_assert_int_eq(found->packs, expected->packs);
    ck_assert_double_eq(found->samples_per_pack, (double)expected->samples / (double)expected->packs);
    ck_assert_double_eq(found->padding, 0);
    ck_assert_double_eq(found->dist_vision, expected->dist_vision);
    ck_assert_double_eq(found->dist_tokens, expected->dist_tokens);
    ck_assert_double_eq(found->score, expected->score);
}

enum { MOST = 400 };

/* Samples of about `a_unit` tokens a vision unit. */
static void draw_data(hbp__rng *rng, int64_t count, int64_t a_unit, int64_t *tokens, int64_t *vision,
                      uint32_t *tokens32, uint32_t *vision32)
{
    for (int64_t i = 0; i < count; i++) {
        vision[i] = hbp__rng_below(rng, 4) ? 1 + hbp__rng_below(rng, 5) : 0;
        tokens[i] = (vision[i] + 1) * a_unit * 3 / 4 + 1 + hbp__rng_below(rng, (uint64_t)a_unit / 2);
        tokens32[i] = (uint32_t)tokens[i];
        vision32[i] = (uint32_t)vision[i];
    }
}

START_TEST_IN_CONTEXT(the_walk_is_the_published_one)
{
    hbp__rng rng = hbp__rng_make(61, 0, 0);
    int64_t tokens[MOST], vision[MOST], ups = 0, downs = 0;
    uint32_t tokens32[MOST], vision32[MOST];
    for (int trial = 0; trial < 40; trial++) {
        int64_t count = 120 + hbp__rng_below(&rng, MOST - 120), binned = 0, units = 0;
        draw_data(&rng, count, 60 + hbp__rng_below(&rng, 300), tokens, vision, tokens32, vision32);
        for (int64_t i = 0; i < count; i++) {
            binned += (tokens[i] + 255) / 256 * 256;
            units += vision[i];
        }
        /* Real numbers here: that the doubles of numpy may differ at an integer is another test. */
        int64_t unit = (binned / (units > count ? units : count) + 1) / 16 * 16;
        hbp_budgets_options options =
            options_of(2 + (int32_t)hbp__rng_below(&rng, 5), 1 + (int32_t)hbp__rng_below(&rng, 5),
                       1 + (int32_t)hbp__rng_below(&rng, 12), hbp__rng_below(&rng, 5000));
        hbp_lengths *lengths = lengths_of(context, tokens32, vision32, count);
        hbp_budgets found = {0};
        int32_t tried;
        pair expected = search_plainly(tokens, vision, count, unit, &options, &tried);
        ck_assert_int_gt(expected.packs, 0);
        OK(context, find_line(context, lengths, &options, &found));
        check_pair(&found, &expected);
        ck_assert_int_eq(found.considered, tried);
        int64_t sum_tokens = 0, sum_vision = 0;
        for (int64_t i = 0; i < count; i++) {
            sum_tokens += tokens[i];
            sum_vision += vision[i];
        }
        if ((int64_t)(found.samples_per_pack * (double)found.packs + .5) == count) {
            double packs = (double)found.packs;
            ck_assert_double_eq_tol(found.unused_tokens,
                                    1 - (double)sum_tokens / packs / (double)found.max_tokens, 1e-12);
            ck_assert_double_eq_tol(found.unused_vision,
                                    1 - (double)sum_vision / packs / (double)found.max_vision, 1e-12);
        }
        ups += found.max_tokens > 4096;
        downs += found.max_tokens < 4096;
        hbp_lengths_free(lengths);
    }
    ck_assert_int_gt(ups, 5);
    ck_assert_int_gt(downs, 5);
}
END_TEST

START_TEST_IN_CONTEXT(a_quotient_is_rounded_as_numpy_rounds_it)
{
    /* 43 samples, 256 units, 12032 tokens in bins: 12032 / 256 is 47, but of the two means numpy makes 46,
     * and u is 32 instead of 48. */
    uint32_t tokens[43], vision[43];
    for (int i = 0; i < 43; i++) {
        tokens[i] = i < 4 ? 300 : 200;
        vision[i] = i < 2 ? 5 : 6;
    }
    hbp_lengths *lengths = keep(lengths_of(context, tokens, vision, 43));
    hbp_budgets_options options = options_of(4, 2, 10, 7);
    hbp_budgets found = {0};
    OK(context, find_line(context, lengths, &options, &found));
    ck_assert_int_eq(4096 - found.max_tokens, 32 * (4096 / 32 - found.max_vision));
}
END_TEST

START_TEST_IN_CONTEXT(limits_hold_and_impossible_wishes_are_refused)
{
    uint32_t tokens[200], vision[200];
    for (uint32_t i = 0; i < 200; i++) {
        tokens[i] = 1024;
        vision[i] = 4;
    }
    hbp_lengths *lengths = keep(lengths_of(context, tokens, vision, 198)),
                *few = keep(lengths_of(context, tokens, vision, 3));
    hbp_budgets_options options = options_of(3, 8, 3, 0);
    hbp_budgets found = {0}, before = {0};
    /* u = floor(257 / 16) 16 = 256; from (16, 4096), 4 samples a pack, up to (24, 6144) with 6. */
    OK(context, find_line(context, lengths, &options, &found));
    ck_assert_int_eq(found.packs, 50);
    options.max_tokens = 5000;
    OK(context, find_line(context, lengths, &options, &found));
    ck_assert_int_eq(found.max_tokens, 4096);
    options.max_tokens = 3500; /* 3 samples, from above */
    OK(context, find_line(context, lengths, &options, &found));
    ck_assert_int_eq(found.max_tokens, 3328);
    ck_assert_int_eq(found.max_vision, 13);
    ck_assert_int_eq(found.packs, 66);
    options.max_tokens = HBP_MAX_LENGTH;
    options.max_vision = 12;
    OK(context, find_line(context, lengths, &options, &found));
    ck_assert_int_eq(found.max_vision, 12);
    options.max_vision = 11; /* 2 samples */
    before = found;
    FAILS(context, HBP_E_INFEASIBLE,
          "budgets: none of 1 pairs along the line, 256 tokens a vision unit, gives packs of 3 to 4 samples "
          "within 2147483647 tokens and 11 vision units",
          find_line(context, lengths, &options, &found));
    ck_assert_mem_eq(&found, &before, sizeof found);
    options.max_vision = 2;
    FAILS(context, HBP_E_INFEASIBLE, "none of 1 pairs", find_line(context, lengths, &options, &found));
    options.max_vision = HBP_MAX_VISION;
    options.samples = 5; /* the three samples never make a pack of 5 */
    FAILS(context, HBP_E_INFEASIBLE, "budgets: none of 1 pairs", find_line(context, few, &options, &found));
    for (int i = 0; i < 200; i++)
        vision[i] = 400;
    hbp_lengths *dense = keep(lengths_of(context, tokens, vision, 200));
    FAILS(
        context, HBP_E_INFEASIBLE,
        "budgets: 204800 tokens are fewer than 15 for each of 80000 vision units; the line has no direction",
        find_line(context, dense, &options, &found));
    options.seed = UINT64_C(1) << 32;
    FAILS(context, HBP_E_INVALID, "budgets: the seed is 4294967296",
          find_line(context, lengths, &options, &found));
}
END_TEST

static hbp_status search_small(hbp_context *context, void *user)
{
    uint32_t tokens[30], vision[30];
    hbp_lengths *lengths = NULL;
    hbp_lengths_options create = {.struct_size = sizeof create, .vision = vision};
    hbp_budgets_options options = options_of(4, 2, 2, 3);
    hbp_budgets found = {0};
    (void)user;
    for (uint32_t i = 0; i < 30; i++) {
        tokens[i] = 900 + i;
        vision[i] = 4;
    }
    HBP__TRY(hbp_lengths_create_u32(context, tokens, 30, &create, &lengths));
    hbp_status status = find_line(context, lengths, &options, &found);
    hbp_lengths_free(lengths);
    return status;
}

START_TEST(survives_failing_allocations_and_cancelling)
{
    failing_sweep(search_small, NULL);
    ck_assert_int_gt(cancel_sweep(search_small, NULL), 3);
}
END_TEST

static uint32_t vlm_tokens[VLM_SAMPLES], vlm_vision[VLM_SAMPLES];

START_TEST_IN_CONTEXT(published_budgets)
{
    if (!vlm_data(vlm_tokens, vlm_vision))
        return;
    hbp_lengths *lengths = keep(lengths_of(context, vlm_tokens, vlm_vision, VLM_SAMPLES));
    hbp_budgets_options options = options_of(4, 8, 50, 1024);
    hbp_budgets found = {0};
    OK(context, find_line(context, lengths, &options, &found));
    ck_assert_int_eq(found.considered, 9);
    ck_assert_int_eq(found.max_vision, 18);
    ck_assert_int_eq(found.max_tokens, 6016);
    ck_assert_int_eq(found.full_tokens, 5888);
    ck_assert_int_eq(found.packs, 15523);
    ck_assert_double_eq_tol(found.samples_per_pack, 4.554918508020357, 1e-12);
    ck_assert_double_eq_tol(found.dist_vision, .0001145475372279496, 1e-12);
    ck_assert_double_eq_tol(found.dist_tokens, .07005479849065455, 1e-12);
    ck_assert_double_eq_tol(found.score, .0701693460278825, 1e-12);
    ck_assert_double_eq_tol(found.unused_vision, .00013599891200877234, 1e-12);
    ck_assert_double_eq_tol(found.unused_tokens, .14028804503886472, 1e-12);
}
END_TEST

TEST_MAIN("budgets_line", the_walk_is_the_published_one, a_quotient_is_rounded_as_numpy_rounds_it,
          limits_hold_and_impossible_wishes_are_refused, survives_failing_allocations_and_cancelling,
          published_budgets)

#include "base/rng.h"
#include "pack/vision/budgets.h"

#include <math.h>

#include "data/lengths/lengths.h"
#include "data/packs/packs.h"
#include "failing.h"
#include "isf_oracle.h"
#include "keep.h"
#include "pack/vision/dist_ratio.h"

static hbp_lengths *lengths_of(hbp_context *context, const uint32_t *tokens, const uint32_t *vision,
                               int64_t count)
{
    hbp_lengths_options options = {.struct_size = sizeof options, .vision = vision};
    hbp_lengths *lengths = NULL;
    OK(context, hbp_lengths_create_u32(context, tokens, count, &options, &lengths));
    return lengths;
}

/* Tiles and tokens, or vision tokens of any number and text. */
static hbp_lengths *draw(hbp_context *context, uint64_t seed, int64_t count, int is_tiles)
{
    hbp__rng rng = hbp__rng_make(seed, 0, 0);
    uint32_t *tokens = malloc((size_t)count * sizeof *tokens),
             *vision = malloc((size_t)count * sizeof *vision);
    for (int64_t i = 0; i < count; i++) {
        vision[i] = is_tiles ? 1 + 2 * hbp__rng_below(&rng, 3) : hbp__rng_below(&rng, 3001);
        tokens[i] = 20 + vision[i] * (is_tiles ? 256 : 1) + hbp__rng_below(&rng, 400);
    }
    hbp_lengths *lengths = lengths_of(context, tokens, vision, count);
    free(tokens);
    free(vision);
    return lengths;
}

/* What the default fill's packs come to under these budgets, measured plainly. */
static hbp_budgets measure(hbp_context *context, const hbp_lengths *lengths, int64_t max_vision,
                           int64_t max_tokens, int64_t ranks)
{
    hbp_iterative_fill_options fill = {.struct_size = sizeof fill};
    fill.max_vision = max_vision;
    fill.max_tokens = max_tokens;
    hbp_packs *packs = NULL;
    OK(context, hbp_iterative_fill(context, lengths, &fill, &packs));
    hbp_budgets b = {.packs = packs->count};
    double vision = 0, tokens = 0, count = (double)packs->count;
    for (int64_t p = 0; p < packs->count; p++) {
        vision += (double)packs->vision[p];
        tokens += (double)packs->tokens[p];
    }
    b.dist_vision = hbp__dist_ratio(packs->vision, packs->count, ranks);
    b.dist_tokens = hbp__dist_ratio(packs->tokens, packs->count, ranks);
    b.unused_vision = 1 - vision / (count * (double)max_vision);
    b.unused_tokens = 1 - tokens / (count * (double)max_tokens);
    b.samples_per_pack = (double)lengths->count / count;
    b.score = b.dist_vision + b.dist_tokens + b.unused_vision + b.unused_tokens;
    hbp_packs_free(packs);
    return b;
}

static hbp_budgets choose(hbp_context *context, const hbp_lengths *lengths,
                          const hbp_budgets_options *options)
{
    hbp_budgets b = {.struct_size = sizeof b};
    OK(context, hbp_choose_budgets(context, lengths, options, &b));
    return b;
}

static void check_chosen(hbp_context *context, const hbp_lengths *lengths, const hbp_budgets *b,
                         int32_t samples, int64_t multiple)
{
    hbp_budgets m = measure(context, lengths, b->max_vision, b->max_tokens, 8);
    ck_assert_int_eq(b->packs, m.packs);
    ck_assert(fabs(b->score - m.score) < 1e-12);
    ck_assert(fabs(b->dist_vision - m.dist_vision) < 1e-12);
    ck_assert(fabs(b->dist_tokens - m.dist_tokens) < 1e-12);
    ck_assert(fabs(b->unused_vision - m.unused_vision) < 1e-12);
    ck_assert(fabs(b->unused_tokens - m.unused_tokens) < 1e-12);
    ck_assert(fabs(b->samples_per_pack - m.samples_per_pack) < 1e-12);
    ck_assert(m.samples_per_pack >= samples && m.samples_per_pack <= samples + 1);
    ck_assert_int_eq(b->max_tokens % multiple, 0);
    ck_assert(!(b->padding > 0));
}

START_TEST_IN_CONTEXT(chooses_a_good_pair)
{
    for (uint64_t seed = 0; seed < 4; seed++) {
        hbp_lengths *lengths = draw(context, seed, 1000, seed % 2);
        hbp_budgets_options options = {.struct_size = sizeof options};
        options.samples = 3 + 2 * (int32_t)seed;
        options.token_multiple = seed % 3 ? 0 : 32;
        hbp_budgets b = choose(context, lengths, &options);
        check_chosen(context, lengths, &b, options.samples, seed % 3 ? 64 : 32);
        ck_assert_int_gt(b.considered, 10);
        ck_assert_msg(b.score < .12, "score %g", b.score);
        /* No pair of a plain grid around the mean is much better. */
        double mean = (double)lengths->tokens / (double)lengths->count;
        for (int64_t per = 2 * options.samples; per <= 2 * options.samples + 2; per++) {
            for (int k = 1; k <= 9; k += 4) {
                int64_t vision = lengths->vision_sum * per / 2 / lengths->count + (seed % 2 ? 1 : 100);
                int64_t tokens = (int64_t)(mean * (double)per / 2 * (1 + k * .01)) / 64 * 64;
                if (vision < lengths->max_vision || tokens < lengths->bin_length[lengths->bins - 1])
                    continue;
                hbp_budgets other = measure(context, lengths, vision, tokens, 8);
                if (other.samples_per_pack >= options.samples &&
                    other.samples_per_pack <= options.samples + 1)
                    ck_assert_msg(b.score < other.score + .01, "%g, but %g with %lld, %lld", b.score,
                                  other.score, (long long)vision, (long long)tokens);
            }
        }
        hbp_lengths_free(lengths);
    }
}
END_TEST

START_TEST_IN_CONTEXT(keeps_the_limits_and_says_when_there_is_no_pair)
{
    hbp_lengths *lengths = keep(draw(context, 1, 2000, 1));
    hbp_budgets_options options = {.struct_size = sizeof options};
    hbp_budgets free_choice = choose(context, lengths, &options), b = {.struct_size = sizeof b, .packs = -7};
    options.max_tokens = free_choice.max_tokens + 63;
    options.max_vision = free_choice.max_vision;
    hbp_budgets under = choose(context, lengths, &options);
    ck_assert_int_le(under.max_tokens, free_choice.max_tokens);
    ck_assert_int_le(under.max_vision, free_choice.max_vision);
    ck_assert(under.score < free_choice.score + .01);
    options.max_tokens = 0;
    options.max_vision = 6; /* a pack of 6 tiles holds no 4 samples */
    FAILS(context, HBP_E_INFEASIBLE, "gives packs of 4 to 5 samples; the nearest, 6 vision units and",
          hbp_choose_budgets(context, lengths, &options, &b));
    ck_assert_int_eq(b.packs, -7);
    options.max_vision = 4; /* not even the largest sample */
    FAILS(context, HBP_E_INFEASIBLE, "budgets may be 4 and 2147483647",
          hbp_choose_budgets(context, lengths, &options, &b));
}
END_TEST

/* The published data: the line's choice, 18 and 6016, filled by the default mode. */
START_TEST_IN_CONTEXT(packs_hold_no_more_samples_than_asked)
{
    hbp_lengths *lengths = keep(draw(context, 3, 3000, 1));
    hbp_budgets_options options = {.struct_size = sizeof options};
    options.most_samples = 4.25;
    hbp_budgets b = choose(context, lengths, &options);
    ck_assert(b.samples_per_pack >= 4 && b.samples_per_pack <= 4.25);
    options.most_samples = 4.0001; /* no pair hits that */
    FAILS(context, HBP_E_INFEASIBLE, "packs of 4 to 4.0001 samples",
          hbp_choose_budgets(context, lengths, &options, &b));
}
END_TEST

/* A sample that alone is larger than the packs that are asked for sets the budget of its size, and the other
 * size makes packs small; two of them leave nothing. */
START_TEST_IN_CONTEXT(single_large_samples_set_a_budget)
{
    for (int large = 1; large <= 3; large++) {
        uint32_t tokens[1000], vision[1000];
        for (uint32_t i = 0; i < 1000; i++) {
            tokens[i] = 500 + i % 97 * 4;
            vision[i] = 1 + i % 7;
        }
        if (large & 1)
            tokens[10] = 9000;
        if (large & 2)
            vision[20] = 60;
        hbp_lengths_options columns = {.struct_size = sizeof columns};
        columns.vision = vision;
        hbp_lengths *lengths = NULL;
        OK(context, hbp_lengths_create_u32(context, tokens, 1000, &columns, &lengths));
        hbp_budgets_options options = {.struct_size = sizeof options};
        hbp_budgets b = {.struct_size = sizeof b};
        if (large == 3) {
            FAILS(context, HBP_E_INFEASIBLE,
                  "packs that hold the largest samples, 60 vision units and 9024 tokens, hold",
                  hbp_choose_budgets(context, lengths, &options, &b));
        } else {
            b = choose(context, lengths, &options);
            ck_assert(b.samples_per_pack >= 4 && b.samples_per_pack <= 5);
            ck_assert_int_ge(b.max_tokens, large & 1 ? 9000 : 0);
            ck_assert_int_ge(b.max_vision, large & 2 ? 60 : 0);
        }
        hbp_lengths_free(lengths);
    }
}
END_TEST

/* Linked samples share a pack, so the budgets hold them all together. */
START_TEST_IN_CONTEXT(linked_samples_are_held_together)
{
    enum { SAMPLES = 400 };
    for (int count = TEST_FEW(2, 8); count <= 32; count *= 4) {
        uint32_t tokens[SAMPLES], vision[SAMPLES];
        int64_t links[SAMPLES], sum_tokens = 0, sum_vision = 0;
        for (int i = 0; i < SAMPLES; i++) {
            vision[i] = 1 + (uint32_t)i % 5;
            tokens[i] = 256 * vision[i] + 1 + (uint32_t)i % 197;
            links[i] = i >= 100 && i < 100 + count ? 7 : -1;
            sum_tokens += links[i] < 0 ? 0 : tokens[i];
            sum_vision += links[i] < 0 ? 0 : vision[i];
        }
        hbp_lengths_options columns = {.struct_size = sizeof columns, .vision = vision, .links = links};
        hbp_lengths *lengths = NULL;
        OK(context, hbp_lengths_create_u32(context, tokens, SAMPLES, &columns, &lengths));
        hbp_budgets_options options = {.struct_size = sizeof options};
        options.samples = 32;
        options.most_samples = 40;
        hbp_budgets b = choose(context, lengths, &options);
        ck_assert_int_ge(b.max_tokens, sum_tokens);
        ck_assert_int_ge(b.max_vision, sum_vision);
        options.samples = 4;
        options.most_samples = 0;
        options.max_vision = sum_vision - 1;
        char message[128];
        snprintf(message, sizeof message, "budgets: the largest samples have %d vision units and",
                 (int)sum_vision);
        if (count > 8) /* more than any sample has */
            FAILS(context, HBP_E_INFEASIBLE, message, hbp_choose_budgets(context, lengths, &options, &b));
        hbp_lengths_free(lengths);
    }
}
END_TEST

/* Mixes of text, images and long tails have budgets; where they have none, the message tells of the largest.
 */
START_TEST_IN_CONTEXT(ordinary_mixes_have_budgets)
{
    int found = 0;
    const uint64_t mixes = TEST_FEW(60, 12);
    for (uint64_t seed = 0; seed < mixes; seed++) {
        hbp__rng rng = hbp__rng_make(seed, 0, 9);
        uint32_t tokens[1500], vision[1500], text = hbp__rng_below(&rng, 90),
                                             most = 1 + hbp__rng_below(&rng, 12);
        for (int i = 0; i < 1500; i++) {
            vision[i] = hbp__rng_below(&rng, 100) < text ? 0 : 1 + hbp__rng_below(&rng, most);
            tokens[i] = 256 * vision[i] + 20 + hbp__rng_below(&rng, seed % 2 ? 300 : 1500);
            if (hbp__rng_below(&rng, 200) == 0)
                tokens[i] *= 2 + hbp__rng_below(&rng, 8);
        }
        hbp_lengths_options columns = {.struct_size = sizeof columns};
        columns.vision = vision;
        hbp_lengths *lengths = NULL;
        OK(context, hbp_lengths_create_u32(context, tokens, 1500, &columns, &lengths));
        hbp_budgets_options options = {.struct_size = sizeof options};
        options.samples = 1 + (int32_t)(seed % 6);
        hbp_budgets b = {.struct_size = sizeof b};
        hbp_status status = hbp_choose_budgets(context, lengths, &options, &b);
        if (status == HBP_OK) {
            found++;
            ck_assert(b.samples_per_pack >= options.samples && b.samples_per_pack <= options.samples + 1);
        } else {
            ck_assert_int_eq(status, HBP_E_INFEASIBLE);
            const char *message = hbp_context_message(context);
            ck_assert_msg(strstr(message, "hold the largest samples") || strstr(message, "the nearest"),
                          "seed %d: %s", (int)seed, message);
        }
        hbp_lengths_free(lengths);
    }
    ck_assert_int_ge(found, (int)mixes / 2);
}
END_TEST

START_TEST_IN_CONTEXT(is_better_than_the_line)
{
    static uint32_t tokens[VLM_SAMPLES], vision[VLM_SAMPLES];
    if (!vlm_data(tokens, vision))
        return;
    hbp_lengths *lengths = keep(lengths_of(context, tokens, vision, VLM_SAMPLES));
    hbp_budgets_options options = {.struct_size = sizeof options};
    hbp_budgets line = measure(context, lengths, 18, 6016, 8), plane = choose(context, lengths, &options);
    check_chosen(context, lengths, &plane, 4, 64);
    ck_assert(plane.score < line.score / 2);
    ck_assert(plane.dist_vision + plane.dist_tokens < .07005); /* the line's score, as published */
}
END_TEST

static hbp_status choose_some(hbp_context *context, void *user)
{
    hbp_budgets b = {.struct_size = sizeof b};
    return hbp_choose_budgets(context, user, NULL, &b);
}

START_TEST_IN_CONTEXT(keeps_its_word_when_memory_fails_or_it_is_cancelled)
{
    hbp_lengths *lengths = keep(draw(context, 5, 8, 1));
    failing_sweep(choose_some, lengths);
    lengths = keep(draw(context, 5, 8, 1));
    ck_assert_int_gt(cancel_sweep(choose_some, lengths), 10);
}
END_TEST

TEST_MAIN("budgets_plane", chooses_a_good_pair, ordinary_mixes_have_budgets,
          single_large_samples_set_a_budget, linked_samples_are_held_together,
          packs_hold_no_more_samples_than_asked, keeps_the_limits_and_says_when_there_is_no_pair,
          is_better_than_the_line, keeps_its_word_when_memory_fails_or_it_is_cancelled)

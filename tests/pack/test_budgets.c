#include "traps.h"

#include <math.h>

#include "base/methods.h"
#include "failing.h"
#include "isf_oracle.h"
#include "keep.h"
#include "pack/vision/budgets.h"

enum { SAMPLES = 3000 };

static hbp_budgets_options options_of(int32_t mode)
{
    hbp_budgets_options options = {.struct_size = sizeof options};
    options.method = hbp__budgets_name(mode);
    return options;
}

static hbp_lengths *draw_lengths(hbp_context *context, uint64_t seed, int64_t count, int has_vision)
{
    hbp__rng rng = hbp__rng_make(seed, 0, 7);
    uint32_t tokens[SAMPLES], vision[SAMPLES];
    for (int64_t i = 0; i < count; i++) {
        vision[i] = 1 + hbp__rng_below(&rng, 5);
        tokens[i] = 256 * vision[i] + 1 + hbp__rng_below(&rng, 200);
    }
    hbp_lengths_options options = {.struct_size = sizeof options, .vision = has_vision ? vision : NULL};
    hbp_lengths *lengths = NULL;
    OK(context, hbp_lengths_create_u32(context, tokens, count, &options, &lengths));
    return lengths;
}

/* What every answer says of itself, whichever way it was found. */
static void check_answer(const hbp_budgets *b, const hbp_budgets_options *options, int64_t samples)
{
    int32_t wanted = options->samples ? options->samples : 4;
    ck_assert_int_gt(b->considered, 0);
    ck_assert_int_gt(b->packs, 0);
    ck_assert_double_ge(b->samples_per_pack, wanted);
    ck_assert_double_le(b->samples_per_pack, wanted + 1);
    ck_assert_double_eq_tol(b->samples_per_pack * (double)b->packs, (double)samples, 1e-6);
    ck_assert(b->dist_vision >= 0 && b->dist_vision < 1 && b->dist_tokens >= 0 && b->dist_tokens < 1);
    ck_assert(b->unused_vision >= 0 && b->unused_vision < 1 && b->unused_tokens >= 0 && b->unused_tokens < 1);
    if (options->max_tokens)
        ck_assert_int_le(b->max_tokens, options->max_tokens);
    if (options->max_vision)
        ck_assert_int_le(b->max_vision, options->max_vision);
}

START_TEST_IN_CONTEXT(both_ways_find_budgets)
{
    for (uint64_t seed = 0; seed < 6; seed++) {
        hbp_lengths *lengths = draw_lengths(context, seed, SAMPLES, 1);
        for (int32_t mode = 0; mode < 2; mode++) {
            hbp_budgets_options options = options_of(mode);
            hbp_budgets found = {.struct_size = sizeof found};
            options.samples = 3 + (int32_t)(seed % 3);
            options.seed = seed;
            OK(context, hbp_choose_budgets(context, lengths, &options, &found));
            ck_assert_uint_eq(found.struct_size, sizeof found);
            check_answer(&found, &options, SAMPLES);
            if (mode == HBP__BUDGETS_LINE) {
                ck_assert_int_eq(found.full_tokens, found.max_tokens - 128);
                ck_assert_double_eq_tol(found.score, found.dist_vision + found.dist_tokens, 1e-12);
            }
        }
        hbp_lengths_free(lengths);
    }
}
END_TEST

START_TEST_IN_CONTEXT(zeros_are_the_documented_defaults)
{
    hbp_lengths *lengths = keep(draw_lengths(context, 11, SAMPLES, 1));
    for (int32_t mode = 0; mode < 2; mode++) {
        hbp_budgets_options plain = options_of(mode), same = plain, other = plain;
        hbp_budgets found[3] = {
            {.struct_size = sizeof *found}, {.struct_size = sizeof *found}, {.struct_size = sizeof *found}};
        same.samples = 4;
        same.ranks = 8;
        same.rounds = 50;
        same.effort = 1;
        same.token_multiple = 64;
        same.max_tokens = HBP_MAX_LENGTH;
        same.max_vision = HBP_MAX_VISION;
        other.samples = 6;
        OK(context, hbp_choose_budgets(context, lengths, &plain, &found[0]));
        OK(context, hbp_choose_budgets(context, lengths, &same, &found[1]));
        OK(context, hbp_choose_budgets(context, lengths, &other, &found[2]));
        ck_assert_mem_eq(&found[0], &found[1], sizeof *found);
        ck_assert_mem_ne(&found[0], &found[2], sizeof *found);
        if (mode == HBP__BUDGETS_PLANE) {
            OK(context, hbp_choose_budgets(context, lengths, NULL, &found[2]));
            ck_assert_mem_eq(&found[0], &found[2], sizeof *found);
        }
    }
}
END_TEST

START_TEST_IN_CONTEXT(bad_options_are_named)
{
    hbp_lengths *lengths = keep(draw_lengths(context, 12, 50, 1)),
                *text = keep(draw_lengths(context, 12, 50, 0));
    hbp_budgets found = {.struct_size = sizeof found}, before = found;
    hbp_budgets_options o;
#define REFUSED(field, value, text)                                                                          \
    do {                                                                                                     \
        o = options_of(HBP__BUDGETS_LINE);                                                                   \
        o.field = value;                                                                                     \
        FAILS(context, HBP_E_INVALID, text, hbp_choose_budgets(context, lengths, &o, &found));               \
        ck_assert_mem_eq(&found, &before, sizeof found);                                                     \
    } while (0)
    REFUSED(method, "plan", "`method` is 'plan'; did you mean 'plane'? It must be one of plane, line");
    REFUSED(samples, -4, "`samples` is -4; it must be in 0..2147483646");
    REFUSED(samples, INT32_MAX, "`samples` is 2147483647; it must be in 0..2147483646");
    REFUSED(ranks, -1, "`ranks` is -1; it must be in 0..2147483647");
    REFUSED(rounds, -1, "`rounds` is -1; it must be in 0..2147483647");
    REFUSED(effort, 10, "`effort` is 10; it must be in 0..9");
    REFUSED(max_tokens, -1, "`max_tokens` is -1; it must be in 0..2147483647");
    REFUSED(max_vision, INT64_C(2147483648), "`max_vision` is 2147483648; it must be in 0..2147483647");
    REFUSED(most_samples, 3.5, "budgets: most_samples is 3.5; it must be in 4 (samples)..2147483647, or 0");
    REFUSED(most_samples, (double)NAN, "budgets: most_samples is nan");
    REFUSED(most_samples, (double)INFINITY, "budgets: most_samples is inf");
    REFUSED(token_multiple, 1048577, "`token_multiple` is 1048577; it must be in 0..1048576");
    REFUSED(seed, UINT64_C(4294967248), "budgets: the seed is 4294967248");
    REFUSED(struct_size, 2, "hbp_budgets_options");
#undef REFUSED
    o = options_of(HBP__BUDGETS_LINE);
    FAILS(context, HBP_E_INVALID,
          "budgets: the lengths have no vision units; tokens alone need no pair of budgets",
          hbp_choose_budgets(context, text, &o, &found));
    FAILS(context, HBP_E_INVALID, "lengths", hbp_choose_budgets(context, NULL, &o, &found));
    FAILS(context, HBP_E_INVALID, "budgets", hbp_choose_budgets(context, lengths, &o, NULL));
    ck_assert_int_eq(hbp_choose_budgets(NULL, lengths, &o, &found), HBP_E_INVALID);
}
END_TEST

/* Within a call, that there is no pair is an answer: the call under way keeps its message, and *out stays. */
START_TEST_IN_CONTEXT(within_a_call_no_pair_is_no_error)
{
    hbp_lengths *lengths = keep(draw_lengths(context, 14, 300, 1));
    for (int32_t mode = 0; mode < 2; mode++) {
        hbp_budgets_options options = options_of(mode);
        hbp_budgets found = {.struct_size = sizeof found}, same = found, none = found;
        OK(context, hbp_choose_budgets(context, lengths, &options, &found));
        hbp__fail(context, HBP_E_INVALID, "what the call has to say");
        OK(context, hbp__choose_budgets(context, lengths, &options, &same));
        ck_assert_mem_eq(&same, &found, sizeof found);
        options.max_vision = 4; /* not even the largest sample */
        ck_assert_int_eq(hbp__choose_budgets(context, lengths, &options, &same), HBP_E_INFEASIBLE);
        ck_assert_mem_eq(&same, &found, sizeof found);
        ck_assert_str_eq(hbp_context_message(context), "what the call has to say");
        FAILS(context, HBP_E_INFEASIBLE, "budgets: ", hbp_choose_budgets(context, lengths, &options, &none));
    }
}
END_TEST

/* An older caller's struct is not written past its end. */
START_TEST_IN_CONTEXT(the_answer_may_be_shorter)
{
    hbp_lengths *lengths = keep(draw_lengths(context, 13, SAMPLES, 1));
    hbp_budgets_options options = options_of(HBP__BUDGETS_LINE);
    hbp_budgets whole = {.struct_size = sizeof whole}, part = {.struct_size = offsetof(hbp_budgets, packs)};
    part.packs = -77;
    OK(context, hbp_choose_budgets(context, lengths, &options, &whole));
    OK(context, hbp_choose_budgets(context, lengths, &options, &part));
    ck_assert_int_eq(part.max_tokens, whole.max_tokens);
    ck_assert_int_eq(part.full_tokens, whole.full_tokens);
    ck_assert_int_eq(part.packs, -77);
}
END_TEST

static uint32_t vlm_tokens[VLM_SAMPLES], vlm_vision[VLM_SAMPLES];

START_TEST_IN_CONTEXT(the_published_choice)
{
    if (!vlm_data(vlm_tokens, vlm_vision))
        return;
    hbp_lengths_options create = {.struct_size = sizeof create, .vision = vlm_vision};
    hbp_lengths *lengths = NULL;
    MAKES(context, lengths, hbp_lengths_create_u32(context, vlm_tokens, VLM_SAMPLES, &create, &lengths));
    hbp_budgets_options options = options_of(HBP__BUDGETS_LINE);
    hbp_budgets found = {.struct_size = sizeof found};
    options.seed = 1024;
    OK(context, hbp_choose_budgets(context, lengths, &options, &found));
    check_answer(&found, &options, VLM_SAMPLES);
    ck_assert_int_eq(found.max_vision, 18);
    ck_assert_int_eq(found.max_tokens, 6016);
    ck_assert_int_eq(found.packs, 15523);
}
END_TEST

TEST_MAIN_WITH("budgets", traps_on, NULL, both_ways_find_budgets, zeros_are_the_documented_defaults,
               bad_options_are_named, within_a_call_no_pair_is_no_error, the_answer_may_be_shorter,
               the_published_choice)

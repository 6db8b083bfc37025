#include "base/methods.h"
#include "pack/vision/iterative_reference.h"

#include "data/packs/packs.h"
#include "failing.h"
#include "isf_oracle.h"
#include "keep.h"

static hbp_iterative_fill_options options_of(const isf_rules *rules)
{
    return (hbp_iterative_fill_options){.struct_size = sizeof(hbp_iterative_fill_options),
                                        .method = hbp__iterative_fill_name(HBP__ITERATIVE_FILL_ISF),
                                        .rounds = rules->rounds,
                                        .max_tokens = rules->max_tokens,
                                        .max_vision = rules->max_vision,
                                        .full_tokens = rules->full_tokens,
                                        .full_vision = rules->full_vision,
                                        .sequence_multiple = 1,
                                        .pack_multiple = 1,
                                        .seed = rules->seed};
}

static hbp_lengths *lengths_of(hbp_context *context, const int64_t *tokens, const int64_t *vision,
                               int64_t count)
{
    uint32_t *units = malloc(((size_t)count + 1) * sizeof *units);
    for (int64_t i = 0; i < count; i++)
        units[i] = vision ? (uint32_t)vision[i] : 0;
    hbp_lengths_options options = {.struct_size = sizeof options, .vision = vision ? units : NULL};
    hbp_lengths *lengths = NULL;
    OK(context, hbp_lengths_create_i64(context, tokens, count, &options, &lengths));
    free(units);
    return lengths;
}

/* Packs are the list, their sums are right, and every other sample is dropped for the right reason. */
static void check_same(const hbp_packs *packs, const isf_list *list, const isf_rules *rules, int64_t count)
{
    int64_t sum_tokens = 0, sum_vision = 0, dropped = 0;
    char *held = calloc((size_t)count, 1);
    ck_assert_int_eq(packs->count, list->packs);
    ck_assert_int_eq(packs->samples, list->samples);
    ck_assert_int_eq(packs->samples + packs->dropped, count);
    for (int64_t p = 0; p < packs->count; p++) {
        int64_t tokens = 0, vision = 0, squares = 0;
        ck_assert_int_eq(packs->offsets[p], list->offsets[p]);
        ck_assert_int_eq(packs->group[p], 0);
        for (int64_t i = packs->offsets[p]; i < list->offsets[p + 1]; i++) {
            int64_t s = list->sample[i];
            ck_assert_int_eq(packs->sample[i], s);
            ck_assert_int_eq(hbp__packs_length(packs, i), rules->tokens[s]);
            held[s] = 1;
            tokens += rules->tokens[s];
            squares += rules->tokens[s] * rules->tokens[s];
            vision += rules->vision ? rules->vision[s] : 0;
        }
        ck_assert_int_eq(packs->tokens[p], tokens);
        ck_assert_int_eq(packs->padded[p], tokens);
        ck_assert_int_eq(packs->squares[p], squares);
        if (rules->vision)
            ck_assert_int_eq(packs->vision[p], vision);
        sum_tokens += tokens;
        sum_vision += vision;
    }
    for (; dropped < packs->dropped; dropped++) {
        int64_t s = packs->dropped_sample[dropped];
        int32_t reason = rules->tokens[s] > rules->max_tokens                    ? HBP_DROPPED_OVERLONG
                         : rules->vision && rules->vision[s] > rules->max_vision ? HBP_DROPPED_OVERVISION
                                                                                 : HBP_DROPPED_LOST;
        ck_assert(!held[s]);
        held[s] = 1;
        ck_assert_int_eq(packs->dropped_reason[dropped], reason);
    }
    int64_t bound = (sum_tokens + rules->max_tokens - 1) / rules->max_tokens, other = 0;
    if (rules->vision)
        other = (sum_vision + rules->max_vision - 1) / rules->max_vision;
    ck_assert_int_eq(packs_view(packs).group_bounds[0], bound > other ? bound : other);
    ck_assert_int_ge(packs->count, packs_view(packs).group_bounds[0]);
    free(held);
}

enum { MOST = 400 };

/* Fills random data both ways; returns the samples lost with an open pack. */
static int64_t compare_once(hbp_context *context, hbp__rng *rng, int64_t longest, int64_t most_vision)
{
    int64_t tokens[MOST], vision[MOST], lost = 0;
    int64_t count = 1 + hbp__rng_below(rng, hbp__rng_below(rng, 2) ? 12 : MOST);
    int has_vision = hbp__rng_below(rng, 4) != 0;
    for (int64_t i = 0; i < count; i++) {
        tokens[i] = 1 + hbp__rng_below(rng, (uint64_t)longest);
        vision[i] = hbp__rng_below(rng, (uint64_t)most_vision + 1);
    }
    isf_rules rules = {.tokens = tokens, .vision = has_vision ? vision : NULL, .max_vision = INT32_MAX};
    /* Sometimes nothing is over a budget, sometimes much is. */
    rules.max_tokens = longest * (1 + hbp__rng_below(rng, 12)) / 3;
    rules.full_tokens = rules.max_tokens - hbp__rng_below(rng, (uint64_t)rules.max_tokens + 2);
    if (has_vision)
        rules.max_vision = 1 + most_vision * hbp__rng_below(rng, 12) / 3;
    rules.full_vision = rules.max_vision - (has_vision ? hbp__rng_below(rng, 2) : 0);
    rules.rounds = 1 + (int32_t)hbp__rng_below(rng, 6);
    rules.seed = hbp__rng_below(rng, 1000);
    hbp_lengths *lengths = lengths_of(context, tokens, rules.vision, count);
    hbp_iterative_fill_options options = options_of(&rules);
    hbp_packs *packs = NULL;
    OK(context, hbp__fill_reference(context, lengths, &options, &packs));
    isf_list list = isf_naive(&rules, count);
    check_same(packs, &list, &rules, count);
    for (int64_t d = 0; d < packs->dropped; d++)
        lost += packs->dropped_reason[d] == HBP_DROPPED_LOST;
    isf_list_free(&list);
    hbp_packs_free(packs);
    hbp_lengths_free(lengths);
    return lost;
}

START_TEST_IN_CONTEXT(packs_are_those_of_the_plain_program)
{
    hbp__rng rng = hbp__rng_make(41, 0, 0);
    int64_t losses = 0;
    for (int trial = 0; trial < 2000; trial++)
        losses += compare_once(context, &rng, 300, 6) > 0;
    for (int trial = 0; trial < 300; trial++)
        losses += compare_once(context, &rng, 100000, 3000) > 0;
    /* The open pack gets lost now and then, or the quirk was not tested. */
    ck_assert_int_gt(losses, 50);
}
END_TEST

START_TEST_IN_CONTEXT(sizes_too_wide_for_a_word_are_looked_up)
{
    hbp__rng rng = hbp__rng_make(42, 0, 0);
    for (int trial = 0; trial < 200; trial++)
        compare_once(context, &rng, INT32_MAX / 4, INT32_MAX / 8);
}
END_TEST

START_TEST_IN_CONTEXT(the_open_pack_is_lost_when_the_last_sample_is_too_large)
{
    /* RandomState(0) visits 2 8 4 9 1 6 7 3 0 5: 5 comes last. Packs are 2 8 4, 9 1 6, 7 3 0. */
    int64_t tokens[10] = {3, 3, 3, 3, 3, 99, 3, 3, 3, 3};
    hbp_lengths *lengths = keep(lengths_of(context, tokens, NULL, 10));
    isf_rules rules = {.max_tokens = 9, .max_vision = 1, .full_tokens = 9, .full_vision = 1, .rounds = 3};
    hbp_iterative_fill_options options = options_of(&rules);
    hbp_packs *packs = NULL;
    MAKES(context, packs, hbp__fill_reference(context, lengths, &options, &packs));
    static const uint32_t sample[] = {2, 8, 4, 9, 1, 6}, dropped[] = {5, 7, 3, 0};
    static const int32_t reason[] = {HBP_DROPPED_OVERLONG, HBP_DROPPED_LOST, HBP_DROPPED_LOST,
                                     HBP_DROPPED_LOST};
    hbp_packs_view view = packs_view(packs);
    ck_assert_int_eq(view.packs, 2);
    ck_assert_mem_eq(view.sample_indices, sample, sizeof sample);
    ck_assert_int_eq(view.samples, 6);
    ck_assert_mem_eq(view.dropped_indices, dropped, sizeof dropped);
    ck_assert_int_eq(view.dropped, 4);
    ck_assert_mem_eq(view.dropped_reasons, reason, sizeof reason);
    ck_assert_ptr_null(view.pack_vision);
}
END_TEST

START_TEST_IN_CONTEXT(no_sample_within_the_budgets_is_no_pack)
{
    int64_t tokens[3] = {30, 40, 50};
    hbp_lengths *lengths = keep(lengths_of(context, tokens, NULL, 3));
    isf_rules rules = {.max_tokens = 9, .max_vision = 1, .full_tokens = 9, .full_vision = 1, .rounds = 3};
    hbp_iterative_fill_options options = options_of(&rules);
    hbp_packs *packs = NULL;
    MAKES(context, packs, hbp__fill_reference(context, lengths, &options, &packs));
    ck_assert_int_eq(packs->count, 0);
    ck_assert_int_eq(packs->dropped, 3);
}
END_TEST

START_TEST_IN_CONTEXT(a_histogram_is_filled_like_its_samples)
{
    int64_t length[] = {5, 7, 90000}, count[] = {20, 9, 4}, tokens[33];
    for (int i = 0; i < 33; i++)
        tokens[i] = length[(i >= 20) + (i >= 29)];
    isf_rules rules = {
        .tokens = tokens, .max_tokens = 90012, .max_vision = INT32_MAX, .full_tokens = 90010, .rounds = 4};
    hbp_lengths *lengths = NULL;
    MAKES(context, lengths, hbp_lengths_create_histogram(context, length, count, 3, &lengths));
    hbp_iterative_fill_options options = options_of(&rules);
    hbp_packs *packs = NULL;
    MAKES(context, packs, hbp__fill_reference(context, lengths, &options, &packs));
    isf_list list = isf_naive(&rules, 33);
    check_same(packs, &list, &rules, 33);
    isf_list_free(&list);
}
END_TEST

START_TEST_IN_CONTEXT(seeds_and_ties_that_numpy_or_the_authors_refuse)
{
    int64_t tokens[2] = {1, 2}, link[2] = {8, 8};
    hbp_lengths_options links = {.struct_size = sizeof links, .links = link};
    hbp_lengths *linked = NULL, *lengths = keep(lengths_of(context, tokens, NULL, 2));
    MAKES(context, linked, hbp_lengths_create_i64(context, tokens, 2, &links, &linked));
    OK(context, hbp__reference_check(context, lengths, 2, UINT32_MAX, "fill"));
    OK(context, hbp__reference_check(context, lengths, 50, UINT32_MAX - 48, "fill"));
    FAILS(context, HBP_E_INVALID, "the seed is 4294967248; numpy takes at most 4294967247 for 50 rounds",
          hbp__reference_check(context, lengths, 50, UINT32_MAX - 47, "fill"));
    FAILS(context, HBP_E_INVALID, "the seed is 4294967296; numpy takes at most 4294967295 for 1 rounds",
          hbp__reference_check(context, lengths, 1, UINT64_C(4294967296), "fill"));
    FAILS(context, HBP_E_INVALID,
          "the published fill cannot keep linked samples together; the lengths have 1 links",
          hbp__reference_check(context, linked, 1, 0, "fill"));
}
END_TEST

static hbp_status fill_small(hbp_context *context, void *user)
{
    static const int64_t tokens[] = {3, 3, 3, 3, 3, 99, 3, 3, 3, 3};
    static const isf_rules rules = {
        .max_tokens = 9, .max_vision = 1, .full_tokens = 9, .full_vision = 1, .rounds = 3};
    hbp_iterative_fill_options options = options_of(&rules);
    hbp_lengths *lengths = NULL;
    hbp_packs *packs = NULL;
    (void)user;
    HBP__TRY(hbp_lengths_create_i64(context, tokens, 10, NULL, &lengths));
    hbp_status status = hbp__fill_reference(context, lengths, &options, &packs);
    ck_assert(status == HBP_OK || !packs);
    hbp_packs_free(packs);
    hbp_lengths_free(lengths);
    return status;
}

/* More packs than are expected from the tokens: the columns grow. */
static hbp_status fill_many_packs(hbp_context *context, void *user)
{
    static const isf_rules rules = {
        .max_tokens = 100, .max_vision = 1, .full_tokens = 100, .full_vision = 1, .rounds = 2};
    hbp_iterative_fill_options options = options_of(&rules);
    int64_t tokens[300];
    for (int i = 0; i < 300; i++)
        tokens[i] = 51;
    hbp_lengths *lengths = NULL;
    hbp_packs *packs = NULL;
    (void)user;
    HBP__TRY(hbp_lengths_create_i64(context, tokens, 300, NULL, &lengths));
    hbp_status status = hbp__fill_reference(context, lengths, &options, &packs);
    if (status == HBP_OK)
        ck_assert_int_eq(packs->count, 300);
    hbp_packs_free(packs);
    hbp_lengths_free(lengths);
    return status;
}

START_TEST(survives_failing_allocations)
{
    failing_sweep(fill_small, NULL);
    failing_sweep(fill_many_packs, NULL);
}
END_TEST

START_TEST(can_be_cancelled)
{
    ck_assert_int_gt(cancel_sweep(fill_small, NULL), 2);
}
END_TEST

static uint32_t vlm_tokens[VLM_SAMPLES], vlm_vision[VLM_SAMPLES];

START_TEST_IN_CONTEXT(published_numbers_of_packs)
{
    static const struct {
        int64_t vision, tokens;
        int32_t rounds;
        int64_t packs;
    } golden[] = {{9, 4096, 1, 42680},  {9, 4096, 2, 42315},  {9, 4096, 5, 42431},
                  {9, 4096, 10, 42838}, {9, 4096, 50, 43942}, {18, 6016, 50, 15523}};
    if (!vlm_data(vlm_tokens, vlm_vision))
        return;
    hbp_lengths_options create = {.struct_size = sizeof create, .vision = vlm_vision};
    hbp_lengths *lengths = NULL;
    MAKES(context, lengths, hbp_lengths_create_u32(context, vlm_tokens, VLM_SAMPLES, &create, &lengths));
    for (size_t g = 0; g < sizeof golden / sizeof *golden; g++) {
        isf_rules rules = {.max_tokens = golden[g].tokens,
                           .max_vision = golden[g].vision,
                           .full_tokens = golden[g].tokens - 128,
                           .full_vision = golden[g].vision,
                           .rounds = golden[g].rounds,
                           .seed = 1024};
        hbp_iterative_fill_options options = options_of(&rules);
        hbp_packs *packs = NULL;
        OK(context, hbp__fill_reference(context, lengths, &options, &packs));
        ck_assert_int_eq(packs->count, golden[g].packs);
        ck_assert_int_eq(packs->samples, VLM_SAMPLES);
        ck_assert_int_eq(packs->dropped, 0);
        hbp_packs_free(packs);
    }
}
END_TEST

TEST_MAIN("iterative_reference", packs_are_those_of_the_plain_program,
          sizes_too_wide_for_a_word_are_looked_up, the_open_pack_is_lost_when_the_last_sample_is_too_large,
          no_sample_within_the_budgets_is_no_pack, a_histogram_is_filled_like_its_samples,
          seeds_and_ties_that_numpy_or_the_authors_refuse, survives_failing_allocations, can_be_cancelled,
          published_numbers_of_packs)

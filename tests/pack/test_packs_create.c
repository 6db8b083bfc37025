/* Packs made elsewhere: the library's own packs, handed back, are the same and balance to the same plan;
 * whatever breaks a promise is named. */
#include "costs.h"
#include "failing.h"
#include "fill_check.h"
#include "keep.h"
#include "views.h"

/* What a trainer would hand over. */
typedef struct outside {
    int64_t packs;
    int64_t offsets[4096];
    int64_t samples[4096];
    int32_t groups[4096];
} outside;

static void take_apart(const hbp_packs *packs, outside *o)
{
    hbp_packs_view v = {.struct_size = sizeof v};
    ck_assert_int_eq(hbp_packs_get_view(packs, &v), HBP_OK);
    ck_assert_int_lt(v.samples, 4096);
    o->packs = v.packs;
    memcpy(o->offsets, v.pack_offsets, (size_t)(v.packs + 1) * sizeof *o->offsets);
    memcpy(o->groups, v.pack_groups, (size_t)v.packs * sizeof *o->groups);
    for (int64_t i = 0; i < v.samples; i++)
        o->samples[i] = v.sample_indices[i];
}

START_TEST_IN_CONTEXT(packs_handed_back_are_the_same)
{
    static outside o;
    hbp__rng rng = hbp__rng_make(91, 0, 0);
    static const int64_t pack_length[] = {2048, 16384};
    static const int32_t sp[] = {1, 2};
    hbp_cost *cost = keep(test_cost(context));
    hbp_groups *groups = NULL;
    MAKES(context, groups, hbp_groups_create(context, cost, 2, pack_length, sp, NULL, 0, &groups));
    for (int round = 0; round < 20; round++) {
        hbp_lengths *lengths = check_lengths(context, &rng, 200 + hbp__rng_below(&rng, 800), 9000, round % 2);
        hbp_fill_options options = {.struct_size = sizeof options,
                                    .sequence_multiple = 1 + round % 3 * 7,
                                    .pack_multiple = 1 + round % 4 * 3};
        hbp_packs *packs = NULL, *again = NULL, *placed = NULL;
        hbp_plan *plan = NULL, *other = NULL;
        OK(context, hbp_greedy_fill(context, lengths, groups, &options, &packs));
        take_apart(packs, &o);
        OK(context, hbp_packs_create(context, lengths, groups, o.packs, o.offsets, o.samples, o.groups,
                                     &options, &again));
        check_packs(again, lengths, groups, &options);
        ck_assert_mem_eq(again->tokens, packs->tokens, (size_t)o.packs * sizeof *packs->tokens);
        ck_assert_mem_eq(again->padded, packs->padded, (size_t)o.packs * sizeof *packs->padded);
        ck_assert_mem_eq(again->squares, packs->squares, (size_t)o.packs * sizeof *packs->squares);
        for (int64_t g = 0; g < 2; g++)
            ck_assert_int_le(packs_view(again).group_bounds[g], packs_view(packs).group_bounds[g]);
        OK(context, hbp_balance_attention(context, packs, groups, cost, NULL, &plan));
        OK(context, hbp_balance_attention(context, again, groups, cost, NULL, &other));
        ck_assert_uint_eq(plan_digest(plan), plan_digest(other));
        OK(context, hbp_plan_validate(context, other, lengths, cost));
        /* Without groups each goes to the first that holds it. */
        OK(context, hbp_packs_create(context, lengths, groups, o.packs, o.offsets, o.samples, NULL, &options,
                                     &placed));
        for (int64_t p = 0; p < o.packs; p++)
            ck_assert_int_eq(placed->group[p], placed->padded[p] > pack_length[0]);
        hbp_plan_free(plan);
        hbp_plan_free(other);
        hbp_packs_free(placed);
        hbp_packs_free(again);
        hbp_packs_free(packs);
        hbp_lengths_free(lengths);
    }
}
END_TEST

#define REFUSES(text, change)                                                                                \
    do {                                                                                                     \
        outside wrong = right;                                                                               \
        change;                                                                                              \
        hbp_packs *out = NULL;                                                                               \
        FAILS(context, HBP_E_INVALID, text,                                                                  \
              hbp_packs_create(context, lengths, groups, wrong.packs, wrong.offsets, wrong.samples,          \
                               wrong.groups, NULL, &out));                                                   \
        ck_assert_ptr_null(out);                                                                             \
    } while (0)

START_TEST_IN_CONTEXT(breaches_are_named)
{
    static outside right = {2, {0, 2, 4}, {3, 0, 1, 2}, {1, 0}};
    static const uint32_t tokens[] = {500, 300, 200, 900};
    static const int64_t links[] = {7, -1, -1, 7}, pack_length[] = {1000, 2000};
    static const int32_t sp[] = {1, 1};
    hbp_cost *cost = NULL;
    MAKES(context, cost, hbp_cost_create_plain(context, 4, &cost));
    hbp_groups *groups = NULL;
    MAKES(context, groups, hbp_groups_create(context, cost, 2, pack_length, sp, NULL, 0, &groups));
    hbp_lengths_options options = {.struct_size = sizeof options, .links = links};
    hbp_lengths *lengths = NULL;
    MAKES(context, lengths, hbp_lengths_create_u32(context, tokens, 4, &options, &lengths));
    hbp_packs *packs = NULL;
    MAKES(context, packs,
          hbp_packs_create(context, lengths, groups, 2, right.offsets, right.samples, right.groups, NULL,
                           &packs));
    REFUSES("`packs` is 0; there must be 1 or more", wrong.packs = 0);
    REFUSES("pack_offsets[0] is 1; it must be 0", wrong.offsets[0] = 1);
    REFUSES("pack_offsets[1] is 0 after 0", wrong.offsets[1] = 0);
    REFUSES("pack_offsets[2] is 5 after 2", wrong.offsets[2] = 5);
    REFUSES("the packs hold 3 samples; the lengths have 4", wrong.offsets[2] = 3);
    REFUSES("sample_indices[2] is 4; it must be in 0..3", wrong.samples[2] = 4);
    REFUSES("sample_indices[0] is -1; it must be in 0..3", wrong.samples[0] = -1);
    REFUSES("sample 0 is in pack 0 and in pack 1", wrong.samples[2] = 0);
    REFUSES("sample 0 is in pack 0 twice", wrong.samples[1] = wrong.samples[0] = 0);
    REFUSES("sample 0 is in pack 1, samples linked to it in pack 0",
            (wrong.samples[1] = 2, wrong.samples[3] = 0));
    REFUSES("pack_groups[1] is 2; it must be in 0..1", wrong.groups[1] = 2);
    REFUSES("pack 0 has 1400 tokens with its padding; packs of group 0 hold 1000", wrong.groups[0] = 0);
    hbp_packs *out = NULL;
    FAILS(context, HBP_E_INVALID, "`sequence_multiple` is -1; it must be in 0..",
          hbp_packs_create(
              context, lengths, groups, 2, right.offsets, right.samples, right.groups,
              &(hbp_fill_options){.struct_size = sizeof(hbp_fill_options), .sequence_multiple = -1}, &out));
    FAILS(context, HBP_E_INVALID, "sample_indices is NULL",
          hbp_packs_create(context, lengths, groups, 2, right.offsets, NULL, NULL, NULL, &out));
}
END_TEST

/* Of the options only the multiples are read: packs of two are bounded by their tokens. */
START_TEST_IN_CONTEXT(a_cap_on_samples_says_nothing_of_packs_made_elsewhere)
{
    static const int64_t offsets[] = {0, 2, 4}, samples[] = {0, 1, 2, 3}, pack_length[] = {1000};
    static const int32_t sp[] = {1};
    static const uint32_t tokens[] = {500, 300, 200, 400};
    hbp_cost *cost = NULL;
    MAKES(context, cost, hbp_cost_create_plain(context, 1, &cost));
    hbp_groups *groups = NULL;
    MAKES(context, groups, hbp_groups_create(context, cost, 1, pack_length, sp, NULL, 0, &groups));
    hbp_lengths *lengths = NULL;
    MAKES(context, lengths, hbp_lengths_create_u32(context, tokens, 4, NULL, &lengths));
    const hbp_fill_options options = {.struct_size = sizeof options, .max_samples = 1};
    hbp_packs *packs = NULL;
    MAKES(context, packs,
          hbp_packs_create(context, lengths, groups, 2, offsets, samples, NULL, &options, &packs));
    ck_assert_int_eq(packs->bound[0], 2);
}
END_TEST

static hbp_status create_once(hbp_context *context, void *user)
{
    static const int64_t offsets[] = {0, 2, 4}, samples[] = {0, 1, 2, 3}, pack_length[] = {1000, 2000};
    static const int32_t sp[] = {1, 1};
    static const uint32_t tokens[] = {500, 300, 200, 900};
    (void)user;
    hbp_cost *cost = NULL;
    hbp_groups *groups = NULL;
    hbp_lengths *lengths = NULL;
    hbp_packs *packs = NULL;
    hbp_status status = hbp_cost_create_plain(context, 6, &cost);
    if (status >= 0)
        status = hbp_groups_create(context, cost, 2, pack_length, sp, NULL, 0, &groups);
    if (status >= 0)
        status = hbp_lengths_create_u32(context, tokens, 4, NULL, &lengths);
    if (status >= 0)
        status = hbp_packs_create(context, lengths, groups, 2, offsets, samples, NULL, NULL, &packs);
    hbp_packs_free(packs);
    hbp_lengths_free(lengths);
    hbp_groups_free(groups);
    hbp_cost_free(cost);
    return status;
}

START_TEST(nothing_leaks_when_memory_is_short)
{
    failing_sweep(create_once, NULL);
}
END_TEST

TEST_MAIN("packs_create", packs_handed_back_are_the_same, breaches_are_named,
          a_cap_on_samples_says_nothing_of_packs_made_elsewhere, nothing_leaks_when_memory_is_short)

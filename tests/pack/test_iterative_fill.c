#include "base/methods.h"
#include "hbp/pack.h"

#include "data/packs/packs.h"
#include "failing.h"
#include "isf_oracle.h"
#include "keep.h"

enum { SAMPLES = 500 };

static hbp_lengths *draw_lengths(hbp_context *context, uint64_t seed, int has_vision)
{
    hbp__rng rng = hbp__rng_make(seed, 0, 0);
    uint32_t tokens[SAMPLES], vision[SAMPLES];
    for (int i = 0; i < SAMPLES; i++) {
        tokens[i] = 1 + hbp__rng_below(&rng, 1000);
        vision[i] = hbp__rng_below(&rng, 6);
    }
    hbp_lengths_options options = {.struct_size = sizeof options, .vision = has_vision ? vision : NULL};
    hbp_lengths *lengths = NULL;
    OK(context, hbp_lengths_create_u32(context, tokens, SAMPLES, &options, &lengths));
    return lengths;
}

static hbp_iterative_fill_options options_of(int32_t mode)
{
    hbp_iterative_fill_options options = {.struct_size = sizeof options};
    options.method = hbp__iterative_fill_name(mode);
    options.max_tokens = 4096;
    options.max_vision = 20;
    return options;
}

/* Every sample in one pack or dropped, once, and both budgets kept. */
static void check_packs(const hbp_packs *packs, const hbp_lengths *lengths,
                        const hbp_iterative_fill_options *options)
{
    char seen[SAMPLES] = {0};
    hbp_packs_view view = packs_view(packs);
    ck_assert_int_eq(view.samples + view.dropped, SAMPLES);
    for (int64_t p = 0; p < view.packs; p++) {
        int64_t tokens = 0, units = 0;
        for (int64_t i = view.pack_offsets[p]; i < view.pack_offsets[p + 1]; i++) {
            ck_assert_int_eq(seen[view.sample_indices[i]]++, 0);
            tokens += hbp_lengths_get_length(lengths, view.sample_indices[i]);
            units += hbp_lengths_get_vision(lengths, view.sample_indices[i]);
        }
        ck_assert_int_ge(view.pack_padded_tokens[p], tokens);
        ck_assert_int_le(view.pack_padded_tokens[p], options->max_tokens);
        if (view.pack_vision)
            ck_assert_int_eq(view.pack_vision[p], units);
        if (view.pack_vision)
            ck_assert_int_le(units, options->max_vision);
    }
    for (int64_t d = 0; d < view.dropped; d++)
        ck_assert_int_eq(seen[view.dropped_indices[d]]++, 0);
    ck_assert_int_le(packs_view(packs).group_bounds[0], view.packs);
    ck_assert_int_gt(packs_view(packs).group_bounds[0], 0);
}

START_TEST_IN_CONTEXT(both_modes_fill_and_the_default_never_needs_more)
{
    for (uint64_t seed = 0; seed < 20; seed++) {
        hbp_lengths *lengths = draw_lengths(context, seed, seed % 3 != 0);
        hbp_packs *packs[2] = {NULL, NULL};
        int64_t count[2];
        for (int32_t mode = 0; mode < 2; mode++) {
            hbp_iterative_fill_options options = options_of(mode);
            options.seed = seed;
            OK(context, hbp_iterative_fill(context, lengths, &options, &packs[mode]));
            check_packs(packs[mode], lengths, &options);
            count[mode] = packs_view(packs[mode]).packs;
        }
        ck_assert_int_le(count[HBP__ITERATIVE_FILL_VECTOR], count[HBP__ITERATIVE_FILL_ISF]);
        hbp_packs_free(packs[0]);
        hbp_packs_free(packs[1]);
        hbp_lengths_free(lengths);
    }
}
END_TEST

/* What a zero stands for, said outright, makes the same packs; another value does not. */
START_TEST_IN_CONTEXT(zeros_are_the_documented_defaults)
{
    hbp_lengths *lengths = keep(draw_lengths(context, 1, 1));
    hbp_iterative_fill_options plain = options_of(HBP__ITERATIVE_FILL_ISF), same = plain, other = plain;
    hbp_packs *packs[3] = {NULL, NULL, NULL};
    same.rounds = 50;
    same.full_tokens = 4096 - 128;
    same.full_vision = 20;
    same.sequence_multiple = same.pack_multiple = 1;
    other.full_tokens = 4096 - 900;
    OK(context, hbp_iterative_fill(context, lengths, &plain, &packs[0]));
    OK(context, hbp_iterative_fill(context, lengths, &same, &packs[1]));
    OK(context, hbp_iterative_fill(context, lengths, &other, &packs[2]));
    ck_assert_int_eq(packs[0]->count, packs[1]->count);
    ck_assert_mem_eq(packs[0]->sample, packs[1]->sample, SAMPLES * sizeof *packs[0]->sample);
    ck_assert_mem_ne(packs[0]->sample, packs[2]->sample, SAMPLES * sizeof *packs[0]->sample);
    for (int i = 0; i < 3; i++)
        hbp_packs_free(packs[i]);
}
END_TEST

START_TEST_IN_CONTEXT(tokens_alone_count_without_a_second_size)
{
    hbp_lengths *lengths = keep(draw_lengths(context, 2, 0));
    for (int32_t mode = 0; mode < 2; mode++) {
        hbp_iterative_fill_options options = options_of(mode);
        hbp_packs *packs[2] = {NULL, NULL};
        options.max_vision = 0;
        OK(context, hbp_iterative_fill(context, lengths, &options, &packs[0]));
        options.max_vision = 3;
        OK(context, hbp_iterative_fill(context, lengths, &options, &packs[1]));
        check_packs(packs[0], lengths, &options);
        ck_assert_ptr_null(packs_view(packs[0]).pack_vision);
        ck_assert_int_eq(packs[0]->count, packs[1]->count);
        ck_assert_mem_eq(packs[0]->sample, packs[1]->sample, SAMPLES * sizeof *packs[0]->sample);
        hbp_packs_free(packs[0]);
        hbp_packs_free(packs[1]);
    }
}
END_TEST

START_TEST_IN_CONTEXT(bad_options_are_named)
{
    hbp_lengths *lengths = keep(draw_lengths(context, 3, 1));
    hbp_packs *packs = NULL;
    hbp_iterative_fill_options o;
#define REFUSED(mode, field, value, text)                                                                    \
    do {                                                                                                     \
        o = options_of(mode);                                                                                \
        o.field = value;                                                                                     \
        FAILS(context, HBP_E_INVALID, text, hbp_iterative_fill(context, lengths, &o, &packs));               \
        ck_assert_ptr_null(packs);                                                                           \
    } while (0)
    REFUSED(0, method, "isff", "`method` is 'isff'; did you mean 'isf'?");
    REFUSED(1, rounds, -1, "`rounds` is -1; it must be in 0..2147483647");
    REFUSED(0, effort, 10, "`effort` is 10; it must be in 0..9");
    REFUSED(0, effort, -1, "`effort` is -1; it must be in 0..9");
    REFUSED(0, max_samples, -2, "`max_samples` is -2; it must be in 0..2147483647");
    REFUSED(0, over_long, HBP_OVERLONG_SPLIT, "`over_long` is 3; it must be in 0..1");
    REFUSED(0, over_long, -1, "`over_long` is -1");
    REFUSED(0, max_tokens, 0, "`max_tokens` is 0; it must be in 1..2147483647");
    REFUSED(0, max_tokens, -7, "`max_tokens` is -7; it must be in 1..2147483647");
    REFUSED(0, max_tokens, INT64_C(2147483648), "`max_tokens` is 2147483648");
    REFUSED(0, max_vision, 0, "`max_vision` is 0; it must be in 1..2147483647");
    REFUSED(1, max_vision, INT64_C(2147483648), "`max_vision` is 2147483648");
    REFUSED(1, full_tokens, -1, "`full_tokens` is -1; it must be in 0..");
    REFUSED(1, full_vision, -3, "`full_vision` is -3; it must be in 0..");
    REFUSED(0, sequence_multiple, -1, "`sequence_multiple` is -1; it must be in 0..1048576");
    REFUSED(0, pack_multiple, 1048577, "`pack_multiple` is 1048577; it must be in 0..1048576");
    REFUSED(0, pack_multiple, 4097, "a pack of 4096 tokens is shorter than pack_multiple 4097");
    REFUSED(1, max_samples, 3, "max_samples is 3; the published fill caps no samples");
    REFUSED(1, sequence_multiple, 8, "sequence_multiple is 8; the published fill does not pad");
    REFUSED(1, pack_multiple, 64, "pack_multiple is 64; the published fill does not pad");
    REFUSED(1, seed, UINT64_C(4294967248),
            "the seed is 4294967248; numpy takes at most 4294967247 for 50 rounds");
    REFUSED(0, struct_size, 3, "hbp_iterative_fill_options");
#undef REFUSED
    o = options_of(1);
    FAILS(context, HBP_E_INVALID, "lengths", hbp_iterative_fill(context, NULL, &o, &packs));
    FAILS(context, HBP_E_INVALID, "options", hbp_iterative_fill(context, lengths, NULL, &packs));
    FAILS(context, HBP_E_INVALID, "out", hbp_iterative_fill(context, lengths, &o, NULL));
    ck_assert_int_eq(hbp_iterative_fill(NULL, lengths, &o, &packs), HBP_E_INVALID);
}
END_TEST

START_TEST_IN_CONTEXT(the_reference_refuses_what_it_cannot_do)
{
    uint32_t tokens[] = {30, 40, 50}, vision[] = {1, 2, 3};
    int64_t link[] = {-1, 4, 4};
    hbp_lengths_options create = {.struct_size = sizeof create, .vision = vision};
    hbp_lengths *lengths = NULL, *linked = NULL, *text = NULL;
    MAKES(context, text, hbp_lengths_create_u32(context, tokens, 3, NULL, &text));
    MAKES(context, lengths, hbp_lengths_create_u32(context, tokens, 3, &create, &lengths));
    create.links = link;
    MAKES(context, linked, hbp_lengths_create_u32(context, tokens, 3, &create, &linked));
    hbp_iterative_fill_options options = options_of(HBP__ITERATIVE_FILL_ISF);
    hbp_packs *packs = NULL;
    FAILS(context, HBP_E_INVALID, "the published fill cannot keep linked samples together",
          hbp_iterative_fill(context, linked, &options, &packs));
    options.max_tokens = 29;
    FAILS(context, HBP_E_INVALID, "none of 3 samples is within 29 tokens and 20 vision units",
          hbp_iterative_fill(context, lengths, &options, &packs));
    ck_assert_ptr_null(packs);
    FAILS(context, HBP_E_INVALID, "none of 3 samples is within 29 tokens",
          hbp_iterative_fill(context, text, &options, &packs));
    ck_assert_str_eq(hbp_context_message(context), "none of 3 samples is within 29 tokens");
    /* Under ERROR, too, it drops what is over a budget, as the authors do. */
    options.max_tokens = 4096;
    options.max_vision = 2;
    MAKES(context, packs, hbp_iterative_fill(context, lengths, &options, &packs));
    ck_assert_int_eq(packs->dropped_sample[0], 2);
    ck_assert_int_eq(packs->dropped_reason[0], HBP_DROPPED_OVERVISION);
}
END_TEST

/* The struct as this version has it; a longer one is a newer caller's. */
START_TEST_IN_CONTEXT(options_may_be_longer)
{
    hbp_lengths *lengths = keep(draw_lengths(context, 4, 1));
    struct {
        hbp_iterative_fill_options known;
        int64_t later;
    } longer;
    memset(&longer, 0, sizeof longer);
    longer.known.struct_size = sizeof longer;
    longer.known.method = hbp__iterative_fill_name(HBP__ITERATIVE_FILL_ISF);
    longer.known.max_tokens = 4096;
    longer.known.max_vision = 20;
    hbp_packs *packs = NULL;
    OK(context, hbp_iterative_fill(context, lengths, &longer.known, &packs));
    hbp_packs_free(packs);
    packs = NULL;
    longer.later = 1;
    ck_assert_int_eq(hbp_iterative_fill(context, lengths, &longer.known, &packs), HBP_E_VERSION);
    ck_assert_ptr_null(packs);
}
END_TEST

static hbp_status fill_once(hbp_context *context, void *user)
{
    static const uint32_t tokens[] = {30, 40, 50, 60, 1000}, vision[] = {1, 2, 3, 1, 1};
    hbp_lengths_options create = {.struct_size = sizeof create, .vision = vision};
    hbp_lengths *lengths = NULL;
    hbp_packs *packs = NULL;
    hbp_iterative_fill_options options = {.struct_size = sizeof options};
    options.method = hbp__iterative_fill_name(*(int32_t *)user);
    options.max_tokens = 100;
    options.max_vision = 3;
    options.over_long = HBP_OVERLONG_DROP;
    HBP__TRY(hbp_lengths_create_u32(context, tokens, 5, &create, &lengths));
    hbp_status status = hbp_iterative_fill(context, lengths, &options, &packs);
    ck_assert((status >= 0) == (packs != NULL));
    hbp_packs_free(packs);
    hbp_lengths_free(lengths);
    return status;
}

START_TEST(survives_failing_allocations)
{
    int32_t modes[] = {HBP__ITERATIVE_FILL_VECTOR, HBP__ITERATIVE_FILL_ISF};
    failing_sweep(fill_once, &modes[0]);
    failing_sweep(fill_once, &modes[1]);
}
END_TEST

static uint32_t vlm_tokens[VLM_SAMPLES], vlm_vision[VLM_SAMPLES];

START_TEST_IN_CONTEXT(the_default_beats_the_published_numbers_of_packs)
{
    static const struct {
        int64_t vision, tokens, packs;
    } golden[] = {{9, 4096, 42315}, {18, 6016, 15523}};
    if (!vlm_data(vlm_tokens, vlm_vision))
        return;
    hbp_lengths_options create = {.struct_size = sizeof create, .vision = vlm_vision};
    hbp_lengths *lengths = NULL;
    MAKES(context, lengths, hbp_lengths_create_u32(context, vlm_tokens, VLM_SAMPLES, &create, &lengths));
    for (size_t g = 0; g < sizeof golden / sizeof *golden; g++) {
        hbp_iterative_fill_options options = options_of(HBP__ITERATIVE_FILL_VECTOR);
        hbp_packs *packs = NULL;
        options.max_tokens = golden[g].tokens;
        options.max_vision = golden[g].vision;
        OK(context, hbp_iterative_fill(context, lengths, &options, &packs));
        ck_assert_int_lt(packs->count, golden[g].packs);
        ck_assert_int_eq(packs->samples, VLM_SAMPLES);
        hbp_packs_free(packs);
    }
}
END_TEST

TEST_MAIN("iterative_fill", both_modes_fill_and_the_default_never_needs_more,
          zeros_are_the_documented_defaults, tokens_alone_count_without_a_second_size, bad_options_are_named,
          the_reference_refuses_what_it_cannot_do, options_may_be_longer, survives_failing_allocations,
          the_default_beats_the_published_numbers_of_packs)

/* A plan by patterns and what says which samples it has: the index of its lengths, and the lengths
 * themselves. */
#include "data/lengths/length_index.h"

#include "epoch/patterns.h"
#include "epoch/planned.h"
#include "keep.h"
#include "patterned.h"

/* Two indexes of one histogram: the order of the samples is what tells them apart. */
START_TEST_IN_CONTEXT(a_cursor_holds_the_index_to_its_order)
{
    uint32_t values[] = {700, 9, 9, 30, 700, 12, 30, 9, 5000, 700};
    enum { COUNT = sizeof values / sizeof *values };
    hbp_cost *cost = keep(test_cost(context));
    hbp_lengths *lengths, *others;
    hbp_length_index *index, *other;
    hbp_pattern_plan *plan;
    OK(context, hbp_lengths_create_u32(context, values, COUNT, NULL, &lengths));
    OK(context, hbp_plan_patterns(context, keep(lengths), cost, NULL, &plan));
    OK(context, hbp_length_index_create(context, lengths, &index));
    values[0] = 9;
    values[1] = 700;
    OK(context, hbp_lengths_create_u32(context, values, COUNT, NULL, &others));
    OK(context, hbp_length_index_create(context, keep(others), &other));
    keep(plan);
    keep(index);
    keep(other);
    const hbp_length_index *all[] = {index, other, NULL};
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 3; k++) {
            uint8_t cursor[HBP_CURSOR_BYTES];
            int64_t step = -1;
            OK(context, hbp_pattern_plan_save_cursor(context, plan, all[i], 0, cursor));
            if (i == k)
                OK(context, hbp_pattern_plan_load_cursor(context, plan, all[k], cursor, &step));
            else
                FAILS(context, HBP_E_INVALID, "the lengths changed",
                      hbp_pattern_plan_load_cursor(context, plan, all[k], cursor, &step));
        }
}
END_TEST

/* What a file may say of its lengths and their digests, where its columns are as they should be. */
START_TEST_IN_CONTEXT(lengths_are_held_to_what_the_plan_says_of_them)
{
    hbp__rng rng = hbp__rng_make(21, 0, 0);
    hbp_cost *cost = keep(test_cost(context));
    hbp_lengths *lengths = draw_lengths(context, &rng, 2000, 9000, 1),
                *few = draw_lengths(context, &rng, 50, 9000, 1);
    hbp_pattern_plan *plan;
    hbp_length_index *index;
    hbp_plan *out;
    OK(context, hbp_plan_patterns(context, lengths, cost, NULL, &plan));
    OK(context, hbp_length_index_create(context, few, &index));
    keep(plan);
    keep(index);
#define TELLS(field, change, text)                                                                           \
    do {                                                                                                     \
        const int64_t kept = (int64_t)plan->field;                                                           \
        plan->field += (change);                                                                             \
        plan->digest = hbp__pattern_plan_digest(plan);                                                       \
        FAILS(context, HBP_E_INVALID, text, hbp_pattern_plan_validate(context, plan, lengths, cost));        \
        plan->field -= (change);                                                                             \
        plan->digest = hbp__pattern_plan_digest(plan);                                                       \
        ck_assert_int_eq((int64_t)plan->field, kept);                                                        \
    } while (0)
    OK(context, hbp_pattern_plan_validate(context, plan, lengths, cost));
    TELLS(loss_tokens, -1, "loss_tokens is");
    TELLS(overlong_samples, 9, "overlong_samples is 9; the lengths make it 0");
    TELLS(overlong_tokens, 9, "overlong_tokens is 9; the lengths make it 0");
    TELLS(histogram_digest, 1, "histogram_digest is");
    /* An index whose digests the plan claims, and that is too small for its samples. */
    plan->histogram_digest = index->histogram_digest;
    plan->lengths_digest = few->digest;
    plan->is_bare = hbp__lengths_are_bare(few);
    plan->shifted_loss = few->shifted_loss;
    FAILS(context, HBP_E_INVALID, "the index is of 50 samples, the plan of 2000",
          hbp_pattern_plan_expand(context, plan, index, 0, 1, &out));
    FAILS(context, HBP_E_INVALID, "0 steps from step -9223372036854775808 on; the plan has",
          hbp_pattern_plan_expand(context, plan, index, INT64_MIN, 0, &out));
}
END_TEST

static hbp_length_index *index_of(hbp_context *context, const uint32_t *values, int64_t count,
                                  const hbp_lengths_options *options, int64_t limit)
{
    hbp_lengths *lengths, *limited;
    hbp_length_index *index;
    OK(context, hbp_lengths_create_u32(context, values, count, options, &lengths));
    keep(lengths);
    if (limit) {
        OK(context, hbp_lengths_limit(context, lengths, limit, HBP_OVERLONG_DROP, &limited));
        lengths = keep(limited);
    }
    OK(context, hbp_length_index_create(context, lengths, &index));
    return keep(index);
}

/* An index of the same histogram whose samples have other things beside their lengths. */
START_TEST_IN_CONTEXT(an_index_of_other_samples_is_refused)
{
    enum { SAMPLES = 200 };
    static const char other[] = "samples with other loss tokens, cuts or dropped samples";
    uint32_t values[SAMPLES + 1], loss[SAMPLES], pieces[SAMPLES / 2];
    hbp__rng rng = hbp__rng_make(15, 0, 0);
    for (int i = 0; i < SAMPLES; i += 2) {
        values[i] = 1000;
        values[i + 1] = 1 + hbp__rng_below(&rng, 1000);
        pieces[i / 2] = 1000 + values[i + 1];
        loss[i] = loss[i + 1] = 1;
    }
    values[SAMPLES] = 5000;
    hbp_cost *cost = keep(test_cost(context));
    const hbp_lengths_options shifted = {.struct_size = sizeof shifted, .shifted_loss = 1},
                              some = {.struct_size = sizeof some, .loss_tokens = loss};
    hbp_lengths *bare, *whole, *cut, *with_loss;
    hbp_pattern_plan *plan, *loss_plan;
    hbp_length_index *split, *counted;
    hbp_length_index_builder *builder;
    hbp_plan *listed;
    OK(context, hbp_lengths_create_u32(context, values, SAMPLES, NULL, &bare));
    OK(context, hbp_plan_patterns(context, keep(bare), cost, NULL, &plan));
    keep(plan);
    OK(context,
       hbp_pattern_plan_expand(context, plan, index_of(context, values, SAMPLES, NULL, 0), 0, 1, &listed));
    keep(listed);
#define REFUSES(plan, index, text)                                                                           \
    FAILS(context, HBP_E_INVALID, text, hbp_pattern_plan_expand(context, plan, index, 0, 1, &listed))
    REFUSES(plan, index_of(context, values, SAMPLES, &shifted, 0), other);
    REFUSES(plan, index_of(context, values, SAMPLES, &some, 0), other);
    REFUSES(plan, index_of(context, values, SAMPLES + 1, NULL, 1000), other);
    /* The same lengths as pieces of longer samples. */
    OK(context, hbp_lengths_create_u32(context, pieces, SAMPLES / 2, NULL, &whole));
    OK(context, hbp_lengths_limit(context, keep(whole), 1000, HBP_OVERLONG_SPLIT, &cut));
    OK(context, hbp_length_index_create(context, keep(cut), &split));
    REFUSES(plan, keep(split), other);
    /* A plan of loss tokens: other ones, none, and a stream that has none. */
    OK(context, hbp_lengths_create_u32(context, values, SAMPLES, &some, &with_loss));
    OK(context, hbp_plan_patterns(context, keep(with_loss), cost, NULL, &loss_plan));
    keep(loss_plan);
    OK(context, hbp_pattern_plan_expand(context, loss_plan, index_of(context, values, SAMPLES, &some, 0), 0,
                                        1, &listed));
    keep(listed);
    REFUSES(loss_plan, index_of(context, values, SAMPLES, NULL, 0), "the index is of other lengths: theirs");
    OK(context, hbp_length_index_builder_create(context, bare, &builder));
    keep(builder);
    OK(context, hbp_length_index_builder_append(context, builder, values, SAMPLES));
    OK(context, hbp_length_index_builder_finish(context, builder, &counted));
    keep(counted);
    OK(context, hbp_pattern_plan_expand(context, plan, counted, 0, 1, &listed));
    keep(listed);
    /* A stream lists what an array of its lengths does, digest and all. */
    hbp_plan *of_array;
    OK(context,
       hbp_pattern_plan_expand(context, plan, index_of(context, values, SAMPLES, NULL, 0), 0, 1, &of_array));
    keep(of_array);
    ck_assert_uint_eq(listed->digest, of_array->digest);
    ck_assert_uint_eq(listed->lengths_digest, bare->digest);
    REFUSES(loss_plan, counted, "the index is of other lengths: theirs");
    loss[0] = 2;
    REFUSES(loss_plan, index_of(context, values, SAMPLES, &some, 0), "the index is of other lengths: theirs");
#undef REFUSES
}
END_TEST

TEST_MAIN("patterns_index", a_cursor_holds_the_index_to_its_order,
          lengths_are_held_to_what_the_plan_says_of_them, an_index_of_other_samples_is_refused)

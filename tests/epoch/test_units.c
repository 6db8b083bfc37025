#include "base/methods.h"
#include "batched.h"
#include "epoch/units.h"
#include "failing.h"
#include "keep.h"

START_TEST_IN_CONTEXT(steps_hold_the_samples_asked_for)
{
    hbp_lengths *lengths = keep(test_long_tail(context, 1, 1003, 30000));
    for (int64_t size = 1; size <= 1500; size = size * 3 + 1) {
        hbp__epoch epoch = {context,         lengths, NULL, NULL, NULL, {.samples_per_step = size, .seed = 7},
                            HBP__STEP_SEARCH};
        hbp__batches b;
        OK(context, hbp__batches_draw(&epoch, INT64_MAX, &b));
        batched_check(&b, lengths);
        ck_assert_int_eq(b.steps, hbp__ceil_div(1003, size));
        for (int64_t s = 0; s + 1 < b.steps; s++)
            ck_assert_int_eq(batched_samples(&b, s), size);
        ck_assert_int_eq(b.first[b.steps], 1003);
        hbp__batches_close(&b);
    }
}
END_TEST

/* Over many seeds each sample is as often in each step as any other: the draw of a shuffled sampler. */
START_TEST_IN_CONTEXT(every_sample_is_as_likely_in_every_step)
{
    enum { SAMPLES = 12, STEPS = 4, DRAWS = 6000 };
    static int64_t seen[SAMPLES][STEPS], pairs[SAMPLES][SAMPLES];
    hbp_lengths *lengths = keep(test_long_tail(context, 1, SAMPLES, 3000));
    for (uint64_t seed = 0; seed < DRAWS; seed++) {
        hbp__epoch epoch = {context,         lengths, NULL, NULL, NULL, {.samples_per_step = 3, .seed = seed},
                            HBP__STEP_SEARCH};
        hbp__batches b;
        OK(context, hbp__batches_draw(&epoch, INT64_MAX, &b));
        for (int64_t s = 0; s < STEPS; s++)
            for (int64_t i = b.first[s]; i < b.first[s + 1]; i++) {
                seen[b.sample[i]][s]++;
                for (int64_t k = b.first[s]; k < b.first[s + 1]; k++)
                    pairs[b.sample[i]][b.sample[k]]++;
            }
        hbp__batches_close(&b);
    }
    /* Means 1500 and 6000 x 2 / 11; five standard deviations. */
    for (int i = 0; i < SAMPLES; i++) {
        for (int s = 0; s < STEPS; s++)
            ck_assert_int_le(llabs(seen[i][s] - DRAWS / STEPS), 170);
        for (int k = 0; k < SAMPLES; k++)
            ck_assert(k == i || llabs(pairs[i][k] - DRAWS * 2 / (SAMPLES - 1)) <= 150);
    }
}
END_TEST

/* Linked samples share a step, which never holds more than asked for; with single samples and pairs and an
 * even number it holds just that, but where the single ones run out, and at the end. */
START_TEST_IN_CONTEXT(linked_samples_stay_together)
{
    for (uint64_t seed = 0; seed < TEST_ROUNDS(200); seed++) {
        int64_t most = 1 + (int64_t)(seed % 5), size = most + (int64_t)(seed % 7);
        hbp_lengths *lengths = batched_linked(context, seed, 50 + (int64_t)seed, 900, most);
        hbp__epoch epoch = {
            context, lengths, NULL, NULL, NULL, {.samples_per_step = size, .seed = seed}, HBP__STEP_SEARCH};
        hbp__batches b;
        OK(context, hbp__batches_draw(&epoch, INT64_MAX, &b));
        batched_check(&b, lengths);
        int64_t short_steps = 0;
        for (int64_t s = 0; s < b.steps; s++) {
            ck_assert_int_le(batched_samples(&b, s), size);
            short_steps += batched_samples(&b, s) < size;
        }
        if (most <= 2 && size % 2 == 0) /* where the single ones run out, and the last */
            ck_assert_int_le(short_steps, 2);
        hbp__batches_close(&b);
        hbp_lengths_free(lengths);
    }
}
END_TEST

/* Pairs and an even number, as preference data have them: every step is full. */
START_TEST_IN_CONTEXT(pairs_fill_every_step)
{
    int64_t length[400], link[400];
    for (int i = 0; i < 400; i++) {
        length[i] = 1 + i;
        link[i] = i / 2;
    }
    hbp_lengths_options with = {.struct_size = sizeof with, .links = link};
    hbp_lengths *lengths = NULL;
    MAKES(context, lengths, hbp_lengths_create_i64(context, length, 400, &with, &lengths));
    hbp__epoch epoch = {context, lengths, NULL, NULL, NULL, {.samples_per_step = 40}, HBP__STEP_SEARCH};
    hbp__batches b;
    OK(context, hbp__batches_draw(&epoch, INT64_MAX, &b));
    batched_check(&b, lengths);
    ck_assert_int_eq(b.steps, 10);
    for (int64_t s = 0; s < 10; s++)
        ck_assert_int_eq(batched_samples(&b, s), 40);
    hbp__batches_close(&b);
}
END_TEST

/* No step passes the tokens, and none could have taken the first unit of the next. */
START_TEST_IN_CONTEXT(steps_keep_to_the_tokens)
{
    for (uint64_t seed = 0; seed < TEST_ROUNDS(100); seed++) {
        hbp_lengths *lengths =
            seed % 2 ? batched_linked(context, seed, 80, 900, 3) : test_long_tail(context, seed, 90, 2700);
        int64_t limit = 2700 + 500 * (int64_t)(seed % 9);
        hbp__epoch epoch = {
            context, lengths, NULL, NULL, NULL, {.tokens_per_step = limit, .seed = seed}, HBP__STEP_SEARCH};
        hbp__batches b;
        OK(context, hbp__batches_draw(&epoch, INT64_MAX, &b));
        batched_check(&b, lengths);
        for (int64_t s = 0; s < b.steps; s++) {
            int64_t tokens = batched_tokens(&b, lengths, s);
            ck_assert_int_le(tokens, limit);
            if (s + 1 == b.steps)
                break;
            uint32_t next = b.sample[b.first[s + 1]], link = lengths->link ? lengths->link[next] : HBP__FREE;
            int64_t unit = link == HBP__FREE ? hbp__lengths_get(lengths, next) : 0;
            for (int64_t i = 0; link != HBP__FREE && i < lengths->count; i++)
                unit += lengths->link[i] == link ? hbp__lengths_get(lengths, i) : 0;
            ck_assert_int_gt(tokens + unit, limit);
        }
        hbp__batches_close(&b);
        hbp_lengths_free(lengths);
    }
}
END_TEST

/* A unit of samples that share a step. */
typedef struct unit {
    int64_t tokens;
    int is_taken;
} unit;

static int64_t list_units(const hbp_lengths *lengths, unit *units)
{
    int64_t count = 0;
    for (int64_t i = 0; i < lengths->count; i++) {
        const uint32_t link = lengths->link ? lengths->link[i] : HBP__FREE;
        int64_t first = link == HBP__FREE ? i : 0;
        while (lengths->link && lengths->link[first] != link)
            first++;
        if (link != HBP__FREE && first < i)
            continue;
        units[count] = (unit){0, 0};
        for (int64_t k = i; k < lengths->count; k++)
            if (k == i || (link != HBP__FREE && lengths->link[k] == link))
                units[count].tokens += hbp__lengths_get(lengths, k);
        count++;
    }
    return count;
}

/* The longest unit of at most `room` tokens that stands in no step; NULL: none. */
static unit *longest_unit(unit *units, int64_t count, int64_t room)
{
    unit *best = NULL;
    for (int64_t i = 0; i < count; i++)
        if (!units[i].is_taken && units[i].tokens <= room && (!best || units[i].tokens > best->tokens))
            best = &units[i];
    return best;
}

/* Step after step by the definition, which says their tokens. */
START_TEST_IN_CONTEXT(sorted_steps_take_the_longest_that_they_have_room_for)
{
    int64_t left_over = 0, early_steps = 0;
    for (uint64_t seed = 0; seed < TEST_ROUNDS(100); seed++) {
        hbp_lengths *lengths =
            seed % 2 ? batched_linked(context, seed, 80, 900, 3) : test_long_tail(context, seed, 90, 2700);
        const int64_t limit = 2700 + 500 * (int64_t)(seed % 9), longer_than = 150 * (int64_t)(seed % 5);
        hbp__epoch epoch = {
            context, lengths, NULL, NULL, NULL, {.tokens_per_step = limit, .seed = seed}, HBP__STEP_SEARCH};
        epoch.options.curriculum_steps = seed % 7 ? 0 : 2;
        hbp__batches b;
        OK(context, hbp__batches_sort(&epoch, 300, longer_than, &b));
        batched_check(&b, lengths);
        unit units[100], *next;
        int64_t count = list_units(lengths, units), sum = 0, squares = 0, expected = 0, steps = 0;
        if (!epoch.options.curriculum_steps) {
            for (unit *top; (top = longest_unit(units, count, INT64_MAX)) && top->tokens > longer_than;
                 steps++) {
                int64_t tokens = 0;
                while ((next = longest_unit(units, count, limit - tokens))) {
                    next->is_taken = 1;
                    tokens += next->tokens;
                }
                expected += tokens * tokens;
            }
            ck_assert_int_eq(b.steps, steps);
        }
        for (int64_t s = 0; s < b.steps; s++) {
            const int64_t tokens = batched_tokens(&b, lengths, s);
            ck_assert_int_le(tokens, limit);
            sum += tokens;
            squares += tokens * tokens;
        }
        if (!epoch.options.curriculum_steps)
            ck_assert_int_eq(squares, expected);
        int64_t longest = 0; /* short samples may not fill a step */
        for (int64_t i = b.first[0]; i < b.first[1]; i++)
            longest = hbp__max_i64(longest, hbp__lengths_get(lengths, b.sample[i]));
        early_steps += epoch.options.curriculum_steps && longest <= 300;
        left_over += sum < lengths->tokens;
        hbp__batches_close(&b);
        hbp_lengths_free(lengths);
    }
    ck_assert_int_gt(left_over, 0);
    ck_assert_int_gt(early_steps, 0);
}
END_TEST

START_TEST_IN_CONTEXT(a_curriculum_begins_with_short_samples)
{
    hbp_lengths *lengths = keep(test_long_tail(context, 4, 2000, 30000));
    int64_t shorts = 0;
    for (int64_t i = 0; i < lengths->count; i++)
        shorts += hbp__lengths_get(lengths, i) <= 500;
    for (int64_t early = 1; early < 400; early *= 3) {
        hbp__epoch epoch = {context,
                            lengths,
                            NULL,
                            NULL,
                            NULL,
                            {.samples_per_step = 20, .curriculum_steps = early, .seed = 1},
                            HBP__STEP_SEARCH};
        hbp__batches b;
        OK(context, hbp__batches_draw(&epoch, 500, &b));
        batched_check(&b, lengths);
        int64_t all_short = 0;
        for (int64_t s = 0; s < b.steps; s++) {
            int64_t longs = 0;
            for (int64_t i = b.first[s]; i < b.first[s + 1]; i++)
                longs += hbp__lengths_get(lengths, b.sample[i]) > 500;
            all_short += longs == 0 && s == all_short;
        }
        ck_assert_int_ge(all_short, hbp__min_i64(early, shorts / 20));
        if (early < shorts / 40) /* the rest is a mixture again */
            ck_assert_int_le(all_short, early + 8);
        hbp__batches_close(&b);
    }
}
END_TEST

START_TEST_IN_CONTEXT(what_cannot_be_is_named)
{
    int64_t length[6] = {5, 6, 7, 8, 9, 10}, link[6] = {-1, 3, 3, 3, -1, -1};
    hbp_lengths_options with = {.struct_size = sizeof with, .links = link};
    hbp_lengths *lengths = NULL;
    MAKES(context, lengths, hbp_lengths_create_i64(context, length, 6, &with, &lengths));
    hbp__batches b;
    hbp__epoch epoch = {context, lengths, NULL, NULL, NULL, {.samples_per_step = 2}, HBP__STEP_SEARCH};
    FAILS(context, HBP_E_INVALID, "is linked to 2 others, and samples_per_step is 2",
          hbp__batches_draw(&epoch, INT64_MAX, &b));
    hbp__batches_close(&b);
    epoch.options.samples_per_step = 0;
    epoch.options.tokens_per_step = 20;
    FAILS(context, HBP_E_INVALID,
          "with those linked to it has 21 tokens, and tokens_per_step is 20; at least 21",
          hbp__batches_draw(&epoch, INT64_MAX, &b));
    hbp__batches_close(&b);
    epoch.options.tokens_per_step = 0;
    epoch.options.samples_per_step = 10;
    epoch.options.drop_last = 1;
    FAILS(context, HBP_E_INFEASIBLE,
          "drop_last leaves no step: there are 6 samples, and samples_per_step is 10",
          hbp__batches_draw(&epoch, INT64_MAX, &b));
    hbp__batches_close(&b);
    epoch.options.samples_per_step = 4;
    OK(context, hbp__batches_draw(&epoch, INT64_MAX, &b));
    ck_assert_int_eq(b.steps, 1);
    ck_assert_int_eq(b.first[1], 4);
    batched_check(&b, lengths);
    hbp__batches_close(&b);
}
END_TEST

/* The longest unit, with its links, against the tokens of a step. */
START_TEST_IN_CONTEXT(units_past_the_tokens_are_named)
{
    const int64_t length[] = {500, 900, 400, 100}, link[] = {7, -1, 7, 7};
    hbp_lengths_options with = {.struct_size = sizeof with, .links = link};
    hbp_lengths *free_ones = NULL, *linked = NULL;
    MAKES(context, free_ones, hbp_lengths_create_i64(context, length, 4, NULL, &free_ones));
    MAKES(context, linked, hbp_lengths_create_i64(context, length, 4, &with, &linked));
    hbp__epoch epoch = {context, free_ones, NULL, NULL, NULL, {.tokens_per_step = 900}, HBP__STEP_SEARCH};
    OK(context, hbp__units_check_tokens(&epoch));
    epoch.options.tokens_per_step = 899;
    FAILS(context, HBP_E_INVALID,
          "sample 1 has 900 tokens, and tokens_per_step is 899; at least 900 would do",
          hbp__units_check_tokens(&epoch));
    epoch.lengths = linked;
    FAILS(context, HBP_E_INVALID, "with those linked to it has 1000 tokens", hbp__units_check_tokens(&epoch));
    epoch.options.tokens_per_step = 1000;
    OK(context, hbp__units_check_tokens(&epoch));
    epoch.options.tokens_per_step = 0;
    OK(context, hbp__units_check_tokens(&epoch));
}
END_TEST

static hbp_status draw_once(hbp_context *context, void *user)
{
    hbp__epoch epoch = {
        context, user, NULL, NULL, NULL, {.samples_per_step = 7, .curriculum_steps = 2}, HBP__STEP_SEARCH};
    hbp__batches b;
    hbp_status status = hbp__batches_draw(&epoch, 300, &b);
    hbp__batches_close(&b);
    epoch.options.tokens_per_step = 5000;
    return status < 0 ? status : hbp__units_check_tokens(&epoch);
}

static hbp_status weigh_once(hbp_context *context, void *user)
{
    const hbp_lengths *lengths = user;
    uint64_t rows = (uint64_t)lengths->count;
    int64_t most, *first = malloc((rows + 1) * sizeof *first);
    uint32_t *sample = malloc(rows * sizeof *sample);
    for (int64_t i = 0; i <= lengths->count; i++)
        first[i] = i;
    for (int64_t i = 0; i < lengths->count; i++)
        sample[i] = (uint32_t)i;
    hbp__batches b = {.steps = lengths->count, .first = first, .sample = sample};
    hbp_status status = hbp__batches_most_tokens(context, &b, lengths, &most);
    if (status == HBP_OK)
        ck_assert_int_eq(most, lengths->bin_length[lengths->bins - 1]);
    free(sample);
    free(first);
    return status;
}

/* Many small steps are one report each HBP__TICK_ROWS samples. */
START_TEST(steps_are_weighed_with_reports)
{
    hbp_context *context = test_context();
    hbp_lengths *lengths = batched_linked(context, 3, 5 * HBP__TICK_ROWS + 7, 900, 3);
    failing f;
    int64_t left = 5;
    hbp_context *listening = failing_context(&f, cancel_after, &left);
    OK(listening, weigh_once(listening, lengths));
    ck_assert_int_eq(left, 0);
    hbp_context_free(listening);
    hbp_lengths_free(lengths);
    hbp_context_free(context);
}
END_TEST

START_TEST_IN_CONTEXT(nothing_is_left_behind)
{
    hbp_lengths *lengths = keep(batched_linked(context, 3, 60, 900, 3));
    failing_sweep(draw_once, lengths);
}
END_TEST

TEST_MAIN("units", steps_hold_the_samples_asked_for, every_sample_is_as_likely_in_every_step,
          linked_samples_stay_together, pairs_fill_every_step, steps_keep_to_the_tokens,
          sorted_steps_take_the_longest_that_they_have_room_for, a_curriculum_begins_with_short_samples,
          what_cannot_be_is_named, units_past_the_tokens_are_named, steps_are_weighed_with_reports,
          nothing_is_left_behind)

#include "base/checked.h"
#include "failing.h"
#include "packed.h"
#include "schedule/deal.h"
#include "schedule/mix.h"

typedef struct laid {
    int mark;
    packed p;
    hbp_balance_options options;
    hbp__micro_batches batches;
    int64_t tokens_per_step;
    int one_step;
} laid;

static laid laid_open(hbp_context *context, uint64_t seed, int64_t count)
{
    laid l = {.mark = keep_mark(), .tokens_per_step = 6 * 65536};
    l.p = packed_open(context, seed, count);
    l.options = (hbp_balance_options){
        .struct_size = sizeof l.options, .micro_batch_multiple = 1, .seed = seed, .epoch = 2};
    OK(l.p.context,
       hbp__micro_batches_open(l.p.context, l.p.packs, l.p.groups, l.p.cost, &l.options, &l.batches));
    return l;
}

static void laid_close(laid *l)
{
    hbp__micro_batches_close(&l->batches);
    keep_release(l->mark);
}

static hbp__steps steps_of(laid *l)
{
    hbp__steps steps;
    OK(l->p.context, hbp__mix_steps_open(l->p.context, l->p.packs, &l->batches, l->tokens_per_step,
                                         &l->options, l->one_step, &steps));
    return steps;
}

static int64_t tokens_of(const laid *l, uint32_t m)
{
    int64_t tokens = 0;
    for (int64_t i = l->batches.first[m]; m != HBP__PADDING_PACK && i < l->batches.first[m + 1]; i++)
        if (l->batches.place[i] != HBP__PADDING_PACK)
            tokens += l->p.packs->tokens[l->batches.place[i]];
    return tokens;
}

/* Each micro-batch at most once; returns how many are there. */
static int64_t check_steps(const laid *l, const hbp__steps *steps)
{
    char *seen = calloc((size_t)l->batches.count, 1);
    int64_t taken = 0;
    for (int64_t s = 0; s < steps->count; s++) {
        int64_t tokens = 0, real = 0;
        ck_assert_int_gt(steps->first[s + 1], steps->first[s]);
        ck_assert_int_eq((steps->first[s + 1] - steps->first[s]) % l->options.micro_batch_multiple, 0);
        ck_assert_uint_ne(steps->micro_batch[steps->first[s]], HBP__PADDING_PACK);
        for (int64_t i = steps->first[s]; i < steps->first[s + 1]; i++) {
            uint32_t m = steps->micro_batch[i];
            if (m == HBP__PADDING_PACK)
                continue;
            ck_assert_int_eq(seen[m]++, 0);
            tokens += tokens_of(l, m);
            real++;
        }
        taken += real;
        ck_assert(tokens <= l->tokens_per_step || real <= l->options.micro_batch_multiple || l->one_step);
    }
    free(seen);
    return taken;
}

START_TEST_IN_CONTEXT(steps_hold_every_micro_batch_once_within_their_tokens)
{
    for (uint64_t seed = 0; seed < 4; seed++)
        for (int32_t multiple = 1; multiple <= 3; multiple++)
            for (int64_t room = 0; room < 4; room++) {
                laid l = laid_open(context, seed, 3000 + 2000 * (int64_t)seed);
                l.options.micro_batch_multiple = multiple;
                l.tokens_per_step = (int64_t[]){1, 65536, 200000, INT64_MAX}[room];
                hbp__steps steps = steps_of(&l);
                ck_assert_int_eq(check_steps(&l, &steps), l.batches.count);
                if (room == 0)
                    ck_assert_int_eq(steps.count, hbp__ceil_div(l.batches.count, multiple));
                if (room == 3)
                    ck_assert_int_eq(steps.count, 1);
                hbp__steps_close(&steps);
                laid_close(&l);
            }
}
END_TEST

/* Where a step has room for several micro-batches, each has its share of those of the long group. */
START_TEST_IN_CONTEXT(every_step_is_a_mixture)
{
    for (uint64_t seed = 0; seed < 4; seed++) {
        laid l = laid_open(context, seed, 12000);
        hbp__steps steps = steps_of(&l);
        int64_t longs = l.batches.group_first[2] - l.batches.group_first[1];
        ck_assert_int_gt(steps.count, 8);
        ck_assert_int_gt(longs, 2 * steps.count);
        for (int64_t s = 0; s < steps.count; s++) {
            int64_t here = 0;
            for (int64_t i = steps.first[s]; i < steps.first[s + 1]; i++)
                here += l.batches.group[steps.micro_batch[i]] == 1;
            ck_assert_int_ge(here, longs / steps.count - 1);
            ck_assert_int_le(here, longs / steps.count + 2);
        }
        hbp__steps_close(&steps);
        laid_close(&l);
    }
}
END_TEST

START_TEST_IN_CONTEXT(a_deal_gives_each_bin_one_of_each_row)
{
    hbp__rng rng = hbp__rng_make(1, 0, 0);
    for (int64_t bins = 1; bins < 60; bins += 7)
        for (int64_t count = bins; count < 200; count += 13) {
            int64_t weight[200], tokens[200], in_row[60], size[60] = {0};
            uint32_t bin[200];
            for (int64_t i = 0; i < count; i++) {
                weight[i] = count - i; /* descending: row r is [r bins, (r + 1) bins) */
                tokens[i] = hbp__rng_below(&rng, 50);
            }
            OK(context, hbp__deal_strata(context, weight, tokens, count, bins, &rng, bin));
            for (int64_t row = 0; row < count; row += bins) {
                memset(in_row, 0, sizeof in_row);
                for (int64_t i = row; i < hbp__min_i64(row + bins, count); i++) {
                    ck_assert_uint_lt(bin[i], bins);
                    ck_assert_int_eq(in_row[bin[i]]++, 0);
                    size[bin[i]]++;
                }
            }
            for (int64_t b = 0; b < bins; b++)
                ck_assert(size[b] == count / bins || size[b] == count / bins + 1);
        }
}
END_TEST

/* Two rows: the heaviest of the second goes where the lightest of the first went. */
START_TEST_IN_CONTEXT(a_deal_evens_out_weights)
{
    hbp__rng rng = hbp__rng_make(1, 0, 0);
    int64_t weight[6] = {90, 80, 10, 9, 5, 1}, tokens[6] = {1, 1, 1, 1, 1, 1};
    uint32_t bin[6];
    OK(context, hbp__deal_strata(context, weight, tokens, 6, 3, &rng, bin));
    ck_assert_uint_eq(bin[2], bin[3]);
    ck_assert_uint_eq(bin[1], bin[4]);
    ck_assert_uint_eq(bin[0], bin[5]);
}
END_TEST

START_TEST_IN_CONTEXT(the_curriculum_is_short)
{
    laid l = laid_open(context, 7, 12000);
    for (int32_t multiple = 1; multiple <= 2; multiple++) {
        l.options.micro_batch_multiple = multiple;
        l.options.curriculum_steps = 3;
        hbp__steps steps = steps_of(&l);
        ck_assert_int_eq(check_steps(&l, &steps), l.batches.count);
        int64_t later = 0;
        for (int64_t s = 0; s < steps.count; s++)
            for (int64_t i = steps.first[s]; i < steps.first[s + 1]; i++) {
                int is_long =
                    steps.micro_batch[i] != HBP__PADDING_PACK && l.batches.group[steps.micro_batch[i]];
                ck_assert(s >= 3 || !is_long);
                later += is_long;
            }
        ck_assert_int_gt(later, 0);
        hbp__steps_close(&steps);
        /* One that outlasts the short group takes all of it. */
        l.options.curriculum_steps = INT64_MAX;
        steps = steps_of(&l);
        ck_assert_int_eq(check_steps(&l, &steps), l.batches.count);
        hbp__steps_close(&steps);
    }
    laid_close(&l);
}
END_TEST

START_TEST_IN_CONTEXT(dropping_leaves_equal_steps)
{
    for (uint64_t seed = 0; seed < 4; seed++)
        for (int32_t multiple = 1; multiple <= 3; multiple++) {
            laid l = laid_open(context, seed, 5000);
            l.options.micro_batch_multiple = multiple;
            l.options.drop_last = 1;
            hbp__steps steps = steps_of(&l);
            int64_t taken = check_steps(&l, &steps), size = steps.first[1] - steps.first[0];
            for (int64_t s = 0; s < steps.count; s++)
                ck_assert_int_eq(steps.first[s + 1] - steps.first[s], size);
            ck_assert_int_eq(taken, steps.count * size);
            ck_assert_int_lt(l.batches.count - taken, 2 * size + multiple);
            hbp__steps_close(&steps);
            l.options.micro_batch_multiple = 60000;
            FAILS(l.p.context, HBP_E_INFEASIBLE, "drop_last leaves no step",
                  hbp__mix_steps_open(l.p.context, l.p.packs, &l.batches, l.tokens_per_step, &l.options, 0,
                                      &steps));
            hbp__steps_close(&steps);
            laid_close(&l);
        }
}
END_TEST

/* Behind a curriculum less than a unit may be left, and all of it is dropped. */
START_TEST_IN_CONTEXT(a_curriculum_may_be_all)
{
    int64_t alone = 0;
    for (uint64_t seed = 0; seed < 12; seed++)
        for (int32_t multiple = 2; multiple <= 5; multiple++) {
            laid l = laid_open(context, seed, 100 + 60 * (int64_t)seed);
            l.options.micro_batch_multiple = multiple;
            l.options.curriculum_steps = 1000;
            l.options.drop_last = 1;
            for (int64_t i = 0; i < l.p.packs->count; i++)
                l.p.packs->group[i] = 0; /* the shortest alone */
            l.tokens_per_step = 65536;
            hbp__steps steps = {.count = 0};
            hbp_status status = hbp__mix_steps_open(l.p.context, l.p.packs, &l.batches, l.tokens_per_step,
                                                    &l.options, 0, &steps);
            ck_assert(status == HBP_OK || status == HBP_E_INFEASIBLE);
            if (status == HBP_OK) {
                int64_t taken = check_steps(&l, &steps);
                ck_assert_int_eq(taken % multiple, 0);
                alone += l.batches.count - taken < multiple && l.batches.count > taken;
            }
            hbp__steps_close(&steps);
            laid_close(&l);
        }
    ck_assert_int_gt(alone, 0);
}
END_TEST

/* Tokens of the micro-batches are tens, so that many steps are full to the token when two share one. */
START_TEST_IN_CONTEXT(no_two_micro_batches_alone_fit_one_step)
{
    int64_t pairs = 0, full = 0;
    for (uint64_t seed = 0; seed < 12; seed++) {
        laid l = laid_open(context, seed, 300 + 40 * (int64_t)seed);
        hbp__rng rng = hbp__rng_make(seed, 31, 0);
        for (int64_t p = 0; p < l.p.packs->count; p++)
            l.p.packs->tokens[p] = 0;
        for (int64_t m = 0; m < l.batches.count; m++)
            l.p.packs->tokens[l.batches.place[l.batches.first[m]]] =
                10 * (3 + hbp__rng_below(&rng, seed % 2 ? 5 : 7));
        l.tokens_per_step = 100;
        hbp__steps steps = steps_of(&l);
        ck_assert_int_eq(check_steps(&l, &steps), l.batches.count);
        int64_t least = INT64_MAX, second = INT64_MAX;
        for (int64_t s = 0; s < steps.count; s++) {
            int64_t tokens = tokens_of(&l, steps.micro_batch[steps.first[s]]);
            if (steps.first[s + 1] - steps.first[s] == 2) {
                pairs++;
                full += tokens + tokens_of(&l, steps.micro_batch[steps.first[s] + 1]) == l.tokens_per_step;
            }
            if (steps.first[s + 1] - steps.first[s] > 1)
                continue;
            second = hbp__min_i64(second, hbp__max_i64(least, tokens));
            least = hbp__min_i64(least, tokens);
        }
        ck_assert(second == INT64_MAX || least + second > l.tokens_per_step);
        hbp__steps_close(&steps);
        laid_close(&l);
    }
    ck_assert_int_gt(pairs, 0);
    ck_assert_int_gt(full, 0);
}
END_TEST

/* Any tenth of the epoch has about a tenth of the long micro-batches, also when a step holds a single one. */
START_TEST_IN_CONTEXT(every_stretch_of_the_epoch_is_a_mixture)
{
    laid l = laid_open(context, 3, 20000);
    l.tokens_per_step = 65536;
    hbp__steps steps = steps_of(&l);
    int64_t longs = l.batches.group_first[2] - l.batches.group_first[1], width = steps.count / 10;
    for (int64_t s = 0; s + width <= steps.count; s++) {
        int64_t here = 0;
        for (int64_t i = s; i < s + width; i++)
            here += l.batches.group[steps.micro_batch[steps.first[i]]] == 1;
        ck_assert_int_ge(here * 10, longs - 40);
        ck_assert_int_le(here * 10, longs + 40);
    }
    hbp__steps_close(&steps);
    laid_close(&l);
}
END_TEST

START_TEST_IN_CONTEXT(one_step_takes_all)
{
    laid l = laid_open(context, 4, 3000);
    l.one_step = 1;
    l.tokens_per_step = 1;
    l.options.micro_batch_multiple = 4;
    l.options.drop_last = 1;
    hbp__steps steps = steps_of(&l);
    ck_assert_int_eq(steps.count, 1);
    hbp__steps_close(&steps);
    laid_close(&l);
}
END_TEST

static hbp_status open_once(hbp_context *context, void *user)
{
    laid *l = user;
    hbp__steps steps;
    hbp_status status = hbp__mix_steps_open(context, l->p.packs, &l->batches, l->tokens_per_step, &l->options,
                                            l->one_step, &steps);
    hbp__steps_close(&steps);
    return status;
}

START_TEST_IN_CONTEXT(nothing_is_left_behind)
{
    laid l = laid_open(context, 4, 1500);
    l.options.micro_batch_multiple = 2;
    l.options.curriculum_steps = 1;
    failing_sweep(open_once, &l);
    ck_assert_int_gt(cancel_sweep(open_once, &l), 0);
    l.options.drop_last = 1;
    failing_sweep(open_once, &l);
    laid_close(&l);
}
END_TEST

TEST_MAIN("mix steps", steps_hold_every_micro_batch_once_within_their_tokens, every_step_is_a_mixture,
          a_deal_gives_each_bin_one_of_each_row, a_deal_evens_out_weights, the_curriculum_is_short,
          dropping_leaves_equal_steps, a_curriculum_may_be_all, no_two_micro_batches_alone_fit_one_step,
          every_stretch_of_the_epoch_is_a_mixture, one_step_takes_all, nothing_is_left_behind)

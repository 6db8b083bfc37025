#include "failing.h"
#include "keep.h"
#include "plans.h"

/* Three pieces a pack, four ranks in domains of two, two micro-batches of two packs at least. */
static hbp_plan *make(hbp_context *context, int32_t policy)
{
    hbp_lengths *lengths = plans_lengths(context, 3, 60, 400, 1, 0), *cut = NULL;
    OK(context, hbp_lengths_limit(context, lengths, 300, policy, &cut));
    plans_shape shape = {.seed = 2,
                         .ranks = 4,
                         .domain_ranks = 2,
                         .pack_samples = 3,
                         .left_over = 4,
                         .sequence_multiple = 4,
                         .pack_multiple = 16,
                         .micro_batch_multiple = 2};
    hbp_plan *plan = plans_make(&shape, cut);
    hbp_lengths_free(cut);
    hbp_lengths_free(lengths);
    return plan;
}

START_TEST_IN_CONTEXT(plans_of_every_shape_pass)
{
    for (uint64_t seed = 0; seed < 200; seed++) {
        plans_shape shape = plans_draw(seed);
        int32_t kinds = (int32_t)(seed % 4);
        hbp_lengths *lengths =
            plans_vision_lengths(context, seed, 30 + (int64_t)seed, 5000, seed % 3 == 0, 0, kinds);
        shape.modality_order = kinds > 1;
        hbp_plan *plan = plans_make(&shape, lengths);
        OK(context, hbp__plan_check(context, plan));
        hbp_plan_free(plan);
        hbp_lengths_free(lengths);
    }
}
END_TEST

/* Padded tokens of pack `p` under the plan's multiples. */
static int64_t padded_anew(const hbp_plan *plan, int64_t p)
{
    int64_t sum = 0, sp = plan->pack_sp[p];
    for (int64_t i = plan->pack_offsets[p]; i < plan->pack_offsets[p + 1]; i++)
        sum += hbp__round_up(plan->sample_tokens[i],
                             plans_multiple(plan->sequence_multiple, plan->sequence_multiple_per_sp, sp));
    return hbp__round_up(sum, plans_multiple(plan->pack_multiple, plan->pack_multiple_per_sp, sp));
}

/* A plan padded by its packs' degrees passes, and not when one pack is padded otherwise. */
START_TEST_IN_CONTEXT(padding_goes_by_degree)
{
    int64_t wrong = 0;
    for (uint64_t seed = 0; seed < 60; seed++) {
        plans_shape shape = plans_draw(seed);
        shape.ranks = 8;
        shape.domain_ranks = 4;
        shape.sequence_multiple = 3;
        shape.sequence_multiple_per_sp = 5;
        shape.pack_multiple_per_sp = seed % 2 ? 7 : 0;
        hbp_lengths *lengths = plans_lengths(context, seed, 40, 5000, 0, 0);
        hbp_plan *plan = plans_make(&shape, lengths);
        int is_wrong = 0, has_wide = 0;
        OK(context, hbp__plan_check(context, plan));
        plan->sequence_multiple_per_sp = 4;
        for (int64_t p = 0; p < plan->packs; p++) {
            is_wrong |= padded_anew(plan, p) != plan->pack_padded_tokens[p];
            has_wide |= plan->pack_sp[p] > 1 && plan->pack_tokens[p] > 0;
        }
        if (is_wrong)
            FAILS(context, HBP_E_INVALID, "the number of padded tokens", hbp__plan_check(context, plan));
        else
            OK(context, hbp__plan_check(context, plan));
        wrong += is_wrong;
        /* No number is passed. */
        plan->sequence_multiple_per_sp = plan->pack_multiple_per_sp = INT32_MAX;
        if (has_wide)
            FAILS(context, HBP_E_INVALID, "holds more than", hbp__plan_check(context, plan));
        plan->sequence_multiple_per_sp = -1;
        FAILS(context, HBP_E_INVALID, "a multiple per rank of a pack is -1", hbp__plan_check(context, plan));
        hbp_plan_free(plan);
        hbp_lengths_free(lengths);
    }
    ck_assert_int_gt(wrong, 40);
}
END_TEST

/* Sets a place to a value, looks for the message, and puts the place back. */
#define WRONG(type, place, value, text)                                                                      \
    do {                                                                                                     \
        const type kept = (place);                                                                           \
        (place) = (value);                                                                                   \
        FAILS(context, HBP_E_INVALID, text, hbp__plan_check(context, plan));                                 \
        (place) = kept;                                                                                      \
        OK(context, hbp__plan_check(context, plan));                                                         \
    } while (0)

/* The first pack without samples, or the first with. */
static int64_t find_pack(const hbp_plan *plan, int dummy)
{
    int64_t p = 0;
    while ((plan->pack_offsets[p] == plan->pack_offsets[p + 1]) != dummy)
        p++;
    return p;
}

START_TEST_IN_CONTEXT(fields_are_in_range)
{
    hbp_plan *plan = keep(make(context, HBP_OVERLONG_DROP));
    WRONG(int32_t, plan->ranks, 0, "the number of ranks is 0");
    WRONG(int32_t, plan->ranks, 8, "the number of ranks covered is 4; it must be 8");
    WRONG(int32_t, plan->domain_ranks, 0, "the number of ranks of a domain is 0");
    WRONG(int32_t, plan->domain_ranks, 5, "the number of ranks of a domain is 5");
    WRONG(int64_t, plan->sequence_multiple, 0, "a multiple is 0");
    WRONG(int64_t, plan->sequence_multiple, 1, "the number of padded tokens");
    WRONG(int64_t, plan->pack_multiple, INT64_C(1) << 40, "a multiple is 1099511627776");
    WRONG(int64_t, plan->micro_batch_multiple, -1, "a multiple is -1");
    WRONG(int64_t, plan->micro_batch_multiple, 64, "micro-batches; it must be a multiple of 64");
    WRONG(int64_t, plan->first_step, -1, "the first step is -1");
    WRONG(int64_t, plan->epoch_steps, -1, "the plan is a part of -1 steps");
    WRONG(int64_t, plan->epoch_steps, INT64_MIN, "the plan is a part of -9223372036854775808 steps");
    WRONG(int64_t, plan->epoch_steps, plan->steps, "it must be of more");
    WRONG(int64_t, plan->steps, 0, "the number of steps is 0");
    WRONG(int64_t, plan->bound_ns, -1, "the bound on the time is -1 ns; it must lie between 0 and");
    WRONG(int64_t, plan->bound_ns, INT64_MAX, "the bound on the time is 9223372036854775807 ns");
    WRONG(int64_t, plan->free_bound_ns, -1, "the bound on the time with steps left free is -1 ns; it must");
    WRONG(int64_t, plan->free_bound_ns, INT64_MAX, "with steps left free is 9223372036854775807 ns");
}
END_TEST

START_TEST_IN_CONTEXT(a_shift_takes_a_token_of_each_sample)
{
    hbp_plan *plan = keep(make(context, HBP_OVERLONG_SPLIT));
    WRONG(int32_t, plan->shifted_loss, 2, "shifted_loss is 2; it must be 0 or 1");
    WRONG(int32_t, plan->shifted_loss, -1, "shifted_loss is -1");
    int32_t *loss = plan->sample_loss_tokens;
    plan->sample_loss_tokens = NULL;
    plan->shifted_loss = 1;
    FAILS(context, HBP_E_INVALID, "the plan has shifted_loss but no loss tokens of samples",
          hbp__plan_check(context, plan));
    plan->sample_loss_tokens = loss;
    for (int64_t s = 0, p = 0, i = 0; s < plan->steps; s++) {
        int64_t off_step = 0;
        for (; p < plan->micro_batch_offsets[plan->step_offsets[s + 1]]; p++)
            for (; i < plan->pack_offsets[p + 1]; i++)
                if (loss[i] == plan->sample_tokens[i]) {
                    loss[i]--;
                    plan->pack_loss_tokens[p]--;
                    off_step++;
                }
        plan->step_loss_tokens[s] -= off_step;
    }
    OK(context, hbp__plan_check(context, plan));
    WRONG(int32_t, loss[0], plan->sample_tokens[0], "sample row 0: the number of loss tokens is");
}
END_TEST

START_TEST_IN_CONTEXT(offsets_lead_into_their_tables)
{
    hbp_plan *plan = keep(make(context, HBP_OVERLONG_DROP));
    int64_t steps = plan->steps, micro_batches = plan->micro_batches, packs = plan->packs;
    int64_t *columns[] = {plan->step_offsets, plan->micro_batch_offsets, plan->pack_offsets};
    const int64_t rows[] = {steps, micro_batches, packs};
    const int64_t totals[] = {micro_batches, packs, plan->samples};
    for (int c = 0; c < 3; c++) {
        WRONG(int64_t, columns[c][0], 1, "the first offset is 1; it must be 0");
        WRONG(int64_t, columns[c][rows[c]], totals[c] + 1, "offsets");
        WRONG(int64_t, columns[c][rows[c]], INT64_MAX, "offsets");
        WRONG(int64_t, columns[c][1], -1, "0: offsets 0 to -1");
        WRONG(int64_t, columns[c][1], INT64_MIN, "0: offsets 0 to -9223372036854775808");
    }
    WRONG(int64_t, plan->step_offsets[1], 0, "step 0: offsets 0 to 0");
    WRONG(int64_t, plan->micro_batch_offsets[1], 0, "micro-batch 0: offsets 0 to 0");
    WRONG(int64_t, plan->samples, plan->samples + 1, "the last offset");
}
END_TEST

START_TEST_IN_CONTEXT(packs_cover_the_ranks)
{
    hbp_plan *plan = keep(make(context, HBP_OVERLONG_TRUNCATE));
    WRONG(int32_t, plan->pack_sp[0], 0, "pack 0: the SP degree is 0");
    WRONG(int32_t, plan->pack_sp[0], 8, "pack 0: the SP degree is 8");
    WRONG(int32_t, plan->pack_ranks[0], -1, "pack 0: ranks -1");
    WRONG(int32_t, plan->pack_ranks[0], INT32_MAX, "are not an aligned range of 4 ranks");
    WRONG(int32_t, plan->pack_recompute[0], -1, "pack 0: the number of recomputed layers is -1");
    int64_t second = plan->micro_batch_offsets[1];
    ck_assert_int_gt(second, 1);
    WRONG(int32_t, plan->pack_ranks[1], 0, "pack 1: ");
    plan->domain_ranks = 3; /* of two domains of three, the second ends early */
    int64_t pair = 0;
    while (plan->pack_sp[pair] != 2 || plan->pack_ranks[pair] != 2)
        pair++;
    FAILS(context, HBP_E_INVALID, "ranks 2 to 3 cross a domain of 3 ranks", hbp__plan_check(context, plan));
}
END_TEST

START_TEST_IN_CONTEXT(sums_are_those_of_the_samples)
{
    hbp_plan *plan = keep(make(context, HBP_OVERLONG_SPLIT));
    int64_t p = find_pack(plan, 0), i = plan->pack_offsets[p];
    char text[96];
#define OFF_BY_ONE(column, what)                                                                             \
    snprintf(text, sizeof text, "pack %d: the %s is %d; it must be %d", (int)p, what,                        \
             (int)plan->column[p] + 1, (int)plan->column[p]);                                                \
    WRONG(int64_t, plan->column[p], plan->column[p] + 1, text)
    OFF_BY_ONE(pack_tokens, "number of tokens");
    OFF_BY_ONE(pack_padded_tokens, "number of padded tokens");
    OFF_BY_ONE(pack_squares, "sum of squared lengths");
    OFF_BY_ONE(pack_loss_tokens, "number of loss tokens");
    WRONG(int64_t, plan->pack_capacity[p], plan->pack_padded_tokens[p] - 1, "padded tokens; its capacity is");
    WRONG(int64_t, plan->pack_capacity[p], INT64_C(1) << 31, "its capacity is 2147483648");
    WRONG(int64_t, plan->pack_bytes[p], -1, "a prediction is -1");
    WRONG(int64_t, plan->pack_ns[p], -1, "a prediction is -1");
    WRONG(int32_t, plan->sample_tokens[i], 0, "the number of tokens is 0");
    WRONG(int32_t, plan->sample_tokens[i], plan->sample_tokens[i] + 1, "pack");
    WRONG(int32_t, plan->sample_loss_tokens[i], -1, "the number of loss tokens is -1");
    WRONG(int32_t, plan->sample_loss_tokens[i], plan->sample_tokens[i] + 1, "the number of loss tokens is");
    WRONG(int64_t, plan->sample_first_tokens[i], -1, "the first token is -1");
    WRONG(int64_t, plan->sample_first_tokens[i], INT64_C(1) << 31, "the first token is 2147483648");
    plan->sample_first_tokens[i] = HBP_MAX_LENGTH;
    OK(context, hbp__plan_check(context, plan));
    WRONG(int64_t, plan->sample_ids[i], -1, "the id is -1");
    WRONG(int64_t, plan->step_samples[0], plan->step_samples[0] + 1, "step 0: the number of samples");
    WRONG(int64_t, plan->step_tokens[0], plan->step_tokens[0] - 1, "step 0: the number of tokens");
    WRONG(int64_t, plan->step_loss_tokens[0], 0, "step 0: the number of loss tokens is 0");
    WRONG(int64_t, plan->step_ns[0], 0, "step 0: the predicted time is 0");
    WRONG(int64_t, plan->micro_batch_ns[0], 0, "micro-batch 0: the predicted time is 0");
}
END_TEST

/* Sums that would pass 2^63 are refused before they are made. */
START_TEST_IN_CONTEXT(sums_do_not_overflow)
{
    hbp_plan *plan = keep(make(context, HBP_OVERLONG_SPLIT));
    int64_t p = 0;
    while (plan->pack_offsets[p + 1] - plan->pack_offsets[p] < 2)
        p++;
    int64_t i = plan->pack_offsets[p];
    plan->sample_tokens[i] = plan->sample_tokens[i + 1] = INT32_MAX;
    FAILS(context, HBP_E_INVALID, "holds more than 2147483647 tokens", hbp__plan_check(context, plan));

    plan = keep(make(context, HBP_OVERLONG_DROP));
    for (int64_t m = 0; m < 2; m++) {
        for (p = plan->micro_batch_offsets[m]; p < plan->micro_batch_offsets[m + 1]; p++)
            plan->pack_ns[p] = INT64_MAX;
        plan->micro_batch_ns[m] = INT64_MAX;
    }
    FAILS(context, HBP_E_INVALID, "step 0: the predicted times pass 2^63", hbp__plan_check(context, plan));
}
END_TEST

START_TEST_IN_CONTEXT(dropped_rows_say_why)
{
    hbp_plan *plan = keep(make(context, HBP_OVERLONG_DROP));
    ck_assert_int_gt(plan->dropped, 4);
    WRONG(int64_t, plan->dropped_ids[1], -7, "dropped row 1: the id is -7");
    WRONG(int32_t, plan->dropped_reasons[2], 0, "dropped row 2: the reason is 0");
    WRONG(int32_t, plan->dropped_reasons[2], 5, "dropped row 2: the reason is 5");
    for (int32_t reason = HBP_DROPPED_OVERLONG; reason <= HBP_DROPPED_LOST; reason++) {
        plan->dropped_reasons[2] = reason;
        OK(context, hbp__plan_check(context, plan));
    }
}
END_TEST

/* A plan with a second size, and with an order of modalities when `order`. */
static hbp_plan *make_vision(hbp_context *context, int32_t order)
{
    hbp_lengths *lengths = plans_vision_lengths(context, 3, 90, 400, 0, 0, 3);
    plans_shape shape = {.seed = 4,
                         .ranks = 4,
                         .domain_ranks = 4,
                         .pack_samples = 5,
                         .sequence_multiple = 1,
                         .pack_multiple = 1,
                         .micro_batch_multiple = 1,
                         .modality_order = order};
    hbp_plan *plan = plans_make(&shape, lengths);
    hbp_lengths_free(lengths);
    return plan;
}

START_TEST_IN_CONTEXT(vision_units_add_up_and_fit)
{
    hbp_plan *plan = keep(make_vision(context, 0));
    ck_assert_ptr_null(plan->micro_batch_modalities);
    int64_t p = 0;
    while (plan->pack_vision[p] < 2 || plan->pack_vision_capacity[p] == INT64_MAX)
        p++;
    int64_t i = plan->pack_offsets[p], units = plan->pack_vision[p];
    char text[96];
    snprintf(text, sizeof text, "pack %d: the number of vision units is %d; it must be %d", (int)p,
             (int)units + 1, (int)units);
    WRONG(int64_t, plan->pack_vision[p], units + 1, text);
    snprintf(text, sizeof text, "pack %d: %d vision units; its capacity for them is %d", (int)p, (int)units,
             (int)units - 1);
    WRONG(int64_t, plan->pack_vision_capacity[p], units - 1, text);
    WRONG(int64_t, plan->pack_vision_capacity[p], -1, "its capacity for them is -1");
    WRONG(int32_t, plan->sample_vision[i], -1, "the number of vision units is -1");
    WRONG(int32_t, plan->sample_vision[i], INT32_MAX, "the number of vision units");
}
END_TEST

START_TEST_IN_CONTEXT(packs_of_a_micro_batch_hold_the_same_kinds)
{
    hbp_plan *plan = keep(make_vision(context, 1));
    int64_t p = 0, m = 0;
    while (plan->pack_offsets[p + 1] - plan->pack_offsets[p] < 2 ||
           plan->sample_modalities[plan->pack_offsets[p]] ==
               plan->sample_modalities[plan->pack_offsets[p + 1] - 1])
        p++;
    while (plan->micro_batch_offsets[m + 1] <= p)
        m++;
    int64_t i = plan->pack_offsets[p], end = plan->pack_offsets[p + 1];
    char text[96];
    WRONG(int64_t, plan->micro_batch_modalities[m], 0, "its modalities are 0; it needs one at least");
    WRONG(int64_t, plan->micro_batch_modalities[m], -1, "its modalities are -1; it needs one at least");
    WRONG(int64_t, plan->micro_batch_modalities[m], INT64_C(1) << 62, "it needs one at least, of 62");
    WRONG(int64_t, plan->micro_batch_modalities[m], 7, "holds the modalities 0x3, its micro-batch 0x7");
    WRONG(int32_t, plan->sample_modalities[i], -1, "modality -1; it must be in 0..61");
    WRONG(int32_t, plan->sample_modalities[end - 1], 62, "modality 62; it must be in 0..61");
    WRONG(int32_t, plan->sample_modalities[end - 1], 61, "holds the modalities 0x");
    snprintf(text, sizeof text, "pack %d: sample row %d of modality ", (int)p, (int)i + 1);
    WRONG(int32_t, plan->sample_modalities[i], 2, text);
}
END_TEST

/* Columns of noise, large and small: nothing is read outside them. */
START_TEST_IN_CONTEXT(noise_does_no_harm)
{
    hbp__rng rng = hbp__rng_make(11, 0, 0);
    for (int round = 0; round < 2000; round++) {
        hbp_plan *plan = make(context, HBP_OVERLONG_DROP + round % 3);
        int64_t *columns[] = {
            plan->step_offsets, plan->micro_batch_offsets, plan->pack_offsets,      plan->pack_tokens,
            plan->pack_ns,      plan->pack_capacity,       plan->pack_padded_tokens};
        const int64_t rows[] = {plan->steps,     plan->micro_batches, plan->packs,    plan->packs - 1,
                                plan->packs - 1, plan->packs - 1,     plan->packs - 1};
        uint32_t c = hbp__rng_below(&rng, 7);
        int64_t *place = &columns[c][hbp__rng_below(&rng, (uint64_t)rows[c] + 1)], kept = *place;
        uint64_t noise = hbp__rng_next(&rng);
        *place = (int64_t)(noise >> (noise & 63));
        hbp_status status = hbp__plan_check(context, plan);
        /* another time of a faster pack, or another capacity, may be right */
        ck_assert(status == HBP_E_INVALID || *place == kept || c == 4 || c == 5);
        hbp_plan_free(plan);
    }
}
END_TEST

static hbp_status check(hbp_context *context, void *user)
{
    return hbp__plan_check(context, user);
}

START_TEST_IN_CONTEXT(a_check_is_cancelled)
{
    hbp_plan *plan = keep(make(context, HBP_OVERLONG_DROP));
    ck_assert_int_gt(cancel_sweep(check, plan), 0);
}
END_TEST

TEST_MAIN("plan_check", plans_of_every_shape_pass, padding_goes_by_degree, fields_are_in_range,
          a_shift_takes_a_token_of_each_sample, offsets_lead_into_their_tables, packs_cover_the_ranks,
          sums_are_those_of_the_samples, sums_do_not_overflow, dropped_rows_say_why,
          vision_units_add_up_and_fit, packs_of_a_micro_batch_hold_the_same_kinds, noise_does_no_harm,
          a_check_is_cancelled)

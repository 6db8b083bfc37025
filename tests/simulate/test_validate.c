#include "costs.h"
#include "failing.h"
#include "keep.h"
#include "plans.h"

static hbp_lengths *limited(hbp_context *context, const hbp_lengths *lengths, int64_t most, int32_t policy)
{
    hbp_lengths *out = NULL;
    OK(context, hbp_lengths_limit(context, lengths, most, policy, &out));
    return out;
}

START_TEST_IN_CONTEXT(what_was_planned_is_valid)
{
    for (uint64_t seed = 0; seed < 60; seed++) {
        plans_shape shape = plans_draw(seed);
        shape.left_over = seed % 4 == 0 ? (int64_t)seed / 8 : 0;
        int links = seed % 4 == 3;
        int32_t kinds = (int32_t)(seed % 3);
        hbp_lengths *lengths =
            plans_vision_lengths(context, seed, 40 + (int64_t)seed * 5, 3000, seed % 2, links, kinds);
        shape.modality_order = kinds == 2 && !links;
        hbp_plan *plan = plans_make(&shape, lengths);
        OK(context, hbp_plan_validate(context, plan, lengths, NULL));
        hbp_plan_free(plan);
        hbp_lengths_free(lengths);
    }
}
END_TEST

START_TEST_IN_CONTEXT(limits_are_found_again)
{
    int mark = keep_mark();
    for (uint64_t seed = 0; seed < 90; keep_release(mark), seed++) {
        int32_t policy = HBP_OVERLONG_DROP + (int32_t)(seed % 3);
        plans_shape shape = plans_draw(seed);
        shape.left_over = (int64_t)(seed % 5);
        shape.pieces = policy == HBP_OVERLONG_SPLIT && seed % 2;
        hbp_lengths *lengths =
            keep(plans_vision_lengths(context, seed, 80, 900, seed % 2, 0, (int32_t)(seed / 3 % 3)));
        shape.modality_order = seed / 3 % 3 == 2;
        int64_t most = 300 + (int64_t)seed;
        hbp_lengths *cut = keep(limited(context, lengths, most, policy));
        ck_assert_int_gt(cut->overlong_samples, 0);
        hbp_plan *plan = keep(plans_make(&shape, cut));
        OK(context, hbp_plan_validate(context, plan, cut, NULL));
        OK(context, hbp_plan_validate(context, plan, lengths, NULL));
        plan->lengths_digest++;
        FAILS(context, HBP_E_INVALID, "the plan was made for lengths with digest",
              hbp_plan_validate(context, plan, lengths, NULL));
        FAILS(context, HBP_E_INVALID, "the plan was made for lengths with digest",
              hbp_plan_validate(context, plan, cut, NULL));
    }
}
END_TEST

/* Lengths read without their second column have another digest: the message says what they lack. */
START_TEST_IN_CONTEXT(lengths_without_their_units_are_named)
{
    for (int32_t kinds = 1; kinds <= 2; kinds++) {
        plans_shape shape = plans_draw(4);
        shape.modality_order = kinds == 2;
        hbp_lengths *lengths = keep(plans_vision_lengths(context, 4, 60, 900, 0, 0, kinds));
        hbp_lengths *bare = keep(plans_vision_lengths(context, 4, 60, 900, 0, 0, 0));
        hbp_plan *plan = keep(plans_make(&shape, lengths));
        ck_assert_uint_ne(lengths->digest, bare->digest);
        FAILS(context, HBP_E_INVALID, "; the plan has vision units, which these lengths lack",
              hbp_plan_validate(context, plan, bare, NULL));
    }
}
END_TEST

START_TEST_IN_CONTEXT(a_histogram_is_lengths_too)
{
    const int64_t length[] = {10, 50, 200}, count[] = {20, 8, 3};
    hbp_lengths *lengths = NULL;
    MAKES(context, lengths, hbp_lengths_create_histogram(context, length, count, 3, &lengths));
    for (int32_t policy = 0; policy <= HBP_OVERLONG_SPLIT; policy++) {
        plans_shape shape = plans_draw((uint64_t)policy);
        hbp_lengths *cut = limited(context, lengths, policy ? 120 : 200, policy);
        hbp_plan *plan = plans_make(&shape, cut);
        OK(context, hbp_plan_validate(context, plan, lengths, NULL));
        hbp_plan_free(plan);
        hbp_lengths_free(cut);
    }
}
END_TEST

/* A plan of 30 samples, 3 of them over-long and 2 left over, with links or with loss tokens. */
typedef struct made {
    hbp_context *context;
    hbp_lengths *lengths;
    hbp_plan *plan;
} made;

static made make(hbp_context *context, int32_t policy, int links)
{
    made m = {.context = context};
    hbp_lengths *all = plans_lengths(context, 5, 30, 100, 0, links);
    plans_shape shape = plans_draw(8);
    shape.left_over = links ? 0 : 2;
    m.lengths = keep(links ? all : limited(context, all, 85, policy));
    if (!links)
        hbp_lengths_free(all);
    m.plan = keep(plans_make(&shape, m.lengths));
    OK(context, hbp_plan_validate(context, m.plan, m.lengths, NULL));
    return m;
}

START_TEST_IN_CONTEXT(samples_that_are_not_right_are_named)
{
    char text[128];
    made m = make(context, HBP_OVERLONG_DROP, 0);
    hbp_plan *plan = m.plan;
    int64_t last = plan->samples - 1, id = plan->sample_ids[0], dropped = plan->dropped;
    ck_assert_int_gt(m.lengths->dropped, 0);

    plan->sample_ids[0] = plan->sample_ids[last];
    snprintf(text, sizeof text, "sample %d", (int)plan->sample_ids[0]);
    FAILS(m.context, HBP_E_INVALID, text, hbp_plan_validate(m.context, plan, m.lengths, NULL));
    plan->sample_ids[0] = 77;
    FAILS(m.context, HBP_E_INVALID, "sample 77 from token 0; the lengths have no such sample",
          hbp_plan_validate(m.context, plan, m.lengths, NULL));
    plan->sample_ids[0] = plan->dropped_ids[dropped - 1];
    snprintf(text, sizeof text, "sample %d ", (int)plan->sample_ids[0]);
    FAILS(m.context, HBP_E_INVALID, text, hbp_plan_validate(m.context, plan, m.lengths, NULL));
    plan->sample_ids[0] = id;
    OK(m.context, hbp_plan_validate(m.context, plan, m.lengths, NULL));

    plan->dropped--;
    FAILS(m.context, HBP_E_INVALID, "is in no pack and was not dropped",
          hbp_plan_validate(m.context, plan, m.lengths, NULL));
    plan->dropped = m.lengths->dropped - 1;
    FAILS(m.context, HBP_E_INVALID, "is not among the plan's dropped samples",
          hbp_plan_validate(m.context, plan, m.lengths, NULL));
    plan->dropped = dropped;
    int64_t left = plan->dropped_ids[dropped - 1];
    plan->dropped_ids[dropped - 1] = id;
    FAILS(m.context, HBP_E_INVALID, "sample", hbp_plan_validate(m.context, plan, m.lengths, NULL));
    plan->dropped_ids[dropped - 1] = 99;
    FAILS(m.context, HBP_E_INVALID, "sample 99 was left over; the lengths have no such sample",
          hbp_plan_validate(m.context, plan, m.lengths, NULL));
    plan->dropped_ids[dropped - 1] = left;
    plan->dropped_ids[0]++;
    FAILS(m.context, HBP_E_INVALID, "was dropped as over-long; the lengths do not say so",
          hbp_plan_validate(m.context, plan, m.lengths, NULL));
}
END_TEST

/* Two samples of one pack, of different lengths, swap ids: every sum stays. */
START_TEST_IN_CONTEXT(lengths_that_are_not_right_are_named)
{
    made m = make(context, HBP_OVERLONG_TRUNCATE, 0);
    hbp_plan *plan = m.plan;
    int64_t a = 0;
    while (plan->sample_tokens[a] == plan->sample_tokens[a + 1])
        a++;
    int64_t id = plan->sample_ids[a];
    plan->sample_ids[a] = plan->sample_ids[a + 1];
    plan->sample_ids[a + 1] = id;
    FAILS(m.context, HBP_E_INVALID, "tokens in the plan and",
          hbp_plan_validate(m.context, plan, m.lengths, NULL));
}
END_TEST

START_TEST_IN_CONTEXT(pieces_that_are_not_right_are_named)
{
    made m = make(context, HBP_OVERLONG_SPLIT, 0);
    hbp_plan *plan = m.plan;
    int64_t row = 0;
    while (plan->sample_first_tokens[row] == 0)
        row++;
    plan->sample_first_tokens[row]--;
    FAILS(m.context, HBP_E_INVALID, "the lengths have no such sample",
          hbp_plan_validate(m.context, plan, m.lengths, NULL));
    plan->sample_first_tokens[row] = 0;
    FAILS(m.context, HBP_E_INVALID, "sample", hbp_plan_validate(m.context, plan, m.lengths, NULL));
}
END_TEST

/* Linked samples change places with samples of as many tokens in another pack. */
/* Samples of two pieces and more, some pieces left over. */
START_TEST_IN_CONTEXT(pieces_that_were_dropped_are_held_against_the_lengths)
{
    hbp_lengths *all = keep(plans_lengths(context, 4, 30, 900, 0, 0));
    hbp_lengths *lengths = keep(limited(context, all, 200, HBP_OVERLONG_SPLIT));
    plans_shape shape = plans_draw(4);
    shape.left_over = 4;
    shape.pieces = 1;
    hbp_plan *plan = plans_make(&shape, lengths);
    OK(context, hbp_plan_validate(context, plan, lengths, NULL));
    int64_t i = 0;
    while (!plan->dropped_first_tokens[i]) {
        i++;
        ck_assert_int_lt(i, plan->dropped);
    }
    int64_t id = plan->dropped_ids[i], first = plan->dropped_first_tokens[i], other = 0;
    int32_t tokens = plan->dropped_tokens[i];
    char text[128];
#define WRONG(...)                                                                                           \
    snprintf(text, sizeof text, __VA_ARGS__);                                                                \
    FAILS(context, HBP_E_INVALID, text, hbp_plan_validate(context, plan, lengths, NULL))
    plan->dropped_tokens[i]--;
    WRONG("sample %d has %d tokens dropped in the plan and %d in the lengths", (int)id, (int)tokens - 1,
          (int)tokens);
    plan->dropped_tokens[i] = tokens;
    plan->dropped_first_tokens[i] = first + 1;
    WRONG("sample %d from token %d was left over; the lengths have no such piece", (int)id, (int)first + 1);
    /* A piece that some pack holds, and one that is listed already. */
    while (plan->sample_tokens[other] == tokens && plan->sample_ids[other] == id)
        other++;
    plan->dropped_ids[i] = plan->sample_ids[other];
    plan->dropped_first_tokens[i] = plan->sample_first_tokens[other];
    plan->dropped_tokens[i] = plan->sample_tokens[other];
    WRONG("sample %d from token %d is in a pack and among the dropped samples", (int)plan->sample_ids[other],
          (int)plan->sample_first_tokens[other]);
    other = i ? 0 : 1;
    plan->dropped_ids[i] = plan->dropped_ids[other];
    plan->dropped_first_tokens[i] = plan->dropped_first_tokens[other];
    plan->dropped_tokens[i] = plan->dropped_tokens[other];
    WRONG("sample %d from token %d is among the dropped samples twice", (int)plan->dropped_ids[other],
          (int)plan->dropped_first_tokens[other]);
    /* The piece goes missing. */
    plan->dropped_ids[i] = id;
    plan->dropped_first_tokens[i] = first;
    plan->dropped_tokens[i] = tokens;
    OK(context, hbp_plan_validate(context, plan, lengths, NULL));
    plan->dropped--;
    for (int64_t row = i; row < plan->dropped; row++) {
        plan->dropped_ids[row] = plan->dropped_ids[row + 1];
        plan->dropped_first_tokens[row] = plan->dropped_first_tokens[row + 1];
        plan->dropped_tokens[row] = plan->dropped_tokens[row + 1];
    }
    WRONG("sample %d from token %d is in no pack and was not dropped", (int)id, (int)first);
#undef WRONG
    hbp_plan_free(plan);
}
END_TEST

START_TEST_IN_CONTEXT(ties_that_are_torn_are_named)
{
    const uint32_t length[] = {7, 7, 7, 7};
    const int64_t link[] = {12, 12, -1, -1};
    hbp_lengths_options options = {.struct_size = sizeof options, .links = link};
    hbp_lengths *lengths = NULL;
    MAKES(context, lengths, hbp_lengths_create_u32(context, length, 4, &options, &lengths));
    plans_shape shape = plans_draw(1);
    shape.pack_samples = 1;
    hbp_plan *plan = keep(plans_make(&shape, lengths));
    OK(context, hbp_plan_validate(context, plan, lengths, NULL));
    int64_t linked = 0, free_row = 0;
    while (plan->sample_ids[linked] != 0)
        linked++;
    while (plan->sample_ids[free_row] != 3)
        free_row++;
    plan->sample_ids[linked] = 3;
    plan->sample_ids[free_row] = 0;
    FAILS(context, HBP_E_INVALID, "a sample linked to it (link 12)",
          hbp_plan_validate(context, plan, lengths, NULL));
}
END_TEST

/* 60 samples with units and kinds; the last five were left out. */
static made make_vision(hbp_context *context)
{
    made m = {.context = context};
    m.lengths = keep(plans_vision_lengths(context, 5, 60, 100, 0, 0, 2));
    plans_shape shape = plans_draw(8);
    shape.left_over = 5;
    shape.modality_order = 1;
    m.plan = keep(plans_make(&shape, m.lengths));
    OK(context, hbp_plan_validate(context, m.plan, m.lengths, NULL));
    return m;
}

START_TEST_IN_CONTEXT(vision_units_and_kinds_are_held_against_the_lengths)
{
    made m = make_vision(context);
    hbp_plan *plan = m.plan;
    char text[128];
    int64_t p = 0;
    while (plan->pack_vision[p] < 1 || plan->pack_vision_capacity[p] == INT64_MAX)
        p++;
    int64_t i = plan->pack_offsets[p];
    while (!plan->sample_vision[i])
        i++;
    plan->sample_vision[i]--;
    plan->pack_vision[p]--;
    snprintf(text, sizeof text, "sample %d has %d vision units in the plan and %d in the lengths",
             (int)plan->sample_ids[i], (int)plan->sample_vision[i], (int)plan->sample_vision[i] + 1);
    FAILS(m.context, HBP_E_INVALID, text, hbp_plan_validate(m.context, plan, m.lengths, NULL));
    plan->sample_vision[i]++;
    plan->pack_vision[p]++;

    /* A micro-batch that calls all its samples another kind is consistent with itself. */
    int64_t row = 0;
    while (plan->micro_batch_modalities[row] == 3) {
        row++;
        ck_assert_int_lt(row, plan->micro_batches);
    }
    snprintf(text, sizeof text, "is of modality 3 in the plan and of modality %d in the lengths",
             (int)plan->micro_batch_modalities[row] - 1);
    plan->micro_batch_modalities[row] = 8;
    for (p = plan->micro_batch_offsets[row]; p < plan->micro_batch_offsets[row + 1]; p++)
        for (i = plan->pack_offsets[p]; i < plan->pack_offsets[p + 1]; i++)
            plan->sample_modalities[i] = 3;
    FAILS(m.context, HBP_E_INVALID, text, hbp_plan_validate(m.context, plan, m.lengths, NULL));
}
END_TEST

/* Whatever a fill leaves out, the lengths have. */
START_TEST_IN_CONTEXT(samples_that_a_fill_left_out_are_known)
{
    made m = make_vision(context);
    hbp_plan *plan = m.plan;
    int64_t last = plan->dropped - 1, least = INT64_MAX;
    for (int64_t p = 0; p < plan->packs; p++)
        least = hbp__min_i64(least, plan->pack_vision_capacity[p]);
    ck_assert_int_lt(least, 9);
    for (int32_t reason = HBP_DROPPED_OVERLONG; reason <= HBP_DROPPED_LOST; reason++) {
        if (reason == HBP_DROPPED_OVERVISION)
            continue;
        plan->dropped_reasons[last] = reason;
        OK(m.context, hbp_plan_validate(m.context, plan, m.lengths, NULL));
    }
    for (int64_t i = 0; i < plan->dropped; i++) {
        int64_t units = hbp_lengths_get_vision(m.lengths, plan->dropped_ids[i]);
        char text[96];
        plan->dropped_reasons[i] = HBP_DROPPED_OVERVISION;
        snprintf(text, sizeof text, "was dropped for its %d vision units; a pack holds %d", (int)units,
                 (int)least);
        if (units > least)
            OK(m.context, hbp_plan_validate(m.context, plan, m.lengths, NULL));
        else
            FAILS(m.context, HBP_E_INVALID, text, hbp_plan_validate(m.context, plan, m.lengths, NULL));
        plan->dropped_reasons[i] = HBP_DROPPED_LEFTOVER;
    }
    plan->dropped_reasons[last] = HBP_DROPPED_LOST;
    plan->dropped_ids[last] = plan->sample_ids[0];
    FAILS(m.context, HBP_E_INVALID, "sample", hbp_plan_validate(m.context, plan, m.lengths, NULL));
    plan->dropped_reasons[last] = HBP_DROPPED_OVERLONG;
    FAILS(m.context, HBP_E_INVALID, "was dropped as over-long; the lengths do not say so",
          hbp_plan_validate(m.context, plan, m.lengths, NULL));
}
END_TEST

START_TEST_IN_CONTEXT(a_part_need_not_hold_every_sample)
{
    made m = make(context, HBP_OVERLONG_SPLIT, 0);
    hbp_plan *head, *part;
    ck_assert_int_gt(m.plan->steps, 1);
    OK(m.context, hbp__plan_slice(m.context, m.plan, 0, 1, &head));
    OK(m.context, hbp__plan_slice(m.context, m.plan, 1, m.plan->steps - 1, &part));
    OK(m.context, hbp_plan_validate(m.context, part, m.lengths, NULL));
    hbp_lengths *all = plans_lengths(m.context, 5, 30, 100, 0, 0); /* what make limited */
    OK(m.context, hbp_plan_validate(m.context, part, all, NULL));
    hbp_lengths_free(all);
    OK(m.context, hbp_plan_validate(m.context, head, m.lengths, NULL));
    head->epoch_steps = 0; /* as if it were the whole */
    FAILS(m.context, HBP_E_INVALID, "is in no pack and was not dropped",
          hbp_plan_validate(m.context, head, m.lengths, NULL));
    part->sample_ids[0] = 1000;
    FAILS(m.context, HBP_E_INVALID, "sample 1000", hbp_plan_validate(m.context, part, m.lengths, NULL));
    hbp_plan_free(head);
    hbp_plan_free(part);
}
END_TEST

START_TEST_IN_CONTEXT(the_cost_is_held_against_the_plan)
{
    hbp_cost *cost = keep(test_cost(context)), *other = keep(test_cost_ranks(context, 8));
    hbp_lengths *lengths = keep(plans_lengths(context, 1, 200, 2000, 1, 0));
    plans_shape shape = plans_draw(1);
    shape.ranks = 16;
    shape.domain_ranks = 8;
    shape.cost = cost;
    hbp_plan *plan = keep(plans_make(&shape, lengths));
    OK(context, hbp_plan_validate(context, plan, lengths, cost));
    FAILS(context, HBP_E_INVALID, "the plan is for 16 ranks in domains of 8, the cost for 8 in domains of 8",
          hbp_plan_validate(context, plan, NULL, other));

    plan->step_ns[1]++;
    FAILS(context, HBP_E_INVALID, "step 1: ", hbp_plan_validate(context, plan, NULL, cost));
    plan->step_ns[1]--;
    plan->pack_bytes[2]--;
    FAILS(context, HBP_E_INVALID, "pack 2: ", hbp_plan_validate(context, plan, NULL, cost));
    plan->pack_bytes[2]++;
    int32_t layers = plan->pack_recompute[2];
    plan->pack_recompute[2] = 9;
    FAILS(context, HBP_E_INVALID, "pack 2 recomputes 9 layers; the model has 8",
          hbp_plan_validate(context, plan, NULL, cost));
    plan->pack_recompute[2] = layers;
    cost->terms.limit_bytes = 6000000000;
    FAILS(context, HBP_E_INVALID, "bytes; a GPU has 6000000000",
          hbp_plan_validate(context, plan, NULL, cost));
    cost->terms.limit_bytes = INT64_MAX;
    cost->terms.pack_ns++;
    FAILS(context, HBP_E_INVALID, "pack 0: ", hbp_plan_validate(context, plan, NULL, cost));
    cost->terms.pack_ns--;
    cost->terms.degrees = 1;
    FAILS(context, HBP_E_INVALID, ", which the cost does not allow",
          hbp_plan_validate(context, plan, NULL, cost));
    cost->terms.degrees = TEST_DEGREES;

    /* Predictions hold the vision units' share, and memory their bytes. */
    lengths = keep(plans_vision_lengths(context, 1, 200, 2000, 1, 0, 2));
    cost->terms.ns_per_vision = 1e6;
    cost->terms.recompute_vision = 0.5;
    cost->terms.vision_bytes = 1e6;
    plan = keep(plans_make(&shape, lengths));
    OK(context, hbp_plan_validate(context, plan, lengths, cost));
    cost->terms.ns_per_vision = 0;
    FAILS(context, HBP_E_INVALID, "ns are predicted; the cost gives",
          hbp_plan_validate(context, plan, NULL, cost));
    cost->terms.ns_per_vision = 1e6;
    cost->terms.vision_bytes = 0;
    FAILS(context, HBP_E_INVALID, "bytes are predicted; the cost gives",
          hbp_plan_validate(context, plan, NULL, cost));
    cost->terms.vision_bytes = 1e6;
    int64_t most = 0;
    for (int64_t p = 0; p < plan->packs; p++)
        most = hbp__max_i64(most, plan->pack_bytes[p]);
    cost->terms.limit_bytes = most;
    OK(context, hbp_plan_validate(context, plan, lengths, cost));
    cost->terms.limit_bytes = most - 1;
    FAILS(context, HBP_E_INVALID, "bytes; a GPU has", hbp_plan_validate(context, plan, lengths, cost));
}
END_TEST

static hbp_status validate(hbp_context *context, void *user)
{
    made *m = user;
    return hbp_plan_validate(context, m->plan, m->lengths, NULL);
}

START_TEST_IN_CONTEXT(memory_may_end_and_the_caller_may_cancel)
{
    made m = {.context = context};
    m.lengths = keep(plans_lengths(context, 5, 300, 1000, 0, 0));
    plans_shape shape = plans_draw(8);
    shape.left_over = 3;
    hbp_lengths *cut = keep(limited(context, m.lengths, 700, HBP_OVERLONG_SPLIT));
    m.plan = keep(plans_make(&shape, cut));
    failing_sweep(validate, &m);
    ck_assert_int_gt(cancel_sweep(validate, &m), 1);
    FAILS(m.context, HBP_E_INVALID, "plan", hbp_plan_validate(m.context, NULL, NULL, NULL));
}
END_TEST

TEST_MAIN("validate", what_was_planned_is_valid, limits_are_found_again,
          lengths_without_their_units_are_named, a_histogram_is_lengths_too,
          samples_that_are_not_right_are_named, lengths_that_are_not_right_are_named,
          pieces_that_are_not_right_are_named, pieces_that_were_dropped_are_held_against_the_lengths,
          vision_units_and_kinds_are_held_against_the_lengths, samples_that_a_fill_left_out_are_known,
          ties_that_are_torn_are_named, a_part_need_not_hold_every_sample, the_cost_is_held_against_the_plan,
          memory_may_end_and_the_caller_may_cancel)

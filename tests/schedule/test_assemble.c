/* The columns of a plan against the packs, micro-batches and steps that it is made of. What every plan
 * promises is tested with those who plan; here the second size, kinds, and what was left out. */
#include "base/methods.h"
#include "base/quantity.h"
#include "costs.h"
#include "data/plan/plan.h"
#include "failing.h"
#include "keep.h"
#include "plans.h"
#include "schedule/microbatch.h"

/* Eight samples of three kinds on two ranks: a pack with kinds 1 0 1 0, one with 0 1, one with 2 alone, and
 * sample 7 left out; two micro-batches, and two of dummies. */
typedef struct by_hand {
    hbp_context *context;
    hbp_cost *cost;
    hbp_lengths *lengths;
    hbp_groups *groups;
    hbp_packs *packs;
    hbp_balance_options options;
} by_hand;

static by_hand by_hand_open(hbp_context *context, double vision_bytes)
{
    static const uint32_t sample[] = {0, 1, 4, 3, 6, 5, 2}, vision[] = {1, 0, 5, 0, 2, 3, 0, 6};
    static const int32_t kind[] = {1, 0, 2, 0, 1, 1, 0, 2};
    by_hand b = {.context = context};
    b.options = (hbp_balance_options){
        .struct_size = sizeof b.options, .micro_batch_multiple = 4, .modality_order = 1, .seed = 9};
    b.cost = keep(test_cost_vision(context, 2, 4e6, vision_bytes));
    hbp_lengths_options options = {.struct_size = sizeof options, .vision = vision, .modalities = kind};
    MAKES(context, b.lengths,
          hbp_lengths_create_i64(context, (int64_t[]){10, 11, 12, 13, 14, 15, 16, 17}, 8, &options,
                                 &b.lengths));
    MAKES(
        context, b.groups,
        hbp_groups_create(context, b.cost, 1, (int64_t[]){64}, (int32_t[]){1}, (int32_t[]){2}, 0, &b.groups));
    b.packs = keep(hbp__packs_new(context, b.lengths, 3));
    memcpy(b.packs->sample, sample, sizeof sample);
    b.packs->offsets[1] = 4;
    b.packs->offsets[2] = 6;
    b.packs->offsets[3] = b.packs->samples = 7;
    for (int p = 0; p < 3; p++)
        b.packs->group[p] = 0;
    b.packs->dropped = 1;
    b.packs->dropped_sample = hbp__new(&b.context->memory, 1, sizeof *b.packs->dropped_sample);
    b.packs->dropped_reason = hbp__new(&b.context->memory, 1, sizeof *b.packs->dropped_reason);
    b.packs->dropped_sample[0] = 7;
    b.packs->dropped_reason[0] = HBP_DROPPED_OVERVISION;
    b.packs->max_vision[0] = 5;
    OK(context, hbp__packs_measure(context, b.packs));
    return b;
}

static hbp_status assemble(hbp_context *context, const by_hand *b, hbp_plan **out)
{
    int32_t group[] = {0, 0};
    int64_t first[] = {0, 2, 4}, step_first[] = {0, 4};
    uint32_t place[] = {0, 1, 2, HBP__PADDING_PACK}, row[] = {0, 1, HBP__PADDING_PACK, HBP__PADDING_PACK};
    hbp__micro_batches batches = {.count = 2, .group = group, .first = first, .place = place};
    hbp__steps steps = {.count = 1, .first = step_first, .micro_batch = row};
    return hbp__assemble(context, b->packs, b->groups, b->cost, &b->options, &batches, &steps, out);
}

#define SAME_COLUMN(column, ...)                                                                             \
    do {                                                                                                     \
        const int64_t wanted[] = {__VA_ARGS__};                                                              \
        for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)                                          \
            ck_assert_msg((column)[i] == wanted[i], #column "[%d] is %lld, not %lld", (int)i,                \
                          (long long)(column)[i], (long long)wanted[i]);                                     \
    } while (0)

START_TEST_IN_CONTEXT(kinds_ascend_and_padding_follows)
{
    by_hand b = by_hand_open(context, 1000);
    hbp_plan *plan = NULL;
    OK(b.context, assemble(b.context, &b, &plan));
    OK(b.context, hbp_plan_validate(b.context, plan, b.lengths, b.cost));
    SAME_COLUMN(plan->sample_ids, 1, 3, 0, 4, 6, 5, 2);
    SAME_COLUMN(plan->sample_tokens, 11, 13, 10, 14, 16, 15, 12);
    SAME_COLUMN(plan->sample_vision, 0, 0, 1, 2, 0, 3, 5);
    SAME_COLUMN(plan->sample_modalities, 0, 0, 1, 1, 0, 1, 2);
    SAME_COLUMN(plan->pack_offsets, 0, 4, 6, 7, 7, 7, 7, 7, 7);
    SAME_COLUMN(plan->pack_vision, 3, 3, 5, 0, 0, 0, 0, 0);
    SAME_COLUMN(plan->pack_vision_capacity, 5, 5, 5, 5, 5, 5, 5, 5);
    SAME_COLUMN(plan->micro_batch_modalities, 3, 4, 3, 3);
    SAME_COLUMN(plan->dropped_ids, 7);
    SAME_COLUMN(plan->dropped_reasons, HBP_DROPPED_OVERVISION);
    ck_assert_int_eq(plan->pack_ns[2], hbp_cost_predict_pack_ns(b.cost, 1, 2, 12, 144, 5));
    ck_assert_int_eq(plan->pack_bytes[2], hbp_cost_predict_pack_bytes(b.cost, 1, 2, 12, 5));
    ck_assert_int_gt(plan->pack_ns[2], hbp_cost_predict_pack_ns(b.cost, 1, 2, 12, 144, 0));
    ck_assert_int_eq(plan->micro_batch_ns[1], plan->pack_ns[2]);
    hbp_rank_pack mine[4];
    int64_t count = 0;
    OK(b.context, hbp_plan_copy_rank_packs(b.context, plan, 0, 1, mine, sizeof *mine, 4, &count));
    ck_assert_int_eq(count, 4);
    ck_assert(mine[1].is_padding && mine[1].modalities == 4 && mine[1].vision == 0);
    ck_assert(!mine[0].is_padding && mine[0].modalities == 3 && mine[0].vision == 3);
    hbp_plan_free(plan);

    b.options.modality_order = 0;
    OK(b.context, assemble(b.context, &b, &plan));
    SAME_COLUMN(plan->sample_ids, 0, 1, 4, 3, 6, 5, 2);
    ck_assert_ptr_null(plan->sample_modalities);
    ck_assert_ptr_null(plan->micro_batch_modalities);
    hbp_plan_free(plan);
}
END_TEST

START_TEST_IN_CONTEXT(vision_units_must_fit_in_memory)
{
    by_hand b = by_hand_open(context, 8e9); /* 3 units fit into 40e9 bytes, 5 do not */
    hbp_plan *plan = NULL;
    char text[128];
    snprintf(text, sizeof text, "a pack of 12 tokens and 5 vision units needs %s at SP 1; a GPU has 37.3 GiB",
             hbp__say_bytes(hbp_cost_predict_pack_bytes(b.cost, 1, 2, 12, 5)).text);
    FAILS(b.context, HBP_E_INFEASIBLE, text, assemble(b.context, &b, &plan));
    ck_assert_ptr_null(plan);
}
END_TEST

/* Every mode, with split samples, loss tokens and kinds: the plan says what lengths and cost say. */
START_TEST(plans_agree_with_lengths_and_cost)
{
    for (uint64_t seed = 0; seed < 12; seed++) {
        hbp_context *context = test_context();
        hbp_cost *cost = test_cost_vision(context, 16, 4e6, 1e6);
        hbp_lengths *all = plans_vision_lengths(context, seed, 700, 6000, seed % 2, 0, 3), *lengths = NULL;
        hbp_groups *groups = NULL;
        hbp_packs *packs = NULL;
        OK(context, hbp_lengths_limit(context, all, 4096, HBP_OVERLONG_SPLIT, &lengths));
        OK(context,
           hbp_groups_create(context, cost, 2, (int64_t[]){2048, 8192}, (int32_t[]){1, 8}, NULL, 0, &groups));
        hbp_fill_options fill = {.struct_size = sizeof fill, .seed = seed, .sequence_multiple = 8};
        OK(context, hbp_greedy_fill(context, lengths, groups, &fill, &packs));
        for (int32_t mode = HBP__BALANCE_TIME; mode <= HBP__BALANCE_RANDOM; mode++) {
            hbp_balance_options options = {.struct_size = sizeof options,
                                           .method = hbp__balance_name(mode),
                                           .drop_last = seed % 3 == 0,
                                           .micro_batch_multiple = 1 + (int32_t)(seed % 2),
                                           .seed = seed};
            options.modality_order = seed % 4 < 2;
            hbp_plan *plan = NULL;
            hbp_plan_summary summary = {.struct_size = sizeof summary};
            OK(context, hbp_balance_attention(context, packs, groups, cost, &options, &plan));
            OK(context, hbp_plan_validate(context, plan, lengths, cost));
            OK(context, hbp_plan_validate(context, plan, all, cost));
            OK(context, hbp_plan_get_summary(context, plan, &summary));
            ck_assert_int_eq(plan->sample_modalities != NULL, options.modality_order);
            ck_assert_int_eq(summary.modalities, options.modality_order ? 7 : 0);
            int64_t units = 0;
            for (int64_t i = 0; i < plan->samples; i++) {
                int64_t first = plan->sample_first_tokens[i], id = plan->sample_ids[i];
                ck_assert_int_eq(plan->sample_vision[i], first ? 0 : hbp_lengths_get_vision(all, id));
                if (plan->sample_modalities)
                    ck_assert_int_eq(plan->sample_modalities[i], hbp_lengths_get_modality(all, id));
                units += plan->sample_vision[i];
            }
            ck_assert_int_eq(summary.vision, units);
            ck_assert(plan->dropped || units == all->vision_sum);
            for (int64_t p = 0; p < plan->packs; p++)
                ck_assert(plan->pack_vision_capacity[p] == INT64_MAX);
            hbp_plan_free(plan);
        }
        hbp_packs_free(packs);
        hbp_groups_free(groups);
        hbp_lengths_free(lengths);
        hbp_lengths_free(all);
        hbp_cost_free(cost);
        hbp_context_free(context);
    }
}
END_TEST

/* Two packs filled for a common multiple, one on four ranks and one on each rank, recorded as each degree
 * pads. */
START_TEST_IN_CONTEXT(padding_goes_by_degree)
{
    hbp_cost *cost = keep(test_cost_ranks(context, 4));
    hbp_lengths *lengths = NULL;
    hbp_groups *groups = NULL;
    hbp_plan *plan = NULL;
    hbp_balance_options options = {.struct_size = sizeof options, .micro_batch_multiple = 1};
    MAKES(context, lengths, hbp_lengths_create_i64(context, (int64_t[]){5, 7, 30, 41}, 4, NULL, &lengths));
    MAKES(context, groups,
          hbp_groups_create(context, cost, 2, (int64_t[]){48, 144}, (int32_t[]){1, 4}, NULL, 0, &groups));
    hbp_packs *packs = keep(hbp__packs_new(context, lengths, 2));
    memcpy(packs->sample, (uint32_t[]){0, 1, 2, 3}, 4 * sizeof *packs->sample);
    packs->offsets[1] = 2;
    packs->offsets[2] = packs->samples = 4;
    packs->group[0] = 0;
    packs->group[1] = 1;
    packs->sequence_multiple = 24; /* of 2 alone, and of 3 x 4 and 2 */
    packs->pack_multiple = 48;
    packs->padding = (hbp__padding){2, 3, 3, 4};
    OK(context, hbp__packs_measure(context, packs));
    int32_t group[] = {0, 1};
    int64_t first[] = {0, 4, 5}, step_first[] = {0, 2};
    uint32_t place[] = {0, HBP__PADDING_PACK, HBP__PADDING_PACK, HBP__PADDING_PACK, 1}, row[] = {0, 1};
    hbp__micro_batches batches = {.count = 2, .group = group, .first = first, .place = place};
    hbp__steps steps = {.count = 1, .first = step_first, .micro_batch = row};
    MAKES(context, plan, hbp__assemble(context, packs, groups, cost, &options, &batches, &steps, &plan));
    OK(context, hbp_plan_validate(context, plan, lengths, cost));
    SAME_COLUMN(plan->pack_sp, 1, 1, 1, 1, 4);
    SAME_COLUMN(plan->pack_padded_tokens, 15, 0, 0, 0, 96); /* 6 + 8 to 3; 36 + 48 to 48 */
    hbp_plan_summary summary = {.struct_size = sizeof summary};
    OK(context, hbp_plan_get_summary(context, plan, &summary));
    ck_assert_int_eq(summary.sequence_multiple, 2);
    ck_assert_int_eq(summary.pack_multiple, 3);
    ck_assert_int_eq(summary.sequence_multiple_per_sp, 3);
    ck_assert_int_eq(summary.pack_multiple_per_sp, 4);
    /* Without it the fill's multiples stand. */
    packs->padding = (hbp__padding){0};
    MAKES(context, plan, hbp__assemble(context, packs, groups, cost, &options, &batches, &steps, &plan));
    SAME_COLUMN(plan->pack_padded_tokens, 48, 0, 0, 0, 96);
    ck_assert_int_eq(plan->sequence_multiple, 24);
}
END_TEST

static hbp_status assemble_once(hbp_context *context, void *user)
{
    hbp_plan *plan = NULL;
    hbp_status status = assemble(context, user, &plan);
    ck_assert_int_eq(status == HBP_OK, plan != NULL);
    hbp_plan_free(plan);
    return status;
}

START_TEST_IN_CONTEXT(nothing_is_left_behind)
{
    by_hand b = by_hand_open(context, 1000);
    failing_sweep(assemble_once, &b);
    ck_assert_int_gt(cancel_sweep(assemble_once, &b), 0);
}
END_TEST

TEST_MAIN("assemble", kinds_ascend_and_padding_follows, vision_units_must_fit_in_memory,
          plans_agree_with_lengths_and_cost, padding_goes_by_degree, nothing_is_left_behind)

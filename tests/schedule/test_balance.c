#include "base/methods.h"
#include "schedule/balance.h"

#include "data/plan/plan.h"
#include "failing.h"
#include "packed.h"

/* Every mode and option gives a plan that keeps its promises and holds every sample or says why not. */
START_TEST_IN_CONTEXT(plans_keep_their_promises)
{
    int mark = keep_mark();
    for (uint64_t seed = 0; seed < 4; keep_release(mark), seed++) {
        packed p = packed_open(context, seed, 300 + 1500 * (int64_t)seed);
        for (int32_t mode = HBP__BALANCE_TIME; mode <= HBP__BALANCE_RANDOM; mode++) {
            hbp_balance_options options = {.struct_size = sizeof options,
                                           .method = hbp__balance_name(mode),
                                           .micro_batch_multiple = 1 + (int32_t)seed,
                                           .drop_last = seed == 3,
                                           .curriculum_steps = (int64_t)seed,
                                           .seed = seed};
            hbp_plan *plan = NULL;
            OK(p.context, hbp_balance_attention(p.context, p.packs, p.groups, p.cost, &options, &plan));
            OK(p.context, hbp__plan_check(p.context, plan));
            char *seen = calloc((size_t)p.lengths->count, 1);
            for (int64_t i = 0; i < plan->samples; i++) {
                ck_assert_int_eq(seen[plan->sample_ids[i]]++, 0);
                ck_assert_int_eq(plan->sample_tokens[i],
                                 hbp_lengths_get_length(p.lengths, plan->sample_ids[i]));
            }
            for (int64_t i = 0; i < plan->dropped; i++) {
                ck_assert_int_eq(seen[plan->dropped_ids[i]]++, 0);
                ck_assert_int_eq(plan->dropped_reasons[i], HBP_DROPPED_LEFTOVER);
            }
            ck_assert_int_eq(plan->samples + plan->dropped, p.lengths->count);
            ck_assert(seed == 3 || plan->dropped == 0);
            for (int64_t i = 0; i < plan->packs; i++) {
                ck_assert_int_eq(plan->pack_ns[i],
                                 hbp_cost_predict_pack_ns(p.cost, plan->pack_sp[i], plan->pack_recompute[i],
                                                          plan->pack_padded_tokens[i],
                                                          (double)plan->pack_squares[i], 0));
                ck_assert_int_eq(plan->pack_bytes[i], hbp_cost_predict_pack_bytes(
                                                          p.cost, plan->pack_sp[i], plan->pack_recompute[i],
                                                          plan->pack_padded_tokens[i], 0));
            }
            for (int64_t s = 0; s < options.curriculum_steps && s < plan->steps; s++)
                ck_assert_int_eq(plan->pack_sp[plan->micro_batch_offsets[plan->step_offsets[s]]], 1);
            free(seen);
            hbp_plan_free(plan);
        }
    }
}
END_TEST

START_TEST_IN_CONTEXT(what_does_not_belong_together_is_named)
{
    packed p = packed_open(context, 1, 500);
    hbp_plan *plan = (hbp_plan *)1;
    hbp_cost *other = test_cost_ranks(p.context, 8);
    FAILS(p.context, HBP_E_INVALID, "the groups are for 16 ranks, the cost for 8",
          hbp_balance_attention(p.context, p.packs, p.groups, other, NULL, &plan));
    ck_assert_ptr_null(plan);
    hbp_groups *shorter = NULL;
    OK(p.context, hbp_groups_create(p.context, p.cost, 2, (int64_t[]){2048, 8192}, (int32_t[]){1, 1}, NULL, 0,
                                    &shorter));
    FAILS(p.context, HBP_E_INVALID, "is not of these groups",
          hbp_balance_attention(p.context, p.packs, shorter, p.cost, NULL, &plan));
    hbp_balance_options options = {.struct_size = sizeof options, .method = "tim"};
    FAILS(p.context, HBP_E_INVALID, "`method` is 'tim'; did you mean 'time'?",
          hbp_balance_attention(p.context, p.packs, p.groups, p.cost, &options, &plan));
    options = (hbp_balance_options){.struct_size = sizeof options, .micro_batch_multiple = -1};
    FAILS(p.context, HBP_E_INVALID, "`micro_batch_multiple` is -1; it must be in 0..65536",
          hbp_balance_attention(p.context, p.packs, p.groups, p.cost, &options, &plan));
    options = (hbp_balance_options){.struct_size = sizeof options, .curriculum_steps = -1};
    FAILS(p.context, HBP_E_INVALID, "`curriculum_steps` is -1; it must be in 0..9223372036854775807",
          hbp_balance_attention(p.context, p.packs, p.groups, p.cost, &options, &plan));
    hbp_groups_free(shorter);
    hbp_cost_free(other);
}
END_TEST

static hbp_status balance_once(hbp_context *context, void *user)
{
    packed *p = user;
    hbp_plan *plan = NULL;
    hbp_status status = hbp_balance_attention(context, p->packs, p->groups, p->cost, NULL, &plan);
    ck_assert_int_eq(status == HBP_OK, plan != NULL);
    hbp_plan_free(plan);
    return status;
}

START_TEST_IN_CONTEXT(nothing_is_left_behind)
{
    packed p = packed_open(context, 2, 800);
    failing_sweep(balance_once, &p);
    ck_assert_int_gt(cancel_sweep(balance_once, &p), 2);
}
END_TEST

TEST_MAIN("balance", plans_keep_their_promises, what_does_not_belong_together_is_named,
          nothing_is_left_behind)

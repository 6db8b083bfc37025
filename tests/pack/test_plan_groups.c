#include "base/checked.h"
#include "costs.h"
#include "failing.h"
#include "keep.h"
#include "pack/groups/hierarchy.h"

enum { SAMPLES = 600 };

typedef struct drawn {
    uint32_t tokens[SAMPLES], vision[SAMPLES];
    int64_t links[SAMPLES];
    hbp_lengths *lengths;
    hbp_cost *cost;
} drawn;

static void draw(hbp_context *context, drawn *d, uint64_t seed, uint32_t longest, int has_links)
{
    hbp__rng rng = hbp__rng_make(seed, 0, 0);
    for (int64_t i = 0; i < SAMPLES; i++) {
        d->tokens[i] = 1 + hbp__rng_below(&rng, hbp__rng_below(&rng, 5) ? longest / 8 : longest);
        d->vision[i] = hbp__rng_below(&rng, 3) ? 0 : hbp__rng_below(&rng, 13);
        d->links[i] = i % 10 < 3 ? i / 10 : -1;
    }
    hbp_lengths_options options = {
        .struct_size = sizeof options, .vision = d->vision, .links = has_links ? d->links : NULL};
    OK(context, hbp_lengths_create_u32(context, d->tokens, SAMPLES, &options, &d->lengths));
}

/* Whatever units weigh, a full pack of the last group holds the sample with most of them, and packs of all
 * groups as many as the data have for their tokens; what tokens take is told without units. */
START_TEST_IN_CONTEXT(packs_have_room_for_their_units)
{
    int64_t infeasible = 0, wider = 0;
    for (int i = 0; i < 60; i++) {
        drawn d;
        draw(context, &d, (uint64_t)i, 8000, i % 3 == 2);
        hbp_cost *cost = test_cost_vision(context, 16, 1e6 * (i % 5), 3e8 * i);
        hbp_groups *groups = NULL;
        int64_t most, tokens;
        double density = (double)d.lengths->vision_sum / (double)d.lengths->tokens;
        OK(context, hbp__groups_largest(context, d.lengths, 1, &tokens, &most));
        hbp_status status = hbp_plan_groups(context, d.lengths, cost, NULL, &groups);
        if (status == HBP_E_INFEASIBLE) {
            ck_assert_ptr_nonnull(strstr(hbp_context_message(context), "vision units on 16 ranks"));
            infeasible++;
        } else {
            ck_assert_msg(status >= 0, "%s", hbp_context_message(context));
            for (int64_t g = 0; g < groups->count; g++) {
                int64_t units = (int64_t)(density * (double)groups->pack_length[g]);
                if (g == groups->count - 1)
                    units = hbp__max_i64(units, most);
                ck_assert_int_le(hbp_cost_predict_pack_bytes(cost, groups->sp[g], groups->recompute[g],
                                                             groups->pack_length[g], units),
                                 cost->terms.limit_bytes);
                hbp__point point =
                    hbp__point_make(cost, hbp__cost_row(cost, groups->sp[g]), groups->recompute[g]);
                ck_assert(groups->token_ns[g] == point.linear);
                ck_assert(groups->fixed_ns[g] == point.constant);
                wider += groups->sp[g] > 1;
            }
            hbp_groups_free(groups);
        }
        hbp_cost_free(cost);
        hbp_lengths_free(d.lengths);
    }
    ck_assert_int_gt(infeasible, 3);
    ck_assert_int_gt(wider, 10);
}
END_TEST

START_TEST_IN_CONTEXT(the_most_units_are_of_what_is_linked)
{
    for (uint64_t seed = 0; seed < 40; seed++) {
        drawn d;
        int64_t most, tokens, expected = 0, sum[SAMPLES] = {0};
        draw(context, &d, seed, 1000, seed % 2);
        for (int64_t i = 0; i < SAMPLES; i++) {
            int64_t at = seed % 2 && d.links[i] >= 0 ? d.links[i] : i;
            if (seed % 2 && d.links[i] < 0)
                expected = hbp__max_i64(expected, d.vision[i]);
            else
                expected = hbp__max_i64(expected, sum[at] += d.vision[i]);
        }
        OK(context, hbp__groups_largest(context, d.lengths, 1, &tokens, &most));
        ck_assert_int_eq(most, expected);
        hbp_lengths_free(d.lengths);
    }
}
END_TEST

/* No packs that would be full of units long before they are full of tokens, where samples leave a choice. */
START_TEST_IN_CONTEXT(packs_are_no_longer_than_their_units_last)
{
    drawn d;
    draw(context, &d, 5, 1000, 0);
    hbp_cost *cost = keep(test_cost_vision(context, 8, 1e6, 1e6));
    double density = (double)d.lengths->vision_sum / (double)d.lengths->tokens;
    for (int64_t most = 12; most <= 200; most += 47) {
        hbp_groups *groups = NULL;
        OK(context, hbp__plan_groups(context, d.lengths, cost, NULL, most, &groups));
        double limit = (double)most / density;
        for (int64_t g = 0; g < groups->count; g++)
            ck_assert_double_le((double)groups->pack_length[g], limit > 1000 ? limit : 1000);
        hbp_groups_free(groups);
    }
    hbp_lengths_free(d.lengths);
}
END_TEST

/* Units that neither the cost charges nor max_vision limits change nothing. */
START_TEST_IN_CONTEXT(units_that_do_not_count_change_nothing)
{
    drawn d;
    draw(context, &d, 3, 4000, 0);
    hbp_cost *cost = keep(test_cost_vision(context, 8, 0, 0));
    hbp_groups *with = NULL, *without = NULL;
    hbp_lengths *plain = NULL;
    MAKES(context, plain, hbp_lengths_create_u32(context, d.tokens, SAMPLES, NULL, &plain));
    MAKES(context, with, hbp_plan_groups(context, d.lengths, cost, NULL, &with));
    MAKES(context, without, hbp_plan_groups(context, plain, cost, NULL, &without));
    ck_assert_int_eq(with->count, without->count);
    for (int64_t g = 0; g < with->count; g++) {
        ck_assert_int_eq(with->pack_length[g], without->pack_length[g]);
        ck_assert_int_eq(with->sp[g], without->sp[g]);
        ck_assert_int_eq(with->step_ns[g], without->step_ns[g]);
    }
    hbp_lengths_free(d.lengths);
}
END_TEST

static hbp_status once(hbp_context *context, void *user)
{
    const drawn *d = user;
    hbp_groups *groups = NULL;
    hbp_status status = hbp_plan_groups(context, d->lengths, d->cost, NULL, &groups);
    hbp_groups_free(groups);
    return status;
}

START_TEST_IN_CONTEXT(nothing_is_left_behind)
{
    drawn d;
    draw(context, &d, 3, 500, 1);
    d.cost = keep(test_cost_vision(context, 4, 1e6, 1e7));
    failing_sweep(once, &d);
    ck_assert_int_gt(cancel_sweep(once, &d), 1);
    hbp_lengths_free(d.lengths);
}
END_TEST

TEST_MAIN("plan groups", packs_have_room_for_their_units, the_most_units_are_of_what_is_linked,
          packs_are_no_longer_than_their_units_last, units_that_do_not_count_change_nothing,
          nothing_is_left_behind)

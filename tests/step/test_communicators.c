#include "base/methods.h"
#include "hbp/step.h"

#include "base/rng.h"
#include "costs.h"
#include "failing.h"
#include "keep.h"

enum { MOST = 4096 };

/* A machine whose domains are no power of two: 24 ranks in domains of 12, or 72 in one. */
static hbp_cost *twelves(hbp_context *context, int32_t ranks, int32_t domain)
{
    static const int32_t degree[] = {1, 2, 3, 4, 6, 12, 24};
    static const double latency[] = {0, 2e6, 2e6, 2e6, 2e6, 2e6, 9e6};
    static const double per_token[] = {0, 900, 800, 700, 500, 400, 2000};
    hbp_cost_terms terms = {.struct_size = sizeof terms};
    terms.ranks = ranks;
    terms.domain_ranks = domain;
    terms.layers = 8;
    terms.ns_per_token = 25000;
    terms.ns_per_token_squared = 0.6;
    terms.pack_ns = 4e7;
    terms.activation_bytes = 140000;
    terms.recomputed_bytes = 8192;
    terms.limit_bytes = INT64_C(10000000000);
    terms.degrees = 7;
    terms.degree = degree;
    terms.sp_latency_ns = latency;
    terms.sp_ns_per_token = per_token;
    hbp_cost *cost = NULL;
    OK(context, hbp_cost_create_terms(context, &terms, &cost));
    return cost;
}

static int64_t list(hbp_context *context, const hbp_cost *cost, const hbp_step_options *options, int32_t rank,
                    hbp_communicator *all)
{
    int64_t count = -1, again = -1;
    OK(context, hbp_list_communicators(context, cost, options, rank, NULL, 0, 0, &count));
    ck_assert_int_le(count, MOST);
    OK(context, hbp_list_communicators(context, cost, options, rank, all, sizeof *all, MOST, &again));
    ck_assert_int_eq(count, again);
    return count;
}

START_TEST_IN_CONTEXT(the_table_of_powers_of_two)
{
    hbp_cost *cost = keep(test_cost(context));
    hbp_communicator all[MOST], mine[MOST];
    int64_t count = list(context, cost, NULL, -1, all), row = 0;
    ck_assert_int_eq(count, 16 + 8 + 4 + 2);
    for (int32_t sp = 1; sp <= 8; sp *= 2)
        for (int32_t first = 0; first < 16; first += sp, row++) {
            ck_assert_int_eq(all[row].sp, sp);
            ck_assert_int_eq(all[row].first_rank, first);
            ck_assert_int_eq(all[row].color, first / sp);
            ck_assert_int_eq(all[row].index, row);
            ck_assert_int_eq(hbp_find_communicator(all, sizeof *all, count, first, sp), row);
        }
    ck_assert_int_eq(row, count);
    for (int32_t rank = 0; rank < 16; rank++) {
        int64_t some = list(context, cost, NULL, rank, mine);
        ck_assert_int_eq(some, 4);
        for (int64_t i = 0; i < some; i++) {
            ck_assert(mine[i].first_rank <= rank && rank < mine[i].first_rank + mine[i].sp);
            ck_assert_mem_eq(&mine[i], &all[mine[i].index], sizeof *mine);
        }
    }
    ck_assert_int_eq(hbp_find_communicator(all, sizeof *all, count, 3, 2), -1);
    ck_assert_int_eq(hbp_find_communicator(all, sizeof *all, count, 0, 16), -1);
    ck_assert_int_eq(hbp_find_communicator(all, sizeof *all, count, -1, 1), -1);
    ck_assert_int_eq(hbp_find_communicator(NULL, 0, 0, 0, 1), -1);
}
END_TEST

/* Against the definition: every aligned range of an allowed degree, inside a domain when it fits one. */
START_TEST_IN_CONTEXT(the_table_is_every_group_that_may_be)
{
    static const int32_t shapes[][2] = {{24, 12}, {24, 24}, {72, 24}, {48, 12}};
    hbp_communicator all[MOST];
    for (int i = 0; i < 4; i++)
        for (int any = 0; any < 2; any++) {
            int32_t ranks = shapes[i][0], domain = shapes[i][1];
            hbp_cost *cost = twelves(context, ranks, domain);
            hbp_step_options options = {.struct_size = sizeof options};
            options.any_degree = any;
            int64_t count = list(context, cost, &options, -1, all), row = 0;
            for (int32_t sp = 1; sp <= 24; sp++) {
                if (24 % sp || sp == 8 || (!any && (sp & (sp - 1))))
                    continue;
                for (int32_t first = 0; first + sp <= ranks; first++) {
                    if (first % sp || (sp <= domain && first / domain != (first + sp - 1) / domain))
                        continue;
                    ck_assert_int_lt(row, count);
                    ck_assert_int_eq(all[row].sp, sp);
                    ck_assert_int_eq(all[row].first_rank, first);
                    ck_assert_int_eq(all[row].index, row);
                    row++;
                }
            }
            ck_assert_int_eq(row, count);
            hbp_cost_free(cost);
        }
}
END_TEST

START_TEST_IN_CONTEXT(options_narrow_the_table_but_not_to_nothing)
{
    hbp_cost *cost = keep(test_cost(context));
    hbp_communicator mine[MOST];
    hbp_step_options options = {.struct_size = sizeof options};
    options.min_sp = 4;
    options.max_sp = 4;
    ck_assert_int_eq(list(context, cost, &options, 5, mine), 2);
    ck_assert_int_eq(mine[0].sp, 1);
    ck_assert_int_eq(mine[0].first_rank, 5);
    ck_assert_int_eq(mine[0].index, 5);
    ck_assert_int_eq(mine[1].sp, 4);
    ck_assert_int_eq(mine[1].first_rank, 4);
    ck_assert_int_eq(mine[1].index, 17);
}
END_TEST

static void check_plan(const hbp_plan *plan, const hbp_communicator *all, int64_t count, int32_t ranks)
{
    hbp_plan_view view = plan_view(plan);
    int64_t packs = view.packs;
    const int32_t *first = view.pack_ranks, *sp = view.pack_sp;
    for (int64_t p = 0; p < packs; p++) {
        int64_t row = hbp_find_communicator(all, sizeof *all, count, first[p], sp[p]);
        ck_assert_msg(row >= 0, "pack %d: ranks %d + %d of %d are not listed", (int)p, (int)first[p],
                      (int)sp[p], (int)ranks);
        ck_assert_int_eq(all[row].index, row);
        ck_assert_int_eq(all[row].first_rank, first[p]);
        ck_assert_int_eq(all[row].sp, sp[p]);
    }
}

/* Every mode, any degrees, many batches: no pack runs on a group that was not announced. */
START_TEST_IN_CONTEXT(every_pack_is_in_the_table)
{
    hbp_communicator all[MOST];
    hbp_cost *costs[] = {test_cost(context), test_cost_ranks(context, 4), twelves(context, 24, 12),
                         twelves(context, 72, 24)};
    int64_t plans = 0;
    for (uint64_t seed = 0; seed < 96; seed++) {
        hbp__rng rng = hbp__rng_make(seed, 5, 0);
        const hbp_cost *cost = costs[seed % 4];
        hbp_lengths *lengths = test_long_tail(context, seed, 5 + hbp__rng_below(&rng, 60), 60000);
        hbp_step_options options = {.struct_size = sizeof options};
        options.method = hbp__step_name((int32_t)(seed / 4 % HBP__STEP_METHOD_COUNT));
        options.any_degree = (int32_t)hbp__rng_below(&rng, 2);
        options.recompute = (int32_t)hbp__rng_below(&rng, 3);
        options.min_sp = (int32_t)hbp__rng_below(&rng, 3);
        hbp_plan *plan = NULL;
        hbp_status status = hbp_plan_step(context, lengths, cost, &options, &plan);
        ck_assert_msg(status >= 0 || status == HBP_E_INFEASIBLE, "%s", hbp_context_message(context));
        if (plan) {
            int64_t count = list(context, cost, &options, -1, all);
            check_plan(plan, all, count, (int32_t)all[count - 1].sp);
            plans++;
        }
        hbp_plan_free(plan);
        hbp_lengths_free(lengths);
    }
    ck_assert_int_gt(plans, 60);
    for (int i = 0; i < 4; i++)
        hbp_cost_free(costs[i]);
}
END_TEST

/* The hierarchy's plans too, with every degree of the cost. */
START_TEST_IN_CONTEXT(packs_of_an_epoch_are_in_the_table)
{
    hbp_communicator all[MOST];
    hbp_cost *cost = keep(twelves(context, 24, 12));
    hbp_step_options options = {.struct_size = sizeof options};
    options.any_degree = 1;
    int64_t count = list(context, cost, &options, -1, all);
    for (uint64_t seed = 0; seed < TEST_FEW(5, 1); seed++) {
        hbp_lengths *lengths = test_long_tail(context, seed, 800, 50000);
        hbp_plan *plan = NULL;
        OK(context, hbp_plan_epoch(context, lengths, cost, NULL, &plan));
        check_plan(plan, all, count, 24);
        hbp_plan_free(plan);
        hbp_lengths_free(lengths);
    }
}
END_TEST

START_TEST_IN_CONTEXT(entries_may_be_of_another_size)
{
    hbp_cost *cost = keep(test_cost(context));
    const uint32_t sizes[] = {12, sizeof(hbp_communicator) + 8};
    for (int i = 0; i < 2; i++) {
        unsigned char room[40 * (sizeof(hbp_communicator) + 8)];
        int64_t count = 0;
        memset(room, 0xa5, sizeof room);
        OK(context,
           hbp_list_communicators(context, cost, NULL, -1, (hbp_communicator *)room, sizes[i], 29, &count));
        ck_assert_int_eq(count, 30);
        ck_assert_uint_eq(room[29 * sizes[i]], 0xa5);
        ck_assert_int_eq(hbp_find_communicator((hbp_communicator *)room, sizes[i], 29, 12, 4), 27);
        ck_assert_int_eq(hbp_find_communicator((hbp_communicator *)room, sizes[i], 29, 5, 1), 5);
    }
}
END_TEST

START_TEST_IN_CONTEXT(bad_arguments_are_named)
{
    hbp_cost *cost = keep(test_cost(context));
    hbp_communicator all[4];
    int64_t count = -1;
    hbp_step_options options = {.struct_size = sizeof options};
    FAILS(context, HBP_E_INVALID, "cost is NULL",
          hbp_list_communicators(context, NULL, NULL, -1, all, sizeof *all, 4, &count));
    ck_assert_int_eq(count, 0);
    FAILS(context, HBP_E_INVALID, "count is NULL",
          hbp_list_communicators(context, cost, NULL, -1, all, sizeof *all, 4, NULL));
    FAILS(context, HBP_E_INVALID, "rank is 16; it must be in 0..15",
          hbp_list_communicators(context, cost, NULL, 16, all, sizeof *all, 4, &count));
    FAILS(context, HBP_E_INVALID, "rank is -2",
          hbp_list_communicators(context, cost, NULL, -2, all, sizeof *all, 4, &count));
    FAILS(context, HBP_E_INVALID, "capacity is -1",
          hbp_list_communicators(context, cost, NULL, -1, all, sizeof *all, -1, &count));
    FAILS(context, HBP_E_INVALID, "communicators is NULL",
          hbp_list_communicators(context, cost, NULL, -1, NULL, sizeof *all, 4, &count));
    FAILS(context, HBP_E_INVALID, "communicator_size is 2",
          hbp_list_communicators(context, cost, NULL, -1, all, 2, 4, &count));
    options.min_sp = 5;
    options.max_sp = 7;
    FAILS(context, HBP_E_INVALID, "5..7",
          hbp_list_communicators(context, cost, &options, -1, all, sizeof *all, 4, &count));
    options.method = "flexps";
    FAILS(context, HBP_E_INVALID, "`method` is 'flexps'; did you mean 'flexsp'?",
          hbp_list_communicators(context, cost, &options, -1, all, sizeof *all, 4, &count));
    ck_assert_int_eq(count, 0);
    ck_assert_int_eq(hbp_list_communicators(NULL, cost, NULL, -1, all, sizeof *all, 4, &count),
                     HBP_E_INVALID);
}
END_TEST

static hbp_status list_once(hbp_context *context, void *cost)
{
    hbp_communicator all[30];
    int64_t count;
    return hbp_list_communicators(context, cost, NULL, -1, all, sizeof *all, 30, &count);
}

START_TEST_IN_CONTEXT(failing_allocations_leave_nothing)
{
    hbp_cost *cost = keep(test_cost(context));
    failing_sweep(list_once, cost);
}
END_TEST

TEST_MAIN("communicators", the_table_of_powers_of_two, the_table_is_every_group_that_may_be,
          options_narrow_the_table_but_not_to_nothing, every_pack_is_in_the_table,
          packs_of_an_epoch_are_in_the_table, entries_may_be_of_another_size, bad_arguments_are_named,
          failing_allocations_leave_nothing)

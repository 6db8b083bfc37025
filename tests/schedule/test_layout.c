#include "base/methods.h"
#include "failing.h"
#include "packed.h"
#include "schedule/balance.h"
#include "schedule/mix.h"
#include "views.h"

typedef hbp_status (*opener)(hbp_context *, const hbp_packs *, const hbp_groups *, const hbp_cost *,
                             const hbp_balance_options *, int, hbp__layout *);

/* Time and tokens are those of the plan that is assembled from the layout, and the plan is valid. */
START_TEST_IN_CONTEXT(a_layout_is_priced_as_its_plan)
{
    const opener open[] = {hbp__layout_open_pure, hbp__layout_open_mixed};
    for (uint64_t seed = 0; seed < 8; seed++)
        for (int way = 0; way < 2; way++)
            for (int one_step = 0, mark = keep_mark(); one_step < 2; keep_release(mark), one_step++) {
                packed p = packed_open(context, seed, 300 + 700 * (int64_t)seed);
                hbp_balance_options options = {.struct_size = sizeof options,
                                               .micro_batch_multiple = 1 + (int32_t)(seed % 3),
                                               .drop_last = seed % 4 == 3,
                                               .tokens_per_step = seed % 2 ? 200000 : 0,
                                               .seed = seed};
                hbp__layout layout;
                hbp_plan *plan = NULL;
                OK(p.context, open[way](p.context, p.packs, p.groups, p.cost, &options, one_step, &layout));
                OK(p.context, hbp__assemble(p.context, p.packs, p.groups, p.cost, &options, &layout.batches,
                                            &layout.steps, &plan));
                OK(p.context, hbp_plan_validate(p.context, plan, p.lengths, p.cost));
                hbp_plan_summary summary = {.struct_size = sizeof summary};
                OK(p.context, hbp_plan_get_summary(p.context, plan, &summary));
                ck_assert_int_eq(layout.ns, summary.predicted_ns);
                ck_assert_int_eq(layout.tokens, summary.tokens);
                ck_assert(!one_step || summary.steps == 1);
                hbp_plan_free(plan);
                hbp__layout_close(&layout);
            }
}
END_TEST

/* The hierarchy's layout is what hbp_balance_attention makes. */
START_TEST_IN_CONTEXT(the_pure_layout_is_the_hierarchy)
{
    packed p = packed_open(context, 3, 4000);
    hbp_balance_options options = {.struct_size = sizeof options, .micro_batch_multiple = 1, .seed = 8};
    hbp__layout layout;
    hbp_plan *plan = NULL, *hierarchy = NULL;
    OK(p.context, hbp__layout_open_pure(p.context, p.packs, p.groups, p.cost, &options, 0, &layout));
    OK(p.context,
       hbp__assemble(p.context, p.packs, p.groups, p.cost, &options, &layout.batches, &layout.steps, &plan));
    OK(p.context, hbp_balance_attention(p.context, p.packs, p.groups, p.cost, &options, &hierarchy));
    ck_assert_uint_eq(plan_digest(plan), plan_digest(hierarchy));
    hbp_plan_free(hierarchy);
    hbp_plan_free(plan);
    hbp__layout_close(&layout);
}
END_TEST

/* 3 packs of SP 8 and 40 of SP 1 on 16 ranks: 2 and 3 micro-batches by themselves, 4 together. */
START_TEST_IN_CONTEXT(what_one_group_leaves_is_anothers)
{
    packed p = packed_open(context, 1, 10);
    int64_t length[43];
    for (int i = 0; i < 43; i++)
        length[i] = i < 3 ? 32768 : 4096;
    MAKES(context, p.lengths, hbp_lengths_create_i64(context, length, 43, NULL, &p.lengths));
    hbp_fill_options fill = {.struct_size = sizeof fill, .method = hbp__fill_name(HBP__FILL_TIGHT)};
    MAKES(context, p.packs, hbp_greedy_fill(context, p.lengths, p.groups, &fill, &p.packs));
    hbp_balance_options options = {.struct_size = sizeof options, .micro_batch_multiple = 1};
    hbp__layout pure, mixed;
    OK(p.context, hbp__layout_open_pure(p.context, p.packs, p.groups, p.cost, &options, 0, &pure));
    OK(p.context, hbp__layout_open_mixed(p.context, p.packs, p.groups, p.cost, &options, 0, &mixed));
    ck_assert_int_eq(pure.batches.count, 5);
    ck_assert_int_eq(mixed.batches.count, 4);
    ck_assert(hbp__layout_is_faster(&mixed, &pure));
    ck_assert(!hbp__layout_is_faster(&pure, &mixed));
    hbp__layout_close(&mixed);
    hbp__layout_close(&pure);
}
END_TEST

START_TEST(layouts_of_other_tokens_compare_before_dropping)
{
    hbp__layout a = {.ns = 100, .tokens = 10, .before_ns = 100},
                b = {.ns = 50, .tokens = 9, .before_ns = 101};
    ck_assert(hbp__layout_is_faster(&a, &b));
    ck_assert(!hbp__layout_is_faster(&b, &a));
    b.tokens = 10;
    ck_assert(hbp__layout_is_faster(&b, &a));
    ck_assert(!hbp__layout_is_faster(&a, &a));
}
END_TEST

static hbp_status open_once(hbp_context *context, void *user)
{
    packed *p = user;
    hbp_balance_options options = {.struct_size = sizeof options, .micro_batch_multiple = 2};
    hbp__layout layout;
    hbp_status status = hbp__layout_open_mixed(context, p->packs, p->groups, p->cost, &options, 0, &layout);
    hbp__layout_close(&layout);
    if (status < 0)
        return status;
    status = hbp__layout_open_pure(context, p->packs, p->groups, p->cost, &options, 0, &layout);
    hbp__layout_close(&layout);
    return status;
}

START_TEST_IN_CONTEXT(nothing_is_left_behind)
{
    packed p = packed_open(context, 2, 500);
    failing_sweep(open_once, &p);
    ck_assert_int_gt(cancel_sweep(open_once, &p), 2);
}
END_TEST

TEST_MAIN("layout", a_layout_is_priced_as_its_plan, the_pure_layout_is_the_hierarchy,
          what_one_group_leaves_is_anothers, layouts_of_other_tokens_compare_before_dropping,
          nothing_is_left_behind)

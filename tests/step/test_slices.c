/* Steps of a large model on 256 GPUs. A sixteenth of one, on a sixteenth of the machine, is small enough for
 * the exact optimum: where plan and bound of the whole are far apart, which of them is to blame? */
#include "boards.h"
#include "keep.h"

#define RANKS      16
#define ALL_SLICES 40
#define SLICES     TEST_FEW(ALL_SLICES, 20)

enum { BIMODAL, LONG_TAIL, ONE_GIANT, SHAPES };

/* DeepSeek-V2 on 256 H100, of which `ranks` are used. */
static hbp_cost *cost_of(hbp_context *context, int32_t ranks)
{
    hbp_model *model = NULL;
    hbp_machine *machine = NULL;
    hbp_cost *whole = NULL, *cost = NULL;
    hbp_cost_terms t = {.struct_size = sizeof t};
    OK(context, hbp_model_create_preset(context, "deepseek-v2", &model));
    OK(context, hbp_machine_create_preset(context, "h100:32", &machine));
    OK(context, hbp_cost_create(context, model, machine, NULL, &whole));
    OK(context, hbp_cost_get_terms(context, whole, &t));
    t.ranks = ranks;
    t.step_ns = 0;
    while (t.degree[t.degrees - 1] > ranks)
        t.degrees--;
    OK(context, hbp_cost_create_terms(context, &t, &cost));
    hbp_cost_free(whole);
    hbp_machine_free(machine);
    hbp_model_free(model);
    return cost;
}

static hbp_plan_summary plan(hbp_context *context, const hbp_cost *cost, const uint32_t *length,
                             int64_t count)
{
    hbp_lengths *lengths = NULL;
    hbp_plan *plan = NULL;
    hbp_plan_summary s = {.struct_size = sizeof s};
    OK(context, hbp_lengths_create_u32(context, length, count, NULL, &lengths));
    OK(context, hbp_plan_step(context, lengths, cost, NULL, &plan));
    OK(context, hbp_plan_get_summary(context, plan, &s));
    hbp_plan_free(plan);
    hbp_lengths_free(lengths);
    return s;
}

/* Few lengths of each kind, so that the optimum is to be had. */
static int64_t draw(int shape, hbp__rng *rng, uint32_t *length)
{
    int64_t count = 0, longs = 3 + hbp__rng_below(rng, 15), shorts = 2 + hbp__rng_below(rng, 6);
    uint32_t crumb = 1500 + (uint32_t)hbp__rng_below(rng, 2500), pool[3];
    for (int i = 0; i < 3; i++)
        pool[i] = 28000 + (uint32_t)hbp__rng_below(rng, 4001);
    if (shape == LONG_TAIL)
        longs = 2 + longs / 2;
    if (shape == ONE_GIANT) {
        length[count++] = 65536 + (uint32_t)hbp__rng_below(rng, 65537);
        longs = 0;
        shorts += 12;
        crumb *= 3;
    }
    for (int64_t i = 0; i < longs; i++)
        length[count++] = shape == BIMODAL ? pool[hbp__rng_below(rng, 3)]
                                           : 131072 / (2 + (uint32_t)hbp__rng_below(rng, 12));
    for (int64_t i = 0; i < shorts; i++)
        length[count++] = crumb;
    return count;
}

/* At most so far over the optimum are plans, in the mean and any; no less of it are bounds. */
typedef struct promise {
    double mean;
    double most;
    double mean_bound;
    double least_bound;
} promise;

static void compare(int shape, int64_t several, promise p)
{
    hbp_context *context = test_context();
    hbp_cost *cost = cost_of(context, RANKS);
    double over = 0, under = 0;
    several = several * SLICES / ALL_SLICES;
    for (uint64_t i = 0; i < SLICES; i++) {
        hbp__rng rng = hbp__rng_make(i, 77, (uint64_t)shape);
        uint32_t length[EXACT_SEQUENCES];
        int64_t count = draw(shape, &rng, length);
        hbp_step_options options = {.struct_size = sizeof options};
        exact_step e = exact_step_make(context, cost, length, NULL, count, &options);
        int64_t best = exact_step_ns(&e);
        hbp_plan_summary s = plan(context, cost, length, count);
        ck_assert_int_ge(s.predicted_ns, best);
        ck_assert_int_le(s.bound_ns, best);
        double plan_over = (double)s.predicted_ns / (double)best - 1,
               bound = (double)s.bound_ns / (double)best;
        ck_assert_msg(plan_over <= p.most, "%d: the plan is %g over the optimum", (int)i, plan_over);
        ck_assert_msg(bound >= p.least_bound, "%d: the bound is %g of the optimum", (int)i, bound);
        over += plan_over / SLICES;
        under += bound / SLICES;
        several -= s.micro_batches > 1;
    }
    ck_assert_double_le(over, p.mean);
    ck_assert_double_ge(under, p.mean_bound);
    ck_assert_int_le(several, 0);
    hbp_cost_free(cost);
    hbp_context_free(context);
}

START_TEST(bimodal_lengths)
{
    compare(BIMODAL, 10, (promise){.002, .02, .985, .96});
}
END_TEST

START_TEST(lengths_with_a_long_tail)
{
    compare(LONG_TAIL, 0, (promise){.001, .02, .985, .97});
}
END_TEST

START_TEST(one_giant_among_crumbs)
{
    compare(ONE_GIANT, 0, (promise){.0001, .001, .99, .91});
}
END_TEST

/* Bounds without what a group holds in time were 6 and 10 % below these plans. */
START_TEST_IN_CONTEXT(bounds_of_whole_steps_know_what_a_group_holds_in_time)
{
    enum { COUNT = 10000 };
    static uint32_t giant[COUNT], tail[COUNT];
    hbp_cost *cost = keep(cost_of(context, 256));
    hbp__rng rng = hbp__rng_make(1, 2, 3);
    for (int i = 0; i < COUNT; i++) {
        giant[i] = i ? 100 + (uint32_t)hbp__rng_below(&rng, 301) : 131072;
        tail[i] = 131072 / (1 + (uint32_t)hbp__rng_below(&rng, 4096));
    }
    hbp_plan_summary s = plan(context, cost, giant, COUNT);
    ck_assert_int_eq(s.micro_batches, 1);
    ck_assert_double_le(s.gap, .01);
    s = plan(context, cost, tail, COUNT);
    ck_assert_int_eq(s.micro_batches, 1);
    ck_assert_double_le(s.gap, .05);
}
END_TEST

TEST_MAIN("slices", bimodal_lengths, lengths_with_a_long_tail, one_giant_among_crumbs,
          bounds_of_whole_steps_know_what_a_group_holds_in_time)

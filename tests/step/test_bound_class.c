/* The bound by classes against the same formula evaluated plainly, class by class and price by price. */
#include "boards.h"
#include "step/bound_class.h"

#define STEPS (TEST_LONG ? 300 : TEST_FEW(150, 100))

enum { ALPHAS = 150 };

/* The right side for one class, from the asks themselves. */
static double plain_value(const hbp__step *step, const hbp__ask *ask, double high, double low,
                          double micro_batches, double theta, double tau, double alpha)
{
    double sum = 0;
    for (int64_t k = 0; k < step->count; k++) {
        double least = (double)INFINITY;
        for (int32_t j = 0; j < step->degrees; j++) {
            const hbp__ask *a = &ask[k * step->degrees + j];
            for (int32_t n = 0; a->alone <= high && n < a->needs; n++) {
                least = fmin(least, a->need[n].work + theta * a->need[n].share);
                least = fmin(least, tau * a->need[n].work + (alpha + theta) * a->need[n].share);
            }
        }
        sum += least;
    }
    return sum / step->ranks - theta * micro_batches + (1 - tau) * low - alpha;
}

/* The greatest over the prices and over many alphas, one of them where nothing goes to the top. */
static double plain_class(const hbp__step *step, const hbp__ask *ask, double low, double high,
                          double micro_batches, const double *price, int prices)
{
    double best = low;
    for (int p = 0; p < prices; p++) {
        best = fmax(best, plain_value(step, ask, high, low, micro_batches, price[p], 1, 0));
        for (int t = 0; t < 2; t++)
            for (int i = 0; i <= ALPHAS; i++)
                best = fmax(best, plain_value(step, ask, high, low, micro_batches, price[p], t ? .5 : 0,
                                              i * (2 * low + 1) / ALPHAS));
    }
    return best;
}

static double plain_least(const hbp__step *step, const hbp__ask *ask, double longest, double most,
                          double micro_batches, const double *price, int prices)
{
    double least = most, stride = (most - longest) / HBP__BOUND_CLASSES;
    for (double low = longest, high; low < most; low = high) {
        high = fmax(low * 1.03, low + stride);
        least = fmin(least, plain_class(step, ask, low, high, micro_batches, price, prices));
    }
    return least;
}

typedef struct seen {
    hbp__step *step;
    hbp__ask *ask;
    hbp__bound_class class;
    double longest;
    double most;
    double memory; /* micro-batches that it asks for */
} seen;

static seen see(ground *g)
{
    seen s = {.step = &g->step};
    s.ask = malloc((size_t)(g->step.count * g->step.degrees) * sizeof *s.ask);
    ck_assert_ptr_nonnull(s.ask);
    hbp__bound_ask(&g->step, s.ask);
    OK(g->small.context, hbp__bound_class_open(&g->step, s.ask, &s.class));
    for (int64_t k = 0; k < g->step.count; k++) {
        double least = (double)INFINITY, share = (double)INFINITY;
        for (int32_t j = 0; j < g->step.degrees; j++) {
            const hbp__ask *a = &s.ask[k * g->step.degrees + j];
            least = fmin(least, a->alone);
            for (int32_t n = 0; n < a->needs; n++)
                share = fmin(share, a->need[n].share);
        }
        s.memory += share / g->step.ranks;
        s.longest = fmax(s.longest, least);
        s.most += least;
    }
    s.memory = ceil(s.memory);
    s.most = s.longest + (s.most - s.longest) * small_between(&g->rng, .1, 1);
    return s;
}

static void see_no_more(seen *s)
{
    free(s->ask);
}

START_TEST(is_the_least_of_all_classes)
{
    int64_t inside = 0;
    for (uint64_t i = 0; i < STEPS / 2; i++) {
        ground g;
        ground_open(&g, i, (int)(i % GROUND_KINDS), 24);
        seen s = see(&g);
        double price[] = {0, g.builder.fixed, g.builder.fixed / 2}, least = 0;
        double micro_batches = 1 + (double)hbp__rng_below(&g.rng, 4);
        int prices = i % 2 ? 3 : 1;
        hbp__bound_class_set_prices(&s.class, micro_batches, price, prices);
        OK(g.small.context, hbp__bound_class_least(&s.class, s.longest, s.most, &least));
        double plain = plain_least(&g.step, s.ask, s.longest, s.most, micro_batches, price, prices);
        /* The plain one looks at more alphas than 14 tangents, but not at the best. */
        ck_assert_msg(least >= plain * (1 - 1e-4) && least <= plain * 1.01 + 1e-6,
                      "step %d: %.9g, class by class %.9g", (int)i, least, plain);
        inside += least > s.longest * 1.001 && least < s.most * .999;
        see_no_more(&s);
        ground_close(&g);
    }
    ck_assert_int_gt(inside, STEPS / 10);
}
END_TEST

/* The same rows serve one makespan after another. */
START_TEST(makespans_may_come_in_any_order)
{
    for (uint64_t i = 0; i < STEPS; i++) {
        ground g;
        ground_open(&g, i, (int)(i % GROUND_KINDS), 24);
        seen s = see(&g), fresh;
        for (int draw = 0; draw < 20; draw++) {
            double time = small_between(&g.rng, s.longest * .3, s.most * 1.5);
            fresh = s;
            OK(g.small.context, hbp__bound_class_open(&g.step, s.ask, &fresh.class));
            ck_assert_int_eq(hbp__bound_class_allows(&s.class, time),
                             hbp__bound_class_allows(&fresh.class, time));
            ck_assert_int_eq(hbp__bound_class_allows(&s.class, time),
                             plain_value(&g.step, s.ask, time, 0, 0, 0, 1, 0) <= time);
        }
        see_no_more(&s);
        ground_close(&g);
    }
}
END_TEST

START_TEST(the_price_of_just_so_many_is_the_best)
{
    int64_t priced = 0;
    for (uint64_t i = 0; i < STEPS; i++) {
        ground g;
        ground_open(&g, i, (int)(i % GROUND_KINDS), 24);
        seen s = see(&g);
        double micro_batches = s.memory + (double)hbp__rng_below(&g.rng, 3), best = 0, highest = 0;
        hbp__bound_class_set_best_price(&s.class, micro_batches, s.most);
        ck_assert_int_eq(s.class.prices, 1);
        double found = plain_value(&g.step, s.ask, s.most, 0, micro_batches, s.class.price[0], 1, 0);
        highest = 4 * s.class.price[0] + 2 * g.builder.fixed + s.most;
        for (int n = 0; n <= 1000; n++)
            best =
                fmax(best, plain_value(&g.step, s.ask, s.most, 0, micro_batches, n * highest / 1000, 1, 0));
        ck_assert_msg(found >= best * (1 - 1e-4), "step %d: %.9g at %.9g, %.9g elsewhere", (int)i, found,
                      s.class.price[0], best);
        priced += s.class.price[0] > 0;
        see_no_more(&s);
        ground_close(&g);
    }
    ck_assert_int_gt(priced, STEPS / 20);
}
END_TEST

/* What the search leaves out: no step of just so many micro-batches is below it. */
START_TEST(no_plan_beats_the_bound_of_its_number)
{
    int64_t close = 0;
    for (uint64_t i = 0; i < STEPS; i++) {
        ground g;
        ground_open(&g, i, (int)(i % GROUND_KINDS), 24);
        seen s = see(&g);
        hbp__step_solution solution = {.ns = 0};
        OK(g.small.context, hbp__step_search(&g.step, &solution));
        double number = (double)solution.micro_batches, fixed = g.builder.fixed;
        double bound =
            number * fixed + hbp__bound_class_set_best_price(&s.class, number, (double)solution.ns);
        ck_assert_msg(bound <= (double)solution.ns * (1 + 1e-9) + number,
                      "step %d: %.0f above a plan of %.0f", (int)i, bound, (double)solution.ns);
        close += bound > (double)solution.ns * .9;
        hbp__step_solution_close(&solution);
        see_no_more(&s);
        ground_close(&g);
    }
    ck_assert_int_gt(close, STEPS / 4);
}
END_TEST

TEST_MAIN("bound_class", is_the_least_of_all_classes, makespans_may_come_in_any_order,
          the_price_of_just_so_many_is_the_best, no_plan_beats_the_bound_of_its_number)

#include "solve/time_cost.h"

#include "base/rng.h"
#include "failing.h"

#ifdef HBP_TESTS_GLPK
#include "hbp/glpk.h"
#include "solve/program.h"
#endif

enum { MOST_ACTIVITIES = 512, MOST_POINTS = 12, MOST_ARCS = 8192 };

typedef struct plan {
    hbp__project project;
    int64_t first[MOST_ACTIVITIES + 1];
    double duration[MOST_ACTIVITIES * MOST_POINTS];
    double cost[MOST_ACTIVITIES * MOST_POINTS];
    int32_t from[MOST_ARCS];
    int32_t to[MOST_ARCS];
} plan;

static void plan_open(plan *p)
{
    p->first[0] = 0;
    p->project = (hbp__project){
        .first = p->first, .duration = p->duration, .cost = p->cost, .from = p->from, .to = p->to};
}

static void plan_arc(plan *p, int32_t from, int32_t to)
{
    ck_assert_int_lt(p->project.arcs, MOST_ARCS);
    p->from[p->project.arcs] = from;
    p->to[p->project.arcs++] = to;
}

/* A convex curve of `points` points: rising durations, falling costs, slopes that level off. The shortest
 * duration is 1 to 100 times `least`, steps are 1 to 100 times `grain`; `steep` raises the slopes. */
static void plan_activity(plan *p, hbp__rng *rng, int64_t points, double least, double grain, double steep)
{
    int64_t at = p->first[p->project.activities], last = at + points - 1;
    double slope = 0, duration = least * (double)(1 + hbp__rng_below(rng, 100));
    ck_assert_int_lt(p->project.activities, MOST_ACTIVITIES);
    for (int64_t i = at; i <= last; i++, duration += grain * (double)(1 + hbp__rng_below(rng, 100)))
        p->duration[i] = duration;
    p->cost[last] = p->duration[last] * (double)(1 + hbp__rng_below(rng, 4));
    for (int64_t i = last; i > at; i--) {
        slope = slope * (1 + steep) + (double)(1 + hbp__rng_below(rng, 1000)) / 500;
        p->cost[i - 1] = p->cost[i] + slope * (p->duration[i] - p->duration[i - 1]);
    }
    p->first[++p->project.activities] = last + 1;
}

/* A trade-off of its own: points (time, cost) of a convex function, flat behind the last. */
typedef struct curve {
    int64_t points;
    double time[4096];
    double cost[4096];
} curve;

static double curve_at(const curve *c, double time)
{
    if (time < c->time[0])
        return INFINITY;
    for (int64_t i = 1; i < c->points; i++)
        if (time < c->time[i])
            return c->cost[i] +
                   (c->cost[i - 1] - c->cost[i]) * (c->time[i] - time) / (c->time[i] - c->time[i - 1]);
    return c->cost[c->points - 1];
}

/* One after the other: segments of both, the cheapest time first, from the longest durations on. */
static void curve_chain(const curve *a, const curve *b, curve *out)
{
    int64_t i = a->points - 1, j = b->points - 1, k = i + j;
    out->points = k + 1;
    out->time[k] = a->time[i] + b->time[j];
    out->cost[k] = a->cost[i] + b->cost[j];
    while (k-- > 0) {
        double x = i > 0 ? (a->cost[i - 1] - a->cost[i]) / (a->time[i] - a->time[i - 1]) : INFINITY;
        double y = j > 0 ? (b->cost[j - 1] - b->cost[j]) / (b->time[j] - b->time[j - 1]) : INFINITY;
        int first = x <= y;
        i -= first;
        j -= !first;
        out->time[k] = a->time[i] + b->time[j];
        out->cost[k] = a->cost[i] + b->cost[j];
    }
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Side by side: costs add up at each time that both can keep. */
static void curve_beside(const curve *a, const curve *b, curve *out)
{
    double times[8192];
    double least = a->time[0] > b->time[0] ? a->time[0] : b->time[0];
    memcpy(times, a->time, (size_t)a->points * sizeof *times);
    memcpy(times + a->points, b->time, (size_t)b->points * sizeof *times);
    qsort(times, (size_t)(a->points + b->points), sizeof *times, by_value);
    out->points = 0;
    for (int64_t i = 0; i < a->points + b->points; i++) {
        if (times[i] < least || (out->points && times[i] == out->time[out->points - 1]))
            continue;
        out->time[out->points] = times[i];
        out->cost[out->points++] = curve_at(a, times[i]) + curve_at(b, times[i]);
    }
}

/* The least C with cost(C) <= rate C, by bisection. */
static double curve_least(const curve *c, double rate)
{
    double low = 0, high = c->time[c->points - 1] + c->cost[c->points - 1] / rate;
    for (int i = 0; i < 200; i++) {
        double middle = low + (high - low) / 2;
        if (curve_at(c, middle) <= rate * middle)
            high = middle;
        else
            low = middle;
    }
    return high;
}

/* A random series-parallel project of `count` activities with its curve; its activities are consecutive. */
static void draw_composed(plan *p, hbp__rng *rng, int32_t count, double least, double grain, double steep,
                          int depth, curve *out)
{
    static curve room[24][2];
    int32_t start = p->project.activities;
    if (count == 1) {
        int64_t at = p->first[start];
        plan_activity(p, rng, 1 + hbp__rng_below(rng, 5), least, grain, steep);
        out->points = p->first[start + 1] - at;
        memcpy(out->time, p->duration + at, (size_t)out->points * sizeof *out->time);
        memcpy(out->cost, p->cost + at, (size_t)out->points * sizeof *out->cost);
        return;
    }
    ck_assert_int_lt(depth, 24);
    int32_t split = 1 + (int32_t)hbp__rng_below(rng, (uint64_t)count - 1);
    int64_t arcs = p->project.arcs;
    draw_composed(p, rng, split, least, grain, steep, depth + 1, &room[depth][0]);
    int64_t own_arcs = p->project.arcs;
    draw_composed(p, rng, count - split, least, grain, steep, depth + 1, &room[depth][1]);
    if (hbp__rng_below(rng, 2)) {
        curve_beside(&room[depth][0], &room[depth][1], out);
        return;
    }
    curve_chain(&room[depth][0], &room[depth][1], out);
    int64_t all_arcs = p->project.arcs;
    for (int32_t a = start; a < start + split; a++)
        for (int32_t b = start + split; b < start + count; b++) {
            int is_last = 1, is_first = 1;
            for (int64_t i = arcs; i < all_arcs; i++) {
                is_last &= i >= own_arcs || p->from[i] != a;
                is_first &= i < own_arcs || p->to[i] != b;
            }
            if (is_last && is_first)
                plan_arc(p, a, b);
        }
}

static double least_of(hbp_context *context, const plan *p, double rate)
{
    double least;
    int32_t exact;
    OK(context, hbp__time_cost(context, &p->project, rate, 0, &least, &exact));
    ck_assert_int_eq(exact, 1);
    return least;
}

/* No greater, and within 1e-9. The test's own rounding is allowed for. */
static void agree(double got, double want)
{
    ck_assert_msg(got <= want * (1 + 1e-13) && got >= want * (1 - 1e-9), "%.17g instead of %.17g", got, want);
}

START_TEST(one_activity)
{
    hbp_context *context = test_context();
    /* 8 GPUs: 80 ns on one, 44 on two, 26 on four, 20 on eight. */
    int64_t first[] = {0, 4};
    double duration[] = {20, 26, 44, 80}, cost[] = {160, 104, 88, 80};
    hbp__project project = {1, first, duration, cost, 0, NULL, NULL};
    double least;
    int32_t exact;
    OK(context, hbp__time_cost(context, &project, 8, 0, &least, &exact));
    ck_assert_double_eq(least, 20); /* 160 <= 8 x 20: the critical path, to the last bit */
    ck_assert_int_eq(exact, 1);
    OK(context, hbp__time_cost(context, &project, 4, 0, &least, &exact));
    agree(least, 26);
    OK(context, hbp__time_cost(context, &project, 1, 0, &least, &exact));
    agree(least, 80); /* cost alone */
    /* 104 + (160 - 104) / 6 (26 - C) = 6 C */
    OK(context, hbp__time_cost(context, &project, 6, 0, &least, &exact));
    agree(least, (104 + 56. / 6 * 26) / (6 + 56. / 6));
    project.activities = 0;
    least = exact = -1;
    OK(context, hbp__time_cost(context, &project, 6, 0, &least, &exact));
    ck_assert_double_eq(least, 0);
    ck_assert_int_eq(exact, 1);
    hbp_context_free(context);
}
END_TEST

/* Chains, independent activities and everything composed of them, against curves composed by the test. */
START_TEST(composed_projects)
{
    static plan p;
    static curve c;
    hbp_context *context = test_context();
    hbp__rng rng = hbp__rng_make(1, 0, 0);
    static const double grains[] = {1, 1024 * 1024, 0x1p36, .125, 0x1p-20};
    int fast = 0, cheap = 0;
    for (int trial = 0; trial < 4000; trial++) {
        plan_open(&p);
        draw_composed(&p, &rng, 1 + (int32_t)hbp__rng_below(&rng, 20), grains[trial % 5], grains[trial % 5],
                      trial % 3 * .5, 0, &c);
        double rate = (double)(1 + hbp__rng_below(&rng, 64)) * (trial % 7 ? 1 : .3);
        double want = curve_least(&c, rate);
        agree(least_of(context, &p, rate), want);
        fast += want == c.time[0];
        cheap += want >= c.time[c.points - 1];
    }
    ck_assert_int_gt(fast, 100);
    ck_assert_int_gt(cheap, 100);
    hbp_context_free(context);
}
END_TEST

/* Costs that shoot up to the left make flows of many times the rate, which come in coarser units. */
START_TEST(steep_costs)
{
    static plan p;
    static curve c;
    hbp_context *context = test_context();
    hbp__rng rng = hbp__rng_make(2, 0, 0);
    int64_t above[2] = {0};
    for (int trial = 0; trial < 1500; trial++) {
        static const double steep[] = {1, 10, 100, 10000}, least[] = {1e4, 1e8, 1e12};
        plan_open(&p);
        draw_composed(&p, &rng, 1 + (int32_t)hbp__rng_below(&rng, 6), least[trial % 3], 1, steep[trial % 4],
                      0, &c);
        for (int place = 0; place < 20; place++) { /* a rate that meets the curve anywhere */
            int64_t i = (int64_t)hbp__rng_below(&rng, (uint64_t)c.points);
            double time = c.time[i], rate = curve_at(&c, time) / time;
            if (i > 0) {
                time -= (time - c.time[i - 1]) * .37;
                rate = curve_at(&c, time) / time;
                double slope = (c.cost[i - 1] - c.cost[i]) / (c.time[i] - c.time[i - 1]);
                above[0] += slope > 0x1p11 * rate;
                above[1] += slope > 0x1p31 * rate;
            }
            agree(least_of(context, &p, rate), curve_least(&c, rate));
        }
    }
    ck_assert_int_gt(above[0], 1000);
    ck_assert_int_gt(above[1], 100);
    hbp_context_free(context);
}
END_TEST

static void draw_tangled(plan *p, hbp__rng *rng, int32_t count, int64_t points, int32_t reach, int arcs)
{
    plan_open(p);
    for (int32_t a = 0; a < count; a++)
        plan_activity(p, rng, 1 + (int64_t)hbp__rng_below(rng, (uint64_t)points), 1, 1, .1);
    for (int32_t b = 1; b < count; b++)
        for (int i = 0; i < arcs; i++) {
            int32_t back = 1 + (int32_t)hbp__rng_below(rng, (uint64_t)reach);
            if (back <= b)
                plan_arc(p, b - back, b);
        }
}

#ifdef HBP_TESTS_GLPK
/* The linear program in times of starts (1 + 3 a), ends and costs; times and costs in units of `unit`. */
static double by_program(hbp_context *context, const hbp__project *p, double rate, double unit)
{
    hbp__program program;
    hbp__program_open(context, &program);
    OK(context, hbp__program_add_column(&program, 1, 0, INFINITY, HBP_COLUMN_CONTINUOUS, 0));
    for (int32_t i = 0; i < 3 * p->activities; i++)
        OK(context, hbp__program_add_column(&program, 0, 0, INFINITY, HBP_COLUMN_CONTINUOUS, 0));
    OK(context, hbp__program_add_row(&program, 0, INFINITY));
    OK(context, hbp__program_add_entry(&program, 0, rate));
    for (int32_t a = 0; a < p->activities; a++)
        OK(context, hbp__program_add_entry(&program, 3 + 3 * a, -1));
    for (int32_t a = 0; a < p->activities; a++) {
        int64_t first = p->first[a], last = p->first[a + 1] - 1;
        OK(context, hbp__program_add_row(&program, p->duration[first] / unit, INFINITY));
        OK(context, hbp__program_add_entry(&program, 1 + 3 * a, -1));
        OK(context, hbp__program_add_entry(&program, 2 + 3 * a, 1));
        OK(context, hbp__program_add_row(&program, p->cost[last] / unit, INFINITY));
        OK(context, hbp__program_add_entry(&program, 3 + 3 * a, 1));
        for (int64_t i = first; i < last; i++) {
            double slope = (p->cost[i] - p->cost[i + 1]) / (p->duration[i + 1] - p->duration[i]);
            OK(context,
               hbp__program_add_row(&program, (p->cost[i] + slope * p->duration[i]) / unit, INFINITY));
            OK(context, hbp__program_add_entry(&program, 1 + 3 * a, -slope));
            OK(context, hbp__program_add_entry(&program, 2 + 3 * a, slope));
            OK(context, hbp__program_add_entry(&program, 3 + 3 * a, 1));
        }
        OK(context, hbp__program_add_row(&program, 0, INFINITY));
        OK(context, hbp__program_add_entry(&program, 0, 1));
        OK(context, hbp__program_add_entry(&program, 2 + 3 * a, -1));
    }
    for (int64_t i = 0; i < p->arcs; i++) {
        OK(context, hbp__program_add_row(&program, 0, INFINITY));
        OK(context, hbp__program_add_entry(&program, 1 + 3 * p->to[i], 1));
        OK(context, hbp__program_add_entry(&program, 2 + 3 * p->from[i], -1));
    }
    static double values[1 + 3 * MOST_ACTIVITIES];
    hbp_solver_limits limits = {sizeof limits, NULL, NULL, 0, 0, 0, 0, 0};
    hbp__answer answer;
    OK(context, hbp__program_solve(&program, "least C", NULL, &limits, values, &answer));
    ck_assert_int_eq(answer.status, HBP_SOLVER_OPTIMAL);
    hbp__program_close(&program);
    return answer.objective * unit;
}

START_TEST(any_precedence)
{
    static plan p;
    hbp_context *context = test_context();
    hbp__rng rng = hbp__rng_make(3, 0, 0);
    OK(context, hbp_context_set_solver(context, hbp_glpk_solver()));
    int between = 0, trials = TEST_FEW(1500, 200);
    for (int trial = 0; trial < trials; trial++) {
        int32_t count = 1 + (int32_t)hbp__rng_below(&rng, trial % 100 ? 14 : 60);
        draw_tangled(&p, &rng, count, 5, 1 + (int32_t)hbp__rng_below(&rng, 6), 1 + trial % 3);
        double rate = (double)(1 + hbp__rng_below(&rng, 12));
        double want = by_program(context, &p.project, rate, 100 * count), got = least_of(context, &p, rate);
        ck_assert_msg(got <= want * (1 + 1e-7) && got >= want * (1 - 1e-7),
                      "trial %d: %.12g instead of %.12g", trial, got, want);
        double cost = 0;
        for (int32_t a = 0; a < count; a++)
            cost += p.cost[p.first[a + 1] - 1];
        between += got > cost / rate * 1.001;
    }
    ck_assert_int_gt(between, trials / 3);
    hbp_context_free(context);
}
END_TEST
#endif

/* Fewer steps: a smaller bound that grows with them, from the cost alone or the critical path. */
START_TEST(limits)
{
    static plan p;
    hbp_context *context = test_context();
    hbp__rng rng = hbp__rng_make(4, 0, 0);
    int cut = 0;
    for (int trial = 0; trial < 50; trial++) {
        draw_tangled(&p, &rng, 30, 6, 5, 2);
        double best = least_of(context, &p, 10), before = 0, least;
        int32_t exact = 0;
        for (int64_t limit = 1; !exact; limit += 1 + limit / 20) {
            OK(context, hbp__time_cost(context, &p.project, 10, limit, &least, &exact));
            ck_assert(least >= before * (1 - 1e-12) && least <= best);
            cut += !exact && least < best;
            before = least;
        }
        ck_assert_double_eq(least, best);
    }
    ck_assert_int_gt(cut, 500);
    hbp_context_free(context);
}
END_TEST

/* Costs and the rate, or costs and durations, may be of any size. */
START_TEST(scales)
{
    static plan p;
    hbp_context *context = test_context();
    hbp__rng rng = hbp__rng_make(5, 0, 0);
    for (int trial = 0; trial < 200; trial++) {
        draw_tangled(&p, &rng, 12, 5, 4, 2);
        double least = least_of(context, &p, 3);
        for (int64_t i = 0; i < p.first[12]; i++)
            p.cost[i] *= 8;
        ck_assert_double_eq(least_of(context, &p, 24), least);
        for (int64_t i = 0; i < p.first[12]; i++)
            p.duration[i] *= 8;
        ck_assert_double_eq(least_of(context, &p, 3), 8 * least);
        for (int64_t i = 0; i < p.first[12]; i++) { /* no longer whole numbers */
            p.duration[i] *= .1;
            p.cost[i] *= .1;
        }
        ck_assert_double_eq_tol(least_of(context, &p, 3) / (.8 * least), 1, 1e-12);
    }
    hbp_context_free(context);
}
END_TEST

/* The same bits from every compiler. */
START_TEST(same_everywhere)
{
    static plan p;
    hbp_context *context = test_context();
    hbp__rng rng = hbp__rng_make(7, 0, 0);
    uint64_t digest = 0;
    for (int trial = 0; trial < 200; trial++) {
        draw_tangled(&p, &rng, 40, 8, 6, 2);
        for (int64_t i = 0; i < p.first[40]; i++)
            p.duration[i] *= .3;
        double least = least_of(context, &p, 7);
        uint64_t bits;
        memcpy(&bits, &least, sizeof bits);
        digest = digest * UINT64_C(0x9e3779b97f4a7c15) + bits;
    }
    ck_assert_uint_eq(digest, UINT64_C(12917782682498006450));
    hbp_context_free(context);
}
END_TEST

static hbp_status solve_one(hbp_context *context, void *user)
{
    const plan *p = user;
    double least;
    int32_t exact;
    return hbp__time_cost(context, &p->project, 200, 0, &least, &exact);
}

START_TEST(keeps_its_word_when_memory_fails_or_it_is_cancelled)
{
    static plan p;
    hbp__rng rng = hbp__rng_make(6, 0, 0);
    draw_tangled(&p, &rng, 300, 10, 40, 2);
    failing_sweep(solve_one, &p);
    ck_assert_int_gt(cancel_sweep(solve_one, &p), 0);
}
END_TEST

#ifdef HBP_TESTS_GLPK
TEST_MAIN("time_cost", one_activity, composed_projects, steep_costs, any_precedence, limits, scales,
          same_everywhere, keeps_its_word_when_memory_fails_or_it_is_cancelled)
#else
TEST_MAIN("time_cost", one_activity, composed_projects, steep_costs, limits, scales, same_everywhere,
          keeps_its_word_when_memory_fails_or_it_is_cancelled)
#endif

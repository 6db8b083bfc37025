/* hbp__scaling_open and the curves that it makes (lib/cost/scaling.c). */
#include <math.h>

#include "base/checked.h"
#include "cost/curves.h"
#include "data/graph/graph_check.h"
#include "failing.h"

#define MOST_POINTS 12

/* A graph of single operators, one a MetaOp, with their curves. */
typedef struct scaled {
    hbp_context *context;
    hbp_graph *graph;
    hbp__meta_graph meta;
    hbp__scaling scaling;
} scaled;

static hbp_operator operator_of(int32_t profile, int64_t batch, int64_t split, int32_t least)
{
    hbp_operator o = {.struct_size = sizeof o};
    o.profile = profile;
    o.type = o.task = "any";
    o.batch = batch;
    o.split = split;
    o.least_gpus = least;
    return o;
}

static void begin(scaled *s)
{
    *s = (scaled){.context = test_context()};
    OK(s->context, hbp_graph_create(s->context, &s->graph));
}

static int32_t add_profile(scaled *s, const int32_t *gpus, const int64_t *ns, int64_t points)
{
    int32_t profile;
    OK(s->context, hbp_graph_add_profile(s->context, s->graph, gpus, ns, points, &profile));
    return profile;
}

static void add(scaled *s, const hbp_operator *o)
{
    OK(s->context, hbp_graph_add_operators(s->context, s->graph, o, 1, NULL));
}

static hbp_status open_scaling(scaled *s, int32_t gpus)
{
    OK(s->context, hbp__meta_graph_open(s->context, s->graph, &s->meta));
    return hbp__scaling_open(s->context, s->graph, &s->meta, gpus, &s->scaling);
}

static void end(scaled *s)
{
    hbp__scaling_close(&s->scaling);
    hbp__meta_graph_close(&s->meta);
    hbp_graph_free(s->graph);
    hbp_context_free(s->context);
}

static int64_t draw(hbp__rng *rng, int64_t low, int64_t high)
{
    return low + hbp__rng_below(rng, (uint64_t)(high - low + 1));
}

/* A profile over powers of two, all n or gaps, of times a / n + b that now and then rise. */
static int64_t draw_profile(hbp__rng *rng, int32_t *gpus, int64_t *ns, int64_t most_ns)
{
    int64_t points = draw(rng, 1, MOST_POINTS), kind = draw(rng, 0, 2), a = draw(rng, 1, most_ns);
    int64_t b = draw(rng, 0, most_ns / 20);
    int32_t n = (int32_t)draw(rng, 1, 3);
    for (int64_t i = 0; i < points; i++) {
        gpus[i] = n;
        n = kind == 0 ? 2 * n : kind == 1 ? n + 1 : n + (int32_t)draw(rng, 1, 7);
        ns[i] = a / gpus[i] + b + 1;
        if (draw(rng, 0, 4) == 0)
            ns[i] += draw(rng, 0, ns[i] / 2);
    }
    return points;
}

static int allowed(const hbp_operator *o, const int32_t *gpus, int64_t points, int32_t n)
{
    int profiled = 0;
    for (int64_t i = 0; i < points; i++)
        profiled |= gpus[i] == n;
    if (n < gpus[0] || n > gpus[points - 1] || n % o->least_gpus)
        return 0;
    if (o->degrees == HBP_DEGREES_PROFILED)
        return profiled;
    for (int32_t p = 1; p <= n; p++)
        if (n % p == 0 && o->batch % p == 0 && o->split % (n / p) == 0)
            return 1;
    return 0;
}

/* a / n + b through the running minimum's points on both sides, as the page writes it. */
static double line_time(const int32_t *gpus, const int64_t *least, int64_t points, int32_t n)
{
    int64_t i = 0;
    while (i + 1 < points && gpus[i + 1] < n)
        i++;
    if (gpus[i] == n || i + 1 == points)
        return (double)least[i];
    double a = (double)(least[i] - least[i + 1]) / (1. / gpus[i] - 1. / gpus[i + 1]);
    return a / n + ((double)least[i] - a / gpus[i]);
}

static void check_sizes(const scaled *s, const hbp_operator *o, const int32_t *gpus, const int64_t *ns,
                        int64_t points, int32_t most)
{
    const hbp__curve *c = hbp__meta_curve(&s->scaling, 0);
    const hbp__profile profile = hbp__graph_profile(s->graph, 0);
    int64_t least[MOST_POINTS], last = INT64_MAX;
    int32_t found = 0;
    ck_assert_int_eq(c->points, points);
    for (int64_t i = 0; i < points; i++) {
        least[i] = i ? hbp__min_i64(least[i - 1], ns[i]) : ns[i];
        ck_assert_int_eq(c->gpus[i], gpus[i]);
        ck_assert_int_eq(c->ns[i], least[i]);
    }
    for (int32_t n = 1; n <= most; n++) {
        int32_t at = hbp__curve_find(c, n);
        ck_assert_int_eq(hbp__curve_floor(c, n), found + (at >= 0) - 1);
        int may = allowed(o, gpus, points, n);
        ck_assert_int_eq(may, hbp__operator_suits(&s->graph->operators[0], &profile, n));
        if (!may) {
            ck_assert_int_eq(at, -1);
            continue;
        }
        double time = line_time(gpus, least, points, n);
        if (at < 0) {
            ck_assert_double_ge(time, (double)last - .501);
            continue;
        }
        ck_assert_int_eq(at, found++);
        ck_assert_double_eq_tol((double)c->time_ns[at], time < 1 ? 1 : time, .501);
        ck_assert_int_lt(c->time_ns[at], last);
        last = c->time_ns[at];
        for (int64_t i = 0; i < points; i++)
            if (gpus[i] == n)
                ck_assert_int_eq(last, least[i]);
    }
    ck_assert_int_eq(found, c->sizes);
    ck_assert_int_ge(last, 1);
}

START_TEST(sizes_are_those_that_divide)
{
    hbp__rng rng = hbp__rng_make(1, 0, 0);
    int none = 0, far = 0, sizes = 0;
    for (int trial = 0; trial < 4000; trial++) {
        scaled s;
        begin(&s);
        int32_t gpus[MOST_POINTS], most = (int32_t)draw(&rng, 1, 80);
        int64_t ns[MOST_POINTS], points = draw_profile(&rng, gpus, ns, draw(&rng, 0, 1) ? 40 : 100000000);
        add_profile(&s, gpus, ns, points);
        int large = draw(&rng, 0, 9) == 0; /* batch x split passes 63 bits */
        hbp_operator o =
            operator_of(0, large ? INT64_C(3) << 60 : draw(&rng, 1, 48),
                        large ? INT64_C(15) << 50 : draw(&rng, 1, 24), (int32_t)(1 << draw(&rng, 0, 2)));
        o.degrees = (int32_t)draw(&rng, 0, 1);
        if (draw(&rng, 0, 5) == 0)
            o.least_gpus = 3;
        add(&s, &o);
        int32_t needed = 0;
        for (int32_t n = 1; n <= gpus[points - 1] && !needed; n++)
            needed = allowed(&o, gpus, points, n) ? n : 0;
        hbp_status status = open_scaling(&s, most);
        if (!needed) {
            ck_assert_int_eq(status, HBP_E_INVALID);
            ck_assert_ptr_nonnull(strstr(hbp_context_message(s.context), "may run on no number of GPUs"));
            none++;
        } else if (needed > most) {
            char text[64];
            snprintf(text, sizeof text, "needs at least %d GPUs; there are %d", (int)needed, (int)most);
            ck_assert_int_eq(status, HBP_E_INVALID);
            ck_assert_ptr_nonnull(strstr(hbp_context_message(s.context), text));
            far++;
        } else {
            OK(s.context, status);
            check_sizes(&s, &o, gpus, ns, points, most);
            sizes += hbp__meta_curve(&s.scaling, 0)->sizes;
        }
        end(&s);
    }
    ck_assert_int_gt(none, 40);
    ck_assert_int_gt(far, 40);
    ck_assert_int_gt(sizes, 8000);
}
END_TEST

/* Whether some size, or a mixture of two, is as fast as size i on less area; or faster on no more. */
static int beaten(const hbp__curve *c, int32_t i)
{
    int64_t time = c->time_ns[i], area = c->size[i] * time;
    for (int32_t j = 0; j < c->sizes; j++) {
        int64_t slow = c->time_ns[j], slow_area = c->size[j] * slow;
        if (slow < time && slow_area <= area)
            return 1;
        for (int32_t k = j + 1; k < c->sizes; k++) {
            int64_t fast = c->time_ns[k], fast_area = c->size[k] * fast;
            if (slow > time && fast < time &&
                slow_area * (time - fast) + fast_area * (slow - time) < area * (slow - fast))
                return 1;
        }
    }
    return 0;
}

/* Times `scale` times as long have the same hull: it is exact where products pass 64 bits. */
static void check_hull(hbp__rng *rng, int64_t most_ns)
{
    int32_t gpus[MOST_POINTS];
    int64_t ns[MOST_POINTS], scaled_ns[MOST_POINTS], points = draw_profile(rng, gpus, ns, most_ns);
    int64_t scale = (INT64_C(1) << 51) / (2 * most_ns);
    for (int64_t i = 0; i < points; i++)
        scaled_ns[i] = ns[i] * scale;
    scaled s;
    begin(&s);
    add_profile(&s, gpus, ns, points);
    add_profile(&s, gpus, scaled_ns, points);
    hbp_operator o = operator_of(0, 1, 1, 1);
    o.degrees = HBP_DEGREES_PROFILED;
    add(&s, &o);
    o.profile = 1;
    add(&s, &o);
    OK(s.context, open_scaling(&s, gpus[points - 1]));
    const hbp__curve *c = hbp__meta_curve(&s.scaling, 0), *large = hbp__meta_curve(&s.scaling, 1);
    int32_t tight = 0;
    for (int32_t i = 0; i < c->sizes; i++)
        if (!beaten(c, i)) {
            ck_assert_int_lt(tight, c->tight);
            ck_assert_int_eq(c->hull[tight++], i);
        }
    ck_assert_int_eq(tight, c->tight);
    ck_assert_int_eq(c->hull[tight - 1], c->sizes - 1);
    ck_assert_int_eq(large->tight, tight);
    ck_assert_mem_eq(large->hull, c->hull, (size_t)tight * sizeof *c->hull);
    end(&s);
}

START_TEST(hull_is_what_no_mixture_beats)
{
    hbp__rng rng = hbp__rng_make(2, 0, 0);
    for (int trial = 0; trial < 2000; trial++)
        check_hull(&rng, trial % 2 ? 100 : 100000);
}
END_TEST

/* Perfect speed-up wastes nothing on the largest size alone; no speed-up leaves the smallest alone. */
START_TEST(hull_of_plain_curves)
{
    static const int32_t gpus[] = {1, 2, 4};
    static const struct {
        int64_t ns[3];
        int32_t sizes;
        int32_t tight;
    } all[] = {{{40, 20, 10}, 3, 1}, {{40, 40, 41}, 1, 1}, {{40, 24, 16}, 3, 3}, {{40, 39, 21}, 3, 2}};
    for (int i = 0; i < 4; i++) {
        scaled s;
        begin(&s);
        hbp_operator o = operator_of(add_profile(&s, gpus, all[i].ns, 3), 4, 1, 1);
        add(&s, &o);
        OK(s.context, open_scaling(&s, 4));
        const hbp__curve *c = hbp__meta_curve(&s.scaling, 0);
        ck_assert_int_eq(c->sizes, all[i].sizes);
        ck_assert_int_eq(c->tight, all[i].tight);
        end(&s);
    }
}
END_TEST

START_TEST(equal_rules_share_a_curve)
{
    static const int32_t gpus[] = {1, 2, 4, 8};
    static const int64_t ns[] = {80, 50, 30, 20}, more[] = {90, 50, 30, 20};
    scaled s;
    begin(&s);
    add_profile(&s, gpus, ns, 4);
    add_profile(&s, gpus, more, 4);
    hbp_operator all[] = {operator_of(0, 8, 1, 1), operator_of(1, 8, 1, 1), operator_of(0, 4, 1, 1),
                          operator_of(0, 8, 2, 1), operator_of(0, 8, 1, 2), operator_of(0, 8, 1, 1)};
    all[5].degrees = HBP_DEGREES_PROFILED;
    for (int32_t i = 0; i < 600; i++) {
        all[i % 6].width = 1 + i; /* not a rule */
        add(&s, &all[i % 6]);
    }
    OK(s.context, open_scaling(&s, 8));
    ck_assert_int_eq(s.meta.count, 600);
    ck_assert_int_eq(s.scaling.count, 6);
    ck_assert_int_eq(s.scaling.gpus, 8);
    for (int32_t m = 0; m < 600; m++)
        ck_assert_int_eq(s.scaling.curve_of[m], m % 6);
    end(&s);
}
END_TEST

/* A size outside the profile is not used, however well it divides. */
START_TEST(nothing_outside_the_profile)
{
    scaled s;
    begin(&s);
    hbp_operator o = operator_of(add_profile(&s, (int32_t[]){2, 8}, (int64_t[]){800, 260}, 2), 64, 1, 1);
    add(&s, &o);
    OK(s.context, open_scaling(&s, 64));
    const hbp__curve *c = hbp__meta_curve(&s.scaling, 0);
    ck_assert_int_eq(c->sizes, 3);
    ck_assert_mem_eq(c->size, ((int32_t[]){2, 4, 8}), 3 * sizeof *c->size);
    ck_assert_mem_eq(c->time_ns, ((int64_t[]){800, 440, 260}), 3 * sizeof *c->time_ns);
    end(&s);
}
END_TEST

START_TEST(what_cannot_be_planned_is_named)
{
    scaled s;
    begin(&s);
    hbp_operator o = operator_of(-1, 1, 1, 1);
    o.name = "encoder";
    add(&s, &o);
    FAILS(s.context, HBP_E_INVALID, "operator 'encoder' has no profile", open_scaling(&s, 8));
    end(&s);

    begin(&s);
    o = operator_of(add_profile(&s, (int32_t[]){4, 6}, (int64_t[]){9, 8}, 2), 7, 1, 1);
    o.name = "prime";
    add(&s, &o);
    FAILS(s.context, HBP_E_INVALID,
          "'prime' may run on no number of GPUs from the least profiled, 4, to the largest, 6",
          open_scaling(&s, 8));
    end(&s);
}
END_TEST

/* Sums of times must fit: 2^53 ns on 512 GPUs is 2^62, once. */
START_TEST(sums_that_overflow_are_refused)
{
    int64_t ns = INT64_C(1) << 53;
    for (int32_t gpus = 512; gpus <= 1 << 20; gpus += (1 << 20) - 512) {
        scaled s;
        begin(&s);
        hbp_operator o = operator_of(add_profile(&s, &gpus, &ns, 1), gpus, 1, 1);
        o.name = "vast";
        add(&s, &o);
        if (gpus == 512) {
            OK(s.context, open_scaling(&s, gpus));
            hbp__scaling_close(&s.scaling);
            hbp__meta_graph_close(&s.meta);
            o.name = "second";
            add(&s, &o);
        }
        FAILS(s.context, HBP_E_OVERFLOW,
              gpus == 512 ? "operators up to 'second' take more than 2^62 ns of GPU time" : "up to 'vast'",
              open_scaling(&s, gpus));
        end(&s);
    }
}
END_TEST

typedef struct opened {
    const hbp_graph *graph;
    const hbp__meta_graph *meta;
} opened;

static hbp_status open_again(hbp_context *context, void *user)
{
    const opened *o = user;
    hbp__scaling scaling;
    hbp_status status = hbp__scaling_open(context, o->graph, o->meta, 64, &scaling);
    if (status == HBP_OK)
        hbp__scaling_close(&scaling);
    return status;
}

START_TEST(no_allocation_is_taken_for_granted)
{
    scaled s;
    begin(&s);
    hbp__rng rng = hbp__rng_make(3, 0, 0);
    for (int32_t i = 0; i < 40; i++) {
        int32_t gpus[MOST_POINTS] = {0};
        int64_t ns[MOST_POINTS], points = draw_profile(&rng, gpus, ns, 100000);
        hbp_operator o = operator_of(add_profile(&s, gpus, ns, points), 720720, 1, 1);
        o.width = i + 1;
        add(&s, &o);
    }
    OK(s.context, open_scaling(&s, 64));
    opened o = {s.graph, &s.meta};
    failing_sweep(open_again, &o);
    ck_assert_int_eq(cancel_sweep(open_again, &o), 40);
    end(&s);
}
END_TEST

TEST_MAIN("scaling", sizes_are_those_that_divide, hull_is_what_no_mixture_beats, hull_of_plain_curves,
          equal_rules_share_a_curve, nothing_outside_the_profile, what_cannot_be_planned_is_named,
          sums_that_overflow_are_refused, no_allocation_is_taken_for_granted)

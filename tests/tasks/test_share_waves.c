/* Waves with shares of what is left (lib/tasks/waves/share_waves.c). */
#include "keep.h"
#include "tasks/waved.h"

static const hbp__wave_rule rules[] = {{0, 1.1}, {1, 1.1}, {0, 1}, {1, 1.5}};

/* Every rule on the levels of random graphs; nothing is shorter than its longest MetaOp or its work. */
START_TEST_IN_CONTEXT(invariants_on_random_levels)
{
    hbp__rng rng = hbp__rng_make(1, 0, 0);
    for (int trial = 0; trial < 2000; trial++) {
        hbp_graph *graph = random_graph(context, &rng, &(graph_sizes){.chain = 20});
        planned p;
        open_planned(context, graph, (int32_t)random_between(&rng, 4, 24), &p);
        const hbp__wave_rule *rule = &rules[trial % 4];
        for (int32_t v = 0; v < p.meta.levels; v++) {
            hbp__level_waves w;
            OK(context, hbp__level_waves_open(context, &p.problem, v, &w));
            OK(context, hbp__share_waves(context, rule, &w));
            check_waves(&p, &w);
            int64_t longest = 0, area = 0;
            for (int32_t m = w.base; m < w.end; m++) {
                const hbp__curve *c = hbp__meta_curve(&p.scaling, m);
                int64_t count = p.meta.meta_op[m].count, fastest = count * c->time_ns[c->sizes - 1];
                longest = fastest > longest ? fastest : longest;
                area += count * c->size[c->hull[0]] * c->time_ns[c->hull[0]];
            }
            ck_assert_int_ge(w.length_ns, longest);
            ck_assert_int_ge(w.length_ns * p.problem.gpus, area);
            int64_t length = w.length_ns;
            OK(context, hbp__share_waves(context, rule, &w)); /* over what was there, the same */
            ck_assert_int_eq(w.length_ns, length);
            hbp__level_waves_close(&w);
        }
        close_planned(&p);
        hbp_graph_free(graph);
    }
}
END_TEST

/* One MetaOp, or as many alike as there is room for, need one wave. */
START_TEST_IN_CONTEXT(one_wave_where_one_will_do)
{
    for (int32_t tasks = 1; tasks <= 8; tasks *= 2)
        for (int32_t gpus = tasks; gpus <= 64; gpus *= 2) {
            hbp_graph *graph = new_graph(context);
            hbp_operator o = {.struct_size = sizeof o};
            o.profile = add_falling_profile(context, graph, 1000003, 17, 16);
            o.batch = 16;
            for (int32_t t = 0; t < tasks; t++) {
                char name[16];
                snprintf(name, sizeof name, "t%d", (int)t);
                add_chain(context, graph, &o, name, name, name, 11);
            }
            planned p;
            open_planned(context, graph, gpus, &p);
            hbp__level_waves w;
            int32_t each = gpus / tasks < 16 ? gpus / tasks : 16;
            for (int r = 0; r < 4; r++) {
                OK(context, hbp__level_waves_open(context, &p.problem, 0, &w));
                OK(context, hbp__share_waves(context, &rules[r], &w));
                ck_assert_int_eq(w.count, 1);
                ck_assert_int_eq(w.length_ns, 11 * (1000003 / each + 17));
                hbp__level_waves_close(&w);
            }
            close_planned(&p);
            hbp_graph_free(graph);
        }
}
END_TEST

#define SMALL_METAS 3
#define SMALL_CHAIN 4

/* The least sum of waves over every way to run what is left, by trying all, each state once. */
typedef struct small {
    const planned *p;
    int32_t base;
    int32_t metas;
    int64_t best[(SMALL_CHAIN + 1) * (SMALL_CHAIN + 1) * (SMALL_CHAIN + 1)];
} small;

static int32_t state_of(const int32_t *left)
{
    return (left[0] * (SMALL_CHAIN + 1) + left[1]) * (SMALL_CHAIN + 1) + left[2];
}

static int64_t least_of(small *s, const int32_t *left);

static void try_wave(small *s, const int32_t *left, int32_t m, int32_t free, int64_t longest, int32_t *rest,
                     int64_t *least)
{
    if (m == s->metas) {
        if (longest) {
            int64_t sum = longest + least_of(s, rest);
            *least = sum < *least ? sum : *least;
        }
        return;
    }
    const hbp__curve *c = hbp__meta_curve(&s->p->scaling, s->base + m);
    rest[m] = left[m];
    try_wave(s, left, m + 1, free, longest, rest, least);
    for (int32_t i = 0; i < c->sizes && c->size[i] <= free; i++)
        for (int32_t count = 1; count <= left[m]; count++) {
            int64_t time = count * c->time_ns[i];
            rest[m] = left[m] - count;
            try_wave(s, left, m + 1, free - c->size[i], time > longest ? time : longest, rest, least);
        }
}

static int64_t least_of(small *s, const int32_t *left)
{
    int64_t *best = &s->best[state_of(left)];
    if (*best >= 0)
        return *best;
    int64_t least = INT64_MAX;
    int32_t rest[SMALL_METAS] = {0};
    try_wave(s, left, 0, s->p->problem.gpus, 0, rest, &least);
    *best = least;
    return least;
}

/* Never below the optimum of all waves; with the better of two rules 3 % above it on average. */
START_TEST_IN_CONTEXT(near_brute_force)
{
    hbp__rng rng = hbp__rng_make(3, 0, 0);
    double sum = 0;
    int levels = 0, best = 0;
    for (int trial = 0; trial < 400; trial++) {
        graph_sizes sizes = {.tasks = 3, .encoders = 1, .heads = 1, .chain = SMALL_CHAIN, .most_gpus = 4};
        hbp_graph *graph = random_graph(context, &rng, &sizes);
        planned p;
        open_planned(context, graph, (int32_t)random_between(&rng, 4, 6), &p);
        for (int32_t v = 0; v < p.meta.levels; v++) {
            hbp__level_waves w;
            OK(context, hbp__level_waves_open(context, &p.problem, v, &w));
            int32_t left[SMALL_METAS] = {0};
            small s = {.p = &p, .base = w.base, .metas = w.end - w.base};
            ck_assert_int_le(s.metas, SMALL_METAS);
            memset(s.best, -1, sizeof s.best);
            s.best[0] = 0;
            for (int32_t m = 0; m < s.metas; m++)
                left[m] = p.meta.meta_op[w.base + m].count;
            int64_t least = least_of(&s, left), found = INT64_MAX;
            for (int r = 0; r < 2; r++) {
                OK(context, hbp__share_waves(context, &rules[r], &w));
                ck_assert_int_ge(w.length_ns, least);
                found = w.length_ns < found ? w.length_ns : found;
            }
            if (s.metas > 1) {
                sum += (double)found / (double)least;
                best += found == least;
                levels++;
            }
            hbp__level_waves_close(&w);
        }
        close_planned(&p);
        hbp_graph_free(graph);
    }
    ck_assert_int_gt(levels, 200);
    printf("share_waves / brute force: %.4f on average, optimal in %d of %d\n", sum / levels, best, levels);
    ck_assert_double_lt(sum / levels, 1.05);
}
END_TEST

/* More MetaOps at a time, no two alike, than ends can be tried of; the slowest has the highest number. */
START_TEST_IN_CONTEXT(wide_levels_end)
{
    hbp_graph *graph = keep(new_graph(context));
    hbp_operator o = {.struct_size = sizeof o};
    o.batch = 16;
    for (int32_t t = 0; t < 1500; t++) {
        char name[16];
        snprintf(name, sizeof name, "t%d", (int)t);
        o.profile = add_falling_profile(context, graph, 1000000 + 1009 * t, 50000, 16);
        add_chain(context, graph, &o, name, name, name, 1 + t % 7);
    }
    planned p;
    open_planned(context, graph, 1200, &p);
    hbp__level_waves w;
    OK(context, hbp__level_waves_open(context, &p.problem, 0, &w));
    for (int r = 0; r < 2; r++) {
        OK(context, hbp__share_waves(context, &rules[r], &w));
        check_waves(&p, &w);
    }
    hbp__level_waves_close(&w);
    close_planned(&p);
}
END_TEST

static hbp_status share_first(hbp_context *context, hbp__level_waves *waves)
{
    return hbp__share_waves(context, &rules[0], waves);
}

START_TEST(no_allocation_is_taken_for_granted)
{
    sweep_level(share_first);
}
END_TEST

TEST_MAIN("share_waves", invariants_on_random_levels, one_wave_where_one_will_do, near_brute_force,
          wide_levels_end, no_allocation_is_taken_for_granted)

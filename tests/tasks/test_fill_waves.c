/* Waves as published (lib/tasks/waves/fill_waves.c). */
#include "keep.h"
#include "tasks/waved.h"

#define MOST_TUPLES 128

/* Figure 5a's tuples, <2, 8> of .12 s; <2, 8> of .0683 s and <1, 4> of .1183 s; <1, 6> of .1 s, by hand. */
START_TEST_IN_CONTEXT(waves_of_the_figure)
{
    static const hbp__wave_item expected[] = {
        {.meta_op = 0, .count = 5, .gpus = 2}, /* .6: the shortest, .547, in whole operators of all */
        {.meta_op = 1, .count = 8, .gpus = 2},
        {.meta_op = 0, .count = 3, .gpus = 2}, /* .4: .36, and four of the third */
        {.meta_op = 2, .count = 4, .gpus = 1},
        {.meta_op = 1, .count = 3, .gpus = 1},
        {.meta_op = 2, .count = 1, .gpus = 1}, /* .1: the second, on a GPU more, leaves the third one more */
        {.meta_op = 1, .count = 1, .gpus = 2},
        {.meta_op = 2, .count = 1, .gpus = 1}, /* .1 */
    };
    static const int64_t first[] = {0, 2, 5, 7, 8};
    hbp_graph *graph = keep(figure_graph(context));
    planned p;
    open_planned(context, graph, 4, &p);
    hbp__level_waves w;
    OK(context, hbp__level_waves_open(context, &p.problem, 0, &w));
    OK(context, hbp__fill_waves(context, &w));
    ck_assert_int_eq(w.count, 4);
    ck_assert_mem_eq(w.first, first, sizeof first);
    for (int32_t i = 0; i < 8; i++) {
        ck_assert_int_eq(w.item[i].meta_op, expected[i].meta_op);
        ck_assert_int_eq(w.item[i].count, expected[i].count);
        ck_assert_int_eq(w.item[i].gpus, expected[i].gpus);
    }
    ck_assert_int_eq(w.length_ns, 1200000000);
    hbp__level_waves_close(&w);
    close_planned(&p);
}
END_TEST

/* The page's rule once more, without the library's bookkeeping: the next tuple is looked for among all. */
static int64_t follow_page(const planned *p, hbp__tuple *tuples, int32_t count, int32_t *waves)
{
    int64_t length = 0;
    int32_t last_meta[MOST_TUPLES] = {0}, last_gpus[MOST_TUPLES] = {0}, last = 0;
    int64_t last_count[MOST_TUPLES] = {0}, last_length = 0;
    *waves = 0;
    for (;;) {
        int32_t chosen[MOST_TUPLES], gpus[MOST_TUPLES], number = 0, free = p->problem.gpus;
        int used[MOST_TUPLES] = {0};
        for (;;) {
            int32_t best = -1;
            int64_t best_ns = 0;
            for (int32_t i = 0; i < count; i++) {
                const hbp__curve *c = hbp__meta_curve(&p->scaling, tuples[i].meta_op);
                int64_t ns = tuples[i].count * c->time_ns[hbp__curve_find(c, tuples[i].gpus)];
                int taken = used[i] || tuples[i].count == 0 || tuples[i].gpus > free;
                for (int32_t k = 0; k < number; k++)
                    taken |= tuples[chosen[k]].meta_op == tuples[i].meta_op;
                if (!taken && (best < 0 || tuples[i].gpus > tuples[best].gpus ||
                               (tuples[i].gpus == tuples[best].gpus && ns > best_ns))) {
                    best = i;
                    best_ns = ns;
                }
            }
            if (best < 0)
                break;
            used[best] = 1;
            gpus[number] = tuples[best].gpus;
            chosen[number++] = best;
            free -= tuples[best].gpus;
        }
        if (!number)
            break;
        for (int more = 1; more;) {
            int32_t most = -1, to = 0;
            int64_t most_ns = -1;
            more = 0;
            for (int32_t k = 0; k < number; k++) {
                const hbp__curve *c = hbp__meta_curve(&p->scaling, tuples[chosen[k]].meta_op);
                int32_t at = hbp__curve_find(c, gpus[k]);
                int64_t ns = tuples[chosen[k]].count * c->time_ns[at];
                if (at + 1 < c->sizes && c->size[at + 1] - gpus[k] <= free && ns > most_ns) {
                    most = k;
                    most_ns = ns;
                    to = c->size[at + 1];
                }
            }
            if (most >= 0) {
                free -= to - gpus[most];
                gpus[most] = to;
                more = 1;
            }
        }
        int64_t each[MOST_TUPLES], shortest = INT64_MAX, stage = 0, wave_length = 0;
        int same = number == last;
        for (int32_t k = 0; k < number; k++) {
            const hbp__curve *c = hbp__meta_curve(&p->scaling, tuples[chosen[k]].meta_op);
            each[k] = c->time_ns[hbp__curve_find(c, gpus[k])];
            int64_t ns = each[k] * tuples[chosen[k]].count;
            shortest = ns < shortest ? ns : shortest;
        }
        for (int32_t k = 0; k < number; k++) {
            int64_t times = (2 * shortest + each[k]) / (2 * each[k]); /* rounded, halves up */
            times = times < 1 ? 1 : times;
            stage = times * each[k] > stage ? times * each[k] : stage;
        }
        int64_t ran[MOST_TUPLES];
        for (int32_t k = 0; k < number; k++) {
            hbp__tuple *t = &tuples[chosen[k]];
            ran[k] = stage / each[k] < t->count ? stage / each[k] : t->count;
            t->count -= (int32_t)ran[k];
            int found = 0;
            for (int32_t j = 0; j < last; j++)
                found |= last_meta[j] == t->meta_op && last_gpus[j] == gpus[k];
            same &= found;
        }
        for (int32_t k = 0; k < number; k++) {
            int64_t before = 0;
            for (int32_t j = 0; j < last && same; j++)
                if (last_meta[j] == tuples[chosen[k]].meta_op)
                    before = last_count[j];
            ran[k] += before;
            wave_length = ran[k] * each[k] > wave_length ? ran[k] * each[k] : wave_length;
        }
        length += wave_length - (same ? last_length : 0);
        *waves += !same;
        last = number;
        last_length = wave_length;
        for (int32_t k = 0; k < number; k++) {
            last_meta[k] = tuples[chosen[k]].meta_op;
            last_gpus[k] = gpus[k];
            last_count[k] = ran[k];
        }
    }
    return length;
}

START_TEST_IN_CONTEXT(random_levels_follow_the_page)
{
    hbp__rng rng = hbp__rng_make(1, 0, 0);
    int joined = 0;
    for (int trial = 0; trial < 2500; trial++) {
        hbp_graph *graph = random_graph(context, &rng, &(graph_sizes){.chain = 20});
        planned p;
        open_planned(context, graph, (int32_t)random_between(&rng, 4, 24), &p);
        for (int32_t v = 0; v < p.meta.levels; v++) {
            hbp__level_waves w;
            hbp__tuple tuples[MOST_TUPLES];
            double optimum;
            int32_t count, waves;
            OK(context, hbp__level_waves_open(context, &p.problem, v, &w));
            OK(context, hbp__fill_waves(context, &w));
            check_waves(&p, &w);
            OK(context, hbp__allocate_level(context, &p.problem, w.base, w.end, &optimum, tuples, &count));
            ck_assert(w.optimum_ns == optimum);
            ck_assert_int_eq(w.length_ns, follow_page(&p, tuples, count, &waves));
            ck_assert_int_eq(w.count, waves);
            joined += waves < count;
            hbp__level_waves_close(&w);
        }
        close_planned(&p);
        hbp_graph_free(graph);
    }
    ck_assert_int_gt(joined, 100);
}
END_TEST

START_TEST(no_allocation_is_taken_for_granted)
{
    sweep_level(hbp__fill_waves);
}
END_TEST

TEST_MAIN("fill_waves", waves_of_the_figure, random_levels_follow_the_page,
          no_allocation_is_taken_for_granted)

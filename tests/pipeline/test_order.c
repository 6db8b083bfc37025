/* Orders against brute force, and what must hold of any. */
#include "pipeline/order.h"

#include "failing.h"
#include "keep.h"
#include "simulate/pipelines.h"

/* Time and peaks of all orders of few micro-batches. */
typedef struct best {
    int64_t least;        /* of all */
    int64_t least_within; /* of those that fit */
} best;

static int fits(const hbp__schedule *schedule, const hbp__stage_times *times, const int32_t *order,
                const int64_t *limit)
{
    int64_t peak[MOST_STAGES];
    hbp__pipeline_peak(schedule, times, order, peak);
    for (int32_t s = 0; limit && s < schedule->stages; s++)
        if (peak[s] > limit[s])
            return 0;
    return 1;
}

static void try_all(hbp__schedule *schedule, const hbp__stage_times *times, const int64_t *limit,
                    int32_t *order, int32_t place, best *found)
{
    if (place == schedule->micro_batches) {
        int64_t ns = hbp__pipeline_time(schedule, times, order, NULL, NULL);
        found->least = ns < found->least ? ns : found->least;
        if (ns < found->least_within && fits(schedule, times, order, limit))
            found->least_within = ns;
        return;
    }
    for (int32_t i = place; i < schedule->micro_batches; i++) {
        int32_t t = order[place];
        order[place] = order[i];
        order[i] = t;
        try_all(schedule, times, limit, order, place + 1, found);
        order[i] = order[place];
        order[place] = t;
    }
}

static void check_permutation(const int32_t *order, int32_t count)
{
    int seen[MOST_M] = {0};
    for (int32_t i = 0; i < count; i++) {
        ck_assert(order[i] >= 0 && order[i] < count);
        ck_assert_int_eq(seen[order[i]]++, 0);
    }
}

/* Limits a little above the peaks of the order as given, or for one trial in four below. */
static void draw_limits(hbp__rng *rng, piped *p, const hbp__schedule *schedule, const hbp__stage_times *times)
{
    hbp__pipeline_peak(schedule, times, NULL, p->limit);
    for (int32_t s = 0; s < schedule->stages; s++)
        p->limit[s] += hbp__rng_below(rng, 4) ? hbp__rng_below(rng, 500) : 0;
    if (!hbp__rng_below(rng, 4))
        p->limit[0] = p->limit[0] > 0 ? p->limit[0] - 1 : 0;
    p->options.limit_bytes = p->limit;
}

/* Orders random pipelines of `least` .. `most` micro-batches; how many met the optimum, of how many. */
static void compare_with_all(uint64_t seed, int trials, int32_t least, int32_t most, int *met, int *limited)
{
    hbp_context *context = test_context();
    hbp__rng rng = hbp__rng_make(seed, 0, 0);
    *met = *limited = 0;
    for (int trial = 0; trial < trials; trial++) {
        int32_t stages, virtual_stages, m, order[MOST_M], all[8];
        do
            draw_shape(&rng, 5, 2, most, &stages, &virtual_stages, &m);
        while (m < least || m > most);
        piped p;
        piped_random(context, &rng, &p, stages, virtual_stages, m,
                     PIPED_SCALES | (int)hbp__rng_below(&rng, PIPED_ALL + 1));
        if (hbp__rng_below(&rng, 3) == 0 && m > 2) /* some alike */
            p.token[1] = p.token[2] = p.token[0], p.vision[1] = p.vision[2] = p.vision[0],
            p.token_time[1] = p.token_time[0], p.vision_time[1] = p.vision_time[0];
        hbp__stage_times times;
        hbp__schedule schedule;
        OK(context, hbp__stage_times_open(context, p.layers, p.cuts, &p.options, &times));
        OK(context, hbp__schedule_open(context, stages, virtual_stages, m, &schedule));
        if (hbp__rng_below(&rng, 2))
            draw_limits(&rng, &p, &schedule, &times);
        for (int32_t i = 0; i < m; i++)
            all[i] = i;
        best found = {INT64_MAX, INT64_MAX};
        try_all(&schedule, &times, p.options.limit_bytes, all, 0, &found);
        int within = fits(&schedule, &times, NULL, p.options.limit_bytes);
        int64_t optimum = within ? found.least_within : found.least, before, after;
        OK(context, hbp_order_micro_batches(context, p.layers, p.cuts, &p.options, order, &before, &after));
        check_permutation(order, m);
        ck_assert_int_eq(before, hbp__pipeline_time(&schedule, &times, NULL, NULL, NULL));
        ck_assert_int_eq(after, hbp__pipeline_time(&schedule, &times, order, NULL, NULL));
        ck_assert(after >= optimum && after <= before);
        if (m <= HBP__ORDER_EXACT)
            ck_assert_msg(after == optimum, "trial %d: S %d V %d M %d: %lld, best %lld", trial, (int)stages,
                          (int)virtual_stages, (int)m, (long long)after, (long long)optimum);
        if (within)
            ck_assert(fits(&schedule, &times, order, p.options.limit_bytes));
        *met += after == optimum;
        *limited += within && found.least_within > found.least;
        hbp__schedule_close(&schedule);
        hbp__stage_times_close(&times);
        piped_free(&p);
    }
    hbp_context_free(context);
}

START_TEST(few_micro_batches_are_ordered_best)
{
    int met, limited;
    compare_with_all(1, 400, 1, 6, &met, &limited);
    ck_assert_int_eq(met, 400);
    ck_assert_int_gt(limited, 10);
    compare_with_all(2, 30, 7, 7, &met, &limited);
    ck_assert_int_eq(met, 30);
}
END_TEST

START_TEST(eight_are_nearly_always_ordered_best)
{
    int met, limited;
    compare_with_all(3, 24, 8, 8, &met, &limited);
    ck_assert_msg(met >= 22, "%d of 24", met);
}
END_TEST

START_TEST_IN_CONTEXT(many_are_never_ordered_worse)
{
    hbp__rng rng = hbp__rng_make(4, 0, 0);
    int better = 0;
    for (int trial = 0; trial < 24; trial++) {
        int32_t stages, virtual_stages, m, order[MOST_M], again[MOST_M], columns[MOST_M];
        do
            draw_shape(&rng, 6, 3, 6, &stages, &virtual_stages, &m);
        while (m <= 8 || stages == 1);
        piped p;
        piped_random(context, &rng, &p, stages, virtual_stages, m, PIPED_ALL);
        p.options.token_scale = p.token;
        hbp__stage_times times;
        hbp__schedule schedule;
        OK(context, hbp__stage_times_open(context, p.layers, p.cuts, &p.options, &times));
        OK(context, hbp__schedule_open(context, stages, virtual_stages, m, &schedule));
        if (trial % 2)
            draw_limits(&rng, &p, &schedule, &times);
        int64_t before, after, bound, first, second;
        for (int32_t i = 0; i < m; i++)
            order[i] = again[i] = i;
        int64_t work = INT64_C(1) << 19;
        OK(context, hbp__order_micro_batches(context, &schedule, &times, p.options.limit_bytes, work, order,
                                             &before, &after));
        check_permutation(order, m);
        ck_assert_int_eq(before, hbp__pipeline_time(&schedule, &times, NULL, NULL, NULL));
        ck_assert_int_eq(after, hbp__pipeline_time(&schedule, &times, order, NULL, NULL));
        OK(context, hbp__pipeline_bound(context, &schedule, &times, NULL, &bound));
        ck_assert(bound <= after && after <= before);
        if (fits(&schedule, &times, NULL, p.options.limit_bytes))
            ck_assert(fits(&schedule, &times, order, p.options.limit_bytes));
        better += after < before;

        /* The same again is the same; more work is no worse; none at all is still one pass over the starts.
         */
        OK(context, hbp__order_micro_batches(context, &schedule, &times, p.options.limit_bytes, work, again,
                                             NULL, NULL));
        ck_assert_mem_eq(order, again, (size_t)m * sizeof *order);
        for (int32_t i = 0; i < m; i++)
            again[i] = i;
        OK(context, hbp__order_micro_batches(context, &schedule, &times, p.options.limit_bytes, 4 * work,
                                             again, &first, &second));
        ck_assert_int_eq(first, before);
        ck_assert_int_le(second, after);
        for (int32_t i = 0; i < m; i++)
            again[i] = i;
        OK(context, hbp__order_micro_batches(context, &schedule, &times, p.options.limit_bytes, 0, again,
                                             &first, &second));
        ck_assert(second <= before && second >= after);

        /* Some of the micro-batches of larger times, by their columns. */
        int32_t some = stages * 2;
        if (some < m) {
            hbp__schedule part;
            OK(context, hbp__schedule_open(context, stages, virtual_stages, some, &part));
            for (int32_t i = 0; i < some; i++)
                columns[i] = again[i] = m - 1 - i;
            OK(context, hbp__order_micro_batches(context, &part, &times, NULL, work, again, &first, &second));
            ck_assert_int_eq(first, hbp__pipeline_time(&part, &times, columns, NULL, NULL));
            ck_assert_int_eq(second, hbp__pipeline_time(&part, &times, again, NULL, NULL));
            ck_assert_int_le(second, first);
            for (int32_t i = 0; i < some; i++)
                again[i] -= m - some;
            check_permutation(again, some);
            hbp__schedule_close(&part);
        }
        hbp__schedule_close(&schedule);
        hbp__stage_times_close(&times);
        piped_free(&p);
    }
    ck_assert_int_gt(better, 12);
}
END_TEST

/* Micro-batches that differ in one column only are not alike. */
START_TEST_IN_CONTEXT(micro_batches_alike_in_part_are_told_apart)
{
    hbp__rng rng = hbp__rng_make(7, 0, 0);
    int better = 0;
    for (int trial = 0; trial < 300; trial++) {
        piped p;
        int32_t stages = 2 + (int32_t)hbp__rng_below(&rng, 3), m = 5, order[] = {0, 1, 2, 3, 4}, all[5];
        piped_random(context, &rng, &p, stages, 1, m, PIPED_LINK);
        hbp__stage_times t;
        hbp__schedule schedule;
        OK(context, hbp__stage_times_open(context, p.layers, p.cuts, &p.options, &t));
        OK(context, hbp__schedule_open(context, stages, 1, m, &schedule));
        int64_t *columns[] = {t.forward, t.backward, t.transfer};
        int64_t *column = columns[trial % 3];
        for (int32_t i = 0; i < (stages - (trial % 3 == 2)) * m; i++)
            column[i] = hbp__rng_below(&rng, 3000);
        memset(t.sending, 0, (size_t)((stages - 1) * m) * sizeof *t.sending);
        memcpy(all, order, sizeof all);
        best found = {INT64_MAX, INT64_MAX};
        try_all(&schedule, &t, NULL, all, 0, &found);
        int64_t before, after;
        OK(context, hbp__order_micro_batches(context, &schedule, &t, NULL, 0, order, &before, &after));
        ck_assert_int_eq(after, found.least);
        better += after < before;
        hbp__schedule_close(&schedule);
        hbp__stage_times_close(&t);
        piped_free(&p);
    }
    ck_assert_int_gt(better, 100);
}
END_TEST

/* Takes what stands at `from` out and puts it in at `to`. */
static void shift(int32_t *order, int32_t from, int32_t to)
{
    int32_t step = from < to ? 1 : -1, moved = order[from];
    for (int32_t i = from; i != to; i += step)
        order[i] = order[i + step];
    order[to] = moved;
}

/* What the search returns when its work is not spent is a local optimum: it gave up no move too early. */
START_TEST_IN_CONTEXT(no_swap_or_shift_is_faster)
{
    hbp__rng rng = hbp__rng_make(8, 0, 0);
    int searched = 0;
    const int trials = TEST_FEW(24, 8);
    for (int trial = 0; trial < trials; trial++) {
        piped p;
        int32_t stages = 2 + (int32_t)hbp__rng_below(&rng, 4), m = 8 + (int32_t)hbp__rng_below(&rng, 4);
        int32_t virtual_stages = 1, order[MOST_M], tried[MOST_M];
        if (trial % 4 == 0)
            virtual_stages = 2, stages = 2 + trial % 8 / 4, m = 4 * stages;
        piped_random(context, &rng, &p, stages, virtual_stages, m, PIPED_SCALES | PIPED_LINK);
        hbp__stage_times t;
        hbp__schedule schedule;
        OK(context, hbp__stage_times_open(context, p.layers, p.cuts, &p.options, &t));
        OK(context, hbp__schedule_open(context, stages, virtual_stages, m, &schedule));
        for (int32_t i = 0; i < m; i++)
            order[i] = i;
        for (int32_t i = 0; i < t.chunks * m; i++) {
            t.forward[i] = hbp__rng_below(&rng, 1000);
            t.backward[i] = hbp__rng_below(&rng, 2000);
        }
        int64_t after, bound;
        OK(context,
           hbp__order_micro_batches(context, &schedule, &t, NULL, INT64_C(1) << 24, order, NULL, &after));
        OK(context, hbp__pipeline_bound(context, &schedule, &t, NULL, &bound));
        searched += after > bound;
        for (int32_t i = 0; i < m; i++)
            for (int32_t j = 0; j < m; j++) {
                memcpy(tried, order, sizeof tried);
                shift(tried, i, j);
                ck_assert_int_ge(hbp__pipeline_time(&schedule, &t, tried, NULL, NULL), after);
                memcpy(tried, order, sizeof tried);
                tried[i] = order[j];
                tried[j] = order[i];
                ck_assert_int_ge(hbp__pipeline_time(&schedule, &t, tried, NULL, NULL), after);
            }
        hbp__schedule_close(&schedule);
        hbp__stage_times_close(&t);
        piped_free(&p);
    }
    ck_assert_int_gt(searched, trials * 3 / 4);
}
END_TEST

/* Johnson's rule for two stages: with backwards of no time, micro-batch 0 (first stage 5, second 1) goes last
 * and 1 (1, 5) first. */
START_TEST_IN_CONTEXT(an_order_by_hand)
{
    hbp_layer_columns columns = {.struct_size = sizeof columns};
    columns.count = 2;
    columns.forward_ns = (int64_t[]){1, 1};
    columns.backward_ns = (int64_t[]){0, 0};
    columns.type = (int32_t[]){HBP_LAYER_VISION, HBP_LAYER_LANGUAGE};
    piped p = {.cuts = {0, 1, 2}};
    OK(context, hbp_layers_create(context, &columns, &p.layers));
    piped_options(&p, 2, 1, 2);
    p.options.vision_scale = (double[]){5, 1};
    p.options.token_scale = (double[]){1, 5};
    int32_t order[2];
    int64_t before, after;
    OK(context, hbp_order_micro_batches(context, p.layers, p.cuts, &p.options, order, &before, &after));
    ck_assert_int_eq(before, 5 + 1 + 5);
    ck_assert_int_eq(after, 1 + 5 + 1);
    ck_assert_int_eq(order[0], 1);
    ck_assert_int_eq(order[1], 0);
    OK(context, hbp_order_micro_batches(context, p.layers, p.cuts, &p.options, order, NULL, NULL));
    piped_free(&p);
}
END_TEST

START_TEST_IN_CONTEXT(equal_micro_batches_stay_as_they_are)
{
    for (int32_t m = 1; m <= 12; m++) {
        piped p;
        piped_plain(context, &p, 3, 1, m, (int64_t[]){3, 9, 1}, (int64_t[]){1, 2, 30});
        int32_t order[12];
        OK(context, hbp_order_micro_batches(context, p.layers, p.cuts, &p.options, order, NULL, NULL));
        for (int32_t i = 0; i < m; i++)
            ck_assert_int_eq(order[i], i);
        piped_free(&p);
    }
}
END_TEST

START_TEST_IN_CONTEXT(bad_input_has_its_message)
{
    piped p;
    piped_plain(context, &p, 2, 1, 3, (int64_t[]){1, 1}, NULL);
    int32_t order[3] = {7, 7, 7};
    const hbp_pipeline_options *o = &p.options;
    FAILS(context, HBP_E_INVALID, "layers is NULL",
          hbp_order_micro_batches(context, NULL, p.cuts, o, order, NULL, NULL));
    FAILS(context, HBP_E_INVALID, "cuts is NULL",
          hbp_order_micro_batches(context, p.layers, NULL, o, order, NULL, NULL));
    FAILS(context, HBP_E_INVALID, "order is NULL",
          hbp_order_micro_batches(context, p.layers, p.cuts, o, NULL, NULL, NULL));
    FAILS(context, HBP_E_INVALID, "cuts go from 0 to 1",
          hbp_order_micro_batches(context, p.layers, (int32_t[]){0, 0, 1}, o, order, NULL, NULL));
    p.options.micro_batches = -3;
    FAILS(context, HBP_E_INVALID, "pipeline.micro_batches is -3",
          hbp_order_micro_batches(context, p.layers, p.cuts, o, order, NULL, NULL));
    ck_assert_int_eq(order[0], 7);
    piped_free(&p);
}
END_TEST

static hbp_status order_once(hbp_context *context, void *user)
{
    piped *p = user;
    int32_t order[MOST_M] = {-1};
    hbp_status status = hbp_order_micro_batches(context, p->layers, p->cuts, &p->options, order, NULL, NULL);
    ck_assert((status >= 0) == (order[0] >= 0));
    return status;
}

/* Two stages of vision layers and two of language layers, whose scales go against each other. */
static void make_halves(hbp_context *context, piped *p, int32_t micro_batches)
{
    hbp_layer_columns columns = {.struct_size = sizeof columns};
    columns.count = 4;
    columns.forward_ns = (int64_t[]){1000, 1000, 1000, 1000};
    columns.type = (int32_t[]){HBP_LAYER_VISION, HBP_LAYER_VISION, HBP_LAYER_LANGUAGE, HBP_LAYER_LANGUAGE};
    *p = (piped){.cuts = {0, 1, 2, 3, 4}};
    OK(context, hbp_layers_create(context, &columns, &p->layers));
    piped_options(p, 4, 1, micro_batches);
    hbp__rng rng = hbp__rng_make(6, 0, 0);
    for (int32_t m = 0; m < micro_batches; m++) {
        p->vision[m] = draw_real(&rng, 0, 2);
        p->token[m] = draw_real(&rng, 0, 2);
    }
    p->options.vision_scale = p->vision;
    p->options.token_scale = p->token;
}

START_TEST_IN_CONTEXT(nothing_leaks_when_memory_is_short_or_it_is_cancelled)
{
    hbp__rng rng = hbp__rng_make(5, 0, 0);
    piped p;
    piped_random(context, &rng, &p, 4, 1, 9, PIPED_ALL);
    failing_sweep(order_once, &p);
    p.options.micro_batches = 6;
    failing_sweep(order_once, &p);
    piped_free(&p);
    make_halves(context, &p, 12);
    ck_assert_int_gt(cancel_sweep(order_once, &p), 2);
    piped_free(&p);
}
END_TEST

TEST_MAIN("order", few_micro_batches_are_ordered_best, eight_are_nearly_always_ordered_best,
          many_are_never_ordered_worse, micro_batches_alike_in_part_are_told_apart,
          no_swap_or_shift_is_faster, an_order_by_hand, equal_micro_batches_stay_as_they_are,
          bad_input_has_its_message, nothing_leaks_when_memory_is_short_or_it_is_cancelled)

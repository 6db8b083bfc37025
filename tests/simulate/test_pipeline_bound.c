/* The bound against the best of all orders, and where it is known to be met. */
#include "simulate/pipeline.h"

#include "failing.h"
#include "simulate/pipelines.h"

/* Next permutation in lexicographic order; 0 at the last. */
static int step_order(int32_t *order, int32_t count)
{
    int32_t i = count - 2, j = count - 1;
    while (i >= 0 && order[i] > order[i + 1])
        i--;
    if (i < 0)
        return 0;
    while (order[j] < order[i])
        j--;
    int32_t t = order[i];
    order[i] = order[j];
    order[j] = t;
    for (int32_t a = i + 1, b = count - 1; a < b; a++, b--) {
        t = order[a];
        order[a] = order[b];
        order[b] = t;
    }
    return 1;
}

/* Over all orders of the first M columns. */
static int64_t least_time(hbp__schedule *schedule, const hbp__stage_times *times)
{
    int32_t order[8];
    int64_t least = INT64_MAX;
    for (int32_t i = 0; i < schedule->micro_batches; i++)
        order[i] = i;
    do {
        int64_t ns = hbp__pipeline_time(schedule, times, order, NULL, NULL);
        least = ns < least ? ns : least;
    } while (step_order(order, schedule->micro_batches));
    return least;
}

START_TEST(no_order_beats_the_bound)
{
    hbp_context *context = test_context();
    hbp__rng rng = hbp__rng_make(3, 0, 0);
    double sum = 0;
    int counted = 0, met = 0;
    for (int trial = 0; trial < 2000; trial++) {
        int32_t stages, virtual_stages, m;
        do
            draw_shape(&rng, 5, 3, 6, &stages, &virtual_stages, &m);
        while (m > 6);
        piped p;
        piped_random(context, &rng, &p, stages, virtual_stages, m, (int)hbp__rng_below(&rng, PIPED_ALL + 1));
        hbp__stage_times times;
        hbp__schedule schedule;
        OK(context, hbp__stage_times_open(context, p.layers, p.cuts, &p.options, &times));
        OK(context, hbp__schedule_open(context, stages, virtual_stages, m, &schedule));
        int64_t least = least_time(&schedule, &times), bound = -1;
        OK(context, hbp__pipeline_bound(context, &schedule, &times, NULL, &bound));
        ck_assert_msg(bound >= 0 && bound <= least, "trial %d: S %d V %d M %d: bound %lld, least %lld", trial,
                      (int)stages, (int)virtual_stages, (int)m, (long long)bound, (long long)least);
        if (m == 1 || stages == 1)
            ck_assert_int_eq(bound, least);
        /* The same micro-batches picked out of more. */
        hbp__stage_times more;
        hbp_pipeline_options twice = p.options;
        int32_t column[6];
        for (int32_t i = 0; i < m; i++) {
            column[i] = 2 * m - 1 - i;
            p.token[column[i]] = p.token[i];
            p.vision[column[i]] = p.vision[i];
            p.token_time[column[i]] = p.token_time[i];
            p.vision_time[column[i]] = p.vision_time[i];
        }
        twice.micro_batches = 2 * m;
        OK(context, hbp__stage_times_open(context, p.layers, p.cuts, &twice, &more));
        int64_t again = -1;
        OK(context, hbp__pipeline_bound(context, &schedule, &more, column, &again));
        ck_assert_int_eq(again, bound);
        hbp__stage_times_close(&more);
        if (stages > 1 && m > 1 && least > 0) {
            sum += (double)bound / (double)least;
            counted++;
            met += bound == least;
        }
        hbp__schedule_close(&schedule);
        hbp__stage_times_close(&times);
        piped_free(&p);
    }
    ck_assert_msg(sum / counted > 0.9 && met > counted / 10, "mean of bound / least %.4f, met %d of %d",
                  sum / counted, met, counted);
    hbp_context_free(context);
}
END_TEST

START_TEST(equal_micro_batches_on_equal_stages_meet_it)
{
    hbp_context *context = test_context();
    for (int32_t stages = 1; stages <= 6; stages++)
        for (int32_t m = 1; m <= 20; m++) {
            int64_t forward[6] = {3, 3, 3, 3, 3, 3}, backward[6] = {7, 7, 7, 7, 7, 7}, bound;
            piped p;
            piped_plain(context, &p, stages, 1, m, forward, backward);
            hbp__stage_times times;
            hbp__schedule schedule;
            OK(context, hbp__stage_times_open(context, p.layers, p.cuts, &p.options, &times));
            OK(context, hbp__schedule_open(context, stages, 1, m, &schedule));
            OK(context, hbp__pipeline_bound(context, &schedule, &times, NULL, &bound));
            ck_assert_int_eq(bound, (m + stages - 1) * 10);
            hbp__schedule_close(&schedule);
            hbp__stage_times_close(&times);
            piped_free(&p);
        }
    hbp_context_free(context);
}
END_TEST

/* Two stages, two micro-batches of scales 1 and 2; stage times 10 + 20 and 1 + 2. Stage 0 works 90 and waits
 * for stage 1 at the turn: behind its last forward the backward of the other, at most 20 x 2, covers the 3 x
 * m of the last one's way back. So no more than 90 is sure; stage 1 works 9 and waits 10 + 20 x 2 or more. */
START_TEST(a_bound_by_hand)
{
    hbp_context *context = test_context();
    piped p;
    piped_plain(context, &p, 2, 1, 2, (int64_t[]){10, 1}, (int64_t[]){20, 2});
    double scale[] = {1, 2};
    p.options.token_scale = scale;
    hbp__stage_times times;
    hbp__schedule schedule;
    OK(context, hbp__stage_times_open(context, p.layers, p.cuts, &p.options, &times));
    OK(context, hbp__schedule_open(context, 2, 1, 2, &schedule));
    int64_t bound;
    OK(context, hbp__pipeline_bound(context, &schedule, &times, NULL, &bound));
    ck_assert_int_eq(bound, 90);
    ck_assert_int_eq(least_time(&schedule, &times), 90);
    hbp__schedule_close(&schedule);
    hbp__stage_times_close(&times);
    piped_free(&p);
    hbp_context_free(context);
}
END_TEST

START_TEST(the_bound_saturates)
{
    hbp_context *context = test_context();
    int64_t huge[] = {INT64_C(1) << 60, INT64_C(1) << 60, INT64_C(1) << 60}, bound;
    piped p;
    piped_plain(context, &p, 3, 1, 9, huge, huge);
    hbp__stage_times times;
    hbp__schedule schedule;
    OK(context, hbp__stage_times_open(context, p.layers, p.cuts, &p.options, &times));
    OK(context, hbp__schedule_open(context, 3, 1, 9, &schedule));
    OK(context, hbp__pipeline_bound(context, &schedule, &times, NULL, &bound));
    ck_assert_int_eq(bound, INT64_MAX);
    hbp__schedule_close(&schedule);
    hbp__stage_times_close(&times);
    piped_free(&p);
    hbp_context_free(context);
}
END_TEST

static hbp_status bound_once(hbp_context *context, void *user)
{
    piped *p = user;
    hbp__stage_times times;
    hbp__schedule schedule;
    int64_t bound = 77;
    HBP__TRY(hbp__stage_times_open(context, p->layers, p->cuts, &p->options, &times));
    hbp_status status = hbp__schedule_open(context, 3, 1, 5, &schedule);
    if (status >= 0) {
        status = hbp__pipeline_bound(context, &schedule, &times, NULL, &bound);
        ck_assert((status >= 0) == (bound != 77));
        hbp__schedule_close(&schedule);
    }
    hbp__stage_times_close(&times);
    return status;
}

START_TEST(nothing_leaks_when_memory_is_short)
{
    hbp_context *context = test_context();
    hbp__rng rng = hbp__rng_make(4, 0, 0);
    piped p;
    piped_random(context, &rng, &p, 3, 1, 5, PIPED_ALL);
    failing_sweep(bound_once, &p);
    piped_free(&p);
    hbp_context_free(context);
}
END_TEST

TEST_MAIN("pipeline_bound", no_order_beats_the_bound, equal_micro_batches_on_equal_stages_meet_it,
          a_bound_by_hand, the_bound_saturates, nothing_leaks_when_memory_is_short)

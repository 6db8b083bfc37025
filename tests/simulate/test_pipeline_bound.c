/* The bound against the best of all orders, and where it is known to be met. */
#include "simulate/pipeline/pipeline.h"

#include "failing.h"
#include "keep.h"
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

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* What an operation keeps its stage busy for. */
static int64_t busy_ns(const hbp__stage_times *t, int32_t direction, int64_t chunk, int64_t m)
{
    int64_t all = t->micro_batches, cell = chunk * all + m;
    if (direction == HBP_FORWARD)
        return t->forward[cell] + (chunk < t->chunks - 1 ? t->sending[cell] : 0);
    return t->backward[cell] + (chunk ? t->sending[cell - all] : 0);
}

/* The most that m and the others can keep the stage busy with the forwards ahead of its first backward, or
 * the backwards behind its last forward: operations are counted one by one, the largest found by looking. */
static int64_t most_busy(const hbp__schedule *schedule, const hbp__stage_times *t, int32_t stage,
                         int32_t direction, int64_t m)
{
    int64_t each = 2 * (int64_t)t->micro_batches * (t->chunks / t->stages), sum = 0;
    const hbp__operation *slot = schedule->slot + stage * each;
    for (int32_t k = stage; k < t->chunks; k += t->stages) {
        int64_t operations = 0, step = direction == HBP_FORWARD ? 1 : -1;
        for (int64_t i = step > 0 ? 0 : each - 1; slot[i].direction == direction; i += step)
            operations += slot[i].chunk == k;
        int used[MOST_M] = {0};
        for (int64_t n = 0; n < operations; n++) {
            int64_t pick = n ? -1 : m;
            for (int64_t other = 0; n && other < t->micro_batches; other++)
                if (!used[other] &&
                    (pick < 0 || busy_ns(t, direction, k, other) > busy_ns(t, direction, k, pick)))
                    pick = other;
            used[pick] = 1;
            sum += busy_ns(t, direction, k, pick);
        }
    }
    return sum;
}

/* Time of micro-batch m alone: forwards on chunks [a, b), or backwards, and the transfers behind each. */
static int64_t way(const hbp__stage_times *t, const int64_t *column, int64_t a, int64_t b, int64_t m)
{
    int64_t sum = 0;
    for (int64_t k = a; k < b; k++)
        sum += column[k * t->micro_batches + m] + t->transfer[k * t->micro_batches + m];
    return sum;
}

/* The bound as docs/explanation/pipeline.md defines it. */
static int64_t naive_bound(const hbp__schedule *schedule, const hbp__stage_times *t)
{
    int64_t all = t->micro_batches, last = t->chunks - 1, bound = 0, each = 2 * all * (t->chunks / t->stages);
    for (int64_t m = 0; m < all; m++)
        bound = larger(bound, way(t, t->forward, 0, last, m) + way(t, t->backward, 0, last, m) +
                                  t->forward[last * all + m] + t->backward[last * all + m]);
    for (int32_t s = 0; s < t->stages && all > 1; s++) {
        const hbp__operation *slot = schedule->slot + s * each;
        int64_t chunk = t->chunks - t->stages + s, first = 0, end = each - 1, work = 0, least = INT64_MAX,
                least_out = INT64_MAX;
        for (; slot[first].direction == HBP_FORWARD; first++)
            ;
        for (; slot[end].direction == HBP_BACKWARD; end--)
            ;
        for (int64_t i = 0; i < each; i++) /* with the order as it comes */
            work += busy_ns(t, slot[i].direction, slot[i].chunk, slot[i].place);
        for (int64_t m = 0; m < all; m++)
            for (int64_t n = 0; n < all; n++) {
                if (m == n)
                    continue;
                int64_t cell = chunk * all, h = way(t, t->forward, 0, s, m),
                        out = way(t, t->backward, 0, s, n);
                out -= s ? t->sending[(s - 1) * all + n] : 0;
                int64_t turn[2], of[2] = {m, n};
                for (int i = 0; i < 2; i++) {
                    turn[i] = 0;
                    for (int64_t k = chunk; k < last; k++)
                        turn[i] += 2 * t->transfer[k * all + of[i]] + t->forward[(k + 1) * all + of[i]] +
                                   t->backward[(k + 1) * all + of[i]];
                }
                int64_t p = way(t, t->forward, 0, chunk, m) + t->forward[cell + m] + turn[0];
                int64_t q = turn[1] + t->backward[cell + n] + way(t, t->backward, 0, chunk, n);
                int64_t a = larger(h, p - most_busy(schedule, t, s, HBP_FORWARD, m));
                q -= most_busy(schedule, t, s, HBP_BACKWARD, n) + (chunk < last ? t->sending[cell + n] : 0);
                int64_t z = larger(out, q), here = first < end ? a + z : h + z;
                least = here < least ? here : least;
                least_out = a + out < least_out ? a + out : least_out;
            }
        if (first > end) /* the two waits may be one */
            least = larger(least, least_out);
        bound = larger(bound, work + least);
    }
    return bound;
}

START_TEST_IN_CONTEXT(no_order_beats_the_bound)
{
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
        ck_assert_int_eq(bound, naive_bound(&schedule, &times));
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
}
END_TEST

START_TEST_IN_CONTEXT(equal_micro_batches_on_equal_stages_meet_it)
{
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
}
END_TEST

/* Two stages, two micro-batches of scales 1 and 2; stage times 10 + 20 and 1 + 2. Stage 0 works 90 and waits
 * for stage 1 at the turn: behind its last forward the backward of the other, at most 20 x 2, covers the 3 x
 * m of the last one's way back. So no more than 90 is sure; stage 1 works 9 and waits 10 + 20 x 2 or more. */
START_TEST_IN_CONTEXT(a_bound_by_hand)
{
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
}
END_TEST

START_TEST_IN_CONTEXT(the_bound_saturates)
{
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

START_TEST_IN_CONTEXT(nothing_leaks_when_memory_is_short)
{
    hbp__rng rng = hbp__rng_make(4, 0, 0);
    piped p;
    piped_random(context, &rng, &p, 3, 1, 5, PIPED_ALL);
    failing_sweep(bound_once, &p);
    piped_free(&p);
}
END_TEST

TEST_MAIN("pipeline_bound", no_order_beats_the_bound, equal_micro_batches_on_equal_stages_meet_it,
          a_bound_by_hand, the_bound_saturates, nothing_leaks_when_memory_is_short)

/* The simulator against tables written by hand, an oracle that knows no line of operations, and closed forms
 * where micro-batches and stages are equal. */
#include "simulate/pipeline/pipeline.h"

#include "keep.h"
#include "simulate/pipelines.h"

/* Starts and ends of every operation of a stage, found by raising start times until nothing changes. */
typedef struct oracle {
    int64_t total;
    int64_t busy[MOST_STAGES];
    int64_t peak[MOST_STAGES];
} oracle;

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Where a stage's operation of this kind stands. */
static int64_t find(const hbp__operation *slot, int64_t each, int32_t chunk, int32_t place, int32_t direction)
{
    for (int64_t i = 0; i < each; i++)
        if (slot[i].chunk == chunk && slot[i].place == place && slot[i].direction == direction)
            return i;
    ck_abort_msg("no such operation");
    return -1;
}

static void relax(const hbp__schedule *schedule, const hbp__stage_times *t, const int32_t *order, oracle *o)
{
    int64_t each = 2 * (int64_t)schedule->micro_batches * (schedule->chunks / schedule->stages);
    int64_t all = each * schedule->stages, columns = t->micro_batches;
    int64_t *start = calloc((size_t)all, sizeof *start), *input = malloc((size_t)all * sizeof *input);
    int64_t *lasts = malloc((size_t)all * sizeof *lasts), *way = calloc((size_t)all, sizeof *way);
    int64_t *sends = calloc((size_t)all, sizeof *sends);
    for (int64_t i = 0; i < all; i++) {
        const hbp__operation *a = &schedule->slot[i];
        int32_t from = a->direction == HBP_FORWARD ? a->chunk - 1 : a->chunk + 1, direction = a->direction;
        int64_t m = order ? order[a->place] : a->place;
        lasts[i] = a->direction == HBP_FORWARD ? t->forward[a->chunk * columns + m]
                                               : t->backward[a->chunk * columns + m];
        if (a->direction == HBP_FORWARD && a->chunk < schedule->chunks - 1)
            sends[i] = t->sending[a->chunk * columns + m];
        if (a->direction == HBP_BACKWARD && a->chunk > 0)
            sends[i] = t->sending[(a->chunk - 1) * columns + m];
        input[i] = -1;
        if (a->direction == HBP_BACKWARD && a->chunk == schedule->chunks - 1) {
            from = a->chunk;
            direction = HBP_FORWARD;
        } else if (from >= 0) {
            way[i] = t->transfer[(from < a->chunk ? from : a->chunk) * columns + m];
        }
        if (from >= 0) {
            int64_t stage = from % schedule->stages;
            input[i] = stage * each + find(schedule->slot + stage * each, each, from, a->place, direction);
        }
    }
    for (int changed = 1; changed;) {
        changed = 0;
        for (int64_t i = 0; i < all; i++) {
            int64_t at = i % each ? start[i - 1] + lasts[i - 1] + sends[i - 1] : 0;
            if (input[i] >= 0)
                at = larger(at, start[input[i]] + lasts[input[i]] + way[i]);
            changed |= at > start[i];
            start[i] = larger(at, start[i]);
        }
    }
    *o = (oracle){0};
    for (int64_t s = 0; s < schedule->stages; s++) {
        int64_t held = 0, working;
        for (int64_t k = s; k < schedule->chunks; k += schedule->stages)
            held += t->state[k];
        for (int64_t i = s * each; i < (s + 1) * each; i++) {
            const hbp__operation *a = &schedule->slot[i];
            int64_t cell = a->chunk * columns + (order ? order[a->place] : a->place);
            o->total = larger(o->total, start[i] + lasts[i] + sends[i]);
            o->busy[s] += lasts[i] + sends[i];
            held += a->direction == HBP_FORWARD ? t->kept[cell] : 0;
            working = a->direction == HBP_BACKWARD ? t->working[cell] : 0;
            o->peak[s] = larger(o->peak[s], held + working);
            held -= a->direction == HBP_BACKWARD ? t->kept[cell] : 0;
        }
    }
    free(start);
    free(input);
    free(lasts);
    free(way);
    free(sends);
}

START_TEST_IN_CONTEXT(random_pipelines_take_what_the_oracle_says)
{
    hbp__rng rng = hbp__rng_make(1, 0, 0);
    for (int trial = 0; trial < 1500; trial++) {
        int32_t stages, virtual_stages, m, order[MOST_M];
        draw_shape(&rng, 5, 3, 3, &stages, &virtual_stages, &m);
        piped p;
        piped_random(context, &rng, &p, stages, virtual_stages, m, (int)hbp__rng_below(&rng, PIPED_ALL + 1));
        hbp__stage_times times;
        hbp__schedule schedule;
        OK(context, hbp__stage_times_open(context, p.layers, p.cuts, &p.options, &times));
        OK(context, hbp__schedule_open(context, stages, virtual_stages, m, &schedule));
        draw_order(&rng, m, order);
        const int32_t *given = hbp__rng_below(&rng, 4) ? order : NULL;
        oracle o;
        relax(&schedule, &times, given, &o);
        int64_t busy[MOST_STAGES], peak[MOST_STAGES];
        ck_assert_int_eq(hbp__pipeline_time(&schedule, &times, given, busy, peak), o.total);
        ck_assert_int_eq(hbp__pipeline_time(&schedule, &times, given, NULL, NULL), o.total);
        for (int32_t s = 0; s < stages; s++) {
            ck_assert_int_eq(busy[s], o.busy[s]);
            ck_assert_int_eq(peak[s], o.peak[s]);
        }
        hbp__schedule_close(&schedule);
        hbp__stage_times_close(&times);
        piped_free(&p);
    }
}
END_TEST

/* Total of S stages, a chunk each. */
static int64_t total_of(int32_t stages, int32_t virtual_stages, int32_t m, const int64_t *forward,
                        const int64_t *backward, int64_t *busy)
{
    hbp_context *context = test_context();
    piped p;
    piped_plain(context, &p, stages, virtual_stages, m, forward, backward);
    hbp__stage_times times;
    hbp__schedule schedule;
    OK(context, hbp__stage_times_open(context, p.layers, p.cuts, &p.options, &times));
    OK(context, hbp__schedule_open(context, stages, virtual_stages, m, &schedule));
    int64_t total = hbp__pipeline_time(&schedule, &times, NULL, busy, NULL);
    hbp__schedule_close(&schedule);
    hbp__stage_times_close(&times);
    piped_free(&p);
    hbp_context_free(context);
    return total;
}

START_TEST(equal_stages_take_what_the_closed_forms_say)
{
    for (int32_t stages = 1; stages <= 8; stages++)
        for (int32_t virtual_stages = 1; virtual_stages <= 4; virtual_stages++)
            for (int32_t m = stages; m <= 5 * stages; m += virtual_stages > 1 ? stages : 1) {
                int64_t forward[32], backward[32], busy[8];
                for (int i = 0; i < 32; i++) {
                    forward[i] = 5;
                    backward[i] = 11;
                }
                int64_t total = total_of(stages, virtual_stages, m, forward, backward, busy);
                /* (M + (S - 1) / V) w with w = 16 V, and a bubble of (S - 1) / (M V + S - 1). */
                ck_assert_int_eq(total, ((int64_t)m * virtual_stages + stages - 1) * 16);
                for (int32_t s = 0; s < stages; s++)
                    ck_assert_int_eq(busy[s], (int64_t)m * virtual_stages * 16);
            }
    /* Fewer micro-batches than stages, V = 1. */
    for (int32_t m = 1; m < 6; m++)
        ck_assert_int_eq(
            total_of(6, 1, m, (int64_t[]){5, 5, 5, 5, 5, 5}, (int64_t[]){11, 11, 11, 11, 11, 11}, NULL),
            (m + 5) * 16);
}
END_TEST

/* A pipeline of equal micro-batches, V = 1: C_s, transfers behind each stage, what of them holds up. */
typedef struct uniform {
    int32_t stages, m;
    int64_t forward[8], backward[8], transfer[8], sending[8];
} uniform;

static int64_t uniform_total(hbp_context *context, const uniform *u)
{
    int64_t cells[4][8 * 32];
    hbp__stage_times t = {.stages = u->stages,
                          .chunks = u->stages,
                          .micro_batches = u->m,
                          .forward = cells[0],
                          .backward = cells[1],
                          .transfer = cells[2],
                          .sending = cells[3]};
    for (int32_t i = 0; i < u->stages * u->m; i++) {
        cells[0][i] = u->forward[i / u->m];
        cells[1][i] = u->backward[i / u->m];
        cells[2][i] = u->transfer[i / u->m];
        cells[3][i] = u->sending[i / u->m];
    }
    hbp__schedule schedule;
    OK(context, hbp__schedule_open(context, u->stages, 1, u->m, &schedule));
    int64_t total = hbp__pipeline_time(&schedule, &t, NULL, NULL, NULL);
    hbp__schedule_close(&schedule);
    return total;
}

/* (M - 1) max W + sum C + X. */
static int64_t formula(const uniform *u)
{
    int64_t most = 0, sum = 0;
    for (int32_t s = 0; s < u->stages; s++) {
        int64_t own = u->forward[s] + u->backward[s];
        sum += own + (s < u->stages - 1 ? 2 * u->transfer[s] : 0);
        own += (s < u->stages - 1 ? u->sending[s] : 0) + (s ? u->sending[s - 1] : 0);
        most = larger(most, own);
    }
    return (u->m - 1) * most + sum;
}

/* max over s of (M + S - 2 - s) B + the way of a micro-batch through stages 0 .. s and back, with B the most,
 * over stages r .. s, of their work and the transfers between them, there and back, per stage. */
static double sure_formula(const uniform *u)
{
    double most = 0, total = 0, way = 0;
    for (int32_t r = 0; r < u->stages; r++) {
        double sum = r ? (double)u->sending[r - 1] : 0;
        for (int32_t s = r; s < u->stages; s++) {
            sum += (double)(u->forward[s] + u->backward[s] + (s > r ? 2 * u->transfer[s - 1] : 0));
            double here = (sum + (s < u->stages - 1 ? (double)u->sending[s] : 0)) / (s - r + 1);
            most = here > most ? here : most;
        }
    }
    for (int32_t s = 0; s < u->stages; s++) {
        way += (double)(u->forward[s] + u->backward[s] + (s ? 2 * u->transfer[s - 1] : 0));
        double here = (u->m + u->stages - 2 - s) * most + way;
        here += s < u->stages - 1 ? (double)u->sending[s] : 0;
        total = here > total ? here : total;
    }
    return total;
}

/* One ratio of backward to forward on all stages (forwards are multiples of 6, so that it is exact) and
 * free transfers: the formula of hbp_layer_partition_summary is an upper bound. Otherwise it need not be. */
START_TEST_IN_CONTEXT(the_formula_of_a_partition_and_the_simulation)
{
    hbp__rng rng = hbp__rng_make(2, 0, 0);
    int met = 0, above = 0;
    for (int trial = 0; trial < 20000; trial++) {
        uniform u = {.stages = 1 + (int32_t)hbp__rng_below(&rng, 8),
                     .m = 1 + (int32_t)hbp__rng_below(&rng, 30)};
        int64_t ratio = hbp__rng_below(&rng, 19); /* sixths */
        for (int32_t s = 0; s < u.stages; s++) {
            u.forward[s] = hbp__rng_below(&rng, 4) ? 6 * (int64_t)hbp__rng_below(&rng, 20) : 0;
            u.backward[s] = u.forward[s] / 6 * ratio;
        }
        int64_t total = uniform_total(context, &u);
        ck_assert_int_le(total, formula(&u));
        met += total == formula(&u);
        ck_assert((double)total <= sure_formula(&u) * (1 + 1e-9));
        for (int32_t s = 0; s < u.stages; s++) {
            u.backward[s] = hbp__rng_below(&rng, 40);
            u.transfer[s] = hbp__rng_below(&rng, 20);
            u.sending[s] = hbp__rng_below(&rng, 3) ? hbp__rng_below(&rng, (uint64_t)u.transfer[s] + 1) : 0;
        }
        total = uniform_total(context, &u);
        ck_assert((double)total <= sure_formula(&u) * (1 + 1e-9));
        above += total > formula(&u);
    }
    ck_assert_int_gt(met, 2000);
    ck_assert_int_gt(above, 100);
    /* All forwards wait for stage 0, all backwards for stage 1, which waits for more forwards than it needs.
     */
    uniform worst = {.stages = 4, .m = 9, .forward = {10}, .backward = {0, 10}};
    ck_assert_int_eq(uniform_total(context, &worst), (9 + 3) * 10);
    ck_assert_int_eq(formula(&worst), (9 + 1) * 10);
}
END_TEST

START_TEST(times_saturate)
{
    int64_t huge[] = {INT64_C(1) << 61, INT64_C(1) << 61};
    ck_assert_int_eq(total_of(2, 1, 8, huge, huge, NULL), INT64_MAX);
    int64_t busy[2];
    ck_assert_int_eq(total_of(2, 1, 2, huge, (int64_t[]){1, 1}, busy), 3 * huge[0] + 3);
    ck_assert_int_eq(busy[0], 2 * huge[0] + 2);
}
END_TEST

TEST_MAIN("pipeline", random_pipelines_take_what_the_oracle_says, equal_stages_take_what_the_closed_forms_say,
          the_formula_of_a_partition_and_the_simulation, times_saturate)

/* Stages and recomputation against all cuts there are. */
#include "base/checked.h"
#include "base/methods.h"
#include "vlm_runs.h"

/* What hbp__vlm_stages_open promises to work on, from its definition: bytes of the M largest packs of the
 * epoch, in vision units and in tokens apart; times of replica 0 in the full step of median predicted time.
 */
typedef struct oracle {
    const small *s;
    scales usual;
    double vision_bytes[MOST_STEP], token_bytes[MOST_STEP];
    int64_t limit[8];
    hbp__live live;
    hbp_pipeline_options options;
} oracle;

static int descending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x < y) - (x > y);
}

static void take_largest(const small *s, int vision, int32_t count, double *out)
{
    int64_t packs = s->data->packs;
    double *all = malloc((size_t)packs * sizeof *all);
    ck_assert_ptr_nonnull(all);
    for (int64_t p = 0; p < packs; p++) {
        hbp__vlm_size size = hbp__vlm_row_size(&s->run, s->data, p);
        all[p] = vision ? size.vision / s->reference.mean.vision : size.tokens / s->reference.mean.tokens;
    }
    qsort(all, (size_t)packs, sizeof *all, descending);
    for (int32_t m = 0; m < count; m++)
        out[m] = m < packs ? all[m] : 0;
    free(all);
}

/* The step at place count / 2 of the full ones by predicted time, the earlier first of equals. */
static int64_t usual_step(const hbp_plan *data, int64_t most)
{
    int64_t full = 0;
    for (int64_t s = 0; s < data->steps; s++)
        full += data->step_offsets[s + 1] - data->step_offsets[s] == most;
    for (int64_t s = 0; s < data->steps; s++) {
        int64_t before = 0;
        if (data->step_offsets[s + 1] - data->step_offsets[s] != most)
            continue;
        for (int64_t t = 0; t < data->steps; t++)
            before +=
                data->step_offsets[t + 1] - data->step_offsets[t] == most &&
                (data->step_ns[t] < data->step_ns[s] || (data->step_ns[t] == data->step_ns[s] && t < s));
        if (before == full / 2)
            return s;
    }
    ck_abort();
    return -1;
}

static void oracle_open(const small *s, oracle *o)
{
    int64_t most = 0;
    *o = (oracle){.s = s};
    for (int64_t i = 0; i < s->data->steps; i++)
        most = hbp__max_i64(most, s->data->step_offsets[i + 1] - s->data->step_offsets[i]);
    read_scales(&s->run, &s->reference, s->data, usual_step(s->data, most), 0, &o->usual);
    take_largest(s, 1, (int32_t)most, o->vision_bytes);
    take_largest(s, 0, (int32_t)most, o->token_bytes);
    o->options = o->usual.options;
    o->options.vision_time_scale = o->usual.vision;
    o->options.vision_scale = o->vision_bytes;
    o->options.token_scale = o->token_bytes;
    for (int32_t i = 0; i < s->run.options.pipeline_stages; i++)
        o->limit[i] = s->run.limit_bytes;
    o->options.limit_bytes = o->limit;
    OK(s->f.context, hbp__live_open(s->f.context, &o->options, &o->live));
}

static int64_t oracle_run(const oracle *o, const int32_t *cuts, const int32_t *choices)
{
    hbp_context *context = o->s->f.context;
    hbp_pipeline_options options = o->options;
    hbp_pipeline_run *run = NULL;
    hbp_pipeline_summary summary = {.struct_size = sizeof summary};
    options.recompute = choices;
    OK(context, hbp_simulate_pipeline(context, o->s->layers, cuts, &options, NULL, &run));
    OK(context, hbp_pipeline_run_get_summary(context, run, &summary));
    hbp_pipeline_run_free(run);
    return summary.total_ns;
}

/* The least time of all cuts, each with the recomputation that hbp_choose_recompute gives it; INT64_MAX when
 * none fits. */
static int64_t oracle_best(const oracle *o)
{
    const hbp__vlm_run *run = &o->s->run;
    int32_t cuts[MOST_MEASURED + 1], choices[MOST_MEASURED], count = o->s->layers->count;
    int32_t chunks = run->options.pipeline_stages * run->options.virtual_stages;
    int64_t best = INT64_MAX;
    hbp_recompute_options options = {.struct_size = sizeof options};
    options.method = run->options.recompute_method;
    options.selective = run->options.selective;
    first_cuts(count, chunks, cuts);
    do {
        hbp_status status =
            hbp_choose_recompute(run->context, o->s->layers, cuts, &o->options, &options, choices, NULL);
        ck_assert_msg(status >= 0 || status == HBP_E_INFEASIBLE, "%s", hbp_context_message(run->context));
        if (status >= 0)
            best = hbp__min_i64(best, oracle_run(o, cuts, choices));
    } while (next_cuts(count, chunks, cuts));
    return best;
}

/* What no recomputation does without, and what none needs more than, on the stage that needs most under cuts
 * in the middle. */
static int64_t need_of(const oracle *o, int32_t choice)
{
    int32_t cuts[MOST_MEASURED + 1], choices[MOST_MEASURED], count = o->s->layers->count;
    int32_t stages = o->options.stages, chunks = stages * o->s->run.options.virtual_stages;
    int64_t most = 0;
    for (int32_t k = 0; k <= chunks; k++)
        cuts[k] = count * k / chunks;
    for (int32_t i = 0; i < count; i++)
        choices[i] = choice;
    for (int32_t i = 0; i < stages; i++)
        most =
            hbp__max_i64(most, hbp__stage_peak_bytes(o->s->layers, cuts, &o->options, &o->live, choices, i));
    return most;
}

/* The answer is one: cuts in order, choices that exist, bytes and time as they are, within the limit. */
static void check_answer(const oracle *o, const hbp__vlm_stages *stages)
{
    ck_assert_int_eq(stages->cuts[0], 0);
    ck_assert_int_eq(stages->cuts[stages->chunks], o->s->layers->count);
    int32_t whole = 0, part = 0;
    for (int32_t i = 0; i < stages->layers; i++) {
        whole += stages->choices[i] == HBP_RECOMPUTE_LAYER;
        part += stages->choices[i] == HBP_RECOMPUTE_ATTENTION || stages->choices[i] == HBP_RECOMPUTE_MLP;
    }
    ck_assert_int_eq(stages->report.recomputed, whole);
    ck_assert_int_eq(stages->report.selective, part);
    ck_assert_int_eq(stages->ns, oracle_run(o, stages->cuts, stages->choices));
    for (int32_t i = 0; i < o->options.stages; i++) {
        ck_assert_int_eq(stages->bytes[i], hbp__stage_peak_bytes(o->s->layers, stages->cuts, &o->options,
                                                                 &o->live, stages->choices, i));
        ck_assert_int_le(stages->bytes[i], o->s->run.limit_bytes);
    }
}

#define MANY (TEST_SANITIZED ? 4 : 8)

/* What hundreds of instances came to. */
typedef struct tally {
    int cases, feasible, best, missed;
    double worst;
} tally;

static void compare(hbp__rng *rng, int32_t layers, int32_t stages, int32_t virtual_stages, int32_t memory,
                    tally *t)
{
    small s = small_setup(rng, layers, stages, virtual_stages, 1 + (int32_t)hbp__rng_below(rng, 2),
                          hbp__rng_below(rng, 2) ? HBP__VLM_DATA_PACKED : HBP__VLM_DATA_RANDOM);
    s.run.options.recompute_method = hbp__recompute_name(memory);
    s.run.link_bytes_per_s = hbp__rng_below(rng, 2) ? 1e9 : 0;
    oracle o;
    oracle_open(&s, &o);
    int64_t least = need_of(&o, HBP_RECOMPUTE_LAYER), most = need_of(&o, HBP_RECOMPUTE_NONE);
    s.run.limit_bytes = least * 3 / 4 + (int64_t)hbp__rng_below(rng, (uint64_t)(most - least * 3 / 4) + 1);
    hbp__live_close(&o.live);
    oracle_open(&s, &o);
    int64_t best = oracle_best(&o);
    hbp__vlm_stages found;
    hbp_status status = hbp__vlm_stages_open(&s.run, s.data, &s.reference, &found);
    t->cases++;
    ck_assert_msg(status >= 0 || status == HBP_E_INFEASIBLE, "%s", hbp_context_message(s.f.context));
    t->feasible += best < INT64_MAX;
    if (status >= 0) {
        check_answer(&o, &found);
        ck_assert_int_ge(found.ns, best);
        t->best += found.ns == best;
        double over = (double)found.ns / (double)best;
        t->worst = over > t->worst ? over : t->worst;
    } else {
        ck_assert_ptr_nonnull(strstr(hbp_context_message(s.f.context), "stage"));
        t->missed += best < INT64_MAX;
    }
    hbp__live_close(&o.live);
    small_teardown(&s);
}

/* Of `layers` layers or up to 3 more, on `stages` stages or one more. */
static tally compare_all(uint64_t seed, int32_t layers, int32_t stages, int32_t virtual_stages,
                         int32_t memory, int cases)
{
    hbp__rng rng = hbp__rng_make(seed, 0, 0);
    tally t = {.worst = 1};
    for (int i = 0; i < cases; i++) {
        int32_t more = (int32_t)hbp__rng_below(&rng, 4), one = (int32_t)hbp__rng_below(&rng, 2);
        compare(&rng, layers + more, stages + (virtual_stages > 1 ? 0 : one), virtual_stages, memory, &t);
    }
    return t;
}

START_TEST(of_few_cuts_the_best_of_all)
{
    for (int32_t memory = HBP__RECOMPUTE_OPTIMAL; memory <= HBP__RECOMPUTE_NONE; memory++) {
        tally t = compare_all(1 + (uint64_t)memory, 5, 2, 1, memory, 150);
        ck_assert_int_ge(t.feasible, 20);
        ck_assert_int_lt(t.feasible, t.cases);
        ck_assert_int_eq(t.missed, 0);
        ck_assert_int_eq(t.best, t.feasible);
    }
    tally t = compare_all(6, 9, 4, 1, HBP__RECOMPUTE_OPTIMAL, 60);
    ck_assert_int_eq(t.best, t.feasible);
    t = compare_all(7, 6, 2, 2, HBP__RECOMPUTE_OPTIMAL, 60);
    ck_assert_int_ge(t.feasible, 30);
    ck_assert_int_eq(t.best, t.feasible);
}
END_TEST

/* More partitions than are all judged: 560 to 1365 with chunks of one turn, 792 to 3003 with two. */
START_TEST(of_many_nearly_always_the_best)
{
    tally t = compare_all(8, 16, 4, 1, HBP__RECOMPUTE_OPTIMAL, MANY);
    ck_assert_int_ge(t.feasible, MANY / 2);
    ck_assert_int_le(t.missed * 50, t.feasible);
    ck_assert_int_ge(t.best * 10, t.feasible * 9);
}
END_TEST

START_TEST(of_many_interleaved_too)
{
    tally t = compare_all(9, 13, 3, 2, HBP__RECOMPUTE_OPTIMAL, MANY);
    ck_assert_int_ge(t.feasible, MANY / 2);
    ck_assert_int_le(t.missed * 50, t.feasible);
    ck_assert_int_ge(t.best * 10, t.feasible * 9);
}
END_TEST

static hbp_status open_stages(hbp_context *context, void *user)
{
    small *s = user;
    hbp__vlm_run run = s->run;
    hbp__vlm_stages stages;
    run.context = context;
    return hbp__vlm_stages_open(&run, s->data, &s->reference, &stages);
}

START_TEST(failing_allocations_and_cancel)
{
    hbp__rng rng = hbp__rng_make(4, 0, 0);
    small s = small_setup(&rng, 4, 2, 1, 1, HBP__VLM_DATA_PACKED);
    oracle o;
    oracle_open(&s, &o);
    s.run.limit_bytes = (need_of(&o, HBP_RECOMPUTE_LAYER) + need_of(&o, HBP_RECOMPUTE_NONE)) / 2;
    hbp__live_close(&o.live);
    failing_sweep(open_stages, &s);
    ck_assert_int_gt(cancel_sweep(open_stages, &s), 1);
    small_teardown(&s);
}
END_TEST

TEST_MAIN("stages", of_few_cuts_the_best_of_all, of_many_nearly_always_the_best, of_many_interleaved_too,
          failing_allocations_and_cancel)

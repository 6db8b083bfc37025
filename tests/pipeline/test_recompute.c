#include "base/methods.h"
#include "keep.h"
#include "recomputed.h"

/* Runs the step with these choices: no stage's simulated peak passes its limit. Returns the step's time. */
static int64_t simulate(hbp_context *context, const instance *t)
{
    hbp_pipeline_options pipeline = t->pipeline;
    pipeline.recompute = t->choices;
    hbp_pipeline_run *run = NULL;
    OK(context, hbp_simulate_pipeline(context, t->layers, t->cuts, &pipeline, NULL, &run));
    const int64_t *peak = pipeline_run_view(run).stage_bytes;
    ck_assert_int_eq(pipeline_run_view(run).stages, pipeline.stages);
    for (int32_t s = 0; s < pipeline.stages; s++)
        ck_assert_int_le(peak[s], t->limit[s]);
    hbp_pipeline_summary summary = {.struct_size = sizeof summary};
    OK(context, hbp_pipeline_run_get_summary(context, run, &summary));
    hbp_pipeline_run_free(run);
    return summary.total_ns;
}

/* Larger ones: no mode goes past the memory, and the best is never slower than the published rule, nor that
 * than recomputing all. */
START_TEST_IN_CONTEXT(never_over_memory)
{
    hbp__rng rng = hbp__rng_make(43, 0, 0);
    static instance t;
    int32_t counted[4] = {0}, faster = 0;
    for (int32_t n = 0; n < 1500; n++) {
        draw(context, &t, &rng, 30, n % 3 ? 4 : 0, 1000000000);
        limit(context, &t, &rng);
        int64_t ns[4] = {-1, -1, -1, -1}, step[4] = {0};
        for (int32_t mode = HBP__RECOMPUTE_OPTIMAL; mode <= HBP__RECOMPUTE_NONE; mode++) {
            hbp_status status = choose(context, &t, mode);
            if (status == HBP_E_INFEASIBLE)
                continue;
            ck_assert_msg(status == HBP_OK, "run %d mode %d: %d %s", (int)n, (int)mode, (int)status,
                          hbp_context_message(context));
            check_choice(context, &t);
            step[mode] = simulate(context, &t);
            ns[mode] = t.report.recompute_ns;
            counted[mode]++;
        }
        for (int32_t mode = HBP__RECOMPUTE_OMNIBAL; mode <= HBP__RECOMPUTE_NONE; mode++)
            if (ns[mode] >= 0) {
                ck_assert_int_ge(ns[HBP__RECOMPUTE_OPTIMAL], 0);
                ck_assert_int_le(ns[HBP__RECOMPUTE_OPTIMAL], ns[mode]);
            }
        ck_assert((ns[HBP__RECOMPUTE_OMNIBAL] < 0) == (ns[HBP__RECOMPUTE_ALL] < 0));
        ck_assert_int_le(ns[HBP__RECOMPUTE_OMNIBAL], ns[HBP__RECOMPUTE_ALL]);
        ck_assert_int_le(step[HBP__RECOMPUTE_OMNIBAL],
                         step[HBP__RECOMPUTE_ALL]); /* stage by stage no slower */
        faster += ns[HBP__RECOMPUTE_OPTIMAL] < ns[HBP__RECOMPUTE_OMNIBAL];
        hbp_layers_free(t.layers);
    }
    for (int32_t mode = HBP__RECOMPUTE_OPTIMAL; mode <= HBP__RECOMPUTE_ALL; mode++)
        ck_assert_int_gt(counted[mode], 200);
    ck_assert_int_gt(faster, 200);
}
END_TEST

START_TEST_IN_CONTEXT(modes_by_hand)
{
    static instance t;
    /* Stage 0 needs 20 + 2 * 160 = 340 bare, 20 + 2 * 40 + 40 = 140 with all recomputed; stage 1 180 and 100.
     */
    four(context, &t, 340, 180);
    expect(context, &t, HBP__RECOMPUTE_OPTIMAL, "--------");
    ck_assert_int_eq(t.report.proven, 1);
    ck_assert_int_eq(t.report.saved_ns, 640);
    ck_assert_int_eq(t.report.slack_bytes, 0);
    expect(context, &t, HBP__RECOMPUTE_NONE, "--------");
    ck_assert_int_eq(t.report.proven, 1);
    /* 200 free: floor(200 / 80) - 1 = 1 language layer. 80 free: floor(80 / 40) - 1 = 1. */
    expect(context, &t, HBP__RECOMPUTE_OMNIBAL, "LLL-LLL-");
    ck_assert_int_eq(t.report.proven, 0);
    ck_assert_int_eq(t.report.recompute_ns, 440);
    expect(context, &t, HBP__RECOMPUTE_ALL, "LLLLLLLL");
    ck_assert_int_eq(t.report.recompute_ns, 640);
    ck_assert_int_eq(t.report.recomputed, 8);
    ck_assert_int_eq(t.report.saved_ns, 0);
    hbp_layers_free(t.layers);

    /* 12 short on stage 0: 24 by one MLP, at 12 more while it is recomputed. 20 short on stage 1: two MLPs
     * free 24 less 12, a vision layer 20 less 20; a language layer 40 less 40; vision layer and MLP 32 less
     * 20; both vision layers 40 less 20. */
    four(context, &t, 328, 160);
    expect(context, &t, HBP__RECOMPUTE_OPTIMAL, "m---LL--");
    ck_assert_int_eq(t.report.recompute_ns, 140);
    ck_assert_int_eq(t.report.selective, 1);
    ck_assert_int_eq(t.report.recomputed, 2);
    ck_assert_int_eq(t.report.slack_bytes, 0);
    t.options.selective = -1;
    expect(context, &t, HBP__RECOMPUTE_OPTIMAL, "L---LL--");
    t.options.selective = HBP_SELECT_ATTENTION;
    expect(context, &t, HBP__RECOMPUTE_OPTIMAL, "L---LL--");
    t.options.selective = HBP_SELECT_MLP;
    expect(context, &t, HBP__RECOMPUTE_OPTIMAL, "m---LL--");
    hbp_layers_free(t.layers);

    /* The published rule with more: 4 * 80 = 320 free keep both language layers with one to spare, and
     * floor(160 / 40) - 1 = 3 vision layers, of which there are two. */
    four(context, &t, 140 + 320, 100 + 3 * 40);
    expect(context, &t, HBP__RECOMPUTE_OMNIBAL, "----L---");
    hbp_layers_free(t.layers);

    four(context, &t, 339, 99);
    FAILS(context, HBP_E_INFEASIBLE,
          "stage 0 needs 340 bytes with no layer recomputed and has 339 bytes, 1 byte too few",
          choose(context, &t, HBP__RECOMPUTE_NONE));
    FAILS(context, HBP_E_INFEASIBLE,
          "stage 1 needs 100 bytes with every layer recomputed and has 99 bytes, 1 byte too few",
          choose(context, &t, HBP__RECOMPUTE_ALL));
    FAILS(context, HBP_E_INFEASIBLE,
          "stage 1 needs 100 bytes with every layer recomputed and has 99 bytes, 1 byte too few",
          choose(context, &t, HBP__RECOMPUTE_OMNIBAL));
    FAILS(context, HBP_E_INFEASIBLE,
          "stage 1 needs 100 bytes with as much recomputed as helps and has 99 bytes, 1 byte too few",
          choose(context, &t, HBP__RECOMPUTE_OPTIMAL));
    t.pipeline.limit_bytes = NULL;
    expect(context, &t, HBP__RECOMPUTE_OPTIMAL, "--------");
    ck_assert_int_eq(t.report.slack_bytes, INT64_MAX);
    expect(context, &t, HBP__RECOMPUTE_OMNIBAL, "--------");
    hbp_layers_free(t.layers);
}
END_TEST

/* The bottleneck's least over 4 stages, by dynamic programming over where a stage begins. */
static void balance(const hbp_layers *layers, int32_t *cuts)
{
    enum { STAGES = 4 };
    static int64_t best[STAGES + 1][256];
    static int32_t from[STAGES + 1][256];
    for (int32_t s = 0; s <= STAGES; s++)
        for (int32_t end = 0; end <= layers->count; end++) {
            best[s][end] = s || end ? INT64_MAX : 0;
            int64_t ns = 0;
            for (int32_t begin = end - 1; s && begin >= 0; begin--) {
                ns += layers->forward_ns[begin] + layers->backward_ns[begin];
                int64_t most = best[s - 1][begin] > ns ? best[s - 1][begin] : ns;
                if (most < best[s][end]) {
                    best[s][end] = most;
                    from[s][end] = begin;
                }
            }
        }
    cuts[STAGES] = layers->count;
    for (int32_t s = STAGES; s > 0; s--)
        cuts[s - 1] = from[s][cuts[s]];
}

/* OmniBal's last configuration: once balanced, nothing of InternVL-Chat-1.2 on A100s of 80 GB has to be
 * recomputed, optimiser states on one replica or not. Larger packs on 40 GB are another matter. */
START_TEST_IN_CONTEXT(none_is_needed_once_balanced)
{
    hbp_machine *machine = NULL;
    hbp_vlm *vlm = NULL;
    MAKES(context, machine, hbp_machine_create_preset(context, "a100-80:2", &machine));
    MAKES(context, vlm, hbp_vlm_create_preset(context, "internvl-1.5-26b", &vlm));
    hbp_vlm_layers_options o = {.struct_size = sizeof o};
    o.tensor_parallel = 4;
    o.vision = 9;
    o.tokens = 4096;
    static instance t;
    memset(&t, 0, sizeof t);
    OK(context, hbp_vlm_create_layers(context, vlm, machine, &o, &t.layers));
    balance(t.layers, t.cuts);
    t.pipeline = (hbp_pipeline_options){.struct_size = sizeof t.pipeline};
    t.options = (hbp_recompute_options){.struct_size = sizeof t.options};
    t.report = (hbp_recompute_report){.struct_size = sizeof t.report};
    t.pipeline.stages = 4;
    t.pipeline.micro_batches = 32;
    t.pipeline.limit_bytes = t.limit;
    for (int32_t s = 0; s < 4; s++)
        t.limit[s] = (INT64_C(80) << 30) - INT64_C(5000000000);
    ck_assert_int_eq(choose(context, &t, HBP__RECOMPUTE_OPTIMAL), HBP_OK);
    ck_assert_int_eq(t.report.proven, 1);
    for (int32_t i = 0; i < t.layers->count; i++)
        ck_assert_int_eq(t.choices[i], HBP_RECOMPUTE_NONE);
    check_choice(context, &t);

    hbp_layers_free(t.layers);
    o.data_parallel = 2;
    o.vision = 18;
    o.tokens = 6016;
    OK(context, hbp_vlm_create_layers(context, vlm, machine, &o, &t.layers));
    for (int32_t s = 0; s < 4; s++)
        t.limit[s] = (INT64_C(40) << 30) - INT64_C(5000000000);
    FAILS(context, HBP_E_INFEASIBLE, "with no layer recomputed", choose(context, &t, HBP__RECOMPUTE_NONE));
    ck_assert_int_eq(choose(context, &t, HBP__RECOMPUTE_OPTIMAL), HBP_OK);
    ck_assert_int_eq(t.report.proven, 1);
    check_choice(context, &t);
    int64_t optimal = t.report.recompute_ns;
    OK(context, choose(context, &t, HBP__RECOMPUTE_OMNIBAL));
    check_choice(context, &t);
    ck_assert_int_lt(optimal, t.report.recompute_ns);
    hbp_layers_free(t.layers);
}
END_TEST

#define WRONG(text, field, value)                                                                            \
    do {                                                                                                     \
        hbp_recompute_options wrong = {.struct_size = sizeof wrong};                                         \
        wrong.field = value;                                                                                 \
        FAILS(context, HBP_E_INVALID, text,                                                                  \
              hbp_choose_recompute(context, t.layers, t.cuts, &t.pipeline, &wrong, choices, NULL));          \
    } while (0)

START_TEST_IN_CONTEXT(wrong_arguments_are_named)
{
    static instance t;
    int32_t choices[8] = {7, 7, 7, 7, 7, 7, 7, 7};
    four(context, &t, 340, 180);
    WRONG("`method` is 'nonne'; did you mean 'none'?", method, "nonne");
    WRONG("`method` is 'nonne'; did you mean 'none'?", method, "nonne");
    WRONG("`selective` is 4; it must be in -1..3", selective, 4);
    WRONG("`selective` is -2; it must be in -1..3", selective, -2);
    WRONG("measured_vision_bytes is -1; for 8 layers it must be in 0..576460752303423488",
          measured_vision_bytes, -1);
    WRONG("measured_language_bytes is -5; for 8 layers", measured_language_bytes, -5);
    WRONG("measured_language_bytes is 576460752303423489; for 8 layers", measured_language_bytes,
          (INT64_C(1) << 59) + 1);
    WRONG("hbp_recompute_options.struct_size is 1", struct_size, 1);
    static const int64_t free[] = {0, INT64_MIN};
    WRONG("measured_free_bytes of stage 1 is -9223372036854775808; it must be at least -4611686018427387904",
          measured_free_bytes, free);
#define CALL(layers, cuts, pipeline, out)                                                                    \
    hbp_choose_recompute(context, layers, cuts, pipeline, NULL, out, NULL)
    FAILS(context, HBP_E_INVALID, "layers is NULL", CALL(NULL, t.cuts, &t.pipeline, choices));
    FAILS(context, HBP_E_INVALID, "cuts is NULL", CALL(t.layers, NULL, &t.pipeline, choices));
    FAILS(context, HBP_E_INVALID, "pipeline is NULL", CALL(t.layers, t.cuts, NULL, choices));
    FAILS(context, HBP_E_INVALID, "choices is NULL", CALL(t.layers, t.cuts, &t.pipeline, NULL));
    t.cuts[1] = 0;
    FAILS(context, HBP_E_INVALID, "every chunk must have a layer",
          CALL(t.layers, t.cuts, &t.pipeline, choices));
    t.cuts[1] = 4;
    t.pipeline.stages = 0;
    FAILS(context, HBP_E_INVALID, "pipeline.stages is 0", CALL(t.layers, t.cuts, &t.pipeline, choices));
    t.pipeline.stages = 2;
    hbp_recompute_report report = {.struct_size = 2};
    FAILS(context, HBP_E_INVALID, "report.struct_size is 2",
          hbp_choose_recompute(context, t.layers, t.cuts, &t.pipeline, NULL, choices, &report));
    for (int32_t i = 0; i < 8; i++)
        ck_assert_int_eq(choices[i], 7); /* untouched until success */
    static const int32_t before[] = {9, 9, 9, 9, 9, 9, 9, 9};
    t.pipeline.recompute = before; /* not read */
    OK(context, CALL(t.layers, t.cuts, &t.pipeline, choices));
    ck_assert_int_eq(choices[0], HBP_RECOMPUTE_NONE);
    ck_assert_uint_eq(sizeof(hbp_recompute_options), 40);
    ck_assert_uint_eq(sizeof(hbp_recompute_report), 40);
    hbp_layers_free(t.layers);
}
END_TEST

static hbp_status choose_once(hbp_context *context, void *user)
{
    return choose(context, user, HBP__RECOMPUTE_OPTIMAL);
}

START_TEST_IN_CONTEXT(failed_allocations_leave_nothing)
{
    hbp__rng rng = hbp__rng_make(59, 0, 0);
    static instance t;
    do {
        if (t.layers)
            hbp_layers_free(t.layers);
        draw(context, &t, &rng, 12, 0, 1000000000);
        limit(context, &t, &rng);
    } while (choose(context, &t, HBP__RECOMPUTE_OPTIMAL) != HBP_OK || !t.report.selective);
    failing_sweep(choose_once, &t);
    ck_assert_int_gt(cancel_sweep(choose_once, &t), 2);
    hbp_layers_free(t.layers);
}
END_TEST

TEST_MAIN("recompute", never_over_memory, modes_by_hand, none_is_needed_once_balanced,
          wrong_arguments_are_named, failed_allocations_leave_nothing)

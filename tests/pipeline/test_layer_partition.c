#include "base/methods.h"
#include "pipeline/partition.h"

#include "keep.h"
#include "pipeline/candidates.h"
#include "pipeline/instances.h"
#include "simulate/pipeline/pipeline.h"

static hbp_layer_partition_options options_of(int32_t mode)
{
    hbp_layer_partition_options options = {.struct_size = sizeof options};
    options.method = hbp__layer_partition_name(mode);
    return options;
}

static hbp_layer_partition_summary summary_of(hbp_context *context, const hbp_layer_partition *partition)
{
    hbp_layer_partition_summary summary = {.struct_size = sizeof summary};
    OK(context, hbp_layer_partition_get_summary(context, partition, &summary));
    return summary;
}

/* What every partition must be, whatever its mode: its numbers are those of its cuts. */
static void check_whole(hbp_context *context, const instance *d, const hbp_layer_partition *partition)
{
    hbp_layer_partition_summary summary = summary_of(context, partition);
    int64_t load[INSTANCE_STAGES], most = 0, stages = d->pipeline.stages;
    const int32_t *cuts = layer_partition_view(partition).cuts;
    int64_t turns = hbp__pipeline_virtual(&d->pipeline);
    ck_assert_int_eq(layer_partition_view(partition).chunks + 1, stages * turns + 1);
    ck_assert_int_eq(summary.predicted_ns, (instance_weigh(d, cuts, load) + turns - 1) / turns);
    ck_assert_int_le(summary.bound_ns, summary.predicted_ns);
    ck_assert_int_eq(summary.proven, summary.bound_ns == summary.predicted_ns);
    const int64_t *stage_ns = layer_partition_view(partition).stage_ns;
    ck_assert_int_eq(layer_partition_view(partition).stages, stages);
    ck_assert_mem_eq(stage_ns, load, (size_t)stages * sizeof *load);
    for (int64_t s = 0; s < stages; s++)
        most = load[s] > most ? load[s] : most;
    ck_assert_int_eq(summary.bottleneck_ns, most);
    ck_assert_int_eq(load[summary.bottleneck], most);
    ck_assert_int_eq(summary.micro_batches, d->pipeline.micro_batches);

    hbp_pipeline_run *run;
    const int32_t *order = layer_partition_view(partition).order;
    ck_assert_int_eq(layer_partition_view(partition).micro_batches, d->pipeline.micro_batches);
    OK(context, hbp_simulate_pipeline(context, d->layers, cuts, &d->pipeline, order, &run));
    hbp_pipeline_summary ran = {.struct_size = sizeof ran};
    OK(context, hbp_pipeline_run_get_summary(context, run, &ran));
    ck_assert_int_eq(summary.simulated_ns, ran.total_ns);
    ck_assert_int_eq(summary.peak_bytes, ran.peak_bytes);
    ck_assert_double_eq_tol(summary.bubble, ran.bubble, 1e-12);
    ck_assert_mem_eq(layer_partition_view(partition).stage_busy_ns, pipeline_run_view(run).stage_busy_ns,
                     (size_t)stages * sizeof(int64_t));
    ck_assert_mem_eq(layer_partition_view(partition).stage_bytes, pipeline_run_view(run).stage_bytes,
                     (size_t)stages * sizeof(int64_t));
    for (int64_t s = 0; s < stages && d->pipeline.limit_bytes; s++)
        ck_assert_int_le(layer_partition_view(partition).stage_bytes[s], d->limit[s]);
    hbp_pipeline_run_free(run);

    hbp_layer_partition_view view = layer_partition_view(partition);
    int64_t bytes = 0;
    ck_assert_int_ge(view.candidates, 1);
    for (int64_t i = 0; i < view.candidates; i++) {
        const int32_t *its = view.candidate_cuts + i * (view.chunks + 1);
        ck_assert_int_eq(view.candidate_predicted_ns[i], (instance_weigh(d, its, load) + turns - 1) / turns);
        if (i == 0) {
            ck_assert_mem_eq(its, cuts, (size_t)(stages * turns + 1) * sizeof *cuts);
            ck_assert_int_eq(view.candidate_simulated_ns[i], summary.simulated_ns);
            ck_assert_int_eq(view.candidate_cut_bytes[i], summary.cut_bytes);
        }
        bytes = 0;
        for (int64_t k = 1; k < stages * turns; k++)
            bytes += d->cut[its[k] - 1];
        ck_assert_int_eq(view.candidate_cut_bytes[i], bytes);
    }
}

/* The least predicted time over all partitions within the limits, and the first partition that has it. */
static int64_t least_of_all(const instance *d, int32_t count, int32_t chunks, const hbp__live *live,
                            int32_t *best)
{
    int32_t cuts[INSTANCE_LAYERS + 1];
    int64_t least = INT64_MAX, load[INSTANCE_STAGES];
    instance_first(count, chunks, cuts);
    do {
        int64_t value = instance_weigh(d, cuts, load);
        if (value < least && instance_fits(d, cuts, live)) {
            least = value;
            memcpy(best, cuts, ((size_t)chunks + 1) * sizeof *cuts);
        }
    } while (instance_next(count, chunks, cuts));
    return least;
}

/* Optimal, for V = 1 and V > 1, even and uneven: the bound is the least of all partitions. */
static void compare_all(uint64_t seed, int trials, int32_t most_layers, int32_t most_turns)
{
    static instance d;
    hbp_context *context = test_context();
    hbp__rng rng = hbp__rng_make(seed, 0, 0);
    int infeasible = 0, even = 0;
    for (int trial = 0; trial < trials; trial++) {
        int32_t turns = (int32_t)instance_draw(&rng, most_turns > 1 ? 2 : 1, most_turns);
        int32_t stages = (int32_t)instance_draw(&rng, 1, turns > 1 ? 2 : 4), chunks = stages * turns;
        int32_t count = (int32_t)instance_draw(&rng, chunks, most_layers), best[INSTANCE_LAYERS + 1];
        instance_make(context, &rng, count, stages, turns, &d);
        hbp__live live;
        hbp__stages s;
        OK(context, hbp__stages_open(context, d.layers, &d.pipeline, &s));
        OK(context, hbp__live_open(context, &d.pipeline, &live));
        int64_t least = least_of_all(&d, count, chunks, &live, best);
        hbp_layer_partition_options options = options_of(HBP__LAYER_PARTITION_OPTIMAL);
        options.candidates = (int32_t)instance_draw(&rng, 1, 4);
        options.order = (int32_t)instance_draw(&rng, 0, 1);
        hbp_layer_partition *partition = NULL;
        hbp_status status = hbp_partition_layers(context, d.layers, &d.pipeline, &options, &partition);
        if (least == INT64_MAX) {
            ck_assert_int_eq(status, HBP_E_INFEASIBLE);
            ck_assert_ptr_nonnull(strstr(hbp_context_message(context), " needs "));
            infeasible++;
        } else {
            ck_assert_int_eq(status, HBP_OK);
            check_whole(context, &d, partition);
            hbp_layer_partition_summary summary = summary_of(context, partition);
            ck_assert_int_eq(summary.bound_ns, (least + turns - 1) / turns);
            if (!s.uneven && turns == 1) {
                ck_assert_int_eq(summary.proven, 1);
                ck_assert_mem_eq(layer_partition_view(partition).cuts, best,
                                 ((size_t)chunks + 1) * sizeof *best);
            }
            even += !s.uneven;
            hbp_layer_partition_view view = layer_partition_view(partition);
            for (int64_t i = 1; i < view.candidates && (s.uneven || turns > 1); i++)
                ck_assert_int_ge(view.candidate_simulated_ns[i], summary.simulated_ns);
        }
        hbp_layer_partition_free(partition);
        hbp__live_close(&live);
        hbp__stages_close(&s);
        hbp_layers_free(d.layers);
    }
    ck_assert_int_gt(infeasible, trials / 50);
    ck_assert_int_gt(even, trials / 5);
    hbp_context_free(context);
}

START_TEST(optimum_equals_every_partition_tried)
{
    compare_all(1, 2500, 14, 1);
}
END_TEST

START_TEST(optimum_in_rounds_equals_every_partition_tried)
{
    compare_all(2, 400, 12, 3);
}
END_TEST

START_TEST_IN_CONTEXT(modes_do_what_they_say)
{
    static instance d;
    hbp__rng rng = hbp__rng_make(3, 0, 0);
    for (int trial = 0; trial < TEST_ROUNDS(300); trial++) {
        int32_t stages = (int32_t)instance_draw(&rng, 1, 4), turns = (int32_t)instance_draw(&rng, 1, 2);
        int32_t count = (int32_t)instance_draw(&rng, stages * turns, 30), anchor[INSTANCE_LAYERS + 1];
        instance_make(context, &rng, count, stages, turns, &d);
        int64_t fastest = 0;
        hbp__stages s;
        OK(context, hbp__stages_open(context, d.layers, &d.pipeline, &s));
        for (int32_t mode = HBP__LAYER_PARTITION_OPTIMAL; mode <= HBP__LAYER_PARTITION_OMNIBAL; mode++) {
            hbp_layer_partition_options options = options_of(mode);
            hbp_layer_partition *partition = NULL;
            hbp_status status = hbp_partition_layers(context, d.layers, &d.pipeline, &options, &partition);
            if (status == HBP_E_INFEASIBLE) {
                ck_assert_ptr_nonnull(d.pipeline.limit_bytes);
                ck_assert_ptr_null(partition);
                continue;
            }
            OK(context, status);
            check_whole(context, &d, partition);
            const int32_t *cuts = layer_partition_view(partition).cuts;
            if (mode == HBP__LAYER_PARTITION_OPTIMAL)
                fastest = summary_of(context, partition).simulated_ns;
            if (s.uneven || turns > 1)
                ck_assert_int_ge(summary_of(context, partition).simulated_ns, fastest);
            if (mode != HBP__LAYER_PARTITION_OPTIMAL) {
                OK(context,
                   hbp__anchor(context, &s,
                               mode == HBP__LAYER_PARTITION_OMNIBAL ? HBP__LAYER_PARTITION_BALANCED : mode,
                               anchor));
                for (int32_t c = 0; c <= stages * turns; c++)
                    ck_assert_int_le(abs(cuts[c] - anchor[c]), mode == HBP__LAYER_PARTITION_OMNIBAL);
            }
            if (mode != HBP__LAYER_PARTITION_OPTIMAL &&
                mode != HBP__LAYER_PARTITION_OMNIBAL) /* no list ranks its one */
                ck_assert_int_eq(layer_partition_view(partition).candidate_ranked[0], 0);
            hbp_layer_partition_free(partition);
        }
        hbp__stages_close(&s);
        hbp_layers_free(d.layers);
    }
}
END_TEST

/* 47 layers of vision, the projector, the token embedding, 48 of language and 4 more, with what OmniBal
 * sends: the published differences in bytes between its partitions. */
static void omnibal_layers(hbp_context *context, instance *d)
{
    const int64_t vision = INT64_C(9) * 1025 * 3200 * 2, projected = INT64_C(9) * 256 * 6144 * 2;
    const int64_t language = INT64_C(4096) * 6144 * 2;
    for (int32_t i = 0; i < 101; i++) {
        d->type[i] = i < 48 ? HBP_LAYER_VISION : HBP_LAYER_LANGUAGE;
        d->cut[i] = i < 47 ? vision : i == 47 ? projected : language;
        d->forward[i] = i < 47 ? 4000000 : 3000000;
    }
    hbp_layer_columns columns = {.struct_size = sizeof columns,
                                 .count = 101,
                                 .forward_ns = d->forward,
                                 .type = d->type,
                                 .cut_bytes = d->cut};
    OK(context, hbp_layers_create(context, &columns, &d->layers));
    d->pipeline = (hbp_pipeline_options){.struct_size = sizeof d->pipeline};
    d->pipeline.stages = 4;
    d->pipeline.micro_batches = 8;
}

START_TEST_IN_CONTEXT(published_bytes_over_cuts)
{
    static instance d;
    omnibal_layers(context, &d);
    hbp__stages s;
    OK(context, hbp__stages_open(context, d.layers, &d.pipeline, &s));
    const int32_t profile[] = {0, 23, 47, 72, 101}, other[] = {0, 49, 66, 82, 101};
    const int32_t behind[] = {0, 48, 66, 82, 101};
    int64_t base = hbp__stages_cut_bytes(&s, other);
    int64_t more = hbp__stages_cut_bytes(&s, profile) - base, less = base - hbp__stages_cut_bytes(&s, behind);
    ck_assert_int_eq(more, 17416704);
    ck_assert_int_eq((more * 1000 + 524288) / 1048576, 16610);
    ck_assert_int_eq(less * 1000 / 1048576, 21000);
    hbp__stages_close(&s);
    const int64_t *cut = layers_view(d.layers).cut_bytes;
    ck_assert_int_eq(2 * cut[22] - 2 * cut[48], 17416704);
    ck_assert_int_eq(cut[48] - cut[47], 22020096);

    /* Through the planner: the balanced partition, and one that must cut behind the projector because bytes
     * are dear. */
    hbp_layer_partition_options options = options_of(HBP__LAYER_PARTITION_UNIFORM);
    hbp_layer_partition *partition;
    MAKES(context, partition, hbp_partition_layers(context, d.layers, &d.pipeline, &options, &partition));
    const int32_t *cuts = layer_partition_view(partition).cuts; /* 0 26 51 76 101 */
    ck_assert_int_eq(cuts[1], 26);
    ck_assert_int_eq(summary_of(context, partition).cut_bytes, cut[25] + 2 * cut[50]);
    d.pipeline.link_bytes_per_s = 1e6;
    options.method = hbp__layer_partition_name(HBP__LAYER_PARTITION_OPTIMAL);
    MAKES(context, partition, hbp_partition_layers(context, d.layers, &d.pipeline, &options, &partition));
    cuts = layer_partition_view(partition).cuts;
    ck_assert(cuts[1] == 48 || cuts[2] == 48 || cuts[3] == 48);
    ck_assert_int_eq(summary_of(context, partition).proven, 1);
    hbp_layers_free(d.layers);
}
END_TEST

/* Where the run decides, it is never slower, and the bound of the formula stays. */
START_TEST_IN_CONTEXT(the_run_decides_where_asked)
{
    static const int64_t ns[11] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5};
    hbp_layer_columns columns = {.struct_size = sizeof columns};
    columns.count = 11;
    columns.forward_ns = ns;
    hbp_layers *layers = NULL;
    MAKES(context, layers, hbp_layers_create(context, &columns, &layers));
    hbp_pipeline_options pipeline = {.struct_size = sizeof pipeline};
    pipeline.stages = 4;
    pipeline.micro_batches = 8;
    hbp_layer_partition_options options = options_of(HBP__LAYER_PARTITION_OPTIMAL);
    hbp_layer_partition *formula, *run;
    MAKES(context, formula, hbp_partition_layers(context, layers, &pipeline, &options, &formula));
    options.run = 1;
    MAKES(context, run, hbp_partition_layers(context, layers, &pipeline, &options, &run));
    hbp_layer_partition_summary a = summary_of(context, formula), b = summary_of(context, run);
    ck_assert(a.proven && b.proven);
    ck_assert_int_eq(a.predicted_ns, a.bound_ns);
    ck_assert_int_eq(a.bound_ns, b.bound_ns);
    ck_assert_int_ge(b.predicted_ns, b.bound_ns);
    ck_assert_int_lt(b.simulated_ns, a.simulated_ns); /* here it is faster */
}
END_TEST

/* 101 layers as published: the optimum is no slower than any baseline, by formula and by simulation. */
START_TEST_IN_CONTEXT(the_optimum_beats_the_baselines)
{
    static instance d;
    omnibal_layers(context, &d);
    d.pipeline.link_bytes_per_s = 2e10;
    for (int uneven = 0; uneven < 2; uneven++) {
        for (int32_t m = 0; m < 8; m++) {
            d.vision[m] = 0.2 + 0.2 * m;
            d.tokens[m] = 1.7 - 0.2 * m;
        }
        d.pipeline.vision_scale = uneven ? d.vision : NULL;
        d.pipeline.token_scale = uneven ? d.tokens : NULL;
        int64_t predicted = 0, simulated = 0;
        for (int32_t mode = HBP__LAYER_PARTITION_OPTIMAL; mode <= HBP__LAYER_PARTITION_OMNIBAL; mode++) {
            hbp_layer_partition_options options = options_of(mode);
            hbp_layer_partition *partition;
            OK(context, hbp_partition_layers(context, d.layers, &d.pipeline, &options, &partition));
            hbp_layer_partition_summary summary = summary_of(context, partition);
            if (mode == HBP__LAYER_PARTITION_OPTIMAL) {
                predicted = summary.bound_ns;
                simulated = summary.simulated_ns;
                ck_assert(uneven || summary.proven);
            }
            ck_assert_int_eq(summary.bound_ns, predicted);
            ck_assert_int_ge(summary.predicted_ns, predicted);
            if (uneven)
                ck_assert_int_ge(summary.simulated_ns, simulated);
            hbp_layer_partition_free(partition);
        }
    }
    hbp_layers_free(d.layers);
}
END_TEST

START_TEST_IN_CONTEXT(bad_options_are_refused)
{
    static instance d;
    omnibal_layers(context, &d);
    hbp_layer_partition *partition = NULL;
    hbp_layer_partition_options options = options_of(0);
    options.method = "omnibul";
    FAILS(context, HBP_E_INVALID, "`method` is 'omnibul'; did you mean 'omnibal'?",
          hbp_partition_layers(context, d.layers, &d.pipeline, &options, &partition));
    options = options_of(0);
    options.candidates = 65;
    FAILS(context, HBP_E_INVALID, "`candidates` is 65; it must be in 0..64",
          hbp_partition_layers(context, d.layers, &d.pipeline, &options, &partition));
    options = options_of(0);
    options.radius = -1;
    FAILS(context, HBP_E_INVALID, "`radius` is -1; it must be in 0..64",
          hbp_partition_layers(context, d.layers, &d.pipeline, &options, &partition));
    FAILS(context, HBP_E_INVALID, "layers is NULL",
          hbp_partition_layers(context, NULL, &d.pipeline, NULL, &partition));
    FAILS(context, HBP_E_INVALID, "pipeline is NULL",
          hbp_partition_layers(context, d.layers, NULL, NULL, &partition));
    FAILS(context, HBP_E_INVALID, "out is NULL",
          hbp_partition_layers(context, d.layers, &d.pipeline, NULL, NULL));
    d.pipeline.stages = 102;
    FAILS(context, HBP_E_INVALID, "pipeline.stages x virtual_stages is 102; there are only 101 layers",
          hbp_partition_layers(context, d.layers, &d.pipeline, NULL, &partition));
    d.pipeline.stages = 4;
    ck_assert_ptr_null(partition);

    OK(context, hbp_partition_layers(context, d.layers, &d.pipeline, NULL, &partition));
    FAILS(context, HBP_E_INVALID, "summary is NULL",
          hbp_layer_partition_get_summary(context, partition, NULL));
    hbp_layer_partition_free(partition);
    hbp_layer_partition_free(NULL);
    hbp_layer_partition_view none = {.struct_size = sizeof none};
    ck_assert_int_eq(hbp_layer_partition_get_view(NULL, &none), HBP_E_INVALID);
    ck_assert_ptr_null(none.cuts);
    ck_assert_int_eq(none.stages, 0);
    ck_assert_int_eq(none.candidates, 0);
    ck_assert_uint_eq(sizeof(hbp_layer_partition_options), 32);
    ck_assert_uint_eq(sizeof(hbp_layer_partition_summary), 80);
    hbp_layers_free(d.layers);
}
END_TEST

START_TEST_IN_CONTEXT(what_does_not_fit_names_stage_and_bytes)
{
    const int64_t forward[4] = {1, 1, 1, 1}, state[4] = {10, 20, 30, 40}, limit[2] = {35, 55};
    hbp_layer_columns columns = {
        .struct_size = sizeof columns, .count = 4, .forward_ns = forward, .state_bytes = state};
    hbp_layers *layers;
    MAKES(context, layers, hbp_layers_create(context, &columns, &layers));
    hbp_pipeline_options pipeline = {
        .struct_size = sizeof pipeline, .stages = 2, .micro_batches = 4, .limit_bytes = limit};
    hbp_layer_partition *partition = NULL;
    /* 30 | 70 lacks 15 on stage 1; 60 | 40 lacks 25 on stage 0. */
    FAILS(context, HBP_E_INFEASIBLE,
          "no partition fits; with the cuts that miss by least: stage 1 with layers 2..3 needs 70 bytes, 15 "
          "bytes more than its 55 bytes",
          hbp_partition_layers(context, layers, &pipeline, NULL, &partition));
    hbp_layer_partition_options options = options_of(HBP__LAYER_PARTITION_UNIFORM);
    const int64_t wide[2] = {60, 60};
    pipeline.limit_bytes = wide;
    FAILS(context, HBP_E_INFEASIBLE,
          "the partition of this method does not fit: stage 1 with layers 2..3 needs 70 bytes, 10 bytes "
          "more than its 60 bytes",
          hbp_partition_layers(context, layers, &pipeline, &options, &partition));
    MAKES(context, partition, hbp_partition_layers(context, layers, &pipeline, NULL, &partition));
    ck_assert_int_eq(layer_partition_view(partition).cuts[1], 3);
    partition = NULL;
    pipeline.virtual_stages = 2;
    FAILS(context, HBP_E_INFEASIBLE,
          "no partition was found that fits; with the cuts that come nearest: stage 0 with layers 0..0 and "
          "further chunks needs 40 bytes, 5 bytes more than its 35 bytes",
          (pipeline.limit_bytes = limit, hbp_partition_layers(context, layers, &pipeline, NULL, &partition)));
    ck_assert_ptr_null(partition);
}
END_TEST

static hbp_status plan(hbp_context *context, void *user)
{
    const instance *d = user;
    hbp_layer_partition_options options = options_of(HBP__LAYER_PARTITION_OPTIMAL);
    options.order = 1;
    hbp_layer_partition *partition = NULL;
    hbp_status status = hbp_partition_layers(context, d->layers, &d->pipeline, &options, &partition);
    ck_assert((status >= 0) == (partition != NULL));
    hbp_layer_partition_free(partition);
    return status;
}

START_TEST_IN_CONTEXT(failing_allocations_and_cancelling_leave_nothing)
{
    static instance d;
    hbp__rng rng = hbp__rng_make(5, 0, 0);
    instance_make(context, &rng, 9, 3, 1, &d);
    d.pipeline.vision_scale = d.vision;
    d.pipeline.token_scale = d.tokens;
    d.pipeline.limit_bytes = NULL;
    d.pipeline.micro_batches = 4;
    failing_sweep(plan, &d);
    ck_assert_int_gt(cancel_sweep(plan, &d), 5);
    d.pipeline.stages = 2;
    d.pipeline.virtual_stages = 2;
    failing_sweep(plan, &d);
    hbp_layers_free(d.layers);
}
END_TEST

TEST_MAIN("layer_partition", optimum_equals_every_partition_tried,
          optimum_in_rounds_equals_every_partition_tried, modes_do_what_they_say, published_bytes_over_cuts,
          the_run_decides_where_asked, the_optimum_beats_the_baselines, bad_options_are_refused,
          what_does_not_fit_names_stage_and_bytes, failing_allocations_and_cancelling_leave_nothing)

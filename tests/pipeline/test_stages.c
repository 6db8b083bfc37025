#include "pipeline/stages.h"

#include "keep.h"
#include "pipeline/instances.h"

static hbp_status fail_short(hbp_context *context, hbp__shortage shortage)
{
    return hbp__shortage_fail(context, &shortage);
}

START_TEST_IN_CONTEXT(sums_say_what_layers_say)
{
    static instance d;
    hbp__rng rng = hbp__rng_make(1, 0, 0);
    for (int trial = 0; trial < 400; trial++) {
        int32_t stages = (int32_t)instance_draw(&rng, 1, 4), turns = (int32_t)instance_draw(&rng, 1, 3);
        int32_t chunks = stages * turns, count = (int32_t)instance_draw(&rng, chunks, 24);
        instance_make(context, &rng, count, stages, turns, &d);
        d.pipeline.limit_bytes = d.limit;
        hbp__stages s;
        OK(context, hbp__stages_open(context, d.layers, &d.pipeline, &s));
        ck_assert_int_eq(s.chain.weight, d.pipeline.micro_batches * turns - 1);
        for (int draw = 0; draw < 20; draw++) {
            int32_t cuts[INSTANCE_LAYERS + 1] = {0};
            for (int32_t c = 1; c <= chunks; c++)
                cuts[c] =
                    c == chunks ? count : (int32_t)instance_draw(&rng, cuts[c - 1] + 1, count - (chunks - c));
            int64_t want[INSTANCE_STAGES], got[INSTANCE_STAGES], bytes = 0;
            ck_assert_int_eq(hbp__stages_weigh(&s, cuts, got), instance_weigh(&d, cuts, want));
            ck_assert_mem_eq(got, want, (size_t)stages * sizeof *got);
            if (turns == 1) {
                ck_assert_int_eq(hbp__chain_value(&s.chain, cuts, NULL), hbp__stages_weigh(&s, cuts, got));
                for (int32_t c = 0; c < chunks; c++) {
                    int32_t reach = hbp__chain_reach(&s.chain, c, cuts[c]);
                    ck_assert_int_eq(hbp__stages_peak(&s, cuts, chunks, c) <= d.limit[c],
                                     cuts[c + 1] <= reach);
                }
            }
            for (int32_t stage = 0; stage < stages; stage++)
                ck_assert_int_eq(
                    hbp__stages_peak(&s, cuts, chunks, stage),
                    hbp__stage_peak_bytes(d.layers, cuts, &d.pipeline, &s.live, d.pipeline.recompute, stage));
            ck_assert_int_eq(hbp__stages_fit(&s, cuts), instance_fits(&d, cuts, &s.live));
            for (int32_t c = 1; c < chunks; c++)
                bytes += d.cut[cuts[c] - 1];
            ck_assert_int_eq(hbp__stages_cut_bytes(&s, cuts), bytes);
        }
        hbp__stages_close(&s);
        hbp_layers_free(d.layers);
    }
}
END_TEST

/* The partition that misses by least, against all of them. */
START_TEST_IN_CONTEXT(nearest_misses_by_least)
{
    static instance d;
    hbp__rng rng = hbp__rng_make(2, 0, 0);
    int missed = 0;
    for (int trial = 0; trial < 300; trial++) {
        int32_t stages = (int32_t)instance_draw(&rng, 1, 4), count = (int32_t)instance_draw(&rng, stages, 10);
        int32_t cuts[INSTANCE_LAYERS + 1], nearest[INSTANCE_LAYERS + 1];
        instance_make(context, &rng, count, stages, 1, &d);
        d.pipeline.limit_bytes = d.limit;
        for (int32_t s = 0; s < stages; s++)
            d.limit[s] /= 3;
        hbp__stages s;
        OK(context, hbp__stages_open(context, d.layers, &d.pipeline, &s));
        int64_t least = INT64_MAX, got = 0;
        instance_first(count, stages, cuts);
        do {
            int64_t lack = 0;
            for (int32_t stage = 0; stage < stages; stage++) {
                int64_t more = hbp__stages_peak(&s, cuts, stages, stage) - d.limit[stage];
                lack = more > lack ? more : lack;
            }
            least = lack < least ? lack : least;
        } while (instance_next(count, stages, cuts));
        OK(context, hbp__stages_nearest(context, &s, nearest));
        for (int32_t stage = 0; stage < stages; stage++) {
            int64_t more = hbp__stages_peak(&s, nearest, stages, stage) - d.limit[stage];
            got = more > got ? more : got;
        }
        ck_assert_int_eq(got, least);
        missed += least > 0;
        if (least > 0)
            FAILS(context, HBP_E_INFEASIBLE, " more than its ",
                  fail_short(context, hbp__stages_shortage(&s, nearest, "no partition fits")));
        hbp__stages_close(&s);
        hbp_layers_free(d.layers);
    }
    ck_assert_int_gt(missed, 100);
}
END_TEST

START_TEST_IN_CONTEXT(times_that_pass_62_bits_are_refused)
{
    int64_t forward[2] = {INT64_C(1) << 55, 1};
    hbp_layer_columns columns = {.struct_size = sizeof columns, .count = 2, .forward_ns = forward};
    hbp_layers *layers;
    MAKES(context, layers, hbp_layers_create(context, &columns, &layers));
    hbp_pipeline_options pipeline = {.struct_size = sizeof pipeline, .stages = 2, .micro_batches = 30};
    hbp__stages s;
    OK(context, hbp__stages_open(context, layers, &pipeline, &s));
    hbp__stages_close(&s);
    pipeline.micro_batches = 100;
    FAILS(context, HBP_E_OVERFLOW, "the layers take 108086391056891904 ns on stage 0",
          hbp__stages_open(context, layers, &pipeline, &s));
    const double speed[2] = {1, 1e-300};
    pipeline.micro_batches = 1;
    pipeline.speed = speed;
    FAILS(context, HBP_E_OVERFLOW, "ns on stage 1", hbp__stages_open(context, layers, &pipeline, &s));
}
END_TEST

static hbp_status open_and_close(hbp_context *context, void *user)
{
    const instance *d = user;
    int32_t cuts[INSTANCE_LAYERS + 1];
    hbp__stages s;
    hbp_status status = hbp__stages_open(context, d->layers, &d->pipeline, &s);
    if (status >= 0) {
        status = hbp__stages_nearest(context, &s, cuts);
        hbp__stages_close(&s);
    }
    return status;
}

START_TEST_IN_CONTEXT(failing_allocations_leave_nothing)
{
    static instance d;
    hbp__rng rng = hbp__rng_make(3, 0, 0);
    instance_make(context, &rng, 12, 3, 1, &d);
    d.pipeline.limit_bytes = d.limit;
    failing_sweep(open_and_close, &d);
    hbp_layers_free(d.layers);
}
END_TEST

TEST_MAIN("stages", sums_say_what_layers_say, nearest_misses_by_least, times_that_pass_62_bits_are_refused,
          failing_allocations_leave_nothing)

#include "base/methods.h"
#include "keep.h"
#include "recomputed.h"

/* Groups of one chunk and type: weighed sizes come to the same peak as the simulator's, for any choice. */
START_TEST_IN_CONTEXT(need_is_the_peak_of_the_stage)
{
    hbp__rng rng = hbp__rng_make(53, 0, 0);
    static instance t;
    for (int32_t n = 0; n < 500; n++) {
        draw(context, &t, &rng, 10, 0, 1000000000);
        for (int32_t i = 0; i < t.layers->count; i++)
            t.choices[i] = (int32_t)hbp__rng_below(&rng, HBP_RECOMPUTE_CHOICES);
        hbp__live live;
        OK(context, hbp__live_open(context, &t.pipeline, &live));
        for (int32_t s = 0; s < t.pipeline.stages; s++) {
            hbp__recompute_stage stage;
            OK(context,
               hbp__recompute_open(context, t.layers, t.cuts, &t.pipeline, &t.options, &live, s, &stage));
            ck_assert_int_eq(hbp__recompute_need(&stage, t.choices),
                             hbp__stage_peak_bytes(t.layers, t.cuts, &t.pipeline, &live, t.choices, s));
        }
        hbp__live_close(&live);
        hbp_layers_free(t.layers);
    }
}
END_TEST

/* What is free with all recomputed, when it is told as measured, leads where the limit leads that it follows
 * from; the limit is then not read. */
START_TEST_IN_CONTEXT(measured_free_memory_is_a_limit)
{
    hbp__rng rng = hbp__rng_make(67, 0, 0);
    static instance t;
    int32_t same = 0;
    for (int32_t n = 0; n < 600; n++) {
        draw(context, &t, &rng, 12, n % 3, 1000000000);
        limit(context, &t, &rng);
        t.options.method = hbp__recompute_name(n % 2 ? HBP__RECOMPUTE_OMNIBAL : HBP__RECOMPUTE_OPTIMAL);
        hbp__live live;
        int64_t free_bytes[8];
        int32_t all[MOST_LAYERS], choices[MOST_LAYERS];
        for (int32_t i = 0; i < t.layers->count; i++)
            all[i] = hbp__recompute_frees(t.layers, i) ? HBP_RECOMPUTE_LAYER : HBP_RECOMPUTE_NONE;
        OK(context, hbp__live_open(context, &t.pipeline, &live));
        for (int32_t s = 0; s < t.pipeline.stages; s++)
            free_bytes[s] = t.limit[s] - hbp__stage_peak_bytes(t.layers, t.cuts, &t.pipeline, &live, all, s);
        hbp__live_close(&live);
        hbp_status status = choose(context, &t, hbp__recompute_method(t.options.method));
        memcpy(choices, t.choices, sizeof choices);
        hbp_recompute_report report = t.report;
        t.options.measured_free_bytes = free_bytes;
        if (n % 5)
            t.pipeline.limit_bytes = NULL;
        ck_assert_int_eq(choose(context, &t, hbp__recompute_method(t.options.method)), status);
        if (status == HBP_OK) {
            ck_assert_mem_eq(&report, &t.report, sizeof report);
            ck_assert_mem_eq(choices, t.choices, (size_t)t.layers->count * sizeof *choices);
            same++;
        }
        hbp_layers_free(t.layers);
    }
    ck_assert_int_gt(same, 150);
}
END_TEST

START_TEST_IN_CONTEXT(measurements_take_the_place_of_columns)
{
    static instance t;
    /* 90 free: floor(90 / 40) - 1 = 1 language layer. 230 free: floor(230 / 40) - 1 = 4, all 2 of them, and
     * floor(150 / 50) - 1 = 2 vision layers. */
    static const int64_t free[] = {90, 80 + 50 * 3};
    four(context, &t, 0, 0);
    t.options.measured_free_bytes = free;
    t.options.measured_vision_bytes = 50;
    t.options.measured_language_bytes = 40;
    expect(context, &t, HBP__RECOMPUTE_OMNIBAL, "LLL-----");
    ck_assert_int_eq(t.report.slack_bytes, 50);
    /* Two language layers more leave 10: nothing of a vision layer, of which an MLP is 12 in 20 of 50. When
     * all that is recomputed is vision, 20 instead of 40 are needed besides: 30 left, so one MLP of each of
     * both layers would be 40, but one layer kept but for its MLP is 20. */
    expect(context, &t, HBP__RECOMPUTE_OPTIMAL, "Lm------");
    ck_assert_int_eq(t.report.recompute_ns, 80);
    ck_assert_int_eq(t.report.slack_bytes, 10);
    /* What a part keeps of measured bytes is rounded up: 51 * 8 / 20 = 20.4. */
    hbp__live live;
    hbp__recompute_stage stage;
    t.options.measured_vision_bytes = 51;
    OK(context, hbp__live_open(context, &t.pipeline, &live));
    OK(context, hbp__recompute_open(context, t.layers, t.cuts, &t.pipeline, &t.options, &live, 0, &stage));
    ck_assert_int_eq(t.layers->type[stage.layer[2]], HBP_LAYER_VISION);
    ck_assert_int_eq(hbp__recompute_size(&stage, 2, HBP_RECOMPUTE_NONE), 51);
    ck_assert_int_eq(hbp__recompute_size(&stage, 2, HBP_RECOMPUTE_MLP), 21);
    ck_assert_int_eq(hbp__recompute_size(&stage, 2, HBP_RECOMPUTE_LAYER), 0);
    hbp__live_close(&live);
    /* Measured as the columns have it: nothing changes. */
    static const int64_t same[] = {340 - 12 - 140, 60};
    t.options.measured_free_bytes = same;
    t.options.measured_vision_bytes = 0;
    t.options.measured_language_bytes = 0;
    expect(context, &t, HBP__RECOMPUTE_OPTIMAL, "m---LL--");
    static const int64_t lacking[] = {10, -3};
    t.options.measured_free_bytes = lacking;
    FAILS(context, HBP_E_INFEASIBLE,
          "stage 1 needs 100 bytes with every layer recomputed and has 97 bytes, 3 bytes too few",
          choose(context, &t, HBP__RECOMPUTE_OMNIBAL));
    hbp_layers_free(t.layers);
}
END_TEST

TEST_MAIN("recompute_stage", need_is_the_peak_of_the_stage, measured_free_memory_is_a_limit,
          measurements_take_the_place_of_columns)

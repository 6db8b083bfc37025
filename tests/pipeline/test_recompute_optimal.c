#include "base/methods.h"
#include "base/quantity.h"
#include "keep.h"
#include "recomputed.h"

/* Every combination on one stage: the least time that fits, -1 for none, and the least bytes. */
static int64_t oracle(const instance *t, const hbp__live *live, int32_t stage, int64_t *least)
{
    int32_t layer[64], choices[MOST_LAYERS] = {0};
    int32_t count = layers_of(t, stage, layer);
    int64_t best = -1;
    *least = INT64_MAX;
    for (;;) {
        int allowed = 1;
        for (int32_t i = 0; i < count; i++)
            allowed &= may_choose(t, layer[i], choices[layer[i]]);
        if (allowed) {
            int64_t bytes = hbp__stage_peak_bytes(t->layers, t->cuts, &t->pipeline, live, choices, stage);
            int64_t ns = added_ns(t, layer, count, choices);
            *least = bytes < *least ? bytes : *least;
            if (bytes <= t->limit[stage] && (best < 0 || ns < best))
                best = ns;
        }
        int32_t i = 0;
        while (i < count && ++choices[layer[i]] == HBP_RECOMPUTE_CHOICES)
            choices[layer[i++]] = 0;
        if (i == count)
            return best;
    }
}

START_TEST_IN_CONTEXT(equals_all_combinations)
{
    hbp__rng rng = hbp__rng_make(41, 0, 0);
    static instance t;
    int64_t found = 0, short_of = 0, recomputed = 0;
    for (int32_t n = 0; n < 2500; n++) {
        int32_t one_stage = n % 10 == 0;
        draw(context, &t, &rng, one_stage ? 7 : 3, n % 4, n % 5 ? 1000000000 : 20);
        if (hbp__pipeline_virtual(&t.pipeline) > 1 && one_stage) { /* 4^7 combinations a stage at most */
            hbp_layers_free(t.layers);
            continue;
        }
        limit(context, &t, &rng);
        hbp__live live;
        OK(context, hbp__live_open(context, &t.pipeline, &live));
        int64_t best = 0, lacks = 0;
        int32_t lacking = -1;
        for (int32_t s = 0; s < t.pipeline.stages && lacking < 0; s++) {
            int64_t least, ns = oracle(&t, &live, s, &least);
            if (ns < 0) {
                lacking = s;
                lacks = least - t.limit[s];
            } else {
                best += ns;
            }
        }
        hbp__live_close(&live);
        hbp_status status = choose(context, &t, HBP__RECOMPUTE_OPTIMAL);
        if (lacking >= 0) {
            char text[64];
            ck_assert_int_eq(status, HBP_E_INFEASIBLE);
            snprintf(text, sizeof text, "stage %d needs ", (int)lacking);
            ck_assert_msg(strstr(hbp_context_message(context), text) != NULL, "%s",
                          hbp_context_message(context));
            snprintf(text, sizeof text, ", %s too few", hbp__say_bytes(lacks).text);
            ck_assert_msg(strstr(hbp_context_message(context), text) != NULL, "%s",
                          hbp_context_message(context));
            short_of++;
        } else {
            ck_assert_msg(status == HBP_OK, "run %d: %s", (int)n, hbp_context_message(context));
            ck_assert_int_eq(t.report.proven, 1);
            ck_assert_int_eq(t.report.recompute_ns, best);
            check_choice(context, &t);
            found++;
            recomputed += best > 0;
        }
        hbp_layers_free(t.layers);
    }
    ck_assert_int_gt(short_of, 100);
    ck_assert_int_gt(recomputed, 500);
    ck_assert_int_gt(found, recomputed);
}
END_TEST

/* One stage of `count` layers that all differ, with a part of what they need. */
static void one_stage(hbp_context *context, instance *t, hbp__rng *rng, int32_t count, int64_t tenths)
{
    draw(context, t, rng, 3, 0, 1000);
    hbp_layers_free(t->layers);
    t->layers = draw_layers(context, rng, count, 0, 1000000000);
    t->options.selective = 0;
    t->pipeline.stages = 1;
    t->pipeline.virtual_stages = 0;
    t->pipeline.micro_batches = 2;
    t->cuts[1] = count;
    hbp__live live;
    OK(context, hbp__live_open(context, &t->pipeline, &live));
    t->limit[0] = hbp__stage_peak_bytes(t->layers, t->cuts, &t->pipeline, &live, NULL, 0) / 10 * tenths;
    hbp__live_close(&live);
}

START_TEST_IN_CONTEXT(a_thousand_layers_are_proven)
{
    hbp__rng rng = hbp__rng_make(47, 0, 0);
    static instance t;
    for (int32_t n = 0; n < 3; n++) {
        one_stage(context, &t, &rng, 1000, 7 + n);
        ck_assert_int_eq(choose(context, &t, HBP__RECOMPUTE_OPTIMAL), HBP_OK);
        ck_assert_int_eq(t.report.proven, 1);
        ck_assert_int_gt(t.report.recompute_ns, 0);
        check_choice(context, &t);
        hbp_layers_free(t.layers);
    }
}
END_TEST

START_TEST_IN_CONTEXT(too_many_to_prove_still_fit)
{
    hbp__rng rng = hbp__rng_make(48, 0, 0);
    static instance t;
    one_stage(context, &t, &rng, 5000, 8);
    ck_assert_int_eq(choose(context, &t, HBP__RECOMPUTE_OPTIMAL), HBP_NOT_PROVEN);
    ck_assert_int_eq(t.report.proven, 0);
    check_choice(context, &t);
    int64_t ns = t.report.recompute_ns;
    OK(context, choose(context, &t, HBP__RECOMPUTE_OMNIBAL));
    ck_assert_int_lt(ns, t.report.recompute_ns);
    ck_assert_int_le(ns, INT64_C(389065797500)); /* with the most promising levels first */
    hbp_layers_free(t.layers);
}
END_TEST

TEST_MAIN("recompute_optimal", equals_all_combinations, a_thousand_layers_are_proven,
          too_many_to_prove_still_fit)

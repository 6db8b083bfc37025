/* Times and bytes of chunks by hand, the bound on a stage's bytes against simulated peaks, every message. */
#include "traps.h"

#include "simulate/pipeline/stage_times.h"

#include <math.h>

#include "data/pipeline/layers.h"
#include "failing.h"
#include "keep.h"
#include "simulate/pipelines.h"

/* Vision, language, fixed, language; cut behind the second. */
static void make_four(hbp_context *context, piped *p)
{
    hbp_layer_columns columns = {.struct_size = sizeof columns};
    columns.count = 4;
    columns.forward_ns = (int64_t[]){10, 20, 7, 40};
    columns.backward_ns = (int64_t[]){21, 43, 14, 81};
    columns.type = (int32_t[]){HBP_LAYER_VISION, HBP_LAYER_LANGUAGE, HBP_LAYER_FIXED, HBP_LAYER_LANGUAGE};
    columns.state_bytes = (int64_t[]){1000, 2000, 3000, 4000};
    columns.activation_bytes = (int64_t[]){101, 203, 50, 400};
    columns.recomputed_bytes = (int64_t[]){11, 20, 5, 40};
    columns.working_bytes = (int64_t[]){90, 183, 45, 361};
    columns.attention_bytes = (int64_t[]){30, 60, 0, 100};
    columns.attention_ns = (int64_t[]){3, 6, 0, 11};
    columns.mlp_bytes = (int64_t[]){40, 80, 0, 200};
    columns.mlp_ns = (int64_t[]){4, 8, 0, 21};
    columns.recompute_ns = (int64_t[]){9, 19, 6, 39};
    columns.cut_bytes = (int64_t[]){500, 600, 700, 800};
    columns.cut_type = (int32_t[]){0, 1, 0, 0};
    *p = (piped){.cuts = {0, 2, 4}};
    OK(context, hbp_layers_create(context, &columns, &p->layers));
    piped_options(p, 2, 1, 3);
}

START_TEST_IN_CONTEXT(reference_micro_batches_cost_what_their_layers_sum_to)
{
    piped p;
    make_four(context, &p);
    hbp__stage_times t;
    OK(context, hbp__stage_times_open(context, p.layers, p.cuts, &p.options, &t));
    ck_assert_int_eq(t.stages, 2);
    ck_assert_int_eq(t.chunks, 2);
    ck_assert_int_eq(t.micro_batches, 3);
    ck_assert_double_eq(t.exposed, 1);
    for (int m = 0; m < 3; m++) {
        ck_assert_int_eq(t.forward[m], 30);
        ck_assert_int_eq(t.forward[3 + m], 47);
        ck_assert_int_eq(t.backward[m], 64);
        ck_assert_int_eq(t.backward[3 + m], 95);
        ck_assert_int_eq(t.kept[m], 304);
        ck_assert_int_eq(t.kept[3 + m], 450);
        ck_assert_int_eq(t.working[m] + t.working[3 + m], 0);
        ck_assert_int_eq(t.transfer[m] + t.sending[m], 0); /* no link's speed */
    }
    ck_assert_int_eq(t.state[0], 3000);
    ck_assert_int_eq(t.state[1], 7000);
    hbp__stage_times_close(&t);
    piped_free(&p);
}
END_TEST

START_TEST_IN_CONTEXT(scales_speeds_links_and_recomputation_by_hand)
{
    piped p;
    make_four(context, &p);
    p.options.vision_scale = (double[]){0, 1, 2.5};
    p.options.token_scale = (double[]){1, 0.5, 3};
    p.options.token_time_scale = (double[]){1, 0.25, 4};
    p.options.vision_time_scale = (double[]){0, 1.5, 2};
    p.options.speed = (double[]){2, 0.5};
    p.options.recompute =
        (int32_t[]){HBP_RECOMPUTE_ATTENTION, HBP_RECOMPUTE_LAYER, HBP_RECOMPUTE_NONE, HBP_RECOMPUTE_MLP};
    p.options.link_bytes_per_s = 1e11; /* a byte takes a hundredth of a ns */
    p.options.link_latency_ns = 5;
    p.options.link_overlap = 0.75;
    hbp__stage_times t;
    OK(context, hbp__stage_times_open(context, p.layers, p.cuts, &p.options, &t));
    /* (10 v + 20 t) / 2, (7 + 40 t) / 0.5, halves up. */
    ck_assert_int_eq(t.forward[0], 10);
    ck_assert_int_eq(t.forward[1], 10);
    ck_assert_int_eq(t.forward[2], 50);
    ck_assert_int_eq(t.forward[3], 94);
    ck_assert_int_eq(t.forward[4], 34);
    ck_assert_int_eq(t.forward[5], 334);
    /* (24 v + 62 t) / 2, (14 + 102 t) / 0.5. */
    ck_assert_int_eq(t.backward[0], 31);
    ck_assert_int_eq(t.backward[1], 26); /* 18 + 7.75 */
    ck_assert_int_eq(t.backward[2], 148);
    ck_assert_int_eq(t.backward[3], 232);
    ck_assert_int_eq(t.backward[4], 79);
    ck_assert_int_eq(t.backward[5], 844);
    /* floor(71 v) + floor(20 t), 50 + floor(200 t). */
    ck_assert_int_eq(t.kept[0], 20);
    ck_assert_int_eq(t.kept[1], 81);
    ck_assert_int_eq(t.kept[2], 177 + 60);
    ck_assert_int_eq(t.kept[3], 250);
    ck_assert_int_eq(t.kept[4], 150);
    ck_assert_int_eq(t.kept[5], 650);
    /* max(30 v, 183 t), 200 t. */
    ck_assert_int_eq(t.working[0], 183);
    ck_assert_int_eq(t.working[1], 92);
    ck_assert_int_eq(t.working[2], 549);
    ck_assert_int_eq(t.working[3], 200);
    ck_assert_int_eq(t.working[4], 100);
    ck_assert_int_eq(t.working[5], 600);
    /* 600 v bytes, 5 + 6 v; a quarter of it holds up the sender. */
    ck_assert_int_eq(t.transfer[0], 5);
    ck_assert_int_eq(t.transfer[1], 11);
    ck_assert_int_eq(t.transfer[2], 20);
    ck_assert_int_eq(t.sending[0], 1);
    ck_assert_int_eq(t.sending[1], 3);
    ck_assert_int_eq(t.sending[2], 5);

    ck_assert_double_eq(hbp__mean_time_scale(&p.options, HBP_LAYER_LANGUAGE), 1.75);
    ck_assert_double_eq(hbp__mean_time_scale(&p.options, HBP_LAYER_VISION), 3.5 / 3);
    ck_assert_double_eq(hbp__mean_byte_scale(&p.options, HBP_LAYER_LANGUAGE), 1.5);
    ck_assert_double_eq(hbp__mean_byte_scale(&p.options, HBP_LAYER_VISION), 3.5 / 3);
    ck_assert_double_eq(hbp__mean_time_scale(&p.options, HBP_LAYER_FIXED), 1);
    ck_assert_double_eq(hbp__mean_byte_scale(&p.options, HBP_LAYER_FIXED), 1);
    ck_assert_double_eq(hbp__time_scale(&p.options, HBP_LAYER_VISION, 1), 1.5);
    ck_assert_double_eq(hbp__byte_scale(&p.options, HBP_LAYER_VISION, 1), 1);
    ck_assert_double_eq(hbp__time_scale(&p.options, HBP_LAYER_FIXED, 2), 1);
    p.options.token_time_scale = p.options.vision_time_scale = NULL;
    ck_assert_double_eq(hbp__time_scale(&p.options, HBP_LAYER_LANGUAGE, 2), 3);
    ck_assert_double_eq(hbp__time_scale(&p.options, HBP_LAYER_VISION, 2), 2.5);
    hbp__stage_times_close(&t);
    piped_free(&p);
}
END_TEST

START_TEST_IN_CONTEXT(chunks_of_one_stage_send_nothing)
{
    piped p;
    make_four(context, &p);
    piped_options(&p, 1, 2, 3);
    p.options.link_bytes_per_s = 1;
    hbp__stage_times t;
    OK(context, hbp__stage_times_open(context, p.layers, p.cuts, &p.options, &t));
    for (int m = 0; m < 3; m++)
        ck_assert_int_eq(t.transfer[m] + t.sending[m], 0);
    hbp__stage_times_close(&t);
    piped_free(&p);
}
END_TEST

static void compare_columns(const int64_t *a, const int64_t *b, int64_t cells)
{
    ck_assert_mem_eq(a, b, (size_t)cells * sizeof *a);
}

START_TEST_IN_CONTEXT(filling_in_other_micro_batches_is_opening_anew)
{
    hbp__rng rng = hbp__rng_make(11, 0, 0);
    for (int trial = 0; trial < 200; trial++) {
        int32_t stages, virtual_stages, m;
        draw_shape(&rng, 4, 3, 4, &stages, &virtual_stages, &m);
        piped p;
        piped_random(context, &rng, &p, stages, virtual_stages, m, PIPED_ALL);
        hbp__stage_times t, fresh;
        OK(context, hbp__stage_times_open(context, p.layers, p.cuts, &p.options, &t));
        hbp_pipeline_options fewer = p.options;
        fewer.micro_batches = stages * (1 + (int32_t)hbp__rng_below(&rng, 4));
        fewer.micro_batches = fewer.micro_batches < m ? fewer.micro_batches : m;
        fewer.vision_scale = p.options.vision_scale ? p.token : NULL;
        fewer.token_scale = p.options.token_scale ? p.vision : NULL;
        fewer.token_time_scale = p.options.token_time_scale ? NULL : p.token_time;
        hbp__stage_times_fill(&t, &fewer, 1);
        OK(context, hbp__stage_times_open(context, p.layers, p.cuts, &fewer, &fresh));
        int64_t cells = (int64_t)t.chunks * fewer.micro_batches, cut = cells - fewer.micro_batches;
        ck_assert_int_eq(t.micro_batches, fewer.micro_batches);
        ck_assert_int_eq(t.room, m);
        compare_columns(t.forward, fresh.forward, cells);
        compare_columns(t.backward, fresh.backward, cells);
        compare_columns(t.kept, fresh.kept, cells);
        compare_columns(t.working, fresh.working, cells);
        compare_columns(t.transfer, fresh.transfer, cut);
        compare_columns(t.sending, fresh.sending, cut);
        memset(t.kept, 0x11, (size_t)cells * sizeof *t.kept);
        memset(t.forward, 0x11, (size_t)cells * sizeof *t.forward);
        hbp__stage_times_fill(&t, &fewer, 0);
        compare_columns(t.forward, fresh.forward, cells);
        ck_assert_int_eq(t.kept[0], 0x1111111111111111);
        hbp__stage_times_close(&fresh);
        hbp__stage_times_close(&t);
        piped_free(&p);
    }
}
END_TEST

START_TEST_IN_CONTEXT(live_sums_are_the_largest)
{
    hbp_pipeline_options o = {.struct_size = sizeof o};
    o.micro_batches = 5;
    o.token_scale = (double[]){0.5, 3, -0.0, 1, 0.25};
    hbp__live live;
    OK(context, hbp__live_open(context, &o, &live));
    const double largest[] = {0, 3, 4, 4.5, 4.75, 4.75};
    for (int n = 0; n <= 5; n++) {
        ck_assert_double_eq(live.sum[HBP_LAYER_LANGUAGE][n], largest[n]);
        ck_assert_double_eq(live.sum[HBP_LAYER_VISION][n], n);
        ck_assert_double_eq(live.sum[HBP_LAYER_FIXED][n], n);
    }
    hbp__live_close(&live);
}
END_TEST

/* For random orders, and for the one that begins with the most bytes; met where micro-batches are equal and
 * there is one chunk a stage. */
START_TEST_IN_CONTEXT(no_simulated_peak_passes_the_bound)
{
    hbp__rng rng = hbp__rng_make(12, 0, 0);
    for (int trial = 0; trial < 2000; trial++) {
        int32_t stages, virtual_stages, m, order[MOST_M];
        draw_shape(&rng, 5, 3, 4, &stages, &virtual_stages, &m);
        int has = (int)hbp__rng_below(&rng, PIPED_ALL + 1);
        piped p;
        piped_random(context, &rng, &p, stages, virtual_stages, m, has);
        hbp__stage_times t;
        hbp__schedule schedule;
        hbp__live live;
        OK(context, hbp__stage_times_open(context, p.layers, p.cuts, &p.options, &t));
        OK(context, hbp__schedule_open(context, stages, virtual_stages, m, &schedule));
        OK(context, hbp__live_open(context, &p.options, &live));
        for (int k = 0; k < 4; k++) {
            int64_t peak[MOST_STAGES];
            draw_order(&rng, m, order);
            hbp__pipeline_time(&schedule, &t, order, NULL, peak);
            for (int32_t s = 0; s < stages; s++) {
                int64_t most =
                    hbp__stage_peak_bytes(p.layers, p.cuts, &p.options, &live, p.options.recompute, s);
                ck_assert_msg(peak[s] <= most, "trial %d: stage %d peaks at %lld over %lld", trial, (int)s,
                              (long long)peak[s], (long long)most);
                if (virtual_stages == 1 && !(has & PIPED_SCALES))
                    ck_assert_int_eq(peak[s], most);
            }
        }
        hbp__live_close(&live);
        hbp__schedule_close(&schedule);
        hbp__stage_times_close(&t);
        piped_free(&p);
    }
}
END_TEST

START_TEST_IN_CONTEXT(peak_bytes_by_hand)
{
    piped p;
    make_four(context, &p);
    p.options.token_scale = (double[]){1, 0.5, 3};
    hbp__live live;
    OK(context, hbp__live_open(context, &p.options, &live));
    /* Stage 0 holds two: two vision units, 4 of tokens. */
    ck_assert_int_eq(hbp__stage_peak_bytes(p.layers, p.cuts, &p.options, &live, NULL, 0),
                     3000 + 2 * 101 + 4 * 203);
    ck_assert_int_eq(hbp__stage_peak_bytes(p.layers, p.cuts, &p.options, &live, NULL, 1),
                     7000 + 50 + 3 * 400);
    const int32_t recompute[] = {HBP_RECOMPUTE_LAYER, HBP_RECOMPUTE_MLP, 0, HBP_RECOMPUTE_ATTENTION};
    ck_assert_int_eq(hbp__stage_peak_bytes(p.layers, p.cuts, &p.options, &live, recompute, 0),
                     3000 + 2 * 11 + 4 * 123 + 240);
    ck_assert_int_eq(hbp__stage_peak_bytes(p.layers, p.cuts, &p.options, &live, recompute, 1),
                     7000 + 50 + 3 * 300 + 300);
    hbp__live_close(&live);
    piped_free(&p);
}
END_TEST

START_TEST_IN_CONTEXT(bytes_and_times_saturate)
{
    hbp_layer_columns columns = {.struct_size = sizeof columns};
    columns.count = 2;
    columns.forward_ns = columns.activation_bytes = columns.cut_bytes =
        (int64_t[]){INT64_C(1) << 60, INT64_C(1) << 60};
    piped p = {.cuts = {0, 1, 2}};
    OK(context, hbp_layers_create(context, &columns, &p.layers));
    piped_options(&p, 2, 1, 2);
    p.options.token_scale = (double[]){1e30, 1};
    p.options.link_bytes_per_s = 1;
    hbp__stage_times t;
    hbp__live live;
    hbp__schedule schedule;
    OK(context, hbp__stage_times_open(context, p.layers, p.cuts, &p.options, &t));
    OK(context, hbp__live_open(context, &p.options, &live));
    OK(context, hbp__schedule_open(context, 2, 1, 2, &schedule));
    ck_assert_int_eq(t.forward[0], INT64_MAX);
    ck_assert_int_eq(t.kept[0], INT64_MAX);
    ck_assert_int_eq(t.transfer[0], INT64_MAX);
    ck_assert_int_eq(t.sending[0], INT64_MAX);
    ck_assert_int_eq(t.kept[1], INT64_C(1) << 60);
    ck_assert_int_eq(hbp__stage_peak_bytes(p.layers, p.cuts, &p.options, &live, NULL, 0), INT64_MAX);
    int64_t busy[2], peak[2];
    ck_assert_int_eq(hbp__pipeline_time(&schedule, &t, NULL, busy, peak), INT64_MAX);
    ck_assert_int_eq(busy[0], INT64_MAX);
    ck_assert_int_eq(peak[0], INT64_MAX);
    hbp__schedule_close(&schedule);
    hbp__live_close(&live);
    hbp__stage_times_close(&t);
    piped_free(&p);
}
END_TEST

START_TEST_IN_CONTEXT(every_option_out_of_range_is_named)
{
    piped p;
    make_four(context, &p);
    const hbp_pipeline_options good = p.options;
#define REFUSE(field, value, status, text)                                                                   \
    {                                                                                                        \
        hbp_pipeline_options bad = good;                                                                     \
        bad.field = value;                                                                                   \
        FAILS(context, status, text, hbp__pipeline_check(context, p.layers, &bad));                          \
    }
    OK(context, hbp__pipeline_check(context, p.layers, &good));
    REFUSE(stages, 0, HBP_E_INVALID, "pipeline.stages is 0; it must be at least 1")
    REFUSE(stages, 5, HBP_E_INVALID, "pipeline.stages x virtual_stages is 5; there are only 4 layers")
    REFUSE(virtual_stages, -1, HBP_E_INVALID, "pipeline.virtual_stages is -1; it must be at least 0")
    REFUSE(virtual_stages, INT32_MAX, HBP_E_INVALID, "virtual_stages is 4294967294; there are only 4 layers")
    REFUSE(virtual_stages, 2, HBP_E_INVALID,
           "pipeline.micro_batches is 3; with 2 virtual stages it must be a multiple of the 2 stages")
    REFUSE(micro_batches, 0, HBP_E_INVALID, "pipeline.micro_batches is 0; it must be at least 1")
    REFUSE(micro_batches, INT32_MAX, HBP_E_OVERFLOW,
           "pipeline.micro_batches is 2147483647; 2 chunks allow at most 268435456")
    const double scale[] = {1, -2, 1}, not_a_number[] = {1, 1, NAN}, infinite[] = {INFINITY, 1, 1};
    const double huge[] = {1, 1.1e30, 1};
    REFUSE(vision_scale, scale, HBP_E_INVALID,
           "pipeline.vision_scale of micro-batch 1 is -2; it must be in 0..1e+30")
    REFUSE(token_scale, not_a_number, HBP_E_INVALID, "pipeline.token_scale of micro-batch 2 is")
    REFUSE(token_time_scale, infinite, HBP_E_INVALID, "pipeline.token_time_scale of micro-batch 0 is inf")
    REFUSE(token_time_scale, huge, HBP_E_INVALID, "of micro-batch 1 is 1.1e+30; it must be in 0..1e+30")
    REFUSE(vision_time_scale, scale, HBP_E_INVALID, "pipeline.vision_time_scale of micro-batch 1 is -2")
    REFUSE(speed, ((double[]){1, 0}), HBP_E_INVALID,
           "pipeline.speed of stage 1 is 0; it must be in 1e-30..1e+30")
    REFUSE(speed, ((double[]){9e-31, 1}), HBP_E_INVALID, "pipeline.speed of stage 0 is 9e-31; it must be in")
    REFUSE(speed, ((double[]){1, NAN}), HBP_E_INVALID, "pipeline.speed of stage 1 is")
    REFUSE(limit_bytes, ((int64_t[]){-4, 0}), HBP_E_INVALID,
           "pipeline.limit_bytes of stage 0 is -4; it must not be negative")
    REFUSE(link_bytes_per_s, -1, HBP_E_INVALID,
           "pipeline.link_bytes_per_s is -1; it must be in 1e-30..1e+30, or be 0")
    REFUSE(link_bytes_per_s, 9e-31, HBP_E_INVALID, "pipeline.link_bytes_per_s is 9e-31; it must be in")
    REFUSE(link_bytes_per_s, (double)NAN, HBP_E_INVALID, "pipeline.link_bytes_per_s is")
    REFUSE(link_overlap, 1.5, HBP_E_INVALID, "pipeline.link_overlap is 1.5; it must be in 0..1")
    REFUSE(link_overlap, (double)NAN, HBP_E_INVALID, "pipeline.link_overlap is")
    REFUSE(link_latency_ns, -7, HBP_E_INVALID, "pipeline.link_latency_ns is -7; it must not be negative")
    REFUSE(recompute, ((int32_t[]){0, 0, 4, 0}), HBP_E_INVALID,
           "pipeline.recompute of layer 2 is 4; it must be in 0..3")
    REFUSE(
        recompute, ((int32_t[]){0, 0, 1, 0}), HBP_E_INVALID,
        "pipeline.recompute of layer 2 is 1; the layer's attention_bytes is 0, so that it cannot be chosen")
    REFUSE(recompute, ((int32_t[]){0, 0, 2, 0}), HBP_E_INVALID, "the layer's mlp_bytes is 0")
#undef REFUSE
    hbp__stage_times t;
    FAILS(context, HBP_E_INVALID, "cuts go from 1 to 4; they must go from 0 to the 4 layers",
          hbp__stage_times_open(context, p.layers, (int32_t[]){1, 2, 4}, &good, &t));
    FAILS(context, HBP_E_INVALID, "cuts go from 0 to 3; they must go from 0 to the 4 layers",
          hbp__stage_times_open(context, p.layers, (int32_t[]){0, 2, 3}, &good, &t));
    FAILS(context, HBP_E_INVALID, "cut 1 is 4 and cut 2 is 4; every chunk must have a layer",
          hbp__stage_times_open(context, p.layers, (int32_t[]){0, 4, 4}, &good, &t));
    piped_free(&p);
}
END_TEST

static hbp_status open_once(hbp_context *context, void *user)
{
    piped *p = user;
    hbp__stage_times t;
    hbp__live live;
    HBP__TRY(hbp__stage_times_open(context, p->layers, p->cuts, &p->options, &t));
    hbp_status status = hbp__live_open(context, &p->options, &live);
    if (status >= 0)
        hbp__live_close(&live);
    hbp__stage_times_close(&t);
    return status;
}

START_TEST_IN_CONTEXT(nothing_leaks_when_memory_is_short)
{
    hbp__rng rng = hbp__rng_make(13, 0, 0);
    piped p;
    piped_random(context, &rng, &p, 3, 2, 6, PIPED_ALL);
    p.options.vision_scale = p.vision;
    failing_sweep(open_once, &p);
    piped_free(&p);
}
END_TEST

TEST_MAIN_WITH("stage_times", traps_on, NULL, reference_micro_batches_cost_what_their_layers_sum_to,
               scales_speeds_links_and_recomputation_by_hand, chunks_of_one_stage_send_nothing,
               filling_in_other_micro_batches_is_opening_anew, live_sums_are_the_largest,
               no_simulated_peak_passes_the_bound, peak_bytes_by_hand, bytes_and_times_saturate,
               every_option_out_of_range_is_named, nothing_leaks_when_memory_is_short)

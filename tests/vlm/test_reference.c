/* Times of any pack, scaled from the reference, against layers derived for that very pack. */
#include <math.h>

#include "vlm_runs.h"

static hbp_layers *derive(const fixture *f, const hbp__vlm_size *size)
{
    hbp_vlm_layers_options o = {.struct_size = sizeof o};
    hbp_layers *layers = NULL;
    o.tensor_parallel = f->options.tensor_parallel;
    o.data_parallel = f->options.data_parallel;
    o.vision = size->vision;
    o.tokens = size->tokens;
    o.squares = size->squares;
    OK(f->context, hbp_vlm_create_layers(f->context, f->vlm, f->machine, &o, &layers));
    return layers;
}

static double time_of(const hbp_layers *layers, int32_t type)
{
    double sum = 0;
    for (int32_t i = 0; i < layers->count; i++)
        if (layers->type[i] == type)
            sum += (double)(layers->forward_ns[i] + layers->backward_ns[i]);
    return sum;
}

/* A column of derived layers is rounded to half a unit, and so is the reference's, scaled. `constant`: what
 * does not grow, the latency of exchanges among tensor-parallel GPUs, is scaled with the rest. */
static void check_scaled(double scaled, double own, double roundings, double constant, double scale)
{
    double tolerance = roundings * (1 + scale) / 2 + 1 + constant * (1 + scale);
    ck_assert_msg(fabs(scaled - own) <= tolerance, "%.0f instead of %.0f; within %.0f", scaled, own,
                  tolerance);
}

START_TEST_IN_CONTEXT(times_of_any_pack)
{
    static const char *const names[] = {"internvl-1.5-26b", "qwen2-vl-7b"};
    hbp__rng rng = hbp__rng_make(1, 0, 0);
    for (int turn = 0, mark = keep_mark(); turn < 60; keep_release(mark), turn++) {
        fixture f = setup(context, 8);
        MAKES(context, f.vlm, hbp_vlm_create_preset(context, names[turn % 2], &f.vlm));
        f.options.tensor_parallel = 1 << hbp__rng_below(&rng, 3);
        f.options.data_parallel = 2;
        hbp__vlm_run run = open_run(&f);
        hbp__vlm_size mean = {1 + (double)hbp__rng_below(&rng, 40), 500 + (double)hbp__rng_below(&rng, 9000),
                              0};
        mean.squares = mean.tokens * mean.tokens / (1 + (double)hbp__rng_below(&rng, 6));
        hbp__vlm_reference r;
        OK(f.context, hbp__vlm_reference_open(&run, &mean, &r));
        ck_assert_double_gt(r.square_ns, 0);
        double columns = 2.0 * r.layers->count;
        const hbp__vlm_size nearly_none = {1e-9, 1e-9, 1e-9};
        hbp_layers *idle = derive(&f, &nearly_none);
        double latency[2] = {time_of(idle, HBP_LAYER_VISION), time_of(idle, HBP_LAYER_LANGUAGE)};
        hbp_layers_free(idle);
        if (f.options.tensor_parallel == 1) {
            ck_assert_double_le(latency[0], columns);
            ck_assert_double_le(latency[1], columns);
        }
        /* Less than a tenth even of packs of 500 tokens. */
        ck_assert_double_lt(latency[1], .1 * time_of(r.layers, HBP_LAYER_LANGUAGE));
        for (int pack = 0; pack < 8; pack++) {
            /* Vision, tokens and squares each alone, then together. */
            hbp__vlm_size size = mean;
            double by[3];
            for (int k = 0; k < 3; k++)
                by[k] = pack % 4 == k || pack % 4 == 3 ? .05 + (double)hbp__rng_below(&rng, 3000) / 1000 : 1;
            size.vision *= by[0];
            size.tokens *= by[1];
            size.squares *= by[2];
            hbp_layers *own = derive(&f, &size);
            double vision = time_of(r.layers, HBP_LAYER_VISION) * hbp__vlm_vision_scale(&r, &size);
            double language = time_of(r.layers, HBP_LAYER_LANGUAGE) * hbp__vlm_token_time_scale(&r, &size);
            check_scaled(vision, time_of(own, HBP_LAYER_VISION), columns, latency[0], by[0]);
            /* b is the quotient of a difference of two rounded sums. */
            check_scaled(language, time_of(own, HBP_LAYER_LANGUAGE), 2 * columns, latency[1], by[1] + by[2]);
            ck_assert_double_eq_tol(language, r.token_ns * size.tokens + r.square_ns * size.squares, 1);
            for (int32_t i = 0; i < own->count; i++) {
                double scale = r.layers->type[i] == HBP_LAYER_VISION ? hbp__vlm_vision_scale(&r, &size)
                                                                     : hbp__vlm_token_scale(&r, &size);
                check_scaled((double)r.layers->activation_bytes[i] * scale, (double)own->activation_bytes[i],
                             2, 0, scale);
                check_scaled((double)r.layers->recomputed_bytes[i] * scale, (double)own->recomputed_bytes[i],
                             2, 0, scale);
                check_scaled((double)r.layers->cut_bytes[i] * scale, (double)own->cut_bytes[i], 2, 0, scale);
                ck_assert_int_eq(r.layers->state_bytes[i], own->state_bytes[i]);
            }
            hbp_layers_free(own);
        }
        hbp__vlm_reference_close(&r);
        ck_assert_ptr_null(r.layers);
    }
}
END_TEST

/* What measured layers tell of nothing but their own size: no squares, and scales in units and tokens. */
START_TEST_IN_CONTEXT(measured_layers_are_taken_as_they_are)
{
    hbp__rng rng = hbp__rng_make(2, 0, 0);
    fixture f = setup(context, 8);
    hbp_layers *layers = draw_measured(f.context, &rng, 9);
    f.options.layers = layers;
    f.options.layers_vision = 4;
    f.options.layers_tokens = 1024;
    hbp__vlm_run run = open_run(&f);
    const hbp__vlm_size mean = {17, 5000, 1e7}, size = {10, 3072, 5e6};
    hbp__vlm_reference r;
    OK(f.context, hbp__vlm_reference_open(&run, &mean, &r));
    ck_assert_ptr_eq(r.layers, layers);
    ck_assert_double_eq(r.mean.vision, 4);
    ck_assert_double_eq(r.mean.tokens, 1024);
    ck_assert_double_eq(r.square_ns, 0);
    ck_assert_double_eq(hbp__vlm_vision_scale(&r, &size), 2.5);
    ck_assert_double_eq(hbp__vlm_token_scale(&r, &size), 3);
    ck_assert_double_eq_tol(hbp__vlm_token_time_scale(&r, &size), 3, 1e-12);
    ck_assert_double_eq_tol(r.vision_ns * 4, time_of(layers, HBP_LAYER_VISION), 1e-6);
    ck_assert_double_eq_tol(r.token_ns * 1024, time_of(layers, HBP_LAYER_LANGUAGE), 1e-6);
    ck_assert_double_eq(r.fixed_ns, time_of(layers, HBP_LAYER_FIXED));
    hbp__vlm_reference_close(&r);
    hbp_layers_free(layers);
    /* Layers without time of language: their scale is still one of tokens. */
    const int64_t forward[2] = {5, 5}, none[2] = {0, 0};
    const int32_t type[2] = {HBP_LAYER_VISION, HBP_LAYER_LANGUAGE};
    hbp_layer_columns c = {.struct_size = sizeof c};
    c.count = 2;
    c.type = type;
    for (int turn = 0; turn < 2; turn++) {
        c.forward_ns = turn ? none : forward;
        c.type = turn ? type : (const int32_t[]){HBP_LAYER_VISION, HBP_LAYER_VISION};
        OK(f.context, hbp_layers_create(f.context, &c, &layers));
        run.options.layers = layers;
        OK(f.context, hbp__vlm_reference_open(&run, &mean, &r));
        ck_assert_double_eq(hbp__vlm_token_time_scale(&r, &size), 3);
        hbp__vlm_reference_close(&r);
        hbp_layers_free(layers);
    }
}
END_TEST

static hbp_status open_reference(hbp_context *context, void *user)
{
    const fixture *f = user;
    hbp__vlm_run run;
    hbp__vlm_reference r;
    const hbp__vlm_size mean = {9, 4096, 4e6};
    HBP__TRY(hbp__vlm_open(context, f->lengths, f->vlm, f->machine, &f->options, &run));
    hbp_status status = hbp__vlm_reference_open(&run, &mean, &r);
    ck_assert_int_eq(r.layers != NULL, status >= 0);
    hbp__vlm_reference_close(&r);
    return status;
}

START_TEST_IN_CONTEXT(failing_allocations)
{
    fixture f = setup(context, 8);
    failing_sweep(open_reference, &f);
}
END_TEST

TEST_MAIN("reference", times_of_any_pack, measured_layers_are_taken_as_they_are, failing_allocations)

/* The two bounds against random stages, orders and recomputation. */
#include "base/checked.h"
#include "base/methods.h"
#include "vlm_runs.h"

static int64_t bound_of(const hbp__vlm_run *run, const hbp__vlm_reference *reference, const hbp_plan *data)
{
    int64_t ns = -1;
    OK(run->context, hbp__vlm_bound(run, reference, data, &ns));
    return ns;
}

static int64_t packs_bound_of(const hbp__vlm_run *run, const hbp__vlm_reference *reference,
                              const hbp_plan *data)
{
    int64_t ns = -1;
    OK(run->context, hbp__vlm_packs_bound(run, reference, data, &ns));
    return ns;
}

static void draw_cuts(hbp__rng *rng, int32_t count, int32_t chunks, int32_t *cuts)
{
    first_cuts(count, chunks, cuts);
    for (uint64_t skip = hbp__rng_below(rng, 200); skip; skip--)
        if (!next_cuts(count, chunks, cuts))
            first_cuts(count, chunks, cuts);
}

static void draw_order(hbp__rng *rng, int32_t count, int32_t *order)
{
    for (int32_t i = 0; i < count; i++)
        order[i] = i;
    for (int32_t i = count - 1; i > 0; i--) {
        int32_t j = (int32_t)hbp__rng_below(rng, (uint64_t)i + 1), kept = order[i];
        order[i] = order[j];
        order[j] = kept;
    }
}

/* All steps under these cuts; orders drawn at random unless `rng` is NULL. */
static int64_t run_epoch(const small *s, const int32_t *cuts, const int32_t *recompute, hbp__rng *rng)
{
    int64_t sum = 0;
    int32_t order[MOST_STEP];
    for (int64_t step = 0; step < s->data->steps; step++) {
        int32_t count = (int32_t)(s->data->step_offsets[step + 1] - s->data->step_offsets[step]);
        if (rng)
            draw_order(rng, count, order);
        sum +=
            simulate_step(&s->run, &s->reference, s->data, step, cuts, recompute, rng ? order : NULL, NULL);
    }
    return sum;
}

static double try_many(hbp__rng *rng, int32_t way, int32_t virtual_stages)
{
    int32_t stages = 1 + (int32_t)hbp__rng_below(rng, 4), turns = stages > 1 ? virtual_stages : 1;
    int32_t layers = stages * turns + (int32_t)hbp__rng_below(rng, 5) + 1;
    small s = small_setup(rng, layers, stages, turns, 1 + (int32_t)hbp__rng_below(rng, 2), way);
    /* Links only add. */
    if (hbp__rng_below(rng, 2))
        s.run.link_bytes_per_s = 0;
    int64_t bound = bound_of(&s.run, &s.reference, s.data);
    int64_t packs = packs_bound_of(&s.run, &s.reference, s.data), least = INT64_MAX;
    ck_assert_int_gt(bound, 0);
    ck_assert_int_ge(packs, bound);
    for (int turn = 0; turn < 12; turn++) {
        int32_t cuts[MOST_MEASURED + 1], choices[MOST_MEASURED];
        draw_cuts(rng, layers, stages * turns, cuts);
        for (int32_t i = 0; i < layers; i++)
            choices[i] = (int32_t)hbp__rng_below(rng, HBP_RECOMPUTE_CHOICES);
        int64_t ns = run_epoch(&s, cuts, turn % 3 ? NULL : choices, rng);
        ck_assert_msg(ns >= packs, "%lld ns; bound %lld", (long long)ns, (long long)packs);
        least = hbp__min_i64(least, ns);
    }
    small_teardown(&s);
    return (double)least / (double)packs;
}

START_TEST(nothing_beats_the_bounds)
{
    hbp__rng rng = hbp__rng_make(1, 0, 0);
    double closest = 1e9;
    for (int turn = 0; turn < 240; turn++) {
        double over = try_many(&rng, turn % 5, 1 + turn % 2);
        closest = over < closest ? over : closest;
    }
    ck_assert_double_lt(closest, 1.0001);
}
END_TEST

/* One stage and one replica have nothing to wait for: the bound is the work of all micro-batches, term by
 * term, less what rounding may have gained. */
START_TEST(the_bound_of_one_stage_is_its_work)
{
    hbp__rng rng = hbp__rng_make(7, 0, 0);
    for (int32_t way = 0; way < 5; way++) {
        small s = small_setup(&rng, 5, 1, 1, 1, way);
        const hbp__vlm_reference *r = &s.reference;
        double work = 0, micro_batches = (double)s.data->micro_batches;
        for (int64_t p = 0; p < s.data->micro_batches; p++) {
            hbp__vlm_size size = hbp__vlm_row_size(&s.run, s.data, p);
            work += r->vision_ns * size.vision + r->token_ns * size.tokens + r->square_ns * size.squares +
                    r->fixed_ns;
        }
        double bound = (double)packs_bound_of(&s.run, r, s.data);
        ck_assert_double_le(bound, work);
        ck_assert_double_ge(bound, work * (1 - 2e-9) - 3 * (micro_batches + (double)s.data->steps));
        small_teardown(&s);
    }
}
END_TEST

/* Stages that share the work alike, micro-batches that are alike: T is known, and what of it is bound. */
static hbp_layers *even_layers(hbp_context *context, int32_t count)
{
    int64_t forward[MOST_MEASURED];
    int32_t type[MOST_MEASURED];
    for (int32_t i = 0; i < count; i++) {
        forward[i] = 1000000;
        type[i] = HBP_LAYER_FIXED;
    }
    hbp_layer_columns c = {.struct_size = sizeof c};
    c.count = count;
    c.forward_ns = forward;
    c.type = type;
    hbp_layers *layers = NULL;
    OK(context, hbp_layers_create(context, &c, &layers));
    return layers;
}

/* Layers of fixed time alone: M alike micro-batches of X = 3 S ms take 3 (M + S - 1) ms on S even stages. The
 * bound is their sum over sum (1 - 1/M)^k: equal for one stage and for one micro-batch, and never less than
 * S / M of all too little for others. */
START_TEST(how_close_alike_micro_batches_come)
{
    for (int32_t stages = 1; stages <= 8; stages++)
        for (int32_t count = 1; count <= 32; count *= 2) {
            hbp__rng rng = hbp__rng_make(3, 0, 0);
            small s = small_setup(&rng, 8, 1, 1, 1, HBP__VLM_DATA_PACKED);
            hbp__vlm_reference_close(&s.reference);
            hbp_layers_free(s.layers);
            s.layers = even_layers(s.f.context, stages);
            s.run.options.layers = s.layers;
            s.run.options.pipeline_stages = stages;
            s.run.link_bytes_per_s = 0;
            hbp__vlm_size mean = hbp__vlm_mean(&s.packs);
            OK(s.f.context, hbp__vlm_reference_open(&s.run, &mean, &s.reference));
            hbp_plan_free(s.data);
            s.data = NULL;
            OK(s.f.context, hbp__vlm_deal(&s.run, &s.packs, &s.reference, count, &s.data));
            int32_t cuts[MOST_MEASURED + 1];
            double known = 0, bound = 0;
            first_cuts(stages, stages, cuts);
            for (int64_t i = 0; i < s.data->steps; i++) {
                double m = (double)(s.data->step_offsets[i + 1] - s.data->step_offsets[i]), kept = 1,
                       waits = 0;
                for (int32_t k = 0; k < stages; k++, kept *= 1 - 1 / m)
                    waits += kept;
                known += 3e6 * (m + stages - 1);
                bound += 3e6 * m * stages / waits;
            }
            int64_t packs = packs_bound_of(&s.run, &s.reference, s.data);
            ck_assert_double_eq((double)run_epoch(&s, cuts, NULL, NULL), known);
            ck_assert_double_eq_tol((double)packs, bound, bound * 1e-6 + (double)s.data->micro_batches * 32);
            ck_assert_double_le((double)packs, known);
            if (stages == 1 || count == 1)
                ck_assert_double_ge((double)packs, known * .9999);
            /* 1 / e of a full pipeline's work is all that is lost where S = M. */
            ck_assert_double_ge((double)packs, known * .7);
            s.run.options.virtual_stages = 2;
            ck_assert_int_le(packs_bound_of(&s.run, &s.reference, s.data), packs);
            small_teardown(&s);
        }
}
END_TEST

/* A chunk gives back a ns for each micro-batch, half of it for each direction, and nothing else is lost. */
START_TEST(the_bound_gives_back_what_chunks_round)
{
    hbp__rng rng = hbp__rng_make(11, 0, 0);
    for (int32_t way = 0; way < 5; way++) {
        small s = small_setup(&rng, 8, 1, 1, 1, way);
        const hbp__vlm_reference *r = &s.reference;
        double work = 0;
        for (int64_t p = 0; p < s.data->packs; p++)
            work += r->vision_ns * (double)s.data->pack_vision[p] +
                    r->token_ns * (double)s.data->pack_tokens[p] +
                    r->square_ns * (double)s.data->pack_squares[p];
        for (int32_t stages = 1; stages <= 4; stages++)
            for (int32_t turns = 1; turns <= 3; turns++) {
                s.run.options.pipeline_stages = stages;
                s.run.options.virtual_stages = turns;
                double given = (double)(stages * turns * s.data->micro_batches);
                ck_assert_double_eq_tol((double)bound_of(&s.run, r, s.data),
                                        work / stages * (1 - 1e-9) - given, 1.5);
            }
        s.run.options.pipeline_stages = s.run.options.virtual_stages = 1;
        small_teardown(&s);
    }
}
END_TEST

/* Padding, uneven ranks and recomputation are no work of the samples: the bound of samples does not see how
 * they are dealt. */
START_TEST_IN_CONTEXT(the_bound_of_samples_is_of_samples_alone)
{
    int64_t bound[5];
    for (int32_t way = 0; way < 5; way++) {
        fixture f = setup(context, 200);
        hbp__rng rng = hbp__rng_make(4, 0, 0);
        f.options.data_method = hbp__vlm_data_name(way);
        f.options.max_vision = 18;
        f.options.max_tokens = 6016;
        f.options.layers = draw_measured(f.context, &rng, 8);
        f.options.layers_vision = 4;
        f.options.layers_tokens = 1024;
        hbp__vlm_run run = open_run(&f);
        hbp__vlm_packs packs;
        hbp__vlm_reference r;
        hbp_plan *data = NULL;
        OK(f.context, hbp__vlm_fill(&run, 4, &packs));
        hbp__vlm_size mean = hbp__vlm_mean(&packs);
        OK(f.context, hbp__vlm_reference_open(&run, &mean, &r));
        OK(f.context, hbp__vlm_deal(&run, &packs, &r, 4, &data));
        bound[way] = bound_of(&run, &r, data);
        double work = 0, all = (double)run.options.pipeline_stages * run.options.data_parallel;
        for (int64_t i = 0; i < 200; i++)
            work += r.vision_ns * f.lengths->vision[i] + r.token_ns * (double)hbp__lengths_get(f.lengths, i);
        ck_assert_double_eq_tol((double)bound[way], work / all, work / all * 1e-5);
        hbp_plan_free(data);
        hbp__vlm_reference_close(&r);
        hbp__vlm_packs_close(&packs);
        hbp_layers *layers = (hbp_layers *)(uintptr_t)f.options.layers;
        hbp_layers_free(layers);
    }
}
END_TEST

TEST_MAIN("bound", nothing_beats_the_bounds, the_bound_of_one_stage_is_its_work,
          how_close_alike_micro_batches_come, the_bound_gives_back_what_chunks_round,
          the_bound_of_samples_is_of_samples_alone)

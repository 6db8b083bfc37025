/* Vision-language runs for the tests: drawn samples, the published configuration, small measured layers. */
#ifndef HBP_TESTS_VLM_RUNS_H
#define HBP_TESTS_VLM_RUNS_H

#include "base/methods.h"
#include "base/rng.h"
#include "data/plan/plan.h"
#include "failing.h"
#include "keep.h"
#include "vlm/vlm.h"

/* Samples of `least` to 5 tiles, 256 tokens a tile and some text. */
static inline hbp_lengths *draw_samples(hbp_context *context, uint64_t seed, int64_t count, uint32_t least)
{
    hbp__rng rng = hbp__rng_make(seed, 0, 0);
    uint32_t *tokens = malloc((size_t)count * sizeof *tokens),
             *vision = malloc((size_t)count * sizeof *vision);
    ck_assert(tokens && vision);
    for (int64_t i = 0; i < count; i++) {
        vision[i] = least + hbp__rng_below(&rng, 6 - least);
        tokens[i] = 256 * vision[i] + 20 + hbp__rng_below(&rng, 600);
    }
    hbp_lengths_options options = {.struct_size = sizeof options};
    options.vision = vision;
    hbp_lengths *lengths = NULL;
    OK(context, hbp_lengths_create_u32(context, tokens, count, &options, &lengths));
    free(tokens);
    free(vision);
    return lengths;
}

static inline hbp_lengths *draw_lengths(hbp_context *context, uint64_t seed, int64_t count)
{
    return draw_samples(context, seed, count, 1);
}

typedef struct fixture {
    hbp_context *context;
    hbp_lengths *lengths;
    hbp_vlm *vlm;
    hbp_machine *machine;
    hbp_vlm_options options;
} fixture;

/* The published configuration on 32 GPUs: two replicas. */
static inline fixture setup(hbp_context *context, int64_t samples)
{
    fixture f = {.context = context};
    f.lengths = keep(draw_lengths(context, 1, samples));
    MAKES(context, f.vlm, hbp_vlm_create_preset(context, "internvl-1.5-26b", &f.vlm));
    MAKES(context, f.machine, hbp_machine_create_preset(context, "a100-80:4", &f.machine));
    f.options = (hbp_vlm_options){.struct_size = sizeof f.options};
    f.options.tensor_parallel = 4;
    f.options.pipeline_stages = 4;
    f.options.batch_samples = 64;
    return f;
}

/* The run that hbp_plan_vlm would work on. */
static inline hbp__vlm_run open_run(const fixture *f)
{
    hbp__vlm_run run;
    OK(f->context, hbp__vlm_open(f->context, f->lengths, f->vlm, f->machine, &f->options, &run));
    return run;
}

#define MOST_MEASURED 20

/* `count` layers as if measured at 4 units and 1024 tokens, of all kinds, vision first; all they keep, and
 * what less of it when they recompute. */
static inline hbp_layers *draw_measured(hbp_context *context, hbp__rng *rng, int32_t count)
{
    int64_t column[10][MOST_MEASURED];
    int32_t type[MOST_MEASURED], vision = 1 + (int32_t)hbp__rng_below(rng, (uint64_t)count - 1);
    ck_assert_int_le(count, MOST_MEASURED);
    for (int32_t i = 0; i < count; i++) {
        type[i] = i < vision ? HBP_LAYER_VISION : HBP_LAYER_LANGUAGE;
        if (!hbp__rng_below(rng, 8))
            type[i] = HBP_LAYER_FIXED;
        int64_t kept = 20000 + (int64_t)hbp__rng_below(rng, 80000);
        column[0][i] = 100000 + (int64_t)hbp__rng_below(rng, 900000);    /* forward_ns */
        column[1][i] = column[0][i] * 2;                                 /* backward_ns */
        column[2][i] = (int64_t)hbp__rng_below(rng, 30000);              /* state_bytes */
        column[3][i] = kept;                                             /* activation_bytes */
        column[4][i] = (int64_t)hbp__rng_below(rng, (uint64_t)kept / 4); /* recomputed_bytes */
        column[5][i] = (int64_t)hbp__rng_below(rng, (uint64_t)kept / 2); /* attention_bytes */
        column[6][i] = column[0][i] / 3;                                 /* attention_ns */
        column[7][i] = (int64_t)hbp__rng_below(rng, (uint64_t)kept / 2); /* mlp_bytes */
        column[8][i] = column[0][i] / 2;                                 /* mlp_ns */
    }
    for (int32_t i = 0; i < count; i++)
        column[9][i] = (int64_t)hbp__rng_below(rng, 150000); /* working_bytes */
    hbp_layer_columns c = {.struct_size = sizeof c};
    c.working_bytes = hbp__rng_below(rng, 2) ? column[9] : NULL;
    c.count = count;
    c.type = type;
    c.forward_ns = column[0];
    c.backward_ns = column[1];
    c.state_bytes = column[2];
    c.activation_bytes = column[3];
    c.recomputed_bytes = column[4];
    c.attention_bytes = column[5];
    c.attention_ns = column[6];
    c.mlp_bytes = column[7];
    c.mlp_ns = column[8];
    c.cut_bytes = column[3];
    hbp_layers *layers = NULL;
    OK(context, hbp_layers_create(context, &c, &layers));
    return layers;
}

/* A small run of measured layers: `replicas` of `stages` stages, a few steps of packs. */
typedef struct small {
    fixture f;
    hbp_layers *layers;
    hbp__vlm_run run;
    hbp__vlm_packs packs;
    hbp__vlm_reference reference;
    hbp_plan *data;
} small;

static inline small small_setup(hbp__rng *rng, int32_t layers, int32_t stages, int32_t virtual_stages,
                                int32_t replicas, int32_t way)
{
    small s = {.f = {.context = test_context()}};
    fixture *f = &s.f;
    f->lengths = draw_samples(f->context, hbp__rng_next(rng), 20 + (int64_t)hbp__rng_below(rng, 60), 0);
    OK(f->context, hbp_vlm_create_preset(f->context, "internvl-1.5-26b", &f->vlm));
    OK(f->context, hbp_machine_create_preset(f->context, "a100-80:4", &f->machine));
    s.layers = draw_measured(f->context, rng, layers);
    hbp_vlm_options *o = &f->options;
    *o = (hbp_vlm_options){.struct_size = sizeof *o};
    o->data_method = hbp__vlm_data_name(way);
    o->pipeline_stages = stages;
    o->virtual_stages = virtual_stages;
    o->data_parallel = replicas;
    o->micro_batches = stages * (1 + (int32_t)hbp__rng_below(rng, 3));
    o->samples = 2;
    o->max_vision = 8 + (int64_t)hbp__rng_below(rng, 3);
    o->max_tokens = 2300 + (int64_t)hbp__rng_below(rng, 1000);
    o->layers = s.layers;
    o->layers_vision = 4;
    o->layers_tokens = 1024;
    s.run = open_run(f);
    OK(f->context, hbp__vlm_fill(&s.run, 2, &s.packs));
    hbp__vlm_size mean = hbp__vlm_mean(&s.packs);
    OK(f->context, hbp__vlm_reference_open(&s.run, &mean, &s.reference));
    OK(f->context,
       hbp__vlm_deal(&s.run, &s.packs, &s.reference, hbp__vlm_micro_batches(&s.run, &s.packs), &s.data));
    return s;
}

static inline void small_teardown(small *s)
{
    hbp_plan_free(s->data);
    hbp__vlm_reference_close(&s->reference);
    hbp__vlm_packs_close(&s->packs);
    hbp_layers_free(s->layers);
    hbp_machine_free(s->f.machine);
    hbp_vlm_free(s->f.vlm);
    hbp_lengths_free(s->f.lengths);
    hbp_context_free(s->f.context);
}

/* The pipeline of one replica in one step, from the plan's columns alone: scales against what the layers were
 * measured for. */
#define MOST_STEP 64
typedef struct scales {
    double vision[MOST_STEP], tokens[MOST_STEP], times[MOST_STEP];
    hbp_pipeline_options options;
} scales;

static inline void read_scales(const hbp__vlm_run *run, const hbp__vlm_reference *r, const hbp_plan *data,
                               int64_t step, int32_t replica, scales *out)
{
    int64_t first = data->step_offsets[step], count = data->step_offsets[step + 1] - first;
    int padded = hbp__vlm_data_method(run->options.data_method) >= HBP__VLM_DATA_RANDOM;
    double whole = r->token_ns * r->mean.tokens + r->square_ns * r->mean.squares;
    ck_assert_int_le(count, MOST_STEP);
    hbp_pipeline_options *o = &out->options;
    *o = (hbp_pipeline_options){.struct_size = sizeof *o};
    o->stages = run->options.pipeline_stages;
    o->virtual_stages = run->options.virtual_stages;
    o->micro_batches = (int32_t)count;
    o->vision_scale = out->vision;
    o->token_scale = out->tokens;
    o->token_time_scale = out->times;
    o->link_bytes_per_s = run->link_bytes_per_s;
    o->link_latency_ns = run->link_latency_ns;
    for (int64_t m = 0; m < count; m++) {
        int64_t p = data->micro_batch_offsets[first + m] + replica;
        ck_assert_int_eq(data->pack_ranks[p], replica);
        int64_t begin = data->pack_offsets[p], rows = data->pack_offsets[p + 1] - begin;
        double vision = 0, tokens = 0, squares = 0, longest = 0;
        for (int64_t i = begin; i < begin + rows; i++) {
            double length = data->sample_tokens[i];
            vision += data->sample_vision[i];
            tokens += length;
            squares += length * length;
            longest = length > longest ? length : longest;
        }
        if (padded) {
            tokens = longest * (double)rows;
            squares = longest * longest * (double)rows;
        }
        out->vision[m] = vision / r->mean.vision;
        out->tokens[m] = tokens / r->mean.tokens;
        out->times[m] = whole > 0 ? (r->token_ns * tokens + r->square_ns * squares) / whole : out->tokens[m];
    }
}

/* One step through hbp_simulate_pipeline, of the slowest replica; `order` [M] may be NULL. */
static inline int64_t simulate_step(const hbp__vlm_run *run, const hbp__vlm_reference *r,
                                    const hbp_plan *data, int64_t step, const int32_t *cuts,
                                    const int32_t *recompute, const int32_t *order, int64_t *busy)
{
    static scales s;
    int64_t slowest = 0, stages;
    for (int32_t d = 0; d < run->options.data_parallel; d++) {
        hbp_pipeline_run *ran = NULL;
        hbp_pipeline_summary summary = {.struct_size = sizeof summary};
        read_scales(run, r, data, step, d, &s);
        s.options.recompute = recompute;
        OK(run->context, hbp_simulate_pipeline(run->context, r->layers, cuts, &s.options, order, &ran));
        OK(run->context, hbp_pipeline_run_get_summary(run->context, ran, &summary));
        slowest = summary.total_ns > slowest ? summary.total_ns : slowest;
        stages = pipeline_run_view(ran).stages;
        const int64_t *of = pipeline_run_view(ran).stage_busy_ns;
        for (int64_t i = 0; busy && i < stages; i++)
            *busy += of[i];
        hbp_pipeline_run_free(ran);
    }
    return slowest;
}

/* Cuts one after another, earlier ones first; begin with 0, 1, 2, ..., count. */
static inline void first_cuts(int32_t count, int32_t chunks, int32_t *cuts)
{
    for (int32_t c = 0; c < chunks; c++)
        cuts[c] = c;
    cuts[chunks] = count;
}

static inline int next_cuts(int32_t count, int32_t chunks, int32_t *cuts)
{
    int32_t c = chunks - 1;
    while (c > 0 && cuts[c] == count - (chunks - c))
        c--;
    if (c <= 0)
        return 0;
    cuts[c]++;
    for (int32_t q = c + 1; q < chunks; q++)
        cuts[q] = cuts[q - 1] + 1;
    return 1;
}

#endif

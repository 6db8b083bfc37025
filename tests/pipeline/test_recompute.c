#include "failing.h"

#include "base/checked.h"
#include "base/rng.h"
#include "pipeline/recompute.h"
#include "simulate/stage_times.h"

#define MOST_LAYERS 5000
#define MOST_MICRO  12

/* Layers, cuts and options drawn at random. */
typedef struct instance {
    hbp_layers *layers;
    hbp_pipeline_options pipeline;
    hbp_recompute_options options;
    int32_t cuts[64];
    double vision[MOST_MICRO], tokens[MOST_MICRO], times[MOST_MICRO];
    int64_t limit[8];
    int32_t choices[MOST_LAYERS];
    hbp_recompute_report report;
} instance;

static int64_t up_to(hbp__rng *rng, int64_t most)
{
    return hbp__rng_below(rng, (uint64_t)most + 1);
}

static hbp_layers *draw_layers(hbp_context *context, hbp__rng *rng, int32_t count, int32_t kinds,
                               int64_t most)
{
    enum { COLUMNS = 9 };
    static int64_t column[COLUMNS][MOST_LAYERS];
    static int32_t kind[MOST_LAYERS];
    uint64_t seed = hbp__rng_next(rng);
    for (int32_t i = 0; i < count; i++) {
        uint64_t which = kinds ? hbp__rng_below(rng, (uint64_t)kinds) : (uint64_t)i;
        hbp__rng own = hbp__rng_make(seed, which, 0);
        int64_t whole = up_to(&own, most);
        kind[i] = (int32_t)hbp__rng_below(&own, HBP_LAYER_KINDS);
        column[0][i] = up_to(&own, most);                               /* forward_ns */
        column[1][i] = up_to(&own, most);                               /* state_bytes */
        column[2][i] = whole;                                           /* activation_bytes */
        column[3][i] = up_to(&own, 2) ? up_to(&own, whole / 4) : whole; /* recomputed_bytes */
        column[4][i] = up_to(&own, most);                               /* working_bytes */
        column[5][i] = up_to(&own, 1) ? up_to(&own, whole / 2) : 0;     /* attention_bytes */
        column[6][i] = up_to(&own, most / 2);                           /* attention_ns */
        column[7][i] = up_to(&own, 1) ? up_to(&own, whole / 2) : 0;     /* mlp_bytes */
        column[8][i] = up_to(&own, most / 2);                           /* mlp_ns */
    }
    hbp_layer_columns c;
    hbp_layer_columns_init(&c, sizeof c);
    c.count = count;
    c.kind = kind;
    c.forward_ns = column[0];
    c.state_bytes = column[1];
    c.activation_bytes = column[2];
    c.recomputed_bytes = column[3];
    c.working_bytes = hbp__rng_below(rng, 2) ? column[4] : NULL;
    c.attention_bytes = column[5];
    c.attention_ns = column[6];
    c.mlp_bytes = column[7];
    c.mlp_ns = column[8];
    hbp_layers *layers = NULL;
    OK(context, hbp_layers_create(context, &c, &layers));
    return layers;
}

static void draw(hbp_context *context, instance *t, hbp__rng *rng, int32_t per_chunk, int32_t kinds,
                 int64_t most)
{
    memset(t, 0, sizeof *t);
    hbp_pipeline_options_init(&t->pipeline, sizeof t->pipeline);
    hbp_recompute_options_init(&t->options, sizeof t->options);
    hbp_recompute_report_init(&t->report, sizeof t->report);
    hbp_pipeline_options *p = &t->pipeline;
    p->stages = 1 + (int32_t)hbp__rng_below(rng, 3);
    p->virtual_stages = (int32_t)hbp__rng_below(rng, 3);
    int32_t chunks = p->stages * hbp__pipeline_virtual(p);
    p->micro_batches = p->stages * (1 + (int32_t)hbp__rng_below(rng, 4));
    for (int32_t k = 0; k < chunks; k++)
        t->cuts[k + 1] = t->cuts[k] + 1 + (int32_t)hbp__rng_below(rng, (uint64_t)per_chunk);
    t->layers = draw_layers(context, rng, t->cuts[chunks], kinds, most);
    for (int32_t m = 0; m < p->micro_batches; m++) {
        t->vision[m] = (double)up_to(rng, 2000) / 1000;
        t->tokens[m] = (double)up_to(rng, 2000) / 1000;
        t->times[m] = (double)up_to(rng, 2000) / 1000;
    }
    if (hbp__rng_below(rng, 2)) {
        p->vision_scale = t->vision;
        p->token_scale = t->tokens;
        p->token_time_scale = hbp__rng_below(rng, 2) ? t->times : NULL;
    }
    t->options.selective = (int32_t)hbp__rng_below(rng, 5) - 1;
    p->limit_bytes = t->limit;
}

/* A limit for every stage between what it needs with nothing recomputed and half of that. */
static void limit(hbp_context *context, instance *t, hbp__rng *rng)
{
    hbp__live live;
    OK(context, hbp__live_open(context, &t->pipeline, &live));
    for (int32_t s = 0; s < t->pipeline.stages; s++) {
        int64_t all = hbp__stage_peak_bytes(t->layers, t->cuts, &t->pipeline, &live, NULL, s);
        t->limit[s] = all / 2 + up_to(rng, all / 2 + 1);
    }
    hbp__live_close(&live);
}

static hbp_status choose(hbp_context *context, instance *t, int32_t mode)
{
    t->options.mode = mode;
    return hbp_choose_recompute(context, t->layers, t->cuts, &t->pipeline, &t->options, t->choices,
                                &t->report);
}

static int may_choose(const instance *t, int32_t layer, int32_t choice)
{
    int32_t selective = t->options.selective == 0 ? 3 : t->options.selective < 0 ? 0 : t->options.selective;
    switch (choice) {
    case HBP_RECOMPUTE_ATTENTION:
        return (selective & HBP_SELECT_ATTENTION) && t->layers->attention_bytes[layer];
    case HBP_RECOMPUTE_MLP:
        return (selective & HBP_SELECT_MLP) && t->layers->mlp_bytes[layer];
    default:
        return 1;
    }
}

static int64_t added_ns(const instance *t, const int32_t *layer, int32_t count, const int32_t *choices)
{
    int64_t ns = 0;
    for (int32_t i = 0; i < count; i++) {
        int32_t l = layer ? layer[i] : i;
        ns += hbp__round_i64((double)hbp__layer_extra_ns(t->layers, l, choices[l]) *
                             hbp__mean_time_scale(&t->pipeline, t->layers->kind[l]));
    }
    return ns;
}

/* The layers of a stage, in order. */
static int32_t layers_of(const instance *t, int32_t stage, int32_t *layer)
{
    int32_t count = 0;
    for (int32_t k = stage; k < t->pipeline.stages * hbp__pipeline_virtual(&t->pipeline);
         k += t->pipeline.stages)
        for (int32_t i = t->cuts[k]; i < t->cuts[k + 1]; i++)
            layer[count++] = i;
    return count;
}

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

/* The choice fits, is allowed, and the report tells it. */
static void check_choice(hbp_context *context, const instance *t)
{
    hbp__live live;
    OK(context, hbp__live_open(context, &t->pipeline, &live));
    int64_t slack = INT64_MAX, all = 0;
    int32_t layer[MOST_LAYERS], choices[MOST_LAYERS], whole = 0, part = 0;
    for (int32_t s = 0; s < t->pipeline.stages; s++) {
        int64_t bytes = hbp__stage_peak_bytes(t->layers, t->cuts, &t->pipeline, &live, t->choices, s);
        ck_assert_msg(bytes <= t->limit[s], "stage %d: %lld of %lld", (int)s, (long long)bytes,
                      (long long)t->limit[s]);
        slack = t->limit[s] - bytes < slack ? t->limit[s] - bytes : slack;
        int32_t count = layers_of(t, s, layer);
        for (int32_t i = 0; i < count; i++) {
            ck_assert(may_choose(t, layer[i], t->choices[layer[i]]));
            choices[layer[i]] =
                hbp__recompute_frees(t->layers, layer[i]) ? HBP_RECOMPUTE_LAYER : HBP_RECOMPUTE_NONE;
            whole += t->choices[layer[i]] == HBP_RECOMPUTE_LAYER;
            part +=
                t->choices[layer[i]] == HBP_RECOMPUTE_ATTENTION || t->choices[layer[i]] == HBP_RECOMPUTE_MLP;
        }
        all += added_ns(t, layer, count, choices);
    }
    int64_t ns = added_ns(t, NULL, t->layers->count, t->choices);
    ck_assert_int_eq(t->report.recompute_ns, ns);
    ck_assert_int_eq(t->report.saved_ns, all - ns);
    ck_assert_int_eq(t->report.slack_bytes, slack);
    ck_assert_int_eq(t->report.recomputed, whole);
    ck_assert_int_eq(t->report.selective, part);
    hbp__live_close(&live);
}

START_TEST(equals_all_combinations)
{
    hbp_context *context = test_context();
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
        hbp_status status = choose(context, &t, HBP_MEMORY_OPTIMAL);
        if (lacking >= 0) {
            char text[64];
            ck_assert_int_eq(status, HBP_E_INFEASIBLE);
            snprintf(text, sizeof text, "stage %d needs ", (int)lacking);
            ck_assert_msg(strstr(hbp_context_message(context), text) != NULL, "%s",
                          hbp_context_message(context));
            snprintf(text, sizeof text, ", %lld too few", (long long)lacks);
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
    hbp_context_free(context);
}
END_TEST

/* Larger ones: no mode goes past the memory, and the best is never slower than the published rule, nor that
 * than recomputing all. */
START_TEST(never_over_memory)
{
    hbp_context *context = test_context();
    hbp__rng rng = hbp__rng_make(43, 0, 0);
    static instance t;
    int32_t counted[4] = {0}, faster = 0;
    for (int32_t n = 0; n < 1500; n++) {
        draw(context, &t, &rng, 30, n % 3 ? 4 : 0, 1000000000);
        limit(context, &t, &rng);
        int64_t ns[4] = {-1, -1, -1, -1};
        for (int32_t mode = HBP_MEMORY_OPTIMAL; mode <= HBP_MEMORY_NONE; mode++) {
            hbp_status status = choose(context, &t, mode);
            if (status == HBP_E_INFEASIBLE)
                continue;
            ck_assert_msg(status == HBP_OK, "run %d mode %d: %d %s", (int)n, (int)mode, (int)status,
                          hbp_context_message(context));
            check_choice(context, &t);
            ns[mode] = t.report.recompute_ns;
            counted[mode]++;
        }
        for (int32_t mode = HBP_MEMORY_PAPER; mode <= HBP_MEMORY_NONE; mode++)
            if (ns[mode] >= 0) {
                ck_assert_int_ge(ns[HBP_MEMORY_OPTIMAL], 0);
                ck_assert_int_le(ns[HBP_MEMORY_OPTIMAL], ns[mode]);
            }
        ck_assert((ns[HBP_MEMORY_PAPER] < 0) == (ns[HBP_MEMORY_ALL] < 0));
        ck_assert_int_le(ns[HBP_MEMORY_PAPER], ns[HBP_MEMORY_ALL]);
        faster += ns[HBP_MEMORY_OPTIMAL] < ns[HBP_MEMORY_PAPER];
        hbp_layers_free(t.layers);
    }
    for (int32_t mode = HBP_MEMORY_OPTIMAL; mode <= HBP_MEMORY_ALL; mode++)
        ck_assert_int_gt(counted[mode], 200);
    ck_assert_int_gt(faster, 200);
    hbp_context_free(context);
}
END_TEST

/* What is free with all recomputed, when it is told as measured, leads where the limit leads that it follows
 * from; the limit is then not read. */
START_TEST(measured_free_memory_is_a_limit)
{
    hbp_context *context = test_context();
    hbp__rng rng = hbp__rng_make(67, 0, 0);
    static instance t;
    int32_t same = 0;
    for (int32_t n = 0; n < 600; n++) {
        draw(context, &t, &rng, 12, n % 3, 1000000000);
        limit(context, &t, &rng);
        t.options.mode = n % 2 ? HBP_MEMORY_PAPER : HBP_MEMORY_OPTIMAL;
        hbp__live live;
        int64_t free_bytes[8];
        int32_t all[MOST_LAYERS], choices[MOST_LAYERS];
        for (int32_t i = 0; i < t.layers->count; i++)
            all[i] = hbp__recompute_frees(t.layers, i) ? HBP_RECOMPUTE_LAYER : HBP_RECOMPUTE_NONE;
        OK(context, hbp__live_open(context, &t.pipeline, &live));
        for (int32_t s = 0; s < t.pipeline.stages; s++)
            free_bytes[s] = t.limit[s] - hbp__stage_peak_bytes(t.layers, t.cuts, &t.pipeline, &live, all, s);
        hbp__live_close(&live);
        hbp_status status = choose(context, &t, t.options.mode);
        memcpy(choices, t.choices, sizeof choices);
        hbp_recompute_report report = t.report;
        t.options.measured_free_bytes = free_bytes;
        if (n % 5)
            t.pipeline.limit_bytes = NULL;
        ck_assert_int_eq(choose(context, &t, t.options.mode), status);
        if (status == HBP_OK) {
            ck_assert_mem_eq(&report, &t.report, sizeof report);
            ck_assert_mem_eq(choices, t.choices, (size_t)t.layers->count * sizeof *choices);
            same++;
        }
        hbp_layers_free(t.layers);
    }
    ck_assert_int_gt(same, 200);
    hbp_context_free(context);
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

START_TEST(a_thousand_layers_are_proven)
{
    hbp_context *context = test_context();
    hbp__rng rng = hbp__rng_make(47, 0, 0);
    static instance t;
    for (int32_t n = 0; n < 3; n++) {
        one_stage(context, &t, &rng, 1000, 7 + n);
        ck_assert_int_eq(choose(context, &t, HBP_MEMORY_OPTIMAL), HBP_OK);
        ck_assert_int_eq(t.report.proven, 1);
        ck_assert_int_gt(t.report.recompute_ns, 0);
        check_choice(context, &t);
        hbp_layers_free(t.layers);
    }
    hbp_context_free(context);
}
END_TEST

START_TEST(too_many_to_prove_still_fit)
{
    hbp_context *context = test_context();
    hbp__rng rng = hbp__rng_make(48, 0, 0);
    static instance t;
    one_stage(context, &t, &rng, 5000, 8);
    ck_assert_int_eq(choose(context, &t, HBP_MEMORY_OPTIMAL), HBP_NOT_PROVEN);
    ck_assert_int_eq(t.report.proven, 0);
    check_choice(context, &t);
    int64_t ns = t.report.recompute_ns;
    OK(context, choose(context, &t, HBP_MEMORY_PAPER));
    ck_assert_int_lt(ns, t.report.recompute_ns);
    hbp_layers_free(t.layers);
    hbp_context_free(context);
}
END_TEST

/* Two stages of vision, vision, language, language; with 4 micro-batches stage 0 keeps 2 of them, stage 1
 * one. Vision keeps 30 of which 10 are input, language 50 and 10; states are 5 a layer; 60 ns and 100 ns
 * forward. */
static void four(hbp_context *context, instance *t, int64_t first_limit, int64_t second_limit)
{
    static const int32_t kind[] = {1, 1, 0, 0, 1, 1, 0, 0};
    static const int64_t forward[] = {60, 60, 100, 100, 60, 60, 100, 100};
    static const int64_t state[] = {5, 5, 5, 5, 5, 5, 5, 5};
    static const int64_t activation[] = {30, 30, 50, 50, 30, 30, 50, 50};
    static const int64_t recomputed[] = {10, 10, 10, 10, 10, 10, 10, 10};
    static const int64_t mlp[] = {12, 12, 0, 0, 12, 12, 0, 0}, mlp_ns[] = {20, 20, 0, 0, 20, 20, 0, 0};
    memset(t, 0, sizeof *t);
    hbp_layer_columns c;
    hbp_layer_columns_init(&c, sizeof c);
    c.count = 8;
    c.kind = kind;
    c.forward_ns = forward;
    c.state_bytes = state;
    c.activation_bytes = activation;
    c.recomputed_bytes = recomputed;
    c.mlp_bytes = mlp;
    c.mlp_ns = mlp_ns;
    OK(context, hbp_layers_create(context, &c, &t->layers));
    hbp_pipeline_options_init(&t->pipeline, sizeof t->pipeline);
    t->pipeline.stages = 2;
    t->pipeline.micro_batches = 4;
    t->pipeline.limit_bytes = t->limit;
    t->limit[0] = first_limit;
    t->limit[1] = second_limit;
    t->cuts[1] = 4;
    t->cuts[2] = 8;
    hbp_recompute_options_init(&t->options, sizeof t->options);
    hbp_recompute_report_init(&t->report, sizeof t->report);
}

static void expect(hbp_context *context, instance *t, int32_t mode, const char *choices)
{
    OK(context, choose(context, t, mode));
    char text[16] = "";
    for (int32_t i = 0; i < 8; i++)
        text[i] = "-amL"[t->choices[i]];
    ck_assert_msg(strcmp(text, choices) == 0, "mode %d: %s instead of %s", (int)mode, text, choices);
}

START_TEST(modes_by_hand)
{
    hbp_context *context = test_context();
    static instance t;
    /* Stage 0 needs 20 + 2 * 160 = 340 bare, 20 + 2 * 40 + 40 = 140 with all recomputed; stage 1 180 and 100.
     */
    four(context, &t, 340, 180);
    expect(context, &t, HBP_MEMORY_OPTIMAL, "--------");
    ck_assert_int_eq(t.report.proven, 1);
    ck_assert_int_eq(t.report.saved_ns, 640);
    ck_assert_int_eq(t.report.slack_bytes, 0);
    expect(context, &t, HBP_MEMORY_NONE, "--------");
    ck_assert_int_eq(t.report.proven, 1);
    /* 200 free: floor(200 / 80) - 1 = 1 language layer. 80 free: floor(80 / 40) - 1 = 1. */
    expect(context, &t, HBP_MEMORY_PAPER, "LLL-LLL-");
    ck_assert_int_eq(t.report.proven, 0);
    ck_assert_int_eq(t.report.recompute_ns, 440);
    expect(context, &t, HBP_MEMORY_ALL, "LLLLLLLL");
    ck_assert_int_eq(t.report.recompute_ns, 640);
    ck_assert_int_eq(t.report.recomputed, 8);
    ck_assert_int_eq(t.report.saved_ns, 0);
    hbp_layers_free(t.layers);

    /* 12 short on stage 0: 24 by one MLP, at 12 more while it is recomputed. 20 short on stage 1: two MLPs
     * free 24 less 12, a vision layer 20 less 20; a language layer 40 less 40; vision layer and MLP 32 less
     * 20; both vision layers 40 less 20. */
    four(context, &t, 328, 160);
    expect(context, &t, HBP_MEMORY_OPTIMAL, "m---LL--");
    ck_assert_int_eq(t.report.recompute_ns, 140);
    ck_assert_int_eq(t.report.selective, 1);
    ck_assert_int_eq(t.report.recomputed, 2);
    ck_assert_int_eq(t.report.slack_bytes, 0);
    t.options.selective = -1;
    expect(context, &t, HBP_MEMORY_OPTIMAL, "L---LL--");
    t.options.selective = HBP_SELECT_ATTENTION;
    expect(context, &t, HBP_MEMORY_OPTIMAL, "L---LL--");
    t.options.selective = HBP_SELECT_MLP;
    expect(context, &t, HBP_MEMORY_OPTIMAL, "m---LL--");
    hbp_layers_free(t.layers);

    /* The published rule with more: 4 * 80 = 320 free keep both language layers with one to spare, and
     * floor(160 / 40) - 1 = 3 vision layers, of which there are two. */
    four(context, &t, 140 + 320, 100 + 3 * 40);
    expect(context, &t, HBP_MEMORY_PAPER, "----L---");
    hbp_layers_free(t.layers);

    four(context, &t, 339, 99);
    FAILS(context, HBP_E_INFEASIBLE,
          "stage 0 needs 340 bytes with no layer recomputed and has 339, 1 too few",
          choose(context, &t, HBP_MEMORY_NONE));
    FAILS(context, HBP_E_INFEASIBLE,
          "stage 1 needs 100 bytes with every layer recomputed and has 99, 1 too few",
          choose(context, &t, HBP_MEMORY_ALL));
    FAILS(context, HBP_E_INFEASIBLE,
          "stage 1 needs 100 bytes with every layer recomputed and has 99, 1 too few",
          choose(context, &t, HBP_MEMORY_PAPER));
    FAILS(context, HBP_E_INFEASIBLE,
          "stage 1 needs 100 bytes with as much recomputed as helps and has 99, 1 too few",
          choose(context, &t, HBP_MEMORY_OPTIMAL));
    t.pipeline.limit_bytes = NULL;
    expect(context, &t, HBP_MEMORY_OPTIMAL, "--------");
    ck_assert_int_eq(t.report.slack_bytes, INT64_MAX);
    expect(context, &t, HBP_MEMORY_PAPER, "--------");
    hbp_layers_free(t.layers);
    hbp_context_free(context);
}
END_TEST

START_TEST(measurements_take_the_place_of_columns)
{
    hbp_context *context = test_context();
    static instance t;
    /* 90 free: floor(90 / 40) - 1 = 1 language layer. 230 free: floor(230 / 40) - 1 = 4, all 2 of them, and
     * floor(150 / 50) - 1 = 2 vision layers. */
    static const int64_t free[] = {90, 80 + 50 * 3};
    four(context, &t, 0, 0);
    t.options.measured_free_bytes = free;
    t.options.measured_vision_bytes = 50;
    t.options.measured_language_bytes = 40;
    expect(context, &t, HBP_MEMORY_PAPER, "LLL-----");
    ck_assert_int_eq(t.report.slack_bytes, 50);
    /* Two language layers more leave 10: nothing of a vision layer, of which an MLP is 12 in 20 of 50. When
     * all that is recomputed is vision, 20 instead of 40 are needed besides: 30 left, so one MLP of each of
     * both layers would be 40, but one layer kept but for its MLP is 20. */
    expect(context, &t, HBP_MEMORY_OPTIMAL, "Lm------");
    ck_assert_int_eq(t.report.recompute_ns, 80);
    ck_assert_int_eq(t.report.slack_bytes, 10);
    /* Measured as the columns have it: nothing changes. */
    static const int64_t same[] = {340 - 12 - 140, 60};
    t.options.measured_free_bytes = same;
    t.options.measured_vision_bytes = 0;
    t.options.measured_language_bytes = 0;
    expect(context, &t, HBP_MEMORY_OPTIMAL, "m---LL--");
    static const int64_t lacking[] = {10, -3};
    t.options.measured_free_bytes = lacking;
    FAILS(context, HBP_E_INFEASIBLE,
          "stage 1 needs 100 bytes with every layer recomputed and has 97, 3 too few",
          choose(context, &t, HBP_MEMORY_PAPER));
    hbp_layers_free(t.layers);
    hbp_context_free(context);
}
END_TEST

/* Groups of one chunk and kind: weighed sizes come to the same peak as the simulator's, for any choice. */
START_TEST(need_is_the_peak_of_the_stage)
{
    hbp_context *context = test_context();
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
            hbp__recompute_close(&stage);
        }
        hbp__live_close(&live);
        hbp_layers_free(t.layers);
    }
    hbp_context_free(context);
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
START_TEST(none_is_needed_once_balanced)
{
    hbp_context *context = test_context();
    hbp_machine *machine = NULL;
    hbp_vlm *vlm = NULL;
    OK(context, hbp_machine_create_preset(context, "a100-80", 2, &machine));
    OK(context, hbp_vlm_create_preset(context, "internvl-1.2-26b", &vlm));
    hbp_vlm_layers_options o;
    hbp_vlm_layers_options_init(&o, sizeof o);
    o.tensor_parallel = 4;
    o.vision = 9;
    o.tokens = 4096;
    static instance t;
    memset(&t, 0, sizeof t);
    OK(context, hbp_vlm_create_layers(context, vlm, machine, &o, &t.layers));
    balance(t.layers, t.cuts);
    hbp_pipeline_options_init(&t.pipeline, sizeof t.pipeline);
    hbp_recompute_options_init(&t.options, sizeof t.options);
    hbp_recompute_report_init(&t.report, sizeof t.report);
    t.pipeline.stages = 4;
    t.pipeline.micro_batches = 32;
    t.pipeline.limit_bytes = t.limit;
    for (int32_t s = 0; s < 4; s++)
        t.limit[s] = (INT64_C(80) << 30) - INT64_C(5000000000);
    ck_assert_int_eq(choose(context, &t, HBP_MEMORY_OPTIMAL), HBP_OK);
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
    FAILS(context, HBP_E_INFEASIBLE, "with no layer recomputed", choose(context, &t, HBP_MEMORY_NONE));
    ck_assert_int_eq(choose(context, &t, HBP_MEMORY_OPTIMAL), HBP_OK);
    ck_assert_int_eq(t.report.proven, 1);
    check_choice(context, &t);
    int64_t optimal = t.report.recompute_ns;
    OK(context, choose(context, &t, HBP_MEMORY_PAPER));
    check_choice(context, &t);
    ck_assert_int_lt(optimal, t.report.recompute_ns);
    hbp_layers_free(t.layers);
    hbp_vlm_free(vlm);
    hbp_machine_free(machine);
    hbp_context_free(context);
}
END_TEST

#define WRONG(text, field, value)                                                                            \
    do {                                                                                                     \
        hbp_recompute_options wrong = {.struct_size = sizeof wrong};                                         \
        wrong.field = value;                                                                                 \
        FAILS(context, HBP_E_INVALID, text,                                                                  \
              hbp_choose_recompute(context, t.layers, t.cuts, &t.pipeline, &wrong, choices, NULL));          \
    } while (0)

START_TEST(wrong_arguments_are_named)
{
    hbp_context *context = test_context();
    static instance t;
    int32_t choices[8] = {7, 7, 7, 7, 7, 7, 7, 7};
    four(context, &t, 340, 180);
    WRONG("mode is 4; it must be a HBP_MEMORY_* value", mode, 4);
    WRONG("mode is -1", mode, -1);
    WRONG("selective is 4; it must be HBP_SELECT_* values or-ed, 0 for both, or -1 for neither", selective,
          4);
    WRONG("selective is -2", selective, -2);
    WRONG("measured_vision_bytes is -1; it must not be negative", measured_vision_bytes, -1);
    WRONG("measured_language_bytes is -5; it must not be negative", measured_language_bytes, -5);
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
    hbp_context_free(context);
}
END_TEST

static hbp_status choose_once(hbp_context *context, void *user)
{
    return choose(context, user, HBP_MEMORY_OPTIMAL);
}

START_TEST(failed_allocations_leave_nothing)
{
    hbp_context *context = test_context();
    hbp__rng rng = hbp__rng_make(59, 0, 0);
    static instance t;
    do {
        if (t.layers)
            hbp_layers_free(t.layers);
        draw(context, &t, &rng, 12, 0, 1000000000);
        limit(context, &t, &rng);
    } while (choose(context, &t, HBP_MEMORY_OPTIMAL) != HBP_OK || !t.report.selective);
    failing_sweep(choose_once, &t);
    ck_assert_int_gt(cancel_sweep(choose_once, &t), 2);
    hbp_layers_free(t.layers);
    hbp_context_free(context);
}
END_TEST

TEST_MAIN("recompute", equals_all_combinations, never_over_memory, a_thousand_layers_are_proven,
          too_many_to_prove_still_fit, modes_by_hand, measured_free_memory_is_a_limit,
          measurements_take_the_place_of_columns, need_is_the_peak_of_the_stage, none_is_needed_once_balanced,
          wrong_arguments_are_named, failed_allocations_leave_nothing)

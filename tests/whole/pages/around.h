/* What stands around the C blocks of pages: samples, a cost and a plan of them, under the names that the
 * blocks use. */
#ifndef AROUND_H
#define AROUND_H

#include <hbp/hbp.h>
#include <stdio.h>
#include <stdlib.h>

enum { SAMPLES = 4000, BATCH = 512 };

static hbp_context *ctx;
static hbp_machine *machine;
static hbp_cost *cost;
static hbp_lengths *lengths, *batch_lengths;
static hbp_plan *plan;
static int64_t tokens[SAMPLES];

static inline void fail(const char *why)
{
    fprintf(stderr, "%s\n", why);
    exit(1);
}

static inline void need(int holds, const char *what)
{
    if (!holds)
        fail(*hbp_context_message(ctx) ? hbp_context_message(ctx) : what);
}

/* Every tenth sample has 6 images, of 256 tokens each. */
static inline void begin(void)
{
    static uint32_t images[SAMPLES];
    for (int64_t i = 0; i < SAMPLES; i++) {
        tokens[i] = i % 100 == 0 ? 20000 + i : 200 + i * 37 % 3000;
        images[i] = i % 10 == 0 ? 6 : 0;
        if (images[i] && tokens[i] < 6 * 256)
            tokens[i] += 6 * 256;
    }
    hbp_model *model = NULL;
    hbp_lengths_options options = {.struct_size = sizeof options, .vision = images};
    need(hbp_context_create(NULL, &ctx) >= 0, "no context");
    need(hbp_model_create_preset(ctx, "llama-3.1-8b", &model) >= 0, "no model");
    need(hbp_machine_create_preset(ctx, "h100:2", &machine) >= 0, "no machine");
    need(hbp_cost_create(ctx, model, machine, NULL, &cost) >= 0, "no cost");
    need(hbp_lengths_create_i64(ctx, tokens, SAMPLES, &options, &lengths) >= 0, "no lengths");
    need(hbp_lengths_create_i64(ctx, tokens, BATCH, NULL, &batch_lengths) >= 0, "no batch");
    hbp_model_free(model);
}

static inline void end(void)
{
    hbp_plan_free(plan);
    hbp_lengths_free(batch_lengths);
    hbp_lengths_free(lengths);
    hbp_cost_free(cost);
    hbp_machine_free(machine);
    hbp_context_free(ctx);
}

#endif

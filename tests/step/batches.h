/* Batches for steppers, and the calls that their tests share. */
#ifndef HBP_TESTS_STEP_BATCHES_H
#define HBP_TESTS_STEP_BATCHES_H

#include <time.h>

#include "base/rng.h"
#include "costs.h"
#include "test.h"
#include "views.h"

enum { SAMPLES = 64, STEPS = 12 };

static inline void batches_nap(int64_t ns)
{
    struct timespec time = {.tv_sec = 0, .tv_nsec = (long)ns};
    nanosleep(&time, NULL);
}

/* Batch `step`: lengths with a long tail; every third batch has loss tokens, every fourth links, every
 * second vision units and every fifth kinds. */
typedef struct batch {
    int64_t length[SAMPLES];
    uint32_t loss[SAMPLES];
    int64_t link[SAMPLES];
    uint32_t vision[SAMPLES];
    int32_t modality[SAMPLES];
    int64_t count;
    hbp_lengths_options options;
} batch;

static inline const batch *batches_draw(batch *b, uint64_t step)
{
    hbp__rng rng = hbp__rng_make(11, step, 0);
    b->count = SAMPLES - hbp__rng_below(&rng, SAMPLES / 2);
    for (int64_t i = 0; i < b->count; i++) {
        b->length[i] = 1 + hbp__rng_below(&rng, UINT64_C(60000) >> hbp__rng_below(&rng, 8));
        b->loss[i] = hbp__rng_below(&rng, (uint64_t)b->length[i] + 1);
        b->link[i] = i % 7 < 2 && b->length[i] < 8000 ? i / 7 : -1;
        b->vision[i] = (uint32_t)(i % 4);
        b->modality[i] = (int32_t)(i % 6);
    }
    b->options = (hbp_lengths_options){.struct_size = sizeof b->options,
                                       .loss_tokens = step % 3 == 0 ? b->loss : NULL,
                                       .links = step % 4 == 0 ? b->link : NULL,
                                       .vision = step % 2 == 0 ? b->vision : NULL,
                                       .modalities = step % 5 == 0 ? b->modality : NULL};
    return b;
}

static inline hbp_lengths *batches_lengths(hbp_context *context, const batch *b)
{
    hbp_lengths *lengths = NULL;
    OK(context, hbp_lengths_create_i64(context, b->length, b->count, &b->options, &lengths));
    return lengths;
}

static inline uint64_t batches_digest(hbp_context *context, const hbp_cost *cost, const batch *b)
{
    hbp_lengths *lengths = batches_lengths(context, b);
    hbp_plan *plan = NULL;
    OK(context, hbp_plan_step(context, lengths, cost, NULL, &plan));
    uint64_t digest = plan_digest(plan);
    hbp_plan_free(plan);
    hbp_lengths_free(lengths);
    return digest;
}

static inline hbp_stepper *batches_stepper(hbp_context *context, const hbp_cost *cost, int32_t depth,
                                           int32_t wait)
{
    hbp_stepper_options options = {.struct_size = sizeof options};
    options.depth = depth;
    options.wait = wait;
    hbp_stepper *stepper = NULL;
    OK(context, hbp_stepper_create(context, cost, NULL, &options, &stepper));
    return stepper;
}

static inline void batches_submit(hbp_context *context, hbp_stepper *stepper, uint64_t step)
{
    batch b;
    batches_draw(&b, step);
    OK(context, hbp_stepper_submit(context, stepper, b.length, b.count, &b.options));
    memset(&b, 0xa5, sizeof b); /* the stepper has its copy */
}

static inline hbp_plan *batches_take(hbp_context *context, hbp_stepper *stepper)
{
    hbp_plan *plan = NULL;
    OK(context, hbp_stepper_take(context, stepper, &plan));
    ck_assert_ptr_nonnull(plan);
    return plan;
}

static inline hbp_stepper_summary batches_summary(hbp_context *context, hbp_stepper *stepper)
{
    hbp_stepper_summary summary = {.struct_size = sizeof summary};
    OK(context, hbp_stepper_get_summary(context, stepper, &summary));
    return summary;
}

#endif

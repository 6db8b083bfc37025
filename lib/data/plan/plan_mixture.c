/* How far the lengths of a plan's steps lie from those of all samples. */
#include "data/plan/plan.h"

/* Lengths fall into classes [2^k, 2^(k + 1)). */
#define LENGTH_CLASSES 32

#define TICK_STEPS 256

typedef struct mixture {
    double tokens[LENGTH_CLASSES];
    double total;
} mixture;

static void add_step(const hbp_plan *plan, int64_t step, mixture *m)
{
    int64_t first = plan->micro_batch_offsets[plan->step_offsets[step]];
    int64_t end = plan->micro_batch_offsets[plan->step_offsets[step + 1]];
    for (int64_t i = plan->pack_offsets[first]; i < plan->pack_offsets[end]; i++) {
        int k = 0;
        for (int32_t rest = plan->sample_tokens[i]; rest > 1; rest /= 2)
            k++;
        m->tokens[k] += plan->sample_tokens[i];
        m->total += plan->sample_tokens[i];
    }
}

static double distance_of(const mixture *a, const mixture *b)
{
    double sum = 0;
    for (int k = 0; k < LENGTH_CLASSES; k++) {
        double off = a->tokens[k] / a->total - b->tokens[k] / b->total;
        sum += off < 0 ? -off : off;
    }
    return sum / 2;
}

hbp_status hbp__plan_mixture(hbp_context *context, const hbp_plan *plan, double *distance)
{
    mixture all = {.total = 0};
    double sum = 0;
    int64_t measured = 0;
    for (int64_t s = 0; s < plan->steps; s++) {
        if (s % TICK_STEPS == 0)
            HBP__TRY(hbp__tick(context, "mixture", s, 2 * plan->steps));
        add_step(plan, s, &all);
    }
    for (int64_t s = 0; s < plan->steps; s++) {
        mixture here = {.total = 0};
        if (s % TICK_STEPS == 0)
            HBP__TRY(hbp__tick(context, "mixture", plan->steps + s, 2 * plan->steps));
        add_step(plan, s, &here);
        if (here.total > 0) {
            sum += distance_of(&here, &all);
            measured++;
        }
    }
    *distance = measured ? sum / (double)measured : 0;
    return HBP_OK;
}

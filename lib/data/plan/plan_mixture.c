/* How far the lengths of a plan's steps lie from those of all samples. */
#include "data/plan/plan.h"

#define TICK_STEPS 256

void hbp__mixture_add(hbp__mixture *m, int64_t length, double number)
{
    int k = 0;
    for (int64_t rest = length; rest > 1; rest /= 2)
        k++;
    m->tokens[k] += number * (double)length;
    m->total += number * (double)length;
}

/* `since` counts samples since the last look in a step. */
static hbp_status add_step(hbp_context *context, const hbp_plan *plan, int64_t step, hbp__mixture *m,
                           int64_t *since)
{
    int64_t first = plan->micro_batch_offsets[plan->step_offsets[step]];
    int64_t end = plan->micro_batch_offsets[plan->step_offsets[step + 1]];
    for (int64_t i = plan->pack_offsets[first]; i < plan->pack_offsets[end]; i++) {
        HBP__TRY(hbp__tick_rows(context, "mixture", since, 1, step, plan->steps));
        hbp__mixture_add(m, plan->sample_tokens[i], 1);
    }
    return HBP_OK;
}

static double distance_of(const hbp__mixture *a, const hbp__mixture *b)
{
    double sum = 0;
    for (int k = 0; k < HBP__LENGTH_CLASSES; k++) {
        double off = a->tokens[k] / a->total - b->tokens[k] / b->total;
        sum += off < 0 ? -off : off;
    }
    return sum / 2;
}

hbp_status hbp__mixture_distances(hbp_context *context, const hbp_plan *plan, const hbp__mixture *all,
                                  hbp__distances *distances)
{
    int64_t since = 0;
    for (int64_t s = 0; s < plan->steps; s++) {
        hbp__mixture here = {.total = 0};
        if (s % TICK_STEPS == 0)
            HBP__TRY(hbp__tick(context, "mixture", s, plan->steps));
        HBP__TRY(add_step(context, plan, s, &here, &since));
        if (here.total > 0) {
            distances->sum += distance_of(&here, all);
            distances->steps++;
        }
    }
    return HBP_OK;
}

hbp_status hbp__plan_mixture(hbp_context *context, const hbp_plan *plan, double *distance)
{
    hbp__mixture all = {.total = 0};
    hbp__distances distances = {0, 0};
    int64_t since = 0;
    for (int64_t s = 0; s < plan->steps; s++) {
        if (s % TICK_STEPS == 0)
            HBP__TRY(hbp__tick(context, "mixture", s, plan->steps));
        HBP__TRY(add_step(context, plan, s, &all, &since));
    }
    HBP__TRY(hbp__mixture_distances(context, plan, &all, &distances));
    *distance = hbp__distances_mean(&distances);
    return HBP_OK;
}

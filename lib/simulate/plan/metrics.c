/* Quantiles and variation of what steps hold. */
#include "simulate/plan/metrics.h"

#include <math.h>

#include "base/scratch.h"
#include "base/sort.h"

/* The value percent/100 of the way through `values` [count >= 1], which `order` sorts; the lower of two
 * neighbours. */
static int64_t quantile(const int64_t *values, const uint32_t *order, int64_t count, int64_t percent)
{
    return values[order[(count - 1) * percent / 100]];
}

/* Standard deviation over mean. */
static double variation(const int64_t *values, int64_t count)
{
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < count; i++)
        sum += (double)values[i];
    double mean = sum / (double)count;
    for (int64_t i = 0; i < count; i++) {
        double off = (double)values[i] - mean;
        squares += off * off;
    }
    return mean > 0 ? sqrt(squares / (double)count) / mean : 0;
}

static hbp_status sort_by(hbp_context *context, const int64_t *values, uint32_t *order, int64_t count)
{
    if (!hbp__sort_by_i64(&context->memory, values, order, count))
        return hbp__fail_memory(context, "the metrics of the steps");
    return HBP_OK;
}

hbp_status hbp__measure_sizes(hbp_context *context, const int64_t *samples, const int64_t *tokens,
                              int64_t steps, hbp_report *report)
{
    if (steps > UINT32_MAX)
        return hbp__fail(context, HBP_E_OVERFLOW, "the plan has %lld steps; at most %lld can be measured",
                         (long long)steps, (long long)UINT32_MAX);
    int64_t mark = hbp__scratch_mark(context);
    uint32_t *order = hbp__take(context, (uint64_t)steps, sizeof *order);
    HBP__TRY(hbp__scratch_check(context, "the metrics of the steps"));
    for (int64_t s = 0; s < steps; s++)
        order[s] = (uint32_t)s;
    HBP__TRY(sort_by(context, samples, order, steps));
    report->step_samples_p5 = quantile(samples, order, steps, 5);
    report->step_samples_median = quantile(samples, order, steps, 50);
    report->step_samples_p95 = quantile(samples, order, steps, 95);
    HBP__TRY(sort_by(context, tokens, order, steps));
    report->step_tokens_p5 = quantile(tokens, order, steps, 5);
    report->step_tokens_median = quantile(tokens, order, steps, 50);
    report->step_tokens_p95 = quantile(tokens, order, steps, 95);
    report->samples_cv = variation(samples, steps);
    hbp__scratch_release(context, mark);
    return HBP_OK;
}

hbp_status hbp__measure_steps(hbp_context *context, const hbp_plan *plan, hbp_report *report)
{
    HBP__TRY(hbp__measure_sizes(context, plan->step_samples, plan->step_tokens, plan->steps, report));
    return hbp__plan_mixture(context, plan, &report->mixture_distance);
}

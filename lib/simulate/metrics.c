#include "simulate/metrics.h"

#include <math.h>
#include <string.h>

#include "base/sort.h"

/* Lengths fall into classes [2^k, 2^(k + 1)). */
#define LENGTH_CLASSES 32

#define TICK_STEPS 256

typedef struct step_span {
    int64_t first; /* sample */
    int64_t end;
} step_span;

static step_span span_of(const hbp_plan *plan, int64_t step)
{
    int64_t first = plan->micro_batch_offsets[plan->step_offsets[step]];
    int64_t end = plan->micro_batch_offsets[plan->step_offsets[step + 1]];
    return (step_span){plan->pack_offsets[first], plan->pack_offsets[end]};
}

/* A step is of kind (SP degree, capacity) when every pack of it that holds samples has both; (INT32_MAX,
 * INT64_MAX) when they differ, (0, -1) when no pack holds any. */
static void kind_of(const hbp_plan *plan, int64_t step, uint64_t *sp, int64_t *capacity)
{
    int64_t end = plan->micro_batch_offsets[plan->step_offsets[step + 1]];
    *sp = 0;
    *capacity = -1;
    for (int64_t p = plan->micro_batch_offsets[plan->step_offsets[step]]; p < end; p++) {
        if (plan->pack_offsets[p] == plan->pack_offsets[p + 1])
            continue;
        if (*capacity < 0) {
            *sp = (uint64_t)plan->pack_sp[p];
            *capacity = plan->pack_capacity[p];
        } else if (*sp != (uint64_t)plan->pack_sp[p] || *capacity != plan->pack_capacity[p]) {
            *sp = INT32_MAX;
            *capacity = INT64_MAX;
            return;
        }
    }
}

static int length_class(int32_t tokens)
{
    int class = 0;
    for (uint32_t rest = (uint32_t)tokens; rest > 1; rest >>= 1)
        class ++;
    return class;
}

static void add_classes(const hbp_plan *plan, int64_t step, int64_t *tokens)
{
    step_span span = span_of(plan, step);
    for (int64_t i = span.first; i < span.end; i++)
        tokens[length_class(plan->sample_tokens[i])] += plan->sample_tokens[i];
}

static double sum_of(const int64_t *tokens)
{
    int64_t sum = 0;
    for (int k = 0; k < LENGTH_CLASSES; k++)
        sum += tokens[k];
    return (double)sum;
}

/* Adds, for the steps in rows [begin, end) of `order`, half the L1 distance between each one's mixture and
 * that of all. */
static hbp_status add_distances(hbp_context *context, const hbp_plan *plan, const uint32_t *order,
                                int64_t begin, int64_t end, double *distance)
{
    int64_t all[LENGTH_CLASSES] = {0};
    for (int64_t i = begin; i < end; i++) {
        add_classes(plan, order[i], all);
        if (i % TICK_STEPS == 0)
            HBP__TRY(hbp__tick(context, "mixture", begin + i, 2 * plan->steps));
    }
    double all_tokens = sum_of(all);
    for (int64_t i = begin; i < end; i++) {
        int64_t here[LENGTH_CLASSES] = {0};
        add_classes(plan, order[i], here);
        double here_tokens = sum_of(here), sum = 0;
        for (int k = 0; k < LENGTH_CLASSES; k++)
            sum += fabs((double)here[k] / here_tokens - (double)all[k] / all_tokens);
        *distance += sum / 2;
        if (i % TICK_STEPS == 0)
            HBP__TRY(hbp__tick(context, "mixture", end + i, 2 * plan->steps));
    }
    return HBP_OK;
}

/* Standard deviation over mean of the samples per step. */
static double samples_cv(const hbp_plan *plan, const uint32_t *steps, int64_t count)
{
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < count; i++) {
        step_span span = span_of(plan, steps[i]);
        sum += (double)(span.end - span.first);
    }
    double mean = sum / (double)count;
    for (int64_t i = 0; i < count; i++) {
        step_span span = span_of(plan, steps[i]);
        double off = (double)(span.end - span.first) - mean;
        squares += off * off;
    }
    return sqrt(squares / (double)count) / mean;
}

static hbp_status measure_kinds(hbp_context *context, const hbp_plan *plan, const uint64_t *sp,
                                const int64_t *capacity, const uint32_t *order, hbp_report *report)
{
    double distance = 0;
    int64_t measured = 0;
    for (int64_t begin = 0, end; begin < plan->steps; begin = end) {
        for (end = begin + 1; end < plan->steps; end++)
            if (sp[order[end]] != sp[order[begin]] || capacity[order[end]] != capacity[order[begin]])
                break;
        if (capacity[order[begin]] < 0)
            continue; /* only dummies */
        /* Kinds come in ascending order of capacity, steps that mix kinds last. */
        if (!measured)
            report->samples_cv = samples_cv(plan, order + begin, end - begin);
        HBP__TRY(add_distances(context, plan, order, begin, end, &distance));
        measured += end - begin;
    }
    report->mixture_distance = measured ? distance / (double)measured : 0;
    return HBP_OK;
}

hbp_status hbp__measure_steps(hbp_context *context, const hbp_plan *plan, hbp_report *report)
{
    const hbp__memory *memory = &context->memory;
    if (plan->steps > UINT32_MAX)
        return hbp__fail(context, HBP_E_OVERFLOW, "the plan has %lld steps; at most %lld can be measured",
                         (long long)plan->steps, (long long)UINT32_MAX);
    uint64_t steps = (uint64_t)plan->steps;
    uint64_t *sp = hbp__new(memory, steps, sizeof *sp);
    int64_t *capacity = hbp__new(memory, steps, sizeof *capacity);
    uint32_t *order = hbp__new(memory, steps, sizeof *order);
    hbp_status status;
    if (!sp || !capacity || !order)
        goto no_memory;
    for (int64_t s = 0; s < plan->steps; s++) {
        kind_of(plan, s, &sp[s], &capacity[s]);
        order[s] = (uint32_t)s;
    }
    if (!hbp__sort_by_u64(memory, sp, order, plan->steps) ||
        !hbp__sort_by_i64(memory, capacity, order, plan->steps))
        goto no_memory;
    status = measure_kinds(context, plan, sp, capacity, order, report);
    goto cleanup;

no_memory:
    status = hbp__fail_memory(context, "the metrics of the steps");
cleanup:
    hbp__delete(memory, order);
    hbp__delete(memory, capacity);
    hbp__delete(memory, sp);
    return status;
}

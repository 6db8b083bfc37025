/* Resource allocation of a level (Spindle, section 3.3): Theorem 1's share n* for each MetaOp, bi-point
 * discretisation to the two valid sizes around it, rounding to whole operators. O(MetaOps x sizes) beside the
 * shares. */
#include "tasks/waves/level_waves.h"

#include "base/scratch.h"

hbp__two_points hbp__two_points_of(const hbp__curve *curve, int32_t operators, double optimum_ns,
                                   double share)
{
    int32_t last = curve->sizes - 1;
    if (share >= curve->size[last])
        return (hbp__two_points){curve->size[last], 0, operators, 0};
    if (share < curve->size[0])
        return (hbp__two_points){curve->size[0], 0, operators, 0};
    int32_t i = hbp__curve_floor(curve, (int32_t)share);
    double low_ns = (double)curve->time_ns[i], high_ns = (double)curve->time_ns[i + 1];
    double high = (operators * low_ns - optimum_ns) / (low_ns - high_ns);
    high = high < 0 ? 0 : high > operators ? operators : high; /* the share is rounded, too */
    return (hbp__two_points){curve->size[i + 1], curve->size[i], high, operators - high};
}

int32_t hbp__round_tuples(const hbp__two_points *points, int32_t operators, int32_t meta_op,
                          hbp__tuple tuple[2])
{
    int32_t high = points->low_gpus ? (int32_t)(points->high_count + .5) : operators, count = 0;
    if (high > 0)
        tuple[count++] = (hbp__tuple){meta_op, points->high_gpus, high};
    if (high < operators)
        tuple[count++] = (hbp__tuple){meta_op, points->low_gpus, operators - high};
    return count;
}

static hbp_status relax_level(hbp_context *context, const hbp__task_problem *problem, int32_t first,
                              int32_t end, double *optimum_ns, double *share)
{
    uint64_t count = (uint64_t)(end - first);
    const hbp__curve **curves = hbp__take(context, count, sizeof *curves);
    int32_t *operators = hbp__take(context, count, sizeof *operators);
    HBP__TRY(hbp__scratch_check(context, "shares"));
    for (int32_t m = first; m < end; m++) {
        curves[m - first] = hbp__meta_curve(problem->scaling, m);
        operators[m - first] = problem->meta->meta_op[m].count;
    }
    *optimum_ns = hbp__relax(curves, operators, end - first, problem->gpus, share);
    return HBP_OK;
}

hbp_status hbp__allocate_level(hbp_context *context, const hbp__task_problem *problem, int32_t first,
                               int32_t end, double *optimum_ns, hbp__tuple *tuples, int32_t *count)
{
    int64_t mark = hbp__scratch_mark(context);
    double optimum, *share = hbp__take(context, (uint64_t)(end - first), sizeof *share);
    HBP__TRY(hbp__scratch_check(context, "shares"));
    HBP__TRY(relax_level(context, problem, first, end, &optimum, share));
    int32_t made = 0;
    for (int32_t m = first; m < end; m++) {
        int32_t operators = problem->meta->meta_op[m].count;
        hbp__two_points points =
            hbp__two_points_of(hbp__meta_curve(problem->scaling, m), operators, optimum, share[m - first]);
        made += hbp__round_tuples(&points, operators, m, tuples + made);
    }
    *optimum_ns = optimum;
    *count = made;
    hbp__scratch_release(context, mark);
    return HBP_OK;
}

/* Lanes from several starts; the shortest becomes the plan. */
#include "base/checked.h"
#include "step/bound.h"
#include "step/lanes.h"

/* Prices asked for in improving one start, for each of effort's first rounds, and so many more a sequence. */
#define WORK          INT64_C(60000)
#define WORK_SEQUENCE INT64_C(100)

/* How much longer than the bound the longest pack of a start may be. */
static const double GOALS[] = {1, 1.01, 1.05, 1.2, 2};

/* Improves the lanes and takes them for *best where they are shorter. */
static hbp_status finish_start(hbp__lanes *l, int64_t work, hbp__step_solution *best)
{
    const hbp__step *step = l->step;
    hbp__step_solution own = {.ns = 0};
    HBP__TRY(hbp__lanes_improve(l, work));
    int64_t rows = hbp__step_whole(step, hbp__lanes_row(l, 0, step->ranks));
    if (step->options.max_micro_batches && rows > step->options.max_micro_batches)
        return HBP_OK;
    if (!step->cost->terms.uneven_micro_batches)
        hbp__lanes_split(l, rows);
    if (hbp__lanes_ns(l) >= best->ns)
        return HBP_OK;
    hbp_status status = hbp__lanes_write(l, &own);
    if (status >= 0 && own.ns < best->ns) {
        own.complete = best->complete;
        hbp__step_solution_close(best);
        *best = own;
        return HBP_OK;
    }
    hbp__step_solution_close(&own);
    return status;
}

hbp_status hbp__step_lanes(const hbp__step *step, hbp__step_solution *solution)
{
    hbp__lanes lanes;
    int64_t bound_ns, work = hbp__add_saturating(WORK, WORK_SEQUENCE * step->count);
    HBP__TRY(hbp__bound_lanes(step, solution->ns, &bound_ns));
    HBP__TRY(hbp__lanes_open(step, &lanes));
    for (int32_t round = 1; round < step->options.effort; round++)
        work = hbp__mul_saturating(work, 3);
    hbp_status status = HBP_OK;
    if (hbp__lanes_read(&lanes, solution))
        status = finish_start(&lanes, work, solution);
    for (size_t i = 0; i < sizeof GOALS / sizeof *GOALS && status >= 0 && solution->ns > bound_ns; i++) {
        hbp__lanes_build(&lanes, hbp__round_i64((double)bound_ns * GOALS[i]));
        status = finish_start(&lanes, work, solution);
        if (status >= 0)
            status = hbp__tick(step->context, "step", (int64_t)i, (int64_t)(sizeof GOALS / sizeof *GOALS));
    }
    hbp__lanes_close(&lanes);
    return status;
}

/* Lanes from several starts; the shortest becomes the plan. */
#include "base/checked.h"
#include "base/scratch.h"
#include "step/bound.h"
#include "step/lanes.h"
#include "step/tuning.h"

/* How much longer than the bound the longest pack of a start may be. */
static const double GOALS[] = {1, 1.01, 1.05, 1.2, 2};

/* No rank is without samples in a micro-batch while there are samples to spread. */
static hbp_status fill_rows(hbp__lanes *l, int64_t rows, int64_t work)
{
    hbp__lanes_fill_rows(l, rows);
    l->keeps = 1;
    hbp_status status = hbp__lanes_improve(l, work);
    l->keeps = 0;
    return status;
}

/* Improves the lanes and takes them for *best where they are shorter. The `first` are taken whatever they
 * take where they have fewer padding packs, and where ranks may run different numbers of micro-batches if
 * they are not longer: *best may leave ranks idle. */
static hbp_status finish_start(hbp__lanes *l, int64_t work, int first, hbp__step_solution *best)
{
    const hbp__step *step = l->step;
    hbp__step_solution own = {.ns = 0};
    HBP__TRY(hbp__lanes_improve(l, work));
    hbp__lanes_fill_idle(l);
    int64_t rows = hbp__step_whole(step, hbp__lanes_row(l, 0, step->ranks));
    if (step->options.max_micro_batches && rows > step->options.max_micro_batches)
        return HBP_OK;
    int is_even = !step->cost->terms.uneven_micro_batches;
    if (is_even)
        HBP__TRY(fill_rows(l, rows, work));
    int64_t ns = hbp__lanes_ns(l);
    if (first ? !is_even && ns > best->ns : ns >= best->ns)
        return HBP_OK;
    hbp_status status = hbp__lanes_write(l, &own);
    if (status < 0) {
        hbp__step_solution_close(&own);
        return status;
    }
    own.complete = best->complete;
    hbp__step_solution_close(best);
    *best = own;
    return HBP_OK;
}

hbp_status hbp__step_lanes(const hbp__step *step, hbp__step_solution *solution)
{
    hbp__lanes lanes;
    const int64_t goals = sizeof GOALS / sizeof *GOALS;
    int64_t bound_ns, work = hbp__add_saturating(HBP__LANES_WORK, HBP__LANES_WORK_SEQUENCE * step->count);
    int is_read;
    HBP__TRY(hbp__bound_lanes(step, solution->ns, &bound_ns));
    int64_t mark = hbp__scratch_mark(step->context);
    HBP__TRY(hbp__lanes_open(step, &lanes));
    for (int32_t round = 1; round < step->options.effort; round++)
        work = hbp__mul_saturating(work, 3);
    HBP__TRY(hbp__lanes_read(&lanes, solution, &is_read));
    if (is_read)
        HBP__TRY(finish_start(&lanes, work, 1, solution));
    for (int64_t i = 0; i < goals && solution->ns > bound_ns; i++) {
        hbp__lanes_build(&lanes, hbp__round_i64((double)bound_ns * GOALS[i]));
        HBP__TRY(finish_start(&lanes, work, 0, solution));
        HBP__TRY(hbp__tick(step->context, "step", i, goals));
    }
    hbp__scratch_release(step->context, mark);
    return HBP_OK;
}

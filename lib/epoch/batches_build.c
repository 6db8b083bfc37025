/* A step built rather than searched for: what the direct search begins with, and a little repair.
 *
 * In: the samples of a step. Out: a plan, in about a tenth of a search's time
 * (docs/decisions/mixed.md has how near). Where memory asks for more than one micro-batch the step is built
 * level by level; then micro-batches about as few as memory asks for, and one more at a time for as long as
 * that is shorter; groups of one degree are dealt evenly. O(micro-batches samples log ranks) each. Oracle:
 * hbp_plan_step, and its bound.
 */
#include <math.h>

#include "base/checked.h"
#include "base/methods.h"
#include "base/scratch.h"
#include "epoch/batches.h"
#include "epoch/tuning.h"
#include "step/builder.h"

int hbp__batches_may_build(const hbp__epoch *epoch)
{
    const hbp_epoch_options *o = &epoch->options;
    return epoch->step_method == HBP__STEP_SEARCH && !o->equal_samples && !o->micro_batches_per_step &&
           !o->max_samples && o->micro_batch_multiple <= 1 && !epoch->cost->terms.lockstep_ranks;
}

typedef struct building {
    const hbp__step *step;
    hbp__step_builder builder;
    hbp__step_board board;
    hbp__step_board best;
} building;

/* Builds a step of m micro-batches; INFINITY where that does not come out. */
static double build_number(building *b, int64_t m)
{
    double fill = (double)b->step->total_tokens / (b->builder.room * (double)m);
    double density = m == 1 || fill < HBP__BUILD_LOOSE ? HBP__BUILD_FREE : fill + (1 - fill) / 2;
    if (!hbp__step_build(&b->builder, &b->board, m, density < 1 ? density : 1))
        return (double)INFINITY;
    return hbp__step_board_time(&b->board);
}

/* Divides pairs of micro-batches of the best board anew, where that takes little, and makes each shorter. */
static void repair(building *b)
{
    hbp__step_builder *builder = &b->builder;
    int64_t batches = b->best.micro_batches,
            work = HBP__BUILD_REPAIR * b->step->count + HBP__BUILD_REPAIR_STEP;
    builder->work_limit = builder->work + builder->squeezer.work + batches * work;
    for (int64_t apart = 1, changed = b->step->count <= HBP__BUILD_RECUT; apart < batches && changed; apart++)
        for (int64_t m = 0; m + apart < batches && hbp__step_go_on(builder); m++)
            changed += hbp__step_recut(builder, &b->best, m, m + apart, 0);
    for (int64_t m = 0; m < batches; m++) {
        builder->work_limit = builder->work + builder->squeezer.work + work / batches;
        if (hbp__step_go_on(builder))
            hbp__step_shorten(builder, &b->best, m, 0);
    }
    hbp__step_board_trim(&b->best);
}

/* Keeps the step on the board where it is the shortest. */
static void keep_shorter(building *b, double own, double *time)
{
    if (!(own < *time))
        return;
    *time = own;
    hbp__step_board_copy(b->step, &b->board, &b->best);
}

/* Groups of one degree, dealt evenly, where they are shorter: of lengths that are alike. */
static hbp_status deal_evenly(building *b, int64_t most, double *time)
{
    hbp__step_solution own = {.ns = 0};
    const int64_t below_ns = *time < 9e18 ? (int64_t)ceil(*time) : INT64_MAX;
    hbp_status status = hbp__step_even(&b->builder, most, below_ns, &own);
    if (status >= 0 && own.first)
        status = hbp__step_board_read(b->step, &own, &b->board);
    if (status >= 0 && own.first)
        keep_shorter(b, hbp__step_board_time(&b->board), time);
    hbp__step_solution_close(&own);
    return status;
}

/* Builds a step of at least `least` and at most `most` micro-batches. */
static hbp_status build(building *b, int64_t least, int64_t most, double *time)
{
    hbp__step_builder *builder = &b->builder;
    *time = (double)INFINITY;
    builder->work_limit = INT64_MAX / 2;
    hbp__step_pool_all(builder);
    /* About what no number of micro-batches beats, but that in more of them fewer layers are recomputed. */
    double near = hbp__step_estimate(b->step, &builder->pool, 0, builder->pool.count, (double)INFINITY);
    near = b->step->count > HBP__BUILD_RECUT ? near + near / HBP__BUILD_NEAR : 0;
    if (least > 1 && hbp__step_build_levels(builder, &b->board, most, 1, 0))
        keep_shorter(b, hbp__step_board_time(&b->board), time);
    double shortest = (double)INFINITY;
    int64_t last = hbp__min_i64(least + HBP__BUILD_NUMBERS, most);
    if (*time < (double)INFINITY) {
        least = hbp__max_i64(least, b->best.micro_batches - HBP__BUILD_FEWER);
        last = least > HBP__BUILD_LEVELS_ALONE || b->step->count > HBP__BUILD_RECUT ? 0 : last;
    }
    for (int64_t m = least; m <= last && !(*time < near); m++) {
        hbp__step_pool_all(builder);
        if (m > b->best.micro_batches && !hbp__step_may_be_shorter(builder, m, *time))
            break;
        double own = build_number(b, m);
        if (!(own < shortest) && shortest < (double)INFINITY)
            break;
        shortest = own;
        keep_shorter(b, own, time);
    }
    HBP__TRY(deal_evenly(b, most, time));
    if (*time < (double)INFINITY)
        repair(b);
    hbp__step_listen(builder);
    return hbp__step_status(builder);
}

static hbp_status build_plan(hbp__step *step, hbp_plan **out)
{
    building b = {.step = step};
    hbp__step_solution solution = {.ns = 0};
    double time;
    hbp__step_trim(step);
    HBP__TRY(hbp__step_builder_open_quick(step, &b.builder));
    int64_t least = (int64_t)ceil((double)step->total_tokens / b.builder.room);
    least = hbp__max_i64(hbp__max_i64(least, 1), hbp__step_fewest_for_caps(step));
    int64_t most = hbp__min_i64(2 * least + HBP__BUILD_NUMBERS, step->count);
    if (least > HBP__BUILD_LARGEST)
        return HBP_OK;
    HBP__TRY(hbp__step_board_open(step, most, &b.board));
    HBP__TRY(hbp__step_board_open(step, most, &b.best));
    HBP__TRY(build(&b, least, most, &time));
    if (!(time < (double)INFINITY))
        return HBP_OK;
    hbp_status status = hbp__step_board_write(step, &b.best, &solution);
    if (status >= 0)
        status = hbp__step_spread(step, &solution);
    if (status >= 0)
        status = hbp__step_finish(step, &solution, out);
    hbp__step_solution_close(&solution);
    return status;
}

hbp_status hbp__batches_build_step(const hbp__epoch *epoch, hbp_context *context, const hbp__batches *b,
                                   int64_t step, hbp_plan **out)
{
    hbp_lengths *subset = NULL;
    hbp_step_options options;
    hbp__step problem;
    int64_t mark = hbp__scratch_mark(context);
    hbp__epoch_step_options(&epoch->options, &options);
    HBP__TRY(hbp__tick(context, "steps", step, b->steps));
    HBP__TRY(hbp__batches_subset(epoch, context, b, step, &subset));
    hbp_status status = hbp__step_open(context, subset, epoch->cost, &options, &problem);
    if (status >= 0)
        status = build_plan(&problem, out);
    hbp__step_close(&problem);
    hbp_lengths_free(subset);
    return hbp__leave(context, mark, status);
}

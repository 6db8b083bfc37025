/* Slices without barriers: room for the lists, first schedules, the search, and its best list as slices. */
#include "tasks/overlap/overlap.h"

#include "base/checked.h"
#include "base/scratch.h"
#include "tasks/overlap/overlap_search.h"

/* Room for the longest list that some seed makes, and for cuts. */
static hbp_status count_room(hbp_context *context, const hbp__task_problem *problem,
                             const hbp__task_slices *const *given, int32_t givens, int32_t *room)
{
    int64_t most = 2 * (int64_t)problem->meta->count;
    for (int32_t g = 0; g < givens; g++)
        most = hbp__max_i64(most, given[g]->count);
    most = 8 * most + 64;
    if (most > INT32_MAX / 4)
        return hbp__fail(context, HBP_E_OVERFLOW, "%lld slices to schedule; at most %d", (long long)most,
                         INT32_MAX / 4);
    *room = (int32_t)most;
    return HBP_OK;
}

static hbp_status write_slices(hbp_context *context, const hbp__scheduler *p, const hbp__piece_list *best,
                               hbp__task_slices *slices)
{
    int32_t *first = p->left;
    for (int32_t m = 0; m < p->meta_ops; m++)
        first[m] = 0;
    for (int32_t i = 0; i < best->count; i++) {
        const hbp__piece *piece = &best->piece[i];
        hbp__task_slice slice = {.meta_op = piece->meta_op,
                                 .first = first[piece->meta_op],
                                 .count = piece->count,
                                 .gpus = piece->gpus,
                                 .start_ns = piece->start_ns,
                                 .end_ns = piece->end_ns};
        first[piece->meta_op] += piece->count;
        HBP__TRY(hbp__task_slices_add(context, slices, &slice));
    }
    return hbp__task_waves(context, p->problem, slices, NULL);
}

static hbp_status seed_and_search(hbp_context *context, hbp__scheduler *scheduler,
                                  const hbp__task_slices *const *given, int32_t givens, int64_t bound_ns,
                                  int32_t effort, hbp__piece_list *best)
{
    hbp__piece_list spare;
    HBP__TRY(hbp__pieces_open(context, scheduler, best));
    HBP__TRY(hbp__pieces_open(context, scheduler, &spare));
    HBP__TRY(hbp__overlap_seeds(context, scheduler, given, givens, bound_ns, best, &spare));
    return hbp__overlap_improve(context, scheduler, bound_ns, effort, best);
}

hbp_status hbp__plan_overlap(hbp_context *context, const hbp__task_problem *problem,
                             const hbp__task_slices *const *given, int32_t givens, int64_t bound_ns,
                             int32_t effort, hbp__task_slices *slices)
{
    int32_t room = 0;
    HBP__TRY(count_room(context, problem, given, givens, &room));
    hbp__scheduler scheduler;
    hbp__piece_list best;
    int64_t mark = hbp__scratch_mark(context);
    HBP__TRY(hbp__scheduler_open(context, problem, room, &scheduler));
    HBP__TRY(seed_and_search(context, &scheduler, given, givens, bound_ns, effort, &best));
    hbp__task_slices made = {.memory = context->memory};
    hbp_status status = write_slices(context, &scheduler, &best, &made);
    if (status != HBP_OK) {
        hbp__task_slices_close(&made);
        return status;
    }
    hbp__scratch_release(context, mark);
    *slices = made;
    return HBP_OK;
}

/* First schedules: given ones without barriers, shares of the whole graph, and list scheduling, each for
 * several times to aim at. The better of any two stays. */
#include "tasks/overlap/overlap_search.h"

#include "base/checked.h"
#include "base/scratch.h"
#include "tasks/tuning.h"

/* Appends a piece; `key` orders it. */
static void add_piece(const hbp__scheduler *p, hbp__piece_list *list, int32_t m, int32_t size, int32_t count,
                      int64_t key)
{
    list->piece[list->count++] = (hbp__piece){
        .meta_op = m, .size = size, .gpus = p->curve[m]->size[size], .count = count, .start_ns = key};
}

/* Schedules the pieces of `spare` in the order of their keys, and keeps the better of both lists in `best`.
 */
static void offer_list(hbp__scheduler *p, hbp__piece_list *best, hbp__piece_list *spare)
{
    hbp__pieces_sort(p, spare);
    if (!hbp__pieces_schedule(p, spare, INT64_MAX))
        return;
    hbp__pieces_justify(p, spare, HBP__SEED_JUSTIFY);
    hbp__pieces_join(p, spare);
    if (best->count == 0 || hbp__pieces_compare(spare, best) < 0) {
        hbp__piece_list swap = *best;
        *best = *spare;
        *spare = swap;
    }
}

/* Starts as given: without barriers every slice starts then or earlier. A size that is no faster than a
 * smaller one is that one. */
static void seed_given(hbp__scheduler *p, const hbp__task_slices *given, hbp__piece_list *best,
                       hbp__piece_list *spare)
{
    spare->count = 0;
    for (int64_t s = 0; s < given->count; s++) {
        const hbp__task_slice *slice = &given->slice[s];
        int32_t size = hbp__curve_floor(p->curve[slice->meta_op], slice->gpus);
        add_piece(p, spare, slice->meta_op, size, slice->count, slice->start_ns);
    }
    offer_list(p, best, spare);
}

enum { FAST_FIRST, SLOW_FIRST, ALTERNATE, ORDERS };

/* Pieces of the shares, those with the longest path to the end first. MetaOps that change size halfway should
 * not all do so from more to fewer, or they all want many GPUs at first: hence the orders. */
static void seed_shares(hbp__scheduler *p, const hbp__allocation *a, int order, hbp__piece_list *best,
                        hbp__piece_list *spare)
{
    spare->count = 0;
    int32_t odd = 0;
    for (int32_t m = 0; m < p->meta_ops; m++) {
        int32_t fast = a->share[m].fast, slow = p->problem->meta->meta_op[m].count - fast;
        int64_t rest = a->tail_ns[m] + a->time_ns[m];
        int first = order == FAST_FIRST || (order == ALTERNATE && odd);
        odd ^= fast > 0;
        for (int part = 0; part < 2; part++, first = !first) {
            int32_t count = first ? fast : slow, size = hbp__allocation_size(a, m, first && fast > 0);
            if (count == 0)
                continue;
            add_piece(p, spare, m, size, count, -rest);
            rest -= count * p->curve[m]->time_ns[size];
        }
    }
    offer_list(p, best, spare);
}

/* Times to aim at, in hundredths of the bound, falling. */
static const int32_t share_aims[] = {HBP__SEED_SHARE_AIMS};
static const int32_t list_aims[] = {HBP__SEED_LIST_AIMS};

enum {
    SHARE_AIMS = sizeof share_aims / sizeof *share_aims,
    LIST_AIMS = sizeof list_aims / sizeof *list_aims
};

static void seed_list(hbp__scheduler *p, hbp__list_scheduling *scheduling, int64_t aim_ns, int32_t spans,
                      hbp__piece_list *best, hbp__piece_list *spare)
{
    if (hbp__list_schedule(scheduling, aim_ns, spans, spare))
        offer_list(p, best, spare);
}

static int is_enough(const hbp__scheduler *p, const hbp__allocation *a, int64_t bound_ns,
                     const hbp__piece_list *best)
{
    return best->makespan_ns <= bound_ns || p->placed > HBP__SEED_MOST_PLACED || a->looked > a->looks;
}

static hbp_status seed_aims(hbp_context *context, hbp__scheduler *scheduler, hbp__allocation *allocation,
                            hbp__list_scheduling *scheduling, int64_t bound_ns, hbp__piece_list *best,
                            hbp__piece_list *spare)
{
    for (int32_t i = 0; i < SHARE_AIMS; i++) {
        if (is_enough(scheduler, allocation, bound_ns, best))
            return HBP_OK;
        HBP__TRY(hbp__tick(context, "first schedules", i, SHARE_AIMS + LIST_AIMS));
        hbp__allocation_reach(allocation, hbp__percent(bound_ns, share_aims[i]));
        HBP__TRY(allocation->status);
        for (int order = 0; order < ORDERS; order++)
            seed_shares(scheduler, allocation, order, best, spare);
    }
    for (int32_t i = 0; i < LIST_AIMS; i++) {
        if (is_enough(scheduler, allocation, bound_ns, best))
            return HBP_OK;
        HBP__TRY(hbp__tick(context, "first schedules", SHARE_AIMS + i, SHARE_AIMS + LIST_AIMS));
        for (int32_t spans = HBP__SEED_LEAST_SPANS; spans <= HBP__SEED_MOST_SPANS; spans *= 2)
            seed_list(scheduler, scheduling, hbp__percent(bound_ns, list_aims[i]), spans, best, spare);
        HBP__TRY(allocation->status);
    }
    return HBP_OK;
}

hbp_status hbp__overlap_seeds(hbp_context *context, hbp__scheduler *scheduler,
                              const hbp__task_slices *const *given, int32_t givens, int64_t bound_ns,
                              hbp__piece_list *best, hbp__piece_list *spare)
{
    best->count = 0;
    best->makespan_ns = INT64_MAX;
    for (int32_t g = 0; g < givens; g++) {
        HBP__TRY(hbp__tick(context, "first schedules", 0, SHARE_AIMS + LIST_AIMS));
        seed_given(scheduler, given[g], best, spare);
    }
    hbp__allocation allocation;
    hbp__list_scheduling scheduling;
    int64_t mark = hbp__scratch_mark(context);
    HBP__TRY(hbp__allocation_open(context, scheduler, &allocation));
    allocation.looks = HBP__SEED_MOST_LOOKS;
    HBP__TRY(hbp__list_scheduling_open(context, &allocation, &scheduling));
    HBP__TRY(seed_aims(context, scheduler, &allocation, &scheduling, bound_ns, best, spare));
    hbp__scratch_release(context, mark);
    return HBP_OK;
}

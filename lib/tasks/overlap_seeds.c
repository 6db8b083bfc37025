#include "tasks/overlap_allot.h"
#include "tasks/overlap_search.h"

#include "base/checked.h"

#define JUSTIFY_ROUNDS 4

/* Appends a piece; `key` orders it. */
static void add(const hbp__placer *p, hbp__list *list, int32_t m, int32_t size, int32_t count, int64_t key)
{
    list->piece[list->count++] = (hbp__piece){
        .meta_op = m, .size = size, .gpus = p->curve[m]->size[size], .count = count, .start_ns = key};
}

/* Keeps the better of the two in `best`. */
static void offer(hbp__placer *p, hbp__list *best, hbp__list *spare)
{
    hbp__overlap_join(p, spare);
    if (best->count == 0 || hbp__list_compare(spare, best) < 0) {
        hbp__list swap = *best;
        *best = *spare;
        *spare = swap;
    }
}

/* Starts as given: without barriers every slice starts then or earlier. A size that is no faster than a
 * smaller one is that one. */
static void seed_given(hbp__placer *p, const hbp__task_slices *given, hbp__list *best, hbp__list *spare)
{
    spare->count = 0;
    for (int64_t s = 0; s < given->count; s++) {
        const hbp__task_slice *slice = &given->slice[s];
        int32_t size = hbp__curve_floor(p->curve[slice->meta_op], slice->gpus);
        add(p, spare, slice->meta_op, size, slice->count, slice->start_ns);
    }
    hbp__list_sort(p, spare);
    if (hbp__place_forward(p, spare, INT64_MAX)) {
        hbp__list_justify(p, spare, JUSTIFY_ROUNDS);
        offer(p, best, spare);
    }
}

enum { FAST_FIRST, SLOW_FIRST, ALTERNATE, WAYS };

/* Pieces of the shares, those with the longest way to the end first. MetaOps that change size halfway should
 * not all do so from more to fewer, or they all want many GPUs at first: hence the ways. */
static void seed_shares(hbp__placer *p, const hbp__allot *a, int way, hbp__list *best, hbp__list *spare)
{
    spare->count = 0;
    int32_t odd = 0;
    for (int32_t m = 0; m < p->meta_ops; m++) {
        int32_t fast = a->share[m].fast, slow = p->problem->meta->meta_op[m].count - fast;
        int64_t rest = a->tail_ns[m] + a->time_ns[m];
        int first = way == FAST_FIRST || (way == ALTERNATE && odd);
        odd ^= fast > 0;
        for (int part = 0; part < 2; part++, first = !first) {
            int32_t count = first ? fast : slow, size = hbp__allot_size(a, m, first && fast > 0);
            if (count == 0)
                continue;
            add(p, spare, m, size, count, -rest);
            rest -= count * p->curve[m]->time_ns[size];
        }
    }
    hbp__list_sort(p, spare);
    if (hbp__place_forward(p, spare, INT64_MAX)) {
        hbp__list_justify(p, spare, JUSTIFY_ROUNDS);
        offer(p, best, spare);
    }
}

/* Times to aim at, in hundredths of the bound, falling. */
static const int32_t aims[] = {200, 160, 140, 130, 124, 119, 115, 112, 109, 107, 105, 103, 101, 100, 97, 94};

hbp_status hbp__overlap_seeds(hbp_context *context, hbp__placer *placer, const hbp__task_slices *const *given,
                              int32_t givens, int64_t bound_ns, int32_t effort, hbp__list *best,
                              hbp__list *spare)
{
    (void)effort;
    best->count = 0;
    for (int32_t g = 0; g < givens; g++)
        seed_given(placer, given[g], best, spare);
    hbp__allot allot;
    hbp_status status = hbp__allot_open(context, placer, &allot);
    for (size_t i = 0; status == HBP_OK && i < sizeof aims / sizeof *aims; i++) {
        if (best->count > 0 && best->makespan_ns <= bound_ns)
            break;
        status = hbp__tick(context, "first schedules", (int64_t)i, (int64_t)(sizeof aims / sizeof *aims));
        if (status != HBP_OK)
            break;
        hbp__allot_reach(&allot, bound_ns / 100 * aims[i] + bound_ns % 100 * aims[i] / 100);
        for (int way = 0; way < WAYS; way++)
            seed_shares(placer, &allot, way, best, spare);
    }
    hbp__allot_close(&allot);
    return status;
}

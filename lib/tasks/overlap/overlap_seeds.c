#include "tasks/overlap/overlap_roll.h"
#include "tasks/overlap/overlap_search.h"

#include "base/checked.h"
#include "base/scratch.h"

#define JUSTIFY_ROUNDS 4

/* Where graphs are large, first schedules take no longer than this: pieces to place, MetaOps to look at. */
#define MOST_PLACED 1000000
#define MOST_LOOKS  30000000

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
static const int32_t share_aims[] = {160, 130, 115, 107, 100, 94};
static const int32_t roll_aims[] = {108, 103, 101, 98};

enum {
    SHARE_AIMS = sizeof share_aims / sizeof *share_aims,
    ROLL_AIMS = sizeof roll_aims / sizeof *roll_aims
};

static int64_t hundredths(int64_t ns, int32_t hundredths)
{
    return ns / 100 * hundredths + ns % 100 * hundredths / 100;
}

static void seed_roll(hbp__placer *p, hbp__roll *roll, int64_t aim_ns, int32_t spans, hbp__list *best,
                      hbp__list *spare)
{
    if (!hbp__roll_fill(roll, aim_ns, spans, spare))
        return;
    hbp__list_sort(p, spare);
    if (hbp__place_forward(p, spare, INT64_MAX)) {
        hbp__list_justify(p, spare, JUSTIFY_ROUNDS);
        offer(p, best, spare);
    }
}

static int is_enough(const hbp__placer *p, const hbp__allot *a, int64_t bound_ns, const hbp__list *best)
{
    return best->makespan_ns <= bound_ns || p->placed > MOST_PLACED || a->looked > a->looks;
}

static hbp_status seed_aims(hbp_context *context, hbp__placer *placer, hbp__allot *allot, hbp__roll *roll,
                            int64_t bound_ns, hbp__list *best, hbp__list *spare)
{
    for (int32_t i = 0; i < SHARE_AIMS; i++) {
        if (is_enough(placer, allot, bound_ns, best))
            return HBP_OK;
        HBP__TRY(hbp__tick(context, "first schedules", i, SHARE_AIMS + ROLL_AIMS));
        hbp__allot_reach(allot, hundredths(bound_ns, share_aims[i]));
        HBP__TRY(allot->status);
        for (int way = 0; way < WAYS; way++)
            seed_shares(placer, allot, way, best, spare);
    }
    for (int32_t i = 0; i < ROLL_AIMS; i++) {
        if (is_enough(placer, allot, bound_ns, best))
            return HBP_OK;
        HBP__TRY(hbp__tick(context, "first schedules", SHARE_AIMS + i, SHARE_AIMS + ROLL_AIMS));
        for (int32_t spans = 16; spans <= 32; spans *= 2)
            seed_roll(placer, roll, hundredths(bound_ns, roll_aims[i]), spans, best, spare);
        HBP__TRY(allot->status);
    }
    return HBP_OK;
}

hbp_status hbp__overlap_seeds(hbp_context *context, hbp__placer *placer, const hbp__task_slices *const *given,
                              int32_t givens, int64_t bound_ns, hbp__list *best, hbp__list *spare)
{
    best->count = 0;
    best->makespan_ns = INT64_MAX;
    for (int32_t g = 0; g < givens; g++) {
        HBP__TRY(hbp__tick(context, "first schedules", 0, SHARE_AIMS + ROLL_AIMS));
        seed_given(placer, given[g], best, spare);
    }
    hbp__allot allot;
    hbp__roll roll;
    int64_t mark = hbp__scratch_mark(context);
    HBP__TRY(hbp__allot_open(context, placer, &allot));
    allot.looks = MOST_LOOKS;
    HBP__TRY(hbp__roll_open(context, &allot, &roll));
    HBP__TRY(seed_aims(context, placer, &allot, &roll, bound_ns, best, spare));
    hbp__scratch_release(context, mark);
    return HBP_OK;
}

/* List scheduling (Graham 1966) of MetaOps whose sizes follow from the time that is left: O(MetaOps + shares
 * of a part) for every piece. */
#include "tasks/overlap/overlap_search.h"

#include "base/checked.h"
#include "base/scratch.h"
#include "tasks/tuning.h"

hbp_status hbp__list_scheduling_open(hbp_context *context, hbp__allocation *allocation,
                                     hbp__list_scheduling *scheduling)
{
    uint64_t count = (uint64_t)allocation->scheduler->meta_ops;
    *scheduling = (hbp__list_scheduling){.allocation = allocation};
    scheduling->asked_ns = hbp__take(context, count, sizeof *scheduling->asked_ns);
    scheduling->busy_ns = hbp__take(context, count, sizeof *scheduling->busy_ns);
    scheduling->busy_gpus = hbp__take(context, count, sizeof *scheduling->busy_gpus);
    scheduling->waits = hbp__take(context, count, sizeof *scheduling->waits);
    scheduling->ready = hbp__take(context, count, sizeof *scheduling->ready);
    scheduling->size = hbp__take(context, count, sizeof *scheduling->size);
    return hbp__scratch_check(context, "a schedule's MetaOps");
}

static void begin_scheduling(hbp__list_scheduling *r)
{
    const hbp__scheduler *p = r->allocation->scheduler;
    r->readies = 0;
    for (int32_t m = 0; m < p->meta_ops; m++) {
        r->allocation->count[m] = p->problem->meta->meta_op[m].count;
        r->asked_ns[r->allocation->part_of[m]] = -1;
        r->busy_ns[m] = 0;
        r->waits[m] = p->before_first[m + 1] - p->before_first[m];
        if (r->waits[m] == 0)
            r->ready[r->readies++] = m;
    }
}

/* Path from the start of m to the end, as shares are now. */
static int64_t path_to_end(const hbp__list_scheduling *r, int32_t m)
{
    return r->allocation->time_ns[m] + r->allocation->tail_ns[m];
}

/* Finds the part's shares when that is due: they hold for a while. */
static void ask_shares(hbp__list_scheduling *r, int32_t part, int64_t now_ns, int64_t rest_ns)
{
    if (r->asked_ns[part] >= 0 && r->asked_ns[part] + rest_ns / HBP__LIST_SHARE_AGE >= now_ns)
        return;
    hbp__allocation_reach_part(r->allocation, part, rest_ns);
    r->asked_ns[part] = now_ns;
}

/* Brings those who may start into order, the longest path first. Little changes from one time to the next, so
 * that insertion takes little more than a look. */
static void order_ready(hbp__list_scheduling *r, int64_t now_ns, int64_t aim_ns)
{
    int64_t rest = hbp__max_i64(aim_ns - now_ns, 1);
    for (int32_t i = 0; i < r->readies; i++)
        ask_shares(r, r->allocation->part_of[r->ready[i]], now_ns, rest);
    for (int32_t i = 1; i < r->readies; i++) {
        int32_t m = r->ready[i], at = i;
        for (; at > 0 && path_to_end(r, r->ready[at - 1]) < path_to_end(r, m); at--)
            r->ready[at] = r->ready[at - 1];
        r->ready[at] = m;
    }
}

/* Gives MetaOp m size k when that takes no more than *free GPUs more. */
static void raise_size(hbp__list_scheduling *r, int32_t m, int32_t k, int32_t *free)
{
    const hbp__curve *c = r->allocation->scheduler->curve[m];
    int32_t more = c->size[k] - (r->size[m] < 0 ? 0 : c->size[r->size[m]]);
    if (k <= r->size[m] || more > *free)
        return;
    *free -= more;
    r->size[m] = k;
}

/* First what the slow operators take, or what there is; then what the fast ones do, those first that have the
 * larger part of their operators fast; what is left goes to the longest path. */
static void share_out(hbp__list_scheduling *r, int32_t free)
{
    const hbp__allocation *a = r->allocation;
    for (int32_t i = 0; i < r->readies; i++) {
        int32_t m = r->ready[i], slow = hbp__allocation_size(a, m, 0);
        int32_t fits = hbp__curve_floor(a->scheduler->curve[m], free);
        r->size[m] = -1;
        if (fits >= 0)
            raise_size(r, m, fits < slow ? fits : slow, &free);
    }
    for (int tenths = 9; tenths >= 0 && free > 0; tenths--)
        for (int32_t i = 0; i < r->readies; i++) {
            int32_t m = r->ready[i];
            int64_t fast = a->share[m].fast;
            if (fast > 0 && r->size[m] >= 0 && fast * 10 / a->count[m] == tenths)
                raise_size(r, m, hbp__allocation_size(a, m, 1), &free);
        }
    for (int32_t i = 0; i < r->readies && free > 0; i++) {
        int32_t m = r->ready[i];
        const hbp__curve *c = a->scheduler->curve[m];
        if (r->size[m] >= 0)
            raise_size(r, m, hbp__curve_floor(c, c->size[r->size[m]] + free), &free);
    }
}

/* How many operators of MetaOp m run on size k in a span of time, at least one; takes them from what is left,
 * and from the fast ones where k is their size. */
static int32_t spend_operators(hbp__allocation *a, int32_t m, int32_t k, int64_t span_ns)
{
    int64_t ns = a->scheduler->curve[m]->time_ns[k];
    int64_t operators = hbp__max_i64((span_ns + ns / 2) / ns, 1);
    int32_t count = (int32_t)hbp__min_i64(operators, a->count[m]);
    hbp__bi_point *share = &a->share[m];
    if (share->fast > 0 && k == hbp__allocation_size(a, m, 1)) {
        count = count > share->fast ? share->fast : count;
        share->fast -= count;
    }
    a->count[m] -= count;
    if (share->fast >= a->count[m] && share->fast > 0) { /* all that is left is fast */
        share->fast = 0;
        share->step++;
    }
    return count;
}

/* Starts the pieces chosen, takes what they use from *free and them from those that wait. */
static int start_pieces(hbp__list_scheduling *r, int64_t now_ns, int64_t span_ns, int32_t *free,
                        hbp__piece_list *list)
{
    hbp__allocation *a = r->allocation;
    int32_t waiting = 0;
    for (int32_t i = 0; i < r->readies; i++) {
        int32_t m = r->ready[i], k = r->size[m];
        if (k < 0) {
            r->ready[waiting++] = m;
            continue;
        }
        if (list->count == a->scheduler->room)
            return 0;
        int32_t count = spend_operators(a, m, k, span_ns), part = a->part_of[m];
        r->busy_ns[m] = now_ns + count * a->scheduler->curve[m]->time_ns[k];
        r->busy_gpus[m] = a->scheduler->curve[m]->size[k];
        *free -= r->busy_gpus[m];
        if (a->part_first[part + 1] - a->part_first[part] <= HBP__LIST_SMALL_PART)
            r->asked_ns[part] = -1;
        list->piece[list->count++] = (hbp__piece){m, k, r->busy_gpus[m], count, now_ns, r->busy_ns[m]};
    }
    r->readies = waiting;
    return 1;
}

/* Goes on to the next end of pieces, and ends them; returns the GPUs that come free, 0 when nothing runs. */
static int32_t end_next(hbp__list_scheduling *r, int64_t *now_ns)
{
    const hbp__scheduler *p = r->allocation->scheduler;
    int64_t next = INT64_MAX;
    int32_t freed = 0;
    for (int32_t m = 0; m < p->meta_ops; m++)
        if (r->busy_ns[m] > 0)
            next = hbp__min_i64(next, r->busy_ns[m]);
    for (int32_t m = 0; m < p->meta_ops; m++) {
        if (r->busy_ns[m] != next)
            continue;
        freed += r->busy_gpus[m];
        r->busy_ns[m] = 0;
        if (r->allocation->count[m] > 0)
            r->ready[r->readies++] = m;
        for (int32_t k = p->next_first[m]; r->allocation->count[m] == 0 && k < p->next_first[m + 1]; k++)
            if (--r->waits[p->next[k]] == 0)
                r->ready[r->readies++] = p->next[k];
    }
    *now_ns = next;
    return freed;
}

int hbp__list_schedule(hbp__list_scheduling *scheduling, int64_t aim_ns, int32_t spans, hbp__piece_list *list)
{
    int64_t now = 0, span = hbp__max_i64(aim_ns / spans, 1);
    int32_t free = scheduling->allocation->scheduler->problem->gpus;
    begin_scheduling(scheduling);
    list->count = 0;
    for (int32_t freed = 1; freed > 0; free += freed) {
        order_ready(scheduling, now, aim_ns);
        share_out(scheduling, free);
        if (!start_pieces(scheduling, now, span, &free, list))
            return 0;
        freed = end_next(scheduling, &now);
        hbp__allocation_look(scheduling->allocation,
                             scheduling->readies + scheduling->allocation->scheduler->meta_ops);
        if (scheduling->allocation->looked > scheduling->allocation->looks)
            return 0;
    }
    return 1;
}

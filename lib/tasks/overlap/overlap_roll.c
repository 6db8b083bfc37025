#include "tasks/overlap/overlap_roll.h"

#include "base/checked.h"
#include "base/scratch.h"

/* MetaOps of a part whose shares are found anew whenever one of its pieces starts. */
#define ASK_PART 8

hbp_status hbp__roll_open(hbp_context *context, hbp__allot *allot, hbp__roll *roll)
{
    uint64_t count = (uint64_t)allot->placer->meta_ops;
    *roll = (hbp__roll){.allot = allot};
    roll->asked_ns = hbp__take(context, count, sizeof *roll->asked_ns);
    roll->busy_ns = hbp__take(context, count, sizeof *roll->busy_ns);
    roll->busy_gpus = hbp__take(context, count, sizeof *roll->busy_gpus);
    roll->waits = hbp__take(context, count, sizeof *roll->waits);
    roll->ready = hbp__take(context, count, sizeof *roll->ready);
    roll->size = hbp__take(context, count, sizeof *roll->size);
    return hbp__scratch_check(context, "a schedule's MetaOps");
}

static void begin(hbp__roll *r)
{
    const hbp__placer *p = r->allot->placer;
    r->readies = 0;
    for (int32_t m = 0; m < p->meta_ops; m++) {
        r->allot->count[m] = p->problem->meta->meta_op[m].count;
        r->asked_ns[r->allot->part_of[m]] = -1;
        r->busy_ns[m] = 0;
        r->waits[m] = p->before_first[m + 1] - p->before_first[m];
        if (r->waits[m] == 0)
            r->ready[r->readies++] = m;
    }
}

/* Path from the start of m to the end, as shares are now. */
static int64_t way_to_go(const hbp__roll *r, int32_t m)
{
    return r->allot->time_ns[m] + r->allot->tail_ns[m];
}

/* Finds the part's shares when that is due: they hold for a while. */
static void ask(hbp__roll *r, int32_t part, int64_t now_ns, int64_t rest_ns)
{
    if (r->asked_ns[part] >= 0 && r->asked_ns[part] + rest_ns / 16 >= now_ns)
        return;
    hbp__allot_reach_part(r->allot, part, rest_ns);
    r->asked_ns[part] = now_ns;
}

/* Brings those who may start into order, the longest way first. Little changes from one time to the next, so
 * that insertion takes little more than a look. */
static void order_ready(hbp__roll *r, int64_t now_ns, int64_t aim_ns)
{
    int64_t rest = hbp__max_i64(aim_ns - now_ns, 1);
    for (int32_t i = 0; i < r->readies; i++)
        ask(r, r->allot->part_of[r->ready[i]], now_ns, rest);
    for (int32_t i = 1; i < r->readies; i++) {
        int32_t m = r->ready[i], at = i;
        for (; at > 0 && way_to_go(r, r->ready[at - 1]) < way_to_go(r, m); at--)
            r->ready[at] = r->ready[at - 1];
        r->ready[at] = m;
    }
}

/* Gives MetaOp m size k when that takes no more than *free GPUs more. */
static void raise(hbp__roll *r, int32_t m, int32_t k, int32_t *free)
{
    const hbp__curve *c = r->allot->placer->curve[m];
    int32_t more = c->size[k] - (r->size[m] < 0 ? 0 : c->size[r->size[m]]);
    if (k <= r->size[m] || more > *free)
        return;
    *free -= more;
    r->size[m] = k;
}

/* First what the slow operators take, or what there is; then what the fast ones do, those first that have the
 * larger part of their operators fast; what is left goes to the longest way. */
static void share_out(hbp__roll *r, int32_t free)
{
    const hbp__allot *a = r->allot;
    for (int32_t i = 0; i < r->readies; i++) {
        int32_t m = r->ready[i], slow = hbp__allot_size(a, m, 0);
        int32_t fits = hbp__curve_floor(a->placer->curve[m], free);
        r->size[m] = -1;
        if (fits >= 0)
            raise(r, m, fits < slow ? fits : slow, &free);
    }
    for (int tenths = 9; tenths >= 0 && free > 0; tenths--)
        for (int32_t i = 0; i < r->readies; i++) {
            int32_t m = r->ready[i];
            int64_t fast = a->share[m].fast;
            if (fast > 0 && r->size[m] >= 0 && fast * 10 / a->count[m] == tenths)
                raise(r, m, hbp__allot_size(a, m, 1), &free);
        }
    for (int32_t i = 0; i < r->readies && free > 0; i++) {
        int32_t m = r->ready[i];
        const hbp__curve *c = a->placer->curve[m];
        if (r->size[m] >= 0)
            raise(r, m, hbp__curve_floor(c, c->size[r->size[m]] + free), &free);
    }
}

/* How many operators of MetaOp m run on size k in a span of time, at least one; takes them from what is left,
 * and from the fast ones where k is their size. */
static int32_t spend(hbp__allot *a, int32_t m, int32_t k, int64_t span_ns)
{
    int64_t ns = a->placer->curve[m]->time_ns[k];
    int64_t operators = hbp__max_i64((span_ns + ns / 2) / ns, 1);
    int32_t count = (int32_t)hbp__min_i64(operators, a->count[m]);
    hbp__share *share = &a->share[m];
    if (share->fast > 0 && k == hbp__allot_size(a, m, 1)) {
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
static int start(hbp__roll *r, int64_t now_ns, int64_t span_ns, int32_t *free, hbp__list *list)
{
    hbp__allot *a = r->allot;
    int32_t waiting = 0;
    for (int32_t i = 0; i < r->readies; i++) {
        int32_t m = r->ready[i], k = r->size[m];
        if (k < 0) {
            r->ready[waiting++] = m;
            continue;
        }
        if (list->count == a->placer->room)
            return 0;
        int32_t count = spend(a, m, k, span_ns), part = a->part_of[m];
        r->busy_ns[m] = now_ns + count * a->placer->curve[m]->time_ns[k];
        r->busy_gpus[m] = a->placer->curve[m]->size[k];
        *free -= r->busy_gpus[m];
        if (a->part_first[part + 1] - a->part_first[part] <= ASK_PART)
            r->asked_ns[part] = -1;
        list->piece[list->count++] = (hbp__piece){m, k, r->busy_gpus[m], count, now_ns, r->busy_ns[m]};
    }
    r->readies = waiting;
    return 1;
}

/* Goes on to the next end of pieces, and ends them; returns the GPUs that come free, 0 when nothing runs. */
static int32_t end_next(hbp__roll *r, int64_t *now_ns)
{
    const hbp__placer *p = r->allot->placer;
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
        if (r->allot->count[m] > 0)
            r->ready[r->readies++] = m;
        for (int32_t k = p->next_first[m]; r->allot->count[m] == 0 && k < p->next_first[m + 1]; k++)
            if (--r->waits[p->next[k]] == 0)
                r->ready[r->readies++] = p->next[k];
    }
    *now_ns = next;
    return freed;
}

int hbp__roll_fill(hbp__roll *roll, int64_t aim_ns, int32_t spans, hbp__list *list)
{
    int64_t now = 0, span = hbp__max_i64(aim_ns / spans, 1);
    int32_t free = roll->allot->placer->problem->gpus;
    begin(roll);
    list->count = 0;
    for (int32_t freed = 1; freed > 0; free += freed) {
        order_ready(roll, now, aim_ns);
        share_out(roll, free);
        if (!start(roll, now, span, &free, list))
            return 0;
        freed = end_next(roll, &now);
        hbp__allot_look(roll->allot, roll->readies + roll->allot->placer->meta_ops);
        if (roll->allot->looked > roll->allot->looks)
            return 0;
    }
    return 1;
}

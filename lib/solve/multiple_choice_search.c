/* Dynamic programming over undominated choices, group by group; then the groups are joined. */
#include "base/checked.h"
#include "base/scratch.h"
#include "base/sort.h"
#include "solve/multiple_choice.h"

/* States that are remembered to find the way back, 8 bytes each; the search ends when there are more. Memory
 * for proofs: 16 MiB; chosen. */
#define MOST_STATES (INT64_C(1) << 21)

/* Items between two looks at whether to go on. */
#define TICK_ITEMS 64

#define WHAT "the states of a choice"

/* Choices for a part of the items, ascending in size and descending in cost. */
typedef struct front {
    int64_t *size;
    int64_t *cost;
    double *reduced;
    int64_t count;
    int64_t room;
} front;

/* How a state came about: from a state of the front before, by an option; or, where fronts are joined, from
 * one of each. */
typedef struct origin {
    int32_t from;
    int32_t by;
} origin;

typedef struct search {
    hbp_context *context;
    hbp__memory memory;
    const hbp__mc_bench *bench;
    int64_t upper;
    int64_t *work;
    front now;
    front next;
    front *group;  /* [parts] sizes weighed */
    front *joined; /* [parts] of groups 0 .. g; the first and the last are not used */
    int32_t *part; /* [parts] first item of each group that has any */
    int32_t parts;
    origin *origins; /* of all items' states, then of joined ones */
    int64_t origin_count;
    int64_t origin_room;
    int64_t *trail; /* [items] where an item's states begin in origins */
    int64_t *joint; /* [parts] where a joined front's states begin */
    int exhausted;
} search;

static void release_front(search *s, front *f)
{
    hbp__delete(&s->memory, f->size);
    hbp__delete(&s->memory, f->cost);
    hbp__delete(&s->memory, f->reduced);
    *f = (front){0};
}

/* What grows; the rest is scratch. */
static void close_search(search *s)
{
    for (int32_t g = 0; g < s->parts; g++) {
        release_front(s, &s->group[g]);
        release_front(s, &s->joined[g]);
    }
    release_front(s, &s->now);
    release_front(s, &s->next);
    hbp__delete(&s->memory, s->origins);
}

static hbp_status short_of_memory(search *s)
{
    return hbp__fail_memory(s->context, WHAT);
}

static hbp_status open_search(hbp_context *context, const hbp__mc_bench *bench, int64_t upper, int64_t *work,
                              search *s)
{
    const hbp__multiple_choice *p = bench->problem;
    *s =
        (search){.context = context, .memory = context->memory, .bench = bench, .upper = upper, .work = work};
    uint64_t groups = (uint64_t)p->groups;
    s->group = hbp__take_zero(context, groups, sizeof *s->group);
    s->joined = hbp__take_zero(context, groups, sizeof *s->joined);
    s->part = hbp__take(context, groups + 1, sizeof *s->part);
    s->trail = hbp__take(context, (uint64_t)p->items, sizeof *s->trail);
    s->joint = hbp__take(context, groups, sizeof *s->joint);
    HBP__TRY(hbp__scratch_check(context, WHAT));
    for (int32_t i = 0; i < p->items; i++)
        if (!i || p->group[i] != p->group[i - 1])
            s->part[s->parts++] = i;
    s->part[s->parts] = p->items;
    return HBP_OK;
}

static hbp_status grow_front(search *s, front *f)
{
    int64_t room = f->room ? 2 * f->room : 64;
    int64_t *size = hbp__renew(&s->memory, f->size, (uint64_t)room, sizeof *size);
    f->size = size ? size : f->size;
    int64_t *cost = hbp__renew(&s->memory, f->cost, (uint64_t)room, sizeof *cost);
    f->cost = cost ? cost : f->cost;
    double *reduced = hbp__renew(&s->memory, f->reduced, (uint64_t)room, sizeof *reduced);
    f->reduced = reduced ? reduced : f->reduced;
    if (!size || !cost || !reduced)
        return short_of_memory(s);
    f->room = room;
    return HBP_OK;
}

static hbp_status append_state(search *s, front *f, int64_t size, int64_t cost, double reduced)
{
    if (f->count == f->room)
        HBP__TRY(grow_front(s, f));
    f->size[f->count] = size;
    f->cost[f->count] = cost;
    f->reduced[f->count++] = reduced;
    return HBP_OK;
}

static hbp_status remember_origin(search *s, int64_t from, int32_t by)
{
    if (s->origin_count == s->origin_room) {
        int64_t room = s->origin_room ? 2 * s->origin_room : 1024;
        origin *origins = hbp__renew(&s->memory, s->origins, (uint64_t)room, sizeof *origins);
        if (!origins)
            return short_of_memory(s);
        s->origins = origins;
        s->origin_room = room;
    }
    s->origins[s->origin_count++] = (origin){(int32_t)from, by};
    return HBP_OK;
}

/* Takes steps off the work that is left; 0 when it ran out. */
static int may_go_on(search *s, int64_t steps)
{
    *s->work -= steps;
    if (*s->work <= 0 || s->origin_count > MOST_STATES)
        s->exhausted = 1;
    return !s->exhausted;
}

/* The states after one more item: the states before, moved by each of its options, merged in the order of
 * size; whatever costs as much as a smaller one is dropped, and what the bound rules out. */
static hbp_status add_item(search *s, int32_t item)
{
    const front *now = &s->now;
    front *next = &s->next;
    const hbp__mc_option *option = s->bench->option + s->bench->first[item];
    int32_t options = s->bench->first[item + 1] - s->bench->first[item];
    next->count = 0;
    s->trail[item] = s->origin_count;
    /* One list of moved states an option; options are few, lists long: the smallest head by looking at all.
     */
    int64_t head[HBP__MC_OPTIONS] = {0};
    for (;;) {
        int32_t best = -1;
        int64_t size = 0, cost = 0;
        for (int32_t o = 0; o < options; o++) {
            if (head[o] == now->count || option[o].reduced > s->bench->slack)
                continue;
            int64_t moved = now->size[head[o]] + option[o].size;
            int64_t dearer = hbp__add_saturating(now->cost[head[o]], option[o].cost);
            if (best < 0 || moved < size || (moved == size && dearer < cost)) {
                best = o;
                size = moved;
                cost = dearer;
            }
        }
        if (best < 0)
            break;
        int64_t from = head[best]++;
        double reduced = now->reduced[from] + option[best].reduced;
        if (reduced > s->bench->slack || (next->count && cost >= next->cost[next->count - 1]))
            continue;
        HBP__TRY(append_state(s, next, size, cost, reduced));
        HBP__TRY(remember_origin(s, from, best));
    }
    may_go_on(s, now->count * options);
    front swap = s->now;
    s->now = s->next;
    s->next = swap;
    return HBP_OK;
}

/* The only option of an item that the bound leaves, or -1. Its reduced cost is 0: the least of an item stays.
 */
static int32_t only_option(const search *s, int32_t item)
{
    int32_t only = -1;
    for (int32_t i = s->bench->first[item]; i < s->bench->first[item + 1]; i++)
        if (s->bench->option[i].reduced <= s->bench->slack) {
            if (only >= 0)
                return -1;
            only = i - s->bench->first[item];
        }
    return only;
}

static hbp_status add_group(search *s, int32_t g)
{
    const hbp__multiple_choice *p = s->bench->problem;
    int64_t size = 0, cost = 0;
    s->now.count = 0;
    HBP__TRY(append_state(s, &s->now, 0, 0, 0));
    for (int32_t item = s->part[g]; item < s->part[g + 1]; item++) {
        if (item % TICK_ITEMS == 0)
            HBP__TRY(hbp__tick(s->context, "choice", item, p->items));
        int32_t only = only_option(s, item);
        if (only >= 0) {
            const hbp__mc_option *option = &s->bench->option[s->bench->first[item] + only];
            size += option->size;
            cost = hbp__add_saturating(cost, option->cost);
            s->trail[item] = -1 - only;
        } else {
            HBP__TRY(add_item(s, item));
        }
        if (!may_go_on(s, 1) || !s->now.count)
            break;
    }
    double weight = p->weight[p->group[s->part[g]]];
    for (int64_t i = 0; i < s->now.count; i++) {
        s->now.size[i] = hbp__round_i64((double)(s->now.size[i] + size) * weight);
        s->now.cost[i] = hbp__add_saturating(s->now.cost[i], cost);
    }
    s->group[g] = s->now;
    s->now = (front){0};
    return HBP_OK;
}

/* The pairs of a state of the groups before and one of group `g` that the bound leaves, in `pairs`, from
 * where `origins` tells them. */
static hbp_status pair_fronts(search *s, const front *before, const front *group, front *pairs)
{
    for (int64_t i = 0; i < before->count; i++) {
        if (!may_go_on(s, group->count))
            return HBP_OK;
        for (int64_t j = 0; j < group->count; j++) {
            double reduced = before->reduced[i] + group->reduced[j];
            if (reduced > s->bench->slack)
                continue;
            HBP__TRY(append_state(s, pairs, hbp__add_saturating(before->size[i], group->size[j]),
                                  hbp__add_saturating(before->cost[i], group->cost[j]), reduced));
            HBP__TRY(remember_origin(s, i, (int32_t)j));
        }
    }
    return HBP_OK;
}

/* Keeps the undominated of `pairs`, in the order of size, and their origins. */
static hbp_status keep_undominated(search *s, int32_t g, const front *pairs)
{
    uint64_t count = (uint64_t)pairs->count;
    int64_t mark = hbp__scratch_mark(s->context);
    uint32_t *order = hbp__take(s->context, count, sizeof *order);
    origin *sorted = hbp__take(s->context, count, sizeof *sorted);
    HBP__TRY(hbp__scratch_check(s->context, WHAT));
    origin *origins = s->origins + s->joint[g];
    front *out = &s->joined[g];
    for (int64_t i = 0; i < pairs->count; i++)
        order[i] = (uint32_t)i;
    if (!hbp__sort_by_i64(&s->memory, pairs->cost, order, pairs->count) ||
        !hbp__sort_by_i64(&s->memory, pairs->size, order, pairs->count))
        return short_of_memory(s);
    for (int64_t i = 0; i < pairs->count; i++) {
        uint32_t at = order[i];
        if (out->count && pairs->cost[at] >= out->cost[out->count - 1])
            continue;
        sorted[out->count] = origins[at];
        HBP__TRY(append_state(s, out, pairs->size[at], pairs->cost[at], pairs->reduced[at]));
    }
    for (int64_t i = 0; i < out->count; i++)
        origins[i] = sorted[i];
    s->origin_count = s->joint[g] + out->count;
    hbp__scratch_release(s->context, mark);
    return HBP_OK;
}

static const front *joined_before(const search *s, int32_t g)
{
    return g == 1 ? &s->group[0] : &s->joined[g - 1];
}

static hbp_status join_group(search *s, int32_t g)
{
    front pairs = {0};
    s->joint[g] = s->origin_count;
    hbp_status status = pair_fronts(s, joined_before(s, g), &s->group[g], &pairs);
    if (status >= 0 && !s->exhausted)
        status = keep_undominated(s, g, &pairs);
    release_front(s, &pairs);
    return status;
}

/* The least cost within the budget of two fronts, or of one: as one grows the other shrinks. */
static int64_t best_pair(const search *s, const front *before, const front *last, int64_t *i, int64_t *j)
{
    int64_t best = s->upper, budget = s->bench->problem->budget;
    int64_t right = last->count - 1;
    int64_t left_count = before ? before->count : 1;
    for (int64_t left = 0; left < left_count; left++) {
        int64_t size = before ? before->size[left] : 0, cost = before ? before->cost[left] : 0;
        while (right >= 0 && hbp__add_saturating(size, last->size[right]) > budget)
            right--;
        if (right < 0)
            break;
        int64_t sum = hbp__add_saturating(cost, last->cost[right]);
        if (sum < best) {
            best = sum;
            *i = left;
            *j = right;
        }
    }
    return best;
}

/* Walks back through a group's items from its state `state`. */
static void trace_group(const search *s, int32_t g, int64_t state, int32_t *chosen)
{
    for (int32_t item = s->part[g + 1] - 1; item >= s->part[g]; item--) {
        if (s->trail[item] < 0) {
            chosen[item] = (int32_t)(-1 - s->trail[item]);
            continue;
        }
        const origin *o = &s->origins[s->trail[item] + state];
        chosen[item] = o->by;
        state = o->from;
    }
}

static void trace_choices(const search *s, int64_t before, int64_t last, int32_t *chosen)
{
    trace_group(s, s->parts - 1, last, chosen);
    for (int32_t g = s->parts - 2; g > 0; g--) {
        const origin *o = &s->origins[s->joint[g] + before];
        trace_group(s, g, o->by, chosen);
        before = o->from;
    }
    if (s->parts > 1)
        trace_group(s, 0, before, chosen);
}

static hbp_status run_search(search *s, int32_t *chosen, int64_t *cost, int *proven)
{
    *cost = s->upper;
    *proven = 1;
    for (int32_t g = 0; g < s->parts; g++) {
        HBP__TRY(add_group(s, g));
        *proven = !s->exhausted;
        if (s->exhausted || !s->group[g].count)
            return HBP_OK;
    }
    for (int32_t g = 1; g < s->parts - 1; g++) {
        HBP__TRY(join_group(s, g));
        *proven = !s->exhausted;
        if (s->exhausted)
            return HBP_OK;
    }
    int64_t before = 0, last = 0;
    *cost = best_pair(s, s->parts > 1 ? joined_before(s, s->parts - 1) : NULL, &s->group[s->parts - 1],
                      &before, &last);
    if (*cost < s->upper)
        trace_choices(s, before, last, chosen);
    return HBP_OK;
}

hbp_status hbp__mc_search(hbp_context *context, const hbp__mc_bench *bench, int64_t upper, int64_t *work,
                          int32_t *chosen, int64_t *cost, int *proven)
{
    search s;
    int64_t mark = hbp__scratch_mark(context);
    HBP__TRY(open_search(context, bench, upper, work, &s));
    hbp_status status = run_search(&s, chosen, cost, proven);
    close_search(&s);
    return hbp__leave(context, mark, status);
}

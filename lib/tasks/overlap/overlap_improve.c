/* Simulated annealing over lists of pieces: one or some small changes, the list scheduled again from the
 * first piece that they touch, then justified. A try is O(pieces behind it), and tries are counted. */
#include "tasks/overlap/overlap_search.h"

#include <string.h>

#include "base/checked.h"
#include "base/rng.h"
#include "base/scratch.h"
#include "tasks/tuning.h"

#define TICK_PLACED 4096

typedef struct search {
    hbp__scheduler *scheduler;
    hbp__rng rng;
    hbp__piece_list now;
    hbp__piece_list next;
    int32_t *chain; /* [room] pieces of `now`, each waiting for the end of the following one; the first ends
                       last */
    int32_t chained;
    int64_t floor_ns; /* nothing that starts before was changed in `next` */
    int64_t aim_ns;   /* what is done by then is done early enough */
} search;

static int32_t draw_below(search *s, int32_t below)
{
    return (int32_t)hbp__rng_below(&s->rng, (uint64_t)below);
}

/* One of the chains of pieces without a gap from the end to the start, by lot. */
static void find_chain(search *s)
{
    const hbp__piece_list *now = &s->now;
    int32_t at = -1, seen = 0;
    for (int32_t i = 0; i < now->count; i++)
        if (now->piece[i].end_ns == now->makespan_ns && draw_below(s, ++seen) == 0)
            at = i;
    s->chained = 0;
    while (at >= 0) {
        s->chain[s->chained++] = at;
        int64_t start = now->piece[at].start_ns;
        int32_t found = -1;
        seen = 0;
        for (int32_t i = at - 1; i >= 0 && seen < 3; i--)
            if (now->piece[i].end_ns == start && draw_below(s, ++seen) == 0)
                found = i;
        at = found;
    }
}

static void touch_piece(search *s, const hbp__piece *piece)
{
    s->floor_ns = hbp__min_i64(s->floor_ns, piece->start_ns);
}

static int32_t next_of_same(const hbp__piece_list *list, int32_t i)
{
    for (int32_t j = i + 1; j < list->count; j++)
        if (list->piece[j].meta_op == list->piece[i].meta_op)
            return j;
    return -1;
}

static int32_t before_of_same(const hbp__piece_list *list, int32_t i)
{
    for (int32_t j = i - 1; j >= 0; j--)
        if (list->piece[j].meta_op == list->piece[i].meta_op)
            return j;
    return -1;
}

static int set_size(search *s, hbp__piece *piece, int32_t size)
{
    const hbp__curve *c = s->scheduler->curve[piece->meta_op];
    if (size < 0 || size >= c->sizes)
        return 0;
    touch_piece(s, piece);
    piece->size = size;
    piece->gpus = c->size[size];
    return 1;
}

static int resize_piece(search *s, hbp__piece_list *list, int32_t i, int by)
{
    return set_size(s, &list->piece[i], list->piece[i].size + by);
}

static void remove_piece(hbp__piece_list *list, int32_t i)
{
    list->count--;
    memmove(list->piece + i, list->piece + i + 1, (size_t)(list->count - i) * sizeof *list->piece);
}

static void insert_piece(hbp__piece_list *list, int32_t i, hbp__piece piece)
{
    memmove(list->piece + i + 1, list->piece + i, (size_t)(list->count - i) * sizeof *list->piece);
    list->piece[i] = piece;
    list->count++;
}

/* Cuts piece i after some of its operators; the rest is placed when it would start. Returns where it is, or
 * -1. */
static int32_t cut_piece(search *s, hbp__piece_list *list, int32_t i, int32_t first)
{
    if (list->count == s->scheduler->room)
        return -1;
    hbp__piece *piece = &list->piece[i], rest = *piece;
    touch_piece(s, piece);
    rest.count -= first;
    rest.start_ns = piece->end_ns - rest.count * s->scheduler->curve[rest.meta_op]->time_ns[rest.size];
    piece->count = first;
    piece->end_ns = rest.start_ns;
    int32_t j = i + 1;
    while (j < list->count && list->piece[j].start_ns < rest.start_ns)
        j++;
    insert_piece(list, j, rest);
    return j;
}

static int cut_and_resize(search *s, hbp__piece_list *list, int32_t i)
{
    if (list->piece[i].count < 2)
        return 0;
    int32_t j = cut_piece(s, list, i, 1 + draw_below(s, list->piece[i].count - 1));
    if (j < 0)
        return 0;
    int32_t which =
        draw_below(s, 2) ? i : j; /* drawn one after the other: compilers order arguments differently */
    return resize_piece(s, list, which, draw_below(s, 2) ? 1 : -1);
}

/* Operators go from one piece to the next of its MetaOp or back. */
static int shift_operators(search *s, hbp__piece_list *list, int32_t i)
{
    int32_t j = draw_below(s, 2) ? next_of_same(list, i) : before_of_same(list, i);
    if (j < 0)
        return 0;
    hbp__piece *from = &list->piece[i], *to = &list->piece[j];
    int32_t count = draw_below(s, 2) ? 1 : 1 + draw_below(s, from->count);
    touch_piece(s, from);
    touch_piece(s, to);
    from->count -= count;
    to->count += count;
    if (from->count == 0)
        remove_piece(list, i);
    return 1;
}

static int swap_with_next(search *s, hbp__piece_list *list, int32_t i)
{
    int32_t j = next_of_same(list, i);
    if (j < 0)
        return 0;
    hbp__piece a = list->piece[i], b = list->piece[j];
    list->piece[i].count = b.count;
    list->piece[j].count = a.count;
    return set_size(s, &list->piece[i], b.size) && set_size(s, &list->piece[j], a.size);
}

/* To another place in the order, at most some places away. */
static int move_piece(search *s, hbp__piece_list *list, int32_t i)
{
    int32_t reach = list->count < HBP__SEARCH_REACH ? list->count : HBP__SEARCH_REACH,
            j = i + draw_below(s, 2 * reach) - reach;
    j = j < 0 ? 0 : j >= list->count ? list->count - 1 : j;
    if (j == i)
        return 0;
    hbp__piece piece = list->piece[i];
    touch_piece(s, &piece);
    touch_piece(s, &list->piece[j]);
    remove_piece(list, i);
    insert_piece(list, j, piece);
    return 1;
}

/* A piece of `next`: three times of four one of the chain. */
static int32_t pick_piece(search *s)
{
    int32_t i = s->chained > 0 && draw_below(s, 4) ? s->chain[draw_below(s, s->chained)]
                                                   : draw_below(s, s->now.count);
    return i < s->next.count ? i : s->next.count - 1;
}

static int change_once(search *s)
{
    int32_t i = pick_piece(s);
    hbp__piece_list *list = &s->next;
    switch (draw_below(s, 12)) {
    case 0:
        return resize_piece(s, list, i, 1);
    case 1:
        return resize_piece(s, list, i, -1);
    case 2:
    case 3:
        return cut_and_resize(s, list, i);
    case 4:
        return swap_with_next(s, list, i);
    case 5:
        return move_piece(s, list, i);
    default: /* the finest change, and often there is no other piece to change with */
        return shift_operators(s, list, i);
    }
}

/* One change, or some: what one piece takes another may have to give. */
static int change_list(search *s)
{
    int changed = change_once(s);
    while (draw_below(s, 100) < HBP__SEARCH_MORE_PERCENT)
        changed |= change_once(s);
    return changed;
}

/* What the search brings down: how late the last MetaOps end after the aim, summed, and the GPU time's share.
 * The makespan alone says nothing of all that is not last. The scheduler has just placed the list. */
static int64_t price_list(const search *s, const hbp__piece_list *list)
{
    const hbp__scheduler *p = s->scheduler;
    int64_t sum = hbp__mul_saturating(list->area_ns / p->problem->gpus, 2);
    for (int32_t m = 0; m < p->meta_ops; m++)
        if (p->next_first[m] == p->next_first[m + 1] && p->ready[m] > s->aim_ns)
            sum = hbp__add_saturating(sum, p->ready[m] - s->aim_ns);
    return sum;
}

static void set_aim(search *s, int64_t best_ns)
{
    s->aim_ns = best_ns - best_ns / HBP__SEARCH_AIM;
}

/* How far from the best the search may stray: about what one change of one piece makes, more where pieces are
 * few and several must change at once. */
static int64_t grain_of(const hbp__piece_list *best)
{
    int64_t count = best->count;
    int64_t more_ns = hbp__mul_saturating(best->makespan_ns / (count * count + 1), 4);
    return hbp__add_saturating(best->makespan_ns / (count + 2), more_ns);
}

static hbp_status search_lists(hbp_context *context, search *s, int64_t bound_ns, int64_t budget,
                               hbp__piece_list *best)
{
    hbp__scheduler *p = s->scheduler;
    int64_t start = p->placed, end = start + budget, tick = start;
    hbp__pieces_copy(&s->now, best);
    hbp__pieces_schedule(p, &s->now, INT64_MAX);
    hbp__pieces_sort(p, &s->now);
    find_chain(s);
    set_aim(s, best->makespan_ns);
    int64_t now = price_list(s, &s->now);
    while (p->placed < end && best->makespan_ns > bound_ns) {
        if (p->placed >= tick) {
            HBP__TRY(hbp__tick(context, "shorter schedules", p->placed - start, budget));
            tick = p->placed + TICK_PLACED;
        }
        hbp__pieces_copy(&s->next, &s->now);
        p->placed++;
        s->floor_ns = INT64_MAX;
        if (!change_list(s))
            continue;
        int64_t best_ns = best->makespan_ns, grain_ns = grain_of(best);
        if (!hbp__pieces_schedule_from(p, &s->next, s->floor_ns, hbp__add_saturating(best_ns, grain_ns)))
            continue;
        double u = (double)draw_below(s, 1 << 20) / (1 << 20),
               heat = (double)(end - p->placed) / (double)budget;
        int64_t slack = heat > 0 ? (int64_t)((double)grain_ns * HBP__SEARCH_HEAT * heat * u * u) : 0;
        int64_t most = hbp__add_saturating(now, slack);
        if (price_list(s, &s->next) > hbp__add_saturating(most, grain_ns / HBP__SEARCH_SLACK))
            continue;
        hbp__pieces_justify(p, &s->next, 1);
        int64_t next = price_list(s, &s->next);
        if (next > most)
            continue;
        hbp__pieces_join(p, &s->next);
        hbp__piece_list swap = s->now;
        s->now = s->next;
        s->next = swap;
        now = next;
        find_chain(s);
        if (hbp__pieces_compare(&s->now, best) >= 0)
            continue;
        if (s->now.makespan_ns < best->makespan_ns) {
            set_aim(s, s->now.makespan_ns);
            now = price_list(s, &s->now);
        }
        hbp__pieces_copy(best, &s->now);
    }
    return HBP_OK;
}

/* Pieces to place: more of them for more pieces, of which there are more changes, as far as that takes less
 * than a second at effort 5; twice as many for every step of effort. */
static int64_t budget_of(const hbp__piece_list *list, int32_t effort)
{
    int64_t squared = (int64_t)list->count * list->count;
    return hbp__min_i64(HBP__SEARCH_PIECES + squared / HBP__SEARCH_PAIRS, HBP__SEARCH_MOST_PIECES) << effort;
}

hbp_status hbp__overlap_improve(hbp_context *context, hbp__scheduler *scheduler, int64_t bound_ns,
                                int32_t effort, hbp__piece_list *best)
{
    search s = {.scheduler = scheduler, .rng = hbp__rng_make(scheduler->problem->seed, 0, 0)};
    int64_t mark = hbp__scratch_mark(context);
    HBP__TRY(hbp__pieces_open(context, scheduler, &s.now));
    HBP__TRY(hbp__pieces_open(context, scheduler, &s.next));
    s.chain = hbp__take(context, (uint64_t)scheduler->room, sizeof *s.chain);
    HBP__TRY(hbp__scratch_check(context, "a list of slices"));
    HBP__TRY(search_lists(context, &s, bound_ns, budget_of(best, effort), best));
    hbp__scratch_release(context, mark);
    return HBP_OK;
}

/* Serial schedule generation over one resource (Kelley 1963) with its breakpoints in time, forwards and
 * backwards, and justification (Li and Willis 1992). O(pieces x breakpoints), in practice near the pieces. */
#include "tasks/overlap/overlap_pieces.h"

#include <string.h>

#include "base/bits.h"
#include "base/checked.h"
#include "base/scratch.h"

/* From so many MetaOps on it is kept where nothing fits: schedules are long, and little of them is free. */
#define MANY_META_OPS 512

/* Breakpoints that are compared at once. */
#define BLOCK 16

/* Both directions of the edges between MetaOps, as lists of neighbours. */
static void list_neighbours(hbp__scheduler *p)
{
    const hbp__meta_graph *meta = p->problem->meta;
    int32_t out = 0, in = 0;
    for (int32_t m = 0; m < p->meta_ops; m++) {
        p->next_first[m] = out;
        for (int64_t e = meta->out_first[m]; e < meta->out_first[m + 1]; e++)
            p->next[out++] = meta->edges[e].to;
        p->before_first[m] = in;
        for (int64_t e = meta->in_first[m]; e < meta->in_first[m + 1]; e++)
            p->before[in++] = meta->edges[meta->in_edges[e]].from;
    }
    p->next_first[p->meta_ops] = out;
    p->before_first[p->meta_ops] = in;
}

hbp_status hbp__scheduler_open(hbp_context *context, const hbp__task_problem *problem, int32_t room,
                               hbp__scheduler *scheduler)
{
    const hbp__meta_graph *meta = problem->meta;
    uint64_t count = (uint64_t)meta->count, edges = (uint64_t)meta->edge_count;
    *scheduler = (hbp__scheduler){.problem = problem, .meta_ops = meta->count};
    hbp__scheduler *p = scheduler;
    if (meta->edge_count > INT32_MAX)
        return hbp__fail(context, HBP_E_OVERFLOW, "%lld edges between MetaOps; at most 2147483647",
                         (long long)meta->edge_count);
    p->room = room;
    p->curve = hbp__take(context, count, sizeof *p->curve);
    p->ready = hbp__take(context, count, sizeof *p->ready);
    p->left = hbp__take(context, count, sizeof *p->left);
    p->waits = hbp__take(context, count, sizeof *p->waits);
    p->next_first = hbp__take(context, count + 1, sizeof *p->next_first);
    p->next = hbp__take(context, edges, sizeof *p->next);
    p->before_first = hbp__take(context, count + 1, sizeof *p->before_first);
    p->before = hbp__take(context, edges, sizeof *p->before);
    p->point_ns = hbp__take(context, 2 * (uint64_t)room + 2, sizeof *p->point_ns);
    p->point_used = hbp__take(context, 2 * (uint64_t)room + 2, sizeof *p->point_used);
    p->scratch = hbp__take(context, (uint64_t)room, sizeof *p->scratch);
    if (meta->count >= MANY_META_OPS)
        p->no_gap = hbp__take(context, HBP__GAP_GPUS * HBP__GAP_TIMES, sizeof *p->no_gap);
    HBP__TRY(hbp__scratch_check(context, "the schedule's lists"));
    p->least_gpus = problem->gpus;
    for (int32_t m = 0; m < p->meta_ops; m++) {
        p->curve[m] = hbp__meta_curve(problem->scaling, m);
        if (p->curve[m]->size[0] < p->least_gpus)
            p->least_gpus = p->curve[m]->size[0];
    }
    list_neighbours(p);
    return HBP_OK;
}

hbp_status hbp__pieces_open(hbp_context *context, const hbp__scheduler *scheduler, hbp__piece_list *list)
{
    *list = (hbp__piece_list){.makespan_ns = INT64_MAX};
    list->piece = hbp__take(context, (uint64_t)scheduler->room, sizeof *list->piece);
    return hbp__scratch_check(context, "a list of slices");
}

void hbp__pieces_copy(hbp__piece_list *to, const hbp__piece_list *from)
{
    hbp__piece *piece = to->piece;
    *to = *from;
    to->piece = piece;
    memcpy(piece, from->piece, (size_t)from->count * sizeof *piece);
}

/* The breakpoint at or before `ns`, not before `from`. */
static int32_t find_point(const hbp__scheduler *p, int32_t from, int64_t ns)
{
    int32_t low = from, high = p->points;
    while (high - low > 1) {
        int32_t middle = low + (high - low) / 2;
        if (p->point_ns[middle] <= ns)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* Makes room for `more` (1 or 2) points before point `at`. Loops, for mostly few are behind. */
static void shift_points(hbp__scheduler *p, int32_t at, int32_t more)
{
    for (int32_t i = p->points; i-- > at;) {
        p->point_ns[i + more] = p->point_ns[i];
        p->point_used[i + more] = p->point_used[i];
    }
    p->points += more;
}

/* The first breakpoint behind `from` that is at `ns` or later; the number of points: none. */
static int32_t find_end(const hbp__scheduler *p, int32_t from, int64_t ns)
{
    int32_t step = 1, low = from;
    while (step < p->points - low && p->point_ns[low + step] < ns) {
        low += step;
        step *= 2;
    }
    int32_t high = step < p->points - low ? low + step : p->points;
    while (high - low > 1) {
        int32_t middle = low + (high - low) / 2;
        if (p->point_ns[middle] < ns)
            low = middle;
        else
            high = middle;
    }
    return high;
}

/* The last of the breakpoints (first, last) with more than `room` GPUs in use; `first`: none. */
static int32_t last_fuller(const int32_t *used, int32_t first, int32_t last, int32_t room)
{
    int32_t i = last - 1;
    for (; i - first >= BLOCK; i -= BLOCK) {
        int32_t least = 0;
        for (int32_t k = 0; k < BLOCK; k++)
            least |= room - used[i - k];
        if (least < 0)
            break;
    }
    while (i > first && used[i] <= room)
        i--;
    return i;
}

/* The entry of no_gap for 2^g GPUs and 2^t ns. */
static int64_t *gap_entry(const hbp__scheduler *p, int64_t g, int64_t t)
{
    return &p->no_gap[g * HBP__GAP_TIMES + t];
}

/* No earlier than what is known to be too early; GPUs in use only rise, so it stays too early. */
static int64_t skip_gaps(const hbp__scheduler *p, int64_t ready, int64_t duration, int32_t gpus)
{
    return hbp__max_i64(
        ready, *gap_entry(p, hbp__highest_bit((uint64_t)gpus), hbp__highest_bit((uint64_t)duration)));
}

static int64_t power_above(int64_t n)
{
    return n > 1 ? hbp__highest_bit((uint64_t)n - 1) + 1 : 0;
}

/* Nothing as wide and long starts from `ready` on before `start`: known of what is wider and longer, too. */
static void learn_gap(const hbp__scheduler *p, int64_t ready, int64_t start, int64_t duration, int32_t gpus)
{
    int64_t *entry = gap_entry(p, power_above(gpus), power_above(duration));
    if (ready <= *entry && start > *entry)
        *entry = start;
}

/* The earliest start from `ready` on with `gpus` free for `duration`; takes them. */
static int64_t take_gpus(hbp__scheduler *p, int64_t ready, int64_t duration, int32_t gpus)
{
    int64_t *ns = p->point_ns, asked = ready;
    int32_t *used = p->point_used, room = p->problem->gpus - gpus;
    if (p->no_gap)
        ready = skip_gaps(p, ready, duration, gpus);
    int32_t first = find_point(p, p->full, ready), last;
    int64_t start = hbp__max_i64(ns[first], ready);
    for (int32_t fuller;; first = fuller) {
        if (used[first] > room) {
            while (used[first] > room)
                first++;
            start = ns[first];
        }
        last = find_end(p, first, start + duration);
        fuller = last_fuller(used, first, last, room);
        if (fuller == first)
            break;
    }
    if (p->no_gap)
        learn_gap(p, asked, start, duration, gpus);
    int64_t end = start + duration;
    int32_t after = used[last - 1];
    int at_start = ns[first] == start, at_end = last < p->points && ns[last] == end;
    if (!at_end) {
        shift_points(p, last, 2 - at_start);
        ns[last + 1 - at_start] = end;
        used[last + 1 - at_start] = after;
    } else if (!at_start) {
        shift_points(p, last, 1);
    }
    if (!at_start) {
        for (int32_t i = last; i > first; i--) {
            ns[i] = ns[i - 1];
            used[i] = used[i - 1];
        }
        ns[++first] = start;
        last++;
    }
    for (int32_t i = first; i < last; i++)
        used[i] += gpus;
    while (used[p->full] > p->problem->gpus - p->least_gpus)
        p->full++;
    return start;
}

/* Which way time runs while pieces are placed. */
typedef struct direction {
    const int32_t *after_first;
    const int32_t *after;
    const int32_t *before_first;
} direction;

static direction direction_of(const hbp__scheduler *p, int backward)
{
    if (backward)
        return (direction){p->before_first, p->before, p->next_first};
    return (direction){p->next_first, p->next, p->before_first};
}

static void begin_schedule(hbp__scheduler *p, const direction *w)
{
    for (int32_t m = 0; m < p->meta_ops; m++) {
        p->ready[m] = 0;
        p->left[m] = p->problem->meta->meta_op[m].count;
        p->waits[m] = w->before_first[m + 1] - w->before_first[m];
    }
    p->point_ns[0] = 0;
    p->point_used[0] = 0;
    p->points = 1;
    p->full = 0;
    if (p->no_gap)
        memset(p->no_gap, 0, HBP__GAP_GPUS * HBP__GAP_TIMES * sizeof *p->no_gap);
}

/* The piece's times hold from now on. */
static void settle_piece(hbp__scheduler *p, const direction *w, const hbp__piece *piece)
{
    int32_t m = piece->meta_op;
    p->ready[m] = piece->end_ns;
    if ((p->left[m] -= piece->count) > 0)
        return;
    for (int32_t k = w->after_first[m]; k < w->after_first[m + 1]; k++) {
        int32_t next = w->after[k];
        p->waits[next]--;
        p->ready[next] = hbp__max_i64(p->ready[next], piece->end_ns);
    }
}

/* Zero when what the piece needs comes after it, or when it would end too late. */
static int place_piece(hbp__scheduler *p, const direction *w, hbp__piece *piece, int64_t latest_ns)
{
    int32_t m = piece->meta_op;
    if (p->waits[m] > 0)
        return 0;
    int64_t duration = piece->count * p->curve[m]->time_ns[piece->size];
    piece->start_ns = take_gpus(p, p->ready[m], duration, piece->gpus);
    piece->end_ns = piece->start_ns + duration;
    p->placed++;
    settle_piece(p, w, piece);
    return piece->end_ns <= latest_ns;
}

static int place_list(hbp__scheduler *p, hbp__piece_list *list, int64_t latest_ns, int backward)
{
    direction w = direction_of(p, backward);
    begin_schedule(p, &w);
    list->makespan_ns = 0;
    for (int32_t i = 0; i < list->count; i++) {
        hbp__piece *piece = &list->piece[backward ? list->count - 1 - i : i];
        if (!place_piece(p, &w, piece, latest_ns))
            return 0;
        list->makespan_ns = hbp__max_i64(list->makespan_ns, piece->end_ns);
    }
    return 1;
}

/* What the first `keep` pieces leave of the GPUs from `floor_ns` on; all of them have started by then. */
static void use_kept(hbp__scheduler *p, const hbp__piece_list *list, int32_t keep, int64_t floor_ns)
{
    p->point_ns[0] = floor_ns;
    for (int32_t i = 0; i < keep; i++) {
        const hbp__piece *piece = &list->piece[i];
        if (piece->end_ns <= floor_ns)
            continue;
        int32_t at = find_point(p, 0, piece->end_ns);
        if (p->point_ns[at] < piece->end_ns) {
            shift_points(p, ++at, 1);
            p->point_ns[at] = piece->end_ns;
            p->point_used[at] = 0;
        }
        p->point_used[at] += piece->gpus; /* how many come free there, for now */
        p->point_used[0] += piece->gpus;
    }
    for (int32_t i = 1; i < p->points; i++)
        p->point_used[i] = p->point_used[i - 1] - p->point_used[i];
}

static void sum_list(hbp__piece_list *list)
{
    list->area_ns = list->ends_ns = 0;
    for (int32_t i = 0; i < list->count; i++) {
        const hbp__piece *piece = &list->piece[i];
        int64_t area = hbp__mul_saturating(piece->end_ns - piece->start_ns, piece->gpus);
        list->area_ns = hbp__add_saturating(list->area_ns, area);
        list->ends_ns = hbp__add_saturating(list->ends_ns, piece->end_ns);
    }
}

int hbp__pieces_schedule(hbp__scheduler *scheduler, hbp__piece_list *list, int64_t latest_ns)
{
    if (!place_list(scheduler, list, latest_ns, 0))
        return 0;
    sum_list(list);
    return 1;
}

int hbp__pieces_schedule_from(hbp__scheduler *scheduler, hbp__piece_list *list, int64_t floor_ns,
                              int64_t latest_ns)
{
    direction w = direction_of(scheduler, 0);
    begin_schedule(scheduler, &w);
    int32_t keep = 0;
    list->makespan_ns = 0;
    for (; keep < list->count && list->piece[keep].start_ns < floor_ns; keep++) {
        settle_piece(scheduler, &w, &list->piece[keep]);
        list->makespan_ns = hbp__max_i64(list->makespan_ns, list->piece[keep].end_ns);
    }
    use_kept(scheduler, list, keep, floor_ns);
    for (int32_t i = keep; i < list->count; i++) {
        if (!place_piece(scheduler, &w, &list->piece[i], latest_ns))
            return 0;
        list->makespan_ns = hbp__max_i64(list->makespan_ns, list->piece[i].end_ns);
    }
    sum_list(list);
    return 1;
}

/* Bottom-up merge sort that leaves alone what is in order: near n for lists nearly sorted. */
static void sort_pieces(hbp__piece *piece, int32_t count, hbp__piece *scratch)
{
    for (int32_t width = 1; width<count; width = width> count / 2 ? count : 2 * width) {
        for (int32_t low = 0; low + width < count; low += 2 * width) {
            int32_t middle = low + width, high = count - middle > width ? middle + width : count;
            if (piece[middle - 1].start_ns <= piece[middle].start_ns)
                continue;
            memcpy(scratch, piece + low, (size_t)width * sizeof *piece);
            int32_t a = 0, b = middle, to = low;
            while (a < width && b < high)
                piece[to++] = piece[b].start_ns < scratch[a].start_ns ? piece[b++] : scratch[a++];
            memcpy(piece + to, scratch + a, (size_t)(width - a) * sizeof *piece);
            if (high == count)
                break;
        }
    }
}

void hbp__pieces_sort(hbp__scheduler *scheduler, hbp__piece_list *list)
{
    sort_pieces(list->piece, list->count, scheduler->scratch);
}

/* Turns time around, so that what ended last starts first. */
static void mirror_times(hbp__piece_list *list)
{
    for (int32_t i = 0; i < list->count; i++) {
        hbp__piece *piece = &list->piece[i];
        int64_t start = list->makespan_ns - piece->end_ns;
        piece->end_ns = list->makespan_ns - piece->start_ns;
        piece->start_ns = start;
    }
}

static void reverse_order(hbp__piece_list *list)
{
    for (int32_t a = 0, b = list->count - 1; a < b; a++, b--) {
        hbp__piece piece = list->piece[a];
        list->piece[a] = list->piece[b];
        list->piece[b] = piece;
    }
}

void hbp__pieces_justify(hbp__scheduler *scheduler, hbp__piece_list *list, int32_t rounds)
{
    hbp__pieces_sort(scheduler, list);
    for (int32_t round = 0; round < rounds; round++) {
        int64_t before = list->makespan_ns;
        mirror_times(list);
        reverse_order(list);
        hbp__pieces_sort(scheduler, list);
        reverse_order(list);
        place_list(scheduler, list, INT64_MAX, 1);
        mirror_times(list);
        hbp__pieces_sort(scheduler, list);
        place_list(scheduler, list, INT64_MAX, 0);
        hbp__pieces_sort(scheduler, list);
        if (list->makespan_ns >= before)
            break;
    }
    sum_list(list);
}

int hbp__pieces_compare(const hbp__piece_list *a, const hbp__piece_list *b)
{
    if (a->makespan_ns != b->makespan_ns)
        return a->makespan_ns < b->makespan_ns ? -1 : 1;
    if (a->area_ns != b->area_ns)
        return a->area_ns < b->area_ns ? -1 : 1;
    return a->ends_ns < b->ends_ns ? -1 : a->ends_ns > b->ends_ns;
}

void hbp__pieces_join(hbp__scheduler *scheduler, hbp__piece_list *list)
{
    int32_t *last = scheduler->left, kept = 0;
    for (int32_t m = 0; m < scheduler->meta_ops; m++)
        last[m] = -1;
    for (int32_t i = 0; i < list->count; i++) {
        const hbp__piece *piece = &list->piece[i];
        hbp__piece *before = last[piece->meta_op] < 0 ? NULL : &list->piece[last[piece->meta_op]];
        if (before && before->size == piece->size && before->end_ns == piece->start_ns) {
            before->count += piece->count;
            before->end_ns = piece->end_ns;
            continue;
        }
        last[piece->meta_op] = kept;
        list->piece[kept++] = *piece;
    }
    list->count = kept;
    list->ends_ns = 0;
    for (int32_t i = 0; i < kept; i++)
        list->ends_ns = hbp__add_saturating(list->ends_ns, list->piece[i].end_ns);
}

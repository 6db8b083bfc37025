/* Fills one micro-batch: sequences of the pool, longest first, each into the first or the emptiest group that
 * has time and memory for it, found in a tree over the groups of a degree. O(log groups) a sequence and
 * degree. */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/scratch.h"
#include "step/builder.h"

/* Ways looked at for what a group has room for, at most. */
#define ROOM_WAYS 12

static int64_t power_of_two(int64_t least)
{
    int64_t power = 1;
    while (power < least)
        power *= 2;
    return power;
}

/* What a sequence adds to a group's time at least; some of its tokens may take the place of padding. */
static double least_added(const hbp__step *step, int32_t j, int64_t k)
{
    const hbp__step_degree *d = &step->degree[j];
    int64_t tokens = d->tokens[k] - d->tokens[k] % d->pack_multiple;
    double ns = d->linear * (double)tokens + d->square * step->squares[k];
    return step->vision ? ns + d->way[0].vision * (double)step->vision[k] : ns;
}

static hbp_status set_tables(hbp__step_filler *f)
{
    const hbp__step *step = f->step;
    double fixed = step->cost->terms.pack_ns;
    for (int64_t k = 0; k < step->count; k++) {
        HBP__TRY(hbp__tick_row(step->context, "SP degrees", k, step->count));
        const double root = sqrt(step->squares[k]);
        f->useful[k] = f->least_added[k] = (double)INFINITY;
        for (int32_t j = 0; j < step->degrees; j++) {
            double *alone = &f->alone[k * step->degrees + j];
            double *added = &f->added[k * step->degrees + j];
            *alone = *added = (double)INFINITY;
            f->shelf[j].slack = hbp__max_f64(f->shelf[j].slack, (double)step->degree[j].tokens[k] - root);
            hbp__load load = hbp__step_load_of(step, j, k);
            if (!hbp__step_holds(step, j, load))
                continue;
            *alone = hbp__step_group_time(step, j, load);
            double work = step->degree[j].degree * (*alone - fixed);
            f->useful[k] = work < f->useful[k] ? work : f->useful[k];
            *added = least_added(step, j, k);
            f->least_added[k] = hbp__min_f64(*added, f->least_added[k]);
        }
    }
    return HBP_OK;
}

hbp_status hbp__step_filler_open(const hbp__step *step, hbp__step_filler *f)
{
    memset(f, 0, sizeof *f);
    f->step = step;
    hbp_context *context = step->context;
    int64_t leaves = 0;
    for (int32_t j = 0; j < step->degrees; j++) {
        f->shelf[j].slack = 0;
        f->shelf[j].leaves = power_of_two(step->ranks / step->degree[j].degree);
        leaves += f->shelf[j].leaves;
    }
    f->alone = hbp__take(context, (uint64_t)step->count * (uint64_t)step->degrees, sizeof *f->alone);
    f->useful = hbp__take(context, (uint64_t)step->count, sizeof *f->useful);
    f->added = hbp__take(context, (uint64_t)step->count * (uint64_t)step->degrees, sizeof *f->added);
    f->least_added = hbp__take(context, (uint64_t)step->count, sizeof *f->least_added);
    f->left = hbp__take(context, (uint64_t)step->count, sizeof *f->left);
    f->open = hbp__take(context, (uint64_t)step->ranks, sizeof *f->open);
    f->nodes = hbp__take(context, (uint64_t)leaves * 4, sizeof *f->nodes);
    f->names = hbp__take(context, (uint64_t)leaves, sizeof *f->names);
    HBP__TRY(hbp__scratch_check(context, "the search"));
    double *nodes = f->nodes;
    int64_t *names = f->names;
    for (int32_t j = 0; j < step->degrees; j++) {
        hbp__step_shelf *s = &f->shelf[j];
        s->time = nodes;
        s->tokens = nodes + 2 * s->leaves;
        s->group = names;
        s->usual = 0;
        s->used = s->leaves; /* to be cleared */
        nodes += 4 * s->leaves;
        names += s->leaves;
    }
    return set_tables(f);
}

/* Forgets the leaves in use and what is above them, for up to so many leaves. */
static void shelf_clear(hbp__step_shelf *s, int64_t most)
{
    for (int64_t first = s->leaves, used = s->used; first && used; first /= 2, used = (used + 1) / 2)
        for (int64_t node = first; node < first + used; node++)
            s->time[node] = s->tokens[node] = -1;
    s->used = 0;
    s->leaves = power_of_two(most);
}

static void shelf_set(hbp__step_shelf *s, int64_t leaf, double time, double tokens)
{
    int64_t node = s->leaves + leaf;
    s->time[node] = time;
    s->tokens[node] = tokens;
    for (node /= 2; node; node /= 2) {
        int64_t a = 2 * node, b = a + 1;
        time = s->time[a] > s->time[b] ? s->time[a] : s->time[b];
        tokens = s->tokens[a] > s->tokens[b] ? s->tokens[a] : s->tokens[b];
        if (time == s->time[node] && tokens == s->tokens[node])
            return;
        s->time[node] = time;
        s->tokens[node] = tokens;
    }
}

/* One sequence looking for a group. */
typedef struct visit {
    const hbp__step *step;
    const hbp__step_board *board;
    int32_t degree;
    int64_t k;    /* the sequence */
    double room;  /* tokens that it asks for */
    double least; /* time it adds at least */
    double makespan;
    double time; /* of the group found, with it */
    int capped;  /* a group had room but for samples */
} visit;

/* Whether the group of a leaf takes the sequence. */
static int leaf_takes(const hbp__step_shelf *s, int64_t leaf, visit *v)
{
    const hbp__step *step = v->step;
    const hbp__step_degree *d = &step->degree[v->degree];
    const hbp__load *load = &v->board->group[s->group[leaf]].load;
    const int64_t tokens = load->tokens + d->tokens[v->k];
    if (!step->vision && tokens > d->way[d->ways - 1].capacity)
        return 0;
    double time = step->vision ? hbp__step_vision_time_by(step, v->degree, load, v->k, HBP__NONE, 1)
                               : hbp__step_text_time(d, tokens, load->squares + step->squares[v->k]);
    if (time > v->makespan || time >= (double)INFINITY)
        return 0;
    if (load->samples + hbp__step_samples(step, v->k) > step->most_samples) {
        v->capped = 1;
        return 0;
    }
    v->time = time;
    return 1;
}

/* The first leaf with room; HBP__NONE. */
static int64_t shelf_find(const hbp__step_shelf *s, visit *v)
{
    int64_t node = 1;
    while (node) {
        if (s->time[node] >= v->least && s->tokens[node] >= v->room) {
            if (node < s->leaves) {
                node *= 2;
                continue;
            }
            if (leaf_takes(s, node - s->leaves, v))
                return node - s->leaves;
        }
        while (node & 1)
            node /= 2;
        node += node > 0;
    }
    return HBP__NONE;
}

/* The leaf below `node` with the most time left of those with room, the first of such, if it has more than
 * *most, which then gets that; HBP__NONE. */
static int64_t shelf_find_emptiest(const hbp__step_shelf *s, int64_t node, visit *v, double *most)
{
    if (s->time[node] <= *most || s->time[node] < v->least || s->tokens[node] < v->room)
        return HBP__NONE;
    if (node >= s->leaves) {
        if (!leaf_takes(s, node - s->leaves, v))
            return HBP__NONE;
        *most = s->time[node];
        return node - s->leaves;
    }
    int64_t first = 2 * node + (s->time[2 * node + 1] > s->time[2 * node]);
    int64_t found = shelf_find_emptiest(s, first, v, most);
    int64_t better = shelf_find_emptiest(s, first ^ 1, v, most);
    return better != HBP__NONE ? better : found;
}

/* Tokens with which a group that runs in some way takes `makespan`, or a little more, if its next sequence is
 * all of what it lacks: that has at least the square of all but `slack` of its tokens. */
static double tokens_within(const hbp__point *way, const hbp__load *load, double slack, double makespan)
{
    double left = makespan - way->constant - way->linear * (double)load->tokens - way->square * load->squares;
    double over = left - way->linear * slack;
    double more =
        over > 0 ? slack + 2 * over / (way->linear + sqrt(way->linear * way->linear + 4 * way->square * over))
                 : left / way->linear;
    return ((double)load->tokens + more) * (1 + 1e-9) + 1e-3;
}

/* No fewer tokens than the next sequence of a group can have within `makespan`, without vision units. A group
 * of more tokens runs in no faster way: with those of a way at hand, or more, it has no more in all than that
 * has time for. So of ways: first the one that the group before came to, then the one that the last asks for,
 * or half way to it, until one asks for itself or none is between. Mostly of one or two. */
static double text_room(const hbp__step_degree *d, const hbp__load *load, double slack, double makespan,
                        int32_t *usual)
{
    int32_t w = *usual, fast = -1, slow = d->ways; /* too few tokens for the one, too many for the other */
    double most = (double)d->way[d->ways - 1].capacity;
    for (int i = 0; i < ROOM_WAYS && d->way[0].linear > 0; i++) {
        const double room = tokens_within(&d->way[w], load, slack, makespan);
        const double least = w ? (double)d->way[w - 1].capacity : 0;
        most = hbp__min_f64(most, hbp__max_f64(room, least));
        if (room >= least && room <= (double)d->way[w].capacity)
            break;
        if (room < least)
            slow = w;
        else
            fast = w;
        if (slow - fast < 2)
            break;
        const int64_t tokens = (int64_t)hbp__max_f64(0, hbp__min_f64(room, (double)d->capacity));
        const int32_t next = (int32_t)(hbp__step_find_way(d, tokens) - d->way);
        w = next > fast && next < slow ? next : fast + (slow - fast) / 2;
    }
    *usual = w;
    return most - (double)load->tokens;
}

/* The same with them, which have their time, at least, and their memory: what memory holds, or, unless
 * `is_rough`, what the way that this asks for has time for. O(log ways) with vision units. */
static double token_room(const hbp__step *step, int32_t j, const hbp__load *load, hbp__step_shelf *s,
                         double makespan, int is_rough)
{
    const hbp__step_degree *d = &step->degree[j];
    if (!step->vision)
        return is_rough ? (double)(d->way[d->ways - 1].capacity - load->tokens)
                        : text_room(d, load, s->slack, makespan, &s->usual);
    double vision = (double)load->vision;
    makespan -= d->way[0].vision * vision;
    double memory =
        (double)d->way[d->ways - 1].capacity - d->vision_tokens * vision + (double)d->pack_multiple;
    int32_t low = 0,
            high = d->ways; /* way[low] is in time with the least that asks for it, way[high] is not */
    while (high - low > 1) {
        int32_t middle = low + (high - low) / 2;
        const hbp__point *way = &d->way[middle];
        double least = (double)way[-1].capacity;
        if (way->constant + way->linear * least + way->square * load->squares <= makespan)
            low = middle;
        else
            high = middle;
    }
    const hbp__point *way = &d->way[low];
    double left = makespan - way->constant - way->square * load->squares, room = (double)way->capacity;
    if (left < way->linear * room)
        room = left / way->linear * (1 + 1e-9) + 1;
    return hbp__min_f64(room, memory) - (double)load->tokens;
}

/* State of one filling. */
typedef struct filling {
    hbp__step_filler *f;
    hbp__step_board *board;
    int64_t m;
    double makespan;
    hbp__step_style style;
    int32_t level; /* groups of this degree are opened first and then kept alike; HBP__NONE: of none */
    int32_t ranks; /* left */
    double time;   /* no less than any group has left, once no rank is */
    double tokens;
    int is_stale; /* they may have less by now */
    int capped;   /* max_samples kept a sequence out of a group, or may have */
    int64_t most; /* to be left: with more it gives up */
    int is_small; /* few sequences: that a group refuses one is sooner seen than what it has room for */
    int64_t last; /* the sequence that looked for a group before; HBP__NONE: none yet */
    int32_t last_degree;
    int64_t last_leaf; /* where it went; HBP__NONE: nowhere */
    int is_unset;      /* that leaf does not yet have what its group has left */
} filling;

/* Sets the leaf of the last group, once others are looked at. */
static void set_last(filling *fill)
{
    const hbp__step *step = fill->f->step;
    const int32_t j = fill->last_degree;
    hbp__step_shelf *s = &fill->f->shelf[j];
    if (!fill->is_unset)
        return;
    fill->is_unset = 0;
    const hbp__step_group *group = &fill->board->group[s->group[fill->last_leaf]];
    if (group->load.samples == step->most_samples)
        shelf_set(s, fill->last_leaf, -1, -1);
    else
        shelf_set(s, fill->last_leaf, fill->makespan - group->time,
                  token_room(step, j, &group->load, s, fill->makespan, fill->is_small));
}

static void put(filling *fill, int64_t k, int32_t j, int64_t leaf, double time)
{
    const hbp__step *step = fill->f->step;
    hbp__step_shelf *s = &fill->f->shelf[j];
    int64_t g = s->group[leaf];
    hbp__step_group *group = &fill->board->group[g];
    hbp__step_group_add(step, group, k, 1);
    group->time = time;
    fill->board->next[k] = group->head;
    group->head = k;
    fill->board->home[k] = g;
    fill->capped |= group->load.samples == step->most_samples;
    fill->is_stale = fill->is_unset = 1;
    fill->last_degree = j;
    fill->last_leaf = leaf;
}

static visit begin_visit(const filling *fill, int64_t k, int32_t j)
{
    const hbp__step *step = fill->f->step;
    return (visit){.step = step,
                   .board = fill->board,
                   .degree = j,
                   .k = k,
                   .room = (double)step->degree[j].tokens[k],
                   .least = fill->f->added[k * step->degrees + j],
                   .makespan = fill->makespan};
}

static int put_in_old(filling *fill, int64_t k, int32_t j)
{
    const hbp__step_shelf *s = &fill->f->shelf[j];
    if (!s->used)
        return 0;
    visit v = begin_visit(fill, k, j);
    double most = -1;
    int64_t leaf = j == fill->level ? shelf_find_emptiest(s, 1, &v, &most) : shelf_find(s, &v);
    fill->capped |= v.capped;
    if (leaf == HBP__NONE)
        return 0;
    put(fill, k, j, leaf, v.time);
    return 1;
}

static int put_in_new(filling *fill, int64_t k, int32_t j)
{
    const hbp__step *step = fill->f->step;
    if (step->degree[j].degree > fill->ranks)
        return 0;
    int64_t *groups = &fill->board->groups[fill->m], g = fill->m * fill->board->ranks + *groups;
    fill->f->open[*groups] = j;
    if (!step->chain && !hbp__step_place(step, fill->f->open, *groups + 1, NULL))
        return 0;
    hbp__step_shelf *s = &fill->f->shelf[j];
    ++*groups;
    fill->ranks -= step->degree[j].degree;
    s->group[s->used] = g;
    fill->board->group[g] = hbp__step_group_empty(j, 0);
    put(fill, k, j, s->used++, fill->f->alone[k * step->degrees + j]);
    return 1;
}

/* The least degree that the style has for sequence k; their number when none runs it in time. */
static int32_t least_degree(const filling *fill, int64_t k)
{
    const hbp__step *step = fill->f->step;
    const double *alone = &fill->f->alone[k * step->degrees];
    int32_t least = 0;
    while (least < step->degrees && !(alone[least] <= fill->makespan))
        least++;
    if (least == step->degrees)
        return least;
    if (least < fill->style.grain && alone[fill->style.grain] <= fill->makespan)
        least = fill->style.grain;
    while (fill->style.skip >> least & 1 && least + 1 < step->degrees && alone[least + 1] <= fill->makespan)
        least++;
    return least;
}

/* Whether two sequences ask for the same of any group. */
static int are_equal(const hbp__step *step, int64_t a, int64_t b)
{
    return step->tokens[a] == step->tokens[b] && step->squares[a] == step->squares[b] &&
           (!step->samples || step->samples[a] == step->samples[b]) &&
           (!step->vision || step->vision[a] == step->vision[b]) && !step->padded;
}

/* One that asks for the same as the last finds no room where that found none: its group is the last one's or
 * a later. */
static int put_with_last(filling *fill, int64_t k)
{
    int32_t j = fill->last_degree;
    if (fill->style.spread || j == fill->level)
        return 0;
    const hbp__step_shelf *s = &fill->f->shelf[j];
    visit v = begin_visit(fill, k, j);
    /* As the tree has it, which is sharper by a rounding. */
    int takes = fill->makespan - fill->board->group[s->group[fill->last_leaf]].time >= v.least &&
                leaf_takes(s, fill->last_leaf, &v);
    fill->capped |= v.capped;
    if (takes)
        put(fill, k, j, fill->last_leaf, v.time);
    return takes;
}

static int put_anywhere(filling *fill, int64_t k)
{
    const hbp__step *step = fill->f->step;
    int64_t last = fill->last;
    fill->last = k;
    if (last != HBP__NONE && are_equal(step, last, k)) {
        if (fill->last_leaf == HBP__NONE)
            return 0;
        if (put_with_last(fill, k))
            return 1;
    }
    set_last(fill);
    fill->last_leaf = HBP__NONE;
    const double *alone = &fill->f->alone[k * step->degrees];
    int32_t least = least_degree(fill, k);
    if (least == step->degrees)
        return 0;
    if ((fill->style.spread || least == fill->level) && put_in_new(fill, k, least))
        return 1;
    if (put_in_old(fill, k, least) || put_in_new(fill, k, least))
        return 1;
    for (int32_t j = least + 1; j < step->degrees; j++)
        if (alone[j] <= fill->makespan && put_in_old(fill, k, j))
            return 1;
    return 0;
}

/* Sets the most that groups have left. */
static void refresh(filling *fill)
{
    if (fill->ranks || !fill->is_stale)
        return;
    set_last(fill);
    fill->time = fill->tokens = -1;
    fill->is_stale = 0;
    for (int32_t i = 0; i < fill->f->step->degrees; i++) {
        const hbp__step_shelf *shelf = &fill->f->shelf[i];
        fill->time = shelf->time[1] > fill->time ? shelf->time[1] : fill->time;
        fill->tokens = shelf->tokens[1] > fill->tokens ? shelf->tokens[1] : fill->tokens;
    }
}

/* Whether a sequence surely finds no room: no group can be added and none has enough left. */
static int is_full(const filling *fill, int64_t k)
{
    return !fill->ranks &&
           (fill->f->least_added[k] > fill->time || (double)fill->f->step->tokens[k] > fill->tokens);
}

/* The same of the last of the pool, which needs least unless vision units count. */
static int is_over(filling *fill, const hbp__step_pool *pool)
{
    if (fill->f->step->vision)
        return 0;
    refresh(fill);
    return is_full(fill, pool->member[pool->count - 1]);
}

/* Fills from the pool, which stays; what finds no place is listed in f->left, and *left gets how many: more
 * than fill->most where it gave up. */
static double place_all(filling *fill, const hbp__step_pool *pool, int64_t *left)
{
    hbp__step_filler *f = fill->f;
    double useful = 0;
    fill->board->groups[fill->m] = 0;
    fill->ranks = f->step->ranks;
    fill->time = fill->tokens = (double)INFINITY;
    fill->capped = 0;
    fill->is_small = pool->count <= HBP__FILL_FEW;
    fill->last = fill->last_leaf = HBP__NONE;
    fill->is_unset = 0;
    *left = 0;
    for (int32_t j = 0; j < f->step->degrees; j++) /* a group has a sequence, at least */
        shelf_clear(&f->shelf[j], hbp__min_i64(f->step->ranks / f->step->degree[j].degree, pool->count));
    for (int64_t i = 0; i < pool->count && *left <= fill->most; i++) {
        int64_t k = pool->member[i];
        if (f->status >= 0)
            f->status = hbp__tick_row(f->step->context, "step", i, pool->count);
        if (f->status < 0 || (i % 16 == 15 && is_over(fill, pool))) {
            memcpy(f->left + *left, pool->member + i, (size_t)(pool->count - i) * sizeof *f->left);
            *left += pool->count - i;
            break;
        }
        if (is_full(fill, k)) {
            f->left[(*left)++] = k;
        } else if (put_anywhere(fill, k)) {
            useful += f->useful[k];
        } else {
            f->left[(*left)++] = k;
            refresh(fill);
        }
    }
    return useful;
}

/* The first groups have the time of a few long sequences and the last ones samples of many short ones: where
 * max_samples is met and sequences are left, the groups of the shortest one's degree are made alike, so that
 * each has some of both. */
static double place_level(filling *fill, const hbp__step_pool *pool, double useful, int64_t *left)
{
    fill->level = least_degree(fill, pool->member[pool->count - 1]);
    fill->f->again += pool->count;
    double level = place_all(fill, pool, left);
    if (level > useful)
        return level;
    fill->level = HBP__NONE;
    fill->f->again += pool->count;
    return place_all(fill, pool, left);
}

/* Fills as asked; *left and what is returned are place_all's. */
static double fill_within(filling *fill, const hbp__step_pool *pool, int64_t *left)
{
    hbp__step_board *board = fill->board;
    const int64_t m = fill->m;
    double useful = place_all(fill, pool, left), slowest = fill->f->step->cost->terms.pack_ns;
    if (*left && fill->capped)
        useful = place_level(fill, pool, useful, left);
    for (int64_t g = m * board->ranks; g < m * board->ranks + board->groups[m]; g++)
        slowest = hbp__max_f64(slowest, board->group[g].time);
    board->makespan[m] = slowest;
    return useful;
}

static filling fill_of(hbp__step_filler *f, hbp__step_board *board, int64_t m, double makespan,
                       hbp__step_style style)
{
    return (filling){.f = f,
                     .board = board,
                     .m = m,
                     .makespan = makespan,
                     .style = style,
                     .level = HBP__NONE,
                     .most = INT64_MAX};
}

double hbp__step_fill(hbp__step_filler *f, hbp__step_pool *pool, hbp__step_board *board, int64_t m,
                      double makespan, hbp__step_style style)
{
    filling fill = fill_of(f, board, m, makespan, style);
    int64_t left;
    const double useful = fill_within(&fill, pool, &left);
    memcpy(pool->member, f->left, (size_t)left * sizeof *pool->member);
    pool->count = left;
    hbp__step_pool_sum(f->step, pool);
    return useful;
}

int64_t hbp__step_fill_most(hbp__step_filler *f, const hbp__step_pool *pool, hbp__step_board *board,
                            int64_t m, double makespan, hbp__step_style style, int64_t most)
{
    filling fill = fill_of(f, board, m, makespan, style);
    int64_t left;
    /* Where max_samples counts, what finds no place may find one in groups that are kept alike. */
    if (f->step->most_samples == INT64_MAX)
        fill.most = most;
    fill_within(&fill, pool, &left);
    return left <= most ? left : HBP__NONE;
}

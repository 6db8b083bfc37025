/* Ranks without a group get one, as long as there are sequences to spread (docs/explanation/step.md).
 *
 * A micro-batch takes as long as its slowest group, so a short sequence alone on an idle rank seldom costs
 * anything, nor does it where it came from. In: a priced solution. Out: one with as many micro-batches as
 * plans record, none of padding packs while there are sequences for it. What costs nothing is done first.
 * Where the step has fewer sequences than ranks, nothing else is. */
#include <math.h>

#include "base/checked.h"
#include "base/scratch.h"
#include "base/sort.h"
#include "step/builder.h"

typedef struct spread {
    const hbp__step *step;
    hbp__step_board board;
    int32_t *idle;   /* [micro-batches] ranks without a group */
    int32_t *degree; /* [ranks] scratch: groups to be placed */
    double *limit;   /* [micro-batches] what a group may take at no cost */
    int wide;        /* groups are made wider before sequences leave theirs */
    int64_t spare;   /* the shortest sequence that is not alone in its group; HBP__NONE */
} spread;

/* A group that could come about in a micro-batch: of a sequence alone, or a present one made wider. */
typedef struct change {
    int64_t group; /* the present one; HBP__NONE: a new one of the spare sequence */
    int32_t degree;
    double time;
} change;

static const change none = {HBP__NONE, -1, (double)INFINITY};

/* Moves the mark to the next sequence that its group can do without. Members are listed shortest first, and
 * only the first of a group is ever taken. O(count) altogether. */
static void find_spare(spread *s)
{
    const hbp__step_board *b = &s->board;
    while (s->spare != HBP__NONE &&
           (b->group[b->home[s->spare]].head != s->spare || b->next[s->spare] == HBP__NONE))
        s->spare--;
}

/* Whether micro-batch m has a place for a group of degree j in the stead of group `old`, or beside all. */
static int has_place(const spread *s, int64_t m, int64_t old, int32_t j)
{
    const hbp__step *step = s->step;
    const hbp__step_group *group = &s->board.group[m * s->board.ranks];
    int32_t now = old == HBP__NONE ? 0 : step->degree[group[old].degree].degree;
    if (step->degree[j].degree - now > s->idle[m])
        return 0;
    if (step->chain)
        return 1;
    int64_t count = s->board.groups[m];
    for (int64_t i = 0; i < count; i++)
        s->degree[i] = i == old ? j : group[i].degree;
    if (old == HBP__NONE)
        s->degree[count++] = j;
    return hbp__step_place(step, s->degree, count, NULL);
}

/* Sequence k alone: on the least degree within the limit, else where it takes least. O(degrees). */
static change alone(const spread *s, int64_t m, int64_t k)
{
    const hbp__step *step = s->step;
    change best = none;
    for (int32_t j = 0; k != HBP__NONE && j < step->degrees; j++) {
        hbp__load load = hbp__step_load_of(step, j, k);
        if (!hbp__step_holds(step, j, load) || !has_place(s, m, HBP__NONE, j))
            continue;
        double time = hbp__step_group_time(step, j, load);
        if (time < best.time)
            best = (change){HBP__NONE, j, time};
        if (time <= s->limit[m])
            break;
    }
    return best;
}

/* A group on degree j instead of its own. */
static hbp__step_group on_degree(const spread *s, const hbp__step_group *group, int32_t j)
{
    hbp__step_group wide = *group;
    wide.degree = j;
    wide.load.tokens = s->step->padded ? 0 : group->load.tokens;
    for (int64_t k = group->head; s->step->padded && k != HBP__NONE; k = s->board.next[k])
        wide.load.tokens += s->step->degree[j].tokens[k];
    return wide;
}

/* The wider group that costs least; of these the one of the least degree. O(groups degrees), more where the
 * groups have to be placed or padded anew. */
static change wider(const spread *s, int64_t m)
{
    const hbp__step *step = s->step;
    change best = none;
    double best_cost = (double)INFINITY;
    int32_t least = step->degrees;
    for (int64_t i = 0; i < s->board.groups[m]; i++) {
        const hbp__step_group *group = &s->board.group[m * s->board.ranks + i];
        for (int32_t j = group->degree + 1; j < step->degrees; j++) {
            if (!has_place(s, m, i, j))
                continue;
            hbp__step_group wide = on_degree(s, group, j);
            if (!hbp__step_holds(step, j, wide.load))
                continue;
            double time = hbp__step_group_time(step, j, wide.load);
            double cost = time > s->limit[m] ? time - s->limit[m] : 0;
            if (cost < best_cost || (cost == best_cost && group->degree < least)) {
                best = (change){i, j, time};
                best_cost = cost;
                least = group->degree;
            }
        }
    }
    return best;
}

/* Opens a group of degree j in micro-batch m. */
static hbp__step_group *open_group(spread *s, int64_t m, int32_t j)
{
    hbp__step_group *group = &s->board.group[m * s->board.ranks + s->board.groups[m]++];
    *group = hbp__step_group_empty(j, 0);
    s->idle[m] -= s->step->degree[j].degree;
    return group;
}

static void apply(spread *s, int64_t m, change c)
{
    hbp__step_board *b = &s->board;
    const hbp__step *step = s->step;
    if (c.group == HBP__NONE) {
        int64_t k = s->spare;
        hbp__step_group *from = &b->group[b->home[k]], *to = open_group(s, m, c.degree);
        from->head = b->next[k];
        hbp__step_group_add(step, from, k, -1);
        from->time = hbp__step_group_time(step, from->degree, from->load);
        hbp__step_group_add(step, to, k, 1);
        to->head = k;
        to->time = c.time;
        b->next[k] = HBP__NONE;
        b->home[k] = to - b->group;
        s->spare--;
        find_spare(s);
    } else {
        hbp__step_group *group = &b->group[m * b->ranks + c.group];
        s->idle[m] -= step->degree[c.degree].degree - step->degree[group->degree].degree;
        *group = on_degree(s, group, c.degree);
        group->time = c.time;
    }
    if (c.time > s->limit[m])
        s->limit[m] = c.time;
}

/* Gives the idle ranks of micro-batch m to groups, at a cost only if `pays`. */
static void fill_up(spread *s, int64_t m, int pays)
{
    while (s->idle[m]) {
        change c = s->wide ? wider(s, m) : alone(s, m, s->spare);
        if (!(c.time <= s->limit[m])) {
            change other = s->wide ? alone(s, m, s->spare) : wider(s, m);
            c = other.time < c.time || other.time <= s->limit[m] ? other : c;
        }
        if (c.degree < 0 || (c.time > s->limit[m] && !pays))
            return;
        apply(s, m, c);
    }
}

/* Moves the last group of micro-batch m into the place of group i. */
static void close_group(spread *s, int64_t m, int64_t i)
{
    hbp__step_board *b = &s->board;
    int64_t first = m * b->ranks, last = --b->groups[m];
    s->idle[m] += s->step->degree[b->group[first + i].degree].degree;
    b->group[first + i] = b->group[first + last];
    for (int64_t k = b->group[first + i].head; i < last && k != HBP__NONE; k = b->next[k])
        b->home[k] = first + i;
}

/* Gives micro-batch m, which has none, the shortest sequence to be had, else the group that is done first of
 * those that are not alone in their micro-batch; 0 when there is neither, nor for any other. */
static int begin(spread *s, int64_t m)
{
    hbp__step_board *b = &s->board;
    change c = alone(s, m, s->spare);
    if (c.degree >= 0) {
        apply(s, m, c);
        return 1;
    }
    int64_t from = HBP__NONE, index = 0;
    double least = (double)INFINITY;
    for (int64_t o = 0; o < b->micro_batches; o++)
        for (int64_t i = 0; b->groups[o] > 1 && i < b->groups[o]; i++)
            if (b->group[o * b->ranks + i].time < least) {
                from = o;
                index = i;
                least = b->group[o * b->ranks + i].time;
            }
    if (from == HBP__NONE)
        return 0;
    hbp__step_group moved = b->group[from * b->ranks + index], *to = open_group(s, m, moved.degree);
    *to = moved;
    for (int64_t k = moved.head; k != HBP__NONE; k = b->next[k])
        b->home[k] = to - b->group;
    close_group(s, from, index);
    s->limit[m] = moved.time;
    return 1;
}

/* Groups without members leave the board, micro-batches without groups as well, and those that the plan is to
 * have come. */
static void set_up(spread *s, int64_t room)
{
    hbp__step_board *b = &s->board;
    for (int64_t m = 0; m < b->micro_batches; m++)
        for (int64_t i = b->groups[m] - 1; i >= 0; i--)
            if (b->group[m * b->ranks + i].head == HBP__NONE)
                close_group(s, m, i);
    hbp__step_board_trim(b);
    for (int64_t m = b->micro_batches; m < room; m++) {
        b->groups[m] = 0;
        b->makespan[m] = s->step->cost->terms.pack_ns;
    }
    int64_t whole = hbp__step_whole(s->step, b->micro_batches);
    b->micro_batches = hbp__max_i64(b->micro_batches, hbp__min_i64(whole, room));
    for (int64_t m = 0; m < b->micro_batches; m++) {
        s->limit[m] = b->makespan[m];
        s->idle[m] = s->step->ranks;
        for (int64_t i = 0; i < b->groups[m]; i++)
            s->idle[m] -= s->step->degree[b->group[m * b->ranks + i].degree].degree;
    }
    s->spare = s->step->count - 1;
    find_spare(s);
    for (int64_t m = 0; m < b->micro_batches; m++)
        if (!b->groups[m] && !begin(s, m))
            return;
}

/* The shortest sequences go to the shortest micro-batches: `order` [micro-batches] and `key` are scratch. */
static hbp_status fill_all(spread *s, int64_t *key, uint32_t *order)
{
    const hbp__step_board *b = &s->board;
    hbp_context *context = s->step->context;
    int64_t idle = 0, spares = s->step->count;
    for (int64_t m = 0; m < b->micro_batches; m++) {
        key[m] = hbp__round_i64(s->limit[m]);
        order[m] = (uint32_t)m;
        idle += s->idle[m];
        spares -= b->groups[m];
    }
    if (!hbp__sort_by_i64(&context->memory, key, order, b->micro_batches))
        return hbp__fail_memory(context, "the idle ranks of the step");
    int pays = s->step->count >= s->step->ranks;
    for (int pass = pays && spares >= idle; pass <= pays; pass++)
        for (int64_t i = 0; i < b->micro_batches; i++)
            fill_up(s, order[i], pass);
    return HBP_OK;
}

/* Whether a plan of the solution has padding packs. */
static int has_idle_ranks(const hbp__step *step, const hbp__step_solution *solution, int64_t *members)
{
    int64_t ranks = 0;
    for (int64_t k = 0; k < step->count; k++)
        if (!members[solution->group[k]]++)
            ranks += step->degree[solution->degree[solution->group[k]]].degree;
    return ranks < hbp__step_whole(step, solution->micro_batches) * step->ranks;
}

/* Puts a repaired solution in the place of the one that the bound is of. */
static void take_over(hbp__step_solution *solution, hbp__step_solution *own)
{
    own->bound_ns = solution->bound_ns;
    own->complete = solution->complete;
    hbp__step_solution_close(solution);
    *solution = *own;
}

/* The shortest of all plans without idle ranks, `found` saying whether there is one. */
static hbp_status replace_tiny(const hbp__step *step, hbp__step_solution *solution, int *found)
{
    hbp__step_solution own = {.ns = 0};
    hbp_status status = hbp__step_solve_tiny_busy(step, &own);
    *found = status >= 0 && own.first;
    if (!*found) {
        hbp__step_solution_close(&own);
        return status;
    }
    take_over(solution, &own);
    return HBP_OK;
}

static hbp_status repair_board(spread *s, const hbp__step_solution *solution)
{
    const hbp__step *step = s->step;
    hbp_context *context = step->context;
    int64_t room = hbp__max_i64(solution->micro_batches,
                                hbp__min_i64(hbp__step_whole(step, solution->micro_batches), step->count));
    HBP__TRY(hbp__step_board_open(step, room, &s->board));
    s->idle = hbp__take_zero(context, (uint64_t)room, sizeof *s->idle);
    s->degree = hbp__take(context, (uint64_t)step->ranks, sizeof *s->degree);
    s->limit = hbp__take(context, (uint64_t)room, sizeof *s->limit);
    int64_t *key = hbp__take(context, (uint64_t)room, sizeof *key);
    uint32_t *order = hbp__take(context, (uint64_t)room, sizeof *order);
    HBP__TRY(hbp__scratch_check(context, "the idle ranks of the step"));
    HBP__TRY(hbp__step_board_read(step, solution, &s->board));
    set_up(s, room);
    return fill_all(s, key, order);
}

/* The solution without idle ranks, as far as there are sequences for them; opens and prices *own. */
static hbp_status repair_once(const hbp__step *step, int wide, const hbp__step_solution *solution,
                              hbp__step_solution *own)
{
    int64_t mark = hbp__scratch_mark(step->context);
    spread s = {.step = step, .wide = wide};
    HBP__TRY(repair_board(&s, solution));
    HBP__TRY(hbp__step_board_write(step, &s.board, own));
    hbp__scratch_release(step->context, mark);
    return HBP_OK;
}

/* The first micro-batch to be completed may take the short sequences that the next ones need: where time is
 * paid, wider groups are tried first as well. */
static hbp_status repair(const hbp__step *step, hbp__step_solution *solution)
{
    hbp__step_solution own = {.ns = 0}, wide = {.ns = 0};
    hbp_status status = repair_once(step, 0, solution, &own);
    if (status >= 0 && own.ns > solution->ns) {
        status = repair_once(step, 1, solution, &wide);
        if (status >= 0 && wide.ns < own.ns &&
            hbp__step_solution_ranks(step, &wide) >= hbp__step_solution_ranks(step, &own)) {
            hbp__step_solution_close(&own);
            own = wide;
            wide = (hbp__step_solution){.ns = 0};
        }
    }
    hbp__step_solution_close(&wide);
    if (status < 0) {
        hbp__step_solution_close(&own);
        return status;
    }
    take_over(solution, &own);
    return HBP_OK;
}

hbp_status hbp__step_spread(const hbp__step *step, hbp__step_solution *solution)
{
    int64_t mark = hbp__scratch_mark(step->context);
    int64_t *members = hbp__take_zero(step->context, (uint64_t)solution->groups, sizeof *members);
    HBP__TRY(hbp__scratch_check(step->context, "the idle ranks of the step"));
    int idle = has_idle_ranks(step, solution, members);
    hbp__scratch_release(step->context, mark);
    if (idle && step->count >= step->ranks && hbp__step_is_tiny(step)) {
        int found = 0;
        HBP__TRY(replace_tiny(step, solution, &found));
        idle = !found;
    }
    return idle ? repair(step, solution) : HBP_OK;
}

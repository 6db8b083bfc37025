/* Steps whose packs have one degree d and whose lanes, ranks [i d, (i + 1) d), get the same number of
 * samples.
 *
 * Sequences, longest first, go in rows of one for each lane: to the lane with the fewest samples and of these
 * to the pack that takes least. Rows go to micro-batches in runs, or in turns. Then the slowest pack of a
 * micro-batch exchanges a sequence for a shorter one of as many samples, or gives one to its lane in another
 * micro-batch, as long as that shortens it and lengthens no other. Each degree, and more and more
 * micro-batches, are tried. In runs the sum of the slowest packs is least where lengths are very different,
 * in turns where memory is short. O(count lanes) a try, and a counted amount of work after it. */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "step/builder.h"

/* Work on a try, in pairs of sequences looked at: so much, and so much more a sequence. */
#define WORK          INT64_C(400000)
#define WORK_SEQUENCE INT64_C(400)

/* Tries so much longer than the best are not improved. */
#define WORTH 1.1

/* Numbers of micro-batches in a row that may bring nothing. */
#define FAILURES 2

enum { IN_RUNS, IN_TURNS, WAYS };

typedef struct equal {
    const hbp__step *step;
    hbp__step_board board; /* group i of a micro-batch is lane i */
    hbp__step_board best;
    int64_t room;     /* micro-batches of a board */
    int64_t *samples; /* [ranks] of each lane */
    int32_t *degree;  /* [ranks] scratch */
    int32_t j;        /* the degree being tried */
    int64_t lanes;
    int64_t work;
    int64_t best_idle; /* ranks without samples, where there are enough for all */
    double best_time;
} equal;

static double larger(double a, double b)
{
    return a > b ? a : b;
}

static double time_of(const equal *e, const hbp__step_group *g)
{
    return g->tokens ? hbp__step_group_time(e->step, e->j, g->tokens, g->squares)
                     : e->step->cost->terms.pack_ns;
}

/* Members stay in ascending order of their numbers, so the longest is first. O(members). */
static void put(equal *e, int64_t at, int64_t k)
{
    hbp__step_board *b = &e->board;
    hbp__step_group *g = &b->group[at];
    int64_t *link = &g->head;
    while (*link != HBP__NONE && *link < k)
        link = &b->next[*link];
    b->next[k] = *link;
    *link = k;
    b->home[k] = at;
    hbp__step_group_add(e->step, g, k, 1);
    g->time = time_of(e, g);
    e->samples[at % b->ranks] += hbp__step_samples(e->step, k);
}

static void take(equal *e, int64_t k)
{
    hbp__step_board *b = &e->board;
    hbp__step_group *g = &b->group[b->home[k]];
    int64_t *link = &g->head;
    while (*link != k)
        link = &b->next[*link];
    *link = b->next[k];
    hbp__step_group_add(e->step, g, k, -1);
    g->time = time_of(e, g);
    e->samples[b->home[k] % b->ranks] -= hbp__step_samples(e->step, k);
}

/* Sequence k into micro-batch m: the lane with the fewest samples, of these the pack that takes least. Zero
 * when no pack holds it. O(lanes). */
static int put_in(equal *e, int64_t m, int64_t k)
{
    const hbp__step_board *b = &e->board;
    int64_t best = HBP__NONE;
    for (int64_t i = 0; i < e->lanes; i++) {
        const hbp__step_group *g = &b->group[m * b->ranks + i];
        if ((best == HBP__NONE || e->samples[i] < e->samples[best] ||
             (e->samples[i] == e->samples[best] && g->time < b->group[m * b->ranks + best].time)) &&
            hbp__step_group_takes(e->step, g, k))
            best = i;
    }
    if (best == HBP__NONE)
        return 0;
    put(e, m * b->ranks + best, k);
    return 1;
}

/* All sequences into `micro_batches`. Each gets one, and each a full row where there are as many. */
static int build(equal *e, int64_t micro_batches, int way)
{
    const hbp__step *step = e->step;
    hbp__step_board *b = &e->board;
    int64_t rows = hbp__max_i64(step->count / e->lanes, 1), m = 0, last = -1;
    double total = 0, before = 0;
    b->micro_batches = micro_batches;
    memset(e->samples, 0, (size_t)step->ranks * sizeof *e->samples);
    for (int64_t i = 0; i < micro_batches; i++) {
        b->groups[i] = e->lanes;
        for (int64_t lane = 0; lane < e->lanes; lane++)
            b->group[i * b->ranks + lane] = hbp__step_group_empty(e->j, step->cost->terms.pack_ns);
    }
    for (int64_t k = 0; k < step->count; k++)
        total += (double)step->degree[e->j].tokens[k];
    for (int64_t k = 0; k < step->count; k++) {
        int64_t row = hbp__min_i64(k / e->lanes, rows - 1);
        if (rows < micro_batches) {
            m = k * micro_batches / hbp__max_i64(step->count, micro_batches);
        } else if (way == IN_TURNS) {
            m = row % micro_batches;
        } else if (row != last) {
            int64_t due = (int64_t)(before / total * (double)micro_batches);
            m = hbp__min_i64(due > m ? m + 1 : m, hbp__min_i64(row, micro_batches - 1));
            m = hbp__max_i64(m, micro_batches - (rows - row));
        }
        last = row;
        before += (double)step->degree[e->j].tokens[k];
        int done = put_in(e, m, k);
        for (int64_t other = 0; other < micro_batches && !done; other++)
            done = put_in(e, other, k);
        if (!done)
            return 0;
    }
    return 1;
}

/* Moves samples from the lane with most of them to the one with fewest, within micro-batches, until no
 * sequence makes them more equal. Only tied samples, and memory, leave anything to do. */
static void even_out(equal *e)
{
    hbp__step_board *b = &e->board;
    for (;;) {
        int64_t most = 0, fewest = 0, best = HBP__NONE, to = 0, best_left = INT64_MAX;
        for (int64_t i = 1; i < e->lanes; i++) {
            most = e->samples[i] > e->samples[most] ? i : most;
            fewest = e->samples[i] < e->samples[fewest] ? i : fewest;
        }
        int64_t apart = e->samples[most] - e->samples[fewest];
        for (int64_t m = 0; apart > 1 && m < b->micro_batches; m++) {
            const hbp__step_group *from = &b->group[m * b->ranks + most];
            for (int64_t k = from->head; k != HBP__NONE; k = b->next[k]) {
                int64_t left = 2 * hbp__step_samples(e->step, k) - apart;
                left = left < 0 ? -left : left;
                for (int64_t o = 0; left < apart && left <= best_left && o < b->micro_batches; o++) {
                    int64_t at = (o + m) % b->micro_batches * b->ranks + fewest;
                    if (!hbp__step_group_takes(e->step, &b->group[at], k))
                        continue;
                    best = k;
                    to = at;
                    best_left = left;
                    break;
                }
            }
        }
        if (best == HBP__NONE)
            return;
        take(e, best);
        put(e, to, best);
    }
}

/* Makespans into the board; returns their sum. */
static double sum_up(equal *e)
{
    hbp__step_board *b = &e->board;
    for (int64_t m = 0; m < b->micro_batches; m++) {
        b->makespan[m] = e->step->cost->terms.pack_ns;
        for (int64_t i = 0; i < e->lanes; i++)
            b->makespan[m] = larger(b->makespan[m], b->group[m * b->ranks + i].time);
    }
    return hbp__step_board_time(b);
}

/* Member a of the slowest pack leaves it; b, which may be HBP__NONE, comes from pack `to` instead. */
typedef struct move {
    int64_t a;
    int64_t b;
    int64_t to;
    double time; /* of the slower of the two packs afterwards, as far as they are of one micro-batch */
} move;

/* Keeps the move if it is the best so far. */
static void consider(const equal *e, int64_t p, int64_t q, int64_t a, int64_t b, move *best)
{
    const hbp__step *step = e->step;
    const hbp__step_board *board = &e->board;
    hbp__step_group from = board->group[p], to = board->group[q];
    hbp__step_group_add(step, &from, a, -1);
    hbp__step_group_add(step, &to, a, 1);
    if (b != HBP__NONE) {
        hbp__step_group_add(step, &from, b, 1);
        hbp__step_group_add(step, &to, b, -1);
    }
    if (!hbp__step_holds(step, e->j, to.tokens, to.samples) ||
        !hbp__step_holds(step, e->j, from.tokens, from.samples))
        return;
    double mine = time_of(e, &from), other = time_of(e, &to);
    if (p / board->ranks == q / board->ranks)
        mine = larger(mine, other);
    else if (other > board->makespan[q / board->ranks])
        return;
    if (mine < best->time)
        *best = (move){a, b, q, mine};
}

/* Exchanges between packs p and q. Both lists fall in length, so for each member of p the partner that
 * differs by about the right time is found by going down q once. O(members of both). */
static void find_exchange(equal *e, int64_t p, int64_t q, move *best)
{
    const hbp__step *step = e->step;
    const hbp__step_board *b = &e->board;
    const hbp__step_way *way = hbp__step_find_way(
        &step->degree[e->j], hbp__round_up(b->group[p].tokens, step->degree[e->j].pack_multiple));
    const int64_t *tokens = step->degree[e->j].tokens;
    int same = p / b->ranks == q / b->ranks;
    double room =
        same ? (b->group[p].time - b->group[q].time) / 2 : b->makespan[q / b->ranks] - b->group[q].time;
    int64_t other = b->group[q].head, above = HBP__NONE;
    if (room < 0 || other == HBP__NONE)
        return;
    for (int64_t a = b->group[p].head; a != HBP__NONE; a = b->next[a]) {
        double wanted = way->linear * (double)tokens[a] + way->square * step->squares[a] - room;
        e->work++;
        while (other != HBP__NONE &&
               way->linear * (double)tokens[other] + way->square * step->squares[other] >= wanted) {
            above = other;
            other = b->next[other];
            e->work++;
        }
        int64_t partner[] = {above, same ? other : HBP__NONE};
        for (int i = 0; i < 2; i++)
            if (partner[i] != HBP__NONE && tokens[partner[i]] <= tokens[a] &&
                hbp__step_samples(step, partner[i]) == hbp__step_samples(step, a))
                consider(e, p, q, a, partner[i], best);
    }
}

/* Shortens the slowest pack of micro-batch m; zero when nothing does. O(count). */
static int shorten(equal *e, int64_t m)
{
    hbp__step_board *b = &e->board;
    int64_t p = m * b->ranks;
    for (int64_t i = 1; i < e->lanes; i++)
        if (b->group[m * b->ranks + i].time > b->group[p].time)
            p = m * b->ranks + i;
    double before = b->group[p].time;
    move best = {HBP__NONE, HBP__NONE, 0, before * (1 - 1e-9)};
    for (int64_t o = 0; o < b->micro_batches; o++) {
        for (int64_t i = 0; i < e->lanes; i++)
            if (o * b->ranks + i != p)
                find_exchange(e, p, o * b->ranks + i, &best);
        int64_t below = o * b->ranks + p % b->ranks; /* the same lane */
        for (int64_t a = b->group[p].head; o != m && b->next[b->group[p].head] != HBP__NONE && a != HBP__NONE;
             a = b->next[a])
            consider(e, p, below, a, HBP__NONE, &best);
        e->work += e->lanes;
    }
    if (best.a == HBP__NONE)
        return 0;
    take(e, best.a);
    if (best.b != HBP__NONE) {
        take(e, best.b);
        put(e, p, best.b);
    }
    put(e, best.to, best.a);
    b->makespan[m] = e->step->cost->terms.pack_ns;
    for (int64_t i = 0; i < e->lanes; i++)
        b->makespan[m] = larger(b->makespan[m], b->group[m * b->ranks + i].time);
    return 1;
}

static hbp_status improve(equal *e)
{
    const hbp__step *step = e->step;
    int64_t limit = WORK + WORK_SEQUENCE * step->count, report = 0;
    for (int32_t i = 1; i < step->options.effort; i++)
        limit = hbp__mul_saturating(limit, 3);
    e->work = 0;
    for (int changed = 1; changed && e->work < limit;) {
        changed = 0;
        for (int64_t m = 0; m < e->board.micro_batches && e->work < limit; m++) {
            changed |= shorten(e, m);
            if (e->work < report)
                continue;
            report = e->work + 100000;
            HBP__TRY(hbp__tick(step->context, "step", hbp__min_i64(e->work, limit), limit));
            if (hbp__step_is_late(step))
                return HBP_OK;
        }
    }
    return HBP_OK;
}

/* Ranks without samples. */
static int64_t count_idle(const equal *e)
{
    int64_t idle = 0;
    for (int64_t m = 0; m < e->board.micro_batches; m++)
        for (int64_t i = 0; i < e->lanes; i++)
            if (e->board.group[m * e->board.ranks + i].head == HBP__NONE)
                idle += e->step->degree[e->j].degree;
    return e->step->count < e->step->ranks ? 0 : idle;
}

/* One try. *fits gets whether there was a plan. */
static hbp_status try_one(equal *e, int64_t micro_batches, int way, int *fits)
{
    const hbp__step *step = e->step;
    if (!build(e, micro_batches, way))
        return HBP_OK;
    *fits = 1;
    even_out(e);
    int64_t idle = count_idle(e);
    double dummies =
        (double)(hbp__step_whole(step, micro_batches) - micro_batches) * step->cost->terms.pack_ns;
    double time = sum_up(e) + dummies;
    if (idle > e->best_idle || (idle == e->best_idle && time > WORTH * e->best_time))
        return HBP_OK;
    HBP__TRY(improve(e));
    idle = count_idle(e);
    time = sum_up(e) + dummies;
    if (idle < e->best_idle || (idle == e->best_idle && time < e->best_time)) {
        e->best_idle = idle;
        e->best_time = time;
        hbp__step_board_copy(step, &e->board, &e->best);
    }
    return HBP_OK;
}

/* Lanes of degree j; 0 when they leave ranks over, or one of the sequences does not fit. */
static int64_t count_lanes(const equal *e, int32_t j)
{
    const hbp__step *step = e->step;
    int64_t lanes = step->ranks / step->degree[j].degree;
    for (int64_t i = 0; i < lanes; i++)
        e->degree[i] = j;
    if (step->ranks % step->degree[j].degree || !hbp__step_place(step, e->degree, lanes, NULL))
        return 0;
    for (int64_t k = 0; k < step->count; k++)
        if (!hbp__step_holds(step, j, step->degree[j].tokens[k], hbp__step_samples(step, k)))
            return 0;
    return lanes;
}

/* The fewest micro-batches that the tokens ask for on degree e->j. */
static int64_t first_number(const equal *e)
{
    const hbp__step *step = e->step;
    int64_t tokens = 0;
    for (int64_t k = 0; k < step->count; k++)
        tokens += step->degree[e->j].tokens[k];
    return hbp__step_whole(step, hbp__ceil_div(hbp__ceil_div(tokens, step->degree[e->j].capacity), e->lanes));
}

/* Tries degree e->j with more and more micro-batches. */
static hbp_status try_degree(equal *e)
{
    const hbp__step *step = e->step;
    int64_t failures = 0;
    for (int64_t m = first_number(e); failures <= FAILURES; m += step->options.micro_batch_multiple) {
        double before = e->best_time;
        int64_t used = hbp__min_i64(m, step->count);
        int fits = 0;
        if (used > e->room)
            return HBP_OK;
        for (int way = 0; way < (used > 1 ? WAYS : 1); way++)
            HBP__TRY(try_one(e, used, way, &fits));
        if (fits)
            failures += !(e->best_time < before);
        if (used < m || hbp__step_is_late(step))
            return HBP_OK;
    }
    return HBP_OK;
}

/* Tries every degree with up to e->room micro-batches. */
static hbp_status try_all(equal *e)
{
    const hbp__step *step = e->step;
    HBP__TRY(hbp__step_board_open(step, e->room, &e->board));
    HBP__TRY(hbp__step_board_open(step, e->room, &e->best));
    for (e->j = 0; e->j < step->degrees; e->j++) {
        e->lanes = count_lanes(e, e->j);
        if (e->lanes)
            HBP__TRY(try_degree(e));
    }
    return HBP_OK;
}

/* The fewest micro-batches, by tokens, of the degree that asks for most; 0: no degree will do. */
static int64_t find_least(equal *e)
{
    const hbp__step *step = e->step;
    int64_t least = 0;
    for (e->j = 0; e->j < step->degrees; e->j++) {
        e->lanes = count_lanes(e, e->j);
        if (e->lanes)
            least = hbp__max_i64(least, first_number(e));
    }
    return least;
}

static hbp_status run(equal *e, hbp__step_solution *solution)
{
    const hbp__step *step = e->step;
    const hbp__memory *memory = &step->context->memory;
    int32_t most = step->options.max_micro_batches;
    int64_t cap = most ? hbp__min_i64(most, step->count) : step->count;
    e->samples = hbp__new(memory, (uint64_t)step->ranks, sizeof *e->samples);
    e->degree = hbp__new(memory, (uint64_t)step->ranks, sizeof *e->degree);
    if (!e->samples || !e->degree)
        return hbp__fail_memory(step->context, "the search");
    e->best_time = (double)INFINITY;
    e->best_idle = INT64_MAX;
    int64_t least = find_least(e);
    if (!least)
        return hbp__fail(step->context, HBP_E_INFEASIBLE,
                         "hbp_step_options.equal_samples is set, and no SP degree that divides the %d ranks "
                         "holds every sequence; the longest has %lld tokens with padding",
                         (int)step->ranks, (long long)step->tokens[0]);
    for (e->room = hbp__min_i64(least + 4 * step->options.micro_batch_multiple, cap);; e->room *= 2) {
        e->room = hbp__min_i64(e->room, cap);
        hbp__step_board_close(step, &e->best);
        hbp__step_board_close(step, &e->board);
        HBP__TRY(try_all(e));
        if (e->best_time < (double)INFINITY)
            break;
        if (e->room == cap)
            return hbp__fail(step->context, HBP_E_INFEASIBLE,
                             "hbp_step_options.equal_samples is set, and no plan of at most %lld "
                             "micro-batches was found",
                             (long long)cap);
    }
    HBP__TRY(hbp__step_board_write(step, &e->best, solution));
    solution->proven = !hbp__step_is_late(step);
    return HBP_OK;
}

hbp_status hbp__step_equal(const hbp__step *step, hbp__step_solution *solution)
{
    const hbp__memory *memory = &step->context->memory;
    equal e = {.step = step};
    hbp_status status = run(&e, solution);
    hbp__step_board_close(step, &e.best);
    hbp__step_board_close(step, &e.board);
    hbp__delete(memory, e.degree);
    hbp__delete(memory, e.samples);
    return status;
}

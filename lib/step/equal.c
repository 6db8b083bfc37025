/* Steps whose packs have one degree d and whose lanes, ranks [i d, (i + 1) d), get the same number of samples
 * (docs/explanation/step.md).
 *
 * Sequences, longest first, go to the lanes with the fewest samples and there to the pack that takes least,
 * so that rows of one for each lane arise. Rows go to micro-batches in runs, which is best where lengths are
 * very different, or in turns, where memory is short. Then the slowest pack of a micro-batch exchanges a
 * sequence for a shorter one of as many samples, or gives one to its lane in another micro-batch, as long as
 * that shortens it and lengthens no other. Each degree that divides the ranks, and more and more
 * micro-batches, are tried: O(count lanes) a try, and a counted amount of work after it. The lower bound is
 * the step's. */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/scratch.h"
#include "step/builder.h"
#include "step/tuning.h"

/* Packs looked at between two looks at a request to cancel. */
#define TICK_PACKS (INT64_C(1) << 19)

enum { IN_RUNS, IN_TURNS, WAYS };

typedef struct equal {
    const hbp__step *step;
    hbp__step_board board; /* group i of a micro-batch is lane i */
    hbp__step_board best;
    int64_t room;     /* micro-batches of a board */
    int64_t *samples; /* [ranks] of each lane */
    int32_t *degree;  /* [ranks] scratch */
    int32_t j;        /* the degree being tried */
    int32_t best_j;
    int64_t lanes;
    int64_t work;
    int64_t looked;    /* packs looked at since the last look at a request to cancel */
    int64_t best_idle; /* ranks without samples, where there are enough for all */
    double best_time;
    hbp_status status; /* once cancelled nothing is put anywhere */
} equal;

/* Zero once cancelled; `packs` more are looked at. */
static int listen(equal *e, int64_t packs)
{
    e->looked += packs;
    if (e->looked >= TICK_PACKS && e->status >= 0) {
        e->looked = 0;
        e->status = hbp__tick(e->step->context, "step", 0, 1);
    }
    return e->status >= 0;
}

static double time_of(const equal *e, hbp__load load)
{
    return load.tokens ? hbp__step_group_time(e->step, e->j, load) : e->step->cost->terms.pack_ns;
}

/* About what sequence k adds to the time of a pack: as if nothing were recomputed. */
static double weight(const equal *e, int64_t k)
{
    const hbp__step_degree *d = &e->step->degree[e->j];
    double ns = d->linear * (double)d->tokens[k] + d->square * e->step->squares[k];
    return e->step->vision ? ns + d->way[0].vision * (double)e->step->vision[k] : ns;
}

/* Members stay in descending order of their numbers, so the shortest is first. O(1) while sequences come
 * longest first. */
static void put(equal *e, int64_t at, int64_t k)
{
    hbp__step_board *b = &e->board;
    hbp__step_group *g = &b->group[at];
    int64_t *link = &g->head;
    while (*link != HBP__NONE && *link > k)
        link = &b->next[*link];
    b->next[k] = *link;
    *link = k;
    b->home[k] = at;
    hbp__step_group_add(e->step, g, k, 1);
    g->time = time_of(e, g->load);
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
    g->time = time_of(e, g->load);
    e->samples[b->home[k] % b->ranks] -= hbp__step_samples(e->step, k);
}

/* Sequence k into micro-batch m: the lane with the fewest samples, up to `most` of them, and of these the
 * pack that takes least. Zero when no pack holds it. O(lanes). */
static int put_in(equal *e, int64_t m, int64_t k, int64_t most)
{
    const hbp__step_board *b = &e->board;
    int64_t best = HBP__NONE;
    for (int64_t i = 0; i < e->lanes; i++) {
        const hbp__step_group *g = &b->group[m * b->ranks + i];
        if (e->samples[i] <= most &&
            (best == HBP__NONE || e->samples[i] < e->samples[best] ||
             (e->samples[i] == e->samples[best] && g->time < b->group[m * b->ranks + best].time)) &&
            hbp__step_group_takes(e->step, g, k))
            best = i;
    }
    if (best == HBP__NONE)
        return 0;
    put(e, m * b->ranks + best, k);
    return 1;
}

/* The same, where there is room: equal numbers go before the micro-batch that is meant. */
static int put_anywhere(equal *e, int64_t m, int64_t k)
{
    int64_t fewest = e->samples[0];
    for (int64_t i = 1; i < e->lanes; i++)
        fewest = hbp__min_i64(fewest, e->samples[i]);
    for (int pass = 0; pass < 2; pass++)
        for (int64_t o = 0; o < e->board.micro_batches && listen(e, e->lanes); o++)
            if (put_in(e, (m + o) % e->board.micro_batches, k, pass ? INT64_MAX : fewest))
                return 1;
    return 0;
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
        if (!put_anywhere(e, m, k))
            return 0;
    }
    return 1;
}

/* Moves samples from the lane with most of them to the one with fewest until no sequence makes them more
 * equal. Only linked samples, and memory, leave anything to do. Zero when lanes of single samples stay
 * uneven.
 */
static int even_out(equal *e)
{
    hbp__step_board *b = &e->board;
    for (;;) {
        int64_t most = 0, fewest = 0, best = HBP__NONE, to = 0, best_left = INT64_MAX;
        for (int64_t i = 1; i < e->lanes; i++) {
            most = e->samples[i] > e->samples[most] ? i : most;
            fewest = e->samples[i] < e->samples[fewest] ? i : fewest;
        }
        int64_t apart = e->samples[most] - e->samples[fewest];
        if (apart <= 1)
            return 1;
        for (int64_t m = 0; m < b->micro_batches; m++) {
            const hbp__step_group *from = &b->group[m * b->ranks + most];
            for (int64_t k = from->head; k != HBP__NONE && listen(e, 1); k = b->next[k]) {
                int64_t left = 2 * hbp__step_samples(e->step, k) - apart;
                left = left < 0 ? -left : left;
                for (int64_t o = 0; left < apart && left < best_left && o < b->micro_batches && listen(e, 1);
                     o++) {
                    int64_t at = (o + m) % b->micro_batches * b->ranks + fewest;
                    if (!hbp__step_group_takes(e->step, &b->group[at], k))
                        continue;
                    best = k;
                    to = at;
                    best_left = left;
                }
            }
        }
        if (best == HBP__NONE || e->status < 0)
            return e->step->samples != NULL;
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
            b->makespan[m] = hbp__max_f64(b->makespan[m], b->group[m * b->ranks + i].time);
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

/* Time of a pack that sequence a joins (sign 1) or leaves (-1) for b, which may be HBP__NONE; INFINITY
 * where it does not hold that. */
static inline double time_after(const equal *e, const hbp__load *pack, int64_t a, int64_t b, int sign)
{
    const hbp__step *step = e->step;
    const hbp__step_degree *d = &step->degree[e->j];
    if (step->vision)
        return hbp__step_vision_time_by(step, e->j, pack, a, b, sign);
    int64_t tokens = pack->tokens + sign * d->tokens[a];
    int64_t samples = pack->samples + sign * hbp__step_samples(step, a);
    double squares = pack->squares + sign * step->squares[a];
    if (b != HBP__NONE) {
        tokens -= sign * d->tokens[b];
        samples -= sign * hbp__step_samples(step, b);
        squares -= sign * step->squares[b];
    }
    if (tokens > d->capacity || samples > step->most_samples)
        return (double)INFINITY;
    return tokens ? hbp__step_text_time(d, tokens, squares) : step->cost->terms.pack_ns;
}

/* Keeps the move if it is the best so far. */
static void consider(const equal *e, int64_t p, int64_t q, int64_t a, int64_t b, move *best)
{
    const hbp__step_board *board = &e->board;
    double mine = time_after(e, &board->group[p].load, a, b, -1);
    if (!(mine < best->time))
        return;
    double other = time_after(e, &board->group[q].load, a, b, 1);
    if (p / board->ranks == q / board->ranks)
        mine = hbp__max_f64(mine, other);
    else if (!(other <= board->makespan[q / board->ranks]))
        return;
    if (mine < best->time)
        *best = (move){a, b, q, mine};
}

/* Exchanges between packs p and q. Both lists rise in length, so for each member of p the partners that
 * differ by about the right time are found by going up q once. O(members of both). */
static void find_exchange(equal *e, int64_t p, int64_t q, move *best)
{
    const hbp__step *step = e->step;
    const hbp__step_board *b = &e->board;
    const int64_t *tokens = step->degree[e->j].tokens;
    int same = p / b->ranks == q / b->ranks;
    double room =
        same ? (b->group[p].time - b->group[q].time) / 2 : b->makespan[q / b->ranks] - b->group[q].time;
    int64_t above = b->group[q].head, below = HBP__NONE;
    if (room < 0 || above == HBP__NONE)
        return;
    for (int64_t a = b->group[p].head; a != HBP__NONE; a = b->next[a]) {
        double wanted = weight(e, a) - room;
        e->work++;
        while (above != HBP__NONE && weight(e, above) < wanted) {
            below = above;
            above = b->next[above];
            e->work++;
        }
        int64_t partner[] = {above, same ? below : HBP__NONE};
        for (int i = 0; i < 2; i++)
            if (partner[i] != HBP__NONE && tokens[partner[i]] < tokens[a] &&
                hbp__step_samples(step, partner[i]) == hbp__step_samples(step, a))
                consider(e, p, q, a, partner[i], best);
    }
}

/* Looks at every pack for what shortens pack p of micro-batch m. O(count). */
static void look_everywhere(equal *e, int64_t m, int64_t p, move *best)
{
    const hbp__step_board *b = &e->board;
    for (int64_t o = 0; o < b->micro_batches; o++) {
        for (int64_t i = 0; i < e->lanes; i++)
            if (o * b->ranks + i != p && listen(e, 1))
                find_exchange(e, p, o * b->ranks + i, best);
        e->work += e->lanes;
        if (o == m || b->next[b->group[p].head] == HBP__NONE)
            continue;
        for (int64_t a = b->group[p].head; a != HBP__NONE; a = b->next[a])
            consider(e, p, o * b->ranks + p % b->ranks, a, HBP__NONE, best);
    }
}

/* Shortens the slowest pack of micro-batch m: with the fastest if that nearly evens the two, else with
 * whatever helps most. Zero when nothing does. */
static int shorten(equal *e, int64_t m)
{
    hbp__step_board *b = &e->board;
    int64_t first = m * b->ranks, p = first, q = first;
    for (int64_t i = first; i < first + e->lanes; i++) {
        p = b->group[i].time > b->group[p].time ? i : p;
        q = b->group[i].time < b->group[q].time ? i : q;
    }
    double before = b->group[p].time;
    move best = {HBP__NONE, HBP__NONE, 0, before * (1 - 1e-9)};
    e->work += e->lanes;
    if (p != q)
        find_exchange(e, p, q, &best);
    if (best.a == HBP__NONE || before - best.time < HBP__EQUAL_ENOUGH * (before - b->group[q].time))
        look_everywhere(e, m, p, &best);
    if (best.a == HBP__NONE)
        return 0;
    take(e, best.a);
    if (best.b != HBP__NONE) {
        take(e, best.b);
        put(e, p, best.b);
    }
    put(e, best.to, best.a);
    b->makespan[m] = e->step->cost->terms.pack_ns;
    for (int64_t i = first; i < first + e->lanes; i++)
        b->makespan[m] = hbp__max_f64(b->makespan[m], b->group[i].time);
    return 1;
}

static hbp_status improve(equal *e, int64_t part)
{
    const hbp__step *step = e->step;
    int64_t limit = (HBP__EQUAL_WORK + HBP__EQUAL_WORK_SEQUENCE * step->count) / part, report = 0;
    for (int32_t i = 1; i < step->options.effort; i++)
        limit = hbp__mul_saturating(limit, 3);
    e->work = 0;
    sum_up(e);
    for (int changed = 1; changed && e->work < limit;) {
        changed = 0;
        for (int64_t m = 0; m < e->board.micro_batches && e->work < limit; m++) {
            changed |= shorten(e, m);
            if (e->work < report)
                continue;
            report = e->work + 100000;
            HBP__TRY(e->status);
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

/* Improves the board, and keeps it if it is better than the best. *time gets its own. */
static hbp_status keep_better(equal *e, int64_t part, double *time)
{
    HBP__TRY(improve(e, part));
    int64_t idle = count_idle(e);
    *time = sum_up(e);
    if (idle > e->best_idle || (idle == e->best_idle && !(*time < e->best_time)))
        return HBP_OK;
    e->best_idle = idle;
    e->best_time = *time;
    e->best_j = e->j;
    hbp__step_board_copy(e->step, &e->board, &e->best);
    return HBP_OK;
}

/* One try, improved by a part of the work; *time gets what it takes, INFINITY when it does not fit. */
static hbp_status try_one(equal *e, int64_t micro_batches, int way, int64_t part, double *time)
{
    *time = (double)INFINITY;
    int made = build(e, micro_batches, way) && even_out(e);
    HBP__TRY(e->status);
    return made ? keep_better(e, part, time) : HBP_OK;
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
        if (!hbp__step_holds_alone(step, j, k))
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

/* Tries degree e->j with more and more micro-batches, until some in a row take no less; the best of them with
 * more work. */
static hbp_status try_degree(equal *e)
{
    const hbp__step *step = e->step;
    int64_t failures = 0, stride, best_used = 0;
    double best = (double)INFINITY, time;
    int best_way = 0;
    for (int64_t m = first_number(e); failures < HBP__EQUAL_FAILURES; m += stride) {
        double before = best;
        int64_t used = hbp__min_i64(m, step->count);
        if (used > e->room)
            break;
        for (int way = 0; way < (used > 1 ? WAYS : 1); way++) {
            HBP__TRY(try_one(e, used, way, HBP__EQUAL_PART, &time));
            if (!(time < best))
                continue;
            best = time;
            best_used = used;
            best_way = way;
        }
        if (used < m || hbp__step_is_late(step))
            break;
        failures = best < before || !(best < (double)INFINITY) ? 0 : failures + 1;
        stride = hbp__round_up(1 + m / 8, step->options.micro_batch_multiple);
    }
    if (!best_used || best > HBP__EQUAL_WORTH * e->best_time || hbp__step_is_late(step))
        return HBP_OK;
    return try_one(e, best_used, best_way, HBP__EQUAL_PART_OF_BEST, &time);
}

/* Makes the best board the one that is worked on. */
static void go_on_with_best(equal *e)
{
    const hbp__step_board *b = &e->board;
    e->j = e->best_j;
    e->lanes = count_lanes(e, e->j);
    hbp__step_board_copy(e->step, &e->best, &e->board);
    memset(e->samples, 0, (size_t)e->step->ranks * sizeof *e->samples);
    for (int64_t k = 0; k < e->step->count; k++)
        e->samples[b->home[k] % b->ranks] += hbp__step_samples(e->step, k);
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

static hbp_status run_equal(equal *e, hbp__step_solution *solution)
{
    const hbp__step *step = e->step;
    hbp_context *context = step->context;
    int32_t most = step->options.max_micro_batches;
    int64_t cap = most ? hbp__min_i64(most, step->count) : step->count;
    e->samples = hbp__take(context, (uint64_t)step->ranks, sizeof *e->samples);
    e->degree = hbp__take(context, (uint64_t)step->ranks, sizeof *e->degree);
    HBP__TRY(hbp__scratch_check(context, "the search"));
    int64_t mark = hbp__scratch_mark(context);
    e->best_time = (double)INFINITY;
    e->best_idle = INT64_MAX;
    int64_t least = find_least(e);
    if (!least)
        return hbp__fail(step->context, HBP_E_INFEASIBLE,
                         "`equal_samples` is set, and no SP degree that divides the %d ranks "
                         "holds every sequence; the longest has %lld tokens with padding",
                         (int)step->ranks, (long long)step->tokens[0]);
    for (e->room = 4 * (least + step->options.micro_batch_multiple);; e->room *= 2) {
        e->room = hbp__min_i64(e->room, cap);
        hbp__scratch_release(context, mark);
        HBP__TRY(try_all(e));
        if (e->best_time < (double)INFINITY)
            break;
        if (e->room == cap)
            return hbp__fail(step->context, HBP_E_INFEASIBLE,
                             "`equal_samples` is set, and no plan of at most %lld "
                             "micro-batches was found",
                             (long long)cap);
    }
    double time;
    go_on_with_best(e);
    HBP__TRY(keep_better(e, 1, &time));
    HBP__TRY(hbp__step_board_write(step, &e->best, solution));
    solution->complete = !hbp__step_is_late(step);
    return HBP_OK;
}

hbp_status hbp__step_equal(const hbp__step *step, hbp__step_solution *solution)
{
    equal e = {.step = step};
    int64_t mark = hbp__scratch_mark(step->context);
    return hbp__leave(step->context, mark, run_equal(&e, solution));
}

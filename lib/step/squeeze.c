/* Repairs a micro-batch that misses its goal: what found no place is put where it costs least, then single
 * sequences move or two change places while rank-time over the goal falls. */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/scratch.h"
#include "step/builder.h"
#include "step/tuning.h"

/* Work between two looks at a request to cancel: some 10 ms. */
#define WORK_A_LOOK INT64_C(400000)

/* More than the rounding of times. */
#define TOLERANCE 1e-9

hbp_status hbp__step_squeezer_open(const hbp__step *step, hbp__step_squeezer *q)
{
    memset(q, 0, sizeof *q);
    q->step = step;
    q->member = hbp__take(step->context, (uint64_t)step->count, sizeof *q->member);
    q->group = hbp__take(step->context, (uint64_t)step->ranks, sizeof *q->group);
    q->way = hbp__take(step->context, (uint64_t)step->ranks, sizeof *q->way);
    return hbp__scratch_check(step->context, "the search");
}

/* Time of a group that holds too much, longer than the goal by what is too much. */
static double time_over(const hbp__step *step, int32_t j, hbp__load load, double goal)
{
    const hbp__step_degree *d = &step->degree[j];
    int64_t tokens = load.tokens, samples = load.samples;
    const hbp__point *way = &d->way[d->ways - 1];
    double time = way->constant + way->linear * (double)tokens + way->square * load.squares, excess = 0;
    time += step->vision ? way->vision * (double)load.vision : 0;
    if (tokens > d->capacity)
        excess = goal * (double)(tokens - d->capacity) / (double)d->capacity;
    if (samples > step->most_samples)
        excess += goal * (double)(samples - step->most_samples) / (double)step->most_samples;
    if (step->vision)
        excess += goal * hbp__step_vision_excess(step, j, load);
    return (time > goal ? time : goal) + excess;
}

/* Vision units that a group gets by one member more and another less; either may be NULL. */
static int64_t vision_by(const hbp__step *step, const hbp__step_member *in, const hbp__step_member *out)
{
    return (in ? hbp__step_vision(step, in->k) : 0) - (out ? hbp__step_vision(step, out->k) : 0);
}

/* Time of group g with so much in it, by one member more and another less; by time_over where it does not
 * hold that. */
static double time_of(const hbp__step_squeezer *q, int32_t g, int64_t tokens, double squares, int64_t samples,
                      const hbp__step_member *in, const hbp__step_member *out, double goal)
{
    const hbp__step *step = q->step;
    const hbp__step_group *group = &q->group[g];
    const hbp__step_degree *d = &step->degree[group->degree];
    hbp__load load = {tokens, squares, 0, samples};
    if (!tokens)
        return step->cost->terms.pack_ns;
    if (!step->vision)
        return tokens <= d->capacity && samples <= step->most_samples
                   ? hbp__step_text_time(d, tokens, squares)
                   : time_over(step, group->degree, load, goal);
    load.vision = group->load.vision + vision_by(step, in, out);
    return hbp__step_holds(step, group->degree, load) ? hbp__step_vision_time(step, group->degree, load)
                                                      : time_over(step, group->degree, load, goal);
}

/* Time of a group that recomputes the fewest layers and has no vision units. */
static inline double plain_time(const hbp__step_degree *d, int64_t tokens, double squares)
{
    tokens = hbp__round_up(tokens, d->pack_multiple);
    return d->constant + d->linear * (double)tokens + d->square * squares;
}

/* The same. What takes nearly all calls stands first: the group holds that with the fewest layers recomputed.
 */
static inline double time_with(const hbp__step_squeezer *q, int32_t g, const hbp__step_member *in,
                               const hbp__step_member *out, double goal)
{
    const hbp__step_group *group = &q->group[g];
    const hbp__step_degree *d = &q->step->degree[group->degree];
    int64_t tokens = group->load.tokens, samples = group->load.samples;
    double squares = group->load.squares;
    if (in && out) { /* the difference first, for the sake of the last place */
        tokens += d->tokens[in->k] - d->tokens[out->k];
        squares += in->squares - out->squares;
        samples += in->samples - out->samples;
    } else if (in) {
        tokens += d->tokens[in->k];
        squares += in->squares;
        samples += in->samples;
    } else if (out) {
        tokens -= d->tokens[out->k];
        squares -= out->squares;
        samples -= out->samples;
    }
    if (tokens <= 0 || tokens > d->capacity || samples > q->step->most_samples || q->step->vision)
        return time_of(q, g, tokens, squares, samples, in, out, goal);
    return tokens <= d->plain ? plain_time(d, tokens, squares) : hbp__step_text_time(d, tokens, squares);
}

/* No more than the time of a group of degree d with at least as many tokens as `way` runs, without vision
 * units: a group of more tokens runs in no faster way. */
static inline double least_time(const hbp__step_degree *d, const hbp__point *way, int64_t tokens,
                                double squares)
{
    tokens = hbp__round_up(tokens, d->pack_multiple);
    return way->constant + way->linear * (double)tokens + way->square * squares;
}

/* Time of group g as it is. */
static double time_now(const hbp__step_squeezer *q, int32_t g, double goal)
{
    return time_with(q, g, NULL, NULL, goal);
}

/* Rank-time over the goal. */
static double over(const hbp__step_squeezer *q, int32_t g, double time, double goal)
{
    return time > goal ? (time - goal) * q->step->degree[q->group[g].degree].degree : 0;
}

/* Sets the way in which group g runs its tokens. */
static void set_way(hbp__step_squeezer *q, int32_t g)
{
    const hbp__step_group *group = &q->group[g];
    q->way[g] = hbp__step_find_way(&q->step->degree[group->degree], group->load.tokens);
}

/* No more than what group g is over the goal with one member more, and another less or NULL; without vision
 * units. */
static inline double least_over(const hbp__step_squeezer *q, int32_t g, const hbp__step_member *in,
                                const hbp__step_member *out, double goal)
{
    const hbp__step_group *group = &q->group[g];
    const hbp__step_degree *d = &q->step->degree[group->degree];
    int64_t tokens = group->load.tokens + d->tokens[in->k];
    double squares = group->load.squares + in->squares;
    if (out) {
        tokens = group->load.tokens + (d->tokens[in->k] - d->tokens[out->k]);
        squares = group->load.squares + (in->squares - out->squares);
    }
    const hbp__point *way = tokens < group->load.tokens ? &d->way[0] : q->way[g];
    double time = least_time(d, way, tokens, squares);
    return time > goal ? (time - goal) * d->degree : 0;
}

static void add(hbp__step_squeezer *q, int32_t g, int64_t k, int sign, double goal)
{
    hbp__step_group *group = &q->group[g];
    hbp__step_group_add(q->step, group, k, sign);
    group->time = time_now(q, g, goal);
    set_way(q, g);
}

static hbp__step_member member_of(const hbp__step *step, int64_t k, int32_t g)
{
    return (hbp__step_member){k, step->weight[k], step->squares[k], hbp__step_samples(step, k), 0, g};
}

static void add_member(hbp__step_squeezer *q, int32_t g, int64_t k)
{
    q->member[q->count++] = member_of(q->step, k, g);
}

static int insert(hbp__step_squeezer *q, int32_t groups, int64_t k, double goal)
{
    const hbp__step_member member = member_of(q->step, k, 0);
    int32_t best = -1;
    double least = (double)INFINITY;
    for (int32_t g = 0; g < groups; g++) {
        double time = time_with(q, g, &member, NULL, goal);
        double worse = over(q, g, time, goal) - over(q, g, q->group[g].time, goal);
        if (worse < least) {
            least = worse;
            best = g;
        }
    }
    if (best < 0)
        return 0;
    add(q, best, k, 1, goal);
    add_member(q, best, k);
    return 1;
}

/* Whether groups take so much more than the goal that hardly any moves bring them there. */
static int is_far(const hbp__step_squeezer *q, int32_t groups, double goal)
{
    double sum = 0;
    for (int32_t g = 0; g < groups; g++)
        sum += over(q, g, q->group[g].time, goal);
    return sum > HBP__SQUEEZE_FAR * goal * q->step->ranks;
}

/* Whether all members at their least rank-times, each in some group that holds it in time, are more than the
 * groups have: no moves help then. */
static int is_too_much(const hbp__step_squeezer *q, int32_t groups, double goal)
{
    const hbp__step *step = q->step;
    const int64_t *vision = step->vision;
    uint64_t used = 0;
    double room = 0;
    for (int32_t g = 0; g < groups; g++) {
        used |= UINT64_C(1) << q->group[g].degree;
        room += step->degree[q->group[g].degree].degree * (goal - step->cost->terms.pack_ns);
    }
    for (int64_t i = 0; i < q->count && room >= 0; i++) {
        int64_t k = q->member[i].k;
        double least = (double)INFINITY;
        for (int32_t j = 0; j < step->degrees; j++) {
            const hbp__step_degree *d = &step->degree[j];
            int64_t tokens = d->tokens[k];
            if (!(used >> j & 1) || tokens > d->capacity)
                continue;
            double time = d->linear * (double)tokens + d->square * step->squares[k];
            if (vision)
                time += d->way[0].vision * (double)vision[k];
            if (time + d->constant <= goal * (1 + TOLERANCE) && d->degree * time < least)
                least = d->degree * time;
        }
        room -= least;
    }
    return room < -TOLERANCE * goal * step->ranks;
}

/* Whether to go on: less than `limit` is done, and nobody has cancelled. */
static int goes_on(hbp__step_squeezer *q, int64_t limit)
{
    if (q->status >= 0 && q->work >= q->next_look) {
        int64_t done = q->before + q->work;
        q->next_look = q->work + WORK_A_LOOK;
        q->status = hbp__tick(q->step->context, "step", hbp__min_i64(done, q->work_limit), q->work_limit);
    }
    return q->status >= 0 && q->work <= limit;
}

/* A move of member a to group `to`, or its exchange with member b. */
typedef struct move {
    int64_t a;
    int64_t b;
    int32_t to;
    double gain;
} move;

/* The best move out of group `from`, of those seen until the work ends or one gains all there is.
 */
static move find_move(hbp__step_squeezer *q, int32_t from, int32_t groups, int64_t turn, double goal,
                      int64_t limit)
{
    const hbp__step *step = q->step;
    double here = over(q, from, q->group[from].time, goal);
    move best = {HBP__NONE, HBP__NONE, 0, -(double)INFINITY};
    for (int64_t a = 0; a < q->count; a++) {
        const hbp__step_member *mine = &q->member[a];
        if (mine->where != from || mine->quiet_until > turn)
            continue;
        if (!goes_on(q, limit))
            return best;
        q->work += groups + q->count;
        double without = time_with(q, from, NULL, mine, goal);
        double gone = here - over(q, from, without, goal);
        for (int32_t g = 0; g < groups; g++) {
            if (g == from)
                continue;
            double now = over(q, g, q->group[g].time, goal);
            if (!step->vision && gone - least_over(q, g, mine, NULL, goal) + now <= best.gain)
                continue;
            double time = time_with(q, g, mine, NULL, goal);
            double gain = gone - over(q, g, time, goal) + now;
            if (gain > best.gain)
                best = (move){a, HBP__NONE, g, gain};
        }
        if (best.gain >= here)
            return best;
        /* What is left of the group without it. */
        const hbp__step_degree *d = &q->step->degree[q->group[from].degree];
        const int64_t *column = d->tokens, most = q->step->most_samples, plain = d->plain;
        int64_t tokens = q->group[from].load.tokens - column[mine->k];
        int64_t samples = q->group[from].load.samples - mine->samples;
        double squares = q->group[from].load.squares - mine->squares;
        const hbp__point *way = hbp__step_find_way(d, tokens);
        for (int64_t b = 0; b < q->count; b++) {
            const hbp__step_member *other = &q->member[b];
            int32_t g = other->where;
            if (other->weight >= mine->weight || g == from || other->quiet_until > turn)
                continue;
            int64_t there = tokens + column[other->k];
            if (!step->vision && there > plain) {
                double least = least_time(d, way, there, squares + other->squares);
                if (least > goal && here - (least - goal) * d->degree <= best.gain)
                    continue;
            }
            double rest = there > 0 && there <= plain && samples + other->samples <= most
                              ? plain_time(d, there, squares + other->squares)
                              : time_with(q, from, other, mine, goal);
            double left = rest > goal ? (rest - goal) * d->degree : 0;
            if (here - left <= best.gain)
                continue;
            double now = over(q, g, q->group[g].time, goal);
            if (!step->vision && here - left - least_over(q, g, mine, other, goal) + now <= best.gain)
                continue;
            double time = time_with(q, g, mine, other, goal);
            double gain = here - left - over(q, g, time, goal) + now;
            if (gain > best.gain)
                best = (move){a, b, g, gain};
            if (gain >= here)
                return best;
        }
    }
    return best;
}

static void put(hbp__step_squeezer *q, hbp__step_member *member, int32_t from, int32_t to, int64_t turn,
                double goal)
{
    add(q, from, member->k, -1, goal);
    add(q, to, member->k, 1, goal);
    member->where = to;
    member->quiet_until = turn + HBP__SQUEEZE_QUIET;
}

static void apply(hbp__step_squeezer *q, const move *m, int32_t from, int64_t turn, double goal)
{
    put(q, &q->member[m->a], from, m->to, turn, goal);
    if (m->b != HBP__NONE)
        put(q, &q->member[m->b], m->to, from, turn, goal);
}

/* Writes the groups back to the board. */
static void adopt(hbp__step_squeezer *q, hbp__step_board *board, int64_t m)
{
    int64_t first = m * board->ranks;
    double slowest = q->step->cost->terms.pack_ns;
    for (int64_t g = 0; g < board->groups[m]; g++) {
        q->group[g].head = HBP__NONE;
        board->group[first + g] = q->group[g];
        slowest = q->group[g].time > slowest ? q->group[g].time : slowest;
    }
    for (int64_t i = 0; i < q->count; i++) {
        int64_t k = q->member[i].k, home = first + q->member[i].where;
        hbp__step_group *group = &board->group[home];
        board->home[k] = home;
        board->next[k] = group->head;
        group->head = k;
    }
    board->makespan[m] = slowest;
}

/* The work at which a squeeze ends that begins now. */
static int64_t work_limit_of(const hbp__step_squeezer *q)
{
    const int64_t least = q->quick ? HBP__SQUEEZE_QUICK_WORK : HBP__SQUEEZE_LEAST_WORK;
    return q->work_limit ? hbp__max_i64(q->work_limit - q->before, q->work + least) : INT64_MAX;
}

int hbp__step_squeeze(hbp__step_squeezer *q, hbp__step_board *board, int64_t m, const int64_t *extra,
                      int64_t extras, double goal, int64_t moves)
{
    int32_t groups = (int32_t)board->groups[m];
    if (q->quick && q->work + extras * groups > work_limit_of(q))
        return 0;
    q->count = 0;
    for (int32_t g = 0; g < groups; g++) {
        q->group[g] = board->group[m * board->ranks + g];
        for (int64_t k = q->group[g].head; k != HBP__NONE; k = board->next[k])
            add_member(q, g, k);
    }
    for (int64_t i = 0; i < extras; i++)
        if (!insert(q, groups, extra[i], goal))
            return 0;
    q->work += extras * groups;
    const int64_t limit =
        hbp__min_i64(work_limit_of(q), q->work + HBP__SQUEEZE_WORK + HBP__SQUEEZE_WORK_MEMBER * q->count);
    for (int32_t g = 0; g < groups; g++) {
        q->group[g].time = time_now(q, g, goal);
        set_way(q, g);
    }
    if (q->quick && is_far(q, groups, goal))
        return 0;
    for (int64_t turn = 1;; turn++) {
        int32_t worst = -1;
        double most = 0;
        for (int32_t g = 0; g < groups; g++) {
            double mine = over(q, g, q->group[g].time, goal);
            if (mine > most) {
                most = mine;
                worst = g;
            }
        }
        if (worst < 0)
            break;
        if (turn > moves || !goes_on(q, limit) || (turn == 1 && is_too_much(q, groups, goal)))
            return 0;
        move best = find_move(q, worst, groups, turn, goal, limit);
        if (best.a == HBP__NONE || q->status < 0)
            return 0;
        apply(q, &best, worst, turn, goal);
    }
    adopt(q, board, m);
    return 1;
}

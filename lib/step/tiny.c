/* A step of a few sequences, solved exactly by dynamic programming over sets of them. */
#include <string.h>

#include "base/checked.h"
#include "base/scratch.h"
#include "step/builder.h"
#include "step/tuning.h"

/* Longer times count as this, so that even they have a solution. */
#define LONGEST_NS (INT64_MAX - 1)

typedef struct tiny {
    const hbp__step *step;
    int no_idle; /* nonzero: a group on every rank of a micro-batch */
    int32_t sets;
    int32_t rows;      /* of ranks: 0..ranks */
    hbp__load *load;   /* [degrees x sets] as each degree pads them */
    int64_t *makespan; /* [sets x rows] least, on so many ranks */
    int32_t *group;    /* [sets x rows] the part with the lowest sequence */
    int32_t *degree;   /* [sets x rows] its degree */
    int32_t forced;    /* numbers of micro-batches told apart; 0: none is */
    int64_t *sum;      /* [forced + 1 x sets] least sum of makespans, in so many micro-batches */
    int32_t *batch;    /* [forced + 1 x sets] the micro-batch with the lowest sequence */
} tiny;

/* Time of a part in one group; INT64_MAX when it does not fit. */
static int64_t group_ns(const tiny *t, int32_t j, int32_t part)
{
    const hbp__step *step = t->step;
    hbp__load load = t->load[j * t->sets + part];
    if (!hbp__step_holds(step, j, load))
        return INT64_MAX; /* as no time is */
    return hbp__min_i64(hbp__step_group_ns(step, j, load), LONGEST_NS);
}

/* Least makespan of each set on each number of ranks, INT64_MAX where there is none: the lowest sequence's
 * group, then the rest. Degrees nest, so groups fit when their ranks do. O(3^count ranks degrees). */
static void solve_micro_batches(tiny *t)
{
    const hbp__step *step = t->step;
    int64_t padding = hbp__round_i64(step->cost->terms.pack_ns);
    for (int32_t r = 0; r < t->rows; r++)
        t->makespan[r] = t->no_idle && r ? INT64_MAX : padding;
    for (int32_t set = 1; set < t->sets; set++) {
        int32_t low = set & -set, rest = set ^ low;
        int64_t *best = &t->makespan[(int64_t)set * t->rows];
        for (int32_t r = 0; r < t->rows; r++)
            best[r] = INT64_MAX;
        for (int32_t more = rest;; more = (more - 1) & rest) {
            int32_t part = low | more;
            const int64_t *others = &t->makespan[(int64_t)(set ^ part) * t->rows];
            for (int32_t j = 0; j < step->degrees; j++) {
                int64_t ns = group_ns(t, j, part);
                int32_t d = step->degree[j].degree;
                for (int32_t r = d; ns < INT64_MAX && r < t->rows; r++) {
                    int64_t both = hbp__max_i64(ns, others[r - d]);
                    if (both >= best[r])
                        continue;
                    best[r] = both;
                    t->group[(int64_t)set * t->rows + r] = part;
                    t->degree[(int64_t)set * t->rows + r] = j;
                }
            }
            if (!more)
                break;
        }
    }
}

/* The lowest sequence's micro-batch, then the rest, from `from` [sets]; O(3^count). */
static void add_micro_batch(const tiny *t, const int64_t *from, int64_t *to, int32_t *batch)
{
    to[0] = from == to ? 0 : INT64_MAX;
    for (int32_t set = 1; set < t->sets; set++) {
        int32_t low = set & -set, rest = set ^ low;
        to[set] = INT64_MAX;
        for (int32_t more = rest;; more = (more - 1) & rest) {
            int64_t one = t->makespan[(int64_t)(low | more) * t->rows + t->rows - 1],
                    others = from[rest ^ more];
            int64_t sum = hbp__min_i64(hbp__add_saturating(one, others), LONGEST_NS);
            if (one < INT64_MAX && others < INT64_MAX && sum < to[set]) {
                to[set] = sum;
                batch[set] = low | more;
            }
            if (!more)
                break;
        }
    }
}

/* The number of micro-batches told apart with which the step is shortest; -1 when there is none. Others that
 * complete a number are of padding packs only where all sequences have one of their own. */
static int32_t solve_step(tiny *t)
{
    if (!t->forced) {
        t->sum[0] = 0;
        add_micro_batch(t, t->sum, t->sum, t->batch);
        return t->sum[t->sets - 1] < INT64_MAX ? 0 : -1;
    }
    int64_t padding = hbp__round_i64(t->step->cost->terms.pack_ns), least = INT64_MAX;
    int64_t allowed = t->step->options.max_micro_batches, most = allowed ? allowed : INT64_MAX;
    int32_t best = -1;
    for (int32_t set = 0; set < t->sets; set++)
        t->sum[set] = set ? INT64_MAX : 0;
    for (int32_t m = 1; m <= t->forced; m++) {
        int64_t *to = t->sum + (int64_t)m * t->sets, whole = hbp__step_whole(t->step, m);
        add_micro_batch(t, to - t->sets, to, t->batch + (int64_t)m * t->sets);
        if (to[t->sets - 1] == INT64_MAX || (whole > m && (t->no_idle || m < t->step->count)) || whole > most)
            continue;
        int64_t all = hbp__add_saturating(to[t->sets - 1], hbp__mul_saturating(whole - m, padding));
        if (all < least || best < 0) {
            least = all;
            best = m;
        }
    }
    return best;
}

static void sum_sets(tiny *t)
{
    const hbp__step *step = t->step;
    for (int32_t set = 1; set < t->sets; set++)
        for (int64_t k = 0; k < step->count; k++) {
            if (!(set >> k & 1))
                continue;
            for (int32_t j = 0; j < step->degrees; j++) {
                hbp__load *load = &t->load[j * t->sets + set];
                *load = hbp__step_load_with(step, j, *load, k);
            }
        }
}

/* The solution with `number` of the micro-batches told apart. */
static hbp_status write_solution(const tiny *t, int32_t number, hbp__step_solution *solution)
{
    const hbp__step *step = t->step;
    int64_t groups = 0, micro_batches = 0;
    HBP__TRY(hbp__step_solution_open(step, step->count, step->count, solution));
    for (int32_t set = t->sets - 1; set;) {
        int32_t batch = t->batch[(int64_t)number * t->sets + set], r = t->rows - 1;
        solution->first[micro_batches++] = groups;
        set ^= batch;
        number -= t->forced > 0;
        while (batch) {
            int64_t at = (int64_t)batch * t->rows + r;
            int32_t part = t->group[at], j = t->degree[at];
            solution->degree[groups] = j;
            for (int64_t k = 0; k < step->count; k++)
                if (part >> k & 1)
                    solution->group[k] = groups;
            groups++;
            r -= step->degree[j].degree;
            batch ^= part;
        }
    }
    solution->first[micro_batches] = groups;
    solution->micro_batches = micro_batches;
    solution->groups = groups;
    HBP__TRY(hbp__step_solution_price(step, solution));
    if (!t->no_idle && !step->cost->terms.lockstep_ranks &&
        hbp__step_whole(step, 1) == 1 && /* micro-batches of padding packs alone were not tried */
        step->cost->terms.layers < HBP__STEP_WAYS - 2) /* every number of layers was tried */
        solution->bound_ns = solution->ns;
    return HBP_OK;
}

int hbp__step_is_tiny(const hbp__step *step)
{
    if (!step->chain || step->count < 1 || step->count > HBP__TINY_MOST)
        return 0;
    int64_t work = ((int64_t)step->ranks + 1) * step->degrees;
    for (int64_t k = 0; k < step->count; k++)
        work = hbp__mul_saturating(work, 3);
    return work <= HBP__TINY_MOST_WORK;
}

/* Leaves the solution closed where there is none, which takes `no_idle` or `max_micro_batches`. */
static hbp_status solve(const hbp__step *step, int no_idle, hbp__step_solution *solution)
{
    hbp_context *context = step->context;
    int64_t mark = hbp__scratch_mark(context);
    tiny t = {.step = step, .no_idle = no_idle, .sets = 1 << step->count, .rows = step->ranks + 1};
    int tells_apart = hbp__step_whole(step, 1) > 1 || step->options.max_micro_batches;
    t.forced = tells_apart ? (int32_t)step->count : 0;
    uint64_t sets = (uint64_t)t.sets, sums = sets * ((uint64_t)t.forced + 1), cells = sets * (uint64_t)t.rows;
    t.load = hbp__take_zero(context, sets * (uint64_t)step->degrees, sizeof *t.load);
    t.makespan = hbp__take(context, cells, sizeof *t.makespan);
    t.group = hbp__take_zero(context, cells, sizeof *t.group);
    t.degree = hbp__take_zero(context, cells, sizeof *t.degree);
    t.sum = hbp__take(context, sums, sizeof *t.sum);
    t.batch = hbp__take_zero(context, sums, sizeof *t.batch);
    HBP__TRY(hbp__scratch_check(context, "the search"));
    HBP__TRY(hbp__tick(context, "step", 0, 1));
    sum_sets(&t);
    solve_micro_batches(&t);
    int32_t number = solve_step(&t);
    if (number >= 0)
        HBP__TRY(write_solution(&t, number, solution));
    hbp__scratch_release(context, mark);
    return HBP_OK;
}

hbp_status hbp__step_solve_tiny(const hbp__step *step, hbp__step_solution *solution)
{
    return solve(step, 0, solution);
}

hbp_status hbp__step_solve_tiny_busy(const hbp__step *step, hbp__step_solution *solution)
{
    return solve(step, 1, solution);
}

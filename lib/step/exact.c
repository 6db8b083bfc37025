/* A step by the mixed-integer program: for each number of micro-batches that may still help, the best
 * solution below the best one known, or a proof that there is none. */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/scratch.h"
#include "step/buckets.h"
#include "step/exact.h"
#include "step/exact_model.h"
#include "step/tuning.h"

/* A bound gives up twice what solutions must be better by, for the solver's tolerances, and a nanosecond a
 * micro-batch for the rounding of times. */
#define BOUND_PART (2 * HBP__EXACT_CUTOFF)

typedef struct exact {
    const hbp__step *step;
    const hbp__step_kinds *kinds;
    int64_t members;
    int64_t work;     /* left */
    double cutoff_ns; /* what solutions must stay below; infinite: none is known */
    double bound_ns;  /* of the numbers of micro-batches done */
    int is_proven;
    int is_found; /* `best` is open */
    hbp__step_solution best;
} exact;

static void start(exact *e, const hbp__step *step, const hbp__step_kinds *kinds, int64_t members,
                  double upper_ns)
{
    int64_t times = 1;
    for (int32_t effort = 1; effort < step->options.effort; effort++)
        times *= 3;
    *e = (exact){.step = step, .kinds = kinds, .members = members, .is_proven = 1, .bound_ns = INFINITY};
    e->work = HBP__EXACT_WORK * times;
    e->cutoff_ns = upper_ns * (1 - HBP__EXACT_CUTOFF);
}

static int32_t is_late(void *user)
{
    return hbp__step_is_late(user);
}

/* The model's time of a solution whose groups are opened from these kinds. The kinds' sizes may be larger
 * than the sequences', so that the price differs; INFINITY where a group does not hold them. */
static hbp_status price(const exact *e, const hbp__step_solution *s, double *ns)
{
    const hbp__step *step = e->step;
    hbp_context *context = step->context;
    int64_t mark = hbp__scratch_mark(context);
    hbp__load *load = hbp__take_zero(context, (uint64_t)s->groups, sizeof *load);
    HBP__TRY(hbp__scratch_check(context, "the groups of the step"));
    double idle = step->cost->terms.pack_ns;
    *ns = 0;
    for (int64_t i = 0; i < e->members; i++) {
        load[s->group[i]].tokens += e->kinds->tokens[e->kinds->of[i]];
        load[s->group[i]].squares += e->kinds->squares[e->kinds->of[i]];
    }
    for (int64_t m = 0; m < s->micro_batches; m++) {
        double slowest = idle;
        for (int64_t g = s->first[m]; g < s->first[m + 1]; g++) {
            int64_t group_ns = hbp__step_group_ns(step, s->degree[g], load[g]);
            slowest = group_ns == INT64_MAX ? INFINITY : fmax(slowest, (double)group_ns);
        }
        *ns += slowest;
    }
    int64_t whole = hbp__round_up(s->micro_batches, step->options.micro_batch_multiple);
    *ns += (double)(whole - s->micro_batches) * idle;
    hbp__scratch_release(context, mark);
    return HBP_OK;
}

static int can_be_placed(const hbp__step *step, const hbp__step_solution *s)
{
    for (int64_t m = 0; m < s->micro_batches; m++)
        if (!hbp__step_place(step, s->degree + s->first[m], s->first[m + 1] - s->first[m], NULL))
            return 0;
    return 1;
}

/* Keeps the solution that the solver found when it is the best. */
static hbp_status keep_if_best(exact *e, const hbp__step_model *model, const double *values)
{
    hbp__step_solution found;
    double ns;
    HBP__TRY(hbp__step_model_read(model, values, e->members, &found));
    hbp_status status = price(e, &found, &ns);
    if (status == HBP_OK && !can_be_placed(e->step, &found)) {
        e->is_proven = 0; /* enough ranks, but not in places where groups may begin */
    } else if (status == HBP_OK && ns * (1 - HBP__EXACT_CUTOFF) < e->cutoff_ns) {
        if (e->is_found)
            hbp__step_solution_close(&e->best);
        e->best = found;
        e->is_found = 1;
        e->cutoff_ns = ns * (1 - HBP__EXACT_CUTOFF);
        return HBP_OK;
    }
    hbp__step_solution_close(&found);
    return status;
}

/* Solves for `batches` micro-batches, `spare_ns` being what others cost that only complete a multiple. */
static hbp_status solve_model(exact *e, hbp__step_model *model, double cutoff_ns, double spare_ns)
{
    const hbp__step *step = e->step;
    hbp_context *context = step->context;
    double *values = hbp__take(context, (uint64_t)model->program.columns, sizeof *values);
    HBP__TRY(hbp__scratch_check(context, "a solution of the step"));
    int64_t size = (int64_t)model->program.rows + model->program.columns + 1;
    hbp_solver_limits limits = {.struct_size = sizeof limits, .iterations = e->work / size + 1};
    if (step->deadline_ns) {
        limits.poll = is_late;
        limits.poll_user = (void *)(uintptr_t)step;
    }
    hbp__answer answer = {.status = HBP_SOLVER_STOPPED};
    hbp_status status = hbp__program_solve(&model->program, "exact", NULL, &limits, values, &answer);
    int is_stopped = answer.status == HBP_SOLVER_STOPPED || answer.status == HBP_SOLVER_FEASIBLE;
    e->work -= size * (is_stopped ? limits.iterations : answer.iterations);
    double bound = answer.bound * model->unit_ns;
    if (status == HBP_OK && answer.status == HBP_SOLVER_UNBOUNDED)
        status = hbp__fail(context, HBP_E_SOLVER, "the solver calls the time of a step unbounded");
    if (status == HBP_OK && answer.status == HBP_SOLVER_INFEASIBLE)
        bound = cutoff_ns;
    if (status == HBP_OK && is_stopped)
        e->is_proven = 0;
    if (status == HBP_OK) {
        /* Nothing outside the model's cutoff has been looked at. */
        bound = fmin(bound, cutoff_ns) + spare_ns;
        bound = fmax(bound, hbp__step_model_least(step, e->kinds, model->micro_batches) + spare_ns);
        e->bound_ns = fmin(e->bound_ns, bound);
    }
    if (status == HBP_OK && (answer.status == HBP_SOLVER_OPTIMAL || answer.status == HBP_SOLVER_FEASIBLE))
        status = keep_if_best(e, model, values);
    return status;
}

static hbp_status solve_batches(exact *e, int64_t batches, double spare_ns)
{
    const hbp__step *step = e->step;
    if (e->work <= 0 || hbp__step_is_late(step) ||
        hbp__step_model_columns(step, e->kinds, batches) > HBP__EXACT_COLUMNS) {
        e->is_proven = 0;
        e->bound_ns = fmin(e->bound_ns, hbp__step_model_least(step, e->kinds, batches) + spare_ns);
        return HBP_OK;
    }
    hbp__step_model model;
    int64_t mark = hbp__scratch_mark(step->context);
    double cutoff_ns = e->cutoff_ns - spare_ns;
    hbp_status status = hbp__step_model_open(step, e->kinds, batches, cutoff_ns, &model);
    if (status == HBP_OK)
        status = solve_model(e, &model, cutoff_ns, spare_ns);
    hbp__step_model_close(&model);
    return hbp__leave(step->context, mark, status);
}

/* The fewest micro-batches that hold the tokens, were they sand. */
static int64_t fewest(const exact *e)
{
    const hbp__step *step = e->step;
    int64_t most = 1, tokens = 0;
    for (int32_t j = 0; j < step->degrees; j++) {
        int64_t ranks = step->ranks / step->degree[j].degree * step->degree[j].degree;
        int64_t held =
            hbp__ceil_div(hbp__mul_saturating(step->degree[j].capacity, step->ranks), step->degree[j].degree);
        if (ranks)
            most = hbp__max_i64(most, held);
    }
    for (int64_t k = 0; k < e->kinds->count; k++)
        tokens += e->kinds->number[k] * e->kinds->tokens[k];
    return hbp__max_i64(hbp__ceil_div(tokens, most), hbp__max_i64(step->options.min_micro_batches, 1));
}

static hbp_status solve_all(exact *e)
{
    const hbp__step *step = e->step;
    int64_t multiple = step->options.micro_batch_multiple;
    int64_t most = step->options.max_micro_batches ? step->options.max_micro_batches : INT64_MAX / 2;
    int64_t low = fewest(e), end = hbp__max_i64(e->members, low);
    /* More micro-batches than sequences help nobody. */
    for (int64_t whole = hbp__round_up(low, multiple);; whole += multiple) {
        int64_t batches = hbp__min_i64(whole, hbp__min_i64(most, end));
        double spare_ns = (double)(whole - batches) * step->cost->terms.pack_ns;
        if (low > most || hbp__step_model_least(step, e->kinds, batches) + spare_ns >= e->cutoff_ns) {
            e->bound_ns = fmin(e->bound_ns, e->cutoff_ns); /* nor does any larger number */
            return HBP_OK;
        }
        HBP__TRY(solve_batches(e, batches, spare_ns));
        if (whole >= most || whole >= end)
            return HBP_OK;
    }
}

/* The bound as an integer that no solution's time is below. */
static int64_t whole_bound(const exact *e)
{
    double bound = fmin(e->bound_ns, e->cutoff_ns);
    bound = floor(bound * (1 - BOUND_PART)) - (double)(2 * e->members + 2);
    return bound > 0 && bound < 9e18 ? (int64_t)bound : 0;
}

/* Sizes rounded up to buckets. What a sequence grows by is laid at its end. */
static hbp_status round_up(const hbp__step *step, int64_t *tokens, double *squares)
{
    HBP__TRY(hbp__step_bucket(step->context, step->tokens, step->count, step->options.buckets, tokens));
    for (int64_t i = 0; i < step->count; i++)
        squares[i] =
            step->squares[i] + (double)(tokens[i] - step->tokens[i]) * (double)(tokens[i] + step->tokens[i]);
    return HBP_OK;
}

static hbp_status improve(const hbp__step *step, const hbp__step_kinds *kinds, int is_rounded,
                          hbp__step_solution *solution)
{
    exact e;
    double upper_ns = (double)solution->ns;
    start(&e, step, kinds, step->count, upper_ns);
    if (is_rounded) {
        /* Where the rounded sequences do not fit the groups of the real ones, a way up is left. */
        HBP__TRY(price(&e, solution, &upper_ns));
        e.cutoff_ns = fmin(upper_ns * (1 - HBP__EXACT_CUTOFF), HBP__EXACT_ROUNDED * (double)solution->ns);
    }
    hbp_status status = solve_all(&e);
    if (status == HBP_OK && e.is_found)
        status = hbp__step_solution_price(step, &e.best);
    if (status == HBP_OK && !is_rounded)
        solution->bound_ns = hbp__max_i64(solution->bound_ns, hbp__min_i64(whole_bound(&e), solution->ns));
    if (status == HBP_OK && e.is_found && e.best.ns < solution->ns) {
        hbp__step_solution before = *solution;
        e.best.bound_ns = hbp__min_i64(before.bound_ns, e.best.ns);
        *solution = e.best;
        e.best = before;
    }
    if (status == HBP_OK && !e.is_proven)
        solution->complete = 0;
    if (e.is_found)
        hbp__step_solution_close(&e.best);
    return status < 0 ? status : e.is_proven ? HBP_OK : HBP_NOT_PROVEN;
}

hbp_status hbp__step_exact(const hbp__step *step, hbp__step_solution *solution)
{
    hbp_context *context = step->context;
    int64_t mark = hbp__scratch_mark(context);
    int is_rounded = step->options.buckets > 0 && step->options.buckets < step->count;
    hbp__step_kinds kinds;
    int64_t *tokens = hbp__take(context, (uint64_t)step->count, sizeof *tokens);
    double *squares = hbp__take(context, (uint64_t)step->count, sizeof *squares);
    HBP__TRY(hbp__scratch_check(context, "the sequences"));
    if (is_rounded)
        HBP__TRY(round_up(step, tokens, squares));
    HBP__TRY(hbp__step_kinds_open(step, is_rounded ? tokens : step->tokens,
                                  is_rounded ? squares : step->squares, step->count, &kinds));
    return hbp__leave(context, mark, improve(step, &kinds, is_rounded, solution));
}

static hbp_status solve_one(const hbp__step *step, const hbp__step_kinds *kinds, int64_t members,
                            hbp__step_solution *solution)
{
    exact e;
    start(&e, step, kinds, members, solution->micro_batches ? (double)solution->ns : INFINITY);
    hbp_status status = solve_batches(&e, 1, 0);
    if (status == HBP_OK && !e.is_found && !solution->micro_batches)
        return HBP_E_INFEASIBLE;
    if (status < 0)
        return status;
    int64_t bound_ns = whole_bound(&e);
    if (e.is_found) {
        double ns;
        status = price(&e, &e.best, &ns);
        if (status < 0) {
            hbp__step_solution_close(&e.best);
            return status;
        }
        e.best.ns = (int64_t)ns;
        hbp__step_solution_close(solution);
        *solution = e.best;
    }
    solution->bound_ns = hbp__min_i64(bound_ns, solution->ns);
    solution->complete = e.is_proven;
    return e.is_proven ? HBP_OK : HBP_NOT_PROVEN;
}

/* The same from the solution that a search found, or from none. */
static hbp_status solve_members(const hbp__step *step, const int64_t *member, int64_t members,
                                const int64_t *tokens, const double *squares, hbp__step_solution *solution)
{
    hbp_context *context = step->context;
    hbp__step_kinds kinds;
    int64_t *own_tokens = hbp__take(context, (uint64_t)members, sizeof *own_tokens);
    double *own_squares = hbp__take(context, (uint64_t)members, sizeof *own_squares);
    HBP__TRY(hbp__scratch_check(context, "the sequences"));
    for (int64_t i = 0; i < members; i++) {
        own_tokens[i] = tokens ? tokens[i] : step->tokens[member[i]];
        own_squares[i] = squares ? squares[i] : step->squares[member[i]];
    }
    HBP__TRY(hbp__step_kinds_open(step, own_tokens, own_squares, members, &kinds));
    return solve_one(step, &kinds, members, solution);
}

hbp_status hbp__step_exact_micro_batch(const hbp__step *step, const int64_t *member, int64_t members,
                                       const int64_t *tokens, const double *squares,
                                       hbp__step_solution *solution)
{
    int64_t mark = hbp__scratch_mark(step->context);
    memset(solution, 0, sizeof *solution);
    hbp_status status = hbp__step_solve_micro_batch(step, member, members, tokens, squares, solution);
    if (status < 0 && status != HBP_E_INFEASIBLE)
        return status;
    if (status == HBP_E_INFEASIBLE)
        memset(solution, 0, sizeof *solution);
    status = solve_members(step, member, members, tokens, squares, solution);
    if (status < 0)
        hbp__step_solution_close(solution);
    return hbp__leave(step->context, mark, status);
}

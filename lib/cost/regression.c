/* Huber's weights by iteration around least squares, and one unknown after the other let in. */
#include "cost/regression.h"

#include <math.h>
#include <string.h>

#include "cost/least_squares.h"
#include "solve/relative_errors.h"

#define TICK_ROWS 32768

/* Huber's bound in standard deviations: 95 % as good as least squares where errors are normal, while no row
 * pulls harder than one that is this far off. */
#define BOUND 1.345

/* The standard deviation of normal errors over the median of their sizes. */
#define SPREAD 1.4826

/* Errors below this are rounding, whatever their spread. */
#define LEAST_SPREAD 1e-6

/* A model that is off by less than this (root mean square) needs no more unknowns. */
#define GOOD_ENOUGH 1e-4

/* With fewer rows for each unknown, a row that is far off and an unknown that is missing look alike: plain
 * least squares then. */
#define ROWS_PER_UNKNOWN 2

#define MOST_ITERATIONS 40

/* One regression in progress. */
typedef struct state {
    hbp_context *context;
    hbp__regression *r;
    hbp__normal whole;   /* over all columns, with less of the rows far off */
    hbp__normal reduced; /* over the unknowns that are fitted */
    double *x;           /* [columns] a row */
    double *values;      /* [columns] all unknowns as last found */
    double *trial;       /* [columns] of the reduced system */
    double *before;      /* [columns] values of the iteration before */
    int32_t *place;      /* [columns] of an unknown among those fitted, -1: not fitted */
    int32_t *stays;      /* [columns] nonzero: one to be fitted that is tied all the same */
    hbp__relative_errors errors;
    double square; /* of the errors, however far off, summed as the rows were gathered */
    double spread; /* standard deviation of a row's error; 0: no row is far off */
} state;

static hbp_status tick(const state *s, int64_t i)
{
    return i % TICK_ROWS ? HBP_OK : hbp__tick(s->context, "fit", i, s->r->rows);
}

/* The error of row i, filled into s->x, by the values last found. */
static double error_of(const state *s, int64_t i, double *right)
{
    *right = s->r->row(s->r->user, i, s->x);
    double error = *right;
    for (int32_t j = 0; j < s->r->columns; j++)
        error -= s->x[j] * s->values[j];
    return error;
}

/* The normal equations of all columns. A row that is further off than the bound weighs less by that, so that
 * solving them is a step towards Huber's estimate; or, where `pulled`, weighs 1 and is pulled to the bound:
 * there the estimate solves them as well, and what is left is bounded, as tests of it need. */
static hbp_status gather(state *s, int pulled)
{
    const double bound = BOUND * s->spread;
    hbp__normal_clear(&s->whole);
    s->square = 0;
    for (int64_t i = 0; i < s->r->rows; i++) {
        HBP__TRY(tick(s, i));
        double right;
        double error = error_of(s, i, &right);
        double size = fabs(error);
        s->square += error * error;
        if (s->spread > 0 && size > bound && pulled) {
            right -= error - (error < 0 ? -bound : bound);
        } else if (s->spread > 0 && size > bound) {
            double root = sqrt(bound / size);
            for (int32_t j = 0; j < s->r->columns; j++)
                s->x[j] *= root;
            right *= root;
        }
        hbp__normal_add(&s->whole, s->x, right);
    }
    return HBP_OK;
}

/* The median size of the errors but for the smallest `fitted` ones, which a fit makes small by itself. */
static hbp_status measure_spread(state *s, int32_t fitted)
{
    const int64_t rows = s->r->rows;
    s->errors.count = 0;
    for (int64_t i = 0; i < rows; i++) {
        HBP__TRY(tick(s, i));
        double right;
        hbp__relative_errors_add(&s->errors, 1 + fabs(error_of(s, i, &right)), 1);
    }
    HBP__TRY(hbp__relative_errors_sort(s->context, &s->errors, "a fit's errors"));
    int64_t percent = 50 + (50 * (int64_t)fitted + rows - 1) / rows;
    s->spread = SPREAD * hbp__relative_errors_quantile(&s->errors, percent < 100 ? percent : 100);
    s->spread = s->spread > LEAST_SPREAD ? s->spread : LEAST_SPREAD;
    return HBP_OK;
}

/* Numbers the unknowns that are fitted and, unless it is -1, `extra`; returns how many. */
static int32_t number_fitted(state *s, int32_t extra)
{
    int32_t count = 0;
    for (int32_t j = 0; j < s->r->columns; j++)
        s->place[j] = s->r->unknowns[j].fitted || j == extra ? count++ : -1;
    return count;
}

/* Where column j goes in the reduced system, and times what; -1 with the value of one that is known. */
static int32_t reduced_place(const state *s, int32_t j, double *factor)
{
    const hbp__unknown *u = &s->r->unknowns[j];
    *factor = 1;
    if (s->place[j] >= 0)
        return s->place[j];
    *factor = u->prior;
    return u->parent < 0 ? -1 : s->place[u->parent];
}

/* The normal equations of the `count` fitted unknowns: with values = C z + k, gram C'GC, moment C'(m - Gk)
 * and square s - 2 k'm + k'Gk. */
static void reduce(state *s, int32_t count)
{
    const hbp__normal *w = &s->whole;
    const int32_t p = w->columns;
    hbp__normal *n = &s->reduced;
    n->columns = count;
    hbp__normal_clear(n);
    n->rows = w->rows;
    n->square = w->square;
    for (int32_t i = 0; i < p; i++) {
        double fi;
        int32_t a = reduced_place(s, i, &fi);
        double moment = w->moment[i];
        for (int32_t j = 0; j < p; j++) {
            double fj;
            int32_t b = reduced_place(s, j, &fj);
            if (b < 0)
                moment -= w->gram[i * p + j] * fj;
            else if (a >= 0)
                n->gram[a * count + b] += w->gram[i * p + j] * fi * fj;
        }
        if (a >= 0)
            n->moment[a] += moment * fi;
        else
            n->square -= fi * (w->moment[i] + moment);
    }
}

/* The values of all unknowns from those of the reduced system. */
static void expand(const state *s, const double *z, double *values)
{
    for (int32_t j = 0; j < s->r->columns; j++) {
        double factor;
        int32_t at = reduced_place(s, j, &factor);
        values[j] = at < 0 ? factor : factor * z[at];
    }
}

/* An unknown of the whole from its place in the reduced system. */
static int32_t unknown_at(const state *s, int32_t place)
{
    int32_t j = 0;
    while (s->place[j] != place)
        j++;
    return j;
}

/* Solves the reduced system of what is fitted into s->values; HBP_E_INFEASIBLE with the two. */
static hbp_status solve_reduced(state *s, double doubt, int32_t *first, int32_t *second)
{
    reduce(s, number_fitted(s, -1));
    if (!hbp__normal_solve(&s->reduced, doubt, s->trial, first, second)) {
        *first = unknown_at(s, *first);
        *second = unknown_at(s, *second);
        return HBP_E_INFEASIBLE;
    }
    expand(s, s->trial, s->values);
    return HBP_OK;
}

/* Iteratively reweighted least squares to Huber's estimate, from scratch. */
static hbp_status solve_robust(state *s, int32_t *first, int32_t *second)
{
    const int32_t columns = s->r->columns;
    s->spread = 0;
    HBP__TRY(gather(s, 0));
    int32_t count = number_fitted(s, -1);
    HBP__TRY(solve_reduced(s, HUGE_VAL, first, second));
    const int plain = s->r->rows < (int64_t)count * ROWS_PER_UNKNOWN;
    for (int32_t k = 0; k < MOST_ITERATIONS && !plain; k++) {
        memcpy(s->before, s->values, (size_t)columns * sizeof *s->before);
        HBP__TRY(measure_spread(s, count));
        HBP__TRY(gather(s, 0));
        HBP__TRY(solve_reduced(s, HUGE_VAL, first, second));
        int still = 1;
        for (int32_t j = 0; j < columns; j++)
            still &= fabs(s->values[j] - s->before[j]) <= 1e-7 * fabs(s->values[j]);
        if (still)
            break;
    }
    HBP__TRY(gather(s, 1));
    return solve_reduced(s, HUGE_VAL, first, second);
}

/* What F must exceed for one more unknown that leaves `spare` degrees of freedom: Fisher's 99.5th percentile
 * within a tenth for spare >= 3, by a quadratic in 1/spare. */
static double critical_f(int64_t spare)
{
    double inverse = 1 / (double)spare;
    return 7.88 * (1 + inverse * (2.3 + 37 * inverse));
}

/* The unknown that explains most of what is left, beyond chance; -1: none. */
static int32_t choose_next(state *s)
{
    const hbp__regression *r = s->r;
    const double now = s->reduced.error;
    int32_t best = -1;
    double most = 1;
    if (s->square <= GOOD_ENOUGH * GOOD_ENOUGH * (double)r->rows)
        return -1;
    for (int32_t j = 0; j < r->columns; j++) {
        int32_t first;
        int32_t second;
        if (r->unknowns[j].kind != HBP__UNKNOWN_MAYBE || r->unknowns[j].fitted ||
            s->whole.gram[j * r->columns + j] <= 0)
            continue;
        int32_t count = number_fitted(s, j);
        int64_t spare = r->rows - count;
        if (spare < 3 || spare < count)
            continue;
        reduce(s, count);
        if (!hbp__normal_solve(&s->reduced, HUGE_VAL, s->trial, &first, &second))
            continue;
        int32_t parent = r->unknowns[j].parent;
        if (parent >= 0 && s->trial[s->place[parent]] <= 0)
            continue;
        /* F over its critical value; an error of 0 is beyond every chance. */
        double bar = critical_f(spare) * s->reduced.error / (double)spare;
        double gain = now - s->reduced.error;
        double score = bar > 0 ? gain / bar : HUGE_VAL;
        if (score > most) {
            most = score;
            best = j;
        }
    }
    return best;
}

/* Fits what must be, but for what stays. */
static void fit_only(state *s)
{
    for (int32_t j = 0; j < s->r->columns; j++)
        s->r->unknowns[j].fitted = s->r->unknowns[j].kind == HBP__UNKNOWN_FITTED && !s->stays[j];
}

/* Fits what must be and then what shows. */
static hbp_status attempt(state *s, double doubt, int32_t *first, int32_t *second)
{
    int more = 0;
    fit_only(s);
    hbp_status status = solve_robust(s, first, second);
    HBP__TRY(status);
    for (int32_t next = choose_next(s); next >= 0; next = status == HBP_OK ? choose_next(s) : -1) {
        s->r->unknowns[next].fitted = more = 1;
        status = solve_robust(s, first, second);
    }
    if (status == HBP_OK)
        status = solve_reduced(s, doubt, first, second);
    if (status == HBP_E_INFEASIBLE && more) {
        /* Better without than in doubt. */
        fit_only(s);
        HBP__TRY(solve_robust(s, first, second));
        status = solve_reduced(s, doubt, first, second);
    }
    return status;
}

/* Of two unknowns that look alike, ties a spare one, the later by preference; 0: neither is. */
static int let_stay(state *s, int32_t first, int32_t second)
{
    int32_t last = first > second ? first : second;
    int32_t stays = s->r->unknowns[last].spare ? last : first + second - last;
    if (!s->r->unknowns[stays].spare)
        return 0;
    s->stays[stays] = 1;
    return 1;
}

static hbp_status run_regression(state *s, double doubt, int32_t *first, int32_t *second)
{
    hbp__regression *r = s->r;
    fit_only(s);
    const int enough = number_fitted(s, -1) <= r->rows;
    hbp_status status = attempt(s, doubt, first, second);
    while (status == HBP_E_INFEASIBLE && enough && let_stay(s, *first, *second))
        status = attempt(s, doubt, first, second);
    for (int32_t j = 0; status == HBP_OK && j < r->columns; j++)
        r->unknowns[j].value = s->values[j];
    return status;
}

hbp_status hbp__regress(hbp_context *context, hbp__regression *regression, double doubt, int32_t *first,
                        int32_t *second)
{
    const hbp__memory *memory = &context->memory;
    const uint64_t p = (uint64_t)regression->columns;
    state s = {.context = context, .r = regression};
    double *block = hbp__new_zero(memory, 4 * p, sizeof *block);
    s.place = hbp__new_zero(memory, 2 * p, sizeof *s.place);
    int room = block && s.place && hbp__normal_begin(memory, regression->columns, &s.whole) &&
               hbp__normal_begin(memory, regression->columns, &s.reduced);
    room &= hbp__relative_errors_begin(memory, room ? regression->rows : 0, &s.errors);
    hbp_status status = HBP_OK;
    if (room) {
        s.stays = s.place + p;
        s.x = block;
        s.values = block + p;
        s.trial = block + 2 * p;
        s.before = block + 3 * p;
        status = run_regression(&s, doubt, first, second);
    } else {
        status = hbp__fail_memory(context, "a fit");
    }
    hbp__relative_errors_end(memory, &s.errors);
    hbp__normal_end(memory, &s.reduced);
    hbp__normal_end(memory, &s.whole);
    hbp__delete(memory, s.place);
    hbp__delete(memory, block);
    return status;
}

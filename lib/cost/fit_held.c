/* Cross-validation of a fit against its prior. */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/scratch.h"
#include "base/sort.h"
#include "cost/fit.h"
#include "solve/relative_errors.h"

enum { FOLDS = 5, LEAST_PACKS = 2 * FOLDS };

/* Medians of few packs scatter: what replaces the prior has this share of its error at most. */
#define BETTER .9

typedef struct holding {
    hbp_context *context;
    const hbp_cost *prior;
    const hbp_measurements *measured;
    hbp__times_fit fit;
    int32_t *sp, *recompute; /* of a part of the packs; scratch */
    int64_t *tokens, *sum_squares, *time_ns;
    hbp__relative_errors of_fit, of_scaled, of_prior;
} holding;

/* Each block of FOLDS rows has one in every fold, in an order of its own: rows may repeat with any period. */
static int64_t fold_of(int64_t row)
{
    uint64_t z = (uint64_t)(row / FOLDS) * UINT64_C(0x9e3779b97f4a7c15);
    z ^= z >> 29;
    return (row + (int64_t)(z * UINT64_C(0xbf58476d1ce4e5b9) >> 33)) % FOLDS;
}

static double predict(const hbp_cost *cost, const hbp_measurements *m, int64_t i)
{
    const hbp__load load = {.tokens = m->tokens[i], .squares = (double)m->sum_squares[i]};
    return (double)hbp__cost_pack_ns(cost, hbp__cost_row(cost, m->sp[i]), m->recompute[i], load);
}

/* The median of measured over predicted of the packs that are not in `fold`; 1 where nothing is predicted. */
static hbp_status find_scale(const holding *h, int64_t fold, double *scale)
{
    const hbp_measurements *m = h->measured;
    int64_t mark = hbp__scratch_mark(h->context), count = 0;
    uint64_t *bits = hbp__take(h->context, (uint64_t)m->count, sizeof *bits);
    uint32_t *order = hbp__take(h->context, (uint64_t)m->count, sizeof *order);
    HBP__TRY(hbp__scratch_check(h->context, "a fit"));
    for (int64_t i = 0; i < m->count; i++) {
        const double predicted = fold_of(i) == fold ? 0 : predict(h->prior, m, i);
        if (!(predicted > 0))
            continue;
        const double ratio = (double)m->time_ns[i] / predicted;
        memcpy(&bits[count], &ratio, sizeof ratio);
        order[count] = (uint32_t)count;
        count++;
    }
    *scale = 1;
    if (count && !hbp__sort_by_u64(&h->context->memory, bits, order, count))
        return hbp__fail_memory(h->context, "a fit");
    if (count)
        memcpy(scale, &bits[order[(count - 1) / 2]], sizeof *scale);
    hbp__scratch_release(h->context, mark);
    return HBP_OK;
}

/* The rows that are not in `fold`. */
static hbp_measurements list_part(holding *h, int64_t fold)
{
    const hbp_measurements *m = h->measured;
    hbp_measurements part = {.struct_size = sizeof part,
                             .sp = h->sp,
                             .recompute = h->recompute,
                             .tokens = h->tokens,
                             .sum_squares = h->sum_squares,
                             .time_ns = h->time_ns};
    for (int64_t i = 0; i < m->count; i++) {
        if (fold_of(i) == fold)
            continue;
        h->sp[part.count] = m->sp[i];
        h->recompute[part.count] = m->recompute[i];
        h->tokens[part.count] = m->tokens[i];
        h->sum_squares[part.count] = m->sum_squares[i];
        h->time_ns[part.count++] = m->time_ns[i];
    }
    return part;
}

static hbp_status hold_fold(holding *h, int64_t fold)
{
    const hbp_measurements *m = h->measured;
    hbp_cost *cost = NULL;
    double scale;
    HBP__TRY(find_scale(h, fold, &scale));
    const hbp_measurements part = list_part(h, fold);
    hbp_status status = h->fit(h->context, h->prior, &part, &cost);
    if (status == HBP_E_INFEASIBLE)
        status = hbp__forgive(h->context);
    for (int64_t i = 0; status == HBP_OK && i < m->count; i++) {
        if (fold_of(i) != fold)
            continue;
        const double measured = (double)m->time_ns[i], before = predict(h->prior, m, i);
        hbp__relative_errors_add(&h->of_fit, cost ? predict(cost, m, i) : INFINITY, measured);
        hbp__relative_errors_add(&h->of_scaled, before * scale, measured);
        hbp__relative_errors_add(&h->of_prior, before, measured);
    }
    hbp_cost_free(cost);
    return status;
}

static hbp_status take_columns(holding *h)
{
    const uint64_t rows = (uint64_t)h->measured->count;
    h->sp = hbp__take(h->context, rows, sizeof *h->sp);
    h->recompute = hbp__take(h->context, rows, sizeof *h->recompute);
    h->tokens = hbp__take(h->context, rows, sizeof *h->tokens);
    h->sum_squares = hbp__take(h->context, rows, sizeof *h->sum_squares);
    h->time_ns = hbp__take(h->context, rows, sizeof *h->time_ns);
    return hbp__scratch_check(h->context, "a fit");
}

static hbp_status find_median(holding *h, hbp__relative_errors *errors, double *median)
{
    HBP__TRY(hbp__relative_errors_sort(h->context, errors, "a fit's errors"));
    *median = hbp__relative_errors_quantile(errors, 50);
    return HBP_OK;
}

static hbp_status hold_out(holding *h, hbp__held_out *held)
{
    HBP__TRY(take_columns(h));
    for (int64_t fold = 0; fold < FOLDS; fold++)
        HBP__TRY(hold_fold(h, fold));
    HBP__TRY(find_scale(h, -1, &held->scale));
    HBP__TRY(find_median(h, &h->of_fit, &held->fit_error));
    HBP__TRY(find_median(h, &h->of_scaled, &held->scaled_error));
    HBP__TRY(find_median(h, &h->of_prior, &held->prior_error));
    const double much = BETTER * held->prior_error;
    if (held->fit_error <= held->scaled_error && held->fit_error <= much && held->prior_error > 0)
        held->times = HBP_FIT_PACKS;
    else
        held->times = held->scaled_error <= much && held->prior_error > 0 ? HBP_FIT_SCALED : HBP_FIT_PRIOR;
    if (!isfinite(held->fit_error))
        held->fit_error = -1;
    return HBP_OK;
}

hbp_status hbp__fit_hold_out(hbp_context *context, const hbp_cost *prior, const hbp_measurements *measured,
                             hbp__times_fit fit, hbp__held_out *held)
{
    *held = (hbp__held_out){.times = HBP_FIT_PACKS, .scale = 1};
    if (measured->count < LEAST_PACKS)
        return HBP_OK;
    holding h = {.context = context, .prior = prior, .measured = measured, .fit = fit};
    const hbp__memory *memory = &context->memory;
    hbp_status status = HBP_OK;
    const int64_t mark = hbp__scratch_mark(context);
    if (!hbp__relative_errors_begin(memory, measured->count, &h.of_fit) ||
        !hbp__relative_errors_begin(memory, measured->count, &h.of_scaled) ||
        !hbp__relative_errors_begin(memory, measured->count, &h.of_prior))
        status = hbp__fail_memory(context, "a fit's errors");
    if (status == HBP_OK)
        status = hold_out(&h, held);
    hbp__relative_errors_end(memory, &h.of_fit);
    hbp__relative_errors_end(memory, &h.of_scaled);
    hbp__relative_errors_end(memory, &h.of_prior);
    return hbp__leave(context, mark, status);
}

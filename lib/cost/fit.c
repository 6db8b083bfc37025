/* Fitting a cost to what a trainer measured (docs: cost model, "Fitting"). */
#include <stdio.h>
#include <string.h>

#include "base/options.h"
#include "cost/cost.h"
#include "cost/least_squares.h"
#include "hbp/lengths.h"
#include "solve/relative_errors.h"

#define TICK_ROWS 32768

/* Two terms count as told apart when the share of a pack's time (or bytes) that falls to one is known to
 * this. */
#define DOUBT .25

/* Columns of the time fit before the degrees' v_d. */
enum { TIME_TOKENS, TIME_SQUARES, TIME_PACK, TIME_DEGREES };

/* Columns of the memory fit. */
enum { BYTES_STATIC, BYTES_ACTIVATION, BYTES_RECOMPUTED, BYTES_COLUMNS };

/* One fit in progress. */
typedef struct fit {
    hbp_context *context;
    const hbp_cost *prior;
    const hbp_measurements *measured;
    hbp_cost *cost;  /* the result */
    int32_t *column; /* [degrees] column of each degree's v_d, -1 where there is none */
    int32_t *row;    /* [columns of v_d] the degree's row */
    int32_t fitted;
} fit;

static hbp_status check_row(const fit *f, int64_t i)
{
    const hbp_measurements *m = f->measured;
    hbp_context *context = f->context;
    if (hbp__cost_row(f->prior, m->sp[i]) < 0)
        return hbp__fail(context, HBP_E_INVALID, "sp[%lld] is %d, which is not a degree of the prior",
                         (long long)i, (int)m->sp[i]);
    if (m->recompute[i] < 0 || m->recompute[i] > f->prior->terms.layers)
        return hbp__fail(context, HBP_E_INVALID, "recompute[%lld] is %d; it must lie in 0..%d", (long long)i,
                         (int)m->recompute[i], (int)f->prior->terms.layers);
    if (m->tokens[i] < 1 || m->tokens[i] > HBP_MAX_LENGTH)
        return hbp__fail(context, HBP_E_INVALID, "tokens[%lld] is %lld; it must lie in 1..%lld", (long long)i,
                         (long long)m->tokens[i], (long long)HBP_MAX_LENGTH);
    if (m->sum_squares[i] < m->tokens[i] || m->sum_squares[i] > m->tokens[i] * m->tokens[i])
        return hbp__fail(context, HBP_E_INVALID,
                         "sum_squares[%lld] is %lld; lengths that add up to %lld have between %lld and %lld",
                         (long long)i, (long long)m->sum_squares[i], (long long)m->tokens[i],
                         (long long)m->tokens[i], (long long)(m->tokens[i] * m->tokens[i]));
    if (m->time_ns[i] < 1)
        return hbp__fail(context, HBP_E_INVALID, "time_ns[%lld] is %lld; it must be at least 1", (long long)i,
                         (long long)m->time_ns[i]);
    if (m->peak_bytes && m->peak_bytes[i] < 1)
        return hbp__fail(context, HBP_E_INVALID, "peak_bytes[%lld] is %lld; it must be at least 1",
                         (long long)i, (long long)m->peak_bytes[i]);
    return HBP_OK;
}

static hbp_status tick(const fit *f, int64_t i)
{
    return i % TICK_ROWS ? HBP_OK : hbp__tick(f->context, "fit", i, f->measured->count);
}

/* Checks every row and gives each measured degree above 1 a column. */
static hbp_status check_rows(fit *f)
{
    for (int64_t i = 0; i < f->measured->count; i++) {
        HBP__TRY(tick(f, i));
        HBP__TRY(check_row(f, i));
        f->column[hbp__cost_row(f->prior, f->measured->sp[i])] = 0;
    }
    int32_t next = TIME_DEGREES;
    for (int32_t r = 0; r < f->prior->terms.degrees; r++) {
        if (f->column[r] < 0 || f->prior->degree[r] == 1) {
            f->column[r] = -1;
            continue;
        }
        f->row[next - TIME_DEGREES] = r;
        f->column[r] = next++;
    }
    f->fitted = next;
    return HBP_OK;
}

/* "sp_ns_per_token of SP 8" for a column of the time fit. */
static void name_time_column(const fit *f, int32_t column, char *text, size_t bytes)
{
    static const char *const names[] = {"ns_per_token", "ns_per_token_squared", "pack_ns"};
    if (column < TIME_DEGREES)
        snprintf(text, bytes, "%s", names[column]);
    else
        snprintf(text, bytes, "sp_ns_per_token of SP %d",
                 (int)f->prior->degree[f->row[column - TIME_DEGREES]]);
}

static hbp_status fail_twins(const fit *f, const char *first, const char *second)
{
    return hbp__fail(f->context, HBP_E_INFEASIBLE,
                     "%lld packs cannot tell %s and %s apart; measure packs that differ more in them",
                     (long long)f->measured->count, first, second);
}

/* T of hbp/cost.h is linear in a1, a2, B and v_d; the prior's r1, r2, r3 and l_d are taken as they are. Every
 * row is divided by its time, so that errors are relative. */
static hbp_status fit_time(fit *f)
{
    const hbp_measurements *m = f->measured;
    const hbp_cost_terms *t = &f->prior->terms;
    int32_t columns = f->fitted;
    hbp__normal normal;
    if (!hbp__normal_begin(&f->context->memory, columns, &normal))
        return hbp__fail_memory(f->context, "a fit");
    double *x = hbp__new(&f->context->memory, (uint64_t)columns, sizeof *x);
    hbp_status status = x ? HBP_OK : hbp__fail_memory(f->context, "a fit");
    for (int64_t i = 0; status == HBP_OK && i < m->count; i++) {
        int32_t row = hbp__cost_row(f->prior, m->sp[i]);
        double share = (double)m->recompute[i] / t->layers;
        double weight = 1 / (double)m->time_ns[i];
        double tokens = (double)m->tokens[i];
        double again = 1 + t->recompute_communication * share;
        memset(x, 0, (size_t)columns * sizeof *x);
        x[TIME_TOKENS] = weight * tokens / m->sp[i] * (1 + t->recompute_linear * share);
        x[TIME_SQUARES] =
            weight * (double)m->sum_squares[i] / m->sp[i] * (1 + t->recompute_attention * share);
        x[TIME_PACK] = weight;
        double known = f->prior->sp_latency_ns[row] * again;
        if (f->column[row] >= 0)
            x[f->column[row]] = weight * tokens * again;
        else
            known += f->prior->sp_ns_per_token[row] * tokens * again;
        hbp__normal_add(&normal, x, 1 - weight * known);
        status = tick(f, i);
    }
    int32_t first;
    int32_t second;
    if (status == HBP_OK && !hbp__normal_solve(&normal, DOUBT, x, &first, &second)) {
        char names[2][48];
        name_time_column(f, first, names[0], sizeof names[0]);
        name_time_column(f, second, names[1], sizeof names[1]);
        status = fail_twins(f, names[0], names[1]);
    }
    if (status == HBP_OK) {
        f->cost->terms.ns_per_token = x[TIME_TOKENS];
        f->cost->terms.ns_per_token_squared = x[TIME_SQUARES];
        f->cost->terms.pack_ns = x[TIME_PACK];
        for (int32_t k = TIME_DEGREES; k < columns; k++)
            f->cost->sp_ns_per_token[f->row[k - TIME_DEGREES]] = x[k];
    }
    hbp__delete(&f->context->memory, x);
    hbp__normal_end(&f->context->memory, &normal);
    return status;
}

/* M of hbp/cost.h in static, act and kept; working set, logits and buffer are the prior's. `kept` is fitted
 * only when the numbers of recomputed layers differ, else it is indistinguishable from act. */
static hbp_status fit_bytes(fit *f, int used[BYTES_COLUMNS])
{
    static const char *const names[] = {"static_bytes", "activation_bytes", "recomputed_bytes"};
    const hbp_measurements *m = f->measured;
    const hbp_cost_terms *t = &f->prior->terms;
    int differ = 0;
    int32_t least = m->recompute[0];
    for (int64_t i = 1; i < m->count; i++) {
        differ |= m->recompute[i] != m->recompute[0];
        least = m->recompute[i] < least ? m->recompute[i] : least;
    }
    used[BYTES_STATIC] = 1;
    used[BYTES_ACTIVATION] = least < t->layers;
    used[BYTES_RECOMPUTED] = differ || !used[BYTES_ACTIVATION];
    hbp__normal normal;
    if (!hbp__normal_begin(&f->context->memory, BYTES_COLUMNS, &normal))
        return hbp__fail_memory(f->context, "a fit");
    hbp_status status = HBP_OK;
    double x[BYTES_COLUMNS];
    for (int64_t i = 0; status == HBP_OK && i < m->count; i++) {
        double weight = 1 / (double)m->peak_bytes[i];
        double tokens = (double)m->tokens[i] / m->sp[i];
        double kept = tokens * m->recompute[i];
        double known = tokens * ((m->recompute[i] ? t->working_bytes : 0) + t->logits_bytes +
                                 (m->sp[i] > 1 ? t->sp_buffer_bytes : 0));
        x[BYTES_STATIC] = weight;
        x[BYTES_ACTIVATION] = weight * tokens * (t->layers - m->recompute[i]);
        x[BYTES_RECOMPUTED] = used[BYTES_RECOMPUTED] ? weight * kept : 0;
        if (!used[BYTES_RECOMPUTED])
            known += t->recomputed_bytes * kept;
        hbp__normal_add(&normal, x, 1 - weight * known);
        status = tick(f, i);
    }
    int32_t first;
    int32_t second;
    if (status == HBP_OK && !hbp__normal_solve(&normal, DOUBT, x, &first, &second))
        status = fail_twins(f, names[first], names[second]);
    if (status == HBP_OK) {
        f->cost->terms.static_bytes = x[BYTES_STATIC];
        if (used[BYTES_ACTIVATION])
            f->cost->terms.activation_bytes = x[BYTES_ACTIVATION];
        if (used[BYTES_RECOMPUTED])
            f->cost->terms.recomputed_bytes = x[BYTES_RECOMPUTED];
        f->fitted += used[BYTES_STATIC] + used[BYTES_ACTIVATION] + used[BYTES_RECOMPUTED];
    }
    hbp__normal_end(&f->context->memory, &normal);
    return status;
}

/* Errors of `cost` on the measurements, in time or (bytes != 0) in memory. */
static hbp_status find_errors(const fit *f, const hbp_cost *cost, int bytes, hbp__relative_errors *e)
{
    const hbp_measurements *m = f->measured;
    e->count = 0;
    for (int64_t i = 0; i < m->count; i++) {
        HBP__TRY(tick(f, i));
        int32_t row = hbp__cost_row(cost, m->sp[i]);
        double measured = (double)(bytes ? m->peak_bytes[i] : m->time_ns[i]);
        int64_t predicted =
            bytes ? hbp__cost_pack_bytes(cost, row, m->recompute[i], m->tokens[i])
                  : hbp__cost_pack_ns(cost, row, m->recompute[i], m->tokens[i], (double)m->sum_squares[i]);
        hbp__relative_errors_add(e, (double)predicted, measured);
    }
    if (!hbp__relative_errors_sort(&f->context->memory, e))
        return hbp__fail_memory(f->context, "a fit's errors");
    return HBP_OK;
}

static hbp_status make_report(const fit *f, hbp_fit_report *report)
{
    const hbp__memory *memory = &f->context->memory;
    hbp__relative_errors e;
    hbp_fit_report r = {.struct_size = sizeof r, .terms_fitted = f->fitted};
    hbp_status status = hbp__relative_errors_begin(memory, f->measured->count, &e)
                            ? HBP_OK
                            : hbp__fail_memory(f->context, "a fit's errors");
    if (status == HBP_OK)
        status = find_errors(f, f->cost, 0, &e);
    if (status == HBP_OK) {
        r.median_time_error = hbp__relative_errors_quantile(&e, 50);
        r.p95_time_error = hbp__relative_errors_quantile(&e, 95);
        r.max_time_error = hbp__relative_errors_quantile(&e, 100);
        status = find_errors(f, f->prior, 0, &e);
    }
    if (status == HBP_OK) {
        r.prior_median_time_error = hbp__relative_errors_quantile(&e, 50);
        if (f->measured->peak_bytes)
            status = find_errors(f, f->cost, 1, &e);
    }
    if (status == HBP_OK && f->measured->peak_bytes) {
        r.median_bytes_error = hbp__relative_errors_quantile(&e, 50);
        r.max_bytes_error = hbp__relative_errors_quantile(&e, 100);
    }
    if (status == HBP_OK)
        status = hbp__struct_write(f->context, report, &r, sizeof r, "hbp_fit_report");
    hbp__relative_errors_end(memory, &e);
    return status;
}

/* A copy of the prior, sources included. */
static hbp_status copy_prior(fit *f)
{
    HBP__TRY(hbp__cost_make(f->context, &f->prior->terms, "", &f->cost));
    f->cost->heads = f->prior->heads;
    f->cost->kv_heads = f->prior->kv_heads;
    f->cost->zero_stage = f->prior->zero_stage;
    memcpy(f->cost->source, f->prior->source, sizeof f->cost->source);
    return HBP_OK;
}

static void name_sources(fit *f, const int used[BYTES_COLUMNS])
{
    char text[HBP__COST_SOURCE_BYTES];
    snprintf(text, sizeof text, "fit of %lld packs", (long long)f->measured->count);
    hbp__cost_set_source(f->cost, HBP__COST_ns_per_token, text);
    hbp__cost_set_source(f->cost, HBP__COST_ns_per_token_squared, text);
    hbp__cost_set_source(f->cost, HBP__COST_pack_ns, text);
    if (used[BYTES_STATIC])
        hbp__cost_set_source(f->cost, HBP__COST_static_bytes, text);
    if (used[BYTES_ACTIVATION])
        hbp__cost_set_source(f->cost, HBP__COST_activation_bytes, text);
    if (used[BYTES_RECOMPUTED])
        hbp__cost_set_source(f->cost, HBP__COST_recomputed_bytes, text);
    /* The table is a mixture: which degrees were fitted, and what the others are. */
    char table[256];
    size_t length = (size_t)snprintf(table, sizeof table, "%s", text);
    int any = 0;
    int all = 1;
    for (int32_t r = 0; r < f->prior->terms.degrees; r++) {
        if (f->prior->degree[r] == 1)
            continue;
        all &= f->column[r] >= 0;
        if (f->column[r] < 0 || length + 16 > sizeof table)
            continue;
        length += (size_t)snprintf(table + length, sizeof table - length, "%s %d", any ? "," : " at SP",
                                   (int)f->prior->degree[r]);
        any = 1;
    }
    if (!all && length + HBP__COST_SOURCE_BYTES + 2 < sizeof table)
        snprintf(table + length, sizeof table - length, "; %s", f->prior->source[HBP__COST_sp_ns_per_token]);
    if (any)
        hbp__cost_set_source(f->cost, HBP__COST_sp_ns_per_token, table);
}

static hbp_status run_fit(fit *f, hbp_fit_report *report)
{
    int used[BYTES_COLUMNS] = {0};
    for (int32_t r = 0; r < f->prior->terms.degrees; r++)
        f->column[r] = -1;
    HBP__TRY(check_rows(f));
    HBP__TRY(copy_prior(f));
    HBP__TRY(fit_time(f));
    if (f->measured->peak_bytes)
        HBP__TRY(fit_bytes(f, used));
    name_sources(f, used);
    return report ? make_report(f, report) : HBP_OK;
}

static hbp_status read_measurements(hbp_context *context, const hbp_measurements *given, hbp_measurements *m)
{
    HBP__TRY(hbp__require(context, given, "measurements"));
    HBP__TRY(hbp__options_read(context, m, sizeof *m, given, "hbp_measurements"));
    if (m->count < 1 || m->count > HBP_MAX_SAMPLES)
        return hbp__fail(context, HBP_E_INVALID, "measurements.count is %lld; it must lie in 1..%lld",
                         (long long)m->count, (long long)HBP_MAX_SAMPLES);
    HBP__TRY(hbp__require(context, m->sp, "measurements.sp"));
    HBP__TRY(hbp__require(context, m->recompute, "measurements.recompute"));
    HBP__TRY(hbp__require(context, m->tokens, "measurements.tokens"));
    HBP__TRY(hbp__require(context, m->sum_squares, "measurements.sum_squares"));
    return hbp__require(context, m->time_ns, "measurements.time_ns");
}

hbp_status hbp_cost_fit(hbp_context *context, const hbp_cost *prior, const hbp_measurements *measurements,
                        hbp_cost **out, hbp_fit_report *report)
{
    HBP__TRY(hbp__enter(context));
    HBP__TRY(hbp__require(context, out, "out"));
    *out = NULL;
    HBP__TRY(hbp__require(context, prior, "prior"));
    hbp_measurements all;
    HBP__TRY(read_measurements(context, measurements, &all));
    fit f = {.context = context, .prior = prior, .measured = &all};
    uint64_t degrees = (uint64_t)prior->terms.degrees;
    f.column = hbp__new(&context->memory, degrees, sizeof *f.column);
    f.row = hbp__new(&context->memory, degrees, sizeof *f.row);
    hbp_status status = f.column && f.row ? run_fit(&f, report) : hbp__fail_memory(context, "a fit");
    hbp__delete(&context->memory, f.column);
    hbp__delete(&context->memory, f.row);
    if (status < 0)
        hbp_cost_free(f.cost);
    else
        *out = f.cost;
    return status;
}

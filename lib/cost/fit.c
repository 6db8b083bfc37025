/* Fitting a cost to what a trainer measured (docs: cost model, "Fitting"). */
#include <stdio.h>
#include <string.h>

#include "base/options.h"
#include "base/scratch.h"
#include "base/sort.h"
#include "cost/cost.h"
#include "cost/fit.h"
#include "cost/regression.h"
#include "hbp/lengths.h"
#include "solve/relative_errors.h"

#define TICK_ROWS 32768

/* Two terms count as told apart when the share of a pack's time (or bytes) that falls to one is known to
 * this. */
#define DOUBT .25

/* Unknowns of the time fit; behind them v_d and l_d of each measured degree above 1. */
enum { TIME_TOKENS, TIME_SQUARES, TIME_PACK, TIME_TOKENS_AGAIN, TIME_SQUARES_AGAIN, TIME_DEGREES };

/* Unknowns of the memory fit. */
enum {
    BYTES_STATIC,
    BYTES_ACTIVATION,
    BYTES_RECOMPUTED,
    BYTES_WORKING,
    BYTES_LOGITS,
    BYTES_BUFFER,
    BYTES_UNKNOWNS
};

/* One fit in progress. */
typedef struct fit {
    hbp_context *context;
    const hbp_cost *prior;
    const hbp_measurements *measured;
    hbp_cost *cost; /* the result */
    hbp_cost
        sides;   /* where traffic hides behind compute: what says for which packs it does; a shallow copy */
    int is_part; /* nonzero: of measurements that are checked, for times alone */
    int32_t *column; /* [degrees] unknown of each degree's v_d, -1 where it is not measured; l_d is next */
    int32_t *row;    /* [unknowns behind TIME_DEGREES / 2] the degree's row */
    hbp__unknown *unknowns; /* [2 degrees + TIME_DEGREES] of the time fit */
    int32_t time_unknowns;
    int32_t fitted;
} fit;

static hbp_status check_steps(const fit *f)
{
    const hbp_measurements *m = f->measured;
    for (int64_t i = 0; i < m->steps; i++)
        if (m->step_ns[i] < 0)
            return hbp__fail(f->context, HBP_E_INVALID, "step_ns[%lld] is %lld; it must be at least 0",
                             (long long)i, (long long)m->step_ns[i]);
    return HBP_OK;
}

static hbp_status check_row(const fit *f, int64_t i)
{
    const hbp_measurements *m = f->measured;
    hbp_context *context = f->context;
    if (hbp__cost_row(f->prior, m->sp[i]) < 0)
        return hbp__fail(context, HBP_E_INVALID, "sp[%lld] is %d, which is not a degree of the prior",
                         (long long)i, (int)m->sp[i]);
    if (m->recompute[i] < 0 || m->recompute[i] > f->prior->terms.layers)
        return hbp__fail(context, HBP_E_INVALID, "recompute[%lld] is %d; it must be in 0..%d", (long long)i,
                         (int)m->recompute[i], (int)f->prior->terms.layers);
    if (m->tokens[i] < 1 || m->tokens[i] > HBP_MAX_LENGTH)
        return hbp__fail(context, HBP_E_INVALID, "tokens[%lld] is %lld; it must be in 1..%lld", (long long)i,
                         (long long)m->tokens[i], (long long)HBP_MAX_LENGTH);
    /* Tokens may count padding that no document has, so squares may be fewer than tokens. */
    if (m->sum_squares[i] < 1 || m->sum_squares[i] > m->tokens[i] * m->tokens[i])
        return hbp__fail(context, HBP_E_INVALID,
                         "sum_squares[%lld] is %lld; documents in %lld tokens have 1 to %lld", (long long)i,
                         (long long)m->sum_squares[i], (long long)m->tokens[i],
                         (long long)(m->tokens[i] * m->tokens[i]));
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

/* Checks every row and gives each measured degree above 1 its two unknowns. */
static hbp_status check_rows(fit *f)
{
    for (int64_t i = 0; i < f->measured->count; i++) {
        HBP__TRY(tick(f, i));
        if (!f->is_part)
            HBP__TRY(check_row(f, i));
        f->column[hbp__cost_row(f->prior, f->measured->sp[i])] = 0;
    }
    int32_t next = TIME_DEGREES;
    for (int32_t r = 0; r < f->prior->terms.degrees; r++) {
        if (f->column[r] < 0 || f->prior->degree[r] == 1) {
            f->column[r] = -1;
            continue;
        }
        f->row[(next - TIME_DEGREES) / 2] = r;
        f->column[r] = next;
        next += 2;
    }
    f->time_unknowns = next;
    return HBP_OK;
}

/* "sp_ns_per_token of SP 8" for an unknown of the time fit that is always fitted. */
static void name_time_unknown(const fit *f, int32_t unknown, char *text, size_t bytes)
{
    static const char *const names[] = {"ns_per_token", "ns_per_token_squared", "pack_ns"};
    if (unknown < TIME_DEGREES)
        snprintf(text, bytes, "%s", names[unknown]);
    else
        snprintf(text, bytes, "sp_ns_per_token of SP %d",
                 (int)f->prior->degree[f->row[(unknown - TIME_DEGREES) / 2]]);
}

static hbp_status fail_twins(const fit *f, const char *first, const char *second)
{
    return hbp__fail(f->context, HBP_E_INFEASIBLE,
                     "%lld packs cannot separate %s and %s; measure packs that differ more in them",
                     (long long)f->measured->count, first, second);
}

/* The share of pack_ns that traffic is, which a fit leaves as it is. */
static double traffic_share(const hbp_cost_terms *t)
{
    return hbp__cost_hides(t) ? t->traffic_ns / t->pack_ns : 0; /* of which it is a part */
}

/* What a pack pays: shares of compute and of pack_ns, as traffic that compute hides is not paid, or as much
 * compute as it hides is not; and ns that are known, where compute takes its least time. */
typedef struct side {
    double compute;
    double fixed;
    double known_ns;
} side;

static side find_side(const fit *f, int64_t i, int32_t row)
{
    const hbp_measurements *m = f->measured;
    const hbp_cost_terms *t = &f->sides.terms;
    side s = {1, 1, 0};
    if (!hbp__cost_bends(t))
        return s;
    const double ns = hbp__cost_compute_ns(&f->sides, row, m->recompute[i], (double)m->tokens[i],
                                           (double)m->sum_squares[i], 0);
    if (traffic_share(t) > 0 && t->compute_overlap * ns < t->traffic_ns)
        s.compute = 1 - t->compute_overlap;
    else
        s.fixed = 1 - traffic_share(t);
    if (t->least_compute_ns > 0 && ns <= t->least_compute_ns) {
        s.known_ns = s.compute * t->least_compute_ns;
        s.compute = 0;
    }
    return s;
}

/* T of hbp/cost.h is linear in a1, a1 r1, a2, a2 r2, B, l_d and v_d once r3 is given, and where traffic hides
 * behind compute on either side of where the two are even. Every row is divided by its time, so that errors
 * are relative. */
static double time_row(const void *user, int64_t i, double *x)
{
    const fit *f = user;
    const hbp_measurements *m = f->measured;
    const hbp_cost_terms *t = &f->prior->terms;
    const int32_t row = hbp__cost_row(f->prior, m->sp[i]);
    const double share = (double)m->recompute[i] / t->layers;
    const double weight = 1 / (double)m->time_ns[i];
    const double tokens = (double)m->tokens[i];
    const double again = 1 + t->recompute_communication * share;
    const side s = find_side(f, i, row);
    const double rest = 1 - weight * s.known_ns;
    memset(x, 0, (size_t)f->time_unknowns * sizeof *x);
    x[TIME_TOKENS] = weight * s.compute * tokens / m->sp[i];
    x[TIME_TOKENS_AGAIN] = x[TIME_TOKENS] * share;
    x[TIME_SQUARES] = weight * s.compute * (double)m->sum_squares[i] / m->sp[i];
    x[TIME_SQUARES_AGAIN] = x[TIME_SQUARES] * share;
    x[TIME_PACK] = weight * s.fixed;
    if (f->column[row] < 0)
        return rest -
               weight * again * (f->prior->sp_latency_ns[row] + f->prior->sp_ns_per_token[row] * tokens);
    x[f->column[row]] = weight * tokens * again;
    x[f->column[row] + 1] = weight * again;
    return rest;
}

/* One that, where the packs cannot tell it, keeps the prior's proportion to its parent: packs like those
 * measured are then predicted well, whatever the prior. */
static hbp__unknown spare_unknown(double value, int32_t parent, double value_of_parent)
{
    const int scaled = value_of_parent > 0;
    return (hbp__unknown){.kind = HBP__UNKNOWN_FITTED,
                          .parent = scaled ? parent : -1,
                          .prior = scaled ? value / value_of_parent : value,
                          .spare = 1};
}

/* Whether it was left to the prior's proportion to its parent. */
static int is_scaled(const hbp__unknown *u)
{
    return u->kind == HBP__UNKNOWN_FITTED && !u->fitted && u->parent >= 0;
}

/* One regression, sides being as `sides` says. */
static hbp_status fit_sides(fit *f)
{
    const hbp_cost_terms *t = &f->prior->terms;
    hbp__unknown *u = f->unknowns;
    u[TIME_TOKENS] = u[TIME_SQUARES] = (hbp__unknown){.kind = HBP__UNKNOWN_FITTED, .parent = -1};
    u[TIME_PACK] = spare_unknown(t->pack_ns, TIME_TOKENS, t->ns_per_token);
    u[TIME_TOKENS_AGAIN] =
        (hbp__unknown){.kind = HBP__UNKNOWN_MAYBE, .parent = TIME_TOKENS, .prior = t->recompute_linear};
    u[TIME_SQUARES_AGAIN] =
        (hbp__unknown){.kind = HBP__UNKNOWN_MAYBE, .parent = TIME_SQUARES, .prior = t->recompute_attention};
    for (int32_t j = TIME_DEGREES; j < f->time_unknowns; j += 2) {
        const int32_t row = f->row[(j - TIME_DEGREES) / 2];
        u[j] = spare_unknown(f->prior->sp_ns_per_token[row], TIME_TOKENS, t->ns_per_token);
        u[j + 1] =
            (hbp__unknown){.kind = HBP__UNKNOWN_MAYBE, .parent = -1, .prior = f->prior->sp_latency_ns[row]};
    }
    hbp__regression r = {f, time_row, f->measured->count, f->time_unknowns, u};
    int32_t first;
    int32_t second;
    hbp_status status = hbp__regress(f->context, &r, DOUBT, &first, &second);
    if (status == HBP_E_INFEASIBLE) {
        char names[2][48];
        name_time_unknown(f, first, names[0], sizeof names[0]);
        name_time_unknown(f, second, names[1], sizeof names[1]);
        return fail_twins(f, names[0], names[1]);
    }
    HBP__TRY(status);
    f->cost->terms.ns_per_token = u[TIME_TOKENS].value;
    f->cost->terms.ns_per_token_squared = u[TIME_SQUARES].value;
    f->cost->terms.pack_ns = u[TIME_PACK].value;
    u[TIME_TOKENS_AGAIN].fitted &= u[TIME_TOKENS].value > 0;
    u[TIME_SQUARES_AGAIN].fitted &= u[TIME_SQUARES].value > 0;
    if (u[TIME_TOKENS_AGAIN].fitted)
        f->cost->terms.recompute_linear = u[TIME_TOKENS_AGAIN].value / u[TIME_TOKENS].value;
    if (u[TIME_SQUARES_AGAIN].fitted)
        f->cost->terms.recompute_attention = u[TIME_SQUARES_AGAIN].value / u[TIME_SQUARES].value;
    for (int32_t j = TIME_DEGREES; j < f->time_unknowns; j += 2) {
        int32_t row = f->row[(j - TIME_DEGREES) / 2];
        f->cost->sp_ns_per_token[row] = u[j].value;
        f->cost->sp_latency_ns[row] = u[j + 1].value;
    }
    f->cost->terms.traffic_ns = traffic_share(t) * f->cost->terms.pack_ns;
    return HBP_OK;
}

/* Which side binds is looked at again with what was fitted. */
static hbp_status fit_time(fit *f)
{
    enum { ROUNDS = 4 };
    f->sides = *f->prior;
    for (int round = 0; round < (hbp__cost_bends(&f->prior->terms) ? ROUNDS : 1); round++) {
        HBP__TRY(fit_sides(f));
        f->sides = *f->cost;
    }
    if (hbp__cost_bends(&f->prior->terms) && f->cost->terms.ns_per_token <= 0)
        return hbp__fail(f->context, HBP_E_INFEASIBLE,
                         "in none of %lld packs does compute show: it hides behind ZeRO traffic or takes its "
                         "least time; measure longer packs",
                         (long long)f->measured->count);
    for (int32_t j = 0; j < f->time_unknowns; j++)
        f->fitted += f->unknowns[j].fitted;
    return HBP_OK;
}

/* M of hbp/cost.h, linear in all of its terms. */
static double bytes_row(const void *user, int64_t i, double *x)
{
    const fit *f = user;
    const hbp_measurements *m = f->measured;
    const double weight = 1 / (double)m->peak_bytes[i];
    const double tokens = weight * (double)m->tokens[i] / m->sp[i];
    x[BYTES_STATIC] = weight;
    x[BYTES_ACTIVATION] = tokens * (f->prior->terms.layers - m->recompute[i]);
    x[BYTES_RECOMPUTED] = tokens * m->recompute[i];
    x[BYTES_WORKING] = m->recompute[i] > 0 ? tokens : 0;
    x[BYTES_LOGITS] = tokens;
    x[BYTES_BUFFER] = m->sp[i] > 1 ? tokens : 0;
    return 1;
}

/* static, act and kept, the last only when the numbers of recomputed layers differ, else it is
 * indistinguishable from act; working set, logits and buffer where the rows say that the prior's are wrong.
 * Full packs that fill their ranks alike cannot tell static from act, and are no reason to refuse. */
static hbp_status fit_bytes(fit *f, hbp__unknown u[BYTES_UNKNOWNS])
{
    static const char *const names[] = {"static_bytes", "activation_bytes", "recomputed_bytes"};
    const hbp_measurements *m = f->measured;
    hbp_cost_terms *t = &f->cost->terms;
    double *const terms[BYTES_UNKNOWNS] = {&t->static_bytes,  &t->activation_bytes, &t->recomputed_bytes,
                                           &t->working_bytes, &t->logits_bytes,     &t->sp_buffer_bytes};
    int differ = 0;
    int32_t least = m->recompute[0];
    for (int64_t i = 1; i < m->count; i++) {
        differ |= m->recompute[i] != m->recompute[0];
        least = m->recompute[i] < least ? m->recompute[i] : least;
    }
    const int act = least < t->layers;
    for (int32_t j = 0; j < BYTES_UNKNOWNS; j++)
        u[j] = (hbp__unknown){.kind = HBP__UNKNOWN_MAYBE, .parent = -1, .prior = *terms[j]};
    const int32_t parent = act ? BYTES_ACTIVATION : BYTES_RECOMPUTED;
    u[BYTES_STATIC] = spare_unknown(t->static_bytes, parent, *terms[parent]);
    u[BYTES_ACTIVATION].kind = act ? HBP__UNKNOWN_FITTED : HBP__UNKNOWN_FIXED;
    u[BYTES_RECOMPUTED].kind = act ? HBP__UNKNOWN_FIXED : HBP__UNKNOWN_FITTED;
    if (act && differ)
        u[BYTES_RECOMPUTED] = spare_unknown(t->recomputed_bytes, parent, *terms[parent]);
    hbp__regression r = {f, bytes_row, m->count, BYTES_UNKNOWNS, u};
    int32_t first;
    int32_t second;
    hbp_status status = hbp__regress(f->context, &r, DOUBT, &first, &second);
    if (status == HBP_E_INFEASIBLE)
        return fail_twins(f, names[first], names[second]);
    HBP__TRY(status);
    for (int32_t j = 0; j < BYTES_UNKNOWNS; j++) {
        *terms[j] = u[j].value;
        f->fitted += u[j].fitted;
    }
    return HBP_OK;
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
        hbp__load load = {.tokens = m->tokens[i], .squares = (double)m->sum_squares[i]};
        int64_t predicted = bytes ? hbp__cost_pack_bytes(cost, row, m->recompute[i], load)
                                  : hbp__cost_pack_ns(cost, row, m->recompute[i], load);
        hbp__relative_errors_add(e, (double)predicted, measured);
    }
    return hbp__relative_errors_sort(f->context, e, "a fit's errors");
}

static hbp_status make_report(const fit *f, const hbp__held_out *held, hbp_fit_report *report)
{
    const hbp__memory *memory = &f->context->memory;
    hbp__relative_errors e;
    hbp_fit_report r = {.struct_size = sizeof r,
                        .terms_fitted = f->fitted,
                        .times = held->times,
                        .held_out_time_error = held->fit_error,
                        .scaled_time_error = held->scaled_error};
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

/* Adds " at SP 2, 4" for the degrees of a table whose unknown is fitted or (fitted == 0) measured and not;
 * `offset`: of its unknowns from those of v_d. Returns how many there are. */
static int add_degrees(const fit *f, int offset, int fitted, const char *before, char *text, size_t room)
{
    int count = 0;
    for (int32_t r = 0; r < f->prior->terms.degrees; r++) {
        size_t length = strlen(text);
        if (f->column[r] < 0 || f->unknowns[f->column[r] + offset].fitted != fitted)
            continue;
        snprintf(text + length, room - length, "%s %d", count ? "," : before, (int)f->prior->degree[r]);
        count++;
    }
    return count;
}

/* A table is a mixture: which degrees were fitted, which scaled, and what the others are. */
static void name_table(fit *f, int32_t index, int offset, int scales, const char *fitted)
{
    char text[256];
    snprintf(text, sizeof text, "%s", fitted);
    int named = add_degrees(f, offset, 1, " at SP", text, sizeof text);
    if (!named)
        text[0] = '\0';
    if (scales)
        named += add_degrees(f, offset, 0, named ? "; scaled at SP" : "scaled at SP", text, sizeof text);
    if (!named)
        return;
    size_t length = strlen(text);
    if (named < f->prior->terms.degrees - 1 && length + HBP__COST_SOURCE_BYTES + 2 < sizeof text)
        snprintf(text + length, sizeof text - length, "; %s", f->prior->source[index]);
    hbp__cost_set_source(f->cost, index, text);
}

static void name_sources(fit *f, const hbp__unknown bytes[BYTES_UNKNOWNS], int has_times)
{
    static const int32_t time_terms[TIME_DEGREES] = {HBP__COST_ns_per_token, HBP__COST_ns_per_token_squared,
                                                     HBP__COST_pack_ns, HBP__COST_recompute_linear,
                                                     HBP__COST_recompute_attention};
    static const int32_t bytes_terms[BYTES_UNKNOWNS] = {
        HBP__COST_static_bytes,  HBP__COST_activation_bytes, HBP__COST_recomputed_bytes,
        HBP__COST_working_bytes, HBP__COST_logits_bytes,     HBP__COST_sp_buffer_bytes};
    char text[HBP__COST_SOURCE_BYTES];
    snprintf(text, sizeof text, "fit of %lld packs", (long long)f->measured->count);
    for (int32_t j = 0; j < TIME_DEGREES; j++)
        if (f->unknowns[j].fitted)
            hbp__cost_set_source(f->cost, time_terms[j], text);
    for (int32_t j = 0; j < BYTES_UNKNOWNS; j++)
        if (bytes[j].fitted)
            hbp__cost_set_source(f->cost, bytes_terms[j], text);
        else if (is_scaled(&bytes[j]))
            hbp__cost_set_source(f->cost, bytes_terms[j],
                                 bytes[j].parent == BYTES_ACTIVATION ? "scaled like activation_bytes"
                                                                     : "scaled like recomputed_bytes");
    if (!has_times)
        return;
    if (hbp__cost_hides(&f->cost->terms))
        hbp__cost_set_source(f->cost, HBP__COST_traffic_ns, "the prior's share of pack_ns");
    if (is_scaled(&f->unknowns[TIME_PACK]))
        hbp__cost_set_source(f->cost, HBP__COST_pack_ns, "scaled like ns_per_token");
    name_table(f, HBP__COST_sp_ns_per_token, 0, 1, text);
    name_table(f, HBP__COST_sp_latency_ns, 1, 0, text);
}

/* Times as the prior has them, all of them times `scale`; the fit's own are forgotten. */
static void take_prior_times(fit *f, double scale, const char *source)
{
    hbp__cost_scale_times(f->prior, scale, source, f->cost);
    for (int32_t j = 0; j < f->time_unknowns; j++) {
        f->fitted -= f->unknowns[j].fitted;
        f->unknowns[j].fitted = 0;
    }
    f->fitted += scale != 1;
}

static hbp_status fit_part(hbp_context *context, const hbp_cost *prior, const hbp_measurements *part,
                           hbp_cost **out);

/* Keeps the times that predict packs best which they were not made of. */
static hbp_status choose_times(fit *f, hbp__held_out *held)
{
    char source[HBP__COST_SOURCE_BYTES];
    HBP__TRY(hbp__fit_hold_out(f->context, f->prior, f->measured, fit_part, held));
    if (held->times == HBP_FIT_PACKS)
        return HBP_OK;
    snprintf(source, sizeof source, "prior scaled by a fit of %lld packs", (long long)f->measured->count);
    take_prior_times(f, held->times == HBP_FIT_SCALED ? held->scale : 1,
                     held->times == HBP_FIT_SCALED ? source : NULL);
    return HBP_OK;
}

/* What a step costs beside its packs is the median of those that were measured. */
static hbp_status fit_steps(fit *f)
{
    const hbp_measurements *m = f->measured;
    if (!m->steps)
        return HBP_OK;
    char source[HBP__COST_SOURCE_BYTES];
    const int64_t mark = hbp__scratch_mark(f->context);
    uint32_t *order = hbp__take(f->context, (uint64_t)m->steps, sizeof *order);
    HBP__TRY(hbp__scratch_check(f->context, "a fit"));
    for (int64_t i = 0; i < m->steps; i++)
        order[i] = (uint32_t)i;
    HBP__TRY(hbp__order_by_i64(f->context, m->step_ns, order, m->steps, "a fit"));
    f->cost->terms.step_ns = (double)m->step_ns[order[(m->steps - 1) / 2]];
    hbp__scratch_release(f->context, mark);
    snprintf(source, sizeof source, "median of %lld steps", (long long)m->steps);
    hbp__cost_set_source(f->cost, HBP__COST_step_ns, source);
    f->fitted++;
    return HBP_OK;
}

static hbp_status run_fit(fit *f, hbp_fit_report *report)
{
    hbp__unknown bytes[BYTES_UNKNOWNS] = {{.fitted = 0}};
    for (int32_t r = 0; r < f->prior->terms.degrees; r++)
        f->column[r] = -1;
    HBP__TRY(check_rows(f));
    HBP__TRY(check_steps(f));
    HBP__TRY(hbp__cost_copy(f->context, f->prior, &f->cost));
    HBP__TRY(fit_time(f));
    if (f->is_part)
        return HBP_OK;
    hbp__held_out held = {.times = HBP_FIT_PACKS};
    HBP__TRY(choose_times(f, &held));
    if (f->measured->peak_bytes)
        HBP__TRY(fit_bytes(f, bytes));
    HBP__TRY(fit_steps(f));
    name_sources(f, bytes, held.times == HBP_FIT_PACKS);
    return report ? make_report(f, &held, report) : HBP_OK;
}

static hbp_status read_measurements(hbp_context *context, const hbp_measurements *given, hbp_measurements *m)
{
    HBP__TRY(hbp__require(context, given, "measurements"));
    HBP__TRY(hbp__options_read(context, m, sizeof *m, given, "hbp_measurements"));
    HBP__TRY(hbp__require(context, m->sp, "measurements.sp"));
    HBP__TRY(hbp__require(context, m->recompute, "measurements.recompute"));
    HBP__TRY(hbp__require(context, m->tokens, "measurements.tokens"));
    HBP__TRY(hbp__require(context, m->sum_squares, "measurements.sum_squares"));
    if (m->steps)
        HBP__TRY(hbp__require(context, m->step_ns, "measurements.step_ns"));
    return hbp__require(context, m->time_ns, "measurements.time_ns");
}

static hbp_status fit_cost(hbp_context *context, const hbp_cost *prior, const hbp_measurements *measurements,
                           int is_part, hbp_cost **out, hbp_fit_report *report)
{
    fit f = {.context = context, .prior = prior, .measured = measurements, .is_part = is_part};
    uint64_t degrees = (uint64_t)prior->terms.degrees;
    f.column = hbp__new(&context->memory, degrees, sizeof *f.column);
    f.row = hbp__new(&context->memory, degrees, sizeof *f.row);
    f.unknowns = hbp__new(&context->memory, 2 * degrees + TIME_DEGREES, sizeof *f.unknowns);
    hbp_status status =
        f.column && f.row && f.unknowns ? run_fit(&f, report) : hbp__fail_memory(context, "a fit");
    hbp__delete(&context->memory, f.column);
    hbp__delete(&context->memory, f.row);
    hbp__delete(&context->memory, f.unknowns);
    if (status < 0)
        hbp_cost_free(f.cost);
    else
        *out = f.cost;
    return status;
}

static hbp_status fit_part(hbp_context *context, const hbp_cost *prior, const hbp_measurements *part,
                           hbp_cost **out)
{
    *out = NULL;
    int64_t mark = hbp__scratch_mark(context);
    return hbp__leave(context, mark, fit_cost(context, prior, part, 1, out, NULL));
}

hbp_status hbp_cost_fit(hbp_context *context, const hbp_cost *prior, const hbp_measurements *measurements,
                        hbp_cost **out, hbp_fit_report *report)
{
    HBP__ENTER_OUT(context, out);
    hbp_measurements all;
    HBP__TRY(hbp__require(context, prior, "prior"));
    HBP__TRY(read_measurements(context, measurements, &all));
    int64_t mark = hbp__scratch_mark(context);
    return hbp__leave(context, mark, fit_cost(context, prior, &all, 0, out, report));
}

/* What a run measured: beside the plan that it ran, or alone. */
#include <stdio.h>
#include <stdlib.h>

#include "report.h"

enum { MOST_POINTS = 3000, MOST_TIMELINE_PACKS = 400000 };

/* The pack of the plan that a row is of; -1: it has none. */
static int64_t find_pack(const report_plan *p, const hbp_timeline_columns *t, int64_t row)
{
    const int64_t step = t->step[row] - p->summary.first_step;
    if (step < 0 || step >= p->view.steps)
        return -1;
    const int64_t q = hbp_plan_get_rank_pack(p->c->plan, step, t->micro_batch[row], t->first_rank[row]);
    return q >= 0 && p->view.pack_ranks[q] == t->first_rank[row] && p->view.pack_sp[q] == t->sp[row] ? q : -1;
}

hbp_status report_match(report_plan *p, int64_t **ns)
{
    hbp_timeline_columns t = {.struct_size = sizeof t};
    hbp_status status = hbp_timeline_get_columns(p->c->context, p->c->timeline, &t);
    if (status < 0)
        return status;
    *ns = malloc((size_t)(p->view.packs ? p->view.packs : 1) * sizeof **ns);
    if (!*ns)
        return cli_own_failure("out of memory for the page");
    for (int64_t q = 0; q < p->view.packs; q++)
        (*ns)[q] = -1;
    for (int64_t row = 0; row < t.count; row++) {
        const int64_t q = find_pack(p, &t, row);
        if (q < 0 || (*ns)[q] >= 0)
            return cli_own_failure(
                "%s: row %lld has step %lld, micro-batch %d, rank %d, SP %d, %s; it is not of "
                "this plan",
                p->c->measured_file, (long long)row, (long long)t.step[row], (int)t.micro_batch[row],
                (int)t.first_rank[row], (int)t.sp[row],
                q < 0 ? "where the plan has no such pack" : "which an earlier row has");
        (*ns)[q] = t.time_ns[row];
    }
    return HBP_OK;
}

static void add_point(json_t *points, int64_t predicted, int64_t measured, json_t *name)
{
    json_array_append_new(points, json_pack("[I,I,o]", (json_int_t)predicted, (json_int_t)measured, name));
}

void report_points(report_plan *p, const int64_t *measured_ns)
{
    const hbp_plan_view *v = &p->view;
    int64_t known = 0, seen = 0;
    double off = 0;
    json_t *points = json_array();
    for (int64_t q = 0; q < v->packs; q++)
        known += measured_ns[q] > 0;
    const int64_t stride = known / MOST_POINTS + 1;
    for (int64_t k = 0; k < v->steps; k++)
        for (int64_t m = v->step_offsets[k]; m < v->step_offsets[k + 1]; m++)
            for (int64_t q = v->micro_batch_offsets[m]; q < v->micro_batch_offsets[m + 1]; q++) {
                if (measured_ns[q] <= 0)
                    continue;
                const double error = (double)v->pack_ns[q] / (double)measured_ns[q] - 1;
                off += error < 0 ? -error : error;
                if (seen++ % stride == 0)
                    add_point(points, v->pack_ns[q], measured_ns[q],
                              report_text("step %lld, micro-batch %lld, rank %d",
                                          (long long)(p->summary.first_step + k),
                                          (long long)(m - v->step_offsets[k]), (int)v->pack_ranks[q]));
            }
    json_t *picture = report_picture(
        p->page, "points", "measured", "Do predictions hold?",
        report_text(
            "%s measured by %s: predictions are off by %s in the mean. Points above the dashed line took "
            "longer than predicted.%s",
            show_number(known, "pack").s, show_name(p->c->measured_file).s,
            show_share(known ? off / (double)known : 0).s,
            stride > 1 ? " Some of them are drawn, spread evenly." : ""));
    json_object_set_new(picture, "unit", json_string("ns"));
    json_object_set_new(picture, "x", json_string("predicted"));
    json_object_set_new(picture, "y", json_string("measured"));
    json_object_set_new(picture, "points", points);
}

/* ---- A timeline alone ---- */

/* Rows by step, micro-batch and rank. */
static const hbp_timeline_columns *sorted;

static int before(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    if (sorted->step[x] != sorted->step[y])
        return sorted->step[x] < sorted->step[y] ? -1 : 1;
    if (sorted->micro_batch[x] != sorted->micro_batch[y])
        return sorted->micro_batch[x] < sorted->micro_batch[y] ? -1 : 1;
    return sorted->first_rank[x] < sorted->first_rank[y] ? -1 : sorted->first_rank[x] > sorted->first_rank[y];
}

#define EACH(t, i) for (int64_t i = 0; i < (t)->count; i++)

/* How many rows are of a step, and of a micro-batch of it. */
static void put_rows(const hbp_timeline_columns *t, const int64_t *row, report_columns *c)
{
    report_column(c, "step_number");
    EACH(t, i)
    if (i == 0 || t->step[row[i]] != t->step[row[i - 1]])
        report_put(c, t->step[row[i]]);
    report_column(c, "step_micro_batches");
    for (int64_t i = 0, batches; i < t->count; report_put(c, batches)) {
        batches = 0;
        for (const int64_t step = t->step[row[i]]; i < t->count && t->step[row[i]] == step; i++)
            batches += batches == 0 || t->micro_batch[row[i]] != t->micro_batch[row[i - 1]];
    }
    report_column(c, "step_ticks");
    EACH(t, i)
    if (i == 0 || t->step[row[i]] != t->step[row[i - 1]])
        report_put(c, 0);
    report_column(c, "step_listed");
    EACH(t, i)
    if (i == 0 || t->step[row[i]] != t->step[row[i - 1]])
        report_put(c, 0);
    report_column(c, "micro_batch_packs");
    for (int64_t i = 0, packs; i < t->count; report_put(c, packs)) {
        packs = 1;
        while (++i < t->count && t->step[row[i]] == t->step[row[i - 1]] &&
               t->micro_batch[row[i]] == t->micro_batch[row[i - 1]])
            packs++;
    }
    report_column(c, "pack_gap");
    EACH(t, i)
    {
        const int begins = i == 0 || t->step[row[i]] != t->step[row[i - 1]] ||
                           t->micro_batch[row[i]] != t->micro_batch[row[i - 1]];
        report_put_signed(c, t->first_rank[row[i]] -
                                 (begins ? 0 : t->first_rank[row[i - 1]] + (int64_t)t->sp[row[i - 1]]));
    }
#define COLUMN(name, value)                                                                                  \
    report_column(c, name);                                                                                  \
    EACH(t, i) report_put(c, value);
    COLUMN("pack_sp", t->sp[row[i]])
    COLUMN("pack_recompute", t->recompute[row[i]])
    COLUMN("pack_ticks", t->time_ns[row[i]])
    COLUMN("pack_tokens", t->tokens[row[i]])
    COLUMN("pack_padding", 0)
    COLUMN("pack_samples", t->samples ? t->samples[row[i]] : t->tokens[row[i]] > 0)
    COLUMN("pack_bytes", t->peak_bytes ? t->peak_bytes[row[i]] : 0)
    COLUMN("pack_capacity", t->tokens[row[i]])
#undef COLUMN
    report_column(c, "sample_ids");
    report_column(c, "sample_tokens");
}

/* A rank runs one pack in a micro-batch. */
static hbp_status check_rows(const cli *c, const hbp_timeline_columns *t, const int64_t *row)
{
    for (int64_t i = 1; i < t->count; i++) {
        const int64_t a = row[i - 1], b = row[i];
        if (t->step[a] == t->step[b] && t->micro_batch[a] == t->micro_batch[b] &&
            t->first_rank[b] < t->first_rank[a] + (int64_t)t->sp[a])
            return cli_own_failure("%s: rows %lld and %lld both have rank %d in step %lld, micro-batch %d",
                                   c->file, (long long)a, (long long)b, (int)t->first_rank[b],
                                   (long long)t->step[b], (int)t->micro_batch[b]);
    }
    return HBP_OK;
}

static hbp_status draw_timeline(cli *c, json_t *page, const hbp_timeline_columns *t, report_columns *columns)
{
    int64_t *row = malloc((size_t)t->count * sizeof *row);
    if (!row)
        return cli_own_failure("out of memory for the page");
    EACH(t, i) row[i] = i;
    sorted = t;
    qsort(row, (size_t)t->count, sizeof *row, before);
    hbp_status status = check_rows(c, t, row);
    if (status < 0) {
        free(row);
        return status;
    }
    json_t *picture =
        report_picture(page, "timeline", "step", "What did a step run, which ranks waited, and for whom?",
                       report_text("Packs as measured, run as ranks wait for one another in every "
                                   "micro-batch; hatched is waiting."));
    json_t *rest = json_pack("{s:s,s:s,s:i,s:i,s:i,s:i,s:s}", "mode", "plan", "lane", "rank", "lanes",
                             (int)t->ranks, "set", 0, "tick_ns", 1, "tick_bytes", 1, "unlisted",
                             "a timeline does not say which samples");
    json_object_update(picture, rest);
    json_decref(rest);
    if (c->step >= 0)
        json_object_set_new(picture, "shown", json_integer(c->step));
    put_rows(t, row, columns);
    free(row);
    return HBP_OK;
}

int report_of_timeline(cli *c, json_t *page, report_columns *columns)
{
    hbp_timeline_columns t = {.struct_size = sizeof t};
    CLI_TRY(c, hbp_timeline_load(c->context, c->file, &c->timeline));
    CLI_TRY(c, hbp_timeline_get_columns(c->context, c->timeline, &t));
    if (t.count > MOST_TIMELINE_PACKS)
        return cli_error("%s has %s; a page holds at most %s", c->file, show_number(t.count, "pack").s,
                         show_count(MOST_TIMELINE_PACKS).s);
    int64_t steps = 0, tokens = 0;
    double ns = 0;
    int is_there = c->step < 0;
    for (int64_t i = 0; i < t.count; i++) {
        steps += i == 0 || t.step[i] != t.step[i - 1];
        tokens += t.tokens[i];
        ns += (double)t.time_ns[i] * t.sp[i];
        is_there |= t.step[i] == c->step;
    }
    if (!is_there)
        return cli_error("there is no step %lld in %s", (long long)c->step, c->file);
    report_lead(page, report_text("A run measured %s of %s on %s%s%s.", show_number(t.count, "pack").s,
                                  show_number(steps, "step").s, show_number(t.ranks, "rank").s,
                                  t.device ? " of " : "", t.device ? t.device : ""));
    report_fact(page, "ranks", show_count(t.ranks));
    report_fact(page, "steps", show_count(steps));
    report_fact(page, "packs", show_count(t.count));
    report_fact(page, "tokens", show_count(tokens));
    report_fact(page, "GPU time in packs", show_time(ns));
    CLI_TRY(c, draw_timeline(c, page, &t, columns));
    if (!c->cost_file && !c->model_text && !c->machine_text)
        return 0;
    CLI_TRY(c, cli_make_cost(c));
    hbp_cost_terms terms = {.struct_size = sizeof terms};
    CLI_TRY(c, hbp_cost_get_terms(c->context, c->cost, &terms));
    if (terms.ranks != t.ranks)
        return cli_error("the cost is of %s and the timeline of %s", show_number(terms.ranks, "GPU").s,
                         show_number(t.ranks, "rank").s);
    json_t *points = json_array();
    const int64_t stride = t.count / MOST_POINTS + 1;
    hbp_timeline_report r = {.struct_size = sizeof r};
    hbp_status status = hbp_timeline_compare(c->context, c->timeline, c->cost, &r);
    for (int64_t i = 0; status >= 0 && i < t.count; i += stride) {
        const int64_t predicted = hbp_cost_predict_pack_ns(c->cost, t.sp[i], t.recompute[i], t.tokens[i],
                                                           (double)t.sum_squares[i], 0);
        if (predicted > 0 && t.time_ns[i] > 0)
            add_point(points, predicted, t.time_ns[i],
                      report_text("step %lld, micro-batch %d, rank %d", (long long)t.step[i],
                                  (int)t.micro_batch[i], (int)t.first_rank[i]));
    }
    if (status < 0) {
        json_decref(points);
        return cli_failed(c);
    }
    json_t *picture =
        report_picture(page, "points", "measured", "Do predictions hold?",
                       report_text("Packs are off by %s in the median and %s at most; steps by %s "
                                   "in the median. Points above the dashed line took longer than "
                                   "predicted.",
                                   show_share(r.median_pack_error).s, show_share(r.max_pack_error).s,
                                   show_share(r.median_step_error).s));
    json_object_set_new(picture, "unit", json_string("ns"));
    json_object_set_new(picture, "x", json_string("predicted"));
    json_object_set_new(picture, "y", json_string("measured"));
    json_object_set_new(picture, "points", points);
    return 0;
}

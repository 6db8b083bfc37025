/* The page of a plan: what was asked, what it means, and the pictures of all of it. */
#include <math.h>
#include <stdlib.h>

#include "report.h"

/* What a vision-language plan takes is its pipelines' time, not that of its packs side by side. */
static void add_vlm_lead(const report_plan *p, const hbp_vlm_plan_summary *s)
{
    const double over = s->packs_bound_ns > 0 ? (double)s->epoch_ns / (double)s->packs_bound_ns - 1 : 0;
    report_lead(p->page,
                report_text("This plan runs an epoch of %s (%s) in %s of %s on %s: %s of %s.",
                            show_number(s->samples, "sample").s, show_number(p->summary.tokens, "token").s,
                            show_number(s->steps, "step").s, show_number(s->micro_batches, "micro-batch").s,
                            show_number(s->gpus, "GPU").s, show_number(s->replicas, "replica").s,
                            show_number(s->stages, "stage").s));
    report_lead(
        p->page,
        report_text(
            "By the cost model it takes %s; with these packs and steps no pipeline takes less than %s: it "
            "is at most %s above the best. Stages wait %s of the time.",
            show_time((double)s->epoch_ns).s, show_time((double)s->packs_bound_ns).s, show_share(over).s,
            show_share(s->bubble).s));
}

static void add_lead(const report_plan *p)
{
    const hbp_plan_summary *s = &p->summary;
    if (p->c->vlm_plan)
        add_vlm_lead(p, &p->vlm);
    else
        report_lead(p->page,
                    report_text("This plan runs %s%s (%s) in %s%s, on %s.",
                                cli_is_part(s) ? "a part of an epoch, "
                                : s->steps > 1 ? "an epoch of "
                                               : "",
                                show_number(s->samples, "sample").s, show_number(s->tokens, "token").s,
                                show_number(s->steps, "step").s, show_contract(s, "").s, show_gpus(s).s));
    if (s->bound_ns > 0)
        report_lead(
            p->page,
            report_text("By the cost model it takes %s, and no %s takes less than %s %s: it is %s above.",
                        show_time((double)s->predicted_ns).s, show_rivals(s).s,
                        show_time((double)s->bound_ns).s, show_conditions(s).s, show_share(s->gap).s));
    else if (!p->c->vlm_plan)
        report_lead(p->page,
                    report_text("By the cost model it takes %s; how far that is from the best there can "
                                "be, the plan does not say.",
                                show_time((double)s->predicted_ns).s));
    if (has_price(s, s->bound_ns))
        report_lead(p->page, report_text("That steps hold what they do costs %s at most: with steps of any "
                                         "samples and any size, no plan "
                                         "would take less than %s.",
                                         show_share((double)s->predicted_ns / (double)s->free_bound_ns - 1).s,
                                         show_time((double)s->free_bound_ns).s));
    char full[512];
    const int has_space = cli_say_fullness(p->c, s, full, sizeof full);
    if (*full)
        report_lead(p->page, report_text("S%s.", full + 1));
    if (has_space)
        report_lead(p->page, report_text("That is no idle time: ranks wait %s of the time in micro-batches.",
                                         show_share(p->idle).s));
    if (s->dropped || s->overlong_samples)
        report_lead(p->page, report_text("%s in no pack; %s longer than the limit.",
                                         show_number(s->dropped, "sample").s,
                                         show_number(s->overlong_samples, "sample").s));
}

static int64_t peak_of(const report_plan *p)
{
    int64_t peak = p->c->vlm_plan ? p->vlm.peak_bytes : 0;
    for (int32_t r = 0; r < p->summary.ranks; r++)
        peak = p->peak[r] > peak ? p->peak[r] : peak;
    return peak;
}

static void add_facts(const report_plan *p)
{
    const hbp_plan_summary *s = &p->summary;
    const int is_vlm = p->c->vlm_plan != NULL;
    const int64_t ns = is_vlm ? p->vlm.epoch_ns : s->predicted_ns;
    const int32_t gpus = is_vlm ? p->vlm.gpus : s->ranks;
    report_fact(p->page, "GPUs", show_count(gpus));
    report_fact(p->page, "steps", show_count(s->steps));
    report_fact(p->page, "samples", show_count(s->samples));
    report_fact(p->page, "tokens", show_count(s->tokens));
    report_fact(p->page, s->steps > 1 ? "predicted epoch" : "predicted step", show_time((double)ns));
    if (s->bound_ns > 0)
        report_fact(p->page, "above the bound", show_share(s->gap));
    report_fact(p->page, is_vlm ? "bubble" : "idle", show_share(is_vlm ? p->vlm.bubble : p->idle));
    if (peak_of(p) > 0)
        report_fact(p->page, "peak memory", show_bytes((double)peak_of(p)));
    if (ns > 0)
        report_fact(p->page, "tokens/s per GPU",
                    show_count((int64_t)((double)s->tokens / ((double)ns * 1e-9) / gpus)));
    report_fact(p->page, "digest", show_digest(s->digest));
}

static hbp_status draw_methods(const report_plan *p)
{
    const hbp_plan_summary *s = &p->summary;
    if (!s->bound_ns && !s->hierarchy_ns && !p->c->compared_file)
        return HBP_OK;
    json_t *answer = report_text(
        "%s%s",
        p->c->compared_file
            ? "Each method at its best settings, with the same limits of a step and the same cost. "
            : "",
        s->bound_ns > 0 ? "The dashed line is a proven bound: no plan like this one is left of it."
                        : "The plan has no bound that is known.");
    json_t *picture =
        report_picture(p->page, "bars", "methods", "How near is it to the best there can be?", answer);
    json_object_set_new(picture, "unit", json_string("ns"));
    json_object_set_new(picture, "value_name", json_string("time"));
    report_bar(picture, "this plan", (double)s->predicted_ns, "", 1);
    if (s->hierarchy_ns && s->mixture_ns) {
        const int is_hierarchy = s->composition == HBP_COMPOSITION_HIERARCHY;
        const double other = (double)(is_hierarchy ? s->mixture_ns : s->hierarchy_ns);
        report_bar(picture, is_hierarchy ? "steps that mix lengths" : "steps of like length", other,
                   show_real("x %.2f", other / (double)s->predicted_ns).s, 0);
    }
    if (s->bound_ns > 0)
        report_limit(picture, "no plan is below", (double)s->bound_ns);
    return p->c->compared_file ? report_compared(p->c, picture, s) : HBP_OK;
}

/* ---- By rank ---- */

/* Ranks are folded to at most REPORT_RANKS columns. */
typedef struct folds {
    int64_t columns;
    int64_t ranks;
} folds;

static int64_t fold_first(const folds *f, int64_t column)
{
    return column * f->ranks / f->columns;
}

static json_t *fold_names(const folds *f)
{
    json_t *names = json_array();
    for (int64_t i = 0; i < f->columns; i++) {
        const long long first = (long long)fold_first(f, i), last = (long long)fold_first(f, i + 1) - 1;
        json_array_append_new(names, last > first ? report_text("%lld-%lld", first, last)
                                                  : report_text("%lld", first));
    }
    return names;
}

static void draw_memory(const report_plan *p, const folds *f)
{
    double peak[REPORT_RANKS] = {0}, states[REPORT_RANKS];
    const int64_t most = peak_of(p), limit = p->terms.limit_bytes;
    if (most == 0)
        return;
    for (int64_t i = 0; i < f->columns; i++)
        for (int64_t r = fold_first(f, i); r < fold_first(f, i + 1); r++)
            peak[i] = (double)p->peak[r] > peak[i] ? (double)p->peak[r] : peak[i];
    json_t *answer =
        limit ? report_text(
                    "%s: the fullest rank peaks at %s of the %s that a GPU has for it (its memory less the "
                    "reserve), %s %s.",
                    most <= limit ? "It fits" : "It does not fit", show_bytes((double)most).s,
                    show_bytes((double)limit).s, show_bytes(fabs((double)(limit - most))).s,
                    most <= limit ? "to spare" : "too much")
              : report_text("The fullest rank peaks at %s. What a GPU has is not known: the plan was "
                            "saved without its cost.",
                            show_bytes((double)most).s);
    json_t *picture = report_picture(p->page, "columns", "memory", "Does it fit?", answer);
    json_object_set_new(picture, "names", fold_names(f));
    json_object_set_new(picture, "axis", json_string("rank"));
    json_t *panel = report_panel(picture, "peak memory", "bytes");
    if (limit) {
        for (int64_t i = 0; i < f->columns; i++) {
            states[i] = fmin(p->terms.static_bytes, peak[i]);
            peak[i] -= states[i];
        }
        report_series(panel, "weights, gradients, optimiser states", "states", states, f->columns);
        report_series(panel, "activations, logits, buffers", "activations", peak, f->columns);
        report_limit(panel, "limit", (double)limit);
    } else {
        report_series(panel, "peak memory", "plain", peak, f->columns);
    }
}

static void draw_ranks(const report_plan *p, const folds *f)
{
    enum { COMPUTE, EXCHANGE, ONCE, WAIT, STEP, PARTS };
    double part[PARTS][REPORT_RANKS] = {{0}};
    const double all = (double)p->summary.predicted_ns, work = (double)p->work_ns;
    const char *lane = p->c->vlm_plan ? "Replica" : "Rank";
    int64_t most = 0;
    for (int64_t r = 0; r < p->summary.ranks; r++)
        most = p->ns[r] < p->ns[most] ? r : most;
    for (int64_t i = 0; i < f->columns; i++) {
        const double ranks = (double)(fold_first(f, i + 1) - fold_first(f, i));
        for (int64_t r = fold_first(f, i); r < fold_first(f, i + 1); r++) {
            part[COMPUTE][i] += ((double)p->ns[r] - p->apart[r] - p->once[r]) / ranks;
            part[EXCHANGE][i] += p->apart[r] / ranks;
            part[ONCE][i] += p->once[r] / ranks;
            part[WAIT][i] += (work - (double)p->ns[r]) / ranks;
            part[STEP][i] += (all - work > 0 ? all - work : 0) / ranks;
        }
    }
    json_t *answer =
        report_text("%ss wait %s of the time in micro-batches. %s %lld waits most, %s in all.", lane,
                    show_share(p->idle).s, lane, (long long)most, show_time(work - (double)p->ns[most]).s);
    json_t *picture = report_picture(
        p->page, "columns", "ranks",
        p->c->vlm_plan ? "How even are the replicas' packs?" : "Where does each rank's time go?", answer);
    json_object_set_new(picture, "names", fold_names(f));
    json_object_set_new(picture, "axis", json_string(p->c->vlm_plan ? "replica" : "rank"));
    json_t *panel = report_panel(
        picture, p->c->vlm_plan ? "time of a replica, all steps" : "time of a rank, all steps", "ns");
    const int known = p->terms.layers > 0;
    report_series(panel, known ? "computation" : "packs", "compute", part[COMPUTE], f->columns);
    if (known) {
        report_series(panel, "all-to-all", "exchange", part[EXCHANGE], f->columns);
        report_series(panel, "once a micro-batch: ZeRO traffic not hidden, launches", "once", part[ONCE],
                      f->columns);
    }
    report_series(panel, "waiting", "wait", part[WAIT], f->columns);
    report_series(panel, "once a step", "step", part[STEP], f->columns);
    if (p->c->vlm_plan)
        json_object_set_new(
            picture, "note",
            json_string("Packs by their own time, as if all stages of a replica took the same time; what "
                        "the pipelines add is in the pictures of stages and steps."));
    else if (!known)
        json_object_set_new(
            picture, "note",
            json_string("The plan was saved without its cost: what a pack's time is made of is "
                        "not known."));
}

static hbp_status make_page(report_plan *p)
{
    cli *c = p->c;
    int64_t *measured = NULL;
    hbp_status status = report_measure(p);
    if (status >= 0 && c->timeline)
        status = report_match(p, &measured);
    if (status >= 0) {
        const int64_t ranks = p->summary.ranks;
        const folds f = {.ranks = ranks, .columns = ranks < REPORT_RANKS ? ranks : REPORT_RANKS};
        add_lead(p);
        add_facts(p);
        status = draw_methods(p);
        if (status >= 0)
            status = report_steps(p, measured);
        draw_ranks(p, &f);
        if (!c->vlm_plan)
            draw_memory(p, &f);
    }
    if (status >= 0)
        status = report_lengths(p);
    if (status >= 0 && !c->vlm_plan)
        status = report_reasons(p);
    if (status >= 0 && p->view.steps > 1)
        status = report_composition(p);
    if (status >= 0 && measured)
        report_points(p, measured);
    free(measured);
    return status;
}

/* A cost that is given must be the plan's: it predicts its very times. */
static hbp_status check_cost(const report_plan *p)
{
    const hbp_plan_view *v = &p->view;
    for (int64_t q = 0; q < v->packs; q++) {
        const int64_t ns = hbp_cost_predict_pack_ns(p->c->cost, v->pack_sp[q], v->pack_recompute[q],
                                                    v->pack_padded_tokens[q], (double)v->pack_squares[q],
                                                    v->pack_vision ? v->pack_vision[q] : 0);
        if (v->pack_offsets[q] < v->pack_offsets[q + 1] && ns != v->pack_ns[q])
            return cli_own_failure(
                "pack %lld takes %lld ns in %s and %lld ns by the cost given: the plan was made "
                "under another cost; leave it out, the plan's own is in its file unless it was "
                "saved without",
                (long long)q, (long long)v->pack_ns[q], p->c->file, (long long)ns);
    }
    return HBP_OK;
}

/* The cost that the plan was saved with, unless one is given. */
static hbp_status find_cost(cli *c)
{
    hbp_status status = hbp_plan_file_open(c->context, c->file, &c->plan_file);
    if (status >= 0 && (c->cost_file || c->model_text || c->machine_text))
        return cli_make_cost(c);
    if (status >= 0)
        status = hbp_plan_file_get_cost(c->context, c->plan_file, &c->cost);
    return status == HBP_E_INVALID ? HBP_OK : status; /* a plan that was saved without one is drawn without */
}

int report_of_plan(cli *c, json_t *page, report_columns *columns)
{
    report_plan p = {.c = c, .page = page, .columns = columns};
    p.summary.struct_size = sizeof p.summary;
    p.view.struct_size = sizeof p.view;
    p.terms.struct_size = sizeof p.terms;
    CLI_TRY(c, find_cost(c));
    CLI_TRY(c, cli_load_plan(c));
    CLI_TRY(c, hbp_plan_get_summary(c->context, c->plan, &p.summary));
    CLI_TRY(c, hbp_plan_get_view(c->plan, &p.view));
    p.step_ns = p.view.step_ns;
    if (c->vlm_plan) {
        hbp_vlm_plan_view vlm = {.struct_size = sizeof vlm};
        p.vlm.struct_size = sizeof p.vlm;
        CLI_TRY(c, hbp_vlm_plan_get_summary(c->context, c->vlm_plan, &p.vlm));
        CLI_TRY(c, hbp_vlm_plan_get_view(c->vlm_plan, &vlm));
        p.step_ns = vlm.step_ns;
    }
    hbp_plan_summary opened = {.struct_size = sizeof opened};
    CLI_TRY(c, hbp_plan_file_get_summary(c->context, c->plan_file, &opened));
    if (opened.digest != p.summary.digest || (c->vlm_plan && p.vlm.steps != p.view.steps))
        return cli_error("%s was replaced while it was read; try again", c->file);
    int wrong = c->step < 0 ? 0 : cli_check_step(c, c->step, p.summary.first_step, p.summary.steps);
    if (wrong)
        return wrong;
    if (c->cost) {
        CLI_TRY(c, hbp_cost_get_terms(c->context, c->cost, &p.terms));
        if (p.terms.ranks != p.summary.ranks && !c->vlm_plan)
            return cli_error("the cost is of %s and the plan of %s", show_number(p.terms.ranks, "GPU").s,
                             show_number(p.summary.ranks, "GPU").s);
    }
    if (c->cost && (c->cost_file || c->model_text)) {
        if (c->vlm_plan)
            return cli_usage("%s is a vision-language plan, whose stages have the costs; leave the cost out",
                             c->file);
        CLI_TRY(c, check_cost(&p));
    }
    if (c->measured_file)
        CLI_TRY(c, hbp_timeline_load(c->context, c->measured_file, &c->timeline));
    const char *note = hbp_plan_file_get_note(c->plan_file);
    if (*note)
        json_object_set_new(page, "note", report_text("%s", note));
    progress_part(1);
    hbp_status status = make_page(&p);
    free(p.ns);
    free(p.peak);
    free(p.apart);
    free(p.once);
    return status < 0 ? cli_failed(c) : 0;
}

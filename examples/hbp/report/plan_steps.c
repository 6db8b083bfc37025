/* What each rank does over the epoch, and the steps that the page can draw one by one. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../step_clock.h"
#include "report.h"

/* So many packs and operations of stages are drawn, of steps spread evenly over longer plans; so many samples
 * are listed one by one, of fewer steps yet. Above MANY_PACKS times are whole microseconds and sizes whole
 * MiB, which is finer than the page shows. */
enum { MOST_PACKS = 800000, MOST_OPERATIONS = 400000, MANY_PACKS = 60000, MOST_SAMPLES = 250000 };

static hbp_status add_pack(report_plan *p, int64_t pack)
{
    const hbp_plan_view *v = &p->view;
    hbp_pack_parts parts = {.struct_size = sizeof parts};
    if (p->c->cost && !p->c->vlm_plan) {
        const hbp_status status = hbp_cost_predict_pack_parts(
            p->c->context, p->c->cost, v->pack_sp[pack], v->pack_recompute[pack], v->pack_padded_tokens[pack],
            (double)v->pack_squares[pack], v->pack_vision ? v->pack_vision[pack] : 0, &parts);
        if (status < 0)
            return status;
    }
    for (int32_t r = v->pack_ranks[pack]; r < v->pack_ranks[pack] + v->pack_sp[pack]; r++) {
        p->ns[r] += v->pack_ns[pack];
        p->apart[r] += (double)parts.all_to_all_ns;
        p->once[r] += (double)parts.fixed_ns;
        p->peak[r] = v->pack_bytes[pack] > p->peak[r] ? v->pack_bytes[pack] : p->peak[r];
    }
    return HBP_OK;
}

hbp_status report_measure(report_plan *p)
{
    const hbp_plan_view *v = &p->view;
    const size_t ranks = (size_t)p->summary.ranks;
    step_clock t = {0};
    p->ns = calloc(ranks, sizeof *p->ns);
    p->peak = calloc(ranks, sizeof *p->peak);
    p->apart = calloc(ranks, sizeof *p->apart);
    p->once = calloc(ranks, sizeof *p->once);
    if (!step_clock_open(&t, &p->summary) || !p->ns || !p->peak || !p->apart || !p->once) {
        step_clock_close(&t);
        return cli_own_failure("out of memory for the page");
    }
    double busy_ns = 0;
    hbp_status status = HBP_OK;
    p->most_idle_share = -1;
    for (int64_t k = 0; k < v->steps && status >= 0; k++) {
        double busy = 0;
        const int64_t work = step_clock_run(&t, v, k, NULL);
        for (int64_t m = v->step_offsets[k]; m < v->step_offsets[k + 1]; m++)
            for (int64_t q = v->micro_batch_offsets[m]; q < v->micro_batch_offsets[m + 1] && status >= 0;
                 q++) {
                status = add_pack(p, q);
                busy += (double)v->pack_ns[q] * v->pack_sp[q];
            }
        const double idle = work > 0 ? 1 - busy / ((double)work * (double)ranks) : 0;
        if (idle > p->most_idle_share) {
            p->most_idle_share = idle;
            p->most_idle = k;
        }
        if (p->step_ns[k] > p->step_ns[p->slowest])
            p->slowest = k;
        p->work_ns += work;
        busy_ns += busy;
    }
    p->idle = p->work_ns > 0 ? 1 - busy_ns / ((double)p->work_ns * (double)ranks) : 0;
    step_clock_close(&t);
    return status;
}

/* ---- Steps one by one ---- */

/* Every `stride`-th step is drawn, and those that have a name or were asked for. */
int report_takes(const report_plan *p, int64_t step, int64_t stride)
{
    return step % stride == 0 || step == p->slowest || step == p->most_idle || step == p->view.steps - 1 ||
           step == p->c->step - p->summary.first_step;
}

static int64_t packs_of(const hbp_plan_view *v, int64_t step)
{
    return v->micro_batch_offsets[v->step_offsets[step + 1]] - v->micro_batch_offsets[v->step_offsets[step]];
}

/* A column of the steps that are drawn, of their micro-batches or packs. */
typedef struct taken {
    const report_plan *p;
    int64_t stride; /* of steps drawn */
    int64_t listed; /* of steps whose samples are listed; 0: none */
    int64_t tick_ns;
    int64_t tick_bytes;
    const int64_t *measured_ns;
} taken;

#define EACH_STEP(t, k)                                                                                      \
    for (int64_t k = 0; k < (t)->p->view.steps; k++)                                                         \
        if (report_takes((t)->p, k, (t)->stride))
#define EACH_PACK(t, k, q)                                                                                   \
    EACH_STEP(t, k)                                                                                          \
    for (int64_t q = (t)->p->view.micro_batch_offsets[(t)->p->view.step_offsets[k]],                         \
                 q##_end = (t)->p->view.micro_batch_offsets[(t)->p->view.step_offsets[k + 1]];               \
         q < q##_end; q++)

static int is_listed(const taken *t, int64_t step)
{
    return t->listed && report_takes(t->p, step, t->listed);
}

static void put_steps(const taken *t)
{
    report_columns *c = t->p->columns;
    const hbp_plan_view *v = &t->p->view;
    report_column(c, "step_number");
    EACH_STEP(t, k)
    report_put(c, t->p->summary.first_step + k);
    report_column(c, "step_micro_batches");
    EACH_STEP(t, k)
    report_put(c, v->step_offsets[k + 1] - v->step_offsets[k]);
    report_column(c, "step_ticks");
    EACH_STEP(t, k)
    report_put(c, t->p->step_ns[k] / t->tick_ns);
    report_column(c, "step_listed");
    EACH_STEP(t, k)
    report_put(c, is_listed(t, k));
    report_column(c, "micro_batch_packs");
    EACH_STEP(t, k)
    for (int64_t m = v->step_offsets[k]; m < v->step_offsets[k + 1]; m++)
        report_put(c, v->micro_batch_offsets[m + 1] - v->micro_batch_offsets[m]);
    report_column(c, "pack_gap");
    EACH_STEP(t, k)
    for (int64_t m = v->step_offsets[k]; m < v->step_offsets[k + 1]; m++) {
        int64_t next = 0;
        for (int64_t q = v->micro_batch_offsets[m]; q < v->micro_batch_offsets[m + 1]; q++) {
            report_put_signed(c, v->pack_ranks[q] - next);
            next = v->pack_ranks[q] + v->pack_sp[q];
        }
    }
}

static void put_packs(const taken *t)
{
    report_columns *c = t->p->columns;
    const hbp_plan_view *v = &t->p->view;
#define COLUMN(name, value)                                                                                  \
    report_column(c, name);                                                                                  \
    EACH_PACK(t, k, q) report_put(c, value);
    COLUMN("pack_sp", v->pack_sp[q])
    COLUMN("pack_recompute", v->pack_recompute[q])
    COLUMN("pack_ticks", (v->pack_ns[q] + t->tick_ns / 2) / t->tick_ns)
    COLUMN("pack_tokens", v->pack_tokens[q])
    COLUMN("pack_padding", v->pack_padded_tokens[q] - v->pack_tokens[q])
    COLUMN("pack_samples", v->pack_offsets[q + 1] - v->pack_offsets[q])
    COLUMN("pack_bytes", (v->pack_bytes[q] + t->tick_bytes / 2) / t->tick_bytes)
    COLUMN("pack_capacity", v->pack_capacity[q])
    if (v->pack_vision) {
        COLUMN("pack_vision", v->pack_vision[q])
    }
    if (t->measured_ns) {
        COLUMN("pack_measured", t->measured_ns[q] < 0 ? 0 : 1 + t->measured_ns[q] / t->tick_ns)
    }
#undef COLUMN
}

static void put_samples(const taken *t)
{
    report_columns *c = t->p->columns;
    const hbp_plan_view *v = &t->p->view;
    report_column(c, "sample_ids");
    EACH_PACK(t, k, q)
    for (int64_t i = v->pack_offsets[q]; is_listed(t, k) && i < v->pack_offsets[q + 1]; i++)
        report_put(c, v->sample_ids[i]);
    report_column(c, "sample_tokens");
    EACH_PACK(t, k, q)
    for (int64_t i = v->pack_offsets[q]; is_listed(t, k) && i < v->pack_offsets[q + 1]; i++)
        report_put(c, v->sample_tokens[i]);
}

static json_t *terms_json(const hbp_cost_terms *t)
{
    json_t *degrees = json_array();
    for (int32_t i = 0; i < t->degrees; i++)
        json_array_append_new(degrees, json_pack("{s:i,s:f,s:f}", "sp", (int)t->degree[i], "latency_ns",
                                                 t->sp_latency_ns[i], "ns_per_token", t->sp_ns_per_token[i]));
    return json_pack("{s:f,s:i,s:f,s:f,s:f,s:o}", "recompute_communication", t->recompute_communication,
                     "layers", (int)t->layers, "pack_ns", t->pack_ns, "traffic_ns", t->traffic_ns,
                     "compute_overlap", t->compute_overlap, "degrees", degrees);
}

static void add_named(const report_plan *p, json_t *picture)
{
    const int64_t first = p->summary.first_step;
    json_t *named = json_pack("[{s:s,s:I,s:o}]", "name", "slowest", "step", (json_int_t)(first + p->slowest),
                              "about", report_text("%s", show_time((double)p->step_ns[p->slowest]).s));
    if (!p->c->vlm_plan)
        json_array_append_new(
            named,
            json_pack("{s:s,s:I,s:o}", "name", "most waiting", "step", (json_int_t)(first + p->most_idle),
                      "about", report_text("ranks wait %s of its time", show_share(p->most_idle_share).s)));
    json_object_set_new(picture, "named", named);
}

/* Which steps the page holds, and the samples of which. */
static json_t *coverage(const taken *t, int64_t drawn, int64_t listed)
{
    const int64_t steps = t->p->view.steps;
    if (drawn == steps && listed == steps)
        return NULL;
    if (drawn == steps)
        return report_text(
            "All %s are here; samples are listed one by one in %s of them, spread evenly; `hbp report "
            "--step N` lists those of step N, too.",
            show_number(steps, "step").s, show_count(listed).s);
    return report_text("%s of the plan's %s are here, spread evenly; samples are listed one by one in %s.",
                       show_number(drawn, "step").s, show_count(steps).s, show_count(listed).s);
}

/* Packs of ranks, or the operations of stages of a vision-language plan. */
static json_t *begin_steps(const report_plan *p)
{
    const int is_vlm = p->c->vlm_plan != NULL;
    json_t *answer =
        is_vlm
            ? report_text("Forward and backward of every micro-batch on the stages of each replica. Stages "
                          "wait %s of all steps; hatched is waiting, and pointing at it says for what.",
                          show_share(p->vlm.bubble).s)
            : report_text("Ranks wait %s of the time in micro-batches%s. A pack has the colour of "
                          "its SP degree; hatched is waiting, and pointing at a pack says for whom and what "
                          "it holds.",
                          show_share(p->idle).s, p->view.steps > 1 ? ", over all steps" : "");
    json_t *picture =
        report_picture(p->page, "timeline", "step",
                       is_vlm              ? "What runs in a step, which stages wait, and for what?"
                       : p->view.steps > 1 ? "What is in a step, which ranks wait, and for whom?"
                                           : "What is in the step, which ranks wait, and for whom?",
                       answer);
    json_t *rest = is_vlm ? json_pack("{s:s,s:s,s:i,s:i,s:i}", "mode", "stages", "lane", "stage", "lanes",
                                      (int)(p->vlm.replicas * p->vlm.stages), "stages", (int)p->vlm.stages,
                                      "chunks", (int)(p->vlm.stages * p->vlm.virtual_stages))
                          : json_pack("{s:s,s:s,s:i,s:i}", "mode", "plan", "lane", "rank", "lanes",
                                      (int)p->summary.ranks, "set", (int)p->summary.lockstep_ranks);
    json_object_update(picture, rest);
    json_decref(rest);
    return picture;
}

static int64_t stride_of(const report_plan *p)
{
    int64_t stride = (p->view.packs - 1) / MOST_PACKS + 1;
    if (p->c->vlm_plan) {
        const int64_t rows = 2 * (int64_t)p->vlm.stages * p->vlm.virtual_stages;
        const int64_t by_rows = (p->view.packs * rows - 1) / MOST_OPERATIONS + 1;
        stride = by_rows > stride ? by_rows : stride;
    }
    return stride;
}

hbp_status report_steps(report_plan *p, const int64_t *measured_ns)
{
    const hbp_plan_view *v = &p->view;
    taken t = {.p = p, .measured_ns = measured_ns};
    int64_t drawn = 0, packs = 0, listed = 0;
    t.stride = stride_of(p);
    t.listed = t.stride * ((v->samples / t.stride) / MOST_SAMPLES + 1);
    EACH_STEP(&t, k)
    {
        drawn++;
        packs += packs_of(v, k);
        listed += is_listed(&t, k);
    }
    t.tick_ns = packs > MANY_PACKS ? 1000 : 1;
    t.tick_bytes = packs > MANY_PACKS ? 1 << 20 : 1;
    json_t *picture = begin_steps(p);
    json_object_set_new(picture, "tick_ns", json_integer(t.tick_ns));
    json_object_set_new(picture, "tick_bytes", json_integer(t.tick_bytes));
    if (p->c->step >= 0)
        json_object_set_new(picture, "shown", json_integer(p->c->step));
    if (p->terms.layers) {
        json_object_set_new(picture, "terms", terms_json(&p->terms));
        json_object_set_new(picture, "limit_bytes", json_integer(p->terms.limit_bytes));
    }
    json_object_set_new(picture, "unlisted",
                        report_text("its samples are not in this page: hbp show %s --step STEP --rank RANK",
                                    show_name(p->c->file).s));
    if (v->steps > 1)
        add_named(p, picture);
    json_t *note = coverage(&t, drawn, listed);
    if (note)
        json_object_set_new(picture, "note", note);
    put_steps(&t);
    put_packs(&t);
    put_samples(&t);
    return p->c->vlm_plan ? report_operations(p, t.stride, t.tick_ns) : HBP_OK;
}

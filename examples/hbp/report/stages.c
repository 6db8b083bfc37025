/* The pipelines of a vision-language plan: what every stage runs in the steps that are drawn, and the
 * pictures of stages. */
#include <stdio.h>
#include <stdlib.h>

#include "report.h"

/* Where the time of a stage goes, in the steps that are drawn, all replicas. */
typedef struct stage_share {
    double forward_ns;
    double backward_ns;
    double waiting_ns;
} stage_share;

/* The runs of all replicas of the steps that are drawn, one behind the other: by step, replica, stage and
 * start, as hbp_pipeline_run_view has operations. */
typedef struct stage_runs {
    hbp_pipeline_run **run;
    int64_t count;
} stage_runs;

static void close_runs(stage_runs *runs)
{
    for (int64_t i = 0; i < runs->count; i++)
        hbp_pipeline_run_free(runs->run[i]);
    free(runs->run);
}

static hbp_status open_runs(const report_plan *p, int64_t stride, stage_runs *runs)
{
    hbp_status status = HBP_OK;
    int64_t steps = 0;
    for (int64_t k = 0; k < p->view.steps; k++)
        steps += report_takes(p, k, stride);
    *runs = (stage_runs){.run = calloc((size_t)(steps * p->vlm.replicas), sizeof *runs->run)};
    if (!runs->run)
        return cli_own_failure("out of memory for the page");
    for (int64_t k = 0; k < p->view.steps && status >= 0; k++)
        for (int32_t r = 0; report_takes(p, k, stride) && r < p->vlm.replicas && status >= 0; r++) {
            status = hbp_vlm_plan_run_step(p->c->context, p->c->vlm_plan, k, r, &runs->run[runs->count]);
            runs->count += status >= 0;
        }
    return status;
}

/* Rounded from begin and end, so that nothing adds up over a step. */
static int64_t ticks(int64_t ns, int64_t tick_ns)
{
    return (ns + tick_ns / 2) / tick_ns;
}

#define EACH_OPERATION(runs, v, i)                                                                           \
    for (int64_t run_ = 0; run_ < (runs)->count; run_++)                                                     \
        if (hbp_pipeline_run_get_view((runs)->run[run_], &(v)) >= 0)                                         \
            for (int64_t i = 0; i < (v).operations; i++)

static void put_operations(report_columns *c, const stage_runs *runs, int64_t tick_ns)
{
    hbp_pipeline_run_view v = {.struct_size = sizeof v};
#define COLUMN(name, value)                                                                                  \
    report_column(c, name);                                                                                  \
    EACH_OPERATION(runs, v, i)                                                                               \
    report_put(c, value);
    COLUMN("operation_chunk", v.operation_chunks[i])
    COLUMN("operation_micro_batch", v.operation_micro_batches[i])
    COLUMN("operation_direction", v.operation_directions[i] == HBP_BACKWARD)
    COLUMN("operation_free",
           ticks(v.operation_starts[i], tick_ns) - (i && v.operation_stages[i] == v.operation_stages[i - 1]
                                                        ? ticks(v.operation_ends[i - 1], tick_ns)
                                                        : 0))
    COLUMN("operation_ticks", ticks(v.operation_ends[i], tick_ns) - ticks(v.operation_starts[i], tick_ns))
#undef COLUMN
}

/* Every replica is there for the whole step, which its slowest ends. */
static void add_shares(const report_plan *p, const stage_runs *runs, int64_t stride, stage_share *share)
{
    hbp_pipeline_run_view v = {.struct_size = sizeof v};
    double drawn_ns = 0;
    for (int64_t k = 0; k < p->view.steps; k++)
        drawn_ns += report_takes(p, k, stride) ? (double)p->step_ns[k] : 0;
    EACH_OPERATION(runs, v, i)
    {
        const double ns = (double)(v.operation_ends[i] - v.operation_starts[i]);
        stage_share *of = &share[v.operation_stages[i]];
        *(v.operation_directions[i] == HBP_FORWARD ? &of->forward_ns : &of->backward_ns) +=
            ns / p->vlm.replicas;
    }
    for (int32_t s = 0; s < p->vlm.stages; s++)
        share[s].waiting_ns = drawn_ns - share[s].forward_ns - share[s].backward_ns;
}

static void draw_shares(const report_plan *p, const stage_share *share, int draws_all)
{
    const int32_t stages = p->vlm.stages < REPORT_RANKS ? p->vlm.stages : REPORT_RANKS;
    double forward[REPORT_RANKS], backward[REPORT_RANKS], waiting[REPORT_RANKS];
    int32_t most = 0, least = 0;
    json_t *names = json_array();
    for (int32_t s = 0; s < p->vlm.stages; s++) {
        most = share[s].waiting_ns > share[most].waiting_ns ? s : most;
        least = share[s].waiting_ns < share[least].waiting_ns ? s : least;
    }
    for (int32_t s = 0; s < stages; s++) {
        forward[s] = share[s].forward_ns;
        backward[s] = share[s].backward_ns;
        waiting[s] = share[s].waiting_ns;
        json_array_append_new(names, report_text("%d", (int)s));
    }
    const double all = share[most].forward_ns + share[most].backward_ns + share[most].waiting_ns;
    const shown most_share = show_share(all > 0 ? share[most].waiting_ns / all : 0);
    json_t *answer =
        p->vlm.stages == 1
            ? report_text("The only stage waits %s of the time: replicas for the slowest of them.",
                          most_share.s)
            : report_text(
                  "Stage %d waits most, %s of the time, and stage %d least, %s. A stage waits for its "
                  "micro-batches to come through the other stages%s.",
                  (int)most, most_share.s, (int)least,
                  show_share(all > 0 ? share[least].waiting_ns / all : 0).s,
                  p->vlm.replicas > 1 ? ", and for the slowest replica" : "");
    json_t *picture =
        report_picture(p->page, "columns", "stages", "Where does each stage's time go?", answer);
    if (stages < p->vlm.stages)
        json_object_set_new(
            picture, "note",
            report_text("The first %s of %s.", show_count(stages).s, show_number(p->vlm.stages, "stage").s));
    json_object_set_new(picture, "names", names);
    json_object_set_new(picture, "axis", json_string("stage"));
    json_t *panel = report_panel(picture,
                                 draws_all ? "time of a stage, all steps, mean of the replicas"
                                           : "time of a stage in the steps drawn, mean of the replicas",
                                 "ns");
    report_series(panel, "forward", "forward", forward, stages);
    report_series(panel, "backward", "backward", backward, stages);
    report_series(panel, "waiting", "wait", waiting, stages);
}

static void draw_memory(const report_plan *p, const hbp_vlm_plan_view *v)
{
    const hbp_vlm_plan_summary *s = &p->vlm;
    json_t *memory = report_picture(
        p->page, "bars", "stage-memory", "Does each stage fit?",
        report_text("%s: the fullest stage peaks at %s of %s.",
                    s->peak_bytes <= s->limit_bytes || !s->limit_bytes ? "They fit" : "They do not",
                    show_bytes((double)s->peak_bytes).s, show_bytes((double)s->limit_bytes).s));
    json_object_set_new(memory, "unit", json_string("bytes"));
    for (int64_t i = 0; i < v->stages; i++)
        report_bar(memory, show_real("stage %.0f", (double)i).s, (double)v->stage_bytes[i], "", 0);
    if (s->limit_bytes)
        report_limit(memory, "limit", (double)s->limit_bytes);
}

hbp_status report_operations(report_plan *p, int64_t stride, int64_t tick_ns)
{
    stage_runs runs = {0};
    hbp_vlm_plan_view v = {.struct_size = sizeof v};
    stage_share *share = calloc((size_t)p->vlm.stages, sizeof *share);
    hbp_status status = share ? open_runs(p, stride, &runs) : cli_own_failure("out of memory for the page");
    if (status >= 0)
        status = hbp_vlm_plan_get_view(p->c->vlm_plan, &v);
    if (status >= 0) {
        put_operations(p->columns, &runs, tick_ns);
        add_shares(p, &runs, stride, share);
        draw_shares(p, share, stride == 1);
        draw_memory(p, &v);
    }
    close_runs(&runs);
    free(share);
    return status;
}

/* A step of a vision-language plan as a timeline: a line for each stage of each replica, time to the right.
 */
#include <stdio.h>
#include <string.h>

#include "cli.h"

/* Characters before a line: "replica 12, stage 3", or "12, 3" on a narrow screen. */
enum { LABEL = 19, NARROW_LABEL = 7, NARROW = 56 };

/* The character of the operation that runs at `ns`, '.' while none does; operations of a stage are `count`
 * from `first` on. */
static char look_at(const hbp_pipeline_run_view *v, int64_t first, int64_t count, double ns)
{
    for (int64_t i = first; i < first + count; i++)
        if ((double)v->operation_starts[i] <= ns && ns < (double)v->operation_ends[i])
            return v->operation_directions[i] == HBP_FORWARD ? 'F' : 'B';
    return '.';
}

static void print_stage(const hbp_pipeline_run_view *v, int64_t stage, int64_t replica, int64_t step_ns,
                        int label_width, int width)
{
    const int64_t count = v->operations / v->stages, first = stage * count;
    char label[64], line[CHART_MOST + 1];
    int64_t busy = 0;
    for (int64_t i = first; i < first + count; i++)
        busy += v->operation_ends[i] - v->operation_starts[i];
    for (int i = 0; i < width; i++)
        line[i] = look_at(v, first, count, (i + .5) / width * (double)step_ns);
    line[width] = '\0';
    snprintf(label, sizeof label, label_width == LABEL ? "replica %lld, stage %lld" : "%lld, %lld",
             (long long)replica, (long long)stage);
    fprintf(screen_file(), "  %-*s  ", label_width, label);
    int style = -1;
    for (int i = 0; i < width; i++) {
        const int own = line[i] == '.' ? STYLE_WAITING : STYLE_BAR;
        if (own != style)
            fprintf(screen_file(), "%s%s", i ? screen_style(STYLE_NONE) : "", screen_style(own));
        style = own;
        fputc(line[i], screen_file());
    }
    fprintf(screen_file(), "%s  %*s\n", screen_style(STYLE_NONE), CHART_SHARE,
            show_share(step_ns > 0 ? 1 - (double)busy / (double)step_ns : 0).s);
}

hbp_status print_stage_lines(const cli *c, int64_t row, int64_t step_ns)
{
    hbp_vlm_plan_summary s = {.struct_size = sizeof s};
    hbp_pipeline_run_view v = {.struct_size = sizeof v};
    hbp_status status = hbp_vlm_plan_get_summary(c->context, c->vlm_plan, &s);
    const int label = screen_width() && screen_width() < NARROW ? NARROW_LABEL : LABEL;
    const char *named = label == LABEL ? "" : "replica, stage";
    const int width = chart_width(2 + label + 2 + 2 + CHART_SHARE);
    const int64_t first = c->rank < 0 ? 0 : c->rank;
    int64_t end = c->rank < 0 ? s.replicas : c->rank + 1;
    if (status >= 0 && screen_width() && (end - first) * s.stages > CHART_LINES)
        end = first + (s.stages > CHART_LINES ? 1 : CHART_LINES / s.stages);
    fprintf(screen_file(), "  %s%s%*s%s\n", screen_style(STYLE_HEADER), named,
            label + 2 + width + 2 + CHART_SHARE - (int)strlen(named), "waiting", screen_style(STYLE_NONE));
    for (int64_t r = first; r < end && status >= 0; r++) {
        hbp_pipeline_run *run = NULL;
        status = hbp_vlm_plan_run_step(c->context, c->vlm_plan, row, (int32_t)r, &run);
        if (status >= 0)
            status = hbp_pipeline_run_get_view(run, &v);
        for (int64_t i = 0; status >= 0 && i < v.stages; i++)
            print_stage(&v, i, r, step_ns, label, width);
        hbp_pipeline_run_free(run);
    }
    if (status < 0)
        return status;
    say("  F forward and B backward of a micro-batch, . waiting for other stages and for the slowest "
        "replica, "
        "at the right its share of the step\n");
    if (c->rank < 0 && end < s.replicas)
        say("  replicas 0 to %lld of %s; --rank R shows replica R, --wide all\n", (long long)end - 1,
            show_count(s.replicas).s);
    return HBP_OK;
}

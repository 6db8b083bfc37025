#include <stdio.h>

#include "cli.h"

int cli_trace(cli *c)
{
    if (!c->output)
        return cli_usage("hbp trace needs -o FILE");
    CLI_TRY(c, cli_load_plan(c));
    int64_t first = c->step < 0 ? 0 : c->step;
    int64_t count = 0;
    hbp_plan_get_step_ns(c->plan, &count);
    if (first >= count)
        return cli_error("there is no step %lld; the plan has %lld", (long long)first, (long long)count);
    int64_t steps = c->steps == 0 || c->steps > count - first ? count - first : c->steps;
    CLI_TRY(c, hbp_plan_write_trace(c->context, c->plan, first, steps, c->output));
    cli_clear_progress();
    if (c->json) {
        c->result = json_pack("{s:s,s:I,s:I}", "path", c->output, "first_step", (json_int_t)first, "steps",
                              (json_int_t)steps);
        return cli_print_json(c);
    }
    printf("wrote %s: %s steps; open it at ui.perfetto.dev\n", c->output, show_count(steps).s);
    return 0;
}

#include <stdio.h>

#include "cli.h"

int cli_validate(cli *c)
{
    static const job_part parts[] = {{"validating", 100, "load 40, read 20, validate 40x3"}, {NULL, 0, NULL}};
    progress_begin(parts);
    const cli_object *object = cli_find_object(c);
    if (object) {
        int wrong = cli_load_object(c, object);
        return wrong ? wrong : object->validate(c);
    }
    if (c->graph_text || c->schedule_file || c->barriers)
        return cli_usage("--graph, --schedule and --barriers are for task schedules and their runs");
    if (c->machine_text && !c->model_text)
        return cli_usage("--machine needs --model, or --graph of a task schedule: they go together");
    CLI_TRY(c, cli_load_plan(c));
    hbp_plan_summary s = {.struct_size = sizeof s};
    CLI_TRY(c, hbp_plan_get_summary(c->context, c->plan, &s));
    CLI_TRY(c, cli_check_cut(c, s.steps == 1 && !cli_is_part(&s) && !c->vlm_plan));
    if (c->lengths_file) {
        CLI_TRY(c, cli_read_lengths(c, c->lengths_file));
        CLI_TRY(c, cli_cut_lengths(c, c->lengths_file));
    }
    if (c->model_text || c->cost_file)
        CLI_TRY(c, cli_make_cost(c));
    hbp_status status = hbp_plan_validate(c->context, c->plan, c->lengths, c->cost);
    if (status >= 0 && c->vlm_plan)
        status = hbp_vlm_plan_validate(c->context, c->vlm_plan, c->lengths);
    cli_finish_progress();
    if (c->json) {
        c->result = json_pack("{s:b,s:s,s:s,s:b,s:b}", "valid", status >= 0, "message", cli_message(c),
                              "digest", show_digest(s.digest).s, "against_lengths", c->lengths != NULL,
                              "against_cost", c->cost != NULL);
        int printed = cli_print_json(c);
        return printed ? printed : status < 0;
    }
    if (status < 0)
        return cli_failed(c);
    const char *held = cli_is_part(&s)                  ? ", holds a part of the data set"
                       : c->skip || c->samples_per_step ? ", holds these samples of the data set"
                                                        : ", holds the data set's samples";
    say("%s keeps every promise%s%s%s, digest %s\n", show_name(c->file).s, c->lengths ? held : "",
        c->cost ? ", fits the machine" : "",
        c->vlm_plan ? ", its stages and steps take what its layers and packs do" : "",
        show_digest(s.digest).s);
    return 0;
}

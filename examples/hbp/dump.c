#include "cli.h"
#include "hbp/io.h"

static hbp_status write_json(const cli *c, const cli_object *object, const char *path)
{
    if (object)
        return object->dump(c, path);
    return c->vlm_plan ? hbp_vlm_plan_write_json(c->context, c->vlm_plan, path)
                       : hbp_plan_write_json(c->context, c->plan, path);
}

int cli_dump(cli *c)
{
    static const job_part parts[] = {{"writing", 100, "load 20, json 80"}, {NULL, 0, NULL}};
    progress_begin(parts);
    const cli_object *object = cli_find_object(c);
    int wrong = object ? cli_load_object(c, object) : 0;
    if (wrong)
        return wrong;
    if (!object)
        CLI_TRY(c, cli_load_plan(c));
    CLI_TRY(c, write_json(c, object, c->output ? c->output : "/dev/stdout"));
    cli_finish_progress();
    if (!c->output)
        return 0;
    if (c->json) {
        c->result = json_pack("{s:o}", "path", json_path(c->output));
        return cli_print_json(c);
    }
    say("wrote %s\n", show_name(c->output).s);
    return 0;
}

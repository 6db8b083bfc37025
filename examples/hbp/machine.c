/* hbp machine: the presets side by side, or one machine: every field, and where it is from. */
#include <stdio.h>

#include "cli.h"

static json_t *preset_json(const char *name, const hbp_machine_fields *f)
{
    return json_pack(
        "{s:s,s:i,s:i,s:I,s:o,s:o,s:o,s:o}", "name", name, "gpus_per_node", (int)f->gpus_per_node,
        "domain_gpus", (int)f->domain_gpus, "hbm_bytes", (json_int_t)f->hbm_bytes, "hbm_bytes_per_s",
        json_number(f->hbm_bytes_per_s), "flops_per_s", json_number(f->flops_per_s), "nvlink_bytes_per_s",
        json_number(f->nvlink_bytes_per_s), "network_bytes_per_s", json_number(f->network_bytes_per_s));
}

static void add_preset(table *t, const char *name, const hbp_machine_fields *f)
{
    table_add(t, "%s", name);
    table_add(t, "%d", (int)f->gpus_per_node);
    table_add(t, "%d", (int)f->domain_gpus);
    table_add_text(t, show_bytes((double)f->hbm_bytes));
    table_add_text(t, show_real("%.0f GB/s", f->hbm_bytes_per_s / 1e9));
    table_add_text(t, show_real("%.0f TFLOP/s", f->flops_per_s / 1e12));
    table_add_text(t, show_real("%.0f GB/s", f->nvlink_bytes_per_s / 1e9));
    table_add_text(t, show_real("%.0f GB/s", f->network_bytes_per_s / 1e9));
}

static int list(cli *c)
{
    const char *name;
    table t;
    json_t *machines = json_array();
    if (!c->json)
        table_begin(&t, 8,
                    (const char *[]){"<machine", "GPUs a node", "NVLink domain", "memory", "its bandwidth",
                                     "bf16 peak", "NVLink", "network a GPU"});
    for (int64_t i = 0; (name = hbp_preset_get_name("machine", i)) != NULL; i++) {
        hbp_machine_fields fields = {.struct_size = sizeof fields};
        hbp_machine_free(c->machine);
        c->machine = NULL;
        CLI_TRY(c, hbp_machine_create_preset(c->context, name, &c->machine));
        CLI_TRY(c, hbp_machine_get_fields(c->context, c->machine, &fields));
        if (c->json)
            json_array_append_new(machines, preset_json(name, &fields));
        else
            add_preset(&t, name, &fields);
    }
    c->result = json_pack("{s:o}", "machines", machines);
    if (c->json)
        return cli_print_json(c);
    table_end(&t);
    say("\nlinks: one direction, as a GPU reaches it. hbp machine NAME:N says more of N nodes; "
        "NAME,network_bytes_per_s=25e9 replaces fields, profile.json is one that hbp probe -o wrote\n");
    return 0;
}

int cli_machine(cli *c)
{
    if (!c->file && (c->set || c->nodes))
        return cli_usage("--%s is for one machine; name it, as in hbp machine h100:4",
                         c->set ? "set" : "nodes");
    if (!c->file)
        return list(c);
    CLI_TRY(c, cli_make_machine(c));
    int status = cli_print_machine(c);
    hbp_machine_fields f = {.struct_size = sizeof f};
    if (status || c->json || hbp_machine_get_fields(c->context, c->machine, &f) < 0)
        return status;
    const int64_t gpus = (int64_t)f.nodes * f.gpus_per_node;
    say("\n%s: %s of memory, %s\n", show_number(gpus, "GPU").s,
        show_bytes((double)gpus * (double)f.hbm_bytes).s,
        show_real("%.1f PFLOP/s", (double)gpus * f.flops_per_s / 1e15).s);
    return 0;
}

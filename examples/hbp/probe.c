#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "hbp/io.h"

enum { AS_COUNT, AS_BYTES, AS_RATE, AS_FLOPS, AS_SHARE, AS_NS };

static const struct {
    const char *name;
    size_t offset;
    int is_integer; /* bytes of the integer; 0: double */
    int show;
} fields[] = {
#define FIELD(field, show)                                                                                   \
    {                                                                                                        \
#field, offsetof(hbp_machine_fields, field), INTEGER, show                                           \
    }
#define INTEGER 4
    FIELD(nodes, AS_COUNT),
    FIELD(gpus_per_node, AS_COUNT),
    FIELD(domain_gpus, AS_COUNT),
    FIELD(cpu_packages, AS_COUNT),
    FIELD(numa_nodes, AS_COUNT),
    FIELD(cores, AS_COUNT),
    FIELD(processing_units, AS_COUNT),
#undef INTEGER
#define INTEGER 8
    FIELD(cpu_memory_bytes, AS_BYTES),
    FIELD(hbm_bytes, AS_BYTES),
#undef INTEGER
#define INTEGER 0
    FIELD(hbm_bytes_per_s, AS_RATE),
    FIELD(flops_per_s, AS_FLOPS),
    FIELD(gemm_efficiency, AS_SHARE),
    FIELD(attention_efficiency, AS_SHARE),
    FIELD(nvlink_bytes_per_s, AS_RATE),
    FIELD(network_bytes_per_s, AS_RATE),
    FIELD(nvlink_latency_ns, AS_NS),
    FIELD(network_latency_ns, AS_NS),
#undef INTEGER
#undef FIELD
};

#define FIELD_COUNT (sizeof fields / sizeof *fields)

static double read_field(const hbp_machine_fields *all, size_t index)
{
    const char *at = (const char *)all + fields[index].offset;
    int32_t small;
    int64_t large;
    double real;
    switch (fields[index].is_integer) {
    case 4:
        memcpy(&small, at, sizeof small);
        return small;
    case 8:
        memcpy(&large, at, sizeof large);
        return (double)large;
    default:
        memcpy(&real, at, sizeof real);
        return real;
    }
}

static shown show_field(double value, int show)
{
    switch (show) {
    case AS_BYTES:
        return show_bytes(value);
    case AS_RATE:
        return show_real("%.1f GB/s", value / 1e9);
    case AS_FLOPS:
        return show_flops(value);
    case AS_SHARE:
        return show_share(value);
    case AS_NS:
        return show_time(value);
    default:
        return show_count((int64_t)value);
    }
}

static hbp_status apply_file(cli *c, const char *path, int is_topology, int *unreadable)
{
    int64_t bytes = 0;
    char *data = cli_read_file(path, &bytes);
    if (!data) {
        *unreadable = 1;
        return HBP_E_SYSTEM;
    }
    hbp_status status = is_topology
                            ? hbp_machine_apply_nccl_topology(c->context, c->machine, data, bytes)
                            : hbp_machine_apply_nccl_tests(c->context, c->machine, (int32_t)c->collective,
                                                           (int32_t)c->ranks, data, bytes);
    free(data);
    return status;
}

static int apply(cli *c, const char *path, int is_topology)
{
    int unreadable = 0;
    hbp_status status = apply_file(c, path, is_topology, &unreadable);
    if (unreadable)
        return cli_error("cannot read %s: %s", path, strerror(errno));
    if (status == HBP_E_FORMAT) /* of bytes, which have no name */
        return cli_error("%s: %s", path, cli_message(c));
    return status < 0 ? cli_failed(c) : 0;
}

static int print_json(cli *c, const hbp_machine_fields *all)
{
    json_t *values = json_object();
    for (size_t i = 0; i < FIELD_COUNT; i++) {
        double value = read_field(all, i);
        const char *source = hbp_machine_get_source(c->machine, fields[i].name);
        json_object_set_new(
            values, fields[i].name,
            json_pack("{s:o,s:s}", "value",
                      fields[i].is_integer ? json_integer((json_int_t)value) : json_number(value), "source",
                      source ? source : "unknown"));
    }
    c->result =
        json_pack("{s:s,s:o,s:o,s:o}", "name", hbp_machine_get_name(c->machine), "fields", values,
                  "collectives", measured_collectives(c->machine), "rates", measured_rates(c->machine));
    return cli_print_json(c);
}

static void print_text(cli *c, const hbp_machine_fields *all)
{
    say("%s\n\n", hbp_machine_get_name(c->machine));
    table t;
    table_begin(&t, 3, (const char *[]){"<field", "value", "<source"});
    for (size_t i = 0; i < FIELD_COUNT; i++) {
        const char *source = hbp_machine_get_source(c->machine, fields[i].name);
        double value = read_field(all, i);
        int unknown = !source || strcmp(source, "unknown") == 0;
        table_add(&t, "%s", fields[i].name);
        table_add_text(&t, unknown ? show_real("-", 0) : show_field(value, fields[i].show));
        table_add(&t, "%s", source ? source : "unknown");
    }
    table_end(&t);
    print_measured(c->machine);
    if (all->gpus_per_node == 0)
        say("\nno GPU was recognised; --machine NAME or --set gpus_per_node=8,... describes one\n");
}

int cli_print_machine(cli *c)
{
    hbp_machine_fields all = {.struct_size = sizeof all};
    CLI_TRY(c, hbp_machine_get_fields(c->context, c->machine, &all));
    cli_finish_progress();
    if (c->json)
        return print_json(c, &all);
    print_text(c, &all);
    return 0;
}

int cli_probe(cli *c)
{
    if (c->machine_text) {
        CLI_TRY(c, cli_make_machine(c));
    } else if (c->executor_command) {
        CLI_TRY(c, cli_run_executor(c));
        CLI_TRY(c, cli_as_usage(c, cli_set_machine(c)));
    } else {
        int32_t type = c->xml         ? HBP_PROBE_XML_FILE
                       : c->synthetic ? HBP_PROBE_SYNTHETIC
                                      : HBP_PROBE_THIS_MACHINE;
        CLI_TRY(c, hbp_machine_probe(c->context, type, c->xml ? c->xml : c->synthetic, &c->machine));
        CLI_TRY(c, cli_as_usage(c, cli_set_machine(c)));
    }
    int status = c->nccl_topo ? apply(c, c->nccl_topo, 1) : 0;
    if (status == 0 && c->nccl_tests)
        status = apply(c, c->nccl_tests, 0);
    if (status)
        return status;
    if (c->output)
        CLI_TRY(c, hbp_machine_save(c->context, c->machine, c->output));
    status = cli_print_machine(c);
    if (!status && c->output && !c->json)
        say("\nwrote %s; use it as --machine %s\n", show_name(c->output).s, show_name(c->output).s);
    return status;
}

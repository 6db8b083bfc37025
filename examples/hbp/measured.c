/* What was measured of a machine: collectives by the number of GPUs, rates by size. */
#include <stdio.h>

#include "cli.h"

enum { MOST_RANKS = 65536 };

static const char *const collectives[HBP_COLLECTIVE_COUNT] = {"all-to-all", "all-gather", "reduce-scatter",
                                                              "all-reduce"};
static const char *const rates[HBP_RATE_COUNT] = {"gemm", "attention", "copy"};

shown show_flops(double per_s)
{
    return per_s < 1e12 ? show_real("%.1f GFLOP/s", per_s / 1e9) : show_real("%.0f TFLOP/s", per_s / 1e12);
}

json_t *measured_collectives(const hbp_machine *machine)
{
    json_t *rows = json_array();
    for (int32_t k = 0; k < HBP_COLLECTIVE_COUNT; k++)
        for (int32_t ranks = 1; ranks <= MOST_RANKS; ranks++) {
            double latency, rate;
            const char *source;
            if (!hbp_machine_get_collective(machine, k, ranks, &latency, &rate, &source))
                continue;
            double spread = hbp_machine_get_collective_spread(machine, k, ranks);
            json_array_append_new(rows, json_pack("{s:s,s:i,s:o,s:o,s:o,s:s}", "collective", collectives[k],
                                                  "ranks", (int)ranks, "latency_ns", json_number(latency),
                                                  "bytes_per_s", json_number(rate), "spread",
                                                  spread < 0 ? json_null() : json_number(spread), "source",
                                                  source));
        }
    return rows;
}

json_t *measured_rates(hbp_context *context, const hbp_machine *machine)
{
    json_t *rows = json_array();
    hbp_machine_rate r = {.struct_size = sizeof r};
    for (int64_t i = 0; hbp_machine_get_rate(context, machine, i, &r) >= 0; i++)
        json_array_append_new(rows, json_pack("{s:s,s:I,s:o,s:o,s:s}", "rate", rates[r.rate], "size",
                                              (json_int_t)r.size, "per_s", json_number(r.per_s), "spread",
                                              json_number(r.spread), "source", r.source));
    return rows;
}

static void print_collectives(const hbp_machine *machine)
{
    table t;
    int rows = 0;
    for (int32_t k = 0; k < HBP_COLLECTIVE_COUNT; k++)
        for (int32_t ranks = 1; ranks <= MOST_RANKS; ranks++) {
            double latency, rate;
            const char *source;
            if (!hbp_machine_get_collective(machine, k, ranks, &latency, &rate, &source))
                continue;
            if (!rows++)
                table_begin(
                    &t, 6,
                    (const char *[]){"<collective", "GPUs", "latency", "bandwidth", "spread", "<source"});
            double spread = hbp_machine_get_collective_spread(machine, k, ranks);
            table_add(&t, "%s", collectives[k]);
            table_add(&t, "%d", (int)ranks);
            table_add_text(&t, show_time(latency));
            table_add_text(&t, show_real("%.1f GB/s", rate / 1e9));
            table_add_text(&t, spread < 0 ? show_real("-", 0) : show_share(spread));
            table_add(&t, "%s", source);
        }
    if (rows) {
        printf("\n");
        table_end(&t);
    }
}

void print_measured(hbp_context *context, const hbp_machine *machine)
{
    table t;
    print_collectives(machine);
    hbp_machine_rate r = {.struct_size = sizeof r};
    for (int64_t i = 0; i < hbp_machine_count_rates(machine); i++) {
        if (hbp_machine_get_rate(context, machine, i, &r) < 0)
            break;
        int copy = r.rate == HBP_RATE_COPY;
        if (i == 0)
            table_begin(&t, 5, (const char *[]){"<rate", "size", "value", "spread", "<source"});
        table_add(&t, "%s", rates[r.rate]);
        table_add_text(&t, copy ? show_bytes((double)r.size) : show_count(r.size));
        table_add_text(&t, copy ? show_real("%.1f GB/s", r.per_s / 1e9) : show_flops(r.per_s));
        table_add_text(&t, show_share(r.spread));
        table_add(&t, "%s", r.source);
    }
    if (hbp_machine_count_rates(machine) > 0) {
        printf("\n");
        table_end(&t);
    }
}

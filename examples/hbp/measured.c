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
            hbp_machine_collective c = {.struct_size = sizeof c};
            if (!hbp_machine_get_collective(machine, k, ranks, &c))
                continue;
            json_array_append_new(
                rows,
                json_pack("{s:s,s:i,s:o,s:o,s:o,s:s}", "collective", collectives[k], "ranks", (int)ranks,
                          "latency_ns", json_number(c.latency_ns), "bytes_per_s", json_number(c.bytes_per_s),
                          "spread", c.spread > 0 ? json_number(c.spread) : json_null(), "source", c.source));
        }
    return rows;
}

json_t *measured_rates(const hbp_machine *machine)
{
    json_t *rows = json_array();
    hbp_machine_rate r = {.struct_size = sizeof r};
    for (int64_t i = 0; hbp_machine_get_rate(machine, i, &r); i++)
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
            hbp_machine_collective c = {.struct_size = sizeof c};
            if (!hbp_machine_get_collective(machine, k, ranks, &c))
                continue;
            if (!rows++)
                table_begin(
                    &t, 6,
                    (const char *[]){"<collective", "GPUs", "latency", "bandwidth", "spread", "<source"});
            table_add(&t, "%s", collectives[k]);
            table_add(&t, "%d", (int)ranks);
            table_add_text(&t, show_time(c.latency_ns));
            table_add_text(&t, show_real("%.1f GB/s", c.bytes_per_s / 1e9));
            table_add_text(&t, c.spread > 0 ? show_share(c.spread) : show_real("-", 0));
            table_add(&t, "%s", c.source);
        }
    if (rows) {
        say("\n");
        table_end(&t);
    }
}

/* The spread above which repeats of a measurement did not measure the same. */
#define WIDE .1

/* Measurements that spread too widely to be believed. */
typedef struct wide {
    int count;
    double widest;
    char name[64];
} wide;

static void add_spread(wide *w, double spread, const char *what, const char *size)
{
    if (!(spread > WIDE))
        return;
    w->count++;
    if (spread <= w->widest)
        return;
    w->widest = spread;
    snprintf(w->name, sizeof w->name, "%.20s of %.32s", what, size);
}

/* Says so, for what is made of them is no better. */
static void judge_spreads(const hbp_machine *machine)
{
    wide w = {0, 0, ""};
    for (int32_t k = 0; k < HBP_COLLECTIVE_COUNT; k++)
        for (int32_t ranks = 1; ranks <= MOST_RANKS; ranks++) {
            hbp_machine_collective c = {.struct_size = sizeof c};
            if (hbp_machine_get_collective(machine, k, ranks, &c))
                add_spread(&w, c.spread, collectives[k], show_number(ranks, "GPU").s);
        }
    hbp_machine_rate r = {.struct_size = sizeof r};
    for (int64_t i = 0; hbp_machine_get_rate(machine, i, &r); i++)
        add_spread(&w, r.spread, rates[r.rate],
                   r.rate == HBP_RATE_COPY ? show_bytes((double)r.size).s : show_count(r.size).s);
    if (w.count)
        say("\n%s by more than %s, %s by %s: something else ran; measure again before costs are made of "
            "it\n",
            w.count == 1 ? "one measurement spreads" : "measurements spread", show_share(WIDE).s, w.name,
            show_share(w.widest).s);
}

void print_measured(const hbp_machine *machine)
{
    table t;
    print_collectives(machine);
    hbp_machine_rate r = {.struct_size = sizeof r};
    int64_t rows = 0;
    for (; hbp_machine_get_rate(machine, rows, &r); rows++) {
        int copy = r.rate == HBP_RATE_COPY;
        if (rows == 0)
            table_begin(&t, 5, (const char *[]){"<rate", "size", "value", "spread", "<source"});
        table_add(&t, "%s", rates[r.rate]);
        table_add_text(&t, copy ? show_bytes((double)r.size) : show_count(r.size));
        table_add_text(&t, copy ? show_real("%.1f GB/s", r.per_s / 1e9) : show_flops(r.per_s));
        table_add_text(&t, show_share(r.spread));
        table_add(&t, "%s", r.source);
    }
    if (rows) {
        say("\n");
        table_end(&t);
    }
    judge_spreads(machine);
}

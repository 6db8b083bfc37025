/* The inside of a machine: fields with sources, measured collectives and rates. */
#ifndef HBP_DATA_MACHINE_H
#define HBP_DATA_MACHINE_H

#include <stdint.h>

#include "base/context.h"
#include "base/fields.h"
#include "hbp/cost.h"

#define HBP__SOURCE_BYTES 64

/* Every field: X(name, type). */
#define HBP__MACHINE_FIELDS(X)                                                                               \
    X(nodes, int32_t)                                                                                        \
    X(gpus_per_node, int32_t)                                                                                \
    X(domain_gpus, int32_t)                                                                                  \
    X(cpu_packages, int32_t)                                                                                 \
    X(numa_nodes, int32_t)                                                                                   \
    X(cores, int32_t)                                                                                        \
    X(processing_units, int32_t)                                                                             \
    X(cpu_memory_bytes, int64_t)                                                                             \
    X(hbm_bytes, int64_t)                                                                                    \
    X(hbm_bytes_per_s, double)                                                                               \
    X(flops_per_s, double)                                                                                   \
    X(gemm_efficiency, double)                                                                               \
    X(attention_efficiency, double)                                                                          \
    X(nvlink_bytes_per_s, double)                                                                            \
    X(network_bytes_per_s, double)                                                                           \
    X(nvlink_latency_ns, double)                                                                             \
    X(network_latency_ns, double)

enum {
#define HBP__MACHINE_INDEX(name, type) HBP__MACHINE_##name,
    HBP__MACHINE_FIELDS(HBP__MACHINE_INDEX)
#undef HBP__MACHINE_INDEX
        HBP__MACHINE_FIELD_COUNT
};

typedef struct hbp__collective {
    int32_t collective; /* HBP_COLLECTIVE_* */
    int32_t ranks;
    double latency_ns;
    double bytes_per_s; /* bus bandwidth */
    double spread;      /* interquartile range / median of the repeats; 0: not known */
    char source[HBP__SOURCE_BYTES];
} hbp__collective;

typedef struct hbp__rate {
    int32_t rate; /* HBP_RATE_* */
    int64_t size;
    double per_s;
    double spread;
    char source[HBP__SOURCE_BYTES];
} hbp__rate;

/* One run of a collective: the size as nccl-tests prints it. */
typedef struct hbp__timing {
    double bytes;
    double ns;
} hbp__timing;

struct hbp_machine {
    hbp__memory memory;
    char name[HBP__SOURCE_BYTES];
    hbp_machine_fields fields;
    int32_t preset_domain_gpus; /* of the preset, where domain_gpus is its own: fewer GPUs are one domain; 0:
                                   none is known */
    char source[HBP__MACHINE_FIELD_COUNT][HBP__SOURCE_BYTES]; /* "" = unknown */
    hbp__collective *collectives;                             /* sorted by (collective, ranks) */
    int64_t collective_count;
    hbp__rate *rates; /* sorted by (rate, size) */
    int64_t rate_count;
};

/* An empty machine with a name; NULL when memory is short. */
hbp_machine *hbp__machine_new(hbp_context *context, const char *name);

/* Names, values and sources of fields by index, 0 <= index < HBP__MACHINE_FIELD_COUNT, for writers. */
const char *hbp__machine_field_name(int32_t index);
double hbp__machine_field_value(const hbp_machine *machine, int32_t index);

/* The fields' names as hbp__read_fields takes them, and the setting of those that it has read, source
 * "given".
 */
extern const hbp__field_names hbp__machine_field_names;
hbp_status hbp__machine_set_values(hbp_context *context, hbp_machine *machine,
                                   const hbp__field_values *values);

/* What the public setters do once the context is entered; `source` is never NULL. Readers use them. */
hbp_status hbp__machine_set_field(hbp_context *context, hbp_machine *machine, const char *field, double value,
                                  const char *source);
/* Domains of `most` GPUs, or one of all that there are; nodes that are set later are cut the same. */
void hbp__machine_set_domain(hbp_machine *machine, int32_t most);
hbp_status hbp__machine_set_collective(hbp_context *context, hbp_machine *machine, int32_t collective,
                                       int32_t ranks, double latency_ns, double bytes_per_s, double spread,
                                       const char *source);
hbp_status hbp__machine_set_rate(hbp_context *context, hbp_machine *machine, int32_t rate, int64_t size,
                                 double per_s, double spread, const char *source);

/* HBP_E_INVALID: the machine lacks these fields, bit HBP__MACHINE_<name> each, at least one of them, and what
 * they may look like, with units. */
hbp_status hbp__machine_fail_missing(hbp_context *context, const hbp_machine *machine, uint32_t fields);

/* HBP_E_INVALID unless `text`, a "source" or "name", has 1..63 characters that are no control characters. */
hbp_status hbp__machine_check_text(hbp_context *context, const char *what, const char *text);

/* Bytes that cross a rank's link per byte of the size that nccl-tests prints: what turns its algbw into
 * busbw. */
double hbp__bus_factor(int32_t collective, int32_t ranks);

/* The line time = latency + moved / bandwidth, where moved = factor x bytes, that has the least sum of
 * squared relative errors, so that latency is fitted where it matters; latency is at least 0. HBP_E_INVALID
 * when the timings, all above 0, do not tell the two apart. O(count). */
hbp_status hbp__fit_timings(hbp_context *context, const hbp__timing *timings, int64_t count, double factor,
                            double *latency_ns, double *bytes_per_s);

/* Sets what the preset of a GPU named `gpu` ("h100") knows of one GPU and its links, with source "preset
 * h100"; not the number of nodes and GPUs. HBP_E_INVALID for an unknown name. */
hbp_status hbp__machine_set_gpu(hbp_context *context, hbp_machine *machine, const char *gpu);

/* The presets' names, NULL past the end. */
const char *hbp__machine_preset_name(int64_t index);

/* hbp_machine_create_preset, within a call. *out is set on success alone. */
hbp_status hbp__machine_create_preset(hbp_context *context, const char *text, hbp_machine **out);

#endif

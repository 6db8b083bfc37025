/* The inside of a machine: fields with sources, and measured collectives. */
#ifndef HBP_DATA_MACHINE_H
#define HBP_DATA_MACHINE_H

#include <stdint.h>

#include "base/context.h"
#include "hbp/machine.h"

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
    char source[HBP__SOURCE_BYTES];
} hbp__collective;

struct hbp_machine {
    hbp__memory memory;
    char name[HBP__SOURCE_BYTES];
    hbp_machine_fields fields;
    char source[HBP__MACHINE_FIELD_COUNT][HBP__SOURCE_BYTES]; /* "" = unknown */
    hbp__collective *collectives;                             /* sorted by (collective, ranks) */
    int64_t collective_count;
};

/* An empty machine with a name; NULL when memory is short. */
hbp_machine *hbp__machine_new(hbp_context *context, const char *name);

/* Names, values and sources of fields by index, 0 <= index < HBP__MACHINE_FIELD_COUNT, for writers. */
const char *hbp__machine_field_name(int32_t index);
double hbp__machine_field_value(const hbp_machine *machine, int32_t index);

/* What the public setters do once the context is entered; `source` is never NULL. Readers use them. */
hbp_status hbp__machine_set_field(hbp_context *context, hbp_machine *machine, const char *field, double value,
                                  const char *source);
hbp_status hbp__machine_set_collective(hbp_context *context, hbp_machine *machine, int32_t collective,
                                       int32_t ranks, double latency_ns, double bytes_per_s,
                                       const char *source);

/* Sets what the preset of a GPU named `gpu` ("h100") knows of one GPU and its links, with source "preset
 * h100"; not the number of nodes and GPUs. HBP_E_INVALID for an unknown name. */
hbp_status hbp__machine_set_gpu(hbp_context *context, hbp_machine *machine, const char *gpu);

#endif

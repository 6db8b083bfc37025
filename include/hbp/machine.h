/* The machine: nodes, GPUs, links. A preset, a probe, measurements, or a profile file; every field remembers
 * where it came from. Mutable through apply and set; a cost takes a copy. */
#ifndef HBP_MACHINE_H
#define HBP_MACHINE_H

#include <stdint.h>

#include "hbp/context.h"

/* Collectives whose speed can be measured. Bandwidth is NCCL's bus bandwidth in bytes/s. */
enum {
    HBP_COLLECTIVE_ALL_TO_ALL = 0,
    HBP_COLLECTIVE_ALL_GATHER = 1,
    HBP_COLLECTIVE_REDUCE_SCATTER = 2,
    HBP_COLLECTIVE_ALL_REDUCE = 3,
    HBP_COLLECTIVE_COUNT = 4
};

/* Rates of one device that were measured at a size. */
enum {
    HBP_RATE_GEMM = 0,      /* flop/s of a bf16 (CPU: fp32) product of size x size matrices */
    HBP_RATE_ATTENTION = 1, /* flop/s of causal attention over one document of `size` tokens, forward and
                               backward, 7 s^2 a d_h flops */
    HBP_RATE_COPY = 2,      /* bytes/s read and written by a copy of `size` bytes */
    HBP_RATE_COUNT = 3
};

/* What a probe looks at. */
enum { HBP_PROBE_THIS_MACHINE = 0, HBP_PROBE_XML_FILE = 1, HBP_PROBE_SYNTHETIC = 2 };

HBP_BEGIN_DECLS

typedef struct hbp_machine hbp_machine;

/* Zero means unknown; hbp_cost_create refuses a machine whose needed fields are unknown. */
typedef struct hbp_machine_fields {
    uint32_t struct_size;
    int32_t nodes;
    int32_t gpus_per_node;
    int32_t domain_gpus;  /* GPUs that reach one another over NVLink; 1: none */
    int32_t cpu_packages; /* topology of one node, as probed */
    int32_t numa_nodes;
    int32_t cores;
    int32_t processing_units;
    int64_t cpu_memory_bytes;
    int64_t hbm_bytes; /* of one GPU */
    double hbm_bytes_per_s;
    double flops_per_s;          /* dense bf16 peak of one GPU */
    double gemm_efficiency;      /* fraction of the peak that matrix products reach */
    double attention_efficiency; /* and that attention reaches */
    double nvlink_bytes_per_s;   /* one way, per GPU, as NCCL reaches it */
    double network_bytes_per_s;  /* one way, per GPU */
    double nvlink_latency_ns;    /* of one collective call inside the NVLink domain */
    double network_latency_ns;   /* and across it */
} hbp_machine_fields;

HBP_API void hbp_machine_fields_init(hbp_machine_fields *fields, uint32_t struct_size);

/* Makes a machine from fields; their source is "given". HBP_E_INVALID names a negative, NaN or infinite
 * field. Thread: one per context, as for every function here that takes one. */
HBP_API hbp_status hbp_machine_create(hbp_context *context, const hbp_machine_fields *fields,
                                      hbp_machine **out);

/* Makes what a text describes: one node of a preset, "h100"; four of them, "h100:4"; with fields replaced,
 * "h100:4,nvlink_bytes_per_s=4e11". Presets: a100-40, a100-80, a800-80, h100, h200, b200, gb200-nvl72.
 * HBP_E_INVALID names the text and what is wrong with it, and offers the nearest name of a preset or field.
 */
HBP_API hbp_status hbp_machine_create_preset(hbp_context *context, const char *text, hbp_machine **out);
HBP_API int64_t hbp_machine_count_presets(void);
HBP_API const char *hbp_machine_get_preset_name(int64_t index);

/* Probes by hwloc: this machine, a file of hwloc's XML (`text` is its path), or a synthetic description
 * (`text`). An NVIDIA GPU that is recognised gets the numbers of its preset; a machine without any has
 * gpus_per_node 0, which hbp_cost_create refuses. GPUs are those the PCI bus shows, also where a container
 * may use fewer. An XML file is read without hwloc, whose reader is not safe; a synthetic string may describe
 * at most 4,096 processing units. hwloc takes its memory from malloc; what the other functions promise where
 * malloc fails is not promised here: hwloc may then crash, and release 2.9.0 of it was seen to keep 1.3 KB a
 * probe. Probe once, and give ranks the saved profile. */
HBP_API hbp_status hbp_machine_probe(hbp_context *context, int32_t kind, const char *text, hbp_machine **out);

/* The profile file of the project: JSON, an object {value, source} for each field, and lists of measured
 * collectives and rates. Saved atomically. A library from before there were rates and spreads reads such a
 * profile and leaves them out. */
HBP_API hbp_status hbp_machine_load(hbp_context *context, const char *path, hbp_machine **out);
HBP_API hbp_status hbp_machine_save(hbp_context *context, const hbp_machine *machine, const char *path);

/* Adds what nccl-tests printed (text of 2.13 to 2.19, or JSON v3; `data` [bytes]) for a collective over
 * `ranks` GPUs: fits latency + bytes / bandwidth by least squares and stores both. The text names no
 * collective, the caller does. */
HBP_API hbp_status hbp_machine_apply_nccl_tests(hbp_context *context, hbp_machine *machine,
                                                int32_t collective, int32_t ranks, const char *data,
                                                int64_t bytes);

/* Takes GPUs per node, NVLink and network bandwidth from NCCL's topology XML (NCCL_TOPO_DUMP_FILE). */
HBP_API hbp_status hbp_machine_apply_nccl_topology(hbp_context *context, hbp_machine *machine,
                                                   const char *xml, int64_t bytes);

/* Sets one collective over `ranks` GPUs: latency in ns, bus bandwidth in bytes/s, and a source of at most 63
 * characters. */
HBP_API hbp_status hbp_machine_set_collective(hbp_context *context, hbp_machine *machine, int32_t collective,
                                              int32_t ranks, double latency_ns, double bytes_per_s,
                                              const char *source);

/* Sets one collective over `ranks` GPUs from own timings [count]: the same fit. `bytes` are sizes as
 * nccl-tests counts them: a rank's send buffer, or of an all-gather what it receives. HBP_E_INVALID for fewer
 * than two sizes, and where time does not grow with the size. */
HBP_API hbp_status hbp_machine_fit_collective(hbp_context *context, hbp_machine *machine, int32_t collective,
                                              int32_t ranks, const double *bytes, const double *ns,
                                              int64_t count, const char *source);

/* Sets one field of hbp_machine_fields by its name. */
HBP_API hbp_status hbp_machine_set_field(hbp_context *context, hbp_machine *machine, const char *field,
                                         double value, const char *source);

/* Sets the fields that a text gives, "network_bytes_per_s=25e9,gemm_efficiency=0.52"; all of them, or after a
 * failure none. Their source is "given". */
HBP_API hbp_status hbp_machine_set_fields(hbp_context *context, hbp_machine *machine, const char *text);

/* A measured rate: `per_s` is the median of repeats and `spread` (their interquartile range) / median. */
typedef struct hbp_machine_rate {
    uint32_t struct_size;
    int32_t rate; /* HBP_RATE_* */
    int64_t size;
    double per_s;
    double spread;
    const char *source; /* device and date, at most 63 characters; owned by the machine when read back */
} hbp_machine_rate;

HBP_API void hbp_machine_rate_init(hbp_machine_rate *rate, uint32_t struct_size);

/* Adds a rate or replaces the one of the same kind and size. Rates are kept in profiles for whoever reads
 * them; costs are made from the fields alone. */
HBP_API hbp_status hbp_machine_set_rate(hbp_context *context, hbp_machine *machine,
                                        const hbp_machine_rate *rate);

/* The rates, ascending in kind, then size: 0 <= index < count. Thread: shareable. */
HBP_API int64_t hbp_machine_count_rates(const hbp_machine *machine);
HBP_API hbp_status hbp_machine_get_rate(hbp_context *context, const hbp_machine *machine, int64_t index,
                                        hbp_machine_rate *rate);

/* How many repeats of one measured collective differed: the spread that goes with hbp_machine_set_collective;
 * -1 when it was not measured or its spread is not known. */
HBP_API hbp_status hbp_machine_set_collective_spread(hbp_context *context, hbp_machine *machine,
                                                     int32_t collective, int32_t ranks, double spread);
HBP_API double hbp_machine_get_collective_spread(const hbp_machine *machine, int32_t collective,
                                                 int32_t ranks);

/* Names the machine, at most 63 characters: what a profile's reader is told. */
HBP_API hbp_status hbp_machine_set_name(hbp_context *context, hbp_machine *machine, const char *name);

HBP_API void hbp_machine_free(hbp_machine *machine);

HBP_API const char *hbp_machine_get_name(const hbp_machine *machine);
HBP_API hbp_status hbp_machine_get_fields(hbp_context *context, const hbp_machine *machine,
                                          hbp_machine_fields *fields);

/* Where a field came from: "preset h100", "hwloc", "nccl-tests 2.19", "given", "unknown"; NULL for no such
 * field. Owned by the machine. */
HBP_API const char *hbp_machine_get_source(const hbp_machine *machine, const char *field);

/* A measured collective: sets the three and returns 1, or returns 0 when `ranks` was not measured. */
HBP_API int32_t hbp_machine_get_collective(const hbp_machine *machine, int32_t collective, int32_t ranks,
                                           double *latency_ns, double *bytes_per_s, const char **source);

HBP_END_DECLS

#endif

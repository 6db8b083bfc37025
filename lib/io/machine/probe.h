/* What a probe counts on one node, whatever it looks at. */
#ifndef HBP_IO_PROBE_H
#define HBP_IO_PROBE_H

#include <stdint.h>

#include "base/context.h"

/* NVIDIA's devices by kind: those without a display output are the ones that compute where there are both. */
enum { HBP__GPU_PLAIN, HBP__GPU_DISPLAY, HBP__GPU_KINDS };

typedef struct hbp__probe {
    int64_t packages;
    int64_t numa_nodes;
    int64_t cores;
    int64_t units;
    int64_t memory_bytes;
    int64_t gpus[HBP__GPU_KINDS];
    uint32_t device[HBP__GPU_KINDS]; /* their PCI device id; 0 when they differ */
} hbp__probe;

/* Counts a PCI device when it is one of NVIDIA's GPUs; `class_id` has 16 bits. */
static inline void hbp__probe_add_pci(hbp__probe *probe, uint32_t class_id, uint32_t vendor, uint32_t device)
{
    enum { NVIDIA = 0x10de, CLASS_DISPLAY = 0x03, CLASS_3D = 0x0302 };
    if (vendor != NVIDIA || class_id >> 8 != CLASS_DISPLAY)
        return;
    int kind = class_id == CLASS_3D ? HBP__GPU_PLAIN : HBP__GPU_DISPLAY;
    if (!probe->gpus[kind])
        probe->device[kind] = device;
    else if (probe->device[kind] != device)
        probe->device[kind] = 0;
    probe->gpus[kind]++;
}

/* Counts what hwloc's XML, version 1 or 2, describes; `probe` is all zero before. */
hbp_status hbp__probe_xml_data(hbp_context *context, const char *data, int64_t bytes, hbp__probe *probe);
hbp_status hbp__probe_xml_file(hbp_context *context, const char *path, hbp__probe *probe);

#endif

/* Measures the machine that the executor runs on, and writes what was found into an hbp_machine: rates of the
 * device by size, collectives by group size, and from them the fields that plans are made with. */
#ifndef EX_PROBE_PROBE_H
#define EX_PROBE_PROBE_H

#include <hbp/hbp.h>

#include "base/fault.h"
#include "comm/comm.h"
#include "device/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Zeros: the defaults. */
typedef struct ex_probe_options {
    double budget_s;  /* about how long all of it may take; default 20. The smallest sizes are measured
                         whatever they take. */
    ex_heads heads;   /* of the attention that is timed; default 8 of 64 on a CPU, 32 of 128 on a GPU */
    int32_t sharers;  /* ranks that share one device's memory; default: on a CPU those of the node, else 1 */
    int64_t largest;  /* bytes of the largest copy and collective; default 64 MiB on a CPU, 1 GiB on a GPU */
    const char *date; /* "2026-11-22"; default: today */
    double (*now)(void); /* seconds of a clock that never goes back; default: the system's */
} ex_probe_options;

/* Collective over all ranks of `comm`, to which `device` is bound here. Every rank computes while all do, as
 * in a run, and the slowest rank of each repeat counts. Rank 0, which alone needs `context`, gets a machine
 * in *out for the caller to free; the others get NULL. Group sizes are the powers of two, the ranks of a
 * node, and all.
 *
 * -1: `fault` (or the device's or communicator's) tells; the caller then abandons `comm`, so that the others
 * need not wait. */
int ex_probe(ex_device *device, ex_comm *comm, const ex_probe_options *options, hbp_context *context,
             hbp_machine **out, ex_fault *fault);

#ifdef __cplusplus
}
#endif

#endif

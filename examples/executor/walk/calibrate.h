/* Packs made to be measured: many lengths, few and many documents, every degree, with and without
 * recomputation, so that a fit can tell every term of the cost from the others, as the packs of one plan
 * often cannot. */
#ifndef EX_WALK_CALIBRATE_H
#define EX_WALK_CALIBRATE_H

#include <hbp/hbp.h>
#include <stdint.h>

#include "comm/comm.h"
#include "device/device.h"
#include "model/shape.h"
#include "walk/record.h"

typedef struct ex_calibrate_options {
    const hbp_model *model;
    const ex_shape *shape;
    int32_t sharers;    /* ranks that share the memory of this rank's device */
    int64_t max_tokens; /* of a rank; 0: 4096, and less where memory is short */
    int32_t repeat;     /* times each pack is run, of which the least counts; 0: 3 */
    int32_t clock;      /* EX_CLOCK_* */
    double seconds;     /* no longer pack is begun after so long */
    void (*on_pack)(void *user, int64_t tokens, int32_t sp, int32_t recompute, int64_t documents, int64_t ns);
    void *user;
} ex_calibrate_options;

/* Runs the packs, all groups of a degree at once, and adds a row for each group to `record`. Collective:
 * every rank runs the same. Returns as ex_walk does. */
int ex_calibrate(const ex_calibrate_options *options, ex_device *device, ex_comm *comm, ex_record *record,
                 ex_fault *fault);

#endif

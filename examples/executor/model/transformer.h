/* Forward and backward of one pack on one rank. */
#ifndef EX_MODEL_TRANSFORMER_H
#define EX_MODEL_TRANSFORMER_H

#include <stdint.h>

#include "comm/comm.h"
#include "device/device.h"
#include "model/parameters.h"

/* What one rank gets of a pack, in host memory. The pack has `pack_tokens` tokens, a multiple of group->size;
 * this rank's chunk is tokens [rank * chunk, (rank + 1) * chunk), chunk = pack_tokens / group->size.
 * Attention is over the whole pack on heads / group->size heads (DeepSpeed-Ulysses). */
typedef struct ex_pack {
    const ex_group *group;
    int64_t pack_tokens;
    int32_t recompute;        /* the first `recompute` layers keep their input alone and run forward again */
    const int32_t *tokens;    /* [chunk] */
    const int32_t *targets;   /* [chunk] the next token */
    const int32_t *positions; /* [chunk] from 0 at each document's beginning; padding goes on counting */
    const float *weights;     /* [chunk] factor of the token's loss; 0: none */
    const int32_t *borders;   /* [documents + 1] of the whole pack: 0 .. pack_tokens */
    int64_t documents;
} ex_pack;

typedef struct ex_model {
    ex_device *device;
    ex_comm *comm;
    ex_parameters *parameters;
    char *arena; /* device memory for activations */
    int64_t arena_bytes;
    int64_t arena_used;
    int64_t arena_most; /* the most used since it was last set to 0 */
    double *loss;       /* device: [0] the sum of weighted losses, [1] scratch for norms */
    int64_t chunk_rows; /* tokens whose logits are held at once */
    int64_t
        communication_ns; /* spent in all-to-alls since it was last set to 0, when measure_communication */
    int measure_communication;
} ex_model;

/* `arena_bytes`: room for activations; ex_model_measure tells what a pack needs. -1: device->fault. */
int ex_model_create(ex_device *device, ex_comm *comm, ex_parameters *parameters, int64_t arena_bytes,
                    ex_model *model);
void ex_model_free(ex_model *model);

/* Adds the pack's weighted loss to model->loss and its gradients to parameters->gradients. Everything a rank
 * of the group does takes part in the group's all-to-alls, so all of them call it with the same pack. 0, or
 * -1 with the device's or comm's fault set. Synchronises at its end. */
int ex_model_run(ex_model *model, const ex_pack *pack);

/* Bytes of arena that a pack of `pack_tokens` tokens in `documents` documents needs on `sp` ranks with
 * `recompute` layers recomputed: the run itself on a device that only counts. In bf16, a token: 2 hidden each
 * for the gradient of the residual stream and the last output, 2 hidden a recomputed layer, what the others
 * keep (model/run.h), 20 for the pack's numbers; and chunk_rows tokens' logits. -1: device->fault. */
int64_t ex_model_measure(ex_device *device, const ex_shape *shape, int32_t sp, int64_t pack_tokens,
                         int64_t documents, int32_t recompute);

/* Reads and clears the loss (waits for the device). */
double ex_model_take_loss(ex_model *model);

/* Scales gradients to a global norm of at most `max_norm` (0: no clipping), takes one AdamW step and zeroes
 * the gradients. Norms and biases do not decay; options.gradient_scale is set here. Gradients must be summed
 * over ranks before. *norm gets the norm before clipping; one that is not finite fails before any change. */
int ex_model_step(ex_model *model, ex_adam options, double max_norm, double *norm);

#endif

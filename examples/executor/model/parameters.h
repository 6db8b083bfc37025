/* Weights, their gradients and the optimiser's state, each flat on the device, cut into named tensors. */
#ifndef EX_MODEL_PARAMETERS_H
#define EX_MODEL_PARAMETERS_H

#include <stdint.h>

#include "device/device.h"
#include "model/shape.h"

typedef struct ex_tensor {
    char name[48]; /* "embedding", "layers.3.qkv", ... */
    int64_t rows;  /* 1 for norms and biases; a matrix takes `columns` numbers to `rows`: y = x W^T */
    int64_t columns;
    int64_t offset; /* in elements; a multiple of 64 */
} ex_tensor;

/* Tensors of layer l follow those of layer l - 1 in this order. */
enum { EX_NORM1, EX_QKV, EX_QKV_BIAS, EX_OUT, EX_NORM2, EX_GATE_UP, EX_DOWN, EX_LAYER_TENSORS };

typedef struct ex_parameters {
    ex_device *device;
    ex_shape shape;
    ex_tensor *tensors; /* host [count] */
    int64_t count;
    int64_t elements; /* of each flat array, gaps (zeros) included */
    void *weights;    /* elements of the device's type, what forward and backward read */
    float *master;    /* fp32 [elements] */
    float *gradients;
    float *mean;
    float *variance;
} ex_parameters;

/* Lays the tensors out and allocates all five arrays (bytes an element: 16 + the type's); masters, gradients
 * and the optimiser's state are zeros, weights are not set. -1: device->fault. */
int ex_parameters_allocate(ex_device *device, const ex_shape *shape, ex_parameters *parameters);

/* Allocates and draws the masters: bell-shaped, standard deviation .02 (/ sqrt(2 layers) for the two output
 * projections), norms 1, biases 0, from `seed` and the element's place alone and with the same bits on every
 * host, so that every rank, backend and number of ranks begins alike. -1: device->fault. */
int ex_parameters_create(ex_device *device, const ex_shape *shape, uint64_t seed, ex_parameters *parameters);
void ex_parameters_free(ex_parameters *parameters);

/* Tensor by place: layer -1 for those outside layers, in the order embedding, final norm, output (absent when
 * tied). */
enum { EX_EMBEDDING, EX_FINAL_NORM, EX_OUTPUT };
const ex_tensor *ex_parameters_get(const ex_parameters *parameters, int32_t layer, int32_t which);

#endif

#include <math.h>

#include "model/transformer.h"

double ex_model_take_loss(ex_model *model)
{
    double loss = 0;
    model->device->ops->copy_out(model->device, &loss, model->loss, sizeof loss);
    model->device->ops->zero(model->device, model->loss, sizeof loss);
    return loss;
}

/* The norm over all elements; the gaps between tensors are zeros. */
static double norm_of_gradients(ex_model *model)
{
    ex_device *device = model->device;
    double squares = 0;
    device->ops->zero(device, model->loss + 1, sizeof squares);
    device->ops->sum_squares(device, model->parameters->gradients, model->parameters->elements,
                             model->loss + 1);
    device->ops->copy_out(device, &squares, model->loss + 1, sizeof squares);
    return sqrt(squares);
}

/* Elements offset .. offset + count - 1. */
static void update(ex_model *model, int64_t offset, int64_t count, ex_adam options)
{
    ex_parameters *p = model->parameters;
    model->device->ops->adam(model->device, count, p->gradients + offset, p->master + offset,
                             p->mean + offset, p->variance + offset,
                             (char *)p->weights + offset * (int64_t)ex_type_bytes(model->device->type),
                             options);
}

int ex_model_step(ex_model *model, ex_adam options, double max_norm, double *norm)
{
    ex_device *device = model->device;
    ex_parameters *p = model->parameters;
    double length = norm_of_gradients(model);
    if (device->fault.failed)
        return -1;
    if (!isfinite(length))
        return ex_fail(&device->fault, "the gradients' norm is %g: the step would spoil the weights", length);
    *norm = length;
    options.gradient_scale = max_norm > 0 && length > max_norm ? (float)(max_norm / length) : 1;
    if (options.weight_decay == 0) {
        update(model, 0, p->elements, options);
    } else { /* norms and biases do not decay */
        for (int64_t i = 0; i < p->count; i++) {
            ex_adam own = options;
            if (p->tensors[i].rows == 1)
                own.weight_decay = 0;
            update(model, p->tensors[i].offset, p->tensors[i].rows * p->tensors[i].columns, own);
        }
    }
    device->ops->zero(device, p->gradients, p->elements * (int64_t)sizeof(float));
    return ex_device_sync(device);
}

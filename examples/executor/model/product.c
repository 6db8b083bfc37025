#include "model/run.h"

static const ex_tensor *tensor(const ex_run *run, int32_t layer, int32_t which)
{
    return ex_parameters_get(run->model->parameters, layer, which);
}

const void *ex_weights(const ex_run *run, int32_t layer, int32_t which)
{
    return (const char *)run->model->parameters->weights + tensor(run, layer, which)->offset * run->e;
}

float *ex_gradients(const ex_run *run, int32_t layer, int32_t which)
{
    return run->model->parameters->gradients + tensor(run, layer, which)->offset;
}

void ex_project(ex_run *run, const void *w, int64_t rows, int64_t in, int64_t out, const void *x, int add,
                void *y)
{
    run->device->ops->gemm(run->device, 0, 1, rows, out, in, x, w, add ? 1 : 0, y, 0);
}

void ex_project_back(ex_run *run, const void *w, int64_t rows, int64_t in, int64_t out, const void *x,
                     const void *d_y, void *d_x, float *d_w)
{
    run->device->ops->gemm(run->device, 1, 0, out, in, rows, d_y, x, 1, d_w, 1);
    run->device->ops->gemm(run->device, 0, 0, rows, in, out, d_y, w, 0, d_x, 0);
}

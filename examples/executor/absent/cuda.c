/* Stands in for device/cuda in an executor without CUDA. */
#include "device/device.h"

ex_device *ex_cuda_open(ex_type type, int32_t index, ex_fault *fault)
{
    (void)type;
    ex_fail(fault, "no GPU %d: this executor was built without CUDA", (int)index);
    return NULL;
}

int ex_cuda_count(void)
{
    return 0;
}

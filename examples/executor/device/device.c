#include "device/device.h"

int ex_device_sync(ex_device *device)
{
    device->ops->sync(device);
    return device->fault.failed ? -1 : 0;
}

void ex_device_free(ex_device *device)
{
    if (device)
        device->ops->free(device);
}

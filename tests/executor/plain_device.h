/* A device of memory alone. Outside the host's memory its addresses are moved out of the address space, so
 * that whoever reads or writes there itself, not by the device's operations, is ended by the machine. */
#ifndef TESTS_EXECUTOR_PLAIN_DEVICE_H
#define TESTS_EXECUTOR_PLAIN_DEVICE_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "device/device.h"

#define PLAIN_AWAY ((uintptr_t)1 << 62)

static inline void *plain_real(const ex_device *device, const void *pointer)
{
    return (void *)((uintptr_t)pointer - (device->host_memory ? 0 : PLAIN_AWAY));
}

static inline void *plain_allocate(ex_device *device, int64_t bytes)
{
    void *real = calloc(1, (size_t)bytes + 1);
    if (!real)
        abort();
    return (void *)((uintptr_t)real + (device->host_memory ? 0 : PLAIN_AWAY));
}

static inline void plain_release(ex_device *device, void *pointer)
{
    free(plain_real(device, pointer));
}

static inline void plain_copy_in(ex_device *device, void *to, const void *host, int64_t bytes)
{
    memcpy(plain_real(device, to), host, (size_t)bytes);
}

static inline void plain_copy_out(ex_device *device, void *host, const void *from, int64_t bytes)
{
    memcpy(host, plain_real(device, from), (size_t)bytes);
}

static inline void plain_copy(ex_device *device, void *to, const void *from, int64_t bytes)
{
    memcpy(plain_real(device, to), plain_real(device, from), (size_t)bytes);
}

static inline void plain_sync(ex_device *device)
{
    (void)device;
}

static inline ex_device plain_device(int host_memory)
{
    static const ex_device_ops ops = {.allocate = plain_allocate,
                                      .release = plain_release,
                                      .copy_in = plain_copy_in,
                                      .copy_out = plain_copy_out,
                                      .copy = plain_copy,
                                      .sync = plain_sync};
    return (ex_device){.ops = &ops, .type = EX_F32, .name = "plain memory", .host_memory = host_memory};
}

#endif

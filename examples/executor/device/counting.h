/* The inside of the counting device. */
#ifndef EX_DEVICE_COUNTING_H
#define EX_DEVICE_COUNTING_H

#include <stdint.h>

#include "device/device.h"

typedef struct ex_counted {
    uintptr_t from;
    int64_t bytes;
} ex_counted;

typedef struct ex_counting {
    ex_device device; /* first: a device is cast to it */
    ex_device_ops ops;
    ex_device *like; /* asked for attention's scratch; may be NULL */
    int64_t limit_bytes;
    uintptr_t next;   /* addresses are never given twice: use after release is found */
    ex_counted *live; /* by address */
    int64_t count, room;
} ex_counting;

static inline ex_counting *ex_counting_of(ex_device *device)
{
    return (ex_counting *)(void *)device;
}

/* Whether `count` things of `each` bytes from `at` lie in one allocation and are aligned as their size asks;
 * else a fault that names the operation and what of it. */
int ex_counting_holds(ex_device *device, const char *operation, const char *what, const void *at,
                      int64_t count, int64_t each);

/* counting_operations.c: fills in everything but memory. */
void ex_counting_operations(ex_device_ops *ops);

#endif

/* A device without arithmetic: its addresses stand for nothing, and what would be read or written is only
 * looked up among its allocations. Lookup is a binary search. */
#include "device/counting.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 256 };

/* Beyond the addresses that processors with 48 of their bits give to programs: to touch one is a fault. */
#define FIRST_ADDRESS ((uintptr_t)(UINT64_C(1) << 52) + 4096)

static int64_t room_of(const ex_counting *counting)
{
    int64_t room = counting->limit_bytes - counting->device.allocated;
    return room > 0 ? room : 0;
}

static int has_slot(ex_counting *counting)
{
    if (counting->count < counting->room)
        return 1;
    int64_t room = counting->room ? 2 * counting->room : 64;
    ex_counted *live = realloc(counting->live, (size_t)room * sizeof *live);
    if (!live)
        return 0;
    counting->live = live;
    counting->room = room;
    return 1;
}

static void *counting_allocate(ex_device *device, int64_t bytes)
{
    ex_counting *counting = ex_counting_of(device);
    if (device->fault.failed)
        return NULL;
    if (bytes < 0 || bytes > room_of(counting) || (uint64_t)bytes > (UINTPTR_MAX - counting->next) / 2) {
        ex_fail(&device->fault, "%s: %" PRId64 " bytes asked for; %" PRId64 " of %" PRId64 " are free",
                device->name, bytes, room_of(counting), counting->limit_bytes);
        return NULL;
    }
    if (!has_slot(counting)) {
        ex_fail(&device->fault, "%s: no memory for %" PRId64 " allocations", device->name,
                counting->count + 1);
        return NULL;
    }
    uintptr_t from = counting->next;
    counting->live[counting->count++] = (ex_counted){from, bytes};
    /* At least one line apart, so that the end of one is not the beginning of another. */
    counting->next += ((uintptr_t)bytes / ALIGNMENT + 2) * ALIGNMENT;
    device->allocated += bytes;
    if (device->most_allocated < device->allocated)
        device->most_allocated = device->allocated;
    return (void *)from;
}

/* Place of the last allocation that begins at or before `at`; -1 without one. */
static int64_t place_of(const ex_counting *counting, uintptr_t at)
{
    int64_t low = -1, high = counting->count;
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        if (counting->live[middle].from <= at)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static void counting_release(ex_device *device, void *memory)
{
    ex_counting *counting = ex_counting_of(device);
    if (!memory)
        return;
    int64_t place = place_of(counting, (uintptr_t)memory);
    if (place < 0 || counting->live[place].from != (uintptr_t)memory) {
        ex_fail(&device->fault, "%s: release of what was not allocated, or was released before",
                device->name);
        return;
    }
    device->allocated -= counting->live[place].bytes;
    memmove(counting->live + place, counting->live + place + 1,
            (size_t)(counting->count - place - 1) * sizeof *counting->live);
    counting->count--;
}

int ex_counting_holds(ex_device *device, const char *operation, const char *what, const void *at,
                      int64_t count, int64_t each)
{
    const ex_counting *counting = ex_counting_of(device);
    if (device->fault.failed)
        return 0;
    if (count == 0)
        return 1;
    if (count < 0 || count > INT64_MAX / each) {
        ex_fail(&device->fault, "%s: %s: %s is asked for %" PRId64 " elements", device->name, operation, what,
                count);
        return 0;
    }
    int64_t place = place_of(counting, (uintptr_t)at), left = 0;
    if (place >= 0)
        left = counting->live[place].bytes - (int64_t)((uintptr_t)at - counting->live[place].from);
    if (left <= 0) {
        ex_fail(&device->fault, "%s: %s: %s is in no allocation", device->name, operation, what);
        return 0;
    }
    if (count * each > left) {
        ex_fail(&device->fault,
                "%s: %s: %s takes %" PRId64 " bytes; its allocation of %" PRId64 " has %" PRId64
                " from there on",
                device->name, operation, what, count * each, counting->live[place].bytes, left);
        return 0;
    }
    if ((uintptr_t)at % (uintptr_t)each) {
        ex_fail(&device->fault, "%s: %s: %s is not aligned to %" PRId64 " bytes", device->name, operation,
                what, each);
        return 0;
    }
    return 1;
}

static void counting_memory(ex_device *device, int64_t *free_bytes, int64_t *total_bytes)
{
    *free_bytes = room_of(ex_counting_of(device));
    *total_bytes = ex_counting_of(device)->limit_bytes;
}

static void counting_copy_in(ex_device *device, void *to, const void *host, int64_t bytes)
{
    (void)host;
    ex_counting_holds(device, "copy_in", "to", to, bytes, 1);
}

/* The host reads zeros. */
static void counting_copy_out(ex_device *device, void *host, const void *from, int64_t bytes)
{
    if (ex_counting_holds(device, "copy_out", "from", from, bytes, 1) && bytes > 0)
        memset(host, 0, (size_t)bytes);
}

static void counting_copy(ex_device *device, void *to, const void *from, int64_t bytes)
{
    ex_counting_holds(device, "copy", "from", from, bytes, 1);
    ex_counting_holds(device, "copy", "to", to, bytes, 1);
}

static void counting_zero(ex_device *device, void *to, int64_t bytes)
{
    ex_counting_holds(device, "zero", "to", to, bytes, 1);
}

static void counting_sync(ex_device *device)
{
    (void)device;
}

static void counting_free(ex_device *device)
{
    ex_counting *counting = ex_counting_of(device);
    free(counting->live);
    free(counting);
}

ex_device *ex_counting_open(ex_type type, int64_t limit_bytes, ex_device *like, ex_fault *fault)
{
    ex_counting *counting = calloc(1, sizeof *counting);
    if (!counting) {
        ex_fail(fault, "no memory for a counting device: %zu bytes", sizeof *counting);
        return NULL;
    }
    ex_device *device = &counting->device;
    counting->ops = (ex_device_ops){.free = counting_free,
                                    .allocate = counting_allocate,
                                    .release = counting_release,
                                    .memory = counting_memory,
                                    .copy_in = counting_copy_in,
                                    .copy_out = counting_copy_out,
                                    .copy = counting_copy,
                                    .zero = counting_zero,
                                    .sync = counting_sync};
    ex_counting_operations(&counting->ops);
    device->ops = &counting->ops;
    device->type = type;
    memcpy(device->name, "counting", sizeof "counting");
    counting->like = like;
    counting->limit_bytes = limit_bytes;
    counting->next = FIRST_ADDRESS;
    return device;
}

/* Every communicator that steps of a machine may need, each once. */
#include "hbp/step.h"

#include <string.h>

#include "base/options.h"
#include "base/scratch.h"
#include "step/step.h"

typedef struct table {
    hbp_communicator *entries;
    uint32_t entry_size;
    int64_t capacity;
    int64_t count;
} table;

static hbp_status add(hbp_context *context, table *t, const hbp_communicator *entry)
{
    if (t->count++ >= t->capacity)
        return HBP_OK;
    unsigned char *place = (unsigned char *)t->entries + (uint64_t)(t->count - 1) * t->entry_size;
    hbp__struct_init(place, t->entry_size);
    return hbp__struct_write(context, place, entry, sizeof *entry, "hbp_communicator");
}

/* The groups of one degree, the first of which has index `index`. A cost's degrees divide the ranks, and the
 * domain when they fit it, so that every aligned group is whole and inside one. */
static hbp_status add_degree(hbp_context *context, table *t, int32_t ranks, int32_t rank, int32_t degree,
                             int64_t index)
{
    int32_t first = rank < 0 ? 0 : rank / degree, end = rank < 0 ? ranks / degree : first + 1;
    for (int32_t color = first; color < end; color++) {
        hbp_communicator entry = {sizeof entry, degree, color * degree, color, index + color};
        HBP__TRY(add(context, t, &entry));
    }
    return HBP_OK;
}

static hbp_status list(const hbp__step *step, int32_t rank, table *t)
{
    int64_t index = step->ranks;
    HBP__TRY(add_degree(step->context, t, step->ranks, rank, 1, 0));
    for (int32_t j = 0; j < step->degrees; j++) {
        int32_t degree = step->degree[j].degree;
        if (degree == 1)
            continue;
        HBP__TRY(add_degree(step->context, t, step->ranks, rank, degree, index));
        index += step->ranks / degree;
    }
    return HBP_OK;
}

static hbp_status list_communicators(hbp_context *context, const hbp_cost *cost,
                                     const hbp_step_options *options, int32_t rank,
                                     hbp_communicator *communicators, uint32_t communicator_size,
                                     int64_t capacity, int64_t *count)
{
    HBP__TRY(hbp__require(context, count, "count"));
    *count = 0;
    HBP__TRY(hbp__require(context, cost, "cost"));
    if (rank < -1 || rank >= cost->terms.ranks)
        return hbp__fail(context, HBP_E_INVALID, "rank is %d; it must be in 0..%d, or be -1 for all ranks",
                         (int)rank, (int)cost->terms.ranks - 1);
    if (capacity < 0)
        return hbp__fail(context, HBP_E_INVALID, "capacity is %lld; it must be at least 0",
                         (long long)capacity);
    if (capacity > 0) {
        HBP__TRY(hbp__require(context, communicators, "communicators"));
        if (communicator_size < sizeof communicators->struct_size || communicator_size > HBP__MOST_STRUCT)
            return hbp__fail(context, HBP_E_INVALID, "communicator_size is %u; pass sizeof(hbp_communicator)",
                             (unsigned)communicator_size);
    }
    hbp__step step;
    table t = {communicators, communicator_size, capacity, 0};
    hbp_status status = hbp__step_open(context, NULL, cost, options, &step);
    if (status >= 0)
        status = list(&step, rank, &t);
    hbp__step_close(&step);
    if (status >= 0)
        *count = t.count;
    return status;
}

hbp_status hbp_list_communicators(hbp_context *context, const hbp_cost *cost, const hbp_step_options *options,
                                  int32_t rank, hbp_communicator *communicators, uint32_t communicator_size,
                                  int64_t capacity, int64_t *count)
{
    HBP__TRY(hbp__enter(context));
    int64_t mark = hbp__scratch_mark(context);
    return hbp__leave(
        context, mark,
        list_communicators(context, cost, options, rank, communicators, communicator_size, capacity, count));
}

int64_t hbp_find_communicator(const hbp_communicator *communicators, uint32_t communicator_size,
                              int64_t count, int32_t first_rank, int32_t sp)
{
    int64_t low = 0, high = communicators ? count : 0;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        hbp_communicator entry;
        memset(&entry, 0, sizeof entry);
        memcpy(&entry, (const unsigned char *)communicators + (uint64_t)middle * communicator_size,
               communicator_size < sizeof entry ? communicator_size : sizeof entry);
        if (entry.sp == sp && entry.first_rank == first_rank)
            return middle;
        if (entry.sp < sp || (entry.sp == sp && entry.first_rank < first_rank))
            low = middle + 1;
        else
            high = middle;
    }
    return -1;
}

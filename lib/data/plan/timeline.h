/* The inside of a timeline. */
#ifndef HBP_DATA_TIMELINE_H
#define HBP_DATA_TIMELINE_H

#include <stdint.h>

#include "base/context.h"
#include "hbp/cost.h"

/* Longest text of a device or a date, with its final 0. */
#define HBP__TIMELINE_TEXT_BYTES 128

/* Every column: X(name, type, needed). */
#define HBP__TIMELINE_COLUMNS(X)                                                                             \
    X(step, int64_t, 1)                                                                                      \
    X(micro_batch, int32_t, 1)                                                                               \
    X(first_rank, int32_t, 1)                                                                                \
    X(sp, int32_t, 1)                                                                                        \
    X(recompute, int32_t, 1)                                                                                 \
    X(samples, int64_t, 0)                                                                                   \
    X(tokens, int64_t, 1)                                                                                    \
    X(sum_squares, int64_t, 1)                                                                               \
    X(start_ns, int64_t, 0)                                                                                  \
    X(time_ns, int64_t, 1)                                                                                   \
    X(communication_ns, int64_t, 0)                                                                          \
    X(peak_bytes, int64_t, 0)

/* Places of the columns, in their order in a file. */
enum hbp__timeline_field {
#define HBP__TIMELINE_INDEX(name, type, needed) HBP__TIMELINE_##name,
    HBP__TIMELINE_COLUMNS(HBP__TIMELINE_INDEX)
#undef HBP__TIMELINE_INDEX
        HBP__TIMELINE_FIELDS
};

struct hbp_timeline {
    hbp__memory memory;
    int32_t ranks;
    int64_t count;
    char device[HBP__TIMELINE_TEXT_BYTES]; /* "": not known */
    char date[HBP__TIMELINE_TEXT_BYTES];
#define HBP__TIMELINE_FIELD(name, type, needed) type *name; /* [count]; NULL where it is not known */
    HBP__TIMELINE_COLUMNS(HBP__TIMELINE_FIELD)
#undef HBP__TIMELINE_FIELD
    hbp_measurements
        measured; /* points into the columns, or into columns of its own without the padding packs */
    void *own[7]; /* those and the steps' times, to be released; NULL: none */
};

/* What is wrong with a row: a field's value is not in its range. */
typedef struct hbp__timeline_fault {
    int32_t field; /* HBP__TIMELINE_* */
    int64_t least;
    int64_t most; /* INT64_MAX: no limit */
} hbp__timeline_fault;

/* Checks a row's values [HBP__TIMELINE_FIELDS] of a run on `ranks` ranks; `known` has a bit for each field
 * that there is. Returns 0 and *fault when one makes no sense. */
int hbp__timeline_check_row(const int64_t *value, uint64_t known, int32_t ranks, hbp__timeline_fault *fault);

/* hbp_timeline_create within a call. */
hbp_status hbp__timeline_create(hbp_context *context, const hbp_timeline_columns *columns,
                                hbp_timeline **out);

/* A field's name. */
const char *hbp__timeline_field_name(int32_t field);

/* Whether row `i` is of a pack without samples. */
static inline int hbp__timeline_is_padding(const hbp_timeline *timeline, int64_t i)
{
    return timeline->samples ? !timeline->samples[i] : !timeline->tokens[i];
}

#endif

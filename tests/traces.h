/* Options of Chrome traces, and the traces as jansson reads them. */
#ifndef HBP_TESTS_TRACES_H
#define HBP_TESTS_TRACES_H

#include <jansson.h>

#include "hbp/io.h"
#include "test.h"

#define MEASURED(line, first, count)                                                                         \
    (&(hbp_trace_options){.struct_size = sizeof(hbp_trace_options),                                          \
                          .first_step = (first),                                                             \
                          .steps = (count),                                                                  \
                          .timeline = (line)})
#define STEPS(first, count) MEASURED(NULL, first, count)

static inline json_int_t number(json_t *object, const char *key)
{
    json_t *value = json_object_get(object, key);
    ck_assert_msg(json_is_integer(value), "no whole number '%s'", key);
    return json_integer_value(value);
}

/* Microseconds with three decimals, as ns. */
static inline int64_t ns_of(json_t *object, const char *key)
{
    json_t *value = json_object_get(object, key);
    ck_assert(json_is_real(value));
    return (int64_t)(json_real_value(value) * 1000 + .5);
}

#endif

/* Open structs that begin with their size: read from older and newer callers, written to them. */
#ifndef HBP_BASE_OPTIONS_H
#define HBP_BASE_OPTIONS_H

#include <stdint.h>

#include "base/context.h"

/* No struct of any version has more bytes: a larger size was never set. */
#define HBP__MOST_STRUCT 65536

/* Zeroes the caller's struct of `struct_size` bytes and stores that size; never writes past it. A size that
 * no struct has, below 4 or past HBP__MOST_STRUCT, leaves it as it is. */
void hbp__struct_init(void *structure, uint32_t struct_size);

/* Copies the caller's options into `all` [known_size], zeros where the caller's struct is shorter or NULL; a
 * field in whose middle it ends is not given. Names of methods come out as the registry's own texts
 * (base/methods.h), the default's for NULL. `name` is the struct's. HBP_E_INVALID when struct_size is below 4
 * or past HBP__MOST_STRUCT, for a field that is not in the range of its record (base/records.h) and for one
 * that names no method; HBP_E_VERSION when a longer caller's struct sets a field this library does not know.
 */
hbp_status hbp__options_read(hbp_context *context, void *all, uint32_t known_size, const void *caller,
                             const char *name);

/* Ranges and methods alone, of a whole struct that a caller within the library filled. O(fields). */
hbp_status hbp__options_check(hbp_context *context, const char *name, const void *options);

/* HBP_E_INVALID for a value out of its range: the one text that says so, "`name` is V; it must be in A..B".
 */
hbp_status hbp__check_range(hbp_context *context, const char *name, int64_t value, int64_t least,
                            int64_t most);

/* A field and what it may be. */
typedef struct hbp__range {
    const char *name;
    int64_t value;
    int64_t least;
    int64_t most;
} hbp__range;

/* HBP_E_INVALID, naming it, for the first of `fields` [count] that is out of its range. */
hbp_status hbp__check_ranges(hbp_context *context, const hbp__range *fields, int64_t count);

/* Copies a result into the caller's struct, no further than its struct_size, which stays as it is, and zeroes
 * what lies past `known_size`. HBP_E_INVALID when `caller` is NULL or its struct_size is below 4 or past
 * HBP__MOST_STRUCT. */
hbp_status hbp__struct_write(hbp_context *context, void *caller, const void *result, uint32_t known_size,
                             const char *name);

/* The same of the view of an object, without a context and so without a message; where `object` is NULL the
 * caller finds zeros, and gets HBP_E_INVALID. */
hbp_status hbp__view_write(void *caller, const void *object, const void *view, uint32_t known_size);

#endif

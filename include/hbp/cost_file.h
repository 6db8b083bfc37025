/* Cost files: the terms of a cost with their sources, so that what one run measured plans the next. */
#ifndef HBP_COST_FILE_H
#define HBP_COST_FILE_H

#include <stdint.h>

#include "hbp/context.h"
#include "hbp/cost.h"

HBP_BEGIN_DECLS

typedef struct hbp_cost_file_options {
    uint32_t struct_size;
    int32_t reserved;    /* 0 */
    const char *model;   /* names kept in the file; NULL: those that the cost has, if any */
    const char *machine; /* the device whose times these are */
    const char *note;    /* for whoever reads the file; NULL: none */
} hbp_cost_file_options;

HBP_API void hbp_cost_file_options_init(hbp_cost_file_options *options, uint32_t struct_size);

/* Writes every term and where it came from to `path` as JSON, atomically; doubles so that they are read back
 * bit for bit. `options` may be NULL. Thread: one per context. */
HBP_API hbp_status hbp_cost_save(hbp_context *context, const hbp_cost *cost, const char *path,
                                 const hbp_cost_file_options *options);

/* Reads it back; a cost that plans as the saved one does, sources included. HBP_E_FORMAT names the line or
 * term, HBP_E_VERSION a later format. */
HBP_API hbp_status hbp_cost_load(hbp_context *context, const char *path, hbp_cost **out);

/* Whose times these are: the names of the model and the machine that hbp_cost_create was given, what the file
 * of a loaded cost says, what the prior of a fitted one has; "" when there are none. Owned by the cost.
 * Thread: shareable. */
HBP_API const char *hbp_cost_get_model_name(const hbp_cost *cost);
HBP_API const char *hbp_cost_get_machine_name(const hbp_cost *cost);

HBP_END_DECLS

#endif

/* Plan files: a stream of msgpack objects, chunks of steps compressed, an index at the end (docs: file
 * format). */
#ifndef HBP_PLAN_FILE_H
#define HBP_PLAN_FILE_H

#include <stdint.h>

#include "hbp/context.h"
#include "hbp/plan.h"

HBP_BEGIN_DECLS

typedef struct hbp_plan_file hbp_plan_file;

typedef struct hbp_plan_save_options {
    uint32_t struct_size;
    int32_t level; /* zlib level 1..9; 0: 1; -1: stored */
    int64_t
        chunk_steps; /* most steps in a chunk; 0: 256, and fewer where a chunk would pass 64 KiB of columns */
    const hbp_cost *cost; /* written into the header when given */
    const char *note;     /* text for the header: command line, data set; NULL: none */
} hbp_plan_save_options;

HBP_API void hbp_plan_save_options_init(hbp_plan_save_options *options, uint32_t struct_size);

/* Writes the plan to `path` atomically: a temporary file beside it, fsync, rename; on failure nothing is
 * left. HBP_E_SYSTEM carries the system's reason. Thread: one per context. */
HBP_API hbp_status hbp_plan_save(hbp_context *context, const hbp_plan *plan, const char *path,
                                 const hbp_plan_save_options *options);

/* Reads a whole plan, trusting nothing: HBP_E_FORMAT with the byte offset for a damaged file, HBP_E_VERSION
 * for a file of a later format. The digest is verified. */
HBP_API hbp_status hbp_plan_load(hbp_context *context, const char *path, hbp_plan **out);

/* Opens a plan file for reading single steps: header and index only. Thread: one at a time per file. */
HBP_API hbp_status hbp_plan_file_open(hbp_context *context, const char *path, hbp_plan_file **out);
HBP_API void hbp_plan_file_free(hbp_plan_file *file);

/* What the header says of the whole plan; `packs` and `samples` are the whole plan's counts. */
HBP_API hbp_status hbp_plan_file_get_summary(hbp_context *context, const hbp_plan_file *file,
                                             hbp_plan_summary *summary);

/* Nonzero: the plan is the data of a vision-language plan, which hbp_vlm_plan_load reads whole. */
HBP_API int32_t hbp_plan_file_has_vlm(const hbp_plan_file *file);

/* Reads steps [first, first + count) as a plan of their own (its summary's first_step is `first`, its digest
 * its own); only the chunks that hold them are read. */
HBP_API hbp_status hbp_plan_file_read(hbp_context *context, hbp_plan_file *file, int64_t first, int64_t count,
                                      hbp_plan **out);

/* Writes a Chrome trace (opens in Perfetto) of steps [first, first + count), count 0: all; or the plan as
 * JSON. Both atomically. Thread: one per context. */
HBP_API hbp_status hbp_plan_write_trace(hbp_context *context, const hbp_plan *plan, int64_t first,
                                        int64_t count, const char *path);
HBP_API hbp_status hbp_plan_write_json(hbp_context *context, const hbp_plan *plan, const char *path);

HBP_END_DECLS

#endif

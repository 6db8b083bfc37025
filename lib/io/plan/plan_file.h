/* The inside of an open plan file. */
#ifndef HBP_IO_PLAN_FILE_H
#define HBP_IO_PLAN_FILE_H

#include <stdint.h>

#include "hbp/io.h"
#include "io/file/file_bytes.h"
#include "io/msgpack/msgpack_buffer.h"
#include "io/plan/plan_format.h"

struct hbp_plan_file {
    hbp__memory memory;
    hbp__file_bytes source;
    int32_t version;          /* of the format */
    hbp_plan_summary summary; /* of the header */
    int32_t optional;         /* HBP__PLAN_* */
    int32_t has_vlm;
    char *note; /* NULL: none */
    int64_t header_bytes;
    uint32_t header_crc;
    int64_t chunks;
    hbp__plan_chunk *chunk; /* [chunks] */
    hbp__plan_rows *start;  /* [chunks + 1] rows before each chunk */
};

/* hbp_plan_file_open of a path, or of `bytes` of `data`, which stay the caller's and must outlive the file.
 */
hbp_status hbp__plan_file_open(hbp_context *context, const char *path, hbp_plan_file **out);
hbp_status hbp__plan_file_open_memory(hbp_context *context, const void *data, int64_t bytes,
                                      hbp_plan_file **out);

/* The header's map, verified, in `header`, which the caller initialises and destroys. Its texts and bins
 * point into *data, scratch of the context. */
hbp_status hbp__plan_file_header(hbp_context *context, const hbp_plan_file *file, uint8_t **data,
                                 hbp__document *header);

/* The terms of a cost, under the names of hbp_cost_terms, as the header has them. */
void hbp__plan_pack_cost(hbp__buffer *buffer, const hbp_cost_terms *terms);

/* The cost in the header; *out stays NULL where it has none. Takes scratch. */
hbp_status hbp__plan_file_cost(hbp_context *context, const hbp_plan_file *file, hbp_cost **out);

/* An object that a plan is part of, as one more entry of the header; readers of plans pass over it. */
typedef struct hbp__plan_part_of {
    const char *key;
    const hbp__buffer *map; /* msgpack, whole */
} hbp__plan_part_of;

/* hbp_plan_save of what is part of such an object; NULL: of a plan alone. */
hbp_status hbp__plan_save(hbp_context *context, const hbp_plan *plan, const char *path,
                          const hbp_plan_save_options *options, const hbp__plan_part_of *whole);

/* The whole plan of an open file, verified. */
hbp_status hbp__plan_file_load(hbp_context *context, const hbp_plan_file *file, hbp_plan **out);

#endif

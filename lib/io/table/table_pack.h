/* Tables (data/table/table.h) as entries of msgpack maps, for every file that holds some. */
#ifndef HBP_IO_TABLE_PACK_H
#define HBP_IO_TABLE_PACK_H

#include "base/context.h"
#include "data/table/table.h"
#include "io/file/file_bytes.h"
#include "io/msgpack/msgpack_buffer.h"

/* Entries that hbp__pack_numbers writes. */
uint32_t hbp__count_numbers(const hbp__table *table);

/* Numbers, lists of names and columns of an object under their names; to be heard is a request to cancel. */
void hbp__pack_numbers(hbp__buffer *buffer, const hbp__table *table, const void *object);
hbp_status hbp__pack_names(hbp_context *context, hbp__buffer *buffer, const hbp__table *table,
                           const void *object);
void hbp__pack_columns(hbp__buffer *buffer, const hbp__table *table, const void *object);

/* A map that was read, for messages. */
typedef struct hbp__map_read {
    hbp_context *context;
    const hbp__file_bytes *file;
    int64_t offset;
    const char *what; /* "the header" */
    const hbp__value *map;
} hbp__map_read;

/* The numbers and counts of an object; then that the lists of names are as long as these say, and the bytes
 * of all columns, which a file can hold. HBP_E_FORMAT names what is not so. */
hbp_status hbp__unpack_shape(const hbp__map_read *from, const hbp__table *table, void *shape, int64_t *bytes);

/* Names and columns of an object made from such a shape. */
hbp_status hbp__unpack_names(const hbp__map_read *from, const hbp__memory *memory, const hbp__table *table,
                             void *object);
hbp_status hbp__unpack_columns(const hbp__map_read *from, const hbp__table *table, void *object);

#endif

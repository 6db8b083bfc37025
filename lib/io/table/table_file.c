/* Nothing in a file is believed: sizes are held against the file's before memory is taken, every byte lies
 * under a CRC or is compared, and columns are walked before anyone else does. */
#include "io/table/table_file.h"

#include <stdio.h>
#include <string.h>

#include "base/scratch.h"
#include "hbp/base.h"
#include "io/file/atomic_file.h"
#include "io/file/file_head.h"
#include "io/file/zipped.h"
#include "io/msgpack/msgpack_read.h"
#include "io/table/table_pack.h"

/* Objects in a header beside its names, in the map behind it, and in that of the columns. */
#define HEADER_OBJECTS  4096
#define BODY_OBJECTS    64
#define COLUMNS_OBJECTS 256

typedef struct saving {
    hbp_context *context;
    const hbp__table_format *format;
    const void *object;
    int level;
    hbp__atomic_file file;
    hbp__zip zip;
    hbp__buffer header;
    hbp__buffer columns;
    hbp__buffer packed; /* the same, deflated */
    hbp__buffer body;   /* and as msgpack */
} saving;

static hbp_status write_object(saving *s, const hbp__buffer *object)
{
    if (object->failed)
        return hbp__fail_memory(s->context, s->format->what);
    return hbp__atomic_write(s->context, &s->file, object->data, (int64_t)object->bytes);
}

static hbp_status write_header(saving *s)
{
    const hbp__table *table = s->format->table;
    hbp__buffer *buffer = &s->header;
    uint32_t entries =
        3 + hbp__count_numbers(table) + (uint32_t)table->name_count; /* format, version, library */
    hbp__pack_format(buffer, entries, s->format->name, s->format->version);
    hbp__pack_text(buffer, "library");
    hbp__pack_text(buffer, HBP_VERSION_STRING);
    hbp__pack_numbers(buffer, table, s->object);
    HBP__TRY(hbp__pack_names(s->context, buffer, table, s->object));
    return write_object(s, &s->header);
}

static hbp_status write_body(saving *s)
{
    hbp__buffer *buffer = &s->columns;
    hbp__pack_map(buffer, (size_t)s->format->table->column_count);
    hbp__pack_columns(&s->columns, s->format->table, s->object);
    if (s->columns.failed)
        return hbp__fail_memory(s->context, s->format->what);
    HBP__TRY(hbp__tick(s->context, "save", 0, 1));
    buffer = &s->body;
    hbp__pack_map(buffer, 5);
    hbp__pack_named_i64(buffer, "header_bytes", (int64_t)s->header.bytes);
    hbp__pack_named_i64(buffer, "header_crc32", hbp__crc32(s->header.data, s->header.bytes));
    HBP__TRY(hbp__zip_entries(&s->zip, s->level, &s->columns, &s->packed, buffer, s->format->what));
    return write_object(s, &s->body);
}

static hbp_status check_size(hbp_context *context, const hbp__table_format *format, const void *object)
{
    const hbp__table *table = format->table;
    int64_t bytes = hbp__table_bytes(table, object), names = 0;
    for (int32_t i = 0; i < table->name_count; i++)
        names += hbp__table_rows(object, &table->names[i]);
    if (bytes < 0 || bytes > HBP__ZIPPED_MAX_BYTES)
        return hbp__fail(context, HBP_E_OVERFLOW, "%s has %lld bytes of columns; a file holds at most %lld",
                         table->what, (long long)bytes, (long long)HBP__ZIPPED_MAX_BYTES);
    if (names > format->most_names)
        return hbp__fail(context, HBP_E_OVERFLOW, "%s has %lld names; a file holds at most %lld", table->what,
                         (long long)names, (long long)format->most_names);
    return HBP_OK;
}

hbp_status hbp__table_save(hbp_context *context, const hbp__table_format *format, const void *object,
                           const char *path, int level)
{
    saving s = {
        .context = context, .format = format, .object = object, .level = level, .zip.context = context};
    HBP__TRY(check_size(context, format, object));
    HBP__TRY(hbp__atomic_open(context, path, &s.file));
    s.header.memory = s.columns.memory = s.packed.memory = s.body.memory = context->memory;
    hbp_status status = write_header(&s);
    if (status == HBP_OK)
        status = write_body(&s);
    status = hbp__atomic_end(context, &s.file, status);
    hbp__zip_close(&s.zip);
    hbp__buffer_free(&s.header);
    hbp__buffer_free(&s.columns);
    hbp__buffer_free(&s.packed);
    hbp__buffer_free(&s.body);
    return status;
}

typedef struct loading {
    hbp_context *context;
    const hbp__table_format *format;
    const hbp__file_bytes *file;
    uint8_t *data;  /* the file */
    int64_t header; /* bytes of it */
    hbp__zip zip;
    hbp__buffer columns;
    hbp__document head;
    hbp__document body; /* its bins are in `data`, then in `columns` */
    void *shape;        /* numbers and counts of the header; no columns */
    void *object;
} loading;

static hbp_status fail_at(const loading *l, int64_t offset, const char *what)
{
    return hbp__file_fail(l->context, l->file, offset, what);
}

/* The two objects, header and body, unpacked. */
static hbp_status read_objects(loading *l)
{
    const hbp__file_bytes *file = l->file;
    int32_t version;
    uint64_t bytes = (uint64_t)file->bytes, most = HEADER_OBJECTS + (uint64_t)l->format->most_names;
    hbp__msgpack_extent header;
    HBP__TRY(
        hbp__file_version(l->context, file, l->format->name, l->format->what, l->format->version, &version));
    if (file->bytes > 4 * HBP__ZIPPED_MAX_BYTES)
        return fail_at(l, 0, "the file is too large");
    l->data = hbp__take(l->context, bytes, 1);
    HBP__TRY(hbp__scratch_check(l->context, l->format->what));
    HBP__TRY(hbp__file_read(l->context, file, 0, file->bytes, l->data));
    if (!hbp__msgpack_scan(l->data, bytes, most, &header))
        return fail_at(l, (int64_t)header.bytes, "the file is cut off or damaged in its header");
    l->header = (int64_t)header.bytes;
    HBP__TRY(hbp__msgpack_read(l->context, "the header", l->data, &header, &l->head));
    return hbp__file_unpack(l->context, file, l->header, "the body", l->data + header.bytes,
                            bytes - header.bytes, BODY_OBJECTS, &l->body);
}

static hbp_status check_header_crc(loading *l)
{
    const hbp__value *map = l->body.values;
    int64_t bytes, crc;
    if (!hbp__unpack_i64(map, "header_bytes", &bytes) || bytes != l->header)
        return fail_at(l, l->header, "'header_bytes' is not what the header has");
    if (!hbp__unpack_i64(map, "header_crc32", &crc) ||
        (uint64_t)crc != hbp__crc32(l->data, (uint64_t)l->header))
        return fail_at(l, 0, "the CRC-32 of the header differs");
    return HBP_OK;
}

static hbp_status read_columns(loading *l)
{
    const hbp__table *table = l->format->table;
    const hbp__map_read head = {l->context, l->file, 0, "the header", l->head.values};
    int64_t bytes = 0;
    HBP__TRY(hbp__unpack_shape(&head, table, l->shape, &bytes));
    HBP__TRY(hbp__unzip_entries(&l->zip, l->file, l->header, "the body", l->body.values, bytes, &l->columns));
    HBP__TRY(hbp__tick(l->context, "load", 1, 2));
    HBP__TRY(hbp__file_unpack(l->context, l->file, l->header, "the body's inside", l->columns.data,
                              l->columns.bytes, COLUMNS_OBJECTS, &l->body));
    l->object = hbp__table_new(&l->context->memory, table, l->shape);
    if (!l->object)
        return hbp__fail_memory(l->context, table->what);
    HBP__TRY(hbp__tick(l->context, "load", 1, 2));
    const hbp__map_read body = {l->context, l->file, l->header, "the body", l->body.values};
    HBP__TRY(hbp__unpack_columns(&body, table, l->object));
    return hbp__unpack_names(&head, &l->context->memory, table, l->object);
}

/* What the columns say of each other, a breach told as the file's fault. */
static hbp_status check_object(loading *l)
{
    char breach[256];
    uint64_t digest;
    hbp_status status = l->format->check(l->context, l->object);
    if (status == HBP_E_INVALID) {
        snprintf(breach, sizeof breach, "%s", hbp_context_message(l->context));
        return fail_at(l, l->header, breach);
    }
    memcpy(&digest, (const char *)l->object + l->format->digest_at, sizeof digest);
    if (status == HBP_OK && l->format->digest(l->object) != digest)
        return fail_at(l, 0, "the header's digest is not that of the columns");
    return status;
}

static hbp_status load_object(loading *l)
{
    HBP__TRY(hbp__tick(l->context, "load", 0, 2));
    HBP__TRY(read_objects(l));
    HBP__TRY(check_header_crc(l));
    l->shape = hbp__take_zero(l->context, l->format->table->bytes, 1);
    HBP__TRY(hbp__scratch_check(l->context, l->format->table->what));
    memcpy(l->shape, &l->context->memory, sizeof l->context->memory);
    HBP__TRY(read_columns(l));
    return check_object(l);
}

hbp_status hbp__table_load(hbp_context *context, const hbp__table_format *format, const hbp__file_bytes *file,
                           void **out)
{
    loading l = {.context = context, .format = format, .file = file, .zip.context = context};
    int64_t mark = hbp__scratch_mark(context);
    l.columns.memory = l.head.memory = l.body.memory = context->memory;
    hbp_status status = load_object(&l);
    hbp__document_free(&l.head);
    hbp__document_free(&l.body);
    hbp__zip_close(&l.zip);
    hbp__buffer_free(&l.columns);
    if (status == HBP_OK)
        *out = l.object;
    else
        hbp__table_free(&context->memory, format->table, l.object);
    return hbp__leave(context, mark, status);
}

hbp_status hbp__table_load_path(hbp_context *context, const hbp__table_format *format, const char *path,
                                void **out)
{
    hbp__file_bytes file;
    HBP__TRY(hbp__require(context, path, "path"));
    hbp_status status = hbp__file_open(context, path, &file);
    if (status == HBP_OK)
        status = hbp__table_load(context, format, &file, out);
    hbp__file_close(&file);
    return status;
}

hbp_status hbp__table_save_call(hbp_context *context, const hbp__table_format *format, const void *object,
                                const char *path)
{
    HBP__TRY(hbp__enter(context));
    HBP__TRY(hbp__require(context, object, format->argument));
    HBP__TRY(hbp__require(context, path, "path"));
    return hbp__table_save(context, format, object, path, Z_BEST_SPEED);
}

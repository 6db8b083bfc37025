/* A task schedule from its file. Nothing in it is believed: sizes are held against the file's before memory
 * is taken, every byte lies under a CRC or is compared, and columns are walked before anyone else does. */
#include <float.h>
#include <stdio.h>
#include <string.h>

#include "data/task_columns.h"
#include "io/file_head.h"
#include "io/msgpack_scan.h"
#include "io/task_format.h"
#include "io/zipped.h"

/* Objects in a header beside its names, in the map behind it, and in that of the columns. */
#define HEADER_OBJECTS  4096
#define BODY_OBJECTS    64
#define COLUMNS_OBJECTS 256

typedef struct loading {
    hbp_context *context;
    const hbp__file_bytes *file;
    uint8_t *data;  /* the file */
    int64_t header; /* bytes of it */
    hbp__zip zip;
    hbp__buffer columns;
    msgpack_unpacked head;   /* points into `data` */
    msgpack_unpacked body;   /* into `data`, then into `columns` */
    hbp_task_schedule shape; /* counts and summary that the header tells; no columns */
    hbp_task_schedule *schedule;
} loading;

static hbp_status fail(const loading *l, int64_t offset, const char *what)
{
    return hbp__file_fail(l->context, l->file, offset, what);
}

/* The two objects, header and body, unpacked. */
static hbp_status read_objects(loading *l)
{
    const hbp__file_bytes *file = l->file;
    int32_t version;
    uint64_t bytes = (uint64_t)file->bytes, used;
    HBP__TRY(hbp__file_version(l->context, file, HBP__TASK_FORMAT, "a file of a task schedule",
                               HBP__TASK_FORMAT_VERSION, &version));
    if (file->bytes > 4 * HBP__ZIPPED_MAX_BYTES)
        return fail(l, 0, "the file is too large");
    l->data = hbp__new(&l->context->memory, bytes, 1);
    if (!l->data)
        return hbp__fail_memory(l->context, "a file of a task schedule");
    HBP__TRY(hbp__file_read(l->context, file, 0, file->bytes, l->data));
    if (!hbp__msgpack_scan(l->data, bytes, HEADER_OBJECTS + HBP__TASK_MAX_NAMES, &used))
        return fail(l, (int64_t)used, "the file is cut off or damaged in its header");
    l->header = (int64_t)used;
    HBP__TRY(hbp__file_unpack(l->context, file, 0, "the header", l->data, used,
                              HEADER_OBJECTS + HBP__TASK_MAX_NAMES, &l->head));
    return hbp__file_unpack(l->context, file, l->header, "the body", l->data + used, bytes - used,
                            BODY_OBJECTS, &l->body);
}

static hbp_status check_header_crc(loading *l)
{
    const msgpack_object *map = &l->body.data;
    int64_t bytes, crc;
    if (!hbp__unpack_i64(map, "header_bytes", &bytes) || bytes != l->header)
        return fail(l, l->header, "'header_bytes' is not what the header has");
    if (!hbp__unpack_i64(map, "header_crc32", &crc) ||
        (uint64_t)crc != hbp__crc32(l->data, (uint64_t)l->header))
        return fail(l, 0, "the CRC-32 of the header differs");
    return HBP_OK;
}

static int unpack_finite(const msgpack_object *map, const char *key, double *out)
{
    const msgpack_object *value = hbp__unpack_find(map, key);
    if (!value || value->type != MSGPACK_OBJECT_FLOAT64)
        return 0;
    *out = value->via.f64;
    return *out >= -DBL_MAX && *out <= DBL_MAX;
}

/* Numbers of the header, and that as many names stand there as rows. */
static hbp_status read_header(loading *l)
{
    const msgpack_object *map = &l->head.data;
    hbp_task_schedule *shape = &l->shape;
    hbp_task_summary *summary = &shape->summary;
    summary->struct_size = sizeof *summary;
    if (!hbp__unpack_u64(map, "digest", &shape->digest) ||
        !hbp__unpack_u64(map, "graph_digest", &shape->graph_digest))
        return fail(l, 0, "the header lacks a digest");
#define FIELD(name)                                                                                          \
    if (!hbp__unpack_number(map, #name, &summary->name))                                                     \
        return fail(l, 0, "the header lacks the number '" #name "'");
    HBP__TASK_HEADER_FIELDS(FIELD)
#undef FIELD
    if (!hbp__unpack_i64(map, "group_ranks", &shape->group_ranks_total))
        return fail(l, 0, "the header lacks the number 'group_ranks'");
    if (!unpack_finite(map, "gap", &summary->gap) || !unpack_finite(map, "idle", &summary->idle))
        return fail(l, 0, "the header lacks 'gap' or 'idle'");
    shape->operators_total = summary->operators;
    shape->meta_ops = summary->meta_ops;
    shape->levels = summary->levels;
    shape->waves = summary->waves;
    shape->slices = summary->slices;
    shape->groups = summary->groups;
    shape->tasks = summary->tasks;
    shape->parameters = summary->parameters;
    shape->ranks = summary->gpus;
#define NAMES(name, table)                                                                                   \
    {                                                                                                        \
        const msgpack_object *names = hbp__unpack_find(map, #name);                                          \
        if (!names || names->type != MSGPACK_OBJECT_ARRAY || names->via.array.size != shape->table)          \
            return fail(l, 0, "the header's '" #name "' are not as many as its '" #table "'");               \
    }
    HBP__TASK_NAMES(NAMES)
#undef NAMES
    return HBP_OK;
}

static hbp_status read_names(loading *l, const char *key, char **names)
{
    const msgpack_object *list = hbp__unpack_find(&l->head.data, key);
    for (uint32_t i = 0; i < list->via.array.size; i++) {
        const msgpack_object *name = &list->via.array.ptr[i];
        char text[128];
        if (name->type != MSGPACK_OBJECT_STR || memchr(name->via.str.ptr, 0, name->via.str.size)) {
            snprintf(text, sizeof text, "number %u of '%s' is not a name", (unsigned)i, key);
            return fail(l, 0, text);
        }
        names[i] = hbp__new(&l->schedule->memory, (uint64_t)name->via.str.size + 1, 1);
        if (!names[i])
            return hbp__fail_memory(l->context, "the schedule's names");
        memcpy(names[i], name->via.str.ptr, name->via.str.size);
        names[i][name->via.str.size] = '\0';
    }
    return HBP_OK;
}

#define unpack_column_int64_t hbp__unpack_column_i64
#define unpack_column_int32_t hbp__unpack_column_i32

static hbp_status read_body(loading *l)
{
    int64_t bytes = hbp__task_columns_bytes(&l->shape);
    if (bytes < 0 || bytes > HBP__ZIPPED_MAX_BYTES)
        return fail(l, 0, "the header's tables are too large");
    HBP__TRY(hbp__unzip_entries(&l->zip, l->file, l->header, "the body", &l->body.data, bytes, &l->columns));
    HBP__TRY(hbp__tick(l->context, "load", 1, 2));
    HBP__TRY(hbp__file_unpack(l->context, l->file, l->header, "the body's inside", l->columns.data,
                              l->columns.bytes, COLUMNS_OBJECTS, &l->body));
    HBP__TRY(hbp__task_schedule_new(l->context, &l->shape, &l->schedule));
    hbp_task_schedule *schedule = l->schedule;
    schedule->summary = l->shape.summary;
    schedule->graph_digest = l->shape.graph_digest;
    schedule->digest = l->shape.digest;
#define FILL(name, type, table, extra)                                                                       \
    if (!unpack_column_##type(&l->body.data, #name, schedule->table + (extra), schedule->name))              \
        return fail(l, l->header, "the body lacks the column '" #name "'");
    HBP__TASK_COLUMNS(FILL)
#undef FILL
#define NAMES(name, table) HBP__TRY(read_names(l, #name, schedule->name));
    HBP__TASK_NAMES(NAMES)
#undef NAMES
    return HBP_OK;
}

/* What the columns say of each other, a breach told as the file's fault. */
static hbp_status check(loading *l)
{
    char breach[256];
    hbp_status status = hbp__task_columns_check(l->context, l->schedule);
    if (status == HBP_E_INVALID) {
        snprintf(breach, sizeof breach, "%s", hbp_context_message(l->context));
        return fail(l, l->header, breach);
    }
    if (status == HBP_OK && hbp__task_schedule_digest(l->schedule) != l->schedule->digest)
        return fail(l, 0, "the header's digest is not that of the columns");
    return status;
}

static hbp_status load(loading *l)
{
    HBP__TRY(hbp__tick(l->context, "load", 0, 2));
    HBP__TRY(read_objects(l));
    HBP__TRY(check_header_crc(l));
    HBP__TRY(read_header(l));
    HBP__TRY(read_body(l));
    return check(l);
}

hbp_status hbp__task_schedule_load(hbp_context *context, const hbp__file_bytes *file, hbp_task_schedule **out)
{
    loading l = {.context = context, .file = file, .zip.context = context};
    l.columns.memory = context->memory;
    msgpack_unpacked_init(&l.head);
    msgpack_unpacked_init(&l.body);
    hbp_status status = load(&l);
    msgpack_unpacked_destroy(&l.head);
    msgpack_unpacked_destroy(&l.body);
    hbp__zip_close(&l.zip);
    hbp__buffer_free(&l.columns);
    hbp__delete(&context->memory, l.data);
    if (status == HBP_OK)
        *out = l.schedule;
    else
        hbp_task_schedule_free(l.schedule);
    return status;
}

hbp_status hbp_task_schedule_load(hbp_context *context, const char *path, hbp_task_schedule **out)
{
    if (out)
        *out = NULL;
    HBP__TRY(hbp__enter(context));
    HBP__TRY(hbp__require(context, path, "path"));
    HBP__TRY(hbp__require(context, out, "out"));
    hbp__file_bytes file;
    hbp_status status = hbp__file_open(context, path, &file);
    if (status == HBP_OK)
        status = hbp__task_schedule_load(context, &file, out);
    hbp__file_close(&file);
    return status;
}

#include "hbp/version.h"
#include "io/atomic_file.h"
#include "io/file_head.h"
#include "io/task_format.h"
#include "io/zipped.h"

#define TICK_NAMES 32768

typedef struct saving {
    hbp_context *context;
    const hbp_task_schedule *schedule;
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
        return hbp__fail_memory(s->context, "a file of a task schedule");
    return hbp__atomic_write(s->context, &s->file, object->data, (int64_t)object->bytes);
}

static void pack_u64(msgpack_packer *packer, const char *name, uint64_t value)
{
    hbp__pack_text(packer, name);
    msgpack_pack_uint64(packer, value);
}

static hbp_status pack_names(saving *s, msgpack_packer *packer, const char *key, char *const *names,
                             int64_t count)
{
    hbp__pack_text(packer, key);
    msgpack_pack_array(packer, (size_t)count);
    for (int64_t i = 0; i < count; i++) {
        if (i % TICK_NAMES == 0)
            HBP__TRY(hbp__tick(s->context, "save", i, count));
        hbp__pack_text(packer, names[i]);
    }
    return HBP_OK;
}

static hbp_status write_header(saving *s)
{
    const hbp_task_schedule *schedule = s->schedule;
    const hbp_task_summary *summary = &schedule->summary;
    msgpack_packer packer = hbp__buffer_packer(&s->header);
    uint32_t entries = 8; /* format, version, library, two digests, ranks of groups, gap, idle */
#define COUNT(name) entries++;
    HBP__TASK_HEADER_FIELDS(COUNT)
#undef COUNT
#define COUNT(name, table) entries++;
    HBP__TASK_NAMES(COUNT)
#undef COUNT
    hbp__pack_format(&packer, entries, HBP__TASK_FORMAT, HBP__TASK_FORMAT_VERSION);
    hbp__pack_text(&packer, "library");
    hbp__pack_text(&packer, HBP_VERSION_STRING);
    pack_u64(&packer, "digest", schedule->digest);
    pack_u64(&packer, "graph_digest", schedule->graph_digest);
#define FIELD(name) hbp__pack_named_i64(&packer, #name, summary->name);
    HBP__TASK_HEADER_FIELDS(FIELD)
#undef FIELD
    hbp__pack_named_i64(&packer, "group_ranks", schedule->group_ranks_total);
    hbp__pack_named_double(&packer, "gap", summary->gap);
    hbp__pack_named_double(&packer, "idle", summary->idle);
#define NAMES(name, table) HBP__TRY(pack_names(s, &packer, #name, schedule->name, schedule->table));
    HBP__TASK_NAMES(NAMES)
#undef NAMES
    return write_object(s, &s->header);
}

#define pack_column_int64_t hbp__pack_column_i64
#define pack_column_int32_t hbp__pack_column_i32

static hbp_status write_body(saving *s)
{
    const hbp_task_schedule *schedule = s->schedule;
    uint32_t columns = 0;
    msgpack_packer packer = hbp__buffer_packer(&s->columns);
#define COUNT(name, type, table, extra) columns++;
    HBP__TASK_COLUMNS(COUNT)
#undef COUNT
    msgpack_pack_map(&packer, columns);
#define PACK(name, type, table, extra)                                                                       \
    pack_column_##type(&s->columns, #name, schedule->name, schedule->table + (extra), 0);
    HBP__TASK_COLUMNS(PACK)
#undef PACK
    if (s->columns.failed)
        return hbp__fail_memory(s->context, "columns of a task schedule");
    HBP__TRY(hbp__tick(s->context, "save", 0, 1));
    packer = hbp__buffer_packer(&s->body);
    msgpack_pack_map(&packer, 5);
    hbp__pack_named_i64(&packer, "header_bytes", (int64_t)s->header.bytes);
    hbp__pack_named_i64(&packer, "header_crc32", hbp__crc32(s->header.data, s->header.bytes));
    HBP__TRY(
        hbp__zip_entries(&s->zip, s->level, &s->columns, &s->packed, &packer, "columns of a task schedule"));
    return write_object(s, &s->body);
}

static hbp_status check_size(hbp_context *context, const hbp_task_schedule *schedule)
{
    int64_t bytes = hbp__task_columns_bytes(schedule);
    int64_t names = schedule->meta_ops + schedule->tasks + schedule->parameters;
    if (bytes < 0 || bytes > HBP__ZIPPED_MAX_BYTES)
        return hbp__fail(context, HBP_E_OVERFLOW,
                         "the schedule has %lld bytes of columns; a file holds at most %lld",
                         (long long)bytes, (long long)HBP__ZIPPED_MAX_BYTES);
    if (names > HBP__TASK_MAX_NAMES)
        return hbp__fail(context, HBP_E_OVERFLOW, "the schedule has %lld names; a file holds at most %lld",
                         (long long)names, (long long)HBP__TASK_MAX_NAMES);
    return HBP_OK;
}

hbp_status hbp__task_schedule_save(hbp_context *context, const hbp_task_schedule *schedule, const char *path,
                                   int level)
{
    saving s = {.context = context, .schedule = schedule, .level = level, .zip.context = context};
    HBP__TRY(check_size(context, schedule));
    HBP__TRY(hbp__atomic_open(context, path, &s.file));
    s.header.memory = s.columns.memory = s.packed.memory = s.body.memory = context->memory;
    hbp_status status = write_header(&s);
    if (status == HBP_OK)
        status = write_body(&s);
    if (status < 0)
        hbp__atomic_discard(&s.file);
    else
        status = hbp__atomic_commit(context, &s.file);
    hbp__zip_close(&s.zip);
    hbp__buffer_free(&s.header);
    hbp__buffer_free(&s.columns);
    hbp__buffer_free(&s.packed);
    hbp__buffer_free(&s.body);
    return status;
}

hbp_status hbp_task_schedule_save(hbp_context *context, const hbp_task_schedule *schedule, const char *path)
{
    HBP__TRY(hbp__enter(context));
    HBP__TRY(hbp__require(context, schedule, "schedule"));
    HBP__TRY(hbp__require(context, path, "path"));
    return hbp__task_schedule_save(context, schedule, path, Z_BEST_SPEED);
}

/* A plan written as header, chunks of steps, index and tail, in one pass and bounded memory. */
#include <string.h>

#include "base/checked.h"
#include "base/options.h"
#include "data/cost/cost.h"
#include "hbp/base.h"
#include "hbp/io.h"
#include "io/file/atomic_file.h"
#include "io/file/file_head.h"
#include "io/file/little_endian.h"
#include "io/file/zipped.h"
#include "io/plan/plan_file.h"

#define NOTE_BYTES (1 << 20)

typedef struct saving {
    hbp_context *context;
    const hbp_plan *plan;
    hbp_plan_save_options options; /* defaults filled in */
    const hbp__plan_part_of *whole;
    hbp__atomic_file file;
    int32_t version;     /* of the format */
    uint64_t offset;     /* bytes written */
    hbp__plan_rows at;   /* rows in chunks so far */
    hbp__buffer columns; /* of the chunk at hand */
    hbp__buffer packed;  /* the same, deflated */
    hbp__buffer object;  /* msgpack about to be written */
    hbp__buffer chunks;  /* hbp__plan_chunk of each so far */
    uint64_t header_bytes;
    uint32_t header_crc;
    hbp__zip zip;
} saving;

static hbp_status read_options(hbp_context *context, const hbp_plan_save_options *caller,
                               hbp_plan_save_options *all)
{
    HBP__TRY(hbp__options_read(context, all, sizeof *all, caller, "hbp_plan_save_options"));
    if (all->note && strlen(all->note) > NOTE_BYTES)
        return hbp__fail(context, HBP_E_INVALID, "the note has %llu bytes; the header holds at most %d",
                         (unsigned long long)strlen(all->note), NOTE_BYTES);
    if (all->chunk_steps == 0)
        all->chunk_steps = HBP__PLAN_CHUNK_STEPS;
    all->level = all->level < 0 ? Z_NO_COMPRESSION : all->level == 0 ? Z_BEST_SPEED : all->level;
    return HBP_OK;
}

/* Writes the object and forgets it. */
static hbp_status write_object(saving *s)
{
    if (s->object.failed)
        return hbp__fail_memory(s->context, "a plan file");
    HBP__TRY(hbp__atomic_write(s->context, &s->file, s->object.data, (int64_t)s->object.bytes));
    s->offset += s->object.bytes;
    hbp__buffer_clear(&s->object);
    return HBP_OK;
}

static hbp_status write_header(saving *s)
{
    hbp_plan_summary summary;
    hbp__plan_summarise(s->plan, &summary);
    hbp__buffer *buffer = &s->object;
    uint32_t entries = 5;
#define COUNT(name) entries++;
    HBP__PLAN_HEADER_FIELDS(COUNT)
#undef COUNT
    const int32_t optional = hbp__plan_optional(s->plan);
    entries += (summary.bound_ns > 0) + ((optional & HBP__PLAN_VISION) != 0) +
               ((optional & HBP__PLAN_MODALITIES) != 0) + ((optional & HBP__PLAN_PIECES) != 0) +
               (s->options.cost != NULL) + (s->options.note != NULL) + (s->whole != NULL);
#define COUNT(name) entries += summary.name != 0;
    HBP__PLAN_HEADER_OPTIONAL(COUNT)
#undef COUNT
    hbp__pack_format(buffer, entries, HBP__PLAN_FORMAT, s->version);
    hbp__pack_text(buffer, "library");
    hbp__pack_text(buffer, HBP_VERSION_STRING);
#define FIELD(name)                                                                                          \
    hbp__pack_text(buffer, hbp__plan_key(#name));                                                            \
    hbp__pack_u64(buffer, (uint64_t)summary.name);
    HBP__PLAN_HEADER_FIELDS(FIELD)
    if (summary.bound_ns > 0) {
        FIELD(bound_ns)
    }
    if (optional & HBP__PLAN_VISION) {
        FIELD(vision)
    }
    if (optional & HBP__PLAN_MODALITIES) {
        FIELD(modalities)
    }
    if (optional & HBP__PLAN_PIECES) {
        hbp__pack_text(buffer, "dropped_pieces");
        hbp__pack_u64(buffer, 1);
    }
#define KNOWN(name)                                                                                          \
    if (summary.name) {                                                                                      \
        FIELD(name)                                                                                          \
    }
    HBP__PLAN_HEADER_OPTIONAL(KNOWN)
#undef KNOWN
#undef FIELD
    hbp__pack_text(buffer, "split");
    hbp__pack_u64(buffer, s->plan->sample_first_tokens != NULL);
    hbp__pack_text(buffer, "loss");
    hbp__pack_u64(buffer, s->plan->sample_loss_tokens != NULL);
    if (s->options.cost) {
        hbp__pack_text(buffer, "cost");
        hbp__plan_pack_cost(buffer, &s->options.cost->terms);
    }
    if (s->options.note) {
        hbp__pack_text(buffer, "note");
        hbp__pack_text(buffer, s->options.note);
    }
    if (s->whole) {
        hbp__pack_text(buffer, s->whole->key);
        uint8_t *at = hbp__buffer_extend(&s->object, s->whole->map->bytes);
        if (at)
            memcpy(at, s->whole->map->data, s->whole->map->bytes);
    }
    s->header_bytes = s->object.bytes;
    s->header_crc = hbp__crc32(s->object.data, s->object.bytes);
    return write_object(s);
}

/* Rows of steps [at, at + steps), which follow those written. */
static hbp__plan_rows rows_of(const saving *s, int64_t steps)
{
    const hbp_plan *plan = s->plan;
    int64_t micro_batch = plan->step_offsets[s->at.steps + steps];
    int64_t pack = plan->micro_batch_offsets[micro_batch];
    return (hbp__plan_rows){steps, micro_batch - s->at.micro_batches, pack - s->at.packs,
                            plan->pack_offsets[pack] - s->at.samples, 0};
}

/* The next chunk: a step or more, up to the options' number and a chunk's bytes; after the steps, dropped
 * samples. */
static hbp__plan_rows next_rows(const saving *s, int32_t optional)
{
    int64_t steps = 1, left = s->plan->steps - s->at.steps;
    if (!left) {
        int64_t most = HBP__PLAN_CHUNK_BYTES / (int64_t)(sizeof(int64_t) + sizeof(int32_t));
        return (hbp__plan_rows){0, 0, 0, 0, hbp__min_i64(s->plan->dropped - s->at.dropped, most)};
    }
    hbp__plan_rows rows = rows_of(s, steps);
    while (steps < left && steps < s->options.chunk_steps) {
        hbp__plan_rows more = rows_of(s, steps + 1);
        if (hbp__plan_chunk_bytes(&more, optional) > HBP__PLAN_CHUNK_BYTES)
            break;
        rows = more;
        steps++;
    }
    return rows;
}

#define pack_column_int64_t hbp__pack_column_i64
#define pack_column_int32_t hbp__pack_column_i32

/* Offsets count from the chunk's own first row. */
static hbp_status pack_columns(saving *s, const hbp__plan_rows *rows)
{
    const hbp_plan *plan = s->plan;
    uint32_t columns = 0;
    hbp__buffer_clear(&s->columns);
    hbp__buffer *buffer = &s->columns;
#define COUNT(name, type, table, extra) columns += plan->name && hbp__plan_chunk_has(rows, HBP__ON_##table);
    HBP__PLAN_COLUMNS(COUNT)
#undef COUNT
    hbp__pack_map(buffer, columns);
#define PACK(name, type, table, extra)                                                                       \
    if (plan->name && hbp__plan_chunk_has(rows, HBP__ON_##table))                                            \
        pack_column_##type(&s->columns, #name, plan->name + s->at.table, rows->table + (extra),              \
                           (extra) ? plan->name[s->at.table] : 0);
    HBP__PLAN_COLUMNS(PACK)
#undef PACK
    return s->columns.failed ? hbp__fail_memory(s->context, "a chunk of a plan file") : HBP_OK;
}

static hbp_status write_chunk(saving *s, const hbp__plan_rows *rows, int32_t optional)
{
    if (hbp__plan_chunk_bytes(rows, optional) > HBP__ZIPPED_MAX_BYTES)
        return hbp__fail(s->context, HBP_E_OVERFLOW,
                         "step %lld has %lld bytes of columns; a chunk holds at most %lld",
                         (long long)s->at.steps, (long long)hbp__plan_chunk_bytes(rows, optional),
                         (long long)HBP__ZIPPED_MAX_BYTES);
    HBP__TRY(pack_columns(s, rows));
    hbp__buffer *buffer = &s->object;
    hbp__pack_map(buffer, 9);
    hbp__pack_named_i64(buffer, "first_step", s->at.steps);
#define PACK(table) hbp__pack_named_i64(buffer, #table, rows->table);
    HBP__PLAN_TABLES(PACK)
#undef PACK
    HBP__TRY(hbp__zip_entries(&s->zip, s->options.level, &s->columns, &s->packed, buffer,
                              "a chunk of a plan file"));
    uint8_t *row = hbp__buffer_extend(&s->chunks, sizeof(hbp__plan_chunk));
    if (!row)
        return hbp__fail_memory(s->context, "the index of a plan file");
    hbp__plan_chunk chunk = {(int64_t)s->offset, (int64_t)s->object.bytes, *rows};
    memcpy(row, &chunk, sizeof chunk);
#define ADVANCE(table) s->at.table += rows->table;
    HBP__PLAN_TABLES(ADVANCE)
#undef ADVANCE
    return write_object(s);
}

static hbp_status write_chunks(saving *s)
{
    const int32_t optional = hbp__plan_optional(s->plan);
    while (s->at.steps < s->plan->steps || s->at.dropped < s->plan->dropped) {
        HBP__TRY(hbp__tick(s->context, "save", s->at.steps, s->plan->steps));
        hbp__plan_rows rows = next_rows(s, optional);
        HBP__TRY(write_chunk(s, &rows, optional));
    }
    return HBP_OK;
}

static hbp_status write_index(saving *s)
{
    const uint64_t count = s->chunks.bytes / sizeof(hbp__plan_chunk);
    int64_t *column = hbp__new(&s->context->memory, count, sizeof *column);
    if (!column)
        return hbp__fail_memory(s->context, "the index of a plan file");
    const hbp__plan_chunk *chunks = (const void *)s->chunks.data;
    hbp__buffer *buffer = &s->object;
    hbp__pack_map(buffer, 10);
    hbp__pack_named_i64(buffer, "header_bytes", (int64_t)s->header_bytes);
    hbp__pack_named_i64(buffer, "header_crc32", s->header_crc);
    hbp__pack_named_i64(buffer, "chunks", (int64_t)count);
#define PACK(name, field)                                                                                    \
    for (uint64_t i = 0; i < count; i++)                                                                     \
        column[i] = chunks[i].field;                                                                         \
    hbp__pack_column_i64(&s->object, name, column, (int64_t)count, 0);
#define PACK_TABLE(table) PACK(#table, rows.table)
    PACK("offset", offset)
    PACK("bytes", bytes)
    HBP__PLAN_TABLES(PACK_TABLE)
#undef PACK_TABLE
#undef PACK
    hbp__delete(&s->context->memory, column);
    uint8_t tail[HBP__PLAN_TAIL_BYTES] = HBP__PLAN_TAIL_HEAD;
    uint64_t offset = s->offset;
    hbp__put_le(tail + 6, (uint64_t)s->version, 4);
    hbp__put_le(tail + 10, offset, 8);
    hbp__put_le(tail + 18, offset + s->object.bytes + sizeof tail, 8);
    hbp__put_le(tail + 26, s->object.failed ? 0 : hbp__crc32(s->object.data, s->object.bytes), 4);
    hbp__put_le(tail + 30, hbp__crc32(tail, 30), 4);
    HBP__TRY(write_object(s));
    return hbp__atomic_write(s->context, &s->file, tail, sizeof tail);
}

static hbp_status write_file(saving *s)
{
    HBP__TRY(write_header(s));
    HBP__TRY(write_chunks(s));
    return write_index(s);
}

hbp_status hbp__plan_save(hbp_context *context, const hbp_plan *plan, const char *path,
                          const hbp_plan_save_options *options, const hbp__plan_part_of *whole)
{
    saving s = {.context = context,
                .plan = plan,
                .whole = whole,
                .version = hbp__plan_format_version(plan),
                .zip.context = context};
    HBP__TRY(read_options(context, options, &s.options));
    HBP__TRY(hbp__atomic_open(context, path, &s.file));
    s.columns.memory = s.packed.memory = s.object.memory = s.chunks.memory = context->memory;
    hbp_status status = write_file(&s);
    status = hbp__atomic_end(context, &s.file, status);
    hbp__zip_close(&s.zip);
    hbp__buffer_free(&s.columns);
    hbp__buffer_free(&s.packed);
    hbp__buffer_free(&s.object);
    hbp__buffer_free(&s.chunks);
    return status;
}

hbp_status hbp_plan_save(hbp_context *context, const hbp_plan *plan, const char *path,
                         const hbp_plan_save_options *options)
{
    HBP__TRY(hbp__enter(context));
    HBP__TRY(hbp__require(context, plan, "plan"));
    HBP__TRY(hbp__require(context, path, "path"));
    return hbp__plan_save(context, plan, path, options, NULL);
}

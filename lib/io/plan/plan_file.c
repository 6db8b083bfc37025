/* Header and index of a plan file. Nothing in it is believed: sizes are held against the file's before memory
 * is taken, and every byte lies under a CRC or is compared. */
#include "io/plan/plan_file.h"
#include "hbp/io.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/options.h"
#include "base/scratch.h"
#include "io/file/file_head.h"
#include "io/file/little_endian.h"
#include "io/file/zipped.h"
#include "io/msgpack/msgpack_buffer.h"

/* Objects in a header (a cost's tables and the names of layers included) and in an index. */
#define HEADER_OBJECTS 65536
#define INDEX_OBJECTS  64

/* An object at [offset, offset + bytes) with this CRC-32, unpacked into `object`, whose texts and bins point
 * into *data, scratch. */
static hbp_status read_object(hbp_context *context, const hbp_plan_file *file, const char *what,
                              int64_t offset, int64_t bytes, uint32_t crc, uint64_t max_objects,
                              uint8_t **data, hbp__document *object)
{
    char text[96];
    *data = hbp__take(context, (uint64_t)bytes, 1);
    HBP__TRY(hbp__scratch_check(context, "the header of a plan file"));
    HBP__TRY(hbp__file_read(context, &file->source, offset, bytes, *data));
    if (hbp__crc32(*data, (uint64_t)bytes) != crc) {
        snprintf(text, sizeof text, "the CRC-32 of the %s differs", what);
        return hbp__file_fail(context, &file->source, offset, text);
    }
    snprintf(text, sizeof text, "the %s", what);
    return hbp__file_unpack(context, &file->source, offset, text, *data, (uint64_t)bytes, max_objects,
                            object);
}

/* First bytes and tail; *index gets the offset of the index, *crc its CRC. */
static hbp_status read_tail(hbp_context *context, hbp_plan_file *file, int64_t *index, uint32_t *crc)
{
    uint8_t tail[HBP__PLAN_TAIL_BYTES];
    int64_t at = file->source.bytes - (int64_t)sizeof tail;
    HBP__TRY(hbp__file_version(context, &file->source, HBP__PLAN_FORMAT, "a plan file",
                               HBP__PLAN_FORMAT_VERSION, &file->version));
    if (at <= hbp__format_version_at(HBP__PLAN_FORMAT))
        return hbp__file_fail(context, &file->source, file->source.bytes,
                              "the file is cut off: it has no tail");
    HBP__TRY(hbp__file_read(context, &file->source, at, sizeof tail, tail));
    if (memcmp(tail, HBP__PLAN_TAIL_HEAD, 6) != 0)
        return hbp__file_fail(context, &file->source, at,
                              "there is no tail: the file is cut off or was added to");
    if (hbp__get_le(tail + 30, 4) != hbp__crc32(tail, 30) ||
        hbp__get_le(tail + 6, 4) != (uint64_t)file->version)
        return hbp__file_fail(context, &file->source, at, "the tail is damaged");
    uint64_t offset = hbp__get_le(tail + 10, 8);
    if (hbp__get_le(tail + 18, 8) != (uint64_t)file->source.bytes || offset >= (uint64_t)at)
        return hbp__file_fail(context, &file->source, at, "the tail is of a file of another size");
    *index = (int64_t)offset;
    *crc = (uint32_t)hbp__get_le(tail + 26, 4);
    return HBP_OK;
}

/* Chunks follow each other from the header to the index, and their columns are no larger than deflate can
 * make them. */
static hbp_status check_chunks(hbp_context *context, hbp_plan_file *file, int64_t header, int64_t index)
{
    int64_t at = header;
    file->start[0] = (hbp__plan_rows){0, 0, 0, 0, 0};
    for (int64_t i = 0; i < file->chunks; i++) {
        const hbp__plan_chunk *chunk = &file->chunk[i];
        if (chunk->offset != at || chunk->bytes < 1 || chunk->bytes > index - at)
            return hbp__file_fail(context, &file->source, index, "the index has chunks where none can be");
        /* The index is read before the header says which columns there are: without the optional ones for
         * now. */
        int64_t columns = hbp__plan_chunk_bytes(&chunk->rows, 0);
        if (columns < 1 || columns / HBP__INFLATE_RATIO > chunk->bytes || columns > HBP__ZIPPED_MAX_BYTES)
            return hbp__file_fail(context, &file->source, at,
                                  "the chunk is smaller than the rows the index gives it");
        at += chunk->bytes;
#define ADD(table) file->start[i + 1].table = file->start[i].table + chunk->rows.table;
        HBP__PLAN_TABLES(ADD)
#undef ADD
        if (chunk->rows.steps && file->start[i + 1].dropped)
            return hbp__file_fail(context, &file->source, index, "the index has steps after dropped samples");
    }
    if (at != index)
        return hbp__file_fail(context, &file->source, index, "the chunks do not end where the index begins");
    return HBP_OK;
}

static hbp_status unpack_index(hbp_context *context, hbp_plan_file *file, const hbp__value *map,
                               int64_t index)
{
    int64_t crc, *header = &file->header_bytes;
    if (!hbp__unpack_i64(map, "chunks", &file->chunks) || !hbp__unpack_i64(map, "header_bytes", header) ||
        !hbp__unpack_i64(map, "header_crc32", &crc) || crc > UINT32_MAX || *header < 1 || *header > index)
        return hbp__file_fail(context, &file->source, index, "the index lacks a number");
    file->header_crc = (uint32_t)crc;
    const struct {
        const char *name;
        size_t field;
    } columns[] = {
#define TABLE(table) {#table, offsetof(hbp__plan_chunk, rows.table)},
        {"offset", offsetof(hbp__plan_chunk, offset)},
        {"bytes", offsetof(hbp__plan_chunk, bytes)},
        HBP__PLAN_TABLES(TABLE)
#undef TABLE
    };
    for (size_t c = 0; c < sizeof columns / sizeof *columns; c++) {
        const uint8_t *values = hbp__unpack_column(map, columns[c].name, file->chunks, 8);
        if (!values)
            return hbp__file_fail(context, &file->source, index, "the index lacks a column");
        if (c == 0) { /* the count is now known to be what the file holds */
            file->chunk = hbp__new(&file->memory, (uint64_t)file->chunks, sizeof *file->chunk);
            file->start = hbp__new(&file->memory, (uint64_t)file->chunks + 1, sizeof *file->start);
            if (!file->chunk || !file->start)
                return hbp__fail_memory(context, "the index of a plan file");
        }
        for (int64_t i = 0; i < file->chunks; i++) {
            int64_t value = (int64_t)hbp__get_le(values + 8 * i, 8);
            memcpy((char *)&file->chunk[i] + columns[c].field, &value, sizeof value);
        }
    }
    return check_chunks(context, file, *header, index);
}

static hbp_status refuse_number(hbp_context *context, const hbp_plan_file *file, const hbp__value *map,
                                const char *key)
{
    char what[192];
    hbp__say_entry(what, sizeof what, map, "the header", "number", key);
    return hbp__file_fail(context, &file->source, 0, what);
}

static hbp_status keep_note(hbp_context *context, hbp_plan_file *file, const char *note)
{
    size_t bytes = note ? strlen(note) + 1 : 0;
    if (!note)
        return HBP_OK;
    file->note = hbp__new(&file->memory, bytes, 1);
    if (!file->note)
        return hbp__fail_memory(context, "the note of a plan file");
    memcpy(file->note, note, bytes);
    return HBP_OK;
}

static hbp_status unpack_header(hbp_context *context, hbp_plan_file *file, const hbp__value *map)
{
    hbp_plan_summary *summary = &file->summary;
    uint64_t split = 2, loss = 2;
    summary->struct_size = sizeof *summary;
    summary->vision = -1;
#define FIELD(name)                                                                                          \
    if (!hbp__unpack_number(map, hbp__plan_key(#name), &summary->name))                                      \
        return refuse_number(context, file, map, hbp__plan_key(#name));
    HBP__PLAN_HEADER_FIELDS(FIELD)
    if (hbp__value_find(map, "bound_ns")) {
        FIELD(bound_ns)
    }
    if (file->version > 1 && hbp__value_find(map, "vision")) {
        FIELD(vision)
        file->optional |= HBP__PLAN_VISION;
    }
    if (file->version > 1 && hbp__value_find(map, "modalities")) {
        FIELD(modalities)
        file->optional |= HBP__PLAN_MODALITIES;
    }
    if (file->version > 2 && hbp__value_find(map, "dropped_pieces"))
        file->optional |= HBP__PLAN_PIECES;
#define KNOWN(name)                                                                                          \
    if (hbp__value_find(map, #name)) {                                                                       \
        FIELD(name)                                                                                          \
    }
    HBP__PLAN_HEADER_OPTIONAL(KNOWN)
#undef KNOWN
#undef FIELD
    if (file->version < 3) /* keys that its readers pass over */
        summary->sequence_multiple_per_sp = summary->pack_multiple_per_sp = 0;
    if (file->version < 4)
        summary->lockstep_ranks = 0;
    if (summary->bound_ns > summary->predicted_ns || summary->free_bound_ns > summary->predicted_ns)
        return hbp__file_fail(context, &file->source, 0, "the header's bound is above the predicted time");
    summary->gap = hbp__plan_gap(summary->predicted_ns, summary->bound_ns);
    summary->proven = hbp__plan_is_proven(summary->predicted_ns, summary->bound_ns);
    if (!hbp__unpack_u64(map, "split", &split) || !hbp__unpack_u64(map, "loss", &loss) || split > 1 ||
        loss > 1)
        return hbp__file_fail(context, &file->source, 0, "the header lacks 'split' or 'loss'");
    HBP__TRY(keep_note(context, file, hbp__value_text(hbp__value_find(map, "note"))));
    file->has_vlm = hbp__value_find(map, HBP__PLAN_VLM_KEY) != NULL;
    file->optional |= (split ? HBP__PLAN_SPLIT : 0) | (loss ? HBP__PLAN_LOSS : 0);
    const hbp__plan_rows *rows = &file->start[file->chunks];
#define SAME(table)                                                                                          \
    if (summary->table != rows->table)                                                                       \
        return hbp__file_fail(context, &file->source, 0, "header and index differ in the number of " #table);
    HBP__PLAN_TABLES(SAME)
#undef SAME
    for (int64_t i = 0; i < file->chunks; i++)
        if (hbp__plan_chunk_bytes(&file->chunk[i].rows, file->optional) / HBP__INFLATE_RATIO >
            file->chunk[i].bytes)
            return hbp__file_fail(context, &file->source, file->chunk[i].offset,
                                  "the chunk is smaller than the rows the index gives it");
    return HBP_OK;
}

hbp_status hbp__plan_file_header(hbp_context *context, const hbp_plan_file *file, uint8_t **data,
                                 hbp__document *header)
{
    return read_object(context, file, "header", 0, file->header_bytes, file->header_crc, HEADER_OBJECTS, data,
                       header);
}

static hbp_status read_parts(hbp_context *context, hbp_plan_file *file)
{
    int64_t index = 0, mark = hbp__scratch_mark(context);
    uint32_t crc = 0;
    uint8_t *data = NULL;
    HBP__TRY(read_tail(context, file, &index, &crc));
    hbp__document object = {.memory = context->memory};
    hbp_status status =
        read_object(context, file, "index", index, file->source.bytes - HBP__PLAN_TAIL_BYTES - index, crc,
                    INDEX_OBJECTS, &data, &object);
    if (status == HBP_OK)
        status = unpack_index(context, file, object.values, index);
    if (status == HBP_OK)
        hbp__scratch_release(context, mark);
    if (status == HBP_OK)
        status = hbp__plan_file_header(context, file, &data, &object);
    if (status == HBP_OK)
        status = unpack_header(context, file, object.values);
    hbp__document_free(&object);
    return hbp__leave(context, mark, status);
}

static hbp_plan_file *new_file(hbp_context *context)
{
    hbp_plan_file *file = hbp__new_zero(&context->memory, 1, sizeof *file);
    if (file) {
        file->memory = context->memory;
        file->source.descriptor = -1;
    }
    return file;
}

/* Gives the file away when its parts are sound. */
static hbp_status finish_open(hbp_context *context, hbp_plan_file *file, hbp_status status,
                              hbp_plan_file **out)
{
    if (status == HBP_OK)
        status = read_parts(context, file);
    if (status == HBP_OK)
        *out = file;
    else
        hbp_plan_file_free(file);
    return status;
}

hbp_status hbp__plan_file_open(hbp_context *context, const char *path, hbp_plan_file **out)
{
    hbp_plan_file *file = new_file(context);
    if (!file)
        return hbp__fail_memory(context, "a plan file");
    return finish_open(context, file, hbp__file_open(context, path, &file->source), out);
}

hbp_status hbp__plan_file_open_memory(hbp_context *context, const void *data, int64_t bytes,
                                      hbp_plan_file **out)
{
    hbp_plan_file *file = new_file(context);
    if (!file)
        return hbp__fail_memory(context, "a plan file");
    hbp__file_open_memory(data, bytes, &file->source);
    return finish_open(context, file, HBP_OK, out);
}

hbp_status hbp_plan_file_open(hbp_context *context, const char *path, hbp_plan_file **out)
{
    if (out)
        *out = NULL;
    HBP__TRY(hbp__enter(context));
    HBP__TRY(hbp__require(context, path, "path"));
    HBP__TRY(hbp__require(context, out, "out"));
    return hbp__plan_file_open(context, path, out);
}

void hbp_plan_file_free(hbp_plan_file *file)
{
    if (!file)
        return;
    hbp__memory memory = file->memory;
    hbp__file_close(&file->source);
    hbp__delete(&memory, file->note);
    hbp__delete(&memory, file->chunk);
    hbp__delete(&memory, file->start);
    hbp__delete(&memory, file);
}

int32_t hbp_plan_file_has_vlm(const hbp_plan_file *file)
{
    return file ? file->has_vlm : 0;
}

hbp_status hbp_plan_file_get_summary(hbp_context *context, const hbp_plan_file *file,
                                     hbp_plan_summary *summary)
{
    HBP__TRY(hbp__enter(context));
    HBP__TRY(hbp__require(context, file, "file"));
    return hbp__struct_write(context, summary, &file->summary, sizeof file->summary, "hbp_plan_summary");
}

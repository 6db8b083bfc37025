/* Chunks of a plan file: columns of some rows of each table, narrowed, laid end to end and compressed. */
#include <msgpack.h>
#include <string.h>

#include "base/checked.h"
#include "io/plan_format.h"

/* Bytes given to zlib between two looks at whether to go on: 10 ms at its slowest level. */
#define ZIP_BLOCK (INT64_C(1) << 17)

static const struct {
    char name[4];
    int width;
    int64_t most;
} dtypes[] = {{"<u1", 1, UINT8_MAX}, {"<u2", 2, UINT16_MAX}, {"<u4", 4, UINT32_MAX}, {"<i8", 8, INT64_MAX}};

enum { DTYPES = sizeof dtypes / sizeof *dtypes };

static int narrowest(const int64_t *values, int64_t rows)
{
    uint64_t bits = 0; /* a negative value sets the top one */
    for (int64_t i = 0; i < rows; i++)
        bits |= (uint64_t)values[i];
    int d = 0;
    while (d < DTYPES - 1 && bits > (uint64_t)dtypes[d].most)
        d++;
    return d;
}

static void store(unsigned char *to, const int64_t *values, int64_t rows, int width)
{
    for (int64_t i = 0; i < rows; i++)
        for (int b = 0; b < width; b++)
            *to++ = (unsigned char)((uint64_t)values[i] >> (8 * b));
}

int hbp__plan_column_pack(hbp__buffer *to, const int64_t *values, int64_t rows)
{
    int d = narrowest(values, rows), width = dtypes[d].width;
    int64_t bytes = rows * width;
    if (bytes > UINT32_MAX)
        return 0;
    msgpack_packer packer;
    msgpack_packer_init(&packer, to, hbp__buffer_write);
    msgpack_pack_map(&packer, 2);
    msgpack_pack_str_with_body(&packer, "dtype", 5);
    msgpack_pack_str_with_body(&packer, dtypes[d].name, 3);
    msgpack_pack_str_with_body(&packer, "data", 4);
    msgpack_pack_bin(&packer, (size_t)bytes);
    unsigned char *at = hbp__buffer_reserve(to, bytes);
    if (!at)
        return 0;
    /* constants, so that each becomes a loop of its own */
    if (width == 1)
        store(at, values, rows, 1);
    else if (width == 2)
        store(at, values, rows, 2);
    else if (width == 4)
        store(at, values, rows, 4);
    else
        store(at, values, rows, 8);
    to->bytes += bytes;
    return 1;
}

static void fetch(const unsigned char *from, int64_t *values, int64_t rows, int width)
{
    for (int64_t i = 0; i < rows; i++) {
        uint64_t value = 0;
        for (int b = 0; b < width; b++)
            value |= (uint64_t)*from++ << (8 * b);
        values[i] = (int64_t)value;
    }
}

int hbp__plan_column_unpack(hbp__scan *from, int64_t *values, int64_t rows)
{
    hbp__scan dtype, data;
    const char *text;
    const unsigned char *bin;
    int64_t length, bytes;
    int d = 0;
    if (!hbp__scan_find(from, "dtype", &dtype) || !hbp__scan_text(&dtype, &text, &length) || length != 3 ||
        !hbp__scan_find(from, "data", &data) || !hbp__scan_bin(&data, &bin, &bytes))
        return 0;
    while (d < DTYPES && memcmp(text, dtypes[d].name, 3) != 0)
        d++;
    if (d == DTYPES || bytes / dtypes[d].width != rows || bytes % dtypes[d].width)
        return 0;
    if (dtypes[d].width == 1)
        fetch(bin, values, rows, 1);
    else if (dtypes[d].width == 2)
        fetch(bin, values, rows, 2);
    else if (dtypes[d].width == 4)
        fetch(bin, values, rows, 4);
    else
        fetch(bin, values, rows, 8);
    return 1;
}

const char *hbp__plan_column_name(const char *column)
{
    static const char *const counts[][2] = {{"step_offsets", "step_micro_batches"},
                                            {"micro_batch_offsets", "micro_batch_packs"},
                                            {"pack_offsets", "pack_samples"}};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        if (strcmp(column, counts[i][0]) == 0)
            return counts[i][1];
    return column;
}

static voidpf zip_alloc(voidpf user, uInt count, uInt size)
{
    return hbp__new(user, count, size);
}

static void zip_free(voidpf user, voidpf block)
{
    hbp__delete(user, block);
}

void hbp__plan_codec_free(hbp__plan_codec *codec)
{
    if (codec->deflating)
        deflateEnd(&codec->z);
    if (codec->inflating)
        inflateEnd(&codec->z);
    codec->deflating = codec->inflating = 0;
    hbp__buffer_free(&codec->columns);
    hbp__buffer_free(&codec->object);
    hbp__buffer_free(&codec->scratch);
}

/* Empties the buffers and gets zlib ready for one more chunk. */
static int begin(hbp__plan_codec *codec, int deflating)
{
    hbp__buffer *buffers[] = {&codec->columns, &codec->scratch, &codec->object};
    for (int i = 0; i < (deflating ? 3 : 2); i++) {
        buffers[i]->memory = codec->memory;
        buffers[i]->bytes = 0;
        buffers[i]->failed = 0;
    }
    if (codec->deflating)
        return deflateReset(&codec->z) == Z_OK;
    if (codec->inflating)
        return inflateReset(&codec->z) == Z_OK;
    codec->z = (z_stream){.zalloc = zip_alloc, .zfree = zip_free, .opaque = (voidpf)(uintptr_t)codec->memory};
    int *ready = deflating ? &codec->deflating : &codec->inflating;
    *ready = (deflating ? deflateInit(&codec->z, codec->level) : inflateInit(&codec->z)) == Z_OK;
    return *ready;
}

/* Runs zlib over `bytes` of input and `room` of output in pieces, until its end or until it gets no further;
 * *left is the room that stays, *code zlib's last answer, which is a failure when input stays. */
static hbp_status run_zip(hbp_context *context, hbp__plan_codec *codec, int64_t bytes, int64_t room,
                          int64_t *left, int *code)
{
    z_stream *z = &codec->z;
    uInt in, out;
    z->avail_in = z->avail_out = 0;
    do {
        if (!z->avail_in) {
            z->avail_in = (uInt)hbp__min_i64(bytes, ZIP_BLOCK);
            bytes -= z->avail_in;
        }
        if (!z->avail_out) {
            z->avail_out = (uInt)hbp__min_i64(room, ZIP_BLOCK);
            room -= z->avail_out;
        }
        in = z->avail_in;
        out = z->avail_out;
        *code = codec->deflating ? deflate(z, bytes ? Z_NO_FLUSH : Z_FINISH) : inflate(z, Z_NO_FLUSH);
        HBP__TRY(hbp__tick(context, codec->deflating ? "save" : "load", codec->done, codec->total));
    } while ((*code == Z_OK || *code == Z_BUF_ERROR) && (z->avail_in != in || z->avail_out != out));
    *left = room + z->avail_out;
    if (*code == Z_STREAM_END && (bytes || z->avail_in))
        *code = Z_DATA_ERROR;
    return HBP_OK;
}

static hbp_status compress_columns(hbp_context *context, hbp__plan_codec *codec)
{
    z_stream *z = &codec->z;
    int64_t bytes = codec->columns.bytes;
    /* what does not compress is stored: 5 bytes a block, of which each piece ends a few */
    int64_t room = bytes + (bytes >> 8) + 1024, left;
    codec->scratch.bytes = 0;
    unsigned char *to = hbp__buffer_reserve(&codec->scratch, room);
    if (!to)
        return hbp__fail_memory(context, "a chunk of the plan");
    int code;
    z->next_in = codec->columns.data;
    z->next_out = to;
    HBP__TRY(run_zip(context, codec, bytes, room, &left, &code));
    if (code != Z_STREAM_END)
        return hbp__fail(context, HBP_E_INTERNAL, "zlib stopped with %d", code);
    codec->scratch.bytes = room - left;
    return HBP_OK;
}

static void pack_key(msgpack_packer *packer, const char *key, int64_t value)
{
    msgpack_pack_str_with_body(packer, key, strlen(key));
    msgpack_pack_int64(packer, value);
}

/* The object: first rows and rows of its tables, size of the columns, the columns. */
static hbp_status wrap(hbp_context *context, hbp__plan_codec *codec, const hbp__plan_rows *first,
                       const hbp__plan_rows *end)
{
    if (codec->scratch.bytes > UINT32_MAX || codec->columns.bytes > UINT32_MAX)
        return hbp__fail(context, HBP_E_OVERFLOW, "step %lld has %lld samples, too many for a plan file",
                         (long long)first->steps, (long long)(end->samples - first->samples));
    msgpack_packer packer;
    msgpack_packer_init(&packer, &codec->object, hbp__buffer_write);
    msgpack_pack_map(&packer, 8);
    pack_key(&packer, "first_step", first->steps);
#define PACK_ROWS(table) pack_key(&packer, #table, end->table - first->table);
    HBP__PLAN_TABLES(PACK_ROWS)
#undef PACK_ROWS
    pack_key(&packer, "bytes", codec->columns.bytes);
    msgpack_pack_str_with_body(&packer, "columns", 7);
    msgpack_pack_bin_with_body(&packer, codec->scratch.data, (size_t)codec->scratch.bytes);
    return codec->object.failed ? hbp__fail_memory(context, "a chunk of the plan") : HBP_OK;
}

hbp_status hbp__plan_chunk_pack(hbp_context *context, hbp__plan_codec *codec, const hbp_plan *plan,
                                const hbp__plan_rows *first, const hbp__plan_rows *end)
{
    if (!begin(codec, 1))
        return hbp__fail_memory(context, "zlib");
    uint32_t count = 0;
#define COUNT(name, type, table, extra) count += plan->name && end->table > first->table;
    HBP__PLAN_COLUMNS(COUNT)
#undef COUNT
    msgpack_packer packer;
    msgpack_packer_init(&packer, &codec->columns, hbp__buffer_write);
    msgpack_pack_map(&packer, count);
    int overflow = 0;
#define PACK(name, type, table, extra)                                                                       \
    if (plan->name && end->table > first->table) {                                                           \
        const char *key = hbp__plan_column_name(#name);                                                      \
        const type *from = plan->name + first->table;                                                        \
        int64_t rows = end->table - first->table;                                                            \
        int64_t *values = (void *)hbp__buffer_reserve(&codec->scratch, rows * 8);                            \
        if (!values)                                                                                         \
            return hbp__fail_memory(context, "a chunk of the plan");                                         \
        for (int64_t i = 0; i < rows; i++)                                                                   \
            values[i] = (extra) ? (int64_t)from[i + (extra)] - (int64_t)from[i] : (int64_t)from[i];          \
        msgpack_pack_str_with_body(&packer, key, strlen(key));                                               \
        overflow |= !hbp__plan_column_pack(&codec->columns, values, rows);                                   \
    }
    HBP__PLAN_COLUMNS(PACK)
#undef PACK
    if (codec->columns.failed)
        return hbp__fail_memory(context, "a chunk of the plan");
    if (overflow)
        codec->columns.bytes = INT64_MAX; /* wrap says so */
    else
        HBP__TRY(compress_columns(context, codec));
    return wrap(context, codec, first, end);
}

static hbp_status damaged(hbp_context *context, int64_t stored, const char *what)
{
    return hbp__fail(context, HBP_E_FORMAT, "byte %lld: the chunk's %s", (long long)stored, what);
}

static int scan_key(const hbp__scan *map, const char *key, int64_t *value)
{
    hbp__scan at;
    return hbp__scan_find(map, key, &at) && hbp__scan_i64(&at, value);
}

/* Checks the object around the columns and inflates them. */
static hbp_status unwrap(hbp_context *context, hbp__plan_codec *codec, int64_t stored,
                         const hbp__plan_rows *first, const hbp__plan_rows *end)
{
    hbp__scan object = {codec->object.data, codec->object.bytes, 0}, whole = object, data;
    int64_t value, bytes, packed, left;
    const unsigned char *columns;
    if (!hbp__scan_skip(&whole) || whole.at != object.bytes)
        return damaged(context, stored, "object does not end where the index says");
    int same = scan_key(&object, "first_step", &value) && value == first->steps;
#define SAME_ROWS(table)                                                                                     \
    same = same && scan_key(&object, #table, &value) && value == end->table - first->table;
    HBP__PLAN_TABLES(SAME_ROWS)
#undef SAME_ROWS
    if (!same)
        return damaged(context, stored, "rows are not those of the index");
    if (!hbp__scan_find(&object, "columns", &data) || !hbp__scan_bin(&data, &columns, &packed) ||
        !scan_key(&object, "bytes", &bytes) || bytes < 0 || bytes / HBP__ZLIB_RATIO > packed)
        return damaged(context, stored, "columns are missing, or of a size that cannot be");
    unsigned char *to = hbp__buffer_reserve(&codec->columns, bytes);
    if (!to || !begin(codec, 0))
        return hbp__fail_memory(context, "a chunk of the plan");
    to = codec->columns.data;
    codec->z.next_in = codec->object.data + (columns - codec->object.data);
    codec->z.next_out = to;
    int code;
    HBP__TRY(run_zip(context, codec, packed, bytes, &left, &code));
    if (code == Z_MEM_ERROR)
        return hbp__fail_memory(context, "zlib");
    if (code != Z_STREAM_END || left)
        return damaged(context, stored, "compressed columns are damaged");
    codec->columns.bytes = bytes;
    return HBP_OK;
}

static int fits_int32_t(int64_t value)
{
    return value >= 0 && value <= INT32_MAX;
}

static int fits_int64_t(int64_t value)
{
    (void)value;
    return 1;
}

hbp_status hbp__plan_chunk_unpack(hbp_context *context, hbp__plan_codec *codec, int64_t stored,
                                  hbp_plan *plan, const hbp__plan_rows *first, const hbp__plan_rows *end)
{
    codec->columns.memory = codec->scratch.memory = codec->memory;
    codec->columns.bytes = codec->scratch.bytes = 0;
    codec->columns.failed = codec->scratch.failed = 0;
    HBP__TRY(unwrap(context, codec, stored, first, end));
    hbp__scan map = {codec->columns.data, codec->columns.bytes, 0}, column;
#define UNPACK(name, type, table, extra)                                                                     \
    if (plan->name && end->table > first->table) {                                                           \
        type *to = plan->name + first->table;                                                                \
        int64_t rows = end->table - first->table;                                                            \
        int64_t *values = (void *)hbp__buffer_reserve(&codec->scratch, rows * 8);                            \
        if (!values)                                                                                         \
            return hbp__fail_memory(context, "a chunk of the plan");                                         \
        if (!hbp__scan_find(&map, hbp__plan_column_name(#name), &column) ||                                  \
            !hbp__plan_column_unpack(&column, values, rows))                                                 \
            return damaged(context, stored, #name " are missing, or too few or many");                       \
        for (int64_t i = 0; i < rows; i++) {                                                                 \
            int64_t value = values[i];                                                                       \
            if (!fits_##type(value) || ((extra) && (value < 0 || value > INT64_MAX - (int64_t)to[i])))       \
                return damaged(context, stored, #name " are out of range");                                  \
            to[i + (extra)] = (type)((extra) ? to[i] + value : value);                                       \
        }                                                                                                    \
    }
    HBP__PLAN_COLUMNS(UNPACK)
#undef UNPACK
    if (plan->step_offsets[end->steps] != end->micro_batches ||
        plan->micro_batch_offsets[end->micro_batches] != end->packs ||
        plan->pack_offsets[end->packs] != end->samples)
        return damaged(context, stored, "counts do not add up to its rows");
    return HBP_OK;
}

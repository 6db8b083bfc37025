/* Lengths from the shards of a MosaicML StreamingDataset (MDS), which its index names. A shard: u32 samples,
 * u32 offsets of the samples and of the end, a text that says the columns again, the samples. A sample: u32
 * sizes of the columns whose size is not fixed, then the values, column by column. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "io/file/file_error.h"
#include "io/file/little_endian.h"
#include "io/json/json_tree.h"
#include "io/lengths/mds_columns.h"
#include "io/lengths/read_lengths.h"

#define INDEX_MOST (INT64_C(64) << 20)
#define PIECE      4096 /* bytes */
#define PATH_BYTES 4096
#define DIGITS     20

typedef struct mds_shard {
    const char *name; /* of what is not compressed, in the index */
    int64_t samples;
    int64_t bytes;    /* decompressed */
    uint32_t *offset; /* [room] of samples and end */
    int64_t room;
    hbp__stream *in;
    hbp__mds_columns columns;
} mds_shard;

static hbp_status bad_shard(const hbp__length_rows *rows, const mds_shard *shard, const char *what)
{
    char name[128];
    hbp__printable(name, sizeof name, shard->name);
    return hbp__fail(rows->context, HBP_E_FORMAT, "%s: the shard %s %s", hbp__stream_name(rows->in), name,
                     what);
}

static hbp_status bad_sample(const hbp__length_rows *rows, const mds_shard *shard, int64_t i,
                             const hbp__mds_column *column, const char *what)
{
    char name[64];
    hbp__printable(name, sizeof name, column->name);
    return hbp__fail(rows->context, HBP_E_FORMAT, "%s, sample %lld: the column '%s' %s",
                     hbp__stream_name(shard->in), (long long)i, name, what);
}

/* The file `name` beside the index; *out is NULL where there is none. */
static hbp_status open_beside(hbp__length_rows *rows, const char *name, hbp__stream **out)
{
    *out = NULL;
    if (rows->open_beside)
        return rows->open_beside(rows->context, rows->open_user, name, out);
    const char *index = hbp__stream_path(rows->in), *slash = strrchr(index, '/');
    if (!*index) /* of bytes in memory, which lie nowhere */
        return HBP_OK;
    char path[PATH_BYTES];
    int bytes = snprintf(path, sizeof path, "%.*s%s", slash ? (int)(slash - index + 1) : 0, index, name);
    if (bytes < 0 || bytes >= PATH_BYTES)
        return hbp__fail(rows->context, HBP_E_SYSTEM, "cannot open %.64s...: its path is too long", name);
    return access(path, F_OK) == 0 ? hbp__stream_open(rows->context, path, out) : HBP_OK;
}

/* A name in the folder of the index, or below. */
static int is_inside(const char *name)
{
    if (!name || !*name || *name == '/')
        return 0;
    for (const char *part = name; part; part = strchr(part, '/')) {
        part += *part == '/';
        if (strncmp(part, "..", 2) == 0 && (!part[2] || part[2] == '/'))
            return 0;
    }
    return 1;
}

/* Opens what is there of a shard: decompressed, or compressed in a format that streams read. */
static hbp_status open_shard(hbp__length_rows *rows, mds_shard *shard, const hbp__value *entry)
{
    const hbp__value *zip = hbp__value_find(entry, "zip_data");
    const char *zip_name = hbp__value_text(hbp__value_find(zip, "basename"));
    HBP__TRY(open_beside(rows, shard->name, &shard->in));
    if (shard->in)
        return HBP_OK;
    char what[192], shown[64];
    if (!zip_name)
        return bad_shard(rows, shard, "is not beside the index: fetch the shards first");
    if (!is_inside(zip_name))
        return bad_shard(rows, shard, "has a compressed file outside the folder of the index");
    size_t bytes = strlen(zip_name);
    hbp__printable(shown, sizeof shown, zip_name);
    if (hbp__stem_bytes(zip_name) == bytes) {
        snprintf(what, sizeof what, "is compressed as %s, which is not read; zstd and gz are", shown);
        return bad_shard(rows, shard, what);
    }
    HBP__TRY(open_beside(rows, zip_name, &shard->in));
    if (shard->in)
        return HBP_OK;
    snprintf(what, sizeof what, "is not beside the index, nor is %s: fetch the shards first", shown);
    return bad_shard(rows, shard, what);
}

/* Room grows with what is there, not with what the index says. */
static hbp_status read_offsets(hbp__length_rows *rows, mds_shard *shard)
{
    unsigned char piece[PIECE];
    HBP__TRY(hbp__stream_read(shard->in, piece, 4, "the number of samples"));
    if ((int64_t)hbp__get_le(piece, 4) != shard->samples)
        return bad_shard(rows, shard, "holds another number of samples than the index says");
    int64_t count = shard->samples + 1, least = 4 + 4 * count;
    for (int64_t begin = 0; begin < count; begin += PIECE / 4) {
        int64_t n = hbp__min_i64(PIECE / 4, count - begin);
        HBP__TRY(hbp__stream_read(shard->in, piece, 4 * n, "the offsets of the samples"));
        if (begin + n > shard->room) {
            int64_t room = hbp__max_i64(begin + n, 2 * shard->room);
            uint32_t *wider =
                hbp__renew(&rows->context->memory, shard->offset, (uint64_t)room, sizeof *wider);
            if (!wider)
                return hbp__fail_memory(rows->context, "the offsets of the samples");
            shard->offset = wider;
            shard->room = room;
        }
        for (int64_t i = 0; i < n; i++) {
            uint32_t offset = (uint32_t)hbp__get_le(piece + 4 * i, 4);
            if (offset < least || offset > shard->bytes)
                return bad_shard(rows, shard, "has offsets that do not ascend within its bytes");
            shard->offset[begin + i] = offset;
            least = offset;
        }
    }
    return shard->offset[shard->samples] == shard->bytes
               ? HBP_OK
               : bad_shard(rows, shard, "does not end where the index says");
}

/* Reads the sizes of sample i, and sees that they fill it. */
static hbp_status read_sizes(hbp__length_rows *rows, mds_shard *shard, int64_t i)
{
    int64_t span = (int64_t)shard->offset[i + 1] - shard->offset[i], left = span;
    for (int64_t c = 0; c < shard->columns.count && left >= 0; c++) {
        hbp__mds_column *column = &shard->columns.column[c];
        column->bytes = column->fixed;
        if (!column->fixed) {
            unsigned char size[4];
            left -= 4;
            if (left < 0)
                break;
            HBP__TRY(hbp__stream_read(shard->in, size, 4, "the sizes of a sample"));
            column->bytes = (int64_t)hbp__get_le(size, 4);
        }
        left = left < column->bytes ? -1 : left - column->bytes;
    }
    if (left == 0)
        return HBP_OK;
    return hbp__fail(rows->context, HBP_E_FORMAT,
                     "%s, sample %lld: its columns are not as many bytes as its offsets say, %lld",
                     hbp__stream_name(shard->in), (long long)i, (long long)span);
}

/* The elements of an array: a type unless the encoding has one, then 4 x dimensions + log2 of the bytes of
 * each, the dimensions, the elements. */
static hbp_status count_elements(hbp__length_rows *rows, mds_shard *shard, int64_t i,
                                 const hbp__mds_column *column, int64_t *taken, int64_t *out)
{
    unsigned char head[2], size[8];
    int item = column->item, parts = item ? 1 : 2;
    *taken = parts;
    if (column->bytes < parts)
        return bad_sample(rows, shard, i, column, "is too short for an array");
    HBP__TRY(hbp__stream_read(shard->in, head, parts, "an array"));
    if (!item)
        item = hbp__mds_item_of_code(head[0]);
    if (!item)
        return bad_sample(rows, shard, i, column, "has a type that is not known");
    int shape = head[parts - 1], width = 1 << (shape & 3);
    if (column->elements == 0 && shape >> 2 != 1)
        return bad_sample(rows, shard, i, column,
                          "is an array of more or less than one dimension; one is read");
    *taken += width;
    if (column->bytes < *taken)
        return bad_sample(rows, shard, i, column, "is too short for an array");
    HBP__TRY(hbp__stream_read(shard->in, size, width, "an array"));
    uint64_t elements = hbp__get_le(size, width);
    if (elements > (uint64_t)column->bytes || (int64_t)elements * item != column->bytes - *taken)
        return bad_sample(rows, shard, i, column, "is not as many bytes as the elements that it says");
    *out = (int64_t)elements;
    return HBP_OK;
}

/* Reads the number, or the size, in a column of sample i, and as much of its bytes as that takes. */
static hbp_status read_value(hbp__length_rows *rows, mds_shard *shard, int64_t i,
                             const hbp__mds_column *column, int64_t *taken, int64_t *out)
{
    unsigned char bytes[DIGITS];
    *taken = 0;
    if (column->kind == HBP__MDS_ARRAY && column->elements) {
        *out = column->elements;
    } else if (column->kind == HBP__MDS_ARRAY) {
        return count_elements(rows, shard, i, column, taken, out);
    } else if (column->kind == HBP__MDS_BYTES) {
        if (column->bytes % column->item)
            return bad_sample(rows, shard, i, column, "is no whole number of tokens of that type");
        *out = column->bytes / column->item;
    } else {
        *taken = column->bytes;
        if (*taken > DIGITS)
            return bad_sample(rows, shard, i, column, "is no whole number of 64 bits");
        HBP__TRY(hbp__stream_read(shard->in, bytes, *taken, "a number"));
        if (column->kind == HBP__MDS_DIGITS)
            return hbp__rows_parse(rows, column->name, (const char *)bytes, *taken, rows->added, out);
        uint64_t value = hbp__get_le(bytes, column->item), sign = UINT64_C(1) << (8 * column->item - 1);
        if (column->is_signed)
            *out = (int64_t)((value ^ sign) - sign);
        else /* past 2^63 - 1 it saturates, which is over every limit */
            *out = value > INT64_MAX ? INT64_MAX : (int64_t)value;
    }
    return HBP_OK;
}

static hbp_status read_sample(hbp__length_rows *rows, mds_shard *shard, int64_t i)
{
    int64_t value[HBP__MDS_ROLES] = {0, 0, -1, 0, 0}, behind = 0;
    const hbp__mds_columns *columns = &shard->columns;
    HBP__TRY(read_sizes(rows, shard, i));
    for (int64_t c = 0; c < columns->count; c++) {
        int64_t taken = 0, read = 0;
        int wanted = 0;
        for (int role = 0; role < HBP__MDS_ROLES; role++)
            wanted |= columns->of[role] == c;
        if (wanted) {
            HBP__TRY(hbp__stream_skip(shard->in, behind, "a sample"));
            HBP__TRY(read_value(rows, shard, i, &columns->column[c], &taken, &read));
            behind = 0;
        }
        behind += columns->column[c].bytes - taken;
        for (int role = 0; role < HBP__MDS_ROLES; role++)
            if (columns->of[role] == c)
                value[role] = read;
    }
    HBP__TRY(hbp__stream_skip(shard->in, behind, "a sample"));
    const hbp__length_row row = {.length = value[HBP__MDS_LENGTH],
                                 .loss = value[HBP__MDS_LOSS],
                                 .link = value[HBP__MDS_LINK],
                                 .vision = value[HBP__MDS_VISION],
                                 .modality = value[HBP__MDS_MODALITY]};
    return hbp__rows_add(rows, &row, rows->added);
}

static hbp_status read_samples(hbp__length_rows *rows, mds_shard *shard)
{
    const unsigned char *data;
    int64_t bytes;
    HBP__TRY(read_offsets(rows, shard));
    HBP__TRY(hbp__stream_skip(shard->in, shard->offset[0] - hbp__stream_offset(shard->in), "the columns"));
    for (int64_t i = 0; i < shard->samples; i++)
        HBP__TRY(read_sample(rows, shard, i));
    HBP__TRY(hbp__stream_peek(shard->in, 1, &data, &bytes));
    return bytes ? bad_shard(rows, shard, "goes on behind its last sample") : HBP_OK;
}

/* What the index says of the shard `entry`. */
static hbp_status read_entry(hbp__length_rows *rows, const hbp__value *entry, mds_shard *shard)
{
    const hbp__value *version = hbp__value_find(entry, "version"), *raw = hbp__value_find(entry, "raw_data");
    const hbp__value *samples = hbp__value_find(entry, "samples"), *bytes = hbp__value_find(raw, "bytes");
    const char *format = hbp__value_text(hbp__value_find(entry, "format"));
    const char *index = hbp__stream_name(rows->in);
    shard->name = hbp__value_text(hbp__value_find(raw, "basename"));
    if (!format || strcmp(format, "mds") != 0)
        return hbp__fail(
            rows->context, HBP_E_FORMAT,
            "%s: a shard is of another format than mds; shards of JSON lines and CSV are read as such",
            index);
    if (hbp__value_whole(version) != 2)
        return hbp__fail(rows->context, HBP_E_VERSION, "%s: a shard is of version %lld; 2 is known", index,
                         (long long)hbp__value_whole(version));
    if (!is_inside(shard->name))
        return hbp__fail(rows->context, HBP_E_FORMAT,
                         "%s: a shard has no name, or one outside the folder of the index", index);
    shard->samples = hbp__value_whole(samples);
    shard->bytes = hbp__value_whole(bytes);
    if (!hbp__value_is(samples, HBP__WHOLE) || !hbp__value_is(bytes, HBP__WHOLE) || shard->samples < 0 ||
        shard->bytes < 0)
        return bad_shard(rows, shard, "has no number of samples or of bytes");
    if (shard->samples > HBP_MAX_SAMPLES - rows->added)
        return hbp__fail(rows->context, HBP_E_OVERFLOW,
                         "%s: more than %lld samples, which is the most allowed", index,
                         (long long)HBP_MAX_SAMPLES);
    return hbp__mds_columns_read(rows, entry, &shard->columns);
}

static hbp_status read_shards(hbp__length_rows *rows, const hbp__value *index)
{
    const hbp__value *shards = hbp__value_find(index, "shards");
    const hbp__value *version = hbp__value_find(index, "version");
    if (!hbp__value_is(shards, HBP__LIST))
        return hbp__fail(rows->context, HBP_E_FORMAT,
                         "%s: no index of a StreamingDataset; it lists no shards",
                         hbp__stream_name(rows->in));
    if (hbp__value_whole(version) != 2)
        return hbp__fail(rows->context, HBP_E_VERSION, "%s: an index of version %lld; 2 is known",
                         hbp__stream_name(rows->in), (long long)hbp__value_whole(version));
    mds_shard shard = {0};
    hbp_status status = HBP_OK;
    HBP__EACH(shards, entry)
    {
        status = read_entry(rows, entry, &shard);
        if (status >= 0)
            status = open_shard(rows, &shard, entry);
        if (status >= 0)
            status = read_samples(rows, &shard);
        hbp__stream_close(shard.in);
        shard.in = NULL;
        if (status < 0)
            break;
    }
    hbp__delete(&rows->context->memory, shard.offset);
    hbp__delete(&rows->context->memory, shard.columns.column);
    return status;
}

hbp_status hbp__read_mds(hbp__length_rows *rows)
{
    const hbp_lengths_load_options *options = rows->options;
    char *text = NULL;
    int64_t bytes = 0;
    hbp__document index = {0};
    rows->unit = "sample";
    rows->has_loss = options->loss_column != NULL;
    rows->has_link = options->link_column != NULL;
    rows->has_vision = options->vision_column != NULL;
    rows->has_modality = options->modality_column != NULL;
    hbp_status status = hbp__stream_read_all(rows->in, INDEX_MOST, &text, &bytes);
    if (status >= 0)
        status =
            hbp__json_tree_of(rows->context, hbp__stream_name(rows->in), text, bytes, INDEX_MOST, &index);
    if (status >= 0)
        status = read_shards(rows, &index.values[0]);
    hbp__document_free(&index);
    hbp__delete(&rows->context->memory, text);
    return status;
}

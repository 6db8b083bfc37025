/* Lengths from the index of a Megatron or DeepSpeed data set, checked against its own offsets. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/checked.h"
#include "io/lengths/read_lengths.h"

#define PIECE 512 /* items */

/* An index in hand. Layout: magic (9 bytes), u64 version, u8 type, u64 sequences, u64 documents + 1, i32
 * lengths, i64 byte offsets of the sequences, i64 first sequences of the documents, optionally an i8 mode of
 * each sequence. */
typedef struct index_file {
    int64_t sequences;
    int64_t borders; /* documents + 1 */
    int type;
    int items[2];     /* bytes a token may have; 0: ruled out */
    uint32_t *length; /* [room] as read so far, to check the offsets against */
    int64_t room;
} index_file;

/* Bytes of a token by the type code: Megatron's table, then DeepSpeed's. They differ from 6 on: f64, f32, u16
 * against u16, u32, u64. */
static const int ITEM_BYTES[9][2] = {{0, 0}, {1, 1}, {1, 1}, {2, 2}, {4, 4}, {8, 8}, {8, 2}, {4, 4}, {2, 8}};

static uint64_t little_endian(const unsigned char *bytes, int count)
{
    uint64_t value = 0;
    for (int i = count - 1; i >= 0; i--)
        value = value << 8 | bytes[i];
    return value;
}

static hbp_status read_header(hbp__length_rows *rows, index_file *index)
{
    unsigned char h[34];
    const char *name = hbp__stream_name(rows->in);
    const unsigned char *data;
    int64_t bytes;
    HBP__TRY(hbp__stream_peek(rows->in, 9, &data, &bytes));
    if (bytes >= 6 && memcmp(data, "TNTIDX", 6) == 0)
        return hbp__fail(rows->context, HBP_E_FORMAT,
                         "%s: the legacy TNTIDX index is not read; build the data set in the MMIDIDX format",
                         name);
    if (bytes < 9 || memcmp(data, "MMIDIDX\0\0", 9) != 0)
        return hbp__fail(rows->context, HBP_E_FORMAT,
                         "%s: not a Megatron index; it does not begin with MMIDIDX", name);
    HBP__TRY(hbp__stream_read(rows->in, h, sizeof h, "the header of the index"));
    uint64_t version = little_endian(h + 9, 8), sequences = little_endian(h + 18, 8),
             borders = little_endian(h + 26, 8);
    index->type = h[17];
    if (version != 1)
        return hbp__fail(rows->context, HBP_E_VERSION, "%s: index version %llu; 1 is known", name,
                         (unsigned long long)version);
    if (index->type < 1 || index->type > 8)
        return hbp__fail(rows->context, HBP_E_FORMAT, "%s: type code %d; 1 to 8 are known", name,
                         index->type);
    if (sequences > (uint64_t)HBP_MAX_SAMPLES)
        return hbp__fail(rows->context, HBP_E_OVERFLOW, "%s: %llu sequences; the most allowed is %lld", name,
                         (unsigned long long)sequences, (long long)HBP_MAX_SAMPLES);
    if (borders > sequences + 1)
        return hbp__fail(rows->context, HBP_E_FORMAT, "%s: %llu document borders for %llu sequences", name,
                         (unsigned long long)borders, (unsigned long long)sequences);
    index->sequences = (int64_t)sequences;
    index->borders = (int64_t)borders;
    index->items[0] = ITEM_BYTES[index->type][0];
    index->items[1] = ITEM_BYTES[index->type][1];
    return HBP_OK;
}

/* Room grows with what is there, not with what the header says. */
static hbp_status keep_length(hbp__length_rows *rows, index_file *index, int64_t i, int64_t length)
{
    if (i == index->room) {
        int64_t room = hbp__min_i64(hbp__max_i64(HBP__ROWS_BATCH, 2 * index->room), index->sequences);
        uint32_t *wider = hbp__renew(&rows->context->memory, index->length, (uint64_t)room, sizeof *wider);
        if (!wider)
            return hbp__fail_memory(rows->context, "the lengths of the index");
        index->length = wider;
        index->room = room;
    }
    index->length[i] = (uint32_t)length;
    return HBP_OK;
}

static hbp_status read_sequence_lengths(hbp__length_rows *rows, index_file *index)
{
    unsigned char piece[PIECE * 4];
    for (int64_t begin = 0; begin < index->sequences; begin += PIECE) {
        int64_t n = hbp__min_i64(PIECE, index->sequences - begin);
        HBP__TRY(hbp__stream_read(rows->in, piece, n * 4, "the sequence lengths"));
        for (int64_t i = 0; i < n; i++) {
            hbp__length_row row = {.length = (int32_t)(uint32_t)little_endian(piece + 4 * i, 4)};
            HBP__TRY(hbp__rows_add(rows, &row, begin + i));
            HBP__TRY(keep_length(rows, index, begin + i, row.length));
        }
    }
    return HBP_OK;
}

/* Rules out the token sizes under which sequence i, at `offset`, does not end at `end`. */
static hbp_status narrow_item_bytes(const hbp__length_rows *rows, index_file *index, int64_t i,
                                    int64_t offset, int64_t end, const char *where)
{
    int64_t should_end = 0;
    int fits = 0;
    for (int c = 0; c < 2; c++) {
        int64_t bytes = (int64_t)index->length[i] * index->items[c];
        if (index->items[c] && !hbp__add_i64(offset, bytes, &should_end))
            should_end = INT64_MAX;
        if (should_end != end)
            index->items[c] = 0;
        fits |= index->items[c];
    }
    if (fits)
        return HBP_OK;
    return hbp__fail(rows->context, HBP_E_FORMAT,
                     "%s: sequence %lld of %lld tokens (type code %d) runs from byte %lld, but %s %lld",
                     hbp__stream_name(rows->in), (long long)i, (long long)index->length[i], index->type,
                     (long long)offset, where, (long long)end);
}

/* Bytes of the data beside the index (x.idx: x.bin), or -1 when there are none to be found. */
static int64_t data_bytes(const hbp__stream *in)
{
    const char *path = hbp__stream_path(in);
    size_t bytes = hbp__stem_bytes(path);
    char data[4096];
    if (bytes <= 4 || bytes >= sizeof data || memcmp(path + bytes - 4, ".idx", 4) != 0)
        return -1;
    memcpy(data, path, bytes - 4);
    memcpy(data + bytes - 4, ".bin", 5);
    struct stat about;
    return stat(data, &about) == 0 && S_ISREG(about.st_mode) ? (int64_t)about.st_size : -1;
}

static hbp_status check_offsets(hbp__length_rows *rows, index_file *index)
{
    unsigned char piece[PIECE * 8];
    int64_t previous = 0;
    for (int64_t begin = 0; begin < index->sequences; begin += PIECE) {
        int64_t n = hbp__min_i64(PIECE, index->sequences - begin);
        HBP__TRY(hbp__stream_read(rows->in, piece, n * 8, "the sequence offsets"));
        for (int64_t i = 0; i < n; i++) {
            uint64_t at = little_endian(piece + 8 * i, 8);
            int64_t offset = at > INT64_MAX ? -1 : (int64_t)at;
            if (begin + i > 0)
                HBP__TRY(
                    narrow_item_bytes(rows, index, begin + i - 1, previous, offset, "the next begins at"));
            else if (offset != 0)
                return hbp__fail(rows->context, HBP_E_FORMAT, "%s: sequence 0 begins at byte %lld, not 0",
                                 hbp__stream_name(rows->in), (long long)offset);
            previous = offset;
        }
    }
    int64_t bytes = data_bytes(rows->in);
    return bytes < 0 || !index->sequences ? HBP_OK
                                          : narrow_item_bytes(rows, index, index->sequences - 1, previous,
                                                              bytes, "the .bin file ends at");
}

static hbp_status check_documents(hbp__length_rows *rows, index_file *index)
{
    unsigned char piece[PIECE * 8];
    uint64_t previous = 0;
    for (int64_t begin = 0; begin < index->borders; begin += PIECE) {
        int64_t n = hbp__min_i64(PIECE, index->borders - begin);
        HBP__TRY(hbp__stream_read(rows->in, piece, n * 8, "the document borders"));
        for (int64_t i = 0; i < n; i++) {
            uint64_t border = little_endian(piece + 8 * i, 8);
            if (border < previous || border > (uint64_t)index->sequences)
                return hbp__fail(rows->context, HBP_E_FORMAT,
                                 "%s: document border %lld is sequence %llu; it lies in %llu to %lld",
                                 hbp__stream_name(rows->in), (long long)(begin + i),
                                 (unsigned long long)border, (unsigned long long)previous,
                                 (long long)index->sequences);
            previous = border;
        }
    }
    return HBP_OK;
}

/* Nothing follows, or one mode a sequence and then nothing. */
static hbp_status check_rest(hbp__length_rows *rows, const index_file *index)
{
    const unsigned char *data;
    int64_t bytes, modes = 0;
    for (;;) {
        HBP__TRY(hbp__stream_peek(rows->in, 1, &data, &bytes));
        if (bytes == 0)
            break;
        modes += bytes;
        hbp__stream_take(rows->in, bytes);
        if (modes > index->sequences)
            break;
    }
    if (modes && modes != index->sequences)
        return hbp__fail(rows->context, HBP_E_FORMAT,
                         "%s: %s bytes after the document borders than the %lld modes of the sequences",
                         hbp__stream_name(rows->in), modes < index->sequences ? "fewer" : "more",
                         (long long)index->sequences);
    return HBP_OK;
}

hbp_status hbp__read_idx(hbp__length_rows *rows)
{
    index_file index = {0};
    rows->unit = "sequence";
    hbp_status status = read_header(rows, &index);
    if (status >= 0)
        status = read_sequence_lengths(rows, &index);
    if (status >= 0)
        status = check_offsets(rows, &index);
    if (status >= 0)
        status = check_documents(rows, &index);
    if (status >= 0)
        status = check_rest(rows, &index);
    hbp__delete(&rows->context->memory, index.length);
    return status;
}

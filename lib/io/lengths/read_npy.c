/* Lengths from NumPy's .npy: a header in the form of a Python dict, then the items. */
#include <string.h>

#include "base/checked.h"
#include "base/number.h"
#include "io/lengths/read_lengths.h"

#define HEADER_MAX 65536
#define PIECE      4096 /* bytes */

/* What the header says of the array. */
typedef struct npy_array {
    int item; /* bytes */
    int is_signed;
    int big_endian;
    int64_t count;
} npy_array;

static hbp_status bad_header(const hbp__length_rows *rows, const char *what)
{
    return hbp__fail(rows->context, HBP_E_FORMAT, "%s: the .npy header %s", hbp__stream_name(rows->in), what);
}

/* What follows 'key': in the header's Python dict, blanks stepped over; NULL when there is no such key. */
static const char *find_value(const char *header, const char *key)
{
    const char *at = strstr(header, key);
    if (!at)
        return NULL;
    at += strlen(key);
    while (*at == ' ')
        at++;
    if (*at++ != ':')
        return NULL;
    while (*at == ' ')
        at++;
    return at;
}

static hbp_status parse_type(const hbp__length_rows *rows, const char *text, npy_array *array)
{
    if (!text || (*text != '\'' && *text != '['))
        return bad_header(rows, "lacks a type");
    if (*text == '[')
        return bad_header(rows, "has a record type; save one integer field as an array of its own");
    char order = text[1], kind = order ? text[2] : '\0';
    if (!order || !kind || !strchr("<>|=", order))
        return bad_header(rows, "has a type that is not understood");
    if (kind == 'f' || kind == 'c')
        return bad_header(rows, "has a floating-point type; save whole numbers");
    if (kind == 'O')
        return bad_header(rows, "has Python objects; save whole numbers");
    if (kind != 'i' && kind != 'u')
        return bad_header(rows, "has a type that is not an integer; save whole numbers");
    array->item = text[3] >= '1' && text[3] <= '8' && text[4] == '\'' ? text[3] - '0' : 0;
    if (array->item != 1 && array->item != 2 && array->item != 4 && array->item != 8)
        return bad_header(rows, "has an integer type of other than 1, 2, 4 or 8 bytes");
    array->is_signed = kind == 'i';
    array->big_endian = order == '>';
    return HBP_OK;
}

/* "(12,)": one dimension. Python 2 wrote "(12L,)". */
static hbp_status parse_shape(const hbp__length_rows *rows, const char *text, npy_array *array)
{
    if (!text || *text != '(')
        return bad_header(rows, "lacks a shape");
    int64_t digits = 0, dimensions = 0;
    const char *close = strchr(text, ')');
    if (!close)
        return bad_header(rows, "has a shape that does not end");
    for (const char *c = text + 1; c <= close; c++) {
        if (*c >= '0' && *c <= '9')
            digits++;
        else {
            dimensions += digits > 0;
            digits = 0;
        }
    }
    if (dimensions != 1)
        return hbp__fail(rows->context, HBP_E_FORMAT,
                         "%s: the array has %lld dimensions; an array of one dimension is read",
                         hbp__stream_name(rows->in), (long long)dimensions);
    for (text++; *text == ' ';)
        text++;
    while (text[digits] >= '0' && text[digits] <= '9')
        digits++;
    int parsed = hbp__read_i64(text, digits, &array->count);
    if (!parsed)
        return bad_header(rows, "has a shape that is not understood");
    if (parsed < 0 || array->count > HBP_MAX_SAMPLES)
        return hbp__fail(rows->context, HBP_E_OVERFLOW,
                         "%s: the array has %.*s items; the most allowed is %lld", hbp__stream_name(rows->in),
                         (int)hbp__min_i64(digits, 40), text, (long long)HBP_MAX_SAMPLES);
    return HBP_OK;
}

static hbp_status parse_header(const hbp__length_rows *rows, const char *header, npy_array *array)
{
    HBP__TRY(parse_type(rows, find_value(header, "'descr'"), array));
    return parse_shape(rows, find_value(header, "'shape'"), array);
}

static hbp_status read_header(hbp__length_rows *rows, npy_array *array)
{
    unsigned char start[12];
    HBP__TRY(hbp__stream_read(rows->in, start, 10, "the .npy header"));
    if (memcmp(start, "\x93NUMPY", 6) != 0)
        return hbp__fail(rows->context, HBP_E_FORMAT, "%s: not a .npy file", hbp__stream_name(rows->in));
    if (start[6] < 1 || start[6] > 3)
        return hbp__fail(rows->context, HBP_E_VERSION, "%s: .npy version %d; 1 to 3 are known",
                         hbp__stream_name(rows->in), start[6]);
    int64_t bytes = start[8] | start[9] << 8;
    if (start[6] > 1) {
        HBP__TRY(hbp__stream_read(rows->in, start + 10, 2, "the .npy header"));
        bytes |= (int64_t)start[10] << 16 | (int64_t)start[11] << 24;
    }
    if (bytes > HEADER_MAX)
        return bad_header(rows, "is longer than 65536 bytes");
    char *header = hbp__new(&rows->context->memory, (uint64_t)bytes + 1, 1);
    if (!header)
        return hbp__fail_memory(rows->context, "the .npy header");
    hbp_status status = hbp__stream_read(rows->in, header, bytes, "the .npy header");
    header[bytes] = '\0';
    if (status >= 0)
        status = parse_header(rows, header, array);
    hbp__delete(&rows->context->memory, header);
    return status;
}

/* One item; an unsigned one past 2^63 - 1 saturates, which is over every limit. */
static int64_t item_at(const unsigned char *bytes, const npy_array *array)
{
    uint64_t value = 0;
    for (int i = 0; i < array->item; i++)
        value = value << 8 | bytes[array->big_endian ? i : array->item - 1 - i];
    if (array->is_signed) {
        int unused = 64 - 8 * array->item;
        uint64_t sign = UINT64_C(1) << (63 - unused);
        return (int64_t)((value ^ sign) - sign);
    }
    return value > INT64_MAX ? INT64_MAX : (int64_t)value;
}

hbp_status hbp__read_npy(hbp__length_rows *rows)
{
    npy_array array;
    rows->unit = "item";
    HBP__TRY(read_header(rows, &array));
    unsigned char piece[PIECE];
    int64_t per_piece = PIECE / array.item;
    for (int64_t begin = 0; begin < array.count; begin += per_piece) {
        int64_t n = hbp__min_i64(per_piece, array.count - begin);
        HBP__TRY(hbp__stream_read(rows->in, piece, n * array.item, "the array"));
        for (int64_t i = 0; i < n; i++) {
            hbp__length_row row = {.length = item_at(piece + i * array.item, &array)};
            HBP__TRY(hbp__rows_add(rows, &row, begin + i));
        }
    }
    const unsigned char *data;
    int64_t bytes;
    HBP__TRY(hbp__stream_peek(rows->in, 1, &data, &bytes));
    if (bytes)
        return hbp__fail(rows->context, HBP_E_FORMAT, "%s: bytes after the array, at byte %lld",
                         hbp__stream_name(rows->in), (long long)hbp__stream_offset(rows->in));
    return HBP_OK;
}

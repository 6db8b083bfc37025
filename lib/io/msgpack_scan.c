#include "io/msgpack_scan.h"

#include <string.h>

typedef enum scan_kind { OTHER, UNSIGNED, NEGATIVE, TEXT, BIN, ARRAY, MAP, BAD } scan_kind;

/* The head of an object: its kind, and its number, length or count. */
typedef struct scan_head {
    scan_kind kind;
    uint64_t value; /* of a negative number: its two's complement */
    int64_t bytes;  /* of the head */
} scan_head;

/* Kinds of 0xc4 to 0xdf: the number that follows has `width` bytes; `fixed` bytes come without one. */
typedef struct scan_code {
    uint8_t kind;
    uint8_t width;
    uint8_t fixed;
} scan_code;

static const scan_code codes[] = {
    {BIN, 1, 0},      {BIN, 2, 0},      {BIN, 4, 0},                        /* bin */
    {OTHER, 1, 1},    {OTHER, 2, 1},    {OTHER, 4, 1},                      /* ext: a type besides */
    {OTHER, 0, 4},    {OTHER, 0, 8},                                        /* float */
    {UNSIGNED, 1, 0}, {UNSIGNED, 2, 0}, {UNSIGNED, 4, 0}, {UNSIGNED, 8, 0}, /* uint */
    {NEGATIVE, 1, 0}, {NEGATIVE, 2, 0}, {NEGATIVE, 4, 0}, {NEGATIVE, 8, 0}, /* int */
    {OTHER, 0, 2},    {OTHER, 0, 3},    {OTHER, 0, 5},    {OTHER, 0, 9},    {OTHER, 0, 17}, /* fixext */
    {TEXT, 1, 0},     {TEXT, 2, 0},     {TEXT, 4, 0},                                       /* str */
    {ARRAY, 2, 0},    {ARRAY, 4, 0},    {MAP, 2, 0},      {MAP, 4, 0},
};

/* An int that is not negative is an unsigned number all the same. */
static scan_head finish_int(scan_head head, int width)
{
    int shift = 64 - 8 * width;
    int64_t value = (int64_t)(head.value << shift) >> shift;
    head.value = (uint64_t)value;
    head.kind = value < 0 ? NEGATIVE : UNSIGNED;
    return head;
}

static scan_head read_code(const hbp__scan *scan, scan_code code, int64_t left)
{
    scan_head head = {(scan_kind)code.kind, 0, 1 + code.width};
    if (code.width >= left)
        return (scan_head){BAD, 0, 0};
    for (int i = 1; i <= code.width; i++)
        head.value = head.value << 8 | scan->data[scan->at + i];
    if (code.kind == NEGATIVE)
        return finish_int(head, code.width);
    if (code.kind == OTHER)
        head.value += code.fixed;
    return head;
}

static scan_head read_head(const hbp__scan *scan)
{
    int64_t left = scan->bytes - scan->at;
    if (left < 1)
        return (scan_head){BAD, 0, 0};
    unsigned first = scan->data[scan->at];
    scan_head head = {OTHER, 0, 1};
    if (first < 0x80)
        head = (scan_head){UNSIGNED, first, 1};
    else if (first < 0x90)
        head = (scan_head){MAP, first & 15, 1};
    else if (first < 0xa0)
        head = (scan_head){ARRAY, first & 15, 1};
    else if (first < 0xc0)
        head = (scan_head){TEXT, first & 31, 1};
    else if (first == 0xc1)
        head.kind = BAD;
    else if (first >= 0xe0)
        head = (scan_head){NEGATIVE, (uint64_t)((int64_t)first - 256), 1};
    else if (first >= 0xc4)
        head = read_code(scan, codes[first - 0xc4], left);
    /* What the head declares must be there; each object of an array or map has a byte at least. */
    uint64_t rest = (uint64_t)(left - head.bytes);
    int counts = head.kind == TEXT || head.kind == BIN || head.kind == ARRAY || head.kind == OTHER;
    if ((counts && head.value > rest) || (head.kind == MAP && head.value > rest / 2))
        head.kind = BAD;
    return head;
}

int hbp__scan_map(hbp__scan *scan, int64_t *pairs)
{
    scan_head head = read_head(scan);
    if (head.kind != MAP)
        return 0;
    *pairs = (int64_t)head.value;
    scan->at += head.bytes;
    return 1;
}

static int take_bytes(hbp__scan *scan, scan_kind kind, const unsigned char **data, int64_t *bytes)
{
    scan_head head = read_head(scan);
    if (head.kind != kind)
        return 0;
    *data = scan->data + scan->at + head.bytes;
    *bytes = (int64_t)head.value;
    scan->at += head.bytes + *bytes;
    return 1;
}

int hbp__scan_text(hbp__scan *scan, const char **text, int64_t *bytes)
{
    const unsigned char *data;
    if (!take_bytes(scan, TEXT, &data, bytes))
        return 0;
    *text = (const char *)data;
    return 1;
}

int hbp__scan_bin(hbp__scan *scan, const unsigned char **data, int64_t *bytes)
{
    return take_bytes(scan, BIN, data, bytes);
}

int hbp__scan_i64(hbp__scan *scan, int64_t *value)
{
    scan_head head = read_head(scan);
    if ((head.kind != UNSIGNED || head.value > INT64_MAX) && head.kind != NEGATIVE)
        return 0;
    *value = (int64_t)head.value;
    scan->at += head.bytes;
    return 1;
}

int hbp__scan_u64(hbp__scan *scan, uint64_t *value)
{
    scan_head head = read_head(scan);
    if (head.kind != UNSIGNED)
        return 0;
    *value = head.value;
    scan->at += head.bytes;
    return 1;
}

int hbp__scan_skip(hbp__scan *scan)
{
    uint64_t open[HBP__SCAN_DEPTH]; /* objects still to come, level by level */
    int depth = 0;
    int64_t at = scan->at;
    do {
        scan_head head = read_head(scan);
        if (head.kind == BAD)
            break;
        scan->at += head.bytes;
        if (head.kind == TEXT || head.kind == BIN || head.kind == OTHER)
            scan->at += (int64_t)head.value;
        if (depth)
            open[depth - 1]--;
        if ((head.kind == ARRAY || head.kind == MAP) && head.value) {
            if (depth == HBP__SCAN_DEPTH)
                break;
            open[depth++] = head.kind == MAP ? head.value * 2 : head.value;
        }
        while (depth && !open[depth - 1])
            depth--;
        if (!depth)
            return 1;
    } while (1);
    scan->at = at;
    return 0;
}

int hbp__scan_find(const hbp__scan *map, const char *key, hbp__scan *value)
{
    int64_t pairs, bytes, length = (int64_t)strlen(key);
    const char *text;
    *value = *map;
    if (!hbp__scan_map(value, &pairs))
        return 0;
    for (; pairs; pairs--) {
        int is_text = hbp__scan_text(value, &text, &bytes);
        if (is_text && bytes == length && memcmp(text, key, (size_t)length) == 0)
            return 1;
        if ((!is_text && !hbp__scan_skip(value)) || !hbp__scan_skip(value))
            return 0;
    }
    return 0;
}

#include "io/msgpack/msgpack_read.h"

#include <string.h>

/* What an object's first byte and what follows it say. */
typedef struct head {
    hbp__kind kind;
    uint64_t bytes;    /* of the first byte and the count, or the number */
    uint64_t body;     /* bytes after them */
    uint64_t children; /* objects after them */
} head;

static uint64_t big_endian(const uint8_t *data, uint64_t bytes)
{
    uint64_t value = 0;
    for (uint64_t i = 0; i < bytes; i++)
        value = value << 8 | data[i];
    return value;
}

/* Types that fit in the first byte. */
static int short_head(uint8_t first, head *h)
{
    *h = (head){HBP__WHOLE, 1, 0, 0};
    if (first >= 0x80 && first < 0x90)
        *h = (head){HBP__MAP, 1, 0, 2 * (uint64_t)(first & 15)};
    else if (first >= 0x90 && first < 0xa0)
        *h = (head){HBP__LIST, 1, 0, first & 15};
    else if (first >= 0xa0 && first < 0xc0)
        *h = (head){HBP__TEXT, 1, first & 31, 0};
    else if (first == 0xc0)
        h->kind = HBP__NOTHING;
    else if (first == 0xc2 || first == 0xc3)
        h->kind = HBP__BOOLEAN;
    else
        return first < 0x80 || first >= 0xe0;
    return 1;
}

/* Types from 0xc4 on, and the bytes of their count or, where they have a fixed size, of all of them. */
static const struct {
    uint8_t kind;
    uint8_t width;
} types[] = {{HBP__BYTES, 1},      {HBP__BYTES, 2},     {HBP__BYTES, 4},     {HBP__EXTENSION, 1},
             {HBP__EXTENSION, 2},  {HBP__EXTENSION, 4}, {HBP__REAL, 4},      {HBP__REAL, 8},
             {HBP__WHOLE, 1},      {HBP__WHOLE, 2},     {HBP__WHOLE, 4},     {HBP__WHOLE, 8},
             {HBP__WHOLE, 1},      {HBP__WHOLE, 2},     {HBP__WHOLE, 4},     {HBP__WHOLE, 8},
             {HBP__EXTENSION, 2},  {HBP__EXTENSION, 3}, {HBP__EXTENSION, 5}, {HBP__EXTENSION, 9},
             {HBP__EXTENSION, 17}, {HBP__TEXT, 1},      {HBP__TEXT, 2},      {HBP__TEXT, 4},
             {HBP__LIST, 2},       {HBP__LIST, 4},      {HBP__MAP, 2},       {HBP__MAP, 4}};

static int long_head(const uint8_t *data, uint64_t bytes, head *h)
{
    uint8_t first = data[0];
    if (first < 0xc4 || first > 0xdf)
        return 0;
    const uint64_t size = types[first - 0xc4].width;
    *h = (head){types[first - 0xc4].kind, 1, size, 0};
    if (first >= 0xca && first <= 0xd8) /* numbers, and extensions of fixed size */
        return 1;
    if (bytes - 1 < size)
        return 0;
    uint64_t count = big_endian(data + 1, size);
    h->bytes = 1 + size;
    h->body = h->kind == HBP__LIST || h->kind == HBP__MAP ? 0 : count + (h->kind == HBP__EXTENSION);
    h->children = h->kind == HBP__LIST ? count : h->kind == HBP__MAP ? 2 * count : 0;
    return 1; /* an extension has a type beside its bytes */
}

static int read_head(const uint8_t *data, uint64_t bytes, head *h)
{
    return bytes && (short_head(data[0], h) || long_head(data, bytes, h));
}

int hbp__msgpack_scan(const uint8_t *data, uint64_t bytes, uint64_t max_objects, hbp__msgpack_extent *extent)
{
    uint64_t left[HBP__MSGPACK_DEPTH + 1] = {1}; /* objects to come at each depth */
    int depth = 0;
    *extent = (hbp__msgpack_extent){.objects = 1};
    for (;;) {
        while (depth >= 0 && !left[depth])
            depth--;
        if (depth < 0)
            return 1;
        left[depth]--;
        const uint64_t at = extent->bytes;
        head h;
        if (!read_head(data + at, bytes - at, &h))
            return 0;
        /* Every child takes at least a byte. */
        if (h.body > bytes - at - h.bytes || h.children > bytes - at - h.bytes ||
            h.children > max_objects - extent->objects)
            return 0;
        if (h.children && depth == HBP__MSGPACK_DEPTH)
            return 0;
        extent->bytes += h.bytes + h.body;
        extent->objects += h.children;
        extent->texts += h.kind == HBP__TEXT ? h.body + 1 : 0;
        if (h.children)
            left[++depth] = h.children;
    }
}

/* The number whose first byte is data[0]. */
static void set_number(hbp__value *value, const uint8_t *data, uint64_t bytes)
{
    const uint8_t first = data[0];
    uint64_t bits = big_endian(data + 1, bytes);
    if (first == 0xca) {
        uint32_t narrow = (uint32_t)bits;
        float real;
        memcpy(&real, &narrow, sizeof real);
        value->of.real = (double)real;
    } else if (first == 0xcb) {
        memcpy(&value->of.real, &bits, sizeof bits);
    } else if (first < 0x80 || first >= 0xe0) {
        value->of.whole = (int8_t)first;
    } else if (first >= 0xd0) { /* signed: the sign goes on to the left */
        const uint64_t sign = UINT64_C(1) << (8 * bytes - 1);
        value->of.whole = (int64_t)((bits ^ sign) - sign);
    } else {
        value->kind = bits > INT64_MAX ? HBP__LARGE : HBP__WHOLE;
        value->of.large = bits;
    }
}

/* One value; its text goes to *texts, which moves behind it. */
static void set_value(hbp__value *value, const head *h, const uint8_t *data, char **texts)
{
    *value = (hbp__value){.kind = h->kind, .span = 1};
    switch (h->kind) {
    case HBP__BOOLEAN:
        value->of.whole = data[0] == 0xc3;
        break;
    case HBP__WHOLE:
    case HBP__REAL:
        set_number(value, data, h->body);
        break;
    case HBP__TEXT:
        value->count = (uint32_t)h->body;
        value->of.text = *texts;
        memcpy(*texts, data + h->bytes, h->body);
        (*texts)[h->body] = '\0';
        *texts += h->body + 1;
        break;
    case HBP__BYTES:
        value->count = (uint32_t)h->body;
        value->of.bytes = data + h->bytes;
        break;
    case HBP__LIST:
    case HBP__MAP:
        value->count = (uint32_t)(h->kind == HBP__MAP ? h->children / 2 : h->children);
        break;
    default:
        break;
    }
}

hbp_status hbp__msgpack_read(hbp_context *context, const char *what, const uint8_t *data,
                             const hbp__msgpack_extent *extent, hbp__document *document)
{
    hbp__document_free(document);
    document->values = hbp__new(&document->memory, extent->objects, sizeof *document->values);
    document->texts = hbp__new(&document->memory, extent->texts, 1);
    if (!document->values || !document->texts)
        return hbp__fail_memory(context, what);
    hbp__value *open[HBP__MSGPACK_DEPTH];
    uint64_t left[HBP__MSGPACK_DEPTH];
    char *texts = document->texts;
    int depth = 0;
    for (hbp__value *value = document->values; value < document->values + extent->objects; value++) {
        head h;
        read_head(data, UINT64_MAX, &h);
        set_value(value, &h, data, &texts);
        data += h.bytes + h.body;
        if (depth)
            left[depth - 1]--;
        if (h.children) {
            open[depth] = value;
            left[depth++] = h.children;
        }
        for (; depth && !left[depth - 1]; depth--)
            open[depth - 1]->span = (uint64_t)(value + 1 - open[depth - 1]);
    }
    return HBP_OK;
}

#include "io/msgpack/msgpack_scan.h"

/* What an object's first byte and its count say. */
typedef struct head {
    uint64_t bytes;    /* of the first byte and the count */
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
    *h = (head){1, 0, 0};
    if (first >= 0x80 && first < 0x90)
        h->children = 2 * (uint64_t)(first & 15);
    else if (first >= 0x90 && first < 0xa0)
        h->children = first & 15;
    else if (first >= 0xa0 && first < 0xc0)
        h->body = first & 31;
    else
        return first < 0x80 || first >= 0xe0 || first == 0xc0 || first == 0xc2 || first == 0xc3;
    return 1;
}

/* Per type from 0xc4: bytes of the count, or of the value where the type has a fixed size. */
static const uint8_t width[] = {1, 2, 4, 1, 2, 4, 4,  8, 1, 2, 4, 8, 1, 2,
                                4, 8, 2, 3, 5, 9, 17, 1, 2, 4, 2, 4, 2, 4};

static int long_head(const uint8_t *data, uint64_t bytes, head *h)
{
    uint8_t first = data[0];
    if (first < 0xc4 || first > 0xdf)
        return 0;
    uint64_t size = width[first - 0xc4];
    *h = (head){1, size, 0};
    if (first >= 0xca && first <= 0xd8) /* numbers, and extensions of fixed size */
        return 1;
    if (bytes - 1 < size)
        return 0;
    uint64_t count = big_endian(data + 1, size);
    *h = (head){1 + size, 0, 0};
    if (first >= 0xde)
        h->children = 2 * count;
    else if (first >= 0xdc)
        h->children = count;
    else
        h->body = count + (first >= 0xc7 && first <= 0xc9); /* an extension has a type beside its bytes */
    return 1;
}

int hbp__msgpack_scan(const uint8_t *data, uint64_t bytes, uint64_t max_objects, uint64_t *used)
{
    uint64_t left[HBP__MSGPACK_DEPTH + 1] = {1}; /* objects to come at each depth */
    uint64_t at = 0, objects = 1;
    int depth = 0;
    for (;;) {
        while (depth >= 0 && !left[depth])
            depth--;
        *used = at;
        if (depth < 0)
            return 1;
        left[depth]--;
        head h;
        if (at == bytes || (!short_head(data[at], &h) && !long_head(data + at, bytes - at, &h)))
            return 0;
        /* Every child takes at least a byte. */
        if (h.body > bytes - at - h.bytes || h.children > bytes - at - h.bytes ||
            h.children > max_objects - objects)
            return 0;
        at += h.bytes + h.body;
        objects += h.children;
        if (!h.children)
            continue;
        if (depth == HBP__MSGPACK_DEPTH)
            return 0;
        left[++depth] = h.children;
    }
}

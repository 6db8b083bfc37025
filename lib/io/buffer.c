#include "io/buffer.h"

#include <string.h>

#include "base/checked.h"

#define FIRST_ROOM 4096

unsigned char *hbp__buffer_reserve(hbp__buffer *buffer, int64_t more)
{
    int64_t needed, room;
    if (buffer->failed || !hbp__add_i64(buffer->bytes, more, &needed)) {
        buffer->failed = 1;
        return NULL;
    }
    if (buffer->data && needed <= buffer->room)
        return buffer->data + buffer->bytes;
    if (!hbp__add_i64(buffer->room, buffer->room / 2, &room))
        room = needed;
    room = hbp__max_i64(hbp__max_i64(room, needed), FIRST_ROOM);
    unsigned char *data = hbp__renew(buffer->memory, buffer->data, (uint64_t)room, 1);
    if (!data) {
        buffer->failed = 1;
        return NULL;
    }
    buffer->data = data;
    buffer->room = room;
    return data + buffer->bytes;
}

int hbp__buffer_write(void *buffer, const char *data, size_t bytes)
{
    hbp__buffer *to = buffer;
    unsigned char *at = hbp__buffer_reserve(to, (int64_t)bytes);
    if (!at)
        return -1;
    if (bytes)
        memcpy(at, data, bytes);
    to->bytes += (int64_t)bytes;
    return 0;
}

void hbp__buffer_free(hbp__buffer *buffer)
{
    hbp__delete(buffer->memory, buffer->data);
    buffer->data = NULL;
    buffer->bytes = buffer->room = 0;
}

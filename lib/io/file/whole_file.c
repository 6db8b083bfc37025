#include "io/file/whole_file.h"

#include <string.h>

#include "base/checked.h"
#include "io/file/stream.h"

#define FIRST_ROOM 65536

static hbp_status read_stream(hbp_context *context, hbp__stream *in, int64_t most, char **data,
                              int64_t *bytes)
{
    int64_t room = 0;
    for (;;) {
        const unsigned char *shown;
        int64_t count;
        HBP__TRY(hbp__stream_peek(in, 1, &shown, &count));
        if (!count)
            return HBP_OK;
        if (count > most - *bytes)
            return hbp__fail(context, HBP_E_FORMAT, "%s has more than %lld bytes", hbp__stream_name(in),
                             (long long)most);
        if (count > room - *bytes) {
            room = hbp__max_i64(*bytes + count, hbp__max_i64(2 * room, FIRST_ROOM));
            char *larger = hbp__renew(&context->memory, *data, (uint64_t)room, 1);
            if (!larger)
                return hbp__fail_memory(context, "a file");
            *data = larger;
        }
        memcpy(*data + *bytes, shown, (size_t)count);
        *bytes += count;
        hbp__stream_take(in, count);
    }
}

hbp_status hbp__read_file(hbp_context *context, const char *path, int64_t most, char **data, int64_t *bytes)
{
    *data = NULL;
    *bytes = 0;
    hbp__stream *in = NULL;
    HBP__TRY(hbp__stream_open(context, path, &in));
    hbp_status status = read_stream(context, in, most, data, bytes);
    hbp__stream_close(in);
    if (status >= 0 && !*data) { /* an empty file */
        *data = hbp__new(&context->memory, 1, 1);
        if (!*data)
            status = hbp__fail_memory(context, "a file");
    }
    if (status < 0) {
        hbp__delete(&context->memory, *data);
        *data = NULL;
        *bytes = 0;
    }
    return status;
}

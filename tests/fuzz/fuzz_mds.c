/* Reads any bytes as an index of MDS shards and, behind a zero byte, the shard that every name stands for. */
#include <string.h>

#include "fuzz.h"
#include "io/lengths/read_lengths.h"

typedef struct shard_bytes {
    const uint8_t *data;
    size_t size;
} shard_bytes;

static hbp_status open_shard(hbp_context *context, void *user, const char *name, hbp__stream **out)
{
    const shard_bytes *shard = user;
    return hbp__stream_open_memory(context, name, shard->data, (int64_t)shard->size, out);
}

static void read_index(hbp_context *context, const uint8_t *data, size_t size, shard_bytes *shard,
                       const hbp_lengths_load_options *options)
{
    hbp__stream *in;
    hbp__length_rows rows;
    hbp_lengths *lengths = NULL;
    if (hbp__stream_open_memory(context, "index.json", data, (int64_t)size, &in) < 0)
        return;
    CHECK(hbp__rows_begin(&rows, context, in, options) == HBP_OK);
    rows.open_beside = open_shard;
    rows.open_user = shard;
    hbp_status status = hbp__read_mds(&rows);
    if (status >= 0)
        status = hbp__rows_finish(&rows, &lengths);
    hbp__rows_end(&rows);
    hbp__stream_close(in);
    CHECK((status >= 0) == (lengths != NULL));
    CHECK(status != HBP_E_INTERNAL && (status >= 0 || hbp_context_message(context)[0]));
    for (int64_t i = 0; lengths && i < lengths->count; i++)
        CHECK(lengths->length[i] >= 1 && lengths->length[i] <= HBP_MAX_LENGTH);
    hbp_lengths_free(lengths);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *zero = size ? memchr(data, 0, size) : NULL;
    size_t index = zero ? (size_t)(zero - data) : size;
    shard_bytes shard = {zero ? zero + 1 : data, zero ? size - index - 1 : 0};
    static const hbp_lengths_load_options options[] = {
        {0}, {.column = "tokens:int64", .loss_column = "loss", .vision_column = "images"}};
    hbp_context *context;
    CHECK(hbp_context_create(NULL, &context) == HBP_OK);
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        read_index(context, data, index, &shard, &options[i]);
    hbp_context_free(context);
    return 0;
}

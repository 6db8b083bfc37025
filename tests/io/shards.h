/* MDS shards in memory: an index, and the files that it names. */
#ifndef HBP_TESTS_SHARDS_H
#define HBP_TESTS_SHARDS_H

#include "io/lengths/read_lengths.h"

typedef struct shard_file {
    const char *name;
    const void *data;
    int64_t bytes;
} shard_file;

typedef struct shards {
    shard_file index;
    const shard_file *file; /* [files] */
    int64_t files;
    hbp_lengths_load_options options;
} shards;

static inline hbp_status shards_open(hbp_context *context, void *user, const char *name, hbp__stream **out)
{
    const shards *s = user;
    for (int64_t i = 0; i < s->files; i++)
        if (strcmp(s->file[i].name, name) == 0)
            return hbp__stream_open_memory(context, name, s->file[i].data, s->file[i].bytes, out);
    *out = NULL;
    return HBP_OK;
}

static inline hbp_status shards_read(hbp_context *context, shards *s, hbp_lengths **out)
{
    hbp__stream *in;
    hbp__length_rows rows;
    *out = NULL;
    hbp_status status = hbp__stream_open_memory(context, s->index.name, s->index.data, s->index.bytes, &in);
    if (status < 0)
        return status;
    status = hbp__rows_begin(&rows, context, in, &s->options);
    rows.open_beside = shards_open;
    rows.open_user = s;
    if (status >= 0)
        status = hbp__read_mds(&rows);
    if (status >= 0)
        status = hbp__rows_finish(&rows, out);
    hbp__rows_end(&rows);
    hbp__stream_close(in);
    return status;
}

#endif

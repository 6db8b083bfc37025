/* Reading lengths from bytes in memory. */
#ifndef HBP_TESTS_READING_H
#define HBP_TESTS_READING_H

#include <zlib.h>

#include "failing.h"
#include "hbp/io.h"
#include "io/lengths/read_lengths.h"

typedef struct reading {
    const char *name;
    const void *data;
    int64_t bytes;
    hbp_lengths_load_options options;
} reading;

/* Lengths, and their vision units from another file unless `vision` is NULL. */
typedef struct paired_reading {
    reading lengths;
    const reading *vision;
} paired_reading;

static inline hbp_status read_pair(hbp_context *context, const paired_reading *pair, hbp_lengths **out)
{
    const reading *r = &pair->lengths, *v = pair->vision;
    hbp__stream *in, *vision = NULL;
    *out = NULL;
    hbp_status status = hbp__stream_open_memory(context, r->name, r->data, r->bytes, &in);
    if (status < 0)
        return status;
    if (v)
        status = hbp__stream_open_memory(context, v->name, v->data, v->bytes, &vision);
    if (status >= 0)
        status = hbp__lengths_read_stream(context, in, vision, &r->options, out);
    ck_assert((status >= 0) == (*out != NULL));
    hbp__stream_close(vision);
    hbp__stream_close(in);
    return status;
}

static inline hbp_status read_bytes(hbp_context *context, const reading *r, hbp_lengths **out)
{
    const paired_reading pair = {*r, NULL};
    return read_pair(context, &pair, out);
}

/* For failing_sweep and cancel_sweep. */
static inline hbp_status read_once(hbp_context *context, void *user)
{
    hbp_lengths *out;
    hbp_status status = read_bytes(context, user, &out);
    hbp_lengths_free(out);
    return status;
}

static inline hbp_status read_text(hbp_context *context, const char *name, const char *text,
                                   const hbp_lengths_load_options *options, hbp_lengths **out)
{
    reading r = {name, text, (int64_t)strlen(text), {0}};
    if (options)
        r.options = *options;
    return read_bytes(context, &r, out);
}

/* The same with a file of vision units beside it. */
static inline hbp_status read_texts(hbp_context *context, const char *name, const char *text,
                                    const char *vision_name, const char *vision,
                                    const hbp_lengths_load_options *options, hbp_lengths **out)
{
    const reading v = {vision_name, vision, (int64_t)strlen(vision), {0}};
    paired_reading pair = {{name, text, (int64_t)strlen(text), {0}}, &v};
    if (options)
        pair.lengths.options = *options;
    return read_pair(context, &pair, out);
}

/* For failing_sweep and cancel_sweep. */
static inline hbp_status read_pair_once(hbp_context *context, void *user)
{
    hbp_lengths *out;
    hbp_status status = read_pair(context, user, &out);
    hbp_lengths_free(out);
    return status;
}

/* Fails unless the data set holds exactly these vision units. */
static inline void check_vision(const hbp_lengths *lengths, const int64_t *want, int64_t count)
{
    ck_assert_int_eq(lengths->count, count);
    ck_assert_ptr_nonnull(lengths->vision);
    for (int64_t i = 0; i < count; i++)
        ck_assert_int_eq(hbp_lengths_get_vision(lengths, i), want[i]);
}

/* Fails unless the data set holds exactly these lengths. */
static inline void check_lengths(const hbp_lengths *lengths, const int64_t *want, int64_t count)
{
    ck_assert_int_eq(lengths->count, count);
    for (int64_t i = 0; i < count; i++)
        ck_assert_int_eq(hbp_lengths_get_length(lengths, i), want[i]);
}

#define READS(context, name, text, options, ...)                                                             \
    do {                                                                                                     \
        const int64_t macro_want[] = {__VA_ARGS__};                                                          \
        hbp_lengths *macro_got;                                                                              \
        OK(context, read_text(context, name, text, options, &macro_got));                                    \
        check_lengths(macro_got, macro_want, (int64_t)(sizeof macro_want / sizeof *macro_want));             \
        hbp_lengths_free(macro_got);                                                                         \
    } while (0)

#define REFUSES(context, status, message, name, text, options)                                               \
    do {                                                                                                     \
        hbp_lengths *macro_got;                                                                              \
        FAILS(context, status, message, read_text(context, name, text, options, &macro_got));                \
    } while (0)

/* One gzip member in a fresh block; the test frees it. */
static inline unsigned char *gzipped(const void *data, int64_t bytes, int64_t *zipped)
{
    z_stream z = {0};
    ck_assert_int_eq(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    uLong room = deflateBound(&z, (uLong)bytes);
    unsigned char *block = malloc(room);
    z.next_in = (unsigned char *)(uintptr_t)data;
    z.avail_in = (uInt)bytes;
    z.next_out = block;
    z.avail_out = (uInt)room;
    ck_assert_int_eq(deflate(&z, Z_FINISH), Z_STREAM_END);
    *zipped = (int64_t)z.total_out;
    deflateEnd(&z);
    return block;
}

#endif

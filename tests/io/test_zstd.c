#ifdef HBP_HAS_ZSTD
#include <zstd.h>
#endif

#include "base/rng.h"
#include "io/file/zstd.h"
#include "io/reading.h"

/* What a build without zstd says of it, and what one with it reads. */
#ifndef HBP_HAS_ZSTD

START_TEST(a_build_without_zstd_says_so)
{
    hbp_context *context = test_context();
    REFUSES(context, HBP_E_SYSTEM,
            "x.jsonl.zst is compressed with zstd, and this build has no zstd: install libzstd-dev and build "
            "again, "
            "or read what `zstd -dc` writes",
            "x.jsonl.zst", "\x28\xb5\x2f\xfd....", NULL);
    hbp_context_free(context);
}
END_TEST

TEST_MAIN("zstd", a_build_without_zstd_says_so)

#else

/* Frames one after another in a block; the test frees it. */
typedef struct frames {
    unsigned char *data;
    int64_t bytes;
} frames;

static void add_bytes(frames *to, const void *data, int64_t bytes)
{
    to->data = realloc(to->data, (size_t)(to->bytes + bytes) + 1);
    ck_assert_ptr_nonnull(to->data);
    memcpy(to->data + to->bytes, data, (size_t)bytes);
    to->bytes += bytes;
}

/* A frame with a checksum; window_log 0 is zstd's choice, and a window makes it state no size. */
static void add_frame(frames *to, const void *data, int64_t bytes, int window_log)
{
    size_t room = ZSTD_compressBound((size_t)bytes);
    void *block = malloc(room);
    ZSTD_CCtx *z = ZSTD_createCCtx();
    ck_assert(block && z);
    ck_assert(!ZSTD_isError(ZSTD_CCtx_setParameter(z, ZSTD_c_checksumFlag, 1)));
    ck_assert(!ZSTD_isError(ZSTD_CCtx_setParameter(z, ZSTD_c_contentSizeFlag, window_log == 0)));
    ck_assert(!ZSTD_isError(ZSTD_CCtx_setParameter(z, ZSTD_c_windowLog, window_log)));
    ZSTD_inBuffer in = {data, (size_t)bytes, 0};
    ZSTD_outBuffer out = {block, room, 0};
    ck_assert_uint_eq(ZSTD_compressStream2(z, &out, &in, ZSTD_e_end), 0);
    add_bytes(to, block, (int64_t)out.pos);
    ZSTD_freeCCtx(z);
    free(block);
}

static const unsigned char SKIPPED[] = {0x5a, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 'a', 'b', 'c'};

static hbp_status read_frames(hbp_context *context, const char *name, const frames *f, hbp_lengths **out)
{
    const reading r = {name, f->data, f->bytes, {0}};
    return read_bytes(context, &r, out);
}

START_TEST(frames_are_read_one_after_another)
{
    hbp_context *context = test_context();
    hbp_lengths *got;
    frames f = {0};
    add_bytes(&f, SKIPPED, sizeof SKIPPED); /* as pzstd begins */
    add_frame(&f, "length\n3\n", 9, 0);
    add_bytes(&f, SKIPPED, sizeof SKIPPED);
    add_frame(&f, "", 0, 0);
    add_frame(&f, "1\n2", 3, 12);
    add_bytes(&f, SKIPPED, sizeof SKIPPED);
    OK(context, read_frames(context, "x.csv.zst", &f, &got));
    check_lengths(got, (const int64_t[]){3, 1, 2}, 3);
    hbp_lengths_free(got);
    reading r = {"x.csv.zst", f.data, f.bytes, {0}};
    failing_sweep(read_once, &r);
    cancel_sweep(read_once, &r);
    free(f.data);
    hbp_context_free(context);
}
END_TEST

/* A name's ending counts below .zst and .zstd as it does below .gz. */
START_TEST(formats_are_told_by_name_and_content)
{
    hbp_context *context = test_context();
    hbp_lengths *got;
    frames f = {0};
    add_frame(&f, "7\n8\n", 4, 0);
    OK(context, read_frames(context, "x.txt.zst", &f, &got));
    check_lengths(got, (const int64_t[]){7, 8}, 2);
    hbp_lengths_free(got);
    FAILS(context, HBP_E_FORMAT, "x.jsonl.zstd, line 1: not a JSON object",
          read_frames(context, "x.jsonl.zstd", &f, &got));
    f.bytes = 0;
    add_frame(&f, "{\"length\": 5}\n", 14, 0);
    OK(context, read_frames(context, "x", &f, &got));
    check_lengths(got, (const int64_t[]){5}, 1);
    hbp_lengths_free(got);
    f.bytes = 0;
    add_bytes(&f, SKIPPED, sizeof SKIPPED);
    FAILS(context, HBP_E_FORMAT, "x is empty", read_frames(context, "x", &f, &got));
    f.bytes = 0;
    unsigned char *npy = calloc(1, 128 + 8);
    const char *header = "{'descr': '<i4', 'fortran_order': False, 'shape': (2,), }";
    memcpy(npy, "\x93NUMPY\x01\x00\x76\x00", 10);
    memset(npy + 10, ' ', 118);
    memcpy(npy + 10, header, strlen(header));
    npy[128] = 9, npy[132] = 4;
    add_frame(&f, npy, 136, 0);
    OK(context, read_frames(context, "x.npy.zst", &f, &got));
    check_lengths(got, (const int64_t[]){9, 4}, 2);
    hbp_lengths_free(got);
    free(npy);
    free(f.data);
    hbp_context_free(context);
}
END_TEST

/* Many times what is kept at once, of both what goes in and what comes out. */
START_TEST(long_files_are_read_whole)
{
    enum { COUNT = 200000 };
    hbp_context *context = test_context();
    char *text = malloc(8 * COUNT), *at = text;
    int64_t *want = malloc(COUNT * sizeof *want);
    ck_assert(text && want);
    hbp__rng rng = hbp__rng_make(5, 0, 0);
    for (int64_t i = 0; i < COUNT; i++) {
        want[i] = i < COUNT / 2 ? 1 + hbp__rng_below(&rng, 100000) : 7; /* compresses badly, then well */
        at += sprintf(at, "%lld\n", (long long)want[i]);
    }
    const int window_logs[] = {0, 10, 18, HBP__ZSTD_WINDOW_LOG};
    for (size_t i = 0; i < sizeof window_logs / sizeof *window_logs; i++) {
        frames f = {0};
        hbp_lengths *got;
        int64_t third = (at - text) / 3;
        add_frame(&f, text, third, window_logs[i]);
        add_frame(&f, text + third, at - text - third, window_logs[i]);
        OK(context, read_frames(context, "x.zst", &f, &got));
        check_lengths(got, want, COUNT);
        hbp_lengths_free(got);
        free(f.data);
    }
    free(text);
    free(want);
    hbp_context_free(context);
}
END_TEST

START_TEST(every_truncation_and_damage_is_told)
{
    hbp_context *context = test_context();
    const char text[] = "12\n900\n31\n77\n12\n900\n31\n";
    frames f = {0};
    hbp_lengths *got;
    add_frame(&f, text, sizeof text - 1, 0);
    for (frames cut = {f.data, 4}; cut.bytes < f.bytes; cut.bytes++)
        FAILS(context, HBP_E_FORMAT, "x.zst: the zstd data end early, at byte",
              read_frames(context, "x.zst", &cut, &got));
    for (int64_t i = 4; i < f.bytes; i++)
        for (int bit = 0; bit < 8; bit++) {
            f.data[i] ^= (unsigned char)(1 << bit);
            hbp_status status = read_frames(context, "x.zst", &f, &got);
            /* a flag that says nothing may flip; what is read is then what was written */
            ck_assert(status == HBP_E_FORMAT || (status == HBP_OK && got->count == 7));
            hbp_lengths_free(got);
            f.data[i] ^= (unsigned char)(1 << bit);
        }
    f.data[f.bytes - 1] ^= 1; /* the checksum */
    FAILS(context, HBP_E_FORMAT, "x.zst: damaged zstd data near byte",
          read_frames(context, "x.zst", &f, &got));
    f.data[f.bytes - 1] ^= 1;
    char where[96];
    snprintf(where, sizeof where, "x.zst: bytes after the end of the zstd data, at byte %lld",
             (long long)f.bytes);
    add_bytes(&f, "junk!", 5);
    FAILS(context, HBP_E_FORMAT, where, read_frames(context, "x.zst", &f, &got));
    f.bytes = 0;
    add_bytes(&f, SKIPPED, sizeof SKIPPED - 1);
    FAILS(context, HBP_E_FORMAT, "the zstd data end early", read_frames(context, "x.zst", &f, &got));
    free(f.data);
    hbp_context_free(context);
}
END_TEST

/* A frame of ten bytes that asks for 256 MiB, and for 2^41 bytes, is given neither. */
START_TEST(oversized_windows_are_refused)
{
    static const unsigned char logs[] = {(28 - 10) << 3, (41 - 10) << 3 | 7};
    for (size_t i = 0; i < sizeof logs; i++) {
        unsigned char data[] = {0x28, 0xb5, 0x2f, 0xfd, 0, logs[i], 1, 0, 0, 0};
        const frames f = {data, sizeof data};
        failing counted;
        hbp_context *context = failing_context(&counted, NULL, NULL);
        hbp_lengths *got;
        FAILS(context, HBP_E_FORMAT,
              "x.zst wants a zstd window of more than 128 MiB; read what `zstd -dc --long=31`",
              read_frames(context, "x.zst", &f, &got));
        ck_assert_int_lt(counted.peak_bytes, 1000000);
        hbp_context_free(context);
        ck_assert_int_eq(counted.live, 0);
    }
}
END_TEST

START_TEST(a_dictionary_is_asked_for)
{
    /* single segment, a dictionary id of one byte: 7; then an empty last block */
    unsigned char data[] = {0x28, 0xb5, 0x2f, 0xfd, 0x21, 7, 0, 1, 0, 0};
    const frames f = {data, sizeof data};
    hbp_context *context = test_context();
    hbp_lengths *got;
    FAILS(context, HBP_E_FORMAT, "x.zst wants the dictionary that it was compressed with",
          read_frames(context, "x.zst", &f, &got));
    hbp_context_free(context);
}
END_TEST

TEST_MAIN("zstd", frames_are_read_one_after_another, formats_are_told_by_name_and_content,
          long_files_are_read_whole, every_truncation_and_damage_is_told, oversized_windows_are_refused,
          a_dictionary_is_asked_for)

#endif

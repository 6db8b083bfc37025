#include "hbp/io.h"
#include "io/file/stream.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/rng.h"
#include "files.h"
#include "io/reading.h"

/* Every byte of a stream, or the failure of reading it, by peeks of `want` bytes. */
static hbp_status drain(hbp__stream *in, int64_t want, unsigned char *to, int64_t *total)
{
    *total = 0;
    for (;;) {
        const unsigned char *data;
        int64_t bytes;
        hbp_status status = hbp__stream_peek(in, want, &data, &bytes);
        if (status < 0 || bytes == 0)
            return status;
        int64_t here = bytes < want ? bytes : want;
        memcpy(to + *total, data, (size_t)here);
        *total += here;
        hbp__stream_take(in, here);
        ck_assert_int_eq(hbp__stream_offset(in), *total);
    }
}

static hbp_status drain_memory(hbp_context *context, const void *data, int64_t bytes, int64_t want,
                               unsigned char *to, int64_t *total)
{
    hbp__stream *in;
    OK(context, hbp__stream_open_memory(context, "some/where/x.gz", data, bytes, &in));
    ck_assert_str_eq(hbp__stream_name(in), "some/where/x.gz");
    hbp_status status = drain(in, want, to, total);
    hbp__stream_close(in);
    return status;
}

static unsigned char *noise(int64_t bytes)
{
    unsigned char *block = malloc((size_t)bytes + 1);
    hbp__rng rng = hbp__rng_make(2, 0, 0);
    for (int64_t i = 0; i < bytes; i++) /* compressible, so that a stored block unzips to many */
        block[i] = i % 3 ? 'a' : (unsigned char)hbp__rng_below(&rng, 256);
    if (bytes)
        block[0] = 'x';
    return block;
}

START_TEST(bytes_come_back_plain_zipped_and_in_members)
{
    hbp_context *context = test_context();
    const int64_t sizes[] = {1, 2, 3, 4095, 70000, 500000};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        int64_t bytes = sizes[s], total, zipped;
        unsigned char *data = noise(bytes), *back = malloc((size_t)bytes * 2);
        unsigned char *zip = gzipped(data, bytes, &zipped);
        unsigned char *two = calloc((size_t)zipped * 2 + 7, 1);
        memcpy(two, zip, (size_t)zipped);
        memcpy(two + zipped, zip, (size_t)zipped);
        int64_t want = s < 3 ? 1 : s == 3 ? 7 : HBP__STREAM_AHEAD;
        OK(context, drain_memory(context, data, bytes, want, back, &total));
        ck_assert_int_eq(total, bytes);
        ck_assert_mem_eq(back, data, (size_t)bytes);
        OK(context, drain_memory(context, zip, zipped, want, back, &total));
        ck_assert_int_eq(total, bytes);
        ck_assert_mem_eq(back, data, (size_t)bytes);
        OK(context, drain_memory(context, two, zipped * 2 + 7, want, back, &total)); /* with padding */
        ck_assert_int_eq(total, 2 * bytes);
        ck_assert_mem_eq(back + bytes, data, (size_t)bytes);
        free(two);
        free(zip);
        free(back);
        free(data);
    }
    hbp_context_free(context);
}
END_TEST

START_TEST(every_truncation_and_damage_of_a_gzip_is_told)
{
    hbp_context *context = test_context();
    const char text[] = "12\n900\n31\n77\n12\n900\n31\n";
    unsigned char back[4096];
    int64_t zipped, total;
    unsigned char *zip = gzipped(text, sizeof text - 1, &zipped);
    for (int64_t cut = 2; cut < zipped; cut++)
        FAILS(context, HBP_E_FORMAT, "x.gz: the gzip data end early, at byte",
              drain_memory(context, zip, cut, 1, back, &total));
    zip[zipped - 6] ^= 1; /* the checksum */
    FAILS(context, HBP_E_FORMAT, "damaged gzip", drain_memory(context, zip, zipped, 1, back, &total));
    zip[zipped - 6] ^= 1;
    unsigned char *more = malloc((size_t)zipped + 1);
    memcpy(more, zip, (size_t)zipped);
    more[zipped] = 'z';
    FAILS(context, HBP_E_FORMAT, "bytes after the end of the gzip data",
          drain_memory(context, more, zipped + 1, 1, back, &total));
    free(more);
    free(zip);
    hbp_context_free(context);
}
END_TEST

START_TEST(exact_reads_say_where_the_end_is)
{
    hbp_context *context = test_context();
    hbp__stream *in;
    char back[8] = {0};
    OK(context, hbp__stream_open_memory(context, "short", "abcdef", 6, &in));
    OK(context, hbp__stream_read(in, back, 4, "the head"));
    ck_assert_str_eq(back, "abcd");
    FAILS(context, HBP_E_FORMAT, "short ends at byte 6, within the tail",
          hbp__stream_read(in, back, 4, "the tail"));
    hbp__stream_close(in);
    hbp__stream_close(NULL);
    hbp_context_free(context);
}
END_TEST

START_TEST(files_are_read_or_refused_by_name)
{
    hbp_context *context = test_context();
    char folder[] = "/tmp/hbp_stream_XXXXXX", path[128];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/lengths.txt", folder);
    hbp_lengths *out;
    FAILS(context, HBP_E_SYSTEM, "lengths.txt: No such file", hbp_lengths_load(context, path, NULL, &out));
    FAILS(context, HBP_E_SYSTEM, "is a directory", hbp_lengths_load(context, folder, NULL, &out));
    FILE *file = fopen(path, "wb");
    fputs("3\n1\n2\n", file);
    fclose(file);
    OK(context, hbp_lengths_load(context, path, NULL, &out));
    check_lengths(out, (const int64_t[]){3, 1, 2}, 3);
    hbp_lengths_free(out);
    if (geteuid() != 0) { /* root reads what nobody may */
        chmod(path, 0);
        FAILS(context, HBP_E_SYSTEM, "Permission denied", hbp_lengths_load(context, path, NULL, &out));
    }
    /* standard input, twice from where it stands: it stays open */
    chmod(path, 0600);
    ck_assert_ptr_nonnull(freopen(path, "rb", stdin));
    OK(context, hbp_lengths_load(context, "-", NULL, &out));
    check_lengths(out, (const int64_t[]){3, 1, 2}, 3);
    hbp_lengths_free(out);
    FAILS(context, HBP_E_FORMAT, "standard input is empty", hbp_lengths_load(context, "-", NULL, &out));
    ck_assert_ptr_null(out);
    unlink(path);
    rmdir(folder);
    FAILS(context, HBP_E_INVALID, "path is NULL", hbp_lengths_load(context, NULL, NULL, &out));
    FAILS(context, HBP_E_INVALID, "out is NULL", hbp_lengths_load(context, path, NULL, NULL));
    hbp_context_free(context);
}
END_TEST

/* A pipe that nobody writes into, and one whose writer has said something and keeps it open: both can be
 * cancelled while they are waited for, and the bytes come first. */
START_TEST(a_wait_can_be_cancelled)
{
    char folder[64], path[128];
    folder_make(folder);
    ck_assert_int_eq(mkfifo(folder_path(path, folder, "pipe"), 0600), 0);
    for (int written = 0; written < 2; written++) {
        failing f;
        int64_t left = 3, got = 0;
        int writer = written ? open(path, O_RDWR) : -1;
        unsigned char back[64];
        hbp_context *context = failing_context(&f, cancel_after, &left);
        hbp__stream *in = NULL;
        if (written) {
            ck_assert_int_eq(write(writer, "length\n1\n", 9), 9);
            left = 20;
        }
        hbp_status status = hbp__stream_open(context, path, &in);
        if (written) {
            OK(context, status);
            status = drain(in, 1, back, &got);
            close(writer);
        }
        ck_assert_int_eq(status, HBP_E_CANCELLED);
        ck_assert_int_eq(got, written ? 9 : 0);
        ck_assert_int_lt(left, 0); /* it looked that often */
        hbp__stream_close(in);
        hbp_context_free(context);
        ck_assert_int_eq(f.live, 0);
    }
    folder_remove(folder);
}
END_TEST

TEST_MAIN("stream", bytes_come_back_plain_zipped_and_in_members,
          every_truncation_and_damage_of_a_gzip_is_told, exact_reads_say_where_the_end_is,
          files_are_read_or_refused_by_name, a_wait_can_be_cancelled)

#include <unistd.h>

#include "hbp/io.h"
#include "io/reading.h"

/* The index of sequences of 3, 1 and 2 u16 tokens; documents begin at sequences 0 and 2. */
static const char GOLDEN[] = "4d4d494449445800000100000000000000080300000000000000030000000000000003000000010"
                             "0000002000000000000000000000006"
                             "000000000000000800000000000000000000000000000002000000000000000300000000000000";
#define GOLDEN_BYTES 94

static void golden(unsigned char *to)
{
    for (int i = 0; i < GOLDEN_BYTES; i++) {
        unsigned byte;
        ck_assert_int_eq(sscanf(GOLDEN + 2 * i, "%2x", &byte), 1);
        to[i] = (unsigned char)byte;
    }
}

static hbp_status read_index(hbp_context *context, const unsigned char *file, int64_t bytes,
                             hbp_lengths **out)
{
    reading r = {"x.idx", file, bytes, {0}};
    return read_bytes(context, &r, out);
}

START_TEST(the_golden_index_is_read)
{
    hbp_context *context = test_context();
    unsigned char file[GOLDEN_BYTES + 8] = {0};
    golden(file);
    hbp_lengths *got;
    const int64_t want[] = {3, 1, 2};
    OK(context, read_index(context, file, GOLDEN_BYTES, &got));
    check_lengths(got, want, 3);
    hbp_lengths_free(got);
    OK(context, read_index(context, file, GOLDEN_BYTES + 3, &got)); /* with modes */
    check_lengths(got, want, 3);
    hbp_lengths_free(got);
    file[17] = 6; /* DeepSpeed's code for u16 */
    OK(context, read_index(context, file, GOLDEN_BYTES, &got));
    hbp_lengths_free(got);
    int64_t zipped;
    unsigned char *zip = gzipped(file, GOLDEN_BYTES, &zipped);
    OK(context, read_index(context, zip, zipped, &got));
    check_lengths(got, want, 3);
    hbp_lengths_free(got);
    free(zip);
    reading r = {"x.idx", file, GOLDEN_BYTES, {0}};
    failing_sweep(read_once, &r);
    hbp_context_free(context);
}
END_TEST

START_TEST(damaged_indices_are_refused)
{
    hbp_context *context = test_context();
    unsigned char good[GOLDEN_BYTES + 8] = {0}, file[GOLDEN_BYTES + 8];
    golden(good);
    hbp_lengths *got;
    for (int64_t cut = 9; cut < GOLDEN_BYTES; cut++) {
        char where[32];
        snprintf(where, sizeof where, "x.idx ends at byte %d", (int)cut);
        FAILS(context, HBP_E_FORMAT, where, read_index(context, good, cut, &got));
    }
    static const struct {
        int at, value;
        hbp_status status;
        const char *message;
    } cases[] = {
        {0, 'X', HBP_E_FORMAT, "not a Megatron index"},
        {9, 2, HBP_E_VERSION, "index version 2; 1 is known"},
        {17, 9, HBP_E_FORMAT, "type code 9; 1 to 8"},
        {17, 4, HBP_E_FORMAT,
         "sequence 0 of 3 tokens (type code 4) runs from byte 0, but the next begins at 6"},
        {17, 0, HBP_E_FORMAT, "type code 0"},
        {25, 1, HBP_E_OVERFLOW, "sequences; the most allowed"},
        {26, 5, HBP_E_FORMAT, "5 document borders for 3 sequences"},
        {34, 0, HBP_E_INVALID, "x.idx, sequence 0: the length is 0"},
        {37, 255, HBP_E_INVALID, "sequence 0: the length is -16777213"},
        {46, 1, HBP_E_FORMAT, "sequence 0 begins at byte 1, not 0"},
        {62, 9, HBP_E_FORMAT,
         "sequence 1 of 1 tokens (type code 8) runs from byte 6, but the next begins at 9"},
        {69, 255, HBP_E_FORMAT, "but the next begins at -1"},
        {70, 3, HBP_E_FORMAT, "document border 1 is sequence 2; it lies in 3 to 3"},
        {86, 4, HBP_E_FORMAT, "document border 2 is sequence 4"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        memcpy(file, good, GOLDEN_BYTES);
        file[cases[i].at] = (unsigned char)cases[i].value;
        FAILS(context, cases[i].status, cases[i].message, read_index(context, file, GOLDEN_BYTES, &got));
    }
    FAILS(context, HBP_E_FORMAT, "fewer bytes after", read_index(context, good, GOLDEN_BYTES + 2, &got));
    FAILS(context, HBP_E_FORMAT, "more bytes after", read_index(context, good, GOLDEN_BYTES + 4, &got));
    /* a header that promises 2^32 - 2 sequences takes no room for them */
    memcpy(file, good, GOLDEN_BYTES);
    memset(file + 18, 255, 4);
    file[18] = 254;
    failing f;
    hbp_context *counted = failing_context(&f, NULL, NULL);
    FAILS(counted, HBP_E_FORMAT, "within the sequence lengths",
          read_index(counted, file, GOLDEN_BYTES, &got));
    ck_assert_int_lt(f.peak_bytes, 1000000);
    hbp_context_free(counted);
    FAILS(context, HBP_E_FORMAT, "the legacy TNTIDX index is not read",
          read_index(context, (const unsigned char *)"TNTIDX\0\0\1\0\0", 11, &got));
    hbp_context_free(context);
}
END_TEST

/* `value` in `bytes` bytes, the lowest first. */
static unsigned char *put(unsigned char *to, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        *to++ = (unsigned char)(value >> 8 * i);
    return to;
}

/* Many times as many sequences as lengths are kept at once, in one document. */
START_TEST(long_indices_are_read_whole)
{
    enum { COUNT = 50000, BYTES = 34 + 12 * COUNT + 16 };
    hbp_context *context = test_context();
    unsigned char *file = malloc(BYTES), *at = file + 18;
    int64_t *want = malloc(COUNT * sizeof *want);
    ck_assert(file && want);
    golden(file);
    at = put(put(at, COUNT, 8), 2, 8);
    for (int64_t i = 0; i < COUNT; i++) {
        want[i] = 1 + i * i % 7919;
        at = put(at, (uint64_t)want[i], 4);
    }
    uint64_t from = 0;
    for (int64_t i = 0; i < COUNT; i++, from += 2 * (uint64_t)want[i - 1])
        at = put(at, from, 8);
    at = put(put(at, 0, 8), COUNT, 8);
    ck_assert_ptr_eq(at, file + BYTES);
    hbp_lengths *got;
    OK(context, read_index(context, file, BYTES, &got));
    check_lengths(got, want, COUNT);
    hbp_lengths_free(got);
    free(want);
    free(file);
    hbp_context_free(context);
}
END_TEST

static void write_file(const char *path, const void *data, size_t bytes)
{
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(data, 1, bytes, file), bytes);
    fclose(file);
}

START_TEST(the_data_beside_the_index_settle_its_type)
{
    hbp_context *context = test_context();
    char folder[] = "/tmp/hbp_idx_XXXXXX", index[128], data[128];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(index, sizeof index, "%s/x.idx", folder);
    snprintf(data, sizeof data, "%s/x.bin", folder);
    unsigned char file[GOLDEN_BYTES];
    golden(file);
    hbp_lengths *got;
    write_file(index, file, sizeof file);
    write_file(data, "123456789abc", 12);
    OK(context, hbp_lengths_load(context, index, NULL, &got));
    check_lengths(got, (const int64_t[]){3, 1, 2}, 3);
    hbp_lengths_free(got);
    write_file(data, "123456789abcd", 13);
    FAILS(context, HBP_E_FORMAT, "runs from byte 8, but the .bin file ends at 13",
          hbp_lengths_load(context, index, NULL, &got));
    unlink(index);
    unlink(data);
    rmdir(folder);
    hbp_context_free(context);
}
END_TEST

TEST_MAIN("read_idx", the_golden_index_is_read, damaged_indices_are_refused, long_indices_are_read_whole,
          the_data_beside_the_index_settle_its_type)

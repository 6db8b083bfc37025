#include "hbp/io.h"
#include "io/reading.h"

/* A .npy file in `to`: version, type, shape as they stand in the header, then `bytes` of data. Returns its
 * size. */
static int64_t make_npy(unsigned char *to, int version, const char *type, const char *shape, const void *data,
                        int64_t bytes)
{
    char header[256];
    int text = snprintf(header, sizeof header, "{'descr': %s, 'fortran_order': False, 'shape': %s, }\n", type,
                        shape);
    int start = version == 1 ? 10 : 12;
    memcpy(to, "\x93NUMPY", 6);
    to[6] = (unsigned char)version;
    to[7] = 0;
    to[8] = (unsigned char)(text & 255);
    to[9] = (unsigned char)(text >> 8);
    if (version > 1)
        to[10] = to[11] = 0;
    memcpy(to + start, header, (size_t)text);
    memcpy(to + start + text, data, (size_t)bytes);
    return start + text + bytes;
}

static hbp_status read_npy(hbp_context *context, int version, const char *type, const char *shape,
                           const void *data, int64_t bytes, hbp_lengths **out)
{
    unsigned char file[1024];
    reading r = {"x", file, make_npy(file, version, type, shape, data, bytes), {0}};
    return read_bytes(context, &r, out);
}

START_TEST(every_integer_type_is_read)
{
    hbp_context *context = test_context();
    static const struct {
        const char *type;
        int item, big;
    } types[] = {{"'|u1'", 1, 0}, {"'|i1'", 1, 0}, {"'<u2'", 2, 0}, {"'>u2'", 2, 1}, {"'<i2'", 2, 0},
                 {"'>i2'", 2, 1}, {"'<u4'", 4, 0}, {"'>u4'", 4, 1}, {"'<i4'", 4, 0}, {"'>i4'", 4, 1},
                 {"'<u8'", 8, 0}, {"'>u8'", 8, 1}, {"'<i8'", 8, 0}, {"'>i8'", 8, 1}};
    const int64_t want[] = {3, 127, 1};
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        unsigned char data[24] = {0};
        for (int i = 0; i < 3; i++)
            data[i * types[t].item + (types[t].big ? types[t].item - 1 : 0)] = (unsigned char)want[i];
        for (int version = 1; version <= 3; version++) {
            hbp_lengths *got;
            OK(context, read_npy(context, version, types[t].type, "(3,)", data, 3 * types[t].item, &got));
            check_lengths(got, want, 3);
            hbp_lengths_free(got);
        }
    }
    hbp_lengths *got;
    const unsigned char wide[] = {0x00, 0x01, 0x02, 0x03};
    OK(context, read_npy(context, 1, "'<u4'", "(1L,)", wide, 4, &got));
    check_lengths(got, (const int64_t[]){0x03020100}, 1);
    hbp_lengths_free(got);
    OK(context, read_npy(context, 1, "'>u4'", "( 1 ,)", wide, 4, &got));
    check_lengths(got, (const int64_t[]){0x00010203}, 1);
    hbp_lengths_free(got);
    hbp_context_free(context);
}
END_TEST

START_TEST(items_out_of_range_are_refused_by_index)
{
    hbp_context *context = test_context();
    hbp_lengths *got;
    unsigned char data[16] = {1};
    FAILS(context, HBP_E_INVALID, "x, item 1: the length is 0",
          read_npy(context, 1, "'<u8'", "(2,)", data, 16, &got));
    memset(data + 8, 255, 8);
    FAILS(context, HBP_E_INVALID, "item 1: the length is -1",
          read_npy(context, 1, "'<i8'", "(2,)", data, 16, &got));
    FAILS(context, HBP_E_OVERFLOW, "item 1: the length is 9223372036854775807; it is at most 2147483647",
          read_npy(context, 1, "'<u8'", "(2,)", data, 16, &got));
    FAILS(context, HBP_E_INVALID, "item 0: the length is -1",
          read_npy(context, 1, "'|i1'", "(1,)", data + 8, 1, &got));
    FAILS(context, HBP_E_INVALID, "item 0: the length is -32768",
          read_npy(context, 1, "'>i2'", "(1,)", "\x80\x00", 2, &got));
    hbp_context_free(context);
}
END_TEST

START_TEST(other_arrays_are_refused_by_name)
{
    hbp_context *context = test_context();
    static const struct {
        const char *type, *shape, *message;
        hbp_status status;
    } cases[] = {
        {"'<f8'", "(1,)", "a floating-point type", HBP_E_FORMAT},
        {"'<c16'", "(1,)", "a floating-point type", HBP_E_FORMAT},
        {"'|O'", "(1,)", "Python objects", HBP_E_FORMAT},
        {"'|b1'", "(1,)", "not an integer", HBP_E_FORMAT},
        {"'<U8'", "(1,)", "not an integer", HBP_E_FORMAT},
        {"'<i16'", "(1,)", "other than 1, 2, 4 or 8 bytes", HBP_E_FORMAT},
        {"'<i3'", "(1,)", "other than 1, 2, 4 or 8 bytes", HBP_E_FORMAT},
        {"[('a', '<i8')]", "(1,)", "a record type", HBP_E_FORMAT},
        {"'?'", "(1,)", "not understood", HBP_E_FORMAT},
        {"''", "(1,)", "not understood", HBP_E_FORMAT},
        {"5", "(1,)", "lacks a type", HBP_E_FORMAT},
        {"'<i8'", "(2, 3)", "the array has 2 dimensions; an array of one dimension is read", HBP_E_FORMAT},
        {"'<i8'", "()", "the array has 0 dimensions", HBP_E_FORMAT},
        {"'<i8'", "5", "lacks a shape", HBP_E_FORMAT},
        {"'<i8'", "(5", "does not end", HBP_E_FORMAT},
        {"'<i8'", "(-1,)", "not understood", HBP_E_FORMAT},
        {"'<i8'", "(4294967295,)", "4294967295 items; the most allowed is 4294967294", HBP_E_OVERFLOW},
        {"'<i8'", "(99999999999999999999,)", "99999999999999999999 items", HBP_E_OVERFLOW},
        {"'<i8'", "(4294967294,)", "within the array", HBP_E_FORMAT}, /* and no room is taken for it */
        {"'<i8'", "(0,)", "bytes after the array, at byte", HBP_E_FORMAT},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hbp_lengths *got;
        FAILS(context, cases[i].status, cases[i].message,
              read_npy(context, 1, cases[i].type, cases[i].shape, "\5\0\0\0\0\0\0", 8, &got));
    }
    hbp_context_free(context);
}
END_TEST

START_TEST(damaged_files_are_refused)
{
    hbp_context *context = test_context();
    unsigned char file[1024];
    const unsigned char data[] = {3, 1, 2};
    int64_t bytes = make_npy(file, 1, "'|u1'", "(3,)", data, 3);
    hbp_lengths *got;
    for (int64_t cut = 6; cut < bytes; cut++) {
        reading r = {"x.npy", file, cut, {0}};
        char where[32];
        snprintf(where, sizeof where, "x.npy ends at byte %d", (int)cut);
        FAILS(context, HBP_E_FORMAT, where, read_bytes(context, &r, &got));
    }
    file[6] = 4;
    reading newer = {"x", file, bytes, {0}};
    FAILS(context, HBP_E_VERSION, "x: .npy version 4; 1 to 3 are known", read_bytes(context, &newer, &got));
    file[6] = 3;
    file[11] = 1;
    FAILS(context, HBP_E_FORMAT, "longer than 65536 bytes", read_bytes(context, &newer, &got));
    reading other = {"x.npy", "12345678901", 11, {0}};
    FAILS(context, HBP_E_FORMAT, "x.npy: not a .npy file", read_bytes(context, &other, &got));
    bytes = make_npy(file, 1, "'|u1'", "(0,)", data, 0);
    reading empty = {"x.npy", file, bytes, {0}};
    FAILS(context, HBP_E_INVALID, "x.npy holds no lengths", read_bytes(context, &empty, &got));
    bytes = make_npy(file, 1, "'|u1'", "(3,)", data, 3);
    reading whole = {"x.npy", file, bytes, {0}};
    failing_sweep(read_once, &whole);
    hbp_context_free(context);
}
END_TEST

START_TEST(the_shared_data_reads_as_numpy_wrote_it)
{
    hbp_context *context = test_context();
    hbp_lengths *got = NULL;
    const char *path = HBP_DATA_DIR "/wikipedia.npy";
    FILE *file = fopen(path, "rb");
    if (!file) {
        printf("skipped: %s is not there\n", path);
        hbp_context_free(context);
        return;
    }
    OK(context, hbp_lengths_load(context, path, NULL, &got));
    hbp_lengths_summary s = {.struct_size = sizeof s};
    OK(context, hbp_lengths_get_summary(context, got, &s));
    ck_assert_int_eq(s.samples, 1000000);
    ck_assert_int_eq(s.min_length, 1);
    ck_assert_int_eq(s.max_length, 1823777);
    uint32_t *plain = malloc(4000000);
    ck_assert_int_eq(fseek(file, -4000000, SEEK_END), 0);
    ck_assert_uint_eq(fread(plain, 4, 1000000, file), 1000000);
    ck_assert_mem_eq(got->length, plain, 4000000); /* on a little-endian machine */
    fclose(file);
    free(plain);
    hbp_lengths_free(got);
    hbp_context_free(context);
}
END_TEST

TEST_MAIN("read_npy", every_integer_type_is_read, items_out_of_range_are_refused_by_index,
          other_arrays_are_refused_by_name, damaged_files_are_refused,
          the_shared_data_reads_as_numpy_wrote_it)

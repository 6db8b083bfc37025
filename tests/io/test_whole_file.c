#include "io/file/stream.h"

#include <zlib.h>

#include "failing.h"
#include "files.h"

static char folder[64];

static const char *write_bytes(const char *name, char first, size_t bytes)
{
    static char path[128];
    char *data = malloc(bytes + 1);
    ck_assert_ptr_nonnull(data);
    for (size_t i = 0; i < bytes; i++)
        data[i] = (char)(first + (char)(i % 23));
    file_write(folder_path(path, folder, name), data, bytes);
    free(data);
    return path;
}

START_TEST(files_of_every_size)
{
    folder_make(folder);
    hbp_context *context = test_context();
    static const size_t sizes[] = {0, 1, 4095, 65536, 65537, 300000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const char *path = write_bytes("f", 'a', sizes[i]);
        char *data;
        int64_t bytes;
        OK(context, hbp__read_file(context, path, 300000, &data, &bytes));
        ck_assert_int_eq(bytes, (int64_t)sizes[i]);
        ck_assert_ptr_nonnull(data);
        for (size_t j = 0; j < sizes[i]; j++)
            ck_assert(data[j] == (char)('a' + (char)(j % 23)));
        hbp__delete(&context->memory, data);
    }
    hbp_context_free(context);
    folder_remove(folder);
}
END_TEST

START_TEST(limits_and_missing_files)
{
    folder_make(folder);
    hbp_context *context = test_context();
    char *data = folder;
    int64_t bytes = 5;
    const char *path = write_bytes("f", 'a', 70000);
    FAILS(context, HBP_E_FORMAT, "f has more than 69999 bytes",
          hbp__read_file(context, path, 69999, &data, &bytes));
    ck_assert_ptr_null(data);
    ck_assert_int_eq(bytes, 0);
    FAILS(context, HBP_E_SYSTEM, "No such file", hbp__read_file(context, "/no/such/file", 10, &data, &bytes));
    FAILS(context, HBP_E_SYSTEM, "directory", hbp__read_file(context, folder, 10, &data, &bytes));
    /* The limit counts what comes out of a gzip: this one holds 1 MiB in about 1 KiB. */
    char zipped[128];
    gzFile file = gzopen(folder_path(zipped, folder, "z.gz"), "wb");
    for (int i = 0; i < 1024; i++)
        ck_assert_int_eq(gzwrite(file, (char[1024]){0}, 1024), 1024);
    gzclose(file);
    FAILS(context, HBP_E_FORMAT, "more than 100000", hbp__read_file(context, zipped, 100000, &data, &bytes));
    OK(context, hbp__read_file(context, zipped, 1 << 20, &data, &bytes));
    ck_assert_int_eq(bytes, 1 << 20);
    hbp__delete(&context->memory, data);
    hbp_context_free(context);
    folder_remove(folder);
}
END_TEST

static hbp_status read_it(hbp_context *context, void *user)
{
    char *data;
    int64_t bytes;
    hbp_status status = hbp__read_file(context, user, 300000, &data, &bytes);
    hbp__delete(&context->memory, data);
    return status;
}

START_TEST(failing_allocations_and_cancels)
{
    folder_make(folder);
    char path[128];
    strcpy(path, write_bytes("f", 'a', 200000));
    failing_sweep(read_it, path);
    ck_assert_int_gt(cancel_sweep(read_it, path), 0);
    strcpy(path, write_bytes("empty", 'a', 0));
    failing_sweep(read_it, path);
    folder_remove(folder);
}
END_TEST

TEST_MAIN("whole_file", files_of_every_size, limits_and_missing_files, failing_allocations_and_cancels)

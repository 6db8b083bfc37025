#include "failing.h"
#include "files.h"

#include "io/atomic_file.h"

static void expect(const char *path, const char *text)
{
    size_t bytes;
    char *data = file_read(path, &bytes);
    ck_assert_str_eq(data, text);
    free(data);
}

START_TEST(a_commit_replaces_and_a_discard_leaves)
{
    hbp_context *context = test_context();
    char folder[64], path[128];
    folder_make(folder);
    folder_path(path, folder, "file");
    hbp__atomic_file *file = NULL;

    OK(context, hbp__atomic_open(context, path, &file));
    OK(context, hbp__atomic_write(file, "first", 5));
    ck_assert_int_eq(access(path, F_OK), -1);
    OK(context, hbp__atomic_commit(file));
    expect(path, "first");
    ck_assert_int_eq(folder_count(folder), 1);

    OK(context, hbp__atomic_open(context, path, &file));
    OK(context, hbp__atomic_write(file, "second", 6));
    expect(path, "first");
    hbp__atomic_discard(file);
    expect(path, "first");
    ck_assert_int_eq(folder_count(folder), 1);

    hbp__atomic_file *other = NULL; /* two writers at once: the last commit stays, whole */
    OK(context, hbp__atomic_open(context, path, &file));
    OK(context, hbp__atomic_open(context, path, &other));
    OK(context, hbp__atomic_write(file, "third", 5));
    OK(context, hbp__atomic_write(other, "fourth", 6));
    OK(context, hbp__atomic_commit(other));
    expect(path, "fourth");
    OK(context, hbp__atomic_commit(file));
    expect(path, "third");
    ck_assert_int_eq(folder_count(folder), 1);
    hbp__atomic_discard(NULL);
    folder_remove(folder);
    hbp_context_free(context);
}
END_TEST

START_TEST(pieces_of_any_size_come_out_in_order)
{
    hbp_context *context = test_context();
    char folder[64], path[128];
    folder_make(folder);
    folder_path(path, folder, "file");
    static char data[300000];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (char)(i * 2654435761u >> 13);
    hbp__atomic_file *file = NULL;
    OK(context, hbp__atomic_open(context, path, &file));
    size_t at = 0, piece = 1;
    for (; at < sizeof data; at += piece, piece = piece * 3 % 100003) {
        piece = piece < sizeof data - at ? piece : sizeof data - at;
        OK(context, hbp__atomic_write(file, data + at, piece));
        OK(context, hbp__atomic_write(file, NULL, 0));
        ck_assert_uint_eq(hbp__atomic_offset(file), at + piece);
    }
    OK(context, hbp__atomic_commit(file));
    size_t bytes;
    char *read = file_read(path, &bytes);
    ck_assert_uint_eq(bytes, sizeof data);
    ck_assert_int_eq(memcmp(read, data, bytes), 0);
    free(read);
    folder_remove(folder);
    hbp_context_free(context);
}
END_TEST

START_TEST(the_system_says_what_is_wrong)
{
    hbp_context *context = test_context();
    char folder[64], path[128];
    folder_make(folder);
    hbp__atomic_file *file = (void *)context;
    FAILS(context, HBP_E_SYSTEM, "No such file",
          hbp__atomic_open(context, folder_path(path, folder, "none/file"), &file));
    ck_assert_ptr_null(file);
    FAILS(context, HBP_E_SYSTEM, "irectory", hbp__atomic_open(context, folder, &file));
    if (access("/dev/full", W_OK) == 0) {
        OK(context, hbp__atomic_open(context, "/dev/full", &file));
        OK(context, hbp__atomic_write(file, "x", 1));
        FAILS(context, HBP_E_SYSTEM, "cannot write /dev/full", hbp__atomic_commit(file));
    }
    OK(context, hbp__atomic_open(context, "/dev/null", &file)); /* written to, not replaced */
    OK(context, hbp__atomic_commit(file));
    struct stat null;
    ck_assert_int_eq(stat("/dev/null", &null), 0);
    ck_assert(S_ISCHR(null.st_mode));

    folder_path(path, folder, "file"); /* the place becomes a folder before the rename */
    OK(context, hbp__atomic_open(context, path, &file));
    ck_assert_int_eq(mkdir(path, 0700), 0);
    FAILS(context, HBP_E_SYSTEM, "cannot replace", hbp__atomic_commit(file));
    ck_assert_int_eq(folder_count(folder), 1);
    rmdir(path);
    folder_remove(folder);
    hbp_context_free(context);
}
END_TEST

static hbp_status write_one(hbp_context *context, void *user)
{
    hbp__atomic_file *file;
    HBP__TRY(hbp__atomic_open(context, user, &file));
    return hbp__atomic_commit(file);
}

START_TEST(a_failed_allocation_leaves_nothing)
{
    char folder[64], path[128];
    folder_make(folder);
    folder_path(path, folder, "file");
    failing_sweep(write_one, path);
    ck_assert_int_eq(folder_count(folder), 1);
    folder_remove(folder);
}
END_TEST

TEST_MAIN("atomic_file", a_commit_replaces_and_a_discard_leaves, pieces_of_any_size_come_out_in_order,
          the_system_says_what_is_wrong, a_failed_allocation_leaves_nothing)

#include "failing.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "io/file/atomic_file.h"

static char folder[64];

static const char *in_folder(const char *name)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void enter_folder(void)
{
    strcpy(folder, "/tmp/hbp-atomic-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static int count_files(void)
{
    int count = 0;
    DIR *open = opendir(folder);
    for (struct dirent *entry; (entry = readdir(open));)
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    closedir(open);
    return count;
}

static void empty_folder(void)
{
    DIR *open = opendir(folder);
    for (struct dirent *entry; (entry = readdir(open));)
        unlink(in_folder(entry->d_name));
    closedir(open);
}

static void leave_folder(int files)
{
    ck_assert_int_eq(count_files(), files);
    unlink(in_folder("x"));
    rmdir(folder);
}

static void check_content(const char *want, size_t bytes)
{
    char *got = malloc(bytes + 1);
    FILE *file = fopen(in_folder("x"), "rb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fread(got, 1, bytes + 1, file), bytes);
    ck_assert_mem_eq(got, want, bytes);
    fclose(file);
    free(got);
}

static hbp_status write_text(hbp_context *context, const char *path, const char *text, int64_t bytes)
{
    hbp__atomic_file file;
    hbp_status status = hbp__atomic_open(context, path, &file);
    /* Odd pieces, so that they straddle the buffer. */
    for (int64_t at = 0; at < bytes && status == HBP_OK; at += 7919)
        status = hbp__atomic_write(context, &file, text + at, bytes - at < 7919 ? bytes - at : 7919);
    if (status == HBP_OK)
        status = hbp__atomic_commit(context, &file);
    hbp__atomic_discard(&file);
    hbp__atomic_discard(&file);
    return status;
}

START_TEST(a_file_appears_at_the_commit)
{
    hbp_context *context = test_context();
    enter_folder();
    hbp__atomic_file file;
    OK(context, hbp__atomic_open(context, in_folder("x"), &file));
    OK(context, hbp__atomic_write(context, &file, "one", 3));
    ck_assert_int_ne(access(in_folder("x"), F_OK), 0);
    OK(context, hbp__atomic_commit(context, &file));
    check_content("one", 3);
    OK(context, hbp__atomic_open(context, in_folder("x"), &file));
    OK(context, hbp__atomic_write(context, &file, "three", 5));
    check_content("one", 3);
    hbp__atomic_discard(&file);
    check_content("one", 3);
    OK(context, write_text(context, in_folder("x"), "", 0));
    check_content("", 0);
    leave_folder(1);
    hbp_context_free(context);
}
END_TEST

START_TEST(large_files_pass_through_the_buffer)
{
    hbp_context *context = test_context();
    enter_folder();
    size_t bytes = 1000003;
    char *text = malloc(bytes);
    for (size_t i = 0; i < bytes; i++)
        text[i] = (char)(i * 7 + i / 251);
    OK(context, write_text(context, in_folder("x"), text, (int64_t)bytes));
    check_content(text, bytes);
    hbp__atomic_file file;
    OK(context, hbp__atomic_open(context, in_folder("x"), &file));
    OK(context, hbp__atomic_write(context, &file, text, (int64_t)bytes));
    OK(context, hbp__atomic_commit(context, &file));
    check_content(text, bytes);
    free(text);
    leave_folder(1);
    hbp_context_free(context);
}
END_TEST

START_TEST(two_writers_do_not_meet)
{
    hbp_context *context = test_context();
    enter_folder();
    hbp__atomic_file a, b;
    OK(context, hbp__atomic_open(context, in_folder("x"), &a));
    OK(context, hbp__atomic_open(context, in_folder("x"), &b));
    OK(context, hbp__atomic_write(context, &a, "first", 5));
    OK(context, hbp__atomic_write(context, &b, "second", 6));
    OK(context, hbp__atomic_commit(context, &b));
    check_content("second", 6);
    OK(context, hbp__atomic_commit(context, &a));
    check_content("first", 5);
    leave_folder(1);
    hbp_context_free(context);
}
END_TEST

/* What a killed writer leaves, however much of it and under whatever number, is in nobody's way. */
START_TEST(leftovers_are_in_nobodys_way)
{
    hbp_context *context = test_context();
    enter_folder();
    for (int i = 0; i < 30; i++) {
        pid_t child = fork();
        if (!child) {
            hbp__atomic_file left;
            _exit(hbp__atomic_open(context, in_folder("x"), &left) == HBP_OK ? 0 : 1);
        }
        int status;
        ck_assert_int_eq(waitpid(child, &status, 0), child);
        ck_assert_int_eq(status, 0);
    }
    for (int i = 0; i < 1000; i++) { /* as versions before named them */
        char name[64];
        snprintf(name, sizeof name, "x.%lld-%d.tmp", (long long)getpid(), i);
        FILE *file = fopen(in_folder(name), "wb");
        ck_assert_ptr_nonnull(file);
        fclose(file);
    }
    OK(context, write_text(context, in_folder("x"), "a", 1));
    check_content("a", 1);
    ck_assert_int_eq(count_files(), 1031);
    empty_folder();
    leave_folder(0);
    hbp_context_free(context);
}
END_TEST

/* A name as long as the file system takes, and one byte more. */
START_TEST(long_names_are_written)
{
    hbp_context *context = test_context();
    enter_folder();
    char name[300];
    long most = pathconf(folder, _PC_NAME_MAX);
    ck_assert(most > 0 && most < (long)sizeof name - 1);
    memset(name, 'n', sizeof name);
    name[most] = '\0';
    OK(context, write_text(context, in_folder(name), "a", 1));
    ck_assert_int_eq(count_files(), 1);
    name[most] = 'n';
    name[most + 1] = '\0';
    FAILS(context, HBP_E_SYSTEM, "File name too long", write_text(context, in_folder(name), "a", 1));
    ck_assert_int_eq(count_files(), 1);
    empty_folder();
    leave_folder(0);
    hbp_context_free(context);
}
END_TEST

/* In the working folder a path has no folder of its own. */
START_TEST(bare_names_are_written)
{
    hbp_context *context = test_context();
    enter_folder();
    ck_assert_int_eq(chdir(folder), 0);
    OK(context, write_text(context, "x", "a", 1));
    check_content("a", 1);
    ck_assert_int_eq(chdir("/"), 0);
    leave_folder(1);
    hbp_context_free(context);
}
END_TEST

START_TEST(permissions_pass_on)
{
    hbp_context *context = test_context();
    enter_folder();
    OK(context, write_text(context, in_folder("x"), "a", 1));
    ck_assert_int_eq(chmod(in_folder("x"), 0640), 0);
    OK(context, write_text(context, in_folder("x"), "b", 1));
    struct stat there;
    ck_assert_int_eq(stat(in_folder("x"), &there), 0);
    ck_assert_int_eq(there.st_mode & 0777, 0640);
    leave_folder(1);
    hbp_context_free(context);
}
END_TEST

START_TEST(places_that_cannot_be_written)
{
    hbp_context *context = test_context();
    enter_folder();
    FAILS(context, HBP_E_SYSTEM, "No such file or directory",
          write_text(context, in_folder("none/x"), "a", 1));
    FAILS(context, HBP_E_SYSTEM, "none/x: ", write_text(context, in_folder("none/x"), "a", 1));
    FAILS(context, HBP_E_SYSTEM, "Is a directory", write_text(context, folder, "a", 1));
    FAILS(context, HBP_E_SYSTEM, "No such file or directory", write_text(context, "", "a", 1));
    leave_folder(0);
    hbp_context_free(context);
}
END_TEST

/* A device stays what it is; a full one says so. */
START_TEST(devices_are_written_in_place)
{
    hbp_context *context = test_context();
    struct stat there;
    OK(context, write_text(context, "/dev/null", "a", 1));
    ck_assert_int_eq(stat("/dev/null", &there), 0);
    ck_assert(S_ISCHR(there.st_mode));
    if (stat("/dev/full", &there) == 0) {
        FAILS(context, HBP_E_SYSTEM, "cannot write /dev/full: No space left on device",
              write_text(context, "/dev/full", "a", 1));
        char *much = calloc(1, 200000);
        FAILS(context, HBP_E_SYSTEM, "No space left on device",
              write_text(context, "/dev/full", much, 200000));
        free(much);
    }
    hbp_context_free(context);
}
END_TEST

/* A limit on the size of files stands in for a full disk. */
START_TEST(a_full_disk_leaves_the_old_file)
{
    hbp_context *context = test_context();
    enter_folder();
    OK(context, write_text(context, in_folder("x"), "old", 3));
    struct rlimit before, now;
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &before), 0);
    now = before;
    now.rlim_cur = 100000;
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &now), 0);
    char *much = calloc(1, 300000);
    hbp_status late = write_text(context, in_folder("x"), much, 300000);
    hbp_status last = write_text(context, in_folder("x"), much, 100001); /* fails in the commit */
    setrlimit(RLIMIT_FSIZE, &before);
    signal(SIGXFSZ, handler);
    free(much);
    ck_assert_int_eq(late, HBP_E_SYSTEM);
    ck_assert_int_eq(last, HBP_E_SYSTEM);
    ck_assert_ptr_nonnull(strstr(hbp_context_message(context), "File too large"));
    check_content("old", 3);
    leave_folder(1);
    hbp_context_free(context);
}
END_TEST

static hbp_status write_once(hbp_context *context, void *user)
{
    return write_text(context, user, "text", 4);
}

START_TEST(failed_allocations_leave_nothing)
{
    enter_folder();
    char path[128];
    strcpy(path, in_folder("x"));
    failing_sweep(write_once, path);
    check_content("text", 4);
    leave_folder(1);
}
END_TEST

TEST_MAIN("atomic_file", a_file_appears_at_the_commit, large_files_pass_through_the_buffer,
          two_writers_do_not_meet, leftovers_are_in_nobodys_way, long_names_are_written,
          bare_names_are_written, permissions_pass_on, places_that_cannot_be_written,
          devices_are_written_in_place, a_full_disk_leaves_the_old_file, failed_allocations_leave_nothing)

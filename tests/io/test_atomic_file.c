#include "failing.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
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

/* ---- links ---- */

static void link_to(const char *target, const char *name)
{
    ck_assert_int_eq(symlink(target, in_folder(name)), 0);
}

static void check_link(const char *name, const char *target)
{
    char said[512];
    ssize_t bytes = readlink(in_folder(name), said, sizeof said - 1);
    ck_assert_int_gt(bytes, 0);
    said[bytes] = '\0';
    ck_assert_str_eq(said, target);
}

static char *copy_path(const char *name)
{
    static char copies[4][512];
    static int next;
    char *copy = copies[next++ % 4];
    strcpy(copy, in_folder(name));
    return copy;
}

START_TEST(links_stay_and_their_files_are_written)
{
    hbp_context *context = test_context();
    enter_folder();
    OK(context, write_text(context, in_folder("x"), "old", 3));
    ck_assert_int_eq(chmod(in_folder("x"), 0640), 0);
    link_to("x", "near");
    link_to("near", "far");
    link_to(copy_path("far"), "whole");
    static const char *const names[] = {"near", "far", "whole"};
    for (int i = 0; i < 3; i++) {
        hbp__atomic_file file;
        OK(context, hbp__atomic_open(context, in_folder(names[i]), &file));
        OK(context, hbp__atomic_write(context, &file, names[i], (int64_t)strlen(names[i])));
        check_content(i ? names[i - 1] : "old", strlen(i ? names[i - 1] : "old"));
        OK(context, hbp__atomic_commit(context, &file));
        check_content(names[i], strlen(names[i]));
    }
    hbp__atomic_file dropped;
    OK(context, hbp__atomic_open(context, in_folder("far"), &dropped));
    hbp__atomic_discard(&dropped);
    check_content("whole", 5);
    struct stat there;
    ck_assert_int_eq(lstat(in_folder("x"), &there), 0);
    ck_assert_int_eq(there.st_mode & 0777, 0640);
    check_link("near", "x");
    check_link("far", "near");
    check_link("whole", copy_path("far"));
    ck_assert_int_eq(count_files(), 4);
    empty_folder();
    leave_folder(0);
    hbp_context_free(context);
}
END_TEST

/* What a link leads to need not be there, but for its folder. */
START_TEST(links_to_nothing_make_their_files)
{
    hbp_context *context = test_context();
    enter_folder();
    link_to("x", "dangling");
    hbp__atomic_file file;
    OK(context, hbp__atomic_open(context, in_folder("dangling"), &file));
    hbp__atomic_discard(&file);
    ck_assert_int_eq(count_files(), 1);
    OK(context, write_text(context, in_folder("dangling"), "a", 1));
    check_content("a", 1);
    check_link("dangling", "x");
    link_to("none/x", "astray");
    FAILS(context, HBP_E_SYSTEM, "/astray: No such file or directory",
          write_text(context, in_folder("astray"), "a", 1));
    check_link("astray", "none/x");
    ck_assert_int_eq(count_files(), 3);
    empty_folder();
    leave_folder(0);
    hbp_context_free(context);
}
END_TEST

START_TEST(links_in_a_circle_are_refused)
{
    hbp_context *context = test_context();
    enter_folder();
    link_to("b", "a");
    link_to("a", "b");
    link_to("self", "self");
    FAILS(context, HBP_E_SYSTEM, "/a: Too many levels of symbolic links",
          write_text(context, in_folder("a"), "a", 1));
    FAILS(context, HBP_E_SYSTEM, "cannot write", write_text(context, in_folder("self"), "a", 1));
    ck_assert_int_eq(count_files(), 3);
    empty_folder();
    leave_folder(0);
    hbp_context_free(context);
}
END_TEST

/* A link's folder is where it lies, not where the path to it seems to; the file is renamed in its own. */
START_TEST(links_lead_across_folders)
{
    hbp_context *context = test_context();
    enter_folder();
    static const char *const folders[] = {"one", "one/in", "two", "two/in"};
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(mkdir(in_folder(folders[i]), 0777), 0);
    link_to("two/in", "short");
    link_to("../x", "two/in/up");
    link_to("../../short/up", "one/in/over");
    OK(context, write_text(context, in_folder("short/up"), "up", 2));
    ck_assert_int_ne(access(in_folder("x"), F_OK), 0);
    ck_assert_int_eq(rename(copy_path("two/x"), copy_path("x")), 0);
    check_content("up", 2);
    OK(context, write_text(context, in_folder("one/in/over"), "over", 4));
    check_link("one/in/over", "../../short/up");
    check_link("two/in/up", "../x");
    ck_assert_int_eq(rename(copy_path("two/x"), copy_path("x")), 0);
    check_content("over", 4);
    ck_assert_int_eq(chdir(in_folder("one/in")), 0);
    OK(context, write_text(context, "over", "here", 4));
    ck_assert_int_eq(chdir("/"), 0);
    ck_assert_int_eq(rename(copy_path("two/x"), copy_path("x")), 0);
    check_content("here", 4);
    link_to("one", "folder");
    FAILS(context, HBP_E_SYSTEM, "Is a directory", write_text(context, in_folder("folder"), "a", 1));
    unlink(in_folder("one/in/over"));
    unlink(in_folder("two/in/up"));
    for (int i = 3; i >= 0; i--) /* with nothing else in them */
        ck_assert_int_eq(rmdir(in_folder(folders[i])), 0);
    empty_folder();
    leave_folder(0);
    hbp_context_free(context);
}
END_TEST

static void check_read(int from, const char *want)
{
    char got[64];
    ssize_t bytes = read(from, got, sizeof got);
    ck_assert_int_eq(bytes, (ssize_t)strlen(want));
    ck_assert_mem_eq(got, want, (size_t)bytes);
}

START_TEST(pipes_are_written_in_place)
{
    hbp_context *context = test_context();
    enter_folder();
    ck_assert_int_eq(mkfifo(in_folder("pipe"), 0600), 0);
    link_to("pipe", "to-pipe");
    int end = open(in_folder("pipe"), O_RDONLY | O_NONBLOCK);
    ck_assert_int_ge(end, 0);
    OK(context, write_text(context, in_folder("pipe"), "one", 3));
    check_read(end, "one");
    OK(context, write_text(context, in_folder("to-pipe"), "two", 3));
    check_read(end, "two");
    struct stat there;
    ck_assert_int_eq(lstat(in_folder("pipe"), &there), 0);
    ck_assert(S_ISFIFO(there.st_mode));
    check_link("to-pipe", "pipe");
    ck_assert_int_eq(count_files(), 2);
    close(end);
    empty_folder();
    leave_folder(0);
    hbp_context_free(context);
}
END_TEST

/* Nobody reads: writing waits, and stops where it is asked to. */
START_TEST(waiting_for_a_reader_can_be_cancelled)
{
    hbp_context *context = test_context();
    enter_folder();
    ck_assert_int_eq(mkfifo(in_folder("pipe"), 0600), 0);
    int end = open(in_folder("pipe"), O_RDONLY | O_NONBLOCK);
    ck_assert_int_ge(end, 0);
    char *much = calloc(1, 1000000);
    hbp_context_cancel(context);
    FAILS(context, HBP_E_CANCELLED, "cancelled", write_text(context, in_folder("pipe"), much, 1000000));
    free(much);
    close(end);
    empty_folder();
    leave_folder(0);
    hbp_context_free(context);
}
END_TEST

/* Nobody opened the pipe yet: opening waits for a reader, and stops where it is asked to. */
START_TEST(waiting_for_who_opens_a_pipe_can_be_cancelled)
{
    hbp_context *context = test_context();
    enter_folder();
    ck_assert_int_eq(mkfifo(in_folder("pipe"), 0600), 0);
    hbp_context_cancel(context);
    FAILS(context, HBP_E_CANCELLED, "cancelled", write_text(context, in_folder("pipe"), "one", 3));
    const pid_t reader = fork();
    ck_assert_int_ge(reader, 0);
    if (reader == 0) {
        char text[4] = "";
        nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL); /* most likely the writer waits by then */
        const int end = open(in_folder("pipe"), O_RDONLY);
        _exit(end >= 0 && read(end, text, 3) == 3 && strcmp(text, "one") == 0 ? 0 : 1);
    }
    OK(context, write_text(context, in_folder("pipe"), "one", 3));
    int status = -1;
    ck_assert_int_eq(waitpid(reader, &status, 0), reader);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    empty_folder();
    leave_folder(0);
    hbp_context_free(context);
}
END_TEST

/* A descriptor is what was opened, from where that stands, whatever its file is called. */
START_TEST(open_descriptors_are_written_in_place)
{
    if (access("/proc/self/fd", X_OK) != 0)
        return;
    hbp_context *context = test_context();
    enter_folder();
    int ends[2], file = open(in_folder("x"), O_RDWR | O_CREAT, 0600);
    ck_assert_int_ge(file, 0);
    ck_assert_int_eq(pipe(ends), 0);
    ck_assert_int_eq(write(file, "from ", 5), 5);
    char name[64];
    snprintf(name, sizeof name, "/proc/self/fd/%d", file);
    link_to(name, "link");
    OK(context, write_text(context, in_folder("link"), "here", 4));
    OK(context, write_text(context, name, " on", 3));
    check_content("from here on", 12);
    check_link("link", name);
    ck_assert_int_eq(unlink(in_folder("x")), 0);
    OK(context, write_text(context, name, ".", 1));
    ck_assert_int_eq(lseek(file, 0, SEEK_CUR), 13);
    ck_assert_int_eq(count_files(), 1);
    snprintf(name, sizeof name, "/dev/fd/%d", ends[1]);
    OK(context, write_text(context, name, "piped", 5));
    check_read(ends[0], "piped");
    snprintf(name, sizeof name, "/dev/fd/%d", ends[0]);
    FAILS(context, HBP_E_SYSTEM, "Bad file descriptor", write_text(context, name, "a", 1));
    close(ends[0]);
    close(ends[1]);
    FAILS(context, HBP_E_SYSTEM, "Bad file descriptor", write_text(context, name, "a", 1));
    close(file);
    empty_folder();
    leave_folder(0);
    hbp_context_free(context);
}
END_TEST

/* Another process's descriptor of a file without a name, which its link's text does not lead to. */
START_TEST(files_without_a_name_are_written_in_place)
{
    if (access("/proc/self/fd", X_OK) != 0)
        return;
    hbp_context *context = test_context();
    enter_folder();
    char name[64];
    int file = open(in_folder("x"), O_RDWR | O_CREAT, 0600);
    ck_assert_int_ge(file, 0);
    ck_assert_int_eq(unlink(in_folder("x")), 0);
    ck_assert_int_eq(write(file, "much longer", 11), 11);
    pid_t child = fork();
    if (!child) {
        snprintf(name, sizeof name, "/proc/%lld/fd/%d", (long long)getppid(), file);
        _exit(write_text(context, name, "short", 5) == HBP_OK ? 0 : 1);
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    ck_assert_int_eq(lseek(file, 0, SEEK_SET), 0);
    check_read(file, "short");
    close(file);
    leave_folder(0);
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
    link_to("x", "link");
    strcpy(path, in_folder("link"));
    failing_sweep(write_once, path);
    check_link("link", "x");
    ck_assert_int_eq(count_files(), 2);
    unlink(path);
    leave_folder(1);
}
END_TEST

TEST_MAIN("atomic_file", a_file_appears_at_the_commit, large_files_pass_through_the_buffer,
          two_writers_do_not_meet, leftovers_are_in_nobodys_way, long_names_are_written,
          bare_names_are_written, permissions_pass_on, places_that_cannot_be_written,
          devices_are_written_in_place, links_stay_and_their_files_are_written,
          links_to_nothing_make_their_files, links_in_a_circle_are_refused, links_lead_across_folders,
          pipes_are_written_in_place, waiting_for_a_reader_can_be_cancelled,
          waiting_for_who_opens_a_pipe_can_be_cancelled, open_descriptors_are_written_in_place,
          files_without_a_name_are_written_in_place, a_full_disk_leaves_the_old_file,
          failed_allocations_leave_nothing)

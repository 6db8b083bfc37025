/* Paths that cannot be written to are refused before a run, and looking leaves nothing behind. */
#include "walk/output.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test.h"

static char folder[64];

static void setup(void)
{
    snprintf(folder, sizeof folder, "/tmp/hbp-output-%ld", (long)getpid());
    ck_assert_int_eq(mkdir(folder, 0777), 0);
}

static int count_entries(const char *path)
{
    int count = 0;
    DIR *open = opendir(path);
    ck_assert_ptr_nonnull(open);
    while (readdir(open))
        count++;
    closedir(open);
    return count - 2; /* . and .. */
}

static void refuses(int status, const ex_fault *fault, const char *text)
{
    ck_assert_int_eq(status, -1);
    ck_assert_msg(strstr(fault->text, text) != NULL, "'%s' lacks '%s'", fault->text, text);
}

START_TEST(files)
{
    char path[128];
    ex_fault fault = {0}, missing = {0}, directory = {0}, device = {0};
    snprintf(path, sizeof path, "%s/state", folder);
    ck_assert_int_eq(ex_output_check_file(path, 1, &fault), 0);
    ck_assert_int_eq(ex_output_check_file(NULL, 1, &fault), 0);
    ck_assert_int_eq(count_entries(folder), 0);
    snprintf(path, sizeof path, "%s/none/state", folder);
    refuses(ex_output_check_file(path, 0, &missing), &missing, "none/state: No such file or directory");
    refuses(ex_output_check_file(folder, 0, &directory), &directory, "Is a directory");
    ck_assert_int_eq(ex_output_check_file("/dev/null", 0, &fault), 0);
    refuses(ex_output_check_file("/dev/null", 1, &device), &device,
            "cannot write /dev/null: not a regular file");
    ck_assert_int_eq(rmdir(folder), 0);
}
END_TEST

START_TEST(folders)
{
    char path[128];
    ex_fault fault = {0}, missing = {0}, file = {0};
    snprintf(path, sizeof path, "%s/gradients", folder);
    for (int i = 0; i < 2; i++) /* made, and there already */
        ck_assert_int_eq(ex_output_make_folder(path, &fault), 0);
    ck_assert_int_eq(ex_output_make_folder(NULL, &fault), 0);
    ck_assert_int_eq(count_entries(path), 0);
    ck_assert_int_eq(rmdir(path), 0);
    snprintf(path, sizeof path, "%s/none/gradients", folder);
    refuses(ex_output_make_folder(path, &missing), &missing, "cannot make ");
    refuses(ex_output_make_folder("/dev/null", &file), &file, "/dev/null: Not a directory");
    ck_assert_int_eq(rmdir(folder), 0);
}
END_TEST

TEST_MAIN_WITH("output", setup, NULL, files, folders)

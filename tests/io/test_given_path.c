#include "files.h"
#include "test.h"

#include <unistd.h>

#include "io/file/given_path.h"

START_TEST(a_name_of_a_file_ends_where_its_ending_does)
{
    static const struct {
        const char *text, *ends;
        size_t length;
    } rows[] = {{"config.json", ",", 11},
                {"config.json,layers=4", ",", 11},
                {"m.json:8", ":,", 6},
                {"m.json:8", ",", 0},
                {"m.json,cores=3", ":,", 6},
                {"a,b.json", ",", 8},
                {"a.json.json,x=1", ",", 11},
                {"a.json,b.json", ",", 13},
                {"a.jsonl", ",", 0},
                {"h100:4", ":,", 0},
                {"", ",", 0}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        ck_assert_msg(hbp__json_name(rows[i].text, rows[i].ends) == rows[i].length, "%s", rows[i].text);
}
END_TEST

START_TEST(folders_are_told_from_files)
{
    char folder[64], file[80];
    folder_make(folder);
    snprintf(file, sizeof file, "%s/file", folder);
    ck_assert(hbp__is_folder(folder) && hbp__is_there(folder));
    ck_assert(!hbp__is_folder(file) && !hbp__is_there(file));
    FILE *made = fopen(file, "w");
    ck_assert_ptr_nonnull(made);
    fclose(made);
    ck_assert(!hbp__is_folder(file) && hbp__is_there(file));
    unlink(file);
    folder_remove(folder);
}
END_TEST

TEST_MAIN("given_path", a_name_of_a_file_ends_where_its_ending_does, folders_are_told_from_files)

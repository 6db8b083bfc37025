#include "hbp/io.h"
#include "timelines.h"

#include <locale.h>

#include "files.h"

START_TEST(what_is_saved_is_loaded)
{
    hbp_context *context = test_context();
    char folder[64], path[128];
    folder_make(folder);
    folder_path(path, folder, "timeline.csv");
    for (uint64_t seed = 0; seed < 64; seed++) {
        hbp_timeline *saved = drawn_timeline(context, seed, 1 + (int64_t)seed * 11), *loaded;
        OK(context, hbp_timeline_save(context, saved, path));
        ck_assert_int_eq(folder_count(folder), 1);
        OK(context, hbp_timeline_load(context, path, &loaded));
        expect_same_timeline(saved, loaded);
        hbp_timeline_free(loaded);
        hbp_timeline_free(saved);
    }
    folder_remove(folder);
    hbp_context_free(context);
}
END_TEST

/* The file in tests/golden is what trainers write by hand: its bytes may not change. */
START_TEST(the_file_is_the_golden_one)
{
    hbp_context *context = test_context();
    char folder[64], path[128];
    folder_make(folder);
    folder_path(path, folder, "timeline.csv");
    hbp_timeline *timeline;
    size_t golden_bytes, bytes;
    OK(context, hbp_timeline_load(context, HBP_TESTS_DIR "/golden/timeline.csv", &timeline));
    ck_assert_int_eq(timeline->ranks, 4);
    ck_assert_int_eq(timeline->count, 5);
    ck_assert_str_eq(timeline->device, "NVIDIA H100 80GB HBM3");
    ck_assert_str_eq(timeline->date, "2026-11-22");
    ck_assert_int_eq(timeline->sum_squares[1], 4194304);
    ck_assert_int_eq(timeline->measured.count, 4);
    OK(context, hbp_timeline_save(context, timeline, path));
    char *golden = file_read(HBP_TESTS_DIR "/golden/timeline.csv", &golden_bytes);
    char *text = file_read(path, &bytes);
    ck_assert_str_eq(text, golden);
    const char *const names[] = {"de_DE.UTF-8", "C.UTF-8"}; /* numbers do not follow the locale */
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (!setlocale(LC_ALL, names[i]))
            continue;
        free(text);
        OK(context, hbp_timeline_save(context, timeline, path));
        text = file_read(path, &bytes);
        ck_assert_str_eq(text, golden);
    }
    setlocale(LC_ALL, "C");
    free(text);
    free(golden);
    hbp_timeline_free(timeline);
    folder_remove(folder);
    hbp_context_free(context);
}
END_TEST

START_TEST(a_failed_save_leaves_nothing)
{
    hbp_context *context = test_context();
    hbp_timeline *timeline = drawn_timeline(context, 15, 20000);
    FAILS(context, HBP_E_SYSTEM, "/nowhere/x", hbp_timeline_save(context, timeline, "/nowhere/x"));
    FAILS(context, HBP_E_INVALID, "timeline is NULL", hbp_timeline_save(context, NULL, "x"));
    FAILS(context, HBP_E_INVALID, "path is NULL", hbp_timeline_save(context, timeline, NULL));
    if (access("/dev/full", W_OK) == 0)
        FAILS(context, HBP_E_SYSTEM, "No space left", hbp_timeline_save(context, timeline, "/dev/full"));
    hbp_timeline_free(timeline);
    hbp_context_free(context);
}
END_TEST

TEST_MAIN("timeline_save", what_is_saved_is_loaded, the_file_is_the_golden_one, a_failed_save_leaves_nothing)

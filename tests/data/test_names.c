#include "data/table/names.h"

#include "base/rng.h"
#include "failing.h"

START_TEST(names_get_numbers)
{
    hbp__memory memory = hbp__memory_default();
    hbp__names names = {0};
    char text[32];
    ck_assert_int_eq(hbp__names_find(&names, "0"), -1);
    for (int i = 0; i < 5000; i++) {
        snprintf(text, sizeof text, "%d", i);
        ck_assert_int_eq(hbp__names_find(&names, text), -1);
        ck_assert(hbp__names_add(&memory, &names, text));
        ck_assert_int_eq(names.count, i + 1);
    }
    for (int i = 0; i < 5000; i++) {
        snprintf(text, sizeof text, "%d", i);
        ck_assert_int_eq(hbp__names_find(&names, text), i);
        ck_assert_str_eq(names.name[i], text);
    }
    ck_assert_int_eq(hbp__names_find(&names, "5000"), -1);
    ck_assert_int_eq(hbp__names_find(&names, ""), -1);
    hbp__names_free(&memory, &names);
    ck_assert_int_eq(names.count, 0);
    hbp__names_free(&memory, &names);
}
END_TEST

/* Adds and takes back at random; what is there is found, what is not is not. */
START_TEST(names_are_taken_back)
{
    hbp__memory memory = hbp__memory_default();
    hbp__names names = {0};
    char text[32];
    int count = 0;
    uint64_t mix = 5;
    for (int round = 0; round < 200; round++) {
        int target = (int)(hbp__splitmix64(&mix) % 300);
        while (count < target) {
            snprintf(text, sizeof text, "name %d", count++);
            ck_assert(hbp__names_add(&memory, &names, text));
        }
        if (count > target)
            hbp__names_cut(&memory, &names, count = target);
        ck_assert_int_eq(names.count, count);
        for (int i = 0; i < 300; i++) {
            snprintf(text, sizeof text, "name %d", i);
            ck_assert_int_eq(hbp__names_find(&names, text), i < count ? i : -1);
        }
    }
    hbp__names_free(&memory, &names);
}
END_TEST

START_TEST(short_memory_changes_nothing)
{
    failing f;
    hbp_context *context = failing_context(&f, NULL, NULL);
    int64_t live = f.live;
    hbp__memory memory = {failing_alloc, failing_resize, failing_release, &f};
    hbp__names names = {0};
    char text[32];
    int refused = 0;
    for (int i = 0; i < 200; i++) {
        snprintf(text, sizeof text, "%d", i);
        for (int64_t n = 0;; n++) {
            f.left = n;
            int added = hbp__names_add(&memory, &names, text);
            f.left = -1;
            if (added)
                break;
            refused++;
            ck_assert_int_eq(names.count, i);
            ck_assert_int_eq(hbp__names_find(&names, text), -1);
            ck_assert_int_eq(hbp__names_find(&names, "0"), i ? 0 : -1);
        }
    }
    ck_assert_int_ge(refused, 200);
    hbp__names_free(&memory, &names);
    ck_assert_int_eq(f.live, live);
    hbp_context_free(context);
}
END_TEST

TEST_MAIN("names", names_get_numbers, names_are_taken_back, short_memory_changes_nothing)

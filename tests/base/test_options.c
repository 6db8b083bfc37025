#include "base/options.h"
#include "hbp/step.h"

#include "test.h"

/* A struct of this version, an older one and a newer one. */
typedef struct now {
    uint32_t struct_size;
    int32_t a;
    int64_t b;
} now;

typedef struct older {
    uint32_t struct_size;
    int32_t a;
} older;

typedef struct newer {
    uint32_t struct_size;
    int32_t a;
    int64_t b;
    int64_t c;
} newer;

START_TEST(init_zeroes_the_callers_bytes_and_no_more)
{
    unsigned char bytes[32];
    memset(bytes, 0xff, sizeof bytes);
    hbp__struct_init(bytes, sizeof(older));
    uint32_t size;
    memcpy(&size, bytes, sizeof size);
    ck_assert_uint_eq(size, sizeof(older));
    for (size_t i = sizeof size; i < sizeof(older); i++)
        ck_assert_int_eq(bytes[i], 0);
    for (size_t i = sizeof(older); i < sizeof bytes; i++)
        ck_assert_int_eq(bytes[i], 0xff);
    hbp__struct_init(NULL, 8);
    hbp__struct_init(bytes, 3);
    memcpy(&size, bytes, sizeof size);
    ck_assert_uint_eq(size, sizeof(older));
}
END_TEST

START_TEST(options_of_any_age_are_read)
{
    hbp_context *context = test_context();
    now all = {1, 2, 3};
    OK(context, hbp__options_read(context, &all, sizeof all, NULL, "now"));
    ck_assert_int_eq(all.a, 0);
    ck_assert_int_eq(all.b, 0);
    ck_assert_uint_eq(all.struct_size, sizeof all);
    older before = {sizeof before, 5};
    OK(context, hbp__options_read(context, &all, sizeof all, &before, "now"));
    ck_assert_int_eq(all.a, 5);
    ck_assert_int_eq(all.b, 0);
    newer after = {sizeof after, 6, 7, 0};
    OK(context, hbp__options_read(context, &all, sizeof all, &after, "now"));
    ck_assert_int_eq(all.a, 6);
    ck_assert_int_eq(all.b, 7);
    after.c = 1;
    FAILS(context, HBP_E_VERSION, "now", hbp__options_read(context, &all, sizeof all, &after, "now"));
    after.struct_size = 65537; /* not read that far */
    FAILS(context, HBP_E_INVALID, "now.struct_size is 65537; it is at most 65536",
          hbp__options_read(context, &all, sizeof all, &after, "now"));
    after.struct_size = UINT32_MAX;
    FAILS(context, HBP_E_INVALID, "now.struct_size is 4294967295; it is at most 65536",
          hbp__options_read(context, &all, sizeof all, &after, "now"));
    FAILS(context, HBP_E_INVALID, "at most 65536",
          hbp__struct_write(context, &after, &all, sizeof all, "now"));
    hbp__struct_init(&after, UINT32_MAX);
    ck_assert_int_eq(after.a, 6);
    after.struct_size = 3;
    FAILS(context, HBP_E_INVALID, "struct_size is 3",
          hbp__options_read(context, &all, sizeof all, &after, "now"));
    hbp_context_free(context);
}
END_TEST

START_TEST(results_are_written_as_far_as_the_caller_knows_them)
{
    hbp_context *context = test_context();
    now result = {sizeof result, 5, 6};
    newer after = {sizeof after, 0, 0, 9};
    OK(context, hbp__struct_write(context, &after, &result, sizeof result, "now"));
    ck_assert_int_eq(after.a, 5);
    ck_assert_int_eq(after.b, 6);
    ck_assert_int_eq(after.c, 0); /* not known here */
    ck_assert_uint_eq(after.struct_size, sizeof after);
    older before[2] = {{sizeof *before, 0}, {77, 78}};
    OK(context, hbp__struct_write(context, before, &result, sizeof result, "now"));
    ck_assert_int_eq(before[0].a, 5);
    ck_assert_uint_eq(before[1].struct_size, 77);
    FAILS(context, HBP_E_INVALID, "now is NULL",
          hbp__struct_write(context, NULL, &result, sizeof result, "now"));
    hbp_context_free(context);
}
END_TEST

START_TEST(a_view_needs_no_context)
{
    now view = {0, 5, 6};
    newer after = {sizeof after, 1, 2, 9};
    older before[2] = {{sizeof *before, 0}, {77, 78}};
    ck_assert_int_eq(hbp__view_write(&after, &view, &view, sizeof view), HBP_OK);
    ck_assert_uint_eq(after.struct_size, sizeof after);
    ck_assert(after.a == 5 && after.b == 6 && after.c == 0);
    ck_assert_int_eq(hbp__view_write(before, &view, &view, sizeof view), HBP_OK);
    ck_assert_int_eq(before[0].a, 5);
    ck_assert_uint_eq(before[1].struct_size, 77);
    ck_assert_int_eq(hbp__view_write(&after, NULL, &view, sizeof view), HBP_E_INVALID);
    ck_assert_uint_eq(after.struct_size, sizeof after);
    ck_assert(after.a == 0 && after.b == 0 && after.c == 0);
    static const uint32_t wrong[] = {0, 3, 65537, UINT32_MAX};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        after = (newer){wrong[i], 1, 2, 9};
        ck_assert_int_eq(hbp__view_write(&after, &view, &view, sizeof view), HBP_E_INVALID);
        ck_assert(after.a == 1 && after.b == 2 && after.c == 9);
    }
    ck_assert_int_eq(hbp__view_write(NULL, &view, &view, sizeof view), HBP_E_INVALID);
}
END_TEST

/* Half a pointer is none: a caller's struct that ends in a field does not give it. */
START_TEST(a_field_that_is_cut_is_not_given)
{
    hbp_context *context = test_context();
    hbp_step_options given = {.struct_size = sizeof given, .method = "flexsp", .effort = 3}, all;
    for (uint32_t size = 4; size <= sizeof given; size++) {
        given.struct_size = size;
        OK(context, hbp__options_read(context, &all, sizeof all, &given, "hbp_step_options"));
        ck_assert_str_eq(all.method, size < offsetof(hbp_step_options, effort) ? "search" : "flexsp");
        ck_assert_int_eq(all.effort, size < offsetof(hbp_step_options, exact) ? 0 : 3);
    }
    hbp_context_free(context);
}
END_TEST

TEST_MAIN("options", a_field_that_is_cut_is_not_given, init_zeroes_the_callers_bytes_and_no_more,
          options_of_any_age_are_read, results_are_written_as_far_as_the_caller_knows_them,
          a_view_needs_no_context)

#include "test.h"

#include "base/fields.h"

static const char *name_of(int64_t index)
{
    static const char *const names[] = {"width", "height", "depth"};
    return names[index];
}

static const hbp__field_names names = {"box", name_of, 3};

START_TEST(a_name_ends_where_it_is_told)
{
    char name[HBP__FIELD_NAME_BYTES];
    const char *text = "h100:4,cores=1";
    ck_assert_str_eq(hbp__take_name(text, ":,", name), ":4,cores=1");
    ck_assert_str_eq(name, "h100");
    ck_assert_str_eq(hbp__take_name(text, ",", name), ",cores=1");
    ck_assert_str_eq(name, "h100:4");
    ck_assert_str_eq(hbp__take_name(",", ":,", name), ",");
    ck_assert_str_eq(name, "");
    char longer[200];
    memset(longer, 'x', 199);
    longer[199] = 0;
    ck_assert_ptr_eq(hbp__take_name(longer, ",", name), longer + 199);
    ck_assert_uint_eq(strlen(name), HBP__FIELD_NAME_BYTES - 1);
}
END_TEST

START_TEST(fields_are_read_in_any_order)
{
    hbp_context *context = test_context();
    hbp__field_values v;
    const char *text = "crate,depth=-2.5e-3,width=7";
    OK(context, hbp__read_fields(context, &names, text, text + 6, &v));
    ck_assert_uint_eq(v.given, 5);
    ck_assert_double_eq(v.value[0], 7);
    ck_assert_double_eq(v.value[1], 0);
    ck_assert_double_eq(v.value[2], -2.5e-3);
    hbp_context_free(context);
}
END_TEST

START_TEST(what_is_wrong_is_named_with_its_text)
{
    static const struct wrong {
        const char *text, *message;
    } wrongs[] = {
        {"", "box '': '' is not FIELD=NUMBER"},
        {"width", "box 'width': 'width' is not FIELD=NUMBER"},
        {"width,height=1", "'width' is not FIELD=NUMBER"},
        {"width=1,", "box 'width=1,': '' is not FIELD=NUMBER"},
        {"width=1,with=2", "box 'width=1,with=2': there is no field 'with'; the nearest is 'width'"},
        {"width=1,height=2,width=1", "width is given twice"},
        {"width=0x10", "width is '0x10'; it must be a finite decimal number"},
        {"width=1\n", "width is '1\\n'"},
    };
    hbp_context *context = test_context();
    hbp__field_values v;
    for (size_t i = 0; i < sizeof wrongs / sizeof *wrongs; i++)
        FAILS(context, HBP_E_INVALID, wrongs[i].message,
              hbp__read_fields(context, &names, wrongs[i].text, wrongs[i].text, &v));
    hbp_context_free(context);
}
END_TEST

TEST_MAIN("fields", a_name_ends_where_it_is_told, fields_are_read_in_any_order,
          what_is_wrong_is_named_with_its_text)

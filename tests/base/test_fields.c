#include "keep.h"
#include "test.h"

#include "base/fields.h"

static const char *name_of(int64_t index)
{
    static const char *const names[] = {"width", "height", "depth", "load_bytes"};
    return names[index];
}

static const hbp__other_word others[] = {{"wide", "width"}, {"mass", "load_bytes"}, {NULL, NULL}};
static const hbp__field_names names = {"box", name_of, 4, others, 0};

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
    OK(context, hbp__read_fields(context, &names, "load_bytes=1.5KiB", "load_bytes=1.5KiB", &v));
    ck_assert_double_eq(v.value[3], 1536);
    hbp_context_free(context);
}
END_TEST

START_TEST(what_is_wrong_is_named_with_its_text)
{
    static const struct wrong {
        const char *text, *message;
    } wrongs[] = {
        {"", "box '': '' is not FIELD=VALUE"},
        {"width", "box 'width': 'width' is not FIELD=VALUE"},
        {"width,height=1", "'width' is not FIELD=VALUE"},
        {"width=1,", "box 'width=1,': '' is not FIELD=VALUE"},
        {"width=1,with=2", "box 'width=1,with=2': there is no field 'with'; the nearest is 'width'"},
        {"width=1,height=2,width=1", "width is given twice"},
        {"width=0x10", "width is '0x10'; it must be a finite decimal number, without a unit"},
        {"mass=1", "there is no field 'mass'; the nearest is 'load_bytes'"},
        {"colour=1", "there is no field 'colour'; there are width, height, depth, load_bytes"},
        {"load_bytes=1Gb",
         "box 'load_bytes=1Gb': load_bytes is '1Gb'; it must be a number of bytes or one with"},
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

/* The nearest where one resembles, all where they are few or none does. */
START_TEST_IN_CONTEXT(an_unknown_preset_is_answered)
{
    FAILS(context, HBP_E_INVALID,
          "no box preset 'widt'; the nearest is 'width'; there are width, height, depth",
          hbp__fail_preset(context, "box", "widt", name_of, 4));
    FAILS(context, HBP_E_INVALID, "no box preset 'Width-80cm'; the nearest is 'width'",
          hbp__fail_preset(context, "box", "Width-80cm", name_of, 4));
    FAILS(context, HBP_E_INVALID, "no box preset ''; there are width, height, depth, load_bytes",
          hbp__fail_preset(context, "box", "", name_of, 4));
    FAILS(context, HBP_E_INVALID, "no box preset 'crate'; there are width",
          hbp__fail_preset(context, "box", "crate", name_of, 4));
}
END_TEST

TEST_MAIN("fields", a_name_ends_where_it_is_told, fields_are_read_in_any_order,
          what_is_wrong_is_named_with_its_text, an_unknown_preset_is_answered)

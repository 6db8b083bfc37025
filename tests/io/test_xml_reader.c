#include "io/text/xml_reader.h"

#include "test.h"

static hbp_status count(hbp__xml *xml, const char *name, const char **attributes)
{
    int64_t *sum = xml->user;
    const char *value = hbp__xml_get(attributes, "n");
    ck_assert_ptr_null(hbp__xml_get(attributes, "missing"));
    *sum += value ? strtoll(value, NULL, 10) : 0;
    if (strcmp(name, "bad") == 0)
        return hbp__xml_fail(xml, HBP_E_VERSION, "%s at depth %d", name, (int)xml->depth);
    return HBP_OK;
}

static hbp_status leave(hbp__xml *xml, const char *name)
{
    if (strcmp(name, "worse") == 0)
        return hbp__xml_fail(xml, HBP_E_OVERFLOW, "no end");
    return HBP_OK;
}

static hbp_status read_bytes(hbp_context *context, const char *text, int64_t bytes, int64_t *sum)
{
    hbp__xml xml = {
        .context = context, .what = "test", .root = "a", .open = count, .close = leave, .user = sum};
    *sum = 0;
    return hbp__xml_read(&xml, text, bytes);
}

static hbp_status read_text(hbp_context *context, const char *text, int64_t *sum)
{
    return read_bytes(context, text, (int64_t)strlen(text), sum);
}

START_TEST(elements_and_attributes)
{
    hbp_context *context = test_context();
    int64_t sum;
    OK(context,
       read_text(context, "<a n=\"1\"><b n='20'/>text<c x='9' n='300'><a n='4000'/></c></a>\n", &sum));
    ck_assert_int_eq(sum, 4321);
    OK(context,
       read_text(context, "<?xml version='1.0' encoding='UTF-8'?>\n<!DOCTYPE a SYSTEM '/no/such.dtd'><a/>",
                 &sum));
    ck_assert_int_eq(sum, 0);
    hbp_context_free(context);
}
END_TEST

START_TEST(handlers_end_the_reading)
{
    hbp_context *context = test_context();
    int64_t sum;
    FAILS(context, HBP_E_VERSION, "test, line 2: bad at depth 2",
          read_text(context, "<a>\n<bad n='1'/><b n='5'/></a>", &sum));
    ck_assert_int_eq(sum, 1);
    FAILS(context, HBP_E_OVERFLOW, "test, line 1: no end",
          read_text(context, "<a><worse/><b n='5'/></a>", &sum));
    ck_assert_int_eq(sum, 0);
    hbp_context_free(context);
}
END_TEST

START_TEST(what_is_not_well_formed)
{
    hbp_context *context = test_context();
    int64_t sum;
    FAILS(context, HBP_E_FORMAT, "test, line 1: no element", read_text(context, "", &sum));
    FAILS(context, HBP_E_FORMAT, "line 2: mismatched tag", read_text(context, "<a>\n</b>", &sum));
    FAILS(context, HBP_E_FORMAT, "line 1", read_text(context, "<a", &sum));
    FAILS(context, HBP_E_FORMAT, "line 1: junk", read_text(context, "<a/><a/>", &sum));
    FAILS(context, HBP_E_FORMAT, "duplicate attribute", read_text(context, "<a n='1' n='2'/>", &sum));
    FAILS(context, HBP_E_FORMAT, "line 1", read_bytes(context, "<a>\0</a>", 8, &sum));
    FAILS(context, HBP_E_FORMAT, "line 1", read_text(context, "<a>\xff</a>", &sum));
    FAILS(context, HBP_E_FORMAT, "the outermost element is 'b', not 'a'", read_text(context, "<b/>", &sum));
    hbp_context_free(context);
}
END_TEST

START_TEST(entities_are_refused)
{
    hbp_context *context = test_context();
    int64_t sum;
    const char *laughs = "<!DOCTYPE a [<!ENTITY l 'lol'><!ENTITY m '&l;&l;&l;&l;'>]><a>&m;</a>";
    FAILS(context, HBP_E_FORMAT, "the DOCTYPE declares something of its own",
          read_text(context, laughs, &sum));
    FAILS(context, HBP_E_FORMAT, "undefined entity", read_text(context, "<a>&l;</a>", &sum));
    /* With a DOCTYPE elsewhere the entity may be declared there; it is passed over, not looked for. */
    OK(context, read_text(context, "<!DOCTYPE a SYSTEM 'x.dtd'><a n='7'>&l;</a>", &sum));
    ck_assert_int_eq(sum, 7);
    hbp_context_free(context);
}
END_TEST

/* <a><b><b>...</b></b></a> with `depth` elements in one another. */
static hbp_status read_nested(hbp_context *context, int depth)
{
    char text[1024];
    int at = snprintf(text, sizeof text, "<a>");
    for (int i = 1; i < depth; i++)
        at += snprintf(text + at, sizeof text - (size_t)at, "<b>");
    for (int i = 1; i < depth; i++)
        at += snprintf(text + at, sizeof text - (size_t)at, "</b>");
    snprintf(text + at, sizeof text - (size_t)at, "</a>");
    int64_t sum;
    return read_text(context, text, &sum);
}

START_TEST(bounds)
{
    hbp_context *context = test_context();
    OK(context, read_nested(context, 64));
    FAILS(context, HBP_E_FORMAT, "deeper than 64", read_nested(context, 65));
    size_t bytes = (size_t)HBP__XML_BYTES + 1;
    char *text = malloc(bytes);
    ck_assert_ptr_nonnull(text);
    memset(text, ' ', bytes);
    memcpy(text, "<a/>", 4);
    int64_t sum;
    FAILS(context, HBP_E_FORMAT, "test has 16777217 bytes; at most 16777216 are read",
          read_bytes(context, text, (int64_t)bytes, &sum));
    OK(context, read_bytes(context, text, (int64_t)bytes - 1, &sum));
    memcpy(text, "<a>", 3);
    for (int i = 0; i < 1000000; i++)
        memcpy(text + 3 + 4 * i, "<b/>", 4);
    FAILS(context, HBP_E_FORMAT, "more than 1000000 elements",
          read_bytes(context, text, (int64_t)bytes - 1, &sum));
    free(text);
    hbp_context_free(context);
}
END_TEST

TEST_MAIN("xml_reader", elements_and_attributes, handlers_end_the_reading, what_is_not_well_formed,
          entities_are_refused, bounds)

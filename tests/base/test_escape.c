#include "base/escape.h"
#include "hbp/io.h"

#include "base/rng.h"
#include "base/utf8.h"
#include "test.h"

static void check(const char *text, const char *expected)
{
    char to[64];
    hbp__escape(to, sizeof to, text);
    ck_assert_str_eq(to, expected);
}

START_TEST(control_and_broken_bytes_are_escaped)
{
    check("plain 'text' \xc3\xa8 \xe2\x86\x92 \xf0\x9f\x98\x80",
          "plain 'text' \xc3\xa8 \xe2\x86\x92 \xf0\x9f\x98\x80");
    check("a\nb\rc\td", "a\\nb\\rc\\td");
    check("\x1b[31m\x7f\x01", "\\x1b[31m\\x7f\\x01");
    check("\x80 \xc3 \xe2\x86", "\\x80 \\xc3 \\xe2\\x86");
    check("\xc2\x9b", "\\xc2\\x9b");
    check("\xe2\x80\xae|\xe2\x81\xa6|\xe2\x80\xa8", "\\xe2\\x80\\xae|\\xe2\\x81\\xa6|\\xe2\\x80\\xa8");
    check("\xe2\x80\x93", "\xe2\x80\x93"); /* a dash beside them stays */
    check("\\n", "\\n");
    check("", "");
}
END_TEST

START_TEST(long_text_loses_its_middle)
{
    char to[32];
    hbp__escape(to, sizeof to, "cannot open /0123456789/0123456789: why");
    ck_assert_str_eq(to, "cannot open / ... 23456789: why");
    hbp__escape(to, sizeof to, "0123456789012345678901234567890");
    ck_assert_str_eq(to, "0123456789012345678901234567890");
}
END_TEST

/* Any bytes, any room: one line of UTF-8 that fits, the same when it is escaped again, both ends kept. */
START_TEST(any_text_becomes_one_line)
{
    hbp__rng rng = hbp__rng_make(4, 0, 0);
    for (int round = 0; round < TEST_FEW(20000, 5000); round++) {
        char text[200], to[120], again[120];
        int64_t count = hbp__rng_below(&rng, sizeof text - 1), room = 32 + hbp__rng_below(&rng, 88);
        for (int64_t i = 0; i < count; i++)
            text[i] = (char)(hbp__rng_below(&rng, 3) ? 'a' + (int)hbp__rng_below(&rng, 26)
                                                     : 1 + (int)hbp__rng_below(&rng, 255));
        text[count] = '\0';
        memset(to, 'Z', sizeof to);
        hbp__escape(to, room, text);
        ck_assert_int_lt((int64_t)strlen(to), room);
        ck_assert(hbp__utf8(to));
        for (const char *c = to; *c; c++)
            ck_assert_int_ge((unsigned char)*c, 0x20);
        hbp__escape(again, room, to);
        ck_assert_str_eq(again, to);
        if (count && text[count - 1] >= 'a' && text[count - 1] <= 'z')
            ck_assert_int_eq(to[strlen(to) - 1], text[count - 1]);
    }
}
END_TEST

START_TEST(messages_are_escaped)
{
    hbp_context *context = test_context();
    hbp_machine *machine = NULL;
    hbp_model *model = NULL;
    hbp_lengths *lengths = NULL;
    FAILS(context, HBP_E_INVALID, "no machine preset 'h1\\x1b[2J\\n00'",
          hbp_machine_create_preset(context, "h1\x1b[2J\n00", &machine));
    FAILS(context, HBP_E_INVALID, "no model preset '\\xff'",
          hbp_model_create_preset(context, "\xff", &model));
    FAILS(context, HBP_E_SYSTEM, "cannot open /no/\\nsuch: No such file or directory",
          hbp_lengths_load(context, "/no/\nsuch", NULL, &lengths));
    char path[3000];
    memset(path, 'x', sizeof path);
    memcpy(path, "/no/", 4);
    path[sizeof path - 1] = '\0';
    for (size_t i = 100; i < sizeof path - 1; i += 100)
        path[i] = '/';
    FAILS(context, HBP_E_SYSTEM, "xx: No such file or directory",
          hbp_lengths_load(context, path, NULL, &lengths));
    hbp_context_free(context);
}
END_TEST

TEST_MAIN("escape", control_and_broken_bytes_are_escaped, long_text_loses_its_middle,
          any_text_becomes_one_line, messages_are_escaped)

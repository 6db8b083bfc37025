#include "base/utf8.h"

#include "test.h"

/* The character that bytes [4] begin with, decoded without looking at limits, then checked: bytes it takes,
 * or 0. */
static int decode(const unsigned char *bytes)
{
    static const struct {
        int bytes;
        unsigned mask, mark;
        uint32_t least;
    } forms[] = {{1, 0x80, 0x00, 0}, {2, 0xe0, 0xc0, 0x80}, {3, 0xf0, 0xe0, 0x800}, {4, 0xf8, 0xf0, 0x10000}};
    for (int f = 0; f < 4; f++) {
        if ((bytes[0] & forms[f].mask) != forms[f].mark)
            continue;
        uint32_t code = bytes[0] & ~forms[f].mask & 0xff;
        for (int i = 1; i < forms[f].bytes; i++) {
            if ((bytes[i] & 0xc0) != 0x80)
                return 0;
            code = code << 6 | (bytes[i] & 0x3f);
        }
        int whole = code >= forms[f].least && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
        return whole ? forms[f].bytes : 0;
    }
    return 0;
}

START_TEST(first_bytes_and_edges)
{
    static const unsigned char later[] = {0x00, 0x41, 0x7f, 0x80, 0x8f, 0x90, 0x9f,
                                          0xa0, 0xbf, 0xc0, 0xc2, 0xe0, 0xff};
    enum { LATER = sizeof later };
    int valid[5] = {0};
    for (int first = 0; first < 256; first++)
        for (int i = 0; i < LATER * LATER * LATER; i++) {
            unsigned char bytes[5] = {(unsigned char)first, later[i % LATER], later[i / LATER % LATER],
                                      later[i / LATER / LATER], 0};
            int expected = decode(bytes);
            ck_assert_int_eq(hbp__utf8_bytes((const char *)bytes), expected);
            valid[expected]++;
        }
    for (int n = 0; n < 5; n++)
        ck_assert_int_gt(valid[n], 0);
}
END_TEST

START_TEST(whole_texts)
{
    ck_assert(hbp__utf8(""));
    ck_assert(hbp__utf8("plain"));
    ck_assert(hbp__utf8("\xc3\xa9t\xc3\xa9 \xe2\x86\x92 \xf0\x9f\x98\x80"));
    ck_assert(!hbp__utf8("\xc3"));
    ck_assert(!hbp__utf8("good then \xff"));
    ck_assert(!hbp__utf8("\xed\xa0\x80"));
}
END_TEST

TEST_MAIN("utf8", first_bytes_and_edges, whole_texts)

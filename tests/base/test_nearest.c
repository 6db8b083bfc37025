#include "test.h"

#include "base/nearest.h"

static const char *const words[] = {"h100", "h200", "a100-80", "gb200-nvl72"};

static const char *word(int64_t index)
{
    return words[index];
}

START_TEST(fewest_edits_win)
{
    ck_assert_str_eq(hbp__nearest("h100", word, 4), "h100");
    ck_assert_str_eq(hbp__nearest("H100", word, 4), "h100");
    ck_assert_str_eq(hbp__nearest("h20", word, 4), "h200");
    ck_assert_str_eq(hbp__nearest("a10080", word, 4), "a100-80");
    ck_assert_str_eq(hbp__nearest("gb200", word, 4), "gb200-nvl72");
    ck_assert_str_eq(hbp__nearest("a100", word, 4), "a100-80"); /* not h100 */
    ck_assert_str_eq(hbp__nearest("gb200-nvl", word, 4), "gb200-nvl72");
    ck_assert_str_eq(hbp__nearest("a100-80-sxm", word, 4), "a100-80");
}
END_TEST

START_TEST(the_first_of_equals_wins)
{
    ck_assert_str_eq(hbp__nearest("h300", word, 4), "h100");
    ck_assert_str_eq(hbp__nearest("", word, 4), "h100");
    ck_assert_ptr_null(hbp__nearest("h100", word, 0));
}
END_TEST

START_TEST(long_names_are_cut_off)
{
    static char name[100001];
    memset(name, 'x', sizeof name - 1);
    ck_assert_ptr_nonnull(hbp__nearest(name, word, 4));
    memcpy(name, "gb200-nvl72", 11);
    ck_assert_str_eq(hbp__nearest(name, word, 4), "gb200-nvl72");
}
END_TEST

START_TEST(only_what_resembles_a_word_was_meant)
{
    ck_assert_str_eq(hbp__resembling("h20", word, 4), "h200");
    ck_assert_str_eq(hbp__resembling("a100-8", word, 4), "a100-80");
    ck_assert_str_eq(hbp__resembling("gb2", word, 4), "gb200-nvl72"); /* its beginning */
    ck_assert_str_eq(hbp__resembling("a100", word, 4), "a100-80");    /* before one letter, h100 */
    ck_assert_str_eq(hbp__resembling("h010", word, 4), "h100");       /* two swapped */
    ck_assert_ptr_null(hbp__resembling("fastest", word, 4));
    ck_assert_ptr_null(hbp__resembling("", word, 4));
    ck_assert_ptr_null(hbp__resembling("x", word, 4));
    ck_assert_ptr_null(hbp__resembling("h100", word, 0));
}
END_TEST

TEST_MAIN("nearest", only_what_resembles_a_word_was_meant, fewest_edits_win, the_first_of_equals_wins,
          long_names_are_cut_off)

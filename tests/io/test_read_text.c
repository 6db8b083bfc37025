#include "hbp/io.h"
#include "io/reading.h"

START_TEST(one_length_a_line)
{
    hbp_context *context = test_context();
    READS(context, "x", "3\n1\n2\n", NULL, 3, 1, 2);
    READS(context, "x", "3\n1\n2", NULL, 3, 1, 2);
    READS(context, "x", "3\r\n1\r\n\r\n2\r\n", NULL, 3, 1, 2);
    READS(context, "x", "# lengths\n\n  3 \n+1\n\t\n#2\n2147483647\n", NULL, 3, 1, 2147483647);
    READS(context, "x",
          "\xef\xbb\xbf"
          "3\n1\n",
          NULL, 3, 1);
    READS(context, "x.txt", "7", NULL, 7);
    READS(context, "x", "3\r\n", NULL, 3);
    hbp_context_free(context);
}
END_TEST

START_TEST(bad_lines_are_refused_by_number)
{
    hbp_context *context = test_context();
    REFUSES(context, HBP_E_INVALID, "x, line 3: the length is 0; it is at least 1 token", "x", "3\n\n0\n",
            NULL);
    REFUSES(context, HBP_E_INVALID, "line 1: the length is -4", "x", "-4\n", NULL);
    REFUSES(context, HBP_E_OVERFLOW, "line 2: the length is 2147483648; it is at most 2147483647 tokens", "x",
            "1\n2147483648\n", NULL);
    REFUSES(context, HBP_E_OVERFLOW, "line 1: the length '99999999999999999999' is past 64 bits", "x",
            "99999999999999999999\n", NULL);
    REFUSES(context, HBP_E_FORMAT, "line 2: the length '1.5' is not a whole number", "x", "1\n1.5\n", NULL);
    REFUSES(context, HBP_E_FORMAT, "line 2: the length '1 2'", "x", "1\n1 2\n", NULL);
    REFUSES(context, HBP_E_FORMAT, "line 2: the length 'a?b'", "x.txt",
            "1\na\x01"
            "b\n",
            NULL);
    REFUSES(context, HBP_E_FORMAT, "line 1: the length '-'", "x.txt", "-\n", NULL);
    REFUSES(context, HBP_E_INVALID, "x holds no lengths", "x", "\n\n# nothing\n", NULL);
    REFUSES(context, HBP_E_FORMAT, "x is empty", "x", "", NULL);
    hbp_lengths_load_options options = {.struct_size = sizeof options, .column = "len"};
    REFUSES(context, HBP_E_INVALID, "the format has no columns, so none is called 'len'", "x", "3\n",
            &options);
    hbp_context_free(context);
}
END_TEST

START_TEST(many_lines_cross_every_buffer)
{
    hbp_context *context = test_context();
    size_t bytes = 0;
    char *text = malloc(2000000);
    int64_t tokens = 0;
    for (int i = 0; i < 200000; i++) {
        bytes += (size_t)sprintf(text + bytes, "%d\n", 1 + i * 7);
        tokens += 1 + i * 7;
    }
    int64_t zipped;
    unsigned char *zip = gzipped(text, (int64_t)bytes, &zipped);
    reading plain = {"x", text, (int64_t)bytes, {0}}, packed = {"x.gz", zip, zipped, {0}};
    hbp_lengths *a, *b;
    OK(context, read_bytes(context, &plain, &a));
    OK(context, read_bytes(context, &packed, &b));
    ck_assert_int_eq(a->count, 200000);
    ck_assert_int_eq(a->tokens, tokens);
    ck_assert_uint_eq(a->digest, b->digest);
    hbp_lengths_free(a);
    hbp_lengths_free(b);
    failing_sweep(read_once, &plain);
    failing_sweep(read_once, &packed);
    ck_assert_int_gt(cancel_sweep(read_once, &plain), 10);
    free(zip);
    free(text);
    hbp_context_free(context);
}
END_TEST

TEST_MAIN("read_text", one_length_a_line, bad_lines_are_refused_by_number, many_lines_cross_every_buffer)

#include "io/reading.h"

#define OPTIONS(...)                                                                                         \
    (&(hbp_lengths_read_options){.struct_size = sizeof(hbp_lengths_read_options), __VA_ARGS__})

START_TEST(the_content_tells_the_format)
{
    hbp_context *context = test_context();
    READS(context, "x", "3\n1\n", NULL, 3, 1);
    READS(context, "x", "9,1\n3,2\n", NULL, 3, 3, 9);
    READS(context, "x", "len\n3\n", NULL, 3);
    READS(context, "x", "{\"len\":3}", NULL, 3);
    READS(context, "x", "# a, b\n3\n", NULL, 3);
    REFUSES(context, HBP_E_FORMAT, "not a JSON object", "x", "[3]", NULL);
    hbp_context_free(context);
}
END_TEST

START_TEST(the_name_tells_what_the_content_leaves_open)
{
    hbp_context *context = test_context();
    READS(context, "x.csv", "3\n1\n", NULL, 3, 1);
    REFUSES(context, HBP_E_FORMAT, "x.txt, line 1: the length '9,1'", "x.txt", "9,1\n", NULL);
    REFUSES(context, HBP_E_FORMAT, "x.txt.gz, line 1: the length 'len'", "x.txt.gz", "len\n3\n", NULL);
    REFUSES(context, HBP_E_FORMAT, "x.jsonl, line 1: not a JSON object", "x.jsonl", "3\n", NULL);
    REFUSES(context, HBP_E_FORMAT, "x.npy ends at byte 2, within the .npy header", "x.npy", "3\n", NULL);
    REFUSES(context, HBP_E_FORMAT, "x.idx: not a Megatron index", "x.idx", "3\n", NULL);
    hbp_context_free(context);
}
END_TEST

START_TEST(the_caller_may_name_the_format)
{
    hbp_context *context = test_context();
    READS(context, "x.csv", "3\n1\n", OPTIONS(.format = "text"), 3, 1);
    READS(context, "x.txt", "9,1\n3,2\n", OPTIONS(.format = "csv"), 3, 3, 9);
    REFUSES(context, HBP_E_FORMAT, "not a .npy file", "x", "3\n1\n3\n1\n3\n1\n", OPTIONS(.format = "npy"));
    REFUSES(context, HBP_E_INVALID, "format 'parquet' is not one of npy, text, csv, jsonl, idx", "x", "3\n",
            OPTIONS(.format = "parquet"));
    hbp_context_free(context);
}
END_TEST

START_TEST(other_files_are_refused_by_name)
{
    hbp_context *context = test_context();
    REFUSES(context, HBP_E_FORMAT, "x is a zip archive, as .npz and .pt are; give .npy", "x",
            "PK\x03\x04zzzz", NULL);
    REFUSES(context, HBP_E_FORMAT, "x is a Parquet file", "x", "PAR1....", NULL);
    REFUSES(context, HBP_E_FORMAT, "x is compressed with zstd", "x", "\x28\xb5\x2f\xfd....", NULL);
    REFUSES(context, HBP_E_FORMAT, "x is a Python pickle", "x", "\x80\x04\x95", NULL);
    REFUSES(context, HBP_E_FORMAT, "x is no file of lengths; give .npy", "x", "\x01\x02\x03", NULL);
    REFUSES(context, HBP_E_FORMAT, "x is empty", "x", "", NULL);
    REFUSES(context, HBP_E_FORMAT, "x: the gzip data end early, at byte 3", "x", "\x1f\x8b\x08", NULL);
    REFUSES(context, HBP_E_FORMAT, "x is empty", "x", "", OPTIONS(.format = "csv"));
    hbp_context_free(context);
}
END_TEST

START_TEST(options_start_empty)
{
    hbp_lengths_read_options options;
    memset(&options, 255, sizeof options);
    hbp_lengths_read_options_init(&options, sizeof options);
    ck_assert_uint_eq(options.struct_size, sizeof options);
    ck_assert_ptr_null(options.format);
    ck_assert_ptr_null(options.tie_column);
    hbp_context *context = test_context();
    hbp_lengths *out;
    options.struct_size = 2;
    FAILS(context, HBP_E_INVALID, "hbp_lengths_read_options.struct_size is 2",
          hbp_lengths_read(context, "nowhere", &options, &out));
    hbp_context_free(context);
}
END_TEST

TEST_MAIN("read_lengths", the_content_tells_the_format, the_name_tells_what_the_content_leaves_open,
          the_caller_may_name_the_format, other_files_are_refused_by_name, options_start_empty)

#include "hbp/io.h"
#include "io/reading.h"

#define OPTIONS(...)                                                                                         \
    (&(hbp_lengths_load_options){.struct_size = sizeof(hbp_lengths_load_options), __VA_ARGS__})

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
    REFUSES(context, HBP_E_INVALID, "format 'parquet' is not one of npy, text, csv, jsonl, idx, mds", "x",
            "3\n", OPTIONS(.format = "parquet"));
    hbp_context_free(context);
}
END_TEST

static const char *column_of(hbp_context *context, const char *text, const hbp_lengths_load_options *options,
                             int64_t limit)
{
    hbp_lengths *lengths, *limited;
    hbp_lengths_summary summary = {.struct_size = sizeof summary};
    OK(context, read_text(context, "x", text, options, &lengths));
    OK(context, hbp_lengths_limit(context, lengths, limit, HBP_OVERLONG_SPLIT, &limited));
    hbp_lengths_free(lengths);
    OK(context, hbp_lengths_get_summary(context, limited, &summary));
    hbp_lengths_free(limited);
    return summary.column ? summary.column : "";
}

START_TEST(the_column_that_was_found_is_named)
{
    hbp_context *context = test_context();
    for (int64_t limit = 4; limit <= 100; limit += 96) { /* cut, and as it is */
        ck_assert_str_eq(column_of(context, "id,tokens,num_tokens\n1,7,8\n", NULL, limit), "tokens");
        ck_assert_str_eq(column_of(context, "len,length,count\n1,7,2\n", NULL, limit), "length");
        ck_assert_str_eq(column_of(context, "{\"num_tokens\": 5, \"x\": 2}\n", NULL, limit), "num_tokens");
        ck_assert_str_eq(column_of(context, "a,tokens\n1,7\n", OPTIONS(.column = "a"), limit), "");
        ck_assert_str_eq(column_of(context, "7\n8\n", NULL, limit), "");
    }
    hbp_context_free(context);
}
END_TEST

START_TEST(other_files_are_refused_by_name)
{
    hbp_context *context = test_context();
    REFUSES(context, HBP_E_FORMAT, "x is a zip archive, as .npz and .pt are; give .npy", "x",
            "PK\x03\x04zzzz", NULL);
    REFUSES(context, HBP_E_FORMAT,
            "x is a Parquet file, which the hbp command and hbp.Lengths.read read by its name, through "
            "Python's pyarrow",
            "x", "PAR1....", NULL);
    REFUSES(context, HBP_E_FORMAT, "x is an Arrow file, which the hbp command", "x", "ARROW1..", NULL);
    REFUSES(context, HBP_E_FORMAT, "x is an Arrow stream", "x", "\xff\xff\xff\xff....", NULL);
    REFUSES(context, HBP_E_FORMAT, "x is compressed with xz", "x", "\xfd\x37zXZ", NULL);
    REFUSES(context, HBP_E_FORMAT, "x is a Python pickle", "x", "\x80\x04\x95", NULL);
    REFUSES(context, HBP_E_FORMAT, "x is no file of lengths; give .npy", "x", "\x01\x02\x03", NULL);
    REFUSES(context, HBP_E_FORMAT, "x is empty", "x", "", NULL);
    REFUSES(context, HBP_E_FORMAT, "x: the gzip data end early, at byte 3", "x", "\x1f\x8b\x08", NULL);
    REFUSES(context, HBP_E_FORMAT, "x is empty", "x", "", OPTIONS(.format = "csv"));
    hbp_context_free(context);
}
END_TEST

#define PAIR(context, text, vision_name, vision, options, ...)                                               \
    do {                                                                                                     \
        const int64_t macro_want[] = {__VA_ARGS__};                                                          \
        hbp_lengths *macro_got;                                                                              \
        OK(context, read_texts(context, "x", text, vision_name, vision, options, &macro_got));               \
        check_vision(macro_got, macro_want, (int64_t)(sizeof macro_want / sizeof *macro_want));              \
        hbp_lengths_free(macro_got);                                                                         \
    } while (0)

#define NO_PAIR(context, status, message, text, vision_name, vision, options)                                \
    do {                                                                                                     \
        hbp_lengths *macro_got;                                                                              \
        FAILS(context, status, message,                                                                      \
              read_texts(context, "x", text, vision_name, vision, options, &macro_got));                     \
    } while (0)

START_TEST(vision_units_may_come_from_another_file)
{
    hbp_context *context = test_context();
    PAIR(context, "9\n3\n5\n", "v", "# images\n2\n0\n\n7\n", NULL, 2, 0, 7);
    PAIR(context, "9\n3\n5\n", "v.csv", "2\n0\n7\n", NULL, 2, 0, 7);
    PAIR(context, "9\n3\n5\n", "v", "id,images\n1,2\n2,\n3,7\n", NULL, 2, 0, 7);
    PAIR(context, "9\n3\n", "v", "images,vision\n1,2\n2,3\n", NULL, 2, 3); /* vision is preferred */
    PAIR(context, "9\n3\n", "v", "images,n\n1,2\n2,3\n", OPTIONS(.vision_column = "n"), 2, 3);
    PAIR(context, "9\n3\n", "v", "images,count\n1,2\n2,3\n", NULL, 1, 2);
    PAIR(context, "9\n3\n5\n", "v", "{}\n{\"images\":[\"a\"]}\n{\"images\":4}\n", NULL, 0, 1, 4);
    PAIR(context, "9\n3\n", "v", "{\"n\":null}\n{\"n\":[1,2]}\n", OPTIONS(.vision_column = "n"), 0, 2);
    PAIR(context, "{\"length\":[1]}\n", "v", "3\n", NULL, 3);
    PAIR(context, "len,count\n9,1\n3,2\n", "v", "2\n0\n", NULL, 2, 0); /* no histogram is meant */
    hbp_lengths *got;
    OK(context,
       read_texts(context, "x", "len,k\n9,3\n3,2\n", "v", "0\n0\n", OPTIONS(.modality_column = "k"), &got));
    check_vision(got, (const int64_t[]){0, 0}, 2);
    ck_assert_int_eq(got->modalities, 12);
    hbp_lengths_free(got);
    hbp_context_free(context);
}
END_TEST

START_TEST(files_that_do_not_match_are_refused)
{
    hbp_context *context = test_context();
    NO_PAIR(context, HBP_E_INVALID, "x holds 3 lengths, but v 2 numbers of vision units", "9\n3\n5\n", "v",
            "2\n0\n", NULL);
    NO_PAIR(context, HBP_E_INVALID, "x holds 1 lengths, but v 2 numbers of vision units", "9\n", "v",
            "2\n0\n", NULL);
    NO_PAIR(context, HBP_E_INVALID, "v, line 2: the number of vision units is -1; it is at least 0", "9\n",
            "v", "2\n-1\n", NULL);
    NO_PAIR(context, HBP_E_OVERFLOW, "v, line 1: the number of vision units is 2147483648", "9\n", "v",
            "2147483648\n", NULL);
    NO_PAIR(context, HBP_E_FORMAT, "v.txt, line 1: the number of vision units 'a' is not", "9\n", "v.txt",
            "a\n", NULL);
    NO_PAIR(context, HBP_E_FORMAT, "v.csv, line 2: the number of vision units 'a' is not", "9\n", "v.csv",
            "1\na\n", NULL);
    NO_PAIR(context, HBP_E_FORMAT, "v, line 1: no column 'vision'; the header has length", "9\n", "v",
            "length\n2\n", NULL);
    NO_PAIR(context, HBP_E_FORMAT, "v: no object has the field 'vision'", "9\n", "v", "{\"length\":3}\n",
            NULL);
    NO_PAIR(context, HBP_E_INVALID, "v: the format has no columns, so none is called 'n'", "9\n", "v", "3\n",
            OPTIONS(.vision_column = "n"));
    NO_PAIR(context, HBP_E_INVALID, "v is a histogram; vision units are read one number a sample", "9\n", "v",
            "9,1\n", NULL);
    NO_PAIR(context, HBP_E_INVALID, "x: a histogram has neither loss tokens", "9,1\n", "v", "9\n", NULL);
    NO_PAIR(context, HBP_E_INVALID, "v holds no vision units", "9\n", "v", "vision\n", NULL);
    NO_PAIR(context, HBP_E_FORMAT, "v is empty", "9\n", "v", "", NULL);
    NO_PAIR(context, HBP_E_INVALID, "x holds no lengths", "# none\n", "v", "3\n", NULL);
    NO_PAIR(context, HBP_E_INVALID, "x: the format has no columns, so none is called 'k'", "9\n", "v", "3\n",
            OPTIONS(.modality_column = "k"));
    REFUSES(context, HBP_E_INVALID, "x: the format has no columns, so none is called 'v'", "x", "9\n",
            OPTIONS(.vision_column = "v"));
    hbp_lengths *out;
    FAILS(context, HBP_E_INVALID, "both come from standard input",
          hbp_lengths_load(context, "-", OPTIONS(.vision_path = "-"), &out));
    FAILS(context, HBP_E_SYSTEM, "nowhere", /* the lengths are there */
          hbp_lengths_load(context, HBP_TESTS_DIR "/fuzz/corpus/lengths/text",
                           OPTIONS(.vision_path = "nowhere"), &out));
    ck_assert_ptr_null(out);
    hbp_context_free(context);
}
END_TEST

/* More rows than a batch and than the first room of the list, both files gzipped or not. */
START_TEST(long_files_are_read_together)
{
    hbp_context *context = test_context();
    enum { ROWS = 20000 };
    char *text = malloc(8 * ROWS), *units = malloc(8 * ROWS);
    int64_t bytes = 0, unit_bytes = 0, zipped;
    for (int i = 0; i < ROWS; i++) {
        bytes += sprintf(text + bytes, "%d\n", 1 + i % 999);
        unit_bytes += sprintf(units + unit_bytes, "%d\n", i % 37);
    }
    unsigned char *zip = gzipped(units, unit_bytes, &zipped);
    const reading plain = {"v", units, unit_bytes, {0}}, packed = {"v.gz", zip, zipped, {0}};
    paired_reading pair = {{"x", text, bytes, {0}}, &plain};
    for (int k = 0; k < 2; k++) {
        hbp_lengths *got;
        pair.vision = k ? &packed : &plain;
        OK(context, read_pair(context, &pair, &got));
        ck_assert_int_eq(got->count, ROWS);
        for (int i = 0; i < ROWS; i++) {
            ck_assert_int_eq(hbp_lengths_get_vision(got, i), i % 37);
            ck_assert_int_eq(hbp_lengths_get_length(got, i), 1 + i % 999);
        }
        hbp_lengths_free(got);
    }
    failing_sweep(read_pair_once, &pair);
    free(zip);
    free(text);
    free(units);
    hbp_context_free(context);
}
END_TEST

START_TEST(the_shared_pictures_are_read)
{
    hbp_context *context = test_context();
    const char *path = HBP_DATA_DIR "/vlm_tokens.npy";
    FILE *file = fopen(path, "rb");
    if (!file) {
        printf("skipped: %s is not there\n", path);
        hbp_context_free(context);
        return;
    }
    fclose(file);
    hbp_lengths *got;
    OK(context,
       hbp_lengths_load(context, path, OPTIONS(.vision_path = HBP_DATA_DIR "/vlm_images.npy"), &got));
    hbp_lengths_summary s = {.struct_size = sizeof s};
    OK(context, hbp_lengths_get_summary(context, got, &s));
    ck_assert_int_eq(s.samples, 70706);
    ck_assert_int_eq(s.min_vision, 1);
    ck_assert_int_eq(s.max_vision, 5);
    ck_assert_int_eq((int64_t)((double)s.vision / (double)s.samples * 1e4 + 0.5), 39512); /* mean 3.9512 */
    ck_assert_int_eq((int64_t)((double)s.tokens / (double)s.samples * 1e2 + 0.5), 113548);
    hbp_lengths_free(got);
    hbp_context_free(context);
}
END_TEST

START_TEST(a_wrong_size_is_refused)
{
    hbp_lengths_load_options options = {.struct_size = sizeof options};
    hbp_context *context = test_context();
    hbp_lengths *out;
    options.struct_size = 2;
    FAILS(context, HBP_E_INVALID, "hbp_lengths_load_options.struct_size is 2",
          hbp_lengths_load(context, "nowhere", &options, &out));
    hbp_context_free(context);
}
END_TEST

TEST_MAIN("read_lengths", the_content_tells_the_format, the_name_tells_what_the_content_leaves_open,
          the_caller_may_name_the_format, the_column_that_was_found_is_named, other_files_are_refused_by_name,
          vision_units_may_come_from_another_file, files_that_do_not_match_are_refused,
          long_files_are_read_together, the_shared_pictures_are_read, a_wrong_size_is_refused)

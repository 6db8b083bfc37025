#include "hbp/io.h"
#include "io/reading.h"

#define OPTIONS(...)                                                                                         \
    (&(hbp_lengths_load_options){.struct_size = sizeof(hbp_lengths_load_options), __VA_ARGS__})

START_TEST(columns_are_found_by_name)
{
    hbp_context *context = test_context();
    READS(context, "x", "id,length\n0,3\n1,1\n", NULL, 3, 1);
    READS(context, "x", "tokens,len\n0,3\n1,1\n", NULL, 3, 1); /* len is preferred */
    READS(context, "x", ",num_tokens\r\n0,3\r\n1,1\r\n", NULL, 3, 1);
    READS(context, "x", "length\n3\n1\n", NULL, 3, 1);
    READS(context, "x", "a\tlength\n9\t3\n\n9\t1\n", NULL, 3, 1);
    READS(context, "x", "a; length ;b\n9; 3 ;1\n9;1;1\n", NULL, 3, 1);
    READS(context, "x", "a,length\n9,3", OPTIONS(.column = "a"), 9);
    READS(context, "x", "text,length\n\"a, \"\"b\"\"\nc\",3\n\"\",\"1\"\n", NULL, 3, 1);
    READS(context, "x.csv",
          "\xef\xbb\xbf"
          "length\n3\n",
          NULL, 3);
    READS(context, "x.csv", "5\n6\n", NULL, 5, 6);
    hbp_context_free(context);
}
END_TEST

START_TEST(counts_make_a_histogram)
{
    hbp_context *context = test_context();
    hbp_lengths *got;
    OK(context, read_text(context, "x", "length,count\n9,1\n3,2\n4,0\n", NULL, &got));
    ck_assert_ptr_null(got->length);
    check_lengths(got, (const int64_t[]){3, 3, 9}, 3);
    hbp_lengths_free(got);
    READS(context, "x", "9,1\n3,2\n", NULL, 3, 3, 9);
    READS(context, "x", "n,length\n2,9\n1,3\n", OPTIONS(.count_column = "n"), 3, 9, 9);
    READS(context, "x", "length,count\n9,1\n3,2\n", OPTIONS(.count_column = ""), 9, 3);
    READS(context, "x", "length,count,loss\n9,1,1\n3,2,1\n", OPTIONS(.loss_column = "loss"), 9, 3);
    REFUSES(context, HBP_E_INVALID, "line 2: the count is -1", "x", "length,count\n9,-1\n", NULL);
    REFUSES(context, HBP_E_INVALID, "has 0 samples", "x", "length,count\n9,0\n", NULL);
    REFUSES(context, HBP_E_OVERFLOW, "it needs 1 to 68719476736", "x", "length,count\n9,99999999999\n", NULL);
    REFUSES(context, HBP_E_INVALID,
            "x: a histogram has neither loss tokens nor links, vision units or modalities", "x",
            "length,n,loss\n9,1,1\n", OPTIONS(.count_column = "n", .loss_column = "loss"));
    char *text = malloc(200000);
    size_t bytes = (size_t)sprintf(text, "length,count\n");
    for (int i = 0; i < 12000; i++)
        bytes += (size_t)sprintf(text + bytes, "%d,%d\n", 12000 - i, 1 + i % 5);
    reading r = {"x", text, (int64_t)bytes, {0}};
    OK(context, read_bytes(context, &r, &got));
    ck_assert_int_eq(got->bins, 12000);
    ck_assert_int_eq(got->count, 36000);
    hbp_lengths_free(got);
    failing_sweep(read_once, &r);
    free(text);
    hbp_context_free(context);
}
END_TEST

START_TEST(loss_and_ties_come_along)
{
    hbp_context *context = test_context();
    const char *text = "length,loss,pair\n9,4,7\n3,3,\n5,0,7\n2,1,-1\n";
    hbp_lengths_load_options *options = OPTIONS(.loss_column = "loss", .link_column = "pair");
    hbp_lengths *got;
    OK(context, read_text(context, "x", text, options, &got));
    ck_assert_int_eq(got->loss_tokens, 8);
    const uint32_t link[] = {0, HBP__FREE, 0, HBP__FREE};
    ck_assert_mem_eq(got->link, link, sizeof link);
    hbp_lengths_free(got);
    REFUSES(context, HBP_E_INVALID, "line 3: the number of loss tokens is 4; it is at most the length", "x",
            "length,loss,pair\n9,4,7\n3,4,\n", options);
    REFUSES(context, HBP_E_INVALID, "line 2: the number of loss tokens is -1", "x",
            "length,loss,pair\n9,-1,7\n", options);
    REFUSES(context, HBP_E_INVALID, "line 2: the link is -2", "x", "length,loss,pair\n9,1,-2\n", options);
    REFUSES(context, HBP_E_FORMAT, "line 2: the link 'b' is not a whole number", "x",
            "length,loss,pair\n9,1,b\n", options);
    reading r = {"x", text, (int64_t)strlen(text), *options};
    failing_sweep(read_once, &r);
    hbp_context_free(context);
}
END_TEST

START_TEST(a_second_size_comes_along)
{
    hbp_context *context = test_context();
    const char *text = "length,images,kind\n9,4,1\n3,,0\n5,0,61\n2,1,1\n";
    hbp_lengths_load_options *options = OPTIONS(.vision_column = "images", .modality_column = "kind");
    hbp_lengths *got;
    OK(context, read_text(context, "x", text, options, &got));
    check_lengths(got, (const int64_t[]){9, 3, 5, 2}, 4);
    check_vision(got, (const int64_t[]){4, 0, 0, 1}, 4);
    ck_assert_int_eq(hbp_lengths_get_modality(got, 2), 61);
    ck_assert_int_eq(got->modalities, INT64_C(1) << 61 | 3);
    hbp_lengths_free(got);
    OK(context, read_text(context, "x", text, OPTIONS(.modality_column = "kind"), &got));
    ck_assert_ptr_null(got->vision);
    ck_assert_int_eq(hbp_lengths_get_modality(got, 2), 61);
    hbp_lengths_free(got);
    /* a column of counts is none where a second size is asked for */
    OK(context, read_text(context, "x", "length,count\n9,1\n3,2\n", OPTIONS(.vision_column = "count"), &got));
    check_vision(got, (const int64_t[]){1, 2}, 2);
    hbp_lengths_free(got);
    REFUSES(context, HBP_E_INVALID, "line 2: the number of vision units is -1; it is at least 0", "x",
            "length,images,kind\n9,-1,1\n", options);
    REFUSES(context, HBP_E_OVERFLOW,
            "line 2: the number of vision units is 2147483648; it is at most 2147483647", "x",
            "length,images,kind\n9,2147483648,1\n", options);
    REFUSES(context, HBP_E_FORMAT, "line 2: the number of vision units 'b' is not a whole number", "x",
            "length,images,kind\n9,b,1\n", options);
    REFUSES(context, HBP_E_INVALID, "line 3: the modality is 62; modalities are numbered 0 to 61", "x",
            "length,images,kind\n9,1,1\n9,1,62\n", options);
    REFUSES(context, HBP_E_INVALID, "line 2: the modality is -1", "x", "length,images,kind\n9,1,-1\n",
            options);
    REFUSES(context, HBP_E_FORMAT, "line 2: the modality '' is not a whole number", "x",
            "length,images,kind\n9,1,\n", options);
    REFUSES(context, HBP_E_INVALID,
            "a histogram has neither loss tokens nor links, vision units or modalities", "x",
            "length,n,images\n9,1,1\n", OPTIONS(.count_column = "n", .vision_column = "images"));
    REFUSES(context, HBP_E_INVALID, "a histogram has neither", "x", "length,n,kind\n9,1,1\n",
            OPTIONS(.count_column = "n", .modality_column = "kind"));
    REFUSES(context, HBP_E_FORMAT, "no column 'q'", "x", "len,b\n1,2\n", OPTIONS(.vision_column = "q"));
    REFUSES(context, HBP_E_FORMAT, "no column 'q'", "x", "len,b\n1,2\n", OPTIONS(.modality_column = "q"));
    REFUSES(context, HBP_E_FORMAT, "a number where the names of columns should be", "x", "1,2\n",
            OPTIONS(.vision_column = "q"));
    reading r = {"x", text, (int64_t)strlen(text), *options};
    failing_sweep(read_once, &r);
    hbp_context_free(context);
}
END_TEST

START_TEST(bad_tables_are_refused_by_line)
{
    hbp_context *context = test_context();
    REFUSES(context, HBP_E_FORMAT, "x, line 1: no column 'length'; the header has a, b?", "x",
            "a,b\x7f\n1,2\n", NULL);
    REFUSES(context, HBP_E_FORMAT, "no column 'q'; the header has a, b", "x", "a,b\n1,2\n",
            OPTIONS(.column = "q"));
    REFUSES(context, HBP_E_FORMAT, "no column 'q'", "x", "len,b\n1,2\n", OPTIONS(.count_column = "q"));
    REFUSES(context, HBP_E_FORMAT, "no column 'q'", "x", "len,b\n1,2\n", OPTIONS(.loss_column = "q"));
    REFUSES(context, HBP_E_FORMAT, "no column 'q'", "x", "len,b\n1,2\n", OPTIONS(.link_column = "q"));
    REFUSES(context, HBP_E_FORMAT, "line 3: only 1 fields; the first record has 2", "x", "a,len\n1,2\n1\n",
            NULL);
    REFUSES(context, HBP_E_FORMAT, "line 3: more than 2 fields", "x", "a,len\n1,2\n1,2,3\n", NULL);
    REFUSES(context, HBP_E_FORMAT, "line 1: more than 2 fields and no header", "x", "1,2,3\n", NULL);
    REFUSES(context, HBP_E_FORMAT, "line 1: a number where the names of columns should be", "x", "1,2\n",
            OPTIONS(.column = "len"));
    REFUSES(context, HBP_E_FORMAT, "line 4: the length '' is not a whole number", "x",
            "a,len\n\"\n\",1\n1,\n", NULL);
    REFUSES(context, HBP_E_FORMAT, "line 2: a quote opens and does not close", "x", "a,len\n1,\"2\n3\n",
            NULL);
    REFUSES(context, HBP_E_FORMAT, "line 2: text after a closing quote", "x", "a,len\n\"1\"x,2\n", NULL);
    REFUSES(context, HBP_E_INVALID, "line 2: the length is 0", "x", "a,len\n1,0\n", NULL);
    REFUSES(context, HBP_E_INVALID, "x holds no lengths", "x", "a,len\n", NULL);
    hbp_context_free(context);
}
END_TEST

/* A field longer than any buffer is stepped over in bounded memory. */
START_TEST(long_fields_cost_no_memory)
{
    failing f;
    hbp_context *context = failing_context(&f, NULL, NULL);
    const int64_t bytes = 3000000;
    char *text = malloc((size_t)bytes + 64);
    size_t head = (size_t)sprintf(text, "text,len\n\"");
    memset(text + head, 'y', (size_t)bytes);
    size_t all = head + (size_t)bytes;
    all += (size_t)sprintf(text + all, "\",12\n");
    reading r = {"x.csv", text, (int64_t)all, {0}};
    hbp_lengths *got;
    OK(context, read_bytes(context, &r, &got));
    check_lengths(got, (const int64_t[]){12}, 1);
    ck_assert_int_lt(f.peak_bytes, 600000);
    hbp_lengths_free(got);
    free(text);
    hbp_context_free(context);
}
END_TEST

TEST_MAIN("read_csv", columns_are_found_by_name, counts_make_a_histogram, loss_and_ties_come_along,
          a_second_size_comes_along, bad_tables_are_refused_by_line, long_fields_cost_no_memory)

#include "hbp/io.h"
#include "io/reading.h"

#define OPTIONS(...)                                                                                         \
    (&(hbp_lengths_load_options){.struct_size = sizeof(hbp_lengths_load_options), __VA_ARGS__})

START_TEST(fields_are_found_by_name)
{
    hbp_context *context = test_context();
    READS(context, "x", "{\"length\": 3}\n{\"length\":1}\n", NULL, 3, 1);
    READS(context, "x",
          " \n{\"a\":{\"length\":9,\"b\":[{},[],[[1]]]},\"len\":3}\r\n\r\n{\"len\":1,\"a\":null}", NULL, 3,
          1);
    READS(context, "x", "{\"tokens\":7,\"len\":3}\n{\"tokens\":7,\"len\":4}\n", NULL, 3,
          4); /* len is preferred */
    READS(context, "x", "{\"n\":5}\n", OPTIONS(.column = "n"), 5);
    READS(context, "x", "{\"n\":5,\"n\":6}\n", OPTIONS(.column = "n"), 6); /* the last of a name counts */
    READS(context, "x", "{\"a \\\"b\\u0041\\n\":5}", OPTIONS(.column = "a \"bA\n"), 5);
    READS(context, "x",
          "{\"t\":\"\\ud83d\\ude00 \\\\ \\/ {[\",\"x\":-1.5e+3,\"y\":NaN,\"z\":-Infinity,\"length\":2}", NULL,
          2);
    /* Escapes stand for what they stand for; half a surrogate pair is no name. */
    READS(context, "x",
          "{\"l\\u00e4nge \\ud83d\\ude00\":5,\"\\ud83d\\u0041\":1,\"\\ude00\\ud83d\":2,\"\\ud83dx\":3}",
          OPTIONS(.column = "l\xc3\xa4nge \xf0\x9f\x98\x80"), 5);
    READS(context, "x.json", "\xef\xbb\xbf{\n \"length\"\n:\n3\n}\n{\"length\":4}", NULL, 3, 4);
    hbp_context_free(context);
}
END_TEST

START_TEST(array_elements_are_counted)
{
    hbp_context *context = test_context();
    const char *text = "{\"input_ids\":[5,6,[7,8],{\"a\":[1,2]},\"x,y\"]}\n{\"input_ids\":[ 1 ]}\n";
    READS(context, "x", text, OPTIONS(.column = "input_ids"), 5, 1);
    REFUSES(context, HBP_E_INVALID, "line 2: the length is 0", "x", "{\"length\":[4]}\n{\"length\":[ ]}\n",
            NULL);
    hbp_context_free(context);
}
END_TEST

START_TEST(loss_and_ties_come_along)
{
    hbp_context *context = test_context();
    const char *text = "{\"length\":9,\"loss\":4,\"pair\":7}\n{\"length\":3,\"loss\":3,\"pair\":null}\n"
                       "{\"length\":5,\"loss\":0,\"pair\":7}\n{\"length\":2,\"loss\":1}\n";
    hbp_lengths_load_options *options = OPTIONS(.loss_column = "loss", .link_column = "pair");
    hbp_lengths *got;
    OK(context, read_text(context, "x", text, options, &got));
    ck_assert_int_eq(got->loss_tokens, 8);
    const uint32_t link[] = {0, HBP__FREE, 0, HBP__FREE};
    ck_assert_mem_eq(got->link, link, sizeof link);
    hbp_lengths_free(got);
    REFUSES(context, HBP_E_FORMAT, "line 1: the field 'loss' is missing", "x", "{\"length\":9}", options);
    REFUSES(context, HBP_E_FORMAT, "line 1: the field 'loss' is an array", "x", "{\"length\":9,\"loss\":[1]}",
            options);
    REFUSES(context, HBP_E_FORMAT, "line 1: the field 'pair' is a string", "x",
            "{\"length\":9,\"loss\":1,\"pair\":\"a\"}", options);
    reading r = {"x", text, (int64_t)strlen(text), *options};
    failing_sweep(read_once, &r);
    hbp_context_free(context);
}
END_TEST

START_TEST(a_second_size_comes_along)
{
    hbp_context *context = test_context();
    const char *text = "{\"length\":9,\"images\":[\"a\",{\"b\":[1]}],\"kind\":1}\n"
                       "{\"length\":3,\"images\":null,\"kind\":0}\n{\"length\":5,\"kind\":61}\n"
                       "{\"images\":7,\"kind\":1,\"length\":2}\n{\"length\":4,\"images\":[],\"kind\":0}\n";
    hbp_lengths_load_options *options = OPTIONS(.vision_column = "images", .modality_column = "kind");
    hbp_lengths *got;
    OK(context, read_text(context, "x", text, options, &got));
    check_lengths(got, (const int64_t[]){9, 3, 5, 2, 4}, 5);
    check_vision(got, (const int64_t[]){2, 0, 0, 7, 0}, 5);
    ck_assert_int_eq(hbp_lengths_get_modality(got, 2), 61);
    hbp_lengths_free(got);
    REFUSES(context, HBP_E_FORMAT, "x: no object has the field 'pictures'", "x",
            "{\"length\":9}\n{\"length\":8}\n", OPTIONS(.vision_column = "pictures"));
    REFUSES(context, HBP_E_FORMAT, "line 1: the field 'images' is a string", "x",
            "{\"length\":9,\"images\":\"a.png\"}\n", OPTIONS(.vision_column = "images"));
    REFUSES(context, HBP_E_INVALID, "line 1: the number of vision units is -2", "x",
            "{\"length\":9,\"images\":-2}\n", OPTIONS(.vision_column = "images"));
    REFUSES(context, HBP_E_FORMAT, "line 2: the field 'kind' is missing", "x",
            "{\"length\":9,\"kind\":1}\n{\"length\":9}\n", OPTIONS(.modality_column = "kind"));
    REFUSES(context, HBP_E_FORMAT, "line 1: the field 'kind' is a string", "x",
            "{\"length\":9,\"kind\":\"text\"}\n", OPTIONS(.modality_column = "kind"));
    REFUSES(context, HBP_E_INVALID, "line 1: the modality is 62", "x", "{\"length\":9,\"kind\":62}\n",
            OPTIONS(.modality_column = "kind"));
    reading r = {"x", text, (int64_t)strlen(text), *options};
    failing_sweep(read_once, &r);
    hbp_context_free(context);
}
END_TEST

START_TEST(bad_fields_are_refused_by_line)
{
    hbp_context *context = test_context();
    REFUSES(context, HBP_E_FORMAT, "x, line 2: the field 'len' is missing", "x",
            "{\"len\":1}\n{\"length\":1}\n", NULL);
    REFUSES(context, HBP_E_FORMAT, "line 1: the field 'length' is missing", "x", "{}", NULL);
    REFUSES(context, HBP_E_FORMAT, "'length' is a string", "x", "{\"length\":\"12\"}", NULL);
    REFUSES(context, HBP_E_FORMAT, "'length' is an object", "x", "{\"length\":{}}", NULL);
    REFUSES(context, HBP_E_FORMAT, "'length' is not a number", "x", "{\"length\":true}", NULL);
    REFUSES(context, HBP_E_FORMAT, "line 1: length '12.5' is not a whole number", "x", "{\"length\":12.5}",
            NULL);
    REFUSES(context, HBP_E_INVALID, "line 1: the length is -3", "x", "{\"length\":-3}", NULL);
    REFUSES(context, HBP_E_INVALID, "JSON lines hold no histogram; column 'n'", "x", "{\"length\":3}",
            OPTIONS(.count_column = "n"));
    hbp_context_free(context);
}
END_TEST

START_TEST(what_is_not_json_is_refused_by_line)
{
    hbp_context *context = test_context();
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"[1,2]", "line 1: not a JSON object"},
        {"{\"length\":1}\n5\n", "line 2: not a JSON object"},
        {"{\"length\":1", "line 1: a comma or } is missing"},
        {"{\"length\":1,}", "a key is missing"},
        {"{\"length\":1 \"b\":2}", "a comma or } is missing"},
        {"{\"length\" 1}", "a colon is missing"},
        {"{length:1}", "a key is missing"},
        {"{\"length\":}", "a value is missing"},
        {"{\"length\":", "the file ends within a value"},
        {"{\"length\":[1,]}", "a value is missing"},
        {"{\"length\":[,1]}", "a value is missing"},
        {"{\"length\":[1}", "a comma or ] is missing"},
        {"{\"length\":{\"a\" 1}}", "a colon is missing"},
        {"{\"length\":{\"a\":1,}}", "a key is missing"},
        {"{\"length\":{1:1}}", "a key is missing"},
        {"{\"length\":[1 2]}", "a comma or ] is missing"},
        {"{\"length\":nul}", "a value is no JSON"},
        {"{\"length\":-}", "a value is no JSON"},
        {"{\"a\":\"b\nc\"}", "line 1: a string does not end on its line"},
        {"{\"a\":\"b", "a string does not end"},
        {"{\"a\":\"\\x\"}", "an unknown escape"},
        {"{\"a\":\"\\u12g4\"}", "\\u without four hexadecimal digits"},
        {"{\"a\":\"\\", "an unknown escape"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        REFUSES(context, HBP_E_FORMAT, cases[i].message, "x.jsonl", cases[i].text, NULL);
    hbp_context_free(context);
}
END_TEST

START_TEST(nesting_is_bounded_and_text_costs_no_memory)
{
    failing f;
    hbp_context *context = failing_context(&f, NULL, NULL);
    char *text = malloc(3000100);
    for (int depth = 510; depth < 514; depth++) {
        size_t bytes = (size_t)sprintf(text, "{\"a\":");
        memset(text + bytes, '[', (size_t)depth);
        memset(text + bytes + depth, ']', (size_t)depth);
        sprintf(text + bytes + 2 * depth, ",\"length\":4}");
        if (depth <= 512)
            READS(context, "x", text, NULL, 4);
        else
            REFUSES(context, HBP_E_FORMAT, "nest deeper than 512", "x", text, NULL);
    }
    size_t head = (size_t)sprintf(text, "{\"text\":\"");
    memset(text + head, 'y', 3000000);
    sprintf(text + head + 3000000, "\",\"length\":12}\n");
    READS(context, "x", text, NULL, 12);
    ck_assert_int_lt(f.peak_bytes, 600000);
    free(text);
    hbp_context_free(context);
}
END_TEST

TEST_MAIN("read_jsonl", fields_are_found_by_name, array_elements_are_counted, loss_and_ties_come_along,
          a_second_size_comes_along, bad_fields_are_refused_by_line, what_is_not_json_is_refused_by_line,
          nesting_is_bounded_and_text_costs_no_memory)

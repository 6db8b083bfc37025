#include "io/lengths/mds_columns.h"
#include "io/reading.h"
#include "io/shards.h"

/* Reads an index of one shard of no samples with these columns. */
static hbp_status read_columns(hbp_context *context, const char *names, const char *encodings,
                               const char *sizes, const char *column)
{
    static const unsigned char empty[] = {0, 0, 0, 0, 8, 0, 0, 0};
    const shard_file file = {"x.mds", empty, sizeof empty};
    char index[2048];
    hbp_lengths *out;
    snprintf(
        index, sizeof index,
        "{\"version\": 2, \"shards\": [{\"version\": 2, \"format\": \"mds\", \"samples\": 0, \"raw_data\": "
        "{\"basename\": \"x.mds\", \"bytes\": 8}, \"column_names\": %s, \"column_encodings\": %s, "
        "\"column_sizes\": %s}]}",
        names, encodings, sizes);
    shards s = {{"index.json", index, (int64_t)strlen(index)}, &file, 1, {.column = column}};
    hbp_status status = shards_read(context, &s, &out);
    ck_assert_ptr_null(out);
    return status;
}

/* A column of its own called x. */
static hbp_status read_one(hbp_context *context, const char *encoding, const char *size)
{
    char encodings[256], sizes[256];
    snprintf(encodings, sizeof encodings, "[\"%s\"]", encoding);
    snprintf(sizes, sizeof sizes, "[%s]", size);
    return read_columns(context, "[\"x\"]", encodings, sizes, "x");
}

#define EMPTY "index.json holds no lengths" /* all was well, but for samples */

START_TEST(encodings_are_known_with_their_sizes)
{
    hbp_context *context = test_context();
    static const struct {
        const char *encoding, *size;
        hbp_status status;
        const char *message;
    } cases[] = {
        {"int", "8", HBP_E_INVALID, EMPTY},
        {"int64", "8", HBP_E_INVALID, EMPTY},
        {"uint8", "1", HBP_E_INVALID, EMPTY},
        {"str_int", "null", HBP_E_INVALID, EMPTY},
        {"ndarray", "null", HBP_E_INVALID, EMPTY},
        {"ndarray:uint16", "null", HBP_E_INVALID, EMPTY},
        {"ndarray:float64:3", "24", HBP_E_INVALID, EMPTY},
        {"int", "4", HBP_E_FORMAT, "the column 'x' (int) has a size that is not its type's"},
        {"int32", "null", HBP_E_FORMAT, "has a size that is not its type's"},
        {"ndarray", "8", HBP_E_FORMAT, "has a size that is not its type's"},
        {"ndarray:int32:16", "63", HBP_E_FORMAT, "has a size that is not its type's"},
        {"bytes", "16", HBP_E_FORMAT, "has a size that is not its type's"},
        {"int", "-8", HBP_E_FORMAT, "has a size that is not understood"},
        {"int", "8.5", HBP_E_FORMAT, "has a size that is not understood"},
        {"int", "\\\"8\\\"", HBP_E_FORMAT, "line 1"},
        {"ndarray:int128", "null", HBP_E_FORMAT, "has a type that is not known"},
        {"ndarray:", "null", HBP_E_INVALID, EMPTY},
        {"ndarray:int32:", "null", HBP_E_FORMAT, "has a shape that is not understood, or too large"},
        {"ndarray:int32:0", "null", HBP_E_FORMAT, "has a shape that is not understood"},
        {"ndarray:int32:4x", "null", HBP_E_FORMAT, "has a shape that is not understood"},
        {"ndarray:int32:4,", "null", HBP_E_FORMAT, "has a shape that is not understood"},
        {"ndarray:int32:4294967296,4294967296,16", "null", HBP_E_FORMAT, "too large"},
        {"ndarray:int32:99999999999999999999", "null", HBP_E_FORMAT, "too large"},
        {"ndarray:int32:2,8", "64", HBP_E_INVALID, "holds arrays of several dimensions; one is read"},
        {"ndarrays", "null", HBP_E_INVALID, "holds neither tokens nor whole numbers"},
        {"str", "null", HBP_E_INVALID,
         "the column 'x' (str) holds text, whose tokens nobody has counted: tokenise it first"},
        {"json", "null", HBP_E_INVALID, "holds neither tokens nor whole numbers"},
        {"pkl", "null", HBP_E_INVALID, "holds neither tokens nor whole numbers"},
        {"float32", "4", HBP_E_INVALID, "holds neither tokens nor whole numbers"},
        {"bytes", "null", HBP_E_INVALID,
         "holds bytes; name it with the type of its tokens, as 'x:int64' or 'x:uint16'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        FAILS(context, cases[i].status, cases[i].message,
              read_one(context, cases[i].encoding, cases[i].size));
    hbp_context_free(context);
}
END_TEST

START_TEST(the_column_is_found_by_name_or_guessed)
{
    hbp_context *context = test_context();
    static const struct {
        const char *names, *encodings, *sizes, *column, *message;
    } cases[] = {
        {"[\"id\", \"tokens\"]", "[\"str\", \"ndarray\"]", "[null, null]", NULL, EMPTY},
        {"[\"id\", \"x\"]", "[\"str\", \"ndarray\"]", "[null, null]", NULL, EMPTY},
        {"[\"a\", \"x\"]", "[\"ndarray\", \"ndarray\"]", "[null, null]", NULL,
         "index.json: no column has a name that lengths go by; name one of a (ndarray), x (ndarray)"},
        {"[\"a\", \"input_ids\"]", "[\"ndarray\", \"ndarray\"]", "[null, null]", NULL, EMPTY},
        {"[\"length\", \"input_ids\"]", "[\"int\", \"str\"]", "[8, null]", NULL, EMPTY},
        {"[\"text\"]", "[\"str\"]", "[null]", NULL,
         "no column holds tokens or whole numbers, but text (str); text is to be tokenised first"},
        {"[\"x\"]", "[\"bytes\"]", "[null]", "x:int64", EMPTY},
        {"[\"x:int64\"]", "[\"bytes\"]", "[null]", "x:int64", "holds bytes; name it with the type"},
        {"[\"x:int64\"]", "[\"bytes\"]", "[null]", "x:int64:uint16", EMPTY},
        {"[\"x\"]", "[\"bytes\"]", "[null]", "x:int63", "no column 'x:int63'; there are x (bytes)"},
        {"[\"x\"]", "[\"ndarray\"]", "[null]", "x:int64", "no column 'x:int64'; there are x (ndarray)"},
        {"[\"x\"]", "[\"ndarray\"]", "[null]", "y", "no column 'y'; there are x (ndarray)"},
        {"[]", "[]", "[]", NULL, "a shard has no columns"},
        {"[\"x\"]", "[\"int\", \"int\"]", "[8, 8]", NULL, "not as many names as encodings and sizes"},
        {"[\"x\", \"y\"]", "[\"int\", \"int\"]", "[8]", NULL, "not as many names as encodings and sizes"},
        {"[3]", "[\"int\"]", "[8]", NULL, "the names or encodings of columns are no texts"},
        {"{\"x\": 1}", "[\"int\"]", "[8]", NULL, "a shard has no columns"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hbp_status status =
            read_columns(context, cases[i].names, cases[i].encodings, cases[i].sizes, cases[i].column);
        ck_assert_int_lt(status, 0);
        ck_assert_msg(strstr(hbp_context_message(context), cases[i].message), "case %d: %s", (int)i,
                      hbp_context_message(context));
    }
    hbp_context_free(context);
}
END_TEST

START_TEST(types_by_code_are_numpys)
{
    ck_assert_int_eq(hbp__mds_item_of_code(8), 1);
    ck_assert_int_eq(hbp__mds_item_of_code(16), 2);
    ck_assert_int_eq(hbp__mds_item_of_code(33), 4);
    ck_assert_int_eq(hbp__mds_item_of_code(66), 8);
    ck_assert_int_eq(hbp__mds_item_of_code(0), 0);
    ck_assert_int_eq(hbp__mds_item_of_code(255), 0);
}
END_TEST

TEST_MAIN("mds_columns", encodings_are_known_with_their_sizes, the_column_is_found_by_name_or_guessed,
          types_by_code_are_numpys)

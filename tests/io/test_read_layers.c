#include "hbp/io.h"
#include "io/pipeline/read_layers.h"

#include "data/pipeline/layers.h"
#include "failing.h"
#include "files.h"

typedef struct text {
    const char *bytes;
} text;

static hbp_status read_text(hbp_context *context, const char *bytes, hbp_layers **out)
{
    hbp__stream *in;
    *out = NULL;
    hbp_status status = hbp__stream_open_memory(context, "x", bytes, (int64_t)strlen(bytes), &in);
    if (status < 0)
        return status;
    status = hbp__layers_read_stream(context, in, out);
    ck_assert((status >= 0) == (*out != NULL));
    hbp__stream_close(in);
    return status;
}

#define REFUSES(context, message, bytes)                                                                     \
    do {                                                                                                     \
        hbp_layers *macro_got;                                                                               \
        FAILS(context, HBP_E_FORMAT, message, read_text(context, bytes, &macro_got));                        \
    } while (0)

static void check(const int64_t *column, int64_t first, int64_t second)
{
    ck_assert_int_eq(column[0], first);
    ck_assert_int_eq(column[1], second);
}

static const char *const csv =
    "name,forward_us,backward_ns,type,activation_mib,state_bytes,note,cut_bytes,cut_type,parameters\n"
    "patches, 1.5,7,vision,0.5,9,\"a, b\",3,language,100\n"
    "\"lm, head\",2e3,8,2,1,10,,4,0,200\n";
static const char *const jsonl =
    "{\"name\": \"patches\", \"forward_us\": 1.5, \"backward_ns\": 7, \"type\": \"vision\", \"note\": [1, "
    "{}], "
    "\"activation_mib\": 0.5, \"state_bytes\": 9, \"cut_bytes\": 3, \"cut_type\": 0, \"parameters\": 100}\n"
    "{\"forward_us\": 2e3, \"backward_ns\": 8, \"type\": 2, \"activation_mib\": 1, \"state_bytes\": 10, "
    "\"cut_bytes\": 4, \"cut_type\": \"language\", \"parameters\": 200, \"name\": \"lm, head\"}\n";

START_TEST(columns_are_found_and_converted)
{
    hbp_context *context = test_context();
    const char *const texts[] = {csv, jsonl};
    for (int i = 0; i < 2; i++) {
        hbp_layers *layers;
        OK(context, read_text(context, texts[i], &layers));
        ck_assert_int_eq(layers->count, 2);
        check(layers->forward_ns, 1500, 2000000);
        check(layers->backward_ns, 7, 8);
        check(layers->activation_bytes, 524288, 1048576);
        check(layers->state_bytes, 9, 10);
        check(layers->cut_bytes, 3, 4);
        check(layers->parameters, 100, 200);
        check(layers->recompute_ns, 1500, 2000000); /* by default */
        ck_assert_int_eq(layers->type[0], HBP_LAYER_VISION);
        ck_assert_int_eq(layers->type[1], HBP_LAYER_FIXED);
        ck_assert_int_eq(layers->cut_type[0], HBP_LAYER_LANGUAGE);
        ck_assert_int_eq(layers->cut_type[1], HBP_LAYER_LANGUAGE);
        ck_assert_str_eq(layers->name[0], "patches");
        ck_assert_str_eq(layers->name[1], "lm, head");
        hbp_layers_free(layers);
    }
    hbp_context_free(context);
}
END_TEST

START_TEST(every_column_and_unit_has_a_name)
{
    hbp_context *context = test_context();
    hbp_layers *layers;
    OK(context, read_text(context, "forward_s\n0.25\n", &layers));
    ck_assert_int_eq(layers->forward_ns[0], 250000000);
    hbp_layers_free(layers);
    OK(context, read_text(context, "forward_ms;state_kib;cut_gib\n1;2;3\n", &layers));
    ck_assert_int_eq(layers->forward_ns[0], 1000000);
    ck_assert_int_eq(layers->state_bytes[0], 2048);
    ck_assert_int_eq(layers->cut_bytes[0], INT64_C(3) << 30);
    ck_assert_str_eq(layers->name[0], "layer 0");
    hbp_layers_free(layers);
    OK(context, read_text(context, "\xef\xbb\xbf forward_ns \t mlp_ms \n 5\t0\r\n\n6\t1\n", &layers));
    check(layers->forward_ns, 5, 6);
    check(layers->mlp_ns, 0, 1000000);
    hbp_layers_free(layers);
    OK(context,
       read_text(context, "forward_ns,recomputed_bytes,activation_bytes,working_bytes\n1,2,9,3\n", &layers));
    ck_assert_int_eq(layers->recomputed_bytes[0], 2);
    ck_assert_int_eq(layers->working_bytes[0], 3);
    hbp_layers_free(layers);
    OK(context, read_text(context,
                          "forward_ns,attention_bytes,activation_bytes,attention_us,mlp_bytes,recompute_ns\n"
                          "1,2,9,3,4,5\n",
                          &layers));
    ck_assert_int_eq(layers->attention_bytes[0], 2);
    ck_assert_int_eq(layers->attention_ns[0], 3000);
    ck_assert_int_eq(layers->mlp_bytes[0], 4);
    ck_assert_int_eq(layers->recompute_ns[0], 5);
    hbp_layers_free(layers);
    hbp_context_free(context);
}
END_TEST

/* A misspelt size would count for nothing. */
START_TEST(names_that_end_in_a_unit_are_columns_or_refused)
{
    hbp_context *context = test_context();
    hbp_layers *layers = NULL;
    FAILS(context, HBP_E_FORMAT, "line 1: no column of layers is called 'actvation_mib'",
          read_text(context, "forward_ns,actvation_mib\n1,2\n", &layers));
    FAILS(context, HBP_E_FORMAT, "line 1: no column of layers is called 'bakward_ns'",
          read_text(context, "{\"forward_ns\": 1, \"bakward_ns\": 2}\n", &layers));
    FAILS(context, HBP_E_FORMAT, "line 1: column 'kind' is called 'type'",
          read_text(context, "kind,forward_ns\nvision,1\n", &layers));
    FAILS(context, HBP_E_FORMAT, "line 1: column 'cut_kind' is called 'cut_type'",
          read_text(context, "{\"forward_ns\": 1, \"cut_kind\": \"vision\"}\n", &layers));
    OK(context, read_text(context, "forward_ns,device,module_class\n1,2,3\n", &layers));
    hbp_layers_free(layers);
    hbp_context_free(context);
}
END_TEST

START_TEST(bad_files_are_refused)
{
    hbp_context *context = test_context();
    REFUSES(context, "x holds no layers", "");
    REFUSES(context, "x holds no layers", "forward_ns\n");
    REFUSES(context, "x has no column forward_ns", "forward,type\n1,0\n");
    REFUSES(context, "x has no column forward_ns", "{\"type\": 0}");
    REFUSES(context, "x, line 2: forward_ns is '-5'; it is a number from 0 up", "forward_ns\n-5\n");
    REFUSES(context, "x, line 3: forward_ns is ''; it is a number from 0 up", "forward_ns,type\n1,0\n,0\n");
    REFUSES(context, "x, line 2: forward_ns is '1e400'", "forward_ns\n1e400\n");
    REFUSES(context, "x, line 2: forward_ns is '1e10'; it is at most 2^62 ns or bytes", "forward_s\n1e10\n");
    REFUSES(context, "x, line 2: type is 'audio'; it is language, vision, fixed, or 0, 1, 2",
            "forward_ns,type\n1,audio\n");
    REFUSES(context, "x, line 2: cut_type is '3'", "forward_ns,cut_type\n1,3\n");
    REFUSES(context, "x, line 1: two columns for forward_ns", "forward_ns,forward_us\n1,1\n");
    REFUSES(context, "x, line 1: forward_ns is given twice", "{\"forward_ns\": 1, \"forward_us\": 1}");
    REFUSES(context, "x, line 2: more fields than the header has", "forward_ns\n1,2\n");
    REFUSES(context, "x, line 2: fewer fields than the header has", "forward_ns,type\n1\n");
    REFUSES(context, "x, line 2: type is missing", "{\"forward_ns\": 1, \"type\": 0}\n{\"forward_ns\": 1}");
    REFUSES(context, "x, line 2: type was not given for the first layer",
            "{\"forward_ns\": 1}\n{\"forward_ns\": 1, \"type\": 0}");
    REFUSES(context, "x, line 1: forward_ns is not a number", "{\"forward_ns\": \"1\"}");
    REFUSES(context, "x, line 1: name is not a string", "{\"forward_ns\": 1, \"name\": 3}");
    REFUSES(context, "x, line 1: type is not a string", "{\"forward_ns\": 1, \"type\": null}");
    REFUSES(context, "x, line 1: a comma or } is missing", "{\"forward_ns\": 1 \"type\": 0}");
    REFUSES(context, "x, line 1: a key is missing", "{\"forward_ns\": 1, }");
    REFUSES(context, "x, line 1: a colon is missing", "{\"forward_ns\" 1}");
    REFUSES(context, "x, line 1: not a JSON object", "[{\"forward_ns\": 1}]");
    REFUSES(context, "x: recomputed_bytes of layer 0 is 2; activation_bytes is 1",
            "forward_ns,activation_bytes,recomputed_bytes\n1,1,2\n");
    char wide[2000] = "a";
    for (int i = 0; i < 300; i++)
        strcat(wide, ",a");
    REFUSES(context, "x, line 1: more than 256 columns", wide);
    hbp_layers *layers = NULL;
    FAILS(context, HBP_E_SYSTEM, "nowhere", hbp_layers_load(context, "/nowhere/nowhere", &layers));
    FAILS(context, HBP_E_INVALID, "path is NULL", hbp_layers_load(context, NULL, &layers));
    FAILS(context, HBP_E_INVALID, "out is NULL", hbp_layers_load(context, "x", NULL));
    hbp_context_free(context);
}
END_TEST

START_TEST(files_are_read_by_path)
{
    hbp_context *context = test_context();
    char folder[64], path[128];
    folder_make(folder);
    file_write(folder_path(path, folder, "layers.csv"), csv, strlen(csv));
    hbp_layers *layers;
    OK(context, hbp_layers_load(context, path, &layers));
    ck_assert_int_eq(layers_view(layers).layers, 2);
    hbp_layers_free(layers);
    folder_remove(folder);
    hbp_context_free(context);
}
END_TEST

START_TEST(long_names_are_cut_off)
{
    hbp_context *context = test_context();
    char bytes[400];
    snprintf(bytes, sizeof bytes, "forward_ns,name\n1,%0200d\n", 7);
    hbp_layers *layers;
    OK(context, read_text(context, bytes, &layers));
    ck_assert_uint_eq(strlen(layers->name[0]), 63);
    hbp_layers_free(layers);
    hbp_context_free(context);
}
END_TEST

static hbp_status read_and_free(hbp_context *context, void *user)
{
    hbp_layers *layers;
    hbp_status status = read_text(context, ((const text *)user)->bytes, &layers);
    hbp_layers_free(layers);
    return status;
}

START_TEST(failing_allocations_leave_nothing)
{
    text many = {csv};
    failing_sweep(read_and_free, &many);
    many.bytes = jsonl;
    failing_sweep(read_and_free, &many);
    char *bytes = malloc(4000);
    size_t used = (size_t)sprintf(bytes, "forward_ns\n");
    for (int i = 0; i < 200; i++)
        used += (size_t)sprintf(bytes + used, "%d\n", i);
    many.bytes = bytes;
    failing_sweep(read_and_free, &many);
    free(bytes);
}
END_TEST

TEST_MAIN("read_layers", columns_are_found_and_converted, every_column_and_unit_has_a_name,
          names_that_end_in_a_unit_are_columns_or_refused, bad_files_are_refused, files_are_read_by_path,
          long_names_are_cut_off, failing_allocations_leave_nothing)

#include "failing.h"
#include "files.h"
#include "hbp/io.h"

#include <sys/stat.h>
#include <unistd.h>

#include "data/model/model.h"

static const char config[] =
    "{\"model_type\": \"llama\", \"hidden_size\": 4096, \"intermediate_size\": 14336, "
    "\"num_hidden_layers\": 32, \"num_attention_heads\": 32, \"num_key_value_heads\": 8, "
    "\"vocab_size\": 128256}";

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
}

static int32_t layers_of(hbp_context *context, const char *text)
{
    hbp_model *model = NULL;
    OK(context, hbp_model_create_text(context, text, &model));
    int32_t layers = model->fields.layers;
    hbp_model_free(model);
    return layers;
}

static hbp_status load_once(hbp_context *context, void *user)
{
    hbp_model *model;
    hbp_status status = hbp_model_load(context, user, &model);
    hbp_model_free(model);
    return status;
}

START_TEST(fields_behind_a_file_are_replaced)
{
    hbp_context *context = test_context();
    hbp_model *model = NULL;
    char folder[64], path[80], other[80], text[112];
    folder_make(folder);
    snprintf(path, sizeof path, "%s/a,b.json", folder);
    snprintf(other, sizeof other, "%s/c.json", folder);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs(config, file);
    fclose(file);
    OK(context, hbp_model_load(context, path, &model));
    hbp_model_free(model);
    ck_assert_int_eq(rename(path, other), 0);
    snprintf(text, sizeof text, "%s,layers=4,vocab=100", other);
    OK(context, hbp_model_load(context, text, &model));
    ck_assert_int_eq(model->fields.layers, 4);
    ck_assert_int_eq(model->fields.vocab, 100);
    ck_assert_int_eq(model->fields.hidden, 4096);
    hbp_model_free(model);
    failing_sweep(load_once, text);
    snprintf(text, sizeof text, "%s,layer=4", other);
    FAILS(context, HBP_E_INVALID, "there is no field 'layer'; the nearest is 'layers'",
          hbp_model_load(context, text, &model));
    ck_assert_ptr_null(model);
    snprintf(text, sizeof text, "%s,", other);
    FAILS(context, HBP_E_INVALID, "is not FIELD=VALUE", hbp_model_load(context, text, &model));
    unlink(other);
    folder_remove(folder);
    hbp_context_free(context);
}
END_TEST

static hbp_status create_once(hbp_context *context, void *user)
{
    hbp_model *model;
    hbp_status status = hbp_model_create_text(context, user, &model);
    hbp_model_free(model);
    return status;
}

/* A checkout is a folder that holds config.json, with a slash behind it or not. */
START_TEST(a_folder_is_read_by_its_config)
{
    hbp_context *context = test_context();
    hbp_model *model = NULL;
    char folder[64], path[80], text[112], plain[112];
    folder_make(folder);
    snprintf(path, sizeof path, "%s/config.json", folder);
    write_file(path, config);
    OK(context, hbp_model_load(context, folder, &model));
    ck_assert_int_eq(model->fields.layers, 32);
    hbp_model_free(model);
    snprintf(text, sizeof text, "%s/,layers=4,vocab=100", folder);
    OK(context, hbp_model_load(context, text, &model));
    ck_assert_int_eq(model->fields.layers, 4);
    hbp_model_free(model);
    ck_assert_int_eq(layers_of(context, text), 4);
    ck_assert_int_eq(layers_of(context, folder), 32);
    ck_assert_int_eq(layers_of(context, path), 32);
    failing_sweep(create_once, text);
    snprintf(text, sizeof text, "%s,layers=5", path);
    ck_assert_int_eq(layers_of(context, text), 5);
    snprintf(plain, sizeof plain, "%s/model", folder); /* a path needs no .json */
    ck_assert_int_eq(rename(path, plain), 0);
    ck_assert_int_eq(layers_of(context, plain), 32);
    FAILS(context, HBP_E_SYSTEM, "config.json: No such file or directory",
          hbp_model_create_text(context, folder, &model));
    ck_assert_ptr_null(model);
    write_file(plain, "{\"model_type\": \"llama\"}");
    FAILS(context, HBP_E_FORMAT, "/model: keys 'num_hidden_layers', ",
          hbp_model_load(context, plain, &model));
    ck_assert_int_eq(strncmp(hbp_context_message(context), plain, strlen(plain)), 0);
    unlink(plain);
    folder_remove(folder);
    hbp_context_free(context);
}
END_TEST

START_TEST(a_preset_goes_before_a_folder)
{
    hbp_context *context = test_context();
    char folder[64], back[512];
    folder_make(folder);
    ck_assert_ptr_nonnull(getcwd(back, sizeof back));
    ck_assert_int_eq(chdir(folder), 0);
    ck_assert_int_eq(mkdir("llama-3.1-8b", 0700), 0);
    ck_assert_int_eq(mkdir("mine", 0700), 0);
    write_file("mine/config.json", config);
    ck_assert_int_eq(layers_of(context, "llama-3.1-8b,layers=3"), 3);
    ck_assert_int_eq(layers_of(context, "mine"), 32);
    ck_assert_int_eq(layers_of(context, "mine,layers=7"), 7);
    ck_assert_int_eq(layers_of(context, "layers=2,hidden=64,ffn=64,heads=4,vocab=99"), 2);
    unlink("mine/config.json");
    rmdir("mine");
    rmdir("llama-3.1-8b");
    ck_assert_int_eq(chdir(back), 0);
    folder_remove(folder);
    hbp_context_free(context);
}
END_TEST

static const struct wrong {
    const char *text;
    hbp_status status;
    const char *message;
} wrongs[] = {
    {"", HBP_E_INVALID, "no model preset ''; there are llama-3-8b"},
    {"lama-3.1-8b", HBP_E_INVALID, "no model preset 'lama-3.1-8b'; the nearest is 'llama-3.1-8b'"},
    {"meta-llama/Llama-3.1-8B", HBP_E_INVALID,
     "no model preset 'meta-llama/Llama-3.1-8B', and no such file or folder; the nearest is 'llama-3.1-8b'"},
    {"/nowhere/model", HBP_E_SYSTEM, "cannot open /nowhere/model: No such file or directory"},
    {"nowhere/", HBP_E_SYSTEM, "cannot open nowhere/: No such file or directory"},
    {"./llama-3.1-8b", HBP_E_SYSTEM, "cannot open ./llama-3.1-8b: No such file or directory"},
    {"no.json", HBP_E_SYSTEM, "cannot open no.json: No such file or directory"},
    {"no.json,layers=4", HBP_E_SYSTEM, "cannot open no.json: No such file or directory"},
    {"no.json:4", HBP_E_SYSTEM, "cannot open no.json:4: No such file or directory"},
    {"llama-3.1-8b,layer=4", HBP_E_INVALID, "there is no field 'layer'; the nearest is 'layers'"},
};

START_TEST(what_is_none_is_answered)
{
    hbp_context *context = test_context();
    for (size_t i = 0; i < sizeof wrongs / sizeof *wrongs; i++) {
        hbp_model *model = (hbp_model *)context;
        FAILS(context, wrongs[i].status, wrongs[i].message,
              hbp_model_create_text(context, wrongs[i].text, &model));
        ck_assert_ptr_null(model);
    }
    hbp_model *model;
    FAILS(context, HBP_E_INVALID, "text is NULL", hbp_model_create_text(context, NULL, &model));
    FAILS(context, HBP_E_INVALID, "out is NULL", hbp_model_create_text(context, "x", NULL));
    hbp_context_free(context);
}
END_TEST

TEST_MAIN("model_load", fields_behind_a_file_are_replaced, a_folder_is_read_by_its_config,
          a_preset_goes_before_a_folder, what_is_none_is_answered)

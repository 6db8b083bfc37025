/* Models by what people name: a file, a checkout's folder, a preset; each with fields replaced behind it. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/fields.h"
#include "base/nearest.h"
#include "hbp/io.h"
#include "io/file/file_error.h"
#include "io/file/given_path.h"
#include "io/file/stream.h"
#include "io/json/json_tree.h"
#include "io/model/model_config.h"

/* What the reader says of config.json, of the file by its own name. */
static hbp_status name_file(hbp_context *context, const char *path, hbp_status status)
{
    const size_t name = sizeof HBP__CONFIG_NAME - 1;
    char message[HBP__MESSAGE_BYTES];
    if (strncmp(context->message, HBP__CONFIG_NAME, name) != 0)
        return status;
    snprintf(message, sizeof message, "%s", context->message + name);
    return hbp__fail(context, status, "%s%s", hbp__show_path(path).text, message);
}

static hbp_status load_file(hbp_context *context, const char *path, hbp_model **out)
{
    char *text;
    int64_t bytes;
    HBP__TRY(hbp__read_file(context, path, HBP__JSON_MOST, &text, &bytes));
    int64_t blanks = 0;
    while (blanks < bytes && text[blanks] && strchr(" \t\r\n", text[blanks]))
        blanks++;
    hbp_status status = hbp__config_read(context, text, bytes, out);
    if (status == HBP_E_FORMAT && blanks < bytes && text[blanks] != '{')
        status = hbp__fail(context, status,
                           "%s is no model's config.json; a model is a preset, such as llama-3.1-8b, a "
                           "config.json, a folder that holds one, or fields",
                           hbp__show_path(path).text);
    hbp__delete(&context->memory, text);
    return status < 0 ? name_file(context, path, status) : status;
}

/* A file, or the config.json of a folder. */
static hbp_status load_path(hbp_context *context, const char *path, hbp_model **out)
{
    if (!hbp__is_folder(path))
        return load_file(context, path, out);
    const size_t folder = strlen(path), room = folder + sizeof "/" HBP__CONFIG_NAME;
    char *file = hbp__new(&context->memory, room, 1);
    if (!file)
        return hbp__fail_memory(context, "the name of a file");
    snprintf(file, room, "%s%s", path, path[folder - 1] == '/' ? HBP__CONFIG_NAME : "/" HBP__CONFIG_NAME);
    hbp_status status = load_file(context, file, out);
    hbp__delete(&context->memory, file);
    return status;
}

/* The length of the file's or folder's name at the beginning of a text; 0: fields are behind none. */
static size_t find_name(hbp_context *context, const char *text, hbp_status *status)
{
    size_t name = hbp__json_name(text, ",");
    *status = HBP_OK;
    if (name || hbp__is_there(text))
        return name ? name : strlen(text);
    name = strcspn(text, ",");
    char *folder = text[name] ? hbp__new_text(&context->memory, text, name) : NULL;
    if (text[name] && !folder)
        *status = hbp__fail_memory(context, "the name of a folder");
    const int is_folder = folder && hbp__is_folder(folder);
    hbp__delete(&context->memory, folder);
    return is_folder ? name : 0;
}

static hbp_status load_model(hbp_context *context, const char *text, size_t name, hbp_model **out)
{
    if (!text[name])
        return load_path(context, text, out);
    char *path = hbp__new_text(&context->memory, text, name);
    if (!path)
        return hbp__fail_memory(context, "the name of a file");
    hbp_model *base = NULL;
    hbp_status status = load_path(context, path, &base);
    hbp__delete(&context->memory, path);
    if (status >= 0)
        status = hbp__model_create_variant(context, base, text + name + 1, out);
    if (status >= 0)
        snprintf((*out)->text, sizeof(*out)->text, "%s", text);
    hbp_model_free(base);
    return status;
}

hbp_status hbp_model_load(hbp_context *context, const char *path, hbp_model **out)
{
    HBP__ENTER_OUT(context, out);
    HBP__TRY(hbp__require(context, path, "path"));
    hbp_status status;
    const size_t name = find_name(context, path, &status);
    HBP__TRY(status);
    return load_model(context, path, name ? name : strlen(path), out);
}

/* Nothing of that path is there; a name of a hub may be that of a preset behind its owner's. */
static hbp_status fail_path(hbp_context *context, const char *text, const char *name)
{
    const char *slash = strrchr(name, '/');
    int64_t presets = 0;
    while (hbp__model_preset_name(presets))
        presets++;
    const char *meant =
        *name == '.' || *name == '/' ? NULL : hbp__resembling(slash + 1, hbp__model_preset_name, presets);
    if (meant)
        return hbp__fail(context, HBP_E_INVALID,
                         "no model preset '%.200s', and no such file or folder; the nearest is '%s'", text,
                         meant);
    return hbp__fail_system(context, "open", text, ENOENT);
}

hbp_status hbp_model_create_text(hbp_context *context, const char *text, hbp_model **out)
{
    HBP__ENTER_OUT(context, out);
    HBP__TRY(hbp__require(context, text, "text"));
    char name[HBP__FIELD_NAME_BYTES];
    hbp__take_name(text, ",", name);
    for (int64_t i = 0; hbp__model_preset_name(i); i++)
        if (strcmp(hbp__model_preset_name(i), name) == 0)
            return hbp__model_create_preset(context, text, out);
    if (text[strcspn(text, "=,/")] == '=')
        return hbp__model_create_preset(context, text, out);
    hbp_status status;
    const size_t path = find_name(context, text, &status);
    HBP__TRY(status);
    if (path || strstr(text, ".json"))
        return load_model(context, text, path ? path : strlen(text), out);
    return strchr(name, '/') ? fail_path(context, text, name) : hbp__model_create_preset(context, text, out);
}
